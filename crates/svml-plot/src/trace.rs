//! Learning curves: the loss that is minimised and the errors, step by step, with the step that was kept.
//! Where several forms were learned, one after the other, each has its own piece of the curves.

use svml::Stage;
use svml::figures::Trace;

use crate::axis::{Legend, Panel, Range};
use crate::font;
use crate::lines::{SINGLE, look, sign};
use crate::svg::{Anchor, Canvas, GREY, Stroke};
use crate::{Draw, Picture};

/// Background of every second form.
const BAND: &str = "#f3f3f3";
/// Size of the names in the legend and above the stages.
const SMALL: f64 = 11.5;

impl Draw for Trace {
    fn draw(&self, title: &str) -> Picture {
        let names = self.errors.iter().map(|(name, _)| font::width(name, SMALL));
        let widest = names.fold(110.0, f64::max);
        let mut canvas = Canvas::new(680.0 + widest, 560.0, title);
        let mut note = match &self.chosen {
            Some(form) => format!("Of the forms tried, {form} was chosen: step {}", self.best),
            None => format!("Step {} was kept", self.best),
        };
        if let Some(stop) = &self.stop {
            note += &format!("; learning ended because {stop}");
        }
        canvas.heading(title, &note);
        let x = match self.loss.len() {
            1 => Range { low: -0.5, high: 1.5 },
            steps => Range::around((0..steps).map(|step| step as f64), 0.03),
        };
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
        let named = draw_stages(&self.stages, &mut canvas, panels);
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
            .filter(|_| self.stages.len() > 1)
            .find(|stage| (stage.first..=stage.last).contains(&self.best))
            .map_or(whole, |stage| (stage.first as f64, stage.last as f64));
        let (x, anchor) = match self.best as f64 - low > high - self.best as f64 {
            true => (at - 5.0, Anchor::End),
            false => (at + 5.0, Anchor::Start),
        };
        canvas.styled_text((x, loss.top + 15.0), "kept", SMALL, anchor, GREY, "");
        curve(&self.stages, &mut canvas, &loss, &self.loss, SINGLE);
        for (k, (_, values)) in self.errors.iter().enumerate() {
            curve(&self.stages, &mut canvas, &errors, values, k);
        }
        if alone {
            loss.axes(&mut canvas, "step", "loss", true, false);
            return Picture(canvas.finish());
        }
        loss.axes(&mut canvas, "", "loss", true, false);
        errors.axes(&mut canvas, "step", "error", true, true);
        let mut legend = Legend { left: 642.0, next: errors.top + 10.0, most: widest };
        for (k, (name, _)) in self.errors.iter().enumerate() {
            legend.entry(&mut canvas, name, |canvas, (x, y)| {
                canvas.line((x - 12.0, y), (x + 12.0, y), look(k));
                sign(canvas, (x, y), k);
            });
        }
        if !named {
            let mut legend = Legend { left: 642.0, next: loss.top + 10.0, most: widest };
            for stage in &self.stages {
                let (first, last) = (stage.first, stage.last);
                legend.note(&mut canvas, &format!("{stage}: steps {first}\u{2013}{last}"));
            }
        }
        Picture(canvas.finish())
    }
}

/// Where one form follows another: a band for every second one, a line between, the name above
/// where there is room; says whether there was for all.
fn draw_stages(stages: &[Stage], canvas: &mut Canvas, panels: &[&Panel]) -> bool {
    let mut named = true;
    if stages.len() < 2 {
        return named;
    }
    for (k, stage) in stages.iter().enumerate() {
        let name = stage.to_string();
        for (p, panel) in panels.iter().enumerate() {
            let at = |x: f64| panel.at(x, panel.y.low).0;
            let left = if k == 0 { panel.left } else { at(stage.first as f64 - 0.5) };
            let right = match k == stages.len() - 1 {
                true => panel.left + panel.width,
                false => at(stage.last as f64 + 0.5),
            };
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
            if font::width(&name, SMALL) < right - left {
                let middle = ((left + right) / 2.0, panel.top - 7.0);
                canvas.text(middle, &name, SMALL, Anchor::Middle);
            } else {
                named = false;
            }
        }
    }
    named
}

/// A curve, in as many pieces as there are forms: the loss of one does not become that of the next.
fn curve(stages: &[Stage], canvas: &mut Canvas, panel: &Panel, y: &[f64], k: usize) {
    // With many steps not every one has a marker.
    let every = y.len().div_ceil(25).max(1);
    for stage in stages {
        let points: Vec<(f64, f64)> = (y.iter().enumerate())
            .skip(stage.first)
            .take(stage.last + 1 - stage.first)
            .filter(|(_, y)| y.is_finite())
            .map(|(step, y)| panel.at(step as f64, *y))
            .collect();
        canvas.path(std::slice::from_ref(&points), look(k));
        points.iter().step_by(every).for_each(|&at| sign(canvas, at, k));
    }
}
