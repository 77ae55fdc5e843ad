//! The gates: what is promised, and which program looks whether it is kept.

/// How a gate is looked at.
pub enum How {
    /// By tests that run before every change lands; the files that have them.
    Tests(&'static str),
    /// By a check of this program, whose last run is printed; the names of its records.
    Checks(&'static [&'static str]),
    /// By both.
    Both(&'static str, &'static [&'static str]),
    /// Not at all as yet, and why.
    NotYet(&'static str),
}

/// One promise.
pub struct Gate {
    /// What is done.
    pub title: &'static str,
    /// What must come of it.
    pub asks: &'static str,
    /// How it is looked at.
    pub how: How,
}

/// All of them, in the order of the page.
pub const GATES: &[Gate] = &[
    Gate {
        title: "Gradients against central differences",
        asks: "relative error at most 1e-6 for every form, C and weights",
        how: How::Tests("crates/svml/tests/gradients.rs"),
    },
    Gate {
        title: "Memory that ends, and limits on it",
        asks: "a result or an error with exit code 1, never an abort or a kill; at most 15 % more than was said before the fit",
        how: How::Both("python/tests/test_memory.py", &["memory"]),
    },
    Gate {
        title: "A fit with a checkpoint, killed",
        asks: "it goes on, and the model has the bytes of an undisturbed fit, after 100 kills -9 at random moments and after a kill in the middle of any record",
        how: How::Both("crates/svml/tests/checkpoint.rs", &["resume"]),
    },
    Gate {
        title: "Any bytes to every reader",
        asks: "tables, LIBSVM files, arrays of numpy, new rows, model files of all versions and all that is made of them, parameters and arguments: no panic, no hang beyond 1 s + 1 s/MB, memory at most 64 MB + 4 x input",
        how: How::Both(
            "crates/svml/tests/reading_any_input.rs, model_files_hostile.rs",
            &[
                "fuzz csv",
                "fuzz libsvm",
                "fuzz npy",
                "fuzz rows",
                "fuzz model",
                "fuzz uses",
                "fuzz export",
                "fuzz parameters",
                "fuzz arguments",
            ],
        ),
    },
    Gate {
        title: "Hostile headers, files cut at every byte, lines of a million characters",
        asks: "a clear error that names the line or the field in all cases",
        how: How::Tests(
            "crates/svml/tests/reading_any_input.rs, model_files.rs, model_files_hostile.rs; crates/svml-cli/tests/tables.rs",
        ),
    },
    Gate {
        title: "The network and the computer",
        asks: "no socket but for `svml data fetch`; no path, account or host in what is written; no file by a name in data",
        how: How::Tests("crates/svml-cli/tests/security.rs"),
    },
    Gate {
        title: "Downloads",
        asks: "nothing is kept whose sha256 or certificate is wrong; cut off ones continue, endless ones end",
        how: How::Tests("crates/svml-cli/tests/fetch.rs"),
    },
    Gate {
        title: "A release at any time",
        asks: "one version everywhere; all crates pack, with licences, and build from what is packed; workflows without faults",
        how: How::Tests("crates/svml/tests/documents.rs, release/check"),
    },
    Gate {
        title: "Kills (SIGKILL) at random moments",
        asks: "every file is the old one or a whole new one, the next run works, nothing is left behind for longer than until the first write a minute later",
        how: How::Checks(&["kills"]),
    },
    Gate {
        title: "Writes that fail: full disk, I/O error, permission, read-only, rename refused, closed pipes, clock jumps",
        asks: "the old file intact or the whole new one, no temporary file, exit code and message right, for each operation of each command that writes",
        how: How::Both("crates/svml-cli/tests/faults.rs, crates/svml/src/files.rs", &["writes"]),
    },
];
