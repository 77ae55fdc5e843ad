//! Matrix products: `out = alpha a b`.
//!
//! Both factors are first copied into *panels* of [`UNIT`] rows, in the order in which they are read (Goto and van de Geijn,
//! "Anatomy of high-performance matrix multiplication"). A tile of the product is then the sum over k of outer products of
//! one column of a left panel and one of a right panel, and stays in registers until the sum is complete.
//!
//! All of it is plain Rust, compiled for several instruction sets like the other loops. An entry is the sum of its terms in
//! the order of k, over sections of [`DEPTH`] terms that are added one after the other; this holds in every tile, so that
//! an entry has the same bits wherever it stands in a matrix, and with AVX-512 the same as with AVX2.

use std::cell::Cell;
use std::ops::Range;

use super::instructions::{dispatch, mul_add};
use super::loops::add_columns;
use super::matrix::Matrix;

/// Rows of a panel: the numbers in one register of AVX-512.
pub(super) const UNIT: usize = 8;
/// Terms that are summed up in registers. A right panel of so many terms stays in the fastest cache.
const DEPTH: usize = 256;
/// Rows of the left factor whose panels are made at a time: they stay in the second cache.
pub(super) const LEFT_ROWS: usize = 30 * UNIT;
/// Rows of the right factor whose panels are made at a time.
const RIGHT_ROWS: usize = 128 * UNIT;
/// Columns of a product up to which rows of `a` are read where they are.
const THIN: usize = 96;

/// The product of two panels: `tile[c][l]` belongs to row c of the right panel and to row l of the left one.
pub(super) type Tile = [[f64; UNIT]; UNIT];

/// A read-only matrix: a part of a row-major array, or the transpose of one.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    data: &'a [f64],
    rows: usize,
    cols: usize,
    /// How far apart two rows are, and two columns; one of these is 1.
    strides: (usize, usize),
}

impl<'a> Block<'a> {
    /// `rows` x `cols` values starting at `data[0]`, rows `stride` apart.
    pub fn new(data: &'a [f64], rows: usize, cols: usize, stride: usize) -> Self {
        Self { data, rows, cols, strides: (stride, 1) }
    }

    /// `count` rows of a matrix from `first` on.
    pub fn rows(m: &'a Matrix, first: usize, count: usize) -> Self {
        let width = m.cols();
        Self::new(&m.as_slice()[first * width..(first + count) * width], count, width, width)
    }

    /// The transposed block.
    pub fn t(self) -> Self {
        let (row, col) = self.strides;
        Self { rows: self.cols, cols: self.rows, strides: (col, row), ..self }
    }

    /// Copies the columns `terms` of the rows `rows` into panels, one after the other; what is missing of the last one is zero.
    pub fn pack(self, rows: Range<usize>, terms: Range<usize>, panels: &mut Vec<f64>) {
        let depth = terms.len();
        // What is in it from before is overwritten.
        panels.resize(rows.len().next_multiple_of(UNIT) * depth, 0.0);
        if panels.is_empty() {
            return;
        }
        let (row, col) = self.strides;
        for (first, panel) in rows.clone().step_by(UNIT).zip(panels.chunks_exact_mut(UNIT * depth))
        {
            let from = &self.data[first * row + terms.start * col..];
            pack_panel(from, self.strides, UNIT.min(rows.end - first), depth, panel);
        }
    }
}

impl<'a> From<&'a Matrix> for Block<'a> {
    fn from(m: &'a Matrix) -> Self {
        Self::new(m.as_slice(), m.rows(), m.cols(), m.cols())
    }
}

/// What is done with the product of two blocks of panels.
#[derive(Clone, Copy)]
pub(super) struct Update {
    /// Factor of the product.
    pub alpha: f64,
    /// Whether it is added to what is there, or put in its place.
    pub add: bool,
    /// Of a symmetric product only the lower triangle is needed: left panel l has the rows of right panel `l + triangle`, and
    /// tiles above that one are left out.
    pub triangle: Option<usize>,
}

/// `out = alpha a b`, where the row-major `out` has rows `stride` apart.
pub(crate) fn product(out: &mut [f64], stride: usize, alpha: f64, a: Block<'_>, b: Block<'_>) {
    into_rows(out, stride, Update { alpha, add: false, triangle: None }, a, b);
}

