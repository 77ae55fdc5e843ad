//! Calibration of the probabilities: whether events that are given a probability of p happen in a share p of the
//! cases.

use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::{Model, Ranked, bin_of, bins_of, wilson};

/// Parts of the range of probabilities in which rows are counted.
const PARTS: usize = 10;

/// Rows whose probabilities are next to each other.
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
///
/// The bins have the same number of rows: ten bins, or as many as there can be of 20 rows each. Bins of the same width
/// would leave some of them to one or two rows, whose shares say nothing. Rows of equal probability are in one bin.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reliability {
    /// What the probability is of, such as "predicted probability of malignant".
    pub event: String,
    /// The bins, by ascending probability.
    pub bins: Vec<Bin>,
    /// Number of rows in each of ten equal parts of the range from 0 to 1.
    pub counts: Vec<usize>,
    /// The expected calibration error: mean over the rows of how far the share of their bin is from its mean
    /// probability.
    pub calibration_error: f64,
    /// Number of rows.
    pub rows: usize,
}

impl Reliability {
    /// Compares probabilities with labels: of the second class if there are two, otherwise of the class
    /// that is predicted. Rows that the model was trained on make any model look well calibrated; use others.
    pub fn new<L: AsRef<str>>(model: &Model, x: &Matrix, labels: &[L]) -> Result<Self> {
        match model.classes() {
            [_, second] => Self::of_class(model, x, labels, second),
            classes => {
                let p = model.probabilities(x)?;
                let predicted = model.predict(x)?;
                check(x, labels.len())?;
                let given = labels.iter().zip(predicted).enumerate();
                let given = given
                    .map(|(row, (label, c))| (p[(row, c)], label.as_ref() == classes[c]))
                    .collect();
                Ok(Self::of("predicted probability of the predicted class", given))
            }
        }
    }

    /// As [`Reliability::new`], of the probability of a class by its name.
    pub fn of_class<L: AsRef<str>>(
        model: &Model,
        x: &Matrix,
        labels: &[L],
        class: &str,
    ) -> Result<Self> {
        let place = super::place(model, class)?;
        let p = model.probabilities(x)?;
        check(x, labels.len())?;
        let of = |(row, label): (usize, &L)| (p[(row, place)], label.as_ref() == class);
        let given = labels.iter().enumerate().map(of).collect();
        Ok(Self::of(&format!("predicted probability of {class}"), given))
    }

    /// From the probability of an event and whether it happened.
    fn of(event: &str, given: Vec<(f64, bool)>) -> Self {
        let rows = given.len();
        let mut counts = vec![0; PARTS];
        given.iter().for_each(|(p, _)| counts[((p * PARTS as f64) as usize).min(PARTS - 1)] += 1);
        // Number of rows, sum of probabilities and how often it happened; from the least probability on.
        let mut sums = vec![(0, 0.0, 0.0); bins_of(rows)];
        let against: Vec<f64> = given.iter().map(|(p, _)| -p).collect();
        let mut before = [0, 0];
        for (row, until) in Ranked::new(&against, |row| given[row].1).steps() {
            let [happened, not] = [until[0] - before[0], until[1] - before[1]];
            let here = happened + not;
            let bin = &mut sums[bin_of((before[0] + before[1]) as u64, here as u64, rows)];
            bin.0 += here;
            bin.1 += here as f64 * given[row].0;
            bin.2 += happened as f64;
            before = until;
        }
        let bins: Vec<Bin> = (sums.iter().filter(|(rows, ..)| *rows > 0))
            .map(|&(rows, predicted, happened)| {
                let n = rows as f64;
                let observed = happened / n;
                Bin { rows, predicted: predicted / n, observed, interval: wilson(observed, n) }
            })
            .collect();
        let apart = |bin: &Bin| bin.rows as f64 * (bin.observed - bin.predicted).abs();
        let calibration_error = bins.iter().map(apart).sum::<f64>() / rows.max(1) as f64;
        Self { event: event.to_owned(), bins, counts, calibration_error, rows }
    }
}

