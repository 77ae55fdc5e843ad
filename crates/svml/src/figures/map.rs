//! A map of the rows in two dimensions, with what the model decides everywhere.
//!
//! The axes are two orthonormal directions of the rows mapped by L, so that distances on the map are distances of the
//! metric as far as these go: for a metric of rank 2 all the way, otherwise those of the plane that shows the classes, which
//! `plane.rs` finds.
//!
//! At a place of the map the decision also depends on the other directions. For rank 2 there are none. Otherwise the
//! background is the mean of the SVMs' outputs over the rows around the place, each moved to it within the plane and
//! otherwise as it is: rows far away have other values in the other directions than those that lie here. Of new rows, 12.8
//! percent lie on a colour that is not that of the class the model gives them (27 tables, as in `plane.rs`); with the mean
//! over rows from all over the map it is 18.3 percent, and 28.1 with the leading eigenvectors of M as axes. Nearest
//! neighbours vote by their distances on the map.

use std::collections::HashSet;

use super::plane::plane;
use crate::error::{Error, Result};
use crate::linalg::{Matrix, dot};
use crate::memory;
use crate::model::{Model, SvmClassifier};
use crate::multiclass::{decide, vote};
use crate::parallel;

/// Columns and rows of the grid on which the decision is known.
const GRID: (usize, usize) = (141, 111);
/// Every how many columns and rows of it means over rows are computed; between these they are interpolated. The first that is
/// not too much work, or the last.
const COARSE: [usize; 3] = [2, 5, 10];
/// Most rows that are drawn.
const SHOWN: usize = 1500;
/// Room beside the outermost rows, as a share of the axis.
const MARGIN: f64 = 0.07;
/// Rows around a place whose other directions are those of the place, and most terms of the expansions that are summed for
/// that.
const AROUND: usize = 12;
const MOST_TERMS: usize = 400_000_000;
/// The least rows around a place, and most numbers that all rows have which are moved: with very many columns fewer rows and
/// fewer places have to do.
const LEAST_AROUND: usize = 3;
const MOST_NUMBERS: usize = 150_000_000;
/// Fewer support vectors than this share of the rows that are drawn are ringed.
const FEW: f64 = 1.0 / 3.0;
/// How the directions are called.
const ORDINALS: [&str; 4] = ["first", "second", "third", "fourth"];
/// Most features that the label of an axis names.
const NAMED: usize = 3;
/// Most signs of the name of a feature there, and how many of them are from its beginning.
const NAME: usize = 40;
const HEAD: usize = 25;

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
/// The axes are all directions of a metric of rank 2, otherwise the plane of the mapped rows that shows the classes. Distances
/// on the map are distances of the metric as far as these directions go. The decision is known on a grid over the map; a metric
/// without a classifier has none.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Map {
    /// What a place on the map is: along each axis, a standardised row times this row. // (2, features)
    pub axes: Matrix,
    /// What each axis is, in words: the features that weigh most in it, with their weights.
    pub axis_labels: [String; 2],
    /// The same in pieces that should not be broken between lines.
    pub axis_terms: [Vec<String>; 2],
    /// Which directions of the metric these are, 0 being the one that counts most; none if they were chosen by the rows.
    pub which: Option<[usize; 2]>,
    /// Whether the metric has only one direction only; the second place is then spread out for legibility.
    pub flat: bool,
    /// The classes of the model.
    pub classes: Vec<String>,
    /// The rows that are drawn.
    pub points: Vec<Point>,
    /// How many rows there are.
    pub rows: usize,
    /// How many of all rows lie outside of the frame, which few extreme rows do not stretch.
    pub outside: usize,
    /// Whether support vectors are few enough for rings around them.
    pub ringed: bool,
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
    /// in four steps up to a decision value of 1, else weaker for the first ten classes than for the next ten, which have
    /// the same colours. Empty where `decided` is.
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
        check_room(x)?;
        let basis = Basis::new(model, x, labels)?;
        Self::on(model, x, labels, &basis)
    }

    /// As [`Map::new`], along two directions of choice: 0 is the first eigenvector of M.
    pub fn along(
        model: &Model,
        x: &Matrix,
        labels: Option<&[String]>,
        directions: [usize; 2],
    ) -> Result<Self> {
        check_room(x)?;
        model.transform(x)?;
        Self::on(model, x, labels, &Basis::of(model, directions))
    }

    /// What is to be known beside the picture, in a sentence or two.
    pub fn note(&self) -> String {
        let mut note = match &self.background {
            Some(background) => format!("Background: {background}"),
            None => "Rows as the metric sees them".to_owned(),
        };
        if self.points.len() < self.rows {
            note.push_str(&format!("; {} of {} rows are shown", self.points.len(), self.rows));
        }
        if self.outside > 0 {
            let (rows, lie) = if self.outside == 1 { ("row", "lies") } else { ("rows", "lie") };
            note.push_str(&format!("; {} {rows} {lie} outside of the frame", self.outside));
        }
        let support = self.points.iter().filter(|p| p.support).count();
        if support > 0 && !self.ringed {
            note.push_str(&format!(
                "; support vectors, {support} of {} rows, are too many to be ringed",
                self.points.len()
            ));
        }
        note
    }

    fn on(model: &Model, x: &Matrix, labels: Option<&[String]>, basis: &Basis) -> Result<Self> {
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
        let support = points.iter().filter(|p| p.support).count();
        let (x_range, y_range) =
            (frame(points.iter().map(|p| p.x)), frame(points.iter().map(|p| p.y)));
        let inside = |[low, high]: [f64; 2], v: f64| (low..=high).contains(&v);
        let outside = (0..x.rows())
            .filter(|&row| {
                let y = basis.flat || inside(y_range, places[(row, 1)]);
                !(inside(x_range, places[(row, 0)]) && y)
            })
            .count();
        let values = decision(model, basis, x_range, y_range, &u, &places)?;
        let decided = values.as_ref().map(decide).unwrap_or_default();
        let background = values.is_some().then(|| background(model, basis).to_owned());
        let decision = values.filter(|_| classes.len() == 2).map(Matrix::into_vec);
        let names = model.schema().encoded_names();
        let axis_terms = [0, 1].map(|axis| basis.terms(axis, &names));
        Ok(Self {
            axes: basis.rows.clone(),
            axis_labels: [0, 1].map(|axis| axis_terms[axis].join(" ")),
            axis_terms,
            which: basis.which,
            flat: basis.flat,
            ringed: (support as f64) < FEW * points.len() as f64,
            classes,
            points,
            rows: x.rows(),
            outside,
            x_range,
            y_range,
            columns: GRID.0,
            strength: strength(&decided, decision.as_deref()),
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
    /// Orthonormal directions of the mapped rows, in standardised features: a'L. // (2, features)
    rows: Matrix,
    /// Whether the metric has no other direction.
    exact: bool,
    /// Whether there is only one direction.
    flat: bool,
    /// Which directions of the metric these are, if they are its own.
    which: Option<[usize; 2]>,
}

impl Basis {
    /// All of a metric of two directions or one; otherwise the plane of the mapped rows that shows the classes.
    fn new(model: &Model, x: &Matrix, labels: Option<&[String]>) -> Result<Self> {
        model.transform(x)?;
        let own = Self::of(model, [0, 1]);
        if own.exact {
            return Ok(own);
        }
        match plane(model, x, labels) {
            Ok(Some(rows)) => Ok(Self { rows, exact: false, flat: false, which: None }),
            // Rows along a line, or numbers too large for their products, have no plane of their own.
            Ok(None) | Err(Error::Numerical { .. }) => Ok(own),
            Err(error) => Err(error),
        }
    }

    /// Along two eigenvectors of M.
    fn of(model: &Model, which: [usize; 2]) -> Self {
        let metric = model.acting_metric();
        let values = metric.eigenvalues();
        let (_, vectors) = metric.directions_at(&which);
        let value = |r: usize| values.get(r).copied().unwrap_or(0.0).max(0.0);
        let negligible = 1e-9 * value(0).max(f64::MIN_POSITIVE);
        let rows =
            Matrix::from_fn(2, vectors.cols(), |r, k| value(which[r]).sqrt() * vectors[(r, k)]);
        let off = (0..values.len()).filter(|r| !which.contains(r)).map(value);
        let exact = off.fold(0.0, f64::max) <= negligible;
        Self { rows, exact, flat: value(which[1]) <= negligible, which: Some(which) }
    }

    /// Where standardised rows are on the map. // (rows, 2)
    fn places(&self, u: &Matrix) -> Matrix {
        Matrix::from_fn(u.rows(), 2, |row, axis| dot(u.row(row), self.rows.row(axis)))
    }

    /// An axis by the features that weigh most in it, in pieces.
    fn terms(&self, axis: usize, names: &[String]) -> Vec<String> {
        if axis == 1 && self.flat {
            return vec![
                "spread out for readability:".into(),
                "the metric has only one direction".into(),
            ];
        }
        let row = self.rows.row(axis);
        let length = dot(row, row).sqrt().max(f64::MIN_POSITIVE);
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|&a, &b| row[b].abs().total_cmp(&row[a].abs()));
        let others = row.iter().filter(|v| v.abs() > 1e-9 * length).count();
        let which = self.which.map(|which| {
            let ordinal = ORDINALS.get(which[axis]).copied().unwrap_or("further");
            format!("{ordinal} direction:")
        });
        let mut terms: Vec<String> = which.into_iter().collect();
        if let ([k, ..], 1) = (&order[..], others) {
            let sign = if row[*k] < 0.0 { "\u{2212}" } else { "" };
            terms.push(format!("{sign}{} (scaled)", shorten(&names[*k])));
            return terms;
        }
        let heaviest = order.iter().take(NAMED).filter(|&&k| row[k].abs() > 0.05 * length);
        let mut named = 0;
        for &k in heaviest {
            let sign = match (row[k] < 0.0, named) {
                (true, _) => "\u{2212}",
                (false, 0) => "",
                (false, _) => "+",
            };
            let blank = if named > 0 { "\u{a0}" } else { "" };
            let weight = row[k].abs() / length;
            terms.push(format!("{sign}{blank}{weight:.2} {}", shorten(&names[k])));
            named += 1;
        }
        if others > named {
            terms.push("+\u{a0}\u{2026}".to_owned());
        }
        terms
    }
}

/// The name of a feature. Of a long one the middle is left out, which an ellipsis shows: names often differ at their ends. The
/// cuts are between words where there are some.
fn shorten(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME {
        return name.to_owned();
    }
    let is_gap = |c: &char| !c.is_alphanumeric();
    let (head, tail) = (&letters[..HEAD], &letters[letters.len() - (NAME - HEAD - 1)..]);
    let head = match head.iter().rposition(is_gap) {
        Some(at) if at > HEAD / 2 => &head[..at],
        _ => head,
    };
    let tail = match tail.iter().position(is_gap) {
        Some(at) if at < tail.len() / 2 => &tail[at + 1..],
        _ => tail,
    };
    let [head, tail] = [head, tail].map(|part| part.iter().collect::<String>());
    format!("{}\u{2026} {}", head.trim_end_matches([' ', ',', '_', '-']), tail.trim())
}

/// What the colours show.
fn background(model: &Model, basis: &Basis) -> &'static str {
    match (basis.exact, model.svms()) {
        (true, _) => "decision of the model",
        (false, Some(_)) => "average decision; dots may lie on the wrong side",
        (false, None) => "vote of the neighbours in these two directions alone",
    }
}

