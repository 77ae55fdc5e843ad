//! How much each feature counts.

use crate::metric::Metric;
use crate::model::Model;

/// How strongly each standardised feature enters the distance: its share of the diagonal of M = L'L.
///
/// A model that is a mean of SVMs has the mean of their shares, with their weights, and how far these lie apart. One
/// of a single width gives all features the same share. Columns that were constant in training have none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Relevance {
    /// Names of the features.
    pub names: Vec<String>,
    /// Their shares, which add up to one.
    pub values: Vec<f64>,
    /// The least share of any SVM; that of the metric, if there is one only.
    pub low: Vec<f64>,
    /// The largest share of any SVM.
    pub high: Vec<f64>,
}

impl Relevance {
    /// The relevance of all features of a model, the most relevant first.
    pub fn new(model: &Model) -> Self {
        let all = Self::by_column(model);
        let order = by_relevance(&all.values);
        let sorted = |values: &[f64]| order.iter().map(|&k| values[k]).collect();
        Self {
            names: order.iter().map(|&k| all.names[k].clone()).collect(),
            values: sorted(&all.values),
            low: sorted(&all.low),
            high: sorted(&all.high),
        }
    }

    /// As [`Relevance::new`], in the order of the columns of the data.
    pub fn by_column(model: &Model) -> Self {
        let constant: Vec<usize> = model.scaler().constant().collect();
        let mut metrics: Vec<(f64, &Metric)> =
            model.members().iter().map(|member| (member.weight(), member.metric())).collect();
        if metrics.is_empty() {
            metrics.push((1.0, model.metric()));
        }
        let d = model.metric().features();
        let (mut values, mut low, mut high) = (vec![0.0; d], vec![f64::INFINITY; d], vec![0.0; d]);
        for (weight, metric) in metrics {
            for (k, share) in shares(metric, &constant).into_iter().enumerate() {
                values[k] += weight * share;
                low[k] = share.min(low[k]);
                high[k] = share.max(high[k]);
            }
        }
        // Rounding may put a mean of equal shares outside of them.
        for (k, value) in values.iter_mut().enumerate() {
            *value = value.clamp(low[k], high[k]);
        }
        Self { names: model.schema().encoded_names(), values, low, high }
    }

    /// Whether some SVMs of the model give a feature another share than others do.
    pub fn is_spread(&self) -> bool {
        self.low.iter().zip(&self.high).any(|(low, high)| high - low > 1e-9)
    }
}

/// The share of each feature in the diagonal of M.
fn shares(metric: &Metric, constant: &[usize]) -> Vec<f64> {
    let mut shares = metric.relevance();
    constant.iter().for_each(|&k| shares[k] = 0.0);
    let largest = shares.iter().copied().fold(0.0, f64::max);
    if largest > 0.0 {
        // In units of the largest, whose sum does not overflow.
        let sum: f64 = shares.iter().map(|share| share / largest).sum();
        shares.iter_mut().for_each(|share| *share = *share / largest / sum);
    }
    shares
}

/// The features, the most relevant first and of equal ones the first.
pub(super) fn by_relevance(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Generator};
    use crate::linalg::Matrix;
    use crate::method::Method;
    use crate::svml::Svml;

    fn data() -> Dataset {
        Generator { rows: 60, ..Default::default() }.generate().unwrap().data
    }

    #[test]
    fn the_most_relevant_comes_first_and_equals_keep_their_order() {
        assert_eq!(by_relevance(&[1.0, 3.0, 1.0, 2.0]), [1, 3, 0, 2]);
        let data = data();
        let model = Model::fit(&data, "pca+none".parse::<Method>().unwrap()).unwrap();
        let relevance = Relevance::new(&model);
        assert!(relevance.values.is_sorted_by(|a, b| a >= b));
        let names = data.schema().encoded_names();
        let total: f64 = model.relevance().iter().sum();
        for (name, value) in relevance.names.iter().zip(&relevance.values) {
            let k = names.iter().position(|n| n == name).unwrap();
            assert!((value - model.relevance()[k] / total).abs() < 1e-15);
        }
        // There is one metric, so there is no spread.
        assert_eq!((&relevance.low, &relevance.high), (&relevance.values, &relevance.values));
        assert!(!relevance.is_spread());
    }

    #[test]
    fn a_mean_has_the_mean_of_the_shares_and_their_spread() {
        // A column without a meaning, so that metrics differ, and one that is constant.
        let x = Matrix::from_fn(80, 4, |i, k| match k {
            0 => (i * 7 % 23) as f64,
            1 => (i % 2) as f64 + (i * 5 % 17) as f64 / 40.0,
            2 => (i * i % 13) as f64,
            _ => 3.0,
        });
        let y: Vec<usize> = (0..80).map(|i| i % 2).collect();
        let data = Dataset::new(x, &y).unwrap();
        let model = Model::fit(&data, Svml { cross_fit: false, ..Svml::default() }).unwrap();
        assert_eq!(model.members().len(), 3);
        let relevance = Relevance::by_column(&model);
        assert_eq!(relevance.names, ["x1", "x2", "x3", "x4"]);
        assert!((relevance.values.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(relevance.is_spread());
        for k in 0..4 {
            let shares = model.members().iter().map(|member| {
                let m = member.metric().relevance();
                let share = if k == 3 { 0.0 } else { m[k] / m[..3].iter().sum::<f64>() };
                (member.weight(), share)
            });
            let mean: f64 = shares.clone().map(|(weight, share)| weight * share).sum();
            let low = shares.clone().map(|(_, share)| share).fold(f64::MAX, f64::min);
            let high = shares.map(|(_, share)| share).fold(0.0, f64::max);
            assert!((relevance.values[k] - mean).abs() < 1e-12);
            assert!((relevance.low[k] - low).abs() < 1e-12);
            assert!((relevance.high[k] - high).abs() < 1e-12);
        }
        assert_eq!((relevance.values[3], relevance.high[3]), (0.0, 0.0));
    }
}
