//! The map as a picture: the decision as background, boundary and margins as lines, rows as markers.

use svml::figures::{Map, Point};

use crate::axis::{Legend, Panel, Range};
use crate::contour::contour;
use crate::font;
use crate::style::{marker, tint};
use crate::svg::{Canvas, INK, Stroke};
use crate::{Draw, Picture};

/// Most classes that the legend lists.
const LISTED: usize = 16;

const BOUNDARY: Stroke = Stroke::solid(INK, 2.0);
const MARGIN: Stroke = Stroke { colour: INK, width: 1.2, dash: "6 4" };
const RING: Stroke = Stroke::solid("#000000", 1.0);

impl Draw for Map {
    fn draw(&self, title: &str) -> Picture {
        let widest = self
            .classes
            .iter()
            .take(LISTED)
            .map(|class| font::width(class, 11.5))
            .fold(font::width("support vector", 11.5), f64::max)
            .min(170.0);
        let panel = Panel {
            left: 78.0,
            top: 62.0,
            width: 560.0,
            height: 440.0,
            x: Range { low: self.x_range[0], high: self.x_range[1] },
            y: Range { low: self.y_range[0], high: self.y_range[1] },
        };
        let left = panel.left + panel.width + 18.0;
        let mut canvas = Canvas::new(left + 30.0 + widest + 16.0, 560.0, title);
        let mut note = match &self.background {
            Some(background) => format!("Background: {background}"),
            None => "Rows as the metric sees them".to_owned(),
        };
        if self.points.len() < self.rows {
            note.push_str(&format!("; {} of {} rows are drawn", self.points.len(), self.rows));
        }
        let inside = |p: &&Point| {
            (0.0..=1.0).contains(&panel.x.share(p.x)) && (0.0..=1.0).contains(&panel.y.share(p.y))
        };
        let outside = self.points.len() - self.points.iter().filter(inside).count();
        if outside > 0 {
            note.push_str(&format!("; outside the frame: {outside}"));
        }
        canvas.heading(title, &note);
        canvas.clip(panel.left, panel.top, panel.width, panel.height);
        if !self.decided.is_empty() {
            background(self, &mut canvas, &panel);
        }
        let (radius, ring) = match self.points.len() > 500 {
            true => (3.2, Stroke { width: 0.6, ..RING }),
            false => (4.2, RING),
        };
        // Support vectors last, so that their rings are on top.
        let mut order: Vec<&Point> = self.points.iter().collect();
        order.sort_by_key(|p| p.support);
        for point in order {
            let at = panel.at(point.x, point.y);
            marker(&mut canvas, point.class, at, radius);
            if point.support {
                canvas.circle(at, radius + 0.6 * radius, "none", ring);
            }
        }
        canvas.unclip();
        panel.axes(&mut canvas, &self.axis_labels[0], &self.axis_labels[1], false, false);
        legend(self, &mut canvas, Legend { left, next: panel.top + 10.0, most: widest });
        Picture(canvas.finish())
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
                canvas.path(&lines(&own, 0.5), Stroke::solid(INK, 1.0));
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
        legend.entry(canvas, "class not known", |canvas, at| marker(canvas, None, at, 4.6));
    }
    legend.next += 8.0;
    if map.points.iter().any(|p| p.support) {
        legend.entry(canvas, "support vector", |canvas, at| {
            canvas.circle(at, 6.5, "none", RING);
        });
    }
    let line = |canvas: &mut Canvas, (x, y): (f64, f64), stroke| {
        canvas.line((x - 12.0, y), (x + 12.0, y), stroke);
    };
    if !map.decided.is_empty() {
        legend.entry(canvas, "boundary", |canvas, at| line(canvas, at, BOUNDARY));
    }
    if map.margins {
        legend.entry(canvas, "margin, \u{00b1}1", |canvas, at| line(canvas, at, MARGIN));
    }
}
