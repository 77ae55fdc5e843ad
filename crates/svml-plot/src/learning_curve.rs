//! The error by the number of rows to learn from, over a logarithmic axis.

use svml::figures::LearningCurve;

use crate::axis::{Panel, Range, Ticks, number};
use crate::canvas::{Canvas, INK, Stroke};
use crate::font;
use crate::style::colour;
use crate::{Draw, Picture};

impl Draw for LearningCurve {
    fn draw(&self, title: &str) -> Picture {
        let mut canvas = Canvas::new(640.0, 460.0, title);
        let repetitions = self.errors.first().map_or(0, Vec::len);
        let note = format!(
            "Error on {} held-out rows: mean of {repetitions} repetitions (dots); bars: 1 standard error",
            self.held_out
        );
        canvas.heading(title, &note);
        let percent = |value: f64| 100.0 * value;
        let all = self.errors.iter().flatten().copied();
        let ends =
            (self.mean.iter().zip(&self.standard_error)).flat_map(|(mean, s)| [mean - s, mean + s]);
        let range = Range::around(all.chain(ends).map(percent), 0.08);
        let panel = Panel {
            left: 84.0,
            top: 62.0,
            width: 524.0,
            height: 330.0,
            x: Range::around(self.sizes.iter().map(|size| (*size as f64).log2()), 0.06),
            y: Range { low: range.low.max(0.0), ..range },
        };
        panel.grid(&mut canvas);
        let at = |size: usize, error: f64| panel.at((size as f64).log2(), percent(error));
        for (size, errors) in self.sizes.iter().zip(&self.errors) {
            for error in errors {
                let edge = Stroke::solid("#9db8cc", 0.8);
                canvas.circle(at(*size, *error), 2.4, "#d5e2ec", edge);
            }
        }
        let means = || self.sizes.iter().zip(&self.mean).zip(&self.standard_error);
        let line = means().map(|((size, mean), _)| at(*size, *mean)).collect();
        canvas.path(&[line], Stroke::solid(colour(0), 1.8));
        for ((size, mean), s) in means() {
            let thin = Stroke::solid(INK, 1.1);
            let (low, high) = (at(*size, (mean - s).max(0.0)), at(*size, mean + s));
            canvas.line(low, high, thin);
            for end in [low, high] {
                canvas.line((end.0 - 4.0, end.1), (end.0 + 4.0, end.1), thin);
            }
            canvas.circle(at(*size, *mean), 4.6, colour(0), Stroke::solid("#1a1a1a", 0.8));
        }
        // A number where it does not meet the one before.
        let mut free = f64::NEG_INFINITY;
        let mut x: Ticks = Vec::new();
        for size in &self.sizes {
            let (place, text) = ((*size as f64).log2(), size.to_string());
            let (middle, half) = (panel.at(place, panel.y.low).0, font::width(&text, 11.5) / 2.0);
            if middle - half > free {
                free = middle + half + 8.0;
                x.push((place, text));
            }
        }
        let (ticks, decimals) = panel.y.ticks(6);
        let y: Ticks = ticks.into_iter().map(|v| (v, number(v, decimals) + " %")).collect();
        panel.axes_at(&mut canvas, ("training rows", &x), ("error", &y));
        canvas.finish()
    }
}
