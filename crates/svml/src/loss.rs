//! The zero-one error and the smooth function that stands in for it.

use serde::{Deserialize, Serialize};

/// The mirrored sigmoid s_a(z) = 1 / (1 + exp(a z)) of the margin z = y h(x): the paper's soft
/// zero-one loss. The larger the steepness a, the closer to the step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sigmoid {
    /// a.
    pub steepness: f64,
}

impl Sigmoid {
    /// s_a(z) and its derivative -a s_a(z) (1 - s_a(z)).
    pub fn value_and_slope(self, margin: f64) -> (f64, f64) {
        // exp of a negative number only: no overflow, and 1 - s keeps its precision.
        let e = (-(self.steepness * margin).abs()).exp();
        let (small, large) = (e / (1.0 + e), 1.0 / (1.0 + e));
        let value = if margin > 0.0 { small } else { large };
        (value, -self.steepness * small * large)
    }

    /// Mean of s_a over rows with outputs h and labels y; 0 without rows.
    pub fn mean(self, h: &[f64], y: &[f64]) -> f64 {
        let sum: f64 = h.iter().zip(y).map(|(h, y)| self.value_and_slope(y * h).0).sum();
        sum / h.len().max(1) as f64
    }
}

/// Share of rows on the wrong side; an output of exactly zero is predicted as -1, as in
/// [`Model::predict`](crate::Model::predict). 0 without rows.
pub fn zero_one(h: &[f64], y: &[f64]) -> f64 {
    let wrong = h.iter().zip(y).filter(|(h, y)| (**h > 0.0) != (**y > 0.0)).count();
    wrong as f64 / h.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigmoid_at_known_points() {
        let s = Sigmoid { steepness: 5.0 };
        assert_eq!(s.value_and_slope(0.0), (0.5, -1.25));
        assert_eq!(s.value_and_slope(1e6), (0.0, 0.0));
        assert_eq!(s.value_and_slope(-1e6), (1.0, 0.0));
        let (value, slope) = s.value_and_slope(0.3);
        assert!((value - 1.0 / (1.0 + 1.5f64.exp())).abs() < 1e-16);
        let h = 1e-6;
        let difference = (s.value_and_slope(0.3 + h).0 - s.value_and_slope(0.3 - h).0) / (2.0 * h);
        assert!((slope - difference).abs() < 1e-9);
    }

    #[test]
    fn zero_one_counts_errors() {
        assert_eq!(zero_one(&[0.1, -0.1, 0.0, 2.0], &[1.0, 1.0, -1.0, -1.0]), 0.5);
        assert_eq!(zero_one(&[], &[]), 0.0);
    }
}
