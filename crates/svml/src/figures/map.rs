//! A map of the rows in two dimensions, with what the model decides everywhere.
//!
//! The directions are the two leading eigenvectors e of M, and the coordinate along one is
//! sqrt(eigenvalue) e'u for a standardised row u, so that distances on the map are distances of the
//! metric as far as these two directions go; for a metric of rank 2 that is all the way. Where no two
//! directions lead (a sphere), those are taken in which the mapped rows spread most. The kernel is a
//! product over directions, k = k_map k_rest. At a point of the map the decision value of an SVM is the mean
//! of h over the rows' other directions,
//!
//! ```text
//! g(p) = sum_j beta_j w_j exp(-|p - p_j|^2) + b,   w_j = mean over rows of k_rest(row, support vector j),
//! ```
//!
//! which for rank 2 is h itself (w_j = 1). Nearest neighbours vote by their distances on the map.

use std::collections::HashSet;

use crate::data::pairs;
use crate::error::Result;
use crate::learners::pca::pca;
use crate::linalg::{Matrix, dot};
use crate::metric::Kernel;
use crate::model::{Model, SvmClassifier};
use crate::multiclass::{decide, vote};

/// Columns and rows of the grid on which the decision is known.
const GRID: (usize, usize) = (141, 111);
/// Most rows that are drawn.
const SHOWN: usize = 1500;
/// From this share of the second eigenvalue on, a third direction counts the same as the second.
const SAME: f64 = 0.95;
/// Two directions of a mean of metrics stand for it if they have this share of its trace.
const ENOUGH: f64 = 0.5;
/// Room beside the outermost rows, as a share of the axis.
const MARGIN: f64 = 0.07;
/// Most rows that are moved over the map, and most terms of the expansions that are summed for that.
const MOVED: usize = 12;
const MOST_TERMS: usize = 300_000_000;
/// Most rows over which the other directions are averaged.
const AVERAGED: usize = 400;
/// How the directions are called.
const ORDINALS: [&str; 4] = ["first", "second", "third", "fourth"];
/// Most features that the label of an axis names.
const NAMED: usize = 3;
/// Most signs of the name of a feature there.
const NAME: usize = 12;

/// One row on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Point {
    /// Along the first direction.
    pub x: f64,
    /// Along the second direction.
    pub y: f64,
    /// The class of the row, as an index into [`Map::classes`], if it is known.
    pub class: Option<usize>,
    /// Whether it is a support vector of an SVM.
    pub support: bool,
}

