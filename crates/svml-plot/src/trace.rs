//! Learning curves: the loss that is minimised and the errors, step by step, with the step that was kept.
//! Where several SVMs were learned, one after the other, each has its own piece of the curves.

use svml::Stage;
use svml::figures::Trace;

use crate::axis::{Legend, Panel, Range};
use crate::canvas::{Anchor, Canvas, GREY, Stroke};
use crate::font;
use crate::lines::{SINGLE, look, sign};
use crate::{Draw, Picture};

/// Background of every second SVM.
const BAND: &str = "#f3f3f3";
/// Size of the names in the legend and above the stages.
const SMALL: f64 = 11.5;

impl Draw for Trace {
    fn draw(&self, title: &str) -> Picture {
        let names = self.errors.iter().map(|(name, _)| font::width(name, SMALL));
        let listed: Vec<String> = (0..self.stages.len()).map(|k| listed(self, k)).collect();
        let most = listed.iter().map(|text| font::width(text, SMALL) - 30.0);
        let most = most.filter(|_| self.stages.len() > 1);
        let widest = names.chain(most).fold(110.0, f64::max);
        let mut canvas = Canvas::new(680.0 + widest, 560.0, title);
        let note = note(self);
        canvas.heading(title, &note);
        let x = match self.loss.len() {
            1 => Range { low: -0.5, high: 1.5 },
            steps => Range::around((0..steps).map(|step| step as f64), 0.03),
        };
        let alone = self.errors.is_empty();
        // Above several stages are their names, and perhaps their weights.
        let loss_top = match (self.stages.len() > 1, self.weights.is_empty()) {
            (false, _) => 62.0,
            (true, true) => 78.0,
            (true, false) => 92.0,
        };
        let loss = Panel {
            left: 88.0,
            top: loss_top,
            width: if alone { 670.0 } else { 540.0 },
            height: if alone { 497.0 - loss_top } else { 170.0 },
            x,
            y: Range::around(self.loss.iter().copied(), 0.08),
        };
        let all = self.errors.iter().flat_map(|(_, values)| values.iter().copied());
        let range = Range::around(all.chain([0.0]), 0.06);
        let top = loss.top + loss.height + if self.stages.len() > 1 { 54.0 } else { 60.0 };
        let errors = Panel { top, height: 497.0 - top, y: Range { low: 0.0, ..range }, ..loss };
        let panels: &[&Panel] = if alone { &[&loss] } else { &[&loss, &errors] };
        let named = draw_stages(self, &mut canvas, panels);
        panels.iter().for_each(|panel| panel.grid(&mut canvas));
        if let Some(best) = self.best {
            draw_kept(self, best, &mut canvas, panels);
        }
        curve(&self.stages, &mut canvas, &loss, &self.loss, SINGLE);
        for (k, (_, values)) in self.errors.iter().enumerate() {
            curve(&self.stages, &mut canvas, &errors, values, k);
        }
        if alone {
            loss.axes(&mut canvas, "step", "loss", true, false);
            return canvas.finish();
        }
        loss.axes(&mut canvas, "", "loss", true, false);
        errors.axes(&mut canvas, "step", "error", true, true);
        let mut errors_top = errors.top + 10.0;
        if !named {
            let mut legend = Legend::new(642.0, loss.top + 10.0, widest);
            for (k, listed) in listed.iter().enumerate() {
                let (name, _) = label(self, k);
                canvas.text((legend.left, legend.next + 4.0), name, SMALL, Anchor::Start);
                legend.next += 17.0;
                legend.note(&mut canvas, listed);
                legend.next += 4.0;
            }
            // Many stages reach down to where the errors are.
            errors_top = errors_top.max(legend.next + 12.0);
        }
        let mut legend = Legend::new(642.0, errors_top, widest);
        for (k, (name, _)) in self.errors.iter().enumerate() {
            legend.entry(&mut canvas, name, |canvas, (x, y)| {
                canvas.line((x - 12.0, y), (x + 12.0, y), look(k));
                sign(canvas, (x, y), k);
            });
        }
        canvas.finish()
    }
}

