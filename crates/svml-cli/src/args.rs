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
/// is no grid search and nothing to tune. By default the model is the mean of several such SVMs with kernels of
/// their own, and says how often it errs. Start with `svml demo`, or with `svml train DATA -o MODEL`.
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
output. Exit codes: 0 success, 1 failure while running, 2 wrong usage, 3 bad data, 130 interrupted.";

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub struct Global {
    /// Print results and errors only, no messages and no progress
    #[arg(short, long, global = true, display_order = 900)]
    pub quiet: bool,
    /// Number of threads; results are the same for any number [default: all cores]
    #[arg(long, global = true, value_name = "N", display_order = 901)]
    pub threads: Option<usize>,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Learn a metric and a classifier from a table
    Train(Box<Train>),
    /// Classify rows
    Predict(Predict),
    /// Measure a model on rows whose classes are known
    Evaluate(Evaluate),
    /// Map rows by the learned metric, scaling included: z = L (x - mean) / scale
    Transform(Transform),
    /// Compare methods on the same random splits: four fifths of the rows train, one fifth tests
    Compare(Box<Compare>),
    /// Say why rows are classified as they are: what each column contributes, and which training rows are alike
    Explain(Explain),
    /// Measure how the error falls with the number of rows to learn from, and draw it
    LearningCurve(Box<LearningCurve>),
    /// Write one page about a model and how it does on rows whose classes are known, to read, print or send
    Report(Report),
    /// Print a summary of a model: what it has learned
    Show(Show),
    /// List the parameters of a method: what each does, what it may be and its default
    Parameters(Parameters),
    /// Draw a model
    Plot(Plot),
    /// Write a model for another program
    Export(Export),
    /// List or download the nine data sets of the paper
    #[command(subcommand)]
    Data(Data),
    /// See it work in seconds: data with a known answer, a fit, a comparison and pictures
    Demo(Demo),
    /// Train with the options of LIBSVM's svm-train; writes a LIBSVM model and, beside it, the map of the rows
    #[command(disable_help_flag = true)]
    SvmTrain(LibsvmArgs),
    /// Predict with the options of LIBSVM's svm-predict
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
        #[arg(long, value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
        dir: Option<PathBuf>,
    },
}

/// How a data file is read.
#[derive(Args, Clone, Debug)]
pub struct Reading {
    /// Format of the data: csv (any table of cells), libsvm, or npy (a two-dimensional array of numpy) [default: found
    /// from the content]
    #[arg(long, value_parser = parsed::<Format>, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// What separates the cells of a row: comma, semicolon, tab or spaces [default: found from the content]
    #[arg(long, value_parser = parsed::<Delimiter>, value_name = "DELIMITER")]
    pub delimiter: Option<Delimiter>,
    /// The first row holds data, not the names of the columns [default: found from the content]
    #[arg(long)]
    pub no_header: bool,
    /// Folder of the paper's data sets, for DATA such as uci:credit [default: the environment variable SVML_DATA,
    /// otherwise the folder that `svml data fetch` uses]
    #[arg(long, value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
    pub dir: Option<PathBuf>,
}