/// `out += a b`.
pub(crate) fn add_product(out: &mut Matrix, a: Block<'_>, b: Block<'_>) {
    let stride = out.cols();
    into_rows(out.as_mut_slice(), stride, Update { alpha: 1.0, add: true, triangle: None }, a, b);
}

/// `a b` as a new matrix.
pub(crate) fn multiply(a: Block<'_>, b: Block<'_>) -> Matrix {
    let mut out = Matrix::zeros(a.rows, b.cols);
    let stride = out.cols();
    product(out.as_mut_slice(), stride, 1.0, a, b);
    out
}

/// The rows of `out` are contiguous, so that they are the columns of tiles: the left panels are those of `b`, transposed.
fn into_rows(out: &mut [f64], stride: usize, update: Update, a: Block<'_>, b: Block<'_>) {
    let (rows, terms, cols, left) = (a.rows, a.cols, b.cols, b.t());
    if terms == 0 && !update.add {
        (0..rows).for_each(|i| out[i * stride..i * stride + cols].fill(0.0));
    }
    if cols == 1 && rows > 0 && a.strides.0 == 1 {
        return into_column(out, stride, update, a, b);
    }
    // Rows of `a` that are used for few columns are not worth a copy.
    let in_place = if a.strides.1 == 1 && cols <= THIN { rows - rows % UNIT } else { 0 };
    let (mut left_panels, mut right_panels) = PANELS.take();
    for k in (0..terms).step_by(DEPTH) {
        let section = k..terms.min(k + DEPTH);
        let update = Update { add: update.add || k > 0, ..update };
        if in_place > 0 {
            left.pack(0..cols, section.clone(), &mut left_panels);
            let right = Block { data: &a.data[k..], rows: in_place, cols: section.len(), ..a };
            rows_product(out, stride, cols, update, &left_panels, right);
        }
        for i in (in_place..rows).step_by(RIGHT_ROWS) {
            let part = i..rows.min(i + RIGHT_ROWS);
            a.pack(part.clone(), section.clone(), &mut right_panels);
            for j in (0..cols).step_by(LEFT_ROWS) {
                let columns = j..cols.min(j + LEFT_ROWS);
                left.pack(columns.clone(), section.clone(), &mut left_panels);
                let size = (columns.len(), part.len());
                let out = &mut out[i * stride + j..];
                panels_product(
                    out,
                    stride,
                    size,
                    section.len(),
                    update,
                    &left_panels,
                    &right_panels,
                );
            }
        }
    }
    PANELS.set((left_panels, right_panels));
}

/// As [`into_rows`] for one column, and a factor `a` whose columns are contiguous: they are added up where they are. A tile would
/// be empty but for an eighth of it. The sums are the same, term by term.
fn into_column(out: &mut [f64], stride: usize, update: Update, a: Block<'_>, b: Block<'_>) {
    let mut sums = vec![0.0; a.rows];
    for k in (0..a.cols).step_by(DEPTH) {
        let section = k..a.cols.min(k + DEPTH);
        let columns: Vec<&[f64]> =
            section.clone().map(|k| &a.data[k * a.strides.1..][..a.rows]).collect();
        let factors: Vec<f64> = section.map(|k| b.data[k * b.strides.0]).collect();
        sums.fill(0.0);
        add_columns(&mut sums, &columns, &factors, 0);
        for (out, sum) in out.iter_mut().step_by(stride).zip(&sums) {
            let before = if update.add || k > 0 { *out } else { 0.0 };
            *out = before + update.alpha * sum;
        }
    }
}

/// The right factor of products with many left ones, in panels that are made once.
pub(crate) struct Panels {
    /// One section of [`DEPTH`] terms after the other, each with the panels of all columns.
    data: Vec<f64>,
    terms: usize,
    cols: usize,
}

impl Panels {
    pub fn new(b: Block<'_>) -> Self {
        let (terms, cols) = (b.rows, b.cols);
        let (mut data, mut section) = (Vec::new(), Vec::new());
        for k in (0..terms).step_by(DEPTH) {
            b.t().pack(0..cols, k..terms.min(k + DEPTH), &mut section);
            data.extend_from_slice(&section);
        }
        Self { data, terms, cols }
    }

