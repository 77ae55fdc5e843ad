//! Cholesky factorisation A = R R' of the ridged kernel matrix, and its triangular solves.
//!
//! Large matrices are factored one block column at a time (the right-looking algorithm), and the tiles
//! of each step are updated in parallel. The tiles depend on the size of the matrix alone, so the
//! factor has the same bits for any number of threads. An interrupt is checked for before each block
//! column.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_upper_triangular_in_place,
};
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{Accum, MatMut, MatRef, Par};

use super::{Block, Matrix, kernel};
use crate::error::{Error, Result};
use crate::parallel;
use crate::watch::Watch;

/// Width of a block column and side of a tile.
const TILE: usize = 256;
/// Number of columns of the inverse that are computed together.
const INVERSE_TILE: usize = 64;
/// Matrices up to this size are factored on one thread with faer's own blocking, which is faster there.
const SEQUENTIAL: usize = 3 * TILE;

/// The lower factor R, stored column by column; the entries above the diagonal are arbitrary.
pub struct Cholesky {
    data: Vec<f64>,
    n: usize,
}

impl Cholesky {
    /// Factors the symmetric `n` x `n` matrix in `data`, stored by columns; only its lower triangle is
    /// read. `ridge` is the value that the caller has added to the diagonal: it is named in the error,
    /// beside the index of the pivot that is not positive, and not used otherwise.
    pub fn new(mut data: Vec<f64>, n: usize, ridge: f64, watch: &Watch) -> Result<Self> {
        let fail = |pivot| Error::NotPositiveDefinite { pivot, ridge };
        let mut a = MatMut::from_column_major_slice_mut(&mut data, n, n);
        let block = if n <= SEQUENTIAL { n } else { TILE };
        let mut done = 0;
        while done < n {
            watch.check()?;
            let width = block.min(n - done);
            let rest = a.rb_mut().submatrix_mut(done, done, n - done, n - done);
            factor_block_column(rest, width).map_err(|i| fail(done + i))?;
            done += width;
        }
        Ok(Self { data, n })
    }

    /// Gives back the memory of the factor, to be reused by the next factorisation.
    pub fn into_buffer(self) -> Vec<f64> {
        self.data
    }

    /// R by columns; the entries above the diagonal are arbitrary.
    pub(crate) fn lower(&self) -> &[f64] {
        &self.data
    }

