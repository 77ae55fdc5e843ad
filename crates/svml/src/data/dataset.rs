//! The training data: rows, classes, weights and schema, and the selection of rows and classes.

use crate::error::{Error, Remedy, Result};
use crate::linalg::Matrix;
use crate::watch::Key;
use std::collections::HashSet;

use super::folds::content_order;
use super::options::{Format, Missing};
use super::repeats::{EqualRows, Repeats};
use super::schema::{Schema, TargetColumn};
use super::{LIMIT, MAX_COLUMNS, cell, labels};

/// Weights that are not zero lie in this range, so that the ridge 1/(C w) stays far from overflow and
/// from the rounding of the kernel matrix.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// Rows as numbers, with their classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    pub(super) x: Matrix,
    pub(super) y: Vec<usize>,
    pub(super) classes: Vec<String>,
    pub(super) schema: Schema,
    /// Weight of each row.
    pub(super) weights: Vec<f64>,
    /// Which rows belong together.
    pub(super) groups: Option<Groups>,
}

/// Which rows belong together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Groups {
    /// The group of each row: its place among the sorted names.
    pub of_row: Vec<usize>,
    /// The column of the table that has their names, if there is one.
    pub column: Option<String>,
}

impl Groups {
    /// Groups by their names, so that their numbers do not depend on the order of the rows.
    pub fn named(names: &[&str], column: Option<String>) -> Self {
        let mut distinct = names.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let of_row = names.iter().map(|name| distinct.partition_point(|d| d < name)).collect();
        Self { of_row, column }
    }
}

impl Dataset {
    /// Takes rows and labels from memory. Columns are named x1, x2, ... and the target `class`.
    ///
    /// NaN stands for a missing value and is accepted here; [`Dataset::with_missing`] says what is done with
    /// it. Until that is called, [`Dataset::check_missing`] refuses it.
    pub fn new<L: ToString>(x: Matrix, labels: &[L]) -> Result<Self> {
        if x.rows() == 0 {
            return Err(Error::NoRows(String::new()));
        }
        if labels.len() != x.rows() {
            return Err(Error::Shape {
                what: "labels, one for each row".to_owned(),
                found: labels.len(),
                expected: x.rows(),
            });
        }
        if x.cols() == 0 {
            return Err(Error::Shape {
                what: "columns of the matrix, at least one".to_owned(),
                found: 0,
                expected: 1,
            });
        }
        if x.cols() > MAX_COLUMNS {
            return Err(Error::Data {
                what: format!(
                    "the matrix has {} columns, more than the limit of {MAX_COLUMNS}",
                    x.cols()
                ),
                remedy: Some(Remedy::UseLessData),
            });
        }
        let names: Vec<String> = (1..=x.cols()).map(|j| format!("x{j}")).collect();
        for (i, row) in x.iter_rows().enumerate() {
            for (value, name) in row.iter().zip(&names) {
                in_range(*value, i + 1, name)?;
            }
        }
        let texts: Vec<String> =
            labels.iter().map(|label| label.to_string().trim().to_owned()).collect();
        if let Some(i) = texts.iter().position(|t| t.is_empty() || t.eq_ignore_ascii_case("nan")) {
            return Err(Error::Data {
                what: format!(
                    "row {}: '{}' is not a class label; leave out rows without a class",
                    i + 1,
                    texts[i]
                ),
                remedy: None,
            });
        }
        let labels = labels::encode(texts.iter().map(String::as_str));
        let rows = labels.y.len();
        let target =
            TargetColumn { name: "class".to_owned(), position: x.cols(), numeric: labels.numeric };
        Ok(Self {
            x,
            y: labels.y,
            classes: labels.classes,
            schema: Schema::of_numbers(names, target, Format::Csv),
            weights: vec![1.0; rows],
            groups: None,
        })
    }

    /// Rows that were drawn from a table of this schema, with their classes and weights.
    pub(crate) fn drawn(
        x: Matrix,
        y: Vec<usize>,
        weights: Vec<f64>,
        classes: Vec<String>,
        schema: Schema,
    ) -> Self {
        Self { x, y, classes, schema, weights, groups: None }
    }

