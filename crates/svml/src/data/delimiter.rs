//! Which character separates the cells of a table, found from its first rows; and the reading of tables whose
//! cells are separated by runs of spaces, which the `csv` crate does not know.

use crate::error::Result;

use super::options::Delimiter;
use super::table::{for_each_record, is_blank};

/// How many rows are looked at.
const SAMPLE: usize = 50;

/// Finds the delimiter, or `None` if the table has a single column.
///
/// Tabulator, semicolon and comma are tried in this order; the first that cuts all of the first 50 rows into
/// the same number of cells, more than one, is taken. If none does, the one that does so for most rows is
/// taken, provided it is more than half of them (the odd rows are reported later, by line). If none does that
/// either, the cells are separated by runs of spaces, or there is only one in each row.
pub(super) fn find(text: &str) -> Result<Option<Delimiter>> {
    let mut best: Option<(f64, Delimiter)> = None;
    for delimiter in [Delimiter::Tab, Delimiter::Semicolon, Delimiter::Comma] {
        let share = agreement(text, delimiter)?;
        if share > 0.5 && best.is_none_or(|(most, _)| share > most) {
            best = Some((share, delimiter));
        }
    }
    if best.is_none() && agreement(text, Delimiter::Spaces)? > 0.0 {
        return Ok(Some(Delimiter::Spaces));
    }
    Ok(best.map(|(_, delimiter)| delimiter))
}

/// The share of rows with the most frequent number of cells; zero if that number is one.
fn agreement(text: &str, delimiter: Delimiter) -> Result<f64> {
    let mut counts = Vec::with_capacity(SAMPLE);
    for_each_record(text, delimiter, |_, record| {
        if !is_blank(record) {
            counts.push(record.len());
        }
        Ok(counts.len() < SAMPLE)
    })?;
    let times = |n: usize| counts.iter().filter(|&&c| c == n).count();
    let usual = counts.iter().copied().max_by_key(|&n| (times(n), n));
    Ok(match usual {
        Some(n) if n > 1 => times(n) as f64 / counts.len() as f64,
        _ => 0.0,
    })
}

/// Writes one space for each run of spaces and tabulators between cells and none at the ends of lines.
/// Quoted cells and line ends stay as they are, so line numbers stay right.
pub(super) fn collapse(text: &str) -> String {
    #[derive(Clone, Copy)]
    enum State {
        Between,
        Plain,
        Quoted,
        // After a quote inside a quoted cell: the end of the quotes, or the first of a doubled quote.
        Quote,
    }
    let mut out = String::with_capacity(text.len());
    let mut state = State::Between;
    let mut first = true;
    for c in text.chars() {
        state = match (state, c) {
            (State::Quoted, '"') => State::Quote,
            (State::Quoted, _) => State::Quoted,
            (State::Quote, '"') => State::Quoted,
            (_, ' ' | '\t') => {
                state = State::Between;
                continue;
            }
            (_, '\n' | '\r') => {
                first = true;
                out.push(c);
                state = State::Between;
                continue;
            }
            (State::Between, _) => {
                if !first {
                    out.push(' ');
                }
                first = false;
                if c == '"' {
                    State::Quoted
                } else {
                    State::Plain
                }
            }
            (State::Plain | State::Quote, _) => State::Plain,
        };
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn found(text: &str) -> Option<Delimiter> {
        find(text).unwrap()
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
        assert_eq!(
            found("\"a;x\",1\n\"b;y\",2\nc,3\n\"d\n;\",4\n"),
            Some(Delimiter::Comma)
        );
    }

    #[test]
    fn one_odd_row_does_not_hide_the_delimiter() {
        assert_eq!(found("1,2,3\n4,5\n6,7,8\n"), Some(Delimiter::Comma));
    }

    #[test]
    fn runs_are_collapsed_outside_quotes_only() {
        assert_eq!(collapse("  1 \t 2  \r\n\n 3\t4"), "1 2\r\n\n3 4");
        assert_eq!(
            collapse("\"a  b\"   \"c \"\"  d\"\n"),
            "\"a  b\" \"c \"\"  d\"\n"
        );
        assert_eq!(collapse("5\"  x \"a\"b  c"), "5\" x \"a\"b c");
        assert_eq!(collapse("\"open  \n 1"), "\"open  \n 1");
    }
}
