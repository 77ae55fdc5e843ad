//! Large margin nearest neighbours (Weinberger, Blitzer and Saul; section 3.2 of the paper).
//!
//! The target neighbours j of a row i are its k nearest of the same class in the Euclidean metric.
//! With w the weights of rows and `q = |L(x - z)|^2`, the problem solved is that of the paper,
//!
//! ```text
//! min over M = L'L   sum_i w_i sum_{j target of i} ( q_ij + mu sum_{l of another class} w_l [1 + q_ij - q_il]+ )
//! ```
//!
//! A weight counts as repetition of the row, as the one that has targets and as an impostor l.
//! (metric-learn minimises rho times this, with mu = (1 - rho)/rho and rho its `regularization`.)
//!
//! It is convex in M and has kinks. The hinge is smoothed over a width delta,
//! `h(s) = max_{0 <= a <= 1} a s - delta a^2 / 2`, and minimised over L, which keeps M semidefinite.
//! The derivative in M is `Q = A - sum_t a_t B_t` with A the sum of the `w_i (x_i - x_j)(x_i - x_j)'`,
//! `B_t = (x_i - x_l)(x_i - x_l)' - (x_i - x_j)(x_i - x_j)'` and `0 <= a_t <= mu w_i w_l` for a triple
//! t = (i, j, l); in L it is 2 L Q.
//!
//! The optimum is certified by the dual `max sum_t a_t` over those a for which Q is semidefinite: the
//! a of any L, shrunk until Q is, bound the optimum from below. Delta falls until the gap between the
//! loss and this bound is within the tolerance; a gap of 1e-3 says that no metric can be better by
//! more than a thousandth. For L of fewer rows than columns the bound holds but is not reached.

use std::ops::Range;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::descent::{Book, Initial, Sorted, check, check_rank, check_sample, metric_of};
use super::{Control, Learner, Outcome, Sample};
use crate::error::{Error, Result};
use crate::linalg::{self, Block, Matrix, add_scaled, closer_than, dot};
use crate::optimise::{Accepted, Limits, Objective, Optimiser, Stop, minimise};
use crate::watch::Watch;

/// Parameters of large margin nearest neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lmnn {
    /// Target neighbours k of each row; a class of fewer than k + 1 rows has as many as there are.
    /// Default: 3.
    pub neighbours: usize,
    /// Weight mu of the impostors. Default: 1.
    pub mu: f64,
    /// Rows r of L; none: as many as there are features. Default: none.
    pub rank: Option<usize>,
    /// Where L starts. Default: identity.
    pub initial: Initial,
    /// Default: L-BFGS.
    pub optimiser: Optimiser,
    /// Most accepted steps. Default: 1000.
    pub max_iterations: usize,
    /// Duality gap, relative to the loss, at which to stop. Default: 1e-3.
    pub tolerance: f64,
}

impl Default for Lmnn {
    fn default() -> Self {
        Self {
            neighbours: 3,
            mu: 1.0,
            rank: None,
            initial: Initial::Identity,
            optimiser: Optimiser::default(),
            max_iterations: 1000,
            tolerance: 1e-3,
        }
    }
}

/// Length of the first step, where L is of order one.
const FIRST_STEP: f64 = 0.1;
/// Width of the smoothed hinge at the start, and the factor from one width to the next.
const WIDEST: f64 = 0.5;
const NARROWER: f64 = 0.25;
/// Below this width rounding decides.
const NARROWEST: f64 = 1e-9;

impl Learner for Lmnn {
    fn validate(&self, features: usize) -> Result<()> {
        check_rank(self.rank, features)?;
        check("neighbours", &self.neighbours, self.neighbours > 0, "at least 1")?;
        let mu = self.mu.is_finite() && self.mu > 0.0;
        check("mu", &self.mu, mu, "positive and finite")?;
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
        let problem = Problem::new(sample, self.neighbours, self.mu, watch)?;
        let mut theta = initial.into_vec();
        let mut descent = Descent {
            problem: &problem,
            shape: (r, d),
            width: WIDEST,
            tolerance: self.tolerance,
            last: None,
            bound: 0.0,
            finished: false,
            entered: false,
            book: Book::new(control, watch),
        };
        let ended = loop {
            let steps = descent.book.steps();
            let limits = Limits {
                iterations: self.max_iterations.saturating_sub(steps),
                tolerance: 0.0,
                least_size: 0.0,
                first_step: FIRST_STEP,
            };
            descent.entered = false;
            match minimise(self.optimiser, &mut descent, &mut theta, limits) {
                // Done with this width, not with the problem.
                Ok(Stop::Tolerance | Stop::Minimum)
                    if !descent.finished && descent.width > NARROWEST =>
                {
                    descent.width *= NARROWER;
                }
                ended => break ended,
            }
        };
        let l_of = |theta: &[f64]| Matrix::new(r, d, theta.to_vec());
        descent.book.close(ended, |theta| metric_of(l_of(theta)?))
    }
}

