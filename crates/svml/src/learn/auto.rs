//! The form of the metric, chosen from the training rows: `form = auto`.
//!
//! A sphere is learned first. The directions along which its machines change, as they are, tell what to
//! learn next: a metric of low rank if a few of them that are no columns have far fewer rows
//! misclassified, else a diagonal. Folds dealt anew then compare what was learned, row by row, and the
//! sphere is left only if fewer rows are misclassified, by more than a quarter of a standard error:
//!
//! 1. for low rank, if that was learned and the loss is lower by two standard errors as well;
//! 2. else for the diagonal;
//! 3. from there one may come back to the sphere, with ten times its C, if that is not far behind.
//!
//! `docs/math.md` in the repository says why.

use std::mem;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::criterion::{Criterion, Pair, fold_pairs, held_outputs};
use crate::data::{fold_of, fold_of_again};
use crate::error::{Error, Result};
use crate::kernel::{DenseGram, Gram};
use crate::learn::gop::{self, outer_product};
use crate::learn::svml::{self, Learned, initial_metric};
use crate::learn::{Control, Sample};
use crate::linalg::{self, Matrix};
use crate::loss::Loss;
use crate::metric::{Form, Metric};
use crate::multiclass::{decide, outputs, pairs, solve_pair, vote};
use crate::optimise::Stop;
use crate::params::{COST_RANGE, FormChoice, Params, Start};
use crate::svm::Machine;
use crate::watch::Watch;

/// Folds for the sphere: something to compare with and to fall back on, so it need not be exact.
const SPHERE_FOLDS: usize = 2;
/// Folds to compare forms with, where the criterion has none of its own.
const FOLDS: usize = 5;
/// The sphere is tried with C times this as well: a loss that is a proper score chooses a machine too
/// smooth for the zero-one loss where one class is rare.
const HARDER: f64 = 10.0;
/// Standard errors by which low rank must lower the loss, and by which one more direction must do so; the
/// same in loss and errors for a diagonal to start from.
const FORWARD: f64 = 2.0;
/// Standard errors, in loss and errors, by which leading directions must be better than both the sphere
/// and a diagonal for low rank to be tried.
const EVIDENT: f64 = 3.0;
/// Standard errors by which any change of form must lower the share misclassified.
const FEWER: f64 = 0.25;
/// The smallest rank that is tried is that of the fewest directions with this share of the trace of G.
const SHARE: f64 = 0.5;
/// G has d x d entries and its eigenvectors take d^3 operations: not for more columns than this.
const MOST_COLUMNS: usize = 1000;

/// A metric and C that were compared with others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The form of the metric.
    pub form: Form,
    /// C.
    pub cost: f64,
    /// Mean of the surrogate over rows that the machines have not seen, by weight.
    pub loss: f64,
    /// Share of those rows misclassified.
    pub error: f64,
    /// Whether it was chosen.
    pub chosen: bool,
}

/// Learns metric and C as the parameters say, with what the form was chosen from.
pub fn learn(
    sample: &Sample<'_>,
    params: &Params,
    control: &mut Control<'_>,
    watch: &Watch,
) -> Result<(Learned, Vec<Candidate>)> {
    params.validate(sample.x.cols())?;
    let form = match params.form {
        FormChoice::Auto => return choose(sample, params, control, watch),
        FormChoice::Fixed(form) => form,
    };
    let from = match params.start {
        Start::Isotropic => None,
        Start::Gradients => Some(gop::start(sample, form, params, control, watch)?),
    };
    Ok((svml::learn(sample, form, params, from, control, watch)?, Vec::new()))
}

fn choose(
    sample: &Sample<'_>,
    params: &Params,
    control: &mut Control<'_>,
    watch: &Watch,
) -> Result<(Learned, Vec<Candidate>)> {
    let rough = Params { criterion: Criterion::KFold(SPHERE_FOLDS), ..params.clone() };
    let sphere = svml::learn(sample, Form::Sphere, &rough, None, control, watch)?;
    if ended(&sphere) {
        return Ok((sphere, Vec::new()));
    }
    let mut best = sphere.clone();
    match follow(sample, params, &sphere, &mut best, control, watch) {
        Ok(candidates) => Ok((best, candidates)),
        Err(Error::Interrupted) => {
            best.stop = if watch.interrupted() { Stop::Interrupted } else { Stop::TimeLimit };
            Ok((best, Vec::new()))
        }
        // Rounding hides which rows are close: nothing to compare.
        Err(Error::NotPositiveDefinite { .. }) => Ok((best, Vec::new())),
        Err(error) => Err(error),
    }
}

