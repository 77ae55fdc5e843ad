//! `svml export`: the model for another program.

use svml::Model;
use svml_export::{Input, Output};

use crate::args::{Export, Target};
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::names;
use crate::words;

/// Runs the command.
pub fn run(args: &Export, console: &Console) -> Outcome {
    if args.columns && args.to != Target::Onnx {
        return Err(Failure::Usage(
            "--columns works only with --to onnx; the other formats take rows as described in the exported files".to_owned(),
        ));
    }
    if args.transform && args.to == Target::Libsvm {
        return Err(Failure::Usage(
            "--transform does not work with --to libsvm, whose files hold no map; use svml transform to map rows"
                .to_owned(),
        ));
    }
    let range = files::range_file(&args.output).filter(|_| args.to == Target::Libsvm);
    let range = range.as_deref().map(|range| ("-o", range));
    let written: Vec<_> = [("-o", args.output.as_str())].into_iter().chain(range).collect();
    files::check_apart(&[("MODEL", &args.model)], &written)?;
    written.iter().try_for_each(|(_, name)| files::check_writable(name))?;
    let model = files::model(&args.model)?;
    let input = if args.columns { Input::Columns } else { Input::Features };
    let output = if args.transform { Output::Map } else { Output::Model };
    let bytes = match args.to {
        Target::Onnx => svml_export::onnx(&model, input, output),
        Target::C => svml_export::c(&model, output).map(String::into_bytes),
        Target::Js => svml_export::js(&model, output).map(String::into_bytes),
        Target::Libsvm => return libsvm(args, &model, console),
    };
    let bytes = bytes.map_err(|e| Failure::with_file(&args.model, e))?;
    files::write(&args.output, &bytes)?;
    let texts = args.columns || args.to == Target::Js;
    let mut columns = model.schema().columns().iter();
    if !texts && columns.any(|column| !column.kind.levels().is_empty()) {
        let way_out = match args.to {
            Target::Onnx => "; with --columns it takes strings",
            _ => "",
        };
        console.note(&format!(
            "the model has categories; the exported file takes them as numbers, encoded as the features named in the file{way_out}"
        ));
    }
    Ok(())
}

/// LIBSVM's model and, where its own program can scale rows, the file for that.
fn libsvm(args: &Export, model: &Model, console: &Console) -> Outcome {
    let exported = model.to_libsvm(true).map_err(|e| Failure::with_file(&args.model, e))?;
    words::note_libsvm_labels(model, console);
    if model.classes().len() > 2 {
        console.note(
            "the file has no probabilities: for more than two classes, LIBSVM computes them differently",
        );
    }
    let text = exported.text.as_bytes();
    let mapped = format!(
        "use it with rows from: svml transform {} DATA -o ROWS --output-format libsvm",
        args.model
    );
    let Some(range) = files::range_file(&args.output) else {
        files::write(&args.output, text)?;
        console.note(&mapped);
        return Ok(());
    };
    match exported.range {
        Some(scales) => {
            files::write_all(&[(&range, scales.as_bytes()), (&args.output, text)])?;
            console.note(&format!("{mapped}; or from: svm-scale -r {range} DATA > ROWS"));
        }
        None => {
            files::write(&args.output, text)?;
            let form = model.metric().form();
            console.note(&format!(
                "{mapped}; svm-scale cannot map them, because it knows only one scale per feature and the metric has the form {form}"
            ));
            if names::path(&range).exists() {
                console.note(&format!(
                    "{range} belongs to another model: do not use it with this one"
                ));
            }
        }
    }
    Ok(())
}
