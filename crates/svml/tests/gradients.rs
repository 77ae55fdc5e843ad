//! Every gradient against central differences, over many random problems.
#![allow(clippy::unwrap_used, missing_docs)]

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use svml::Criterion;
use svml::Surrogate;
use svml::internals::Watch;
use svml::internals::folds::stratified;
use svml::internals::kernel::{self, Outer};
use svml::internals::loss::Loss;
use svml::internals::svml::criterion::{
    PairFold, fold_pairs, leave_one_out, split_pairs, validate_pairs,
};
use svml::internals::{LabelledRows, PairRows, pairs};
use svml::{Form, Matrix, Metric};

const PROBLEMS: u64 = 500;

struct Random {
    x: Matrix,
    /// Rows that may be support rows.
    trained: usize,
    problems: Problems,
    metric: Metric,
    log_cost: f64,
    loss: Loss,
}

enum Problems {
    Pairs(Vec<PairFold>),
    LeaveOneOut(Vec<PairRows>),
}

/// A random problem, half of them with weights; the form goes round with the seed.
fn random(seed: u64, classes: usize, criterion: Criterion, surrogate: Surrogate) -> Random {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let t = rng.random_range(3 * classes..15 * classes);
    let v = rng.random_range(1..10 * classes);
    let d = rng.random_range(1..6usize);
    let form = match seed % 4 {
        0 => Form::Sphere,
        1 => Form::Diagonal,
        2 => Form::Full,
        _ => Form::Rank(rng.random_range(1..=d)),
    };
    let x = Matrix::from_fn(t + v, d, |_, _| rng.random_range(-1.5..1.5));
    // Every class has a training row.
    let class: Vec<usize> =
        (0..t + v).map(|i| if i < classes { i } else { rng.random_range(0..classes) }).collect();
    let weighted = seed % 8 < 4;
    let weight: Vec<f64> =
        (0..t + v).map(|_| if weighted { rng.random_range(0.2..3.0) } else { 1.0 }).collect();
    let part = |rows: std::ops::Range<usize>| LabelledRows {
        index: rows.clone().collect(),
        class: class[rows.clone()].to_vec(),
        weight: weight[rows].to_vec(),
    };
    let all = part(0..t + v);
    let (trained, problems) = match criterion {
        Criterion::HoldOut => {
            (t, Problems::Pairs(split_pairs(&part(0..t), &part(t..t + v), classes)))
        }
        Criterion::KFold(k) => {
            (t + v, Problems::Pairs(fold_pairs(&all, classes, &stratified(&all.class, k))))
        }
        _ => {
            let rows = pairs(classes).into_iter().map(|pair| all.of_pair(pair)).collect();
            (t + v, Problems::LeaveOneOut(rows))
        }
    };
    let values = (0..form.len(d)).map(|_| rng.random_range(-0.9..0.9) + 0.1).collect();
    Random {
        trained,
        problems,
        metric: Metric::new(form, d, values).unwrap(),
        log_cost: rng.random_range(-2.0..3.0),
        loss: Loss { surrogate, steepness: rng.random_range(0.5..6.0) },
        x,
    }
}

impl Random {
    /// Loss, gradient (metric, then log C) and support sets at other values and log C.
    fn at(&self, point: &[f64]) -> (f64, Vec<f64>, Vec<Vec<usize>>) {
        let (log_cost, values) = point.split_last().unwrap();
        let (form, d) = (self.metric.form(), self.metric.features());
        let metric = Metric::new(form, d, values.to_vec()).unwrap();
        let gram =
            kernel::backend().gram(&self.x, self.trained, &metric, &Watch::default()).unwrap();
        let cost = log_cost.exp();
        let e = match &self.problems {
            Problems::Pairs(pairs) => validate_pairs(&*gram, pairs, cost, self.loss, &[]),
            Problems::LeaveOneOut(rows) => leave_one_out(&*gram, rows, cost, self.loss, &[]),
        };
        let e = e.unwrap();
        let mut gradient = e.d_metric;
        gradient.push(e.d_log_cost);
        (e.loss, gradient, e.svms.into_iter().map(|svm| svm.support).collect())
    }
}

/// |a - b| / |b| in the Euclidean norm.
fn relative_error(a: &[f64], b: &[f64]) -> f64 {
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied())
}

const CRITERIA: [Criterion; 3] = [Criterion::HoldOut, Criterion::KFold(3), Criterion::LeaveOneOut];
const SURROGATES: [Surrogate; 3] =
    [Surrogate::Sigmoid, Surrogate::Logistic, Surrogate::SquaredHinge];

