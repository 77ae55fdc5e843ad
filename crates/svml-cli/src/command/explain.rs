//! `svml explain`: why rows are classified as they are.

use std::fmt::Write;

use serde_json::{Value, json};
use svml::{Alike, Explanation, Matrix, Model};
use svml_plot::{Draw, Waterfall};

use crate::args::Explain;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::words::{self, cell, percent};

/// Longest bar of the printed table, in signs, and widest name and value.
const BAR: f64 = 24.0;
const NAME: usize = 28;
const VALUE: usize = 16;

/// Runs the command.
pub fn run(args: &Explain, console: &Console) -> Outcome {
    // Anything but a picture is text.
    let picture = files::is_png(&args.output).ok();
    if picture.is_some() && args.row.is_none() {
        return Err(Failure::Usage(format!(
            "-o {}: a plot shows a single row; choose it with --row N",
            args.output
        )));
    }
    let read = [("MODEL", args.rows.model.as_str()), ("DATA", &args.rows.data)];
    files::check_apart(&read, &[("-o", &args.output)])?;
    files::check_writable(&args.output)?;
    let model = files::classifier(&args.rows.model)?;
    let rows = files::checked_rows(&model, &args.rows, &[], console)?;
    let (x, failed) = (&rows.rows.x, |e| Failure::of_model(&args.rows.model, &rows.name, e));
    let row_of = |name: &str, number: usize| match number {
        1.. if number <= x.rows() => Ok(x.row(number - 1).to_vec()),
        _ => Err(Failure::Usage(format!(
            "{name} {number}: there is no such row; {} has rows 1 to {}",
            rows.name,
            x.rows()
        ))),
    };
    let reference = args.reference.map(|number| row_of("--reference", number)).transpose()?;
    let Some(number) = args.row else {
        let why = model.explain(x, reference.as_deref()).map_err(failed)?;
        let text = match args.json {
            true => format!("{:#}\n", json!({ "rows": all_as_json(&model, &why) })),
            false => table(&model, &why),
        };
        return files::write(&args.output, text.as_bytes());
    };
    let row = row_of("--row", number)?;
    let x = Matrix::from_rows(&[&row]).map_err(failed)?;
    let why = model.explain(&x, reference.as_deref()).map_err(failed)?;
    let figure = Waterfall::of(&model, &x, &why, 0, args.columns);
    if let Some(png) = picture {
        let title = format!("Row {number} of {}", rows.name);
        files::write_picture(&figure.draw(&title), png, &args.output)?;
        console.note(&format!("the plot is in {}", args.output));
        return Ok(());
    }
    let alike = match model.keeps_rows() {
        true => model.alike(&x, args.alike).map_err(failed)?.pop(),
        false => None,
    };
    let text = match args.json {
        true => {
            let mut value = all_as_json(&model, &why).pop().unwrap_or_default();
            value["alike"] = alike.map_or(Value::Null, |alike| alike_as_json(&model, &alike));
            format!("{value:#}\n")
        }
        false => {
            let probability = model.probabilities(&x).map_err(failed)?;
            let page = Page { model: &model, number, reference: args.reference };
            page.text(&figure, &probability, alike.as_deref())
        }
    };
    match args.output.as_str() {
        "-" => console::print(&text),
        file => files::write(file, text.as_bytes()),
    }
}

/// One line for each row: the class, what it was compared with, both outputs, and the contributions.
fn table(model: &Model, why: &Explanation) -> String {
    let mut header = vec![model.schema().target().name.clone()];
    header.extend(["against", "decision", "reference"].map(str::to_owned));
    header.extend(why.columns.iter().cloned());
    let header: Vec<String> = header.iter().map(|name| cell(name)).collect();
    let mut text = header.join(",") + "\n";
    for (row, output) in why.output.iter().enumerate() {
        let [first, second] = why.between[row].map(|class| cell(&model.classes()[class]));
        // Writing to a string cannot fail.
        let _ = write!(text, "{second},{first},{output},{}", why.base[row]);
        for value in why.contributions.row(row) {
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    }
    text
}

fn all_as_json(model: &Model, why: &Explanation) -> Vec<Value> {
    let of_row = |(row, output): (usize, &f64)| {
        let [against, class] = why.between[row].map(|class| &model.classes()[class]);
        let named = why.columns.iter().cloned().zip(why.contributions.row(row).iter());
        let contributions: serde_json::Map<String, Value> =
            named.map(|(name, value)| (name, json!(value))).collect();
        json!({
            "class": class,
            "against": against,
            "decision": output,
            "reference": why.base[row],
            "contributions": contributions,
        })
    };
    why.output.iter().enumerate().map(of_row).collect()
}

fn alike_as_json(model: &Model, alike: &[Alike]) -> Value {
    let rows = alike.iter().map(|alike| {
        json!({
            "row": alike.row + 1,
            "class": model.classes()[alike.class],
            "distance": alike.distance,
            "pull": alike.pull,
        })
    });
    Value::Array(rows.collect())
}

/// One row in words.
struct Page<'a> {
    model: &'a Model,
    number: usize,
    reference: Option<usize>,
}

