//! How a fit is computed: exactly, or through landmarks, and through how many.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Svml;
use super::criterion::Criterion;
use crate::data::{Sample, pairs};
use crate::error::{Error, Result};

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

/// Landmarks of each part of a fit; none: exact. The cost model is that of `docs/math.md`, section 26.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Approach {
    /// While metric and C are learned.
    pub learn: Option<usize>,
    /// For rows that are asked.
    pub ask: Option<usize>,
    /// Of the final SVMs, where they are not exact.
    pub last: Option<usize>,
    /// Whether the final SVMs are exact where that is less work.
    exact_if_less: bool,
    /// Bytes of K that each part of the fit may keep.
    pub keep: u64,
}

impl Approach {
    /// Everything exact.
    pub const EXACT: Self =
        Self { learn: None, ask: None, last: None, exact_if_less: false, keep: 0 };

    /// For a sample. `memory` is how many bytes the fit may use.
    pub fn of(sample: &Sample<'_>, params: &Svml, memory: u64) -> Self {
        let mut sizes = vec![0; sample.classes()];
        sample.class().iter().for_each(|&class| sizes[class] += 1);
        Self::for_sizes(&sizes, params, memory)
    }

    /// The same for classes of so many rows.
    pub fn for_sizes(sizes: &[usize], params: &Svml, memory: u64) -> Self {
        let classes = sizes.len();
        // The closed form of leave-one-out is that of the exact SVM.
        let exact = match params.landmarks {
            _ if params.criterion == Criterion::LeaveOneOut => true,
            LandmarkChoice::Exact => true,
            LandmarkChoice::Count(_) => false,
            LandmarkChoice::Auto => {
                let work: f64 = pair_sizes(sizes).map(|n| (n as f64).powi(3)).sum();
                work <= EXACT_WORK
            }
        };
        if exact {
            return Self::EXACT;
        }
        let most = match params.landmarks {
            LandmarkChoice::Count(count) => count,
            _ => usize::MAX,
        };
        let count = |least: usize, per_class: usize| Some(least.max(per_class * classes).min(most));
        let last = match params.landmarks {
            LandmarkChoice::Count(count) => Some(count),
            _ => count(LAST, LAST_PER_CLASS),
        };
        Self {
            learn: count(LEARN, LEARN_PER_CLASS),
            ask: count(ASK, ASK_PER_CLASS),
            last,
            exact_if_less: params.landmarks == LandmarkChoice::Auto,
            // Two halves may be learned at the same time, and there is more than K.
            keep: memory / 4,
        }
    }

    /// Of a sample of rows that are too many to be held together, the same for all of these: their SVMs are on landmarks.
    pub fn with_all_rows(self, params: &Svml, classes: usize) -> Self {
        let (ask, last) = match params.landmarks {
            LandmarkChoice::Count(count) => (count, count),
            _ => (ASK.max(ASK_PER_CLASS * classes), LAST.max(LAST_PER_CLASS * classes)),
        };
        Self { ask: Some(ask), last: Some(last), exact_if_less: false, ..self }
    }

    /// About how many bytes a fit to classes of so many rows will use at most.
    pub fn bytes(&self, sizes: &[usize], columns: usize) -> u64 {
        let n = sizes.iter().sum::<usize>() as u64;
        // As they were read, in order, and in halves.
        let data = 3 * 8 * n * columns as u64;
        let (Some(learn), Some(last)) = (self.learn, self.last) else {
            let largest = pair_sizes(sizes).max().unwrap_or(0) as u64;
            return data + 8 * (n * n + 2 * largest * largest);
        };
        let kept = |rows: u64, landmarks: usize| self.keep.min(8 * rows * landmarks as u64);
        let matrices = 6 * 8 * (last as u64).pow(2);
        data + matrices + kept(n, last).max(2 * kept(n / 2, learn))
    }

    /// The parameter of learning.
    pub fn learning(&self) -> LandmarkChoice {
        self.learn.map_or(LandmarkChoice::Exact, LandmarkChoice::Count)
    }

    /// Landmarks of the final SVMs, given the rows that are likely to be support vectors of each pair of classes: none if
    /// exact SVMs are less work and their columns of K do not take more than `memory` bytes.
    pub fn finally(&self, rows: usize, likely: &[Vec<usize>], memory: u64) -> Option<usize> {
        let last = self.last?;
        if !self.exact_if_less || likely.is_empty() {
            return Some(last);
        }
        let classes = (1..).find(|c| c * (c - 1) / 2 >= likely.len()).unwrap_or(2);
        let m = (2 * last / classes) as f64;
        let sizes = || likely.iter().map(|rows| rows.len() as f64);
        let exact: f64 = sizes().map(|s| s.powi(3)).sum();
        let landmarks: f64 = sizes().map(|s| 2.0 * s * m * m + STEPS * m.powi(3) / 3.0).sum();
        let mut all: Vec<usize> = likely.concat();
        all.sort_unstable();
        all.dedup();
        let largest = likely.iter().map(Vec::len).max().unwrap_or(0) as u64;
        // Some more rows may turn out to be support vectors.
        let bytes = 12 * (rows as u64 * all.len() as u64 + 2 * largest * largest);
        if exact <= landmarks && bytes <= memory { None } else { Some(last) }
    }
}

/// Rows of each pair of classes of so many rows.
fn pair_sizes(sizes: &[usize]) -> impl Iterator<Item = usize> {
    pairs(sizes.len()).into_iter().map(move |(i, j)| sizes[i] + sizes[j])
}
