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

use super::descent::{Book, Initial, Sorted, check, check_rank, metric_of};
use super::{Control, Learner, Outcome, Sample};
use crate::error::Result;
use crate::linalg::{self, Block, Matrix, dot, exp_neg_sq_dist, least_sum, scale_and_sum, sum};
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
                for (t, w_x) in w_x.chunks_mut(TILE_ROWS * d).enumerate() {
                    watch.check()?;
                    let first = task * rows_per_task + t * TILE_ROWS;
                    let count = w_x.len() / d;
                    let block = Block::rows(&z, first, count);
                    linalg::product(&mut tile, n, -2.0, block, Block::from(&z).t());
                    for (i, row) in tile.chunks_exact_mut(n).take(count).enumerate() {
                        value += self.weigh(row, first + i, &far, &mut columns);
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

    /// Turns `row[j] = -2 z_i'z_j` into W_ij, adds it to the sums of columns and returns the row's
    /// share of the loss.
    fn weigh(&self, row: &mut [f64], i: usize, far: &[f64], columns: &mut [f64]) -> f64 {
        row[i] = f64::INFINITY;
        // Relative to the nearest, which counts as 1 however far it is.
        let nearest = least_sum(row, far);
        exp_neg_sq_dist(row, -nearest, far);
        let own = self.rows.classes[self.rows.class[i]].clone();
        let total = sum(row);
        let same = sum(&row[own.clone()]);
        if total <= 0.0 || total.is_nan() {
            // No other row, or distances beyond all numbers: too far.
            row.fill(0.0);
            return if row.len() == 1 { self.share[i] } else { f64::NAN };
        }
        let p = same / total;
        let unit = self.share[i] / total;
        // The sum of the others for itself: 1 - p would lose digits where p is near 1.
        let others = sum(&row[..own.start]) + sum(&row[own.end..]);
        let error = others / total;
        scale_and_sum(&mut row[..own.start], -unit * p, &mut columns[..own.start]);
        scale_and_sum(&mut row[own.clone()], unit * error, &mut columns[own.clone()]);
        scale_and_sum(&mut row[own.end..], -unit * p, &mut columns[own.end..]);
        self.share[i] * error
    }
}
