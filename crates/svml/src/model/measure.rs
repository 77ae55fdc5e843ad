//! How well classes are predicted on labelled rows: errors, rankings, probabilities, each with a 95 % interval.
//!
//! Definitions are those of scikit-learn. Intervals come from resamples of the rows (the bootstrap): rows are sorted by
//! score once, and a resample is then a number of copies of each row, so that it takes one pass over them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Model;
use super::threshold::Threshold;
use crate::data::excerpt;
use crate::data::folds::mix;
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::parallel;

/// Probabilities below this count as this in the log loss, as in scikit-learn, so that one row cannot make it infinite.
const SMALLEST: f64 = f64::EPSILON;

/// Most resamples, which is what 100,000 rows of two classes get; and fewest, however many rows there are.
const MOST_RESAMPLES: usize = 1000;
const FEWEST_RESAMPLES: usize = 200;
/// Steps through sorted rows, over all resamples, beyond which there are fewer resamples.
const WORK: usize = 200_000_000;
/// Seed of the resamples.
const SEED: u64 = 0x0073_766d_6c5f_6369;
/// The ends of an interval leave out this share of the resamples each.
const TAIL: f64 = 0.025;
/// The quantile of the normal distribution that goes with it.
const Z: f64 = 1.959_963_984_540_054;

/// Bins of the calibration error, each with as many rows; fewer where a bin would have fewer rows than this. Ten are few
/// enough for their noise, which looks like an error of calibration, to stay small, and each has enough rows to be a
/// share.
const BINS: usize = 10;
const ROWS_OF_BIN: usize = 20;

/// One of the numbers of [`Measures`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Measure {
    /// [`Measures::error`].
    Error,
    /// [`Measures::balanced_error`].
    BalancedError,
    /// [`Measures::auc`].
    Auc,
    /// [`Measures::average_precision`].
    AveragePrecision,
    /// [`Measures::f1`].
    F1,
    /// [`Measures::mcc`].
    Mcc,
    /// [`Measures::brier`].
    Brier,
    /// [`Measures::log_loss`].
    LogLoss,
    /// [`Measures::calibration_error`].
    CalibrationError,
}

impl Measure {
    /// All of them, in the order in which they are printed.
    pub const ALL: [Self; 9] = [
        Self::Error,
        Self::BalancedError,
        Self::Auc,
        Self::AveragePrecision,
        Self::F1,
        Self::Mcc,
        Self::Brier,
        Self::LogLoss,
        Self::CalibrationError,
    ];

    /// The name that programs know it by, such as `balanced_error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::BalancedError => "balanced_error",
            Self::Auc => "auc",
            Self::AveragePrecision => "average_precision",
            Self::F1 => "f1",
            Self::Mcc => "mcc",
            Self::Brier => "brier",
            Self::LogLoss => "log_loss",
            Self::CalibrationError => "calibration_error",
        }
    }

    /// The name for people, such as `balanced error`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::BalancedError => "balanced error",
            Self::Auc => "AUC",
            Self::AveragePrecision => "average precision",
            Self::F1 => "F1",
            Self::Mcc => "MCC",
            Self::Brier => "Brier score",
            Self::LogLoss => "log loss",
            Self::CalibrationError => "calibration error",
        }
    }

    /// Whether a larger value is a better one.
    pub fn is_better_larger(self) -> bool {
        matches!(self, Self::Auc | Self::AveragePrecision | Self::F1 | Self::Mcc)
    }

    /// Whether people read it in percent.
    pub fn is_share(self) -> bool {
        matches!(self, Self::Error | Self::BalancedError | Self::CalibrationError)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Measure {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|measure| measure.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::parameter("measure", format!("'{text}'"), format!("one of {names}"))
        })
    }
}

/// What says how much each class is favoured for each row.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Scores<'a> {
    /// Nothing: only what follows from the predicted classes can be measured.
    None,
    /// Decision values, as of [`Model::decision`]: they rank rows and are no probabilities. // (rows, 1) or (rows, classes)
    Decision(&'a Matrix),
    /// Probabilities, as of [`Model::probabilities`]. // (rows, classes)
    Probabilities(&'a Matrix),
}

/// Measures of predictions for rows whose classes are known. Every row counts once. All are as scikit-learn defines them;
/// what cannot be measured, because there are no scores or no rows of a class, is absent.
///
/// With two classes F1, average precision and the Brier score are those of one of them, [`Measures::positive`]: the second
/// class unless another was asked for. With more, AUC, average precision and F1 are the means over the classes, each
/// against the rest.
///
/// [`Measures::intervals`] are 95 % intervals, for rows drawn at random: Wilson's for the error, and for the others between
/// quantiles of resamples of all rows with replacement, not class by class, because how many rows of each class there are is
/// chance as well. In a simulation of 200 rows, a fifth of them of the second class, they held the true value in 93 to 95 of
/// 100 cases (of 1,000 rows in 94 to 95), those of the calibration error in 87 to 90.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Measures {
    /// Number of rows.
    pub rows: usize,
    /// Share of rows whose predicted class is not their class.
    pub error: f64,
    /// Mean over the classes that occur of the share of their rows that are misclassified.
    pub balanced_error: f64,
    /// Area under the ROC curve: how often a row of the class has a higher score than a row of another; equal scores count
    /// half.
    pub auc: Option<f64>,
    /// Mean of the precision at each row of the class, by descending score: sum of (R_k - R_{k-1}) P_k over the distinct
    /// scores, without interpolation.
    pub average_precision: Option<f64>,
    /// Harmonic mean of precision and recall; with several classes the mean over those that occur or are predicted.
    pub f1: Option<f64>,
    /// Matthews' correlation of classes and predictions, in its form for any number of classes; 0 if only one class
    /// occurs, or is predicted.
    pub mcc: f64,
    /// Mean of (p - y)^2 with y = 1 for rows of the class and 0 for others; with several classes the sum over the classes.
    pub brier: Option<f64>,
    /// Mean of -log p(class of the row), natural logarithm, with p at least 2.2e-16. Absent for a model without
    /// probabilities.
    pub log_loss: Option<f64>,
    /// Expected calibration error of the probability of the predicted class: rows are sorted by it into ten bins of equal
    /// count (fewer below 200 rows, of 20 rows or more each), and of the differences between the mean probability and the
    /// share of right predictions in each bin it is the mean, by rows. Rows of equal probability are in one bin.
    pub calibration_error: Option<f64>,
    /// Of two classes the one that F1, average precision and the Brier score are of; absent if there are more.
    pub positive: Option<String>,
    /// The classes of the model, then those that only the rows have.
    pub classes: Vec<String>,
    /// Number of rows of each class (first index) that were predicted as each class (second index).
    pub confusion: Vec<Vec<usize>>,
    /// 95 % intervals, from low to high. One is left out where all resamples agree, as where every row is classified
    /// correctly: resamples cannot tell then how far off the value may be.
    pub intervals: BTreeMap<Measure, [f64; 2]>,
    /// Each class against the rest.
    pub per_class: Vec<ClassMeasures>,
}

