//! The paper's study: its tables and figures, measured anew.

mod cells;
mod credit;
mod descent;
mod figures;
mod plan;
mod printed;
mod readme;
mod report;
mod verdict;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use svml::Dataset;
use svml::internals::folds::random_split;
use svml::internals::{UciSet, write_atomically};

use crate::computer;
use crate::jobs::{Job, Results, Table};
use crate::methods;

use credit::Credit;

#[cfg(test)]
pub use plan::METHODS;
pub use plan::{Scope, Shard};

/// What study/sklearn_times.py writes.
const SKLEARN_FILE: &str = "sklearn.jsonl";

/// What to do.
#[derive(Debug)]
pub struct Options {
    /// Folder of the data sets.
    pub data: PathBuf,
    /// Results files: the first is appended to, the report is made of all.
    pub results: Vec<PathBuf>,
    /// Folder of the results files if none is named, and of what was seen of credit.
    pub folder: PathBuf,
    /// The report.
    pub out: PathBuf,
    /// Folder of the figures.
    pub figures: PathBuf,
    /// A page that has a place for the short tables.
    pub readme: PathBuf,
    /// Only a share of the jobs, and no report.
    pub shard: Option<Shard>,
    /// Only the report and the figures that need no data.
    pub report_only: bool,
    /// Which jobs.
    pub scope: Scope,
}

/// Measures what is missing, and writes report and figures.
pub fn run(options: Options) -> Result<(), String> {
    let Options { data, mut results, folder, out, figures, readme, shard, report_only, scope } =
        options;
    scope.check()?;
    if results.is_empty() {
        let name = shard.map_or_else(|| "paper.jsonl".to_owned(), Shard::file);
        results.push(folder.join(name));
        // Another program's results stand beside ours where they were measured.
        let other = folder.join(SKLEARN_FILE);
        if shard.is_none() && other.exists() {
            results.push(other);
        }
    }
    let seen_of_credit = folder.join(credit::FILE);
    if !report_only {
        let plan = plan::plan(&scope);
        let plan = match shard {
            Some(shard) => shard.of(plan),
            None => plan,
        };
        // What other files have is not measured again.
        let others = Table::read(&results[1..])?;
        let plan: Vec<Job> = plan.into_iter().filter(|job| others.get(job).is_none()).collect();
        measure(&plan, &data, &results[0])?;
        if shard.is_some() {
            return Ok(());
        }
    }
    let table = Table::read(&results)?;
    let credit = match report_only {
        true => Credit::read(&seen_of_credit)?,
        false => Credit::measure(&data, &seen_of_credit, scope.splits)?,
    };
    write(&table, &credit, &out, &figures)?;
    print!("{}", report::aims(&table));
    readme::update(&table, &readme)?;
    if report_only { Ok(()) } else { figures::maps(&data, &figures) }
}

fn measure(plan: &[Job], data: &Path, results: &Path) -> Result<(), String> {
    let mut results = Results::open(results)?;
    if plan.iter().all(|job| results.get(job).is_some()) {
        return Ok(());
    }
    results.begin(computer::header())?;
    let mut sets: HashMap<&str, Dataset> = HashMap::new();
    results.run(plan, plan::guess, |job| {
        if !sets.contains_key(job.data.as_str()) {
            let set = UciSet::named(&job.data).map_err(|e| e.to_string())?;
            let read = set.read(&set.in_folder(data));
            sets.insert(set.name, read.map_err(|e| format!("{} ({}): {e}", set.name, set.file))?);
        }
        let rows = &sets[job.data.as_str()];
        let (train, test) = random_split(rows.rows(), job.seed);
        methods::measure(job, &rows.select(&train), &rows.select(&test))
    })
}

/// Prints the rows of a split, as other programs can read them: the features as they are, and classes as
/// numbers.
pub fn split_as_json(data: &Path, set: &str, split: u64) -> Result<String, String> {
    let set = UciSet::named(set).map_err(|e| e.to_string())?;
    let rows = set.read(&set.in_folder(data)).map_err(|e| format!("{}: {e}", set.name))?;
    if split >= plan::splits(set) {
        return Err(format!("{} has {} splits, from 0 on", set.name, plan::splits(set)));
    }
    let seed = plan::FIRST_SEED + split;
    let (train, test) = random_split(rows.rows(), seed);
    let part = |of: &[usize]| {
        let part = rows.select(of);
        let x: Vec<&[f64]> = part.x().iter_rows().collect();
        serde_json::json!({ "x": x, "y": part.y() })
    };
    Ok(serde_json::json!({ "seed": seed, "train": part(&train), "test": part(&test) }).to_string())
}

fn write(table: &Table, credit: &Credit, out: &Path, figures: &Path) -> Result<(), String> {
    if table.all().next().is_none() {
        return Err("the results files are empty".to_owned());
    }
    let failed = |e: std::io::Error| format!("{}: {e}", out.display());
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    write_atomically(out, report::report(table, credit).as_bytes()).map_err(|e| e.to_string())?;
    figures::of_results(table, figures)?;
    figures::of_credit(credit, figures)
}

#[cfg(test)]
mod tests;
