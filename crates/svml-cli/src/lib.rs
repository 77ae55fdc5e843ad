//! The command `svml`: parse, run, exit code. What other programs may rely on is the command, not this library, which is
//! there so that the command can be tested within another process.
//!
//! `args` has every option and its help, `command` one file for each command, `method` what is fitted and its
//! parameters, `words` texts and tables about models, `files` what is read and written, `console` messages,
//! progress and Ctrl-C, `names` those of files that are no text, `failure` the ways to fail. Commands do not use each other.
#![allow(clippy::print_stderr)]

mod args;
mod command;
mod console;
mod failure;
mod files;
mod method;
mod names;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use svml::Model;

use args::{Cli, Command};
#[cfg(target_os = "linux")]
pub use console::look_at_standard_output;
use console::{Console, Signals};
use failure::{Failure, Outcome};

/// Does what the arguments say, the first of which is the name of the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    // First of all, so that a signal never ends the program without a word.
    let signals = Signals::listen();
    let cli = match Cli::try_parse_from(arguments.into_iter().map(names::as_text)) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are no errors. A closed pipe is no reason to fail.
            let _ = error.print();
            if error.use_stderr() {
                return ExitCode::from(2);
            }
            return console::check_open().map_or_else(ended_by, |()| ExitCode::SUCCESS);
        }
    };
    match signals.and_then(|signals| execute(&cli, signals)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => ended_by(failure),
    }
}

/// Says why there is no result.
fn ended_by(failure: Failure) -> ExitCode {
    if !matches!(failure, Failure::Closed) {
        Console::error(&failure.to_string());
    }
    failure.code()
}

/// Says what is wrong with arguments as far as they alone can tell: nothing is read but a file of parameters, and nothing is
/// written.
pub fn check(arguments: impl IntoIterator<Item = OsString>) -> Result<(), String> {
    let cli = Cli::try_parse_from(arguments).map_err(|error| error.to_string())?;
    match &cli.command {
        Command::Train(args) => method::chosen(args.method.as_ref(), &args.learning).map(drop),
        Command::LearningCurve(args) => {
            method::chosen(args.method.as_ref(), &args.learning).map(drop)
        }
        Command::Compare(args) => command::compare::methods(args).map(drop),
        Command::SvmTrain(args) => command::svm_train::parse(&args.args).map(drop),
        _ => Ok(()),
    }
    .map_err(|failure| failure.to_string())
}

/// What `svml show` prints about a model, for people and as JSON.
pub fn described(model: &Model) -> (String, String) {
    let people = [true, false].map(|by_feature| words::details(model, "MODEL", by_feature));
    (console::clean(&people.concat()).into_owned(), words::as_json(model).to_string())
}

/// At most so many threads are started for each core.
const THREADS_PER_CORE: usize = 4;

/// Starts so many threads, or as many as the computer has if that is 0. Each of them reserves addresses for its memory when it
/// begins. Where the process may have only so many of them (`ulimit -v`), that must not happen between the moment when
/// something large is found to have room and the moment when it is made.
fn start_threads(count: usize) -> Outcome {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .build_global()
        .map_err(|e| {
            Failure::Runtime(format!(
                "the threads cannot be started: {e}. There is too little memory for them (ulimit -v), or the system allows no \
                 more threads (ulimit -u); use fewer, for example --threads 1"
            ))
        })?;
    rayon::broadcast(|_| drop(std::hint::black_box(Vec::<u8>::with_capacity(64))));
    Ok(())
}

fn execute(cli: &Cli, signals: Signals) -> Outcome {
    let console = Console::new(&cli.global, signals);
    if let Some(threads) = cli.global.threads
        && !(1..=4096).contains(&threads)
    {
        return Err(Failure::Usage(format!(
            "--threads {threads} is not allowed: it must be between 1 and 4096"
        )));
    }
    // More only get in each other's way.
    let most = THREADS_PER_CORE * std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cli.global.threads.unwrap_or(0);
    if threads > most {
        console.note(&format!(
            "--threads {threads} is more than {THREADS_PER_CORE} for each core: {most} are used."
        ));
    }
    start_threads(threads.min(most))?;
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
