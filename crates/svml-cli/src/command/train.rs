//! `svml train`: from a table to a model file, saying what was read and what was learned.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svml::data::{Format, Kind};
use svml::internals::suspects;
use svml::{Error, Model, Run, Step, Stop};

use crate::args::Train;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files::{self, Training};
use crate::method::{self, MethodArg};
use crate::words;

/// Most columns or classes that are listed.
const LISTED: usize = 12;

/// Runs the command.
pub fn run(args: &Train, console: &Console) -> Outcome {
    let method = method::chosen(args.method.as_ref(), &args.learning)?;
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
        let mut progress = console.progress("step", true);
        let mut stages = Stages::new(&method);
        let mut run = Run::new().interrupt(interrupt).observer(move |step| {
            let (form, left) = stages.at(step);
            let text = format!("{form}{}", words::step(step));
            progress.at(step.iteration as u64, left, &text);
            ControlFlow::Continue(())
        });
        if let Some(seconds) = args.time_limit {
            run = run.time_limit(Duration::from_secs_f64(seconds));
        }
        Model::fit_with(&training.data, &method.method, &mut run)
    };
    let model = match fitted {
        Ok(model) => model,
        Err(Error::Interrupted) if console.is_interrupted() => {
            return Err(Failure::Interrupted(
                "interrupted before there was any result; nothing was written".to_owned(),
            ));
        }
        Err(error) => {
            return Err(Failure::with_file(&training.name, error));
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    let bytes = model.to_bytes().map_err(|e| Failure::with_file(&args.output, e))?;
    files::write(&args.output, &bytes)?;
    if let Some(trace) = &args.trace {
        files::write(trace, words::trace_table(model.report()).as_bytes())?;
    }
    model.report().warnings.iter().for_each(|warning| console.warn(warning));
    let text = match args.json {
        true => format!("{:#}\n", as_json(&model, &args.output, seconds)),
        false => words::summary(&model, seconds) + &next(&model, args, &training),
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

/// The forms of the metric that are tried one after the other, as an observer sees them come.
struct Stages {
    /// Most steps of each.
    most: u64,
    /// Most forms.
    forms: u64,
    /// First step of each that has begun.
    begun: Vec<u64>,
}

impl Stages {
    fn new(method: &MethodArg) -> Self {
        let (most, forms) = method.method.max_steps();
        Self { most: most as u64, forms: forms as u64, begun: Vec::new() }
    }

    /// The name of the form that a step belongs to, if there is more than one, and how many steps may
    /// follow.
    fn at(&mut self, step: &Step) -> (String, u64) {
        let now = step.iteration as u64;
        // Only SVML starts several times.
        if step.step_length == 0.0 && (step.svml.is_some() || self.begun.is_empty()) {
            self.begun.push(now);
        }
        let of_form = now - self.begun.last().copied().unwrap_or(0);
        let to_come = self.forms.saturating_sub(self.begun.len() as u64);
        let left = self.most.saturating_sub(of_form) + to_come * (self.most + 1);
        let name = match step.svml.and_then(|svml| svml.form) {
            Some(form) if self.forms > 1 => format!("form {form}, "),
            _ => String::new(),
        };
        (name, left)
    }
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
            _ => continue,
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
            "column {} became categories because {} of its {} cells {are} no number, the first '{}' in line {}; if the column should be numbers, correct the cell or write ? for a missing value",
            suspect.column,
            suspect.others,
            suspect.numbers + suspect.others,
            suspect.cell,
            suspect.line,
        ));
    }
}

/// Where the model is and what to do with it.
fn next(model: &Model, args: &Train, training: &Training) -> String {
    let output = &args.output;
    let data = if training.name == "standard input" { "DATA" } else { &training.name };
    let use_it = if model.is_classifier() { "predict" } else { "transform" };
    format!(
        "The model is in {output}.\n\
         Next: svml show {output}; svml {use_it} {output} NEW_DATA; svml plot {output} {data} -o map.svg\n"
    )
}

fn as_json(model: &Model, output: &str, seconds: f64) -> Value {
    let mut value = words::as_json(model);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("model".to_owned(), json!(output));
        fields.insert("seconds".to_owned(), json!(seconds));
    }
    value
}
