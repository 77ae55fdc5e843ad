//! The libraries of CUDA, looked for when a card is first asked for: the driver, cuBLAS, cuSOLVER and NVRTC.
//!
//! Nothing of CUDA is needed to build. The functions that are used are declared here, by the types that they have had
//! since CUDA 12.0, and are looked up by name; what is not found is a text that names what was looked for. Status codes
//! are plain numbers, because a later driver may return some that are not known here.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_uint, c_void};

/// What a library is opened by: its number and address of a function, or why there is none.
#[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
mod loading {
    /// An open library.
    pub type Library = libloading::Library;

    /// Opens the first of the files that there is.
    pub fn open(names: &[String]) -> Option<Library> {
        // SAFETY: the initialisers of NVIDIA's libraries may be run from any thread; the names are those of NVIDIA.
        names.iter().find_map(|name| unsafe { libloading::Library::new(name.as_str()) }.ok())
    }

    /// The address of a function.
    pub fn symbol(library: &Library, name: &str) -> Option<usize> {
        // SAFETY: any symbol has an address; who calls it has declared its type.
        let found = unsafe { library.get::<*const ()>(name) };
        found.ok().map(|symbol| *symbol as usize).filter(|address| *address != 0)
    }
}

/// A build without CUDA finds no library.
#[cfg(not(all(feature = "cuda", any(target_os = "linux", target_os = "windows"))))]
mod loading {
    /// None is ever open.
    pub struct Library;

    pub fn open(_: &[String]) -> Option<Library> {
        None
    }

    pub fn symbol(_: &Library, _: &str) -> Option<usize> {
        None
    }
}

/// Whether this build can look for CUDA at all.
pub const BUILT_IN: bool =
    cfg!(all(feature = "cuda", any(target_os = "linux", target_os = "windows")));

/// A handle of the driver, of cuBLAS and so on, as an address.
pub type Handle = *mut c_void;
/// An address in the memory of the card.
pub type Address = u64;

