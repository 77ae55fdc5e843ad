//! How much memory is free, for this process and in the container that it runs in, and buffers that are refused rather than
//! ending the process where there is none.
//!
//! Rust ends a process whose memory is exhausted, and with it the Python or the notebook around it. So what is large is
//! counted before it is made, against a limit that is three quarters of what is free, and buffers that grow with the
//! square of the rows, or of the columns, or with the input are asked for here: where the system refuses one, that is an
//! [`Error`]. What is small is not looked at; a share of memory is left free for it.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Mutex;

use crate::error::{Error, Remedy, Result};

/// What is assumed where the system does not tell.
const UNKNOWN: u64 = 8 << 30;

/// What must be left for small things when a large buffer is made.
const LEFT: usize = 32 << 20;

/// Buffers of fewer bytes are small.
const LARGE: usize = 1 << 15;

/// Buffers of so many bytes are very large.
const VERY_LARGE: usize = 256 << 20;

/// The most that small things take for each column of a table while it is read: its name in a few places, what its cells look
/// like, how they are encoded. Each is small, but a table may have a hundred thousand columns.
pub(crate) const READING_A_COLUMN: usize = 1 << 10;

/// The same for a column of a table that is learned from: its statistics, its weight in each metric and in each step.
pub(crate) const LEARNING_A_COLUMN: usize = 1 << 11;

/// Three quarters of the bytes that are free, so that something is left for what is not counted.
pub(crate) fn free() -> u64 {
    usable(None)
}

/// How many bytes may be used where a limit is given, or none: then three quarters of those that are free.
pub(crate) fn usable(limit: Option<u64>) -> u64 {
    let free = free_under(Path::new("/"));
    match limit {
        Some(limit) => limit.min(free.unwrap_or(u64::MAX)),
        None => free.map_or(UNKNOWN, |bytes| bytes / 4 * 3),
    }
}

/// Refuses what would need more than `limit` bytes.
pub(crate) fn check(
    what: impl FnOnce() -> String,
    bytes: u128,
    limit: u64,
    remedy: Remedy,
) -> Result<()> {
    let limit = u128::from(limit);
    if bytes > limit {
        return Err(Error::TooLarge { what: what(), bytes, limit, remedy });
    }
    Ok(())
}

/// One large buffer is made after the other, so that two do not count on the same memory.
static TURN: Mutex<()> = Mutex::new(());

/// Whether there is room for a buffer of so many bytes, beside what small things need. It is made and given back at once,
/// untouched, which costs little. The system promises more memory than it has, so that of very large buffers it is asked
/// what is free besides.
fn is_room_for(bytes: usize) -> bool {
    let mut probe: Vec<u8> = Vec::new();
    let bytes = bytes.saturating_add(LEFT);
    let there = || free_under(Path::new("/")).is_none_or(|free| bytes as u64 <= free);
    probe.try_reserve_exact(bytes).is_ok() && (bytes < VERY_LARGE || there())
}

/// Refuses what needs so many bytes where there is no room for them.
pub fn room_for(bytes: usize, what: &str) -> Result<()> {
    with_room(bytes, || ()).ok_or_else(|| exhausted(what, bytes as u64))
}

/// `make` makes buffers of so many bytes in all, if there is room for them.
pub(crate) fn with_room<T>(bytes: usize, make: impl FnOnce() -> T) -> Option<T> {
    if bytes < LARGE {
        return Some(make());
    }
    let _turn = TURN.lock();
    is_room_for(bytes).then(make)
}

/// Whether this process may have only so many addresses (`ulimit -v`, `-d`).
pub(crate) fn is_limited() -> bool {
    free_of_process(Path::new("/")).next().is_some()
}

/// What a thread needs beside its stack before [`thread_has_room`] can be asked.
const BEGINNING_A_THREAD: u64 = 1 << 20;

/// Whether there is room for one more thread with a stack of so many bytes.
///
/// The C library of Linux ends the process where it has no memory for the variables of a thread that has begun.
pub(crate) fn thread_can_begin(stack: usize) -> bool {
    let needed = stack as u64 + BEGINNING_A_THREAD;
    free_of_process(Path::new("/")).all(|free| needed <= free)
}

