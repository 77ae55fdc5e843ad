//! How the program can fail: one sentence and an exit code.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use svml::Error;

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
        match error {
            // Knows its path.
            Error::Io { .. } => Self::Runtime(error.to_string()),
            Error::Parse { line, message } => {
                Self::Data(format!("{name}: line {line}: {}", with_options(&message)))
            }
            Error::Missing { row, column } => Self::Data(format!(
                "{name}: line {row}, column {column}: the value is missing; leave such rows out (--missing drop) or fill them (--missing impute) when training"
            )),
            Error::OutOfRange { row, column, value, limit } => Self::Data(format!(
                "{name}: line {row}, column {column}: {value} is outside the range of this program, +-{limit:e}; correct, rescale or drop it"
            )),
            Error::UnseenCategory { row, column, value, known } => Self::Data(format!(
                "{name}: line {row}, column {column}: category '{value}' did not occur in training (known: {known}); correct it, or train with --categories onehot or --missing impute, which accept new categories"
            )),
            Error::Parameter { name: "class_weight", .. } => Self::Usage(error.to_string()),
            Error::Parameter { .. } => Self::Usage(format!("{name}: {error}")),
            Error::Interrupted => Self::Runtime(
                "the time limit was over before there was any result; raise --time-limit"
                    .to_owned(),
            ),
            Error::TooLarge { .. } | Error::NotPositiveDefinite { .. } => {
                Self::Runtime(format!("{name}: {error}"))
            }
            _ => Self::Data(format!("{name}: {error}")),
        }
    }

    /// A file of the system that could not be used; `way_out` says what to do.
    pub fn io(path: &Path, error: &std::io::Error, way_out: &str) -> Self {
        let cause = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
            std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            std::io::ErrorKind::StorageFull => "no space left on the device".to_owned(),
            _ => error.to_string(),
        };
        Self::Runtime(format!("{}: {cause}; {way_out}", path.display()))
    }
}

/// The library's advice with the option that follows it.
fn with_options(message: &str) -> String {
    message
        .replace("say that there is no header", "say that there is no header (--no-header)")
        .replace("give the delimiter", "give the delimiter (--delimiter)")
        .replace("(missing = drop)", "(--missing drop)")
}
