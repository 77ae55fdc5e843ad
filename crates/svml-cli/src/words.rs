//! Texts and tables about models, for people and for programs: everything that more than one command says.

use std::fmt::Write;

use serde_json::{Value, json};
use svml::data::Schema;
use svml::figures::Relevance;
use svml::{ClassWeight, Form, Honest, Kernel, Method, Model, Report, Stage, Step};

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

/// A name from data or from a model as people are told it: short, on one line, and nothing that a terminal would obey.
pub use svml::internals::excerpt as name;

fn listed<S: AsRef<str>>(items: &[S]) -> String {
    let mut list: Vec<&str> = items.iter().take(LISTED).map(AsRef::as_ref).collect();
    if items.len() > LISTED {
        list.push("...");
    }
    list.join(", ")
}

/// The first of some names, and whether there are more.
pub fn listed_names(items: &[String]) -> String {
    listed(&items.iter().take(LISTED + 1).map(|item| name(item)).collect::<Vec<_>>())
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
            .map(|(number, class)| format!("{number} is {}", name(class)))
            .collect();
        console.note(&format!("LIBSVM labels are integers: {}", pairs.join(", ")));
    }
}

/// Says which columns were left out because they look like identifiers, and how they can be used.
pub fn warn_identifiers(schema: &Schema, console: &Console) {
    if let Some(columns) = schema.identifiers() {
        console.warn(&format!("{columns}; to use such columns anyway, name them with --use COLS"));
    }
}

/// What decides in the mapped space.
enum Classifier {
    Svms,
    Neighbours { k: usize },
    None,
}

impl Classifier {
    fn of(model: &Model) -> Self {
        match (model.members(), &model.report().method) {
            ([_, ..], _) => Self::Svms,
            ([], Method::Neighbours { knn, .. }) => Self::Neighbours { k: knn.k },
            _ => Self::None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Svms => "svm",
            Self::Neighbours { .. } => "neighbours",
            Self::None => "none",
        }
    }
}

