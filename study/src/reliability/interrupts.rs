//! Ctrl-C at random moments of a training: how long until it has ended, and whether the model that is left can be used.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use svml::{Generator, Model};

use super::record::Record;
use super::scratch::{self, Random, Svml};

/// What is asked for.
#[derive(Args)]
pub struct Interrupts {
    #[command(flatten)]
    svml: Svml,
    /// Signals for each size
    #[arg(long, default_value_t = 100, value_name = "N")]
    count: usize,
    /// Numbers of rows
    #[arg(long, value_delimiter = ',', default_values_t = [500, 5_000, 100_000], value_name = "N")]
    rows: Vec<usize>,
    /// Seed of the moments
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    seed: u64,
}

/// The bound on 99 of 100 reactions.
const REACTION: Duration = Duration::from_millis(200);
/// Signals that the gate asks for at each size.
const ENOUGH: usize = 100;
/// The exit code of an interrupted program.
const INTERRUPTED: i32 = 130;
/// Moments of large tables are within this, so that the check ends some day.
const LATEST: f64 = 10.0;

/// Runs the check.
pub fn check(options: &Interrupts, results: &Path) -> Result<(), String> {
    let svml = options.svml.path()?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let folder = folder.path();
    let mut random = Random(options.seed);
    let (mut seen, mut wrong, mut met) = (Vec::new(), Vec::new(), true);
    for &rows in &options.rows {
        let generator = Generator { rows, ..Generator::default() };
        fs::write(folder.join("t.csv"), scratch::table(&generator, |_| ())?)
            .map_err(|e| e.to_string())?;
        let start = || {
            Command::new(&svml)
                .current_dir(folder)
                .args(["train", "t.csv", "-o", "m.svml", "-q"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|e| e.to_string())
        };
        let whole = Instant::now();
        start()?.wait().map_err(|e| e.to_string())?;
        let takes = whole.elapsed().as_secs_f64().min(LATEST);
        let (mut reactions, mut early, mut late, mut models) = (Vec::new(), 0, 0, 0);
        // One that comes too late is none; a table that is done too soon for most is no reason to go on for ever.
        while reactions.len() < options.count && late <= options.count {
            let _ = fs::remove_file(folder.join("m.svml"));
            let mut child = start()?;
            std::thread::sleep(Duration::from_secs_f64(takes * random.share()));
            if child.try_wait().map_err(|e| e.to_string())?.is_some() {
                late += 1;
                continue;
            }
            let asked = Instant::now();
            let id = child.id().to_string();
            let _ = Command::new("kill").args(["-INT", &id]).status();
            let output = child.wait_with_output().map_err(|e| e.to_string())?;
            reactions.push(asked.elapsed());
            let left = folder.join("m.svml");
            match (output.status.code(), left.is_file()) {
                (Some(INTERRUPTED | 0), true) => match Model::load(&left) {
                    Ok(_) => models += 1,
                    Err(e) => wrong.push(format!("{rows} rows: the model that is left: {e}.")),
                },
                // Before there is anything to keep, it says so.
                (Some(INTERRUPTED), false) => early += 1,
                (code, _) => wrong.push(format!(
                    "{rows} rows: exit code {code:?}: {}",
                    String::from_utf8_lossy(&output.stderr).trim()
                )),
            }
        }
        reactions.sort();
        let at = |share: f64| {
            let place = (share * reactions.len() as f64).ceil() as usize;
            reactions.get(place.saturating_sub(1)).copied().unwrap_or_default()
        };
        // One of a hundred cannot be seen in fewer.
        met &= at(0.99) <= REACTION && reactions.len() >= ENOUGH;
        seen.push(format!(
            "{rows} rows: {} signals while it ran ({late} came too late): half within {:.0} ms, 99 % within {:.0} ms, the longest {:.0} ms; {models} left a model that loads, {early} came before there was one.",
            reactions.len(),
            1e3 * at(0.5).as_secs_f64(),
            1e3 * at(0.99).as_secs_f64(),
            1e3 * at(1.0).as_secs_f64()
        ));
    }
    met &= wrong.is_empty();
    seen.extend(wrong);
    Record::now("interrupts", met, seen).append(results)?;
    met.then_some(()).ok_or_else(|| "interrupts take too long or leave nothing usable".to_owned())
}
