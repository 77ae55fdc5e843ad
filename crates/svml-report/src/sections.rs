//! What stands on the page, section by section.

use serde_json::{Value, json};
use svml::data::Kind;
use svml::figures::{Dependence, Map, PrecisionRecall, Relevance, Reliability, Roc, Waterfall};
use svml::{Matrix, Measure, Measures, Model, Result};
use svml_plot::Draw;

use crate::html::{Cell, Html, escape};

/// Columns with a picture of how the probability depends on them.
const DEPENDENCES: usize = 6;
/// Columns that are listed for an explained row.
const EXPLAINED_COLUMNS: usize = 8;
/// Most columns and classes in tables.
const LISTED: usize = 60;
/// Most rows on the map, so that the page stays small.
const MAPPED: usize = 1500;

/// The model, the rows, and what is known about them.
pub(crate) struct Facts<'a> {
    model: &'a Model,
    x: &'a Matrix,
    labels: &'a [String],
    measures: Measures,
    /// Absent for a model of the first file format.
    probabilities: Option<Matrix>,
    predicted: Vec<usize>,
    /// The true class of each row, as a place in the model's classes.
    truth: Vec<Option<usize>>,
    /// Whether most support vectors are among the rows.
    trained_on: bool,
}

impl<'a> Facts<'a> {
    pub fn new(model: &'a Model, x: &'a Matrix, labels: &'a [String]) -> Result<Self> {
        let measures = model.measure(x, labels)?;
        let place = |label: &String| model.classes().iter().position(|class| class == label);
        Ok(Self {
            model,
            x,
            labels,
            measures,
            probabilities: model.probabilities(x).ok(),
            predicted: model.predict(x)?,
            truth: labels.iter().map(place).collect(),
            trained_on: has_support_vectors(model, x),
        })
    }

    /// All sections.
    pub fn write(&self, html: &mut Html, title: &str) -> Result<()> {
        self.head(html, title);
        html.raw("<main id=\"content\" tabindex=\"-1\">");
        self.measured(html);
        self.confusion(html);
        self.curves(html)?;
        let leading = self.columns(html);
        self.dependence(html, &leading)?;
        self.map(html)?;
        self.rows(html)?;
        self.made(html);
        self.limits(html);
        html.raw("</main>");
        html.raw(&format!(
            "<footer>Made by <code>svml report</code>, version {}. This page is complete: it loads nothing.</footer>",
            env!("CARGO_PKG_VERSION")
        ));
        Ok(())
    }

    fn head(&self, html: &mut Html, title: &str) {
        let measures = &self.measures;
        let columns = self.model.schema().used_columns().count();
        html.raw("<header>");
        html.element("h1", "", title);
        html.element(
            "p",
            "class=\"soft\"",
            &format!(
                "{}, {}, {} of the column {}.",
                counted(measures.rows, "row"),
                counted(columns, "column"),
                counted(self.model.classes().len(), "class"),
                self.model.schema().target().name
            ),
        );
        let interval = measures.intervals.get(&Measure::Error);
        let range = interval.map_or(String::new(), |[low, high]| {
            format!(" (95 % interval: {} to {})", percent(*low), percent(*high))
        });
        html.element(
            "p",
            "class=\"lead\"",
            &format!(
                "It misclassifies {} of these rows{range}. Naming the most frequent class always would misclassify {}.",
                percent(measures.error),
                percent(self.guessing())
            ),
        );
        if let Some(honest) = self.model.report().honest {
            html.paragraph(&format!(
                "While it was trained, the error on rows that were not used to learn was {} \u{b1} {} (cross-fitted, standard error).",
                percent(honest.error),
                percent(honest.standard_error)
            ));
        }
        if self.trained_on {
            html.element(
                "p",
                "class=\"warning\" role=\"note\"",
                "These look like the rows that the model was trained on: most of its support vectors are among them. All figures on this page are too good then. Take the cross-fitted error above, or give rows that the model has not seen.",
            );
        }
        let links = [
            ("measures", "Measures"),
            ("confusion", "Confusion"),
            ("curves", "Curves"),
            ("columns", "Columns"),
            ("dependence", "Dependence"),
            ("map", "Map"),
            ("rows", "Five rows"),
            ("made", "How it was made"),
            ("limits", "Limits"),
        ];
        let links: Vec<String> = links
            .iter()
            .map(|(id, text)| format!("<li><a href=\"#{id}\">{text}</a></li>"))
            .collect();
        html.raw(&format!(
            "<nav aria-label=\"Sections\"><ul>{}</ul></nav></header>",
            links.concat()
        ));
    }

