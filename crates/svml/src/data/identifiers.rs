//! Columns that tell rows apart and say nothing about new ones: row numbers, dates, names. Learning from them is learning
//! by heart, so that they are left out unless they are asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A column of text is one of names or identifiers if more than this share of its cells are different from each other,
/// and one of dates if more than this share are dates.
const ALMOST_ALL: f64 = 0.9;
/// Fewer rows do not tell whether a column is different in almost every row, or numbers the rows.
const FEWEST_TO_TELL: usize = 30;
/// Row numbers fill at least one in so many of the places between the least and the largest. Some are missing where rows
/// were left out or put aside; measurements that are all different leave more gaps, or there would be equal ones.
const SPARSEST: u64 = 2;
/// Whole numbers up to this one are all different as doubles.
const LARGEST: f64 = 9_007_199_254_740_992.0;
/// Years that a date may be of.
pub(super) const YEARS: std::ops::RangeInclusive<i64> = 1700..=2199;
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Why a column is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftOut {
    /// Its text is different in almost every row, as that of a name or an identifier is.
    Unique,
    /// It numbers the rows: whole numbers that are all different and leave few gaps, in any order.
    RowNumber,
    /// It holds dates, with or without a time.
    Date,
    /// It says which rows belong together.
    Groups,
    /// The caller wanted it so.
    Asked,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unique => "its text differs in almost every row",
            Self::RowNumber => "it numbers the rows",
            Self::Date => "it holds dates",
            Self::Groups => "it holds the groups",
            Self::Asked => "as requested",
        })
    }
}

/// Whether a column of text holds names, identifiers or dates: `distinct` of its `filled` cells are different from each
/// other, and `dates` are dates.
pub(super) fn of_texts(distinct: usize, filled: usize, dates: usize) -> Option<LeftOut> {
    let almost_all = |count: usize| count as f64 > ALMOST_ALL * filled as f64;
    if filled > 0 && almost_all(dates) {
        return Some(LeftOut::Date);
    }
    (filled >= FEWEST_TO_TELL && almost_all(distinct)).then_some(LeftOut::Unique)
}

/// The whole number that a value is.
pub(super) fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() <= LARGEST).then_some(value as i64)
}

/// Whether the cells of a column are row numbers; a cell that is no whole number is nothing.
pub(super) fn are_row_numbers(mut cells: impl Iterator<Item = Option<i64>>) -> bool {
    // Most columns of whole numbers have equal ones among the first.
    let first: Option<Vec<i64>> = cells.by_ref().take(FEWEST_TO_TELL).collect();
    let Some(mut values) = first else { return false };
    values.sort_unstable();
    if values.windows(2).any(|pair| pair[0] == pair[1]) {
        return false;
    }
    for cell in cells {
        match cell {
            Some(value) => values.push(value),
            None => return false,
        }
    }
    number_rows(&values)
}

/// Whether these are row numbers, of a column that has one in each row: all different, and with few gaps in steps of their
/// greatest common divisor. The order does not matter, because tables are shuffled.
pub(super) fn number_rows(values: &[i64]) -> bool {
    let (Some(&least), Some(&largest)) = (values.iter().min(), values.iter().max()) else {
        return false;
    };
    let above = |value: i64| value.abs_diff(least);
    let step = values.iter().fold(0, |step, &value| divisor(step, above(value)));
    if values.len() < FEWEST_TO_TELL || step == 0 {
        return false;
    }
    let places = above(largest) / step + 1;
    let rows = values.len() as u64;
    if !(rows..=SPARSEST * rows).contains(&places) {
        return false;
    }
    let mut taken = vec![false; places as usize];
    values.iter().all(|&value| {
        let place = (above(value) / step) as usize;
        !std::mem::replace(&mut taken[place], true)
    })
}

/// The greatest common divisor.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Whether a text is a date, such as 2026-11-15, 15.11.2026, 11/15/2026 or 15 Nov 2026, with or without a time.
pub(super) fn is_date(text: &str) -> bool {
    let Some(colon) = text.find(':') else { return is_day(text) };
    let Some(before) = text[..colon].rfind([' ', 'T', 't']) else { return false };
    is_day(text[..before].trim_end_matches([' ', ','])) && is_time(&text[before + 1..])
}

