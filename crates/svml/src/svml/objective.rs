//! What is minimised, as a function of the optimiser's variables theta: the validation loss of equation (13) with
//! the regulariser of equation (17), its value and its gradient.
//!
//! ```text
//! f(theta) = criterion(L, C) + lambda |L - L0|^2 / |L0|^2,     theta = (L / |L0|, log C)
//! ```
//!
//! All variables are of order one. For a sphere the variable is log(1/sigma); for the weights of the Laplacian kernel they
//! are logarithms too.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::approach::LandmarkChoice;
use super::criterion::{Evaluation, PairFold, leave_one_out, validate_pairs};
use super::{COST_RANGE, Svml};
use crate::data::{LabelledRows, PairRows};
use crate::error::{Error, Result};
use crate::kernel::{self, Gram};
use crate::landmarks::{Evaluated, LandmarkProblems, LandmarkSvms, Landmarks, Problem};
use crate::linalg::Matrix;
use crate::loss::Loss;
use crate::metric::{Form, Kernel, Metric};
use crate::optimise::Objective;
use crate::parallel;
use crate::run::{Key, Watch};
use crate::svm::BinarySvm;
use crate::watch::Instant;

/// What is trained and validated, by rows of the kernel.
pub enum Problems {
    /// SVMs trained on one part and validated on another: hold-out, and k folds one after the other.
    Folds(Vec<PairFold>),
    /// SVMs trained on all rows and validated on each observation left out; with them the share of the weight of each row
    /// that one of its observations has.
    LeaveOneOut(Vec<PairRows>, Vec<f64>),
}

impl Problems {
    fn evaluate(
        &self,
        gram: &dyn Gram,
        cost: f64,
        loss: Loss,
        starts: &[BinarySvm],
    ) -> Result<Evaluation> {
        match self {
            Self::Folds(pairs) => validate_pairs(gram, pairs, cost, loss, starts),
            Self::LeaveOneOut(rows, share) => {
                leave_one_out(gram, (rows, share), cost, loss, starts)
            }
        }
    }

    /// How many of the SVMs may be trained at a time, beside the kernel matrix of all n rows, in so many bytes; at least
    /// one.
    fn at_once(&self, n: usize, memory: u64) -> usize {
        let (rows, matrices) = match self {
            Self::Folds(folds) => (folds.iter().map(|fold| fold.train.index.len()).max(), 1),
            Self::LeaveOneOut(rows, _) => (rows.iter().map(|rows| rows.index.len()).max(), 4),
        };
        let square = |rows: usize| 8 * (rows as u64).pow(2);
        let left = memory.saturating_sub(square(n));
        let each = (matrices * square(rows.unwrap_or(0))).max(1);
        usize::try_from(left / each).unwrap_or(usize::MAX).max(1)
    }

    /// What is trained and validated, in a key.
    fn in_key(&self, key: Key) -> Key {
        let rows = |key: Key, rows: &PairRows| {
            key.places(&rows.index).numbers(&rows.y).numbers(&rows.weight)
        };
        match self {
            Self::Folds(pairs) => {
                let key = key.text("folds").places(&[pairs.len()]);
                pairs.iter().fold(key, |key, pair| rows(rows(key, &pair.train), &pair.valid))
            }
            Self::LeaveOneOut(all, share) => {
                all.iter().fold(key.text("left out").numbers(share), rows)
            }
        }
    }

