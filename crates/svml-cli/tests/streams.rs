//! Standard input and output, terminals, closed pipes, Ctrl-C.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use sandbox::{Run, Sandbox, generated, table};
use svml::Model;

#[test]
fn everything_works_through_pipes() {
    let sandbox = Sandbox::with_model();
    let data = sandbox.read("train.csv");
    let output = {
        let mut child = sandbox.spawn(&[&["train", "-", "-o", "-"], &sandbox::FULL[..]].concat());
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, data.as_bytes()).unwrap();
        drop(input);
        child.wait_with_output().unwrap()
    };
    assert!(output.status.success());
    // The model alone is on standard output, and it is the one that a file would get.
    assert!(output.stdout == std::fs::read(sandbox.path("m.svml")).unwrap());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Learned a full metric"));

    let from_file = sandbox.svml(&["predict", "m.svml", "train.csv"]).code(0).out;
    let piped = sandbox.svml_with_input(&["predict", "m.svml", "-"], data.as_bytes()).code(0).out;
    assert_eq!(piped, from_file);
    let model = std::fs::read(sandbox.path("m.svml")).unwrap();
    let piped = sandbox.svml_with_input(&["predict", "-", "train.csv"], &model).code(0).out;
    assert_eq!(piped, from_file);
    let bad = sandbox.svml_with_input(&["train", "-", "-o", "x"], b"a,b\n1\n").code(3);
    assert!(bad.err.contains("standard input: line"), "{}", bad.err);
}

#[test]
fn quiet_means_results_and_errors_only() {
    let sandbox = Sandbox::with_model();
    let run = sandbox.svml(&["--quiet", "train", "train.csv", "-o", "m"]).code(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    let run = sandbox.svml(&["evaluate", "m", "train.csv", "-q"]).code(0);
    assert!(run.out.contains("error") && run.err.is_empty());
    let run = sandbox.svml(&["train", "no.csv", "-o", "m", "-q"]).code(1);
    assert!(run.err.starts_with("svml: no.csv"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let sandbox = Sandbox::with_model();
    // More than a pipe can hold.
    sandbox.write("many.csv", &table(&generated(30_000)));
    let mut child = sandbox.spawn(&["predict", "m.svml", "many.csv", "--decision"]);
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert_eq!(first, "class,decision\n");
    // The reader is gone now.
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
}

/// Any bytes but zero can be the name of a file, and messages are text all the same.
#[cfg(target_os = "linux")]
#[test]
fn names_of_files_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::with_model();
    let name = |bytes: &'static [u8]| OsStr::from_bytes(bytes);
    let (table, model) = (name(b"caf\xe9.csv"), name(b"m\xe9.svml"));
    std::fs::copy(sandbox.path("train.csv"), sandbox.folder().join(table)).unwrap();
    let run = |args: &[&OsStr]| Run::from(sandbox.command(&[]).args(args).output().unwrap());
    let word = OsStr::new;
    let args = [word("train"), table, word("-o"), model, word("--form"), word("sphere")];
    let checkpoint = [word("--checkpoint"), name(b"c\xe9")];
    let trained = run(&[&args[..], &checkpoint].concat()).code(0);
    assert!(trained.err.contains("caf\u{fffd}.csv: 200 rows"), "{}", trained.err);
    assert!(trained.out.contains("svml show m\u{fffd}.svml"), "{}", trained.out);
    let shown = run(&[word("show"), model]).code(0).out;
    assert!(shown.contains("m\u{fffd}.svml"), "{shown}");
    run(&[word("predict"), model, table, word("-o"), name(b"\xff.csv")]).code(0);
    assert!(sandbox.folder().join(name(b"\xff.csv")).is_file());
    let lost = run(&[word("predict"), model, table, word("-o"), table]).code(2);
    assert!(lost.err.contains("would overwrite"), "{}", lost.err);
    let absent = run(&[word("show"), name(b"no\xe9")]).code(1);
    assert!(absent.err.contains("no\u{fffd}: no such file"), "{}", absent.err);
}

/// A standard output that is closed from the start takes nothing, which is a failure as a full disk is one.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_output_is_1() {
    let sandbox = Sandbox::with_model();
    let closed = |args: &str| {
        let line = format!("exec '{}' {args} >&-", env!("CARGO_BIN_EXE_svml"));
        let run = Command::new("sh").args(["-c", &line]).current_dir(sandbox.folder()).output();
        Run::from(run.unwrap())
    };
    for args in ["show m.svml", "predict m.svml train.csv", "evaluate m.svml train.csv", "--help"] {
        let run = closed(args).code(1);
        assert!(run.err.contains("standard output is closed"), "{args}: {}", run.err);
    }
    // What goes elsewhere needs none.
    assert_eq!(closed("predict m.svml train.csv -o p.csv").code(0).err, "");
    assert!(sandbox.read("p.csv").starts_with("class\n"));
}

/// Trains on so many rows that it takes long, until `wait` of standard error is there, then sends a signal.
#[cfg(unix)]
fn interrupted(sandbox: &Sandbox, args: &[&str], wait: &str, signal: &str) -> Run {
    let mut child = sandbox.spawn(args);
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut err = String::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        err.push_str(&line);
        err.push('\n');
        if line.contains(wait) {
            break;
        }
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    for line in lines {
        err.push_str(&line.unwrap());
        err.push('\n');
    }
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    Run { code: child.wait().unwrap().code().unwrap_or(-1), out, err }
}

/// A part of a line of progress about any of the three SVMs: which one is learned when the first line is due depends on how fast
/// the computer is.
#[cfg(unix)]
const A_STEP: &str = " of 3), step ";

#[cfg(unix)]
#[test]
fn ctrl_c_during_a_long_fit_saves_the_best_so_far() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(9000));
    // Exact and on one thread, so that it is long on any computer.
    let args = ["train", "t.csv", "-o", "m.svml", "--threads", "1", "--exact"];
    let run = interrupted(&sandbox, &args, A_STEP, "-INT").code(130);
    assert!(run.err.contains("interrupted: finishing with the best so far"), "{}", run.err);
    assert!(run.err.contains("(press Ctrl-C again to quit immediately)"), "{}", run.err);
    assert!(run.err.contains("the best model so far, of step"), "{}", run.err);
    assert!(run.err.contains("is saved in m.svml"), "{}", run.err);
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    assert_eq!(model.report().stop, Some(svml::Stop::Interrupted));
    assert!(sandbox.svml(&["show", "m.svml"]).code(0).out.contains("it was interrupted"));
}

