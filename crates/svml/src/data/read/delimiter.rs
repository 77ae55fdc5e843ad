//! Finds which character separates the cells of a table from its first rows; and prepares tables whose cells are
//! separated by runs of spaces for the `csv` crate, which cannot read them as they are.

use std::borrow::Cow;

use crate::error::{Error, Result};

use super::source::last_line_end;
use super::table::{for_each_record, whole_records};
use crate::data::Delimiter;
use crate::data::cell::excerpt;

/// How many of the first rows are used to find the delimiter.
const SAMPLE: usize = 50;

/// Finds the delimiter, or `None` if the table has a single column.
///
/// Tab, semicolon and comma are tried in this order; the first that cuts all of the first 50 rows into the same
/// number of cells, more than one, is taken. If none does, the one that does so for most rows is taken, provided
/// that these are more than half of the rows (the other rows are reported later, by line). If there is none of
/// this kind either, the cells are separated by runs of spaces, or each row has only one cell.
///
/// The text is the start of a table. Nothing is returned if it is not `whole` and has too few rows to tell.
pub(super) fn find_in(text: &str, whole: bool) -> Result<Option<Option<Delimiter>>> {
    let mut best: Option<(f64, Delimiter)> = None;
    for delimiter in [Delimiter::Tab, Delimiter::Semicolon, Delimiter::Comma] {
        let Some(share) = agreement(text, whole, delimiter)? else { return Ok(None) };
        if share > 0.5 && best.is_none_or(|(most, _)| share > most) {
            best = Some((share, delimiter));
        }
    }
    if best.is_none() {
        return Ok(agreement(text, whole, Delimiter::Spaces)?
            .map(|share| (share > 0.0).then_some(Delimiter::Spaces)));
    }
    Ok(Some(best.map(|(_, delimiter)| delimiter)))
}

/// The share of rows with the most frequent number of cells; zero if that number is one.
fn agreement(text: &str, whole: bool, delimiter: Delimiter) -> Result<Option<f64>> {
    let mut counts = Vec::with_capacity(SAMPLE);
    for_each_record(whole_records(text, whole, delimiter), delimiter, 1, |_, record| {
        if !record.is_blank() {
            counts.push(record.len());
        }
        Ok(counts.len() < SAMPLE)
    })?;
    if counts.len() < SAMPLE && !whole {
        return Ok(None);
    }
    let times = |n: usize| counts.iter().filter(|&&c| c == n).count();
    let usual = counts.iter().copied().max_by_key(|&n| (times(n), n));
    Ok(Some(match usual {
        Some(n) if n > 1 => times(n) as f64 / counts.len() as f64,
        _ => 0.0,
    }))
}

/// The byte that separates cells.
pub(super) fn byte(delimiter: Delimiter) -> u8 {
    match delimiter {
        Delimiter::Comma => b',',
        Delimiter::Semicolon => b';',
        Delimiter::Tab => b'\t',
        Delimiter::Spaces => b' ',
    }
}

/// The end of the last record that ends in some bytes, which begin with a record: a line end in quotes is none.
pub(super) fn last_record_end(bytes: &[u8], delimiter: Delimiter) -> Option<usize> {
    if !bytes.contains(&b'"') {
        return last_line_end(bytes);
    }
    let separator = char::from(byte(delimiter));
    let mut state = State::Before;
    let mut end = None;
    for (at, &byte) in bytes.iter().enumerate() {
        let white = matches!(byte, b' ' | b'\t');
        // As `unpadded` leaves it out.
        if white && state != State::Quoted && delimiter == Delimiter::Spaces {
            state = State::Before;
        } else if !(white && state == State::Before && char::from(byte) != separator) {
            state = state.after(byte.into(), separator);
        }
        let ends = match byte {
            b'\n' => true,
            // An LF may follow.
            b'\r' => bytes.get(at + 1).is_some_and(|&next| next != b'\n'),
            _ => false,
        };
        if ends && state == State::Before {
            end = Some(at + 1);
        }
    }
    end
}

