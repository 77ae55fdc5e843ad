//! Cholesky factorisation A = R R' of the ridged kernel matrix, and its triangular solves.
//!
//! A matrix is factored one block column at a time (the right-looking algorithm): its diagonal block, the rows below it, and
//! then their product is subtracted from the columns to the right, in parallel. What is done by one task depends on the
//! size of the matrix alone, so the factor has the same bits for any number of threads. An interrupt is checked for before
//! each block column.
// Tiles are written as in formulas, with an index for each side.
#![allow(clippy::needless_range_loop)]

use std::cell::Cell;
use std::ops::Range;

use super::instructions::{dispatch, mul_add};
use super::product::{
    Columns, LEFT_ROWS, Packed, Rows, Terms, Tile, UNIT, Update, one_tile, panels_product,
    three_tiles,
};
use super::{Block, Matrix};
use crate::error::{Error, Result};
use crate::watch::Watch;
use crate::{memory, parallel};

/// Matrices up to this size are factored on one thread, in narrow block columns.
const SEQUENTIAL: usize = 768;
/// Width of a block column, for small and for large matrices.
const NARROW: usize = 64;
const BROAD: usize = 256;
/// Columns or rows that a task of a large matrix has.
const TASK: usize = 96;
/// Number of columns of the inverse that are computed together.
const INVERSE_TILE: usize = 64;
/// So many right-hand sides, or more, are solved for together.
const TOGETHER: usize = 3;

/// The lower factor R, stored column by column; the entries above the diagonal are arbitrary.
pub struct Cholesky {
    data: Vec<f64>,
    n: usize,
}

/// R x = b, or R' x = b.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Side {
    Lower,
    Upper,
}

impl Cholesky {
    /// Factors the symmetric `n` x `n` matrix in `data`, stored by columns; only its lower triangle is
    /// read. `ridge` is the value that the caller has added to the diagonal: it is named in the error,
    /// beside the index of the pivot that is not positive, and not used otherwise.
    pub fn new(mut data: Vec<f64>, n: usize, ridge: f64, watch: &Watch) -> Result<Self> {
        let small = n <= SEQUENTIAL;
        let mut panels = if small { PANELS.take() } else { Vec::new() };
        let factored = factor(&mut data, n, ridge, &mut panels, watch);
        if small {
            PANELS.set(panels);
        }
        factored.map(|()| Self { data, n })
    }

    /// Gives back the memory of the factor, to be reused by the next factorisation.
    pub fn into_buffer(self) -> Vec<f64> {
        self.data
    }

    /// R by columns; the entries above the diagonal are arbitrary.
    pub(crate) fn lower(&self) -> &[f64] {
        &self.data
    }

    /// x <- R^-1 x for each of the columns (of length n, one after the other) in `x`.
    pub fn solve_lower(&self, x: &mut [f64]) {
        self.each_column_chunk(x, |x| solve(Side::Lower, &self.data, self.n, x, self.n));
    }

    /// As [`Cholesky::solve_lower`], for so many columns that an interrupt must be seen meanwhile; `x` is then not the solution.
    pub fn solve_lower_watched(&self, x: &mut [f64], watch: &Watch) -> Result<()> {
        self.each_column_chunk(x, |x| {
            if watch.check().is_ok() {
                solve(Side::Lower, &self.data, self.n, x, self.n);
            }
        });
        watch.check()
    }

    /// x <- R'^-1 x for each column in `x`.
    pub fn solve_upper(&self, x: &mut [f64]) {
        self.each_column_chunk(x, |x| solve(Side::Upper, &self.data, self.n, x, self.n));
    }