/// The signal of a terminal that is closed, or, where the tests run under nohup and it has no effect, one that is like it.
#[cfg(unix)]
fn hang_up() -> &'static str {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0);
    if ignored & 1 == 1 { "-TERM" } else { "-HUP" }
}

/// A whole model of an earlier run is worth more than a part of the next.
#[cfg(unix)]
#[test]
fn an_interrupted_fit_keeps_the_model_that_is_there() {
    let sandbox = Sandbox::with_model();
    sandbox.write_table("t.csv", &generated(9000));
    sandbox.write("steps", "old");
    let before = std::fs::read(sandbox.path("m.svml")).unwrap();
    let args = ["train", "t.csv", "-o", "m.svml", "--threads", "1", "--exact", "--trace", "steps"];
    let run = interrupted(&sandbox, &args, A_STEP, hang_up()).code(130);
    assert!(run.err.contains("is saved in m.svml.interrupted; m.svml is unchanged"), "{}", run.err);
    assert!(run.out.contains("svml show m.svml.interrupted"), "{}", run.out);
    assert!(std::fs::read(sandbox.path("m.svml")).unwrap() == before);
    assert_eq!(sandbox.read("steps"), "old");
    assert!(sandbox.read("steps.interrupted").lines().count() > 1);
    let model = Model::load(sandbox.path("m.svml.interrupted")).unwrap();
    assert_eq!(model.report().stop, Some(svml::Stop::Interrupted));
}

/// What was learned before a later SVM is not lost, and the later one counts as far as it has come.
#[cfg(unix)]
#[test]
fn ctrl_c_while_a_later_svm_is_learned_saves_a_model() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(4800));
    // So many rows that a step on all of them takes longer than the line of progress waits.
    let args = ["train", "t.csv", "-o", "m.svml", "--threads", "1"];
    let run = interrupted(&sandbox, &args, "learning gaussian rank=2 on all rows, step ", "-INT")
        .code(130);
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    assert_eq!(model.report().stop, Some(svml::Stop::Interrupted));
    let [only] = model.members() else { panic!("{model}") };
    assert_eq!(only.kernel(), svml::Kernel::Gaussian);
    let saved = format!("best model so far, of step {}, is saved", model.report().best);
    assert!(run.err.contains(&saved), "{}", run.err);
    let shown = sandbox.svml(&["show", "m.svml"]).code(0).out;
    assert!(
        shown.contains("gaussian sphere on half of the rows: 0 to ")
            && shown.contains(", gaussian rank=2: "),
        "{shown}"
    );
    sandbox.svml(&["predict", "m.svml", "t.csv"]).code(0);
    // All of the steps, so that it does not end by itself before the signal is there.
    let args = ["train", "t.csv", "-o", "n.svml", "--threads", "1", "--form", "full"];
    let args = [&args[..], &["--set", "tolerance=0"]].concat();
    let run = interrupted(&sandbox, &args, " s so far: loss ", "-INT").code(130);
    assert!(!run.err.contains("gaussian"), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn ctrl_c_before_any_result_writes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(9000));
    let args = ["train", "t.csv", "-o", "m.svml", "--threads", "1"];
    let run = interrupted(&sandbox, &args, "classes in column", "-TERM").code(130);
    assert!(run.err.contains("nothing was written"), "{}", run.err);
    assert!(!sandbox.path("m.svml").exists());
}

