//! Jobs, and the file of their results.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use svml::Stop;

use crate::probabilities::Probabilities;

/// Something to measure. Its parts are its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    /// The data: a set of the paper, a table of the suite, or a recipe of generated data.
    pub data: String,
    /// Seed of the split, or of the generated rows.
    pub seed: u64,
    /// The method.
    pub method: String,
}

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// Share of the test rows misclassified.
    pub error: f64,
    /// Seconds of the fit.
    pub seconds: f64,
    /// Processor seconds of the fit, of all threads together: other work on the computer lengthens them
    /// little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<f64>,
    /// Form of the metric; of several members `mean`; of other programs nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub form: String,
    /// C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Number of support vectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<usize>,
    /// Why learning ended, if something was learned step by step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// What was measured of the probabilities, if that was asked for.
    #[serde(flatten)]
    pub probabilities: Option<Probabilities>,
}

/// Where and when the results that follow it in the file were measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Header {
    /// The day, as 2000-12-31.
    pub date: String,
    /// Processor, threads and system.
    #[serde(rename = "machine")]
    pub computer: String,
    /// The programs and their versions.
    pub versions: String,
}

/// Results that were read from one file or from several.
#[derive(Default)]
pub struct Table {
    done: HashMap<Job, Measured>,
    headers: Vec<Header>,
}

impl Table {
    /// The results of several files together; of two results of one job the first counts.
    pub fn read(paths: &[PathBuf]) -> Result<Self, String> {
        let mut table = Self::default();
        for path in paths {
            let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            table.take_lines(path, &text)?;
        }
        Ok(table)
    }

    /// Results that were not read from a file.
    #[cfg(test)]
    pub fn of(results: impl Iterator<Item = Measured>) -> Self {
        let done = results.map(|measured| (measured.job.clone(), measured)).collect();
        Self { done, headers: Vec::new() }
    }

    /// Takes in the lines of a file and says how many bytes are whole lines.
    fn take_lines(&mut self, path: &Path, text: &str) -> Result<usize, String> {
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (number, line) in text[..whole].lines().enumerate() {
            let failed = |e| format!("{} line {}: {e}", path.display(), number + 1);
            if line.starts_with("{\"date\"") {
                self.headers.push(serde_json::from_str(line).map_err(failed)?);
                continue;
            }
            let measured: Measured = serde_json::from_str(line).map_err(failed)?;
            self.done.entry(measured.job.clone()).or_insert(measured);
        }
        Ok(whole)
    }

    /// Result of a job, if it is there.
    pub fn get(&self, job: &Job) -> Option<&Measured> {
        self.done.get(job)
    }

    /// All results, in no order.
    pub fn all(&self) -> impl Iterator<Item = &Measured> {
        self.done.values()
    }

    /// Where and when they were measured, each once.
    pub fn headers(&self) -> Vec<&Header> {
        let mut headers: Vec<&Header> = self.headers.iter().collect();
        headers.sort();
        headers.dedup();
        headers
    }

    /// Seconds that some jobs will take: those of the same data and method so far, or else in
    /// proportion to a guess.
    fn seconds_of(&self, jobs: &[&Job], guess: &impl Fn(&Job) -> f64) -> f64 {
        let mut known: HashMap<(&str, &str), (f64, f64)> = HashMap::new();
        let (mut spent, mut guessed) = (0.0, 0.0);
        for Measured { job, seconds, .. } in self.done.values() {
            let sum = known.entry((&job.data, &job.method)).or_default();
            *sum = (sum.0 + seconds, sum.1 + 1.0);
            spent += seconds;
            guessed += guess(job);
        }
        let rate = spent / f64::max(guessed, f64::MIN_POSITIVE);
        let seconds = |job: &&Job| match known.get(&(job.data.as_str(), job.method.as_str())) {
            Some((sum, count)) => sum / count,
            None => rate * guess(job),
        };
        jobs.iter().map(seconds).sum()
    }
}

/// The results so far, and the file that they are appended to.
pub struct Results {
    file: File,
    table: Table,
}

impl Results {
    /// Opens the file, or begins it. A last line that was cut off by a crash is taken away.
    pub fn open(path: &Path) -> Result<Self, String> {
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let text = match fs::read_to_string(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            text => text.map_err(failed)?,
        };
        let mut table = Table::default();
        let whole = table.take_lines(path, &text)?;
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        if let Ok(file) = &mut file {
            file.set_len(whole as u64).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        Ok(Self { file: file.map_err(failed)?, table })
    }

    /// Result of a job, if it is there.
    pub fn get(&self, job: &Job) -> Option<&Measured> {
        self.table.get(job)
    }

    fn add(&mut self, measured: Measured) -> Result<(), String> {
        self.append(&measured)?;
        self.table.done.insert(measured.job.clone(), measured);
        Ok(())
    }

    /// Says where and when the results that follow are measured, unless the file says so last.
    pub fn begin(&mut self, header: Header) -> Result<(), String> {
        if self.table.headers.last() != Some(&header) {
            self.append(&header)?;
            self.table.headers.push(header);
        }
        Ok(())
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), String> {
        let line = serde_json::to_string(line).map_err(|e| e.to_string())? + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|e| format!("the results cannot be written: {e}"))
    }

