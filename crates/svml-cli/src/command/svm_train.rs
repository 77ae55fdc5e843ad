//! `svml svm-train`: training for those who know LIBSVM's program of that name.

use std::collections::BTreeMap;
use std::path::Path;

use svml::data::{Format, ReadOptions};
use svml::{ClassWeight, Error, Fixed, Form, Method, Model, Remedy, Run, Svml};

use crate::console::{self, Console};
use crate::failure::{Failure, Outcome, remedy_words};
use crate::files;
use crate::words::{accuracy, digits};

/// What the program says about itself.
const HELP: &str = "\
Usage: svml svm-train [options] training_set_file [model_file]

LIBSVM's svm-train, but the metric and C are learned. It writes model_file for svm-predict
(default: the name of the training set followed by .model) and, next to it, model_file.svml,
which maps rows. svml svm-predict maps rows itself; for LIBSVM's own svm-predict, map them with
svml transform model_file.svml test -o test.z --output-format libsvm.

Options:
-s svm_type : 0, C-SVC (default 0; others are not supported)
-t kernel_type : 2, radial basis function exp(-|L(x - z)|^2) (default 2; others are not supported)
-c cost : C (default: learned with the metric; with -g, by 5-fold cross-validation)
-g gamma : gamma of exp(-gamma |x - z|^2) on the features as they are (default: a diagonal L is learned
    instead, with a weight for each feature)
-b probability_estimates : 1 to write probabilities, for two classes (default 0)
-wi weight : C of class i is weight*C (default 1)
-v n : n-fold cross-validation; prints the accuracy and writes nothing
-q : quiet
-m cachesize, -h shrinking : accepted without effect
-e epsilon : tolerance of the termination criterion (no effect: a tolerance of 1e-8 is always reached)

A LIBSVM model is a single SVM with this kernel, so a single one is learned here; svml train learns the mean
of several SVMs, also with other kernels. The loss is the squared hinge, so C is not comparable to LIBSVM's.
The options -d, -r, -n and -p are not supported.
";

/// What LIBSVM's options say.
pub struct Options {
    cost: Option<f64>,
    gamma: Option<f64>,
    probabilities: bool,
    weights: BTreeMap<String, f64>,
    folds: Option<usize>,
    quiet: bool,
}

/// Runs the command.
pub fn run(args: &[String], console: &Console) -> Outcome {
    if args.iter().any(|arg| arg == "--help") {
        return console::print(HELP);
    }
    let (options, names) = parse(args)?;
    let (data_file, model_file) = match names.as_slice() {
        [data] => {
            let base =
                Path::new(data).file_name().map_or(String::new(), |n| n.to_string_lossy().into());
            ((*data).to_owned(), format!("{base}.model"))
        }
        [data, model] => ((*data).to_owned(), (*model).to_owned()),
        _ => return Err(usage("training_set_file is required, optionally followed by model_file")),
    };
    let read = ReadOptions { format: Some(Format::Libsvm), ..ReadOptions::default() };
    let data = files::dataset(&data_file, &read, console)?.data;
    if options.probabilities && data.classes().len() > 2 {
        return Err(Failure::Usage(
            "-b 1 works only with two classes: for more, LIBSVM computes probabilities differently; use svml train and svml predict --probabilities"
                .to_owned(),
        ));
    }
    if let Some(folds) = options.folds {
        // As many folds as rows are the most that can be told apart.
        let folds = folds.min(data.rows());
        let found = svml::cross_validate(&data, method(&options), folds)
            .map_err(|e| failed(&data_file, &e))?;
        let right = found.predicted.iter().zip(data.y()).filter(|(p, y)| p == y).count();
        let accuracy = accuracy(right, data.rows());
        return console::print(&format!("Cross Validation Accuracy = {accuracy}%\n"));
    }
    let map = files::map_file(&model_file);
    let written = [("model_file", model_file.as_str()), ("model_file.svml", &map)];
    files::check_apart(&[("training_set_file", &data_file)], &written)?;
    written.iter().try_for_each(|(_, name)| files::check_writable(name))?;
    let mut run = Run::new().interrupt(console.interrupt());
    let model =
        Model::fit_with(&data, method(&options), &mut run).map_err(|e| failed(&data_file, &e))?;
    let exported = model.to_libsvm(options.probabilities).map_err(|e| failed(&data_file, &e))?;
    let interrupted = console.is_interrupted();
    // A whole model of an earlier run is worth more than a part of this one.
    let output = match interrupted {
        true => files::for_interrupted(&model_file),
        false => model_file.clone(),
    };
    let map = files::map_file(&output);
    let bytes = model.to_bytes().map_err(|e| Failure::with_file(&map, e))?;
    files::write_all(&[(&map, &bytes), (&output, exported.text.as_bytes())])?;
    if !options.quiet {
        console.note(&format!(
            "form {}, C = {}, nSV = {}; model in {output}, map in {map}",
            model.metric().form(),
            model.cost().map_or(String::new(), digits),
            model.support_rows().len()
        ));
    }
    let kept = match output == model_file {
        true => String::new(),
        false => format!("; {model_file} is unchanged"),
    };
    match interrupted {
        true => Err(Failure::Interrupted(format!(
            "interrupted: the best model so far is saved in {output}{kept}"
        ))),
        false => Ok(()),
    }
}

