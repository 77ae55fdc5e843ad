//! The form of the metric, chosen from the training rows: `form = auto`.
//!
//! 1. Learn a sphere.
//! 2. Take the gradient outer product G of its SVMs. If L built from G's leading eigenvectors has a lower
//!    validation loss and error than the sphere and than L built from the diagonal of G, by 3 standard errors,
//!    learn a low-rank L from there; otherwise learn a diagonal L.
//! 3. Compare what was learned on a fresh set of folds, pairing rows, and prefer the new form only if its error is
//!    lower by at least a quarter of a standard error, and for low rank the loss by two. If low rank is not
//!    preferred, learn a diagonal and compare that.
//! 4. Unless the sphere is far behind, try it once more with ten times its C.
//!
//! `docs/math.md` in the repository says why.

use std::mem;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::criterion::{Criterion, PairFold, fold_pairs, validation_outputs};
use super::descent::{SvmlFit, TrainedOn, descend};
use super::gradient_start::outer_product;
use super::{COST_RANGE, Svml};
use crate::data::folds::{self, Fold};
use crate::data::{Sample, pairs};
use crate::error::{Error, Result};
use crate::kernel::{self, Gram};
use crate::linalg::{self, Matrix};
use crate::loss::Loss;
use crate::metric::{Form, Metric};
use crate::multiclass::{decide, outputs, solve_pair, vote};
use crate::run::{Run, Watch};
use crate::svm::BinarySvm;

/// Folds for the sphere: something to compare with and to fall back on, so it need not be exact.
const SPHERE_FOLDS: usize = 2;
/// Folds to compare forms with, where the criterion has none of its own.
const FOLDS: usize = 5;
/// The sphere is tried with C times this as well: a proper scoring loss prefers smoother SVMs than the
/// zero-one loss does when one class is rare.
const LARGER_COST: f64 = 10.0;
/// Standard errors by which low rank must lower the loss, and by which one more direction must do so; the
/// same in loss and errors for a diagonal to start from.
const SE_LOWER_LOSS: f64 = 2.0;
/// Standard errors, in loss and errors, by which leading directions must be better than both the sphere
/// and a diagonal for low rank to be tried.
const SE_LOW_RANK: f64 = 3.0;
/// Standard errors by which any change of form must lower the share misclassified.
const SE_ANY_CHANGE: f64 = 0.25;
/// The smallest rank that is tried is that of the fewest directions with this share of the trace of G.
const TRACE_SHARE: f64 = 0.5;
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
    /// Mean of the surrogate over rows that the SVMs have not seen, by weight.
    pub loss: f64,
    /// Share of those rows misclassified.
    pub error: f64,
    /// Whether it was chosen.
    pub chosen: bool,
}

/// Learns metric and C in a form that is chosen, with what it was chosen from.
pub(super) fn choose(
    sample: &Sample<'_>,
    params: &Svml,
    run: &mut Run<'_>,
) -> Result<(SvmlFit, Vec<Candidate>)> {
    let rough = Svml { criterion: Criterion::KFold(SPHERE_FOLDS), ..params.clone() };
    let sphere = descend(sample, Form::Sphere, &rough, None, run)?;
    if sphere.stop.is_early() {
        return Ok((sphere, Vec::new()));
    }
    let mut best = sphere.clone();
    match learn_and_compare(sample, params, &sphere, &mut best, run) {
        Ok(candidates) => Ok((best, candidates)),
        Err(Error::Interrupted) => {
            best.stop = run.watch().cause();
            Ok((best, Vec::new()))
        }
        // Rounding hides which rows are close: nothing to compare.
        Err(Error::NotPositiveDefinite { .. }) => Ok((best, Vec::new())),
        Err(error) => Err(error),
    }
}

