//! The LIBSVM format: `label index:value index:value ...`, one row per line, zeros left out, indices from 1 in
//! ascending order, `#` before a comment. Rows are stored dense. The file is read twice, in parallel: first, quickly,
//! for the numbers of rows and columns, then to check it and to fill the matrix, so that no copy of its entries is kept.

use crate::error::{Error, Result};
use crate::linalg::Matrix;

use super::chosen::{only_columns, said};
use super::pool::Pool;
use super::source::{Input, Lines, Piece, last_line_end};
use crate::data::cell::excerpt;
use crate::data::coding::check_dense;
use crate::data::dataset::in_range;
use crate::data::options::{Format, ReadOptions, Target};
use crate::data::schema::{Schema, TargetColumn};
use crate::data::{Dataset, LIMIT, MAX_COLUMNS, labels};

/// How many of the first rows decide whether a text is in this format.
const SAMPLE: usize = 10;

/// Whether a text is in this format: each of its first ten rows is a number followed by `index:value` pairs, and
/// there is at least one pair in all. With `new_rows` the number may be absent, and so may all pairs. Training rows that
/// only have another label, or a `qid`, are meant to be in this format too; reading them says what is wrong.
///
/// The text is the start of one. Nothing is returned if it is not `whole` and has too few rows to tell.
pub(super) fn is_libsvm(text: &str, whole: bool, new_rows: bool) -> Option<bool> {
    let text = match whole {
        true => text,
        false => &text[..last_line_end(text.as_bytes()).unwrap_or(0)],
    };
    let mut pairs = 0;
    let mut seen = 0;
    let mut odd = false;
    for (_, content) in rows(text, 1).take(SAMPLE) {
        seen += 1;
        let mut tokens = content.split_ascii_whitespace().peekable();
        let label = tokens.next_if(|token| !token.contains(':'));
        let label_fits = match label {
            Some(label) => label.parse::<f64>().is_ok(),
            None => new_rows,
        };
        let all_pairs = tokens.clone().all(|token| pair(token).is_some());
        if !label_fits || !all_pairs {
            odd = true;
            if new_rows || label.is_none() || !is_almost(tokens.clone()) {
                return Some(false);
            }
        }
        pairs += tokens.count();
    }
    if odd && seen < 2 {
        return Some(false);
    }
    (whole || seen == SAMPLE).then_some(seen > 0 && (new_rows || pairs > 0))
}

/// Whether what follows a label can be nothing but the pairs of this format, besides a `qid`: they ascend, and are no times
/// of the day.
fn is_almost<'a>(tokens: impl Iterator<Item = &'a str> + Clone) -> bool {
    let entries = || tokens.clone().filter(|token| !token.starts_with(QUERY));
    let is_time = |token: &str| token.len() == 5 && token.as_bytes()[2] == b':';
    let found: Option<Vec<u64>> =
        entries().map(|token| pair(token).map(|(index, _)| index)).collect();
    found.is_some_and(|found| {
        !found.is_empty() && found.windows(2).all(|two| two[0] < two[1]) && !entries().all(is_time)
    })
}

/// What a query of the ranking format begins with.
const QUERY: &str = "qid:";

/// Reads training data.
pub(super) fn read(input: &Input, options: &ReadOptions) -> Result<Dataset> {
    if let Target::Column(column) = &options.target {
        return Err(Error::parameter(
            "target",
            excerpt(column),
            "omitted for a LIBSVM file, where the label is the first number of each line",
        ));
    }
    options.refuse_groups()?;
    let survey = Survey::of(input)?;
    let count = survey.rows.iter().sum();
    let dense = check_dense(count, survey.width);
    if survey.width == 0 || survey.faulty || dense.is_err() {
        // There will be an error; one in a line comes before one about all of them.
        check(input)?;
        if count == 0 {
            return Err(Error::NoRows(String::new()));
        }
        dense?;
        return Err(Error::Parse {
            line: survey.first_line,
            message: "neither this line nor any after it holds an index:value pair; at least one feature is needed".to_owned(),
            remedy: None,
        });
    }
    let width = survey.width;
    let (x, found) = fill(input, &survey, width, true)?;
    let labels = labels::encode_numbers(found.rows.iter().map(|&id| found.pool.get(id as usize)));
    let target = TargetColumn { name: "label".to_owned(), position: 0, numeric: labels.numeric };
    let names: Vec<String> = (1..=width).map(|index| index.to_string()).collect();
    let said = said(&names, None, options)?;
    let mut schema = Schema::of_numbers(names, target, Format::Libsvm);
    schema.missing = options.missing;
    let x = only_columns(x, &schema.choose(said.into_iter())?);
    let weights = vec![1.0; x.rows()];
    Ok(Dataset { x, y: labels.y, classes: labels.classes, schema, weights, groups: None })
}

