//! The Mahalanobis metric of equation (7): d(x, z) = |L (x - z)|, and the forms L may take.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Remedy, Result};
use crate::linalg::{self, Matrix};
use crate::watch::Key;

/// The structure of L: which of its entries are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Form {
    /// L = I / sigma: one number, the kernel width (SVML-Sphere).
    Sphere,
    /// L diagonal: one weight per feature (SVML-Diag).
    Diagonal,
    /// All d x d entries of L (SVML).
    Full,
    /// L of r rows and d columns: a map into r dimensions.
    Rank(usize),
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sphere => f.write_str("sphere"),
            Self::Diagonal => f.write_str("diagonal"),
            Self::Full => f.write_str("full"),
            Self::Rank(r) => write!(f, "rank={r}"),
        }
    }
}

impl FromStr for Form {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "sphere" => Ok(Self::Sphere),
            "diagonal" => Ok(Self::Diagonal),
            "full" => Ok(Self::Full),
            _ => text
                .strip_prefix("rank=")
                .and_then(|r| r.parse().ok())
                .filter(|&r| r > 0)
                .map(Self::Rank)
                .ok_or_else(|| {
                    let bound = "sphere, diagonal, full or rank=R with R at least 1";
                    Error::parameter("form", text, bound)
                }),
        }
    }
}

impl From<Form> for String {
    fn from(form: Form) -> Self {
        form.to_string()
    }
}

impl TryFrom<String> for Form {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl Form {
    /// Number of rows of L for `d` features.
    pub fn rows(self, d: usize) -> usize {
        match self {
            Self::Rank(r) => r,
            _ => d,
        }
    }

    /// Number of values that determine L for `d` features.
    pub fn len(self, d: usize) -> usize {
        match self {
            Self::Sphere => 1,
            Self::Diagonal => d,
            Self::Full => d * d,
            Self::Rank(r) => r * d,
        }
    }
}

/// The kernel: how a distance becomes a similarity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kernel {
    /// k = exp(-|L(x - z)|^2), the radial basis function of the paper: smooth.
    Gaussian,
    /// k = exp(-|L(x - z)|), also known as the Matern kernel of order 1/2: rough.
    Exponential,
    /// k = exp(-sum_k w_k |x_k - z_k|) with w the diagonal of L: rough, and with edges along the columns as
    /// trees have them. L is a sphere or diagonal.
    Laplacian,
}

impl Kernel {
    /// Whether L may have this form.
    pub fn allows(self, form: Form) -> bool {
        self != Self::Laplacian || matches!(form, Form::Sphere | Form::Diagonal)
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gaussian => "gaussian",
            Self::Exponential => "exponential",
            Self::Laplacian => "laplacian",
        })
    }
}

impl FromStr for Kernel {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "gaussian" => Ok(Self::Gaussian),
            "exponential" => Ok(Self::Exponential),
            "laplacian" => Ok(Self::Laplacian),
            _ => Err(Error::parameter("kernel", text, "gaussian, exponential or laplacian")),
        }
    }
}

/// Largest entry of L: the squares of 1e5 mapped features, each of them a sum of 1e5 products with a
/// standardised value of at most 1e70, do not overflow.
const LARGEST: f64 = 1e70;

/// A metric: L in one of its forms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Sent")]
pub struct Metric {
    form: Form,
    d: usize,
    /// 1/sigma; the diagonal; or L row after row.
    values: Vec<f64>,
}

/// A metric as it was sent, by whom ever.
#[derive(Deserialize)]
struct Sent {
    form: Form,
    d: usize,
    values: Vec<f64>,
}

impl Metric {
    /// All of it, in a key.
    pub(crate) fn in_key(&self, key: Key) -> Key {
        key.with(&self.form).places(&[self.d]).numbers(&self.values)
    }
}

impl TryFrom<Sent> for Metric {
    type Error = Error;
    fn try_from(Sent { form, d, values }: Sent) -> Result<Self> {
        Self::new(form, d, values)
    }
}

