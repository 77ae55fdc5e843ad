//! Whether svml can be trusted: what is done to it on purpose, and the page that says how it took it.
//!
//! Each check is a command of its own. It prints what it saw and appends one line to a results file; the page
//! docs/reliability.md is made from the table of gates and from the last line of each check, and nothing in it is
//! typed but the words.

mod determinism;
mod fuzz;
mod gates;
mod interrupts;
mod kills;
mod memory;
mod record;
mod report;
mod resume;
mod scratch;
mod soak;
mod speed;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod writes;

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What all checks have in common.
#[derive(Args)]
pub struct Options {
    /// Results, one line for each run of a check
    #[arg(
        long,
        default_value = "study/results/reliability.jsonl",
        value_name = "FILE",
        global = true
    )]
    results: PathBuf,
    #[command(subcommand)]
    check: Check,
}

#[derive(Subcommand)]
enum Check {
    /// The same bits for any number of threads and order of rows; the same results on other processors
    Determinism(determinism::Determinism),
    /// Ctrl-C at random moments
    Interrupts(interrupts::Interrupts),
    /// Very many fits and predictions in one process
    Soak(soak::Soak),
    /// Two builds of the command in turn: has anything become slower?
    Speed(speed::Speed),
    /// Real limits on memory: a result or an error, and no more than was said
    Memory(memory::Options),
    /// Kill a fit with a checkpoint at random moments until it has ended
    Resume(resume::Resume),
    /// Any bytes to every reader: no panic, no hang, bounded memory
    Fuzz(fuzz::Options),
    /// Kills at random moments of training, saving, predicting, exporting, reporting and of the study
    Kills(kills::Kills),
    /// Every file operation of every command that writes fails, disks are full, pipes closed, clocks jump
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    Writes(writes::Writes),
    /// Saves two models to one file in turn for ever: what the check `kills` kills
    #[command(hide = true)]
    Saves {
        /// A model
        first: PathBuf,
        /// Another model
        second: PathBuf,
        /// The file
        to: PathBuf,
    },
    /// The page, from the results
    Report {
        /// The page
        #[arg(long, default_value = "docs/reliability.md", value_name = "FILE")]
        out: PathBuf,
    },
}

/// Does what was asked for.
pub fn run(options: &Options) -> Result<(), String> {
    match &options.check {
        Check::Determinism(check) => determinism::check(check, &options.results),
        Check::Interrupts(check) => interrupts::check(check, &options.results),
        Check::Soak(check) => soak::check(check, &options.results),
        Check::Speed(check) => speed::check(check, &options.results),
        Check::Memory(of_check) => memory::run(of_check, &options.results),
        Check::Resume(check) => resume::check(check, &options.results),
        Check::Fuzz(fuzz) => fuzz::run(fuzz, &options.results),
        Check::Kills(check) => kills::check(check, &options.results),
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        Check::Writes(check) => writes::check(check, &options.results),
        Check::Saves { first, second, to } => kills::save_in_a_loop([first, second], to),
        Check::Report { out } => report::write(&options.results, out),
    }
}
