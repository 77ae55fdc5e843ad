//! Information-theoretic metric learning (Davis, Kulis, Jain, Sra and Dhillon; section 3.3 of the paper).
//!
//! Pairs of rows of the same class (S) should be near each other, pairs of different classes (D) far
//! apart, in a metric M that is as close as possible to the prior M0. With slack variables xi:
//!
//! ```text
//! min over M, xi   tr(M M0^-1) - log det(M M0^-1) + gamma sum_c ( xi_c/b_c - log(xi_c/b_c) )
//!                  v_c' M v_c <= xi_c  (c in S, b_c = u),     v_c' M v_c >= xi_c  (c in D, b_c = l)
//! ```
//!
//! where v_c is the difference of the two rows of pair c. Bregman projections satisfy one constraint
//! after the other; each changes M by a matrix of rank one and keeps it positive definite. With
//! multipliers `lambda_c >= 0` the optimum is where
//!
//! ```text
//! M^-1 = M0^-1 + sum_S lambda_c v_c v_c' - sum_D lambda_c v_c v_c'
//! 1/xi_c = 1/u - lambda_c/gamma (S),  1/l + lambda_c/gamma (D),    lambda_c (v_c' M v_c - xi_c) = 0
//! ```
//!
//! The first two hold after every projection, the last in the limit. (metric-learn runs the same
//! projections, but its bounds are percentiles of distances; here and in the original they are
//! percentiles of squared distances.)

use std::collections::BTreeSet;

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::by_class::metric_of;
use super::parameters::{check, check_positive, check_tolerance, parameters, to_json};
use super::step_log::{Start, StepLog};
use super::{Learned, Learner, check_numbers};
use crate::data::Sample;
use crate::error::{Error, Remedy, Result};
use crate::linalg::{self, Cholesky, Matrix, add_outer, dot, symmetric_times};
use crate::memory;
use crate::metric::Form;
use crate::optimise::Accepted;
use crate::run::{Run, Stop, Watch};

parameters! {
    /// Parameters of information-theoretic metric learning.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Itml {
        /// Weight gamma of the slack: the larger it is, the more strictly the bounds hold.
        gamma: f64 = 1.0, "a positive number";
        /// Number of random pairs of the same class, and of different classes; rows are drawn in proportion
        /// to their weights. None: 20 times the square of the number of classes.
        pairs: Option<usize> = None, "an integer of at least 1, or none";
        /// Bounds on squared distances: u from above for pairs of the same class, l from below for pairs of
        /// different classes. None: percentiles of the squared distances under the prior.
        bounds: Option<(f64, f64)> = None, "a pair of positive numbers, or none";
        /// The percentiles that give u and l where bounds are none.
        percentiles: (f64, f64) = (5.0, 95.0), "a pair of numbers, ascending, from 0 to 100";
        /// Prior M0 = s^2 I. None: s^2 = 1/d, as in the paper.
        prior: Option<f64> = None, "a positive number, or none";
        /// Maximum number of rounds through all pairs.
        max_iterations: usize = 1000, "an integer of at least 0";
        /// Learning ends when a round changes the multipliers by no more than this, relative to their size.
        tolerance: f64 = 1e-3, "a number of at least 0";
        /// Seed of the random pairs.
        seed: u64 = 0, "an integer of at least 0";
    }
}

/// Maximum number of rows whose mutual distances are used for the percentiles; more rows would hardly
/// change them.
const BOUND_ROWS: usize = 1000;
/// Maximum number of pairs of the same class, and of different classes.
const MOST_PAIRS: usize = 10_000_000;

impl Learner for Itml {
    fn name(&self) -> &str {
        "itml"
    }

    fn title(&self) -> &str {
        "information-theoretic metric learning"
    }

    fn parameters(&self) -> serde_json::Value {
        to_json(self)
    }

    fn max_steps(&self) -> Option<usize> {
        Some(self.max_iterations)
    }

    fn validate(&self, _: usize) -> Result<()> {
        let positive = |v: f64| v.is_finite() && v > 0.0;
        check_positive("gamma", self.gamma)?;
        if let Some((u, l)) = self.bounds {
            let value = format!("{u}, {l}");
            check("bounds", &value, positive(u) && positive(l), "positive and finite")?;
        }
        let (low, high) = self.percentiles;
        let ordered = low >= 0.0 && low <= high && high <= 100.0;
        check("percentiles", &format!("{low}, {high}"), ordered, "ascending, from 0 to 100")?;
        if let Some(prior) = self.prior {
            check_positive("prior", prior)?;
        }
        if let Some(pairs) = self.pairs {
            let bound = format!("between 1 and {MOST_PAIRS}");
            check("pairs", &pairs, (1..=MOST_PAIRS).contains(&pairs), &bound)?;
        }
        check_tolerance(self.tolerance)
    }

