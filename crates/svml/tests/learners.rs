//! Metric learners: gradients against central differences, optima against independent answers, the
//! same bits for any number of threads, data at the edge, and a learner of a user.
#![allow(clippy::unwrap_used, missing_docs)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::internals::{LmnnProblem, NcaLoss, Pairs, Projection, Watch};
use svml::learners::{Init, Itml, Learned, Learner, Lmnn, Nca, Pca, Sample};
use svml::{
    AnyLearner, Dataset, Error, Form, FormChoice, Generator, Matrix, Method, Metric, Model, Run,
    Stop, Svml,
};

struct Rows {
    x: Matrix,
    class: Vec<usize>,
    weight: Vec<f64>,
    classes: usize,
}

impl Rows {
    /// Classes overlap along the first coordinate.
    fn random(n: usize, d: usize, classes: usize, weighted: bool, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut class: Vec<usize> = (0..n).map(|_| rng.random_range(0..classes)).collect();
        class.iter_mut().take(classes).enumerate().for_each(|(i, c)| *c = i);
        let x = Matrix::from_fn(n, d, |i, k| {
            rng.random_range(-1.5..1.5) + if k == 0 { class[i] as f64 } else { 0.0 }
        });
        let weight =
            (0..n).map(|_| if weighted { rng.random_range(0.2..3.0) } else { 1.0 }).collect();
        Self { x, class, weight, classes }
    }

    fn sample(&self) -> Sample<'_> {
        Sample::new(&self.x, &self.class, &self.weight, self.classes).unwrap()
    }
}

fn learn(learner: &dyn Learner, rows: &Rows) -> Learned {
    learner.learn(&rows.sample(), &mut Run::new()).unwrap()
}

/// Largest difference from central differences, relative to the size of the gradient.
fn gradient_error(l: &Matrix, f: impl Fn(&Matrix) -> (f64, Matrix)) -> f64 {
    let (_, gradient) = f(l);
    let size = gradient.as_slice().iter().fold(1e-3, |a: f64, g| a.max(g.abs()));
    let step = 1e-6;
    let mut worst = 0.0f64;
    for k in 0..l.as_slice().len() {
        let at = |sign: f64| {
            let mut moved = l.clone();
            moved.as_mut_slice()[k] += sign * step;
            f(&moved).0
        };
        let numeric = (at(1.0) - at(-1.0)) / (2.0 * step);
        worst = worst.max((numeric - gradient.as_slice()[k]).abs() / size);
    }
    worst
}

#[test]
fn gradients_are_those_of_central_differences() {
    let watch = Watch::default();
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
        let (n, d) = (rng.random_range(8..70), rng.random_range(1..6));
        let r = rng.random_range(1..=d);
        let rows = Rows::random(n, d, rng.random_range(2..4), seed % 2 == 0, seed);
        let l = Matrix::from_fn(r, d, |_, _| rng.random_range(-0.9..0.9));
        let nca = NcaLoss::new(&rows.sample());
        let off = gradient_error(&l, |l| nca.value_and_gradient(l, &watch).unwrap());
        assert!(off < 1e-6, "NCA, seed {seed}: {off:e}");
        // Where few rows are near enough to count.
        let wide = Matrix::from_fn(r, d, |i, j| 12.0 * l[(i, j)]);
        let off = gradient_error(&wide, |l| nca.value_and_gradient(l, &watch).unwrap());
        assert!(off < 1e-5, "NCA, wide, seed {seed}: {off:e}");
        let problem = LmnnProblem::new(&rows.sample(), 3, 0.7, &watch).unwrap();
        // Smoothed widely: central differences must not step over the ends of the smoothing often.
        let off = gradient_error(&l, |l| {
            let at = problem.evaluate(l, 1.0, &watch).unwrap();
            let d_l = Matrix::from_fn(r, d, |i, j| {
                2.0 * (0..d).map(|k| l[(i, k)] * at.q[(k, j)]).sum::<f64>()
            });
            (at.smoothed, d_l)
        });
        assert!(off < 1e-5, "LMNN, seed {seed}: {off:e}");
    }
}

