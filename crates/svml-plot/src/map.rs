//! The map as a picture: the decision as background, boundary and margins as lines, rows as markers.

use svml::figures::{Map, Point};

use crate::axis::{Legend, Panel, Range};
use crate::canvas::{Canvas, INK, Stroke, note_height};
use crate::contour::contour;
use crate::font;
use crate::style::{marker, tint};
use crate::{Draw, Picture};

/// Most classes that the legend lists, and from how many on its entries are closer together.
const LISTED: usize = 26;
const MANY: usize = 14;
const CLOSE: f64 = 17.0;

const BOUNDARY: Stroke = Stroke::solid(INK, 2.0);
const BETWEEN: Stroke = Stroke::solid(INK, 1.0);
const MARGIN: Stroke = Stroke { colour: INK, width: 1.2, dash: "6 4" };
const RING: Stroke = Stroke::solid("#000000", 1.0);

impl Draw for Map {
    fn draw(&self, title: &str) -> Picture {
        let widest = self
            .classes
            .iter()
            .take(LISTED)
            .map(|class| font::width(class, 11.5))
            .fold(font::width("unknown class", 11.5), f64::max)
            .min(170.0);
        let (left, width, height) = (100.0, 560.0, 440.0);
        let beside = left + width + 18.0;
        let whole = beside + 30.0 + widest + 16.0;
        let note = self.note();
        let panel = Panel {
            left,
            top: 62.0 + note_height(&note, whole),
            width,
            height,
            x: Range { low: self.x_range[0], high: self.x_range[1] },
            y: Range { low: self.y_range[0], high: self.y_range[1] },
        };
        let step = if self.classes.len() > MANY { CLOSE } else { 21.0 };
        let listed = Legend { step, ..Legend::new(beside, panel.top + 10.0, widest) };
        let entries = self.classes.len().min(LISTED) as f64 + 5.0;
        let tall = (panel.top + 30.0 + step * entries).max(panel.top + height + 74.0);
        let mut canvas = Canvas::new(whole, tall, title);
        canvas.long_heading(title, &note);
        canvas.clip(panel.left, panel.top, panel.width, panel.height);
        if !self.decided.is_empty() {
            background(self, &mut canvas, &panel);
        }
        let (radius, ring) = match self.points.len() > 500 {
            true => (3.2, Stroke { width: 0.6, ..RING }),
            false => (4.2, RING),
        };
        // Ringed ones last, so that their rings are on top.
        let ringed = |p: &Point| self.ringed && p.support;
        let mut order: Vec<&Point> = self.points.iter().collect();
        order.sort_by_key(|p| ringed(p));
        for point in order {
            let at = panel.at(point.x, point.y);
            marker(&mut canvas, point.class, at, radius);
            if ringed(point) {
                canvas.circle(at, radius + 0.6 * radius, "none", ring);
            }
        }
        canvas.unclip();
        panel.axes_in_pieces(&mut canvas, &self.axis_terms[0], &self.axis_terms[1]);
        legend(self, &mut canvas, listed);
        canvas.finish()
    }
}

/// The decision as colours, boundary and margins as lines.
fn background(map: &Map, canvas: &mut Canvas, panel: &Panel) {
    let rows = map.decided.len() / map.columns;
    let (w, h) = (panel.width / (map.columns - 1) as f64, panel.height / (rows - 1) as f64);
    for r in 0..rows {
        let mut c = 0;
        while c < map.columns {
            let look = |c: usize| {
                let k = r * map.columns + c;
                (map.decided[k], map.strength[k])
            };
            let start = c;
            while c < map.columns && look(c) == look(start) {
                c += 1;
            }
            let (class, strength) = look(start);
            let x = panel.left + (start as f64 - 0.5) * w;
            let y = panel.top + panel.height - (r as f64 + 0.5) * h;
            // A little larger, so that no seams show.
            let width = (c - start) as f64 * w + 0.4;
            canvas.rect(x, y - 0.2, width, h + 0.4, &tint(class, strength));
        }
    }
    let lines = |values: &[f64], level: f64| -> Vec<Vec<(f64, f64)>> {
        contour(values, map.columns, level)
            .into_iter()
            .map(|chain| {
                chain
                    .into_iter()
                    .map(|(c, r)| (panel.left + c * w, panel.top + panel.height - r * h))
                    .collect()
            })
            .collect()
    };
    match &map.decision {
        Some(values) => {
            if map.margins {
                canvas.path(&lines(values, -1.0), MARGIN);
                canvas.path(&lines(values, 1.0), MARGIN);
            }
            canvas.path(&lines(values, 0.0), BOUNDARY);
        }
        None => {
            for class in 0..map.classes.len() {
                let own: Vec<f64> =
                    map.decided.iter().map(|d| f64::from(u8::from(*d == class))).collect();
                canvas.path(&lines(&own, 0.5), BETWEEN);
            }
        }
    }
}

/// Classes, support vectors and lines, beside the map.
fn legend(map: &Map, canvas: &mut Canvas, mut legend: Legend) {
    for (class, name) in map.classes.iter().enumerate().take(LISTED) {
        legend.entry(canvas, name, |canvas, at| marker(canvas, Some(class), at, 4.6));
    }
    if map.classes.len() > LISTED {
        legend.note(canvas, &format!("\u{2026} and {} more", map.classes.len() - LISTED));
    }
    if map.points.iter().any(|p| p.class.is_none()) {
        legend.entry(canvas, "unknown class", |canvas, at| marker(canvas, None, at, 4.6));
    }
    legend.next += 8.0;
    if map.ringed && map.points.iter().any(|p| p.support) {
        legend.entry(canvas, "support vector", |canvas, at| {
            canvas.circle(at, 6.5, "none", RING);
        });
    }
    let line = |canvas: &mut Canvas, (x, y): (f64, f64), stroke| {
        canvas.line((x - 12.0, y), (x + 12.0, y), stroke);
    };
    if !map.decided.is_empty() {
        let look = if map.decision.is_some() { BOUNDARY } else { BETWEEN };
        legend.entry(canvas, "boundary", |canvas, at| line(canvas, at, look));
    }
    if map.margins {
        legend.entry(canvas, "margin, \u{00b1}1", |canvas, at| line(canvas, at, MARGIN));
    }
}
