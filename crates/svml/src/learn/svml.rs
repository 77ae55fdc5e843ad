//! Algorithm 1: support vector metric learning.
//!
//! L and C are learned together by descent on the smooth validation error plus the regulariser,
//! equation (17), and the iterate that does best on the hold-out rows is returned; without such rows,
//! the last.

use std::time::{Duration, Instant};

use crate::criterion::{
    Criterion, Evaluation, Pair, fold_pairs, hold_out, leave_one_out, split_pairs,
};
use crate::data::{fold_of, halve_twice};
use crate::error::{Error, Result};
use crate::kernel::{DenseGram, Gram};
use crate::learn::{Control, Sample, Step, pca};
use crate::linalg::Matrix;
use crate::loss::zero_one;
use crate::metric::{Form, Metric};
use crate::multiclass::{Ensemble, Labelled, Rows, decide, pairs, vote};
use crate::optimise::{Accepted, Limits, Objective, Stop, minimise};
use crate::params::{COST_RANGE, Params};
use crate::svm::Machine;
use crate::watch::Watch;

/// What was learned.
#[derive(Clone, Debug)]
pub struct Learned {
    /// L.
    pub metric: Metric,
    /// C.
    pub cost: f64,
    /// The machine of each pair of classes, on the training part or on all but the first fold or on all
    /// rows, with support vectors as row indices of the sample.
    pub machines: Vec<Machine>,
    /// Rows that these machines have not seen.
    pub unseen: Vec<usize>,
    /// For machines that have seen all rows: what each gives at its rows when they are left out, one
    /// after the other.
    pub left_out: Vec<Vec<f64>>,
    /// Worst violation of their optimality conditions.
    pub residual: f64,
    /// Every accepted step.
    pub trace: Vec<Step>,
    /// The iteration of `trace` that is returned.
    pub best: usize,
    /// Why it ended.
    pub stop: Stop,
}