/// Whether the model is the mean of several SVMs.
fn is_mean(model: &Model) -> bool {
    model.members().len() > 1
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

/// The method, and which form of the metric was asked for.
fn method(report: &Report) -> String {
    let description = report.method.description();
    match &report.method {
        Method::Svml(params) => format!("{description}, form {}", params.form),
        _ => description,
    }
}

/// The kernel, with what it is of the distance.
fn kernel(kernel: Kernel) -> String {
    let formula = match kernel {
        Kernel::Gaussian => ", exp(-|L (x - z)|^2)",
        Kernel::Exponential => ", exp(-|L (x - z)|)",
        Kernel::Laplacian => ", exp(-sum_k w_k |x_k - z_k|) where w is the diagonal of L",
        _ => "",
    };
    format!("{kernel}{formula}")
}

/// The features that count most; empty if all count the same.
fn most_relevant(model: &Model, count: usize) -> String {
    let Relevance { names, values, .. } = Relevance::new(model);
    let present = || values.iter().copied().filter(|value| *value > 0.0);
    let (low, high) = (present().fold(f64::MAX, f64::min), present().fold(0.0, f64::max));
    if values.len() < 2 || high < 1.01 * low {
        return String::new();
    }
    let top: Vec<String> = (names.iter().zip(values).take(count))
        .filter(|(_, value)| *value > 0.0)
        .map(|(feature, value)| format!("{} {}", name(feature), percent(value)))
        .collect();
    top.join(", ")
}

/// One step in words.
pub fn step(step: &Step) -> String {
    let loss = format!("loss {:.4}", step.loss);
    let Some(svml) = &step.svml else { return loss };
    let stopping = svml
        .stopping_error
        .map_or(String::new(), |error| format!(", early-stopping error {}", percent(error)));
    format!("{loss}, validation error {}{stopping}", percent(svml.valid_error))
}

/// A number of things, of which there may be one.
pub fn counted(count: usize, name: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {name}{plural}")
}

/// What was learned, in a few sentences.
pub fn summary(model: &Model, seconds: f64) -> String {
    let report = model.report();
    let (classifier, rows) = (Classifier::of(model), report.rows);
    let mut text = match model.members() {
        [only] => {
            let kernel = match only.kernel() {
                Kernel::Gaussian => String::new(),
                Kernel::Exponential => "an exponential kernel and ".to_owned(),
                kernel => format!("a {kernel} kernel and "),
            };
            let (metric, cost) = (metric(model), digits(only.cost()));
            format!(
                "Learned {metric} with {kernel}C = {cost} from {rows} rows in {seconds:.2} s.\n"
            )
        }
        [] if is_given(model) => {
            format!("Stored {rows} rows for the Euclidean metric in {seconds:.2} s.\n")
        }
        [] => format!("Learned {} from {rows} rows in {seconds:.2} s.\n", metric(model)),
        several => format!(
            "Learned the mean of {} SVMs on {} features from {rows} rows in {seconds:.2} s.\n",
            several.len(),
            model.metric().features()
        ),
    };
    text.push_str(&svms(model));
    text.push_str(&learning(model));
    if report.left_out_for_time() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{CUT_SHORT}.");
    }
    if let Some(landmarks) = &report.landmarks {
        let _ = writeln!(text, "How it was computed: {landmarks}.");
    }
    if report.used_card() {
        let _ = writeln!(text, "Computed on {}.", name(&report.device));
    }
    if let Some(honest) = &report.honest {
        let (own, others) = (with_error(honest), guessing(honest));
        let _ = writeln!(text, "Error on {}: {own}; {others}.", whose_error(honest));
        if honest.is_no_better_than_guessing() {
            let _ = writeln!(text, "{NO_BETTER}");
        }
    }
    let _ = match classifier {
        Classifier::Svms => {
            let of = if is_mean(model) { " of at least one SVM" } else { "" };
            let (count, kept) = (model.support_rows().len(), kept_rows(model));
            writeln!(text, "{count} of {rows} rows are {kept}{of}.")
        }
        Classifier::Neighbours { k } => {
            writeln!(
                text,
                "A new row is classified by its {k} nearest neighbours among these rows."
            )
        }
        Classifier::None => {
            writeln!(text, "The model is only a metric: it maps rows but cannot classify them.")
        }
    };
    let top = most_relevant(model, 5);
    if !top.is_empty() {
        let _ = writeln!(text, "Most important features: {top}.");
    }
    text
}

/// Whether SVMs of the model have landmarks in place of support vectors.
fn on_landmarks(model: &Model) -> bool {
    model.report().landmarks.is_some_and(|landmarks| landmarks.in_model.is_some())
}

/// What the rows are that SVMs are made of. Of the members of a mean some may be exact.
fn kept_rows(model: &Model) -> &'static str {
    match (on_landmarks(model), is_mean(model)) {
        (false, _) => "support vectors",
        (true, true) => "landmarks or support vectors",
        (true, false) => "landmarks",
    }
}

/// Which rows the error of a model is that of.
fn whose_error(honest: &Honest) -> String {
    let rows = if honest.put_aside { "set aside before training" } else { "cross-fitted" };
    let weighted = if honest.weighted { "; weighted by the rows' sample weights" } else { "" };
    format!("held-out rows ({rows}{weighted})")
}

/// The error with its standard error.
fn with_error(honest: &Honest) -> String {
    format!("{} +- {}", percent(honest.error), percent(honest.standard_error))
}

/// What the error compares with.
fn guessing(honest: &Honest) -> String {
    format!("guessing the most frequent class: {}", percent(honest.guessing))
}

/// What to say where learning ended by itself, but not all was done.
const CUT_SHORT: &str = "Parts of the fit were skipped because of the time limit; a longer --time-limit may give a different model";

/// What to say of an error that guessing has as well.
const NO_BETTER: &str = "Neither this error nor the log loss is better than guessing, to within three standard errors: do not rely on the predictions.";