    fn r(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.data, self.n, self.n)
    }

    /// x <- R^-1 x for each of the columns (of length n, one after the other) in `x`.
    pub fn solve_lower(&self, x: &mut [f64]) {
        self.each_column_chunk(x, |r, x| solve_lower_triangular_in_place(r, x, Par::Seq));
    }

    /// As [`Cholesky::solve_lower`], for so many columns that an interrupt must be seen meanwhile; `x` is then not the solution.
    pub fn solve_lower_watched(&self, x: &mut [f64], watch: &Watch) -> Result<()> {
        self.each_column_chunk(x, |r, x| {
            if watch.check().is_ok() {
                solve_lower_triangular_in_place(r, x, Par::Seq);
            }
        });
        watch.check()
    }

    /// x <- R'^-1 x for each column in `x`.
    pub fn solve_upper(&self, x: &mut [f64]) {
        self.each_column_chunk(x, |r, x| {
            solve_upper_triangular_in_place(r.transpose(), x, Par::Seq);
        });
    }

    /// The columns of R^-1 at the given positions, which must ascend, one after the other. All of them
    /// start at row `positions[0]`, above which they are zero.
    pub fn inverse_columns(&self, positions: &[usize]) -> Vec<f64> {
        let Some(&first) = positions.first() else { return Vec::new() };
        let rows = self.n - first;
        let mut x = vec![0.0; rows * positions.len()];
        (x.chunks_exact_mut(rows)).zip(positions).for_each(|(x, &p)| x[p - first] = 1.0);
        let r = self.r().submatrix(first, first, rows, rows);
        let columns = MatMut::from_column_major_slice_mut(&mut x, rows, positions.len());
        kernel(|| solve_lower_triangular_in_place(r, columns, Par::Seq));
        x
    }

    /// A^-1 = R'^-1 R^-1, in parallel tiles.
    pub fn inverse(&self, watch: &Watch) -> Result<Matrix> {
        let n = self.n;
        let starts: Vec<usize> = (0..n).step_by(INVERSE_TILE).collect();
        // R^-1 in blocks of columns. Each block is stored from its own first row on, above which it is zero.
        let columns: Vec<Vec<f64>> = parallel::try_map(&starts, |&first| {
            watch.check()?;
            let positions: Vec<usize> = (first..n.min(first + INVERSE_TILE)).collect();
            Ok(self.inverse_columns(&positions))
        })?;
        // Block (I, J) of A^-1, for I >= J, is the product of the column blocks I and J of R^-1. Only the
        // rows from the first row of I on contribute, because block I is zero above.
        let mut inverse = Matrix::large(n, n, "the inverse of the kernel matrix")?;
        let row_blocks = inverse.as_mut_slice().chunks_mut((INVERSE_TILE * n).max(1));
        parallel::try_for_each(row_blocks.enumerate(), |(i, out)| {
            watch.check()?;
            let (first, count) = (starts[i], out.len() / n);
            let rows = n - first;
            let left = Block::new(&columns[i], count, rows, rows);
            for (j, columns) in columns[..=i].iter().enumerate() {
                let width = if j == i { count } else { INVERSE_TILE };
                let skip = first - starts[j];
                let right = Block::new(&columns[skip..], width, rows, n - starts[j]);
                super::product(&mut out[starts[j]..], n, 1.0, left, right.t());
            }
            Ok(())
        })?;
        for i in 0..n {
            for j in 0..i {
                inverse[(j, i)] = inverse[(i, j)];
            }
        }
        Ok(inverse)
    }

    fn each_column_chunk(&self, x: &mut [f64], solve: impl Fn(MatRef<f64>, MatMut<f64>) + Sync) {
        if self.n == 0 {
            return;
        }
        // A wide chunk reads the factor less often. With few columns the chunks are narrower, so that
        // there are still several to share among the threads.
        let columns = if x.len() >= 256 * self.n { 64 } else { 16 };
        parallel::for_each(x.chunks_mut(self.n * columns), |x| {
            let columns = x.len() / self.n;
            let x = MatMut::from_column_major_slice_mut(x, self.n, columns);
            kernel(|| solve(self.r(), x));
        });
    }
}

/// One step of the right-looking algorithm on the trailing matrix `a`: factors its first `width`
/// columns and subtracts their outer product from the rest. The error is the index of the pivot that is
/// not positive.
fn factor_block_column(a: MatMut<'_, f64>, width: usize) -> std::result::Result<(), usize> {
    let (panel, right) = a.split_at_col_mut(width);
    let (mut diagonal, mut below) = panel.split_at_row_mut(width);
    kernel(|| {
        let scratch = cholesky_in_place_scratch::<f64>(width, Par::Seq, Default::default());
        cholesky_in_place(
            diagonal.rb_mut(),
            Default::default(),
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(scratch)),
            Default::default(),
        )
    })
    .map_err(|faer::linalg::cholesky::llt::factor::LltError::NonPositivePivot { index }| index)?;

    let diagonal = diagonal.rb();
    parallel::for_each(row_tiles(below.rb_mut()), |(_, tile)| {
        kernel(|| solve_lower_triangular_in_place(diagonal, tile.transpose_mut(), Par::Seq));
    });

    let below = below.rb();
    let mut trailing = right.split_at_row_mut(width).1;
    let mut tiles = Vec::new();
    let mut col = 0;
    while trailing.ncols() > 0 {
        let columns = TILE.min(trailing.ncols());
        let (tile_column, rest) = trailing.split_at_col_mut(columns);
        let lower = tile_column.split_at_row_mut(col).1;
        tiles.extend(row_tiles(lower).into_iter().map(|(row, tile)| (col + row, col, tile)));
        trailing = rest;
        col += columns;
    }
    parallel::for_each(tiles, |(row, col, tile)| {
        let left = below.subrows(row, tile.nrows());
        let right = below.subrows(col, tile.ncols()).transpose();
        kernel(|| matmul(tile, Accum::Add, left, right, -1.0, Par::Seq));
    });
    Ok(())
}

