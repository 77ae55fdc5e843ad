//! Kills `svml train --checkpoint` again and again, until it has written its model, and compares that with the model of
//! a fit that nobody has disturbed.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
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

/// A table and how it is fitted.
struct Case {
    what: &'static str,
    rows: usize,
    classes: usize,
    options: &'static [&'static str],
    /// Its part of all kills: one in so many.
    share: usize,
}

const CASES: [Case; 6] = [
    Case { what: "two classes", rows: 1500, classes: 2, options: &[], share: 4 },
    Case { what: "four classes", rows: 1200, classes: 4, options: &[], share: 5 },
    Case {
        what: "200 landmarks",
        rows: 4000,
        classes: 2,
        options: &["--landmarks", "200"],
        share: 5,
    },
    Case { what: "the paper's protocol", rows: 1500, classes: 2, options: &["--paper"], share: 6 },
    Case { what: "a grid", rows: 1200, classes: 2, options: &["--method", "euclidean"], share: 6 },
    Case { what: "many rows", rows: 20_000, classes: 2, options: &[], share: 10 },
];

/// How often a command is asked whether it has ended.
const POLL: Duration = Duration::from_millis(1);

/// What came of one case.
struct Seen {
    kills: usize,
    fits: usize,
    /// Most kills that one fit has survived.
    most: usize,
    /// Seconds of a fit that nobody has disturbed.
    seconds: f64,
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
            "{} rows, {}: {} kills, {} fits came to their end, the most disturbed after {} kills; {:.2} s a fit undisturbed, {:.2} s in all its lives.",
            case.rows, case.what, seen.kills, seen.fits, seen.most, seen.seconds, seen.in_all,
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
                "kill -9 at {kills} random moments: all {fits} fits went on and wrote the bytes of the model of an undisturbed fit."
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
        command.arg("train").arg(&data).arg("--output").arg(&model).arg("--quiet");
        command.args(case.options);
        if let Some(file) = checkpoint {
            command.arg("--checkpoint").arg(file);
        }
        let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().map_err(|e| format!("{}: {e}", svml.display()))
    };
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));

    let began = Instant::now();
    let undisturbed = start(None)?.wait_with_output().map_err(|e| e.to_string())?;
    if !undisturbed.status.success() {
        return Err(String::from_utf8_lossy(&undisturbed.stderr).into_owned());
    }
    let seconds = began.elapsed().as_secs_f64();
    let expected = read(&model)?;

    let mut seen = Seen { kills: 0, fits: 0, most: 0, seconds, in_all: 0.0, wrong: Vec::new() };
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
                if read(&model)? != expected {
                    seen.wrong.push(format!("{}: another model after {of_fit} kills.", case.what));
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
