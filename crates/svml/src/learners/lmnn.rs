//! Large margin nearest neighbours (Weinberger, Blitzer and Saul; section 3.2 of the paper).
//!
//! The target neighbours j of a row i are its k nearest of the same class in the Euclidean metric.
//! With w the weights of rows and `q = |L(x - z)|^2`, the problem solved is that of the paper,
//!
//! ```text
//! min over M = L'L   sum_i w_i sum_{j target of i} ( q_ij + mu sum_{l of another class} w_l [1 + q_ij - q_il]+ )
//! ```
//!
//! A weight has the same effect as repeating the row, both as a row i with targets and as an impostor l.
//! (metric-learn minimises rho times this, with mu = (1 - rho)/rho and rho its `regularization`.)
//!
//! It is convex in M and has kinks. The hinge is smoothed over a width delta,
//! `h(s) = max_{0 <= a <= 1} a s - delta a^2 / 2`, and minimised over L, which keeps M semidefinite.
//! The derivative in M is `Q = A - sum_t a_t B_t` with A the sum of the `w_i (x_i - x_j)(x_i - x_j)'`,
//! `B_t = (x_i - x_l)(x_i - x_l)' - (x_i - x_j)(x_i - x_j)'` and `0 <= a_t <= mu w_i w_l` for a triple
//! t = (i, j, l); in L it is 2 L Q.
//!
//! The dual problem, `max sum_t a_t` over those a for which Q is positive semidefinite, certifies the
//! optimum: the a_t at any L, multiplied by a factor that makes Q semidefinite, give a lower bound. Delta
//! is reduced until the duality gap between the loss and this bound is within the tolerance; a gap of 1e-3
//! says that no metric can have a loss that is lower by more than a thousandth. If L has fewer rows than
//! columns, the bound still holds but the loss does not reach it: learning then ends when the loss no longer falls.

use std::ops::Range;

use super::by_class::{RowsByClass, metric_of};
use super::parameters::{check, check_positive, check_rank, check_tolerance, parameters, to_json};
use super::step_log::{Start, StepLog};
use super::{Init, Learned, Learner, check_numbers};
use crate::data::Sample;
use crate::error::{Error, Remedy, Result};
use crate::linalg::{self, Block, Matrix, add_scaled, closer_than, dot};
use crate::memory;
use crate::optimise::{Accepted, Limits, Objective, Optimiser, Watched, minimise};
use crate::parallel;
use crate::run::{Run, Stop, Watch};

parameters! {
    /// Parameters of large margin nearest neighbours.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Lmnn {
        /// Number k of target neighbours of each row; in a class of fewer than k + 1 rows, all other rows of
        /// the class.
        neighbours: usize = 3, "an integer of at least 1";
        /// Weight mu of the impostors in the loss.
        mu: f64 = 1.0, "a positive number";
        /// Number of rows of L, that is, of dimensions to map into. None: the number of features.
        rank: Option<usize> = None, "an integer of at least 1, or none";
        /// Where L starts: identity, scaled, or L0 on the original features, as {"given": [[..], ..]}.
        #[alias = "initial"]
        init: Init = Init::Identity, "identity, scaled or an array";
        /// How the loss is minimised: lbfgs or conjugate_gradients.
        optimiser: Optimiser = Optimiser::Lbfgs, "lbfgs or conjugate_gradients";
        /// Maximum number of accepted steps.
        max_iterations: usize = 1000, "an integer of at least 0";
        /// Learning ends when the duality gap, relative to the loss, is at most this. If L has fewer rows than there are
        /// features, no such gap is reached: it ends when the loss, relative to itself, falls by no more than this in ten
        /// steps, and again with a narrower hinge.
        tolerance: f64 = 1e-3, "a number of at least 0";
    }
}

/// Length of the first step, where L is of order one.
const FIRST_STEP: f64 = 0.1;
/// Width of the smoothed hinge at the start, and the factor by which it is narrowed.
const WIDEST: f64 = 0.5;
const NARROWER: f64 = 0.25;
/// Without a certificate: steps over which the loss must fall by more than the tolerance to go on.
const SETTLED: usize = 10;
/// The hinge is not narrowed below this width, where rounding errors dominate.
const NARROWEST: f64 = 1e-9;

impl Learner for Lmnn {
    fn name(&self) -> &str {
        "lmnn"
    }

    fn title(&self) -> &str {
        "large margin nearest neighbours"
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
        check("neighbours", &self.neighbours, self.neighbours > 0, "at least 1")?;
        check_positive("mu", self.mu)?;
        check_tolerance(self.tolerance)
    }

