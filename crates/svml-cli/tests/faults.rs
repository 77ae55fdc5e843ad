//! Nothing is lost: every file operation of every command that writes fails once.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, missing_docs)]

mod injection;

use std::path::Path;

use injection::{CASES, Came, FAULTS, Injection};

#[test]
fn whatever_fails_the_old_file_or_all_of_the_new_is_there() {
    let (folder, shim) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let program = Path::new(env!("CARGO_BIN_EXE_svml"));
    let shim = shim.path().join("faults.so");
    let Some(injection) = Injection::new(program, folder.path(), &shim).unwrap() else {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: there is no C compiler");
        }
        return;
    };
    let mut wrong = Vec::new();
    for (i, case) in CASES.iter().enumerate() {
        let prepared = injection.prepare(case).unwrap();
        let mut refused = 0;
        // Each operation with one of the faults, another in each case; the study's check `writes` takes all of them.
        for at in 1..=prepared.operations.len() {
            let fault = FAULTS[(at + i) % FAULTS.len()];
            match injection.fail(&prepared, at, fault, at % 2 == 0) {
                Ok(came) => refused += usize::from(came == Came::Refused),
                Err(what) => wrong.push(what),
            }
        }
        assert!(refused >= 5, "{:?}: {refused} faults were seen", case.arguments);
    }
    assert!(wrong.is_empty(), "{} faults\n{}", wrong.len(), wrong.join("\n"));
}