    /// The error of naming the most frequent class of the rows.
    fn guessing(&self) -> f64 {
        let most = self.measures.per_class.iter().map(|class| class.rows).max().unwrap_or(0);
        1.0 - most as f64 / self.measures.rows.max(1) as f64
    }

    fn measured(&self, html: &mut Html) {
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
            format!("; F1, average precision and Brier score are those of class {class}")
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

    fn confusion(&self, html: &mut Html) {
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
        html.table(
            "Rows of each class (down) by predicted class (across)",
            &head,
            rows.collect(),
            false,
        );
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
             <h3>What another threshold would do</h3>\
             <p><label for=\"threshold\">Predict {class} from a probability of <output id=\"t-value\" for=\"threshold\">0.50</output> on</label></p>\
             <input id=\"threshold\" type=\"range\" min=\"0\" max=\"100\" value=\"50\">\
             <p aria-live=\"polite\">Of the rows of {class}, <span id=\"t-hit\"></span> are found and <span id=\"t-missed\"></span> missed (recall <span id=\"t-recall\"></span>); \
             of the others, <span id=\"t-alarm\"></span> are false alarms and <span id=\"t-quiet\"></span> are not (specificity <span id=\"t-specificity\"></span>). \
             Precision <span id=\"t-precision\"></span>, error <span id=\"t-error\"></span>.</p>\
             <p class=\"soft\">Choose a threshold on rows that are not used to report how well it does.</p></div>\
             <script type=\"application/json\" id=\"threshold-data\">{json}</script>"
        ));
    }

    fn curves(&self, html: &mut Html) -> Result<()> {
        html.section("curves", "Curves");
        if self.probabilities.is_none() {
            html.paragraph("The model was written without probabilities, so there are no curves.");
            return Ok(());
        }
        html.raw("<div class=\"pair\">");
        html.figure(
            &Roc::new(self.model, self.x, self.labels, None)?.draw("ROC curve"),
            "How many rows of a class are found, for each share of other rows that is taken for it. The diagonal is chance.",
        );
        html.figure(
            &PrecisionRecall::new(self.model, self.x, self.labels, None)?
                .draw("Precision and recall"),
            "How many of the rows taken for a class belong to it, for each share of its rows that is found. The dashed line is chance.",
        );
        let reliability = Reliability::new(self.model, self.x, self.labels)?;
        html.figure(
            &reliability.draw("Calibration of the probabilities"),
            "On the dashed line probabilities are right: of the rows that get a probability of 70 %, 70 % belong to the class.",
        );
        html.raw("</div>");
        Ok(())
    }

    /// The columns by importance; gives their places among the columns that are used, the most important first.
    fn columns(&self, html: &mut Html) -> Vec<usize> {
        html.section("columns", "Columns");
        let schema = self.model.schema();
        let relevance = Relevance::of_columns(self.model);
        let mut found: Vec<_> = (schema.used_columns().enumerate())
            .map(|(k, column)| {
                (k, column, relevance.values[k], relevance.low[k], relevance.high[k])
            })
            .collect();
        found.sort_by(|a, b| b.2.total_cmp(&a.2));
        let largest = found.first().map_or(1.0, |column| column.2.max(f64::MIN_POSITIVE));
        html.paragraph(
            "Importance is the share of a column in the learned distance, on standardised values; the features of a category are summed. Columns that are strongly correlated share theirs, and importance says nothing about cause.",
        );
        let spread = relevance.is_spread();
        let rows = found.iter().take(LISTED).map(|(place, column, value, low, high)| {
            let share = percent(*value);
            let mut cells = vec![
                Cell::Name(column.name.clone()),
                Cell::Text(kind_words(&column.kind)),
                Cell::Text(self.held(*place)),
                Cell::Number(share.clone(), *value),
            ];
            if spread {
                cells.push(Cell::Text(format!("{} to {}", percent(*low), percent(*high))));
            }
            cells.push(Cell::Meter(value / largest, share));
            cells
        });
        let mut head = vec!["Column", "Kind", "In these rows", "Importance"];
        if spread {
            head.push("Among the SVMs");
        }
        head.push("Bar");
        let caption = match found.len() > LISTED {
            true => format!("The {LISTED} most important of {} columns", found.len()),
            false => "All columns that the model uses".to_owned(),
        };
        html.table(&caption, &head, rows.collect(), true);
        let ignored: Vec<String> = (schema.columns().iter())
            .filter_map(|column| column.left_out().map(|why| format!("{} ({why})", column.name)))
            .collect();
        if !ignored.is_empty() {
            html.paragraph(&format!("Not used: {}.", ignored.join(", ")));
        }
        found.into_iter().filter(|column| column.2 > 0.0).map(|column| column.0).collect()
    }

    /// What the rows hold in a column, in a few words.
    fn held(&self, place: usize) -> String {
        let columns: Vec<_> = self.model.schema().used_columns().collect();
        let first: usize = columns[..place].iter().map(|column| column.kind.width()).sum();
        let missing = self.x.col(first).filter(|v| v.is_nan()).count();
        let missing = match missing {
            0 => String::new(),
            n => format!(", {n} missing"),
        };
        match &columns[place].kind {
            Kind::Number => {
                let known = self.x.col(first).filter(|v| !v.is_nan());
                let ends =
                    known.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
                match ends.0 <= ends.1 {
                    true => format!("{} to {}{missing}", short(ends.0), short(ends.1)),
                    false => "all missing".to_owned(),
                }
            }
            kind => {
                let cells = self.x.iter_rows().map(|row| {
                    self.model.schema().cells(row).into_iter().nth(place).unwrap_or_default()
                });
                let mut counts: std::collections::BTreeMap<String, usize> = Default::default();
                cells.for_each(|cell| *counts.entry(cell).or_default() += 1);
                let most =
                    counts.iter().max_by_key(|(_, n)| **n).map_or("", |(cell, _)| cell.as_str());
                format!("most often {most}; {}", counted(kind.levels().len(), "category"))
            }
        }
    }

    fn dependence(&self, html: &mut Html, leading: &[usize]) -> Result<()> {
        html.section("dependence", "How the probability depends on a column");
        let class = match self.model.classes().len() {
            2 => 1,
            // The most frequent class of the rows.
            n => (0..n)
                .max_by_key(|c| self.truth.iter().filter(|t| **t == Some(*c)).count())
                .unwrap_or(0),
        };
        html.paragraph(&format!(
            "Each picture gives one column one value after another and leaves the other columns as they are. The line is the mean probability of {}, the band holds the curves of eight tenths of the rows, each moved to the same mean: where it is wide, the effect of the column depends on others. Where columns are correlated, some of these rows would never occur.",
            self.model.classes()[class]
        ));
        html.raw("<div class=\"pair\">");
        for &column in leading.iter().take(DEPENDENCES) {
            if self.probabilities.is_none() {
                break;
            }
            if let Some(figure) = Dependence::new(self.model, self.x, column, class)? {
                let caption = format!("{}, mean of {}", figure.column, counted(figure.rows, "row"));
                html.figure(&figure.draw(&figure.column.clone()), &caption);
            }
        }
        html.raw("</div>");
        Ok(())
    }

    fn map(&self, html: &mut Html) -> Result<()> {
        html.section("map", "Map");
        let step = self.x.rows().div_ceil(MAPPED).max(1);
        let some: Vec<usize> = (0..self.x.rows()).step_by(step).collect();
        let labels: Vec<String> = some.iter().map(|&row| self.labels[row].clone()).collect();
        let map = Map::new(self.model, &self.x.select_rows(&some), Some(&labels))?;
        let caption = match step {
            1 => "The rows in a plane of the learned metric, and what the model decides there."
                .to_owned(),
            _ => format!(
                "{} of the {} rows in a plane of the learned metric, and what the model decides there.",
                some.len(),
                self.x.rows()
            ),
        };
        html.figure(&map.draw("Map of the rows"), &caption);
        Ok(())
    }

    /// The rows that are worth a look: the surest that are right and wrong, for each of two classes or else in all, and the
    /// one closest to the boundary.
    fn chosen(&self) -> Vec<(usize, &'static str)> {
        let sure = |row: usize| match &self.probabilities {
            Some(p) => p[(row, self.predicted[row])],
            None => 0.0,
        };
        let is_right = |row: usize| self.truth[row] == Some(self.predicted[row]);
        let mut order: Vec<usize> = (0..self.x.rows()).collect();
        order.sort_by(|&a, &b| sure(b).total_cmp(&sure(a)).then(a.cmp(&b)));
        let mut chosen: Vec<(usize, &'static str)> = Vec::new();
        for (right, words) in
            [(true, "among the surest, and right"), (false, "among the surest, and wrong")]
        {
            let mut classes: Vec<usize> = Vec::new();
            for &row in order.iter().filter(|row| is_right(**row) == right) {
                if classes.len() < 2 && !classes.contains(&self.predicted[row]) {
                    classes.push(self.predicted[row]);
                    chosen.push((row, words));
                }
            }
        }
        if let Some(&row) = order.last()
            && chosen.iter().all(|(other, _)| *other != row)
        {
            chosen.push((row, "closest to the boundary"));
        }
        chosen
    }

    fn rows(&self, html: &mut Html) -> Result<()> {
        html.section("rows", "Why these rows");
        if self.model.members().is_empty() {
            html.paragraph("A model of nearest neighbours has no contributions of columns.");
            return Ok(());
        }
        html.paragraph(
            "What each column contributes to the decision about a row, compared with the mean of the training rows. The contributions add up to the difference between the two decision values.",
        );
        for (row, words) in self.chosen() {
            let sure = self.probabilities.as_ref().map(|p| p[(row, self.predicted[row])]);
            let sure = sure.map_or(String::new(), |p| format!(" with {}", percent(p)));
            let title = format!(
                "Row {}, {words}: {} predicted{sure}, truly {}",
                row + 1,
                self.model.classes()[self.predicted[row]],
                self.labels[row]
            );
            html.raw(&format!("<details><summary>{}</summary>", escape(&title)));
            let figure = Waterfall::new(self.model, self.x.row(row), None, EXPLAINED_COLUMNS)?;
            let spoken: Vec<String> = (figure.columns.iter().zip(&figure.contributions))
                .map(|(name, value)| format!("{name} {value:+.2}"))
                .collect();
            html.figure(
                &figure.draw(&format!("Row {}", row + 1)),
                &format!("Largest contributions: {}.", spoken.join(", ")),
            );
            html.raw("</details>");
        }
        Ok(())
    }

    fn made(&self, html: &mut Html) {
        html.section("made", "How it was made");
        let report = self.model.report();
        html.paragraph(&format!(
            "The model was trained on {}. {}",
            counted(report.rows, "row"),
            match report.landmarks {
                Some(_) => "There were too many rows for exact SVMs, so these rest on landmarks, rows that stand for all others.",
                None => "All SVMs are exact.",
            }
        ));
        let members = self.model.members();
        if !members.is_empty() {
            let rows = members.iter().map(|member| {
                vec![
                    Cell::Text(member.kernel().to_string()),
                    Cell::Text(member.metric().form().to_string()),
                    Cell::Number(short(member.cost()), member.cost()),
                    Cell::Number(format!("{:.2}", member.weight()), member.weight()),
                ]
            });
            let caption = match members.len() {
                1 => "The SVM of the model".to_owned(),
                n => format!("The {n} SVMs whose weighted mean decides"),
            };
            html.table(&caption, &["Kernel", "Metric", "C", "Weight"], rows.collect(), false);
        }
        if !report.warnings.is_empty() {
            html.paragraph("While it was trained, it was said:");
            let items: Vec<String> =
                report.warnings.iter().map(|text| format!("<li>{}</li>", escape(text))).collect();
            html.raw(&format!("<ul>{}</ul>", items.concat()));
        }
        let method = serde_json::to_string_pretty(&report.method).unwrap_or_default();
        html.raw(&format!(
            "<details><summary>All parameters</summary><pre tabindex=\"0\">{}</pre></details>",
            escape(&method)
        ));
    }

    fn limits(&self, html: &mut Html) {
        html.section("limits", "Limits");
        let few = self.measures.per_class.iter().filter(|class| class.rows < 30);
        let few: Vec<&str> = few.map(|class| class.class.as_str()).collect();
        let mut items = vec![
            "The figures hold for rows that come about as these did. Where the world changes, or the rows were selected, they do not.".to_owned(),
            "Intervals are for chance among the rows of this page only, not for another training of the model.".to_owned(),
            "Contributions and importance say how the model decides, not what causes what.".to_owned(),
        ];
        if !few.is_empty() {
            items.push(format!(
                "Fewer than 30 rows are of: {}. What is said about {} is uncertain.",
                few.join(", "),
                if few.len() == 1 { "this class" } else { "these classes" }
            ));
        }
        let unknown: Vec<&str> = (self.measures.classes[self.model.classes().len()..].iter())
            .map(String::as_str)
            .collect();
        if !unknown.is_empty() {
            items.push(format!(
                "The model does not know: {}. Such rows count as misclassified.",
                unknown.join(", ")
            ));
        }
        let items: Vec<String> =
            items.iter().map(|text| format!("<li>{}</li>", escape(text))).collect();
        html.raw(&format!("<ul>{}</ul>", items.concat()));
    }
}

