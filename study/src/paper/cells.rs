//! From single results to means: what a cell of the tables is made of.

use svml::internals::{UCI_SETS, UciSet};

use crate::jobs::{Job, Measured, Table};
use crate::statistics::{Mean, student};

use super::plan::{FIRST_SEED, splits, training_rows};

/// Results of one method on one data set, by split.
pub struct Cell<'t> {
    set: &'static UciSet,
    of: Vec<Option<&'t Measured>>,
}

/// A difference between two methods on the same splits.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// In shares.
    pub mean: Mean,
    /// Splits.
    pub count: usize,
}

impl Difference {
    /// Half of the 95 % interval.
    pub fn half_width(self) -> f64 {
        // A single split has its error from the number of test rows, which is large.
        let factor = if self.count == 1 { 1.96 } else { student(self.count) };
        factor * self.mean.error
    }

    /// Whether it differs from zero at the 5 % level.
    pub fn is_significant(self) -> bool {
        self.mean.mean.abs() > self.half_width()
    }
}

/// Standard error of a share that is seen once, on this many rows.
fn binomial(share: f64, rows: usize) -> f64 {
    (share * (1.0 - share) / rows as f64).sqrt()
}

impl<'t> Cell<'t> {
    /// Collects the results that are there.
    pub fn new(table: &'t Table, set: &'static UciSet, method: &str) -> Self {
        let job =
            |k| Job { data: set.name.to_owned(), seed: FIRST_SEED + k, method: method.to_owned() };
        Self { set, of: (0..splits(set)).map(|k| table.get(&job(k))).collect() }
    }

    fn there(&self) -> impl Iterator<Item = &'t Measured> {
        self.of.iter().flatten().copied()
    }

    /// Number of splits.
    pub fn count(&self) -> usize {
        self.there().count()
    }

    fn test_rows(&self) -> usize {
        self.set.rows - training_rows(self.set)
    }

    /// Mean error; of a single split, its standard error is that of a share of the test rows.
    pub fn error(&self) -> Option<Mean> {
        let errors: Vec<f64> = self.there().map(|m| m.error).collect();
        match errors.as_slice() {
            [] => None,
            [one] => Some(Mean { mean: *one, error: binomial(*one, self.test_rows()) }),
            several => Some(Mean::of(several)),
        }
    }

    /// Mean processor seconds of a fit.
    pub fn seconds(&self) -> Option<f64> {
        let seconds: Vec<f64> = self.there().filter_map(|m| m.processor).collect();
        (!seconds.is_empty()).then(|| seconds.iter().sum::<f64>() / seconds.len() as f64)
    }

    /// Processor seconds of all fits.
    pub fn total_seconds(&self) -> f64 {
        // An empty sum is -0.
        self.there().filter_map(|m| m.processor).sum::<f64>() + 0.0
    }

    /// How many times as long this takes as the other, on the splits where both are there.
    pub fn times_as_long_as(&self, other: &Self) -> Option<f64> {
        let processor = |m: &Option<&Measured>| m.and_then(|m| m.processor);
        let both = (self.of.iter().zip(&other.of))
            .filter_map(|(a, b)| Some((processor(a)?, processor(b)?)));
        let (mut own, mut others) = (0.0, 0.0);
        both.for_each(|(a, b)| {
            own += a;
            others += b;
        });
        (others > 0.0).then(|| own / others)
    }

    /// The forms that were chosen, and how often, the most frequent first.
    pub fn forms(&self) -> Vec<(String, usize)> {
        let mut forms: Vec<(String, usize)> = Vec::new();
        for m in self.there() {
            match forms.iter_mut().find(|(form, _)| *form == m.form) {
                Some((_, count)) => *count += 1,
                None => forms.push((m.form.clone(), 1)),
            }
        }
        forms.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        forms
    }

    /// Error of this less that of the other, split by split, where both are there.
    pub fn minus(&self, other: &Self) -> Option<Difference> {
        let both =
            self.of.iter().zip(&other.of).filter_map(|(a, b)| Some((*a)?.error - (*b)?.error));
        let differences: Vec<f64> = both.collect();
        let mean = match differences.as_slice() {
            [] => return None,
            [one] => {
                // As if they were independent: too wide rather than too narrow.
                let error = |cell: &Self| cell.error().map_or(0.0, |mean| mean.error);
                Mean { mean: *one, error: error(self).hypot(error(other)) }
            }
            several => Mean::of(several),
        };
        Some(Difference { mean, count: differences.len() })
    }
}

/// All cells of a row.
pub fn row<'t>(table: &'t Table, method: &str) -> Vec<Cell<'t>> {
    UCI_SETS.iter().map(|set| Cell::new(table, set, method)).collect()
}

/// The mean over data sets of what has a mean in each; splits of different sets are independent.
pub fn over_sets(means: &[Option<Mean>]) -> Option<Mean> {
    let n = means.len() as f64;
    let all: Vec<Mean> = means.iter().copied().collect::<Option<_>>()?;
    Some(Mean {
        mean: all.iter().map(|m| m.mean).sum::<f64>() / n,
        error: all.iter().map(|m| m.error.powi(2)).sum::<f64>().sqrt() / n,
    })
}
