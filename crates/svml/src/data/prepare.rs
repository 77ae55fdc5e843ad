//! Data made ready for learning: weights of classes, rows merged and put in order, columns standardised.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::folds::content_order;
use super::{Dataset, Sample, Scaler};
use crate::error::{Error, Remedy, Result};
use crate::linalg::Matrix;

/// How much the rows of each class count, in addition to their own weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClassWeight {
    /// No weights: a class counts by its rows.
    #[default]
    None,
    /// Inversely to the weight of the class: total / (classes x weight of the class), so that every
    /// class counts the same.
    Balanced,
    /// As given, by class label; 1 for classes that are not named.
    Given(BTreeMap<String, f64>),
}

impl ClassWeight {
    /// The factor for each class; `totals` are the sums of the row weights of the classes.
    pub(crate) fn factors(&self, classes: &[String], totals: &[f64]) -> Result<Vec<f64>> {
        let bad = |value: String, bound: String| Error::parameter("class_weight", value, bound);
        match self {
            Self::None => Ok(vec![1.0; classes.len()]),
            Self::Balanced => {
                let share = totals.iter().sum::<f64>() / classes.len() as f64;
                Ok(totals.iter().map(|total| share / total).collect())
            }
            Self::Given(given) => {
                for (class, &weight) in given {
                    if !classes.contains(class) {
                        let bound = format!("given for one of the classes {classes:?}");
                        return Err(bad(format!("'{class}'"), bound));
                    }
                    if !(1e-9..=1e9).contains(&weight) {
                        let value = format!("{weight} for class '{class}'");
                        return Err(bad(value, "between 1e-9 and 1e9".to_owned()));
                    }
                }
                Ok(classes.iter().map(|class| given.get(class).copied().unwrap_or(1.0)).collect())
            }
        }
    }
}

/// More classes than this are refused: most likely a column of measurements was taken for the target.
const MAX_CLASSES: usize = 200;

/// Data made ready for learning: rows of weight 0 left out, identical rows merged, in an order that
/// depends on the rows' content alone.
pub(crate) struct TrainingRows {
    /// The classes that have rows.
    pub classes: Vec<String>,
    pub scaler: Scaler,
    /// Standardised rows.
    pub x: Matrix,
    pub class: Vec<usize>,
    /// Weight of each row, times that of its class.
    pub weight: Vec<f64>,
    /// For each row, the first of the identical rows of the data set that it stands for.
    pub origin: Vec<usize>,
    /// Total weight of the rows of the largest class, without the class weight.
    pub largest_class: f64,
}

