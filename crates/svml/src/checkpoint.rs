//! What a long fit has computed so far, in a file, so that a fit that was killed goes on where it stopped.
//!
//! Learning is deterministic. So the file does not hold the state of the program but a record of expensive results: the
//! loss and its gradient at a point, an SVM that was trained, the errors of a width of the grid. A result has a [`Key`], a
//! hash of all that it depends on. A fit that is started again does everything once more, in any order and on any number of
//! threads, and takes from the file what is there instead of computing it. Therefore what comes out has the same bits.
//!
//! The file, all numbers little-endian:
//!
//! ```text
//! head     "svml checkpoint\n", version of svml (one byte of length, text), key of the data, key of the parameters, CRC-32
//! record   length of the value (8 bytes), key (16 bytes), CRC-32 of length, key and value (4 bytes), value
//! ```
//!
//! Records are appended and never changed. A record that was cut off, by a kill in the middle of writing it, is recognised by
//! its checksum, and the file goes on from the last whole one. A value holds row numbers, coefficients, outputs and
//! gradients, but no rows.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
// Systems without a clock have no files either.
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Remedy, Result};

const MAGIC: &[u8; 16] = b"svml checkpoint\n";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Bytes of a record before its value.
const BEFORE_VALUE: usize = 8 + 16 + 4;
/// What took less time than this is computed again.
const WORTH_RECORDING: Duration = Duration::from_millis(1);
/// For each second that a result took, at most so many bytes of it are recorded: to write them takes about a hundredth of that
/// time.
const BYTES_PER_SECOND: f64 = 4e6;
/// Nothing more is recorded in a file of so many bytes.
const MOST_BYTES: u64 = 4 << 30;
/// The system is asked so often to bring to the disk what was written. A kill of the process loses none of it, a power cut
/// at most what was written since.
const SYNC_EVERY: Duration = Duration::from_secs(5);
/// Nor more often than this many times what asking takes.
const SYNC_SHARE: u32 = 100;

/// 128 bits that stand for all that a result depends on. Each method returns the key with something more in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key(u64, u64);

impl Key {
    /// Of what is computed.
    pub fn new(what: &str) -> Self {
        Self(0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03).text(what)
    }

    /// A number more. Either half is a bijection of the number, and of what it was before.
    fn word(self, word: u64) -> Self {
        let a = (self.0 ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(31);
        let b = (self.1.rotate_left(23) ^ word).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        Self(a, b ^ (b >> 29))
    }

    /// With a text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        let key = words
            .iter()
            .fold(self.word(text.len() as u64), |key, word| key.word(u64::from_le_bytes(*word)));
        rest.iter().fold(key, |key, byte| key.word(u64::from(*byte)))
    }

    /// With numbers, by their bits.
    #[must_use]
    pub fn numbers(self, numbers: &[f64]) -> Self {
        let key = self.word(numbers.len() as u64);
        numbers.iter().fold(key, |key, number| key.word(number.to_bits()))
    }

    /// With places or counts.
    #[must_use]
    pub fn places(self, places: &[usize]) -> Self {
        let key = self.word(places.len() as u64);
        places.iter().fold(key, |key, place| key.word(*place as u64))
    }

    /// With something small, by how it is printed, which has all digits of a number.
    #[must_use]
    pub fn with(self, value: &impl fmt::Debug) -> Self {
        self.text(&format!("{value:?}"))
    }

    /// With all that is in another key.
    #[must_use]
    pub fn then(self, other: Self) -> Self {
        self.word(other.0).word(other.1)
    }

    fn to_bytes(self) -> [u8; 16] {
        // Bits that went in last have been mixed least.
        let Self(a, b) = self.word(0).word(0);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&a.to_le_bytes());
        bytes[8..].copy_from_slice(&b.to_le_bytes());
        bytes
    }
}

/// Results that are kept in a file.
pub struct Store {
    path: PathBuf,
    /// Whether results are recorded however little time they took: for tests.
    everything: bool,
    /// After so many records a fit fails, as if it had been killed in the middle of the next: for tests.
    fail_after: Option<usize>,
    state: Mutex<State>,
}

struct State {
    file: File,
    /// Where the value of each key is, and its length.
    index: HashMap<[u8; 16], (u64, usize)>,
    /// Where the last whole record ends.
    end: u64,
    /// How many records were appended here.
    appended: usize,
    /// When what was written is to be brought to the disk.
    sync_at: Instant,
    /// Why nothing is recorded any more.
    trouble: Option<String>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.path).finish()
    }
}