    /// Calls `make` with the place of each block of columns, in order, and its panels for the terms from `first` on.
    fn blocks(
        &self,
        columns: Range<usize>,
        first: usize,
        mut make: impl FnMut(usize, usize, &[f64]),
    ) {
        let depth = DEPTH.min(self.terms - first);
        let section = &self.data[first * self.cols.next_multiple_of(UNIT)..];
        let panels = &section[columns.start * depth..columns.end.next_multiple_of(UNIT) * depth];
        for (l, left) in panels.chunks(LEFT_ROWS * depth).enumerate() {
            let place = l * LEFT_ROWS;
            make(place, LEFT_ROWS.min(columns.len() - place), left);
        }
    }
}

/// As [`product`] with `columns` of a factor that is in panels; the first of them is a multiple of [`UNIT`].
pub(crate) fn product_with(
    out: &mut [f64],
    stride: usize,
    alpha: f64,
    a: Block<'_>,
    b: &Panels,
    columns: Range<usize>,
) {
    if a.cols == 0 {
        (0..a.rows).for_each(|i| out[i * stride..i * stride + columns.len()].fill(0.0));
    }
    let (left_panels, mut right_panels) = PANELS.take();
    for k in (0..a.cols).step_by(DEPTH) {
        let section = k..a.cols.min(k + DEPTH);
        let update = Update { alpha, add: k > 0, triangle: None };
        for i in (0..a.rows).step_by(RIGHT_ROWS) {
            let part = i..a.rows.min(i + RIGHT_ROWS);
            a.pack(part.clone(), section.clone(), &mut right_panels);
            b.blocks(columns.clone(), k, |place, count, left| {
                let out = &mut out[i * stride + place..];
                let size = (count, part.len());
                panels_product(out, stride, size, section.len(), update, left, &right_panels);
            });
        }
    }
    PANELS.set((left_panels, right_panels));
}

