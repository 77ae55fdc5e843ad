//! Standardisation: before learning, missing values are filled and every column gets mean 0 and standard
//! deviation 1. Fills, means and deviations come from the training rows and are kept in the model.

use serde::{Deserialize, Serialize};

use super::Encoded;
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::parallel;

/// Standardised values are clamped to +-this. Kernel values at such distances are zero anyway, and with
/// this bound and the one on the entries of a metric no squared distance overflows.
const FAR: f64 = 1e70;

/// Fill, mean, scale and range of every encoded column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Scaler {
    /// Takes the place of a missing value: the mean of numbers, the most frequent category otherwise.
    pub fill: Vec<f64>,
    /// The mean, which is subtracted. It cancels in distances and only keeps the numbers small.
    pub mean: Vec<f64>,
    /// Standard deviation (of the population), which the value is divided by; 0 marks a column
    /// that was constant in training and is left out.
    pub scale: Vec<f64>,
    /// The least value in training; models of former versions do not know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low: Vec<f64>,
    /// The largest value in training; models of former versions do not know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub high: Vec<f64>,
}

impl Scaler {
    /// Computes them from the rows of `x`, each counted with its weight; missing values are NaN.
    ///
    /// # Panics
    ///
    /// If there are fewer `kinds` than columns.
    pub fn fit(x: &Matrix, weights: &[f64], kinds: &[Encoded]) -> Self {
        let column = |k: usize| x.col(k).zip(weights.iter().copied());
        let mut fill: Vec<f64> = (0..x.cols())
            .map(|k| match kinds[k] {
                Encoded::Code => most_frequent(column(k)),
                _ => mean(column(k)),
            })
            .collect();
        fill_indicators(&mut fill, kinds);
        let filled = |k: usize| {
            let fill = fill[k];
            column(k).map(move |(v, w)| (if v.is_nan() { fill } else { v }, w))
        };
        let (mut means, mut scales) = (Vec::new(), Vec::new());
        let (mut lows, mut highs) = (Vec::new(), Vec::new());
        for k in 0..x.cols() {
            let (low, high) = filled(k)
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (v, _)| (l.min(v), h.max(v)));
            lows.push(finite(low));
            highs.push(finite(high));
            if low >= high {
                means.push(finite(low));
                scales.push(0.0);
                continue;
            }
            // In units of the largest value, so that squares neither overflow nor vanish.
            let unit = low.abs().max(high.abs());
            let centre = mean(filled(k).map(|(v, w)| (v / unit, w)));
            let variance = mean(filled(k).map(|(v, w)| ((v / unit - centre).powi(2), w)));
            means.push(centre * unit);
            scales.push(variance.sqrt() * unit);
        }
        share_scale(&mut scales, kinds);
        Self { fill, mean: means, scale: scales, low: lows, high: highs }
    }

    /// The same from what the columns of rows hold that lie in several places: `most_frequent` is the code that takes the
    /// place of a missing one, and `moments` gives the weight, the sum and the sum of squares of each column in units of
    /// the first list from the second, missing values being the third.
    pub(crate) fn of_sums(
        (low, high): (&[f64], &[f64]),
        most_frequent: &[Option<f64>],
        kinds: &[Encoded],
        mut moments: impl FnMut(&[f64], &[f64], &[f64]) -> Result<Vec<Vec<f64>>>,
    ) -> Result<Self> {
        let d = low.len();
        // In units of the largest value, so that squares neither overflow nor vanish.
        let unit: Vec<f64> = (low.iter().zip(high))
            .map(|(low, high)| low.abs().max(high.abs()))
            .map(|unit| if unit > 0.0 && unit.is_finite() { unit } else { 1.0 })
            .collect();
        let means = |sums: &[Vec<f64>], place: usize| -> Vec<f64> {
            let mean = |(total, sum): (&f64, &f64)| if *total > 0.0 { sum / total } else { 0.0 };
            sums[0].iter().zip(&sums[place]).map(mean).collect()
        };
        let (zero, missing) = (vec![0.0; d], vec![f64::NAN; d]);
        let known = means(&moments(&unit, &zero, &missing)?, 1);
        let mut fill: Vec<f64> = (0..d)
            .map(|k| match kinds[k] {
                Encoded::Code => most_frequent[k].unwrap_or(0.0),
                _ => known[k] * unit[k],
            })
            .collect();
        fill_indicators(&mut fill, kinds);
        let centre = means(&moments(&unit, &zero, &fill)?, 1);
        let sums = moments(&unit, &centre, &fill)?;
        let (left, squares) = (means(&sums, 1), means(&sums, 2));
        let (mut mean, mut scale) = (Vec::new(), Vec::new());
        let (mut lows, mut highs) = (Vec::new(), Vec::new());
        for k in 0..d {
            let (low, high) = (low[k].min(fill[k]), high[k].max(fill[k]));
            lows.push(finite(low));
            highs.push(finite(high));
            if low >= high {
                mean.push(finite(low));
                scale.push(0.0);
                continue;
            }
            mean.push(centre[k] * unit[k]);
            scale.push((squares[k] - left[k] * left[k]).max(0.0).sqrt() * unit[k]);
        }
        share_scale(&mut scale, kinds);
        Ok(Self { fill, mean, scale, low: lows, high: highs })
    }

    /// Fills and standardises. A column that was constant in training becomes 0, whatever it holds now.
    pub fn apply(&self, x: &Matrix) -> Matrix {
        let mut out = x.clone();
        self.apply_to(&mut out);
        out
    }

    /// The same in place.
    pub(crate) fn apply_to(&self, x: &mut Matrix) {
        /// Numbers of a task.
        const TASK: usize = 1 << 12;
        let width = x.cols().max(1);
        let rows_per_task = TASK.div_ceil(width);
        parallel::for_each(x.as_mut_slice().chunks_mut(rows_per_task * width), |rows| {
            for row in rows.chunks_mut(width) {
                for (k, v) in row.iter_mut().enumerate() {
                    let value = if v.is_nan() { self.fill[k] } else { *v };
                    let scale = self.scale[k];
                    *v = if scale > 0.0 {
                        ((value - self.mean[k]) / scale).clamp(-FAR, FAR)
                    } else {
                        0.0
                    };
                }
            }
        });
    }

    /// Indices of the columns that were constant in training.
    pub fn constant(&self) -> impl Iterator<Item = usize> {
        self.scale.iter().enumerate().filter(|(_, s)| **s == 0.0).map(|(k, _)| k)
    }

    /// Checks that numbers read from a model file are ones that [`Scaler::fit`] can give.
    pub(crate) fn validate(&self, width: usize) -> Result<()> {
        let Self { fill, mean, scale, low, high } = self;
        let all = [("fill", fill), ("mean", mean), ("scale", scale), ("low", low), ("high", high)];
        // Models of former versions do not know the range.
        let known = if low.is_empty() && high.is_empty() { 3 } else { 5 };
        for (name, values) in &all[..known] {
            if values.len() != width {
                return Err(Error::ModelFile(format!(
                    "'{name}' has {} values, but there are {width} columns",
                    values.len()
                )));
            }
            if let Some(bad) = values.iter().find(|v| !v.is_finite()) {
                return Err(Error::ModelFile(format!("'{name}' holds {bad}, which is not finite")));
            }
        }
        if let Some((low, high)) = low.iter().zip(high).find(|(low, high)| low > high) {
            return Err(Error::ModelFile(format!("'low' holds {low}, above {high} of 'high'")));
        }
        match self.scale.iter().find(|s| **s < 0.0) {
            Some(bad) => Err(Error::ModelFile(format!("'scale' holds {bad}, which is negative"))),
            None => Ok(()),
        }
    }
}

