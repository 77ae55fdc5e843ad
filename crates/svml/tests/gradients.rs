//! Every gradient against central differences, over many random problems: all kernels, forms, criteria and surrogates.
#![allow(clippy::unwrap_used, missing_docs)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::Criterion;
use svml::Surrogate;
use svml::internals::Watch;
use svml::internals::folds::{Dealt, k_folds};
use svml::internals::kernel::{self, Outer, expand};
use svml::internals::loss::Loss;
use svml::internals::svml::criterion::{
    PairFold, fold_pairs, leave_one_out, split_pairs, validate_pairs,
};
use svml::internals::{LabelledRows, PairRows, pairs};
use svml::learners::Sample;
use svml::{Form, Kernel, Matrix, Metric};

/// Problems of each kernel and criterion, and besides them of the paper's own.
const PROBLEMS: u64 = 500;

struct Random {
    x: Matrix,
    /// Rows that may be support rows.
    trained: usize,
    problems: Problems,
    kernel: Kernel,
    metric: Metric,
    log_cost: f64,
    loss: Loss,
}

enum Problems {
    Pairs(Vec<PairFold>),
    /// With the share of the weight of each row that one of its observations has.
    LeaveOneOut(Vec<PairRows>, Vec<f64>),
}

/// The forms that a kernel allows, going round with the seed.
fn form(kernel: Kernel, seed: u64, d: usize, rank: usize) -> Form {
    let all = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(rank.min(d))];
    let allowed: Vec<Form> = all.into_iter().filter(|form| kernel.allows(*form)).collect();
    allowed[seed as usize % allowed.len()]
}

/// Rows of which some coincide with others, where the rough kernels have a kink, or all but coincide.
fn rows_with_copies(n: usize, d: usize, copies: bool, rng: &mut ChaCha8Rng) -> Matrix {
    let mut x = Matrix::from_fn(n, d, |_, _| rng.random_range(-1.5..1.5));
    if copies {
        for i in (1..n).filter(|_| rng.random_bool(0.3)).collect::<Vec<_>>() {
            let other = rng.random_range(0..i);
            let off = [0.0, 1e-15, 1e-13, 1e-10][rng.random_range(0..4)];
            let row: Vec<f64> = x.row(other).iter().map(|v| v * (1.0 + off)).collect();
            x.row_mut(i).copy_from_slice(&row);
        }
    }
    x
}