/// Learns an L of the given form from a sample. `from` is where L and C start, and what is returned if
/// the time is up before anything better is there; its trace is continued, and where all rows train its
/// machines are the first guess of those to come. Without it L starts
/// isotropic, or from the principal components.
pub fn learn(
    sample: &Sample<'_>,
    form: Form,
    params: &Params,
    from: Option<Learned>,
    control: &mut Control<'_>,
    watch: &Watch,
) -> Result<Learned> {
    Params { form: form.into(), ..params.clone() }.validate(sample.x.cols())?;
    let (initial, initial_cost) = match &from {
        Some(from) => (from.metric.clone(), from.cost),
        None => (initial_metric(sample, form)?, params.initial_cost),
    };
    let n = sample.x.rows();
    let rows: Vec<usize> = (0..n).collect();
    let all = sample.labelled(&rows, 0);
    // Rows of the kernel, of which the first `trained` may be support rows; rows apart, which only
    // say when to stop; and what is validated.
    let (order, trained, hold, problems) = match params.criterion {
        Criterion::HoldOut => {
            let split = halve_twice(sample.class);
            let t = split.train.len();
            let train = sample.labelled(&split.train, 0);
            let valid = sample.labelled(&split.valid, t);
            let problems = Problems::Pairs(split_pairs(&train, &valid, sample.classes));
            ([split.train, split.valid].concat(), t, split.hold, problems)
        }
        Criterion::KFold(k) => {
            let k = k.min(n);
            let pairs = fold_pairs(&all, sample.classes, &fold_of(sample.class, k), k);
            (rows, n, Vec::new(), Problems::Pairs(pairs))
        }
        Criterion::LeaveOneOut => {
            let pairs = pairs(sample.classes).into_iter().map(|pair| all.of_pair(pair)).collect();
            (rows, n, Vec::new(), Problems::LeaveOneOut(pairs))
        }
    };
    let x_fit = sample.x.select_rows(&order);
    let ended = || if watch.interrupted() { Stop::Interrupted } else { Stop::TimeLimit };
    let gram = match (DenseGram::new(&x_fit, trained, &initial, watch), from.as_ref()) {
        (Err(Error::Interrupted), Some(from)) => {
            return Ok(Learned { stop: ended(), ..from.clone() });
        }
        (gram, _) => gram?,
    };
    let guess = match (params.criterion, &from) {
        (Criterion::HoldOut, _) | (_, None) => Vec::new(),
        (_, Some(from)) => from.machines.iter().cycle().take(problems.count()).cloned().collect(),
    };
    let mut descent = Descent {
        gram,
        fit: sample.labelled(&order, 0),
        hold: sample.labelled(&hold, 0),
        x_hold: &sample.x.select_rows(&hold),
        x_fit: &x_fit,
        trained,
        problems,
        classes: sample.classes,
        variables: Variables::new(initial, params),
        params,
        control,
        watch,
        slowest: Duration::ZERO,
        last: None,
        best: None,
        trace: from.as_ref().map_or(Vec::new(), |from| from.trace.clone()),
        guess,
    };
    let mut theta = descent.variables.start(initial_cost);
    let least_share = if hold.is_empty() { LEAST_SHARE } else { LEAST_SHARE_WATCHED };
    let limits = Limits {
        iterations: params.max_iterations,
        tolerance: params.tolerance,
        least_size: least_share * params.loss().value_and_slope(0.0).0,
        first_step: FIRST_STEP,
    };
    let stop = match minimise(params.optimiser, &mut descent, &mut theta, limits) {
        Ok(stop) => stop,
        Err(Error::Interrupted) => ended(),
        Err(error) => return Err(error),
    };
    let Descent { best, trace, problems, .. } = descent;
    let Some(best) = best else {
        return from.map(|from| Learned { stop, ..from }).ok_or(Error::Interrupted);
    };
    let Best { iteration, metric, cost, mut machines, valid_outputs, residual, .. } = best;
    // Of k folds the machines of the first.
    machines.truncate(pairs(sample.classes).len());
    let mut unseen: Vec<bool> = vec![true; n];
    problems.trained_rows(machines.len()).for_each(|row| unseen[order[row]] = false);
    let unseen = (0..n).filter(|&row| unseen[row]).collect();
    let support = machines.iter_mut().flat_map(|machine| &mut machine.support);
    support.for_each(|row| *row = order[*row]);
    let left_out = match problems {
        Problems::Pairs(_) => Vec::new(),
        Problems::LeaveOneOut(_) => valid_outputs,
    };
    Ok(Learned { metric, cost, machines, unseen, left_out, residual, trace, best: iteration, stop })
}

/// What is validated.
enum Problems {
    /// Machines trained on one part and validated on another.
    Pairs(Vec<Pair>),
    /// Machines trained on all rows and validated on each of them left out.
    LeaveOneOut(Vec<Rows>),
}

impl Problems {
    fn evaluate(
        &self,
        gram: &dyn Gram,
        cost: f64,
        params: &Params,
        starts: &[Machine],
    ) -> Result<Evaluation> {
        match self {
            Self::Pairs(pairs) => hold_out(gram, pairs, cost, params.loss(), starts),
            Self::LeaveOneOut(rows) => leave_one_out(gram, rows, cost, params.loss(), starts),
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Pairs(pairs) => pairs.len(),
            Self::LeaveOneOut(rows) => rows.len(),
        }
    }

    /// Rows that the first `count` machines are trained on.
    fn trained_rows(&self, count: usize) -> impl Iterator<Item = usize> {
        let rows: Vec<&Rows> = match self {
            Self::Pairs(pairs) => pairs[..count].iter().map(|pair| &pair.train).collect(),
            Self::LeaveOneOut(rows) => rows[..count].iter().collect(),
        };
        rows.into_iter().flat_map(|rows| rows.index.iter().copied())
    }