    /// How many SVMs there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Folds(pairs) => pairs.len(),
            Self::LeaveOneOut(rows, _) => rows.len(),
        }
    }

    /// An evaluation with its errors in the place of the outputs that only these are made from.
    fn measured(&self, evaluation: Evaluation) -> Evaluation {
        let errors = Some(self.errors(&evaluation));
        let valid_outputs = match self {
            Self::Folds(_) => Vec::new(),
            Self::LeaveOneOut(..) => evaluation.valid_outputs,
        };
        Evaluation { errors, train_outputs: Vec::new(), valid_outputs, ..evaluation }
    }

    /// Shares of training and of validation rows on the wrong side, over all SVMs.
    pub fn errors(&self, evaluation: &Evaluation) -> (f64, f64) {
        if let Some(errors) = evaluation.errors {
            return errors;
        }
        let share = |outputs: &[Vec<f64>], rows: &[&PairRows]| {
            let (mut wrong, mut total) = (0.0, 0.0);
            for (h, rows) in outputs.iter().zip(rows) {
                for ((h, y), w) in h.iter().zip(&rows.y).zip(&rows.weight) {
                    wrong += if (*h > 0.0) == (*y > 0.0) { 0.0 } else { *w };
                    total += w;
                }
            }
            wrong / f64::max(total, f64::MIN_POSITIVE)
        };
        let (train, valid): (Vec<&PairRows>, Vec<&PairRows>) = match self {
            Self::Folds(pairs) => pairs.iter().map(|pair| (&pair.train, &pair.valid)).unzip(),
            Self::LeaveOneOut(rows, _) => rows.iter().map(|rows| (rows, rows)).unzip(),
        };
        (share(&evaluation.train_outputs, &train), share(&evaluation.valid_outputs, &valid))
    }
}

/// A point at which the objective was evaluated.
pub struct Point {
    /// The optimiser's variables.
    pub theta: Vec<f64>,
    /// L.
    pub metric: Metric,
    /// C.
    pub cost: f64,
    /// Loss, gradient and SVMs there.
    pub evaluation: Evaluation,
}

/// What trains the SVMs.
enum Trainer<'a> {
    /// The kernel matrix, with a pool of fewer threads where memory does not allow as many SVMs at a time.
    Exact(Box<dyn Gram + 'a>, Option<rayon::ThreadPool>),
    /// Landmarks.
    Landmarks(Box<LandmarkSvms<'a>>),
}

impl Trainer<'_> {
    /// Becomes what it was after an evaluation, unless that was one of something else.
    fn go_back_to(&mut self, outcome: &Outcome) -> bool {
        match self {
            Self::Exact(..) => outcome.places.is_empty(),
            Self::Landmarks(svms) => svms.go_back_to(&outcome.places),
        }
    }

    fn evaluate(
        &mut self,
        metric: &Metric,
        problems: &Problems,
        cost: f64,
        loss: Loss,
        starts: &[BinarySvm],
    ) -> Result<Evaluation> {
        match self {
            Self::Exact(gram, pool) => {
                gram.set_metric(metric)?;
                let evaluate = || problems.evaluate(&**gram, cost, loss, starts);
                match pool {
                    Some(pool) => pool.install(evaluate),
                    None => evaluate(),
                }
            }
            Self::Landmarks(svms) => {
                svms.set_metric(metric)?;
                let Evaluated { loss, d_metric, d_log_cost } = svms.evaluate(cost, loss)?;
                // The SVMs follow from where they are.
                Ok(Evaluation {
                    loss,
                    d_metric,
                    d_log_cost,
                    svms: Vec::new(),
                    errors: Some(svms.errors()),
                    train_outputs: Vec::new(),
                    valid_outputs: Vec::new(),
                    residual: svms.residual(),
                })
            }
        }
    }
}

/// What came of an evaluation, all that a fit that goes on needs to know of it.
#[derive(Serialize, Deserialize)]
struct Outcome {
    /// None: L was so large that rounding hid which rows are close.
    evaluation: Option<Evaluation>,
    /// Where SVMs on landmarks were then.
    places: Vec<(Vec<f64>, bool)>,
    /// How long it took.
    seconds: f64,
}

/// Rows by folds.
#[derive(Clone, Copy)]
pub struct FoldRows<'a> {
    /// The class of each row.
    pub class: &'a [usize],
    /// Number of classes.
    pub classes: usize,
    /// How many rows, at the front, may be support rows: all, if every fold is trained on in turn.
    pub trained: usize,
    /// The rows of each fold. Of a hold-out division those to train on, and those to validate with.
    pub folds: &'a [LabelledRows],
}

impl FoldRows<'_> {
    /// What is trained and validated.
    fn problems(&self) -> Vec<Problem> {
        let count = self.folds.len();
        // The rows of a hold-out division are trained on or validated with, for good.
        let validated = if self.trained < self.class.len() { 1..2 } else { 0..count };
        validated
            .flat_map(|fold| {
                let valid: Vec<bool> = (0..count).map(|f| f == fold).collect();
                let train: Vec<bool> = valid.iter().map(|valid| !valid).collect();
                Problem::of_pairs(self.classes, &train, &valid)
            })
            .collect()
    }
}

