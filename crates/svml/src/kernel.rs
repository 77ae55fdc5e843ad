//! The kernel of equation (12), k(x, z) = exp(-|L(x - z)|^2), its matrix K, and the way back from
//! derivatives in K to a derivative in L.
//!
//! Everything the algorithms above need of K stands in the two traits [`Gram`] and [`Factor`]:
//! products with K, solutions of systems with K_SS + ridge, and the contraction dK -> dL. They
//! never see an entry of K, so that another implementation may keep the matrix elsewhere or never
//! form it. [`DenseGram`] is the exact one in memory.

use std::sync::Mutex;

use rayon::prelude::*;

use crate::error::Result;
use crate::linalg::{self, Block, Cholesky, Matrix, SmallSystem, dot, exp_neg_sq_dist};
use crate::metric::{Form, Metric};
use crate::watch::Watch;

/// The kernel matrix between all rows and the first rows of a data matrix, the latter being those
/// that may become support vectors. Rows and columns are named by row index.
pub trait Gram: Sync {
    /// Recomputes the kernel for another metric.
    fn set_metric(&mut self, metric: &Metric) -> Result<()>;

    /// K[rows, cols] v.
    fn multiply(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64>;

    /// K[rows, cols]' v.
    fn multiply_transposed(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64>;

    /// A factorisation of K[set, set] + diag(ridge).
    fn factor<'a>(&'a self, set: &[usize], ridge: &[f64]) -> Result<Box<dyn Factor + 'a>>;

    /// d loss / d (values of the metric), where d loss / d K is the sum of `weights`.
    fn contract(&self, weights: &[Outer<'_>]) -> Vec<f64>;
}

/// A factorisation of K[set, set] + diag(ridge), ready to solve systems.
pub trait Factor: Sync {
    /// Turns this into the factorisation for another set of the same K, reusing what it can.
    fn update(&mut self, set: &[usize], ridge: &[f64]) -> Result<()>;

    /// x <- (K[set, set] + diag(ridge))^-1 x for each of the columns (in the order of the set, one
    /// after the other) in `x`.
    fn solve(&self, x: &mut [f64]);
}

/// Part of d loss / d K: the outer product `left right'` in the block K[rows, cols].
#[derive(Clone, Copy)]
pub struct Outer<'a> {
    /// Row indices of the block.
    pub rows: &'a [usize],
    /// One factor per row.
    pub left: &'a [f64],
    /// Column indices of the block.
    pub cols: &'a [usize],
    /// One factor per column.
    pub right: &'a [f64],
}

/// The expansion of equation (1) without the sign: h(x) = sum_j beta_j k(x, x_j) + b, for rows
/// `z` and support rows `support`, both already mapped by L.
pub fn expand(z: &Matrix, support: &Matrix, beta: &[f64], bias: f64) -> Vec<f64> {
    let norms = sq_norms(support);
    let mut h = vec![bias; z.rows()];
    h.par_chunks_mut(TILE_ROWS).enumerate().for_each(|(t, h)| {
        let first = t * TILE_ROWS;
        let mut tile = vec![0.0; h.len() * TILE_COLS.min(support.rows())];
        for start in (0..support.rows()).step_by(TILE_COLS) {
            let cols = TILE_COLS.min(support.rows() - start);
            let rows = rows_of(z, first, h.len());
            linalg::product(&mut tile, cols, -2.0, rows, rows_of(support, start, cols).t());
            for (i, h) in h.iter_mut().enumerate() {
                let row = &mut tile[i * cols..(i + 1) * cols];
                let z = z.row(first + i);
                exp_neg_sq_dist(row, dot(z, z), &norms[start..start + cols]);
                *h += dot(row, &beta[start..start + cols]);
            }
        }
    });
    h
}

/// Rows and columns of a tile: 64 x 512 values of a tile stay in the second-level cache.
const TILE_ROWS: usize = 64;
const TILE_COLS: usize = 512;
/// A parallel task is not worth its overhead below this many entries of K.
const TASK_ENTRIES: usize = 1 << 16;

fn rows_of(x: &Matrix, first: usize, rows: usize) -> Block<'_> {
    let d = x.cols();
    Block::new(&x.as_slice()[first * d..(first + rows) * d], rows, d, d)
}

fn sq_norms(z: &Matrix) -> Vec<f64> {
    z.iter_rows().map(|z| dot(z, z)).collect()
}

/// K in memory, exact, on the processor.
pub struct DenseGram<'a> {
    x: &'a Matrix,
    metric: Metric,
    /// Row i holds k(x_i, x_j) for the first `cols` rows j.
    k: Vec<f64>,
    cols: usize,
    /// Buffers of factorisations that are no longer needed: fresh memory is slow to touch.
    spare: Mutex<Vec<Vec<f64>>>,
    watch: Watch,
}