    /// Shares of training and of validation rows on the wrong side, over all machines.
    fn errors(&self, evaluation: &Evaluation) -> (f64, f64) {
        let share = |outputs: &[Vec<f64>], rows: &[&Rows]| {
            let (mut wrong, mut total) = (0.0, 0.0);
            for (h, rows) in outputs.iter().zip(rows) {
                for ((h, y), w) in h.iter().zip(&rows.y).zip(&rows.weight) {
                    wrong += if (*h > 0.0) == (*y > 0.0) { 0.0 } else { *w };
                    total += w;
                }
            }
            wrong / f64::max(total, f64::MIN_POSITIVE)
        };
        let (train, valid): (Vec<&Rows>, Vec<&Rows>) = match self {
            Self::Pairs(pairs) => pairs.iter().map(|pair| (&pair.train, &pair.valid)).unzip(),
            Self::LeaveOneOut(rows) => rows.iter().map(|rows| (rows, rows)).unzip(),
        };
        (share(&evaluation.train_outputs, &train), share(&evaluation.valid_outputs, &valid))
    }
}

/// The tolerance is relative to the loss, or to this share of what knowing nothing costs if that is more: where
/// few rows are left to be wrong about, following them to the end is following chance.
const LEAST_SHARE: f64 = 0.5;
/// The same where hold-out rows say when to stop.
const LEAST_SHARE_WATCHED: f64 = 0.1;

/// Length of the first step in the optimiser's variables, which are of order one.
const FIRST_STEP: f64 = 0.3;

/// L0: the usual kernel width sigma^2 = d, or the principal components.
pub(super) fn initial_metric(sample: &Sample<'_>, form: Form) -> Result<Metric> {
    let x = sample.x;
    if let Form::Rank(rank) = form {
        return pca::pca(x, sample.weight, rank);
    }
    // Columns that are constant (and so zero here) do not count.
    let varying = (0..x.cols()).filter(|&k| x.col(k).any(|v| v != 0.0)).count();
    Metric::isotropic(form, x.cols(), (varying.max(1) as f64).sqrt().recip())
}

/// The variables of the optimiser: the values of L in units of L0's size (for a sphere the
/// logarithm of 1/sigma), then log C. All are of order one.
struct Variables {
    initial: Metric,
    unit: f64,
    lambda: f64,
    learn_cost: bool,
}

impl Variables {
    fn new(initial: Metric, params: &Params) -> Self {
        let square: f64 = initial.relevance().iter().sum();
        let unit = (square / initial.rank() as f64).sqrt();
        let unit = if unit > 0.0 { unit } else { 1.0 };
        Self { initial, unit, lambda: params.lambda, learn_cost: params.learn_cost }
    }

    fn start(&self, cost: f64) -> Vec<f64> {
        let values = self.initial.values().iter();
        let mut theta: Vec<f64> = match self.initial.form() {
            Form::Sphere => values.map(|v| v.ln()).collect(),
            _ => values.map(|v| v / self.unit).collect(),
        };
        theta.push(cost.ln());
        theta
    }

    fn decode(&self, theta: &[f64]) -> Result<(Metric, f64)> {
        let (log_cost, values) = theta.split_last().unwrap_or((&0.0, &[]));
        let values = match self.initial.form() {
            Form::Sphere => values.iter().map(|v| v.exp()).collect(),
            _ => values.iter().map(|v| v * self.unit).collect(),
        };
        let metric = Metric::new(self.initial.form(), self.initial.features(), values)?;
        Ok((metric, log_cost.exp().clamp(COST_RANGE.0, COST_RANGE.1)))
    }

    /// lambda |L - L0|^2 / |L0|^2, equation (17), with its derivative added to `d_metric`.
    fn regularise(&self, metric: &Metric, d_metric: &mut [f64]) -> f64 {
        let (now, start) = (metric.values(), self.initial.values());
        let size: f64 = start.iter().map(|v| v * v).sum();
        // The principal components of columns that do not vary are zero.
        let size = if size > 0.0 { size } else { 1.0 };
        let mut share = 0.0;
        for (d, (now, start)) in d_metric.iter_mut().zip(now.iter().zip(start)) {
            share += (now - start).powi(2) / size;
            // lambda last: at L = L0 this is zero however large lambda is.
            *d += self.lambda * (2.0 * (now - start) / size);
        }
        self.lambda * share
    }

