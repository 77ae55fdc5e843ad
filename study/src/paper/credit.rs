//! What figures 2, 4 and 5 show of credit, on several splits: measured once and kept in a file of its own, so
//! that figures and captions are made from it again without the data.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use svml::internals::folds::random_split;
use svml::internals::grid_search::grid_search;
use svml::internals::{UciSet, Watch, write_atomically};
use svml::{Dataset, Form, GridSearch, Method, Model, Svml};

use crate::computer;
use crate::jobs::Header;
use crate::statistics::Mean;

use super::descent::{Path as Descent, Rows, path, plain};
use super::plan::FIRST_SEED;

/// The file, in the folder of the results.
pub const FILE: &str = "credit.jsonl";
/// Splits that are measured.
pub const SPLITS: u64 = 20;
/// Step of the plain descent as a multiple of the gradient, how many steps, and which of them are kept in
/// the file.
pub const RATE: f64 = 0.5;
pub const STEPS: usize = 400;
const EVERY: usize = 5;

/// Plain descent: what was seen at every fifth step, errors as shares.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plain {
    /// The steps that the other lists are of.
    pub step: Vec<usize>,
    /// Surrogate of the validation rows plus regulariser.
    pub loss: Vec<f64>,
    /// Error on the rows that the SVM is trained on.
    pub training: Vec<f64>,
    /// Error on the rows that the loss is of.
    pub validation: Vec<f64>,
    /// Error on the test rows.
    pub test: Vec<f64>,
    /// The step that does best on the rows for early stopping.
    pub kept: usize,
    /// Error on the test rows at that step.
    pub kept_test: f64,
}

/// SVML-Sphere, step by step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sphere {
    /// C.
    pub cost: Vec<f64>,
    /// The squared width by the number of features, as the grid has it.
    pub width: Vec<f64>,
    /// Error on the test rows, of the SVM that is trained on a part of the rows.
    pub test: Vec<f64>,
    /// The step that was kept.
    pub kept: usize,
}

/// The Euclidean SVM with a grid of 5 folds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grid {
    /// C, ascending.
    pub costs: Vec<f64>,
    /// Squared widths by the number of features, ascending.
    pub widths: Vec<f64>,
    /// Error by cross-validation, for each width all C.
    pub errors: Vec<Vec<f64>>,
    /// What was chosen, as indices into C and widths.
    pub chosen: (usize, usize),
}

/// What was measured on one split.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Split {
    /// Seed of the split.
    pub seed: u64,
    /// Of figure 2.
    pub plain: Plain,
    /// Test errors of figure 4: SVML of rank 2, and two principal components with a grid.
    pub rank_2: f64,
    /// The latter.
    pub pca_2: f64,
    /// Of figure 5: the path.
    pub sphere: Sphere,
    /// Of figure 5: the cells.
    pub grid: Grid,
}

/// The file.
#[derive(Clone, Debug, Default)]
pub struct Credit {
    /// Where and when it was measured.
    pub headers: Vec<Header>,
    /// The splits, in the order of their seeds.
    pub splits: Vec<Split>,
}

impl Credit {
    /// Reads the file; one that is not there has no splits.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = match fs::read_to_string(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(|e| format!("{}: {e}", path.display()))?,
        };
        let mut credit = Self::default();
        for (number, line) in text.lines().enumerate() {
            let failed = |e| format!("{} line {}: {e}", path.display(), number + 1);
            if line.starts_with("{\"date\"") {
                credit.headers.push(serde_json::from_str(line).map_err(failed)?);
            } else {
                credit.splits.push(serde_json::from_str(line).map_err(failed)?);
            }
        }
        Ok(credit)
    }

    /// Writes the file, and its folder if need be.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let headers = self.headers.iter().map(serde_json::to_string);
        let lines: Result<Vec<String>, _> =
            headers.chain(self.splits.iter().map(serde_json::to_string)).collect();
        let text = lines.map_err(|e| e.to_string())?.join("\n") + "\n";
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        write_atomically(path, text.as_bytes()).map_err(|e| e.to_string())
    }

    /// Measures the splits that the file does not have, at most so many.
    pub fn measure(data: &Path, path: &Path, most: Option<u64>) -> Result<Self, String> {
        let mut credit = Self::read(path)?;
        let missing = |seed: &u64| !credit.splits.iter().any(|split| split.seed == *seed);
        let count = most.map_or(SPLITS, |most| most.min(SPLITS));
        let seeds: Vec<u64> = (FIRST_SEED..FIRST_SEED + count).filter(missing).collect();
        if seeds.is_empty() {
            return Ok(credit);
        }
        let header = computer::header();
        if !credit.headers.contains(&header) {
            credit.headers.push(header);
        }
        for seed in seeds {
            let [train, test] = parts(data, seed)?;
            credit.splits.push(split(seed, &train, &test).map_err(|e| format!("credit: {e}"))?);
            credit.splits.sort_by_key(|split| split.seed);
            credit.write(path)?;
            eprintln!("credit: {} of {count} splits", credit.splits.len());
        }
        Ok(credit)
    }

    /// Mean of a number of each split.
    pub fn mean(&self, of: impl Fn(&Split) -> f64) -> Mean {
        Mean::of(&self.splits.iter().map(of).collect::<Vec<f64>>())
    }
}

