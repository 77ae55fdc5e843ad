//! Reads the nine UCI files of the paper with nothing said about delimiter or header, and checks rows, columns
//! and classes against the table in the README beside them. The files are not part of the repository: their
//! folder is the one that `SVML_DATA` names, else `shared/data` beside the checkout.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::path::{Path, PathBuf};

use svml::data::{Categories, Dataset, Encoded, Kind, Missing, ReadOptions};

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("SVML_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!(
        "skipped: no data at {} (set SVML_DATA to the folder of the nine files)",
        folder.display()
    );
    None
}

/// A column of text as one column of codes, as in the paper.
fn read(path: &Path, missing: Missing) -> Dataset {
    let categories = Categories::Codes;
    read_with(path, &ReadOptions { missing, categories, ..ReadOptions::default() })
}

fn read_with(path: &Path, options: &ReadOptions) -> Dataset {
    let data = Dataset::from_path(path, options).unwrap();
    data.schema().validate().unwrap();
    data.check_missing().unwrap();
    data
}

/// Name, file, rows, features, classes with their rows.
type Expected = (&'static str, &'static str, usize, usize, &'static [(&'static str, usize)]);

const EXPECTED: [Expected; 9] = [
    ("haber", "haberman.data", 306, 3, &[("1", 225), ("2", 81)]),
    ("credit", "crx.data", 653, 15, &[("+", 296), ("-", 357)]),
    ("acredit", "australian.dat", 690, 14, &[("0", 383), ("1", 307)]),
    ("trans", "transfusion.data", 748, 4, &[("0", 570), ("1", 178)]),
    ("diabts", "pima-indians-diabetes.data", 768, 8, &[("0", 500), ("1", 268)]),
    ("mammo", "mammographic_masses.data", 830, 5, &[("0", 427), ("1", 403)]),
    ("cmc", "cmc.data", 1473, 9, &[("1", 629), ("2", 333), ("3", 511)]),
    (
        "page",
        "page-blocks.data",
        5473,
        10,
        &[("1", 4913), ("2", 329), ("3", 28), ("4", 88), ("5", 115)],
    ),
    ("gamma", "magic04.data", 19020, 10, &[("g", 12332), ("h", 6688)]),
];

#[test]
fn all_nine_files() {
    let Some(folder) = folder() else { return };
    for (name, file, rows, features, classes) in EXPECTED {
        let missing = match name {
            "credit" | "mammo" => Missing::Drop,
            _ => Missing::Refuse,
        };
        let data = read(&folder.join(name).join(file), missing);
        assert_eq!(data.rows(), rows, "{name}");
        assert_eq!(data.columns(), features, "{name}");
        let counts: Vec<(&str, usize)> =
            data.classes().iter().map(String::as_str).zip(data.class_counts()).collect();
        assert_eq!(counts, classes, "{name}");
        assert_eq!(data.schema().named(), name == "trans", "{name}");

        // The file's own rows are also readable as new rows, and are encoded alike.
        if missing == Missing::Refuse {
            let new = data
                .schema()
                .read_path(folder.join(name).join(file), &ReadOptions::default())
                .unwrap();
            assert_eq!(&new.x, data.x(), "{name}");
            let labels = new.labels.unwrap();
            let same =
                labels.iter().zip(data.y()).all(|(label, &class)| *label == data.classes()[class]);
            assert!(same, "{name}");
        }
    }
}

#[test]
fn first_and_last_rows() {
    let Some(folder) = folder() else { return };
    let page = read(&folder.join("page/page-blocks.data"), Missing::Refuse);
    assert_eq!(page.x().row(0), [5.0, 7.0, 35.0, 1.4, 0.4, 0.657, 2.33, 14.0, 23.0, 6.0]);
    let trans = read(&folder.join("trans/transfusion.data"), Missing::Refuse);
    assert_eq!(trans.x().row(0), [2.0, 50.0, 12500.0, 98.0]);
    assert_eq!(trans.schema().target().name, "target");
    assert_eq!(trans.schema().encoded_names()[0], "Recency (months)");
    let mammo = read(&folder.join("mammo/mammographic_masses.data"), Missing::Drop);
    assert_eq!(mammo.x().row(0), [5.0, 67.0, 3.0, 5.0, 3.0]);
    assert_eq!(mammo.x().row(829), [4.0, 62.0, 3.0, 3.0, 3.0]);
}

#[test]
fn categories_of_credit() {
    let Some(folder) = folder() else { return };
    let credit = read(&folder.join("credit/crx.data"), Missing::Drop);
    let texts: Vec<usize> = (1..)
        .zip(credit.schema().columns())
        .filter(|(_, column)| matches!(column.kind, Kind::Codes { .. }))
        .map(|(number, _)| number)
        .collect();
    assert_eq!(texts, [1, 4, 5, 6, 7, 9, 10, 12, 13]);
    assert_eq!(credit.schema().columns()[0].kind.levels(), ["a", "b"]);
    assert_eq!(credit.schema().encoded_kinds()[1], Encoded::Number);
    assert_eq!(&credit.x().row(0)[..3], [1.0, 30.83, 0.0]);
    // Unless told otherwise a column for each category.
    let options = ReadOptions { missing: Missing::Drop, ..ReadOptions::default() };
    let each = read_with(&folder.join("credit/crx.data"), &options);
    let levels: usize =
        texts.iter().map(|k| each.schema().columns()[k - 1].kind.levels().len()).sum();
    assert_eq!((each.columns(), each.columns()), (46, 15 - texts.len() + levels));
    assert_eq!(&each.x().row(0)[..4], [0.0, 1.0, 30.83, 0.0]);
}

#[test]
fn missing_values_are_refused_or_kept() {
    let Some(folder) = folder() else { return };
    let path = folder.join("mammo/mammographic_masses.data");
    let message = Dataset::from_path(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(message.starts_with("row 2, column x5: "), "{message}");
    let data = read(&path, Missing::Impute);
    assert_eq!(data.rows(), 961);
    let gaps: Vec<usize> = (0..5).map(|j| data.x().col(j).filter(|v| v.is_nan()).count()).collect();
    assert_eq!(gaps, [2, 5, 31, 48, 76]);
}

#[test]
fn two_of_three_classes_of_cmc() {
    let Some(folder) = folder() else { return };
    let cmc = read(&folder.join("cmc/cmc.data"), Missing::Refuse);
    let two = cmc.keep_classes(&["1", "2"]).unwrap();
    assert_eq!(two.rows(), 962);
    assert_eq!(two.classes(), ["1", "2"]);
    assert_eq!(two.class_counts(), [629, 333]);
}

#[test]
fn grouped_classes_of_page() {
    let Some(folder) = folder() else { return };
    let page = read(&folder.join("page/page-blocks.data"), Missing::Refuse);
    let two = page.group_classes(|class| if class == "1" { "text" } else { "other" }.to_owned());
    assert_eq!(two.classes(), ["other", "text"]);
    assert_eq!(two.class_counts(), [560, 4913]);
    assert_eq!(two.x(), page.x());
}
