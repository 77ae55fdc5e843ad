//! A map of the rows in two dimensions, with what the model decides everywhere.
//!
//! The directions are the two leading eigenvectors e of M, and the coordinate along one is
//! sqrt(eigenvalue) e'u for a standardised row u, so that distances on the map are distances of the
//! metric as far as these two directions go; for a metric of rank 2 that is all the way. Where no two
//! directions lead (a sphere), those are taken in which the mapped rows spread most. The kernel is a
//! product over directions, k = k_map k_rest. At a point of the map the decision value is the mean of
//! h over the rows' other directions,
//!
//! ```text
//! g(p) = sum_j beta_j w_j exp(-|p - p_j|^2) + b,   w_j = mean over rows of k_rest(row, support vector j),
//! ```
//!
//! which for rank 2 is h itself (w_j = 1).

use std::collections::HashSet;

use crate::error::Result;
use crate::learn::pca::pca;
use crate::linalg::Matrix;
use crate::model::Model;
use crate::multiclass::{decide, pairs, vote};

/// Columns and rows of the grid on which the decision is known.
const GRID: (usize, usize) = (141, 111);
/// Most rows that are drawn.
const SHOWN: usize = 1500;
/// From this share of the second eigenvalue on, a third direction counts the same as the second.
const SAME: f64 = 0.95;
/// Room beside the outermost rows, as a share of the axis.
const MARGIN: f64 = 0.07;
/// Most rows over which the other directions are averaged.
const AVERAGED: usize = 400;

/// One row on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Along the first direction.
    pub x: f64,
    /// Along the second direction.
    pub y: f64,
    /// The class of the row, as an index into [`Map::classes`], if it is known.
    pub class: Option<usize>,
    /// Whether it is a support vector.
    pub support: bool,
}

/// The map as arrays.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Map {
    /// What a place on the map is: along each axis, a standardised row times this row. // (2, features)
    pub axes: Matrix,
    /// Which directions of the metric these are, 0 being the one that counts most.
    pub which: [usize; 2],
    /// Whether the metric has one direction only; the second place is then spread out for legibility.
    pub flat: bool,
    /// The classes of the model.
    pub classes: Vec<String>,
    /// The rows that are drawn.
    pub points: Vec<Point>,
    /// How many rows there are.
    pub rows: usize,
    /// Ends of the first axis.
    pub x_range: [f64; 2],
    /// Ends of the second axis.
    pub y_range: [f64; 2],
    /// Columns of the grid, evenly spread from end to end.
    pub columns: usize,
    /// With two classes the decision value on the grid, row after row from the lower end.
    pub decision: Option<Vec<f64>>,
    /// The class that the model decides for on the grid; empty for a metric without a machine.
    pub decided: Vec<usize>,
    /// Whether the map shows all of the metric, or the mean over other directions.
    pub exact: bool,
}

impl Map {
    /// Computes the map of encoded rows with their labels, if they have any.
    pub fn new(model: &Model, x: &Matrix, labels: Option<&[String]>) -> Result<Self> {
        let z = model.transform(x)?;
        let basis = Basis::new(model, &z)?;
        Self::on(model, x, labels, &z, &basis)
    }

    /// As [`Map::new`], along two directions of choice: 0 is the first eigenvector of M.
    pub fn along(
        model: &Model,
        x: &Matrix,
        labels: Option<&[String]>,
        directions: [usize; 2],
    ) -> Result<Self> {
        Self::on(model, x, labels, &model.transform(x)?, &Basis::of(model, directions))
    }

