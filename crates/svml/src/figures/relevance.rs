//! How much each column counts.

use crate::data::{Column, Encoded};
use crate::metric::Metric;
use crate::model::Model;

/// How strongly each column of the table enters the distance: its share of the diagonal of M = L'L.
///
/// The share of a feature is M_kk times its variance, which is 1 for numbers and codes, because they are standardised. The
/// zero-or-one features of a category have a variance of 1 together, so that it counts like a number under a metric of one
/// width; the share of such a column is the sum of its features.
///
/// A model that is a mean of SVMs has the mean of their shares, with their weights, and how far these lie apart. Columns
/// that were constant in training have none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Relevance {
    /// Names of the columns, or of the features.
    pub names: Vec<String>,
    /// Their shares, which add up to one.
    pub values: Vec<f64>,
    /// The least share of any SVM; that of the metric, if there is one only.
    pub low: Vec<f64>,
    /// The largest share of any SVM.
    pub high: Vec<f64>,
}

impl Relevance {
    /// The relevance of all columns that a model uses, the most relevant first.
    pub fn new(model: &Model) -> Self {
        Self::of_columns(model).sorted()
    }

    /// The relevance of all encoded features, such as `colour=red`, the most relevant first.
    pub fn by_feature(model: &Model) -> Self {
        Self::of_features(model).sorted()
    }

    /// As [`Relevance::new`], in the order of the columns of the data.
    pub fn of_columns(model: &Model) -> Self {
        let columns: Vec<&Column> = model.schema().used_columns().collect();
        let of_column = columns.iter().enumerate();
        let place: Vec<usize> =
            of_column.flat_map(|(k, column)| vec![k; column.kind.width()]).collect();
        let names = columns.iter().map(|column| column.name.clone()).collect();
        Self::summed(model, names, &place)
    }

    /// As [`Relevance::by_feature`], in the order of the features.
    pub fn of_features(model: &Model) -> Self {
        let place: Vec<usize> = (0..model.metric().features()).collect();
        Self::summed(model, model.schema().encoded_names(), &place)
    }

    /// The shares of features, summed by their places.
    fn summed(model: &Model, names: Vec<String>, place: &[usize]) -> Self {
        let variances = variances(model);
        let mut metrics: Vec<(f64, &Metric)> =
            model.members().iter().map(|member| (member.weight(), member.metric())).collect();
        if metrics.is_empty() {
            metrics.push((1.0, model.metric()));
        }
        let d = names.len();
        let (mut values, mut low, mut high) = (vec![0.0; d], vec![f64::INFINITY; d], vec![0.0; d]);
        for (weight, metric) in metrics {
            let mut shares = vec![0.0; d];
            for (&at, share) in place.iter().zip(self::shares(metric, &variances)) {
                shares[at] += share;
            }
            for (k, share) in shares.into_iter().enumerate() {
                values[k] += weight * share;
                low[k] = share.min(low[k]);
                high[k] = share.max(high[k]);
            }
        }
        // Rounding may put a mean of equal shares outside of them.
        for (k, value) in values.iter_mut().enumerate() {
            *value = value.clamp(low[k], high[k]);
        }
        Self { names, values, low, high }
    }

    fn sorted(self) -> Self {
        // Shares that differ by rounding alone keep the order of the table.
        let rounded: Vec<f64> = self.values.iter().map(|value| (value * 1e12).round()).collect();
        let order = by_relevance(&rounded);
        let sorted = |values: &[f64]| order.iter().map(|&k| values[k]).collect();
        Self {
            names: order.iter().map(|&k| self.names[k].clone()).collect(),
            values: sorted(&self.values),
            low: sorted(&self.low),
            high: sorted(&self.high),
        }
    }

    /// Whether some SVMs of the model give a feature another share than others do.
    pub fn is_spread(&self) -> bool {
        self.low.iter().zip(&self.high).any(|(low, high)| high - low > 1e-9)
    }
}

