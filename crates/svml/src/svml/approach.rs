//! How a fit is computed: exactly, or through landmarks, and through how many.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::criterion::Criterion;
use super::{FormChoice, GRADIENT_ROWS, Svml};
use crate::data::{Sample, pairs};
use crate::error::{Error, Remedy, Result};
use crate::landmarks::{BLOCK, PART};

/// Whether SVMs are trained on landmarks. As text: `auto`, `exact`, or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "Spelled")]
#[non_exhaustive]
pub enum LandmarkChoice {
    /// As the number of rows, columns and classes, the memory and the threads suggest.
    Auto,
    /// No landmarks: the exact SVM, whatever it costs.
    Exact,
    /// The SVMs of the model have at most so many landmarks.
    Count(usize),
}

/// As it stands in JSON: a text or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Spelled {
    Text(String),
    Number(usize),
}

impl TryFrom<Spelled> for LandmarkChoice {
    type Error = Error;
    fn try_from(spelled: Spelled) -> Result<Self> {
        match spelled {
            Spelled::Text(text) => text.parse(),
            Spelled::Number(count) => count.to_string().parse(),
        }
    }
}

impl fmt::Display for LandmarkChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Exact => f.write_str("exact"),
            Self::Count(count) => count.fmt(f),
        }
    }
}

impl From<LandmarkChoice> for String {
    fn from(choice: LandmarkChoice) -> Self {
        choice.to_string()
    }
}

impl FromStr for LandmarkChoice {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self::Auto),
            "exact" => Ok(Self::Exact),
            _ => match text.parse() {
                Ok(count) if count > 0 => Ok(Self::Count(count)),
                _ => {
                    let bound = "auto, exact or a number of at least 1";
                    Err(Error::parameter("landmarks", text, bound))
                }
            },
        }
    }
}

/// Exact SVMs are trained as long as this is not below the sum of n_p^3 over the pairs of classes, where n_p is the number
/// of rows of a pair: 5,000 rows of two classes, some seconds on two cores.
const EXACT_WORK: f64 = 5000.0 * 5000.0 * 5000.0;
/// Landmarks while metric and C are learned, of SVMs that are asked, and of the final SVMs.
const LEARN: usize = 500;
const ASK: usize = 800;
const LAST: usize = 2000;
/// The same for each class if that is more: an SVM has the landmarks of two classes only.
const LEARN_PER_CLASS: usize = 75;
const ASK_PER_CLASS: usize = 90;
const LAST_PER_CLASS: usize = 150;
/// SVMs on landmarks take about so many steps of Newton's method.
const STEPS: f64 = 6.0;

/// Without a limit on memory there are fewer landmarks than usual only where their matrices would take more bytes than this,
/// as those of 50 classes and more do. It does not depend on the computer, so that the same call gives the same model
/// everywhere.
const USUAL_MATRICES: u64 = 4 << 30;
/// Bytes of exact final SVMs without a limit on memory: of all rows of two classes up to 8,000, of 12,000 support vectors
/// among 16,000 rows of many classes.
const USUAL_EXACT: u64 = 2 << 30;
/// While an exact final SVM is trained, its factor, what has changed since, and columns of its inverse are about so many
/// squares of its support vectors.
const EXACT_SQUARES: u64 = 3;
/// At most so many exact final SVMs are trained at a time where memory was planned for them, whatever the number of threads.
pub const EXACT_AT_ONCE: usize = 16;

/// Of the memory that may be used, at most one part in so many keeps blocks of K: others use the computer too.
const KEPT_SHARE: u64 = 3;
/// Blocks of K, or as large as these, that are worked on: one that is not kept, its rows that enter the sum in H, the same
/// in other coordinates.
const BLOCKS_AT_ONCE: u64 = 3;
/// Bytes of a row beside its values: weights, folds, places, and what is known of it for each class.
const PER_ROW: u64 = 64;
const PER_ROW_AND_CLASS: u64 = 8;
/// Outputs of a row for each pair of classes: those of four members with two values of C, and their means.
const OUTPUTS: u64 = 12;
/// Where memory does not allow all landmarks, a number is tried that is this much smaller, as long as it is not below that
/// of learning.
const FEWER: f64 = 0.8;

/// Landmarks of each part of a fit; none: exact. The cost model is that of `docs/math.md`, section 26.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approach {
    /// While metric and C are learned.
    pub learn: Option<usize>,
    /// For rows that are asked.
    pub ask: Option<usize>,
    /// Of the final SVMs, where they are not exact.
    pub last: Option<usize>,
    /// The final SVMs are exact where that is less work and they need no more columns of K than this.
    pub columns: usize,
    /// Bytes that all of it takes at most.
    needed: u64,
    /// Bytes of K that may be kept, by all that is trained at the same time. They only save time: unlike all else here they
    /// depend on the memory that is free.
    pub keep: u64,
}

/// The size of a table.
#[derive(Clone, Copy)]
pub struct Size<'a> {
    /// Rows of each class.
    pub rows: &'a [usize],
    /// Columns.
    pub columns: usize,
    /// How many times the rows are held.
    pub copies: u64,
}

