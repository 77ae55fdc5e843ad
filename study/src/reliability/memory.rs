//! Memory under real limits: whatever is asked of the command, it gives a result or an error, and is never ended by the
//! system; and what it says beforehand that it will need is about what it takes.
//!
//! Each case runs in a process of its own whose address space is limited by the shell (`ulimit -v`).

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use clap::Args;

use super::record::Record;
use super::scratch::Random;

/// How it is run.
#[derive(Args)]
pub struct Options {
    /// The command to attack
    #[arg(long, default_value = "target/release/svml", value_name = "PATH")]
    svml: PathBuf,
    /// Seed of the tables
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Whether to leave out what takes minutes
    #[arg(long)]
    fast: bool,
}

/// Limits on the address space, in megabytes.
const LIMITS: [u64; 8] = [32, 64, 128, 192, 256, 512, 1024, 2048];
/// How much the peak may be above what was said before, at most.
const TOLERANCE: f64 = 0.15;
/// Time between two looks at the peak of a process.
const LOOK: Duration = Duration::from_millis(5);

/// Runs all cases and appends what was seen.
pub fn run(options: &Options, results: &Path) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("svml-memory-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let record =
        Attack { svml: &options.svml, folder: &folder, seed: options.seed }.all(options.fast);
    // Whatever happened, nothing stays behind.
    let cleared = fs::remove_dir_all(&folder);
    let record = record?;
    cleared.map_err(|e| format!("{}: {e}", folder.display()))?;
    record.append(results)?;
    if record.met { Ok(()) } else { Err("the gate is not met".to_owned()) }
}

/// How one process ended.
struct Seen {
    status: ExitStatus,
    /// Most bytes that were in memory at a time.
    peak: u64,
    /// What it said.
    text: String,
}

impl Seen {
    /// A result, or an error in words with exit code 1; an abort, a signal or a panic is neither.
    fn is_answer(&self) -> bool {
        match self.status.code() {
            Some(0) => true,
            Some(1) => self.text.contains("svml: ") || self.text.contains("error: "),
            _ => false,
        }
    }

    /// Whether memory ran out for something that is not counted beforehand, so that Rust ended the program and only a last
    /// message could be written.
    fn is_last_resort(&self) -> bool {
        self.text.contains("memory allocation of")
    }

    fn is_result(&self) -> bool {
        self.status.success()
    }

    /// What it said that it would need, in bytes.
    fn said(&self) -> Option<f64> {
        let (_, after) = self.text.split_once("up to about ")?;
        let mut words = after.split_whitespace();
        let number: f64 = words.next()?.parse().ok()?;
        let unit = match words.next()? {
            "GB" => 1e9,
            "MB" => 1e6,
            _ => return None,
        };
        Some(number * unit)
    }
}

struct Attack<'a> {
    svml: &'a Path,
    folder: &'a Path,
    seed: u64,
}

