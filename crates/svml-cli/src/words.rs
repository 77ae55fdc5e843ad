//! Texts and tables about models, for people and for programs: everything that more than one command says.

use std::fmt::Write;

use serde_json::{Value, json};
use svml::{Form, FormChoice, Method, Model, Report, Stage, Step};

use crate::console::Console;

/// Most features, eigenvalues or classes that are listed.
const LISTED: usize = 30;

/// Eigenvalues below this share of the largest are rounding.
const ZERO: f64 = 1e-12;

/// Four significant digits, without an exponent where that is short.
pub fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    aligned(value, value)
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A value with as many decimals as four digits of `largest` need, so that a column lines up.
fn aligned(value: f64, largest: f64) -> String {
    let power = largest.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
    match power {
        -4..=5 => format!("{value:.*}", (3 - power).max(0) as usize),
        _ => format!("{value:.3e}"),
    }
}

/// A text as a cell of a table, in quotes where it needs them.
pub fn cell(text: &str) -> String {
    let plain = !text.contains([',', '"', '\n', '\r']) && text.trim() == text;
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

fn listed<S: AsRef<str>>(items: &[S]) -> String {
    let mut list: Vec<&str> = items.iter().take(LISTED).map(AsRef::as_ref).collect();
    if items.len() > LISTED {
        list.push("...");
    }
    list.join(", ")
}

/// LIBSVM's accuracy in percent: six significant digits.
pub fn accuracy(right: usize, rows: usize) -> String {
    let percent = 100.0 * right as f64 / rows.max(1) as f64;
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

/// Says which number stands for which class in LIBSVM files, where that is not clear.
pub fn note_libsvm_labels(model: &Model, console: &Console) {
    let (numbers, own) = model.libsvm_labels();
    if !own {
        let pairs: Vec<String> = (numbers.iter().zip(model.classes()))
            .map(|(number, class)| format!("{number} is {class}"))
            .collect();
        console.note(&format!("LIBSVM labels are integers: {}", pairs.join(", ")));
    }
}

/// What decides in the mapped space.
enum Classifier {
    Svm { cost: f64 },
    Neighbours { k: usize },
    None,
}

impl Classifier {
    fn of(model: &Model) -> Self {
        match (model.cost(), &model.report().method) {
            (Some(cost), _) => Self::Svm { cost },
            (None, Method::Neighbours { knn, .. }) => Self::Neighbours { k: knn.k },
            _ => Self::None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Svm { .. } => "svm",
            Self::Neighbours { .. } => "neighbours",
            Self::None => "none",
        }
    }
}

fn metric(model: &Model) -> String {
    let d = model.metric().features();
    match model.metric().form() {
        _ if is_given(model) => "the Euclidean metric on standardised features".to_owned(),
        Form::Sphere => "a spherical metric (one width)".to_owned(),
        Form::Diagonal => format!("a diagonal metric on {d} features"),
        Form::Full => format!("a full metric on {d} features"),
        form => format!("a metric of {form} on {d} features"),
    }
}

/// Whether nothing was learned: nearest neighbours in the Euclidean metric.
fn is_given(model: &Model) -> bool {
    matches!(model.report().method, Method::Neighbours { learner: None, .. })
}

/// The method, and which form of the metric came of it.
fn method(model: &Model) -> String {
    let (report, form) = (model.report(), model.metric().form());
    let description = report.method.description();
    let Method::Svml(params) = &report.method else { return description };
    let form = match (params.form, report.candidates.is_empty()) {
        (FormChoice::Auto, false) => format!("auto: {form} chosen"),
        (FormChoice::Auto, true) => format!("auto: {form}, compared with no other"),
        (given, _) => given.to_string(),
    };
    format!("{description}, form {form}")
}

/// Features in the order of their relevance.
fn by_relevance(model: &Model) -> Vec<(String, f64)> {
    let mut pairs: Vec<(String, f64)> =
        model.schema().encoded_names().into_iter().zip(model.relevance()).collect();
    pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
    pairs
}

/// The features that count most; empty if all count the same.
fn most_relevant(model: &Model, count: usize) -> String {
    let all = by_relevance(model);
    let present = || all.iter().map(|(_, value)| *value).filter(|value| *value > 0.0);
    let (low, high) = (present().fold(f64::MAX, f64::min), present().fold(0.0, f64::max));
    if all.len() < 2 || high < 1.01 * low {
        return String::new();
    }
    let top: Vec<String> = (all.into_iter().take(count))
        .filter(|(_, value)| *value > 0.0)
        .map(|(name, value)| format!("{name} {}", digits(value)))
        .collect();
    top.join(", ")
}

/// One step in words.
pub fn step(step: &Step) -> String {
    let loss = format!("loss {:.4}", step.loss);
    let Some(svml) = &step.svml else { return loss };
    let stopping = svml.stopping_error.map_or(String::new(), |error| {
        format!(", error on rows for early stopping {}", percent(error))
    });
    format!("{loss}, validation error {}{stopping}", percent(svml.valid_error))
}

/// What was learned, in a few sentences.
pub fn summary(model: &Model, seconds: f64) -> String {
    let report = model.report();
    let (classifier, rows) = (Classifier::of(model), report.rows);
    let mut text = match &classifier {
        Classifier::Svm { cost } => format!(
            "Learned {} with C = {} from {rows} rows in {seconds:.2} s.\n",
            metric(model),
            digits(*cost)
        ),
        _ if is_given(model) => {
            format!("Kept {rows} rows, with the Euclidean metric, in {seconds:.2} s.\n")
        }
        _ => format!("Learned {} from {rows} rows in {seconds:.2} s.\n", metric(model)),
    };
    text.push_str(&learning(report));
    // Writing to a string cannot fail.
    let _ = match classifier {
        Classifier::Svm { .. } => {
            writeln!(text, "{} of {rows} rows are support vectors.", model.support_rows().len())
        }
        Classifier::Neighbours { k } => {
            writeln!(
                text,
                "A new row gets the class of its {k} nearest neighbours among these rows."
            )
        }
        Classifier::None => {
            writeln!(text, "The model is a metric alone: it maps rows and cannot classify them.")
        }
    };
    let top = most_relevant(model, 5);
    if !top.is_empty() {
        let _ = writeln!(text, "Features that count most: {top}.");
    }
    text
}

/// What was compared, what the errors were and why learning ended.
fn learning(report: &Report) -> String {
    let (Some(step), Some(last)) = (report.best_step(), report.trace.last()) else {
        return String::new();
    };
    let why = report.stop.map_or(String::new(), |stop| format!("; learning ended because {stop}"));
    let Some(svml) = &step.svml else {
        return format!("The metric was learned in {} steps{why}.\n", last.iteration);
    };
    let kept = format!("Step {} of {} was kept{why}.\n", step.iteration, last.iteration);
    if !report.candidates.is_empty() {
        return candidates(report) + &kept;
    }
    let stopping = svml.stopping_error.map_or(String::new(), |error| {
        format!(" and {} on rows for early stopping", percent(error))
    });
    let valid = percent(svml.valid_error);
    format!("Errors while learning: {valid} on validation rows{stopping}.\n{kept}")
}

/// Which form was chosen, and what it was compared with, as a table.
fn candidates(report: &Report) -> String {
    let Some(chosen) = report.candidates.iter().find(|c| c.chosen) else {
        return String::new();
    };
    let forms: Vec<String> = report.candidates.iter().map(|c| c.form.to_string()).collect();
    let width = forms.iter().map(String::len).max().unwrap_or(0);
    let mut text = format!("Of the forms compared, {} was chosen:\n", chosen.form);
    let _ = writeln!(text, "  {:width$}  {:>9}  error on validation rows", "form", "C");
    for (form, c) in forms.iter().zip(&report.candidates) {
        let mark = if c.chosen { "  chosen" } else { "" };
        let (cost, error) = (digits(c.cost), percent(c.error));
        let _ = writeln!(text, "  {form:width$}  {cost:>9}  {error:>24}{mark}");
    }
    if report.candidates.iter().any(|c| c.error < chosen.error) {
        text.push_str("  A difference that may well be chance does not count.\n");
    }
    text
}

/// Everything that is known of a model, for people.
pub fn details(model: &Model, name: &str) -> String {
    let report = model.report();
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:16} {value}");
    };
    line("Model", name);
    line("Method", &method(model));
    line("Trained on", &format!("{} rows, {} features", report.rows, model.schema().width()));
    line("Classes", &listed(model.classes()));
    line("Metric", &metric(model));
    for (label, value) in classifier_lines(model).into_iter().chain(learning_lines(report)) {
        line(label, &value);
    }
    if !report.refitted {
        line("Trained in part", "the SVM was trained on part of the rows only");
    }
    if let Some(value) = probabilities(model) {
        line("Probabilities", &value);
    }
    if !report.candidates.is_empty() {
        let _ = write!(text, "\n{}", candidates(report));
    }
    text.push_str("\nRelevance of the features (diagonal of M = L'L, standardised units)\n");
    text.push_str(&bars(&by_relevance(model)));
    text.push_str("\nEigenvalues of M, and the share of the metric up to each\n");
    text.push_str(&eigenvalues(&model.acting_metric().directions().0));
    for warning in &report.warnings {
        let _ = write!(text, "\nWarning: {warning}\n");
    }
    text
}

