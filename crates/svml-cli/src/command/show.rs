//! `svml show`: what a model has learned.

use crate::args::Show;
use crate::console;
use crate::failure::Outcome;
use crate::files;
use crate::words;

/// Runs the command.
pub fn run(args: &Show) -> Outcome {
    let model = files::model(&args.model)?;
    let text = match args.json {
        true => format!("{:#}\n", words::as_json(&model)),
        false => words::details(&model, &args.model, args.features),
    };
    console::print(&text)
}
