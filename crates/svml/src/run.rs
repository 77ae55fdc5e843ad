//! One run of a fit: how it is watched and ended from outside, and the steps it reports.
//!
//! [`Run`] is what a caller sets up: an interrupt flag, a time limit, an observer. [`Watch`] is the part of it
//! that long computations ask between blocks of work, from any thread, so that an interrupted fit ends
//! within a fraction of a second even inside one large factorisation.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checkpoint::Store;
use crate::device::{Device, Work};
use crate::error::Result;
use crate::metric::{Form, Kernel};
use crate::watch::Instant;
pub use crate::watch::{Key, Stop, Watch};

/// One accepted step of any learner.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Step {
    /// 0 for the starting point; goes on where SVML learns one form of the metric after another.
    pub iteration: usize,
    /// The value that is minimised.
    pub loss: f64,
    /// Most by which the loss can lie above the least possible, relative to itself, where the learner
    /// knows such a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// Length of the step in the learner's variables; 0 at a starting point.
    #[serde(alias = "step")]
    pub step_length: f64,
    /// Seconds since the start of the fit. Not saved: a model depends on data, parameters and seed
    /// alone.
    #[serde(skip)]
    pub seconds: f64,
    /// What SVML knows besides; absent for other learners.
    #[serde(flatten)]
    pub svml: Option<SvmlStep>,
}

impl Step {
    /// A step, for learners of one's own; its time is set by who takes it.
    pub fn new(iteration: usize, loss: f64, step_length: f64) -> Self {
        Self { iteration, loss, gap: None, step_length, seconds: 0.0, svml: None }
    }

    /// The same as a step on half of the rows.
    pub(crate) fn on_half(self) -> Self {
        Self { svml: self.svml.map(|svml| SvmlStep { half: true, ..svml }), ..self }
    }
}

/// What SVML knows of each of its steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SvmlStep {
    /// Form of the metric; not on record in model files of the first formats.
    #[serde(default)]
    pub form: Option<Form>,
    /// The kernel; not on record in model files of the first formats.
    #[serde(default)]
    pub kernel: Option<Kernel>,
    /// Whether it is a step of learning on half of the rows, to see what that does on the other half.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub half: bool,
    /// Share of training rows misclassified, by weight. With k folds or leave-one-out and several
    /// classes, the mean over the pairs of classes, here and for the validation rows.
    pub train_error: f64,
    /// Share of validation rows misclassified.
    pub valid_error: f64,
    /// Share misclassified of the rows that decide when to stop, where there are such rows.
    #[serde(alias = "hold_error")]
    pub stopping_error: Option<f64>,
    /// C.
    pub cost: f64,
    /// Number of support vectors, of all SVMs together.
    #[serde(alias = "support")]
    pub support_vectors: usize,
}

/// Sees every accepted step and may end the fit by returning `Break`.
type Observer<'a> = dyn FnMut(&Step) -> ControlFlow<()> + 'a;

/// What a fit does besides taking steps, where it takes long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// SVML sees whether a map into few dimensions would do better than the SVMs that it has learned.
    TryingFewDimensions,
    /// The SVMs of the model are trained, with metrics and C as they were learned.
    TrainingFinalSvms,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TryingFewDimensions => "trying maps into few dimensions",
            Self::TrainingFinalSvms => "training the SVMs of the model",
        })
    }
}

/// How a fit is watched and ended from outside. A fit that is ended early returns the best result so
/// far, or [`Error::Interrupted`](crate::Error::Interrupted) if there is none yet.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::time::Duration;
/// use svml::{Generator, Model, Run, Svml};
///
/// let data = Generator::default().generate()?.data;
/// let mut losses = Vec::new();
/// let mut run = Run::new().time_limit(Duration::from_secs(60)).observer(|step| {
///     losses.push(step.loss);
///     ControlFlow::Continue(())
/// });
/// let model = Model::fit_with(&data, Svml::default(), &mut run)?;
/// drop(run);
/// assert_eq!(losses.len(), model.report().trace.len());
/// # Ok::<(), svml::Error>(())
/// ```
#[derive(Default)]
pub struct Run<'a> {
    watch: Watch,
    observer: Option<Box<Observer<'a>>>,
    /// Is told what the fit does besides taking steps.
    listener: Option<Box<dyn FnMut(Activity) + 'a>>,
    /// What learners reserve for what comes after them is multiplied by one more than this.
    more_left: u32,
    /// The file for what has been computed.
    checkpoint: Option<PathBuf>,
    /// Why that could not be written, if it could not.
    trouble: Option<String>,
}

