//! Support vector metric learning, the method of the paper.
//!
//! | paper | here |
//! |---|---|
//! | equation (13), the smooth validation error, and its gradient, equations (14) to (16) | `criterion` |
//! | the same as a function of L and C, with the regulariser of equation (17) | `objective` |
//! | Algorithm 1 | `descent` |
//! | beyond the paper: a start from gradients | `gradient_start` |
//! | beyond the paper: outputs for rows whose labels were not used | `cross_fit` |
//! | beyond the paper: the default, a mean of several SVMs | `members` |
//! | beyond the paper: exact or through landmarks | `approach` |

pub mod approach;
pub mod criterion;
pub mod cross_fit;
pub mod descent;
pub mod gradient_start;
pub mod members;
pub mod objective;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::data::{ClassWeight, Dataset, EqualRows, Sample};
use crate::error::{Error, Result};
use crate::learners::parameters::{
    check, check_positive, check_rank, check_tolerance, parameters, to_json,
};
use crate::learners::{Init, Learned, Learner, check_numbers};
use crate::loss::{Loss, Surrogate};
use crate::metric::{Form, Kernel, Metric};
use crate::optimise::Optimiser;
use crate::run::Run;
use approach::{Approach, COPIES, LandmarkChoice, Size, are_learned_from_in_parts};
use criterion::Criterion;
use descent::{SvmlFit, descend};
use members::MOST_COLUMNS;

/// The structure of L, or that it is chosen from the data. As text: `auto`, or that of the [`Form`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum FormChoice {
    /// The mean of several SVMs with metrics of different forms.
    Auto,
    /// As given.
    Fixed(Form),
}

impl From<Form> for FormChoice {
    fn from(form: Form) -> Self {
        Self::Fixed(form)
    }
}

impl fmt::Display for FormChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(form) => form.fmt(f),
        }
    }
}

impl FromStr for FormChoice {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let bound = "auto, sphere, diagonal, full or rank=R with R at least 1";
        text.parse().map(Self::Fixed).map_err(|_| Error::parameter("form", text, bound))
    }
}

impl From<FormChoice> for String {
    fn from(form: FormChoice) -> Self {
        form.to_string()
    }
}

impl TryFrom<String> for FormChoice {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

parameters! {
    /// Parameters of support vector metric learning. The defaults need no tuning; `docs/accuracy.md` in the
    /// repository has the measurements they were chosen by. [`Svml::paper`] are those of the paper.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Svml {
        /// Structure of L: sphere (L = I/sigma, one width), diagonal (one weight for each feature), full
        /// (all entries), rank=R (a map into R dimensions), or auto, the mean of several SVMs, each with its own
        /// metric and kernel.
        form: FormChoice = FormChoice::Auto, "auto, sphere, diagonal, full or rank=R with R at least 1";
        /// The kernel: gaussian, exp(-|L(x - z)|^2); exponential, exp(-|L(x - z)|); or laplacian,
        /// exp(-sum_k w_k |x_k - z_k|) where w is the diagonal of L, for the forms sphere and diagonal only.
        kernel: Kernel = Kernel::Gaussian, "gaussian, exponential or laplacian";
        /// How the metric and C are validated while they are learned: k_fold=K (each of K folds by SVMs trained
        /// on the other folds), hold_out (half of the rows for training, a quarter for validation, a quarter for
        /// early stopping) or leave_one_out (in closed form).
        criterion: Criterion = Criterion::KFold(2), "hold_out, leave_one_out or k_fold=K with K at least 2";
        /// The smooth function of the margin z that stands in for the zero-one loss: squared_hinge,
        /// max(0, 1 - z)^2, which is the loss of the SVM itself; sigmoid, 1/(1 + exp(a z)); or logistic,
        /// log(1 + exp(-a z))/a.
        surrogate: Surrogate = Surrogate::SquaredHinge, "squared_hinge, sigmoid or logistic";
        /// Steepness a of the sigmoid or logistic surrogate; the squared hinge has none.
        steepness: f64 = 5.0, "a positive number";
        /// Weight of the regulariser lambda |L - L0|^2 / |L0|^2 that keeps L near its initial value L0. It is
        /// relative to the size of L0 and to a loss of order one; the paper's 100 and 10 belong to other
        /// units.
        lambda: f64 = 0.01, "a positive number";
        /// Where L starts: scaled (L0 = I/sqrt(d), principal components for rank=R), identity, or gradients
        /// (from the gradient outer product of SVMs with a spherical metric; only if a form is given), or L0 on
        /// the original features, as {"given": [[..], ..]}, if the form is full or rank=R. auto is gradients for a
        /// given rank=R and at most 1,000 features, and otherwise scaled.
        #[alias = "start"]
        init: Init = Init::Auto, "auto, scaled, identity, gradients or an array";
        /// Initial C. A small value starts from a smooth decision function, so that stopping early is safe.
        initial_cost: f64 = 0.5, "a number between 0.001 and 10000";
        /// Whether C is learned with the metric; otherwise it keeps its initial value.
        learn_cost: bool = true, "true or false";
        /// How the loss is minimised: lbfgs or conjugate_gradients.
        optimiser: Optimiser = Optimiser::Lbfgs, "lbfgs or conjugate_gradients";
        /// Maximum number of accepted steps, for each form that is tried.
        max_iterations: usize = 100, "an integer of at least 0";
        /// Number of accepted steps without a better result on the early-stopping rows before learning ends; only
        /// the hold-out criterion has such rows.
        patience: usize = 5, "an integer of at least 1";
        /// Learning ends when a step lowers the loss by less than this fraction of max(loss, half the loss of
        /// a constant classifier).
        tolerance: f64 = 1e-2, "a number of at least 0";
        /// Whether the SVM is retrained on all rows with the learned L and C; otherwise the SVM trained on half of
        /// the rows is kept, as in a literal reading of the paper (with k folds, the SVM trained without the first
        /// fold; with leave-one-out, it is trained on all rows anyway).
        refit: bool = true, "true or false";
        /// Whether the metric and C are also learned on each half of the rows and applied to the other half, so that the
        /// weights of the SVMs, the reported error and the probabilities are based on held-out rows.
        cross_fit: bool = true, "true or false";
        /// Class weights, in the SVM, the validation error, early stopping and the probabilities: none (all rows
        /// count the same), balanced (all classes count the same), or a weight for each named class.
        class_weight: ClassWeight = ClassWeight::None, "none, balanced, or {\"given\": {\"CLASS\": WEIGHT, ..}}";
        /// What rows are that are equal in all columns and in the class: observations, which are assigned to folds one by
        /// one; copies of one observation, which are all in one fold; or auto, which is observations unless the table
        /// shows that they are copies.
        equal_rows: EqualRows = EqualRows::Auto, "auto, observations or copies";
        /// Seed of the folds.
        seed: u64 = 0, "an integer of at least 0";
        /// Whether SVMs are trained on landmarks, rows that represent all others, and on how many: auto, exact (none)
        /// or a number.
        landmarks: LandmarkChoice = LandmarkChoice::Auto, "auto, exact or a number of at least 1";
        /// Limit in bytes for kernel matrices and what is computed from them; none: as usual, and refused where that is
        /// more than three quarters of the free memory of the computer, or of the container it runs in. For two classes, exact SVMs need 16 n^2 bytes, 8 n^2 more for
        /// each further fold that is trained at the same time if there is room, and 40 n^2 for leave-one-out. With
        /// landmarks, the rows count too, three times, or once beyond 131,072 rows; fewer landmarks are used if the usual
        /// number does not fit.
        memory_limit: Option<u64> = None, "none or a number of bytes";
    }
}

