//! A queue of work on a card, and what can be asked of it.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;

use super::library::{Address, Blas, Handle, Solver};
use super::{Buffer, Gpu};
use crate::error::{Error, Result};

/// What cuBLAS has for itself on each lane: as much as it asks for on large cards, less on small ones.
const WORKSPACES: (usize, usize) = (32 << 20, 4 << 20);
/// Cards from so many bytes on are large.
const LARGE_CARD: u64 = 24 << 30;
/// Blocks that a grid may have behind each other.
pub const MOST_BLOCKS: usize = 65_535;
/// Threads of a block of a kernel, where nothing else is said.
const THREADS: usize = 256;
/// Floating-point operations that take about 30 ms where numbers of 64 bits are fast, and where they are not.
const AT_ONCE: (f64, f64) = (1e12, 1e10);

/// Numbers that a card knows.
pub trait Number: Copy + Default + Send + Sync + 'static {}
impl Number for f64 {}
impl Number for f32 {}
impl Number for i64 {}
impl Number for i32 {}
impl Number for u16 {}
impl Number for u8 {}

type Gemm<T> = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const T,
    Address,
    c_int,
    Address,
    c_int,
    *const T,
    Address,
    c_int,
) -> c_int;
type Gemv<T> = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    *const T,
    Address,
    c_int,
    Address,
    c_int,
    *const T,
    Address,
    c_int,
) -> c_int;
type Syrk<T> = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    *const T,
    Address,
    c_int,
    *const T,
    Address,
    c_int,
) -> c_int;
type Trsm<T> = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const T,
    Address,
    c_int,
    Address,
    c_int,
) -> c_int;
type Trsv = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    Address,
    c_int,
    Address,
    c_int,
) -> c_int;
type PotrfSize = unsafe extern "C" fn(Handle, c_int, c_int, Address, c_int, *mut c_int) -> c_int;
type Potrf =
    unsafe extern "C" fn(Handle, c_int, c_int, Address, c_int, Address, c_int, Address) -> c_int;

/// Numbers that the libraries compute with.
pub trait Real: Number + From<f32> {
    /// One.
    const ONE: Self;
    #[doc(hidden)]
    fn gemm(blas: &Blas) -> Gemm<Self>;
    #[doc(hidden)]
    fn gemv(blas: &Blas) -> Gemv<Self>;
    #[doc(hidden)]
    fn syrk(blas: &Blas) -> Syrk<Self>;
    #[doc(hidden)]
    fn trsm(blas: &Blas) -> Trsm<Self>;
    #[doc(hidden)]
    fn trsv(blas: &Blas) -> Trsv;
    #[doc(hidden)]
    fn potrf(solver: &Solver) -> (PotrfSize, Potrf);
}

macro_rules! real {
    ($kind:ty, $gemm:ident, $gemv:ident, $syrk:ident, $trsm:ident, $trsv:ident, $size:ident, $potrf:ident) => {
        impl Real for $kind {
            const ONE: Self = 1.0;
            fn gemm(blas: &Blas) -> Gemm<Self> {
                blas.$gemm
            }
            fn gemv(blas: &Blas) -> Gemv<Self> {
                blas.$gemv
            }
            fn syrk(blas: &Blas) -> Syrk<Self> {
                blas.$syrk
            }
            fn trsm(blas: &Blas) -> Trsm<Self> {
                blas.$trsm
            }
            fn trsv(blas: &Blas) -> Trsv {
                blas.$trsv
            }
            fn potrf(solver: &Solver) -> (PotrfSize, Potrf) {
                (solver.$size, solver.$potrf)
            }
        }
    };
}
real!(f64, dgemm, dgemv, dsyrk, dtrsm, dtrsv, dpotrf_size, dpotrf);
real!(f32, sgemm, sgemv, ssyrk, strsm, strsv, spotrf_size, spotrf);

/// A matrix on the card, stored by columns that are `stride` values apart.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    address: Address,
    rows: usize,
    cols: usize,
    stride: usize,
    owner: PhantomData<&'a T>,
}

