//! The defaults against the Euclidean SVM with a 5-fold grid, against single members and against other programs: jobs
//! and report.

mod report;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use svml::internals::{UCI_SETS, write_atomically};

use crate::computer;
use crate::jobs::{Job, Results, Table};
use crate::methods::{self, DEFAULT, GRID, OTHERS, PAPER};
use tables::{DRAWS, GENERATED, PEER_SPLITS, SMALL_SPLITS, SUITE, Tables, small_sets};

/// Seed of the first split. Constants were chosen on others.
pub const FIRST_SEED: u64 = 3000;
/// Seed of the first draw of generated data.
const FIRST_DRAW: u64 = 0;

/// What to do.
#[derive(clap::Args, Debug)]
pub struct Options {
    #[command(flatten)]
    source: Source,
    /// Results, one line for each job; those that are there are not measured again
    #[arg(long, default_value = "study/results/suite.jsonl", value_name = "FILE")]
    results: PathBuf,
    /// Results of other programs, from study/peers.py
    #[arg(long, default_value = "study/results/peers.jsonl", value_name = "FILE")]
    peers: PathBuf,
    /// Times beside scikit-learn's, from study/peers.py --times
    #[arg(long, default_value = "study/results/times_default.jsonl", value_name = "FILE")]
    times: PathBuf,
    /// The report
    #[arg(long, default_value = "docs/accuracy.md", value_name = "FILE")]
    out: PathBuf,
    /// At most so many splits of each table
    #[arg(long, value_name = "N")]
    splits: Option<u64>,
    /// Seed of the first split
    #[arg(long, default_value_t = FIRST_SEED, value_name = "SEED")]
    first_seed: u64,
    /// Only this table; may be repeated
    #[arg(long = "set", value_name = "NAME")]
    sets: Vec<String>,
    /// Only this method; may be repeated
    #[arg(long = "method", value_name = "NAME")]
    methods: Vec<String>,
    /// Write the report from the results that are there
    #[arg(long)]
    report_only: bool,
}

/// Where the rows are.
#[derive(clap::Args, Clone, Debug)]
pub struct Source {
    /// Folder of the paper's data sets, as `svml data fetch` fills it
    #[arg(long, env = "SVML_DATA", default_value = "../shared/data", value_name = "DIR")]
    data: PathBuf,
    /// Folder of the further tables [default: the folder suite in that of the data sets]
    #[arg(long, value_name = "DIR")]
    suite: Option<PathBuf>,
    /// Most rows to train on, of tables with more than 10,000 rows
    #[arg(long, default_value_t = 3000, value_name = "N")]
    most_rows: usize,
}

impl Source {
    fn tables(&self) -> Tables {
        Tables::new(&self.data, self.suite.as_deref(), self.most_rows)
    }
}

/// All jobs: methods on every split of every table, those with many rows last.
fn plan(first_seed: u64) -> Vec<Job> {
    let mut plan = Vec::new();
    let mut add = |data: &str, seed: u64, methods: &[&str]| {
        let job = |method: &&str| Job { data: data.to_owned(), seed, method: (*method).to_owned() };
        plan.extend(methods.iter().map(job));
    };
    let others: Vec<&str> = OTHERS.iter().map(|other| other.name).collect();
    let all = [&[GRID, DEFAULT], others.as_slice()].concat();
    let suite: Vec<&str> = all.iter().copied().filter(|method| *method != PAPER).collect();
    for split in 0..SMALL_SPLITS {
        small_sets().for_each(|set| add(set.name, first_seed + split, &all));
        let small = SUITE.iter().filter(|table| table.rows < 2_000 && split < table.splits());
        small.for_each(|table| add(table.name, first_seed + split, &suite));
    }
    for draw in 0..DRAWS {
        let seed = FIRST_DRAW + draw;
        GENERATED.iter().for_each(|(recipe, ..)| add(recipe, seed, &[GRID, DEFAULT, PAPER]));
    }
    for split in 0..SMALL_SPLITS {
        let large = SUITE.iter().filter(|table| table.rows >= 2_000 && split < table.splits());
        large.for_each(|table| add(table.name, first_seed + split, &suite));
    }
    plan
}

/// How long a job takes in comparison with others, roughly.
fn guess(job: &Job, most_rows: usize) -> f64 {
    let of_suite = SUITE.iter().find(|table| table.name == job.data).map(|table| table.rows);
    let of_paper = || UCI_SETS.iter().find(|set| set.name == job.data).map(|set| set.rows);
    let rows = of_suite.or_else(of_paper).unwrap_or(500);
    let rows = if rows > 10_000 { most_rows } else { rows };
    (rows as f64).powf(2.3)
}

