//! The usual way, for comparison: a Euclidean RBF machine whose width and C are chosen by k-fold
//! cross-validation on a grid.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::fold_of;
use crate::error::{Error, Result};
use crate::kernel::{DenseGram, Gram};
use crate::linalg::Matrix;
use crate::metric::{Form, Metric};
use crate::svm::{self, Problem};
use crate::watch::Watch;

/// A grid of settings and the number of folds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grid {
    /// sigma^2 in multiples of the number of features. Default, the paper's: 4, 2, 1, 1/2, 1/4.
    pub widths: Vec<f64>,
    /// C. Default, the paper's: 0.1, 1, 10, 100.
    pub costs: Vec<f64>,
    /// Folds. Default: 5.
    pub folds: usize,
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

/// Chooses width and C for standardised rows `x` with labels `y` = +-1 (classes 0 and 1 in
/// `class`). Equal errors go to the smoother setting: the larger width, then the smaller C.
pub fn grid_search(
    x: &Matrix,
    y: &[f64],
    class: &[usize],
    grid: &Grid,
    watch: &Watch,
) -> Result<Selected> {
    grid.validate()?;
    if grid.folds > x.rows() {
        return Err(Error::Parameter {
            name: "folds",
            value: grid.folds.to_string(),
            bound: format!("at most the number of rows, {}", x.rows()),
        });
    }
    let mut widths = grid.widths.clone();
    widths.sort_by(|a, b| b.total_cmp(a));
    let mut costs = grid.costs.clone();
    costs.sort_by(f64::total_cmp);
    let folds = fold_of(class, grid.folds);
    let sphere = |width: f64| {
        Metric::isotropic(Form::Sphere, x.cols(), (width * x.cols().max(1) as f64).sqrt().recip())
    };
    let mut gram = DenseGram::new(x, x.rows(), &sphere(widths[0])?, watch)?;
    let mut errors = Matrix::zeros(widths.len(), costs.len());
    for (w, &width) in widths.iter().enumerate() {
        gram.set_metric(&sphere(width)?)?;
        let wrong: Vec<Vec<usize>> = (0..grid.folds)
            .into_par_iter()
            .map(|fold| wrong_in_fold(&gram, y, &folds, fold, &costs))
            .collect::<Result<_>>()?;
        for c in 0..costs.len() {
            let sum: usize = wrong.iter().map(|fold| fold[c]).sum();
            errors[(w, c)] = sum as f64 / x.rows().max(1) as f64;
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

/// Rows of `fold` misclassified by the machine trained on the others, for each C; each machine
/// starts from the support set of the one before.
fn wrong_in_fold(
    gram: &DenseGram<'_>,
    y: &[f64],
    folds: &[usize],
    fold: usize,
    costs: &[f64],
) -> Result<Vec<usize>> {
    let rows: Vec<usize> = (0..y.len()).filter(|&i| folds[i] != fold).collect();
    let left_out: Vec<usize> = (0..y.len()).filter(|&i| folds[i] == fold).collect();
    let y_rows: Vec<f64> = rows.iter().map(|&i| y[i]).collect();
    let mut start: Option<Vec<usize>> = None;
    let mut wrong = Vec::with_capacity(costs.len());
    for &cost in costs {
        let cost = vec![cost; rows.len()];
        let problem = Problem { gram, rows: &rows, y: &y_rows, cost: &cost };
        let machine = svm::solve(&problem, start.as_deref())?.machine;
        let h = gram.multiply(&left_out, &machine.support, &machine.beta);
        let mistakes =
            left_out.iter().zip(&h).filter(|(i, h)| (*h + machine.bias > 0.0) != (y[**i] > 0.0));
        wrong.push(mistakes.count());
        start = Some(machine.support);
    }
    Ok(wrong)
}
