//! What a model has to know about the table it was trained on: the columns in their order, how each becomes
//! numbers, and where the class labels are. It is stored with the model, and new rows are read by it.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

use super::MAX_COLUMNS;
use super::cell::{excerpt, listed};
use super::identifiers::LeftOut;
use super::options::{Format, Missing};

/// How many columns that are left out for the same reason are named.
const LISTED: usize = 8;

/// The columns of a table and their encoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    pub(super) columns: Vec<Column>,
    pub(super) target: TargetColumn,
    pub(super) header: bool,
    pub(super) missing: Missing,
    pub(super) format: Format,
}

/// One column of the raw table, other than the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Column {
    /// Its name: from the header, or `x` and its position from 1, or its index in a LIBSVM file.
    pub name: String,
    /// How it becomes numbers.
    pub kind: Kind,
    /// Why it is left out, if it is and that is on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<LeftOut>,
}

/// How a column becomes numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// It holds numbers.
    Number,
    /// It holds text; a level becomes its place in the sorted list, from 0.
    Codes {
        /// The different texts, sorted by bytes.
        levels: Vec<String>,
    },
    /// It holds text; each level becomes a column of zeros and ones.
    OneHot {
        /// The different texts, sorted by bytes.
        levels: Vec<String>,
    },
    /// It is left out; [`Column::left_out`] says why.
    Ignored,
}

/// The column of class labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TargetColumn {
    /// Its name.
    pub name: String,
    /// Its place in the raw table, from 0.
    pub position: usize,
    /// Whether all classes are numbers, each written in the shortest way. New labels of a table may then end in zeros, as
    /// in 1.0; in LIBSVM files and arrays equal numbers are one class in any case.
    pub numeric: bool,
}

/// What an encoded column is, which decides how its missing values are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoded {
    /// A measured number.
    Number,
    /// The code of a category.
    Code,
    /// One of the zero-or-one columns of a category. If the category is missing, all of them are.
    Indicator {
        /// Index of the raw column in [`Schema::columns`].
        column: usize,
    },
}

impl Column {
    /// A column that is used.
    pub(super) fn used(name: String, kind: Kind) -> Self {
        Self { name, kind, why: None }
    }

    /// A column that is left out.
    pub(super) fn ignored(name: String, why: LeftOut) -> Self {
        Self { name, kind: Kind::Ignored, why: Some(why) }
    }

    /// Why it is left out; nothing if it is used.
    pub fn left_out(&self) -> Option<LeftOut> {
        // Models of former versions left out texts that are different in almost every row, and nothing else.
        (self.kind == Kind::Ignored).then(|| self.why.unwrap_or(LeftOut::Unique))
    }
}

impl Kind {
    /// Number of encoded columns.
    pub fn width(&self) -> usize {
        match self {
            Self::Number | Self::Codes { .. } => 1,
            Self::OneHot { levels } => levels.len(),
            Self::Ignored => 0,
        }
    }

    /// The texts of a category; empty for a column of numbers.
    pub fn levels(&self) -> &[String] {
        match self {
            Self::Number | Self::Ignored => &[],
            Self::Codes { levels } | Self::OneHot { levels } => levels,
        }
    }
}

impl Schema {
    /// The schema of a table of numbers.
    pub(super) fn of_numbers(names: Vec<String>, target: TargetColumn, format: Format) -> Self {
        let columns = names.into_iter().map(|name| Column::used(name, Kind::Number)).collect();
        Self { columns, target, header: false, missing: Missing::Refuse, format }
    }

