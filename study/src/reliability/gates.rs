//! The gates: what is promised, and which program looks whether it is kept.

/// How a gate is looked at.
pub enum How {
    /// By tests that run before every change lands; the files that have them.
    Tests(&'static str),
    /// By a check of this program, whose last run is printed; the names of its records.
    Checks(&'static [&'static str]),
    /// By both.
    Both(&'static str, &'static [&'static str]),
    /// By a target of the Makefile, whose record has the target's name.
    Made(&'static [&'static str]),
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
        asks: "relative error at most 1e-6 on 500 random problems of each kernel and criterion, in every form and in C, half of them with weights; if the loss has a kink, another problem is drawn",
        how: How::Tests("crates/svml/tests/gradients.rs"),
    },
    Gate {
        title: "Optimality of the SVMs",
        asks: "optimality conditions to 1e-8, and decisions within 1e-8 of those of an independent solver of the dual, on 500 random problems",
        how: How::Tests("crates/svml/tests/oracles.rs"),
    },
    Gate {
        title: "LIBSVM on the same kernel matrix",
        asks: "decisions within 1e-3 of their scale and with the same signs, on ten random problems with stored results of LIBSVM -t 4",
        how: How::Tests("crates/svml/tests/oracles.rs"),
    },
    Gate {
        title: "Export to LIBSVM, read by its svm-predict",
        asks: "the same labels on all of 60,000 rows of two classes, and of more classes except where votes tie; values within 1e-14 of the sum of the absolute coefficients",
        how: How::Tests("crates/svml-cli/tests/libsvm.rs"),
    },
    Gate {
        title: "ONNX, C and JavaScript",
        asks: "the same labels as the library, and the same decisions and probabilities to 1e-9, in onnxruntime, with a C compiler and in Node",
        how: How::Tests("python/tests/test_export.py, crates/svml-export/tests/programs.rs"),
    },
    Gate {
        title: "Save and load",
        asks: "the same bits; files of all earlier versions can be read",
        how: How::Tests("crates/svml/tests/model_files.rs"),
    },
    Gate {
        title: "Arbitrary bytes to every reader",
        asks: "tables, LIBSVM files, NumPy arrays, new rows, model files of all versions and everything made from them, parameters and arguments: no panic, no hang beyond 1 s + 1 s/MB, memory at most 64 MB + 4 x input",
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
        title: "Threads, row orders, repetitions, instruction sets, builds",
        asks: "the same model bytes for 1 to 64 threads, the same decision bits for any row order; otherwise decisions of one model within 1e-9 and 99.99 % of the labels",
        how: How::Both(
            "crates/svml/tests/invariants.rs, landmarks.rs; crates/svml-cli/tests/instructions.rs",
            &["determinism"],
        ),
    },
    Gate {
        title: "Kills (SIGKILL) at random moments",
        asks: "every file is either the old one or a complete new one, the next run works, and no temporary file remains after the first write a minute later",
        how: How::Checks(&["kills"]),
    },
    Gate {
        title: "A fit or a comparison with a checkpoint, killed",
        asks: "it resumes, and the model has the same bytes as after an undisturbed fit, after 100 kills (SIGKILL) at random moments and after a kill in the middle of any record",
        how: How::Both("crates/svml/tests/checkpoint.rs", &["resume"]),
    },
    Gate {
        title: "Failing writes: full disk, I/O error, permission, read-only, refused rename, closed pipes, clock jumps",
        asks: "the old file intact or the complete new one, no temporary file, correct exit code and message, for each write operation of each command",
        how: How::Both("crates/svml-cli/tests/faults.rs, crates/svml/src/files.rs", &["writes"]),
    },
    Gate {
        title: "Running out of memory, and memory limits",
        asks: "a result or an error with exit code 1, never an abort or a kill; at most 15 % more than announced before the fit",
        how: How::Both("python/tests/test_memory.py", &["memory"]),
    },
    Gate {
        title: "Interrupts",
        asks: "99 of 100 reactions within 200 ms at 500, 5,000 and 100,000 rows, and the result that is left is usable",
        how: How::Both(
            "crates/svml-cli/tests/streams.rs, crates/svml/tests/fit_control.rs",
            &["interrupts"],
        ),
    },
    Gate {
        title: "Degenerate data",
        asks: "a result or an error, never NaN or infinity",
        how: How::Tests("crates/svml/tests/degenerate.rs"),
    },
    Gate {
        title: "Invariances",
        asks: "for the same folds and after a few steps: units, origins and orders of columns, and swapped classes; in general: class names in the same order, rotations of the mapped rows, weights as repetitions inside an SVM or of copies of one observation, one row or many; all to 1e-8, bit for bit where that is promised",
        how: How::Tests("crates/svml/tests/invariants.rs, weights.rs, copies.rs"),
    },
    Gate {
        title: "scikit-learn's check_estimator",
        asks: "no failure and no exemption, with the oldest and the newest supported version",
        how: How::Tests("python/tests/test_conventions.py"),
    },
    Gate {
        title: "Long use",
        asks: "10,000 fits and 1,000,000 predictions in one process: memory grows by less than 1 %, and no open file or thread is left",
        how: How::Checks(&["soak"]),
    },
    Gate {
        title: "Fits in 32 threads, in forked and spawned processes",
        asks: "the same results as when run one after the other",
        how: How::Tests("python/tests/test_parallel.py"),
    },
    Gate {
        title: "The network and the computer",
        asks: "no socket except for `svml data fetch`; no path, account or host name in any output; no file opened by a name found in data",
        how: How::Tests("crates/svml-cli/tests/security.rs"),
    },
    Gate {
        title: "Downloads",
        asks: "nothing is kept if its sha256 or certificate is wrong; interrupted downloads resume, endless ones are stopped",
        how: How::Tests("crates/svml-cli/tests/fetch.rs"),
    },
    Gate {
        title: "A release at any time",
        asks: "one version everywhere; all crates can be packaged, with licences; workflows without errors",
        how: How::Tests("crates/svml/tests/documents.rs, release/check"),
    },
    Gate {
        title: "The paper's numbers",
        asks: "in every run that has the data files, errors on cmc and mammo within two combined standard errors of those of an independent program; for all data sets and methods, `study paper` compares each cell with the paper's and gives a possible reason where they differ: [study.md](study.md)",
        how: How::Tests("crates/svml/tests/reproduction.rs"),
    },
    Gate {
        title: "Coverage and mutants",
        asks: "95 % of lines and 90 % of branches of the library, with linalg/ only by its own tests, and without the GPU code, whose tests need a GPU; 85 % of mutants of solver, gradients, parsers and model file killed",
        how: How::Made(&["coverage", "mutants"]),
    },
    Gate {
        title: "Miri and sanitizers",
        asks: "no finding in the unsafe code of the library outside cuda/ (the choice of instruction sets in linalg/), nor in the threads that use it",
        how: How::Made(&["miri", "sanitizers"]),
    },
    Gate {
        title: "Arbitrary bytes, guided by coverage",
        asks: "no panic, no hang beyond 10 s, no broken promise, at most 2 GB of memory",
        how: How::Made(&["fuzz"]),
    },
    Gate {
        title: "Dependencies",
        asks: "licences that require no more than their text, sources only from the registry, no known vulnerability where the list of these can be fetched; a list of dependencies (SBOM)",
        how: How::Made(&["supply"]),
    },
    Gate {
        title: "Speed from release to release",
        asks: "no slowdown beyond 5 % in twelve timed cases",
        how: How::Checks(&["speed"]),
    },
    Gate {
        title: "The first build",
        asks: "at most two minutes on two cores from a fresh clone, with downloads, to the end of the demo",
        how: How::Made(&["build"]),
    },
    Gate {
        title: "The reported error",
        asks: "within two standard errors of that on new rows or above it, pooled over twenty tables of each setting of a kind, and within four for each setting: labels by coin with 2 to 256 distinct rows and with real numbers, 300 to 2,000 rows, weights of 2, 2.0001 and 1 to 3, tables written twice, classes oversampled, signal in 256 cells; at most 0.03 below with 100 rows; log loss of new rows without signal at most 0.71",
        how: How::Tests("crates/svml/tests/repeats.rs (every run a part of it), honesty.rs"),
    },
];

/// What falls short of what was aimed at without failing a gate.
pub const SHORT: &[&str] = &[
    "Each entry names the commit that it ran on, which may be older than this page; tests of the same promises run with every change.",
    "Fuzzing: the goal was 24 CPU hours for each target. The last runs took minutes; `study reliability fuzz --minutes N` and `make fuzz MINUTES=N` run for longer.",
    "Known vulnerabilities of dependencies were checked by hand (SECURITY.md); `make supply` checks them where the list can be fetched.",
    "aarch64, macOS and Windows: there are workflows that build and test on them, but none has run yet; determinism on aarch64 (`--aarch64`) has not been tested.",
    "Determinism: without fused multiply-add, learning with landmarks or for many steps can end in another model, which is equally good; decisions of one and the same model stay within the bound.",
    "Memory: what is large, or grows with rows or columns, is counted before it is requested. If memory ends while something small is requested, Rust ends the program: the command still prints a message and exits with code 1, but in Python the interpreter ends.",
    "Memory: the estimate printed before a fit is an upper bound, up to 28 % above what was used.",
];
