//! The matrix M of the metric as a heat map with names.

use svml::figures::MetricMatrix;

use crate::axis::number;
use crate::canvas::{Anchor, Canvas, INK, Stroke, capitalised};
use crate::font;
use crate::relevance::Bars;
use crate::style::diverging;
use crate::{Draw, Picture};

/// Widest name at an axis.
const NAME: f64 = 150.0;
/// Entries below this share of the largest need no sign.
const NEGLIGIBLE: f64 = 0.02;
/// Most bars of a diagonal matrix.
const BARS: usize = 30;

impl Draw for MetricMatrix {
    fn draw(&self, title: &str) -> Picture {
        if self.is_diagonal() {
            return diagonal(self, title);
        }
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
        let largest = self.values.as_slice().iter().fold(0.0_f64, |a, v| a.max(v.abs()));
        let mut notes = Vec::new();
        if self.mean_of > 1 {
            notes.push(format!("mean over the M of {} SVMs, each scaled to trace 1", self.mean_of));
        }
        if self.values.as_slice().iter().any(|value| *value < -NEGLIGIBLE * largest) {
            notes.push("blue with ticks: negative".to_owned());
        }
        if n < self.features {
            notes.push(format!("the {n} most relevant of {} features", self.features));
        }
        canvas.heading(title, &capitalised(&notes.join("; ")));
        let scale = largest.max(f64::MIN_POSITIVE);
        let figures = cell >= 34.0;
        for (k, &value) in self.values.as_slice().iter().enumerate() {
            let (x, y) = (left + cell * (k % n) as f64, top + cell * (k / n) as f64);
            canvas.rect(x, y, cell, cell, &diverging(value / scale));
            if value < -NEGLIGIBLE * scale {
                let thin = Stroke::solid("#003a5c", 0.8);
                canvas.line((x + cell * 0.78, y + 2.0), (x + cell - 2.0, y + cell * 0.22), thin);
                canvas.line((x + 2.0, y + cell * 0.78), (x + cell * 0.22, y + cell - 2.0), thin);
            }
            if figures {
                let text = shown(value, largest);
                let size = 11.0_f64.min(cell * 0.9 / font::width(&text, 1.0));
                let at = (x + cell / 2.0, y + cell / 2.0 + 0.36 * size);
                let dark = (value / scale).abs() > 0.85;
                let ink = if dark { "#ffffff" } else { INK };
                canvas.styled_text(at, &text, size, Anchor::Middle, ink);
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
        canvas.finish()
    }
}

/// A diagonal matrix as bars, the longest first: all its other entries are zero and need no picture.
fn diagonal(metric: &MetricMatrix, title: &str) -> Picture {
    let mut order: Vec<usize> = (0..metric.names.len()).collect();
    let entry = |k: usize| metric.values[(k, k)];
    order.sort_by(|&a, &b| entry(b).total_cmp(&entry(a)));
    order.truncate(BARS);
    let mut note =
        "M is diagonal: one weight for each feature, and all other entries are 0".to_owned();
    if metric.mean_of > 1 {
        note += &format!("; mean over the M of {} SVMs, each scaled to trace 1", metric.mean_of);
    }
    if order.len() < metric.features {
        note += &format!("; the {} most relevant of {} features", order.len(), metric.features);
    }
    let values: Vec<f64> = order.iter().map(|&k| entry(k)).collect();
    let names: Vec<String> = order.iter().map(|&k| metric.names[k].clone()).collect();
    let label = "diagonal entry of M, standardised features";
    Bars { names: &names, values: &values, low: &values, high: &values, unit: "", label }
        .draw(title, &note)
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
    for (share, value) in [(0.0, largest), (0.5, 0.0), (1.0, -largest)] {
        let at = (left + 22.0, top + share * height + 4.0);
        canvas.text(at, &shown(value, largest), 11.5, Anchor::Start);
    }
}

/// An entry of a matrix of which `largest` is the largest. One that is nothing beside it has no more digits than the others.
fn shown(value: f64, largest: f64) -> String {
    let decimals = if largest < 0.1 { 3 } else { 2 };
    number(if value.abs() < 0.002 * largest { 0.0 } else { value }, decimals)
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn entries_have_the_digits_that_their_size_needs() {
        assert_eq!(shown(8.5e-5, 0.21), "0.00");
        assert_eq!(shown(-8.5e-5, 0.21), "0.00");
        assert_eq!(shown(-0.02, 0.21), "\u{2212}0.02");
        assert_eq!(shown(0.02, 0.05), "0.020");
        assert_eq!(shown(3e-6, 1e-5), "3.0e-6");
    }
}
