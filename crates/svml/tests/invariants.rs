//! What must not change the result: the order of rows and columns, units, the names of classes, a
//! rotation of the mapped space, the number of threads. How a fit is steered stands in `fit_control.rs`.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use chacha20::ChaCha8Rng;
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use svml::Optimiser;
use svml::Run;
use svml::data::{Missing, Scaler};
use svml::internals::Watch;
use svml::internals::kernel::{self, expand};
use svml::internals::svm::{BinarySvm, Problem, solve};
use svml::internals::svml::descent::descend;
use svml::learners::Sample;
use svml::{
    Dataset, Error, Form, Generator, GridSearch, Kernel, Matrix, Method, Metric, Model, Svml,
};

const FORMS: [Form; 4] = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)];
const BOTH: [Optimiser; 2] = [Optimiser::ConjugateGradients, Optimiser::Lbfgs];

fn generated(rows: usize, noise: usize, seed: u64) -> Dataset {
    let mut generator = Generator::default();
    (generator.rows, generator.informative, generator.noise) = (rows, 2, noise);
    generator.seed = seed;
    generator.generate().unwrap().data
}

fn params(form: Form, iterations: usize) -> Svml {
    let mut params = Svml::paper();
    (params.form, params.max_iterations) = (form.into(), iterations);
    params
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn assert_close(a: &[f64], b: &[f64], tolerance: f64, what: &str) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance, "{what}: {a} and {b} differ by {:e}", a - b);
    }
}

/// The rows and labels of a problem with a fixed split, below the level where the content of rows
/// decides the split: there, other units or another order of columns mean other splits.
struct Fixed {
    x: Matrix,
    y: Vec<f64>,
    /// Rows to decide on.
    new: Matrix,
}

/// Rounding differences grow from step to step of the optimiser, by its choices of step length:
/// symmetries are compared after few steps, where a wrong formula would already show in full.
const FEW: usize = 3;

impl Fixed {
    fn new() -> Self {
        let data = generated(160, 2, 1);
        let y = data.y().iter().map(|&c| 2.0 * c as f64 - 1.0).collect();
        let new = generated(100, 2, 2).x().clone();
        Self { x: data.x().clone(), y, new }
    }

    /// The same with all columns changed.
    fn map(&self, f: impl Fn(&Matrix) -> Matrix) -> Self {
        Self { x: f(&self.x), y: self.y.clone(), new: f(&self.new) }
    }

    /// Decision values on the new rows.
    fn decide(&self, form: Form, optimiser: Optimiser) -> Vec<f64> {
        let kinds = vec![svml::data::Encoded::Number; self.x.cols()];
        let weight = vec![1.0; self.x.rows()];
        let scaler = Scaler::fit(&self.x, &weight, &kinds);
        let x = scaler.apply(&self.x);
        let mut params = params(form, FEW);
        params.optimiser = optimiser;
        let class: Vec<usize> = self.y.iter().map(|y| usize::from(*y > 0.0)).collect();
        let sample = Sample::new(&x, &class, &weight, 2).unwrap();
        let learned = descend(&sample, form, &params, None, &mut Run::new()).unwrap();
        assert!(learned.trace.len() > 1, "nothing was learned");
        outputs(&learned.svms[0], &learned.metric, &x, &scaler.apply(&self.new))
    }
}

/// What an SVM on rows `x` gives at rows `new`.
fn outputs(svm: &BinarySvm, metric: &Metric, x: &Matrix, new: &Matrix) -> Vec<f64> {
    let support = metric.transform(&x.select_rows(&svm.support));
    let beta = Matrix::from_rows(&[&svm.beta]).unwrap();
    let sums = expand(Kernel::Gaussian, &metric.transform(new), &support, &beta).into_vec();
    sums.into_iter().map(|sum| sum + svm.bias).collect()
}