/// The strength of the colours in few steps, so that neighbouring places can be drawn as one.
fn strength(decided: &[usize], decision: Option<&[f64]>) -> Vec<f64> {
    let strength = |level: f64| 0.09 * level + 0.04;
    match decision {
        Some(h) => h.iter().map(|h| strength((4.0 * h.abs().min(1.0)).ceil())).collect(),
        None => decided.iter().map(|c| strength(if c / 10 % 2 == 0 { 2.0 } else { 4.0 })).collect(),
    }
}

/// Places evenly spread over the map, every so many of the grid. // (places, 2)
fn grid(x_range: [f64; 2], y_range: [f64; 2], flat: bool, every: usize) -> Matrix {
    let [columns, rows] = [GRID.0, GRID.1].map(|n| (n - 1) / every + 1);
    let along =
        |[low, high]: [f64; 2], k: usize, n: usize| low + (high - low) * k as f64 / (n - 1) as f64;
    Matrix::from_fn(rows * columns, 2, |k, axis| match axis {
        0 => along(x_range, k % columns, columns),
        _ if flat => 0.0,
        _ => along(y_range, k / columns, rows),
    })
}

/// The decision values on the grid; `None` for a metric without a classifier.
fn decision(
    model: &Model,
    basis: &Basis,
    x_range: [f64; 2],
    y_range: [f64; 2],
    u: &Matrix,
    places: &Matrix,
) -> Result<Option<Matrix>> {
    if !model.is_classifier() {
        return Ok(None);
    }
    let Some(svms) = model.svms() else {
        let support_places = basis.places(&model.scaler().apply(model.support_vectors()));
        return model.decision_among(&support_places, &grid(x_range, y_range, basis.flat, 1));
    };
    let classes = model.classes().len();
    if basis.exact || u.rows() == 0 {
        // Whatever the other directions are, they do not count.
        let grid = grid(x_range, y_range, basis.flat, 1);
        let zero = Matrix::zeros(1, u.cols());
        let moved = Moved { basis, u: &zero, places: &Matrix::zeros(1, 2) };
        let outputs = moved.outputs(svms, &grid, &vec![0; grid.rows()]);
        return Ok(Some(vote(&outputs, classes)));
    }
    let every = coarseness(u.cols());
    let coarse = grid(x_range, y_range, basis.flat, every);
    let moved = Moved { basis, u, places };
    let scale = [x_range, y_range].map(|[low, high]| 1.0 / (high - low));
    let outputs = mean_around(svms, &moved, &coarse, scale);
    Ok(Some(vote(&interpolated(&outputs, every), classes)))
}

