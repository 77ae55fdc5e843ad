//! From bytes to text: bounded reading, UTF-8, and the lines of a file. Everything that reads a file starts here.

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Remedy, Result};

use crate::data::{MAX_COLUMNS, MAX_DENSE_BYTES, MAX_INPUT_BYTES};

/// What errors name in place of a path for a reader that has none.
const NO_PATH: &str = "<input>";

/// The whole text of a file.
pub(super) fn text_of_path(path: &Path) -> Result<String> {
    let file =
        std::fs::File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    text(file, path)
}

/// The whole text of a reader: at most [`MAX_INPUT_BYTES`], in UTF-8, without a byte order mark.
pub fn text_of_reader(reader: impl Read) -> Result<String> {
    text(reader, Path::new(NO_PATH))
}

fn text(reader: impl Read, path: &Path) -> Result<String> {
    let mut reader = reader;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let read = match reader.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => &chunk[..read],
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(source) => {
                return Err(Error::Io { path: path.to_owned(), source });
            }
        };
        // A text has no zero bytes. They are looked for in every chunk, so that an endless binary device is
        // refused here before it fills the memory.
        if let Some(at) = read.iter().position(|&b| b == 0) {
            bytes.extend_from_slice(&read[..at]);
            return Err(not_utf8(&bytes, 0));
        }
        bytes.extend_from_slice(read);
        if bytes.len() as u64 > MAX_INPUT_BYTES {
            return Err(Error::TooLarge {
                what: format!("the text of {}", path.display()),
                bytes: bytes.len() as u128,
                limit: u128::from(MAX_INPUT_BYTES),
                remedy: Remedy::UseLessData,
            });
        }
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let bytes = e.as_bytes();
        not_utf8(&bytes[..at], bytes.get(at).copied().unwrap_or_default())
    })
}

fn not_utf8(before: &[u8], byte: u8) -> Error {
    let mut lines = LineCounter::new(before);
    Error::Parse {
        line: lines.line_at(before.len()),
        message: format!(
            "byte 0x{byte:02X} is not valid text in UTF-8; save the file as plain text in UTF-8"
        ),
        remedy: None,
    }
}

/// Refuses a matrix of more than [`MAX_DENSE_BYTES`] before it is allocated.
pub(super) fn check_dense(rows: usize, width: usize) -> Result<()> {
    let bytes = (rows as u128 * width as u128).saturating_mul(8);
    if bytes > u128::from(MAX_DENSE_BYTES) {
        return Err(Error::TooLarge {
            what: format!("a dense table of {rows} rows and {width} columns"),
            bytes,
            limit: u128::from(MAX_DENSE_BYTES),
            remedy: Remedy::UseLessData,
        });
    }
    Ok(())
}

/// Refuses a table of more than [`MAX_COLUMNS`] feature columns.
pub(super) fn check_width(width: usize, line: u64) -> Result<()> {
    if width > MAX_COLUMNS {
        return Err(Error::Parse {
            line,
            message: format!(
                "{width} columns found where at most {MAX_COLUMNS} are allowed; check the delimiter or use fewer columns"
            ),
            remedy: None,
        });
    }
    Ok(())
}

/// Finds the line, counted from 1, of each of a series of ascending offsets in a text. LF, CRLF and a lone CR
/// each end a line.
pub(super) struct LineCounter<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 1 }
    }

    /// The line of the first byte at or after `offset` that is not part of a line end. Line ends are skipped
    /// because the CSV reader reports as the position of a record the end of the record before it; blank lines
    /// may lie between the two.
    pub(super) fn line_at(&mut self, offset: usize) -> u64 {
        while let Some(&byte) = self.bytes.get(self.at) {
            if self.at >= offset && !matches!(byte, b'\n' | b'\r') {
                break;
            }
            let ends = match byte {
                b'\n' => true,
                b'\r' => self.bytes.get(self.at + 1) != Some(&b'\n'),
                _ => false,
            };
            self.line += u64::from(ends);
            self.at += 1;
        }
        self.line
    }
}

/// The lines of a text with their numbers from 1; LF, CRLF and a lone CR each end a line.
#[derive(Clone)]
pub(super) struct Lines<'a> {
    rest: Option<&'a str>,
    line: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: Some(text), line: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = (u64, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest?;
        self.line += 1;
        let Some(end) = rest.find(['\n', '\r']) else {
            self.rest = None;
            return (!rest.is_empty()).then_some((self.line, rest));
        };
        let (line, after) = rest.split_at(end);
        self.rest = Some(after.strip_prefix("\r\n").unwrap_or(&after[1..]));
        Some((self.line, line))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn lines_of_all_three_kinds() {
        let lines: Vec<_> = Lines::new("a\r\nb\rc\n\nd").collect();
        assert_eq!(lines, [(1, "a"), (2, "b"), (3, "c"), (4, ""), (5, "d")]);
        assert_eq!(Lines::new("a\n").count(), 1);
        assert_eq!(Lines::new("").count(), 0);
    }

    #[test]
    fn the_line_counter_skips_line_ends() {
        let mut lines = LineCounter::new(b"ab\r\n\r\ncd\ref\n");
        assert_eq!(lines.line_at(0), 1);
        assert_eq!(lines.line_at(2), 3);
        assert_eq!(lines.line_at(6), 3);
        assert_eq!(lines.line_at(9), 4);
    }

    #[test]
    fn a_byte_order_mark_is_taken_off() {
        assert_eq!(text_of_reader(&b"\xef\xbb\xbfa"[..]).unwrap(), "a");
    }

    #[test]
    fn bytes_that_are_no_text_name_their_line() {
        let error = text_of_reader(&b"a\nb\n\xe9t\xe9"[..]).unwrap_err();
        assert!(matches!(error, Error::Parse { line: 3, .. }), "{error}");
        let error = text_of_reader(&b"\xff\xfea\0b\0"[..]).unwrap_err();
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }

    #[test]
    fn an_endless_stream_of_zeros_ends() {
        assert!(text_of_reader(std::io::repeat(0)).is_err());
    }

    #[test]
    fn a_missing_file_names_its_path() {
        let error = text_of_path(Path::new("no/such/file.csv")).unwrap_err();
        assert!(error.to_string().starts_with("no/such/file.csv: "));
    }

    #[test]
    fn large_tables_are_refused_before_they_are_allocated() {
        assert!(check_dense(1 << 14, 1 << 14).is_ok());
        assert!(check_dense((1 << 14) + 1, 1 << 14).is_err());
        assert!(check_dense(usize::MAX, usize::MAX).is_err());
    }
}