impl Store {
    /// Opens the file of a fit to these data with these parameters, or makes it. No other process has it open.
    pub fn open(path: impl Into<PathBuf>, data: Key, parameters: Key) -> Result<Self> {
        let path = path.into();
        let io = |source| Error::Io { path: path.clone(), source };
        let options = File::options().read(true).write(true).create(true).truncate(false).clone();
        let file = options.open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Checkpoint {
                    path,
                    what: "this checkpoint is in use by another running fit".to_owned(),
                    remedy: Remedy::OtherCheckpoint,
                });
            }
            // Where files cannot be locked, records of two fits would be mixed: checksums tell, and only time is lost.
            Err(TryLockError::Error(_)) => {}
        }
        let head = head(data, parameters);
        let mut reader = BufReader::new(file);
        let mut found = Vec::new();
        (&mut reader).take(head.len() as u64).read_to_end(&mut found).map_err(io)?;
        let fresh = found.len() < head.len() && head.starts_with(&found[..found.len().min(16)]);
        if !fresh && found != head {
            let what = difference(&found, data);
            return Err(Error::Checkpoint { path, what, remedy: Remedy::RemoveCheckpoint });
        }
        let mut state = State {
            index: HashMap::new(),
            end: head.len() as u64,
            appended: 0,
            sync_at: Instant::now() + SYNC_EVERY,
            trouble: None,
            file: match fresh {
                true => begun(reader.into_inner(), &head).map_err(io)?,
                false => reader.into_inner(),
            },
        };
        state.read_records().map_err(io)?;
        Ok(Self { path, everything: false, fail_after: None, state: Mutex::new(state) })
    }

    /// The same, which records whatever it is given, and fails after so many records: for tests.
    #[must_use]
    pub fn on_trial(self, fail_after: Option<usize>) -> Self {
        Self { everything: true, fail_after, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many results there are.
    pub fn count(&self) -> usize {
        self.state().index.len()
    }

    /// How many results were recorded since the file was opened.
    pub fn appended(&self) -> usize {
        self.state().appended
    }

    /// Why results are no longer recorded, if that is so: no space is left, for example.
    pub fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// The result of a key, if it is there.
    pub fn recall<T: DeserializeOwned>(&self, key: Key) -> Option<T> {
        let mut state = self.state();
        let &(at, length) = state.index.get(&key.to_bytes())?;
        let mut value = vec![0; length];
        state.file.seek(SeekFrom::Start(at)).ok()?;
        state.file.read_exact(&mut value).ok()?;
        drop(state);
        postcard::from_bytes(&value).ok()
    }

    /// Records a result that took so long, if it is worth it.
    pub fn record<T: Serialize>(&self, key: Key, value: &T, took: Duration) -> Result<()> {
        if took < WORTH_RECORDING && !self.everything {
            return Ok(());
        }
        // What cannot be written as bytes is computed again, like all that is not there.
        let Ok(value) = postcard::to_stdvec(value) else { return Ok(()) };
        let dear = took.as_secs_f64() * BYTES_PER_SECOND >= value.len() as f64;
        if !dear && !self.everything {
            return Ok(());
        }
        let mut state = self.state();
        // Two threads may have computed the same.
        if state.index.contains_key(&key.to_bytes()) {
            return Ok(());
        }
        if state.trouble.is_some() || state.end + value.len() as u64 > MOST_BYTES {
            return Ok(());
        }
        let record = record(key, &value);
        if self.fail_after.is_some_and(|most| state.appended >= most) {
            // Half of it was written.
            let _ = state.append(&record[..record.len() / 2], None);
            let source = io::Error::other("the trial ends here");
            return Err(Error::Io { path: self.path.clone(), source });
        }
        let place = (key.to_bytes(), value.len());
        if let Err(error) = state.append(&record, Some(place)) {
            // A fit of hours does not end because a disk is full.
            state.trouble = Some(error.to_string());
            let end = state.end;
            let _ = state.file.set_len(end);
        }
        state.sync();
        Ok(())
    }
}

impl State {
    /// Finds all whole records, and cuts off what comes after them.
    fn read_records(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        self.file.seek(SeekFrom::Start(self.end))?;
        let mut reader = BufReader::new(&mut self.file);
        let mut value = Vec::new();
        loop {
            let mut before = [0; BEFORE_VALUE];
            if self.end + BEFORE_VALUE as u64 > length {
                break;
            }
            reader.read_exact(&mut before)?;
            let (Some(bytes), Some(key), Some(sum)) =
                (before.first_chunk::<8>(), before[8..].first_chunk::<16>(), before.last_chunk())
            else {
                break;
            };
            let left = length - self.end - BEFORE_VALUE as u64;
            let Some(bytes) = Some(u64::from_le_bytes(*bytes)).filter(|bytes| *bytes <= left)
            else {
                break;
            };
            value.clear();
            (&mut reader).take(bytes).read_to_end(&mut value)?;
            if checksum(&before[..24], &value) != u32::from_le_bytes(*sum) {
                break;
            }
            let at = self.end + BEFORE_VALUE as u64;
            self.index.insert(*key, (at, value.len()));
            self.end = at + bytes;
        }
        self.file.set_len(self.end)
    }

    fn append(&mut self, bytes: &[u8], place: Option<([u8; 16], usize)>) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(bytes)?;
        if let Some((key, length)) = place {
            self.index.insert(key, (self.end + BEFORE_VALUE as u64, length));
            self.end += bytes.len() as u64;
            self.appended += 1;
        }
        Ok(())
    }

    fn sync(&mut self) {
        let before = Instant::now();
        if before < self.sync_at {
            return;
        }
        // If it fails, what was written is still there unless the computer stops.
        let _ = self.file.sync_data();
        let took = before.elapsed();
        self.sync_at = before + took + SYNC_EVERY.max(took * SYNC_SHARE);
    }
}

