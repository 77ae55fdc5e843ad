//! Arrays of numpy in files (`.npy`): a header that says type, order and shape, then the numbers.
//!
//! The columns of a two-dimensional array are those of a table without a header.

use std::io::Read;

use crate::error::{Error, Remedy, Result};
use crate::linalg::Matrix;

use super::chosen::said;
use super::csv::find_target;
use super::source::Input;
use super::table::names_by_place;
use crate::data::cell::excerpt;
use crate::data::coding::check_dense;
use crate::data::dataset::in_range;
use crate::data::options::{Format, Missing, ReadOptions};
use crate::data::schema::{Schema, TargetColumn};
use crate::data::{Dataset, MAX_COLUMNS, labels};

/// The first bytes of every such file.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header that is read; numpy itself refuses longer ones than 10,000 bytes.
const LONGEST_HEADER: usize = 1 << 16;
/// Bytes that are read at once, at least one number.
const BLOCK: usize = 1 << 20;

/// What the numbers are: one letter and their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Float(usize),
    Signed(usize),
    Unsigned(usize),
    Bool,
}

impl Type {
    /// The type that a header names, such as `<f8`.
    fn named(name: &str) -> Option<Self> {
        let (order, kind) = name.split_at_checked(1)?;
        let (kind, bytes) = kind.split_at_checked(1)?;
        let bytes: usize = bytes.parse().ok().filter(|b| [1, 2, 4, 8].contains(b))?;
        if !matches!((order, bytes), ("<", _) | ("|" | "=" | ">", 1)) {
            return None;
        }
        match kind {
            "f" if bytes >= 4 => Some(Self::Float(bytes)),
            "i" => Some(Self::Signed(bytes)),
            "u" => Some(Self::Unsigned(bytes)),
            "b" if bytes == 1 => Some(Self::Bool),
            _ => None,
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::Float(bytes) | Self::Signed(bytes) | Self::Unsigned(bytes) => bytes,
            Self::Bool => 1,
        }
    }

    /// The bits of a number, those of a negative integer extended.
    fn bits(self, item: &[u8]) -> u64 {
        let negative = matches!(self, Self::Signed(_)) && item.last().is_some_and(|b| *b > 127);
        let mut bytes = if negative { [u8::MAX; 8] } else { [0; 8] };
        bytes[..item.len()].copy_from_slice(item);
        u64::from_le_bytes(bytes)
    }

    fn value(self, item: &[u8]) -> f64 {
        let bits = self.bits(item);
        match self {
            Self::Float(8) => f64::from_bits(bits),
            Self::Float(_) => f32::from_bits(bits as u32).into(),
            Self::Signed(_) => bits as i64 as f64,
            Self::Unsigned(_) => bits as f64,
            Self::Bool => f64::from(u8::from(bits != 0)),
        }
    }

    /// A number as the label of a class, exactly; nothing if it is missing.
    fn label(self, item: &[u8]) -> Option<String> {
        let bits = self.bits(item);
        let value = self.value(item);
        match self {
            _ if value.is_nan() => None,
            // Of an f4 the shortest text that is the same f4: 0.1, not 0.10000000149011612.
            Self::Float(4) => Some(f32::from_bits(bits as u32).to_string()),
            Self::Signed(_) => Some((bits as i64).to_string()),
            Self::Unsigned(_) => Some(bits.to_string()),
            _ => Some(value.to_string()),
        }
    }
}

/// What a header says.
pub(super) struct Array {
    kind: Type,
    /// Whether columns, not rows, stand one after the other.
    fortran: bool,
    rows: usize,
    width: usize,
    /// Where the numbers begin.
    start: usize,
}

/// What an array holds.
pub(super) struct Numbers {
    pub x: Matrix,
    /// Those of the column of labels; nothing where it is missing.
    pub labels: Vec<Option<String>>,
}

fn refuse(what: String) -> Error {
    Error::Data { what, remedy: None }
}

