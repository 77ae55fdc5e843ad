//! Honest outputs by cross-fitting: metric and C are learned on one half of the rows and asked on the other, and the
//! other way round. What is asked are SVMs trained on all rows but the quarter that is asked.
//!
//! The label that an output is compared with was not used to learn what gives it, neither by the metric nor by C nor by
//! the SVM. These outputs choose between members, weigh and calibrate them, and are the error that is
//! reported; they are a little pessimistic, since fewer rows teach less than all. At a cost that grows with
//! the cube of the rows, learning on two halves costs a quarter of learning on all rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::approach::{Approach, LandmarkChoice};
use super::descent::{SvmlFit, TrainedOn, descend};
use super::{COST_RANGE, FormChoice, Svml, learn_form};
use crate::calibrate;
use crate::data::folds::{self, Dealt, Fold, Part};
use crate::data::{LabelledRows, OwnedSample, PairRows, Sample, pairs};
use crate::error::{Error, Result};
use crate::kernel::{self, Gram};
use crate::landmarks::{Guess, LandmarkProblems, LandmarkSvms, Landmarks, Problem};
use crate::linalg::Matrix;
use crate::metric::{Form, Kernel, Metric};
use crate::multiclass::{PairwiseSvms, decide, inside_margin, outputs, train_pairs, vote};
use crate::parallel;
use crate::run::{Key, Run, Watch};
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
/// quarters of the other, by SVMs that are trained on all rows but those of the quarter. Few rows are dealt into
/// quarters several times, so that less depends on how they happen to fall.
pub(super) struct Halves<'a> {
    sample: &'a Sample<'a>,
    approach: Approach,
    /// Each validates one quarter and trains on the rest; four for each deal.
    quarters: Vec<Fold>,
    /// Quarters two by two, as samples of their own. The first two are the halves of the first deal, and so on.
    halves: Vec<OwnedSample>,
    /// Quarters of each half that are asked: the first, or both.
    asked_per_half: usize,
    /// The rows that are asked, quarter after quarter, with their classes and weights.
    pub asked: LabelledRows,
}

/// Quarters that a half is made of.
const PER_HALF: usize = 2;
/// Rows are dealt as often as it takes to ask so many, but not more often than that.
const ENOUGH_ASKED: u64 = 600;
const MOST_DEALS: u64 = 4;
/// With landmarks and so many rows one quarter of each half is asked: half of the rows tell enough.
const MANY_ROWS: usize = 8000;
/// What is left to do after learning on a half, as a multiple of what is usual: the SVMs on all rows have four times the
/// rows of those of two folds of a half, and so much more work where most of it is that of factors.
const LEFT_TO_DO: f64 = 32.0;
/// The same where most of it are the entries of K and the gradient, of which K on all rows has four times as many.
const LEFT_TO_DO_WITH_K: f64 = 2.0;
/// An entry of K costs about as much as so many columns more.
const EXPONENTIAL: usize = 20;
/// The same with landmarks, where the work grows with the rows, and with the square of the landmarks.
const LEFT_TO_DO_ON_LANDMARKS: u32 = 6;

/// What a member gives at rows that were not used to learn it, and what it gave them with.
pub(super) struct CrossFit {
    /// For each multiple of C that was asked for, the output of the SVM of each pair of classes at the rows that are
    /// asked. // (rows, pairs)
    pub outputs: Vec<Matrix>,
    /// What was learned on each half.
    pub learned: Vec<SvmlFit>,
    /// The SVMs that the first quarter was asked with.
    pub fit: SvmlFit,
}

