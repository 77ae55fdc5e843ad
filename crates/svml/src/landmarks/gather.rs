//! What has to be known of rows that lie as they were read before anything can be learned from them: what the columns
//! hold, and some rows themselves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::linalg::Matrix;

/// What the columns of some rows hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Columns {
    /// Rows of each part, in order.
    pub parts: Vec<usize>,
    /// Rows of each class.
    pub rows: Vec<u64>,
    /// Weight of each class.
    pub weight: Vec<f64>,
    /// Least value of each column, without missing ones.
    pub low: Vec<f64>,
    /// Largest value of each column, without missing ones.
    pub high: Vec<f64>,
    /// Of each column that holds codes the weight of each, by bits of the code.
    pub codes: Vec<BTreeMap<u64, f64>>,
}

impl Columns {
    /// What both hold.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self.rows.iter_mut().zip(other.rows).for_each(|(a, b)| *a += b);
        self.weight.iter_mut().zip(other.weight).for_each(|(a, b)| *a += b);
        self.low.iter_mut().zip(other.low).for_each(|(a, b)| *a = a.min(b));
        self.high.iter_mut().zip(other.high).for_each(|(a, b)| *a = a.max(b));
        for (codes, others) in self.codes.iter_mut().zip(other.codes) {
            others
                .into_iter()
                .for_each(|(code, weight)| *codes.entry(code).or_insert(0.0) += weight);
        }
        self
    }
}

/// Some rows, as they were read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// For each class the rows with the smallest keys, in the order of these.
    pub of_class: Vec<Vec<DrawnRow>>,
    /// How many of each class are wanted.
    pub count: Vec<usize>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrawnRow {
    /// Its key.
    pub key: u64,
    /// The part that it is of, and its place there.
    pub at: (usize, usize),
    /// Its weight.
    pub weight: f64,
    /// Its values.
    pub values: Vec<f64>,
}

impl Drawn {
    /// Those with the smallest keys of both.
    #[must_use]
    pub fn merged(mut self, other: Self) -> Self {
        for ((rows, others), &count) in
            self.of_class.iter_mut().zip(other.of_class).zip(&self.count)
        {
            rows.extend(others);
            rows.sort_by_key(|row| (row.key, row.at));
            rows.truncate(count);
        }
        self
    }
}

impl Part<'_> {
    /// What the columns hold.
    pub(super) fn columns(&self) -> Columns {
        let classes = self.starts.len() - 1;
        let d = self.x.cols();
        let mut columns = Columns {
            parts: vec![self.extent],
            rows: (0..classes).map(|class| self.places_of(class).len() as u64).collect(),
            weight: (0..classes).map(|c| self.weight[self.places_of(c)].iter().sum()).collect(),
            low: vec![f64::INFINITY; d],
            high: vec![f64::NEG_INFINITY; d],
            codes: vec![BTreeMap::new(); d],
        };
        for (&row, weight) in self.order.iter().zip(&self.weight) {
            let of_column = columns.low.iter_mut().zip(&mut columns.high).zip(self.x.row(row));
            for (k, ((low, high), &value)) in of_column.enumerate() {
                if value.is_nan() {
                    continue;
                }
                (*low, *high) = (low.min(value), high.max(value));
                if self.coded.get(k) == Some(&true) {
                    *columns.codes[k].entry(value.to_bits()).or_insert(0.0) += weight;
                }
            }
        }
        columns
    }

    /// For each column the weight, the sum of values and the sum of their squares.
    pub(super) fn moments(&self, unit: &[f64], centre: &[f64], fill: &[f64]) -> Vec<Vec<f64>> {
        let d = self.x.cols();
        let mut sums = vec![vec![0.0; d]; 3];
        for (&row, weight) in self.order.iter().zip(&self.weight) {
            for (k, &value) in self.x.row(row).iter().enumerate() {
                let value = if value.is_nan() { fill[k] } else { value };
                if !value.is_nan() {
                    let value = value / unit[k] - centre[k];
                    sums[0][k] += weight;
                    sums[1][k] += weight * value;
                    sums[2][k] += weight * value * value;
                }
            }
        }
        sums
    }

    /// The rows with the smallest keys, of those with keys of at most `largest`.
    pub(super) fn draw(&self, count: &[usize], largest: &[u64], seed: u64) -> Drawn {
        let of_class = |class: usize| {
            let rows = &self.order[self.places_of(class)];
            let weights = &self.weight[self.places_of(class)];
            let mut keys: Vec<(u64, usize)> = (rows.iter().enumerate())
                .map(|(at, &row)| (self.key(row, seed), at))
                .filter(|(key, _)| largest.get(class).is_none_or(|largest| key <= largest))
                .collect();
            let wanted = count[class].min(keys.len());
            if wanted > 0 && wanted < keys.len() {
                keys.select_nth_unstable(wanted - 1);
            }
            keys.truncate(wanted);
            keys.sort_unstable();
            let row = |(key, at): (u64, usize)| DrawnRow {
                key,
                at: (self.number, rows[at] - self.first),
                weight: weights[at],
                values: self.x.row(rows[at]).to_vec(),
            };
            keys.into_iter().map(row).collect()
        };
        Drawn { of_class: (0..count.len()).map(of_class).collect(), count: count.to_vec() }
    }
}

