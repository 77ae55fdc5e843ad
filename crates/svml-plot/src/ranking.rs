//! ROC curves, and precision against recall.

use svml::figures::{PrecisionRecall, Roc};

use crate::axis::{Legend, Panel, Range};
use crate::canvas::{Anchor, Canvas, GREY, Stroke, capitalised, note_height};
use crate::font;
use crate::lines::look;
use crate::{Draw, Picture};

/// Most curves; of more classes those are drawn that are told from the rest worst.
const MOST: usize = 6;
const CHANCE: Stroke = Stroke { colour: GREY, width: 1.4, dash: "6 4" };
const SIZE: f64 = 11.5;

/// A curve with what the legend says of it.
struct Drawn {
    class: String,
    value: f64,
    interval: Option<[f64; 2]>,
    points: Vec<(f64, f64)>,
}

impl Draw for Roc {
    fn draw(&self, title: &str) -> Picture {
        let drawn = self.curves.iter().map(|curve| Drawn {
            class: curve.class.clone(),
            value: curve.auc,
            interval: curve.interval,
            points: both(&curve.false_positive_rate, &curve.true_positive_rate),
        });
        let note = "dashed: random scores. Use rows that the model was not trained on";
        draw(self.rows, drawn.collect(), title, ["AUC", note], |canvas, panel, of_curves| {
            canvas.line(panel.at(0.0, 0.0), panel.at(1.0, 1.0), CHANCE);
            let of = match of_curves {
                [only] => format!("true positive rate: share of {only} found"),
                _ => "true positive rate: share of the class found".to_owned(),
            };
            ["false positive rate: share of other rows taken for it".to_owned(), of]
        })
    }
}

impl Draw for PrecisionRecall {
    fn draw(&self, title: &str) -> Picture {
        let drawn = self.curves.iter().map(|curve| {
            // From one recall to the next it is the precision of the next that holds.
            let mut points = Vec::with_capacity(2 * curve.recall.len());
            let mut last = 0.0;
            for (&recall, &precision) in curve.recall.iter().zip(&curve.precision) {
                points.extend([(last, precision), (recall, precision)]);
                last = recall;
            }
            Drawn {
                class: curve.class.clone(),
                value: curve.average_precision,
                interval: curve.interval,
                points,
            }
        });
        let rate = match &self.curves[..] {
            [only] => Some(only.base_rate),
            _ => None,
        };
        let note = match rate {
            Some(rate) => format!(
                "dashed: random scores, {:.1} % of the rows. Use rows that the model was not trained on",
                100.0 * rate
            ),
            None => "Use rows that the model was not trained on".to_owned(),
        };
        let words = ["average precision", &note];
        draw(self.rows, drawn.collect(), title, words, |canvas, panel, of_curves| {
            if let Some(rate) = rate {
                canvas.line(panel.at(0.0, rate), panel.at(1.0, rate), CHANCE);
            }
            let of = match of_curves {
                [only] => format!("recall: share of {only} found"),
                _ => "recall: share of the class found".to_owned(),
            };
            [of, "precision: share of the rows found that belong to it".to_owned()]
        })
    }
}

fn both(x: &[f64], y: &[f64]) -> Vec<(f64, f64)> {
    x.iter().copied().zip(y.iter().copied()).collect()
}

/// Curves in a square, with a legend; `below` draws what lies under them and names the axes.
fn draw(
    rows: usize,
    mut drawn: Vec<Drawn>,
    title: &str,
    [measure, note]: [&str; 2],
    below: impl FnOnce(&mut Canvas, &Panel, &[&str]) -> [String; 2],
) -> Picture {
    let all = drawn.len();
    if all > MOST {
        drawn.sort_by(|a, b| a.value.total_cmp(&b.value));
        drawn.truncate(MOST);
    }
    let words = |curve: &Drawn| {
        let between = curve.interval.map(|[low, high]| format!(" ({low:.3} to {high:.3})"));
        format!("{:.3}{}", curve.value, between.unwrap_or_default())
    };
    let mut note = format!("{rows} rows; {note}");
    match &drawn[..] {
        [only] => {
            note = capitalised(&format!("{measure} {}, 95 % interval; {note}", words(only)));
        }
        _ if all > MOST => {
            note = format!("The {MOST} classes of {all} with the lowest {measure}; {note}");
        }
        _ => {}
    }
    let single = drawn.len() == 1;
    let header = capitalised(&format!("{measure}, 95 % interval"));
    let names = drawn.iter().flat_map(|curve| [curve.class.clone(), words(curve)]);
    let widest = match single {
        true => 0.0,
        false => {
            let least = font::width(&header, SIZE) - 30.0;
            names.map(|text| font::width(&text, SIZE)).fold(least, f64::max).min(200.0) + 46.0
        }
    };
    let width = 84.0 + 440.0 + 24.0 + widest;
    let down = note_height(&note, width);
    let mut canvas = Canvas::new(width, 62.0 + 440.0 + 58.0 + down, title);
    canvas.long_heading(title, &note);
    let whole = Range { low: 0.0, high: 1.0 };
    let panel =
        Panel { left: 84.0, top: 62.0 + down, width: 440.0, height: 440.0, x: whole, y: whole };
    panel.grid(&mut canvas);
    let classes: Vec<&str> = drawn.iter().map(|curve| curve.class.as_str()).collect();
    let [x_label, y_label] = below(&mut canvas, &panel, &classes);
    for (k, curve) in drawn.iter().enumerate() {
        let points: Vec<(f64, f64)> = curve.points.iter().map(|(x, y)| panel.at(*x, *y)).collect();
        canvas.path(&[points], Stroke { width: 2.0, ..look(k) });
    }
    panel.axes(&mut canvas, &x_label, &y_label, false, false);
    if !single {
        let mut legend = Legend::new(84.0 + 440.0 + 16.0, panel.top + 10.0, widest - 46.0);
        legend.note(&mut canvas, &header);
        for (k, curve) in drawn.iter().enumerate() {
            legend.entry(&mut canvas, &curve.class, |canvas, (x, y)| {
                canvas.line((x - 12.0, y), (x + 12.0, y), Stroke { width: 2.0, ..look(k) });
            });
            let at = (legend.left + 30.0, legend.next - 2.0);
            canvas.styled_text(at, &words(curve), SIZE, Anchor::Start, GREY);
            legend.next += 21.0;
        }
    }
    canvas.finish()
}