/// What the errors were while learning, and why it ended.
fn learning(model: &Model) -> String {
    let report = model.report();
    let (Some(step), Some(last)) = (report.best_step(), report.trace.last()) else {
        return String::new();
    };
    let why = report.stop.map_or(String::new(), |stop| format!("; learning ended because {stop}"));
    let Some(svml) = &step.svml else {
        return format!("The metric was learned in {}{why}.\n", counted(last.iteration, "step"));
    };
    if is_mean(model) || !matches!(report.method, Method::Svml(_)) {
        return match last.iteration {
            1 => format!("It took 1 step in total{why}.\n"),
            steps => format!("It took {steps} steps in total{why}.\n"),
        };
    }
    let kept = format!("Step {} of {} was kept{why}.\n", step.iteration, last.iteration);
    // The metric was learned on validation rows: their error is not said where there is a better one.
    if report.honest.is_some() || !report.candidates.is_empty() {
        return kept;
    }
    let stopping = svml.stopping_error.map_or(String::new(), |error| {
        format!(" and {} on the early-stopping rows", percent(error))
    });
    let valid = percent(svml.valid_error);
    let weighted = match &report.method {
        Method::Svml(svml) if svml.class_weight != ClassWeight::None => ", weighted by class",
        _ => "",
    };
    format!("Errors during learning{weighted}: {valid} on the validation rows{stopping}.\n{kept}")
}

/// An SVM of the mean, or one that it was compared with.
struct SvmRow {
    weight: f64,
    kernel: Kernel,
    form: Form,
    cost: f64,
    /// On rows that were not used to learn it.
    error: Option<f64>,
}

/// The SVMs of the model, and then those that were compared and are no part of it.
fn svm_rows(model: &Model) -> (Vec<SvmRow>, Vec<SvmRow>) {
    let candidates = &model.report().candidates;
    let members = model.members().iter().map(|member| {
        let (kernel, form) = (member.kernel(), member.metric().form());
        let own = candidates.iter().find(|c| c.chosen && c.kernel == kernel && c.form == form);
        let error = own.map(|candidate| candidate.error);
        SvmRow { weight: member.weight(), kernel, form, cost: member.cost(), error }
    });
    let others = candidates.iter().filter(|candidate| !candidate.chosen).map(|c| SvmRow {
        weight: 0.0,
        kernel: c.kernel,
        form: c.form,
        cost: c.cost,
        error: Some(c.error),
    });
    (members.collect(), others.collect())
}

/// The SVMs of a mean, or what one SVM was compared with, as a table; empty for one that was given.
fn svms(model: &Model) -> String {
    let (members, others) = svm_rows(model);
    if members.len() + others.len() < 2 {
        return String::new();
    }
    let count = members.len();
    let rows: Vec<SvmRow> = members.into_iter().chain(others).collect();
    let forms: Vec<String> = rows.iter().map(|row| row.form.to_string()).collect();
    let kernels: Vec<String> = rows.iter().map(|row| row.kernel.to_string()).collect();
    let widest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
    let (kernel_width, form_width) = (widest(&kernels), widest(&forms));
    let known = rows.iter().any(|row| row.error.is_some());
    let mut text = match (known, count) {
        (false, _) => String::from("Its SVMs:\n"),
        (true, 1) => {
            String::from("It was chosen over other SVMs by their errors on held-out rows:\n")
        }
        (true, _) => String::from("Its SVMs, with their errors on held-out rows:\n"),
    };
    let (kernel, form, error) = ("kernel", "form", if known { "   error" } else { "" });
    let _ =
        writeln!(text, "  weight  {kernel:kernel_width$}  {form:form_width$}  {:>9}{error}", "C");
    for (k, row) in rows.iter().enumerate() {
        let (kernel, form, cost) = (&kernels[k], &forms[k], digits(row.cost));
        let error = row.error.map_or(String::new(), |error| format!("{:>8}", percent(error)));
        let mark = if k < count { "" } else { "  not in the model" };
        let _ = writeln!(
            text,
            "  {:6.2}  {kernel:kernel_width$}  {form:form_width$}  {cost:>9}{error}{mark}",
            row.weight
        );
    }
    let own = rows[..count].iter().filter_map(|row| row.error).fold(f64::MAX, f64::min);
    let whole = model.report().honest.map_or(own, |honest| honest.error);
    if rows[count..].iter().any(|row| row.error.is_some_and(|error| error < whole)) {
        text.push_str("  Differences that may well be due to chance are ignored.\n");
    }
    text
}

