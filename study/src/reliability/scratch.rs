//! What checks have in common: tables to work on, random moments, the command.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use svml::Generator;

/// The command that is looked at.
#[derive(Args)]
pub struct Svml {
    /// The command
    #[arg(long = "svml", default_value = "target/release/svml", value_name = "PATH")]
    path: PathBuf,
}

impl Svml {
    /// Its whole path, which holds in any folder.
    pub fn path(&self) -> Result<PathBuf, String> {
        fs::canonicalize(&self.path).map_err(|e| {
            format!("{}: {e}; make it with cargo build --release -p svml-cli", self.path.display())
        })
    }
}

/// Runs a program in a folder and gives what it printed; a failure is an error with its message.
pub fn run(program: &Path, folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    let done = command.output().map_err(|e| format!("{}: {e}", program.display()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match done.status.success() {
        true => Ok(text(&done.stdout)),
        false => Err(format!("{}: {}{}", arguments.join(" "), text(&done.stderr), done.status)),
    }
}

/// Writes a file of a folder.
pub fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    fs::write(folder.join(name), text).map_err(|e| format!("{name}: {e}"))
}

/// The rows of a generator as a table with a header, in an order that `order` makes of theirs.
pub fn table(generator: &Generator, order: impl FnOnce(&mut Vec<usize>)) -> Result<String, String> {
    let data = generator.generate().map_err(|e| e.to_string())?.data;
    let mut rows: Vec<usize> = (0..data.x().rows()).collect();
    order(&mut rows);
    let mut text = data.schema().encoded_names().join(",") + ",class\n";
    for row in rows {
        for value in data.x().row(row) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{value},");
        }
        let _ = writeln!(text, "{}", data.classes()[data.y()[row]]);
    }
    Ok(text)
}

/// SplitMix64: one seed, one sequence.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number between 0 and 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `n`, or 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// Whether it is one case of so many.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of some things.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// About normal: the sum of four that are evenly spread.
    pub fn normal(&mut self) -> f64 {
        (0..4).map(|_| self.share() - 0.5).sum::<f64>() * 3.0_f64.sqrt()
    }

    /// Puts items into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.share() * (last + 1) as f64) as usize);
        }
    }
}