    /// Sets what is done with missing values (NaN), and does it. [`Missing::Refuse`] gives an error if there
    /// are any, [`Missing::Drop`] leaves out rows with missing values and classes that have no other rows, and
    /// [`Missing::Impute`] keeps missing values for the model to fill.
    pub fn with_missing(mut self, missing: Missing) -> Result<Self> {
        self.schema.missing = missing;
        match missing {
            Missing::Refuse => self.check_missing()?,
            Missing::Drop => {
                let complete: Vec<usize> = (0..self.rows())
                    .filter(|&i| !self.x.row(i).iter().any(|v| v.is_nan()))
                    .collect();
                if complete.is_empty() {
                    return Err(Error::NoRows(
                        " without missing values; impute missing values, or remove the columns that have the most"
                            .to_owned(),
                    ));
                }
                if complete.len() < self.rows() {
                    self = self.select(&complete).without_empty_classes();
                }
            }
            // A column without any value becomes constant, and constant columns are left out.
            Missing::Impute => {}
        }
        Ok(self)
    }

    /// Refuses missing values (NaN) unless the model is to fill them.
    pub fn check_missing(&self) -> Result<()> {
        if self.schema.missing == Missing::Impute {
            return Ok(());
        }
        for (i, row) in self.x.iter_rows().enumerate() {
            if let Some(j) = row.iter().position(|v| v.is_nan()) {
                return Err(Error::Missing { row: i + 1, column: self.encoded_name(j) });
            }
        }
        Ok(())
    }

    fn encoded_name(&self, column: usize) -> String {
        let names = self.schema.encoded_names();
        names.get(column).map(|name| cell::excerpt(name)).unwrap_or_default()
    }

    /// Names the raw columns, as a header would. If one of them takes the name of the target, the target's
    /// name gets underscores appended until it is free.
    pub fn with_names(mut self, names: Vec<String>) -> Result<Self> {
        if names.len() != self.schema.columns.len() {
            return Err(Error::Shape {
                what: "names, one for each column".to_owned(),
                found: names.len(),
                expected: self.schema.columns.len(),
            });
        }
        let mut seen = HashSet::with_capacity(names.len());
        for name in &names {
            // Cells of a header are trimmed, so that a name with white space at its ends would never match.
            if name.trim() != name || name.is_empty() || !seen.insert(name.as_str()) {
                return Err(Error::parameter(
                    "column name",
                    format!("'{}'", cell::excerpt(name)),
                    "non-empty, without leading or trailing white space, and unique",
                ));
            }
        }
        while seen.contains(self.schema.target.name.as_str()) {
            self.schema.target.name.push('_');
        }
        for (column, name) in self.schema.columns.iter_mut().zip(names) {
            column.name = name;
        }
        self.schema.header = true;
        Ok(self)
    }

    /// Says that the rows were encoded by a schema, as by [`Schema::encode`]. Whether the labels are numbers is kept.
    pub fn with_schema(mut self, schema: Schema) -> Result<Self> {
        schema.validate()?;
        if schema.width() != self.columns() {
            return Err(Error::Shape {
                what: "encoded columns, as many as the schema has".to_owned(),
                found: self.columns(),
                expected: schema.width(),
            });
        }
        let numeric = self.schema.target.numeric;
        self.schema = schema;
        self.schema.target.numeric = numeric;
        self.check_missing()?;
        Ok(self)
    }

