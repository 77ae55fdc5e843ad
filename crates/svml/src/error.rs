//! The one error type of the crate.
//!
//! An error says what is wrong, with the value and the bound, and carries what to do about it as data: a
//! [`Remedy`]. The command line and the Python package express the remedy in terms of their own options, by
//! [`Error::with_remedy_as`]; `Display` names the fields and functions of this library.
//!
//! | kind | variants |
//! |---|---|
//! | a parameter outside its range | [`Error::Parameter`] |
//! | data that cannot be used | [`Error::Parse`], [`Error::Missing`], [`Error::OutOfRange`], [`Error::UnseenCategory`], [`Error::NoSuchColumn`], [`Error::Shape`], [`Error::NoRows`], [`Error::OneClass`], [`Error::TooManyClasses`], [`Error::TooFewRows`], [`Error::Data`] |
//! | arithmetic that failed on usable data | [`Error::Numerical`], [`Error::NotPositiveDefinite`] |
//! | files, memory, cards and time | [`Error::Io`], [`Error::ModelFile`], [`Error::Checkpoint`], [`Error::TooLarge`], [`Error::Device`], [`Error::Interrupted`] |
//! | a call that this model cannot answer | [`Error::NotAClassifier`], [`Error::Unsupported`] |

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// What every fallible function of this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong, by cause.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The text of a data file does not follow its format.
    Parse {
        /// Line in the file, from 1.
        line: u64,
        /// What was found and what was expected.
        message: String,
        /// What to do, where an option helps.
        remedy: Option<Remedy>,
    },

    /// A value is missing, and missing values are not allowed.
    Missing {
        /// Line of the file, or row of the matrix, from 1.
        row: usize,
        /// Name of the column.
        column: String,
    },

    /// A number is infinite, or too large to be squared and summed safely.
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
    NoSuchColumn {
        /// Name or number asked for.
        column: String,
        /// The columns of the data.
        available: String,
    },

    /// Two sizes that have to agree do not.
    Shape {
        /// What was counted.
        what: String,
        /// How many there are.
        found: usize,
        /// How many there must be.
        expected: usize,
    },

    /// There are no rows. The text is appended to the message and may say which rows are meant, as in
    /// `" to predict"`.
    NoRows(String),

    /// All rows belong to one class.
    OneClass {
        /// The only class.
        class: String,
    },

    /// So many classes that the target column is most likely the wrong one.
    TooManyClasses {
        /// Name of the target column.
        column: String,
        /// Number of distinct labels.
        found: usize,
        /// The most that are accepted.
        limit: usize,
    },

    /// A class has fewer rows than the folds need.
    TooFewRows {
        /// The class.
        class: String,
        /// Its rows.
        rows: usize,
        /// How many it needs.
        needed: usize,
        /// What needs them, as the subject of `needs`.
        purpose: &'static str,
    },

    /// The data cannot be used as they are, for another reason than the ones above.
    Data {
        /// What is wrong, with the place.
        what: String,
        /// What to do, where an option helps.
        remedy: Option<Remedy>,
    },

    /// A parameter outside its range.
    Parameter {
        /// Name of the parameter.
        name: Cow<'static, str>,
        /// The value given.
        value: String,
        /// What would be allowed.
        bound: String,
    },

    /// A computation on usable data did not give finite numbers.
    Numerical {
        /// What was computed, and the result.
        what: String,
        /// What to do.
        remedy: Remedy,
    },

    /// A model file that is damaged, was not written by this library, or was written by a later version.
    ModelFile(String),

    /// A file that was to hold the checkpoint of a fit cannot be used for it: it is of another fit, or in use.
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
        /// What to do.
        remedy: Remedy,
    },

    /// A model that holds a metric alone, without a classifier, was asked to classify.
    NotAClassifier,

    /// The model does not have what is asked for: a k-nearest-neighbour classifier, for example, has no
    /// support vectors.
    Unsupported(String),

    /// The model is not one that LIBSVM's format holds.
    NotForLibsvm,

    /// More memory would be needed than the stated limit.
    TooLarge {
        /// What would be allocated.
        what: String,
        /// Its size.
        bytes: u128,
        /// The most that is allowed.
        limit: u128,
        /// What to do instead.
        remedy: Remedy,
    },

    /// A card that was to compute is not there, or failed; see [`Device`](crate::Device).
    Device {
        /// The card, as in `cuda:0`.
        device: String,
        /// What was looked for and not found, or what failed.
        reason: String,
        /// What to do instead.
        remedy: Remedy,
    },

    /// The matrix K + I/C could not be factored although it should be positive definite.
    NotPositiveDefinite {
        /// Index of the failing pivot.
        pivot: usize,
        /// Smallest ridge on the diagonal.
        ridge: f64,
    },

    /// The observer, the interrupt flag or the time limit ended the work before there was any result.
    Interrupted,
}

