//! What goes wrong: exit codes, one sentence with the way out, and nothing lost.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use sandbox::{Run, Sandbox, generated};

/// An error is one line that begins with the name of the program.
#[track_caller]
fn one_sentence(run: &Run, parts: &[&str]) {
    let errors: Vec<&str> = run.err.lines().filter(|line| line.starts_with("svml: ")).collect();
    assert_eq!(errors.len(), 1, "{}", run.err);
    for part in parts {
        assert!(errors[0].contains(part), "'{part}' is not in: {}", errors[0]);
    }
}

#[test]
fn wrong_usage_is_2() {
    let sandbox = Sandbox::with_model();
    for args in [
        &["no-such-command"][..],
        &["train", "train.csv"],
        &["train", "train.csv", "-o", "x", "--form", "cube"],
        &["train", "train.csv", "-o", "x", "--method", "magic"],
        &["train", "train.csv", "-o", "x", "--time-limit", "-1"],
        &["compare", "train.csv", "--splits", "1"],
        &["plot", "m.svml", "train.csv", "-o", "picture.gif"],
        &["plot", "m.svml", "-o", "map.svg"],
        &["export", "m.svml", "--to", "pmml"],
        &["data", "fetch", "iris"],
        &["train", "train.csv", "-o", "x", "--threads", "0"],
        &["train", "train.csv", "-o", "x", "--form", "rank=99"],
        &["train", "train.csv", "-o", "x", "--set", "lambda=0"],
        &["train", "train.csv", "-o", "x", "--set", "lambda"],
        &["train", "train.csv", "-o", "x", "--memory-limit", "much"],
        &["train", "train.csv", "-o", "x", "--landmarks", "0"],
        &["train", "train.csv", "-o", "x", "--landmarks", "50", "--exact"],
        &["compare", "train.csv", "--landmarks", "50", "--exact"],
        &["train", "train.csv", "-o", "x", "--method", "knn:k=0"],
        &["train", "train.csv", "-o", ""],
        &["predict", "m.svml", "train.csv", "-o", ""],
        &["train", "train.csv", "-o", "x", "--trace", ""],
        &["train", "train.csv", "-o", "x", "--checkpoint", ""],
        &["train", "train.csv", "-o", "x", "--checkpoint", "-"],
        &["compare", "train.csv", "--checkpoint", "-"],
        &["svm-train"],
        &["svm-train", "-s", "1", "train.csv"],
    ] {
        let run = sandbox.svml(args).code(2);
        assert_eq!(run.out, "", "{args:?}");
        assert!(!run.err.is_empty(), "{args:?}");
    }
    let run = sandbox.svml(&["train", "train.csv", "-o", "x", "--form", "cube"]);
    assert!(run.err.contains("sphere, diagonal, full or rank=R"), "{}", run.err);
    let run = sandbox.svml(&["train", "train.csv", "-o", "x", "--landmarks", "0"]);
    assert!(run.err.contains("'0'") && run.err.contains("a number of at least 1"), "{}", run.err);
    let run = sandbox.svml(&["train", "train.csv", "-o", "x", "--landmarks", "50", "--exact"]);
    assert!(run.err.contains("--landmarks") && run.err.contains("--exact"), "{}", run.err);
    assert!(!sandbox.path("x").exists());
}

/// A class that the model cannot name is wrong whatever it says; who reads the error must know.
#[test]
fn evaluate_names_classes_that_the_model_does_not_know() {
    let sandbox = Sandbox::new();
    let rows: String =
        (0..40).map(|i| format!("{},{},{}\n", i * 7 % 11, i * 5 % 13, i % 2)).collect();
    sandbox.write("t.csv", &rows);
    sandbox.svml(&["train", "t.csv", "-o", "m", "--form", "sphere"]).code(0);
    assert!(!sandbox.svml(&["evaluate", "m", "t.csv"]).code(0).err.contains("does not know"));
    sandbox.write("e.csv", &format!("{rows}1,2,7\n3,4,7\n"));
    let run = sandbox.svml(&["evaluate", "m", "e.csv"]).code(0);
    let words = "2 of 42 rows have a class that the model does not know (7)";
    assert!(run.err.contains(words), "{}", run.err);
}