/// Cuts `a` into tiles of `TILE` rows, each with the index of its first row.
fn row_tiles(mut a: MatMut<'_, f64>) -> Vec<(usize, MatMut<'_, f64>)> {
    let mut tiles = Vec::with_capacity(a.nrows().div_ceil(TILE));
    let mut row = 0;
    while a.nrows() > 0 {
        let rows = TILE.min(a.nrows());
        let (tile, rest) = a.split_at_row_mut(rows);
        tiles.push((row, tile));
        a = rest;
        row += rows;
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel_like(n: usize) -> Vec<f64> {
        let entry = |i: usize, j: usize| {
            let t = (i as f64 - j as f64) / 20.0;
            (-t * t).exp() + if i == j { 0.1 } else { 0.0 }
        };
        (0..n * n).map(|k| entry(k / n, k % n)).collect()
    }

    #[test]
    fn solves_small_and_tiled_systems() {
        for n in [0, 1, 2, 255, 256, 257, 768, 769, 1100] {
            let a = kernel_like(n);
            let factor = Cholesky::new(a.clone(), n, 0.1, &Watch::default()).unwrap();
            let x: Vec<f64> = (0..2 * n).map(|i| ((i * 7919) % 101) as f64 / 101.0 - 0.5).collect();
            let mut rhs: Vec<f64> = (0..2 * n)
                .map(|k| (0..n).map(|j| a[(k % n) * n + j] * x[k / n * n + j]).sum())
                .collect();
            factor.solve_lower(&mut rhs);
            factor.solve_upper(&mut rhs);
            let worst = rhs.iter().zip(&x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-11, "n = {n}: {worst}");
        }
    }

    #[test]
    fn columns_of_the_inverse() {
        for n in [1, 40, 900] {
            let factor = Cholesky::new(kernel_like(n), n, 0.1, &Watch::default()).unwrap();
            let positions: Vec<usize> = (0..n).filter(|i| i % 7 == n % 7).collect();
            let columns = factor.inverse_columns(&positions);
            let first = positions.first().copied().unwrap_or(0);
            for (&i, column) in positions.iter().zip(columns.chunks_exact(n - first)) {
                let mut expected = vec![0.0; n];
                expected[i] = 1.0;
                factor.solve_lower(&mut expected);
                assert!(expected[..first].iter().all(|v| *v == 0.0));
                for (a, b) in column.iter().zip(&expected[first..]) {
                    assert!((a - b).abs() < 1e-12, "n = {n}, column {i}");
                }
            }
        }
    }

    #[test]
    fn the_inverse_inverts() {
        for n in [0, 1, 63, 64, 65, 300] {
            let a = kernel_like(n);
            let factor = Cholesky::new(a.clone(), n, 0.1, &Watch::default()).unwrap();
            let inverse = factor.inverse(&Watch::default()).unwrap();
            for i in 0..n {
                for j in 0..n {
                    let entry: f64 = (0..n).map(|k| a[i * n + k] * inverse[(k, j)]).sum();
                    let expected = if i == j { 1.0 } else { 0.0 };
                    assert!((entry - expected).abs() < 1e-11, "n = {n}: {entry} at ({i}, {j})");
                }
            }
        }
    }

    #[test]
    fn same_bits_for_any_number_of_threads() {
        let n = 1100;
        let lower = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let data = pool
                .install(|| Cholesky::new(kernel_like(n), n, 0.1, &Watch::default()))
                .unwrap()
                .into_buffer();
            (0..n).flat_map(|j| data[j * n + j..(j + 1) * n].to_vec()).collect::<Vec<_>>()
        };
        let one = lower(1);
        for threads in [2, 3, 8] {
            assert!(one == lower(threads), "{threads} threads");
        }
    }

    #[test]
    fn an_indefinite_matrix_is_an_error_that_names_the_pivot() {
        for (n, bad) in [(300, 17), (900, 700)] {
            let mut a = kernel_like(n);
            a[bad * n + bad] = -1.0;
            match Cholesky::new(a, n, 0.1, &Watch::default()) {
                Err(Error::NotPositiveDefinite { pivot, .. }) => assert_eq!(pivot, bad),
                other => panic!("{:?}", other.map(|_| ())),
            }
        }
    }

    #[test]
    fn a_raised_flag_interrupts() {
        let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let run = crate::run::Run::new().interrupt(flag);
        let result = Cholesky::new(kernel_like(50), 50, 0.1, run.watch());
        assert!(matches!(result, Err(Error::Interrupted)));
    }
}
