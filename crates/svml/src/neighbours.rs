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

use rayon::prelude::*;

use crate::data::{Dataset, Scaler};
use crate::error::{Error, Result};
use crate::learn::{Control, Learner, Outcome, Rival};
use crate::linalg::{self, Matrix};
use crate::metric::{Form, Metric};
use crate::params::ClassWeight;
use crate::train::Prepared;

/// Training rows that vote.
#[derive(Clone, Debug)]
pub struct Voters {
    /// Mapped rows as columns. // (rank, n)
    points: Matrix,
    class: Vec<usize>,
    weight: Vec<f64>,
    classes: usize,
}

/// Training rows whose distances are looked at together.
const TILE: usize = 2048;

impl Voters {
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
            return Err(Error::Parameter {
                name: "class",
                value: bad.to_string(),
                bound: format!("below the number of classes, {classes}"),
            });
        }
        if let Some(bad) = weight.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
            return Err(Error::Parameter {
                name: "weight",
                value: bad.to_string(),
                bound: "positive and finite".to_owned(),
            });
        }
        let (class, weight) = (class.to_vec(), weight.to_vec());
        Ok(Self { points: z.transpose(), class, weight, classes })
    }

    /// The class of each mapped row by the vote of its `k` nearest. // z: (m, rank)
    pub fn classify(&self, z: &Matrix, k: usize) -> Vec<usize> {
        (0..z.rows()).into_par_iter().map(|i| self.vote(z.row(i), k, None)).collect()
    }

    /// The class of each voter by the vote of the `k` nearest others. // z: (n, rank)
    pub fn classify_left_out(&self, k: usize) -> Vec<usize> {
        let z = self.points.transpose();
        (0..z.rows()).into_par_iter().map(|i| self.vote(z.row(i), k, Some(i))).collect()
    }

    fn vote(&self, z: &[f64], k: usize, without: Option<usize>) -> usize {
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
        (1..self.classes).fold(0, |best, c| {
            let ahead = votes[c] > votes[best] || votes[c] == votes[best] && first[c] < first[best];
            if ahead { c } else { best }
        })
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

/// A k-nearest-neighbour classifier on standardised columns.
#[derive(Clone, Debug)]
pub struct Neighbours {
    classes: Vec<String>,
    scaler: Scaler,
    metric: Metric,
    voters: Voters,
    k: usize,
    outcome: Option<Outcome>,
}

impl Neighbours {
    /// Standardises the columns, learns a metric with `learner` (none: the Euclidean one) and keeps the
    /// rows as voters.
    ///
    /// ```
    /// use svml::learn::Lmnn;
    /// use svml::neighbours::Neighbours;
    /// use svml::Generator;
    ///
    /// let train = Generator::default().generate()?.data;
    /// let test = Generator { seed: 1, ..Generator::default() }.generate()?.data;
    /// let plain = Neighbours::fit(&train, None, 3)?;
    /// let learned = Neighbours::fit(&train, Some(&Lmnn::default().into()), 3)?;
    /// assert!(learned.error(&test)? < plain.error(&test)?);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit(data: &Dataset, learner: Option<&Rival>, k: usize) -> Result<Self> {
        if k == 0 {
            return Err(Error::Parameter {
                name: "k",
                value: k.to_string(),
                bound: "at least 1".to_owned(),
            });
        }
        let prepared = Prepared::new(data, &ClassWeight::None, 0)?;
        let sample = prepared.sample();
        let mut control = Control::default();
        let watch = control.watch();
        let outcome = match learner {
            Some(learner) => Some(learner.learn(&sample, &mut control, &watch)?),
            None => None,
        };
        let metric = match &outcome {
            Some(outcome) => outcome.metric.clone(),
            None => Metric::isotropic(Form::Sphere, data.columns(), 1.0)?,
        };
        let z = metric.transform(sample.x);
        let voters = Voters::new(&z, sample.class, sample.weight, sample.classes)?;
        let Prepared { classes, scaler, .. } = prepared;
        Ok(Self { classes, scaler, metric, voters, k, outcome })
    }

    /// The class of each row of encoded features, as an index into [`Neighbours::classes`].
    pub fn predict(&self, x: &Matrix) -> Result<Vec<usize>> {
        if x.cols() != self.metric.features() {
            return Err(Error::Shape {
                what: "columns of the rows to predict".to_owned(),
                found: x.cols(),
                expected: self.metric.features(),
            });
        }
        Ok(self.voters.classify(&self.metric.transform(&self.scaler.apply(x)), self.k))
    }

    /// Share of rows of `data` that are misclassified, by weight; classes are compared by name.
    pub fn error(&self, data: &Dataset) -> Result<f64> {
        let predicted = self.predict(data.x())?;
        let wrong: f64 = (predicted.iter().zip(data.y()).zip(data.weights()))
            .filter(|((p, y), _)| self.classes[**p] != data.classes()[**y])
            .map(|(_, weight)| weight)
            .sum();
        Ok(wrong / data.weights().iter().sum::<f64>().max(f64::MIN_POSITIVE))
    }

    /// The classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The metric on standardised features.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// How learning the metric went, where one was learned.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
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
        let voters = Voters::new(&z, &[0, 0, 1, 1, 1], &[1.0; 5], 2).unwrap();
        assert_eq!(voters.classify(&line(&[0.4, 2.0, 6.0]), 1), [0, 1, 1]);
        assert_eq!(voters.classify(&line(&[0.4, 2.0, 6.0]), 3), [0, 0, 1]);
        // More neighbours than rows: all vote.
        assert_eq!(voters.classify(&line(&[-9.0]), 99), [1]);
        assert_eq!(voters.classify_left_out(1), [0, 0, 0, 1, 1]);
    }

    #[test]
    fn a_weight_is_repetition() {
        let once = Voters::new(&line(&[0.0, 1.0, 3.0]), &[0, 1, 0], &[1.0, 2.0, 1.0], 2).unwrap();
        let twice = Voters::new(&line(&[0.0, 1.0, 1.0, 3.0]), &[0, 1, 1, 0], &[1.0; 4], 2).unwrap();
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
            let voters = Voters::new(&line(&places), &class, &[1.0; 2], 2).unwrap();
            assert_eq!(voters.classify(&asked, 1), [0]);
            let heavy: Vec<f64> = class.iter().map(|c| 1.0 + *c as f64).collect();
            let voters = Voters::new(&line(&places), &class, &heavy, 2).unwrap();
            assert_eq!(voters.classify(&asked, 1), [1]);
        }
        // Equal votes: the class of the nearest row.
        let voters = Voters::new(&line(&[2.0, 1.0]), &[0, 1], &[1.0; 2], 2).unwrap();
        assert_eq!(voters.classify(&asked, 2), [1]);
    }

    #[test]
    fn bad_voters_are_refused() {
        assert!(Voters::new(&Matrix::zeros(0, 1), &[], &[], 2).is_err());
        assert!(Voters::new(&line(&[0.0]), &[2], &[1.0], 2).is_err());
        assert!(Voters::new(&line(&[0.0]), &[0], &[0.0], 2).is_err());
        assert!(Voters::new(&line(&[0.0]), &[0, 1], &[1.0], 2).is_err());
    }
}
