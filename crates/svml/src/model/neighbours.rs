//! The exact k-nearest-neighbour classifier under a metric, equation (6).
//!
//! The k nearest training rows vote, each with its weight. Weights count as repetition: rows are
//! taken from the nearest on until their weights add up to k, and the last enters with what is left of
//! k only. Rows at the same last distance share what is left in proportion to their weights, so that no
//! order of rows matters. Of classes with equal votes the one with the nearest row wins, of these the
//! first. All rows of weight 1 and no equal distances make this the usual rule.
//!
//! Distances are computed from differences of coordinates, a tile of rows at a time: equal rows have
//! distance zero, and no matrix of all distances exists.

use crate::error::{Error, Result};
use crate::linalg::{self, Matrix};
use crate::parallel;

/// Training rows that vote.
#[derive(Clone, Debug, PartialEq)]
pub struct NearestNeighbours {
    /// Mapped rows as columns. // (rank, n)
    points: Matrix,
    class: Vec<usize>,
    weight: Vec<f64>,
    classes: usize,
}

/// Training rows whose distances are looked at together.
const TILE: usize = 2048;

impl NearestNeighbours {
    /// From mapped rows with their classes, below `classes`, and positive weights. // z: (n, rank)
    pub fn new(z: &Matrix, class: &[usize], weight: &[f64], classes: usize) -> Result<Self> {
        for (what, found) in [("classes", class.len()), ("weights", weight.len())] {
            if found != z.rows() {
                let what = format!("{what} of the rows that vote");
                return Err(Error::Shape { what, found, expected: z.rows() });
            }
        }
        if z.rows() == 0 {
            return Err(Error::NoRows(String::new()));
        }
        if let Some(&bad) = class.iter().find(|c| **c >= classes) {
            let bound = format!("below the number of classes, {classes}");
            return Err(Error::parameter("class", bad, bound));
        }
        if let Some(bad) = weight.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
            return Err(Error::parameter("weight", bad, "positive and finite"));
        }
        let (class, weight) = (class.to_vec(), weight.to_vec());
        Ok(Self { points: z.transpose(), class, weight, classes })
    }

    /// The class of each mapped row by the vote of its `k` nearest. // z: (m, rank)
    pub fn classify(&self, z: &Matrix, k: usize) -> Vec<usize> {
        parallel::map(z.iter_rows(), |z| self.vote(z, k, None))
    }

    /// The class of each row by the vote of the `k` nearest others. // z: (n, rank)
    pub fn classify_left_out(&self, k: usize) -> Vec<usize> {
        let z = self.points.transpose();
        parallel::map(0..z.rows(), |i| self.vote(z.row(i), k, Some(i)))
    }

    fn vote(&self, z: &[f64], k: usize, without: Option<usize>) -> usize {
        self.votes(z, k, without).1
    }

    /// The share of the votes of each class; that of the class which wins is the largest.
    fn shares(&self, z: &[f64], k: usize) -> Vec<f64> {
        let (votes, winner) = self.votes(z, k, None);
        let total: f64 = votes.iter().sum();
        let mut shares: Vec<f64> = votes.iter().map(|votes| votes / total).collect();
        let top = shares.iter().copied().fold(0.0, f64::max);
        if shares.iter().position(|share| *share == top) != Some(winner) {
            shares[winner] = top.next_up();
        }
        shares
    }

    /// The votes for each class, and the class that wins.
    fn votes(&self, z: &[f64], k: usize, without: Option<usize>) -> (Vec<f64>, usize) {
        let near = self.nearest(z, k as f64, without);
        let (mut votes, mut first) = (vec![0.0; self.classes], vec![f64::INFINITY; self.classes]);
        let mut left = k as f64;
        for tied in near.chunk_by(|a, b| a.0 == b.0) {
            let total: f64 = tied.iter().map(|(_, j)| self.weight[*j]).sum();
            let share = (left / total).min(1.0);
            for &(sq, j) in tied {
                votes[self.class[j]] += share * self.weight[j];
                first[self.class[j]] = first[self.class[j]].min(sq);
            }
            left -= total;
            if left <= 0.0 {
                break;
            }
        }
        let winner = (1..self.classes).fold(0, |best, c| {
            let ahead = votes[c] > votes[best] || votes[c] == votes[best] && first[c] < first[best];
            if ahead { c } else { best }
        });
        (votes, winner)
    }

    /// Rows in order of distance, at least until their weights reach `k` and with all that are tied
    /// with the last of these.
    fn nearest(&self, z: &[f64], k: f64, without: Option<usize>) -> Vec<(f64, usize)> {
        let n = self.class.len();
        let mut near: Vec<(f64, usize)> = Vec::new();
        // Rows further than this are not needed; it falls with every tile.
        let mut reach = f64::INFINITY;
        let mut sq = vec![0.0; TILE.min(n)];
        for start in (0..n).step_by(TILE) {
            let sq = &mut sq[..TILE.min(n - start)];
            linalg::sq_dists(sq, z, &self.points, start);
            let within = sq.iter().enumerate().filter(|(_, sq)| **sq <= reach);
            let within = within.map(|(j, sq)| (*sq, start + j));
            near.extend(within.filter(|(_, j)| Some(*j) != without));
            near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let mut total = 0.0;
            let enough = near.iter().position(|(_, j)| {
                total += self.weight[*j];
                total >= k
            });
            if let Some(last) = enough {
                reach = near[last].0;
                let keep = near.partition_point(|(sq, _)| *sq <= reach);
                near.truncate(keep);
            }
        }
        near
    }
}