/// How well one class is told from the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClassMeasures {
    /// The class.
    pub class: String,
    /// Number of its rows.
    pub rows: usize,
    /// Share of its rows among those predicted as it.
    pub precision: Option<f64>,
    /// Share of its rows that are predicted as it.
    pub recall: Option<f64>,
    /// Harmonic mean of the two.
    pub f1: Option<f64>,
    /// As [`Measures::auc`].
    pub auc: Option<f64>,
    /// As [`Measures::average_precision`].
    pub average_precision: Option<f64>,
}

impl Measures {
    /// Compares predicted classes with true ones, both places in `classes`. The scores are of the first of the classes, as
    /// many as they have columns; classes beyond these are none that could have been predicted. `positive` is the class
    /// that is asked about where there are two, as a rule 1, the second.
    ///
    /// ```
    /// use svml::{Matrix, Measures, Scores};
    ///
    /// let p = Matrix::from_rows(&[[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]])?;
    /// let classes = ["no".to_owned(), "yes".to_owned()];
    /// let measures = Measures::of(&classes, &[0, 0, 1, 1], &[0, 0, 0, 1], Scores::Probabilities(&p), 1)?;
    /// assert_eq!((measures.error, measures.auc), (0.25, Some(0.75)));
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn of(
        classes: &[String],
        truth: &[usize],
        predicted: &[usize],
        scores: Scores<'_>,
        positive: usize,
    ) -> Result<Self> {
        check(classes, truth, predicted, scores, positive)?;
        let judged = Judged::new(classes.len(), truth, predicted, scores, positive);
        let once = vec![1_u32; truth.len()];
        let (values, confusion) = judged.values(&once);
        let [error, balanced_error, auc, average_precision, f1, mcc, brier, log_loss, calibration] =
            values;
        let per_class = judged.per_class(classes, &confusion, &once);
        let k = classes.len();
        Ok(Self {
            rows: truth.len(),
            error: error.unwrap_or_default(),
            balanced_error: balanced_error.unwrap_or_default(),
            auc,
            average_precision,
            f1,
            mcc: mcc.unwrap_or_default(),
            brier,
            log_loss,
            calibration_error: calibration,
            positive: (k == 2).then(|| classes[positive].clone()),
            classes: classes.to_vec(),
            confusion: confusion
                .chunks(k)
                .map(|row| row.iter().map(|&count| count as usize).collect())
                .collect(),
            intervals: judged.intervals(values),
            per_class,
        })
    }

    /// The value of a measure.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Error => Some(self.error),
            Measure::BalancedError => Some(self.balanced_error),
            Measure::Auc => self.auc,
            Measure::AveragePrecision => self.average_precision,
            Measure::F1 => self.f1,
            Measure::Mcc => Some(self.mcc),
            Measure::Brier => self.brier,
            Measure::LogLoss => self.log_loss,
            Measure::CalibrationError => self.calibration_error,
        }
    }
}

/// Refuses arrays that do not belong together.
fn check(
    classes: &[String],
    truth: &[usize],
    predicted: &[usize],
    scores: Scores<'_>,
    positive: usize,
) -> Result<()> {
    let shape = |what: &str, found: usize, expected: usize| match found == expected {
        true => Ok(()),
        false => Err(Error::Shape { what: what.to_owned(), found, expected }),
    };
    let (n, k) = (truth.len(), classes.len());
    if n == 0 {
        return Err(Error::NoRows(" to measure".to_owned()));
    }
    shape("predicted classes, one for each row", predicted.len(), n)?;
    let known = |class: &&usize| **class < k;
    let count = truth.iter().chain(predicted).filter(known).count();
    shape("classes of rows that are among the classes", count, 2 * n)?;
    if positive >= k {
        let bound = format!("the place of one of the {k} classes, from 0");
        return Err(Error::parameter("positive", positive, bound));
    }
    let (values, columns) = match scores {
        Scores::None => return Ok(()),
        Scores::Decision(values) if values.cols() == 1 => (values, 2),
        Scores::Decision(values) | Scores::Probabilities(values) => (values, values.cols()),
    };
    shape("scores, one row for each row", values.rows(), n)?;
    if columns > k {
        shape("columns of scores, one for each class", columns, k)?;
    }
    let all = values.as_slice().iter();
    let bad = |v: &&f64| match scores {
        Scores::Probabilities(_) => !(0.0..=1.0).contains(*v),
        _ => v.is_nan(),
    };
    match (all.clone().find(bad), scores) {
        (None, _) => Ok(()),
        (Some(v), Scores::Probabilities(_)) => {
            Err(Error::parameter("probability", v, "between 0 and 1"))
        }
        (Some(v), _) => Err(Error::parameter("decision value", v, "a number")),
    }
}

/// A row in the order of scores.
#[derive(Clone, Copy)]
struct Placed {
    row: u32,
    /// Whether it is of the class, or classified correctly.
    is_positive: bool,
    /// Whether the next row has another score.
    is_last: bool,
}

/// Rows by descending score.
pub(crate) struct Ranked(Vec<Placed>);

impl Ranked {
    pub fn new(score: &[f64], is_positive: impl Fn(usize) -> bool) -> Self {
        let mut order: Vec<usize> = (0..score.len()).collect();
        // Zero and minus zero are one score.
        order.sort_unstable_by(|&a, &b| {
            (score[b] + 0.0).total_cmp(&(score[a] + 0.0)).then_with(|| a.cmp(&b))
        });
        let place = |at: usize| {
            let row = order[at];
            let is_last = order.get(at + 1).is_none_or(|&next| score[next] != score[row]);
            Placed { row: row as u32, is_positive: is_positive(row), is_last }
        };
        Self((0..order.len()).map(place).collect())
    }