impl<'a, T: Number> View<'a, T> {
    pub(super) fn new(address: Address, rows: usize, cols: usize, stride: usize) -> Self {
        Self { address, rows, cols, stride, owner: PhantomData }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Values from the start of a column to the start of the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// `rows` x `cols` of its values, from a row and a column on.
    pub fn part(&self, row: usize, col: usize, rows: usize, cols: usize) -> Result<Self> {
        let fits = |first: usize, count: usize, all: usize| {
            first.checked_add(count).is_some_and(|end| end <= all)
        };
        if !fits(row, rows, self.rows) || !fits(col, cols, self.cols) {
            return Err(wrong(&format!(
                "{rows} x {cols} from ({row}, {col}) on of a matrix of {} x {}",
                self.rows, self.cols
            )));
        }
        let offset = ((col * self.stride + row) * size_of::<T>()) as u64;
        Ok(Self { address: self.address + offset, rows, cols, ..*self })
    }

    /// Some columns: rows of a row-major matrix.
    pub fn columns(&self, first: usize, count: usize) -> Result<Self> {
        self.part(0, first, self.rows, count)
    }

    /// The same values as a matrix of another shape, where there are no gaps between its columns.
    pub fn reshaped(&self, rows: usize, cols: usize) -> Result<Self> {
        if !self.is_whole() || rows.checked_mul(cols) != Some(self.values()) {
            let shape = format!("{} x {} as {rows} x {cols}", self.rows, self.cols);
            return Err(wrong(&shape));
        }
        Ok(Self { rows, cols, stride: rows, ..*self })
    }

    /// Whether one column follows the other without a gap.
    fn is_whole(&self) -> bool {
        self.stride == self.rows || self.cols <= 1
    }

    fn values(&self) -> usize {
        self.rows * self.cols
    }
}

/// A matrix or its transpose in a product.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a, T> {
    view: View<'a, T>,
    transposed: bool,
}

impl<'a, T> From<View<'a, T>> for Operand<'a, T> {
    fn from(view: View<'a, T>) -> Self {
        Self { view, transposed: false }
    }
}

/// The transpose of a matrix, in a product or a solution.
pub fn transposed<T>(view: View<'_, T>) -> Operand<'_, T> {
    Operand { view, transposed: true }
}

impl<T> Operand<'_, T> {
    fn shape(&self) -> (usize, usize) {
        match self.transposed {
            true => (self.view.cols, self.view.rows),
            false => (self.view.rows, self.view.cols),
        }
    }

    /// CUBLAS_OP_T or CUBLAS_OP_N.
    fn code(&self) -> c_int {
        c_int::from(self.transposed)
    }
}

/// On which side of the unknown a triangle stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// L X = B.
    Left,
    /// X L = B.
    Right,
}

/// CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_NON_UNIT.
const LOWER: c_int = 0;
const NON_UNIT: c_int = 0;

/// What a kernel is given. All numbers of kernels are of 64 bits: `long long` or `double`.
#[derive(Clone, Copy, Debug)]
pub struct Argument(u64);

impl<T: Number> From<View<'_, T>> for Argument {
    fn from(view: View<'_, T>) -> Self {
        Self(view.address)
    }
}

impl<T> From<&Buffer<T>> for Argument {
    fn from(buffer: &Buffer<T>) -> Self {
        Self(buffer.address)
    }
}

impl From<usize> for Argument {
    fn from(value: usize) -> Self {
        Self(value as u64)
    }
}

impl<T> From<Option<&Buffer<T>>> for Argument {
    fn from(buffer: Option<&Buffer<T>>) -> Self {
        Self(buffer.map_or(0, |buffer| buffer.address))
    }
}

impl From<f64> for Argument {
    fn from(value: f64) -> Self {
        Self(value.to_bits())
    }
}

/// An operation that would reach beyond a matrix: a mistake here, not of a user.
fn wrong(what: &str) -> Error {
    Error::Device {
        device: "the GPU".to_owned(),
        reason: format!("a mistake in svml: {what}"),
        remedy: crate::error::Remedy::UseProcessor,
    }
}

/// A size for the libraries, which count in 32 bits.
fn size(value: usize) -> Result<c_int> {
    c_int::try_from(value).map_err(|_| wrong(&format!("a size of {value}")))
}

/// What belongs to a lane for good.
pub(super) struct Queue {
    pub number: usize,
    stream: usize,
    blas: usize,
    solver: Option<usize>,
    /// What cuBLAS works in.
    _workspace: Buffer<f64>,
}

