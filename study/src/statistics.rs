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
    /// Of values that are independent; of one alone the standard error is not known (NaN).
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
        // Sums of rounding errors are no negative number.
        let mean = if self.mean.abs() < 5e-5 { 0.0 } else { 100.0 * self.mean };
        format!("{mean:+.2}{}", self.spread())
    }

    /// In percent.
    pub fn plain(self) -> String {
        format!("{:.2}{}", 100.0 * self.mean, self.spread())
    }

    fn spread(self) -> String {
        if self.error.is_nan() { String::new() } else { format!(" ± {:.2}", 100.0 * self.error) }
    }
}

/// How many standard errors a mean of `n` differences must be from zero to differ from it at the 5 %
/// level: Student's t with n - 1 degrees of freedom, by Cornish and Fisher's expansion around the
/// normal distribution.
pub fn student(n: usize) -> f64 {
    let v = match n {
        0 | 1 => return f64::INFINITY,
        2 => return 12.706,
        3 => return 4.303,
        4 => return 3.182,
        n => (n - 1) as f64,
    };
    let z: f64 = 1.959_964;
    let p = |k: i32| z.powi(k);
    z + (p(3) + z) / (4.0 * v)
        + (5.0 * p(5) + 16.0 * p(3) + 3.0 * z) / (96.0 * v.powi(2))
        + (3.0 * p(7) + 19.0 * p(5) + 17.0 * p(3) - 15.0 * z) / (384.0 * v.powi(3))
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
        assert_eq!(Mean { mean: -1e-18, error: 0.0 }.signed(), "+0.00 ± 0.00");
        assert!(!Mean { mean: -0.01, error: 0.006 }.is_significant());
    }

    /// Values of the printed tables, to three digits.
    #[test]
    fn students_t() {
        for (n, expected) in [(4, 3.182), (5, 2.776), (10, 2.262), (20, 2.093), (200, 1.972)] {
            assert!((student(n) - expected).abs() < 0.02, "{n} {}", student(n));
        }
    }
}