/// A limit beyond what a clock counts is no limit.
#[test]
fn any_time_limit_is_taken() {
    let sandbox = Sandbox::with_model();
    for seconds in ["2e19", "1e300"] {
        let args = ["train", "train.csv", "-o", "x", "--form", "sphere", "--time-limit", seconds];
        sandbox.svml(&args).code(0);
    }
}

/// Whatever the columns: one that says something, in one line, and no matrix of their square.
#[test]
fn very_many_columns_are_no_matter() {
    let sandbox = Sandbox::new();
    let rows = (0..40).map(|i| format!("{} {}:{} 20000:1\n", i % 2, i % 3 + 1, i));
    sandbox.write("wide.libsvm", &rows.collect::<String>());
    let run =
        sandbox.svml(&["train", "wide.libsvm", "-o", "wide.svml", "--form", "diagonal"]).code(0);
    let constant = "warning: 19997 columns are constant and were left out: ";
    assert_eq!(run.err.matches("constant").count(), 1, "{}", run.err);
    assert!(run.err.contains(constant), "{}", run.err);
    sandbox.svml(&["show", "wide.svml"]).code(0);
    sandbox.svml(&["plot", "wide.svml", "--kind", "metric", "-o", "metric.svg"]).code(0);
    let full = ["train", "wide.libsvm", "-o", "x", "--form", "full"];
    one_sentence(&sandbox.svml(&full).code(1), &["form full on 20000 columns", "--form diagonal"]);
}

/// Where the system gives no more memory, that is an error as others are: nothing is aborted.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_ends_is_1() {
    let sandbox = Sandbox::new();
    let rows =
        (0..3000).map(|i| format!("{},{},{}\n", i * 37 % 101, i * 53 % 103, i * 29 % 31 / 16));
    sandbox.write("t.csv", &rows.collect::<String>());
    for options in ["--form sphere", "--form sphere --memory-limit 100GB", "--method euclidean"] {
        let run = with_memory(&sandbox, 150, &format!("train t.csv -o m.svml {options}"));
        let text = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(1), "{options}: {text}");
        assert!(text.contains("memory"), "{options}: {text}");
    }
}

/// The command in two threads where the process may have so many megabytes of addresses.
#[cfg(target_os = "linux")]
fn with_memory(sandbox: &Sandbox, megabytes: usize, arguments: &str) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_svml");
    let line = format!("ulimit -v {megabytes}000; exec '{program}' {arguments} --threads 2");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &line]).current_dir(sandbox.path("")).output().unwrap()
}

/// Whatever the limit, also where memory runs out for something small that is not counted beforehand: a result, or exit code 1
/// and a message of ours.
#[cfg(target_os = "linux")]
#[test]
fn no_limit_on_memory_is_a_crash() {
    let sandbox = Sandbox::new();
    let names: String = (0..60_000).map(|k| format!("x{k},")).collect();
    let cells = |i: usize| (0..60_000).map(move |k| format!("{},", (i * k) % 17));
    let rows: String =
        (0..6).map(|i| format!("{}{}\n", cells(i).collect::<String>(), i % 2)).collect();
    sandbox.write("wide.csv", &format!("{names}class\n{rows}"));
    sandbox.svml(&["train", "wide.csv", "-o", "wide.svml"]).code(0);
    let mut codes = std::collections::BTreeMap::new();
    for megabytes in (20..=600).step_by(20) {
        let run = with_memory(&sandbox, megabytes, "predict wide.svml wide.csv");
        let text = String::from_utf8_lossy(&run.stderr);
        assert!(matches!(run.status.code(), Some(0 | 1)), "{megabytes}: {:?} {text}", run.status);
        assert!(run.status.success() || text.contains("svml: "), "{megabytes}: {text}");
        *codes.entry(run.status.code()).or_insert(0) += 1;
    }
    assert_eq!(codes.len(), 2, "{codes:?}");
    // A model is read by one thread. All that its size calls for is counted beforehand, so that no allocation fails.
    for megabytes in (24..=280).step_by(4) {
        let run = with_memory(&sandbox, megabytes, "show wide.svml");
        let text = String::from_utf8_lossy(&run.stderr);
        assert!(!text.contains("memory allocation of"), "{megabytes}: {text}");
    }
}