    fn on(
        model: &Model,
        x: &Matrix,
        labels: Option<&[String]>,
        z: &Matrix,
        basis: &Basis,
    ) -> Result<Self> {
        let u = model.scaler().apply(x);
        let places = basis.places(&u);
        let support = model.scaler().apply(model.support_vectors());
        let support_places = basis.places(&support);
        let support_z = model.metric().transform(&support);
        let exact = basis.exact;
        let weights = match exact {
            true => vec![1.0; support.rows()],
            false => other_directions(z, &places, &support_z, &support_places),
        };

        let is_support = support_rows(model, x);
        let classes = model.classes().to_vec();
        let class = |row: usize| {
            let label = labels.and_then(|all| all.get(row))?;
            classes.iter().position(|class| class == label)
        };
        let step = x.rows().div_ceil(SHOWN).max(1);
        let points: Vec<Point> = (0..x.rows())
            .step_by(step)
            .map(|row| Point {
                x: places[row][0],
                y: if basis.flat { spread(row) } else { places[row][1] },
                class: class(row),
                support: is_support[row],
            })
            .collect();
        let (x_range, y_range) =
            (frame(points.iter().map(|p| p.x)), frame(points.iter().map(|p| p.y)));
        let (columns, rows) = GRID;
        let along = |[low, high]: [f64; 2], k: usize, n: usize| {
            low + (high - low) * k as f64 / (n - 1) as f64
        };
        let grid: Vec<[f64; 2]> = (0..rows * columns)
            .map(|k| {
                let y = if basis.flat { 0.0 } else { along(y_range, k / columns, rows) };
                [along(x_range, k % columns, columns), y]
            })
            .collect();
        let (mut decided, mut decision) = (Vec::new(), None);
        if model.has_machine() {
            let outputs = outputs(model, &grid, &support_places, &weights);
            decided = decide(&vote(&outputs, classes.len()));
            decision = (classes.len() == 2).then(|| outputs.into_vec());
        }
        Ok(Self {
            axes: basis.rows.clone(),
            which: basis.which,
            flat: basis.flat,
            classes,
            points,
            rows: x.rows(),
            x_range,
            y_range,
            columns,
            decision,
            decided,
            exact,
        })
    }
}

/// The two directions of the map.
struct Basis {
    /// sqrt(eigenvalue) times eigenvector. // (2, features)
    rows: Matrix,
    /// Whether the metric has no other direction.
    exact: bool,
    /// Whether there is only one direction.
    flat: bool,
    /// Which directions of the metric these are.
    which: [usize; 2],
}

impl Basis {
    fn new(model: &Model, z: &Matrix) -> Result<Self> {
        let metric = model.acting_metric();
        let d = metric.features();
        let (values, _) = metric.directions();
        let value = |r: usize| values.get(r).copied().unwrap_or(0.0).max(0.0);
        if value(2) > SAME * value(1) {
            let leading = pca(z, &vec![1.0; z.rows()], 2)?.components();
            let l = metric.components();
            let rows = Matrix::from_fn(2, d, |r, k| {
                let length = leading.row(r).iter().map(|v| v * v).sum::<f64>().sqrt();
                let along: f64 = (0..l.rows()).map(|i| leading[(r, i)] * l[(i, k)]).sum();
                if length > 0.0 { along / length } else { 0.0 }
            });
            return Ok(Self { rows, exact: false, flat: false, which: [0, 1] });
        }
        Ok(Self::of(model, [0, 1]))
    }

    /// Along two eigenvectors of M.
    fn of(model: &Model, which: [usize; 2]) -> Self {
        let (values, vectors) = model.acting_metric().directions();
        let value = |r: usize| values.get(r).copied().unwrap_or(0.0).max(0.0);
        let negligible = 1e-9 * value(0).max(f64::MIN_POSITIVE);
        let d = vectors.cols();
        let rows = Matrix::from_fn(2, d, |r, k| match which[r] {
            r if r < d => value(r).sqrt() * vectors[(r, k)],
            _ => 0.0,
        });
        let off = (0..values.len()).filter(|r| !which.contains(r)).map(value);
        let exact = off.fold(0.0, f64::max) <= negligible;
        Self { rows, exact, flat: value(which[1]) <= negligible, which }
    }

