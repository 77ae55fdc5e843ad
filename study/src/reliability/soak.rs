//! Many fits and predictions in one process: memory, open files and threads stay as they are.

use std::fs;
use std::path::Path;
use std::time::Instant;

use clap::Args;
use svml::{Form, Generator, Model, Svml};

use super::record::Record;

/// What is asked for.
#[derive(Args)]
pub struct Soak {
    /// Fits
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    fits: usize,
    /// Calls of predict, with one row each
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    predictions: usize,
}

/// After this share of the work everything that is kept for ever has been made.
const WARM: usize = 10;
/// How much memory may grow after that.
const GROWTH: f64 = 0.01;

/// What the process holds.
struct Held {
    megabytes: f64,
    files: usize,
    threads: usize,
}

impl Held {
    /// As the system tells it.
    fn now() -> Result<Self, String> {
        let status = fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<f64>().ok()
        };
        let missing = || "the system does not tell what a process holds".to_owned();
        Ok(Self {
            megabytes: number("VmRSS:").ok_or_else(missing)? / 1024.0,
            files: fs::read_dir("/proc/self/fd").map_err(|e| e.to_string())?.count(),
            threads: number("Threads:").ok_or_else(missing)? as usize,
        })
    }
}

/// Runs the check.
pub fn check(options: &Soak, results: &Path) -> Result<(), String> {
    let failed = |e: svml::Error| e.to_string();
    let tables: Result<Vec<_>, _> = (0..20)
        .map(|seed| {
            let classes = 2 + (seed as usize) % 2;
            let generator = Generator { rows: 60, noise: 3, classes, seed, ..Generator::default() };
            generator.generate().map(|generated| generated.data)
        })
        .collect();
    let tables = tables.map_err(failed)?;
    // Mostly a short fit, so that there are many; every tenth is the default.
    let fit = |i: usize| {
        let data = &tables[i % tables.len()];
        let form = match i % 10 {
            0 => return Model::fit(data, Svml::default()),
            1 => Form::Full,
            k if k % 2 == 0 => Form::Sphere,
            _ => Form::Diagonal,
        };
        Model::fit(data, Svml { form: form.into(), cross_fit: false, ..Svml::default() })
    };
    let started = Instant::now();
    let (fits_warm, fits_end) = measured(options.fits, |i| fit(i).map(|_| ()).map_err(failed))?;
    let seconds = started.elapsed().as_secs_f64();
    let mut seen = vec![format!(
        "{} fits in one process, {seconds:.0} s: {}",
        options.fits,
        change(&fits_warm, &fits_end)
    )];

    let (model, x) = (fit(0).map_err(failed)?, tables[0].x());
    let rows: Vec<svml::Matrix> = (0..x.rows()).map(|row| x.select_rows(&[row])).collect();
    let started = Instant::now();
    let (warm, end) = measured(options.predictions, |i| {
        let row = &rows[i % rows.len()];
        model.predict(row).and_then(|_| model.probabilities(row)).map(|_| ()).map_err(failed)
    })?;
    seen.push(format!(
        "{} predictions with probabilities, one row each, {:.0} s: {}",
        options.predictions,
        started.elapsed().as_secs_f64(),
        change(&warm, &end)
    ));
    let flat = |warm: &Held, end: &Held| {
        end.megabytes <= (1.0 + GROWTH) * warm.megabytes
            && end.files <= warm.files
            && end.threads <= warm.threads
    };
    let met = flat(&fits_warm, &fits_end) && flat(&warm, &end);
    Record::now("soak", met, seen).append(results)?;
    met.then_some(()).ok_or_else(|| "the process grows".to_owned())
}

/// Does something often; what is held after the first part, and at the end.
fn measured(
    times: usize,
    mut work: impl FnMut(usize) -> Result<(), String>,
) -> Result<(Held, Held), String> {
    let warm = times / WARM;
    (0..warm).try_for_each(&mut work)?;
    let held = Held::now()?;
    (warm..times).try_for_each(work)?;
    Ok((held, Held::now()?))
}

fn change(warm: &Held, end: &Held) -> String {
    format!(
        "memory {:.1} MB after a tenth, {:.1} MB at the end; open files {} and {}; threads {} and {}.",
        warm.megabytes, end.megabytes, warm.files, end.files, warm.threads, end.threads
    )
}
