//! The relevance of the features as bars, with thin lines for how far the SVMs of a mean lie apart.

use svml::figures::Relevance;

use crate::axis::{Panel, Range, number};
use crate::canvas::{Anchor, Canvas, INK, Stroke, capitalised, note_height};
use crate::font;
use crate::style::colour;
use crate::{Draw, Picture};

/// Most bars; of more features the most relevant are drawn.
const MOST: usize = 30;
/// Widest name at an axis.
const NAME: f64 = 190.0;

/// A value for each of some names, with the ends of its interval.
pub(crate) struct Bars<'a> {
    pub names: &'a [String],
    pub values: &'a [f64],
    pub low: &'a [f64],
    pub high: &'a [f64],
    /// What stands after a number, such as a percent sign.
    pub unit: &'a str,
    /// What the axis is.
    pub label: &'a str,
}

impl Draw for Relevance {
    fn draw(&self, title: &str) -> Picture {
        let n = self.values.len().min(MOST);
        let mut notes = Vec::new();
        if self.is_spread() {
            notes.push(
                "Bars: mean over the SVMs; lines: from the smallest to the largest".to_owned(),
            );
        }
        if n < self.values.len() {
            notes.push(format!("the {n} most relevant of {}", self.values.len()));
        }
        let percent = |values: &[f64]| -> Vec<f64> {
            values.iter().take(n).map(|value| 100.0 * value).collect()
        };
        let bars = Bars {
            names: &self.names[..n],
            values: &percent(&self.values),
            low: &percent(&self.low),
            high: &percent(&self.high),
            unit: " %",
            label: "relevance: share of the diagonal of M, standardised features",
        };
        bars.draw(title, &capitalised(&notes.join("; ")))
    }
}

impl Bars<'_> {
    /// Draws them under a title and a line of grey text.
    pub fn draw(&self, title: &str, note: &str) -> Picture {
        let n = self.values.len();
        let names: Vec<String> =
            self.names.iter().map(|name| font::shorten(name, 12.0, NAME)).collect();
        let room = names.iter().map(|name| font::width(name, 12.0)).fold(30.0, f64::max);
        let step = 24.0;
        let left = 30.0 + room;
        let width = left + 440.0 + 78.0;
        let top = 58.0 + note_height(note, width);
        let height = step * n as f64 + 8.0;
        let mut canvas = Canvas::new(width, top + height + 56.0, title);
        canvas.long_heading(title, note);
        let (values, low, high) = (self.values, self.low, self.high);
        let spread = low.iter().zip(high).any(|(low, high)| high - low > 1e-9);
        let largest = high.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let x = Range { low: 0.0, high: 1.04 * largest };
        let panel = Panel { left, top, width: 440.0, height, x, y: Range { low: 0.0, high: 1.0 } };
        let bottom = top + height;
        let (ticks, decimals) = x.ticks(5);
        for value in ticks {
            let (at, _) = panel.at(value, 0.0);
            canvas.line((at, top), (at, bottom), Stroke::solid("#dddddd", 0.8));
            canvas.line((at, bottom), (at, bottom + 5.0), Stroke::solid(INK, 1.0));
            let text = number(value, decimals) + self.unit;
            canvas.text((at, bottom + 19.0), &text, 11.5, Anchor::Middle);
        }
        for (k, (name, &value)) in names.iter().zip(values).enumerate() {
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
            let text = at_least(value, decimals + 1) + self.unit;
            canvas.text((beside + 6.0, middle), &text, 11.0, Anchor::Start);
        }
        canvas.line((left, top), (left, bottom), Stroke::solid(INK, 1.0));
        canvas.line((left, bottom), (left + 440.0, bottom), Stroke::solid(INK, 1.0));
        canvas.text((left + 220.0, bottom + 42.0), self.label, 13.0, Anchor::Middle);
        canvas.finish()
    }
}

/// A number with so many decimals; one that is not zero is not shown as zero.
fn at_least(value: f64, decimals: usize) -> String {
    let least = 10f64.powi(-(decimals as i32));
    match value > 0.0 && value < 0.5 * least && least >= 1e-4 {
        true => format!("< {least:.decimals$}"),
        false => number(value, decimals),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_not_zero() {
        assert_eq!(at_least(0.000_07, 2), "< 0.01");
        assert_eq!([at_least(0.006, 2), at_least(0.0, 2)], ["0.01", "0.00"]);
    }
}
