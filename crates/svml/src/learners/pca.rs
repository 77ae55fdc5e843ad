//! Principal components: the initial metric of rank r of other learners, and a method that the paper
//! compares with.

use super::parameters::{check_rank, parameters, to_json};
use super::{Learned, Learner};
use crate::data::Sample;
use crate::error::{Error, Remedy, Result};
use crate::linalg::{self, Block, Matrix};
use crate::metric::{Form, Metric};
use crate::run::Run;

parameters! {
    /// Principal components as a learner: the L of [`pca`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Pca {
        /// Number of rows of L: how many principal directions are kept.
        rank: usize = 2, "an integer of at least 1";
    }
}

impl Learner for Pca {
    fn name(&self) -> &str {
        "pca"
    }

    fn title(&self) -> &str {
        "principal components"
    }

    fn parameters(&self) -> serde_json::Value {
        to_json(self)
    }

    fn validate(&self, features: usize) -> Result<()> {
        check_rank(Some(self.rank), features)
    }

    /// Each row counts with its weight. The metric is computed directly, without steps.
    fn learn(&self, sample: &Sample<'_>, run: &mut Run<'_>) -> Result<Learned> {
        self.validate(sample.features())?;
        run.watch().check()?;
        Ok(Learned::at_once(pca(sample.x(), sample.weight(), self.rank)?))
    }
}

/// Projection onto the `rank` leading principal directions of the rows of `x`, each row counted with its
/// weight. The columns of `x` are taken as they are: they have mean 0, unless class weights shift it. The
/// projection is scaled so that the mean squared length of the mapped rows is 1, as it is with
/// L = I/sqrt(d) on standardised data.
pub fn pca(x: &Matrix, weights: &[f64], rank: usize) -> Result<Metric> {
    let (n, d) = (x.rows(), x.cols());
    let total = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let x = &Matrix::from_fn(n, d, |i, k| x[(i, k)] * (weights[i] / total).sqrt());
    // Eigenvectors v of X'X or, if XX' is smaller, from those of XX', u, as v = X'u / |X'u|.
    let x_block = Block::from(x);
    let failed = || {
        Error::Numerical {
        what: "the principal components cannot be computed: the covariance of the rows has no finite eigenvalues"
            .to_owned(),
        remedy: Remedy::RescaleColumn,
    }
    };
    let mut rows = if d <= n {
        linalg::symmetric_eigen(&linalg::multiply(x_block.t(), x_block)).ok_or_else(failed)?.1
    } else {
        let (_, u) =
            linalg::symmetric_eigen(&linalg::multiply(x_block, x_block.t())).ok_or_else(failed)?;
        linalg::multiply((&u).into(), x_block)
    };
    let mut l = Matrix::zeros(rank, d);
    for r in 0..rank {
        if r < rows.rows() {
            let v = rows.row_mut(r);
            let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            if length > 1e-12 {
                l.row_mut(r).iter_mut().zip(v).for_each(|(l, v)| *l = *v / length);
            }
        }
    }
    let l = with_fixed_signs(l);
    let z = linalg::multiply(x_block, Block::from(&l).t());
    let variance = z.as_slice().iter().map(|z| z * z).sum::<f64>();
    let scale = if variance > 0.0 { variance.sqrt().recip() } else { 1.0 };
    let values = l.into_vec().into_iter().map(|l| l * scale).collect();
    Metric::new(Form::Rank(rank), d, values)
}

/// The sign of an eigenvector is arbitrary: the largest entry of each row is made positive.
pub(crate) fn with_fixed_signs(mut rows: Matrix) -> Matrix {
    for i in 0..rows.rows() {
        let row = rows.row_mut(i);
        let top = row.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        row.iter_mut().for_each(|v| *v *= if top < 0.0 { -1.0 } else { 1.0 });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_direction_of_largest_variance_for_tall_and_wide_data() {
        for (n, d) in [(40, 3), (4, 9)] {
            // Nearly all variance is along one direction, and a little along a second.
            let x = Matrix::from_fn(n, d, |i, k| {
                let t = i as f64 - (n as f64 - 1.0) / 2.0;
                t * (k + 1) as f64 + if k == 0 { 0.01 * (t * t - 1.0) } else { 0.0 }
            });
            let metric = pca(&x, &vec![1.0; n], 1).unwrap();
            let l = metric.components();
            let scale = l[(0, d - 1)] / d as f64;
            for k in 0..d {
                assert!((l[(0, k)] / scale - (k + 1) as f64).abs() < 0.02, "{l:?}");
            }
            let z = metric.transform(&x);
            let mean_square: f64 = z.as_slice().iter().map(|z| z * z).sum::<f64>() / n as f64;
            assert!((mean_square - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_rank_above_that_of_the_data_gives_zero_rows() {
        let x = Matrix::from_rows(&[[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]]).unwrap();
        let l = pca(&x, &[1.0; 2], 3).unwrap().components();
        assert!(l.row(0).iter().all(|v| v.is_finite()) && l[(0, 0)] > 0.0);
        assert!(l.as_slice().iter().all(|v| v.is_finite()));
    }
}