/// Reads rows of `width` columns; entries of larger index are left out. Labels are returned if every row has a
/// number before its first pair.
pub(super) fn read_new(input: &Input, width: usize) -> Result<(Matrix, Option<Vec<String>>)> {
    let survey = Survey::of(input)?;
    if survey.rows.iter().sum::<usize>() == 0 {
        return Err(Error::NoRows(" to predict".to_owned()));
    }
    let (x, found) = fill(input, &survey, width, false)?;
    let label = |&id: &u32| (id > 0).then(|| found.pool.get(id as usize).to_owned());
    let labels = found.rows.iter().map(label).collect();
    Ok((x, labels))
}

/// What has to be known of a file before its matrix can be filled.
struct Survey {
    /// Rows of each piece.
    rows: Vec<usize>,
    /// The largest index.
    width: usize,
    /// Whether a line has a last index that cannot be.
    faulty: bool,
    /// Line of the first row.
    first_line: u64,
}

impl Survey {
    fn of(input: &Input) -> Result<Self> {
        let mut all = Self { rows: Vec::new(), width: 0, faulty: false, first_line: 0 };
        let parse = |piece: &Piece, ()| {
            let mut part = Self { rows: vec![0], width: 0, faulty: false, first_line: 0 };
            for (line, content) in rows(piece.text()?, piece.line) {
                if part.rows[0] == 0 {
                    part.first_line = line;
                }
                part.rows[0] += 1;
                // Indices ascend, so that the last one is the largest; if they do not, that will be an error.
                let Some(end) = content.bytes().rposition(|b| b == b':') else { continue };
                let digits = content[..end].bytes().rev().take_while(u8::is_ascii_digit).count();
                match content[end - digits..end].parse() {
                    Ok(index) if index <= MAX_COLUMNS => part.width = part.width.max(index),
                    _ => part.faulty = true,
                }
            }
            Ok(part)
        };
        input.for_pieces(
            last_line_end,
            |_| Ok(()),
            parse,
            |part: Self| {
                if all.first_line == 0 {
                    all.first_line = part.first_line;
                }
                all.rows.extend(part.rows);
                all.width = all.width.max(part.width);
                all.faulty |= part.faulty;
                Ok(())
            },
        )?;
        Ok(all)
    }
}

/// The labels of rows.
#[derive(Default)]
struct Found {
    pool: Pool,
    /// Numbers of the pool; 0 for a row without a label.
    rows: Vec<u32>,
}

/// The rows of a text that begins on line `first`, with their lines, without comments; blank ones are skipped.
fn rows(text: &str, first: u64) -> impl Iterator<Item = (u64, &str)> + Clone {
    Lines::new(text)
        .map(move |(line, content)| {
            let end = content.bytes().position(|b| b == b'#').unwrap_or(content.len());
            (first + line - 1, content[..end].trim())
        })
        .filter(|(_, content)| !content.is_empty())
}

fn label_of(row: &str) -> Option<&str> {
    row.split_ascii_whitespace().next().filter(|token| token.parse().is_ok_and(f64::is_finite))
}

/// Looks for errors in the rows of training data.
fn check(input: &Input) -> Result<()> {
    let parse = |piece: &Piece, ()| {
        rows(piece.text()?, piece.line)
            .try_for_each(|(line, content)| training_row(line, content, |_, _| Ok(())).map(drop))
    };
    input.for_pieces(last_line_end, |_| Ok(()), parse, Ok)
}