    fn learn(&self, sample: &Sample<'_>, run: &mut Run<'_>) -> Result<Learned> {
        self.validate(sample.features())?;
        let form = self.init.form(self.rank, sample.features())?;
        let (d, vectors) = (sample.features(), self.optimiser.vectors());
        // Matrices of d x d: the pulls, Q and what it is made of, and eigenvectors of such matrices.
        let numbers = vectors * form.len(d) as u128 + 10 * (d as u128).pow(2);
        check_numbers(form, d, numbers, memory::free())?;
        let initial = self.init.metric(sample, form)?.components();
        let rows = sample.rows();
        let start = Start::new(initial, sample, run, |few, initial, run| {
            // Of fewer rows fewer are impostors: each stands for several.
            let mu = self.mu * rows as f64 / few.rows() as f64;
            Self { mu, ..self.clone() }.learn_from(&Start::given(initial, few.rows()), few, run)
        })?;
        self.learn_from(&start, sample, run)
    }
}

impl Lmnn {
    fn learn_from(&self, start: &Start, sample: &Sample<'_>, run: &mut Run<'_>) -> Result<Learned> {
        let (r, d) = (start.l.rows(), start.l.cols());
        let problem = match LmnnProblem::new(sample, self.neighbours, self.mu, run.watch()) {
            Err(Error::Interrupted) => {
                return start.as_result(run.watch().cause(), metric_of(start.l.clone())?);
            }
            problem => problem?,
        };
        let mut theta = start.l.as_slice().to_vec();
        let mut descent = Descent {
            problem: &problem,
            shape: (r, d),
            width: WIDEST,
            tolerance: self.tolerance,
            last: None,
            bound: 0.0,
            finished: false,
            entered: false,
            recent: Vec::new(),
            settled: None,
            log: StepLog::new(run),
        };
        let ended = loop {
            let steps = descent.log.steps();
            let limits = Limits {
                iterations: self.max_iterations.saturating_sub(steps),
                tolerance: 0.0,
                least_size: 0.0,
                first_step: FIRST_STEP,
            };
            descent.entered = false;
            descent.recent.clear();
            match minimise(self.optimiser, &mut descent, &mut theta, limits) {
                // The minimum for this width is found, but the duality gap is still above the tolerance.
                Ok(Stop::Tolerance | Stop::Minimum)
                    if !descent.finished && descent.width > NARROWEST =>
                {
                    descent.width *= NARROWER;
                }
                ended => break ended,
            }
        };
        let l_of = |theta: &[f64]| Matrix::new(r, d, theta.to_vec());
        descent.log.finish(ended, start, |theta| metric_of(l_of(theta)?))
    }
}

struct Descent<'a, 'b, 'c> {
    problem: &'a LmnnProblem,
    shape: (usize, usize),
    /// Width delta of the smoothed hinge.
    width: f64,
    tolerance: f64,
    /// The last point that was evaluated, with its loss and derivative.
    last: Option<(Vec<f64>, LmnnValue)>,
    /// The best lower bound on the loss so far.
    bound: f64,
    /// Whether a step has been accepted with the present width.
    entered: bool,
    /// Losses of the steps with the present width.
    recent: Vec<f64>,
    /// The loss at which it no longer fell with the width before.
    settled: Option<f64>,
    /// Whether the duality gap is within the tolerance.
    finished: bool,
    log: StepLog<'b, 'c>,
}

impl Objective for Descent<'_, '_, '_> {
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (r, d) = self.shape;
        let l = Matrix::new(r, d, theta.to_vec())?;
        let evaluation = self.problem.evaluate(&l, self.width, self.log.watch())?;
        gradient.iter_mut().zip(evaluation.l_q.as_slice()).for_each(|(g, d)| *g = 2.0 * d);
        let value = evaluation.smoothed;
        self.last = Some((theta.to_vec(), evaluation));
        Ok(value)
    }
}

