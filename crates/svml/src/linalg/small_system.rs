//! Square systems of some hundred unknowns at the most, which need not be definite.

use super::{Matrix, add_scaled};

/// Solves `a x = rhs` by LU with partial pivoting.
pub(crate) struct SmallSystem {
    /// L below the diagonal, without its unit diagonal, and U on and above it.
    lu: Matrix,
    /// `rows[i]` is the row of `a` that became row i.
    rows: Vec<usize>,
}

impl SmallSystem {
    pub fn new(a: &Matrix) -> Self {
        let n = a.rows();
        let mut lu = a.clone();
        let mut rows: Vec<usize> = (0..n).collect();
        for k in 0..n {
            let size = |i: &usize| lu[(*i, k)].abs();
            let pivot = (k..n).max_by(|i, j| size(i).total_cmp(&size(j))).unwrap_or(k);
            if pivot != k {
                rows.swap(k, pivot);
                let (above, below) = lu.as_mut_slice().split_at_mut(pivot * n);
                above[k * n..(k + 1) * n].swap_with_slice(&mut below[..n]);
            }
            let (done, open) = lu.as_mut_slice().split_at_mut((k + 1) * n);
            let row = &done[k * n..];
            for other in open.chunks_exact_mut(n) {
                other[k] /= row[k];
                let factor = -other[k];
                add_scaled(&mut other[k + 1..], factor, &row[k + 1..]);
            }
        }
        Self { lu, rows }
    }

    /// Replaces each right-hand side in `rhs`, stored one after the other, by its solution x.
    pub fn solve(&self, rhs: &mut [f64]) {
        let n = self.rows.len();
        for rhs in rhs.chunks_exact_mut(n.max(1)) {
            let mut x: Vec<f64> = self.rows.iter().map(|&row| rhs[row]).collect();
            for i in 0..n {
                x[i] -= super::dot(&self.lu.row(i)[..i], &x[..i]);
            }
            for i in (0..n).rev() {
                let row = self.lu.row(i);
                x[i] = (x[i] - super::dot(&row[i + 1..], &x[i + 1..])) / row[i];
            }
            rhs.copy_from_slice(&x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_indefinite_systems() {
        for n in [0, 1, 3, 20, 65] {
            let a = Matrix::from_fn(n, n, |i, j| {
                if i == j { 0.0 } else { ((i * j + i + 2 * j) as f64).sin() + 0.1 }
            });
            let a = if n == 1 { Matrix::from_fn(1, 1, |_, _| -2.0) } else { a };
            let x: Vec<f64> = (0..2 * n).map(|i| (i as f64).cos()).collect();
            let product = |x: &[f64], i: usize| super::super::dot(a.row(i), x);
            let mut found: Vec<f64> = x
                .chunks_exact(n.max(1))
                .flat_map(|x| (0..n).map(|i| product(x, i)).collect::<Vec<_>>())
                .collect();
            SmallSystem::new(&a).solve(&mut found);
            for (found, expected) in found.iter().zip(&x) {
                assert!((found - expected).abs() < 1e-11, "{n}: {found} is not {expected}");
            }
        }
    }
}
