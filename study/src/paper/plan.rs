//! What is measured: every data set, split and method.

use svml::internals::{UCI_SETS, UciSet};

use crate::jobs::Job;

/// A row of the tables.
pub struct Method {
    /// Name of the method in the results.
    pub name: &'static str,
    /// How the tables call it.
    pub title: &'static str,
}

const fn method(name: &'static str, title: &'static str) -> Method {
    Method { name, title }
}

/// The rows of the paper's Table 2, then ours.
pub const METHODS: [Method; 19] = [
    method("euclid-1", "Euclidean 1-fold"),
    method("euclid-3", "Euclidean 3-fold"),
    method("euclid-5", "Euclidean 5-fold"),
    method("itml-1", "ITML + SVM 1-fold"),
    method("itml-3", "ITML + SVM 3-fold"),
    method("itml-5", "ITML + SVM 5-fold"),
    method("nca-1", "NCA + SVM 1-fold"),
    method("nca-3", "NCA + SVM 3-fold"),
    method("nca-5", "NCA + SVM 5-fold"),
    method("lmnn-1", "LMNN + SVM 1-fold"),
    method("lmnn-3", "LMNN + SVM 3-fold"),
    method("lmnn-5", "LMNN + SVM 5-fold"),
    method("svml-sphere", "SVML-Sphere"),
    method("svml-diag", "SVML-Diag"),
    method("svml", "SVML"),
    method("default", "default"),
    method("sphere-loo", "leave-one-out, sphere"),
    method("diagonal-loo", "leave-one-out, diagonal"),
    method("full-loo", "leave-one-out, full"),
];

/// Methods that are measured once more on the small sets, with the seed of the split: does the verdict rest on which
/// rows validate?
pub const RESEEDED: [&str; 5] = [
    "euclid-5-reseeded",
    "svml-sphere-reseeded",
    "svml-diag-reseeded",
    "svml-reseeded",
    "default-reseeded",
];
/// On so many splits.
pub const RESEEDED_SPLITS: u64 = 100;

/// The method that others are compared with.
pub const REFERENCE: &str = "euclid-5";
/// Another program's grid search over the same settings.
pub const SKLEARN: &str = "sklearn-5";

/// Seed of the first split. Nothing in the program was chosen on the splits from here on.
pub const FIRST_SEED: u64 = 2000;

/// Splits of a data set: as many as in the paper.
pub fn splits(set: &UciSet) -> u64 {
    match set.rows {
        0..1_000 => 200,
        1_000..10_000 => 20,
        _ => 1,
    }
}

/// Rows to train on, as [`svml::internals::folds::random_split`] takes them; the rest is tested on.
pub fn training_rows(set: &UciSet) -> usize {
    set.rows * 4 / 5
}

/// What a run is about.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Only the small data sets.
    pub small: bool,
    /// Most splits of a data set.
    pub splits: Option<u64>,
    /// Only these data sets, if there are any.
    pub sets: Vec<String>,
    /// Only these methods, if there are any.
    pub methods: Vec<String>,
}

impl Scope {
    /// Refuses names that do not exist.
    pub fn check(&self) -> Result<(), String> {
        let known = |name: &String, all: &[&str]| match all.contains(&name.as_str()) {
            true => Ok(()),
            false => Err(format!("{name} is not one of {}", all.join(", "))),
        };
        self.sets.iter().try_for_each(|set| known(set, &UCI_SETS.map(|set| set.name)))?;
        let names: Vec<&str> = METHODS.iter().map(|method| method.name).chain(RESEEDED).collect();
        self.methods.iter().try_for_each(|name| known(name, &names))
    }
}