/// Refuses rows that there is no memory to draw: they are held standardised, mapped, in coordinates of the plane and, some at a
/// time, moved to places of the grid, which the SVMs map again.
fn check_room(x: &Matrix) -> Result<()> {
    const COPIES: usize = 8;
    const MOVED_COPIES: usize = 4;
    let moved = MOVED_NUMBERS.min((GRID.0 * GRID.1).saturating_mul(x.cols()));
    let numbers = (x.rows() * x.cols()).saturating_mul(COPIES) + MOVED_COPIES * moved;
    memory::room_for(numbers.saturating_mul(8), "the map of these rows")
}

/// Every how many places of the grid means are computed over rows of so many columns.
fn coarseness(columns: usize) -> usize {
    let numbers = |every: &usize| {
        let [across, up] = [GRID.0, GRID.1].map(|n| (n - 1) / every + 1);
        (across * up * LEAST_AROUND).saturating_mul(columns)
    };
    let affordable = COARSE.into_iter().find(|every| numbers(every) <= MOST_NUMBERS);
    affordable.unwrap_or(COARSE[COARSE.len() - 1])
}

/// Rows that are moved within the plane of the map.
struct Moved<'a> {
    basis: &'a Basis,
    u: &'a Matrix,
    places: &'a Matrix,
}

