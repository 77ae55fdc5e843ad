//! From bytes to text: what is read, in pieces of whole records, as UTF-8, and the lines of a file. Everything that
//! reads a file starts here.
//!
//! A file is never held whole: it is read in pieces, several at a time, and may be read again from its start. What can
//! be read only once, such as a pipe, is kept in memory.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Error, Remedy, Result};
use crate::files;
use crate::memory;
use crate::parallel;

use super::npy;
use crate::data::{MAX_COLUMNS, MAX_INPUT_BYTES};

/// What errors name in place of a path for a reader that has none.
const NO_PATH: &str = "<input>";
/// Bytes of a piece, unless a record is longer: large enough that joining pieces costs nothing, small enough that
/// those in flight do not count beside the numbers.
const PIECE: usize = 1 << 20;
/// Bytes of the start of a file that are looked at first, to find out what it is.
const HEAD: usize = 1 << 18;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Something to read: a file, which can be opened again, or bytes in memory.
pub struct Input<'a> {
    path: PathBuf,
    /// All bytes, unless it is a file.
    bytes: Option<Cow<'a, [u8]>>,
    size: u64,
    piece: usize,
    watch: Option<Box<dyn Fn(u64, u64) + Sync + 'a>>,
}

impl<'a> Input<'a> {
    /// A file. One that can be read only once, such as a pipe, is read into memory now.
    pub fn of_path(path: &Path) -> Result<Self> {
        let (file, length) = files::open(path)?;
        let Some(size) = length else { return Self::all_of(file, path) };
        check_size(size, path)?;
        Ok(Self { path: path.to_owned(), bytes: None, size, ..Self::of_bytes(b"") })
    }

    /// All of a reader, which is read into memory now.
    pub fn of_reader(reader: impl Read) -> Result<Self> {
        Self::all_of(reader, Path::new(NO_PATH))
    }

    /// Bytes that are in memory.
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        Self {
            path: PathBuf::from(NO_PATH),
            bytes: Some(Cow::Borrowed(bytes)),
            size: bytes.len() as u64,
            piece: PIECE,
            watch: None,
        }
    }

    fn all_of(reader: impl Read, path: &Path) -> Result<Self> {
        let bytes = bytes(reader, path)?;
        let size = bytes.len() as u64;
        Ok(Self {
            path: path.to_owned(),
            bytes: Some(Cow::Owned(bytes)),
            size,
            ..Self::of_bytes(b"")
        })
    }

    /// Calls `watch` with the number of bytes read so far and that of all, now and then. It starts again from zero
    /// where the file has to be read once more.
    pub fn watched(self, watch: impl Fn(u64, u64) + Sync + 'a) -> Self {
        Self { watch: Some(Box::new(watch)), ..self }
    }

    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// With pieces of so many bytes.
    #[cfg(test)]
    pub(super) fn in_pieces(self, piece: usize) -> Self {
        Self { piece, ..self }
    }

    /// Opens it at its start.
    pub(super) fn open(&self) -> Result<Box<dyn Read + Send + Sync + '_>> {
        Ok(match &self.bytes {
            Some(bytes) => Box::new(&bytes[..]),
            None => Box::new(files::open(&self.path)?.0),
        })
    }

    /// A failure of the system while it was read.
    pub(super) fn failed(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.path.clone(), source }
    }

    /// Says how far reading is.
    pub(super) fn report(&self, done: u64) {
        if let Some(watch) = &self.watch {
            watch(done, self.size);
        }
    }

    /// The error for a file that was not the same when it was read again.
    pub(super) fn changed(&self) -> Error {
        Error::Data {
            what: "the file changed while it was being read; read it again when it is complete"
                .to_owned(),
            remedy: None,
        }
    }

    /// Whether it is an array of numpy, by its first bytes.
    pub fn is_npy(&self) -> Result<bool> {
        let mut start = Vec::new();
        let wanted = npy::MAGIC.len() as u64;
        self.open()?.take(wanted).read_to_end(&mut start).map_err(|e| self.failed(e))?;
        Ok(start == npy::MAGIC)
    }

    /// Looks at the start of the text. `look` is given the text, up to any character, and whether it is all there is;
    /// as long as it returns nothing and there is more, it is called again with more.
    pub(super) fn head<T>(
        &self,
        mut look: impl FnMut(&str, bool) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut size = HEAD;
        loop {
            let mut bytes = Vec::new();
            let limit = size as u64 + BYTE_ORDER_MARK.len() as u64;
            self.open()?.take(limit).read_to_end(&mut bytes).map_err(|e| self.failed(e))?;
            let whole = (bytes.len() as u64) < limit;
            if bytes.starts_with(BYTE_ORDER_MARK) {
                bytes.drain(..BYTE_ORDER_MARK.len());
            }
            let cut = match std::str::from_utf8(&bytes) {
                // The last character is there only in part.
                Err(e) if e.error_len().is_none() && !whole => e.valid_up_to(),
                _ => bytes.len(),
            };
            let found = look(text_of(&bytes[..cut], 1)?, whole)?;
            if found.is_some() || whole {
                return Ok(found);
            }
            size = size.saturating_mul(4);
        }
    }

    /// Reads all pieces, several at a time. Each is cut off where `end` finds the end of the last whole record in
    /// bytes that begin with a record. `parse` turns pieces into results in parallel, and `join` takes these in the
    /// order of the file, so that the first error in the file is the one that is returned. `prepare` is called with
    /// each piece before, in order.
    pub(super) fn for_pieces<A: Send, T: Send>(
        &self,
        end: impl Fn(&[u8]) -> Option<usize> + Sync,
        mut prepare: impl FnMut(&Piece) -> Result<A>,
        parse: impl Fn(&Piece, A) -> Result<T> + Sync,
        mut join: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let mut pieces = Pieces {
            reader: self.open()?,
            input: self,
            rest: Vec::new(),
            line: 1,
            read: 0,
            ended: false,
        };
        let many = 2 * rayon::current_num_threads();
        let mut batch = pieces.several(many, &end);
        while !batch.0.is_empty() || batch.1.is_some() {
            let (now, failure) = batch;
            let mut ready = Vec::with_capacity(now.len());
            let mut refused = None;
            for piece in now {
                match prepare(&piece) {
                    Ok(with) => ready.push((piece, with)),
                    Err(e) => {
                        refused = Some(e);
                        break;
                    }
                }
            }
            let last = refused.is_some() || failure.is_some();
            let (parsed, next) = rayon::join(
                || parallel::map(ready, |(piece, with)| parse(&piece, with)),
                || if last { (Vec::new(), None) } else { pieces.several(many, &end) },
            );
            for result in parsed {
                join(result?)?;
            }
            if let Some(e) = refused.or(failure) {
                return Err(e);
            }
            self.report(pieces.read);
            batch = next;
        }
        Ok(())
    }
}

