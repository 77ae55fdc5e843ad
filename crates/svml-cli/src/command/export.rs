//! `svml export`: the model for another program.

use crate::args::{Export, Target};
use crate::command::transform::say_labels;
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::files;

/// Runs the command.
pub fn run(args: &Export, console: &Console) -> Outcome {
    files::check_writable(&args.output)?;
    let model = files::model(&args.model)?;
    model.check_machine().map_err(|error| Failure::with_file(&args.model, error))?;
    match args.to {
        Target::Libsvm => {
            say_labels(&model, console);
            if model.classes().len() > 2 {
                console.note(
                    "without probabilities: for more than two classes LIBSVM computes them in another way",
                );
            }
            files::write(&args.output, model.to_libsvm(true).text.as_bytes())?;
            console.note(&format!(
                "use it with rows of: svml transform {} DATA -o ROWS --output-format libsvm",
                args.model
            ));
        }
    }
    Ok(())
}