/// Rows that are moved have at most so many numbers at a time: of very many columns there are few of them.
const MOVED_NUMBERS: usize = 1 << 22;

impl Moved<'_> {
    /// The outputs of all pairs for rows, one for each place of the grid, that are moved there. // (grid, pairs)
    fn outputs(&self, svms: &SvmClassifier, grid: &Matrix, row: &[usize]) -> Matrix {
        let at_once = (MOVED_NUMBERS / self.u.cols().max(1)).max(1);
        let mut values = Vec::new();
        for (first, row) in (0..grid.rows()).step_by(at_once).zip(row.chunks(at_once)) {
            let places = Matrix::from_fn(row.len(), 2, |g, axis| grid[(first + g, axis)]);
            values.extend(svms.outputs(&self.to(&places, row)).into_vec());
        }
        let pairs = values.len() / grid.rows().max(1);
        Matrix::from_fn(grid.rows(), pairs, |g, p| values[g * pairs + p])
    }

    /// For each place of the grid a row, moved there; its other directions stay. // (grid, features)
    fn to(&self, grid: &Matrix, row: &[usize]) -> Matrix {
        // A'(A A')^-1 takes a step on the map back to the features; without a second direction its row is zero.
        let a = &self.basis.rows;
        let inner = |i: usize, j: usize| dot(a.row(i), a.row(j));
        let (p, q, r) = (inner(0, 0), inner(0, 1), inner(1, 1));
        let determinant = p * r - q * q;
        let back = |step: [f64; 2]| match determinant > 1e-12 * p * r && !self.basis.flat {
            true => [
                (r * step[0] - q * step[1]) / determinant,
                (p * step[1] - q * step[0]) / determinant,
            ],
            false => [if p > 0.0 { step[0] / p } else { 0.0 }, 0.0],
        };
        let mut moved = Matrix::zeros(grid.rows(), a.cols());
        for (g, &row) in row.iter().enumerate() {
            let from = self.places.row(row);
            let by = back([grid[(g, 0)] - from[0], grid[(g, 1)] - from[1]]);
            let out = moved.row_mut(g).iter_mut().zip(self.u.row(row));
            let axes = a.row(0).iter().zip(a.row(1));
            out.zip(axes).for_each(|((out, u), (a, b))| *out = u + a * by[0] + b * by[1]);
        }
        moved
    }
}