/// Everything that is known of a model, for people.
pub fn details(model: &Model, file: &str, by_feature: bool) -> String {
    let report = model.report();
    let mut text = String::new();
    let mut line = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:16} {value}");
    };
    line("Model", file);
    line("Method", &method(report));
    let features = counted(model.schema().width(), "feature");
    line("Trained on", &format!("{}, {features}", counted(report.rows, "row")));
    if let Some(columns) = left_out(model) {
        line("Left out", &columns);
    }
    line("Classes", &listed_names(model.classes()));
    for (label, value) in classifier_lines(model).into_iter().chain(learning_lines(model)) {
        line(label, &value);
    }
    if let Some(landmarks) = &report.landmarks {
        line("Computed", &landmarks.to_string());
    }
    line("Device", &name(&report.device));
    if report.left_out_for_time() {
        line("Cut short", CUT_SHORT);
    }
    if !report.refitted {
        line("Trained in part", "the SVM was trained on only part of the rows");
    }
    if let Some(value) = probabilities(model) {
        line("Probabilities", &value);
    }
    if let Some(honest) = &report.honest {
        line("Error", &format!("{} on {}", with_error(honest), whose_error(honest)));
        line("", &guessing(honest));
        if honest.is_no_better_than_guessing() {
            line("", NO_BETTER);
        }
        line("Log loss", &format!("{} on the same rows", digits(honest.log_loss)));
    }
    let table = svms(model);
    if !table.is_empty() {
        let _ = write!(text, "\n{table}");
    }
    let whose = if by_feature { "features" } else { "columns" };
    let _ = write!(
        text,
        "\nRelevance of the {whose}: their shares of the diagonal of M = L'L, in standardised units"
    );
    let relevance = if by_feature { Relevance::by_feature(model) } else { Relevance::new(model) };
    text.push_str(match relevance.is_spread() {
        true => ";\nmean over the SVMs, with the smallest and largest share\n",
        false => "\n",
    });
    text.push_str(&bars(&relevance));
    text.push_str("\nEigenvalues of M, with their cumulative shares\n");
    text.push_str(&eigenvalues(&model.acting_metric().eigenvalues()));
    for warning in &report.warnings {
        let _ = write!(text, "\nWarning: {warning}\n");
    }
    text
}

fn classifier_lines(model: &Model) -> Vec<(&'static str, String)> {
    let count = model.support_rows().len();
    let counts: Vec<String> = (model.classes().iter().zip(model.support_counts()))
        .map(|(class, count)| format!("{} {count}", name(class)))
        .collect();
    let listed_counts = listed(&counts);
    let support = match (on_landmarks(model), is_mean(model)) {
        (false, _) => ("Support vectors", format!("{count} ({listed_counts})")),
        (true, false) => ("Landmarks", format!("{count} ({listed_counts})")),
        (true, true) => {
            let kept = format!("{count} rows that are {} of at least one SVM", kept_rows(model));
            ("Landmarks", format!("{kept} ({listed_counts})"))
        }
    };
    let metric = ("Metric", metric(model));
    match (model.members(), Classifier::of(model)) {
        ([only], _) => {
            let (kernel, cost) = (kernel(only.kernel()), digits(only.cost()));
            vec![metric, ("Kernel", kernel), ("C", cost), support]
        }
        ([_, _, ..], _) => {
            let mean = format!("the mean of the SVMs' metrics, {}", metric.1);
            let count = model.members().len();
            let svms = format!("the mean of {count} SVMs, each with its own kernel and metric");
            vec![("SVMs", svms), ("Metric", mean), support]
        }
        ([], Classifier::Neighbours { k }) => {
            let among = format!("among {count} distinct rows ({listed_counts})");
            vec![metric, ("Classifier", format!("the {k} nearest neighbours {among}"))]
        }
        ([], _) => {
            let none = "none: the model maps rows but cannot classify them".to_owned();
            vec![metric, ("Classifier", none)]
        }
    }
}

