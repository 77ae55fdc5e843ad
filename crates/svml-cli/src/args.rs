//! What can be said on the command line, with all of the help text.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use svml::data::{Categories, Delimiter, Format, Missing};
use svml::{ClassWeight, Criterion, Device, FormChoice, Goal, Kernel, LandmarkChoice, Measure};

use crate::method::{self, MethodArg, MethodList};
use crate::names::file;

/// A support vector machine that learns its own metric.
///
/// The kernel is k(x, z) = exp(-|L (x - z)|^2). The matrix L and C are learned together with the SVM, so there
/// is no grid search and nothing to tune. By default the model is the mean of several such SVMs with different
/// kernels, and it comes with an estimate of its error. Start with `svml demo`, or with `svml train DATA -o MODEL`.
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

const EXIT_CODES: &str = "Results go to standard output, messages and progress to standard error; - means standard input or \
output. Exit codes: 0 success, 1 failure while running, 2 wrong usage, 3 bad data, 130 interrupted.";

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// Print only results and errors, no messages or progress
    #[arg(short, long, global = true, display_order = 900)]
    pub quiet: bool,
    /// Number of threads, at most 4 for each core; it does not affect the results [default: all cores]
    #[arg(long, global = true, value_name = "N", display_order = 901)]
    pub threads: Option<usize>,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Learn a metric and a classifier from a table
    Train(Box<Train>),
    /// Predict the classes of rows
    Predict(Predict),
    /// Evaluate a model on rows whose classes are known
    Evaluate(Evaluate),
    /// Map rows with the learned metric, including the scaling: z = L (x - mean) / scale
    Transform(Transform),
    /// Compare methods on the same random splits: four fifths of the rows for training, one fifth for testing
    Compare(Box<Compare>),
    /// Explain why rows are classified as they are: the contribution of each column, and the most similar training rows
    Explain(Explain),
    /// Measure how the error falls as the number of training rows grows, and plot it
    LearningCurve(Box<LearningCurve>),
    /// Write a one-page report on a model and its performance on rows whose classes are known
    Report(Report),
    /// Print a summary of what a model has learned
    Show(Show),
    /// List the parameters of a method, with their meanings, allowed values and defaults
    Parameters(Parameters),
    /// Plot a model
    Plot(Plot),
    /// Export a model for use in another program
    Export(Export),
    /// List or download the nine data sets of the paper
    #[command(subcommand)]
    Data(Data),
    /// See svml at work in seconds: data with a known answer, a fit, a comparison and plots
    Demo(Demo),
    /// Train with the options of LIBSVM's svm-train; writes a LIBSVM model and, next to it, the learned map
    #[command(disable_help_flag = true)]
    SvmTrain(LibsvmArgs),
    /// Predict with the options of LIBSVM's svm-predict
    #[command(disable_help_flag = true)]
    SvmPredict(LibsvmArgs),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages
    Man {
        /// Folder for the pages; without this option, the main page goes to standard output
        #[arg(long, value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
        dir: Option<PathBuf>,
    },
}

/// How a data file is read.
#[derive(Args, Clone, Debug)]
pub struct Reading {
    /// Format of the data: csv (any delimited text table), libsvm, or npy (a two-dimensional NumPy array) [default:
    /// detected from the content]
    #[arg(long, value_parser = parsed::<Format>, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Delimiter between the cells of a row: comma, semicolon, tab or spaces [default: detected from the content]
    #[arg(long, value_parser = parsed::<Delimiter>, value_name = "DELIMITER")]
    pub delimiter: Option<Delimiter>,
    /// The first row holds column names [default: detected from the content]
    #[arg(long, conflicts_with = "no_header")]
    pub header: bool,
    /// The first row holds data, not column names [default: detected from the content]
    #[arg(long)]
    pub no_header: bool,
    /// Folder with the paper's data sets, for DATA such as uci:credit [default: the environment variable SVML_DATA,
    /// or else the folder that `svml data fetch` uses]
    #[arg(long, value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
    pub dir: Option<PathBuf>,
}

