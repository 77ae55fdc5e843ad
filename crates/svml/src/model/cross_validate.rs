//! Cross-validation of any method.

use std::fmt;

use super::Model;
use crate::data::Dataset;
use crate::data::folds::{self, Dealt};
use crate::error::{Error, Result};
use crate::method::Method;

/// What cross-validation found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CrossValidation {
    /// Share of rows, by weight, that were misclassified by the model trained without their fold.
    pub error_rate: f64,
    /// The same within each fold.
    pub fold_error_rates: Vec<f64>,
    /// The class that this model predicts for each row, as an index into [`Dataset::classes`].
    pub predicted: Vec<usize>,
}

/// Fits a method on all rows but those of one fold and predicts these, for each of `k` folds in turn. The folds
/// are random and the same for every method. Rows that belong together ([`Dataset::together`]) are in one fold.
///
/// ```
/// use svml::{Generator, Method, Svml, cross_validate};
///
/// let data = Generator { rows: 200, ..Generator::default() }.generate()?.data;
/// let learned = cross_validate(&data, Svml::default(), 5)?;
/// let plain = cross_validate(&data, "euclidean".parse::<Method>()?, 5)?;
/// assert!(learned.error_rate < plain.error_rate);
/// println!("{learned}");
/// # Ok::<(), svml::Error>(())
/// ```
pub fn cross_validate(
    data: &Dataset,
    method: impl Into<Method>,
    k: usize,
) -> Result<CrossValidation> {
    let together = data.together();
    let dealt = Dealt { class: data.y(), copies: None, groups: together.as_deref() };
    let (units, what) = match (&together, data.groups()) {
        (Some(_), None) => (dealt.units(), "different rows"),
        (_, groups) => (dealt.units(), groups.map_or("rows", |_| "groups")),
    };
    if !(2..=units).contains(&(k as u64)) {
        let bound = format!("between 2 and the number of {what}, {units}");
        return Err(Error::parameter("folds", k, bound));
    }
    let method = method.into();
    let mut predicted = vec![0; data.rows()];
    let mut fold_error_rates = Vec::with_capacity(k);
    let (mut wrong, mut total) = (0.0, 0.0);
    for (train, rows) in folds::shuffled(data.y(), together.as_deref(), k, 0) {
        if rows.is_empty() {
            continue;
        }
        let model = Model::fit(&data.select(&train), &method)?;
        let valid = data.select(&rows);
        for (&row, label) in rows.iter().zip(model.predict_labels(valid.x())?) {
            // Every class of a model is one of its training data.
            predicted[row] = data.classes().iter().position(|c| c == label).unwrap_or_default();
        }
        let weight: f64 = valid.weights().iter().sum();
        let error = model.error_rate(&valid)?;
        fold_error_rates.push(error);
        wrong += error * weight;
        total += weight;
    }
    let error_rate = wrong / f64::max(total, f64::MIN_POSITIVE);
    Ok(CrossValidation { error_rate, fold_error_rates, predicted })
}

impl fmt::Display for CrossValidation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent: Vec<String> =
            self.fold_error_rates.iter().map(|error| format!("{:.1}", 100.0 * error)).collect();
        write!(f, "{:.1} % error (folds: {})", 100.0 * self.error_rate, percent.join(", "))
    }
}
