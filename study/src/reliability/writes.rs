//! Writes that fail: every file operation of every command that writes, full disks, limits, closed pipes, a clock that
//! jumps.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clap::Args;

use super::record::Record;
use super::scratch::Svml;
use injection::{CASES, Came, FAULTS, Injection};

// The tests of the command do the same with fewer faults.
#[path = "../../../crates/svml-cli/tests/injection/mod.rs"]
mod injection;

/// The check.
#[derive(Args)]
pub struct Writes {
    #[command(flatten)]
    svml: Svml,
}

/// What came of a part of the check: sentences, and what was wrong.
#[derive(Default)]
struct Found {
    seen: Vec<String>,
    wrong: Vec<String>,
}

impl Found {
    fn check(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.wrong.push(what());
        }
    }
}

/// Runs the check.
pub fn check(options: &Writes, results: &Path) -> Result<(), String> {
    let io = |e: std::io::Error| e.to_string();
    let svml = options.svml.path()?;
    let (folder, shim) = (tempfile::tempdir().map_err(io)?, tempfile::tempdir().map_err(io)?);
    let injection = Injection::new(&svml, folder.path(), &shim.path().join("faults.so"))?;
    let injection = injection.ok_or("a C compiler is needed")?;
    let mut found = Found::default();
    operations(&injection, &mut found)?;
    clock(&injection, folder.path(), &mut found)?;
    pipes(&injection, folder.path(), &mut found)?;
    limits(&svml, folder.path(), &mut found)?;
    let Found { seen, wrong } = found;
    wrong.iter().for_each(|what| println!("{what}"));
    let met = wrong.is_empty();
    Record::now("writes", met, seen).append(results)?;
    met.then_some(()).ok_or_else(|| format!("{} failures were not taken well", wrong.len()))
}

/// Every operation with every fault, once and for good.
fn operations(injection: &Injection, found: &mut Found) -> Result<(), String> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let (mut runs, mut refused, before) = (0, 0, found.wrong.len());
    for case in CASES {
        let prepared = injection.prepare(case)?;
        for at in 1..=prepared.operations.len() {
            let name = prepared.operations[at - 1].split_whitespace().next().unwrap_or_default();
            *kinds.entry(name.to_owned()).or_default() += 1;
            for fault in FAULTS {
                for stays in [false, true] {
                    runs += 1;
                    match injection.fail(&prepared, at, fault, stays) {
                        Ok(came) => refused += usize::from(came == Came::Refused),
                        Err(what) => found.wrong.push(what),
                    }
                }
            }
        }
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let names: Vec<&str> = FAULTS.iter().map(|fault| fault.name).collect();
    found.seen.push(format!(
        "{} commands, {runs} runs: each file operation ({}) fails with each of {}, once and from then on. {refused} runs ended with exit code 1, the old files and a message that names the cause; {} did their work all the same (the operation was not needed, or was repeated); {} did neither.",
        CASES.len(),
        kinds.join(", "),
        names.join(", "),
        runs - refused - (found.wrong.len() - before),
        found.wrong.len() - before
    ));
    Ok(())
}

/// The wall clock goes back and forth by more than a year between two looks at it.
fn clock(injection: &Injection, folder: &Path, found: &mut Found) -> Result<(), String> {
    let train = ["train", "t.csv", "-o", "clock.svml", "--time-limit", "600"];
    let path = folder.join("clock.svml");
    let mut contents = Vec::new();
    for mut command in [injection.command(&train), injection.with_jumping_clock(&train)] {
        let output = command.output().map_err(|e| e.to_string())?;
        found.check(output.status.success(), || format!("clock: {}", words(&output)));
        contents.push(fs::read(&path).map_err(|e| e.to_string())?);
    }
    let same = contents[0] == contents[1];
    found.check(same, || "a jump of the clock changed the model".to_owned());
    found.seen.push(format!(
        "A wall clock that jumps by 400 days back and forth: the model with a time limit of 600 s is {}.",
        if same { "the same, byte for byte" } else { "another one" }
    ));
    Ok(())
}

