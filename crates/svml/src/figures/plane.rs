//! The plane of the map: that of the mapped rows which shows the classes.
//!
//! Rows z are mapped by the metric, z = L u, and a plane is two orthonormal directions of them, so that distances within it are
//! distances of the metric as far as these directions go. No single rule finds a good plane for every model, so three are
//! computed, each from what the model decides, never from the labels:
//!
//! 1. the directions along which the decision changes most: the leading eigenvectors of the mean over rows of g g', g the
//!    gradient of an SVM's output, with respect to rows scaled to a variance of one;
//! 2. those along which the classes that the model gives lie apart: ridge regression of the decision value, or with several
//!    classes of 1 for the class of a row and 0 for others, and of what was fitted the directions of largest variance; with
//!    two classes there is one, and the second is the direction across along which rows vary most;
//! 3. the principal directions of the rows.
//!
//! Taken is the one in which the five nearest rows of a row disagree least often with the class that the model gives it.
//!
//! Measured over 27 tables (the paper's nine, seventeen others and digits, up to 600 rows to learn from and 300 new ones), by a
//! prototype of the same rules, for the default,
//! a diagonal and a rank of 4, the mean error in percent of five nearest neighbours within the plane:
//!
//! | plane | rows learned from, each left out | new rows |
//! |---|---|---|
//! | leading eigenvectors of M | 28.7 | 29.4 |
//! | principal directions of the mapped rows | 26.7 | 27.2 |
//! | gradients | 23.4 | 25.3 |
//! | regression | 21.7 | 23.8 |
//! | the best of the last three | 21.0 | 23.4 |
//!
//! The models themselves err in 16.4 percent of the new rows. Gradients find a ring, which regression cannot; regression is
//! better for several classes.

use crate::error::Result;
use crate::learners::pca::{pca, with_fixed_signs};
use crate::linalg::{Matrix, dot, symmetric_eigen};
use crate::metric::{Form, Metric};
use crate::model::{Model, SvmClassifier};
use crate::multiclass::decide;
use crate::parallel;

/// Most rows that the plane is computed from, that gradients are taken at, and by which planes are compared.
const ROWS: usize = 2000;
const GRADIENT_ROWS: usize = 150;
const COMPARED_ROWS: usize = 600;
/// Principal directions of the mapped rows in which the plane is looked for.
const REDUCED: usize = 64;
/// What is added to the variance of every direction, as a share of their mean: directions along which rows hardly vary do
/// not count then, however well they seem to tell classes apart.
const RIDGE: f64 = 0.1;
/// Length of a step for a gradient, in standard deviations.
const STEP: f64 = 0.05;
/// Neighbours by which planes are compared.
const NEIGHBOURS: usize = 5;
/// From this share of the decision's variance on that two axes explain, the first is turned along it.
const EXPLAINED: f64 = 0.1;

/// The rows a'L of two orthonormal directions a of mapped rows, given rows and labels, which count for a metric without a
/// classifier only. None where the rows vary along one direction at most. // (2, features)
pub(super) fn plane(
    model: &Model,
    x: &Matrix,
    labels: Option<&[String]>,
) -> Result<Option<Matrix>> {
    let some = evenly(x.rows(), ROWS);
    let x = x.select_rows(&some);
    let Some(rows) = Rows::new(model, &x)? else { return Ok(None) };
    let labels = labels.map(|labels| some.iter().filter_map(|&row| labels.get(row)).collect());
    let Some((classes, scores)) = judged(model, &x, labels)? else {
        return Ok(Some(rows.axes(with_signs(rows.principal(), None, &rows))));
    };
    let by_gradient = model.svms().and_then(|svms| rows.by_gradient(svms));
    let candidates = [by_gradient, rows.by_scores(&scores), Some(rows.principal())];
    let compared = evenly(x.rows(), COMPARED_ROWS);
    // Of equals the first.
    let best = (candidates.into_iter().flatten())
        .map(|plane| (rows.disagreement(&plane, &classes, &compared), plane))
        .reduce(|best, next| if next.0 < best.0 { next } else { best });
    let Some((_, best)) = best else { return Ok(None) };
    let decision = (scores.cols() == 1).then(|| scores.as_slice());
    Ok(Some(rows.axes(with_signs(best, decision, &rows))))
}