impl<'a> Halves<'a> {
    /// Deals the rows into quarters; none if fewer than two classes have enough rows for that, or if groups leave a half
    /// without a class. Classes of too few rows train every SVM and are never asked.
    pub fn new(sample: &'a Sample<'a>, approach: Approach) -> Option<Self> {
        let rows = sample.dealt();
        let rare = rare_classes(sample);
        if sample.classes() < rare.len() + 2 {
            return None;
        }
        let is_rare = |class: usize| rare.contains(&class);
        let copies = |(row, &class)| if is_rare(class) { 0 } else { sample.copies(row) };
        let copies: Vec<u64> = rows.class.iter().enumerate().map(copies).collect();
        let asked_rows = Dealt { copies: Some(&copies), ..rows };
        let deals = (ENOUGH_ASKED / rows.total().max(1)).clamp(1, MOST_DEALS);
        let (mut quarters, mut halves) = (Vec::new(), Vec::new());
        for deal in 0..deals {
            let mut dealt = folds::k_folds_at_random(asked_rows, 2 * PER_HALF, deal);
            dealt.iter_mut().for_each(|quarter| quarter.train = rows.without(&quarter.valid));
            let of_deal: Vec<OwnedSample> = (dealt.chunks(PER_HALF).rev())
                .map(|other| sample.select(&rows.without(&joined(other))))
                .collect();
            // Every class must be in both halves, with two rows to be dealt again.
            let enough = |half: &OwnedSample| {
                let mut counts = vec![0_u64; sample.classes()];
                half.dealt().for_each(|(class, copies)| counts[class] += copies);
                counts.iter().enumerate().all(|(class, &count)| count >= 2 || is_rare(class))
            };
            if dealt.len() < 2 * PER_HALF || !of_deal.iter().all(enough) {
                break;
            }
            quarters.extend(dealt);
            halves.extend(of_deal);
        }
        let large = approach.ask.is_some() && sample.rows() >= MANY_ROWS;
        let asked_per_half = if large { 1 } else { PER_HALF };
        let mut asked = LabelledRows::default();
        for quarter in quarters.chunks(PER_HALF).flat_map(|half| &half[..asked_per_half]) {
            let part = sample.part(&quarter.valid);
            asked.index.extend(part.index);
            asked.class.extend(part.class);
            asked.weight.extend(part.weight);
        }
        let all = Self { sample, approach, quarters, halves, asked_per_half, asked };
        (all.count() > 0).then_some(all)
    }

    /// How many halves there are.
    pub fn count(&self) -> usize {
        self.halves.len()
    }

    /// The half that together with this one is a deal.
    pub fn other(half: usize) -> usize {
        half ^ 1
    }

    /// The observations of a half.
    fn part_of(&self, half: usize) -> Part {
        self.sample.dealt().without(&joined(self.quarters_of(Self::other(half))))
    }

    fn quarters_of(&self, half: usize) -> &[Fold] {
        &self.quarters[half * PER_HALF..(half + 1) * PER_HALF]
    }

    /// Whether there are so many rows that a half of them teaches as much as all.
    pub fn are_large(&self) -> bool {
        self.asked_per_half < PER_HALF
    }

    /// The quarters of a half that are asked.
    fn asked_quarters(&self, half: usize) -> &[Fold] {
        &self.quarters_of(half)[..self.asked_per_half]
    }