fn head(data: Key, parameters: Key) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    head.push(VERSION.len() as u8);
    head.extend(VERSION.as_bytes());
    head.extend(data.to_bytes());
    head.extend(parameters.to_bytes());
    head.extend(crc32fast::hash(&head).to_le_bytes());
    head
}

/// A file that begins with this head and has nothing else.
fn begun(mut file: File, head: &[u8]) -> io::Result<File> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(head)?;
    file.sync_data()?;
    Ok(file)
}

/// What is wrong with a file that does not begin as it should.
fn difference(found: &[u8], data: Key) -> String {
    let Some(rest) = found.strip_prefix(MAGIC) else {
        return "this file is not an svml checkpoint".to_owned();
    };
    let (length, rest) = rest.split_first().map_or((0, rest), |(n, rest)| (usize::from(*n), rest));
    let version = String::from_utf8_lossy(&rest[..length.min(rest.len())]).into_owned();
    if version != VERSION {
        return format!(
            "this checkpoint was written by svml {version}, but this is svml {VERSION}"
        );
    }
    match rest[length..].starts_with(&data.to_bytes()) {
        true => "this checkpoint belongs to a fit with different parameters".to_owned(),
        false => "this checkpoint belongs to a fit to different data".to_owned(),
    }
}

fn record(key: Key, value: &[u8]) -> Vec<u8> {
    let mut record = (value.len() as u64).to_le_bytes().to_vec();
    record.extend(key.to_bytes());
    record.extend(checksum(&record, value).to_le_bytes());
    record.extend(value);
    record
}

