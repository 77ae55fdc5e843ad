//! The default: not one SVM but the mean of several that differ in kernel and metric.
//!
//! 1. Three members are learned: a Gaussian kernel of one width, an exponential kernel with a weight for each feature,
//!    and a Laplacian kernel of one width; each on either half of the rows, and then for a few steps on all rows from the
//!    mean of what the halves have learned. Their decision values are averaged with weights that minimise the
//!    error on rows that were not used to learn (see [`cross_fit`](super::cross_fit)) plus a price for being far from
//!    equal weights.
//! 2. What differs from that must be better on those rows by two standard errors: a member is left out if another is
//!    better alone, all C are ten times as large, or a Gaussian kernel of a few directions that are no columns takes the
//!    place of the others.
//!
//! `docs/math.md` in the repository says why.

use std::ops::{ControlFlow, Range};

use serde::{Deserialize, Serialize};

use super::approach::{Approach, LandmarkChoice};
use super::cross_fit::{CrossFit, Halves, MemberKind, RowValues};
use super::descent::{SvmlFit, descend};
use super::gradient_start::outer_product;
use super::{COST_RANGE, Svml, learn_form};
use crate::calibrate::{self, LEAST_CERTAIN};
use crate::data::Sample;
use crate::error::{Error, Result};
use crate::kernel::{self, Gram};
use crate::learners::Init;
use crate::linalg::{self, Block, Matrix};
use crate::loss::zero_one;
use crate::metric::{Form, Kernel, Metric};
use crate::multiclass::{decide, train_pairs, vote};
use crate::parallel;
use crate::run::{Activity, Key, Run, Step, Stop, Watch};
use crate::svm::BinarySvm;

/// The members of the mean. The first is the smooth and safe one, and what is left if time is short.
const MEMBERS: [MemberKind; 3] = [
    MemberKind { kernel: Kernel::Gaussian, form: Form::Sphere },
    MemberKind { kernel: Kernel::Exponential, form: Form::Diagonal },
    MemberKind { kernel: Kernel::Laplacian, form: Form::Sphere },
];
/// The members where there are so many rows that a weight for each feature is learned without overfitting.
const MEMBERS_OF_MANY_ROWS: [MemberKind; 3] = [
    MemberKind { kernel: Kernel::Gaussian, form: Form::Diagonal },
    MemberKind { kernel: Kernel::Exponential, form: Form::Diagonal },
    MemberKind { kernel: Kernel::Laplacian, form: Form::Diagonal },
];
/// So many rows for each feature are many.
const ROWS_PER_FEATURE: usize = 50;
/// Weights are multiples of one over this.
const WEIGHT_STEPS: usize = 10;
/// Price of weights, times the square of their distance from equal weights.
const WEIGHT_PRICE: f64 = 0.05;
/// What takes the place of something simpler must be better on rows not seen by so many standard errors.
const STANDARD_ERRORS: f64 = 2.0;
/// All members are tried with C times this: the squared hinge prefers smoother functions than the error does where a
/// class is rare or rows repeat.
const LARGER_COST: f64 = 10.0;
/// What probabilities must gain on equal ones in log-likelihood, on all rows together, to be more than chance: by as
/// much a parameter without meaning gains in one case of twenty.
const LEAST_GAIN: f64 = 2.0;
/// The smallest rank that is tried is that of the fewest directions with this share of the trace of G.
const TRACE_SHARE: f64 = 0.5;
/// So many ranks, from the smallest on, are tried before few directions are given up. Where two directions count alike, as
/// for a circle, the smallest rank may be that of only one of them, which is worth nothing without the other.
const FIRST_RANKS: usize = 2;
/// Members of fewer rows than this are learned beside each other.
pub(crate) const BESIDE_EACH_OTHER: usize = 1500;
/// With landmarks so many rows say whether few directions promise anything.
const SCREENED_ROWS: usize = 1500;
/// Halves whose maps are less like that of all rows than this have ended in other minima, if the reported error is besides so
/// far above that on validation rows.
const LEAST_ALIKE: f64 = 0.9;
const FAR_ABOVE: f64 = 0.1;
/// G has d x d entries and its eigenvectors take d^3 operations: not for more columns than this.
pub(super) const MOST_COLUMNS: usize = 1000;

/// A member of the mean.
#[derive(Clone, Debug)]
pub struct MemberFit {
    /// Its kernel.
    pub kernel: Kernel,
    /// Its share in the mean.
    pub weight: f64,
    /// L of the SVMs on all rows.
    pub metric: Metric,
    /// C of the SVMs on all rows; as it was learned, or larger.
    pub cost: f64,
    /// How many times larger.
    pub cost_factor: f64,
    /// For each pair of classes the rows that are likely to be support vectors of these, if that is known.
    pub likely_support: Vec<Vec<usize>>,
    /// Metric, C and SVMs as they were learned.
    pub fit: SvmlFit,
}