    /// Runs what is not there yet, one after the other so that times can be compared, with a line
    /// on progress now and then. How long the rest will take is told from the times so far;
    /// `guess` is how much a job takes in comparison with others of which nothing is known yet.
    pub fn run(
        &mut self,
        plan: &[Job],
        guess: impl Fn(&Job) -> f64,
        mut measure: impl FnMut(&Job) -> Result<Measured, String>,
    ) -> Result<(), String> {
        let open: Vec<&Job> = plan.iter().filter(|job| self.get(job).is_none()).collect();
        let mut shown = Instant::now();
        for (count, job) in open.iter().enumerate() {
            self.add(measure(job)?)?;
            let rest = &open[count + 1..];
            if rest.is_empty() || shown.elapsed().as_secs() >= 10 {
                shown = Instant::now();
                eprintln!(
                    "{:5} of {} jobs, {} left ({}, {})",
                    count + 1,
                    open.len(),
                    duration(self.table.seconds_of(rest, &guess)),
                    job.data,
                    job.method
                );
            }
        }
        Ok(())
    }
}

/// A time as people say it.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{:.0} s", s.abs()),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn measured(seed: u64) -> Measured {
        let job = Job { data: "set".to_owned(), seed, method: "m".to_owned() };
        let (cost, support) = (Some(1.5), Some(20));
        let (form, stop) = ("full".to_owned(), Some(Stop::EarlyStopping));
        Measured {
            job,
            error: 0.25,
            seconds: 0.5,
            processor: None,
            form,
            cost,
            support,
            stop,
            probabilities: None,
        }
    }

    #[test]
    fn an_interrupted_run_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results/file.jsonl");
        let plan: Vec<Job> = (0..4).map(|seed| measured(seed).job).collect();
        let stop = |job: &Job| {
            if job.seed == 2 { Err("stop".to_owned()) } else { Ok(measured(job.seed)) }
        };
        assert_eq!(Results::open(&path).unwrap().run(&plan, |_| 1.0, stop), Err("stop".to_owned()));
        // A line that was being written when the computer went down.
        let mut text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        text.push_str("{\"data\":\"set\",\"se");
        fs::write(&path, &text).unwrap();

        let mut ran = Vec::new();
        let mut results = Results::open(&path).unwrap();
        let run = results.run(
            &plan,
            |_| 1.0,
            |job| {
                ran.push(job.seed);
                Ok(measured(job.seed))
            },
        );
        run.unwrap();
        assert_eq!(ran, [2, 3]);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
        assert!(plan.iter().all(|job| results.get(job).is_some()));
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.jsonl");
        fs::write(&path, "{}\n").unwrap();
        let message = Results::open(&path).map(|_| ()).unwrap_err();
        assert!(message.contains("line 1"), "{message}");
    }

    /// Files of former versions call the rows for early stopping the hold-out rows.
    #[test]
    fn former_reasons_to_stop_are_read() {
        let line = "{\"data\":\"set\",\"seed\":1,\"method\":\"m\",\"error\":0.5,\"seconds\":1.0,\"form\":\"full\",\"stop\":\"hold_out\"}\n";
        let mut table = Table::default();
        table.take_lines(Path::new("former"), line).unwrap();
        assert_eq!(table.get(&measured(1).job).and_then(|m| m.stop), Some(Stop::EarlyStopping));
    }

    #[test]
    fn files_are_read_together_and_the_first_counts() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join("a.jsonl"), folder.path().join("b.jsonl")];
        let header = |date: &str| Header {
            date: date.to_owned(),
            computer: "m".to_owned(),
            versions: "v".to_owned(),
        };
        for (k, path) in paths.iter().enumerate() {
            let mut results = Results::open(path).unwrap();
            results.begin(header("2001-02-03")).unwrap();
            results.begin(header("2001-02-03")).unwrap();
            let plan = [measured(k as u64).job, measured(7).job];
            let measure = |job: &Job| Ok(Measured { error: k as f64, ..measured(job.seed) });
            results.run(&plan, |_| 1.0, measure).unwrap();
        }
        let table = Table::read(&paths).unwrap();
        assert_eq!(table.headers(), [&header("2001-02-03")]);
        assert_eq!(table.all().count(), 3);
        assert_eq!(table.get(&measured(7).job).map(|m| m.error), Some(0.0));
        assert_eq!(table.get(&measured(1).job).and_then(|m| m.stop), Some(Stop::EarlyStopping));
        assert!(Table::read(&[folder.path().join("none")]).is_err());
    }

    #[test]
    fn the_rest_is_told_from_the_times_of_the_same_kind() {
        let mut table = Table::default();
        for seed in 0..4 {
            let measured = Measured { seconds: seed as f64, ..measured(seed) };
            table.done.insert(measured.job.clone(), measured);
        }
        let known = measured(9).job;
        let new = Job { method: "other".to_owned(), ..known.clone() };
        let guess = |job: &Job| if job.method == "other" { 10.0 } else { 1.0 };
        assert_eq!(table.seconds_of(&[&known, &new], &guess), 1.5 + 15.0);
        assert_eq!([duration(3.0), duration(600.0), duration(9000.0)], ["3 s", "10 min", "2.5 h"]);
    }
}
