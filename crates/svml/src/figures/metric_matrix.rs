//! The matrix of the metric.

use super::relevance::by_relevance;
use crate::linalg::Matrix;
use crate::model::Model;

/// Most features that are shown if no other number is asked for.
const MOST: usize = 40;

/// M = L'L on standardised features, or the part of it that the most relevant features have.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MetricMatrix {
    /// Names of the features that are shown, in the order of the columns of the data.
    pub names: Vec<String>,
    /// Their part of M. // (shown, shown)
    pub values: Matrix,
    /// How many features the model has.
    pub features: usize,
    /// Of how many SVMs it is the mean of the M, each scaled to a trace of one; 1: it is M itself.
    pub mean_of: usize,
}

impl MetricMatrix {
    /// M of a model; of more than 40 features the 40 most relevant.
    pub fn new(model: &Model) -> Self {
        Self::most_relevant(model, MOST)
    }

    /// M of a model; of more than `most` features the most relevant.
    pub fn most_relevant(model: &Model, most: usize) -> Self {
        let names = model.schema().encoded_names();
        let metric = model.acting_metric();
        let mut shown = by_relevance(&metric.relevance());
        shown.truncate(most);
        shown.sort_unstable();
        Self {
            values: metric.mahalanobis_of(&shown),
            names: shown.iter().map(|&k| names[k].clone()).collect(),
            features: names.len(),
            mean_of: model.members().len().max(1),
        }
    }

    /// Whether only the diagonal is not zero: each feature has a weight of its own, and no two act together.
    pub fn is_diagonal(&self) -> bool {
        let n = self.values.cols();
        n > 1 && self.values.as_slice().iter().enumerate().all(|(k, v)| k / n == k % n || *v == 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;
    use crate::method::Method;
    use crate::svml::Svml;

    #[test]
    fn the_part_of_the_most_relevant_features() {
        let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
        let model = Model::fit(&data, "pca+none".parse::<Method>().unwrap()).unwrap();
        let m = model.acting_metric().mahalanobis();
        let all = MetricMatrix::new(&model);
        assert_eq!((all.values, all.names.len()), (m.clone(), 10));
        let part = MetricMatrix::most_relevant(&model, 3);
        assert_eq!((part.names.len(), part.values.rows(), part.features), (3, 3, 10));
        assert_eq!(part.mean_of, 1);
        let names = data.schema().encoded_names();
        let place = |name: &String| names.iter().position(|n| n == name).unwrap();
        let shown: Vec<usize> = part.names.iter().map(place).collect();
        assert!(shown.is_sorted());
        let least = shown.iter().map(|&k| m[(k, k)]).fold(f64::INFINITY, f64::min);
        assert!((0..10).all(|k| shown.contains(&k) || m[(k, k)] <= least));
        assert_eq!(part.values[(0, 2)], m[(shown[0], shown[2])]);
        let mean = Model::fit(&data, Svml { cross_fit: false, ..Svml::default() }).unwrap();
        assert_eq!(MetricMatrix::new(&mean).mean_of, 3);
        // Of a PCA no two columns are apart; the mean is of spheres and a diagonal.
        assert!(!MetricMatrix::new(&model).is_diagonal() && MetricMatrix::new(&mean).is_diagonal());
    }

    /// One feature has no others that it could act with.
    #[test]
    fn a_single_feature_is_no_diagonal() {
        let data =
            Generator { rows: 40, noise: 1, ..Generator::default() }.generate().unwrap().data;
        let params = Svml { form: crate::metric::Form::Diagonal.into(), ..Svml::default() };
        let model = Model::fit(&data, params).unwrap();
        assert!(MetricMatrix::most_relevant(&model, 2).is_diagonal());
        assert!(!MetricMatrix::most_relevant(&model, 1).is_diagonal());
    }
}
