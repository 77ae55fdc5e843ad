//! `svml train`: from a table to a model file, saying what was read and what was learned.

use std::cell::RefCell;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde_json::json;
use svml::data::{Format, Kind, suspects};
use svml::learn::{Control, Progress, Step};
use svml::model::{Method, Report};
use svml::optimise::Stop;
use svml::params::FormChoice;
use svml::{Model, Rival};

use crate::args::Train;
use crate::command::show;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files::{self, Training};

/// Most columns or classes that are listed.
const LISTED: usize = 12;

/// Runs the command.
pub fn run(args: &Train, console: &Console) -> Outcome {
    files::check_writable(&args.output)?;
    if let Some(trace) = &args.trace {
        files::check_writable(trace)?;
    }
    let training = files::training(&args.data)?;
    // From here on Ctrl-C is answered with words. Not before: reading may wait for ever.
    let interrupt = console.interrupt();
    describe(&training, console);
    let started = Instant::now();
    let fitted = {
        let (most, forms) = args.method.most_steps(&args.learning);
        let progress = RefCell::new(console.progress("step", true));
        let mut stages = Stages { most, forms, begun: Vec::new() };
        let mut observer = |step: &Step| {
            let (name, left) = stages.at(step);
            let text = format!("{name}{}", step_text(step));
            progress.borrow_mut().at(step.iteration as u64, left, &text);
            ControlFlow::Continue(())
        };
        let mut other = |step: &Progress| {
            let (done, text) = (step.iteration as u64, format!("loss {:.4}", step.loss));
            progress.borrow_mut().at(done, most.saturating_sub(done), &text);
            ControlFlow::Continue(())
        };
        let mut control = Control {
            observer: Some(&mut observer),
            progress: Some(&mut other),
            interrupt,
            time_limit: args.time_limit.map(Duration::from_secs_f64),
        };
        args.method.fit(&training.data, &args.learning, &mut control)
    };
    let model = match fitted {
        Ok(model) => model,
        Err(svml::Error::Interrupted) if console.is_interrupted() => {
            return Err(Failure::Interrupted(
                "interrupted before there was any result; nothing was written".to_owned(),
            ));
        }
        Err(error) => return Err(Failure::with_file(&training.name, error)),
    };
    let seconds = started.elapsed().as_secs_f64();
    let bytes = model.to_bytes().map_err(|e| Failure::with_file(&args.output, e))?;
    files::write(&args.output, &bytes)?;
    if let Some(trace) = &args.trace {
        let table = match model.report().learning.as_slice() {
            [] => trace_table(model.report()),
            others => other_table(others),
        };
        files::write(trace, table.as_bytes())?;
    }
    model.report().warnings.iter().for_each(|warning| console.warn(warning));
    let text = match args.json {
        true => format!("{:#}\n", as_json(&model, &args.output, seconds)),
        false => summary(&model, args, &training, seconds),
    };
    // Standard output may be taken by the model.
    match args.output.as_str() {
        "-" => console.note(text.trim_end()),
        _ if args.json || !console.quiet() => console::print(&text)?,
        _ => {}
    }
    match model.report().stop {
        Some(Stop::Interrupted) => Err(Failure::Interrupted(format!(
            "interrupted: the best model so far, of step {}, is saved in {}",
            model.report().best,
            args.output
        ))),
        _ => Ok(()),
    }
}

/// The forms that are tried one after the other, as an observer sees them come.
struct Stages {
    /// Most steps of each.
    most: u64,
    /// Most forms.
    forms: u64,
    /// First step of each that has begun.
    begun: Vec<u64>,
}

impl Stages {
    /// The name of the form that a step belongs to, if there is more than one, and how many steps may
    /// follow.
    fn at(&mut self, step: &Step) -> (String, u64) {
        let now = step.iteration as u64;
        if step.step == 0.0 {
            self.begun.push(now);
        }
        let of_form = now - self.begun.last().copied().unwrap_or(0);
        let to_come = self.forms.saturating_sub(self.begun.len() as u64);
        let left = self.most.saturating_sub(of_form) + to_come * (self.most + 1);
        let name = match step.form {
            Some(form) if self.forms > 1 => format!("form {form}, "),
            _ => String::new(),
        };
        (name, left)
    }
}

