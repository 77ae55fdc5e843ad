//! Tables in memory, with columns of numbers and of texts, by the rules for tables of a file.
//!
//! A table may lie in parts. Each part has a [`Summary`]; merged, they are that of the whole table, however it was cut,
//! and [`Schema::of_summary`] makes a schema of it. [`Schema::encode`] then turns each part into numbers.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Remedy, Result};
use crate::linalg::Matrix;
use crate::parallel;

use super::MAX_COLUMNS;
use super::cell::{Decimal, excerpt, is_missing, number};
use super::coding::{
    Code, Coder, Unseen, are_odd, check_dense, check_width, kind_of, looks_mistyped,
    no_such_column, not_a_number, odd_cell, unseen,
};
use super::dataset::in_range;
use super::identifiers::{LeftOut, is_date, number_rows, of_texts, whole};
use super::options::{Categories, Format, Missing};
use super::read::NewRows;
use super::schema::{Column, Kind, Schema, TargetColumn};

/// Most different texts of a column that a summary keeps. Of more it keeps their hashes, which are enough to tell
/// whether the column is left out.
const MOST_TEXTS: usize = 1 << 18;
/// How many rows are encoded as one piece of work.
const BLOCK: usize = 1024;

/// Named columns of numbers and of texts, all of the same length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    names: Vec<String>,
    cells: Vec<Cells>,
    named: bool,
    rows: usize,
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
enum Cells {
    /// NaN for a missing value.
    Numbers(Vec<f64>),
    Texts {
        /// Places in `texts`; a negative one is a missing value.
        codes: Vec<i32>,
        /// Without white space at their ends.
        texts: Vec<String>,
        /// Whether they are categories even if all of them are numbers.
        category: bool,
    },
}

impl Frame {
    /// A frame without columns. If it is not `named`, columns are called x1, x2, ... by their place, and are matched by
    /// position.
    pub fn new(named: bool) -> Self {
        Self { named, ..Self::default() }
    }

    /// Adds a column of numbers; NaN is a missing value.
    pub fn push_numbers(&mut self, name: &str, values: Vec<f64>) -> Result<()> {
        self.push(name, values.len(), Cells::Numbers(values))
    }

    /// Adds a column of texts: for each row a place in `texts`, or a negative number where the value is missing. Whether
    /// they are numbers is decided by the texts, as in a file.
    pub fn push_texts(&mut self, name: &str, codes: Vec<i32>, texts: Vec<String>) -> Result<()> {
        self.push_codes(name, codes, texts, false)
    }

    /// Adds a column of categories, which stay categories even if all of them are numbers.
    pub fn push_categories(
        &mut self,
        name: &str,
        codes: Vec<i32>,
        texts: Vec<String>,
    ) -> Result<()> {
        self.push_codes(name, codes, texts, true)
    }

    fn push_codes(
        &mut self,
        name: &str,
        codes: Vec<i32>,
        mut texts: Vec<String>,
        category: bool,
    ) -> Result<()> {
        let most = codes.iter().copied().max().unwrap_or(-1);
        if usize::try_from(most).is_ok_and(|code| code >= texts.len()) {
            let bound = format!("below {}, the number of strings in the column", texts.len());
            return Err(Error::parameter("code", most, bound));
        }
        for text in &mut texts {
            if text.trim().len() < text.len() {
                *text = text.trim().to_owned();
            }
        }
        self.push(name, codes.len(), Cells::Texts { codes, texts, category })
    }

    fn push(&mut self, name: &str, rows: usize, cells: Cells) -> Result<()> {
        if !self.cells.is_empty() && rows != self.rows {
            return Err(Error::Shape {
                what: format!("rows of column '{}'", excerpt(name)),
                found: rows,
                expected: self.rows,
            });
        }
        let place = self.cells.len() + 1;
        if place > MAX_COLUMNS {
            return Err(Error::parameter(
                "number of columns",
                place,
                format!("{MAX_COLUMNS} or fewer"),
            ));
        }
        let name = match name.trim() {
            name if self.named && !name.is_empty() => name.to_owned(),
            _ => format!("x{place}"),
        };
        self.rows = rows;
        self.names.push(name);
        self.cells.push(cells);
        Ok(())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Names of the columns.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the names were given.
    pub fn named(&self) -> bool {
        self.named
    }

    /// Refuses two columns of the same name.
    fn check_names(&self) -> Result<()> {
        let mut seen = HashMap::with_capacity(self.names.len());
        for (place, name) in self.names.iter().enumerate() {
            if let Some(before) = seen.insert(name, place) {
                return Err(Error::Data {
                    what: format!(
                        "columns {} and {} are both named '{}'; rename one",
                        before + 1,
                        place + 1,
                        excerpt(name)
                    ),
                    remedy: None,
                });
            }
        }
        Ok(())
    }
}

/// All that has to be known of a table, or of a part of it, to decide how its columns become numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    named: bool,
    rows: usize,
    columns: Vec<ColumnSummary>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ColumnSummary {
    name: String,
    /// How many cells are numbers of a column of numbers, and not missing.
    numbers: usize,
    /// How many cells are texts, and not missing.
    texts: usize,
    /// Whether the texts are categories even if all are numbers.
    category: bool,
    /// The texts as numbers with a decimal point, and with a decimal comma.
    points: Numbers,
    commas: Numbers,
    /// How many of the texts are dates.
    dates: usize,
    /// All values, sorted, as long as they are whole numbers and different from each other, as row numbers are.
    whole: Option<Vec<i64>>,
    levels: Levels,
}

/// The texts of a column as numbers in one notation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Numbers {
    /// How many are numbers.
    count: usize,
    /// The first, by bytes, of those that are not.
    odd: Option<String>,
    /// Where it is.
    #[serde(skip)]
    row: Row,
}

/// The first row, from 1, of a text in a whole table; nothing once tables were merged, whose order is not known. It is no
/// part of what a table is, so that all are equal.
#[derive(Clone, Copy, Debug, Default)]
struct Row(Option<usize>);