    fn places(&self, u: &Matrix) -> Vec<[f64; 2]> {
        let along = |row: &[f64], r: usize| {
            row.iter().zip(self.rows.row(r)).map(|(u, e)| u * e).sum::<f64>()
        };
        u.iter_rows().map(|row| [along(row, 0), along(row, 1)]).collect()
    }
}

/// w_j: the mean over rows of the kernel with support vector j in the directions off the map.
fn other_directions(
    z: &Matrix,
    places: &[[f64; 2]],
    support_z: &Matrix,
    support_places: &[[f64; 2]],
) -> Vec<f64> {
    let step = z.rows().div_ceil(AVERAGED).max(1);
    let rows: Vec<usize> = (0..z.rows()).step_by(step).collect();
    let sq_dist = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    support_z
        .iter_rows()
        .zip(support_places)
        .map(|(s, place)| {
            let kernel = |&row: &usize| {
                let off = sq_dist(z.row(row), s) - sq_dist(&places[row], place);
                (-off.max(0.0)).exp()
            };
            rows.iter().map(kernel).sum::<f64>() / rows.len().max(1) as f64
        })
        .collect()
}

/// The outputs of all pairs of classes at points of the map. // (points, pairs)
fn outputs(model: &Model, grid: &[[f64; 2]], places: &[[f64; 2]], weights: &[f64]) -> Matrix {
    let (beta, counts) = (model.beta(), model.support_counts());
    let classes = counts.len();
    let numbered = pairs(classes);
    let mut class_of = Vec::with_capacity(places.len());
    for (class, &count) in counts.iter().enumerate() {
        class_of.extend(std::iter::repeat_n(class, count));
    }
    // For each class, which pair each of its machines is.
    let pair_of: Vec<Vec<usize>> = (0..classes)
        .map(|c| {
            let others = (0..classes).filter(|o| *o != c);
            others
                .filter_map(|o| numbered.iter().position(|p| *p == (c.min(o), c.max(o))))
                .collect()
        })
        .collect();
    let mut out = Matrix::from_fn(grid.len(), numbered.len(), |_, p| model.bias()[p]);
    for (g, point) in grid.iter().enumerate() {
        let row = out.row_mut(g);
        for (j, place) in places.iter().enumerate() {
            let sq = (point[0] - place[0]).powi(2) + (point[1] - place[1]).powi(2);
            // Smaller kernel values change no pixel.
            if sq < 40.0 {
                let kernel = weights[j] * (-sq).exp();
                for (slot, &pair) in pair_of[class_of[j]].iter().enumerate() {
                    row[pair] += beta[(slot, j)] * kernel;
                }
            }
        }
    }
    out
}

/// Which rows are support vectors: those that equal one.
fn support_rows(model: &Model, x: &Matrix) -> Vec<bool> {
    let fill = &model.scaler().fill;
    let key = |row: &[f64]| -> Vec<u64> {
        let filled = row.iter().zip(fill).map(|(v, f)| if v.is_nan() { *f } else { *v });
        filled.map(|v| (v + 0.0).to_bits()).collect()
    };
    let support: HashSet<Vec<u64>> = model.support_vectors().iter_rows().map(key).collect();
    x.iter_rows().map(|row| support.contains(&key(row))).collect()
}

/// The ends of an axis: all but the outermost half percent of the values on each side, with a margin.
fn frame(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 200;
    let kept = sorted.get(cut..sorted.len() - cut).unwrap_or(&[]);
    let (Some(&low), Some(&high)) = (kept.first(), kept.last()) else {
        return [0.0, 1.0];
    };
    let length = high - low;
    // All values alike, or so nearly that their difference is rounding.
    let extra = match length > 1e-9 * low.abs().max(high.abs()) {
        true => MARGIN * length,
        false => 0.5 * low.abs().max(1.0),
    };
    [low - extra, high + extra]
}

/// A place between 0 and 1 that looks random but is the same for the same row.
fn spread(row: usize) -> f64 {
    (row as f64 * 0.618_033_988_749_895).fract()
}
