//! Reading rows to predict, by the schema of the training data. The rules are in the documentation of `data`.

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};
use crate::linalg::Matrix;

use super::chosen::{only_columns, places};
use super::encode::{encode, unseen_in};
use super::source::Input;
use super::table::{Table, names_by_place, names_of};
use super::{libsvm, npy};
use crate::data::cell::{excerpt, is_missing};
use crate::data::coding::{Unseen, find, no_such_column};
use crate::data::labels;
use crate::data::options::{Format, ReadOptions};
use crate::data::schema::{Column, Kind, Schema};

/// Encoded rows without classes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewRows {
    /// The rows, encoded as the training rows were; NaN for a value that the model has to fill.
    pub x: Matrix,
    /// The labels, if the data has one for every row.
    pub labels: Option<Vec<String>>,
    /// The columns that were to be kept ([`ReadOptions::keep`]), each with its name and the texts of its cells.
    pub kept: Vec<(String, Vec<String>)>,
    /// Categories that training did not have.
    pub(crate) unseen: Vec<Unseen>,
}

impl NewRows {
    /// Rows from memory, encoded as the training rows were.
    pub fn new(x: Matrix, labels: Option<Vec<String>>) -> Self {
        Self { x, labels, kept: Vec::new(), unseen: Vec::new() }
    }

    /// The same rows, with categories that training did not have.
    pub(in crate::data) fn with_unseen(self, unseen: Vec<Unseen>) -> Self {
        Self { unseen, ..self }
    }
}

/// Reads new rows by a schema, and says in which format they were.
pub fn new_rows(
    schema: &Schema,
    input: &Input,
    options: &ReadOptions,
) -> Result<(NewRows, Format)> {
    let format = match options.format {
        Some(format) => format,
        None => schema.format_in(input)?,
    };
    if let (Some(column), Format::Libsvm | Format::Npy) = (options.keep.first(), format) {
        return Err(Error::parameter(
            "keep",
            format!("'{}'", excerpt(column)),
            "a column of a CSV table, but this file is not one",
        ));
    }
    let rows = match format {
        Format::Libsvm => schema.libsvm_rows(input),
        Format::Npy => schema.npy_rows(input),
        Format::Csv => schema.csv_rows(input, options),
    };
    Ok((rows?, format))
}

impl Schema {
    /// Reads new rows from a file. Of the options only format, delimiter, header and the columns to keep are used; those
    /// that are not given are found from the content.
    pub fn read_path(&self, path: impl AsRef<Path>, options: &ReadOptions) -> Result<NewRows> {
        new_rows(self, &Input::of_path(path.as_ref())?, options).map(|(rows, _)| rows)
    }

    /// Reads new rows from a reader, with the options of [`Schema::read_path`].
    pub fn read(&self, reader: impl Read, options: &ReadOptions) -> Result<NewRows> {
        new_rows(self, &Input::of_reader(reader)?, options).map(|(rows, _)| rows)
    }

    /// Reads new rows of a CSV table. Of the options only delimiter, header and the columns to keep are used.
    pub fn read_csv(&self, reader: impl Read, options: &ReadOptions) -> Result<NewRows> {
        self.csv_rows(&Input::of_reader(reader)?, options)
    }

    /// Reads new rows in the LIBSVM format.
    pub fn read_libsvm(&self, reader: impl Read) -> Result<NewRows> {
        self.libsvm_rows(&Input::of_reader(reader)?)
    }

    /// Reads new rows of a two-dimensional array of numpy (`.npy`).
    pub fn read_npy(&self, reader: impl Read) -> Result<NewRows> {
        self.npy_rows(&Input::of_reader(reader)?)
    }

    fn libsvm_rows(&self, input: &Input) -> Result<NewRows> {
        self.only_numbers("LIBSVM rows")?;
        let (x, found) = libsvm::read_new(input, self.columns.len())?;
        let x = only_columns(x, &self.used_places());
        Ok(NewRows::new(
            x,
            found.map(|all| all.iter().map(|label| labels::by_value(label)).collect()),
        ))
    }

