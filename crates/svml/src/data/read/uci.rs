//! The nine data sets of the paper, from the UCI Machine Learning Repository: where each file is, what
//! it holds, and how it becomes the paper's task of two classes. Nothing here uses the network.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

use super::csv;
use super::source::Input;
use crate::data::{Categories, Dataset, Missing, ReadOptions};

/// One of the paper's data sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UciSet {
    /// The paper's name, in lower case.
    pub name: &'static str,
    /// Title of its page at UCI.
    pub title: &'static str,
    /// Name of its file, which is in a folder named after the set.
    pub file: &'static str,
    /// Path of the download below the server's root.
    pub path: &'static str,
    /// The sha256 that the file may have, unpacked if the path ends in `.Z`; the first is that of the copy
    /// that was tested.
    pub sha256: &'static [&'static str],
    /// Bytes of the file.
    pub bytes: u64,
    /// Rows of the task.
    pub rows: usize,
    /// Features of the task.
    pub features: usize,
    /// The task in words.
    pub task: &'static str,
    /// Names of the columns, the class last.
    columns: &'static [&'static str],
}

/// The server that UCI's files are downloaded from.
pub const UCI_SERVER: &str = "https://archive.ics.uci.edu";

const CREDIT: [&str; 16] = [
    "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10", "A11", "A12", "A13", "A14", "A15",
    "class",
];
const ACREDIT: [&str; 15] = [
    "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10", "A11", "A12", "A13", "A14",
    "class",
];

/// All nine, in the order of the paper's tables.
pub const UCI_SETS: [UciSet; 9] = [
    UciSet {
        name: "haber",
        title: "Haberman's Survival",
        file: "haberman.data",
        path: "ml/machine-learning-databases/haberman/haberman.data",
        sha256: &["b4b7a32586a5668f9f4d6dc8be9d1bc8cd4822523affb1f6b5bfc350681ef3e2"],
        bytes: 3103,
        rows: 306,
        features: 3,
        task: "survived 5 years or longer (1) against died within 5 years (2)",
        columns: &["age", "year", "nodes", "class"],
    },
    UciSet {
        name: "credit",
        title: "Credit Approval",
        file: "crx.data",
        path: "ml/machine-learning-databases/credit-screening/crx.data",
        sha256: &["fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d"],
        bytes: 32218,
        rows: 653,
        features: 15,
        task: "+ against -, without the 37 rows that have a missing value",
        columns: &CREDIT,
    },
    UciSet {
        name: "acredit",
        title: "Statlog (Australian Credit Approval)",
        file: "australian.dat",
        path: "ml/machine-learning-databases/statlog/australian/australian.dat",
        sha256: &["3abe5af151afa50b999a9ba21cbc884e80d80a4050b716cf88b34a2e6ecb731c"],
        bytes: 28735,
        rows: 690,
        features: 14,
        task: "1 against 0",
        columns: &ACREDIT,
    },
    UciSet {
        name: "trans",
        title: "Blood Transfusion Service Center",
        file: "transfusion.data",
        path: "ml/machine-learning-databases/blood-transfusion/transfusion.data",
        // The tested copy has "target" as its last name; the second is the same bytes with UCI's
        // "whether he/she donated blood in March 2007" in its place.
        sha256: &[
            "c55baeb0a88cbed68a38e4cc8c3f0d933e24f97527bf40d3f0bd856b3df60eb0",
            "516d3efd776889daa0c3fce6a2fdd382cfbdaf50cdd4d945f2aa40abef4696e0",
        ],
        bytes: 12809,
        rows: 748,
        features: 4,
        task: "donated in March 2007 (1) against not (0)",
        columns: &["recency", "frequency", "monetary", "time", "class"],
    },
    UciSet {
        name: "diabts",
        title: "Pima Indians Diabetes",
        file: "pima-indians-diabetes.data",
        path: "ml/machine-learning-databases/pima-indians-diabetes/pima-indians-diabetes.data",
        sha256: &["06f5b7c2cd7bca686fda4f92eab5f61e7ff6426a9acefa2e3dda04fc54293cf5"],
        bytes: 23279,
        rows: 768,
        features: 8,
        task: "tested positive (1) against not (0)",
        columns: &[
            "pregnancies",
            "glucose",
            "pressure",
            "skin",
            "insulin",
            "bmi",
            "pedigree",
            "age",
            "class",
        ],
    },
    UciSet {
        name: "mammo",
        title: "Mammographic Mass",
        file: "mammographic_masses.data",
        path: "ml/machine-learning-databases/mammographic-masses/mammographic_masses.data",
        sha256: &["8845af65ad2a2bb5d148e1bad1c7d23562a875b387bb2d70f0051f3dd10b00ae"],
        bytes: 13448,
        rows: 830,
        features: 5,
        task: "malignant (1) against benign (0), without the 131 rows that have a missing value",
        columns: &["birads", "age", "shape", "margin", "density", "class"],
    },
    UciSet {
        name: "cmc",
        title: "Contraceptive Method Choice",
        file: "cmc.data",
        path: "ml/machine-learning-databases/cmc/cmc.data",
        sha256: &["ad2a49da55df24b061a994ecc4d90c856aba35acd05138851aa251c4f06303c9"],
        bytes: 30962,
        rows: 962,
        features: 9,
        task: "no use (1) against long-term (2), without the rows of short-term use (3)",
        columns: &[
            "wife_age",
            "wife_education",
            "husband_education",
            "children",
            "religion",
            "working",
            "occupation",
            "living",
            "media",
            "class",
        ],
    },
    UciSet {
        name: "page",
        title: "Page Blocks Classification",
        file: "page-blocks.data",
        path: "ml/machine-learning-databases/page-blocks/page-blocks.data.Z",
        sha256: &["52058b6e19ba797b5e80ae6454ebb3b7a25016787e668dd3203393c236d22c78"],
        bytes: 355745,
        rows: 5473,
        features: 10,
        task: "text against all other blocks",
        columns: &[
            "height",
            "length",
            "area",
            "eccentricity",
            "p_black",
            "p_and",
            "mean_tr",
            "blackpix",
            "blackand",
            "wb_trans",
            "class",
        ],
    },
    UciSet {
        name: "gamma",
        title: "MAGIC Gamma Telescope",
        file: "magic04.data",
        path: "ml/machine-learning-databases/magic/magic04.data",
        sha256: &["e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a"],
        bytes: 1477391,
        rows: 19020,
        features: 10,
        task: "gamma, signal (g) against hadron, background (h)",
        columns: &[
            "fLength", "fWidth", "fSize", "fConc", "fConc1", "fAsym", "fM3Long", "fM3Trans",
            "fAlpha", "fDist", "class",
        ],
    },
];

