//! Data made ready for learning: weights of classes, rows merged and put in order, columns standardised.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cell::listed;
use super::folds::content_order_with;
use super::repeats::{EqualRows, Repeats};
use super::{Dataset, Sample, Scaler};
use crate::device::Work;
use crate::error::{Error, Remedy, Result};
use crate::linalg::Matrix;
use crate::memory;
use crate::run::Watch;

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
    /// The factor for each class; `totals` are the sums of the row weights of the classes, and `known` are the classes of
    /// the data, of which some may have no rows here.
    pub(crate) fn factors(
        &self,
        classes: &[String],
        known: &[String],
        totals: &[f64],
    ) -> Result<Vec<f64>> {
        let bad = |value: String, bound: String| Error::parameter("class_weight", value, bound);
        match self {
            Self::None => Ok(vec![1.0; classes.len()]),
            Self::Balanced => {
                let share = totals.iter().sum::<f64>() / classes.len() as f64;
                Ok(totals.iter().map(|total| share / total).collect())
            }
            Self::Given(given) => {
                for (class, &weight) in given {
                    if !known.contains(class) {
                        let bound =
                            format!("given for a class that is in the data: {}", listed(known, 20));
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
pub(crate) const MAX_CLASSES: usize = 200;

/// Data made ready for learning: rows of weight 0 left out, equal observations merged into one row, in an order that
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
    /// How many observations of equal weight each stands for.
    copies: Vec<u64>,
    /// What the user should know of rows that repeat.
    repeats: Option<String>,
    /// The group of each row, if rows belong together.
    groups: Option<Vec<usize>>,
    /// For each row, the first of the identical rows of the data set that it stands for.
    pub origin: Vec<usize>,
    /// Total weight of the rows of the largest class, without the class weight.
    pub largest_class: f64,
    /// The factor of each class that is in the weights of its rows.
    pub class_factors: Vec<f64>,
}

impl TrainingRows {
    /// Checks the data and makes them ready. The result does not depend on the order of the rows.
    pub fn new(
        data: &Dataset,
        class_weight: &ClassWeight,
        equal_rows: EqualRows,
        seed: u64,
    ) -> Result<Self> {
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
        let columns = memory::LEARNING_A_COLUMN * data.x().cols();
        let bytes = 16 * data.x().as_slice().len() + columns;
        memory::room_for(bytes, "copies of the training rows")?;
        let classes: Vec<String> = present.iter().map(|&c| data.classes()[c].clone()).collect();
        // Large tables are not copied twice.
        let x = match counted.len() == data.rows() {
            true => Cow::Borrowed(data.x()),
            false => Cow::Owned(data.x().select_rows(&counted)),
        };
        let class: Vec<usize> =
            counted.iter().map(|&i| present.partition_point(|&c| c < data.y()[i])).collect();
        let group: Option<Vec<usize>> =
            data.groups().map(|groups| counted.iter().map(|&i| groups[i]).collect());
        let repeats = match &group {
            // Whoever gives groups has said which rows belong together.
            Some(_) => Repeats::default(),
            None => Repeats::of(&x, &class, data.schema(), equal_rows),
        };
        let weights: Vec<f64> = counted.iter().map(|&i| data.weights()[i]).collect();
        let order = content_order_with(&x, &class, seed, |a, b| {
            let by_group = group.as_ref().map_or(Ordering::Equal, |g| g[a].cmp(&g[b]));
            by_group.then(weights[a].total_cmp(&weights[b]))
        });
        // In this order equal rows stand side by side, those of one weight together.
        let alike = |a: &usize, b: &usize| {
            class[*a] == class[*b]
                && group.as_ref().is_none_or(|group| group[*a] == group[*b])
                && (x.row(*a).iter().zip(x.row(*b)))
                    .all(|(a, b)| a == b || a.is_nan() && b.is_nan())
        };
        let equal_weights = |a: &usize, b: &usize| repeats.are_copies || weights[*a] == weights[*b];
        let cells: Vec<&[usize]> = order.chunk_by(alike).collect();
        let groups: Vec<&[usize]> =
            cells.iter().flat_map(|cell| cell.chunk_by(equal_weights)).collect();
        let merged: Vec<usize> = groups.iter().map(|group| group[0]).collect();
        let origin = (groups.iter())
            .map(|group| group.iter().map(|&i| counted[i]).min().unwrap_or(counted[group[0]]))
            .collect();
        // Summed in ascending order, so that the order of the rows does not change its bits.
        let total = |rows: &&[usize]| rows.iter().map(|&i| weights[i]).sum::<f64>();
        let mut weight: Vec<f64> = groups.iter().map(total).collect();
        // A row that is repeated has one weight there, so that a weight of 2 is the row twice.
        let unit = small_unit(&cells.iter().map(total).collect::<Vec<_>>());
        let copies = (groups.iter())
            .map(|group| if repeats.are_copies { 1 } else { group.len() as u64 })
            .collect();
        let mut x = x.select_rows(&merged);
        let of_merged = |group: Vec<usize>| merged.iter().map(|&i| group[i]).collect::<Vec<_>>();
        let groups = group.map(of_merged);
        check_groups(groups.as_deref())?;
        let class: Vec<usize> = merged.iter().map(|&i| class[i]).collect();
        weight.iter_mut().for_each(|w| *w /= unit);
        let scaler = Scaler::fit(&x, &weight, &data.schema().encoded_kinds());
        let mut totals = vec![0.0; classes.len()];
        class.iter().zip(&weight).for_each(|(&c, w)| totals[c] += w);
        let class_factors = class_weight.factors(&classes, data.classes(), &totals)?;
        let largest_class = totals.iter().copied().fold(0.0, f64::max);
        weight.iter_mut().zip(&class).for_each(|(w, &c)| *w *= class_factors[c]);
        if let Some(bad) = weight.iter().find(|w| !(1e-12..=1e12).contains(*w)) {
            return Err(Error::parameter(
                "weight",
                format!("{bad:e} (sample weight times class weight)"),
                "between 1e-12 and 1e12",
            ));
        }
        scaler.apply_to(&mut x);
        Ok(Self {
            classes,
            x,
            scaler,
            class,
            weight,
            copies,
            repeats: repeats.warning,
            groups,
            origin,
            largest_class,
            class_factors,
        })
    }

    /// Rows that were drawn from more, in their order, standardised as these are.
    pub fn drawn(data: &Dataset, scaler: Scaler, class_factors: &[f64]) -> Self {
        let class = data.y().to_vec();
        let mut totals = vec![0.0; data.classes().len()];
        class.iter().zip(data.weights()).for_each(|(&c, w)| totals[c] += w);
        let weighed = class.iter().zip(data.weights());
        Self {
            classes: data.classes().to_vec(),
            x: scaler.apply(data.x()),
            scaler,
            weight: weighed.map(|(&c, w)| w * class_factors[c]).collect(),
            copies: vec![1; class.len()],
            repeats: None,
            groups: None,
            origin: (0..class.len()).collect(),
            largest_class: totals.iter().copied().fold(0.0, f64::max),
            class_factors: class_factors.to_vec(),
            class,
        }
    }

    /// The rows as learners see them.
    pub fn sample(&self) -> Result<Sample<'_>> {
        let sample = Sample::new(&self.x, &self.class, &self.weight, self.classes.len())?;
        let sample = sample.with_copies(&self.copies).with_scale(&self.scaler.scale);
        let sample = sample.with_class_factors(&self.class_factors);
        Ok(sample.with_groups(self.groups.as_deref()))
    }

    /// The group of each row, if rows belong together.
    pub fn groups(&self) -> Option<&[usize]> {
        self.groups.as_deref()
    }

    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.copies.iter().sum()
    }

    /// Number of observations of a class.
    pub fn count_of(&self, class: usize) -> u64 {
        let rows = self.class.iter().zip(&self.copies);
        rows.filter(|(c, _)| **c == class).map(|(_, copies)| copies).sum()
    }

    /// Whether some class has two rows that differ, so that one can validate the other.
    pub fn has_distinct_rows(&self) -> bool {
        self.class.len() > self.classes.len()
    }

    /// Refuses a fit that would need more than `limit` bytes: for the kernel matrix of all rows and, for each
    /// SVM that is trained at the same time, for `matrices` matrices of the size of its own kernel matrix.
    /// There are `svms` SVMs for each pair of classes, and at most one per thread is trained at a time. On a card there is no
    /// such matrix, and its own memory is looked at where it is used.
    pub fn check_memory(
        &self,
        svms: usize,
        matrices: usize,
        limit: u64,
        watch: &Watch,
    ) -> Result<()> {
        let (n, features) = (self.x.rows(), self.x.cols());
        if watch.card_for(Work { rows: n, cols: n, features }).is_some() {
            return Ok(());
        }
        let mut counts: Vec<u128> = vec![0; self.classes.len()];
        self.class.iter().for_each(|&c| counts[c] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let largest_pair = counts[0] + counts[1];
        let pairs = counts.len() * (counts.len() - 1) / 2;
        let at_once = svms.saturating_mul(pairs).min(rayon::current_num_threads());
        let rows = self.x.rows();
        let squares = (at_once * matrices) as u128 * largest_pair.pow(2);
        let bytes = 8 * ((rows as u128).pow(2) + squares);
        let what = || format!("the kernel matrix of {rows} rows and its factorisation");
        memory::check(what, bytes, limit, Remedy::RaiseMemoryLimit)
    }

    /// What the user should know about the data.
    pub fn warnings(&self, data: &Dataset) -> Vec<String> {
        let names = data.schema().encoded_names();
        let ignored = data.schema().identifiers();
        let constant = constant_columns(&self.scaler, &names);
        let mean = data.weights().iter().sum::<f64>() / data.rows().max(1) as f64;
        let heavy = (mean > LARGE_MEAN_WEIGHT).then(|| {
            format!(
                "the sample weights are {mean:.0} on average, and a row of weight 2 counts as two rows: if your weights are not such counts, divide them by their mean"
            )
        });
        let in_one_group = |c: usize| {
            let groups = self.groups.as_ref()?;
            let mut own = groups.iter().zip(&self.class).filter(|(_, class)| **class == c);
            let (first, _) = own.next()?;
            own.all(|(group, _)| group == first).then(|| {
                format!(
                    "class {} occurs in a single group, so the error on this class in other groups cannot be measured",
                    self.classes[c]
                )
            })
        };
        let alone = (0..self.classes.len()).filter_map(in_one_group);
        let repeats = self.repeats.clone();
        ignored.into_iter().chain(repeats).chain(constant).chain(heavy).chain(alone).collect()
    }
}

/// What weights are divided by: their mean over distinct rows if that is below one. C is searched within bounds that suit
/// weights of about one, and the weights of a table often add up to one. Counts, and so rows that are repeated, have a
/// mean of one at least and stay as they are; a repeated row has one weight here, so that a weight still is a repetition.
pub(crate) fn small_unit(weights: &[f64]) -> f64 {
    let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
    if mean > 0.0 && mean < 1.0 { mean } else { 1.0 }
}

/// Weights of a mean above this are worth a word.
const LARGE_MEAN_WEIGHT: f64 = 1000.0;

/// Of more columns than this that are left out, one line says how many there are.
const NAMED_COLUMNS: usize = 5;

/// Which columns were left out because they are constant.
pub(crate) fn constant_columns(scaler: &Scaler, names: &[String]) -> Vec<String> {
    let constant: Vec<&str> = scaler.constant().map(|k| names[k].as_str()).collect();
    match constant.len() {
        ..=NAMED_COLUMNS => (constant.iter())
            .map(|name| format!("column {name} is constant and was left out"))
            .collect(),
        count => {
            let named = constant[..NAMED_COLUMNS].join(", ");
            vec![format!("{count} columns are constant and were left out: {named}, ...")]
        }
    }
}

/// Refuses a single group: nothing would be left to validate with.
fn check_groups(groups: Option<&[usize]>) -> Result<()> {
    match groups {
        Some([first, rest @ ..]) if rest.iter().all(|group| group == first) => {
            Err(Error::Data {
                what: "all rows belong to one group, so no rows are left for validation; at least two groups are needed"
                    .to_owned(),
                remedy: None,
            })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(x: &[f64], class: &[&str], weight: &[f64]) -> TrainingRows {
        let x = Matrix::new(x.len(), 1, x.to_vec()).unwrap();
        let data = Dataset::new(x, class).unwrap().with_weights(weight.to_vec()).unwrap();
        TrainingRows::new(&data, &ClassWeight::None, EqualRows::Auto, 0).unwrap()
    }

    /// Copies and weight of each row, by the first of the rows that it stands for.
    fn copies(rows: &TrainingRows) -> Vec<(usize, u64, f64)> {
        let all = rows.origin.iter().zip(&rows.copies).zip(&rows.weight);
        let mut all: Vec<_> =
            all.map(|((origin, copies), weight)| (*origin, *copies, *weight)).collect();
        all.sort_by_key(|(origin, ..)| *origin);
        all
    }

    /// Rows are merged with others of their weight, and a weight is no number of rows.
    #[test]
    fn equal_rows_of_one_weight_are_merged() {
        let (x, class) = ([1.0, 2.0, 1.0, 1.0, 3.0], ["a", "b", "a", "b", "b"]);
        // The first and the third are equal; the fourth has another label.
        let plain = rows(&x, &class, &[1.0; 5]);
        assert_eq!(copies(&plain), [(0, 2, 2.0), (1, 1, 1.0), (3, 1, 1.0), (4, 1, 1.0)]);
        assert_eq!(plain.count(), 5);
        let weighted = rows(&x, &class, &[2.0, 3.0, 1.0, 0.0, 1.0]);
        assert_eq!(copies(&weighted), [(0, 1, 2.0), (1, 1, 3.0), (2, 1, 1.0), (4, 1, 1.0)]);
        assert_eq!(weighted.count(), 4);
        let fractions = rows(&x, &class, &[2.5, 4.0, 2.5, 3.0, 1.0]);
        assert_eq!(copies(&fractions), [(0, 2, 5.0), (1, 1, 4.0), (3, 1, 3.0), (4, 1, 1.0)]);
    }

    /// Weights that add up to one, say, are made to count as rows do; counts are not touched.
    #[test]
    fn small_weights_are_relative_to_their_mean() {
        let (x, class) = ([1.0, 2.0, 1.0, 3.0], ["a", "b", "a", "b"]);
        let weight = |w: &[f64]| rows(&x, &class, w).weight;
        assert_eq!(weight(&[0.25, 0.25, 0.25, 0.25]).iter().sum::<f64>(), 3.0);
        // A weight of 0.75 and one of 0.25 are the row four times.
        let (once, twice) = (weight(&[0.5, 0.25, 0.5, 0.25]), weight(&[0.75, 0.25, 0.25, 0.25]));
        assert_eq!(once.iter().sum::<f64>(), twice.iter().sum::<f64>());
        let (tiny, small) = (weight(&[2e-9, 1e-9, 1e-9, 1e-9]), weight(&[0.2, 0.1, 0.1, 0.1]));
        assert!(tiny.iter().zip(&small).all(|(a, b)| (a - b).abs() < 1e-12), "{tiny:?}");
        let mut kept = weight(&[1.0, 2.0, 4.0, 1.0]);
        kept.sort_by(f64::total_cmp);
        assert_eq!(kept, [1.0, 1.0, 2.0, 4.0]);
    }

    #[test]
    fn many_constant_columns_are_one_line() {
        let names: Vec<String> = (0..1000).map(|k| format!("c{k}")).collect();
        let x = Matrix::from_fn(4, 1000, |i, k| if k == 0 { i as f64 } else { 7.0 });
        let kinds = vec![crate::data::Encoded::Number; 1000];
        let scaler = |x: &Matrix, kinds: &[_]| Scaler::fit(x, &[1.0; 4], kinds);
        let words = constant_columns(&scaler(&x, &kinds), &names);
        assert_eq!(words, ["999 columns are constant and were left out: c1, c2, c3, c4, c5, ..."]);
        let two = Matrix::from_fn(4, 2, |i, k| x[(i, k)]);
        let words = constant_columns(&scaler(&two, &kinds[..2]), &names);
        assert_eq!(words, ["column c1 is constant and was left out"]);
        let one = Matrix::from_fn(4, 1, |i, _| i as f64);
        assert!(constant_columns(&scaler(&one, &kinds[..1]), &names).is_empty());
    }

    /// Class weights change what rows count, not how many there are.
    #[test]
    fn class_weights_make_no_copies() {
        let x = Matrix::new(4, 1, vec![1.0, 2.0, 1.0, 3.0]).unwrap();
        let data = Dataset::new(x, &["a", "b", "a", "a"]).unwrap();
        let balanced =
            TrainingRows::new(&data, &ClassWeight::Balanced, EqualRows::Auto, 0).unwrap();
        let total: f64 = balanced.weight.iter().sum();
        assert!((total - 4.0).abs() < 1e-12);
        assert_eq!(balanced.count(), 4);
    }

    /// The parts that rows are dealt into have their weight together, also where copies are in several.
    #[test]
    fn parts_add_up_to_the_whole() {
        use crate::data::folds::{halves, k_folds, train_valid_stop};
        let x: Vec<f64> = (0..20).map(|i| f64::from(i % 9)).collect();
        let class: Vec<&str> = (0..20).map(|i| ["a", "b"][i % 2]).collect();
        let weight: Vec<f64> = (0..20).map(|i| f64::from(1 + i % 4)).collect();
        let rows = rows(&x, &class, &weight);
        let sample = rows.sample().unwrap();
        let check = |parts: &[&super::super::folds::Part]| {
            let mut sums = vec![0.0; sample.rows()];
            for part in parts {
                let labelled = sample.part(part);
                let selected = sample.select(part);
                let owned = selected.sample().unwrap();
                assert_eq!((owned.class(), owned.weight()), (&*labelled.class, &*labelled.weight));
                for (&row, weight) in labelled.index.iter().zip(&labelled.weight) {
                    assert!(*weight > 0.0);
                    sums[row] += weight;
                }
            }
            for (sum, weight) in sums.iter().zip(sample.weight()) {
                assert!((sum - weight).abs() < 1e-12);
            }
        };
        for fold in k_folds(sample.dealt(), 3) {
            check(&[&fold.train, &fold.valid]);
        }
        let folds = k_folds(sample.dealt(), 4);
        check(&folds.iter().map(|fold| &fold.valid).collect::<Vec<_>>());
        let half = halves(sample.dealt());
        check(&[&half.train, &half.valid]);
        let split = train_valid_stop(sample.dealt());
        check(&[&split.train, &split.valid, &split.stop]);
    }
}