impl<'a> Run<'a> {
    /// A run that nothing ends but its own result. Its time counts from here.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the fit once `flag` is true, which any thread (a signal handler, say) may set.
    #[must_use]
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.watch.interrupt = flag;
        self
    }

    /// Time for the whole fit, from the making of this run. Learning stops early enough that the final
    /// training should fit in.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        // A limit too long for the clock is no limit.
        self.watch.deadline = self.watch.started.checked_add(limit);
        self
    }

    /// Shows every accepted step to `observer`, which may end the fit by returning `Break`.
    #[must_use]
    pub fn observer(mut self, observer: impl FnMut(&Step) -> ControlFlow<()> + 'a) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Tells `listener` what the fit does between and after the steps, when it begins to do it.
    #[must_use]
    pub fn listener(mut self, listener: impl FnMut(Activity) + 'a) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Where it computes: by default, on a CUDA card if there is one and it pays, else on the processor. [`Device::Cuda`] is
    /// used for all that can be computed there, and if it cannot be used, the fit fails with
    /// [`Error::Device`](crate::Error::Device). [`Report::device`](crate::Report::device) says what was used.
    ///
    /// ```
    /// use svml::{Device, Generator, Model, Run, Svml};
    ///
    /// let data = Generator::default().generate()?.data;
    /// let model = Model::fit_with(&data, Svml::default(), &mut Run::new().device(Device::Cpu))?;
    /// assert_eq!(model.report().device, "cpu");
    /// # Ok::<(), svml::Error>(())
    /// ```
    #[must_use]
    pub fn device(mut self, device: Device) -> Self {
        self.watch.device = device;
        self
    }

    /// Keeps in this file what is expensive to compute, so that a fit that was killed goes on where it stopped: fit the same
    /// data by the same method again, with the same file. The model then has the bits that it would have had. The file
    /// is made if it is not there. It stays after the fit: remove it once the model is where it should be. It holds no
    /// rows, but numbers of rows, coefficients, outputs and gradients.
    ///
    /// What is kept are the steps and the SVMs of SVML, those of a grid, and the SVMs of the model; metric learners
    /// other than SVML are computed anew.
    ///
    /// ```
    /// use svml::{Generator, Model, Run, Svml};
    ///
    /// let data = Generator::default().generate()?.data;
    /// # let folder = std::env::temp_dir().join(format!("svml-run-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # let (file, model_file) = (folder.join("fit.checkpoint"), folder.join("model.svml"));
    /// // Had the program been killed here before, this would go on.
    /// let model = Model::fit_with(&data, Svml::default(), &mut Run::new().checkpoint(&file))?;
    /// model.save(&model_file)?;
    /// std::fs::remove_file(&file).unwrap();
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), svml::Error>(())
    /// ```
    #[must_use]
    pub fn checkpoint(mut self, file: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some(file.into());
        self
    }

    /// Records results in a file that is open already.
    #[doc(hidden)]
    #[must_use]
    pub fn with_store(mut self, store: Arc<Store>) -> Self {
        self.watch.store = Some(store);
        self
    }

    /// Whether a fit was ended, or anything of it left out, for lack of time or by an interrupt: more time would give
    /// another result.
    pub fn is_cut_short(&self) -> bool {
        self.watch.hurried.load(Ordering::Relaxed) || self.watch.interrupted()
    }

    /// Why the last fit could no longer write to its checkpoint, if that is so: the fit went on all the same.
    pub fn checkpoint_trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Opens the card that was asked for, or that pays for a fit whose largest SVM has so many rows, before anything is
    /// computed.
    pub(crate) fn open_card(&mut self, rows: usize, features: usize) -> Result<()> {
        let work = Work::of_fit(rows, features);
        self.watch.open_card(|card| work.pays_for_fit(card))
    }

    /// Does something that is recorded in the file of the checkpoint, if there is one. The keys are those of the data and
    /// of the parameters.
    pub(crate) fn recorded<T>(
        &mut self,
        keys: impl FnOnce() -> (Key, Key),
        fit: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let Some(path) = self.checkpoint.clone() else { return fit(self) };
        let (data, parameters) = keys();
        let store = Arc::new(Store::open(path, data, self.watch.in_key(parameters))?);
        self.watch.store = Some(Arc::clone(&store));
        self.watch.recall_card();
        let fitted = fit(self);
        // The file is closed when the last one lets go of it.
        self.watch.store = None;
        self.trouble = store.trouble();
        fitted
    }

    /// Tells whoever listens what is done now.
    pub(crate) fn begins(&mut self, activity: Activity) {
        if let Some(listener) = &mut self.listener {
            listener(activity);
        }
    }

    /// The part that computations ask whether to go on.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Shows a step to the observer; why to stop, if someone wants to. `reserve` is the time that is still
    /// needed after learning.
    pub fn report(&mut self, step: &Step, reserve: Duration) -> Option<Stop> {
        let ended = self.observer.as_mut().is_some_and(|observer| observer(step).is_break());
        if ended || self.watch.interrupted() {
            // What is abandoned is no part of the result.
            if !self.watch.is_abandoned() {
                self.watch.hurried.store(true, Ordering::Relaxed);
            }
            return Some(Stop::Interrupted);
        }
        self.watch.out_of_time(reserve * (1 + self.more_left)).then_some(Stop::TimeLimit)
    }

    /// The same run with half of the time that is left, for the first of two parts of a fit.
    pub(crate) fn first_half(&mut self) -> Run<'_> {
        let now = Instant::now();
        let half = |deadline: Instant| now + deadline.saturating_duration_since(now) / 2;
        let watch = Watch { deadline: self.watch.deadline.map(half), ..self.watch.clone() };
        let observer = self.observer.as_mut().map(|observer| Box::new(observer) as _);
        Run { watch, observer, more_left: self.more_left, ..Run::default() }
    }

    /// A run whose steps nobody sees, with the flag and the time limit of another.
    pub(crate) fn unobserved_by(watch: &Watch) -> Run<'static> {
        Run { watch: watch.clone(), ..Run::default() }
    }

    /// The same run, whose steps are shown with numbers from `first` on.
    pub(crate) fn numbered_from(&mut self, first: usize) -> Run<'_> {
        self.showing(move |step| Step { iteration: first + step.iteration, ..step })
    }

    /// The same run, whose steps are shown as those on half of the rows.
    pub(crate) fn on_half(&mut self) -> Run<'_> {
        self.showing(Step::on_half)
    }

    fn showing<'b>(&'b mut self, changed: impl Fn(Step) -> Step + 'b) -> Run<'b> {
        let watch = self.watch.clone();
        let observer = self.observer.as_mut().map(|observer| {
            let show = move |step: &Step| observer(&changed(*step));
            Box::new(show) as Box<Observer<'b>>
        });
        Run { watch, observer, more_left: self.more_left, ..Run::default() }
    }

    /// The same run, whose learners keep so many times the usual time for what comes after them.
    pub(crate) fn keeping(self, times: u32) -> Self {
        Self { more_left: times.saturating_sub(1), ..self }
    }

    /// Whether anyone sees the steps.
    pub(crate) fn is_observed(&self) -> bool {
        self.observer.is_some()
    }

    /// Shows steps that were taken unobserved, until someone wants to stop: the last that was shown then, and why.
    pub(crate) fn show(&mut self, steps: &[Step]) -> Option<(usize, Stop)> {
        let mut steps = steps.iter().enumerate();
        steps.find_map(|(k, step)| self.report(step, Duration::ZERO).map(|stop| (k, stop)))
    }
}