impl Array {
    /// Reads the header, and checks that the file has as many bytes as it promises.
    pub(super) fn open(input: &Input) -> Result<Self> {
        if !input.is_npy()? {
            return Err(refuse(
                "this is not a NumPy array; such a file begins with the bytes \\x93NUMPY"
                    .to_owned(),
            ));
        }
        let mut reader = input.open()?;
        let mut take = |count: usize| -> Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let got = reader.by_ref().take(count as u64).read_to_end(&mut bytes);
            match got.map_err(|e| input.failed(e))? {
                got if got == count => Ok(bytes),
                _ => Err(refuse(format!(
                    "the file ends inside the array header, after {} bytes; save it again",
                    input.size()
                ))),
            }
        };
        take(MAGIC.len())?;
        let version = take(2)?;
        let digits = match version[0] {
            1 => 2,
            2 | 3 => 4,
            other => {
                return Err(refuse(format!(
                    "version {other}.{} of the npy format is not supported; versions 1.0 to 3.0 are",
                    version[1]
                )));
            }
        };
        let length = Type::Unsigned(digits).bits(&take(digits)?) as usize;
        if length > LONGEST_HEADER {
            return Err(refuse(format!(
                "the array header has {length} bytes, more than the limit of {LONGEST_HEADER}; save the numbers as a plain array"
            )));
        }
        let header = take(length)?;
        let start = MAGIC.len() + 2 + digits + length;
        let array = Self::of_header(&String::from_utf8_lossy(&header), start)?;
        let cells = array.rows as u128 * array.width as u128;
        let promised = start as u128 + cells * array.kind.bytes() as u128;
        if promised != u128::from(input.size()) {
            return Err(refuse(format!(
                "the file has {} bytes, but according to its header it should have {promised}, for {} rows and {} columns of {} bytes each; save it again",
                input.size(),
                array.rows,
                array.width,
                array.kind.bytes(),
            )));
        }
        Ok(array)
    }

    fn of_header(header: &str, start: usize) -> Result<Self> {
        let unreadable = || {
            refuse(format!(
                "the array header cannot be read: '{}'; save the array with numpy.save",
                excerpt(header.trim())
            ))
        };
        let entries = entries(header).ok_or_else(unreadable)?;
        let entry = |name: &str| {
            entries
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
                .ok_or_else(unreadable)
        };
        let descr = entry("descr")?;
        let name = unquoted(descr).unwrap_or(descr);
        let kind = Type::named(name).ok_or_else(|| {
            let why = match name.trim_start_matches(['<', '>', '|', '=']) {
                object if object.starts_with('O') => "Python objects (they are pickled)",
                _ => "of an unsupported type",
            };
            refuse(format!(
                "the values of the array are {why}, dtype {}; save little-endian numbers, for example with numpy.save(file, array.astype('<f8'))",
                excerpt(descr)
            ))
        })?;
        let fortran = match entry("fortran_order")? {
            "True" => true,
            "False" => false,
            _ => return Err(unreadable()),
        };
        let shape = entry("shape")?;
        let inner = shape.strip_prefix('(').and_then(|s| s.strip_suffix(')'));
        let sizes: Vec<&str> = inner.ok_or_else(unreadable)?.split(',').map(str::trim).collect();
        // A tuple may end in a comma, and that of one element does.
        let sizes = sizes.strip_suffix(&[""]).unwrap_or(&sizes);
        let size = |text: &&str| text.trim_end_matches('L').parse::<u32>().ok();
        let sizes: Option<Vec<u32>> = sizes.iter().map(size).collect();
        match sizes.as_deref() {
            Some(&[rows, width]) => {
                Ok(Self { kind, fortran, rows: rows as usize, width: width as usize, start })
            }
            Some(other) => Err(refuse(format!(
                "the array has {} dimension{}, shape {}; it must have 2, rows and columns, one column of which may hold the classes (numpy.column_stack)",
                other.len(),
                if other.len() == 1 { "" } else { "s" },
                excerpt(shape)
            ))),
            None => Err(refuse(format!(
                "the array has the shape {}; at most 4294967295 rows and columns are supported",
                excerpt(shape)
            ))),
        }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, that of the labels included.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Reads the numbers of the columns at `places`, whose names are for messages, and the labels of another. NaN is
    /// an error unless it is imputed.
    pub(super) fn read(
        &self,
        input: &Input,
        places: &[usize],
        names: &[&str],
        target: Option<usize>,
        missing: Missing,
    ) -> Result<Numbers> {
        check_dense(self.rows, places.len())?;
        let (width, bytes) = (places.len(), self.kind.bytes());
        let mut goes = vec![None; self.width];
        for (k, &place) in places.iter().enumerate() {
            goes[place] = Some(k);
        }
        let mut data = vec![0.0; self.rows * width];
        let mut labels = Vec::new();
        let mut reader = input.open()?;
        let mut block = Vec::new();
        let mut skip = self.start as u64;
        let (mut row, mut column, mut read) = (0, 0, 0_u64);
        let total = self.rows as u64 * self.width as u64 * bytes as u64;
        while read < total {
            let wanted = (BLOCK as u64).min(total - read) + skip;
            block.clear();
            let got = reader.by_ref().take(wanted).read_to_end(&mut block);
            if (got.map_err(|e| input.failed(e))? as u64) < wanted {
                return Err(input.changed());
            }
            for item in block[skip as usize..].chunks_exact(bytes) {
                if let Some(k) = goes[column] {
                    let value = self.kind.value(item);
                    if value.is_nan() && missing != Missing::Impute {
                        return Err(Error::Missing { row: row + 1, column: excerpt(names[k]) });
                    }
                    data[row * width + k] = match value.is_nan() {
                        true => f64::NAN,
                        false => in_range(value, row + 1, names[k])?,
                    };
                } else if Some(column) == target {
                    labels.push(self.kind.label(item));
                }
                if self.fortran {
                    row += 1;
                    if row == self.rows {
                        (row, column) = (0, column + 1);
                    }
                } else {
                    column += 1;
                    if column == self.width {
                        (row, column) = (row + 1, 0);
                    }
                }
            }
            read += wanted - skip;
            skip = 0;
            input.report(self.start as u64 + read);
        }
        Ok(Numbers { x: Matrix::new(self.rows, width, data)?, labels })
    }
}

