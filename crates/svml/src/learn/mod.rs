//! The learners: each takes standardised rows and returns a metric.

pub mod pca;
pub mod svml;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::watch::Watch;

/// One accepted step of a learner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// 0 for the starting point.
    pub iteration: usize,
    /// The value that is minimised: surrogate plus regulariser.
    pub loss: f64,
    /// Share of training rows on the wrong side.
    pub train_error: f64,
    /// Share of validation rows on the wrong side.
    pub valid_error: f64,
    /// Share of hold-out rows on the wrong side.
    pub hold_error: f64,
    /// C.
    pub cost: f64,
    /// Number of support vectors |S|.
    pub support: usize,
    /// Length of the step in the learner's variables.
    pub step: f64,
    /// Seconds since the start of the fit. Not saved: a model depends on data, parameters and
    /// seed alone.
    #[serde(skip)]
    pub seconds: f64,
}

/// Sees every accepted step and may end the fit by returning `Break`.
pub type Observer<'a> = dyn FnMut(&Step) -> ControlFlow<()> + 'a;

/// How a fit is watched and ended from outside.
#[derive(Default)]
pub struct Control<'a> {
    /// Called after each accepted step.
    pub observer: Option<&'a mut Observer<'a>>,
    /// Ends the fit from any thread once true; the best result so far is returned.
    pub interrupt: Arc<AtomicBool>,
    /// Time for the whole fit. Learning stops early enough that the final training should fit in.
    pub time_limit: Option<Duration>,
}

impl Control<'_> {
    pub(crate) fn watch(&self) -> Watch {
        Watch::new(self.interrupt.clone(), self.time_limit)
    }
}
