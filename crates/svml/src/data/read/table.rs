//! A table as it is read: in parallel, piece by piece, with numbers as numbers and texts kept once for each column,
//! so that neither the text of the file nor that of its cells is held.
//!
//! A column is read as numbers if the first rows look like it. If a text turns up in it later, the column is read
//! again as text, because the texts of its numbers (`1.0` and `1` are different categories) were not kept.

use std::ops::Range;

use csv::{ReaderBuilder, StringRecord};

use crate::error::{Error, Remedy, Result};
use crate::memory;

use super::delimiter::{self, State, last_record_end};
use super::pool::Pool;
use super::slips::{has_thousands, has_three_digits};
use super::source::{Input, LineCounter, Piece, check_width};
use crate::data::cell::{Decimal, is_missing, number};
use crate::data::coding::are_odd;
use crate::data::identifiers::{YEARS, whole};
use crate::data::{Delimiter, MAX_COLUMNS, MAX_DENSE_BYTES};

/// How many of the first rows decide whether a column is read as numbers.
const SAMPLE: usize = 100;

/// In more rows than this a class that the first row alone has is rather the name of its column.
const ROWS_TO_TELL: usize = 20;

/// Cells of a rectangular table. Lines fit 32 bits because an input has at most 2 GiB.
#[derive(Debug, Default)]
pub(super) struct Table {
    layout: Layout,
    /// The cells of the first row, which may hold names, as text.
    first: Vec<String>,
    /// Row after row: a number, or a NaN that says which text of the column's pool it is, or that it is missing.
    cells: Vec<f64>,
    lines: Vec<u32>,
    pools: Vec<Pool>,
    /// Of each column that was read as numbers with decimal commas, what its commas look like.
    commas: Vec<Option<Box<Commas>>>,
}

/// What has to be known to read the cells of any row.
#[derive(Clone, Debug, Default)]
struct Layout {
    delimiter: Delimiter,
    /// Line of the first row.
    first_line: u64,
    modes: Vec<Mode>,
}

/// How the cells of a column are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// As numbers in this notation; what is none, as text.
    Number(Decimal),
    /// All as text.
    Text,
}

/// What the cells of a column are, without the missing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// All cells are missing.
    Empty,
    /// All are numbers.
    Number(Decimal),
    /// At least one is not a number.
    Text,
}

/// How the numbers of a column are written.
pub(super) struct Notation {
    /// The notation in which more cells are numbers.
    pub decimal: Decimal,
    /// How many are; they are not counted in a column that has no texts.
    pub numbers: usize,
    /// How many are not, without the missing ones.
    pub others: usize,
    /// The row of the first of these.
    pub first: Option<usize>,
}

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    Number(f64),
    /// A text of the column's pool.
    Text(usize),
    /// A missing value whose text was not kept.
    Missing,
}

/// The bits of a NaN; the number of a text is in those that are free.
const NAN: u64 = 0x7ff8_0000_0000_0000;

impl Cell {
    fn packed(self) -> f64 {
        match self {
            Self::Number(value) => value,
            Self::Text(id) => f64::from_bits(NAN | id as u64),
            Self::Missing => f64::from_bits(NAN),
        }
    }

    /// The cell that a number of [`Table::numbers`] stands for.
    pub(super) fn of(packed: f64) -> Self {
        match packed.to_bits() & !NAN {
            _ if !packed.is_nan() => Self::Number(packed),
            0 => Self::Missing,
            id => Self::Text(id as usize),
        }
    }
}

/// The commas in a column of numbers.
#[derive(Clone, Debug, Default)]
struct Commas {
    /// The first cell with a comma, and its line.
    first: Option<(u32, String)>,
    /// Whether a comma does not look like one that separates thousands.
    decimal: bool,
    /// Whether there is a whole number of three digits.
    hundreds: bool,
}

impl Commas {
    fn see(&mut self, line: u32, cell: &str) {
        if !cell.contains(',') {
            self.hundreds |= has_three_digits(cell);
        } else if has_thousands(cell) {
            self.first.get_or_insert_with(|| (line, cell.to_owned()));
        } else {
            self.decimal = true;
        }
    }

    fn join(&mut self, later: Self) {
        self.first = self.first.take().or(later.first);
        self.decimal |= later.decimal;
        self.hundreds |= later.hundreds;
    }
}

