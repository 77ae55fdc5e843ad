//! `svml svm-predict`: predicting for those who know LIBSVM's program of that name.

use std::fmt::Write;

use svml::data::{Format, ReadOptions};

use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files::{self, Rows};
use crate::words::accuracy;

const HELP: &str = "\
Usage: svml svm-predict [options] test_file model_file output_file

LIBSVM's svm-predict for models of svml svm-train. Rows are first mapped by model_file.svml,
which svml svm-train writes next to the model.

Options:
-b probability_estimates : 1 to write probabilities, if the model was trained with -b 1 (default 0)
-q : quiet, prints no accuracy
";

fn usage(text: &str) -> Failure {
    Failure::Usage(format!("{text}; see svml svm-predict --help"))
}

/// Runs the command.
pub fn run(args: &[String], console: &Console) -> Outcome {
    if args.iter().any(|arg| arg == "--help") {
        return console::print(HELP);
    }
    let (mut probabilities, mut quiet, mut at) = (false, false, 0);
    while let Some(option) = args.get(at).filter(|arg| arg.starts_with('-') && arg.len() > 1) {
        at += 1;
        match (option.as_str(), args.get(at).map(String::as_str)) {
            ("-q", _) => quiet = true,
            ("-b", Some(value @ ("0" | "1"))) => {
                probabilities = value == "1";
                at += 1;
            }
            ("-b", _) => return Err(usage("-b must be 0 or 1")),
            _ => return Err(usage(&format!("{option} is not an option of svm-predict"))),
        }
    }
    let [test, model_file, output] = &args[at..] else {
        return Err(usage("test_file, model_file and output_file are required"));
    };
    let map = files::map_file(model_file);
    let read =
        [("test_file", test.as_str()), ("model_file", model_file), ("model_file.svml", &map)];
    files::check_apart(&read, &[("output_file", output)])?;
    files::check_writable(output)?;
    let model = files::model(&map)?;
    let not_exported = |e| Failure::with_file(&map, e);
    let (_, text) = files::text(model_file)?;
    let with = text == model.to_libsvm(true).map_err(not_exported)?.text;
    if !with && text != model.to_libsvm(false).map_err(not_exported)?.text {
        return Err(Failure::Data(format!(
            "{map}: this map does not belong to {model_file}; train again with svml svm-train"
        )));
    }
    if probabilities && !text.contains("\nprobA ") {
        return Err(Failure::Data(format!(
            "{model_file}: the model has no probabilities; train with -b 1"
        )));
    }
    let options = ReadOptions { format: Some(Format::Libsvm), ..ReadOptions::default() };
    let Rows { name, rows, .. } = files::new_rows(&model, test, &options, console)?;
    let failed = |e| Failure::with_file(&name, e);
    let mut out = String::new();
    // LIBSVM's order of the classes is that of its model.
    let order: Vec<usize> = (0..model.classes().len()).rev().collect();
    let p = match probabilities {
        true => Some(model.probabilities(&rows.x).map_err(failed)?),
        false => None,
    };
    let predicted = match (&p, model.class_weights()) {
        // LIBSVM then predicts what is most probable, which weights of classes make another class than is decided for.
        (Some(p), Some(_)) => {
            let second = |p: &[f64]| usize::from(p.last() >= p.first());
            p.iter_rows().map(second).collect()
        }
        _ => model.predict(&rows.x).map_err(failed)?,
    };
    let label = |class: usize| model.classes()[class].as_str();
    if p.is_some() {
        let labels: Vec<&str> = order.iter().map(|&c| label(c)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "labels {}", labels.join(" "));
    }
    for (row, &class) in predicted.iter().enumerate() {
        out.push_str(label(class));
        if let Some(p) = &p {
            for &c in &order {
                let _ = write!(out, " {}", p[(row, c)]);
            }
        }
        out.push('\n');
    }
    files::write(output, out.as_bytes())?;
    let Some(labels) = rows.labels.filter(|_| !quiet) else { return Ok(()) };
    let right = predicted.iter().zip(&labels).filter(|(p, l)| label(**p) == *l).count();
    let rows = labels.len();
    console::print(&format!(
        "Accuracy = {}% ({right}/{rows}) (classification)\n",
        accuracy(right, rows)
    ))
}
