//! The relevance of the features as bars, with thin lines for how far the SVMs of a mean lie apart.

use svml::figures::Relevance;

use crate::axis::{Panel, Range, number};
use crate::font;
use crate::style::colour;
use crate::svg::{Anchor, Canvas, INK, Stroke, capitalised};
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
        let spread = self.is_spread();
        let mut notes = Vec::new();
        if spread {
            notes.push(
                "Bars: mean of the SVMs; lines: from the least to the largest of them".to_owned(),
            );
        }
        if n < self.values.len() {
            notes.push(format!("the {n} most relevant of {} features", self.values.len()));
        }
        canvas.heading(title, &capitalised(&notes.join("; ")));
        // In percent.
        let percent = |values: &[f64]| values.iter().take(n).map(|v| 100.0 * v).collect();
        let (values, low, high): (Vec<f64>, Vec<f64>, Vec<f64>) =
            (percent(&self.values), percent(&self.low), percent(&self.high));
        let largest = high.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let x = Range { low: 0.0, high: 1.04 * largest };
        let panel = Panel { left, top, width: 440.0, height, x, y: Range { low: 0.0, high: 1.0 } };
        let bottom = top + height;
        let (ticks, decimals) = x.ticks(5);
        for value in ticks {
            let (at, _) = panel.at(value, 0.0);
            canvas.line((at, top), (at, bottom), Stroke::solid("#dddddd", 0.8));
            canvas.line((at, bottom), (at, bottom + 5.0), Stroke::solid(INK, 1.0));
            let text = number(value, decimals) + " %";
            canvas.text((at, bottom + 19.0), &text, 11.5, Anchor::Middle);
        }
        for (k, (name, &value)) in names.iter().zip(&values).enumerate() {
            let y = top + 4.0 + step * k as f64;
            let (end, _) = panel.at(value, 0.0);
            canvas.rect(left, y + 3.0, end - left, step - 6.0, colour(0));
            let middle = y + step / 2.0 + 4.0;
            canvas.text((left - 8.0, middle), name, 12.0, Anchor::End);
            // With lines across the bars the numbers stand in a column of their own.
            let beside = if spread { left + 440.0 } else { end };
            if spread {
                let (from, to, at) =
                    (panel.at(low[k], 0.0).0, panel.at(high[k], 0.0).0, y + step / 2.0);
                canvas.line((from, at), (to, at), Stroke::solid(INK, 1.2));
                for end in [from, to] {
                    canvas.line((end, at - 3.5), (end, at + 3.5), Stroke::solid(INK, 1.2));
                }
            }
            let text = number(value, decimals + 1) + " %";
            canvas.text((beside + 6.0, middle), &text, 11.0, Anchor::Start);
        }
        canvas.line((left, top), (left, bottom), Stroke::solid(INK, 1.0));
        canvas.line((left, bottom), (left + 440.0, bottom), Stroke::solid(INK, 1.0));
        let label = "relevance: share of the diagonal of M, standardised features";
        canvas.text((left + 220.0, bottom + 42.0), label, 13.0, Anchor::Middle);
        Picture(canvas.finish())
    }
}
