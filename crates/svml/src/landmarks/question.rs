//! What is asked of the rows, and what comes back: the seam between learning and wherever the rows are.
//!
//! Learning never looks at a row. It asks [`Rows`] a [`Question`], which each part of the rows answers with sums over its
//! own rows; the [`Answer`]s of the parts are added two by two, and their sums two by two, so that the bits of the
//! total depend on how the rows are cut into parts, but not on where the parts are or who adds them.
//!
//! An answer depends on the rows, the question and its [`Setting`] alone. Whatever a part keeps for the next question
//! saves time and changes no bit, so a part that was lost is made again from its rows, and nothing else is.

use serde::{Deserialize, Serialize};

use super::gather::{Columns, Drawn};
use super::pair::PairColumns;
use crate::data::{Scaler, pairs};
use crate::error::Result;
use crate::kernel::Points;
use crate::linalg::{Cholesky, Matrix};
use crate::loss::Loss;
use crate::metric::{Kernel, Metric};
use crate::multiclass::PairwiseSvms;
use crate::parallel;
use crate::svm::BinarySvm;
use crate::watch::{Key, Watch};

/// Rows, wherever they are.
pub trait Rows: Sync {
    /// The sum of the answers of all parts to a question, which may be about SVMs on landmarks.
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> Result<Answer>;

    /// Where the systems of Newton's method are kept and solved, if that is where the rows are: the matrices are then never
    /// sent. The answer is the same for as long as the SVMs are.
    fn systems(&self, _kernel: &LandmarkKernel) -> Option<&dyn Systems> {
        None
    }
}

/// The systems of Newton's method, kept where the rows are.
pub trait Systems: Sync {
    /// The answer to [`Question::Step`] but for the triangles: the sum in H stays here.
    fn step(
        &self,
        kernel: &LandmarkKernel,
        validation: Option<Validation>,
        points: &[Option<(Point, Option<Point>)>],
    ) -> Result<Vec<Vec<f64>>>;

    /// The solution x of H x = `right` for the problem of this number, and `right` times x. With a C the matrix H is made of
    /// the sum of the last step and factored, without one it is that of the last solution.
    fn solve(
        &self,
        kernel: &LandmarkKernel,
        number: usize,
        cost: Option<f64>,
        right: &[f64],
    ) -> Result<(Vec<f64>, f64)>;
}

impl<R: Rows + ?Sized> Rows for &R {
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> Result<Answer> {
        (**self).ask(kernel, question)
    }

    fn systems(&self, kernel: &LandmarkKernel) -> Option<&dyn Systems> {
        (**self).systems(kernel)
    }
}

/// What stays the same while SVMs on landmarks are trained and their metric is learned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// Different for settings that differ.
    pub id: u64,
    /// How rows are made ready; none: they are.
    pub preparation: Option<Preparation>,
    /// The kernel.
    pub kernel: Kernel,
    /// The landmarks, standardised, class after class. // (m, d)
    pub landmarks: Matrix,
    /// Where each class starts among them, and where the last ends.
    pub starts: Vec<usize>,
    /// What SVMs are trained on and validated with.
    pub problems: Vec<Problem>,
    /// SVMs that say which rows are likely to be inside of the margin.
    pub guess: Option<Guess>,
}

/// What one SVM is trained on and validated with: the rows of two classes in some folds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// The place of the pair among all pairs of classes.
    pub pair: usize,
    /// The negative class and the positive one.
    pub classes: (usize, usize),
    /// For each fold whether its rows are trained on.
    pub train: Vec<bool>,
    /// For each fold whether its rows are validated with.
    pub valid: Vec<bool>,
}

impl Problem {
    /// One for each pair of classes.
    pub fn of_pairs(classes: usize, train: &[bool], valid: &[bool]) -> Vec<Self> {
        let (train, valid) = (train.to_vec(), valid.to_vec());
        let of =
            |(pair, classes)| Self { pair, classes, train: train.clone(), valid: valid.clone() };
        pairs(classes).into_iter().enumerate().map(of).collect()
    }
}

/// How rows that lie as they were read are made ready for learning.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Preparation {
    /// Fills and standardises columns.
    pub scaler: Scaler,
    /// What the weights of the rows of each class are multiplied by.
    pub class_factors: Vec<f64>,
    /// For each class the keys of rows at which the second fold starts, the third, and so on: fold 0 has the rows with
    /// keys below the first of these.
    pub fold_keys: Vec<Vec<u64>>,
    /// What the keys of rows are drawn with.
    pub seed: u64,
}

