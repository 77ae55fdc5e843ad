//! The tables that the defaults are measured on: the paper's small sets, and the further ones of the suite.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use svml::data::{Categories, Kind, Missing, ReadOptions};
use svml::internals::folds::random_split;
use svml::internals::{UCI_SETS, UciSet};
use svml::{Dataset, Generator};

/// Rows above which a table is trained on a part of its rows.
pub const LARGE: usize = 10_000;

/// A table of the suite.
#[derive(Debug, PartialEq, Eq)]
pub struct Suite {
    /// Its name, which is that of its file.
    pub name: &'static str,
    /// Its rows.
    pub rows: usize,
}

const fn suite(name: &'static str, rows: usize) -> Suite {
    Suite { name, rows }
}

/// The tables of the suite. Nothing but the number of splits depends on the number of rows here.
pub const SUITE: [Suite; 18] = [
    suite("adult", 48_842),
    suite("balance", 625),
    suite("breast_cancer", 286),
    suite("bupa", 345),
    suite("german", 1_000),
    suite("hypothyroid", 3_772),
    suite("ionosphere", 351),
    suite("letter", 20_000),
    suite("phoneme", 5_404),
    suite("satimage", 6_435),
    suite("sonar", 208),
    suite("splice", 3_175),
    suite("titanic", 2_201),
    suite("vehicle", 846),
    suite("vowel", 528),
    suite("wdbc", 569),
    suite("wheat_seeds", 210),
    suite("winequality_white", 4_898),
];

impl Suite {
    /// How many random splits it is measured on.
    pub fn splits(&self) -> u64 {
        match self.rows {
            0..2_000 => 20,
            2_000..3_000 => 5,
            3_000..LARGE => 3,
            _ => 1,
        }
    }
}

/// The seven small sets of the paper.
pub fn small_sets() -> impl Iterator<Item = &'static UciSet> {
    UCI_SETS.iter().filter(|set| set.rows < 1000)
}

/// Splits of each of them.
pub const SMALL_SPLITS: u64 = 200;
/// Splits of each of them that other programs are measured on, the first ones.
pub const PEER_SPLITS: u64 = 10;

/// Recipes of generated data, 2 informative directions among 20: name, whether they are rotated, share of labels
/// that are flipped.
pub const GENERATED: [(&str, bool, f64); 4] = [
    ("aligned", false, 0.0),
    ("rotated", true, 0.0),
    ("aligned-flipped", false, 0.05),
    ("rotated-flipped", true, 0.05),
];
/// Draws of each.
pub const DRAWS: u64 = 40;
/// Rows to train on and to test on.
pub const GENERATED_ROWS: (usize, usize) = (500, 4000);

/// Where the tables are, and what was read of them so far.
pub struct Tables {
    data: PathBuf,
    suite: PathBuf,
    most_rows: usize,
    /// How text columns are read: as the library does it unless something else is asked for.
    categories: Option<Categories>,
    read: HashMap<String, Dataset>,
}

impl Tables {
    /// Tables of the paper in the folder `data`, of the suite in the folder `suite` or beside them. Large tables are
    /// trained on `most_rows` rows.
    pub fn new(data: &Path, suite: Option<&Path>, most_rows: usize) -> Self {
        let beside = || data.join("suite");
        Self {
            data: data.to_owned(),
            suite: suite.map_or_else(beside, Path::to_owned),
            most_rows,
            categories: None,
            read: HashMap::new(),
        }
    }

    /// A table by its name.
    fn table(&mut self, name: &str) -> Result<&Dataset, String> {
        if !self.read.contains_key(name) {
            let table = self.read_table(name).map_err(|e| format!("{name}: {e}"))?;
            self.read.insert(name.to_owned(), table);
        }
        Ok(&self.read[name])
    }

    fn read_table(&self, name: &str) -> Result<Dataset, String> {
        if let Ok(set) = UciSet::named(name) {
            return set.read(&set.in_folder(&self.data)).map_err(|e| e.to_string());
        }
        if SUITE.iter().all(|table| table.name != name) {
            return Err("there is no such table".to_owned());
        }
        let path = self.suite.join(format!("{name}.csv"));
        let mut options = ReadOptions { missing: Missing::Impute, ..ReadOptions::default() };
        if let Some(categories) = self.categories {
            options.categories = categories;
        }
        Dataset::from_path(&path, &options).map_err(|e| e.to_string())
    }