    /// The distinct scores, each by one of its rows, with how many positive and how many negative rows have at least this
    /// score.
    pub fn steps(&self) -> Vec<(usize, [usize; 2])> {
        let mut counts = [0, 0];
        let mut steps = Vec::new();
        for placed in &self.0 {
            counts[usize::from(!placed.is_positive)] += 1;
            if placed.is_last {
                steps.push((placed.row as usize, counts));
            }
        }
        steps
    }

    /// Area under the ROC curve and average precision, with so many copies of each row; none where one side is empty.
    fn auc_and_precision(&self, copies: &[u32]) -> (Option<f64>, Option<f64>) {
        let (mut above, mut below) = (0.0, 0.0);
        let (mut ordered, mut precision) = (0.0, 0.0);
        let (mut here, mut positive) = (0_u64, 0_u64);
        for placed in &self.0 {
            let count = u64::from(copies[placed.row as usize]);
            here += count;
            positive += count * u64::from(placed.is_positive);
            if placed.is_last {
                let (p, n) = (positive as f64, (here - positive) as f64);
                ordered += n * (above + 0.5 * p);
                above += p;
                below += n;
                if positive > 0 {
                    precision += p * (above / (above + below));
                }
                (here, positive) = (0, 0);
            }
        }
        let auc = (above > 0.0 && below > 0.0).then(|| ordered / (above * below));
        (auc, (above > 0.0).then(|| precision / above))
    }
}

/// How many bins of equal count so many rows have.
pub(crate) fn bins_of(rows: usize) -> usize {
    (rows / ROWS_OF_BIN).clamp(1, BINS)
}

/// The bin of equal count of `here` rows that have the same score and come after `before` others, of `rows` in all: that in
/// which their middle is.
pub(crate) fn bin_of(before: u64, here: u64, rows: usize) -> usize {
    let bins = bins_of(rows);
    // In units of half a row.
    let middle = (2 * before + here) as usize;
    (middle * bins / (2 * rows).max(1)).min(bins - 1)
}

/// The probability of the predicted class of each row, and whether it was right.
struct Sureness {
    by_probability: Ranked,
    probability: Vec<f64>,
}

impl Sureness {
    /// The expected calibration error. Rows of equal probability go to the bin in which their middle is.
    fn calibration_error(&self, copies: &[u32]) -> f64 {
        let rows = self.probability.len();
        // Right predictions less expected ones.
        let mut apart = [0.0; BINS];
        let (mut before, mut here, mut right) = (0_u64, 0_u64, 0_u64);
        for placed in &self.by_probability.0 {
            let count = u64::from(copies[placed.row as usize]);
            here += count;
            right += if placed.is_positive { count } else { 0 };
            if placed.is_last && here > 0 {
                let bin = bin_of(before, here, rows);
                let probability = self.probability[placed.row as usize];
                apart[bin] += right as f64 - here as f64 * probability;
                before += here;
                (here, right) = (0, 0);
            }
        }
        apart.iter().map(|apart| apart.abs()).sum::<f64>() / rows as f64
    }
}

/// Predictions with all that is the same for every resample of the rows.
struct Judged {
    classes: usize,
    /// Class times the number of classes, plus predicted class.
    cell: Vec<u32>,
    /// Of the class that is asked about if there are two, otherwise of each class that has scores.
    rankings: Vec<Ranked>,
    positive: usize,
    /// Of each class that has scores.
    of_classes: Vec<Ranked>,
    /// Log loss and Brier score of each row.
    losses: Option<Vec<[f64; 2]>>,
    sureness: Option<Sureness>,
}

impl Judged {
    fn new(
        classes: usize,
        truth: &[usize],
        predicted: &[usize],
        scores: Scores<'_>,
        positive: usize,
    ) -> Self {
        let rank = |score: &[f64], class: usize| Ranked::new(score, |row| truth[row] == class);
        let column = |values: &Matrix, class: usize| values.col(class).collect::<Vec<f64>>();
        let mut of_classes: Vec<Ranked> = match scores {
            Scores::None => Vec::new(),
            Scores::Decision(h) if h.cols() == 1 => {
                let against: Vec<f64> = h.as_slice().iter().map(|h| -h).collect();
                vec![rank(&against, 0), rank(h.as_slice(), 1)]
            }
            Scores::Decision(values) | Scores::Probabilities(values) => {
                (0..values.cols()).map(|class| rank(&column(values, class), class)).collect()
            }
        };
        let rankings = match classes == 2 && of_classes.len() == 2 {
            true => vec![of_classes.swap_remove(positive)],
            false => std::mem::take(&mut of_classes),
        };
        let losses = match scores {
            Scores::Probabilities(p) => {
                let loss = |(row, &class): (usize, &usize)| {
                    let p = p.row(row);
                    let given = p.get(class).copied().unwrap_or(0.0);
                    let brier: f64 = match classes {
                        2 => (p.get(positive).copied().unwrap_or(0.0)
                            - f64::from(u8::from(class == positive)))
                        .powi(2),
                        _ => {
                            let squares: f64 = p.iter().map(|p| p * p).sum();
                            squares - given * given + (1.0 - given).powi(2)
                        }
                    };
                    [-given.max(SMALLEST).ln(), brier]
                };
                Some(truth.iter().enumerate().map(loss).collect())
            }
            _ => None,
        };
        let sureness = match scores {
            Scores::Probabilities(p) => {
                let of = |(row, &class): (usize, &usize)| p.row(row).get(class).copied();
                let probability: Vec<f64> =
                    predicted.iter().enumerate().map(|at| of(at).unwrap_or(0.0)).collect();
                let by_probability = Ranked::new(&probability, |row| truth[row] == predicted[row]);
                Some(Sureness { by_probability, probability })
            }
            _ => None,
        };
        let cell = truth.iter().zip(predicted).map(|(t, p)| (t * classes + p) as u32).collect();
        Self { classes, cell, rankings, positive, of_classes, losses, sureness }
    }

