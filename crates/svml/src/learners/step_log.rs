//! The log of a learner's accepted steps. It reports each of them to the run, which says whether to go on.

use std::time::Duration;

use super::Learned;
use crate::error::{Error, Result};
use crate::metric::Metric;
use crate::optimise::Accepted;
use crate::run::{Run, Step, Stop, Watch};

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
    /// a metric. After an interrupt the result is that of the last accepted step; without one, it is the
    /// error [`Error::Interrupted`].
    pub fn finish(
        self,
        ended: Result<Stop>,
        decode: impl Fn(&[f64]) -> Result<Metric>,
    ) -> Result<Learned> {
        let stop = match ended {
            Ok(stop) => stop,
            Err(Error::Interrupted) => self.watch.cause(),
            Err(error) => return Err(error),
        };
        let last = self.last.ok_or(Error::Interrupted)?;
        Ok(Learned::new(decode(&last)?, self.trace, stop))
    }
}