    fn npy_rows(&self, input: &Input) -> Result<NewRows> {
        self.only_numbers("NumPy arrays")?;
        let array = npy::Array::open(input)?;
        let (places, target) = self.by_position(array.width())?;
        let places: Vec<usize> = self.used_places().into_iter().map(|k| places[k]).collect();
        let names: Vec<&str> = self.used_columns().map(|c| c.name.as_str()).collect();
        let numbers = array.read(input, &places, &names, target, self.missing)?;
        let name = |label: Option<String>| label.map(|label| labels::by_value(&label));
        let labels = numbers.labels.into_iter().map(name).collect();
        Ok(NewRows::new(numbers.x, target.and(labels)))
    }

    /// The places of the columns that are not left out.
    fn used_places(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&k| self.columns[k].kind != Kind::Ignored).collect()
    }

    /// Refuses a model with categories.
    fn only_numbers(&self, what: &str) -> Result<()> {
        self.validate()?;
        if let Some(category) = self.used_columns().find(|c| c.kind != Kind::Number) {
            return Err(Error::Data {
                what: format!(
                    "{what} hold only numbers, but column '{}' of the model is categorical; use a CSV table",
                    excerpt(&category.name)
                ),
                remedy: None,
            });
        }
        Ok(())
    }

    fn csv_rows(&self, input: &Input, options: &ReadOptions) -> Result<NewRows> {
        self.validate()?;
        // Labels and categories are texts; where they are, the first row tells, whether it holds names or not.
        let texts = |first: &[String]| {
            let by_name = self.by_name(&names_of(first), 0);
            let found = [by_name, self.by_position(first.len())];
            let category = |k: usize| !matches!(self.columns[k].kind, Kind::Number | Kind::Ignored);
            let own = found.into_iter().flatten().flat_map(|(places, target)| {
                let places = places.into_iter().enumerate();
                let categories = places.filter(|&(k, _)| category(k)).map(|(_, place)| place);
                categories.chain(target).collect::<Vec<_>>()
            });
            // What is kept is kept as it is written.
            let names = [names_of(first), names_by_place(first.len())];
            let kept = names.iter().filter_map(|names| kept(names, &options.keep).ok());
            own.chain(kept.flatten()).collect()
        };
        let mut table = Table::read(input, options.delimiter, options.header, texts)?;
        if table.rows() == 0 {
            return Err(Error::NoRows(" to predict".to_owned()));
        }
        let header = options.header.unwrap_or_else(|| self.is_header(&table));
        table.settle_header(input, header)?;
        let rows: Vec<usize> = (usize::from(header)..table.rows()).collect();
        if rows.is_empty() {
            return Err(Error::NoRows(" after the header".to_owned()));
        }
        let (places, target) = if header && self.header {
            self.by_name(&table.names(true), table.line(0))?
        } else {
            self.by_position(table.width())?
        };
        let labels = target.and_then(|j| {
            let label = |&i: &usize| {
                let name = || match self.format {
                    Format::Libsvm => labels::by_value(table.cell(i, j)),
                    _ => labels::of_table(table.cell(i, j), self.target.numeric),
                };
                (!table.is_missing(i, j)).then(name)
            };
            rows.iter().map(label).collect()
        });
        let names = table.names(header);
        let cells = |j: usize| rows.iter().map(|&i| table.cell(i, j).to_owned()).collect();
        let kept = kept(&names, &options.keep)?;
        let kept = kept.into_iter().map(|j| (names[j].clone(), cells(j))).collect();
        let unseen = unseen_in(&table, &rows, &places, &self.columns);
        let x = encode(table, &rows, &places, &self.columns, self.missing)?;
        Ok(NewRows { x, labels, kept, unseen })
    }

    /// Whether the first row holds names, by the rules in the documentation of `data`.
    fn is_header(&self, table: &Table) -> bool {
        let first: Vec<&str> = table.first().iter().map(String::as_str).collect();
        if self.header {
            let mut sorted = first.clone();
            sorted.sort_unstable();
            let has = |name: &str| sorted.binary_search(&name).is_ok();
            if self.columns.iter().all(|c| c.kind == Kind::Ignored || has(&c.name)) {
                return true;
            }
        }
        let Ok((places, _)) = self.by_position(table.width()) else {
            return table.has_header();
        };
        let mut text = false;
        for (column, &place) in self.columns.iter().zip(&places) {
            let cell = first[place];
            let fits = match &column.kind {
                Kind::Number => table.is_number(cell),
                Kind::Codes { levels } | Kind::OneHot { levels } => find(levels, cell).is_some(),
                Kind::Ignored => continue,
            };
            if fits {
                return false;
            }
            text |= !is_missing(cell);
        }
        text
    }

    /// Places of the columns, and of the target if it is there, by the names in the first row.
    pub(in crate::data) fn by_name(
        &self,
        names: &[String],
        line: usize,
    ) -> Result<(Vec<usize>, Option<usize>)> {
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|&j| &names[j]);
        let place = |name: &str| -> Result<Option<usize>> {
            let start = order.partition_point(|&j| names[j].as_str() < name);
            let same: Vec<usize> =
                order[start..].iter().copied().take_while(|&j| names[j] == name).take(2).collect();
            match same[..] {
                [] => Ok(None),
                [j] => Ok(Some(j)),
                [a, b, ..] => Err(Error::Parse {
                    line: line as u64,
                    message: format!(
                        "columns {} and {} are both named '{}'; rename one",
                        a + 1,
                        b + 1,
                        excerpt(name)
                    ),
                    remedy: None,
                }),
            }
        };
        let places = self
            .columns
            .iter()
            .map(|c| match (place(&c.name)?, &c.kind) {
                (Some(place), _) => Ok(place),
                // A column that is not used need not be there.
                (None, Kind::Ignored) => Ok(0),
                (None, _) => Err(no_such_column(&c.name, names)),
            })
            .collect::<Result<_>>()?;
        Ok((places, place(&self.target.name)?))
    }

    /// Places of the columns, and of the target if it is there, by position in a table of `width` columns.
    pub(in crate::data) fn by_position(&self, width: usize) -> Result<(Vec<usize>, Option<usize>)> {
        let features = self.columns.len();
        if width == features {
            return Ok(((0..width).collect(), None));
        }
        if width == self.used_columns().count() {
            // Without the columns that are left out, which need no place.
            let mut next = 0..width;
            let place = |column: &Column| match column.kind {
                Kind::Ignored => 0,
                _ => next.next().unwrap_or(0),
            };
            return Ok((self.columns.iter().map(place).collect(), None));
        }
        if width != features + 1 {
            return Err(Error::Shape {
                what: "columns of the new rows (or one fewer, without the target)".to_owned(),
                found: width,
                expected: features + 1,
            });
        }
        let target = self.target.position;
        Ok(((0..width).filter(|&j| j != target).collect(), Some(target)))
    }
}

