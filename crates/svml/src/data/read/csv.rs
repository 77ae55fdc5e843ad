//! From a table of cells to a data set: finds the target, refuses, drops or keeps rows with missing values, and
//! decides for each column whether it holds numbers or categories.

use std::collections::HashMap;

use crate::error::{Error, Remedy, Result};
use crate::parallel;

use super::Gaps;
use super::chosen::{Said, places, said};
use super::encode::encode;
use super::slips::{Slip, Suspect, suspects};
use super::source::Input;
use super::table::{Cell, Content, Notation, Table, names_by_place, names_of};
use crate::data::cell::{excerpt, number};
use crate::data::coding::{are_odd, check_width, kind_of, no_such_column, odd_cell};
use crate::data::dataset::Groups;
use crate::data::identifiers::{LeftOut, are_row_numbers, is_date, of_texts, whole};
use crate::data::options::{Categories, Format, Missing, ReadOptions, Target};
use crate::data::schema::{Column, Kind, Schema, TargetColumn};
use crate::data::{Dataset, labels};

/// What is to be said about a table that was read.
pub(super) struct Notes {
    /// Columns that look mistyped.
    pub suspects: Vec<Suspect>,
    /// What was missing.
    pub gaps: Gaps,
    /// The first row, if that it holds names is a guess that may be wrong.
    pub header: Option<Vec<String>>,
}

/// Reads a table as training data, and says what is odd about it.
pub(super) fn read(input: &Input, options: &ReadOptions) -> Result<(Dataset, Notes)> {
    // Labels are texts; where they are, the first row tells, whether it holds names or not.
    let texts = |first: &[String]| {
        let names = [names_of(first), names_by_place(first.len())];
        let named = options.groups.iter().chain(&options.text);
        let named: Vec<Target> = named.map(|column| Target::Column(column.clone())).collect();
        let wanted = std::iter::once(&options.target).chain(&named);
        let places = wanted.flat_map(|column| {
            names.iter().filter_map(|names| find_target(names, column).ok()).collect::<Vec<_>>()
        });
        places.collect()
    };
    let mut table = Table::read(input, options.delimiter, options.header, texts)?;
    let (header, guess) = match options.header {
        Some(header) => (header, None),
        None => has_header(&table, options),
    };
    table.settle_header(input, header)?;
    let first = usize::from(header);
    if table.rows() == 0 {
        return Err(Error::NoRows(String::new()));
    }
    if table.width() < 2 {
        return Err(Error::Parse {
            line: table.line(0) as u64,
            message: "the table has 1 column, but at least 2 are needed: a target and a feature"
                .to_owned(),
            remedy: Some(Remedy::GiveDelimiter),
        });
    }
    if table.rows() <= first {
        return Err(Error::NoRows(" after the header".to_owned()));
    }

    let names = table.names(header);
    check_distinct(&names, table.line(0))?;
    let target = find_target(&names, &options.target)?;
    let features: Vec<usize> = (0..table.width()).filter(|&j| j != target).collect();
    let said = said(&names, Some(target), options)?;
    let group_column = find_groups(&names, target, options.groups.as_deref())?;
    let mut is_text = vec![false; names.len()];
    places(&names, &options.text)?.into_iter().for_each(|j| is_text[j] = true);
    let all: Vec<usize> = (first..table.rows()).collect();
    let may_be_odd = |j: &usize| group_column != Some(*j) && said[*j] != Said::Drop && !is_text[*j];
    let checked: Vec<usize> = features.iter().copied().filter(may_be_odd).collect();
    let odd = fill_odd(&mut table, &all, &names, &checked, options.missing)?;
    let left_out = |rows: &[usize], j: usize| match said[j] {
        _ if group_column == Some(j) => Some(LeftOut::Groups),
        Said::Drop => Some(LeftOut::Asked),
        Said::Use => None,
        Said::Nothing => identifier(&table, rows, j, is_text[j], options.categories),
    };
    // What is left out may have gaps.
    let mut why: Vec<Option<LeftOut>> = parallel::map(&features, |&j| left_out(&all, j));
    let used = features.iter().zip(&why).filter(|(_, why)| why.is_none()).map(|(&j, _)| j);
    let mut needed: Vec<usize> = used.chain([target]).chain(group_column).collect();
    needed.sort_unstable();
    let rows = usable_rows(&table, first, &names, target, &needed, options.missing)?;
    let groups = group_column.map(|j| groups(&table, &rows, &names, j)).transpose()?;
    if rows.len() < all.len() {
        for (why, &j) in why.iter_mut().zip(&features) {
            *why = why.or_else(|| left_out(&rows, j));
        }
    }

    let columns = (features.iter().zip(why))
        .map(|(&j, why)| match why {
            Some(why) => Column::ignored(names[j].clone(), why),
            None => {
                let kind = kind(&table, &rows, j, is_text[j], options.categories);
                Column::used(names[j].clone(), kind)
            }
        })
        .collect();
    let labels = labels::encode(rows.iter().map(|&i| table.cell(i, target)));
    let schema = Schema {
        columns,
        target: TargetColumn {
            name: names[target].clone(),
            position: target,
            numeric: labels.numeric,
        },
        header,
        missing: options.missing,
        format: Format::Csv,
    };
    if group_column.is_some() && schema.width() == 0 && schema.columns.len() == 1 {
        return Err(Error::Data {
            what: "apart from the classes and the groups there is no column to learn from"
                .to_owned(),
            remedy: None,
        });
    }
    check_width(&schema)?;
    let mut suspects = suspects(&table, header, &checked);
    suspects.extend(odd);
    let gaps = match options.missing {
        Missing::Refuse => Gaps::default(),
        Missing::Drop | Missing::Impute => {
            let missing = |j: usize| all.iter().filter(|&&i| table.is_missing(i, j)).count();
            let counted = needed.iter().map(|&j| (names[j].clone(), missing(j)));
            let columns = counted.filter(|(_, count)| *count > 0).collect();
            Gaps { dropped: all.len() - rows.len(), columns }
        }
    };
    let x = encode(table, &rows, &features, &schema.columns, options.missing)?;
    let weights = vec![1.0; x.rows()];
    let data = Dataset { x, y: labels.y, classes: labels.classes, schema, weights, groups };
    Ok((data, Notes { suspects, gaps, header: guess }))
}

