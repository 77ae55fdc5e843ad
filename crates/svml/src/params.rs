//! The parameters of a fit: one flat struct, each field with its default.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::criterion::Criterion;
use crate::error::{Error, Result};
use crate::loss::{Loss, Surrogate};
use crate::metric::Form;
use crate::optimise::Optimiser;

/// How much the rows of each class count, besides their own weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClassWeight {
    /// All alike.
    #[default]
    None,
    /// Inversely to the weight of the class: total / (classes x weight of the class), so that every
    /// class counts the same.
    Balanced,
    /// As given, by class label; 1 for classes that are not named.
    Given(BTreeMap<String, f64>),
}

impl ClassWeight {
    /// The factor of each class, of which `totals` are the weights of the rows.
    pub(crate) fn factors(&self, classes: &[String], totals: &[f64]) -> Result<Vec<f64>> {
        let bad =
            |value: String, bound: String| Error::Parameter { name: "class_weight", value, bound };
        match self {
            Self::None => Ok(vec![1.0; classes.len()]),
            Self::Balanced => {
                let share = totals.iter().sum::<f64>() / classes.len() as f64;
                Ok(totals.iter().map(|total| share / total).collect())
            }
            Self::Given(given) => {
                for (class, &weight) in given {
                    if !classes.contains(class) {
                        return Err(bad(format!("'{class}'"), format!("for one of {classes:?}")));
                    }
                    if !(1e-9..=1e9).contains(&weight) {
                        let value = format!("{weight} for class '{class}'");
                        return Err(bad(value, "between 1e-9 and 1e9".to_owned()));
                    }
                }
                Ok(classes.iter().map(|class| given.get(class).copied().unwrap_or(1.0)).collect())
            }
        }
    }
}

/// The structure of L, or that it is chosen from the data. As text: `auto`, or that of the [`Form`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum FormChoice {
    /// Chosen along the path from sphere to diagonal or low rank: see
    /// [`learn::auto`](crate::learn::auto).
    #[default]
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
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Fixed) }
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

/// Where the metric starts, which is also what the regulariser holds it to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Start {
    /// L0 = I/sqrt(d); the principal components for a metric of rank r.
    #[default]
    Isotropic,
    /// The gradient outer product of machines with a spherical metric: see
    /// [`learn::gop`](crate::learn::gop).
    Gradients,
}

/// Everything a fit can be told. The defaults need no tuning; `docs/accuracy.md` in the
/// repository has the measurements they were chosen by. [`Params::paper`] are those of the paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Structure of L. Default: chosen from the data.
    pub form: FormChoice,
    /// How metric and C are validated while they are learned. Default: 5 folds.
    pub criterion: Criterion,
    /// The smooth function that stands in for the zero-one loss. Default: the squared hinge,
    /// the machine's own loss.
    pub surrogate: Surrogate,
    /// Steepness a of the surrogate, s_a(z) = 1/(1 + exp(a z)) for the sigmoid; the squared hinge has
    /// none. Default: 5.
    pub steepness: f64,
    /// Weight of the regulariser lambda |L - L0|^2 / |L0|^2 that holds L near its start. It is
    /// relative to the size of L0 and to a loss of order one; the paper's 100 and 10 belong to other
    /// units. Default: 0.03.
    pub lambda: f64,
    /// Where L starts, if its form is given. Default: isotropic.
    pub start: Start,
    /// C at the start; small is smooth, from where early stopping is safe. Default: 0.5.
    pub initial_cost: f64,
    /// Whether C is learned with the metric; otherwise it stays as it starts. Default: true.
    pub learn_cost: bool,
    /// Default: L-BFGS.
    pub optimiser: Optimiser,
    /// Most accepted steps, for each form that is tried. Default: 100.
    pub max_iterations: usize,
    /// Accepted steps without a better result on the hold-out rows before stopping; k-fold and
    /// leave-one-out have none. Default: 5.
    pub patience: usize,
    /// Decrease of the loss below which to stop, relative to the loss or, if it is small, to half of what
    /// knowing nothing costs. Default: 1e-2.
    pub tolerance: f64,
    /// Whether the machine is trained again on all rows with the learned L and C; otherwise the
    /// machine trained on half of the rows is kept, as the paper reads literally (with k folds, that
    /// trained without the first; with leave-one-out all rows are in it anyway). Default: true.
    pub refit: bool,
    /// Weights of the classes, in the machine, the validation error, early stopping and the
    /// probabilities. Default: all alike.
    pub class_weight: ClassWeight,
    /// Seed of the split. Default: 0.
    pub seed: u64,
    /// Most bytes for the kernel matrix and its factorisation. With two classes: 16 n^2 for the
    /// hold-out criterion, 8 n^2 more for each fold that is trained at the same time, 40 n^2 for
    /// leave-one-out. Default: 8 GiB, enough for 23,000 rows with the hold-out criterion.
    pub memory_limit: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            form: FormChoice::Auto,
            criterion: Criterion::KFold(5),
            surrogate: Surrogate::SquaredHinge,
            steepness: 5.0,
            lambda: 0.03,
            start: Start::Isotropic,
            initial_cost: 0.5,
            learn_cost: true,
            optimiser: Optimiser::default(),
            max_iterations: 100,
            patience: 5,
            tolerance: 1e-2,
            refit: true,
            class_weight: ClassWeight::None,
            seed: 0,
            memory_limit: 8 << 30,
        }
    }
}

