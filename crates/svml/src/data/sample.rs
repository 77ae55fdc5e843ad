//! What learners see: standardised rows with their classes and weights; and selections of these rows, among
//! them the rows of a pair of classes.

use super::folds::{Dealt, Part};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::watch::Key;

/// Rows of each class in a selection of some rows, if the class has that many.
const LEAST_OF_CLASS: usize = 50;

/// What a learner learns from: standardised rows with their classes and weights. [`Sample::new`] has checked
/// that there are as many classes and weights as rows. In the fit of a model, the order of the rows does not
/// depend on that of the data.
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    x: &'a Matrix,
    class: &'a [usize],
    weight: &'a [f64],
    /// Equal observations that each row stands for; none: one of each.
    copies: Option<&'a [u64]>,
    /// Group that each row belongs to; none: every row is one of its own.
    groups: Option<&'a [usize]>,
    /// What the features were divided by when they were standardised; none: nothing.
    scale: Option<&'a [f64]>,
    /// The factor of each class that is in the weights of its rows; none: one.
    class_factors: Option<&'a [f64]>,
    classes: usize,
}

impl<'a> Sample<'a> {
    /// A sample of the rows of `x`. Each row has a class, a number below `classes`, and a positive weight.
    pub fn new(
        x: &'a Matrix,
        class: &'a [usize],
        weight: &'a [f64],
        classes: usize,
    ) -> Result<Self> {
        let (n, d) = (x.rows(), x.cols());
        if n == 0 {
            return Err(Error::NoRows(" to learn from".to_owned()));
        }
        let known = class.iter().filter(|class| **class < classes).count();
        let weighed = weight.iter().filter(|w| w.is_finite() && **w > 0.0).count();
        let counts = [
            ("columns to learn from", d, d.max(1)),
            ("classes of the rows", class.len(), n),
            ("rows of a class that exists", known, n),
            ("sample weights", weight.len(), n),
            ("positive sample weights", weighed, n),
            ("classes to learn from", classes, classes.max(2)),
        ];
        match counts.into_iter().find(|(_, found, expected)| found != expected) {
            Some((what, found, expected)) => {
                Err(Error::Shape { what: what.to_owned(), found, expected })
            }
            None => Ok(Self {
                x,
                class,
                weight,
                copies: None,
                groups: None,
                scale: None,
                class_factors: None,
                classes,
            }),
        }
    }

    /// The same rows, each standing for so many equal observations of equal weight. These are dealt into folds one by one, so
    /// that a row may be validated by one that equals it, as a new row may equal an old one.
    pub(crate) fn with_copies(self, copies: &'a [u64]) -> Self {
        Self { copies: Some(copies), ..self }
    }

    /// The same rows, of which those of a group are always dealt into the same fold.
    pub(crate) fn with_groups(self, groups: Option<&'a [usize]>) -> Self {
        Self { groups, ..self }
    }

