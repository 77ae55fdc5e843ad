//! Kernels from their source, by NVRTC.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int};

use super::library::{Compiler, Handle};

/// An image for the driver: a program for the card's own architecture or, where the compiler does not know that, PTX for the
/// latest one before it, which the driver then translates.
pub(super) fn compile(
    compiler: &Compiler,
    file: &str,
    source: &str,
    capability: Option<(i32, i32)>,
) -> Result<Vec<u8>, String> {
    let wanted = capability.map(|(major, minor)| 10 * major + minor);
    let known = architectures(compiler)?;
    let architecture = match wanted {
        Some(wanted) if known.contains(&wanted) => format!("sm_{wanted}"),
        wanted => {
            let before = known.iter().filter(|known| wanted.is_none_or(|wanted| **known < wanted));
            let newest = before.max().ok_or_else(|| {
                let (least, wanted) = (known.iter().min().unwrap_or(&0), wanted.unwrap_or(0));
                format!("NVRTC supports architectures from {least} on, but the GPU has {wanted}")
            })?;
            format!("compute_{newest}")
        }
    };
    program(compiler, file, source, &architecture)
}

/// The architectures that the compiler knows, as in 90.
fn architectures(compiler: &Compiler) -> Result<Vec<i32>, String> {
    let mut count = 0;
    // SAFETY: writes one integer.
    let status = unsafe { (compiler.arch_count)(&raw mut count) };
    let mut known: Vec<c_int> = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: writes as many integers as it has just said.
    match (status, unsafe { (compiler.archs)(known.as_mut_ptr()) }) {
        (0, 0) => Ok(known),
        _ => Err("NVRTC does not report its supported architectures".to_owned()),
    }
}

/// A program of NVRTC, which is destroyed in the end.
struct Program<'c> {
    compiler: &'c Compiler,
    handle: Handle,
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is that of a program, destroyed once.
        unsafe { (self.compiler.destroy)(&raw mut self.handle) };
    }
}

type Size = unsafe extern "C" fn(Handle, *mut usize) -> c_int;
type Text = unsafe extern "C" fn(Handle, *mut c_char) -> c_int;

impl Program<'_> {
    /// The log, or an image.
    fn text(&self, size: Size, text: Text) -> Option<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: writes one size.
        if unsafe { size(self.handle, &raw mut bytes) } != 0 {
            return None;
        }
        let mut out = vec![0_u8; bytes];
        // SAFETY: writes as many bytes as it has just said.
        (unsafe { text(self.handle, out.as_mut_ptr().cast()) } == 0).then_some(out)
    }
}

/// Compiles for `sm_90` to a program of the card, for `compute_90` to PTX.
fn program(
    compiler: &Compiler,
    file: &str,
    source: &str,
    architecture: &str,
) -> Result<Vec<u8>, String> {
    let fail = |what: &str| format!("compiling {file} for {architecture}: {what}");
    let c_text = |text: &str| CString::new(text).map_err(|_| fail("a zero in the source"));
    let (source, name) = (c_text(source)?, c_text(file)?);
    // No fast mathematics: exponentials and roots are those of the standard. Products and sums may be fused.
    let options = [
        c_text(&format!("--gpu-architecture={architecture}"))?,
        c_text("--fmad=true")?,
        c_text("--std=c++14")?,
    ];
    let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let mut handle = std::ptr::null_mut();
    let none = std::ptr::null();
    // SAFETY: texts end in zeros; there are no headers.
    let created = unsafe {
        (compiler.create)(&raw mut handle, source.as_ptr(), name.as_ptr(), 0, none, none)
    };
    if created != 0 {
        return Err(fail(&format!("NVRTC error {created}")));
    }
    let program = Program { compiler, handle };
    // SAFETY: as many texts as are said, each of which ends in a zero and lives until the end of the function.
    let status = unsafe { (compiler.compile)(handle, options.len() as c_int, options.as_ptr()) };
    if status != 0 {
        let log = program.text(compiler.log_size, compiler.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        return Err(fail(&format!("NVRTC error {status}: {}", log.trim_end_matches('\0').trim())));
    }
    let image = match architecture.starts_with("sm_") {
        true => program.text(compiler.cubin_size, compiler.cubin),
        false => program.text(compiler.ptx_size, compiler.ptx),
    };
    image.filter(|image| !image.is_empty()).ok_or_else(|| fail("NVRTC gives no program"))
}

/// Compiles all sources for an architecture: the reason if there is no compiler, else what it says.
#[cfg(test)]
fn compiles(architecture: &str) -> Result<Result<(), String>, String> {
    let compiler = Compiler::alone()?;
    let all = super::SOURCES
        .iter()
        .try_for_each(|(file, source)| program(&compiler, file, source, architecture).map(|_| ()));
    Ok(all)
}

#[cfg(test)]
#[allow(clippy::print_stderr)]
mod tests {
    use super::*;

    /// The oldest cards that are of use, and those of computing centres since.
    #[test]
    fn kernels_compile() {
        for architecture in ["sm_75", "sm_80", "sm_90", "compute_75"] {
            match compiles(architecture) {
                Err(reason) => return eprintln!("skipped: {reason}"),
                Ok(compiled) => compiled.unwrap(),
            }
        }
    }

    #[test]
    fn a_mistake_in_a_kernel_is_named() {
        let compiler = match Compiler::alone() {
            Err(reason) => return eprintln!("skipped: {reason}"),
            Ok(compiler) => compiler,
        };
        let error = program(&compiler, "wrong.cu", "__global__ void f() { nonsense; }", "sm_80");
        let error = error.unwrap_err();
        assert!(error.contains("wrong.cu") && error.contains("nonsense"), "{error}");
        let image = compile(&compiler, "right.cu", "__global__ void f() {}", Some((999, 0)));
        assert!(image.unwrap().starts_with(b"//"), "PTX for a card that is not known");
        assert!(compile(&compiler, "right.cu", "", Some((1, 0))).unwrap_err().contains("has 10"));
    }
}
