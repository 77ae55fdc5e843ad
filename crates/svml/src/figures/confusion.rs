//! Which classes are taken for which.

use crate::error::Result;
use crate::linalg::Matrix;
use crate::model::{Measure, Measures, Model};

/// The confusion matrix: how many rows of each class were predicted as each class.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Confusion {
    /// The classes of the model, then those that only the rows have.
    pub classes: Vec<String>,
    /// Number of rows of each class (first index) that were predicted as each class (second index).
    pub counts: Vec<Vec<usize>>,
    /// The same as shares of the rows of the class; 0 for a class without rows.
    pub shares: Vec<Vec<f64>>,
    /// Share of rows whose predicted class is not their class.
    pub error: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// Number of rows.
    pub rows: usize,
}

impl Confusion {
    /// Compares the predictions for the rows of `x` with their labels.
    pub fn new<L: AsRef<str>>(model: &Model, x: &Matrix, labels: &[L]) -> Result<Self> {
        Ok(Self::of(&model.measure(x, labels)?))
    }

    /// The matrix that some measures are of.
    pub fn of(measures: &Measures) -> Self {
        let share = |counts: &Vec<usize>| {
            let rows = counts.iter().sum::<usize>().max(1) as f64;
            counts.iter().map(|&count| count as f64 / rows).collect()
        };
        Self {
            classes: measures.classes.clone(),
            shares: measures.confusion.iter().map(share).collect(),
            counts: measures.confusion.clone(),
            error: measures.error,
            interval: measures.intervals.get(&Measure::Error).copied().unwrap_or([0.0, 1.0]),
            rows: measures.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;
    use crate::method::Method;

    #[test]
    fn shares_are_of_the_rows_of_a_class() {
        let generator = Generator { rows: 90, classes: 3, ..Default::default() };
        let data = generator.generate().unwrap().data;
        let model = Model::fit(&data, Method::neighbours(9)).unwrap();
        let mut labels: Vec<&str> = data.y().iter().map(|&c| data.classes()[c].as_str()).collect();
        labels[0] = "elsewhere";
        let found = Confusion::new(&model, data.x(), &labels).unwrap();
        assert_eq!((found.classes.len(), found.rows), (4, 90));
        assert_eq!(found.classes[3], "elsewhere");
        let predicted = model.predict(data.x()).unwrap();
        for (c, shares) in found.shares.iter().enumerate() {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            for (p, &count) in found.counts[c].iter().enumerate() {
                let is = |&i: &usize| labels[i] == found.classes[c] && predicted[i] == p;
                assert_eq!(count, (0..90).filter(is).count());
            }
        }
        let right: usize = (0..4).map(|c| found.counts[c][c]).sum();
        assert!((found.error - (1.0 - right as f64 / 90.0)).abs() < 1e-12);
        assert!(found.interval[0] < found.error && found.error < found.interval[1]);
    }
}
