//! `svml compare`: methods on the same random splits.

use std::time::Instant;

use serde_json::json;
use svml::internals::folds::{random_split, random_split_by_group};
use svml::internals::{Key, Store, keys_of_comparison};
use svml::{Dataset, Device, GridSearch, Measure, Measures, Method, Model, Run};

use crate::args::Compare;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::method::{self, MethodArg};
use crate::words;

/// Measures and times of one method, one of each for every split.
struct Results {
    /// The method as it was written.
    method: String,
    /// On the test rows.
    measures: Vec<Measures>,
    /// Seconds of the fit.
    seconds: Vec<f64>,
}

/// The random splits.
#[derive(Clone, Copy)]
struct Splits {
    count: u64,
    /// Of the first; the others follow.
    seed: u64,
}

/// Runs the command.
pub fn run(args: &Compare, console: &Console) -> Outcome {
    let methods = methods(args)?;
    let params = args.learning.params.as_deref().map(|params| ("--params", params));
    let read: Vec<_> = [("DATA", args.data.data.as_str())].into_iter().chain(params).collect();
    let kept = args.checkpoint.as_deref().map(|checkpoint| ("--checkpoint", checkpoint));
    files::check_apart(&read, kept.as_slice())?;
    let checkpoint = files::checkpoint(args.checkpoint.as_deref())?;
    let training = files::training(&args.data, console)?;
    let data = &training.data;
    words::warn_identifiers(data.schema(), console);
    if data.rows() < 10 {
        return Err(Failure::Data(format!(
            "{}: {} rows are too few to split; at least 10 are needed",
            training.name,
            data.rows()
        )));
    }
    if data.groups().is_some_and(|groups| groups.iter().all(|group| *group == groups[0])) {
        return Err(Failure::Data(format!(
            "{}: all rows belong to one group, so they cannot be split; at least two groups are needed",
            training.name
        )));
    }
    let seed = args.learning.seed.unwrap_or(0);
    let device = args.learning.computing.device;
    let failed = |error| Failure::with_file(&training.name, error);
    let store = match &checkpoint {
        Some(file) => {
            files::note_checkpoint(file, console);
            let all: Vec<&Method> = methods.iter().map(|asked| &asked.method).collect();
            let (data, methods) = keys_of_comparison(data, &all, seed);
            // What is measured on a card differs in the last digits.
            let methods = match device {
                Device::Cuda(_) => methods.with(&device),
                _ => methods,
            };
            Some(Store::open(file, data, methods).map_err(failed)?)
        }
        None => None,
    };
    let splits = Splits { count: args.splits, seed };
    let results =
        measure(data, &methods, splits, device, store.as_ref(), console).map_err(failed)?;
    let done = results.last().map_or(0, |r| r.measures.len());
    if done >= 2 {
        let text = match args.json {
            true => as_json(&training.name, data, &results, args.measure),
            false => heading(&training.name, data, done) + &table(&results, args.measure),
        };
        console::print(&text)?;
    }
    match (done as u64) < args.splits {
        true => {
            let kept = files::goes_on(checkpoint.as_deref());
            let splits = args.splits;
            Err(Failure::Interrupted(format!("interrupted after {done} of {splits} splits{kept}")))
        }
        false => {
            // It is closed before it is removed.
            drop(store);
            if let Some(file) = &checkpoint {
                files::remove_checkpoint(file, console);
            }
            Ok(())
        }
    }
}

/// What is compared: first the Euclidean SVM, then what was asked for, with the options applied to all.
pub fn methods(args: &Compare) -> Result<Vec<MethodArg>, Failure> {
    let euclidean = Method::from(GridSearch::default());
    let asked = args.methods.iter().flat_map(|list| list.0.iter().cloned());
    let mut methods = vec![MethodArg::from(euclidean.clone())];
    methods.extend(asked.filter(|asked| asked.method != euclidean));
    if args.methods.is_empty() {
        methods.push(Method::default().into());
    }
    let no_classifier = methods.iter().find(|asked| matches!(asked.method, Method::Metric(_)));
    if let Some(asked) = no_classifier {
        return Err(Failure::Usage(format!(
            "--methods {}: a metric alone cannot classify, so it has no error to compare; leave out +none",
            asked.text
        )));
    }
    method::all_chosen(&mut methods, &args.learning)?;
    Ok(methods)
}