impl Metric {
    /// A metric on `d` features from the values that determine L: 1/sigma for a sphere, the
    /// diagonal, or the entries of L row after row.
    pub fn new(form: Form, d: usize, values: Vec<f64>) -> Result<Self> {
        if let Form::Rank(r) = form
            && !(1..=d).contains(&r)
        {
            let bound = format!("between 1 and the number of features, {d}");
            return Err(Error::parameter("rank", r, bound));
        }
        if values.len() != form.len(d) {
            return Err(Error::Shape {
                what: format!("values of a {form} metric on {d} features"),
                found: values.len(),
                expected: form.len(d),
            });
        }
        if let Some(value) = values.iter().find(|v| v.is_nan() || v.abs() > LARGEST) {
            return Err(Error::Numerical {
                what: format!("an entry of the metric is {value:e}, outside +-{LARGEST:e}"),
                remedy: Remedy::RescaleColumn,
            });
        }
        Ok(Self { form, d, values })
    }

    /// L = I / sigma in the given form: equation (5), the usual RBF kernel.
    pub fn isotropic(form: Form, d: usize, inverse_width: f64) -> Result<Self> {
        let rows = form.rows(d);
        let values = match form {
            Form::Sphere => vec![inverse_width],
            Form::Diagonal => vec![inverse_width; d],
            _ => {
                Matrix::from_fn(rows, d, |i, j| if i == j { inverse_width } else { 0.0 }).into_vec()
            }
        };
        Self::new(form, d, values)
    }

