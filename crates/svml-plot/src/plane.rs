//! The plane of two positive parameters: what grid searches saw in its cells, and the paths that descents
//! took across it.

use crate::Picture;
use crate::axis::{Legend, Panel, Range, Ticks, number};
use crate::canvas::{Anchor, Canvas, INK, Stroke};
use crate::style::tint;

/// The path of one descent.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PlanePath {
    /// Its points, from the start.
    pub points: Vec<(f64, f64)>,
    /// The point that was kept.
    pub kept: usize,
}

/// The figure as arrays.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Plane {
    /// What the horizontal axis is.
    pub x_label: String,
    /// What the vertical axis is.
    pub y_label: String,
    /// The grid along x, ascending.
    pub x: Vec<f64>,
    /// The grid along y, ascending.
    pub y: Vec<f64>,
    /// Percentages in the cells, for each y all x; of several searches their mean.
    pub cells: Vec<Vec<f64>>,
    /// The cell that each grid search chose, as indices into x and y.
    pub chosen: Vec<(usize, usize)>,
    /// The paths. A single one shows its steps; of several only the lines and the points that were kept are
    /// drawn.
    pub paths: Vec<PlanePath>,
    /// What descended.
    pub path_name: String,
}

const PATH: Stroke = Stroke::solid("#d55e00", 2.2);
/// One path of many.
const THIN: Stroke = Stroke::solid("#c9793f", 1.0);
const EDGE: Stroke = Stroke::solid("#1a1a1a", 0.8);

impl Plane {
    /// Draws the plane under a title and a line of grey text.
    pub fn draw(&self, title: &str, note: &str) -> Picture {
        let (x_edges, y_edges) = (edges(&self.x), edges(&self.y));
        let passed = || self.paths.iter().flat_map(|path| &path.points).filter(|p| positive(p));
        let along = |edges: &[f64], values: Vec<f64>| {
            let grid = Range::around(edges.iter().copied(), 0.0);
            let path = Range::around(values.into_iter().chain(edges.iter().copied()), 0.0);
            let margin = 0.04 * (path.high - path.low);
            // Room only on the sides where the path leaves the grid.
            Range {
                low: path.low - if path.low < grid.low { margin } else { 0.0 },
                high: path.high + if path.high > grid.high { margin } else { 0.0 },
            }
        };
        let panel = Panel {
            left: 84.0,
            top: 66.0,
            width: 500.0,
            height: 360.0,
            x: along(&x_edges, passed().map(|p| p.0.log10()).collect()),
            y: along(&y_edges, passed().map(|p| p.1.log10()).collect()),
        };
        let left = panel.left + panel.width + 20.0;
        let mut canvas = Canvas::new(left + 190.0, 486.0, title);
        canvas.heading(title, note);
        let all = || self.cells.iter().flatten().copied();
        let range = Range::around(all(), 0.0);
        for (r, row) in self.cells.iter().enumerate() {
            for (c, &value) in row.iter().enumerate() {
                let (x0, y0) = panel.at(x_edges[c], y_edges[r]);
                let (x1, y1) = panel.at(x_edges[c + 1], y_edges[r + 1]);
                // The lower the error, the stronger the colour; but numbers stay legible.
                let strength = 0.05 + 0.5 * (1.0 - range.share(value)).powi(2);
                canvas.rect(x0, y1, x1 - x0, y0 - y1, &tint(0, strength));
                canvas.frame(x0, y1, x1 - x0, y0 - y1, Stroke::solid("#ffffff", 1.0));
                let at = (x0 + 8.0, y0 - 8.0);
                canvas.text(at, &number(value, 1), 11.5, Anchor::Start);
            }
        }
        self.draw_choices(&mut canvas, &panel, &x_edges, &y_edges);
        self.draw_paths(&mut canvas, &panel);
        let ticks = |values: &[f64]| -> Ticks {
            values.iter().map(|v| (v.log10(), v.to_string())).collect()
        };
        let (x_ticks, y_ticks) = (ticks(&self.x), ticks(&self.y));
        panel.axes_at(&mut canvas, (&self.x_label, &x_ticks), (&self.y_label, &y_ticks));
        self.legend(&mut canvas, Legend::new(left, panel.top + 10.0, 150.0));
        canvas.finish()
    }

    /// How often a cell was chosen.
    fn times_chosen(&self, cell: (usize, usize)) -> usize {
        self.chosen.iter().filter(|chosen| **chosen == cell).count()
    }