/// C is kept inside this range: with weights of ordinary size K + diag(1/(C w)) stays safely positive
/// definite, and the validation error is flat outside.
pub(crate) const COST_RANGE: (f64, f64) = (1e-3, 1e4);

impl Params {
    /// The protocol of the paper: a full L and C, learned on half of the training rows by conjugate
    /// gradients on the sigmoid of another quarter, stopped by the remaining quarter. Whether the machine
    /// is then trained on all rows the paper does not say; here it is, unless `refit` is turned off.
    pub fn paper() -> Self {
        Self {
            form: FormChoice::Fixed(Form::Full),
            criterion: Criterion::HoldOut,
            surrogate: Surrogate::Sigmoid,
            lambda: 0.1,
            optimiser: Optimiser::ConjugateGradients,
            tolerance: 1e-3,
            ..Self::default()
        }
    }

    pub(crate) fn loss(&self) -> Loss {
        Loss { surrogate: self.surrogate, steepness: self.steepness }
    }

    /// Checks every field for `features` columns.
    pub fn validate(&self, features: usize) -> Result<()> {
        let check = |name, value: &dyn std::fmt::Display, ok: bool, bound: &str| {
            if ok {
                return Ok(());
            }
            Err(Error::Parameter { name, value: value.to_string(), bound: bound.to_owned() })
        };
        let positive = |v: f64| v.is_finite() && v > 0.0;
        check("steepness", &self.steepness, positive(self.steepness), "positive and finite")?;
        check("lambda", &self.lambda, positive(self.lambda), "positive and finite")?;
        let (low, high) = COST_RANGE;
        let within = (low..=high).contains(&self.initial_cost);
        check("initial_cost", &self.initial_cost, within, &format!("between {low} and {high}"))?;
        let tolerance = self.tolerance.is_finite() && self.tolerance >= 0.0;
        check("tolerance", &self.tolerance, tolerance, "finite and at least 0")?;
        check("patience", &self.patience, self.patience > 0, "at least 1")?;
        if let Criterion::KFold(k) = self.criterion {
            check("k_fold", &k, k >= 2, "at least 2")?;
        }
        if let FormChoice::Fixed(Form::Rank(r)) = self.form {
            let bound = format!("between 1 and the number of features, {features}");
            check("rank", &r, (1..=features).contains(&r), &bound)?;
        }
        Ok(())
    }
}
