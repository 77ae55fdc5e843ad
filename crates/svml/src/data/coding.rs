//! What a cell becomes: the rules that tables of a file and frames in memory share, so that a cell means the same
//! wherever it comes from.

use crate::error::{Error, Remedy, Result};
use crate::memory;

use super::cell::{Decimal, excerpt, listed, number};
use super::identifiers::LeftOut;
use super::options::{Categories, Missing};
use super::schema::{Column, Kind, Schema};
use super::{LIMIT, MAX_COLUMNS, MAX_DENSE_BYTES};

/// Most levels of a text column that get a column each unless told otherwise.
const FEW_LEVELS: usize = 20;
/// A column looks mistyped if at most one cell in this many is not a number.
const RARE: usize = 5;
/// How many known levels a message lists.
const LEVELS_LISTED: usize = 8;
/// How many column names a message lists.
const NAMES_LISTED: usize = 20;

/// What becomes of a text column that is used, by its levels, which are sorted.
pub(super) fn kind_of(levels: Vec<String>, categories: Categories) -> Kind {
    match categories {
        Categories::OneHot => Kind::OneHot { levels },
        Categories::Auto if levels.len() <= FEW_LEVELS => Kind::OneHot { levels },
        Categories::Auto | Categories::Codes => Kind::Codes { levels },
    }
}

/// Whether cells that are no numbers are odd ones among numbers, of which more than nine in ten cells are.
pub(super) fn are_odd(numbers: usize, others: usize) -> bool {
    others > 0 && numbers > 9 * others
}

/// What is wrong with such a column, by the first of its odd cells.
pub(super) fn odd_cell(column: &str, cell: &str, numbers: usize, others: usize) -> String {
    format!(
        "column {}: '{}' is not a number, but {numbers} of the {} values of the column are",
        excerpt(column),
        excerpt(cell),
        numbers + others
    )
}

/// Whether a column of text looks mistyped: nearly all of its cells are numbers, but not all.
pub(super) fn looks_mistyped(numbers: usize, others: usize) -> bool {
    others > 0 && others.saturating_mul(RARE) <= numbers.saturating_add(others)
}

/// Refuses a schema that leaves no column, or makes too many.
pub(super) fn check_width(schema: &Schema) -> Result<()> {
    let width = schema.width();
    if width == 0 {
        let shown: Vec<String> = (schema.columns.iter().take(LEVELS_LISTED))
            .filter_map(|c| c.left_out().map(|why| format!("{} ({why})", excerpt(&c.name))))
            .collect();
        let more = if schema.columns.len() > shown.len() { ", ..." } else { "" };
        let asked = schema.columns.iter().all(|c| c.left_out() == Some(LeftOut::Asked));
        return Err(Error::Data {
            what: format!(
                "every column is left out, so there is nothing to learn from: {}{more}",
                shown.join(", ")
            ),
            remedy: if asked { None } else { Some(Remedy::UseIdentifiers) },
        });
    }
    if width > MAX_COLUMNS {
        return Err(Error::Data {
            what: format!(
                "one-hot encoding would make {width} columns, more than the limit of {MAX_COLUMNS}"
            ),
            remedy: Some(Remedy::UseCodes),
        });
    }
    Ok(())
}

/// Refuses a table of more than [`MAX_DENSE_BYTES`] as dense numbers, and one that there is no memory for, before it is
/// allocated.
pub fn check_dense(rows: usize, width: usize) -> Result<()> {
    let bytes = (rows as u128 * width as u128).saturating_mul(8);
    let what = || format!("a dense table of {rows} rows and {width} columns");
    memory::check(what, bytes, MAX_DENSE_BYTES, Remedy::UseLessData)?;
    memory::room_for(bytes as usize, &what())
}

/// What a cell stands for.
#[derive(Clone, Copy)]
pub(super) enum Code {
    Missing,
    Number(f64),
    /// One of the levels, or one that is not known.
    Level(Option<usize>),
    NoNumber,
}

impl Code {
    /// What a text that is not missing stands for in a column of some kind.
    pub(super) fn of_text(kind: &Kind, text: &str, decimal: Decimal) -> Self {
        match kind {
            Kind::Number => number(text, decimal).map_or(Self::NoNumber, Self::Number),
            kind => Self::Level(find(kind.levels(), text)),
        }
    }
}

