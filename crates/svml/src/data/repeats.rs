//! Rows that repeat: observations that happen to be equal, or copies of one observation?
//!
//! Observations of categories, small integers or rounded numbers are often equal, and are dealt into folds one by one. A
//! table that was written twice, or a rare class that was oversampled, has copies of one observation: they must be in one
//! fold, or a copy validates what its original has taught. A table does not always tell which it has.
//!
//! 1. Where rows are equal by chance, many more pairs agree in all columns but one. With E equal pairs of a class and N_k
//!    pairs that agree in all columns but k, a share p_k = E / (E + N_k) of those that agree elsewhere agrees in k too, and
//!    a share q_k of all pairs of the class. Repeats that chance explains have p_k near q_k for some k; they are suspicious
//!    if (p_k - q_k) / (1 - q_k) is above [`SUSPICIOUS`] for all columns.
//! 2. Suspicious repeats are copies if most rows that agree in the column with most different values, which are many, agree in
//!    all columns, and nearly all of these in the class too; or if every row is there equally often.
//! 3. Other suspicious repeats are dealt one by one, with a warning.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Schema;
use super::folds::{canonical_bits, mix};
use crate::error::{Error, Result};
use crate::linalg::Matrix;

/// What rows are that are equal in all columns and have the same class. As text: `auto`, `observations` or `copies`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum EqualRows {
    /// Copies where the table shows that they are, else observations.
    #[default]
    Auto,
    /// Observations of their own, which are dealt into folds one by one.
    Observations,
    /// Copies of one observation, which are in one fold.
    Copies,
}

impl fmt::Display for EqualRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Observations => "observations",
            Self::Copies => "copies",
        })
    }
}

impl FromStr for EqualRows {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let all = [Self::Auto, Self::Observations, Self::Copies];
        let found = all.into_iter().find(|choice| choice.to_string() == text);
        found.ok_or_else(|| Error::parameter("equal_rows", text, "auto, observations or copies"))
    }
}

impl From<EqualRows> for String {
    fn from(choice: EqualRows) -> Self {
        choice.to_string()
    }
}

impl TryFrom<String> for EqualRows {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// How much more often than by chance rows that agree in all other columns agree in each column. On public tables of
/// categories it is at most 0.14; 0.5 to 1 on measured numbers that were written twice or oversampled. On small integers that
/// were it is 0.29 and more, but below this where there are so few cells that chance alone repeats most rows.
const SUSPICIOUS: f64 = 0.25;
/// So many equal pairs of a class are enough to tell.
const LEAST_PAIRS: f64 = 3.0;
/// A column has many different values if these are more than one for so many rows.
const ROWS_PER_VALUE: usize = 4;
/// The share of pairs that agree in that column which agree in all, if they are copies. It is at most 0.1 on public tables.
const MOST: f64 = 0.5;
/// The share of pairs that agree in all columns which have the same class, if they are copies.
const NEARLY_ALL: f64 = 0.9;
/// So many different rows are not all there equally often by chance.
const LEAST_DISTINCT: usize = 20;
/// Fewer suspicious rows than one in so many are not worth a warning.
const WORTH_A_WARNING: usize = 50;
/// Of wider tables so many columns are looked at.
const MOST_COLUMNS: usize = 200;

/// What repeated rows of a table are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Repeats {
    /// Copies of one observation; else each is an observation.
    pub are_copies: bool,
    /// What the user should know.
    pub warning: Option<String>,
}

impl Repeats {
    /// Looks at the encoded rows of a table and their classes.
    pub fn of(x: &Matrix, class: &[usize], schema: &Schema, choice: EqualRows) -> Self {
        if choice == EqualRows::Observations {
            return Self::default();
        }
        let table = Hashes::new(x, class, schema);
        let counts = counts_of(table.whole.iter().copied());
        let (n, rows) = (x.rows(), x.rows() - counts.len());
        if rows == 0 || choice == EqualRows::Copies {
            return Self { are_copies: rows > 0, warning: None };
        }
        if !table.are_suspicious() {
            return Self::default();
        }
        let divisor = counts.iter().copied().fold(0, greatest_common_divisor);
        let are_copies =
            divisor > 1 && counts.len() >= LEAST_DISTINCT || table.agree_in_all(pairs(&counts));
        let said =
            format!("{rows} of {n} rows repeat another row in every column and in the class");
        let warning = match are_copies {
            true => Some(format!(
                "{said}: they are taken for copies of one observation, which count together and validate nothing that was learned from a copy; if they are observations of their own, set equal_rows to observations"
            )),
            false if rows * WORTH_A_WARNING >= n => Some(format!(
                "{said}: they are taken for observations of their own; if they are copies of one observation, the error on held-out rows is too low: remove them, or set equal_rows to copies"
            )),
            false => None,
        };
        Self { are_copies, warning }
    }
}