/// Learns what the sphere's SVMs point to, and compares. `best` is the best so far.
fn learn_and_compare(
    sample: &Sample<'_>,
    params: &Svml,
    sphere: &SvmlFit,
    best: &mut SvmlFit,
    run: &mut Run<'_>,
) -> Result<Vec<Candidate>> {
    let watch = run.watch().clone();
    let (first, svms) = propose_start(sample, params, sphere, &watch)?;
    let mut next = Some(first);
    let folds = Validator::again(sample, params);
    let mut candidates = Vec::new();
    let mut consider = |form: Form, validation: &Validation| {
        let (loss, error) = (validation.loss.mean(), validation.wrong.mean());
        candidates.push(Candidate { form, cost: validation.cost, loss, error, chosen: false });
        candidates.len() - 1
    };
    // The kernel matrix is rebuilt for each candidate rather than kept: memory is the scarcer resource.
    let validate = |metric: &Metric, cost: f64, starts: &[BinarySvm]| {
        folds.validate(&*folds.gram(metric, &watch)?, cost, starts)
    };
    let mut best_validation = validate(&sphere.metric, sphere.cost, &folds.guess(&svms))?;
    let mut chosen = consider(Form::Sphere, &best_validation);
    // SVMs of other metrics start from the support rows of the sphere's.
    let starts = best_validation.svms.clone();

    // Whether spheres may still be as good.
    let mut near = true;
    while let Some((metric, cost)) = next.take() {
        let form = metric.form();
        let (svms, trace) = (svms.clone(), best.trace.clone());
        let from = SvmlFit { metric, cost, svms, trace, ..sphere.clone() };
        let learned = descend(sample, form, params, Some(from), run)?;
        if learned.stop.is_early() {
            (best.trace, best.stop) = (learned.trace, learned.stop);
            return Ok(Vec::new());
        }
        // What comes back if time runs out now.
        let before = mem::replace(best, learned);
        let validation = validate(&best.metric, best.cost, &starts)?;
        let index = consider(form, &validation);
        let fewer = validation.wrong.below(&best_validation.wrong);
        let lower = validation.loss.below(&best_validation.loss);
        let better_loss = form == Form::Diagonal || lower.significant(SE_LOWER_LOSS);
        if fewer.significant(SE_ANY_CHANGE) && better_loss {
            (best_validation, chosen, near) =
                (validation, index, !fewer.significant(SE_LOWER_LOSS));
        } else {
            *best = SvmlFit { trace: mem::take(&mut best.trace), ..before };
            if form != Form::Diagonal {
                next = Some((params.init.metric(sample, Form::Diagonal)?, params.initial_cost));
            }
        }
    }

    // Back to a sphere with a harder margin, unless that is far behind.
    let cost = (LARGER_COST * sphere.cost).min(COST_RANGE.1);
    if near && params.learn_cost && cost > sphere.cost {
        let validation = validate(&sphere.metric, cost, &starts)?;
        let index = consider(Form::Sphere, &validation);
        if validation.wrong.below(&best_validation.wrong).significant(SE_ANY_CHANGE) {
            let mut svms = validation.svms;
            svms.truncate(pairs(sample.classes()).len());
            let trained = TrainedOn::Part { unseen: folds.folds[0].valid.clone() };
            *best = SvmlFit { cost, svms, trained, trace: best.trace.clone(), ..sphere.clone() };
            chosen = index;
        }
    }
    candidates[chosen].chosen = true;
    Ok(candidates)
}

/// The metric and C to learn from next, and the sphere's SVMs on all rows. The directions along which
/// these change (see [`outer_product`]) are taken as they are, at the sphere's size: the leading ones for low rank, or
/// column by column for a diagonal. If neither is better than the sphere, a diagonal starts with all
/// columns alike.
fn propose_start(
    sample: &Sample<'_>,
    params: &Svml,
    sphere: &SvmlFit,
    watch: &Watch,
) -> Result<((Metric, f64), Vec<BinarySvm>)> {
    let alike = (params.init.metric(sample, Form::Diagonal)?, params.initial_cost);
    let (n, d) = (sample.rows(), sample.features());
    if d < 2 || d > MOST_COLUMNS.min(n) {
        return Ok((alike, sphere.svms.clone()));
    }
    let folds = Validator::new(sample, params, folds::stratified(sample.class(), SPHERE_FOLDS));
    let gram = folds.gram(&sphere.metric, watch)?;
    let all = sample.all();
    let sphere_validation = folds.validate(&*gram, sphere.cost, &folds.guess(&sphere.svms))?;
    let classes = pairs(sample.classes());
    let likely = |p: usize| {
        let halves = sphere_validation.svms.iter().skip(p).step_by(classes.len());
        let mut rows: Vec<usize> = halves.flat_map(|half| half.support.iter().copied()).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    };
    let svms: Vec<BinarySvm> = (classes.par_iter().enumerate())
        .map(|(p, &pair)| {
            let rows = all.of_pair(pair);
            Ok(solve_pair(&*gram, &rows, sphere.cost, Some(&likely(p)))?.svm)
        })
        .collect::<Result<_>>()?;
    // For a sphere M is a multiple of I.
    let g = outer_product(&*gram, sample, &svms);
    let Some((values, vectors)) = linalg::symmetric_eigen(&g) else {
        return Ok((alike, svms));
    };
    let values: Vec<f64> = values.into_iter().map(|v| v.max(0.0)).collect();
    let trace: f64 = values.iter().sum();
    if trace <= 0.0 || !trace.is_finite() {
        return Ok((alike, svms));
    }
    let size = |metric: &Metric| -> f64 {
        metric.transform(sample.x()).as_slice().iter().map(|z| z * z).sum()
    };
    let validate = |form: Form, l: &[f64]| {
        let unscaled = Metric::new(form, d, l.to_vec())?;
        let scale = (size(&sphere.metric) / size(&unscaled)).sqrt();
        let metric = unscaled.scaled(if scale.is_finite() { scale } else { 1.0 })?;
        let gram = folds.gram(&metric, watch)?;
        let validation = folds.validate(&*gram, sphere.cost, &sphere_validation.svms)?;
        Ok::<_, Error>((metric, validation))
    };
    let leading = |rank: usize| {
        let l = |i: usize, k: usize| (values[i] / trace).sqrt() * vectors[(i, k)];
        validate(Form::Rank(rank), Matrix::from_fn(rank, d, l).as_slice())
    };
    // From the fewest that carry half of the trace on, as long as one more helps beyond chance.
    let mut carried = 0.0;
    let few = values.iter().take_while(|v| {
        carried += **v;
        carried < TRACE_SHARE * trace
    });
    let mut rank = 1 + few.count();
    let (mut low, mut low_validation) = leading(rank)?;
    while rank < d {
        rank += 1;
        let (next, next_validation) = leading(rank)?;
        if !next_validation.loss.below(&low_validation.loss).significant(SE_LOWER_LOSS) {
            break;
        }
        (low, low_validation) = (next, next_validation);
    }
    let columns: Vec<f64> = (0..d).map(|k| (g[(k, k)].max(0.0) / trace).sqrt()).collect();
    let (diagonal, diagonal_validation) = validate(Form::Diagonal, &columns)?;
    let next = if [&sphere_validation, &diagonal_validation]
        .iter()
        .all(|other| low_validation.better(other, SE_LOW_RANK))
    {
        (low, sphere.cost)
    } else if diagonal_validation.better(&sphere_validation, SE_LOWER_LOSS) {
        (diagonal, sphere.cost)
    } else {
        alike
    };
    Ok((next, svms))
}

