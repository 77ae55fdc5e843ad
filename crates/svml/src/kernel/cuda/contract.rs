//! From weights of the entries of K to the derivative in L, on a card: see the contraction of the matrix in memory for the
//! formulas.

use super::{CudaGram, Entry, Outer, Side, Tile, in_tiles, steps, work};
use crate::cuda::{Argument, Buffer, Lane, View, transposed};
use crate::error::Result;
use crate::kernel::derivative::{maps_rows, minus_sign_times, minus_two_l_times, sum_in_order};
use crate::linalg::{Matrix, dot};
use crate::metric::{Form, Kernel};

/// Outer products that are contracted one after the other; more are joined.
const SEPARATE: usize = 8;
/// Outer products that are joined at a time, at most.
const JOINED: usize = 1024;

/// Which sums over pairs of rows the derivative needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sums {
    /// k r: one width of a rough kernel.
    Distances,
    /// k |x_k - z_k|: the Laplacian kernel.
    Absolute,
    /// Products of rows.
    Products,
}

impl CudaGram<'_> {
    pub(super) fn sums(&self) -> Sums {
        match (self.kernel, self.metric.form()) {
            (Kernel::Gaussian, _) => Sums::Products,
            (_, Form::Sphere) => Sums::Distances,
            (Kernel::Laplacian, _) => Sums::Absolute,
            _ => Sums::Products,
        }
    }

    /// The rows that W acts on, and their width: those mapped by L, or those as they are.
    pub(super) fn acted_on(&self) -> (&Buffer<f64>, usize) {
        match maps_rows(&self.metric, self.host.rows()) {
            true => (&self.z, self.metric.rank()),
            false => (&self.x, self.host.cols()),
        }
    }

    pub(super) fn contract_outer(&self, weights: &[Outer<'_>]) -> Result<Vec<f64>> {
        let weights: Vec<&Outer<'_>> = weights
            .iter()
            .filter(|outer| !outer.rows.is_empty() && !outer.cols.is_empty())
            .collect();
        let parts: Result<Vec<Matrix>> = match weights.len() > SEPARATE {
            true => weights.chunks(JOINED).map(|some| self.contract_joined(some)).collect(),
            false => weights.iter().map(|outer| self.contract_one(outer)).collect(),
        };
        let parts = parts?;
        self.watch.check_memory()?;
        Ok(self.derivative(sum_in_order(parts)))
    }

    /// From the sums of all weights to the derivative.
    pub(super) fn derivative(&self, sums: Matrix) -> Vec<f64> {
        match self.sums() {
            Sums::Distances => {
                vec![-sums.as_slice().iter().sum::<f64>() / self.metric.values()[0]]
            }
            Sums::Absolute => minus_sign_times(&self.metric, sums),
            Sums::Products => minus_two_l_times(&self.metric, self.host.rows(), sums),
        }
    }

    fn contract_one(&self, outer: &Outer<'_>) -> Result<Matrix> {
        let sums = self.sums();
        in_tiles(self.gpu, |entries| {
            let mut lane = self.gpu.lane()?;
            let lane = &mut lane;
            let (rows, cols) = (self.side(lane, outer.rows)?, self.side(lane, outer.cols)?);
            let (left, right) = (lane.send(outer.left)?, lane.send(outer.right)?);
            match sums {
                Sums::Distances => {
                    let sums = lane.scratch(rows.count, "sums of distances")?;
                    self.each_tile(
                        lane,
                        entries,
                        &rows,
                        &cols,
                        Entry::TimesDistance,
                        |lane, at| {
                            let right = right.all().part(at.col, 0, at.tile.cols(), 1)?;
                            let sums = sums.all().part(at.row, 0, at.tile.rows(), 1)?;
                            lane.gemv(1.0, at.tile, right, at.begun(), sums)
                        },
                    )?;
                    let sums = lane.download(sums.all())?;
                    Matrix::new(1, 1, vec![dot(&sums, outer.left)])
                }
                Sums::Absolute => {
                    let sums = self.add_differences(lane, entries, &rows, &cols, &right, false)?;
                    let d = self.host.cols();
                    let total = lane.scratch(d, "sums of differences")?;
                    let sums = sums.matrix(d, rows.count)?;
                    lane.gemv(1.0, sums, left.all(), 0.0, total.all())?;
                    Matrix::new(1, d, lane.download(total.all())?)
                }
                Sums::Products => self.products(lane, entries, (&rows, &left), (&cols, &right)),
            }
        })
    }

    /// As [`Self::contract_one`], the sum for several outer products: W is the product of two matrices that have a row for each
    /// of them, so that their number does not count for much.
    fn contract_joined(&self, outers: &[&Outer<'_>]) -> Result<Matrix> {
        let (d, sums, n) = (self.host.cols(), self.sums(), self.host.rows());
        let rows: Vec<_> = outers.iter().map(|outer| (outer.rows, outer.left)).collect();
        let cols: Vec<_> = outers.iter().map(|outer| (outer.cols, outer.right)).collect();
        let (rows, cols) = (Joined::new(&rows, n), Joined::new(&cols, n));
        in_tiles(self.gpu, |entries| {
            let mut lane = self.gpu.lane()?;
            let lane = &mut lane;
            let (left, right) = (rows.send(lane)?, cols.send(lane)?);
            let (left, right) = (
                left.matrix(rows.count, rows.all.len())?,
                right.matrix(cols.count, cols.all.len())?,
            );
            let (rows, cols) = (self.side(lane, &rows.all)?, self.side(lane, &cols.all)?);
            let tile = Tile::new(rows.count, cols.count, entries);
            let memory = lane.scratch(tile.entries(), "a tile of weights")?;
            // A tile of the kernel matrix becomes one of W.
            let weigh = |lane: &mut Lane, at: &At<'_>| {
                let (k, height, breadth) = (at.tile, at.tile.rows(), at.tile.cols());
                let w = memory.matrix(height, breadth)?;
                let left = left.columns(at.row, height)?;
                lane.gemm(1.0, transposed(left), right.columns(at.col, breadth)?, 0.0, w)?;
                times(lane, k, w)
            };
            let ones = |lane: &mut Lane, count: usize| lane.send(&vec![1.0; count]);
            match sums {
                Sums::Distances => {
                    let ones = ones(lane, cols.count)?;
                    let sums = lane.scratch(rows.count, "sums of distances")?;
                    let entry = Entry::TimesDistance;
                    self.each_tile(lane, entries, &rows, &cols, entry, |lane, at| {
                        weigh(lane, &at)?;
                        let ones = ones.all().part(at.col, 0, at.tile.cols(), 1)?;
                        let sums = sums.all().part(at.row, 0, at.tile.rows(), 1)?;
                        lane.gemv(1.0, at.tile, ones, at.begun(), sums)
                    })?;
                    Matrix::new(1, 1, vec![lane.download(sums.all())?.iter().sum()])
                }
                Sums::Absolute => {
                    let x_r = self.own_rows(lane, &self.x, d, &rows)?;
                    let x_c = self.own_rows(lane, &self.x, d, &cols)?;
                    let sums = lane.scratch(d * rows.count, "sums of differences")?;
                    lane.clear(sums.all())?;
                    self.each_tile(lane, entries, &rows, &cols, Entry::Value, |lane, at| {
                        weigh(lane, &at)?;
                        let (height, breadth) = (at.tile.rows(), at.tile.cols());
                        let sums = sums.matrix(d, rows.count)?.columns(at.row, height)?;
                        let a = x_r.matrix(d, rows.count)?.columns(at.row, height)?;
                        let b = x_c.matrix(d, cols.count)?.columns(at.col, breadth)?;
                        differences(lane, sums, at.tile, a, b, false)
                    })?;
                    let ones = ones(lane, rows.count)?;
                    let total = lane.scratch(d, "sums of differences")?;
                    lane.gemv(1.0, sums.matrix(d, rows.count)?, ones.all(), 0.0, total.all())?;
                    Matrix::new(1, d, lane.download(total.all())?)
                }
                Sums::Products => {
                    let (y, width) = self.acted_on();
                    let y_c = self.scaled(lane, y, width, &cols, None)?;
                    let (y_r, back) = match maps_rows(&self.metric, self.host.rows()) {
                        true => (self.scaled(lane, y, width, &rows, None)?, width + 1),
                        false => (ones(lane, rows.count)?, 1),
                    };
                    let forward = lane.scratch((width + 1) * rows.count, "sums of rows")?;
                    let backward = lane.scratch(back * cols.count, "sums of rows")?;
                    self.each_tile(lane, entries, &rows, &cols, Entry::Slope, |lane, at| {
                        weigh(lane, &at)?;
                        let (height, breadth) = (at.tile.rows(), at.tile.cols());
                        let y_c = y_c.matrix(width + 1, cols.count)?.columns(at.col, breadth)?;
                        let out = forward.matrix(width + 1, rows.count)?.columns(at.row, height)?;
                        lane.gemm(1.0, y_c, transposed(at.tile), at.begun(), out)?;
                        let y_r = y_r.matrix(back, rows.count)?.columns(at.row, height)?;
                        let out = backward.matrix(back, cols.count)?.columns(at.col, breadth)?;
                        lane.gemm(1.0, y_r, at.tile, if at.row == 0 { 0.0 } else { 1.0 }, out)
                    })?;
                    self.total(lane, (&rows, None), (&cols, None), &forward, &backward)
                }
            }
        })
    }

    /// sum_j k'(x_i, x_j) v_j (x_i - x_j), or for the Laplacian kernel sum_j k v_j sign(x_i - x_j). // (rows, d)
    pub(super) fn differences(
        &self,
        rows: &[usize],
        cols: &[usize],
        v: &[f64],
    ) -> Result<Vec<f64>> {
        let d = self.host.cols();
        if rows.is_empty() || cols.is_empty() {
            return Ok(vec![0.0; rows.len() * d]);
        }
        in_tiles(self.gpu, |entries| {
            let mut lane = self.gpu.lane()?;
            let lane = &mut lane;
            let (rows, cols) = (self.side(lane, rows)?, self.side(lane, cols)?);
            let v = lane.send(v)?;
            if self.kernel == Kernel::Laplacian {
                let sums = self.add_differences(lane, entries, &rows, &cols, &v, true)?;
                return lane.download(sums.all());
            }
            let right = self.scaled(lane, &self.x, d, &cols, Some(&v))?;
            let forward = lane.scratch((d + 1) * rows.count, "sums of rows")?;
            self.each_tile(lane, entries, &rows, &cols, Entry::Slope, |lane, at| {
                let right = right.matrix(d + 1, cols.count)?.columns(at.col, at.tile.cols())?;
                let forward = forward.matrix(d + 1, rows.count)?.columns(at.row, at.tile.rows())?;
                lane.gemm(1.0, right, transposed(at.tile), at.begun(), forward)
            })?;
            let x = self.own_rows(lane, &self.x, d, &rows)?;
            let out = minus(lane, &forward, &x, None, 1.0, rows.count, d)?;
            lane.download(out.all())
        })
    }

    /// What `with` makes of each tile of K[rows, cols], column after column of tiles within a row of them.
    fn each_tile(
        &self,
        lane: &mut Lane,
        entries: usize,
        rows: &Side,
        cols: &Side,
        entry: Entry,
        mut with: impl FnMut(&mut Lane, At<'_>) -> Result<()>,
    ) -> Result<()> {
        let tile = Tile::new(rows.count, cols.count, entries);
        let memory = lane.scratch(tile.entries(), "a tile of the kernel matrix")?;
        for i in steps(rows.count, tile.rows) {
            for j in steps(cols.count, tile.cols) {
                let tile = memory.matrix(i.len(), j.len())?;
                self.fill(lane, entry, tile, (rows, i.start), (cols, j.start))?;
                with(lane, At { tile, row: i.start, col: j.start })?;
                // This part of a computation cannot be left out: only what has failed ends it.
                lane.pace(work(tile, rows.rank), &|| Ok(()))?;
            }
        }
        Ok(())
    }

    /// sum_j k_ij v_j |x_ik - x_jk| for each row i and column k, or with the sign of the difference. // (d, rows) by columns
    fn add_differences(
        &self,
        lane: &mut Lane,
        entries: usize,
        rows: &Side,
        cols: &Side,
        v: &Buffer<f64>,
        sign: bool,
    ) -> Result<Buffer<f64>> {
        let d = self.host.cols();
        let (a, b) =
            (self.own_rows(lane, &self.x, d, rows)?, self.own_rows(lane, &self.x, d, cols)?);
        let sums = lane.scratch(d * rows.count, "sums of differences")?;
        lane.clear(sums.all())?;
        self.each_tile(lane, entries, rows, cols, Entry::Value, |lane, at| {
            let right = v.all().part(at.col, 0, at.tile.cols(), 1)?;
            scale(lane, at.tile, at.tile, Argument::from(0), right.into())?;
            let sums = sums.matrix(d, rows.count)?.columns(at.row, at.tile.rows())?;
            let a = a.matrix(d, rows.count)?.columns(at.row, at.tile.rows())?;
            let b = b.matrix(d, cols.count)?.columns(at.col, at.tile.cols())?;
            differences(lane, sums, at.tile, a, b, sign)
        })?;
        Ok(sums)
    }

    /// The rows of a side, of a matrix on the card. // (width, count) by columns
    pub(super) fn own_rows(
        &self,
        lane: &mut Lane,
        from: &Buffer<f64>,
        width: usize,
        side: &Side,
    ) -> Result<Buffer<f64>> {
        match &side.places {
            Some(places) => self.gathered(lane, from, width, places),
            None => Err(self.gpu.failure("rows without their places")),
        }
    }

    /// The rows of a side, each times its scale and followed by it. // (width + 1, count) by columns
    pub(super) fn scaled(
        &self,
        lane: &mut Lane,
        from: &Buffer<f64>,
        width: usize,
        side: &Side,
        scales: Option<&Buffer<f64>>,
    ) -> Result<Buffer<f64>> {
        let out = lane.scratch((width + 1) * side.count, "scaled rows")?;
        let arguments: [Argument; 6] = [
            (&out).into(),
            from.into(),
            side.places.as_ref().into(),
            scales.into(),
            side.count.into(),
            width.into(),
        ];
        lane.launch("scale_rows", (width + 1, side.count), &arguments)?;
        Ok(out)
    }

    /// What the form needs of Q = sum_ij W_ij (x_i - x_j)(x_i - x_j)' with W = diag(left) K' diag(right).
    fn products(
        &self,
        lane: &mut Lane,
        entries: usize,
        (rows, left): (&Side, &Buffer<f64>),
        (cols, right): (&Side, &Buffer<f64>),
    ) -> Result<Matrix> {
        let both = maps_rows(&self.metric, self.host.rows());
        let (y, width) = self.acted_on();
        // The last row of each are the scales alone.
        let scaled_right = self.scaled(lane, y, width, cols, Some(right))?;
        let back = if both { width } else { 0 };
        let scaled_left = match both {
            true => Some(self.scaled(lane, y, width, rows, Some(left))?),
            false => None,
        };
        let left_rows = scaled_left.as_ref().unwrap_or(left).matrix(back + 1, rows.count)?;
        let forward = lane.scratch((width + 1) * rows.count, "sums of rows")?;
        let backward = lane.scratch((back + 1) * cols.count, "sums of rows")?;
        self.each_tile(lane, entries, rows, cols, Entry::Slope, |lane, at| {
            let (height, breadth) = (at.tile.rows(), at.tile.cols());
            let right = scaled_right.matrix(width + 1, cols.count)?.columns(at.col, breadth)?;
            let out = forward.matrix(width + 1, rows.count)?.columns(at.row, height)?;
            lane.gemm(1.0, right, transposed(at.tile), at.begun(), out)?;
            let out = backward.matrix(back + 1, cols.count)?.columns(at.col, breadth)?;
            let first = if at.row == 0 { 0.0 } else { 1.0 };
            lane.gemm(1.0, left_rows.columns(at.row, height)?, at.tile, first, out)
        })?;
        self.total(lane, (rows, Some(left)), (cols, Some(right)), &forward, &backward)
    }

    /// From W [Y_c, 1] and W' [Y_r, 1], or W' 1 alone where that is enough, each without the scales that are given, to what the
    /// form needs of Q.
    fn total(
        &self,
        lane: &mut Lane,
        (rows, left): (&Side, Option<&Buffer<f64>>),
        (cols, right): (&Side, Option<&Buffer<f64>>),
        forward: &Buffer<f64>,
        backward: &Buffer<f64>,
    ) -> Result<Matrix> {
        let d = self.host.cols();
        let (y, width) = self.acted_on();
        let x_r = self.own_rows(lane, &self.x, d, rows)?;
        let x_c = self.own_rows(lane, &self.x, d, cols)?;
        let (x_r, x_c) = ((&x_r, rows.count), (&x_c, cols.count));
        if maps_rows(&self.metric, self.host.rows()) {
            // L Q = (diag(W 1) Z_r - W Z_c)' X_r + (diag(W' 1) Z_c - W' Z_r)' X_c.
            let (z_r, z_c) =
                (self.own_rows(lane, y, width, rows)?, self.own_rows(lane, y, width, cols)?);
            let side_r = minus(lane, forward, &z_r, left, 1.0, rows.count, width)?;
            let side_c = minus(lane, backward, &z_c, right, 1.0, cols.count, width)?;
            let total = lane.scratch(width * d, "the derivative")?;
            cross(lane, (&side_r, width), x_r, d, 0.0, &total)?;
            cross(lane, (&side_c, width), x_c, d, 1.0, &total)?;
            return by_rows(width, d, lane.download(total.all())?);
        }
        // H = X_r' (diag(W 1) X_r / 2 - W X_c), and the sums W' 1.
        let half = minus(lane, forward, x_r.0, left, 0.5, rows.count, d)?;
        if let Some(right) = right {
            let arguments: [Argument; 3] = [backward.into(), right.into(), cols.count.into()];
            lane.launch("multiply_values", (cols.count, 1), &arguments)?;
        }
        match self.metric.form() {
            Form::Sphere | Form::Diagonal => {
                let h = by_coordinate(lane, &half, x_r.0, None, rows.count, d)?;
                let c = by_coordinate(lane, x_c.0, x_c.0, Some(backward), cols.count, d)?;
                Matrix::new(1, d, h.iter().zip(&c).map(|(h, c)| 2.0 * h + c).collect())
            }
            Form::Full | Form::Rank(_) => {
                let total = lane.scratch(d * d, "the derivative")?;
                cross(lane, (&half, d), x_r, d, 0.0, &total)?;
                let h = lane.download(total.all())?;
                let scaled = self.weighted_rows(lane, x_c.0, backward, cols.count, d)?;
                cross(lane, (&scaled, d), x_c, d, 0.0, &total)?;
                let c = lane.download(total.all())?;
                Ok(Matrix::from_fn(d, d, |i, j| h[i + j * d] + h[j + i * d] + c[i + j * d]))
            }
        }
    }

    /// Rows each times a weight. // (width, count) by columns
    fn weighted_rows(
        &self,
        lane: &mut Lane,
        rows: &Buffer<f64>,
        weights: &Buffer<f64>,
        count: usize,
        width: usize,
    ) -> Result<Buffer<f64>> {
        let out = lane.scratch(count * width, "weighted rows")?;
        let (from, to) = (rows.matrix(width, count)?, out.matrix(width, count)?);
        scale(lane, to, from, Argument::from(0), weights.into())?;
        Ok(out)
    }

    /// The contraction for symmetric weights D o K[set, set] by tiles of its lower half: `weights` fills a tile with D, times
    /// the factor that it is given.
    pub(super) fn contract_symmetric(
        &self,
        lane: &mut Lane,
        set: &Side,
        tile: Tile,
        mut weights: impl FnMut(&mut Lane, f64, At<'_>) -> Result<()>,
    ) -> Result<Vec<f64>> {
        let (n, d, sums) = (set.count, self.host.cols(), self.sums());
        let (y, width) = match sums {
            Sums::Products => self.acted_on(),
            _ => (&self.x, 0),
        };
        let x = self.own_rows(lane, &self.x, d, set)?;
        let right = self.scaled(lane, y, width, set, None)?;
        let right = right.matrix(width + 1, n)?;
        let forward = lane.scratch((width + 1) * n, "sums of rows")?;
        lane.clear(forward.all())?;
        let absolute =
            lane.scratch(if sums == Sums::Absolute { d * n } else { 1 }, "sums of rows")?;
        lane.clear(absolute.all())?;
        let memory: [Buffer<f64>; 2] = [
            lane.scratch(tile.entries(), "a tile of the kernel matrix")?,
            lane.scratch(tile.entries(), "a tile of weights")?,
        ];
        let entry = match sums {
            Sums::Distances => Entry::TimesDistance,
            Sums::Absolute => Entry::Value,
            Sums::Products => Entry::Slope,
        };
        for i in steps(n, tile.rows) {
            for j in steps(i.end, tile.cols) {
                let k = memory[0].matrix(i.len(), j.len())?;
                let w = memory[1].matrix(i.len(), j.len())?;
                let beside = i.start != j.start;
                // Where only the total counts, an entry beside the diagonal stands for its mirror image too.
                let factor = if beside && sums != Sums::Products { 2.0 } else { 1.0 };
                weights(lane, factor, At { tile: w, row: i.start, col: j.start })?;
                self.fill(lane, entry, k, (set, i.start), (set, j.start))?;
                times(lane, w, k)?;
                if sums == Sums::Absolute {
                    let at = |rows: &std::ops::Range<usize>| -> Result<View<'_, f64>> {
                        x.matrix(d, n)?.columns(rows.start, rows.len())
                    };
                    let out = absolute.matrix(d, n)?.columns(i.start, i.len())?;
                    differences(lane, out, w, at(&i)?, at(&j)?, false)?;
                } else {
                    let all = forward.matrix(width + 1, n)?;
                    let out = all.columns(i.start, i.len())?;
                    lane.gemm(1.0, right.columns(j.start, j.len())?, transposed(w), 1.0, out)?;
                    if beside && sums == Sums::Products {
                        let out = all.columns(j.start, j.len())?;
                        lane.gemm(1.0, right.columns(i.start, i.len())?, w, 1.0, out)?;
                    }
                }
                let products = 2.0 * n as f64 * k.rows() as f64 * k.cols() as f64;
                lane.pace(products + work(k, set.rank), &|| self.watch.check())?;
            }
        }
        let total = match sums {
            Sums::Distances => {
                let sums = lane.download(forward.all())?;
                Matrix::new(1, 1, vec![sums.iter().sum()])?
            }
            Sums::Absolute => {
                let total = lane.scratch(d, "sums of differences")?;
                let ones = lane.send(&vec![1.0; n])?;
                lane.gemv(1.0, absolute.matrix(d, n)?, ones.all(), 0.0, total.all())?;
                Matrix::new(1, d, lane.download(total.all())?)?
            }
            Sums::Products => {
                // 2 (diag(W 1) Y - W Y), times X.
                let own_y = self.own_rows(lane, y, width, set)?;
                let side = minus(lane, &forward, &own_y, None, 1.0, n, width)?;
                match self.metric.form() {
                    Form::Sphere | Form::Diagonal => {
                        let sums = by_coordinate(lane, &side, &x, None, n, d)?;
                        Matrix::new(1, d, sums.iter().map(|sum| 2.0 * sum).collect())?
                    }
                    Form::Full | Form::Rank(_) => {
                        let total = lane.scratch(width * d, "the derivative")?;
                        cross(lane, (&side, width), (&x, n), d, 0.0, &total)?;
                        let sums = lane.download(total.all())?;
                        by_rows(width, d, sums.into_iter().map(|sum| 2.0 * sum).collect())?
                    }
                }
            }
        };
        Ok(self.derivative(total))
    }
}

/// One side of several outer products: a matrix with a row for each of them and a column for each row of K that any of them has.
struct Joined {
    /// How many there are.
    count: usize,
    /// Rows of K that any of them has, ascending.
    all: Vec<usize>,
    /// The values that are not zero, and their places in the matrix.
    values: Vec<f64>,
    places: Vec<usize>,
}

impl Joined {
    /// Of rows among so many, with a value for each.
    fn new(sides: &[(&[usize], &[f64])], rows: usize) -> Self {
        let mut column = vec![0; rows];
        sides.iter().flat_map(|(rows, _)| *rows).for_each(|&row| column[row] = 1);
        let all: Vec<usize> = (0..rows).filter(|&row| column[row] > 0).collect();
        all.iter().enumerate().for_each(|(at, &row)| column[row] = at);
        let count = sides.len();
        let places = (sides.iter().enumerate())
            .flat_map(|(p, (rows, _))| rows.iter().map(move |row| (p, row)))
            .map(|(p, &row)| p + column[row] * count)
            .collect();
        let values = sides.iter().flat_map(|(_, values)| values.iter().copied()).collect();
        Self { count, all, values, places }
    }

    /// The matrix, on the card.
    fn send(&self, lane: &mut Lane) -> Result<Buffer<f64>> {
        let matrix = lane.scratch(self.count * self.all.len(), "factors of weights")?;
        lane.clear(matrix.all())?;
        let (values, places) = (lane.send(&self.values)?, lane.send_places(&self.places)?);
        let count = self.values.len();
        let arguments: [Argument; 4] =
            [(&matrix).into(), (&values).into(), (&places).into(), count.into()];
        lane.launch("scatter_values", (count, 1), &arguments)?;
        Ok(matrix)
    }
}

/// A tile and the place of its first row and column.
pub(super) struct At<'a> {
    pub tile: View<'a, f64>,
    pub row: usize,
    pub col: usize,
}