fn classifier_lines(model: &Model) -> Vec<(&'static str, String)> {
    let count = model.support_rows().len();
    let counts: Vec<String> = (model.classes().iter().zip(model.support_counts()))
        .map(|(class, count)| format!("{class} {count}"))
        .collect();
    match Classifier::of(model) {
        Classifier::Svm { cost } => {
            vec![("C", digits(cost)), ("Support vectors", format!("{count} ({})", listed(&counts)))]
        }
        Classifier::Neighbours { k } => vec![(
            "Classifier",
            format!("the {k} nearest neighbours among {count} distinct rows ({})", listed(&counts)),
        )],
        Classifier::None => {
            vec![("Classifier", "none: the model maps rows and cannot classify them".to_owned())]
        }
    }
}

fn learning_lines(report: &Report) -> Vec<(&'static str, String)> {
    let (Some(step), Some(last)) = (report.best_step(), report.trace.last()) else {
        return Vec::new();
    };
    let why = report.stop.map_or(String::new(), |stop| format!("; learning ended because {stop}"));
    let Some(svml) = &step.svml else {
        let (steps, loss) = (last.iteration, digits(last.loss));
        return vec![("Learning", format!("{steps} steps, loss {loss}{why}"))];
    };
    let kept = format!("step {} of {} was kept{why}", step.iteration, last.iteration);
    let mut lines = vec![("Learning", kept)];
    let stages = report.stages();
    if stages.len() > 1 {
        let of = |s: &Stage| format!("{s} {} to {}", s.first, s.last);
        lines.push(("Steps", stages.iter().map(of).collect::<Vec<_>>().join(", ")));
    }
    if report.candidates.is_empty() {
        let stopping = svml
            .stopping_error
            .map_or(String::new(), |error| format!(", rows for early stopping {}", percent(error)));
        let (train, valid) = (percent(svml.train_error), percent(svml.valid_error));
        let errors = format!("training rows {train}, validation rows {valid}{stopping}");
        lines.push(("Errors", errors));
    }
    lines
}