fn checksum(before: &[u8], value: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(before);
    sum.update(value);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(1);

    fn file(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("svml-store-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    fn open(path: &Path) -> Result<Store> {
        Store::open(path, Key::new("data"), Key::new("parameters"))
    }

    #[test]
    fn keys_tell_apart_what_differs() {
        let key = Key::new("a");
        let keys = [
            key,
            Key::new("b"),
            key.numbers(&[]),
            key.numbers(&[0.0]),
            key.numbers(&[-0.0]),
            key.numbers(&[0.0, 0.0]),
            key.numbers(&[0.0]).numbers(&[0.0]),
            key.numbers(&[1.0, 2.0]),
            key.numbers(&[2.0, 1.0]),
            key.places(&[1, 2]),
            key.text("eight by"),
            key.text("eight byt"),
            key.with(&(0.1 + 0.2)),
            key.with(&0.3),
            key.then(Key::new("b")),
        ];
        let bytes: std::collections::BTreeSet<[u8; 16]> =
            keys.iter().map(|k| k.to_bytes()).collect();
        assert_eq!(bytes.len(), keys.len());
        // Numbers that differ in one bit, whose keys differ in about half of the bits.
        let of = |n: u64| u128::from_le_bytes(key.numbers(&[f64::from_bits(n)]).to_bytes());
        for bit in 0..64 {
            let differ = (of(1 << bit) ^ of(0)).count_ones();
            assert!((32..=96).contains(&differ), "{bit}: {differ}");
        }
    }

    #[test]
    fn what_is_recorded_is_read_back_to_the_bit() {
        let path = file("bits");
        let value = (vec![0.1, f64::NAN, f64::INFINITY, -0.0, 5e-324], vec![usize::MAX, 3]);
        let (a, b) = (Key::new("a"), Key::new("b"));
        let store = open(&path).unwrap();
        store.record(a, &value, LONG).unwrap();
        store.record(b, &(Vec::<f64>::new(), vec![7_usize]), LONG).unwrap();
        // Too little time for so many bytes, and too little time.
        store.record(Key::new("c"), &vec![0_u8; 100_000], Duration::from_millis(2)).unwrap();
        store.record(Key::new("d"), &1_u8, Duration::from_micros(2)).unwrap();
        let read = |store: &Store, key| store.recall::<(Vec<f64>, Vec<usize>)>(key);
        let check = |store: &Store| {
            assert_eq!(store.count(), 2);
            let (numbers, places) = read(store, a).unwrap();
            let bits = |numbers: &[f64]| numbers.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!((bits(&numbers), &places), (bits(&value.0), &value.1));
            assert_eq!(read(store, b), Some((vec![], vec![7])));
            assert_eq!(read(store, Key::new("c")), None);
        };
        check(&store);
        drop(store);
        check(&open(&path).unwrap());
        std::fs::remove_file(path).unwrap();
    }

    /// The file is cut off at every byte after the first record, and every bit of the second is turned over.
    #[test]
    fn a_torn_record_is_left_out_and_written_again() {
        let path = file("torn");
        let (a, b) = (Key::new("a"), Key::new("b"));
        let store = open(&path).unwrap();
        store.record(a, &1.5, LONG).unwrap();
        let whole = std::fs::metadata(&path).unwrap().len() as usize;
        store.record(b, &vec![2.5; 3], LONG).unwrap();
        drop(store);
        let bytes = std::fs::read(&path).unwrap();
        let check = |damaged: &[u8]| {
            std::fs::write(&path, damaged).unwrap();
            let store = open(&path).unwrap();
            assert_eq!((store.recall::<f64>(a), store.recall::<Vec<f64>>(b)), (Some(1.5), None));
            store.record(b, &vec![2.5; 3], LONG).unwrap();
            drop(store);
            assert!(std::fs::read(&path).unwrap() == bytes);
        };
        (whole..bytes.len()).for_each(|length| check(&bytes[..length]));
        for bit in 8 * whole..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            check(&damaged);
        }
        // Of a head that was cut off nothing is left; one that is damaged is not taken for one.
        let head = whole - BEFORE_VALUE - 8;
        for length in 0..head {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert_eq!(open(&path).unwrap().count(), 0);
        }
        for bit in 0..8 * head {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            assert!(matches!(open(&path), Err(Error::Checkpoint { .. })), "{bit}");
            assert!(std::fs::read(&path).unwrap() == damaged);
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_of_something_else_is_refused_and_stays() {
        let path = file("other");
        let refused = |data: &str, parameters: &str| {
            let opened = Store::open(&path, Key::new(data), Key::new(parameters));
            opened.err().map(|error| error.to_string()).unwrap()
        };
        drop(open(&path).unwrap());
        let text = refused("other", "parameters");
        assert!(text.contains("different data; use a different file"), "{text}");
        assert!(refused("data", "other").contains("different parameters; use a different file"));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[17] = b'9';
        std::fs::write(&path, &bytes).unwrap();
        assert!(refused("data", "parameters").contains("was written by svml 9"));
        for content in ["a,b\n1,2\n", "svml", "svmlx", "svml checkpoint 2", "x"] {
            std::fs::write(&path, content).unwrap();
            match content {
                // It may be the beginning of a head.
                "svml" => drop(open(&path).unwrap()),
                _ => {
                    let text = refused("data", "parameters");
                    assert!(text.contains("is not an svml checkpoint"), "{text}");
                    assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
                }
            }
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn two_fits_do_not_share_a_file() {
        let path = file("shared");
        let first = open(&path).unwrap();
        let text = open(&path).unwrap_err().to_string();
        assert!(text.contains("this checkpoint is in use by another running fit; wait"), "{text}");
        drop(first);
        assert!(open(&path).is_ok());
        std::fs::remove_file(path).unwrap();
    }

    /// A trial ends with half of a record, which is not there afterwards.
    #[test]
    fn a_trial_ends_in_the_middle_of_a_record() {
        let path = file("trial");
        let store = open(&path).unwrap().on_trial(Some(1));
        store.record(Key::new("a"), &1, Duration::ZERO).unwrap();
        assert!(store.record(Key::new("b"), &2, Duration::ZERO).is_err());
        drop(store);
        let store = open(&path).unwrap();
        assert_eq!((store.count(), store.recall(Key::new("a"))), (1, Some(1)));
        std::fs::remove_file(path).unwrap();
    }
}