impl Options {
    /// The jobs that are asked for.
    fn plan(&self) -> Result<Vec<Job>, String> {
        let whole = plan(self.first_seed);
        let known = |names: &[String], of: fn(&Job) -> &String| {
            let unknown = names.iter().find(|name| whole.iter().all(|job| of(job) != *name));
            unknown.map_or(Ok(()), |name| Err(format!("{name} is not in the plan")))
        };
        known(&self.sets, |job| &job.data)?;
        known(&self.methods, |job| &job.method)?;
        let chosen = |names: &[String], name: &String| names.is_empty() || names.contains(name);
        let generated = |job: &Job| GENERATED.iter().any(|(recipe, ..)| *recipe == job.data);
        let split = |job: &Job| match generated(job) {
            true => job.seed - FIRST_DRAW,
            false => job.seed - self.first_seed,
        };
        let asked = |job: &Job| {
            chosen(&self.sets, &job.data)
                && chosen(&self.methods, &job.method)
                && self.splits.is_none_or(|most| split(job) < most)
        };
        Ok(whole.into_iter().filter(asked).collect())
    }
}

/// Runs what is missing and writes the report.
pub fn run(options: &Options) -> Result<(), String> {
    let plan = options.plan()?;
    if !options.report_only {
        let mut results = Results::open(&options.results)?;
        if plan.iter().any(|job| results.get(job).is_none()) {
            results.begin(computer::header())?;
        }
        let mut tables = options.source.tables();
        let guess = |job: &Job| guess(job, options.source.most_rows);
        results.run(&plan, guess, |job| {
            let (train, test) = tables.rows(&job.data, job.seed)?;
            methods::measure_probabilities(job, &train, &test)
        })?;
    }
    let or_none = |path: &Path| match path.exists() {
        true => Table::read(&[path.to_owned()]),
        false => Ok(Table::default()),
    };
    let (ours, peers) = (or_none(&options.results)?, or_none(&options.peers)?);
    let open =
        |plan: Vec<Job>, table: &Table| plan.iter().filter(|job| table.get(job).is_none()).count();
    let missing =
        (open(self::plan(options.first_seed), &ours), open(of_peers(options.first_seed), &peers));
    let report = report::Report {
        ours,
        peers,
        missing,
        times: or_none(&options.times)?,
        first_seed: options.first_seed,
        most_rows: options.source.most_rows,
    };
    let failed = |e: std::io::Error| format!("{}: {e}", options.out.display());
    if let Some(folder) = options.out.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    write_atomically(&options.out, report.text().as_bytes()).map_err(|e| e.to_string())?;
    print!("{}", report.aims());
    Ok(())
}

/// The tables with their rows and the number of splits that other programs are measured on.
fn peer_splits() -> impl Iterator<Item = (&'static str, usize, u64)> {
    let small = small_sets().map(|set| (set.name, set.rows, PEER_SPLITS));
    small.chain(SUITE.iter().map(|table| (table.name, table.rows, table.splits())))
}

/// What study/peers.py does.
fn of_peers(first_seed: u64) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (data, _, splits) in peer_splits() {
        for method in report::PEERS {
            jobs.extend((first_seed..first_seed + splits).map(|seed| Job {
                data: data.to_owned(),
                seed,
                method: method.to_owned(),
            }));
        }
    }
    jobs
}

/// The tables with the splits that other programs are measured on, as JSON.
pub fn splits_as_json(first_seed: u64) -> String {
    let all: Vec<_> = peer_splits()
        .map(|(name, rows, splits)| json!({ "data": name, "rows": rows, "first_seed": first_seed, "splits": splits }))
        .collect();
    json!(all).to_string()
}

/// The rows of one split, as JSON.
pub fn rows_as_json(source: &Source, set: &str, seed: u64) -> Result<String, String> {
    source.tables().rows_as_json(set, seed)
}

/// Does one job several times and says what was measured, line by line.
pub fn fit_as_json(
    source: &Source,
    set: &str,
    seed: u64,
    method: &str,
    times: usize,
) -> Result<String, String> {
    let job = Job { data: set.to_owned(), seed, method: method.to_owned() };
    let (train, test) = source.tables().rows(set, seed)?;
    let mut lines = String::new();
    for _ in 0..times {
        let measured = methods::measure(&job, &train, &test)?;
        lines += &(serde_json::to_string(&measured).map_err(|e| e.to_string())? + "\n");
    }
    Ok(lines)
}

#[cfg(test)]
mod tests;
