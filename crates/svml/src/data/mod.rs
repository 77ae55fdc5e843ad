//! Labelled rows as numbers. This module holds tables in memory; `read` reads them from files.
//!
//! # Tables (CSV)
//!
//! * The delimiter is a comma, a semicolon, a tab or runs of spaces. If it is not given, it is found from the
//!   first 50 rows.
//! * A cell in double quotes can hold delimiters, line ends and, doubled, quotes; a quote counts only at the
//!   start of a cell. A quote that is never closed, text after a closing quote, and a cell in quotes that makes one row of
//!   lines each of which would be a row, is an error that names the line. Cells are trimmed of white space. Blank lines are skipped. LF, CRLF and a lone CR
//!   end a line. All rows must have the same number of cells.
//! * The text must be UTF-8, with or without a byte order mark. Other bytes are an error that names the line;
//!   if they were replaced by a placeholder, two categories could become one.
//! * The first row is a header if it has text above a column of numbers, or if the table has no numbers at all
//!   and no cell of the first row occurs again, or if the options ask for a column by a name that is in it. It is taken
//!   for one, too, if its cells differ, no text of it occurs again in its column, and its class is a text, while the other
//!   classes occur twice on average; or if it holds three or more of the numbers 0, 1, 2, ..., or 1, 2, 3, ..., or years in
//!   ascending order, and its class occurs nowhere else. Two columns of the same name are an error. Without a header, or
//!   where a name is blank, columns are named `x1`, `x2`, ... by their place.
//! * A value is missing if its cell is empty, `?`, `NA`, `N/A`, `NaN`, `null` or `None`, in upper or lower case.
//! * A column holds numbers if all its cells that are not missing are numbers. Where commas do not separate cells,
//!   `1,5` is a number too, if the whole column can be read that way. If more than nine in ten are numbers in one notation
//!   and the others are not, the others are missing under [`Missing::Impute`] and an error otherwise, unless the column is
//!   one of [`ReadOptions::text`]. Any other column is text, and its different
//!   values, the levels, are sorted by bytes. Numbers beyond +-[`LIMIT`], infinities among them, are an error.
//! * Columns that look like identifiers are left out under [`Categories::Auto`], unless the options name them
//!   ([`ReadOptions::use_anyway`], [`ReadOptions::only`]): texts that are different in more than nine of ten of at least 30
//!   cells; texts that are dates, with or without a time, in more than nine of ten cells; and row numbers, which are whole
//!   numbers in all of at least 30 rows, all different, that fill at least half of the places between the least and the
//!   largest, in steps of their greatest common divisor and in any order. [`Column::left_out`] says why. Values that are
//!   missing in a column that is left out do not count.
//! * Rows without a class label are an error, or are dropped under [`Missing::Drop`]. A column that is missing in
//!   all rows is an error under [`Missing::Drop`]; imputed, it is constant and left out with a warning.
//!
//! # LIBSVM
//!
//! `label index:value ...` with indices from 1 in ascending order and `#` before a comment. Values that are left
//! out are zero, and rows are stored dense. A file is read as LIBSVM if its first ten rows have this form; so is one whose
//! labels are no numbers, or which has a `qid`, and there is an error that says so.
//!
//! # Arrays of numpy (`.npy`)
//!
//! A two-dimensional array of little-endian floats of 4 or 8 bytes, integers or booleans, in either order, as
//! `numpy.save` writes it. It is read like a table of numbers without a header: its columns are `x1`, `x2`, ..., one of
//! them holds the classes, NaN is a missing value. A file is such an array if it begins with the bytes `\x93NUMPY`.
//!
//! # New rows
//!
//! * If the training table had a header and the new one has one too, columns are matched by name, in any
//!   order. Columns that training did not have are ignored; if one that training had is not there, the error is
//!   [`Error::NoSuchColumn`](crate::error::Error::NoSuchColumn). The target column, if there is one, gives the labels.
//! * Otherwise columns are matched by position: the table has as many columns as the training table, the target
//!   at its place, or one fewer, without the target; or as many as the model uses. Any other number is [`Error::Shape`](crate::error::Error::Shape).
//! * If the options do not say whether there is a header, the first row is one if it holds all column names of
//!   the schema. Otherwise it is one if no number column has a number in it and no category column a known level.
//! * A missing value is NaN if the model imputes. Otherwise it is [`Error::Missing`](crate::error::Error::Missing),
//!   even if training dropped rows with missing values, because every new row must get a prediction.
//! * A category that training did not have is all zeros in one-hot columns. As a code it is NaN if the model
//!   imputes, otherwise [`Error::UnseenCategory`](crate::error::Error::UnseenCategory). `true` and `false` are found in
//!   upper and lower case.
//! * What the training data do not have is counted; [`Model::remarks`](crate::Model::remarks) says it.
//! * Text in a number column is NaN if the model imputes and there is a number in the column, or no other text. Otherwise it
//!   is [`Error::Parse`](crate::error::Error::Parse).
//! * Labels are returned only if every row has one, as they are written; but if all classes are numbers in their shortest
//!   form, `1.0` becomes `1`. In LIBSVM files and arrays labels are numbers, and `+1` is `1`.
//! * LIBSVM rows can be read for a model whose columns are all numbers; index 1 is the first column. Indices above
//!   the number of columns are ignored, since they were zero in training; those left out are zero. A row need not
//!   have a label. A row with neither label nor entries is a blank line, and blank lines are skipped.
//! * The columns of an array of numpy are matched by position, for a model whose columns are all numbers.
//!
//! # Frames
//!
//! A [`Frame`] is a table in memory, with columns of numbers and of texts. The rules are those for tables of a file: texts
//! are trimmed, some stand for a missing value, and a column of texts that are all numbers is one of numbers, with decimal
//! commas if the whole column can be read that way. Columns that were said to be categories stay categories.
//! Row numbers are found in frames with names only. A [`Summary`] of the frame, or of several parts of a table, decides how columns become numbers
//! ([`Schema::of_summary`], [`Schema::encode`], [`Dataset::with_schema`]).
//!
//! # Large files
//!
//! Files are read in pieces, by all threads, and are not held: memory is that of the numbers, twice that where categories
//! become several columns each. What can be read only once, such as a pipe or any reader, is held while it is read. A
//! LIBSVM file is read twice, and so is a table if a text turns up in a column that began with a hundred numbers. The
//! result and the error, the first in the file, are the same for any number of threads.
//!
//! # Limits
//!
//! An input has at most [`MAX_INPUT_BYTES`], a table at most [`MAX_COLUMNS`] encoded columns and
//! [`MAX_DENSE_BYTES`] of numbers, or twice that before rows and columns are left out. Anything larger is refused
//! with an error before memory is allocated for it.
//!
//! ```
//! use svml::data::{Dataset, ReadOptions};
//!
//! let text = "age,colour,ill\n31,red,no\n54,blue,yes\n";
//! let data = Dataset::from_csv(text.as_bytes(), &ReadOptions::default())?;
//! assert_eq!(data.classes(), ["no", "yes"]);
//! assert_eq!(data.x().row(0), [31.0, 0.0, 1.0]); // a column for blue and one for red
//!
//! let new = data.schema().read_csv("colour,age\nblue,40\n".as_bytes(), &ReadOptions::default())?;
//! assert_eq!(new.x.row(0), [40.0, 1.0, 0.0]);
//! # Ok::<(), svml::Error>(())
//! ```