impl UciSet {
    /// The set of this name, in upper or lower case.
    pub fn named(name: &str) -> Result<&'static Self> {
        UCI_SETS.iter().find(|set| set.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let known = UCI_SETS.map(|set| set.name).join(", ");
            Error::parameter("data set", name, format!("one of {known}"))
        })
    }

    /// Where its file is, in a folder that holds the data sets.
    pub fn in_folder(&self, folder: &Path) -> PathBuf {
        folder.join(self.name).join(self.file)
    }

    /// Reads the file as the paper's task of two classes, with the columns named.
    pub fn read(&self, path: &Path) -> Result<Dataset> {
        let options = ReadOptions {
            header: Some(self.name == "trans"),
            missing: Missing::Drop,
            // As in the paper: its numbers of features are those of the columns.
            categories: Categories::Codes,
            ..ReadOptions::default()
        };
        let (data, _) = csv::read(&Input::of_path(path)?, &options)?;
        let features = self.columns.len() - 1;
        if data.schema().columns().len() != features {
            return Err(Error::Shape {
                what: format!("feature columns of the data set {}", self.name),
                found: data.schema().columns().len(),
                expected: features,
            });
        }
        let names = self.columns[..features].iter().map(|&name| name.to_owned()).collect();
        let data = match self.name {
            "cmc" => data.keep_classes(&["1", "2"])?,
            "page" => data.group_classes(|class| {
                if class == "1" { "text".to_owned() } else { "other".to_owned() }
            }),
            _ => data,
        };
        data.with_names(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        assert_eq!(UciSet::named("Credit").unwrap().rows, 653);
        assert!(UciSet::named("iris").unwrap_err().to_string().contains("haber, credit"));
    }

    /// Rows and classes were counted from the files when the catalogue was written.
    #[test]
    fn every_file_gives_the_task_of_the_paper() {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let folder = std::env::var_os("SVML_DATA").map_or(beside, PathBuf::from);
        let mut read = 0;
        for set in UCI_SETS {
            let path = set.in_folder(&folder);
            if !path.is_file() {
                continue;
            }
            read += 1;
            assert_eq!(path.metadata().unwrap().len(), set.bytes, "{}", set.name);
            let data = set.read(&path).unwrap();
            assert_eq!((data.rows(), data.columns()), (set.rows, set.features), "{}", set.name);
            assert_eq!(data.classes().len(), 2, "{}", set.name);
            let smaller = data.class_counts().into_iter().min().unwrap();
            let expected = match set.name {
                "haber" => 81,
                "credit" => 296,
                "acredit" => 307,
                "trans" => 178,
                "diabts" => 268,
                "mammo" => 403,
                "cmc" => 333,
                "page" => 560,
                _ => 6688,
            };
            assert_eq!(smaller, expected, "{}", set.name);
        }
        if read == 0 {
            // Tests may say what they skip.
            #[allow(clippy::print_stderr)]
            {
                eprintln!("skipped: none of the paper's data files; set SVML_DATA to their folder");
            }
        }
    }
}
