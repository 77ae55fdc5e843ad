//! The learners: each takes standardised rows and returns a metric.

pub mod auto;
pub mod gop;
pub mod pca;
pub mod svml;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::linalg::Matrix;
use crate::multiclass::Labelled;
use crate::watch::Watch;

/// What a learner learns from: standardised rows with their classes and weights, in an order that
/// does not depend on how they came.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    /// The rows. // (n, d)
    pub x: &'a Matrix,
    /// Class of each row, below `classes`.
    pub class: &'a [usize],
    /// Weight of each row, positive.
    pub weight: &'a [f64],
    /// Number of classes, at least 2.
    pub classes: usize,
}

impl Sample<'_> {
    /// Some of the rows, renumbered from `first` in the order given.
    pub(crate) fn labelled(&self, rows: &[usize], first: usize) -> Labelled {
        Labelled {
            index: (first..first + rows.len()).collect(),
            class: rows.iter().map(|&i| self.class[i]).collect(),
            weight: rows.iter().map(|&i| self.weight[i]).collect(),
        }
    }
}

/// One accepted step of a learner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// 0 for the starting point.
    pub iteration: usize,
    /// The value that is minimised: surrogate plus regulariser.
    pub loss: f64,
    /// Share of training rows misclassified, by weight. With k folds or leave-one-out and several
    /// classes, the mean over the pairs of classes, here and for the validation rows.
    pub train_error: f64,
    /// Share of validation rows misclassified.
    pub valid_error: f64,
    /// Share of hold-out rows misclassified, where there are such rows.
    pub hold_error: Option<f64>,
    /// C.
    pub cost: f64,
    /// Number of support vectors, of all machines together.
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