/// Rows as a matrix. // (rows, d)
pub fn matrix_of<'r>(rows: impl Iterator<Item = &'r DrawnRow>, d: usize) -> Matrix {
    let values: Vec<f64> = rows.flat_map(|row| row.values.iter().copied()).collect();
    Matrix::new(values.len() / d.max(1), d, values).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;

    /// Six rows of two classes, with gaps and a column of codes; one has no weight.
    fn part(x: &Matrix) -> Part<'_> {
        let x = std::borrow::Cow::Borrowed(x);
        let weight = [1.0, 2.0, 0.5, 0.0, 1.5, 1.0];
        Part::of_rows(x, (0, 0), &[0, 1, 0, 1, 0, 0], &weight, 2, &[false, true])
    }

    fn rows() -> Matrix {
        Matrix::from_rows(&[
            [1.0, 2.0],
            [NAN, 0.0],
            [3.0, 2.0],
            [99.0, 9.0],
            [-1.0, NAN],
            [2.0, 0.0],
        ])
        .unwrap()
    }

    #[test]
    fn columns_are_known_without_their_gaps() {
        let x = rows();
        let columns = part(&x).columns();
        assert_eq!((columns.rows, columns.weight), (vec![4, 1], vec![4.0, 2.0]));
        assert_eq!((columns.low, columns.high), (vec![-1.0, 0.0], vec![3.0, 2.0]));
        assert!(columns.codes[0].is_empty());
        let weight = |code: f64| columns.codes[1].get(&code.to_bits()).copied();
        assert_eq!([0.0, 2.0, 9.0].map(weight), [Some(3.0), Some(1.5), None]);
    }

    /// A gap counts as what it is filled with, or not at all where nothing fills it.
    #[test]
    fn moments_with_gaps_that_are_filled_or_not() {
        let x = rows();
        let sums = part(&x).moments(&[2.0, 1.0], &[0.5, 0.0], &[NAN, 4.0]);
        // Column 0 in units of 2 from 0.5: 0 (weight 1), 1 (0.5), -1 (1.5), 0.5 (1). Column 1: 2, 0, 2, 4 and 0.
        assert_eq!(sums[0], [4.0, 6.0]);
        assert_eq!(sums[1], [0.5 - 1.5 + 0.5, 2.0 + 1.0 + 6.0]);
        assert_eq!(sums[2], [0.5 + 1.5 + 0.25, 4.0 + 2.0 + 24.0]);
    }

    /// The rows with the smallest keys: two of four are the first two of all, and none or too many are no trouble.
    #[test]
    fn rows_are_drawn_by_their_keys() {
        let x = rows();
        let part = part(&x);
        let all = part.draw(&[9, 9], &[], 5).of_class;
        assert_eq!((all[0].len(), all[1].len()), (4, 1));
        assert!(all[0].windows(2).all(|two| two[0].key < two[1].key));
        let places = |rows: &[DrawnRow]| rows.iter().map(|row| row.at).collect::<Vec<_>>();
        let some = part.draw(&[2, 0], &[], 5).of_class;
        assert_eq!(places(&some[0]), places(&all[0][..2]));
        assert!(some[1].is_empty());
        let below = part.draw(&[9, 9], &[all[0][1].key, 0], 5).of_class;
        assert_eq!(places(&below[0]), places(&all[0][..2]));
        for drawn in &all[0] {
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&drawn.values), bits(x.row(drawn.at.1)));
        }
    }
}