#[test]
fn the_papers_criterion_in_every_form_and_in_c() {
    compare(PROBLEMS, 2, Criterion::HoldOut, Surrogate::Sigmoid);
}

#[test]
fn every_criterion_with_every_surrogate_and_number_of_classes() {
    for criterion in CRITERIA {
        for surrogate in SURROGATES {
            compare(PROBLEMS / 5, 2, criterion, surrogate);
            compare(PROBLEMS / 10, 3, criterion, surrogate);
        }
        compare(PROBLEMS / 20, 5, criterion, Surrogate::Sigmoid);
    }
}

fn compare(problems: u64, classes: usize, criterion: Criterion, surrogate: Surrogate) {
    const H: f64 = 1e-5;
    let mut compared = 0;
    for seed in 0..problems {
        let problem = random(seed, classes, criterion, surrogate);
        let mut point = problem.metric.values().to_vec();
        point.push(problem.log_cost);
        let (_, gradient, support) = problem.at(&point);
        let (mut analytic, mut numeric) = (Vec::new(), Vec::new());
        for k in 0..point.len() {
            let moved = |by: f64| {
                let mut point = point.clone();
                point[k] += by;
                problem.at(&point)
            };
            let (up, down) = (moved(H), moved(-H));
            // Where the support set changes the loss has a kink and no derivative.
            if up.2 == support && down.2 == support {
                analytic.push(gradient[k]);
                numeric.push((up.0 - down.0) / (2.0 * H));
            }
        }
        // A saturated surrogate has a gradient below the rounding of the differences.
        let size = numeric.iter().map(|v| v * v).sum::<f64>().sqrt();
        if analytic.len() < point.len() || size < 1e-4 {
            continue;
        }
        compared += 1;
        let error = relative_error(&analytic, &numeric);
        let name = format!("{criterion}, {surrogate}, {classes} classes, problem {seed}");
        assert!(error <= 1e-6, "{name} ({}): {error:e}", problem.metric.form());
    }
    assert!(compared >= problems * 7 / 10, "{criterion}: {compared} of {problems} compared");
}

/// The contraction alone, for weights that are not those of any machine, on rows that overlap, are
/// scattered, and are more than one tile: d sum(W o K) / dL.
#[test]
fn contraction_of_arbitrary_weights() {
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (n, d) = (rng.random_range(60..200usize), rng.random_range(1..8usize));
        let cols = n / 2;
        let x = Matrix::from_fn(n, d, |_, _| rng.random_range(-1.0..1.0));
        let form =
            [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(1 + d / 2)][seed as usize % 4];
        let values: Vec<f64> = (0..form.len(d)).map(|_| rng.random_range(-0.7..0.7)).collect();
        let mut some = |n: usize, share: f64| -> Vec<usize> {
            (0..n).filter(|_| rng.random_bool(share)).collect()
        };
        let blocks = [(some(n, 0.9), some(cols, 0.8)), (some(cols, 0.1), some(cols, 0.1))];
        let weights: Vec<(Vec<f64>, Vec<f64>)> = blocks
            .iter()
            .map(|(r, c)| {
                let mut v = |n: usize| (0..n).map(|_| rng.random_range(-1.0..1.0)).collect();
                (v(r.len()), v(c.len()))
            })
            .collect();
        let outers: Vec<Outer<'_>> = blocks
            .iter()
            .zip(&weights)
            .map(|((rows, cols), (left, right))| Outer { rows, left, cols, right })
            .collect();
        let gram = |values: &[f64]| {
            let metric = Metric::new(form, d, values.to_vec()).unwrap();
            kernel::backend().gram(&x, cols, &metric, &Watch::default()).unwrap()
        };
        let value = |values: &[f64]| -> f64 {
            let gram = gram(values);
            let term = |o: &Outer<'_>| -> f64 {
                let k_right = gram.multiply(o.rows, o.cols, o.right);
                k_right.iter().zip(o.left).map(|(k, l)| k * l).sum()
            };
            outers.iter().map(term).sum()
        };
        let analytic = gram(&values).contract(&outers);
        let numeric: Vec<f64> = (0..values.len())
            .map(|k| {
                let moved = |by: f64| {
                    let mut values = values.clone();
                    values[k] += by;
                    value(&values)
                };
                (moved(1e-5) - moved(-1e-5)) / 2e-5
            })
            .collect();
        let error = relative_error(&analytic, &numeric);
        assert!(error <= 1e-6, "seed {seed} ({form}): {error:e}");
    }
}