/// An end of a range; 0 for that of no rows.
fn finite(end: f64) -> f64 {
    if end.is_finite() { end } else { 0.0 }
}

/// Weighted mean of the values that are not missing; 0 if all are missing.
fn mean(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    // The mean is updated value by value, because a sum of large numbers could overflow.
    let (mut mean, mut total) = (0.0, 0.0);
    for (v, weight) in values.filter(|(v, w)| !v.is_nan() && *w > 0.0) {
        total += weight;
        mean += (v - mean) * (weight / total);
    }
    mean
}

/// The most frequent value (by total weight) of those that are not missing, the smallest one in a tie;
/// 0 if all are missing.
fn most_frequent(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut sorted: Vec<(f64, f64)> = values.filter(|(v, _)| !v.is_nan()).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let groups = sorted.chunk_by(|a, b| a.0 == b.0);
    let weighed = groups.map(|group| (group[0].0, group.iter().map(|(_, w)| w).sum::<f64>()));
    weighed.fold((0.0, 0.0), |best, group| if group.1 > best.1 { group } else { best }).0
}

/// Gives the indicator columns of one categorical column one scale, the root of the sum of their variances, so that the
/// column counts in distances like a column of numbers, however many categories it has.
fn share_scale(scales: &mut [f64], kinds: &[Encoded]) {
    let mut start = 0;
    while start < kinds.len() {
        let end = start + kinds[start..].iter().take_while(|k| **k == kinds[start]).count();
        if let Encoded::Indicator { .. } = kinds[start] {
            let group = &mut scales[start..end];
            let shared = group.iter().map(|scale| scale * scale).sum::<f64>().sqrt();
            group.iter_mut().filter(|scale| **scale > 0.0).for_each(|scale| *scale = shared);
        }
        start = end;
    }
}

