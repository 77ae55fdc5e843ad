//! Two builds of the command, in turn on the same work: what the newer one has lost or gained.
//!
//! Each case is run by both, one after the other and again, so that whatever else the computer does meets both. The ratio
//! of a case is the median of the ratios of these pairs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use svml::Generator;

use super::record::Record;
use super::scratch::{self, Svml, run, write};

/// What is asked for.
#[derive(Args)]
pub struct Speed {
    #[command(flatten)]
    svml: Svml,
    /// The command of the last release, or whatever the other is to be compared with
    #[arg(long, value_name = "PATH")]
    before: PathBuf,
    /// What the record calls it, such as the commit of a build that was no release [default: its version]
    #[arg(long, value_name = "NAME")]
    called: Option<String>,
    /// How often each of the two runs each case
    #[arg(long, default_value_t = 7, value_name = "N")]
    repeats: usize,
}

/// How much slower a case may have become.
const LOSS: f64 = 0.05;

/// A table, and what is done with it.
struct Case {
    name: &'static str,
    rows: usize,
    noise: usize,
    classes: usize,
    arguments: &'static [&'static str],
}

const fn case(
    name: &'static str,
    (rows, noise, classes): (usize, usize, usize),
    arguments: &'static [&'static str],
) -> Case {
    Case { name, rows, noise, classes, arguments }
}

const TRAIN: &[&str] = &["train", "t.csv", "-o", "new.svml", "-q"];

const CASES: [Case; 12] = [
    case("default", (1000, 8, 2), TRAIN),
    case("default, many rows", (4000, 8, 2), TRAIN),
    case("default, five classes", (1000, 8, 5), TRAIN),
    case("default, 60 columns", (600, 58, 2), TRAIN),
    case("sphere", (2000, 8, 2), &["train", "t.csv", "-o", "new.svml", "-q", "--form", "sphere"]),
    case("full", (1000, 8, 2), &["train", "t.csv", "-o", "new.svml", "-q", "--form", "full"]),
    case("paper", (1000, 8, 2), &["train", "t.csv", "-o", "new.svml", "-q", "--paper"]),
    case(
        "landmarks",
        (20_000, 8, 2),
        &["train", "t.csv", "-o", "new.svml", "-q", "--form", "diagonal", "--landmarks", "200"],
    ),
    case(
        "grid",
        (1000, 8, 2),
        &["train", "t.csv", "-o", "new.svml", "-q", "--method", "euclidean"],
    ),
    case("LMNN", (1000, 8, 3), &["train", "t.csv", "-o", "new.svml", "-q", "--method", "lmnn"]),
    case("predictions", (20_000, 8, 2), &["predict", "m.svml", "t.csv", "-o", "p.csv"]),
    case("a map", (1000, 8, 2), &["plot", "m.svml", "t.csv", "--kind", "map", "-o", "map.svg"]),
];

/// Runs the check.
pub fn check(options: &Speed, results: &Path) -> Result<(), String> {
    let svml = options.svml.path()?;
    let before = fs::canonicalize(&options.before)
        .map_err(|e| format!("{}: {e}", options.before.display()))?;
    let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
    let folder = scratch.path();
    let small = Generator { rows: 1000, noise: 8, ..Generator::default() };
    write(folder, "t.csv", &scratch::table(&small, |_| ())?)?;
    // Both read the model of the older one.
    run(&before, folder, &["train", "t.csv", "-o", "m.svml", "-q"])?;
    let mut lines = Vec::new();
    let mut slower = 0;
    for case in &CASES {
        let Case { name, rows, noise, classes, arguments } = *case;
        let generator = Generator { rows, noise, classes, ..Generator::default() };
        write(folder, "t.csv", &scratch::table(&generator, |_| ())?)?;
        let (mut ratios, mut seconds) = (Vec::new(), Vec::new());
        for _ in 0..options.repeats.max(1) {
            let old = timed(&before, folder, arguments)?;
            let new = timed(&svml, folder, arguments)?;
            ratios.push(new / old);
            seconds.push(new);
        }
        let ratio = median(ratios);
        slower += usize::from(ratio > 1.0 + LOSS);
        lines.push(format!("{name} ({rows} rows) {ratio:.2} ({:.2} s)", median(seconds)));
    }
    let version = match &options.called {
        Some(name) => name.clone(),
        None => run(&before, folder, &["--version"])?,
    };
    let seen = vec![
        format!(
            "Time of each case as a share of that of {} ({} runs of each, in turn): {}.",
            version.trim(),
            options.repeats,
            lines.join(", ")
        ),
        format!("{slower} of {} cases are more than {:.0} % slower.", CASES.len(), 100.0 * LOSS),
    ];
    let met = slower == 0;
    Record::now("speed", met, seen).append(results)?;
    met.then_some(()).ok_or_else(|| "some cases have become slower".to_owned())
}

fn timed(program: &Path, folder: &Path, arguments: &[&str]) -> Result<f64, String> {
    let started = Instant::now();
    run(program, folder, arguments)?;
    Ok(started.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
