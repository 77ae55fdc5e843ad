//! The text of one cell: whether it is missing, which number it is, how it is shown in a message.

use crate::error::is_control;

/// Texts that stand for a missing value, in upper or lower case.
const MISSING: [&str; 8] = ["?", "NA", "N/A", "NaN", "+NaN", "-NaN", "null", "None"];

/// Maximum length, in characters, of a text from a file that is repeated in a message.
const EXCERPT: usize = 40;

/// Whether a trimmed cell says that there is no value.
pub(super) fn is_missing(cell: &str) -> bool {
    cell.is_empty() || (cell.len() <= 4 && MISSING.iter().any(|m| cell.eq_ignore_ascii_case(m)))
}

/// The decimal separator of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decimal {
    /// `1.5`
    Point,
    /// `1,5`
    Comma,
}

/// The number that a cell spells; it can be infinite but is never NaN.
pub(super) fn number(cell: &str, decimal: Decimal) -> Option<f64> {
    let value = match decimal {
        Decimal::Point => cell.parse(),
        // A point is refused: beside decimal commas it would separate thousands or be a typing mistake.
        Decimal::Comma if cell.contains('.') => return None,
        Decimal::Comma if cell.contains(',') => cell.replacen(',', ".", 1).parse(),
        Decimal::Comma => cell.parse(),
    };
    value.ok().filter(|v: &f64| !v.is_nan())
}

/// A text from a file as a message can repeat it: short, on one line.
pub fn excerpt(text: &str) -> String {
    let mut chars = text.chars().map(|c| if is_control(c) { '\u{fffd}' } else { c });
    let mut short: String = chars.by_ref().take(EXCERPT).collect();
    if chars.next().is_some() {
        short.push_str("...");
    }
    short
}

/// The first `most` of some names or levels and, if there are more, their number.
pub(crate) fn listed<S: AsRef<str>>(items: &[S], most: usize) -> String {
    let mut list: Vec<String> =
        items.iter().take(most).map(|item| excerpt(item.as_ref())).collect();
    if items.len() > most {
        list.push(format!("... ({} in total)", items.len()));
    }
    list.join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn missing_tokens_in_any_case() {
        for token in ["", "?", "NA", "na", "n/a", "NaN", "nan", "-nan", "NULL", "none"] {
            assert!(is_missing(token), "{token}");
        }
        for value in ["0", "-", "inf", "nano", "nothing", "."] {
            assert!(!is_missing(value), "{value}");
        }
    }

    #[test]
    fn numbers_with_point_and_comma() {
        use Decimal::{Comma, Point};
        assert_eq!(number(".400", Point), Some(0.4));
        assert_eq!(number("+1", Point), Some(1.0));
        assert_eq!(number("00202", Point), Some(202.0));
        assert_eq!(number("1e-3", Point), Some(0.001));
        assert_eq!(number("1e999", Point), Some(f64::INFINITY));
        assert_eq!(number("nan", Point), None);
        assert_eq!(number("1,5", Point), None);
        assert_eq!(number("1,5", Comma), Some(1.5));
        assert_eq!(number("15", Comma), Some(15.0));
        assert_eq!(number("1.234,5", Comma), None);
        assert_eq!(number("1,2,3", Comma), None);
        for junk in ["", ",", "0x10", "1_000", "12 3", "1.2.3", "e5"] {
            assert_eq!(number(junk, Point), None, "{junk}");
            assert_eq!(number(junk, Comma), None, "{junk}");
        }
    }

    #[test]
    fn messages_stay_short_and_on_one_line() {
        assert_eq!(excerpt("a\nb\u{1b}[31m\u{202e}c"), "a\u{fffd}b\u{fffd}[31m\u{fffd}c");
        assert_eq!(excerpt(&"x".repeat(1000)).len(), EXCERPT + 3);
        assert_eq!(listed(&["a", "b"], 8), "a, b");
        assert_eq!(listed(&["a", "b", "c"], 2), "a, b, ... (3 in total)");
    }
}