/// C is kept inside this range: with weights of ordinary size K + diag(1/(C w)) stays safely positive
/// definite, and the validation error is flat outside.
pub(crate) const COST_RANGE: (f64, f64) = (1e-3, 1e4);

impl Svml {
    /// The protocol of the paper: a full L and C, learned on half of the training rows by conjugate
    /// gradients on the sigmoid of another quarter, stopped by the remaining quarter. Whether the SVM
    /// is then trained on all rows the paper does not say; here it is, unless `refit` is turned off.
    pub fn paper() -> Self {
        Self {
            form: FormChoice::Fixed(Form::Full),
            criterion: Criterion::HoldOut,
            surrogate: Surrogate::Sigmoid,
            lambda: 0.1,
            init: Init::Scaled,
            optimiser: Optimiser::ConjugateGradients,
            tolerance: 1e-3,
            cross_fit: false,
            landmarks: LandmarkChoice::Exact,
            ..Self::default()
        }
    }

    /// About how many bytes a fit to these data will use at most: the rows, as they are read and in the order and scale in
    /// which they are learned from, and kernel matrices, or the part of them that is kept.
    pub fn memory_needed(&self, data: &Dataset) -> u64 {
        let mut sizes = vec![0; data.classes().len()];
        data.y().iter().for_each(|&class| sizes[class] += 1);
        sizes.retain(|&size| size > 0);
        let copies = if are_learned_from_in_parts(data.rows(), self) { 1 } else { COPIES };
        let size = Size { rows: &sizes, columns: data.columns(), copies };
        match Approach::for_size(size, self) {
            Ok(approach) => approach.bytes(size, self),
            // That is refused by the fit.
            Err(Error::TooLarge { bytes, .. }) => u64::try_from(bytes).unwrap_or(u64::MAX),
            Err(_) => Approach::EXACT.bytes(size, self),
        }
    }

    /// Refuses a form whose numbers, with the copies that are held while they are learned, need more than `memory` bytes.
    pub(crate) fn check_form(&self, features: usize, memory: u64) -> Result<()> {
        let FormChoice::Fixed(form) = self.form else { return Ok(()) };
        // Both halves of the rows are learned from at the same time.
        let at_once = if self.cross_fit && rayon::current_num_threads() > 1 { 2 } else { 1 };
        let mut numbers = at_once * self.optimiser.vectors() * form.len(features) as u128;
        let from_gradients = self.starts_from_gradients(form, features);
        if from_gradients && matches!(form, Form::Full | Form::Rank(_)) {
            // G, the products that it is made of, and its eigenvectors.
            numbers += 8 * (features as u128).pow(2);
        }
        check_numbers(form, features, numbers, memory)
    }

