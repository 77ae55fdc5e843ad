//! A map of the rows in two dimensions, with what the model decides everywhere: the arrays of
//! [`svml::map`], and what to write at the axes.

use std::ops::Deref;

use svml::{Matrix, Model, Result};

use crate::font;

pub use svml::map::Point;

/// The figure as arrays.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Map {
    /// What each axis is.
    pub labels: [String; 2],
    /// Rows and decision.
    pub arrays: svml::map::Map,
}

impl Deref for Map {
    type Target = svml::map::Map;
    fn deref(&self) -> &svml::map::Map {
        &self.arrays
    }
}

impl Map {
    /// Computes the map of encoded rows with their labels, if they have any.
    pub fn new(model: &Model, x: &Matrix, labels: Option<&[String]>) -> Result<Self> {
        Ok(Self::of(model, svml::map::Map::new(model, x, labels)?))
    }

    /// As [`Map::new`], along two directions of choice: 0 is the first eigenvector of M.
    pub fn along(
        model: &Model,
        x: &Matrix,
        labels: Option<&[String]>,
        directions: [usize; 2],
    ) -> Result<Self> {
        Ok(Self::of(model, svml::map::Map::along(model, x, labels, directions)?))
    }

    fn of(model: &Model, arrays: svml::map::Map) -> Self {
        let names = model.schema().encoded_names();
        Self { labels: [0, 1].map(|axis| label(&arrays, axis, &names)), arrays }
    }
}

/// How the directions are called.
const ORDINALS: [&str; 4] = ["first", "second", "third", "fourth"];

/// An axis by the features that weigh most in it.
fn label(map: &svml::map::Map, axis: usize, names: &[String]) -> String {
    let which = ORDINALS.get(map.which[axis]).copied().unwrap_or("further");
    if axis == 1 && map.flat {
        return "spread out for legibility; the metric has one direction".to_owned();
    }
    let row = map.axes.row(axis);
    let length = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].abs().total_cmp(&row[a].abs()));
    let terms: Vec<String> = order
        .iter()
        .take(3)
        .filter(|&&k| row[k].abs() > 0.05 * length)
        .map(|&k| {
            let sign = if row[k] < 0.0 { '\u{2212}' } else { '+' };
            let name = font::shorten(&names[k], 13.0, 90.0);
            format!("{sign}{:.2} {name}", row[k].abs() / length)
        })
        .collect();
    let others = row.iter().filter(|v| v.abs() > 1e-9 * length).count();
    let more = if others > terms.len() { " \u{2026}" } else { "" };
    format!("{which} direction: {}{more}", terms.join(" "))
}