    /// Rows to train on and to test on.
    pub fn rows(&mut self, name: &str, seed: u64) -> Result<(Dataset, Dataset), String> {
        if let Some(recipe) = GENERATED.iter().find(|(recipe, ..)| *recipe == name) {
            return generate(*recipe, seed);
        }
        let most_rows = self.most_rows;
        let table = self.table(name)?;
        let (mut train, test) = random_split(table.rows(), seed);
        if table.rows() > LARGE {
            train.truncate(most_rows);
        }
        Ok((table.select(&train), table.select(&test)))
    }

    /// The same rows as JSON for other programs: text as its place in the list of levels, missing values as null,
    /// classes as numbers.
    pub fn rows_as_json(&mut self, name: &str, seed: u64) -> Result<String, String> {
        self.categories = Some(Categories::Codes);
        let (train, test) = self.rows(name, seed)?;
        let part = |part: &Dataset| {
            let x: Vec<&[f64]> = part.x().iter_rows().collect();
            json!({ "x": x, "y": part.y() })
        };
        let levels = |kind: &Kind| match kind {
            Kind::Codes { levels } => levels.len(),
            _ => 0,
        };
        let columns: Vec<_> = (train.schema().columns().iter())
            .map(|column| json!({ "name": column.name, "levels": levels(&column.kind) }))
            .collect();
        let (train_rows, test_rows) = (part(&train), part(&test));
        Ok(json!({
            "columns": columns, "classes": train.classes(), "train": train_rows, "test": test_rows,
        })
        .to_string())
    }
}

/// Rows of a recipe.
fn generate(
    (_, rotated, flipped): (&str, bool, f64),
    seed: u64,
) -> Result<(Dataset, Dataset), String> {
    let draw = |rows: usize, of_rows: u64| {
        let generator = Generator {
            rows,
            informative: 2,
            noise: 18,
            rotated,
            flipped,
            rotation_seed: seed,
            seed: of_rows,
            ..Generator::default()
        };
        generator.generate().map(|generated| generated.data).map_err(|e| e.to_string())
    };
    Ok((draw(GENERATED_ROWS.0, 2 * seed)?, draw(GENERATED_ROWS.1, 2 * seed + 1)?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn tables_are_split_alike_for_all_programs() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("suite")).unwrap();
        let rows: String = (0..50)
            // Not whole numbers only, which would be row numbers and left out.
            .map(|i| {
                let (a, b) = (i as f64 + [0.0, 0.5][i % 2], ["red", "blue", "?"][i % 3]);
                format!("{a},{b},{}\n", ["k", "m"][i % 2])
            })
            .collect();
        fs::write(folder.path().join("suite/sonar.csv"), format!("a,b,class\n{rows}")).unwrap();
        let mut tables = Tables::new(folder.path(), None, 10);
        let (train, test) = tables.rows("sonar", 5000).unwrap();
        assert_eq!((train.rows(), test.rows()), (40, 10));
        let mut again = Tables::new(folder.path(), None, 10);
        let json: serde_json::Value =
            serde_json::from_str(&again.rows_as_json("sonar", 5000).unwrap()).unwrap();
        assert_eq!(json["columns"][1]["levels"], 2);
        for (i, row) in train.x().iter_rows().enumerate() {
            assert_eq!(json["train"]["x"][i][0].as_f64(), Some(row[0]));
            assert_eq!(json["train"]["y"][i].as_u64(), Some(train.y()[i] as u64));
            let missing = row[0] as usize % 3 == 2;
            assert_eq!(json["train"]["x"][i][1].is_null(), missing);
        }
        assert!(tables.rows("iris", 1).unwrap_err().contains("no such table"));
        assert!(tables.rows("wdbc", 1).unwrap_err().contains("wdbc.csv"));
        assert_eq!(tables.rows("rotated", 1).unwrap().1.rows(), GENERATED_ROWS.1);
    }
}
