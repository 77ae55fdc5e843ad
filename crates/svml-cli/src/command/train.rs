//! `svml train`: from a table to a model file, saying what was read and what was learned.

use std::cell::RefCell;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use svml::data::{Format, Kind, LeftOut};
use svml::internals::{Gaps, Slip, Suspect, Watch};
use svml::{Device, Error, Method, Model, Progress, Run, Stop};

use crate::args::Train;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files::{self, Training};
use crate::method;
use crate::words;

/// Most columns or classes that are listed.
const LISTED: usize = 12;

/// Fits that need fewer bytes than this begin without a word about it.
const WORTH_SAYING: u64 = 500_000_000;

/// A card that is opened by a thread of its own. The fit waits for it, and says what is wrong with it.
struct Opening(Option<JoinHandle<()>>);

impl Opening {
    /// Of the card that was asked for, if one was.
    fn of(device: Device) -> Self {
        let Device::Cuda(_) = device else { return Self(None) };
        let open = move || drop(Watch::on_device(device));
        Self(std::thread::Builder::new().spawn(open).ok())
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // A program must not end within a call of the driver.
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// Runs the command.
pub fn run(args: &Train, console: &Console) -> Outcome {
    let method = method::chosen(args.method.as_ref(), &args.learning)?;
    let params = args.learning.params.as_deref().map(|params| ("--params", params));
    let read: Vec<_> = [("DATA", args.data.data.as_str())].into_iter().chain(params).collect();
    let trace = args.trace.as_deref().map(|trace| ("--trace", trace));
    let written: Vec<_> = [("-o", args.output.as_str())].into_iter().chain(trace).collect();
    let kept = args.checkpoint.as_deref().map(|checkpoint| ("--checkpoint", checkpoint));
    let all: Vec<_> = written.iter().copied().chain(kept).collect();
    files::check_apart(&read, &all)?;
    if let Some(kept) = kept {
        // Where an interrupted run would write is taken too.
        for (option, name) in &written {
            files::check_apart(&[], &[(option, &format!("{name}.interrupted")), kept])?;
        }
    }
    let checkpoint = files::checkpoint(args.checkpoint.as_deref())?;
    written.iter().try_for_each(|(_, name)| files::check_writable(name))?;
    // A card takes some tenths of a second to open, in which the table is read.
    let _opening = Opening::of(args.learning.computing.device);
    let training = files::training(&args.data, console)?;
    // From here on Ctrl-C is answered with words. Not before: reading may wait for ever.
    let interrupt = console.interrupt();
    describe(&training, console);
    if let Method::Svml(params) = &method.method {
        let bytes = params.memory_needed(&training.data);
        if bytes >= WORTH_SAYING {
            let gigabytes = bytes as f64 / 1e9;
            console.note(&format!("This will need up to about {gigabytes:.2} GB of memory."));
        }
    }
    if let Some(file) = &checkpoint {
        files::note_checkpoint(file, console);
    }
    let started = Instant::now();
    let (fitted, cut_short) = {
        let shown = RefCell::new(console.fitting(training.data.rows()));
        let mut progress = Progress::new(&method.method);
        let mut run = Run::new()
            .interrupt(interrupt)
            .device(args.learning.computing.device)
            .observer(|step| {
                shown.borrow_mut().at(&progress.at(step), &words::step(step));
                ControlFlow::Continue(())
            })
            .listener(|activity| shown.borrow_mut().begins(activity));
        // What is too long for the clock is no limit.
        if let Some(limit) = args.time_limit.and_then(|s| Duration::try_from_secs_f64(s).ok()) {
            run = run.time_limit(limit);
        }
        if let Some(file) = &checkpoint {
            run = run.checkpoint(file);
        }
        let fitted = Model::fit_with(&training.data, &method.method, &mut run);
        if let Some(trouble) = run.checkpoint_trouble() {
            console.warn(&format!(
                "the checkpoint could no longer be written ({trouble}); the fit continued without it"
            ));
        }
        (fitted, run.is_cut_short())
    };
    let mut model = match fitted {
        Ok(model) => model,
        Err(Error::Interrupted) if console.is_interrupted() => {
            let kept = files::goes_on(checkpoint.as_deref());
            return Err(Failure::Interrupted(format!(
                "interrupted before there was a result; nothing was written{kept}"
            )));
        }
        Err(error) => {
            return Err(Failure::with_file(&training.name, error));
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    if args.keep_rows {
        model
            .keep_rows(training.data.x(), training.data.y())
            .map_err(|e| Failure::with_file(&training.name, e))?;
    }
    // A whole model of an earlier run is worth more than a part of this one.
    let interrupted = model.report().stop == Some(Stop::Interrupted);
    let place = |name: &str| match interrupted {
        true => files::for_interrupted(name),
        false => name.to_owned(),
    };
    let output = place(&args.output);
    let bytes = model.to_bytes().map_err(|e| Failure::with_file(&output, e))?;
    let steps =
        args.trace.as_deref().map(|trace| (place(trace), words::trace_table(model.report())));
    let steps = steps.as_ref().map(|(name, table)| (name.as_str(), table.as_bytes()));
    let results: Vec<_> = steps.into_iter().chain([(output.as_str(), bytes.as_slice())]).collect();
    files::write_all(&results)?;
    // A fit that was ended early may go on another time.
    if let Some(file) = &checkpoint
        && !cut_short
    {
        files::remove_checkpoint(file, console);
    }
    // What was said before is not said again.
    let said = model.schema().identifiers();
    let warnings = model.report().warnings.iter().filter(|warning| Some(*warning) != said.as_ref());
    warnings.for_each(|warning| console.warn(warning));
    let text = match args.json {
        true => format!("{:#}\n", as_json(&model, &output, seconds)),
        false => words::summary(&model, seconds) + &next(&model, &output, &training),
    };
    // Standard output may be taken by the model.
    match args.output.as_str() {
        "-" => console.note(text.trim_end()),
        _ if args.json || !console.quiet() => console::print(&text)?,
        _ => {}
    }
    match model.report().stop {
        Some(Stop::TimeLimit) => {
            if checkpoint.is_some() {
                let kept = files::goes_on(checkpoint.as_deref());
                console.note(&format!("The time limit was reached{kept}."));
            }
            Ok(())
        }
        Some(Stop::Interrupted) => {
            let of = match model.members() {
                [_, _, ..] => "the mean of the SVMs so far".to_owned(),
                _ => format!("the best model so far, of step {},", model.report().best),
            };
            let kept = match output == args.output {
                true => String::new(),
                false => format!("; {} is unchanged", args.output),
            };
            let more = files::goes_on(checkpoint.as_deref());
            Err(Failure::Interrupted(format!("interrupted: {of} is saved in {output}{kept}{more}")))
        }
        _ => Ok(()),
    }
}

/// Says what was taken from the file.
fn describe(training: &Training, console: &Console) {
    let Training { name, data, format, suspects, gaps } = training;
    let schema = data.schema();
    let columns = schema.columns();
    let numbers = columns.iter().filter(|c| c.kind == Kind::Number).count();
    let ignored = columns.iter().filter(|c| c.kind == Kind::Ignored).count();
    let categories = columns.len() - numbers - ignored;
    let used = columns.len() - ignored;
    let (rows, features) =
        (words::counted(data.rows(), "row"), words::counted(used, "feature column"));
    let mut line = format!("{name}: {rows}, {features}");
    let _ = match (numbers, categories) {
        (_, 0) => write!(line, ", all numeric"),
        (0, _) => write!(line, ", all categorical"),
        _ => write!(line, " ({numbers} numeric, {categories} categorical)"),
    };
    let header = match (format, schema.named()) {
        (Some(Format::Libsvm), _) => ", in LIBSVM format",
        (Some(Format::Npy), _) => ", a NumPy array: columns are named x1, x2, ...",
        (None, _) => "",
        (_, true) => ", column names from the first row",
        (_, false) => ", no header: columns are named x1, x2, ...",
    };
    console.note(&format!("{line}{header}"));
    let is_category = |kind: &Kind| !matches!(kind, Kind::Number | Kind::Ignored);
    for column in columns.iter().filter(|c| is_category(&c.kind)).take(LISTED) {
        let (levels, how) = match &column.kind {
            Kind::Codes { levels } => (levels, "codes"),
            Kind::OneHot { levels } => (levels, "0/1 columns"),
            _ => continue,
        };
        let shown: Vec<String> = levels.iter().take(6).map(|level| words::name(level)).collect();
        let more = if levels.len() > shown.len() { ", ..." } else { "" };
        let count = levels.len();
        console.note(&format!(
            "  {}: {count} categories encoded as {how}: {}{more}",
            words::name(&column.name),
            shown.join(", ")
        ));
    }
    if categories > LISTED {
        let more = categories - LISTED;
        let more = words::counted(more, "more categorical column");
        console.note(&format!("  ... and {more}"));
    }
    let asked: Vec<String> = (columns.iter())
        .filter(|column| column.left_out() == Some(LeftOut::Asked))
        .map(|column| words::name(&column.name))
        .take(LISTED)
        .collect();
    let more = columns.iter().filter(|c| c.left_out() == Some(LeftOut::Asked)).count();
    if more > 0 {
        let more =
            if more > asked.len() { format!(", ... {more} in total") } else { String::new() };
        console.note(&format!("  left out as requested: {}{more}", asked.join(", ")));
    }
    let counts = data.class_counts();
    let classes: Vec<String> = (data.classes().iter().zip(&counts).take(LISTED))
        .map(|(class, count)| format!("{} ({count})", words::name(class)))
        .collect();
    let more = match data.classes().len() > LISTED {
        true => format!(", ... {} in total", data.classes().len()),
        false => String::new(),
    };
    console.note(&format!(
        "  classes in column {}: {}{more}",
        words::name(&schema.target().name),
        classes.join(", ")
    ));
    if let (Some(column), Some(groups)) = (data.group_column(), data.groups()) {
        let count = groups.iter().max().map_or(0, |last| last + 1);
        let column = words::name(column);
        console
            .note(&format!("  {count} groups in column {column}, which is not used as a feature"));
    }
    note_gaps(gaps, data.rows(), console);
    words::warn_identifiers(schema, console);
    // What was filled has been said.
    for suspect in suspects.iter().filter(|suspect| suspect.why != Slip::Filled) {
        let are = if suspect.others == 1 { "is not a number" } else { "are not numbers" };
        let Suspect { column, numbers, others, line, cell, .. } = suspect;
        console.warn(&match suspect.why {
            Slip::Thousands => format!(
                "column {column}: commas were read as decimal commas, but they may be thousands separators, because each is followed by three digits, the first in '{cell}' in line {line}; if so, remove them"
            ),
            Slip::Signs => format!(
                "column {column} was read as text, although its cells look like numbers with a comma, a sign or a unit, the first being '{cell}' in line {line}; if the column should be numeric, write all numbers like 1234.5"
            ),
            _ => format!(
                "column {column} was read as text because {others} of its {} cells {are}, the first being '{cell}' in line {line}; if the column should be numeric, correct the cell, or write ? for a missing value",
                numbers + others,
            ),
        });
    }
}

/// Says what was done about missing values.
fn note_gaps(gaps: &Gaps, rows: usize, console: &Console) {
    if gaps.columns.is_empty() {
        return;
    }
    let listed: Vec<String> = (gaps.columns.iter().take(LISTED))
        .map(|(column, count)| format!("{} ({count})", words::name(column)))
        .collect();
    let more = match gaps.columns.len() > LISTED {
        true => format!(", ... {} columns in total", gaps.columns.len()),
        false => String::new(),
    };
    let done = match gaps.dropped {
        0 => "missing values imputed".to_owned(),
        dropped => {
            format!("{dropped} of {} rows left out because of missing values", rows + dropped)
        }
    };
    let columns = if gaps.columns.len() == 1 { "column" } else { "columns" };
    console.note(&format!("  {done} in {columns} {}{more}", listed.join(", ")));
}

/// Where the model is and what to do with it.
fn next(model: &Model, output: &str, training: &Training) -> String {
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