    /// The gradient in the optimiser's variables.
    fn encode(
        &self,
        metric: &Metric,
        d_metric: &[f64],
        theta: &[f64],
        d_log_cost: f64,
        out: &mut [f64],
    ) {
        let last = out.len() - 1;
        for (k, (out, d)) in out.iter_mut().zip(d_metric).enumerate() {
            *out = match self.initial.form() {
                Form::Sphere => d * metric.values()[k],
                _ => d * self.unit,
            };
        }
        // Where C is held, as given or at the end of its range, the loss does not depend on it.
        let inside =
            self.learn_cost && (COST_RANGE.0.ln()..=COST_RANGE.1.ln()).contains(&theta[last]);
        out[last] = if inside { d_log_cost } else { 0.0 };
    }
}

/// The best iterate so far, by its result on the hold-out rows.
struct Best {
    iteration: usize,
    /// Error on the hold-out rows, then their mean surrogate to break ties.
    result: (f64, f64),
    metric: Metric,
    cost: f64,
    machines: Vec<Machine>,
    valid_outputs: Vec<Vec<f64>>,
    residual: f64,
}

/// An evaluation and the point it belongs to.
struct Evaluated {
    theta: Vec<f64>,
    metric: Metric,
    cost: f64,
    evaluation: Evaluation,
}

/// The objective of SVML with its early stopping.
struct Descent<'a, 'c> {
    gram: DenseGram<'a>,
    problems: Problems,
    /// The rows of the kernel.
    fit: Labelled,
    /// How many of them, at the front, may be support rows.
    trained: usize,
    hold: Labelled,
    x_fit: &'a Matrix,
    x_hold: &'a Matrix,
    classes: usize,
    variables: Variables,
    params: &'a Params,
    control: &'a mut Control<'c>,
    watch: &'a Watch,
    /// Longest evaluation: what the machine on all rows will cost is estimated from it.
    slowest: Duration,
    last: Option<Evaluated>,
    best: Option<Best>,
    trace: Vec<Step>,
    /// Machines to start the first evaluation from, if any are known.
    guess: Vec<Machine>,
}

impl Descent<'_, '_> {
    /// Mean of the surrogate over the hold-out rows of all pairs.
    fn mean_surrogate(&self, outputs: &Matrix) -> f64 {
        let surrogate = self.params.loss();
        let (mut sum, mut total) = (0.0, 0.0);
        for (p, pair) in pairs(self.classes).into_iter().enumerate() {
            let rows = self.hold.of_pair(pair);
            for ((&row, y), w) in rows.index.iter().zip(&rows.y).zip(&rows.weight) {
                sum += w * surrogate.value_and_slope(y * outputs[(row, p)]).0;
                total += w;
            }
        }
        sum / total.max(f64::MIN_POSITIVE)
    }
}

