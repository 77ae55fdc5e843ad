//! Kills `svml train --checkpoint` and `svml compare --checkpoint` again and again, until they come to their end, and compares
//! the model, or the measures, with those of a run that nobody has disturbed. What a checkpoint costs is measured too.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use svml::Generator;

use super::record::Record;
use super::scratch::{self, Random, Svml};

/// What is asked for.
#[derive(Args)]
pub struct Resume {
    #[command(flatten)]
    svml: Svml,
    /// Kills in all, at least
    #[arg(long, default_value_t = 200, value_name = "N")]
    count: usize,
    /// Seed of the moments
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    seed: u64,
}

/// Kills that the gate asks for.
const ENOUGH: usize = 100;

/// A table, and what is done with it.
struct Case {
    what: &'static str,
    rows: usize,
    classes: usize,
    arguments: &'static [&'static str],
    /// Its part of all kills: one in so many.
    share: usize,
}

impl Case {
    /// Whether it writes a model; a comparison prints what it has measured.
    fn trains(&self) -> bool {
        self.arguments.first() == Some(&"train")
    }
}

const fn case(
    what: &'static str,
    (rows, classes): (usize, usize),
    arguments: &'static [&'static str],
    share: usize,
) -> Case {
    Case { what, rows, classes, arguments, share }
}

const CASES: [Case; 7] = [
    case("two classes", (1500, 2), &["train"], 4),
    case("four classes", (1200, 4), &["train"], 5),
    case("200 landmarks", (4000, 2), &["train", "--landmarks", "200"], 5),
    case("the paper's protocol", (1500, 2), &["train", "--paper"], 6),
    case("a grid", (1200, 2), &["train", "--method", "euclidean"], 6),
    case("a comparison", (300, 2), &["compare", "--json", "--splits", "4"], 10),
    case("many rows", (20_000, 2), &["train"], 10),
];

/// How often a command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(1);

/// Seconds that the runs for the cost of a checkpoint take at most in all, without and with one, unless one takes longer.
const ENOUGH_SECONDS: f64 = 10.0;
/// Most of these runs.
const MOST_RUNS: usize = 9;

/// What came of one case.
struct Seen {
    kills: usize,
    fits: usize,
    /// Most kills that one fit has survived.
    most: usize,
    /// Seconds of a run that nobody has disturbed.
    seconds: f64,
    /// How much longer it takes with a checkpoint: the median of the ratios of runs in turn, and how many these are.
    with_checkpoint: (f64, usize),
    /// Seconds of all lives of the fits, on average.
    in_all: f64,
    wrong: Vec<String>,
}

/// Runs the check.
pub fn check(options: &Resume, results: &Path) -> Result<(), String> {
    let svml = options.svml.path()?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut random = Random(options.seed);
    let mut sentences = Vec::new();
    let (mut kills, mut fits, mut wrong) = (0, 0, Vec::new());
    for case in CASES {
        let seen = torment(&case, &svml, options.count, folder.path(), &mut random)?;
        sentences.push(format!(
            "{} rows, {}: {} kills, {} runs came to their end, the most disturbed after {} kills; {:.2} s undisturbed, {:.2} s in all lives of one; with a checkpoint {:.2} times as long as without ({} of each).",
            case.rows,
            case.what,
            seen.kills,
            seen.fits,
            seen.most,
            seen.seconds,
            seen.in_all,
            seen.with_checkpoint.0,
            seen.with_checkpoint.1,
        ));
        println!("{}", sentences[sentences.len() - 1]);
        (kills, fits) = (kills + seen.kills, fits + seen.fits);
        wrong.extend(seen.wrong);
    }
    // Fewer are a look, whatever was asked for.
    let met = wrong.is_empty() && kills >= options.count.max(ENOUGH);
    sentences.insert(
        0,
        match wrong.is_empty() {
            true => format!(
                "kill -9 at {kills} random moments: all {fits} fits and comparisons went on and came to the bytes of the model, or to the measures, of an undisturbed one."
            ),
            false => format!("kill -9 at {kills} random moments: {} were not survived.", wrong.len()),
        },
    );
    sentences.extend(wrong);
    Record::now("resume", met, sentences).append(results)?;
    if met {
        Ok(())
    } else {
        Err("a fit that was killed did not come to the same model".to_owned())
    }
}