/// A quote that is wrong, in the record that begins on `record`.
pub(super) struct WrongQuote {
    /// Line of the record.
    pub record: u64,
    /// What is wrong; it names the line in which the quote opens.
    pub error: Error,
}

/// The first quote of a text that is never closed, or is closed before its cell ends: what the writer of the file meant
/// is not known then. The text begins with a record, on line `first`.
pub(super) fn wrong_quote(text: &str, delimiter: Delimiter, first: u64) -> Option<WrongQuote> {
    let separator = char::from(byte(delimiter));
    let (mut line, mut record) = (first, None);
    // Where the quoted cell begins, and on which line.
    let mut opened = (0, first);
    let mut state = State::Before;
    // White space after a closing quote still belongs to the cell.
    let mut closed = false;
    let wrong = |record: Option<u64>, line: u64, message: String| {
        let error = Error::Parse { line, message, remedy: None };
        Some(WrongQuote { record: record.unwrap_or(line), error })
    };
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let white = matches!(c, ' ' | '\t');
        let ends_line = c == '\n' || (c == '\r' && chars.peek().is_none_or(|(_, c)| *c != '\n'));
        if !matches!(c, '\n' | '\r') {
            record = record.or(Some(line));
        }
        let before = state;
        if white && state != State::Quoted && (delimiter == Delimiter::Spaces || c == separator) {
            (state, closed) = (State::Before, false);
        } else if white && (state == State::Before || state == State::Quote || closed) {
            // As `unpadded` leaves it out before a quote.
            (state, closed) =
                if state == State::Before { (state, false) } else { (State::Plain, true) };
        } else {
            state = state.after(c, separator);
            if state == State::Plain && (closed || before == State::Quote) {
                let end = text[at..].find([separator, '\n', '\r']).map_or(text.len(), |n| at + n);
                let cell = excerpt(&text[opened.0..end]);
                let message = format!(
                    "the cell '{cell}' continues after its closing quote; put the whole cell in quotes, and double the quotes inside it"
                );
                return wrong(record, opened.1, message);
            }
            closed = false;
        }
        if before == State::Before && state == State::Quoted {
            opened = (at, line);
        }
        line += u64::from(ends_line);
        if matches!(c, '\n' | '\r') && state == State::Before {
            record = None;
        }
    }
    if state != State::Quoted {
        return None;
    }
    let message = format!(
        "the quote of the cell '{}' is never closed, so everything after it would be part of the cell; close the quote, or double it and put the whole cell in quotes",
        excerpt(&text[opened.0..])
    );
    wrong(record, opened.1, message)
}

/// The text as the `csv` crate can read it, and the byte that separates its cells.
///
/// If runs of spaces separate the cells, each run of spaces and tabs becomes one space, and those at the ends of
/// lines are left out. With any other delimiter only the white space before a cell is left out, because the
/// `csv` crate recognises a quote only at the very start of a cell. Quoted cells and the number of lines stay as
/// they are.
pub(super) fn prepare(text: &str, delimiter: Delimiter) -> (Cow<'_, str>, u8) {
    let separator = char::from(byte(delimiter));
    let spaces = delimiter == Delimiter::Spaces;
    let text = if spaces || text.contains(" \"") || text.contains("\t\"") {
        Cow::Owned(unpadded(text, separator, spaces))
    } else {
        Cow::Borrowed(text)
    };
    (text, separator as u8)
}

/// The state of a reader of cells after each character, by the rules of the `csv` crate.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum State {
    /// Before the first character of a cell.
    Before,
    Plain,
    Quoted,
    /// After a quote inside a quoted cell: the end of the quotes, or the first of a doubled quote.
    Quote,
}

