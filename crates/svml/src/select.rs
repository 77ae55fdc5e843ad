//! The usual way, for comparison: a Euclidean RBF machine whose width and C are chosen by k-fold
//! cross-validation on a grid.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::{fold_of, halve_twice};
use crate::error::{Error, Result};
use crate::kernel::{DenseGram, Gram, SqDistances};
use crate::learn::Sample;
use crate::linalg::Matrix;
use crate::loss::wrong;
use crate::metric::{Form, Metric};
use crate::multiclass::{Labelled, decide, outputs, pairs, solve_pair, vote};
use crate::params::ClassWeight;
use crate::svm::{LARGE, Machine};
use crate::watch::Watch;

/// A grid of settings and the number of folds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grid {
    /// sigma^2 in multiples of the number of features. Default, the paper's: 4, 2, 1, 1/2, 1/4.
    pub widths: Vec<f64>,
    /// C. Default, the paper's: 0.1, 1, 10, 100.
    pub costs: Vec<f64>,
    /// Folds, at most one for each distinct row; 1 stands for a single split, as in the paper: half of
    /// each class is trained on and the other half validates. Default: 5.
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
        if self.folds == 0 {
            return Err(Error::Parameter {
                name: "folds",
                value: self.folds.to_string(),
                bound: "at least 1".to_owned(),
            });
        }
        Ok(())
    }
}

/// Kernel matrices of all widths exist at the same time, and their settings are tried in parallel, where
/// these take no more bytes than this; beyond, the work on one width keeps all threads busy.
const TOGETHER: u64 = 256 << 20;

/// Chooses width and C for a sample. Equal errors go to the smoother setting: the larger width,
/// then the smaller C.
pub fn grid_search(sample: &Sample<'_>, grid: &Grid, watch: &Watch) -> Result<Selected> {
    let (x, n) = (sample.x, sample.x.rows());
    grid.validate()?;
    let mut widths = grid.widths.clone();
    widths.sort_by(|a, b| b.total_cmp(a));
    let mut costs = grid.costs.clone();
    costs.sort_by(f64::total_cmp);
    let parts = parts(sample, grid.folds);
    let sphere = |width: f64| {
        Metric::isotropic(Form::Sphere, x.cols(), (width * x.cols().max(1) as f64).sqrt().recip())
    };
    let spheres: Vec<Metric> = widths.iter().map(|&width| sphere(width)).collect::<Result<_>>()?;
    let validated: f64 = parts.iter().flat_map(|part| &part.valid.weight).sum();
    // The errors of one width, for each C.
    let tried = |gram: &DenseGram<'_>| -> Result<Vec<f64>> {
        let wrong: Vec<Vec<f64>> = (parts.par_iter())
            .map(|part| wrong_in_part(gram, sample.classes, part, &costs))
            .collect::<Result<_>>()?;
        let share = |c: usize| wrong.iter().map(|part| part[c]).sum::<f64>();
        Ok((0..costs.len()).map(|c| share(c) / validated.max(f64::MIN_POSITIVE)).collect())
    };
    let together = grid.memory_limit.min(TOGETHER);
    let bytes = 8 * (n as u64).pow(2) * (widths.len() as u64 + 1);
    let errors: Vec<Vec<f64>> = if bytes <= together {
        let distances = SqDistances::new(x, watch)?;
        (spheres.par_iter())
            .map(|sphere| tried(&distances.gram(sphere, watch)?))
            .collect::<Result<_>>()?
    } else {
        // The distances would double the memory, and cost little beside the machines.
        let mut gram = DenseGram::new(x, n, &spheres[0], watch)?;
        let mut errors = vec![tried(&gram)?];
        for sphere in &spheres[1..] {
            gram.set_metric(sphere)?;
            errors.push(tried(&gram)?);
        }
        errors
    };
    let errors = Matrix::from_rows(&errors)?;
    let mut best = (0, 0);
    for w in 0..widths.len() {
        for c in 0..costs.len() {
            if errors[(w, c)] < errors[best] {
                best = (w, c);
            }
        }
    }
    Ok(Selected { metric: spheres[best.0].clone(), cost: costs[best.1], errors })
}

/// Rows to train on and rows to validate with.
struct Part {
    train: Labelled,
    valid: Labelled,
}