/// Fits every method on every split, one after the other so that times can be compared. Ends early, with
/// as many splits for every method, when the user interrupts.
fn measure(
    data: &Dataset,
    methods: &[MethodArg],
    splits: Splits,
    device: Device,
    store: Option<&Store>,
    console: &Console,
) -> svml::Result<Vec<Results>> {
    let interrupt = console.interrupt();
    let result = |method: &MethodArg| Results {
        method: method.text.clone(),
        measures: Vec::new(),
        seconds: Vec::new(),
    };
    let mut results: Vec<Results> = methods.iter().map(result).collect();
    let mut progress = console.progress("fit");
    let total = splits.count * methods.len() as u64;
    let together = data.together();
    if together.is_some() && data.groups().is_none() {
        console.warn("rows repeat others in every column and in the class: they are taken for copies of one observation, which are on one side of each split");
    }
    let mut done = 0;
    for split in 0..splits.count {
        let seed = splits.seed.wrapping_add(split);
        let (train, test) = match &together {
            Some(groups) => random_split_by_group(groups, seed),
            None => random_split(data.rows(), seed),
        };
        let (train, test) = (data.select(&train), data.select(&test));
        let labels: Vec<&str> = test.y().iter().map(|&c| test.classes()[c].as_str()).collect();
        let mut of_split = Vec::with_capacity(methods.len());
        for (place, method) in methods.iter().enumerate() {
            let key = Key::new("fit").places(&[split as usize, place]);
            if let Some(known) = store.and_then(|store| store.recall(key)) {
                of_split.push(known);
                done += 1;
                continue;
            }
            let started = Instant::now();
            let mut run = Run::new().interrupt(interrupt.clone()).device(device);
            let fitted = Model::fit_with(&train, &method.method, &mut run);
            if console.is_interrupted() {
                return Ok(results);
            }
            let model = fitted?;
            let seconds = started.elapsed().as_secs_f64();
            let measured = (model.measure(test.x(), &labels)?, seconds);
            if let Some(store) = store {
                store.record(key, &measured, started.elapsed())?;
            }
            of_split.push(measured);
            done += 1;
            progress.at(done, total - done, &format!("split {}, {}", split + 1, method.text));
        }
        for (result, (measures, seconds)) in results.iter_mut().zip(of_split) {
            result.measures.push(measures);
            result.seconds.push(seconds);
        }
    }
    Ok(results)
}

/// Mean and its standard error; none of no values.
fn mean(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (!values.is_empty()).then(|| (mean, (variance / n).sqrt()))
}

/// A measure of a method on the splits that have it for every method: a split whose test rows are of one class has no
/// AUC, for example.
fn values(results: &[Results], of: &Results, measure: Measure) -> Vec<f64> {
    let has_it = |split: &usize| {
        results.iter().all(|result| result.measures[*split].value(measure).is_some())
    };
    let splits = (0..of.measures.len()).filter(has_it);
    splits.filter_map(|split| of.measures[split].value(measure)).collect()
}

/// Mean difference of a measure to the first method on the same splits, and its standard error.
fn difference(results: &[Results], of: &Results, measure: Measure) -> Option<(f64, f64)> {
    let (ours, first) = (values(results, of, measure), values(results, &results[0], measure));
    let differences: Vec<f64> = ours.iter().zip(&first).map(|(a, b)| a - b).collect();
    mean(&differences)
}