#[test]
fn the_order_of_rows_changes_no_bit() {
    let new = generated(200, 3, 7);
    let mut data = generated(150, 3, 0);
    // Gaps, duplicates of rows, and rows that differ in the label alone.
    let mut x = Matrix::from_fn(190, 5, |i, k| data.x()[(i % 150, k)]);
    (0..190).step_by(17).for_each(|i| x[(i, i % 5)] = f64::NAN);
    let names: Vec<String> = (0..190)
        .map(|i| data.classes()[data.y()[i % 150] ^ usize::from(i >= 170)].clone())
        .collect();
    data = Dataset::new(x, &names).unwrap().with_missing(Missing::Impute).unwrap();
    let mut order: Vec<usize> = (0..data.rows()).collect();
    for round in 0..3 {
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(round));
        let shuffled = data.select(&order);
        for form in FORMS {
            let (a, b) =
                (Model::fit(&data, params(form, 20)), Model::fit(&shuffled, params(form, 20)));
            let (a, b) = (a.unwrap(), b.unwrap());
            assert_eq!(
                bits(&a.decision(new.x()).unwrap().into_vec()),
                bits(&b.decision(new.x()).unwrap().into_vec())
            );
            assert_eq!(bits(a.metric().values()), bits(b.metric().values()));
            assert_eq!(bits(a.beta().as_slice()), bits(b.beta().as_slice()));
            // The same rows are support vectors, wherever they stand now (NaN has no equal).
            let content = |m: &Model, d: &Dataset| -> Vec<Vec<u64>> {
                m.support_rows().iter().map(|&i| bits(d.x().row(i))).collect()
            };
            assert_eq!(content(&a, &data), content(&b, &shuffled));
        }
        let grid = GridSearch::default();
        let (a, b) = (Model::fit(&data, &grid), Model::fit(&shuffled, &grid));
        let (a, b) = (a.unwrap().decision(new.x()), b.unwrap().decision(new.x()));
        assert_eq!(bits(a.unwrap().as_slice()), bits(b.unwrap().as_slice()));
    }
}

/// Of rows that differ in the sign of zero alone one is kept, and which one depends on their order.
#[test]
fn the_sign_of_zero_in_support_vectors_does_not_depend_on_the_order_of_rows() {
    let data = generated(60, 1, 0);
    let zero = |i: usize| if i < 60 { 0.0 } else { -0.0 };
    let x = Matrix::from_fn(120, 3, |i, k| if k == 2 { zero(i) } else { data.x()[(i % 60, k)] });
    let labels: Vec<usize> = (0..120).map(|i| data.y()[i % 60]).collect();
    let data = Dataset::new(x, &labels).unwrap();
    let backwards = data.select(&(0..120).rev().collect::<Vec<_>>());
    for method in [Method::from(params(Form::Diagonal, 3)), Method::neighbours(3)] {
        let [a, b] = [&data, &backwards].map(|data| Model::fit(data, &method).unwrap());
        assert!(a.support_vectors().rows() > 5);
        assert_eq!(bits(a.support_vectors().as_slice()), bits(b.support_vectors().as_slice()));
    }
}

#[test]
fn the_order_of_columns_does_not_matter() {
    let fixed = Fixed::new();
    let order = [2, 0, 3, 1];
    let permuted = fixed.map(|x| Matrix::from_fn(x.rows(), 4, |i, k| x[(i, order[k])]));
    for form in FORMS {
        for optimiser in BOTH {
            let (a, b) = (fixed.decide(form, optimiser), permuted.decide(form, optimiser));
            assert_close(&a, &b, 1e-8, &format!("{form} {optimiser:?}"));
        }
    }
}

#[test]
fn units_and_origins_do_not_matter() {
    let fixed = Fixed::new();
    let affine = |scale: [f64; 4], shift: [f64; 4]| {
        fixed.map(|x| Matrix::from_fn(x.rows(), 4, |i, k| x[(i, k)] * scale[k] + shift[k]))
    };
    for form in FORMS {
        for optimiser in BOTH {
            let plain = fixed.decide(form, optimiser);
            // Powers of two change no digit, and so no bit of the standardised rows.
            let doubled = affine([2.0, 0.5, 1024.0, 1.0], [0.0; 4]).decide(form, optimiser);
            assert_eq!(bits(&plain), bits(&doubled));
            for (scale, shift) in [
                ([1000.0 / 3.0, 1e-6, 7.0, 1e9], [0.0; 4]),
                ([1.0; 4], [100.0, -3.0, 0.1, 1.0]),
                ([3.0, 0.01, 1.0, 1e-3], [-50.0, 1.0, 9.0, 0.01]),
            ] {
                let moved = affine(scale, shift).decide(form, optimiser);
                assert_close(&plain, &moved, 1e-8, &format!("{form} {optimiser:?} {scale:?}"));
            }
            // A reversed column is the same column.
            let mirrored = affine([-1.0, 1.0, 1.0, -1.0], [0.0; 4]).decide(form, optimiser);
            assert_close(&plain, &mirrored, 1e-8, &format!("{form} {optimiser:?} mirrored"));
        }
    }
}

