//! The rows themselves: where they lie on the map, and why five of them are classified as they are.

use svml::Result;
use svml::figures::{Map, Waterfall};
use svml_plot::Draw;

use super::{Facts, percent};
use crate::html::{Html, escape};

/// Columns that are listed for an explained row.
const EXPLAINED_COLUMNS: usize = 8;
/// Most rows on the map, so that the page stays small.
const MAPPED: usize = 1500;

impl Facts<'_> {
    pub(super) fn map(&self, html: &mut Html) -> Result<()> {
        html.section("map", "Map");
        let step = self.x.rows().div_ceil(MAPPED).max(1);
        let some: Vec<usize> = (0..self.x.rows()).step_by(step).collect();
        let labels: Vec<String> = some.iter().map(|&row| self.labels[row].clone()).collect();
        let map = Map::new(self.model, &self.x.select_rows(&some), Some(&labels))?;
        let caption = match step {
            1 => "The rows in a plane of the learned metric, with the decisions of the model."
                .to_owned(),
            _ => format!(
                "{} of the {} rows in a plane of the learned metric, with the decisions of the model.",
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
        for (right, words) in [
            (true, "among the most certain, and correct"),
            (false, "among the most certain, and wrong"),
        ] {
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
            chosen.push((row, "closest to the decision boundary"));
        }
        chosen
    }

    pub(super) fn rows(&self, html: &mut Html) -> Result<()> {
        html.section("rows", "Why these rows are classified as they are");
        if self.model.members().is_empty() {
            html.paragraph("A nearest-neighbour model has no column contributions.");
            return Ok(());
        }
        html.paragraph(
            "What each column contributes to the decision about a row, compared with the mean of the training rows. The contributions add up to the difference between the two decision values.",
        );
        let chosen = self.chosen();
        let x = self.x.select_rows(&chosen.iter().map(|(row, _)| *row).collect::<Vec<_>>());
        let why = self.model.explain(&x, None)?;
        for (place, (row, words)) in chosen.into_iter().enumerate() {
            let sure = self.probabilities.as_ref().map(|p| p[(row, self.predicted[row])]);
            let sure = sure.map_or(String::new(), |p| format!(" with probability {}", percent(p)));
            let title = format!(
                "Row {}, {words}: predicted {}{sure}, true class {}",
                row + 1,
                self.model.classes()[self.predicted[row]],
                self.labels[row]
            );
            html.raw(&format!("<details><summary>{}</summary>", escape(&title)));
            let figure = Waterfall::of(self.model, &x, &why, place, EXPLAINED_COLUMNS);
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
}