/// All jobs, split after split, so that whatever is done covers all data sets alike; those with few
/// splits, which take long, come last.
pub fn plan(scope: &Scope) -> Vec<Job> {
    let chosen = |among: &[String], name: &str| among.is_empty() || among.iter().any(|n| n == name);
    let sets: Vec<&UciSet> = UCI_SETS
        .iter()
        .filter(|set| !(scope.small && set.rows >= 1_000) && chosen(&scope.sets, set.name))
        .collect();
    let mut plan = Vec::new();
    for few in [200, 20, 1] {
        let group: Vec<&UciSet> = sets.iter().copied().filter(|set| splits(set) == few).collect();
        for k in 0..few.min(scope.splits.unwrap_or(few)) {
            for set in &group {
                let again = few == 200 && k < RESEEDED_SPLITS;
                let again = RESEEDED.iter().copied().filter(|_| again);
                let methods = METHODS.iter().map(|m| m.name).chain(again);
                plan.extend(methods.filter(|name| chosen(&scope.methods, name)).map(|name| Job {
                    data: set.name.to_owned(),
                    seed: FIRST_SEED + k,
                    method: name.to_owned(),
                }));
            }
        }
    }
    plan
}

/// One of N shares of a plan, written i/N with i from 1 to N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index, count }),
            _ => Err("must be i/N with i from 1 to N, such as 2/8".to_owned()),
        }
    }
}

impl Shard {
    /// Every N-th job, from the i-th on.
    pub fn of(self, plan: Vec<Job>) -> Vec<Job> {
        plan.into_iter().skip(self.index - 1).step_by(self.count).collect()
    }

    /// The name of its results file.
    pub fn file(self) -> String {
        format!("paper.{}-of-{}.jsonl", self.index, self.count)
    }
}

/// How long a job takes in comparison with others, roughly: SVMs of n rows take n^2 to n^3.
pub fn guess(job: &Job) -> f64 {
    let rows = UCI_SETS.iter().find(|set| set.name == job.data).map_or(1, |set| set.rows);
    let folds = match job.method.as_str() {
        name if name.ends_with("-1") => 1.0,
        name if name.ends_with("-3") => 3.0,
        name if name.starts_with("svml") => 2.0,
        _ => 5.0,
    };
    (rows as f64).powf(2.6) * folds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_the_papers() {
        let plan = plan(&Scope::default());
        let count = |data: &str| plan.iter().filter(|job| job.data == data).count();
        assert_eq!((count("haber"), count("page"), count("gamma")), (4300, 380, 19));
        assert_eq!(plan.len(), 7 * 4300 + 380 + 19);
        let distinct: std::collections::HashSet<&Job> = plan.iter().collect();
        assert_eq!(distinct.len(), plan.len());
        // Names in results files are there to stay.
        assert_eq!((plan[0].data.as_str(), plan[0].method.as_str()), ("haber", "euclid-1"));
        assert_eq!((plan[0].seed, plan[30_099].seed), (2000, 2199));
    }

    #[test]
    fn a_scope_narrows_it() {
        let quick = Scope { small: true, splits: Some(10), ..Scope::default() };
        assert_eq!(plan(&quick).len(), 7 * 10 * 24);
        let some = Scope {
            sets: vec!["gamma".to_owned()],
            methods: vec!["svml".to_owned(), "sphere-loo".to_owned()],
            ..Scope::default()
        };
        assert_eq!(plan(&some).len(), 2);
        assert!(some.check().is_ok());
        let message = Scope { sets: vec!["iris".to_owned()], ..some }.check().unwrap_err();
        assert!(message.contains("iris is not one of haber"), "{message}");
    }

    #[test]
    fn shards_are_the_plan_in_parts() {
        let whole = plan(&Scope { splits: Some(3), ..Scope::default() });
        let mut together = Vec::new();
        for text in ["1/4", "2/4", "3/4", "4/4"] {
            let part = text.parse::<Shard>().unwrap().of(whole.clone());
            assert!(part.len().abs_diff(whole.len() / 4) <= 1);
            together.extend(part);
        }
        let key = |job: &Job| (job.data.clone(), job.seed, job.method.clone());
        together.sort_by_key(key);
        let mut sorted = whole;
        sorted.sort_by_key(key);
        assert_eq!(together, sorted);
        assert_eq!("2/4".parse::<Shard>().unwrap().file(), "paper.2-of-4.jsonl");
        for bad in ["0/4", "5/4", "1", "a/b", "1/0"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
