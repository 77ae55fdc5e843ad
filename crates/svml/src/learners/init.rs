//! The initial metric of a learner.

use serde::{Deserialize, Serialize};

use super::parameters::check;
use super::pca::pca;
use crate::data::Sample;
use crate::error::{Error, Result};
use crate::linalg::{Matrix, dot};
use crate::metric::{Form, Metric};

/// The initial metric L0. SVML's regulariser also penalises the distance of L from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Init {
    /// SVML's default: [`Init::Gradients`] where the form rank=R is given and there are at most 1,000 features, and
    /// otherwise [`Init::Scaled`].
    Auto,
    /// L0 = I. If L has r rows: the r leading principal directions, each of length 1.
    Identity,
    /// L0 = I/sqrt(d'), where d' is the number of columns that are not constant: the usual width of an RBF
    /// kernel. If L has r rows: the r leading principal directions, scaled so that the mean squared length
    /// of the mapped rows is 1.
    #[serde(alias = "isotropic")]
    Scaled,
    /// From the gradient outer product of SVMs with a spherical metric. Only SVML can start from it.
    Gradients,
    /// L0 as given, row by row, on features as they are: as [`Model::raw_components`](crate::Model::raw_components)
    /// gives it, whose distances do not change when the learner standardises the features. L has as many rows.
    Given(Vec<Vec<f64>>),
}

/// Entries of a given L0 must be smaller than this, so that squares and products with scales are finite.
const LARGEST: f64 = 1e70;

impl Init {
    /// Refuses [`Init::Auto`] and [`Init::Gradients`], which are for SVML only, and a given L0 of a wrong shape.
    pub(super) fn check_without_svm(&self, rank: Option<usize>, features: usize) -> Result<()> {
        let bound = "identity, scaled or an array";
        check("init", &"auto", *self != Self::Auto, bound)?;
        check("init", &"gradients", *self != Self::Gradients, bound)?;
        self.form(rank, features).map(drop)
    }

    /// The form of L: that of the parameter `rank`, or that of a given L0, which must then agree with it.
    pub(crate) fn form(&self, rank: Option<usize>, features: usize) -> Result<Form> {
        let Self::Given(l) = self else {
            return Ok(rank.map_or(Form::Full, Form::Rank));
        };
        let width = l.first().map_or(0, Vec::len);
        let shape = format!("an array of shape ({}, {width})", l.len());
        let bad = |value: String, bound: String| Err(Error::parameter("init", value, bound));
        if let Some(row) = l.iter().find(|row| row.len() != width) {
            let value = format!("rows of {width} and of {} numbers", row.len());
            return bad(value, "rows of one length".to_owned());
        }
        if width != features || l.is_empty() || l.len() > features {
            let bound = format!("1 to {features} rows of {features} numbers, one for each feature");
            return bad(shape, bound);
        }
        if let Some(rank) = rank.filter(|rank| *rank != l.len()) {
            return bad(
                shape,
                format!("an array of {rank} rows, one for each dimension to map into"),
            );
        }
        let values = || l.iter().flatten();
        if let Some(value) = values().find(|value| value.is_nan() || value.abs() > LARGEST) {
            return bad(value.to_string(), format!("numbers between -{LARGEST:e} and {LARGEST:e}"));
        }
        if values().all(|value| *value == 0.0) {
            return bad(
                "all zeros".to_owned(),
                "an array with at least one entry that is not zero".to_owned(),
            );
        }
        Ok(if l.len() == features { Form::Full } else { Form::Rank(l.len()) })
    }

    /// L0 in the given form. [`Init::Auto`] and [`Init::Gradients`] give the same as [`Init::Scaled`] here, because
    /// there is no SVM yet to take gradients from.
    pub(crate) fn metric(&self, sample: &Sample<'_>, form: Form) -> Result<Metric> {
        let x = sample.x();
        if let Self::Given(l) = self {
            let l = Matrix::from_rows(l)?;
            let scale = |k: usize| sample.scale().map_or(1.0, |scale| scale[k]);
            let scaled = Matrix::from_fn(l.rows(), l.cols(), |i, k| l[(i, k)] * scale(k));
            return Metric::new(form, l.cols(), scaled.into_vec());
        }
        if let Form::Rank(rank) = form {
            let scaled = pca(x, sample.weight(), rank)?;
            return if *self == Self::Identity { unit_rows(&scaled) } else { Ok(scaled) };
        }
        // Constant columns, which standardisation has made zero, do not count.
        let varying = (0..x.cols()).filter(|&k| x.col(k).any(|v| v != 0.0)).count();
        let value = match self {
            Self::Identity => 1.0,
            _ => (varying.max(1) as f64).sqrt().recip(),
        };
        Metric::isotropic(form, x.cols(), value)
    }
}

/// The same directions, each of length 1, except that rows of zeros stay zero.
fn unit_rows(metric: &Metric) -> Result<Metric> {
    let mut l = metric.components();
    for r in 0..l.rows() {
        let length = dot(l.row(r), l.row(r)).sqrt();
        let scale = if length > 0.0 { length.recip() } else { 0.0 };
        l.row_mut(r).iter_mut().for_each(|l| *l *= scale);
    }
    Metric::new(metric.form(), metric.features(), l.into_vec())
}