/// The outputs of all pairs at places of the map: the mean over the rows around each place, moved there. A row counts
/// the less the farther it is, and nothing where more than [`AROUND`] others are nearer, so that the mean has no jumps.
/// // (places, pairs)
fn mean_around(svms: &SvmClassifier, moved: &Moved<'_>, grid: &Matrix, scale: [f64; 2]) -> Matrix {
    let terms = grid.rows() * svms.support.rows().max(1) * svms.members.len();
    let step = moved.u.rows().div_ceil(SHOWN).max(1);
    let rows: Vec<usize> = (0..moved.u.rows()).step_by(step).collect();
    let numbers = grid.rows().saturating_mul(moved.u.cols());
    let many = (MOST_TERMS / terms.max(1)).min(MOST_NUMBERS / numbers.max(1));
    let many = many.clamp(LEAST_AROUND, AROUND).min(rows.len());
    // The nearest rows of each place with their weights, on the map as it is drawn.
    let nearest: Vec<Vec<(usize, f64)>> = parallel::map(0..grid.rows(), |g| {
        let distance = |row: usize| -> f64 {
            let away = |axis: usize| (grid[(g, axis)] - moved.places[(row, axis)]) * scale[axis];
            away(0).powi(2) + if moved.basis.flat { 0.0 } else { away(1).powi(2) }
        };
        let mut near: Vec<(usize, f64)> = rows.iter().map(|&row| (row, distance(row))).collect();
        let order = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
        if many + 1 < near.len() {
            near.select_nth_unstable_by(many, order);
            near.truncate(many + 1);
        }
        near.sort_unstable_by(order);
        let end = near.last().map_or(1.0, |(_, d)| d.max(f64::MIN_POSITIVE));
        // A little for all, so that rows at the same distance have a mean.
        let weight = |d: f64| (1.0 - (d / end).min(1.0)).powi(2) + 1e-9;
        near.truncate(many);
        let total: f64 = near.iter().map(|(_, d)| weight(*d)).sum();
        near.iter().map(|(row, d)| (*row, weight(*d) / total)).collect()
    });
    let mut mean: Option<Matrix> = None;
    for m in 0..many {
        let row: Vec<usize> = nearest.iter().map(|near| near[m].0).collect();
        let mut outputs = moved.outputs(svms, grid, &row);
        for (g, near) in nearest.iter().enumerate() {
            outputs.row_mut(g).iter_mut().for_each(|h| *h *= near[m].1);
        }
        match &mut mean {
            Some(mean) => {
                let sums = mean.as_mut_slice().iter_mut().zip(outputs.as_slice());
                sums.for_each(|(sum, h)| *sum += h);
            }
            None => mean = Some(outputs),
        }
    }
    mean.unwrap_or_default()
}