impl MemberFit {
    /// Its kernel, and metric and C as it was learned.
    pub fn learned(&self) -> (Kernel, &Metric, f64) {
        (self.kernel, &self.fit.metric, self.fit.cost)
    }

    fn new(kernel: Kernel, weight: f64, fit: SvmlFit) -> Self {
        let (metric, cost) = (fit.metric.clone(), fit.cost);
        Self { kernel, weight, metric, cost, cost_factor: 1.0, likely_support: Vec::new(), fit }
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
    /// What the user should know about the error that is reported.
    pub warning: Option<String>,
}

/// How well a model of half of the rows does on the other half, of whose labels it knows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Honest {
    /// Share of rows misclassified, by their sample weights; class weights do not count.
    pub error: f64,
    /// Mean of -log p(class of the row), natural logarithm.
    pub log_loss: f64,
    /// Error of always predicting the most frequent class.
    pub guessing: f64,
    /// Standard error of `error`.
    pub standard_error: f64,
    /// The temperature of the probabilities.
    pub temperature: f64,
    /// Whether the rows were put aside, which is done with very many of them; else each half was asked about the other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub put_aside: bool,
    /// Log loss of always predicting the frequencies of the classes.
    #[serde(default)]
    pub guessing_log_loss: f64,
    /// Whether `log_loss` is below that by three standard errors of the difference.
    #[serde(default)]
    pub better_log_loss: bool,
    /// Whether rows have sample weights that differ, so that all of this is weighted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighted: bool,
}

impl Honest {
    /// Whether neither the error nor the log loss is better than what is known without a model, to within three standard
    /// errors: rows that validate each other err together, and so such errors scatter more than those of as many independent
    /// rows. Of a rare class often only the probabilities are better.
    pub fn is_no_better_than_guessing(&self) -> bool {
        self.error > self.guessing - SURE * self.standard_error && !self.better_log_loss
    }
}

/// So many standard errors make sure that a model is better than guessing.
const SURE: f64 = 3.0;

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
    /// The geometric mean of C of the halves.
    fn cost(&self) -> f64 {
        let logs: Vec<f64> = self.cross.learned.iter().map(|fit| fit.cost.ln()).collect();
        (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
    }

    /// The mean of M of the halves.
    fn metric(&self) -> Result<Metric> {
        let first = &self.cross.learned[0].metric;
        let mut squares = vec![0.0; first.values().len()];
        for fit in &self.cross.learned {
            let values = squares.iter_mut().zip(fit.metric.values());
            values.for_each(|(sum, value)| *sum += value * value);
        }
        let halves = self.cross.learned.len() as f64;
        let values = squares.into_iter().map(|sum| (sum / halves).sqrt()).collect();
        Metric::new(first.form(), first.features(), values)
    }
}

/// Learns one member and, if asked to, what it does on rows that it was not learned on.
pub(crate) fn learn_one(
    sample: &Sample<'_>,
    form: Form,
    params: &Svml,
    approach: Approach,
    run: &mut Run<'_>,
) -> Result<MeanFit> {
    let params = &approach.learning(params);
    let fit = learn_form(sample, form, params, run)?;
    let kind = MemberKind { kernel: params.kernel, form };
    let halves = match params.cross_fit && !fit.stop.is_early() {
        true => Halves::new(sample, approach),
        false => None,
    };
    let watch = run.watch().clone();
    let (honest, warning) = match halves.map(|halves| honest_of(&halves, kind, params, &watch)) {
        None | Some(Err(Error::Interrupted | Error::NotPositiveDefinite { .. })) => (None, None),
        Some(found) => {
            let (honest, learned) = found?;
            (Some(honest), elsewhere(&fit, &honest, &learned, sample.x()))
        }
    };
    let (trace, best, stop) = (fit.trace.clone(), fit.best, fit.stop);
    let members = vec![MemberFit::new(params.kernel, 1.0, fit)];
    Ok(MeanFit { members, honest, candidates: Vec::new(), trace, best, stop, warning })
}

/// A warning if the halves have learned other directions than all rows, so that what is reported is not of such a model.
fn elsewhere(fit: &SvmlFit, honest: &Honest, learned: &[SvmlFit], x: &Matrix) -> Option<String> {
    let Form::Rank(_) = fit.metric.form() else { return None };
    let z = fit.metric.transform(x);
    let likeness = |half: &SvmlFit| likeness(&z, &half.metric.transform(x));
    let alike = learned.iter().map(likeness).sum::<f64>() / learned.len() as f64;
    let valid = fit.trace.get(fit.best)?.svml?.valid_error;
    (alike < LEAST_ALIKE && honest.error - valid > FAR_ABOVE).then(|| {
        format!(
            "the reported error may be far above that of this model: models of half of the rows look along other directions (likeness {alike:.2}, 1 being the same); more rows or the form auto would help, and rows that were put aside would tell"
        )
    })
}