    /// Renames the classes, which keep their order: for callers that have numbered them already.
    pub fn with_class_names(mut self, names: Vec<String>) -> Result<Self> {
        if names.len() != self.classes.len() {
            return Err(Error::Shape {
                what: "names, one for each class".to_owned(),
                found: names.len(),
                expected: self.classes.len(),
            });
        }
        let mut seen = HashSet::with_capacity(names.len());
        if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
            let name = format!("'{}'", cell::excerpt(name));
            return Err(Error::parameter("class name", name, "given only once"));
        }
        // Labels of new rows are compared as numbers if the new names are numbers in ascending order.
        let encoded = labels::encode(names.iter().map(String::as_str));
        self.schema.target.numeric = encoded.numeric && encoded.classes == names;
        self.classes = names;
        Ok(self)
    }

    /// Gives each row a weight: a row of weight 2 counts as two such rows, one of weight 0 as none.
    pub fn with_weights(mut self, weights: Vec<f64>) -> Result<Self> {
        if weights.len() != self.rows() {
            return Err(Error::Shape {
                what: "sample weights, one for each row".to_owned(),
                found: weights.len(),
                expected: self.rows(),
            });
        }
        if let Some(row) = weights.iter().position(|w| *w != 0.0 && !WEIGHTS.contains(w)) {
            return Err(Error::parameter(
                "weight",
                format!("{} (row {})", weights[row], row + 1),
                format!("0 or between {:e} and {:e}", WEIGHTS.start(), WEIGHTS.end()),
            ));
        }
        self.weights = weights;
        Ok(self)
    }

    /// Says which rows belong together, as those of one patient do: a name for each row. All rows of a group are in the same
    /// fold wherever rows validate others, so that what is measured is how well the rows of a new group are classified.
    ///
    /// ```
    /// use svml::{Dataset, Matrix};
    ///
    /// let x = Matrix::from_rows(&[[1.0], [1.1], [5.0], [5.1]])?;
    /// let visits = Dataset::new(x, &["well", "well", "ill", "ill"])?.with_groups(&["Ann", "Ann", "Bob", "Bob"])?;
    /// assert_eq!(visits.groups(), Some(&[0, 0, 1, 1][..]));
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn with_groups<G: ToString>(mut self, groups: &[G]) -> Result<Self> {
        if groups.len() != self.rows() {
            return Err(Error::Shape {
                what: "groups, one for each row".to_owned(),
                found: groups.len(),
                expected: self.rows(),
            });
        }
        let names: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.groups = Some(Groups::named(&names, None));
        Ok(self)
    }

    /// The group of each row, as the place of its name among the sorted names; none if every row is on its own.
    pub fn groups(&self) -> Option<&[usize]> {
        self.groups.as_ref().map(|groups| groups.of_row.as_slice())
    }

    /// Which rows must stay together when the table is divided: those of a group or, without groups, copies of one
    /// observation, if the table shows that equal rows are that ([`EqualRows`](super::EqualRows)). None if each is on its own.
    pub fn together(&self) -> Option<Vec<usize>> {
        if let Some(groups) = self.groups() {
            return Some(groups.to_vec());
        }
        let equal = |a: usize, b: usize| {
            let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
            self.y[a] == self.y[b] && self.x.row(a).iter().zip(self.x.row(b)).all(same)
        };
        if !Repeats::of(&self.x, &self.y, &self.schema, EqualRows::Auto).are_copies {
            return None;
        }
        let order = content_order(&self.x, &self.y, 0);
        let mut unit = vec![0; order.len()];
        for (number, rows) in order.chunk_by(|a, b| equal(*a, *b)).enumerate() {
            rows.iter().for_each(|&row| unit[row] = number);
        }
        Some(unit).filter(|unit| unit.iter().any(|&number| number > 0))
    }

    /// The column of the table that has the groups, which is no feature.
    pub fn group_column(&self) -> Option<&str> {
        self.groups.as_ref().and_then(|groups| groups.column.as_deref())
    }

    /// The weight of each row; 1 unless given.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The encoded rows.
    pub fn x(&self) -> &Matrix {
        &self.x
    }

    /// The class of each row, as an index into [`Dataset::classes`].
    pub fn y(&self) -> &[usize] {
        &self.y
    }

    /// The classes, sorted: by value if all are numbers, else by bytes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// What the columns are and how they were encoded.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.x.rows()
    }

    /// Number of encoded columns.
    pub fn columns(&self) -> usize {
        self.x.cols()
    }

    /// Number of rows of each class.
    pub fn class_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes.len()];
        for &class in &self.y {
            counts[class] += 1;
        }
        counts
    }

    /// All that a model of these data depends on, in a key.
    pub(crate) fn key(&self) -> Key {
        let Self { x, y, classes, schema, weights, groups } = self;
        let key = Key::new("data").places(&[x.rows(), x.cols()]).numbers(x.as_slice()).places(y);
        let key = key.numbers(weights).with(classes).with(schema);
        groups.as_ref().map_or(key, |groups| key.places(&groups.of_row).with(&groups.column))
    }

    /// The rows named by `rows`, in that order; classes and schema stay as they are.
    ///
    /// # Panics
    ///
    /// If an index is not below [`Dataset::rows`].
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            x: self.x.select_rows(rows),
            y: rows.iter().map(|&i| self.y[i]).collect(),
            classes: self.classes.clone(),
            schema: self.schema.clone(),
            weights: rows.iter().map(|&i| self.weights[i]).collect(),
            groups: self.groups.as_ref().map(|groups| Groups {
                of_row: rows.iter().map(|&i| groups.of_row[i]).collect(),
                column: groups.column.clone(),
            }),
        }
    }

    /// Only the rows of some classes.
    pub fn keep_classes(&self, classes: &[&str]) -> Result<Self> {
        let mut keep = vec![false; self.classes.len()];
        for &class in classes {
            let name = labels::of_table(class.trim(), self.schema.target.numeric);
            match self.classes.iter().position(|known| *known == name) {
                Some(class) => keep[class] = true,
                None => {
                    return Err(Error::parameter(
                        "class",
                        format!("'{}'", cell::excerpt(class)),
                        format!(
                            "a class of the target {}: {}",
                            cell::excerpt(&self.schema.target.name),
                            cell::listed(&self.classes, 20)
                        ),
                    ));
                }
            }
        }
        let rows: Vec<usize> = (0..self.rows()).filter(|&i| keep[self.y[i]]).collect();
        if rows.is_empty() {
            return Err(Error::NoRows(" of the classes to keep".to_owned()));
        }
        Ok(self.select(&rows).without_empty_classes())
    }

    /// Renames each class to `name(class)`; classes that get the same name become one class. Labels that are
    /// later read with new rows are not renamed.
    pub fn group_classes(&self, name: impl Fn(&str) -> String) -> Self {
        let names: Vec<String> = self.classes.iter().map(|class| name(class)).collect();
        let labels = labels::encode(self.y.iter().map(|&class| names[class].as_str()));
        let mut schema = self.schema.clone();
        schema.target.numeric = labels.numeric;
        let (x, weights, groups) = (self.x.clone(), self.weights.clone(), self.groups.clone());
        Self { x, y: labels.y, classes: labels.classes, schema, weights, groups }
    }

    fn without_empty_classes(mut self) -> Self {
        let counts = self.class_counts();
        let mut place = vec![0; counts.len()];
        let mut kept = Vec::new();
        for (class, name) in std::mem::take(&mut self.classes).into_iter().enumerate() {
            place[class] = kept.len();
            if counts[class] > 0 {
                kept.push(name);
            }
        }
        self.classes = kept;
        for class in &mut self.y {
            *class = place[*class];
        }
        self
    }
}

