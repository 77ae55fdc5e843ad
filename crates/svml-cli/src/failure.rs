//! How the program can fail: one sentence and an exit code.
//!
//! The library says what is wrong and carries the remedy as data; the words for the remedy, with the options of
//! this command, are here.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use svml::{Error, Remedy};

/// Why there is no result.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong while running: exit code 1.
    Runtime(String),
    /// The command line does not make sense: exit code 2.
    Usage(String),
    /// The data are not usable: exit code 3.
    Data(String),
    /// Ended from outside; what was saved has been said: exit code 130.
    Interrupted(String),
    /// Whoever reads the output has gone: no message, exit code 0.
    Closed,
}

/// What every command returns.
pub type Outcome = Result<(), Failure>;

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(text)
            | Self::Usage(text)
            | Self::Data(text)
            | Self::Interrupted(text) => f.write_str(text),
            Self::Closed => Ok(()),
        }
    }
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Closed => 0,
            Self::Runtime(_) => 1,
            Self::Usage(_) => 2,
            Self::Data(_) => 3,
            Self::Interrupted(_) => 130,
        })
    }

    /// A failure of the library while it worked on a file.
    pub fn with_file(name: &str, error: Error) -> Self {
        Self::with_words(name, &error, remedy_words)
    }

    /// As [`Failure::with_file`], for a file that has rows but no lines.
    pub fn with_array(name: &str, error: Error) -> Self {
        Self::worded(name, &error, &error.what(), remedy_words)
    }

    /// A failure of a model at work on rows: what the model cannot do is no fault of the rows.
    pub fn of_model(model: &str, rows: &str, error: Error) -> Self {
        match error {
            Error::NotAClassifier | Error::Unsupported(_) => Self::with_file(model, error),
            error => Self::with_file(rows, error),
        }
    }

    /// As [`Failure::with_file`], with other words for the remedies.
    pub fn with_words(name: &str, error: &Error, words: impl Fn(Remedy) -> String) -> Self {
        Self::worded(name, error, &what(error), words)
    }

    fn worded(name: &str, error: &Error, what: &str, words: impl Fn(Remedy) -> String) -> Self {
        let remedy = error.remedy().map_or(String::new(), |remedy| format!("; {}", words(remedy)));
        let text = match error {
            // It has the path, or has nothing to do with the file.
            Error::Io { .. }
            | Error::Checkpoint { .. }
            | Error::Device { .. }
            | Error::Interrupted => {
                format!("{what}{remedy}")
            }
            _ => format!("{name}: {what}{remedy}"),
        };
        match error {
            Error::Parameter { .. } => Self::Usage(text),
            Error::Parse { .. }
            | Error::Missing { .. }
            | Error::OutOfRange { .. }
            | Error::UnseenCategory { .. }
            | Error::NoSuchColumn { .. }
            | Error::Shape { .. }
            | Error::NoRows(_)
            | Error::OneClass { .. }
            | Error::TooManyClasses { .. }
            | Error::TooFewRows { .. }
            | Error::Data { .. }
            | Error::ModelFile(_)
            | Error::NotAClassifier
            | Error::NotForLibsvm
            | Error::Unsupported(_) => Self::Data(text),
            // Files, memory, devices, time, and arithmetic that failed.
            _ => Self::Runtime(text),
        }
    }

    /// A parameter of the command line that the library refuses.
    pub fn parameter(error: &Error) -> Self {
        Self::Usage(error.with_remedy_as(remedy_words))
    }

    /// A file of the system that could not be used; `way_out` says what to do.
    pub fn io(path: &Path, error: &std::io::Error, way_out: &str) -> Self {
        use std::io::ErrorKind::{NotFound, OutOfMemory, PermissionDenied, StorageFull};
        // It is not the file that is at fault then.
        let way_out = match error.kind() {
            OutOfMemory => "close other programs, or allow this one more memory (ulimit -v)",
            _ => way_out,
        };
        let cause = match error.kind() {
            // The library says more than the system does.
            _ if error.get_ref().is_some() => error.to_string(),
            NotFound => "no such file or folder".to_owned(),
            PermissionDenied => "permission denied".to_owned(),
            StorageFull => "no space left on the device".to_owned(),
            _ => error.to_string(),
        };
        Self::Runtime(format!("{}: {cause}; {way_out}", path.display()))
    }
}