/// The value of NCA by its definition.
#[test]
fn nca_is_the_expected_leave_one_out_error() {
    let rows = Rows::random(40, 3, 3, true, 5);
    let l = Matrix::from_fn(2, 3, |i, j| 0.3 + 0.2 * i as f64 - 0.25 * j as f64);
    let z = Matrix::from_fn(40, 2, |i, r| (0..3).map(|k| l[(r, k)] * rows.x[(i, k)]).sum());
    let (mut wrong, mut total) = (0.0, 0.0);
    for i in 0..40 {
        let e = |j: usize| {
            let sq: f64 = (0..2).map(|r| (z[(i, r)] - z[(j, r)]).powi(2)).sum();
            if i == j { 0.0 } else { rows.weight[j] * (-sq).exp() }
        };
        let others = (0..40).filter(|&j| rows.class[j] != rows.class[i]).map(e).sum::<f64>();
        wrong += rows.weight[i] * others / (0..40).map(e).sum::<f64>();
        total += rows.weight[i];
    }
    let (value, _) =
        NcaLoss::new(&rows.sample()).value_and_gradient(&l, &Watch::default()).unwrap();
    assert!((value - wrong / total).abs() < 1e-14);
    // Far away, where every exponential is zero, each row draws its nearest.
    let huge = Matrix::from_fn(2, 3, |i, j| 1e4 * l[(i, j)]);
    let (value, gradient) =
        NcaLoss::new(&rows.sample()).value_and_gradient(&huge, &Watch::default()).unwrap();
    assert!((0.0..=1.0).contains(&value) && gradient.as_slice().iter().all(|g| g.is_finite()));
}

/// The loss of LMNN by its definition, for any M.
fn lmnn_loss(rows: &Rows, k: usize, mu: f64, m: &Matrix) -> (f64, Matrix) {
    let (n, d) = (rows.x.rows(), rows.x.cols());
    let difference =
        |i: usize, j: usize| (0..d).map(|k| rows.x[(i, k)] - rows.x[(j, k)]).collect::<Vec<f64>>();
    let sq = |v: &[f64], m: &Matrix| {
        (0..d).map(|a| (0..d).map(|b| v[a] * m[(a, b)] * v[b]).sum::<f64>()).sum::<f64>()
    };
    let euclid = Matrix::from_fn(d, d, |i, j| f64::from(u8::from(i == j)));
    let (mut loss, mut slope) = (0.0, Matrix::zeros(d, d));
    for i in 0..n {
        let mut own: Vec<usize> =
            (0..n).filter(|&j| j != i && rows.class[j] == rows.class[i]).collect();
        own.sort_by(|&a, &b| {
            sq(&difference(i, a), &euclid).total_cmp(&sq(&difference(i, b), &euclid))
        });
        for &j in own.iter().take(k) {
            let near = difference(i, j);
            let mut add = |v: &[f64], w: f64| {
                for a in 0..d {
                    for b in 0..d {
                        slope[(a, b)] += w * v[a] * v[b];
                    }
                }
            };
            loss += rows.weight[i] * sq(&near, m);
            add(&near, rows.weight[i]);
            for l in (0..n).filter(|&l| rows.class[l] != rows.class[i]) {
                let far = difference(i, l);
                let s = 1.0 + sq(&near, m) - sq(&far, m);
                if s > 0.0 {
                    let w = mu * rows.weight[i] * rows.weight[l];
                    loss += w * s;
                    add(&near, w);
                    add(&far, -w);
                }
            }
        }
    }
    (loss, slope)
}

