//! Reliability: whether events that are given a probability of p happen in a share p of the cases.

use svml::{Error, Matrix, Model, Result};

use crate::Picture;
use crate::axis::{Panel, Range};
use crate::style::colour;
use crate::svg::{Canvas, GREY, INK, Stroke};

/// Number of bins.
const BINS: usize = 10;

/// Rows whose probability lies in one bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Number of rows.
    pub rows: usize,
    /// Mean of the probabilities given.
    pub predicted: f64,
    /// Share of rows in which the event happened.
    pub observed: f64,
    /// Wilson's interval of that share, 95 percent.
    pub interval: [f64; 2],
}

/// The figure as arrays.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reliability {
    /// What the probability is of.
    pub event: String,
    /// The bins from 0 to 1, all of the same width; those without rows are absent.
    pub bins: Vec<Bin>,
    /// Number of rows in each bin, empty ones too.
    pub counts: Vec<usize>,
}

impl Reliability {
    /// Compares probabilities with labels: of the second class if there are two, else of the class
    /// that is predicted.
    pub fn new(model: &Model, x: &Matrix, labels: &[String]) -> Result<Self> {
        if labels.len() != x.rows() {
            return Err(Error::Shape {
                what: "labels, one for each row".to_owned(),
                found: labels.len(),
                expected: x.rows(),
            });
        }
        let (p, predicted) = (model.probabilities(x)?, model.predict(x)?);
        let classes = model.classes();
        let two = classes.len() == 2;
        let event = if two {
            format!("class {}", classes[1])
        } else {
            "the predicted class is right".to_owned()
        };
        let pairs: Vec<(f64, bool)> = (labels.iter().zip(predicted).enumerate())
            .map(|(row, (label, predicted))| {
                let class = if two { 1 } else { predicted };
                (p[(row, class)], *label == classes[class])
            })
            .collect();
        let bin_of = |p: f64| ((p * BINS as f64) as usize).min(BINS - 1);
        let members: Vec<Vec<(f64, bool)>> = (0..BINS)
            .map(|bin| pairs.iter().copied().filter(|(p, _)| bin_of(*p) == bin).collect())
            .collect();
        let counts = members.iter().map(Vec::len).collect();
        let bins = members
            .iter()
            .filter(|rows| !rows.is_empty())
            .map(|rows| {
                let n = rows.len() as f64;
                let happened = rows.iter().filter(|(_, happened)| *happened).count() as f64;
                Bin {
                    rows: rows.len(),
                    predicted: rows.iter().map(|(p, _)| p).sum::<f64>() / n,
                    observed: happened / n,
                    interval: wilson(happened, n),
                }
            })
            .collect();
        Ok(Self { event, bins, counts })
    }

    /// Draws the curve, and below it how many rows each bin has.
    pub fn draw(&self, title: &str) -> Picture {
        let mut canvas = Canvas::new(600.0, 640.0, title);
        let total: usize = self.counts.iter().sum();
        let note = format!(
            "{total} rows; bars: 95 % intervals; on the dashed line probabilities are right"
        );
        canvas.heading(title, &note);
        let whole = Range { low: 0.0, high: 1.0 };
        let panel =
            Panel { left: 84.0, top: 62.0, width: 480.0, height: 380.0, x: whole, y: whole };
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
        let rows =
            Panel { top: 480.0, height: 100.0, y: Range { low: 0.0, high: 1.08 * most }, ..panel };
        for (k, &count) in self.counts.iter().enumerate() {
            let (left, top) = rows.at(k as f64 / BINS as f64, count as f64);
            let width = rows.width / BINS as f64;
            let fill = "#9db8cc";
            canvas.rect(left + 2.0, top, width - 4.0, rows.top + rows.height - top, fill);
        }
        let label = format!("probability of: {}", self.event);
        rows.axes(&mut canvas, &label, "rows", false, false);
        Picture(canvas.finish())
    }
}

/// Wilson's interval for `successes` of `n`, at 95 percent.
fn wilson(successes: f64, n: f64) -> [f64; 2] {
    let z = 1.959_964;
    let share = successes / n;
    let scale = 1.0 + z * z / n;
    let centre = (share + z * z / (2.0 * n)) / scale;
    let half = z / scale * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [(centre - half).max(0.0), (centre + half).min(1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected: the standard formula by hand for 8 of 10 (0.4902, 0.9433).
    #[test]
    fn wilsons_interval() {
        let [low, high] = wilson(8.0, 10.0);
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4);
        assert!(wilson(0.0, 5.0)[0] < 1e-15);
    }
}