/// What training data are.
#[derive(Args, Clone, Debug)]
pub struct TrainingData {
    /// The data: a file, - for standard input, or uci:NAME
    pub data: String,
    /// Column that holds the classes, by name or by number from 1 [default: the last column]
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub target: Option<String>,
    /// Column, by name or by number from 1, that says which rows belong together, such as the rows of one patient: all
    /// rows of a group stay in the same fold and on the same side of a split. The column is not used as a feature
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub groups: Option<String>,
    /// How to handle missing values: refuse (stop with an error), drop (leave out rows that have any) or impute (fill in
    /// the mean of a numeric column, or the most frequent category of any other column). With impute, a few cells that
    /// are not numbers in a column of numbers are imputed too, with a warning
    #[arg(long, value_parser = parsed::<Missing>, default_value = "refuse", value_name = "WHAT")]
    pub missing: Missing,
    /// How text columns are encoded as numbers: codes (0, 1, ... in sorted order), onehot (a column of zeros and ones for
    /// each distinct value), or auto, which uses onehot for up to 20 distinct values and codes for more, and leaves
    /// out columns that look like identifiers: dates, row numbers, and text that differs in almost every row, such
    /// as names
    #[arg(long, value_parser = parsed::<Categories>, default_value = "auto", value_name = "HOW")]
    pub categories: Categories,
    /// Columns to leave out, by names or numbers from 1, separated by commas. New rows may or may not contain them
    #[arg(long, value_name = "COLS", value_delimiter = ',', allow_negative_numbers = true)]
    pub drop: Vec<String>,
    /// Learn from these columns only, given by names or numbers from 1, separated by commas. They are used even if they
    /// look like identifiers
    #[arg(long, value_name = "COLS", value_delimiter = ',', allow_negative_numbers = true)]
    pub only: Vec<String>,
    /// Columns to use even if they look like identifiers, by names or numbers from 1, separated by commas
    #[arg(long = "use", value_name = "COLS", value_delimiter = ',', allow_negative_numbers = true)]
    pub use_anyway: Vec<String>,
    /// Columns that hold text even if all or nearly all of their cells are numbers, such as postal codes, by names or numbers
    /// from 1, separated by commas
    #[arg(long, value_name = "COLS", value_delimiter = ',', allow_negative_numbers = true)]
    pub text: Vec<String>,
    /// How the file is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// How to learn. What is not given stays as the method has it.
#[derive(Args, Clone, Debug)]
pub struct Learning {
    /// Structure of the matrix L: sphere (L = I/sigma, one width), diagonal (one weight for each feature), full
    /// (all entries), rank=R (a map into R dimensions), or auto, the mean of several SVMs, each with its own metric
    /// and kernel. Methods other than svml that have a parameter rank accept only rank=R [default: auto]
    #[arg(long, value_parser = parsed::<FormChoice>, value_name = "FORM")]
    pub form: Option<FormChoice>,
    /// The kernel, if a form is given: gaussian, exp(-|L (x - z)|^2); exponential, exp(-|L (x - z)|); or
    /// laplacian, exp(-sum_k w_k |x_k - z_k|) where w is the diagonal of L, for the forms sphere and diagonal only
    /// [default: gaussian; with --form auto, several kernels]
    #[arg(long, value_parser = parsed::<Kernel>, value_name = "KERNEL")]
    pub kernel: Option<Kernel>,
    /// How L and C are validated while they are learned: k_fold=K (each of K folds is classified by SVMs trained on the
    /// other folds), hold_out (half of the rows for training, a quarter for validation, a quarter for early stopping)
    /// or leave_one_out (in closed form) [default: k_fold=2]
    #[arg(long, value_parser = parsed::<Criterion>, value_name = "CRITERION")]
    pub criterion: Option<Criterion>,
    /// Learn as in the paper: a full matrix L, the hold-out criterion, the sigmoid 1/(1 + exp(5 z)) of the margins
    /// z instead of the squared hinge max(0, 1 - z)^2, and conjugate gradients. Options given explicitly take
    /// precedence
    #[arg(long)]
    pub paper: bool,
    /// Class weights: none, balanced (every class counts the same: rows / (classes x rows of the class)), or pairs
    /// CLASS=WEIGHT such as yes=5,no=1, where classes that are not listed have weight 1. Weights change which class is
    /// predicted; probabilities are corrected for them [default: none]
    #[arg(long, value_parser = method::class_weight, value_name = "WEIGHTS")]
    pub class_weight: Option<ClassWeight>,
    /// Seed for everything random, such as folds and splits; the same data, options and seed give the same model
    /// [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Train SVMs on at most M landmarks, rows that represent all others, so that time and memory grow only linearly with
    /// the number of rows. M is a number of at least 1; auto, which is exact up to about 5000 rows and uses about 2000
    /// landmarks beyond that; or exact. The criterion leave_one_out is always exact [default: auto]
    #[arg(long, value_parser = parsed::<LandmarkChoice>, value_name = "M", conflicts_with = "exact")]
    pub landmarks: Option<LandmarkChoice>,
    /// Train exact SVMs for any number of rows, like --landmarks exact: time grows with the cube of the number of rows,
    /// memory with its square
    #[arg(long)]
    pub exact: bool,
    /// Limit on the memory of a fit (for exact SVMs, of their kernel matrices), in bytes or with a unit, such as 4GiB or
    /// 500MB; fewer landmarks are used if it requires that. On a GPU, the limit is the smaller of this and the free GPU
    /// memory [default: none, but a fit that needs more than three quarters of the free memory is refused]
    #[arg(long, value_parser = method::bytes, value_name = "BYTES")]
    pub memory_limit: Option<u64>,
    /// Set any parameter of the method, as in --set lambda=0.1; the option can be repeated. `svml parameters METHOD`
    /// explains all parameters of a method. --set takes precedence over all other options
    #[arg(long, value_parser = method::name_and_value, value_name = "NAME=VALUE")]
    pub set: Vec<(String, String)>,
    /// File with parameters: a JSON object of names and values such as {"lambda": 0.1, "seed": 3}. For `svml train` the
    /// file may also hold a whole method, as printed by `svml show --json`. Options given explicitly take precedence
    #[arg(long, value_name = "FILE")]
    pub params: Option<String>,
    /// Where to compute.
    #[command(flatten)]
    pub computing: Computing,
}

/// Where to compute.
#[derive(Args, Clone, Debug)]
pub struct Computing {
    /// Where to compute: cpu; cuda or cuda:N, CUDA GPU number N counted from 0, with an error if it is not available; or
    /// auto, which uses a GPU if there is one and the work is large enough to benefit, and otherwise the CPU. Results on
    /// one device are identical from run to run; those of CPU and GPU differ in the last digits
    #[arg(long, value_parser = parsed::<Device>, default_value = "auto", value_name = "DEVICE")]
    pub device: Device,
}

/// `svml train`
#[derive(Args, Clone, Debug)]
pub struct Train {
    /// Data to learn from.
    #[command(flatten)]
    pub data: TrainingData,
    /// File to write the model to
    #[arg(short, long, value_name = "MODEL")]
    pub output: String,
    /// Method to fit, such as svml, euclidean or nca:rank=2+knn:k=5 [default: svml]
    #[arg(long, value_parser = parsed::<MethodArg>, value_name = "METHOD", long_help = method::help())]
    pub method: Option<MethodArg>,
    /// How to learn.
    #[command(flatten)]
    pub learning: Learning,
    /// Time limit in seconds, after which learning stops with the best model so far [default: no limit]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time_limit: Option<f64>,
    /// File in which to save progress. If the command is killed or the computer goes down, running the same command again
    /// resumes from the file and writes exactly the same model, bit for bit. A kill loses only the computation in
    /// progress, such as one step; a power cut may also lose the last few seconds. The file is removed once the model is
    /// written. It contains no rows of the data
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub checkpoint: Option<String>,
    /// File for a table of the learning steps: loss and, for svml, kernel, form, errors, C and support vectors
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Keep all training rows in the model file, so that `svml explain` can list those most similar to a new row. Anyone
    /// who has the file can then read these rows
    #[arg(long)]
    pub keep_rows: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// A model and rows for it.
#[derive(Args, Clone, Debug)]
pub struct ModelAndRows {
    /// Model file written by `svml train`
    pub model: String,
    /// The rows: a file, - for standard input, or uci:NAME
    pub data: String,
    /// Stop with exit code 3 if the rows are unlike the training data: new categories, numbers outside the training range
    /// by more than its width, or missing values. Without this option, only a note is printed
    #[arg(long)]
    pub strict: bool,
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
    /// File for the predictions, one line per row; for rows in LIBSVM format, in the format of svm-predict
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: String,
    /// Add decision values: with two classes a single value h(x), which is positive for the second class; with more
    /// classes one value per class, of which the largest decides
    #[arg(long)]
    pub decision: bool,
    /// Add the probability of each class
    #[arg(long)]
    pub probabilities: bool,
    /// For two classes: predict the class given by --positive if its probability is at least T, otherwise the other
    /// class. T is a number between 0 and 1, or cost=FP:FN, which means FP / (FP + FN) for the costs of a false positive
    /// and a false negative. `svml evaluate` can find other thresholds [default: follow the decision of the SVMs]
    #[arg(long, value_name = "T", value_parser = ThresholdArg::without_rows)]
    pub threshold: Option<ThresholdArg>,
    /// The class that --threshold refers to [default: the second class]
    #[arg(long, value_name = "CLASS", requires = "threshold")]
    pub positive: Option<String>,
    /// Columns of the data to copy unchanged before the predictions: names or numbers from 1, separated by commas, or
    /// all. If the target column is among them, the column of predictions is named predicted_ followed by its name
    #[arg(long, value_name = "COLS", value_delimiter = ',')]
    pub keep: Vec<String>,
    /// Where to compute.
    #[command(flatten)]
    pub computing: Computing,
}

/// A threshold as it is given.
#[derive(Clone, Copy, Debug)]
pub enum ThresholdArg {
    /// A probability.
    At(f64),
    /// What it is to be chosen for.
    Best(Goal),
}

impl ThresholdArg {
    /// A number, or what the threshold is to be best for.
    fn any(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(at) if (0.0..=1.0).contains(&at) => Ok(Self::At(at)),
            _ => parsed(text).map(Self::Best),
        }
    }

