//! The short tables of a page that has a place for them.

use std::fs;
use std::path::Path;

use svml::internals::{UCI_SETS, write_atomically};

use crate::jobs::Table;
use crate::statistics::Mean;

use super::cells::{Cell, over_sets, row};
use super::plan::{REFERENCE, SKLEARN, splits};
use super::report::seconds;
use super::verdict::sentence;

/// What stands before and after the place.
const BEGIN: &str = "<!-- from the study: begin -->\n";
const END: &str = "<!-- from the study: end -->\n";

/// The columns: method and title.
const COLUMNS: [(&str, &str); 3] =
    [(REFERENCE, "grid, 5 folds"), ("svml", "SVML as in the paper"), ("default", "default")];

/// Puts the tables into the page, if it is there and has a place for them.
pub fn update(table: &Table, page: &Path) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", page.display());
    let text = match fs::read_to_string(page) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        text => text.map_err(failed)?,
    };
    match fill(&text, &tables(table)) {
        Some(filled) => write_atomically(page, filled.as_bytes())
            .map_err(|e| format!("{}: {e}", page.display())),
        None => Ok(()),
    }
}

/// The page with the place filled.
fn fill(page: &str, with: &str) -> Option<String> {
    let start = page.find(BEGIN)? + BEGIN.len();
    let end = start + page[start..].find(END)?;
    Some(format!("{}{with}{}", &page[..start], &page[end..]))
}

fn tables(table: &Table) -> String {
    let rows: Vec<Vec<Cell<'_>>> = COLUMNS.iter().map(|(name, _)| row(table, name)).collect();
    let other = row(table, SKLEARN);
    let most = |set: usize| rows.iter().map(|row| row[set].count()).max().unwrap_or(0) as u64;
    let all = UCI_SETS.iter().enumerate().all(|(set, facts)| most(set) == splits(facts));
    let titles = COLUMNS.map(|(_, title)| title).join(" | ");
    let mut text = format!(
        "## On the paper's data sets\n\nTest error in percent, ± standard error, and processor seconds of a fit{}. [docs/study.md](docs/study.md) has all methods, the \
         paper's numbers beside ours, and the computer.\n\n{}\
         | data | splits | {titles} | seconds: {titles} | scikit-learn's grid |\n|{}\n",
        if all { "" } else { ", so far" },
        sentence(table).map_or(String::new(), |verdict| verdict + "\n\n"),
        "---|".repeat(2 * COLUMNS.len() + 3)
    );
    for (set, facts) in UCI_SETS.iter().enumerate() {
        if most(set) == 0 {
            continue;
        }
        let error = |row: &Vec<Cell<'_>>| row[set].error().map_or("-".to_owned(), Mean::plain);
        let seconds = |cell: &Cell<'_>| cell.seconds().map_or("-".to_owned(), seconds);
        let mut cells = vec![most(set).to_string()];
        cells.extend(rows.iter().map(error));
        cells.extend(rows.iter().map(|row| seconds(&row[set])));
        cells.push(seconds(&other[set]));
        text += &format!("| {} | {} |\n", facts.name, cells.join(" | "));
    }
    let means: Vec<String> = rows
        .iter()
        .map(|row| {
            let errors: Vec<Option<Mean>> = row.iter().map(Cell::error).collect();
            over_sets(&errors).map_or("-".to_owned(), Mean::plain)
        })
        .collect();
    text + &format!("| mean | | {} | | | | |\n\n", means.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_place_changes() {
        let page = format!("before\n{BEGIN}old\n{END}after\n");
        let once = fill(&page, "new\n").unwrap();
        assert_eq!(once, format!("before\n{BEGIN}new\n{END}after\n"));
        assert_eq!(fill(&once, "new\n").unwrap(), once);
        assert!(fill("no place", "new").is_none());
    }
}