/// What a user can do about an [`Error`]. `Display` says it in terms of this library; the command line and
/// the Python package have texts of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Leave out rows with missing values, or fill them.
    DropOrImpute,
    /// Leave out rows with missing values.
    DropMissing,
    /// Say that the first row is data, not names.
    SayNoHeader,
    /// Say what separates the cells.
    GiveDelimiter,
    /// Use fewer folds, or more rows.
    FewerFolds,
    /// Correct the category, or encode categories so that new ones are accepted.
    AcceptNewCategories,
    /// Encode categories by integer codes.
    UseCodes,
    /// Ask for columns that look like identifiers.
    UseIdentifiers,
    /// Correct a cell, fill it like a missing value, or say that its column is text.
    SayText,
    /// Give a column other units, or leave it out.
    RescaleColumn,
    /// Raise the limit on memory, use fewer rows, or train SVML on landmarks, which need no such matrix.
    RaiseMemoryLimit,
    /// Raise the limit on memory, or use fewer landmarks or rows.
    FewerLandmarks,
    /// Free some memory, or set the limit on it to what there is, so that fewer landmarks are used.
    FreeMemory,
    /// Use fewer rows or columns.
    UseLessData,
    /// Use a form of the metric with fewer numbers, or fewer columns, or raise the limit on memory.
    SmallerForm,
    /// Let the process have more memory, or use less data.
    MoreMemory,
    /// Use a smaller C.
    LowerCost,
    /// Allow more time.
    MoreTime,
    /// Train one SVM with a Gaussian kernel, by naming a form of the metric.
    TrainOneGaussian,
    /// Train a classifier instead of a metric alone.
    TrainClassifier,
    /// Remove the file of a checkpoint, or name another.
    RemoveCheckpoint,
    /// Wait until the other fit has ended, or name another file for the checkpoint.
    OtherCheckpoint,
    /// Compute on the processor.
    UseProcessor,
    /// Train on landmarks, use fewer rows, or compute on the processor: the memory of a card does not suffice.
    FitDevice,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DropOrImpute => {
                "leave out rows with missing values (Missing::Drop) or fill them in (Missing::Impute)"
            }
            Self::DropMissing => "leave out rows with missing values (Missing::Drop)",
            Self::SayNoHeader => {
                "if the first row holds data, say so (ReadOptions { header: Some(false), .. })"
            }
            Self::GiveDelimiter => {
                "if the cells are separated by something else, set ReadOptions::delimiter to one of the values of Delimiter; replace any other delimiter with one of these"
            }
            Self::FewerFolds => "add rows, or use fewer folds (GridSearch::folds)",
            Self::AcceptNewCategories => {
                "correct it, or train with Categories::OneHot or Missing::Impute, which accept new categories"
            }
            Self::UseCodes => "use Categories::Codes",
            Self::UseIdentifiers => {
                "to use such a column anyway, name it in ReadOptions::use_anyway, or use Categories::Codes"
            }
            Self::SayText => {
                "correct it; or treat such values as missing (Missing::Impute); or, if the column is text on purpose, name it in ReadOptions::text"
            }
            Self::RescaleColumn => {
                "look for values that are wrong or far too large, and rescale or remove the columns that contain them"
            }
            Self::RaiseMemoryLimit => {
                "raise memory_limit if the computer has enough memory, use fewer rows, or train on landmarks, which do not need this matrix (Svml { landmarks: LandmarkChoice::Count(2000), ..Svml::default() })"
            }
            Self::FewerLandmarks => {
                "raise memory_limit if the computer has enough memory, or use fewer landmarks or rows"
            }
            Self::FreeMemory => {
                "close other programs, or set memory_limit to what may be used, so that the fit makes do with fewer landmarks"
            }
            Self::UseLessData => "use fewer rows or columns",
            Self::SmallerForm => {
                "use a form with fewer parameters (Form::Diagonal, Form::Sphere, or Form::Rank with a small rank), fewer columns, or a computer with more memory; if the method has a memory_limit, raising it may help"
            }
            Self::MoreMemory => {
                "give the process more memory (ulimit, or the limit of the container), or use fewer rows or columns"
            }
            Self::LowerCost => {
                "use a smaller C (initial_cost with learn_cost set to false, or the costs of a GridSearch)"
            }
            Self::MoreTime => "allow more time (Run::time_limit)",
            Self::TrainOneGaussian => {
                "choose a form of the metric, as in Svml { form: Form::Diagonal.into(), .. }, with the Gaussian kernel"
            }
            Self::TrainClassifier => "train a model with a classifier",
            Self::RemoveCheckpoint => {
                "use a different file for this fit (Run::checkpoint), or delete this one to start over"
            }
            Self::OtherCheckpoint => {
                "wait until that fit has finished, or use a different file (Run::checkpoint)"
            }
            Self::UseProcessor => {
                "compute on the CPU instead (Run::device or Model::on_device with Device::Cpu)"
            }
            Self::FitDevice => {
                "train on landmarks, which do not need this matrix (Svml { landmarks: LandmarkChoice::Count(2000), ..Svml::default() }), use fewer rows, or compute on the CPU (Device::Cpu)"
            }
        })
    }
}