/// Columns of numbers in which a few cells are texts: these are taken for missing values if missing values are filled, and
/// are an error otherwise.
fn fill_odd(
    table: &mut Table,
    rows: &[usize],
    names: &[String],
    columns: &[usize],
    missing: Missing,
) -> Result<Vec<Suspect>> {
    let mut found = Vec::new();
    let notations = parallel::map(columns, |&j| table.notation(j, rows.iter().copied()));
    let odd = columns.iter().zip(notations).filter(|(_, n)| are_odd(n.numbers, n.others));
    for (&j, Notation { decimal, numbers, others, first }) in odd {
        let Some(first) = first else { continue };
        let (line, cell) = (table.line(first), table.cell(first, j));
        if missing != Missing::Impute {
            return Err(Error::Parse {
                line: line as u64,
                message: odd_cell(&names[j], cell, numbers, others),
                remedy: Some(Remedy::SayText),
            });
        }
        let (column, cell) = (excerpt(&names[j]), excerpt(cell));
        found.push(Suspect { column, why: Slip::Filled, numbers, others, line, cell });
        table.take_odd_for_missing(j, decimal);
    }
    Ok(found)
}

/// Whether the first row of a table holds names and, if that is a guess which may be wrong, the row.
///
/// A column that the options ask for by a name which is in the first row, and is not a number of a column, proves it.
fn has_header(table: &Table, options: &ReadOptions) -> (bool, Option<Vec<String>>) {
    let first = table.first();
    if table.rows() == 0 {
        return (false, None);
    }
    let target = match &options.target {
        Target::Column(column) => Some(column),
        Target::Last => None,
    };
    let asked = [&options.text, &options.drop, &options.only, &options.use_anyway];
    let mut asked = asked.into_iter().flatten().chain(&options.groups).chain(target);
    let is_name = |column: &String| {
        let number = column.trim().parse::<usize>().is_ok_and(|n| (1..=first.len()).contains(&n));
        !number && first.iter().any(|cell| cell == column.trim())
    };
    if asked.any(is_name) || table.has_header() {
        return (true, None);
    }
    let target = find_target(&names_by_place(first.len()), &options.target);
    match target.is_ok_and(|target| table.may_have_header(target)) {
        true => (true, Some(first.to_vec())),
        false => (false, None),
    }
}

