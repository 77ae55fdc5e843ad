//! The usual way, for comparison: a Euclidean RBF machine whose width and C are chosen by k-fold
//! cross-validation on a grid.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::fold_of;
use crate::error::{Error, Result};
use crate::kernel::{DenseGram, Gram};
use crate::learn::Sample;
use crate::linalg::Matrix;
use crate::loss::wrong;
use crate::metric::{Form, Metric};
use crate::multiclass::{decide, outputs, pairs, solve_pair, vote};
use crate::params::ClassWeight;
use crate::svm::Machine;
use crate::watch::Watch;

/// A grid of settings and the number of folds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grid {
    /// sigma^2 in multiples of the number of features. Default, the paper's: 4, 2, 1, 1/2, 1/4.
    pub widths: Vec<f64>,
    /// C. Default, the paper's: 0.1, 1, 10, 100.
    pub costs: Vec<f64>,
    /// Folds, at most one for each distinct row. Default: 5.
    pub folds: usize,
    /// Weights of the classes, in the machines and in the errors. Default: all alike.
    pub class_weight: ClassWeight,
    /// Seed of the folds. Default: 0.
    pub seed: u64,
    /// Most bytes for the kernel matrix and the factorisations of the folds that are trained at the
    /// same time. Default: 8 GiB.
    pub memory_limit: u64,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            widths: vec![4.0, 2.0, 1.0, 0.5, 0.25],
            costs: vec![0.1, 1.0, 10.0, 100.0],
            folds: 5,
            class_weight: ClassWeight::None,
            seed: 0,
            memory_limit: 8 << 30,
        }
    }
}

/// What the cross-validation chose.
#[derive(Clone, Debug)]
pub struct Selected {
    /// L = I/sigma.
    pub metric: Metric,
    /// C.
    pub cost: f64,
    /// Share of rows misclassified when left out, for each width (rows) and cost (columns), in the
    /// order of smoothness: widths descending, costs ascending.
    pub errors: Matrix,
}

/// Widths and costs in this range have inverses and squares that are far from overflow.
const RANGE: (f64, f64) = (1e-100, 1e100);

impl Grid {
    /// Checks every field.
    pub fn validate(&self) -> Result<()> {
        for (name, values) in [("widths", &self.widths), ("costs", &self.costs)] {
            let (low, high) = RANGE;
            let bad = values.iter().find(|v| !(low..=high).contains(*v));
            if values.is_empty() || bad.is_some() {
                return Err(Error::Parameter {
                    name,
                    value: bad.map_or("an empty list".to_owned(), f64::to_string),
                    bound: format!("one or more positive numbers, from {low:e} to {high:e}"),
                });
            }
        }
        if self.folds < 2 {
            return Err(Error::Parameter {
                name: "folds",
                value: self.folds.to_string(),
                bound: "at least 2".to_owned(),
            });
        }
        Ok(())
    }
}

/// Chooses width and C for a sample. Equal errors go to the smoother setting: the larger width,
/// then the smaller C.
pub fn grid_search(sample: &Sample<'_>, grid: &Grid, watch: &Watch) -> Result<Selected> {
    let x = sample.x;
    grid.validate()?;
    // More folds than rows have no use; identical rows are one by now.
    let fold_count = grid.folds.min(x.rows());
    let mut widths = grid.widths.clone();
    widths.sort_by(|a, b| b.total_cmp(a));
    let mut costs = grid.costs.clone();
    costs.sort_by(f64::total_cmp);
    let folds = fold_of(sample.class, fold_count);
    let sphere = |width: f64| {
        Metric::isotropic(Form::Sphere, x.cols(), (width * x.cols().max(1) as f64).sqrt().recip())
    };
    let total: f64 = sample.weight.iter().sum();
    let mut gram = DenseGram::new(x, x.rows(), &sphere(widths[0])?, watch)?;
    let mut errors = Matrix::zeros(widths.len(), costs.len());
    for (w, &width) in widths.iter().enumerate() {
        if w > 0 {
            gram.set_metric(&sphere(width)?)?;
        }
        let wrong: Vec<Vec<f64>> = (0..fold_count)
            .into_par_iter()
            .map(|fold| wrong_in_fold(&gram, sample, &folds, fold, &costs))
            .collect::<Result<_>>()?;
        for c in 0..costs.len() {
            errors[(w, c)] = wrong.iter().map(|fold| fold[c]).sum::<f64>() / total;
        }
    }
    let mut best = (0, 0);
    for w in 0..widths.len() {
        for c in 0..costs.len() {
            if errors[(w, c)] < errors[best] {
                best = (w, c);
            }
        }
    }
    Ok(Selected { metric: sphere(widths[best.0])?, cost: costs[best.1], errors })
}

/// Weight of the rows of `fold` misclassified by the machines trained on the others, for each C;
/// each machine starts from the support set of the one before.
fn wrong_in_fold(
    gram: &DenseGram<'_>,
    sample: &Sample<'_>,
    folds: &[usize],
    fold: usize,
    costs: &[f64],
) -> Result<Vec<f64>> {
    let all = sample.labelled(&(0..folds.len()).collect::<Vec<_>>(), 0);
    let (train, left_out) = (all.some(|i| folds[i] != fold), all.some(|i| folds[i] == fold));
    let pairs: Vec<_> = pairs(sample.classes).into_iter().map(|pair| train.of_pair(pair)).collect();
    let mut machines: Vec<Machine> = Vec::new();
    let mut errors = Vec::with_capacity(costs.len());
    for &cost in costs {
        machines = (pairs.par_iter().enumerate())
            .map(|(p, rows)| {
                let start = machines.get(p).map(|machine| machine.support.as_slice());
                Ok(solve_pair(gram, rows, cost, start)?.machine)
            })
            .collect::<Result<_>>()?;
        let values = vote(&outputs(gram, &left_out.index, &machines), sample.classes);
        errors.push(wrong(&decide(&values), &left_out.class, &left_out.weight));
    }
    Ok(errors)
}