    fn learn(&self, sample: &Sample<'_>, run: &mut Run<'_>) -> Result<Learned> {
        self.validate(sample.features())?;
        let wanted = self.pairs.unwrap_or(20 * sample.classes().pow(2)).min(MOST_PAIRS);
        let pairs = Pairs::draw(sample, wanted, self.seed);
        self.learn_pairs(sample.x(), &pairs, run)
    }
}

impl Itml {
    /// Learns from pairs of the rows of `x`, which are standardised. Where bounds are not given, they are percentiles of
    /// the squared distances between all rows of `x`, which should be distinct.
    pub(crate) fn learn_pairs(
        &self,
        x: &Matrix,
        pairs: &Pairs,
        run: &mut Run<'_>,
    ) -> Result<Learned> {
        let d = x.cols();
        // M, its start, copies of both, and its eigenvectors or its factor.
        check_numbers(Form::Full, d, 10 * (d as u128).pow(2), memory::free())?;
        let prior = self.prior.unwrap_or(1.0 / d.max(1) as f64);
        let scaled = |value: f64| Matrix::from_fn(d, d, |i, j| if i == j { value } else { 0.0 });
        let start = Start::given(scaled(prior.sqrt()), x.rows());
        let bounds = match self.bounds {
            Some(bounds) => Ok(bounds),
            None => percentiles(x, prior, self.percentiles, run.watch()),
        };
        let bounds = match bounds {
            Err(Error::Interrupted) => {
                return start.as_result(run.watch().cause(), metric_of(start.l.clone())?);
            }
            bounds => bounds?,
        };
        let differences = |pairs: &[(usize, usize)]| -> Vec<Vec<f64>> {
            let difference = |&(i, j): &(usize, usize)| -> Vec<f64> {
                x.row(i).iter().zip(x.row(j)).map(|(a, b)| a - b).collect()
            };
            pairs.iter().map(difference).collect()
        };
        let mut projection = Projection::new(
            scaled(prior),
            &differences(&pairs.similar),
            &differences(&pairs.dissimilar),
            bounds,
            self.gamma,
        );
        let mut log = StepLog::new(run);
        let mut stop = Stop::Iterations;
        for _ in 0..self.max_iterations {
            if log.watch().check().is_err() {
                // The result is the metric after the last round; without one it is the prior.
                let ended = Err(Error::Interrupted);
                return log.finish(ended, &start, |m| components(d, m));
            }
            let Ok(change) = projection.round_in_time(log.watch()) else {
                let ended = Err(Error::Interrupted);
                return log.finish(ended, &start, |m| components(d, m));
            };
            let step = Accepted { x: projection.m.as_slice(), value: change, step_length: change };
            let ended = log.record(&step, projection.divergence(), None);
            if let Some(ended) = ended {
                stop = ended;
                break;
            }
            if change <= self.tolerance {
                stop = Stop::Tolerance;
                break;
            }
        }
        if self.max_iterations == 0 {
            log.record(
                &Accepted { x: projection.m.as_slice(), value: 0.0, step_length: 0.0 },
                0.0,
                None,
            );
        }
        log.finish(Ok(stop), &start, |m| components(d, m))
    }
}

/// What a model says of its learner if the metric was learned from pairs that were given. It has the parameters of
/// [`Itml`], but nothing can be learned with it from a table of rows with classes.
#[derive(Debug)]
pub(crate) struct ItmlOfPairs(pub Itml);

impl ItmlOfPairs {
    pub const NAME: &str = "itml_pairs";
}

impl Learner for ItmlOfPairs {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn title(&self) -> &str {
        "information-theoretic metric learning from given pairs"
    }

    fn parameters(&self) -> serde_json::Value {
        to_json(&self.0)
    }

    fn learn(&self, _: &Sample<'_>, _: &mut Run<'_>) -> Result<Learned> {
        Err(Error::Unsupported(
            "this metric was learned from pairs of rows, not from rows with classes: the model can be used, but it cannot be fitted again to a table"
                .to_owned(),
        ))
    }
}

/// Of more columns than this the factor of M is found much sooner than its eigenvectors.
const LARGE: usize = 1000;