    /// The columns of R^-1 at the given positions, which must ascend, one after the other. All of them
    /// start at row `positions[0]`, above which they are zero.
    pub fn inverse_columns(&self, positions: &[usize]) -> Vec<f64> {
        let Some(&first) = positions.first() else { return Vec::new() };
        let rows = self.n - first;
        let mut x = vec![0.0; rows * positions.len()];
        (x.chunks_exact_mut(rows)).zip(positions).for_each(|(x, &p)| x[p - first] = 1.0);
        solve(Side::Lower, &self.data[first * self.n + first..], self.n, &mut x, rows);
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

    fn each_column_chunk(&self, x: &mut [f64], solve: impl Fn(&mut [f64]) + Sync) {
        if self.n == 0 {
            return;
        }
        // A wide chunk reads the factor less often. With few columns the chunks are narrower, so that
        // there are still several to share among the threads.
        let columns = if x.len() >= 256 * self.n { 64 } else { 16 };
        parallel::for_each(x.chunks_mut(self.n * columns), solve);
    }
}

thread_local! {
    /// Memory for the panels of small matrices, less than 1 MB: to ask for it takes a turn among all threads, which were
    /// seen to wait for each other where many small matrices are factored at a time.
    static PANELS: Cell<Vec<f64>> = const { Cell::new(Vec::new()) };
}

/// Replaces the lower triangle of `data` by its factor. `panels` is memory to work in.
fn factor(
    data: &mut [f64],
    n: usize,
    ridge: f64,
    panels: &mut Vec<f64>,
    watch: &Watch,
) -> Result<()> {
    let block = if n <= SEQUENTIAL { NARROW } else { BROAD };
    let room = n.next_multiple_of(UNIT) * block.min(n).next_multiple_of(UNIT);
    if panels.len() < room {
        memory::reserve(panels, room - panels.len(), "a factor of the kernel matrix")?;
        panels.resize(room, 0.0);
    }
    for done in (0..n).step_by(block) {
        watch.check()?;
        let width = block.min(n - done);
        factor_block_column(&mut data[done * n..], n, width, panels)
            .map_err(|pivot| Error::NotPositiveDefinite { pivot: done + pivot, ridge })?;
    }
    Ok(())
}

/// One step of the right-looking algorithm. `columns` begins with the first column of the block and ends with the matrix, whose
/// columns are `n` long: factors its first `width` columns and subtracts their outer product from the rest. The error is the
/// index of the pivot that is not positive. `panels` is memory to work in.
fn factor_block_column(
    columns: &mut [f64],
    n: usize,
    width: usize,
    panels: &mut [f64],
) -> std::result::Result<(), usize> {
    let rows = columns.len() / n;
    let first = n - rows;
    let (block, right) = columns.split_at_mut(width * n);
    let depth = width.next_multiple_of(UNIT);
    // What is in it from before is overwritten.
    let panels = &mut panels[..rows.next_multiple_of(UNIT) * depth];
    let (diagonal, below) = panels.split_at_mut(depth * depth);

    factor_diagonal(&block[first..], n, width, diagonal).map_or(Ok(()), Err)?;
    let below_from = first + width;
    let task = |(t, panels): (usize, &mut [f64])| {
        solve_panels(&block[below_from + t * TASK..], n, diagonal, depth, panels);
    };
    let tasks = below.chunks_mut(TASK * depth).enumerate();
    if n <= SEQUENTIAL {
        tasks.for_each(task)
    } else {
        parallel::for_each(tasks, task)
    }

    let task = |(k, column): (usize, &mut [f64])| {
        let (whole, rest) = column[first..].as_chunks_mut::<UNIT>();
        let mut terms = panels.as_chunks::<UNIT>().0[k..].iter().step_by(depth);
        whole.iter_mut().zip(&mut terms).for_each(|(to, term)| *to = *term);
        rest.iter_mut().zip(terms.flatten()).for_each(|(to, v)| *to = *v);
    };
    let columns = block.chunks_mut(n).enumerate();
    if n <= SEQUENTIAL {
        columns.for_each(task)
    } else {
        parallel::for_each(columns, task)
    }

    let below = &panels[depth * depth..];
    let task = |(t, columns): (usize, &mut [f64])| {
        let (first, from) = (below_from + t * TASK, &below[t * TASK * depth..]);
        let cols = columns.len() / n;
        let right = &from[..cols.next_multiple_of(UNIT) * depth];
        for (l, left) in from.chunks(LEFT_ROWS * depth).enumerate() {
            let above = l * LEFT_ROWS;
            let update = Update { alpha: -1.0, add: true, triangle: Some(above / UNIT) };
            let size = ((n - first - above).min(LEFT_ROWS), cols);
            panels_product(&mut columns[first + above..], n, size, depth, update, left, right);
        }
    };
    let tasks = right.chunks_mut(TASK * n).enumerate();
    if n <= SEQUENTIAL {
        tasks.for_each(task)
    } else {
        parallel::for_each(tasks, task)
    }
    Ok(())
}

dispatch! {
    /// Factors the block of `width` columns that begins at `block[0]`, whose columns are `stride` apart, into panels. What
    /// is missing of the last one is filled up with a unit matrix. Returns the index of a pivot that is not positive.
    fn factor_diagonal(block: &[f64], stride: usize, width: usize, panels: &mut [f64]) -> Option<usize>
        = factor_diagonal_body, by width
}

#[inline(always)]
fn factor_diagonal_body<const FMA: bool, const WIDE: bool>(
    block: &[f64],
    stride: usize,
    width: usize,
    panels: &mut [f64],
) -> Option<usize> {
    let panel = UNIT * width.next_multiple_of(UNIT);
    let mut rest = panels;
    for j in (0..width).step_by(UNIT) {
        let (pivots, below) = rest.split_at_mut(panel);
        let (done, open) = pivots.split_at_mut(j * UNIT);
        let Some(tile) = first_tile(open) else { break };
        let product = one_tile::<FMA, WIDE, _>(done, Packed(done), j);
        subtract(&block[j * stride + j..], stride, &product, tile);
        // What follows the end of a column belongs to the next one.
        for missing in width - j..UNIT {
            tile.iter_mut().for_each(|column| column[missing] = 0.0);
            tile[missing] = std::array::from_fn(|l| if l == missing { 1.0 } else { 0.0 });
        }
        for c in 0..UNIT {
            for b in 0..c {
                let factor = -tile[b][c];
                for l in 0..UNIT {
                    tile[c][l] = mul_add::<FMA>(tile[b][l], factor, tile[c][l]);
                }
            }
            if tile[c][c] <= 0.0 || tile[c][c].is_nan() {
                return Some(j + c);
            }
            let root = tile[c][c].sqrt();
            for l in 0..UNIT {
                tile[c][l] = if l < c { 0.0 } else { tile[c][l] / root };
            }
            tile[c][c] = root;
        }
        let inverse = inverse_pivots(tile);
        for (p, other) in below.chunks_exact_mut(panel).enumerate() {
            let block = &block[j * stride + j + (p + 1) * UNIT..];
            let (left, open) = other.split_at_mut(j * UNIT);
            let product = one_tile::<FMA, WIDE, _>(left, Packed(done), j);
            solve_rows::<FMA>(block, stride, open, &product, tile, &inverse);
        }
        rest = below;
    }
    None
}

dispatch! {
    /// The rows of a block column below its diagonal block, as panels: `block[0]` is the first of their entries, and
    /// columns are `stride` apart. `diagonal` has the panels of the factored diagonal block.
    fn solve_panels(block: &[f64], stride: usize, diagonal: &[f64], depth: usize, panels: &mut [f64])
        = solve_panels_body, by width
}

#[inline(always)]
fn solve_panels_body<const FMA: bool, const WIDE: bool>(
    block: &[f64],
    stride: usize,
    diagonal: &[f64],
    depth: usize,
    panels: &mut [f64],
) {
    let panel = UNIT * depth;
    for (j, pivots) in (0..depth).step_by(UNIT).zip(diagonal.chunks_exact(panel)) {
        let (done, tile) = pivots.split_at(j * UNIT);
        let tile: &Tile = match tile.as_chunks::<UNIT>().0.first_chunk() {
            Some(tile) => tile,
            None => return,
        };
        let inverse = inverse_pivots(tile);
        let (block, open) = (&block[j * stride..], j * UNIT);
        let mut row = 0;
        let mut rest = &mut *panels;
        while WIDE && rest.len() >= 3 * panel {
            let (three, others) = rest.split_at_mut(3 * panel);
            let (a, bc) = three.split_at_mut(panel);
            let (b, c) = bc.split_at_mut(panel);
            let products = three_tiles::<FMA, _>([a, b, c], Packed(done), j);
            solve_rows::<FMA>(&block[row..], stride, &mut a[open..], &products[0], tile, &inverse);
            solve_rows::<FMA>(
                &block[row + UNIT..],
                stride,
                &mut b[open..],
                &products[1],
                tile,
                &inverse,
            );
            solve_rows::<FMA>(
                &block[row + 2 * UNIT..],
                stride,
                &mut c[open..],
                &products[2],
                tile,
                &inverse,
            );
            (rest, row) = (others, row + 3 * UNIT);
        }
        for panel in rest.chunks_exact_mut(panel) {
            let product = one_tile::<FMA, WIDE, _>(panel, Packed(done), j);
            solve_rows::<FMA>(&block[row..], stride, &mut panel[open..], &product, tile, &inverse);
            row += UNIT;
        }
    }
}

/// The tile at the beginning of an open part of a panel.
#[inline(always)]
fn first_tile(open: &mut [f64]) -> Option<&mut Tile> {
    open.as_chunks_mut().0.first_chunk_mut()
}

/// The next terms of one panel of [`solve_panels`], which are put into `open`.
#[inline(always)]
fn solve_rows<const FMA: bool>(
    block: &[f64],
    stride: usize,
    open: &mut [f64],
    product: &Tile,
    pivots: &Tile,
    inverse: &[f64; UNIT],
) {
    if let Some(tile) = first_tile(open) {
        subtract(block, stride, product, tile);
        solve_tile::<FMA>(tile, pivots, inverse);
    }
}

/// The tile of the matrix that begins at `block[0]`, less a product. Where the matrix ends it is zero.
#[inline(always)]
fn subtract(block: &[f64], stride: usize, product: &Tile, tile: &mut Tile) {
    for (c, (tile, product)) in tile.iter_mut().zip(product).enumerate() {
        let column = block.get(c * stride..).unwrap_or_default();
        match column.first_chunk::<UNIT>() {
            Some(column) => (0..UNIT).for_each(|l| tile[l] = column[l] - product[l]),
            None => (0..UNIT).for_each(|l| tile[l] = column.get(l).map_or(0.0, |v| v - product[l])),
        }
    }
}

/// One over each entry of the diagonal.
#[inline(always)]
fn inverse_pivots(tile: &Tile) -> [f64; UNIT] {
    std::array::from_fn(|c| 1.0 / tile[c][c])
}

/// x <- x R'^-1 for a lower triangular tile R.
#[inline(always)]
fn solve_tile<const FMA: bool>(x: &mut Tile, r: &Tile, inverse: &[f64; UNIT]) {
    for c in 0..UNIT {
        for b in 0..c {
            for l in 0..UNIT {
                x[c][l] = mul_add::<FMA>(x[b][l], -r[b][c], x[c][l]);
            }
        }
        for l in 0..UNIT {
            x[c][l] *= inverse[c];
        }
    }
}

/// As [`solve_tile`] for an upper triangular tile, from the last column on.
#[inline(always)]
fn solve_upper_tile<const FMA: bool>(x: &mut Tile, r: &Tile, inverse: &[f64; UNIT]) {
    for c in (0..UNIT).rev() {
        for b in c + 1..UNIT {
            for l in 0..UNIT {
                x[c][l] = mul_add::<FMA>(x[b][l], -r[b][c], x[c][l]);
            }
        }
        for l in 0..UNIT {
            x[c][l] *= inverse[c];
        }
    }
}

/// x <- R^-1 x or R'^-1 x for the columns of `x`, which have `n` rows. `r[0]` is the first entry of R, whose columns are `stride`
/// apart.
fn solve(side: Side, r: &[f64], stride: usize, x: &mut [f64], n: usize) {
    if x.len() < TOGETHER * n {
        let mut padded = vec![0.0; n.next_multiple_of(UNIT)];
        for x in x.chunks_exact_mut(n) {
            padded[..n].copy_from_slice(x);
            padded[n..].fill(0.0);
            solve_one(side, r, stride, n, &mut padded);
            x.copy_from_slice(&padded[..n]);
        }
        return;
    }
    // Panels of some columns each, with their rows as terms: what is solved for is then used by the next rows as it is.
    let mut panels = Vec::new();
    for x in x.chunks_mut(3 * UNIT * n) {
        let columns = Block::new(x, x.len() / n, n, n);
        columns.pack(0..x.len() / n, 0..n, &mut panels);
        substitute(side, r, stride, n, &mut panels);
        for (panel, x) in panels.chunks_exact(UNIT * n).zip(x.chunks_mut(UNIT * n)) {
            for (c, x) in x.chunks_exact_mut(n).enumerate() {
                x.iter_mut().zip(panel.chunks_exact(UNIT)).for_each(|(x, term)| *x = term[c]);
            }
        }
    }
}

dispatch! {
    /// As [`solve`], for panels of right-hand sides with `n` terms.
    fn substitute(side: Side, r: &[f64], stride: usize, n: usize, panels: &mut [f64]) = substitute_body, by width
}

#[inline(always)]
fn substitute_body<const FMA: bool, const WIDE: bool>(
    side: Side,
    r: &[f64],
    stride: usize,
    n: usize,
    panels: &mut [f64],
) {
    let blocks = n.div_ceil(UNIT);
    for step in 0..blocks {
        let block = if side == Side::Lower { step } else { blocks - 1 - step };
        let first = block * UNIT;
        let end = n.min(first + UNIT);
        // Row c of the triangle has `pivots[b][c]` in its column b.
        let tile = pivot_tile(r, stride, first, n);
        let pivots = match side {
            Side::Lower => tile,
            Side::Upper => std::array::from_fn(|c| std::array::from_fn(|b| tile[b][c])),
        };
        match side {
            // Where fewer rows are left than a tile has, the rest of the tile is not used.
            Side::Lower => {
                let right = Columns { data: &r[first..], step: stride };
                substitute_block::<FMA, WIDE, _>(side, panels, n, first..end, right, &pivots);
            }
            Side::Upper => {
                let right = Rows::new(&r[first * stride + end..], stride, n - end);
                substitute_block::<FMA, WIDE, _>(side, panels, n, first..end, right, &pivots);
            }
        }
    }
}

/// The rows `block` of all right-hand sides. `right` has their factors of the rows that are solved for already.
#[inline(always)]
fn substitute_block<const FMA: bool, const WIDE: bool, R: Terms>(
    side: Side,
    panels: &mut [f64],
    n: usize,
    block: Range<usize>,
    right: R,
    pivots: &Tile,
) {
    let known = if side == Side::Lower { 0..block.start } else { block.end..n };
    let depth = known.len();
    let known = known.start * UNIT..known.end * UNIT;
    let inverse = inverse_pivots(pivots);
    let block = block.start * UNIT..block.end * UNIT;
    let panel = UNIT * n;
    let mut rest = panels;
    while WIDE && rest.len() >= 3 * panel {
        let (three, others) = rest.split_at_mut(3 * panel);
        let (a, bc) = three.split_at_mut(panel);
        let (b, c) = bc.split_at_mut(panel);
        let left = [&a[known.clone()], &b[known.clone()], &c[known.clone()]];
        let products = three_tiles::<FMA, R>(left, right, depth);
        solve_open::<FMA>(side, &mut a[block.clone()], &products[0], pivots, &inverse);
        solve_open::<FMA>(side, &mut b[block.clone()], &products[1], pivots, &inverse);
        solve_open::<FMA>(side, &mut c[block.clone()], &products[2], pivots, &inverse);
        rest = others;
    }
    for panel in rest.chunks_exact_mut(panel) {
        let product = one_tile::<FMA, WIDE, R>(&panel[known.clone()], right, depth);
        solve_open::<FMA>(side, &mut panel[block.clone()], &product, pivots, &inverse);
    }
}

/// Some rows of a panel of right-hand sides, of which a product is still to be subtracted.
#[inline(always)]
fn solve_open<const FMA: bool>(
    side: Side,
    open: &mut [f64],
    product: &Tile,
    pivots: &Tile,
    inverse: &[f64; UNIT],
) {
    if let Some(tile) = first_tile(open) {
        solve_whole::<FMA>(side, tile, product, pivots, inverse);
    } else {
        let mut tile = [[0.0; UNIT]; UNIT];
        tile.as_flattened_mut()[..open.len()].copy_from_slice(open);
        solve_whole::<FMA>(side, &mut tile, product, pivots, inverse);
        open.copy_from_slice(&tile.as_flattened()[..open.len()]);
    }
}

#[inline(always)]
fn solve_whole<const FMA: bool>(
    side: Side,
    tile: &mut Tile,
    product: &Tile,
    pivots: &Tile,
    inverse: &[f64; UNIT],
) {
    for c in 0..UNIT {
        for l in 0..UNIT {
            tile[c][l] -= product[c][l];
        }
    }
    match side {
        Side::Lower => solve_tile::<FMA>(tile, pivots, inverse),
        Side::Upper => solve_upper_tile::<FMA>(tile, pivots, inverse),
    }
}

dispatch! {
    /// As [`solve`] for one right-hand side of `n` numbers, which takes as long as reading the factor. `x` has whole registers:
    /// what follows the numbers must be zero, and is not part of the solution.
    fn solve_one(side: Side, r: &[f64], stride: usize, n: usize, x: &mut [f64]) = solve_one_body, by width
}

#[inline(always)]
fn solve_one_body<const FMA: bool, const WIDE: bool>(
    side: Side,
    r: &[f64],
    stride: usize,
    n: usize,
    x: &mut [f64],
) {
    let blocks = n.div_ceil(UNIT);
    for step in 0..blocks {
        let first = UNIT * if side == Side::Lower { step } else { blocks - 1 - step };
        let Some((open, rest)) = x[first..].split_first_chunk_mut::<UNIT>() else { return };
        let pivots = pivot_tile(r, stride, first, n);
        let inverse = inverse_pivots(&pivots);
        let below = r.get(first * stride + first + UNIT..).unwrap_or_default();
        match side {
            Side::Lower => {
                for b in 0..UNIT {
                    open[b] *= inverse[b];
                    for c in b + 1..UNIT {
                        open[c] = mul_add::<FMA>(-open[b], pivots[b][c], open[c]);
                    }
                }
                subtract_columns::<FMA>(rest, below, stride, open);
            }
            Side::Upper => {
                if !rest.is_empty() {
                    let count = n - first - UNIT;
                    let (low, high) = if WIDE {
                        let [a, b, c, d, e, f, g, h] =
                            dots::<FMA, UNIT>(below, stride, rest, count);
                        ([a, b, c, d], [e, f, g, h])
                    } else {
                        let high = &below[4 * stride..];
                        (
                            dots::<FMA, 4>(below, stride, rest, count),
                            dots::<FMA, 4>(high, stride, rest, count),
                        )
                    };
                    let products = low.into_iter().chain(high);
                    open.iter_mut().zip(products).for_each(|(x, product)| *x -= product);
                }
                for c in (0..UNIT).rev() {
                    open[c] *= inverse[c];
                    for b in 0..c {
                        open[b] = mul_add::<FMA>(-open[c], pivots[b][c], open[b]);
                    }
                }
            }
        }
    }
}

/// The triangle on the diagonal of R that begins in row `first`: `tile[b][c]` stands in its column b and row c. What is missing
/// of it is a unit matrix.
#[inline(always)]
fn pivot_tile(r: &[f64], stride: usize, first: usize, n: usize) -> Tile {
    let mut tile = [[0.0; UNIT]; UNIT];
    for (b, tile) in tile.iter_mut().enumerate() {
        match r.get((first + b) * stride + first..) {
            Some(column) if first + UNIT <= n => {
                (b..UNIT).for_each(|c| tile[c] = column[c]);
            }
            Some(column) if first + b < n => {
                (b..n - first).for_each(|c| tile[c] = column[c]);
            }
            _ => tile[b] = 1.0,
        }
    }
    tile
}

/// `x -= sum_c factors[c] columns[c]` for columns that are `stride` apart. The last numbers of `x` may be behind the end of a
/// column, and mean nothing then.
#[inline(always)]
fn subtract_columns<const FMA: bool>(
    x: &mut [f64],
    columns: &[f64],
    stride: usize,
    factors: &[f64; UNIT],
) {
    if x.is_empty() {
        return;
    }
    let column = |c: usize| columns[c * stride..][..x.len()].as_chunks::<UNIT>().0.iter();
    let [a, b, c, d] = std::array::from_fn(column);
    let [e, f, g, h] = std::array::from_fn(|c| column(c + 4));
    let eight = a.zip(b).zip(c).zip(d).zip(e).zip(f).zip(g).zip(h);
    let factors = factors.map(|factor| -factor);
    for (x, (((((((a, b), c), d), e), f), g), h)) in
        x.as_chunks_mut::<UNIT>().0.iter_mut().zip(eight)
    {
        for l in 0..UNIT {
            let column = [a[l], b[l], c[l], d[l], e[l], f[l], g[l], h[l]];
            for c in 0..UNIT {
                x[l] = mul_add::<FMA>(factors[c], column[c], x[l]);
            }
        }
    }
}

/// The products of the first `count` numbers of `x` with N columns that are `stride` apart.
#[inline(always)]
fn dots<const FMA: bool, const N: usize>(
    columns: &[f64],
    stride: usize,
    x: &[f64],
    count: usize,
) -> [f64; N] {
    let (x, whole) = (x.as_chunks::<UNIT>().0, count / UNIT);
    let columns: [&[f64]; N] = std::array::from_fn(|c| &columns[c * stride..]);
    let chunks: [&[[f64; UNIT]]; N] = columns.map(|column| &column.as_chunks().0[..whole]);
    let mut sums = [[0.0; UNIT]; N];
    for (i, x) in x[..whole].iter().enumerate() {
        for c in 0..N {
            add_products::<FMA>(&mut sums[c], x, &chunks[c][i]);
        }
    }
    // What is behind the end of a column may be anything.
    let rest = count % UNIT;
    if let Some(x) = x.get(whole).filter(|_| rest > 0) {
        for c in 0..N {
            let column = &columns[c][whole * UNIT..];
            // Both say the same; where a whole register can be read, no index has to be checked.
            let last = match column.first_chunk::<UNIT>() {
                Some(column) => std::array::from_fn(|l| if l < rest { column[l] } else { 0.0 }),
                None => std::array::from_fn(|l| if l < rest { column[l] } else { 0.0 }),
            };
            add_products::<FMA>(&mut sums[c], x, &last);
        }
    }
    sums.map(|s| ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])))
}