impl Attack<'_> {
    fn all(&self, fast: bool) -> Result<Record, String> {
        let mut seen = Vec::new();
        let mut met = true;
        let (mut runs, mut results, mut last, mut bad) = (0_usize, 0_usize, 0_usize, Vec::new());
        for (args, input) in self.cases(fast)? {
            for limit in LIMITS {
                let one = self.limited(limit, &args, input.as_deref())?;
                runs += 1;
                results += usize::from(one.is_result());
                last += usize::from(one.is_last_resort());
                if !one.is_answer() {
                    bad.push(format!(
                        "{} under {limit} MB: {}, {}",
                        args.join(" "),
                        one.status,
                        one.text.lines().last().unwrap_or_default()
                    ));
                }
            }
        }
        met &= bad.is_empty();
        seen.push(format!(
            "{runs} runs of train, show, plot, export, explain and predict under limits of {} MB to {} MB on the address space: {results} results, {} errors with exit code 1, {last} of them only after an allocation had failed; {} ended otherwise.",
            LIMITS[0],
            LIMITS[LIMITS.len() - 1],
            runs - results - bad.len(),
            bad.len()
        ));
        seen.extend(bad.iter().map(|what| format!("Ended otherwise: {what}.")));
        for (what, said, peak) in self.estimates(fast)? {
            let share = peak / said - 1.0;
            met &= share <= TOLERANCE;
            seen.push(format!(
                "{what}: {:.0} MB said before, {:.0} MB at most in memory, {:+.0} %.",
                said / 1e6,
                peak / 1e6,
                100.0 * share
            ));
        }
        if fast {
            seen.push(
                "Without the fits that take minutes, and so without a look at what is said before."
                    .to_owned(),
            );
            return Ok(Record::now("memory", met, seen));
        }
        seen.push(
            "What is said before is for tables whose every row becomes a support vector; tables that are easy to learn stay below it.".to_owned(),
        );
        Ok(Record::now("memory", met, seen))
    }

    /// Arguments of the command, and what stands on its standard input.
    #[allow(clippy::type_complexity)]
    fn cases(&self, fast: bool) -> Result<Vec<(Vec<String>, Option<PathBuf>)>, String> {
        let path = |name: &str| self.folder.join(name).display().to_string();
        let mut cases: Vec<(Vec<String>, Option<PathBuf>)> = Vec::new();
        let mut case = |args: &[&str]| {
            cases.push((args.iter().map(|arg| (*arg).to_owned()).collect(), None));
        };
        // Few steps: it is memory that is looked at.
        let few = ["--set", "max_iterations=2"];
        let sizes: &[usize] = if fast { &[500, 1500] } else { &[1000, 3000, 4900, 20_000] };
        let model = path("train.svml");
        for &rows in sizes {
            let table = self.table(&format!("rows{rows}.csv"), rows, 10)?;
            case(&["train", &table, "-o", &model, few[0], few[1]]);
        }
        let exact = self.table("exact.csv", 12_000, 5)?;
        case(&["train", &exact, "-o", &model, "--exact", "--time-limit", "5"]);
        let widths: &[usize] = if fast { &[1000] } else { &[5000, 20_000, 100_000] };
        for &columns in widths {
            let table = self.table(&format!("wide{columns}.csv"), 10, columns)?;
            let wide = path(&format!("wide{columns}.svml"));
            self.unlimited(&["train", &table, "-o", &wide, "--form", "diagonal"])?;
            case(&["train", &table, "-o", &model]);
            case(&["show", &wide]);
            case(&["plot", &wide, &table, "-o", &path("map.svg")]);
            case(&["plot", &wide, "--kind", "metric", "-o", &path("metric.svg")]);
            case(&["export", &wide, "--to", "onnx", "-o", &path("model.onnx")]);
            case(&["export", &wide, "--to", "libsvm", "-o", &path("model.libsvm")]);
            case(&["explain", &wide, &table, "--row", "2"]);
            for form in ["full", "rank=50"] {
                case(&["train", &table, "-o", &model, "--form", form, "--time-limit", "5"]);
            }
            for method in ["nca", "lmnn", "itml"] {
                case(&["train", &table, "-o", &model, "--method", method, "--time-limit", "5"]);
            }
        }
        let small = self.table("small.csv", 300, 20)?;
        let trained = path("small.svml");
        self.unlimited(&["train", &small, "-o", &trained])?;
        let large = self.table("large.csv", if fast { 100_000 } else { 1_000_000 }, 20)?;
        case(&["predict", &trained, &large, "-o", &path("predicted.csv")]);
        case(&["transform", &trained, &large, "-o", &path("mapped.csv")]);
        let piped = ["predict", trained.as_str(), "-", "-o"].map(str::to_owned);
        let piped = [piped.to_vec(), vec![path("predicted.csv")]].concat();
        cases.push((piped, Some(PathBuf::from(&large))));
        Ok(cases)
    }

    /// Fits whose need is said before: what it is, how many bytes were said and how many were taken.
    fn estimates(&self, fast: bool) -> Result<Vec<(String, f64, f64)>, String> {
        let model = self.folder.join("estimate.svml").display().to_string();
        let mut found = Vec::new();
        let cases: &[(usize, usize, &[&str])] = match fast {
            true => &[],
            false => &[
                (4900, 10, &[]),
                (4900, 10, &["--form", "sphere"]),
                (4900, 10, &["--form", "diagonal"]),
                (9000, 10, &["--exact", "--form", "sphere"]),
                (60_000, 50, &[]),
            ],
        };
        for (rows, columns, options) in cases {
            let table = self.table(&format!("said{rows}.csv"), *rows, *columns)?;
            let few = ["train", &table, "-o", &model, "--set", "max_iterations=2"];
            let one = self.unlimited(&[&few, *options].concat())?;
            let what = format!("{rows} x {columns} rows, svml train {}", options.join(" "));
            let said = one.said().ok_or_else(|| format!("{what}: no word about memory"))?;
            found.push((what, said, one.peak as f64));
        }
        Ok(found)
    }

    /// A table of normal numbers whose classes, a and b, have nothing to do with them.
    fn table(&self, name: &str, rows: usize, columns: usize) -> Result<String, String> {
        let path = self.folder.join(name);
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        let mut out = BufWriter::new(File::create(&path).map_err(failed)?);
        let mut random = Random(self.seed ^ (rows * columns) as u64);
        for _ in 0..rows {
            for _ in 0..columns {
                write!(out, "{:.3},", random.normal()).map_err(failed)?;
            }
            writeln!(out, "{}", if random.bits() & 1 == 0 { "a" } else { "b" }).map_err(failed)?;
        }
        out.flush().map_err(failed)?;
        Ok(path.display().to_string())
    }

    fn limited(
        &self,
        megabytes: u64,
        args: &[String],
        input: Option<&Path>,
    ) -> Result<Seen, String> {
        let mut command = Command::new("sh");
        let limit = format!("ulimit -v {}; exec \"$0\" \"$@\"", megabytes * 1024);
        command.args(["-c", &limit]).arg(self.svml).args(args);
        watch(command, input)
    }

    /// What must succeed.
    fn unlimited(&self, args: &[&str]) -> Result<Seen, String> {
        let mut command = Command::new(self.svml);
        command.args(args);
        let seen = watch(command, None)?;
        match seen.is_result() {
            true => Ok(seen),
            false => Err(format!("{}: {}, {}", args.join(" "), seen.status, seen.text)),
        }
    }
}