impl PartialEq for Row {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Row {}

impl Numbers {
    /// Those of texts that occur so often.
    fn of(codes: &[i32], texts: &[String], counts: &[usize], decimal: Decimal) -> Self {
        let there = texts.iter().zip(counts).enumerate().filter(|(_, (_, count))| **count > 0);
        let (numbers, others): (Vec<_>, Vec<_>) =
            there.partition(|(_, (text, _))| number(text, decimal).is_some());
        let odd = others.into_iter().min_by_key(|(_, (text, _))| *text);
        let first = odd.and_then(|(code, _)| codes.iter().position(|c| *c == code as i32));
        Self {
            count: numbers.iter().map(|(_, (_, count))| **count).sum(),
            odd: odd.map(|(_, (text, _))| text.clone()),
            row: Row(first.map(|row| row + 1)),
        }
    }

    fn merge(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            odd: self.odd.into_iter().chain(other.odd).min(),
            row: Row(None),
        }
    }
}

/// The different texts of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Levels {
    Texts(BTreeSet<String>),
    /// The hashes, sorted, of more than [`MOST_TEXTS`].
    Hashes(Vec<u64>),
}

impl Levels {
    fn len(&self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Hashes(hashes) => hashes.len(),
        }
    }

    /// Keeps texts as they are unless there are more than `most`.
    fn bounded(self, most: usize) -> Self {
        match self {
            Self::Texts(texts) if texts.len() > most => {
                Self::Hashes(sorted(texts.iter().map(|text| hash(text)).collect()))
            }
            few => few,
        }
    }

    fn merge(self, other: Self, most: usize) -> Self {
        match (self, other) {
            (Self::Texts(mut all), Self::Texts(more)) => {
                all.extend(more);
                Self::Texts(all).bounded(most)
            }
            (Self::Hashes(mut all), Self::Hashes(more)) => {
                all.extend(more);
                Self::Hashes(sorted(all))
            }
            (Self::Hashes(mut all), Self::Texts(more))
            | (Self::Texts(more), Self::Hashes(mut all)) => {
                all.extend(more.iter().map(|text| hash(text)));
                Self::Hashes(sorted(all))
            }
        }
    }
}

