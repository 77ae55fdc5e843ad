//! From cells to numbers. Training tables and new rows go through the same function, so that a cell cannot
//! mean one thing when a model is trained and another when it is used.

use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::parallel;

use super::table::{Cell, Content, Table};
use crate::data::cell::{Decimal, excerpt, number};
use crate::data::coding::{Code, Coder, Unseen, check_dense, find, unseen};
use crate::data::dataset::in_range;
use crate::data::options::Missing;
use crate::data::schema::{Column, Kind};

/// Encodes some rows of a table as numbers; `places[k]` is the place in the table of the column `columns[k]`.
///
/// The numbers take the place of those of the table, unless categories make them more.
pub(super) fn encode(
    table: Table,
    rows: &[usize],
    places: &[usize],
    columns: &[Column],
    missing: Missing,
) -> Result<Matrix> {
    let width: usize = columns.iter().map(|c| c.kind.width()).sum();
    check_dense(rows.len(), width)?;
    let mut parts = Vec::with_capacity(columns.len());
    for (column, &place) in columns.iter().zip(places) {
        if column.kind != Kind::Ignored {
            parts.push(Part::new(&table, rows, place, column, missing));
        }
    }
    let encode_row = |cells: &[f64], out: &mut [f64]| {
        let mut rest = out;
        let mut fits = true;
        for part in &parts {
            let (out, after) = std::mem::take(&mut rest).split_at_mut(part.coder.width);
            fits &= part.encode(cells[part.place], out);
            rest = after;
        }
        fits
    };
    let raw = table.width();
    let cells = |row: usize| &table.numbers()[row * raw..(row + 1) * raw];
    let fits = parallel::map(rows.chunks(BLOCK), |rows| {
        let mut out = vec![0.0; width];
        rows.iter().all(|&row| encode_row(cells(row), &mut out))
    });
    if fits.contains(&false) {
        // Which error it is does not depend on who found it.
        refuse(&table, rows, places, columns, missing)?;
    }
    if width > raw {
        let mut data = vec![0.0; rows.len() * width];
        let blocks = data.chunks_mut(BLOCK * width).zip(rows.chunks(BLOCK));
        parallel::for_each(blocks, |(out, rows)| {
            for (out, &row) in out.chunks_exact_mut(width).zip(rows) {
                encode_row(cells(row), out);
            }
        });
        return Matrix::new(rows.len(), width, data);
    }
    // Rows ascend, so that none is written before it was read.
    let mut data = table.into_numbers();
    let mut cells = vec![0.0; raw];
    for (k, &row) in rows.iter().enumerate() {
        cells.copy_from_slice(&data[row * raw..(row + 1) * raw]);
        encode_row(&cells, &mut data[k * width..(k + 1) * width]);
    }
    data.truncate(rows.len() * width);
    data.shrink_to_fit();
    Matrix::new(rows.len(), width, data)
}

/// The categories in some rows of a table that the columns do not know.
pub(super) fn unseen_in(
    table: &Table,
    rows: &[usize],
    places: &[usize],
    columns: &[Column],
) -> Vec<Unseen> {
    let mut found = Vec::new();
    for (k, (column, &place)) in columns.iter().zip(places).enumerate() {
        let (levels, pool) = (column.kind.levels(), table.pool(place));
        if levels.is_empty() {
            continue;
        }
        let new = |id: usize| !pool.is_missing(id) && find(levels, pool.get(id)).is_none();
        let is_new: Vec<bool> = (1..=pool.len()).map(new).collect();
        if !is_new.contains(&true) {
            continue;
        }
        let strange = |&&row: &&usize| match table.at(row, place) {
            Cell::Text(id) => is_new[id - 1],
            _ => false,
        };
        let mut rows = rows.iter().filter(strange);
        if let Some(&first) = rows.next() {
            let example = excerpt(table.cell(first, place));
            found.push(Unseen { column: k, rows: 1 + rows.count(), example });
        }
    }
    found
}

/// How many rows are encoded as one piece of work.
const BLOCK: usize = 1024;

