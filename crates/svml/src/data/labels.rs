//! Class labels: which texts are the same class, in which order the classes stand, which class each row has.

/// Labels as class numbers.
pub(super) struct Labels {
    /// Index into `classes` for each row.
    pub y: Vec<usize>,
    /// The classes, sorted: by value if all are numbers, else by bytes.
    pub classes: Vec<String>,
    /// Whether all labels are numbers.
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

/// The name of the class of a label. If labels are numbers, equal numbers get the same name however they
/// are written.
pub(super) fn canonical(label: &str, numeric: bool) -> String {
    match number(label) {
        Some(value) if numeric => print(value),
        _ => label.to_owned(),
    }
}

/// Gives each class a number. The labels are iterated over several times, so that they need not be stored.
pub(super) fn encode<'a>(labels: impl Iterator<Item = &'a str> + Clone) -> Labels {
    if labels.clone().all(|label| number(label).is_some()) {
        let values = labels.filter_map(number);
        let mut distinct: Vec<f64> = values.clone().collect();
        distinct.sort_unstable_by(f64::total_cmp);
        distinct.dedup();
        Labels {
            y: values.map(|v| distinct.partition_point(|d| *d < v)).collect(),
            classes: distinct.into_iter().map(print).collect(),
            numeric: true,
        }
    } else {
        let distinct: std::collections::BTreeSet<&str> = labels.clone().collect();
        let classes: Vec<&str> = distinct.into_iter().collect();
        Labels {
            y: labels.map(|label| classes.partition_point(|c| *c < label)).collect(),
            classes: classes.into_iter().map(str::to_owned).collect(),
            numeric: false,
        }
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
    fn equal_numbers_are_one_class_in_numeric_order() {
        let (y, classes) = of(&["10", "2", "1e1", "2.0", "+2", "-0", "0"]);
        assert_eq!(classes, ["0", "2", "10"]);
        assert_eq!(y, [2, 1, 2, 1, 1, 0, 0]);
        assert_eq!(of(&["-1", "+1"]).1, ["-1", "1"]);
        assert_eq!(of(&["0.50", ".5", "1e-9"]).1, ["1e-9", "0.5"]);
    }

    #[test]
    fn texts_are_in_byte_order() {
        let (y, classes) = of(&["b", "a", "B", "10", "2", "2.0"]);
        assert_eq!(classes, ["10", "2", "2.0", "B", "a", "b"]);
        assert_eq!(y, [5, 4, 3, 0, 1, 2]);
    }

    #[test]
    fn long_identifiers_and_infinities_stay_apart() {
        let (_, classes) = of(&["12345678901234567890", "12345678901234567891"]);
        assert_eq!(classes.len(), 2);
        assert_eq!(of(&["inf", "-inf"]).1, ["-inf", "inf"]);
    }

    #[test]
    fn a_new_label_gets_the_name_of_its_class() {
        assert_eq!(canonical("1.0", true), "1");
        assert_eq!(canonical("1.0", false), "1.0");
        assert_eq!(canonical("other", true), "other");
    }
}