fn learning_lines(model: &Model) -> Vec<(&'static str, String)> {
    let report = model.report();
    let (Some(step), Some(last)) = (report.best_step(), report.trace.last()) else {
        return Vec::new();
    };
    let why = report.stop.map_or(String::new(), |stop| format!("; learning ended because {stop}"));
    let Some(svml) = &step.svml else {
        let (steps, loss) = (counted(last.iteration, "step"), digits(last.loss));
        return vec![("Learning", format!("{steps}, loss {loss}{why}"))];
    };
    let stages = report.stages();
    let one = matches!(report.method, Method::Svml(_)) && !is_mean(model);
    let mut lines = vec![match one {
        true => {
            ("Learning", format!("step {} of {} was kept{why}", step.iteration, last.iteration))
        }
        false => ("Learning", format!("{} in total{why}", counted(last.iteration, "step"))),
    }];
    if stages.len() > 1 {
        let of = |s: &Stage| format!("{}: {} to {}", stage_name(s), s.first, s.last);
        lines.push(("Steps", stages.iter().map(of).collect::<Vec<_>>().join(", ")));
    }
    if one && report.candidates.is_empty() {
        let stopping = svml
            .stopping_error
            .map_or(String::new(), |error| format!(", early-stopping rows {}", percent(error)));
        let (train, valid) = (percent(svml.train_error), percent(svml.valid_error));
        let errors = format!("error on training rows {train}, validation rows {valid}{stopping}");
        lines.push(("During learning", errors));
    }
    lines
}

/// The kernel and the form of a stage, as far as they are on record.
fn stage_name(stage: &Stage) -> String {
    match (stage.kernel, stage.form) {
        (Some(kernel), Some(form)) if stage.half => format!("{kernel} {form} on half of the rows"),
        (Some(kernel), Some(form)) => format!("{kernel} {form}"),
        _ => stage.to_string(),
    }
}

fn probabilities(model: &Model) -> Option<String> {
    match (Classifier::of(model), model.temperature()) {
        (Classifier::None, _) => None,
        (Classifier::Neighbours { .. }, _) => Some("yes, shares of the votes".to_owned()),
        (_, Some(t)) => {
            let weights = match model.class_weights() {
                Some(_) => ", corrected for the class weights",
                None => "",
            };
            Some(format!("yes, temperature {}{weights}", digits(t)))
        }
        (_, None) => Some("none: the model was written by an early version of svml".to_owned()),
    }
}

/// The columns that are left out, with the reasons.
fn left_out(model: &Model) -> Option<String> {
    let columns = model.schema().columns().iter();
    let named: Vec<String> = columns
        .filter_map(|column| column.left_out().map(|why| format!("{} ({why})", name(&column.name))))
        .collect();
    (!named.is_empty()).then(|| listed(&named))
}