macro_rules! functions {
    ($(#[$doc:meta])* $table:ident { $($name:ident = $symbol:literal ($($argument:ty),*);)+ }) => {
        $(#[$doc])*
        pub struct $table {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> c_int,)+
            _library: loading::Library,
        }

        impl $table {
            /// Opens the first of these files and looks up all functions.
            fn load(what: &str, names: &[String]) -> Result<Self, String> {
                let library = loading::open(names).ok_or_else(|| {
                    format!("{what} was not found (looked for {})", names.join(", "))
                })?;
                $(
                    let address = loading::symbol(&library, $symbol)
                        .ok_or_else(|| format!("{what} has no function {}: it is too old", $symbol))?;
                    // SAFETY: the address is that of the function of this name, which has this type since CUDA 12.0.
                    let $name = unsafe {
                        std::mem::transmute::<
                            *const (),
                            unsafe extern "C" fn($($argument),*) -> c_int,
                        >(address as *const ())
                    };
                )+
                Ok(Self { $($name,)+ _library: library })
            }
        }
    };
}

functions! {
    /// The driver.
    Driver {
        init = "cuInit" (c_uint);
        version = "cuDriverGetVersion" (*mut c_int);
        count = "cuDeviceGetCount" (*mut c_int);
        device = "cuDeviceGet" (*mut c_int, c_int);
        name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
        attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
        retain = "cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
        set_current = "cuCtxSetCurrent" (Handle);
        stream = "cuStreamCreate" (*mut Handle, c_uint);
        synchronise = "cuStreamSynchronize" (Handle);
        memory = "cuMemGetInfo_v2" (*mut usize, *mut usize);
        allocate = "cuMemAlloc_v2" (*mut Address, usize);
        free = "cuMemFree_v2" (Address);
        upload = "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Handle);
        download = "cuMemcpyDtoHAsync_v2" (*mut c_void, Address, usize, Handle);
        clear = "cuMemsetD8Async" (Address, u8, usize, Handle);
        load_module = "cuModuleLoadData" (*mut Handle, *const c_void);
        function = "cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
        launch = "cuLaunchKernel" (
            Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
        );
        error_text = "cuGetErrorString" (c_int, *mut *const c_char);
    }
}

functions! {
    /// cuBLAS.
    Blas {
        create = "cublasCreate_v2" (*mut Handle);
        set_stream = "cublasSetStream_v2" (Handle, Handle);
        set_workspace = "cublasSetWorkspace_v2" (Handle, *mut c_void, usize);
        dgemm = "cublasDgemm_v2" (
            Handle, c_int, c_int, c_int, c_int, c_int, *const f64, Address, c_int, Address, c_int, *const f64, Address, c_int
        );
        dgemm_slices = "cublasDgemmStridedBatched" (
            Handle, c_int, c_int, c_int, c_int, c_int, *const f64, Address, c_int, i64, Address, c_int, i64, *const f64,
            Address, c_int, i64, c_int
        );
        sgemm = "cublasSgemm_v2" (
            Handle, c_int, c_int, c_int, c_int, c_int, *const f32, Address, c_int, Address, c_int, *const f32, Address, c_int
        );
        dgemv = "cublasDgemv_v2" (
            Handle, c_int, c_int, c_int, *const f64, Address, c_int, Address, c_int, *const f64, Address, c_int
        );
        sgemv = "cublasSgemv_v2" (
            Handle, c_int, c_int, c_int, *const f32, Address, c_int, Address, c_int, *const f32, Address, c_int
        );
        dsyrk = "cublasDsyrk_v2" (
            Handle, c_int, c_int, c_int, c_int, *const f64, Address, c_int, *const f64, Address, c_int
        );
        ssyrk = "cublasSsyrk_v2" (
            Handle, c_int, c_int, c_int, c_int, *const f32, Address, c_int, *const f32, Address, c_int
        );
        dtrsm = "cublasDtrsm_v2" (
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, *const f64, Address, c_int, Address, c_int
        );
        strsm = "cublasStrsm_v2" (
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, *const f32, Address, c_int, Address, c_int
        );
        dtrsm_each = "cublasDtrsmBatched" (
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, *const f64, Address, c_int, Address, c_int, c_int
        );
        dtrsv = "cublasDtrsv_v2" (Handle, c_int, c_int, c_int, c_int, Address, c_int, Address, c_int);
        strsv = "cublasStrsv_v2" (Handle, c_int, c_int, c_int, c_int, Address, c_int, Address, c_int);
    }
}

functions! {
    /// cuSOLVER.
    Solver {
        create = "cusolverDnCreate" (*mut Handle);
        set_stream = "cusolverDnSetStream" (Handle, Handle);
        dpotrf_size = "cusolverDnDpotrf_bufferSize" (Handle, c_int, c_int, Address, c_int, *mut c_int);
        dpotrf = "cusolverDnDpotrf" (Handle, c_int, c_int, Address, c_int, Address, c_int, Address);
        dpotrf_each = "cusolverDnDpotrfBatched" (Handle, c_int, c_int, Address, c_int, Address, c_int);
        spotrf_size = "cusolverDnSpotrf_bufferSize" (Handle, c_int, c_int, Address, c_int, *mut c_int);
        spotrf = "cusolverDnSpotrf" (Handle, c_int, c_int, Address, c_int, Address, c_int, Address);
    }
}

functions! {
    /// NVRTC, the compiler.
    Compiler {
        arch_count = "nvrtcGetNumSupportedArchs" (*mut c_int);
        archs = "nvrtcGetSupportedArchs" (*mut c_int);
        create = "nvrtcCreateProgram" (
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
        );
        compile = "nvrtcCompileProgram" (Handle, c_int, *const *const c_char);
        destroy = "nvrtcDestroyProgram" (*mut Handle);
        cubin_size = "nvrtcGetCUBINSize" (Handle, *mut usize);
        cubin = "nvrtcGetCUBIN" (Handle, *mut c_char);
        ptx_size = "nvrtcGetPTXSize" (Handle, *mut usize);
        ptx = "nvrtcGetPTX" (Handle, *mut c_char);
        log_size = "nvrtcGetProgramLogSize" (Handle, *mut usize);
        log = "nvrtcGetProgramLog" (Handle, *mut c_char);
    }
}

/// All libraries.
pub struct Libraries {
    pub driver: Driver,
    pub blas: Blas,
    pub solver: Solver,
    pub compiler: Compiler,
}

impl Libraries {
    /// Opens all of them, or says what was looked for.
    pub fn load() -> Result<Self, String> {
        if !BUILT_IN {
            return Err(
                "this program was built without CUDA support (feature `cuda`, on Linux and Windows)"
                    .to_owned(),
            );
        }
        let driver = Driver::load("the driver", &files("cuda", None))?;
        let mut version = 0;
        // SAFETY: writes one integer; allowed before the driver is initialised.
        let status = unsafe { (driver.version)(&raw mut version) };
        if status != 0 || version < 12_000 {
            let (major, minor) = (version / 1000, version % 1000 / 10);
            return Err(format!(
                "the driver supports CUDA {major}.{minor}, but 12.0 or later is needed"
            ));
        }
        let major = version / 1000;
        // The driver takes its time to start, in which the other libraries are read. Whether it has started is asked again
        // when a card is opened. cuSOLVER counts its versions one behind.
        let others = || -> Result<_, String> {
            let blas = Blas::load("cuBLAS", &of_majors("cublas", major, 0))?;
            let solver = Solver::load("cuSOLVER", &of_majors("cusolver", major, -1))?;
            let compiler = Compiler::load("NVRTC", &of_majors("nvrtc", major, 0))?;
            Ok((blas, solver, compiler))
        };
        let (blas, solver, compiler) = std::thread::scope(|scope| {
            // SAFETY: may be called at any time, by any thread.
            scope.spawn(|| unsafe { (driver.init)(0) });
            others()
        })?;
        Ok(Self { driver, blas, solver, compiler })
    }
}

/// The latest major version of CUDA whose libraries are looked for.
const NEWEST: i32 = 13;
/// The first.
const OLDEST: i32 = 12;

/// The files of a library of CUDA, those for the driver's version first; none that is later than the driver.
fn of_majors(stem: &str, driver: i32, shift: i32) -> Vec<String> {
    let majors = (OLDEST..=NEWEST.min(driver)).rev();
    majors.flat_map(|major| files(stem, Some(major + shift))).chain(files(stem, None)).collect()
}

/// The names that a library has, alone and in the folder where the toolkit puts it.
fn files(stem: &str, version: Option<i32>) -> Vec<String> {
    let name = match (cfg!(target_os = "windows"), version) {
        (true, _) if stem == "cuda" => "nvcuda.dll".to_owned(),
        (true, Some(version)) if stem == "nvrtc" => format!("nvrtc64_{version}0_0.dll"),
        (true, Some(version)) => format!("{stem}64_{version}.dll"),
        (true, None) => format!("{stem}.dll"),
        (false, Some(version)) => format!("lib{stem}.so.{version}"),
        (false, None) if stem == "cuda" => "libcuda.so.1".to_owned(),
        (false, None) => format!("lib{stem}.so"),
    };
    let folder = match (cfg!(target_os = "windows"), stem) {
        (_, "cuda") | (true, _) => None,
        (false, _) => Some(format!("/usr/local/cuda/lib64/{name}")),
    };
    [name].into_iter().chain(folder).collect()
}

#[cfg(test)]
impl Compiler {
    /// The compiler alone, which needs no card.
    pub fn alone() -> Result<Self, String> {
        Self::load("NVRTC", &of_majors("nvrtc", NEWEST, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn versions_later_than_the_driver_are_not_tried() {
        let names = of_majors("cublas", 12, 0);
        assert!(names.iter().all(|name| !name.contains(".so.13")), "{names:?}");
        assert_eq!(names[0], "libcublas.so.12");
        let names = of_majors("cusolver", 14, -1);
        assert_eq!(names[0], "libcusolver.so.12");
        assert!(names.contains(&"libcusolver.so.11".to_owned()), "{names:?}");
        assert_eq!(files("cuda", None), ["libcuda.so.1"]);
    }

    #[test]
    fn what_is_not_found_is_named() {
        let names = ["libsvml-no-such-library.so".to_owned(), "another".to_owned()];
        let error = Driver::load("the driver", &names).err().unwrap();
        assert!(error.contains("libsvml-no-such-library.so, another"), "{error}");
    }
}
