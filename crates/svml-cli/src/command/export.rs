//! `svml export`: the model for another program.

use crate::args::{Export, Target};
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::words;

/// Runs the command.
pub fn run(args: &Export, console: &Console) -> Outcome {
    files::check_writable(&args.output)?;
    let model = files::model(&args.model)?;
    match args.to {
        Target::Libsvm => {
            let exported = model.to_libsvm(true).map_err(|e| Failure::with_file(&args.model, e))?;
            words::note_libsvm_labels(&model, console);
            if model.classes().len() > 2 {
                console.note(
                    "the file has no probabilities: for more than two classes LIBSVM computes them in another way",
                );
            }
            files::write(&args.output, exported.text.as_bytes())?;
            console.note(&format!(
                "use it with rows from: svml transform {} DATA -o ROWS --output-format libsvm",
                args.model
            ));
        }
    }
    Ok(())
}
