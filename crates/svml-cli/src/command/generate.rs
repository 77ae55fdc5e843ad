//! Completions and manual pages, made from the declaration of the arguments.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::console;
use crate::failure::{Failure, Outcome};
use crate::files;

/// Prints completions.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "svml", &mut out);
    console::print_bytes(&out)
}

/// Prints the main page, or writes all pages into a folder.
pub fn man(folder: Option<&Path>) -> Outcome {
    let command = Cli::command().disable_help_subcommand(true);
    let Some(folder) = folder else {
        let mut out = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut out)
            .map_err(|e| Failure::Runtime(format!("the manual pages cannot be generated: {e}")))?;
        return console::print_bytes(&out);
    };
    let failed = |e: std::io::Error| Failure::io(folder, &e, "choose another folder with --dir");
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut command = command;
    command.build();
    pages(&command, folder)
}

/// Writes the pages of a command and of all that it has.
fn pages(command: &clap::Command, folder: &Path) -> Outcome {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        pages(command, folder)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)
        .map_err(|e| Failure::Runtime(format!("the manual pages cannot be generated: {e}")))?;
    files::write(&folder.join(page.get_filename()).to_string_lossy(), &text)
}