/// The parts of `folds` folds; of 1, the split in halves.
fn parts(sample: &Sample<'_>, folds: usize) -> Vec<Part> {
    let n = sample.x.rows();
    let all = sample.labelled(&(0..n).collect::<Vec<_>>(), 0);
    let part = |in_train: &dyn Fn(usize) -> bool| Part {
        train: all.some(in_train),
        valid: all.some(|i| !in_train(i)),
    };
    if folds == 1 {
        let train = halve_twice(sample.class).train;
        return vec![part(&|i| train.binary_search(&i).is_ok())];
    }
    // More folds than rows have no use; identical rows are one by now.
    let count = folds.min(n);
    let fold = fold_of(sample.class, count);
    (0..count).map(|out| part(&|i| fold[i] != out)).collect()
}

/// Support rows are few if they are one row in so many.
const FEW: usize = 3;

/// Weight of the validation rows misclassified by the machines trained on the others, for each C; each
/// machine of few rows starts from the support set of the one before.
fn wrong_in_part(
    gram: &DenseGram<'_>,
    classes: usize,
    part: &Part,
    costs: &[f64],
) -> Result<Vec<f64>> {
    let rows: Vec<_> = pairs(classes).into_iter().map(|pair| part.train.of_pair(pair)).collect();
    let Labelled { index, class, weight } = &part.valid;
    let mut machines: Vec<Machine> = Vec::new();
    let mut errors = Vec::with_capacity(costs.len());
    for &cost in costs {
        machines = (rows.par_iter().enumerate())
            .map(|(p, rows)| {
                // Of many rows the solver's own guess is closer than the machine for another C, unless that
                // has few support rows.
                let n = rows.index.len();
                let last = machines.get(p).filter(|m| n < LARGE || FEW * m.support.len() <= n);
                let start = last.map(|machine| machine.support.as_slice());
                Ok(solve_pair(gram, rows, cost, start)?.machine)
            })
            .collect::<Result<_>>()?;
        let values = vote(&outputs(gram, index, &machines), classes);
        errors.push(wrong(&decide(&values), class, weight));
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;

    #[test]
    fn one_fold_is_one_split_in_halves_and_more_validate_every_row_once() {
        let data = Generator { rows: 90, ..Generator::default() }.generate().unwrap().data;
        let weight = vec![1.0; 90];
        let sample = Sample { x: data.x(), class: data.y(), weight: &weight, classes: 2 };
        let [half] = parts(&sample, 1).try_into().ok().unwrap();
        assert_eq!(half.train.index.len() + half.valid.index.len(), 90);
        for c in 0..2 {
            let count = |rows: &Labelled| rows.class.iter().filter(|class| **class == c).count();
            let (train, valid) = (count(&half.train), count(&half.valid));
            assert!(train == valid || train == valid + 1, "{train} {valid}");
        }
        for folds in [3, 5] {
            let parts = parts(&sample, folds);
            let mut seen: Vec<usize> = parts.iter().flat_map(|p| p.valid.index.clone()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..90).collect::<Vec<_>>());
        }
        for folds in [1, 3, 5] {
            let grid = Grid { folds, ..Grid::default() };
            let selected = grid_search(&sample, &grid, &Watch::default()).unwrap();
            assert!(selected.errors.as_slice().iter().all(|e| (0.0..=1.0).contains(e)));
        }
    }

    #[test]
    fn kernels_from_distances_are_those_of_the_metric() {
        let x = Matrix::from_fn(70, 3, |i, k| ((i * 7 + k * 5) % 13) as f64 * 0.3);
        let metric = Metric::isotropic(Form::Sphere, 3, 0.4).unwrap();
        let watch = Watch::default();
        let direct = DenseGram::new(&x, 70, &metric, &watch).unwrap();
        let distances = SqDistances::new(&x, &watch).unwrap();
        let derived = distances.gram(&metric, &watch).unwrap();
        let rows: Vec<usize> = (0..70).collect();
        let v: Vec<f64> = (0..70).map(|i| f64::from(i % 5) - 2.0).collect();
        let pairs = direct.multiply(&rows, &rows, &v).into_iter();
        for (a, b) in pairs.zip(derived.multiply(&rows, &rows, &v)) {
            assert!((a - b).abs() < 1e-12);
        }
    }
}
