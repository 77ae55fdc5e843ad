//! What the paper prints: its Tables 1 and 2, where its numbers are odd, and why ours may differ.

/// The paper's Table 2, of which Table 1 is the 5-fold part: error in percent, a star before what is
/// bold there, `-` where it has N/A. Columns as in [`svml::internals::UCI_SETS`].
const TABLE: &str = "
euclid-1      27.16  13.16  14.36  21.05  23.84  18.43  27.12  *2.61  12.70
euclid-3      27.40  13.10  14.13  20.58  23.39  18.27  26.77  *2.55  12.68
euclid-5      27.37  13.12  14.11  20.54  23.46  18.17  26.91  *2.56 *12.62
itml-1        26.57  13.78  14.15  23.01  23.19  19.14  28.65   4.82  22.63
itml-3       *26.13  13.58 *13.88  22.98  23.17  17.98  27.68   4.77  21.50
itml-5        26.50  13.68  14.71  22.86  23.14  18.20  27.67   4.78  21.50
nca-1         26.44  13.74  14.14  22.89 *22.84  17.76  27.47   4.73      -
nca-3         26.47  13.45  14.00  22.67 *22.72  18.12  26.60   4.73      -
nca-5         26.39  13.48  14.10  22.59 *22.74  18.17 *26.53   4.74      -
lmnn-1       *26.38  13.11  13.97  21.02  22.97  17.84  26.80   2.85  13.04
lmnn-3        26.44  13.30 *13.93  20.73 *22.86 *17.57  26.66   2.81  12.79
lmnn-5        26.70  13.48 *13.89  20.81 *22.89  17.78  26.68  *2.66  13.04
svml-sphere   27.42  13.43 *13.78 *20.26  23.24  17.81  28.23   3.61  12.70
svml-diag     28.15  13.33  15.11  20.46  24.14 *17.35  29.51   2.92 *12.54
svml         *25.99 *12.83 *13.92  20.89  23.25 *17.57 *26.34   3.41 *12.54
";

/// A number of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// Error, as a share.
    pub error: f64,
    /// Whether it is bold: best up to the paper's 5 % confidence interval.
    pub bold: bool,
}

impl Printed {
    /// As the paper writes it.
    pub fn text(self) -> String {
        let number = format!("{:.2}", 100.0 * self.error);
        if self.bold { format!("**{number}**") } else { number }
    }
}

/// The paper's number for a method on the data set of an index, if it has one.
pub fn printed(method: &str, set: usize) -> Option<Printed> {
    let mut cells = TABLE.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(method)).then_some(words)
    })?;
    let cell = cells.nth(set)?;
    let percent: f64 = cell.trim_start_matches('*').parse().ok()?;
    Some(Printed { error: percent / 100.0, bold: cell.starts_with('*') })
}

/// What the paper says of a data set: examples, features, training and test rows.
pub const FACTS: [(&str, [usize; 4]); 9] = [
    ("haber", [306, 3, 245, 61]),
    ("credit", [653, 15, 522, 131]),
    ("acredit", [690, 14, 552, 138]),
    ("trans", [748, 4, 599, 150]),
    ("diabts", [768, 8, 614, 154]),
    ("mammo", [830, 5, 664, 166]),
    ("cmc", [962, 9, 770, 192]),
    ("page", [5743, 10, 4594, 1149]),
    ("gamma", [19020, 11, 15216, 3804]),
];

/// What is odd about the paper's numbers on a data set, or has to be known about the file.
pub fn oddity(set: &str) -> &'static str {
    match set {
        "haber" => "17 rows repeat another",
        "credit" => {
            "690 rows at UCI; the 37 with a missing value are left out. Categories are coded as integers"
        }
        "acredit" => "the same applications as credit, with values filled in and coded by UCI",
        "trans" => {
            "599 + 150 = 749 in the paper; 215 rows repeat another; one feature is 250 times another"
        }
        "diabts" => "zeros that stand for missing values are kept as they are",
        "mammo" => "961 rows at UCI; the 131 with a missing value are left out",
        "cmc" => "1,473 rows in three classes at UCI; 962 are those of classes 1 and 2",
        "page" => {
            "5,473 rows at UCI: the paper's 5,743 has two digits exchanged, and its parts add up to that. Five classes: text against the rest"
        }
        "gamma" => {
            "10 features at UCI, not 11. No split is defined there: one random split is used"
        }
        _ => "",
    }
}

