//! Class labels: which texts are the same class, in which order the classes stand, which class each row has.

use std::collections::{BTreeSet, HashMap, HashSet};

/// Labels as class numbers.
pub(super) struct Labels {
    /// Index into `classes` for each row.
    pub y: Vec<usize>,
    /// The classes, sorted: by value if all are numbers, else by bytes.
    pub classes: Vec<String>,
    /// Whether all classes are numbers, each written in the shortest way.
    pub numeric: bool,
}

/// Integers up to this size, 2^53, have exact values in `f64`; larger ones (identifiers, for example) are
/// compared as text.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The number of a numeric label. Adding zero turns -0 into 0.
fn number(label: &str) -> Option<f64> {
    let value: f64 = label.parse().ok()?;
    (value.abs() <= EXACT).then_some(value + 0.0)
}

fn print(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { format!("{value:?}") }
}

/// A label where labels are numbers, as in LIBSVM files: equal numbers get the same name however they are written.
pub(super) fn by_value(label: &str) -> String {
    number(label).map_or_else(|| label.to_owned(), print)
}

/// A label of a table, by the names of the classes: if all of these are numbers, the zeros with which a fraction may end do
/// not count, because programs that write tables write 1 as 1.0 as soon as a value of the column is missing.
pub(super) fn of_table(label: &str, numeric: bool) -> String {
    let short = match label.contains('.') && !label.contains(['e', 'E']) {
        true => label.trim_end_matches('0').trim_end_matches('.'),
        false => label,
    };
    let name = by_value(label);
    if numeric && name == short { name } else { label.to_owned() }
}

/// Gives each class a number. Labels that are written differently are different classes: 007 is not 7. The labels are
/// iterated over several times, so that they need not be stored.
pub(super) fn encode<'a>(labels: impl Iterator<Item = &'a str> + Clone) -> Labels {
    encode_by(labels, str::to_owned)
}

/// [`encode`] for labels that are numbers: equal ones are one class.
pub(super) fn encode_numbers<'a>(labels: impl Iterator<Item = &'a str> + Clone) -> Labels {
    encode_by(labels, by_value)
}

fn encode_by<'a>(
    labels: impl Iterator<Item = &'a str> + Clone,
    name: impl Fn(&str) -> String,
) -> Labels {
    let written: HashSet<&str> = labels.clone().collect();
    let names: BTreeSet<String> = written.iter().map(|label| name(label)).collect();
    let values: Option<Vec<f64>> = names.iter().map(|name| number(name)).collect();
    let numbers = values.is_some();
    let mut classes: Vec<(f64, String)> =
        values.unwrap_or_else(|| vec![0.0; names.len()]).into_iter().zip(names).collect();
    // Names of the same value stay in the order of their bytes.
    classes.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let classes: Vec<String> = classes.into_iter().map(|(_, name)| name).collect();
    let of_name: HashMap<&String, usize> = classes.iter().zip(0..).collect();
    let place: HashMap<&str, usize> = (written.into_iter())
        .map(|label| (label, of_name.get(&name(label)).copied().unwrap_or_default()))
        .collect();
    Labels {
        y: labels.map(|label| place.get(label).copied().unwrap_or_default()).collect(),
        numeric: numbers && classes.iter().all(|class| by_value(class) == *class),
        classes,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn of(labels: &[&str]) -> (Vec<usize>, Vec<String>) {
        let labels = encode(labels.iter().copied());
        (labels.y, labels.classes)
    }

    #[test]
    fn classes_are_texts_in_the_order_of_their_values() {
        let (y, classes) = of(&["10", "2", "007", "7", "2.0", "10"]);
        assert_eq!(classes, ["2", "2.0", "007", "7", "10"]);
        assert_eq!(y, [4, 0, 2, 3, 1, 4]);
        assert_eq!(of(&["9007199254740993", "9007199254740992"]).1.len(), 2);
        for (labels, numeric) in [
            (&["1", "-2.5", "10"][..], true),
            (&["1.0", "2"], false),
            (&["007", "8"], false),
            (&["1", "a"], false),
        ] {
            assert_eq!(encode(labels.iter().copied()).numeric, numeric, "{labels:?}");
        }
    }

    #[test]
    fn equal_numbers_are_one_class_where_labels_are_numbers() {
        let labels = encode_numbers(["10", "2", "1e1", "2.0", "+2", "-0", "0"].into_iter());
        assert_eq!(
            (labels.classes, labels.numeric),
            (["0", "2", "10"].map(String::from).into(), true)
        );
        assert_eq!(labels.y, [2, 1, 2, 1, 1, 0, 0]);
        assert_eq!(encode_numbers(["0.50", ".5", "1e-9"].into_iter()).classes, ["1e-9", "0.5"]);
    }

    #[test]
    fn texts_are_in_byte_order() {
        let (y, classes) = of(&["b", "a", "B", "10", "2", "2.0"]);
        assert_eq!(classes, ["10", "2", "2.0", "B", "a", "b"]);
        assert_eq!(y, [5, 4, 3, 0, 1, 2]);
    }

    #[test]
    fn long_identifiers_and_infinities_stay_apart() {
        for encode in
            [|l: &[&str]| encode(l.iter().copied()), |l: &[&str]| encode_numbers(l.iter().copied())]
        {
            assert_eq!(encode(&["12345678901234567890", "12345678901234567891"]).classes.len(), 2);
            assert_eq!(encode(&["inf", "-inf"]).classes, ["-inf", "inf"]);
        }
    }

    #[test]
    fn a_new_label_gets_the_name_of_its_class() {
        for (label, name) in
            [("1.0", "1"), ("2.50", "2.5"), ("007", "007"), ("+1", "+1"), ("other", "other")]
        {
            assert_eq!(of_table(label, true), name);
            assert_eq!(of_table(label, false), label);
        }
        assert_eq!(
            (by_value("+1"), by_value("1.0"), by_value("x")),
            ("1".into(), "1".into(), "x".into())
        );
    }
}