struct Descent<'a, 'b, 'c> {
    problem: &'a Problem,
    shape: (usize, usize),
    /// delta.
    width: f64,
    tolerance: f64,
    last: Option<(Vec<f64>, Evaluation)>,
    /// The best lower bound on the loss so far.
    bound: f64,
    /// Whether a step under the present width has been entered.
    entered: bool,
    /// Whether the gap is within the tolerance.
    finished: bool,
    book: Book<'b, 'c>,
}

impl Objective for Descent<'_, '_, '_> {
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (r, d) = self.shape;
        let l = Matrix::new(r, d, theta.to_vec())?;
        let evaluation = self.problem.evaluate(&l, self.width, self.book.watch())?;
        let d_l = linalg::multiply((&l).into(), (&evaluation.q).into());
        gradient.iter_mut().zip(d_l.as_slice()).for_each(|(g, d)| *g = 2.0 * d);
        let value = evaluation.smoothed;
        self.last = Some((theta.to_vec(), evaluation));
        Ok(value)
    }

    fn accept(&mut self, accepted: &Accepted<'_>) -> Result<Option<Stop>> {
        if self.last.as_ref().is_none_or(|(theta, _)| theta != accepted.x) {
            self.evaluate(accepted.x, &mut vec![0.0; accepted.x.len()])?;
        }
        let Some((_, evaluation)) = &self.last else {
            return Ok(None);
        };
        let (bound, smoothed_bound) = self.problem.bounds(evaluation);
        let Evaluation { loss, smoothed, .. } = *evaluation;
        self.bound = self.bound.max(bound);
        let gap = (loss - self.bound) / loss.max(f64::MIN_POSITIVE);
        // The first point of a further width is the last of the one before.
        let repeated = !std::mem::replace(&mut self.entered, true) && self.width < WIDEST;
        if !repeated && let Some(stop) = self.book.enter(accepted, loss, Some(gap)) {
            return Ok(Some(stop));
        }
        self.finished = gap <= self.tolerance;
        if self.finished {
            return Ok(Some(Stop::Tolerance));
        }
        // What is left is mostly the smoothing: a narrower hinge is due.
        let due = smoothed - smoothed_bound <= 0.5 * (loss - bound) && self.width > NARROWEST;
        Ok(due.then_some(Stop::Minimum))
    }
}

/// The problem on a sample: its rows, targets and weights.
pub struct Problem {
    rows: Sorted,
    mu: f64,
    /// Target neighbours of each row.
    targets: Vec<Vec<usize>>,
    /// A = sum_i w_i sum_j (x_i - x_j)(x_i - x_j)'. // (d, d)
    pull: Matrix,
    /// Rows that turn the columns in which A is not zero into a basis where it is the identity.
    /// // (rank of A, d)
    whitener: Matrix,
}

/// The problem at one L.
pub struct Evaluation {
    /// The loss, with the hinge as it is.
    pub loss: f64,
    /// The loss with the smoothed hinge.
    pub smoothed: f64,
    /// Derivative of the smoothed loss in M. // (d, d)
    pub q: Matrix,
    /// Sum of the a_t.
    dual: f64,
    /// Sum of delta a_t^2 / (2 mu w_i w_l): what smoothing takes from the dual.
    dual_smoothing: f64,
}

impl Problem {
    /// Finds the targets: the `neighbours` nearest rows of the same class, the first of equals (in single
    /// precision).
    pub fn new(sample: &Sample<'_>, neighbours: usize, mu: f64, watch: &Watch) -> Result<Self> {
        let rows = Sorted::new(sample);
        let (n, d) = (rows.x.rows(), rows.x.cols());
        let points = rows.x.transpose();
        let targets: Vec<Vec<usize>> = (0..n)
            .into_par_iter()
            .map(|i| {
                watch.check()?;
                let own = rows.classes[rows.class[i]].clone();
                let mut sq = vec![0.0; own.len()];
                linalg::sq_dists(&mut sq, rows.x.row(i), &points, own.start);
                let mut order: Vec<usize> = (0..own.len()).filter(|j| own.start + j != i).collect();
                // To single precision: which of equal distances comes out larger by rounding must not
                // decide.
                let key = |j: &usize| (sq[*j] as f32, *j);
                let nearer = |a: &usize, b: &usize| {
                    let (a, b) = (key(a), key(b));
                    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
                };
                let k = neighbours.min(order.len());
                if k < order.len() {
                    order.select_nth_unstable_by(k, nearer);
                    order.truncate(k);
                }
                order.sort_unstable_by(nearer);
                Ok(order.into_iter().map(|j| own.start + j).collect())
            })
            .collect::<Result<_>>()?;
        let mut w_x = Matrix::zeros(n, d);
        let mut margins = vec![0.0; n];
        for (i, targets) in targets.iter().enumerate() {
            for &j in targets {
                add_scaled(w_x.row_mut(i), rows.weight[i], rows.x.row(j));
                margins[i] += rows.weight[i];
                margins[j] += rows.weight[i];
            }
        }
        let pull = rows.contract(&w_x, &margins);
        let whitener = whitener(&pull).ok_or_else(|| Error::Parameter {
            name: "rows",
            value: "differences of rows".to_owned(),
            bound: "small enough for their squares to be finite".to_owned(),
        })?;
        Ok(Self { rows, mu, targets, pull, whitener })
    }

