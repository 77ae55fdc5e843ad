//! Learning curves: the loss that is minimised and the errors, step by step, with the step that was kept.

use svml::Model;

use crate::Picture;
use crate::axis::{Legend, Panel, Range};
use crate::lines::{SINGLE, curve, look, sign};
use crate::svg::{Anchor, Canvas, GREY, Stroke};

/// The figure as arrays, one value for each step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// Number of the step.
    pub iteration: Vec<f64>,
    /// The value that is minimised.
    pub loss: Vec<f64>,
    /// Name and percentages of each error that was watched.
    pub errors: Vec<(String, Vec<f64>)>,
    /// The step that was kept.
    pub best: usize,
    /// Why learning ended.
    pub stop: Option<String>,
}

impl Trace {
    /// The steps of a model; `None` if it was not learned step by step.
    pub fn new(model: &Model) -> Option<Self> {
        let report = model.report();
        let stop = report.stop.map(|stop| stop.to_string());
        if let Some(last) = report.learning.last() {
            // Another learner: it has a loss, and its last step is kept.
            return Some(Self {
                iteration: report.learning.iter().map(|s| s.iteration as f64).collect(),
                loss: report.learning.iter().map(|s| s.loss).collect(),
                errors: Vec::new(),
                best: last.iteration,
                stop,
            });
        }
        let steps = &report.trace;
        if steps.is_empty() {
            return None;
        }
        let mut errors = vec![
            ("training rows".to_owned(), steps.iter().map(|s| 100.0 * s.train_error).collect()),
            ("validation rows".to_owned(), steps.iter().map(|s| 100.0 * s.valid_error).collect()),
        ];
        let hold: Option<Vec<f64>> =
            steps.iter().map(|s| s.hold_error.map(|error| 100.0 * error)).collect();
        errors.extend(hold.map(|hold| ("hold-out rows".to_owned(), hold)));
        Some(Self {
            iteration: steps.iter().map(|s| s.iteration as f64).collect(),
            loss: steps.iter().map(|s| s.loss).collect(),
            errors,
            best: report.best,
            stop,
        })
    }

    /// Draws the curves under a title.
    pub fn draw(&self, title: &str) -> Picture {
        let mut canvas = Canvas::new(790.0, 560.0, title);
        let note = match &self.stop {
            Some(stop) => format!("Step {} was kept; learning ended because {stop}", self.best),
            None => format!("Step {} was kept", self.best),
        };
        canvas.heading(title, &note);
        let x = Range::around(self.iteration.iter().copied(), 0.03);
        let x = if self.iteration.len() == 1 { Range { low: -0.5, high: 1.5 } } else { x };
        let alone = self.errors.is_empty();
        let loss = Panel {
            left: 88.0,
            top: 62.0,
            width: if alone { 670.0 } else { 540.0 },
            height: if alone { 435.0 } else { 170.0 },
            x,
            y: Range::around(self.loss.iter().copied(), 0.08),
        };
        let all = self.errors.iter().flat_map(|(_, values)| values.iter().copied());
        let range = Range::around(all.chain([0.0]), 0.06);
        let errors = Panel { top: 292.0, height: 205.0, y: Range { low: 0.0, ..range }, ..loss };
        let panels: &[&Panel] = if alone { &[&loss] } else { &[&loss, &errors] };
        for panel in panels {
            panel.grid(&mut canvas);
            let (at, _) = panel.at(self.best as f64, panel.y.low);
            let kept = Stroke { colour: GREY, width: 1.2, dash: "3 3" };
            canvas.line((at, panel.top), (at, panel.top + panel.height), kept);
        }
        let (at, _) = loss.at(self.best as f64, loss.y.low);
        // Beside the line, on the side where there is room.
        let (x, anchor) = match loss.x.share(self.best as f64) > 0.5 {
            true => (at - 5.0, Anchor::End),
            false => (at + 5.0, Anchor::Start),
        };
        canvas.styled_text((x, loss.top + 15.0), "kept", 11.5, anchor, GREY, "");
        curve(&mut canvas, &loss, &self.iteration, &self.loss, SINGLE);
        for (k, (_, values)) in self.errors.iter().enumerate() {
            curve(&mut canvas, &errors, &self.iteration, values, k);
        }
        if alone {
            loss.axes(&mut canvas, "step", "loss", true, false);
            return Picture(canvas.finish());
        }
        loss.axes(&mut canvas, "", "loss", true, false);
        errors.axes(&mut canvas, "step", "error", true, true);
        let mut legend = Legend { left: 642.0, next: errors.top + 10.0, most: 110.0 };
        for (k, (name, _)) in self.errors.iter().enumerate() {
            legend.entry(&mut canvas, name, |canvas, (x, y)| {
                canvas.line((x - 12.0, y), (x + 12.0, y), look(k));
                sign(canvas, (x, y), k);
            });
        }
        Picture(canvas.finish())
    }
}
