//! What the columns hold, how much each counts, and how the probability depends on the leading ones.

use svml::Result;
use svml::data::Kind;
use svml::figures::{Dependence, Relevance};
use svml_plot::Draw;

use super::{Facts, LISTED, counted, percent, short};
use crate::html::{Cell, Html};

/// Columns with a picture of how the probability depends on them.
const DEPENDENCES: usize = 6;

impl Facts<'_> {
    /// The columns by importance; gives their places among the columns that are used, the most important first.
    pub(super) fn columns(&self, html: &mut Html) -> Vec<usize> {
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
            "Importance is the share of a column in the learned distance, on standardised values; for a categorical column, the shares of its encoded features are added up. Strongly correlated columns share their importance, and importance says nothing about causes.",
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
            head.push("Range over the SVMs");
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

    pub(super) fn dependence(&self, html: &mut Html, leading: &[usize]) -> Result<()> {
        html.section("dependence", "How the probability depends on a column");
        let class = match self.model.classes().len() {
            2 => 1,
            // The most frequent class of the rows.
            n => (0..n)
                .max_by_key(|c| self.truth.iter().filter(|t| **t == Some(*c)).count())
                .unwrap_or(0),
        };
        html.paragraph(&format!(
            "Each plot varies one column and leaves the other columns as they are. The line is the mean probability of {}; the band contains the curves of the middle 80 % of the rows, each shifted to the same mean: where it is wide, the effect of the column depends on other columns. If columns are correlated, some of the combinations would never occur in practice.",
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
}

fn kind_words(kind: &Kind) -> String {
    match kind {
        Kind::Number => "numbers".to_owned(),
        Kind::Codes { levels } => format!("{} as codes", counted(levels.len(), "category")),
        Kind::OneHot { levels } => counted(levels.len(), "category"),
        _ => "not used".to_owned(),
    }
}