/// The variance of each feature after scaling: 0 for one that was constant, 1 for numbers and codes. Of a zero-or-one
/// feature of mean p it is p (1 - p) in the square of its scale, which all features of a category share.
fn variances(model: &Model) -> Vec<f64> {
    let scaler = model.scaler();
    let kinds = model.schema().encoded_kinds();
    (kinds.iter().zip(scaler.mean.iter().zip(&scaler.scale)))
        .map(|(kind, (&mean, &scale))| match kind {
            _ if scale == 0.0 => 0.0,
            // The square of a scale that comes from a file may vanish.
            Encoded::Indicator { .. } => {
                (mean * (1.0 - mean)).max(0.0) / (scale * scale).max(1e-200)
            }
            _ => 1.0,
        })
        .collect()
}

/// The share of each feature in the diagonal of M.
fn shares(metric: &Metric, variances: &[f64]) -> Vec<f64> {
    let mut shares = metric.relevance();
    let largest = (shares.iter().zip(variances))
        .filter(|(_, variance)| **variance > 0.0)
        .map(|(share, _)| *share)
        .fold(0.0, f64::max);
    for (share, variance) in shares.iter_mut().zip(variances) {
        // In units of the largest, whose sum does not overflow.
        *share = if largest > 0.0 && *variance > 0.0 { *share / largest * variance } else { 0.0 };
    }
    let sum: f64 = shares.iter().sum();
    if sum > 0.0 {
        shares.iter_mut().for_each(|share| *share /= sum);
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

    /// A category counts as one column, by the sum of its features: under a metric of one width as much as a number.
    #[test]
    fn the_features_of_a_category_are_summed() {
        let row = |i: usize| {
            format!(
                "{}.5,c{},{},{}\n",
                i * 7 % 23,
                i * i % 7,
                ["u", "v"][i / 3 % 2],
                ["a", "b"][i % 2]
            )
        };
        let text: String = (0..80).map(row).collect();
        let data =
            Dataset::from_csv(text.as_bytes(), &crate::data::ReadOptions::default()).unwrap();
        let sphere =
            Svml { form: crate::metric::Form::Sphere.into(), cross_fit: false, ..Svml::default() };
        let columns = Relevance::of_columns(&Model::fit(&data, sphere).unwrap());
        assert_eq!(columns.names, ["x1", "x2", "x3"]);
        assert!(
            columns.values.iter().all(|value| (value - 1.0 / 3.0).abs() < 1e-12),
            "{columns:?}"
        );
        assert_eq!(columns.sorted().names, ["x1", "x2", "x3"]);

        let model = Model::fit(&data, Svml { cross_fit: false, ..Svml::default() }).unwrap();
        let (columns, features) = (Relevance::of_columns(&model), Relevance::of_features(&model));
        assert_eq!(features.names.len(), 7);
        let of_category: f64 = features.values[1..5].iter().sum();
        assert!((columns.values[1] - of_category).abs() < 1e-12);
        assert!((columns.values.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // The spread is that of the sums.
        assert!(columns.low[1] >= features.low[1..5].iter().sum::<f64>() - 1e-12);
        let best = Relevance::new(&model);
        assert!(best.values.is_sorted_by(|a, b| a >= b) && best.names.len() == 3);
        assert_eq!(Relevance::by_feature(&model).names.len(), 7);
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
        let relevance = Relevance::of_columns(&model);
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

    #[test]
    fn what_does_not_vary_or_weigh_has_no_share() {
        let of = |values: [f64; 2], variances: [f64; 2]| {
            let form = crate::metric::Form::Diagonal;
            shares(&Metric::new(form, 2, values.to_vec()).unwrap(), &variances)
        };
        assert_eq!(of([2.0, 2.0], [1.0, 1.0]), [0.5, 0.5]);
        assert_eq!(of([1.0, 3.0], [1.0, 0.0]), [1.0, 0.0]);
        assert_eq!(of([0.0, 0.0], [1.0, 1.0]), [0.0, 0.0]);
    }
}
