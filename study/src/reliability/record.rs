//! What a run of a check saw, as a line of the results file.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::computer;
use crate::jobs::Header;

/// One run of one check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Name of the check, as in the table of gates.
    pub check: String,
    /// Where and when it ran.
    pub header: Header,
    /// Whether what the gate asks for was seen.
    pub met: bool,
    /// What was seen, in words with numbers: one sentence each.
    pub seen: Vec<String>,
}

impl Record {
    /// What was seen here and now.
    pub fn now(check: &str, met: bool, seen: Vec<String>) -> Self {
        Self { check: check.to_owned(), header: computer::header(), met, seen }
    }

    /// Prints it and appends it to the file.
    pub fn append(&self, path: &Path) -> Result<(), String> {
        println!("{}: {}", self.check, if self.met { "met" } else { "NOT met" });
        for sentence in &self.seen {
            println!("  {sentence}");
        }
        let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let line = serde_json::to_string(self).map_err(|e| failed(&e))?;
        let mut file =
            File::options().create(true).append(true).open(path).map_err(|e| failed(&e))?;
        writeln!(file, "{line}").map_err(|e| failed(&e))
    }
}

/// All runs that are in the file, in their order.
pub fn read(path: &Path) -> Result<Vec<Record>, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.lines()
        .enumerate()
        .map(|(i, line)| {
            serde_json::from_str(line)
                .map_err(|e| format!("{}, line {}: {e}", path.display(), i + 1))
        })
        .collect()
}
