//! How much each feature counts.

use crate::model::Model;

/// The diagonal of M = L'L: how strongly each standardised feature enters the distance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Relevance {
    /// Names of the features, the most relevant first.
    pub names: Vec<String>,
    /// Their relevance.
    pub values: Vec<f64>,
}

impl Relevance {
    /// The relevance of all features of a model.
    pub fn new(model: &Model) -> Self {
        let (names, values) = (model.schema().encoded_names(), model.relevance());
        let order = by_relevance(&values);
        Self {
            names: order.iter().map(|&k| names[k].clone()).collect(),
            values: order.iter().map(|&k| values[k]).collect(),
        }
    }
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
    use crate::data::Generator;
    use crate::method::Method;

    #[test]
    fn the_most_relevant_comes_first_and_equals_keep_their_order() {
        assert_eq!(by_relevance(&[1.0, 3.0, 1.0, 2.0]), [1, 3, 0, 2]);
        let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
        let model = Model::fit(&data, "pca+none".parse::<Method>().unwrap()).unwrap();
        let relevance = Relevance::new(&model);
        assert!(relevance.values.is_sorted_by(|a, b| a >= b));
        let names = data.schema().encoded_names();
        for (name, value) in relevance.names.iter().zip(&relevance.values) {
            let k = names.iter().position(|n| n == name).unwrap();
            assert_eq!(*value, model.relevance()[k]);
        }
    }
}