#[test]
fn names_of_classes_do_not_matter() {
    let (data, new) = (generated(120, 2, 0), generated(50, 2, 3));
    let renamed = data.group_classes(|c| if c == "inside" { "17" } else { "2000" }.to_owned());
    assert_eq!(renamed.classes(), ["17", "2000"]);
    for form in FORMS {
        let decide = |data: &Dataset| {
            bits(&Model::fit(data, params(form, 30)).unwrap().decision(new.x()).unwrap().into_vec())
        };
        assert_eq!(decide(&data), decide(&renamed), "{form}");
    }
}

/// The class is part of the hash that splits the rows, so this too is compared for a fixed split.
#[test]
fn swapped_classes_negate_the_decision() {
    let fixed = Fixed::new();
    let mut swapped = fixed.map(Matrix::clone);
    swapped.y.iter_mut().for_each(|y| *y = -*y);
    for form in FORMS {
        for optimiser in BOTH {
            let negated: Vec<f64> = swapped.decide(form, optimiser).iter().map(|h| -h).collect();
            assert_close(&fixed.decide(form, optimiser), &negated, 1e-8, &form.to_string());
        }
    }
}

/// M = L'L = (QL)'(QL): kernel, machine and decisions see the metric through M alone.
#[test]
fn a_rotation_of_the_mapped_space_does_not_matter() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for rank in [2, 3, 5] {
        let fixed = Fixed::new()
            .map(|x| Matrix::from_fn(x.rows(), 5, |i, k| x[(i, k % 4)] * (k + 1) as f64));
        let l = Matrix::from_fn(rank, 5, |_, _| rng.random_range(-0.4..0.4));
        // Plane rotations by arbitrary angles.
        let mut turned = l.clone();
        for i in 0..rank {
            for j in 0..i {
                let (sin, cos) = rng.random_range(0.0..6.3f64).sin_cos();
                for k in 0..5 {
                    let (a, b) = (turned[(i, k)], turned[(j, k)]);
                    (turned[(i, k)], turned[(j, k)]) = (cos * a - sin * b, sin * a + cos * b);
                }
            }
        }
        let decide = |l: Matrix| {
            let form = if rank == 5 { Form::Full } else { Form::Rank(rank) };
            let metric = Metric::new(form, 5, l.into_vec()).unwrap();
            let n = fixed.x.rows();
            let kernel = Kernel::Gaussian;
            let gram =
                kernel::backend().gram(&fixed.x, n, &metric, kernel, &Watch::default()).unwrap();
            let (rows, cost): (Vec<usize>, Vec<f64>) = ((0..n).collect(), vec![3.0; n]);
            let problem = Problem { gram: &*gram, rows: &rows, y: &fixed.y, cost: &cost };
            let svm = solve(&problem, None).unwrap().trained.svm;
            outputs(&svm, &metric, &fixed.x, &fixed.new)
        };
        assert_close(&decide(l), &decide(turned), 1e-10, &format!("rank {rank}"));
    }
}

#[test]
fn rows_are_decided_one_by_one() {
    let (data, new) = (generated(200, 3, 0), generated(150, 3, 5));
    for form in FORMS {
        let model = Model::fit(&data, params(form, 5)).unwrap();
        let batch = model.decision(new.x()).unwrap().into_vec();
        let one = |i: usize| model.decision(&new.x().select_rows(&[i])).unwrap().into_vec()[0];
        let single: Vec<f64> = (0..new.rows()).map(one).collect();
        assert_close(&batch, &single, 1e-12, &form.to_string());
        let back: Vec<usize> = (0..new.rows()).rev().collect();
        let mut reversed = model.decision(&new.x().select_rows(&back)).unwrap().into_vec();
        reversed.reverse();
        assert_close(&batch, &reversed, 1e-12, &form.to_string());
    }
}