    /// The group of each row, if rows belong together.
    pub(crate) fn groups(&self) -> Option<&'a [usize]> {
        self.groups
    }

    /// The same rows, whose features were divided by these scales.
    pub(crate) fn with_scale(self, scale: &'a [f64]) -> Self {
        Self { scale: Some(scale), ..self }
    }

    /// The same rows, whose weights contain these factors of their classes.
    pub(crate) fn with_class_factors(self, factors: &'a [f64]) -> Self {
        Self { class_factors: Some(factors), ..self }
    }

    /// The factor of each class that is in the weights of its rows, if there are any.
    pub(crate) fn class_factors(&self) -> Option<&'a [f64]> {
        self.class_factors
    }

    /// What the features were divided by, if they were.
    pub(crate) fn scale(&self) -> Option<&'a [f64]> {
        self.scale
    }

    /// How many equal observations a row stands for.
    pub(crate) fn copies(&self, row: usize) -> u64 {
        self.copies.map_or(1, |copies| copies[row])
    }

    /// The share of the weight of each row that one of its observations has.
    pub(crate) fn shares(&self) -> Vec<f64> {
        (0..self.rows()).map(|row| 1.0 / self.copies(row) as f64).collect()
    }

    /// How the rows are dealt into folds.
    pub(crate) fn dealt(&self) -> Dealt<'a> {
        Dealt { class: self.class, copies: self.copies, groups: self.groups }
    }

    /// The rows. // (n, d)
    pub fn x(&self) -> &'a Matrix {
        self.x
    }

    /// The class of each row, below [`Sample::classes`].
    pub fn class(&self) -> &'a [usize] {
        self.class
    }

    /// The weight of each row, positive.
    pub fn weight(&self) -> &'a [f64] {
        self.weight
    }

    /// Number of classes, at least 2.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.x.rows()
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.x.cols()
    }

    /// All that is learned from, in a key.
    pub(crate) fn key(&self) -> Key {
        let key = Key::new("sample").places(&[self.x.rows(), self.x.cols(), self.classes]);
        let key = key.numbers(self.x.as_slice()).places(self.class).numbers(self.weight);
        let key = key.numbers(self.scale.unwrap_or_default());
        let copies = self.copies.unwrap_or_default().iter().map(|&copies| copies as usize);
        key.places(&copies.collect::<Vec<_>>()).places(self.groups.unwrap_or_default())
    }

    /// The same sample with the mapped rows `z` in place of its rows. // z: (n, any)
    pub(crate) fn mapped<'z>(&self, z: &'z Matrix) -> Sample<'z>
    where
        'a: 'z,
    {
        Sample { x: z, scale: None, ..*self }
    }

    /// All rows, with their own row indices.
    pub(crate) fn all(&self) -> LabelledRows {
        let (index, class, weight) =
            ((0..self.rows()).collect(), self.class.to_vec(), self.weight.to_vec());
        LabelledRows { index, class, weight }
    }

    /// Some of the rows, numbered as they are, each with the weight of the observations that are there.
    pub(crate) fn part(&self, part: &Part) -> LabelledRows {
        let share = |(&i, &copies): (&usize, &u64)| match self.copies(i) {
            all if all != copies => self.weight[i] * (copies as f64 / all as f64),
            _ => self.weight[i],
        };
        LabelledRows {
            index: part.rows.clone(),
            class: part.rows.iter().map(|&i| self.class[i]).collect(),
            weight: part.rows.iter().zip(&part.copies).map(share).collect(),
        }
    }

    /// About `count` of the rows, at random and by class, at least [`LEAST_OF_CLASS`] of each class that has them.
    pub(crate) fn some(&self, count: usize) -> OwnedSample {
        let mut sizes = vec![0_usize; self.classes];
        self.class.iter().for_each(|&class| sizes[class] += 1);
        let share =
            |size: usize| (size as f64 * (count as f64 / self.rows() as f64)).ceil() as usize;
        let mut left: Vec<usize> =
            sizes.iter().map(|&size| share(size).max(LEAST_OF_CLASS).min(size)).collect();
        // The order of the rows is random: the first of each class will do.
        let taken = |row: &usize| {
            let left = &mut left[self.class[*row]];
            let taken = *left > 0;
            *left -= usize::from(taken);
            taken
        };
        let rows: Vec<usize> = (0..self.rows()).filter(taken).collect();
        let copies = rows.iter().map(|&row| self.copies(row)).collect();
        self.select(&Part { rows, copies })
    }

    /// The first rows.
    pub(crate) fn first(&self, count: usize) -> OwnedSample {
        let rows: Vec<usize> = (0..count).collect();
        let copies = rows.iter().map(|&row| self.copies(row)).collect();
        self.select(&Part { rows, copies })
    }

    /// Some of the rows as rows of their own.
    pub(crate) fn select(&self, part: &Part) -> OwnedSample {
        let LabelledRows { class, weight, .. } = self.part(part);
        let x = self.x.select_rows(&part.rows);
        let groups = self.groups.map(|groups| part.rows.iter().map(|&i| groups[i]).collect());
        let (copies, scale) = (part.copies.clone(), self.scale.map(<[f64]>::to_vec));
        OwnedSample { x, class, weight, copies, groups, scale, classes: self.classes }
    }
}

