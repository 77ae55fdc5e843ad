//! Makes each file operation of a command fail in turn, and looks at what is left.
//!
//! The seam is the C library: `faults.c` is preloaded into the command as it is shipped. So nothing in the program is there
//! for tests, and every operation counts, also those of the standard library and of other crates. The price is that it
//! needs Linux, glibc and a C compiler.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// What stands in the files that are to be written.
const OLD: &[u8] = b"the old content\n";

/// A command that writes.
pub struct Case {
    pub arguments: &'static [&'static str],
    /// Files that it writes.
    pub outputs: &'static [&'static str],
}

/// Has the times of the steps, which are others in every run.
const TIMED: &str = "steps";

/// All commands that write files whose names they are given.
pub const CASES: &[Case] = &[
    Case {
        arguments: &["train", "t.csv", "-o", "out.svml", "--form", "sphere", "--trace", TIMED],
        outputs: &["out.svml", TIMED],
    },
    Case { arguments: &["predict", "m.svml", "t.csv", "-o", "out.csv"], outputs: &["out.csv"] },
    Case { arguments: &["transform", "m.svml", "t.csv", "-o", "out.csv"], outputs: &["out.csv"] },
    Case { arguments: &["explain", "m.svml", "t.csv", "-o", "out.csv"], outputs: &["out.csv"] },
    Case { arguments: &["report", "m.svml", "t.csv", "-o", "out.html"], outputs: &["out.html"] },
    Case {
        arguments: &["plot", "m.svml", "-o", "out.svg", "--kind", "relevance"],
        outputs: &["out.svg"],
    },
    Case {
        arguments: &["plot", "m.svml", "-o", "out.png", "--kind", "relevance"],
        outputs: &["out.png"],
    },
    Case { arguments: &["export", "m.svml", "--to", "c", "-o", "out.c"], outputs: &["out.c"] },
    Case {
        arguments: &["export", "m.svml", "--to", "onnx", "-o", "out.onnx"],
        outputs: &["out.onnx"],
    },
    Case {
        arguments: &["export", "m.svml", "--to", "libsvm", "-o", "out.model"],
        outputs: &["out.model", "out.model.range"],
    },
    Case {
        arguments: &["svm-train", "-q", "-g", "1", "-c", "1", "t.libsvm", "out.model"],
        outputs: &["out.model", "out.model.svml"],
    },
    Case { arguments: &["svm-predict", "t.libsvm", "l.model", "out"], outputs: &["out"] },
    Case {
        arguments: &[
            "learning-curve",
            "t.csv",
            "-o",
            "out.svg",
            "--method",
            "knn",
            "--sizes",
            "10,20",
        ],
        outputs: &["out.svg"],
    },
];

/// What an operation says instead of doing its work.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub name: &'static str,
    number: i32,
    /// How the message names it, whatever the case of its letters.
    words: &'static str,
}

/// The last is no error: it reads or writes one byte only.
pub const FAULTS: [Fault; 6] = [
    Fault { name: "ENOSPC", number: 28, words: "no space left on" },
    Fault { name: "EIO", number: 5, words: "input/output error" },
    Fault { name: "EACCES", number: 13, words: "permission denied" },
    Fault { name: "EROFS", number: 30, words: "read-only file system" },
    Fault { name: "EXDEV", number: 18, words: "cross-device link" },
    Fault { name: "one byte", number: 0, words: "" },
];

/// Where it is done.
pub struct Injection {
    program: PathBuf,
    folder: PathBuf,
    shim: PathBuf,
}

/// A case that has run without faults.
pub struct Prepared<'a> {
    case: &'a Case,
    /// The operations, by name.
    pub operations: Vec<String>,
    /// What is in the files then.
    whole: Vec<Vec<u8>>,
}

/// What came of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// The command did its work all the same.
    Done,
    /// It failed, as it should.
    Refused,
}

impl Injection {
    /// In an empty folder; nothing where there is no C compiler. `shim` is where the library is made.
    pub fn new(program: &Path, folder: &Path, shim: &Path) -> Result<Option<Self>, String> {
        let source = shim.with_extension("c");
        fs::write(&source, include_str!("faults.c")).map_err(|e| e.to_string())?;
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-o"]).arg(shim).arg(&source).arg("-ldl");
        match compile.output() {
            Err(_) => return Ok(None),
            Ok(output) if !output.status.success() => return Err(words(&output)),
            Ok(_) => {}
        }
        let folder = fs::canonicalize(folder).map_err(|e| e.to_string())?;
        let made = Self { program: program.to_owned(), folder, shim: shim.to_owned() };
        made.inputs()?;
        Ok(Some(made))
    }

    /// A table, the same as a file of LIBSVM, and models of both.
    fn inputs(&self) -> Result<(), String> {
        let (mut table, mut sparse) = (String::from("a,b,class\n"), String::new());
        for i in 0..40_u32 {
            let (a, b) = (f64::from(i * 7 % 40) / 8.0 - 2.5, f64::from(i * 11 % 40) / 8.0 - 2.5);
            let class = u8::from(a * a + b * b > 4.0);
            table += &format!("{a},{b},{class}\n");
            sparse += &format!("{class} 1:{a} 2:{b}\n");
        }
        let written = [("t.csv", table), ("t.libsvm", sparse)];
        for (name, text) in written {
            fs::write(self.folder.join(name), text).map_err(|e| e.to_string())?;
        }
        for arguments in [
            &["train", "t.csv", "-o", "m.svml", "--form", "sphere"][..],
            &["svm-train", "-q", "-g", "1", "-c", "1", "t.libsvm", "l.model"],
        ] {
            let output = self.command(arguments).output().map_err(|e| e.to_string())?;
            if !output.status.success() {
                return Err(words(&output));
            }
        }
        Ok(())
    }