fn sorted(mut hashes: Vec<u64>) -> Vec<u64> {
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// FNV-1a, with a last mix. It is the same in every process, as hashes of parts of a table have to be.
fn hash(text: &str) -> u64 {
    let byte = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
    let h = text.bytes().fold(0xcbf2_9ce4_8422_2325, byte);
    let h = (h ^ (h >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    h ^ (h >> 32)
}

impl ColumnSummary {
    fn of(name: &str, cells: &Cells, most: usize) -> Self {
        let mut summary = Self {
            name: name.to_owned(),
            numbers: 0,
            texts: 0,
            category: false,
            points: Numbers::default(),
            commas: Numbers::default(),
            dates: 0,
            whole: None,
            levels: Levels::Texts(BTreeSet::new()),
        };
        match cells {
            Cells::Numbers(values) => {
                summary.numbers = values.iter().filter(|value| !value.is_nan()).count();
                let there = values.iter().filter(|value| !value.is_nan());
                summary.whole = different(there.map(|&value| whole(value)));
            }
            Cells::Texts { codes, texts, category } => {
                let counts = counts(codes, texts);
                let there = || texts.iter().zip(&counts).filter(|(_, count)| **count > 0);
                summary.texts = counts.iter().sum();
                summary.category = *category;
                summary.points = Numbers::of(codes, texts, &counts, Decimal::Point);
                summary.commas = Numbers::of(codes, texts, &counts, Decimal::Comma);
                let dates = there().filter(|(text, _)| is_date(text));
                summary.dates = dates.map(|(_, count)| *count).sum();
                if !category {
                    summary.whole = different(there().map(|(text, count)| match count {
                        1 => number(text, Decimal::Point).and_then(whole),
                        _ => None,
                    }));
                }
                let levels = there().map(|(text, _)| text.clone()).collect();
                summary.levels = Levels::Texts(levels).bounded(most);
            }
        }
        summary
    }

    fn merge(self, other: Self, most: usize) -> Self {
        Self {
            name: self.name,
            numbers: self.numbers.saturating_add(other.numbers),
            texts: self.texts.saturating_add(other.texts),
            category: self.category || other.category,
            points: self.points.merge(other.points),
            commas: self.commas.merge(other.commas),
            dates: self.dates.saturating_add(other.dates),
            whole: self.whole.zip(other.whole).and_then(|(mut all, more)| {
                all.extend(more);
                different(all.into_iter().map(Some))
            }),
            levels: self.levels.merge(other.levels, most),
        }
    }

    /// Whether it numbers the rows of a table.
    fn numbers_rows(&self, rows: usize) -> bool {
        (self.whole.as_deref()).is_some_and(|whole| whole.len() == rows && number_rows(whole))
    }

    /// Its texts in the notation in which more of them are numbers, and how many are none.
    fn notation(&self) -> (&Numbers, usize) {
        let more = self.commas.count > self.points.count;
        let numbers = if more { &self.commas } else { &self.points };
        (numbers, self.texts.saturating_sub(numbers.count))
    }

    /// What becomes of it in a table of so many rows. Row numbers are found in tables with names only: rows without
    /// names are numbers that were made for learning.
    fn column(
        &self,
        rows: usize,
        named: bool,
        categories: Categories,
        missing: Missing,
    ) -> Result<Column> {
        let auto = categories == Categories::Auto;
        let ignored = |why| Ok(Column::ignored(self.name.clone(), why));
        let used = |kind| Ok(Column::used(self.name.clone(), kind));
        let (numbers, others) = self.notation();
        if self.texts == 0 || (!self.category && others == 0) {
            return match auto && named && self.numbers_rows(rows) {
                true => ignored(LeftOut::RowNumber),
                false => used(Kind::Number),
            };
        }
        let refuse = |what: String| {
            let what = format!("column '{}' {what}", excerpt(&self.name));
            Err(Error::Data { what, remedy: None })
        };
        if self.numbers > 0 {
            return refuse(
                "holds numbers in one part of the table and strings in another; give it the same type in all parts"
                    .to_owned(),
            );
        }
        if !self.category && are_odd(numbers.count, others) {
            let cell = numbers.odd.as_deref().unwrap_or_default();
            let row = numbers.row.0.map_or(String::new(), |row| format!("row {row}, "));
            return match missing {
                Missing::Impute => used(Kind::Number),
                _ => Err(Error::Data {
                    what: row + &odd_cell(&self.name, cell, numbers.count, others),
                    remedy: Some(Remedy::SayText),
                }),
            };
        }
        let found = of_texts(self.levels.len(), self.texts, self.dates);
        match (&self.levels, found.filter(|_| auto)) {
            (_, Some(why)) => ignored(why),
            (Levels::Texts(levels), None) => {
                used(kind_of(levels.iter().cloned().collect(), categories))
            }
            (Levels::Hashes(hashes), None) => refuse(format!(
                "has {} distinct strings, more than the limit of {MOST_TEXTS}, in {} rows; leave the column out, or group its values",
                hashes.len(),
                self.texts
            )),
        }
    }
}

/// Whole numbers, sorted, if all are and are different from each other.
fn different(values: impl Iterator<Item = Option<i64>>) -> Option<Vec<i64>> {
    let mut all: Vec<i64> = values.collect::<Option<_>>()?;
    all.sort_unstable();
    all.windows(2).all(|pair| pair[0] < pair[1]).then_some(all)
}

/// How often each text occurs; 0 for one that stands for a missing value.
fn counts(codes: &[i32], texts: &[String]) -> Vec<usize> {
    let mut counts = vec![0; texts.len()];
    for code in codes {
        if let Ok(code) = usize::try_from(*code) {
            counts[code] += 1;
        }
    }
    for (count, text) in counts.iter_mut().zip(texts) {
        if is_missing(text) {
            *count = 0;
        }
    }
    counts
}

impl Summary {
    /// The summary of a table, or of a part of it.
    pub fn of(frame: &Frame) -> Result<Self> {
        Self::bounded(frame, MOST_TEXTS)
    }

    fn bounded(frame: &Frame, most: usize) -> Result<Self> {
        frame.check_names()?;
        let columns = parallel::map(frame.names.iter().zip(&frame.cells), |(name, cells)| {
            ColumnSummary::of(name, cells, most)
        });
        Ok(Self { named: frame.named, rows: frame.rows, columns })
    }

    /// The summary of two parts of a table together. It is the same in whatever order parts are merged, and however the
    /// table was cut. Parts must have the same columns in the same order.
    pub fn merge(self, other: Self) -> Result<Self> {
        self.merge_bounded(other, MOST_TEXTS)
    }

    fn merge_bounded(self, other: Self, most: usize) -> Result<Self> {
        if self.columns.len() != other.columns.len() {
            return Err(Error::Shape {
                what: "columns of a part of the table".to_owned(),
                found: other.columns.len(),
                expected: self.columns.len(),
            });
        }
        let pairs = || self.columns.iter().zip(&other.columns);
        if let Some((ours, theirs)) = pairs().find(|(a, b)| a.name != b.name) {
            return Err(Error::Data {
                what: format!(
                    "one part of the table has column '{}' where another part has '{}'; give all parts the same columns in the same order",
                    excerpt(&theirs.name),
                    excerpt(&ours.name)
                ),
                remedy: None,
            });
        }
        let pairs = self.columns.into_iter().zip(other.columns);
        Ok(Self {
            named: self.named && other.named,
            rows: self.rows.saturating_add(other.rows),
            columns: pairs.map(|(a, b)| a.merge(b, most)).collect(),
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Of each column the number of missing values.
    pub fn missing(&self) -> Vec<usize> {
        let filled = |column: &ColumnSummary| column.numbers.saturating_add(column.texts);
        self.columns.iter().map(|c| self.rows.saturating_sub(filled(c))).collect()
    }

    /// Columns of text in which at least four in five cells are numbers, but not all, so that they look mistyped: the name,
    /// how many cells are numbers, how many are not, and a text that is not.
    pub fn mistyped(&self) -> Vec<(&str, usize, usize, &str)> {
        fn found(column: &ColumnSummary) -> Option<(&str, usize, usize, &str)> {
            let (numbers, others) = column.notation();
            let text = numbers.odd.as_deref().unwrap_or_default();
            let found = !column.category && looks_mistyped(numbers.count, others);
            found.then_some((column.name.as_str(), numbers.count, others, text))
        }
        self.columns.iter().filter_map(found).collect()
    }

    /// Columns of numbers that number the rows: whole numbers that are all different and leave few gaps.
    pub fn row_numbers(&self) -> Vec<&str> {
        let found = self.columns.iter().filter(|column| column.numbers_rows(self.rows));
        found.map(|column| column.name.as_str()).collect()
    }

    /// Of each column the number of different texts; 0 for a column of numbers.
    pub fn distinct(&self) -> Vec<usize> {
        self.columns.iter().map(|column| column.levels.len()).collect()
    }
}

impl Schema {
    /// The schema of a table in memory, by the rules for tables of a file. If a column has the name of the target, that of
    /// the target gets underscores appended until it is free.
    ///
    /// [`Missing::Drop`] is for tables from which rows with a missing value were left out before they were summarised.
    pub fn of_summary(
        summary: &Summary,
        target: &str,
        categories: Categories,
        missing: Missing,
    ) -> Result<Self> {
        if summary.columns.is_empty() {
            return Err(Error::Shape {
                what: "columns of the table, at least one".to_owned(),
                found: 0,
                expected: 1,
            });
        }
        let columns = (summary.columns.iter())
            .map(|c| c.column(summary.rows, summary.named, categories, missing))
            .collect::<Result<Vec<_>>>()?;
        let mut name = target.trim().to_owned();
        while name.is_empty() || columns.iter().any(|column| column.name == name) {
            name.push('_');
        }
        let target = TargetColumn { name, position: columns.len(), numeric: false };
        let header = summary.named;
        let schema = Self { columns, target, header, missing, format: Format::Csv };
        check_width(&schema)?;
        Ok(schema)
    }

    /// Encodes a table in memory, for training or as new rows.
    ///
    /// Columns are matched by name if schema and frame have names, in any order, and columns that the schema does not
    /// have are ignored; otherwise by position. Values are treated like those of a file: see the documentation of
    /// [`data`](crate::data), under new rows. Numbers in a column of categories are those levels that are written like
    /// them or have their value.
    pub fn encode(&self, frame: &Frame) -> Result<Matrix> {
        self.numbers(frame, &self.parts(frame)?)
    }

    /// Encodes new rows of a table in memory, as [`Schema::encode`], and takes notice of what training did not have.
    pub fn read_frame(&self, frame: &Frame) -> Result<NewRows> {
        let parts = self.parts(frame)?;
        let x = self.numbers(frame, &parts)?;
        let unseen = parts.iter().filter_map(|part| part.unseen(frame.rows)).collect();
        Ok(NewRows::new(x, None).with_unseen(unseen))
    }

    /// How each column of a frame becomes numbers.
    fn parts<'a>(&'a self, frame: &'a Frame) -> Result<Vec<Part<'a>>> {
        self.validate()?;
        check_width(self)?;
        let places = self.places(frame)?.into_iter().enumerate();
        let used = places.filter(|(k, _)| self.columns[*k].kind != Kind::Ignored);
        Ok(used
            .map(|(k, place)| Part::new(k, &self.columns[k], &frame.cells[place], self.missing))
            .collect())
    }

    fn numbers(&self, frame: &Frame, parts: &[Part<'_>]) -> Result<Matrix> {
        let width = self.width();
        check_dense(frame.rows, width)?;
        let mut data = vec![0.0; frame.rows * width];
        let encode_row = |row: usize, out: &mut [f64]| {
            let mut rest = out;
            let mut fits = true;
            for part in parts {
                let (out, after) = std::mem::take(&mut rest).split_at_mut(part.coder.width);
                fits &= part.coder.write(part.code(row), out);
                rest = after;
            }
            fits
        };
        let blocks = data.chunks_mut(BLOCK * width).enumerate();
        let fits = parallel::map(blocks, |(block, out)| {
            let rows = out.chunks_exact_mut(width).zip(block * BLOCK..);
            rows.fold(true, |fits, (out, row)| encode_row(row, out) && fits)
        });
        if fits.contains(&false) {
            // Which error it is does not depend on who found it.
            parts.iter().try_for_each(|part| part.refuse(frame.rows, self.missing))?;
        }
        Matrix::new(frame.rows, width, data)
    }

    /// The place in a frame of each column.
    fn places(&self, frame: &Frame) -> Result<Vec<usize>> {
        if !(self.header && frame.named) {
            return self.by_position(frame.cells.len()).map(|(places, _)| places);
        }
        frame.check_names()?;
        if frame.names.is_empty() {
            let first = self.columns.iter().find(|column| column.kind != Kind::Ignored);
            return Err(no_such_column(first.map_or("", |column| &column.name), &frame.names));
        }
        self.by_name(&frame.names, 0).map(|(places, _)| places)
    }
}

/// How one column of a frame becomes numbers.
struct Part<'a> {
    /// The place of the column in the schema.
    place: usize,
    column: &'a Column,
    coder: Coder,
    cells: &'a Cells,
    /// What each text stands for.
    texts: Vec<Code>,
    /// The levels that are numbers, sorted by value.
    numbers: Vec<(f64, usize)>,
}

impl<'a> Part<'a> {
    fn new(place: usize, column: &'a Column, cells: &'a Cells, missing: Missing) -> Self {
        let coder = |numbers, others| Coder::new(&column.kind, missing, numbers, others);
        match cells {
            Cells::Texts { codes, texts, .. } => {
                let (texts, numbers, others) = meanings(&column.kind, codes, texts);
                let coder = coder(numbers, others);
                Self { place, column, coder, cells, texts, numbers: Vec::new() }
            }
            Cells::Numbers(_) => {
                let numbers = levels_by_value(column.kind.levels());
                Self { place, column, coder: coder(0, 0), cells, texts: Vec::new(), numbers }
            }
        }
    }

    fn code(&self, row: usize) -> Code {
        match self.cells {
            Cells::Numbers(values) if values[row].is_nan() => Code::Missing,
            Cells::Numbers(values) if self.column.kind == Kind::Number => Code::Number(values[row]),
            Cells::Numbers(values) => Code::Level(self.level(values[row])),
            Cells::Texts { codes, .. } => {
                usize::try_from(codes[row]).map_or(Code::Missing, |code| self.texts[code])
            }
        }
    }

    /// The level that is written like a number or, if there is none, has its value.
    fn level(&self, value: f64) -> Option<usize> {
        let start = self.numbers.partition_point(|(number, _)| *number < value);
        let same = self.numbers[start..].iter().take_while(|(number, _)| *number == value);
        let levels = self.column.kind.levels();
        let plain = value.to_string();
        let mut same = same.map(|(_, level)| *level);
        let first = same.clone().next();
        same.find(|level| levels[*level] == plain).or(first)
    }

    /// The text of a cell.
    fn text(&self, row: usize) -> String {
        match self.cells {
            Cells::Numbers(values) => values[row].to_string(),
            Cells::Texts { codes, texts, .. } => {
                let code = usize::try_from(codes[row]).ok();
                code.map(|code| texts[code].clone()).unwrap_or_default()
            }
        }
    }

    /// The categories that the column does not know, or texts in a column of numbers.
    fn unseen(&self, rows: usize) -> Option<Unseen> {
        let unknown = |code: &Code| matches!(code, Code::Level(None) | Code::NoNumber);
        let possible = match self.cells {
            Cells::Numbers(_) => self.column.kind != Kind::Number,
            Cells::Texts { .. } => self.texts.iter().any(unknown),
        };
        let mut found = (0..rows).filter(|&row| possible && unknown(&self.code(row)));
        let example = excerpt(&self.text(found.next()?));
        Some(Unseen { column: self.place, rows: 1 + found.count(), example })
    }

    /// The first error of the column.
    fn refuse(&self, rows: usize, missing: Missing) -> Result<()> {
        for row in 0..rows {
            let value = || self.text(row);
            let codes = matches!(self.column.kind, Kind::Codes { .. });
            match self.code(row) {
                Code::Missing if missing != Missing::Impute => {
                    return Err(Error::Missing {
                        row: row + 1,
                        column: excerpt(&self.column.name),
                    });
                }
                Code::Number(value) => {
                    in_range(value, row + 1, &self.column.name)?;
                }
                Code::Level(None) if codes && missing != Missing::Impute => {
                    return Err(unseen(row + 1, self.column, &value()));
                }
                Code::NoNumber if !self.coder.fills_texts => {
                    let what = not_a_number(self.column, &value(), missing);
                    let what = format!("row {}, {what}", row + 1);
                    return Err(Error::Data { what, remedy: None });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What each text of a column stands for, how many are numbers in the notation in which more are, and how many are none.
fn meanings(kind: &Kind, codes: &[i32], texts: &[String]) -> (Vec<Code>, usize, usize) {
    let counts = counts(codes, texts);
    let numbers = |decimal| -> usize {
        let there = texts.iter().zip(&counts).filter(|(_, count)| **count > 0);
        there.filter(|(text, _)| number(text, decimal).is_some()).map(|(_, count)| count).sum()
    };
    let (points, commas) = (numbers(Decimal::Point), numbers(Decimal::Comma));
    let decimal = match kind {
        Kind::Number if commas > points => Decimal::Comma,
        _ => Decimal::Point,
    };
    let code = |text: &String| match is_missing(text) {
        true => Code::Missing,
        false => Code::of_text(kind, text, decimal),
    };
    let numbers = points.max(commas);
    (texts.iter().map(code).collect(), numbers, counts.iter().sum::<usize>() - numbers)
}

/// The levels that are numbers, with their places, sorted by value.
fn levels_by_value(levels: &[String]) -> Vec<(f64, usize)> {
    let value = |(place, level): (usize, &String)| Some((number(level, Decimal::Point)?, place));
    let mut numbers: Vec<(f64, usize)> = levels.iter().enumerate().filter_map(value).collect();
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    numbers
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::data::{Dataset, ReadOptions};

    /// A column of texts, some of which are missing.
    fn coded(cells: &[Option<&str>]) -> (Vec<i32>, Vec<String>) {
        let mut texts: Vec<String> = Vec::new();
        let mut code = |cell: &Option<&str>| match cell {
            None => -1,
            Some(text) => {
                let place = texts.iter().position(|t| t == text).unwrap_or_else(|| {
                    texts.push((*text).to_owned());
                    texts.len() - 1
                });
                place as i32
            }
        };
        (cells.iter().map(&mut code).collect(), texts)
    }

    fn texts(name: &str, cells: &[Option<&str>]) -> Frame {
        let mut frame = Frame::new(true);
        let (codes, texts) = coded(cells);
        frame.push_texts(name, codes, texts).unwrap();
        frame
    }

    fn all(cells: &[&str]) -> Vec<Option<String>> {
        cells.iter().map(|&cell| Some(cell.to_owned())).collect()
    }

    fn schema_of(frame: &Frame, categories: Categories, missing: Missing) -> Result<Schema> {
        Schema::of_summary(&Summary::of(frame)?, "class", categories, missing)
    }

    fn kind(cells: &[Option<String>]) -> Kind {
        let cells: Vec<Option<&str>> = cells.iter().map(Option::as_deref).collect();
        let summary = Summary::of(&texts("c", &cells)).unwrap();
        summary.columns[0]
            .column(cells.len(), true, Categories::Auto, Missing::Refuse)
            .unwrap()
            .kind
    }

    /// The rows of a table in three columns, of which one has gaps and one is different in every row.
    fn part(rows: std::ops::Range<usize>) -> Frame {
        let mut frame = Frame::new(true);
        let number = |k: usize| if k % 7 == 3 { f64::NAN } else { (k * k % 31) as f64 };
        frame.push_numbers("size", rows.clone().map(number).collect()).unwrap();
        let colour = |k: usize| (k % 5 != 4).then(|| ["red", " blue", "green", "?"][k % 4]);
        let (codes, texts) = coded(&rows.clone().map(colour).collect::<Vec<_>>());
        frame.push_texts("colour", codes, texts).unwrap();
        let names: Vec<String> = rows.clone().map(|k| format!("name{k}")).collect();
        frame.push_texts("who", (0..rows.len() as i32).collect(), names).unwrap();
        frame
    }

    #[test]
    fn kinds_are_decided_by_the_texts() {
        assert_eq!(kind(&all(&["1", "2.5", " 3 "])), Kind::Number);
        assert_eq!(kind(&all(&["1,5", "2", "?"])), Kind::Number);
        assert_eq!(kind(&[None, Some("NA".to_owned())]), Kind::Number);
        assert_eq!(kind(&all(&["1", "x"])).levels(), ["1", "x"]);
        assert_eq!(kind(&all(&["1,5", "2.5"])).levels(), ["1,5", "2.5"]);
        let names: Vec<Option<String>> = (0..40).map(|k| Some(format!("n{k}"))).collect();
        assert_eq!(kind(&names), Kind::Ignored);
        assert!(matches!(kind(&names[..25]), Kind::Codes { .. }));
        assert!(matches!(kind(&names[..20]), Kind::OneHot { .. }));
        let mut frame = Frame::new(true);
        let (codes, numbers) = coded(&[Some("2"), Some("10"), None]);
        frame.push_categories("c", codes, numbers).unwrap();
        let schema = schema_of(&frame, Categories::Auto, Missing::Impute).unwrap();
        assert_eq!(schema.encoded_names(), ["c=10", "c=2"]);
    }

    #[test]
    fn a_frame_is_encoded_like_the_same_table_in_a_file() {
        let (rows, missing) = (60, Missing::Impute);
        let frame = part(0..rows);
        let mut text = "size,colour,who,class\n".to_owned();
        for k in 0..rows {
            let size = if k % 7 == 3 { String::new() } else { (k * k % 31).to_string() };
            let colour = if k % 5 == 4 { "" } else { ["red", "blue", "green", "?"][k % 4] };
            text += &format!("{size},{colour},name{k},{}\n", ["a", "b"][k % 2]);
        }
        let options = ReadOptions { missing, ..ReadOptions::default() };
        let read = Dataset::from_csv(text.as_bytes(), &options).unwrap();
        let schema = schema_of(&frame, Categories::Auto, missing).unwrap();
        let labels: Vec<&str> = (0..rows).map(|k| ["a", "b"][k % 2]).collect();
        let data = Dataset::new(schema.encode(&frame).unwrap(), &labels).unwrap();
        let data = data.with_schema(schema.clone()).unwrap();
        assert_eq!(data.schema(), read.schema());
        let bits = |x: &Matrix| {
            x.as_slice()
                .iter()
                .map(|v| v.is_nan().then_some(*v).map_or(v.to_bits(), |_| 0))
                .collect::<Vec<_>>()
        };
        assert_eq!(bits(data.x()), bits(read.x()));
        assert!(Dataset::new(Matrix::zeros(2, 1), &[0, 1]).unwrap().with_schema(schema).is_err());
    }

    #[test]
    fn summaries_merge_to_that_of_the_whole_however_it_is_cut() {
        for most in [3, 20, MOST_TEXTS] {
            let of = |rows| Summary::bounded(&part(rows), most).unwrap();
            let merge = |a: Summary, b: Summary| a.merge_bounded(b, most).unwrap();
            let whole = of(0..50);
            for (a, b) in [(0, 50), (1, 2), (17, 17), (30, 41)] {
                let [x, y, z] = [of(0..a), of(a..b), of(b..50)];
                assert_eq!(merge(merge(x.clone(), y.clone()), z.clone()), whole);
                assert_eq!(merge(z, merge(y, x)), whole);
            }
            let decided = Schema::of_summary(&whole, "class", Categories::Auto, Missing::Impute);
            let kinds: Vec<Kind> =
                decided.unwrap().columns().iter().map(|column| column.kind.clone()).collect();
            assert_eq!((&kinds[0], &kinds[2]), (&Kind::Number, &Kind::Ignored));
            assert_eq!(kinds[1].levels(), ["blue", "green", "red"]);
            assert_eq!((whole.rows(), whole.distinct()), (50, vec![0, 3, 50]));
            let json = serde_json::to_string(&whole).unwrap();
            assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), whole);
        }
    }

    /// However the table is cut and its rows are shuffled; in a table without names numbers are not looked at.
    #[test]
    fn row_numbers_and_dates_are_found_in_tables_with_names() {
        let part = |named: bool, rows: Vec<usize>| {
            let mut frame = Frame::new(named);
            frame.push_numbers("id", rows.iter().map(|&k| 10.0 + k as f64).collect()).unwrap();
            frame
                .push_numbers("size", rows.iter().map(|&k| (3 * k + k / 7) as f64).collect())
                .unwrap();
            let days: Vec<String> =
                rows.iter().map(|k| format!("2026-11-{:02}", 1 + k % 28)).collect();
            let days: Vec<Option<&str>> = days.iter().map(|day| Some(day.as_str())).collect();
            let (codes, texts) = coded(&days);
            frame.push_texts("day", codes, texts).unwrap();
            let spelled: Vec<String> = rows.iter().map(|k| format!("{k:03}")).collect();
            frame.push_texts("no", (0..rows.len() as i32).collect(), spelled).unwrap();
            Summary::of(&frame).unwrap()
        };
        let left = |summary: &Summary, categories| {
            let schema = Schema::of_summary(summary, "y", categories, Missing::Refuse).unwrap();
            schema.columns().iter().map(Column::left_out).collect::<Vec<_>>()
        };
        let shuffled: Vec<usize> = (0..101).map(|k| k * 37 % 101).collect();
        let (first, second) = shuffled.split_at(44);
        let [a, b] = [first, second].map(|rows| part(true, rows.to_vec()));
        let whole = part(true, shuffled.clone());
        assert_eq!(b.clone().merge(a.clone()).unwrap(), whole);
        let numbered = Some(LeftOut::RowNumber);
        let found = [numbered, None, Some(LeftOut::Date), numbered];
        assert_eq!(left(&whole, Categories::Auto), found);
        assert_eq!(whole.row_numbers(), ["id", "no"]);
        assert_eq!(left(&whole, Categories::OneHot), [None; 4]);
        // Parts that overlap have rows twice.
        assert_eq!(a.clone().merge(whole).unwrap().row_numbers(), [""; 0]);
        let bare = part(false, shuffled);
        assert_eq!(left(&bare, Categories::Auto), [None, None, Some(LeftOut::Date), None]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let one = Summary::of(&texts("a", &[Some("x")])).unwrap();
        let two = Summary::of(&texts("b", &[Some("x")])).unwrap();
        let message = one.clone().merge(two).unwrap_err().to_string();
        assert!(message.contains("column 'b'") && message.contains("'a'"), "{message}");
        let mut numbers = Frame::new(true);
        numbers.push_numbers("a", vec![1.0]).unwrap();
        let mixed = one.merge(Summary::of(&numbers).unwrap()).unwrap();
        let error = Schema::of_summary(&mixed, "class", Categories::Auto, Missing::Refuse);
        assert!(error.unwrap_err().to_string().contains("'a' holds numbers in one part"));
        let mut twice = texts("a", &[Some("x")]);
        twice.push_numbers("a", vec![0.0]).unwrap();
        assert!(Summary::of(&twice).unwrap_err().to_string().contains("both named 'a'"));
        assert!(twice.push_numbers("b", vec![]).is_err());
        assert!(twice.push_texts("b", vec![1], vec!["x".to_owned()]).is_err());
    }

    #[test]
    fn many_texts_that_are_no_names_are_refused_beyond_the_bound() {
        let cells: Vec<String> = (0..100).map(|k| format!("t{}", k % 50)).collect();
        let cells: Vec<Option<&str>> = cells.iter().map(|cell| Some(cell.as_str())).collect();
        let summary = Summary::bounded(&texts("t", &cells), 40).unwrap();
        let schema = Schema::of_summary(&summary, "class", Categories::Auto, Missing::Refuse);
        let message = schema.unwrap_err().to_string();
        assert!(message.contains("'t' has 50 distinct strings"), "{message}");
    }

    #[test]
    fn new_frames_are_matched_by_name_or_place() {
        let schema = schema_of(&part(0..50), Categories::Auto, Missing::Refuse).unwrap();
        let mut new = Frame::new(true);
        new.push_texts("colour", vec![0, 1], vec!["red".into(), "pink".into()]).unwrap();
        new.push_numbers("else", vec![0.0, 0.0]).unwrap();
        let message = schema.encode(&new).unwrap_err().to_string();
        assert!(message.contains("no column 'size'"), "{message}");
        new.push_texts(" size", vec![0, 1], vec!["7".into(), "x".into()]).unwrap();
        let message = schema.encode(&new).unwrap_err().to_string();
        assert!(message.starts_with("row 2, column size: 'x' is not a number"), "{message}");
        let mut new = Frame::new(false);
        new.push_numbers("", vec![7.0, 8.0]).unwrap();
        assert!(schema.encode(&new).is_err());
        // By place, the names that are left out may be there or not.
        let expected = [7.0, 0.0, 0.0, 1.0, 8.0, 0.0, 0.0, 0.0];
        new.push_texts("", vec![0, 1], vec!["red".into(), "pink".into()]).unwrap();
        assert_eq!(schema.encode(&new).unwrap().as_slice(), expected);
        new.push_numbers("", vec![0.0, 0.0]).unwrap();
        let rows = schema.read_frame(&new).unwrap();
        assert_eq!(rows.x.as_slice(), expected);
        assert_eq!(rows.unseen, [Unseen { column: 1, rows: 1, example: "pink".to_owned() }]);
    }

    #[test]
    fn values_that_cannot_be_encoded_are_named() {
        let message = |frame: &Frame, codes: Categories, missing: Missing| {
            let train = texts("c", &[Some("a"), Some("b")]);
            let schema = schema_of(&train, codes, missing).unwrap();
            schema.encode(frame).map_err(|error| error.to_string())
        };
        let new = texts("c", &[Some("a"), Some("z")]);
        let refused = message(&new, Categories::Codes, Missing::Refuse).unwrap_err();
        assert!(refused.starts_with("row 2, column c: category 'z'"), "{refused}");
        assert!(message(&new, Categories::Codes, Missing::Impute).unwrap()[(1, 0)].is_nan());
        let gap = texts("c", &[Some("a"), None]);
        let refused = message(&gap, Categories::Auto, Missing::Refuse).unwrap_err();
        assert!(refused.starts_with("row 2, column c: the value is missing"), "{refused}");
        let mut huge = Frame::new(true);
        huge.push_numbers("n", vec![1.0, 1e301]).unwrap();
        let schema = schema_of(&huge, Categories::Auto, Missing::Refuse).unwrap();
        assert!(schema.encode(&huge).unwrap_err().to_string().starts_with("row 2, column n"));
    }

    #[test]
    fn numbers_find_the_levels_of_their_value() {
        let train = texts("c", &[Some("1"), Some("1.0"), Some("2.50"), Some("x")]);
        let schema = schema_of(&train, Categories::Codes, Missing::Impute).unwrap();
        let mut new = Frame::new(true);
        new.push_numbers("c", vec![1.0, 2.5, 3.0]).unwrap();
        let x = schema.encode(&new).unwrap();
        assert_eq!(x.as_slice()[..2], [0.0, 2.0]);
        assert!(x.as_slice()[2].is_nan());
    }

    #[test]
    fn columns_that_look_mistyped() {
        let cells = [Some("1"), Some("2,5"), Some("oops"), Some("4"), Some("5"), None, Some("eh?")];
        let of = |cells: &[Option<&str>]| Summary::of(&texts("c", cells)).unwrap();
        assert_eq!(of(&cells[..5]).mistyped(), [("c", 4, 1, "oops")]);
        assert_eq!(of(&cells).mistyped(), []);
        assert_eq!(of(&cells[..2]).mistyped(), []);
        let merged = of(&cells[..3]).merge(of(&cells[3..5])).unwrap();
        assert_eq!(merged, of(&cells[..5]));
    }

    /// One odd text among numbers is an error that names its row, or is filled, in the whole table and in its parts.
    #[test]
    fn one_odd_text_among_numbers_is_refused_or_filled() {
        let cells: Vec<String> =
            (0..60).map(|k| if k == 7 { "1,05x".to_owned() } else { format!("{k}.5") }).collect();
        let cells: Vec<Option<&str>> = cells.iter().map(|cell| Some(cell.as_str())).collect();
        let frame = texts("size", &cells);
        for categories in [Categories::Auto, Categories::Codes] {
            let said = schema_of(&frame, categories, Missing::Refuse).unwrap_err().to_string();
            assert!(
                said.starts_with("row 8, column size: '1,05x' is not a number, but 59 of the 60"),
                "{said}"
            );
            let schema = schema_of(&frame, categories, Missing::Impute).unwrap();
            let rows = schema.read_frame(&frame).unwrap();
            assert!(rows.x[(7, 0)].is_nan() && rows.x[(8, 0)] == 8.5);
            assert_eq!(rows.unseen, [Unseen { column: 0, rows: 1, example: "1,05x".to_owned() }]);
            // A column without any number is another one.
            let said = schema.encode(&texts("size", &[Some("m"), Some("f")])).unwrap_err();
            assert!(said.to_string().contains("check which column this is"), "{said}");
            assert!(schema.encode(&texts("size", &[Some("m")])).unwrap()[(0, 0)].is_nan());
        }
        let [first, second] =
            [&cells[..30], &cells[30..]].map(|cells| Summary::of(&texts("size", cells)).unwrap());
        let merged = second.merge(first).unwrap();
        assert_eq!(merged, Summary::of(&frame).unwrap());
        let said = Schema::of_summary(&merged, "y", Categories::Auto, Missing::Refuse).unwrap_err();
        assert!(said.to_string().starts_with("column size: '1,05x'"), "{said}");
    }

    #[test]
    fn the_target_gives_way() {
        let summary = Summary::of(&texts("class", &[Some("a")])).unwrap();
        let schema =
            Schema::of_summary(&summary, "class", Categories::Auto, Missing::Refuse).unwrap();
        assert_eq!(schema.target().name, "class_");
        schema.validate().unwrap();
        let empty = Summary::of(&Frame::new(true)).unwrap();
        assert!(Schema::of_summary(&empty, "y", Categories::Auto, Missing::Refuse).is_err());
    }

    #[test]
    fn columns_without_a_name_are_named_by_their_place() {
        let mut frame = Frame::new(true);
        frame.push_numbers("size", vec![1.0, 2.0]).unwrap();
        frame.push_numbers("  ", vec![3.0, 4.0]).unwrap();
        let schema = schema_of(&frame, Categories::Auto, Missing::Refuse).unwrap();
        assert_eq!(schema.encoded_names(), ["size", "x2"]);
        // A target without a name still has one.
        let summary = Summary::of(&frame).unwrap();
        let unnamed = Schema::of_summary(&summary, " ", Categories::Auto, Missing::Refuse).unwrap();
        assert_eq!(unnamed.target().name, "_");
        unnamed.validate().unwrap();
    }

    #[test]
    fn tables_of_too_many_columns_are_refused() {
        let mut frame = Frame::new(false);
        for _ in 0..MAX_COLUMNS {
            frame.push_numbers("", Vec::new()).unwrap();
        }
        let error = frame.push_numbers("", Vec::new()).unwrap_err().to_string();
        assert!(error.contains("100001") && error.contains("100000 or fewer"), "{error}");
    }

    /// Parts of a table without names have none together, and what is a category in one part is one in all.
    #[test]
    fn parts_of_unnamed_tables_and_of_categories() {
        let part = |numbers: &[f64]| {
            let mut frame = Frame::new(false);
            frame.push_numbers("", numbers.to_vec()).unwrap();
            Summary::of(&frame).unwrap()
        };
        let (a, b) = (part(&[1.0]), part(&[2.0, 3.0]));
        let merged = a.clone().merge(b).unwrap();
        assert_eq!(merged, part(&[1.0, 2.0, 3.0]));
        assert_eq!(merged.names().collect::<Vec<_>>(), ["x1"]);
        let mut two = Frame::new(false);
        two.push_numbers("", vec![1.0]).unwrap();
        two.push_numbers("", vec![1.0]).unwrap();
        let error = a.merge(Summary::of(&two).unwrap()).unwrap_err().to_string();
        assert!(error.contains("columns of a part of the table"), "{error}");
        // Numbers with one slip are mistyped, unless they are said to be categories.
        let categories = |cells: &[&str]| {
            let mut frame = Frame::new(true);
            let cells: Vec<Option<&str>> = cells.iter().map(|&cell| Some(cell)).collect();
            let (codes, texts) = coded(&cells);
            frame.push_categories("c", codes, texts).unwrap();
            Summary::of(&frame).unwrap()
        };
        let all = categories(&["1", "2", "3", "4", "5", "oops"]);
        assert_eq!(all.mistyped(), []);
        assert_eq!(
            categories(&["1", "2", "3"]).merge(categories(&["4", "5", "oops"])).unwrap(),
            all
        );
    }

    /// The first error of a column is named, wherever it is; what other columns do with missing or unknown values is no error.
    #[test]
    fn the_error_that_is_named_is_one() {
        let rows = 3 * BLOCK;
        let mut train = Frame::new(true);
        train.push_texts("hot", vec![0, 1], vec!["a".into(), "b".into()]).unwrap();
        train.push_numbers("n", vec![1.0, 2.0]).unwrap();
        let (codes, texts): (Vec<i32>, Vec<String>) =
            (0..40).map(|k| (k % 30, format!("t{}", k % 30))).unzip();
        let mut coded = Frame::new(true);
        coded.push_texts("code", codes, texts[..30].to_vec()).unwrap();
        coded.push_numbers("n", vec![1.0; 40]).unwrap();
        let schemas = [(&train, "hot"), (&coded, "code")].map(|(frame, name)| {
            (schema_of(frame, Categories::Auto, Missing::Impute).unwrap(), name)
        });
        for (schema, name) in schemas {
            let mut new = Frame::new(true);
            // Missing, then unknown.
            let of = |row: usize| if row == 0 { -1 } else { 0 };
            new.push_texts(name, (0..rows).map(of).collect(), vec!["new".into()]).unwrap();
            // The only number that is too large is in the first block.
            let number = |row: usize| if row == 5 { 1 } else { 0 };
            let texts = vec!["1.5".into(), "1e301".into()];
            new.push_texts("n", (0..rows).map(number).collect(), texts).unwrap();
            let error = schema.encode(&new).unwrap_err().to_string();
            assert!(error.starts_with("row 6, column n"), "{error}");
        }
    }

    #[test]
    fn texts_with_decimal_commas_are_numbers_in_new_rows_too() {
        let mut train = Frame::new(true);
        train.push_numbers("n", vec![1.0, 2.0]).unwrap();
        let schema = schema_of(&train, Categories::Auto, Missing::Refuse).unwrap();
        let x = schema.encode(&texts("n", &[Some("1,5"), Some("2")])).unwrap();
        assert_eq!(x.as_slice(), [1.5, 2.0]);
        assert_eq!(schema.encode(&texts("n", &[Some("3"), Some("0.5")])).unwrap()[(1, 0)], 0.5);
        assert!(schema.encode(&texts("n", &[Some("1,5"), Some("2.5")])).is_err());
        let none = schema.encode(&Frame::new(true)).unwrap_err().to_string();
        assert!(none.contains("'n'"), "{none}");
    }
}