/// A random problem, half of them with weights, a third with rows that coincide; the form goes round with the seed.
fn random(
    seed: u64,
    classes: usize,
    kernel: Kernel,
    criterion: Criterion,
    surrogate: Surrogate,
) -> Random {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let t = rng.random_range(3 * classes..15 * classes);
    let v = rng.random_range(1..10 * classes);
    let d = rng.random_range(1..6usize);
    let form = form(kernel, seed, d, rng.random_range(1..=d));
    let x = rows_with_copies(t + v, d, seed.is_multiple_of(3), &mut rng);
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
    let (trained, problems) = match criterion {
        Criterion::HoldOut => {
            (t, Problems::Pairs(split_pairs(&part(0..t), &part(t..t + v), classes)))
        }
        Criterion::KFold(k) => {
            let sample = Sample::new(&x, &class, &weight, classes).unwrap();
            let folds = k_folds(Dealt { class: &class, copies: None, groups: None }, k);
            (t + v, Problems::Pairs(fold_pairs(&sample, &folds)))
        }
        _ => {
            let all = part(0..t + v);
            let rows = pairs(classes).into_iter().map(|pair| all.of_pair(pair)).collect();
            let share = (0..t + v).map(|i| [1.0, 1.0, 0.5, 0.2][(i + seed as usize) % 4]).collect();
            (t + v, Problems::LeaveOneOut(rows, share))
        }
    };
    let values = (0..form.len(d)).map(|_| rng.random_range(-0.9..0.9) + 0.1).collect();
    Random {
        trained,
        problems,
        kernel,
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
        let gram = kernel::backend()
            .gram(&self.x, self.trained, &metric, self.kernel, &Watch::default())
            .unwrap();
        let cost = log_cost.exp();
        let e = match &self.problems {
            Problems::Pairs(pairs) => validate_pairs(&*gram, pairs, cost, self.loss, &[]),
            Problems::LeaveOneOut(rows, share) => {
                leave_one_out(&*gram, (rows, share), cost, self.loss, &[])
            }
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
const KERNELS: [Kernel; 3] = [Kernel::Gaussian, Kernel::Exponential, Kernel::Laplacian];

#[test]
fn the_papers_criterion_in_every_form_and_in_c() {
    compare(PROBLEMS, 2, Kernel::Gaussian, Criterion::HoldOut, Surrogate::Sigmoid);
}

fn every_criterion_with_every_surrogate_and_number_of_classes(kernel: Kernel) {
    for criterion in CRITERIA {
        for surrogate in SURROGATES {
            compare(PROBLEMS / 5, 2, kernel, criterion, surrogate);
            compare(PROBLEMS / 10, 3, kernel, criterion, surrogate);
        }
        compare(PROBLEMS / 10, 5, kernel, criterion, Surrogate::Sigmoid);
    }
}

#[test]
fn all_criteria_of_the_gaussian_kernel() {
    every_criterion_with_every_surrogate_and_number_of_classes(Kernel::Gaussian);
}

#[test]
fn all_criteria_of_the_exponential_kernel() {
    every_criterion_with_every_surrogate_and_number_of_classes(Kernel::Exponential);
}

#[test]
fn all_criteria_of_the_laplacian_kernel() {
    every_criterion_with_every_surrogate_and_number_of_classes(Kernel::Laplacian);
}

/// As many problems that can be compared as are asked for; others are drawn in place of those that cannot.
fn compare(
    problems: u64,
    classes: usize,
    kernel: Kernel,
    criterion: Criterion,
    surrogate: Surrogate,
) {
    const H: f64 = 1e-5;
    let mut compared = 0;
    for seed in 0.. {
        if compared == problems {
            break;
        }
        assert!(seed < 2 * problems, "{kernel}, {criterion}: {compared} of {seed} can be compared");
        let problem = random(seed, classes, kernel, criterion, surrogate);
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
        let form = problem.metric.form();
        let name = format!("{kernel} {form}, {criterion}, {surrogate}, {classes} classes");
        assert!(error <= 1e-6, "{name}, problem {seed}: {error:e}");
    }
}

/// The contraction alone, for weights that are not those of any SVM, on rows that overlap, coincide, are
/// scattered, and are more than one tile: d sum(W o K) / dL.
#[test]
fn contraction_of_arbitrary_weights() {
    for (seed, kernel) in (0..40).flat_map(|seed| KERNELS.map(|kernel| (seed, kernel))) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (n, d) = (rng.random_range(60..200usize), rng.random_range(1..8usize));
        let cols = n / 2;
        let x = rows_with_copies(n, d, seed.is_multiple_of(3), &mut rng);
        let form = form(kernel, seed, d, 1 + d / 2);
        let values: Vec<f64> = (0..form.len(d)).map(|_| rng.random_range(-0.7..0.7)).collect();
        let mut some = |n: usize, share: f64| -> Vec<usize> {
            (0..n).filter(|_| rng.random_bool(share)).collect()
        };
        let blocks = [
            (some(n, 0.9), some(cols, 0.8)),
            (some(cols, 0.1), some(cols, 0.1)),
            (vec![], some(cols, 0.1)),
        ];
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
            kernel::backend().gram(&x, cols, &metric, kernel, &Watch::default()).unwrap()
        };
        let value = |values: &[f64]| -> f64 {
            let gram = gram(values);
            let term = |o: &Outer<'_>| -> f64 {
                let k_right = gram.multiply(o.rows, o.cols, o.right);
                k_right.iter().zip(o.left).map(|(k, l)| k * l).sum()
            };
            outers.iter().map(term).sum()
        };
        let analytic = gram(&values).contract(&outers).unwrap();
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
        assert!(error <= 1e-6, "seed {seed} ({kernel} {form}): {error:e}");
    }
}

