//! Why a row is classified as it is: what each column of the table contributes to the output of an SVM
//! (section 27 of docs/math.md).
//!
//! Contributions are gradients of the output, integrated along the straight way from a reference row to the row. How the
//! integrals are cut up makes the contributions add up to the difference of the two outputs exactly, whatever the error of
//! the quadrature.

use std::sync::LazyLock;

use super::{Member, Model};
use crate::data::pairs;
use crate::error::{Error, Result};
use crate::linalg::{Matrix, dot, exp_neg_each, multiply};
use crate::metric::{Form, Kernel};
use crate::parallel;

/// Nodes of the quadrature for the Gaussian and the exponential kernel.
const NODES: usize = 24;
/// Beyond this distance from its peak a Gaussian, and at this exponent an exponential, is nothing.
const GAUSSIAN_END: f64 = 6.0;
const EXPONENT_END: f64 = 40.0;

/// Below this an exponent of the Laplacian kernel hardly changes along a piece of the way.
const FLAT: f64 = 1e-8;

/// What the columns of a table contribute to the outputs of a model at some rows.
///
/// The contributions of a row and its [`Explanation::base`] add up to its [`Explanation::output`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The columns of the table that the model uses.
    pub columns: Vec<String>,
    /// For each row what each column contributes to the difference between its output and that of the reference row. The
    /// features of a category are one column. // (rows, columns)
    pub contributions: Matrix,
    /// The output of the SVM at each row.
    pub output: Vec<f64>,
    /// The output of the same SVM at the reference row.
    pub base: Vec<f64>,
    /// The two classes that this SVM decides between: a positive output or contribution speaks for the second of them. With
    /// two classes these are the classes of the model in their order; with more, the class
    /// that comes second for this row and the one that is predicted.
    pub between: Vec<[usize; 2]>,
}

/// A training row that is like a row that is asked about.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Alike {
    /// Its number in the training data, from 0.
    pub row: usize,
    /// Its class.
    pub class: usize,
    /// Its distance in the metric of the model.
    pub distance: f64,
    /// What it adds to the output of the SVM that [`Explanation`] speaks of; 0 if it is no support vector.
    pub pull: f64,
}

/// The training rows of a model that keeps them: encoded features, with missing values filled.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeptRows {
    pub x: Matrix,
    pub class: Vec<usize>,
}

/// The pair (i, j), i < j, of two classes of which the second is asked about, and the sign that makes its output positive
/// for that class.
fn side([against, asked]: [usize; 2]) -> ((usize, usize), f64) {
    match against < asked {
        true => ((against, asked), 1.0),
        false => ((asked, against), -1.0),
    }
}

/// The SVM of one pair of classes, of one member, made positive for the class that is asked about.
struct Terms<'a> {
    member: &'a Member,
    /// The coefficients of the support rows of both classes.
    beta: Vec<f64>,
    /// Places of these rows among all support rows.
    places: Vec<usize>,
    /// These rows as the member maps them, coordinate by coordinate. // (rank, rows)
    mapped: Matrix,
}

impl<'a> Terms<'a> {
    fn new(member: &'a Member, between: [usize; 2]) -> Self {
        let ((i, j), sign) = side(between);
        let svms = &member.pairwise;
        let of_class = |class: usize| {
            let start: usize = svms.counts[..class].iter().sum();
            start..start + svms.counts[class]
        };
        // Among the SVMs of class i, counted from 0, the one against class j > i is number j - 1.
        let rows = of_class(i).map(|at| (at, j - 1)).chain(of_class(j).map(|at| (at, i)));
        let (places, beta): (Vec<usize>, Vec<f64>) = rows
            .map(|(at, slot)| (at, sign * svms.beta[(slot, at)]))
            .filter(|(_, beta)| *beta != 0.0)
            .unzip();
        let mapped = member.mapped.select_rows(&places).transpose();
        Self { member, beta, places, mapped }
    }
}

