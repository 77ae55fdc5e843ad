//! How the probability of a class depends on one column, the others being as they are.

use crate::data::Kind;
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::Model;

/// Most rows that are averaged over, places of a column of numbers, and categories.
const ROWS: usize = 300;
const PLACES: usize = 25;
const LEVELS: usize = 12;
/// The ends of the range of a column of numbers, as shares of the rows below.
const ENDS: [f64; 2] = [0.02, 0.98];

/// The partial dependence of a class on a column: its mean probability over rows in which the column is given one value after
/// another.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Dependence {
    /// The column.
    pub column: String,
    /// The class.
    pub class: String,
    /// The values that the column is given.
    pub places: Places,
    /// The mean probability at each of them.
    pub mean: Vec<f64>,
    /// How far the rows' own curves differ from the mean: each is moved so that its mean over the places is that of all rows,
    /// and a tenth of them then stays below the first number, and above the second.
    pub band: Vec<[f64; 2]>,
    /// Number of rows that were averaged over.
    pub rows: usize,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Places {
    /// Numbers, in ascending order.
    Numbers(Vec<f64>),
    /// Categories, the most frequent first.
    Categories(Vec<String>),
}

impl Dependence {
    /// How the probability of a class, a place in [`Model::classes`], depends on one of the columns that the model uses,
    /// counted as by [`Schema::used_columns`](crate::data::Schema::used_columns), around the rows of `x`. A column of which these
    /// have fewer than two values has no such figure, which is `None`.
    pub fn new(model: &Model, x: &Matrix, column: usize, class: usize) -> Result<Option<Self>> {
        let columns: Vec<_> = model.schema().used_columns().collect();
        let (Some(chosen), Some(label)) = (columns.get(column), model.classes().get(class)) else {
            let bound = format!(
                "below {} and {}, the numbers of columns and classes",
                columns.len(),
                model.classes().len()
            );
            return Err(Error::parameter("column, class", format!("{column}, {class}"), bound));
        };
        let first: usize = columns[..column].iter().map(|column| column.kind.width()).sum();
        let width = chosen.kind.width();
        let (places, encoded) = match &chosen.kind {
            Kind::Number => numbers(x, first),
            kind => categories(x, first, kind),
        };
        if encoded.len() < 2 {
            return Ok(None);
        }
        let step = x.rows().div_ceil(ROWS).max(1);
        let rows = x.select_rows(&(0..x.rows()).step_by(step).collect::<Vec<_>>());
        let mut curves = Vec::new();
        for value in &encoded {
            let mut changed = rows.clone();
            for row in 0..changed.rows() {
                changed.row_mut(row)[first..first + width].copy_from_slice(value);
            }
            curves.push(model.probabilities(&changed)?.col(class).collect::<Vec<f64>>());
        }
        let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let mean: Vec<f64> = curves.iter().map(|own| average(own)).collect();
        let level = average(&mean);
        let of_row = |row: usize| average(&curves.iter().map(|own| own[row]).collect::<Vec<_>>());
        let levels: Vec<f64> = (0..rows.rows()).map(of_row).collect();
        let around = |own: &Vec<f64>| {
            let mut moved: Vec<f64> =
                own.iter().zip(&levels).map(|(p, own_level)| p - own_level + level).collect();
            moved.sort_by(f64::total_cmp);
            [0.1, 0.9].map(|share| moved[(share * (moved.len() - 1) as f64).round() as usize])
        };
        let band = curves.iter().map(around).collect();
        Ok(Some(Self {
            column: chosen.name.clone(),
            class: label.clone(),
            places,
            mean,
            band,
            rows: rows.rows(),
        }))
    }
}