/// Rows that all coincide: no metric changes any distance.
#[test]
fn nothing_depends_on_the_metric_where_all_rows_coincide() {
    let x = Matrix::from_fn(90, 3, |_, k| [0.3, -0.7, 1.1][k]);
    let rows: Vec<usize> = (0..90).collect();
    let weights: Vec<f64> = rows.iter().map(|&i| (i as f64 * 0.7).sin()).collect();
    for (kernel, seed) in KERNELS.into_iter().flat_map(|kernel| (0..4).map(move |s| (kernel, s))) {
        let form = form(kernel, seed, 3, 2);
        let values = (0..form.len(3)).map(|k| 0.4 + 0.1 * k as f64).collect();
        let metric = Metric::new(form, 3, values).unwrap();
        let gram = kernel::backend().gram(&x, 90, &metric, kernel, &Watch::default()).unwrap();
        let outer = Outer { rows: &rows, left: &weights, cols: &rows, right: &weights };
        let gradient = gram.contract(&[outer]).unwrap();
        assert_eq!(gradient.len(), form.len(3));
        assert!(gradient.iter().all(|g| g.abs() < 1e-12), "{kernel} {form}: {gradient:?}");
        let slopes = gram.weighted_differences(&rows, &rows, &weights);
        assert!(slopes.as_slice().iter().all(|g| g.abs() < 1e-12), "{kernel} {form}");
    }
}

/// The gradient of an SVM's output in the row: -2 M times the weighted differences, or for the Laplacian kernel minus
/// the diagonal of L times them. At a support vector, where a rough kernel has a kink, that vector counts nothing, as
/// in a central difference.
#[test]
fn weighted_differences_are_gradients_of_the_output() {
    for (seed, kernel) in (0..12).flat_map(|seed| KERNELS.map(|kernel| (seed, kernel))) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (n, d) = (rng.random_range(70..160usize), rng.random_range(1..6usize));
        // A coarse grid in one column: rows that agree there but not elsewhere.
        let x = Matrix::from_fn(n, d, |_, k| match k {
            0 => f64::from(rng.random_range(-3..4)) * 0.5,
            _ => rng.random_range(-1.5..1.5),
        });
        let form = form(kernel, seed, d, 1 + d / 2);
        let values = (0..form.len(d)).map(|_| rng.random_range(0.2..0.9)).collect();
        let metric = Metric::new(form, d, values).unwrap();
        let gram = kernel::backend().gram(&x, n, &metric, kernel, &Watch::default()).unwrap();
        let rows: Vec<usize> = (0..n).filter(|_| rng.random_bool(0.5)).collect();
        let cols: Vec<usize> = (0..n).filter(|_| rng.random_bool(0.4)).collect();
        let beta: Vec<f64> = cols.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
        let slopes = gram.weighted_differences(&rows, &cols, &beta);
        assert_eq!((slopes.rows(), slopes.cols()), (rows.len(), d));
        let (m, l) = (metric.mahalanobis(), metric.components());
        let support = metric.transform(&x.select_rows(&cols));
        let beta = Matrix::from_rows(&[beta]).unwrap();
        let output = |x: &[f64]| {
            let z = metric.transform(&Matrix::from_rows(&[x]).unwrap());
            expand(kernel, &z, &support, &beta)[(0, 0)]
        };
        for (i, &row) in rows.iter().enumerate() {
            for k in 0..d {
                let moved = |by: f64| {
                    let mut x = x.row(row).to_vec();
                    x[k] += by;
                    output(&x)
                };
                let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                let gradient: f64 = match kernel {
                    Kernel::Laplacian => -l[(k, k)] * slopes[(i, k)],
                    _ => (0..d).map(|j| -2.0 * m[(k, j)] * slopes[(i, j)]).sum(),
                };
                let off = (gradient - difference).abs();
                assert!(off < 1e-7, "seed {seed} ({kernel} {form}): {gradient} {difference}");
            }
        }
        let none = gram.weighted_differences(&rows, &[], &[]);
        assert_eq!((none.rows(), none.cols()), (rows.len(), d));
        assert!(none.as_slice().iter().all(|v| *v == 0.0));
        assert_eq!(gram.weighted_differences(&[], &cols, beta.as_slice()).rows(), 0);
    }
}