/// What training data are.
#[derive(Args, Clone, Debug)]
pub struct TrainingData {
    /// The data: a file, - for standard input, or uci:NAME
    pub data: String,
    /// Column that holds the classes, by its name or its number from 1 [default: the last]
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub target: Option<String>,
    /// Column, by its name or its number from 1, that says which rows belong together, such as those of one patient: all
    /// rows of a group are in the same fold, and on the same side of a split. It is not used as a feature
    #[arg(long, value_name = "COL", allow_negative_numbers = true)]
    pub groups: Option<String>,
    /// What to do with missing values: refuse them, drop (leave out such rows) or impute (the mean of a column
    /// of numbers, the most frequent category of the others)
    #[arg(long, value_parser = parsed::<Missing>, default_value = "refuse", value_name = "WHAT")]
    pub missing: Missing,
    /// How columns of text become numbers: codes (0, 1, ... in sorted order), onehot (a column of zeros and ones for
    /// each different text), or auto, which is onehot for at most 20 different texts and codes for more, and leaves
    /// out columns that look like identifiers: dates, numbers that number the rows, and texts that are different in
    /// almost every row, such as names
    #[arg(long, value_parser = parsed::<Categories>, default_value = "auto", value_name = "HOW")]
    pub categories: Categories,
    /// Columns to leave out, by names or numbers from 1, separated by commas. Rows to predict may have them or not
    #[arg(long, value_name = "COLS", value_delimiter = ',', allow_negative_numbers = true)]
    pub drop: Vec<String>,
    /// The only columns to learn from, by names or numbers from 1, separated by commas. They are used even if they look
    /// like identifiers
    #[arg(long, value_name = "COLS", value_delimiter = ',', allow_negative_numbers = true)]
    pub only: Vec<String>,
    /// Columns, by names or numbers from 1, separated by commas, to use even if they look like identifiers
    #[arg(long = "use", value_name = "COLS", value_delimiter = ',', allow_negative_numbers = true)]
    pub use_anyway: Vec<String>,
    /// How the file is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// How to learn. What is not given stays as the method has it.
#[derive(Args, Clone, Debug)]
pub struct Learning {
    /// Structure of the matrix L: sphere (L = I/sigma, one width), diagonal (one weight for each feature), full
    /// (all entries), rank=R (a map into R dimensions), or auto, the mean of several SVMs with metrics and kernels
    /// of their own. A method other than svml that has a parameter rank takes rank=R only [default: auto]
    #[arg(long, value_parser = parsed::<FormChoice>, value_name = "FORM")]
    pub form: Option<FormChoice>,
    /// The kernel, with a form that is given: gaussian, exp(-|L (x - z)|^2); exponential, exp(-|L (x - z)|); or
    /// laplacian, exp(-sum_k w_k |x_k - z_k|) with w the diagonal of L, for sphere and diagonal only
    /// [default: gaussian; several with --form auto]
    #[arg(long, value_parser = parsed::<Kernel>, value_name = "KERNEL")]
    pub kernel: Option<Kernel>,
    /// How L and C are validated while they are learned: k_fold=K (each of K parts of the rows is classified
    /// by SVMs trained on the other parts), hold_out (half of the rows train, a quarter validates, a quarter is
    /// for early stopping) or leave_one_out (in closed form) [default: k_fold=2]
    #[arg(long, value_parser = parsed::<Criterion>, value_name = "CRITERION")]
    pub criterion: Option<Criterion>,
    /// Learn as in the paper: a full matrix L, the hold-out criterion, the sigmoid 1/(1 + exp(5 z)) of the margins
    /// z instead of the squared hinge max(0, 1 - z)^2, and conjugate gradients. Options given explicitly take
    /// precedence.
    #[arg(long)]
    pub paper: bool,
    /// Weights of the classes: none, balanced (every class counts the same: rows / (classes x rows of the
    /// class)), or pairs CLASS=WEIGHT such as yes=5,no=1, where a class that is not named has weight 1. They change
    /// what is predicted; probabilities are corrected for them [default: none]
    #[arg(long, value_parser = method::class_weight, value_name = "WEIGHTS")]
    pub class_weight: Option<ClassWeight>,
    /// Seed of everything that is random, such as folds and splits; the same data, options and seed give the same
    /// model [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Train SVMs on at most M landmarks, rows that stand for all others, so that time and memory grow with the number
    /// of rows only: a number of at least 1; auto, which is exact up to about 5000 rows and about 2000 landmarks beyond; or
    /// exact. The criterion leave_one_out is always exact [default: auto]
    #[arg(long, value_parser = parsed::<LandmarkChoice>, value_name = "M", conflicts_with = "exact")]
    pub landmarks: Option<LandmarkChoice>,
    /// Train exact SVMs however many rows there are, as --landmarks exact: time grows with the cube of the number of rows,
    /// memory with its square
    #[arg(long)]
    pub exact: bool,
    /// Most memory of a fit (with exact SVMs, of their kernel matrices), in bytes or with a unit, such as 4GiB or 500MB. It
    /// holds for the memory of a card too, where it is the smaller of this and what is free there [default: three
    /// quarters of what the computer, or the container it runs in, has free]
    #[arg(long, value_parser = method::bytes, value_name = "BYTES")]
    pub memory_limit: Option<u64>,
    /// Set any parameter of the method, such as --set lambda=0.1; the option can be repeated. `svml parameters
    /// METHOD` explains all parameters of a method. --set takes precedence over all other options
    #[arg(long, value_parser = method::name_and_value, value_name = "NAME=VALUE")]
    pub set: Vec<(String, String)>,
    /// File with parameters, as a JSON object of names and values such as {"lambda": 0.1, "seed": 3}. For `svml
    /// train` it may also hold a whole method, as `svml show --json` prints it. Options given explicitly take
    /// precedence.
    #[arg(long, value_name = "FILE")]
    pub params: Option<String>,
    /// Where to compute.
    #[command(flatten)]
    pub computing: Computing,
}

/// Where to compute.
#[derive(Args, Clone, Debug)]
pub struct Computing {
    /// Where to compute: cpu; cuda or cuda:N, the CUDA card of number N, from 0, which must be there; or auto, which is a
    /// card if there is one and so much to compute that it pays, else cpu. Results on one device are identical from run to
    /// run; CPU and GPU differ in the last digits
    #[arg(long, value_parser = parsed::<Device>, default_value = "auto", value_name = "DEVICE")]
    pub device: Device,
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
    /// What to fit, such as svml, euclidean or nca:rank=2+knn:k=5 [default: svml]
    #[arg(long, value_parser = parsed::<MethodArg>, value_name = "METHOD", long_help = method::help())]
    pub method: Option<MethodArg>,
    /// How to learn.
    #[command(flatten)]
    pub learning: Learning,
    /// Seconds after which learning ends with the best model so far [default: no limit]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub time_limit: Option<f64>,
    /// File that keeps what has been computed. If the command is killed, or the computer stops, the same command goes on
    /// where it was, and writes the same model to the bit. A kill loses what is being computed, such as one step; a power
    /// cut the last few seconds too. The file is removed once the model is written; it holds no rows
    #[arg(long, value_name = "FILE", value_parser = file, value_hint = ValueHint::AnyPath)]
    pub checkpoint: Option<PathBuf>,
    /// File for a table of the steps of learning: loss and, for svml, kernel, form, errors, C and support vectors
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,
    /// Keep all training rows in the model file, so that `svml explain` finds those that are like a new row. Whoever has the
    /// file can read them then
    #[arg(long)]
    pub keep_rows: bool,
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
    /// End with exit code 3 if the rows are unlike the training data: categories that it did not have, numbers outside the
    /// training range by more than its width, missing values. Without it a note says so
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
    /// File for the predictions, one line for each row; rows in the LIBSVM format get the format of svm-predict
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: String,
    /// Add decision values: with two classes one, h(x), which is positive for the second class; with more classes
    /// one for each, of which the largest decides
    #[arg(long)]
    pub decision: bool,
    /// Add the probability of each class
    #[arg(long)]
    pub probabilities: bool,
    /// Of two classes, predict the one of --positive where its probability is at least T, and the other elsewhere: a
    /// number between 0 and 1, or cost=FP:FN, which is FP / (FP + FN) for the costs of a false positive and of a false
    /// negative. `svml evaluate` finds other thresholds [default: the class that the SVMs decide for]
    #[arg(long, value_name = "T", value_parser = ThresholdArg::without_rows)]
    pub threshold: Option<ThresholdArg>,
    /// The class that --threshold is about [default: the second of the classes]
    #[arg(long, value_name = "CLASS", requires = "threshold")]
    pub positive: Option<String>,
    /// Columns of the rows to write before the predictions, as they are: names or numbers from 1, separated by commas, or
    /// all. If the column of classes is among them, the predictions are called predicted_ and its name
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
                "the rows to predict do not tell which threshold is best for {goal}; find it with svml evaluate MODEL \
                 DATA --threshold {goal}, and give the number"
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
    /// Of two classes, predict the one of --positive where its probability is at least T, and the other elsewhere: a
    /// number between 0 and 1; f1, balanced_error or mcc, which finds the threshold that is best for it on these rows, to
    /// be used on others; or cost=FP:FN, which is FP / (FP + FN) for the costs of a false positive and of a false negative,
    /// such as cost=1:5 [default: the class that the SVMs decide for]
    #[arg(long, value_name = "T", value_parser = ThresholdArg::any)]
    pub threshold: Option<ThresholdArg>,
    /// Of two classes, the one that --threshold, F1, average precision and the Brier score are about [default: the
    /// second of the classes]
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
    /// Format to write: csv (columns z1, z2, ... and the class, if it is known) or libsvm (for svm-predict with
    /// a model from `svml export`)
    #[arg(long, value_parser = written, default_value = "csv", value_name = "FORMAT")]
    pub output_format: Format,
}

/// `svml compare`
#[derive(Args, Clone, Debug)]
pub struct Compare {
    /// Data to compare on.
    #[command(flatten)]
    pub data: TrainingData,
    /// Methods to compare with euclidean, which is always there, separated by commas; `svml train --help` says how
    /// a method is written. A comma begins a new method where the name of a method follows, as in
    /// svml:lambda=0.1,seed=3,nca:rank=2; elsewhere it separates parameters. The option can be repeated. Other
    /// options apply to every method that has such a parameter [default: svml]
    #[arg(long, value_parser = parsed::<MethodList>, value_name = "METHODS")]
    pub methods: Vec<MethodList>,
    /// Number of random splits
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=10000))]
    pub splits: u64,
    /// What is compared: error, balanced_error, auc, average_precision, f1, mcc, brier, log_loss or calibration_error;
    /// --json has all of them
    #[arg(long, value_parser = parsed::<Measure>, default_value = "error", value_name = "NAME")]
    pub measure: Measure,
    /// How to learn.
    #[command(flatten)]
    pub learning: Learning,
    /// File that keeps the measures and times of fits that are done. If the command is killed, the same command goes on
    /// with the fit that it was at. The file is removed at the end
    #[arg(long, value_name = "FILE", value_parser = file, value_hint = ValueHint::AnyPath)]
    pub checkpoint: Option<PathBuf>,
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
    /// Explain this row, counted from 1, in words [default: all rows, as a table of contributions]
    #[arg(long, value_name = "N")]
    pub row: Option<usize>,
    /// Compare with this row of the data, counted from 1 [default: the mean of the training rows]
    #[arg(long, value_name = "N")]
    pub reference: Option<usize>,
    /// Most columns that are listed one by one for a row
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub columns: usize,
    /// Number of training rows most alike that are listed for a row, if the model keeps its training rows
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub alike: usize,
    /// File for the result; a picture of one row if the name ends in .svg or .png
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
    /// Picture to write; its name ends in .svg or .png [default: none, only the table is printed]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<String>,
    /// What to fit, such as svml, euclidean or nca:rank=2+knn:k=5 [default: svml]
    #[arg(long, value_parser = parsed::<MethodArg>, value_name = "METHOD", long_help = method::help())]
    pub method: Option<MethodArg>,
    /// Numbers of rows to learn from, separated by commas [default: up to six, each half of the next, up to four fifths of
    /// all rows]
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    pub sizes: Option<Vec<usize>>,
    /// How often to repeat it; each time another random fifth of the rows is held out, and the error is that on these rows
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub repetitions: u64,
    /// Title of the picture
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
    /// Model and rows; take rows that the model was not trained on.
    #[command(flatten)]
    pub rows: ModelAndRows,
    /// File for the page, which is HTML and loads nothing
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: String,
    /// Heading of the page [default: the names of model and data]
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// Where to compute.
    #[command(flatten)]
    pub computing: Computing,
}

