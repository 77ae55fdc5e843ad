//! Metric learners: each takes standardised rows and returns a metric.
//!
//! All follow [`Learner`]: SVML itself ([`Svml`](crate::Svml)), the methods that the paper compares with
//! ([`Pca`], [`Nca`], [`Lmnn`], [`Itml`]), and those of a user. Any of them can be followed by an SVM, by nearest
//! neighbours or by nothing: see [`Method`](crate::Method).
//!
//! ```
//! use svml::learners::{Learner, Nca, Sample};
//! use svml::{Generator, Run};
//!
//! let data = Generator { rows: 100, ..Generator::default() }.generate()?.data;
//! let weight = vec![1.0; data.rows()];
//! let sample = Sample::new(data.x(), data.y(), &weight, 2)?;
//! let nca = Nca { rank: Some(2), ..Nca::default() };
//! let learned = nca.learn(&sample, &mut Run::new())?;
//! assert_eq!(learned.metric.rank(), 2);
//! assert!(learned.trace.last().map(|step| step.loss) < Some(0.4));
//! # Ok::<(), svml::Error>(())
//! ```

mod by_class;
mod init;
pub(crate) mod itml;
pub(crate) mod lmnn;
pub(crate) mod nca;
pub(crate) mod parameters;
pub(crate) mod pca;
mod step_log;

pub use init::Init;
pub use itml::Itml;
pub use lmnn::Lmnn;
pub use nca::Nca;
pub use parameters::Parameter;
pub use pca::Pca;

pub use crate::data::Sample;

use std::fmt;

use crate::error::{Remedy, Result};
use crate::memory;
use crate::metric::{Form, Metric};
use crate::run::{Run, Step, Stop};

/// A way to learn a metric from standardised rows.
pub trait Learner: fmt::Debug + Send + Sync {
    /// A short name, such as `nca`, that identifies the learner in a [`Method`](crate::Method) and in model files.
    fn name(&self) -> &str;

    /// The name written out, such as `neighbourhood component analysis`.
    fn title(&self) -> &str {
        self.name()
    }

    /// Its parameters, as a JSON object: they are written into the model file.
    fn parameters(&self) -> serde_json::Value {
        serde_json::Value::Object(serde_json::Map::new())
    }

    /// Maximum number of steps; `None` if the learner takes no steps or has no limit.
    fn max_steps(&self) -> Option<usize> {
        None
    }

    /// Checks every parameter, given the number of features. It is called before [`Learner::learn`].
    fn validate(&self, features: usize) -> Result<()> {
        let _ = features;
        Ok(())
    }

    /// Learns a metric. Reports each step by [`Run::report`], and returns the best metric so far once the
    /// run is interrupted or past its deadline; at a deadline this may be the metric that it starts from, with a
    /// warning.
    fn learn(&self, sample: &Sample<'_>, run: &mut Run<'_>) -> Result<Learned>;
}

/// Refuses to learn a metric on so many columns where `numbers`, those that are held at the same time, need more than `limit`
/// bytes.
pub(crate) fn check_numbers(form: Form, columns: usize, numbers: u128, limit: u64) -> Result<()> {
    let what = || format!("learning a metric of form {form} on {columns} columns");
    memory::check(what, numbers.saturating_mul(8), limit, Remedy::SmallerForm)
}

/// What a learner returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Learned {
    /// The learned metric L.
    pub metric: Metric,
    /// The start and every accepted step; empty if there are no steps.
    pub trace: Vec<Step>,
    /// Index in the trace of the step that gave the metric.
    pub best: usize,
    /// Why learning ended.
    pub stop: Stop,
    /// What the user should know about it.
    pub warnings: Vec<String>,
}

impl Learned {
    /// A metric that was found without steps.
    pub fn at_once(metric: Metric) -> Self {
        Self::new(metric, Vec::new(), Stop::Minimum)
    }

    /// A metric that is the result of the last step of `trace`.
    pub fn new(metric: Metric, trace: Vec<Step>, stop: Stop) -> Self {
        let best = trace.len().saturating_sub(1);
        Self { metric, trace, best, stop, warnings: Vec::new() }
    }
}