    /// The same where there are no classes to choose by.
    fn without_rows(text: &str) -> Result<Self, String> {
        match Self::any(text)? {
            Self::Best(goal) if !matches!(goal, Goal::Cost { .. }) => Err(format!(
                "the best threshold for {goal} cannot be found from rows whose classes are unknown; find it with svml evaluate \
                 MODEL DATA --threshold {goal}, and give the number"
            )),
            given => Ok(given),
        }
    }
}

/// `svml evaluate`
#[derive(Args, Clone, Debug)]
pub struct Evaluate {
    /// Model and rows.
    #[command(flatten)]
    pub rows: ModelAndRows,
    /// For two classes: predict the class given by --positive if its probability is at least T, otherwise the other
    /// class. T is a number between 0 and 1; f1, balanced_error or mcc, which finds the threshold that is best for this
    /// measure on these rows, to be used on other rows; or cost=FP:FN, which means FP / (FP + FN) for the costs of a
    /// false positive and a false negative, such as cost=1:5 [default: follow the decision of the SVMs]
    #[arg(long, value_name = "T", value_parser = ThresholdArg::any)]
    pub threshold: Option<ThresholdArg>,
    /// For two classes: the class that --threshold, F1, average precision and the Brier score refer to [default: the
    /// second class]
    #[arg(long, value_name = "CLASS")]
    pub positive: Option<String>,
    /// Where to compute.
    #[command(flatten)]
    pub computing: Computing,
    /// Print as JSON, with errors as fractions
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
    /// Output format: csv (columns z1, z2, ... and the class, if known) or libsvm (for svm-predict with a model from
    /// `svml export`)
    #[arg(long, value_parser = written, default_value = "csv", value_name = "FORMAT")]
    pub output_format: Format,
}

/// `svml compare`
#[derive(Args, Clone, Debug)]
pub struct Compare {
    /// Data to compare on.
    #[command(flatten)]
    pub data: TrainingData,
    /// Methods to compare with euclidean, which is always included, separated by commas; `svml train --help` explains
    /// how to write a method. A comma starts a new method if the name of a method follows it, as in
    /// svml:lambda=0.1,seed=3,nca:rank=2; otherwise it separates parameters. The option can be repeated. Other
    /// options apply to every method that has the parameter in question [default: svml]
    #[arg(long, value_parser = parsed::<MethodList>, value_name = "METHODS")]
    pub methods: Vec<MethodList>,
    /// Number of random splits
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10000))]
    pub splits: u64,
    /// Measure to compare: error, balanced_error, auc, average_precision, f1, mcc, brier, log_loss or calibration_error;
    /// --json prints all of them
    #[arg(long, value_parser = parsed::<Measure>, default_value = "error", value_name = "NAME")]
    pub measure: Measure,
    /// How to learn.
    #[command(flatten)]
    pub learning: Learning,
    /// File in which to save the measures and times of finished fits. If the command is killed, running the same command
    /// again resumes with the fit that was interrupted. The file is removed at the end
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub checkpoint: Option<String>,
    /// Print as JSON, with errors as fractions
    #[arg(long)]
    pub json: bool,
}