/// The places of the columns to be kept.
fn kept(names: &[String], wanted: &[String]) -> Result<Vec<usize>> {
    match wanted {
        [all] if all == "all" && !names.contains(all) => Ok((0..names.len()).collect()),
        wanted => places(names, wanted),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::data::{Categories, Dataset, Delimiter, Missing};

    const NAMED: &str = "age,colour,class\n30,red,1\n40,blue,2\n";
    const BARE: &str = "yes,30,red\nno,40,blue\n";

    fn schema(text: &str, change: impl Fn(&mut ReadOptions)) -> Schema {
        let mut options = ReadOptions { categories: Categories::Codes, ..ReadOptions::default() };
        change(&mut options);
        let data = Dataset::from_reader(text.as_bytes(), &options).unwrap();
        data.schema().clone()
    }

    fn bare() -> Schema {
        schema(BARE, |o| o.target = "1".parse().unwrap())
    }

    fn new(schema: &Schema, text: &str) -> Result<NewRows> {
        schema.read(text.as_bytes(), &ReadOptions::default())
    }

    #[test]
    fn by_name_in_any_order() {
        let schema = schema(NAMED, |_| {});
        let rows = new(&schema, "extra;class;colour;age\nx;1.0;blue;5\ny;3;red;6\n").unwrap();
        assert_eq!(rows.x.as_slice(), [5.0, 0.0, 6.0, 1.0]);
        assert_eq!(rows.labels.unwrap(), ["1", "3"]);
        let rows = new(&schema, "colour,age\nblue,5\n").unwrap();
        assert_eq!(rows.x.as_slice(), [5.0, 0.0]);
        assert_eq!(rows.labels, None);

        let message = new(&schema, "tint,age\nblue,5\n").unwrap_err().to_string();
        assert_eq!(message, "there is no column 'colour' in the data; the columns are: tint, age");
        let twice = new(&schema, "age,age,colour\n1,2,red\n").unwrap_err();
        assert!(twice.to_string().contains("columns 1 and 2 are both named"));
        new(&schema, "age,e,e,colour\n1,2,2,red\n").unwrap();
    }

    #[test]
    fn by_position_with_and_without_the_target() {
        for schema in [bare(), {
            // The schema has names, but the new table has no header.
            let header = format!("class,age,colour\n{BARE}");
            schema(&header, |o| o.target = "class".parse().unwrap())
        }] {
            let rows = new(&schema, "no,5,red\nyes,6,blue\n").unwrap();
            assert_eq!(rows.x.as_slice(), [5.0, 1.0, 6.0, 0.0]);
            assert_eq!(rows.labels.unwrap(), ["no", "yes"]);
            let rows = new(&schema, "5 red\n6 blue\n").unwrap();
            assert_eq!(rows.x.as_slice(), [5.0, 1.0, 6.0, 0.0]);
            assert_eq!(rows.labels, None);
            for text in ["5\n", "1,2,3,4\n"] {
                let error = new(&schema, text).unwrap_err();
                assert!(matches!(error, Error::Shape { expected: 3, .. }), "{error}");
            }
        }
        // A header that the schema cannot know is skipped.
        let rows = new(&bare(), "a,b\n5,red\n").unwrap();
        assert_eq!(rows.x.as_slice(), [5.0, 1.0]);
    }

    #[test]
    fn a_first_row_that_fits_is_no_header() {
        let texts = schema("a,b,+\nc,d,-\na,d,+\n", |_| {});
        assert!(!texts.named());
        // Without the schema this table would be taken for a header without rows.
        assert_eq!(new(&texts, "a,d\n").unwrap().x.rows(), 1);
        assert!(matches!(new(&texts, "p,q\n"), Err(Error::NoRows(_))));
        let numbers = schema("1,2,+\n3,4,-\n", |_| {});
        let error = new(&numbers, "abc,2\n3,4\n").unwrap_err();
        assert!(error.to_string().starts_with("line 1: column x1: 'abc'"));
        let forced = ReadOptions {
            header: Some(true),
            delimiter: Some(Delimiter::Comma),
            ..ReadOptions::default()
        };
        let rows = numbers.read_csv("1,2\n3,4\n".as_bytes(), &forced).unwrap();
        assert_eq!(rows.x.as_slice(), [3.0, 4.0]);
    }

    #[test]
    fn a_single_column_needs_no_delimiter() {
        let schema = schema("1,a\n2,b\n", |_| {});
        assert_eq!(new(&schema, "5\n6\n").unwrap().x.as_slice(), [5.0, 6.0]);
        assert_eq!(new(&schema, "size\n6\n").unwrap().x.as_slice(), [6.0]);
    }

    #[test]
    fn missing_values_by_policy() {
        for (missing, filled) in
            [(Missing::Refuse, false), (Missing::Drop, false), (Missing::Impute, true)]
        {
            let schema = schema(NAMED, |o| o.missing = missing);
            match new(&schema, "age,colour\n1,red\n?,red\n") {
                Ok(rows) => assert!(filled && rows.x[(1, 0)].is_nan()),
                Err(Error::Missing { row: 3, column }) => assert!(!filled && column == "age"),
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn new_categories_by_policy() {
        let text = "age,colour\n1,green\n";
        let error = new(&schema(NAMED, |_| {}), text).unwrap_err();
        assert!(
            matches!(error, Error::UnseenCategory { row: 2, ref known, .. } if known == "blue, red")
        );
        let rows = new(&schema(NAMED, |o| o.missing = Missing::Impute), text).unwrap();
        assert!(rows.x[(0, 1)].is_nan());
        let rows = new(&schema(NAMED, |o| o.categories = Categories::OneHot), text).unwrap();
        assert_eq!(rows.x.as_slice(), [1.0, 0.0, 0.0]);
    }

    #[test]
    fn what_training_did_not_have_is_counted() {
        let of = |text: &str, missing: Missing, categories: Categories| {
            let schema = schema(NAMED, |o| (o.missing, o.categories) = (missing, categories));
            new(&schema, text).unwrap().unseen
        };
        let unseen =
            |rows, example: &str| vec![Unseen { column: 1, rows, example: example.into() }];
        let text = "age,colour\n1,green\n2,red\n3,pink\n4,?\n";
        for categories in [Categories::Codes, Categories::OneHot] {
            assert_eq!(of(text, Missing::Impute, categories), unseen(2, "green"));
        }
        assert_eq!(of("colour,age\nred,1\n", Missing::Refuse, Categories::Codes), []);
        assert_eq!(
            of("colour,age\npink,1\n", Missing::Refuse, Categories::OneHot),
            unseen(1, "pink")
        );
    }

    #[test]
    fn columns_are_kept_as_they_are_written() {
        let keep = |schema: &Schema, text: &str, wanted: &[&str]| {
            let keep = wanted.iter().map(|&column| column.to_owned()).collect();
            schema.read(text.as_bytes(), &ReadOptions { keep, ..ReadOptions::default() })
        };
        let schema = schema(NAMED, |_| {});
        let text = "id,colour,age\n007,blue,5.0\n 008 ,red,\"6\"\n";
        let rows = keep(&schema, text, &["age", "1"]).unwrap();
        assert_eq!(rows.x.as_slice(), [5.0, 0.0, 6.0, 1.0]);
        let column = |name: &str, cells: [&str; 2]| {
            (name.to_owned(), cells.iter().map(|&cell| cell.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(rows.kept, [column("age", ["5.0", "6"]), column("id", ["007", "008"])]);
        let all = keep(&schema, text, &["all"]).unwrap().kept;
        assert_eq!(all.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["id", "colour", "age"]);
        let error = keep(&schema, text, &["name"]).unwrap_err().to_string();
        assert!(error.contains("no column 'name'") && error.contains("id, colour, age"), "{error}");
        let bare = keep(&bare(), "5,red\n6,blue\n", &["x2"]).unwrap();
        assert_eq!(bare.kept, [column("x2", ["red", "blue"])]);
        let numbers = self::schema("1 1:2 2:3\n-1 1:1 2:1\n", |_| {});
        let error = keep(&numbers, "1 1:2 2:3\n", &["1"]).unwrap_err().to_string();
        assert!(error.contains("a column of a CSV table"), "{error}");
    }

    /// Columns that are left out may be there or not, in all formats.
    #[test]
    fn columns_that_are_left_out_need_not_be_there() {
        let table = "a,b,c,class\n1,2,3,x\n4,5,6,y\n";
        let left = schema(table, |o| o.drop = vec!["b".to_owned()]);
        for text in
            ["c,a\n9,8\n", "a,b,c\n8,7,9\n", "8,7,9,x\n", "8,7,9\n", "8,9\n", "b,c,a\nhm,9,8\n"]
        {
            assert_eq!(new(&left, text).unwrap().x.as_slice(), [8.0, 9.0], "{text}");
        }
        assert!(matches!(new(&left, "8\n"), Err(Error::Shape { .. })));
        // By place there would be two readings of three columns: all of them, without the class, is the one.
        assert_eq!(new(&left, "8,9,7\n").unwrap().x.as_slice(), [8.0, 7.0]);
        let sparse = "x 1:8 2:7 3:9\n".replace('x', "1");
        assert_eq!(left.read_libsvm(sparse.as_bytes()).unwrap().x.as_slice(), [8.0, 9.0]);

        let options = ReadOptions { drop: vec!["2".to_owned()], ..ReadOptions::default() };
        let data =
            Dataset::from_libsvm("1 1:2 2:3 3:4\n-1 1:5 2:6\n".as_bytes(), &options).unwrap();
        assert_eq!(data.x().as_slice(), [2.0, 4.0, 5.0, 0.0]);
        let rows = data.schema().read_libsvm("1 1:8 2:7 3:9\n".as_bytes()).unwrap();
        assert_eq!(rows.x.as_slice(), [8.0, 9.0]);
    }

    #[test]
    fn labels_are_all_or_none() {
        let schema = schema("1,2,+\n3,4,-\n", |_| {});
        assert_eq!(new(&schema, "1,2,?\n3,4,-\n").unwrap().labels, None);
    }

    #[test]
    fn libsvm_rows() {
        let sparse = schema("1 1:1 2:5\n-1 2:2\n", |_| {});
        let rows = new(&sparse, "1.0 1:3 9:1\n-1\n").unwrap();
        assert_eq!(rows.x.as_slice(), [3.0, 0.0, 0.0, 0.0]);
        assert_eq!(rows.labels.unwrap(), ["1", "-1"]);
        assert_eq!(new(&sparse, "2:7\n").unwrap().x.as_slice(), [0.0, 7.0]);
        // The same model reads tables, the label first or not at all.
        let rows = new(&sparse, "-1,3,4\n").unwrap();
        assert_eq!(
            (rows.x.as_slice(), rows.labels.unwrap()),
            (&[3.0, 4.0][..], vec!["-1".to_owned()])
        );
        // A model of tables reads LIBSVM rows if it has no categories.
        let numbers = schema("1,2,+\n3,4,-\n", |_| {});
        let rows = numbers.read_libsvm("1 2:8\n".as_bytes()).unwrap();
        assert_eq!(rows.x.as_slice(), [0.0, 8.0]);
        let message = bare().read_libsvm("1 2:8\n".as_bytes()).unwrap_err();
        assert!(message.to_string().contains("column 'x3' of the model is categorical"));
    }

    #[test]
    fn a_hostile_schema_is_refused_before_it_is_used() {
        let mut hostile = bare();
        hostile.columns[1].kind = Kind::OneHot { levels: vec![] };
        let error = new(&hostile, "1,2\n").unwrap_err();
        assert!(matches!(error, Error::ModelFile(_)));
    }

    #[test]
    fn an_empty_table_has_nothing_to_predict() {
        let error = schema(NAMED, |_| {}).read_csv("".as_bytes(), &ReadOptions::default());
        assert!(matches!(error, Err(Error::NoRows(_))), "{error:?}");
    }

    /// Gaps and unknown categories that the model fills are passed over where another cell is at fault.
    #[test]
    fn what_is_filled_is_no_error_beside_one() {
        let text = "colour,age,class\nred,30,1\nblue,40,2\n";
        let schema = schema(text, |o| o.missing = Missing::Impute);
        let error =
            new(&schema, "colour,age\n?,1\ngreen,2\nred,?\nblue,oops\nred,1e301\n").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("1e301") && error.contains("age"), "{error}");
    }
}
