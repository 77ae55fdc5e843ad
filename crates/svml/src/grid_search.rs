//! The usual alternative to learning a metric, for comparison: an SVM with an RBF kernel in the Euclidean
//! metric, whose width and C are chosen from a grid by k-fold cross-validation.

use std::time::Duration;

use crate::data::folds::{self, Fold};
use crate::data::{ClassWeight, EqualRows, LabelledRows, Sample};
use crate::error::{Error, Result};
use crate::kernel::{self, Gram};
use crate::learners::parameters::{check, parameters};
use crate::linalg::Matrix;
use crate::loss::wrong;
use crate::metric::{Form, Kernel, Metric};
use crate::multiclass::{decide, outputs, train_pairs, vote};
use crate::parallel;
use crate::run::{Key, Watch};
use crate::svm::{BinarySvm, LARGE};
use crate::watch::Instant;

parameters! {
    /// A grid of widths and values of C, and the folds by which a setting is chosen.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GridSearch {
        /// Kernel widths to try: sigma^2 in multiples of the number of features.
        widths: Vec<f64> = vec![4.0, 2.0, 1.0, 0.5, 0.25], "a list of positive numbers";
        /// Values of C to try.
        costs: Vec<f64> = vec![0.1, 1.0, 10.0, 100.0], "a list of positive numbers";
        /// Number of folds, at most one for each distinct row. 1 means a single split, as in the paper: one half of
        /// each class for training, the other half for validation.
        folds: usize = 5, "an integer of at least 1";
        /// Class weights, in the SVMs and in the errors: none, balanced, or a weight for each named class.
        class_weight: ClassWeight = ClassWeight::None, "none, balanced, or {\"given\": {\"CLASS\": WEIGHT, ..}}";
        /// What rows are that are equal in all columns and in the class: observations, which are assigned to folds one by
        /// one; copies of one observation, which are all in one fold; or auto, which is observations unless the table
        /// shows that they are copies.
        equal_rows: EqualRows = EqualRows::Auto, "auto, observations or copies";
        /// Seed of the folds.
        seed: u64 = 0, "an integer of at least 0";
        /// Limit in bytes for the kernel matrix and the factorisations of the folds that are trained at the same time;
        /// none: no more than three quarters of the free memory.
        memory_limit: Option<u64> = None, "none or a number of bytes";
    }
}

/// What the cross-validation chose.
#[derive(Clone, Debug)]
pub struct GridChoice {
    /// L = I/sigma.
    pub metric: Metric,
    /// C.
    pub cost: f64,
    /// Share of the validation rows misclassified, for each width (rows) and C (columns). Smoother settings
    /// come first: widths descend, values of C ascend. Infinite for widths for which time did not suffice.
    pub errors: Matrix,
    /// How many widths were tried, and how many there are.
    pub tried: (usize, usize),
}

/// Widths and costs must be in this range, where their inverses and squares are far from overflow.
const RANGE: (f64, f64) = (1e-100, 1e100);

impl GridSearch {
    /// How many bytes a fit may use.
    pub(crate) fn memory(&self) -> u64 {
        crate::memory::usable(self.memory_limit)
    }

    /// Checks every field.
    pub fn validate(&self) -> Result<()> {
        for (name, values) in [("widths", &self.widths), ("costs", &self.costs)] {
            let (low, high) = RANGE;
            let bad = values.iter().find(|v| !(low..=high).contains(*v));
            if values.is_empty() || bad.is_some() {
                return Err(Error::parameter(
                    name,
                    bad.map_or("an empty list".to_owned(), f64::to_string),
                    format!("one or more positive numbers, from {low:e} to {high:e}"),
                ));
            }
        }
        check("folds", &self.folds, self.folds > 0, "at least 1")
    }
}

/// If the kernel matrices of all widths take no more bytes than this, they are in memory at the same time
/// and all settings are tried in parallel. Otherwise the widths are tried one after the other; the rows are
/// then so many that a single width keeps all threads busy.
const TOGETHER: u64 = 256 << 20;

