//! From sums over pairs of rows to the derivative in the values of the metric: what all backends have in common.

use crate::linalg::{self, Matrix};
use crate::metric::{Form, Metric};

/// Whether L Q comes from mapped rows rather than from Q, for a matrix of so many rows: if L has few rows, or if there are
/// fewer rows than columns, where the product of L and Q would be most of the work.
pub(super) fn maps_rows(metric: &Metric, rows: usize) -> bool {
    match metric.form() {
        Form::Sphere | Form::Diagonal => false,
        Form::Full => rows < metric.features(),
        Form::Rank(_) => true,
    }
}

/// From what the form needs of Q (its diagonal, all of it, or L Q; empty for zero) to -2 L Q in the values of the metric.
pub(super) fn minus_two_l_times(metric: &Metric, rows: usize, q: Matrix) -> Vec<f64> {
    let l = metric.values();
    if q.as_slice().is_empty() {
        return vec![0.0; l.len()];
    }
    let mut gradient = match metric.form() {
        Form::Sphere => vec![l[0] * q.as_slice().iter().sum::<f64>()],
        Form::Diagonal => l.iter().zip(q.as_slice()).map(|(l, q)| l * q).collect(),
        Form::Full if !maps_rows(metric, rows) => {
            linalg::multiply((&metric.components()).into(), (&q).into()).into_vec()
        }
        Form::Full | Form::Rank(_) => q.into_vec(),
    };
    gradient.iter_mut().for_each(|v| *v *= -2.0);
    gradient
}

/// From sums of |x_ik - x_jk| to the derivative in the diagonal of L, or in its one value.
pub(super) fn minus_sign_times(metric: &Metric, sums: Matrix) -> Vec<f64> {
    let l = metric.values();
    match sums.as_slice() {
        [] => vec![0.0; l.len()],
        sums => l.iter().zip(sums).map(|(l, sum)| -l.signum() * sum).collect(),
    }
}

/// The sum of matrices of one shape, added in their order; an empty matrix if there are none.
pub(super) fn sum_in_order(parts: Vec<Matrix>) -> Matrix {
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    for part in parts {
        sum.as_mut_slice().iter_mut().zip(part.as_slice()).for_each(|(sum, part)| *sum += part);
    }
    sum
}
