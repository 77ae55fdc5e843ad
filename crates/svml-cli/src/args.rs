//! What can be said on the command line, with all of the help text.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use svml::criterion::Criterion;
use svml::data::{Categories, Delimiter, Format, Missing};
use svml::params::FormChoice;

use crate::method::Choice;

/// A support vector machine that learns its own metric.
///
/// The kernel is k(x, z) = exp(-|L (x - z)|^2); the matrix L and C are learned together with the machine, so
/// there is no grid and nothing to tune. Start with `svml demo`, or with `svml train DATA -o MODEL`.
#[derive(Parser, Debug)]
#[command(name = "svml", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Options of every command.
    #[command(flatten)]
    pub global: Global,
}

const EXIT_CODES: &str = "Results go to standard output, messages and progress to standard error; - stands for standard input or \
output. Exit codes: 0 done, 1 failure while running, 2 wrong usage, 3 bad data, 130 interrupted.";

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// No messages and no progress; results and errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Threads to use; results are the same for any number [default: all cores]
    #[arg(long, global = true, value_name = "N")]
    pub threads: Option<usize>,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Learn metric, C and classifier from a table
    Train(Train),
    /// Classify rows
    Predict(Predict),
    /// Measure a model on rows whose classes are known
    Evaluate(Evaluate),
    /// Map rows by the learned metric, scaling included: z = L (x - mean) / scale
    Transform(Transform),
    /// Compare methods on the same random splits, four fifths to train on, one fifth to test on
    Compare(Compare),
    /// Explain what a model has learned
    Show(Show),
    /// Draw a model
    Plot(Plot),
    /// Write a model for another program
    Export(Export),
    /// The nine data sets of the paper
    #[command(subcommand)]
    Data(Data),
    /// See it work: data with a known answer, a fit, a comparison and pictures, in seconds
    Demo(Demo),
    /// Train with LIBSVM's options; writes a LIBSVM model and the map beside it
    #[command(disable_help_flag = true)]
    SvmTrain(LibsvmArgs),
    /// Predict with LIBSVM's options
    #[command(disable_help_flag = true)]
    SvmPredict(LibsvmArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Folder for the pages; without it the main page goes to standard output
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// How a data file is read.
#[derive(Args, Clone, Debug)]
pub struct Reading {
    /// Format of the data: csv (any table of cells) or libsvm [default: found from the content]
    #[arg(long, value_parser = parsed::<Format>, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// What separates cells: comma, semicolon, tab or spaces [default: found from the content]
    #[arg(long, value_parser = parsed::<Delimiter>, value_name = "DELIMITER")]
    pub delimiter: Option<Delimiter>,
    /// The first row is data, not names [default: found from the content]
    #[arg(long)]
    pub no_header: bool,
    /// Folder of the paper's data sets, for DATA such as uci:credit [default: SVML_DATA, else where
    /// `svml data fetch` puts them]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// What training data are.
#[derive(Args, Clone, Debug)]
pub struct TrainingData {
    /// The data: a file, - for standard input, or uci:NAME
    pub data: String,
    /// Column of the classes, by name or by number from 1 [default: the last]
    #[arg(long, value_name = "COL")]
    pub target: Option<String>,
    /// What to do with missing values: refuse, drop (leave out such rows) or impute (mean of numbers, most
    /// frequent category)
    #[arg(long, value_parser = parsed::<Missing>, default_value = "refuse", value_name = "WHAT")]
    pub missing: Missing,
    /// How text columns become numbers: codes (0, 1, ... in sorted order) or onehot (a column of zeros and
    /// ones for each text)
    #[arg(long, value_parser = parsed::<Categories>, default_value = "codes", value_name = "HOW")]
    pub categories: Categories,
    /// How the file is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// How to learn.
#[derive(Args, Clone, Debug)]
pub struct Learning {
    /// Structure of L: sphere (L = I/sigma, one width), diagonal (one weight for each feature), full (all
    /// entries), rank=R (a map into R dimensions), or auto, which learns a sphere and what it leads
    /// to, diagonal or low rank, and chooses by the errors on rows held out [default: auto]
    #[arg(long, value_parser = parsed::<FormChoice>, value_name = "FORM")]
    pub form: Option<FormChoice>,
    /// How metric and C are validated while they are learned: k_fold=K (each of K parts by machines
    /// trained on the others), hold_out (half of the rows train, a quarter validates, a quarter says when
    /// to stop) or leave_one_out (in closed form) [default: k_fold=5]
    #[arg(long, value_parser = parsed::<Criterion>, value_name = "CRITERION")]
    pub criterion: Option<Criterion>,
    /// As in the paper: a full L, the hold-out criterion on the sigmoid 1/(1 + exp(5 z)) of the margins z
    /// instead of the squared hinge max(0, 1 - z)^2, conjugate gradients; what is given besides holds
    #[arg(long)]
    pub paper: bool,
    /// Weights of the classes: none, or balanced (every class counts the same: rows / (classes x rows of
    /// the class))
    #[arg(long, value_enum, default_value = "none", value_name = "WEIGHTS")]
    pub weights: Weights,
    /// Seed of the splits; the same data, options and seed give the same model
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
}

/// Weights of the classes.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// All alike.
    None,
    /// Every class counts the same.
    Balanced,
}

/// `svml train`
#[derive(Args, Clone, Debug)]
pub struct Train {
    /// Data to learn from.
    #[command(flatten)]
    pub data: TrainingData,
    /// File for the model
    #[arg(short, long, value_name = "MODEL")]
    pub output: String,
    /// How to learn: svml (metric, C and machine together), euclidean (width and C by 5-fold
    /// cross-validation on a grid of 20: sigma^2 in {4, 2, 1, 1/2, 1/4} d, C in {0.1, 1, 10, 100}), or the
    /// same grid after the metric of another learner: pca (principal components), nca (neighbourhood
    /// component analysis), lmnn (large margin nearest neighbours) or itml (information-theoretic);
    /// of these pca, nca and lmnn know --form rank=R
    #[arg(long, value_parser = parsed::<Choice>, default_value = "svml", value_name = "METHOD")]
    pub method: Choice,
    /// How to learn.
    #[command(flatten)]
    pub learning: Learning,
    /// Seconds after which the best model so far is taken [default: no limit]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time_limit: Option<f64>,
    /// File for a table of the steps: form, loss, errors, C, support vectors
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// A model and rows for it.
#[derive(Args, Clone, Debug)]
pub struct ModelAndRows {
    /// Model file of `svml train`
    pub model: String,
    /// The rows: a file, - for standard input, or uci:NAME
    pub data: String,
    /// How the file is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// `svml predict`
#[derive(Args, Clone, Debug)]
pub struct Predict {
    /// Model and rows.
    #[command(flatten)]
    pub rows: ModelAndRows,
    /// File for the predictions, one line for each row; for LIBSVM rows in the form of svm-predict
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: String,
    /// Add decision values: with two classes h(x), positive for the second; else one for each class, of which
    /// the largest decides
    #[arg(long)]
    pub decision: bool,
    /// Add the probability of each class
    #[arg(long)]
    pub probabilities: bool,
}

/// `svml evaluate`
#[derive(Args, Clone, Debug)]
pub struct Evaluate {
    /// Model and rows.
    #[command(flatten)]
    pub rows: ModelAndRows,
    /// Print as JSON, with error and balanced_error as fractions
    #[arg(long)]
    pub json: bool,
}

/// `svml transform`
#[derive(Args, Clone, Debug)]
pub struct Transform {
    /// Model and rows.
    #[command(flatten)]
    pub rows: ModelAndRows,
    /// File for the mapped rows
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: String,
    /// Format to write: csv (columns z1, z2, ... and the class, if it is known) or libsvm (for svm-predict with
    /// a model of `svml export`)
    #[arg(long, value_parser = parsed::<Format>, default_value = "csv", value_name = "FORMAT")]
    pub output_format: Format,
}

/// `svml compare`
#[derive(Args, Clone, Debug)]
pub struct Compare {
    /// Data to compare on.
    #[command(flatten)]
    pub data: TrainingData,
    /// Methods, separated by commas: svml, svml:FORM (such as svml:diagonal; else as --form says), pca, nca, lmnn (each also
    /// with :rank=R), itml, or euclidean, which is always there to be compared with [default:
    /// svml,euclidean]
    #[arg(long, value_delimiter = ',', value_parser = parsed::<Choice>, value_name = "METHODS")]
    pub methods: Vec<Choice>,
    /// Number of random splits
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10000))]
    pub splits: u64,
    /// How to learn.
    #[command(flatten)]
    pub learning: Learning,
    /// Print as JSON, with errors as fractions
    #[arg(long)]
    pub json: bool,
}

/// `svml show`
#[derive(Args, Clone, Debug)]
pub struct Show {
    /// Model file of `svml train`
    pub model: String,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to draw.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows in the two leading directions of the metric, over what the model decides
    Map,
    /// Loss and errors, step by step, form by form
    Trace,
    /// The matrix M = L'L with the names of the features
    Metric,
    /// The diagonal of M, sorted: how much each standardised feature counts
    Relevance,
    /// Whether probabilities come true
    Reliability,
}

/// `svml plot`
#[derive(Args, Clone, Debug)]
pub struct Plot {
    /// Model file of `svml train`
    pub model: String,
    /// The rows to draw, for map and reliability: a file, - for standard input, or uci:NAME
    pub data: Option<String>,
    /// Picture to write; its name ends in .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: String,
    /// What to draw
    #[arg(long, value_enum, default_value = "map", value_name = "KIND")]
    pub kind: Kind,
    /// Title of the picture
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// How the file is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// The program to export to.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// LIBSVM's model file: with rows of `svml transform --output-format libsvm`, svm-predict gives the same labels and
    /// decision values
    Libsvm,
}

/// `svml export`
#[derive(Args, Clone, Debug)]
pub struct Export {
    /// Model file of `svml train`
    pub model: String,
    /// Format to write
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub to: Target,
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: String,
}

/// `svml data`
#[derive(Subcommand, Debug)]
pub enum Data {
    /// List the data sets and say which are there
    List {
        /// Folder of the data sets [default: SVML_DATA, else a folder of your account]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Download data sets from UCI, checked by sha256; what is there already is not fetched again
    Fetch {
        /// Names of data sets, or all
        #[arg(required = true)]
        names: Vec<String>,
        /// Folder of the data sets [default: SVML_DATA, else a folder of your account]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// `svml demo`
#[derive(Args, Clone, Debug)]
pub struct Demo {
    /// Folder for data, model and pictures
    #[arg(long, default_value = "svml-demo", value_name = "DIR")]
    pub out: PathBuf,
}

/// Arguments in LIBSVM's manner.
#[derive(Args, Clone, Debug)]
pub struct LibsvmArgs {
    /// As for LIBSVM's program of that name; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub args: Vec<String>,
}

/// A word of the library, with the library's explanation if it is none.
fn parsed<T>(text: &str) -> Result<T, String>
where
    T: std::str::FromStr<Err = svml::Error>,
{
    text.parse().map_err(|error: svml::Error| error.to_string())
}

fn seconds(text: &str) -> Result<f64, String> {
    let fits = |s: &f64| s.is_finite() && *s > 0.0;
    text.parse()
        .ok()
        .filter(fits)
        .ok_or_else(|| "a positive number of seconds is needed".to_owned())
}
