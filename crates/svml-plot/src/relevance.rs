//! The relevance of the features as bars.

use svml::figures::Relevance;

use crate::axis::{Panel, Range, number};
use crate::font;
use crate::style::colour;
use crate::svg::{Anchor, Canvas, INK, Stroke};
use crate::{Draw, Picture};

/// Most bars; of more features the most relevant are drawn.
const MOST: usize = 30;
/// Widest name at an axis.
const NAME: f64 = 190.0;

impl Draw for Relevance {
    fn draw(&self, title: &str) -> Picture {
        let n = self.values.len().min(MOST);
        let names: Vec<String> =
            self.names[..n].iter().map(|name| font::shorten(name, 12.0, NAME)).collect();
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