/// `sums += x v`, number by number.
#[inline(always)]
fn add_products<const FMA: bool>(sums: &mut [f64; UNIT], x: &[f64; UNIT], v: &[f64; UNIT]) {
    for l in 0..UNIT {
        sums[l] = mul_add::<FMA>(x[l], v[l], sums[l]);
    }
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

    /// One right-hand side, some, and so many that they are solved for in panels.
    #[test]
    fn solves_any_number_of_right_hand_sides() {
        for n in [1, 7, 8, 9, 40, 333] {
            let factor = Cholesky::new(kernel_like(n), n, 0.1, &Watch::default()).unwrap();
            let r = |i: usize, j: usize| if j <= i { factor.lower()[j * n + i] } else { 0.0 };
            for columns in [1, 2, 3, 8, 9, 24, 25, 70] {
                let x: Vec<f64> = (0..n * columns).map(|i| ((i * 31) % 17) as f64 - 8.0).collect();
                let product = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
                    let value = |x: &[f64], i| (0..n).map(|k| entry(i, k) * x[k]).sum::<f64>();
                    x.chunks_exact(n).flat_map(|x| (0..n).map(|i| value(x, i))).collect()
                };
                let (mut lower, mut upper) = (product(&r), product(&|i, j| r(j, i)));
                factor.solve_lower(&mut lower);
                factor.solve_upper(&mut upper);
                for (found, expected) in lower.iter().chain(&upper).zip(x.iter().chain(&x)) {
                    assert!((found - expected).abs() < 1e-11, "{n} x {columns}: {found}");
                }
            }
        }
    }

    /// Whole registers are read, also where they reach beyond the end of a column.
    #[test]
    fn what_is_above_the_diagonal_is_not_used() {
        for n in [1, 9, 30, 64, 100] {
            let mut factor = Cholesky::new(kernel_like(n), n, 0.1, &Watch::default()).unwrap();
            let solved = |factor: &Cholesky, columns: usize| {
                let mut x: Vec<f64> = (0..n * columns).map(|i| (i % 5) as f64).collect();
                factor.solve_lower(&mut x);
                factor.solve_upper(&mut x);
                x
            };
            let before = [1, 2, 9].map(|columns| solved(&factor, columns));
            for j in 0..n {
                factor.data[j * n..j * n + j].fill(f64::NAN);
            }
            assert!(before == [1, 2, 9].map(|columns| solved(&factor, columns)), "{n}");
        }
    }

    /// The tiles of AVX-512 and the smaller ones run the same operations.
    #[test]
    fn the_same_bits_with_smaller_tiles() {
        let n = 61;
        let a = kernel_like(n);
        let mut panels = [vec![0.0; 64 * 64], vec![0.0; 64 * 64]];
        assert_eq!(factor_diagonal_body::<true, true>(&a, n, n, &mut panels[0]), None);
        assert_eq!(factor_diagonal_body::<true, false>(&a, n, n, &mut panels[1]), None);
        assert_eq!(panels[0], panels[1]);
        let rows: Vec<f64> = (0..n * n).map(|i| ((i * 37) % 101) as f64).collect();
        let mut below = [vec![0.0; 64 * 40], vec![0.0; 64 * 40]];
        solve_panels_body::<true, true>(&rows, n, &panels[0], 64, &mut below[0]);
        solve_panels_body::<true, false>(&rows, n, &panels[0], 64, &mut below[1]);
        assert_eq!(below[0], below[1]);
        let factor = Cholesky::new(a, n, 0.1, &Watch::default()).unwrap();
        for side in [Side::Lower, Side::Upper] {
            let x: Vec<f64> = (0..n * 40).map(|i| ((i * 13) % 29) as f64).collect();
            let (mut wide, mut narrow) = (x.clone(), x);
            substitute_body::<true, true>(side, factor.lower(), n, n, &mut wide);
            substitute_body::<true, false>(side, factor.lower(), n, n, &mut narrow);
            assert_eq!(wide, narrow);
            let x: Vec<f64> = (0..64).map(|i| if i < n { (i % 7) as f64 } else { 0.0 }).collect();
            let (mut wide, mut narrow) = (x.clone(), x);
            solve_one_body::<true, true>(side, factor.lower(), n, n, &mut wide);
            solve_one_body::<true, false>(side, factor.lower(), n, n, &mut narrow);
            assert_eq!(wide[..n], narrow[..n]);
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
