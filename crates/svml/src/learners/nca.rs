//! Neighbourhood component analysis (Goldberger and others; section 3.1 of the paper).
//!
//! Each row draws a neighbour by a softmax over distances, equation (8), and the expected share of
//! rows whose neighbour is of their own class, equation (9), is maximised over L:
//!
//! ```text
//! p_ij = w_j exp(-|L(x_i - x_j)|^2) / sum_{k != i} w_k exp(-|L(x_i - x_k)|^2),    p_ii = 0
//! p_i  = sum_{j of the class of i} p_ij
//! min over L   loss = sum_i w_i (1 - p_i) / sum_i w_i
//! ```
//!
//! A neighbour is drawn in proportion to its weight, and each row counts in the loss with its own
//! weight. The derivative is that of a weighted sum of squared distances:
//! `d loss / d L = 2 L sum_ij W_ij (x_i - x_j)(x_i - x_j)'`, where
//! `W_ij = w_i / sum w * p_ij ([same class] - p_i)`, whose rows add up to zero.
//!
//! Only a tile of a few rows of W is in memory at a time, so that memory is O(n) times the rows of a tile.

use super::by_class::{RowsByClass, metric_of};
use super::parameters::{check_rank, check_tolerance, parameters, to_json};
use super::step_log::{Start, StepLog};
use super::{Init, Learned, Learner, check_numbers};
use crate::data::Sample;
use crate::error::Result;
use crate::linalg::{
    self, Block, Matrix, add_scaled, closer_than, count_below, dot, exp_neg_sq_dist, least_sum,
    scale_and_sum, sum,
};
use crate::memory;
use crate::optimise::{Accepted, Limits, Objective, Optimiser, Watched, minimise};
use crate::parallel;
use crate::run::{Run, Stop, Watch};

parameters! {
    /// Parameters of neighbourhood component analysis.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Nca {
        /// Number of rows of L, that is, of dimensions to map into. None: the number of features.
        rank: Option<usize> = None, "an integer of at least 1, or none";
        /// Where L starts: scaled (L0 = I/sqrt(d), as in the paper), identity, or L0 on the original features, as
        /// {"given": [[..], ..]}.
        #[alias = "initial"]
        init: Init = Init::Scaled, "scaled, identity or an array";
        /// How the loss is minimised: lbfgs or conjugate_gradients.
        optimiser: Optimiser = Optimiser::Lbfgs, "lbfgs or conjugate_gradients";
        /// Maximum number of accepted steps.
        max_iterations: usize = 100, "an integer of at least 0";
        /// Learning ends when a step lowers the loss by less than this fraction of it.
        tolerance: f64 = 1e-5, "a number of at least 0";
    }
}

/// Length of the first step, in units of the size of L0.
const FIRST_STEP: f64 = 1.0;

impl Learner for Nca {
    fn name(&self) -> &str {
        "nca"
    }

    fn title(&self) -> &str {
        "neighbourhood component analysis"
    }

    fn parameters(&self) -> serde_json::Value {
        to_json(self)
    }

    fn max_steps(&self) -> Option<usize> {
        Some(self.max_iterations)
    }

    fn validate(&self, features: usize) -> Result<()> {
        check_rank(self.rank, features)?;
        self.init.check_without_svm(self.rank, features)?;
        check_tolerance(self.tolerance)
    }

    fn learn(&self, sample: &Sample<'_>, run: &mut Run<'_>) -> Result<Learned> {
        self.validate(sample.features())?;
        let form = self.init.form(self.rank, sample.features())?;
        let (d, vectors) = (sample.features(), self.optimiser.vectors());
        // The sums that the derivative is made of have d x d numbers too.
        let numbers = vectors * form.len(d) as u128 + 3 * (d as u128).pow(2);
        check_numbers(form, d, numbers, memory::free())?;
        let initial = self.init.metric(sample, form)?.components();
        let start = Start::new(initial, sample, run, |few, initial, run| {
            self.learn_from(&Start::given(initial, few.rows()), few, run)
        })?;
        self.learn_from(&start, sample, run)
    }
}

