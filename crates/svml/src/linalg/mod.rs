//! Dense linear algebra: the only folder that names the linear-algebra crate.
//!
//! faer's kernels run sequentially; every parallel loop in this crate is ours, over tiles whose
//! size depends on the problem alone. The order of every sum is therefore fixed, and results have
//! the same bits for any number of threads.

mod cholesky;
mod exp;
mod loops;
mod matrix;
#[cfg(any(feature = "ndarray", test))]
mod ndarray;

pub use matrix::Matrix;

pub use cholesky::Cholesky;
pub(crate) use exp::{
    dot, exp_neg_each, exp_neg_sq_dist, exp_neg_sqrt_each, half_over_distance, times_distance,
};
pub(crate) use loops::{
    LANES, abs_differences, add_columns, add_outer, add_scaled, closer_than, count_below,
    four_abs_dists, four_products, four_sq_dists, least_sum, scale_and_sum, sign_differences,
    sq_dists, sum, symmetric_times,
};

use faer::{Accum, MatMut, MatRef, Par, Side};

use crate::error::{Error, Result};
use crate::parallel;
use crate::watch::{Instant, Watch};

/// Runs a faer kernel and then clears the upper halves of the vector registers.
///
/// faer's AVX-512 kernels return with those halves dirty; on many processors ordinary SSE code
/// (libm among it) then runs tens of times slower on the thread until they are cleared.
fn kernel<T>(run: impl FnOnce() -> T) -> T {
    let value = run();
    clear_upper_registers();
    value
}