thread_local! {
    /// Memory for the panels of a product, at most 3 MB: asking for it anew takes as long as a small product.
    static PANELS: Cell<(Vec<f64>, Vec<f64>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

dispatch! {
    /// One panel of [`Block::pack`], from the `rows` rows that begin at `from[0]`.
    fn pack_panel(from: &[f64], strides: (usize, usize), rows: usize, depth: usize, panel: &mut [f64])
        = pack_panel_body
}

#[inline(always)]
fn pack_panel_body<const FMA: bool>(
    from: &[f64],
    (row, col): (usize, usize),
    rows: usize,
    depth: usize,
    panel: &mut [f64],
) {
    let terms = panel.as_chunks_mut::<UNIT>().0.iter_mut().enumerate();
    if row == 1 {
        for (k, to) in terms {
            let from = &from[k * col..];
            *to = match from.first_chunk::<UNIT>() {
                // A whole register, also where fewer rows are asked for: numbers of others are not used.
                Some(from) => std::array::from_fn(|r| if r < rows { from[r] } else { 0.0 }),
                None => std::array::from_fn(|r| if r < rows { from[r] } else { 0.0 }),
            };
        }
    } else {
        debug_assert_eq!(col, 1, "rows or columns are contiguous");
        let from: [&[f64]; UNIT] = std::array::from_fn(|r| &from[r.min(rows - 1) * row..][..depth]);
        for ((_, to), v) in terms.zip(Rows(from).terms(depth)) {
            *to = std::array::from_fn(|r| if r < rows { v(r) } else { 0.0 });
        }
    }
}

dispatch! {
    /// The product of all left with all right panels of `depth` terms: entry (l, c), of which there are `size`, goes to
    /// `out[c * stride + l]`.
    fn panels_product(
        out: &mut [f64], stride: usize, size: (usize, usize), depth: usize, update: Update, left: &[f64], right: &[f64]
    ) = panels_product_body, by width
}

#[inline(always)]
fn panels_product_body<const FMA: bool, const WIDE: bool>(
    out: &mut [f64],
    stride: usize,
    (rows, cols): (usize, usize),
    depth: usize,
    update: Update,
    left: &[f64],
    right: &[f64],
) {
    let panel = (UNIT * depth).max(1);
    for (c, right) in right.chunks_exact(panel).enumerate() {
        let above = update.triangle.map_or(0, |triangle| c.saturating_sub(triangle));
        let Some(left) = left.get(above * panel..) else { return };
        let first = above * UNIT;
        let out = &mut out[c * UNIT * stride + first.min(rows)..];
        let size = (rows.saturating_sub(first), UNIT.min(cols - c * UNIT));
        tiles::<FMA, WIDE, _>(out, stride, size, update, left, Packed(right), depth);
    }
}

dispatch! {
    /// As [`panels_product`] with rows of a matrix, a multiple of [`UNIT`] of them, in place of right panels: for `cols` left
    /// rows.
    fn rows_product(out: &mut [f64], stride: usize, cols: usize, update: Update, left: &[f64], right: Block<'_>)
        = rows_product_body, by width
}

#[inline(always)]
fn rows_product_body<const FMA: bool, const WIDE: bool>(
    out: &mut [f64],
    stride: usize,
    cols: usize,
    update: Update,
    left: &[f64],
    right: Block<'_>,
) {
    for first in (0..right.rows).step_by(UNIT) {
        let rows = Rows::new(&right.data[first * right.strides.0..], right.strides.0, right.cols);
        let out = &mut out[first * stride..];
        tiles::<FMA, WIDE, _>(out, stride, (cols, UNIT), update, left, rows, right.cols);
    }
}

/// The products of all left panels with one right panel.
#[inline(always)]
fn tiles<const FMA: bool, const WIDE: bool, R: Terms>(
    out: &mut [f64],
    stride: usize,
    (rows, cols): (usize, usize),
    update: Update,
    left: &[f64],
    right: R,
    depth: usize,
) {
    let panel = (UNIT * depth).max(1);
    let mut first = 0;
    let mut left = left;
    while WIDE && left.len() >= 3 * panel {
        let (three, rest) = left.split_at(3 * panel);
        let (a, others) = three.split_at(panel);
        let (b, c) = others.split_at(panel);
        // Two calls, so that whole tiles do not go through memory because others do.
        if cols == UNIT && rows - first >= 3 * UNIT {
            let tiles = three_tiles::<FMA, R>([a, b, c], right, depth);
            write_whole(&mut out[first..], stride, update, &tiles);
        } else {
            for (l, tile) in three_tiles::<FMA, R>([a, b, c], right, depth).iter().enumerate() {
                let first = first + l * UNIT;
                write(&mut out[first..], stride, UNIT.min(rows - first), cols, update, tile);
            }
        }
        (left, first) = (rest, first + 3 * UNIT);
    }
    if WIDE && left.len() >= 2 * panel {
        let (a, b) = left.split_at(panel);
        if cols == UNIT && rows - first >= 2 * UNIT {
            let tiles = two_tiles::<FMA, R>([a, b], right, depth);
            write_whole(&mut out[first..], stride, update, &tiles);
        } else {
            for (l, tile) in two_tiles::<FMA, R>([a, b], right, depth).iter().enumerate() {
                let first = first + l * UNIT;
                write(&mut out[first..], stride, UNIT.min(rows - first), cols, update, tile);
            }
        }
        return;
    }
    for left in left.chunks_exact(panel) {
        if cols == UNIT && rows - first >= UNIT {
            let tile = one_tile::<FMA, WIDE, R>(left, right, depth);
            write_whole(&mut out[first..], stride, update, &[tile]);
        } else {
            let tile = one_tile::<FMA, WIDE, R>(left, right, depth);
            write(&mut out[first..], stride, UNIT.min(rows - first), cols, update, &tile);
        }
        first += UNIT;
    }
}

/// Puts the entries of a tile that belong to the matrix into `out`.
#[inline(always)]
fn write(out: &mut [f64], stride: usize, rows: usize, cols: usize, update: Update, tile: &Tile) {
    for (c, column) in tile.iter().enumerate().take(cols) {
        for (out, v) in out[c * stride..].iter_mut().zip(&column[..rows]) {
            let before = if update.add { *out } else { 0.0 };
            *out = before + update.alpha * v;
        }
    }
}

/// As [`write`] for whole tiles, one below the other, from the registers in which they are.
#[inline(always)]
fn write_whole<const N: usize>(out: &mut [f64], stride: usize, update: Update, tiles: &[Tile; N]) {
    write_column(out, tiles, 0, update);
    write_column(&mut out[stride..], tiles, 1, update);
    write_column(&mut out[2 * stride..], tiles, 2, update);
    write_column(&mut out[3 * stride..], tiles, 3, update);
    write_column(&mut out[4 * stride..], tiles, 4, update);
    write_column(&mut out[5 * stride..], tiles, 5, update);
    write_column(&mut out[6 * stride..], tiles, 6, update);
    write_column(&mut out[7 * stride..], tiles, 7, update);
}

#[inline(always)]
fn write_column<const N: usize>(out: &mut [f64], tiles: &[Tile; N], c: usize, update: Update) {
    let Some(out) = out.as_chunks_mut::<UNIT>().0.first_chunk_mut::<N>() else { return };
    for t in 0..N {
        for l in 0..UNIT {
            let before = if update.add { out[t][l] } else { 0.0 };
            out[t][l] = before + update.alpha * tiles[t][c][l];
        }
    }
}

/// The right factor of a tile: for each of `depth` terms the numbers of its [`UNIT`] rows. They are read where they are: the
/// compiler would gather them in a register only to take them out again.
pub(super) trait Terms: Copy {
    fn terms(&self, depth: usize) -> impl Iterator<Item = impl Fn(usize) -> f64 + Copy> + Clone;
}

/// A panel made by [`Block::pack`].
#[derive(Clone, Copy)]
pub(super) struct Packed<'a>(pub &'a [f64]);

impl Terms for Packed<'_> {
    #[inline(always)]
    fn terms(&self, depth: usize) -> impl Iterator<Item = impl Fn(usize) -> f64 + Copy> + Clone {
        let terms = &self.0.as_chunks::<UNIT>().0[..depth];
        terms.iter().map(|term| {
            #[inline(always)]
            |c: usize| term[c]
        })
    }
}

/// Rows of a column-major matrix whose columns are `step` apart.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub data: &'a [f64],
    pub step: usize,
}

