//! The default: not one SVM but the mean of several that differ in kernel and metric.
//!
//! 1. Three members are learned, each on its own: a Gaussian kernel of one width, an exponential kernel with a weight for
//!    each feature, and a Laplacian kernel of one width. Their decision values are averaged with weights that
//!    minimise the error on rows that they have not seen (see [`cross_fit`](super::cross_fit)) plus a price for being
//!    far from equal weights.
//! 2. Where a few directions that are no columns do far better on those rows, by three standard errors, a Gaussian
//!    kernel of that rank takes the place of the others.
//!
//! `docs/math.md` in the repository says why.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::cross_fit::{CrossFit, Halves, MemberKind, RowValues};
use super::descent::{SvmlFit, descend};
use super::gradient_start::outer_product;
use super::{COST_RANGE, Svml, learn_form};
use crate::data::{Sample, pairs};
use crate::error::{Error, Result};
use crate::kernel;
use crate::learners::Init;
use crate::linalg::{self, Matrix};
use crate::metric::{Form, Kernel, Metric};
use crate::multiclass::solve_pair;
use crate::run::{Run, Step, Stop, Watch};
use crate::svm::BinarySvm;

/// The members of the mean. The first is the smooth and safe one, and what is left if time is short.
const MEMBERS: [MemberKind; 3] = [
    MemberKind { kernel: Kernel::Gaussian, form: Form::Sphere },
    MemberKind { kernel: Kernel::Exponential, form: Form::Diagonal },
    MemberKind { kernel: Kernel::Laplacian, form: Form::Sphere },
];
/// Weights are multiples of one over this.
const WEIGHT_STEPS: usize = 10;
/// Price of weights, times the square of their distance from equal weights.
const WEIGHT_PRICE: f64 = 0.05;
/// Standard errors by which low rank must lower the error before it is learned, and to be taken.
const SE_TRY_LOW_RANK: f64 = 2.0;
const SE_LOW_RANK: f64 = 3.0;
/// All members are tried with C times this: the squared hinge prefers smoother functions than the error does where a
/// class is rare or rows repeat. Standard errors by which that must lower the error.
const LARGER_COST: f64 = 10.0;
const SE_LARGER_COST: f64 = 2.0;
/// The smallest rank that is tried is that of the fewest directions with this share of the trace of G.
const TRACE_SHARE: f64 = 0.5;
/// G has d x d entries and its eigenvectors take d^3 operations: not for more columns than this.
const MOST_COLUMNS: usize = 1000;

/// A member of the mean, as it was learned on all rows.
#[derive(Clone, Debug)]
pub struct MemberFit {
    /// Its kernel.
    pub kernel: Kernel,
    /// Its share in the mean.
    pub weight: f64,
    /// C of the SVMs on all rows; that of `fit`, or larger.
    pub cost: f64,
    /// Metric, C and SVMs as they were learned.
    pub fit: SvmlFit,
}

impl MemberFit {
    fn new(kernel: Kernel, weight: f64, fit: SvmlFit) -> Self {
        Self { kernel, weight, cost: fit.cost, fit }
    }
}

/// What was learned.
#[derive(Clone, Debug)]
pub struct MeanFit {
    /// The members, in a fixed order.
    pub members: Vec<MemberFit>,
    /// What they do on rows that they have not seen.
    pub honest: Option<Honest>,
    /// What was compared to come to them.
    pub candidates: Vec<Candidate>,
    /// The steps of all members, one after the other.
    pub trace: Vec<Step>,
    /// The step of the trace that the last member is of.
    pub best: usize,
    /// Why the last of them ended.
    pub stop: Stop,
}

/// How well a model of half of the rows does on the other half, of whose labels it knows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Honest {
    /// Share of rows misclassified, by weight.
    pub error: f64,
    /// Mean of -log p(class of the row), natural logarithm.
    pub log_loss: f64,
    /// Error of who always names the class that is most frequent.
    pub guessing: f64,
    /// Standard error of `error`.
    pub standard_error: f64,
    /// The temperature of the probabilities.
    pub temperature: f64,
}

impl Honest {
    /// Whether the error is no better than guessing, to within two standard errors.
    pub fn is_no_better_than_guessing(&self) -> bool {
        self.error > self.guessing - 2.0 * self.standard_error
    }
}

