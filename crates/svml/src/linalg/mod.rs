//! Dense linear algebra: products, factors, eigenvectors, and loops over rows.
//!
//! Every parallel loop goes over tiles whose size depends on the problem alone. The order of every sum is therefore fixed,
//! and results have the same bits for any number of threads.

mod cholesky;
mod eigen;
mod exp;
mod instructions;
mod loops;
mod matrix;
#[cfg(any(feature = "ndarray", test))]
mod ndarray;
mod product;
mod small_system;

pub use matrix::Matrix;

pub use cholesky::Cholesky;
pub(crate) use eigen::symmetric_eigen;
pub(crate) use exp::{
    dot, exp_neg_each, exp_neg_sq_dist, exp_neg_sqrt_each, half_over_distance, times_distance,
};
pub(crate) use loops::{
    LANES, abs_differences, add_columns, add_outer, add_scaled, closer_than, count_below,
    four_abs_dists, four_products, four_sq_dists, least_sum, scale_and_sum, sign_differences,
    sq_dists, sum, symmetric_times,
};
pub(crate) use product::{Block, Panels, add_product, multiply, product, product_with};
pub(crate) use small_system::SmallSystem;

use crate::error::{Error, Result};
use crate::parallel;
use crate::watch::{Instant, Watch};

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

#[cfg(test)]
mod tests {
    use super::*;

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