impl Terms for Columns<'_> {
    #[inline(always)]
    fn terms(&self, depth: usize) -> impl Iterator<Item = impl Fn(usize) -> f64 + Copy> + Clone {
        let columns = self.data.chunks(self.step.max(1)).take(depth);
        columns.map(|column| {
            let term = column.first_chunk::<UNIT>().unwrap_or(&[0.0; UNIT]);
            #[inline(always)]
            |c: usize| term[c]
        })
    }
}

/// Rows of a row-major matrix.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a>([&'a [f64]; UNIT]);

impl<'a> Rows<'a> {
    /// The first `depth` numbers of rows that are `stride` apart.
    #[inline(always)]
    pub fn new(data: &'a [f64], stride: usize, depth: usize) -> Self {
        if depth == 0 {
            return Self([&[]; UNIT]);
        }
        Self(std::array::from_fn(|r| &data[r * stride..][..depth]))
    }
}

impl Terms for Rows<'_> {
    #[inline(always)]
    fn terms(&self, depth: usize) -> impl Iterator<Item = impl Fn(usize) -> f64 + Copy> + Clone {
        let [a, b, c, d, e, f, g, h] = self.0.map(|row| row[..depth].iter());
        let terms = a.zip(b).zip(c).zip(d).zip(e).zip(f).zip(g).zip(h);
        terms.map(|(((((((a, b), c), d), e), f), g), h)| {
            #[inline(always)]
            move |row: usize| *[a, b, c, d, e, f, g, h][row]
        })
    }
}

/// `sums += factor * a`.
#[inline(always)]
fn add_column<const FMA: bool>(sums: &mut [f64; UNIT], a: &[f64; UNIT], factor: f64) {
    for l in 0..UNIT {
        sums[l] = mul_add::<FMA>(a[l], factor, sums[l]);
    }
}

/// Adds one term to the sums of a tile. The sums are named one by one because the compiler would put an array of them into memory.
#[inline(always)]
fn add_term<const FMA: bool>(tile: &mut Tile, a: &[f64; UNIT], v: impl Fn(usize) -> f64) {
    let [s0, s1, s2, s3, s4, s5, s6, s7] = tile;
    add_column::<FMA>(s0, a, v(0));
    add_column::<FMA>(s1, a, v(1));
    add_column::<FMA>(s2, a, v(2));
    add_column::<FMA>(s3, a, v(3));
    add_column::<FMA>(s4, a, v(4));
    add_column::<FMA>(s5, a, v(5));
    add_column::<FMA>(s6, a, v(6));
    add_column::<FMA>(s7, a, v(7));
}

