//! Learning curves: the loss that is minimised and the errors, step by step, with the step that was kept.
//! Where several forms were learned, one after the other, each has its own piece of the curves.

use svml::Model;
use svml::model::Method;
use svml::params::FormChoice;

use crate::Picture;
use crate::axis::{Legend, Panel, Range};
use crate::font;
use crate::lines::{SINGLE, look, sign};
use crate::svg::{Anchor, Canvas, GREY, Stroke};

/// The figure as arrays, one value for each step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// Number of the step.
    pub iteration: Vec<f64>,
    /// The value that is minimised.
    pub loss: Vec<f64>,
    /// Name and percentages of each error that was watched; NaN where it was not.
    pub errors: Vec<(String, Vec<f64>)>,
    /// Name of each form that was learned, with its first and last step.
    pub stages: Vec<(String, usize, usize)>,
    /// The step that was kept.
    pub best: usize,
    /// The form that was chosen, if there was a choice.
    pub chosen: Option<String>,
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
                stages: Vec::new(),
                best: last.iteration,
                chosen: None,
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
        if steps.iter().any(|s| s.hold_error.is_some()) {
            let hold = steps.iter().map(|s| 100.0 * s.hold_error.unwrap_or(f64::NAN)).collect();
            errors.push(("hold-out rows".to_owned(), hold));
        }
        let auto =
            matches!(&report.method, Method::Svml(params) if params.form == FormChoice::Auto);
        let chosen =
            (auto && !report.candidates.is_empty()).then(|| model.metric().form().to_string());
        Some(Self {
            iteration: steps.iter().map(|s| s.iteration as f64).collect(),
            loss: steps.iter().map(|s| s.loss).collect(),
            errors,
            stages: (report.stages().iter()).map(|s| (s.to_string(), s.first, s.last)).collect(),
            best: report.best,
            chosen,
            stop,
        })
    }

    /// Draws the curves under a title.
    pub fn draw(&self, title: &str) -> Picture {
        let mut canvas = Canvas::new(790.0, 560.0, title);
        let mut note = match &self.chosen {
            Some(form) => format!("Of the forms tried, {form} was chosen: step {}", self.best),
            None => format!("Step {} was kept", self.best),
        };
        if let Some(stop) = &self.stop {
            note += &format!("; learning ended because {stop}");
        }
        canvas.heading(title, &note);
        let x = Range::around(self.iteration.iter().copied(), 0.03);
        let x = if self.iteration.len() == 1 { Range { low: -0.5, high: 1.5 } } else { x };
        let alone = self.errors.is_empty();
        let loss = Panel {
            left: 88.0,
            top: if self.stages.len() > 1 { 78.0 } else { 62.0 },
            width: if alone { 670.0 } else { 540.0 },
            height: if alone { 435.0 } else { 170.0 },
            x,
            y: Range::around(self.loss.iter().copied(), 0.08),
        };
        let all = self.errors.iter().flat_map(|(_, values)| values.iter().copied());
        let range = Range::around(all.chain([0.0]), 0.06);
        let top = if self.stages.len() > 1 { 302.0 } else { 292.0 };
        let height = 497.0 - top;
        let errors = Panel { top, height, y: Range { low: 0.0, ..range }, ..loss };
        let panels: &[&Panel] = if alone { &[&loss] } else { &[&loss, &errors] };
        let named = self.draw_stages(&mut canvas, panels);
        for panel in panels {
            panel.grid(&mut canvas);
            let (at, _) = panel.at(self.best as f64, panel.y.low);
            let kept = Stroke { colour: GREY, width: 1.2, dash: "3 3" };
            canvas.line((at, panel.top), (at, panel.top + panel.height), kept);
        }
        let (at, _) = loss.at(self.best as f64, loss.y.low);
        // Beside the line, on the side where there is more room.
        let whole = (loss.x.low, loss.x.high);
        let (low, high) = (self.stages.iter())
            .map(|(_, first, last)| (*first as f64, *last as f64))
            .find(|(first, last)| (*first..=*last).contains(&(self.best as f64)))
            .filter(|_| self.stages.len() > 1)
            .unwrap_or(whole);
        let (x, anchor) = match self.best as f64 - low > high - self.best as f64 {
            true => (at - 5.0, Anchor::End),
            false => (at + 5.0, Anchor::Start),
        };
        canvas.styled_text((x, loss.top + 15.0), "kept", 11.5, anchor, GREY, "");
        self.curve(&mut canvas, &loss, &self.loss, SINGLE);
        for (k, (_, values)) in self.errors.iter().enumerate() {
            self.curve(&mut canvas, &errors, values, k);
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
        if !named {
            let mut legend = Legend { left: 642.0, next: loss.top + 10.0, most: 110.0 };
            for (name, first, last) in &self.stages {
                legend.note(&mut canvas, &format!("{name}: steps {first}\u{2013}{last}"));
            }
        }
        Picture(canvas.finish())
    }

    /// Where one form follows another: a band for every second one, a line between, the name above
    /// where there is room; says whether there was for all.
    fn draw_stages(&self, canvas: &mut Canvas, panels: &[&Panel]) -> bool {
        let mut named = true;
        if self.stages.len() < 2 {
            return named;
        }
        let last = self.stages.len() - 1;
        for (k, (name, first, end)) in self.stages.iter().enumerate() {
            for (p, panel) in panels.iter().enumerate() {
                let at = |x: f64| panel.at(x, panel.y.low).0;
                let left = if k == 0 { panel.left } else { at(*first as f64 - 0.5) };
                let right =
                    if k == last { panel.left + panel.width } else { at(*end as f64 + 0.5) };
                if k % 2 == 1 {
                    canvas.rect(left, panel.top, right - left, panel.height, BAND);
                }
                if k > 0 {
                    let between = Stroke::solid(GREY, 1.0);
                    canvas.line((left, panel.top), (left, panel.top + panel.height), between);
                }
                if p > 0 {
                    continue;
                }
                if font::width(name, 11.5) < right - left {
                    let middle = ((left + right) / 2.0, panel.top - 7.0);
                    canvas.text(middle, name, 11.5, Anchor::Middle);
                } else {
                    named = false;
                }
            }
        }
        named
    }

    /// A curve, in as many pieces as there are forms: the loss of one does not become that of the next.
    fn curve(&self, canvas: &mut Canvas, panel: &Panel, y: &[f64], k: usize) {
        let whole = [(String::new(), 0, y.len().saturating_sub(1))];
        let stages = if self.stages.is_empty() { &whole[..] } else { &self.stages };
        // With many steps not every one has a marker.
        let every = y.len().div_ceil(25).max(1);
        for (_, first, last) in stages {
            let steps = *first..(last + 1).min(y.len());
            let points: Vec<(f64, f64)> = (self.iteration[steps.clone()].iter().zip(&y[steps]))
                .filter(|(_, y)| y.is_finite())
                .map(|(x, y)| panel.at(*x, *y))
                .collect();
            canvas.path(std::slice::from_ref(&points), look(k));
            points.iter().step_by(every).for_each(|&at| sign(canvas, at, k));
        }
    }
}

/// Background of every second form.
const BAND: &str = "#f3f3f3";