fn is_day(text: &str) -> bool {
    if text.contains(|c: char| c.is_ascii_alphabetic()) {
        return has_month(text);
    }
    let Some(separator) = text.find(['-', '/', '.']).and_then(|at| text[at..].chars().next())
    else {
        return false;
    };
    let mut parts = text.split(separator);
    let (Some(a), Some(b), Some(c), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let small = |text: &str| number(text, 2).filter(|number| *number <= 31);
    let day_and_month = |a: &str, b: &str| {
        (small(a).zip(small(b))).is_some_and(|(a, b)| a.min(b) >= 1 && a.min(b) <= 12)
    };
    // A version, as 1.2.13, has no fixed number of digits.
    let short = c.len() == 2 && (separator == '/' || (a.len() == 2 && b.len() == 2));
    match (a.len(), c.len()) {
        (4, _) => {
            is_year(a) && small(b).is_some_and(|m| (1..=12).contains(&m)) && small(c) >= Some(1)
        }
        (_, 4) => is_year(c) && day_and_month(a, b),
        _ => short && number(c, 2).is_some() && day_and_month(a, b),
    }
}

/// Whether it is a day with the name of its month: 15 Nov 2026, Nov 15, 2026 or 15-Nov-26.
fn has_month(text: &str) -> bool {
    let parts: Vec<&str> =
        text.split([' ', ',', '-', '.', '/']).filter(|p| !p.is_empty()).collect();
    let is_month = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.len() >= 3 && MONTHS.iter().any(|month| month.starts_with(&text))
    };
    let is_day = |text: &str| number(text, 2).is_some_and(|day| (1..=31).contains(&day));
    let in_year = |text: &str| is_year(text) || (text.len() == 2 && number(text, 2).is_some());
    match parts[..] {
        [a, b, year] => in_year(year) && ((is_day(a) && is_month(b)) || (is_month(a) && is_day(b))),
        _ => false,
    }
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && number(text, 4).is_some_and(|year| YEARS.contains(&year.into()))
}

