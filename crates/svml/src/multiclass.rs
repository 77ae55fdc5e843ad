//! Several classes: one-against-one SVMs that share one metric and one C.
//!
//! The pairs (i, j) with i < j are numbered (0, 1), (0, 2), .., (1, 2), ..; the SVM of a pair
//! sees the rows of its two classes only and is positive for class j. Two classes are one pair, and
//! its SVM is the whole classifier.

use std::borrow::Borrow;
use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use crate::cuda::Gpu;
use crate::data::{LabelledRows, PairRows, pairs};
use crate::error::Result;
use crate::kernel::{Gram, Product, Together, expand, expand_on};
use crate::linalg::Matrix;
use crate::metric::{Kernel, Metric};
use crate::parallel;
use crate::svm::{BinarySvm, Problem, Solution, Trained, solve, solve_together};

/// Trains the SVM of one pair of classes, with cost C_i = C w_i for row i of weight w_i. `start` is the
/// support set for a warm start, if there is one.
pub fn solve_pair<'a>(
    gram: &'a dyn Gram,
    rows: &PairRows,
    cost: f64,
    start: Option<&[usize]>,
) -> Result<Solution<'a>> {
    let cost: Vec<f64> = rows.weight.iter().map(|w| cost * w).collect();
    solve(&Problem { gram, rows: &rows.index, y: &rows.y, cost: &cost }, start)
}

/// Trains several SVMs, as [`solve_pair`] does each of them: side by side, or all together where the kernel matrix offers that.
/// There may be fewer starts than SVMs.
pub fn train_pairs(
    gram: &dyn Gram,
    pairs: &[impl Borrow<PairRows>],
    cost: f64,
    starts: &[Option<&[usize]>],
) -> Result<Vec<Trained>> {
    let pairs: Vec<&PairRows> = pairs.iter().map(Borrow::borrow).collect();
    let sizes: Vec<usize> = pairs.iter().map(|rows| rows.index.len()).collect();
    match gram.together(&sizes) {
        Some(together) => train_together(gram, together, &pairs, cost, starts),
        None => {
            let trained = |(p, rows): (usize, &&PairRows)| {
                let start = starts.get(p).copied().flatten();
                solve_pair(gram, rows, cost, start).map(|solution| solution.trained)
            };
            parallel::try_map(pairs.iter().enumerate(), trained)
        }
    }
}

/// Trains several SVMs together, by what the kernel matrix offers for that.
pub fn train_together(
    gram: &dyn Gram,
    together: &dyn Together,
    pairs: &[&PairRows],
    cost: f64,
    starts: &[Option<&[usize]>],
) -> Result<Vec<Trained>> {
    let costs: Vec<Vec<f64>> =
        pairs.iter().map(|rows| rows.weight.iter().map(|w| cost * w).collect()).collect();
    let problems: Vec<Problem<'_, '_>> = (pairs.iter().zip(&costs))
        .map(|(rows, cost)| Problem { gram, rows: &rows.index, y: &rows.y, cost })
        .collect();
    let starts: Vec<_> = (0..pairs.len()).map(|p| starts.get(p).copied().flatten()).collect();
    solve_together(together, &problems, &starts)
}

/// The outputs of every SVM at some rows of the kernel matrix. // (rows, pairs)
pub fn outputs(gram: &dyn Gram, rows: &[usize], svms: &[BinarySvm]) -> Result<Matrix> {
    let products: Vec<Product<'_>> =
        svms.iter().map(|svm| Product { rows, cols: &svm.support, v: &svm.beta }).collect();
    let columns = multiply_each(gram, &products)?;
    Ok(Matrix::from_fn(rows.len(), svms.len(), |i, p| columns[p][i] + svms[p].bias))
}

