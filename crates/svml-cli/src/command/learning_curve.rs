//! `svml learning-curve`: the error by the number of rows to learn from.

use serde_json::json;
use svml::figures::LearningCurve as Curve;
use svml::{Error, Method, Run};
use svml_plot::Draw;

use crate::args::LearningCurve;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::method;

/// Runs the command.
pub fn run(args: &LearningCurve, console: &Console) -> Outcome {
    let picture = args.output.as_deref().map(|output| Ok((output, files::is_png(output)?)));
    let picture = picture.transpose()?;
    if let Some((output, _)) = picture {
        let params = args.learning.params.as_deref().map(|params| ("--params", params));
        let read: Vec<_> = [("DATA", args.data.data.as_str())].into_iter().chain(params).collect();
        files::check_apart(&read, &[("-o", output)])?;
        files::check_writable(output)?;
    }
    let asked = method::chosen(args.method.as_ref(), &args.learning)?;
    if matches!(asked.method, Method::Metric(_)) {
        return Err(Failure::Usage(format!(
            "--method {}: a metric alone cannot classify, so it has no error; leave out +none",
            asked.text
        )));
    }
    let training = files::training(&args.data, console)?;
    let interrupt = console.interrupt();
    let mut progress = console.progress("fit");
    let wanted = args.repetitions as usize;
    let found = Curve::new(
        &training.data,
        &asked.method,
        args.sizes.as_deref(),
        wanted,
        args.learning.seed.unwrap_or(0),
        || Run::new().interrupt(interrupt.clone()).device(args.learning.computing.device),
        |done, all| {
            progress.at(done as u64, (all - done) as u64, &asked.text);
            !console.is_interrupted()
        },
    );
    drop(progress);
    let curve = found.map_err(|e| match e {
        Error::Interrupted => {
            Failure::Interrupted("interrupted before two repetitions were finished".to_owned())
        }
        Error::Parameter { .. } => Failure::parameter(&e),
        e => Failure::with_file(&training.name, e),
    })?;
    let text = match args.json {
        true => as_json(&training.name, &asked.text, &curve),
        false => table(&asked.text, &curve),
    };
    console::print(&text)?;
    if let Some((output, png)) = picture {
        let title = args.title.clone().unwrap_or_else(|| "Learning curve".to_owned());
        files::write_picture(&curve.draw(&title), png, output)?;
        console.note(&format!("the plot is in {output}"));
    }
    let done = curve.errors.first().map_or(0, Vec::len);
    match done < wanted {
        true => {
            Err(Failure::Interrupted(format!("interrupted after {done} of {wanted} repetitions")))
        }
        false => Ok(()),
    }
}

/// A line for each number of rows.
fn table(method: &str, curve: &Curve) -> String {
    let repetitions = curve.errors.first().map_or(0, Vec::len);
    let mut text = format!("{:>18}  {:>15}\n", "training rows", "error, %");
    for ((size, mean), s) in curve.sizes.iter().zip(&curve.mean).zip(&curve.standard_error) {
        let error = format!("{:.2} +- {:.2}", 100.0 * mean, 100.0 * s);
        text.push_str(&format!("{size:>18}  {error:>15}\n"));
    }
    text.push_str(&format!(
        "\n{method}: error on {} held-out rows, mean of {repetitions} repetitions; +- is one standard error.\n",
        curve.held_out
    ));
    text
}

fn as_json(name: &str, method: &str, curve: &Curve) -> String {
    let value = json!({
        "data": name,
        "method": method,
        "sizes": curve.sizes,
        "error": curve.mean,
        "standard_error": curve.standard_error,
        "errors": curve.errors,
        "held_out": curve.held_out,
    });
    format!("{value:#}\n")
}