impl Table {
    /// Reads a table. Blank lines are skipped; all other rows must have the same number of cells. Delimiter and
    /// header are found from the content if they are not given. `texts` is asked, with the first row, which columns
    /// are to be kept as text.
    pub(super) fn read(
        input: &Input,
        delimiter: Option<Delimiter>,
        header: Option<bool>,
        texts: impl Fn(&[String]) -> Vec<usize>,
    ) -> Result<Self> {
        let start = input.head(|text, whole| Self::start(text, whole, delimiter, header))?;
        let Some(mut table) = start else { return Ok(Self::default()) };
        for column in texts(&table.first) {
            if let Some(mode) = table.layout.modes.get_mut(column) {
                *mode = Mode::Text;
            }
        }
        let all: Vec<usize> = (0..table.width()).collect();
        let read = Read::all(input, &table.layout, &all)?;
        (table.cells, table.lines, table.commas) = (read.cells, read.lines, read.commas);
        table.pools = read.pools.into_iter().map(Option::unwrap_or_default).map(|p| *p).collect();
        // A text below the first row of a column of numbers.
        let surprised = all.into_iter().filter(|&j| read.surprised[j]).collect();
        table.read_as_text(input, surprised)?;
        Ok(table)
    }

    /// To be called when it is known whether the first row holds names: if not, columns in which it has a text above
    /// numbers are read again as text.
    pub(super) fn settle_header(&mut self, input: &Input, header: bool) -> Result<()> {
        if header || self.rows() == 0 {
            return Ok(());
        }
        let mixed = (0..self.width())
            .filter(|&j| self.layout.modes[j] != Mode::Text)
            .filter(|&j| matches!(self.at(0, j), Cell::Text(_)))
            .collect();
        self.read_as_text(input, mixed)
    }

    fn read_as_text(&mut self, input: &Input, columns: Vec<usize>) -> Result<()> {
        if columns.is_empty() {
            return Ok(());
        }
        for &column in &columns {
            self.layout.modes[column] = Mode::Text;
        }
        let read = Read::all(input, &self.layout, &columns)?;
        if read.lines != self.lines {
            return Err(input.changed());
        }
        let width = self.width();
        for (row, cells) in read.cells.chunks_exact(columns.len()).enumerate() {
            for (&column, &cell) in columns.iter().zip(cells) {
                self.cells[row * width + column] = cell;
            }
        }
        for (&column, pool) in columns.iter().zip(read.pools) {
            self.pools[column] = *pool.unwrap_or_default();
        }
        Ok(())
    }

    /// Looks at the start of a table: its delimiter, its first row and which columns look like numbers. Nothing, if
    /// that is not enough text.
    fn start(
        text: &str,
        whole: bool,
        delimiter: Option<Delimiter>,
        header: Option<bool>,
    ) -> Result<Option<Self>> {
        let delimiter = match delimiter {
            Some(delimiter) => delimiter,
            // No delimiter can be found in a table of one column, and any will do.
            None => match delimiter::find_in(text, whole)? {
                Some(found) => found.unwrap_or_default(),
                None => return Ok(None),
            },
        };
        let mut table =
            Self { layout: Layout { delimiter, ..Layout::default() }, ..Self::default() };
        let mut rows = 0;
        let mut modes: Vec<Option<Mode>> = Vec::new();
        for_each_record(whole_records(text, whole, delimiter), delimiter, 1, |line, record| {
            if rows == 0 {
                if delimiter == Delimiter::Tab && record.is_blank() {
                    return Ok(true);
                }
                // The limit is on the features; the target is one column more.
                check_width(record.len().saturating_sub(1), line)?;
                table.first = record.cells().map(str::to_owned).collect();
                table.layout.first_line = line;
                modes = vec![None; record.len()];
            }
            rows += 1;
            if rows > 1 || header == Some(false) {
                for (mode, cell) in modes.iter_mut().zip(record.cells()) {
                    if *mode != Some(Mode::Text) && !is_missing(cell) {
                        let comma =
                            delimiter != Delimiter::Comma && number(cell, Decimal::Comma).is_some();
                        *mode = match number(cell, Decimal::Point) {
                            Some(_) => mode.or(Some(Mode::Number(Decimal::Point))),
                            None if comma => Some(Mode::Number(Decimal::Comma)),
                            None => Some(Mode::Text),
                        };
                    }
                }
            }
            Ok(rows < SAMPLE)
        })?;
        table.layout.modes =
            modes.into_iter().map(|mode| mode.unwrap_or(Mode::Number(Decimal::Point))).collect();
        Ok((rows > 0).then_some(table))
    }

    /// Cuts a text into cells, all of which are kept as text.
    #[cfg(test)]
    pub(super) fn parse(text: &str, delimiter: Delimiter) -> Result<Self> {
        let input = Input::of_bytes(text.as_bytes());
        Self::read(&input, Some(delimiter), None, |first| (0..first.len()).collect())
    }

