//! What probabilities are worth: log loss, area under the ROC curve, calibration. `study/peers.py` computes the same
//! for other programs.

use serde::{Deserialize, Serialize};
use svml::{Dataset, Model, Result};

/// Number of bins of calibration.
const BINS: usize = 10;

/// Rows in which the most probable class has a probability in one tenth of the range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64, f64)", into = "(f64, f64, f64)")]
pub struct Bin {
    /// How many they are.
    pub rows: f64,
    /// The sum of these probabilities.
    pub given: f64,
    /// In how many of them that class is the right one.
    pub right: f64,
}

impl From<(f64, f64, f64)> for Bin {
    fn from((rows, given, right): (f64, f64, f64)) -> Self {
        Self { rows, given, right }
    }
}

impl From<Bin> for (f64, f64, f64) {
    fn from(bin: Bin) -> Self {
        (bin.rows, bin.given, bin.right)
    }
}

/// What was measured of the probabilities of test rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probabilities {
    /// Mean of -log p(class of the row), natural logarithm, with p at least 1e-15.
    pub log_loss: f64,
    /// Area under the ROC curve; of more than two classes the mean over those that occur, each against the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auc: Option<f64>,
    /// Rows by the probability of the most probable class.
    pub bins: Vec<Bin>,
}

impl Probabilities {
    /// Of the rows of `test`.
    pub fn of(model: &Model, test: &Dataset) -> Result<Self> {
        let p = model.probabilities(test.x())?;
        let place = |class: &String| model.classes().iter().position(|known| known == class);
        let places: Vec<Option<usize>> = test.classes().iter().map(place).collect();
        let of_row = |i: usize, class: usize| places[class].map_or(0.0, |place| p[(i, place)]);
        let n = test.rows();
        let loss = |i: usize| -of_row(i, test.y()[i]).max(1e-15).ln();
        let mut bins = vec![Bin::default(); BINS];
        for (i, row) in p.iter_rows().enumerate() {
            let (best, given) = row
                .iter()
                .enumerate()
                .fold((0, 0.0), |a, (c, p)| if *p > a.1 { (c, *p) } else { a });
            let bin = &mut bins[((given * BINS as f64) as usize).min(BINS - 1)];
            bin.rows += 1.0;
            bin.given += given;
            bin.right += f64::from(places[test.y()[i]] == Some(best));
        }
        // Probabilities close to one round to one another; decision values do not.
        let two = model.classes().len() == 2 && test.classes().len() == 2;
        let auc = if two {
            let h: Vec<f64> = model.decision(test.x())?.col(0).collect();
            let positive: Vec<bool> = test.y().iter().map(|y| places[*y] == Some(1)).collect();
            area(&h, &positive)
        } else {
            let areas: Vec<f64> = (0..test.classes().len())
                .filter_map(|class| {
                    let scores: Vec<f64> = (0..n).map(|i| of_row(i, class)).collect();
                    area(&scores, &test.y().iter().map(|y| *y == class).collect::<Vec<_>>())
                })
                .collect();
            (!areas.is_empty()).then(|| areas.iter().sum::<f64>() / areas.len() as f64)
        };
        Ok(Self { log_loss: (0..n).map(loss).sum::<f64>() / n as f64, auc, bins })
    }
}

/// Share of pairs of a positive and a negative row in which the positive one has the higher score, equal scores
/// counting half; none if there is no such pair.
fn area(scores: &[f64], positive: &[bool]) -> Option<f64> {
    let mut rows: Vec<(f64, bool)> = scores.iter().copied().zip(positive.iter().copied()).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut won) = (0.0, 0.0);
    for tied in rows.chunk_by(|a, b| a.0 == b.0) {
        let positives = tied.iter().filter(|(_, positive)| *positive).count() as f64;
        let negatives = tied.len() as f64 - positives;
        won += positives * (below + 0.5 * negatives);
        below += negatives;
    }
    let positives = rows.len() as f64 - below;
    (positives > 0.0 && below > 0.0).then(|| won / (positives * below))
}

/// Expected calibration error of the rows of several splits together: the mean over rows of the distance between the
/// mean probability and the share that is right, bin by bin.
pub fn calibration_error<'p>(of: impl Iterator<Item = &'p Probabilities>) -> f64 {
    let mut sums = [Bin::default(); BINS];
    for bins in of.map(|measured| &measured.bins) {
        for (sum, bin) in sums.iter_mut().zip(bins) {
            *sum = Bin {
                rows: sum.rows + bin.rows,
                given: sum.given + bin.given,
                right: sum.right + bin.right,
            };
        }
    }
    let rows: f64 = sums.iter().map(|bin| bin.rows).sum();
    sums.iter().map(|bin| (bin.given - bin.right).abs()).sum::<f64>() / rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use svml::{Generator, Method};

    #[test]
    fn the_area_counts_pairs() {
        let positive = [true, false, true, false];
        assert_eq!(area(&[0.9, 0.1, 0.4, 0.6], &positive), Some(0.75));
        assert_eq!(area(&[0.5; 4], &positive), Some(0.5));
        assert_eq!(area(&[1.0, 0.0, 1.0, 0.0], &positive), Some(1.0));
        assert_eq!(area(&[1.0, 2.0], &[true, true]), None);
    }

    #[test]
    fn probabilities_are_measured() {
        let data = Generator { rows: 80, ..Default::default() }.generate().unwrap().data;
        // The nearest neighbour of a training row is the row itself.
        let model = Model::fit(&data, Method::neighbours(1)).unwrap();
        let sure = Probabilities::of(&model, &data).unwrap();
        assert_eq!((sure.log_loss, sure.auc), (0.0, Some(1.0)));
        assert_eq!(sure.bins[9], Bin { rows: 80.0, given: 80.0, right: 80.0 });
        assert_eq!(calibration_error([&sure].into_iter()), 0.0);
        let grid: Method = "euclidean".parse().unwrap();
        let model = Model::fit(&data, grid).unwrap();
        let measured = Probabilities::of(&model, &data).unwrap();
        let labels: Vec<&str> = data.y().iter().map(|&c| data.classes()[c].as_str()).collect();
        let expected = model.measure(data.x(), &labels).unwrap();
        assert!((measured.log_loss - expected.log_loss.unwrap()).abs() < 1e-12);
        let wrong: f64 = measured.bins.iter().map(|bin| bin.rows - bin.right).sum();
        assert!((wrong / 80.0 - expected.error).abs() < 1e-12);
        let text = serde_json::to_string(&measured).unwrap();
        assert_eq!(serde_json::from_str::<Probabilities>(&text).unwrap(), measured);
    }

    /// By hand: 10 rows at 0.8 of which 6 are right, 10 at 0.5 of which all are.
    #[test]
    fn splits_are_pooled() {
        let bins = |at: usize, given: f64, right: f64| {
            let mut bins = vec![Bin::default(); BINS];
            bins[at] = Bin { rows: 10.0, given, right };
            Probabilities { log_loss: 0.0, auc: None, bins }
        };
        let parts = [bins(8, 8.0, 6.0), bins(5, 5.0, 10.0)];
        assert!((calibration_error(parts.iter()) - 0.35).abs() < 1e-15);
    }
}