#[cfg(target_arch = "x86_64")]
fn clear_upper_registers() {
    #[target_feature(enable = "avx")]
    fn clear() {
        std::arch::x86_64::_mm256_zeroupper();
    }
    if std::is_x86_feature_detected!("avx") {
        // SAFETY: the condition above checks that the processor has AVX.
        #[allow(unsafe_code)]
        unsafe {
            clear()
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn clear_upper_registers() {}

/// A read-only block of a row-major array, or its transpose.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a>(MatRef<'a, f64>);

impl<'a> Block<'a> {
    /// `rows` x `cols` values starting at `data[0]`, rows `stride` apart.
    pub fn new(data: &'a [f64], rows: usize, cols: usize, stride: usize) -> Self {
        Self(MatRef::from_row_major_slice_with_stride(data, rows, cols, stride))
    }

    /// `count` rows of a matrix from `first` on.
    pub fn rows(m: &'a Matrix, first: usize, count: usize) -> Self {
        let width = m.cols();
        Self::new(&m.as_slice()[first * width..(first + count) * width], count, width, width)
    }

    /// The transposed block.
    pub fn t(self) -> Self {
        Self(self.0.transpose())
    }
}

impl<'a> From<&'a Matrix> for Block<'a> {
    fn from(m: &'a Matrix) -> Self {
        Self(MatRef::from_row_major_slice(m.as_slice(), m.rows(), m.cols()))
    }
}

/// `out = alpha a b`, where the row-major `out` has rows `stride` apart.
pub(crate) fn product(out: &mut [f64], stride: usize, alpha: f64, a: Block<'_>, b: Block<'_>) {
    let (rows, cols) = (a.0.nrows(), b.0.ncols());
    if rows == 0 || cols == 0 {
        return;
    }
    // Taken as the transpose of a column-major matrix, because the function for row-major matrices,
    // from_row_major_slice_with_stride_mut of faer 0.24, swaps the strides.
    let out = MatMut::from_column_major_slice_with_stride_mut(out, cols, rows, stride);
    let out = out.transpose_mut();
    kernel(|| faer::linalg::matmul::matmul(out, Accum::Replace, a.0, b.0, alpha, Par::Seq));
}

/// `out += a b`.
pub(crate) fn add_product(out: &mut Matrix, a: Block<'_>, b: Block<'_>) {
    let (rows, cols) = (out.rows(), out.cols());
    let out = MatMut::from_row_major_slice_mut(out.as_mut_slice(), rows, cols);
    kernel(|| faer::linalg::matmul::matmul(out, Accum::Add, a.0, b.0, 1.0, Par::Seq));
}

/// `a b` as a new matrix.
pub(crate) fn multiply(a: Block<'_>, b: Block<'_>) -> Matrix {
    let mut out = Matrix::zeros(a.0.nrows(), b.0.ncols());
    let stride = out.cols();
    product(out.as_mut_slice(), stride, 1.0, a, b);
    out
}

/// `a b`, in pieces where it takes long, between which the clock is looked at.
pub(crate) fn multiply_in_time(a: &Matrix, b: &Matrix, watch: &Watch) -> Result<Matrix> {
    /// Products of numbers in a piece: some tenths of a second.
    const PIECE: usize = 1 << 30;
    let mut out = Matrix::zeros(a.rows(), b.cols());
    let stride = out.cols();
    let rows = (PIECE / (a.cols() * b.cols()).max(1)).max(1);
    for (p, out) in out.as_mut_slice().chunks_mut((rows * stride).max(1)).enumerate() {
        watch.check()?;
        let count = out.len() / stride;
        product(out, stride, 1.0, Block::rows(a, p * rows, count), b.into());
    }
    Ok(out)
}

/// The upper triangle of `a' a`, computed in parallel tiles; the entries below it are arbitrary.
pub(crate) fn cross_product(a: &Matrix) -> Matrix {
    const TILE: usize = 128;
    let (rows, n) = (a.rows(), a.cols());
    let mut out = Matrix::zeros(n, n);
    parallel::for_each(out.as_mut_slice().chunks_mut((TILE * n).max(1)).enumerate(), |(t, out)| {
        let (first, count) = (t * TILE, out.len() / n);
        let from = |width: usize| match rows {
            0 => Block::new(&[], 0, width, n),
            _ => Block::new(&a.as_slice()[first..], rows, width, n),
        };
        product(&mut out[first..], n, 1.0, from(count).t(), from(n - first));
    });
    out
}

/// Eigenvalues (descending) of a symmetric matrix, and the eigenvectors as rows in that order.
/// `None` if the iteration fails, which does not happen for finite entries.
pub(crate) fn symmetric_eigen(a: &Matrix) -> Option<(Vec<f64>, Matrix)> {
    let n = a.rows();
    if n == 0 {
        return Some((Vec::new(), Matrix::empty()));
    }
    let eigen = kernel(|| Block::from(a).0.self_adjoint_eigen(Side::Lower)).ok()?;
    let (values, vectors) = (eigen.S().column_vector(), eigen.U());
    // faer returns the eigenvalues in ascending order.
    let descending: Vec<f64> = (0..n).rev().map(|i| values[i]).collect();
    Some((descending, Matrix::from_fn(n, n, |i, j| vectors[(j, n - 1 - i)])))
}

/// Matrices of more rows than this take so long that a time limit is thought of before.
const LONG: usize = 1000;
/// Rows of the part of a matrix that shows how long all of it will take.
const TRIAL: usize = 256;
/// Large matrices are slower than small ones by this factor, besides the cube of their size: they are not in the cache.
const SLOWER: f64 = 2.0;

/// As [`symmetric_eigen`], for matrices of any size: [`Error::Interrupted`](crate::Error::Interrupted) if it would take
/// longer than the time limit allows, because it cannot be ended in between.
pub(crate) fn symmetric_eigen_in_time(
    a: &Matrix,
    watch: &Watch,
) -> Result<Option<(Vec<f64>, Matrix)>> {
    watch.check()?;
    let n = a.rows();
    if n > LONG && watch.deadline.is_some() {
        let started = Instant::now();
        symmetric_eigen(&Matrix::from_fn(TRIAL, TRIAL, |i, j| a[(i, j)]));
        let times = SLOWER * (n as f64 / TRIAL as f64).powi(3);
        if watch.out_of_time(started.elapsed().mul_f64(times)) {
            return Err(Error::Interrupted);
        }
    }
    Ok(symmetric_eigen(a))
}

/// Solves the small square system `a x = rhs` by LU with partial pivoting.
pub(crate) struct SmallSystem(faer::linalg::solvers::PartialPivLu<f64>);

impl SmallSystem {
    pub fn new(a: &Matrix) -> Self {
        Self(kernel(|| Block::from(a).0.partial_piv_lu()))
    }

    /// Replaces each right-hand side in `rhs`, stored one after the other, by its solution x.
    pub fn solve(&self, rhs: &mut [f64]) {
        use faer::linalg::solvers::{ShapeCore, SolveCore};
        let n = self.0.nrows();
        let columns = rhs.len() / n.max(1);
        let rhs = MatMut::from_column_major_slice_mut(rhs, n, columns);
        kernel(|| self.0.solve_in_place_with_conj(faer::Conj::No, rhs));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clearing_registers_leaves_values_alone() {
        let values = kernel(|| [1.0, 2.0, 3.0, 4.0].map(|v: f64| v.mul_add(2.0, 1.0)));
        clear_upper_registers();
        assert_eq!(values, [3.0, 5.0, 7.0, 9.0]);
    }

    #[test]
    fn product_writes_only_its_block() {
        let a = Matrix::from_fn(3, 2, |i, j| (i + 2 * j) as f64);
        let b = Matrix::from_fn(2, 2, |i, j| (1 + i * j) as f64);
        let mut out = vec![7.0; 3 * 5];
        product(&mut out, 5, -2.0, (&a).into(), (&b).into());
        for i in 0..3 {
            for j in 0..5 {
                let expected = if j < 2 {
                    -2.0 * (0..2).map(|k| a[(i, k)] * b[(k, j)]).sum::<f64>()
                } else {
                    7.0
                };
                assert_eq!(out[i * 5 + j], expected);
            }
        }
    }

    #[test]
    fn eigenvectors_are_rows_in_descending_order() {
        let a = Matrix::from_fn(4, 4, |i, j| 1.0 / (1.0 + i as f64 + j as f64));
        let (values, vectors) = symmetric_eigen(&a).unwrap();
        assert!(values.windows(2).all(|w| w[0] >= w[1]));
        for (value, v) in values.iter().zip(vectors.iter_rows()) {
            for i in 0..4 {
                let av: f64 = (0..4).map(|j| a[(i, j)] * v[j]).sum();
                assert!((av - value * v[i]).abs() < 1e-14);
            }
        }
    }

    /// What would take longer than there is time for is not begun.
    #[test]
    fn eigenvectors_in_time() {
        use crate::run::Run;
        use std::time::Duration;
        let a = Matrix::from_fn(LONG + 1, LONG + 1, |i, j| if i == j { i as f64 } else { 0.1 });
        let limited = Run::new().time_limit(Duration::from_millis(20));
        let found = symmetric_eigen_in_time(&a, limited.watch());
        assert!(matches!(found, Err(Error::Interrupted)));
        let small = Matrix::from_fn(20, 20, |i, j| a[(i, j)]);
        let limited = Run::new().time_limit(Duration::from_secs(3600));
        assert!(symmetric_eigen_in_time(&small, limited.watch()).unwrap().is_some());
    }

    #[test]
    fn small_system_solves_an_indefinite_matrix() {
        let a = Matrix::from_rows(&[[0.0, 2.0, 1.0], [2.0, -1.0, 0.5], [1.0, 0.5, 3.0]]).unwrap();
        let mut x = vec![3.0, -1.0, 2.0];
        SmallSystem::new(&a).solve(&mut x);
        for (i, rhs) in [3.0, -1.0, 2.0].iter().enumerate() {
            let ax: f64 = (0..3).map(|j| a[(i, j)] * x[j]).sum();
            assert!((ax - rhs).abs() < 1e-14);
        }
    }

    #[test]
    fn eigenvalues_of_nothing_and_of_more_than_time_allows() {
        let (values, vectors) = symmetric_eigen(&Matrix::empty()).unwrap();
        assert!(values.is_empty() && vectors.rows() == 0);
        // A thousand rows take longer than a few milliseconds, and nothing could end it in between.
        let large = Matrix::from_fn(LONG + 1, LONG + 1, |i, j| if i == j { 2.0 } else { 1e-3 });
        let soon = Instant::now() + std::time::Duration::from_millis(20);
        let watch = Watch { deadline: Some(soon), ..Watch::default() };
        assert!(matches!(symmetric_eigen_in_time(&large, &watch), Err(crate::Error::Interrupted)));
        let small = Matrix::from_rows(&[[2.0, 1.0], [1.0, 2.0]]).unwrap();
        let (values, _) = symmetric_eigen_in_time(&small, &Watch::default()).unwrap().unwrap();
        assert!((values[0] - 3.0).abs() + (values[1] - 1.0).abs() < 1e-14);
    }
}
