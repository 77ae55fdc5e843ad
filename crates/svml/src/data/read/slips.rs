//! Columns that were read as something else than they are, most likely: mistyped, or written in a way that is not known.

use super::table::{Cell, Content, Table};
use crate::data::cell::{Decimal, excerpt};
use crate::data::coding::looks_mistyped;

/// A column that was read as something else than it is, most likely.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suspect {
    /// Name of the column.
    pub column: String,
    /// What makes it suspect.
    pub why: Slip,
    /// Number of cells that are numbers, or look like them.
    pub numbers: usize,
    /// Number of cells that do not.
    pub others: usize,
    /// Line of the first cell that is meant.
    pub line: usize,
    /// The text of that cell, shortened.
    pub cell: String,
}

/// What makes a column suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Slip {
    /// It is text because of a few cells that are no numbers: typing mistakes, or an unknown word for a missing value.
    FewTexts,
    /// It is numbers, and the very few cells that are none are filled like missing values.
    Filled,
    /// It is text, but nearly all cells are numbers with a comma, a sign or a unit: `1,234`, `$12`, `12%`, `1,5` beside `1.5`.
    Signs,
    /// It is numbers, but its commas may separate thousands: `999`, `1,000`.
    Thousands,
}

/// Those of some columns of a table that look mistyped.
pub(super) fn suspects(table: &Table, header: bool, columns: &[usize]) -> Vec<Suspect> {
    let names = table.names(header);
    columns.iter().filter_map(|&column| suspect(table, header, column, &names[column])).collect()
}

/// Why a column is suspect, if it is: at least four in five cells are numbers, or look like them, but it is text; or it has
/// commas that may separate thousands.
fn suspect(table: &Table, header: bool, column: usize, name: &str) -> Option<Suspect> {
    let rows = usize::from(header)..table.rows();
    let found = |why, numbers, others, line, cell: &str| Suspect {
        column: excerpt(name),
        why,
        numbers,
        others,
        line,
        cell: excerpt(cell),
    };
    match table.content(column, rows.clone()) {
        Content::Text => {}
        Content::Number(Decimal::Comma) => {
            let (line, cell) = table.thousands(column, rows.clone())?;
            return Some(found(Slip::Thousands, rows.len(), 0, line, &cell));
        }
        _ => return None,
    }
    let pool = table.pool(column);
    // Of each text, what it is; nothing if it is missing.
    let kinds: Vec<Option<Looks>> = (pool.texts().enumerate())
        .map(|(at, text)| (!pool.is_missing(at + 1)).then(|| Looks::of(table, text)))
        .collect();
    let mut counts = [0; 3];
    let mut first = [None; 3];
    for row in rows {
        let looks = match table.at(row, column) {
            Cell::Number(_) => Looks::Number,
            Cell::Missing => continue,
            Cell::Text(id) => match kinds[id - 1] {
                Some(looks) => looks,
                None => continue,
            },
        };
        counts[looks as usize] += 1;
        first[looks as usize] = first[looks as usize].or(Some(row));
    }
    let [numbers, alike, others] = counts;
    let at = |row: usize| (table.line(row), table.cell(row, column));
    if looks_mistyped(numbers, alike + others) {
        let row = first[1].into_iter().chain(first[2]).min()?;
        let (line, cell) = at(row);
        return Some(found(Slip::FewTexts, numbers, alike + others, line, cell));
    }
    // Each is a number, but not all in one notation: the first with a comma is meant.
    let comma = || {
        let mixed = (0..pool.len()).find(|&k| pool.get(k + 1).contains(','))?;
        (usize::from(header)..table.rows()).find(|&r| table.at(r, column) == Cell::Text(mixed + 1))
    };
    let enough = others == 0 || looks_mistyped(numbers + alike, others);
    if !enough || pool.len() < FEWEST_TEXTS || !one_unit(pool.texts()) {
        return None;
    }
    let (line, cell) = at(first[1].or_else(comma)?);
    Some(found(Slip::Signs, numbers + alike, others, line, cell))
}

/// Fewest different texts of a column that may be one of numbers with signs: a few are categories more often.
const FEWEST_TEXTS: usize = 5;

/// What a cell looks like.
#[derive(Clone, Copy)]
enum Looks {
    Number = 0,
    /// A number but for a comma, a sign or a unit.
    Amount = 1,
    Other = 2,
}

impl Looks {
    fn of(table: &Table, text: &str) -> Self {
        match table.is_number(text) {
            true => Self::Number,
            false if unit_of(text).is_some() => Self::Amount,
            false => Self::Other,
        }
    }
}

