//! Calibration of the probabilities: whether events that are given a probability of p happen in a share p of the
//! cases.

use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::Model;

/// Number of bins.
const BINS: usize = 10;

/// Rows whose probability lies in one bin.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Bin {
    /// Number of rows.
    pub rows: usize,
    /// Mean of the probabilities given.
    pub predicted: f64,
    /// Share of rows in which the event happened.
    pub observed: f64,
    /// Wilson's interval of that share, 95 percent.
    pub interval: [f64; 2],
}

/// Calibration of the probabilities of a model, bin by bin.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reliability {
    /// What the probability is of.
    pub event: String,
    /// The bins from 0 to 1, all of the same width; those without rows are absent.
    pub bins: Vec<Bin>,
    /// Number of rows in each bin, empty ones too.
    pub counts: Vec<usize>,
}

impl Reliability {
    /// Compares probabilities with labels: of the second class if there are two, else of the class
    /// that is predicted.
    pub fn new<L: AsRef<str>>(model: &Model, x: &Matrix, labels: &[L]) -> Result<Self> {
        if labels.len() != x.rows() {
            return Err(Error::Shape {
                what: "labels, one for each row".to_owned(),
                found: labels.len(),
                expected: x.rows(),
            });
        }
        let (p, predicted) = (model.probabilities(x)?, model.predict(x)?);
        let classes = model.classes();
        let two = classes.len() == 2;
        let event = if two {
            format!("class {}", classes[1])
        } else {
            "the predicted class is right".to_owned()
        };
        let given: Vec<(f64, bool)> = (labels.iter().zip(predicted).enumerate())
            .map(|(row, (label, predicted))| {
                let class = if two { 1 } else { predicted };
                (p[(row, class)], label.as_ref() == classes[class])
            })
            .collect();
        let bin_of = |p: f64| ((p * BINS as f64) as usize).min(BINS - 1);
        let members: Vec<Vec<(f64, bool)>> = (0..BINS)
            .map(|bin| given.iter().copied().filter(|(p, _)| bin_of(*p) == bin).collect())
            .collect();
        let counts = members.iter().map(Vec::len).collect();
        let bins = members
            .iter()
            .filter(|rows| !rows.is_empty())
            .map(|rows| {
                let n = rows.len() as f64;
                let happened = rows.iter().filter(|(_, happened)| *happened).count() as f64;
                Bin {
                    rows: rows.len(),
                    predicted: rows.iter().map(|(p, _)| p).sum::<f64>() / n,
                    observed: happened / n,
                    interval: wilson(happened, n),
                }
            })
            .collect();
        Ok(Self { event, bins, counts })
    }
}

/// Wilson's interval for `successes` of `n`, at 95 percent.
fn wilson(successes: f64, n: f64) -> [f64; 2] {
    let z = 1.959_964;
    let share = successes / n;
    let scale = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / scale;
    let half = z / scale * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [(centre - half).max(0.0), (centre + half).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;
    use crate::method::Method;

    /// Expected: the standard formula by hand for 8 of 10 (0.4902, 0.9433).
    #[test]
    fn wilsons_interval() {
        let [low, high] = wilson(8.0, 10.0);
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4);
        assert!(wilson(0.0, 5.0)[0] < 1e-15);
    }

    /// With one neighbour, the row itself, probabilities are 0 or 1 and always right.
    #[test]
    fn bins_hold_all_rows_and_their_shares() {
        let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
        let model = Model::fit(&data, Method::neighbours(1)).unwrap();
        let labels: Vec<&str> = data.y().iter().map(|&c| data.classes()[c].as_str()).collect();
        let reliability = Reliability::new(&model, data.x(), &labels).unwrap();
        assert_eq!((reliability.counts.len(), reliability.counts.iter().sum::<usize>()), (10, 60));
        assert_eq!(reliability.bins.len(), 2);
        let ends: Vec<_> = reliability.bins.iter().map(|b| (b.predicted, b.observed)).collect();
        assert_eq!(ends, [(0.0, 0.0), (1.0, 1.0)]);
        assert!(Reliability::new(&model, data.x(), &labels[1..]).is_err());
    }
}