fn probabilities(model: &Model) -> Option<String> {
    match (Classifier::of(model), model.temperature()) {
        (Classifier::None, _) => None,
        (Classifier::Neighbours { .. }, _) => Some("yes, the shares of the votes".to_owned()),
        (_, Some(t)) => Some(format!("yes, temperature {}", digits(t))),
        (_, None) => Some("none: the model was written by an early version".to_owned()),
    }
}

/// Names, values and bars of plain characters.
fn bars(pairs: &[(String, f64)]) -> String {
    let shown = &pairs[..pairs.len().min(LISTED)];
    let short = |name: &str| name.chars().take(32).collect::<String>();
    let widest = shown.iter().map(|(name, _)| short(name).chars().count()).max().unwrap_or(0);
    let largest = shown.first().map_or(0.0, |(_, value)| *value).max(f64::MIN_POSITIVE);
    let mut text = String::new();
    for (name, value) in shown {
        let name = short(name);
        let bar = "#".repeat((30.0 * value / largest).round() as usize);
        let line = format!("  {name:widest$}  {:>9}  {bar}", aligned(*value, largest));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if pairs.len() > shown.len() {
        let _ = writeln!(text, "  ... {} in all", pairs.len());
    }
    text
}

fn eigenvalues(values: &[f64]) -> String {
    let mut text = String::new();
    let total: f64 = values.iter().sum();
    let mut sum = 0.0;
    let least = ZERO * values.first().copied().unwrap_or(0.0);
    let positive = values.iter().take_while(|value| **value > least).count();
    for (k, value) in values.iter().enumerate().take(positive.clamp(1, 10)) {
        sum += value;
        let share = 100.0 * sum / total.max(f64::MIN_POSITIVE);
        let value = aligned(value.max(0.0), values[0]);
        let _ = writeln!(text, "  {:2}  {value:>9}  {share:5.1} %", k + 1);
    }
    if positive > 10 {
        let _ = writeln!(text, "  ... {positive} in all");
    }
    if positive.max(1) < values.len() {
        let _ = writeln!(text, "  the other {} are 0", values.len() - positive.max(1));
    }
    text
}

/// Everything that is known of a model, for programs.
pub fn as_json(model: &Model) -> Value {
    let report = model.report();
    let classifier = Classifier::of(model);
    let svm = matches!(classifier, Classifier::Svm { .. });
    let relevance: Vec<Value> = (by_relevance(model).into_iter())
        .map(|(feature, relevance)| json!({ "feature": feature, "relevance": relevance }))
        .collect();
    json!({
        "method": report.method,
        "rows": report.rows,
        "features": model.schema().width(),
        "target": model.schema().target().name,
        "classes": model.classes(),
        "form": model.metric().form().to_string(),
        "classifier": classifier.name(),
        "cost": model.cost(),
        "support_vectors": svm.then(|| model.support_rows().len()),
        "support_counts": svm.then(|| model.support_counts()),
        "relevance": relevance,
        "eigenvalues": model.acting_metric().directions().0,
        "temperature": model.temperature(),
        "candidates": report.candidates,
        "best_step": report.best,
        "steps": report.trace,
        "stop": report.stop,
        "refitted": report.refitted,
        "residual": report.residual,
        "warnings": report.warnings,
    })
}

/// The steps of learning as a table. What only SVML knows is there for SVML only, the bound on the loss for the
/// others.
pub fn trace_table(report: &Report) -> String {
    let of_svml = report.trace.iter().any(|step| step.svml.is_some());
    let columns = match of_svml {
        true => "form,loss,train_error,valid_error,stopping_error,cost,support_vectors",
        false => "loss,gap",
    };
    let mut text = format!("step,{columns},step_length,seconds\n");
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for stage in report.stages() {
        for step in &report.trace[stage.first..=stage.last] {
            let Step { iteration, loss, gap, step_length, seconds, .. } = step;
            let cells = match &step.svml {
                Some(s) => format!(
                    "{stage},{loss},{},{},{},{},{}",
                    s.train_error,
                    s.valid_error,
                    optional(s.stopping_error),
                    s.cost,
                    s.support_vectors
                ),
                None => format!("{loss},{}", optional(*gap)),
            };
            let _ = writeln!(text, "{iteration},{cells},{step_length},{seconds:.6}");
        }
    }
    text
}

/// Text in lines of at most `width` characters, each after an indent.
pub fn wrapped(text: &str, indent: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let length = indent.len() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && length > width {
            let _ = writeln!(lines, "{indent}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        let _ = writeln!(lines, "{indent}{line}");
    }
    lines
}
