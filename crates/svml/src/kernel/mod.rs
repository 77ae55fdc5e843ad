//! The kernel of equation (12), k(x, z) = exp(-|L(x - z)|^2), and two rougher ones (see [`Kernel`]), its matrix K,
//! and the way back from derivatives in K to a derivative in L.
//!
//! Everything the algorithms above need of K stands in the traits [`Gram`], [`Factor`] and [`Inverse`]:
//! products with K, solutions of systems with K_SS + ridge, and the contraction dK -> dL. They
//! never see an entry of K, so that another implementation may keep the matrix elsewhere or never
//! form it. Who makes them is a [`Backend`]. There are two: the exact matrix in memory, and its tiles on a card; `choose` is
//! the place where one is chosen.

mod cross;
mod cuda;
mod dense;
mod derivative;
mod guess;

pub use cross::Points;

use crate::cuda::Gpu;
use crate::device::Work;
use crate::error::Result;
use crate::linalg::{Block, Matrix, dot};
use crate::metric::{Kernel, Metric};
use crate::parallel;
use crate::run::Watch;

/// Makes kernel matrices.
pub trait Backend: Sync {
    /// The kernel matrix between all rows of `x` and its first `cols` rows.
    fn gram<'a>(
        &self,
        x: &'a Matrix,
        cols: usize,
        metric: &Metric,
        kernel: Kernel,
        watch: &Watch,
    ) -> Result<Box<dyn Gram + 'a>>;

    /// The distances between all rows of `x`, from which the kernels of all spherical metrics follow.
    fn distances<'a>(&self, x: &'a Matrix, watch: &Watch) -> Result<Box<dyn Distances + 'a>>;
}

/// The distances between all rows of a matrix.
pub trait Distances: Sync {
    /// The kernel matrix of a spherical metric, k = exp(-|x - z|^2 / sigma^2).
    fn gram<'a>(&'a self, sphere: &Metric, watch: &Watch) -> Result<Box<dyn Gram + 'a>>;
}

/// The backend of this process: for each kernel matrix the one that `choose` says.
pub fn backend() -> &'static dyn Backend {
    &Chosen
}

/// Asks another backend for each kernel matrix.
struct Chosen;

impl Backend for Chosen {
    fn gram<'a>(
        &self,
        x: &'a Matrix,
        cols: usize,
        metric: &Metric,
        kernel: Kernel,
        watch: &Watch,
    ) -> Result<Box<dyn Gram + 'a>> {
        choose(watch, x.rows(), cols, x.cols()).gram(x, cols, metric, kernel, watch)
    }

    fn distances<'a>(&self, x: &'a Matrix, watch: &Watch) -> Result<Box<dyn Distances + 'a>> {
        choose(watch, x.rows(), x.rows(), x.cols()).distances(x, watch)
    }
}

/// The one place where a backend is chosen, for a kernel matrix of so many rows and columns on `d` features: a card where
/// the watch has one, there is anything to compute, and it was asked for or pays; else the matrix in memory.
fn choose(watch: &Watch, rows: usize, cols: usize, d: usize) -> &'static dyn Backend {
    match watch.card_for(Work { rows, cols, features: d }) {
        Some(_) if rows > 0 && cols > 0 && d > 0 => {
            watch.uses_card();
            &cuda::Cuda
        }
        _ => &dense::Dense,
    }
}

/// The kernel matrix between all rows and the first rows of a data matrix, the latter being those
/// that may become support vectors. Rows and columns are named by row index.
pub trait Gram: Sync {
    /// Makes this the kernel of another metric.
    fn set_metric(&mut self, metric: &Metric) -> Result<()>;

    /// Says that these columns will be needed, by several tasks: they are then computed once, together.
    fn prefetch(&self, cols: &[usize]);

