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
    /// How many equal observations each row stands for.
    pub copies: Vec<u64>,
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
            copies: order.iter().map(|&i| sample.copies(i)).collect(),
            classes: (0..sample.classes()).map(|c| edge(c)..edge(c + 1)).collect(),
            class,
        }
    }

    /// Q = sum_ij W_ij (x_i - x_j)(x_i - x_j)' from W X and the sums of rows and columns of W,
    /// `margins` = W 1 + W' 1:  Q = X' diag(margins) X - X'(W X) - (W X)'X. // (d, d)
    pub fn contract(&self, w_x: &Matrix, margins: &[f64]) -> Matrix {
        let d = self.x.cols();
        let half = linalg::multiply(Block::from(&self.x).t(), (&self.half(w_x, margins)).into());
        Matrix::from_fn(d, d, |i, j| half[(i, j)] + half[(j, i)])
    }

    /// H = diag(margins) X / 2 - W X, with which Q of [`RowsByClass::contract`] is X'H + H'X. // (n, d)
    pub fn half(&self, w_x: &Matrix, margins: &[f64]) -> Matrix {
        let mut half = Matrix::zeros(self.x.rows(), self.x.cols());
        for (i, margin) in margins.iter().enumerate() {
            let pairs = self.x.row(i).iter().zip(w_x.row(i));
            for (out, (x, w_x)) in half.row_mut(i).iter_mut().zip(pairs) {
                *out = 0.5 * margin * x - w_x;
            }
        }
        half
    }

    /// Whether products with X and H are less work than one with Q.
    pub fn are_few(&self) -> bool {
        self.x.rows() < self.x.cols()
    }

    /// L Q from H and z = X L', without Q: z'H + (H L')'X. // (r, d)
    pub fn times_few(&self, l: &Matrix, z: &Matrix, half: &Matrix) -> Matrix {
        let h = linalg::multiply(half.into(), Block::from(l).t());
        let mut product = linalg::multiply(Block::from(z).t(), half.into());
        let other = linalg::multiply(Block::from(&h).t(), (&self.x).into());
        product.as_mut_slice().iter_mut().zip(other.as_slice()).for_each(|(p, o)| *p += o);
        product
    }
}

/// L as a metric: of the form `full` if it is square, else of the form `rank=R`.
pub(super) fn metric_of(l: Matrix) -> Result<Metric> {
    let (r, d) = (l.rows(), l.cols());
    let form = if r == d { Form::Full } else { Form::Rank(r) };
    Metric::new(form, d, l.into_vec())
}
