//! From cells to numbers. Training tables and new rows go through the same function, so that a cell cannot
//! mean one thing when a model is trained and another when it is used.

use crate::error::{Error, Result};
use crate::linalg::Matrix;

use super::source::check_dense;
use super::table::{Content, Table};
use crate::data::cell::{Decimal, excerpt, is_missing, listed, number};
use crate::data::dataset::in_range;
use crate::data::options::Missing;
use crate::data::schema::{Column, Kind};

/// How many known levels a message lists.
const LEVELS_LISTED: usize = 8;

/// Encodes some rows of a table as numbers; `places[k]` is the place in the table of the column `columns[k]`.
///
/// A missing value is NaN under [`Missing::Impute`], in all columns of a one-hot group, and an error
/// otherwise. A level that the column does not know is all zeros in a one-hot group; as a code it is NaN
/// under [`Missing::Impute`] and an error otherwise.
pub(super) fn encode(
    table: &Table,
    rows: &[usize],
    places: &[usize],
    columns: &[Column],
    missing: Missing,
) -> Result<Matrix> {
    let width: usize = columns.iter().map(|c| c.kind.width()).sum();
    check_dense(rows.len(), width)?;
    let mut data = vec![0.0; rows.len() * width];
    let mut start = 0;
    let used = columns.iter().zip(places).filter(|(column, _)| column.kind != Kind::Ignored);
    for (column, &place) in used {
        let end = start + column.kind.width();
        let decimal = match (&column.kind, table.content(place, rows.iter().copied())) {
            (Kind::Number, Content::Text) => return Err(not_a_number(table, rows, place, column)),
            (_, Content::Number(decimal)) => decimal,
            _ => Decimal::Point,
        };
        for (k, &row) in rows.iter().enumerate() {
            let out = &mut data[k * width + start..k * width + end];
            let cell = table.cell(row, place);
            let line = table.line(row);
            if is_missing(cell) {
                if missing != Missing::Impute {
                    return Err(Error::Missing { row: line, column: excerpt(&column.name) });
                }
                out.fill(f64::NAN);
                continue;
            }
            match &column.kind {
                Kind::Number => {
                    let value = number(cell, decimal).unwrap_or(f64::NAN);
                    out[0] = in_range(value, line, &column.name)?;
                }
                Kind::Codes { levels } => {
                    out[0] = match find(levels, cell) {
                        Some(code) => code as f64,
                        None if missing == Missing::Impute => f64::NAN,
                        None => return Err(unseen(line, column, cell)),
                    };
                }
                Kind::OneHot { levels } => {
                    if let Some(code) = find(levels, cell) {
                        out[code] = 1.0;
                    }
                }
                Kind::Ignored => {}
            }
        }
        start = end;
    }
    Matrix::new(rows.len(), width, data)
}

/// The place of a level in the sorted list.
pub(super) fn find(levels: &[String], cell: &str) -> Option<usize> {
    levels.binary_search_by(|level| level.as_str().cmp(cell)).ok()
}

fn unseen(line: usize, column: &Column, cell: &str) -> Error {
    Error::UnseenCategory {
        row: line,
        column: excerpt(&column.name),
        value: excerpt(cell),
        known: listed(column.kind.levels(), LEVELS_LISTED),
    }
}

/// The error for a column of numbers that holds text. It names the first cell that is not a number in either
/// notation or, if decimal points and commas are mixed, the first cell with a decimal comma.
fn not_a_number(table: &Table, rows: &[usize], place: usize, column: &Column) -> Error {
    let first = |fails: &dyn Fn(&str) -> bool| {
        rows.iter().copied().find(|&row| {
            let cell = table.cell(row, place);
            !is_missing(cell) && fails(cell)
        })
    };
    let row = first(&|cell| !table.is_number(cell))
        .or_else(|| first(&|cell| number(cell, Decimal::Point).is_none()))
        .unwrap_or_default();
    Error::Parse {
        line: table.line(row) as u64,
        message: format!(
            "column {}: '{}' is not a number, but the column held numbers in training; correct or blank the cell",
            excerpt(&column.name),
            excerpt(table.cell(row, place)),
        ),
        remedy: None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::data::Delimiter;

    fn column(kind: Kind) -> Column {
        Column { name: "c".to_owned(), kind }
    }

    fn levels(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("l{i}")).collect()
    }

    fn run(text: &str, kind: Kind, missing: Missing) -> Result<Vec<f64>> {
        let table = Table::parse(text, Delimiter::Semicolon)?;
        let rows: Vec<usize> = (0..table.rows()).collect();
        Ok(encode(&table, &rows, &[0], &[column(kind)], missing)?.into_vec())
    }

    #[test]
    fn numbers() {
        let read = |text, missing| run(text, Kind::Number, missing);
        assert_eq!(read("1\n-2.5\n", Missing::Refuse).unwrap(), [1.0, -2.5]);
        assert_eq!(read("1,5\n2\n", Missing::Refuse).unwrap(), [1.5, 2.0]);
        assert!(read("1\n?\n", Missing::Impute).unwrap()[1].is_nan());
        assert!(read("?\n?\n", Missing::Impute).unwrap()[1].is_nan());
        for missing in [Missing::Refuse, Missing::Drop] {
            let error = read("1\n?\n", missing).unwrap_err();
            assert!(matches!(&error, Error::Missing { row: 2, column } if column == "c"));
        }
    }

    #[test]
    fn numbers_out_of_range() {
        for text in ["inf", "-Infinity", "1e301", "-1e999"] {
            let error = run(text, Kind::Number, Missing::Impute).unwrap_err();
            assert!(matches!(error, Error::OutOfRange { row: 1, .. }), "{text}");
        }
        assert_eq!(run("1e300", Kind::Number, Missing::Refuse).unwrap(), [1e300]);
    }

    #[test]
    fn text_in_a_number_column_names_the_cell() {
        let message = |text| run(text, Kind::Number, Missing::Impute).unwrap_err().to_string();
        assert!(message("1\n\nabc\nx").starts_with("line 3: column c: 'abc' is not a number"));
        assert!(message("1.5\n2,5").starts_with("line 2: column c: '2,5' is not a number"));
    }

    #[test]
    fn codes() {
        let kind = || Kind::Codes { levels: levels(10) };
        assert_eq!(run("l3\nl0", kind(), Missing::Refuse).unwrap(), [3.0, 0.0]);
        assert!(run("new", kind(), Missing::Impute).unwrap()[0].is_nan());
        assert!(run("?", kind(), Missing::Impute).unwrap()[0].is_nan());
        let error = run("l1\nnew", kind(), Missing::Drop).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("row 2, column c: category 'new'"));
        assert!(message.contains("l7, ... (10 in all)"), "{message}");
    }

    #[test]
    fn one_hot() {
        let kind = || Kind::OneHot { levels: levels(2) };
        assert_eq!(
            run("l1\nl0\nnew", kind(), Missing::Refuse).unwrap(),
            [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
        );
        let missing = run("?", kind(), Missing::Impute).unwrap();
        assert!(missing.iter().all(|v| v.is_nan()));
        assert!(run("?", kind(), Missing::Refuse).is_err());
    }
}
