//! Columns that became categories because of a few cells that are not numbers.

use super::table::{Cell, Table};
use crate::data::cell::excerpt;
use crate::data::coding::looks_mistyped;

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

/// The columns of a table in which at least four in five cells are numbers, but not all: most likely they
/// are columns of numbers with a typing mistake or with an unknown word for a missing value. The column
/// `target` is left out.
pub(super) fn suspects(table: &Table, header: bool, target: usize) -> Vec<Suspect> {
    let names = table.names(header);
    let rows = usize::from(header)..table.rows();
    let mut suspects = Vec::new();
    for (column, name) in names.iter().enumerate().filter(|&(column, _)| column != target) {
        let pool = table.pool(column);
        // Of each text, whether it is a number; nothing if it is missing.
        let kinds: Vec<Option<bool>> = (pool.texts().enumerate())
            .map(|(at, text)| (!pool.is_missing(at + 1)).then(|| table.is_number(text)))
            .collect();
        if !kinds.contains(&Some(false)) {
            continue;
        }
        let (mut numbers, mut others, mut first) = (0, 0, None);
        for row in rows.clone() {
            let is_number = match table.at(row, column) {
                Cell::Number(_) => Some(true),
                Cell::Missing => None,
                Cell::Text(id) => kinds[id - 1],
            };
            match is_number {
                Some(true) => numbers += 1,
                Some(false) => {
                    others += 1;
                    first = first.or(Some(row));
                }
                None => {}
            }
        }
        let Some(first) = first else { continue };
        if looks_mistyped(numbers, others) {
            suspects.push(Suspect {
                column: excerpt(name),
                numbers,
                others,
                line: table.line(first),
                cell: excerpt(table.cell(first, column)),
            });
        }
    }
    suspects
}

#[cfg(test)]
mod tests {
    use crate::data::read::csv;
    use crate::data::read::source::Input;
    use crate::data::{Missing, ReadOptions};

    fn found(text: &str) -> Vec<(String, usize, usize, usize, String)> {
        let input = Input::of_bytes(text.as_bytes());
        let options = ReadOptions { missing: Missing::Impute, ..ReadOptions::default() };
        let (_, all) = csv::read(&input, &options).unwrap();
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
