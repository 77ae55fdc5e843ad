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
//! A neighbour is drawn in proportion to its weight, and a row counts in the mean with its own.
//! The derivative is that of a weighted sum of squared distances:
//! `d loss / d L = 2 L sum_ij W_ij (x_i - x_j)(x_i - x_j)'`, where
//! `W_ij = w_i / sum w * p_ij ([same class] - p_i)`, whose rows add up to zero.
//!
//! W exists a few rows at a time: memory is O(n) times the rows of a tile.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::descent::{Book, Initial, Sorted, check, check_rank, check_sample, metric_of};
use super::{Control, Learner, Outcome, Sample};
use crate::error::Result;
use crate::linalg::{
    self, Block, Matrix, add_scaled, closer_than, count_below, dot, exp_neg_sq_dist, least_sum,
    scale_and_sum, sum,
};
use crate::optimise::{Accepted, Limits, Objective, Optimiser, Stop, minimise};
use crate::watch::Watch;

/// Parameters of neighbourhood component analysis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Nca {
    /// Rows r of L; none: as many as there are features. Default: none.
    pub rank: Option<usize>,
    /// Where L starts. Default: scaled, L0 = I/sqrt(d), as in the paper.
    pub initial: Initial,
    /// Default: L-BFGS.
    pub optimiser: Optimiser,
    /// Most accepted steps. Default: 100.
    pub max_iterations: usize,
    /// Relative decrease of the loss below which to stop. Default: 1e-5.
    pub tolerance: f64,
}

impl Default for Nca {
    fn default() -> Self {
        Self {
            rank: None,
            initial: Initial::Scaled,
            optimiser: Optimiser::default(),
            max_iterations: 100,
            tolerance: 1e-5,
        }
    }
}

/// Length of the first step, in units of the size of L0.
const FIRST_STEP: f64 = 1.0;

impl Learner for Nca {
    fn validate(&self, features: usize) -> Result<()> {
        check_rank(self.rank, features)?;
        let tolerance = self.tolerance.is_finite() && self.tolerance >= 0.0;
        check("tolerance", &self.tolerance, tolerance, "finite and at least 0")
    }

    fn learn(
        &self,
        sample: &Sample<'_>,
        control: &mut Control<'_>,
        watch: &Watch,
    ) -> Result<Outcome> {
        check_sample(sample)?;
        self.validate(sample.x.cols())?;
        let initial = self.initial.components(sample, self.rank)?;
        let (r, d) = (initial.rows(), initial.cols());
        let size = dot(initial.as_slice(), initial.as_slice()).sqrt() / (r as f64).sqrt();
        let unit = if size > 0.0 { size } else { 1.0 };
        let l_of = |theta: &[f64]| Matrix::from_fn(r, d, |i, j| unit * theta[i * d + j]);
        let mut theta: Vec<f64> = initial.as_slice().iter().map(|l| l / unit).collect();
        let loss = Loss::new(sample);
        let mut descent =
            Descent { loss: &loss, unit, shape: (r, d), book: Book::new(control, watch) };
        let limits = Limits {
            iterations: self.max_iterations,
            tolerance: self.tolerance,
            least_size: 0.0,
            first_step: FIRST_STEP,
        };
        let ended = minimise(self.optimiser, &mut descent, &mut theta, limits);
        descent.book.close(ended, |theta| metric_of(l_of(theta)))
    }
}

struct Descent<'a, 'b, 'c> {
    loss: &'a Loss,
    /// Size of L0: the optimiser's variables are L in units of it.
    unit: f64,
    shape: (usize, usize),
    book: Book<'b, 'c>,
}

impl Objective for Descent<'_, '_, '_> {
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (r, d) = self.shape;
        let l = Matrix::from_fn(r, d, |i, j| self.unit * theta[i * d + j]);
        let (value, d_l) = self.loss.value_and_gradient(&l, self.book.watch())?;
        gradient.iter_mut().zip(d_l.as_slice()).for_each(|(g, d_l)| *g = self.unit * d_l);
        Ok(value)
    }

    fn accept(&mut self, step: &Accepted<'_>) -> Result<Option<Stop>> {
        Ok(self.book.enter(step, step.value, None))
    }
}

/// Rows of a tile: a tile of 16 x n distances stays in the cache up to some 15,000 rows.
const TILE_ROWS: usize = 16;
/// A row this much further than the nearest has a probability below 1e-19, and is passed over where at most
/// one in `SPARSE` is nearer.
const NEGLIGIBLE: f64 = 45.0;
const SPARSE: usize = 8;
/// Tasks to share the work between; fixed, so that sums have a fixed order.
const TASKS: usize = 32;