/// `svml show`
#[derive(Args, Clone, Debug)]
pub struct Show {
    /// Model file of `svml train`
    pub model: String,
    /// List the relevance of each encoded feature, such as colour=red, in place of that of each column
    #[arg(long)]
    pub features: bool,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// `svml parameters`
#[derive(Args, Clone, Debug)]
pub struct Parameters {
    /// The method, written as for `svml train --method`; parameters that it gives are shown with these values
    #[arg(value_parser = parsed::<MethodArg>, default_value = "svml")]
    pub method: MethodArg,
    /// Print as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to draw.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The rows as the metric sees them, in the plane that shows the classes best, and what the model decides there
    Map,
    /// Loss and errors, step by step, for each SVM that was learned
    Trace,
    /// The matrix M = L'L with the names of the features; bars if it is diagonal
    Metric,
    /// How much each column counts: its share of the diagonal of M on standardised features, and its spread over the
    /// SVMs of a mean
    Relevance,
    /// Calibration: how often rows with a predicted probability belong to the class
    Reliability,
    /// The ROC curve: the share of a class that is found, against the share of the others that is taken for it
    Roc,
    /// Precision against recall: how many of those found are of the class, against the share of the class that is found
    PrecisionRecall,
    /// The confusion matrix: which classes are taken for which
    Confusion,
}

/// `svml plot`
#[derive(Args, Clone, Debug)]
pub struct Plot {
    /// Model file of `svml train`
    pub model: String,
    /// The rows to draw, for map, reliability, roc, precision-recall and confusion: a file, - for standard input, or
    /// uci:NAME. Except for the map, use rows that were not trained on
    pub data: Option<String>,
    /// Picture to write; its name ends in .svg or .png
    #[arg(short, long, value_name = "FILE")]
    pub output: String,
    /// What to draw
    #[arg(long, value_enum, default_value = "map", value_name = "KIND")]
    pub kind: Kind,
    /// The class that reliability, roc and precision-recall are of [default: of two classes the second; of several the
    /// predicted class for reliability, and each class against the rest for the others]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Title of the picture
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// For relevance: a bar for each encoded feature, such as colour=red, in place of one for each column
    #[arg(long)]
    pub features: bool,
    /// How the file is read.
    #[command(flatten)]
    pub reading: Reading,
}

/// The program to export to.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// ONNX, for onnxruntime and others: input x of encoded features, outputs label, probabilities and decision, all
    /// numbers in 64 bits
    Onnx,
    /// One file of C99 without dependencies: svml_predict, and the names of classes and features
    C,
    /// One ES module of JavaScript without imports, for browsers and node: predict, probabilities and decision of a row
    Js,
    /// LIBSVM's model file, of one SVM with the gaussian kernel (--form diagonal or --form sphere, for example);
    /// svm-predict gives the same labels and decision values for rows from `svml transform --output-format libsvm`, and
    /// the same labels for rows from `svm-scale -r FILE.range`, which is written beside FILE
    Libsvm,
}