/// 60 rows are one task, 700 several, and 1800 take the tiled factorisation.
#[test]
fn threads_change_no_bit() {
    for (rows, iterations, forms) in
        [(60, 30, &FORMS[..]), (700, 4, &FORMS[2..]), (1800, 1, &FORMS[2..3])]
    {
        let data = generated(rows, 3, 0);
        for &form in forms {
            let bytes = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| {
                    let model = Model::fit(&data, params(form, iterations)).unwrap();
                    (bits(&model.decision(data.x()).unwrap().into_vec()), model.to_bytes().unwrap())
                })
            };
            let one = bytes(1);
            for threads in [2, 3, 8] {
                assert!(one == bytes(threads), "{rows} rows, {form}, {threads} threads");
            }
        }
    }
    let (data, mut grid) = (generated(300, 3, 0), GridSearch::default());
    grid.widths.truncate(2);
    let bytes = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Model::fit(&data, &grid).unwrap().to_bytes().unwrap())
    };
    let one = bytes(1);
    assert!([2, 3, 8].iter().all(|&threads| one == bytes(threads)));
}

#[test]
fn the_seed_decides_the_split_and_nothing_else_is_random() {
    let data = generated(120, 2, 0);
    let fit = |seed: u64| {
        let mut params = params(Form::Diagonal, 10);
        (params.seed, params.refit) = (seed, false);
        Model::fit(&data, &params).unwrap()
    };
    assert_eq!(fit(0).to_bytes().unwrap(), fit(0).to_bytes().unwrap());
    // Without the refit the support vectors are rows of the training half.
    let rows = |seed: u64| {
        let mut rows = fit(seed).support_rows().to_vec();
        rows.sort_unstable();
        rows
    };
    assert_ne!(rows(0), rows(1));
    let euclidean = |seed: u64| {
        let grid = GridSearch { seed, ..GridSearch::default() };
        Model::fit(&data, &grid).unwrap().to_bytes().unwrap()
    };
    assert_eq!(euclidean(3), euclidean(3));
}

/// Values that real tables have and that hurt: ties, zeros of both signs, steps of every size.
fn value() -> impl Strategy<Value = f64> {
    let special =
        vec![0.0, -0.0, 1.0, -1.0, 2.0, 1e-310, 1e8, -1e8, 1e300, -1e300, 1.0 + f64::EPSILON];
    prop_oneof![4 => (-3i32..4).prop_map(f64::from), 4 => -1.0..1.0f64, 1 => prop::sample::select(special)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_small_data_set_makes_a_fit_fail(
        (d, cells) in (1..5usize).prop_flat_map(|d| (Just(d), prop::collection::vec(value(), d..d * 30))),
        classes in prop::collection::vec(any::<bool>(), 30),
        form in prop::sample::select(vec![Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(1)]),
        (lambda, steepness, cost) in (-12..6i32, -3..5i32, -3..5i32),
        (optimiser, refit) in (prop::sample::select(BOTH.to_vec()), any::<bool>()),
        seed in any::<u64>(),
    ) {
        let n = cells.len() / d;
        let x = Matrix::new(n, d, cells[..n * d].to_vec()).unwrap();
        let data = Dataset::new(x, &classes[..n]).unwrap();
        let mut params = params(form, 30);
        (params.lambda, params.steepness) = (10f64.powi(lambda), 10f64.powi(steepness));
        (params.initial_cost, params.optimiser) = (10f64.powi(cost), optimiser);
        (params.refit, params.seed) = (refit, seed);
        (params.tolerance, params.patience) = (0.0, 30);
        let grid = GridSearch { folds: 2, ..GridSearch::default() };
        let new = Matrix::from_fn(9, d, |i, k| [0.0, 1.0, -1e3, 1e300, -1e-310][(i + i / 5 * k) % 5]);
        for model in [Model::fit(&data, &params), Model::fit(&data, &grid)] {
            match model {
                Ok(model) => {
                    for x in [data.x(), &new] {
                        let h = model.decision(x).unwrap().into_vec();
                        prop_assert!(h.iter().all(|h| h.is_finite()), "{:?}", h);
                    }
                    prop_assert!(model.report().residual < 1e-4, "{}", model.report().residual);
                    let losses: Vec<f64> = model.report().trace.iter().map(|s| s.loss).collect();
                    prop_assert!(losses.windows(2).all(|w| w[1] < w[0]), "{:?}", losses);
                    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                    prop_assert_eq!(bits(&model.decision(&new).unwrap().into_vec()), bits(&loaded.decision(&new).unwrap().into_vec()));
                }
                Err(Error::OneClass { .. }) => prop_assert!(classes[..n].windows(2).all(|w| w[0] == w[1])),
                Err(Error::TooFewRows { .. }) => prop_assert_eq!(data.class_counts(), vec![1, 1]),
                Err(Error::Parameter { name, .. }) if name == "folds" => prop_assert!(n < 2),
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }
    }
}
