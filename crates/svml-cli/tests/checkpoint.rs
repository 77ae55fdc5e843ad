//! Commands that are killed go on where they were.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use sandbox::{Run, Sandbox, generated};
use serde_json::Value;

const TRAIN: [&str; 6] = ["train", "t.csv", "-o", "m.svml", "--checkpoint", "fit"];

fn with_table(rows: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(rows));
    sandbox
}

fn length(sandbox: &Sandbox) -> u64 {
    fs::metadata(sandbox.path("fit")).map_or(0, |about| about.len())
}

/// Starts a command and kills it once its checkpoint has grown by so many bytes; what it gave if it has ended before.
fn killed(sandbox: &Sandbox, args: &[&str], after: u64) -> Option<Run> {
    let before = length(sandbox);
    let mut child = sandbox.spawn(args);
    while length(sandbox) < before + after {
        if child.try_wait().unwrap().is_some() {
            return Some(child.wait_with_output().unwrap().into());
        }
        sleep(Duration::from_millis(1));
    }
    // This is kill -9 where there is such a thing.
    child.kill().unwrap();
    let ended: Run = child.wait_with_output().unwrap().into();
    (ended.code == 0).then_some(ended)
}

#[test]
fn a_fit_that_is_killed_writes_the_same_model() {
    let sandbox = with_table(800);
    sandbox.svml(&["train", "t.csv", "-o", "plain.svml"]).code(0);
    let expected = fs::read(sandbox.path("plain.svml")).unwrap();
    let (mut kills, mut after) = (0, 200);
    let last = loop {
        match killed(&sandbox, &TRAIN, after) {
            Some(run) => break run.code(0),
            None => (kills, after) = (kills + 1, 2 * after),
        }
    };
    assert!(kills >= 3, "{kills}");
    assert!(last.err.contains("Resuming from the checkpoint fit."), "{}", last.err);
    assert!(fs::read(sandbox.path("m.svml")).unwrap() == expected);
    assert!(!sandbox.path("fit").exists());
}

#[test]
fn a_fit_that_was_ended_early_goes_on() {
    let sandbox = with_table(2500);
    let limited = [&TRAIN[..], &["--time-limit", "0.6"]].concat();
    let run = sandbox.svml(&limited);
    match run.code {
        0 => {
            let said = "The time limit was reached; run the same command again to resume from the checkpoint fit.";
            assert!(run.err.contains(said), "{}", run.err);
        }
        // Time did not suffice for anything.
        _ => drop(run.code(1)),
    }
    assert!(sandbox.path("fit").exists());
    let run = sandbox.svml(&TRAIN).code(0);
    assert!(run.err.contains("Resuming from the checkpoint fit."), "{}", run.err);
    assert!(!sandbox.path("fit").exists());
    let model = fs::read(sandbox.path("m.svml")).unwrap();
    sandbox.svml(&["train", "t.csv", "-o", "m.svml"]).code(0);
    assert!(fs::read(sandbox.path("m.svml")).unwrap() == model);
}

#[test]
fn what_cannot_be_gone_on_from_is_refused() {
    let sandbox = with_table(800);
    assert!(killed(&sandbox, &TRAIN, 200).is_none());
    let content = fs::read(sandbox.path("fit")).unwrap();
    let refused = |args: &[&str], words: &str| {
        let run = sandbox.svml(&[&TRAIN[..], args].concat()).code(1);
        assert!(run.err.contains(words), "{}", run.err);
    };
    refused(
        &["--seed", "1"],
        "svml: fit: this checkpoint belongs to a fit with different parameters; use a different file for this fit with --checkpoint, or delete this one to start over",
    );
    refused(
        &["--drop", "x1"],
        "fit: this checkpoint belongs to a fit to different data; use a different file",
    );
    assert!(fs::read(sandbox.path("fit")).unwrap() == content);
    assert!(!sandbox.path("m.svml").exists());

    // A file of the user's own is not overwritten.
    sandbox.write("own.csv", "a,b");
    let run = sandbox.svml(&["train", "t.csv", "-o", "m.svml", "--checkpoint", "own.csv"]).code(1);
    assert!(run.err.contains("own.csv: this file is not an svml checkpoint; use"), "{}", run.err);
    assert_eq!(sandbox.read("own.csv"), "a,b");
    let run = sandbox.svml(&["train", "t.csv", "-o", "m.svml", "--checkpoint", "no/fit"]).code(1);
    assert!(run.err.contains("no/fit"), "{}", run.err);
}

#[test]
fn two_commands_do_not_share_a_checkpoint() {
    let sandbox = with_table(3000);
    let mut first = sandbox.spawn(&TRAIN);
    while length(&sandbox) == 0 {
        sleep(Duration::from_millis(1));
    }
    let run = sandbox.svml(&TRAIN).code(1);
    assert!(
        run.err.contains("fit: this checkpoint is in use by another running fit; wait until that fit has finished, or use a different file with --checkpoint"),
        "{}",
        run.err
    );
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_comparison_goes_on() {
    let sandbox = with_table(150);
    let args = ["compare", "t.csv", "--splits", "6", "--json"];
    let without_times = |text: &str| {
        let mut value: Value = serde_json::from_str(text).unwrap();
        for method in value["methods"].as_array_mut().unwrap() {
            method.as_object_mut().unwrap().retain(|name, _| !name.contains("seconds"));
        }
        value
    };
    let expected = without_times(&sandbox.svml(&args).code(0).out);
    let args = [&args[..], &["--checkpoint", "fit"]].concat();
    assert!(killed(&sandbox, &args, 1500).is_none());
    let other = [&args[..], &["--methods", "svml:diagonal"]].concat();
    assert!(sandbox.svml(&other).code(1).err.contains("different parameters"));
    let run = sandbox.svml(&args).code(0);
    assert!(run.err.contains("Resuming from the checkpoint fit."), "{}", run.err);
    assert_eq!(without_times(&run.out), expected);
    assert!(!sandbox.path("fit").exists());
}

/// The file of a checkpoint is removed in the end: it must be no other file of the command, by whatever name.
#[test]
fn a_checkpoint_is_no_other_file() {
    let sandbox = with_table(60);
    let table = sandbox.read("t.csv");
    sandbox.write("p.json", "{}");
    #[cfg(unix)]
    std::os::unix::fs::symlink("m.svml", sandbox.path("link")).unwrap();
    sandbox.write("m.svml", "old");
    let named = ["m.svml", "./m.svml", "s.csv", "t.csv", "p.json", "m.svml.interrupted"];
    for name in named.into_iter().chain(cfg!(unix).then_some("link")) {
        let args = ["train", "t.csv", "-o", "m.svml", "--trace", "s.csv", "--params", "p.json"];
        let run = sandbox.svml(&[&args[..], &["--checkpoint", name]].concat()).code(2);
        assert!(run.err.contains(&format!("--checkpoint {name}: ")), "{}", run.err);
        assert_eq!((sandbox.read("m.svml"), sandbox.read("t.csv")), ("old".into(), table.clone()));
    }
    let run = sandbox.svml(&["compare", "t.csv", "--checkpoint", "t.csv"]).code(2);
    assert!(run.err.contains("would overwrite"), "{}", run.err);
}
