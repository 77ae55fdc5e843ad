//! The same data give the same model: for any number of threads, any order of rows, run after run, bit for bit; on other
//! instruction sets and in a build with debug assertions, as close as rounding allows.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use svml::Generator;

use super::record::Record;
use super::scratch::{self, Random, Svml, run, write};

/// What is asked for.
#[derive(Args)]
pub struct Determinism {
    #[command(flatten)]
    svml: Svml,
    /// The same command, built with debug assertions (`cargo build -p svml-cli`)
    #[arg(long, default_value = "target/debug/svml", value_name = "PATH")]
    debug: PathBuf,
    /// The same command for another processor, such as aarch64; runs with qemu-user
    #[arg(long, value_name = "PATH")]
    aarch64: Option<PathBuf>,
    /// Seed of the orders of rows
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    seed: u64,
}

/// Numbers of threads that are tried.
const THREADS: [usize; 7] = [1, 2, 3, 4, 8, 16, 64];
/// Further runs with the same arguments.
const REPEATS: usize = 3;
/// Orders of rows that are tried.
const ORDERS: usize = 3;
/// Rows that two builds decide on.
const DECIDED: usize = 20_000;
/// How far decision values of two builds may be apart, relative to the largest.
const CLOSE: f64 = 1e-9;
/// The share of rows that must get the same label.
const SAME_LABELS: f64 = 0.9999;

/// A table and how it is fitted.
struct Case {
    name: &'static str,
    rows: usize,
    classes: usize,
    options: &'static [&'static str],
}

const CASES: [Case; 6] = [
    Case { name: "default", rows: 400, classes: 2, options: &[] },
    Case { name: "five classes", rows: 400, classes: 5, options: &[] },
    Case { name: "full", rows: 300, classes: 2, options: &["--form", "full"] },
    Case { name: "landmarks", rows: 3000, classes: 3, options: &["--landmarks", "100"] },
    Case { name: "grid", rows: 300, classes: 2, options: &["--method", "euclidean"] },
    Case { name: "LMNN", rows: 300, classes: 3, options: &["--method", "lmnn"] },
];

/// Runs the check.
pub fn check(options: &Determinism, results: &Path) -> Result<(), String> {
    let svml = options.svml.path()?;
    let scratch = tempfile::tempdir().map_err(|e| e.to_string())?;
    let folder = scratch.path();
    let mut random = Random(options.seed);
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());

    let (mut same, mut compared) = (0, 0);
    for case in &CASES {
        let generator =
            Generator { rows: case.rows, classes: case.classes, ..Generator::default() };
        write(folder, "t.csv", &scratch::table(&generator, |_| ())?)?;
        let first = fit(&svml, folder, case, "1")?;
        for threads in THREADS.iter().copied().chain([2; REPEATS]) {
            compared += 1;
            match fit(&svml, folder, case, &threads.to_string())? == first {
                true => same += 1,
                false => wrong.push(format!("{}: {threads} threads give other bytes.", case.name)),
            }
        }
    }
    seen.push(format!(
        "Model files of {} fits with {THREADS:?} threads and {REPEATS} repeats: {same} of {compared} have the bytes of the first.",
        CASES.len()
    ));

    let (mut same, mut compared) = (0, 0);
    for case in &CASES {
        let generator =
            Generator { rows: case.rows, classes: case.classes, ..Generator::default() };
        let fresh = Generator { rows: 2000, seed: 1, ..generator.clone() };
        write(folder, "new.csv", &scratch::table(&fresh, |_| ())?)?;
        let mut decided = Vec::new();
        for _ in 0..=ORDERS {
            let shuffled = scratch::table(&generator, |rows| {
                if !decided.is_empty() {
                    random.shuffle(rows);
                }
            })?;
            write(folder, "t.csv", &shuffled)?;
            fit(&svml, folder, case, "2")?;
            decided.push(decisions(&Runner::plain(&svml), folder)?);
        }
        for (i, other) in decided.iter().enumerate().skip(1) {
            compared += 1;
            match *other == decided[0] {
                true => same += 1,
                false => wrong.push(format!("{}: order {i} decides otherwise.", case.name)),
            }
        }
    }
    seen.push(format!(
        "Decisions about 2,000 new rows after fits with {ORDERS} other orders of the rows: {same} of {compared} are the same bits."
    ));

    // One model, read by builds and processors that round differently; and fits by each of them.
    let generator = Generator { rows: 400, ..Generator::default() };
    write(folder, "t.csv", &scratch::table(&generator, |_| ())?)?;
    let fresh = Generator { rows: DECIDED, seed: 1, ..generator };
    write(folder, "new.csv", &scratch::table(&fresh, |_| ())?)?;
    fit(&svml, folder, &CASES[0], "2")?;
    fs::copy(folder.join("m.svml"), folder.join("native.svml")).map_err(|e| e.to_string())?;
    let native = decisions(&Runner::plain(&svml), folder)?;
    for runner in runners(&svml, options) {
        if !runner.works(folder) {
            seen.push(format!("{}: not tried, because it does not run here.", runner.name));
            continue;
        }
        fs::copy(folder.join("native.svml"), folder.join("m.svml")).map_err(|e| e.to_string())?;
        let apart = Apart::of(&native, &decisions(&runner, folder)?);
        run_with(&runner, folder, &["train", "t.csv", "-o", "m.svml", "-q"])?;
        let learned = Apart::of(&native, &decisions(&runner, folder)?);
        seen.push(format!(
            "{}: decisions of one model about {DECIDED} rows are {:.0e} apart at most (relative to the largest), {:.3} % of the labels are the same; after a fit of its own {:.0e} and {:.3} %.",
            runner.name,
            apart.largest,
            100.0 * apart.same_labels,
            learned.largest,
            100.0 * learned.same_labels
        ));
        if apart.largest > CLOSE || apart.same_labels < SAME_LABELS {
            wrong.push(format!("{}: decisions are too far apart.", runner.name));
        }
    }
    let met = wrong.is_empty();
    seen.extend(wrong);
    Record::now("determinism", met, seen).append(results)?;
    met.then_some(()).ok_or_else(|| "results differ where they should not".to_owned())
}