/// Readers that have gone, and streams that are closed from the start.
fn pipes(injection: &Injection, folder: &Path, found: &mut Found) -> Result<(), String> {
    let mut runs = 0;
    for arguments in [
        &["show", "m.svml"][..],
        &["predict", "m.svml", "t.csv"],
        &["export", "m.svml", "--to", "c"],
        &["compare", "t.csv", "--splits", "2", "--methods", "knn"],
        &["evaluate", "m.svml", "t.csv"],
        &["completions", "bash"],
    ] {
        // Dropping the ends of the pipes closes them before the program writes.
        let mut child = injection
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| e.to_string())?;
        drop((child.stdout.take(), child.stderr.take()));
        let status = child.wait().map_err(|e| e.to_string())?;
        runs += 1;
        found.check(status.success(), || format!("{arguments:?} into a closed pipe: {status}"));
    }
    for closed in [">&-", "2>&-", "<&-", ">&- 2>&- <&-"] {
        let _ = fs::remove_file(folder.join("closed.svml"));
        let program = injection.command(&[]).get_program().to_owned();
        let line = format!("exec \"$0\" train t.csv -o closed.svml --form sphere {closed}");
        let mut shell = Command::new("sh");
        let status = shell.args(["-c", &line]).arg(&program).current_dir(folder).output();
        let status = status.map_err(|e| e.to_string())?.status;
        let loaded = svml::Model::load(folder.join("closed.svml")).is_ok();
        runs += 1;
        // What nobody can read is no reason to lose the model.
        found.check(loaded && status.code().is_some(), || format!("train {closed}: {status}"));
    }
    found.seen.push(format!(
        "Closed pipes and closed standard input, output and error: {runs} runs, all ended by themselves, and files were written whole."
    ));
    Ok(())
}

/// Disks and limits of the system, none of which the program knows.
fn limits(svml: &Path, folder: &Path, found: &mut Found) -> Result<(), String> {
    let script = |name: &str| format!("'{}' {name}", svml.display());
    let shell = |line: &str, own_disk: bool| {
        let mut command = match own_disk {
            true => {
                let mut command = Command::new("unshare");
                command.args(["--map-root-user", "--mount", "sh", "-c", line]);
                command
            }
            false => {
                let mut command = Command::new("sh");
                command.args(["-c", line]);
                command
            }
        };
        command.current_dir(folder).stdin(Stdio::null()).output().map_err(|e| e.to_string())
    };
    let output = shell(&script("predict m.svml t.csv -o /dev/full"), false)?;
    let full = output.status.code() == Some(1) && words(&output).contains("no space left");
    found.check(full, || format!("/dev/full: {}", words(&output)));
    // A file may have so many blocks only.
    let export = script("export m.svml --to c -o l.c");
    fs::write(folder.join("l.c"), "old\n").map_err(|e| e.to_string())?;
    for blocks in 0..4 {
        let output = shell(&format!("ulimit -f {blocks}; {export}"), false)?;
        let old = fs::read(folder.join("l.c")).is_ok_and(|bytes| bytes == b"old\n");
        let right = output.status.code() == Some(1) && words(&output).contains("too large");
        found.check(right && old, || format!("ulimit -f {blocks}: {}", words(&output)));
    }
    found.seen.push(
        "/dev/full and files limited to 0 to 3 blocks (ulimit -f): exit code 1, the old file, a message."
            .to_owned(),
    );
    // Disks of 1, 2, ... pages, until the new file fits beside the old one.
    fs::create_dir_all(folder.join("disk")).map_err(|e| e.to_string())?;
    let whole = script("export m.svml --to c -o new.c");
    shell(&whole, false)?;
    let (mut failed, mut fitted) = (0, 0);
    for pages in 2..40 {
        let export = script("export m.svml --to c -o disk/old.c");
        let line = format!(
            "mount -t tmpfs -o size={} none disk || exit 99; echo old > disk/old.c\n\
             {export}; code=$?\n\
             test \"$(ls -A disk)\" = old.c || exit 98\n\
             if [ $code = 0 ]; then cmp disk/old.c new.c || exit 97; else test \"$(cat disk/old.c)\" = old || exit 96; fi\n\
             exit $code",
            pages * 4096
        );
        let output = shell(&line, true)?;
        match output.status.code() {
            Some(0) => fitted += 1,
            Some(1) if words(&output).contains("no space left") => failed += 1,
            _ if words(&output).contains("mount") || words(&output).contains("unshare") => {
                found.seen.push("A small disk cannot be mounted here: skipped.".to_owned());
                return Ok(());
            }
            _ => found.wrong.push(format!("a disk of {pages} pages: {}", words(&output))),
        }
        if fitted >= 2 {
            break;
        }
    }
    found.check(failed > 0 && fitted > 0, || format!("{failed} disks full, {fitted} not"));
    found.seen.push(format!(
        "Disks (tmpfs) of 2, 3, ... pages: {failed} were too full, with exit code 1, the old file and nothing else on the disk; on {fitted} the new file fitted."
    ));
    Ok(())
}

fn words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).to_lowercase();
    format!("{}: {text}", output.status)
}