/// Rows that are not borrowed.
pub(crate) struct OwnedSample {
    x: Matrix,
    class: Vec<usize>,
    weight: Vec<f64>,
    copies: Vec<u64>,
    groups: Option<Vec<usize>>,
    scale: Option<Vec<f64>>,
    classes: usize,
}

impl OwnedSample {
    /// The class and the copies of each row.
    pub fn dealt(&self) -> impl Iterator<Item = (usize, u64)> {
        self.class.iter().copied().zip(self.copies.iter().copied())
    }

    /// The rows as learners see them.
    pub fn sample(&self) -> Result<Sample<'_>> {
        let sample = Sample::new(&self.x, &self.class, &self.weight, self.classes)?;
        let sample = sample.with_copies(&self.copies).with_groups(self.groups.as_deref());
        Ok(Sample { scale: self.scale.as_deref(), ..sample })
    }
}

/// Rows of a kernel matrix with their classes and weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelledRows {
    /// Row indices, ascending.
    pub index: Vec<usize>,
    /// Class of each.
    pub class: Vec<usize>,
    /// Weight of each, positive.
    pub weight: Vec<f64>,
}

impl LabelledRows {
    /// The same rows, numbered from `first`.
    pub fn numbered_from(mut self, first: usize) -> Self {
        self.index = (first..first + self.index.len()).collect();
        self
    }

    /// The rows from one position up to another.
    pub fn range(&self, range: std::ops::Range<usize>) -> Self {
        Self {
            index: self.index[range.clone()].to_vec(),
            class: self.class[range.clone()].to_vec(),
            weight: self.weight[range].to_vec(),
        }
    }

    /// The rows of classes i and j, with the label -1 for class i and +1 for class j.
    pub fn of_pair(&self, (i, j): (usize, usize)) -> PairRows {
        let mut rows = PairRows::default();
        for (p, &class) in self.class.iter().enumerate() {
            if class == i || class == j {
                rows.index.push(self.index[p]);
                rows.y.push(if class == j { 1.0 } else { -1.0 });
                rows.weight.push(self.weight[p]);
            }
        }
        rows
    }

    /// The rows of every pair of so many classes.
    pub fn of_pairs(&self, classes: usize) -> Vec<PairRows> {
        pairs(classes).into_iter().map(|pair| self.of_pair(pair)).collect()
    }
}

/// Rows with labels +-1 and weights: what the SVM of one pair of classes sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairRows {
    /// Row indices, ascending.
    pub index: Vec<usize>,
    /// +1 or -1 for each.
    pub y: Vec<f64>,
    /// Weight of each, positive.
    pub weight: Vec<f64>,
}

/// The pairs (i, j) of classes with i < j, in the order (0, 1), (0, 2), .., (1, 2), ..
pub fn pairs(classes: usize) -> Vec<(usize, usize)> {
    (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_without_rows_or_with_odd_weights_are_refused() {
        let x = Matrix::from_fn(3, 2, |i, k| (i + k) as f64);
        let of = |weight: [f64; 3]| Sample::new(&x, &[0, 1, 0], &weight, 2).map(|_| ());
        assert!(of([1.0, 2.0, 0.5]).is_ok());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = of([1.0, bad, 1.0]).unwrap_err().to_string();
            assert!(error.contains("positive sample weights"), "{bad}: {error}");
        }
        let none = Matrix::zeros(0, 2);
        let error = Sample::new(&none, &[], &[], 2).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NoRows(_)), "{error}");
    }
}