/// The rows are held as they were read, standardised, and in halves.
pub const COPIES: u64 = 3;

impl Size<'_> {
    fn count(&self) -> u64 {
        self.rows.iter().sum::<usize>() as u64
    }

    /// Bytes of the rows and of outputs at them.
    fn bytes(&self) -> u64 {
        let (rows, classes) = (self.count(), self.rows.len());
        // Of more rows only some are asked.
        let asked = rows.min(2 * PART as u64);
        // Of rows that are learned from in parts some are drawn, and held as often as those of any sample.
        let drawn = if self.copies < COPIES { (COPIES + 1) * rows.min(PART as u64) } else { 0 };
        rows * (PER_ROW + PER_ROW_AND_CLASS * classes as u64)
            + 8 * (self.copies * rows + drawn) * self.columns as u64
            + 8 * OUTPUTS * asked * pairs(classes).len() as u64
    }

    /// The rows of the largest pair of classes, and how many squares of support vectors exact final SVMs take.
    fn exact_squares(&self) -> (u64, u64) {
        let largest = pair_sizes(self.rows).max().unwrap_or(0) as u64;
        (largest, EXACT_SQUARES * pairs(self.rows.len()).len().min(EXACT_AT_ONCE) as u64)
    }

    /// Bytes of exact final SVMs whose support vectors are all rows.
    fn exact_bytes(&self) -> u64 {
        let (largest, squares) = self.exact_squares();
        8 * (self.count().pow(2) + squares * largest.pow(2))
    }

    /// How many columns of K exact final SVMs may have in so many bytes.
    fn columns_in(&self, bytes: u64) -> usize {
        let (n, numbers) = (self.count() as f64, bytes as f64 / 8.0);
        let (largest, squares) = self.exact_squares();
        let (largest, squares) = (largest as f64, squares as f64);
        // n c + squares min(c, largest)^2 = numbers
        let columns = ((n * n + 4.0 * squares * numbers).sqrt() - n) / (2.0 * squares);
        match columns <= largest {
            true => columns as usize,
            false => ((numbers - squares * largest * largest) / n) as usize,
        }
    }

    /// Bytes of the matrices of SVMs on landmarks in that part of the fit that has most: two halves with two folds each are
    /// learned, one is asked, or the final SVMs are trained. The numbers are those of the landmarks of each.
    fn matrices(&self, [learn, ask, last]: [usize; 3]) -> u64 {
        let (classes, pairs) = (self.rows.len() as u64, pairs(self.rows.len()).len() as u64);
        let rows = match self.rows.iter().sum::<usize>() {
            // They lie elsewhere.
            0 => u64::MAX,
            rows => rows as u64,
        };
        let of = |landmarks: usize, svms: u64| {
            let m = (landmarks as u64).min(rows);
            let of_pair = if classes > 2 { 2 * m / classes } else { m };
            // K between the landmarks and weights on it; for each SVM a sum, its change and H or its factor, each of
            // which takes half of a square, half of one and one; for each pair the factor of its part of K. Before
            // that, factors of as many columns as there are landmarks, of four times as many rows.
            let squares = 16 * m * m + pairs * (2 * svms + 1) * 8 * of_pair * of_pair;
            squares.max(32 * m * m) + BLOCKS_AT_ONCE * 8 * rows.min(BLOCK as u64) * m
        };
        (2 * of(learn, 2)).max(of(ask, 2)).max(of(last, 1))
    }
}

impl Approach {
    /// Everything exact.
    pub const EXACT: Self =
        Self { learn: None, ask: None, last: None, columns: 0, needed: 0, keep: 0 };

    /// For a sample.
    pub fn of(sample: &Sample<'_>, params: &Svml) -> Result<Self> {
        let mut sizes = vec![0; sample.classes()];
        sample.class().iter().for_each(|&class| sizes[class] += 1);
        let size = Size { rows: &sizes, columns: sample.features(), copies: COPIES };
        Self::for_size(size, params)
    }

    /// The same for a table of some size.
    pub fn for_size(size: Size<'_>, params: &Svml) -> Result<Self> {
        // The closed form of leave-one-out is that of the exact SVM.
        let exact = match params.landmarks {
            _ if params.criterion == Criterion::LeaveOneOut => true,
            LandmarkChoice::Exact => true,
            LandmarkChoice::Count(_) => false,
            LandmarkChoice::Auto => {
                let work: f64 = pair_sizes(size.rows).map(|n| (n as f64).powi(3)).sum();
                work <= EXACT_WORK
            }
        };
        if exact {
            return Ok(Self::EXACT);
        }
        Self::with_landmarks(size, params)
    }