    /// The form.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.d
    }

    /// Number of dimensions the metric maps into: the rows of L.
    pub fn rank(&self) -> usize {
        self.form.rows(self.d)
    }

    /// The values that determine L, as [`Metric::new`] takes them.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The same metric with all distances multiplied by `factor`.
    pub fn scaled(&self, factor: f64) -> Result<Self> {
        Self::new(self.form, self.d, self.values.iter().map(|v| v * factor).collect())
    }

    /// The mean of several metrics with weights that add up to one: M is the mean of their M = L'L, each scaled to a trace of
    /// one. A single metric is itself.
    pub(crate) fn mean<'a>(
        metrics: impl Iterator<Item = (f64, &'a Metric)> + Clone,
    ) -> Result<Self> {
        let mut all = metrics.clone();
        let (Some((_, first)), more) = (all.next(), all.next().is_some()) else {
            return Err(Error::NoRows(" of metrics".to_owned()));
        };
        if !more {
            return Ok(first.clone());
        }
        let d = first.d;
        let trace = |metric: &Metric| {
            let trace = metric.relevance().iter().sum::<f64>();
            if trace > 0.0 { trace } else { 1.0 }
        };
        if metrics.clone().all(|(_, metric)| matches!(metric.form, Form::Sphere | Form::Diagonal)) {
            let mut squares = vec![0.0; d];
            for (weight, metric) in metrics {
                let factor = weight / trace(metric);
                let relevance = metric.relevance();
                squares.iter_mut().zip(relevance).for_each(|(sum, m)| *sum += factor * m);
            }
            return Self::new(Form::Diagonal, d, squares.into_iter().map(f64::sqrt).collect());
        }
        let mut m = Matrix::zeros(d, d);
        for (weight, metric) in metrics {
            let factor = weight / trace(metric);
            let part = metric.mahalanobis();
            let sums = m.as_mut_slice().iter_mut().zip(part.as_slice());
            sums.for_each(|(sum, part)| *sum += factor * part);
        }
        let (values, vectors) = linalg::symmetric_eigen(&m).ok_or_else(|| Error::Numerical {
            what: "the mean of the metrics has no finite eigenvalues".to_owned(),
            remedy: Remedy::RescaleColumn,
        })?;
        let l = Matrix::from_fn(d, d, |i, k| values[i].max(0.0).sqrt() * vectors[(i, k)]);
        Self::new(Form::Full, d, l.into_vec())
    }

    /// The distance |L (a - b)| of two rows of standardised features.
    ///
    /// ```
    /// use svml::{Form, Metric};
    ///
    /// let metric = Metric::new(Form::Diagonal, 2, vec![3.0, 4.0])?;
    /// assert_eq!(metric.distance(&[1.0, 0.0], &[0.0, 1.0])?, 5.0);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn distance(&self, a: &[f64], b: &[f64]) -> Result<f64> {
        for found in [a.len(), b.len()] {
            if found != self.d {
                let what = "features of a row".to_owned();
                return Err(Error::Shape { what, found, expected: self.d });
            }
        }
        let difference = a.iter().zip(b).map(|(a, b)| a - b).collect();
        let mapped = self.transform(&Matrix::new(1, self.d, difference)?);
        Ok(linalg::dot(mapped.row(0), mapped.row(0)).sqrt())
    }

    /// L as a matrix, which for a sphere or a diagonal has many more numbers than [`Metric::values`]. // (rank, features)
    pub fn components(&self) -> Matrix {
        match self.form {
            Form::Sphere | Form::Diagonal => {
                Matrix::from_fn(
                    self.d,
                    self.d,
                    |i, j| {
                        if i == j { self.diagonal_entry(i) } else { 0.0 }
                    },
                )
            }
            Form::Full | Form::Rank(_) => self.as_matrix(),
        }
    }

    /// M = L'L, which has as many numbers as the square of the features. // (features, features)
    pub fn mahalanobis(&self) -> Matrix {
        match self.form {
            Form::Sphere | Form::Diagonal => {
                let mut m = Matrix::zeros(self.d, self.d);
                (0..self.d).for_each(|k| m[(k, k)] = self.diagonal_entry(k).powi(2));
                m
            }
            Form::Full | Form::Rank(_) => {
                let l = self.as_matrix();
                linalg::multiply(linalg::Block::from(&l).t(), (&l).into())
            }
        }
    }

    /// The part of M that some features have: entry (i, j) is that of features `shown[i]` and `shown[j]`.
    pub(crate) fn mahalanobis_of(&self, shown: &[usize]) -> Matrix {
        let n = shown.len();
        match self.form {
            Form::Sphere | Form::Diagonal => Matrix::from_fn(n, n, |i, j| match i == j {
                true => self.diagonal_entry(shown[i]).powi(2),
                false => 0.0,
            }),
            Form::Full | Form::Rank(_) => {
                let l = Matrix::from_fn(self.rank(), n, |r, i| self.values[r * self.d + shown[i]]);
                linalg::multiply(linalg::Block::from(&l).t(), (&l).into())
            }
        }
    }

    /// The diagonal of M = L'L: how strongly each (standardised) feature enters the distance.
    pub fn relevance(&self) -> Vec<f64> {
        match self.form {
            Form::Sphere | Form::Diagonal => {
                (0..self.d).map(|k| self.diagonal_entry(k).powi(2)).collect()
            }
            Form::Full | Form::Rank(_) => {
                let mut relevance = vec![0.0; self.d];
                for row in self.values.chunks_exact(self.d) {
                    relevance.iter_mut().zip(row).for_each(|(sum, l)| *sum += l * l);
                }
                relevance
            }
        }
    }

    /// L'GL for a matrix G. // (features, features)
    pub(crate) fn around(&self, mut g: Matrix) -> Matrix {
        match self.form {
            Form::Sphere | Form::Diagonal => {
                for i in 0..self.d {
                    let row = g.row_mut(i).iter_mut().enumerate();
                    row.for_each(|(k, g)| *g *= self.diagonal_entry(i) * self.diagonal_entry(k));
                }
                g
            }
            Form::Full | Form::Rank(_) => {
                let l = self.as_matrix();
                let right = linalg::multiply((&g).into(), (&l).into());
                linalg::multiply(linalg::Block::from(&l).t(), (&right).into())
            }
        }
    }

    /// All eigenvalues of M in descending order, one for each feature.
    pub fn eigenvalues(&self) -> Vec<f64> {
        let mut values = match self.form {
            Form::Sphere | Form::Diagonal => self.relevance(),
            Form::Full | Form::Rank(_) => self.spectrum().0,
        };
        values.sort_by(|a, b| b.total_cmp(a));
        values.resize(self.d, 0.0);
        values
    }

    /// The `count` largest eigenvalues of M in descending order, and their eigenvectors as rows: directions in the space of
    /// standardised features, sorted by how strongly distances depend on them. There are at most as many as L has rows,
    /// because others do not change any distance. // (count, features)
    pub fn directions(&self, count: usize) -> (Vec<f64>, Matrix) {
        self.directions_at(&(0..count.min(self.rank())).collect::<Vec<_>>())
    }

    /// Some of the directions by their places from 0; zeros for places beyond the rows of L. // (places, features)
    pub(crate) fn directions_at(&self, places: &[usize]) -> (Vec<f64>, Matrix) {
        let d = self.d;
        if let Form::Sphere | Form::Diagonal = self.form {
            // The eigenvectors are the features themselves; of those that count the same, the first comes first.
            let relevance = self.relevance();
            let mut order: Vec<usize> = (0..d).collect();
            order.sort_by(|&a, &b| relevance[b].total_cmp(&relevance[a]));
            let mut vectors = Matrix::zeros(places.len(), d);
            let feature = |place: &usize| order.get(*place).copied();
            for (r, k) in places.iter().map(feature).enumerate() {
                k.into_iter().for_each(|k| vectors[(r, k)] = 1.0);
            }
            let value = |place: &usize| feature(place).map_or(0.0, |k| relevance[k]);
            return (places.iter().map(value).collect(), vectors);
        }
        let (values, vectors) = self.spectrum();
        let found = places.iter().map(|&r| values.get(r).copied().unwrap_or(0.0)).collect();
        let chosen = Matrix::from_fn(places.len(), vectors.cols(), |r, k| {
            if places[r] < vectors.rows() { vectors[(places[r], k)] } else { 0.0 }
        });
        if vectors.cols() == d {
            return (found, chosen);
        }
        // Eigenvectors u of LL' are those of L'L as L'u, up to their length.
        let mut turned = linalg::multiply((&chosen).into(), (&self.as_matrix()).into());
        for r in 0..turned.rows() {
            let length = linalg::dot(turned.row(r), turned.row(r)).sqrt();
            let scale = if length > 0.0 { length.recip() } else { 0.0 };
            turned.row_mut(r).iter_mut().for_each(|v| *v *= scale);
        }
        (found, turned)
    }

    /// Eigenvalues and eigenvectors of L'L or of LL', whichever is smaller.
    fn spectrum(&self) -> (Vec<f64>, Matrix) {
        let l = self.as_matrix();
        let block = linalg::Block::from(&l);
        let product = match l.rows() < l.cols() {
            true => linalg::multiply(block, block.t()),
            false => linalg::multiply(block.t(), block),
        };
        linalg::symmetric_eigen(&product).unwrap_or_else(|| {
            // This cannot happen: a metric has finite entries, for which eigenvalues are always found.
            (vec![0.0; product.rows()], Matrix::zeros(product.rows(), product.rows()))
        })
    }

    /// z = L x for every row x. // (n, rank)
    ///
    /// # Panics
    ///
    /// If the rows do not have [`Metric::features`] columns.
    pub fn transform(&self, x: &Matrix) -> Matrix {
        match self.form {
            Form::Sphere | Form::Diagonal => {
                let mut z = x.clone();
                for i in 0..z.rows() {
                    let row = z.row_mut(i);
                    row.iter_mut().enumerate().for_each(|(k, v)| *v *= self.diagonal_entry(k));
                }
                z
            }
            // The last bits of a mapped row may depend on the number of rows in `x`, because the order of
            // sums in the matrix product may depend on the shape.
            Form::Full | Form::Rank(_) => {
                linalg::multiply(x.into(), linalg::Block::from(&self.as_matrix()).t())
            }
        }
    }

    fn as_matrix(&self) -> Matrix {
        let (d, values) = (self.d, &self.values);
        Matrix::from_fn(self.rank(), d, |i, j| values[i * d + j])
    }

    fn diagonal_entry(&self, k: usize) -> f64 {
        if self.form == Form::Sphere { self.values[0] } else { self.values[k] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_written_and_read() {
        for form in [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(3)] {
            assert_eq!(form.to_string().parse::<Form>().unwrap(), form);
        }
        for bad in ["", "rank", "rank=", "rank=0", "rank=-1", "cube"] {
            assert!(bad.parse::<Form>().unwrap_err().to_string().contains("form = "), "{bad}");
        }
    }

    #[test]
    fn every_form_agrees_with_its_matrix() {
        let d = 3;
        let x = Matrix::from_fn(5, d, |i, j| (i * d + j) as f64 * 0.1 - 0.4);
        for form in [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)] {
            let values = (0..form.len(d)).map(|k| 0.3 + 0.1 * k as f64).collect();
            let metric = Metric::new(form, d, values).unwrap();
            let l = metric.components();
            assert_eq!((l.rows(), l.cols()), (metric.rank(), d));
            let z = metric.transform(&x);
            let m = metric.mahalanobis();
            for (k, relevance) in metric.relevance().iter().enumerate() {
                assert!((m[(k, k)] - relevance).abs() < 1e-15);
            }
            for i in 0..x.rows() {
                for r in 0..metric.rank() {
                    let expected: f64 = (0..d).map(|k| l[(r, k)] * x[(i, k)]).sum();
                    assert!((z[(i, r)] - expected).abs() < 1e-15);
                }
            }
        }
    }

    /// A sphere or a diagonal is never taken as a matrix, and few rows of L as their products alone.
    #[test]
    fn eigenvectors_are_those_of_the_matrix() {
        let d = 5;
        for form in [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2), Form::Rank(5)] {
            let value = |k: usize| ((k * 7 % 11) as f64 - 4.5) * 0.2;
            let metric = Metric::new(form, d, (0..form.len(d)).map(value).collect()).unwrap();
            let m = metric.mahalanobis();
            let (expected, _) = linalg::symmetric_eigen(&m).unwrap();
            for (a, b) in metric.eigenvalues().iter().zip(&expected) {
                assert!((a - b).abs() < 1e-13, "{form}: {a} {b}");
            }
            let (values, vectors) = metric.directions(d);
            assert_eq!((values.len(), vectors.rows()), (metric.rank(), metric.rank()));
            for (value, v) in values.iter().zip(vectors.iter_rows()) {
                assert!((linalg::dot(v, v) - 1.0).abs() < 1e-12, "{form}");
                for i in 0..d {
                    assert!((linalg::dot(m.row(i), v) - value * v[i]).abs() < 1e-12, "{form}");
                }
            }
            let shown = [3, 0, 4];
            let part = metric.mahalanobis_of(&shown);
            for (i, &row) in shown.iter().enumerate() {
                for (j, &col) in shown.iter().enumerate() {
                    assert!((part[(i, j)] - m[(row, col)]).abs() < 1e-15, "{form}");
                }
            }
        }
    }

    /// A hundred thousand features have no matrix that any computer holds.
    #[test]
    fn a_wide_sphere_needs_no_matrix() {
        let d = 100_000;
        let metric = Metric::isotropic(Form::Sphere, d, 0.1).unwrap();
        assert_eq!(metric.eigenvalues().len(), d);
        assert_eq!(metric.directions(2).1.rows(), 2);
        assert_eq!(metric.mahalanobis_of(&[0, d - 1]).cols(), 2);
        let rank = Form::Rank(2);
        let values = (0..rank.len(d)).map(|k| (k % 13) as f64 * 1e-3).collect();
        let metric = Metric::new(rank, d, values).unwrap();
        assert!(metric.eigenvalues()[1] > 0.0 && metric.eigenvalues()[2] == 0.0);
    }

    /// M is the mean of those of the metrics, each scaled to a trace of one; it stays diagonal where all are.
    #[test]
    fn the_mean_is_that_of_scaled_matrices() {
        let diagonal = Metric::new(Form::Diagonal, 2, vec![1.0, 2.0]).unwrap();
        let sphere = Metric::new(Form::Sphere, 2, vec![3.0]).unwrap();
        let full = Metric::new(Form::Full, 2, vec![1.0, 1.0, 0.0, 1.0]).unwrap();
        let zero = Metric::new(Form::Full, 2, vec![0.0; 4]).unwrap();
        for (other, form) in [(&sphere, Form::Diagonal), (&full, Form::Full), (&zero, Form::Full)] {
            let mean = Metric::mean([(0.25, &diagonal), (0.75, other)].into_iter()).unwrap();
            assert_eq!(mean.form(), form);
            let (a, b, m) = (diagonal.mahalanobis(), other.mahalanobis(), mean.mahalanobis());
            let trace = (b[(0, 0)] + b[(1, 1)]).max(1e-300);
            for k in 0..4 {
                let expected = 0.25 * a.as_slice()[k] / 5.0 + 0.75 * b.as_slice()[k] / trace;
                assert!((m.as_slice()[k] - expected).abs() < 1e-15, "{form}: {m:?}");
            }
        }
        assert_eq!(Metric::mean([(1.0, &full)].into_iter()).unwrap(), full);
        assert!(Metric::mean([].into_iter()).is_err());
    }

    #[test]
    fn distances_are_of_rows_of_the_right_length() {
        let metric = Metric::new(Form::Full, 2, vec![1.0, 1.0, 0.0, 2.0]).unwrap();
        // L (a - b) = (3, 4).
        assert_eq!(metric.distance(&[2.0, 2.5], &[1.0, 0.5]).unwrap(), 5.0);
        assert!(metric.distance(&[1.0], &[1.0, 0.5]).is_err());
        assert!(metric.distance(&[1.0, 0.5], &[1.0, 0.5, 0.0]).is_err());
    }

    /// Directions that change no distance are zeros.
    #[test]
    fn there_are_no_directions_beyond_the_rank() {
        let low = Metric::new(Form::Rank(2), 3, vec![2.0, 0.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
        let (values, vectors) = low.directions(3);
        assert_eq!(values, [4.0, 0.0]);
        assert_eq!(vectors.row(0)[0].abs(), 1.0);
        assert_eq!(vectors.row(1), [0.0; 3]);
        let diagonal = Metric::new(Form::Diagonal, 2, vec![1.0, 2.0]).unwrap();
        for metric in [&low, &diagonal] {
            let (values, vectors) = metric.directions_at(&[0, 5]);
            assert_eq!(values, [4.0, 0.0]);
            assert_eq!(vectors.row(1), vec![0.0; metric.features()]);
        }
    }

    #[test]
    fn bad_metrics_are_refused() {
        assert!(Metric::new(Form::Rank(4), 3, vec![0.0; 12]).is_err());
        assert!(Metric::new(Form::Full, 3, vec![0.0; 8]).is_err());
        assert!(Metric::new(Form::Diagonal, 2, vec![1.0, f64::NAN]).is_err());
    }

    /// Distances grow by the factor that a metric is scaled by, and L'GL is the product of three matrices.
    #[test]
    fn scaled_metrics_and_products_around_a_matrix() {
        let d = 3;
        let g = Matrix::from_fn(d, d, |i, j| 1.0 + (i * 3 + j * j) as f64);
        let (a, b) = ([0.5, -1.0, 2.0], [1.5, 0.25, -0.5]);
        for form in [Form::Sphere, Form::Diagonal, Form::Full] {
            let values = (0..form.len(d)).map(|k| 0.3 + 0.4 * k as f64).collect();
            let metric = Metric::new(form, d, values).unwrap();
            let far = metric.scaled(2.5).unwrap();
            assert_eq!(far.form(), form);
            let (near, far) = (metric.distance(&a, &b).unwrap(), far.distance(&a, &b).unwrap());
            assert!((far - 2.5 * near).abs() < 1e-14, "{form}: {near} {far}");
            let (l, around) = (metric.components(), metric.around(g.clone()));
            for i in 0..d {
                for k in 0..d {
                    let terms = (0..d).flat_map(|r| (0..d).map(move |s| (r, s)));
                    let expected: f64 = terms.map(|(r, s)| l[(r, i)] * g[(r, s)] * l[(s, k)]).sum();
                    let off = (around[(i, k)] - expected).abs();
                    assert!(off < 1e-12 * expected.abs(), "{form}: {} {expected}", around[(i, k)]);
                }
            }
        }
    }
}