/// The validation loss as a function of theta.
pub struct ValidationLoss<'a> {
    trainer: Trainer<'a>,
    problems: Problems,
    variables: Variables,
    loss: Loss,
    /// SVMs to start the first evaluation from, if any are known.
    starts: Vec<BinarySvm>,
    last: Option<Point>,
    slowest: Duration,
    watch: Watch,
    /// The rows, the parameters and all points that were evaluated so far, if results are recorded: SVMs start from those
    /// of the point before, which leaves traces in the last digits.
    history: Option<Key>,
}

impl<'a> ValidationLoss<'a> {
    /// On the rows of `x`, given by folds, of which the first `trained` may be support rows, with L starting from
    /// `initial`.
    pub fn new(
        x: &'a Matrix,
        rows: &FoldRows<'_>,
        problems: Problems,
        initial: Metric,
        params: &Svml,
        watch: &Watch,
    ) -> Result<Self> {
        let FoldRows { class, classes, trained, folds } = *rows;
        let history = watch.records().then(|| {
            let key = Key::new("validation loss").numbers(x.as_slice()).places(class);
            with_parameters(problems.in_key(key.places(&[classes, trained])), &initial, params)
        });
        let trainer = match (params.landmarks, &problems) {
            (LandmarkChoice::Count(count), Problems::Folds(_)) => {
                let among = &class[..trained];
                let landmarks = Landmarks::choose(x, among, classes, count, &initial, watch)?;
                let problems = rows.problems();
                let (kernel, metric, guess) = (params.kernel, &initial, None);
                let given = LandmarkProblems { kernel, metric, problems, guess };
                let svms =
                    LandmarkSvms::of_folds(x, folds, landmarks, given, params.memory(), watch)?;
                Trainer::Landmarks(Box::new(svms))
            }
            _ => {
                let gram = kernel::backend().gram(x, trained, &initial, params.kernel, watch)?;
                let at_once = problems.at_once(x.rows(), params.memory());
                let pool = match at_once < rayon::current_num_threads() {
                    true => parallel::pool(at_once),
                    false => None,
                };
                Trainer::Exact(gram, pool)
            }
        };
        let variables = Variables::new(initial, params);
        let (loss, starts, slowest) = (params.loss(), Vec::new(), Duration::ZERO);
        let (last, watch) = (None, watch.clone());
        Ok(Self { trainer, problems, variables, loss, starts, last, slowest, watch, history })
    }

    /// Over SVMs on landmarks, wherever their rows are; `rows` is what these are known by.
    pub fn of_svms(
        svms: LandmarkSvms<'a>,
        rows: Option<Key>,
        initial: Metric,
        params: &Svml,
    ) -> Self {
        let with_svms = |rows: Key| svms.in_key(Key::new("validation loss of all").then(rows));
        Self {
            history: rows.map(|rows| with_parameters(with_svms(rows), &initial, params)),
            watch: svms.watch().clone(),
            trainer: Trainer::Landmarks(Box::new(svms)),
            problems: Problems::Folds(Vec::new()),
            variables: Variables::new(initial, params),
            loss: params.loss(),
            starts: Vec::new(),
            last: None,
            slowest: Duration::ZERO,
        }
    }

    /// Starts the SVMs of the first evaluation from the support sets of others.
    pub fn start_from(&mut self, svms: Vec<BinarySvm>) {
        self.history = self.history.map(|key| svms.iter().fold(key, |key, svm| svm.in_key(key)));
        self.starts = svms;
    }

    /// theta at the start, with a given C.
    pub fn theta(&self, cost: f64) -> Vec<f64> {
        self.variables.start(cost)
    }

    /// What is trained and validated.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// Longest time of one evaluation so far.
    pub fn slowest(&self) -> Duration {
        self.slowest
    }

    /// Makes this the last point: a line search may have gone on from it.
    pub fn go_to(&mut self, theta: &[f64]) -> Result<()> {
        if self.last.as_ref().is_none_or(|last| last.theta != theta) {
            self.evaluate(theta, &mut vec![0.0; theta.len()])?;
        }
        Ok(())
    }