fn heading(name: &str, data: &Dataset, splits: usize) -> String {
    let train = data.rows() * 4 / 5;
    // Groups are whole, so that the sizes of the parts differ a little.
    let (about, by) = match data.group_column() {
        Some(column) => ("about ", format!(" by groups ({column})")),
        None => ("", String::new()),
    };
    format!(
        "{name}: {} rows, {} features, {} classes; {splits} random splits{by}, {about}{train} rows for training, {} for testing\n\n",
        data.rows(),
        data.columns(),
        data.classes().len(),
        data.rows() - train
    )
}

/// The table: the mean of a measure, its difference to the first method, time.
fn table(results: &[Results], measure: Measure) -> String {
    let width = results.iter().map(|r| r.method.len()).max().unwrap_or(0).max(9);
    let unit = if measure.is_share() { ", %" } else { "" };
    let title = format!("test {}{unit}", measure.title());
    let wide = title.len().max(15);
    let line = |cells: [&str; 4]| {
        let [method, value, apart, seconds] = cells;
        format!("{method:width$}  {value:>wide$}  {apart:>23}  {seconds:>15}\n")
    };
    let mut text = line(["method", &title, "difference to euclidean", "seconds per fit"]);
    let shown = |found: Option<(f64, f64)>| match (found, measure.is_share()) {
        (None, _) => "-".to_owned(),
        (Some((mean, s)), true) => format!("{:.2} +- {:.2}", 100.0 * mean, 100.0 * s),
        (Some((mean, s)), false) => format!("{mean:.4} +- {s:.4}"),
    };
    for result in results {
        let apart = match &results[0] {
            first if std::ptr::eq(first, result) => String::new(),
            _ => {
                let found = difference(results, result, measure);
                let sign = if found.is_some_and(|(mean, _)| mean > 0.0) { "+" } else { "" };
                format!("{sign}{}", shown(found))
            }
        };
        let seconds = format!("{:.3}", mean(&result.seconds).map_or(0.0, |(mean, _)| mean));
        let value = shown(mean(&values(results, result, measure)));
        text.push_str(&line([&result.method, &value, &apart, &seconds]));
    }
    let better = if measure.is_better_larger() { "positive" } else { "negative" };
    text.push_str(&format!(
        "\n+- is one standard error. Differences are paired by split; {better} is better.\n"
    ));
    let (all, used) = (results[0].measures.len(), values(results, &results[0], measure).len());
    if used < all {
        text.push_str(&format!(
            "{} of the {all} splits have no {}, because all their test rows belong to one class.\n",
            all - used,
            measure.title()
        ));
    }
    text
}

fn as_json(name: &str, data: &Dataset, results: &[Results], measure: Measure) -> String {
    let part = |found: Option<(f64, f64)>| {
        (found.map(|(mean, _)| mean), found.map(|(_, standard_error)| standard_error))
    };
    let methods: Vec<serde_json::Value> = results
        .iter()
        .map(|result| {
            let of = |measure| -> Vec<Option<f64>> {
                result.measures.iter().map(|measures| measures.value(measure)).collect()
            };
            let errors = values(results, result, Measure::Error);
            let (error, error_s) = part(mean(&errors));
            let (value, value_s) = part(mean(&values(results, result, measure)));
            let (apart, apart_s) = part(difference(results, result, measure));
            let all: serde_json::Map<String, serde_json::Value> = (Measure::ALL.into_iter())
                .map(|measure| (measure.name().to_owned(), json!(of(measure))))
                .collect();
            json!({
                "method": result.method,
                "error": error,
                "standard_error": error_s,
                "mean": value,
                "mean_standard_error": value_s,
                "difference": apart,
                "difference_standard_error": apart_s,
                "seconds_per_fit": mean(&result.seconds).map(|(mean, _)| mean),
                "errors": errors,
                "measures": all,
            })
        })
        .collect();
    let value = json!({
        "data": name,
        "rows": data.rows(),
        "features": data.columns(),
        "classes": data.classes(),
        "splits": results[0].measures.len(),
        "measure": measure.name(),
        "compared_with": results[0].method,
        "methods": methods,
    });
    format!("{value:#}\n")
}