impl Watched for Descent<'_, '_, '_> {
    fn accept(&mut self, accepted: &Accepted<'_>) -> Result<Option<Stop>> {
        if self.last.as_ref().is_none_or(|(theta, _)| theta != accepted.x) {
            self.evaluate(accepted.x, &mut vec![0.0; accepted.x.len()])?;
        }
        let Some((_, evaluation)) = &self.last else {
            return Ok(None);
        };
        let (bound, smoothed_bound) = self.problem.bounds(evaluation, self.log.watch())?;
        let LmnnValue { loss, smoothed, .. } = *evaluation;
        self.bound = self.bound.max(bound);
        let gap = (loss - self.bound) / loss.max(f64::MIN_POSITIVE);
        // The first point with a new width is the last point with the width before, already in the log.
        let repeated = !std::mem::replace(&mut self.entered, true) && self.width < WIDEST;
        if !repeated && let Some(stop) = self.log.record(accepted, loss, Some(gap)) {
            return Ok(Some(stop));
        }
        self.finished = gap <= self.tolerance;
        if self.finished {
            return Ok(Some(Stop::Tolerance));
        }
        // The bound is that of a square L: fewer rows do not reach it.
        if self.shape.0 < self.shape.1 && self.has_settled(loss) {
            let before = self.settled.replace(loss);
            self.finished = before.is_some_and(|before| before - loss <= self.tolerance * loss);
            let stop = if self.finished { Stop::Tolerance } else { Stop::Minimum };
            return Ok(Some(stop));
        }
        // If at least half of the remaining gap is due to the smoothing, a narrower hinge is needed.
        let due = smoothed - smoothed_bound <= 0.5 * (loss - bound) && self.width > NARROWEST;
        Ok(due.then_some(Stop::Minimum))
    }
}

impl Descent<'_, '_, '_> {
    /// Whether the loss fell by no more than the tolerance in the last steps with the present width.
    fn has_settled(&mut self, loss: f64) -> bool {
        self.recent.push(loss);
        let before = self.recent.len().checked_sub(SETTLED + 1).map(|k| self.recent[k]);
        before.is_some_and(|before| before - loss <= self.tolerance * loss)
    }
}

/// The problem on a sample: its rows, targets and weights.
pub struct LmnnProblem {
    rows: RowsByClass,
    mu: f64,
    /// Target neighbours of each row.
    targets: Vec<Vec<usize>>,
    /// A = sum_i w_i sum_j (x_i - x_j)(x_i - x_j)'. // (d, d)
    pull: Matrix,
    /// H with A = X'H + H'X, where there are fewer rows than columns. // (n, d)
    pull_half: Option<Matrix>,
    /// T such that T A T' is the identity: the eigenvectors of A whose eigenvalues are not zero, as rows,
    /// each divided by the square root of its eigenvalue. // (rank of A, d)
    whitener: Matrix,
}

/// Loss and derivative at one L.
pub struct LmnnValue {
    /// The loss with the exact hinge.
    pub loss: f64,
    /// The loss with the smoothed hinge.
    pub smoothed: f64,
    /// Derivative of the smoothed loss in M. // (d, d)
    pub q: Matrix,
    /// L times it, half of the derivative in L. // (r, d)
    pub l_q: Matrix,
    /// Sum of the a_t.
    dual: f64,
    /// Sum of delta a_t^2 / (2 mu w_i w_l): what the smoothing subtracts from the dual value.
    dual_smoothing: f64,
}

impl LmnnProblem {
    /// Finds the targets: the `neighbours` nearest observations of the same class. Among rows at the same distance, to
    /// single precision, the first ones are taken.
    pub fn new(sample: &Sample<'_>, neighbours: usize, mu: f64, watch: &Watch) -> Result<Self> {
        let rows = RowsByClass::new(sample);
        let (n, d) = (rows.x.rows(), rows.x.cols());
        let points = rows.x.transpose();
        let targets: Vec<Vec<usize>> = parallel::try_map(0..n, |i| {
            watch.check()?;
            let own = rows.classes[rows.class[i]].clone();
            let mut sq = vec![0.0; own.len()];
            linalg::sq_dists(&mut sq, rows.x.row(i), &points, own.start);
            let mut order: Vec<usize> = (0..own.len()).filter(|j| own.start + j != i).collect();
            // Distances are compared in single precision, so that rounding does not decide between
            // rows at the same distance.
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
            // Of m equal observations each has the other m - 1 as its nearest.
            let all = order.into_iter().map(|j| (own.start + j, rows.copies[own.start + j]));
            let all = std::iter::once((i, rows.copies[i] - 1)).chain(all);
            let repeated = all.flat_map(|(j, m)| std::iter::repeat_n(j, m as usize));
            Ok(repeated.take(neighbours).collect())
        })?;
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
        let pull_half = rows.are_few().then(|| rows.half(&w_x, &margins));
        let pairs =
            targets.iter().enumerate().flat_map(|(i, all)| all.iter().map(move |j| (i, *j)));
        let pairs: Vec<(usize, usize)> = pairs.collect();
        // The same as the sum of products of fewer differences than there are columns, whose own products are smaller.
        let differences = (pairs.len() < d).then(|| {
            Matrix::from_fn(pairs.len(), d, |p, k| {
                let (i, j) = pairs[p];
                rows.weight[i].sqrt() * (rows.x[(i, k)] - rows.x[(j, k)])
            })
        });
        let whitener =
            whitener(&pull, differences.as_ref(), watch)?.ok_or_else(|| Error::Numerical {
                what: "the squared differences of rows are not finite".to_owned(),
                remedy: Remedy::RescaleColumn,
            })?;
        Ok(Self { rows, mu, targets, pull, pull_half, whitener })
    }