impl Queue {
    pub fn new(gpu: &'static Gpu, number: usize) -> Result<Self> {
        let libraries = gpu.libraries;
        let (mut stream, mut blas) = (std::ptr::null_mut(), std::ptr::null_mut());
        let bytes = if gpu.total as u64 >= LARGE_CARD { WORKSPACES.0 } else { WORKSPACES.1 };
        let workspace = gpu.block::<f64>(bytes / 8, "the workspace of cuBLAS", None)?;
        // SAFETY: each call writes one handle, or is given handles that were just made; the workspace lives as long as
        // the queue, which is never dropped once it has been made. CU_STREAM_NON_BLOCKING is 1.
        unsafe {
            gpu.check((libraries.driver.stream)(&raw mut stream, 1), "making a queue")?;
            blas_status(gpu, (libraries.blas.create)(&raw mut blas), "cublasCreate")?;
            let status = (libraries.blas.set_stream)(blas, stream);
            blas_status(gpu, status, "cublasSetStream")?;
            let address = workspace.address as usize as *mut c_void;
            let status = (libraries.blas.set_workspace)(blas, address, bytes);
            blas_status(gpu, status, "cublasSetWorkspace")?;
        }
        let (stream, blas) = (stream as usize, blas as usize);
        Ok(Self { number, stream, blas, solver: None, _workspace: workspace })
    }
}

fn blas_status(gpu: &Gpu, status: c_int, what: &str) -> Result<()> {
    match status {
        0 => Ok(()),
        3 => Err(gpu.failure(&format!("{what} failed: the GPU has no memory left for cuBLAS"))),
        _ => Err(gpu.failure(&format!("{what} failed: cuBLAS error {status}"))),
    }
}

/// A queue of work on a card, lent for one operation.
pub struct Lane {
    gpu: &'static Gpu,
    /// Taken when it is given back.
    queue: Option<Queue>,
    number: usize,
    stream: Handle,
    blas: Handle,
    /// Floating-point operations that were asked for since the last synchronisation.
    asked: f64,
}

impl Drop for Lane {
    fn drop(&mut self) {
        // A failure is seen by the next who uses the card: it is then in no state to go on.
        let _ = self.synchronise();
        if let Some(queue) = self.queue.take() {
            self.gpu.give_back(queue);
        }
    }
}

impl Lane {
    pub(super) fn new(gpu: &'static Gpu, queue: Queue) -> Result<Self> {
        let number = queue.number;
        let (stream, blas) = (queue.stream as Handle, queue.blas as Handle);
        gpu.lock(&gpu.pool)?.lent(number);
        Ok(Self { gpu, queue: Some(queue), number, stream, blas, asked: 0.0 })
    }

