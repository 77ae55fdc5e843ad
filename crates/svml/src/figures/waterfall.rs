//! Why one row is classified as it is, column by column.

use crate::error::Result;
use crate::linalg::Matrix;
use crate::model::{Explanation, Model};

/// The way from the output of a model at a reference row to that at one row: what each column contributes, the largest
/// contributions first.
///
/// The base, all contributions and the rest add up to the output.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Waterfall {
    /// The columns that contribute most.
    pub columns: Vec<String>,
    /// What the row holds there, as text.
    pub values: Vec<String>,
    /// What they contribute.
    pub contributions: Vec<f64>,
    /// Number of the other columns.
    pub others: usize,
    /// What the other columns contribute together.
    pub rest: f64,
    /// The output at the reference row.
    pub base: f64,
    /// The output at the row.
    pub output: f64,
    /// The two classes: what is negative speaks for the first, what is positive for the second.
    pub between: [String; 2],
}

impl Waterfall {
    /// The waterfall of one row of encoded features, compared with a reference row or, without one, with the mean of the
    /// training rows; at most `most` columns are listed one by one.
    pub fn new(model: &Model, row: &[f64], reference: Option<&[f64]>, most: usize) -> Result<Self> {
        let x = Matrix::from_rows(&[row])?;
        Ok(Self::of(model, &x, &model.explain(&x, reference)?, 0, most))
    }

    /// The waterfall of one of the rows of `x` that have been explained, by its place among them.
    pub fn of(model: &Model, x: &Matrix, why: &Explanation, place: usize, most: usize) -> Self {
        let contributions = why.contributions.row(place);
        let values = model.schema().cells(x.row(place));
        let mut order: Vec<usize> = (0..contributions.len()).collect();
        order.sort_by(|&a, &b| contributions[b].abs().total_cmp(&contributions[a].abs()));
        let (listed, others) = order.split_at(most.min(order.len()));
        let class = |c: usize| model.classes()[c].clone();
        Self {
            columns: listed.iter().map(|&k| why.columns[k].clone()).collect(),
            values: listed.iter().map(|&k| values[k].clone()).collect(),
            contributions: listed.iter().map(|&k| contributions[k]).collect(),
            others: others.len(),
            rest: others.iter().map(|&k| contributions[k]).sum(),
            base: why.base[place],
            output: why.output[place],
            between: why.between[place].map(class),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;
    use crate::svml::Svml;

    #[test]
    fn the_largest_come_first_and_all_add_up() {
        let data = Generator { rows: 80, ..Generator::default() }.generate().unwrap().data;
        let model = Model::fit(&data, Svml::default()).unwrap();
        for most in [0, 3, 100] {
            let figure = Waterfall::new(&model, data.x().row(5), None, most).unwrap();
            assert_eq!(figure.columns.len() + figure.others, 10);
            assert_eq!(figure.columns.len(), most.min(10));
            assert!(figure.contributions.is_sorted_by(|a, b| a.abs() >= b.abs()));
            let sum: f64 = figure.contributions.iter().sum();
            assert!((figure.base + sum + figure.rest - figure.output).abs() < 1e-9);
            assert_eq!(figure.between, ["inside", "outside"]);
        }
    }
}