impl State {
    pub(super) fn after(self, c: char, separator: char) -> Self {
        match (self, c) {
            (Self::Quoted, '"') => Self::Quote,
            (Self::Quoted, _) | (Self::Quote, '"') => Self::Quoted,
            (_, '\n' | '\r') => Self::Before,
            (_, c) if c == separator => Self::Before,
            (Self::Before, '"') => Self::Quoted,
            _ => Self::Plain,
        }
    }
}

/// The text without the white space that [`prepare`] leaves out; `spaces` says whether runs of spaces separate
/// the cells.
fn unpadded(text: &str, separator: char, spaces: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut state = State::Before;
    let mut first = true;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let white = matches!(c, ' ' | '\t');
        if state != State::Quoted {
            if spaces && white {
                state = State::Before;
                continue;
            }
            if matches!(c, '\n' | '\r') {
                // A lone CR becomes LF. Otherwise, if only white space that is left out stood between it and an
                // LF, the two would become a single line end, CRLF.
                let lone = c == '\r' && chars.peek() != Some(&'\n');
                out.push(if lone { '\n' } else { c });
                state = State::Before;
                first = true;
                continue;
            }
        }
        if state == State::Before {
            if white && c != separator {
                continue;
            }
            if spaces && !first {
                out.push(separator);
            }
            first = false;
        }
        state = state.after(c, separator);
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn found(text: &str) -> Option<Delimiter> {
        find_in(text, true).unwrap().unwrap()
    }

    #[test]
    fn each_delimiter_is_found() {
        assert_eq!(found("1,2\n3,4\n"), Some(Delimiter::Comma));
        assert_eq!(found("1;2\n3;4\n"), Some(Delimiter::Semicolon));
        assert_eq!(found("1\t2\n3\t4\n"), Some(Delimiter::Tab));
        assert_eq!(found("  1   2\n 30 4 \n"), Some(Delimiter::Spaces));
        assert_eq!(found("1 \t 2\n3 4\n"), Some(Delimiter::Spaces));
    }

    #[test]
    fn a_single_column_has_none() {
        assert_eq!(found("1\n2\n"), None);
        assert_eq!(found(""), None);
        assert_eq!(found("\n \n"), None);
        assert_eq!(found("my name\n1\n2\n3"), None);
    }

    #[test]
    fn decimal_commas_do_not_hide_the_semicolon_or_tabulator() {
        assert_eq!(found("1,5;2,5;0\n3,1;4,2;1\n"), Some(Delimiter::Semicolon));
        assert_eq!(found("1,5\t2,5\n3,1\t4,2\n"), Some(Delimiter::Tab));
    }

    #[test]
    fn spaces_and_quoted_delimiters_inside_cells_do_not_count() {
        assert_eq!(found("age (years),b\n1 ,2\n3,4\n"), Some(Delimiter::Comma));
        assert_eq!(found("\"a;x\",1\n\"b;y\",2\nc,3\n\"d\n;\",4\n"), Some(Delimiter::Comma));
    }

    #[test]
    fn one_odd_row_does_not_hide_the_delimiter() {
        assert_eq!(found("1,2,3\n4,5\n6,7,8\n"), Some(Delimiter::Comma));
    }

    #[test]
    fn half_of_the_rows_are_not_enough() {
        assert_eq!(found("1;2\n3\n"), None);
        assert_eq!(found("1;2\n3\n4;5\n"), Some(Delimiter::Semicolon));
        assert_eq!(found("1\t2,3\n4\t5,6\n"), Some(Delimiter::Tab));
    }

    #[test]
    fn the_start_of_a_table_tells_from_fifty_rows_on() {
        let rows = |n: usize| "1,2\n".repeat(n);
        assert_eq!(find_in(&rows(49), false).unwrap(), None);
        assert_eq!(find_in(&rows(50), false).unwrap(), Some(Some(Delimiter::Comma)));
        // A row that may go on is none.
        assert_eq!(find_in(&(rows(49) + "1,2"), false).unwrap(), None);
    }

    #[test]
    fn a_record_ends_with_a_line_outside_quotes() {
        let end = |text: &str, delimiter| last_record_end(text.as_bytes(), delimiter);
        for (text, delimiter, expected) in [
            ("a,b\nc", Delimiter::Comma, Some(4)),
            ("\"a\nb\",c\nd", Delimiter::Comma, Some(8)),
            ("\"a\nb", Delimiter::Comma, None),
            ("\"a\"\r\nb", Delimiter::Comma, Some(5)),
            ("\"a\"\rb", Delimiter::Comma, Some(4)),
            // An LF may follow.
            ("\"a\"\r", Delimiter::Comma, None),
            // White space before a quote does not count, unless it separates cells.
            (" \"a\nb\"\nc", Delimiter::Comma, Some(7)),
            ("x \"a\nb", Delimiter::Comma, Some(5)),
            ("x \"a\nb", Delimiter::Spaces, None),
            ("\"a\nb\"\t\"c\nd", Delimiter::Tab, None),
        ] {
            assert_eq!(end(text, delimiter), expected, "{text:?}");
        }
    }

    #[test]
    fn a_wrong_quote_is_named_with_its_record_and_line() {
        let found = |text: &str, delimiter| {
            wrong_quote(text, delimiter, 10).map(|wrong| match wrong.error {
                Error::Parse { line, message, .. } => {
                    (wrong.record, line, message.contains("never closed"))
                }
                error => panic!("{error}"),
            })
        };
        for (text, delimiter, expected) in [
            ("a,\"b\"c\n", Delimiter::Comma, Some((10, 10, false))),
            ("x,y\n1,\"a\nb\" c\n", Delimiter::Comma, Some((11, 11, false))),
            ("1,\"a\" ,2\n1,\"a\"\"b\",2\n", Delimiter::Comma, None),
            ("1,2\n\"open\n3", Delimiter::Comma, Some((11, 11, true))),
            ("1\r\n\"open", Delimiter::Comma, Some((11, 11, true))),
            ("1\r\"open", Delimiter::Comma, Some((11, 11, true))),
            // The record begins before the line of the quote.
            ("\"a\n\",\"open", Delimiter::Comma, Some((10, 11, true))),
            ("\"a\" b\n\"c\"\t\"d\"", Delimiter::Spaces, None),
            ("1 \"a\"b", Delimiter::Spaces, Some((10, 10, false))),
            ("1\t \"a\tb\"\tc", Delimiter::Tab, None),
            // Within a cell a quote is a character.
            ("a\"b,5\"\n", Delimiter::Comma, None),
        ] {
            assert_eq!(found(text, delimiter), expected, "{text:?}");
        }
    }

    #[test]
    fn runs_are_collapsed_outside_quotes_only() {
        let collapsed = |text| prepare(text, Delimiter::Spaces).0.into_owned();
        assert_eq!(collapsed("  1 \t 2  \r\n\n 3\t4"), "1 2\r\n\n3 4");
        assert_eq!(collapsed("\"a  b\"   \"c \"\"  d\"\n"), "\"a  b\" \"c \"\"  d\"\n");
        assert_eq!(collapsed("5\"  x \"a\"b  c"), "5\" x \"a\"b c");
        assert_eq!(collapsed("\"open  \n 1"), "\"open  \n 1");
        assert_eq!(collapsed("1\r  \n2"), "1\n\n2");
    }

    #[test]
    fn white_space_before_quotes_is_left_out() {
        let text = " \"a,  b\" ,  c d,\t\"e\"\n , x \"y\"\n";
        let (out, byte) = prepare(text, Delimiter::Comma);
        assert_eq!(out, "\"a,  b\" ,c d,\"e\"\n,x \"y\"\n");
        assert_eq!(byte, b',');
        let (out, _) = prepare("a\t \"b\tc\"\t\td\n", Delimiter::Tab);
        assert_eq!(out, "a\t\"b\tc\"\t\td\n");
        assert!(matches!(prepare("1, 2\n", Delimiter::Comma).0, Cow::Borrowed(_)));
    }
}
