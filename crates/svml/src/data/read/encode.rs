//! From cells to numbers. Training tables and new rows go through the same function, so that a cell cannot
//! mean one thing when a model is trained and another when it is used.

use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::parallel;

use super::table::{Cell, Notation, Table};
use crate::data::cell::{Decimal, excerpt};
use crate::data::coding::{Code, Coder, Unseen, check_dense, find, not_a_number, unseen};
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

/// The categories in some rows of a table that the columns do not know, and the texts in columns of numbers.
pub(super) fn unseen_in(
    table: &Table,
    rows: &[usize],
    places: &[usize],
    columns: &[Column],
) -> Vec<Unseen> {
    let mut found = Vec::new();
    for (k, (column, &place)) in columns.iter().zip(places).enumerate() {
        if column.kind == Kind::Number {
            let Notation { others, first, .. } = table.notation(place, rows.iter().copied());
            if let Some(first) = first {
                let example = excerpt(table.cell(first, place));
                found.push(Unseen { column: k, rows: others, example });
            }
        }
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
        let notation = match column.kind {
            Kind::Number => table.notation(place, rows.iter().copied()),
            _ => Notation { decimal: Decimal::Point, numbers: 0, others: 0, first: None },
        };
        let Notation { decimal, numbers, others, .. } = notation;
        let pool = table.pool(place);
        let code = |id: usize| match pool.is_missing(id) {
            true => Code::Missing,
            false => Code::of_text(&column.kind, pool.get(id), decimal),
        };
        let texts = std::iter::once(Code::Missing).chain((1..=pool.len()).map(code)).collect();
        Self { place, coder: Coder::new(&column.kind, missing, numbers, others), texts }
    }

    fn code(&self, cell: f64) -> Code {
        match Cell::of(cell) {
            Cell::Number(value) => Code::Number(value),
            Cell::Missing => Code::Missing,
            Cell::Text(id) => self.texts[id],
        }
    }

    /// Writes the numbers of a cell; whether there is no error.
    fn encode(&self, cell: f64, out: &mut [f64]) -> bool {
        self.coder.write(self.code(cell), out)
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
        let part = Part::new(table, rows, place, column, missing);
        for &row in rows {
            let line = table.line(row);
            let codes = matches!(column.kind, Kind::Codes { .. });
            match part.code(table.numbers()[row * table.width() + place]) {
                Code::Missing if missing != Missing::Impute => {
                    return Err(Error::Missing { row: line, column: excerpt(&column.name) });
                }
                Code::Number(value) => {
                    in_range(value, line, &column.name)?;
                }
                Code::Level(None) if codes && missing != Missing::Impute => {
                    return Err(unseen(line, column, table.cell(row, place)));
                }
                Code::NoNumber if !part.coder.fills_texts => {
                    return Err(Error::Parse {
                        line: line as u64,
                        message: not_a_number(column, table.cell(row, place), missing),
                        remedy: None,
                    });
                }
                _ => {}
            }
        }
    }
    Ok(())
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
        let message = |text, missing| run(text, Kind::Number, missing).unwrap_err().to_string();
        let refused = |text| message(text, Missing::Refuse);
        assert!(refused("1\n\nabc\nx").starts_with("line 3: column c: 'abc' is not a number"));
        assert!(refused("1.5\n2,5").starts_with("line 2: column c: '2,5' is not a number"));
        // Imputed, unless nothing in the column is a number.
        assert!(message("abc\nx", Missing::Impute).contains("check which column this is"));
        for text in ["1\nabc", "1.5\n2,5", "1\nabc\nx"] {
            assert!(run(text, Kind::Number, Missing::Impute).unwrap()[1].is_nan(), "{text}");
        }
        assert!(run("abc", Kind::Number, Missing::Impute).unwrap()[0].is_nan());
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