impl Objective for Descent<'_, '_> {
    /// Lines 3 to 5 of Algorithm 1: kernel matrix, machine, gradient.
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let started = Instant::now();
        let Ok((metric, cost)) = self.variables.decode(theta) else {
            return Ok(f64::INFINITY);
        };
        self.gram.set_metric(&metric)?;
        let starts = self.last.as_ref().map_or(&self.guess, |last| &last.evaluation.machines);
        let mut evaluation = match self.problems.evaluate(&self.gram, cost, self.params, starts) {
            // L is so large that rounding hides which rows are close: too far.
            Err(Error::NotPositiveDefinite { .. }) => return Ok(f64::INFINITY),
            evaluated => evaluated?,
        };
        evaluation.loss += self.variables.regularise(&metric, &mut evaluation.d_metric);
        let Evaluation { loss, d_log_cost, d_metric, .. } = &evaluation;
        self.variables.encode(&metric, d_metric, theta, *d_log_cost, gradient);
        let loss = *loss;
        self.last = Some(Evaluated { theta: theta.to_vec(), metric, cost, evaluation });
        self.slowest = self.slowest.max(started.elapsed());
        Ok(loss)
    }

    /// Line 2 of Algorithm 1: whether the hold-out result keeps improving.
    fn accept(&mut self, accepted: &Accepted<'_>) -> Result<Option<Stop>> {
        if self.last.as_ref().is_none_or(|last| last.theta != accepted.x) {
            // The line search went back to an earlier point.
            self.evaluate(accepted.x, &mut vec![0.0; accepted.x.len()])?;
        }
        let Some(Evaluated { metric, cost, evaluation, .. }) = &self.last else {
            return Ok(None);
        };
        let machines = &evaluation.machines;
        let hold = (!self.hold.index.is_empty()).then(|| {
            let ensemble = Ensemble::new(machines, self.classes, |row| self.fit.class[row]);
            let mapped = metric.transform(&self.x_fit.select_rows(&ensemble.support));
            (ensemble.outputs(&metric.transform(self.x_hold), &mapped), ensemble, mapped)
        });
        let error = |outputs: &Matrix, rows: &Labelled| {
            zero_one(&decide(&vote(outputs, self.classes)), &rows.class, &rows.weight)
        };
        let (train_error, valid_error) = match &hold {
            Some((_, ensemble, mapped)) if self.classes > 2 => {
                // Each machine knows the rows of its own classes only: the vote needs all of them.
                let fit = ensemble.outputs(&metric.transform(self.x_fit), mapped);
                let part = |rows: Labelled| error(&fit.select_rows(&rows.index), &rows);
                (
                    part(self.fit.some(|p| p < self.trained)),
                    part(self.fit.some(|p| p >= self.trained)),
                )
            }
            _ => self.problems.errors(evaluation),
        };
        let mut support: Vec<usize> =
            machines.iter().flat_map(|machine| machine.support.iter().copied()).collect();
        support.sort_unstable();
        support.dedup();
        let step = Step {
            iteration: self.trace.len(),
            form: Some(metric.form()),
            loss: accepted.value,
            train_error,
            valid_error,
            hold_error: hold.as_ref().map(|(outputs, ..)| error(outputs, &self.hold)),
            cost: *cost,
            support: support.len(),
            step: accepted.step,
            seconds: self.watch.elapsed().as_secs_f64(),
        };
        self.trace.push(step);
        // Without hold-out rows the loss itself decides.
        let result = match (&hold, step.hold_error) {
            (Some((outputs, ..)), Some(error)) => (error, self.mean_surrogate(outputs)),
            _ => (accepted.value, 0.0),
        };
        if self.best.as_ref().is_none_or(|best| result < best.result) {
            self.best = Some(Best {
                iteration: step.iteration,
                result,
                metric: metric.clone(),
                cost: *cost,
                machines: evaluation.machines.clone(),
                valid_outputs: evaluation.valid_outputs.clone(),
                residual: evaluation.residual,
            });
        }
        let observed = self.control.observer.as_mut().map(|observer| observer(&step));
        if observed.is_some_and(|flow| flow.is_break()) || self.watch.interrupted() {
            return Ok(Some(Stop::Interrupted));
        }
        // The machine on all rows has twice the rows of the hold-out criterion: about eight times an
        // evaluation. The other criteria train on about all rows each time.
        let reserve = match (self.params.refit, self.params.criterion) {
            (true, Criterion::HoldOut) => self.slowest * 8,
            _ => self.slowest * 2,
        };
        if self.watch.out_of_time(reserve) {
            return Ok(Some(Stop::TimeLimit));
        }
        let waited = self.best.as_ref().map_or(0, |best| step.iteration - best.iteration);
        Ok((waited >= self.params.patience).then_some(Stop::HoldOut))
    }
}
