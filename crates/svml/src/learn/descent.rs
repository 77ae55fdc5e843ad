//! What the learners by descent on L have in common: where L starts, rows class after class, and the
//! book that is kept of the steps.

use std::ops::Range;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::pca::pca;
use super::{Control, Outcome, Progress, Sample};
use crate::error::{Error, Result};
use crate::linalg::{self, Block, Matrix};
use crate::metric::{Form, Metric};
use crate::optimise::{Accepted, Stop};
use crate::watch::Watch;

/// Where L starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Initial {
    /// L0 = I; for r rows the r leading principal directions, of length 1 each.
    #[default]
    Identity,
    /// L0 = I/sqrt(d'), d' the number of columns that vary; for r rows the principal directions, scaled
    /// so that the mean square of the mapped rows is 1.
    Scaled,
}

impl Initial {
    /// L0 with `rank` rows, or square. // (r, d)
    pub(super) fn components(self, sample: &Sample<'_>, rank: Option<usize>) -> Result<Matrix> {
        let d = sample.x.cols();
        let Some(rank) = rank else {
            let varying = (0..d).filter(|&k| sample.x.col(k).any(|v| v != 0.0)).count();
            let value = match self {
                Self::Identity => 1.0,
                Self::Scaled => (varying.max(1) as f64).sqrt().recip(),
            };
            return Ok(Matrix::from_fn(d, d, |i, j| if i == j { value } else { 0.0 }));
        };
        let mut l = pca(sample.x, sample.weight, rank)?.components();
        if self == Self::Identity {
            for r in 0..l.rows() {
                let length = linalg::dot(l.row(r), l.row(r)).sqrt();
                let scale = if length > 0.0 { length.recip() } else { 0.0 };
                l.row_mut(r).iter_mut().for_each(|l| *l *= scale);
            }
        }
        Ok(l)
    }
}

/// Checks the number of rows of L for `features` columns.
pub(super) fn check_rank(rank: Option<usize>, features: usize) -> Result<()> {
    let bound = format!("between 1 and the number of features, {features}");
    let inside = rank.is_none_or(|rank| (1..=features).contains(&rank));
    check("rank", &rank.unwrap_or(features), inside, &bound)
}

/// The error for a parameter that is not `ok`.
pub(super) fn check(
    name: &'static str,
    value: &dyn std::fmt::Display,
    ok: bool,
    bound: &str,
) -> Result<()> {
    if ok {
        return Ok(());
    }
    Err(Error::Parameter { name, value: value.to_string(), bound: bound.to_owned() })
}

/// Refuses a sample whose parts do not fit each other.
pub(super) fn check_sample(sample: &Sample<'_>) -> Result<()> {
    let (n, d) = (sample.x.rows(), sample.x.cols());
    if n == 0 {
        return Err(Error::NoRows(" to learn from".to_owned()));
    }
    let known = sample.class.iter().filter(|class| **class < sample.classes).count();
    let weighed = sample.weight.iter().filter(|w| w.is_finite() && **w > 0.0).count();
    let counts = [
        ("columns to learn from", d, d.max(1)),
        ("classes of the rows", sample.class.len(), n),
        ("rows of a class that exists", known, n),
        ("positive weights of the rows", weighed, n),
    ];
    match counts.into_iter().find(|(_, found, expected)| found != expected) {
        Some((what, found, expected)) => {
            Err(Error::Shape { what: what.to_owned(), found, expected })
        }
        None => Ok(()),
    }
}

/// The rows of a sample class after class.
pub(super) struct Sorted {
    /// // (n, d)
    pub x: Matrix,
    pub weight: Vec<f64>,
    /// The rows of each class.
    pub classes: Vec<Range<usize>>,
    /// The class of each row.
    pub class: Vec<usize>,
}

impl Sorted {
    pub fn new(sample: &Sample<'_>) -> Self {
        let mut order: Vec<usize> = (0..sample.x.rows()).collect();
        order.sort_by_key(|&i| sample.class[i]);
        let class: Vec<usize> = order.iter().map(|&i| sample.class[i]).collect();
        let edge = |c: usize| class.partition_point(|&class| class < c);
        Self {
            x: sample.x.select_rows(&order),
            weight: order.iter().map(|&i| sample.weight[i]).collect(),
            classes: (0..sample.classes).map(|c| edge(c)..edge(c + 1)).collect(),
            class,
        }
    }