/// The loss on a sample, at any L.
pub struct Loss {
    rows: Sorted,
    /// -log of each weight over the largest.
    log_weight: Vec<f64>,
    /// Weight of each row over the sum of all.
    share: Vec<f64>,
}

impl Loss {
    /// Prepares the rows.
    pub fn new(sample: &Sample<'_>) -> Self {
        let rows = Sorted::new(sample);
        let largest = rows.weight.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let total = rows.weight.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        Self {
            log_weight: rows.weight.iter().map(|w| -(w / largest).ln()).collect(),
            share: rows.weight.iter().map(|w| w / total).collect(),
            rows,
        }
    }

    /// The loss and its derivative in L. // (r, d)
    pub fn value_and_gradient(&self, l: &Matrix, watch: &Watch) -> Result<(f64, Matrix)> {
        let (n, d) = (self.rows.x.rows(), self.rows.x.cols());
        let z = linalg::multiply((&self.rows.x).into(), Block::from(l).t());
        // A smaller weight is a larger distance.
        let far: Vec<f64> =
            z.iter_rows().zip(&self.log_weight).map(|(z, w)| dot(z, z) + w).collect();
        let tiles_per_task = n.div_ceil(TILE_ROWS).div_ceil(TASKS);
        let rows_per_task = tiles_per_task * TILE_ROWS;
        let mut w_x = Matrix::zeros(n, d);
        let parts: Vec<(f64, Vec<f64>)> = w_x
            .as_mut_slice()
            .par_chunks_mut((rows_per_task * d).max(1))
            .enumerate()
            .map(|(task, w_x)| {
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
                        row[first + i] = f64::INFINITY;
                        nearest[i] = least_sum(row, &far);
                        reached += count_below(row, &far, nearest[i] + NEGLIGIBLE);
                    }
                    if reached * SPARSE < count * n {
                        let rows = tile.chunks_exact(n).zip(w_x.chunks_exact_mut(d)).enumerate();
                        for (i, (row, w_x)) in rows {
                            near.rows.clear();
                            closer_than(row, -nearest[i], &far, NEGLIGIBLE, 0, &mut near.rows);
                            value += self.weigh_near(&mut near, first + i, w_x, &mut columns);
                        }
                        continue;
                    }
                    for (i, row) in tile.chunks_exact_mut(n).take(count).enumerate() {
                        exp_neg_sq_dist(row, -nearest[i], &far);
                        value += self.weigh(row, first + i, &mut columns);
                    }
                    let weights = Block::new(&tile, count, n, n);
                    linalg::product(w_x, d, 1.0, weights, (&self.rows.x).into());
                }
                Ok((value, columns))
            })
            .collect::<Result<_>>()?;
        let (mut value, mut columns) = (0.0, vec![0.0; n]);
        for (part, sums) in parts {
            value += part;
            columns.iter_mut().zip(sums).for_each(|(column, sum)| *column += sum);
        }
        // The rows of W add up to zero.
        let q = self.rows.contract(&w_x, &columns);
        let mut d_l = linalg::multiply(l.into(), (&q).into());
        d_l.as_mut_slice().iter_mut().for_each(|v| *v *= 2.0);
        Ok((value, d_l))
    }

    /// Turns `row[j] = exp(-q_ij)`, up to a factor, into W_ij, adds it to the sums of columns and returns the
    /// row's share of the loss.
    fn weigh(&self, row: &mut [f64], i: usize, columns: &mut [f64]) -> f64 {
        let own = self.rows.classes[self.rows.class[i]].clone();
        let (before, after) = (0..own.start, own.end..row.len());
        let same = sum(&row[own.clone()]);
        // The sum of the others for itself: 1 - p would lose digits where p is near 1.
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

    /// The same where few rows are near enough to count: (W X)_i is summed over these.
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

    /// From the sums of exp(-q_ij) over the own class and the others: what turns these values into W_ij
    /// in either, and the row's share of the loss. None if there is no other row, or distances are beyond
    /// all numbers.
    fn factors(&self, i: usize, same: f64, others: f64) -> Option<(f64, f64, f64)> {
        let total = same + others;
        let (p, error) = (same / total, others / total);
        let unit = self.share[i] / total;
        (total > 0.0).then_some((unit * error, -unit * p, self.share[i] * error))
    }
}

/// Rows near one row, with their distances less that of the nearest; kept for its memory.
#[derive(Default)]
struct Near {
    rows: Vec<(usize, f64)>,
    e: Vec<f64>,
    zeros: Vec<f64>,
}
