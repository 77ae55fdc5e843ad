//! Means, and how sure they are.

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

impl Mean {
    /// Of values that are independent.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self { mean, error: (squares / (n - 1.0) / n).sqrt() }
    }

    /// Whether it differs from zero at the 5 % level. With 40 and more values Student's t is close
    /// to the normal distribution; 2 is on the safe side of both.
    pub fn is_significant(self) -> bool {
        self.mean.abs() > 2.0 * self.error
    }

    /// In percent, with a sign.
    pub fn signed(self) -> String {
        format!("{:+.2} ± {:.2}", 100.0 * self.mean, 100.0 * self.error)
    }

    /// In percent.
    pub fn plain(self) -> String {
        format!("{:.2} ± {:.2}", 100.0 * self.mean, 100.0 * self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_with_its_error() {
        let mean = Mean::of(&[0.01, 0.02, 0.03, 0.06]);
        // By hand: the deviations are -2, -1, 0 and 3 hundredths.
        assert!((mean.mean - 0.03).abs() < 1e-15);
        assert!((mean.error - (14e-4_f64 / 12.0).sqrt()).abs() < 1e-15);
        assert_eq!(mean.signed(), "+3.00 ± 1.08");
        assert!(mean.is_significant());
        assert!(!Mean { mean: -0.01, error: 0.006 }.is_significant());
    }
}