/// Whole records of a text.
pub(super) struct Piece {
    bytes: Vec<u8>,
    /// The line, from 1, on which it begins.
    pub line: u64,
}

impl Piece {
    /// Its text.
    pub(super) fn text(&self) -> Result<&str> {
        text_of(&self.bytes, self.line)
    }
}

struct Pieces<'a> {
    reader: Box<dyn Read + Send + Sync + 'a>,
    input: &'a Input<'a>,
    /// What was read and does not belong to a piece yet.
    rest: Vec<u8>,
    line: u64,
    read: u64,
    ended: bool,
}

impl Pieces<'_> {
    /// The next pieces; fewer, and why, if reading failed.
    fn several(
        &mut self,
        many: usize,
        end: &impl Fn(&[u8]) -> Option<usize>,
    ) -> (Vec<Piece>, Option<Error>) {
        let mut pieces = Vec::with_capacity(many);
        while pieces.len() < many {
            match self.next(end) {
                Ok(Some(piece)) => pieces.push(piece),
                Ok(None) => break,
                Err(e) => return (pieces, Some(e)),
            }
        }
        (pieces, None)
    }

    fn next(&mut self, end: &impl Fn(&[u8]) -> Option<usize>) -> Result<Option<Piece>> {
        let mut size = self.input.piece;
        loop {
            self.fill(size)?;
            if self.ended && self.rest.is_empty() {
                return Ok(None);
            }
            let cut = if self.ended { Some(self.rest.len()) } else { end(&self.rest) };
            if let Some(cut) = cut.filter(|&cut| cut > 0) {
                let after = self.rest.split_off(cut);
                let bytes = std::mem::replace(&mut self.rest, after);
                let line = self.line;
                self.line += line_ends(&bytes);
                return Ok(Some(Piece { bytes, line }));
            }
            // A record that is longer than a piece; in doubled steps, so that it is not searched too often.
            size = size.saturating_mul(2);
        }
    }

    /// Reads until `size` bytes are there or there are no more.
    fn fill(&mut self, size: usize) -> Result<()> {
        if self.ended || self.rest.len() >= size {
            return Ok(());
        }
        let first = self.read == 0;
        let wanted = size - self.rest.len() + if first { BYTE_ORDER_MARK.len() } else { 0 };
        self.rest.reserve_exact(wanted);
        let got = (&mut self.reader)
            .take(wanted as u64)
            .read_to_end(&mut self.rest)
            .map_err(|e| self.input.failed(e))?;
        self.ended = got < wanted;
        self.read += got as u64;
        check_size(self.read, &self.input.path)?;
        if first && self.rest.starts_with(BYTE_ORDER_MARK) {
            self.rest.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(())
    }
}

/// The end of the last line that ends in some bytes. A CR at their very end does not count, because an LF may follow.
pub(super) fn last_line_end(bytes: &[u8]) -> Option<usize> {
    let inner = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    inner.iter().rposition(|&b| matches!(b, b'\n' | b'\r')).map(|at| at + 1)
}

/// How many lines end in some bytes, after which no LF of the same line end follows.
fn line_ends(bytes: &[u8]) -> u64 {
    let feeds = bytes.iter().filter(|&&b| b == b'\n').count();
    let lone = match bytes.contains(&b'\r') {
        true => {
            let returns = bytes.iter().filter(|&&b| b == b'\r').count();
            returns - bytes.windows(2).filter(|pair| pair == b"\r\n").count()
        }
        false => 0,
    };
    (feeds + lone) as u64
}

