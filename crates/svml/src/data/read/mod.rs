//! Reading: from the bytes of a file to a [`Dataset`], or to rows for a model. The rules are in the documentation
//! of [`data`](crate::data).
//!
//! `source` reads files in pieces, turns bytes into text and counts lines, `delimiter` and `table` find the cells,
//! `pool` keeps their texts, `chosen` says which columns are wanted, `encode` turns cells into numbers, `csv`, `libsvm` and
//! `npy` read training data, `new_rows` reads rows to predict, `slips` finds columns with a few cells that look mistyped, and `uci` describes the files of
//! the paper's study.

mod chosen;
mod csv;
mod delimiter;
mod encode;
mod libsvm;
mod new_rows;
mod npy;
mod pool;
mod slips;
mod source;
mod table;
mod uci;

pub use new_rows::{NewRows, new_rows};
pub use slips::{Slip, Suspect};
pub use source::{Input, text_of_reader as read_text};
pub use uci::{UCI_SERVER, UCI_SETS, UciSet};

use std::io::Read;
use std::path::Path;

use super::{Dataset, Format, ReadOptions, Schema};
use crate::data::cell::excerpt;
use crate::error::{Error, Result};

impl Dataset {
    /// Reads a file; its format is found from its content unless the options give it.
    pub fn from_path(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self> {
        training(&Input::of_path(path.as_ref())?, options).map(|read| read.data)
    }

    /// Reads all of a reader; the format is found from the content unless the options give it.
    pub fn from_reader(reader: impl Read, options: &ReadOptions) -> Result<Self> {
        training(&Input::of_reader(reader)?, options).map(|read| read.data)
    }

    /// Reads a table of cells.
    pub fn from_csv(reader: impl Read, options: &ReadOptions) -> Result<Self> {
        csv::read(&Input::of_reader(reader)?, options).map(|(data, _)| data)
    }

    /// Reads rows in the LIBSVM format.
    pub fn from_libsvm(reader: impl Read, options: &ReadOptions) -> Result<Self> {
        libsvm::read(&Input::of_reader(reader)?, options)
    }

    /// Reads a two-dimensional array of numpy (`.npy`), one of whose columns holds the classes.
    pub fn from_npy(reader: impl Read, options: &ReadOptions) -> Result<Self> {
        npy::read(&Input::of_reader(reader)?, options)
    }
}

/// Training data, and what may be wrong with them.
pub struct Training {
    /// The rows.
    pub data: Dataset,
    /// The format that they were in.
    pub format: Format,
    /// Columns that look mistyped.
    pub suspects: Vec<Suspect>,
    /// What was missing.
    pub gaps: Gaps,
    /// The names of the columns, if that the first row holds them is a guess that may be wrong.
    pub guessed: Option<Vec<String>>,
}

/// Missing values of training data that were not refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Rows that were left out because of them.
    pub dropped: usize,
    /// The columns that have any, in their order, each with their number in all rows of the file.
    pub columns: Vec<(String, usize)>,
}

impl Gaps {
    /// Those of an array of so many rows.
    fn of_array(data: &Dataset, rows: usize) -> Self {
        let gaps = |k: usize| (0..data.rows()).filter(|&i| data.x()[(i, k)].is_nan()).count();
        let names = data.schema().encoded_names().into_iter().enumerate();
        let counted = names.map(|(k, name)| (name, gaps(k)));
        let columns = counted.filter(|(_, count)| *count > 0).collect();
        Self { dropped: rows - data.rows(), columns }
    }
}

/// Reads training data.
pub fn training(input: &Input, options: &ReadOptions) -> Result<Training> {
    let format = match options.format {
        Some(format) => format,
        None => format_in(input, false)?,
    };
    if let (Some(column), Format::Libsvm | Format::Npy) = (options.text.first(), format) {
        return Err(Error::parameter(
            "text",
            format!("'{}'", excerpt(column)),
            "a column of a CSV table, but this file is not one",
        ));
    }
    let (suspects, gaps, guessed) = (Vec::new(), Gaps::default(), None);
    Ok(match format {
        Format::Libsvm => {
            Training { data: libsvm::read(input, options)?, format, suspects, gaps, guessed }
        }
        Format::Npy => {
            let data = npy::read(input, options)?;
            let gaps = Gaps::of_array(&data, npy::Array::open(input)?.rows());
            Training { data, format, suspects, gaps, guessed }
        }
        Format::Csv => {
            let (data, csv::Notes { suspects, gaps, header }) = csv::read(input, options)?;
            Training { data, format, suspects, gaps, guessed: header }
        }
    })
}

