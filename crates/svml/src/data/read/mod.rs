//! Reading: from the bytes of a file to a [`Dataset`], or to rows for a model. The rules are in the documentation
//! of [`data`](crate::data).
//!
//! `source` turns bytes into text and counts lines, `delimiter` and `table` find the cells, `encode` turns cells
//! into numbers, `csv` and `libsvm` read training data, `new_rows` reads rows to predict, `slips` finds columns
//! with a few cells that look mistyped, and `uci` describes the files of the paper's study.

mod csv;
mod delimiter;
mod encode;
mod libsvm;
mod new_rows;
mod slips;
mod source;
mod table;
mod uci;

pub use new_rows::NewRows;
pub use slips::{Suspect, suspects};
pub use source::text_of_reader as read_text;
pub use uci::{UCI_SERVER, UCI_SETS, UciSet};

use std::io::Read;
use std::path::Path;

use super::{Dataset, Format, ReadOptions, Schema};
use crate::error::Result;

impl Dataset {
    /// Reads a file; its format is found from its content unless the options give it.
    pub fn from_path(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        Self::from_text(&source::text_of_path(path.as_ref())?, options)
    }

    /// Reads all of a reader; the format is found from the content unless the options give it.
    pub fn from_reader(reader: impl Read, options: &ReadOptions) -> Result<Self> {
        Self::from_text(&source::text_of_reader(reader)?, options)
    }

    /// Reads a table of cells.
    pub fn from_csv(reader: impl Read, options: &ReadOptions) -> Result<Self> {
        csv::read(&source::text_of_reader(reader)?, options)
    }

    /// Reads rows in the LIBSVM format.
    pub fn from_libsvm(reader: impl Read, options: &ReadOptions) -> Result<Self> {
        libsvm::read(&source::text_of_reader(reader)?, options)
    }

    fn from_text(text: &str, options: &ReadOptions) -> Result<Self> {
        match options.format.unwrap_or_else(|| Format::of_training(text)) {
            Format::Libsvm => libsvm::read(text, options),
            Format::Csv => csv::read(text, options),
        }
    }
}

impl Format {
    /// The format of the text of a training file, found from its content.
    pub fn of_training(text: &str) -> Self {
        if libsvm::is_libsvm(text, false) { Self::Libsvm } else { Self::Csv }
    }
}

impl Schema {
    /// The format of the text of new rows, found from its content.
    pub fn format_of(&self, text: &str) -> Format {
        let sparse = libsvm::is_libsvm(text, self.format() == Format::Libsvm);
        if sparse { Format::Libsvm } else { Format::Csv }
    }
}