/// L with L'L = M: the eigenvectors of M times the roots of its eigenvalues or, of many columns, Cholesky's factor.
fn components(d: usize, m: &[f64]) -> Result<crate::metric::Metric> {
    let m = Matrix::new(d, d, m.to_vec())?;
    let failed = || Error::Numerical {
        what: "the metric became infinite: the bounds on the distances are too far from the data"
            .to_owned(),
        remedy: Remedy::RescaleColumn,
    };
    if m.as_slice().iter().any(|v| !v.is_finite()) {
        return Err(failed());
    }
    // M is positive definite, if rounding has not spoilt it.
    if d > LARGE
        && let Ok(factor) = Cholesky::new(m.as_slice().to_vec(), d, 0.0, &Watch::default())
    {
        let r = factor.into_buffer();
        return metric_of(Matrix::from_fn(d, d, |i, j| if i <= j { r[i * d + j] } else { 0.0 }));
    }
    let (values, vectors) = linalg::symmetric_eigen(&m).ok_or_else(failed)?;
    let l = Matrix::from_fn(d, d, |i, j| values[i].max(0.0).sqrt() * vectors[(i, j)]);
    metric_of(super::pca::with_fixed_signs(l))
}

/// Percentiles of the squared distances between (at most 1000 evenly spread) rows, times `scale`,
/// interpolated linearly as numpy does; at least 1e-9.
fn percentiles(x: &Matrix, scale: f64, at: (f64, f64), watch: &Watch) -> Result<(f64, f64)> {
    let n = x.rows();
    let rows: Vec<usize> = (0..n).step_by(n.div_ceil(BOUND_ROWS).max(1)).collect();
    let points = x.select_rows(&rows).transpose();
    let mut all = Vec::with_capacity(rows.len() * rows.len() / 2);
    for (p, &i) in rows.iter().enumerate() {
        watch.check()?;
        let mut sq = vec![0.0; p];
        linalg::sq_dists(&mut sq, x.row(i), &points, 0);
        all.extend(sq.iter().map(|sq| scale * sq));
    }
    let mut percentile = |percent: f64| {
        let Some(last) = all.len().checked_sub(1) else {
            return 1.0;
        };
        let place = percent / 100.0 * last as f64;
        let below = (place.floor() as usize).min(last);
        let (_, &mut low, above) = all.select_nth_unstable_by(below, f64::total_cmp);
        let high = above.iter().copied().fold(f64::INFINITY, f64::min);
        let share = place - below as f64;
        let value = if high.is_finite() { low + share * (high - low) } else { low };
        value.max(1e-9)
    };
    Ok((percentile(at.0), percentile(at.1)))
}

/// Pairs of rows.
pub struct Pairs {
    /// Pairs that should be near each other: random pairs of the same class, or those that were given.
    pub similar: Vec<(usize, usize)>,
    /// Pairs that should be far apart.
    pub dissimilar: Vec<(usize, usize)>,
}

impl Pairs {
    /// Draws up to `wanted` pairs of each kind, with rows drawn in proportion to their weights. No pair occurs
    /// twice, and none has two identical rows. There are fewer pairs if the sample does not have enough.
    pub fn draw(sample: &Sample<'_>, wanted: usize, seed: u64) -> Self {
        /// Number of attempts for each wanted pair before giving up.
        const PATIENCE: usize = 20;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut cumulated = Vec::with_capacity(sample.weight().len());
        let mut total = 0.0;
        for w in sample.weight() {
            total += w;
            cumulated.push(total);
        }
        let last = cumulated.len().saturating_sub(1);
        let mut row = || {
            let place = rng.random::<f64>() * total;
            cumulated.partition_point(|c| *c <= place).min(last)
        };
        let mut draw = |same: bool| {
            let (mut seen, mut pairs) = (BTreeSet::new(), Vec::new());
            let mut left = wanted.saturating_mul(PATIENCE);
            while pairs.len() < wanted && left > 0 && last > 0 {
                left -= 1;
                let (i, j) = (row(), row());
                let fits = i != j && (sample.class()[i] == sample.class()[j]) == same;
                if fits
                    && sample.x().row(i) != sample.x().row(j)
                    && seen.insert((i.min(j), i.max(j)))
                {
                    pairs.push((i, j));
                }
            }
            pairs
        };
        Self { similar: draw(true), dissimilar: draw(false) }
    }
}

/// The state of the projections: M, and a multiplier and a slack for each pair.
pub struct Projection {
    /// M. // (d, d)
    pub m: Matrix,
    /// For each pair, the difference of the two rows and whether they should be near each other.
    pairs: Vec<(Vec<f64>, bool)>,
    /// lambda of each pair: first the pairs of the same class, then the others.
    pub lambda: Vec<f64>,
    /// xi of each pair.
    pub xi: Vec<f64>,
    /// lambda before the last round.
    before: Vec<f64>,
    gamma: f64,
    /// M0, from which the divergence is measured.
    prior: Matrix,
    /// log det M - log det M0, which each projection updates, for the divergence.
    log_det: f64,
    /// u and l.
    bounds: (f64, f64),
}

