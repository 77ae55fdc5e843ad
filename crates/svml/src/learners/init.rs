//! The initial metric of a learner.

use serde::{Deserialize, Serialize};

use super::parameters::check;
use super::pca::pca;
use crate::data::Sample;
use crate::error::Result;
use crate::linalg::dot;
use crate::metric::{Form, Metric};

/// The initial metric L0. SVML's regulariser also penalises the distance of L from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Init {
    /// L0 = I. If L has r rows: the r leading principal directions, each of length 1.
    Identity,
    /// L0 = I/sqrt(d'), where d' is the number of columns that are not constant: the usual width of an RBF
    /// kernel. If L has r rows: the r leading principal directions, scaled so that the mean squared length
    /// of the mapped rows is 1.
    #[serde(alias = "isotropic")]
    Scaled,
    /// From the gradient outer product of SVMs with a spherical metric. Only SVML can start from it.
    Gradients,
}

impl Init {
    /// Refuses [`Init::Gradients`], which only SVML can start from.
    pub(super) fn check_without_svm(self) -> Result<()> {
        check("init", &"gradients", self != Self::Gradients, "identity or scaled")
    }

    /// L0 in the given form. [`Init::Gradients`] gives the same as [`Init::Scaled`] here, because there is no
    /// SVM yet to take gradients from.
    pub(crate) fn metric(self, sample: &Sample<'_>, form: Form) -> Result<Metric> {
        let x = sample.x();
        if let Form::Rank(rank) = form {
            let scaled = pca(x, sample.weight(), rank)?;
            return if self == Self::Identity { unit_rows(&scaled) } else { Ok(scaled) };
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
