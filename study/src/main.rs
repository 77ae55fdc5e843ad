//! Measures svml on the paper's data sets and on generated data, and writes what it saw.
//!
//! ```sh
//! cargo run --release -p study -- accuracy
//! ```
//!
//! Every measurement is a job with a name; its result is appended to a file as soon as it is there, so that
//! an interrupted run goes on where it stopped. Reports are made from that file alone.
#![allow(clippy::print_stderr)]

mod accuracy;
mod jobs;
mod methods;
mod statistics;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures svml and writes what it saw
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The defaults against 5-fold grid search: docs/accuracy.md
    Accuracy {
        /// Folder of the paper's data sets, as `svml data fetch` fills it
        #[arg(long, env = "SVML_DATA", default_value = "../shared/data", value_name = "DIR")]
        data: PathBuf,
        /// Results, one line for each job; those that are there are not measured again
        #[arg(long, default_value = "study/results/accuracy.jsonl", value_name = "FILE")]
        results: PathBuf,
        /// The report
        #[arg(long, default_value = "docs/accuracy.md", value_name = "FILE")]
        out: PathBuf,
        /// Write the report from the results that are there
        #[arg(long)]
        report_only: bool,
    },
}

fn main() -> ExitCode {
    let Command::Accuracy { data, results, out, report_only } = Arguments::parse().command;
    match accuracy::run(&data, &results, &out, report_only) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("study: {message}");
            ExitCode::FAILURE
        }
    }
}