/// Values on the whole grid from those on every so many of its places.
fn interpolated(coarse: &Matrix, every: usize) -> Matrix {
    let (columns, rows) = GRID;
    let known = (columns - 1) / every + 1;
    Matrix::from_fn(rows * columns, coarse.cols(), |k, p| {
        let (c, r) = (k % columns, k / columns);
        let share = |at: usize| (at % every) as f64 / every as f64;
        let (right, up) = (share(c), share(r));
        let at = |c: usize, r: usize| coarse[(r * known + c, p)];
        let (c0, r0) = (c / every, r / every);
        let (c1, r1) = (c0 + usize::from(right > 0.0), r0 + usize::from(up > 0.0));
        let low = at(c0, r0) + right * (at(c1, r0) - at(c0, r0));
        low + up * (at(c0, r1) + right * (at(c1, r1) - at(c0, r1)) - low)
    })
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

/// The ends of an axis, with a margin: all but the outermost half percent of the values on each side. Where tails are long, so
/// that most rows would crowd in a corner, at most half of the length that the central 95 percent have is added to these.
fn frame(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let ends = |cut: usize| Some((*sorted.get(cut)?, *sorted.get(n.checked_sub(cut + 1)?)?));
    let (Some((low, high)), Some((inner_low, inner_high))) = (ends(n / 200), ends(n / 40)) else {
        return [0.0, 1.0];
    };
    let inner = inner_high - inner_low;
    let (low, high) = match inner > 1e-9 * low.abs().max(high.abs()) {
        true => (low.max(inner_low - 0.5 * inner), high.min(inner_high + 0.5 * inner)),
        false => (low, high),
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
        let long = "a feature of a long name, so long that it is cut";
        let names: Vec<String> = ["a", "b", long, "c"].map(str::to_owned).into();
        let rows = Matrix::from_rows(&[[0.0, -0.6, 0.8, 0.0], [2.0, -2.0, 2.0, 2.0]]).unwrap();
        let basis = Basis { rows, exact: true, flat: false, which: Some([0, 4]) };
        let cut = "a feature of a long name\u{2026} it is cut";
        let first =
            ["first direction:".into(), format!("0.80 {cut}"), "\u{2212}\u{a0}0.60 b".into()];
        assert_eq!(basis.terms(0, &names), first);
        let further = ["further direction:", "0.50 a", "\u{2212}\u{a0}0.50 b"].map(str::to_owned);
        let second = basis.terms(1, &names);
        assert_eq!((&second[..3], second.len()), (&further[..], 5));
        assert_eq!(second[4], "+\u{a0}\u{2026}");
        // A direction that is a column is named by it.
        let rows = Matrix::from_rows(&[[0.0, 0.3, 0.0, 0.0], [-2.0, 0.0, 1e-12, 0.0]]).unwrap();
        let columns = Basis { rows, which: None, ..basis };
        assert_eq!(
            [0, 1].map(|axis| columns.terms(axis, &names).join(" ")),
            ["b (scaled)", "\u{2212}a (scaled)"]
        );
        let flat = Basis { flat: true, ..columns };
        assert!(flat.terms(1, &names)[0].starts_with("spread out"));
    }

    /// Rows whose class is told by the sum of two of ten columns, one of which has a tail; all others are noise.
    fn told_by_a_sum(rows: usize, classes: usize) -> Dataset {
        let own =
            Generator { rows, informative: 2, noise: 8, rotated: false, ..Default::default() };
        let own = own.generate().unwrap().data;
        let x = own.x().clone();
        let class = |i: usize| match classes {
            2 => usize::from(x[(i, 3)] + 0.8 * x[(i, 4)] > 0.0),
            _ => usize::from(x[(i, 3)] > 0.0) + 2 * usize::from(x[(i, 4)] > 0.0),
        };
        let y: Vec<usize> = (0..rows).map(class).collect();
        Dataset::new(x, &y).unwrap()
    }

    /// Share of rows of which the majority of the five nearest others on the map has another class.
    fn error_on_the_map(map: &Map) -> f64 {
        let wrong = map.points.iter().enumerate().filter(|(i, p)| {
            let mut near: Vec<(f64, Option<usize>)> = (map.points.iter().enumerate())
                .filter(|(j, _)| j != i)
                .map(|(_, q)| ((p.x - q.x).powi(2) + (p.y - q.y).powi(2), q.class))
                .collect();
            near.sort_by(|a, b| a.0.total_cmp(&b.0));
            near[..5].iter().filter(|(_, class)| *class == p.class).count() < 3
        });
        wrong.count() as f64 / map.points.len() as f64
    }

    #[test]
    fn the_plane_shows_the_classes() {
        for (classes, form) in [(2, Form::Diagonal), (2, Form::Sphere), (4, Form::Diagonal)] {
            let data = told_by_a_sum(240, classes);
            let labels: Vec<String> = data.y().iter().map(|&c| data.classes()[c].clone()).collect();
            let params = Svml { form: form.into(), cross_fit: false, ..Svml::default() };
            let model = Model::fit(&data, params).unwrap();
            let map = Map::new(&model, data.x(), Some(&labels)).unwrap();
            assert!(!map.exact && map.which.is_none());
            let error = error_on_the_map(&map);
            assert!(error < 0.12, "{classes} {form}: {error}");
            // Both columns are in it, and the classes do not depend on labels.
            let label = map.axis_labels.join(" ");
            assert!(label.contains(" x4") && label.contains(" x5"), "{label}");
            let unlabelled = Map::new(&model, data.x(), None).unwrap();
            assert_eq!((&unlabelled.axes, &unlabelled.decided), (&map.axes, &map.decided));
            // Distances on the map are at most those of the metric.
            let z = model.transform(data.x()).unwrap();
            for (i, j) in (0..239).map(|i| (i, i + 1)) {
                let [a, b] = [i, j].map(|k| &map.points[k]);
                let all: f64 = z.row(i).iter().zip(z.row(j)).map(|(a, b)| (a - b).powi(2)).sum();
                assert!((a.x - b.x).powi(2) + (a.y - b.y).powi(2) <= all * (1.0 + 1e-9));
            }
            // Of two classes the second is on the right.
            if classes == 2 {
                let mean = |c| {
                    let own = || map.points.iter().filter(|p| p.class == Some(c));
                    own().map(|p| p.x).sum::<f64>() / own().count() as f64
                };
                assert!(mean(0) < mean(1));
            }
            // At most places with rows the colour is what the model decides for these rows.
            let predicted = model.predict(data.x()).unwrap();
            let agree = (map.points.iter().zip(&predicted))
                .filter(|(point, p)| cell(&map, point).is_none_or(|k| map.decided[k] == **p))
                .count();
            assert!(agree as f64 > 0.93 * 240.0, "{classes} {form}: {agree}");
        }
    }

    #[test]
    fn long_tails_do_not_push_rows_into_a_corner() {
        let [low, high] = frame((0..1000).map(f64::from));
        assert!(low < 6.0 && high > 993.0);
        let tailed = (0..1000).map(|i| if i < 980 { f64::from(i) / 980.0 } else { f64::from(i) });
        let [low, high] = frame(tailed);
        assert!((-0.2..0.05).contains(&low) && (1.0..2.0).contains(&high), "{low} {high}");
        // Two values, and only one.
        assert_eq!(frame([3.0].into_iter()), [1.5, 4.5]);
        let [low, high] = frame((0..1000).map(|i| f64::from(u8::from(i > 990))));
        assert!(low < 0.0 && high >= 0.5, "{low} {high}");
        assert_eq!(frame([].into_iter()), [0.0, 1.0]);
        let data = told_by_a_sum(400, 2);
        let x = Matrix::from_fn(400, 10, |i, k| match (i, k) {
            (0..5, 3) => 1e3 * (i + 1) as f64,
            _ => data.x()[(i, k)],
        });
        let data = Dataset::new(x, data.y()).unwrap();
        let form = Form::Diagonal.into();
        let model = Model::fit(&data, Svml { form, cross_fit: false, ..Svml::default() }).unwrap();
        let map = Map::new(&model, data.x(), None).unwrap();
        let inside = |[low, high]: [f64; 2], v: f64| (low..=high).contains(&v);
        let outside =
            map.points.iter().filter(|p| !(inside(map.x_range, p.x) && inside(map.y_range, p.y)));
        assert_eq!(map.outside, outside.count());
        assert!(map.outside >= 3, "{}", map.outside);
        assert!(
            map.note().contains(&format!("{} rows lie outside", map.outside)),
            "{}",
            map.note()
        );
    }

    #[test]
    fn few_support_vectors_are_ringed() {
        let data = told_by_a_sum(240, 2);
        let form = Form::Rank(2).into();
        let model = Model::fit(&data, Svml { form, cross_fit: false, ..Svml::default() }).unwrap();
        let map = Map::new(&model, data.x(), None).unwrap();
        let support = map.points.iter().filter(|p| p.support).count();
        assert_eq!(map.ringed, 3 * support < 240);
        assert_eq!(map.note().contains("too many"), !map.ringed);
        let only = model.support_rows().to_vec();
        let map = Map::new(&model, &data.x().select_rows(&only), None).unwrap();
        assert!(!map.ringed && map.note().contains("too many to be ringed"), "{}", map.note());
    }

    #[test]
    fn between_known_places_values_are_interpolated() {
        let (columns, rows) = GRID;
        for every in COARSE {
            let known = (columns - 1) / every + 1;
            let value = |c: f64, r: f64| 3.0 * c - 2.0 * r + 1.0;
            let count = known * ((rows - 1) / every + 1);
            let coarse = Matrix::from_fn(count, 1, |k, _| {
                value((every * (k % known)) as f64, (every * (k / known)) as f64)
            });
            let all = interpolated(&coarse, every);
            assert_eq!(all.rows(), rows * columns);
            for k in 0..all.rows() {
                let expected = value((k % columns) as f64, (k / columns) as f64);
                assert!((all[(k, 0)] - expected).abs() < 1e-9);
            }
        }
    }

    /// The picture of a model with very many columns is coarser, instead of taking minutes.
    #[test]
    fn very_many_columns_have_fewer_places() {
        assert_eq!([10, 5_000, 30_000, 100_000, 1 << 60].map(coarseness), [2, 2, 5, 10, 10]);
    }

    #[test]
    fn a_metric_alone_has_no_background() {
        let data = data(2);
        let model = Model::fit(&data, Method::metric(Pca::default())).unwrap();
        let map = Map::new(&model, data.x(), None).unwrap();
        assert!(map.decided.is_empty() && map.strength.is_empty() && map.decision.is_none());
        assert!(map.background.is_none() && !map.margins);
    }

    /// A metric of one direction: rows are spread out across it, and the colours depend on the direction alone, as the model
    /// decides there.
    #[test]
    fn one_direction_is_spread_out() {
        let x = Matrix::from_fn(60, 1, |i, _| (i as f64 * 0.77).sin() * 3.0);
        let class: Vec<usize> = (0..60).map(|i| usize::from(x[(i, 0)].abs() > 1.5)).collect();
        let data = Dataset::new(x, &class).unwrap();
        let model = Model::fit(&data, Svml::default()).unwrap();
        let map = Map::new(&model, data.x(), None).unwrap();
        assert!(map.flat && map.exact);
        let rows = map.decided.len() / map.columns;
        for k in 0..map.columns {
            let column: Vec<usize> = (0..rows).map(|r| map.decided[r * map.columns + k]).collect();
            assert!(column.iter().all(|c| *c == column[0]), "{k}");
        }
        let predicted = model.predict(data.x()).unwrap();
        let cells = map.points.iter().map(|point| cell(&map, point));
        let agree = cells.zip(predicted).filter(|(k, p)| k.is_none_or(|k| map.decided[k] == *p));
        // A row is not quite where the nearest point of the grid is.
        assert!(agree.count() >= 57);
        assert!(map.points.iter().any(|p| (p.y - map.points[0].y).abs() > 0.1));
    }

    /// Of directions that are asked for, the second may change no distance while others do.
    #[test]
    fn a_direction_that_does_not_count_is_spread_out_too() {
        let x = Matrix::from_fn(60, 3, |i, k| ((i * (k + 3)) as f64 * 0.77).sin());
        let class: Vec<usize> = (0..60).map(|i| usize::from(x[(i, 0)] + x[(i, 1)] > 0.0)).collect();
        let data = Dataset::new(x, &class).unwrap();
        let model = Model::fit(&data, Svml { form: Form::Rank(2).into(), ..Svml::default() });
        let map = Map::along(&model.unwrap(), data.x(), None, [0, 2]).unwrap();
        assert!(map.flat && !map.exact && map.decision.is_some());
    }

    /// A row with a gap is a support vector if it is one once the gap is filled; of many rows some are drawn.
    #[test]
    fn rows_with_gaps_and_many_rows() {
        let x = Matrix::from_fn(50, 2, |i, k| match (i, k) {
            (i, 1) if i % 9 == 0 => f64::NAN,
            _ => ((i * (k + 2)) as f64 * 0.9).sin(),
        });
        let class: Vec<usize> = (0..50).map(|i| usize::from(x[(i, 0)] > 0.2)).collect();
        let data = Dataset::new(x, &class).unwrap().with_missing(crate::data::Missing::Impute);
        let data = data.unwrap();
        let model = Model::fit(&data, Svml::default()).unwrap();
        let map = Map::new(&model, data.x(), None).unwrap();
        for (row, point) in map.points.iter().enumerate() {
            assert_eq!(point.support, model.support_rows().contains(&row), "row {row}");
        }
        let many: Vec<usize> = (0..4000).map(|i| i % 50).collect();
        let map = Map::new(&model, &data.x().select_rows(&many), None).unwrap();
        assert!(map.points.len() <= SHOWN && map.rows == 4000);
        let note = format!("{} of 4000 rows are shown", map.points.len());
        assert!(map.note().contains(&note), "{}", map.note());
    }

    #[test]
    fn long_names_without_words_are_cut_anywhere() {
        let name = shorten(&"x".repeat(3 * NAME));
        assert!(name.chars().count() <= NAME + 1 && name.contains('\u{2026}'), "{name}");
    }
}