/// How alike two maps of the same rows are, whatever their scales and rotations: 1 if the distances are the same, 0 if they
/// have nothing in common.
fn likeness(a: &Matrix, b: &Matrix) -> f64 {
    let square = |a: &Matrix, b: &Matrix| -> f64 {
        let products = linalg::multiply(Block::from(a).t(), b.into());
        products.as_slice().iter().map(|v| v * v).sum()
    };
    square(a, b) / (square(a, a) * square(b, b)).sqrt().max(f64::MIN_POSITIVE)
}

/// Cross-fits one member; with it what was learned on the halves.
fn honest_of(
    halves: &Halves<'_>,
    kind: MemberKind,
    params: &Svml,
    watch: &Watch,
) -> Result<(Honest, Vec<SvmlFit>)> {
    let run = &mut Run::unobserved_by(watch);
    let learned = halves.learn(kind, params, &[], run)?;
    if learned.len() < halves.count() || learned.iter().any(|fit| fit.stop.is_early()) {
        return Err(Error::Interrupted);
    }
    let asked = halves.ask(kind.kernel, &learned, &[1.0], watch)?;
    Ok((Honest::new(halves, &asked.outputs[0]), learned))
}

/// The members for a sample.
fn members(sample: &Sample<'_>, approach: Approach) -> [MemberKind; 3] {
    let many = sample.rows() >= ROWS_PER_FEATURE * sample.features();
    if many && approach.learn.is_some() { MEMBERS_OF_MANY_ROWS } else { MEMBERS }
}

