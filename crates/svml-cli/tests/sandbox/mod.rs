//! The real binary in a fresh folder.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use svml::{Dataset, Generator};

/// What tests ask for whose words depend on the form and the criterion.
pub const FULL: [&str; 4] = ["--form", "full", "--criterion", "hold_out"];

/// A folder of its own that vanishes at the end.
pub struct Sandbox {
    folder: tempfile::TempDir,
}

/// What a run gave.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Run {
    /// Asserts the exit code, showing everything if it is another.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, expected, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }
}

impl Sandbox {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// The command, in the folder, untouched by the environment of the tests.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_svml"));
        command.args(args).current_dir(self.folder.path()).env("HOME", self.folder.path());
        for name in ["SVML_DATA", "SVML_UCI_SERVER", "XDG_DATA_HOME", "NO_COLOR", "COLUMNS"] {
            command.env_remove(name);
        }
        command
    }

    pub fn svml(&self, args: &[&str]) -> Run {
        self.command(args).stdin(Stdio::null()).output().unwrap().into()
    }

    pub fn svml_with_input(&self, args: &[&str], input: &[u8]) -> Run {
        let mut child = self.spawn(args);
        // The program may end before it has read all.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap().into()
    }

    pub fn spawn(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Writes generated rows as a table with a header.
    pub fn write_table(&self, name: &str, data: &Dataset) {
        self.write(name, &table(data));
    }

    /// `train.csv` and `m.svml`, of 200 generated rows.
    pub fn with_model() -> Self {
        let sandbox = Self::new();
        sandbox.write_table("train.csv", &generated(200));
        sandbox.svml(&[&["train", "train.csv", "-o", "m.svml"], &FULL[..]].concat()).code(0);
        sandbox
    }
}

pub fn generated(rows: usize) -> Dataset {
    Generator { rows, ..Default::default() }.generate().unwrap().data
}

/// Rows and classes as a table with a header.
pub fn table(data: &Dataset) -> String {
    let mut text = data.schema().encoded_names().join(",") + ",class\n";
    for (row, &class) in data.x().iter_rows().zip(data.y()) {
        let cells: Vec<String> = row.iter().map(f64::to_string).collect();
        text.push_str(&format!("{},{}\n", cells.join(","), data.classes()[class]));
    }
    text
}

/// Whether a program is installed; says that the test is skipped if not.
pub fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok();
    if !found {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: {program} is not installed");
        }
    }
    found
}