    /// All measures, in their order, and the confusion matrix, with so many copies of each row.
    fn values(&self, copies: &[u32]) -> ([Option<f64>; 9], Vec<u64>) {
        let k = self.classes;
        let mut confusion = vec![0_u64; k * k];
        let mut losses = [0.0; 2];
        match &self.losses {
            Some(of_rows) => {
                for ((&cell, of_row), &count) in self.cell.iter().zip(of_rows).zip(copies) {
                    confusion[cell as usize] += u64::from(count);
                    losses[0] += f64::from(count) * of_row[0];
                    losses[1] += f64::from(count) * of_row[1];
                }
            }
            None => {
                let both = self.cell.iter().zip(copies);
                both.for_each(|(&cell, &count)| confusion[cell as usize] += u64::from(count));
            }
        }
        let rows = copies.len() as f64;
        let [log_loss, brier] = losses.map(|sum| self.losses.is_some().then_some(sum / rows));
        let Table { error, balanced_error, f1, mcc } =
            Table::of(&confusion, k, (k == 2).then_some(self.positive));
        let ranked: Vec<_> = self.rankings.iter().map(|r| r.auc_and_precision(copies)).collect();
        let auc = mean(ranked.iter().filter_map(|(auc, _)| *auc));
        let precision = mean(ranked.iter().filter_map(|(_, precision)| *precision));
        let calibration = self.sureness.as_ref().map(|s| s.calibration_error(copies));
        let values = [
            Some(error),
            Some(balanced_error),
            auc,
            precision,
            f1,
            mcc,
            brier,
            log_loss,
            calibration,
        ];
        (values, confusion)
    }

    fn per_class(
        &self,
        classes: &[String],
        confusion: &[u64],
        copies: &[u32],
    ) -> Vec<ClassMeasures> {
        let k = self.classes;
        let of_class = |c: usize| {
            // Of two classes the one that is asked about has been taken out.
            let ranked = match self.of_classes.is_empty() {
                true => self.rankings.get(c),
                false if c == self.positive => self.rankings.first(),
                false => self.of_classes.first(),
            };
            let (auc, average_precision) =
                ranked.map_or((None, None), |ranked| ranked.auc_and_precision(copies));
            let counts = Counts::of(confusion, k, c);
            let share = |part: u64, all: u64| (all > 0).then(|| part as f64 / all as f64);
            ClassMeasures {
                class: classes[c].clone(),
                rows: counts.rows as usize,
                precision: share(counts.right, counts.predicted),
                recall: share(counts.right, counts.rows),
                f1: counts.f1(),
                auc,
                average_precision,
            }
        };
        (0..k).map(of_class).collect()
    }

    /// 95 % intervals around the values that were found.
    fn intervals(&self, found: [Option<f64>; 9]) -> BTreeMap<Measure, [f64; 2]> {
        let n = self.cell.len();
        let passes = self.rankings.len() + usize::from(self.sureness.is_some());
        let resamples = (WORK / (n * passes.max(1)).max(1)).clamp(FEWEST_RESAMPLES, MOST_RESAMPLES);
        let drawn: Vec<[Option<f64>; 9]> = parallel::map(0..resamples, |k| {
            let mut copies = vec![0_u32; n];
            draw(&mut copies, k as u64);
            self.values(&copies).0
        });
        let mut intervals = BTreeMap::new();
        for (place, measure) in Measure::ALL.into_iter().enumerate() {
            let Some(value) = found[place] else { continue };
            if measure == Measure::Error {
                intervals.insert(measure, wilson(value, n as f64));
                continue;
            }
            let mut values: Vec<f64> = drawn.iter().filter_map(|values| values[place]).collect();
            // A rare class is not in every resample.
            if 2 * values.len() < resamples {
                continue;
            }
            values.sort_unstable_by(f64::total_cmp);
            let (low, high) = (quantile(&values, TAIL), quantile(&values, 1.0 - TAIL));
            if low == high {
                continue;
            }
            let interval = match measure {
                // Resamples are calibrated worse than the rows, by as much as the rows are worse than the truth: the
                // distances are taken the other way round.
                Measure::CalibrationError => [2.0 * value - high, 2.0 * value - low],
                _ => [low, high],
            };
            intervals.insert(measure, interval.map(|end| end.max(lowest(measure))));
        }
        intervals
    }
}

fn lowest(measure: Measure) -> f64 {
    if measure == Measure::Mcc { -1.0 } else { 0.0 }
}

/// As many rows as there are, drawn with replacement: how often each. It depends on the number of the resample alone.
fn draw(copies: &mut [u32], resample: u64) {
    copies.fill(0);
    let n = copies.len() as u64;
    let start = mix(SEED ^ mix(resample));
    for i in 0..n {
        // The upper half of the product is a row, and evenly so, because n is far below 2^32.
        let at = (u128::from(mix(start.wrapping_add(i))) * u128::from(n)) >> 64;
        copies[at as usize] += 1;
    }
}

/// Wilson's interval of a share of n rows.
pub(crate) fn wilson(share: f64, n: f64) -> [f64; 2] {
    let z2 = Z * Z / n;
    let middle = (share + 0.5 * z2) / (1.0 + z2);
    let half = Z / (1.0 + z2) * (share * (1.0 - share) / n + 0.25 * z2 / n).sqrt();
    [(middle - half).max(0.0), (middle + half).min(1.0)]
}

/// Of sorted values, by linear interpolation.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (at - at.floor()) * (above - below)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// What a confusion matrix says of one class.
struct Counts {
    rows: u64,
    predicted: u64,
    right: u64,
}

impl Counts {
    fn of(confusion: &[u64], classes: usize, class: usize) -> Self {
        let rows = confusion[class * classes..(class + 1) * classes].iter().sum();
        let predicted = confusion.iter().skip(class).step_by(classes).sum();
        Self { rows, predicted, right: confusion[class * classes + class] }
    }

    fn f1(&self) -> Option<f64> {
        let all = self.rows + self.predicted;
        (all > 0).then(|| 2.0 * self.right as f64 / all as f64)
    }
}

/// What follows from a confusion matrix.
pub(super) struct Table {
    pub error: f64,
    pub balanced_error: f64,
    pub f1: Option<f64>,
    /// None where one class has all rows, or all predictions.
    pub mcc: Option<f64>,
}