/// A way to run a build of the command.
struct Runner {
    name: &'static str,
    /// The emulator with its arguments, if there is one, and the command.
    words: Vec<PathBuf>,
}

impl Runner {
    fn plain(svml: &Path) -> Self {
        Self { name: "as it is", words: vec![svml.to_owned()] }
    }

    fn works(&self, folder: &Path) -> bool {
        run_with(self, folder, &["--version"]).is_ok()
    }
}

/// The processors of an emulator have no AVX-512, or nothing beyond SSE4; that holds for all libraries in the program.
fn runners(svml: &Path, options: &Determinism) -> Vec<Runner> {
    // Commands run in a folder of their own, from which a relative path would lead nowhere.
    let debug = fs::canonicalize(&options.debug).unwrap_or_else(|_| options.debug.clone());
    let emulated = |name, emulator: &[&str], program: &Path| Runner {
        name,
        words: emulator.iter().map(PathBuf::from).chain([program.to_owned()]).collect(),
    };
    let mut runners = vec![
        emulated(
            "AVX2 and FMA, no AVX-512 (qemu, Haswell)",
            &["qemu-x86_64", "-cpu", "Haswell"],
            svml,
        ),
        emulated("neither AVX nor FMA (qemu, Nehalem)", &["qemu-x86_64", "-cpu", "Nehalem"], svml),
        emulated("with debug assertions", &[], &debug),
    ];
    if let Some(program) = &options.aarch64 {
        runners.push(emulated("aarch64 (qemu)", &["qemu-aarch64"], program));
    }
    runners
}

fn run_with(runner: &Runner, folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let [program, before @ ..] = runner.words.as_slice() else { return Err("no program".into()) };
    let mut words: Vec<String> = before.iter().map(|word| word.display().to_string()).collect();
    words.extend(arguments.iter().map(|&word| word.to_owned()));
    run(program, folder, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Fits and gives the bytes of the model.
fn fit(svml: &Path, folder: &Path, case: &Case, threads: &str) -> Result<Vec<u8>, String> {
    let fixed = ["train", "t.csv", "-o", "m.svml", "-q", "--threads", threads];
    run(svml, folder, &[&fixed[..], case.options].concat())?;
    fs::read(folder.join("m.svml")).map_err(|e| e.to_string())
}

/// What the model in the folder decides about the new rows there, as text.
fn decisions(runner: &Runner, folder: &Path) -> Result<String, String> {
    run_with(runner, folder, &["predict", "m.svml", "new.csv", "--decision", "-q"])
}

/// How far two tables of labels and decision values are apart.
struct Apart {
    largest: f64,
    same_labels: f64,
}

impl Apart {
    fn of(one: &str, other: &str) -> Self {
        let cells = |line: &str| -> (String, Vec<f64>) {
            let (label, values) = line.split_once(',').unwrap_or((line, ""));
            (label.to_owned(), values.split(',').filter_map(|v| v.parse().ok()).collect())
        };
        let (mut largest, mut scale, mut same, mut rows) = (0.0_f64, f64::MIN_POSITIVE, 0, 0);
        for (a, b) in one.lines().zip(other.lines()).skip(1) {
            let ((a, a_values), (b, b_values)) = (cells(a), cells(b));
            rows += 1;
            same += usize::from(a == b);
            for (p, q) in a_values.iter().zip(&b_values) {
                largest = largest.max((p - q).abs());
                scale = scale.max(p.abs());
            }
        }
        Self { largest: largest / scale, same_labels: same as f64 / rows.max(1) as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_differ_are_told_apart() {
        let (one, other) = ("class,d\na,1.0\nb,-2.0\n", "class,d\na,1.0\na,-1.5\n");
        let apart = Apart::of(one, one);
        assert_eq!((apart.largest, apart.same_labels), (0.0, 1.0));
        let apart = Apart::of(one, other);
        assert_eq!((apart.largest, apart.same_labels), (0.25, 0.5));
    }
}