/// At most so many of `n` numbers, evenly spread.
fn evenly(n: usize, most: usize) -> Vec<usize> {
    (0..n).step_by(n.div_ceil(most).max(1)).collect()
}

/// The classes of rows by the model, and numbers that tell them apart: the decision value of two classes, otherwise 1 for the
/// class of a row and 0 for others. A metric without a classifier has the labels; none if there are none.
/// // scores: (rows, 1 or classes)
fn judged(
    model: &Model,
    x: &Matrix,
    labels: Option<Vec<&String>>,
) -> Result<Option<(Vec<usize>, Matrix)>> {
    let indicators = |class: &[usize], classes: usize| {
        Matrix::from_fn(class.len(), classes, |row, c| f64::from(u8::from(class[row] == c)))
    };
    if model.is_classifier() {
        let values = model.decision(x)?;
        let class = decide(&values);
        let scores = match values.cols() {
            1 => values,
            classes => indicators(&class, classes),
        };
        return Ok(Some((class, scores)));
    }
    let Some(labels) = labels.filter(|labels| labels.len() == x.rows()) else { return Ok(None) };
    let mut known = labels.clone();
    known.sort_unstable();
    known.dedup();
    let class: Vec<usize> =
        labels.iter().map(|label| known.partition_point(|k| k < label)).collect();
    let scores = indicators(&class, known.len());
    Ok(Some((class, scores)))
}

/// With M = V diag(values) V', rows mapped by diag(values)^1/2 V' are those mapped by L, turned.
struct Turned {
    /// The eigenvalues; those that are negligible are zero or left out.
    values: Vec<f64>,
    /// V' as rows; none where it is the unit matrix, as it is for a sphere and a diagonal, however many columns there are.
    vectors: Option<Matrix>,
    /// How many eigenvalues are not negligible.
    count: usize,
}

impl Turned {
    fn new(metric: &Metric) -> Self {
        let is_diagonal = matches!(metric.form(), Form::Sphere | Form::Diagonal);
        let (mut values, vectors) = match is_diagonal {
            true => (metric.relevance(), None),
            false => {
                let (values, vectors) = metric.directions(metric.rank());
                (values, Some(vectors))
            }
        };
        let largest = values.iter().copied().fold(0.0, f64::max);
        values.iter_mut().filter(|v| **v <= 1e-9 * largest).for_each(|v| *v = 0.0);
        let count = values.iter().filter(|v| **v > 0.0).count();
        if !is_diagonal {
            // They descend.
            values.truncate(count);
        }
        Self { values, vectors, count }
    }

    /// Rows mapped. // (rows, values)
    fn apply(&self, u: &Matrix) -> Matrix {
        Matrix::from_fn(u.rows(), self.values.len(), |i, r| {
            let along = match &self.vectors {
                Some(vectors) => dot(u.row(i), vectors.row(r)),
                None => u[(i, r)],
            };
            self.values[r].sqrt() * along
        })
    }

    /// How much of a feature is in a direction of the mapped space, where the coordinate of each eigenvector is multiplied by a
    /// power of its eigenvalue.
    fn feature(&self, direction: &[f64], feature: usize, power: fn(f64) -> f64) -> f64 {
        match &self.vectors {
            Some(vectors) => (direction.iter().zip(&self.values).enumerate())
                .map(|(r, (v, value))| v * power(*value) * vectors[(r, feature)])
                .sum(),
            None if self.values[feature] > 0.0 => direction[feature] * power(self.values[feature]),
            None => 0.0,
        }
    }
}

/// Mapped rows in the coordinates of their principal directions, in which their covariance is diagonal.
struct Rows {
    /// Standardised. // (rows, features)
    u: Matrix,
    /// Coordinates, of mean zero. // (rows, q)
    y: Matrix,
    /// Their variances, descending.
    variance: Vec<f64>,
    /// What takes a standardised row to its coordinates, but for the mean. // (q, features)
    forward: Matrix,
    /// Steps of standardised features that change one coordinate by one. // (q, features)
    back: Matrix,
}

