//! `svml svm-train`: training for those who know LIBSVM's program of that name.

use std::collections::BTreeMap;
use std::path::Path;

use svml::data::{Format, ReadOptions, fold_of, random_split};
use svml::learn::Control;
use svml::params::ClassWeight;
use svml::{Dataset, Model, Params};

use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;

/// What the program says about itself.
const HELP: &str = "\
Usage: svml svm-train [options] training_set_file [model_file]

LIBSVM's svm-train, with the metric and C learned. Writes model_file for svm-predict
(default: the name of the training set with .model) and, beside it, model_file.svml, the
map that rows have to go through: svml svm-predict does it by itself, for LIBSVM's own
program do svml transform model_file.svml test -o test.z --output-format libsvm.

Options:
-s svm_type : 0, C-SVC (default 0; others are not supported)
-t kernel_type : 2, radial basis function exp(-|L(x - z)|^2) (default 2; others are not supported)
-c cost : C (default: learned with the metric; with -g, by 5-fold cross-validation)
-g gamma : gamma of exp(-gamma |x - z|^2) on the features as they are (default: a metric L is learned
    in its place, of a form that is chosen from the data)
-b probability_estimates : 1 to write probabilities, for two classes (default 0)
-wi weight : C of class i is weight*C (default 1)
-v n : n-fold cross-validation; prints the accuracy and writes nothing
-q : quiet
-m cachesize, -h shrinking : accepted; they change nothing here
-e epsilon : tolerance of the termination criterion (default: 1e-8 is always reached)

The loss is the squared hinge, so a C is not LIBSVM's C. Not supported, and refused: -d, -r, -n, -p.
";

/// What LIBSVM's options say.
struct Options {
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
        _ => return Err(usage("training_set_file [model_file] are needed")),
    };
    let read = ReadOptions { format: Some(Format::Libsvm), ..ReadOptions::default() };
    let data = files::text(&data_file).and_then(|(name, text)| {
        Dataset::from_reader(text.as_bytes(), &read).map_err(|e| Failure::with_file(&name, e))
    })?;
    if options.probabilities && data.classes().len() > 2 {
        return Err(Failure::Usage(
            "-b 1 is for two classes: for more LIBSVM computes probabilities in another way; use svml train and svml predict --probabilities"
                .to_owned(),
        ));
    }
    if let Some(folds) = options.folds {
        return cross_validate(&data, &data_file, folds, &options);
    }
    files::check_writable(&model_file)?;
    let model = fit(&data, &options, console).map_err(|e| match e {
        svml::Error::Interrupted => Failure::Interrupted(
            "interrupted before there was any result; nothing was written".to_owned(),
        ),
        svml::Error::Parameter { name: "initial_cost" | "cost", value, bound } => {
            usage(&format!("-c {value} is not allowed: it must be {bound}"))
        }
        svml::Error::Parameter { name: "gamma", value, bound } => {
            usage(&format!("-g {value} is not allowed: it must be {bound}"))
        }
        other => Failure::with_file(&data_file, other),
    })?;
    let exported = model.to_libsvm(options.probabilities);
    let map = map_file(&model_file);
    let bytes = model.to_bytes().map_err(|e| Failure::with_file(&map, e))?;
    files::write(&map, &bytes)?;
    files::write(&model_file, exported.text.as_bytes())?;
    if !options.quiet {
        console.note(&format!(
            "form {}, C = {}, nSV = {}; model in {model_file}, map in {map}",
            model.metric().form(),
            crate::command::show::digits(model.cost()),
            model.support_rows().len()
        ));
    }
    match console.is_interrupted() {
        true => Err(Failure::Interrupted(format!(
            "interrupted: the best model so far is saved in {model_file}"
        ))),
        false => Ok(()),
    }
}

/// The file of the map beside a LIBSVM model.
pub fn map_file(model_file: &str) -> String {
    format!("{model_file}.svml")
}

fn usage(text: &str) -> Failure {
    Failure::Usage(format!("{text}; see svml svm-train --help"))
}

fn fit(data: &Dataset, options: &Options, console: &Console) -> svml::Result<Model> {
    let class_weight = match options.weights.is_empty() {
        true => ClassWeight::None,
        false => ClassWeight::Given(options.weights.clone()),
    };
    if let Some(gamma) = options.gamma {
        return Model::fit_given(data, gamma, options.cost, &class_weight);
    }
    let params = Params { class_weight, ..Params::default() };
    let params = match options.cost {
        Some(cost) => Params { initial_cost: cost, learn_cost: false, ..params },
        None => params,
    };
    let mut control = Control { interrupt: console.interrupt(), ..Control::default() };
    Model::fit_with(data, &params, &mut control)
}

/// LIBSVM's line about the accuracy.
pub fn accuracy(right: usize, rows: usize) -> String {
    let percent = 100.0 * right as f64 / rows.max(1) as f64;
    // Six significant digits, as LIBSVM prints.
    let digits = if percent >= 99.99999 {
        3
    } else if percent >= 10.0 {
        4
    } else {
        5
    };
    let text = format!("{percent:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if text.is_empty() { "0".to_owned() } else { text }
}

fn cross_validate(data: &Dataset, name: &str, folds: usize, options: &Options) -> Outcome {
    let failed = |e| Failure::with_file(name, e);
    let (first, rest) = random_split(data.rows(), 0);
    let order = [first, rest].concat();
    let class: Vec<usize> = order.iter().map(|&row| data.y()[row]).collect();
    let fold = fold_of(&class, folds);
    let quiet = Console::silent();
    let mut right = 0;
    for k in 0..folds {
        let of = |inside: bool| -> Vec<usize> {
            (0..order.len()).filter(|&i| (fold[i] == k) == inside).map(|i| order[i]).collect()
        };
        let (train, test) = (data.select(&of(false)), data.select(&of(true)));
        if test.rows() == 0 {
            continue;
        }
        let model = fit(&train, options, &quiet).map_err(failed)?;
        let predicted = model.predict(test.x()).map_err(failed)?;
        right += (predicted.iter().zip(test.y()))
            .filter(|(p, y)| model.classes()[**p] == test.classes()[**y])
            .count();
    }
    console::print(&format!("Cross Validation Accuracy = {}%\n", accuracy(right, data.rows())))
}

fn parse(args: &[String]) -> Result<(Options, Vec<&str>), Failure> {
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
                .ok_or_else(|| usage(&format!("{option} {value}: a number is needed")))
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
            "-s" => only("0", "only -s 0, C-SVC, is")?,
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
                        "-e {value} is not supported: at best 1e-8 is reached"
                    )));
                }
            }
            "-d" | "-r" | "-n" | "-p" => {
                return Err(usage(&format!(
                    "{option} belongs to kernels or types that are not supported"
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