/// Names, shares in percent, their spread over the SVMs of a mean, and bars of plain characters.
fn bars(relevance: &Relevance) -> String {
    let Relevance { names, values, low, high, .. } = relevance;
    let shown = names.len().min(LISTED);
    let short = |feature: &str| name(feature).chars().take(32).collect::<String>();
    let widest = names[..shown].iter().map(|name| short(name).chars().count()).max().unwrap_or(0);
    let largest = 100.0 * values.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let number = |share: f64| aligned(100.0 * share, largest);
    let spread = relevance.is_spread();
    let room = high[..shown].iter().map(|share| number(*share).len()).max().unwrap_or(0);
    let mut text = String::new();
    for k in 0..shown {
        let (name, value) = (short(&names[k]), number(values[k]));
        let spread = match spread {
            true => format!("  {:>room$} to {:>room$} %", number(low[k]), number(high[k])),
            false => String::new(),
        };
        let bar = "#".repeat((3000.0 * values[k] / largest).round() as usize);
        let line = format!("  {name:widest$}  {value:>7} %{spread}  {bar}");
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if names.len() > shown {
        let _ = writeln!(text, "  ... {} in total", names.len());
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
        let _ = writeln!(text, "  ... {positive} in total");
    }
    let _ = match values.len() - positive.max(1).min(values.len()) {
        0 => Ok(()),
        1 => writeln!(text, "  the other one is 0"),
        others => writeln!(text, "  the other {others} are 0"),
    };
    text
}

/// Everything that is known of a model, for programs.
pub fn as_json(model: &Model) -> Value {
    let report = model.report();
    let classifier = Classifier::of(model);
    let svm = matches!(classifier, Classifier::Svms);
    let shares = |of: &str, relevance: Relevance| -> Vec<Value> {
        let Relevance { names, values, low, high, .. } = relevance;
        (0..names.len())
            .map(
                |k| json!({ of: names[k], "relevance": values[k], "low": low[k], "high": high[k] }),
            )
            .collect()
    };
    let columns = model.schema().columns().iter();
    let left_out: Vec<Value> = columns
        .filter_map(|c| c.left_out().map(|why| json!({ "column": c.name, "reason": why })))
        .collect();
    let members: Vec<Value> = (svm_rows(model).0.iter())
        .map(|SvmRow { weight, kernel, form, cost, error }| {
            json!({ "weight": weight, "kernel": kernel, "form": form, "cost": cost, "error": error })
        })
        .collect();
    let honest = report.honest.map(|honest| {
        let mut value = json!(honest);
        value["no_better_than_guessing"] = json!(honest.is_no_better_than_guessing());
        value
    });
    json!({
        "method": report.method,
        "rows": report.rows,
        "features": model.schema().width(),
        "left_out": left_out,
        "target": model.schema().target().name,
        "classes": model.classes(),
        "form": model.metric().form().to_string(),
        "classifier": classifier.name(),
        "members": members,
        "cost": model.cost(),
        "honest": honest,
        "landmarks": report.landmarks,
        "support_vectors": svm.then(|| model.support_rows().len()),
        "support_counts": svm.then(|| model.support_counts()),
        "relevance": shares("feature", Relevance::by_feature(model)),
        "relevance_by_column": shares("column", Relevance::new(model)),
        "eigenvalues": model.acting_metric().eigenvalues(),
        "temperature": model.temperature(),
        "class_weights": model.class_weights(),
        "candidates": report.candidates,
        "best_step": report.best,
        "steps": report.trace,
        "stop": report.stop,
        "cut_short": report.cut_short,
        "refitted": report.refitted,
        "residual": report.residual,
        "device": report.device,
        "warnings": report.warnings,
    })
}

/// The steps of learning as a table. What only SVML knows is there for SVML only, the bound on the loss for the
/// others.
pub fn trace_table(report: &Report) -> String {
    let of_svml = report.trace.iter().any(|step| step.svml.is_some());
    let columns = match of_svml {
        true => "kernel,form,half,loss,train_error,valid_error,stopping_error,cost,support_vectors",
        false => "loss,gap",
    };
    let mut text = format!("step,{columns},step_length,seconds\n");
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for stage in report.stages() {
        let kernel = stage.kernel.map_or(String::new(), |kernel| kernel.to_string());
        let form = stage.form.map_or(String::new(), |form| form.to_string());
        for step in &report.trace[stage.first..=stage.last] {
            let Step { iteration, loss, gap, step_length, seconds, .. } = step;
            let cells = match &step.svml {
                Some(s) => format!(
                    "{kernel},{form},{},{loss},{},{},{},{},{}",
                    s.half,
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
