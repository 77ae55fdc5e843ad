//! The validation loss of equation (13) over SVMs on landmarks, and its gradient in L and C.
//!
//! With g_v = d loss / d f_v on the validation rows, S, H and r = f - y of the trained SVM, and the bias among the
//! coefficients as in [`newton`](super::newton), one adjoint system gives all derivatives:
//!
//! ```text
//! H [u; t] = sum_v g_v [k_v; 1]          q_i = k_i' u + t
//!
//! d loss / d K_vm = g_v alpha'           on validation rows
//! d loss / d K_im = -C w_i (q_i alpha' + r_i u')      on S
//! d loss / d K_mm = -u alpha'
//! d loss / d log C = -C sum_{i in S} w_i r_i q_i
//! ```

use super::LandmarkSvms;
use super::pair::PairColumns;
use super::part::{Kept, Part, class_factor};
use super::question::{LandmarkKernel, Question, Validation};
use crate::error::Result;
use crate::linalg::{
    self, Block, Matrix, abs_differences, add_scaled, dot, half_over_distance, times_distance,
};
use crate::loss::Loss;
use crate::metric::{Form, Kernel, Metric};
use crate::parallel;
use crate::watch::Watch;

/// Rows of a tile that is contracted by one task.
const TILE_ROWS: usize = 64;

/// A validation loss with its gradient.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluated {
    /// Weighted mean of the surrogate over the validation rows of all problems.
    pub loss: f64,
    /// Derivative in the values of the metric.
    pub d_metric: Vec<f64>,
    /// Derivative in log C.
    pub d_log_cost: f64,
}

impl LandmarkSvms<'_> {
    /// Trains the SVMs of all problems with this C, and measures them on their validation rows.
    pub fn evaluate(&mut self, cost: f64, loss: Loss) -> Result<Evaluated> {
        let validation = self.validation(loss);
        let value = self.train_and_validate(cost, Some(validation))?;
        let adjoints = self.adjoints()?;
        let both = self.machines.iter().zip(&adjoints);
        let machines = both.map(|(machine, u)| (machine.theta().to_vec(), u.clone())).collect();
        let sums = self.ask(&Question::Gradient { validation, cost, machines })?;
        let contraction = Contraction::of_kernel(&self.kernel);
        let mut sums = contraction.partial(sums.into_iter().next().unwrap_or_default());
        // K between the landmarks.
        let m = self.kernel.m();
        let mut weights = vec![0.0; m * m];
        for (machine, u) in self.machines.iter().zip(&adjoints) {
            machine.add_outer(&mut weights, m, u);
        }
        let tile = (TILE_ROWS * m).max(1);
        let tiles = self.kernel.k_mm.as_slice().chunks(tile).zip(weights.chunks(tile)).enumerate();
        let parts: Vec<Partial> = parallel::map(tiles, |(t, (k, w))| {
            contraction.of(contraction.z, t * TILE_ROWS, k, w.to_vec())
        });
        parts.iter().for_each(|part| sums.add(part));
        let d_log_cost = sums.d_log_cost;
        Ok(Evaluated { loss: value, d_metric: contraction.finish(sums), d_log_cost })
    }
}

/// An SVM that is asked about rows of one class.
struct Asked<'q> {
    columns: PairColumns,
    train: &'q [bool],
    valid: &'q [bool],
    y: f64,
    theta: &'q [f64],
    u: &'q [f64],
}

impl Part<'_> {
    /// The derivative of the validation loss in log C, and the sums that the derivative in the metric is made of.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn gradient(
        &self,
        kept: &mut Kept,
        kernel: &LandmarkKernel,
        validation: Validation,
        cost: f64,
        machines: &[(Vec<f64>, Vec<f64>)],
        keep: usize,
        watch: &Watch,
    ) -> Result<Vec<f64>> {
        let (m, setting) = (kernel.m(), &kernel.setting);
        let contraction = Contraction::of_kernel(kernel);
        let mut sums = contraction.zero();
        self.for_each_block(kept, kernel, keep, watch, |block| {
            let x = (block.x)();
            for (class, places) in self.by_class(&block.places) {
                let factor = class_factor(kernel, class);
                let asked: Vec<Asked<'_>> = (setting.problems.iter().zip(machines))
                    .filter(|(p, _)| class == p.classes.0 || class == p.classes.1)
                    .map(|(problem, (theta, u))| Asked {
                        columns: PairColumns::of(setting, problem),
                        train: &problem.train,
                        valid: &problem.valid,
                        y: if class == problem.classes.1 { 1.0 } else { -1.0 },
                        theta,
                        u,
                    })
                    .collect();
                let first = places.start - block.places.start;
                let k = &block.k[first * m..(first + places.len()) * m];
                let tiles = k.chunks(TILE_ROWS * m).enumerate();
                let parts: Vec<Partial> = parallel::map(tiles, |(t, k)| {
                    let mut weights = vec![0.0; k.len()];
                    let mut d_log_cost = 0.0;
                    let rows = weights.chunks_exact_mut(m).zip(k.chunks_exact(m));
                    for (i, (weights, k)) in rows.enumerate() {
                        let i = first + t * TILE_ROWS + i;
                        let weight = factor * self.weight[block.places.start + i];
                        let fold = usize::from(block.fold[i]);
                        for asked in &asked {
                            d_log_cost += asked.weigh(weight, fold, validation, cost, k, weights);
                        }
                    }
                    let part = contraction.of(&x, first + t * TILE_ROWS, k, weights);
                    Partial { d_log_cost, ..part }
                });
                parts.iter().for_each(|part| sums.add(part));
            }
        })?;
        Ok(sums.into_values())
    }
}

