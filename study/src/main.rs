//! Measures svml on the paper's data sets, on further tables and on generated data, and writes what it saw.
//!
//! ```sh
//! cargo run --release -p study -- accuracy   # the defaults: docs/accuracy.md
//! cargo run --release -p study -- paper      # the paper's tables and figures: docs/study.md
//! cargo run --release -p study -- reliability report   # what was done to svml on purpose: docs/reliability.md
//! ```
//!
//! Every measurement is a job with a name; its result is appended to a file as soon as it is there, so that
//! an interrupted run goes on where it stopped. Reports are made from that file alone.
#![allow(clippy::print_stderr, clippy::print_stdout)]

mod accuracy;
mod computer;
mod jobs;
mod methods;
mod paper;
mod probabilities;
mod reliability;
mod statistics;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use paper::{Options, Scope, Shard};

/// Measures svml and writes what it saw
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The defaults against 5-fold grid search, single members and other programs: docs/accuracy.md
    Accuracy(accuracy::Options),
    /// The paper's tables and figures: docs/study.md and docs/figures
    Paper {
        /// Folder of the paper's data sets, as `svml data fetch` fills it
        #[arg(long, env = "SVML_DATA", default_value = "../shared/data", value_name = "DIR")]
        data: PathBuf,
        /// Results, one line for each job; those that are there are not measured again. Of several
        /// files the first is written to, and the report is made of all [default:
        /// study/results/paper.jsonl, or paper.i-of-N.jsonl for a shard]
        #[arg(long, num_args = 1.., value_name = "FILE")]
        results: Vec<PathBuf>,
        /// The report [default: docs/study.md]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Folder of the figures [default: docs/figures]
        #[arg(long, value_name = "DIR")]
        figures: Option<PathBuf>,
        /// A page with a place for the short tables [default: README.md]
        #[arg(long, value_name = "FILE")]
        readme: Option<PathBuf>,
        /// Do only every N-th job from the i-th on, and write no report: N computers, or N processes,
        /// each with its own i from 1 to N, do them all
        #[arg(long, value_name = "i/N")]
        shard: Option<Shard>,
        /// Ten splits of the small data sets; files go to target/study unless they are named
        #[arg(long)]
        quick: bool,
        /// At most so many splits of each data set
        #[arg(long, value_name = "N")]
        splits: Option<u64>,
        /// Only this data set; may be repeated
        #[arg(long = "set", value_name = "NAME")]
        sets: Vec<String>,
        /// Only this method; may be repeated
        #[arg(long = "method", value_name = "NAME")]
        methods: Vec<String>,
        /// Write the report, and the figures that need no data, from the results that are there
        #[arg(long, conflicts_with = "shard")]
        report_only: bool,
    },
    /// Fuzzing, faults, interrupts and the like, and the page about them: docs/reliability.md
    Reliability(reliability::Options),
    /// The tables of the study of the defaults and their splits as JSON, for study/peers.py
    Splits {
        /// Seed of the first split
        #[arg(long, default_value_t = accuracy::FIRST_SEED, value_name = "SEED")]
        first_seed: u64,
    },
    /// The rows of one split of such a table as JSON, for study/peers.py
    Rows {
        #[command(flatten)]
        source: accuracy::Source,
        /// The table
        set: String,
        /// Seed of the split
        seed: u64,
    },
    /// Fits once or more often, and says what was measured, for study/peers.py
    Fit {
        #[command(flatten)]
        source: accuracy::Source,
        /// The table
        set: String,
        /// Seed of the split
        seed: u64,
        /// The method
        #[arg(long, default_value = methods::DEFAULT, value_name = "NAME")]
        method: String,
        /// How often
        #[arg(long, default_value_t = 1, value_name = "N")]
        times: usize,
    },
    /// The rows of one split of the study of the paper's sets as JSON, for study/sklearn_times.py
    Split {
        /// Folder of the paper's data sets
        #[arg(long, env = "SVML_DATA", default_value = "../shared/data", value_name = "DIR")]
        data: PathBuf,
        /// The data set
        set: String,
        /// The split, from 0 on
        split: u64,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Accuracy(options) => accuracy::run(&options),
        Command::Paper {
            data,
            results,
            out,
            figures,
            readme,
            shard,
            quick,
            splits,
            sets,
            methods,
            report_only,
        } => {
            let splits = if quick { Some(splits.unwrap_or(10)) } else { splits };
            let scope = Scope { small: quick, splits, sets, methods };
            // A look must not replace what the whole study said.
            let or = |given: Option<PathBuf>, usual: &str, look: &str| {
                given.unwrap_or_else(|| PathBuf::from(if quick { look } else { usual }))
            };
            paper::run(Options {
                data,
                results,
                folder: or(None, "study/results", "target/study"),
                out: or(out, "docs/study.md", "target/study/study.md"),
                figures: or(figures, "docs/figures", "target/study/figures"),
                readme: or(readme, "README.md", "target/study/README.md"),
                shard,
                report_only,
                scope,
            })
        }
        Command::Reliability(options) => reliability::run(&options),
        Command::Splits { first_seed } => {
            println!("{}", accuracy::splits_as_json(first_seed));
            Ok(())
        }
        Command::Rows { source, set, seed } => {
            accuracy::rows_as_json(&source, &set, seed).map(|text| println!("{text}"))
        }
        Command::Fit { source, set, seed, method, times } => {
            accuracy::fit_as_json(&source, &set, seed, &method, times).map(|text| print!("{text}"))
        }
        Command::Split { data, set, split } => {
            paper::split_as_json(&data, &set, split).map(|text| println!("{text}"))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("study: {message}");
            ExitCode::FAILURE
        }
    }
}