    /// The last point that was evaluated.
    pub fn point(&self) -> Option<&Point> {
        self.last.as_ref()
    }
}

impl Objective for ValidationLoss<'_> {
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let started = Instant::now();
        let Ok((metric, cost)) = self.variables.decode(theta) else {
            return Ok(f64::INFINITY);
        };
        self.history = self.history.map(|before| before.numbers(theta));
        let known = self.watch.recall(self.history).filter(|known| self.trainer.go_back_to(known));
        let outcome = match known {
            Some(known) => known,
            None => {
                let outcome = self.outcome(&metric, cost, started)?;
                self.watch.record(self.history, &outcome, started)?;
                outcome
            }
        };
        self.slowest =
            self.slowest.max(Duration::try_from_secs_f64(outcome.seconds).unwrap_or_default());
        // L is so large that rounding hides which rows are close: too far.
        let Some(mut evaluation) = outcome.evaluation else { return Ok(f64::INFINITY) };
        if let Trainer::Landmarks(svms) = &self.trainer {
            evaluation.svms = (0..svms.count()).map(|p| svms.svm(p)).collect();
        }
        evaluation.loss += self.variables.regularise(&metric, &mut evaluation.d_metric);
        let Evaluation { loss, d_log_cost, d_metric, .. } = &evaluation;
        self.variables.encode(&metric, d_metric, theta, *d_log_cost, gradient);
        let loss = *loss;
        self.last = Some(Point { theta: theta.to_vec(), metric, cost, evaluation });
        Ok(loss)
    }
}

impl ValidationLoss<'_> {
    /// Evaluates the criterion.
    fn outcome(&mut self, metric: &Metric, cost: f64, started: Instant) -> Result<Outcome> {
        let starts = self.last.as_ref().map_or(&self.starts, |last| &last.evaluation.svms);
        let evaluated = self.trainer.evaluate(metric, &self.problems, cost, self.loss, starts);
        let evaluation = match evaluated {
            Err(Error::NotPositiveDefinite { .. }) => None,
            evaluated => Some(self.problems.measured(evaluated?)),
        };
        let places = match &self.trainer {
            Trainer::Landmarks(svms) => svms.places(),
            Trainer::Exact(..) => Vec::new(),
        };
        Ok(Outcome { evaluation, places, seconds: started.elapsed().as_secs_f64() })
    }
}

/// With where L starts and the parameters of learning, but for the limit on memory, which changes no bit once it is known
/// how many landmarks there are.
fn with_parameters(key: Key, initial: &Metric, params: &Svml) -> Key {
    initial.in_key(key).with(&Svml { memory_limit: None, ..params.clone() })
}

/// The way between theta and (L, C).
struct Variables {
    initial: Metric,
    /// Size of L0: root of the mean square of its rows' lengths.
    unit: f64,
    lambda: f64,
    learn_cost: bool,
    /// Whether the variables are the logarithms of the values: of a width, and of the weights of the Laplacian kernel,
    /// which would have a kink at zero.
    logarithms: bool,
}

/// The least value that has a logarithm here, relative to the size of L0.
const LEAST_VALUE: f64 = 1e-6;

impl Variables {
    fn new(initial: Metric, params: &Svml) -> Self {
        let square: f64 = initial.relevance().iter().sum();
        let unit = (square / initial.rank() as f64).sqrt();
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let logarithms = match initial.form() {
            Form::Sphere => true,
            form => form == Form::Diagonal && params.kernel == Kernel::Laplacian,
        };
        Self { initial, unit, lambda: params.lambda, learn_cost: params.learn_cost, logarithms }
    }

    fn start(&self, cost: f64) -> Vec<f64> {
        let values = self.initial.values().iter();
        let mut theta: Vec<f64> = match self.logarithms {
            true => values.map(|v| v.abs().max(LEAST_VALUE * self.unit).ln()).collect(),
            false => values.map(|v| v / self.unit).collect(),
        };
        theta.push(cost.ln());
        theta
    }