/// The k-nearest-neighbour classifier of a model.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Neighbours {
    /// How many vote.
    pub k: usize,
    /// Rows of the training data, class after class.
    pub rows: Vec<usize>,
    /// Number of rows of each class.
    pub counts: Vec<usize>,
    /// Weight of each row.
    pub weight: Vec<f64>,
    /// The rows, encoded, with missing values filled, not scaled. // (n, d)
    pub x: Matrix,
    index: NearestNeighbours,
}

impl Neighbours {
    /// From rows class after class; `mapped` are these rows mapped by the metric.
    pub fn new(
        k: usize,
        rows: Vec<usize>,
        counts: Vec<usize>,
        weight: Vec<f64>,
        x: Matrix,
        mapped: &Matrix,
    ) -> Result<Self> {
        let class: Vec<usize> = (counts.iter().enumerate())
            .flat_map(|(class, &count)| std::iter::repeat_n(class, count))
            .collect();
        let index = NearestNeighbours::new(mapped, &class, &weight, counts.len())?;
        Ok(Self { k, rows, counts, weight, x, index })
    }

    /// Share of the votes of each class, for mapped rows. The largest, the first of equals, is the class that
    /// wins the vote: where votes are equal its share is larger by the last digit. // (rows, classes)
    pub fn votes(&self, z: &Matrix) -> Matrix {
        let classes = self.counts.len();
        let all = parallel::map(z.iter_rows(), |z| self.index.shares(z, self.k));
        Matrix::from_fn(z.rows(), classes, |i, c| all[i][c])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(places: &[f64]) -> Matrix {
        Matrix::new(places.len(), 1, places.to_vec()).unwrap()
    }

    #[test]
    fn the_usual_rule() {
        let z = line(&[0.0, 1.0, 2.5, 4.5, 7.0]);
        let neighbours = NearestNeighbours::new(&z, &[0, 0, 1, 1, 1], &[1.0; 5], 2).unwrap();
        assert_eq!(neighbours.classify(&line(&[0.4, 2.0, 6.0]), 1), [0, 1, 1]);
        assert_eq!(neighbours.classify(&line(&[0.4, 2.0, 6.0]), 3), [0, 0, 1]);
        // More neighbours than rows: all vote.
        assert_eq!(neighbours.classify(&line(&[-9.0]), 99), [1]);
        assert_eq!(neighbours.classify_left_out(1), [0, 0, 0, 1, 1]);
    }

    #[test]
    fn a_weight_is_repetition() {
        let once = NearestNeighbours::new(&line(&[0.0, 1.0, 3.0]), &[0, 1, 0], &[1.0, 2.0, 1.0], 2)
            .unwrap();
        let twice =
            NearestNeighbours::new(&line(&[0.0, 1.0, 1.0, 3.0]), &[0, 1, 1, 0], &[1.0; 4], 2)
                .unwrap();
        let asked = line(&[-5.0, 0.1, 0.4, 0.6, 1.9, 2.1, 9.0]);
        for k in 1..=4 {
            assert_eq!(once.classify(&asked, k), twice.classify(&asked, k), "k = {k}");
        }
    }

    #[test]
    fn ties_do_not_depend_on_the_order_of_rows() {
        // At 0 the rows at -1 (class 0) and at 1 (class 1) are equally far; the vote is equal, the
        // nearest rows too, so that the first class wins; a heavier row breaks the tie.
        let asked = line(&[0.0]);
        for (places, class) in [([-1.0, 1.0], [0, 1]), ([1.0, -1.0], [1, 0])] {
            let neighbours = NearestNeighbours::new(&line(&places), &class, &[1.0; 2], 2).unwrap();
            assert_eq!(neighbours.classify(&asked, 1), [0]);
            let heavy: Vec<f64> = class.iter().map(|c| 1.0 + *c as f64).collect();
            let neighbours = NearestNeighbours::new(&line(&places), &class, &heavy, 2).unwrap();
            assert_eq!(neighbours.classify(&asked, 1), [1]);
        }
        // Equal votes: the class of the nearest row.
        let neighbours = NearestNeighbours::new(&line(&[2.0, 1.0]), &[0, 1], &[1.0; 2], 2).unwrap();
        assert_eq!(neighbours.classify(&asked, 2), [1]);
    }

    #[test]
    fn bad_neighbours_are_refused() {
        assert!(NearestNeighbours::new(&Matrix::zeros(0, 1), &[], &[], 2).is_err());
        assert!(NearestNeighbours::new(&line(&[0.0]), &[2], &[1.0], 2).is_err());
        assert!(NearestNeighbours::new(&line(&[0.0]), &[0], &[0.0], 2).is_err());
        assert!(NearestNeighbours::new(&line(&[0.0]), &[0, 1], &[1.0], 2).is_err());
    }
}
