//! What a caller can say about a data file: its format, delimiter, header and target, and what is done with
//! missing values and with text columns. Each choice is written as, and can be read from, one word.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How a data file is read. The default finds everything from the content, takes the last column as the
/// target, refuses missing values and gives text columns of few levels a column for each level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadOptions {
    /// Format of the file; found from its content if not given.
    pub format: Option<Format>,
    /// What separates the cells of a row; found from the content if not given. Not used for LIBSVM files.
    pub delimiter: Option<Delimiter>,
    /// Whether the first row holds names; found from the content if not given. Not used for LIBSVM files.
    pub header: Option<bool>,
    /// The column of class labels.
    pub target: Target,
    /// What is done with missing values.
    pub missing: Missing,
    /// How text columns become numbers.
    pub categories: Categories,
    /// The column, by its name or its number from 1, that says which rows belong together; see
    /// [`Dataset::with_groups`](super::Dataset::with_groups). It is not used as a feature. Only tables of cells can have
    /// one.
    pub groups: Option<String>,
    /// Columns to leave out, each by its name or its number from 1. New rows may have them or not.
    pub drop: Vec<String>,
    /// If there are any, the only columns to learn from, each by its name or its number from 1. They are used even if they
    /// look like identifiers.
    pub only: Vec<String>,
    /// Columns, each by its name or its number from 1, to use even if they look like identifiers: row numbers, dates, or
    /// texts that are different in almost every row. [`Categories::Codes`] and [`Categories::OneHot`] use all columns.
    pub use_anyway: Vec<String>,
    /// Columns, each by its name or its number from 1, that hold text even if all or nearly all cells are numbers. They are
    /// treated like any other text column. Only tables of cells can have such columns.
    pub text: Vec<String>,
    /// Of new rows: columns, each by its name or its number from 1, or `all`, whose cells are wanted as they are written;
    /// see [`NewRows::kept`](super::NewRows::kept). Only tables of cells have such columns.
    pub keep: Vec<String>,
}

impl ReadOptions {
    /// Refuses groups where the format has no column for them.
    pub(super) fn refuse_groups(&self) -> Result<()> {
        match &self.groups {
            Some(column) => Err(Error::parameter(
                "groups",
                super::cell::excerpt(column),
                "a column of a CSV table, but this file is not one",
            )),
            None => Ok(()),
        }
    }
}

/// The format of a data file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// A table of cells: one line is one row.
    #[default]
    Csv,
    /// Sparse rows: `label index:value index:value ...`.
    Libsvm,
    /// A two-dimensional array of numpy, as `numpy.save` writes it.
    Npy,
}

/// What separates the cells of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Delimiter {
    /// `,`
    #[default]
    Comma,
    /// `;`
    Semicolon,
    /// One tab.
    Tab,
    /// One or more spaces or tabs; those at the ends of a line do not count.
    Spaces,
}

/// Which column holds the class labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Target {
    /// The last column.
    #[default]
    Last,
    /// The column with this name or, if there is no such name, with this number, counted from 1.
    Column(String),
}

/// What is done with missing values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Missing {
    /// A missing value is an error.
    #[default]
    Refuse,
    /// Rows with a missing value are left out.
    Drop,
    /// Missing values stay, as NaN; the model fills them.
    Impute,
}

/// How a text column becomes numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Categories {
    /// One-hot for columns of at most 20 levels, codes for others. Columns that look like identifiers are left out: texts
    /// that are different in almost every row, dates, and numbers that number the rows.
    #[default]
    Auto,
    /// One column of codes 0, 1, ... in the sorted order of the levels.
    Codes,
    /// One column of zeros and ones for each level.
    OneHot,
}

/// Display and FromStr for an enum whose values are single words; the first word is the one printed.
macro_rules! words {
    ($kind:ident, $parameter:literal, $($variant:ident = $word:literal $(| $alias:literal)*),+) => {
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl FromStr for $kind {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                $(
                    if [$word $(, $alias)*].iter().any(|w| text.eq_ignore_ascii_case(w)) {
                        return Ok(Self::$variant);
                    }
                )+
                let bound = format!("one of {}", [$($word),+].join(", "));
                Err(Error::parameter($parameter, super::cell::excerpt(text), bound))
            }
        }
    };
}

words!(Format, "format", Csv = "csv", Libsvm = "libsvm", Npy = "npy");
words!(
    Delimiter,
    "delimiter",
    Comma = "comma" | ",",
    Semicolon = "semicolon" | ";",
    Tab = "tab" | "\t" | "\\t",
    Spaces = "spaces" | " "
);
words!(Missing, "missing", Refuse = "refuse", Drop = "drop", Impute = "impute");
words!(Categories, "categories", Auto = "auto", Codes = "codes", OneHot = "onehot" | "one-hot");

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Last => "last",
            Self::Column(column) => column,
        })
    }
}

impl FromStr for Target {
    type Err = Error;

    /// `last`, or the name or the number of a column. A column that is itself named `last` but is not the
    /// last one can be given by its number.
    fn from_str(text: &str) -> Result<Self> {
        match text.trim() {
            "" => Err(Error::parameter(
                "target",
                "''",
                "'last', or the name or number (from 1) of a column",
            )),
            "last" => Ok(Self::Last),
            column => Ok(Self::Column(column.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn round_trip<T>(values: &[T])
    where
        T: FromStr<Err = Error> + fmt::Display + fmt::Debug + PartialEq + Serialize,
        T: serde::de::DeserializeOwned,
    {
        for value in values {
            assert_eq!(&value.to_string().parse::<T>().unwrap(), value);
            let json = serde_json::to_string(value).unwrap();
            assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), value);
        }
    }

    #[test]
    fn words_and_json_round_trip() {
        use Delimiter::{Comma, Semicolon, Spaces, Tab};
        round_trip(&[Format::Csv, Format::Libsvm]);
        round_trip(&[Comma, Semicolon, Tab, Spaces]);
        round_trip(&[Missing::Refuse, Missing::Drop, Missing::Impute]);
        round_trip(&[Categories::Codes, Categories::OneHot]);
        round_trip(&[Target::Last, Target::Column("age".into())]);
        assert_eq!(serde_json::to_string(&Categories::OneHot).unwrap(), "\"onehot\"");
    }

    #[test]
    fn delimiters_can_be_given_as_themselves() {
        for (text, delimiter) in [
            (",", Delimiter::Comma),
            (";", Delimiter::Semicolon),
            ("\t", Delimiter::Tab),
            ("\\t", Delimiter::Tab),
            (" ", Delimiter::Spaces),
            ("TAB", Delimiter::Tab),
        ] {
            assert_eq!(text.parse::<Delimiter>().unwrap(), delimiter);
        }
    }

    #[test]
    fn an_unknown_word_lists_the_allowed_ones() {
        let message = "forget".parse::<Missing>().unwrap_err().to_string();
        assert_eq!(
            message,
            "missing = forget is not allowed: it must be one of refuse, drop, impute"
        );
        assert!(" ".parse::<Target>().is_err());
    }

    #[test]
    fn options_left_out_of_json_are_the_defaults() {
        let options: ReadOptions = serde_json::from_str(r#"{"missing":"drop"}"#).unwrap();
        assert_eq!(options, ReadOptions { missing: Missing::Drop, ..ReadOptions::default() });
    }
}