/// As under nohup: a signal that is ignored stays so.
#[cfg(unix)]
#[test]
fn a_closed_terminal_does_not_end_what_was_told_to_go_on() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(1000));
    let line = format!(
        "trap '' HUP; kill -HUP $$; exec '{}' train t.csv -o m.svml",
        env!("CARGO_BIN_EXE_svml")
    );
    let mut child = Command::new("sh")
        .args(["-c", &line])
        .current_dir(sandbox.folder())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("classes in column")));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    lines.for_each(|line| assert!(line.is_ok()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(sandbox.path("m.svml").is_file());
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_what_has_no_result_to_keep() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(6000));
    let args = ["train", "t.csv", "-o", "m.svml", "--method", "euclidean"];
    let run = interrupted(&sandbox, &args, "classes in column", "-INT").code(130);
    assert!(run.err.contains("nothing was written"), "{}", run.err);
    assert!(!sandbox.path("m.svml").exists());
    let args = [&args[..], &["--time-limit", "0.01"]].concat();
    let run = sandbox.svml(&args).code(1);
    assert!(run.err.contains("raise --time-limit"), "{}", run.err);
}

#[cfg(unix)]
#[test]
fn an_interrupted_comparison_shows_what_is_done() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(300));
    let args = ["compare", "t.csv", "--splits", "10000"];
    let run = interrupted(&sandbox, &args, " of 20000, ", "-INT").code(130);
    assert!(run.out.contains("euclidean") && run.out.contains("svml"), "{}", run.out);
    assert!(run.err.contains("interrupted after "), "{}", run.err);
}

/// `script` gives a program a terminal. What it shows depends on time, so only the signs of a bar and of
/// colour are looked for.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_a_bar_and_colour_unless_it_refuses() {
    if !sandbox::installed("script") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(1500));
    let rows: String =
        (0..40).map(|i| format!("{i}.5,7,{}\n", if i < 20 { "x" } else { "y" })).collect();
    sandbox.write("constant.csv", &format!("a,b,class\n{rows}"));
    let on_terminal = |args: &str, no_color: bool| {
        let mut command = Command::new("script");
        let line = format!("'{}' {args}", env!("CARGO_BIN_EXE_svml"));
        command.args(["-qec", &line, "/dev/null"]).current_dir(sandbox.folder());
        command.env("TERM", "xterm").env_remove("NO_COLOR").stdin(Stdio::null());
        if no_color {
            command.env("NO_COLOR", "1");
        }
        Run::from(command.output().unwrap()).code(0).out
    };
    let shown = on_terminal("train t.csv -o m", false);
    assert!(shown.contains("learning gaussian sphere (1 of 3), step "), "{shown}");
    assert!(shown.contains(" s so far") && shown.contains("\r"), "{shown}");
    // What cannot be known is not said.
    assert!(!shown.contains("at most") && !shown.contains(" left"), "{shown}");
    let quiet = on_terminal("--quiet train t.csv -o m", false);
    assert_eq!(quiet.trim(), "");
    let coloured = on_terminal("train constant.csv -o m", false);
    assert!(coloured.contains("\u{1b}[1;33mwarning:"), "{coloured}");
    let plain = on_terminal("train constant.csv -o m", true);
    assert!(plain.contains("warning: column b is constant"), "{plain}");
    assert!(!plain.contains("\u{1b}[1;33m"), "{plain}");
}

/// 25 MB, so that reading it takes a moment.
#[cfg(target_os = "linux")]
fn large() -> String {
    (0..250_000).map(|i| format!("{:099}\n", format!("1,{}", i % 2))).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_says_what_is_being_read() {
    if !sandbox::installed("script") {
        return;
    }
    let sandbox = Sandbox::new();
    // The last line is faulty, so that nothing follows.
    sandbox.write("large.csv", &(large() + "1\n"));
    sandbox.write("small.csv", "1,2\n1\n");
    let on_terminal = |args: &str| {
        let line = format!("'{}' {args}", env!("CARGO_BIN_EXE_svml"));
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).current_dir(sandbox.folder());
        command.env("TERM", "xterm").stdin(Stdio::null());
        Run::from(command.output().unwrap()).code(3).out
    };
    let shown = on_terminal("train large.csv -o m");
    assert!(shown.contains("reading large.csv: ") && shown.contains(" % of 25 MB"), "{shown}");
    assert!(shown.contains("line 250001: found 1 cells"), "{shown}");
    assert!(!on_terminal("--quiet train large.csv -o m").contains("reading"));
    assert!(!on_terminal("train small.csv -o m").contains("reading"));
    assert!(!sandbox.svml(&["train", "large.csv", "-o", "m"]).code(3).err.contains("reading"));
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_while_reading_ends_at_once() {
    let sandbox = Sandbox::new();
    // A pipe that is written to but never ends.
    let mut child = sandbox.spawn(&["train", "-", "-o", "m"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"1,2\n3,4\n").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(130), "svml: interrupted\n"));
    drop(input);
}