impl Model {
    /// What each column contributes to the decision about each row of `x`, compared with a reference row: `reference`, or
    /// the mean of the training rows. Both are encoded features, as everywhere.
    ///
    /// Contributions are gradients integrated along the straight way from the reference to the row, and add up to the
    /// difference of the two outputs up to rounding. A model without SVMs has no such explanation, which is an error.
    ///
    /// ```
    /// use svml::{Generator, Model, Svml};
    ///
    /// let data = Generator { rows: 100, ..Generator::default() }.generate()?.data;
    /// let model = Model::fit(&data, Svml::default())?;
    /// let why = model.explain(data.x(), None)?;
    /// let sum: f64 = why.contributions.row(7).iter().sum();
    /// assert!((why.base[7] + sum - model.decision(data.x())?[(7, 0)]).abs() < 1e-9);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn explain(&self, x: &Matrix, reference: Option<&[f64]>) -> Result<Explanation> {
        let Some(svms) = self.svms() else {
            return Err(match self.is_classifier() {
                true => Error::Unsupported(
                    "a nearest-neighbour model has no column contributions; train an SVM, for example with the method svml".to_owned(),
                ),
                false => Error::NotAClassifier,
            });
        };
        self.check(x)?;
        let u = self.scaler.apply(x);
        // The mean of the training rows is zero after standardisation.
        let reference = match reference {
            None => Matrix::zeros(1, u.cols()),
            Some(row) => {
                let row = Matrix::from_rows(&[row])?;
                self.check(&row)?;
                self.scaler.apply(&row)
            }
        };
        let classes = self.classes.len();
        let between = self.between(x)?;
        let mut questions: Vec<[usize; 2]> = between.clone();
        questions.sort_unstable();
        questions.dedup();
        let question = |row: usize| questions.binary_search(&between[row]).unwrap_or(0);