/// Whether this thread has room for small things.
///
/// With the first allocation of a thread the C library of Linux reserves 64 MB of addresses for what the thread allocates.
/// Where it cannot (`ulimit -v`), it maps a whole page for each small thing, and uses up in moments what is left.
pub(crate) fn thread_has_room() -> bool {
    let small: [Vec<u8>; 4] = std::array::from_fn(|_| Vec::with_capacity(64));
    // A mapping begins with 16 bytes of the library's own.
    let alone = |thing: &Vec<u8>| black_box(thing).as_ptr().addr() % 4096 == 16;
    !small.iter().all(alone)
}

/// So many zeros.
pub(crate) fn zeros(len: usize, what: &str) -> Result<Vec<f64>> {
    match len.checked_mul(8) {
        // Zeros that the system gives are not touched before they are needed.
        Some(bytes) => {
            with_room(bytes, || vec![0.0; len]).ok_or_else(|| exhausted(what, bytes as u64))
        }
        None => Err(exhausted(what, u64::MAX)),
    }
}

/// A vector that `more` values can be added to without further memory.
pub(crate) fn reserve<T>(values: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    if more <= values.capacity() - values.len() {
        return Ok(());
    }
    // As many again, as a vector grows by itself: it is not copied too often. If that is too much, what is needed.
    let (item, often) = (size_of::<T>().max(1), values.len().max(more));
    let bytes = |count: usize| (values.len().saturating_add(count)).saturating_mul(item);
    let (wanted, least) = (bytes(often), bytes(more));
    if wanted < LARGE {
        values.reserve(more);
        return Ok(());
    }
    let _turn = TURN.lock();
    let grown = [(wanted, often), (least, more)]
        .into_iter()
        .any(|(bytes, count)| is_room_for(bytes) && values.try_reserve_exact(count).is_ok());
    if grown { Ok(()) } else { Err(exhausted(what, least as u64)) }
}

/// That the system had no memory left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lack {
    /// What would have been in use.
    bytes: u128,
    /// What there is.
    limit: u128,
}

impl Lack {
    /// Of so many bytes beside those in use now.
    pub fn of(bytes: u64) -> Self {
        let root = Path::new("/");
        let used = u128::from(status(root, "VmSize:").unwrap_or(0));
        let limit = used + u128::from(free_under(root).unwrap_or(0));
        let bytes = used + u128::from(bytes) + LEFT as u128;
        // What other threads have freed since then does not make it fit.
        Self { bytes, limit: limit.min(bytes.saturating_sub(1)) }
    }

    /// The same as an error; `what` is what there was no memory for.
    pub fn error(self, what: &str) -> Error {
        let Self { bytes, limit } = self;
        let what = format!("{what}, with what is in use already,");
        Error::TooLarge { what, bytes, limit, remedy: Remedy::MoreMemory }
    }
}

/// The error where the system has no memory left for something of so many bytes.
fn exhausted(what: &str, bytes: u64) -> Error {
    Lack::of(bytes).error(what)
}

/// A number of kilobytes in /proc/self/status, in bytes.
fn status(root: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/self/status")).ok()?;
    kilobytes(&text, name)
}

/// A number of kilobytes in a text of lines such as `VmSize:   12 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(1024 * line.split_whitespace().next()?.parse::<u64>().ok()?)
}

/// The bytes that are free, by the files of Linux under `root`.
fn free_under(root: &Path) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(root.join(name)).ok();
    let computer = text("proc/meminfo").and_then(|text| kilobytes(&text, "MemAvailable:"));
    computer.into_iter().chain(free_of_process(root)).chain(free_of_container(root)).min()
}