/// Remarks on the paper's protocol.
pub const PROTOCOL: [&str; 5] = [
    "The paper speaks of five candidates each for sigma^2 and C and of 25 or 125 SVMs, but lists five widths and four costs: 20 settings, as here.",
    "\"1-fold\" is not defined there. Here one half of the training rows is trained on and the other validates.",
    "The paper gives no spread of its numbers. Both means are taken to have the standard error that is measured here, so that a difference has sqrt(2) times it.",
    "lambda is 100 or 10 in the paper, in units that are not given; here it is 0.1, relative to the size of L0. The steepness a, the first C, and whether the SVM is trained again on all rows are not given either: here 5, 0.5 and yes.",
    "Pairs, bounds and slack of ITML, and when NCA and LMNN stop, are not given; each has the defaults of this library.",
];

/// Why a cell may differ from the paper, as far as it is known.
pub fn reason(set: &str, method: &str) -> Option<&'static str> {
    let family = method.split_once('-').map_or(method, |(family, _)| family);
    Some(match (set, family) {
        // The learned metrics have other reasons: where they deviate, the Euclidean SVM does not.
        ("page", "euclid") => {
            "the paper does not say which of the five classes it put together; its rows are not those at UCI either"
        }
        ("trans", "euclid") => {
            "not the program: scikit-learn's grid has no lower error on the same splits (see the paired differences), and no single one of the 20 settings, \
             tried with its SVM, reaches the paper's mean. So splits or values were others; 599 + 150 rows are one more than UCI has"
        }
        ("diabts", "euclid") if method == "euclid-1" => {
            "the paper does not say how its single fold is cut: where a fifth of the rows validates instead of a half, the error of scikit-learn's SVM is 0.7 ± 0.3 points higher (80 splits)"
        }
        ("gamma", "euclid") => "the paper had a split of its own, which UCI does not have",
        (_, "itml") => {
            "the paper does not give ITML's pairs, bounds and slack, on which its result depends"
        }
        (_, "nca") => "NCA has many minima; the paper starts at I/d and does not say when it stops",
        (_, "lmnn") => {
            "the paper does not say how many neighbours its LMNN has and when it stops; this one has 3 and stops at a certified optimum"
        }
        (_, "svml") => {
            "the paper gives neither the steepness a, nor the first C, nor lambda in known units, nor whether the SVM is trained again on all rows"
        }
        (_, "euclid") if method == "euclid-1" => {
            "the paper does not say how its single fold is cut"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::plan::METHODS;
    use svml::internals::UCI_SETS;

    #[test]
    fn every_cell_of_the_table_is_read() {
        for (k, method) in METHODS.iter().enumerate() {
            for set in 0..UCI_SETS.len() {
                let expected = k < 15 && !(method.name.starts_with("nca") && set == 8);
                assert_eq!(printed(method.name, set).is_some(), expected, "{} {set}", method.name);
            }
        }
        assert_eq!(printed("svml", 7), Some(Printed { error: 3.41 / 100.0, bold: false }));
        assert_eq!(printed("euclid-5", 8).map(Printed::text).as_deref(), Some("**12.62**"));
        // The number of bold cells in the paper's table.
        let bold = METHODS.iter().flat_map(|m| (0..9).filter_map(|set| printed(m.name, set)));
        assert_eq!(bold.filter(|printed| printed.bold).count(), 27);
    }

    #[test]
    fn facts_are_in_the_order_of_the_catalogue() {
        for (set, (name, facts)) in UCI_SETS.iter().zip(FACTS) {
            assert_eq!(set.name, name);
            assert!(!oddity(name).is_empty());
            if !["page", "gamma"].contains(&name) {
                assert_eq!([set.rows, set.features], facts[..2]);
            }
        }
    }
}