/// An independent road to the optimum: subgradient steps on M = [[a, b], [b, c]], projected on the
/// semidefinite cone, keeping the best.
fn lmnn_by_subgradients(rows: &Rows, mu: f64, start: &Matrix) -> f64 {
    let mut m = start.clone();
    let mut best = f64::INFINITY;
    for t in 0..6000 {
        let (loss, g) = lmnn_loss(rows, 3, mu, &m);
        best = best.min(loss);
        let size = g.as_slice().iter().map(|g| g * g).sum::<f64>().sqrt();
        let step = 1.0 / (1.0 + t as f64).powf(0.8) / size;
        m = Matrix::from_fn(2, 2, |i, j| m[(i, j)] - step * g[(i, j)]);
        let (mean, half) = ((m[(0, 0)] + m[(1, 1)]) / 2.0, (m[(0, 0)] - m[(1, 1)]) / 2.0);
        let radius = half.hypot(m[(0, 1)]);
        let (high, low) = ((mean + radius).max(0.0), (mean - radius).max(0.0));
        let (c, s) = if radius > 0.0 { (half / radius, m[(0, 1)] / radius) } else { (1.0, 0.0) };
        let (mid, reach) = ((high + low) / 2.0, (high - low) / 2.0);
        m = Matrix::from_rows(&[[mid + reach * c, reach * s], [reach * s, mid - reach * c]])
            .unwrap();
    }
    best
}

#[test]
fn lmnn_reaches_the_certified_optimum() {
    for seed in 0..4 {
        let rows = Rows::random(24, 2, 2 + seed as usize % 2, seed % 2 == 0, 40 + seed);
        let mu = [1.0, 0.3, 3.0][seed as usize % 3];
        let outcome = learn(&Lmnn { mu, tolerance: 1e-4, ..Lmnn::default() }, &rows);
        assert_eq!(outcome.stop, Stop::Tolerance, "seed {seed}");
        let last = outcome.trace.last().unwrap();
        let m = outcome.metric.mahalanobis();
        let (by_definition, _) = lmnn_loss(&rows, 3, mu, &m);
        assert!((last.loss - by_definition).abs() < 1e-9 * last.loss, "seed {seed}");
        let bound = last.loss * (1.0 - last.gap.unwrap());
        let identity = Matrix::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)));
        let other = lmnn_by_subgradients(&rows, mu, &identity);
        assert!(other >= bound * (1.0 - 1e-12), "seed {seed}: {other} below the bound {bound}");
        assert!(last.loss <= other * (1.0 + 1.1e-4), "seed {seed}: {} and {other}", last.loss);
        assert!(other <= last.loss * 1.02, "seed {seed}: the other solver is lost at {other}");
    }
}

/// Rows of two classes on a line across which the nearest are of the other class: LMNN and NCA must
/// turn to the other coordinate.
#[test]
fn neighbours_swap_where_they_must() {
    let x = Matrix::from_rows(&[[0.0, 0.0], [0.1, 2.0], [0.0, 2.1], [0.1, 0.1]]).unwrap();
    let rows = Rows { x, class: vec![0, 1, 0, 1], weight: vec![1.0; 4], classes: 2 };
    for learner in
        [AnyLearner::from(Nca::default()), Lmnn { neighbours: 1, ..Lmnn::default() }.into()]
    {
        let relevance = learn(&*learner, &rows).metric.relevance();
        assert!(relevance[0] > 2.0 * relevance[1], "{learner:?}: {relevance:?}");
    }
}