/// Signs that stand before or after an amount.
const SIGNS: [char; 8] = ['$', '\u{20ac}', '\u{a3}', '\u{a5}', '%', '\u{b0}', '+', '-'];
/// Longest unit, in letters.
const UNIT: usize = 3;

/// The letters after a number that has a sign, a unit or commas; nothing for other texts.
fn unit_of(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(SIGNS).trim_start();
    let end = rest.find(|c: char| !(c.is_ascii_digit() || ",.'".contains(c)));
    let (digits, unit) = rest.split_at(end.unwrap_or(rest.len()));
    let unit = unit.trim_start().trim_end_matches(SIGNS).trim_end();
    let letters = unit.chars().count() <= UNIT && unit.chars().all(char::is_alphabetic);
    // A separator of thousands has groups of three digits, the decimal separator stands there once.
    let groups = |separator: char| {
        let mut parts = digits.split(separator).skip(1).peekable();
        let count = digits.matches(separator).count();
        count < 2 || parts.all(|part| part.bytes().take_while(u8::is_ascii_digit).count() == 3)
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && [',', '.', '\''].into_iter().all(groups);
    (is_number && letters).then_some(unit)
}

/// Whether there is one unit, or none, in all texts that have one.
fn one_unit<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let mut units = texts.filter_map(unit_of).filter(|unit| !unit.is_empty());
    units.next().is_none_or(|first| units.all(|unit| unit == first))
}

/// Whether a number has a comma before exactly three digits and after one to three, as one that separates thousands.
pub(super) fn has_thousands(cell: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let number = cell.trim_start_matches(['+', '-']);
    number.split_once(',').is_some_and(|(before, after)| {
        digits(before)
            && digits(after)
            && after.len() == 3
            && (1..=3).contains(&before.len())
            && !before.starts_with('0')
    })
}

