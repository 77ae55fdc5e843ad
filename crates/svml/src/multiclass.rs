//! Several classes: one-against-one machines that share one metric and one C.
//!
//! The pairs (i, j) with i < j are numbered (0, 1), (0, 2), .., (1, 2), ..; the machine of a pair
//! sees the rows of its two classes only and is positive for class j. Two classes are one pair, and
//! its machine is the whole classifier.

use rayon::prelude::*;

use crate::error::Result;
use crate::kernel::{Gram, expand};
use crate::linalg::Matrix;
use crate::svm::{Machine, Problem, Solution, solve};

/// The pairs of `classes` classes, in order.
pub fn pairs(classes: usize) -> Vec<(usize, usize)> {
    (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect()
}

/// Rows with their classes and weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labelled {
    /// Row indices, ascending.
    pub index: Vec<usize>,
    /// Class of each.
    pub class: Vec<usize>,
    /// Weight of each, positive.
    pub weight: Vec<f64>,
}

/// Rows with labels +-1 and weights: what the machine of one pair sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Row indices, ascending.
    pub index: Vec<usize>,
    /// +1 or -1 for each.
    pub y: Vec<f64>,
    /// Weight of each, positive.
    pub weight: Vec<f64>,
}

impl Labelled {
    /// Those rows whose position `keep` asks for.
    pub fn some(&self, keep: impl Fn(usize) -> bool) -> Self {
        let chosen: Vec<usize> = (0..self.index.len()).filter(|&p| keep(p)).collect();
        Self {
            index: chosen.iter().map(|&p| self.index[p]).collect(),
            class: chosen.iter().map(|&p| self.class[p]).collect(),
            weight: chosen.iter().map(|&p| self.weight[p]).collect(),
        }
    }

    /// The rows of classes i and j, positive for j.
    pub fn of_pair(&self, (i, j): (usize, usize)) -> Rows {
        let mut rows = Rows::default();
        for (p, &class) in self.class.iter().enumerate() {
            if class == i || class == j {
                rows.index.push(self.index[p]);
                rows.y.push(if class == j { 1.0 } else { -1.0 });
                rows.weight.push(self.weight[p]);
            }
        }
        rows
    }
}

/// Solves the machine of one pair: C_i = C w_i.
pub fn solve_pair<'a>(
    gram: &'a dyn Gram,
    rows: &Rows,
    cost: f64,
    start: Option<&[usize]>,
) -> Result<Solution<'a>> {
    let cost: Vec<f64> = rows.weight.iter().map(|w| cost * w).collect();
    solve(&Problem { gram, rows: &rows.index, y: &rows.y, cost: &cost }, start)
}

/// The outputs of every machine at some rows of the kernel. // (rows, pairs)
pub fn outputs(gram: &dyn Gram, rows: &[usize], machines: &[Machine]) -> Matrix {
    let columns: Vec<Vec<f64>> = machines
        .par_iter()
        .map(|machine| {
            let mut h = gram.multiply(rows, &machine.support, &machine.beta);
            h.iter_mut().for_each(|h| *h += machine.bias);
            h
        })
        .collect();
    Matrix::from_fn(rows.len(), machines.len(), |i, p| columns[p][i])
}

/// One value per class from the outputs of all pairs: the number of pairs won, plus the sum of the
/// outputs in favour of the class squashed into (-1/3, 1/3), which breaks ties without ever
/// outvoting. (scikit-learn's rule for one-against-one.) // (rows, classes)
///
/// Two classes keep their single output. // (rows, 1)
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

/// The class of each row of decision values: the largest, the first of equals; of a single value,
/// the second class if it is positive.
pub fn decide(values: &Matrix) -> Vec<usize> {
    values
        .iter_rows()
        .map(|row| match row {
            [h] => usize::from(*h > 0.0),
            row => (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best }),
        })
        .collect()
}

/// All machines over one set of support vectors, as LIBSVM and scikit-learn lay them out.
#[derive(Clone, Debug, PartialEq)]
pub struct Ensemble {
    /// Support rows: class after class, ascending within each.
    pub support: Vec<usize>,
    /// Number of support rows of each class.
    pub counts: Vec<usize>,
    /// For a support row of class c, its beta in the machines of c with the other classes in order.
    /// // (classes - 1, |S|)
    pub beta: Matrix,
    /// b of each pair.
    pub bias: Vec<f64>,
}

impl Ensemble {
    /// Joins the machines of all pairs; `class_of` tells the class of a row.
    pub fn new(machines: &[Machine], classes: usize, class_of: impl Fn(usize) -> usize) -> Self {
        let mut support: Vec<(usize, usize)> = machines
            .iter()
            .flat_map(|machine| &machine.support)
            .map(|&row| (class_of(row), row))
            .collect();
        support.sort_unstable();
        support.dedup();
        let mut counts = vec![0; classes];
        support.iter().for_each(|(class, _)| counts[*class] += 1);
        let mut beta = Matrix::zeros(classes - 1, support.len());
        for (machine, (i, j)) in machines.iter().zip(pairs(classes)) {
            for (&row, &b) in machine.support.iter().zip(&machine.beta) {
                let class = class_of(row);
                // Among the machines of class i the one with j > i is number j - 1.
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
            bias: machines.iter().map(|machine| machine.bias).collect(),
        }
    }

    /// The outputs of all pairs at rows `z`, with the support rows `mapped`, both mapped by L.
    /// // (rows, pairs)
    pub fn outputs(&self, z: &Matrix, mapped: &Matrix) -> Matrix {
        let classes = self.counts.len();
        let mut outputs = Matrix::from_fn(z.rows(), self.bias.len(), |_, p| self.bias[p]);
        let mut add = |sums: &Matrix, places: &[(usize, usize)]| {
            for r in 0..z.rows() {
                places.iter().for_each(|&(pair, slot)| outputs[(r, pair)] += sums[(r, slot)]);
            }
        };
        if classes == 2 {
            add(&expand(z, mapped, &self.beta), &[(0, 0)]);
            return outputs;
        }
        // The support rows of a class share their kernel values among its machines.
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
            add(&expand(z, &mapped.select_rows(&rows), &beta), &places);
            start += count;
        }
        outputs
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
    fn an_ensemble_gives_what_its_machines_give() {
        let classes = 4;
        let z = Matrix::from_fn(20, 2, |i, k| ((i * 7 + k * 5) % 11) as f64 * 0.2);
        let class_of = |row: usize| row % classes;
        let machines: Vec<Machine> = pairs(classes)
            .iter()
            .map(|&(i, j)| {
                let support: Vec<usize> =
                    (0..20).filter(|r| [i, j].contains(&class_of(*r)) && r % 3 != 0).collect();
                let beta = support.iter().map(|r| (*r as f64 - 9.5) / 10.0).collect();
                Machine { support, beta, bias: i as f64 - 0.5 * j as f64 }
            })
            .collect();
        let ensemble = Ensemble::new(&machines, classes, class_of);
        assert!(ensemble.support.iter().all(|r| r % 3 != 0));
        let together = ensemble.outputs(&z, &z.select_rows(&ensemble.support));
        for (p, machine) in machines.iter().enumerate() {
            let beta = Matrix::from_rows(&[&machine.beta]).unwrap();
            let alone = expand(&z, &z.select_rows(&machine.support), &beta);
            for r in 0..20 {
                assert!((together[(r, p)] - alone[(r, 0)] - machine.bias).abs() < 1e-13);
            }
        }
    }
}
