//! Algorithm 1: L and C are learned together by descent on the validation loss, and the step that does best
//! on the rows for early stopping is kept; without such rows, the last.

use std::borrow::Cow;
use std::time::Duration;

use super::Svml;
use super::approach::LandmarkChoice;
use super::criterion::{Criterion, fold_pairs, split_pairs};
use super::objective::{FoldRows, Point, Problems, ValidationLoss};
use crate::data::folds::Part;
use crate::data::{LabelledRows, Sample, folds, pairs};
use crate::error::{Error, Result};
use crate::landmarks::LandmarkSvms;
use crate::linalg::Matrix;
use crate::loss::{Loss, zero_one};
use crate::metric::{Form, Kernel, Metric};
use crate::multiclass::{PairwiseSvms, decide, vote};
use crate::optimise::{Accepted, Limits, Minimiser};
use crate::run::{Key, Run, Step, Stop, SvmlStep, Watch};
use crate::svm::BinarySvm;

/// What was learned.
#[derive(Clone, Debug)]
pub struct SvmlFit {
    /// L.
    pub metric: Metric,
    /// C.
    pub cost: f64,
    /// The SVM of each pair of classes, with support vectors as row indices of the sample.
    pub svms: Vec<BinarySvm>,
    /// What these SVMs were trained on.
    pub trained: TrainedOn,
    /// Worst violation of their optimality conditions.
    pub residual: f64,
    /// Every accepted step.
    pub trace: Vec<Step>,
    /// The iteration of `trace` that is returned.
    pub best: usize,
    /// Why it ended.
    pub stop: Stop,
}

impl SvmlFit {
    /// Where to start from, with no SVMs yet.
    pub(super) fn start(metric: Metric, cost: f64) -> Self {
        Self {
            metric,
            cost,
            svms: Vec::new(),
            trained: TrainedOn::Part { seen: Part::default() },
            residual: 0.0,
            trace: Vec::new(),
            best: 0,
            stop: Stop::Iterations,
        }
    }
}

/// What the SVMs of a fit were trained on, and where their outputs are out of sample.
#[derive(Clone, Debug)]
pub enum TrainedOn {
    /// A part of the rows: half of them under the hold-out criterion, all but the first fold under k folds.
    Part {
        /// The observations of the sample that they were trained on.
        seen: Part,
    },
    /// All rows, under leave-one-out.
    All {
        /// For each pair of classes what its SVM gives at its rows when they are left out, one after the
        /// other.
        left_out: Vec<Vec<f64>>,
    },
}

/// Learning ends when a step lowers the loss by less than the tolerance relative to max(loss, LEAST_SHARE psi(0)),
/// where psi(0) is the loss of the constant classifier h = 0. Below that level few rows are still
/// misclassified, and further descent fits noise (docs/math.md, section 8).
const LEAST_SHARE: f64 = 0.5;
/// The same where rows for early stopping guard against that anyway.
const LEAST_SHARE_EARLY_STOPPING: f64 = 0.1;
/// With landmarks, samples of more than twice as many rows are learned on so many rows first, with at most so many landmarks,
/// and so many for each class if that is more.
const FEW_ROWS: [(usize, usize, usize); 3] = [(2048, 200, 20), (8192, 300, 40), (32_768, 500, 75)];
/// With landmarks the tolerance is this share of what it is without: among many rows there is less to overfit.
const TOLERANCE_SHARE: f64 = 0.2;
/// Length of the first step in the optimiser's variables, which are of order one.
const FIRST_STEP: f64 = 0.3;

/// A step as it is taken, for those who want to see more than the [`Step`].
pub struct Iterate<'a> {
    /// The step.
    pub step: &'a Step,
    /// L.
    pub metric: &'a Metric,
    kernel: Kernel,
    svms: &'a [BinarySvm],
    division: &'a Division,
    sample: &'a Sample<'a>,
}

impl Iterate<'_> {
    /// The outputs of the SVMs of all pairs of classes at standardised rows. // (rows, pairs)
    pub fn outputs(&self, x: &Matrix) -> Matrix {
        let (classes, order) = (self.sample.classes(), &self.division.order);
        let svms = PairwiseSvms::new(self.svms, classes, |row| self.sample.class()[order[row]]);
        let support: Vec<usize> = svms.support.iter().map(|&row| order[row]).collect();
        let mapped = self.metric.transform(&self.sample.x().select_rows(&support));
        svms.outputs(self.kernel, &self.metric.transform(x), &mapped)
    }
}

