//! The rows of a sample sorted by class, for learners that compare rows with each other.

use std::ops::Range;

use crate::data::Sample;
use crate::error::Result;
use crate::linalg::{self, Block, Matrix};
use crate::metric::{Form, Metric};

/// The rows of a sample, sorted by class.
pub(super) struct RowsByClass {
    /// // (n, d)
    pub x: Matrix,
    pub weight: Vec<f64>,
    /// Which rows each class has.
    pub classes: Vec<Range<usize>>,
    /// The class of each row.
    pub class: Vec<usize>,
}

impl RowsByClass {
    pub fn new(sample: &Sample<'_>) -> Self {
        let mut order: Vec<usize> = (0..sample.rows()).collect();
        order.sort_by_key(|&i| sample.class()[i]);
        let class: Vec<usize> = order.iter().map(|&i| sample.class()[i]).collect();
        let edge = |c: usize| class.partition_point(|&class| class < c);
        Self {
            x: sample.x().select_rows(&order),
            weight: order.iter().map(|&i| sample.weight()[i]).collect(),
            classes: (0..sample.classes()).map(|c| edge(c)..edge(c + 1)).collect(),
            class,
        }
    }

    /// Q = sum_ij W_ij (x_i - x_j)(x_i - x_j)' from W X and the sums of rows and columns of W,
    /// `margins` = W 1 + W' 1:  Q = X' diag(margins) X - X'(W X) - (W X)'X. // (d, d)
    pub fn contract(&self, w_x: &Matrix, margins: &[f64]) -> Matrix {
        let d = self.x.cols();
        let mut right = Matrix::zeros(self.x.rows(), d);
        for (i, margin) in margins.iter().enumerate() {
            let pairs = self.x.row(i).iter().zip(w_x.row(i));
            for (out, (x, w_x)) in right.row_mut(i).iter_mut().zip(pairs) {
                *out = 0.5 * margin * x - w_x;
            }
        }
        let half = linalg::multiply(Block::from(&self.x).t(), (&right).into());
        Matrix::from_fn(d, d, |i, j| half[(i, j)] + half[(j, i)])
    }
}

/// L as a metric: of the form `full` if it is square, else of the form `rank=R`.
pub(super) fn metric_of(l: Matrix) -> Result<Metric> {
    let (r, d) = (l.rows(), l.cols());
    let form = if r == d { Form::Full } else { Form::Rank(r) };
    Metric::new(form, d, l.into_vec())
}