/// How the cells of one column become numbers.
pub(super) struct Coder {
    /// Number of encoded columns.
    pub width: usize,
    one_hot: bool,
    impute: bool,
    /// Whether a text in a column of numbers is filled like a missing value.
    pub fills_texts: bool,
}

impl Coder {
    /// `numbers` and `others` say how many cells of the column are numbers, and how many texts are none: a column of numbers
    /// without any number is another column, most likely, and is not filled.
    pub(super) fn new(kind: &Kind, missing: Missing, numbers: usize, others: usize) -> Self {
        let one_hot = matches!(kind, Kind::OneHot { .. });
        let impute = missing == Missing::Impute;
        let fills_texts = impute && (numbers > 0 || others < 2);
        Self { width: kind.width(), one_hot, impute, fills_texts }
    }

    /// Writes the numbers of a cell; whether there is no error.
    ///
    /// A missing value is NaN under [`Missing::Impute`], in all columns of a one-hot group, and an error otherwise. A
    /// level that the column does not know is all zeros in a one-hot group; as a code it is NaN under
    /// [`Missing::Impute`] and an error otherwise, and so is a text in a column of numbers.
    pub(super) fn write(&self, code: Code, out: &mut [f64]) -> bool {
        match code {
            Code::Number(value) => {
                out[0] = value;
                value.abs() <= LIMIT
            }
            Code::Missing => {
                out.fill(f64::NAN);
                self.impute
            }
            Code::Level(level) if self.one_hot => {
                out.fill(0.0);
                if let Some(level) = level {
                    out[level] = 1.0;
                }
                true
            }
            Code::Level(Some(level)) => {
                out[0] = level as f64;
                true
            }
            Code::Level(None) => {
                out[0] = f64::NAN;
                self.impute
            }
            Code::NoNumber => {
                out.fill(f64::NAN);
                self.fills_texts
            }
        }
    }
}

/// The place of a level in the sorted list. A truth value is the same in upper and lower case, unless both are levels,
/// because programs that write tables do not agree on it.
pub(super) fn find(levels: &[String], cell: &str) -> Option<usize> {
    let exact = levels.binary_search_by(|level| level.as_str().cmp(cell)).ok();
    exact.or_else(|| {
        let truth = ["true", "false"].iter().any(|word| cell.eq_ignore_ascii_case(word));
        let same = |level: &String| level.eq_ignore_ascii_case(cell);
        if truth { levels.iter().position(same) } else { None }
    })
}

/// Cells of a column with a category that training did not have or, in a column of numbers, with a text that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// The place of the column in the schema.
    pub column: usize,
    /// In how many rows.
    pub rows: usize,
    /// The first of them, shortened.
    pub example: String,
}

/// The error for a category that training did not have.
pub(super) fn unseen(row: usize, column: &Column, cell: &str) -> Error {
    Error::UnseenCategory {
        row,
        column: excerpt(&column.name),
        value: excerpt(cell),
        known: listed(column.kind.levels(), LEVELS_LISTED),
    }
}

/// What is wrong with a text in a column of numbers.
pub(super) fn not_a_number(column: &Column, cell: &str, missing: Missing) -> String {
    let way_out = match missing {
        Missing::Impute => "no value of it is one here, so check which column this is",
        _ => "correct the value",
    };
    format!(
        "column {}: '{}' is not a number, but the column was numeric in training; {way_out}",
        excerpt(&column.name),
        excerpt(cell)
    )
}

/// The error for a column that is not there.
pub(super) fn no_such_column(column: &str, names: &[String]) -> Error {
    Error::NoSuchColumn { column: excerpt(column), available: listed(names, NAMES_LISTED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_values_are_found_in_either_case() {
        let levels = |texts: &[&str]| texts.iter().map(|&t| t.to_owned()).collect::<Vec<_>>();
        assert_eq!(find(&levels(&["False", "True"]), "true"), Some(1));
        assert_eq!(find(&levels(&["TRUE", "true"]), "true"), Some(1));
        assert_eq!(find(&levels(&["False", "True"]), "yes"), None);
        assert_eq!(find(&levels(&["Red"]), "red"), None);
    }
}