    /// Number of rows, a header included.
    pub(super) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// Number of cells in each row.
    pub(super) fn width(&self) -> usize {
        self.first.len()
    }

    /// Line of the file, from 1, on which a row starts.
    pub(super) fn line(&self, row: usize) -> usize {
        self.lines[row] as usize
    }

    /// The first row as text.
    pub(super) fn first(&self) -> &[String] {
        &self.first
    }

    /// A cell.
    pub(super) fn at(&self, row: usize, column: usize) -> Cell {
        Cell::of(self.cells[row * self.width() + column])
    }

    /// The different texts of a column.
    pub(super) fn pool(&self, column: usize) -> &Pool {
        &self.pools[column]
    }

    /// The text of a cell without white space at its ends; empty for a number of a column that was not read as text.
    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        match self.at(row, column) {
            _ if row == 0 => &self.first[column],
            Cell::Text(id) => self.pools[column].get(id),
            _ => "",
        }
    }

    /// The texts of one row.
    #[cfg(test)]
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = &str> {
        (0..self.width()).map(move |column| self.cell(row, column))
    }

    /// All cells, row after row, as numbers that [`Cell::of`] understands.
    pub(super) fn numbers(&self) -> &[f64] {
        &self.cells
    }

    /// As [`Table::numbers`], without a copy.
    pub(super) fn into_numbers(self) -> Vec<f64> {
        self.cells
    }

    /// Whether a cell says that there is no value.
    pub(super) fn is_missing(&self, row: usize, column: usize) -> bool {
        match self.at(row, column) {
            Cell::Number(_) => false,
            Cell::Missing => true,
            Cell::Text(id) => self.pools[column].is_missing(id),
        }
    }

    /// Whether a cell is a number in either notation; a decimal comma cannot occur where commas separate cells.
    pub(super) fn is_number(&self, cell: &str) -> bool {
        number(cell, Decimal::Point).is_some()
            || (self.layout.delimiter != Delimiter::Comma && number(cell, Decimal::Comma).is_some())
    }

    /// What a column holds in some rows. Decimal commas count only if they fit the whole column.
    pub(super) fn content(
        &self,
        column: usize,
        rows: impl Iterator<Item = usize> + Clone,
    ) -> Content {
        if let Mode::Number(decimal) = self.layout.modes[column] {
            let mut filled = rows.map(|row| self.at(row, column)).filter(|c| *c != Cell::Missing);
            return match filled.next() {
                None => Content::Empty,
                Some(Cell::Number(_)) => Content::Number(decimal),
                // Only the first row can have it.
                Some(_) => Content::Text,
            };
        }
        let (pool, counts) = (&self.pools[column], self.counts(column, rows));
        let texts = || (1..counts.len()).filter(|&id| counts[id] > 0).map(|id| pool.get(id));
        let all = |decimal| texts().all(|text| number(text, decimal).is_some());
        if texts().next().is_none() {
            Content::Empty
        } else if all(Decimal::Point) {
            Content::Number(Decimal::Point)
        } else if self.layout.delimiter != Delimiter::Comma && all(Decimal::Comma) {
            Content::Number(Decimal::Comma)
        } else {
            Content::Text
        }
    }

    /// How often each text of a column occurs, by its number; 0 for one that stands for a missing value.
    pub(super) fn counts(&self, column: usize, rows: impl Iterator<Item = usize>) -> Vec<usize> {
        let pool = &self.pools[column];
        let mut counts = vec![0; pool.len() + 1];
        for row in rows {
            if let Cell::Text(id) = self.at(row, column)
                && !pool.is_missing(id)
            {
                counts[id] += 1;
            }
        }
        counts
    }

    /// How the numbers of a column are written in some rows, and what is none.
    pub(super) fn notation(
        &self,
        column: usize,
        mut rows: impl Iterator<Item = usize> + Clone,
    ) -> Notation {
        if let Mode::Number(decimal) = self.layout.modes[column] {
            return Notation { decimal, numbers: 0, others: 0, first: None };
        }
        let (pool, counts) = (&self.pools[column], self.counts(column, rows.clone()));
        let is = |id: usize, decimal| number(pool.get(id), decimal).is_some();
        let numbers = |decimal| -> usize {
            (1..counts.len())
                .filter(|&id| counts[id] > 0 && is(id, decimal))
                .map(|id| counts[id])
                .sum()
        };
        let (points, commas) = match self.layout.delimiter {
            Delimiter::Comma => (numbers(Decimal::Point), 0),
            _ => (numbers(Decimal::Point), numbers(Decimal::Comma)),
        };
        let decimal = if commas > points { Decimal::Comma } else { Decimal::Point };
        let numbers = points.max(commas);
        let others = counts.iter().sum::<usize>() - numbers;
        let is_other = |row: &usize| match self.at(*row, column) {
            Cell::Text(id) => counts[id] > 0 && !is(id, decimal),
            _ => false,
        };
        let first = if others > 0 { rows.find(is_other) } else { None };
        Notation { decimal, numbers, others, first }
    }

    /// Takes what is no number in this notation for a missing value.
    pub(super) fn take_odd_for_missing(&mut self, column: usize, decimal: Decimal) {
        self.pools[column].take_for_missing(|text| number(text, decimal).is_some());
    }

    /// The first of the commas of a column that may separate thousands, with its line: every comma has three digits after it
    /// and one to three before, and there are whole numbers of three digits.
    pub(super) fn thousands(
        &self,
        column: usize,
        rows: impl Iterator<Item = usize>,
    ) -> Option<(usize, String)> {
        let mut commas = Commas::default();
        let commas = match self.layout.modes[column] {
            Mode::Number(_) => self.commas.get(column)?.as_deref()?,
            Mode::Text => {
                rows.for_each(|row| commas.see(self.lines[row], self.cell(row, column)));
                &commas
            }
        };
        let (line, cell) = commas.first.clone()?;
        (commas.hundreds && !commas.decimal).then_some((line as usize, cell))
    }

    /// Whether the first row looks like names: it has text above a column of numbers, or there are no numbers
    /// at all and none of its cells occurs again, neither beside nor below it in its column.
    pub(super) fn has_header(&self) -> bool {
        if self.rows() == 0 {
            return false;
        }
        let below = 1..self.rows();
        let is_text = |cell: &str| !is_missing(cell) && !self.is_number(cell);
        let mut numbers = self.first.iter().any(|cell| self.is_number(cell));
        for column in 0..self.width() {
            let notation = self.notation(column, below.clone());
            let odd = are_odd(notation.numbers, notation.others);
            if odd || matches!(self.content(column, below.clone()), Content::Number(_)) {
                if is_text(self.cell(0, column)) {
                    return true;
                }
                numbers = true;
            }
        }
        !numbers && self.first.iter().any(|cell| is_text(cell)) && !self.first_row_recurs(below)
    }

    /// Whether the first row may hold names although it has numbers: that of the target is a text which occurs nowhere
    /// else, above texts that do; or the others are numbers that count columns or are years, and the target's own occurs
    /// nowhere else. No text of it occurs again.
    pub(super) fn may_have_header(&self, target: usize) -> bool {
        let below = || 1..self.rows();
        let is_text = |cell: &str| !is_missing(cell) && !self.is_number(cell);
        let occurs = |column: usize| {
            let cell = self.at(0, column);
            matches!(cell, Cell::Text(_)) && below().any(|row| self.at(row, column) == cell)
        };
        let mut names: Vec<&String> = self.first.iter().filter(|cell| !is_missing(cell)).collect();
        names.sort_unstable();
        let texts = (0..self.width()).filter(|&column| is_text(&self.first[column]));
        if self.rows() < 3
            || names.windows(2).any(|pair| pair[0] == pair[1])
            || occurs(target)
            || texts.into_iter().any(occurs)
        {
            return false;
        }
        let named = is_text(&self.first[target]);
        let classes = self.counts(target, below());
        let distinct = classes.iter().filter(|count| **count > 0).count();
        // In few rows a class that is there once is no news.
        if named && self.rows() > ROWS_TO_TELL && classes.iter().sum::<usize>() >= 2 * distinct {
            return true;
        }
        let others = (0..self.width()).filter(|&column| !(named && column == target));
        let numbers: Option<Vec<i64>> = others
            .map(|column| &self.first[column])
            .filter(|cell| !cell.is_empty())
            .map(|cell| number(cell, Decimal::Point).and_then(whole))
            .collect();
        numbers.is_some_and(|numbers| {
            let counts = |from: i64| numbers.iter().copied().eq(from..from + numbers.len() as i64);
            let years = numbers.iter().all(|n| YEARS.contains(n)) && numbers.is_sorted();
            numbers.len() > 2 && (counts(0) || counts(1) || years)
        })
    }

    fn first_row_recurs(&self, below: Range<usize>) -> bool {
        let mut names: Vec<&String> = self.first.iter().filter(|cell| !is_missing(cell)).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
            || (0..self.width()).any(|column| {
                let first = self.cell(0, column);
                !is_missing(first) && below.clone().any(|row| self.cell(row, column) == first)
            })
    }

    /// The names of all columns: those of the header, or x1, x2, ... by position where there is none or it
    /// is blank.
    pub(super) fn names(&self, header: bool) -> Vec<String> {
        match header && self.rows() > 0 {
            true => names_of(&self.first),
            false => names_by_place(self.width()),
        }
    }
}

