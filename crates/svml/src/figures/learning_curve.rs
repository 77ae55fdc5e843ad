//! How the error falls with the number of rows to learn from.

use crate::data::Dataset;
use crate::data::folds::{random_split, random_split_by_group};
use crate::error::{Error, Result};
use crate::method::Method;
use crate::model::Model;
use crate::run::Run;

/// Most sizes if none are given; each is half of the next.
const SIZES: u32 = 6;
/// Fewest rows to learn from, if no sizes are given.
const FEWEST: usize = 20;

/// The error on rows that were held out, by the number of rows that a method learned from.
///
/// In each repetition a random fifth of the rows is held out, the same for all sizes, and of the others a part is learned
/// from: each part holds the next smaller one, and has the classes in the shares that all rows have. No group of rows
/// ([`Dataset::with_groups`]) is both learned from and held out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LearningCurve {
    /// The method, as text.
    pub method: String,
    /// Numbers of rows to learn from, ascending.
    pub sizes: Vec<usize>,
    /// The error for each size (first index) and repetition (second index).
    pub errors: Vec<Vec<f64>>,
    /// The mean error for each size.
    pub mean: Vec<f64>,
    /// Its standard error over the repetitions.
    pub standard_error: Vec<f64>,
    /// Number of rows that were held out; with groups the most of any repetition.
    pub held_out: usize,
}

impl LearningCurve {
    /// Fits a method on growing parts of the rows, in so many repetitions, at least 2. Without sizes there are up to six, each
    /// half of the next, up to four fifths of all rows. `done` is told after each fit how many are done and how many there
    /// are, and says whether to go on: if not, the curve has the repetitions that are complete, and none is an error.
    pub fn new(
        data: &Dataset,
        method: &Method,
        sizes: Option<&[usize]>,
        repetitions: usize,
        seed: u64,
        run: impl Fn() -> Run<'static>,
        mut done: impl FnMut(usize, usize) -> bool,
    ) -> Result<Self> {
        if repetitions < 2 {
            return Err(Error::parameter("repetitions", repetitions, "at least 2"));
        }
        let (n, classes) = (data.rows(), data.classes().len());
        // All rows that belong together are learned from, or none.
        let together = data.together();
        let split = |repetition: usize| {
            let seed = seed.wrapping_add(repetition as u64);
            match &together {
                Some(groups) => random_split_by_group(groups, seed),
                None => random_split(n, seed),
            }
        };
        let most = (0..repetitions).map(|k| split(k).0.len()).min().unwrap_or(0);
        let fewest = 2 * classes;
        let sizes = match sizes {
            Some(given) => {
                let mut sizes = given.to_vec();
                sizes.sort_unstable();
                sizes.dedup();
                let fits = |size: &&usize| !(fewest..=most).contains(*size);
                if let Some(size) = sizes.iter().find(fits) {
                    let bound = format!(
                        "between {fewest} (two rows per class) and {most} (four fifths of all rows)"
                    );
                    return Err(Error::parameter("sizes", size, bound));
                }
                sizes
            }
            None => {
                let halved = (0..SIZES).rev().map(|k| most >> k);
                halved.filter(|&size| size >= fewest.max(FEWEST)).collect()
            }
        };
        if sizes.is_empty() {
            return Err(Error::Data {
                what: format!(
                    "{n} rows are too few for a learning curve; at least {} are needed",
                    (fewest.max(FEWEST) * 5).div_ceil(4)
                ),
                remedy: None,
            });
        }
        let mut errors = vec![Vec::with_capacity(repetitions); sizes.len()];
        let (mut count, total) = (0, repetitions * sizes.len());
        'all: for repetition in 0..repetitions {
            let (train, test) = split(repetition);
            let (train, test) = (in_shares(data, train), data.select(&test));
            let mut found = Vec::with_capacity(sizes.len());
            for &size in &sizes {
                let part = data.select(&train[..size]);
                let fitted = Model::fit_with(&part, method, &mut run());
                count += 1;
                if !done(count, total) {
                    break 'all;
                }
                found.push(fitted?.error_rate(&test)?);
            }
            errors.iter_mut().zip(found).for_each(|(errors, error)| errors.push(error));
        }
        if errors.iter().any(|errors| errors.len() < 2) {
            return Err(Error::Interrupted);
        }
        let (mean, standard_error) = errors.iter().map(|errors| mean(errors)).unzip();
        Ok(Self {
            method: method.to_string(),
            sizes,
            errors,
            mean,
            standard_error,
            held_out: n - most,
        })
    }
}