#[test]
fn an_option_that_the_method_does_not_have_is_2_and_names_both() {
    let sandbox = Sandbox::with_model();
    sandbox.write("unknown.json", r#"{"lamda": 1}"#);
    sandbox.write("method.json", r#"{"svml": {"lamda": 1}}"#);
    sandbox.write("list.json", "[1]");
    sandbox.write("broken.json", "{");
    for (options, parts) in [
        (&["--method", "nca", "--criterion", "hold_out"][..], &["--criterion", "nca"][..]),
        (&["--method", "itml", "--form", "rank=2"], &["--form rank=2", "itml", "form or rank"]),
        (&["--method", "lmnn", "--form", "diagonal"], &["--form diagonal", "lmnn"]),
        (&["--method", "knn", "--class-weight", "balanced"], &["--class-weight", "knn"]),
        (&["--method", "knn", "--memory-limit", "1GiB"], &["--memory-limit", "knn"]),
        (&["--method", "euclidean", "--landmarks", "50"], &["--landmarks 50", "euclidean"]),
        (&["--method", "nca", "--exact"], &["--exact", "nca"]),
        (&["--method", "euclidean", "--paper"], &["--paper", "euclidean"]),
        (&["--set", "lamda=1"], &["--set lamda=1", "svml parameters svml"]),
        (&["--set", "lambda=much"], &["lambda = much", "a positive number"]),
        (&["--params", "unknown.json"], &["unknown.json", "lamda"]),
        (&["--params", "method.json"], &["method.json", "lamda", "not a usable method"]),
        (&["--params", "list.json"], &["list.json", "a JSON object"]),
        (&["--params", "broken.json"], &["broken.json", "not valid JSON"]),
    ] {
        let args = [&["train", "train.csv", "-o", "x"], options].concat();
        one_sentence(&sandbox.svml(&args).code(2), parts);
        assert!(!sandbox.path("x").exists());
    }
    // A method that draws nothing at random takes a seed all the same.
    let args = ["train", "train.csv", "-o", "x", "-q", "--method", "knn", "--seed", "3"];
    sandbox.svml(&args).code(0);
}

#[test]
fn too_little_memory_is_1_and_names_the_option_that_helps() {
    let sandbox = Sandbox::with_model();
    for method in ["svml", "euclidean", "nca"] {
        let train = ["train", "train.csv", "-o", "x", "--method", method, "--memory-limit"];
        let run = sandbox.svml(&[&train[..], &["300kB"]].concat()).code(1);
        one_sentence(
            &run,
            &[
                "train.csv",
                "more than the limit of 293.0 KiB",
                "raise --memory-limit",
                "--landmarks",
            ],
        );
        assert!(!sandbox.path("x").exists());
        sandbox.svml(&[&train[..], &["1GiB"]].concat()).code(0);
        std::fs::remove_file(sandbox.path("x")).unwrap();
    }
    // The way out that the message names, with fewer landmarks, as there are few rows.
    let args = ["train", "train.csv", "-o", "x", "--memory-limit", "300kB", "--landmarks"];
    sandbox.svml(&[&args[..], &["10"]].concat()).code(0);
    let run = sandbox.svml(&[&args[..], &["2000"]].concat()).code(1);
    let fewer = "or use fewer rows or a smaller --landmarks";
    one_sentence(&run, &["2000 landmarks", "more than the limit of 293.0 KiB", fewer]);
}

/// Arithmetic that fails on data which can be read is no wrong usage.
#[test]
fn a_numerical_failure_is_1() {
    let sandbox = Sandbox::new();
    let rows: String = (0..40)
        .map(|i| format!("{}e299,{},{}\n", i % 9, i % 7, if i % 2 == 0 { "x" } else { "y" }))
        .collect();
    sandbox.write("huge.csv", &format!("a,b,class\n{rows}"));
    let args = ["train", "huge.csv", "-o", "m", "--method", "fixed:gamma=1e100,cost=1"];
    one_sentence(&sandbox.svml(&args).code(1), &["huge.csv", "inf", "rescale"]);
    assert!(!sandbox.path("m").exists());
}

#[test]
fn bad_data_is_3_and_names_the_place() {
    let sandbox = Sandbox::with_model();
    sandbox.write("ragged.csv", "a,b,class\n1,2,x\n3,4\n5,6,y\n");
    let run = sandbox.svml(&["train", "ragged.csv", "-o", "x"]).code(3);
    one_sentence(&run, &["ragged.csv: line 3:", "found 2 cells, but expected 3", "--delimiter"]);

    sandbox.write("twice.csv", "a,a,class\n1,2,x\n3,4,y\n");
    let run = sandbox.svml(&["train", "twice.csv", "-o", "x"]).code(3);
    one_sentence(&run, &["twice.csv: line 1:", "both named 'a'", "--no-header"]);

    sandbox.write("new.csv", "colour,class\nred,x\nblue,y\nred,x\nblue,y\n");
    sandbox.svml(&["train", "new.csv", "-o", "colours", "-q", "--categories", "codes"]).code(0);
    sandbox.write("green.csv", "colour\ngreen\n");
    let run = sandbox.svml(&["predict", "colours", "green.csv"]).code(3);
    one_sentence(
        &run,
        &["green.csv: line 2, column colour: category 'green'", "--categories onehot"],
    );

    sandbox.write("gap.csv", "a,b,class\n1,2,x\n3,,y\n");
    let run = sandbox.svml(&["train", "gap.csv", "-o", "x"]).code(3);
    one_sentence(&run, &["gap.csv: line 3, column b: the value is missing", "--missing drop"]);

    sandbox.write("one.csv", "a,class\n1,x\n3,x\n");
    let run = sandbox.svml(&["train", "one.csv", "-o", "x"]).code(3);
    one_sentence(&run, &["one.csv:", "at least two classes"]);

    sandbox.write("empty.csv", "");
    one_sentence(
        &sandbox.svml(&["train", "empty.csv", "-o", "x"]).code(3),
        &["empty.csv", "no rows"],
    );

    let target = ["train", "train.csv", "-o", "x", "--target", "colour"];
    one_sentence(&sandbox.svml(&target).code(3), &["no column 'colour'", "x1, x2"]);

    sandbox.write("text.csv", "x1,x2,x3,x4,x5,x6,x7,x8,x9,x10\n1,2,3,4,oops,6,7,8,9,10\n");
    let run = sandbox.svml(&["predict", "m.svml", "text.csv"]).code(3);
    one_sentence(&run, &["text.csv: line 2", "x5", "oops"]);

    sandbox.write("short.csv", "x1,x2\n1,2\n");
    one_sentence(&sandbox.svml(&["predict", "m.svml", "short.csv"]).code(3), &["short.csv", "x3"]);

    sandbox.write("no-class.csv", "x1,x2,x3,x4,x5,x6,x7,x8,x9,x10\n1,2,3,4,5,6,7,8,9,10\n");
    let run = sandbox.svml(&["evaluate", "m.svml", "no-class.csv"]).code(3);
    one_sentence(&run, &["no-class.csv", "add the target column"]);

    std::fs::write(sandbox.path("latin1.csv"), b"a,class\n1,caf\xe9\n").unwrap();
    one_sentence(&sandbox.svml(&["train", "latin1.csv", "-o", "x"]).code(3), &["line 2", "UTF-8"]);
    assert!(!sandbox.path("x").exists());
}

#[test]
fn a_damaged_model_is_3() {
    let sandbox = Sandbox::with_model();
    let mut bytes = std::fs::read(sandbox.path("m.svml")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(sandbox.path("bad.svml"), &bytes).unwrap();
    for name in ["bad.svml", "train.csv"] {
        let run = sandbox.svml(&["show", name]).code(3);
        one_sentence(&run, &[name, "not a usable model file", "svml train"]);
    }
}

/// A word for a missing value is no class, and the message says why.
#[test]
fn a_class_that_is_called_missing_is_3_and_says_why() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", "a,class\n1,x\n2,NA\n3,x\n4,NA\n");
    let run = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(3);
    one_sentence(
        &run,
        &["line 3", "'NA' counts as missing and cannot be the name of a class", "--missing drop"],
    );
    sandbox.write("one.csv", "a,class\n1,x\n");
    let run = sandbox.svml(&["train", "one.csv", "-o", "m"]).code(3);
    assert!(run.err.contains("one.csv: 1 row, 1 feature column, all numeric"), "{}", run.err);
}

#[test]
fn what_is_not_there_is_1() {
    let sandbox = Sandbox::with_model();
    for (args, part) in [
        (&["train", "no.csv", "-o", "x"][..], "no.csv: no such file"),
        (&["train", ".", "-o", "x"], "this is a folder"),
        (&["show", "no.svml"], "no.svml: no such file"),
        (&["train", "train.csv", "-o", "no/folder/m"], "there is no folder no/folder"),
        (&["predict", "m.svml", "train.csv", "-o", "."], "this is a folder"),
        (&["demo", "--out", "train.csv"], "train.csv"),
    ] {
        one_sentence(&sandbox.svml(args).code(1), &[part]);
    }
}

#[test]
fn a_time_limit_without_a_result_is_1_and_says_so() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(2000));
    let run = sandbox.svml(&["train", "t.csv", "-o", "m", "--time-limit", "1e-9"]).code(1);
    one_sentence(&run, &["raise --time-limit"]);
    assert!(!sandbox.path("m").exists());
}