    /// Whether L of this form, if it is given, starts from gradients.
    pub(crate) fn starts_from_gradients(&self, form: Form, features: usize) -> bool {
        match self.init {
            Init::Gradients => true,
            Init::Auto => matches!(form, Form::Rank(_)) && features <= MOST_COLUMNS,
            _ => false,
        }
    }

    /// How many bytes a fit may use.
    pub(crate) fn memory(&self) -> u64 {
        crate::memory::usable(self.memory_limit)
    }

    /// The surrogate with its steepness.
    pub(crate) fn loss(&self) -> Loss {
        Loss { surrogate: self.surrogate, steepness: self.steepness }
    }
}

impl Learner for Svml {
    fn name(&self) -> &str {
        "svml"
    }

    fn title(&self) -> &str {
        "support vector metric learning"
    }

    fn parameters(&self) -> serde_json::Value {
        to_json(self)
    }

    fn max_steps(&self) -> Option<usize> {
        Some(self.max_iterations)
    }

    fn validate(&self, features: usize) -> Result<()> {
        check_positive("steepness", self.steepness)?;
        check_positive("lambda", self.lambda)?;
        let (low, high) = COST_RANGE;
        let within = (low..=high).contains(&self.initial_cost);
        check("initial_cost", &self.initial_cost, within, &format!("between {low} and {high}"))?;
        check_tolerance(self.tolerance)?;
        check("patience", &self.patience, self.patience > 0, "at least 1")?;
        if let Criterion::KFold(k) = self.criterion {
            check("k_fold", &k, k >= 2, "at least 2")?;
        }
        if let LandmarkChoice::Count(count) = self.landmarks {
            check("landmarks", &count, count > 0, "at least 1")?;
        }
        let kernel = self.kernel == Kernel::Gaussian || self.form != FormChoice::Auto;
        check(
            "kernel",
            &self.kernel,
            kernel,
            "omitted if the form is auto; choose a form to use this kernel",
        )?;
        if let FormChoice::Fixed(form) = self.form {
            let bound = "sphere or diagonal for the laplacian kernel";
            check("form", &form, self.kernel.allows(form), bound)?;
            if let Form::Rank(rank) = form {
                check_rank(Some(rank), features)?;
            }
        }
        if let Init::Given(_) = self.init {
            let rank = match self.form {
                FormChoice::Fixed(Form::Rank(rank)) => rank,
                FormChoice::Fixed(Form::Full) => features,
                _ => {
                    let bound =
                        "auto, scaled, identity or gradients, unless the form is full or rank=R";
                    return Err(Error::parameter("init", "an array", bound));
                }
            };
            self.init.form(Some(rank), features)?;
        }
        Ok(())
    }

    /// The metric alone; [`Model::fit`](crate::Model::fit) keeps the SVM and C that belong to it.
    fn learn(&self, sample: &Sample<'_>, run: &mut Run<'_>) -> Result<Learned> {
        self.validate(sample.features())?;
        self.check_form(sample.features(), self.memory())?;
        let approach = Approach::of(sample, self)?;
        if let FormChoice::Fixed(form) = self.form {
            let params = approach.learning(self);
            let fit = learn_form(sample, form, &params, run)?;
            return Ok(Learned { best: fit.best, ..Learned::new(fit.metric, fit.trace, fit.stop) });
        }
        let mean = members::learn(sample, self, approach, run)?;
        let metrics = mean.members.iter().map(|member| (member.weight, &member.fit.metric));
        Ok(Learned::new(Metric::mean(metrics)?, mean.trace, mean.stop))
    }
}

/// With landmarks, a start from gradients is taken from so many rows.
const GRADIENT_ROWS: usize = 2000;

/// Learns metric, C and SVMs of one form.
pub(crate) fn learn_form(
    sample: &Sample<'_>,
    form: Form,
    params: &Svml,
    run: &mut Run<'_>,
) -> Result<SvmlFit> {
    let start = match params.landmarks {
        _ if !params.starts_from_gradients(form, sample.features()) => {
            return descend(sample, form, params, None, run);
        }
        // Directions need few rows.
        LandmarkChoice::Count(_) => {
            let few = sample.some(GRADIENT_ROWS);
            let exact = Svml { landmarks: LandmarkChoice::Exact, ..params.clone() };
            gradient_start::start(&few.sample()?, form, &exact, run)
                .map(|SvmlFit { metric, cost, .. }| SvmlFit::start(metric, cost))
        }
        _ => gradient_start::start(sample, form, params, run),
    };
    let from = match start {
        // What time is left may do for a simpler start.
        Err(Error::Interrupted) => None,
        start => Some(start?),
    };
    descend(sample, form, params, from, run)
}