fn ended(learned: &Learned) -> bool {
    matches!(learned.stop, Stop::Interrupted | Stop::TimeLimit)
}

/// Learns what the sphere's machines point to, and compares. `best` is the best so far.
fn follow(
    sample: &Sample<'_>,
    params: &Params,
    sphere: &Learned,
    best: &mut Learned,
    control: &mut Control<'_>,
    watch: &Watch,
) -> Result<Vec<Candidate>> {
    let (first, machines) = direction(sample, params, sphere, watch)?;
    let mut next = Some(first);
    let folds = Folds::again(sample, params);
    let mut candidates = Vec::new();
    let mut consider = |form: Form, held: &Held| {
        let (loss, error) = (held.loss.mean(), held.wrong.mean());
        candidates.push(Candidate { form, cost: held.cost, loss, error, chosen: false });
        candidates.len() - 1
    };
    // The kernel matrix is made anew for each: memory is dearer than time.
    let hold = |metric: &Metric, cost: f64, starts: &[Machine]| {
        folds.hold(&folds.gram(metric, watch)?, cost, starts)
    };
    let mut best_held = hold(&sphere.metric, sphere.cost, &folds.guess(&machines))?;
    let mut chosen = consider(Form::Sphere, &best_held);
    // Machines of other metrics start from the support rows of the sphere's.
    let starts = best_held.machines.clone();

    // Whether spheres may still be as good.
    let mut near = true;
    while let Some((metric, cost)) = next.take() {
        let form = metric.form();
        let (machines, trace) = (machines.clone(), best.trace.clone());
        let from = Learned { metric, cost, machines, trace, ..sphere.clone() };
        let learned = svml::learn(sample, form, params, Some(from), control, watch)?;
        if ended(&learned) {
            (best.trace, best.stop) = (learned.trace, learned.stop);
            return Ok(Vec::new());
        }
        // What comes back if time runs out now.
        let before = mem::replace(best, learned);
        let held = hold(&best.metric, best.cost, &starts)?;
        let index = consider(form, &held);
        let (fewer, lower) = (held.wrong.below(&best_held.wrong), held.loss.below(&best_held.loss));
        if fewer.significant(FEWER) && (form == Form::Diagonal || lower.significant(FORWARD)) {
            (best_held, chosen, near) = (held, index, !fewer.significant(FORWARD));
        } else {
            *best = Learned { trace: mem::take(&mut best.trace), ..before };
            if form != Form::Diagonal {
                next = Some((initial_metric(sample, Form::Diagonal)?, params.initial_cost));
            }
        }
    }

    // Back to a sphere with a harder margin, unless that is far behind.
    let cost = (HARDER * sphere.cost).min(COST_RANGE.1);
    if near && params.learn_cost && cost > sphere.cost {
        let held = hold(&sphere.metric, cost, &starts)?;
        let index = consider(Form::Sphere, &held);
        if held.wrong.below(&best_held.wrong).significant(FEWER) {
            let mut machines = held.machines;
            machines.truncate(pairs(sample.classes).len());
            let (trace, unseen) = (best.trace.clone(), folds.rows[0].clone());
            let left_out = Vec::new();
            *best = Learned { cost, machines, unseen, left_out, trace, ..sphere.clone() };
            chosen = index;
        }
    }
    candidates[chosen].chosen = true;
    Ok(candidates)
}

