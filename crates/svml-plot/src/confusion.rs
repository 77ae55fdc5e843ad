//! The confusion matrix as a picture.

use svml::figures::Confusion;

use crate::canvas::{Anchor, Canvas, INK, Stroke, note_height};
use crate::font;
use crate::style::tint;
use crate::{Draw, Picture};

/// Widest name of a class.
const NAME: f64 = 150.0;

impl Draw for Confusion {
    fn draw(&self, title: &str) -> Picture {
        let n = self.classes.len();
        let cell = (520.0 / n.max(1) as f64).clamp(15.0, 76.0);
        let size = (cell * 0.5).clamp(8.5, 12.0);
        let names: Vec<String> =
            self.classes.iter().map(|name| font::shorten(name, size, NAME)).collect();
        let room = names.iter().map(|name| font::width(name, size)).fold(0.0, f64::max);
        let side = cell * n as f64;
        let left = 52.0 + room;
        let width = (left + side + 24.0).max(440.0);
        let [low, high] = self.interval.map(|end| 100.0 * end);
        let shares = match cell >= 44.0 {
            true => "; in percent of the rows of the true class",
            false => "; colour: share of the rows of the true class",
        };
        let note = format!(
            "{} rows, error {:.1} % (95 % interval {low:.1} to {high:.1}){shares}. Use rows that the model was not trained on",
            self.rows,
            100.0 * self.error
        );
        let top = 62.0 + note_height(&note, width);
        // Names below are askew where they would meet.
        let askew = names.iter().any(|name| font::width(name, size) > cell - 6.0);
        let below = if askew { 16.0 + 0.75 * room } else { 24.0 };
        let mut canvas = Canvas::new(width, top + side + below + 34.0, title);
        canvas.long_heading(title, &note);
        for (c, counts) in self.counts.iter().enumerate() {
            for (p, &count) in counts.iter().enumerate() {
                let share = self.shares[c][p];
                let (x, y) = (left + cell * p as f64, top + cell * c as f64);
                // Right ones blue, wrong ones vermillion, the stronger the more of the class they are.
                let strength = if count == 0 { 0.0 } else { 0.06 + 0.79 * share };
                canvas.rect(x, y, cell, cell, &tint(if c == p { 0 } else { 5 }, strength));
                canvas.frame(x, y, cell, cell, Stroke::solid("#e4e4e4", 0.7));
                let ink = if strength > 0.55 { "#ffffff" } else { INK };
                let middle = x + cell / 2.0;
                let text = count.to_string();
                let fits = |size: f64| size.min(0.88 * cell / font::width(&text, 1.0));
                if cell >= 44.0 {
                    let (y, size) = (y + cell / 2.0 - 2.0, fits(14.0));
                    canvas.styled_text((middle, y), &text, size, Anchor::Middle, ink);
                    if count > 0 {
                        let percent = format!("{:.1} %", 100.0 * share);
                        let at = (middle, y + 15.0);
                        canvas.styled_text(at, &percent, 10.0, Anchor::Middle, ink);
                    }
                } else if count > 0 && fits(11.0) >= 6.0 {
                    let size = fits(11.0);
                    let at = (middle, y + cell / 2.0 + 0.36 * size);
                    canvas.styled_text(at, &text, size, Anchor::Middle, ink);
                }
            }
        }
        canvas.frame(left, top, side, side, Stroke::solid(INK, 1.0));
        for (k, name) in names.iter().enumerate() {
            let middle = cell * (k as f64 + 0.5);
            canvas.text((left - 8.0, top + middle + 0.36 * size), name, size, Anchor::End);
            let (x, y) = (left + middle, top + side + 8.0 + 0.7 * size);
            match askew {
                true => canvas.turned_text((x + 0.3 * size, y), name, size, Anchor::End, -45.0),
                false => canvas.text((x, y + 2.0), name, size, Anchor::Middle),
            }
        }
        let bottom = top + side + below + 20.0;
        let at = (left + side / 2.0, bottom);
        canvas.styled_text(at, "predicted class", 13.0, Anchor::Middle, INK);
        let at = (22.0, top + side / 2.0);
        canvas.turned_text(at, "true class", 13.0, Anchor::Middle, -90.0);
        canvas.finish()
    }
}
