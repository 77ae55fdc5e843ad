//! How good the model is on the rows: measures, confusion, thresholds and curves.

use serde_json::{Value, json};
use svml::figures::{PrecisionRecall, Reliability, Roc};
use svml::{Measure, Result};
use svml_plot::Draw;

use super::{Facts, LISTED, counted, percent};
use crate::html::{Cell, Html, escape};

impl Facts<'_> {
    pub(super) fn measured(&self, html: &mut Html) {
        html.section("measures", "Measures");
        let measures = &self.measures;
        let rows = Measure::ALL.into_iter().filter_map(|measure| {
            let value = measures.value(measure)?;
            let text = |v: f64| if measure.is_share() { percent(v) } else { format!("{v:.3}") };
            let interval = measures.intervals.get(&measure);
            let interval = interval.map_or("\u{2013}".to_owned(), |[low, high]| {
                format!("{} to {}", text(*low), text(*high))
            });
            Some(vec![
                Cell::Explained(capitalised(measure.title()), meaning(measure).to_owned()),
                Cell::Number(text(value), value),
                Cell::Text(interval),
            ])
        });
        let of = measures.positive.as_ref().map_or(String::new(), |class| {
            format!("; F1, average precision and the Brier score refer to class {class}")
        });
        let caption = format!("On {}{of}", counted(measures.rows, "row"));
        html.table(&caption, &["Measure", "Value", "95 % interval"], rows.collect(), false);
        let or_dash = |value: Option<f64>| {
            value.map_or(Cell::Number("\u{2013}".to_owned(), -1.0), |v| Cell::Number(percent(v), v))
        };
        let plain = |value: Option<f64>| {
            value.map_or(Cell::Number("\u{2013}".to_owned(), -1.0), |v| {
                Cell::Number(format!("{v:.3}"), v)
            })
        };
        let rows = measures.per_class.iter().take(LISTED).map(|class| {
            vec![
                Cell::Name(class.class.clone()),
                Cell::count(class.rows),
                or_dash(class.precision),
                or_dash(class.recall),
                plain(class.f1),
                plain(class.auc),
                plain(class.average_precision),
            ]
        });
        let head = ["Class", "Rows", "Precision", "Recall", "F1", "AUC", "Average precision"];
        html.table("Each class against the rest", &head, rows.collect(), true);
    }

    pub(super) fn confusion(&self, html: &mut Html) {
        html.section("confusion", "Confusion");
        let measures = &self.measures;
        let count = measures.classes.len().min(LISTED);
        let mut head = vec!["True class"];
        head.extend(measures.classes.iter().take(count).map(String::as_str));
        let rows = measures.confusion.iter().take(count).enumerate().map(|(k, row)| {
            let mut cells = vec![Cell::Name(measures.classes[k].clone())];
            cells.extend(row.iter().take(count).enumerate().map(|(p, &n)| match p == k {
                true => Cell::Strong(n.to_string()),
                false => Cell::count(n),
            }));
            cells
        });
        html.table("True class (rows) by predicted class (columns)", &head, rows.collect(), false);
        if let Some((data, positive)) = self.thresholds() {
            self.slider(html, &data, &positive);
        }
    }

    /// For thresholds of 0, 0.01, .. 1 how many rows of the second of two classes reach it, and how many others.
    fn thresholds(&self) -> Option<(Value, String)> {
        let (p, [_, positive]) = (self.probabilities.as_ref()?, self.model.classes()) else {
            return None;
        };
        let (mut hits, mut alarms) = (vec![0_usize; 101], vec![0_usize; 101]);
        let (mut positives, mut negatives) = (0, 0);
        for (row, truth) in self.truth.iter().enumerate() {
            let (counts, total) = match truth {
                Some(1) => (&mut hits, &mut positives),
                _ => (&mut alarms, &mut negatives),
            };
            *total += 1;
            let share = p[(row, 1)];
            let reached = |at: &usize| share >= *at as f64 / 100.0;
            (0..=100).filter(reached).for_each(|at| counts[at] += 1);
        }
        let data = json!({ "hits": hits, "alarms": alarms, "positives": positives, "negatives": negatives });
        Some((data, positive.clone()))
    }

    fn slider(&self, html: &mut Html, data: &Value, positive: &str) {
        let class = escape(positive);
        let json = data.to_string().replace('<', "\\u003c");
        html.raw(&format!(
            "<div id=\"threshold-box\" class=\"threshold only-screen\" hidden>\
             <h3>The effect of another threshold</h3>\
             <p><label for=\"threshold\">Predict {class} if its probability is at least <output id=\"t-value\" for=\"threshold\">0.50</output></label></p>\
             <input id=\"threshold\" type=\"range\" min=\"0\" max=\"100\" value=\"50\">\
             <p aria-live=\"polite\">Of the rows of {class}, <span id=\"t-hit\"></span> are found and <span id=\"t-missed\"></span> missed (recall <span id=\"t-recall\"></span>); \
             of the others, <span id=\"t-alarm\"></span> are false alarms and <span id=\"t-quiet\"></span> are not (specificity <span id=\"t-specificity\"></span>). \
             Precision <span id=\"t-precision\"></span>, error <span id=\"t-error\"></span>.</p>\
             <p class=\"soft\">Choose the threshold on rows other than those used to report its performance.</p></div>\
             <script type=\"application/json\" id=\"threshold-data\">{json}</script>"
        ));
    }

    pub(super) fn curves(&self, html: &mut Html) -> Result<()> {
        html.section("curves", "Curves");
        if self.probabilities.is_none() {
            html.paragraph("The model was written without probabilities, so there are no curves.");
            return Ok(());
        }
        html.raw("<div class=\"pair\">");
        html.figure(
            &Roc::new(self.model, self.x, self.labels, None)?.draw("ROC curve"),
            "The share of the rows of a class that is found (true positive rate), against the share of other rows that is mistaken for it (false positive rate). The diagonal is chance.",
        );
        html.figure(
            &PrecisionRecall::new(self.model, self.x, self.labels, None)?
                .draw("Precision and recall"),
            "The share of correct rows among those predicted as a class (precision), against the share of the class that is found (recall). The dashed line is chance.",
        );
        let reliability = Reliability::new(self.model, self.x, self.labels)?;
        html.figure(
            &reliability.draw("Calibration of the probabilities"),
            "On the dashed line, the probabilities are correct: of the rows with a probability of 70 %, 70 % belong to the class.",
        );
        html.raw("</div>");
        Ok(())
    }
}

fn meaning(measure: Measure) -> &'static str {
    match measure {
        Measure::Error => "share of rows that are misclassified",
        Measure::BalancedError => {
            "mean of the errors of the classes, whatever their number of rows"
        }
        Measure::Auc => {
            "how often a row of a class is ranked above a row of another class; 0.5 is chance"
        }
        Measure::AveragePrecision => {
            "mean precision over all recalls; chance is the share of the class"
        }
        Measure::F1 => "harmonic mean of precision and recall",
        Measure::Mcc => "correlation of predicted and true classes; 0 is chance, 1 is perfect",
        Measure::Brier => "mean squared error of the probabilities; 0 is perfect",
        Measure::LogLoss => {
            "mean of \u{2212}log of the probability of the true class; 0 is perfect"
        }
        Measure::CalibrationError => {
            "mean distance between predicted probabilities and observed shares"
        }
        _ => "",
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
