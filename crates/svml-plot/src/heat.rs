//! The matrix M of the metric as a heat map with names, and the relevance of the features as bars.

use svml::Model;

use crate::Picture;
use crate::axis::{Panel, Range, number};
use crate::font;
use crate::style::{colour, diverging};
use crate::svg::{Anchor, Canvas, INK, Stroke};

/// Most features of a heat map.
const MOST_CELLS: usize = 40;
/// Most bars.
const MOST_BARS: usize = 30;
/// Widest name at an axis.
const NAME: f64 = 150.0;

/// M = L'L on standardised features, as arrays.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Heat {
    /// Names of the features that are shown.
    pub names: Vec<String>,
    /// Their part of M, row after row.
    pub values: Vec<f64>,
    /// How many features there are.
    pub features: usize,
}

impl Heat {
    /// M of a model; of many features the most relevant.
    pub fn new(model: &Model) -> Self {
        let names = model.schema().encoded_names();
        let mut shown = by_relevance(model);
        shown.truncate(MOST_CELLS);
        shown.sort_unstable();
        let m = model.acting_metric().mahalanobis();
        Self {
            values: shown
                .iter()
                .flat_map(|&i| shown.iter().map(|&j| m[(i, j)]).collect::<Vec<_>>())
                .collect(),
            names: shown.iter().map(|&k| names[k].clone()).collect(),
            features: names.len(),
        }
    }

    /// Draws the heat map under a title.
    pub fn draw(&self, title: &str) -> Picture {
        let n = self.names.len();
        let cell = (560.0 / n.max(1) as f64).clamp(13.0, 62.0);
        let size = (cell * 0.62).clamp(8.0, 12.0);
        let names: Vec<String> =
            self.names.iter().map(|name| font::shorten(name, size, NAME)).collect();
        let room = names.iter().map(|name| font::width(name, size)).fold(0.0, f64::max);
        let side = cell * n as f64;
        let (left, top) = (24.0 + room, 62.0);
        // Names below are askew, so that long ones do not meet.
        let below = 24.0 + 0.75 * room;
        let width = (left + side + 120.0).max(420.0);
        let mut canvas = Canvas::new(width, (top + side + below).max(260.0), title);
        let largest = self.values.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
        let mut note = "Negative entries are blue, with two corners cut".to_owned();
        if n < self.features {
            note.push_str(&format!("; the {n} most relevant of {} features", self.features));
        }
        canvas.heading(title, &note);
        let scale = largest.max(f64::MIN_POSITIVE);
        let figures = cell >= 34.0;
        for (k, &value) in self.values.iter().enumerate() {
            let (x, y) = (left + cell * (k % n) as f64, top + cell * (k / n) as f64);
            canvas.rect(x, y, cell, cell, &diverging(value / scale));
            // Entries of no weight need no sign.
            if value < -0.02 * scale {
                let thin = Stroke::solid("#003a5c", 0.8);
                canvas.line((x + cell * 0.78, y + 2.0), (x + cell - 2.0, y + cell * 0.22), thin);
                canvas.line((x + 2.0, y + cell * 0.78), (x + cell * 0.22, y + cell - 2.0), thin);
            }
            if figures {
                let decimals = if largest < 0.1 { 3 } else { 2 };
                let text = number(value, decimals);
                let size = 11.0_f64.min(cell * 0.9 / font::width(&text, 1.0));
                let at = (x + cell / 2.0, y + cell / 2.0 + 0.36 * size);
                let dark = (value / scale).abs() > 0.7;
                let ink = if dark { "#ffffff" } else { INK };
                canvas.styled_text(at, &text, size, Anchor::Middle, ink, "");
            }
        }
        let frame = Stroke::solid(INK, 1.0);
        canvas.frame(left, top, side, side, frame);
        for (k, name) in names.iter().enumerate() {
            let middle = cell * (k as f64 + 0.5);
            canvas.text((left - 7.0, top + middle + 0.36 * size), name, size, Anchor::End);
            let at = (left + middle + 0.3 * size, top + side + 8.0 + 0.5 * size);
            canvas.turned_text(at, name, size, Anchor::End, -45.0);
        }
        scale_bar(&mut canvas, left + side + 24.0, top, side.clamp(120.0, 260.0), largest);
        Picture(canvas.finish())
    }
}