/// A map of the rows in two dimensions, with what the model decides everywhere.
///
/// The axes are the two directions of the metric that count most, so that distances on the map are distances of
/// the metric as far as these go; where no two stand out, those along which the mapped rows lie apart most. The decision is known on a grid over the map; a metric without a classifier has
/// none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Map {
    /// What a place on the map is: along each axis, a standardised row times this row. // (2, features)
    pub axes: Matrix,
    /// What each axis is, in words: its number and the features that weigh most in it.
    pub axis_labels: [String; 2],
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
    /// The class that the model decides for on the grid; empty for a metric without a classifier.
    pub decided: Vec<usize>,
    /// How strongly to colour the grid, between 0 for white and 1 for the colour of the class: with two classes
    /// in four steps up to a decision value of 1, else everywhere the same. Empty where `decided` is.
    pub strength: Vec<f64>,
    /// Whether the decision reaches the margins, -1 and 1, of an SVM.
    pub margins: bool,
    /// What the colours show, in words; absent for a metric without a classifier.
    pub background: Option<String>,
    /// Whether the map shows all of the metric, so that the decision is that of the model.
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
                x: places[(row, 0)],
                y: if basis.flat { spread(row) } else { places[(row, 1)] },
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
        let grid = Matrix::from_fn(rows * columns, 2, |k, axis| match axis {
            0 => along(x_range, k % columns, columns),
            _ if basis.flat => 0.0,
            _ => along(y_range, k / columns, rows),
        });
        let values = decision(model, basis, &grid, &u, z, &places)?;
        let decided = values.as_ref().map(decide).unwrap_or_default();
        let background = values.is_some().then(|| background(model, basis).to_owned());
        let decision = values.filter(|_| classes.len() == 2).map(Matrix::into_vec);
        let names = model.schema().encoded_names();
        Ok(Self {
            axes: basis.rows.clone(),
            axis_labels: [0, 1].map(|axis| basis.label(axis, &names)),
            which: basis.which,
            flat: basis.flat,
            classes,
            points,
            rows: x.rows(),
            x_range,
            y_range,
            columns,
            strength: strength(decided.len(), decision.as_deref()),
            margins: model.svms().is_some()
                && decision.iter().flatten().any(|h: &f64| h.abs() > 1.0),
            decision,
            decided,
            background,
            exact: basis.exact,
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
        // Of many directions that count alike, as those of a mean often do, no two stand for the metric: then the two
        // along which the mapped rows lie apart most do.
        let all: f64 = (0..values.len()).map(value).sum();
        let few = value(0) + value(1) >= ENOUGH * all;
        if value(2) > SAME * value(1) || model.members().len() > 1 && !few {
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

    /// Where standardised rows are on the map. // (rows, 2)
    fn places(&self, u: &Matrix) -> Matrix {
        Matrix::from_fn(u.rows(), 2, |row, axis| {
            u.row(row).iter().zip(self.rows.row(axis)).map(|(u, e)| u * e).sum::<f64>()
        })
    }

    /// An axis by the features that weigh most in it.
    fn label(&self, axis: usize, names: &[String]) -> String {
        if axis == 1 && self.flat {
            return "spread out for legibility; the metric has one direction".to_owned();
        }
        let which = ORDINALS.get(self.which[axis]).copied().unwrap_or("further");
        let row = self.rows.row(axis);
        let length = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| row[b].abs().total_cmp(&row[a].abs()));
        let terms: Vec<String> = order
            .iter()
            .take(NAMED)
            .filter(|&&k| row[k].abs() > 0.05 * length)
            .map(|&k| {
                let sign = if row[k] < 0.0 { '\u{2212}' } else { '+' };
                format!("{sign}{:.2} {}", row[k].abs() / length, shorten(&names[k]))
            })
            .collect();
        let others = row.iter().filter(|v| v.abs() > 1e-9 * length).count();
        if let ([k, ..], 1) = (&order[..], others) {
            let sign = if row[*k] < 0.0 { "\u{2212}" } else { "" };
            return format!("{which} direction: {sign}{}", shorten(&names[*k]));
        }
        let more = if others > terms.len() { " \u{2026}" } else { "" };
        format!("{which} direction: {}{more}", terms.join(" "))
    }
}

/// The name of a feature, cut if it is long; a cut is shown by an ellipsis.
fn shorten(name: &str) -> String {
    if name.chars().count() <= NAME {
        return name.to_owned();
    }
    name.chars().take(NAME - 1).chain(['\u{2026}']).collect()
}

/// What the colours show.
fn background(model: &Model, basis: &Basis) -> &'static str {
    match (basis.exact, model.svms()) {
        (true, _) => "decision of the model",
        (false, Some(_)) => "decision, averaged over all other directions",
        (false, None) => "vote of the neighbours by these two directions alone",
    }
}

/// The strength of the colours in few steps, so that neighbouring places can be drawn as one.
fn strength(grid: usize, decision: Option<&[f64]>) -> Vec<f64> {
    let strength = |level: f64| 0.09 * level + 0.04;
    match decision {
        Some(h) => h.iter().map(|h| strength((4.0 * h.abs().min(1.0)).ceil())).collect(),
        None => vec![strength(2.0); grid],
    }
}