/// Fills the matrix, piece by piece. Training data must have labels and no index above the width.
fn fill(input: &Input, survey: &Survey, width: usize, training: bool) -> Result<(Matrix, Found)> {
    let count = survey.rows.iter().sum();
    check_dense(count, width)?;
    // Memory that is zeroed and never written to takes no space, so zeros are not written: sparse rows stay
    // cheap to read.
    let mut data = vec![0.0; count * width];
    let mut free = &mut data[..];
    let mut pieces = survey.rows.iter();
    let mut all = Found::default();
    input.for_pieces(
        last_line_end,
        |_| {
            let rows = *pieces.next().ok_or_else(|| input.changed())?;
            let (now, later) = std::mem::take(&mut free).split_at_mut(rows * width);
            free = later;
            Ok((now, rows))
        },
        |piece, (out, expected)| {
            let mut found = Found::default();
            let mut out = out.chunks_exact_mut(width);
            for (line, content) in rows(piece.text()?, piece.line) {
                let row = out.next().ok_or_else(|| input.changed())?;
                let mut each = |index: u64, value: f64| {
                    if index <= width as u64 {
                        in_range_at(value, line, index)?;
                        if value != 0.0 {
                            row[index as usize - 1] = value;
                        }
                    }
                    Ok(())
                };
                let label = match training {
                    true => Some(training_row(line, content, &mut each)?),
                    false => {
                        each_entry(line, content, &mut each)?;
                        label_of(content)
                    }
                };
                found.rows.push(label.map_or(0, |label| found.pool.number(label) as u32));
            }
            if found.rows.len() != expected {
                return Err(input.changed());
            }
            Ok(found)
        },
        |part| {
            let ids: Vec<u32> =
                part.pool.texts().map(|text| all.pool.number(text) as u32).collect();
            let id = |&id: &u32| if id == 0 { 0 } else { ids[id as usize - 1] };
            all.rows.extend(part.rows.iter().map(id));
            Ok(())
        },
    )?;
    if all.rows.len() != count {
        return Err(input.changed());
    }
    Ok((Matrix::new(count, width, data)?, all))
}

fn in_range_at(value: f64, line: u64, index: u64) -> Result<()> {
    match value.abs() <= LIMIT {
        true => Ok(()),
        false => in_range(value, line as usize, &index.to_string()).map(drop),
    }
}

/// Checks a row of training data, calls `each` with each of its entries and returns its label.
fn training_row(
    line: u64,
    content: &str,
    mut each: impl FnMut(u64, f64) -> Result<()>,
) -> Result<&str> {
    let label = each_entry(line, content, |index, value| {
        if index > MAX_COLUMNS as u64 {
            return Err(Error::Parse {
                line,
                message: format!(
                    "index {index} is above the maximum of {MAX_COLUMNS} columns; use fewer columns"
                ),
                remedy: None,
            });
        }
        each(index, value)
    })?;
    label.filter(|l| l.parse().is_ok_and(f64::is_finite)).ok_or_else(|| Error::Parse {
        line,
        message: format!(
            "found '{}', but a numeric class label is expected; number the classes, or use a CSV table, in which classes can have names",
            excerpt(content.split_ascii_whitespace().next().unwrap_or_default())
        ),
        remedy: None,
    })
}

/// An `index:value` pair, if the token has that form.
fn pair(token: &str) -> Option<(u64, f64)> {
    let (index, value) = token.split_once(':')?;
    // Digits only: the integer parser also takes a sign.
    let digits = index.bytes().all(|b| b.is_ascii_digit());
    let index = index.parse().ok().filter(|_| digits)?;
    Some((index, value.parse().ok()?))
}