impl Nca {
    fn learn_from(&self, start: &Start, sample: &Sample<'_>, run: &mut Run<'_>) -> Result<Learned> {
        let initial = &start.l;
        let (r, d) = (initial.rows(), initial.cols());
        let size = dot(initial.as_slice(), initial.as_slice()).sqrt() / (r as f64).sqrt();
        let unit = if size > 0.0 { size } else { 1.0 };
        let l_of = |theta: &[f64]| Matrix::from_fn(r, d, |i, j| unit * theta[i * d + j]);
        let mut theta: Vec<f64> = initial.as_slice().iter().map(|l| l / unit).collect();
        let loss = NcaLoss::new(sample);
        let mut descent = Descent { loss: &loss, unit, shape: (r, d), log: StepLog::new(run) };
        let limits = Limits {
            iterations: self.max_iterations,
            tolerance: self.tolerance,
            least_size: 0.0,
            first_step: FIRST_STEP,
        };
        let ended = minimise(self.optimiser, &mut descent, &mut theta, limits);
        descent.log.finish(ended, start, |theta| metric_of(l_of(theta)))
    }
}

struct Descent<'a, 'b, 'c> {
    loss: &'a NcaLoss,
    /// Size of L0. The optimiser's variables are the entries of L divided by it.
    unit: f64,
    shape: (usize, usize),
    log: StepLog<'b, 'c>,
}

impl Objective for Descent<'_, '_, '_> {
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (r, d) = self.shape;
        let l = Matrix::from_fn(r, d, |i, j| self.unit * theta[i * d + j]);
        let (value, d_l) = self.loss.value_and_gradient(&l, self.log.watch())?;
        gradient.iter_mut().zip(d_l.as_slice()).for_each(|(g, d_l)| *g = self.unit * d_l);
        Ok(value)
    }
}

impl Watched for Descent<'_, '_, '_> {
    fn accept(&mut self, step: &Accepted<'_>) -> Result<Option<Stop>> {
        Ok(self.log.record(step, step.value, None))
    }
}

/// Rows of a tile: a tile of 16 x n distances stays in the cache up to some 15,000 rows.
const TILE_ROWS: usize = 16;
/// A row whose squared distance exceeds that of the nearest row by this much has a probability below 1e-19.
/// Such rows are skipped in tiles where fewer than one row in `SPARSE` is nearer than that.
const NEGLIGIBLE: f64 = 45.0;
const SPARSE: usize = 8;
/// Number of tasks that share the work. It is fixed, so that sums have the same order for any number of threads.
const TASKS: usize = 32;

/// The loss on a sample, at any L.
pub struct NcaLoss {
    rows: RowsByClass,
    /// -log(w_i / largest weight) for each row.
    log_weight: Vec<f64>,
    /// w_i / sum of all weights, for each row.
    share: Vec<f64>,
    /// What the distance of a row to itself is raised by: a row is no neighbour of itself, but if it stands for m equal
    /// observations, the other m - 1 are neighbours of each, with a share 1 - 1/m of the weight.
    of_itself: Vec<f64>,
}

impl NcaLoss {
    /// Prepares the rows.
    pub fn new(sample: &Sample<'_>) -> Self {
        let rows = RowsByClass::new(sample);
        let largest = rows.weight.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let total = rows.weight.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        Self {
            log_weight: rows.weight.iter().map(|w| -(w / largest).ln()).collect(),
            share: rows.weight.iter().map(|w| w / total).collect(),
            of_itself: rows.copies.iter().map(|&m| -(1.0 - 1.0 / m as f64).ln()).collect(),
            rows,
        }
    }

