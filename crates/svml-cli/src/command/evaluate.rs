//! `svml evaluate`: how well a model does.

use std::fmt::Write;

use svml::Measures;

use crate::args::Evaluate;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;

/// Most classes of a printed confusion matrix.
const LISTED: usize = 20;

/// Runs the command.
pub fn run(args: &Evaluate, console: &Console) -> Outcome {
    let model = files::classifier(&args.rows.model)?;
    let rows = files::rows(&model, &args.rows.data, &args.rows.reading, console)?;
    let labels = files::labels(&rows)?;
    let measures =
        model.measure(&rows.rows.x, labels).map_err(|e| Failure::with_file(&rows.name, e))?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&measures)
            .map(|text| text + "\n")
            .map_err(|e| Failure::Runtime(e.to_string()))?,
        false => as_text(&measures),
    };
    console::print(&text)
}

fn as_text(m: &Measures) -> String {
    let mut text = String::new();
    let wrong: usize = m.rows - (0..m.classes.len()).map(|c| m.confusion[c][c]).sum::<usize>();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "rows            {}", m.rows);
    let _ = writeln!(text, "error           {:.2} % ({wrong} rows)", 100.0 * m.error);
    let _ = writeln!(text, "balanced error  {:.2} %", 100.0 * m.balanced_error);
    if let Some(loss) = m.log_loss {
        let _ = writeln!(text, "log loss        {loss:.4}");
    }
    if m.classes.len() > LISTED {
        let _ = writeln!(text, "\n{} classes: --json has the confusion matrix", m.classes.len());
        return text;
    }
    text.push_str("\nrows of each class (down) predicted as (across)\n");
    let short = |name: &str| name.chars().take(16).collect::<String>();
    let names: Vec<String> = m.classes.iter().map(|name| short(name)).collect();
    let first = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let width = |c: usize| {
        let numbers = m.confusion.iter().map(|row| row[c].to_string().len());
        numbers.max().unwrap_or(0).max(names[c].chars().count())
    };
    let _ = write!(text, "{:first$}", "");
    for (c, name) in names.iter().enumerate() {
        let _ = write!(text, "  {name:>0$}", width(c));
    }
    text.push('\n');
    for (name, row) in names.iter().zip(&m.confusion) {
        let _ = write!(text, "{name:first$}");
        for (c, count) in row.iter().enumerate() {
            let _ = write!(text, "  {count:>0$}", width(c));
        }
        text.push('\n');
    }
    text
}