        let mut parts = Matrix::zeros(u.rows(), u.cols());
        for member in &svms.members {
            let terms: Vec<Terms> =
                questions.iter().map(|between| Terms::new(member, *between)).collect();
            let part = Ways::new(member, &u, &reference).contributions(|row| &terms[question(row)]);
            let sums = parts.as_mut_slice().iter_mut().zip(part.as_slice());
            sums.for_each(|(sum, part)| *sum += member.weight * part);
        }
        let pairs = pairs(classes);
        let of = |outputs: &Matrix, at: usize, row: usize| {
            let (pair, sign) = side(between[row]);
            sign * outputs[(at, pairs.iter().position(|p| *p == pair).unwrap_or(0))]
        };
        let (outputs, at_reference) = (svms.outputs(&u), svms.outputs(&reference));
        Ok(Explanation {
            columns: self.schema.used_columns().map(|column| column.name.clone()).collect(),
            contributions: self.by_column(&parts),
            output: (0..u.rows()).map(|row| of(&outputs, row, row)).collect(),
            base: (0..u.rows()).map(|row| of(&at_reference, 0, row)).collect(),
            between,
        })
    }

    /// Keeps the rows that the model was trained on, so that [`Model::alike`] finds those that are like a new one. They are
    /// part of its file then: whoever has the file can read them.
    ///
    /// `x` are the training rows as encoded features, `class` their classes as places in [`Model::classes`]; the numbers of
    /// rows that [`Model::alike`] gives are places in `x`.
    pub fn keep_rows(&mut self, x: &Matrix, class: &[usize]) -> Result<()> {
        for (what, found) in [("training rows to keep", x.rows()), ("their classes", class.len())] {
            let (what, expected) = (what.to_owned(), self.report.rows);
            if found != expected {
                return Err(Error::Shape { what, found, expected });
            }
        }
        if let Some(class) = class.iter().find(|class| **class >= self.classes.len()) {
            let what = format!("class {class} of a row where there are {}", self.classes.len());
            return Err(Error::Data { what, remedy: None });
        }
        self.check(x)?;
        let mut x = x.clone();
        for row in 0..x.rows() {
            let cells = x.row_mut(row).iter_mut().zip(&self.scaler.fill);
            cells.filter(|(v, _)| v.is_nan()).for_each(|(v, fill)| *v = *fill);
        }
        self.kept = Some(KeptRows { x, class: class.to_vec() });
        Ok(())
    }

    /// Whether the model holds its training rows.
    pub fn keeps_rows(&self) -> bool {
        self.kept.is_some()
    }

    /// The `count` training rows that are most like each row of `x` in the metric of the model, the nearest first. A model that
    /// does not keep its training rows, or has no SVMs, cannot tell, which is an error.
    pub fn alike(&self, x: &Matrix, count: usize) -> Result<Vec<Vec<Alike>>> {
        let kept = self.kept.as_ref().ok_or_else(|| {
            Error::Unsupported("the model does not keep its training rows".to_owned())
        })?;
        let svms = self.svms().ok_or(Error::NotAClassifier)?;
        self.check(x)?;
        let between = self.between(x)?;
        let u = self.scaler.apply(x);
        let z = self.metric.transform(&u);
        let places = self.metric.transform(&self.scaler.apply(&kept.x));
        let support = self.support_rows();
        let nearest = |row: usize| -> Vec<Alike> {
            let distance = |other: &[f64]| {
                let differences = z.row(row).iter().zip(other).map(|(a, b)| (a - b) * (a - b));
                differences.sum::<f64>().sqrt()
            };
            let mut found: Vec<(f64, usize)> = places.iter_rows().map(distance).zip(0..).collect();
            let order =
                |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
            if count < found.len() {
                found.select_nth_unstable_by(count, order);
                found.truncate(count);
            }
            found.sort_by(order);
            let pulls = pulls(&svms.members, &u.select_rows(&[row]), between[row]);
            let of_row = |(distance, row): (f64, usize)| Alike {
                row,
                class: kept.class[row],
                distance,
                pull: pulls
                    .iter()
                    .filter(|(at, _)| support[*at] == row)
                    // Not by `sum`, whose value for no rows is a negative zero.
                    .fold(0.0, |sum, (_, pull)| sum + pull),
            };
            found.into_iter().map(of_row).collect()
        };
        Ok(parallel::map(0..x.rows(), nearest))
    }

    /// For each row the two classes that an explanation is about.
    fn between(&self, x: &Matrix) -> Result<Vec<[usize; 2]>> {
        Ok(match self.classes.len() {
            2 => vec![[0, 1]; x.rows()],
            _ => first_two(&self.decision(x)?),
        })
    }

    /// Sums over the features of each column. // (rows, columns)
    fn by_column(&self, parts: &Matrix) -> Matrix {
        let widths: Vec<usize> =
            self.schema.used_columns().map(|column| column.kind.width()).collect();
        let mut sums = Matrix::zeros(parts.rows(), widths.len());
        for row in 0..parts.rows() {
            let mut features = parts.row(row).iter();
            for (sum, &width) in sums.row_mut(row).iter_mut().zip(&widths) {
                *sum = features.by_ref().take(width).sum();
            }
        }
        sums
    }
}

/// For each row of decision values of several classes the class that comes second and the one that wins.
fn first_two(values: &Matrix) -> Vec<[usize; 2]> {
    let two = |row: &[f64]| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        // Of equal values the first class wins, as in predictions.
        order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
        [order[1], order[0]]
    };
    values.iter_rows().map(two).collect()
}

/// What each support row adds to the output at one row of standardised features, by its place among the support rows.
fn pulls(members: &[Member], u: &Matrix, between: [usize; 2]) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    for member in members {
        let terms = Terms::new(member, between);
        let z = member.metric.transform(u).into_vec();
        let still = vec![0.0; z.len()];
        let mut k = match member.kernel {
            Kernel::Laplacian => terms.abs_dists(&z),
            Kernel::Exponential => {
                let squares = terms.sq_dists(&z, &still, |_| 0.0);
                squares.into_iter().map(f64::sqrt).collect()
            }
            Kernel::Gaussian => terms.sq_dists(&z, &still, |_| 0.0),
        };
        exp_neg_each(&mut k);
        let own = terms.places.iter().zip(terms.beta.iter().zip(&k));
        found.extend(own.map(|(&at, (beta, k))| (at, member.weight * beta * k)));
    }
    found
}