fn check_distinct(names: &[String], line: usize) -> Result<()> {
    let mut seen = HashMap::with_capacity(names.len());
    for (j, name) in names.iter().enumerate() {
        if let Some(before) = seen.insert(name, j) {
            return Err(Error::Parse {
                line: line as u64,
                message: format!(
                    "columns {} and {} are both named '{}'; rename one",
                    before + 1,
                    j + 1,
                    excerpt(name)
                ),
                remedy: Some(Remedy::SayNoHeader),
            });
        }
    }
    Ok(())
}

/// The place of the target among columns of these names.
pub(super) fn find_target(names: &[String], target: &Target) -> Result<usize> {
    let Target::Column(wanted) = target else {
        return Ok(names.len() - 1);
    };
    let wanted = wanted.trim();
    if let Some(j) = names.iter().position(|name| name == wanted) {
        return Ok(j);
    }
    match wanted.parse::<usize>() {
        Ok(number) if (1..=names.len()).contains(&number) => Ok(number - 1),
        _ => Err(no_such_column(wanted, names)),
    }
}

/// The place of the column of groups, which cannot be the target.
fn find_groups(names: &[String], target: usize, wanted: Option<&str>) -> Result<Option<usize>> {
    let Some(wanted) = wanted else { return Ok(None) };
    let found = find_target(names, &Target::Column(wanted.to_owned()))?;
    match found == target {
        true => Err(Error::parameter(
            "groups",
            excerpt(wanted),
            "a column other than the target column",
        )),
        false => Ok(Some(found)),
    }
}

/// The groups of some rows, which all must have one.
fn groups(table: &Table, rows: &[usize], names: &[String], column: usize) -> Result<Groups> {
    let of_row = |&row: &usize| match table.is_missing(row, column) {
        true => Err(Error::Missing { row: table.line(row), column: excerpt(&names[column]) }),
        false => Ok(table.cell(row, column)),
    };
    let of_rows: Vec<&str> = rows.iter().map(of_row).collect::<Result<_>>()?;
    Ok(Groups::named(&of_rows, Some(names[column].clone())))
}

/// The rows that are kept. Only under [`Missing::Impute`] can they hold missing values in the columns that are `needed`,
/// never in the target.
fn usable_rows(
    table: &Table,
    first: usize,
    names: &[String],
    target: usize,
    needed: &[usize],
    missing: Missing,
) -> Result<Vec<usize>> {
    let all = first..table.rows();
    if missing == Missing::Drop {
        for (j, name) in needed.iter().map(|&j| (j, &names[j])) {
            if table.content(j, all.clone()) == Content::Empty {
                return Err(Error::Parse {
                    line: table.line(first) as u64,
                    message: format!(
                        "column {}: all {} values are missing, from this line to the last; remove the column",
                        excerpt(name),
                        all.len()
                    ),
                    remedy: None,
                });
            }
        }
    }
    let mut rows = Vec::with_capacity(all.len());
    for i in all {
        let gap = needed.iter().copied().find(|&j| table.is_missing(i, j));
        match (missing, gap) {
            (Missing::Drop, Some(_)) => continue,
            (Missing::Refuse, Some(j)) if j != target => {
                return Err(Error::Missing { row: table.line(i), column: excerpt(&names[j]) });
            }
            _ => {}
        }
        if table.is_missing(i, target) {
            return Err(Error::Parse {
                line: table.line(i) as u64,
                message: format!(
                    "column {}: the class label is missing ({})",
                    excerpt(&names[target]),
                    match table.cell(i, target) {
                        "" => "''".to_owned(),
                        word =>
                            format!("'{word}' counts as missing and cannot be the name of a class"),
                    }
                ),
                remedy: Some(Remedy::DropMissing),
            });
        }
        rows.push(i);
    }
    if rows.is_empty() {
        return Err(Error::NoRows(
            " without missing values; impute missing values, or remove the columns that have the most"
                .to_owned(),
        ));
    }
    Ok(rows)
}

