//! The command `svml`; see the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    svml_cli::run(std::env::args_os())
}

/// Before `main` begins, Rust opens /dev/null in place of a standard output that is closed, and results would vanish without a
/// word. So it is looked at earlier, by a function that the system calls when it has loaded the program.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        svml_cli::look_at_standard_output();
    }
    look
};