fn format_in(input: &Input, sparse: bool) -> Result<Format> {
    if input.is_npy()? {
        return Ok(Format::Npy);
    }
    let found = input.head(|text, whole| Ok(libsvm::is_libsvm(text, whole, sparse)))?;
    Ok(if found == Some(true) { Format::Libsvm } else { Format::Csv })
}

impl Format {
    /// The format of the text of a training file, found from its content.
    pub fn of_training(text: &str) -> Self {
        match libsvm::is_libsvm(text, true, false) {
            Some(true) => Self::Libsvm,
            _ => Self::Csv,
        }
    }
}

impl Schema {
    /// The format of the text of new rows, found from its content.
    pub fn format_of(&self, text: &str) -> Format {
        match libsvm::is_libsvm(text, true, self.format() == Format::Libsvm) {
            Some(true) => Format::Libsvm,
            _ => Format::Csv,
        }
    }

    fn format_in(&self, input: &Input) -> Result<Format> {
        format_in(input, self.format() == Format::Libsvm)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::data::{Categories, Delimiter, Missing};

    /// All that reading training data and new rows gives, NaN and errors included, as text.
    fn outcome(input: &Input, options: &ReadOptions) -> String {
        match training(input, options) {
            Ok(read) => {
                let new = new_rows(read.data.schema(), input, options);
                let Training { data, format, suspects, gaps, guessed } = &read;
                format!("{data:?} {format:?} {suspects:?} {gaps:?} {guessed:?} {new:?}")
            }
            Err(e) => format!("{e:?}"),
        }
    }

    fn all_options() -> Vec<ReadOptions> {
        let mut all = Vec::new();
        for missing in [Missing::Refuse, Missing::Drop, Missing::Impute] {
            for header in [None, Some(false), Some(true)] {
                let base = ReadOptions { missing, header, ..ReadOptions::default() };
                all.push(base.clone());
                let categories = Categories::Codes;
                all.push(ReadOptions { target: "1".parse().unwrap(), categories, ..base.clone() });
                all.push(ReadOptions { delimiter: Some(Delimiter::Semicolon), ..base });
            }
        }
        all
    }

    fn check_pieces(text: &[u8]) {
        for options in all_options() {
            let whole = outcome(&Input::of_bytes(text), &options);
            for piece in [1, 2, 3, 7, 16, 61] {
                let cut = outcome(&Input::of_bytes(text).in_pieces(piece), &options);
                assert_eq!(cut, whole, "{:?} {options:?} {piece}", String::from_utf8_lossy(text));
            }
        }
    }

    #[test]
    fn pieces_of_any_size_give_the_same() {
        let late = |cell: &str| {
            let rows = (0..300).map(|i| format!("{i}.0,{},{}\n", i % 7, i % 2));
            format!("{}{cell},1,0\n9,1,1\n", rows.collect::<String>())
        };
        let texts = [
            "a,b,c\n1,2,x\n3,4,y\n".to_owned(),
            "1,2,x\r\n3,4,y\r\n\r\n5,6,x".to_owned(),
            "1,2,x\r3,4,y\r\r5,6,x\r".to_owned(),
            "\u{feff}a,b,c\n\u{feff}1,\"2\",x\n\u{feff}1,2,y\n".to_owned(),
            "\"a\nb\",\"c\"\"\n\"\"\"\n\"x,\r\ny\",2\n \"p\n\" ,3\n".to_owned(),
            "\"open\n1,2\n3,4\n".to_owned(),
            "1,2\n3,4,5\n\"open,1\n3,4\n".to_owned(),
            "1,2\n\"3\" ,4\n\"3\" 5,4\n6,7,8\n".to_owned(),
            "\"a\nb\",\"c\nd\"e\n1,2\n".to_owned(),
            "998;a\n1,001;b\n1,002;a\n\n999;b\n".to_owned(),
            "1,2\n\n3,4,5\n6,7\n8\n".to_owned(),
            "\t\t\n1\t2\tx\n\t\t\n\t\n3\t4\ty\n".to_owned(),
            "  1  2 x\n\n\t3 4\t\"y z\" \n 5 6 x".to_owned(),
            "1,5;2;x\n2,5;3.5;y\n3;4;x\n".to_owned(),
            "1.5;2,5;x\n2,5;3;y\nn;4;x\n".to_owned(),
            "1,a,+\n?,b,-\n2,NA,+\n3,a,\n4,a,+\nNaN,b,-\n".to_owned(),
            "1,2,x\n\u{e9},3,y\n1,\u{1f600},x\n".to_owned(),
            "1,2,x\n1e301,3,y\ninf,3,y\n".to_owned(),
            "1 1:1 3:2 # note\r\n\n-1 2:0.5\r# all\n1 3:1e3".to_owned(),
            "1 1:1\n\n1 2:1 1:1\n1 junk\n".to_owned(),
            "1 1:1\nyes 2:1\n1 100001:1\n".to_owned(),
            "1\n-1\n\n1\n".to_owned(),
            "1 1:1\n1 2:1e301\n".to_owned(),
            late("oops"),
            late("?"),
            late("1,5,6"),
            late("\"7\n8\""),
            late("1e400"),
            String::new(),
            "\n \n\r\n".to_owned(),
        ];
        for text in &texts {
            check_pieces(text.as_bytes());
        }
        check_pieces(b"1,2\n3,\xe9\n4,5\n");
        check_pieces(b"1,2\n3\n4,\0\n4,5\n");
        // A character that is cut off at the end.
        check_pieces(b"1,2\n3,4\n5,\xe2\x82");
    }

    proptest! {
        #[test]
        fn pieces_of_any_text_give_the_same(
            parts in prop::collection::vec(prop::sample::select(vec![
                "1", "2.5", "3,5", "a", "b c", "?", "\"", "\"\"", ",", ",", ";", "\t", " ", "\n", "\n", "\r\n",
                "\r", "1:2", "#", "\u{e9}", "\u{feff}", "-1e400", "\"x\ny\"",
            ]), 0..40),
        ) {
            check_pieces(parts.concat().as_bytes());
        }
    }

    #[test]
    fn one_thread_and_four_give_the_same() {
        let text: String = (0..500)
            .map(|i| format!("{}.{i},{},\"k{}\",{}\n", i % 9, i * i % 31, i % 11, i % 3))
            .collect();
        let of = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let input = Input::of_bytes(text.as_bytes()).in_pieces(100);
            pool.install(|| outcome(&input, &ReadOptions::default()))
        };
        assert_eq!(of(1), of(4));
    }