/// Longest message, in characters.
const LONGEST: usize = 1000;

/// Whether a terminal could do something else than show the character: control characters, ends of lines, and those that
/// turn the direction of what follows.
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Longest number in a message, in digits.
const DIGITS: usize = 24;

/// A text in which long numbers have an exponent: 1e300, not 301 digits.
fn in_short(text: &str) -> String {
    if text.len() <= DIGITS {
        return text.to_owned();
    }
    let short = |word: &str| match word.parse::<f64>() {
        Ok(value) if word.len() > DIGITS => format!("{value:e}"),
        _ => word.to_owned(),
    };
    text.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

/// Two numbers of bytes in words: with units, or to the byte where units would make them the same.
fn apart(bytes: u128, limit: u128) -> (String, String) {
    match (in_units(bytes), in_units(limit)) {
        (a, b) if a == b => (format!("{bytes} bytes"), format!("{limit} bytes")),
        both => both,
    }
}

/// A number of bytes as people read it: `38.4 GiB`.
fn in_units(bytes: u128) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(power, _)| bytes >> power > 0) {
        Some((power, unit)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << power) as f64),
        None => format!("{bytes} bytes"),
    }
}

impl Error {
    /// A parameter outside its range.
    pub fn parameter(
        name: impl Into<Cow<'static, str>>,
        value: impl fmt::Display,
        bound: impl Into<String>,
    ) -> Self {
        let value = in_short(&value.to_string());
        Self::Parameter { name: name.into(), value, bound: bound.into() }
    }