impl Rows {
    fn new(model: &Model, x: &Matrix) -> Result<Option<Self>> {
        model.transform(x)?;
        let u = model.scaler().apply(x);
        let (n, d) = (u.rows(), u.cols());
        let turned = Turned::new(&model.acting_metric());
        if n < 3 || turned.count < 2 {
            return Ok(None);
        }
        let z = turned.apply(&u);
        let mean: Vec<f64> = (0..z.cols()).map(|r| z.col(r).sum::<f64>() / n as f64).collect();
        let z = Matrix::from_fn(n, z.cols(), |i, r| z[(i, r)] - mean[r]);
        let found = pca(&z, &vec![1.0; n], turned.count.min(n).min(REDUCED))?.components();
        let unit: Vec<Vec<f64>> = (found.iter_rows())
            .map(|row| (row, dot(row, row).sqrt()))
            .filter(|(_, length)| *length > 0.0)
            .map(|(row, length)| row.iter().map(|v| v / length).collect())
            .collect();
        let along = |i: usize, k: usize| dot(z.row(i), &unit[k]);
        let variance: Vec<f64> = (0..unit.len())
            .map(|k| (0..n).map(|i| along(i, k).powi(2)).sum::<f64>() / n as f64)
            .collect();
        let q = variance.iter().take_while(|v| **v > 1e-12 * variance[0]).count();
        if q < 2 {
            return Ok(None);
        }
        Ok(Some(Self {
            y: Matrix::from_fn(n, q, along),
            variance: variance[..q].to_vec(),
            forward: Matrix::from_fn(q, d, |k, j| turned.feature(&unit[k], j, f64::sqrt)),
            back: Matrix::from_fn(q, d, |k, j| turned.feature(&unit[k], j, |v| 1.0 / v.sqrt())),
            u,
        }))
    }

    fn ridge(&self) -> f64 {
        RIDGE * self.variance.iter().sum::<f64>() / self.variance.len() as f64
    }

    /// Directions in the coordinates as rows of standardised features. // (2, features)
    fn axes(&self, plane: Matrix) -> Matrix {
        Matrix::from_fn(2, self.forward.cols(), |i, j| {
            (0..plane.cols()).map(|k| plane[(i, k)] * self.forward[(k, j)]).sum()
        })
    }

    fn principal(&self) -> Matrix {
        Matrix::from_fn(2, self.variance.len(), |i, k| f64::from(u8::from(i == k)))
    }

    /// The directions along which the outputs of SVMs change most.
    fn by_gradient(&self, svms: &SvmClassifier) -> Option<Matrix> {
        let q = self.variance.len();
        let rows = evenly(self.u.rows(), GRADIENT_ROWS);
        let ridge = self.ridge();
        let scale: Vec<f64> = self.variance.iter().map(|v| (v + ridge).sqrt()).collect();
        // Outputs after a step forwards and one backwards, along each direction in turn. // (rows, pairs)
        let slopes: Vec<Matrix> = (0..q)
            .map(|k| {
                let outputs = [1.0, -1.0].map(|sign| {
                    let by = sign * STEP * scale[k];
                    let moved = Matrix::from_fn(rows.len(), self.u.cols(), |i, j| {
                        self.u[(rows[i], j)] + by * self.back[(k, j)]
                    });
                    svms.outputs(&moved)
                });
                // Per standard deviation.
                Matrix::from_fn(rows.len(), outputs[0].cols(), |i, p| {
                    (outputs[0][(i, p)] - outputs[1][(i, p)]) / (2.0 * STEP)
                })
            })
            .collect();
        let products =
            Matrix::from_fn(q, q, |a, b| dot(slopes[a].as_slice(), slopes[b].as_slice()));
        let (values, vectors) = symmetric_eigen(&products)?;
        let direction = |r: usize| (0..q).map(|k| vectors[(r, k)] / scale[k]).collect();
        if values[0].is_nan() || values[0] <= 0.0 {
            return None;
        }
        orthonormal(direction(0), direction(1))
    }