    fn decode(&self, theta: &[f64]) -> Result<(Metric, f64)> {
        let (log_cost, values) = theta.split_last().unwrap_or((&0.0, &[]));
        let values = match self.logarithms {
            true => values.iter().map(|v| v.exp()).collect(),
            false => values.iter().map(|v| v * self.unit).collect(),
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

    /// The gradient in theta.
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
            *out = match self.logarithms {
                true => d * metric.values()[k],
                false => d * self.unit,
            };
        }
        // Where C is held, as given or at the end of its range, the loss does not depend on it.
        let inside =
            self.learn_cost && (COST_RANGE.0.ln()..=COST_RANGE.1.ln()).contains(&theta[last]);
        out[last] = if inside { d_log_cost } else { 0.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(form: Form, values: &[f64]) -> Variables {
        let params = Svml { lambda: 0.3, ..Svml::default() };
        Variables::new(Metric::new(form, 2, values.to_vec()).unwrap(), &params)
    }

    #[test]
    fn variables_are_l_and_c_there_and_back() {
        for (form, values) in [
            (Form::Sphere, &[0.3][..]),
            (Form::Diagonal, &[0.3, 4.0]),
            (Form::Full, &[0.3, -1.0, 0.0, 4.0]),
        ] {
            let variables = variables(form, values);
            let (metric, cost) = variables.decode(&variables.start(7.0)).unwrap();
            assert!((cost - 7.0).abs() < 1e-13);
            for (found, expected) in metric.values().iter().zip(values) {
                assert!((found - expected).abs() < 1e-14, "{form}: {found} {expected}");
            }
        }
    }

    /// Equation (17), and its derivative by central differences.
    #[test]
    fn the_regulariser_is_the_squared_distance_from_the_start() {
        let start = [0.3, -1.0, 0.5, 4.0];
        let variables = variables(Form::Full, &start);
        let value = |values: &[f64], d: &mut [f64]| {
            variables.regularise(&Metric::new(Form::Full, 2, values.to_vec()).unwrap(), d)
        };
        let now = [1.0, -0.4, 0.2, 3.0];
        let mut derivative = [1.0; 4];
        let found = value(&now, &mut derivative);
        let square = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
        let apart: Vec<f64> = now.iter().zip(start).map(|(a, b)| a - b).collect();
        assert!((found - 0.3 * square(&apart) / square(&start)).abs() < 1e-15, "{found}");
        for k in 0..4 {
            let [mut less, mut more] = [now; 2];
            less[k] -= 1e-4;
            more[k] += 1e-4;
            let slope = (value(&more, &mut [0.0; 4]) - value(&less, &mut [0.0; 4])) / 2e-4;
            // It is added to what is there.
            assert!((derivative[k] - 1.0 - slope).abs() < 1e-11, "{k}: {slope}");
        }
    }

    /// Labels and weights of some rows.
    fn pair_rows(index: &[usize], y: &[f64], weight: &[f64]) -> PairRows {
        PairRows { index: index.to_vec(), y: y.to_vec(), weight: weight.to_vec() }
    }

    /// Two SVMs that are trained on six rows each, of eight rows in all.
    fn two_folds() -> Problems {
        let fold = |train: std::ops::Range<usize>, valid: &[usize]| {
            let y: Vec<f64> = train.clone().map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
            let index: Vec<usize> = train.collect();
            PairFold {
                train: pair_rows(&index, &y, &[1.0; 6]),
                valid: pair_rows(valid, &[1.0, -1.0], &[1.0, 3.0]),
            }
        };
        Problems::Folds(vec![fold(0..6, &[6, 7]), fold(2..8, &[0, 1])])
    }

    /// A matrix of n rows has 8 n^2 bytes. An SVM of a fold needs one of its rows beside the kernel matrix of all rows, an
    /// SVM with rows left out four.
    #[test]
    fn as_many_svms_at_a_time_as_there_is_memory_for() {
        let (all, each) = (8 * 64, 8 * 36);
        let folds = two_folds();
        assert_eq!(folds.count(), 2);
        let at_once = |memory: u64| folds.at_once(8, memory);
        assert_eq!([0, all, all + each, all + 2 * each - 1].map(at_once), [1; 4]);
        assert_eq!([all + 2 * each, all + 7 * each].map(at_once), [2, 7]);
        let y = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        let rows = pair_rows(&[0, 1, 2, 3, 4, 5], &y, &[1.0; 6]);
        let left_out = Problems::LeaveOneOut(vec![rows.clone(), rows.clone(), rows], Vec::new());
        assert_eq!(left_out.count(), 3);
        let at_once = |memory: u64| left_out.at_once(8, memory);
        assert_eq!([all + 8 * each - 1, all + 8 * each, all + 12 * each].map(at_once), [1, 2, 3]);
    }

    /// By weight; an output of zero is on the side of the negative class.
    #[test]
    fn errors_are_shares_of_the_weight() {
        let evaluation = |train_outputs, valid_outputs| Evaluation {
            loss: 0.0,
            d_metric: Vec::new(),
            d_log_cost: 0.0,
            svms: Vec::new(),
            errors: None,
            train_outputs,
            valid_outputs,
            residual: 0.0,
        };
        let right = vec![2.0, -0.5, 0.1, -3.0, 1.0, 0.0];
        let one_wrong = vec![2.0, 0.5, 0.1, -3.0, 1.0, 0.0];
        let valid = vec![vec![0.5, -0.5], vec![-0.5, 0.5]];
        let of_folds = evaluation(vec![right.clone(), one_wrong.clone()], valid);
        assert_eq!(two_folds().errors(&of_folds), (1.0 / 12.0, 4.0 / 8.0));
        let y = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0];
        let rows = pair_rows(&[0, 1, 2, 3, 4, 5], &y, &[1.0, 2.0, 1.0, 1.0, 1.0, 2.0]);
        let left_out = Problems::LeaveOneOut(vec![rows], vec![1.0; 8]);
        let measured = left_out.measured(evaluation(vec![right], vec![one_wrong]));
        assert_eq!(left_out.errors(&measured), (0.0, 0.25));
    }

    /// Of a hold-out division the second part validates the first; else each fold is validated by SVMs of all others.
    #[test]
    fn folds_are_validated_in_turn_unless_rows_are_held_out() {
        let class = [0, 1, 2, 0, 1, 2];
        let folds = vec![LabelledRows::default(); 3];
        let problems = |trained: usize, count: usize| {
            let rows = FoldRows { class: &class, classes: 3, trained, folds: &folds[..count] };
            let parts = |p: Problem| (p.classes, p.train, p.valid);
            rows.problems().into_iter().map(parts).collect::<Vec<_>>()
        };
        let pairs = [(0, 1), (0, 2), (1, 2)];
        let held_out = pairs.map(|pair| (pair, vec![true, false], vec![false, true]));
        assert_eq!(problems(3, 2), held_out);
        let in_turn: Vec<_> = (0..3)
            .flat_map(|fold| {
                let valid: Vec<bool> = (0..3).map(|f| f == fold).collect();
                let train: Vec<bool> = (0..3).map(|f| f != fold).collect();
                pairs.map(|pair| (pair, train.clone(), valid.clone()))
            })
            .collect();
        assert_eq!(problems(6, 3), in_turn);
    }

    /// The weights of the Laplacian kernel would have a kink at zero, so that their logarithms are what is learned; the
    /// gradient in theta is that of the loss at what theta stands for.
    #[test]
    fn the_gradient_in_theta_follows_from_that_in_l_and_c() {
        for (kernel, form, logarithms) in [
            (Kernel::Gaussian, Form::Sphere, true),
            (Kernel::Laplacian, Form::Sphere, true),
            (Kernel::Laplacian, Form::Diagonal, true),
            (Kernel::Gaussian, Form::Diagonal, false),
            (Kernel::Exponential, Form::Diagonal, false),
            (Kernel::Gaussian, Form::Full, false),
        ] {
            let values: Vec<f64> = (0..form.len(2)).map(|k| 0.4 + 0.3 * k as f64).collect();
            let params = Svml { kernel, ..Svml::default() };
            let variables = Variables::new(Metric::new(form, 2, values).unwrap(), &params);
            let what = format!("{kernel} {form}");
            assert_eq!(variables.logarithms, logarithms, "{what}");
            // Some function of L and log C with a derivative that is known.
            let factor = |k: usize| 1.5 - 0.7 * k as f64;
            let value = |theta: &[f64]| {
                let (metric, cost) = variables.decode(theta).unwrap();
                let of_l = metric.values().iter().enumerate().map(|(k, v)| factor(k) * v * v);
                of_l.sum::<f64>() + 3.0 * cost.ln()
            };
            let theta = variables.start(7.0);
            let (metric, _) = variables.decode(&theta).unwrap();
            let d_metric: Vec<f64> =
                metric.values().iter().enumerate().map(|(k, v)| 2.0 * factor(k) * v).collect();
            let mut gradient = vec![0.0; theta.len()];
            variables.encode(&metric, &d_metric, &theta, 3.0, &mut gradient);
            for k in 0..theta.len() {
                let moved = |by: f64| {
                    let mut theta = theta.clone();
                    theta[k] += by;
                    value(&theta)
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((gradient[k] - slope).abs() < 1e-8, "{what}, {k}: {} {slope}", gradient[k]);
            }
        }
    }

    /// Neither a C that is held nor one at the end of its range has a derivative.
    #[test]
    fn a_cost_that_cannot_move_has_no_slope() {
        let start = Metric::new(Form::Sphere, 2, vec![0.3]).unwrap();
        let slope = |learn_cost: bool, log_cost: f64| {
            let params = Svml { learn_cost, ..Svml::default() };
            let variables = Variables::new(start.clone(), &params);
            let mut out = [0.0; 2];
            variables.encode(&start, &[0.0], &[0.0, log_cost], 5.0, &mut out);
            out[1]
        };
        assert_eq!(slope(true, 1.0), 5.0);
        assert_eq!(slope(false, 1.0), 0.0);
        assert_eq!(slope(true, COST_RANGE.0.ln() - 1e-9), 0.0);
        assert_eq!(slope(true, COST_RANGE.1.ln() + 1e-9), 0.0);
    }

    /// The principal components of columns that do not vary are zero, and have no size to measure by.
    #[test]
    fn a_start_of_zero_is_measured_as_it_is() {
        let variables = variables(Form::Full, &[0.0; 4]);
        let (metric, _) = variables.decode(&[0.5, 0.0, -1.0, 2.0, 0.0]).unwrap();
        assert_eq!(metric.values(), [0.5, 0.0, -1.0, 2.0]);
        let mut derivative = [0.0; 4];
        let value = variables.regularise(&metric, &mut derivative);
        assert!((value - 0.3 * 5.25).abs() < 1e-15, "{value}");
    }

    /// A line search may have gone on from the point that it returns: that point is the last one then, and what it was.
    #[test]
    fn the_last_point_is_the_one_that_was_gone_to() {
        let x = Matrix::from_fn(8, 2, |i, k| ((i * 5 + k * 3) as f64 * 0.9).sin());
        let rows =
            FoldRows { class: &[0, 1, 0, 1, 0, 1, 0, 1], classes: 2, trained: 8, folds: &[] };
        let initial = Metric::new(Form::Diagonal, 2, vec![0.8, 0.5]).unwrap();
        let (params, watch) = (Svml::default(), Watch::default());
        let mut loss =
            ValidationLoss::new(&x, &rows, two_folds(), initial, &params, &watch).unwrap();
        let first = loss.theta(3.0);
        let second: Vec<f64> = first.iter().map(|v| v + 0.2).collect();
        let mut gradient = vec![0.0; 3];
        let values = [&first, &second].map(|theta| loss.evaluate(theta, &mut gradient).unwrap());
        assert!(values[0] != values[1]);
        for (theta, value) in [(&first, values[0]), (&first, values[0]), (&second, values[1])] {
            loss.go_to(theta).unwrap();
            let point = loss.point().unwrap();
            assert_eq!(&point.theta, theta);
            assert!((point.evaluation.loss - value).abs() < 1e-12);
        }
        // Nothing is computed where it is already.
        let before = loss.point().unwrap().evaluation.svms.clone();
        loss.last.as_mut().unwrap().evaluation.loss = -1.0;
        loss.go_to(&second).unwrap();
        let point = loss.point().unwrap();
        assert_eq!((point.evaluation.loss, &point.evaluation.svms), (-1.0, &before));
    }
}
