//! The unit in which docs/benchmarks.md counts: one Cholesky factorisation of a kernel matrix with ridge.

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId};
use svml::Matrix;
use svml::internals::Watch;
use svml::internals::linalg::Cholesky;

/// Times the factorisation of the kernel matrix of mapped rows `z`, copied anew for each run.
pub fn cholesky(group: &mut BenchmarkGroup<'_, WallTime>, of: &str, z: &Matrix, ridge: f64) {
    let n = z.rows();
    let a = Matrix::from_fn(n, n, |i, j| {
        let sq: f64 = z.row(i).iter().zip(z.row(j)).map(|(a, b)| (a - b).powi(2)).sum();
        (-sq).exp() + if i == j { ridge } else { 0.0 }
    });
    group.bench_function(BenchmarkId::new(format!("cholesky{of}"), format!("S={n}")), |b| {
        b.iter_batched_ref(
            || Some(a.as_slice().to_vec()),
            |a| Cholesky::new(a.take().unwrap(), n, ridge, &Watch::default()).unwrap(),
            BatchSize::PerIteration,
        );
    });
}
