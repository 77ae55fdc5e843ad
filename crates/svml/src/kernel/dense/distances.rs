//! Squared distances between all rows, from which the kernel of any width follows.

use super::{DenseGram, Distances, Gram, TILE_ROWS};
use crate::error::Result;
use crate::linalg::{Matrix, sq_dists};
use crate::memory;
use crate::metric::Metric;
use crate::parallel;
use crate::run::Watch;

/// The squared Euclidean distances between all rows of a matrix.
pub(super) struct SqDistances<'a> {
    x: &'a Matrix,
    // (n, n)
    sq: Vec<f64>,
}

impl<'a> SqDistances<'a> {
    /// Computes them.
    pub fn new(x: &'a Matrix, watch: &Watch) -> Result<Self> {
        let n = x.rows();
        let points = x.transpose();
        let mut sq = memory::zeros(n.saturating_mul(n), "the distances between all rows")?;
        parallel::for_each(sq.chunks_mut((TILE_ROWS * n).max(1)).enumerate(), |(t, tile)| {
            for (i, row) in tile.chunks_exact_mut(n).enumerate() {
                sq_dists(row, x.row(t * TILE_ROWS + i), &points, 0);
            }
        });
        watch.check()?;
        Ok(Self { x, sq })
    }
}

impl Distances for SqDistances<'_> {
    fn gram<'a>(&'a self, sphere: &Metric, watch: &Watch) -> Result<Box<dyn Gram + 'a>> {
        watch.check()?;
        Ok(Box::new(DenseGram::from_distances(self.x, sphere, &self.sq, watch)))
    }
}