#[test]
fn itml_meets_its_constraints_and_optimality_conditions() {
    for seed in 0..5 {
        let rows = Rows::random(60, 3, 2, false, 70 + seed);
        let pairs = Pairs::draw(&rows.sample(), 30, seed);
        assert_eq!((pairs.similar.len(), pairs.dissimilar.len()), (30, 30));
        assert!(pairs.similar.iter().all(|&(i, j)| i != j && rows.class[i] == rows.class[j]));
        assert!(pairs.dissimilar.iter().all(|&(i, j)| rows.class[i] != rows.class[j]));
        let difference = |&(i, j): &(usize, usize)| -> Vec<f64> {
            (0..3).map(|k| rows.x[(i, k)] - rows.x[(j, k)]).collect()
        };
        let similar: Vec<Vec<f64>> = pairs.similar.iter().map(difference).collect();
        let dissimilar: Vec<Vec<f64>> = pairs.dissimilar.iter().map(difference).collect();
        let prior = Matrix::from_fn(3, 3, |i, j| if i == j { 0.5 } else { 0.1 });
        let (gamma, (u, l)) = (0.5, (0.8, 3.0));
        let mut state = Projection::new(prior.clone(), &similar, &dissimilar, (u, l), gamma);
        let rounds = (0..20_000).take_while(|_| state.round() > 1e-13).count();
        assert!(rounds < 20_000, "seed {seed}: no end");
        // M (M0^-1 + sum_S lambda v v' - sum_D lambda v v') = I, as M0 (..) = I + M0 sum ..
        let mut sum = Matrix::zeros(3, 3);
        for (c, v) in similar.iter().chain(&dissimilar).enumerate() {
            let near = c < similar.len();
            let sign = if near { 1.0 } else { -1.0 };
            let q: f64 =
                (0..3).map(|a| (0..3).map(|b| v[a] * state.m[(a, b)] * v[b]).sum::<f64>()).sum();
            let (lambda, xi) = (state.lambda[c], state.xi[c]);
            assert!(lambda >= 0.0 && xi > 0.0);
            let expected = 1.0 / if near { u } else { l } - sign * lambda / gamma;
            assert!((1.0 / xi - expected).abs() < 1e-9, "seed {seed}: slack of pair {c}");
            assert!(sign * (q - xi) <= 1e-7 * xi, "seed {seed}: pair {c} has {q}, bound {xi}");
            assert!(lambda * (q - xi).abs() < 1e-7, "seed {seed}: pair {c} is not complementary");
            for a in 0..3 {
                for b in 0..3 {
                    sum[(a, b)] += sign * lambda * v[a] * v[b];
                }
            }
        }
        // M = M0 - M0 sum M
        for a in 0..3 {
            for b in 0..3 {
                let product: f64 = (0..3)
                    .map(|i| {
                        let right: f64 = (0..3).map(|j| sum[(i, j)] * state.m[(j, b)]).sum();
                        prior[(a, i)] * right
                    })
                    .sum();
                let off = state.m[(a, b)] - (prior[(a, b)] - product);
                assert!(off.abs() < 1e-9, "seed {seed}: stationarity off by {off:e}");
            }
        }
    }
}

fn all() -> Vec<AnyLearner> {
    let (nca, lmnn) = (Nca::default(), Lmnn { max_iterations: 60, ..Lmnn::default() });
    vec![
        Pca { rank: 1 }.into(),
        nca.clone().into(),
        Nca { rank: Some(1), init: Init::Identity, ..nca }.into(),
        lmnn.clone().into(),
        Lmnn { rank: Some(1), init: Init::Scaled, ..lmnn }.into(),
        Itml::default().into(),
    ]
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let rows = Rows::random(700, 4, 3, true, 9);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| all().iter().map(|rival| learn(&**rival, &rows).metric).collect::<Vec<_>>())
    };
    let one = run(1);
    for threads in [2, 3, 8] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
}