/// How the cells of one column become numbers.
struct Part {
    place: usize,
    coder: Coder,
    /// What each text of the column's pool stands for, from the second on; the first is a missing value.
    texts: Vec<Code>,
}

impl Part {
    fn new(table: &Table, rows: &[usize], place: usize, column: &Column, missing: Missing) -> Self {
        let decimal = match (&column.kind, table.content(place, rows.iter().copied())) {
            (Kind::Number, Content::Number(decimal)) => Some(decimal),
            _ => None,
        };
        let pool = table.pool(place);
        let code = |id: usize| match pool.is_missing(id) {
            true => Code::Missing,
            false => Code::of_text(&column.kind, pool.get(id), decimal),
        };
        let texts = std::iter::once(Code::Missing).chain((1..=pool.len()).map(code)).collect();
        Self { place, coder: Coder::new(&column.kind, missing), texts }
    }

    /// Writes the numbers of a cell; whether there is no error.
    fn encode(&self, cell: f64, out: &mut [f64]) -> bool {
        let code = match Cell::of(cell) {
            Cell::Number(value) => Code::Number(value),
            Cell::Missing => Code::Missing,
            Cell::Text(id) => self.texts[id],
        };
        self.coder.write(code, out)
    }
}

/// The first error, by columns, that is in the way of encoding.
fn refuse(
    table: &Table,
    rows: &[usize],
    places: &[usize],
    columns: &[Column],
    missing: Missing,
) -> Result<()> {
    let used = columns.iter().zip(places).filter(|(column, _)| column.kind != Kind::Ignored);
    for (column, &place) in used {
        let decimal = match (&column.kind, table.content(place, rows.iter().copied())) {
            (Kind::Number, Content::Text) => {
                return Err(not_a_number(table, rows, place, column, missing));
            }
            (_, Content::Number(decimal)) => decimal,
            _ => Decimal::Point,
        };
        for &row in rows {
            let line = table.line(row);
            let cell = table.cell(row, place);
            if table.is_missing(row, place) {
                if missing != Missing::Impute {
                    return Err(Error::Missing { row: line, column: excerpt(&column.name) });
                }
                continue;
            }
            match &column.kind {
                Kind::Number => {
                    let value = match table.at(row, place) {
                        Cell::Number(value) => value,
                        _ => number(cell, decimal).unwrap_or(f64::NAN),
                    };
                    in_range(value, line, &column.name)?;
                }
                Kind::Codes { levels }
                    if missing != Missing::Impute && find(levels, cell).is_none() =>
                {
                    return Err(unseen(line, column, cell));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The error for a column of numbers that holds text. It names the first cell that is not a number in either
/// notation or, if decimal points and commas are mixed, the first cell with a decimal comma.
fn not_a_number(
    table: &Table,
    rows: &[usize],
    place: usize,
    column: &Column,
    missing: Missing,
) -> Error {
    let first = |fails: &dyn Fn(&str) -> bool| {
        rows.iter()
            .copied()
            .find(|&row| !table.is_missing(row, place) && fails(table.cell(row, place)))
    };
    let row = first(&|cell| !table.is_number(cell))
        .or_else(|| first(&|cell| number(cell, Decimal::Point).is_none()))
        .unwrap_or_default();
    // A blank cell is refused as well, unless it is filled.
    let way_out =
        if missing == Missing::Impute { "correct or blank the cell" } else { "correct the cell" };
    Error::Parse {
        line: table.line(row) as u64,
        message: format!(
            "column {}: '{}' is not a number, but the column was numeric in training; {way_out}",
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
        Column::used("c".to_owned(), kind)
    }

    fn levels(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("l{i}")).collect()
    }

    fn run(text: &str, kind: Kind, missing: Missing) -> Result<Vec<f64>> {
        let table = Table::parse(text, Delimiter::Semicolon)?;
        let rows: Vec<usize> = (0..table.rows()).collect();
        Ok(encode(table, &rows, &[0], &[column(kind)], missing)?.into_vec())
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
        assert!(message.contains("l7, ... (10 in total)"), "{message}");
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
