//! The one error type of the crate. Each message names the value, the bound and a way out.

use std::path::PathBuf;

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong, by cause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The text of a data file does not follow its format.
    #[error("line {line}: {message}")]
    Parse {
        /// Line in the file, from 1.
        line: u64,
        /// What was found, what was expected, what to do.
        message: String,
    },

    /// A value is missing where none may be.
    #[error(
        "row {row}, column {column}: the value is missing; drop such rows or impute them (missing = drop or impute)"
    )]
    Missing {
        /// Line of the file, or row of the matrix, from 1.
        row: usize,
        /// Name of the column.
        column: String,
    },

    /// A number is infinite, or too large to be squared and summed safely.
    #[error(
        "row {row}, column {column}: {value} is outside the range of this program, which is +-{limit:e}; rescale or drop the column"
    )]
    OutOfRange {
        /// Row, from 1.
        row: usize,
        /// Name of the column.
        column: String,
        /// The offending value.
        value: f64,
        /// The largest absolute value that is accepted.
        limit: f64,
    },

    /// A category that the training data did not have, in a column coded by integers.
    #[error(
        "row {row}, column {column}: category '{value}' did not occur in the training data (known: {known}); correct it, or train with one-hot columns or imputation, which accept new categories"
    )]
    UnseenCategory {
        /// Row, from 1.
        row: usize,
        /// Name of the column.
        column: String,
        /// The category found.
        value: String,
        /// The categories of the training data.
        known: String,
    },

    /// A column that the model or the caller asks for is not in the data.
    #[error("there is no column '{column}' in the data; its columns are: {available}")]
    NoSuchColumn {
        /// Name or number asked for.
        column: String,
        /// What there is.
        available: String,
    },

    /// Two sizes that have to agree do not.
    #[error("{what}: {found} found where {expected} are needed")]
    Shape {
        /// What was counted.
        what: String,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
    },

    /// No rows at all; the text may say where.
    #[error("the data holds no rows{0}")]
    NoRows(String),

    /// All rows belong to one class.
    #[error(
        "every row is of class '{class}'; a classifier needs at least two classes: check the target column"
    )]
    OneClass {
        /// The only class.
        class: String,
    },

    /// More classes than make sense.
    #[error(
        "the target column '{column}' holds {found} classes, more than {limit}: is it the right column? If it is, group the labels"
    )]
    TooManyClasses {
        /// Name of the target column.
        column: String,
        /// Number of distinct labels.
        found: usize,
        /// The most that are accepted.
        limit: usize,
    },

    /// A class has fewer rows than the splits need.
    #[error(
        "class '{class}' has {rows} row(s); {purpose} needs at least {needed} of each class: add rows or remove the class"
    )]
    TooFewRows {
        /// The class.
        class: String,
        /// Its rows.
        rows: usize,
        /// How many it needs.
        needed: usize,
        /// What needs them.
        purpose: &'static str,
    },

    /// A parameter outside its range.
    #[error("{name} = {value} is not allowed: it must be {bound}")]
    Parameter {
        /// Name of the parameter.
        name: &'static str,
        /// The value given.
        value: String,
        /// What would be allowed.
        bound: String,
    },

    /// A model file that is damaged, foreign or from a later version.
    #[error("not a usable model file: {0}")]
    ModelFile(String),

    /// A metric alone was asked to classify.
    #[error(
        "the model holds a metric without a machine, which maps rows but cannot classify them; train a classifier"
    )]
    NoMachine,

    /// More memory would be needed than the stated limit.
    #[error("{what} would need {bytes} bytes, more than the limit of {limit}; {way_out}")]
    TooLarge {
        /// What would be allocated.
        what: String,
        /// Its size.
        bytes: u128,
        /// The most that is allowed.
        limit: u128,
        /// What to do instead.
        way_out: &'static str,
    },

    /// The matrix K + I/C could not be factored although it should be positive definite.
    #[error(
        "the kernel matrix with ridge 1/C = {ridge:e} could not be factored (pivot {pivot}); C is too large for this data: bound it lower"
    )]
    NotPositiveDefinite {
        /// Index of the failing pivot.
        pivot: usize,
        /// Smallest ridge on the diagonal.
        ridge: f64,
    },

    /// The observer, the interrupt flag or the time limit ended the work before there was any result.
    #[error("stopped before the first result was there; give it more time")]
    Interrupted,
}
