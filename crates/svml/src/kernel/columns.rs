//! Columns of K, each computed when it is first asked for: a machine needs those of its support
//! vectors, which may be few.

use std::sync::{Mutex, OnceLock};

use rayon::prelude::*;

use super::{TILE_COLS, TILE_ROWS, sq_norms};
use crate::linalg::{Matrix, add_columns, exp_neg_sq_dist};

/// What the entries of K are computed from.
pub(super) enum Source<'a> {
    /// The rows mapped by L as columns, and their squared norms.
    Mapped { z: Matrix, norms: Vec<f64> },
    /// Squared Euclidean distances between all rows, and what they are multiplied by.
    Distances { sq: &'a [f64], scale: f64 },
}

impl Source<'_> {
    pub fn mapped(z: &Matrix) -> Self {
        Self::Mapped { z: z.transpose(), norms: sq_norms(z) }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Mapped { norms, .. } => norms.len(),
            Self::Distances { sq, .. } => sq.len().isqrt(),
        }
    }

    /// Appends to each of `out` its column: k(x_i, x_j) for all i. An entry has the same bits whatever
    /// is computed together with it, which matrix products do not promise.
    fn compute(&self, columns: &[usize], out: &mut [Vec<f64>]) {
        let n = self.rows();
        match self {
            Self::Mapped { z, norms } => {
                let coordinates: Vec<&[f64]> = z.iter_rows().collect();
                let factors =
                    Matrix::from_fn(columns.len(), z.rows(), |c, k| -2.0 * z[(k, columns[c])]);
                // What is read for every column stays in the cache.
                let width = (TILE_ENTRIES / z.rows().max(1)).clamp(LEAST_WIDTH, TILE_COLS);
                for start in (0..n).step_by(width) {
                    let end = n.min(start + width);
                    for ((out, factors), &j) in out.iter_mut().zip(factors.iter_rows()).zip(columns)
                    {
                        out.resize(end, 0.0);
                        let part = &mut out[start..];
                        add_columns(part, &coordinates, factors, start);
                        exp_neg_sq_dist(part, norms[j], &norms[start..end]);
                    }
                }
                out.iter_mut().zip(columns).for_each(|(out, &j)| out[j] = 1.0);
            }
            Self::Distances { sq, scale } => {
                let zeros = vec![0.0; n];
                for (out, &j) in out.iter_mut().zip(columns) {
                    out.extend(sq[j * n..(j + 1) * n].iter().map(|sq| scale * sq));
                    exp_neg_sq_dist(out, 0.0, &zeros);
                }
            }
        }
    }
}

/// Coordinates of a tile, and its least number of rows.
const TILE_ENTRIES: usize = 1 << 15;
const LEAST_WIDTH: usize = 64;

/// K between all rows and those of them that may become support vectors.
pub(super) struct Columns<'a> {
    source: Source<'a>,
    columns: Vec<OnceLock<Vec<f64>>>,
    /// Columns of former kernels: fresh memory is slow to touch.
    spare: Mutex<Vec<Vec<f64>>>,
}

impl<'a> Columns<'a> {
    /// The first `count` rows have columns.
    pub fn new(source: Source<'a>, count: usize) -> Self {
        let columns = (0..count).map(|_| OnceLock::new()).collect();
        Self { source, columns, spare: Mutex::default() }
    }

    /// Forgets all columns: K is another one now.
    pub fn replace(&mut self, source: Source<'a>) {
        self.source = source;
        let old = self.columns.iter_mut().filter_map(OnceLock::take);
        match self.spare.get_mut() {
            Ok(spare) => spare.extend(old),
            Err(_) => old.for_each(drop),
        }
    }

    /// k(x_i, x_j) for all rows i.
    pub fn get(&self, j: usize) -> &[f64] {
        // Nothing in here waits for another task.
        self.columns[j].get_or_init(|| self.compute(&[j]).pop().unwrap_or_default())
    }

    /// Computes together those of `wanted` that are not there yet.
    pub fn prepare(&self, wanted: &[usize]) {
        let missing = wanted.iter().copied().filter(|&j| self.columns[j].get().is_none());
        let missing: Vec<usize> = missing.collect();
        missing.par_chunks(TILE_ROWS).for_each(|chunk| {
            for (&j, column) in chunk.iter().zip(self.compute(chunk)) {
                // Another task may have been first, with the same bits.
                if let (Err(column), Ok(mut spare)) =
                    (self.columns[j].set(column), self.spare.lock())
                {
                    spare.push(column);
                }
            }
        });
    }

    fn compute(&self, columns: &[usize]) -> Vec<Vec<f64>> {
        let mut out: Vec<Vec<f64>> = match self.spare.lock() {
            Ok(mut spare) => {
                let kept = spare.len().saturating_sub(columns.len());
                spare.split_off(kept)
            }
            Err(_) => Vec::new(),
        };
        out.iter_mut().for_each(Vec::clear);
        out.resize_with(columns.len(), || Vec::with_capacity(self.source.rows()));
        self.source.compute(columns, &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_same_bits_whatever_is_computed_with_them() {
        for (n, d) in [(1, 1), (70, 3), (701, 10), (130, 600)] {
            let value = |i: usize, k: usize| ((i * 31 + k * 17) as f64 * 0.37).sin();
            let z = Matrix::from_fn(n, d, |i, k| value(i, k) / d as f64);
            let alone = Columns::new(Source::mapped(&z), n);
            let together = Columns::new(Source::mapped(&z), n);
            let halves: Vec<usize> = (0..n).step_by(2).chain((1..n).step_by(2)).collect();
            halves.chunks(n.div_ceil(2)).for_each(|half| together.prepare(half));
            for j in 0..n {
                assert_eq!(alone.get(j), together.get(j), "{n} {d} {j}");
                for i in 0..n {
                    assert_eq!(alone.get(j)[i], alone.get(i)[j], "{n} {d} {i} {j}");
                    let sq: f64 = (0..d).map(|k| (z[(i, k)] - z[(j, k)]).powi(2)).sum();
                    assert!((alone.get(j)[i] - (-sq).exp()).abs() < 1e-12, "{n} {d} {i} {j}");
                }
            }
        }
    }

    #[test]
    fn another_kernel_has_other_columns() {
        let z = Matrix::from_fn(5, 2, |i, k| (i + 3 * k) as f64);
        let mut columns = Columns::new(Source::mapped(&z), 4);
        columns.prepare(&[0, 2]);
        let half = Matrix::from_fn(5, 2, |i, k| 0.5 * z[(i, k)]);
        columns.replace(Source::mapped(&half));
        let fresh = Columns::new(Source::mapped(&half), 4);
        (0..4).for_each(|j| assert_eq!(columns.get(j), fresh.get(j)));
    }
}