    /// The directions along which scores of the rows vary most.
    fn by_scores(&self, scores: &Matrix) -> Option<Matrix> {
        let (n, q, c) = (self.y.rows(), self.variance.len(), scores.cols());
        let means: Vec<f64> = (0..c).map(|j| scores.col(j).sum::<f64>() / n as f64).collect();
        let ridge = self.ridge();
        // (S + ridge I)^-1 Y'F / n // (q, c)
        let b = Matrix::from_fn(q, c, |k, j| {
            let products = (0..n).map(|i| self.y[(i, k)] * (scores[(i, j)] - means[j]));
            products.sum::<f64>() / n as f64 / (self.variance[k] + ridge)
        });
        let fitted = Matrix::from_fn(c, c, |i, j| {
            (0..q).map(|k| b[(k, i)] * self.variance[k] * b[(k, j)]).sum()
        });
        let (values, vectors) = symmetric_eigen(&fitted)?;
        if values[0].is_nan() || values[0] <= 0.0 {
            return None;
        }
        let leading = |r: usize| -> Vec<f64> {
            (0..q).map(|k| (0..c).map(|j| b[(k, j)] * vectors[(r, j)]).sum()).collect()
        };
        let first = leading(0);
        let second = match c > 1 && values[1] > 1e-9 * values[0] {
            true => leading(1),
            false => self.across(&first)?,
        };
        orthonormal(first, second)
    }

    /// The direction across another along which rows vary most.
    fn across(&self, a: &[f64]) -> Option<Vec<f64>> {
        let square = dot(a, a);
        let inner: f64 = a.iter().zip(&self.variance).map(|(a, v)| a * a * v).sum::<f64>() / square;
        // (I - aa') S (I - aa') for a of length one.
        let left = Matrix::from_fn(a.len(), a.len(), |i, j| {
            let own = if i == j { self.variance[i] } else { 0.0 };
            own - a[i] * a[j] / square * (self.variance[i] + self.variance[j] - inner)
        });
        symmetric_eigen(&left).map(|(_, vectors)| vectors.row(0).to_vec())
    }

    /// Where rows are within a plane.
    fn places(&self, plane: &Matrix, rows: impl Iterator<Item = usize>) -> Vec<[f64; 2]> {
        rows.map(|i| [0, 1].map(|axis| dot(self.y.row(i), plane.row(axis)))).collect()
    }

    /// How often the nearest rows of a row, each with one vote, disagree with its class.
    fn disagreement(&self, plane: &Matrix, classes: &[usize], rows: &[usize]) -> usize {
        let places = self.places(plane, rows.iter().copied());
        let wrong = |i: usize| {
            let away = |j: usize| {
                (places[i][0] - places[j][0]).powi(2) + (places[i][1] - places[j][1]).powi(2)
            };
            let others = (0..places.len()).filter(|j| *j != i);
            let mut near: Vec<(f64, usize)> = others.map(|j| (away(j), j)).collect();
            let order =
                |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
            if near.len() > NEIGHBOURS {
                near.select_nth_unstable_by(NEIGHBOURS, order);
                near.truncate(NEIGHBOURS);
            }
            let same = near.iter().filter(|(_, j)| classes[rows[*j]] == classes[rows[i]]).count();
            2 * same <= near.len()
        };
        parallel::map(0..places.len(), wrong).into_iter().filter(|wrong| *wrong).count()
    }
}

/// Two orthonormal directions of the same plane; none if there is only one.
fn orthonormal(first: Vec<f64>, second: Vec<f64>) -> Option<Matrix> {
    let unit = |v: Vec<f64>| -> Option<Vec<f64>> {
        let length = dot(&v, &v).sqrt();
        (length > 1e-150).then(|| v.into_iter().map(|v| v / length).collect())
    };
    let (first, second) = (unit(first)?, unit(second)?);
    // Twice, since what is left after the first time may be little.
    let mut across = second;
    for _ in 0..2 {
        let along = dot(&across, &first);
        let left: Vec<f64> = across.iter().zip(&first).map(|(v, a)| v - along * a).collect();
        if dot(&left, &left) < 1e-18 {
            return None;
        }
        across = unit(left)?;
    }
    Matrix::from_rows(&[first, across]).ok()
}

