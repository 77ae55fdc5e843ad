//! What is unusual about new rows: values that the training data do not prepare the model for.

use std::fmt;

use super::Model;
use crate::data::{Kind, Missing, NewRows};

/// What is unusual about new rows in one column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Remark {
    /// The column.
    pub column: String,
    /// In how many rows.
    pub rows: usize,
    /// What it is.
    pub what: Unusual,
}

/// What can be unusual.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Unusual {
    /// A category that the training data do not have. It counts as none of the known ones or, in a column of codes, as a
    /// missing value.
    NewCategory {
        /// One of them, shortened.
        example: String,
    },
    /// A number outside the training range by more than its width.
    FarOutside {
        /// The first of them.
        example: f64,
        /// The least value in the training data.
        low: f64,
        /// The largest value in the training data.
        high: f64,
    },
    /// A text in a column of numbers, which was filled like a missing value.
    NoNumber {
        /// One of them, shortened.
        example: String,
    },
    /// A missing value, which was filled.
    Filled,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, rows, what } = self;
        let (rows, have, are) = match rows {
            1 => ("1 row".to_owned(), "has", "is"),
            rows => (format!("{rows} rows"), "have", "are"),
        };
        match what {
            Unusual::NewCategory { example } => write!(
                f,
                "{column}: {rows} {have} a category that is not in the training data, such as '{example}'"
            ),
            Unusual::FarOutside { example, low, high } => write!(
                f,
                "{column}: {rows} {are} far outside the range of the training data, {low} to {high}, such as {example}"
            ),
            Unusual::NoNumber { example } => write!(
                f,
                "{column}: {rows} {have} a value that is not a number, such as '{example}', which was imputed"
            ),
            Unusual::Filled => {
                write!(f, "{column}: {rows} {have} a missing value, which was imputed")
            }
        }
    }
}

impl Model {
    /// What is unusual about new rows, column after column: categories that the training data do not have, numbers far
    /// outside their range, missing values that are filled. Models of former versions do not know the range.
    ///
    /// ```
    /// use svml::data::{Dataset, ReadOptions};
    /// use svml::{Model, Svml};
    ///
    /// let rows: String = (0..40).map(|i| format!("{},{},{}\n", i % 7, ["a", "b"][i % 2], i % 2)).collect();
    /// let data = Dataset::from_csv(rows.as_bytes(), &ReadOptions::default())?;
    /// let model = Model::fit(&data, Svml { cross_fit: false, ..Svml::default() })?;
    /// let new = model.schema().read_csv("3,b\n900,c\n".as_bytes(), &ReadOptions::default())?;
    /// let remarks: Vec<String> = model.remarks(&new).iter().map(ToString::to_string).collect();
    /// assert_eq!(remarks[0], "x1: 1 row is far outside the range of the training data, 0 to 6, such as 900");
    /// assert_eq!(remarks[1], "x2: 1 row has a category that is not in the training data, such as 'c'");
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn remarks(&self, rows: &NewRows) -> Vec<Remark> {
        let (x, scaler) = (&rows.x, &self.scaler);
        let fills = self.schema.missing() == Missing::Impute;
        let mut remarks = Vec::new();
        let mut feature = 0;
        for (place, column) in self.schema.columns().iter().enumerate() {
            let k = feature;
            feature += column.kind.width();
            if column.kind == Kind::Ignored || feature > x.cols() {
                continue;
            }
            let mut add = |rows: usize, what: Unusual| {
                if rows > 0 {
                    remarks.push(Remark { column: column.name.clone(), rows, what });
                }
            };
            let new = rows.unseen.iter().find(|unseen| unseen.column == place);
            if let Some(unseen) = new {
                let example = unseen.example.clone();
                add(
                    unseen.rows,
                    match column.kind {
                        Kind::Number => Unusual::NoNumber { example },
                        _ => Unusual::NewCategory { example },
                    },
                );
            }
            let range = scaler.low.get(k).zip(scaler.high.get(k));
            if let (Kind::Number, Some((&low, &high))) = (&column.kind, range)
                && scaler.scale[k] > 0.0
            {
                let width = high - low;
                let (from, to) = (low - width, high + width);
                let mut far = x.col(k).filter(|value| *value < from || *value > to);
                if let Some(example) = far.next() {
                    add(1 + far.count(), Unusual::FarOutside { example, low, high });
                }
            }
            if fills {
                let gaps = x.col(k).filter(|value| value.is_nan()).count();
                // A new category has no code, and a text no value.
                let without = match column.kind {
                    Kind::Codes { .. } | Kind::Number => new.map_or(0, |unseen| unseen.rows),
                    _ => 0,
                };
                add(gaps.saturating_sub(without), Unusual::Filled);
            }
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Svml;
    use crate::data::{Categories, Dataset, ReadOptions};

    fn remarks(missing: Missing, new: &str) -> Vec<String> {
        let rows: String = (0..40)
            .map(|i| format!("{},{},5,n{i},{}\n", i % 7, ["a", "b"][i % 2], i % 2))
            .collect();
        let options = ReadOptions {
            missing,
            categories: Categories::Codes,
            drop: vec!["name".to_owned()],
            ..ReadOptions::default()
        };
        let text = format!("size,kind,same,name,class\n{rows}");
        let data = Dataset::from_csv(text.as_bytes(), &options).unwrap();
        let svml = Svml { cross_fit: false, max_iterations: 1, ..Svml::default() };
        let model = Model::fit(&data, svml).unwrap();
        let new = format!("size,kind,same\n{new}");
        let new = model.schema().read_csv(new.as_bytes(), &ReadOptions::default()).unwrap();
        model.remarks(&new).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_column_is_remarked_on_by_itself() {
        assert_eq!(
            remarks(Missing::Impute, "3,a,5\n900,c,7\n-900,c,5\n?,a,?\n"),
            [
                "size: 2 rows are far outside the range of the training data, 0 to 6, such as 900",
                "size: 1 row has a missing value, which was imputed",
                // It has no code, and is not counted as a gap.
                "kind: 2 rows have a category that is not in the training data, such as 'c'",
                "same: 1 row has a missing value, which was imputed",
            ]
        );
    }

    /// Outside means farther than the range is wide.
    #[test]
    fn usual_rows_are_not_remarked_on() {
        assert_eq!(remarks(Missing::Impute, "12,a,5\n-6,b,5\n"), [""; 0]);
        assert_eq!(remarks(Missing::Refuse, "12,a,5\n-6,b,5\n"), [""; 0]);
        assert_eq!(remarks(Missing::Refuse, "12.5,a,5\n").len(), 1);
        assert_eq!(remarks(Missing::Refuse, "-6.5,a,5\n").len(), 1);
    }
}
