//! K in memory, exact, on the processor.

mod columns;
mod distances;
mod factor;

use std::ops::Range;
use std::sync::Mutex;

use super::derivative::{maps_rows, minus_sign_times, minus_two_l_times, sum_in_order};
use super::guess;
use super::{Backend, Distances, Factor, Gram, Outer, TILE_COLS, TILE_ROWS, rows_of, sq_norms};
use crate::error::{Error, Result};
use crate::linalg::{
    self, Block, Cholesky, Matrix, abs_differences, add_columns, dot, half_over_distance,
    sign_differences, times_distance,
};
use crate::memory;
use crate::metric::{Form, Kernel, Metric};
use crate::parallel;
use crate::run::Watch;
use columns::{Columns, Source};
use distances::SqDistances;
use factor::DenseFactor;

/// A parallel task is not worth its overhead below this many entries of K.
const TASK_ENTRIES: usize = 1 << 16;
/// Rows that are fewer than one in so many are picked one by one.
const SPARSE: usize = 8;
/// The backend of kernel matrices in memory.
pub(super) struct Dense;

impl Backend for Dense {
    fn gram<'a>(
        &self,
        x: &'a Matrix,
        cols: usize,
        metric: &Metric,
        kernel: Kernel,
        watch: &Watch,
    ) -> Result<Box<dyn Gram + 'a>> {
        Ok(Box::new(DenseGram::new(x, cols, metric, kernel, watch)?))
    }

    fn distances<'a>(&self, x: &'a Matrix, watch: &Watch) -> Result<Box<dyn Distances + 'a>> {
        Ok(Box::new(SqDistances::new(x, watch)?))
    }
}

/// The kernel matrix by its columns.
pub(super) struct DenseGram<'a> {
    x: &'a Matrix,
    metric: Metric,
    kernel: Kernel,
    columns: Columns<'a>,
    /// Buffers of factorisations that are no longer needed: fresh memory is slow to touch.
    spare: Mutex<Vec<Vec<f64>>>,
    pub(super) watch: Watch,
}

impl<'a> DenseGram<'a> {
    /// The kernel between all rows of `x` and its first `cols` rows.
    pub fn new(
        x: &'a Matrix,
        cols: usize,
        metric: &Metric,
        kernel: Kernel,
        watch: &Watch,
    ) -> Result<Self> {
        watch.check()?;
        let source = Source::mapped(&metric.transform(x), kernel);
        Ok(Self { kernel, ..Self::from_source(x, cols, metric, source, watch) })
    }

    /// The kernel of a spherical metric from the squared distances between all rows.
    pub(super) fn from_distances(
        x: &'a Matrix,
        sphere: &Metric,
        sq: &'a [f64],
        watch: &Watch,
    ) -> Self {
        let scale = sphere.values().first().map_or(1.0, |inverse| inverse * inverse);
        Self::from_source(x, x.rows(), sphere, Source::Distances { sq, scale }, watch)
    }

    fn from_source(
        x: &'a Matrix,
        cols: usize,
        metric: &Metric,
        source: Source<'a>,
        watch: &Watch,
    ) -> Self {
        let (metric, watch) = (metric.clone(), watch.clone());
        let (kernel, columns) = (Kernel::Gaussian, Columns::new(source, cols, &watch));
        Self { x, metric, kernel, columns, spare: Mutex::default(), watch }
    }

    /// k(x_i, x_j) for all rows i.
    pub(super) fn column(&self, j: usize) -> &[f64] {
        self.columns.get(j)
    }

    /// A buffer of `len` values with arbitrary content.
    pub(super) fn buffer(&self, len: usize) -> Result<Vec<f64>> {
        let spare = self.spare.lock().ok().and_then(|mut spare| spare.pop());
        let what = "a factorisation of the kernel matrix";
        match spare.filter(|spare| spare.capacity() >= len) {
            Some(mut buffer) => {
                buffer.resize(len, 0.0);
                Ok(buffer)
            }
            None => memory::zeros(len, what),
        }
    }

    pub(super) fn give_back(&self, buffer: Vec<f64>) {
        if let Ok(mut spare) = self.spare.lock() {
            spare.push(buffer);
        }
    }