fn torment(
    case: &Case,
    svml: &Path,
    count: usize,
    folder: &Path,
    random: &mut Random,
) -> Result<Seen, String> {
    let data = folder.join("data.csv");
    let (model, checkpoint) = (folder.join("model.svml"), folder.join("fit.checkpoint"));
    let generator = Generator { rows: case.rows, classes: case.classes, ..Generator::default() };
    fs::write(&data, scratch::table(&generator, |_| ())?).map_err(|e| e.to_string())?;
    let start = |checkpoint: Option<&Path>| -> Result<Child, String> {
        let mut command = Command::new(svml);
        command.args(case.arguments).arg(&data).arg("--quiet");
        if case.trains() {
            command.arg("--output").arg(&model);
        }
        if let Some(file) = checkpoint {
            command.arg("--checkpoint").arg(file);
        }
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|e| format!("{}: {e}", svml.display()))
    };
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    // The model, or what was measured but for the seconds.
    let result = |output: &Output| match case.trains() {
        true => read(&model),
        false => {
            let lines = output.stdout.split_inclusive(|byte| *byte == b'\n');
            let timed = |line: &&[u8]| String::from_utf8_lossy(line).contains("seconds_per_fit");
            Ok(lines.filter(|line| !timed(line)).collect::<Vec<_>>().concat())
        }
    };
    let whole = |checkpoint: Option<&Path>| -> Result<(f64, Vec<u8>), String> {
        let began = Instant::now();
        let output = start(checkpoint)?.wait_with_output().map_err(|e| e.to_string())?;
        match output.status.success() {
            true => Ok((began.elapsed().as_secs_f64(), result(&output)?)),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };

    let (seconds, expected) = whole(None)?;
    let runs = ((ENOUGH_SECONDS / seconds / 2.0) as usize).clamp(1, MOST_RUNS);
    let ratios = (0..runs).map(|_| Ok(whole(Some(&checkpoint))?.0 / whole(None)?.0));
    let mut ratios = ratios.collect::<Result<Vec<f64>, String>>()?;
    ratios.sort_by(f64::total_cmp);
    let mut seen = Seen {
        kills: 0,
        fits: 0,
        most: 0,
        seconds,
        with_checkpoint: (ratios[runs / 2], runs),
        in_all: 0.0,
        wrong: Vec::new(),
    };
    let mut of_fit = 0;
    let wanted = count.div_ceil(case.share);
    while seen.kills < wanted || of_fit > 0 {
        if of_fit == 0 {
            for path in [&model, &checkpoint] {
                let _ = fs::remove_file(path);
            }
        }
        // Most lives end at the beginning of what is left, some in the middle of the end.
        let life = Duration::from_secs_f64(0.7 * seconds * random.share());
        let began = Instant::now();
        let mut child = start(Some(&checkpoint))?;
        let ended = loop {
            match child.try_wait().map_err(|e| e.to_string())? {
                Some(status) => break Some(status),
                None if began.elapsed() >= life && seen.kills < wanted => {
                    child.kill().map_err(|e| e.to_string())?;
                    let status = child.wait().map_err(|e| e.to_string())?;
                    // It may have ended at the last moment; who is killed has no exit code.
                    break status.code().map(|_| status);
                }
                None => std::thread::sleep(POLL),
            }
        };
        seen.in_all += began.elapsed().as_secs_f64();
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        match ended {
            None => {
                seen.kills += 1;
                of_fit += 1;
                // A model that is there is whole.
                if model.exists() && read(&model)? != expected {
                    seen.wrong.push(format!("{}: another model after a kill.", case.what));
                    break;
                }
            }
            Some(status) => {
                if !status.success() {
                    let text = String::from_utf8_lossy(&output.stderr).into_owned();
                    seen.wrong.push(format!("{}: {text}", case.what));
                    break;
                }
                if result(&output)? != expected {
                    seen.wrong.push(format!("{}: another result after {of_fit} kills.", case.what));
                }
                if checkpoint.exists() {
                    seen.wrong.push(format!("{}: the checkpoint is still there.", case.what));
                }
                (seen.fits, seen.most) = (seen.fits + 1, seen.most.max(of_fit));
                of_fit = 0;
            }
        }
    }
    seen.in_all /= seen.fits.max(1) as f64;
    Ok(seen)
}