/// Folds to validate a metric and C on.
struct Validator<'a> {
    sample: &'a Sample<'a>,
    loss: Loss,
    folds: Vec<Fold>,
    /// Fold after fold, every pair of classes.
    pairs: Vec<PairFold>,
}

/// What SVMs give on rows that they have not seen.
struct Validation {
    cost: f64,
    /// Surrogate of each such row of each pair of classes.
    loss: RowValues,
    /// Whether each row is misclassified.
    wrong: RowValues,
    /// Fold after fold, those trained without it.
    svms: Vec<BinarySvm>,
}

impl Validation {
    /// Whether loss and errors are lower than those of another by so many standard errors.
    fn better(&self, than: &Self, errors: f64) -> bool {
        self.loss.below(&than.loss).significant(errors)
            && self.wrong.below(&than.wrong).significant(errors)
    }
}

impl<'a> Validator<'a> {
    /// On other folds than those that were learned on.
    fn again(sample: &'a Sample<'a>, params: &Svml) -> Self {
        let k = match params.criterion {
            Criterion::KFold(k) => k,
            Criterion::HoldOut | Criterion::LeaveOneOut => FOLDS,
        };
        Self::new(sample, params, folds::dealt_again(sample.class(), k))
    }

    fn new(sample: &'a Sample<'a>, params: &Svml, folds: Vec<Fold>) -> Self {
        let pairs = fold_pairs(&sample.all(), sample.classes(), &folds);
        Self { sample, loss: params.loss(), folds, pairs }
    }

    fn gram(&self, metric: &Metric, watch: &Watch) -> Result<Box<dyn Gram + 'a>> {
        kernel::backend().gram(self.sample.x(), self.sample.rows(), metric, watch)
    }

    /// The SVMs of one deal as a start for each problem of this one.
    fn guess(&self, svms: &[BinarySvm]) -> Vec<BinarySvm> {
        let count = pairs(self.sample.classes()).len();
        let svms = svms.iter().take(count).cycle();
        svms.take(self.pairs.len()).cloned().collect()
    }

    fn validate(&self, gram: &dyn Gram, cost: f64, starts: &[BinarySvm]) -> Result<Validation> {
        let classes = self.sample.classes();
        let (svms, h) = validation_outputs(gram, &self.pairs, cost, starts)?;
        let mut loss = RowValues::default();
        for (PairFold { valid, .. }, h) in self.pairs.iter().zip(&h) {
            for ((y, h), w) in valid.y.iter().zip(h).zip(&valid.weight) {
                loss.push(self.loss.value_and_slope(y * h).0, *w);
            }
        }
        let mut wrong = RowValues::default();
        for (Fold { valid, .. }, svms) in self.folds.iter().zip(svms.chunks(pairs(classes).len())) {
            let decided = decide(&vote(&outputs(gram, valid, svms), classes));
            for (&row, decided) in valid.iter().zip(decided) {
                let right = decided == self.sample.class()[row];
                wrong.push(if right { 0.0 } else { 1.0 }, self.sample.weight()[row]);
            }
        }
        Ok(Validation { cost, loss, wrong, svms })
    }
}

/// Values with their weights.
#[derive(Default)]
struct RowValues(Vec<(f64, f64)>);

/// A mean, and its standard error if it were zero.
struct Mean {
    mean: f64,
    error: f64,
}

impl RowValues {
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