/// Learns an L of the given form, and C. `from`, if given, supplies the initial L and C, the result to
/// fall back on if time runs out, and the trace to append to. Under k folds and leave-one-out its SVMs also
/// warm-start the first evaluation.
pub fn descend(
    sample: &Sample<'_>,
    form: Form,
    params: &Svml,
    from: Option<SvmlFit>,
    run: &mut Run<'_>,
) -> Result<SvmlFit> {
    descend_seen(sample, form, params, from, run, &mut |_| {})
}

/// As [`descend`]; `see` is shown every accepted step with its metric.
pub fn descend_seen(
    sample: &Sample<'_>,
    form: Form,
    params: &Svml,
    from: Option<SvmlFit>,
    run: &mut Run<'_>,
    see: &mut dyn FnMut(&Iterate<'_>),
) -> Result<SvmlFit> {
    let watch = run.watch().clone();
    let (division, problems) = Division::new(sample, params.criterion);
    let (x, x_stop) = division.rows(sample);

    // ---- Line 1: initialise L, and C. --------------------------------------------------------------------
    let (initial, cost) = match &from {
        Some(from) => (from.metric.clone(), from.cost),
        None => (params.init.metric(sample, form)?, params.initial_cost),
    };
    let rows = division.fold_rows(sample.classes());
    let made = ValidationLoss::new(&x, &rows, problems, initial.clone(), params, &watch);
    let mut objective = match (made, &from) {
        (Err(Error::Interrupted), Some(from)) => {
            return Ok(SvmlFit { stop: watch.cause(), ..from.clone() });
        }
        (made, _) => made?,
    };
    if let (Criterion::KFold(_) | Criterion::LeaveOneOut, Some(from)) = (params.criterion, &from) {
        let count = objective.problems().count();
        objective.start_from(from.svms.iter().cycle().take(count).cloned().collect());
    }
    let (loss, kernel) = (params.loss(), params.kernel);
    let measure = Measure { sample, division: &division, x: &x, x_stop: &x_stop, loss, kernel };
    let mut path = Path::new(from.as_ref().map_or(Vec::new(), |from| from.trace.clone()));

    let limits = division.limits(params);
    let mut algorithm_1 = || -> Result<Stop> {
        let theta = objective.theta(cost);
        let few = match &from {
            None => on_few_rows(sample, &initial, params, &theta, &watch)?,
            Some(_) => None,
        };
        let mut descent = match few {
            Some(mut descent) => {
                descent.go_on_with(&mut objective, limits)?;
                descent
            }
            None => Minimiser::new(params.optimiser, &mut objective, theta, limits)?,
        };
        loop {
            // ---- Line 2: while the result on the rows for early stopping keeps improving. ----------------
            objective.go_to(descent.accepted().x)?;
            if let Some(point) = objective.point() {
                let measured = measure.measure(point, objective.problems());
                let step =
                    path.record(&descent.accepted(), point, kernel, &measured, watch.elapsed());
                let svms = &point.evaluation.svms;
                let (metric, division) = (&point.metric, &division);
                see(&Iterate {
                    step: &step,
                    metric,
                    kernel: params.kernel,
                    svms,
                    division,
                    sample,
                });
                if let Some(stop) = run.report(&step, reserve(params, objective.slowest())) {
                    return Ok(stop);
                }
                if path.waited() >= params.patience {
                    return Ok(Stop::EarlyStopping);
                }
            }
            // ---- Lines 3 to 5: K from L, the SVMs from K, the gradient in L and C, a step along it. -----
            if let Some(stop) = descent.advance(&mut objective)? {
                return Ok(stop);
            }
        }
    };
    let stop = match algorithm_1() {
        Err(Error::Interrupted) => watch.cause(),
        ended => ended?,
    };
    match path.best {
        Some(best) => Ok(division.fit(sample, best, path.trace, objective.problems(), stop)),
        None => from.map(|from| SvmlFit { stop, ..from }).ok_or(Error::Interrupted),
    }
}

/// Of many rows a few show the way: learns on some of them, and on more, as far as they go. None for few rows, without
/// landmarks, and if nothing comes of it.
fn on_few_rows(
    sample: &Sample<'_>,
    initial: &Metric,
    params: &Svml,
    theta: &[f64],
    watch: &Watch,
) -> Result<Option<Minimiser>> {
    let LandmarkChoice::Count(count) = params.landmarks else { return Ok(None) };
    let mut descent: Option<Minimiser> = None;
    for (rows, landmarks, per_class) in FEW_ROWS {
        if sample.rows() < 2 * rows {
            break;
        }
        let few = sample.some(rows);
        let few = few.sample()?;
        let landmarks = landmarks.max(per_class * few.classes()).min(count);
        let params = &Svml { landmarks: LandmarkChoice::Count(landmarks), ..params.clone() };
        let (division, problems) = Division::new(&few, params.criterion);
        let (x, _) = division.rows(&few);
        let rows = division.fold_rows(few.classes());
        let mut objective =
            ValidationLoss::new(&x, &rows, problems, initial.clone(), params, watch)?;
        let limits = division.limits(params);
        let begun = match descent.take() {
            Some(mut descent) => descent.go_on_with(&mut objective, limits).map(|()| descent),
            None => Minimiser::new(params.optimiser, &mut objective, theta.to_vec(), limits),
        };
        let learned = begun.and_then(|mut descent| {
            while descent.advance(&mut objective)?.is_none() {}
            Ok(descent)
        });
        match learned {
            Err(Error::Numerical { .. }) => return Ok(None),
            learned => descent = Some(learned?),
        }
    }
    Ok(descent)
}

/// Steps on a sample before those on all rows that it was drawn from, and most of the latter, which gain little.
const STEPS_ON_SAMPLE: usize = 5;
const STEPS_ON_ALL: usize = 2;

/// Goes on from what was learned on a sample with some steps on all rows that it was drawn from, wherever they are: `svms`
/// are to be trained and validated on these, which are known by the key `of_all` if results are recorded. `reserve` is how many times the longest evaluation is to be kept for what
/// comes after.
pub fn descend_on_all(
    sample: &Sample<'_>,
    (initial, cost): (Metric, f64),
    params: &Svml,
    (svms, of_all): (LandmarkSvms<'_>, Option<Key>),
    reserve: u32,
    run: &mut Run<'_>,
) -> Result<SvmlFit> {
    let watch = run.watch().clone();
    let (division, problems) = Division::new(sample, Criterion::KFold(2));
    let limits = division.limits(params);
    let (x, _) = division.rows(sample);
    let rows = division.fold_rows(sample.classes());
    // What the sample knows about the curvature serves all rows.
    let mut few = ValidationLoss::new(&x, &rows, problems, initial.clone(), params, &watch)?;
    let theta = few.theta(cost);
    let on_sample = Limits { iterations: STEPS_ON_SAMPLE.min(limits.iterations), ..limits };
    let mut descent = Minimiser::new(params.optimiser, &mut few, theta, on_sample)?;
    while descent.advance(&mut few)?.is_none() {}
    drop(few);
    let mut objective = ValidationLoss::of_svms(svms, of_all, initial.clone(), params);
    let iterations = limits.iterations.min(STEPS_ON_ALL);
    descent.go_on_with(&mut objective, Limits { iterations, ..limits })?;
    let mut path = Path::new(Vec::new());
    let stop = loop {
        objective.go_to(descent.accepted().x)?;
        if let Some(point) = objective.point() {
            let (train_error, valid_error) = objective.problems().errors(&point.evaluation);
            let measured =
                Measured { train_error, valid_error, stopping_error: None, result: None };
            let accepted = descent.accepted();
            let step = path.record(&accepted, point, params.kernel, &measured, watch.elapsed());
            if let Some(stop) = run.report(&step, objective.slowest() * reserve) {
                break stop;
            }
        }
        match descent.advance(&mut objective) {
            Ok(None) => {}
            Ok(Some(stop)) => break stop,
            Err(Error::Interrupted) => break watch.cause(),
            Err(error) => return Err(error),
        }
    };
    let Path { trace, best } = path;
    let best = best.ok_or(Error::Interrupted)?;
    let learned = SvmlFit::start(best.metric, best.cost);
    Ok(SvmlFit { residual: best.residual, trace, best: best.iteration, stop, ..learned })
}

/// Time to keep for the SVM on all rows. Under the hold-out criterion it has twice the rows of an
/// evaluation, so about eight times the work; the other criteria train on about all rows each time.
fn reserve(params: &Svml, slowest: Duration) -> Duration {
    match (params.refit, params.criterion) {
        (true, Criterion::HoldOut) => slowest * 8,
        _ => slowest * 2,
    }
}

/// The rows of a sample as the criterion divides them.
struct Division {
    /// Rows of the sample in the order of the kernel's rows.
    order: Vec<usize>,
    /// How many of them, at the front, may be support rows.
    trained: usize,
    /// The rows of the kernel with their classes.
    fit: LabelledRows,
    /// The same by folds; none for leave-one-out.
    folds: Vec<LabelledRows>,
    /// What the SVMs of the first fold are trained on.
    seen: Part,
    /// Rows of the sample that decide when to stop, and the same with their classes.
    stopping: Vec<usize>,
    labelled_stopping: LabelledRows,
}

impl Division {
    fn new(sample: &Sample<'_>, criterion: Criterion) -> (Self, Problems) {
        let classes = sample.classes();
        let all = sample.all();
        let n = sample.rows();
        let (order, trained, fit, folds, seen, stopping, problems) = match criterion {
            Criterion::HoldOut => {
                let split = folds::train_valid_stop(sample.dealt());
                let t = split.train.rows.len();
                let train = sample.part(&split.train).numbered_from(0);
                let valid = sample.part(&split.valid).numbered_from(t);
                let problems = Problems::Folds(split_pairs(&train, &valid, classes));
                let fit = joined(&train, &valid);
                let order = [split.train.rows.as_slice(), &split.valid.rows].concat();
                (order, t, fit, vec![train, valid], split.train, split.stop, problems)
            }
            Criterion::KFold(k) => {
                let dealt = folds::k_folds(sample.dealt(), k);
                let problems = Problems::Folds(fold_pairs(sample, &dealt));
                let folds = dealt.iter().map(|fold| sample.part(&fold.valid)).collect();
                let seen = dealt.into_iter().next().unwrap_or_default().train;
                ((0..n).collect(), n, all, folds, seen, Part::default(), problems)
            }
            Criterion::LeaveOneOut => {
                let rows = all.of_pairs(classes);
                let problems = Problems::LeaveOneOut(rows, sample.shares());
                ((0..n).collect(), n, all, Vec::new(), Part::default(), Part::default(), problems)
            }
        };
        let labelled_stopping = sample.part(&stopping).numbered_from(0);
        let stopping = stopping.rows;
        (Self { order, trained, fit, folds, seen, stopping, labelled_stopping }, problems)
    }

    fn fold_rows(&self, classes: usize) -> FoldRows<'_> {
        FoldRows { class: &self.fit.class, classes, trained: self.trained, folds: &self.folds }
    }

    /// The rows of the kernel, and those that decide when to stop.
    fn rows<'a>(&self, sample: &Sample<'a>) -> (Cow<'a, Matrix>, Matrix) {
        let x = match self.order.iter().enumerate().all(|(at, &row)| at == row) {
            true => Cow::Borrowed(sample.x()),
            false => Cow::Owned(sample.x().select_rows(&self.order)),
        };
        (x, sample.x().select_rows(&self.stopping))
    }

    fn limits(&self, params: &Svml) -> Limits {
        let watched = !self.stopping.is_empty();
        let share = if watched { LEAST_SHARE_EARLY_STOPPING } else { LEAST_SHARE };
        Limits {
            iterations: params.max_iterations,
            tolerance: match params.landmarks {
                LandmarkChoice::Count(_) => TOLERANCE_SHARE * params.tolerance,
                _ => params.tolerance,
            },
            least_size: share * params.loss().value_and_slope(0.0).0,
            first_step: FIRST_STEP,
        }
    }

    /// The best step as a result, by rows of the sample.
    fn fit(
        &self,
        sample: &Sample<'_>,
        best: Best,
        trace: Vec<Step>,
        problems: &Problems,
        stop: Stop,
    ) -> SvmlFit {
        let Best { iteration, metric, cost, mut svms, valid_outputs, residual, .. } = best;
        // Of k folds the SVMs of the first.
        svms.truncate(pairs(sample.classes()).len());
        let trained = match problems {
            Problems::LeaveOneOut(..) => TrainedOn::All { left_out: valid_outputs },
            Problems::Folds(_) => TrainedOn::Part { seen: self.seen.clone() },
        };
        let support = svms.iter_mut().flat_map(|svm| &mut svm.support);
        support.for_each(|row| *row = self.order[*row]);
        SvmlFit { metric, cost, svms, trained, residual, trace, best: iteration, stop }
    }
}