/// The decision values at places of the map; `None` for a metric without a classifier.
fn decision(
    model: &Model,
    basis: &Basis,
    grid: &Matrix,
    u: &Matrix,
    z: &Matrix,
    places: &Matrix,
) -> Result<Option<Matrix>> {
    if !model.is_classifier() {
        return Ok(None);
    }
    let support = model.scaler().apply(model.support_vectors());
    let support_places = basis.places(&support);
    let Some(svms) = model.svms() else {
        return model.decision_among(&support_places, grid);
    };
    let gaussian = model.only_member().filter(|member| member.kernel() == Kernel::Gaussian);
    let outputs = match gaussian {
        Some(member) => {
            let support_z = member.metric().transform(&support);
            let weights = match basis.exact {
                true => vec![1.0; support.rows()],
                false => other_directions(z, places, &support_z, &support_places),
            };
            outputs(model, grid, &support_places, &weights)
        }
        None => mean_over_rows(svms, basis, grid, u, places),
    };
    Ok(Some(vote(&outputs, model.classes().len())))
}

/// The outputs of all pairs at places of the map for kernels that are no product over directions, and for means of
/// several: the mean over some rows, each moved within the plane of the map to the place.
fn mean_over_rows(
    svms: &SvmClassifier,
    basis: &Basis,
    grid: &Matrix,
    u: &Matrix,
    places: &Matrix,
) -> Matrix {
    let terms = grid.rows() * svms.support.rows().max(1) * svms.members.len();
    let many = (MOST_TERMS / terms.max(1)).clamp(1, MOVED).min(u.rows().max(1));
    // A'(A A')^-1 takes a step on the map back to the features; without a second direction its row is zero.
    let a = &basis.rows;
    let inner = |i: usize, j: usize| dot(a.row(i), a.row(j));
    let (p, q, r) = (inner(0, 0), inner(0, 1), inner(1, 1));
    let determinant = p * r - q * q;
    let back = |step: [f64; 2]| match determinant > 1e-12 * p * r && !basis.flat {
        true => {
            [(r * step[0] - q * step[1]) / determinant, (p * step[1] - q * step[0]) / determinant]
        }
        false => [if p > 0.0 { step[0] / p } else { 0.0 }, 0.0],
    };
    let mut mean: Option<Matrix> = None;
    for m in 0..many {
        // Rows in the middle of equal parts of the table.
        let row = (2 * m + 1) * u.rows() / (2 * many).max(1);
        let moved = Matrix::from_fn(grid.rows(), u.cols(), |g, k| {
            let by = back([grid[(g, 0)] - places[(row, 0)], grid[(g, 1)] - places[(row, 1)]]);
            u[(row, k)] + a[(0, k)] * by[0] + a[(1, k)] * by[1]
        });
        let outputs = svms.outputs(&moved);
        match &mut mean {
            Some(mean) => {
                let sums = mean.as_mut_slice().iter_mut().zip(outputs.as_slice());
                sums.for_each(|(sum, h)| *sum += h);
            }
            None => mean = Some(outputs),
        }
    }
    let mut mean = mean.unwrap_or_default();
    mean.as_mut_slice().iter_mut().for_each(|h| *h /= many as f64);
    mean
}

/// w_j: the mean over rows of the kernel with support vector j in the directions off the map.
fn other_directions(
    z: &Matrix,
    places: &Matrix,
    support_z: &Matrix,
    support_places: &Matrix,
) -> Vec<f64> {
    let step = z.rows().div_ceil(AVERAGED).max(1);
    let rows: Vec<usize> = (0..z.rows()).step_by(step).collect();
    let sq_dist = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    support_z
        .iter_rows()
        .zip(support_places.iter_rows())
        .map(|(s, place)| {
            let kernel = |&row: &usize| {
                let off = sq_dist(z.row(row), s) - sq_dist(places.row(row), place);
                (-off.max(0.0)).exp()
            };
            rows.iter().map(kernel).sum::<f64>() / rows.len().max(1) as f64
        })
        .collect()
}

