//! `svml evaluate`: how well a model does.

use serde_json::{Value, json};
use svml::{Goal, Measures, Model, Threshold};

use crate::args::{Evaluate, ThresholdArg};
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::words;

/// Runs the command.
pub fn run(args: &Evaluate, console: &Console) -> Outcome {
    let model = files::classifier_on(&args.rows.model, args.computing.device)?;
    let positive = args.positive.as_deref();
    // What cannot be is said before the rows are read.
    if args.threshold.is_some() {
        model.threshold(positive, 0.5).map_err(|e| Failure::parameter(&e))?;
    }
    let rows = files::checked_rows(&model, &args.rows, &[], console)?;
    let labels = files::labels(&rows)?;
    warn_unknown(&model, labels, console);
    let failed = |e| Failure::of_model(&args.rows.model, &rows.name, e);
    let x = &rows.rows.x;
    let threshold = match args.threshold {
        None => None,
        Some(ThresholdArg::At(at)) => Some(model.threshold(positive, at)),
        Some(ThresholdArg::Best(goal)) => Some(model.best_threshold(x, labels, positive, goal)),
    };
    let threshold = threshold.transpose().map_err(failed)?;
    let measures = match (threshold, positive) {
        (Some(threshold), _) => model.measure_at(x, labels, threshold),
        (None, Some(class)) => model.measure_about(x, labels, class),
        (None, None) => model.measure(x, labels),
    };
    let measures = measures.map_err(failed)?;
    let goal = match args.threshold {
        Some(ThresholdArg::Best(goal)) => Some(goal),
        _ => None,
    };
    let text = match args.json {
        true => as_json(&model, &measures, threshold, goal)?,
        false => threshold.map_or(String::new(), |t| said(&model, t, goal)) + &measures.to_string(),
    };
    console::print(&text)
}

/// Classes that are named, of those that the model does not know.
const NAMED: usize = 3;

/// Says which rows can only be wrong.
fn warn_unknown(model: &Model, labels: &[String], console: &Console) {
    let unknown: Vec<&String> =
        labels.iter().filter(|label| !model.classes().contains(*label)).collect();
    let mut classes: Vec<&str> = unknown.iter().map(|label| label.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    if let (count @ 1.., all) = (unknown.len(), labels.len()) {
        let more = if classes.len() > NAMED { ", ..." } else { "" };
        classes.truncate(NAMED);
        let (have, they) =
            if count == 1 { ("row has", "it counts") } else { ("rows have", "they count") };
        console.warn(&format!(
            "{count} of {all} {have} a class that the model does not know ({}{more}): {they} as misclassified, with a probability of almost 0",
            classes.join(", ")
        ));
    }
}

/// What a threshold is, and what it is worth.
fn said(model: &Model, threshold: Threshold, goal: Option<Goal>) -> String {
    let Threshold { class, at } = threshold;
    let [class, other] = [class, 1 - class].map(|class| words::name(&model.classes()[class]));
    let rule =
        format!("{class} is predicted if its probability is at least {at}, otherwise {other}.");
    match goal {
        None => format!("{rule}\n\n"),
        Some(Goal::Cost { .. }) => format!(
            "{rule}\nThe threshold follows from the costs, FP / (FP + FN); it was not chosen on these rows.\n\n"
        ),
        Some(goal) => {
            let name = match goal {
                Goal::F1 => "F1",
                Goal::BalancedError => "balanced error",
                _ => "MCC",
            };
            format!(
                "{rule}\nThis threshold has the best {name} on these rows. It was chosen on them, so the results below are too \
                 good:\nto measure its performance, use --threshold {at} with rows on which it was not chosen.\n\n"
            )
        }
    }
}

fn as_json(
    model: &Model,
    measures: &Measures,
    threshold: Option<Threshold>,
    goal: Option<Goal>,
) -> Result<String, Failure> {
    let mut value = serde_json::to_value(measures).map_err(|e| Failure::Runtime(e.to_string()))?;
    if let (Some(Threshold { class, at }), Value::Object(fields)) = (threshold, &mut value) {
        let on_rows = goal.is_some_and(|goal| !matches!(goal, Goal::Cost { .. }));
        let said = json!({
            "class": model.classes()[class],
            "at": at,
            "chosen_for": goal.map(|goal| goal.to_string()),
            "chosen_on_these_rows": on_rows,
        });
        fields.insert("threshold".to_owned(), said);
    }
    Ok(format!("{value:#}\n"))
}
