//! The zero-one error and the smooth functions that stand in for it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A smooth function of the margin z = y h(x) that stands in for the zero-one loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Surrogate {
    /// s_a(z) = 1 / (1 + exp(a z)), the paper's mirrored sigmoid: the larger the steepness a, the
    /// closer it is to the zero-one loss.
    Sigmoid,
    /// log(1 + exp(-a z)) / a: convex, and a proper scoring rule, so that overconfident outputs cost more.
    Logistic,
    /// max(0, 1 - z)^2: the loss that the SVM itself minimises.
    SquaredHinge,
}

impl fmt::Display for Surrogate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sigmoid => "sigmoid",
            Self::Logistic => "logistic",
            Self::SquaredHinge => "squared_hinge",
        })
    }
}

impl FromStr for Surrogate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "sigmoid" => Ok(Self::Sigmoid),
            "logistic" => Ok(Self::Logistic),
            "squared_hinge" => Ok(Self::SquaredHinge),
            _ => Err(Error::parameter("surrogate", text, "sigmoid, logistic or squared_hinge")),
        }
    }
}

/// A surrogate with its steepness.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// The function.
    pub surrogate: Surrogate,
    /// The steepness a, which the squared hinge does not use.
    pub steepness: f64,
}

impl Loss {
    /// The value at a margin, and the derivative there.
    pub fn value_and_slope(self, margin: f64) -> (f64, f64) {
        let a = self.steepness;
        // exp is taken of negative numbers only, so that it cannot overflow and small results keep
        // their relative precision.
        let e = (-(a * margin).abs()).exp();
        let (small, large) = (e / (1.0 + e), 1.0 / (1.0 + e));
        match self.surrogate {
            Surrogate::Sigmoid => (if margin > 0.0 { small } else { large }, -a * small * large),
            Surrogate::Logistic => {
                let value = (e.ln_1p() + (-a * margin).max(0.0)) / a;
                (value, if margin > 0.0 { -small } else { -large })
            }
            Surrogate::SquaredHinge => {
                let slack = (1.0 - margin).max(0.0);
                (slack * slack, -2.0 * slack)
            }
        }
    }
}

/// Total weight of the misclassified rows.
pub fn wrong(predicted: &[usize], class: &[usize], weight: &[f64]) -> f64 {
    let rows = predicted.iter().zip(class).zip(weight);
    let wrong = rows.filter(|((predicted, class), _)| predicted != class);
    // The sum of no numbers is -0; adding 0 makes it 0.
    wrong.map(|(_, weight)| weight).sum::<f64>() + 0.0
}

/// The zero-one error: the weight of the misclassified rows over that of all rows; 0 without rows.
pub fn zero_one(predicted: &[usize], class: &[usize], weight: &[f64]) -> f64 {
    wrong(predicted, class, weight) / weight.iter().sum::<f64>().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Surrogate; 3] = [Surrogate::Sigmoid, Surrogate::Logistic, Surrogate::SquaredHinge];

    #[test]
    fn known_points() {
        let at = |surrogate, z| Loss { surrogate, steepness: 5.0 }.value_and_slope(z);
        assert_eq!(at(Surrogate::Sigmoid, 0.0), (0.5, -1.25));
        assert_eq!(at(Surrogate::Sigmoid, 1e6), (0.0, 0.0));
        assert_eq!(at(Surrogate::Sigmoid, -1e6), (1.0, 0.0));
        assert_eq!(at(Surrogate::Logistic, 0.0), (2f64.ln() / 5.0, -0.5));
        assert_eq!(at(Surrogate::Logistic, 1e6), (0.0, 0.0));
        assert_eq!(at(Surrogate::Logistic, -1e6), (1e6, -1.0));
        assert_eq!(at(Surrogate::SquaredHinge, -1.0), (4.0, -4.0));
        assert_eq!(at(Surrogate::SquaredHinge, 1.5), (0.0, 0.0));
        assert!((at(Surrogate::Sigmoid, 0.3).0 - 1.0 / (1.0 + 1.5f64.exp())).abs() < 1e-16);
    }

    #[test]
    fn slopes_are_derivatives() {
        for surrogate in ALL {
            for steepness in [0.5, 3.0, 20.0] {
                let loss = Loss { surrogate, steepness };
                for z in [-2.0, -0.7, -0.01, 0.02, 0.3, 0.95, 1.4] {
                    let h = 1e-6;
                    let up = loss.value_and_slope(z + h).0;
                    let difference = (up - loss.value_and_slope(z - h).0) / (2.0 * h);
                    let slope = loss.value_and_slope(z).1;
                    assert!((slope - difference).abs() < 1e-8, "{surrogate} {steepness} {z}");
                }
            }
            assert_eq!(surrogate.to_string().parse::<Surrogate>().unwrap(), surrogate);
        }
        assert!("hinge".parse::<Surrogate>().is_err());
    }

    #[test]
    fn zero_one_counts_errors_by_weight() {
        assert_eq!(zero_one(&[0, 1, 1, 0], &[0, 0, 1, 2], &[1.0, 2.0, 3.0, 4.0]), 0.6);
        assert_eq!(zero_one(&[], &[], &[]), 0.0);
    }
}