#[test]
fn an_existing_file_is_not_lost_when_a_run_fails() {
    let sandbox = Sandbox::with_model();
    let before = std::fs::read(sandbox.path("m.svml")).unwrap();
    sandbox.write("bad.csv", "a,class\n1,x\n2\n");
    sandbox.svml(&["train", "bad.csv", "-o", "m.svml"]).code(3);
    sandbox.svml(&["train", "train.csv", "-o", "m.svml", "--time-limit", "1e-9"]).code(1);
    assert!(std::fs::read(sandbox.path("m.svml")).unwrap() == before);
    // Nothing else is left behind.
    let mut names: Vec<String> = std::fs::read_dir(sandbox.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["bad.csv", "m.svml", "train.csv"]);
}

/// Paths that are the same file, by whatever name: what is read would be lost.
#[test]
fn an_output_that_is_an_input_or_another_output_is_2() {
    let sandbox = Sandbox::with_model();
    sandbox.write("params.json", "{}");
    sandbox.write("t.libsvm", "1 1:1 2:2\n0 1:2 2:1\n1 1:1 2:3\n0 1:3 2:1\n");
    sandbox.svml(&["svm-train", "-q", "-g", "1", "-c", "1", "t.libsvm", "l.model"]).code(0);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("train.csv", sandbox.path("link.csv")).unwrap();
        std::fs::hard_link(sandbox.path("train.csv"), sandbox.path("other.csv")).unwrap();
        let names = [("link.csv", "DATA"), ("other.csv", "DATA")];
        for (name, argument) in names {
            let run = sandbox.svml(&["predict", "m.svml", "train.csv", "-o", name]).code(2);
            one_sentence(&run, &["-o", name, argument]);
        }
        let input = std::fs::File::open(sandbox.path("train.csv")).unwrap();
        let run = sandbox.command(&["train", "-", "-o", "train.csv"]).stdin(input).output();
        one_sentence(&Run::from(run.unwrap()).code(2), &["-o train.csv", "DATA"]);
    }
    let folder = sandbox.folder().to_string_lossy().into_owned();
    let absolute = format!("{folder}/./train.csv");
    let contents = |name: &str| std::fs::read(sandbox.path(name)).unwrap();
    let names = ["train.csv", "m.svml", "params.json", "t.libsvm", "l.model", "l.model.svml"];
    let before = names.map(contents);
    for (args, parts) in [
        (&["train", "train.csv", "-o", "train.csv"][..], ["-o train.csv", "DATA"]),
        (&["train", "train.csv", "-o", &absolute], ["-o", "DATA"]),
        (&["train", "train.csv", "-o", "x", "--trace", "train.csv"], ["--trace", "DATA"]),
        (&["train", "train.csv", "-o", "x", "--trace", "./x"], ["--trace ./x", "-o is written"]),
        (&["train", "train.csv", "-o", "-", "--trace", "-"], ["--trace -", "-o is written"]),
        (
            &["train", "train.csv", "-o", "params.json", "--params", "params.json"],
            ["-o params.json", "--params"],
        ),
        (&["predict", "m.svml", "train.csv", "-o", "m.svml"], ["-o m.svml", "MODEL"]),
        (&["transform", "m.svml", "train.csv", "-o", "train.csv"], ["-o train.csv", "DATA"]),
        (&["explain", "m.svml", "train.csv", "-o", "m.svml"], ["-o m.svml", "MODEL"]),
        (&["report", "m.svml", "train.csv", "-o", "train.csv"], ["-o train.csv", "DATA"]),
        (&["export", "m.svml", "--to", "c", "-o", "m.svml"], ["-o m.svml", "MODEL"]),
        (&["svm-train", "t.libsvm", "t.libsvm"], ["model_file t.libsvm", "training_set_file"]),
        (&["svm-predict", "t.libsvm", "l.model", "l.model"], ["output_file", "model_file"]),
        (
            &["svm-predict", "t.libsvm", "l.model", "l.model.svml"],
            ["output_file", "model_file.svml"],
        ),
    ] {
        one_sentence(&sandbox.svml(args).code(2), &parts);
    }
    assert!(names.map(contents) == before);
    assert!(!sandbox.path("x").exists());
    // What is no file can be written to twice.
    #[cfg(unix)]
    sandbox.svml(&["train", "train.csv", "-o", "/dev/null", "--trace", "/dev/null"]).code(0);
}