/// One part of the rows after another.
fn joined(a: &LabelledRows, b: &LabelledRows) -> LabelledRows {
    LabelledRows {
        index: [a.index.as_slice(), &b.index].concat(),
        class: [a.class.as_slice(), &b.class].concat(),
        weight: [a.weight.as_slice(), &b.weight].concat(),
    }
}

/// What is measured at each step.
struct Measured {
    train_error: f64,
    valid_error: f64,
    stopping_error: Option<f64>,
    /// What decides which step is best, less being better: the error on the rows for early stopping, then
    /// their mean loss to break ties. Without such rows it is the value that is minimised.
    result: Option<(f64, f64)>,
}

struct Measure<'a> {
    sample: &'a Sample<'a>,
    division: &'a Division,
    /// The rows of the kernel.
    x: &'a Matrix,
    /// The rows for early stopping.
    x_stop: &'a Matrix,
    loss: Loss,
    kernel: Kernel,
}

impl Measure<'_> {
    fn measure(&self, point: &Point, problems: &Problems) -> Measured {
        let Point { metric, evaluation, .. } = point;
        let (classes, division) = (self.sample.classes(), self.division);
        if division.stopping.is_empty() {
            let (train_error, valid_error) = problems.errors(evaluation);
            return Measured { train_error, valid_error, stopping_error: None, result: None };
        }
        let error = |outputs: &Matrix, rows: &LabelledRows| {
            zero_one(&decide(&vote(outputs, classes)), &rows.class, &rows.weight)
        };
        let svms = PairwiseSvms::new(&evaluation.svms, classes, |row| division.fit.class[row]);
        let mapped = metric.transform(&self.x.select_rows(&svms.support));
        let outputs = svms.outputs(self.kernel, &metric.transform(self.x_stop), &mapped);
        let (train_error, valid_error) = if classes > 2 {
            // Each SVM knows the rows of its own classes only: the vote needs all of them.
            let fit = svms.outputs(self.kernel, &metric.transform(self.x), &mapped);
            let part = |rows: std::ops::Range<usize>| {
                let chosen: Vec<usize> = rows.clone().collect();
                error(&fit.select_rows(&chosen), &division.fit.range(rows))
            };
            (part(0..division.trained), part(division.trained..division.order.len()))
        } else {
            problems.errors(evaluation)
        };
        let stopping = &division.labelled_stopping;
        let stopping_error = error(&outputs, stopping);
        let result = Some((stopping_error, self.mean_loss(&outputs, stopping)));
        Measured { train_error, valid_error, stopping_error: Some(stopping_error), result }
    }

    /// Mean of the surrogate over the rows for early stopping of all pairs.
    fn mean_loss(&self, outputs: &Matrix, stopping: &LabelledRows) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (p, pair) in pairs(self.sample.classes()).into_iter().enumerate() {
            let rows = stopping.of_pair(pair);
            for ((&row, y), w) in rows.index.iter().zip(&rows.y).zip(&rows.weight) {
                sum += w * self.loss.value_and_slope(y * outputs[(row, p)]).0;
                total += w;
            }
        }
        sum / total.max(f64::MIN_POSITIVE)
    }
}