impl<'a> DenseGram<'a> {
    /// The kernel between all rows of `x` and its first `cols` rows.
    pub fn new(x: &'a Matrix, cols: usize, metric: &Metric, watch: &Watch) -> Result<Self> {
        let mut gram = Self {
            x,
            metric: metric.clone(),
            k: vec![0.0; x.rows() * cols],
            cols,
            spare: Mutex::default(),
            watch: watch.clone(),
        };
        gram.set_metric(metric)?;
        Ok(gram)
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.k[i * self.cols..(i + 1) * self.cols]
    }

    /// A buffer of `len` values with arbitrary content.
    fn buffer(&self, len: usize) -> Vec<f64> {
        let spare = self.spare.lock().ok().and_then(|mut spare| spare.pop());
        let mut buffer = spare.unwrap_or_default();
        buffer.resize(len, 0.0);
        buffer
    }

    fn give_back(&self, buffer: Vec<f64>) {
        if let Ok(mut spare) = self.spare.lock() {
            spare.push(buffer);
        }
    }

    /// Fills `out`, row after row, with K[rows, cols]; in parallel.
    fn gather(&self, out: &mut [f64], rows: &[usize], cols: &[usize]) {
        let width = cols.len();
        if width == 0 {
            return;
        }
        let rows_per_task = TASK_ENTRIES.div_ceil(width);
        out.par_chunks_mut(width * rows_per_task).zip(rows.par_chunks(rows_per_task)).for_each(
            |(out, rows)| {
                for (out, &i) in out.chunks_exact_mut(width).zip(rows) {
                    let k = self.row(i);
                    out.iter_mut().zip(cols).for_each(|(out, &j)| *out = k[j]);
                }
            },
        );
    }
}