/// Places between the ends of a column of numbers, and these as encoded features.
fn numbers(x: &Matrix, feature: usize) -> (Places, Vec<Vec<f64>>) {
    let mut known: Vec<f64> = x.col(feature).filter(|v| !v.is_nan()).collect();
    known.sort_by(f64::total_cmp);
    let mut distinct = known.clone();
    distinct.dedup();
    let places = match distinct.len() {
        0..=PLACES => distinct,
        _ => {
            let at = |share: f64| known[(share * (known.len() - 1) as f64).round() as usize];
            let [low, high] = ENDS.map(at);
            match low < high {
                true => {
                    let part = |i: usize| i as f64 / (PLACES - 1) as f64;
                    (0..PLACES).map(|i| low + part(i) * (high - low)).collect()
                }
                // Nearly all rows have the same value.
                false => vec![known[0], low, known[known.len() - 1]],
            }
        }
    };
    let mut places = places;
    places.dedup();
    let encoded = places.iter().map(|value| vec![*value]).collect();
    (Places::Numbers(places), encoded)
}

/// The most frequent categories of a column, and these as encoded features.
fn categories(x: &Matrix, first: usize, kind: &Kind) -> (Places, Vec<Vec<f64>>) {
    let levels = kind.levels();
    let as_features = |level: usize| -> Vec<f64> {
        match kind {
            Kind::OneHot { .. } => {
                (0..levels.len()).map(|k| f64::from(u8::from(k == level))).collect()
            }
            _ => vec![level as f64],
        }
    };
    let count = |level: usize| {
        let features = as_features(level);
        x.iter_rows().filter(|row| row[first..first + features.len()] == features).count()
    };
    let mut found: Vec<(usize, usize)> =
        (0..levels.len()).map(|level| (count(level), level)).filter(|(n, _)| *n > 0).collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    found.truncate(LEVELS);
    let names = found.iter().map(|(_, level)| levels[*level].clone()).collect();
    let encoded = found.iter().map(|(_, level)| as_features(*level)).collect();
    (Places::Categories(names), encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, ReadOptions};
    use crate::svml::Svml;

    fn table() -> Dataset {
        let mut text = String::from("size,colour,still,class\n");
        for i in 0..120 {
            let (size, colour) =
                (f64::from(i * 37 % 100) / 10.0, ["red", "blue"][i as usize % 3 % 2]);
            let class =
                if (size > 5.0) != (colour == "blue" && size > 9.0) { "big" } else { "small" };
            text.push_str(&format!("{size},{colour},1,{class}\n"));
        }
        Dataset::from_reader(text.as_bytes(), &ReadOptions::default()).unwrap()
    }

    #[test]
    fn it_is_the_mean_of_probabilities_with_the_column_changed() {
        let data = table();
        let model = Model::fit(&data, Svml::default()).unwrap();
        let figure = Dependence::new(&model, data.x(), 0, 0).unwrap().unwrap();
        assert_eq!((figure.column.as_str(), figure.class.as_str()), ("size", "big"));
        let Places::Numbers(places) = &figure.places else { panic!("{figure:?}") };
        assert_eq!(places.len(), PLACES);
        for (k, place) in places.iter().enumerate() {
            let x = Matrix::from_fn(120, data.x().cols(), |i, f| match f {
                0 => *place,
                _ => data.x()[(i, f)],
            });
            let p = model.probabilities(&x).unwrap();
            let mean = p.col(0).sum::<f64>() / 120.0;
            assert!((figure.mean[k] - mean).abs() < 1e-12);
            assert!(figure.band[k][0] <= figure.band[k][1]);
        }
        assert!(figure.mean[PLACES - 1] > figure.mean[0] + 0.5, "{:?}", figure.mean);
    }

    #[test]
    fn categories_are_places_and_a_constant_has_none() {
        let data = table();
        let model = Model::fit(&data, Svml::default()).unwrap();
        let figure = Dependence::new(&model, data.x(), 1, 1).unwrap().unwrap();
        assert_eq!(figure.places, Places::Categories(vec!["red".to_owned(), "blue".to_owned()]));
        assert_eq!(figure.mean.len(), 2);
        assert_eq!(Dependence::new(&model, data.x(), 2, 0).unwrap(), None);
        assert!(Dependence::new(&model, data.x(), 3, 0).is_err());
        assert!(Dependence::new(&model, data.x(), 0, 2).is_err());
    }
}
