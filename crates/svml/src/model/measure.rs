//! How well a model does on labelled rows: error, balanced error, confusion matrix, log loss.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Model;
use crate::error::{Error, Result};
use crate::linalg::Matrix;

/// Probabilities below this count as this in the log loss, so that one row cannot make it infinite.
const SMALLEST: f64 = 1e-15;

/// Measures of a model on rows whose classes are known. Every row counts once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Measures {
    /// Number of rows.
    pub rows: usize,
    /// Share of rows whose predicted class is not their class.
    pub error: f64,
    /// Mean over the classes that occur of the share of their rows that are misclassified.
    pub balanced_error: f64,
    /// Mean of -log p(class of the row), natural logarithm, with p at least 1e-15. Absent for a model
    /// without probabilities.
    pub log_loss: Option<f64>,
    /// The classes of the model, then those that only the rows have.
    pub classes: Vec<String>,
    /// Number of rows of each class (first index) that were predicted as each class (second index).
    pub confusion: Vec<Vec<usize>>,
}

impl Model {
    /// Compares the predictions for the rows of `x` with their labels. A label that the model does not
    /// know counts as misclassified.
    ///
    /// ```
    /// use svml::{Generator, Model, Svml};
    ///
    /// let data = Generator::default().generate()?.data;
    /// let model = Model::fit(&data, Svml::default())?;
    /// let labels: Vec<&str> = data.y().iter().map(|&c| data.classes()[c].as_str()).collect();
    /// let measures = model.measure(data.x(), &labels)?;
    /// assert_eq!(measures.rows, 500);
    /// assert_eq!(measures.error, model.error_rate(&data)?);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn measure<L: AsRef<str>>(&self, x: &Matrix, labels: &[L]) -> Result<Measures> {
        if labels.len() != x.rows() {
            return Err(Error::Shape {
                what: "labels, one for each row".to_owned(),
                found: labels.len(),
                expected: x.rows(),
            });
        }
        if labels.is_empty() {
            return Err(Error::NoRows(" to measure".to_owned()));
        }
        let predicted = self.predict(x)?;
        // A model of the first file format has no probabilities.
        let probabilities = self.probabilities(x).ok();
        let known = self.classes().len();
        let others: BTreeSet<&str> =
            labels.iter().map(AsRef::as_ref).filter(|label| self.place(label).is_none()).collect();
        let mut classes = self.classes().to_vec();
        classes.extend(others.iter().map(|&label| label.to_owned()));
        let others: Vec<&str> = others.into_iter().collect();
        let mut confusion = vec![vec![0; classes.len()]; classes.len()];
        let mut loss = 0.0;
        for (row, (label, &p)) in labels.iter().zip(&predicted).enumerate() {
            let label = label.as_ref();
            let place = self.place(label);
            let class = place.unwrap_or_else(|| known + others.partition_point(|o| *o < label));
            confusion[class][p] += 1;
            let given = probabilities.as_ref().zip(place).map_or(0.0, |(all, c)| all[(row, c)]);
            loss -= given.max(SMALLEST).ln();
        }
        let rows = labels.len();
        let right: usize = (0..classes.len()).map(|c| confusion[c][c]).sum();
        let shares: Vec<f64> = (confusion.iter().enumerate())
            .map(|(c, counts)| (counts[c], counts.iter().sum::<usize>()))
            .filter(|(_, total)| *total > 0)
            .map(|(right, total)| (total - right) as f64 / total as f64)
            .collect();
        Ok(Measures {
            rows,
            error: (rows - right) as f64 / rows as f64,
            balanced_error: shares.iter().sum::<f64>() / shares.len() as f64,
            log_loss: probabilities.map(|_| loss / rows as f64),
            classes,
            confusion,
        })
    }

    fn place(&self, label: &str) -> Option<usize> {
        self.classes().iter().position(|class| class == label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;
    use crate::{Svml, data::Dataset};

    fn model() -> (Model, Dataset) {
        let data = Generator { rows: 120, ..Default::default() }.generate().unwrap().data;
        (Model::fit(&data, Svml::default()).unwrap(), data)
    }

    #[test]
    fn counts_add_up_and_agree_with_the_definition() {
        let (model, data) = model();
        let labels: Vec<&str> = data.y().iter().map(|&c| data.classes()[c].as_str()).collect();
        let measures = model.measure(data.x(), &labels).unwrap();
        let predicted = model.predict(data.x()).unwrap();
        let p = model.probabilities(data.x()).unwrap();
        assert_eq!(measures.confusion.iter().flatten().sum::<usize>(), 120);
        for (c, counts) in measures.confusion.iter().enumerate() {
            for (q, &count) in counts.iter().enumerate() {
                let direct = (0..120).filter(|&i| data.y()[i] == c && predicted[i] == q).count();
                assert_eq!(count, direct);
            }
        }
        let expected: f64 = (0..120).map(|i| -p[(i, data.y()[i])].ln()).sum::<f64>() / 120.0;
        assert!((measures.log_loss.unwrap() - expected).abs() < 1e-12);
        let per_class = |c: usize| {
            let rows: Vec<usize> = (0..120).filter(|&i| data.y()[i] == c).collect();
            rows.iter().filter(|&&i| predicted[i] != c).count() as f64 / rows.len() as f64
        };
        assert!((measures.balanced_error - (per_class(0) + per_class(1)) / 2.0).abs() < 1e-15);
    }

    #[test]
    fn a_class_that_the_model_does_not_know_is_wrong() {
        let (model, data) = model();
        let x = data.x().select_rows(&[0, 1, 2]);
        let measures = model.measure(&x, &["zebra", "apple", "zebra"]).unwrap();
        assert_eq!(measures.error, 1.0);
        assert_eq!(measures.balanced_error, 1.0);
        assert_eq!(measures.classes, ["inside", "outside", "apple", "zebra"]);
        assert_eq!(measures.confusion[3].iter().sum::<usize>(), 2);
        assert!((measures.log_loss.unwrap() + SMALLEST.ln()).abs() < 1e-9);
        assert!(model.measure(&x, &["a"]).is_err());
        assert!(model.measure(&x.select_rows(&[]), &[] as &[&str]).is_err());
    }
}
