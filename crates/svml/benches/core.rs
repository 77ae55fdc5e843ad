//! The parts of one evaluation of SVML's objective, beside one Cholesky factorisation of the same
//! |S| in the same run: the unit in which docs/benchmarks.md counts.
#![allow(missing_docs, clippy::unwrap_used)]

mod unit;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use svml::internals::kernel::{Gram, backend};
use svml::internals::loss::Loss;
use svml::internals::svm::{BinarySvm, Problem, solve};
use svml::internals::svml::criterion::{PairFold, validate_pairs};
use svml::internals::{PairRows, Watch};
use svml::{Form, Generator, Kernel, Matrix, Metric, Surrogate};

/// Training rows, validation rows, features, C.
const SIZES: [(usize, usize, usize, f64); 3] =
    [(330, 160, 15, 1.0), (2000, 1000, 10, 1.0), (5000, 2500, 10, 1.0)];

struct Setup {
    x: Matrix,
    pair: PairFold,
    before: Metric,
    after: Metric,
    /// SVM at `before`, from whose support set a warm start sets out.
    warm: BinarySvm,
    /// Size of the support set at `after`.
    support: usize,
}

/// The kernel matrix between all rows and the first n.
fn gram_of<'a>(x: &'a Matrix, n: usize, metric: &Metric) -> Box<dyn Gram + 'a> {
    backend().gram(x, n, metric, Kernel::Gaussian, &Watch::default()).unwrap()
}

fn setup(n: usize, m: usize, d: usize, cost: f64) -> Setup {
    let data =
        Generator { rows: n + m, noise: d - 2, ..Default::default() }.generate().unwrap().data;
    let y: Vec<f64> = data.y().iter().map(|&c| if c == 1 { 1.0 } else { -1.0 }).collect();
    let x = data.x().clone();
    let rows = |range: std::ops::Range<usize>| PairRows {
        index: range.clone().collect(),
        y: y[range.clone()].to_vec(),
        weight: vec![1.0; range.len()],
    };
    let pair = PairFold { train: rows(0..n), valid: rows(n..n + m) };
    let before = Metric::isotropic(Form::Full, d, (d as f64).sqrt().recip()).unwrap();
    // A step as the optimiser takes them: every entry moves, by about 0.3 in its variables.
    let step = 0.3 / d as f64 / (d as f64).sqrt();
    let moved = before.values().iter().enumerate();
    let moved = moved.map(|(k, v)| v + if k % 3 == 0 { step } else { -step / 2.0 }).collect();
    let after = Metric::new(Form::Full, d, moved).unwrap();
    let trained = |metric: &Metric, start: Option<&[usize]>| {
        let gram = gram_of(&x, n, metric);
        let costs = vec![cost; n];
        let problem =
            Problem { gram: &*gram, rows: &pair.train.index, y: &pair.train.y, cost: &costs };
        solve(&problem, start).unwrap().trained.svm
    };
    let warm = trained(&before, None);
    let support = trained(&after, Some(&warm.support)).support.len();
    Setup { x, pair, before, after, warm, support }
}

fn evaluation(c: &mut Criterion) {
    for (n, m, d, cost) in SIZES {
        let Setup { x, pair, before, after, warm, support } = setup(n, m, d, cost);
        let mut group = c.benchmark_group(format!("n={n},m={m},d={d}"));
        group.sample_size(20);
        let gram = gram_of(&x, n, &after);
        let costs = vec![cost; n];
        let problem =
            Problem { gram: &*gram, rows: &pair.train.index, y: &pair.train.y, cost: &costs };

        let z = after.transform(&x.select_rows(&(0..support).collect::<Vec<_>>()));
        unit::cholesky(&mut group, "", &z, 1.0 / cost);
        group.bench_function("gram", |b| {
            let mut gram = gram_of(&x, n, &before);
            b.iter(|| {
                gram.set_metric(black_box(&after)).unwrap();
                gram.prefetch(&pair.train.index);
            });
        });
        group.bench_function("svm_cold", |b| {
            b.iter(|| solve(black_box(&problem), None).unwrap().trained.steps)
        });
        group.bench_function("svm_warm", |b| {
            b.iter(|| solve(black_box(&problem), Some(&warm.support)).unwrap().trained.steps);
        });
        group.bench_function("objective_and_gradient_warm", |b| {
            let mut gram = gram_of(&x, n, &before);
            let surrogate = Loss { surrogate: Surrogate::Sigmoid, steepness: 5.0 };
            let (pairs, starts) = ([pair.clone()], [warm.clone()]);
            b.iter(|| {
                gram.set_metric(black_box(&after)).unwrap();
                validate_pairs(&*gram, &pairs, cost, surrogate, &starts).unwrap().loss
            });
        });
        group.finish();
    }
}

criterion_group!(benches, evaluation);
criterion_main!(benches);