/// The metric and C to learn from next, and the sphere's machines on all rows. The directions along which
/// these change (see [`gop`]) are taken as they are, at the sphere's size: the leading ones for low rank, or
/// column by column for a diagonal. If neither is better than the sphere, a diagonal starts with all
/// columns alike.
fn direction(
    sample: &Sample<'_>,
    params: &Params,
    sphere: &Learned,
    watch: &Watch,
) -> Result<((Metric, f64), Vec<Machine>)> {
    let alike = (initial_metric(sample, Form::Diagonal)?, params.initial_cost);
    let (n, d) = (sample.x.rows(), sample.x.cols());
    if d < 2 || d > MOST_COLUMNS.min(n) {
        return Ok((alike, sphere.machines.clone()));
    }
    let folds = Folds::new(sample, params, &fold_of(sample.class, SPHERE_FOLDS), SPHERE_FOLDS);
    let gram = folds.gram(&sphere.metric, watch)?;
    let all = sample.labelled(&(0..n).collect::<Vec<_>>(), 0);
    let sphere_held = folds.hold(&gram, sphere.cost, &folds.guess(&sphere.machines))?;
    let classes = pairs(sample.classes);
    let likely = |p: usize| {
        let halves = sphere_held.machines.iter().skip(p).step_by(classes.len());
        let mut rows: Vec<usize> = halves.flat_map(|half| half.support.iter().copied()).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    };
    let machines: Vec<Machine> = (classes.par_iter().enumerate())
        .map(|(p, &pair)| {
            let rows = all.of_pair(pair);
            Ok(solve_pair(&gram, &rows, sphere.cost, Some(&likely(p)))?.machine)
        })
        .collect::<Result<_>>()?;
    // For a sphere M is a multiple of I.
    let g = outer_product(&gram, sample, &machines);
    let Some((values, vectors)) = linalg::symmetric_eigen(&g) else {
        return Ok((alike, machines));
    };
    let values: Vec<f64> = values.into_iter().map(|v| v.max(0.0)).collect();
    let trace: f64 = values.iter().sum();
    if trace <= 0.0 || !trace.is_finite() {
        return Ok((alike, machines));
    }
    let size = |metric: &Metric| -> f64 {
        metric.transform(sample.x).as_slice().iter().map(|z| z * z).sum()
    };
    let hold = |form: Form, l: &[f64]| {
        let of_scale = |scale: f64| Metric::new(form, d, l.iter().map(|v| v * scale).collect());
        let scale = (size(&sphere.metric) / size(&of_scale(1.0)?)).sqrt();
        let metric = of_scale(if scale.is_finite() { scale } else { 1.0 })?;
        let gram = folds.gram(&metric, watch)?;
        let held = folds.hold(&gram, sphere.cost, &sphere_held.machines)?;
        Ok::<_, Error>((metric, held))
    };
    let leading = |rank: usize| {
        let l = |i: usize, k: usize| (values[i] / trace).sqrt() * vectors[(i, k)];
        hold(Form::Rank(rank), Matrix::from_fn(rank, d, l).as_slice())
    };
    // From the fewest that carry half of the trace on, as long as one more helps beyond chance.
    let mut carried = 0.0;
    let few = values.iter().take_while(|v| {
        carried += **v;
        carried < SHARE * trace
    });
    let mut rank = 1 + few.count();
    let (mut low, mut low_held) = leading(rank)?;
    while rank < d {
        rank += 1;
        let (next, next_held) = leading(rank)?;
        if !next_held.loss.below(&low_held.loss).significant(FORWARD) {
            break;
        }
        (low, low_held) = (next, next_held);
    }
    let columns: Vec<f64> = (0..d).map(|k| (g[(k, k)].max(0.0) / trace).sqrt()).collect();
    let (diagonal, diagonal_held) = hold(Form::Diagonal, &columns)?;
    let next = if [&sphere_held, &diagonal_held].iter().all(|held| low_held.better(held, EVIDENT)) {
        (low, sphere.cost)
    } else if diagonal_held.better(&sphere_held, FORWARD) {
        (diagonal, sphere.cost)
    } else {
        alike
    };
    Ok((next, machines))
}

/// A deal of the rows into folds.
struct Folds<'a> {
    sample: &'a Sample<'a>,
    surrogate: Loss,
    /// Fold after fold, every pair of classes.
    pairs: Vec<Pair>,
    /// Rows of each fold.
    rows: Vec<Vec<usize>>,
}

