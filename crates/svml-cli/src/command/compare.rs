//! `svml compare`: methods on the same random splits.

use std::time::Instant;

use serde_json::json;
use svml::internals::folds::random_split;
use svml::{Dataset, GridSearch, Method, Model, Run};

use crate::args::Compare;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::method::{self, MethodArg};

/// Errors and times of one method, one of each for every split.
struct Results {
    /// The method as it was written.
    method: String,
    /// Share of test rows misclassified.
    errors: Vec<f64>,
    /// Seconds of the fit.
    seconds: Vec<f64>,
}

/// Runs the command.
pub fn run(args: &Compare, console: &Console) -> Outcome {
    let methods = methods(args)?;
    let training = files::training(&args.data, console)?;
    let data = &training.data;
    if data.rows() < 10 {
        return Err(Failure::Data(format!(
            "{}: {} rows are too few to be split; at least 10 are needed",
            training.name,
            data.rows()
        )));
    }
    let seed = args.learning.seed.unwrap_or(0);
    let results = measure(data, &methods, args.splits, seed, console)
        .map_err(|e| Failure::with_file(&training.name, e))?;
    let done = results.last().map_or(0, |r| r.errors.len());
    if done >= 2 {
        let text = match args.json {
            true => as_json(&training.name, data, &results),
            false => heading(&training.name, data, done) + &table(&results),
        };
        console::print(&text)?;
    }
    match (done as u64) < args.splits {
        true => {
            Err(Failure::Interrupted(format!("interrupted after {done} of {} splits", args.splits)))
        }
        false => Ok(()),
    }
}

/// What is compared: first the Euclidean SVM, then what was asked for, with the options applied to all.
fn methods(args: &Compare) -> Result<Vec<MethodArg>, Failure> {
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
            "--methods {}: a metric alone cannot classify, so that it has no error to compare; leave out +none",
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
    splits: u64,
    seed: u64,
    console: &Console,
) -> svml::Result<Vec<Results>> {
    let interrupt = console.interrupt();
    let result = |method: &MethodArg| Results {
        method: method.text.clone(),
        errors: Vec::new(),
        seconds: Vec::new(),
    };
    let mut results: Vec<Results> = methods.iter().map(result).collect();
    let mut progress = console.progress("fit", false);
    let total = splits * methods.len() as u64;
    let mut done = 0;
    for split in 0..splits {
        let (train, test) = random_split(data.rows(), seed.wrapping_add(split));
        let (train, test) = (data.select(&train), data.select(&test));
        let mut of_split = Vec::with_capacity(methods.len());
        for method in methods {
            let started = Instant::now();
            let mut run = Run::new().interrupt(interrupt.clone());
            let fitted = Model::fit_with(&train, &method.method, &mut run);
            if console.is_interrupted() {
                return Ok(results);
            }
            let model = fitted?;
            of_split.push((model.error_rate(&test)?, started.elapsed().as_secs_f64()));
            done += 1;
            progress.at(done, total - done, &format!("split {}, {}", split + 1, method.text));
        }
        for (result, (error, seconds)) in results.iter_mut().zip(of_split) {
            result.errors.push(error);
            result.seconds.push(seconds);
        }
    }
    Ok(results)
}

/// Mean and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// Mean difference to another result on the same splits, and its standard error.
fn difference(of: &Results, to: &Results) -> (f64, f64) {
    let differences: Vec<f64> = of.errors.iter().zip(&to.errors).map(|(a, b)| a - b).collect();
    mean(&differences)
}

fn heading(name: &str, data: &Dataset, splits: usize) -> String {
    let train = data.rows() * 4 / 5;
    format!(
        "{name}: {} rows, {} features, {} classes; {splits} random splits, {train} rows to train on, {} to test on\n\n",
        data.rows(),
        data.columns(),
        data.classes().len(),
        data.rows() - train
    )
}

/// The table: mean error, difference to the first method, time.
fn table(results: &[Results]) -> String {
    let width = results.iter().map(|r| r.method.len()).max().unwrap_or(0).max(9);
    let line = |cells: [&str; 4]| {
        let [method, error, apart, seconds] = cells;
        format!("{method:width$}  {error:>15}  {apart:>23}  {seconds:>15}\n")
    };
    let mut text = line(["method", "test error, %", "difference to euclidean", "seconds per fit"]);
    let percent =
        |(mean, s): (f64, f64)| (format!("{:.2} +- {:.2}", 100.0 * mean, 100.0 * s), mean);
    for result in results {
        let apart = match &results[0] {
            first if std::ptr::eq(first, result) => String::new(),
            first => {
                let (text, value) = percent(difference(result, first));
                if value > 0.0 { format!("+{text}") } else { text }
            }
        };
        let seconds = format!("{:.3}", mean(&result.seconds).0);
        let error = percent(mean(&result.errors)).0;
        text.push_str(&line([&result.method, &error, &apart, &seconds]));
    }
    text.push_str(
        "\n+- is one standard error. Differences are paired by split; a negative one is better.\n",
    );
    text
}

fn as_json(name: &str, data: &Dataset, results: &[Results]) -> String {
    let methods: Vec<serde_json::Value> = results
        .iter()
        .map(|result| {
            let ((error, s), (apart, apart_s)) =
                (mean(&result.errors), difference(result, &results[0]));
            json!({
                "method": result.method,
                "error": error,
                "standard_error": s,
                "difference": apart,
                "difference_standard_error": apart_s,
                "seconds_per_fit": mean(&result.seconds).0,
                "errors": result.errors,
            })
        })
        .collect();
    let value = json!({
        "data": name,
        "rows": data.rows(),
        "features": data.columns(),
        "classes": data.classes(),
        "splits": results[0].errors.len(),
        "compared_with": results[0].method,
        "methods": methods,
    });
    format!("{value:#}\n")
}
