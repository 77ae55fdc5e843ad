//! The file layer: a file is there with its old content or with all of the new, and nothing else changes.
//!
//! | what stands at the path | what is done |
//! |---|---|
//! | nothing, or a file | the bytes are written to a new file beside it, flushed to the disk, and renamed; owner, group and permissions of an old file are kept |
//! | a link | what it points to is replaced, not the link; one that points to nothing, or to itself, is refused |
//! | a file that is read-only, or that the user may not write | refused, although the folder would allow to replace it |
//! | a folder, a disk | refused |
//! | a pipe, a terminal, `/dev/null` and the like, `/dev/stdout` | written to directly, because these cannot be replaced |
//!
//! The new file has a random name that begins with `.svml.` and ends in `.tmp`, can be read by nobody else until it is
//! whole, and is locked as long as the process lives that writes it. What a killed process leaves behind is therefore
//! known by its name and by a lock that nobody holds: it is removed by whoever writes into the folder next, a minute after
//! it was last written to.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::error::{Error, Result};

/// How a temporary name begins and ends, and how many hexadecimal digits are in between. It is not made from the name
/// of the file, which may already be as long as names can be.
const BEGIN: &str = ".svml.";
const END: &str = ".tmp";
const DIGITS: usize = 16;
/// How many names are tried; of random ones the first is free.
const ATTEMPTS: usize = 100;
/// How long nothing was written to what counts as left behind, by the clock of the file system. The lock tells as much;
/// the time is for file systems whose locks do not reach other computers.
const LEFT_ALONE: Duration = Duration::from_secs(60);
/// Most entries of a folder that are looked at for what was left behind.
const MOST_ENTRIES: usize = 10_000;

/// Writes a file: afterwards `path` holds its old content or all of the new, whatever happens.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    write_together(&[(path, bytes)])
}

/// Writes files that belong together. All of them are on the disk before the first takes its place, so that a full disk,
/// for example, leaves all of the old ones.
pub fn write_together(files: &[(&Path, &[u8])]) -> Result<()> {
    let mut drafts = Vec::with_capacity(files.len());
    for (path, bytes) in files {
        let draft = Draft::new(path, bytes);
        drafts.push((draft.map_err(|source| failed(path, source))?, path));
    }
    drafts
        .into_iter()
        .try_for_each(|(draft, path)| draft.take_place().map_err(|source| failed(path, source)))
}

/// Finds out whether a file can be written, before long work is done for it, by making the temporary file. What is there
/// is not changed.
pub fn check_writable(path: &Path) -> Result<()> {
    let probe = || match Target::of(path)? {
        Target::Stream => Ok(()),
        Target::File { path, old } => Temporary::beside(&path, old.as_ref()).map(drop),
    };
    probe().map_err(|source| failed(path, source))
}

/// Opens a file to read it, and says how long it is if that is known: a pipe, for example, has no length.
pub(crate) fn open(path: &Path) -> Result<(File, Option<u64>)> {
    let open = || {
        let file = File::open(path)?;
        let there = file.metadata()?;
        Ok((file, there.is_file().then_some(there.len())))
    };
    open().map_err(|source| failed(path, source))
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

/// Where bytes go.
enum Target {
    /// What cannot be replaced.
    Stream,
    /// A file: its path with links resolved, and what is known of the one that is there.
    File { path: PathBuf, old: Option<Metadata> },
}

impl Target {
    fn of(path: &Path) -> io::Result<Self> {
        let refused = |kind, why: String| Err(io::Error::new(kind, why));
        match fs::metadata(path) {
            Ok(there) if there.is_dir() => {
                refused(ErrorKind::IsADirectory, "this is a folder".to_owned())
            }
            Ok(there) if is_disk(&there) => {
                refused(ErrorKind::InvalidInput, "this is a disk, not a file".to_owned())
            }
            Ok(there) if !there.is_file() || is_descriptor(path) => Ok(Self::Stream),
            Ok(there) if there.permissions().readonly() => {
                refused(ErrorKind::PermissionDenied, "the file is read-only".to_owned())
            }
            Ok(_) => {
                // Only the system knows whether the user may write it, and says so when it is opened.
                let old = File::options().write(true).open(path)?.metadata()?;
                Ok(Self::File { path: fs::canonicalize(path)?, old: Some(old) })
            }
            Err(e) if e.kind() == ErrorKind::NotFound => match fs::read_link(path) {
                Ok(to) => refused(
                    ErrorKind::InvalidInput,
                    format!("this is a link to {}, which does not exist", to.display()),
                ),
                Err(_) => Ok(Self::File { path: path.to_owned(), old: None }),
            },
            Err(e) => Err(e),
        }
    }
}

/// Whether a path is another name of something that the process has open, such as its standard output. That may be a
/// file, which others have open too, so that it must not be replaced.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter().any(|of| path.starts_with(of))
}