/// What is wrong. Rows of a file are found by their line, and nothing but the time limit ends a fit of this
/// command without a word.
fn what(error: &Error) -> String {
    match error {
        Error::Missing { row, column } => {
            format!("line {row}, column {column}: the value is missing")
        }
        // All errors of cells begin with their row, which is a line of the file here.
        Error::OutOfRange { .. } => error.what().replacen("row", "line", 1),
        Error::UnseenCategory { row, column, value, known } => format!(
            "line {row}, column {column}: category '{value}' did not occur in the training data (known: {known})"
        ),
        Error::Interrupted => "the time limit was reached before there was a result".to_owned(),
        _ => error.what(),
    }
}

/// What to do, in the options of this command.
pub fn remedy_words(remedy: Remedy) -> String {
    let words = match remedy {
        Remedy::DropOrImpute => {
            "when training, leave out rows with missing values (--missing drop) or fill them in (--missing impute)"
        }
        Remedy::DropMissing => "leave out rows with missing values (--missing drop)",
        Remedy::SayNoHeader => "if the first row holds data, use --no-header",
        Remedy::GiveDelimiter => {
            "if the cells are separated by something else, use --delimiter with comma, semicolon, tab or spaces; replace any other delimiter with one of these"
        }
        Remedy::FewerFolds => "add rows, or use fewer folds, as in --set folds=2",
        Remedy::AcceptNewCategories => {
            "correct it, or train with --categories onehot or --missing impute, which accept new categories"
        }
        Remedy::UseCodes => "use --categories codes",
        Remedy::UseIdentifiers => "to use such a column anyway, name it with --use",
        Remedy::SayText => {
            "correct it; or treat such values as missing (--missing impute); or, if the column is text on purpose, name it with --text"
        }
        Remedy::RescaleColumn => {
            "look for values that are wrong or far too large, and rescale or remove the columns that contain them"
        }
        Remedy::RaiseMemoryLimit => {
            "raise --memory-limit if the computer has enough memory, use fewer rows, or train with the default method and --landmarks 2000, which does not need this matrix"
        }
        Remedy::FewerLandmarks => {
            "raise --memory-limit if the computer has enough memory, or use fewer rows or a smaller --landmarks"
        }
        Remedy::FreeMemory => {
            "close other programs, or set --memory-limit to what may be used, so that the fit makes do with fewer landmarks"
        }
        Remedy::UseLessData => "use fewer rows or columns",
        Remedy::SmallerForm => {
            "use a form with fewer parameters (--form diagonal, --form sphere, or a small rank), fewer columns, or a computer with more memory; for the default method, --memory-limit raises the limit"
        }
        Remedy::UseProcessor => {
            "use --device cpu to compute without it, or --device auto to use a GPU only if there is one"
        }
        Remedy::FitDevice => {
            "train with the default method and --landmarks 2000, which does not need this matrix, use fewer rows, raise --memory-limit if the GPU has enough memory, or use --device cpu"
        }
        Remedy::LowerCost => {
            "use a smaller C, for example with --set initial_cost=0.1 --set learn_cost=false or, for a method with a grid, --set costs=[0.1,1]"
        }
        Remedy::MoreTime => "raise --time-limit",
        Remedy::TrainOneGaussian => "train one with svml train --form diagonal or --form sphere",
        Remedy::TrainClassifier => {
            "train a classifier: a method ending in +none learns only a metric"
        }
        Remedy::RemoveCheckpoint => {
            "use a different file for this fit with --checkpoint, or delete this one to start over"
        }
        Remedy::OtherCheckpoint => {
            "wait until that fit has finished, or use a different file with --checkpoint"
        }
        _ => return remedy.to_string(),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn the_file_is_not_at_fault_if_memory_ends() {
        let said =
            |kind: ErrorKind| match Failure::io(Path::new("a"), &Error::from(kind), "check it") {
                Failure::Runtime(text) => text,
                _ => String::new(),
            };
        assert_eq!(said(ErrorKind::NotFound), "a: no such file or folder; check it");
        let memory =
            "a: out of memory; close other programs, or allow this one more memory (ulimit -v)";
        assert_eq!(said(ErrorKind::OutOfMemory), memory);
    }
}
