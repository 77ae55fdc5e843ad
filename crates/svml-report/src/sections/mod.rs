//! What stands on the page, section by section.

mod columns;
mod quality;
mod rows;

use svml::{Matrix, Measure, Measures, Model, Result};

use crate::html::{Cell, Html, escape};

/// Most columns and classes in tables.
const LISTED: usize = 60;

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
            "<footer>Made by <code>svml report</code>, version {}. This page is self-contained and loads nothing.</footer>",
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
                "{}, {}, {} in the column {}.",
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
                "The model misclassifies {} of these rows{range}. Always predicting the most frequent class would misclassify {}.",
                percent(measures.error),
                percent(self.guessing())
            ),
        );
        if let Some(honest) = self.model.report().honest {
            html.paragraph(&format!(
                "During training, the cross-fitted {}error on held-out rows was {} \u{b1} {} (standard error).",
                if honest.weighted { "weighted " } else { "" },
                percent(honest.error),
                percent(honest.standard_error)
            ));
        }
        if self.trained_on {
            html.element(
                "p",
                "class=\"warning\" role=\"note\"",
                "These look like the rows that the model was trained on: most of its support vectors are among them. If so, all figures on this page are too good. Use the cross-fitted error above, or rows that the model has not seen.",
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

    fn made(&self, html: &mut Html) {
        html.section("made", "How it was made");
        let report = self.model.report();
        html.paragraph(&format!(
            "The model was trained on {}. {} It was computed on {}.",
            counted(report.rows, "row"),
            match report.landmarks {
                Some(_) => "There were too many rows for exact SVMs, so the SVMs are trained on landmarks, rows that represent all others.",
                None => "All SVMs are exact.",
            },
            match report.used_card() {
                true => &report.device,
                false => "the CPU",
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
                n => format!("The {n} SVMs, whose weighted mean decides"),
            };
            html.table(&caption, &["Kernel", "Metric", "C", "Weight"], rows.collect(), false);
        }
        if !report.warnings.is_empty() {
            html.paragraph("Warnings during training:");
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
            "The figures hold for rows that arise in the same way as these. They do not hold if conditions change or if the rows were selected.".to_owned(),
            "The intervals cover only the chance in the choice of these rows, not the variation between trainings of the model.".to_owned(),
            "Contributions and importance describe how the model decides, not what causes what.".to_owned(),
        ];
        if !few.is_empty() {
            items.push(format!(
                "Fewer than 30 rows belong to: {}. The figures for {} are uncertain.",
                few.join(", "),
                if few.len() == 1 { "this class" } else { "these classes" }
            ));
        }
        let unknown: Vec<&str> = (self.measures.classes[self.model.classes().len()..].iter())
            .map(String::as_str)
            .collect();
        if !unknown.is_empty() {
            items.push(format!(
                "The model does not know these classes: {}. Their rows count as misclassified.",
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