    /// The card.
    pub fn gpu(&self) -> &'static Gpu {
        self.gpu
    }

    /// Waits until all work is done.
    pub fn synchronise(&mut self) -> Result<()> {
        self.asked = 0.0;
        // SAFETY: the stream is that of this lane.
        let status = unsafe { (self.gpu.libraries.driver.synchronise)(self.stream) };
        self.gpu.check(status, "the work on the GPU")
    }

    /// Counts floating-point operations that were just asked for. Where they take some hundredths of a second, waits until
    /// they are done and then asks `check` whether to go on: so that an interrupt is seen in time.
    pub fn pace(&mut self, operations: f64, check: &dyn Fn() -> Result<()>) -> Result<()> {
        self.asked += operations;
        let at_once = if self.gpu.has_fast_doubles() { AT_ONCE.0 } else { AT_ONCE.1 };
        if self.asked > at_once {
            self.synchronise()?;
            check()?;
        }
        Ok(())
    }

    /// Memory for `len` values with arbitrary content that outlives the lane.
    pub fn buffer<T: Number>(&self, len: usize, what: &str) -> Result<Buffer<T>> {
        self.gpu.block(len, what, None)
    }

    /// Memory for `len` values with arbitrary content that is used on this lane alone and dropped before it: then it
    /// serves again at once.
    pub fn scratch<T: Number>(&self, len: usize, what: &str) -> Result<Buffer<T>> {
        self.gpu.block(len, what, Some(self.number))
    }

    /// Copies values to the card, into scratch memory.
    pub fn send<T: Number>(&mut self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.scratch(values.len(), "values on their way to the GPU")?;
        self.upload(values, buffer.all())?;
        Ok(buffer)
    }

    /// Copies row or column numbers to the card, into scratch memory.
    pub fn send_places(&mut self, places: &[usize]) -> Result<Buffer<i64>> {
        let places: Vec<i64> = places.iter().map(|&place| place as i64).collect();
        self.send(&places)
    }

    /// Copies values to the card, column after column; waits until that is done.
    pub fn upload<T: Number>(&mut self, values: &[T], to: View<'_, T>) -> Result<()> {
        if values.len() != to.values() || !to.is_whole() {
            return Err(wrong(&format!("{} values for a matrix of {}", values.len(), to.values())));
        }
        if values.is_empty() {
            return Ok(());
        }
        // SAFETY: as many bytes as the slice has go to memory of that size; the slice lives until the work is done.
        let status = unsafe {
            (self.gpu.libraries.driver.upload)(
                to.address,
                values.as_ptr().cast(),
                size_of_val(values),
                self.stream,
            )
        };
        self.gpu.check(status, "copying to the GPU")?;
        self.synchronise()
    }

    /// Copies a matrix from the card, column after column; waits for all work.
    pub fn download<T: Number>(&mut self, from: View<'_, T>) -> Result<Vec<T>> {
        if !from.is_whole() {
            return Err(wrong("a copy of a matrix with gaps"));
        }
        let mut values = vec![T::default(); from.values()];
        if !values.is_empty() {
            // SAFETY: as many bytes as the vector has come from memory of that size; it lives until the work is done.
            let status = unsafe {
                (self.gpu.libraries.driver.download)(
                    values.as_mut_ptr().cast(),
                    from.address,
                    size_of_val(values.as_slice()),
                    self.stream,
                )
            };
            self.gpu.check(status, "copying from the GPU")?;
        }
        self.synchronise()?;
        Ok(values)
    }

    /// Zeros.
    pub fn clear<T: Number>(&mut self, matrix: View<'_, T>) -> Result<()> {
        if !matrix.is_whole() {
            return Err(wrong("zeros in a matrix with gaps"));
        }
        if matrix.values() == 0 {
            return Ok(());
        }
        let bytes = matrix.values() * size_of::<T>();
        // SAFETY: the bytes are those of the matrix; zeros are zero in all numbers.
        let status =
            unsafe { (self.gpu.libraries.driver.clear)(matrix.address, 0, bytes, self.stream) };
        self.gpu.check(status, "clearing GPU memory")
    }

    /// c <- alpha a b + beta c.
    pub fn gemm<'a, T: Real>(
        &mut self,
        alpha: T,
        a: impl Into<Operand<'a, T>>,
        b: impl Into<Operand<'a, T>>,
        beta: T,
        c: View<'_, T>,
    ) -> Result<()> {
        let (a, b) = (a.into(), b.into());
        let ((m, k), (inner, n)) = (a.shape(), b.shape());
        if k != inner || m != c.rows || n != c.cols {
            let shape = format!("{m} x {k} times {inner} x {n} into {} x {}", c.rows, c.cols);
            return Err(wrong(&shape));
        }
        if m == 0 || n == 0 {
            return Ok(());
        }
        // SAFETY: shapes and strides were checked, and are within the buffers by the making of views; the factors are
        // read before the call returns, because the pointer mode is that of the host.
        let status = unsafe {
            T::gemm(&self.gpu.libraries.blas)(
                self.blas,
                a.code(),
                b.code(),
                size(m)?,
                size(n)?,
                size(k)?,
                &raw const alpha,
                a.view.address,
                size(a.view.stride.max(1))?,
                b.view.address,
                size(b.view.stride.max(1))?,
                &raw const beta,
                c.address,
                size(c.stride)?,
            )
        };
        blas_status(self.gpu, status, "gemm")
    }

    /// c_s <- alpha a_s b_s' for the slices a_s and b_s of as many columns each, one after the other: the first columns of a
    /// and b, the next, and so on. Each c_s is a matrix, and they stand one after the other in c.
    pub fn outer_slices(
        &mut self,
        alpha: f64,
        a: View<'_, f64>,
        b: View<'_, f64>,
        slices: usize,
        c: View<'_, f64>,
    ) -> Result<()> {
        let (m, n, k) = (a.rows, b.rows, a.cols / slices.max(1));
        let fits = a.cols == b.cols && k * slices == a.cols && c.is_whole();
        if !fits || m * n * slices != c.values() {
            let shape = format!("{slices} slices of {m} x {} and {n} x {}", a.cols, b.cols);
            return Err(wrong(&shape));
        }
        if m == 0 || n == 0 || slices == 0 {
            return Ok(());
        }
        let (stride_a, stride_b) = ((k * a.stride) as i64, (k * b.stride) as i64);
        let zero = 0.0;
        // SAFETY: as for products of matrices; the slices are within a and b, and c has room for all products.
        let status = unsafe {
            (self.gpu.libraries.blas.dgemm_slices)(
                self.blas,
                0,
                1,
                size(m)?,
                size(n)?,
                size(k)?,
                &raw const alpha,
                a.address,
                size(a.stride.max(1))?,
                stride_a,
                b.address,
                size(b.stride.max(1))?,
                stride_b,
                &raw const zero,
                c.address,
                size(m)?,
                (m * n) as i64,
                size(slices)?,
            )
        };
        blas_status(self.gpu, status, "gemm of slices")
    }

    /// y <- alpha a x + beta y, with columns x and y.
    pub fn gemv<'a, T: Real>(
        &mut self,
        alpha: T,
        a: impl Into<Operand<'a, T>>,
        x: View<'_, T>,
        beta: T,
        y: View<'_, T>,
    ) -> Result<()> {
        let a = a.into();
        let (m, n) = a.shape();
        if (x.rows, x.cols, y.rows, y.cols) != (n, 1, m, 1) {
            return Err(wrong(&format!("{m} x {n} times {} into {}", x.rows, y.rows)));
        }
        if m == 0 {
            return Ok(());
        }
        if n == 0 {
            return self.gemm(alpha, a, x, beta, y);
        }
        // SAFETY: as for products of matrices.
        let status = unsafe {
            T::gemv(&self.gpu.libraries.blas)(
                self.blas,
                a.code(),
                size(a.view.rows)?,
                size(a.view.cols)?,
                &raw const alpha,
                a.view.address,
                size(a.view.stride)?,
                x.address,
                1,
                &raw const beta,
                y.address,
                1,
            )
        };
        blas_status(self.gpu, status, "gemv")
    }

    /// The lower triangle of c <- alpha a a' + beta c.
    pub fn syrk<'a, T: Real>(
        &mut self,
        alpha: T,
        a: impl Into<Operand<'a, T>>,
        beta: T,
        c: View<'_, T>,
    ) -> Result<()> {
        let a = a.into();
        let (n, k) = a.shape();
        if (c.rows, c.cols) != (n, n) {
            return Err(wrong(&format!("the square of {n} x {k} into {} x {}", c.rows, c.cols)));
        }
        if n == 0 {
            return Ok(());
        }
        // SAFETY: as for products of matrices.
        let status = unsafe {
            T::syrk(&self.gpu.libraries.blas)(
                self.blas,
                LOWER,
                a.code(),
                size(n)?,
                size(k)?,
                &raw const alpha,
                a.view.address,
                size(a.view.stride.max(1))?,
                &raw const beta,
                c.address,
                size(c.stride)?,
            )
        };
        blas_status(self.gpu, status, "syrk")
    }

    /// b <- l^-1 b, or b l^-1, for the lower triangle l of a matrix or its transpose.
    pub fn trsm<'a, T: Real>(
        &mut self,
        side: Side,
        l: impl Into<Operand<'a, T>>,
        b: View<'_, T>,
    ) -> Result<()> {
        let l = l.into();
        let n = match side {
            Side::Left => b.rows,
            Side::Right => b.cols,
        };
        if (l.view.rows, l.view.cols) != (n, n) {
            return Err(wrong(&format!("a triangle of {} against {n}", l.view.rows)));
        }
        if b.rows == 0 || b.cols == 0 {
            return Ok(());
        }
        let (blas, one) = (&self.gpu.libraries.blas, T::ONE);
        // SAFETY: as for products of matrices.
        let status = unsafe {
            match (side, b.cols) {
                (Side::Left, 1) => T::trsv(blas)(
                    self.blas,
                    LOWER,
                    l.code(),
                    NON_UNIT,
                    size(n)?,
                    l.view.address,
                    size(l.view.stride)?,
                    b.address,
                    1,
                ),
                _ => T::trsm(blas)(
                    self.blas,
                    c_int::from(side == Side::Right),
                    LOWER,
                    l.code(),
                    NON_UNIT,
                    size(b.rows)?,
                    size(b.cols)?,
                    &raw const one,
                    l.view.address,
                    size(l.view.stride)?,
                    b.address,
                    size(b.stride)?,
                ),
            }
        };
        blas_status(self.gpu, status, "trsm")
    }

    /// The lower Cholesky factor of a symmetric matrix in the place of its lower triangle, at once; for blocks of some
    /// thousand rows. What it is not, if it is not positive definite: the number of the pivot from 0. Waits until that is
    /// known.
    pub fn potrf<T: Real>(&mut self, a: View<'_, T>) -> Result<std::result::Result<(), usize>> {
        if a.rows != a.cols {
            return Err(wrong(&format!("a factor of {} x {}", a.rows, a.cols)));
        }
        if a.rows == 0 {
            return Ok(Ok(()));
        }
        let handle = self.solver()?;
        let (wanted, factor) = T::potrf(&self.gpu.libraries.solver);
        let (n, stride) = (size(a.rows)?, size(a.stride)?);
        let mut len = 0;
        // SAFETY: writes one integer.
        let status = unsafe { wanted(handle, LOWER, n, a.address, stride, &raw mut len) };
        self.solver_status(status, "asking for the workspace of a factorisation")?;
        let len = usize::try_from(len).unwrap_or(0);
        let work = self.scratch::<T>(len, "the workspace of a factorisation")?;
        let info = self.scratch::<i32>(1, "the state of a factorisation")?;
        // SAFETY: the matrix is square and within its buffer, the workspace as large as was asked for.
        let status = unsafe {
            factor(handle, LOWER, n, a.address, stride, work.address, size(len)?, info.address)
        };
        self.solver_status(status, "a factorisation")?;
        match self.download(info.all())?.first() {
            Some(0) => Ok(Ok(())),
            Some(&pivot) if pivot > 0 => Ok(Err(pivot as usize - 1)),
            other => Err(self.gpu.failure(&format!("a factorisation failed: {other:?}"))),
        }
    }

    /// Solves with several symmetric matrices of the same size, which stand one after the other in `a`, for right-hand sides
    /// that stand likewise in `b`: their lower Cholesky factors take the place of their lower triangles, the solutions that
    /// of `b`. What is not positive definite: the number of the matrix and of the pivot, from 0. Waits until that is known.
    pub fn solve_each(
        &mut self,
        a: View<'_, f64>,
        b: View<'_, f64>,
    ) -> Result<std::result::Result<(), (usize, usize)>> {
        let n = a.rows;
        let count = a.cols.checked_div(n).unwrap_or(0);
        let width = b.cols.checked_div(count).unwrap_or(0);
        if a.cols != n * count || b.rows != n || b.cols != width * count {
            let shape = format!("{n} x {} and {} x {}", a.cols, b.rows, b.cols);
            return Err(wrong(&shape));
        }
        if n == 0 || width == 0 {
            return Ok(Ok(()));
        }
        let addresses = |first: View<'_, f64>, columns: usize| -> Vec<i64> {
            let bytes = columns * first.stride * size_of::<f64>();
            (0..count).map(|k| (first.address + (k * bytes) as u64) as i64).collect()
        };
        let (matrices, sides) = (self.send(&addresses(a, n))?, self.send(&addresses(b, width))?);
        let info = self.scratch::<i32>(count, "the states of factorisations")?;
        let handle = self.solver()?;
        let (rows, of_a, of_b) = (size(n)?, size(a.stride)?, size(b.stride)?);
        let (width, batch) = (size(width)?, size(count)?);
        // SAFETY: as many addresses as matrices, each of which is within its buffer by the shapes that were checked.
        let status = unsafe {
            (self.gpu.libraries.solver.dpotrf_each)(
                handle,
                LOWER,
                rows,
                matrices.address,
                of_a,
                info.address,
                batch,
            )
        };
        self.solver_status(status, "factorisations")?;
        let states = self.download(info.all())?;
        if let Some(k) = states.iter().position(|state| *state != 0) {
            let failed = || self.gpu.failure(&format!("a factorisation failed: {}", states[k]));
            let pivot = usize::try_from(states[k] - 1).map_err(|_| failed())?;
            return Ok(Err((k, pivot)));
        }
        let one = 1.0;
        // First with the factors, then with their transposes, from the left (CUBLAS_SIDE_LEFT is 0).
        for transposed in [0, 1] {
            // SAFETY: as above.
            let status = unsafe {
                (self.gpu.libraries.blas.dtrsm_each)(
                    self.blas,
                    0,
                    LOWER,
                    transposed,
                    NON_UNIT,
                    rows,
                    width,
                    &raw const one,
                    matrices.address,
                    of_a,
                    sides.address,
                    of_b,
                    batch,
                )
            };
            blas_status(self.gpu, status, "trsm of several matrices")?;
        }
        Ok(Ok(()))
    }

    fn solver(&mut self) -> Result<Handle> {
        let Some(queue) = &mut self.queue else { return Err(wrong("a lane that was given back")) };
        if let Some(handle) = queue.solver {
            return Ok(handle as Handle);
        }
        let solver = &self.gpu.libraries.solver;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle, which is then bound to the stream of this lane.
        let status = unsafe {
            match (solver.create)(&raw mut handle) {
                0 => (solver.set_stream)(handle, self.stream),
                status => status,
            }
        };
        if status == 0 {
            queue.solver = Some(handle as usize);
        }
        self.solver_status(status, "opening cuSOLVER")?;
        Ok(handle)
    }

    fn solver_status(&self, status: c_int, what: &str) -> Result<()> {
        match status {
            0 => Ok(()),
            _ => Err(self.gpu.failure(&format!("{what} failed: cuSOLVER error {status}"))),
        }
    }

    /// A kernel for so many items: a thread for each of `items.0`, side by side, and blocks of threads behind each other for
    /// `items.1`. A grid may have fewer of the latter than there are, so that the kernel goes over them in steps of
    /// `gridDim.y`. The numbers of items are not among its arguments by themselves.
    ///
    /// The kernel must have the parameters that it is given, and stay within the buffers: only this folder and what
    /// implements the seams call it.
    pub fn launch(
        &mut self,
        kernel: &'static str,
        items: (usize, usize),
        arguments: &[Argument],
    ) -> Result<()> {
        let blocks = (items.0.div_ceil(THREADS), items.1.min(MOST_BLOCKS));
        self.launch_blocks(kernel, blocks, (THREADS, 1), arguments)
    }

    /// A kernel in so many blocks, side by side and behind each other, of so many threads in both directions.
    pub fn launch_blocks(
        &mut self,
        kernel: &'static str,
        blocks: (usize, usize),
        threads: (usize, usize),
        arguments: &[Argument],
    ) -> Result<()> {
        if blocks.0 == 0 || blocks.1 == 0 {
            return Ok(());
        }
        if blocks.1 > MOST_BLOCKS {
            return Err(wrong(&format!("{} blocks for {kernel}", blocks.1)));
        }
        let function = self.gpu.function(kernel)?;
        let mut values: Vec<u64> = arguments.iter().map(|argument| argument.0).collect();
        let mut pointers: Vec<*mut c_void> =
            values.iter_mut().map(|value| std::ptr::from_mut(value).cast()).collect();
        // SAFETY: as many arguments of 64 bits as the kernel has parameters, which is for who names it to see to; they
        // are read before the call returns.
        let status = unsafe {
            (self.gpu.libraries.driver.launch)(
                function,
                size(blocks.0)? as c_uint,
                blocks.1 as c_uint,
                1,
                threads.0 as c_uint,
                threads.1 as c_uint,
                1,
                0,
                self.stream,
                pointers.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        self.gpu.check(status, kernel)
    }
}