fn usage(text: &str) -> Failure {
    Failure::Usage(format!("{text}; see svml svm-train --help"))
}

/// What the options ask to fit: the kernel as given by -g, or else svml. LIBSVM's model holds one SVM with a Gaussian
/// kernel, so a form has to be given: the diagonal, which learns how much each feature counts. A sphere would not learn
/// that, and a full matrix has many more values than rows can tell.
fn method(options: &Options) -> Method {
    let class_weight = match options.weights.is_empty() {
        true => ClassWeight::None,
        false => ClassWeight::Given(options.weights.clone()),
    };
    if let Some(gamma) = options.gamma {
        return Fixed { gamma, cost: options.cost, class_weight, ..Fixed::default() }.into();
    }
    let params = Svml { form: Form::Diagonal.into(), class_weight, ..Svml::default() };
    match options.cost {
        Some(cost) => Svml { initial_cost: cost, learn_cost: false, ..params }.into(),
        None => params.into(),
    }
}

/// A failure in the options of this program.
fn failed(file: &str, error: &Error) -> Failure {
    let option = match error {
        Error::Interrupted => {
            return Failure::Interrupted(
                "interrupted before there was a result; nothing was written".to_owned(),
            );
        }
        Error::Parameter { name, .. } => match name.as_ref() {
            "initial_cost" | "cost" => Some("-c"),
            "gamma" => Some("-g"),
            _ => None,
        },
        _ => None,
    };
    match (option, error) {
        (Some(option), Error::Parameter { value, bound, .. }) => {
            usage(&format!("{option} {value} is not allowed: it must be {bound}"))
        }
        _ => Failure::with_words(file, error, |remedy| {
            match remedy {
            Remedy::RaiseMemoryLimit => {
                "use fewer rows, leave out -g so that the kernel is learned, which does not need this matrix for many rows, or use svml train with --memory-limit"
                    .to_owned()
            }
            Remedy::LowerCost => "use a smaller C (-c)".to_owned(),
            remedy => remedy_words(remedy),
        }
        }),
    }
}

/// The options and the names of files that the arguments give.
pub fn parse(args: &[String]) -> Result<(Options, Vec<&str>), Failure> {
    let mut options = Options {
        cost: None,
        gamma: None,
        probabilities: false,
        weights: BTreeMap::new(),
        folds: None,
        quiet: false,
    };
    let mut at = 0;
    while let Some(option) = args.get(at).filter(|arg| arg.starts_with('-') && arg.len() > 1) {
        at += 1;
        if option == "-q" {
            options.quiet = true;
            continue;
        }
        let Some(value) = args.get(at) else {
            return Err(usage(&format!("{option} needs a value")));
        };
        at += 1;
        let number = || -> Result<f64, Failure> {
            let fits = |v: &f64| v.is_finite();
            value
                .parse()
                .ok()
                .filter(fits)
                .ok_or_else(|| usage(&format!("{option} {value}: it must be a number")))
        };
        let positive = || -> Result<f64, Failure> {
            let value = number()?;
            if value > 0.0 {
                Ok(value)
            } else {
                Err(usage(&format!("{option} {value}: it must be positive")))
            }
        };
        let only = |allowed: &str, why: &str| match value == allowed {
            true => Ok(()),
            false => Err(usage(&format!("{option} {value} is not supported: {why}"))),
        };
        match option.as_str() {
            "-s" => only("0", "only -s 0, C-SVC, is supported")?,
            "-t" => only("2", "only -t 2, the radial basis function, has a metric to learn")?,
            "-c" => options.cost = Some(positive()?),
            "-g" => options.gamma = Some(positive()?),
            "-b" => match value.as_str() {
                "0" => {}
                "1" => options.probabilities = true,
                _ => return Err(usage(&format!("-b {value}: it must be 0 or 1"))),
            },
            "-v" => {
                let folds = value.parse().ok().filter(|n| (2..=1000).contains(n));
                let refused = || usage(&format!("-v {value}: it must be between 2 and 1000"));
                options.folds = Some(folds.ok_or_else(refused)?);
            }
            // They only change how fast LIBSVM is.
            "-m" => {
                positive()?;
            }
            "-h" if value == "0" || value == "1" => {}
            "-h" => return Err(usage(&format!("-h {value}: it must be 0 or 1"))),
            "-e" => {
                if positive()? < 1e-8 {
                    return Err(usage(&format!(
                        "-e {value} is not supported: it must be at least 1e-8"
                    )));
                }
            }
            "-d" | "-r" | "-n" | "-p" => {
                return Err(usage(&format!(
                    "{option} is for kernels or SVM types that are not supported"
                )));
            }
            _ => match option.strip_prefix("-w").filter(|label| !label.is_empty()) {
                Some(label) => {
                    let label = label.parse::<i32>().map_or(label.to_owned(), |l| l.to_string());
                    options.weights.insert(label, positive()?);
                }
                None => return Err(usage(&format!("{option} is not an option of svm-train"))),
            },
        }
    }
    Ok((options, args[at..].iter().map(String::as_str).collect()))
}