    /// Fills `out`, row after row, with K[set, set]; in parallel.
    pub(super) fn gather_square(&self, out: &mut [f64], set: &[usize]) {
        let width = set.len().max(1);
        self.columns.prefetch(set);
        let rows_per_task = TASK_ENTRIES.div_ceil(width);
        let tasks = out.chunks_mut(width * rows_per_task).zip(set.chunks(rows_per_task));
        parallel::for_each(tasks, |(out, rows)| self.gather_known(out, rows, set));
    }

    /// Fills `out`, row after row, with K[rows, cols], where `rows` have columns of their own: K is symmetric,
    /// and its columns have the order of `out`.
    fn gather_known(&self, out: &mut [f64], rows: &[usize], cols: &[usize]) {
        for (out, &i) in out.chunks_exact_mut(cols.len().max(1)).zip(rows) {
            let k = self.column(i);
            out.iter_mut().zip(cols).for_each(|(out, &j)| *out = k[j]);
        }
    }

    /// Fills `out`, row after row, with K[rows, cols].
    fn gather(&self, out: &mut [f64], rows: &[usize], cols: &[usize]) {
        /// Columns that are read side by side: a cache line of `out`.
        const BESIDE: usize = 8;
        let width = cols.len();
        for (t, cols) in cols.chunks(BESIDE).enumerate() {
            let k: Vec<&[f64]> = cols.iter().map(|&j| self.column(j)).collect();
            for (out, &i) in out.chunks_exact_mut(width).zip(rows) {
                let out = &mut out[t * BESIDE..];
                out.iter_mut().zip(&k).for_each(|(out, k)| *out = k[i]);
            }
        }
    }
}

/// The range from the first to the last of some rows, if they are a fair share of it: then a loop over all of
/// it is faster than one over them.
fn dense_range(rows: &[usize]) -> Option<Range<usize>> {
    let range = *rows.iter().min()?..*rows.iter().max()? + 1;
    (range.len() <= SPARSE * rows.len()).then_some(range)
}