/// The entries of a dictionary as Python writes it: names, and values as they stand there.
fn entries(header: &str) -> Option<Vec<(&str, &str)>> {
    let mut rest = header.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (key, after) = rest.split_at(end_of_value(rest, b':')?);
        let after = after.strip_prefix(':')?;
        let (value, after) = after.split_at(end_of_value(after, b',').unwrap_or(after.len()));
        found.push((unquoted(key.trim())?, value.trim()));
        rest = after.strip_prefix(',').unwrap_or(after).trim();
    }
    Some(found)
}

/// Where the first `end` is that is neither in quotes nor in brackets.
fn end_of_value(text: &str, end: u8) -> Option<usize> {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, _) if byte == end && depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

fn unquoted(text: &str) -> Option<&str> {
    ['\'', '"'].iter().find_map(|&quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

/// Reads an array as training data.
pub(super) fn read(input: &Input, options: &ReadOptions) -> Result<Dataset> {
    options.refuse_groups()?;
    let array = Array::open(input)?;
    if array.rows == 0 {
        return Err(Error::NoRows(String::new()));
    }
    if array.width < 2 {
        return Err(Error::Shape {
            what: "columns of the array, a target and at least one feature".to_owned(),
            found: array.width,
            expected: 2,
        });
    }
    if array.width - 1 > MAX_COLUMNS {
        return Err(Error::Data {
            what: format!(
                "the array has {} columns, more than the limit of {MAX_COLUMNS}",
                array.width
            ),
            remedy: Some(Remedy::UseLessData),
        });
    }
    let names = names_by_place(array.width);
    let target = find_target(&names, &options.target)?;
    let said = said(&names, Some(target), options)?;
    let features: Vec<usize> = (0..array.width).filter(|&j| j != target).collect();
    let place = TargetColumn { name: names[target].clone(), position: target, numeric: false };
    // A model of it reads tables of cells as well.
    let all = features.iter().map(|&j| names[j].clone()).collect();
    let mut schema = Schema::of_numbers(all, place, Format::Csv);
    let kept = schema.choose(features.iter().map(|&j| said[j]))?;
    let places: Vec<usize> = kept.into_iter().map(|k| features[k]).collect();
    let used: Vec<&str> = places.iter().map(|&j| names[j].as_str()).collect();
    // Rows to drop are not known before their labels are.
    let missing = match options.missing {
        Missing::Drop => Missing::Impute,
        other => other,
    };
    let Numbers { x, labels } = array.read(input, &places, &used, Some(target), missing)?;
    if options.missing != Missing::Drop
        && let Some(row) = labels.iter().position(Option::is_none)
    {
        return Err(Error::Data {
            what: format!("row {}, column {}: the class label is missing", row + 1, names[target]),
            remedy: Some(Remedy::DropMissing),
        });
    }
    let kept: Vec<usize> = (0..x.rows()).filter(|&i| labels[i].is_some()).collect();
    if kept.is_empty() {
        return Err(Error::NoRows(" with a class label".to_owned()));
    }
    let x = if kept.len() < x.rows() { x.select_rows(&kept) } else { x };
    let found = labels::encode_numbers(labels.iter().flatten().map(String::as_str));
    schema.target.numeric = found.numeric;
    let weights = vec![1.0; x.rows()];
    let data = Dataset { x, y: found.y, classes: found.classes, schema, weights, groups: None };
    data.with_missing(options.missing)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;
    use crate::data::Target;

    /// A file with this header, padded as numpy does it.
    fn file(version: u8, header: &str, items: &[u8]) -> Vec<u8> {
        let digits = if version == 1 { 2 } else { 4 };
        let length = (MAGIC.len() + 2 + digits + header.len() + 1).next_multiple_of(64);
        let padded = format!("{header:<w$}\n", w = length - MAGIC.len() - 2 - digits - 1);
        let mut bytes = [MAGIC, &[version, 0]].concat();
        bytes.extend(&(padded.len() as u32).to_le_bytes()[..digits]);
        bytes.extend(padded.as_bytes());
        bytes.extend(items);
        bytes
    }

    fn array(descr: &str, fortran: bool, shape: &str, items: &[u8]) -> Vec<u8> {
        let fortran = if fortran { "True" } else { "False" };
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        file(1, &header, items)
    }

    fn f8(values: &[f64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn plain(bytes: &[u8]) -> Result<Dataset> {
        read(&Input::of_bytes(bytes), &ReadOptions::default())
    }

    fn message(bytes: &[u8]) -> String {
        plain(bytes).unwrap_err().to_string()
    }

    #[test]
    fn rows_and_classes_in_every_version_and_order() {
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), }";
        let values = f8(&[1.5, -2.0, 1.0, 3.0, 4.0, 0.0, 5.0, 6.0, 1.0]);
        for version in [1, 2, 3] {
            let data = plain(&file(version, header, &values)).unwrap();
            assert_eq!(data.x().as_slice(), [1.5, -2.0, 3.0, 4.0, 5.0, 6.0]);
            assert_eq!((data.classes(), data.y()), (&["0".into(), "1".into()][..], &[1, 0, 1][..]));
            assert_eq!(data.schema().encoded_names(), ["x1", "x2"]);
            let target = data.schema().target();
            assert_eq!((target.name.as_str(), target.position), ("x3", 2));
            data.schema().validate().unwrap();
        }
        let columns = f8(&[1.5, 3.0, 5.0, -2.0, 4.0, 6.0, 1.0, 0.0, 1.0]);
        let fortran = plain(&array("<f8", true, "(3, 3)", &columns)).unwrap();
        assert_eq!(fortran, plain(&file(1, header, &values)).unwrap());
        // The file is recognised, and is the same as a table of cells.
        let options = ReadOptions::default();
        let bytes = file(1, header, &values);
        let table = Dataset::from_reader("1.5,-2,1\n3,4,0\n5,6,1\n".as_bytes(), &options).unwrap();
        assert_eq!(Dataset::from_reader(&bytes[..], &options).unwrap(), table);
        assert_eq!(Dataset::from_npy(&bytes[..], &options).unwrap(), table);
        // As Python 2 and careless writers have it.
        let odd = "{\"shape\":(3L,3L),\"fortran_order\":False,\"descr\":\"<f8\"}";
        assert_eq!(plain(&file(1, odd, &values)).unwrap(), table);
    }

    #[test]
    fn every_type() {
        fn check<const N: usize>(
            descr: &str,
            items: [[u8; N]; 4],
            x: [f64; 2],
            classes: [&str; 2],
        ) {
            let data = plain(&array(descr, false, "(2, 2)", &items.concat())).unwrap();
            assert_eq!(
                (data.x().as_slice(), data.classes()),
                (&x[..], &classes.map(String::from)[..])
            );
        }
        check("<f8", [0.1, 2.0, -3.5, 4.5].map(f64::to_le_bytes), [0.1, -3.5], ["2", "4.5"]);
        let x = [f64::from(0.1_f32), -3.5];
        check("<f4", [0.1, 2.0, -3.5, 0.3].map(f32::to_le_bytes), x, ["0.3", "2"]);
        check("|i1", [-128, 2, 127, -3].map(i8::to_le_bytes), [-128.0, 127.0], ["-3", "2"]);
        check("<i2", [-300, 2, 300, -3].map(i16::to_le_bytes), [-300.0, 300.0], ["-3", "2"]);
        check("<i4", [-70_000, 2, 70_000, -3].map(i32::to_le_bytes), [-7e4, 7e4], ["-3", "2"]);
        check(
            "<i8",
            [-1 << 40, 2, 5, -3].map(i64::to_le_bytes),
            [-1_099_511_627_776.0, 5.0],
            ["-3", "2"],
        );
        check("|u1", [255, 2, 127, 3].map(u8::to_le_bytes), [255.0, 127.0], ["2", "3"]);
        check("<u2", [65_535, 2, 1, 3].map(u16::to_le_bytes), [65_535.0, 1.0], ["2", "3"]);
        check("<u4", [u32::MAX, 2, 1, 3].map(u32::to_le_bytes), [4_294_967_295.0, 1.0], ["2", "3"]);
        let large = ["18446744073709551614", "18446744073709551615"];
        check("<u8", [7, u64::MAX, 8, u64::MAX - 1].map(u64::to_le_bytes), [7.0, 8.0], large);
        check("|b1", [[1], [0], [0], [1]], [1.0, 0.0], ["0", "1"]);
    }

    #[test]
    fn the_target_and_missing_values_are_as_in_tables() {
        let nan = f64::NAN;
        let bytes =
            array("<f8", false, "(4, 3)", &f8(&[1., 5., 2., 2., nan, 3., 1., 7., 4., nan, 8., 5.]));
        let read_with = |missing, target: &str| {
            let target: Target = target.parse().unwrap();
            read(&Input::of_bytes(&bytes), &ReadOptions { missing, target, ..Default::default() })
        };
        let error = read_with(Missing::Refuse, "1").unwrap_err();
        assert!(matches!(&error, Error::Missing { row: 2, column } if column == "x2"), "{error}");
        let error = read_with(Missing::Impute, "x1").unwrap_err().to_string();
        assert!(error.starts_with("row 4, column x1: the class label is missing"), "{error}");
        let data = read_with(Missing::Drop, "1").unwrap();
        assert_eq!(
            (data.x().as_slice(), data.classes()),
            (&[5.0, 2.0, 7.0, 4.0][..], &["1".into()][..])
        );
        let data = read_with(Missing::Impute, "last").unwrap();
        assert!(data.x()[(1, 1)].is_nan() && data.schema().missing() == Missing::Impute);
        assert!(matches!(read_with(Missing::Drop, "x4"), Err(Error::NoSuchColumn { .. })));
        let large = array("<f8", false, "(1, 2)", &f8(&[f64::INFINITY, 1.0]));
        assert!(matches!(plain(&large), Err(Error::OutOfRange { row: 1, .. })));
    }

    #[test]
    fn new_rows_with_and_without_classes() {
        let train = array("<f8", false, "(2, 3)", &f8(&[1.0, 2.0, 0.0, 3.0, 4.0, 1.0]));
        let schema = plain(&train).unwrap().schema().clone();
        let with = schema.read(&train[..], &ReadOptions::default()).unwrap();
        assert_eq!(with.x.as_slice(), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(with.labels.unwrap(), ["0", "1"]);
        let items: Vec<u8> = [5.0_f32, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let without = schema.read_npy(&array("<f4", false, "(1, 2)", &items)[..]).unwrap();
        assert_eq!((without.x.as_slice(), without.labels), (&[5.0, 6.0][..], None));
        let error = schema.read_npy(&array("|u1", false, "(1, 4)", &[0; 4])[..]).unwrap_err();
        assert!(matches!(error, Error::Shape { found: 4, expected: 3, .. }), "{error}");
        let table = Dataset::from_csv("a,1,x\nb,2,y\n".as_bytes(), &ReadOptions::default());
        let error = table.unwrap().schema().read_npy(&train[..]).unwrap_err().to_string();
        assert!(error.contains("column 'x1' of the model is categorical"), "{error}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let two = |descr: &str| message(&array(descr, false, "(1, 2)", &[0; 16]));
        for descr in
            ["<f2", ">f8", "<c16", "<U8", "<M8[ns]", "|V8", "<f16", "f8", "", "<", "<\u{e9}8"]
        {
            let text = two(descr);
            assert!(text.contains(&format!("dtype '{descr}'")), "{text}");
        }
        assert!(two("|O").contains("Python objects (they are pickled), dtype '|O'"));
        let record =
            "{'descr': [('a', '<f8'), ('b', '<i4')], 'fortran_order': False, 'shape': (3,), }";
        assert!(message(&file(1, record, &[0; 36])).contains("dtype [('a', '<f8'), ('b', '<i4')]"));
        let shape = |shape: &str| message(&array("<f8", false, shape, &[0; 24]));
        assert!(shape("(3,)").contains("1 dimension, shape (3,); it must have 2"));
        assert!(shape("()").contains("0 dimensions, shape ()"));
        assert!(shape("(1, 1, 3)").contains("3 dimensions"));
        assert!(shape("(99999999999, 2)").contains("at most 4294967295"));
        assert!(shape("(-1, 2)").contains("shape (-1, 2)"));
        let text = shape("(1, 4)");
        assert!(
            text.contains("has 152 bytes, but according to its header it should have 160"),
            "{text}"
        );
        assert!(
            shape("(1, 2)")
                .contains("has 152 bytes, but according to its header it should have 144")
        );
        assert!(shape("(4294967295, 4294967295)").contains("should have 147573952"));
        assert!(message(&array("<f8", false, "(0, 2)", &[])).contains("no rows"));
        assert!(shape("(3, 1)").contains("a target and at least one feature"));
        assert!(message(b"\x93NUMPY\x09\x01").contains("version 9.1"));
        assert!(message(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("4294967295 bytes"));
        assert!(
            message(b"\x93NUMPY\x01\x00\x40\x00{'descr").contains("ends inside the array header")
        );
        assert!(message(&file(1, "{'descr': '<f8'}", &[])).contains("cannot be read"));
        assert!(message(&file(1, "no dictionary", &[])).contains("cannot be read"));
        let forced = ReadOptions { format: Some(Format::Npy), ..ReadOptions::default() };
        let error = Dataset::from_reader("1,2\n".as_bytes(), &forced).unwrap_err().to_string();
        assert!(error.contains("not a NumPy array"), "{error}");
    }

    proptest! {
        /// Any bytes give a result or an error.
        #[test]
        fn any_bytes(at in 0_usize..200, bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut file = array("<f4", true, "(5, 3)", &[0; 60]);
            let at = at.min(file.len());
            let end = (at + bytes.len()).min(file.len());
            file.splice(at..end, bytes);
            let _ = plain(&file);
            let _ = plain(&file[..at]);
        }
    }

    #[test]
    fn arrays_without_labels_or_with_too_many_columns() {
        let items = f8(&[1.0, f64::NAN, 2.0, f64::NAN]);
        let options = ReadOptions { missing: Missing::Drop, ..ReadOptions::default() };
        let error = read(&Input::of_bytes(&array("<f8", false, "(2, 2)", &items)), &options);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("with a class label"), "{error}");
        let wide = array("|u1", false, "(1, 100002)", &vec![1; 100_002]);
        assert!(
            message(&wide).contains("100002 columns, more than the limit of 100000"),
            "{}",
            message(&wide)
        );
        // A truth value has one byte.
        assert!(plain(&array("<b2", false, "(1, 2)", &[0; 4])).is_err());
    }

    /// A column that is neither used nor the target is passed over.
    #[test]
    fn columns_may_be_left_out_of_an_array() {
        let items = f8(&[1.0, 7.0, 0.0, 2.0, 8.0, 1.0]);
        let options = ReadOptions { drop: vec!["x1".to_owned()], ..ReadOptions::default() };
        let data =
            read(&Input::of_bytes(&array("<f8", false, "(2, 3)", &items)), &options).unwrap();
        assert_eq!((data.x().as_slice(), data.y()), (&[7.0, 8.0][..], &[0, 1][..]));
    }
}