/// Why a column looks like an identifier, if it does and identifiers are left out.
fn identifier(
    table: &Table,
    rows: &[usize],
    column: usize,
    is_text: bool,
    categories: Categories,
) -> Option<LeftOut> {
    if categories != Categories::Auto {
        return None;
    }
    match table.content(column, rows.iter().copied()) {
        Content::Empty => None,
        content if is_text || content == Content::Text => {
            let (pool, counts) = (table.pool(column), table.counts(column, rows.iter().copied()));
            let there = || (1..counts.len()).filter(|&id| counts[id] > 0);
            let dates = there().filter(|&id| is_date(pool.get(id))).map(|id| counts[id]).sum();
            of_texts(there().count(), counts.iter().sum(), dates)
        }
        Content::Text => None,
        Content::Number(decimal) => {
            let value = |&row: &usize| match table.at(row, column) {
                Cell::Number(value) => whole(value),
                Cell::Text(_) => number(table.cell(row, column), decimal).and_then(whole),
                Cell::Missing => None,
            };
            are_row_numbers(rows.iter().map(value)).then_some(LeftOut::RowNumber)
        }
    }
}

fn kind(
    table: &Table,
    rows: &[usize],
    column: usize,
    is_text: bool,
    categories: Categories,
) -> Kind {
    let content = table.content(column, rows.iter().copied());
    if content == Content::Empty || (content != Content::Text && !is_text) {
        return Kind::Number;
    }
    let (pool, counts) = (table.pool(column), table.counts(column, rows.iter().copied()));
    let there = (1..counts.len()).filter(|&id| counts[id] > 0);
    let mut levels: Vec<String> = there.map(|id| pool.get(id).to_owned()).collect();
    levels.sort_unstable();
    kind_of(levels, categories)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::data::{Delimiter, MAX_COLUMNS};

    fn options(change: impl Fn(&mut ReadOptions)) -> ReadOptions {
        let mut options = ReadOptions { categories: Categories::Codes, ..ReadOptions::default() };
        change(&mut options);
        options
    }

    fn read(text: &str, options: &ReadOptions) -> Result<Dataset> {
        super::read(&Input::of_bytes(text.as_bytes()), options).map(|(data, _)| data)
    }

    fn plain(text: &str) -> Result<Dataset> {
        read(text, &options(|_| {}))
    }

    fn message(text: &str, options: &ReadOptions) -> String {
        read(text, options).unwrap_err().to_string()
    }

    #[test]
    fn rows_with_gaps_are_counted() {
        let text = "a,b,class\n1,,x\n2,3,y\n,,x\n4,5,y\n6,7,x\n";
        let gaps = |missing| {
            let input = Input::of_bytes(text.as_bytes());
            super::read(&input, &options(|o| o.missing = missing)).unwrap().1.gaps
        };
        let columns = [("a".to_owned(), 1), ("b".to_owned(), 2)];
        assert_eq!(gaps(Missing::Drop).dropped, 2);
        assert_eq!(gaps(Missing::Drop).columns, columns);
        assert_eq!(gaps(Missing::Impute).dropped, 0);
        assert_eq!(gaps(Missing::Impute).columns, columns);
    }

    #[test]
    fn everything_is_found() {
        let data = plain("age;colour;class\n1,5;red;1\n2;blue;2\n3;red;1\n").unwrap();
        assert_eq!(data.x().as_slice(), [1.5, 1.0, 2.0, 0.0, 3.0, 1.0]);
        assert_eq!(data.classes(), ["1", "2"]);
        assert_eq!(data.y(), [0, 1, 0]);
        let schema = data.schema();
        assert_eq!(schema.encoded_names(), ["age", "colour"]);
        assert_eq!(schema.columns()[1].kind.levels(), ["blue", "red"]);
        assert!(schema.named() && schema.target().numeric);
        assert_eq!(schema.target().name, "class");
        schema.validate().unwrap();
    }

    #[test]
    fn few_categories_get_a_column_each_and_many_a_code() {
        let text = |levels: usize| {
            let row = |i: usize| format!("c{:02},{i}.5,{}\n", i % levels, ["a", "b"][i % 2]);
            (0..60).map(row).collect::<String>()
        };
        let columns =
            |levels: usize| read(&text(levels), &ReadOptions::default()).unwrap().columns();
        assert_eq!((columns(3), columns(20), columns(21)), (4, 21, 2));
    }

    /// `rows` numbers, and one odd cell among them in line 7.
    fn with_odd_cell(rows: usize, odd: &str) -> String {
        let cell = |i: usize| if i == 5 { odd.to_owned() } else { format!("{i}.25") };
        let row = |i: usize| format!("{},{},{}\n", cell(i), i % 5, ["a", "b"][i % 2]);
        format!("size,n,class\n{}", (0..rows).map(row).collect::<String>())
    }

    /// Neither an identifier nor a category: whatever is wanted of text columns, one odd cell is an error or is filled.
    #[test]
    fn one_odd_cell_among_numbers_is_refused_or_filled() {
        for (rows, odd) in [(11, "oops"), (1500, "\"1,05x\""), (300, "\"1,05\"")] {
            let text = with_odd_cell(rows, odd);
            for categories in [Categories::Auto, Categories::Codes, Categories::OneHot] {
                for missing in [Missing::Refuse, Missing::Drop] {
                    let options = ReadOptions { missing, categories, ..ReadOptions::default() };
                    let said = message(&text, &options);
                    let cell = odd.trim_matches('"');
                    let expected = format!(
                        "line 7: column size: '{cell}' is not a number, but {} of the {rows} values",
                        rows - 1
                    );
                    assert!(
                        said.starts_with(&expected) && said.contains("ReadOptions::text"),
                        "{said}"
                    );
                }
                let options =
                    ReadOptions { missing: Missing::Impute, categories, ..ReadOptions::default() };
                let (data, notes) =
                    super::read(&Input::of_bytes(text.as_bytes()), &options).unwrap();
                assert_eq!(data.schema().columns()[0].kind, Kind::Number);
                assert!(data.x()[(5, 0)].is_nan() && data.x()[(6, 0)] == 6.25);
                let suspect = &notes.suspects[0];
                assert_eq!((suspect.why, suspect.line, suspect.others), (Slip::Filled, 7, 1));
            }
            for column in ["size", "1"] {
                let as_text = ReadOptions { text: vec![column.into()], ..ReadOptions::default() };
                let kind = read(&text, &as_text).unwrap().schema().columns()[0].kind.clone();
                assert_eq!(kind == Kind::Ignored, rows >= 30);
                assert_eq!(kind.levels().len(), if rows >= 30 { 0 } else { rows });
            }
            let dropped = ReadOptions { drop: vec!["size".into()], ..ReadOptions::default() };
            read(&text, &dropped).unwrap();
        }
        // One in ten is not enough to tell.
        assert!(read(&with_odd_cell(10, "x"), &ReadOptions::default()).is_ok());
    }

    /// A column of numbers that is text on purpose.
    #[test]
    fn numbers_are_text_on_request() {
        let text: String = (0..60).map(|i| format!("0{},{i}.5,{}\n", i % 4, i % 2)).collect();
        let options = ReadOptions { text: vec!["x1".into()], ..ReadOptions::default() };
        let data = read(&text, &options).unwrap();
        assert_eq!(data.schema().columns()[0].kind.levels(), ["00", "01", "02", "03"]);
        let rows =
            data.schema().read_csv("02,7\n2,8\n".as_bytes(), &ReadOptions::default()).unwrap();
        assert_eq!((rows.x[(0, 2)], rows.x[(1, 2)]), (1.0, 0.0));
        let unknown = ReadOptions { text: vec!["zip".into()], ..ReadOptions::default() };
        assert!(message(&text, &unknown).contains("no column 'zip'"));
    }

    /// Rows of four numbers and a class below a first row.
    fn below(first: &str) -> String {
        let row =
            |i: usize| format!("{}.5,{},{},{i},{}\n", i % 7, i % 3, i * i % 11, ["a", "b"][i % 2]);
        format!("{first}\n{}", (0..20).map(row).collect::<String>())
    }

    #[test]
    fn a_first_row_of_numbers_may_be_a_header() {
        let header = |text: &str, target: Option<&str>| {
            let target = target.map_or(Target::Last, |name| Target::Column(name.to_owned()));
            let options = ReadOptions { target, ..ReadOptions::default() };
            let (data, notes) = super::read(&Input::of_bytes(text.as_bytes()), &options).unwrap();
            (data.schema().named(), notes.header.is_some())
        };
        for (first, guessed) in [
            ("0,1,2,3,species", true),
            ("1,2,3,4,5", true),
            ("0,1,2,3,4", true),
            ("2019,2020,2021,2022,trend", true),
            ("2019,2020,2021,2022,2023", true),
            ("1100.5,1102.5,1104.5,1106.5,class", true),
            // The class occurs again, or a name would occur twice.
            ("0,1,2,3,a", false),
            ("5.1,3.5,1.4,0.2,a", false),
            ("5.1,3.5,0.2,0.2,c", false),
            ("7,1,2,3,4", false),
        ] {
            assert_eq!(header(&below(first), None), (guessed, guessed), "{first}");
        }
        // That the column is asked for by name proves it, and nothing is guessed.
        assert_eq!(header(&below("2019,2020,2021,2022,a"), Some("a")), (true, false));
        assert_eq!(header(&below("2019,2020,2021,2022,a"), Some("5")), (false, false));
        // An odd cell does not hide the names.
        assert!(
            message(&with_odd_cell(100, "oops"), &ReadOptions::default()).contains("column size")
        );
    }

    #[test]
    fn names_are_left_out_unless_asked_for() {
        let text: String =
            (0..40).map(|i| format!("{i}.5,name{i},{}\n", ["a", "b"][i % 2])).collect();
        let data = read(&text, &ReadOptions::default()).unwrap();
        assert_eq!((data.columns(), &data.schema().columns()[1].kind), (1, &Kind::Ignored));
        // New rows have the column or have it not, and any text in it.
        let named = read(&format!("n,who,class\n{text}"), &ReadOptions::default()).unwrap();
        for new in ["n,who\n7,nobody\n", "n\n7\n", "who,n\n?,7\n"] {
            let rows = named.schema().read_csv(new.as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(rows.x.as_slice(), [7.0]);
        }
        assert_eq!(plain(&text).unwrap().columns(), 2);
        let only: String = (0..40).map(|i| format!("name{i},{}\n", ["a", "b"][i % 2])).collect();
        assert!(message(&only, &ReadOptions::default()).contains("nothing to learn from"));
    }

    /// 60 rows with two numbers that are measured, one of them sorted, and with all kinds of identifiers.
    fn passengers(header: bool) -> String {
        let row = |i: usize| {
            let (fare, when) =
                (i * i % 47, format!("2026-{:02}-{:02} 10:30", 1 + i % 12, 1 + i % 28));
            let class = ["no", "yes"][usize::from(i * i % 47 > 20)];
            format!(
                "{},Mr {i},{fare},{},{when},{},{class}\n",
                i + 1,
                3 * i + i / 7,
                ["m", "f"][i % 2]
            )
        };
        let names = if header { "Id,Name,Fare,Size,When,Sex,Survived\n" } else { "" };
        names.to_owned() + &(0..60).map(row).collect::<String>()
    }

    fn left_out(data: &Dataset) -> Vec<(&str, LeftOut)> {
        let columns = data.schema().columns().iter();
        columns.filter_map(|c| c.left_out().map(|why| (c.name.as_str(), why))).collect()
    }

    #[test]
    fn identifiers_are_left_out_unless_asked_for() {
        use LeftOut::{Asked, Date, RowNumber, Unique};
        let with = |change: fn(&mut ReadOptions)| {
            let mut options = ReadOptions::default();
            change(&mut options);
            read(&passengers(true), &options)
        };
        let data = with(|_| {}).unwrap();
        assert_eq!(left_out(&data), [("Id", RowNumber), ("Name", Unique), ("When", Date)]);
        assert_eq!(data.schema().encoded_names(), ["Fare", "Size", "Sex=f", "Sex=m"]);
        let said = data.schema().identifiers().unwrap();
        assert!(said.ends_with(
            "Id (it numbers the rows), Name (its text differs in almost every row), When (it holds dates)"
        ), "{said}");
        let bare = read(&passengers(false), &ReadOptions::default()).unwrap();
        assert_eq!(left_out(&bare), [("x1", RowNumber), ("x2", Unique), ("x5", Date)]);
        assert_eq!(bare.x(), data.x());

        let data = with(|o| o.use_anyway = vec!["Id".into(), "5".into()]).unwrap();
        assert_eq!(left_out(&data), [("Name", Unique)]);
        let data = with(|o| o.only = vec!["Id".into(), "Fare".into()]).unwrap();
        assert_eq!(data.schema().encoded_names(), ["Id", "Fare"]);
        assert_eq!(data.schema().identifiers(), None);
        let data = with(|o| o.drop = vec!["Fare".into(), "Name".into()]).unwrap();
        assert_eq!(
            left_out(&data),
            [("Id", RowNumber), ("Name", Asked), ("Fare", Asked), ("When", Date)]
        );
        let data = with(|o| o.categories = Categories::Codes).unwrap();
        assert_eq!((left_out(&data).len(), data.columns()), (0, 6));

        let refused = |change: fn(&mut ReadOptions)| with(change).unwrap_err().to_string();
        let unknown = refused(|o| o.drop = vec!["Fair".into()]);
        assert!(
            unknown.contains("no column 'Fair'") && unknown.contains("Fare, Size"),
            "{unknown}"
        );
        assert!(refused(|o| o.only = vec!["9".into()]).contains("no column '9'"));
        assert!(
            refused(|o| o.drop = vec!["Survived".into()])
                .contains("a column other than the target column")
        );
        let both = refused(|o| (o.drop, o.only) = (vec!["3".into()], vec!["Fare".into()]));
        assert!(both.contains("drop = 'Fare' is not allowed"), "{both}");
        let beside = refused(|o| (o.use_anyway, o.only) = (vec!["Id".into()], vec!["Fare".into()]));
        assert!(beside.contains("one of the columns given by only"), "{beside}");
        let nothing = refused(|o| o.only = vec!["Survived".into()]);
        assert!(nothing.contains("nothing to learn from: Id (as requested)"), "{nothing}");
    }

    /// Neither that a row has no name nor that all of them have none is a reason to leave out rows.
    #[test]
    fn gaps_in_what_is_left_out_do_not_matter() {
        let rows = |who: fn(usize) -> String| {
            let row = |i| format!("{},{},{}\n", who(i), i * i % 31, ["a", "b"][i % 2]);
            (0..60).map(row).collect::<String>()
        };
        let names = rows(|i| if i % 9 == 4 { String::new() } else { format!("Mr {i}") });
        for missing in [Missing::Refuse, Missing::Drop, Missing::Impute] {
            let data = read(&names, &ReadOptions { missing, ..ReadOptions::default() }).unwrap();
            assert_eq!((data.rows(), data.columns()), (60, 1));
            let empty = rows(|_| "?".to_owned());
            let drop = vec!["1".to_owned()];
            let options = ReadOptions { missing, drop, ..ReadOptions::default() };
            assert_eq!(read(&empty, &options).unwrap().columns(), 1);
        }
        // A column that is used must have values.
        let options = ReadOptions { missing: Missing::Drop, ..ReadOptions::default() };
        assert!(message(&rows(|_| "?".to_owned()), &options).contains("all 60 values are missing"));
        let one = read(&rows(|_| "5".to_owned()), &ReadOptions::default()).unwrap();
        assert_eq!(one.columns(), 2);
    }

    #[test]
    fn one_hot_columns() {
        let onehot = options(|o| o.categories = Categories::OneHot);
        let data = read("red,1,a\nblue,2,b\nred,3,a\n", &onehot).unwrap();
        assert_eq!(data.columns(), 3);
        assert_eq!(data.x().row(0), [0.0, 1.0, 1.0]);
        assert_eq!(data.x().row(1), [1.0, 0.0, 2.0]);
        assert_eq!(data.schema().encoded_names(), ["x1=blue", "x1=red", "x2"]);
        let ids = |n: usize| (0..n).map(|i| format!("id{i},a\n")).collect::<String>();
        assert!(message(&ids(MAX_COLUMNS + 1), &onehot).contains("more than the limit of 100000"));
        let error = read(&ids(16_400), &onehot).map(|d| d.columns());
        assert!(matches!(error, Err(Error::TooLarge { .. })), "{error:?}");
    }

    #[test]
    fn the_target_by_name_then_by_number() {
        let target = |name: &str| options(|o| o.target = Target::Column(name.to_owned()));
        let text = "2,b,c\n1,x,5\n2,y,6\n";
        let header = |name: &str| {
            let mut options = target(name);
            options.header = Some(true);
            read(text, &options).map(|d| d.schema().target().position)
        };
        assert_eq!(header("b").unwrap(), 1);
        assert_eq!(header("2").unwrap(), 0);
        assert_eq!(header("3").unwrap(), 2);
        for absent in ["d", "0", "4", "-1"] {
            let message = header(absent).unwrap_err().to_string();
            assert_eq!(
                message,
                format!("there is no column '{absent}' in the data; the columns are: 2, b, c")
            );
        }
        let data = read("a,1\nb,2\n", &target("1")).unwrap();
        assert_eq!(data.classes(), ["a", "b"]);
        assert_eq!(data.schema().encoded_names(), ["x2"]);
        assert_eq!(data.schema().target().name, "x1");
    }

    #[test]
    fn missing_values() {
        let text = "1,a,+\n?,b,-\n2,NA,+\n3,a,\n4,a,+\n";
        let refuse = read(text, &ReadOptions::default()).unwrap_err();
        assert!(matches!(refuse, Error::Missing { row: 2, column } if column == "x1"));

        // Level b occurs only in a dropped row, so that it is not known afterwards.
        let data = read(text, &options(|o| o.missing = Missing::Drop)).unwrap();
        assert_eq!(data.x().as_slice(), [1.0, 0.0, 4.0, 0.0]);
        assert_eq!(data.classes(), ["+"]);
        assert_eq!(data.schema().columns()[1].kind.levels(), ["a"]);

        let impute = options(|o| o.missing = Missing::Impute);
        assert!(
            message(text, &impute).starts_with("line 4: column x3: the class label is missing")
        );
        let data = read("1,a,+\n?,b,-\n2,NA,+\n", &impute).unwrap();
        assert!(data.x()[(1, 0)].is_nan() && data.x()[(2, 1)].is_nan());
        assert_eq!(data.x()[(1, 1)], 1.0);

        let label = message("1,?\n2,a\n", &ReadOptions::default());
        assert!(label.contains("class label is missing"), "{label}");
    }

    #[test]
    fn columns_without_any_value_are_named() {
        let text = "a,b,c\n1,?,x\n2,,y\n";
        let named = message(text, &options(|o| o.missing = Missing::Drop));
        assert!(named.starts_with("line 2: column b: all 2 values are missing"), "{named}");
        // Imputed, such a column is constant, and constant columns are left out when learning.
        let data = read(text, &options(|o| o.missing = Missing::Impute)).unwrap();
        assert!(data.x().col(1).all(f64::is_nan));
        let drop = options(|o| o.missing = Missing::Drop);
        assert!(message("1,?,a\n?,2,b\n", &drop).contains("no rows without missing values"));
    }

    #[test]
    fn numbers_out_of_range() {
        for text in ["1,a\n2,b\ninf,a\n", "1,a\n\n1e301,b\n", "1,a\n2,b\n-Infinity,b"] {
            let error = plain(text).unwrap_err();
            assert!(matches!(error, Error::OutOfRange { row: 3, .. }), "{text}");
        }
    }

    #[test]
    fn nothing_to_learn_from() {
        for text in ["", "\n\n", "\u{20}\t\n", "a,b\n"] {
            assert!(matches!(plain(text), Err(Error::NoRows(_))), "{text:?}");
        }
        let header = options(|o| o.header = Some(true));
        assert!(message("1,2\n", &header).contains("no rows after the header"));
        for text in ["1\n2\n", "name\n1\n"] {
            let message = message(text, &ReadOptions::default());
            assert!(message.contains("1 column, but at least 2"), "{message}");
        }
        let tab = options(|o| o.delimiter = Some(Delimiter::Tab));
        assert!(message("1,2\n3,4\n", &tab).contains("1 column, but at least 2"));
    }

    #[test]
    fn names_must_differ() {
        let text = "\na,b,a\n1,2,3\n";
        assert_eq!(
            message(text, &ReadOptions::default()),
            "line 2: columns 1 and 3 are both named 'a'; rename one; if the first row holds data, say so (ReadOptions { header: Some(false), .. })"
        );
        assert!(plain("x2,,c\n1,2,3\n").is_err());
        assert!(plain(",a,b\n1,2,3\n").is_ok());
    }

    #[test]
    fn one_class_and_many_classes_are_the_models_business() {
        assert_eq!(plain("1,a\n2,a\n").unwrap().classes(), ["a"]);
        assert_eq!(plain("1,a\n2,b\n3,c\n").unwrap().classes().len(), 3);
    }

    #[test]
    fn of_many_columns_that_are_left_out_some_are_named() {
        let row = |i: usize| {
            (0..12).map(|k| format!("n{k}_{i},")).collect::<String>() + ["a\n", "b\n"][i % 2]
        };
        let text: String = (0..40).map(row).collect();
        let said = message(&text, &ReadOptions::default());
        assert!(said.contains("nothing to learn from") && said.contains(", ..."), "{said}");
    }
}
