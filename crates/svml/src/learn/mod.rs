//! The learners: each takes standardised rows and returns a metric.
//!
//! All follow [`Learner`]: SVML itself ([`Params`]), and the methods that the paper compares with,
//! [`Pca`], [`Nca`], [`Lmnn`] and [`Itml`], of which [`Rival`] is any one.
//!
//! ```
//! use svml::learn::{Control, Learner, Nca, Sample};
//! use svml::watch::Watch;
//! use svml::{Generator, Rival};
//!
//! let data = Generator { rows: 100, ..Generator::default() }.generate()?.data;
//! let weight = vec![1.0; data.rows()];
//! let sample = Sample { x: data.x(), class: data.y(), weight: &weight, classes: 2 };
//! let nca = Rival::from(Nca { rank: Some(2), ..Nca::default() });
//! let outcome = nca.learn(&sample, &mut Control::default(), &Watch::default())?;
//! assert_eq!(outcome.metric.rank(), 2);
//! assert!(outcome.trace.last().map(|step| step.loss) < Some(0.4));
//! # Ok::<(), svml::Error>(())
//! ```

pub mod auto;
mod descent;
pub mod gop;
pub mod itml;
pub mod lmnn;
pub mod nca;
pub mod pca;
pub mod svml;

pub use descent::Initial;
pub use itml::Itml;
pub use lmnn::Lmnn;
pub use nca::Nca;
pub use pca::Pca;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::linalg::Matrix;
use crate::metric::{Form, Metric};
use crate::multiclass::Labelled;
use crate::optimise::Stop;
use crate::params::Params;
use crate::watch::Watch;

/// A way to learn a metric from standardised rows.
pub trait Learner {
    /// Checks every parameter for `features` columns.
    fn validate(&self, features: usize) -> Result<()>;

    /// Learns. `control` watches; once `watch` says so, what is best so far is returned.
    fn learn(
        &self,
        sample: &Sample<'_>,
        control: &mut Control<'_>,
        watch: &Watch,
    ) -> Result<Outcome>;
}

/// What a learner returns.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// L.
    pub metric: Metric,
    /// The start and every accepted step; empty if there are no steps.
    pub trace: Vec<Progress>,
    /// Why it ended.
    pub stop: Stop,
}

/// One step of any learner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 for the starting point.
    pub iteration: usize,
    /// The value that is minimised.
    pub loss: f64,
    /// Most by which the loss can lie above the least possible, relative to itself, where the learner
    /// knows such a bound.
    pub gap: Option<f64>,
    /// Length of the step in the learner's variables.
    pub step: f64,
    /// Seconds since the start. Not saved.
    #[serde(skip)]
    pub seconds: f64,
}

/// Any of the methods that the paper compares with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rival {
    /// Principal components.
    Pca(Pca),
    /// Neighbourhood component analysis.
    Nca(Nca),
    /// Large margin nearest neighbours.
    Lmnn(Lmnn),
    /// Information-theoretic metric learning.
    Itml(Itml),
}

impl Rival {
    fn learner(&self) -> &dyn Learner {
        match self {
            Self::Pca(pca) => pca,
            Self::Nca(nca) => nca,
            Self::Lmnn(lmnn) => lmnn,
            Self::Itml(itml) => itml,
        }
    }
}

impl Learner for Rival {
    fn validate(&self, features: usize) -> Result<()> {
        self.learner().validate(features)
    }

    fn learn(
        &self,
        sample: &Sample<'_>,
        control: &mut Control<'_>,
        watch: &Watch,
    ) -> Result<Outcome> {
        self.learner().learn(sample, control, watch)
    }
}

macro_rules! is_a_rival {
    ($($name:ident),*) => {$(
        impl From<$name> for Rival {
            fn from(learner: $name) -> Self {
                Self::$name(learner)
            }
        }
    )*};
}
is_a_rival!(Pca, Nca, Lmnn, Itml);

impl Learner for Params {
    fn validate(&self, features: usize) -> Result<()> {
        Params::validate(self, features)
    }

    fn learn(
        &self,
        sample: &Sample<'_>,
        control: &mut Control<'_>,
        watch: &Watch,
    ) -> Result<Outcome> {
        let (learned, _) = auto::learn(sample, self, control, watch)?;
        let progress = |step: &Step| Progress {
            iteration: step.iteration,
            loss: step.loss,
            gap: None,
            step: step.step,
            seconds: step.seconds,
        };
        let trace = learned.trace.iter().map(progress).collect();
        Ok(Outcome { metric: learned.metric, trace, stop: learned.stop })
    }
}

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
    /// 0 for the starting point; goes on where one form of the metric follows another.
    pub iteration: usize,
    /// Form of the metric; not on record in model files of former versions.
    #[serde(default)]
    pub form: Option<Form>,
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
    /// Length of the step in the learner's variables; 0 where a form starts.
    pub step: f64,
    /// Seconds since the start of the fit. Not saved: a model depends on data, parameters and
    /// seed alone.
    #[serde(skip)]
    pub seconds: f64,
}

/// Sees every accepted step and may end the fit by returning `Break`.
pub type Observer<'a> = dyn FnMut(&Step) -> ControlFlow<()> + 'a;

/// Sees every step of one of the [`Rival`]s and may end it by returning `Break`.
pub type ProgressObserver<'a> = dyn FnMut(&Progress) -> ControlFlow<()> + 'a;

/// How a fit is watched and ended from outside.
#[derive(Default)]
pub struct Control<'a> {
    /// Called after each accepted step of SVML.
    pub observer: Option<&'a mut Observer<'a>>,
    /// Called after each accepted step of another learner.
    pub progress: Option<&'a mut ProgressObserver<'a>>,
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