    /// Learns a member on each half, from the start that is given for it if any is. The steps on the first half are shown.
    /// If learning is ended early there may be results for the first halves only.
    pub fn learn(
        &self,
        kind: MemberKind,
        params: &Svml,
        starts: &[SvmlFit],
        run: &mut Run<'_>,
    ) -> Result<Vec<SvmlFit>> {
        let params = kind.params(params);
        let watch = run.watch().clone();
        let left = match params.landmarks {
            LandmarkChoice::Count(_) => LEFT_TO_DO_ON_LANDMARKS,
            _ => self.left_to_do(),
        };
        let learn = |half: usize, run: &mut Run<'_>| {
            let sample = self.half(half)?;
            match starts.get(half) {
                Some(from) => descend(&sample, kind.form, &params, Some(from.clone()), run),
                None => learn_form(&sample, kind.form, &params, run),
            }
        };
        let unobserved = || Run::unobserved_by(&watch).keeping(left);
        let fits: Vec<Result<SvmlFit>> = if run.is_observed() {
            // Through landmarks a card has room for the others meanwhile. They are abandoned if the first ends early.
            let beside = watch.gpu().is_some() && params.landmarks != LandmarkChoice::Exact;
            let abandoned = Arc::new(AtomicBool::new(false));
            let others = |watch: &Watch| -> Vec<Result<SvmlFit>> {
                let run = || Run::unobserved_by(watch).keeping(left);
                parallel::map(1..self.count(), |half| learn(half, &mut run()))
            };
            let mut rest = Vec::new();
            let first = rayon::in_place_scope(|scope| {
                if beside {
                    let (rest, watch) = (&mut rest, watch.until(&abandoned));
                    scope.spawn(move |_| *rest = others(&watch));
                }
                let first = learn(0, &mut run.on_half().keeping(left));
                let go_on = first.as_ref().is_ok_and(|fit| !fit.stop.is_early());
                abandoned.store(!go_on, Ordering::Relaxed);
                first
            });
            if abandoned.load(Ordering::Relaxed) {
                rest.clear();
            } else if !beside {
                rest = others(&watch);
            }
            std::iter::once(first).chain(rest).collect()
        } else {
            parallel::map(0..self.count(), |half| learn(half, &mut unobserved()))
        };
        let mut learned = Vec::with_capacity(fits.len());
        for fit in fits {
            match fit {
                Err(Error::Interrupted) if !learned.is_empty() => break,
                fit => learned.push(fit?),
            }
        }
        let steps = learned.iter_mut().flat_map(|fit| &mut fit.trace);
        steps.for_each(|step| *step = step.on_half());
        Ok(learned)
    }

    /// What exact SVMs leave to do after learning on a half, from the work of one evaluation there.
    fn left_to_do(&self) -> u32 {
        let of_pairs = self.sample.all().of_pairs(self.sample.classes());
        let cube = |rows: &PairRows| (rows.index.len() as f64 / 4.0).powi(3) * 2.0 / 3.0;
        let factors: f64 = of_pairs.iter().map(cube).sum();
        let columns = (self.sample.features() + EXPONENTIAL) as f64;
        let kernel = (self.sample.rows() as f64 / 2.0).powi(2) * columns;
        let left = LEFT_TO_DO * factors + LEFT_TO_DO_WITH_K * kernel;
        (left / (factors + kernel)).ceil() as u32
    }

    /// Asks each quarter with the metric and C of the half that it is not part of, for each multiple of C.
    pub fn ask(
        &self,
        kernel: Kernel,
        learned: &[SvmlFit],
        multiples: &[f64],
        watch: &Watch,
    ) -> Result<CrossFit> {
        let mut values = vec![Vec::new(); multiples.len()];
        let mut first: Option<(Vec<BinarySvm>, f64)> = None;
        let ask = |half: usize| -> Result<Vec<Asked>> {
            let from = &learned[Self::other(half)];
            let key = || {
                // How the rows are dealt depends on these alone.
                let key = Key::new("asked").then(self.sample.key());
                let key = key.places(&[half, self.asked_per_half]);
                let key = key.with(&(kernel, self.approach.ask)).numbers(multiples);
                let key = from.metric.in_key(key).numbers(&[from.cost]);
                from.svms.iter().fold(key, |key, svm| svm.in_key(key))
            };
            watch.remember(key, || match self.approach.ask {
                Some(count) => self.ask_on_landmarks(half, kernel, from, count, multiples, watch),
                None => self.ask_exactly(half, kernel, from, multiples, watch),
            })
        };
        // The memory of a computer is planned for one half at a time; through landmarks a card has room for all.
        let asked: Vec<Vec<Asked>> = match watch.gpu().is_some() && self.approach.ask.is_some() {
            true => parallel::try_map(0..self.count(), ask)?,
            false => (0..self.count()).map(ask).collect::<Result<_>>()?,
        };
        for quarters in asked {
            for quarter in quarters {
                let outputs = values.iter_mut().zip(&quarter.outputs);
                outputs.for_each(|(values, outputs)| values.extend_from_slice(outputs.as_slice()));
                first.get_or_insert((quarter.svms, quarter.residual));
            }
        }
        let (rows, width) = (self.asked.index.len(), pairs(self.sample.classes()).len());
        let outputs = values.into_iter().map(|values| Matrix::new(rows, width, values));
        let (svms, residual) = first.unwrap_or_default();
        let trained = TrainedOn::Part { seen: self.quarters[0].train.clone() };
        let fit = SvmlFit { svms, residual, trained, ..learned[Self::other(0)].clone() };
        Ok(CrossFit { outputs: outputs.collect::<Result<_>>()?, learned: learned.to_vec(), fit })
    }

    /// Asks the quarters of a half with exact SVMs, which share the kernel matrix.
    fn ask_exactly(
        &self,
        half: usize,
        kernel: Kernel,
        from: &SvmlFit,
        multiples: &[f64],
        watch: &Watch,
    ) -> Result<Vec<Asked>> {
        let (x, n) = (self.sample.x(), self.sample.rows());
        let gram = kernel::backend().gram(x, n, &from.metric, kernel, watch)?;
        let gram = &*gram;
        // What was learned with says which rows are likely to be support vectors.
        let fit = self.on_sample(Self::other(half), from);
        let all = self.sample.all();
        let at_all = outputs(gram, &all.index, &fit.svms)?;
        let likely = inside_margin(&at_all, &all, self.sample.classes());
        parallel::try_map(self.asked_quarters(half), |quarter| {
            self.ask_quarter(gram, quarter, from.cost, multiples, &likely)
        })
    }

    /// Asks the quarters of a half with SVMs on landmarks, which share all blocks of K.
    fn ask_on_landmarks(
        &self,
        half: usize,
        kernel: Kernel,
        from: &SvmlFit,
        landmarks: usize,
        multiples: &[f64],
        watch: &Watch,
    ) -> Result<Vec<Asked>> {
        let SvmlFit { metric, cost, .. } = from;
        let (x, class, classes) = (self.sample.x(), self.sample.class(), self.sample.classes());
        // What was learned with says which rows are likely to be support vectors.
        let fit = self.on_sample(Self::other(half), from);
        let guess = Some(Guess::new(&fit.svms, (x, class, classes), kernel, metric));
        let landmarks = Landmarks::choose(x, class, classes, landmarks, metric, watch)?;
        let quarters = self.asked_quarters(half);
        // The quarters of the deal, of which this half has the first two or the last two.
        let deal = half - half % 2;
        let dealt = [self.quarters_of(deal), self.quarters_of(deal + 1)].concat();
        let mut folds: Vec<LabelledRows> =
            dealt.iter().map(|quarter| self.sample.part(&quarter.valid)).collect();
        // Rows that are never asked are a fifth part, which always trains.
        let never = self.sample.dealt().without(&joined(&dealt));
        folds.extend((!never.rows.is_empty()).then(|| self.sample.part(&never)));
        let first = (half % 2) * PER_HALF;
        let problems = (first..first + quarters.len())
            .flat_map(|asked| {
                let train: Vec<bool> = (0..folds.len()).map(|fold| fold != asked).collect();
                Problem::of_pairs(classes, &train, &vec![false; folds.len()])
            })
            .collect();
        let pairs = pairs(classes);
        let given = LandmarkProblems { kernel, metric, problems, guess };
        let keep = self.approach.keep;
        let mut svms = LandmarkSvms::of_folds(x, &folds, landmarks, given, keep, watch)?;
        let mut asked: Vec<Asked> = Vec::new();
        for multiple in multiples {
            svms.train((cost * multiple).clamp(COST_RANGE.0, COST_RANGE.1))?;
            for (q, quarter) in quarters.iter().enumerate() {
                let of_pair = |p: usize| svms.svm(q * pairs.len() + p);
                let of_quarter: Vec<BinarySvm> = (0..pairs.len()).map(of_pair).collect();
                let pairwise = PairwiseSvms::new(&of_quarter, classes, |row| class[row]);
                let mapped = metric.transform(&x.select_rows(&pairwise.support));
                let valid = &quarter.valid.rows;
                let outputs = pairwise.outputs_at(kernel, metric, x, valid, &mapped);
                match asked.get_mut(q) {
                    Some(asked) => asked.outputs.push(outputs),
                    None => asked.push(Asked {
                        outputs: vec![outputs],
                        svms: of_quarter,
                        residual: svms.residual(),
                    }),
                }
            }
        }
        Ok(asked)
    }

    fn ask_quarter(
        &self,
        gram: &dyn Gram,
        quarter: &Fold,
        cost: f64,
        multiples: &[f64],
        likely: &[Vec<usize>],
    ) -> Result<Asked> {
        let Fold { train, valid } = quarter;
        let train = self.sample.part(train);
        let inside = |likely: &Vec<usize>| -> Vec<usize> {
            likely.iter().copied().filter(|row| train.index.binary_search(row).is_ok()).collect()
        };
        let likely: Vec<Vec<usize>> = likely.iter().map(inside).collect();
        let (svms, residual) = self.train(gram, &train, cost * multiples[0], &likely)?;
        let support: Vec<Vec<usize>> = svms.iter().map(|svm| svm.support.clone()).collect();
        let mut all = vec![outputs(gram, &valid.rows, &svms)?];
        for multiple in &multiples[1..] {
            let (larger, _) = self.train(gram, &train, cost * multiple, &support)?;
            all.push(outputs(gram, &valid.rows, &larger)?);
        }
        Ok(Asked { outputs: all, svms, residual })
    }

    /// Trains the SVMs of all pairs, from likely support sets if there are any. With them the worst violation of their
    /// optimality conditions.
    fn train(
        &self,
        gram: &dyn Gram,
        rows: &LabelledRows,
        cost: f64,
        likely: &[Vec<usize>],
    ) -> Result<(Vec<BinarySvm>, f64)> {
        let cost = cost.clamp(COST_RANGE.0, COST_RANGE.1);
        let starts: Vec<_> = likely.iter().map(|rows| Some(rows.as_slice())).collect();
        let trained = train_pairs(gram, &rows.of_pairs(self.sample.classes()), cost, &starts)?;
        let residual = trained.iter().map(|trained| trained.residual).fold(0.0, f64::max);
        Ok((trained.into_iter().map(|trained| trained.svm).collect(), residual))
    }

    /// What was learned on a half, by rows of the sample.
    pub fn on_sample(&self, half: usize, fit: &SvmlFit) -> SvmlFit {
        let Part { rows, copies } = self.part_of(half);
        let mut fit = fit.clone();
        let support = fit.svms.iter_mut().flat_map(|svm| &mut svm.support);
        support.for_each(|row| *row = rows[*row]);
        let seen = match &fit.trained {
            TrainedOn::Part { seen } => Part {
                rows: seen.rows.iter().map(|&row| rows[row]).collect(),
                copies: seen.copies.clone(),
            },
            TrainedOn::All { .. } => Part { rows, copies },
        };
        SvmlFit { trained: TrainedOn::Part { seen }, ..fit }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.sample.rows()
    }

    /// For each pair of classes the rows of the sample that outputs put inside of the margin or on the wrong side.
    pub fn likely_support(&self, outputs: &Matrix) -> Vec<Vec<usize>> {
        inside_margin(outputs, &self.asked, self.sample.classes())
    }

    /// The outputs of SVMs that were trained on a half at the rows of the other. // (rows, pairs)
    pub fn ask_other(&self, half: usize, metric: &Metric, svms: &[BinarySvm]) -> Result<Matrix> {
        let sample = self.half(half)?;
        let svms = PairwiseSvms::new(svms, sample.classes(), |row| sample.class()[row]);
        let mapped = metric.transform(&sample.x().select_rows(&svms.support));
        let other = &self.asked.index[self.asked_of(Self::other(half))];
        let z = metric.transform(&self.sample.x().select_rows(other));
        Ok(svms.outputs(Kernel::Gaussian, &z, &mapped))
    }

    /// Puts what each half was asked for at the rows of its other half into the order of the rows that are asked.
    pub fn joined(&self, of_halves: &[Matrix]) -> Result<Matrix> {
        let (rows, width) = (self.asked.index.len(), pairs(self.sample.classes()).len());
        let in_order = (0..self.count()).map(|half| &of_halves[Self::other(half)]);
        Matrix::new(rows, width, in_order.flat_map(|h| h.as_slice().iter().copied()).collect())
    }

    /// The sample of one half.
    pub fn half(&self, half: usize) -> Result<Sample<'_>> {
        self.halves[half].sample()
    }

    /// The rows of a half, by their places among those that are asked.
    pub fn asked_of(&self, half: usize) -> Range<usize> {
        let rows =
            |half| self.asked_quarters(half).iter().map(|q| q.valid.rows.len()).sum::<usize>();
        let first = (0..half).map(rows).sum();
        first..first + rows(half)
    }

    /// The classes that outputs decide for.
    pub fn decide(&self, outputs: &Matrix) -> Vec<usize> {
        decide(&vote(outputs, self.sample.classes()))
    }

    /// Values of the rows as they are, without the weights of their classes.
    pub fn as_they_are(&self, mut values: RowValues) -> RowValues {
        if let Some(factors) = self.sample.class_factors() {
            let rows = values.0.iter_mut().zip(&self.asked.class);
            rows.for_each(|(row, &class)| row.weight /= factors[class]);
        }
        values
    }

    /// The standard error of a mean of values that are 0 or 1. Rows of a group err together: their sums scatter, not they.
    pub fn standard_error(&self, wrong: &RowValues) -> f64 {
        let error = wrong.mean();
        let Some(groups) = self.sample.groups() else {
            return (error * (1.0 - error) / wrong.effective_rows()).sqrt();
        };
        let mut sums = std::collections::BTreeMap::new();
        for (row, value) in self.asked.index.iter().zip(&wrong.0) {
            *sums.entry(groups[*row]).or_insert(0.0) += value.weight * (value.value - error);
        }
        let count = sums.len() as f64;
        let squares: f64 = sums.values().map(|sum| sum * sum).sum();
        (squares * count / (count - 1.0).max(1.0)).sqrt() / wrong.total()
    }

    /// Values for the rows that are asked, in their order.
    fn values(&self, values: impl Iterator<Item = f64>) -> RowValues {
        let quarters = (0..self.count()).flat_map(|half| self.asked_quarters(half));
        let copies = quarters.flat_map(|quarter| &quarter.valid.copies);
        let rows = values.zip(self.asked.weight.iter().zip(copies));
        // A row that is dealt again tells nothing new.
        let deals = (self.count() / 2) as f64;
        let row =
            |(value, (&weight, &copies))| RowValue { value, weight, copies: copies as f64 / deals };
        RowValues(rows.map(row).collect())
    }

    /// For each row that is asked whether it is misclassified.
    pub fn wrong(&self, outputs: &Matrix) -> RowValues {
        let decided = self.decide(outputs);
        let both = decided.iter().zip(&self.asked.class);
        self.values(both.map(|(decided, class)| f64::from(u8::from(decided != class))))
    }

    /// The temperature that fits outputs to the classes of the rows that are asked.
    pub fn temperature(&self, outputs: &Matrix) -> f64 {
        let values = vote(outputs, self.sample.classes());
        calibrate::temperature(&values, &self.asked.class, &self.asked.weight)
    }

    /// For each row that is asked -log p(class of the row), by the class weights of the training rows.
    fn log_losses(&self, outputs: &Matrix, temperature: f64) -> RowValues {
        self.minus_log(&calibrate::probabilities(&self.votes(outputs), temperature, None))
    }

    /// The same of the probabilities that a model gives, from which class weights are taken out again, for rows as they are.
    pub fn final_log_losses(&self, outputs: &Matrix, temperature: f64) -> RowValues {
        let factors = self.sample.class_factors();
        let p = calibrate::probabilities(&self.votes(outputs), temperature, factors);
        self.as_they_are(self.minus_log(&p))
    }

    fn votes(&self, outputs: &Matrix) -> Matrix {
        vote(outputs, self.sample.classes())
    }

    fn minus_log(&self, p: &Matrix) -> RowValues {
        let classes = self.asked.class.iter().enumerate();
        self.values(classes.map(|(i, &class)| -p[(i, class)].max(1e-15).ln()))
    }

    /// How much a temperature gains on equal probabilities in log-likelihood, on all rows together.
    pub fn gain(&self, outputs: &Matrix, temperature: f64) -> f64 {
        let none = self.log_losses(outputs, calibrate::LEAST_CERTAIN);
        none.effective_rows() * (none.mean() - self.log_losses(outputs, temperature).mean())
    }

    /// The log losses at the temperature that fits best.
    pub fn least_log_losses(&self, outputs: &Matrix) -> RowValues {
        self.log_losses(outputs, self.temperature(outputs))
    }

    /// For each row that is asked whether it is not of the most frequent class, and -log of the share of its own class: what
    /// is known without a model.
    pub fn baseline(&self) -> (RowValues, RowValues) {
        let rows = self.as_they_are(self.values(std::iter::repeat(0.0)));
        let mut totals = vec![0.0; self.sample.classes()];
        (self.asked.class.iter().zip(&rows.0)).for_each(|(&c, row)| totals[c] += row.weight);
        let most = (0..totals.len()).fold(0, |m, c| if totals[c] > totals[m] { c } else { m });
        let total = rows.total();
        let of = |value: &dyn Fn(usize) -> f64| {
            self.as_they_are(self.values(self.asked.class.iter().map(|&class| value(class))))
        };
        (
            of(&|class| f64::from(u8::from(class != most))),
            of(&|class| -(totals[class] / total).ln()),
        )
    }

    /// Whether rows differ in weight, but for that of their class.
    pub fn is_weighted(&self) -> bool {
        let rows = self.as_they_are(self.values(std::iter::repeat(0.0)));
        let each = |row: &RowValue| row.weight / row.copies;
        rows.0.iter().any(|row| (each(row) / each(&rows.0[0]) - 1.0).abs() > 1e-9)
    }
}