/// Products with blocks of the kernel matrix: side by side, or all together.
fn multiply_each(gram: &dyn Gram, products: &[Product<'_>]) -> Result<Vec<Vec<f64>>> {
    let sizes: Vec<usize> = products.iter().map(|product| product.cols.len()).collect();
    match gram.together(&sizes) {
        Some(together) => together.multiply(products),
        None => {
            let one = |Product { rows, cols, v }: &Product<'_>| gram.multiply(rows, cols, v);
            Ok(parallel::map(products, one))
        }
    }
}

/// For each pair of classes the rows that its output puts inside of the margin or on the wrong side, in ascending order:
/// those that are likely to be support vectors of a similar SVM. Nothing if there are no outputs.
pub fn inside_margin(outputs: &Matrix, rows: &LabelledRows, classes: usize) -> Vec<Vec<usize>> {
    let inside = |(p, (negative, positive)): (usize, (usize, usize))| {
        let is_inside = |r: usize, class: usize| {
            (class == positive && outputs[(r, p)] < 1.0)
                || (class == negative && outputs[(r, p)] > -1.0)
        };
        let labelled = rows.index.iter().zip(&rows.class).enumerate();
        let mut inside: Vec<usize> = labelled
            .filter(|(r, (_, class))| is_inside(*r, **class))
            .map(|(_, (row, _))| *row)
            .collect();
        inside.sort_unstable();
        inside.dedup();
        inside
    };
    pairs(classes).into_iter().enumerate().take(outputs.cols()).map(inside).collect()
}

/// One decision value per class from the outputs of all pairs: the number of pairs that the class wins,
/// plus the sum of the outputs in its favour, squashed into (-1/3, 1/3) so that it breaks ties but never
/// outweighs a vote. (This is scikit-learn's rule for one-against-one.) // (rows, classes)
///
/// For two classes the single output is the decision value. // (rows, 1)
pub fn vote(outputs: &Matrix, classes: usize) -> Matrix {
    if classes == 2 {
        return outputs.clone();
    }
    let pairs = pairs(classes);
    let mut values = Matrix::zeros(outputs.rows(), classes);
    for r in 0..outputs.rows() {
        let (mut votes, mut sums) = (vec![0.0; classes], vec![0.0; classes]);
        for (&(i, j), &h) in pairs.iter().zip(outputs.row(r)) {
            votes[if h > 0.0 { j } else { i }] += 1.0;
            sums[i] -= h;
            sums[j] += h;
        }
        for ((value, votes), sum) in values.row_mut(r).iter_mut().zip(votes).zip(sums) {
            *value = votes + sum / (3.0 * (sum.abs() + 1.0));
        }
    }
    values
}

/// The predicted class for each row of decision values: that of the largest value, the first if several
/// are equal. A single value decides between two classes: the second if it is positive, else the first.
pub fn decide(values: &Matrix) -> Vec<usize> {
    values
        .iter_rows()
        .map(|row| match row {
            [h] => usize::from(*h > 0.0),
            row => (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best }),
        })
        .collect()
}

/// The SVMs of all pairs over one common set of support vectors, in the layout of LIBSVM and scikit-learn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairwiseSvms {
    /// Support rows: class after class, ascending within each.
    pub support: Vec<usize>,
    /// Number of support rows of each class.
    pub counts: Vec<usize>,
    /// The column of a support row of class c holds its beta in the SVMs of c against each of the other
    /// classes, in order. // (classes - 1, |S|)
    pub beta: Matrix,
    /// b of each pair.
    pub bias: Vec<f64>,
}

impl PairwiseSvms {
    /// Joins the SVMs of all pairs; `class_of` tells the class of a row.
    pub fn new(svms: &[BinarySvm], classes: usize, class_of: impl Fn(usize) -> usize) -> Self {
        Self::over(svms.iter().flat_map(|svm| &svm.support).copied(), svms, classes, class_of)
    }

    /// As [`PairwiseSvms::new`], over given rows that include all support rows; beta is 0 for the others.
    pub fn over(
        rows: impl Iterator<Item = usize>,
        svms: &[BinarySvm],
        classes: usize,
        class_of: impl Fn(usize) -> usize,
    ) -> Self {
        let mut support: Vec<(usize, usize)> = rows.map(|row| (class_of(row), row)).collect();
        support.sort_unstable();
        support.dedup();
        let mut counts = vec![0; classes];
        support.iter().for_each(|(class, _)| counts[*class] += 1);
        let mut beta = Matrix::zeros(classes - 1, support.len());
        for (svm, (i, j)) in svms.iter().zip(pairs(classes)) {
            for (&row, &b) in svm.support.iter().zip(&svm.beta) {
                let class = class_of(row);
                // Among the SVMs of class i, counted from 0, the one against class j > i is number j - 1.
                let slot = if class == i { j - 1 } else { i };
                if let Ok(at) = support.binary_search(&(class, row)) {
                    beta[(slot, at)] = b;
                }
            }
        }
        Self {
            support: support.into_iter().map(|(_, row)| row).collect(),
            counts,
            beta,
            bias: svms.iter().map(|svm| svm.bias).collect(),
        }
    }

    /// The outputs of the SVMs of all pairs at some rows of `x`, some thousand at a time, given the support rows as
    /// `mapped` by L. // (rows, pairs)
    pub fn outputs_at(
        &self,
        kernel: Kernel,
        metric: &Metric,
        x: &Matrix,
        rows: &[usize],
        mapped: &Matrix,
    ) -> Matrix {
        const TOGETHER: usize = 4096;
        let mut outputs = Vec::with_capacity(rows.len() * self.bias.len());
        for rows in rows.chunks(TOGETHER) {
            let z = metric.transform(&x.select_rows(rows));
            outputs.extend_from_slice(self.outputs(kernel, &z, mapped).as_slice());
        }
        Matrix::new(rows.len(), self.bias.len(), outputs).unwrap_or_default()
    }

    /// The outputs of the SVMs of all pairs at the rows `z`, given the support rows as `mapped`; both have
    /// been mapped by L. // (rows, pairs)
    pub fn outputs(&self, kernel: Kernel, z: &Matrix, mapped: &Matrix) -> Matrix {
        let expanded =
            |support: &Matrix, beta: &Matrix| Ok::<_, Infallible>(expand(kernel, z, support, beta));
        let Ok(outputs) = self.sums(z, mapped, expanded);
        outputs
    }

