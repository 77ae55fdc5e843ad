//! `svml report`: one page about a model and how it does.

use crate::args::Report;
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files;

/// Runs the command.
pub fn run(args: &Report, console: &Console) -> Outcome {
    files::check_writable(&args.output)?;
    let model = files::classifier(&args.rows.model)?;
    let rows = files::checked_rows(&model, &args.rows, &[], console)?;
    let labels = files::labels(&rows)?;
    let title = args.title.clone();
    let title = title.unwrap_or_else(|| format!("How {} does on {}", args.rows.model, rows.name));
    let page = svml_report::page(&model, &rows.rows.x, labels, &title)
        .map_err(|e| Failure::with_file(&rows.name, e))?;
    files::write(&args.output, page.as_bytes())?;
    console.note(&format!("the page is in {}; open it in a browser", args.output));
    Ok(())
}