impl Setting {
    /// All of it, in a key.
    fn in_key(&self, key: Key) -> Key {
        let Self { id: _, preparation, kernel, landmarks, starts, problems, guess } = self;
        let key = key.with(kernel).numbers(landmarks.as_slice()).places(starts).with(problems);
        let key = key.with(preparation);
        match guess {
            Some(guess) => guess.in_key(key),
            None => key,
        }
    }
}

/// SVMs of all pairs of classes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guess {
    /// Their kernel.
    pub kernel: Kernel,
    /// Their metric.
    pub metric: Metric,
    /// Their support vectors, mapped by it.
    pub mapped: Matrix,
    /// Their coefficients.
    pub svms: PairwiseSvms,
}

impl Guess {
    /// SVMs whose support vectors are rows of `x`, of these classes.
    pub fn new(
        svms: &[BinarySvm],
        (x, class, classes): (&Matrix, &[usize], usize),
        kernel: Kernel,
        metric: &Metric,
    ) -> Self {
        let svms = PairwiseSvms::new(svms, classes, |row| class[row]);
        let mapped = metric.transform(&x.select_rows(&svms.support));
        Self { kernel, metric: metric.clone(), mapped, svms }
    }

    /// All of it, in a key.
    pub fn in_key(&self, key: Key) -> Key {
        let PairwiseSvms { support, counts, beta, bias } = &self.svms;
        let key = self.metric.in_key(key.with(&self.kernel)).numbers(self.mapped.as_slice());
        key.places(support).places(counts).numbers(beta.as_slice()).numbers(bias)
    }
}

/// A point on the way of an SVM to its optimum.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Point {
    /// Different for points that differ.
    pub number: u64,
    /// The coefficients of the landmarks of the pair, and the bias.
    pub theta: Vec<f64>,
    /// Whether rows are inside of the margin by the guess of the setting, not by these coefficients.
    pub guessed: bool,
}

/// A question about all rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Question {
    /// Rows, weights, least and largest values: an [`Answer::Columns`].
    Columns,
    /// The same with the sums of values and of squares, in units of `unit` from `centre`; missing values are `fill`.
    Moments {
        /// Of each column.
        unit: Vec<f64>,
        /// Of each column.
        centre: Vec<f64>,
        /// Of each column; NaN: missing values do not count.
        fill: Vec<f64>,
    },
    /// The rows with the smallest keys, so many of each class: an [`Answer::Drawn`].
    Draw {
        /// How many of each class.
        count: Vec<usize>,
        /// For each class a key that those of the rows to draw surely do not exceed, so that a part leaves out most
        /// rows that others of the table keep from being drawn.
        largest: Vec<u64>,
        /// What the keys of rows are drawn with.
        seed: u64,
    },
    /// The weight of each class in each fold; the folds of a class one after the other.
    Weights {
        /// How many folds there are.
        folds: usize,
    },
    /// What the next Newton step of each SVM needs.
    Step {
        /// How validation rows are measured, if they are.
        validation: Option<Validation>,
        /// For each problem, unless it is done, the point, and the one before whose rows inside of the margin are in
        /// the sum already.
        points: Vec<Option<(Point, Option<Point>)>>,
    },
    /// The hinge loss at 1/2, 1/4, ... of the way from one point to another.
    Shares {
        /// For each problem that asks.
        ways: Vec<Option<(Vec<f64>, Vec<f64>)>>,
    },
    /// The derivative of the validation loss.
    Gradient {
        /// How validation rows are measured.
        validation: Validation,
        /// C.
        cost: f64,
        /// For each problem the coefficients, and the solution of its adjoint system.
        machines: Vec<(Vec<f64>, Vec<f64>)>,
    },
}

impl Question {
    /// Whether it is about SVMs, whose answers take K and most of the time.
    pub fn is_about_svms(&self) -> bool {
        matches!(self, Self::Step { .. } | Self::Shares { .. } | Self::Gradient { .. })
    }

    /// What it is about, in a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Columns | Self::Moments { .. } => "columns",
            Self::Draw { .. } => "draw",
            Self::Weights { .. } => "weights",
            Self::Step { .. } | Self::Shares { .. } => "train",
            Self::Gradient { .. } => "gradient",
        }
    }
}

/// How validation rows are measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Validation {
    /// By this function of the margin.
    pub loss: Loss,
    /// Weight of the validation rows of all problems.
    pub total: f64,
}