/// The colours beside their values.
fn scale_bar(canvas: &mut Canvas, left: f64, top: f64, height: f64, largest: f64) {
    let steps = 60;
    for k in 0..steps {
        let share = 1.0 - 2.0 * (k as f64 + 0.5) / steps as f64;
        let h = height / steps as f64;
        canvas.rect(left, top + k as f64 * h, 16.0, h + 0.3, &diverging(share));
    }
    canvas.frame(left, top, 16.0, height, Stroke::solid(INK, 1.0));
    let decimals = if largest < 0.1 { 3 } else { 2 };
    for (share, value) in [(0.0, largest), (0.5, 0.0), (1.0, -largest)] {
        let at = (left + 22.0, top + share * height + 4.0);
        canvas.text(at, &number(value, decimals), 11.5, Anchor::Start);
    }
}

/// The diagonal of M, as arrays: how strongly each standardised feature enters the distance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Relevance {
    /// Names of the features, the most relevant first.
    pub names: Vec<String>,
    /// Their relevance.
    pub values: Vec<f64>,
}

impl Relevance {
    /// The relevance of all features of a model.
    pub fn new(model: &Model) -> Self {
        let (names, values) = (model.schema().encoded_names(), model.acting_metric().relevance());
        let order = by_relevance(model);
        Self {
            names: order.iter().map(|&k| names[k].clone()).collect(),
            values: order.iter().map(|&k| values[k]).collect(),
        }
    }

    /// Draws bars under a title; of many features the most relevant.
    pub fn draw(&self, title: &str) -> Picture {
        let n = self.values.len().min(MOST_BARS);
        let names: Vec<String> =
            self.names[..n].iter().map(|name| font::shorten(name, 12.0, NAME + 40.0)).collect();
        let room = names.iter().map(|name| font::width(name, 12.0)).fold(30.0, f64::max);
        let step = 24.0;
        let (left, top) = (30.0 + room, 58.0);
        let height = step * n as f64 + 8.0;
        let mut canvas = Canvas::new(left + 440.0 + 70.0, top + height + 56.0, title);
        let note = match n < self.values.len() {
            true => format!("The {n} most relevant of {} features", self.values.len()),
            false => String::new(),
        };
        canvas.heading(title, &note);
        let largest = self.values.first().copied().unwrap_or(0.0).max(f64::MIN_POSITIVE);
        let x = Range { low: 0.0, high: 1.04 * largest };
        let panel = Panel { left, top, width: 440.0, height, x, y: Range { low: 0.0, high: 1.0 } };
        let bottom = top + height;
        let (ticks, decimals) = x.ticks(5);
        for value in ticks {
            let (at, _) = panel.at(value, 0.0);
            canvas.line((at, top), (at, bottom), Stroke::solid("#dddddd", 0.8));
            canvas.line((at, bottom), (at, bottom + 5.0), Stroke::solid(INK, 1.0));
            canvas.text((at, bottom + 19.0), &number(value, decimals), 11.5, Anchor::Middle);
        }
        for (k, (name, &value)) in names.iter().zip(&self.values).enumerate() {
            let y = top + 4.0 + step * k as f64;
            let (end, _) = panel.at(value, 0.0);
            canvas.rect(left, y + 3.0, end - left, step - 6.0, colour(0));
            let middle = y + step / 2.0 + 4.0;
            canvas.text((left - 8.0, middle), name, 12.0, Anchor::End);
            let digits = decimals + if largest < 10.0 { 1 } else { 0 };
            canvas.text((end + 6.0, middle), &number(value, digits), 11.0, Anchor::Start);
        }
        canvas.line((left, top), (left, bottom), Stroke::solid(INK, 1.0));
        canvas.line((left, bottom), (left + 440.0, bottom), Stroke::solid(INK, 1.0));
        let label = "relevance: diagonal of M, standardised features";
        canvas.text((left + 220.0, bottom + 42.0), label, 13.0, Anchor::Middle);
        Picture(canvas.finish())
    }
}

/// The features, the most relevant first.
fn by_relevance(model: &Model) -> Vec<usize> {
    let values = model.acting_metric().relevance();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    order
}