/// What was kept, in words.
fn note(trace: &Trace) -> String {
    let used: Vec<usize> = (0..trace.weights.len()).filter(|&k| trace.weights[k] > 0.0).collect();
    let mut note = match (&used[..], trace.best) {
        ([only], Some(best)) => {
            format!("The model is the {} SVM of step {best}", trace.names[*only])
        }
        (_, Some(best)) => format!("Step {best} was kept"),
        ([], None) => "The metric is the mean of these".to_owned(),
        (several, None) => format!("The model is the mean of {} SVMs", several.len()),
    };
    if let Some(stop) = &trace.stop {
        note += &format!("; learning ended because {stop}");
    }
    note
}

/// The name of a stage, and its weight in the model.
fn label(trace: &Trace, k: usize) -> (&str, String) {
    let weight = match trace.weights.get(k) {
        _ if trace.stages[k].half => "on half of the rows".to_owned(),
        Some(_) if trace.best.is_some_and(|best| holds(&trace.stages[k], best)) => {
            "the model".to_owned()
        }
        Some(weight) if *weight > 0.0 => format!("weight {weight:.2}"),
        Some(_) => "not in the model".to_owned(),
        None => String::new(),
    };
    (trace.names[k].strip_suffix(", on a half").unwrap_or(&trace.names[k]), weight)
}

fn holds(stage: &Stage, step: usize) -> bool {
    (stage.first..=stage.last).contains(&step)
}

/// What the legend says of a stage whose name does not fit above it.
fn listed(trace: &Trace, k: usize) -> String {
    let Stage { first, last, .. } = trace.stages[k];
    let weight = label(trace, k).1;
    let comma = if weight.is_empty() { "" } else { ", " };
    format!("steps {first}\u{2013}{last}{comma}{weight}")
}

/// A line at the step that was kept.
fn draw_kept(trace: &Trace, best: usize, canvas: &mut Canvas, panels: &[&Panel]) {
    for panel in panels {
        let (at, _) = panel.at(best as f64, panel.y.low);
        let kept = Stroke { colour: GREY, width: 1.2, dash: "3 3" };
        canvas.line((at, panel.top), (at, panel.top + panel.height), kept);
    }
    let Some(loss) = panels.first() else { return };
    let (at, _) = loss.at(best as f64, loss.y.low);
    // Beside the line, on the side where there is more room.
    let whole = (loss.x.low, loss.x.high);
    let (low, high) = (trace.stages.iter())
        .filter(|_| trace.stages.len() > 1)
        .find(|stage| holds(stage, best))
        .map_or(whole, |stage| (stage.first as f64, stage.last as f64));
    let (x, anchor) = match best as f64 - low > high - best as f64 {
        true => (at - 5.0, Anchor::End),
        false => (at + 5.0, Anchor::Start),
    };
    canvas.styled_text((x, loss.top + 15.0), "kept", SMALL, anchor, GREY);
}

/// Where one SVM follows another: a band for every second one, a line between, name and weight above
/// where there is room for all; says whether there was.
fn draw_stages(trace: &Trace, canvas: &mut Canvas, panels: &[&Panel]) -> bool {
    let stages = &trace.stages;
    if stages.len() < 2 {
        return true;
    }
    let mut names = Vec::with_capacity(stages.len());
    let mut named = true;
    for (k, stage) in stages.iter().enumerate() {
        let (name, weight) = label(trace, k);
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
            let widest = font::width(name, SMALL).max(font::width(&weight, SMALL));
            named &= widest + 8.0 < right - left;
            names.push(((left + right) / 2.0, panel.top - 7.0, name, weight.clone()));
        }
    }
    for (x, y, name, weight) in names.iter().filter(|_| named) {
        let above = if weight.is_empty() { *y } else { y - 15.0 };
        canvas.text((*x, above), name, SMALL, Anchor::Middle);
        canvas.styled_text((*x, *y), weight, SMALL, Anchor::Middle, GREY);
    }
    named
}

/// A curve, in as many pieces as there are SVMs: the loss of one does not become that of the next.
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
