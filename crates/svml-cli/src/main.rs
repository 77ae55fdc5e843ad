//! The command `svml`; see the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    svml_cli::run(std::env::args_os())
}
