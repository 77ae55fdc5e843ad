//! Generated data with a known answer: a few informative directions among correlated noise.

use chacha20::ChaCha8Rng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::StandardNormal;

use super::Dataset;
use crate::error::{Error, Result};
use crate::linalg::{self, Block, Matrix};
use crate::metric::{Form, Metric};

/// Draws rows whose class depends on a few hidden directions, while all other directions are correlated
/// noise. Two classes are the inside and the outside of a ball in the hidden directions; of more classes,
/// each is a cluster in them.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    /// Number of rows. Default: 500.
    pub rows: usize,
    /// Number of classes. Default: 2.
    pub classes: usize,
    /// Number of directions that decide the class. Default: 2.
    pub informative: usize,
    /// Number of directions that are noise. Default: 8.
    pub noise: usize,
    /// Whether the directions are hidden by a random rotation, or are columns of their own.
    /// Default: true.
    pub rotated: bool,
    /// Share of labels that are flipped: no classifier can have a lower error. Default: 0.05.
    pub flipped: f64,
    /// Seed of the rotation and of the clusters. Generators that differ only in `seed` draw from the same
    /// distribution. Default: 0.
    pub rotation_seed: u64,
    /// Seed of the rows. Default: 0.
    pub seed: u64,
}

impl Default for Generator {
    fn default() -> Self {
        Self {
            rows: 500,
            classes: 2,
            informative: 2,
            noise: 8,
            rotated: true,
            flipped: 0.05,
            rotation_seed: 0,
            seed: 0,
        }
    }
}

/// Standard deviation of a cluster, where that of the centres is 1.
const CLUSTER: f64 = 0.25;

/// Generated rows and the truth behind them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Generated {
    /// The rows.
    pub data: Dataset,
    /// The directions that decide the class, as rows: `directions x` are the hidden coordinates.
    /// // (informative, features)
    pub directions: Matrix,
}

impl Generator {
    /// Draws the rows.
    pub fn generate(&self) -> Result<Generated> {
        let d = self.informative + self.noise;
        let enough = self.informative > 0 && self.rows > 0 && self.classes >= 2;
        if !enough || !(0.0..=0.5).contains(&self.flipped) {
            return Err(Error::parameter(
                "generator",
                format!("{self:?}"),
                "of at least 1 row, 2 classes and 1 informative direction, with flipped between 0 and 0.5",
            ));
        }
        let mut fixed = ChaCha8Rng::seed_from_u64(self.rotation_seed);
        let basis = match self.rotated {
            true => random_rotation(d, &mut fixed),
            false => Matrix::from_fn(d, d, |i, j| if i == j { 1.0 } else { 0.0 }),
        };
        let centres: Vec<Vec<f64>> =
            (0..self.classes).map(|_| normals(self.informative, &mut fixed)).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // Noise columns share hidden factors, so that they are correlated among themselves.
        let factors = self.noise.div_ceil(3);
        // The squared radius that half of the rows exceed: the median of the chi-squared distribution, by the
        // approximation of Wilson and Hilferty.
        let k = self.informative as f64;
        let median = k * (1.0 - 2.0 / (9.0 * k)).powi(3);
        let (mut hidden, mut labels) = (Vec::with_capacity(self.rows * d), Vec::new());
        for _ in 0..self.rows {
            let mut signal: Vec<f64> = normals(self.informative, &mut rng);
            let shared = normals(factors, &mut rng);
            let own = normals(self.noise, &mut rng);
            let flip = rng.random::<f64>() < self.flipped;
            labels.push(if self.classes == 2 {
                let radius: f64 = signal.iter().map(|s| s * s).sum();
                if (radius < median) != flip { "inside".to_owned() } else { "outside".to_owned() }
            } else {
                let class = rng.random_range(0..self.classes);
                for (s, centre) in signal.iter_mut().zip(&centres[class]) {
                    *s = CLUSTER * *s + centre;
                }
                let label = if flip { rng.random_range(0..self.classes) } else { class };
                format!("c{label:02}")
            });
            hidden.extend(signal);
            hidden.extend(own.iter().enumerate().map(|(j, e)| 0.8 * shared[j % factors] + 0.6 * e));
        }
        let hidden = Matrix::new(self.rows, d, hidden)?;
        // Rows of `basis` are orthonormal: x = basis' hidden, so hidden = basis x.
        let x = linalg::multiply((&hidden).into(), (&basis).into());
        let directions = basis.select_rows(&(0..self.informative).collect::<Vec<_>>());
        Ok(Generated { data: Dataset::new(x, &labels)?, directions })
    }
}

fn normals(n: usize, rng: &mut impl Rng) -> Vec<f64> {
    (0..n).map(|_| rng.sample(StandardNormal)).collect()
}

