//! `svml predict`: one line for each row.

use std::fmt::Write;

use svml::data::Format;
use svml::{Matrix, Model};

use crate::args::{Predict, ThresholdArg};
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::words::cell;

/// Runs the command.
pub fn run(args: &Predict, console: &Console) -> Outcome {
    let read = [("MODEL", args.rows.model.as_str()), ("DATA", &args.rows.data)];
    files::check_apart(&read, &[("-o", &args.output)])?;
    files::check_writable(&args.output)?;
    let model = files::classifier_on(&args.rows.model, args.computing.device)?;
    let threshold = match args.threshold {
        None => None,
        Some(ThresholdArg::At(at)) => Some(at),
        // Costs alone say which it is.
        Some(ThresholdArg::Best(goal)) => Some(goal.best(&[], &[])),
    };
    let threshold = threshold.map(|at| model.threshold(args.positive.as_deref(), at)).transpose();
    let threshold = threshold.map_err(|e| Failure::parameter(&e))?;
    let rows = files::checked_rows(&model, &args.rows, &args.keep, console)?;
    let failed = |e| Failure::of_model(&args.rows.model, &rows.name, e);
    let x = &rows.rows.x;
    let predicted = match threshold {
        Some(threshold) => model.predict_at(x, threshold),
        None => model.predict(x),
    };
    let predicted = predicted.map_err(failed)?;
    let decision = match args.decision {
        true => Some(model.decision(x).map_err(failed)?),
        false => None,
    };
    let probabilities = match args.probabilities {
        true => Some(model.probabilities(x).map_err(failed)?),
        false => None,
    };
    let text = match rows.format {
        Format::Libsvm => lines(&model, &predicted, decision.as_ref(), probabilities.as_ref()),
        _ => table(&model, &rows.rows.kept, &predicted, decision.as_ref(), probabilities.as_ref()),
    };
    files::write(&args.output, text.as_bytes())
}

/// A table with a header: columns that are kept, the class, then decision values, then probabilities.
fn table(
    model: &Model,
    kept: &[(String, Vec<String>)],
    predicted: &[usize],
    decision: Option<&Matrix>,
    probabilities: Option<&Matrix>,
) -> String {
    let mut own = vec![model.schema().target().name.clone()];
    if let Some(values) = decision {
        match values.cols() {
            1 => own.push("decision".to_owned()),
            _ => own.extend(model.classes().iter().map(|c| format!("decision_{c}"))),
        }
    }
    if probabilities.is_some() {
        own.extend(model.classes().iter().map(|c| format!("p_{c}")));
    }
    for name in &mut own {
        while kept.iter().any(|(column, _)| column == name) {
            name.insert_str(0, "predicted_");
        }
    }
    let names = kept.iter().map(|(name, _)| name).chain(&own);
    let header: Vec<String> = names.map(|name| cell(name)).collect();
    let mut text = header.join(",");
    text.push('\n');
    for (row, &class) in predicted.iter().enumerate() {
        for (_, cells) in kept {
            text.push_str(&cell(&cells[row]));
            text.push(',');
        }
        text.push_str(&cell(&model.classes()[class]));
        for values in decision.iter().chain(&probabilities) {
            for value in values.row(row) {
                // Writing to a string cannot fail.
                let _ = write!(text, ",{value}");
            }
        }
        text.push('\n');
    }
    text
}

/// As svm-predict writes: the label; with probabilities a first line that names the labels.
fn lines(
    model: &Model,
    predicted: &[usize],
    decision: Option<&Matrix>,
    probabilities: Option<&Matrix>,
) -> String {
    let mut text = String::new();
    if probabilities.is_some() {
        let _ = writeln!(text, "labels {}", model.classes().join(" "));
    }
    for (row, &class) in predicted.iter().enumerate() {
        text.push_str(&model.classes()[class]);
        for values in decision.iter().chain(&probabilities) {
            for value in values.row(row) {
                let _ = write!(text, " {value}");
            }
        }
        text.push('\n');
    }
    text
}