/// Sets the fills of the indicator columns of each categorical column to 1 for its most frequent category
/// and to 0 for the others. On entry the fills are the means of the columns, that is, the shares of the
/// categories.
fn fill_indicators(fill: &mut [f64], kinds: &[Encoded]) {
    let mut start = 0;
    while start < kinds.len() {
        let end = start + kinds[start..].iter().take_while(|k| **k == kinds[start]).count();
        if let Encoded::Indicator { .. } = kinds[start] {
            let group = &mut fill[start..end];
            let top = group.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let first = group.iter().position(|v| *v == top);
            group.iter_mut().enumerate().for_each(|(i, v)| {
                *v = if Some(i) == first { 1.0 } else { 0.0 };
            });
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;
    const ONES: [f64; 4] = [1.0; 4];

    #[test]
    fn standardises_and_fills() {
        let x = Matrix::from_rows(&[[1.0, 5.0, 2.0], [3.0, 5.0, 0.0], [NAN, 5.0, 2.0]]).unwrap();
        let scaler = Scaler::fit(&x, &ONES, &[Encoded::Number, Encoded::Number, Encoded::Code]);
        assert_eq!(scaler.fill, [2.0, 5.0, 2.0]);
        assert_eq!(
            (&scaler.low[..], &scaler.high[..]),
            (&[1.0, 5.0, 0.0][..], &[3.0, 5.0, 2.0][..])
        );
        assert_eq!(scaler.constant().collect::<Vec<_>>(), [1]);
        let out = scaler.apply(&x);
        let expected = 1.5f64.sqrt();
        assert!((out[(0, 0)] + expected).abs() < 1e-15 && (out[(1, 0)] - expected).abs() < 1e-15);
        assert_eq!(out[(2, 0)], 0.0);
        // A column that was constant in training has no effect even if new rows differ in it.
        let new = Matrix::from_rows(&[[1.0, 77.0, 2.0]]).unwrap();
        assert_eq!(scaler.apply(&new)[(0, 1)], 0.0);
    }

    #[test]
    fn a_missing_category_becomes_the_most_frequent() {
        let group = |column| Encoded::Indicator { column };
        let x = Matrix::from_rows(&[
            [0.0, 1.0, 1.0, 0.0],
            [1.0, 0.0, 0.0, 1.0],
            [0.0, 1.0, NAN, NAN],
            [NAN, NAN, 0.0, 1.0],
        ])
        .unwrap();
        let scaler = Scaler::fit(&x, &ONES, &[group(0), group(0), group(1), group(1)]);
        assert_eq!(scaler.fill, [0.0, 1.0, 0.0, 1.0]);
    }

    #[test]
    fn a_weight_counts_as_repetition() {
        let kinds = [Encoded::Number, Encoded::Code];
        let once = Matrix::from_rows(&[[1.0, 5.0], [2.0, 7.0], [NAN, 5.0], [9.0, NAN]]).unwrap();
        let twice = Matrix::from_rows(&[
            [1.0, 5.0],
            [2.0, 7.0],
            [2.0, 7.0],
            [2.0, 7.0],
            [NAN, 5.0],
            [9.0, NAN],
        ]);
        let a = Scaler::fit(&once, &[1.0, 3.0, 1.0, 1.0], &kinds);
        let b = Scaler::fit(&twice.unwrap(), &[1.0; 6], &kinds);
        assert_eq!(a.fill[1], 7.0);
        for (a, b) in [(&a.fill, &b.fill), (&a.mean, &b.mean), (&a.scale, &b.scale)] {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14), "{a:?} {b:?}");
        }
    }

    #[test]
    fn extreme_magnitudes_survive() {
        for unit in [1e300, 1e150, 1e-150, 5e-324, 1e-310] {
            let x = Matrix::from_rows(&[[-unit], [unit], [3.0 * unit]]).unwrap();
            let out = Scaler::fit(&x, &ONES, &[Encoded::Number]).apply(&x);
            assert!(out.as_slice().iter().all(|v| v.abs() < 2.5), "{unit:e}: {out:?}");
            assert!(out[(2, 0)] > out[(1, 0)] && out[(1, 0)] > out[(0, 0)], "{unit:e}");
        }
    }

    /// What is found from sums over rows that lie elsewhere is what is found from the rows: with gaps, constant columns,
    /// and columns of zeros or of nothing.
    #[test]
    fn sums_give_the_scaler_of_the_rows() {
        let x = Matrix::from_rows(&[
            [1.0, 5.0, 2.0, 0.0, NAN, NAN],
            [3.0, 5.0, 0.0, 0.0, NAN, 0.0],
            [NAN, 5.0, 2.0, 0.0, NAN, 1.0],
            [-4.0, NAN, 2.0, NAN, NAN, 0.0],
        ])
        .unwrap();
        let kinds = [
            Encoded::Number,
            Encoded::Number,
            Encoded::Code,
            Encoded::Number,
            Encoded::Number,
            Encoded::Code,
        ];
        let weight = [1.0, 2.0, 0.5, 1.5];
        let end = |k: usize, worst: f64, of: fn(f64, f64) -> f64| x.col(k).fold(worst, of);
        let low: Vec<f64> = (0..6).map(|k| end(k, f64::INFINITY, f64::min)).collect();
        let high: Vec<f64> = (0..6).map(|k| end(k, f64::NEG_INFINITY, f64::max)).collect();
        let moments = |unit: &[f64], centre: &[f64], fill: &[f64]| {
            let mut sums = vec![vec![0.0; 6]; 3];
            for (row, w) in x.iter_rows().zip(weight) {
                for (k, &value) in row.iter().enumerate() {
                    let value = if value.is_nan() { fill[k] } else { value };
                    if !value.is_nan() {
                        let value = value / unit[k] - centre[k];
                        sums[0][k] += w;
                        sums[1][k] += w * value;
                        sums[2][k] += w * value * value;
                    }
                }
            }
            Ok(sums)
        };
        let frequent = [None, None, Some(2.0), None, None, Some(0.0)];
        let found = Scaler::of_sums((&low, &high), &frequent, &kinds, moments).unwrap();
        let expected = Scaler::fit(&x, &weight, &kinds);
        let parts = |s: &Scaler| [&s.fill, &s.mean, &s.scale, &s.low, &s.high].map(Vec::clone);
        for (found, expected) in
            parts(&found).iter().flatten().zip(parts(&expected).iter().flatten())
        {
            assert!((found - expected).abs() < 1e-14, "{found} for {expected}");
        }
        assert_eq!(found.constant().collect::<Vec<_>>(), [1, 3, 4]);
    }
}