    /// The command in the folder, without faults.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// The command with a clock that jumps.
    pub fn with_jumping_clock(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.env("LD_PRELOAD", &self.shim).env("FAULT_CLOCK", "1");
        command
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn names(&self) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(&self.folder).map_err(|e| e.to_string())?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect();
        names.sort();
        Ok(names)
    }

    fn put_old(&self, case: &Case) -> Result<(), String> {
        case.outputs
            .iter()
            .try_for_each(|name| fs::write(self.at(name), OLD).map_err(|e| e.to_string()))
    }

    fn run(&self, case: &Case, at: usize, fault: Fault, stays: bool) -> Result<Output, String> {
        let mut command = self.command(case.arguments);
        command
            .env("LD_PRELOAD", &self.shim)
            .env("FAULT_FOLDER", &self.folder)
            .env("FAULT_LOG", self.shim.with_extension("log"))
            .env("FAULT_AT", at.to_string())
            .env("FAULT_ERROR", fault.number.to_string());
        if stays {
            command.env("FAULT_STAYS", "1");
        }
        command.output().map_err(|e| e.to_string())
    }

    /// Runs a case without faults, and counts its operations.
    pub fn prepare<'a>(&self, case: &'a Case) -> Result<Prepared<'a>, String> {
        self.put_old(case)?;
        let log = self.shim.with_extension("log");
        let _ = fs::remove_file(&log);
        let output = self.run(case, 0, FAULTS[0], false)?;
        if !output.status.success() {
            return Err(format!("{:?}: {}", case.arguments, words(&output)));
        }
        let operations = fs::read_to_string(&log).map_err(|e| format!("no operations: {e}"))?;
        let operations: Vec<String> = operations.lines().map(str::to_owned).collect();
        let read = |name: &&str| fs::read(self.at(name)).map_err(|e| e.to_string());
        let whole = case.outputs.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let written = operations.iter().filter(|name| name.starts_with("rename")).count();
        if written != case.outputs.len() || whole.iter().any(|bytes| bytes == OLD) {
            return Err(format!("{:?}: {written} files written", case.arguments));
        }
        Ok(Prepared { case, operations, whole })
    }

    /// Lets the operation `at`, from 1, fail, and looks at what is left: the old files and a message, or all of the new
    /// ones, and nothing else.
    pub fn fail(
        &self,
        prepared: &Prepared,
        at: usize,
        fault: Fault,
        stays: bool,
    ) -> Result<Came, String> {
        let Prepared { case, operations, whole } = prepared;
        self.put_old(case)?;
        let before = self.names()?;
        let output = self.run(case, at, fault, stays)?;
        let err = String::from_utf8_lossy(&output.stderr);
        let wrong = |what: &str| {
            Err(format!(
                "{:?}, {} at operation {at}, {}: {what}\nexit code {:?}\n{err}",
                case.arguments,
                fault.name,
                operations[at - 1],
                output.status.code()
            ))
        };
        let after = self.names()?;
        if after != before {
            let left: Vec<&String> = after.iter().filter(|name| !before.contains(name)).collect();
            left.iter().for_each(|name| {
                let _ = fs::remove_file(self.at(name));
            });
            return wrong(&format!("files are left or missing: {left:?}"));
        }
        let mut new = 0;
        for (name, whole) in case.outputs.iter().zip(whole) {
            match fs::read(self.at(name)) {
                Ok(bytes) if bytes == *whole || *name == TIMED && shape(&bytes) == shape(whole) => {
                    new += 1;
                }
                Ok(bytes) if bytes == OLD => {}
                Ok(_) => return wrong(&format!("{name} is neither old nor new")),
                Err(e) => return wrong(&format!("{name}: {e}")),
            }
        }
        match output.status.code() {
            Some(0) if new == case.outputs.len() => Ok(Came::Done),
            Some(0) => wrong("it says that it is done, and it is not"),
            Some(1) if fault.number == 0 => wrong("a short read or write is no error"),
            // The last of several files that take their places.
            Some(1) if new > 0 && !operations[at - 1].starts_with("rename") && !stays => {
                wrong("not all old files are there")
            }
            Some(1) => {
                let errors: Vec<&str> =
                    err.lines().filter(|line| line.starts_with("svml: ")).collect();
                match errors.as_slice() {
                    [line] if line.to_lowercase().contains(fault.words) => Ok(Came::Refused),
                    _ => wrong("the message does not say what is wrong"),
                }
            }
            _ => wrong("another exit code than 0 and 1"),
        }
    }
}

/// Number of lines, and whether the last has its end.
fn shape(bytes: &[u8]) -> (usize, bool) {
    (bytes.iter().filter(|&&b| b == b'\n').count(), bytes.ends_with(b"\n"))
}

fn words(output: &Output) -> String {
    format!("{:?}: {}", output.status.code(), String::from_utf8_lossy(&output.stderr))
}