impl At<'_> {
    /// 0 for the first tile of a row of tiles, whose sums begin, else 1.
    fn begun(&self) -> f64 {
        if self.col == 0 { 0.0 } else { 1.0 }
    }
}

/// out_ij = left_i a_ij right_j, where a zero for a side stands for ones.
pub(super) fn scale(
    lane: &mut Lane,
    out: View<'_, f64>,
    a: View<'_, f64>,
    left: Argument,
    right: Argument,
) -> Result<()> {
    let (rows, cols) = (a.rows(), a.cols());
    let arguments: [Argument; 8] = [
        out.into(),
        out.stride().into(),
        a.into(),
        a.stride().into(),
        left,
        right,
        rows.into(),
        cols.into(),
    ];
    lane.launch("scale_sides", (rows, cols), &arguments)
}

/// a_ij <- a_ij b_ij.
fn times(lane: &mut Lane, a: View<'_, f64>, b: View<'_, f64>) -> Result<()> {
    let (rows, cols) = (a.rows(), a.cols());
    let arguments: [Argument; 6] =
        [a.into(), a.stride().into(), b.into(), b.stride().into(), rows.into(), cols.into()];
    lane.launch("multiply_each", (rows, cols), &arguments)
}

/// sums_ik += sum_j w_ij |a_ik - b_jk|, or with the sign of the difference.
fn differences(
    lane: &mut Lane,
    sums: View<'_, f64>,
    w: View<'_, f64>,
    a: View<'_, f64>,
    b: View<'_, f64>,
    sign: bool,
) -> Result<()> {
    let (rows, cols, d) = (w.rows(), w.cols(), a.rows());
    let arguments: [Argument; 9] = [
        sums.into(),
        w.into(),
        w.stride().into(),
        a.into(),
        b.into(),
        rows.into(),
        cols.into(),
        d.into(),
        usize::from(sign).into(),
    ];
    lane.launch("add_differences", (rows, d), &arguments)
}

