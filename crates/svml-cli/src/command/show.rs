//! `svml show`: what a model has learned.

use std::fmt::Write;

use serde_json::{Value, json};
use svml::model::{Report, Stage};
use svml::{Form, Model};

use crate::args::Show;
use crate::command::train::method_words;
use crate::console;
use crate::failure::Outcome;
use crate::files;

/// Most features, eigenvalues or classes that are listed.
const LISTED: usize = 30;

/// Eigenvalues below this share of the largest are rounding.
const ZERO: f64 = 1e-12;

/// Runs the command.
pub fn run(args: &Show) -> Outcome {
    let model = files::model(&args.model)?;
    let text = match args.json {
        true => format!("{:#}\n", as_json(&model)),
        false => as_text(&model, &args.model),
    };
    console::print(&text)
}

/// Four significant digits, without an exponent where that is short.
pub fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let power = value.abs().log10().floor() as i32;
    match power {
        -4..=5 => format!("{value:.*}", (3 - power).max(0) as usize),
        _ => format!("{value:.3e}"),
    }
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

/// The metric in words.
pub fn metric_words(model: &Model) -> String {
    let d = model.metric().features();
    match model.metric().form() {
        Form::Sphere => "a spherical metric (one width)".to_owned(),
        Form::Diagonal => format!("a diagonal metric on {d} features"),
        Form::Full => format!("a full metric on {d} features"),
        form => format!("a metric of {form} on {d} features"),
    }
}

/// Features in the order of their relevance.
fn by_relevance(model: &Model) -> Vec<(String, f64)> {
    let values = model.acting_metric().relevance();
    let mut pairs: Vec<(String, f64)> =
        model.schema().encoded_names().into_iter().zip(values).collect();
    pairs.sort_by(|a, b| b.1.total_cmp(&a.1));
    pairs
}

/// The features that count most; empty if all count the same.
pub fn most_relevant(model: &Model, count: usize) -> String {
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

/// Everything as JSON.
pub fn as_json(model: &Model) -> Value {
    let report = model.report();
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
        "cost": model.cost(),
        "support_vectors": model.support_rows().len(),
        "support_counts": model.support_counts(),
        "relevance": relevance,
        "eigenvalues": model.acting_metric().directions().0,
        "temperature": model.temperature(),
        "candidates": report.candidates,
        "best_step": report.best,
        "steps": report.trace,
        "learning": report.learning,
        "stop": report.stop,
        "refitted": report.refitted,
        "residual": report.residual,
        "warnings": report.warnings,
    })
}

fn as_text(model: &Model, name: &str) -> String {
    let report = model.report();
    let mut text = String::new();
    let mut line = |label: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{label:16} {value}");
    };
    line("Model", name.to_owned());
    line("Method", method_words(model));
    line("Trained on", format!("{} rows, {} features", report.rows, model.schema().width()));
    line("Classes", listed(model.classes()));
    line("Metric", metric_words(model));
    if model.has_machine() {
        line("C", digits(model.cost()));
        let counts: Vec<String> = (model.classes().iter().zip(model.support_counts()))
            .map(|(class, count)| format!("{class} {count}"))
            .collect();
        line("Support vectors", format!("{} ({})", model.support_rows().len(), listed(&counts)));
    }
    if let Some(step) = report.trace.get(report.best) {
        let last = report.trace.last().map_or(0, |s| s.iteration);
        let why = report.stop.map_or(String::new(), |stop| format!("; it ended because {stop}"));
        line("Learning", format!("step {} of {last} was kept{why}", step.iteration));
        let stages = report.stages();
        if stages.len() > 1 {
            let of = |s: &Stage| format!("{s} {} to {}", s.first, s.last);
            line("Steps", stages.iter().map(of).collect::<Vec<_>>().join(", "));
        }
        if report.candidates.is_empty() {
            let hold =
                step.hold_error.map_or(String::new(), |e| format!(", hold-out {}", percent(e)));
            let (train, valid) = (percent(step.train_error), percent(step.valid_error));
            line("Errors", format!("training rows {train}, validation {valid}{hold}"));
        }
    }
    if let Some(last) = report.learning.last() {
        let why = report.stop.map_or(String::new(), |stop| format!("; it ended because {stop}"));
        line("Learning", format!("{} steps, loss {}{why}", last.iteration, digits(last.loss)));
    }
    if !report.refitted {
        line("Machine", "trained on a part of the rows".to_owned());
    }
    match model.temperature() {
        Some(t) => line("Probabilities", format!("yes, temperature {}", digits(t))),
        None if model.has_machine() => {
            line("Probabilities", "none: written by an early version".to_owned());
        }
        None => line("Machine", "none: it maps rows and does not classify".to_owned()),
    }
    if !report.candidates.is_empty() {
        let _ = write!(text, "\n{}", candidates(report));
    }
    text.push_str("\nRelevance of the features (diagonal of M = L'L, standardised units)\n");
    text.push_str(&bars(&by_relevance(model)));
    let values = model.acting_metric().directions().0;
    let total: f64 = values.iter().sum();
    text.push_str("\nEigenvalues of M, and the share of the metric up to each\n");
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
    for warning in &report.warnings {
        let _ = write!(text, "\nWarning: {warning}\n");
    }
    text
}

/// Which form was chosen, and what it was compared with, as a table.
pub fn candidates(report: &Report) -> String {
    let Some(chosen) = report.candidates.iter().find(|c| c.chosen) else {
        return String::new();
    };
    let forms: Vec<String> = report.candidates.iter().map(|c| c.form.to_string()).collect();
    let width = forms.iter().map(String::len).max().unwrap_or(0);
    let mut text = format!("Of the forms compared, {} was chosen:\n", chosen.form);
    let _ = writeln!(text, "  {:width$}  {:>9}  error on rows held out", "form", "C");
    for (form, c) in forms.iter().zip(&report.candidates) {
        let mark = if c.chosen { "  chosen" } else { "" };
        let (cost, error) = (digits(c.cost), percent(c.error));
        let _ = writeln!(text, "  {form:width$}  {cost:>9}  {error:>22}{mark}");
    }
    if report.candidates.iter().any(|c| c.error < chosen.error) {
        text.push_str("  A difference that may well be chance does not count.\n");
    }
    text
}

fn listed<S: AsRef<str>>(items: &[S]) -> String {
    let mut list: Vec<&str> = items.iter().take(LISTED).map(AsRef::as_ref).collect();
    if items.len() > LISTED {
        list.push("...");
    }
    list.join(", ")
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