    /// Q = sum_ij W_ij (x_i - x_j)(x_i - x_j)' from W X and the sums of rows and columns of W,
    /// `margins` = W 1 + W' 1:  Q = X' diag(margins) X - X'(W X) - (W X)'X. // (d, d)
    pub fn contract(&self, w_x: &Matrix, margins: &[f64]) -> Matrix {
        let d = self.x.cols();
        let mut right = Matrix::zeros(self.x.rows(), d);
        for (i, margin) in margins.iter().enumerate() {
            let pairs = self.x.row(i).iter().zip(w_x.row(i));
            for (out, (x, w_x)) in right.row_mut(i).iter_mut().zip(pairs) {
                *out = 0.5 * margin * x - w_x;
            }
        }
        let half = linalg::multiply(Block::from(&self.x).t(), (&right).into());
        Matrix::from_fn(d, d, |i, j| half[(i, j)] + half[(j, i)])
    }
}

/// L as a metric: full if it is square.
pub(super) fn metric_of(l: Matrix) -> Result<Metric> {
    let (r, d) = (l.rows(), l.cols());
    let form = if r == d { Form::Full } else { Form::Rank(r) };
    Metric::new(form, d, l.into_vec())
}

/// The steps so far, and who may end them.
pub(super) struct Book<'a, 'c> {
    control: &'a mut Control<'c>,
    watch: &'a Watch,
    started: Instant,
    /// Longest time between two steps: what the next may take.
    slowest: Duration,
    trace: Vec<Progress>,
    /// The variables of the last accepted step.
    last: Option<Vec<f64>>,
}

impl<'a, 'c> Book<'a, 'c> {
    pub fn new(control: &'a mut Control<'c>, watch: &'a Watch) -> Self {
        let (started, slowest) = (Instant::now(), Duration::ZERO);
        Self { control, watch, started, slowest, trace: Vec::new(), last: None }
    }

    /// Enters a step with the value to be shown for it; says whether someone wants to end here.
    pub fn enter(&mut self, accepted: &Accepted<'_>, loss: f64, gap: Option<f64>) -> Option<Stop> {
        let elapsed = self.started.elapsed();
        let before = self.trace.last().map_or(0.0, |step| step.seconds);
        let taken = Duration::try_from_secs_f64(elapsed.as_secs_f64() - before);
        self.slowest = self.slowest.max(taken.unwrap_or_default());
        let (iteration, step) = (self.trace.len(), accepted.step);
        let seconds = elapsed.as_secs_f64();
        self.trace.push(Progress { iteration, loss, gap, step, seconds });
        self.last = Some(accepted.x.to_vec());
        let seen = self.trace.last().zip(self.control.progress.as_mut());
        let ended = seen.is_some_and(|(step, observer)| observer(step).is_break());
        if ended || self.watch.interrupted() {
            return Some(Stop::Interrupted);
        }
        self.watch.out_of_time(self.slowest).then_some(Stop::TimeLimit)
    }

    pub fn watch(&self) -> &'a Watch {
        self.watch
    }

    /// How many steps there were.
    pub fn steps(&self) -> usize {
        self.trace.len().saturating_sub(1)
    }

    /// The outcome, from how the optimiser ended and how variables become L. Work that was
    /// interrupted ends with the last accepted step.
    pub fn close(
        self,
        ended: Result<Stop>,
        decode: impl Fn(&[f64]) -> Result<Metric>,
    ) -> Result<Outcome> {
        let stop = match ended {
            Ok(stop) => stop,
            Err(Error::Interrupted) if self.watch.interrupted() => Stop::Interrupted,
            Err(Error::Interrupted) => Stop::TimeLimit,
            Err(error) => return Err(error),
        };
        let last = self.last.ok_or(Error::Interrupted)?;
        Ok(Outcome { metric: decode(&last)?, trace: self.trace, stop })
    }
}