/// A member that was considered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The form of the metric.
    pub form: Form,
    /// The kernel.
    #[serde(default = "gaussian")]
    pub kernel: Kernel,
    /// C; geometric mean of the two halves.
    pub cost: f64,
    /// Mean of the surrogate over rows that the SVMs have not seen; of former versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Share of rows misclassified by what was learned without them.
    pub error: f64,
    /// Its weight in the mean.
    #[serde(default)]
    pub weight: f64,
    /// Whether it is part of the model.
    pub chosen: bool,
}

fn gaussian() -> Kernel {
    Kernel::Gaussian
}

/// A member on the halves.
struct Considered {
    kind: MemberKind,
    cross: CrossFit,
}

impl Considered {
    fn cost(&self) -> f64 {
        let logs: Vec<f64> = self.cross.learned.iter().map(|(_, cost)| cost.ln()).collect();
        (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
    }

    fn with_cost(&self, halves: &Halves<'_>, factor: f64, watch: &Watch) -> Result<CrossFit> {
        let learned: Vec<(Metric, f64)> = (self.cross.learned.iter())
            .map(|(metric, cost)| (metric.clone(), (factor * cost).min(COST_RANGE.1)))
            .collect();
        halves.ask(self.kind.kernel, &learned, &self.cross.svms, watch)
    }
}

/// What the halves say: who is in the mean, with which weight, and how much larger C is to be.
struct Plan {
    members: Vec<(MemberKind, f64)>,
    /// What C is multiplied by after learning.
    factor: f64,
    honest: Option<Honest>,
    candidates: Vec<Candidate>,
}

impl Plan {
    /// Without anything to go by: all members alike.
    fn equal() -> Self {
        let weight = 1.0 / MEMBERS.len() as f64;
        let members = MEMBERS.iter().map(|&kind| (kind, weight)).collect();
        Self { members, factor: 1.0, honest: None, candidates: Vec::new() }
    }
}

/// Learns one member and, if asked to, what it does on rows that it was not learned on.
pub(crate) fn learn_one(
    sample: &Sample<'_>,
    form: Form,
    params: &Svml,
    run: &mut Run<'_>,
) -> Result<MeanFit> {
    let fit = learn_form(sample, form, params, run)?;
    let kind = MemberKind { kernel: params.kernel, form };
    let halves = if params.cross_fit && !fit.stop.is_early() { Halves::new(sample) } else { None };
    let honest = match halves.map(|halves| honest_of(&halves, kind, params, run)) {
        None | Some(Err(Error::Interrupted | Error::NotPositiveDefinite { .. })) => None,
        Some(honest) => Some(honest?),
    };
    let (trace, best, stop) = (fit.trace.clone(), fit.best, fit.stop);
    let members = vec![MemberFit::new(params.kernel, 1.0, fit)];
    Ok(MeanFit { members, honest, candidates: Vec::new(), trace, best, stop })
}

/// Cross-fits one member.
fn honest_of(
    halves: &Halves<'_>,
    kind: MemberKind,
    params: &Svml,
    run: &Run<'_>,
) -> Result<Honest> {
    Ok(Honest::new(halves, &halves.learn(kind, params, &[], run)?.outputs))
}

/// Learns the mean of members.
pub(crate) fn learn(sample: &Sample<'_>, params: &Svml, run: &mut Run<'_>) -> Result<MeanFit> {
    // A start from gradients is for forms that are given.
    let init = if params.init == Init::Gradients { Init::Scaled } else { params.init };
    let params = &Svml { init, ..params.clone() };
    let mut learned = MeanFit {
        members: Vec::new(),
        honest: None,
        candidates: Vec::new(),
        trace: Vec::new(),
        best: 0,
        stop: Stop::Minimum,
    };
    // The first member is learned before anything else, so that there is something to fall back on.
    let sphere = learned.learn(sample, MEMBERS[0], params, None, run)?;
    if sphere.stop.is_early() {
        learned.members.push(MemberFit::new(MEMBERS[0].kernel, 1.0, sphere));
        return Ok(learned);
    }
    let plan = match Halves::new(sample).filter(|_| params.cross_fit) {
        Some(halves) => match consider(&halves, params, run) {
            Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => Plan::equal(),
            plan => plan?,
        },
        None => Plan::equal(),
    };
    (learned.honest, learned.candidates) = (plan.honest, plan.candidates);
    let planned = plan.members.len();
    for (kind, weight) in plan.members {
        let fit = match kind.form {
            _ if kind == MEMBERS[0] => Ok(sphere.clone()),
            Form::Rank(rank) => low_rank_start(sample, rank, &sphere, run.watch())
                .and_then(|from| learned.learn(sample, kind, params, from, run)),
            _ => learned.learn(sample, kind, params, None, run),
        };
        let fit = match fit {
            // What is there is a model: the members that could be learned, or the first.
            Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => break,
            fit => fit?,
        };
        let (ended, cost) = (fit.stop.is_early(), (plan.factor * fit.cost).min(COST_RANGE.1));
        learned.members.push(MemberFit { cost, ..MemberFit::new(kind.kernel, weight, fit) });
        if ended {
            break;
        }
    }
    if run.watch().check().is_err() {
        learned.stop = run.watch().cause();
    }
    // What was measured is the error of all of them.
    if learned.members.len() < planned {
        learned.honest = None;
    }
    if learned.members.is_empty() {
        learned.members.push(MemberFit::new(MEMBERS[0].kernel, 1.0, sphere));
    }
    let total: f64 = learned.members.iter().map(|member| member.weight).sum();
    learned.members.iter_mut().for_each(|member| member.weight /= total);
    for candidate in &mut learned.candidates {
        let kind = (candidate.kernel, candidate.form);
        let member = learned.members.iter().find(|m| (m.kernel, m.fit.metric.form()) == kind);
        candidate.weight = member.map_or(0.0, |member| member.weight);
        candidate.chosen = member.is_some();
    }
    Ok(learned)
}

impl MeanFit {
    /// Learns a member, whose steps follow those that are there.
    fn learn(
        &mut self,
        sample: &Sample<'_>,
        kind: MemberKind,
        params: &Svml,
        from: Option<SvmlFit>,
        run: &mut Run<'_>,
    ) -> Result<SvmlFit> {
        let first = self.trace.len();
        let params = kind.params(params);
        let fit = descend(sample, kind.form, &params, from, &mut run.numbered_from(first))?;
        // A start that nothing could be learned from has no SVMs.
        if fit.svms.is_empty() {
            return Err(Error::Interrupted);
        }
        let steps = fit.trace.iter().enumerate();
        self.trace.extend(steps.map(|(k, step)| Step { iteration: first + k, ..*step }));
        (self.best, self.stop) = (first + fit.best, fit.stop);
        Ok(fit)
    }
}

impl Honest {
    /// From outputs at the rows that are asked.
    fn new(halves: &Halves<'_>, outputs: &Matrix) -> Self {
        let temperature = halves.temperature(outputs);
        let weight = &halves.asked.weight;
        let error = halves.wrong(outputs).mean();
        // So many rows of equal weight would tell as much.
        let rows = weight.iter().sum::<f64>().powi(2) / weight.iter().map(|w| w * w).sum::<f64>();
        Self {
            error,
            log_loss: halves.log_loss(outputs, temperature),
            guessing: halves.guessing(),
            standard_error: (error * (1.0 - error) / rows).sqrt(),
            temperature,
        }
    }
}

/// Cross-fits the members and decides.
fn consider(halves: &Halves<'_>, params: &Svml, run: &Run<'_>) -> Result<Plan> {
    let watch = run.watch();
    let mut considered = Vec::with_capacity(MEMBERS.len() + 1);
    for kind in MEMBERS {
        considered.push(Considered { kind, cross: halves.learn(kind, params, &[], run)? });
    }
    let outputs: Vec<&Matrix> = considered.iter().map(|member| &member.cross.outputs).collect();
    let mut weights = best_weights(halves, &outputs);
    let mut mean = mean_of(&outputs, &weights);
    let mut factor = 1.0;

    // Few directions instead.
    if let Some(low) = low_rank(halves, params, &considered[0], run)? {
        if halves.wrong(&low.cross.outputs).below(&halves.wrong(&mean), SE_LOW_RANK) {
            mean = low.cross.outputs.clone();
            weights = vec![0.0; weights.len()];
            weights.push(1.0);
        } else {
            weights.push(0.0);
        }
        considered.push(low);
    }

    // The same members with a larger C, if SVMs are trained again.
    if params.learn_cost && params.refit {
        let larger: Vec<Matrix> = (considered.iter().zip(&weights))
            .map(|(member, &weight)| match weight > 0.0 {
                true => Ok(member.with_cost(halves, LARGER_COST, watch)?.outputs),
                false => Ok(member.cross.outputs.clone()),
            })
            .collect::<Result<_>>()?;
        let larger = mean_of(&larger.iter().collect::<Vec<_>>(), &weights);
        if halves.wrong(&larger).below(&halves.wrong(&mean), SE_LARGER_COST) {
            (mean, factor) = (larger, LARGER_COST);
        }
    }

    let honest = Honest::new(halves, &mean);
    let candidates = (considered.iter().zip(&weights))
        .map(|(member, &weight)| Candidate {
            form: member.cross.learned[0].0.form(),
            kernel: member.kind.kernel,
            cost: factor * member.cost(),
            loss: None,
            error: halves.wrong(&member.cross.outputs).mean(),
            weight,
            chosen: weight > 0.0,
        })
        .collect();
    let members = (considered.iter().zip(&weights))
        .filter(|(_, weight)| **weight > 0.0)
        .map(|(member, &weight)| (member.kind, weight))
        .collect();
    Ok(Plan { members, factor, honest: Some(honest), candidates })
}

/// The weighted mean of outputs.
fn mean_of(outputs: &[&Matrix], weights: &[f64]) -> Matrix {
    let (rows, cols) = (outputs[0].rows(), outputs[0].cols());
    let mut mean = Matrix::zeros(rows, cols);
    for (outputs, weight) in outputs.iter().zip(weights).filter(|(_, weight)| **weight > 0.0) {
        let values = mean.as_mut_slice().iter_mut().zip(outputs.as_slice());
        values.for_each(|(mean, h)| *mean += weight * h);
    }
    mean
}

/// The weights that minimise error + price x |weights - equal|^2, of those on a grid; the first of equals, from equal
/// weights on.
fn best_weights(halves: &Halves<'_>, outputs: &[&Matrix]) -> Vec<f64> {
    let equal = 1.0 / outputs.len() as f64;
    let mut best: Option<(f64, Vec<f64>)> = None;
    let mut consider = |weights: Vec<f64>| {
        let far: f64 = weights.iter().map(|w| (w - equal).powi(2)).sum();
        let value = halves.wrong(&mean_of(outputs, &weights)).mean() + WEIGHT_PRICE * far;
        if best.as_ref().is_none_or(|(least, _)| value < *least) {
            best = Some((value, weights));
        }
    };
    consider(vec![equal; outputs.len()]);
    let mut parts = vec![0; outputs.len()];
    let _ = compositions(WEIGHT_STEPS, 0, &mut parts, &mut |parts| {
        consider(parts.iter().map(|&part| part as f64 / WEIGHT_STEPS as f64).collect());
        ControlFlow::Continue(())
    });
    best.map_or_else(|| vec![equal; outputs.len()], |(_, weights)| weights)
}

/// Calls `each` with all ways to write `left` as a sum of the parts from `at` on.
fn compositions(
    left: usize,
    at: usize,
    parts: &mut Vec<usize>,
    each: &mut dyn FnMut(&[usize]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if at + 1 == parts.len() {
        parts[at] = left;
        return each(parts);
    }
    for part in 0..=left {
        parts[at] = part;
        compositions(left - part, at + 1, parts, each)?;
    }
    ControlFlow::Continue(())
}

/// The directions along which SVMs with a spherical metric change, those that count most first, with their shares.
struct Directions {
    /// Shares, adding up to one.
    shares: Vec<f64>,
    /// Orthonormal rows.
    vectors: Matrix,
    /// Metric and C of the SVMs.
    sphere: (Metric, f64),
    /// Sum of squares of the rows mapped by that metric.
    size: f64,
}

impl Directions {
    /// From SVMs on all rows of the sample; none if they are constant.
    fn new(sample: &Sample<'_>, metric: &Metric, cost: f64, watch: &Watch) -> Result<Option<Self>> {
        let (n, all) = (sample.rows(), sample.all());
        let gram = kernel::backend().gram(sample.x(), n, metric, Kernel::Gaussian, watch)?;
        let svms: Vec<BinarySvm> = (pairs(sample.classes()).into_iter())
            .map(|pair| Ok(solve_pair(&*gram, &all.of_pair(pair), cost, None)?.svm))
            .collect::<Result<_>>()?;
        // For a sphere M is a multiple of I, and G is so up to a factor.
        let g = outer_product(&*gram, sample, &svms);
        let Some((values, vectors)) = linalg::symmetric_eigen(&g) else { return Ok(None) };
        let values: Vec<f64> = values.into_iter().map(|v| v.max(0.0)).collect();
        let trace: f64 = values.iter().sum();
        if trace <= 0.0 || !trace.is_finite() {
            return Ok(None);
        }
        let shares = values.iter().map(|v| v / trace).collect();
        let (sphere, size) = ((metric.clone(), cost), size(metric, sample));
        Ok(Some(Self { shares, vectors, sphere, size }))
    }

    /// The fewest directions that carry half of the trace.
    fn few(&self) -> usize {
        let mut carried = 0.0;
        let before = self.shares.iter().take_while(|share| {
            carried += **share;
            carried < TRACE_SHARE
        });
        1 + before.count()
    }

    /// A metric of the leading directions that maps rows to the size that the sphere does, and its C.
    fn metric(&self, rank: usize, sample: &Sample<'_>) -> Result<(Metric, f64)> {
        let d = self.vectors.cols();
        let l = Matrix::from_fn(rank, d, |i, k| self.shares[i].sqrt() * self.vectors[(i, k)]);
        let low = Metric::new(Form::Rank(rank), d, l.into_vec())?;
        let scale = (self.size / size(&low, sample)).sqrt();
        Ok((low.scaled(if scale.is_finite() { scale } else { 1.0 })?, self.sphere.1))
    }
}

fn size(metric: &Metric, sample: &Sample<'_>) -> f64 {
    metric.transform(sample.x()).as_slice().iter().map(|z| z * z).sum()
}

/// A low-rank member, if the directions along which the SVMs of the sphere change promise one: on each half the
/// leading ones make a metric, whose SVMs are asked on the other half.
fn low_rank(
    halves: &Halves<'_>,
    params: &Svml,
    sphere: &Considered,
    run: &Run<'_>,
) -> Result<Option<Considered>> {
    let d = halves.half(0)?.features();
    if !(3..=MOST_COLUMNS).contains(&d) {
        return Ok(None);
    }
    let mut directions = Vec::with_capacity(halves.count());
    for (half, (metric, cost)) in sphere.cross.learned.iter().enumerate() {
        match Directions::new(&halves.half(half)?, metric, *cost, run.watch())? {
            Some(found) => directions.push(found),
            None => return Ok(None),
        }
    }
    let metrics = |rank: usize| -> Result<Vec<(Metric, f64)>> {
        let of = |(half, found): (usize, &Directions)| found.metric(rank, &halves.half(half)?);
        directions.iter().enumerate().map(of).collect()
    };
    let ask = |rank: usize| -> Result<RowValues> {
        let asked =
            halves.ask(Kernel::Gaussian, &metrics(rank)?, &sphere.cross.svms, run.watch())?;
        Ok(halves.wrong(&asked.outputs))
    };
    let mut rank = directions.iter().map(Directions::few).max().unwrap_or(1).min(d - 1);
    let mut best = ask(rank)?;
    if !best.below(&halves.wrong(&sphere.cross.outputs), SE_TRY_LOW_RANK) {
        return Ok(None);
    }
    // One more direction as long as it helps.
    while rank + 1 < d {
        let next = ask(rank + 1)?;
        if !next.below(&best, SE_TRY_LOW_RANK) {
            break;
        }
        (best, rank) = (next, rank + 1);
    }
    let kind = MemberKind { kernel: Kernel::Gaussian, form: Form::Rank(rank) };
    Ok(Some(Considered { kind, cross: halves.learn(kind, params, &metrics(rank)?, run)? }))
}

/// A start for a low-rank member on all rows: the directions of the sphere.
fn low_rank_start(
    sample: &Sample<'_>,
    rank: usize,
    sphere: &SvmlFit,
    watch: &Watch,
) -> Result<Option<SvmlFit>> {
    let found = Directions::new(sample, &sphere.metric, sphere.cost, watch)?;
    let Some(found) = found else { return Ok(None) };
    let (metric, cost) = found.metric(rank, sample)?;
    Ok(Some(SvmlFit::start(metric, cost)))
}