impl Gram for DenseGram<'_> {
    fn set_metric(&mut self, metric: &Metric) -> Result<()> {
        self.watch.check()?;
        self.metric = metric.clone();
        self.columns.replace(Source::mapped(&metric.transform(self.x), self.kernel));
        Ok(())
    }

    fn prefetch(&self, cols: &[usize]) {
        self.columns.prefetch(cols);
    }

    fn multiply(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64> {
        self.columns.prefetch(cols);
        let columns: Vec<&[f64]> = cols.iter().map(|&j| self.column(j)).collect();
        let rows_per_task = TASK_ENTRIES.div_ceil(cols.len().max(1)).max(TILE_COLS);
        let mut out = vec![0.0; rows.len()];
        let tasks = out.chunks_mut(rows_per_task).zip(rows.chunks(rows_per_task));
        parallel::for_each(tasks, |(out, rows)| match dense_range(rows) {
            Some(range) => {
                let mut sums = vec![0.0; range.len()];
                add_columns(&mut sums, &columns, v, range.start);
                out.iter_mut().zip(rows).for_each(|(out, &i)| *out = sums[i - range.start]);
            }
            None => columns.iter().zip(v).for_each(|(k, v)| {
                out.iter_mut().zip(rows).for_each(|(out, &i)| *out += v * k[i]);
            }),
        });
        out
    }

    fn multiply_transposed(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64> {
        self.columns.prefetch(cols);
        let dense = dense_range(rows).map(|range| {
            let mut dense = vec![0.0; range.len()];
            rows.iter().zip(v).for_each(|(&i, &v)| dense[i - range.start] += v);
            (range, dense)
        });
        let entry = |&j: &usize| {
            let k = self.column(j);
            match &dense {
                Some((range, dense)) => dot(&k[range.clone()], dense),
                None => rows.iter().zip(v).map(|(&i, v)| v * k[i]).sum(),
            }
        };
        let cols_per_task = TASK_ENTRIES.div_ceil(rows.len().max(1));
        let entries = |cols: &[usize]| cols.iter().map(entry).collect::<Vec<f64>>();
        parallel::map(cols.chunks(cols_per_task), entries).concat()
    }

    fn factor<'a>(&'a self, set: &[usize], ridge: &[f64]) -> Result<Box<dyn Factor + 'a>> {
        Ok(Box::new(DenseFactor::new(self, set, ridge)?))
    }

    /// With W = (left right') o K', where K' is minus the derivative of k in the squared distance (k itself for the
    /// Gaussian kernel, k / (2 r) for the exponential one), the derivative in L is -2 L Q, where
    /// Q = sum_ij W_ij (x_i - x_j)(x_i - x_j)'
    ///   = X_r' diag(W 1) X_r + X_c' diag(W' 1) X_c - X_r' W X_c - X_c' W' X_r.
    ///
    /// The Laplacian kernel has d k / d l_k = -sign(l_k) k |x_k - z_k|, and for one width any rough kernel
    /// k = exp(-r), with r in proportion to l, has d k / d l = -k r / l: no products with rows are needed.
    fn contract(&self, weights: &[Outer<'_>]) -> Result<Vec<f64>> {
        let weights: Vec<&Outer<'_>> = (weights.iter())
            .filter(|outer| !outer.rows.is_empty() && !outer.cols.is_empty())
            .collect();
        match (self.kernel, self.metric.form()) {
            (Kernel::Gaussian, _) => {}
            (_, Form::Sphere) => {
                let sums = weights.iter().map(|outer| self.sum_of_distances(outer));
                return Ok(vec![-sums.sum::<f64>() / self.metric.values()[0]]);
            }
            (Kernel::Laplacian, _) => {
                let parts = weights.iter().map(|outer| self.abs_differences(outer)).collect();
                return Ok(minus_sign_times(&self.metric, sum_in_order(parts)));
            }
            (Kernel::Exponential, _) => {}
        }
        let z = match self.maps_rows() {
            true => self.metric.transform(self.x),
            false => Matrix::default(),
        };
        let parts: Vec<Matrix> = parallel::map(weights, |outer| match self.metric.form() {
            Form::Sphere | Form::Diagonal => self.diagonal_of_q(outer),
            Form::Full if !self.maps_rows() => self.q(outer),
            Form::Full | Form::Rank(_) => self.l_times_q(outer, &z),
        });
        Ok(minus_two_l_times(&self.metric, self.x.rows(), sum_in_order(parts)))
    }

    fn weighted_differences(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Matrix {
        let d = self.x.cols();
        if self.kernel == Kernel::Laplacian {
            return self.sign_differences(rows, cols, v);
        }
        let left = vec![1.0; rows.len()];
        let outer = Outer { rows, left: &left, cols, right: v };
        let Weighted { forward, .. } = self.weigh(&outer, self.x, false);
        Matrix::from_fn(rows.len(), d, |i, k| {
            forward[(i, d)] * self.x[(rows[i], k)] - forward[(i, k)]
        })
    }

    fn approximate_support(
        &self,
        rows: &[usize],
        y: &[f64],
        cost: &[f64],
        landmarks: &[usize],
    ) -> Result<Vec<usize>> {
        let z = match self.nystrom_features(rows, landmarks) {
            Err(Error::NotPositiveDefinite { .. }) => return Ok(Vec::new()),
            z => z?,
        };
        let m = z.cols() + 1;
        let penalties = guess::penalties(z.cols());
        guess::support_set(y, |set| {
            let mut scaled = Matrix::zeros(set.len(), m);
            let mut rhs = vec![0.0; m];
            for (row, &p) in scaled.as_mut_slice().chunks_exact_mut(m).zip(set) {
                let root = cost[p].sqrt();
                let features = z.row(p).iter().chain(&[1.0]);
                row.iter_mut().zip(features).for_each(|(out, z)| *out = root * z);
                rhs.iter_mut().zip(&*row).for_each(|(rhs, z)| *rhs += root * y[p] * z);
            }
            let mut a = linalg::cross_product(&scaled).into_vec();
            a.iter_mut().step_by(m + 1).zip(&penalties).for_each(|(a, penalty)| *a += penalty);
            let cholesky = match Cholesky::new(a, m, 1.0, &Watch::default()) {
                Err(Error::NotPositiveDefinite { .. }) => return Ok(None),
                factored => factored?,
            };
            cholesky.solve_lower(&mut rhs);
            cholesky.solve_upper(&mut rhs);
            let output = |p: usize| dot(z.row(p), &rhs[..m - 1]) + rhs[m - 1];
            Ok(Some((0..rows.len()).map(output).collect()))
        })
    }
}

impl DenseGram<'_> {
    /// Features whose inner products are near K[rows, rows], exactly so for `landmarks` (Nystrom's): a row for each of
    /// `rows`, a column for each landmark. They are Z = K[rows, landmarks] R'^-1 with R R' = K[landmarks, landmarks].
    /// Fails if landmarks are too close to each other.
    fn nystrom_features(&self, rows: &[usize], landmarks: &[usize]) -> Result<Matrix> {
        let m = landmarks.len();
        let mut k = memory::zeros(m * m, "the kernel matrix of landmarks")?;
        self.gather_square(&mut k, landmarks);
        k.iter_mut().step_by(m + 1).for_each(|k| *k += guess::LANDMARK_RIDGE);
        let cholesky = Cholesky::new(k, m, guess::LANDMARK_RIDGE, &self.watch)?;
        let mut z = Matrix::large(rows.len(), m, "the kernel of rows and landmarks")?;
        let rows_per_task = TASK_ENTRIES.div_ceil(m.max(1));
        let tasks = z.as_mut_slice().chunks_mut((rows_per_task * m).max(1));
        parallel::for_each(tasks.zip(rows.chunks(rows_per_task)), |(z, rows)| {
            self.gather(z, rows, landmarks);
        });
        cholesky.solve_lower_watched(z.as_mut_slice(), &self.watch)?;
        Ok(z)
    }
}