/// The straight ways from the reference to each row, as a member sees them.
struct Ways<'a> {
    member: &'a Member,
    /// Row less reference, as standardised features. // (rows, d)
    step: Matrix,
    /// The same, mapped. // (rows, rank)
    mapped_step: Matrix,
    /// The reference, mapped.
    from: Vec<f64>,
}

impl<'a> Ways<'a> {
    fn new(member: &'a Member, u: &Matrix, reference: &Matrix) -> Self {
        let r = reference.row(0);
        let step = Matrix::from_fn(u.rows(), u.cols(), |i, k| u[(i, k)] - r[k]);
        let mapped_step = member.metric.transform(&step);
        Self { member, mapped_step, step, from: member.metric.transform(reference).into_vec() }
    }

    /// What each feature contributes at each row, given the SVM that is asked there. // (rows, d)
    fn contributions<'b>(&self, terms: impl Fn(usize) -> &'b Terms<'b> + Sync) -> Matrix {
        let rank = self.from.len();
        let mut along = Matrix::zeros(self.step.rows(), rank);
        let rows = along.as_mut_slice().chunks_mut(rank.max(1)).enumerate();
        parallel::for_each(rows, |(row, out)| {
            let way = Way { terms: terms(row), from: &self.from, way: self.mapped_step.row(row) };
            match self.member.kernel {
                Kernel::Laplacian => way.by_coordinate(out),
                _ => way.in_mapped_space(out),
            }
        });
        let metric = &self.member.metric;
        match (self.member.kernel, metric.form()) {
            // Coordinates are features.
            (Kernel::Laplacian, _) => along,
            (_, form) => {
                // L' times each row; a diagonal L is its own transpose.
                let mut parts = match form {
                    Form::Sphere | Form::Diagonal => metric.transform(&along),
                    _ => multiply((&along).into(), (&metric.components()).into()),
                };
                let steps = parts.as_mut_slice().iter_mut().zip(self.step.as_slice());
                steps.for_each(|(part, step)| *part *= 2.0 * step);
                parts
            }
        }
    }
}

/// The way to one row, in the mapped space, and the SVM that is asked there.
struct Way<'a> {
    terms: &'a Terms<'a>,
    from: &'a [f64],
    way: &'a [f64],
}