/// `svml export`
#[derive(Args, Clone, Debug)]
pub struct Export {
    /// Model file of `svml train`
    pub model: String,
    /// Format to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Target,
    /// For onnx: an input for each column of the table, with texts for categories, in place of one of encoded features
    #[arg(long)]
    pub columns: bool,
    /// For onnx, c and js: write the map of the metric, as `svml transform` computes it, in place of the classifier
    #[arg(long)]
    pub transform: bool,
    /// File to write
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: String,
}

/// `svml data`
#[derive(Subcommand, Debug)]
pub enum Data {
    /// List the data sets and say which are there
    List {
        /// Folder of the data sets [default: the environment variable SVML_DATA, otherwise a folder of your account]
        #[arg(long, value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
        dir: Option<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Download data sets from UCI and check their sha256; files that are there already are not fetched again
    Fetch {
        /// Names of data sets, or all
        #[arg(required = true)]
        names: Vec<String>,
        /// Folder of the data sets [default: the environment variable SVML_DATA, otherwise a folder of your account]
        #[arg(long, value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
        dir: Option<PathBuf>,
    },
}

/// `svml demo`
#[derive(Args, Clone, Debug)]
pub struct Demo {
    /// Folder for data, model and pictures
    #[arg(long, default_value = "svml-demo", value_name = "DIR", value_parser = file, value_hint = ValueHint::AnyPath)]
    pub out: PathBuf,
}

/// Arguments in LIBSVM's manner.
#[derive(Args, Clone, Debug)]
pub struct LibsvmArgs {
    /// As for LIBSVM's program of that name; --help lists them
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
        Format::Npy => Err("npy is read only; it must be one of csv, libsvm".to_owned()),
        format => Ok(format),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let fits = |s: &f64| s.is_finite() && *s > 0.0;
    text.parse()
        .ok()
        .filter(fits)
        .ok_or_else(|| "a positive number of seconds is needed".to_owned())
}