#[test]
fn every_learner_follows_the_trait_and_ends_when_told() {
    let rows = Rows::random(120, 3, 2, false, 11);
    let mut learners = all();
    learners.push(Svml::default().into());
    for (p, learner) in learners.iter().enumerate() {
        let outcome = learn(&**learner, &rows);
        assert_eq!(outcome.metric.features(), 3);
        assert!(outcome.trace.windows(2).all(|w| w[1].iteration == w[0].iteration + 1));
        assert_eq!(outcome.trace.is_empty(), p == 0);
        // Before anything is there, an interrupt is an error.
        let flag = Arc::new(AtomicBool::new(true));
        let ended = learner.learn(&rows.sample(), &mut Run::new().interrupt(flag));
        assert!(matches!(ended, Err(Error::Interrupted)), "learner {p}");
    }
    for rival in &learners[1..] {
        let mut run = Run::new().observer(|step| match step.iteration {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        let outcome = rival.learn(&rows.sample(), &mut run).unwrap();
        assert_eq!((outcome.stop, outcome.trace.len()), (Stop::Interrupted, 3), "{rival:?}");
    }
}

#[test]
fn data_at_the_edge_give_finite_metrics() {
    let labels = |n: usize| (0..n).map(|i| i % 2).collect::<Vec<_>>();
    let mut cases: Vec<(&str, Matrix, Vec<usize>)> = vec![
        (
            "one row of each class",
            Matrix::from_rows(&[[1.0, 2.0], [3.0, -1.0]]).unwrap(),
            vec![0, 1],
        ),
        ("one row of one class", Matrix::from_fn(9, 2, |i, k| ((i * 5 + k) % 7) as f64), {
            let mut class = vec![0; 9];
            class[4] = 1;
            class
        }),
        ("all rows equal", Matrix::from_fn(8, 2, |_, _| 1.5), labels(8)),
        (
            "constant columns",
            Matrix::from_fn(12, 3, |i, k| if k == 1 { 0.0 } else { (i * 3 % 11) as f64 }),
            labels(12),
        ),
        (
            "collinear columns",
            Matrix::from_fn(20, 2, |i, k| (i * 7 % 13) as f64 * (1.0 + k as f64)),
            labels(20),
        ),
        (
            "wide",
            Matrix::from_fn(6, 40, |i, k| ((i * 31 + k * 17) % 23) as f64 / 11.0 - 1.0),
            labels(6),
        ),
    ];
    let twins = Matrix::from_fn(20, 2, |i, k| ((i / 2) * (k + 3) % 7) as f64);
    cases.push(("twins of two classes", twins, labels(20)));
    for (name, x, class) in cases {
        let rows = Rows { weight: vec![1.0; x.rows()], x, class, classes: 2 };
        for rival in all() {
            let outcome = learn(&*rival, &rows);
            let finite = outcome.metric.values().iter().all(|v| v.is_finite());
            assert!(finite, "{name}, {rival:?}: {outcome:?}");
            assert!(outcome.trace.iter().all(|step| step.loss.is_finite()), "{name}, {rival:?}");
        }
    }
    // Numbers that cannot be squared and summed: an error, or a metric, but no panic.
    for (unit, rival) in
        [1e160, 1e-150].into_iter().flat_map(|u| all().into_iter().map(move |r| (u, r)))
    {
        let x = Matrix::from_fn(10, 2, |i, k| unit * ((i * 3 + k) % 5) as f64);
        let rows = Rows { x, class: labels(10), weight: vec![1.0; 10], classes: 2 };
        if let Ok(outcome) = rival.learn(&rows.sample(), &mut Run::new()) {
            assert!(outcome.metric.values().iter().all(|v| v.is_finite()), "{rival:?}");
        }
    }
}

#[test]
fn bad_parameters_are_named() {
    let bad: Vec<(AnyLearner, &str)> = vec![
        (Pca { rank: 0 }.into(), "rank"),
        (Pca { rank: 4 }.into(), "rank"),
        (Nca { rank: Some(9), ..Nca::default() }.into(), "rank"),
        (Nca { tolerance: f64::NAN, ..Nca::default() }.into(), "tolerance"),
        (Lmnn { neighbours: 0, ..Lmnn::default() }.into(), "neighbours"),
        (Lmnn { mu: -1.0, ..Lmnn::default() }.into(), "mu"),
        (Lmnn { tolerance: -1.0, ..Lmnn::default() }.into(), "tolerance"),
        (Itml { gamma: 0.0, ..Itml::default() }.into(), "gamma"),
        (Itml { bounds: Some((1.0, -1.0)), ..Itml::default() }.into(), "bounds"),
        (Itml { percentiles: (95.0, 5.0), ..Itml::default() }.into(), "percentiles"),
        (Itml { pairs: Some(0), ..Itml::default() }.into(), "pairs"),
        (Itml { prior: Some(f64::INFINITY), ..Itml::default() }.into(), "prior"),
    ];
    for (rival, name) in bad {
        let message = rival.validate(3).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name} = ")), "{message}");
    }
}

fn generated(rows: usize) -> Dataset {
    Generator { rows, noise: 3, ..Generator::default() }.generate().unwrap().data
}

/// However short the time is, a learner returns a metric, and learns from some of many rows first.
#[test]
fn learners_of_many_rows_return_the_best_so_far() {
    let data = generated(9000);
    for learner in [AnyLearner::from(Nca::default()), Lmnn::default().into()] {
        for limit in [10, 700] {
            let mut run = Run::new().time_limit(Duration::from_millis(limit));
            let model = Model::fit_with(&data, Method::metric(learner.clone()), &mut run).unwrap();
            let report = model.report();
            assert_eq!(report.trace.is_empty(), !report.warnings.is_empty(), "{learner} {limit}");
            assert!(report.trace.windows(2).all(|w| w[1].iteration == w[0].iteration + 1));
        }
    }
    // With enough time the result is that of all rows, from a start that some of them have given.
    let data = generated(8200);
    let nca = Method::metric(Nca { max_iterations: 10, ..Nca::default() });
    let mut run = Run::new().time_limit(Duration::from_secs(3600));
    let model = Model::fit_with(&data, &nca, &mut run).unwrap();
    let plain = Model::fit(&data, &nca).unwrap();
    let (first, losses) = (model.report().trace[0].loss, &plain.report().trace);
    let (start, last) = (losses[0].loss, losses.last().unwrap().loss);
    assert!(first - last < 0.5 * (start - last), "{first} from {start} to {last}");
}

/// A given L is on features as they are, and learning goes on where it was.
#[test]
fn learners_start_from_what_is_given() {
    let rows = Rows::random(150, 3, 2, false, 21);
    // In other units, so that scales matter.
    let x = Matrix::from_fn(150, 3, |i, k| 3.0 + [0.1, 1.0, 40.0][k] * rows.x[(i, k)]);
    let data = Dataset::new(x, &rows.class).unwrap();
    let given = vec![vec![2.0, -0.3, 0.01], vec![0.5, 1.0, 0.02]];
    let square = vec![given[0].clone(), given[1].clone(), vec![0.0, 0.1, -0.03]];
    for l in [&given, &square] {
        let init = Init::Given(l.clone());
        let form = if l.len() == 3 { Form::Full } else { Form::Rank(2) };
        let svml =
            Svml { form: form.into(), init: init.clone(), max_iterations: 0, ..Svml::default() };
        let methods = [
            Method::metric(Nca { init: init.clone(), max_iterations: 0, ..Nca::default() }),
            Method::metric(Lmnn { init: init.clone(), max_iterations: 0, ..Lmnn::default() }),
            Method::metric(svml.clone()),
            Method::from(svml),
        ];
        for method in methods {
            let model = Model::fit(&data, &method).unwrap();
            assert_eq!(model.metric().form(), form);
            for (a, b) in model.raw_components().unwrap().as_slice().iter().zip(l.concat()) {
                assert!((a - b).abs() < 1e-12 * b.abs().max(1.0), "{a} {b}");
            }
            let bytes = model.to_bytes().unwrap();
            assert_eq!(Model::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
            assert_eq!(method.to_string().parse::<Method>().unwrap(), method);
        }
    }
    let first =
        Model::fit(&data, Method::metric(Nca { max_iterations: 5, ..Nca::default() })).unwrap();
    let l: Vec<Vec<f64>> =
        first.raw_components().unwrap().iter_rows().map(<[f64]>::to_vec).collect();
    let next =
        Model::fit(&data, Method::metric(Nca { init: Init::Given(l), ..Nca::default() })).unwrap();
    let (last, start) = (first.report().trace[5].loss, next.report().trace[0].loss);
    assert!((last - start).abs() < 1e-12, "{last} {start}");
}

#[test]
fn a_given_start_that_does_not_fit_is_refused() {
    let init = |rows: &[&[f64]]| Init::Given(rows.iter().map(|row| row.to_vec()).collect());
    let nca = |rank: Option<usize>, rows: &[&[f64]]| -> AnyLearner {
        Nca { rank, init: init(rows), ..Nca::default() }.into()
    };
    let svml = |form: FormChoice| -> AnyLearner {
        Svml { form, init: init(&[&[1.0, 0.0]]), ..Svml::default() }.into()
    };
    let bad: [(AnyLearner, &str); 10] = [
        (nca(None, &[]), "1 to 2 rows of 2 numbers"),
        (nca(None, &[&[1.0]]), "shape (1, 1)"),
        (nca(None, &[&[1.0, 0.0], &[1.0]]), "rows of one length"),
        (nca(None, &[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]]), "shape (3, 2)"),
        (nca(Some(2), &[&[1.0, 0.0]]), "of 2 rows"),
        (nca(None, &[&[1.0, f64::NAN]]), "NaN"),
        (nca(None, &[&[1.0, 1e80]]), "1e70"),
        (nca(None, &[&[0.0, 0.0]]), "not zero"),
        (svml(FormChoice::Auto), "unless the form is full or rank=R"),
        (svml(Form::Full.into()), "of 2 rows"),
    ];
    for (learner, part) in bad {
        let message = learner.validate(2).unwrap_err().to_string();
        assert!(message.starts_with("init = ") && message.contains(part), "{message}");
    }
    assert!(nca(Some(1), &[&[1.0, 0.0]]).validate(2).is_ok());
}

/// A metric of given pairs is that of the projections, on rows that are standardised, and does not depend on how often
/// a row occurs, on the units or on the order within a pair.
#[test]
fn a_metric_of_given_pairs() {
    let rows = Rows::random(60, 3, 2, false, 5);
    let pairs = Pairs::draw(&rows.sample(), 40, 3);
    let all: Vec<(usize, usize)> = pairs.similar.iter().chain(&pairs.dissimilar).copied().collect();
    let unit = [0.01, 1.0, 300.0];
    let raw = |i: usize| (0..3).map(|k| unit[k] * rows.x[(i, k)] - 7.0).collect::<Vec<f64>>();
    let side = |swap: bool| {
        let of =
            |(c, &(i, j)): (usize, &(usize, usize))| raw(if (c % 2 == 1) == swap { i } else { j });
        Matrix::from_rows(&all.iter().enumerate().map(of).collect::<Vec<_>>()).unwrap()
    };
    let similar: Vec<bool> = (0..all.len()).map(|c| c < pairs.similar.len()).collect();
    let itml = Itml { bounds: Some((0.7, 2.5)), tolerance: 1e-9, ..Itml::default() };
    let fit = |first: &Matrix, second: &Matrix| {
        Model::fit_pairs(first, second, &similar, &itml, &mut Run::new()).unwrap()
    };
    let model = fit(&side(false), &side(true));
    assert_eq!(model.metric(), fit(&side(true), &side(false)).metric());
    assert!(!model.is_classifier());
    assert_eq!(model.classes(), ["-1", "1"]);
    let bytes = model.to_bytes().unwrap();
    let back = Model::from_bytes(&bytes).unwrap();
    assert_eq!(back.to_bytes().unwrap(), bytes);
    assert_eq!(back.report().method, model.report().method);
    assert!(back.report().method.description().contains("from given pairs"));
    // By hand: distinct rows, standardised, then the projections.
    let mut used: Vec<usize> = all.iter().flat_map(|&(i, j)| [i, j]).collect();
    used.sort_unstable();
    used.dedup();
    let moments = |k: usize| {
        let mean = used.iter().map(|&i| raw(i)[k]).sum::<f64>() / used.len() as f64;
        let square = used.iter().map(|&i| (raw(i)[k] - mean).powi(2)).sum::<f64>();
        (square / used.len() as f64).sqrt()
    };
    let scale: Vec<f64> = (0..3).map(moments).collect();
    let differences = |pairs: &[(usize, usize)]| -> Vec<Vec<f64>> {
        let one =
            |&(i, j): &(usize, usize)| (0..3).map(|k| (raw(i)[k] - raw(j)[k]) / scale[k]).collect();
        pairs.iter().map(one).collect()
    };
    let prior = Matrix::from_fn(3, 3, |i, j| if i == j { 1.0 / 3.0 } else { 0.0 });
    let (near, far) = (differences(&pairs.similar), differences(&pairs.dissimilar));
    let mut state = Projection::new(prior, &near, &far, (0.7, 2.5), 1.0);
    while state.round() > 1e-9 {}
    for (a, b) in model.metric().mahalanobis().as_slice().iter().zip(state.m.as_slice()) {
        assert!((a - b).abs() < 1e-7, "{a} {b}");
    }
    let refused = |first: &Matrix, similar: &[bool]| {
        let result = Model::fit_pairs(first, &side(true), similar, &itml, &mut Run::new());
        result.unwrap_err().to_string()
    };
    assert!(refused(&side(false), &[true; 80]).contains("every pair is similar"));
    assert!(refused(&side(false), &[false; 80]).contains("every pair is dissimilar"));
    assert!(refused(&side(false), &[true; 3]).contains("found 3, expected 80"));
    let short = Matrix::zeros(80, 2);
    assert!(refused(&short, &similar).contains("columns of the second rows"));
    let mut hole = side(false);
    hole[(1, 2)] = f64::NAN;
    assert!(refused(&hole, &similar).contains("missing"));
}

#[test]
fn samples_whose_parts_do_not_fit_are_refused() {
    let good = || Rows::random(9, 2, 2, false, 3);
    let mut bad: Vec<Rows> = (0..5).map(|_| good()).collect();
    bad[0].class.pop();
    bad[1].weight[3] = 0.0;
    bad[2].class[4] = 2;
    bad[3].x = Matrix::zeros(9, 0);
    bad[4] = Rows { x: Matrix::zeros(0, 2), class: vec![], weight: vec![], classes: 2 };
    for (case, Rows { x, class, weight, classes }) in bad.iter().enumerate() {
        assert!(Sample::new(x, class, weight, *classes).is_err(), "case {case}");
    }
    let one = Rows::random(9, 2, 2, false, 3);
    assert!(Sample::new(&one.x, &[0; 9], &one.weight, 1).is_err());
}

/// A learner of a user: each feature by how far apart it holds the two classes. It is fitted, followed by an
/// SVM and by nearest neighbours, saved, loaded and drawn as ours are.
#[derive(Debug)]
struct Separation {
    power: f64,
}

impl Learner for Separation {
    fn name(&self) -> &str {
        "separation"
    }

    fn parameters(&self) -> serde_json::Value {
        serde_json::json!({ "power": self.power })
    }

    fn learn(&self, sample: &Sample<'_>, run: &mut Run<'_>) -> svml::Result<Learned> {
        run.watch().check()?;
        let mean = |class: usize, k: usize| {
            let rows = (0..sample.rows()).filter(|&i| sample.class()[i] == class);
            let (sum, count) = rows.fold((0.0, 0.0), |(s, n), i| (s + sample.x()[(i, k)], n + 1.0));
            sum / count
        };
        let weights = (0..sample.features())
            .map(|k| (0.1 + (mean(0, k) - mean(1, k)).abs()).powf(self.power))
            .collect();
        let metric = Metric::new(Form::Diagonal, sample.features(), weights)?;
        Ok(Learned::at_once(metric))
    }
}

#[test]
fn a_learner_of_ones_own_is_fitted_saved_loaded_and_drawn() {
    use svml::figures::Map;
    use svml::{Dataset, Method, Model, cross_validate};
    let rows = Rows::random(150, 4, 2, false, 21);
    let data = Dataset::new(rows.x, &rows.class).unwrap();
    for (method, text) in [
        (Method::svm_after(Separation { power: 2.0 }), "separation:power=2.0"),
        (Method::neighbours_after(Separation { power: 2.0 }, 3), "separation:power=2.0+knn"),
        (Method::metric(Separation { power: 2.0 }), "separation:power=2.0+none"),
    ] {
        assert_eq!(method.to_string(), text);
        let model = Model::fit(&data, &method).unwrap();
        let relevance = model.relevance();
        assert!(relevance[1..].iter().all(|other| relevance[0] > *other), "{relevance:?}");
        let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded.report().method, method);
        assert_eq!(loaded.transform(data.x()).unwrap(), model.transform(data.x()).unwrap());
        let map = Map::new(&loaded, data.x(), None).unwrap();
        assert_eq!(map.points.len(), 150);
        if model.is_classifier() {
            assert!(model.error_rate(&data).unwrap() < 0.4);
            assert!(cross_validate(&data, &method, 3).unwrap().error_rate < 0.5);
            // What was read from a file knows the name, not the code.
            let again = Model::fit(&data, &loaded.report().method);
            assert!(matches!(again, Err(Error::Unsupported(text)) if text.contains("separation")));
        }
    }
}
