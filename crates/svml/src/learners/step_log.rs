//! The log of a learner's accepted steps. It reports each of them to the run, which says whether to go on.
//!
//! Where a learner starts is here too, because the start is the result if time runs out before the first step.

use std::time::Duration;

use super::Learned;
use super::by_class::metric_of;
use crate::data::Sample;
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::metric::Metric;
use crate::optimise::Accepted;
use crate::run::{Run, Step, Stop, Watch};

/// With a time limit, learners that compare all rows with each other begin with about so many of them, one number
/// after the other. The first takes a fraction of a second, so that there is something to return.
const FEW: [usize; 2] = [1000, 4000];

/// Where a learner starts.
pub(super) struct Start {
    /// L0. // (r, d)
    pub l: Matrix,
    /// Number of rows that L0 was learned from; none: it is the initial metric of the parameters.
    learned_from: Option<usize>,
    /// Number of rows that learning is to go on with.
    rows: usize,
}

impl Start {
    /// From the initial metric of the parameters, or, with a time limit and many rows, from what `learn` makes of some of
    /// them, each time in half of the time that is left.
    pub fn new(
        initial: Matrix,
        sample: &Sample<'_>,
        run: &mut Run<'_>,
        learn: impl Fn(&Sample<'_>, Matrix, &mut Run<'_>) -> Result<Learned>,
    ) -> Result<Self> {
        let mut start = Self::given(initial, sample.rows());
        let limited = run.watch().deadline.is_some();
        for count in FEW.into_iter().filter(|count| limited && sample.rows() > 2 * count) {
            let few = sample.some(count);
            let few = few.sample()?;
            let half = run.first_half().watch().clone();
            match learn(&few, start.l.clone(), &mut Run::unobserved_by(&half)) {
                Ok(learned) if !learned.trace.is_empty() => {
                    (start.l, start.learned_from) = (learned.metric.components(), Some(few.rows()));
                }
                Ok(_) | Err(Error::Interrupted) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(start)
    }

    /// From a given L0, with so many rows to learn from.
    pub fn given(l: Matrix, rows: usize) -> Self {
        Self { l, learned_from: None, rows }
    }

    /// The start as the result of learning that ended before the first step. An interrupt before anything was
    /// learned has no result: nobody would want a file to be replaced by it.
    pub fn as_result(&self, stop: Stop, metric: Metric) -> Result<Learned> {
        let what = match self.learned_from {
            None if stop == Stop::Interrupted => return Err(Error::Interrupted),
            None => "the metric is the initial one".to_owned(),
            Some(few) => format!("the metric was learned from {few} of them"),
        };
        let rows = self.rows;
        let warning = format!(
            "the time limit was reached before the loss of all {rows} rows had been computed once: {what}; allow more time, or use fewer rows"
        );
        Ok(Learned { warnings: vec![warning], ..Learned::new(metric, Vec::new(), stop) })
    }
}

/// The accepted steps so far.
pub(super) struct StepLog<'a, 'r> {
    run: &'a mut Run<'r>,
    watch: Watch,
    /// When learning started, in seconds on the clock of the run.
    started: f64,
    /// Longest time between two steps, which is how long the next one may take.
    slowest: Duration,
    trace: Vec<Step>,
    /// The variables of the last accepted step.
    last: Option<Vec<f64>>,
}

impl<'a, 'r> StepLog<'a, 'r> {
    pub fn new(run: &'a mut Run<'r>) -> Self {
        let watch = run.watch().clone();
        let started = watch.elapsed().as_secs_f64();
        let (slowest, trace) = (Duration::ZERO, Vec::new());
        Self { run, watch, started, slowest, trace, last: None }
    }

    /// Records an accepted step, with the loss and the duality gap to report for it. Returns why to stop, or
    /// `None` to go on.
    pub fn record(&mut self, accepted: &Accepted<'_>, loss: f64, gap: Option<f64>) -> Option<Stop> {
        let seconds = self.watch.elapsed().as_secs_f64();
        let before = self.trace.last().map_or(self.started, |step| step.seconds);
        let taken = Duration::try_from_secs_f64(seconds - before);
        self.slowest = self.slowest.max(taken.unwrap_or_default());
        let step = Step { gap, seconds, ..Step::new(self.trace.len(), loss, accepted.step_length) };
        self.trace.push(step);
        self.last = Some(accepted.x.to_vec());
        self.run.report(&step, self.slowest)
    }

    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Number of accepted steps, without the starting point.
    pub fn steps(&self) -> usize {
        self.trace.len().saturating_sub(1)
    }

    /// The result of learning. `ended` says how the optimiser ended, and `decode` turns its variables into
    /// a metric. After an interrupt the result is that of the last accepted step or, without one, what the start is
    /// worth.
    pub fn finish(
        self,
        ended: Result<Stop>,
        start: &Start,
        decode: impl Fn(&[f64]) -> Result<Metric>,
    ) -> Result<Learned> {
        let stop = match ended {
            Ok(stop) => stop,
            Err(Error::Interrupted) => self.watch.cause(),
            Err(error) => return Err(error),
        };
        match self.last {
            Some(last) => Ok(Learned::new(decode(&last)?, self.trace, stop)),
            None => start.as_result(stop, metric_of(start.l.clone())?),
        }
    }
}
