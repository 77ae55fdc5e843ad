//! Jobs, and the file of their results.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Something to measure. Its parts are its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Job {
    /// The data: a set of the paper, or a recipe of generated data.
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
    /// Form of the metric.
    pub form: String,
}

/// The results so far, and the file that they are appended to.
pub struct Results {
    file: File,
    done: HashMap<Job, Measured>,
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
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut done = HashMap::new();
        for (number, line) in text[..whole].lines().enumerate() {
            let measured: Measured = serde_json::from_str(line)
                .map_err(|e| format!("{} line {}: {e}", path.display(), number + 1))?;
            done.insert(measured.job.clone(), measured);
        }
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        if let Ok(file) = &mut file {
            file.set_len(whole as u64).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        Ok(Self { file: file.map_err(failed)?, done })
    }

    /// Result of a job, if it is there.
    pub fn get(&self, job: &Job) -> Option<&Measured> {
        self.done.get(job)
    }

    fn add(&mut self, measured: Measured) -> Result<(), String> {
        let line = serde_json::to_string(&measured).map_err(|e| e.to_string())? + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|e| format!("the results cannot be written: {e}"))?;
        self.done.insert(measured.job.clone(), measured);
        Ok(())
    }

    /// Runs what is not there yet, one after the other so that times can be compared, with a line
    /// on progress now and then.
    pub fn run(
        &mut self,
        plan: &[Job],
        mut measure: impl FnMut(&Job) -> Result<Measured, String>,
    ) -> Result<(), String> {
        let open: Vec<&Job> = plan.iter().filter(|job| !self.done.contains_key(job)).collect();
        let (started, mut shown) = (Instant::now(), 0);
        for (count, job) in open.iter().enumerate() {
            self.add(measure(job)?)?;
            let percent = 100 * (count + 1) / open.len();
            if percent > shown {
                shown = percent;
                let spent = started.elapsed().as_secs_f64();
                let left = spent / (count + 1) as f64 * (open.len() - count - 1) as f64;
                eprintln!(
                    "{percent:3} % of {} jobs, {left:.0} s left ({}, {})",
                    open.len(),
                    job.data,
                    job.method
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn measured(seed: u64) -> Measured {
        let job = Job { data: "set".to_owned(), seed, method: "m".to_owned() };
        Measured { job, error: 0.25, seconds: 0.5, form: "full".to_owned() }
    }

    #[test]
    fn an_interrupted_run_goes_on_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results/file.jsonl");
        let plan: Vec<Job> = (0..4).map(|seed| measured(seed).job).collect();
        let stop = |job: &Job| {
            if job.seed == 2 { Err("stop".to_owned()) } else { Ok(measured(job.seed)) }
        };
        assert_eq!(Results::open(&path).unwrap().run(&plan, stop), Err("stop".to_owned()));
        // A line that was being written when the machine went down.
        let mut text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        text.push_str("{\"data\":\"set\",\"se");
        fs::write(&path, &text).unwrap();

        let mut ran = Vec::new();
        let mut results = Results::open(&path).unwrap();
        let run = results.run(&plan, |job| {
            ran.push(job.seed);
            Ok(measured(job.seed))
        });
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
}