    /// Loss, smoothed loss and derivative at L with a hinge smoothed over `width`.
    pub fn evaluate(&self, l: &Matrix, width: f64, watch: &Watch) -> Result<LmnnValue> {
        /// Rows of a tile of distances, and number of tasks that share the work. Both are fixed, so that
        /// sums have the same order for any number of threads.
        const TILE_ROWS: usize = 32;
        const TASKS: usize = 32;
        let (n, d) = (self.rows.x.rows(), self.rows.x.cols());
        let z = linalg::multiply((&self.rows.x).into(), Block::from(l).t());
        let norms: Vec<f64> = z.iter_rows().map(|z| dot(z, z)).collect();
        let rows_per_task = n.div_ceil(TILE_ROWS).div_ceil(TASKS) * TILE_ROWS;
        let mut w_x = Matrix::zeros(n, d);
        let tasks = w_x.as_mut_slice().chunks_mut((rows_per_task * d).max(1)).enumerate();
        let parts: Vec<Part> = parallel::try_map(tasks, |(task, w_x)| {
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
        })?;
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
        watch.check()?;
        let (l_q, pull) = match &self.pull_half {
            Some(pull_half) => {
                // The trace of L A L', which is twice that of z'H L'.
                let h = linalg::multiply(pull_half.into(), Block::from(l).t());
                let mut half = self.rows.half(&w_x, &sum.margins);
                half.as_mut_slice().iter_mut().zip(pull_half.as_slice()).for_each(|(q, a)| *q += a);
                (self.rows.times_few(l, &z, &half), 2.0 * dot(z.as_slice(), h.as_slice()))
            }
            None => {
                let pulled = linalg::multiply_in_time(l, &self.pull, watch)?;
                let pull = dot(pulled.as_slice(), l.as_slice());
                (linalg::multiply_in_time(l, &q, watch)?, pull)
            }
        };
        Ok(LmnnValue {
            loss: pull + sum.loss,
            smoothed: pull + sum.smoothed,
            q,
            l_q,
            dual: sum.dual,
            dual_smoothing: sum.dual_smoothing,
        })
    }

    /// The rows that can be impostors of some of `rows`: all rows of other classes if `rows` are of one class,
    /// otherwise all rows.
    fn columns(&self, rows: Range<usize>) -> [Range<usize>; 2] {
        let n = self.rows.class.len();
        let (first, last) = (self.rows.class[rows.start], self.rows.class[rows.end - 1]);
        let own = &self.rows.classes[first];
        if first == last { [0..own.start, own.end..n] } else { [0..n, n..n] }
    }

    /// Adds the terms of row i and its impostors l to the loss and to W 1 + W' 1 (both in `part`), and to row i
    /// of W X (`w_x`), where W has -a_t at (i, l) and a_t at (i, j). `row[l]` is -2 z_i'z_l.
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
        // 1 + q_ij: a row of another class that is nearer than this is an impostor.
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

    /// Lower bounds, from the dual, on the minimum of the loss and on that of the smoothed loss.
    fn bounds(&self, evaluation: &LmnnValue, watch: &Watch) -> Result<(f64, f64)> {
        let share = self.feasible_share(&evaluation.q, watch)?;
        let LmnnValue { dual, dual_smoothing, .. } = evaluation;
        Ok((share * dual, share * (dual - share * dual_smoothing)))
    }