impl Way<'_> {
    /// The integral of sum_j beta_j k'(q_j) L (x(t) - s_j), with k' the derivative of the kernel in the squared distance q_j:
    /// multiplied by 2 L' and by the way, feature by feature, these are the contributions.
    ///
    /// Let t_j be where the way is closest to s_j. Then x(t) - s_j is a part across the way, which contributes to features
    /// but nothing to their sum, plus (t - t_j) times the way, whose integral is known from the kernel at both ends.
    fn in_mapped_space(&self, out: &mut [f64]) {
        let Self { terms, from, way } = self;
        let sq_length = dot(way, way);
        if sq_length == 0.0 {
            return;
        }
        let kernel = terms.member.kernel;
        let closest: Vec<f64> = terms.products(from, way).iter().map(|b| -b / sq_length).collect();
        let across = terms.sq_dists(from, way, |j| closest[j]);
        let ends = [0.0, 1.0].map(|t| {
            let mut k = terms.sq_dists(from, way, |_| t);
            if kernel == Kernel::Exponential {
                k.iter_mut().for_each(|q| *q = q.sqrt());
            }
            exp_neg_each(&mut k);
            k
        });
        let length = sq_length.sqrt();
        let (mut across_sum, mut along_sum) = (0.0, 0.0);
        let mut weights = Vec::with_capacity(terms.beta.len());
        for (j, beta) in terms.beta.iter().enumerate() {
            let range = [-length * closest[j], length * (1.0 - closest[j])];
            let integral = match kernel {
                Kernel::Exponential => exponential_integral(across[j].sqrt(), range),
                _ => gaussian_integral(across[j], range),
            };
            let integral = beta * integral / length;
            across_sum += integral;
            along_sum += integral * closest[j];
            along_sum += beta * (ends[1][j] - ends[0][j]) / (2.0 * sq_length);
            weights.push(integral);
        }
        for (k, out) in out.iter_mut().enumerate() {
            let points = dot(terms.mapped.row(k), &weights);
            *out = from[k] * across_sum + way[k] * along_sum - points;
        }
    }

    /// The contributions of the coordinates for the Laplacian kernel. In a coordinate the distance falls up to the place
    /// where the way passes the support row, and grows from there; between such places the exponent is linear, and the
    /// integral of the kernel known.
    fn by_coordinate(&self, out: &mut [f64]) {
        let Self { terms, from, way } = self;
        let (mut passed, mut up_to) = (Vec::new(), vec![0.0; out.len()]);
        let first = terms.abs_dists(from);
        for (j, (beta, &distance)) in terms.beta.iter().zip(&first).enumerate() {
            passed.clear();
            let (mut exponent, mut slope) = (distance, 0.0);
            for (k, v) in way.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                let place = (terms.mapped[(k, j)] - from[k]) / v;
                slope += if place > 0.0 { -v.abs() } else { v.abs() };
                passed.push((place, k));
            }
            passed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let (mut at, mut integral) = (0.0, 0.0);
            let mut go_on = |to: f64, exponent: &mut f64, slope: f64| {
                let change = slope * (to - at);
                let end = (*exponent + change).max(0.0);
                // From the end at which the kernel is larger: from the other one, nothing would be multiplied by infinity.
                integral += match change.abs() < FLAT {
                    true => (-*exponent).exp() * (to - at) * (1.0 - 0.5 * change),
                    false => (-exponent.min(end)).exp() * -(-change.abs()).exp_m1() / slope.abs(),
                };
                (at, *exponent) = (to, end);
                integral
            };
            for &(place, k) in &passed {
                up_to[k] = go_on(place.clamp(0.0, 1.0), &mut exponent, slope);
                if place > 0.0 {
                    slope += 2.0 * way[k].abs();
                }
            }
            let whole = go_on(1.0, &mut exponent, slope);
            for &(_, k) in &passed {
                out[k] += beta * way[k].abs() * (2.0 * up_to[k] - whole);
            }
        }
    }
}

/// The integral of d/dq exp(-q), q = across + t^2, over a range of t.
fn gaussian_integral(across: f64, range: [f64; 2]) -> f64 {
    let [low, high] = range.map(|t| t.clamp(-GAUSSIAN_END, GAUSSIAN_END));
    match across < EXPONENT_END {
        true => -quadrature(low, high, |t| (-(across + t * t)).exp()),
        false => 0.0,
    }
}

/// The integral of d/dq exp(-sqrt q), q = across^2 + t^2, over a range of t: with t = across sinh s that of
/// -exp(-across cosh s) / 2, which is smooth. It multiplies a vector of length `across`.
fn exponential_integral(across: f64, range: [f64; 2]) -> f64 {
    if across == 0.0 || across >= EXPONENT_END {
        return 0.0;
    }
    let end = (EXPONENT_END / across).acosh();
    let [low, high] = range.map(|t| (t / across).asinh().clamp(-end, end));
    -0.5 * quadrature(low, high, |s| (-across * s.cosh()).exp())
}

/// Gauss and Legendre's quadrature.
fn quadrature(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    if low >= high {
        return 0.0;
    }
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    half * LEGENDRE.iter().map(|(x, weight)| weight * f(middle + half * x)).sum::<f64>()
}

/// Nodes and weights on (-1, 1): the zeros of the Legendre polynomial, by Newton's method.
static LEGENDRE: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| {
    let n = NODES as f64;
    let at = |x: f64| {
        let (mut before, mut now) = (1.0, x);
        for k in 2..=NODES {
            let k = k as f64;
            (before, now) = (now, ((2.0 * k - 1.0) * x * now - (k - 1.0) * before) / k);
        }
        (now, n * (x * now - before) / (x * x - 1.0))
    };
    (0..NODES)
        .map(|i| {
            let mut x = (std::f64::consts::PI * (i as f64 + 0.75) / (n + 0.5)).cos();
            for _ in 0..50 {
                let (value, slope) = at(x);
                x -= value / slope;
            }
            let (_, slope) = at(x);
            (x, 2.0 / ((1.0 - x * x) * slope * slope))
        })
        .collect()
});