/// `svml explain`
#[derive(Args, Clone, Debug)]
pub struct Explain {
    /// Model and rows.
    #[command(flatten)]
    pub rows: ModelAndRows,
    /// Explain this row in words; rows are counted from 1 [default: all rows, as a table of contributions]
    #[arg(long, value_name = "N")]
    pub row: Option<usize>,
    /// Compare with this row of the data; rows are counted from 1 [default: the mean of the training rows]
    #[arg(long, value_name = "N")]
    pub reference: Option<usize>,
    /// Maximum number of columns to list individually for a row
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub columns: usize,
    /// Number of most similar training rows to list for a row, if the model keeps its training rows
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub alike: usize,
    /// File for the result; a plot of one row if the name ends in .svg or .png
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: String,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `svml learning-curve`
#[derive(Args, Clone, Debug)]
pub struct LearningCurve {
    /// Data to learn from.
    #[command(flatten)]
    pub data: TrainingData,
    /// File for the plot, with a name ending in .svg or .png [default: no plot, only the table]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// Method to fit, such as svml, euclidean or nca:rank=2+knn:k=5 [default: svml]
    #[arg(long, value_parser = parsed::<MethodArg>, value_name = "METHOD", long_help = method::help())]
    pub method: Option<MethodArg>,
    /// Numbers of training rows, separated by commas [default: up to six sizes, each half of the next, the largest being
    /// four fifths of all rows]
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    pub sizes: Option<Vec<usize>>,
    /// Number of repetitions; each holds out a different random fifth of the rows and measures the error on it
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub repetitions: u64,
    /// Title of the plot
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// How to learn.
    #[command(flatten)]
    pub learning: Learning,
    /// Print as JSON, with errors as fractions
    #[arg(long)]
    pub json: bool,
}

/// `svml report`
#[derive(Args, Clone, Debug)]
pub struct Report {
    /// Model and rows; use rows that the model was not trained on.
    #[command(flatten)]
    pub rows: ModelAndRows,
    /// File for the report, a self-contained HTML page
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: String,
    /// Heading of the report [default: the names of the model and the data]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Where to compute.
    #[command(flatten)]
    pub computing: Computing,
}

/// `svml show`
#[derive(Args, Clone, Debug)]
pub struct Show {
    /// Model file written by `svml train`
    pub model: String,
    /// List the relevance of each encoded feature, such as colour=red, instead of each column
    #[arg(long)]
    pub features: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `svml parameters`
#[derive(Args, Clone, Debug)]
pub struct Parameters {
    /// The method, written as for `svml train --method`; parameters set in it are shown with these values
    #[arg(value_parser = parsed::<MethodArg>, default_value = "svml")]
    pub method: MethodArg,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to plot.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The rows as the metric sees them, in the plane that separates the classes best, with the model's decisions
    Map,
    /// Loss and errors, step by step, of each SVM that was learned
    Trace,
    /// The matrix M = L'L with feature names; a bar chart if it is diagonal
    Metric,
    /// How much each column matters: its share of the diagonal of M on standardised features and, for a mean of SVMs, the
    /// range of this share over the SVMs
    Relevance,
    /// Calibration: how often rows with a given predicted probability really belong to the class
    Reliability,
    /// The ROC curve: true positive rate against false positive rate
    Roc,
    /// Precision (the share of correct rows among those predicted as the class) against recall (the share of the class
    /// that is found)
    PrecisionRecall,
    /// The confusion matrix: true classes against predicted classes
    Confusion,
}

/// `svml plot`
#[derive(Args, Clone, Debug)]
pub struct Plot {
    /// Model file written by `svml train`
    pub model: String,
    /// The rows to plot, for map, reliability, roc, precision-recall and confusion: a file, - for standard input, or
    /// uci:NAME. For all but the map, use rows that the model was not trained on
    pub data: Option<String>,
    /// File for the plot, with a name ending in .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: String,
    /// What to plot
    #[arg(long, value_enum, default_value = "map", value_name = "KIND")]
    pub kind: Kind,
    /// The class to plot, for reliability, roc and precision-recall [default: with two classes, the second; with more, the
    /// predicted class for reliability, and each class against the rest for the others]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Title of the plot
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// For relevance: a bar for each encoded feature, such as colour=red, instead of each column
    #[arg(long)]
    pub features: bool,
    /// How the file is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// The program to export to.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// ONNX, for onnxruntime and others: input x of encoded features; outputs label, probabilities and decision; all
    /// numbers have 64 bits
    Onnx,
    /// A single C99 file without dependencies: svml_predict, and the names of classes and features
    C,
    /// A single JavaScript ES module without imports, for browsers and Node: predict, probabilities and decision for a row
    Js,
    /// A LIBSVM model file, for a single SVM with the gaussian kernel (trained with --form diagonal or --form sphere, for
    /// example); svm-predict gives the same labels and decision values for rows from `svml transform --output-format
    /// libsvm`, and the same labels for rows from `svm-scale -r FILE.range`; FILE.range is written next to FILE
    Libsvm,
}

/// `svml export`
#[derive(Args, Clone, Debug)]
pub struct Export {
    /// Model file written by `svml train`
    pub model: String,
    /// Format to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Target,
    /// For onnx: one input for each column of the table, with strings for categories, instead of one input of encoded
    /// features
    #[arg(long)]
    pub columns: bool,
    /// For onnx, c and js: export the map of the metric, as computed by `svml transform`, instead of the classifier
    #[arg(long)]
    pub transform: bool,
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: String,
}

/// `svml data`
#[derive(Subcommand, Debug)]
pub enum Data {
    /// List the data sets and show which have been downloaded
    List {
        /// Folder for the data sets [default: the environment variable SVML_DATA, or else a folder of your account]
        #[arg(long, value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
        dir: Option<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Download data sets from UCI and verify their sha256; files that are already present are not downloaded again
    Fetch {
        /// Names of the data sets, or all
        #[arg(required = true)]
        names: Vec<String>,
        /// Folder for the data sets [default: the environment variable SVML_DATA, or else a folder of your account]
        #[arg(long, value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
        dir: Option<PathBuf>,
    },
}

/// `svml demo`
#[derive(Args, Clone, Debug)]
pub struct Demo {
    /// Folder for the data, the model and the plots
    #[arg(long, default_value = "svml-demo", value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
    pub out: PathBuf,
}

/// Arguments in LIBSVM's manner.
#[derive(Args, Clone, Debug)]
pub struct LibsvmArgs {
    /// As for the LIBSVM program of the same name; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub args: Vec<String>,
}

/// What the library or this command reads from text, with the explanation why it cannot be read.
fn parsed<T>(text: &str) -> Result<T, String>
where
    T: std::str::FromStr<Err = svml::Error>,
{
    text.parse().map_err(|error: svml::Error| error.what())
}

/// A format that can be written.
fn written(text: &str) -> Result<Format, String> {
    match parsed(text)? {
        Format::Npy => {
            Err("npy can only be read; the output format must be csv or libsvm".to_owned())
        }
        format => Ok(format),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let fits = |s: &f64| s.is_finite() && *s > 0.0;
    text.parse()
        .ok()
        .filter(fits)
        .ok_or_else(|| "it must be a positive number of seconds".to_owned())
}