    /// The same on a card, if there is one.
    pub fn outputs_on(
        &self,
        gpu: Option<&'static Gpu>,
        kernel: Kernel,
        z: &Matrix,
        mapped: &Matrix,
    ) -> Result<Matrix> {
        self.sums(z, mapped, |support, beta| expand_on(gpu, kernel, z, support, beta))
    }

    /// The outputs, from the sums over support rows with coefficients. // (rows, pairs)
    fn sums<E>(
        &self,
        z: &Matrix,
        mapped: &Matrix,
        expand: impl Fn(&Matrix, &Matrix) -> std::result::Result<Matrix, E>,
    ) -> std::result::Result<Matrix, E> {
        let classes = self.counts.len();
        let mut outputs = Matrix::from_fn(z.rows(), self.bias.len(), |_, p| self.bias[p]);
        let mut add = |sums: &Matrix, places: &[(usize, usize)]| {
            for r in 0..z.rows() {
                places.iter().for_each(|&(pair, slot)| outputs[(r, pair)] += sums[(r, slot)]);
            }
        };
        if classes == 2 {
            add(&expand(mapped, &self.beta)?, &[(0, 0)]);
            return Ok(outputs);
        }
        // All SVMs of a class use the same kernel values of its support rows, which are computed once.
        let mut start = 0;
        for (class, &count) in self.counts.iter().enumerate() {
            let rows: Vec<usize> = (start..start + count).collect();
            let beta = Matrix::from_fn(classes - 1, count, |s, r| self.beta[(s, start + r)]);
            let places: Vec<(usize, usize)> = pairs(classes)
                .into_iter()
                .enumerate()
                .filter(|(_, (i, j))| *i == class || *j == class)
                .map(|(pair, (i, j))| (pair, if i == class { j - 1 } else { i }))
                .collect();
            add(&expand(&mapped.select_rows(&rows), &beta)?, &places);
            start += count;
        }
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_in_order() {
        assert_eq!(pairs(2), [(0, 1)]);
        assert_eq!(pairs(4), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    }

    /// Expected: sklearn.multiclass._ovr_decision_function of scikit-learn 1.9.1, called with
    /// predictions = outputs > 0 and confidences = outputs.
    #[test]
    fn the_vote_is_that_of_scikit_learn() {
        let outputs =
            Matrix::from_rows(&[[1.0, -2.0, 0.5], [-0.25, -0.5, 0.125], [0.5, -0.5, 0.5]]).unwrap();
        let values = vote(&outputs, 3);
        let expected = [
            [1.1666666666666667, 1.1111111111111112, 0.8],
            [2.142857142857143, -0.09090909090909091, 0.9090909090909091],
            [1.0, 1.0, 1.0],
        ];
        for r in 0..3 {
            for c in 0..3 {
                assert!((values[(r, c)] - expected[r][c]).abs() < 1e-15, "{values:?}");
            }
        }
        assert_eq!(decide(&values), [0, 0, 0]);
    }

    #[test]
    fn a_single_value_is_decided_by_its_sign_and_equals_go_to_the_first() {
        let column = Matrix::from_rows(&[[0.0], [-1.0], [1e-300]]).unwrap();
        assert_eq!(decide(&column), [0, 0, 1]);
        let rows = Matrix::from_rows(&[[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]).unwrap();
        assert_eq!(decide(&rows), [1, 0]);
    }

    #[test]
    fn pairwise_svms_give_what_each_gives() {
        let classes = 4;
        let z = Matrix::from_fn(20, 2, |i, k| ((i * 7 + k * 5) % 11) as f64 * 0.2);
        let class_of = |row: usize| row % classes;
        let svms: Vec<BinarySvm> = pairs(classes)
            .iter()
            .map(|&(i, j)| {
                let support: Vec<usize> =
                    (0..20).filter(|r| [i, j].contains(&class_of(*r)) && r % 3 != 0).collect();
                let beta = support.iter().map(|r| (*r as f64 - 9.5) / 10.0).collect();
                BinarySvm { support, beta, bias: i as f64 - 0.5 * j as f64 }
            })
            .collect();
        let pairwise = PairwiseSvms::new(&svms, classes, class_of);
        assert!(pairwise.support.iter().all(|r| r % 3 != 0));
        let together = pairwise.outputs(Kernel::Gaussian, &z, &z.select_rows(&pairwise.support));
        for (p, svm) in svms.iter().enumerate() {
            let beta = Matrix::from_rows(&[&svm.beta]).unwrap();
            let alone = expand(Kernel::Gaussian, &z, &z.select_rows(&svm.support), &beta);
            for r in 0..20 {
                assert!((together[(r, p)] - alone[(r, 0)] - svm.bias).abs() < 1e-13);
            }
        }
    }
}