/// Whether the result can be written is found out before it is computed: the data are not even looked at.
#[cfg(unix)]
#[test]
fn what_cannot_be_written_is_found_out_first() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let sandbox = Sandbox::with_model();
    let read_only = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(sandbox.path("m.svml"), read_only).unwrap();
    symlink("nothing", sandbox.path("dangling")).unwrap();
    symlink("loop", sandbox.path("loop")).unwrap();
    for (output, part) in [
        ("m.svml", "the file is read-only"),
        ("dangling", "a link to nothing, which does not exist"),
        ("loop", "symbolic links"),
        ("no/x", "there is no folder no; create it first"),
        ("/proc/self/x", "/proc/self"),
    ] {
        let run = sandbox.svml(&["train", "absent.csv", "-o", output]).code(1);
        one_sentence(&run, &[output, part]);
    }
    assert!(sandbox.path("dangling").is_symlink() && sandbox.path("loop").is_symlink());
    let run = sandbox.svml(&["train", "absent.csv", "-o", "x", "--trace", "no/x"]).code(1);
    one_sentence(&run, &["no/x"]);
    assert!(!sandbox.path("x").exists());
}

/// A stranger's file is refused by its first bytes, however long it is, and with a short message.
#[cfg(target_os = "linux")]
#[test]
fn what_is_no_model_is_refused_at_once() {
    let sandbox = Sandbox::with_model();
    let sparse = std::fs::File::create(sandbox.path("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    for name in ["/dev/zero", "sparse"] {
        one_sentence(
            &sandbox.svml(&["show", name]).code(3),
            &[name, "does not begin like a model"],
        );
    }
    let zeros = std::fs::File::open("/dev/zero").unwrap();
    let run = Run::from(sandbox.command(&["show", "-"]).stdin(zeros).output().unwrap()).code(3);
    one_sentence(&run, &["does not begin like a model"]);
    // The first bytes of a model, and then nothing but zeros: more than the memory of any computer.
    let model = std::fs::read(sandbox.path("m.svml")).unwrap();
    std::fs::write(sandbox.path("long"), &model[..20]).unwrap();
    let long = std::fs::OpenOptions::new().write(true).open(sandbox.path("long")).unwrap();
    long.set_len(1 << 43).unwrap();
    one_sentence(&sandbox.svml(&["show", "long"]).code(1), &["long", "more than the limit"]);
}

/// Files of the first version have no probabilities, which is no fault of the rows.
#[test]
fn what_a_model_cannot_do_names_the_model() {
    let sandbox = Sandbox::new();
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/../svml/tests/data/model_v1.svml");
    std::fs::copy(old, sandbox.path("old.svml")).unwrap();
    sandbox.write("new.csv", "colour,age,size\nred,40,1.0\n");
    let run = sandbox.svml(&["predict", "old.svml", "new.csv", "--probabilities"]).code(3);
    one_sentence(&run, &["old.svml: the model was written", "without probabilities"]);
}

#[cfg(unix)]
#[test]
fn a_file_keeps_its_permissions_and_a_link_its_place() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::with_model();
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(sandbox.path("m.svml"), private).unwrap();
    std::os::unix::fs::symlink("m.svml", sandbox.path("link")).unwrap();
    sandbox.svml(&["train", "train.csv", "-o", "link", "--seed", "5"]).code(0);
    assert!(sandbox.path("link").is_symlink());
    let mode = std::fs::metadata(sandbox.path("m.svml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let shown = sandbox.svml(&["show", "m.svml", "--json"]).code(0).out;
    assert!(shown.contains("\"seed\": 5"));
}

/// A folder that cannot be written to: for the superuser, who may write anywhere, one in /proc.
#[cfg(target_os = "linux")]
#[test]
fn a_read_only_folder_is_1() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::with_model();
    std::fs::create_dir(sandbox.path("locked")).unwrap();
    let locked = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(sandbox.path("locked"), locked).unwrap();
    let superuser = std::fs::write(sandbox.path("locked/probe"), "").is_ok();
    let folder = if superuser { "/proc/self" } else { "locked" };
    for args in [
        &["train", "train.csv", "-o"][..],
        &["predict", "m.svml", "train.csv", "-o"],
        &["plot", "m.svml", "train.csv", "--kind", "metric", "-o"],
    ] {
        let output = format!("{folder}/x.svg");
        let run = sandbox.svml(&[args, &[output.as_str()]].concat()).code(1);
        one_sentence(&run, &[&output]);
    }
}

/// A disk of a few pages, which only lasts as long as the test and which not every computer allows.
#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_fills_up_keeps_the_old_file() {
    let sandbox = Sandbox::with_model();
    std::fs::create_dir(sandbox.path("disk")).unwrap();
    let size = std::fs::metadata(sandbox.path("m.svml")).unwrap().len();
    let room = size + size / 2;
    let script = format!(
        "mount -t tmpfs -o size={room} none disk || exit 99\n\
         cp m.svml disk/m.svml\n\
         '{}' train train.csv -o disk/m.svml --seed 9\n\
         code=$?\n\
         cmp m.svml disk/m.svml || exit 98\n\
         test \"$(ls -A disk)\" = m.svml || exit 97\n\
         exit $code\n",
        env!("CARGO_BIN_EXE_svml")
    );
    let output = std::process::Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .current_dir(sandbox.folder())
        .output();
    let run = match output.map(Run::from) {
        Ok(run) if run.err.contains("mount") || run.err.contains("unshare") => None,
        run => run.ok(),
    };
    match run {
        Some(run) => {
            one_sentence(&run.code(1), &["disk/m.svml", "no space left", "was not changed"])
        }
        #[allow(clippy::print_stderr)]
        None => eprintln!("skipped: a small disk cannot be made here"),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_1() {
    let sandbox = Sandbox::with_model();
    let run = sandbox.svml(&["predict", "m.svml", "train.csv", "-o", "/dev/full"]).code(1);
    one_sentence(&run, &["/dev/full", "no space left", "free some space"]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output =
        sandbox.command(&["predict", "m.svml", "train.csv"]).stdout(full).output().unwrap();
    one_sentence(&Run::from(output).code(1), &["standard output"]);
}