/// The rows of a split of credit to train on, and those to test on.
pub fn parts(data: &Path, seed: u64) -> Result<[Dataset; 2], String> {
    let failed = |e: svml::Error| format!("credit: {e}");
    let set = UciSet::named("credit").map_err(failed)?;
    let all = set.read(&set.in_folder(data)).map_err(failed)?;
    let (train, test) = random_split(all.rows(), seed);
    Ok([all.select(&train), all.select(&test)])
}

/// The models of figure 4: SVML with a map into so many dimensions.
pub fn svml_of_rank(rank: usize, train: &Dataset, seed: u64) -> svml::Result<Model> {
    Model::fit(train, Svml { form: Form::Rank(rank).into(), seed, ..Svml::paper() })
}

/// And what it is compared with.
pub fn two_components(train: &Dataset, seed: u64) -> svml::Result<Model> {
    let mut method: Method = "pca:rank=2".parse()?;
    method.set("seed", &seed.to_string())?;
    Model::fit(train, method)
}

/// Six digits are enough for a figure.
fn short(value: f64) -> f64 {
    (1e6 * value).round() / 1e6
}

/// Measures one split. Its seed is that of the fits too: by one and the same seed nearly the same rows would
/// validate on all splits, and a mean would be about these rows.
pub fn split(seed: u64, train: &Dataset, test: &Dataset) -> svml::Result<Split> {
    let params = Svml { seed, ..Svml::paper() };
    let rows = Rows::new(train, test, seed);
    let Descent { steps, kept } = plain(&rows, &params, RATE, STEPS)?;
    let step: Vec<usize> = (0..steps.len()).step_by(EVERY).collect();
    let error = |part: usize| step.iter().map(|&k| short(steps[k].errors[part])).collect();
    let plain = Plain {
        loss: step.iter().map(|&k| short(steps[k].loss)).collect(),
        training: error(0),
        validation: error(1),
        test: error(2),
        kept,
        kept_test: short(steps[kept].errors[2]),
        step,
    };
    let d = train.x().cols() as f64;
    let Descent { steps, kept } = path(&rows, Form::Sphere, &params)?;
    let sphere = Sphere {
        cost: steps.iter().map(|s| short(s.cost)).collect(),
        width: steps.iter().map(|s| short(relative_width(s.metric.values()[0], d))).collect(),
        test: steps.iter().map(|s| short(s.errors[2])).collect(),
        kept,
    };
    Ok(Split {
        seed,
        plain,
        rank_2: short(svml_of_rank(2, train, seed)?.error_rate(test)?),
        pca_2: short(two_components(train, seed)?.error_rate(test)?),
        sphere,
        grid: grid(&rows, d)?,
    })
}

/// sigma^2 / d of the entry 1 / sigma of a sphere.
fn relative_width(inverse: f64, d: f64) -> f64 {
    (inverse.powi(2) * d).recip()
}

fn grid(rows: &Rows, d: f64) -> svml::Result<Grid> {
    let grid = GridSearch::default();
    let selected = grid_search(&rows.sample()?, &grid, &Watch::default())?;
    let (mut widths, mut costs) = (grid.widths, grid.costs);
    widths.sort_by(f64::total_cmp);
    costs.sort_by(f64::total_cmp);
    // The library has the widest first.
    let errors = (0..widths.len())
        .rev()
        .map(|w| (0..costs.len()).map(|c| short(selected.errors[(w, c)])).collect())
        .collect();
    let nearest = |values: &[f64], value: f64| {
        let distance = |k: &usize| (values[*k] / value).ln().abs();
        (0..values.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
    };
    let width = relative_width(selected.metric.values()[0], d);
    let chosen = (nearest(&costs, selected.cost), nearest(&widths, width));
    Ok(Grid { costs, widths, errors, chosen })
}