/// Whether a number is a whole one of three digits, which may stand beside thousands.
pub(super) fn has_three_digits(cell: &str) -> bool {
    let number = cell.trim_start_matches(['+', '-']);
    number.len() == 3 && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{Slip, has_thousands, has_three_digits, one_unit, unit_of};
    use crate::data::read::csv;
    use crate::data::read::source::Input;
    use crate::data::{Missing, ReadOptions};

    fn found(text: &str) -> Vec<(String, usize, usize, usize, String)> {
        let input = Input::of_bytes(text.as_bytes());
        let options = ReadOptions { missing: Missing::Impute, ..ReadOptions::default() };
        let (_, notes) = csv::read(&input, &options).unwrap();
        notes
            .suspects
            .into_iter()
            .map(|s| (s.column, s.numbers, s.others, s.line, s.cell))
            .collect()
    }

    #[test]
    fn one_junk_cell_among_numbers_is_named() {
        let text = "age,size,class\n1,a,x\n2,b,y\noops,c,x\n4,d,y\n5,e,x\n6,1,y\n";
        assert_eq!(found(text), [("age".to_owned(), 5, 1, 4, "oops".to_owned())]);
    }

    #[test]
    fn a_junk_cell_among_groups_is_not_named() {
        let text = "who,age,class\n1,1,x\n2,2,y\nann,oops,x\n4,4,y\n5,5,x\n6,6,y\n";
        let names = |groups: Option<&str>| -> Vec<String> {
            let groups = groups.map(str::to_owned);
            let options = ReadOptions { groups, ..ReadOptions::default() };
            let (_, notes) = csv::read(&Input::of_bytes(text.as_bytes()), &options).unwrap();
            notes.suspects.into_iter().map(|suspect| suspect.column).collect()
        };
        assert_eq!(names(None), ["who", "age"]);
        assert_eq!(names(Some("who")), ["age"]);
    }

    /// The only suspect of a column `a` of such cells.
    fn slip(cells: &[&str], delimiter: char) -> Option<(Slip, usize, String)> {
        let rows = cells.iter().enumerate();
        let table: String = rows
            .map(|(i, cell)| {
                format!("{cell}{delimiter}{}{delimiter}{}\n", i % 3, ["x", "y"][i % 2])
            })
            .collect();
        let text = format!("a{delimiter}b{delimiter}class\n{table}");
        let input = Input::of_bytes(text.as_bytes());
        let (_, mut notes) = csv::read(&input, &ReadOptions::default()).unwrap();
        assert!(notes.suspects.len() < 2);
        notes.suspects.pop().map(|s| (s.why, s.line, s.cell))
    }

    #[test]
    fn numbers_with_signs_units_and_commas_are_suspect() {
        for (cells, delimiter, cell) in [
            (["$1", "$12", "$3", "$10", "$2"], ',', "$1"),
            (["1 %", "12 %", "3 %", "10 %", "2 %"], ',', "1 %"),
            (["5kg", "12kg", "3kg", "10kg", "7kg"], ',', "5kg"),
            (["\"1,5\"", "\"2,5\"", "\"3,5\"", "\"4,5\"", "\"5,5\""], ',', "1,5"),
            (["\"1,234\"", "\"2,500\"", "\"3,5\"", "999", "998"], ',', "1,234"),
            (["1.5", "2,5", "3.5", "4,5", "5.5"], ';', "2,5"),
            (["1.234,5", "2,5", "3.111,5", "4,5", "5,5"], ';', "1.234,5"),
        ] {
            let (why, line, found) = slip(&cells, delimiter).unwrap_or_else(|| panic!("{cells:?}"));
            assert_eq!((why, found.as_str()), (Slip::Signs, cell), "{cells:?}");
            assert_eq!(line, if cell == "2,5" { 3 } else { 2 }, "{cells:?}");
        }
        for cells in [
            ["a1", "b2", "c3", "d4", "e5"],
            ["1a", "2b", "3c", "4d", "5e"],
            ["1.2.3", "1.2.4", "1.3.1", "2.0.0", "2.1.0"],
            ["2024-01-02", "2024-02-02", "2024-03-02", "2024-04-02", "2024-05-02"],
            ["$1", "$2", "$1", "$2", "$1"],
            ["north", "south", "east", "west", "10%"],
        ] {
            assert_eq!(slip(&cells, ','), None, "{cells:?}");
        }
    }

    #[test]
    fn commas_may_separate_thousands() {
        let cells = ["998", "999", "1,000", "1,001", "1,002"];
        assert_eq!(slip(&cells, ';'), Some((Slip::Thousands, 4, "1,000".to_owned())));
        // The commas come after the rows that decide how a column is read.
        let mut late = vec!["998"; 150];
        late.extend(["1,000", "1,001"]);
        assert_eq!(slip(&late, ';'), Some((Slip::Thousands, 152, "1,000".to_owned())));
        for cells in [
            ["998", "999", "1,000", "1,01", "1,002"],
            ["0,998", "0,999", "100", "101", "102"],
            ["9", "10", "1,001", "1,002", "1,003"],
        ] {
            assert_eq!(slip(&cells, ';'), None, "{cells:?}");
        }
    }

    #[test]
    fn amounts_have_groups_of_three_digits_and_a_short_unit() {
        for (text, unit) in [
            ("$1,234", ""),
            ("1.234.567", ""),
            ("1'000'000", ""),
            ("-5 %", ""),
            ("12 kg", "kg"),
            ("12abc", "abc"),
            ("1,5", ""),
        ] {
            assert_eq!(unit_of(text), Some(unit), "{text}");
        }
        for text in ["", "abc", "1.234.5", "1,2,345", "12abcd", "12 k2", ",5", "5,", "kg 5"] {
            assert_eq!(unit_of(text), None, "{text}");
        }
        assert!(one_unit(["1 kg", "2 kg", "3", "red"].into_iter()));
        assert!(one_unit(["1", "2", "red"].into_iter()));
        assert!(!one_unit(["1 kg", "2 g"].into_iter()));
    }

    #[test]
    fn thousands_have_three_digits_after_one_to_three() {
        for cell in ["1,000", "-999,999", "+12,345"] {
            assert!(has_thousands(cell), "{cell}");
        }
        for cell in
            ["0,998", "1234,000", "1,00", "1,0000", ",000", "1,00a", "a,000", "1000", "1,000,000"]
        {
            assert!(!has_thousands(cell), "{cell}");
        }
        for cell in ["999", "-100", "+100"] {
            assert!(has_three_digits(cell), "{cell}");
        }
        for cell in ["99", "1000", "9.9", ""] {
            assert!(!has_three_digits(cell), "{cell}");
        }
    }

    #[test]
    fn numbers_categories_and_the_target_are_not() {
        assert_eq!(found("age,class\n1,x\n?,y\n3,1\n4,2\n5,3\n6,4\n"), []);
        assert_eq!(found("kind,n,class\na,1,x\n1,2,y\nb,3,x\n"), []);
    }
}
