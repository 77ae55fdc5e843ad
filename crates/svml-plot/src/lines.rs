//! Curves in panels side by side.

use crate::Picture;
use crate::axis::{Legend, Panel, Range};
use crate::canvas::{Anchor, Canvas, GREY, INK, Stroke};
use crate::font;
use crate::style::colour;

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it is.
    pub name: String,
    /// Its points, in order.
    pub points: Vec<(f64, f64)>,
}

/// One panel.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct CurvePanel {
    /// What stands below it.
    pub x_label: String,
    /// What stands to its left.
    pub y_label: String,
    /// Whether x counts something.
    pub whole_x: bool,
    /// Whether y is in percent.
    pub percent_y: bool,
    /// The curves.
    pub curves: Vec<Curve>,
    /// A place on the x axis to point out, and what it is.
    pub mark: Option<(f64, String)>,
}

/// The figure as arrays.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Lines {
    /// The panels, from left to right.
    pub panels: Vec<CurvePanel>,
}

/// Room left of each panel, for numbers and label.
const ROOM: f64 = 78.0;
const TOP: f64 = 66.0;
const HEIGHT: f64 = 330.0;

impl Lines {
    /// Draws the panels under a title and a line of grey text.
    pub fn draw(&self, title: &str, note: &str) -> Picture {
        let names = self.panels.iter().flat_map(|panel| &panel.curves).map(|c| c.name.as_str());
        let widest = names.map(|name| font::width(name, 11.5)).fold(40.0, f64::max).min(200.0);
        let count = self.panels.len().max(1) as f64;
        let width = if self.panels.len() > 1 { 330.0 } else { 520.0 };
        let legend_left = count * (ROOM + width + 12.0) + 8.0;
        let mut canvas =
            Canvas::new(legend_left + 30.0 + widest + 16.0, TOP + HEIGHT + 58.0, title);
        canvas.heading(title, note);
        let mut legend = Legend::new(legend_left, TOP + 10.0, widest);
        // A curve that is alone in its panel is named by the label of the axis.
        let mut next = 0;
        for (k, panel) in self.panels.iter().enumerate() {
            let left = k as f64 * (ROOM + width + 12.0) + ROOM;
            let single = panel.curves.len() == 1;
            let first = if single { SINGLE } else { next };
            panel.draw(&mut canvas, left, width, first);
            if single && self.panels.len() > 1 {
                continue;
            }
            for (c, curve) in panel.curves.iter().enumerate() {
                legend.entry(&mut canvas, &curve.name, |canvas, (x, y)| {
                    canvas.line((x - 12.0, y), (x + 12.0, y), look(first + c));
                    sign(canvas, (x, y), first + c);
                });
            }
            next += panel.curves.len();
        }
        canvas.finish()
    }
}

impl CurvePanel {
    fn draw(&self, canvas: &mut Canvas, left: f64, width: f64, first: usize) {
        let points = || self.curves.iter().flat_map(|curve| curve.points.iter());
        let panel = Panel {
            left,
            top: TOP,
            width,
            height: HEIGHT,
            x: Range::around(points().map(|p| p.0), 0.03),
            y: Range::around(points().map(|p| p.1), 0.06),
        };
        panel.grid(canvas);
        if let Some((at, text)) = &self.mark {
            let (x, _) = panel.at(*at, panel.y.low);
            let dotted = Stroke { colour: GREY, width: 1.2, dash: "3 3" };
            canvas.line((x, panel.top), (x, panel.top + panel.height), dotted);
            let (x, anchor) = match panel.x.share(*at) > 0.5 {
                true => (x - 5.0, Anchor::End),
                false => (x + 5.0, Anchor::Start),
            };
            canvas.styled_text((x, panel.top + 15.0), text, 11.5, anchor, GREY);
        }
        for (c, drawn) in self.curves.iter().enumerate() {
            let (x, y): (Vec<f64>, Vec<f64>) = drawn.points.iter().copied().unzip();
            curve(canvas, &panel, &x, &y, first + c);
        }
        panel.axes(canvas, &self.x_label, &self.y_label, self.whole_x, self.percent_y);
    }
}

/// The look of a curve that is alone.
pub(crate) const SINGLE: usize = 3;

/// Each curve has its own colour, dashes and markers.
pub(crate) fn look(k: usize) -> Stroke {
    let dash = ["", "7 3", "2 3", "", "9 3 2 3", "4 2"][k % 6];
    let colour = [colour(0), colour(5), colour(2), INK, colour(3), colour(1)][k % 6];
    Stroke { colour, width: 1.8, dash }
}

/// The marker of a curve.
pub(crate) fn sign(canvas: &mut Canvas, at: (f64, f64), k: usize) {
    let (fill, edge) = (look(k).colour, Stroke::solid("#1a1a1a", 0.6));
    let (x, y) = at;
    match k % 6 {
        1 => canvas.polygon(&[(x, y - 4.5), (x + 4.0, y + 3.2), (x - 4.0, y + 3.2)], fill, edge),
        2 => canvas.polygon(
            &[(x - 3.2, y - 3.2), (x + 3.2, y - 3.2), (x + 3.2, y + 3.2), (x - 3.2, y + 3.2)],
            fill,
            edge,
        ),
        4 => canvas.polygon(&[(x, y - 4.6), (x + 4.6, y), (x, y + 4.6), (x - 4.6, y)], fill, edge),
        5 => canvas.polygon(&[(x, y + 4.5), (x + 4.0, y - 3.2), (x - 4.0, y - 3.2)], fill, edge),
        _ => canvas.circle(at, 3.2, fill, edge),
    }
}

/// A curve with some markers on it.
pub(crate) fn curve(canvas: &mut Canvas, panel: &Panel, x: &[f64], y: &[f64], k: usize) {
    let points: Vec<(f64, f64)> = x.iter().zip(y).map(|(x, y)| panel.at(*x, *y)).collect();
    // With many steps not every one has a marker.
    let every = points.len().div_ceil(25).max(1);
    canvas.path(std::slice::from_ref(&points), look(k));
    points.iter().step_by(every).for_each(|&at| sign(canvas, at, k));
}
