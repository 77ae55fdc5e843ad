//! K between any rows and fixed points, landmarks or support vectors, without keeping it: a tile of rows at a time.

use super::{TILE_COLS, TILE_ROWS};
use crate::linalg::{
    self, Block, LANES, Matrix, Panels, dot, exp_neg_each, exp_neg_sq_dist, exp_neg_sqrt_each,
    four_abs_dists, four_sq_dists,
};
use crate::metric::Kernel;
use crate::parallel;

/// Points, mapped by L, in the layout that the kernel is computed from.
pub struct Points {
    kernel: Kernel,
    layout: Layout,
    count: usize,
}

enum Layout {
    /// As a factor of products, and their squared norms: the Gaussian kernel needs products only.
    Products { points: Panels, norms: Vec<f64> },
    /// In tiles, coordinate by coordinate: kernels that need differences of coordinates, because close to 0 the root
    /// of a squared distance by products would have lost half of its digits.
    Tiles(Tiles),
}

impl Points {
    /// Points that were mapped by L already.
    pub fn new(kernel: Kernel, z: Matrix) -> Self {
        let count = z.rows();
        let layout = match kernel {
            Kernel::Gaussian => {
                let norms = z.iter_rows().map(|z| dot(z, z)).collect();
                Layout::Products { points: Panels::new(Block::from(&z).t()), norms }
            }
            _ => Layout::Tiles(Tiles::new(&z)),
        };
        Self { kernel, layout, count }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Fills `out` with k(z_i, point_j) for the rows of z from `first` on, which are mapped by L too; one row of `out`
    /// after another, as many as it has room for.
    pub fn fill(&self, z: &Matrix, first: usize, out: &mut [f64]) {
        let m = self.count;
        if m == 0 {
            return;
        }
        let rows = out.len() / m;
        match &self.layout {
            Layout::Products { points, norms } => {
                for start in (0..m).step_by(TILE_COLS) {
                    let cols = TILE_COLS.min(m - start);
                    let rows = Block::rows(z, first, rows);
                    let columns = start..start + cols;
                    linalg::product_with(&mut out[start..], m, -2.0, rows, points, columns);
                    for (i, out) in out.chunks_exact_mut(m).enumerate() {
                        let z = z.row(first + i);
                        exp_neg_sq_dist(
                            &mut out[start..start + cols],
                            dot(z, z),
                            &norms[start..start + cols],
                        );
                    }
                }
            }
            Layout::Tiles(tiles) => {
                let mut distances = vec![0.0; 4 * tiles.width];
                let mut four = vec![0.0; 4 * tiles.d];
                for (chunk, out) in out.chunks_mut(4 * m).enumerate() {
                    let count = out.len() / m;
                    for (k, four) in four.chunks_exact_mut(4).enumerate() {
                        // The last row may be there several times.
                        let row = |c: usize| first + 4 * chunk + c.min(count - 1);
                        (0..4).for_each(|c| four[c] = z.row(row(c))[k]);
                    }
                    for (t, tile) in tiles.iter().enumerate() {
                        let start = t * tiles.width;
                        let width = tiles.width.min(m - start);
                        match self.kernel {
                            Kernel::Laplacian => {
                                four_abs_dists(&mut distances, &four, tile, tiles.width)
                            }
                            _ => four_sq_dists(&mut distances, &four, tile, tiles.width),
                        }
                        let rows = distances.chunks_exact(tiles.width).zip(out.chunks_exact_mut(m));
                        for (distances, out) in rows {
                            let out = &mut out[start..start + width];
                            out.copy_from_slice(&distances[..width]);
                            match self.kernel {
                                Kernel::Laplacian => exp_neg_each(out),
                                _ => exp_neg_sqrt_each(out),
                            }
                        }
                    }
                }
            }
        }
    }

    /// The kernel between all rows of z and the points; in parallel. `out` is used again if it has room.
    pub fn fill_all(&self, z: &Matrix, out: &mut Vec<f64>) {
        out.resize(z.rows() * self.count, 0.0);
        let tiles = out.chunks_mut((TILE_ROWS * self.count).max(1)).enumerate();
        parallel::for_each(tiles, |(t, out)| self.fill(z, t * TILE_ROWS, out));
    }
}

/// Rows in tiles that stay in the cache, each coordinate by coordinate, the last filled up with zeros.
pub(super) struct Tiles {
    data: Vec<f64>,
    /// Rows in a tile, and coordinates of a row.
    pub width: usize,
    pub d: usize,
}

/// Values in a tile, and its least number of rows.
const TILE_ENTRIES: usize = 1 << 15;
const LEAST_WIDTH: usize = 64;

impl Tiles {
    pub fn new(z: &Matrix) -> Self {
        let d = z.cols();
        let width = (TILE_ENTRIES / d.max(1)).clamp(LEAST_WIDTH, TILE_COLS).min(z.rows().max(1));
        let width = width.next_multiple_of(LANES);
        let mut data = vec![0.0; z.rows().div_ceil(width) * d * width];
        for (i, row) in z.iter_rows().enumerate() {
            let start = i / width * d * width + i % width;
            data[start..].iter_mut().step_by(width).zip(row).for_each(|(out, z)| *out = *z);
        }
        Self { data, width, d }
    }

    /// One tile after another.
    pub fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.data.chunks_exact((self.d * self.width).max(1))
    }

    /// `factor` times the rows of some columns, four at a time, coordinate by coordinate; the last row may be there
    /// twice.
    pub fn fours(&self, columns: &[usize], factor: f64) -> Vec<Vec<f64>> {
        let four = |four: &[usize]| {
            let column = |c: usize| four[c.min(four.len() - 1)];
            (0..4 * self.d).map(|f| factor * self.coordinate(column(f % 4), f / 4)).collect()
        };
        columns.chunks(4).map(four).collect()
    }

    fn coordinate(&self, i: usize, k: usize) -> f64 {
        self.data[(i / self.width * self.d + k) * self.width + i % self.width]
    }
}