/// The steps so far.
struct Path {
    trace: Vec<Step>,
    best: Option<Best>,
}

/// The best step so far.
struct Best {
    iteration: usize,
    result: (f64, f64),
    metric: Metric,
    cost: f64,
    svms: Vec<BinarySvm>,
    valid_outputs: Vec<Vec<f64>>,
    residual: f64,
}

impl Path {
    fn new(trace: Vec<Step>) -> Self {
        Self { trace, best: None }
    }

    /// Records a step, and keeps it if it is the best.
    fn record(
        &mut self,
        accepted: &Accepted<'_>,
        point: &Point,
        kernel: Kernel,
        measured: &Measured,
        elapsed: Duration,
    ) -> Step {
        let Point { metric, cost, evaluation, .. } = point;
        let mut support: Vec<usize> =
            evaluation.svms.iter().flat_map(|svm| svm.support.iter().copied()).collect();
        support.sort_unstable();
        support.dedup();
        let step = Step {
            seconds: elapsed.as_secs_f64(),
            svml: Some(SvmlStep {
                form: Some(metric.form()),
                kernel: Some(kernel),
                half: false,
                train_error: measured.train_error,
                valid_error: measured.valid_error,
                stopping_error: measured.stopping_error,
                cost: *cost,
                support_vectors: support.len(),
            }),
            ..Step::new(self.trace.len(), accepted.value, accepted.step_length)
        };
        self.trace.push(step);
        let result = measured.result.unwrap_or((accepted.value, 0.0));
        if self.best.as_ref().is_none_or(|best| result < best.result) {
            self.best = Some(Best {
                iteration: step.iteration,
                result,
                metric: metric.clone(),
                cost: *cost,
                svms: evaluation.svms.clone(),
                valid_outputs: evaluation.valid_outputs.clone(),
                residual: evaluation.residual,
            });
        }
        step
    }

    /// Steps since the best.
    fn waited(&self) -> usize {
        let last = self.trace.last().map_or(0, |step| step.iteration);
        self.best.as_ref().map_or(0, |best| last - best.iteration)
    }
}