    /// Loss, smoothed loss and derivative at L with a hinge smoothed over `width`.
    pub fn evaluate(&self, l: &Matrix, width: f64, watch: &Watch) -> Result<Evaluation> {
        /// Rows of a tile of distances, and tasks that share the work: fixed, as sums have a
        /// fixed order.
        const TILE_ROWS: usize = 32;
        const TASKS: usize = 32;
        let (n, d) = (self.rows.x.rows(), self.rows.x.cols());
        let z = linalg::multiply((&self.rows.x).into(), Block::from(l).t());
        let norms: Vec<f64> = z.iter_rows().map(|z| dot(z, z)).collect();
        let rows_per_task = n.div_ceil(TILE_ROWS).div_ceil(TASKS) * TILE_ROWS;
        let mut w_x = Matrix::zeros(n, d);
        let parts: Vec<Part> = w_x
            .as_mut_slice()
            .par_chunks_mut((rows_per_task * d).max(1))
            .enumerate()
            .map(|(task, w_x)| {
                let mut part = Part { margins: vec![0.0; n], ..Part::default() };
                let mut tile = vec![0.0; TILE_ROWS.min(n) * n];
                for (t, w_x) in w_x.chunks_mut(TILE_ROWS * d).enumerate() {
                    watch.check()?;
                    let first = task * rows_per_task + t * TILE_ROWS;
                    let count = w_x.len() / d;
                    let block = Block::rows(&z, first, count);
                    for columns in self.columns(first..first + count) {
                        let (start, others) =
                            (columns.start, Block::rows(&z, columns.start, columns.len()));
                        linalg::product(&mut tile[start..], n, -2.0, block, others.t());
                    }
                    let tile = tile.chunks_exact(n);
                    for (i, (row, w_x)) in tile.zip(w_x.chunks_exact_mut(d)).enumerate() {
                        self.row(first + i, row, &z, &norms, width, w_x, &mut part);
                    }
                }
                Ok(part)
            })
            .collect::<Result<_>>()?;
        let mut sum = Part { margins: vec![0.0; n], ..Part::default() };
        for part in parts {
            sum.loss += part.loss;
            sum.smoothed += part.smoothed;
            sum.dual += part.dual;
            sum.dual_smoothing += part.dual_smoothing;
            sum.margins.iter_mut().zip(part.margins).for_each(|(sum, part)| *sum += part);
        }
        let mut q = self.rows.contract(&w_x, &sum.margins);
        q.as_mut_slice().iter_mut().zip(self.pull.as_slice()).for_each(|(q, a)| *q += a);
        let lq = linalg::multiply(l.into(), (&self.pull).into());
        let pull = dot(lq.as_slice(), l.as_slice());
        Ok(Evaluation {
            loss: pull + sum.loss,
            smoothed: pull + sum.smoothed,
            q,
            dual: sum.dual,
            dual_smoothing: sum.dual_smoothing,
        })
    }

    /// The columns that hold impostors of `rows`: all but those of their class, if it is one.
    fn columns(&self, rows: Range<usize>) -> [Range<usize>; 2] {
        let n = self.rows.class.len();
        let (first, last) = (self.rows.class[rows.start], self.rows.class[rows.end - 1]);
        let own = &self.rows.classes[first];
        if first == last { [0..own.start, own.end..n] } else { [0..n, n..n] }
    }

