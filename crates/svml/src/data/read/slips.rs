//! Columns that became categories because of a few cells that are not numbers.

use crate::error::Result;

use super::delimiter;
use super::table::Table;
use crate::data::ReadOptions;
use crate::data::cell::{excerpt, is_missing};

/// A column of text in which nearly all cells are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suspect {
    /// Name of the column.
    pub column: String,
    /// Number of cells that are numbers.
    pub numbers: usize,
    /// Number of cells that are not.
    pub others: usize,
    /// Line of the first cell that is not a number.
    pub line: usize,
    /// The text of that cell, shortened.
    pub cell: String,
}

/// A column is suspect if at most one cell in this many is not a number.
const RARE: usize = 5;

/// The columns of a table in which at least four in five cells are numbers, but not all: most likely they
/// are columns of numbers with a typing mistake or with an unknown word for a missing value. The column
/// named `target` is left out.
pub fn suspects(text: &str, options: &ReadOptions, target: &str) -> Result<Vec<Suspect>> {
    let found = match options.delimiter {
        Some(delimiter) => Some(delimiter),
        None => delimiter::find(text)?,
    };
    let table = Table::parse(text, found.unwrap_or_default())?;
    let header = options.header.unwrap_or_else(|| table.has_header());
    let names = table.names(header);
    let rows = usize::from(header)..table.rows();
    let mut suspects = Vec::new();
    for (column, name) in names.iter().enumerate().filter(|(_, name)| *name != target) {
        let cells = || rows.clone().filter(|&row| !is_missing(table.cell(row, column)));
        let is_number = |row: &usize| table.is_number(table.cell(*row, column));
        let numbers = cells().filter(is_number).count();
        let others = cells().count() - numbers;
        let Some(first) = cells().find(|row| !is_number(row)) else { continue };
        if others * RARE <= numbers + others {
            suspects.push(Suspect {
                column: excerpt(name),
                numbers,
                others,
                line: table.line(first),
                cell: excerpt(table.cell(first, column)),
            });
        }
    }
    Ok(suspects)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, usize, usize, usize, String)> {
        let all = suspects(text, &ReadOptions::default(), "class").unwrap();
        all.into_iter().map(|s| (s.column, s.numbers, s.others, s.line, s.cell)).collect()
    }

    #[test]
    fn one_junk_cell_among_numbers_is_named() {
        let text = "age,size,class\n1,a,x\n2,b,y\noops,c,x\n4,d,y\n5,e,x\n6,1,y\n";
        assert_eq!(found(text), [("age".to_owned(), 5, 1, 4, "oops".to_owned())]);
    }

    #[test]
    fn numbers_categories_and_the_target_are_not() {
        assert_eq!(found("age,class\n1,x\n?,y\n3,1\n4,2\n5,3\n6,4\n"), []);
        assert_eq!(found("kind,n,class\na,1,x\n1,2,y\nb,3,x\n"), []);
    }
}