/// The names of all columns by a header: x1, x2, ... by position where it is blank.
pub(super) fn names_of(header: &[String]) -> Vec<String> {
    let name = |(column, name): (usize, &String)| match name.is_empty() {
        true => format!("x{}", column + 1),
        false => name.clone(),
    };
    header.iter().enumerate().map(name).collect()
}

/// The names of columns without a header.
pub(super) fn names_by_place(width: usize) -> Vec<String> {
    (1..=width).map(|number| format!("x{number}")).collect()
}

/// Cells of some columns.
#[derive(Default)]
struct Read {
    cells: Vec<f64>,
    lines: Vec<u32>,
    /// Of each column, if it has texts; there may be many columns, and many pieces at a time.
    pools: Vec<Option<Box<Pool>>>,
    /// Of each column, whether there was a text below the first row where a number was expected.
    surprised: Vec<bool>,
    commas: Vec<Option<Box<Commas>>>,
}

impl Read {
    /// Reads some columns of all rows.
    fn all(input: &Input, layout: &Layout, columns: &[usize]) -> Result<Self> {
        let mut all = Self::empty(columns.len());
        input.for_pieces(
            |bytes| last_record_end(bytes, layout.delimiter),
            |_| Ok(()),
            |piece, ()| Self::piece(piece, layout, columns),
            |part| all.append(part),
        )?;
        Ok(all)
    }