/// Turns the axes within their plane. Where they explain the decision of two classes, the first is along it, the second class on
/// the right; otherwise the first is that along which rows vary most. Other signs make the largest weight positive.
fn with_signs(plane: Matrix, decision: Option<&[f64]>, rows: &Rows) -> Matrix {
    let places = rows.places(&plane, 0..rows.y.rows());
    let n = places.len() as f64;
    let mean = |of: &dyn Fn(usize) -> f64| (0..places.len()).map(of).sum::<f64>() / n;
    let [p, q, r] = [(0, 0), (0, 1), (1, 1)].map(|(a, b)| mean(&|i| places[i][a] * places[i][b]));
    let principal = 0.5 * (2.0 * q).atan2(p - r);
    let determinant = p * r - q * q;
    let along = decision.filter(|_| determinant > 0.0).and_then(|h| {
        let middle = mean(&|i| h[i]);
        let [a, b] = [0, 1].map(|axis| mean(&|i| places[i][axis] * (h[i] - middle)));
        // Regression within the plane.
        let (x, y) = ((r * a - q * b) / determinant, (p * b - q * a) / determinant);
        let explained = (x * a + y * b) / mean(&|i| (h[i] - middle).powi(2));
        (explained > EXPLAINED).then(|| y.atan2(x))
    });
    let (sin, cos) = along.unwrap_or(principal).sin_cos();
    let turned = Matrix::from_fn(2, plane.cols(), |i, k| match i {
        0 => cos * plane[(0, k)] + sin * plane[(1, k)],
        _ => cos * plane[(1, k)] - sin * plane[(0, k)],
    });
    let axes = rows.axes(turned.clone());
    let fixed = with_fixed_signs(axes.clone());
    let keep = |i: usize| along.is_some() && i == 0;
    Matrix::from_fn(2, plane.cols(), |i, k| {
        let is_turned = !keep(i) && fixed.row(i) != axes.row(i);
        if is_turned { -turned[(i, k)] } else { turned[(i, k)] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Generator};
    use crate::learners::Pca;
    use crate::method::Method;
    use crate::metric::Form;
    use crate::svml::Svml;

    fn one(form: Form) -> Svml {
        Svml { form: form.into(), cross_fit: false, ..Svml::default() }
    }

    /// Eight of ten columns are noise.
    fn rows(class: impl Fn(f64, f64) -> usize) -> Dataset {
        let own = Generator { rows: 240, noise: 8, rotated: false, ..Default::default() };
        let x = own.generate().unwrap().data.x().clone();
        let y: Vec<usize> = (0..240).map(|i| class(x[(i, 3)], x[(i, 4)])).collect();
        Dataset::new(x, &y).unwrap()
    }

    /// Share of the squared axes that the two columns have.
    fn found(axes: &Matrix) -> f64 {
        let square = |k: usize| axes[(0, k)].powi(2) + axes[(1, k)].powi(2);
        (square(3) + square(4)) / (0..10).map(square).sum::<f64>()
    }

    #[test]
    fn the_columns_that_tell_the_class_are_found_in_a_metric_that_has_all_alike() {
        let sum = rows(|a, b| usize::from(a + 0.7 * b > 0.0));
        let ring = rows(|a, b| usize::from(a.hypot(b) > 1.2));
        let four = rows(|a, b| usize::from(a > 0.0) + 2 * usize::from(b > 0.0));
        for (name, data, least) in [("sum", sum, 0.5), ("ring", ring, 0.8), ("four", four, 0.8)] {
            let model = Model::fit(&data, one(Form::Sphere)).unwrap();
            let axes = plane(&model, data.x(), None).unwrap().unwrap();
            assert!(found(&axes) > least, "{name}: {}", found(&axes));
            // Orthogonal, and of the length that the metric has in all directions.
            let [p, q, r] = [(0, 0), (0, 1), (1, 1)].map(|(a, b)| dot(axes.row(a), axes.row(b)));
            let length = model.metric().values()[0].powi(2);
            assert!((p - length).abs() + q.abs() + (r - length).abs() < 1e-9 * length);
        }
    }

    #[test]
    fn axes_are_turned_along_the_decision() {
        let data = rows(|a, b| usize::from(a + 0.7 * b > 0.0));
        let model = Model::fit(&data, one(Form::Diagonal)).unwrap();
        let axes = plane(&model, data.x(), None).unwrap().unwrap();
        let (u, h) = (model.scaler().apply(data.x()), model.decision(data.x()).unwrap());
        let mean = |of: &dyn Fn(usize) -> f64| (0..240).map(of).sum::<f64>() / 240.0;
        let middle = mean(&|i| h[(i, 0)]);
        let centre = [0, 1].map(|axis| mean(&|i| dot(u.row(i), axes.row(axis))));
        let place = |i: usize, axis: usize| dot(u.row(i), axes.row(axis)) - centre[axis];
        // Regression of the decision on the two places.
        let [p, q, r] = [(0, 0), (0, 1), (1, 1)].map(|(a, b)| mean(&|i| place(i, a) * place(i, b)));
        let [a, b] = [0, 1].map(|axis| mean(&|i| place(i, axis) * (h[(i, 0)] - middle)));
        let [across, up] = [r * a - q * b, p * b - q * a];
        assert!(across > 0.0 && up.abs() < 1e-9 * across, "{across} {up}");
    }

    #[test]
    fn without_classes_the_plane_is_the_principal_one() {
        let data = rows(|a, _| usize::from(a > 0.0));
        let model = Model::fit(&data, Method::metric(Pca { rank: 5 })).unwrap();
        let axes = plane(&model, data.x(), None).unwrap().unwrap();
        // Along the axes mapped rows vary as along the leading eigenvectors of their covariance.
        let (z, u) = (model.transform(data.x()).unwrap(), model.scaler().apply(data.x()));
        let covariance = Matrix::from_fn(5, 5, |a, b| {
            let mean = |k: usize| z.col(k).sum::<f64>() / 240.0;
            let (a, b, at_a, at_b) = (z.col(a), z.col(b), mean(a), mean(b));
            a.zip(b).map(|(a, b)| (a - at_a) * (b - at_b)).sum::<f64>() / 240.0
        });
        let (expected, _) = symmetric_eigen(&covariance).unwrap();
        for (axis, expected) in expected.iter().take(2).enumerate() {
            let places: Vec<f64> = u.iter_rows().map(|row| dot(row, axes.row(axis))).collect();
            let mean = places.iter().sum::<f64>() / 240.0;
            let variance = places.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / 240.0;
            assert!((variance - expected).abs() < 1e-9 * expected, "{variance} {expected}");
        }
        // With labels it is that of the classes.
        let labels: Vec<String> = data.y().iter().map(|&c| data.classes()[c].clone()).collect();
        let labelled = plane(&model, data.x(), Some(&labels)).unwrap().unwrap();
        assert_ne!(labelled, axes);
        // Rows along a line have none.
        let same = data.x().select_rows(&[3; 20]);
        assert!(plane(&model, &same, None).unwrap().is_none());
    }

    #[test]
    fn a_plane_needs_two_directions() {
        let first = vec![1.0, 2.0, 3.0];
        assert!(orthonormal(first.clone(), first.iter().map(|v| -2.0 * v).collect()).is_none());
        assert!(orthonormal(vec![0.0; 3], first.clone()).is_none());
        let plane = orthonormal(first, vec![0.0, 1.0, 0.0]).unwrap();
        let [p, q, r] = [(0, 0), (0, 1), (1, 1)].map(|(a, b)| dot(plane.row(a), plane.row(b)));
        assert!((p - 1.0).abs() + q.abs() + (r - 1.0).abs() < 1e-14);
        // Neither two rows nor a metric of one direction have one; few rows that differ do.
        let data = rows(|a, _| usize::from(a > 0.0));
        let model = Model::fit(&data, one(Form::Diagonal)).unwrap();
        assert!(plane_of(&model, &data.x().select_rows(&[0, 1])).is_none());
        assert!(plane_of(&model, &data.x().select_rows(&[0, 1, 2, 3])).is_some());
        let single = Model::fit(&data, one(Form::Rank(1))).unwrap();
        assert!(plane_of(&single, data.x()).is_none());
    }

    fn plane_of(model: &Model, x: &Matrix) -> Option<Matrix> {
        plane(model, x, None).unwrap()
    }
}