    /// K[rows, cols] v.
    fn multiply(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64>;

    /// K[rows, cols]' v.
    fn multiply_transposed(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64>;

    /// A factorisation of K[set, set] + diag(ridge).
    fn factor<'a>(&'a self, set: &[usize], ridge: &[f64]) -> Result<Box<dyn Factor + 'a>>;

    /// d loss / d (values of the metric), where d loss / d K is the sum of `weights`.
    fn contract(&self, weights: &[Outer<'_>]) -> Result<Vec<f64>>;

    /// sum_j v_j k'(x_i, x_j) (x_i - x_j) for each of `rows`, j running over `cols`, with k' minus the derivative of
    /// k in the squared distance: up to the factor -2 M the gradient of an SVM's output. For the Laplacian kernel
    /// sum_j v_j k(x_i, x_j) sign(x_i - x_j): up to a factor of minus the diagonal of L. // (rows, d)
    fn weighted_differences(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Matrix;

    /// The positions within `rows` of the support set of an approximate SVM with labels `y` and costs `cost`: Nystrom features
    /// of the landmarks, which are some of the rows, take the place of the kernel (see `guess`). Empty, which stands for
    /// all rows, if the approximation fails because landmarks are too close to each other.
    fn approximate_support(
        &self,
        rows: &[usize],
        y: &[f64],
        cost: &[f64],
        landmarks: &[usize],
    ) -> Result<Vec<usize>>;

    /// What computes for many SVMs at a time, each of so many rows, where that is faster than a thread for each of them.
    fn together(&self, _sizes: &[usize]) -> Option<&dyn Together> {
        None
    }
}

/// Products and solutions for many SVMs at a time.
pub trait Together: Sync {
    /// K[rows, cols] v of each.
    fn multiply(&self, products: &[Product<'_>]) -> Result<Vec<Vec<f64>>>;

    /// (K[set, set] + diag(ridge))^-1 x of each.
    fn solve(&self, systems: &[System]) -> Result<Vec<Vec<f64>>>;
}

/// A product K[rows, cols] v.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    /// Row indices of the block.
    pub rows: &'a [usize],
    /// Column indices of the block.
    pub cols: &'a [usize],
    /// One factor per column.
    pub v: &'a [f64],
}

/// A system (K[set, set] + diag(ridge)) z = x.
pub struct System {
    /// Row indices.
    pub set: Vec<usize>,
    /// What is added to the diagonal.
    pub ridge: Vec<f64>,
    /// The right-hand sides, one after the other.
    pub x: Vec<f64>,
}

/// A factorisation of K[set, set] + diag(ridge), ready to solve systems.
pub trait Factor: Sync {
    /// Turns this into the factorisation for another set of the same K, reusing what it can. The
    /// ridge of a row that stays must stay too.
    fn update(&mut self, set: &[usize], ridge: &[f64]) -> Result<()>;

    /// x <- (K[set, set] + diag(ridge))^-1 x for each of the columns (in the order of the set, one
    /// after the other) in `x`.
    fn solve(&self, x: &mut [f64]);

    /// Some entries of the diagonal of the inverse, by their position in the set.
    fn inverse_diagonal(&self, positions: &[usize]) -> Vec<f64>;

    /// B, the leading block of the inverse of the matrix bordered by ones:
    /// A^-1 - z z' / sum z with z = A^-1 1, which is `inverse_ones`.
    fn bordered_inverse<'b>(&'b self, inverse_ones: &[f64]) -> Result<Box<dyn Inverse + 'b>>;
}

/// The matrix B of [`Factor::bordered_inverse`].
pub trait Inverse: Sync {
    /// Its diagonal.
    fn diagonal(&self) -> Vec<f64>;

    /// d loss / d (values of the metric), where d loss / d K[set, set] is B diag(q) B; and the diagonal
    /// of that matrix.
    fn contract(&self, q: &[f64]) -> Result<(Vec<f64>, Vec<f64>)>;
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

/// The sums of equation (1), sum_j beta_j k(x, x_j), for rows `z` and support rows `support`, both
/// already mapped by L, and each row of coefficients in `beta`. // (rows of z, rows of beta)
pub fn expand(kernel: Kernel, z: &Matrix, support: &Matrix, beta: &Matrix) -> Matrix {
    /// Tasks to share the work between: memory for a tile is asked for, and cleared, once in each of them.
    const TASKS: usize = 64;
    let points = Points::new(kernel, support.clone());
    let mut sums = Matrix::zeros(z.rows(), beta.rows());
    let (width, count) = (beta.rows().max(1), points.count());
    let rows_per_task = z.rows().max(1).div_ceil(TASKS).next_multiple_of(TILE_ROWS);
    let tasks = sums.as_mut_slice().chunks_mut(rows_per_task * width).enumerate();
    parallel::for_each(tasks, |(task, sums)| {
        let mut tile = vec![0.0; TILE_ROWS.min(sums.len() / width) * count];
        for (t, sums) in sums.chunks_mut(TILE_ROWS * width).enumerate() {
            let tile = &mut tile[..sums.len() / width * count];
            points.fill(z, task * rows_per_task + t * TILE_ROWS, tile);
            for (sums, k) in sums.chunks_exact_mut(width).zip(tile.chunks_exact(count.max(1))) {
                sums.iter_mut().zip(beta.iter_rows()).for_each(|(sum, beta)| *sum = dot(k, beta));
            }
        }
    });
    sums
}

/// [`expand`] on a card, if there is one and the sums are worth it; an error is one of the card.
pub fn expand_on(
    gpu: Option<&'static Gpu>,
    kernel: Kernel,
    z: &Matrix,
    support: &Matrix,
    beta: &Matrix,
) -> Result<Matrix> {
    /// Below so many values of the kernel the processor has them before they would be on the way.
    const FEW: usize = 1 << 20;
    match gpu {
        Some(gpu) if z.rows().saturating_mul(support.rows()) >= FEW => {
            cuda::expand(gpu, kernel, z, support, beta)
        }
        _ => Ok(expand(kernel, z, support, beta)),
    }
}

/// Rows and columns of a tile: 64 x 512 values of a tile stay in the second-level cache.
const TILE_ROWS: usize = 64;
const TILE_COLS: usize = 512;

fn rows_of(x: &Matrix, first: usize, rows: usize) -> Block<'_> {
    Block::rows(x, first, rows)
}

fn sq_norms(z: &Matrix) -> Vec<f64> {
    z.iter_rows().map(|z| dot(z, z)).collect()
}
