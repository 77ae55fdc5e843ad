//! Whole fits with the default parameters and with those of the paper, each beside one Cholesky factorisation of
//! the |S| of its final SVM, and with each optimiser.
//!
//! The largest takes minutes: `cargo bench --bench fit -- 15000` for it alone.
#![allow(missing_docs, clippy::unwrap_used)]

mod unit;

use criterion::{BenchmarkId, Criterion, SamplingMode, criterion_group, criterion_main};
use svml::{Dataset, Generator, GridSearch, Method, Model, Optimiser, Svml};

fn data(rows: usize, features: usize) -> Dataset {
    Generator { rows, noise: features - 2, ..Default::default() }.generate().unwrap().data
}

fn fit(c: &mut Criterion) {
    let mut group = c.benchmark_group("fit");
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    let protocols = [("default", Method::default()), ("paper", Svml::paper().into())];
    for (n, d) in [(650, 15), (2000, 10), (15_000, 10)] {
        let data = data(n, d);
        for (name, method) in &protocols {
            group.bench_function(BenchmarkId::new(*name, format!("n={n},d={d}")), |b| {
                b.iter(|| Model::fit(&data, method).unwrap());
            });
            let model = Model::fit(&data, method).unwrap();
            let z = model.transform(model.support_vectors()).unwrap();
            let ridge = 1.0 / model.cost().unwrap();
            unit::cholesky(&mut group, &format!(",{name},n={n},d={d}"), &z, ridge);
        }
    }
    let data = data(650, 15);
    for (name, optimiser) in
        [("lbfgs", Optimiser::Lbfgs), ("conjugate_gradients", Optimiser::ConjugateGradients)]
    {
        group.bench_function(BenchmarkId::new(name, "n=650,d=15"), |b| {
            let method: Method = Svml { optimiser, ..Svml::paper() }.into();
            b.iter(|| Model::fit(&data, &method).unwrap());
        });
    }
    for classes in [2, 26] {
        let data =
            Generator { rows: 2000, classes, informative: 3, noise: 7, ..Default::default() };
        let data = data.generate().unwrap().data;
        group.bench_function(
            BenchmarkId::new("classes", format!("n=2000,d=10,k={classes}")),
            |b| {
                b.iter(|| Model::fit(&data, Svml::default()).unwrap());
            },
        );
    }
    group.bench_function(BenchmarkId::new("euclidean_5_fold_grid", "n=650,d=15"), |b| {
        b.iter(|| Model::fit(&data, GridSearch::default()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, fit);
criterion_main!(benches);