    /// The largest share s <= 1 of the a_t for which A - s sum_t a_t B_t is semidefinite.
    fn feasible_share(&self, q: &Matrix, watch: &Watch) -> Result<f64> {
        // With P = sum_t a_t B_t and Q = A - P, the matrix A - s P is (1 - s) A + s Q. In a basis where A
        // is the identity it is semidefinite if 1 - s + s q >= 0 for the smallest eigenvalue q of Q.
        let half = linalg::multiply((&self.whitener).into(), q.into());
        let white = linalg::multiply((&half).into(), Block::from(&self.whitener).t());
        if white.rows() == 0 {
            return Ok(0.0);
        }
        let eigen = linalg::symmetric_eigen_in_time(&white, watch)?;
        let least = eigen.and_then(|(values, _)| values.last().copied());
        // Along directions where A is zero Q must be zero too; otherwise no lower bound is known.
        let (inside, all) = (trace_within(q, &self.whitener), trace(q));
        let hidden = (all - inside).abs() > 1e-6 * (all.abs() + trace(&self.pull));
        Ok(match least {
            Some(least) if least.is_finite() && !hidden => 1.0 / (1.0 - least).max(1.0),
            _ => 0.0,
        })
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
    /// Rows near enough to the present row to be impostors, with their squared distances. The list is kept
    /// from row to row so that its memory is used again.
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
/// Where A = D'D with fewer rows of D than columns, the eigenvectors of DD' do.
fn whitener(a: &Matrix, differences: Option<&Matrix>, watch: &Watch) -> Result<Option<Matrix>> {
    if a.as_slice().iter().any(|v| !v.is_finite()) {
        return Ok(None);
    }
    let eigen = match differences {
        None => linalg::symmetric_eigen_in_time(a, watch)?,
        Some(d) => {
            let products = linalg::multiply(Block::from(d), Block::from(d).t());
            linalg::symmetric_eigen_in_time(&products, watch)?
        }
    };
    let Some((values, vectors)) = eigen else { return Ok(None) };
    let largest = values.first().copied().unwrap_or(0.0);
    let rank = values.iter().take_while(|v| **v > 1e-10 * largest).count();
    // An eigenvector u of DD' is D'u over the root of its eigenvalue as one of A.
    let power = |value: f64| if differences.is_some() { value } else { value.sqrt() };
    let scaled = Matrix::from_fn(rank, vectors.cols(), |i, j| vectors[(i, j)] / power(values[i]));
    Ok(Some(match differences {
        None => scaled,
        Some(d) => linalg::multiply((&scaled).into(), d.into()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that stands for equal observations is these: the others of its kind are its nearest.
    #[test]
    fn equal_observations_are_the_first_targets_of_each_other() {
        let row = [0, 0, 1, 2, 2, 2, 3, 4, 4];
        let of = |i: usize, k: usize| ((i * (2 * k + 3)) as f64 * 0.7).sin();
        let (all, merged) =
            (Matrix::from_fn(9, 2, |i, k| of(row[i], k)), Matrix::from_fn(5, 2, of));
        let class = row.map(|i| usize::from(i > 2));
        let copies = [2, 1, 3, 1, 2];
        let weight = copies.map(|m| m as f64);
        let one_by_one = Sample::new(&all, &class, &[1.0; 9], 2).unwrap();
        let together = Sample::new(&merged, &[0, 0, 0, 1, 1], &weight, 2).unwrap();
        let together = together.with_copies(&copies);
        let l = Matrix::from_fn(2, 2, |i, k| 0.5 + 0.3 * i as f64 - 0.4 * k as f64);
        for neighbours in 1..4 {
            let evaluate = |sample: &Sample<'_>| {
                let problem = LmnnProblem::new(sample, neighbours, 0.6, &Watch::default()).unwrap();
                problem.evaluate(&l, 0.1, &Watch::default()).unwrap()
            };
            let (a, b) = (evaluate(&one_by_one), evaluate(&together));
            assert!(a.loss > 0.1 && (a.loss - b.loss).abs() < 1e-12, "{} {}", a.loss, b.loss);
            for (a, b) in a.q.as_slice().iter().zip(b.q.as_slice()) {
                assert!((a - b).abs() < 1e-12, "{neighbours}: {a} {b}");
            }
        }
    }

    /// W'W is the inverse of A where A is not zero, however W is found.
    #[test]
    fn differences_whiten_as_their_products_do() {
        let differences = Matrix::from_fn(3, 6, |i, k| ((i * 5 + k * 3) % 7) as f64 - 2.5);
        let block = Block::from(&differences);
        let a = linalg::multiply(block.t(), block);
        let square = |differences: Option<&Matrix>| {
            let w = whitener(&a, differences, &Watch::default()).unwrap().unwrap();
            assert_eq!(w.rows(), 3);
            linalg::multiply(Block::from(&w).t(), (&w).into())
        };
        let (one, other) = (square(None), square(Some(&differences)));
        for (a, b) in one.as_slice().iter().zip(other.as_slice()) {
            assert!((a - b).abs() < 1e-12, "{a} {b}");
        }
    }
}