/// Bytes as text; `line` is that on which they begin.
fn text_of(bytes: &[u8], line: u64) -> Result<&str> {
    let zero = bytes.iter().position(|&b| b == 0);
    match std::str::from_utf8(&bytes[..zero.unwrap_or(bytes.len())]) {
        Ok(_) if zero.is_some() => Err(not_utf8(&bytes[..zero.unwrap_or_default()], 0, line)),
        Ok(text) => Ok(text),
        Err(e) => {
            let at = e.valid_up_to();
            Err(not_utf8(&bytes[..at], bytes.get(at).copied().unwrap_or_default(), line))
        }
    }
}

/// The whole text of a reader: at most [`MAX_INPUT_BYTES`], in UTF-8, without a byte order mark.
pub fn text_of_reader(reader: impl Read) -> Result<String> {
    let mut bytes = bytes(reader, Path::new(NO_PATH))?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    text_of(&bytes, 1)?;
    String::from_utf8(bytes)
        .map_err(|e| not_utf8(&[], e.as_bytes().first().copied().unwrap_or_default(), 1))
}

/// All bytes of a reader: at most [`MAX_INPUT_BYTES`].
fn bytes(reader: impl Read, path: &Path) -> Result<Vec<u8>> {
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
        memory::reserve(&mut bytes, read.len(), "an input that is held while it is read")?;
        bytes.extend_from_slice(read);
        // A text has no zero bytes. They are looked for in every chunk, so that an endless binary device is
        // refused here before it fills the memory.
        if read.contains(&0) && !bytes.starts_with(npy::MAGIC) {
            let zero = bytes.iter().position(|&b| b == 0).unwrap_or_default();
            return Err(not_utf8(&bytes[..zero], 0, 1));
        }
        check_size(bytes.len() as u64, path)?;
    }
    Ok(bytes)
}

fn check_size(bytes: u64, path: &Path) -> Result<()> {
    if bytes > MAX_INPUT_BYTES {
        return Err(Error::TooLarge {
            what: format!("the content of {}", path.display()),
            bytes: u128::from(bytes),
            limit: u128::from(MAX_INPUT_BYTES),
            remedy: Remedy::UseLessData,
        });
    }
    Ok(())
}

fn not_utf8(before: &[u8], byte: u8, line: u64) -> Error {
    let mut lines = LineCounter::new(before);
    Error::Parse {
        line: line - 1 + lines.line_at(before.len()),
        message: format!(
            "byte 0x{byte:02X} is not valid UTF-8; save the file as plain text in UTF-8"
        ),
        remedy: None,
    }
}

/// Refuses a table of more than [`MAX_COLUMNS`] feature columns, or of more than there is memory for.
pub(super) fn check_width(width: usize, line: u64) -> Result<()> {
    if width > MAX_COLUMNS {
        return Err(Error::Parse {
            line,
            message: format!(
                "found {width} columns, more than the limit of {MAX_COLUMNS}; check the delimiter, or use fewer columns"
            ),
            remedy: None,
        });
    }
    memory::room_for(memory::READING_A_COLUMN * width, "the columns of a table")
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
        let Some(end) = rest.bytes().position(|b| matches!(b, b'\n' | b'\r')) else {
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
    use crate::data::MAX_DENSE_BYTES;
    use crate::data::coding::check_dense;

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
        let error = Input::of_path(Path::new("no/such/file.csv")).map(|i| i.size()).unwrap_err();
        assert!(error.to_string().starts_with("no/such/file.csv: "));
    }

    #[test]
    fn large_tables_are_refused_before_they_are_allocated() {
        let bound = |rows: usize| match check_dense(rows, 1 << 14) {
            Err(Error::TooLarge { limit, .. }) => limit == u128::from(MAX_DENSE_BYTES),
            _ => false,
        };
        // Whether there is memory for it is another question.
        assert!(!bound(1 << 14) && bound((1 << 14) + 1));
        assert!(check_dense(usize::MAX, usize::MAX).is_err());
    }

    /// A reader that fails with these kinds of errors before it goes on.
    struct Failing(Vec<std::io::ErrorKind>, &'static [u8]);

    impl Read for Failing {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            match self.0.pop() {
                Some(kind) => Err(kind.into()),
                None => self.1.read(out),
            }
        }
    }

    /// A call that was interrupted is made again; any other failure names where it was.
    #[test]
    fn failures_of_a_reader() {
        use std::io::ErrorKind::{Interrupted, UnexpectedEof};
        let read = |kinds: &[std::io::ErrorKind]| {
            bytes(Failing(kinds.to_vec(), b"1,2\n"), Path::new("there"))
        };
        assert_eq!(read(&[Interrupted, Interrupted]).unwrap(), b"1,2\n");
        let error = read(&[UnexpectedEof]).unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if path == Path::new("there")), "{error}");
        assert!(check_size(MAX_INPUT_BYTES, Path::new("there")).is_ok());
        let error = check_size(MAX_INPUT_BYTES + 1, Path::new("there")).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }) && error.to_string().contains("there"));
    }
}