/// One step in words.
fn step_text(step: &Step) -> String {
    let hold =
        step.hold_error.map_or(String::new(), |e| format!(", hold-out error {}", show::percent(e)));
    format!("loss {:.4}, validation error {}{hold}", step.loss, show::percent(step.valid_error))
}

/// Says what was taken from the file.
fn describe(training: &Training, console: &Console) {
    let Training { name, data, text, options } = training;
    let schema = data.schema();
    let columns = schema.columns();
    let numbers = columns.iter().filter(|c| c.kind == Kind::Number).count();
    let categories = columns.len() - numbers;
    let mut line = format!("{name}: {} rows, {} feature columns", data.rows(), columns.len());
    let _ = match (numbers, categories) {
        (_, 0) => write!(line, " of numbers"),
        (0, _) => write!(line, " of categories"),
        _ => write!(line, " ({numbers} of numbers, {categories} of categories)"),
    };
    let header = match (schema.format(), schema.named(), text.is_some()) {
        (Format::Libsvm, _, _) => ", in the LIBSVM format",
        (_, _, false) => "",
        (_, true, _) => ", names from the first row",
        (_, false, _) => ", no header: columns are named x1, x2, ...",
    };
    console.note(&format!("{line}{header}"));
    for column in columns.iter().filter(|c| c.kind != Kind::Number).take(LISTED) {
        let (levels, how) = match &column.kind {
            Kind::Codes { levels } => (levels, "codes"),
            Kind::OneHot { levels } => (levels, "a column of 0 and 1 each"),
            Kind::Number => continue,
        };
        let shown: Vec<&str> = levels.iter().take(6).map(String::as_str).collect();
        let more = if levels.len() > shown.len() { ", ..." } else { "" };
        let count = levels.len();
        console.note(&format!(
            "  {}: {count} categories as {how}: {}{more}",
            column.name,
            shown.join(", ")
        ));
    }
    if categories > LISTED {
        console.note(&format!("  ... and {} more columns of categories", categories - LISTED));
    }
    let counts = data.class_counts();
    let classes: Vec<String> = (data.classes().iter().zip(&counts).take(LISTED))
        .map(|(class, count)| format!("{class} ({count})"))
        .collect();
    let more = match data.classes().len() > LISTED {
        true => format!(", ... {} in all", data.classes().len()),
        false => String::new(),
    };
    console.note(&format!(
        "  classes in column {}: {}{more}",
        schema.target().name,
        classes.join(", ")
    ));
    let text = match (text, schema.format(), categories) {
        (Some(text), Format::Csv, 1..) => text,
        _ => return,
    };
    for suspect in suspects(text, options, &schema.target().name).unwrap_or_default() {
        let are = if suspect.others == 1 { "is" } else { "are" };
        console.warn(&format!(
            "column {} became categories because {} of its {} cells {are} no number, the first '{}' in line {}; if it should be numbers, correct it or put ? for missing values",
            suspect.column,
            suspect.others,
            suspect.numbers + suspect.others,
            suspect.cell,
            suspect.line,
        ));
    }
}

/// The result in plain words.
fn summary(model: &Model, args: &Train, training: &Training, seconds: f64) -> String {
    let report = model.report();
    let mut text = format!(
        "Learned {} with C = {} from {} rows in {seconds:.2} s.\n",
        show::metric_words(model),
        show::digits(model.cost()),
        report.rows
    );
    text.push_str(&outcome_words(report));
    let support = model.support_rows().len();
    let _ = writeln!(text, "{support} of {} rows are support vectors.", report.rows);
    let top = show::most_relevant(model, 5);
    if !top.is_empty() {
        let _ = writeln!(text, "Features that count most: {top}.");
    }
    let _ = writeln!(text, "The model is in {}.", args.output);
    let data = if training.name == "standard input" { "DATA" } else { &training.name };
    let _ = writeln!(
        text,
        "Next: svml show {0}; svml predict {0} NEW_DATA; svml plot {0} {data} -o map.svg",
        args.output
    );
    text
}