    fn empty(columns: usize) -> Self {
        Self {
            pools: vec![None; columns],
            surprised: vec![false; columns],
            commas: vec![None; columns],
            ..Self::default()
        }
    }

    fn piece(piece: &Piece, layout: &Layout, columns: &[usize]) -> Result<Self> {
        let mut read = Self::empty(columns.len());
        let (delimiter, width) = (layout.delimiter, layout.modes.len());
        let text = piece.text()?;
        let quoted = text.as_bytes().contains(&b'"');
        let mut wrong =
            if quoted { delimiter::wrong_quote(text, delimiter, piece.line) } else { None };
        for_each_record(text, delimiter, piece.line, |line, record| {
            if let Some(wrong) = wrong.take_if(|wrong| wrong.record <= line) {
                return Err(wrong.error);
            }
            // A line of tabs alone is blank, unless it has as many cells as the table has columns: then it is a
            // row of missing values. Before the first row it is always blank.
            if line < layout.first_line
                || (delimiter == Delimiter::Tab && record.len() != width && record.is_blank())
            {
                return Ok(true);
            }
            if record.len() != width {
                return Err(Error::Parse {
                    line,
                    message: format!(
                        "found {} cells, but expected {width}, as in line {} (delimiter: {delimiter}); correct the line",
                        record.len(),
                        layout.first_line,
                    ),
                    remedy: Some(Remedy::GiveDelimiter),
                });
            }
            if quoted && let Some(lines) = record.lines_that_are_rows(layout) {
                return Err(Error::Parse {
                    line,
                    message: format!(
                        "a cell in quotes makes one row of the {lines} lines from here to line {}, but each of them is a row of {width} cells by itself; remove the two quotes, or the line ends in the cell",
                        line + lines as u64 - 1
                    ),
                    remedy: None,
                });
            }
            read.lines.push(line as u32);
            for (k, &column) in columns.iter().enumerate() {
                let cell = record.cell(column);
                let mut text = || Cell::Text(read.pools[k].get_or_insert_default().number(cell));
                let cell = match layout.modes[column] {
                    Mode::Text => text(),
                    Mode::Number(decimal) => match number(cell, decimal) {
                        Some(value) => {
                            if decimal == Decimal::Comma {
                                read.commas[k].get_or_insert_default().see(line as u32, cell);
                            }
                            Cell::Number(value)
                        }
                        None if is_missing(cell) => Cell::Missing,
                        None => {
                            read.surprised[k] |= line > layout.first_line;
                            text()
                        }
                    },
                };
                read.cells.push(cell.packed());
            }
            Ok(true)
        })?;
        // In a record that is blank.
        wrong.map_or(Ok(read), |wrong| Err(wrong.error))
    }