/// How a matrix of weights W = (left right') o K acts on the rows of a matrix Y.
struct Weighted {
    /// [W Y_c, W 1] // (rows, columns of Y + 1)
    forward: Matrix,
    /// [W' Y_r, W' 1] // (cols, columns of Y + 1), or only W' 1
    backward: Matrix,
}

impl DenseGram<'_> {
    /// Whether L Q comes from mapped rows rather than from Q.
    fn maps_rows(&self) -> bool {
        maps_rows(&self.metric, self.x.rows())
    }

    /// Turns values of the kernel into minus its derivative in the squared distance.
    fn to_slope(&self, k: &mut [f64]) {
        if self.kernel == Kernel::Exponential {
            half_over_distance(k);
        }
    }

    /// What `part` makes of each tile of rows of K[rows, cols], in order: the place of the first row, the
    /// tile and the number of its rows.
    fn by_tiles<T: Send>(
        &self,
        rows: &[usize],
        cols: &[usize],
        part: impl Fn(usize, &mut [f64]) -> T + Sync,
    ) -> Vec<T> {
        self.columns.prefetch(cols);
        parallel::map(rows.chunks(TILE_ROWS).enumerate(), |(t, rows)| {
            let mut tile = vec![0.0; rows.len() * cols.len()];
            self.gather(&mut tile, rows, cols);
            part(t * TILE_ROWS, &mut tile)
        })
    }

    /// sum_ij left_i right_j k_ij r_ij for a kernel k = exp(-r).
    fn sum_of_distances(&self, outer: &Outer<'_>) -> f64 {
        let parts = self.by_tiles(outer.rows, outer.cols, |first, tile| {
            times_distance(tile);
            let rows = tile.chunks_exact(outer.cols.len()).zip(&outer.left[first..]);
            rows.map(|(row, left)| left * dot(row, outer.right)).sum::<f64>()
        });
        parts.iter().sum()
    }

    /// sum_ij left_i right_j k_ij |x_ik - x_jk| for each column k. // (1, d)
    fn abs_differences(&self, outer: &Outer<'_>) -> Matrix {
        let points = self.x.select_rows(outer.cols).transpose();
        let parts = self.by_tiles(outer.rows, outer.cols, |first, tile| {
            let mut sums = vec![0.0; self.x.cols()];
            for (i, row) in tile.chunks_exact_mut(outer.cols.len()).enumerate() {
                row.iter_mut().zip(outer.right).for_each(|(k, right)| *k *= right);
                let (x, left) = (self.x.row(outer.rows[first + i]), outer.left[first + i]);
                for (k, sum) in sums.iter_mut().enumerate() {
                    *sum += left * abs_differences(row, x[k], points.row(k));
                }
            }
            Matrix::from_fn(1, sums.len(), |_, k| sums[k])
        });
        sum_in_order(parts)
    }

    /// sum_j v_j k_ij sign(x_ik - x_jk) for each row i and column k. // (rows, d)
    fn sign_differences(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Matrix {
        let points = self.x.select_rows(cols).transpose();
        let parts = self.by_tiles(rows, cols, |first, tile| {
            let mut out = Vec::with_capacity(TILE_ROWS * self.x.cols());
            for (i, row) in tile.chunks_exact_mut(cols.len().max(1)).enumerate() {
                row.iter_mut().zip(v).for_each(|(k, v)| *k *= v);
                let x = self.x.row(rows[first + i]);
                out.extend((0..x.len()).map(|k| sign_differences(row, x[k], points.row(k))));
            }
            out
        });
        let values = parts.concat();
        let d = self.x.cols();
        // Without columns there are no sums to fill it from.
        Matrix::from_fn(rows.len(), d, |i, k| values.get(i * d + k).copied().unwrap_or(0.0))
    }

    /// Since W = diag(left) K diag(right), W Y is K times the scaled rows of Y, scaled again:
    /// W itself is never formed. `both` asks for W' Y_r besides W' 1.
    fn weigh(&self, outer: &Outer<'_>, y: &Matrix, both: bool) -> Weighted {
        /// Tasks to share the work between; fixed, so that the sums have a fixed order.
        const TASKS: usize = 32;
        self.columns.prefetch(outer.cols);
        let (rows, cols) = (outer.rows.len(), outer.cols.len());
        let right = scaled_rows(y, outer.cols, outer.right, true);
        let left = scaled_rows(y, outer.rows, outer.left, both);
        let width = right.cols();
        let mut forward = Matrix::zeros(rows, width);
        let rows_per_task = rows.max(1).div_ceil(TASKS).next_multiple_of(TILE_ROWS);
        let tasks = forward.as_mut_slice().chunks_mut(rows_per_task * width).enumerate();
        let partial: Vec<Matrix> = parallel::map(tasks, |(task, forward)| {
            let mut backward = Matrix::zeros(cols, left.cols());
            let mut tile = vec![0.0; TILE_ROWS.min(rows) * cols];
            for (t, forward) in forward.chunks_mut(TILE_ROWS * width).enumerate() {
                let first = task * rows_per_task + t * TILE_ROWS;
                let count = forward.len() / width;
                let some = &outer.rows[first..first + count];
                match outer.rows == outer.cols {
                    true => self.gather_known(&mut tile, some, outer.cols),
                    false => self.gather(&mut tile, some, outer.cols),
                }
                self.to_slope(&mut tile[..count * cols]);
                let k = Block::new(&tile, count, cols, cols);
                linalg::product(forward, width, 1.0, k, (&right).into());
                for (forward, &l) in forward.chunks_exact_mut(width).zip(&outer.left[first..]) {
                    forward.iter_mut().for_each(|v| *v *= l);
                }
                let left = rows_of(&left, first, count);
                linalg::add_product(&mut backward, k.t(), left);
            }
            backward
        });
        let mut backward = Matrix::zeros(cols, left.cols());
        for part in partial {
            backward.as_mut_slice().iter_mut().zip(part.as_slice()).for_each(|(b, p)| *b += p);
        }
        for (j, r) in outer.right.iter().enumerate() {
            backward.row_mut(j).iter_mut().for_each(|v| *v *= r);
        }
        Weighted { forward, backward }
    }

    /// The contraction for symmetric weights D o K[set, set] that come in blocks of rows: `fill`
    /// writes rows `first..` of D. Q = 2 (X' diag(W 1) X - X' W X) with W = D o K.
    pub(super) fn contract_symmetric(
        &self,
        set: &[usize],
        fill: impl Fn(usize, &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let (n, d) = (set.len(), self.x.cols());
        let x = self.x.select_rows(set);
        if self.kernel != Kernel::Gaussian && self.metric.form() == Form::Sphere {
            let parts = self.by_tiles(set, set, |first, tile| {
                let mut w = vec![0.0; tile.len()];
                fill(first, &mut w);
                times_distance(tile);
                dot(tile, &w)
            });
            return vec![-parts.iter().sum::<f64>() / self.metric.values()[0]];
        }
        if self.kernel == Kernel::Laplacian {
            let points = x.transpose();
            let parts = self.by_tiles(set, set, |first, tile| {
                let mut w = vec![0.0; tile.len()];
                fill(first, &mut w);
                w.iter_mut().zip(&*tile).for_each(|(w, k)| *w *= k);
                let rows = w.chunks_exact(n).enumerate();
                let sums = rows.fold(vec![0.0; d], |mut sums, (i, w)| {
                    let x = x.row(first + i);
                    for (k, sum) in sums.iter_mut().enumerate() {
                        *sum += abs_differences(w, x[k], points.row(k));
                    }
                    sums
                });
                Matrix::from_fn(1, d, |_, k| sums[k])
            });
            return minus_sign_times(&self.metric, sum_in_order(parts));
        }
        let mapped = match self.maps_rows() {
            true => self.metric.transform(&x),
            false => Matrix::default(),
        };
        let y = if mapped.rows() > 0 { &mapped } else { &x };
        let right = scaled_rows(y, &(0..n).collect::<Vec<_>>(), &vec![1.0; n], true);
        let width = right.cols();
        let parts: Vec<Matrix> = parallel::map(0..n.div_ceil(TILE_ROWS), |t| {
            let first = t * TILE_ROWS;
            let rows = &set[first..n.min(first + TILE_ROWS)];
            let mut w = vec![0.0; rows.len() * n];
            fill(first, &mut w);
            let mut slopes = vec![0.0; n];
            for (w, &i) in w.chunks_exact_mut(n).zip(rows) {
                let k = self.column(i);
                slopes.iter_mut().zip(set).for_each(|(slope, &j)| *slope = k[j]);
                self.to_slope(&mut slopes);
                w.iter_mut().zip(&slopes).for_each(|(w, slope)| *w *= slope);
            }
            let wy = linalg::multiply(Block::new(&w, rows.len(), n, n), (&right).into());
            // 2 (diag(W 1) Y - W Y) on these rows. // (rows, columns of Y)
            let side = Matrix::from_fn(rows.len(), width - 1, |i, k| {
                2.0 * (wy[(i, width - 1)] * y[(first + i, k)] - wy[(i, k)])
            });
            let x = rows_of(&x, first, rows.len());
            match self.metric.form() {
                Form::Sphere | Form::Diagonal => Matrix::from_fn(1, d, |_, k| {
                    (0..rows.len()).map(|i| side[(i, k)] * self.x[(rows[i], k)]).sum()
                }),
                // 2 Y' (diag(W 1) - W) X: Q for Y = X, and L Q for Y = Z.
                Form::Full | Form::Rank(_) => linalg::multiply(Block::from(&side).t(), x),
            }
        });
        minus_two_l_times(&self.metric, self.x.rows(), sum_in_order(parts))
    }

    /// The diagonal of Q. // (1, d)
    fn diagonal_of_q(&self, outer: &Outer<'_>) -> Matrix {
        let d = self.x.cols();
        let Weighted { forward, backward } = self.weigh(outer, self.x, false);
        let mut q = Matrix::zeros(1, d);
        let sums = q.row_mut(0);
        for (&i, wx) in outer.rows.iter().zip(forward.iter_rows()) {
            let x = self.x.row(i);
            (0..d).for_each(|k| sums[k] += x[k] * (wx[d] * x[k] - 2.0 * wx[k]));
        }
        for (&j, w) in outer.cols.iter().zip(backward.as_slice()) {
            sums.iter_mut().zip(self.x.row(j)).for_each(|(q, x)| *q += w * x * x);
        }
        q
    }

    /// Q as H + H' + X_c' diag(W' 1) X_c with H = X_r' (diag(W 1) X_r / 2 - W X_c). // (d, d)
    fn q(&self, outer: &Outer<'_>) -> Matrix {
        let d = self.x.cols();
        let Weighted { forward, backward } = self.weigh(outer, self.x, false);
        let x_r = self.x.select_rows(outer.rows);
        let half = Matrix::from_fn(outer.rows.len(), d, |i, k| {
            0.5 * forward[(i, d)] * x_r[(i, k)] - forward[(i, k)]
        });
        let h = linalg::multiply(Block::from(&x_r).t(), (&half).into());
        let x_c = self.x.select_rows(outer.cols);
        let scaled = scaled_rows(self.x, outer.cols, backward.as_slice(), true);
        let c = linalg::multiply(Block::from(&x_c).t(), (&scaled).into());
        Matrix::from_fn(d, d, |i, j| h[(i, j)] + h[(j, i)] + c[(i, j)])
    }

    /// L Q = (diag(W 1) Z_r - W Z_c)' X_r + (diag(W' 1) Z_c - W' Z_r)' X_c: products with K have
    /// r columns where those of the full form have d. // (rank, d)
    fn l_times_q(&self, outer: &Outer<'_>, z: &Matrix) -> Matrix {
        let rank = z.cols();
        let Weighted { forward, backward } = self.weigh(outer, z, true);
        let side = |weighted: &Matrix, rows: &[usize]| {
            let left = Matrix::from_fn(rows.len(), rank, |i, k| {
                weighted[(i, rank)] * z[(rows[i], k)] - weighted[(i, k)]
            });
            linalg::multiply(Block::from(&left).t(), (&self.x.select_rows(rows)).into())
        };
        let mut sum = side(&forward, outer.rows);
        let c = side(&backward, outer.cols);
        sum.as_mut_slice().iter_mut().zip(c.as_slice()).for_each(|(sum, c)| *sum += c);
        sum
    }
}

/// The named rows of `y`, each times its scale, followed by a column with the scales themselves;
/// only that column if not `all`.
fn scaled_rows(y: &Matrix, rows: &[usize], scales: &[f64], all: bool) -> Matrix {
    let width = if all { y.cols() } else { 0 };
    let mut out = Matrix::zeros(rows.len(), width + 1);
    for (i, (&row, &scale)) in rows.iter().zip(scales).enumerate() {
        let out = out.row_mut(i);
        out.iter_mut().zip(y.row(row)).for_each(|(out, y)| *out = scale * y);
        out[width] = scale;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_the_inner_products_of_the_kernel() {
        use rand::{RngExt, SeedableRng};
        let mut rng = chacha20::ChaCha8Rng::seed_from_u64(8);
        let x = Matrix::from_fn(200, 2, |_, _| rng.random_range(-1.0..1.0));
        let metric = Metric::isotropic(Form::Sphere, 2, 0.7).unwrap();
        for kernel in [Kernel::Gaussian, Kernel::Exponential, Kernel::Laplacian] {
            let gram = DenseGram::new(&x, 200, &metric, kernel, &Watch::default()).unwrap();
            let rows: Vec<usize> = (0..200).collect();
            let landmarks: Vec<usize> = rows.iter().copied().step_by(4).collect();
            let z = gram.nystrom_features(&rows, &landmarks).unwrap();
            assert_eq!((z.rows(), z.cols()), (200, 50));
            // Few landmarks tell much of a smooth kernel, and less of a rough one.
            let near = if kernel == Kernel::Gaussian { 1e-3 } else { 0.5 };
            for i in 0..200 {
                let mut unit = vec![0.0; 200];
                unit[i] = 1.0;
                for (j, k) in gram.multiply(&rows, &rows, &unit).into_iter().enumerate() {
                    let product: f64 = z.row(i).iter().zip(z.row(j)).map(|(a, b)| a * b).sum();
                    let landmark = i % 4 == 0 && j % 4 == 0;
                    let off = (product - k).abs();
                    assert!(off < if landmark { 2e-6 } else { near }, "{kernel}: {product} {k}");
                }
            }
        }
    }
}