impl Page<'_> {
    fn text(&self, figure: &Waterfall, probability: &Matrix, alike: Option<&[Alike]>) -> String {
        let model = self.model;
        let side = |output: f64| usize::from(output > 0.0);
        let decided = &figure.between[side(figure.output)];
        let place = model.classes().iter().position(|class| class == decided);
        let names = [0, 1].map(|side| words::name(&figure.between[side]));
        let [first, second] = &names;
        let decided = &names[side(figure.output)];
        let sure = place.map_or(0.0, |class| probability[(0, class)]);
        let reference = match self.reference {
            Some(number) => format!("row {number}"),
            None => "the mean of the training rows".to_owned(),
        };
        let mut text = format!(
            "Row {}: {decided}, with probability {}.\n\
             Compared with {reference} (decision value {:+.3}, {}), this row has the decision value {:+.3}.\n\
             Positive contributions favour {second}, negative ones {first}.\n\n",
            self.number,
            percent(sure),
            figure.base,
            names[side(figure.base)],
            figure.output,
        );
        let short = |text: &str, most: usize| match text.chars().count() > most {
            true => {
                words::name(&text.chars().take(most - 3).chain("...".chars()).collect::<String>())
            }
            false => words::name(text),
        };
        let mut lines: Vec<(String, String, f64)> = (figure.columns.iter().zip(&figure.values))
            .zip(&figure.contributions)
            .map(|((name, value), c)| (short(name, NAME), short(value, VALUE), *c))
            .collect();
        match figure.others {
            0 => {}
            1 => lines.push(("1 other column".to_owned(), String::new(), figure.rest)),
            n => lines.push((format!("{n} other columns"), String::new(), figure.rest)),
        }
        let width =
            |texts: Vec<&String>| texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
        let names = width(lines.iter().map(|line| &line.0).collect()).max("reference".len());
        let values = width(lines.iter().map(|line| &line.1).collect());
        let largest = lines.iter().map(|line| line.2.abs()).fold(f64::MIN_POSITIVE, f64::max);
        let _ = writeln!(text, "  {:names$}  {:values$}  {:+8.3}", "reference", "", figure.base);
        for (name, value, contribution) in &lines {
            let bar = "#".repeat((contribution.abs() / largest * BAR).round() as usize);
            let line = format!("  {name:names$}  {value:>values$}  {contribution:+8.3}  {bar}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let _ = writeln!(text, "  {:names$}  {:values$}  {:+8.3}", "this row", "", figure.output);
        match alike {
            None => text.push_str(
                "\nThe model does not keep its training rows; train with --keep-rows to see the most similar ones.\n",
            ),
            Some(alike) => text.push_str(&self.neighbours(alike, second)),
        }
        text
    }

    fn neighbours(&self, alike: &[Alike], second: &str) -> String {
        let class = |alike: &Alike| words::name(&self.model.classes()[alike.class]);
        let classes: Vec<String> = alike.iter().map(class).collect();
        let widest = classes.iter().map(|class| class.chars().count()).max().unwrap_or(0).max(5);
        let mut text = format!(
            "\nMost similar training rows in the learned metric, and their pull on the decision value (positive: towards {second}):\n\
             {:>8}  {:widest$}  {:>9}  {:>8}\n",
            "row", "class", "distance", "pull"
        );
        for (alike, class) in alike.iter().zip(classes) {
            let pull = match alike.pull {
                0.0 => "none".to_owned(),
                pull => format!("{pull:+.3}"),
            };
            let (row, distance) = (alike.row + 1, words::digits(alike.distance));
            let _ = writeln!(text, "{row:>8}  {class:widest$}  {distance:>9}  {pull:>8}");
        }
        text
    }
}