#[cfg(unix)]
fn is_disk(there: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    there.file_type().is_block_device()
}

#[cfg(not(unix))]
fn is_disk(_: &Metadata) -> bool {
    false
}

/// The new content of a file that has not taken its place yet.
enum Draft<'a> {
    Stream { path: &'a Path, bytes: &'a [u8] },
    File { path: PathBuf, temporary: Temporary },
}

impl<'a> Draft<'a> {
    fn new(path: &'a Path, bytes: &'a [u8]) -> io::Result<Self> {
        match Target::of(path)? {
            Target::Stream => Ok(Self::Stream { path, bytes }),
            Target::File { path, old } => {
                let mut temporary = Temporary::beside(&path, old.as_ref())?;
                temporary.file.write_all(bytes)?;
                temporary.permit()?;
                temporary.file.sync_all()?;
                Ok(Self::File { path, temporary })
            }
        }
    }

    fn take_place(self) -> io::Result<()> {
        match self {
            // Appended, in case that it is a file under another name.
            Self::Stream { path, bytes } => {
                File::options().append(true).open(path)?.write_all(bytes)
            }
            Self::File { path, temporary } => temporary.rename(&path),
        }
    }
}

/// A file that this call has made, which is removed unless it is renamed.
struct Temporary {
    path: PathBuf,
    file: File,
    /// What the file may be in the end.
    rights: Rights,
    renamed: bool,
}