/// Hashes of the rows of a table, which are sums over its columns.
struct Hashes<'a> {
    x: &'a Matrix,
    class: &'a [usize],
    /// The encoded columns of each column of the table.
    columns: Vec<std::ops::Range<usize>>,
    /// Of all columns and the class.
    whole: Vec<u64>,
}

impl<'a> Hashes<'a> {
    fn new(x: &'a Matrix, class: &'a [usize], schema: &Schema) -> Self {
        let mut columns = Vec::new();
        let mut next = 0;
        for column in schema.used_columns() {
            columns.push(next..next + column.kind.width());
            next += column.kind.width();
        }
        let mut all = Self { x, class, columns, whole: Vec::new() };
        let of_class = class.iter().map(|&class| mix(!(class as u64)));
        all.whole = of_class.zip(all.of(0..x.cols())).map(|(a, b)| a.wrapping_add(b)).collect();
        all
    }

    /// Of some encoded columns.
    fn of(&self, columns: std::ops::Range<usize>) -> impl Iterator<Item = u64> {
        self.x.iter_rows().map(move |row| {
            let cells = columns.clone().map(|k| mix(canonical_bits(row[k]) ^ mix(k as u64)));
            cells.fold(0, u64::wrapping_add)
        })
    }

    /// Whether rows of some class agree in each column more often than by chance, if they agree in all others.
    fn are_suspicious(&self) -> bool {
        let all = self.pairs_by_class(self.whole.iter().copied());
        let mut least = vec![1.0; all.len()];
        for column in self.columns.iter().take(MOST_COLUMNS) {
            let here: Vec<u64> = self.of(column.clone()).collect();
            let others = self.whole.iter().zip(&here).map(|(all, here)| all.wrapping_sub(*here));
            let elsewhere = self.pairs_by_class(others);
            let chance = self.pairs_by_class(here.iter().copied());
            let any = self.pairs_by_class(std::iter::repeat_n(0, here.len()));
            for c in 0..all.len() {
                let (p, q) = (all[c] / elsewhere[c].max(1.0), chance[c] / any[c].max(1.0));
                // A constant column says nothing.
                if q < 1.0 {
                    least[c] = f64::min(least[c], (p - q) / (1.0 - q));
                }
            }
        }
        all.iter().zip(least).any(|(pairs, least)| *pairs >= LEAST_PAIRS && least > SUSPICIOUS)
    }

    /// Whether the column with most different values has many, most pairs of rows that agree in it agree in all columns, and
    /// nearly all of these are among the `equal` pairs that have the same class.
    fn agree_in_all(&self, equal: f64) -> bool {
        let alike = pairs(&counts_of(self.of(0..self.x.cols())));
        let of_column = |column: &std::ops::Range<usize>| counts_of(self.of(column.clone()));
        let most = self.columns.iter().map(of_column).max_by_key(Vec::len);
        most.is_some_and(|counts| {
            counts.len() * ROWS_PER_VALUE > self.x.rows()
                && alike >= MOST * pairs(&counts)
                && equal >= NEARLY_ALL * alike
        })
    }

    /// For each class the pairs of its rows that have the same hash.
    fn pairs_by_class(&self, hashes: impl Iterator<Item = u64>) -> Vec<f64> {
        let mut of_class = vec![Vec::new(); self.class.iter().max().map_or(0, |c| c + 1)];
        self.class.iter().zip(hashes).for_each(|(&class, hash)| of_class[class].push(hash));
        of_class.into_iter().map(|hashes| pairs(&counts_of(hashes.into_iter()))).collect()
    }
}

/// How often each value occurs.
fn counts_of(values: impl Iterator<Item = u64>) -> Vec<usize> {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.chunk_by(|a, b| a == b).map(<[u64]>::len).collect()
}

/// Pairs of values that are equal.
fn pairs(counts: &[usize]) -> f64 {
    counts.iter().map(|&count| count as f64 * (count as f64 - 1.0) / 2.0).sum()
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
