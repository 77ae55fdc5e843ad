//! `svml report`: one page about a model and how it does.

use std::path::Path;

use crate::args::Report;
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files;

/// Runs the command.
pub fn run(args: &Report, console: &Console) -> Outcome {
    let read = [("MODEL", args.rows.model.as_str()), ("DATA", &args.rows.data)];
    files::check_apart(&read, &[("-o", &args.output)])?;
    files::check_writable(&args.output)?;
    let model = files::classifier_on(&args.rows.model, args.computing.device)?;
    let rows = files::checked_rows(&model, &args.rows, &[], console)?;
    let labels = files::labels(&rows)?;
    // The page goes to other people: names of files, but not the folders that they are in.
    let name = |path: &str| -> String {
        Path::new(path).file_name().map_or(path.into(), |name| name.to_string_lossy().into_owned())
    };
    let title = args.title.clone();
    let title = title.unwrap_or_else(|| {
        format!("Performance of {} on {}", name(&args.rows.model), name(&rows.name))
    });
    let page = svml_report::page(&model, &rows.rows.x, labels, &title)
        .map_err(|e| Failure::of_model(&args.rows.model, &rows.name, e))?;
    files::write(&args.output, page.as_bytes())?;
    console.note(&format!("the report is in {}; open it in a browser", args.output));
    Ok(())
}
