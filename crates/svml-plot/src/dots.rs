//! Names below each other, and for each a value in one or more series, with its interval: times of
//! methods, differences between them.

use crate::Picture;
use crate::axis::{Legend, Panel, Range, Ticks, log_ticks, number};
use crate::canvas::{Anchor, Canvas, GREY, INK, Stroke};
use crate::font;
use crate::style::{colour, marker};

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Its name, as an index into [`Dots::names`].
    pub name: usize,
    /// Its series, as an index into [`Dots::series`].
    pub series: usize,
    /// The value.
    pub value: f64,
    /// Ends of its interval, if it has one.
    pub interval: Option<(f64, f64)>,
}

/// One panel; all panels have the same names.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DotPanel {
    /// What stands above it.
    pub title: String,
    /// The values.
    pub marks: Vec<Mark>,
}

/// The figure as arrays.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Dots {
    /// The names, from the top.
    pub names: Vec<String>,
    /// The series; a single one has no legend.
    pub series: Vec<String>,
    /// The panels, row after row.
    pub panels: Vec<DotPanel>,
    /// Panels in a row.
    pub columns: usize,
    /// What the axis is.
    pub label: String,
    /// Whether the axis is logarithmic; values that are not positive are left out then.
    pub logarithmic: bool,
    /// A value to compare with, drawn as a line.
    pub reference: Option<f64>,
}

/// Height of a name.
const STEP: f64 = 19.0;
const TOP: f64 = 62.0;
const GAP: f64 = 18.0;

impl Dots {
    /// Draws the panels under a title and a line of grey text.
    pub fn draw(&self, title: &str, note: &str) -> Picture {
        let names: Vec<String> =
            self.names.iter().map(|name| font::shorten(name, 11.5, 180.0)).collect();
        let room = names.iter().map(|name| font::width(name, 11.5)).fold(30.0, f64::max) + 26.0;
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let width = if columns > 1 { 215.0 } else { 560.0 };
        let height = STEP * names.len() as f64 + 8.0;
        let titled = self.panels.iter().any(|panel| !panel.title.is_empty());
        let (above, below) = (if titled { 22.0 } else { 0.0 }, 30.0);
        let rows = self.panels.len().div_ceil(columns);
        let right = room + columns as f64 * (width + GAP);
        let widest = match self.series.len() {
            0 | 1 => 0.0,
            _ => 40.0 + self.series.iter().map(|s| font::width(s, 11.5)).fold(0.0, f64::max),
        };
        let bottom = TOP + rows as f64 * (above + height + below);
        let mut canvas = Canvas::new(right + widest + 8.0, bottom + 28.0, title);
        canvas.heading(title, note);
        for (k, drawn) in self.panels.iter().enumerate() {
            let (row, column) = (k / columns, k % columns);
            let panel = Panel {
                left: room + column as f64 * (width + GAP),
                top: TOP + row as f64 * (above + height + below) + above,
                width,
                height,
                x: self.range(drawn),
                y: Range { low: 0.0, high: 1.0 },
            };
            self.draw_panel(&mut canvas, &panel, drawn);
            if column == 0 {
                for (n, name) in names.iter().enumerate() {
                    let at = (panel.left - 10.0, place(&panel, n) + 4.0);
                    canvas.text(at, name, 11.5, Anchor::End);
                }
            }
        }
        let middle = room + (right - GAP - room) / 2.0;
        canvas.text((middle, bottom + 14.0), &self.label, 13.0, Anchor::Middle);
        if self.series.len() > 1 {
            let mut legend = Legend::new(right, TOP + 10.0, widest);
            for (k, name) in self.series.iter().enumerate() {
                legend.entry(&mut canvas, name, |canvas, at| marker(canvas, Some(k), at, 4.4));
            }
        }
        canvas.finish()
    }

    /// Where a value is on the axis.
    fn scaled(&self, value: f64) -> f64 {
        if self.logarithmic { value.log10() } else { value }
    }

    fn range(&self, panel: &DotPanel) -> Range {
        let values = panel.marks.iter().flat_map(|mark| {
            let (low, high) = mark.interval.unwrap_or((mark.value, mark.value));
            [mark.value, low, high]
        });
        Range::around(values.chain(self.reference).map(|v| self.scaled(v)), 0.06)
    }

    fn draw_panel(&self, canvas: &mut Canvas, panel: &Panel, drawn: &DotPanel) {
        let bottom = panel.top + panel.height;
        let most = (panel.width / 52.0) as usize;
        let ticks: Ticks = match self.logarithmic {
            true => log_ticks(panel.x, most),
            false => {
                let (ticks, decimals) = panel.x.ticks(most);
                ticks.into_iter().map(|v| (v, number(v, decimals))).collect()
            }
        };
        for n in 0..self.names.len() {
            let y = place(panel, n);
            let faint = Stroke::solid("#ececec", 0.8);
            canvas.line((panel.left, y), (panel.left + panel.width, y), faint);
        }
        for (at, text) in &ticks {
            let (x, _) = panel.at(*at, 0.0);
            canvas.line((x, panel.top), (x, bottom), Stroke::solid("#dddddd", 0.8));
            canvas.line((x, bottom), (x, bottom + 4.0), Stroke::solid(INK, 1.0));
            canvas.text((x, bottom + 16.0), text, 10.5, Anchor::Middle);
        }
        if let Some(reference) = self.reference {
            let (x, _) = panel.at(self.scaled(reference), 0.0);
            let dashed = Stroke { colour: GREY, width: 1.4, dash: "5 3" };
            canvas.line((x, panel.top), (x, bottom), dashed);
        }
        for mark in &drawn.marks {
            if !self.scaled(mark.value).is_finite() {
                continue;
            }
            let y = place(panel, mark.name);
            let x = |value: f64| panel.at(self.scaled(value), 0.0).0;
            if let Some((low, high)) = mark.interval {
                let stroke = Stroke::solid(colour(mark.series), 1.8);
                canvas.line((x(low), y), (x(high), y), stroke);
                for end in [x(low), x(high)] {
                    canvas.line((end, y - 3.5), (end, y + 3.5), stroke);
                }
            }
            marker(canvas, Some(mark.series), (x(mark.value), y), 3.8);
        }
        canvas.frame(panel.left, panel.top, panel.width, panel.height, Stroke::solid(INK, 1.0));
        let at = (panel.left, panel.top - 7.0);
        canvas.text(at, &font::shorten(&drawn.title, 12.5, panel.width), 12.5, Anchor::Start);
    }
}

/// The middle of a name's line.
fn place(panel: &Panel, name: usize) -> f64 {
    panel.top + 4.0 + STEP * (name as f64 + 0.5)
}