/// Chooses width and C for a sample. Equal errors go to the smoother setting: the larger width,
/// then the smaller C.
pub fn grid_search(sample: &Sample<'_>, grid: &GridSearch, watch: &Watch) -> Result<GridChoice> {
    let (x, n) = (sample.x(), sample.rows());
    grid.validate()?;
    let mut widths = grid.widths.clone();
    widths.sort_by(|a, b| b.total_cmp(a));
    let mut costs = grid.costs.clone();
    costs.sort_by(f64::total_cmp);
    let folds = match grid.folds {
        1 => vec![folds::halves(sample.dealt())],
        // There are at most as many folds as rows, and identical rows have been merged into one.
        folds => folds::k_folds(sample.dealt(), folds),
    };
    let parts: Vec<Part> = (folds.iter())
        .map(|Fold { train, valid }| Part { train: sample.part(train), valid: sample.part(valid) })
        .collect();
    let sphere = |width: f64| {
        Metric::isotropic(Form::Sphere, x.cols(), (width * x.cols().max(1) as f64).sqrt().recip())
    };
    let spheres: Vec<Metric> = widths.iter().map(|&width| sphere(width)).collect::<Result<_>>()?;
    let validated: f64 = parts.iter().flat_map(|part| &part.valid.weight).sum();
    // Kernel matrices from distances may differ in the last digits, and so do not depend on what is free.
    let together = grid.memory_limit.map_or(TOGETHER, |limit| limit.min(TOGETHER));
    let bytes = 8 * (n as u64).pow(2) * (widths.len() as u64 + 1);
    let key = watch.records().then(|| {
        let key = Key::new("width").then(sample.key()).with(&(bytes <= together));
        key.numbers(&costs).places(&[grid.folds])
    });
    // The validation errors for each C, given the kernel matrix of one width.
    let tried = |gram: &dyn Gram, sphere: &Metric| -> Result<Vec<f64>> {
        let begun = Instant::now();
        let key = key.map(|key| sphere.in_key(key));
        if let Some(known) = watch.recall(key) {
            return Ok(known);
        }
        let wrong: Vec<Vec<f64>> =
            parallel::try_map(&parts, |part| wrong_in_part(gram, sample.classes(), part, &costs))?;
        let share = |c: usize| wrong.iter().map(|part| part[c]).sum::<f64>();
        let errors =
            (0..costs.len()).map(|c| share(c) / validated.max(f64::MIN_POSITIVE)).collect();
        watch.record(key, &errors, begun)?;
        Ok(errors)
    };
    let mut widths_tried = widths.len();
    let errors: Vec<Vec<f64>> = if bytes <= together {
        let distances = kernel::backend().distances(x, watch)?;
        parallel::try_map(&spheres, |sphere| tried(&*distances.gram(sphere, watch)?, sphere))?
    } else {
        // From the middle outwards, so that a time limit leaves out the widths that are chosen least often.
        let middle = (widths.len() - 1) / 2;
        let mut order: Vec<usize> = (0..widths.len()).collect();
        order.sort_by_key(|w| w.abs_diff(middle));
        let mut errors = vec![vec![f64::INFINITY; costs.len()]; widths.len()];
        // Distances are computed again for each width: to keep them would double the memory, and they
        // take little time compared with the SVMs.
        let mut gram = kernel::backend().gram(x, n, &spheres[middle], Kernel::Gaussian, watch)?;
        let (mut before, mut slowest) = (Instant::now(), Duration::ZERO);
        for (done, &w) in order.iter().enumerate() {
            // Another width, and after it the SVM on all rows, which takes about as long as one C of a width, or
            // several times that if one half of the rows was trained on.
            let needed = slowest.mul_f64(MARGIN) + after(slowest, &costs, grid.folds);
            if done > 0 && watch.out_of_time(needed) {
                break;
            }
            if done > 0 {
                gram.set_metric(&spheres[w])?;
            }
            errors[w] = tried(&*gram, &spheres[w])?;
            widths_tried = done + 1;
            slowest = slowest.max(before.elapsed());
            before = Instant::now();
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
    let tried = (widths_tried, widths.len());
    Ok(GridChoice { metric: spheres[best.0].clone(), cost: costs[best.1], errors, tried })
}

/// How much longer than the slowest width so far another one may take.
const MARGIN: f64 = 1.25;

/// About how long the SVM on all rows takes, after a width that took so long.
fn after(width: Duration, costs: &[f64], folds: usize) -> Duration {
    let one_cost = width / u32::try_from(costs.len().max(1)).unwrap_or(u32::MAX);
    // Half of the rows take an eighth of the time.
    if folds == 1 { one_cost * 8 } else { one_cost }
}

impl GridChoice {
    /// What the user should know: that time did not suffice for all widths.
    pub fn warning(&self) -> Option<String> {
        let (tried, all) = self.tried;
        (tried < all).then(|| {
            format!("because of the time limit, only {tried} of the {all} widths of the grid were tried, and the best of these was used")
        })
    }
}

/// Training and validation rows of a fold, with their classes and weights.
struct Part {
    train: LabelledRows,
    valid: LabelledRows,
}

/// A support set is small if at most one row in this many is in it.
const FEW: usize = 3;

/// Total weight of the misclassified validation rows of a fold, for each C. Where that saves time, the
/// SVMs are warm-started from those of the previous C.
fn wrong_in_part(gram: &dyn Gram, classes: usize, part: &Part, costs: &[f64]) -> Result<Vec<f64>> {
    let rows = part.train.of_pairs(classes);
    let LabelledRows { index, class, weight } = &part.valid;
    let mut svms: Vec<BinarySvm> = Vec::new();
    let mut errors = Vec::with_capacity(costs.len());
    for &cost in costs {
        // For many rows the solver's own approximate support set is closer to the answer than the one for the previous C,
        // unless the latter is small.
        let near = |n: usize, svm: &BinarySvm| n < LARGE || FEW * svm.support.len() <= n;
        let starts: Vec<Option<&[usize]>> = (rows.iter().zip(&svms))
            .map(|(rows, svm)| near(rows.index.len(), svm).then_some(svm.support.as_slice()))
            .collect();
        let trained = train_pairs(gram, &rows, cost, &starts)?;
        svms = trained.into_iter().map(|trained| trained.svm).collect();
        let values = vote(&outputs(gram, index, &svms)?, classes);
        errors.push(wrong(&decide(&values), class, weight));
    }
    Ok(errors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;

    #[test]
    fn errors_are_shares_for_any_number_of_folds() {
        let data = Generator { rows: 90, ..Generator::default() }.generate().unwrap().data;
        let weight = vec![1.0; 90];
        let sample = Sample::new(data.x(), data.y(), &weight, 2).unwrap();
        for folds in [1, 3, 5] {
            let grid = GridSearch { folds, ..GridSearch::default() };
            let choice = grid_search(&sample, &grid, &Watch::default()).unwrap();
            assert!(choice.errors.as_slice().iter().all(|e| (0.0..=1.0).contains(e)));
        }
    }

    #[test]
    fn kernels_from_distances_are_those_of_the_metric() {
        let x = Matrix::from_fn(70, 3, |i, k| ((i * 7 + k * 5) % 13) as f64 * 0.3);
        let metric = Metric::isotropic(Form::Sphere, 3, 0.4).unwrap();
        let watch = Watch::default();
        let direct = kernel::backend().gram(&x, 70, &metric, Kernel::Gaussian, &watch).unwrap();
        let distances = kernel::backend().distances(&x, &watch).unwrap();
        let derived = distances.gram(&metric, &watch).unwrap();
        let rows: Vec<usize> = (0..70).collect();
        let v: Vec<f64> = (0..70).map(|i| f64::from(i % 5) - 2.0).collect();
        let pairs = direct.multiply(&rows, &rows, &v).into_iter();
        for (a, b) in pairs.zip(derived.multiply(&rows, &rows, &v)) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    /// An SVM on all rows takes eight times as long as one on half of them.
    #[test]
    fn the_time_for_all_rows_follows_from_that_of_a_part() {
        let width = Duration::from_secs(6);
        assert_eq!(after(width, &[1.0, 2.0, 3.0], 1), Duration::from_secs(16));
        assert_eq!(after(width, &[1.0, 2.0, 3.0], 5), Duration::from_secs(2));
    }
}