/// What the limits of this process leave (`ulimit -v` and `-d`).
fn free_of_process(root: &Path) -> impl Iterator<Item = u64> {
    let limits = fs::read_to_string(root.join("proc/self/limits")).unwrap_or_default();
    let limit = move |name: &str| -> Option<u64> {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let all = [("Max address space", "VmSize:"), ("Max data size", "VmData:")];
    let root = root.to_owned();
    all.into_iter()
        .filter_map(move |(name, used)| Some(limit(name)?.saturating_sub(status(&root, used)?)))
}

/// What the control groups of this process leave, of either version, each with those that it is part of; "max" is no limit.
fn free_of_container(root: &Path) -> impl Iterator<Item = u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let own = |version: u8| {
        // "0::/path", or "4:memory:/path".
        let path = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let fits = match version {
                2 => controllers.is_empty(),
                _ => controllers.split(',').any(|name| name == "memory"),
            };
            fits.then(|| path.trim_start_matches('/').to_owned())
        });
        path.unwrap_or_default()
    };
    let versions = [
        (own(2), "sys/fs/cgroup", "memory.max", "memory.current"),
        (own(1), "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ];
    let root = root.to_owned();
    versions.into_iter().flat_map(move |(own, top, limit, used)| {
        let top = root.join(top);
        // A container shows its own group as the top one, under whatever path it is listed.
        let groups: Vec<_> = Path::new(&own).ancestors().map(|path| top.join(path)).collect();
        groups.into_iter().filter_map(move |group| {
            let number =
                |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
            Some(number(limit)?.saturating_sub(number(used)?))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("svml-memory-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_least_of_computer_and_container_counts() {
        let meminfo = ("proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   64 kB\nBuffers: 1 kB\n");
        let cases = [
            ("computer", vec![meminfo], Some(65536)),
            (
                "container",
                vec![
                    meminfo,
                    ("sys/fs/cgroup/memory.max", "5000\n"),
                    ("sys/fs/cgroup/memory.current", "2000\n"),
                ],
                Some(3000),
            ),
            (
                "unlimited",
                vec![
                    meminfo,
                    ("sys/fs/cgroup/memory.max", "max\n"),
                    ("sys/fs/cgroup/memory.current", "2000\n"),
                ],
                Some(65536),
            ),
            ("nothing", vec![("proc/other", "")], None),
            (
                "process",
                vec![
                    meminfo,
                    (
                        "proc/self/limits",
                        "Limit  Soft Limit  Hard Limit  Units\nMax data size   50000  unlimited  bytes\nMax address space   40000  unlimited  bytes\n",
                    ),
                    ("proc/self/status", "Name:\tsvml\nVmSize:\t  20 kB\nVmData:\t  10 kB\n"),
                ],
                Some(40_000 - 20 * 1024),
            ),
            (
                "data of the process",
                vec![
                    meminfo,
                    (
                        "proc/self/limits",
                        "Max data size   12000  unlimited  bytes\nMax address space   unlimited  unlimited  bytes\n",
                    ),
                    ("proc/self/status", "VmSize:\t  20 kB\nVmData:\t  10 kB\n"),
                ],
                Some(12_000 - 10 * 1024),
            ),
            (
                "group within a group",
                vec![
                    meminfo,
                    ("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/jobs/7\n0::/\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                    ("sys/fs/cgroup/memory/memory.usage_in_bytes", "9000\n"),
                    ("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "8000\n"),
                    ("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "1000\n"),
                    ("sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes", "20000\n"),
                    ("sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes", "500\n"),
                ],
                Some(7000),
            ),
            (
                "second version",
                vec![
                    meminfo,
                    ("proc/self/cgroup", "0::/box\n"),
                    ("sys/fs/cgroup/box/memory.max", "6000\n"),
                    ("sys/fs/cgroup/box/memory.current", "1000\n"),
                ],
                Some(5000),
            ),
        ];
        for (name, files, expected) in cases {
            let root = written(name, &files);
            assert_eq!(free_under(&root), expected, "{name}");
            fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn what_no_computer_has_is_an_error() {
        for len in [usize::MAX, usize::MAX / 8, 1 << 56] {
            let error = zeros(len, "a matrix").unwrap_err();
            assert!(matches!(error, Error::TooLarge { .. }), "{error}");
            assert!(error.to_string().starts_with("a matrix, with what is in use already, would"));
        }
        assert_eq!(zeros(3, "a matrix").unwrap(), [0.0; 3]);
        assert_eq!(zeros(LARGE, "a matrix").unwrap().len(), LARGE);
        let mut values = vec![1_u8; 10];
        assert!(reserve(&mut values, usize::MAX / 2, "bytes").is_err());
        reserve(&mut values, 2 * LARGE, "bytes").unwrap();
        assert!(values.capacity() >= 10 + 2 * LARGE && values == [1; 10]);
    }
}
