//! Labelled rows as numbers: reading them from files and taking them from memory.
//!
//! # Tables (CSV)
//!
//! * The delimiter is a comma, a semicolon, a tabulator or runs of spaces. If it is not given it is found from
//!   the first 50 rows.
//! * A cell in double quotes can hold delimiters, line ends and, doubled, quotes; a quote counts only at the
//!   start of a cell. Cells are trimmed of white space. Blank lines are skipped. LF, CRLF and a lone CR
//!   end a line. All rows must have the same number of cells.
//! * The text must be UTF-8, with or without a byte order mark. Other bytes are an error that names the line:
//!   read loosely, two categories could become one.
//! * The first row is a header if it has text above a column of numbers, or if the table has no numbers at all
//!   and no cell of the first row occurs again. Two columns of one name are an error. Without a header, or
//!   where a name is blank, columns are named `x1`, `x2`, ... by their place.
//! * Missing are: an empty cell, `?`, `NA`, `N/A`, `NaN`, `null` and `None`, in any case.
//! * A column is one of numbers if all its cells are, missing ones aside. Where commas do not separate cells,
//!   `1,5` is a number too, if that fits the whole column. Any other column is text, and its levels are sorted
//!   by bytes. Numbers beyond +-[`LIMIT`], infinities among them, are an error.
//! * Rows without a class label are an error, or are dropped under [`Missing::Drop`]. A column that is missing
//!   in all rows is an error.
//!
//! # LIBSVM
//!
//! `label index:value ...` with indices from 1 in ascending order and `#` before a comment. Rows become
//! dense. A file is taken for LIBSVM if its first ten rows have this form.
//!
//! # New rows
//!
//! * If the training table had a header and the new one has one too, columns are matched by name, in any
//!   order. Columns that training did not have are ignored; one that is not there is
//!   [`Error::NoSuchColumn`](crate::error::Error::NoSuchColumn). The target column, if there is one, gives the labels.
//! * Otherwise columns are matched by position: the table has as many columns as the training table, the target
//!   at its place, or one fewer, without the target. Any other number is [`Error::Shape`](crate::error::Error::Shape).
//! * Whether there is a header is found, if not said, by the names of the schema, or else by whether the first
//!   row fits the columns: it is a header if no number column has a number in it and no category column a
//!   known level.
//! * A missing value is NaN if the model imputes; otherwise it is [`Error::Missing`](crate::error::Error::Missing), also for a model whose
//!   training rows were dropped, since a prediction is owed for every row.
//! * A category that training did not have is all zeros in one-hot columns. As a code it is NaN if the model
//!   imputes, otherwise [`Error::UnseenCategory`](crate::error::Error::UnseenCategory).
//! * Text in a number column is [`Error::Parse`](crate::error::Error::Parse).
//! * Labels are given if there is one for every row, written as the classes of the model are.
//! * LIBSVM rows fit a model of number columns only, entry 1 for the first column. Indices above the number of
//!   columns are ignored, since they were zero in training; those left out are zero. A row need not have a
//!   label, but one with neither label nor entries is a blank line and cannot be told from none.
//!
//! # Limits
//!
//! An input has at most [`MAX_INPUT_BYTES`], a table at most [`MAX_COLUMNS`] encoded columns and
//! [`MAX_DENSE_BYTES`] of numbers. Beyond, there is an error and no attempt to allocate.
//!
//! ```
//! use svml::data::{Dataset, ReadOptions};
//!
//! let text = "age,colour,ill\n31,red,no\n54,blue,yes\n";
//! let data = Dataset::from_csv(text.as_bytes(), &ReadOptions::default())?;
//! assert_eq!(data.classes(), ["no", "yes"]);
//! assert_eq!(data.x().row(0), [31.0, 1.0]); // blue is 0, red is 1
//!
//! let new = data.schema().read_csv("colour,age\nblue,40\n".as_bytes(), &ReadOptions::default())?;
//! assert_eq!(new.x.row(0), [40.0, 0.0]);
//! # Ok::<(), svml::error::Error>(())
//! ```

mod cell;
mod dataset;
mod delimiter;
mod encode;
pub mod generate;
mod labels;
mod libsvm;
mod new_rows;
mod options;
mod scale;
mod schema;
mod source;
pub mod split;
mod suspect;
mod table;
mod training;
mod uci;

pub use dataset::Dataset;
pub use generate::{Generated, Generator};
pub use new_rows::NewRows;
pub use options::{Categories, Delimiter, Format, Missing, ReadOptions, Target};
pub use scale::Scaler;
pub use schema::{Column, Encoded, Kind, Schema, TargetColumn};
pub use source::text_of_reader as read_text;
pub use split::{Split, fold_of, fold_of_again, halve_twice, hash_order, random_split};
pub use suspect::{Suspect, suspects};
pub use uci::{UCI_SERVER, UCI_SETS, UciSet};

/// Largest absolute value of a number: beyond it, sums of squares would overflow after scaling.
pub const LIMIT: f64 = 1e300;

/// Most encoded columns of a table.
pub const MAX_COLUMNS: usize = 100_000;

/// Most bytes of the dense numbers of a table: 2 GiB.
pub const MAX_DENSE_BYTES: u64 = 1 << 31;

/// Most bytes of a file that is read: 2 GiB.
pub const MAX_INPUT_BYTES: u64 = 1 << 31;