impl Asked<'_> {
    /// Adds d loss / d K of one row to `weights`, and returns its part of d loss / d log C.
    fn weigh(
        &self,
        weight: f64,
        fold: usize,
        validation: Validation,
        cost: f64,
        k: &[f64],
        weights: &mut [f64],
    ) -> f64 {
        let (train, valid) = (self.train[fold], self.valid[fold]);
        if !train && !valid {
            return 0.0;
        }
        let (columns, y) = (&self.columns, self.y);
        let f = columns.output(k, self.theta);
        let mut on_alpha = if valid { validation.at(weight, y, f).1 } else { 0.0 };
        let mut d_log_cost = 0.0;
        if train && y * f < 1.0 {
            let (q, r, c) = (columns.output(k, self.u), f - y, cost * weight);
            on_alpha -= c * q;
            columns.scatter(weights, -c * r, self.u);
            d_log_cost = -c * r * q;
        }
        if on_alpha != 0.0 {
            columns.scatter(weights, on_alpha, self.theta);
        }
        d_log_cost
    }
}

/// The way from weights W on entries of K, d loss / d K, to the derivative in the values of the metric.
///
/// With T = W o K', where K' is minus the derivative of k in the squared distance, the derivative in L is -2 L Q with
/// Q = sum_ij T_ij (x_i - z_j)(x_i - z_j)'. For one width, and for the Laplacian kernel, sums of distances do.
struct Contraction<'a> {
    kernel: Kernel,
    metric: &'a Metric,
    /// The landmarks. // (m, d)
    z: &'a Matrix,
    /// The same, column by column, for the Laplacian kernel.
    columns: Matrix,
}

/// Sums over some rows.
#[derive(Default)]
struct Partial {
    d_log_cost: f64,
    /// What the form needs: one sum of distances; a sum for each column; or half of the terms of Q.
    sums: Vec<f64>,
    /// Column sums of T.
    of_landmarks: Vec<f64>,
}

impl Partial {
    /// As it stands in an answer.
    fn into_values(self) -> Vec<f64> {
        [vec![self.d_log_cost], self.sums, self.of_landmarks].concat()
    }

    fn add(&mut self, other: &Self) {
        self.d_log_cost += other.d_log_cost;
        add_scaled(&mut self.sums, 1.0, &other.sums);
        add_scaled(&mut self.of_landmarks, 1.0, &other.of_landmarks);
    }
}

impl<'a> Contraction<'a> {
    fn new(kernel: Kernel, metric: &'a Metric, z: &'a Matrix) -> Self {
        let columns = match (kernel, metric.form()) {
            (Kernel::Laplacian, Form::Diagonal) => z.transpose(),
            _ => Matrix::empty(),
        };
        Self { kernel, metric, z, columns }
    }

    fn of_kernel(kernel: &'a LandmarkKernel) -> Self {
        Self::new(kernel.setting.kernel, &kernel.metric, &kernel.setting.landmarks)
    }

    /// The sums of an answer.
    fn partial(&self, values: Vec<f64>) -> Partial {
        let mut sums = self.zero();
        let of_metric = sums.sums.len();
        if let Some((d_log_cost, values)) = values.split_first() {
            sums.d_log_cost = *d_log_cost;
            sums.sums.copy_from_slice(&values[..of_metric]);
            sums.of_landmarks.copy_from_slice(&values[of_metric..]);
        }
        sums
    }