pub(crate) mod cell;
mod coding;
mod dataset;
pub(crate) mod folds;
mod frame;
pub(crate) mod generate;
mod identifiers;
mod labels;
mod options;
pub(crate) mod prepare;
pub(crate) mod read;
pub(crate) mod repeats;
mod sample;
mod scale;
mod schema;

#[doc(hidden)]
pub use cell::excerpt;
pub(crate) use cell::listed;
#[doc(hidden)]
pub use coding::check_dense;
pub use dataset::Dataset;
pub use frame::{Frame, Summary};
pub use generate::{Generated, Generator};
pub use identifiers::LeftOut;
pub use options::{Categories, Delimiter, Format, Missing, ReadOptions, Target};
pub use prepare::ClassWeight;
pub use read::NewRows;
pub use repeats::EqualRows;
pub(crate) use sample::OwnedSample;
pub use sample::Sample;
#[doc(hidden)]
pub use sample::{LabelledRows, PairRows, pairs};
pub use scale::Scaler;
pub use schema::{Column, Encoded, Kind, Schema, TargetColumn};

/// Largest absolute value of a number: beyond it, sums of squares would overflow after scaling.
pub const LIMIT: f64 = 1e300;

/// Maximum number of encoded columns of a table.
pub const MAX_COLUMNS: usize = 100_000;

/// Maximum size of a table as dense numbers: 2 GiB.
pub const MAX_DENSE_BYTES: u64 = 1 << 31;

/// Maximum size of a file that is read: 2 GiB.
pub const MAX_INPUT_BYTES: u64 = 1 << 31;