    /// A frame around what was chosen most often, one cell or several alike, and how often each was if there were several
    /// searches.
    fn draw_choices(&self, canvas: &mut Canvas, panel: &Panel, x: &[f64], y: &[f64]) {
        let all = || (0..self.y.len()).flat_map(|r| (0..self.x.len()).map(move |c| (c, r)));
        let most = all().map(|cell| self.times_chosen(cell)).max().filter(|most| *most > 0);
        for (c, r) in all() {
            let (x0, y0) = panel.at(x[c], y[r]);
            let (x1, y1) = panel.at(x[c + 1], y[r + 1]);
            if Some(self.times_chosen((c, r))) == most {
                let (w, h) = (x1 - x0 - 3.0, y0 - y1 - 3.0);
                canvas.frame(x0 + 1.5, y1 + 1.5, w, h, Stroke::solid(INK, 2.4));
            }
            let times = self.times_chosen((c, r));
            if self.chosen.len() > 1 && times > 0 {
                canvas.text((x1 - 8.0, y0 - 8.0), &format!("{times}\u{d7}"), 11.5, Anchor::End);
            }
        }
    }

    fn draw_paths(&self, canvas: &mut Canvas, panel: &Panel) {
        let on_panel = |p: &(f64, f64)| panel.at(p.0.log10(), p.1.log10());
        let several = self.paths.len() > 1;
        for path in &self.paths {
            let points: Vec<(f64, f64)> =
                path.points.iter().filter(|p| positive(p)).map(on_panel).collect();
            canvas.path(std::slice::from_ref(&points), if several { THIN } else { PATH });
            if !several {
                points.iter().for_each(|at| canvas.circle(*at, 3.4, "#ffffff", PATH));
            }
        }
        let first = |path: &PlanePath| path.points.first().copied().filter(positive);
        self.paths.iter().filter_map(first).for_each(|p| square(canvas, on_panel(&p)));
        let kept = |path: &PlanePath| path.points.get(path.kept).copied().filter(positive);
        for p in self.paths.iter().filter_map(kept) {
            canvas.circle(on_panel(&p), if several { 4.0 } else { 6.0 }, PATH.colour, EDGE);
        }
    }

    fn legend(&self, canvas: &mut Canvas, mut legend: Legend) {
        let several = self.paths.len() > 1;
        legend.entry(canvas, &self.path_name, |canvas, (x, y)| {
            canvas.line((x - 12.0, y), (x + 12.0, y), if several { THIN } else { PATH });
            if !several {
                canvas.circle((x, y), 3.4, "#ffffff", PATH);
            }
        });
        legend.entry(canvas, if several { "the start" } else { "its start" }, square);
        let kept = if several { "the steps that were kept" } else { "the step that was kept" };
        legend.entry(canvas, kept, |canvas, at| {
            canvas.circle(at, if several { 4.0 } else { 6.0 }, PATH.colour, EDGE);
        });
        legend.next += 8.0;
        let choice = match self.chosen.len() {
            0 | 1 => "the grid's choice",
            _ => "chosen most often",
        };
        legend.entry(canvas, choice, |canvas, (x, y)| {
            canvas.frame(x - 10.0, y - 7.0, 20.0, 14.0, Stroke::solid(INK, 2.4));
        });
        legend.note(canvas, "In the cells: error in %");
        if self.chosen.len() > 1 {
            legend.note(canvas, "by cross-validation (mean);");
            legend.note(canvas, "how often the grid chose it");
        } else {
            legend.note(canvas, "by cross-validation");
        }
    }
}

/// Whether a point has a place on logarithmic axes.
fn positive(p: &(f64, f64)) -> bool {
    p.0 > 0.0 && p.1 > 0.0
}

fn square(canvas: &mut Canvas, (x, y): (f64, f64)) {
    let corners = [(x - 5.0, y - 5.0), (x + 5.0, y - 5.0), (x + 5.0, y + 5.0), (x - 5.0, y + 5.0)];
    canvas.polygon(&corners, "#ffffff", PATH);
}

/// Decimal logarithms of the borders between cells: halfway between neighbours.
fn edges(values: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = values.iter().map(|v| v.log10()).collect();
    let half = |a: f64, b: f64| (b - a) / 2.0;
    let first = logs.windows(2).next().map_or(0.5, |w| half(w[0], w[1]));
    let last = logs.windows(2).last().map_or(0.5, |w| half(w[0], w[1]));
    let mut edges = Vec::with_capacity(logs.len() + 1);
    edges.extend(logs.first().map(|l| l - first));
    edges.extend(logs.windows(2).map(|w| (w[0] + w[1]) / 2.0));
    edges.extend(logs.last().map(|l| l + last));
    edges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_halfway() {
        let found = edges(&[0.1, 1.0, 100.0]);
        let expected = [-1.5, -0.5, 1.0, 3.0];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }
}