impl Table {
    /// F1 is that of `positive`, or the mean over the classes if there is none.
    pub fn of(confusion: &[u64], classes: usize, positive: Option<usize>) -> Self {
        let counts: Vec<Counts> = (0..classes).map(|c| Counts::of(confusion, classes, c)).collect();
        let rows = counts.iter().map(|c| c.rows).sum::<u64>() as f64;
        let right = counts.iter().map(|c| c.right).sum::<u64>() as f64;
        let missed = |c: &Counts| (c.rows - c.right) as f64 / c.rows as f64;
        let balanced_error = mean(counts.iter().filter(|c| c.rows > 0).map(missed));
        let f1 = match positive {
            Some(class) => counts[class].f1(),
            None => mean(counts.iter().filter_map(Counts::f1)),
        };
        // Gorodkin's correlation of two labellings.
        let sum = |of: fn(&Counts) -> f64| counts.iter().map(of).sum::<f64>();
        let both = sum(|c| c.rows as f64 * c.predicted as f64);
        let of_predicted = rows * rows - sum(|c| (c.predicted as f64).powi(2));
        let of_truth = rows * rows - sum(|c| (c.rows as f64).powi(2));
        let scale = of_predicted * of_truth;
        let mcc = (scale > 0.0).then(|| (right * rows - both) / scale.sqrt());
        let error = (rows - right) / rows;
        Self { error, balanced_error: balanced_error.unwrap_or_default(), f1, mcc }
    }
}

impl Model {
    /// Compares the predictions for the rows of `x` with their labels. A label that the model does not
    /// know counts as misclassified.
    ///
    /// ```
    /// use svml::{Generator, Measure, Model, Svml};
    ///
    /// let data = Generator::default().generate()?.data;
    /// let model = Model::fit(&data, Svml::default())?;
    /// let labels: Vec<&str> = data.y().iter().map(|&c| data.classes()[c].as_str()).collect();
    /// let measures = model.measure(data.x(), &labels)?;
    /// assert_eq!(measures.rows, 500);
    /// assert_eq!(measures.error, model.error_rate(&data)?);
    /// println!("{measures}");
    ///
    /// let [low, high] = measures.intervals[&Measure::Error];
    /// assert!(low < measures.error && measures.error < high);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn measure<L: AsRef<str>>(&self, x: &Matrix, labels: &[L]) -> Result<Measures> {
        self.measured(x, labels, None, 1)
    }

    /// As [`Model::measure`], where one of two classes is asked about by its name.
    pub fn measure_about<L: AsRef<str>>(
        &self,
        x: &Matrix,
        labels: &[L],
        class: &str,
    ) -> Result<Measures> {
        let positive = self.threshold(Some(class), 0.5)?.class;
        self.measured(x, labels, None, positive)
    }

    /// As [`Model::measure`], of the classes that a threshold predicts, and about its class.
    pub fn measure_at<L: AsRef<str>>(
        &self,
        x: &Matrix,
        labels: &[L],
        threshold: Threshold,
    ) -> Result<Measures> {
        self.measured(x, labels, Some(threshold), threshold.class)
    }

    fn measured<L: AsRef<str>>(
        &self,
        x: &Matrix,
        labels: &[L],
        threshold: Option<Threshold>,
        positive: usize,
    ) -> Result<Measures> {
        if labels.len() != x.rows() {
            return Err(Error::Shape {
                what: "labels, one for each row".to_owned(),
                found: labels.len(),
                expected: x.rows(),
            });
        }
        let predicted = match threshold {
            Some(threshold) => self.predict_at(x, threshold)?,
            None => self.predict(x)?,
        };
        let others: BTreeSet<&str> =
            labels.iter().map(AsRef::as_ref).filter(|label| self.place(label).is_none()).collect();
        let mut classes = self.classes().to_vec();
        classes.extend(others.iter().map(|&label| label.to_owned()));
        let others: Vec<&str> = others.into_iter().collect();
        let known = self.classes().len();
        let truth: Vec<usize> = (labels.iter().map(AsRef::as_ref))
            .map(|label| {
                let place = self.place(label);
                place.unwrap_or_else(|| known + others.partition_point(|other| *other < label))
            })
            .collect();
        // A model of the first file format has no probabilities.
        match self.probabilities(x) {
            Ok(p) => {
                Measures::of(&classes, &truth, &predicted, Scores::Probabilities(&p), positive)
            }
            Err(_) => {
                let values = self.decision(x)?;
                Measures::of(&classes, &truth, &predicted, Scores::Decision(&values), positive)
            }
        }
    }

    /// The place of a class by its name.
    pub(super) fn place(&self, label: &str) -> Option<usize> {
        self.classes().iter().position(|class| class == label)
    }
}

/// Most classes that are listed one by one.
const LISTED: usize = 20;
/// Longest name of a class in a table, in characters.
const WIDEST: usize = 16;

/// A number as people read it.
fn shown(measure: Measure, value: f64) -> String {
    match measure.is_share() {
        true => format!("{:.2} %", 100.0 * value),
        false => format!("{value:.4}"),
    }
}

fn short(name: &str) -> String {
    let name = excerpt(name);
    match name.chars().count() > WIDEST {
        true => name.chars().take(WIDEST - 3).collect::<String>() + "...",
        false => name,
    }
}

