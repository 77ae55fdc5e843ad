//! A table of text cells as the CSV reader finds it, before any cell is read as a number: all cells of all
//! rows in one buffer, trimmed, with the line of each row.

use std::ops::Range;

use csv::{ReaderBuilder, StringRecord};

use crate::error::{Error, Remedy, Result};

use super::delimiter::{self, State};
use super::source::{LineCounter, check_width};
use crate::data::cell::{Decimal, is_missing, number};
use crate::data::{Delimiter, MAX_COLUMNS};

/// Cells of a rectangular table. Offsets and lines fit 32 bits because a text has at most 2 GiB.
#[derive(Debug)]
pub(super) struct Table {
    text: String,
    ends: Vec<u32>,
    lines: Vec<u32>,
    width: usize,
    delimiter: Delimiter,
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

impl Table {
    /// Cuts a text into cells. Blank lines are skipped; all other rows must have the same number of cells.
    pub(super) fn parse(text: &str, delimiter: Delimiter) -> Result<Self> {
        let mut table = Self {
            text: String::with_capacity(text.len()),
            ends: Vec::new(),
            lines: Vec::new(),
            width: 0,
            delimiter,
        };
        for_each_record(text, delimiter, |line, record| {
            // A line of tabs alone is blank, unless it has as many cells as the table has columns: then it is a
            // row of missing values.
            if delimiter == Delimiter::Tab && record.len() != table.width && is_blank(record) {
                return Ok(true);
            }
            if table.lines.is_empty() {
                // The limit is on the features; the target is one column more.
                check_width(record.len().saturating_sub(1), line)?;
                table.width = record.len();
            } else if record.len() != table.width {
                return Err(Error::Parse {
                    line,
                    message: format!(
                        "{} cells found where {} are expected, as in line {} (delimiter: {delimiter}); correct the line",
                        record.len(),
                        table.width,
                        table.line(0),
                    ),
                    remedy: Some(Remedy::GiveDelimiter),
                });
            }
            table.lines.push(line as u32);
            for cell in record {
                table.text.push_str(cell.trim());
                table.ends.push(table.text.len() as u32);
            }
            Ok(true)
        })?;
        Ok(table)
    }

    /// Number of rows, a header included.
    pub(super) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// Number of cells in each row.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Line of the file, from 1, on which a row starts.
    pub(super) fn line(&self, row: usize) -> usize {
        self.lines[row] as usize
    }

    /// A cell without white space at its ends.
    pub(super) fn cell(&self, row: usize, column: usize) -> &str {
        let at = row * self.width + column;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[start as usize..self.ends[at] as usize]
    }

    /// The cells of one row.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = &str> {
        (0..self.width).map(move |column| self.cell(row, column))
    }

    /// Whether a cell is a number in either notation; a decimal comma cannot occur where commas separate cells.
    pub(super) fn is_number(&self, cell: &str) -> bool {
        number(cell, Decimal::Point).is_some()
            || (self.delimiter != Delimiter::Comma && number(cell, Decimal::Comma).is_some())
    }

    /// What a column holds in some rows. Decimal commas count only if they fit the whole column.
    pub(super) fn content(
        &self,
        column: usize,
        rows: impl Iterator<Item = usize> + Clone,
    ) -> Content {
        let cells = rows.map(|row| self.cell(row, column)).filter(|cell| !is_missing(cell));
        let all = |decimal| cells.clone().all(|cell| number(cell, decimal).is_some());
        if cells.clone().next().is_none() {
            Content::Empty
        } else if all(Decimal::Point) {
            Content::Number(Decimal::Point)
        } else if self.delimiter != Delimiter::Comma && all(Decimal::Comma) {
            Content::Number(Decimal::Comma)
        } else {
            Content::Text
        }
    }

    /// Whether the first row looks like names: it has text above a column of numbers, or there are no numbers
    /// at all and none of its cells occurs again, neither beside nor below it in its column.
    pub(super) fn has_header(&self) -> bool {
        if self.rows() == 0 {
            return false;
        }
        let below = 1..self.rows();
        let is_text = |cell: &str| !is_missing(cell) && !self.is_number(cell);
        let mut numbers = self.row(0).any(|cell| self.is_number(cell));
        for column in 0..self.width {
            if matches!(self.content(column, below.clone()), Content::Number(_)) {
                if is_text(self.cell(0, column)) {
                    return true;
                }
                numbers = true;
            }
        }
        !numbers && self.row(0).any(is_text) && !self.first_row_recurs(below)
    }

    fn first_row_recurs(&self, below: Range<usize>) -> bool {
        let mut names: Vec<&str> = self.row(0).filter(|cell| !is_missing(cell)).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
            || (0..self.width).any(|column| {
                let first = self.cell(0, column);
                !is_missing(first) && below.clone().any(|row| self.cell(row, column) == first)
            })
    }

    /// The names of all columns: those of the header, or x1, x2, ... by position where there is none or it
    /// is blank.
    pub(super) fn names(&self, header: bool) -> Vec<String> {
        (0..self.width)
            .map(|column| match (header, self.rows()) {
                (true, 1..) if !self.cell(0, column).is_empty() => self.cell(0, column).to_owned(),
                _ => format!("x{}", column + 1),
            })
            .collect()
    }
}

/// Whether all cells of a row are empty or white space.
pub(super) fn is_blank(record: &StringRecord) -> bool {
    record.iter().all(|cell| cell.trim().is_empty())
}

/// Calls `each` with the line and the cells of every row that is not blank, until it returns `false`.
pub(super) fn for_each_record(
    text: &str,
    delimiter: Delimiter,
    mut each: impl FnMut(u64, &StringRecord) -> Result<bool>,
) -> Result<()> {
    let (text, byte) = delimiter::prepare(text, delimiter);
    check_record_widths(&text, byte)?;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(byte)
        .from_reader(text.as_bytes());
    let mut lines = LineCounter::new(text.as_bytes());
    let mut record = StringRecord::new();
    loop {
        let more = reader.read_record(&mut record);
        let offset = record.position().map_or(0, csv::Position::byte) as usize;
        let more = more.map_err(|e| Error::Parse {
            line: lines.line_at(offset),
            message: e.to_string(),
            remedy: None,
        })?;
        if !more {
            return Ok(());
        }
        let line = lines.line_at(offset);
        if record.len() == 1 && is_blank(&record) {
            continue;
        }
        if !each(line, &record)? {
            return Ok(());
        }
    }
}

/// Refuses rows with too many cells before the CSV reader allocates memory, at least eight bytes for each cell.
fn check_record_widths(text: &str, separator: u8) -> Result<()> {
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
                return check_width(count, line);
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

    #[test]
    fn a_row_of_another_width_is_named() {
        let error = Table::parse("1,2\n\n3,4,5\n", Delimiter::Comma).unwrap_err();
        let message = error.to_string();
        assert!(
            message.starts_with("line 3: 3 cells found where 2 are expected, as in line 1"),
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
        assert!(error.to_string().starts_with("line 2: 100001 columns found"), "{error}");
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