impl TrainingRows {
    /// Checks the data and makes them ready. The result does not depend on the order of the rows.
    pub fn new(data: &Dataset, class_weight: &ClassWeight, seed: u64) -> Result<Self> {
        let counted: Vec<usize> = (0..data.rows()).filter(|&i| data.weights()[i] > 0.0).collect();
        // Classes without rows, which a selection of rows may have left behind, do not count.
        let mut totals = vec![0.0; data.classes().len()];
        counted.iter().for_each(|&i| totals[data.y()[i]] += data.weights()[i]);
        let present: Vec<usize> = (0..totals.len()).filter(|&c| totals[c] > 0.0).collect();
        match present.as_slice() {
            [] => return Err(Error::NoRows(" of positive weight".to_owned())),
            [only] => return Err(Error::OneClass { class: data.classes()[*only].clone() }),
            _ if present.len() <= MAX_CLASSES => {}
            _ => {
                return Err(Error::TooManyClasses {
                    column: data.schema().target().name.clone(),
                    found: present.len(),
                    limit: MAX_CLASSES,
                });
            }
        }
        data.check_missing()?;
        let classes: Vec<String> = present.iter().map(|&c| data.classes()[c].clone()).collect();
        let x = data.x().select_rows(&counted);
        let class: Vec<usize> =
            counted.iter().map(|&i| present.partition_point(|&c| c < data.y()[i])).collect();
        let order = content_order(&x, &class, seed);
        // In this order identical rows stand side by side.
        let same = |a: &usize, b: &usize| {
            class[*a] == class[*b]
                && (x.row(*a).iter().zip(x.row(*b)))
                    .all(|(a, b)| a == b || a.is_nan() && b.is_nan())
        };
        let groups: Vec<&[usize]> = order.chunk_by(same).collect();
        let merged: Vec<usize> = groups.iter().map(|group| group[0]).collect();
        let origin = (groups.iter())
            .map(|group| group.iter().map(|&i| counted[i]).min().unwrap_or(counted[group[0]]))
            .collect();
        let mut weight: Vec<f64> = (groups.iter())
            .map(|group| {
                // Summed in ascending order, so that the order of the rows does not change its bits.
                let mut weights: Vec<f64> =
                    group.iter().map(|&i| data.weights()[counted[i]]).collect();
                weights.sort_by(f64::total_cmp);
                weights.iter().sum()
            })
            .collect();
        let x = x.select_rows(&merged);
        let class: Vec<usize> = merged.iter().map(|&i| class[i]).collect();
        let scaler = Scaler::fit(&x, &weight, &data.schema().encoded_kinds());
        let mut totals = vec![0.0; classes.len()];
        class.iter().zip(&weight).for_each(|(&c, w)| totals[c] += w);
        let factors = class_weight.factors(&classes, &totals)?;
        let largest_class = totals.iter().copied().fold(0.0, f64::max);
        weight.iter_mut().zip(&class).for_each(|(w, &c)| *w *= factors[c]);
        if let Some(bad) = weight.iter().find(|w| !(1e-12..=1e12).contains(*w)) {
            return Err(Error::parameter(
                "weight",
                format!("{bad:e} (of a row, times that of its class)"),
                "between 1e-12 and 1e12",
            ));
        }
        Ok(Self { classes, x: scaler.apply(&x), scaler, class, weight, origin, largest_class })
    }

    /// The rows as learners see them.
    pub fn sample(&self) -> Result<Sample<'_>> {
        Sample::new(&self.x, &self.class, &self.weight, self.classes.len())
    }

    /// Whether some class has two rows that differ, so that one can validate the other.
    pub fn has_distinct_rows(&self) -> bool {
        self.class.len() > self.classes.len()
    }

    /// Refuses a fit that would need more than `limit` bytes: for the kernel matrix of all rows and, for each
    /// SVM that is trained at the same time, for `matrices` matrices of the size of its own kernel matrix.
    /// There are `svms` SVMs for each pair of classes, and at most one per thread is trained at a time.
    pub fn check_memory(&self, svms: usize, matrices: usize, limit: u64) -> Result<()> {
        let mut counts: Vec<u128> = vec![0; self.classes.len()];
        self.class.iter().for_each(|&c| counts[c] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let largest_pair = counts[0] + counts[1];
        let pairs = counts.len() * (counts.len() - 1) / 2;
        let at_once = svms.saturating_mul(pairs).min(rayon::current_num_threads());
        let rows = self.x.rows();
        let squares = (at_once * matrices) as u128 * largest_pair.pow(2);
        let bytes = 8 * ((rows as u128).pow(2) + squares);
        if bytes > u128::from(limit) {
            return Err(Error::TooLarge {
                what: format!("the kernel matrix of {rows} rows and its factorisation"),
                bytes,
                limit: u128::from(limit),
                remedy: Remedy::RaiseMemoryLimit,
            });
        }
        Ok(())
    }

    /// What the user should know about the data.
    pub fn warnings(&self, data: &Dataset) -> Vec<String> {
        let names = data.schema().encoded_names();
        let constant = (self.scaler.constant())
            .map(|k| format!("column {} is constant and was left out", names[k]));
        let single = (self.classes.iter().enumerate())
            .filter(|(c, _)| self.class.iter().filter(|class| *class == c).count() == 1)
            .map(|(_, name)| {
                format!(
                    "class {name} has a single distinct row: how well it is recognised cannot be measured"
                )
            });
        constant.chain(single).collect()
    }
}