/// Runs a command to its end.
fn watch(mut command: Command, input: Option<&Path>) -> Result<Seen, String> {
    let failed = |e: std::io::Error| format!("{command:?}: {e}");
    let stdin = match input {
        Some(path) => Stdio::from(File::open(path).map_err(failed)?),
        None => Stdio::null(),
    };
    let failed = |e: std::io::Error| e.to_string();
    command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let stderr = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stderr) = stderr {
            let _ = stderr.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let place = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        // The peak of a process is known as long as it lives.
        peak = peak.max(peak_in(&fs::read_to_string(&place).unwrap_or_default()));
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None => thread::sleep(LOOK),
        }
    };
    let text = reader.join().map_err(|_| "reading what was said failed".to_owned())?;
    Ok(Seen { status, peak, text })
}

/// The largest resident size, in bytes, in the text of /proc/PID/status.
fn peak_in(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    1024 * number.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_and_what_was_said_are_found() {
        assert_eq!(peak_in("Name:\tsvml\nVmPeak:\t  9 kB\nVmHWM:\t   12 kB\n"), 12 * 1024);
        let ended = Command::new("sh").args(["-c", "exit 1"]).status().unwrap();
        let seen = |text: &str| Seen { status: ended, peak: 0, text: text.to_owned() };
        assert_eq!(seen("This will need up to about 0.6 GB of memory.").said(), Some(0.6e9));
        assert_eq!(seen("This will need up to about 620 MB of memory.").said(), Some(620e6));
        assert!(seen("svml: x.csv: more than the limit").is_answer());
        let aborted = seen("memory allocation of 40000 bytes failed");
        assert!(!aborted.is_answer() && aborted.is_last_resort());
    }
}
