//! What every target writes: the arrays of a model in the form that takes the least space and arithmetic.

use svml::data::{Missing, Scaler};
use svml::{Error, Form, Kernel, Matrix, Metric, Model, Result};

use crate::Output;

/// Values beyond this are refused, as by the library.
pub const LIMIT: f64 = svml::data::LIMIT;
/// Standardised values are held within +-this, as by the library; docs/model-format.md has the number.
pub const FAR: f64 = 1e70;

/// The most bytes that a number takes while it is written: its digits, and the text once more while that grows.
const WRITING_A_NUMBER: usize = 96;

/// How a row of encoded features becomes one of standardised features.
pub struct Features<'a> {
    /// Names of the encoded features.
    pub names: Vec<String>,
    /// What a missing value becomes; `None` where the model refuses missing values.
    pub fill: Option<&'a [f64]>,
    pub mean: &'a [f64],
    /// Standard deviations; 0 for a feature that is left out.
    pub scale: &'a [f64],
}

/// What is made of standardised features u.
pub enum Rest<'a> {
    /// A metric alone.
    Metric(Map),
    Svms(Svms<'a>),
}

/// L, as it is computed with.
pub enum Map {
    /// The diagonal of a sphere or of a diagonal metric. // (d)
    Diagonal(Vec<f64>),
    /// L itself. // (rank, d)
    Matrix(Matrix),
}

/// The weighted mean of members. Each class has at least one support vector: where the model has none of a class, one
/// without weight takes its place, so that no array is empty.
pub struct Svms<'a> {
    pub classes: &'a [String],
    /// Number of support vectors of each class.
    pub counts: Vec<usize>,
    /// The support vectors, standardised. // (s, d)
    pub support: Matrix,
    pub members: Vec<Part<'a>>,
    /// Of the probabilities; models of the first file format have none.
    pub temperature: Option<f64>,
    /// The logarithms of the weights of the classes, which are taken off the values over the temperature; none if all had the
    /// same.
    pub log_weights: Option<Vec<f64>>,
}

/// A member.
pub struct Part<'a> {
    pub weight: f64,
    pub kernel: Kernel,
    pub map: Map,
    /// The support vectors mapped by L, if that is a matrix; otherwise they are weighed where they are needed. // (s, rank)
    pub points: Option<Matrix>,
    /// As LIBSVM lays them out. // (classes - 1, s)
    pub beta: Matrix,
    pub bias: &'a [f64],
}

impl Features<'_> {
    pub fn of(model: &Model) -> Features<'_> {
        let Scaler { fill, mean, scale, .. } = model.scaler();
        let fills = model.schema().missing() == Missing::Impute;
        let names = model.schema().encoded_names();
        Features { names, fill: fills.then_some(fill), mean, scale }
    }
}

impl Rest<'_> {
    /// `target` is what it is written for, in words.
    pub fn of<'a>(model: &'a Model, output: Output, target: &str) -> Result<Rest<'a>> {
        let metrics =
            model.members().iter().map(|member| member.metric().values().len()).sum::<usize>();
        let numbers =
            model.support_vectors().as_slice().len() + model.metric().values().len() + metrics;
        svml::internals::room_for(
            WRITING_A_NUMBER.saturating_mul(numbers),
            "the model as it is written",
        )?;
        if output == Output::Map || !model.is_classifier() {
            return Ok(Rest::Metric(Map::of(model.metric())));
        }
        if model.members().is_empty() {
            return Err(Error::Unsupported(format!(
                "a nearest-neighbour model cannot be exported {target}, because it consists of the training rows and a search among them; use a model with SVMs, such as the default, or export only the map of the metric"
            )));
        }
        let (counts, places) = places(model.support_counts());
        let u = model.scaler().apply(model.support_vectors());
        let at = |m: &Matrix, place: Option<usize>, k| place.map_or(0.0, |row| m[(row, k)]);
        let padded =
            |m: &Matrix| Matrix::from_fn(places.len(), m.cols(), |i, k| at(m, places[i], k));
        let member = |member: &'a svml::Member| {
            let map = Map::of(member.metric());
            let points = match map {
                Map::Diagonal(_) => None,
                Map::Matrix(_) => Some(padded(&member.metric().transform(&u))),
            };
            let beta = member.beta();
            Part {
                weight: member.weight(),
                kernel: member.kernel(),
                map,
                points,
                beta: Matrix::from_fn(beta.rows(), places.len(), |slot, i| {
                    places[i].map_or(0.0, |row| beta[(slot, row)])
                }),
                bias: member.bias(),
            }
        };
        Ok(Rest::Svms(Svms {
            classes: model.classes(),
            counts,
            support: padded(&u),
            members: model.members().iter().map(member).collect(),
            temperature: model.temperature(),
            log_weights: model.class_weights().map(|all| all.iter().map(|w| w.ln()).collect()),
        }))
    }
}

impl Map {
    fn of(metric: &Metric) -> Self {
        let d = metric.features();
        match metric.form() {
            Form::Sphere => Self::Diagonal(vec![metric.values()[0]; d]),
            Form::Diagonal => Self::Diagonal(metric.values().to_vec()),
            _ => Self::Matrix(metric.components()),
        }
    }

    /// Dimensions of the space that it maps into.
    pub fn rank(&self) -> usize {
        match self {
            Self::Diagonal(weights) => weights.len(),
            Self::Matrix(l) => l.rows(),
        }
    }
}

impl Svms<'_> {
    /// Whether a member needs the support vectors themselves.
    pub fn uses_support(&self) -> bool {
        self.members.iter().any(|member| member.points.is_none())
    }
}

/// The number of support vectors of each class, at least one, and where each is in the model.
fn places(counts: &[usize]) -> (Vec<usize>, Vec<Option<usize>>) {
    let mut places = Vec::new();
    let mut next = 0;
    for &count in counts {
        places.extend((next..next + count).map(Some));
        if count == 0 {
            places.push(None);
        }
        next += count;
    }
    (counts.iter().map(|&count| count.max(1)).collect(), places)
}

/// The pairs of classes in the order of [`svml::Member::bias`].
pub fn pairs(classes: usize) -> Vec<(usize, usize)> {
    (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_without_support_vectors_gets_one_without_weight() {
        let (counts, found) = places(&[2, 0, 1]);
        assert_eq!(counts, [2, 1, 1]);
        assert_eq!(found, [Some(0), Some(1), None, Some(2)]);
    }
}