impl Temporary {
    /// Makes one in the folder of a file, and removes what killed processes have left there.
    fn beside(path: &Path, old: Option<&Metadata>) -> io::Result<Self> {
        let folder = folder_of(path);
        match fs::metadata(folder) {
            Ok(there) if there.is_dir() => {}
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {
                let why = format!("there is no folder {}", folder.display());
                return Err(io::Error::new(ErrorKind::NotFound, why));
            }
        }
        for _ in 0..ATTEMPTS {
            let path = folder.join(random_name());
            let file = match new_file(old).open(&path) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let mut made = Self { path, file, rights: Rights::default(), renamed: false };
            if !made.is_held()? {
                continue;
            }
            made.rights = Rights::of(&made.file, old)?;
            if let Ok(now) = made.file.metadata().and_then(|made| made.modified()) {
                clear(folder, now);
            }
            return Ok(made);
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Takes the lock that says that the process lives. False if someone else, who took the file for one that was left
    /// behind, was faster. Where there are no locks nobody takes it for such a file either.
    fn is_held(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Err(TryLockError::WouldBlock) => Ok(false),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(!is_removed(&self.file.metadata()?)),
        }
    }

    /// Gives the file the owner and the permissions that it has in the end.
    fn permit(&self) -> io::Result<()> {
        self.rights.give(&self.file)
    }

    fn rename(mut self, path: &Path) -> io::Result<()> {
        // Where locks are enforced, nobody could read the file.
        #[cfg(windows)]
        let _ = self.file.unlock();
        fs::rename(&self.path, path)?;
        self.renamed = true;
        // That the name is new must reach the disk too. If it does not, the old file is there after a crash: one of the
        // two that may be.
        #[cfg(unix)]
        let _ = File::open(folder_of(path)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // The error that matters is the one that led here.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A name that nobody can guess and no other process, thread or container uses.
fn random_name() -> String {
    // The keys come from the system. A child of a fork has those of its parent, but another number and another time.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let number = RandomState::new().hash_one((std::process::id(), now));
    format!("{BEGIN}{number:0DIGITS$x}{END}")
}

fn is_temporary_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(BEGIN)?.strip_suffix(END));
    digits.is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Removes temporary files of processes that are no more. What cannot be removed stays.
fn clear(folder: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.take(MOST_ENTRIES).flatten() {
        if !is_temporary_name(&entry.file_name()) {
            continue;
        }
        let left = entry.metadata().is_ok_and(|there| {
            let age = there.modified().ok().and_then(|then| now.duration_since(then).ok());
            there.is_file() && age.is_some_and(|age| age >= LEFT_ALONE)
        });
        // While this lock is held, the process that made the file cannot take it, and finds out that the file is gone.
        let held = left.then(|| File::options().write(true).open(entry.path()));
        if let Some(Ok(file)) = held
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(unix)]
fn is_removed(there: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    there.nlink() == 0
}

#[cfg(not(unix))]
fn is_removed(_: &Metadata) -> bool {
    false
}

#[cfg(unix)]
use unix::{Rights, new_file};

#[cfg(unix)]
mod unix {
    use std::fs::{File, Metadata, OpenOptions, Permissions};
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};

    /// Only the user may read and write.
    const PRIVATE: u32 = 0o600;

    /// How a temporary file is made. One that replaces a file is private from the start. One that does not is made as any
    /// new file is, because its permissions tell what the user wants of new files.
    pub(super) fn new_file(old: Option<&Metadata>) -> OpenOptions {
        let mut options = File::options();
        options.write(true).create_new(true);
        if old.is_some() {
            options.mode(PRIVATE);
        }
        options
    }

    /// Owner and permissions of a file in the end.
    #[derive(Default)]
    pub(super) struct Rights {
        /// Nothing where the file system has none.
        mode: Option<u32>,
        owner: Option<(u32, u32)>,
    }

    impl Rights {
        /// Those of the old file, or else those that the new one has; this is then made private.
        pub(super) fn of(file: &File, old: Option<&Metadata>) -> io::Result<Self> {
            let made = file.metadata()?;
            let wanted = old.unwrap_or(&made);
            if made.mode() & 0o777 != PRIVATE {
                match file.set_permissions(Permissions::from_mode(PRIVATE)) {
                    Err(e)
                        if matches!(
                            e.kind(),
                            ErrorKind::PermissionDenied | ErrorKind::Unsupported
                        ) =>
                    {
                        return Ok(Self::default());
                    }
                    done => done?,
                }
            }
            let owner = (wanted.uid(), wanted.gid());
            let other = owner != (made.uid(), made.gid());
            Ok(Self { mode: Some(wanted.mode() & 0o7777), owner: other.then_some(owner) })
        }

        pub(super) fn give(&self, file: &File) -> io::Result<()> {
            let Some(mut mode) = self.mode else { return Ok(()) };
            if let Some((user, group)) = self.owner {
                // Only the superuser may give files away. A group that is not that of the old file gets no more than
                // everyone.
                let kept = fchown(file, Some(user), Some(group))
                    .or_else(|_| fchown(file, None, Some(group)));
                if kept.is_err() {
                    mode &= 0o707 | (mode & 0o007) << 3;
                }
            }
            match mode == PRIVATE {
                true => Ok(()),
                false => file.set_permissions(Permissions::from_mode(mode)),
            }
        }
    }
}

#[cfg(not(unix))]
use elsewhere::{Rights, new_file};

#[cfg(not(unix))]
mod elsewhere {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;

    pub(super) fn new_file(_: Option<&Metadata>) -> OpenOptions {
        let mut options = File::options();
        options.write(true).create_new(true);
        options
    }

    /// Nothing that could be asked for.
    #[derive(Default)]
    pub(super) struct Rights;

    impl Rights {
        pub(super) fn of(_: &File, _: Option<&Metadata>) -> io::Result<Self> {
            Ok(Self)
        }

        pub(super) fn give(&self, _: &File) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty folder of this test's own.
    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("svml-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn entries(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn refusal(path: &Path) -> String {
        let error = write_atomically(path, b"new").unwrap_err().to_string();
        assert_eq!(check_writable(path).unwrap_err().to_string(), error);
        error
    }

    #[test]
    fn names_are_random_and_known_again() {
        let names: std::collections::HashSet<String> = (0..1000).map(|_| random_name()).collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| is_temporary_name(OsStr::new(name))));
        for other in [".svml.1.0.tmp", ".svml.0123456789abcde.tmp", ".svml.0123456789abcdeF.tmp"] {
            assert!(!is_temporary_name(OsStr::new(other)), "{other}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_those_to_nothing_are_refused() {
        use std::os::unix::fs::symlink;
        let folder = folder("links");
        let at = |name: &str| folder.join(name);
        fs::create_dir(at("below")).unwrap();
        fs::write(at("below/file"), "old").unwrap();
        symlink("below/file", at("link")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        write_atomically(&at("link"), b"new").unwrap();
        assert!(at("link").is_symlink());
        assert_eq!(fs::read(at("below/file")).unwrap(), b"new");
        let refused = refusal(&at("dangling"));
        assert!(refused.contains("a link to nothing, which does not exist"), "{refused}");
        assert!(refusal(&at("loop")).contains("symbolic links"));
        assert!(at("dangling").is_symlink() && at("loop").is_symlink());
        assert_eq!(entries(&folder), ["below", "dangling", "link", "loop"]);
        assert_eq!(entries(&at("below")), ["file"]);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_read_only_or_no_file_stays_as_it_is() {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};
        let folder = folder("kept");
        let file = folder.join("file");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(refusal(&file).contains("the file is read-only"));
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert!(refusal(&folder).contains("this is a folder"));
        assert!(refusal(&folder.join("no/file")).contains("there is no folder"));
        assert!(write_atomically(Path::new(""), b"new").is_err());

        let pipe = folder.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if made.is_ok_and(|status| status.success()) {
            let read = std::thread::spawn({
                let pipe = pipe.clone();
                move || fs::read(pipe).unwrap()
            });
            write_atomically(&pipe, b"through").unwrap();
            assert_eq!(read.join().unwrap(), b"through");
            assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
            fs::remove_file(&pipe).unwrap();
        }
        // A device like /dev/null, which only the superuser can make, and which only the superuser can lose.
        let null = folder.join("null");
        let made = std::process::Command::new("mknod").arg(&null).args(["c", "1", "3"]).output();
        if made.is_ok_and(|output| output.status.success()) {
            write_atomically(&null, b"nowhere").unwrap();
            assert!(fs::metadata(&null).unwrap().file_type().is_char_device());
            fs::remove_file(&null).unwrap();
        }
        assert_eq!(entries(&folder), ["file"]);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_kept_and_those_of_a_new_file_are_the_usual_ones() {
        use std::os::unix::fs::PermissionsExt;
        let folder = folder("permissions");
        let file = folder.join("file");
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        fs::write(&file, "").unwrap();
        let usual = mode();
        fs::remove_file(&file).unwrap();
        write_atomically(&file, b"new").unwrap();
        assert_eq!(mode(), usual);
        for kept in [0o600, 0o640, 0o664, 0o755] {
            fs::set_permissions(&file, fs::Permissions::from_mode(kept)).unwrap();
            write_atomically(&file, b"newer").unwrap();
            assert_eq!(mode(), kept);
        }
        // Nobody else may read what is not whole.
        let temporary = Temporary::beside(&file, None).unwrap();
        let mode = temporary.file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        drop(temporary);
        assert_eq!(entries(&folder), ["file"]);
    }

    /// Of files that look left behind, the one that is held and the one that is young stay, and so do all others.
    #[test]
    fn only_what_killed_processes_left_is_cleared() {
        let folder = folder("clear");
        let make = |name: &str, age: u64| {
            let file = File::create(folder.join(name)).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age);
            file.set_times(fs::FileTimes::new().set_modified(then)).unwrap();
            file
        };
        let young = ".svml.0000000000000001.tmp";
        let held = ".svml.0000000000000002.tmp";
        let left = ".svml.0000000000000003.tmp";
        let other = ".svml.1.0.tmp";
        drop((make(young, 1), make(left, 3600), make(other, 3600)));
        let lock = make(held, 3600);
        lock.lock().unwrap();
        write_atomically(&folder.join("file"), b"new").unwrap();
        assert_eq!(entries(&folder), [young, held, other, "file"]);
        drop(lock);
        check_writable(&folder.join("file")).unwrap();
        assert_eq!(entries(&folder), [young, other, "file"]);
    }

    /// Files that belong together stay together: where one cannot be written, the other is as it was.
    #[test]
    fn of_several_files_all_are_ready_before_the_first_is_replaced() {
        let folder = folder("together");
        let [first, second] = ["first", "second"].map(|name| folder.join(name));
        write_together(&[(&first, b"1"), (&second, b"2")]).unwrap();
        let nowhere = folder.join("no/second");
        assert!(write_together(&[(&first, b"3"), (&nowhere, b"4")]).is_err());
        assert_eq!(fs::read(&first).unwrap(), b"1");
        assert_eq!(fs::read(&second).unwrap(), b"2");
        assert_eq!(entries(&folder), ["first", "second"]);
    }

    /// The superuser writes a file of another user in that user's name.
    #[cfg(unix)]
    #[test]
    #[allow(clippy::print_stderr)]
    fn the_owner_of_a_file_stays_its_owner() {
        use std::os::unix::fs::{MetadataExt, chown};
        let path = folder("owner").join("file");
        fs::write(&path, "old").unwrap();
        if chown(&path, Some(12_345), Some(12_345)).is_err() {
            eprintln!("skipped: only the superuser may give files away");
            return;
        }
        write_atomically(&path, b"new").unwrap();
        let there = fs::metadata(&path).unwrap();
        assert_eq!((there.uid(), there.gid()), (12_345, 12_345));
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    /// What is no file is written to as it is, and a folder that is named like a temporary file stays.
    #[cfg(unix)]
    #[test]
    fn devices_are_written_to_and_folders_stay() {
        write_atomically(Path::new("/dev/null"), b"new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let folder = folder("device");
        let name = ".svml.0000000000000001.tmp";
        fs::create_dir(folder.join(name)).unwrap();
        write_atomically(&folder.join("file"), b"new").unwrap();
        assert_eq!(entries(&folder), [name, "file"]);
        let below = refusal(&folder.join("file/below"));
        assert!(!below.is_empty());
    }
}