    /// What the user can do about it, where that is more than the message says.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Parse { remedy, .. } | Self::Data { remedy, .. } => *remedy,
            Self::Numerical { remedy, .. }
            | Self::TooLarge { remedy, .. }
            | Self::Device { remedy, .. }
            | Self::Checkpoint { remedy, .. } => Some(*remedy),
            Self::Missing { .. } => Some(Remedy::DropOrImpute),
            Self::OutOfRange { .. } => Some(Remedy::RescaleColumn),
            Self::UnseenCategory { .. } => Some(Remedy::AcceptNewCategories),
            Self::NotPositiveDefinite { .. } => Some(Remedy::LowerCost),
            Self::NotAClassifier => Some(Remedy::TrainClassifier),
            Self::NotForLibsvm => Some(Remedy::TrainOneGaussian),
            Self::Interrupted => Some(Remedy::MoreTime),
            _ => None,
        }
    }

    /// The message, with the remedy worded by `words`: in the options of the command line, for example.
    pub fn with_remedy_as(&self, words: impl Fn(Remedy) -> String) -> String {
        let what = self.what();
        self.remedy().map_or(what.clone(), |remedy| format!("{what}; {}", words(remedy)))
    }

    /// What is wrong, without the remedy: one line, and nothing in it that a terminal would obey, whatever file it is about.
    pub fn what(&self) -> String {
        let text = self.words();
        if text.len() <= LONGEST && !text.contains(is_control) {
            return text;
        }
        let mut shown = text.chars().map(|c| if is_control(c) { '\u{fffd}' } else { c });
        let short: String = shown.by_ref().take(LONGEST).collect();
        if shown.next().is_some() { short + "..." } else { short }
    }

    fn words(&self) -> String {
        match self {
            Self::Io { path, source } => format!("{}: {source}", path.display()),
            Self::Parse { line, message, .. } => format!("line {line}: {message}"),
            Self::Missing { row, column } => {
                format!("row {row}, column {column}: the value is missing")
            }
            Self::OutOfRange { row, column, value, limit } => {
                let infinite = match value.is_infinite() {
                    true => " (a number beyond +-1.8e308 counts as infinite)",
                    false => "",
                };
                let value = in_short(&value.to_string());
                format!(
                    "row {row}, column {column}: {value} is outside the accepted range, +-{limit:e}{infinite}"
                )
            }
            Self::UnseenCategory { row, column, value, known } => format!(
                "row {row}, column {column}: category '{value}' did not occur in the training data (known: {known})"
            ),
            Self::NoSuchColumn { column, available } => {
                format!("there is no column '{column}' in the data; the columns are: {available}")
            }
            Self::Shape { what, found, expected } => {
                format!("{what}: found {found}, expected {expected}")
            }
            Self::NoRows(place) => format!("the data contain no rows{place}"),
            Self::OneClass { class } => format!(
                "all rows belong to class '{class}', but a classifier needs at least two classes; check the target column"
            ),
            Self::TooManyClasses { column, found, limit } => format!(
                "the target column '{column}' has {found} classes, more than the limit of {limit}; check that it is the right column, and if it is, merge classes"
            ),
            Self::TooFewRows { class, rows, needed, purpose } => format!(
                "class '{class}' has {rows} row(s), but {purpose} needs at least {needed} of each class; add rows or remove the class"
            ),
            Self::Data { what, .. } | Self::Numerical { what, .. } => what.clone(),
            Self::Parameter { name, value, bound } => {
                format!("{name} = {value} is not allowed: it must be {bound}")
            }
            Self::ModelFile(message) => format!("not a usable model file: {message}"),
            Self::Checkpoint { path, what, .. } => format!("{}: {what}", path.display()),
            Self::NotAClassifier => {
                "the model is only a metric, which maps rows but cannot classify them"
                    .to_owned()
            }
            Self::Unsupported(message) => message.clone(),
            Self::NotForLibsvm => {
                "a LIBSVM model holds a single SVM with a Gaussian kernel, but this model is different".to_owned()
            }
            Self::TooLarge { what, bytes, limit, remedy } => {
                let (needed, most) = apart(*bytes, *limit);
                if *remedy == Remedy::FreeMemory {
                    return format!(
                        "{what} would need {needed}, more than the {most} that may be used of the free memory"
                    );
                }
                format!("{what} would need {needed}, more than the limit of {most}")
            }
            Self::Device { device, reason, .. } => format!("{device} cannot be used: {reason}"),
            Self::NotPositiveDefinite { pivot, ridge } => format!(
                "the kernel matrix with ridge 1/C = {ridge:e} could not be factored (pivot {pivot}): C is too large for these data"
            ),
            Self::Interrupted => "stopped before there was a result".to_owned(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_remedy_as(|remedy| remedy.to_string()))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_have_exponents() {
        let of = |value: f64| Error::parameter("c", value, "less").to_string();
        assert_eq!(of(1e300), "c = 1e300 is not allowed: it must be less");
        assert_eq!(of(0.1 + 0.2), "c = 0.30000000000000004 is not allowed: it must be less");
        let weight = Error::parameter("w", format!("{} for class 'a'", 1e-300), "more");
        assert_eq!(weight.to_string(), "w = 1e-300 for class 'a' is not allowed: it must be more");
        let value = |value| Error::OutOfRange { row: 2, column: "a".into(), value, limit: 1e300 };
        let text = value(-1e308).what();
        assert!(text.starts_with("row 2, column a: -1e308 is outside"), "{text}");
        let text = value(f64::INFINITY).what();
        assert!(text.ends_with("+-1e300 (a number beyond +-1.8e308 counts as infinite)"), "{text}");
    }

    #[test]
    fn messages_are_one_line_that_no_terminal_obeys() {
        let hostile = Error::ModelFile(format!("a\u{1b}[31m\nb{}", "x".repeat(5000)));
        let text = hostile.to_string();
        assert!(text.starts_with("not a usable model file: a\u{fffd}[31m\u{fffd}bxxx"), "{text}");
        assert!(text.ends_with("xxx...") && text.len() < 1100);
        let method = Error::parameter("method", "\t", "svml").to_string();
        assert_eq!(method, "method = \u{fffd} is not allowed: it must be svml");
    }

    #[test]
    fn bytes_have_units_unless_these_hide_the_difference() {
        let both = |bytes, limit| {
            let (needed, most) = apart(bytes, limit);
            format!("{needed} / {most}")
        };
        assert_eq!(both(38_400_000_000, 8 << 30), "35.8 GiB / 8.0 GiB");
        assert_eq!(both(160_000, 1), "156.2 KiB / 1 bytes");
        assert_eq!(both(1024, 1023), "1.0 KiB / 1023 bytes");
        assert_eq!(both(160_000, 159_999), "160000 bytes / 159999 bytes");
        assert_eq!(both(3 << 41, 5 << 19), "6.0 TiB / 2.5 MiB");
        assert!(both(u128::MAX, u128::from(u64::MAX)).ends_with(" TiB / 16777216.0 TiB"));
    }
}