/// The rows in an order of which every beginning has the classes in about the shares that all have, and first a row of each.
fn in_shares(data: &Dataset, rows: Vec<usize>) -> Vec<usize> {
    let mut totals = vec![0.0; data.classes().len()];
    rows.iter().for_each(|&row| totals[data.y()[row]] += 1.0);
    let mut seen = vec![0.0; totals.len()];
    let mut keyed: Vec<(f64, usize)> = rows
        .into_iter()
        .map(|row| {
            let class = data.y()[row];
            let key = seen[class] / totals[class];
            seen[class] += 1.0;
            (key, row)
        })
        .collect();
    // A stable sort: rows of equal keys stay in their random order.
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    keyed.into_iter().map(|(_, row)| row).collect()
}

/// Mean and its standard error.
fn mean(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;

    fn data() -> Dataset {
        Generator { rows: 200, classes: 3, ..Default::default() }.generate().unwrap().data
    }

    fn curve(sizes: Option<&[usize]>, repetitions: usize) -> Result<LearningCurve> {
        let method = Method::neighbours(3);
        LearningCurve::new(&data(), &method, sizes, repetitions, 4, Run::new, |_, _| true)
    }

    #[test]
    fn sizes_double_and_errors_are_those_of_the_parts() {
        let found = curve(None, 3).unwrap();
        assert_eq!((found.sizes.clone(), found.held_out), (vec![20, 40, 80, 160], 40));
        let data = data();
        let (train, test) = random_split(200, 5);
        let test = data.select(&test);
        let order = in_shares(&data, train);
        for (size, errors) in found.sizes.iter().zip(&found.errors) {
            let part = data.select(&order[..*size]);
            let model = Model::fit(&part, Method::neighbours(3)).unwrap();
            assert_eq!(errors[1], model.error_rate(&test).unwrap());
        }
        let first = &found.errors[0];
        let mean = first.iter().sum::<f64>() / 3.0;
        let square = first.iter().map(|e| (e - mean).powi(2)).sum::<f64>();
        assert!((found.mean[0] - mean).abs() < 1e-12);
        assert!((found.standard_error[0] - (square / 6.0).sqrt()).abs() < 1e-12);
        assert_eq!(curve(None, 3).unwrap(), found);
    }

    /// Every row has a twin in its group: with one learned from and the other held out there would be no error at all.
    #[test]
    fn groups_are_not_divided() {
        let one = data();
        let twice: Vec<usize> = (0..200).flat_map(|i| [i, i]).collect();
        let groups: Vec<usize> = (0..200).flat_map(|i| [i, i]).collect();
        let data = one.select(&twice).with_groups(&groups).unwrap();
        let method = Method::neighbours(1);
        let found = LearningCurve::new(&data, &method, None, 2, 0, Run::new, |_, _| true).unwrap();
        assert!(found.mean.last().unwrap() > &0.1, "{found:?}");
    }

    #[test]
    fn every_part_has_the_classes_in_their_shares() {
        let data = data();
        let order = in_shares(&data, (0..200).collect());
        let totals = data.class_counts();
        for size in [6, 20, 77, 160] {
            for (class, total) in totals.iter().enumerate() {
                let count = order[..size].iter().filter(|&&i| data.y()[i] == class).count() as f64;
                let expected = *total as f64 * size as f64 / 200.0;
                assert!(count >= 1.0 && (count - expected).abs() < 2.0, "{count} {expected}");
            }
        }
    }

    #[test]
    fn bounds_and_interruption() {
        let error = curve(Some(&[30, 161]), 2).unwrap_err().to_string();
        assert!(error.contains("161") && error.contains("and 160"), "{error}");
        assert_eq!(curve(Some(&[90, 30, 90]), 2).unwrap().sizes, [30, 90]);
        assert!(curve(None, 1).is_err());
        let few = Generator { rows: 24, ..Default::default() }.generate().unwrap().data;
        let method = Method::neighbours(3);
        let found = LearningCurve::new(&few, &method, None, 2, 0, Run::new, |_, _| true);
        assert!(found.unwrap_err().to_string().contains("at least 25 are needed"));
        // Stopped in the third of four repetitions of four fits.
        let stopped = |most| {
            LearningCurve::new(&data(), &method, None, 4, 0, Run::new, move |done, all| {
                assert_eq!(all, 16);
                done < most
            })
        };
        assert_eq!(stopped(10).unwrap().errors[0].len(), 2);
        assert!(matches!(stopped(5), Err(Error::Interrupted)));
    }
}