/// A number of at most so many digits and nothing else.
fn number(text: &str, digits: usize) -> Option<u32> {
    let plain =
        !text.is_empty() && text.len() <= digits && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// Whether a text is a time of day, such as 10:30, 10:30:15.25, 10:30 PM, 10:30:00Z or 10:30:00+01:00.
fn is_time(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && !":.,".contains(c)).unwrap_or(text.len());
    let zone = text[end..].trim();
    let mut parts = text[..end].split(':');
    let below = |text: &str, limit: u32| number(text, 2).is_some_and(|number| number < limit);
    let hour = parts.next().is_some_and(|hour| below(hour, 25));
    let minute = parts.next().is_some_and(|minute| below(minute, 60));
    let second = parts.next().is_none_or(|second| {
        let (whole, fraction) = second.split_once(['.', ',']).unwrap_or((second, "0"));
        below(whole, 61) && fraction.bytes().all(|b| b.is_ascii_digit())
    });
    let named = ["", "z", "am", "pm", "a.m.", "p.m.", "utc", "gmt"];
    let offset = |text: &str| {
        let digits = text.strip_prefix(['+', '-']);
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit() || b == b':'))
    };
    let zone = named.iter().any(|name| zone.eq_ignore_ascii_case(name)) || offset(zone);
    hour && minute && second && zone && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_with_and_without_a_time() {
        for date in [
            "2026-11-15",
            "2026/1/5",
            "15.11.2026",
            "11/15/2026",
            "15/11/2026",
            "11/15/26",
            "01.02.13",
            "15 Nov 2026",
            "15-nov-26",
            "Nov 15, 2026",
            "November 15, 2026",
            "2026-11-15 10:30",
            "2026-11-15T10:30:00",
            "2026-11-15T10:30:00.125Z",
            "2026-11-15 10:30:00+01:00",
            "2026-11-15 10:30:00 UTC",
            "11/15/2026 10:30 PM",
            "11/15/2026, 9:05:07 am",
        ] {
            assert!(is_date(date), "{date}");
        }
        for other in [
            "",
            "2026",
            "2026-11",
            "2026-13-15",
            "2026-11-32",
            "2026-00-10",
            "45.45.2026",
            "1.2.3",
            "1.2.13",
            "10.0.0.1",
            "555-12-4567",
            "120/80",
            "3/4",
            "10:30",
            "2026-11-15 25:00",
            "2026-11-15 10:61",
            "2026-11-15 10:30:75",
            "2026-11-15 10:30:15.2.5",
            "2026-11-15 10:30:15:20",
            "2026-11-15 10:30+",
            "0099-11-15",
            "0/5/2026",
            "/15/26",
            "11/15/+1",
            "2026-11-15 10:30 or so",
            "15 Foo 2026",
            "May",
            "A-12-2026",
            "1-2-0099",
            "ä.1.2026",
            "1.ä.2026",
            "note: 10:30",
        ] {
            assert!(!is_date(other), "{other}");
        }
    }

    #[test]
    fn row_numbers_in_any_order() {
        let numbers = |count: i64, of: fn(i64) -> i64| (0..count).map(of).collect::<Vec<_>>();
        assert!(number_rows(&numbers(30, |i| i + 1)));
        assert!(number_rows(&numbers(600, |i| 10 * i - 50)));
        assert!(number_rows(&numbers(101, |i| i * 37 % 101)));
        // Three quarters of the rows, as a split leaves them.
        let kept: Vec<i64> = (0..800).filter(|i| i % 4 != 1).collect();
        assert!(number_rows(&kept));
        assert!(number_rows(&numbers(40, |i| i64::MAX / 1024 + i)));
        let cells = |of: fn(i64) -> Option<i64>| are_row_numbers((0..50).map(of));
        assert!(cells(|i| Some(50 - i)));
        assert!(!cells(|i| (i != 40).then_some(i)) && !cells(|i| (i != 4).then_some(i)));
        assert!(!cells(|i| Some(i / 2)) && !cells(|i| Some(i.min(48))));
    }

    #[test]
    fn measurements_are_no_row_numbers() {
        let numbers = |count: i64, of: fn(i64) -> i64| (0..count).map(of).collect::<Vec<_>>();
        assert!(!number_rows(&[]));
        assert!(!number_rows(&[7; 50]));
        // Too few rows to tell.
        assert!(!number_rows(&numbers(29, |i| i)));
        // Sorted, with equal ones or with gaps.
        assert!(!number_rows(&numbers(200, |i| i - i % 2)));
        assert!(!number_rows(&numbers(200, |i| i * i)));
        assert!(!number_rows(&numbers(200, |i| 5 * i + i % 2)));
        // One that occurs twice in place of another.
        let mut twice = numbers(100, |i| i);
        twice[50] = 51;
        assert!(!number_rows(&twice));
        assert!(!number_rows(&[i64::MIN, i64::MAX]));
        assert_eq!((whole(2.0), whole(2.5), whole(f64::NAN)), (Some(2), None, None));
        assert_eq!((whole(f64::INFINITY), whole(1e300), whole(-0.0)), (None, None, Some(0)));
    }

    #[test]
    fn texts_by_what_is_in_them() {
        assert_eq!(of_texts(40, 40, 0), Some(LeftOut::Unique));
        assert_eq!(of_texts(29, 29, 0), None);
        assert_eq!(of_texts(36, 40, 0), None);
        // However few there are, and even if they occur again.
        assert_eq!(of_texts(2, 10, 10), Some(LeftOut::Date));
        assert_eq!(of_texts(40, 40, 38), Some(LeftOut::Date));
        assert_eq!(of_texts(40, 40, 36), Some(LeftOut::Unique));
        assert_eq!(of_texts(0, 0, 0), None);
    }
}