/// The outputs of all pairs of classes at points of the map. // (points, pairs)
fn outputs(model: &Model, grid: &Matrix, places: &Matrix, weights: &[f64]) -> Matrix {
    let (beta, counts) = (model.beta(), model.support_counts());
    let classes = counts.len();
    let numbered = pairs(classes);
    let mut class_of = Vec::with_capacity(places.rows());
    for (class, &count) in counts.iter().enumerate() {
        class_of.extend(std::iter::repeat_n(class, count));
    }
    // For each class, which pair each of its SVMs is.
    let pair_of: Vec<Vec<usize>> = (0..classes)
        .map(|c| {
            let others = (0..classes).filter(|o| *o != c);
            others
                .filter_map(|o| numbered.iter().position(|p| *p == (c.min(o), c.max(o))))
                .collect()
        })
        .collect();
    let mut out = Matrix::from_fn(grid.rows(), numbered.len(), |_, p| model.bias()[p]);
    for (g, point) in grid.iter_rows().enumerate() {
        let row = out.row_mut(g);
        for (j, place) in places.iter_rows().enumerate() {
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

/// Which rows are support vectors of an SVM: those that equal one.
fn support_rows(model: &Model, x: &Matrix) -> Vec<bool> {
    let Some(svms) = model.svms() else { return vec![false; x.rows()] };
    let fill = &model.scaler().fill;
    let key = |row: &[f64]| -> Vec<u64> {
        let filled = row.iter().zip(fill).map(|(v, f)| if v.is_nan() { *f } else { *v });
        filled.map(|v| (v + 0.0).to_bits()).collect()
    };
    let support: HashSet<Vec<u64>> = svms.support.iter_rows().map(key).collect();
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

/// A place between 0 and 1 that looks random, but the same row always has the same.
fn spread(row: usize) -> f64 {
    (row as f64 * 0.618_033_988_749_895).fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Generator};
    use crate::learners::Pca;
    use crate::method::Method;
    use crate::metric::Form;
    use crate::svml::Svml;

    fn data(classes: usize) -> Dataset {
        let generator = Generator { rows: 90, classes, ..Default::default() };
        generator.generate().unwrap().data
    }

    /// The index of the grid at which a point of the map is, if it is inside.
    fn cell(map: &Map, point: &Point) -> Option<usize> {
        let rows = map.decided.len() / map.columns;
        let near = |v: f64, [low, high]: [f64; 2], n: usize| {
            let place = ((v - low) / (high - low) * (n - 1) as f64).round();
            (0.0..n as f64).contains(&place).then_some(place as usize)
        };
        let row = near(point.y, map.y_range, rows)?;
        Some(row * map.columns + near(point.x, map.x_range, map.columns)?)
    }

    #[test]
    fn the_map_of_neighbours_is_their_vote() {
        for classes in [2, 3] {
            let data = data(classes);
            let model = Model::fit(&data, Method::neighbours_after(Pca::default(), 5)).unwrap();
            let map = Map::new(&model, data.x(), None).unwrap();
            assert!(map.exact && !map.margins && map.points.iter().all(|p| !p.support));
            assert_eq!(map.decision.is_some(), classes == 2);
            let predicted = model.predict(data.x()).unwrap();
            let cells = map.points.iter().map(|point| cell(&map, point));
            let agree =
                cells.zip(predicted).filter(|(k, p)| k.is_none_or(|k| map.decided[k] == *p));
            // A row is not quite where the nearest point of the grid is.
            assert!(agree.count() >= 80);
            // Neighbours in ten directions: only two of them count on the map.
            let model = Model::fit(&data, Method::neighbours(5)).unwrap();
            let map = Map::new(&model, data.x(), None).unwrap();
            assert!(!map.exact && map.background.unwrap().starts_with("vote"));
            assert!(map.decided.contains(&0) && map.decided.contains(&1));
        }
    }

    #[test]
    fn strength_margins_and_words() {
        let data = data(2);
        let model = Model::fit(&data, Svml { form: Form::Rank(2).into(), ..Svml::default() });
        let map = Map::new(&model.unwrap(), data.x(), None).unwrap();
        let h = map.decision.as_ref().unwrap();
        assert_eq!(map.margins, h.iter().any(|h| h.abs() > 1.0));
        assert_eq!(map.strength.len(), h.len());
        let levels = [0.13, 0.22, 0.31, 0.40];
        for (h, strength) in h.iter().zip(&map.strength) {
            let expected = levels[((4.0 * h.abs()) as usize).min(3)];
            assert!((strength - expected).abs() < 1e-12, "{h} {strength}");
        }
        assert_eq!(map.background.as_deref(), Some("decision of the model"));
        assert!(map.points.iter().any(|p| p.support));
    }

    #[test]
    fn axes_are_named_by_their_heaviest_features() {
        let names: Vec<String> =
            ["a", "b", "a feature of a long name", "c"].map(str::to_owned).into();
        let rows = Matrix::from_rows(&[[0.0, -0.6, 0.8, 0.0], [2.0, 2.0, 2.0, 2.0]]).unwrap();
        let basis = Basis { rows, exact: true, flat: false, which: [0, 4] };
        assert_eq!(
            [0, 1].map(|axis| basis.label(axis, &names)),
            [
                "first direction: +0.80 a feature o\u{2026} \u{2212}0.60 b",
                "further direction: +0.50 a +0.50 b +0.50 a feature o\u{2026} \u{2026}"
            ]
        );
        // A direction that is a column is named by it.
        let rows = Matrix::from_rows(&[[0.0, 0.3, 0.0, 0.0], [-2.0, 0.0, 1e-12, 0.0]]).unwrap();
        let columns = Basis { rows, which: [0, 1], ..basis };
        assert_eq!(
            [0, 1].map(|axis| columns.label(axis, &names)),
            ["first direction: b", "second direction: \u{2212}a"]
        );
        let flat = Basis { flat: true, ..columns };
        assert!(flat.label(1, &names).starts_with("spread out"));
    }

    /// Two columns count most, but two others are nearly the same.
    #[test]
    fn where_no_two_directions_stand_for_a_mean_the_rows_say_which() {
        let own = Generator { rows: 120, informative: 2, noise: 8, ..Default::default() };
        let own = own.generate().unwrap().data;
        let x = Matrix::from_fn(120, 10, |i, k| match k {
            1 => own.x()[(i, 0)] + 0.1 * own.x()[(i, 1)],
            k => own.x()[(i, k)],
        });
        let class = |i: usize| usize::from(x[(i, 3)] + 0.6 * x[(i, 4)] > 0.0);
        let classes: Vec<usize> = (0..120).map(class).collect();
        let data = Dataset::new(x, &classes).unwrap();
        let fit = |params| Model::fit(&data, params).unwrap();
        let model = fit(Svml { cross_fit: false, ..Svml::default() });
        assert_eq!(model.members().len(), 3);
        let values = model.acting_metric().directions().0;
        assert!(values[2] < SAME * values[1] && values[0] + values[1] < ENOUGH, "{values:?}");
        let map = Map::new(&model, data.x(), None).unwrap();
        let spread = |places: &[f64]| {
            let mean = places.iter().sum::<f64>() / places.len() as f64;
            places.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
        };
        let [first, second] = [|p: &Point| p.x, |p: &Point| p.y]
            .map(|place| spread(&map.points.iter().map(place).collect::<Vec<f64>>()));
        let z = model.transform(data.x()).unwrap();
        for k in 0..10 {
            let along = spread(&z.iter_rows().map(|row| row[k]).collect::<Vec<f64>>());
            assert!(first >= along, "{k}: {along} above {first}, {second}");
        }
        assert!(first > second);
        // The directions of such a metric are columns, and these are not.
        assert!(map.axis_labels.iter().all(|label| label.contains("0.")), "{:?}", map.axis_labels);
    }

    #[test]
    fn a_metric_alone_has_no_background() {
        let data = data(2);
        let model = Model::fit(&data, Method::metric(Pca::default())).unwrap();
        let map = Map::new(&model, data.x(), None).unwrap();
        assert!(map.decided.is_empty() && map.strength.is_empty() && map.decision.is_none());
        assert!(map.background.is_none() && !map.margins);
    }
}