    /// Through landmarks: as many as are usual, or as the limit on memory allows. Refused where there is not enough memory.
    fn with_landmarks(size: Size<'_>, params: &Svml) -> Result<Self> {
        let classes = size.rows.len();
        let usual = |least: usize, per_class: usize| least.max(per_class * classes);
        let given = match params.landmarks {
            LandmarkChoice::Count(count) => Some(count),
            _ => None,
        };
        let count = |usual: usize| given.unwrap_or(usize::MAX).min(usual);
        let learn = count(usual(LEARN, LEARN_PER_CLASS));
        let ask = count(usual(ASK, ASK_PER_CLASS));
        let mut last = given.unwrap_or(usual(LAST, LAST_PER_CLASS));
        let rows = size.bytes();
        let most = params.memory_limit.unwrap_or(rows + USUAL_MATRICES);
        let matrices = loop {
            let matrices = size.matrices([learn, ask, last]);
            let fewer = (FEWER * last as f64) as usize;
            if rows + matrices <= most || given.is_some() || fewer < learn {
                break matrices;
            }
            last = fewer;
        };
        // Exact final SVMs may have what they need with all rows as support vectors, if there is room for that.
        let memory = params.memory();
        let room = params.memory_limit.map_or(USUAL_EXACT, |limit| limit.saturating_sub(rows));
        let exact = match given {
            None if size.count() <= 2 * PART as u64 => size.exact_bytes().min(room),
            _ => 0,
        };
        // A start from gradients has exact SVMs of some rows of both halves, with the folds of each.
        let start = match params.form {
            FormChoice::Fixed(form) if params.starts_from_gradients(form, size.columns) => {
                32 * size.count().min(GRADIENT_ROWS as u64).pow(2)
            }
            _ => 0,
        };
        let matrices = matrices.max(start);
        let needed = rows + matrices.max(exact);
        if needed > memory {
            return Err(Error::TooLarge {
                what: format!(
                    "a fit to {} rows of {} columns through {last} landmarks",
                    size.count(),
                    size.columns
                ),
                bytes: u128::from(needed),
                limit: u128::from(memory),
                remedy: match params.memory_limit {
                    Some(limit) if limit <= memory => Remedy::FewerLandmarks,
                    _ => Remedy::FreeMemory,
                },
            });
        }
        let all = 8 * size.count() * last.max(learn).max(ask) as u64;
        let keep = (memory - rows - matrices).min(memory / KEPT_SHARE).min(all);
        let (columns, needed) = (size.columns_in(exact), rows + (matrices + keep).max(exact));
        let (learn, ask, last) = (Some(learn), Some(ask), Some(last));
        Ok(Self { learn, ask, last, columns, needed, keep })
    }

    /// Of a sample of rows that are too many to be held together, the same for all of these: their SVMs are on landmarks.
    pub fn with_all_rows(self, params: &Svml, classes: usize) -> Result<Self> {
        // Rows that lie elsewhere take no memory here, those that lie here are there already.
        let size = Size { rows: &vec![0; classes], columns: 0, copies: 0 };
        let of_all = Self::with_landmarks(size, params)?;
        Ok(Self { learn: self.learn, columns: 0, ..of_all })
    }

    /// About how many bytes a fit to a table of this size will use at most.
    pub fn bytes(&self, size: Size<'_>, params: &Svml) -> u64 {
        if self.learn.is_some() {
            return self.needed;
        }
        let largest = pair_sizes(size.rows).max().unwrap_or(0) as u64;
        let squares = match params.criterion {
            Criterion::LeaveOneOut => 4,
            // Two folds of each pair, one for each thread.
            _ => (2 * pairs(size.rows.len()).len()).min(rayon::current_num_threads().max(2)),
        };
        size.bytes() + 8 * (size.count().pow(2) + squares as u64 * largest.pow(2))
    }

    /// The parameters of learning.
    pub fn learning(&self, params: &Svml) -> Svml {
        match self.learn {
            // Two halves may be learned at the same time.
            Some(count) => Svml {
                landmarks: LandmarkChoice::Count(count),
                memory_limit: Some(self.keep / 2),
                ..params.clone()
            },
            None => Svml { landmarks: LandmarkChoice::Exact, ..params.clone() },
        }
    }

    /// Landmarks of the final SVMs, given the rows that are likely to be support vectors of each pair of classes: none if
    /// exact SVMs are less work and have few enough columns of K.
    pub fn finally(&self, classes: usize, likely: &[Vec<usize>]) -> Option<usize> {
        let last = self.last?;
        let m = (2 * last / classes) as f64;
        let sizes = || likely.iter().map(|rows| rows.len() as f64);
        let exact: f64 = sizes().map(|s| s.powi(3)).sum();
        let landmarks: f64 = sizes().map(|s| 2.0 * s * m * m + STEPS * m.powi(3) / 3.0).sum();
        let mut all: Vec<usize> = likely.concat();
        all.sort_unstable();
        all.dedup();
        let fit = !all.is_empty() && all.len() <= self.columns;
        if exact <= landmarks && fit { None } else { Some(last) }
    }
}

/// Whether there are so many rows that they are not held together, where nothing is asked for that needs them to be.
pub fn are_learned_from_in_parts(rows: usize, params: &Svml) -> bool {
    rows > 2 * PART
        && params.landmarks != LandmarkChoice::Exact
        && params.criterion != Criterion::LeaveOneOut
}

/// Rows of each pair of classes of so many rows.
fn pair_sizes(sizes: &[usize]) -> impl Iterator<Item = usize> {
    pairs(sizes.len()).into_iter().map(move |(i, j)| sizes[i] + sizes[j])
}