impl Validation {
    /// The loss of a row of this weight and its derivative in f.
    pub(super) fn at(self, weight: f64, y: f64, f: f64) -> (f64, f64) {
        let (value, slope) = self.loss.value_and_slope(y * f);
        (weight / self.total * value, weight / self.total * y * slope)
    }
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// Sums; of SVMs one list for each that asked.
    Sums(Vec<Vec<f64>>),
    /// What the columns hold.
    Columns(Columns),
    /// Some rows.
    Drawn(Drawn),
}

impl Answer {
    /// The answer of the rows of both.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::Sums(mut sums), Self::Sums(others)) => {
                for (sums, others) in sums.iter_mut().zip(&others) {
                    sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
                }
                Self::Sums(sums)
            }
            (Self::Columns(a), Self::Columns(b)) => Self::Columns(a.merged(b)),
            (Self::Drawn(a), Self::Drawn(b)) => Self::Drawn(a.merged(b)),
            // Answers to different questions are never added.
            (answer, _) => answer,
        }
    }

    /// The sums, if it is those.
    pub fn sums(self) -> Vec<Vec<f64>> {
        match self {
            Self::Sums(sums) => sums,
            _ => Vec::new(),
        }
    }
}

/// Adds the answers of parts, which come in order: neighbours two by two, then their sums two by two. What is held are as
/// many answers as the number of parts has binary digits.
#[derive(Default)]
pub struct Tree {
    /// At place k a sum of 2^k answers, if there is one.
    sums: Vec<Option<Answer>>,
}

impl Tree {
    /// The answer of the next part.
    pub fn push(&mut self, mut answer: Answer) {
        for sum in &mut self.sums {
            match sum.take() {
                Some(before) => answer = before.merged(answer),
                None => {
                    *sum = Some(answer);
                    return;
                }
            }
        }
        self.sums.push(Some(answer));
    }

    /// The sum of all.
    pub fn total(self) -> Option<Answer> {
        let from_small = self.sums.into_iter().flatten();
        from_small.reduce(|after, before| before.merged(after))
    }
}

/// The kernel of a setting with a metric: what is computed from landmarks alone, before any row.
pub struct LandmarkKernel {
    /// What it is of.
    pub setting: Setting,
    /// The metric.
    pub metric: Metric,
    /// The landmarks, mapped.
    pub points: Points,
    /// K between the landmarks. // (m, m)
    pub k_mm: Matrix,
    /// For each pair of classes that a problem is of, the factor R of its K_mm, if H is in terms of w.
    roots: Vec<Option<Cholesky>>,
}

impl LandmarkKernel {
    /// For a metric on the rows of the setting.
    pub fn new(setting: Setting, metric: Metric, watch: &Watch) -> Result<Self> {
        let mut kernel = Self {
            points: Points::new(setting.kernel, Matrix::empty()),
            k_mm: Matrix::empty(),
            roots: Vec::new(),
            metric: metric.clone(),
            setting,
        };
        kernel.set_metric(metric, watch)?;
        Ok(kernel)
    }

    /// Makes this the kernel of another metric.
    pub fn set_metric(&mut self, metric: Metric, watch: &Watch) -> Result<()> {
        self.metric = metric;
        let z = self.metric.transform(&self.setting.landmarks);
        self.points = Points::new(self.setting.kernel, z.clone());
        let mut k = Vec::new();
        self.points.fill_all(&z, &mut k);
        let m = z.rows();
        // Equal rows have a kernel value of exactly one.
        k.iter_mut().step_by(m + 1).for_each(|k| *k = 1.0);
        self.k_mm = Matrix::new(m, m, k).unwrap_or_default();
        let of_pair = |pair: usize| {
            let problem = self.setting.problems.iter().find(|problem| problem.pair == pair)?;
            Some(PairColumns::of(&self.setting, problem).root(&self.k_mm, watch))
        };
        let pairs = match self.setting.kernel {
            Kernel::Gaussian => self.setting.problems.iter().map(|p| p.pair + 1).max().unwrap_or(0),
            _ => 0,
        };
        self.roots = parallel::try_map(0..pairs, |pair| of_pair(pair).transpose())?;
        Ok(())
    }

    /// The factor R of the K_mm of a problem, if H is in terms of w.
    pub fn root(&self, problem: &Problem) -> Option<&Cholesky> {
        self.roots.get(problem.pair).and_then(Option::as_ref)
    }

    /// All that it is computed from, in a key.
    pub(super) fn in_key(&self, key: Key) -> Key {
        self.metric.in_key(self.setting.in_key(key))
    }

    /// Number of landmarks.
    pub fn m(&self) -> usize {
        self.points.count()
    }
}
