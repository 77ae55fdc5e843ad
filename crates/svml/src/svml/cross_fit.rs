//! Honest outputs by cross-fitting: metric and C are learned on one half of the rows and asked on the other, and the
//! other way round. What is asked are SVMs trained on all rows but the quarter that is asked.
//!
//! The label that an output is compared with was not used to learn what gives it, neither by the metric nor by C nor by
//! the SVM. These outputs choose between members, weigh and calibrate them, and are the error that is
//! reported; they are a little pessimistic, since fewer rows teach less than all. At a cost that grows with
//! the cube of the rows, learning on two halves costs a quarter of learning on all rows.

use rayon::prelude::*;

use super::descent::{SvmlFit, descend};
use super::{FormChoice, Svml, learn_form};
use crate::calibrate;
use crate::data::folds::{self, Fold, Part};
use crate::data::{LabelledRows, OwnedSample, Sample, pairs};
use crate::error::{Error, Result};
use crate::kernel::{self, Gram};
use crate::linalg::Matrix;
use crate::metric::{Form, Kernel, Metric};
use crate::multiclass::{decide, outputs, solve_pair, vote};
use crate::run::{Run, Watch};
use crate::svm::BinarySvm;

/// What is learned by one member: a kernel and a form of L.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberKind {
    /// The kernel.
    pub kernel: Kernel,
    /// The form of L.
    pub form: Form,
}

impl MemberKind {
    /// The parameters of SVML for this member alone.
    pub fn params(self, base: &Svml) -> Svml {
        Svml { kernel: self.kernel, form: FormChoice::Fixed(self.form), ..base.clone() }
    }
}

/// A sample in four quarters, of which two and two are a half. Metric and C are learned on a half; they are asked on the
/// quarters of the other, by SVMs that are trained on all rows but those of the quarter.
pub(super) struct Halves<'a> {
    sample: &'a Sample<'a>,
    /// Each validates one quarter and trains on the rest.
    quarters: Vec<Fold>,
    /// The first two quarters and the last two, as samples of their own.
    halves: Vec<OwnedSample>,
    /// The rows that are asked, quarter after quarter, with their classes and weights.
    pub asked: LabelledRows,
}

/// Quarters that a half is made of.
const PER_HALF: usize = 2;

/// What a member gives at rows that were not used to learn it, and what it gave them with.
pub(super) struct CrossFit {
    /// The output of the SVM of each pair of classes at the rows that are asked. // (rows, pairs)
    pub outputs: Matrix,
    /// For each half the metric and C that were learned on it.
    pub learned: Vec<(Metric, f64)>,
    /// For each quarter the SVMs that were asked.
    pub svms: Vec<Vec<BinarySvm>>,
}

impl<'a> Halves<'a> {
    /// Deals the rows into quarters; none if there are too few rows for that.
    pub fn new(sample: &'a Sample<'a>) -> Option<Self> {
        let quarters = folds::stratified(sample.dealt(), 2 * PER_HALF);
        if quarters.len() < 2 * PER_HALF {
            return None;
        }
        let halves: Vec<OwnedSample> = (quarters.chunks(PER_HALF))
            .map(|half| {
                let parts: Vec<&Part> = half.iter().map(|quarter| &quarter.valid).collect();
                sample.select(&Part::joined(&parts))
            })
            .collect();
        // Every class must be in both halves, with two rows to be dealt again.
        let enough = |half: &OwnedSample| {
            let mut counts = vec![0_u64; sample.classes()];
            half.dealt().for_each(|(class, copies)| counts[class] += copies);
            counts.iter().all(|&count| count >= 2)
        };
        if !halves.iter().all(enough) {
            return None;
        }
        let mut asked = LabelledRows::default();
        for quarter in &quarters {
            let part = sample.part(&quarter.valid);
            asked.index.extend(part.index);
            asked.class.extend(part.class);
            asked.weight.extend(part.weight);
        }
        Some(Self { sample, quarters, halves, asked })
    }

    /// Learns a member on each half, from the start that is given for it if any is, and asks it on the other.
    pub fn learn(
        &self,
        kind: MemberKind,
        params: &Svml,
        starts: &[(Metric, f64)],
        run: &Run<'_>,
    ) -> Result<CrossFit> {
        let params = kind.params(params);
        let watch = run.watch().clone();
        let learned: Vec<SvmlFit> = (self.halves.par_iter().enumerate())
            .map(|(h, half)| {
                let (sample, mut run) = (half.sample()?, Run::unobserved_by(&watch));
                let fit = match starts.get(h) {
                    Some((metric, cost)) => {
                        let from = Some(SvmlFit::start(metric.clone(), *cost));
                        descend(&sample, kind.form, &params, from, &mut run)?
                    }
                    None => learn_form(&sample, kind.form, &params, &mut run)?,
                };
                if fit.stop.is_early() { Err(Error::Interrupted) } else { Ok(fit) }
            })
            .collect::<Result<_>>()?;
        let settings: Vec<(Metric, f64)> =
            learned.iter().map(|fit| (fit.metric.clone(), fit.cost)).collect();
        self.ask(kind.kernel, &settings, &[], run.watch())
    }