impl Terms<'_> {
    /// Squared distances of the support rows from places of the way, in the mapped space; `t` says where for each.
    fn sq_dists(&self, from: &[f64], way: &[f64], t: impl Fn(usize) -> f64) -> Vec<f64> {
        let t: Vec<f64> = (0..self.beta.len()).map(t).collect();
        self.sums(|k, j, point| {
            let difference = from[k] + t[j] * way[k] - point;
            difference * difference
        })
    }

    /// Sums of absolute differences of the support rows from a place.
    fn abs_dists(&self, from: &[f64]) -> Vec<f64> {
        self.sums(|k, _, point| (from[k] - point).abs())
    }

    /// Inner products of the way with the reference less each support row.
    fn products(&self, from: &[f64], way: &[f64]) -> Vec<f64> {
        self.sums(|k, _, point| way[k] * (from[k] - point))
    }

    /// For each support row the sum of a term for each of its coordinates.
    fn sums(&self, term: impl Fn(usize, usize, f64) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.beta.len()];
        for (k, points) in self.mapped.iter_rows().enumerate() {
            let each = sums.iter_mut().zip(points).enumerate();
            each.for_each(|(j, (sum, point))| *sum += term(k, j, *point));
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quadrature_integrates_polynomials_exactly() {
        for power in 0..2 * NODES as i32 {
            let exact = (3.0_f64.powi(power + 1) - 1.0) / f64::from(power + 1);
            let found = quadrature(1.0, 3.0, |x| x.powi(power));
            assert!((found / exact - 1.0).abs() < 1e-12, "{power}: {found} {exact}");
        }
    }

    #[test]
    fn integrals_of_kernels_agree_with_many_short_pieces() {
        let by_pieces = |low: f64, high: f64, f: &dyn Fn(f64) -> f64| -> f64 {
            let n = 200_000;
            let width = (high - low) / f64::from(n);
            (0..n).map(|i| width * f(low + (f64::from(i) + 0.5) * width)).sum()
        };
        for across in [0.01, 0.3, 2.0] {
            for range in [[-1.0, 2.0], [0.5, 3.0], [-20.0, 20.0]] {
                let [low, high] = range;
                let gaussian = by_pieces(low, high, &|t| -(-(across + t * t)).exp());
                assert!((gaussian_integral(across, range) - gaussian).abs() < 1e-5);
                let exponential = by_pieces(low, high, &|t| {
                    let r = (across * across + t * t).sqrt();
                    -(-r).exp() / (2.0 * r)
                });
                let found = exponential_integral(across, range);
                assert!(
                    (found - exponential).abs() < 1e-4 * exponential.abs(),
                    "{across} {range:?}"
                );
            }
        }
        assert_eq!(exponential_integral(0.0, [0.0, 1.0]), 0.0);
        assert_eq!(gaussian_integral(1e300, [0.0, 1.0]), 0.0);
    }

    /// Where the kernel is zero to all digits, or a range is empty, there is nothing to integrate.
    #[test]
    fn integrals_of_nothing_are_zero() {
        assert_eq!(exponential_integral(0.0, [-1.0, 1.0]), 0.0);
        assert_eq!(exponential_integral(EXPONENT_END, [-1.0, 1.0]), 0.0);
        assert_eq!(gaussian_integral(EXPONENT_END, [-1.0, 1.0]), 0.0);
        assert_eq!(gaussian_integral(0.5, [0.3, 0.3]), 0.0);
        assert!(
            gaussian_integral(0.5, [0.0, 1.0]) < 0.0 && exponential_integral(0.5, [0.0, 1.0]) < 0.0
        );
    }
}
