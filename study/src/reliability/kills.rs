//! Kills (SIGKILL, as by the out-of-memory killer or a loss of power) at random moments, and what is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use svml::{Generator, Model};

use super::record::Record;
use super::scratch::{self, Random, Svml};

/// How long killed runs must be gone before what they left is cleared, and a little more.
const UNTIL_CLEARED: Duration = Duration::from_secs(65);
/// Rows to train on: enough that most kills come while it learns, and few enough for hundreds of runs.
const ROWS: usize = 400;

/// The check.
#[derive(Args)]
pub struct Kills {
    #[command(flatten)]
    svml: Svml,
    /// How many
    #[arg(long, default_value_t = 300, value_name = "N")]
    count: u64,
    /// Seed of the moments
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    seed: u64,
}

/// What is killed.
struct Victim {
    name: &'static str,
    /// The share of the kills, in percent.
    share: u64,
    program: PathBuf,
    arguments: Vec<String>,
    /// Files that it writes, with all contents that they may have.
    written: Vec<(PathBuf, Vec<Vec<u8>>)>,
    /// How long it takes; the moment of a kill is drawn from this.
    takes: Duration,
}

/// Counts of one victim.
#[derive(Default)]
struct Counts {
    kills: u64,
    /// It had ended before.
    too_late: u64,
    /// Temporary files that were left.
    left: u64,
}

/// Runs the check.
pub fn check(options: &Kills, results: &Path) -> Result<(), String> {
    let io = |e: std::io::Error| e.to_string();
    let (svml, count, seed) = (options.svml.path()?, options.count, options.seed);
    let scratch = tempfile::tempdir().map_err(io)?;
    let folder = scratch.path();
    let victims = victims(&svml, folder)?;
    let mut random = Random(seed);
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    let started = Instant::now();
    for victim in &victims {
        let mut counts = Counts::default();
        for i in 0..(count * victim.share).div_ceil(100) {
            let before = temporary(folder)?.len();
            let killed = kill(victim, folder, moment(&mut random, victim.takes))?;
            counts.kills += u64::from(killed);
            counts.too_late += u64::from(!killed);
            counts.left += temporary(folder)?.len().saturating_sub(before) as u64;
            for (path, whole) in &victim.written {
                let there = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
                if !whole.contains(&there) {
                    wrong.push(format!(
                        "{}, kill {i}: {} is neither old nor new",
                        victim.name,
                        path.display()
                    ));
                }
            }
        }
        // Whatever was left, the next run does its work. The loop of saves never ends.
        if victim.name != "save in a loop" {
            let status = command(victim, folder).status().map_err(io)?;
            if !status.success() {
                wrong.push(format!("{}: the next run fails, {status}", victim.name));
            }
        }
        seen.push(format!(
            "{}: {} kills ({} more came after its end), temporary files left: {}.",
            victim.name, counts.kills, counts.too_late, counts.left
        ));
    }
    let paper = paper(folder, (count * 5).div_ceil(100), &mut random)?;
    seen.push(paper.1);
    wrong.extend(paper.0);
    // Nobody clears what may still be written, so this takes a minute.
    let left = temporary(folder)?.len();
    std::thread::sleep(UNTIL_CLEARED);
    for victim in victims.iter().filter(|victim| victim.name == "predict") {
        command(victim, folder).status().map_err(io)?;
    }
    let still = temporary(folder)?.len();
    if still > 0 {
        wrong.push(format!("{still} temporary files are still there"));
    }
    seen.push(format!(
        "Of {left} temporary files in the end, a write a minute later left {still}; files that were neither the old nor a whole new one: {}. Seed {seed}, {:.0} s.",
        wrong.len(),
        started.elapsed().as_secs_f64()
    ));
    wrong.iter().for_each(|what| println!("{what}"));
    let met = wrong.is_empty();
    Record::now("kills", met, seen).append(results)?;
    met.then_some(()).ok_or_else(|| "a file was lost".to_owned())
}

