//! The landmarks of two classes among all landmarks: those that the SVM of the pair is made of.

use std::ops::Range;

use super::question::{Problem, Setting};
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Matrix, add_scaled, dot};
use crate::watch::Watch;

/// Added to the diagonal of K_mm where it is factored; part of the regulariser then.
pub const RIDGE: f64 = 1e-12;
/// How often it is made ten times larger until K_mm can be factored.
const LARGER_RIDGES: usize = 6;

/// The places of the landmarks of two classes.
#[derive(Clone)]
pub struct PairColumns(Range<usize>, Range<usize>);

impl PairColumns {
    /// Those of a problem.
    pub fn of(setting: &Setting, problem: &Problem) -> Self {
        let of = |class: usize| setting.starts[class]..setting.starts[class + 1];
        Self(of(problem.classes.0), of(problem.classes.1))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }

    /// The places.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.clone().chain(self.1.clone())
    }

    /// k' theta for a row of K, where theta ends with the bias.
    pub fn output(&self, k: &[f64], theta: &[f64]) -> f64 {
        let (a, b) = (&theta[..self.0.len()], &theta[self.0.len()..theta.len() - 1]);
        dot(&k[self.0.clone()], a) + dot(&k[self.1.clone()], b) + theta[theta.len() - 1]
    }

    /// `sums += factor [k, 1]`.
    pub fn add_row(&self, sums: &mut [f64], factor: f64, k: &[f64]) {
        let (a, rest) = sums.split_at_mut(self.0.len());
        let (b, last) = rest.split_at_mut(self.1.len());
        add_scaled(a, factor, &k[self.0.clone()]);
        add_scaled(b, factor, &k[self.1.clone()]);
        last[0] += factor;
    }

    /// `row += factor theta` at these columns of a whole row.
    pub fn scatter(&self, row: &mut [f64], factor: f64, theta: &[f64]) {
        add_scaled(&mut row[self.0.clone()], factor, &theta[..self.0.len()]);
        add_scaled(&mut row[self.1.clone()], factor, &theta[self.0.len()..theta.len() - 1]);
    }

    /// Writes factor [k, 1].
    pub fn gather(&self, out: &mut [f64], factor: f64, k: &[f64]) {
        let m = self.len();
        let columns = k[self.0.clone()].iter().chain(&k[self.1.clone()]);
        out.iter_mut().zip(columns).for_each(|(out, k)| *out = factor * k);
        out[m] = factor;
    }

    /// The places of each of the two classes.
    pub fn ranges(&self) -> (Range<usize>, Range<usize>) {
        (self.0.clone(), self.1.clone())
    }

    /// The factor of their part of K_mm.
    pub fn root(&self, k_mm: &Matrix, watch: &Watch) -> Result<Cholesky> {
        let m = self.len();
        let rows = self.iter().map(|i| k_mm.row(i));
        let mut k: Vec<f64> = rows.flat_map(|k| self.iter().map(|j| k[j])).collect();
        let mut ridge = RIDGE;
        k.iter_mut().step_by(m + 1).for_each(|k| *k += ridge);
        for _ in 0..LARGER_RIDGES {
            match Cholesky::new(k.clone(), m, ridge, watch) {
                Err(Error::NotPositiveDefinite { .. }) => {
                    // Rounding is larger than that.
                    k.iter_mut().step_by(m + 1).for_each(|k| *k += 9.0 * ridge);
                    ridge *= 10.0;
                }
                factored => return factored,
            }
        }
        Cholesky::new(k, m, ridge, watch)
    }
}