    /// The raw columns, without the target, in the order of the table.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The raw columns that become features: all but those that are left out.
    pub fn used_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.kind != Kind::Ignored)
    }

    /// Which columns are left out because they look like identifiers, and why, in a sentence; nothing if there are none.
    pub fn identifiers(&self) -> Option<String> {
        let found: Vec<(&str, LeftOut)> = (self.columns.iter())
            .filter_map(|column| column.left_out().map(|why| (column.name.as_str(), why)))
            .filter(|(_, why)| !matches!(why, LeftOut::Asked | LeftOut::Groups))
            .collect();
        let neighbours = found.chunk_by(|(_, a), (_, b)| a == b).map(|same| {
            let names: Vec<&str> = same.iter().map(|(name, _)| *name).collect();
            let why = match (same[0].1, names.len()) {
                (LeftOut::Unique, 2..) => "their text differs in almost every row".to_owned(),
                (LeftOut::RowNumber, 2..) => "they number the rows".to_owned(),
                (LeftOut::Date, 2..) => "they hold dates".to_owned(),
                (why, _) => why.to_string(),
            };
            format!("{} ({why})", listed(&names, LISTED))
        });
        let all: Vec<String> = neighbours.collect();
        (!all.is_empty()).then(|| {
            format!("columns left out because they look like identifiers, which say nothing about new rows: {}", all.join(", "))
        })
    }

    /// The column of class labels.
    pub fn target(&self) -> &TargetColumn {
        &self.target
    }

    /// Whether the names are those of a header; new tables with a header are then matched by name.
    pub fn named(&self) -> bool {
        self.header
    }

    /// What is done with missing values.
    pub fn missing(&self) -> Missing {
        self.missing
    }

    /// The format of the training data; [`Format::Csv`] also for data from memory.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of encoded columns.
    pub fn width(&self) -> usize {
        self.columns.iter().map(|c| c.kind.width()).sum()
    }

    /// Names of the encoded columns; those of a one-hot column are `colour=blue`, `colour=red`, ...
    pub fn encoded_names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(self.width());
        for column in &self.columns {
            match &column.kind {
                Kind::Number | Kind::Codes { .. } => names.push(column.name.clone()),
                Kind::Ignored => {}
                Kind::OneHot { levels } => {
                    names.extend(levels.iter().map(|level| format!("{}={level}", column.name)));
                }
            }
        }
        names
    }

    /// A row of encoded features as the texts of the columns that are used: a number, a category, `missing`, or `other` for
    /// a category that the training data did not have. Nothing for features that the row lacks.
    pub fn cells(&self, encoded: &[f64]) -> Vec<String> {
        let mut features = encoded.iter().copied();
        let mut cells = Vec::new();
        for column in self.used_columns() {
            let own: Vec<f64> = features.by_ref().take(column.kind.width()).collect();
            if own.len() < column.kind.width() {
                break;
            }
            let level = |place: Option<usize>| {
                place
                    .and_then(|place| column.kind.levels().get(place))
                    .map_or("other", String::as_str)
            };
            cells.push(match &column.kind {
                _ if own.iter().any(|v| v.is_nan()) => "missing".to_owned(),
                Kind::OneHot { .. } => level(own.iter().position(|v| *v == 1.0)).to_owned(),
                Kind::Codes { .. } => level(Some(own[0] as usize)).to_owned(),
                _ => own[0].to_string(),
            });
        }
        cells
    }

    /// What each encoded column is.
    pub fn encoded_kinds(&self) -> Vec<Encoded> {
        let mut kinds = Vec::with_capacity(self.width());
        for (column, raw) in self.columns.iter().enumerate() {
            let kind = match raw.kind {
                Kind::Number => Encoded::Number,
                Kind::Codes { .. } => Encoded::Code,
                Kind::OneHot { .. } => Encoded::Indicator { column },
                Kind::Ignored => continue,
            };
            kinds.extend(std::iter::repeat_n(kind, raw.kind.width()));
        }
        kinds
    }

    /// Checks a schema that comes from a file: it must be one that reading a table can give.
    pub fn validate(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::ModelFile(format!("its columns: {message}")));
        let width = self.columns.iter().fold(0_usize, |sum, c| sum.saturating_add(c.kind.width()));
        if self.columns.is_empty() {
            return refuse("there are none; at least 1 is needed".to_owned());
        }
        if self.columns.len() > MAX_COLUMNS || width > MAX_COLUMNS {
            return refuse(format!("there are {width}, more than {MAX_COLUMNS}"));
        }
        if self.target.position > self.columns.len() {
            return refuse(format!(
                "the target is at place {}, beyond the {} columns before it",
                self.target.position,
                self.columns.len()
            ));
        }
        let mut seen = HashSet::from([self.target.name.as_str()]);
        for column in &self.columns {
            let name = excerpt(&column.name);
            if column.name.is_empty() {
                return refuse("one has no name".to_owned());
            }
            if !seen.insert(&column.name) {
                return refuse(format!("the name '{name}' occurs twice"));
            }
            if column.why.is_some() && column.kind != Kind::Ignored {
                return refuse(format!("'{name}' is used, but there is a reason to leave it out"));
            }
            let levels = column.kind.levels();
            if levels.is_empty() && !matches!(column.kind, Kind::Number | Kind::Ignored) {
                return refuse(format!("category '{name}' has no levels"));
            }
            if levels.iter().any(String::is_empty) {
                return refuse(format!("category '{name}' has an empty level"));
            }
            // Levels are looked up by bisection, and the place of a level in the list is its code.
            if levels.windows(2).any(|pair| pair[0] >= pair[1]) {
                return refuse(format!("the levels of '{name}' are not sorted or not distinct"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&t| t.to_owned()).collect()
    }

    fn column(name: &str, kind: Kind) -> Column {
        Column::used(name.to_owned(), kind)
    }

    fn example() -> Schema {
        let levels = strings(&["blue", "red"]);
        Schema {
            columns: vec![
                column("age", Kind::Number),
                column("colour", Kind::OneHot { levels: levels.clone() }),
                column("tint", Kind::Codes { levels }),
            ],
            target: TargetColumn { name: "class".to_owned(), position: 3, numeric: false },
            header: true,
            missing: Missing::Impute,
            format: Format::Csv,
        }
    }

    #[test]
    fn encoded_columns() {
        let schema = example();
        assert_eq!(schema.width(), 4);
        assert_eq!(schema.encoded_names(), ["age", "colour=blue", "colour=red", "tint"]);
        assert_eq!(
            schema.encoded_kinds(),
            [
                Encoded::Number,
                Encoded::Indicator { column: 1 },
                Encoded::Indicator { column: 1 },
                Encoded::Code
            ]
        );
    }

    #[test]
    fn json_round_trip() {
        let schema = example();
        let json = serde_json::to_string(&schema).unwrap();
        assert!(json.contains(r#""kind":{"onehot":{"levels":["blue","red"]}}"#));
        let back: Schema = serde_json::from_str(&json).unwrap();
        assert_eq!(back, schema);
        back.validate().unwrap();
    }

    /// Files of former versions have no reason, and stay as they are when they are written again.
    #[test]
    fn the_reason_for_leaving_out_is_kept() {
        let mut schema = example();
        schema.columns.push(Column::ignored("when".to_owned(), LeftOut::Date));
        let json = serde_json::to_string(&schema).unwrap();
        assert!(json.contains(r#"{"name":"when","kind":"ignored","why":"date"}"#), "{json}");
        assert_eq!(serde_json::from_str::<Schema>(&json).unwrap(), schema);
        let former = json.replace(r#","why":"date""#, "");
        let read: Schema = serde_json::from_str(&former).unwrap();
        read.validate().unwrap();
        assert_eq!(read.columns[3].left_out(), Some(LeftOut::Unique));
        assert_eq!(serde_json::to_string(&read).unwrap(), former);
        assert_eq!(read.columns[0].left_out(), None);
        assert_eq!(read.used_columns().count(), 3);
    }

    #[test]
    fn hostile_schemas_are_refused() {
        let refused = |change: fn(&mut Schema), reason: &str| {
            let mut schema = example();
            change(&mut schema);
            let message = schema.validate().unwrap_err().to_string();
            assert!(message.contains(reason), "{message} / {reason}");
        };
        refused(|s| s.columns.clear(), "at least 1");
        refused(|s| s.target.position = 4, "place 4");
        refused(|s| s.target.name = "age".into(), "'age' occurs twice");
        refused(|s| s.columns[2].name = "age".into(), "'age' occurs twice");
        refused(|s| s.columns[0].name.clear(), "no name");
        refused(|s| s.columns[0].why = Some(LeftOut::Date), "'age' is used, but");
        refused(|s| s.columns[2].kind = Kind::Codes { levels: vec![] }, "no levels");
        refused(|s| s.columns[1].kind = Kind::OneHot { levels: vec![] }, "no levels");
        refused(
            |s| s.columns[1].kind = Kind::OneHot { levels: strings(&["", "a"]) },
            "empty level",
        );
        refused(
            |s| s.columns[1].kind = Kind::OneHot { levels: strings(&["a", "a"]) },
            "not sorted or not distinct",
        );
        refused(
            |s| s.columns[1].kind = Kind::OneHot { levels: strings(&["b", "a"]) },
            "not sorted or not distinct",
        );
        refused(
            |s| {
                s.columns[1].kind =
                    Kind::OneHot { levels: (0..MAX_COLUMNS).map(|i| format!("{i:06}")).collect() }
            },
            "more than 100000",
        );
    }

    #[test]
    fn cells_of_gaps_and_of_rows_that_end_early() {
        let schema = example();
        assert_eq!(schema.cells(&[1.5, 0.0, 1.0, 0.0]), ["1.5", "red", "blue"]);
        assert_eq!(schema.cells(&[f64::NAN, 0.0, 0.0, 7.0]), ["missing", "other", "other"]);
        assert_eq!(schema.cells(&[1.5, f64::NAN]), ["1.5"]);
        assert_eq!(schema.cells(&[]), [""; 0]);
    }

    #[test]
    fn schemas_of_too_many_columns_are_refused() {
        let mut schema = example();
        schema.columns = vec![column("n", Kind::Number); MAX_COLUMNS + 1];
        let error = schema.validate().unwrap_err().to_string();
        assert!(error.contains("100001, more than 100000"), "{error}");
    }
}
