//! Calibration of the probabilities: the observed share of each bin over the probability, and below it how the
//! probabilities are spread.

use svml::figures::Reliability;

use crate::axis::{Panel, Range, number};
use crate::canvas::{Canvas, GREY, INK, Stroke, note_height};
use crate::style::colour;
use crate::{Draw, Picture};

impl Draw for Reliability {
    fn draw(&self, title: &str) -> Picture {
        let width = 600.0;
        let note = format!(
            "{} rows, calibration error {} %; bars: 95 % intervals; dashed: perfect calibration. Use rows that the model was not trained on",
            self.rows,
            number(100.0 * self.calibration_error, 1)
        );
        let down = note_height(&note, width);
        let mut canvas = Canvas::new(width, 640.0 + down, title);
        canvas.long_heading(title, &note);
        let whole = Range { low: 0.0, high: 1.0 };
        let panel =
            Panel { left: 84.0, top: 62.0 + down, width: 480.0, height: 380.0, x: whole, y: whole };
        panel.grid(&mut canvas);
        let right = Stroke { colour: GREY, width: 1.4, dash: "6 4" };
        canvas.line(panel.at(0.0, 0.0), panel.at(1.0, 1.0), right);
        let line: Vec<(f64, f64)> =
            self.bins.iter().map(|bin| panel.at(bin.predicted, bin.observed)).collect();
        canvas.path(&[line], Stroke::solid(colour(0), 1.6));
        for bin in &self.bins {
            let (low, high) = (
                panel.at(bin.predicted, bin.interval[0]),
                panel.at(bin.predicted, bin.interval[1]),
            );
            let thin = Stroke::solid(INK, 1.1);
            canvas.line(low, high, thin);
            for end in [low, high] {
                canvas.line((end.0 - 4.0, end.1), (end.0 + 4.0, end.1), thin);
            }
            let at = panel.at(bin.predicted, bin.observed);
            canvas.circle(at, 4.6, colour(0), Stroke::solid("#1a1a1a", 0.8));
        }
        panel.axes(&mut canvas, "", "observed share", false, false);
        let most = self.counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        let rows = Panel {
            top: panel.top + 418.0,
            height: 100.0,
            y: Range { low: 0.0, high: 1.08 * most },
            ..panel
        };
        let parts = self.counts.len() as f64;
        for (k, &count) in self.counts.iter().enumerate() {
            let (left, top) = rows.at(k as f64 / parts, count as f64);
            let width = rows.width / parts;
            let fill = "#9db8cc";
            canvas.rect(left + 2.0, top, width - 4.0, rows.top + rows.height - top, fill);
        }
        rows.axes(&mut canvas, &self.event, "rows", false, false);
        canvas.finish()
    }
}