/// Checks a row and calls `each` with each of its entries. Returns the token before them, the label, if there
/// is one.
fn each_entry(
    line: u64,
    content: &str,
    mut each: impl FnMut(u64, f64) -> Result<()>,
) -> Result<Option<&str>> {
    let mut tokens = content.split_ascii_whitespace().peekable();
    let label = tokens.next_if(|token| !token.contains(':'));
    let mut last = 0;
    for token in tokens {
        let refuse = |reason: String| Error::Parse {
            line,
            message: format!("'{}': {reason}", excerpt(token)),
            remedy: None,
        };
        if token.starts_with(QUERY) {
            return Err(refuse(
                "query identifiers are only used for ranking; remove them".to_owned(),
            ));
        }
        let (index, value) = pair(token).ok_or_else(|| {
            refuse("expected a pair index:value of an integer and a number".to_owned())
        })?;
        if index == 0 {
            return Err(refuse("indices must start from 1".to_owned()));
        }
        if index <= last {
            return Err(refuse(format!(
                "indices must be ascending, but the previous one is {last}"
            )));
        }
        if !value.is_finite() {
            return Err(refuse("the value must be a finite number".to_owned()));
        }
        last = index;
        each(index, value)?;
    }
    Ok(label)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::data::Missing;

    fn read(text: &str, options: &ReadOptions) -> Result<Dataset> {
        super::read(&Input::of_bytes(text.as_bytes()), options)
    }

    fn read_new(text: &str, width: usize) -> Result<(Matrix, Option<Vec<String>>)> {
        super::read_new(&Input::of_bytes(text.as_bytes()), width)
    }

    fn is_libsvm(text: &str, new_rows: bool) -> bool {
        super::is_libsvm(text, true, new_rows).unwrap()
    }

    fn plain(text: &str) -> Result<Dataset> {
        read(text, &ReadOptions::default())
    }

    #[test]
    fn sparse_rows_become_dense() {
        let text = "# made by hand\n+1 1:0.5 3:-2 # note 1:2\r\n\n-1\r1.0 2:1e3";
        let data = plain(text).unwrap();
        assert_eq!(data.x().as_slice(), [0.5, 0.0, -2.0, 0.0, 0.0, 0.0, 0.0, 1000.0, 0.0]);
        assert_eq!(data.classes(), ["-1", "1"]);
        assert_eq!(data.y(), [1, 0, 1]);
        let schema = data.schema();
        assert_eq!(schema.encoded_names(), ["1", "2", "3"]);
        assert_eq!(schema.format(), Format::Libsvm);
        assert_eq!(schema.target().position, 0);
        schema.validate().unwrap();
    }

    #[test]
    fn the_policy_for_missing_values_is_kept() {
        let options = ReadOptions { missing: Missing::Impute, ..ReadOptions::default() };
        let data = read("1 1:1\n", &options).unwrap();
        assert_eq!(data.schema().missing(), Missing::Impute);
    }

    #[test]
    fn faults_name_line_and_token() {
        for (row, part) in [
            ("1 0:1", "'0:1': indices must start from 1"),
            ("1 2:1 1:1", "'1:1': indices must be ascending"),
            ("1 2:1 2:1", "'2:1': indices must be ascending"),
            ("1 junk", "'junk': expected a pair"),
            ("1 1:", "'1:': expected a pair"),
            ("1 :1", "':1': expected a pair"),
            ("1 +1:1", "'+1:1': expected a pair"),
            ("1 1:2:3", "'1:2:3': expected a pair"),
            ("1 99999999999999999999:1", "expected a pair"),
            ("1 qid:3 1:1", "'qid:3': query identifiers are only used for ranking"),
            ("1 1:nan", "'1:nan': the value must be a finite number"),
            ("1 1:inf", "'1:inf': the value must be a finite number"),
            ("1 100001:1", "index 100001 is above the maximum of 100000"),
            ("1:1 2:2", "found '1:1', but a numeric class label"),
            ("yes 1:1", "found 'yes', but a numeric class label"),
            ("nan 1:1", "found 'nan', but a numeric class label"),
        ] {
            let text = format!("1 1:1\n\n{row}\n");
            let message = plain(&text).unwrap_err().to_string();
            assert!(message.starts_with("line 3: "), "{row}: {message}");
            assert!(message.contains(part), "{row}: {message}");
        }
        let error = plain("1 1:1\n1 2:1e301\n").unwrap_err();
        assert!(matches!(error, Error::OutOfRange { row: 2, column, .. } if column == "2"));
        assert!(matches!(plain("# only\n"), Err(Error::NoRows(_))));
        assert!(plain("\n1\n-1\n").unwrap_err().to_string().starts_with("line 2: neither"));
        let target =
            ReadOptions { target: Target::Column("1".to_owned()), ..ReadOptions::default() };
        assert!(read("1 1:1\n", &target).is_err());
    }

    #[test]
    fn the_largest_index_and_value_are_read() {
        assert_eq!(plain("1 100000:1\n").unwrap().columns(), 100_000);
        assert_eq!(plain("1 1:-1e300\n").unwrap().x().as_slice(), [-1e300]);
    }

    #[test]
    fn the_start_of_a_file_tells_from_ten_rows_on() {
        let rows = |n: usize| "1 1:1\n".repeat(n);
        let start = |text: &str| super::is_libsvm(text, false, false);
        assert_eq!(start(&rows(9)), None);
        assert_eq!(start(&rows(10)), Some(true));
        // A row that may go on is none.
        assert_eq!(start(&(rows(9) + "1 1:1")), None);
        assert_eq!(start("1,2\n"), Some(false));
        assert_eq!(start(&(rows(10) + "1,2\n")), Some(true));
    }

    #[test]
    fn too_many_numbers_are_refused() {
        let text = "1 100000:1\n".repeat(2_685);
        let error = plain(&text).map(|d| d.rows()).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }

    #[test]
    fn the_format_is_recognised() {
        for (text, training, new_rows) in [
            ("1 1:1\n", true, true),
            ("# c\n\n+1 1:1 2:3 # c\n-1\n", true, true),
            ("1:1 2:1\n", false, true),
            ("1\n-1\n", false, true),
            ("", false, false),
            ("1,2\n", false, false),
            ("1 2\n", false, false),
            ("a 1:1\n", false, false),
            ("1 1:1\n1,2\n", false, false),
            ("12:30 5\n", false, false),
            // Meant to be in this format, and refused by its reader.
            ("1 qid:1 1:1\n0 qid:1 2:1\n", true, false),
            ("a 1:1\nb 2:1\n", true, false),
            ("0,1 1:1 2:5\n1 2:1\n", true, false),
            ("a 1:1\nb\n", false, false),
            ("mon 08:00 12:30\ntue 09:00 13:00\n", false, false),
            ("mon 1:0.5 2:1.5\ntue 1:2.5 2:0.5\n", true, false),
            ("mon 10:2 20:3\ntue 10:4 20:5\n", true, false),
            ("a 2:1 1:1\nb 1:1\n", false, false),
            ("a 1:1 1:2\nb 1:1\n", false, false),
        ] {
            assert_eq!(is_libsvm(text, false), training, "{text:?}");
            assert_eq!(is_libsvm(text, true), new_rows, "{text:?}");
        }
    }

    #[test]
    fn new_rows_are_cut_or_filled_to_the_width_of_training() {
        let (x, labels) = read_new("1 1:1 7:9\n-1 2:4 18446744073709551615:1\n", 3).unwrap();
        assert_eq!(x.as_slice(), [1.0, 0.0, 0.0, 0.0, 4.0, 0.0]);
        assert_eq!(labels.unwrap(), ["1", "-1"]);
        for text in ["1:1\n2:4\n", "1 1:1\n2:4\n", "? 1:1\n"] {
            assert_eq!(read_new(text, 3).unwrap().1, None);
        }
        assert!(read_new("1 2:1 1:1\n", 1).is_err());
        assert!(matches!(read_new("", 1), Err(Error::NoRows(_))));
    }

    #[test]
    fn zeros_may_be_written_out() {
        let data = plain("1 1:0 2:3\n-1 1:2 2:0.0\n").unwrap();
        assert_eq!(data.x().as_slice(), [0.0, 3.0, 2.0, 0.0]);
    }
}