/// The products of `depth` terms of three left panels with a right one: 24 sums of a whole register each, of the 32 that AVX-512
/// has.
#[inline(always)]
pub(super) fn three_tiles<const FMA: bool, R: Terms>(
    left: [&[f64]; 3],
    right: R,
    depth: usize,
) -> [Tile; 3] {
    let mut tiles = [[[0.0; UNIT]; UNIT]; 3];
    let [p, q, r] = &mut tiles;
    let [a, b, c] = left.map(|panel| &panel.as_chunks::<UNIT>().0[..depth]);
    for (((a, b), c), v) in a.iter().zip(b).zip(c).zip(right.terms(depth)) {
        let [p0, p1, p2, p3, p4, p5, p6, p7] = &mut *p;
        let [q0, q1, q2, q3, q4, q5, q6, q7] = &mut *q;
        let [r0, r1, r2, r3, r4, r5, r6, r7] = &mut *r;
        let add = |p: &mut _, q: &mut _, r: &mut _, v| {
            add_column::<FMA>(p, a, v);
            add_column::<FMA>(q, b, v);
            add_column::<FMA>(r, c, v);
        };
        add(p0, q0, r0, v(0));
        add(p1, q1, r1, v(1));
        add(p2, q2, r2, v(2));
        add(p3, q3, r3, v(3));
        add(p4, q4, r4, v(4));
        add(p5, q5, r5, v(5));
        add(p6, q6, r6, v(6));
        add(p7, q7, r7, v(7));
    }
    tiles
}

/// As [`three_tiles`] for two left panels.
#[inline(always)]
fn two_tiles<const FMA: bool, R: Terms>(left: [&[f64]; 2], right: R, depth: usize) -> [Tile; 2] {
    let [mut p, mut q] = [[[0.0; UNIT]; UNIT]; 2];
    let [a, b] = left.map(|panel| &panel.as_chunks::<UNIT>().0[..depth]);
    for ((a, b), v) in a.iter().zip(b).zip(right.terms(depth)) {
        add_term::<FMA>(&mut p, a, v);
        add_term::<FMA>(&mut q, b, v);
    }
    [p, q]
}