impl Gram for DenseGram<'_> {
    fn set_metric(&mut self, metric: &Metric) -> Result<()> {
        self.watch.check()?;
        self.metric = metric.clone();
        let z = metric.transform(self.x);
        let norms = sq_norms(&z);
        let cols = self.cols;
        if cols == 0 {
            return Ok(());
        }
        self.k.par_chunks_mut(TILE_ROWS * cols).enumerate().for_each(|(t, k)| {
            let (first, rows) = (t * TILE_ROWS, k.len() / cols);
            for start in (0..cols).step_by(TILE_COLS) {
                let width = TILE_COLS.min(cols - start);
                let (z_rows, z_cols) = (rows_of(&z, first, rows), rows_of(&z, start, width));
                linalg::product(&mut k[start..], cols, -2.0, z_rows, z_cols.t());
                for i in 0..rows {
                    let row = &mut k[i * cols + start..i * cols + start + width];
                    exp_neg_sq_dist(row, norms[first + i], &norms[start..start + width]);
                }
            }
            for i in 0..rows {
                if first + i < cols {
                    k[i * cols + first + i] = 1.0;
                }
            }
        });
        self.watch.check()
    }

    fn multiply(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64> {
        // A dense dot product with zeros beats gathering unless few columns are wanted.
        let dense = (4 * cols.len() > self.cols).then(|| {
            let mut dense = vec![0.0; self.cols];
            cols.iter().zip(v).for_each(|(&j, &v)| dense[j] = v);
            dense
        });
        let entry = |&i: &usize| {
            let k = self.row(i);
            match &dense {
                Some(dense) => dot(k, dense),
                None => cols.iter().zip(v).map(|(&j, &v)| k[j] * v).sum(),
            }
        };
        let per_row = if dense.is_some() { self.cols } else { cols.len() };
        let rows_per_task = TASK_ENTRIES.div_ceil(per_row.max(1));
        rows.par_iter().with_min_len(rows_per_task).map(entry).collect()
    }

    fn multiply_transposed(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64> {
        // Partial sums over fixed blocks of rows, added in order: the same bits for any threads.
        let rows_per_task = TASK_ENTRIES.div_ceil(cols.len().max(1));
        let partial: Vec<Vec<f64>> = rows
            .par_chunks(rows_per_task)
            .zip(v.par_chunks(rows_per_task))
            .map(|(rows, v)| {
                let mut sum = vec![0.0; cols.len()];
                for (&i, &v) in rows.iter().zip(v) {
                    let k = self.row(i);
                    sum.iter_mut().zip(cols).for_each(|(sum, &j)| *sum += v * k[j]);
                }
                sum
            })
            .collect();
        let mut total = vec![0.0; cols.len()];
        for part in partial {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        total
    }

    fn factor<'a>(&'a self, set: &[usize], ridge: &[f64]) -> Result<Box<dyn Factor + 'a>> {
        Ok(Box::new(DenseFactor::new(self, set, ridge)?))
    }

    /// With W = (left right') o K, the derivative in L is -2 L Q, where
    /// Q = sum_ij W_ij (x_i - x_j)(x_i - x_j)'
    ///   = X_r' diag(W 1) X_r + X_c' diag(W' 1) X_c - X_r' W X_c - X_c' W' X_r.
    fn contract(&self, weights: &[Outer<'_>]) -> Vec<f64> {
        let z = match self.metric.form() {
            Form::Rank(_) => self.metric.transform(self.x),
            _ => Matrix::default(),
        };
        let mut total = vec![0.0; self.metric.values().len()];
        for outer in weights {
            let part = match self.metric.form() {
                Form::Sphere | Form::Diagonal => self.contract_diagonal(outer),
                Form::Full => self.contract_full(outer),
                Form::Rank(_) => self.contract_rank(outer, &z),
            };
            total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
        }
        total
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
    /// Since W = diag(left) K diag(right), W Y is K times the scaled rows of Y, scaled again:
    /// W itself is never formed. `both` asks for W' Y_r besides W' 1.
    fn weigh(&self, outer: &Outer<'_>, y: &Matrix, both: bool) -> Weighted {
        /// Tasks to share the work between; fixed, so that the sums have a fixed order.
        const TASKS: usize = 32;
        let (rows, cols) = (outer.rows.len(), outer.cols.len());
        let right = scaled_rows(y, outer.cols, outer.right, true);
        let left = scaled_rows(y, outer.rows, outer.left, both);
        let width = right.cols();
        let mut forward = Matrix::zeros(rows, width);
        let rows_per_task = rows.div_ceil(TASKS).next_multiple_of(TILE_ROWS);
        let partial: Vec<Matrix> = forward
            .as_mut_slice()
            .par_chunks_mut(rows_per_task * width)
            .enumerate()
            .map(|(task, forward)| {
                let mut backward = Matrix::zeros(cols, left.cols());
                let mut tile = vec![0.0; TILE_ROWS.min(rows) * cols];
                for (t, forward) in forward.chunks_mut(TILE_ROWS * width).enumerate() {
                    let first = task * rows_per_task + t * TILE_ROWS;
                    let count = forward.len() / width;
                    self.gather(&mut tile, &outer.rows[first..first + count], outer.cols);
                    let k = Block::new(&tile, count, cols, cols);
                    linalg::product(forward, width, 1.0, k, (&right).into());
                    for (forward, &l) in forward.chunks_exact_mut(width).zip(&outer.left[first..]) {
                        forward.iter_mut().for_each(|v| *v *= l);
                    }
                    let left = rows_of(&left, first, count);
                    linalg::add_product(&mut backward, k.t(), left);
                }
                backward
            })
            .collect();
        let mut backward = Matrix::zeros(cols, left.cols());
        for part in partial {
            backward.as_mut_slice().iter_mut().zip(part.as_slice()).for_each(|(b, p)| *b += p);
        }
        for (j, r) in outer.right.iter().enumerate() {
            backward.row_mut(j).iter_mut().for_each(|v| *v *= r);
        }
        Weighted { forward, backward }
    }

    /// Sphere and diagonal need only the diagonal of Q.
    fn contract_diagonal(&self, outer: &Outer<'_>) -> Vec<f64> {
        let d = self.x.cols();
        let Weighted { forward, backward } = self.weigh(outer, self.x, false);
        let mut q = vec![0.0; d];
        for (&i, wx) in outer.rows.iter().zip(forward.iter_rows()) {
            let x = self.x.row(i);
            (0..d).for_each(|k| q[k] += x[k] * (wx[d] * x[k] - 2.0 * wx[k]));
        }
        for (&j, w) in outer.cols.iter().zip(backward.as_slice()) {
            q.iter_mut().zip(self.x.row(j)).for_each(|(q, x)| *q += w * x * x);
        }
        match self.metric.form() {
            Form::Sphere => vec![-2.0 * self.metric.values()[0] * q.iter().sum::<f64>()],
            _ => q.iter().zip(self.metric.values()).map(|(q, l)| -2.0 * l * q).collect(),
        }
    }

    /// Q as H + H' + X_c' diag(W' 1) X_c with H = X_r' (diag(W 1) X_r / 2 - W X_c).
    fn contract_full(&self, outer: &Outer<'_>) -> Vec<f64> {
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
        let q = Matrix::from_fn(d, d, |i, j| h[(i, j)] + h[(j, i)] + c[(i, j)]);
        self.minus_two_l_times(&q)
    }

    /// L Q = (diag(W 1) Z_r - W Z_c)' X_r + (diag(W' 1) Z_c - W' Z_r)' X_c: products with K have
    /// r columns where those of the full form have d.
    fn contract_rank(&self, outer: &Outer<'_>, z: &Matrix) -> Vec<f64> {
        let rank = z.cols();
        let Weighted { forward, backward } = self.weigh(outer, z, true);
        let side = |weighted: &Matrix, rows: &[usize]| {
            let left = Matrix::from_fn(rows.len(), rank, |i, k| {
                weighted[(i, rank)] * z[(rows[i], k)] - weighted[(i, k)]
            });
            linalg::multiply(Block::from(&left).t(), (&self.x.select_rows(rows)).into())
        };
        let (r, c) = (side(&forward, outer.rows), side(&backward, outer.cols));
        r.as_slice().iter().zip(c.as_slice()).map(|(r, c)| -2.0 * (r + c)).collect()
    }

    fn minus_two_l_times(&self, q: &Matrix) -> Vec<f64> {
        let mut out = linalg::multiply((&self.metric.components()).into(), q.into()).into_vec();
        out.iter_mut().for_each(|v| *v *= -2.0);
        out
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

/// The factorisation of K[set, set] + diag(ridge), by Cholesky for a base set S and, when the set
/// has moved a little since, by a border around that factor.
///
/// With rows D added to S and rows R removed from it, beta on the new set solves
///
/// ```text
/// [ A_SS  U ] [ beta_S ]   [ rhs_S, 0 on R ]        U = [ K_SD  E_R ],  V = [ A_DD  0 ]
/// [ U'    V ] [ w      ] = [ rhs_D, 0      ]                                [ 0     0 ]
/// ```
///
/// where E_R holds the unit vectors of R: they free the equations of R and force beta_R = 0. With
/// A_SS = G G' and T = G^-1 U the Schur complement is V - T'T, which is small.
struct DenseFactor<'g, 'x> {
    gram: &'g DenseGram<'x>,
    base: Vec<usize>,
    cholesky: Option<Cholesky>,
    /// Columns of U seen so far: Newton steps come back to most of them.
    changes: Vec<Change>,
    /// The columns of T that belong to them, one after the other.
    t: Vec<f64>,
    /// For each of them its inner products with all up to those computed together with it.
    products: Vec<Vec<f64>>,
    border: Option<Border>,
}

/// A column of U: the row added, or the position in the base set of the row removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Added(usize),
    Removed(usize),
}

/// The set as it differs from the base set.
struct Border {
    schur: SmallSystem,
    /// Which of the columns are in use, rows added first.
    columns: Vec<usize>,
    /// (position in the new set, position in the base set) of the rows in both.
    kept: Vec<(usize, usize)>,
    /// Positions in the new set of the rows added.
    added: Vec<usize>,
}

impl<'g, 'x> DenseFactor<'g, 'x> {
    fn new(gram: &'g DenseGram<'x>, set: &[usize], ridge: &[f64]) -> Result<Self> {
        let n = set.len();
        let mut a = gram.buffer(n * n);
        gram.gather(&mut a, set, set);
        a.iter_mut().step_by(n + 1).zip(ridge).for_each(|(a, r)| *a += r);
        let smallest = ridge.iter().copied().fold(f64::INFINITY, f64::min);
        let cholesky = Some(Cholesky::new(a, n, smallest, &gram.watch)?);
        let base = set.to_vec();
        Ok(Self {
            gram,
            base,
            cholesky,
            changes: vec![],
            t: vec![],
            products: vec![],
            border: None,
        })
    }

    /// Positions in `self.changes` of these changes; columns not seen before are computed.
    fn columns_of(&mut self, changes: &[Change], cholesky: &Cholesky) -> Vec<usize> {
        const ROWS: usize = 64;
        let n = self.base.len();
        let mut known: Vec<(Change, usize)> = self.changes.iter().copied().zip(0..).collect();
        known.sort_unstable();
        let find = |change: &Change| {
            known.binary_search_by_key(change, |(known, _)| *known).ok().map(|i| known[i].1)
        };
        let first = self.changes.len();
        self.changes.extend(changes.iter().filter(|c| find(c).is_none()));
        let (gram, base, new) = (self.gram, &self.base, &self.changes[first..]);
        self.t.resize(self.changes.len() * n, 0.0);
        self.t[first * n..].par_chunks_exact_mut(n).zip(new).for_each(
            |(t, change)| match *change {
                Change::Added(row) => {
                    let k = gram.row(row);
                    t.iter_mut().zip(base).for_each(|(t, &j)| *t = k[j]);
                }
                Change::Removed(position) => t[position] = 1.0,
            },
        );
        cholesky.solve_lower(&mut self.t[first * n..]);
        let (t, width) = (&self.t, self.changes.len());
        let all = Block::new(t, width, n, n);
        let products: Vec<Vec<f64>> = (t[first * n..].par_chunks(ROWS * n))
            .flat_map_iter(|rows| {
                let count = rows.len() / n;
                linalg::multiply(Block::new(rows, count, n, n), all.t()).into_rows()
            })
            .collect();
        self.products.extend(products);
        let mut next = first..;
        changes.iter().map(|c| find(c).or_else(|| next.next()).unwrap_or(first)).collect()
    }
}

impl Drop for DenseFactor<'_, '_> {
    fn drop(&mut self) {
        if let Some(cholesky) = self.cholesky.take() {
            self.gram.give_back(cholesky.into_buffer());
        }
    }
}

impl Factor for DenseFactor<'_, '_> {
    fn update(&mut self, set: &[usize], ridge: &[f64]) -> Result<()> {
        let (mut kept, mut added, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut i, mut j) = (0, 0);
        while i < set.len() || j < self.base.len() {
            match (set.get(i), self.base.get(j)) {
                (Some(s), Some(b)) if s == b => {
                    kept.push((i, j));
                    i += 1;
                    j += 1;
                }
                (Some(s), b) if b.is_none_or(|b| s < b) => {
                    added.push(i);
                    i += 1;
                }
                _ => {
                    removed.push(j);
                    j += 1;
                }
            }
        }
        let changed = added.len() + removed.len();
        // The border costs about 3 changed / n of a factorisation, and later changes less.
        let Some(cholesky) = self.cholesky.take_if(|_| 4 * changed <= self.base.len()) else {
            if let Some(cholesky) = self.cholesky.take() {
                self.gram.give_back(cholesky.into_buffer());
            }
            *self = Self::new(self.gram, set, ridge)?;
            return Ok(());
        };
        let changes: Vec<Change> = (added.iter().map(|&i| Change::Added(set[i])))
            .chain(removed.into_iter().map(Change::Removed))
            .collect();
        let columns = self.columns_of(&changes, &cholesky);
        self.cholesky = Some(cholesky);
        self.border = (changed > 0).then(|| {
            let mut schur = Matrix::from_fn(changed, changed, |a, b| {
                let (first, last) = (columns[a].min(columns[b]), columns[a].max(columns[b]));
                -self.products[last][first]
            });
            for (a, &i) in added.iter().enumerate() {
                for (b, &j) in added.iter().enumerate() {
                    schur[(a, b)] += self.gram.row(set[i])[set[j]];
                }
                schur[(a, a)] += ridge[i];
            }
            Border { schur: SmallSystem::new(&schur), columns, kept, added }
        });
        self.gram.watch.check()
    }

    fn solve(&self, x: &mut [f64]) {
        let Some(cholesky) = &self.cholesky else { return };
        let Some(border) = &self.border else {
            cholesky.solve_lower(x);
            cholesky.solve_upper(x);
            return;
        };
        let n = self.base.len();
        let set = border.kept.len() + border.added.len();
        let columns = x.len() / set.max(1);
        let mut c = vec![0.0; columns * n];
        for (c, x) in c.chunks_exact_mut(n).zip(x.chunks_exact(set)) {
            border.kept.iter().for_each(|&(i, j)| c[j] = x[i]);
        }
        cholesky.solve_lower(&mut c);
        let t = || border.columns.iter().map(|&i| &self.t[i * n..(i + 1) * n]);
        for (c, x) in c.chunks_exact_mut(n).zip(x.chunks_exact_mut(set)) {
            let mut w: Vec<f64> = t().map(|t| -dot(t, c)).collect();
            w.iter_mut().zip(&border.added).for_each(|(w, &i)| *w += x[i]);
            border.schur.solve(&mut w);
            for (w, t) in w.iter().zip(t()) {
                c.iter_mut().zip(t).for_each(|(c, t)| *c -= w * t);
            }
            border.added.iter().zip(&w).for_each(|(&i, &w)| x[i] = w);
        }
        cholesky.solve_upper(&mut c);
        for (c, x) in c.chunks_exact(n).zip(x.chunks_exact_mut(set)) {
            border.kept.iter().for_each(|&(i, j)| x[i] = c[j]);
        }
    }
}