    /// The first error in the file is reported, in whatever order pieces are done.
    #[test]
    fn the_first_error_counts() {
        let rows = |n: usize| "1,2,x\n".repeat(n);
        let text = format!("{}1,2\n{}1,2,3,4\n\"", rows(40), rows(3));
        let input = Input::of_bytes(text.as_bytes()).in_pieces(10);
        let error = training(&input, &ReadOptions::default()).map(|read| read.format).unwrap_err();
        assert!(error.to_string().starts_with("line 41: found 2 cells"), "{error}");
    }

    /// What was taken for numbers by its first rows, and where a text comes later, is as if it had been text from the
    /// start.
    #[test]
    fn a_late_text_makes_the_column_text() {
        let rows: String = (0..400).map(|i| format!("{}.50,{}\n", i % 3, i % 2)).collect();
        let options = ReadOptions { categories: Categories::Codes, ..ReadOptions::default() };
        let read = |text: String| {
            let input = Input::of_bytes(text.as_bytes()).in_pieces(64);
            training(&input, &options).unwrap()
        };
        let texts = "oops,1\n".repeat(60);
        let late = read(format!("{rows}{texts}"));
        let early = read(format!("oops,1\n{rows}"));
        let levels = ["0.50", "1.50", "2.50", "oops"];
        assert_eq!(late.data.schema().columns()[0].kind.levels(), levels);
        // A text above numbers is a name, unless it is said that it is not.
        assert!(early.data.schema().named());
        let said = ReadOptions { header: Some(false), ..options.clone() };
        let text = format!("{texts}{rows}");
        let early = training(&Input::of_bytes(text.as_bytes()), &said).unwrap();
        assert_eq!(early.data.schema().columns()[0].kind.levels(), levels);
        assert_eq!((late.suspects.len(), early.suspects.len()), (1, 1));
        assert_eq!((late.suspects[0].line, late.suspects[0].others), (401, 60));
    }

    #[test]
    fn reading_says_how_far_it_is() {
        let text = "1,2,x\n".repeat(1000);
        let seen = std::sync::Mutex::new(Vec::new());
        let input = Input::of_bytes(text.as_bytes()).in_pieces(100);
        let input = input.watched(|done, all| seen.lock().unwrap().push((done, all)));
        training(&input, &ReadOptions::default()).unwrap();
        drop(input);
        let seen = seen.into_inner().unwrap();
        assert!(seen.len() > 1 && seen.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert_eq!(seen.last(), Some(&(6000, 6000)));
    }
}