/// A random rotation: its rows, the eigenvectors of a random symmetric matrix, are orthonormal.
fn random_rotation(d: usize, rng: &mut impl Rng) -> Matrix {
    let g = Matrix::from_fn(d, d, |_, _| rng.sample(StandardNormal));
    let gram = linalg::multiply(Block::from(&g).t(), (&g).into());
    linalg::symmetric_eigen(&gram).map_or(g, |(_, vectors)| vectors)
}

/// How much of the subspace spanned by the rows of `directions` is covered by as many leading directions
/// of `metric`: the mean squared cosine of the angles between the two subspaces. It is 1 for all of it; a
/// random subspace reaches on average (number of directions) / (number of features). `scale` holds what
/// each column was divided by before the metric was learned, 1 for a column that was not divided.
pub fn subspace_found(metric: &Metric, scale: &[f64], directions: &Matrix) -> f64 {
    let k = directions.rows();
    if metric.form() == Form::Sphere {
        // A sphere has no leading directions; the result is that of a random subspace.
        return k as f64 / directions.cols() as f64;
    }
    let truth = orthonormal_rows(Matrix::from_fn(k, directions.cols(), |i, j| {
        directions[(i, j)] * scale[j]
    }));
    let Some((_, leading)) = linalg::symmetric_eigen(&metric.mahalanobis()) else { return 0.0 };
    let leading = leading.select_rows(&(0..k).collect::<Vec<_>>());
    let cosines = linalg::multiply((&truth).into(), Block::from(&leading).t());
    cosines.as_slice().iter().map(|c| c * c).sum::<f64>() / k as f64
}

/// Makes the rows orthonormal by the method of Gram and Schmidt, run twice for precision.
fn orthonormal_rows(mut m: Matrix) -> Matrix {
    for _ in 0..2 {
        for i in 0..m.rows() {
            for j in 0..i {
                let (earlier, row) = (m.row(j).to_vec(), m.row_mut(i));
                let along: f64 = earlier.iter().zip(row.iter()).map(|(a, b)| a * b).sum();
                row.iter_mut().zip(&earlier).for_each(|(r, e)| *r -= along * e);
            }
            let row = m.row_mut(i);
            let length = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            row.iter_mut().for_each(|v| *v /= length);
        }
    }
    m
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_decides_the_class() {
        for rotated in [false, true] {
            let generator = Generator { rows: 4000, rotated, flipped: 0.0, ..Default::default() };
            let Generated { data, directions } = generator.generate().unwrap();
            let radius: Vec<f64> = data
                .x()
                .iter_rows()
                .map(|x| {
                    let along = |d: &[f64]| d.iter().zip(x).map(|(d, x)| d * x).sum::<f64>();
                    directions.iter_rows().map(|d| along(d).powi(2)).sum()
                })
                .collect();
            let class_radius = |c: usize| {
                let of_class = radius.iter().zip(data.y()).filter(move |(_, y)| **y == c);
                of_class.map(|(r, _)| *r)
            };
            // classes are sorted by name: 0 is inside
            assert!(class_radius(0).fold(0.0, f64::max) < class_radius(1).fold(f64::MAX, f64::min));
            let inside = class_radius(0).count();
            assert!((1850..2150).contains(&inside), "{inside} of 4000 inside");
        }
    }

    #[test]
    fn the_seed_decides_the_rows_and_the_rotation_seed_the_directions() {
        let base = Generator::default();
        let a = base.generate().unwrap();
        let b = Generator { seed: 1, ..base.clone() }.generate().unwrap();
        assert_eq!(a.directions, b.directions);
        assert_ne!(a.data.x(), b.data.x());
        assert_eq!(a.data.x(), base.generate().unwrap().data.x());
    }

    #[test]
    fn subspace_found_of_the_truth_is_one_and_of_its_complement_zero() {
        let directions = Matrix::from_rows(&[[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]).unwrap();
        let found = |l: [f64; 3]| {
            let metric = Metric::new(Form::Diagonal, 3, l.to_vec()).unwrap();
            subspace_found(&metric, &[1.0, 5.0, 1.0], &directions)
        };
        assert!((found([2.0, 3.0, 0.1]) - 1.0).abs() < 1e-14);
        assert!((found([2.0, 0.1, 3.0]) - 0.5).abs() < 1e-14);
        let sphere = Metric::isotropic(Form::Sphere, 3, 1.0).unwrap();
        assert_eq!(subspace_found(&sphere, &[1.0; 3], &directions), 2.0 / 3.0);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        let base = Generator::default;
        for generator in [
            Generator { rows: 0, ..base() },
            Generator { informative: 0, ..base() },
            Generator { classes: 1, ..base() },
            Generator { flipped: 0.6, ..base() },
            Generator { flipped: -0.1, ..base() },
        ] {
            let error = generator.generate().map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("at least 1 row, 2 classes"), "{error}");
        }
        assert!(Generator { flipped: 0.5, rows: 1, ..base() }.generate().is_ok());
    }
}
