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
}

/// Weight of the rows whose predicted class is not theirs.
pub fn wrong(predicted: &[usize], class: &[usize], weight: &[f64]) -> f64 {
    let rows = predicted.iter().zip(class).zip(weight);
    let wrong = rows.filter(|((predicted, class), _)| predicted != class);
    // An empty sum is -0.
    wrong.map(|(_, weight)| weight).sum::<f64>() + 0.0
}

/// Their share in the weight of all rows; 0 without rows.
pub fn zero_one(predicted: &[usize], class: &[usize], weight: &[f64]) -> f64 {
    wrong(predicted, class, weight) / weight.iter().sum::<f64>().max(f64::MIN_POSITIVE)
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
    fn zero_one_counts_errors_by_weight() {
        assert_eq!(zero_one(&[0, 1, 1, 0], &[0, 0, 1, 2], &[1.0, 2.0, 3.0, 4.0]), 0.6);
        assert_eq!(zero_one(&[], &[], &[]), 0.0);
    }
}