    /// Adds rows of the piece after those that are there.
    fn append(&mut self, mut part: Self) -> Result<()> {
        let width = self.pools.len();
        for (all, later) in self.commas.iter_mut().zip(part.commas.drain(..)) {
            match (all.as_mut(), later) {
                (Some(all), Some(later)) => all.join(*later),
                (None, later) => *all = later,
                (_, None) => {}
            }
        }
        for (column, (all, pool)) in self.pools.iter_mut().zip(&part.pools).enumerate() {
            let Some(pool) = pool else { continue };
            let all = all.get_or_insert_default();
            let numbers: Vec<usize> = pool.texts().map(|text| all.number(text)).collect();
            for cell in part.cells.iter_mut().skip(column).step_by(width) {
                if let Cell::Text(id) = Cell::of(*cell) {
                    *cell = Cell::Text(numbers[id - 1]).packed();
                }
            }
            self.surprised[column] |= part.surprised[column];
        }
        let what = "the cells of a table";
        memory::reserve(&mut self.cells, part.cells.len(), what)?;
        self.cells.append(&mut part.cells);
        self.lines.append(&mut part.lines);
        // Rows can be dropped and columns be left out, so that what is kept may be less.
        let limit = 2 * u128::from(MAX_DENSE_BYTES);
        let bytes = 8 * self.cells.len() as u128;
        if bytes > limit {
            return Err(Error::TooLarge {
                what: format!("the first {} rows of {width} cells each", self.lines.len()),
                bytes,
                limit,
                remedy: Remedy::UseLessData,
            });
        }
        Ok(())
    }
}

/// The cells of one row, as they stand in the text.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    text: &'a str,
    cells: &'a [Range<usize>],
}

impl<'a> Record<'a> {
    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// A cell without white space at its ends.
    fn cell(&self, column: usize) -> &'a str {
        self.text[self.cells[column].clone()].trim()
    }

    fn cells(&self) -> impl Iterator<Item = &'a str> {
        let text = self.text;
        self.cells.iter().map(move |range| text[range.clone()].trim())
    }

    /// How many lines the row has, if it has several and each would be a row by itself, with numbers in the columns of
    /// numbers: two stray quotes make one row of them. Two lines of texts may be a cell with a line end all the same.
    fn lines_that_are_rows(&self, layout: &Layout) -> Option<usize> {
        if !self.cells().any(|cell| cell.contains(['\n', '\r'])) {
            return None;
        }
        let separator = char::from(delimiter::byte(layout.delimiter));
        let text = self.cells().collect::<Vec<_>>().join(separator.encode_utf8(&mut [0; 4]));
        let text = text.replace("\r\n", "\n");
        let lines: Vec<&str> = text.split(['\n', '\r']).collect();
        let mut numbers = false;
        let mut fits = |line: &&str| {
            let cells: Vec<&str> = match layout.delimiter {
                Delimiter::Spaces => line.split_whitespace().collect(),
                _ => line.split(separator).map(str::trim).collect(),
            };
            cells.len() == layout.modes.len()
                && cells.iter().zip(&layout.modes).all(|(cell, mode)| match mode {
                    Mode::Number(decimal) => {
                        let is_number = number(cell, *decimal).is_some();
                        numbers |= is_number;
                        is_number || is_missing(cell)
                    }
                    Mode::Text => true,
                })
        };
        let all = lines.iter().filter(|line| !line.trim().is_empty()).all(&mut fits);
        (all && (numbers || lines.len() > 2)).then_some(lines.len())
    }

    /// Whether all cells are empty or white space.
    pub(super) fn is_blank(&self) -> bool {
        self.cells().all(str::is_empty)
    }
}

/// The part of the start of a text that is made of whole records.
pub(super) fn whole_records(text: &str, whole: bool, delimiter: Delimiter) -> &str {
    match whole {
        true => text,
        false => &text[..last_record_end(text.as_bytes(), delimiter).unwrap_or(0)],
    }
}

