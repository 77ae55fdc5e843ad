//! `svml transform`: rows mapped by the learned metric.

use std::fmt::Write;

use svml::Model;
use svml::data::Format;
use svml::internals::libsvm_rows;

use crate::args::Transform;
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files::{self, Rows};
use crate::words::{self, cell};

/// Runs the command.
pub fn run(args: &Transform, console: &Console) -> Outcome {
    let read = [("MODEL", args.rows.model.as_str()), ("DATA", &args.rows.data)];
    files::check_apart(&read, &[("-o", &args.output)])?;
    files::check_writable(&args.output)?;
    let model = files::model(&args.rows.model)?;
    let rows = files::checked_rows(&model, &args.rows, &[], console)?;
    let z = model.transform(&rows.rows.x).map_err(|e| Failure::with_file(&rows.name, e))?;
    let text = match args.output_format {
        Format::Libsvm => {
            words::note_libsvm_labels(&model, console);
            libsvm_rows(&z, libsvm_labels(&model, &rows).iter().map(String::as_str))
        }
        _ => {
            let mut header: Vec<String> = (1..=z.cols()).map(|k| format!("z{k}")).collect();
            header.extend(rows.rows.labels.as_ref().map(|_| cell(&model.schema().target().name)));
            let mut text = header.join(",") + "\n";
            for (row, z) in z.iter_rows().enumerate() {
                let mut cells: Vec<String> = z.iter().map(f64::to_string).collect();
                cells.extend(rows.rows.labels.as_ref().map(|labels| cell(&labels[row])));
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{}", cells.join(","));
            }
            text
        }
    };
    files::write(&args.output, text.as_bytes())
}

/// The label of each row as LIBSVM can hold it. Rows without a class, or of one that the model does not
/// know, get a number that is no class.
fn libsvm_labels(model: &Model, rows: &Rows) -> Vec<String> {
    let (numbers, own) = model.libsvm_labels();
    let unknown = numbers.iter().min().map_or(-1, |least| i64::from(*least) - 1);
    let number = |label: &String| {
        let place = model.classes().iter().position(|class| class == label);
        match place {
            Some(class) => numbers[class].to_string(),
            None if own && label.parse::<i32>().is_ok() => label.clone(),
            None => unknown.to_string(),
        }
    };
    match &rows.rows.labels {
        Some(labels) => labels.iter().map(number).collect(),
        None => vec![unknown.to_string(); rows.rows.x.rows()],
    }
}