    /// The loss and its derivative in L. // (r, d)
    pub fn value_and_gradient(&self, l: &Matrix, watch: &Watch) -> Result<(f64, Matrix)> {
        let (n, d) = (self.rows.x.rows(), self.rows.x.cols());
        let z = linalg::multiply((&self.rows.x).into(), Block::from(l).t());
        // |z_j|^2 - log(w_j / largest weight): added to the squared norm, the term in w_j turns exp(-q_ij)
        // into a multiple of w_j exp(-q_ij). A row of smaller weight thus counts as one further away.
        let norms: Vec<f64> =
            z.iter_rows().zip(&self.log_weight).map(|(z, w)| dot(z, z) + w).collect();
        let tiles_per_task = n.div_ceil(TILE_ROWS).div_ceil(TASKS);
        let rows_per_task = tiles_per_task * TILE_ROWS;
        let mut w_x = Matrix::zeros(n, d);
        let tasks = w_x.as_mut_slice().chunks_mut((rows_per_task * d).max(1)).enumerate();
        let parts: Vec<(f64, Vec<f64>)> = parallel::try_map(tasks, |(task, w_x)| {
            let (mut value, mut columns) = (0.0, vec![0.0; n]);
            let mut tile = vec![0.0; TILE_ROWS.min(n) * n];
            let mut near = Near::default();
            for (t, w_x) in w_x.chunks_mut(TILE_ROWS * d).enumerate() {
                watch.check()?;
                let first = task * rows_per_task + t * TILE_ROWS;
                let count = w_x.len() / d;
                let block = Block::rows(&z, first, count);
                linalg::product(&mut tile, n, -2.0, block, Block::from(&z).t());
                let rows = tile.chunks_exact_mut(n).take(count).enumerate();
                let (mut nearest, mut reached) = ([0.0; TILE_ROWS], 0);
                for (i, row) in rows {
                    row[first + i] += self.of_itself[first + i];
                    nearest[i] = least_sum(row, &norms);
                    reached += count_below(row, &norms, nearest[i] + NEGLIGIBLE);
                }
                // Where few rows are near enough to count, the sums are over these rows alone.
                if reached * SPARSE < count * n {
                    let rows = tile.chunks_exact(n).zip(w_x.chunks_exact_mut(d)).enumerate();
                    for (i, (row, w_x)) in rows {
                        near.rows.clear();
                        closer_than(row, -nearest[i], &norms, NEGLIGIBLE, 0, &mut near.rows);
                        value += self.weigh_near(&mut near, first + i, w_x, &mut columns);
                    }
                    continue;
                }
                for (i, row) in tile.chunks_exact_mut(n).take(count).enumerate() {
                    exp_neg_sq_dist(row, -nearest[i], &norms);
                    value += self.weigh(row, first + i, &mut columns);
                }
                let weights = Block::new(&tile, count, n, n);
                linalg::product(w_x, d, 1.0, weights, (&self.rows.x).into());
            }
            Ok((value, columns))
        })?;
        let (mut value, mut columns) = (0.0, vec![0.0; n]);
        for (part, sums) in parts {
            value += part;
            columns.iter_mut().zip(sums).for_each(|(column, sum)| *column += sum);
        }
        // Each row of W adds up to zero, so that W 1 + W' 1 is just the sums of the columns.
        let mut d_l = match self.rows.are_few() {
            true => self.rows.times_few(l, &z, &self.rows.half(&w_x, &columns)),
            false => {
                let q = self.rows.contract(&w_x, &columns);
                linalg::multiply_in_time(l, &q, watch)?
            }
        };
        d_l.as_mut_slice().iter_mut().for_each(|v| *v *= 2.0);
        Ok((value, d_l))
    }