/// What machines give on rows that they have not seen.
struct Held {
    cost: f64,
    /// Surrogate of each such row of each pair of classes.
    loss: Weighted,
    /// Whether each row is misclassified.
    wrong: Weighted,
    /// Fold after fold, those trained without it.
    machines: Vec<Machine>,
}

impl Held {
    /// Whether loss and errors are lower than those of another by so many standard errors.
    fn better(&self, than: &Self, errors: f64) -> bool {
        self.loss.below(&than.loss).significant(errors)
            && self.wrong.below(&than.wrong).significant(errors)
    }
}

impl<'a> Folds<'a> {
    /// Folds other than those that were learned on.
    fn again(sample: &'a Sample<'a>, params: &Params) -> Self {
        let n = sample.x.rows();
        let k = match params.criterion {
            Criterion::KFold(k) => k,
            Criterion::HoldOut | Criterion::LeaveOneOut => FOLDS,
        };
        let k = k.min(n);
        Self::new(sample, params, &fold_of_again(sample.class, k), k)
    }

    /// `fold_of` is the fold of each row, below `k`.
    fn new(sample: &'a Sample<'a>, params: &Params, fold_of: &[usize], k: usize) -> Self {
        let n = sample.x.rows();
        let all = sample.labelled(&(0..n).collect::<Vec<_>>(), 0);
        let pairs = fold_pairs(&all, sample.classes, fold_of, k);
        let rows = (0..k).map(|fold| (0..n).filter(|&row| fold_of[row] == fold).collect());
        Self { sample, surrogate: params.loss(), pairs, rows: rows.collect() }
    }

    fn gram(&self, metric: &Metric, watch: &Watch) -> Result<DenseGram<'a>> {
        DenseGram::new(self.sample.x, self.sample.x.rows(), metric, watch)
    }

    /// The machines of one deal as a start for each problem of this one.
    fn guess(&self, machines: &[Machine]) -> Vec<Machine> {
        let count = pairs(self.sample.classes).len();
        let machines = machines.iter().take(count).cycle();
        machines.take(self.pairs.len()).cloned().collect()
    }

    fn hold(&self, gram: &dyn Gram, cost: f64, starts: &[Machine]) -> Result<Held> {
        let Sample { class, weight, classes, .. } = *self.sample;
        let (machines, h) = held_outputs(gram, &self.pairs, cost, starts)?;
        let mut loss = Weighted::default();
        for (Pair { valid, .. }, h) in self.pairs.iter().zip(&h) {
            for ((y, h), w) in valid.y.iter().zip(h).zip(&valid.weight) {
                loss.push(self.surrogate.value_and_slope(y * h).0, *w);
            }
        }
        let mut wrong = Weighted::default();
        for (rows, machines) in self.rows.iter().zip(machines.chunks(pairs(classes).len())) {
            let decided = decide(&vote(&outputs(gram, rows, machines), classes));
            for (&row, decided) in rows.iter().zip(decided) {
                wrong.push(if decided == class[row] { 0.0 } else { 1.0 }, weight[row]);
            }
        }
        Ok(Held { cost, loss, wrong, machines })
    }
}

/// Values with their weights.
#[derive(Default)]
struct Weighted(Vec<(f64, f64)>);

/// A mean, and its standard error if it were zero.
struct Mean {
    mean: f64,
    error: f64,
}

impl Weighted {
    fn push(&mut self, value: f64, weight: f64) {
        self.0.push((value, weight));
    }

    fn total(&self) -> f64 {
        self.0.iter().map(|(_, weight)| weight).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|(value, weight)| value * weight).sum::<f64>() / self.total()
    }

    /// How far these values are below others of the same rows.
    fn below(&self, other: &Self) -> Mean {
        let total = self.total();
        let (mut mean, mut squares) = (0.0, 0.0);
        for ((value, weight), (other, _)) in self.0.iter().zip(&other.0) {
            let difference = weight / total * (other - value);
            mean += difference;
            squares += difference * difference;
        }
        Mean { mean, error: squares.sqrt() }
    }
}

impl Mean {
    fn significant(&self, errors: f64) -> bool {
        self.mean > errors * self.error
    }
}