impl Projection {
    /// Starts from the prior, with all multipliers zero. `bounds` are u and l.
    pub fn new(
        prior: Matrix,
        similar: &[Vec<f64>],
        dissimilar: &[Vec<f64>],
        bounds: (f64, f64),
        gamma: f64,
    ) -> Self {
        let pairs: Vec<(Vec<f64>, bool)> = (similar.iter().map(|v| (v.clone(), true)))
            .chain(dissimilar.iter().map(|v| (v.clone(), false)))
            .collect();
        let xi = pairs.iter().map(|(_, near)| if *near { bounds.0 } else { bounds.1 }).collect();
        let (lambda, before) = (vec![0.0; pairs.len()], vec![0.0; pairs.len()]);
        Self { m: prior.clone(), pairs, lambda, xi, before, gamma, prior, log_det: 0.0, bounds }
    }

    /// Projects on every constraint once. Returns the change of the multipliers: the sum of
    /// |lambda - lambda before| over |lambda| + |lambda before|.
    pub fn round(&mut self) -> f64 {
        // Without a time limit nothing ends it.
        self.round_in_time(&Watch::default()).unwrap_or(0.0)
    }

    /// The same, unless it is ended by the watch between two constraints.
    fn round_in_time(&mut self, watch: &Watch) -> Result<f64> {
        let d = self.m.rows();
        let damped = self.gamma / (self.gamma + 1.0);
        let mut mv = vec![0.0; d];
        for (c, (v, near)) in self.pairs.iter().enumerate() {
            watch.check()?;
            symmetric_times(self.m.as_slice(), v, &mut mv);
            let q = dot(v, &mv);
            // Rows at distance zero in M cannot be moved apart by a change of M along M v.
            if q.is_nan() || q <= 0.0 {
                continue;
            }
            let sign = if *near { 1.0 } else { -1.0 };
            let alpha = self.lambda[c].min(damped * sign * (1.0 / q - 1.0 / self.xi[c]));
            if alpha == 0.0 {
                continue;
            }
            self.lambda[c] -= alpha;
            self.xi[c] = 1.0 / (1.0 / self.xi[c] + sign * alpha / self.gamma);
            let shrunk = 1.0 - sign * alpha * q;
            let beta = sign * alpha / shrunk;
            // det(M + beta M v v' M) = det(M) (1 + beta q), and 1 + beta q = 1 / shrunk.
            self.log_det -= shrunk.ln();
            add_outer(self.m.as_mut_slice(), beta, &mv);
        }
        let norm = |v: &[f64]| dot(v, v).sqrt();
        let size = norm(&self.lambda) + norm(&self.before);
        let change: f64 = self.lambda.iter().zip(&self.before).map(|(a, b)| (a - b).abs()).sum();
        self.before.copy_from_slice(&self.lambda);
        Ok(if size > 0.0 { change / size } else { 0.0 })
    }

    /// The objective up to a constant: the divergence of M from M0, plus gamma times the divergence of the
    /// slack variables from their bounds. M0 must be a multiple of the identity.
    fn divergence(&self) -> f64 {
        let d = self.m.rows();
        let trace: f64 = (0..d).map(|k| self.m[(k, k)] / self.prior[(k, k)]).sum();
        let slack: f64 = (self.xi.iter().zip(&self.pairs))
            .map(|(xi, (_, near))| {
                let ratio = xi / if *near { self.bounds.0 } else { self.bounds.1 };
                ratio - ratio.ln() - 1.0
            })
            .sum();
        trace - self.log_det - d as f64 + self.gamma * slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of many columns L is a factor rather than made of eigenvectors; L'L is M all the same.
    #[test]
    fn l_of_many_columns() {
        let d = LARGE + 1;
        let v = |k: usize| ((k * 7) % 13) as f64 / 13.0 - 0.4;
        let m = Matrix::from_fn(d, d, |i, j| f64::from(u8::from(i == j)) + 0.1 * v(i) * v(j));
        let metric = components(d, m.as_slice()).unwrap();
        let shown = [0, 1, d / 2, d - 1];
        let part = metric.mahalanobis_of(&shown);
        for (i, &row) in shown.iter().enumerate() {
            for (j, &col) in shown.iter().enumerate() {
                assert!((part[(i, j)] - m[(row, col)]).abs() < 1e-12);
            }
        }
    }
}
