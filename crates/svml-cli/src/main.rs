//! The command `svml`: parse, run, exit code.
//!
//! `args` has every option and its help, `command` one file for each command, `method` what is fitted and its
//! parameters, `words` texts and tables about models, `files` what is read and written, `console` messages,
//! progress and Ctrl-C, `failure` the ways to fail. Commands do not use each other.
#![allow(clippy::print_stderr)]

mod args;
mod command;
mod console;
mod failure;
mod files;
mod method;
mod words;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use console::Console;
use failure::{Failure, Outcome};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors. A closed pipe is no reason to fail.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !matches!(failure, Failure::Closed) {
                Console::error(&failure.to_string());
            }
            failure.code()
        }
    }
}

fn run(cli: &Cli) -> Outcome {
    let console = Console::new(&cli.global)?;
    if let Some(threads) = cli.global.threads {
        if !(1..=4096).contains(&threads) {
            return Err(Failure::Usage(format!(
                "--threads {threads} is not allowed: it must be between 1 and 4096"
            )));
        }
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .map_err(|e| Failure::Runtime(format!("the threads cannot be started: {e}")))?;
    }
    match &cli.command {
        Command::Train(args) => command::train::run(args, &console),
        Command::Predict(args) => command::predict::run(args, &console),
        Command::Evaluate(args) => command::evaluate::run(args, &console),
        Command::Transform(args) => command::transform::run(args, &console),
        Command::Compare(args) => command::compare::run(args, &console),
        Command::Explain(args) => command::explain::run(args, &console),
        Command::LearningCurve(args) => command::learning_curve::run(args, &console),
        Command::Report(args) => command::report::run(args, &console),
        Command::Show(args) => command::show::run(args),
        Command::Parameters(args) => command::parameters::run(args),
        Command::Plot(args) => command::plot::run(args, &console),
        Command::Export(args) => command::export::run(args, &console),
        Command::Data(args) => command::data::run(args, &console),
        Command::Demo(args) => command::demo::run(args, &console),
        Command::SvmTrain(args) => command::svm_train::run(&args.args, &console),
        Command::SvmPredict(args) => command::svm_predict::run(&args.args, &console),
        Command::Completions { shell } => command::generate::completions(*shell),
        Command::Man { dir } => command::generate::man(dir.as_deref()),
    }
}