/// Learns the mean of members.
pub(crate) fn learn(
    sample: &Sample<'_>,
    params: &Svml,
    approach: Approach,
    run: &mut Run<'_>,
) -> Result<MeanFit> {
    // A start from gradients is for forms that are given.
    let init = match &params.init {
        Init::Gradients => Init::Scaled,
        init => init.clone(),
    };
    let params = &Svml { init, ..approach.learning(params) };
    let members = members(sample, approach);
    let mut learned = MeanFit {
        members: Vec::new(),
        honest: None,
        candidates: Vec::new(),
        trace: Vec::new(),
        best: 0,
        stop: Stop::Minimum,
        warning: None,
    };
    match Halves::new(sample, approach).filter(|_| params.cross_fit) {
        Some(halves) => learned.learn_by_halves(&halves, sample, params, &members, run)?,
        None => learned.learn_apart(sample, params, &members, run)?,
    }
    if run.watch().check().is_err() {
        learned.stop = run.watch().cause();
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
    /// Learns each member on all rows, without anything to weigh them by.
    fn learn_apart(
        &mut self,
        sample: &Sample<'_>,
        params: &Svml,
        members: &[MemberKind],
        run: &mut Run<'_>,
    ) -> Result<()> {
        for &kind in members {
            let fit = match self.learn(sample, kind, params, None, run) {
                // What is there is a model.
                Err(Error::Interrupted | Error::NotPositiveDefinite { .. })
                    if !self.members.is_empty() =>
                {
                    break;
                }
                fit => fit?,
            };
            let ended = fit.stop.is_early();
            self.members.push(MemberFit::new(kind.kernel, 1.0, fit));
            if ended {
                break;
            }
        }
        Ok(())
    }

    /// Learns a member on all rows. Its steps follow those that are there.
    fn learn(
        &mut self,
        sample: &Sample<'_>,
        kind: MemberKind,
        params: &Svml,
        from: Option<SvmlFit>,
        run: &mut Run<'_>,
    ) -> Result<SvmlFit> {
        let params = kind.params(params);
        let mut run = run.numbered_from(self.trace.len());
        let fit = descend(sample, kind.form, &params, from, &mut run)?;
        // A start that nothing could be learned from has no SVMs.
        if fit.svms.is_empty() {
            return Err(Error::Interrupted);
        }
        self.append(&fit);
        Ok(fit)
    }

    /// Appends the steps of a fit.
    fn append(&mut self, fit: &SvmlFit) {
        let first = self.trace.len();
        let steps = fit.trace.iter().enumerate();
        self.trace.extend(steps.map(|(k, step)| Step { iteration: first + k, ..*step }));
        (self.best, self.stop) = (first + fit.best, fit.stop);
    }

    /// Learns each member on either half of the rows, weighs the members by what they do on the other half, and goes on
    /// learning on all rows from the mean of what the halves have learned.
    fn learn_by_halves(
        &mut self,
        halves: &Halves<'_>,
        sample: &Sample<'_>,
        params: &Svml,
        members: &[MemberKind],
        run: &mut Run<'_>,
    ) -> Result<()> {
        // With a larger C too, if SVMs are trained again.
        let multiples: &[f64] =
            if params.learn_cost && params.refit { &[1.0, LARGER_COST] } else { &[1.0] };
        let (mut considered, mut ended) =
            match self.cross_fit(halves, params, members, multiples, run)? {
                CrossFitted::All(considered) => (considered, false),
                CrossFitted::Some(considered) => (considered, true),
                CrossFitted::Part(fit) => {
                    self.members.push(MemberFit::new(members[0].kernel, 1.0, fit));
                    return Ok(());
                }
            };
        if !ended {
            run.begins(Activity::TryingFewDimensions);
        }
        let low = match params.landmarks {
            _ if ended => Ok(None),
            LandmarkChoice::Exact => low_rank(halves, params, &considered[0], multiples, run),
            _ => low_rank_of_many(halves, sample, params, multiples, run),
        };
        let low = match low {
            Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => None,
            low => low?,
        };
        let plan = Plan::new(halves, &mut considered, low);
        let sphere = (&considered[0].metric()?, considered[0].cost());
        for (member, &weight) in considered.iter().zip(&plan.weights) {
            if weight == 0.0 {
                continue;
            }
            let (start, likely_support) = match member.kind.form {
                // Directions of all rows are better than those of the halves.
                Form::Rank(rank) => {
                    let some = sample.some(SCREENED_ROWS);
                    let sample = match params.landmarks {
                        LandmarkChoice::Exact => *sample,
                        _ => some.sample()?,
                    };
                    (low_rank_start(&sample, rank, sphere, run.watch()), Vec::new())
                }
                _ => {
                    let likely = halves.likely_support(&member.cross.outputs[plan.multiple]);
                    (Ok(SvmlFit::start(member.metric()?, member.cost())), likely)
                }
            };
            // With many rows the halves have learned what there is to learn.
            if halves.are_large() && !matches!(member.kind.form, Form::Rank(_)) {
                let fit = member.cross.fit.clone();
                let cost = (multiples[plan.multiple] * member.cost()).min(COST_RANGE.1);
                let learned = MemberFit::new(member.kind.kernel, weight, fit);
                let (metric, cost_factor) = (member.metric()?, multiples[plan.multiple]);
                self.members.push(MemberFit { metric, cost, cost_factor, ..learned });
                continue;
            }
            let learned = match ended {
                true => Err(Error::Interrupted),
                false => {
                    start.and_then(|from| self.learn(sample, member.kind, params, Some(from), run))
                }
            };
            let fit = match learned {
                // What the halves have learned will do.
                Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => {
                    member.cross.fit.clone()
                }
                fit => fit?,
            };
            ended |= fit.stop.is_early();
            let mut learned = MemberFit::new(member.kind.kernel, weight, fit);
            learned.cost_factor = multiples[plan.multiple];
            learned.cost = (learned.cost_factor * learned.cost).min(COST_RANGE.1);
            self.members.push(MemberFit { likely_support, ..learned });
        }
        (self.honest, self.candidates) = (Some(plan.honest), plan.candidates);
        Ok(())
    }

    /// Cross-fits the members, those of small samples beside each other.
    fn cross_fit(
        &mut self,
        halves: &Halves<'_>,
        params: &Svml,
        members: &[MemberKind],
        multiples: &[f64],
        run: &mut Run<'_>,
    ) -> Result<CrossFitted> {
        let watch = run.watch().clone();
        let cross_fit = |kind: MemberKind, run: &mut Run<'_>| {
            let fits = halves.learn(kind, params, &[], run)?;
            let ended = fits.len() < halves.count() || fits.iter().any(|fit| fit.stop.is_early());
            let cross = match ended {
                true => Err(Error::Interrupted),
                false => halves.ask(kind.kernel, &fits, multiples, &watch),
            };
            Ok((fits, cross))
        };
        type Tried = Result<(Vec<SvmlFit>, Result<CrossFit>)>;
        let mut beside: Vec<Option<Tried>> = match halves.rows() < BESIDE_EACH_OTHER {
            true => parallel::map(members, |&kind| {
                Some(cross_fit(kind, &mut Run::unobserved_by(&watch)))
            }),
            false => members.iter().map(|_| None).collect(),
        };
        let mut considered = Vec::with_capacity(members.len() + 1);
        for (&kind, tried) in members.iter().zip(&mut beside) {
            let since = self.trace.last().map_or(0.0, |step| step.seconds);
            let mut run = run.numbered_from(self.trace.len());
            let tried = match tried.take() {
                Some(tried) => tried.map(|(mut fits, cross)| {
                    fits[0]
                        .trace
                        .iter_mut()
                        .for_each(|step| step.seconds = step.seconds.max(since));
                    // What was learned unobserved is shown now, until someone wants to stop.
                    let Some((last, stop)) = run.show(&fits[0].trace) else { return (fits, cross) };
                    fits[0].trace.truncate(last + 1);
                    (fits[0].best, fits[0].stop) = (fits[0].best.min(last), stop);
                    (fits, Err(Error::Interrupted))
                }),
                None => cross_fit(kind, &mut run),
            };
            match tried {
                Ok((fits, cross)) => {
                    self.append(&fits[0]);
                    match cross {
                        Ok(cross) => considered.push(Considered { kind, cross }),
                        Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => {
                            if considered.is_empty() {
                                return Ok(CrossFitted::Part(halves.on_sample(0, &fits[0])));
                            }
                            return Ok(CrossFitted::Some(considered));
                        }
                        Err(error) => return Err(error),
                    }
                }
                Err(Error::Interrupted | Error::NotPositiveDefinite { .. })
                    if !considered.is_empty() =>
                {
                    return Ok(CrossFitted::Some(considered));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(CrossFitted::All(considered))
    }
}

/// How far cross-fitting came.
enum CrossFitted {
    /// To the end.
    All(Vec<Considered>),
    /// The first members were cross-fitted before it was ended.
    Some(Vec<Considered>),
    /// Not even the first; this is the best that was learned of it.
    Part(SvmlFit),
}

impl Honest {
    /// From outputs at rows that were put aside, with their weights and the factors of their classes in these.
    pub(crate) fn of_rows(
        outputs: &Matrix,
        class: &[usize],
        weight: &[f64],
        class_factors: &[f64],
    ) -> Self {
        let values = vote(outputs, class_factors.len());
        let fitted = calibrate::temperature(&values, class, weight);
        let log_losses = |temperature: f64, factors: Option<&[f64]>| -> Vec<f64> {
            let p = calibrate::probabilities(&values, temperature, factors);
            class.iter().enumerate().map(|(i, &c)| -p[(i, c)].max(1e-15).ln()).collect()
        };
        let mean = |values: &[f64], weight: &[f64]| {
            let sum: f64 = values.iter().zip(weight).map(|(v, w)| v * w).sum();
            sum / weight.iter().sum::<f64>()
        };
        let effective = |weight: &[f64]| {
            weight.iter().sum::<f64>().powi(2) / weight.iter().map(|w| w * w).sum::<f64>()
        };
        let least = |temperature: f64| mean(&log_losses(temperature, None), weight);
        let gain = effective(weight) * (least(LEAST_CERTAIN) - least(fitted));
        let temperature = if gain < LEAST_GAIN { LEAST_CERTAIN } else { fitted };
        // From here on rows count as they are.
        let plain: Vec<f64> =
            class.iter().zip(weight).map(|(&c, w)| w / class_factors[c]).collect();
        let (rows, total) = (effective(&plain), plain.iter().sum::<f64>());
        let mut share = vec![0.0; class_factors.len()];
        class.iter().zip(&plain).for_each(|(&class, w)| share[class] += w / total);
        let error = zero_one(&decide(&values), class, &plain);
        let losses = log_losses(temperature, Some(class_factors));
        let gained: Vec<f64> =
            class.iter().zip(&losses).map(|(&c, l)| -share[c].ln() - l).collect();
        let squares: Vec<f64> = gained.iter().map(|g| g * g).collect();
        let gain = mean(&gained, &plain);
        Self {
            error,
            log_loss: mean(&losses, &plain),
            guessing: 1.0 - share.iter().copied().fold(0.0, f64::max),
            standard_error: (error * (1.0 - error) / rows).sqrt(),
            temperature,
            put_aside: true,
            guessing_log_loss: gain + mean(&losses, &plain),
            better_log_loss: gain > SURE * (mean(&squares, &plain) / rows).sqrt(),
            weighted: plain.iter().any(|w| (w / plain[0] - 1.0).abs() > 1e-9),
        }
    }

    /// From outputs at the rows that are asked.
    fn new(halves: &Halves<'_>, outputs: &Matrix) -> Self {
        let fitted = halves.temperature(outputs);
        let temperature = match halves.gain(outputs, fitted) < LEAST_GAIN {
            true => LEAST_CERTAIN,
            false => fitted,
        };
        let wrong = halves.as_they_are(halves.wrong(outputs));
        let losses = halves.final_log_losses(outputs, temperature);
        let (guessing, guessing_losses) = halves.baseline();
        Self {
            error: wrong.mean(),
            log_loss: losses.mean(),
            guessing: guessing.mean(),
            standard_error: halves.standard_error(&wrong),
            temperature,
            put_aside: false,
            guessing_log_loss: guessing_losses.mean(),
            better_log_loss: losses.below(&guessing_losses, SURE),
            weighted: halves.is_weighted(),
        }
    }
}

/// What the rows that were not used to learn say: the weights of the members, and whether C is to be larger.
struct Plan {
    /// The weight of each member.
    weights: Vec<f64>,
    /// Which of the multiples of C.
    multiple: usize,
    honest: Honest,
    candidates: Vec<Candidate>,
}

impl Plan {
    /// `low` is a member of low rank to be considered with the others, with the log losses of where it started from.
    fn new(
        halves: &Halves<'_>,
        considered: &mut Vec<Considered>,
        low: Option<(Considered, RowValues)>,
    ) -> Self {
        let outputs: Vec<&Matrix> =
            considered.iter().map(|member| &member.cross.outputs[0]).collect();
        // For what is reported, each half is weighed as the other would have it: the best weights for a row know its label.
        let all = 0..halves.asked.index.len();
        let others = (0..halves.count()).map(|half| halves.asked_of(Halves::other(half)));
        let parts: Vec<Range<usize>> = std::iter::once(all).chain(others).collect();
        let mut of_parts = best_weights(halves, &outputs, &parts);
        let mut mean = mean_of(&outputs, &of_parts[0]);

        // Few directions instead.
        if let Some((low, start)) = low {
            let losses = halves.least_log_losses(&mean);
            let learned = halves.least_log_losses(&low.cross.outputs[0]);
            let better = [start, learned].iter().any(|low| low.below(&losses, STANDARD_ERRORS));
            for weights in &mut of_parts {
                if better {
                    weights.fill(0.0);
                }
                weights.push(f64::from(u8::from(better)));
            }
            if better {
                mean = low.cross.outputs[0].clone();
            }
            considered.push(low);
        }

        // The same members with a larger C.
        let with = |multiple: usize| -> Option<Vec<&Matrix>> {
            considered.iter().map(|member| member.cross.outputs.get(multiple)).collect()
        };
        let larger = with(1).filter(|larger| {
            let wrong = halves.wrong(&mean_of(larger, &of_parts[0]));
            wrong.below(&halves.wrong(&mean), STANDARD_ERRORS)
        });
        let multiple = usize::from(larger.is_some());
        let reported = with(multiple).unwrap_or_default();
        let honest = Honest::new(halves, &mean_by_half(halves, &reported, &of_parts[1..]));
        let weights = of_parts.swap_remove(0);
        let candidates = (considered.iter().zip(&weights))
            .map(|(member, &weight)| Candidate {
                form: member.kind.form,
                kernel: member.kind.kernel,
                cost: member.cost(),
                loss: None,
                error: halves.as_they_are(halves.wrong(&member.cross.outputs[multiple])).mean(),
                weight,
                chosen: weight > 0.0,
            })
            .collect();
        Self { weights, multiple, honest, candidates }
    }
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

/// The same with weights of its own for each half.
fn mean_by_half(halves: &Halves<'_>, outputs: &[&Matrix], weights: &[Vec<f64>]) -> Matrix {
    let mut mean = mean_of(outputs, &weights[0]);
    for (half, weights) in weights.iter().enumerate().skip(1) {
        let of_half = mean_of(outputs, weights);
        let rows = halves.asked_of(half);
        rows.for_each(|row| mean.row_mut(row).copy_from_slice(of_half.row(row)));
    }
    mean
}

/// For each part of the rows that are asked the weights that minimise error + price x |weights - equal|^2 on it, of those
/// on a grid; the first of equals, from equal weights on. Members that are clearly worse than the best have none.
fn best_weights(halves: &Halves<'_>, outputs: &[&Matrix], parts: &[Range<usize>]) -> Vec<Vec<f64>> {
    let alone: Vec<RowValues> = outputs.iter().map(|outputs| halves.wrong(outputs)).collect();
    let mut searches: Vec<WeightSearch> =
        parts.iter().map(|part| WeightSearch::new(&alone, part.clone())).collect();
    let equal: Vec<Vec<f64>> = searches.iter().map(|search| search.equal.clone()).collect();
    let mut consider = |weights: &[f64]| {
        let wrong = halves.wrong(&mean_of(outputs, weights));
        searches.iter_mut().for_each(|search| search.consider(&wrong, weights));
    };
    equal.iter().for_each(|weights| consider(weights));
    let mut parts = vec![0; outputs.len()];
    let _ = compositions(WEIGHT_STEPS, 0, &mut parts, &mut |parts| {
        let weights: Vec<f64> =
            parts.iter().map(|&part| part as f64 / WEIGHT_STEPS as f64).collect();
        consider(&weights);
        ControlFlow::Continue(())
    });
    searches.into_iter().map(|search| search.best).collect()
}

/// The best weights so far for one part of the rows.
struct WeightSearch {
    part: Range<usize>,
    /// Equal weights of the members that are not clearly worse than the best.
    equal: Vec<f64>,
    best: Vec<f64>,
    least: f64,
}

impl WeightSearch {
    fn new(alone: &[RowValues], part: Range<usize>) -> Self {
        let alone: Vec<RowValues> = alone.iter().map(|wrong| wrong.of(part.clone())).collect();
        let best = (1..alone.len())
            .fold(0, |best, k| if alone[k].mean() < alone[best].mean() { k } else { best });
        let kept = |wrong: &RowValues| !alone[best].below(wrong, STANDARD_ERRORS);
        let kept: Vec<f64> = alone.iter().map(|wrong| f64::from(u8::from(kept(wrong)))).collect();
        let equal: Vec<f64> = kept.iter().map(|k| k / kept.iter().sum::<f64>()).collect();
        Self { part, best: equal.clone(), equal, least: f64::INFINITY }
    }

    fn consider(&mut self, wrong: &RowValues, weights: &[f64]) {
        let both = weights.iter().zip(&self.equal);
        if both.clone().any(|(weight, equal)| *weight > 0.0 && *equal == 0.0) {
            return;
        }
        let far: f64 = both.map(|(weight, equal)| (weight - equal).powi(2)).sum();
        let value = wrong.of(self.part.clone()).mean() + WEIGHT_PRICE * far;
        if value < self.least {
            (self.least, self.best) = (value, weights.to_vec());
        }
    }
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
    /// C of the SVMs.
    cost: f64,
    /// Sum of squares of the rows mapped by that metric.
    size: f64,
}

impl Directions {
    /// From SVMs with this metric and C on all rows of the sample; none if they are constant.
    fn new(
        sample: &Sample<'_>,
        gram: &dyn Gram,
        svms: &[BinarySvm],
        (metric, cost): (&Metric, f64),
    ) -> Option<Self> {
        // Up to a factor M on either side, which for a sphere is a multiple of I.
        let mut g = outer_product(gram, sample, svms);
        if metric.form() == Form::Diagonal {
            let m = metric.relevance();
            g = Matrix::from_fn(m.len(), m.len(), |i, j| m[i] * g[(i, j)] * m[j]);
        }
        let (values, vectors) = linalg::symmetric_eigen(&g)?;
        let values: Vec<f64> = values.into_iter().map(|v| v.max(0.0)).collect();
        let trace: f64 = values.iter().sum();
        if trace <= 0.0 || !trace.is_finite() {
            return None;
        }
        let shares = values.iter().map(|v| v / trace).collect();
        Some(Self { shares, vectors, cost, size: size(metric, sample) })
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
    fn start(&self, rank: usize, sample: &Sample<'_>) -> Result<SvmlFit> {
        let d = self.vectors.cols();
        let l = Matrix::from_fn(rank, d, |i, k| self.shares[i].sqrt() * self.vectors[(i, k)]);
        let low = Metric::new(Form::Rank(rank), d, l.into_vec())?;
        let scale = (self.size / size(&low, sample)).sqrt();
        let scale = if scale.is_finite() { scale } else { 1.0 };
        Ok(SvmlFit::start(low.scaled(scale)?, self.cost))
    }
}

fn size(metric: &Metric, sample: &Sample<'_>) -> f64 {
    metric.transform(sample.x()).as_slice().iter().map(|z| z * z).sum()
}

/// The SVMs of all pairs of classes on all rows of a sample, with the kernel matrix that they are of.
fn trained<'a>(
    sample: &Sample<'a>,
    metric: &Metric,
    cost: f64,
    watch: &Watch,
) -> Result<(Box<dyn Gram + 'a>, Vec<BinarySvm>)> {
    let (n, all) = (sample.rows(), sample.all());
    let gram = kernel::backend().gram(sample.x(), n, metric, Kernel::Gaussian, watch)?;
    let key = || metric.in_key(Key::new("trained").then(sample.key())).numbers(&[cost]);
    let svms = watch.remember(key, || {
        let trained = train_pairs(&*gram, &all.of_pairs(sample.classes()), cost, &[])?;
        Ok(trained.into_iter().map(|trained| trained.svm).collect())
    })?;
    Ok((gram, svms))
}

/// A low-rank member, if the directions along which the SVMs of the sphere change promise one: those of each half make
/// a metric, which must serve the other half better than the sphere does. With it the log losses of the metrics that it
/// was learned from.
fn low_rank(
    halves: &Halves<'_>,
    params: &Svml,
    sphere: &Considered,
    multiples: &[f64],
    run: &Run<'_>,
) -> Result<Option<(Considered, RowValues)>> {
    let (d, watch) = (halves.half(0)?.features(), run.watch());
    if !(3..=MOST_COLUMNS).contains(&d) {
        return Ok(None);
    }
    let (mut directions, mut of_sphere) = (Vec::new(), Vec::new());
    for (half, SvmlFit { metric, cost, .. }) in sphere.cross.learned.iter().enumerate() {
        let sample = halves.half(half)?;
        let (gram, svms) = trained(&sample, metric, *cost, watch)?;
        of_sphere.push(halves.ask_other(half, metric, &svms)?);
        match Directions::new(&sample, &*gram, &svms, (metric, *cost)) {
            Some(found) => directions.push(found),
            None => return Ok(None),
        }
    }
    let starts = |rank: usize| -> Result<Vec<SvmlFit>> {
        let of = |(half, found): (usize, &Directions)| found.start(rank, &halves.half(half)?);
        directions.iter().enumerate().map(of).collect()
    };
    let ask = |rank: usize| -> Result<RowValues> {
        let mut outputs = Vec::with_capacity(directions.len());
        for (half, SvmlFit { metric, cost, .. }) in starts(rank)?.iter().enumerate() {
            let (_, svms) = trained(&halves.half(half)?, metric, *cost, watch)?;
            outputs.push(halves.ask_other(half, metric, &svms)?);
        }
        Ok(halves.least_log_losses(&halves.joined(&outputs)?))
    };
    let of_sphere = halves.least_log_losses(&halves.joined(&of_sphere)?);
    let few = directions.iter().map(Directions::few).max().unwrap_or(1);
    let mut promising = None;
    for rank in few..(few + FIRST_RANKS).min(d) {
        let losses = ask(rank)?;
        if losses.below(&of_sphere, STANDARD_ERRORS) {
            promising = Some((rank, losses));
            break;
        }
    }
    let Some((mut rank, mut best)) = promising else { return Ok(None) };
    // One more direction as long as it helps.
    while rank + 1 < d {
        let next = ask(rank + 1)?;
        if !next.below(&best, STANDARD_ERRORS) {
            break;
        }
        (best, rank) = (next, rank + 1);
    }
    let kind = MemberKind { kernel: Kernel::Gaussian, form: Form::Rank(rank) };
    let starts = starts(rank)?;
    let start = halves.ask(Kernel::Gaussian, &starts, &[1.0], watch)?;
    let learned = halves.learn(kind, params, &starts, &mut Run::unobserved_by(watch))?;
    if learned.len() < halves.count() || learned.iter().any(|fit| fit.stop.is_early()) {
        return Err(Error::Interrupted);
    }
    let cross = halves.ask(Kernel::Gaussian, &learned, multiples, watch)?;
    Ok(Some((Considered { kind, cross }, halves.least_log_losses(&start.outputs[0]))))
}

/// The same through landmarks: some of the rows say whether few directions promise anything, and how many.
fn low_rank_of_many(
    halves: &Halves<'_>,
    sample: &Sample<'_>,
    params: &Svml,
    multiples: &[f64],
    run: &Run<'_>,
) -> Result<Option<(Considered, RowValues)>> {
    let watch = run.watch();
    let some = sample.some(SCREENED_ROWS);
    let some = some.sample()?;
    let exact = Svml { landmarks: LandmarkChoice::Exact, ..params.clone() };
    let Some(screen) = Halves::new(&some, Approach::EXACT) else { return Ok(None) };
    let kind = MEMBERS[0];
    let learned = screen.learn(kind, &exact, &[], &mut Run::unobserved_by(watch))?;
    if learned.len() < screen.count() {
        return Err(Error::Interrupted);
    }
    let sphere = Considered { kind, cross: screen.ask(kind.kernel, &learned, &[1.0], watch)? };
    let Some((low, _)) = low_rank(&screen, &exact, &sphere, &[1.0], run)? else { return Ok(None) };
    let Form::Rank(rank) = low.kind.form else { return Ok(None) };
    let sphere = (&sphere.metric()?, sphere.cost());
    let start = |half: usize| {
        let some = halves.half(half)?.some(SCREENED_ROWS);
        low_rank_start(&some.sample()?, rank, sphere, watch)
    };
    let starts = (0..halves.count()).map(start).collect::<Result<Vec<_>>>()?;
    let learned = halves.learn(low.kind, params, &starts, &mut Run::unobserved_by(watch))?;
    if learned.len() < halves.count() || learned.iter().any(|fit| fit.stop.is_early()) {
        return Err(Error::Interrupted);
    }
    let cross = halves.ask(low.kind.kernel, &learned, multiples, watch)?;
    let losses = halves.least_log_losses(&cross.outputs[0]);
    Ok(Some((Considered { kind: low.kind, cross }, losses)))
}

/// A start for a low-rank member on all rows: the directions of a sphere and its C.
fn low_rank_start(
    sample: &Sample<'_>,
    rank: usize,
    (sphere, cost): (&Metric, f64),
    watch: &Watch,
) -> Result<SvmlFit> {
    let (gram, svms) = trained(sample, sphere, cost, watch)?;
    // SVMs that are constant leave nothing to learn.
    let found = Directions::new(sample, &*gram, &svms, (sphere, cost)).ok_or(Error::Interrupted)?;
    found.start(rank, sample)
}