/// Refuses numbers whose squares could overflow when they are summed. NaN, a missing value, is accepted.
pub(super) fn in_range(value: f64, row: usize, column: &str) -> Result<f64> {
    if value.abs() > LIMIT {
        return Err(Error::OutOfRange { row, column: cell::excerpt(column), value, limit: LIMIT });
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::data::ReadOptions;

    fn matrix(rows: &[&[f64]]) -> Matrix {
        Matrix::from_rows(rows).unwrap()
    }

    fn with_gaps() -> Dataset {
        let x = matrix(&[&[1.0, 2.0], &[f64::NAN, 3.0], &[4.0, 5.0], &[6.0, f64::NAN]]);
        Dataset::new(x, &["b", "a", "c", "b"]).unwrap()
    }

    #[test]
    fn from_memory() {
        let data = Dataset::new(matrix(&[&[1.0], &[2.0], &[3.0]]), &[1.0, -1.0, 1.0]).unwrap();
        assert_eq!(data.classes(), ["-1", "1"]);
        assert_eq!(data.y(), [1, 0, 1]);
        assert_eq!(data.class_counts(), [1, 2]);
        assert_eq!(data.schema().encoded_names(), ["x1"]);
        data.schema().validate().unwrap();
        data.check_missing().unwrap();
    }

    #[test]
    fn classes_keep_their_order_under_new_names() {
        let data = Dataset::new(matrix(&[&[1.0], &[2.0], &[3.0]]), &[1, 0, 1]).unwrap();
        let named = |names: [&str; 2]| {
            data.clone().with_class_names(names.iter().map(|&n| n.to_owned()).collect())
        };
        for (names, numeric) in [(["10", "9"], false), (["9", "10"], true), (["b", ""], false)] {
            let renamed = named(names).unwrap();
            assert_eq!(renamed.classes(), names);
            assert_eq!(renamed.y(), [1, 0, 1]);
            assert_eq!(renamed.schema().target().numeric, numeric);
        }
        assert!(named(["a", "a"]).unwrap_err().to_string().contains("class name = 'a'"));
        assert!(data.clone().with_class_names(vec!["a".to_owned()]).is_err());
    }

    #[test]
    fn arrays_that_do_not_fit() {
        let new = |x: Matrix, labels: &[&str]| Dataset::new(x, labels).unwrap_err();
        assert!(matches!(new(Matrix::zeros(0, 2), &[]), Error::NoRows(_)));
        assert!(matches!(new(Matrix::zeros(2, 1), &["a"]), Error::Shape { .. }));
        assert!(matches!(new(Matrix::zeros(1, 0), &["a"]), Error::Shape { .. }));
        for value in [f64::INFINITY, -1e301] {
            assert!(matches!(
                new(matrix(&[&[0.0, 1.0], &[0.0, value]]), &["a", "b"]),
                Error::OutOfRange { row: 2, column, .. } if column == "x2"
            ));
        }
        let error = Dataset::new(Matrix::zeros(2, 1), &[0.0, f64::NAN]).unwrap_err();
        assert!(error.to_string().contains("row 2: 'NaN' is not a class label"), "{error}");
    }

    #[test]
    fn missing_values_in_arrays() {
        let error = with_gaps().check_missing().unwrap_err();
        assert!(matches!(error, Error::Missing { row: 2, column } if column == "x1"));
        assert!(with_gaps().with_missing(Missing::Refuse).is_err());

        let dropped = with_gaps().with_missing(Missing::Drop).unwrap();
        assert_eq!(dropped.x(), &matrix(&[&[1.0, 2.0], &[4.0, 5.0]]));
        assert_eq!(dropped.classes(), ["b", "c"]);
        assert_eq!(dropped.y(), [0, 1]);
        assert_eq!(dropped.schema().missing(), Missing::Drop);

        let kept = with_gaps().with_missing(Missing::Impute).unwrap();
        assert!(kept.x()[(1, 0)].is_nan());
        kept.check_missing().unwrap();

        let empty = || Dataset::new(matrix(&[&[1.0, f64::NAN]]), &["a"]).unwrap();
        assert!(empty().with_missing(Missing::Impute).is_ok());
        assert!(matches!(empty().with_missing(Missing::Drop).unwrap_err(), Error::NoRows(_)));
    }

    #[test]
    fn names_for_arrays() {
        let strings = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let data = with_gaps().with_names(strings(&["class", "b"])).unwrap();
        assert_eq!(data.schema().encoded_names(), ["class", "b"]);
        assert_eq!(data.schema().target().name, "class_");
        assert!(data.schema().named());
        data.schema().validate().unwrap();
        for names in [&["a"][..], &["a", "a"], &["a", ""], &["a", " b"]] {
            assert!(with_gaps().with_names(strings(names)).is_err());
        }
    }

    #[test]
    fn selection_keeps_classes_and_schema() {
        let data = with_gaps().select(&[2, 0, 2]);
        assert_eq!(data.classes(), ["a", "b", "c"]);
        assert_eq!(data.y(), [2, 1, 2]);
        assert_eq!(data.x().row(1), [1.0, 2.0]);
    }

    #[test]
    fn classes_kept_and_grouped() {
        let data = Dataset::new(Matrix::zeros(4, 1), &[1, 2, 3, 2]).unwrap();
        let kept = data.keep_classes(&["3.0", "2"]).unwrap();
        assert_eq!(kept.classes(), ["2", "3"]);
        assert_eq!(kept.y(), [0, 1, 0]);
        let message = data.keep_classes(&["4"]).unwrap_err().to_string();
        assert!(message.contains("a class of the target class: 1, 2, 3"), "{message}");
        assert!(matches!(data.keep_classes(&[]).unwrap_err(), Error::NoRows(_)));

        let grouped =
            data.group_classes(|class| if class == "1" { "one" } else { "rest" }.to_owned());
        assert_eq!(grouped.classes(), ["one", "rest"]);
        assert_eq!(grouped.y(), [0, 1, 1, 1]);
        assert!(!grouped.schema().target().numeric);
    }

    #[test]
    fn the_format_is_found_from_the_content_or_given() {
        let options = ReadOptions::default();
        let sparse = Dataset::from_reader("1 1:2\n-1 2:3\n".as_bytes(), &options).unwrap();
        assert_eq!(sparse.schema().format(), Format::Libsvm);
        let table = Dataset::from_reader("1,2\n3,4\n".as_bytes(), &options).unwrap();
        assert_eq!(table.schema().format(), Format::Csv);
        let given = ReadOptions { format: Some(Format::Libsvm), ..options };
        assert!(Dataset::from_reader("1,2\n3,4\n".as_bytes(), &given).is_err());
    }

    #[test]
    fn arrays_that_are_no_table_are_refused() {
        let wide = Dataset::new(Matrix::zeros(1, MAX_COLUMNS + 1), &["a"]).unwrap_err().to_string();
        assert!(wide.contains("100001 columns, more than the limit of 100000"), "{wide}");
        for label in ["", " ", "NaN", "nan"] {
            let error = Dataset::new(Matrix::zeros(2, 1), &["a", label]).unwrap_err().to_string();
            assert!(error.contains("row 2") && error.contains("not a class label"), "{error}");
        }
    }

    #[test]
    fn rows_without_gaps_stay_when_others_are_dropped() {
        let data =
            Dataset::new(Matrix::from_fn(4, 2, |i, k| (i + k) as f64), &[0, 1, 0, 1]).unwrap();
        let kept = data.clone().with_missing(Missing::Drop).unwrap();
        assert_eq!((kept.x(), kept.y()), (data.x(), data.y()));
    }
}