/// Whether more than half of the support vectors are rows of `x`, which rows that were not trained on hardly are.
fn has_support_vectors(model: &Model, x: &Matrix) -> bool {
    let bits = |row: &[f64]| -> Vec<u64> {
        let filled = row.iter().zip(&model.scaler().fill);
        filled.map(|(v, fill)| if v.is_nan() { *fill } else { *v }).map(f64::to_bits).collect()
    };
    let rows: std::collections::HashSet<Vec<u64>> = x.iter_rows().map(bits).collect();
    let support = model.support_vectors();
    let found = support.iter_rows().filter(|row| rows.contains(&bits(row))).count();
    2 * found > support.rows()
}

fn meaning(measure: Measure) -> &'static str {
    match measure {
        Measure::Error => "share of rows that are misclassified",
        Measure::BalancedError => "the same as a mean over the classes, however many rows each has",
        Measure::Auc => {
            "how often a row of a class is ranked above a row of another; 0.5 is chance"
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
        Measure::CalibrationError => "how far stated probabilities are from observed shares",
        _ => "",
    }
}

fn kind_words(kind: &Kind) -> String {
    match kind {
        Kind::Number => "numbers".to_owned(),
        Kind::Codes { levels } => format!("{} as codes", counted(levels.len(), "category")),
        Kind::OneHot { levels } => counted(levels.len(), "category"),
        _ => "not used".to_owned(),
    }
}

/// A number of things, with the right form of their name.
fn counted(count: usize, name: &str) -> String {
    match (count, name) {
        (1, _) => format!("1 {name}"),
        (n, "class") => format!("{n} classes"),
        (n, "category") => format!("{n} categories"),
        (n, _) => format!("{n} {name}s"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Four digits, without an exponent where that is short.
fn short(value: f64) -> String {
    let power = value.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
    let text = match power {
        _ if value == 0.0 => return "0".to_owned(),
        -4..=6 => format!("{value:.*}", (3 - power).max(0) as usize),
        _ => return format!("{value:.3e}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