fn check(x: &Matrix, labels: usize) -> Result<()> {
    match labels == x.rows() {
        true => Ok(()),
        false => {
            let what = "labels, one for each row".to_owned();
            Err(Error::Shape { what, found: labels, expected: x.rows() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Generator};
    use crate::method::Method;
    use crate::svml::Svml;

    fn labels(data: &Dataset) -> Vec<&str> {
        data.y().iter().map(|&c| data.classes()[c].as_str()).collect()
    }

    /// With one neighbour, the row itself, probabilities are 0 or 1 and always right.
    #[test]
    fn rows_of_equal_probability_are_in_one_bin() {
        let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
        let model = Model::fit(&data, Method::neighbours(1)).unwrap();
        let labels = labels(&data);
        let reliability = Reliability::new(&model, data.x(), &labels).unwrap();
        assert_eq!((reliability.counts.len(), reliability.counts.iter().sum::<usize>()), (10, 60));
        assert_eq!(reliability.bins.len(), 2);
        let ends: Vec<_> = reliability.bins.iter().map(|b| (b.predicted, b.observed)).collect();
        assert_eq!(ends, [(0.0, 0.0), (1.0, 1.0)]);
        assert_eq!(reliability.calibration_error, 0.0);
        assert!(Reliability::new(&model, data.x(), &labels[1..]).is_err());
        assert!(Reliability::new(&model, &data.x().select_rows(&[]), &[] as &[&str]).is_ok());
    }

    #[test]
    fn bins_have_equal_counts_and_the_shares_of_their_rows() {
        let data = Generator { rows: 230, ..Default::default() }.generate().unwrap().data;
        let model = Model::fit(&data, Svml { cross_fit: false, ..Svml::default() }).unwrap();
        let labels = labels(&data);
        let found = Reliability::new(&model, data.x(), &labels).unwrap();
        assert_eq!(found.event, "predicted probability of outside");
        let p: Vec<f64> = model.probabilities(data.x()).unwrap().col(1).collect();
        let mut order: Vec<usize> = (0..230).collect();
        order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
        assert_eq!(found.bins.iter().map(|bin| bin.rows).collect::<Vec<_>>(), [23; 10]);
        for (bin, rows) in found.bins.iter().zip(order.chunks(23)) {
            let observed = rows.iter().filter(|&&i| data.y()[i] == 1).count() as f64 / 23.0;
            let predicted = rows.iter().map(|&i| p[i]).sum::<f64>() / 23.0;
            assert!((bin.observed - observed).abs() < 1e-12, "{bin:?}");
            assert!((bin.predicted - predicted).abs() < 1e-12, "{bin:?}");
            assert!(bin.interval[0] <= observed && observed <= bin.interval[1]);
        }
        // Of the other class it is the mirror image.
        let other = Reliability::of_class(&model, data.x(), &labels, "inside").unwrap();
        assert!((other.calibration_error - found.calibration_error).abs() < 1e-12);
        assert!((other.bins[0].observed + found.bins[9].observed - 1.0).abs() < 1e-12);
        let unknown = Reliability::of_class(&model, data.x(), &labels, "left").unwrap_err();
        assert!(unknown.to_string().contains("inside, outside"), "{unknown}");
    }

    /// The calibration error of `Measures` is of the predicted class, which with several classes is the default here.
    #[test]
    fn the_calibration_error_is_that_of_the_measures() {
        let generator = Generator { rows: 330, classes: 3, ..Default::default() };
        let data = generator.generate().unwrap().data;
        let model = Model::fit(&data, Svml { cross_fit: false, ..Svml::default() }).unwrap();
        let found = Reliability::new(&model, data.x(), &labels(&data)).unwrap();
        let measures = model.measure(data.x(), &labels(&data)).unwrap();
        assert!((found.calibration_error - measures.calibration_error.unwrap()).abs() < 1e-12);
    }
}