/// A folder with a table and models, and what is killed in it. Every file that is written has two contents.
fn victims(svml: &Path, folder: &Path) -> Result<Vec<Victim>, String> {
    let generator = Generator { rows: ROWS, ..Generator::default() };
    let table = scratch::table(&generator, |_| {})?;
    fs::write(folder.join("t.csv"), table).map_err(|e| e.to_string())?;
    let svml_victim = |name, share, arguments: &[&str], output: &str, old: &[&str]| {
        let path = folder.join(output);
        let mut victim = Victim {
            name,
            share,
            program: svml.to_owned(),
            arguments: old.iter().map(|&argument| argument.to_owned()).collect(),
            written: Vec::new(),
            takes: Duration::ZERO,
        };
        let mut contents = Vec::new();
        for arguments in [arguments, old] {
            victim.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
            let started = Instant::now();
            let done = command(&victim, folder).output().map_err(|e| e.to_string())?;
            victim.takes = victim.takes.max(started.elapsed());
            if !done.status.success() {
                return Err(String::from_utf8_lossy(&done.stderr).into_owned());
            }
            contents.push(fs::read(&path).map_err(|e| e.to_string())?);
        }
        if contents[0] == contents[1] {
            return Err(format!("{name}: old and new are the same"));
        }
        victim.arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        victim.written = vec![(path, contents)];
        Ok(victim)
    };
    let train = ["train", "t.csv", "-q", "-o", "m.svml", "--form", "full"];
    let train_old = [&train[..], &["--seed", "1"]].concat();
    let mut victims = vec![svml_victim("train", 35, &train, "m.svml", &train_old)?];
    // The models of the others stay as they are.
    let model = fs::read(folder.join("m.svml")).map_err(|e| e.to_string())?;
    fs::write(folder.join("a.svml"), &model).map_err(|e| e.to_string())?;
    let predict = ["predict", "a.svml", "t.csv", "-o", "p.csv"];
    let predict_old = [&predict[..], &["--decision"]].concat();
    victims.push(svml_victim("predict", 10, &predict, "p.csv", &predict_old)?);
    let export = ["export", "a.svml", "--to", "onnx", "-o", "e.onnx"];
    let export_old = [&export[..], &["--columns"]].concat();
    victims.push(svml_victim("export", 15, &export, "e.onnx", &export_old)?);
    let report = ["report", "a.svml", "t.csv", "-o", "r.html", "-q"];
    let report_old = [&report[..], &["--title", "Old"]].concat();
    victims.push(svml_victim("report", 10, &report, "r.html", &report_old)?);
    // Files of half a megabyte, so that kills come while they are written.
    let [first, second] = [1, 2].map(|seed| {
        let generator = Generator { rows: 5000, seed, ..Generator::default() };
        let data = generator.generate().map_err(|e| e.to_string())?.data;
        let method = "knn".parse::<svml::Method>().map_err(|e| e.to_string())?;
        let model = Model::fit(&data, method).map_err(|e| e.to_string())?;
        let path = folder.join(format!("loop-{seed}.svml"));
        model.save(&path).map_err(|e| e.to_string())?;
        fs::read(path).map_err(|e| e.to_string())
    });
    let contents = vec![first?, second?];
    fs::write(folder.join("s.svml"), &contents[0]).map_err(|e| e.to_string())?;
    victims.push(Victim {
        name: "save in a loop",
        share: 25,
        program: std::env::current_exe().map_err(|e| e.to_string())?,
        arguments: ["reliability", "saves", "loop-1.svml", "loop-2.svml", "s.svml"]
            .map(str::to_owned)
            .to_vec(),
        written: vec![(folder.join("s.svml"), contents)],
        takes: Duration::from_millis(500),
    });
    Ok(victims)
}

/// Saves two models to one file in turn, until it is killed.
pub fn save_in_a_loop(models: [&Path; 2], to: &Path) -> Result<(), String> {
    let models = models.map(|path| Model::load(path).map_err(|e| e.to_string()));
    let [first, second] = models;
    let (first, second) = (first?, second?);
    loop {
        for model in [&first, &second] {
            model.save(to).map_err(|e| e.to_string())?;
        }
    }
}

fn command(victim: &Victim, folder: &Path) -> Command {
    let mut command = Command::new(&victim.program);
    command.args(&victim.arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Starts it and kills it after a time; whether it still ran.
fn kill(victim: &Victim, folder: &Path, after: Duration) -> Result<bool, String> {
    let mut child = command(victim, folder).spawn().map_err(|e| e.to_string())?;
    std::thread::sleep(after);
    let ended = child.try_wait().map_err(|e| e.to_string())?.is_some();
    // It may end between the two, which does no harm.
    let _ = child.kill();
    child.wait().map_err(|e| e.to_string())?;
    Ok(!ended)
}

/// The study of the paper's tables on one set, killed again and again until nothing is left to do; and a line about it.
fn paper(folder: &Path, kills: u64, random: &mut Random) -> Result<(Vec<String>, String), String> {
    let data = std::env::var_os("SVML_DATA").map_or("../shared/data".into(), PathBuf::from);
    let Ok(data) = fs::canonicalize(&data) else {
        return Ok((Vec::new(), "study paper: skipped, there are no data sets.".to_owned()));
    };
    let results = folder.join("paper.jsonl");
    let study = Victim {
        name: "study paper",
        share: 0,
        program: std::env::current_exe().map_err(|e| e.to_string())?,
        arguments: [
            &["paper", "--quick", "--set", "haber", "--splits", "4", "--data"][..],
            &[&data.to_string_lossy(), "--results", "paper.jsonl", "--out", "study.md"],
            &["--figures", "figures", "--readme", "README.md"],
        ]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect(),
        written: Vec::new(),
        takes: Duration::from_secs(2),
    };
    let mut wrong = Vec::new();
    let mut lines = 0;
    for _ in 0..kills {
        kill(&study, folder, moment(random, study.takes))?;
        // All lines but the last, which may be cut off, are whole, and none that was there is gone.
        let text = fs::read_to_string(&results).unwrap_or_default();
        let whole: Vec<&str> =
            text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
        let torn = |line: &&&str| serde_json::from_str::<serde_json::Value>(line).is_err();
        wrong.extend(whole.iter().filter(torn).map(|line| format!("study paper: {line}")));
        if whole.len() < lines {
            wrong.push(format!("study paper: {} lines, {lines} before", whole.len()));
        }
        lines = whole.len();
    }
    let end = command(&study, folder).status().map_err(|e| e.to_string())?;
    if !end.success() || !folder.join("study.md").is_file() {
        wrong.push(format!("study paper: the last run fails, {end}"));
    }
    let after = fs::read_to_string(&results).map_err(|e| e.to_string())?.lines().count();
    let line = format!(
        "study paper: {kills} kills, after which {lines} results were there; one run more made it {after} and the pages."
    );
    Ok((wrong, line))
}

/// The temporary files that are there.
fn temporary(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|e| e.to_string())?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.starts_with(".svml.")).collect())
}

/// A moment of something that takes so long, or a little after its end.
fn moment(random: &mut Random, takes: Duration) -> Duration {
    takes.mul_f64(1.1 * random.share())
}