/// scale_i (factor sum_i y_i - f_i) for rows [f_i, sum_i]. // (width, count) by columns
fn minus(
    lane: &mut Lane,
    f: &Buffer<f64>,
    y: &Buffer<f64>,
    scales: Option<&Buffer<f64>>,
    factor: f64,
    count: usize,
    width: usize,
) -> Result<Buffer<f64>> {
    let out = lane.scratch(count * width, "sums of rows")?;
    let arguments: [Argument; 7] = [
        (&out).into(),
        f.into(),
        y.into(),
        scales.into(),
        factor.into(),
        count.into(),
        width.into(),
    ];
    lane.launch("weighted_minus", (width, count), &arguments)?;
    Ok(out)
}

/// sum_i w_i a_ik b_ik for each coordinate k.
fn by_coordinate(
    lane: &mut Lane,
    a: &Buffer<f64>,
    b: &Buffer<f64>,
    weights: Option<&Buffer<f64>>,
    count: usize,
    d: usize,
) -> Result<Vec<f64>> {
    let out = lane.scratch(d, "sums over rows")?;
    let arguments: [Argument; 6] =
        [(&out).into(), a.into(), b.into(), weights.into(), count.into(), d.into()];
    // A block of threads for each coordinate.
    lane.launch("products_by_coordinate", (1, d), &arguments)?;
    lane.download(out.all())
}

/// total <- A X' + beta total, for rows of both one after the other. // (width, d) by columns
fn cross(
    lane: &mut Lane,
    (a, width): (&Buffer<f64>, usize),
    (x, count): (&Buffer<f64>, usize),
    d: usize,
    beta: f64,
    total: &Buffer<f64>,
) -> Result<()> {
    let (a, x) = (a.matrix(width, count)?, x.matrix(d, count)?);
    lane.gemm(1.0, a, transposed(x), beta, total.matrix(width, d)?)
}

/// A matrix from its columns.
fn by_rows(rows: usize, cols: usize, by_columns: Vec<f64>) -> Result<Matrix> {
    Ok(Matrix::from_fn(rows, cols, |i, j| by_columns[i + j * rows]))
}