    /// Turns `row[j]`, a multiple of w_j exp(-q_ij), into W_ij, adds it to the sums of the columns and returns
    /// the share of row i in the loss.
    fn weigh(&self, row: &mut [f64], i: usize, columns: &mut [f64]) -> f64 {
        let own = self.rows.classes[self.rows.class[i]].clone();
        let (before, after) = (0..own.start, own.end..row.len());
        let same = sum(&row[own.clone()]);
        // The other classes are summed as well: 1 - p_i would lose digits where p_i is near 1.
        let others = sum(&row[before.clone()]) + sum(&row[after.clone()]);
        let Some((to_same, to_others, loss)) = self.factors(i, same, others) else {
            row.fill(0.0);
            return if row.len() == 1 { self.share[i] } else { f64::NAN };
        };
        for (range, factor) in [(before, to_others), (own, to_same), (after, to_others)] {
            scale_and_sum(&mut row[range.clone()], factor, &mut columns[range]);
        }
        loss
    }

    /// The same as `weigh` if few rows are near enough to count. It also computes row i of W X, as a sum over
    /// these rows.
    fn weigh_near(&self, near: &mut Near, i: usize, w_x: &mut [f64], columns: &mut [f64]) -> f64 {
        let own = self.rows.classes[self.rows.class[i]].clone();
        let Near { rows, e, zeros } = near;
        e.clear();
        e.extend(rows.iter().map(|(_, sq)| sq));
        zeros.resize(e.len().max(zeros.len()), 0.0);
        exp_neg_sq_dist(e, 0.0, zeros);
        let edge = |at: usize| rows.partition_point(|(j, _)| *j < at);
        let (start, end) = (edge(own.start), edge(own.end));
        let same = sum(&e[start..end]);
        let others = sum(&e[..start]) + sum(&e[end..]);
        w_x.fill(0.0);
        let Some((to_same, to_others, loss)) = self.factors(i, same, others) else {
            return f64::NAN;
        };
        for (p, ((j, _), e)) in rows.iter().zip(e).enumerate() {
            let w = *e * if (start..end).contains(&p) { to_same } else { to_others };
            columns[*j] += w;
            add_scaled(w_x, w, self.rows.x.row(*j));
        }
        loss
    }

    /// `same` and `others` are the sums of w_j exp(-q_ij) over the rows j of the same class and of the other
    /// classes. Returns the factors that turn these terms into W_ij, for the same class and for the others,
    /// and the share of row i in the loss. `None` if there is no other row or the distances overflow.
    fn factors(&self, i: usize, same: f64, others: f64) -> Option<(f64, f64, f64)> {
        let total = same + others;
        let (p, error) = (same / total, others / total);
        let unit = self.share[i] / total;
        (total > 0.0).then_some((unit * error, -unit * p, self.share[i] * error))
    }
}

/// The rows near one row, with their squared distances minus that of the nearest row. It is kept from row
/// to row so that its memory is used again.
#[derive(Default)]
struct Near {
    rows: Vec<(usize, f64)>,
    e: Vec<f64>,
    zeros: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that stands for three equal observations is these three: each has the other two as neighbours.
    #[test]
    fn equal_observations_are_neighbours_of_each_other() {
        let all = Matrix::from_fn(9, 2, |i, k| (((i / 3) * (2 * k + 3)) as f64 * 0.7).sin());
        let merged = all.select_rows(&[0, 3, 6]);
        let (class, weight) = ([0, 0, 0, 0, 0, 0, 1, 1, 1], [1.0; 9]);
        let l = Matrix::from_fn(2, 2, |i, k| 0.5 + 0.3 * i as f64 - 0.4 * k as f64);
        let value = |sample: &Sample<'_>| {
            NcaLoss::new(sample).value_and_gradient(&l, &Watch::default()).unwrap()
        };
        let one_by_one = value(&Sample::new(&all, &class, &weight, 2).unwrap());
        let together = Sample::new(&merged, &[0, 0, 1], &[3.0; 3], 2).unwrap().with_copies(&[3; 3]);
        let together = value(&together);
        assert!(one_by_one.0 > 0.01 && (one_by_one.0 - together.0).abs() < 1e-14);
        for (a, b) in one_by_one.1.as_slice().iter().zip(together.1.as_slice()) {
            assert!((a - b).abs() < 1e-14, "{a} {b}");
        }
    }
}