/// What a quarter was asked with.
#[derive(Serialize, Deserialize)]
struct Asked {
    /// For each multiple of C.
    outputs: Vec<Matrix>,
    /// The SVMs of the first multiple.
    svms: Vec<BinarySvm>,
    /// Worst violation of their optimality conditions.
    residual: f64,
}

/// Classes that have too few observations for two in each half; none if rows belong to groups, which are not divided.
pub(crate) fn rare_classes(sample: &Sample<'_>) -> Vec<usize> {
    if sample.groups().is_some() {
        return Vec::new();
    }
    let mut counts = vec![0; sample.classes()];
    (sample.class().iter().enumerate()).for_each(|(i, &class)| counts[class] += sample.copies(i));
    (0..counts.len()).filter(|&class| counts[class] < 2 * PER_HALF as u64).collect()
}

/// The rows of some quarters together.
fn joined(quarters: &[Fold]) -> Part {
    let parts: Vec<&Part> = quarters.iter().map(|quarter| &quarter.valid).collect();
    Part::joined(&parts)
}

/// A value for each of some rows.
#[derive(Clone, Debug, Default)]
pub(super) struct RowValues(Vec<RowValue>);

/// The value of a row, with its weight and the number of equal rows that it stands for, a part of one if it is there
/// several times.
#[derive(Clone, Copy, Debug)]
struct RowValue {
    value: f64,
    weight: f64,
    copies: f64,
}

impl RowValues {
    fn total(&self) -> f64 {
        self.0.iter().map(|row| row.weight).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    /// Those of some of the rows.
    pub fn of(&self, rows: Range<usize>) -> Self {
        Self(self.0[rows].to_vec())
    }

    /// How many rows of equal weight would tell as much.
    pub fn effective_rows(&self) -> f64 {
        let squares: f64 = self.0.iter().map(|row| row.weight * row.weight / row.copies).sum();
        self.total().powi(2) / squares
    }

    /// Their mean, by weight.
    pub fn mean(&self) -> f64 {
        self.0.iter().map(|row| row.value * row.weight).sum::<f64>() / self.total()
    }

    /// Whether the mean is below that of other values of the same rows by so many standard errors of the
    /// difference, as if the difference were zero.
    pub fn below(&self, other: &Self, errors: f64) -> bool {
        let total = self.total();
        let (mut mean, mut squares) = (0.0, 0.0);
        for (row, other) in self.0.iter().zip(&other.0) {
            let difference = row.weight / total * (other.value - row.value);
            mean += difference;
            squares += difference * difference / row.copies;
        }
        mean > errors * squares.sqrt()
    }
}