    fn zero(&self) -> Partial {
        let d = self.z.cols();
        let (sums, of_landmarks) = match (self.metric.form(), self.kernel) {
            (Form::Sphere, _) => (1, 0),
            (Form::Diagonal, Kernel::Laplacian) => (d, 0),
            (Form::Diagonal, _) => (d, self.z.rows()),
            _ => (d * d, self.z.rows()),
        };
        Partial { sums: vec![0.0; sums], of_landmarks: vec![0.0; of_landmarks], d_log_cost: 0.0 }
    }

    /// Of the rows of `x` from `first` on, with their K and W.
    fn of(&self, x: &Matrix, first: usize, k: &[f64], mut w: Vec<f64>) -> Partial {
        let (m, d) = (self.z.rows(), self.z.cols());
        let rows = k.len() / m;
        let mut part = self.zero();
        let mut t = k.to_vec();
        match (self.metric.form(), self.kernel) {
            (Form::Sphere, _) => {
                times_distance(&mut t);
                part.sums[0] =
                    t.chunks_exact(m).zip(w.chunks_exact(m)).map(|(t, w)| dot(t, w)).sum();
                return part;
            }
            (Form::Diagonal, Kernel::Laplacian) => {
                for (i, (w, k)) in w.chunks_exact_mut(m).zip(k.chunks_exact(m)).enumerate() {
                    w.iter_mut().zip(k).for_each(|(w, k)| *w *= k);
                    for (column, sum) in part.sums.iter_mut().enumerate() {
                        *sum +=
                            abs_differences(w, x[(first + i, column)], self.columns.row(column));
                    }
                }
                return part;
            }
            (_, Kernel::Exponential) => half_over_distance(&mut t),
            _ => {}
        }
        w.iter_mut().zip(&t).for_each(|(w, t)| *w *= t);
        let mut tz = Matrix::zeros(rows, d);
        linalg::product(tz.as_mut_slice(), d, 1.0, Block::new(&w, rows, m, m), self.z.into());
        w.chunks_exact(m).for_each(|w| add_scaled(&mut part.of_landmarks, 1.0, w));
        let row_sums: Vec<f64> = w.chunks_exact(m).map(linalg::sum).collect();
        if self.metric.form() == Form::Diagonal {
            for (i, row_sum) in row_sums.iter().enumerate() {
                let (x, tz) = (x.row(first + i), tz.row(i));
                let sums = part.sums.iter_mut().zip(x).zip(tz);
                sums.for_each(|((sum, x), tz)| *sum += x * (row_sum * x - 2.0 * tz));
            }
            return part;
        }
        // Half of X' diag(T 1) X, less X' T Z; the other halves are the transposes.
        for (i, row_sum) in row_sums.iter().enumerate() {
            let x = x.row(first + i);
            tz.row_mut(i).iter_mut().zip(x).for_each(|(tz, x)| *tz = 0.5 * row_sum * x - *tz);
        }
        linalg::product(&mut part.sums, d, 1.0, Block::rows(x, first, rows).t(), (&tz).into());
        part
    }

    /// The derivative in the values of the metric.
    fn finish(&self, Partial { mut sums, of_landmarks, .. }: Partial) -> Vec<f64> {
        let (d, l) = (self.z.cols(), self.metric.values());
        match (self.metric.form(), self.kernel) {
            (Form::Sphere, Kernel::Gaussian) => return vec![-2.0 * sums[0] / l[0]],
            (Form::Sphere, _) => return vec![-sums[0] / l[0]],
            (Form::Diagonal, Kernel::Laplacian) => {
                return l.iter().zip(&sums).map(|(l, sum)| -l.signum() * sum).collect();
            }
            (Form::Diagonal, _) => {
                for (z, weight) in self.z.iter_rows().zip(&of_landmarks) {
                    sums.iter_mut().zip(z).for_each(|(sum, z)| *sum += weight * z * z);
                }
                return l.iter().zip(&sums).map(|(l, q)| -2.0 * l * q).collect();
            }
            _ => {}
        }
        let scaled = Matrix::from_fn(self.z.rows(), d, |j, k| of_landmarks[j] * self.z[(j, k)]);
        let of_z = linalg::multiply(Block::from(self.z).t(), (&scaled).into());
        let q = Matrix::from_fn(d, d, |i, j| sums[i * d + j] + sums[j * d + i] + of_z[(i, j)]);
        let lq = linalg::multiply(Block::new(l, l.len() / d, d, d), (&q).into());
        lq.as_slice().iter().map(|v| -2.0 * v).collect()
    }
}