    /// Asks each quarter with the metric and C of the half that it is not part of. `starts` are SVMs for each quarter
    /// whose support sets are a guess, or none.
    pub fn ask(
        &self,
        kernel: Kernel,
        learned: &[(Metric, f64)],
        starts: &[Vec<BinarySvm>],
        watch: &Watch,
    ) -> Result<CrossFit> {
        let n = self.sample.rows();
        let mut asked: Vec<(Matrix, Vec<BinarySvm>)> = Vec::with_capacity(self.quarters.len());
        for half in 0..self.halves.len() {
            let (metric, cost) = &learned[1 - half];
            let gram = kernel::backend().gram(self.sample.x(), n, metric, kernel, watch)?;
            let gram = &*gram;
            let quarters = half * PER_HALF..(half + 1) * PER_HALF;
            let of_half: Vec<(Matrix, Vec<BinarySvm>)> = quarters
                .into_par_iter()
                .map(|q| {
                    let Fold { train, valid } = &self.quarters[q];
                    let train = self.sample.part(train);
                    let svms = self.train(gram, &train, *cost, starts.get(q))?;
                    Ok((outputs(gram, &valid.rows, &svms), svms))
                })
                .collect::<Result<_>>()?;
            asked.extend(of_half);
        }
        let (outputs, svms): (Vec<Matrix>, Vec<Vec<BinarySvm>>) = asked.into_iter().unzip();
        let width = pairs(self.sample.classes()).len();
        let values: Vec<f64> = outputs.into_iter().flat_map(Matrix::into_vec).collect();
        let outputs = Matrix::new(self.asked.index.len(), width, values)?;
        Ok(CrossFit { outputs, learned: learned.to_vec(), svms })
    }

    fn train(
        &self,
        gram: &dyn Gram,
        rows: &LabelledRows,
        cost: f64,
        starts: Option<&Vec<BinarySvm>>,
    ) -> Result<Vec<BinarySvm>> {
        (pairs(self.sample.classes()).into_par_iter().enumerate())
            .map(|(p, pair)| {
                let start = starts.and_then(|svms| svms.get(p)).map(|svm| svm.support.as_slice());
                Ok(solve_pair(gram, &rows.of_pair(pair), cost, start)?.svm)
            })
            .collect()
    }

    /// The sample of one half.
    pub fn half(&self, half: usize) -> Result<Sample<'_>> {
        self.halves[half].sample()
    }

    /// How many halves there are.
    pub fn count(&self) -> usize {
        self.halves.len()
    }

    /// The classes that outputs decide for.
    pub fn decide(&self, outputs: &Matrix) -> Vec<usize> {
        decide(&vote(outputs, self.sample.classes()))
    }

    /// For each row that is asked whether it is misclassified, with its weight.
    pub fn wrong(&self, outputs: &Matrix) -> RowValues {
        let decided = self.decide(outputs);
        let wrong = decided.iter().zip(&self.asked.class).map(|(d, c)| f64::from(u8::from(d != c)));
        RowValues(wrong.zip(self.asked.weight.iter().copied()).collect())
    }

    /// The temperature that fits outputs to the classes of the rows that are asked.
    pub fn temperature(&self, outputs: &Matrix) -> f64 {
        let values = vote(outputs, self.sample.classes());
        calibrate::temperature(&values, &self.asked.class, &self.asked.weight)
    }

    /// Mean of -log p(class of the row), by weight.
    pub fn log_loss(&self, outputs: &Matrix, temperature: f64) -> f64 {
        let p = calibrate::probabilities(&vote(outputs, self.sample.classes()), temperature);
        let rows = self.asked.class.iter().zip(&self.asked.weight).enumerate();
        let values = rows.map(|(i, (&class, &weight))| (-p[(i, class)].max(1e-15).ln(), weight));
        RowValues(values.collect()).mean()
    }

    /// The share, by weight, of all rows but those of the heaviest class: the error of who always names that
    /// class.
    pub fn guessing(&self) -> f64 {
        let mut totals = vec![0.0; self.sample.classes()];
        self.asked.class.iter().zip(&self.asked.weight).for_each(|(&c, w)| totals[c] += w);
        let all: f64 = totals.iter().sum();
        1.0 - totals.iter().copied().fold(0.0, f64::max) / all.max(f64::MIN_POSITIVE)
    }
}

/// A value for each of some rows, with their weights.
#[derive(Clone, Debug, Default)]
pub(super) struct RowValues(pub Vec<(f64, f64)>);

impl RowValues {
    fn total(&self) -> f64 {
        self.0.iter().map(|(_, weight)| weight).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// Their mean, by weight.
    pub fn mean(&self) -> f64 {
        self.0.iter().map(|(value, weight)| value * weight).sum::<f64>() / self.total()
    }

    /// Whether the mean is below that of other values of the same rows by so many standard errors of the
    /// difference, as if the difference were zero.
    pub fn below(&self, other: &Self, errors: f64) -> bool {
        let total = self.total();
        let (mut mean, mut squares) = (0.0, 0.0);
        for ((value, weight), (other, _)) in self.0.iter().zip(&other.0) {
            let difference = weight / total * (other - value);
            mean += difference;
            squares += difference * difference;
        }
        mean > errors * squares.sqrt()
    }
}
