//! How the probability of a class depends on one column: a curve with a band, or bars for categories.

use svml::figures::{Dependence, Places};

use crate::axis::{Panel, Range, Ticks};
use crate::canvas::{Anchor, Canvas, INK, Stroke};
use crate::font;
use crate::style::{colour, tint};
use crate::{Draw, Picture};

/// Widest name of a category.
const NAME: f64 = 110.0;

impl Draw for Dependence {
    fn draw(&self, title: &str) -> Picture {
        let mut canvas = Canvas::new(480.0, 340.0, title);
        let note = match &self.places {
            Places::Numbers(_) => {
                "Line: mean; band: the middle 80 % of the rows, shifted to the same mean"
            }
            Places::Categories(_) => {
                "Bars: mean; lines: the middle 80 % of the rows, shifted to the same mean"
            }
        };
        canvas.heading(title, note);
        let ends = self.band.iter().flatten().chain(&self.mean).copied();
        let around = Range::around(ends, 0.15);
        // Bars begin at nothing.
        let low = match &self.places {
            Places::Numbers(_) => around.low.max(0.0),
            Places::Categories(_) => 0.0,
        };
        let y = Range { low, high: around.high.min(1.0).max(low + 0.05) };
        let frame = |x: Range| Panel { left: 78.0, top: 62.0, width: 380.0, height: 210.0, x, y };
        let label = format!("probability of {}", self.class);
        let thin = Stroke::solid("#ffffff", 0.0);
        match &self.places {
            Places::Numbers(values) => {
                let ends = values
                    .iter()
                    .copied()
                    .fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
                let panel = frame(Range { low: ends.0, high: ends.1 });
                panel.grid(&mut canvas);
                let at = |(value, p): (&f64, f64)| panel.at(*value, p);
                let mut outline: Vec<(f64, f64)> =
                    values.iter().zip(self.band.iter().map(|band| band[0])).map(at).collect();
                let upper: Vec<(f64, f64)> =
                    values.iter().zip(self.band.iter().map(|band| band[1])).map(at).collect();
                outline.extend(upper.into_iter().rev());
                canvas.polygon(&outline, &tint(0, 0.25), thin);
                let line = values.iter().zip(self.mean.iter().copied()).map(at).collect();
                canvas.path(&[line], Stroke::solid(colour(0), 2.0));
                panel.axes(&mut canvas, &self.column, &label, false, false);
            }
            Places::Categories(names) => {
                let count = names.len() as f64;
                let panel = frame(Range { low: -0.5, high: count - 0.5 });
                panel.grid(&mut canvas);
                for (k, (mean, band)) in self.mean.iter().zip(&self.band).enumerate() {
                    let (left, top) = panel.at(k as f64 - 0.35, *mean);
                    let (right, bottom) = panel.at(k as f64 + 0.35, y.low);
                    canvas.rect(left, top, right - left, bottom - top, colour(0));
                    let middle = k as f64;
                    canvas.line(
                        panel.at(middle, band[0]),
                        panel.at(middle, band[1]),
                        Stroke::solid(INK, 1.2),
                    );
                }
                let none: Ticks = Vec::new();
                let (ticks, decimals) = y.ticks(5);
                let marks: Ticks =
                    ticks.into_iter().map(|v| (v, crate::axis::number(v, decimals))).collect();
                panel.axes_at(&mut canvas, (&self.column, &none), (&label, &marks));
                // Names askew where they would meet.
                let room = panel.width / count - 6.0;
                let askew = names.iter().any(|name| font::width(name, 11.0) > room);
                for (k, name) in names.iter().enumerate() {
                    let (x, below) = panel.at(k as f64, y.low);
                    match askew {
                        false => canvas.text((x, below + 17.0), name, 11.0, Anchor::Middle),
                        true => {
                            let name = font::shorten(
                                name,
                                9.5,
                                NAME.min(panel.width / count * 1.6).max(26.0),
                            );
                            canvas.turned_text(
                                (x + 3.0, below + 13.0),
                                &name,
                                9.5,
                                Anchor::End,
                                -28.0,
                            );
                        }
                    }
                }
            }
        }
        canvas.finish()
    }
}