/// Lines of cells, the first column to the left, the others to the right.
fn lines(f: &mut fmt::Formatter<'_>, rows: &[Vec<String>]) -> fmt::Result {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| {
        rows.iter().filter_map(|row| row.get(k)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (k, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match k {
                0 => line.push_str(&format!("{cell:width$}")),
                _ => line.push_str(&format!("  {cell:>width$}")),
            }
        }
        writeln!(f, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Tables for people: the measures with their intervals, the classes, the confusion matrix.
impl fmt::Display for Measures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.rows == 1 { "" } else { "s" };
        let mut table = vec![vec![
            String::new(),
            format!("{} row{plural}", self.rows),
            "95 % interval".to_owned(),
        ]];
        for measure in Measure::ALL {
            let Some(value) = self.value(measure) else { continue };
            let interval = self.intervals.get(&measure).map_or_else(
                || "-".to_owned(),
                |&[low, high]| format!("{} to {}", shown(measure, low), shown(measure, high)),
            );
            table.push(vec![measure.title().to_owned(), shown(measure, value), interval]);
        }
        lines(f, &table)?;
        match &self.positive {
            Some(class) if self.brier.is_some() => {
                writeln!(
                    f,
                    "Average precision, F1 and the Brier score refer to the class {}.",
                    excerpt(class)
                )?;
            }
            Some(class) => writeln!(f, "F1 refers to the class {}.", excerpt(class))?,
            None => writeln!(
                f,
                "AUC, average precision and F1 are means over the classes, each against the rest."
            )?,
        }
        if self.classes.len() > LISTED {
            return writeln!(
                f,
                "\nThere are {} classes, too many to list here.",
                self.classes.len()
            );
        }
        let heads = ["class", "rows", "precision", "recall", "F1", "AUC", "average precision"];
        let mut table = vec![heads.map(str::to_owned).to_vec()];
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.4}"));
        for of in &self.per_class {
            let numbers = [of.precision, of.recall, of.f1, of.auc, of.average_precision];
            let mut row = vec![short(&of.class), of.rows.to_string()];
            row.extend(numbers.map(number));
            table.push(row);
        }
        writeln!(f)?;
        lines(f, &table)?;
        writeln!(f, "\nConfusion matrix (rows: true class, columns: predicted class)")?;
        let names: Vec<String> = self.classes.iter().map(|name| short(name)).collect();
        let head = std::iter::once(String::new()).chain(names.iter().cloned());
        let mut table: Vec<Vec<String>> = vec![head.collect()];
        for (name, counts) in names.iter().zip(&self.confusion) {
            let counts = counts.iter().map(ToString::to_string);
            table.push(std::iter::once(name.clone()).chain(counts).collect());
        }
        lines(f, &table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;
    use crate::{Svml, data::Dataset};

    fn model() -> (Model, Dataset) {
        let data = Generator { rows: 120, ..Default::default() }.generate().unwrap().data;
        (Model::fit(&data, Svml::default()).unwrap(), data)
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|c| format!("c{c}")).collect()
    }

    /// A number between 0 and 1 that depends on the place alone.
    fn random(at: u64) -> f64 {
        (mix(at) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Rows with ties among their probabilities, in three classes.
    fn example(n: usize, classes: usize) -> (Vec<usize>, Vec<usize>, Matrix) {
        let truth: Vec<usize> =
            (0..n).map(|i| (random(i as u64) * classes as f64) as usize).collect();
        let mut p = Matrix::from_fn(n, classes, |i, c| {
            let noise = random((7 + i * classes + c) as u64 + 1_000_000);
            ((noise + 0.4 * f64::from(u8::from(truth[i] == c))) * 8.0).ceil()
        });
        for i in 0..n {
            let sum: f64 = p.row(i).iter().sum();
            p.row_mut(i).iter_mut().for_each(|p| *p /= sum);
        }
        let best = |row: &[f64]| (0..classes).fold(0, |b, c| if row[c] > row[b] { c } else { b });
        let predicted = p.iter_rows().map(best).collect();
        (truth, predicted, p)
    }

    #[test]
    fn counts_add_up_and_agree_with_the_definition() {
        let (model, data) = model();
        let labels: Vec<&str> = data.y().iter().map(|&c| data.classes()[c].as_str()).collect();
        let measures = model.measure(data.x(), &labels).unwrap();
        let predicted = model.predict(data.x()).unwrap();
        let p = model.probabilities(data.x()).unwrap();
        assert_eq!(measures.confusion.iter().flatten().sum::<usize>(), 120);
        for (c, counts) in measures.confusion.iter().enumerate() {
            for (q, &count) in counts.iter().enumerate() {
                let direct = (0..120).filter(|&i| data.y()[i] == c && predicted[i] == q).count();
                assert_eq!(count, direct);
            }
        }
        let expected: f64 = (0..120).map(|i| -p[(i, data.y()[i])].ln()).sum::<f64>() / 120.0;
        assert!((measures.log_loss.unwrap() - expected).abs() < 1e-12);
        let per_class = |c: usize| {
            let rows: Vec<usize> = (0..120).filter(|&i| data.y()[i] == c).collect();
            rows.iter().filter(|&&i| predicted[i] != c).count() as f64 / rows.len() as f64
        };
        assert!((measures.balanced_error - (per_class(0) + per_class(1)) / 2.0).abs() < 1e-15);
    }

    #[test]
    fn tables_say_of_which_class_the_measures_are() {
        let said = |classes: usize, method: &str, rows: usize| {
            let x = Matrix::from_fn(4 * classes, 2, |i, k| ((i * (k + 2)) % 7) as f64 + i as f64);
            let labels: Vec<usize> = (0..x.rows()).map(|i| i % classes).collect();
            let data = Dataset::new(x, &labels).unwrap();
            let model = Model::fit(&data, method.parse::<crate::Method>().unwrap()).unwrap();
            let labels: Vec<String> = labels[..rows].iter().map(ToString::to_string).collect();
            let x = data.x().select_rows(&(0..rows).collect::<Vec<_>>());
            model.measure(&x, &labels).unwrap().to_string()
        };
        let two = said(2, "svml:sphere", 8);
        assert!(two.contains("8 rows "), "{two}");
        assert!(two.contains("F1 and the Brier score refer to the class 1."), "{two}");
        assert!(two.contains("Confusion matrix"), "{two}");
        let votes = said(2, "knn:k=1", 1);
        assert!(votes.contains("1 row "), "{votes}");
        assert!(said(3, "knn:k=1", 12).contains("are means over the classes"));
        let many = said(21, "knn:k=1", 84);
        assert!(many.contains("There are 21 classes, too many to list"), "{many}");
        assert!(said(20, "knn:k=1", 80).contains("Confusion matrix"));
    }

    #[test]
    fn a_class_that_the_model_does_not_know_is_wrong() {
        let (model, data) = model();
        let x = data.x().select_rows(&[0, 1, 2]);
        let measures = model.measure(&x, &["zebra", "apple", "zebra"]).unwrap();
        assert_eq!(measures.error, 1.0);
        assert_eq!(measures.balanced_error, 1.0);
        assert_eq!(measures.classes, ["inside", "outside", "apple", "zebra"]);
        assert_eq!(measures.confusion[3].iter().sum::<usize>(), 2);
        assert!((measures.log_loss.unwrap() + SMALLEST.ln()).abs() < 1e-9);
        assert_eq!((measures.auc, measures.positive), (None, None));
        assert!(model.measure(&x, &["a"]).is_err());
        assert!(model.measure(&x.select_rows(&[]), &[] as &[&str]).is_err());
    }

    /// By comparing all pairs of rows, and by going through all thresholds.
    #[test]
    fn rankings_agree_with_the_definition() {
        for classes in [2, 3] {
            let (truth, predicted, p) = example(90, classes);
            let scores = Scores::Probabilities(&p);
            let m = Measures::of(&names(classes), &truth, &predicted, scores, 1).unwrap();
            let (mut aucs, mut precisions, mut f1s) = (0.0, 0.0, 0.0);
            for c in 0..classes {
                let score = |i: usize| p[(i, c)];
                let (own, other): (Vec<usize>, Vec<usize>) = (0..90).partition(|&i| truth[i] == c);
                let mut won = 0.0;
                for &a in &own {
                    for &b in &other {
                        won += match score(a).total_cmp(&score(b)) {
                            std::cmp::Ordering::Greater => 1.0,
                            std::cmp::Ordering::Equal => 0.5,
                            std::cmp::Ordering::Less => 0.0,
                        };
                    }
                }
                let auc = won / (own.len() * other.len()) as f64;
                let mut thresholds: Vec<f64> = (0..90).map(score).collect();
                thresholds.sort_by(|a, b| b.total_cmp(a));
                thresholds.dedup();
                assert!(thresholds.len() < 80, "there must be ties");
                let (mut recall_before, mut precision) = (0.0, 0.0);
                for t in thresholds {
                    let above: Vec<usize> = (0..90).filter(|&i| score(i) >= t).collect();
                    let right = above.iter().filter(|&&i| truth[i] == c).count() as f64;
                    let recall = right / own.len() as f64;
                    precision += (recall - recall_before) * (right / above.len() as f64);
                    recall_before = recall;
                }
                let of = &m.per_class[c];
                assert!((of.auc.unwrap() - auc).abs() < 1e-12);
                assert!((of.average_precision.unwrap() - precision).abs() < 1e-12);
                let (pre, rec) = (of.precision.unwrap(), of.recall.unwrap());
                assert!((of.f1.unwrap() - 2.0 * pre * rec / (pre + rec)).abs() < 1e-12);
                aucs += auc / classes as f64;
                precisions += precision / classes as f64;
                f1s += of.f1.unwrap() / classes as f64;
                if classes == 2 && c == 1 {
                    (aucs, precisions, f1s) = (auc, precision, of.f1.unwrap());
                }
            }
            assert!((m.auc.unwrap() - aucs).abs() < 1e-12);
            assert!((m.average_precision.unwrap() - precisions).abs() < 1e-12);
            assert!((m.f1.unwrap() - f1s).abs() < 1e-12);
        }
    }

    /// The correlation of the indicators of all classes, which is the definition of MCC for any number of them.
    #[test]
    fn mcc_is_a_correlation() {
        for classes in [2, 4] {
            let (truth, predicted, _) = example(150, classes);
            let m = Measures::of(&names(classes), &truth, &predicted, Scores::None, 1).unwrap();
            let is = |labels: &[usize], i: usize, c: usize| f64::from(u8::from(labels[i] == c));
            let covariance = |a: &[usize], b: &[usize]| {
                (0..classes)
                    .map(|c| {
                        let mean = |l: &[usize]| (0..150).map(|i| is(l, i, c)).sum::<f64>() / 150.0;
                        let (u, v) = (mean(a), mean(b));
                        (0..150).map(|i| (is(a, i, c) - u) * (is(b, i, c) - v)).sum::<f64>()
                    })
                    .sum::<f64>()
            };
            let expected = covariance(&truth, &predicted)
                / (covariance(&truth, &truth) * covariance(&predicted, &predicted)).sqrt();
            assert!((m.mcc - expected).abs() < 1e-12, "{} {expected}", m.mcc);
            assert_eq!((m.auc, m.brier, m.log_loss, m.calibration_error), (None, None, None, None));
        }
        let m = Measures::of(&names(2), &[0, 1], &[0, 0], Scores::None, 1).unwrap();
        assert_eq!((m.mcc, m.f1), (0.0, Some(0.0)));
    }

    #[test]
    fn brier_scores_and_calibration_by_hand() {
        let p = Matrix::from_rows(&[[0.9, 0.1], [0.4, 0.6], [0.7, 0.3], [0.0, 1.0]]).unwrap();
        let (truth, predicted) = ([0, 0, 1, 1], [0, 1, 0, 1]);
        let m = Measures::of(&names(2), &truth, &predicted, Scores::Probabilities(&p), 1).unwrap();
        assert!((m.brier.unwrap() - (0.01 + 0.36 + 0.49 + 0.0) / 4.0).abs() < 1e-12);
        // One bin: half are right, the mean probability is 0.8.
        assert!((m.calibration_error.unwrap() - 0.3).abs() < 1e-12);
        let p = Matrix::from_rows(&[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]).unwrap();
        let m = Measures::of(&names(3), &[1, 2], &[0, 2], Scores::Probabilities(&p), 1).unwrap();
        let expected = (0.25 + 0.49 + 0.04 + 0.01 + 0.01 + 0.04) / 2.0;
        assert!((m.brier.unwrap() - expected).abs() < 1e-12);

        // Two bins of equal count: 20 rows of 0.9, of which 15 are right, and 20 of 0.6, of which 14 are.
        let p = Matrix::from_fn(40, 2, |i, c| [[0.1, 0.9], [0.4, 0.6]][i / 20][c]);
        let truth: Vec<usize> =
            (0..40).map(|i| usize::from(i < 15 || (20..34).contains(&i))).collect();
        let m = Measures::of(&names(2), &truth, &[1; 40], Scores::Probabilities(&p), 1).unwrap();
        assert!((m.calibration_error.unwrap() - (0.15 + 0.1) / 2.0).abs() < 1e-12);
        // Rows that cannot be told apart are not.
        let back = |i: usize| 39 - i;
        let turned = Matrix::from_fn(40, 2, |i, c| p[(back(i), c)]);
        let truth: Vec<usize> = (0..40).map(|i| truth[back(i)]).collect();
        let again = Measures::of(&names(2), &truth, &[1; 40], Scores::Probabilities(&turned), 1);
        assert_eq!(again.unwrap().calibration_error, m.calibration_error);
    }

    #[test]
    fn the_class_that_is_asked_about_may_be_the_first() {
        let (truth, predicted, p) = example(80, 2);
        let of = |positive| {
            Measures::of(&names(2), &truth, &predicted, Scores::Probabilities(&p), positive)
                .unwrap()
        };
        let (first, second) = (of(0), of(1));
        assert_eq!(first.f1, second.per_class[0].f1);
        assert_eq!(first.average_precision, second.per_class[0].average_precision);
        assert_eq!(first.per_class, second.per_class);
        assert!((first.auc.unwrap() - second.auc.unwrap()).abs() < 1e-12);
        assert_eq!(first.positive.as_deref(), Some("c0"));
    }

    /// Decision values of two classes are one column, and rank as probabilities do.
    #[test]
    fn decision_values_rank_rows() {
        let (truth, predicted, p) = example(70, 2);
        let h = Matrix::from_fn(70, 1, |i, _| (p[(i, 1)] / p[(i, 0)]).ln());
        let of = |scores| Measures::of(&names(2), &truth, &predicted, scores, 1).unwrap();
        let (by_h, by_p) = (of(Scores::Decision(&h)), of(Scores::Probabilities(&p)));
        assert_eq!((by_h.auc, by_h.average_precision), (by_p.auc, by_p.average_precision));
        assert_eq!((by_h.log_loss, by_h.brier, by_h.calibration_error), (None, None, None));
    }

    #[test]
    fn intervals_are_the_same_for_any_number_of_threads() {
        let (truth, predicted, p) = example(200, 3);
        let of = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let of = || Measures::of(&names(3), &truth, &predicted, Scores::Probabilities(&p), 1);
            pool.install(of).unwrap()
        };
        let one = of(1);
        assert_eq!(one, of(4));
        assert_eq!(one.intervals.len(), Measure::ALL.len());
        for (measure, [low, high]) in &one.intervals {
            let value = one.value(*measure).unwrap();
            assert!(
                low < high && *low <= value && value <= *high,
                "{measure} {low} {value} {high}"
            );
        }
    }

    /// Resamples of rows that are all right say nothing of how far off that may be; Wilson's interval does.
    #[test]
    fn intervals_without_width_are_left_out() {
        let m = Measures::of(&names(2), &[0, 1, 0, 1], &[0, 1, 0, 1], Scores::None, 1).unwrap();
        assert_eq!(m.intervals.keys().collect::<Vec<_>>(), [&Measure::Error]);
        let [low, high] = m.intervals[&Measure::Error];
        assert_eq!(low, 0.0);
        assert!((high - Z * Z / (4.0 + Z * Z)).abs() < 1e-12);
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        let (truth, predicted, p) = example(10, 2);
        let of = |truth: &[usize], predicted: &[usize], scores, positive| {
            Measures::of(&names(2), truth, predicted, scores, positive).unwrap_err().to_string()
        };
        assert!(of(&[], &[], Scores::None, 1).contains("to measure"));
        assert!(of(&truth, &predicted[1..], Scores::None, 1).contains("predicted classes"));
        assert!(of(&[5; 10], &predicted, Scores::None, 1).contains("among the classes"));
        assert!(of(&truth, &predicted, Scores::None, 2).contains("positive = 2"));
        let fewer = p.select_rows(&[0, 1]);
        assert!(of(&truth, &predicted, Scores::Decision(&fewer), 1).contains("scores"));
        let wrong = Matrix::from_fn(10, 2, |_, c| c as f64 * 1.5);
        assert!(
            of(&truth, &predicted, Scores::Probabilities(&wrong), 1).contains("between 0 and 1")
        );
    }

    #[test]
    fn names_are_read_back() {
        for measure in Measure::ALL {
            assert_eq!(measure.to_string().parse::<Measure>().unwrap(), measure);
            assert_eq!(serde_json::to_value(measure).unwrap(), measure.name());
        }
        let error = "accuracy".parse::<Measure>().unwrap_err().to_string();
        assert!(error.contains("one of error, balanced_error, auc"), "{error}");
    }

    /// How often 95 % intervals hold the true value, for the page of [`Measures`]; it takes a minute or so.
    #[test]
    #[ignore = "a simulation, whose figures are in the documentation of Measures"]
    #[allow(clippy::print_stderr)]
    fn coverage_by_simulation() {
        let rows = |n: usize, seed: u64| {
            let at = |i: usize, what: u64| random(mix(seed) ^ mix(i as u64 * 8 + what));
            let truth: Vec<usize> = (0..n).map(|i| usize::from(at(i, 0) < 0.2)).collect();
            // A normal score in either class gives probabilities that are right.
            let normal = |i: usize| {
                (-2.0 * at(i, 1).max(1e-300).ln()).sqrt() * (std::f64::consts::TAU * at(i, 2)).cos()
            };
            let p1 = |i: usize| {
                let s = normal(i) + 1.5 * truth[i] as f64;
                // A little overconfident, so that there is a calibration error to be found.
                1.0 / (1.0 + (-1.3 * (1.5 * s - 1.125 + 0.25_f64.ln())).exp())
            };
            let p: Vec<f64> = (0..n).map(p1).collect();
            let matrix = Matrix::from_fn(n, 2, |i, c| if c == 1 { p[i] } else { 1.0 - p[i] });
            let predicted: Vec<usize> = p.iter().map(|p| usize::from(*p >= 0.5)).collect();
            Measures::of(&names(2), &truth, &predicted, Scores::Probabilities(&matrix), 1).unwrap()
        };
        let truth = rows(2_000_000, 1);
        for n in [200, 1000] {
            let mut held = [0_usize; 9];
            let mut told = [0_usize; 9];
            for seed in 0..2000 {
                let m = rows(n, 100 + seed);
                for (k, measure) in Measure::ALL.into_iter().enumerate() {
                    let Some([low, high]) = m.intervals.get(&measure) else { continue };
                    let value = truth.value(measure).unwrap();
                    told[k] += 1;
                    held[k] += usize::from(*low <= value && value <= *high);
                }
            }
            for (k, measure) in Measure::ALL.into_iter().enumerate() {
                let value = truth.value(measure).unwrap();
                let share = held[k] as f64 / told[k] as f64;
                eprintln!("{n} rows: {measure} {value:.4} held {share:.3} of {}", told[k]);
                let least = if measure == Measure::CalibrationError { 0.85 } else { 0.92 };
                assert!((least..0.97).contains(&share), "{measure} {share}");
            }
        }
    }

    #[test]
    fn decision_values_of_several_classes() {
        let truth = [0, 1, 2, 0];
        let h = Matrix::from_fn(4, 3, |i, c| f64::from(u8::from(truth[i] == c)));
        let of = |h: &Matrix| Measures::of(&names(3), &truth, &truth, Scores::Decision(h), 0);
        assert_eq!(of(&h).unwrap().value(Measure::Auc), Some(1.0));
        let error = of(&Matrix::zeros(4, 4)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("columns of scores"), "{error}");
    }
}