/// Calls `each` with the line and the cells of every row that is not blank, until it returns `false`. The text begins
/// on line `first`.
pub(super) fn for_each_record(
    text: &str,
    delimiter: Delimiter,
    first: u64,
    each: impl FnMut(u64, Record<'_>) -> Result<bool>,
) -> Result<()> {
    match text.as_bytes().contains(&b'"') {
        true => quoted_records(text, delimiter, first, each),
        false => plain_records(text, delimiter, first, each),
    }
}

/// [`for_each_record`] for a text without quotes, where each line is a row.
fn plain_records(
    text: &str,
    delimiter: Delimiter,
    first: u64,
    mut each: impl FnMut(u64, Record<'_>) -> Result<bool>,
) -> Result<()> {
    let bytes = text.as_bytes();
    let separator = delimiter::byte(delimiter);
    let spaces = delimiter == Delimiter::Spaces;
    let mut cells: Vec<Range<usize>> = Vec::new();
    let (mut at, mut line) = (0, first);
    while at < bytes.len() {
        cells.clear();
        let (begin, mut start) = (at, at);
        while let Some(&byte) = bytes.get(at) {
            let separates = byte == separator || (spaces && byte == b'\t');
            if separates {
                // Runs of spaces, and those at the ends of a line, separate once or not at all.
                if !spaces || start < at {
                    cells.push(start..at);
                }
                start = at + 1;
                if cells.len() > MAX_COLUMNS + usize::from(spaces) {
                    return check_width(MAX_COLUMNS + 1, line);
                }
            } else if byte == b'\n' || byte == b'\r' {
                break;
            }
            at += 1;
        }
        if !spaces || start < at {
            cells.push(start..at);
        }
        let record = Record { text, cells: &cells };
        let blank = begin == at || (cells.len() < 2 && record.is_blank());
        at += if bytes[at..].starts_with(b"\r\n") { 2 } else { 1 };
        if !blank && !each(line, record)? {
            return Ok(());
        }
        line += 1;
    }
    Ok(())
}

/// [`for_each_record`] for a text that may have cells in quotes.
fn quoted_records(
    text: &str,
    delimiter: Delimiter,
    first: u64,
    mut each: impl FnMut(u64, Record<'_>) -> Result<bool>,
) -> Result<()> {
    let (text, byte) = delimiter::prepare(text, delimiter);
    check_record_widths(&text, byte, first)?;
    // The reader takes off a byte order mark at the start of its text; here it is part of a cell.
    let marked = text.starts_with('\u{feff}');
    let (text, first) =
        if marked { (format!("\n{text}").into(), first.saturating_sub(1)) } else { (text, first) };
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(byte)
        .from_reader(text.as_bytes());
    let mut lines = LineCounter::new(text.as_bytes());
    let mut record = StringRecord::new();
    let mut cells = Vec::new();
    loop {
        let more = reader.read_record(&mut record);
        let offset = record.position().map_or(0, csv::Position::byte) as usize;
        let more = more.map_err(|e| Error::Parse {
            line: first + lines.line_at(offset) - 1,
            message: e.to_string(),
            remedy: None,
        })?;
        if !more {
            return Ok(());
        }
        let line = first + lines.line_at(offset) - 1;
        cells.clear();
        cells.extend((0..record.len()).map(|column| record.range(column).unwrap_or_default()));
        let found = Record { text: record.as_slice(), cells: &cells };
        if found.len() == 1 && found.is_blank() {
            continue;
        }
        if !each(line, found)? {
            return Ok(());
        }
    }
}

/// Refuses rows with too many cells before the CSV reader allocates memory, at least eight bytes for each cell.
fn check_record_widths(text: &str, separator: u8, first: u64) -> Result<()> {
    let mut state = State::Before;
    let (mut start, mut count) = (0, 0);
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        state = state.after(byte.into(), separator.into());
        if state != State::Before {
            continue;
        }
        if byte == separator {
            count += 1;
            if count > MAX_COLUMNS {
                let line = LineCounter::new(text.as_bytes()).line_at(start);
                return check_width(count, first + line - 1);
            }
        } else {
            (start, count) = (at, 0);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn table(text: &str) -> Table {
        Table::parse(text, Delimiter::Comma).unwrap()
    }

    fn cells(table: &Table) -> Vec<Vec<&str>> {
        (0..table.rows()).map(|i| table.row(i).collect()).collect()
    }

    #[test]
    fn quotes_line_ends_blank_lines_and_trimming() {
        let t = table(" a , \"b\"\r\n\r\n\"c, \"\"d\"\"\",e\r   \n\"f\ng\" ,h");
        assert_eq!(cells(&t), [["a", "b"], ["c, \"d\"", "e"], ["f\ng", "h"]]);
        assert_eq!((0..3).map(|i| t.line(i)).collect::<Vec<_>>(), [1, 3, 5]);
    }

    #[test]
    fn lines_are_those_of_the_file_for_every_line_end() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["", "1,2", "", " ", "3,4", "\"5\",6", ""].join(end);
            let t = table(&text);
            assert_eq!((0..3).map(|i| t.line(i)).collect::<Vec<_>>(), [2, 5, 6]);
            let t = Table::parse(&text.replace(',', "  "), Delimiter::Spaces).unwrap();
            assert_eq!((0..3).map(|i| t.line(i)).collect::<Vec<_>>(), [2, 5, 6]);
        }
    }

    /// Two quotes that do not belong there make one row of all lines between them.
    #[test]
    fn quotes_that_swallow_rows_are_noticed() {
        let rows = |from: usize, quote: &str, to: usize, end: &str| -> String {
            let mark = |i: usize| if i == from { quote } else { "" };
            let close = |i: usize| if i == to { quote } else { "" };
            (1..=40)
                .map(|i| format!("{i},{}{}.5{},{}{end}", mark(i), i % 7, close(i), i % 3))
                .collect()
        };
        let read = |text: &str| {
            let input = Input::of_bytes(text.as_bytes());
            Table::read(&input, None, None, |_| Vec::new()).map(|table| table.rows())
        };
        for end in ["\n", "\r\n", "\r"] {
            assert_eq!(read(&rows(5, "", 15, end)).unwrap(), 40);
            for (from, to) in [(5, 15), (1, 2), (39, 40), (1, 40)] {
                let said = read(&rows(from, "\"", to, end)).unwrap_err().to_string();
                let lines = format!(
                    "line {from}: a cell in quotes makes one row of the {} lines from here to line {to}",
                    to - from + 1
                );
                assert!(said.starts_with(&lines), "{said}");
            }
        }
        // Cells with line ends.
        for (text, rows) in [
            ("1,\"a, b\nc, d\",x\n2,e,y\n", 2),
            ("n,t\n1,\"a\nb,c\"\n2,d\n", 3),
            ("a,\"b\r\n\r\nc\"\nd,e\n", 2),
        ] {
            assert_eq!(read(text).unwrap(), rows, "{text}");
        }
    }

    #[test]
    fn a_row_of_another_width_is_named() {
        let error = Table::parse("1,2\n\n3,4,5\n", Delimiter::Comma).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("line 3: found 3 cells, but expected 2, as in line 1"),
            "{message}"
        );
        // A quote that is never closed takes up the rest of the file.
        assert!(Table::parse("1,2\n\"3,4\n5,6\n", Delimiter::Comma).is_err());
    }

    #[test]
    fn runs_of_spaces_and_tabulators() {
        let t =
            Table::parse("   5   7  .400 1\n  60\t 7\t\"a b\" 2  \n", Delimiter::Spaces).unwrap();
        assert_eq!(cells(&t), [["5", "7", ".400", "1"], ["60", "7", "a b", "2"]]);
    }

    #[test]
    fn lines_of_tabulators_are_blank_unless_they_are_rows() {
        let t = Table::parse("\t\na\tb\tc\n \t \n\t\t\n", Delimiter::Tab).unwrap();
        assert_eq!(cells(&t), [["a", "b", "c"], ["", "", ""]]);
    }

    #[test]
    fn too_many_columns() {
        let wide = ",".repeat(MAX_COLUMNS);
        assert_eq!(table(&wide).width(), MAX_COLUMNS + 1);
        let quoted = format!("\"{wide},\",1\n");
        assert_eq!(table(&quoted).width(), 2);
        let error = Table::parse(&format!("1\n{wide},\n"), Delimiter::Comma).unwrap_err();
        assert!(error.to_string().starts_with("line 2: found 100001 columns"), "{error}");
    }

    #[test]
    fn content_of_columns() {
        let t = Table::parse("1;1,5;?;a;inf\n?;2;;1;2\n", Delimiter::Semicolon).unwrap();
        let found: Vec<_> = (0..5).map(|j| t.content(j, 0..2)).collect();
        assert_eq!(
            found,
            [
                Content::Number(Decimal::Point),
                Content::Number(Decimal::Comma),
                Content::Empty,
                Content::Text,
                Content::Number(Decimal::Point),
            ]
        );
    }

    #[test]
    fn headers() {
        for (text, header) in [
            ("a,b\n1,2\n", true),
            ("1,b\n1,2\n", true),
            ("1,2\n3,4\n", false),
            ("1,2\n", false),
            // The first row has numbers above the columns of numbers.
            ("b,1,+\na,2,-\n", false),
            ("b,?,+\na,2,-\n", false),
            // Without numbers, the first row is a header if none of its cells occurs again.
            ("colour,class\nred,yes\nred,no\n", true),
            ("red,yes\nblue,yes\n", false),
            ("yes,yes\nno,no\n", false),
            ("colour,class\n", true),
            (",class\nr1,yes\n", true),
            ("?,?\na,b\n", false),
            ("", false),
        ] {
            assert_eq!(table(text).has_header(), header, "{text:?}");
        }
        let t = Table::parse("a;b\n1,5;x\n", Delimiter::Semicolon).unwrap();
        assert!(t.has_header());
    }

    #[test]
    fn names_by_header_or_position() {
        let t = table("a,,c\n1,2,3\n");
        assert_eq!(t.names(true), ["a", "x2", "c"]);
        assert_eq!(t.names(false), ["x1", "x2", "x3"]);
    }
}