/// What was compared, what the errors were and why learning ended, in lines.
fn outcome_words(report: &Report) -> String {
    let why = report.stop.map_or(String::new(), |stop| format!("; it ended because {stop}"));
    if let Some(last) = report.learning.last() {
        return format!("The metric was learned in {} steps{why}.\n", last.iteration);
    }
    let Some(step) = report.trace.get(report.best) else {
        return String::new();
    };
    let last = report.trace.last().map_or(0, |s| s.iteration);
    let kept = format!("Step {} of {last} was kept{why}.\n", step.iteration);
    if !report.candidates.is_empty() {
        return show::candidates(report) + &kept;
    }
    let hold = match step.hold_error {
        Some(error) => format!("{} on hold-out rows, ", show::percent(error)),
        None => String::new(),
    };
    let valid = show::percent(step.valid_error);
    format!("Errors while learning: {hold}{valid} on validation rows.\n{kept}")
}

fn as_json(model: &Model, output: &str, seconds: f64) -> serde_json::Value {
    let mut value = show::as_json(model);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("model".to_owned(), json!(output));
        fields.insert("seconds".to_owned(), json!(seconds));
    }
    value
}

fn trace_table(report: &Report) -> String {
    let mut text = String::from(
        "step,form,loss,train_error,valid_error,hold_error,cost,support_vectors,step_length,seconds\n",
    );
    for stage in report.stages() {
        for s in &report.trace[stage.first..=stage.last] {
            let hold = s.hold_error.map_or(String::new(), |e| e.to_string());
            let _ = writeln!(
                text,
                "{},{stage},{},{},{},{hold},{},{},{},{:.6}",
                s.iteration,
                s.loss,
                s.train_error,
                s.valid_error,
                s.cost,
                s.support,
                s.step,
                s.seconds
            );
        }
    }
    text
}

fn other_table(steps: &[Progress]) -> String {
    let mut text = String::from("step,loss,gap,step_length,seconds\n");
    for s in steps {
        let gap = s.gap.map_or(String::new(), |gap| gap.to_string());
        let (iteration, loss, length) = (s.iteration, s.loss, s.step);
        let _ = writeln!(text, "{iteration},{loss},{gap},{length},{:.6}", s.seconds);
    }
    text
}

/// The method of a model in words.
pub fn method_words(model: &Model) -> String {
    let (report, form) = (model.report(), model.metric().form());
    match &report.method {
        Method::Svml(params) => {
            let form = match (params.form, report.candidates.is_empty()) {
                (FormChoice::Fixed(form), _) => form.to_string(),
                (FormChoice::Auto, false) => format!("auto: {form} chosen"),
                (FormChoice::Auto, true) => format!("auto: {form}, compared with no other"),
            };
            let criterion = params.criterion;
            format!("support vector metric learning, criterion {criterion}, form {form}")
        }
        Method::Euclidean(grid) => format!(
            "Euclidean machine, width and C by {}-fold cross-validation on {} settings",
            grid.folds,
            grid.widths.len() * grid.costs.len()
        ),
        Method::After { learner, grid } => {
            let settings = grid.widths.len() * grid.costs.len();
            format!(
                "{}, then width and C by {}-fold cross-validation on {settings} settings",
                learner_words(learner),
                grid.folds
            )
        }
        Method::Metric(learner) => format!("{}, without a machine", learner_words(learner)),
        Method::Given { gamma, .. } => format!(
            "no learning: kernel exp(-gamma |x - z|^2) with gamma = {} as given",
            show::digits(*gamma)
        ),
        _ => "another method".to_owned(),
    }
}

fn learner_words(learner: &Rival) -> &'static str {
    match learner {
        Rival::Pca(_) => "principal components",
        Rival::Nca(_) => "neighbourhood component analysis",
        Rival::Lmnn(_) => "large margin nearest neighbours",
        Rival::Itml(_) => "information-theoretic metric learning",
        _ => "another learner",
    }
}