    /// The impostors of row i, of which `row` holds the -2 z_i'z_l: their part of the loss, and of
    /// W X and W 1 + W' 1, where W has -a_t at (i, l) and a_t at (i, j).
    #[allow(clippy::too_many_arguments)]
    fn row(
        &self,
        i: usize,
        row: &[f64],
        z: &Matrix,
        norms: &[f64],
        width: f64,
        w_x: &mut [f64],
        part: &mut Part,
    ) {
        let rows = &self.rows;
        let targets = &self.targets[i];
        // 1 + q_ij
        let reach = |&j: &usize| {
            1.0 + z.row(i).iter().zip(z.row(j)).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
        };
        let reaches: Vec<f64> = targets.iter().map(reach).collect();
        let furthest = reaches.iter().copied().fold(0.0, f64::max);
        if furthest == 0.0 {
            return;
        }
        let own = rows.classes[rows.class[i]].clone();
        let Part { found, .. } = part;
        found.clear();
        closer_than(&row[..own.start], norms[i], &norms[..own.start], furthest, 0, found);
        closer_than(&row[own.end..], norms[i], &norms[own.end..], furthest, own.end, found);
        let mut pulled = vec![0.0; targets.len()];
        for &(l, q) in &part.found {
            let most = self.mu * rows.weight[i] * rows.weight[l];
            let mut pushed = 0.0;
            for (pulled, reach) in pulled.iter_mut().zip(&reaches) {
                let s = reach - q;
                if s > 0.0 {
                    let a = (s / width).min(1.0);
                    part.loss += most * s;
                    part.smoothed += most * a * (s - 0.5 * width * a);
                    part.dual_smoothing += most * 0.5 * width * a * a;
                    pushed += most * a;
                    *pulled += most * a;
                }
            }
            if pushed > 0.0 {
                part.dual += pushed;
                part.margins[l] -= pushed;
                part.margins[i] -= pushed;
                add_scaled(w_x, -pushed, rows.x.row(l));
            }
        }
        for (&j, &pulled) in targets.iter().zip(&pulled) {
            part.margins[i] += pulled;
            part.margins[j] += pulled;
            add_scaled(w_x, pulled, rows.x.row(j));
        }
    }

    /// Lower bounds on the least loss and on the least smoothed loss, by the dual.
    fn bounds(&self, evaluation: &Evaluation) -> (f64, f64) {
        let share = self.feasible_share(&evaluation.q);
        let Evaluation { dual, dual_smoothing, .. } = evaluation;
        (share * dual, share * (dual - share * dual_smoothing))
    }

    /// The largest share s <= 1 of the a_t for which A - s sum_t a_t B_t is semidefinite.
    fn feasible_share(&self, q: &Matrix) -> f64 {
        // A - s P = (1 - s) A + s Q; where A is the identity this asks for 1 - s + s q >= 0.
        let half = linalg::multiply((&self.whitener).into(), q.into());
        let white = linalg::multiply((&half).into(), Block::from(&self.whitener).t());
        if white.rows() == 0 {
            return 0.0;
        }
        let least = linalg::symmetric_eigen(&white).and_then(|(values, _)| values.last().copied());
        // What A does not see must not be seen by the impostors either.
        let (inside, all) = (trace_within(q, &self.whitener), trace(q));
        let hidden = (all - inside).abs() > 1e-6 * (all.abs() + trace(&self.pull));
        match least {
            Some(least) if least.is_finite() && !hidden => 1.0 / (1.0 - least).max(1.0),
            _ => 0.0,
        }
    }
}

/// Sums over the rows of one task.
#[derive(Default)]
struct Part {
    loss: f64,
    smoothed: f64,
    dual: f64,
    dual_smoothing: f64,
    /// W 1 + W' 1
    margins: Vec<f64>,
    /// Rows within reach of the present row and their distances: kept for its memory.
    found: Vec<(usize, f64)>,
}

fn trace(a: &Matrix) -> f64 {
    (0..a.rows()).map(|k| a[(k, k)]).sum()
}

/// The trace of `a` in the space spanned by the rows of `basis`, which are orthogonal.
fn trace_within(a: &Matrix, basis: &Matrix) -> f64 {
    let b = linalg::multiply(basis.into(), a.into());
    basis.iter_rows().zip(b.iter_rows()).map(|(v, av)| dot(v, av) / dot(v, v)).sum()
}

/// Rows v / sqrt(a) for the eigenvectors v of A whose eigenvalue a is not zero.
fn whitener(a: &Matrix) -> Option<Matrix> {
    let d = a.rows();
    if a.as_slice().iter().any(|v| !v.is_finite()) {
        return None;
    }
    let (values, vectors) = linalg::symmetric_eigen(a)?;
    let largest = values.first().copied().unwrap_or(0.0);
    let rank = values.iter().take_while(|v| **v > 1e-10 * largest).count();
    Some(Matrix::from_fn(rank, d, |i, j| vectors[(i, j)] / values[i].sqrt()))
}