/// As [`three_tiles`] for one left panel. Where registers are fewer or shorter, they hold half of the sums at a time.
#[inline(always)]
pub(super) fn one_tile<const FMA: bool, const WIDE: bool, R: Terms>(
    left: &[f64],
    right: R,
    depth: usize,
) -> Tile {
    let mut tile = [[0.0; UNIT]; UNIT];
    let a = &left.as_chunks::<UNIT>().0[..depth];
    if WIDE {
        for (a, v) in a.iter().zip(right.terms(depth)) {
            add_term::<FMA>(&mut tile, a, v);
        }
        return tile;
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7] = &mut tile;
    for (a, v) in a.iter().zip(right.terms(depth)) {
        add_column::<FMA>(s0, a, v(0));
        add_column::<FMA>(s1, a, v(1));
        add_column::<FMA>(s2, a, v(2));
        add_column::<FMA>(s3, a, v(3));
    }
    for (a, v) in a.iter().zip(right.terms(depth)) {
        add_column::<FMA>(s4, a, v(4));
        add_column::<FMA>(s5, a, v(5));
        add_column::<FMA>(s6, a, v(6));
        add_column::<FMA>(s7, a, v(7));
    }
    tile
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(rows: usize, cols: usize, seed: usize) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| ((i * 97 + j * 31 + seed * 7) % 41) as f64 / 8.0 - 2.5)
    }

    fn transposed(m: &Matrix) -> Matrix {
        Matrix::from_fn(m.cols(), m.rows(), |i, j| m[(j, i)])
    }

    /// The entries of `some` are multiples of 1/8, so that sums are exact in any order.
    #[test]
    fn products_of_all_shapes() {
        const SIZES: [usize; 9] = [0, 1, 3, 8, 9, 16, 24, 29, 100];
        for (m, k, n) in SIZES.iter().flat_map(|m| {
            SIZES.iter().chain(&[300, 600]).flat_map(move |k| SIZES.map(|n| (*m, *k, n)))
        }) {
            let (a, b) = (some(m, k, 1), some(k, n, 2));
            let (at, bt) = (transposed(&a), transposed(&b));
            let entry = |i: usize, j: usize| (0..k).map(|t| a[(i, t)] * b[(t, j)]).sum::<f64>();
            let expected = Matrix::from_fn(m, n, entry);
            let (at, bt) = (Block::from(&at).t(), Block::from(&bt).t());
            for (a, b) in
                [((&a).into(), (&b).into()), (at, (&b).into()), ((&a).into(), bt), (at, bt)]
            {
                assert!(multiply(a, b) == expected, "{m} x {k} x {n}");
                let before = some(m, n, 3);
                let mut sum = before.clone();
                add_product(&mut sum, a, b);
                let expected = Matrix::from_fn(m, n, |i, j| before[(i, j)] + expected[(i, j)]);
                assert!(sum == expected, "{m} x {k} x {n}");
            }
        }
    }

    #[test]
    fn a_product_of_many_columns_and_rows() {
        let (a, b) = (some(1100, 7, 1), some(7, 500, 2));
        let found = multiply((&a).into(), (&b).into());
        for (i, j) in [(0, 0), (1023, 239), (1024, 240), (1099, 499), (500, 480)] {
            assert_eq!(found[(i, j)], (0..7).map(|k| a[(i, k)] * b[(k, j)]).sum::<f64>());
        }
    }

    /// With numbers whose sums are rounded.
    #[test]
    fn an_entry_has_the_same_bits_wherever_it_stands_and_in_every_tile() {
        let wave = |rows, cols| Matrix::from_fn(rows, cols, |i, j| ((i * 13 + j * 7) as f64).sin());
        let (a, b) = (wave(40, 300), wave(300, 130));
        let whole = multiply((&a).into(), (&b).into());
        for rows in [1, 5, 8, 17] {
            let part = multiply(Block::rows(&a, 3, rows), (&b).into());
            assert!((0..rows).all(|i| part.row(i) == whole.row(3 + i)));
        }
        let few = Matrix::from_fn(300, 3, |i, j| b[(i, 50 + j)]);
        let part = multiply((&a).into(), (&few).into());
        assert!((0..40).all(|i| part.row(i) == &whole.row(i)[50..53]));
        let one = Matrix::from_fn(300, 1, |i, _| b[(i, 50)]);
        for a in [Block::from(&a), Block::from(&transposed(&a)).t()] {
            let part = multiply(a, (&one).into());
            assert!((0..40).all(|i| part.row(i) == &whole.row(i)[50..51]));
        }
        let panels = Panels::new((&b).into());
        for columns in [0..130, 8..9, 96..130] {
            // What was there before does not matter.
            let mut part = vec![7.0; 40 * columns.len()];
            product_with(&mut part, columns.len(), 1.0, (&a).into(), &panels, columns.clone());
            let mut rows = part.chunks_exact(columns.len()).zip(whole.iter_rows());
            assert!(rows.all(|(part, whole)| part == &whole[columns.clone()]));
        }

        let (none, empty) = (Matrix::zeros(3, 0), Panels::new((&Matrix::zeros(0, 8)).into()));
        let mut sums = [7.0; 30];
        product_with(&mut sums, 10, 1.0, (&none).into(), &empty, 0..8);
        for row in sums.chunks(10) {
            assert_eq!(row, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0, 7.0]);
        }

        let (mut left, mut right) = (Vec::new(), Vec::new());
        Block::from(&b).t().pack(0..130, 0..250, &mut left);
        Block::from(&a).pack(0..40, 0..250, &mut right);
        let update = Update { alpha: -1.5, add: true, triangle: None };
        let mut out = [vec![1.0; 40 * 130], vec![1.0; 40 * 130]];
        let [wide, narrow] = &mut out;
        panels_product_body::<true, true>(wide, 130, (130, 40), 250, update, &left, &right);
        panels_product_body::<true, false>(narrow, 130, (130, 40), 250, update, &left, &right);
        assert_eq!(wide, narrow);
    }

    #[test]
    fn the_lower_triangle_of_a_symmetric_product() {
        let a = some(50, 20, 1);
        let mut panels = Vec::new();
        Block::from(&a).pack(0..50, 0..20, &mut panels);
        let mut out = vec![7.0; 50 * 50];
        let update = Update { alpha: 1.0, add: false, triangle: Some(0) };
        panels_product(&mut out, 50, (50, 50), 20, update, &panels, &panels);
        for j in 0..50 {
            for i in 0..50 {
                let product: f64 = (0..20).map(|k| a[(i, k)] * a[(j, k)]).sum();
                let above = i / UNIT < j / UNIT;
                assert_eq!(out[j * 50 + i], if above { 7.0 } else { product }, "({i}, {j})");
            }
        }
    }
}
