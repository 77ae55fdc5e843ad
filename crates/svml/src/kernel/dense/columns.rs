//! Columns of K, each computed when it is first asked for: an SVM needs those of its support
//! vectors, which may be few.

use std::sync::{Mutex, OnceLock};

use super::super::cross::Tiles;
use super::{TILE_ROWS, sq_norms};
use crate::linalg::{
    Matrix, exp_neg_each, exp_neg_sq_dist, exp_neg_sqrt_each, four_abs_dists, four_products,
    four_sq_dists,
};
use crate::memory;
use crate::metric::Kernel;
use crate::parallel;
use crate::run::Watch;

/// What the entries of K are computed from.
pub(super) enum Source<'a> {
    /// The rows mapped by L, and their squared norms.
    Mapped { z: Tiles, norms: Vec<f64> },
    /// The rows mapped by L, of kernels that need differences of coordinates: close to 0 the root of a squared distance
    /// by products would have lost half of its digits.
    Differences { z: Tiles, rows: usize, kernel: Kernel },
    /// Squared Euclidean distances between all rows, and what they are multiplied by.
    Distances { sq: &'a [f64], scale: f64 },
}

impl Source<'_> {
    pub fn mapped(z: &Matrix, kernel: Kernel) -> Self {
        match kernel {
            Kernel::Gaussian => Self::Mapped { z: Tiles::new(z), norms: sq_norms(z) },
            _ => Self::Differences { z: Tiles::new(z), rows: z.rows(), kernel },
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Mapped { norms, .. } => norms.len(),
            Self::Differences { rows, .. } => *rows,
            Self::Distances { sq, .. } => sq.len().isqrt(),
        }
    }

    /// Appends to each of `out` its column: k(x_i, x_j) for all i. An entry has the same bits whatever
    /// is computed together with it.
    fn compute(&self, columns: &[usize], out: &mut [Vec<f64>]) {
        let n = self.rows();
        match self {
            Self::Mapped { z, norms } => {
                let factors = z.fours(columns, -2.0);
                let mut products = vec![0.0; 4 * z.width];
                for (tile, norms_of_tile) in z.iter().zip(norms.chunks(z.width)) {
                    let fours = columns.chunks(4).zip(out.chunks_mut(4)).zip(&factors);
                    for ((columns, out), factors) in fours {
                        four_products(&mut products, factors, tile, z.width);
                        let parts = products.chunks_exact_mut(z.width).zip(columns).zip(out);
                        for ((part, &j), out) in parts {
                            let part = &mut part[..norms_of_tile.len()];
                            exp_neg_sq_dist(part, norms[j], norms_of_tile);
                            out.extend_from_slice(part);
                        }
                    }
                }
                out.iter_mut().zip(columns).for_each(|(out, &j)| out[j] = 1.0);
            }
            Self::Differences { z, rows, kernel } => {
                let points = z.fours(columns, 1.0);
                let mut distances = vec![0.0; 4 * z.width];
                for (t, tile) in z.iter().enumerate() {
                    let count = z.width.min(rows - t * z.width);
                    for (points, out) in points.iter().zip(out.chunks_mut(4)) {
                        match kernel {
                            Kernel::Laplacian => {
                                four_abs_dists(&mut distances, points, tile, z.width);
                            }
                            _ => four_sq_dists(&mut distances, points, tile, z.width),
                        }
                        for (part, out) in distances.chunks_exact_mut(z.width).zip(out) {
                            let part = &mut part[..count];
                            match kernel {
                                Kernel::Laplacian => exp_neg_each(part),
                                _ => exp_neg_sqrt_each(part),
                            }
                            out.extend_from_slice(part);
                        }
                    }
                }
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

/// K between all rows and those of them that may become support vectors.
pub(super) struct Columns<'a> {
    source: Source<'a>,
    columns: Vec<OnceLock<Vec<f64>>>,
    /// Columns of former kernels: fresh memory is slow to touch.
    spare: Mutex<Vec<Vec<f64>>>,
    /// What stands in for a column that there is no memory for, until the watch, which is told, ends the computation.
    none: Vec<f64>,
    watch: Watch,
}

impl<'a> Columns<'a> {
    /// The first `count` rows have columns.
    pub fn new(source: Source<'a>, count: usize, watch: &Watch) -> Self {
        let columns = (0..count).map(|_| OnceLock::new()).collect();
        let (none, watch) = (vec![0.0; source.rows()], watch.clone());
        Self { source, columns, spare: Mutex::default(), none, watch }
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
        // Before anything else: another task may compute the same column, which counts once.
        let known = self.watch.columns();
        if let Some(column) = self.columns[j].get() {
            return column;
        }
        if !self.watch.is_room_for(known + 1) {
            return &self.none;
        }
        match self.compute(&[j]).and_then(|mut columns| columns.pop()) {
            // Nothing in here waits for another task.
            Some(column) => self.columns[j].get_or_init(|| {
                self.watch.count_columns(1);
                column
            }),
            None => &self.none,
        }
    }

    /// Computes together those of `wanted` that are not there yet.
    pub fn prefetch(&self, wanted: &[usize]) {
        let known = self.watch.columns();
        let missing = wanted.iter().copied().filter(|&j| self.columns[j].get().is_none());
        let missing: Vec<usize> = missing.collect();
        if !self.watch.is_room_for(known + missing.len()) {
            return;
        }
        parallel::for_each(missing.chunks(TILE_ROWS), |chunk| {
            for (&j, column) in chunk.iter().zip(self.compute(chunk).unwrap_or_default()) {
                // Another task may have been first, with the same bits.
                match (self.columns[j].set(column), self.spare.lock()) {
                    (Ok(()), _) => self.watch.count_columns(1),
                    (Err(column), Ok(mut spare)) => spare.push(column),
                    _ => {}
                }
            }
        });
    }

    /// Columns, unless there is no memory for them.
    fn compute(&self, columns: &[usize]) -> Option<Vec<Vec<f64>>> {
        let mut out: Vec<Vec<f64>> = match self.spare.lock() {
            Ok(mut spare) => {
                let kept = spare.len().saturating_sub(columns.len());
                spare.split_off(kept)
            }
            Err(_) => Vec::new(),
        };
        out.iter_mut().for_each(Vec::clear);
        let rows = self.source.rows();
        let bytes = (columns.len() - out.len()) * rows * 8;
        let filled = memory::with_room(bytes, || {
            out.resize_with(columns.len(), || Vec::with_capacity(rows));
        });
        if filled.is_none() {
            self.watch.lacks(bytes);
            return None;
        }
        self.source.compute(columns, &mut out);
        Some(out)
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
            let alone = Columns::new(Source::mapped(&z, Kernel::Gaussian), n, &Watch::default());
            let together = Columns::new(Source::mapped(&z, Kernel::Gaussian), n, &Watch::default());
            let halves: Vec<usize> = (0..n).step_by(2).chain((1..n).step_by(2)).collect();
            halves.chunks(n.div_ceil(2)).for_each(|half| together.prefetch(half));
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
        let mut columns = Columns::new(Source::mapped(&z, Kernel::Gaussian), 4, &Watch::default());
        columns.prefetch(&[0, 2]);
        let half = Matrix::from_fn(5, 2, |i, k| 0.5 * z[(i, k)]);
        columns.replace(Source::mapped(&half, Kernel::Gaussian));
        let fresh = Columns::new(Source::mapped(&half, Kernel::Gaussian), 4, &Watch::default());
        (0..4).for_each(|j| assert_eq!(columns.get(j), fresh.get(j)));
    }
}
