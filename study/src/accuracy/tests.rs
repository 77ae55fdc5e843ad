//! The report on results that are made up.

use super::report::Report;
use super::*;
use crate::jobs::Measured;
use crate::probabilities::{Bin, Probabilities};

/// An error that differs by method, table and split, and repeats exactly; the grid's is five points higher.
fn made_up(job: &Job) -> Measured {
    let sum = |text: &str| text.bytes().map(u64::from).sum::<u64>();
    let noise = (sum(&job.method) * 31 + sum(&job.data) * 17 + job.seed * 7919) % 101;
    let mut bins = vec![Bin::default(); 10];
    bins[8] = Bin { rows: 10.0, given: 8.5, right: 8.0 };
    Measured {
        job: job.clone(),
        error: 0.2 + 0.0001 * noise as f64 + if job.method == GRID { 0.05 } else { 0.0 },
        seconds: if job.method == "svc" { 4.0 } else { 1.0 },
        processor: None,
        form: "mean".to_owned(),
        cost: None,
        support: None,
        stop: None,
        probabilities: Some(Probabilities { log_loss: 0.5, auc: Some(0.9), bins }),
    }
}

fn table(jobs: &[Job]) -> Table {
    Table::of(jobs.iter().map(made_up))
}

fn of_peers(splits: u64) -> Vec<Job> {
    let jobs = super::of_peers(FIRST_SEED).into_iter();
    jobs.filter(|job| job.seed < FIRST_SEED + splits).collect()
}

fn report(ours: Table, peers: Table, times: Table, missing: usize) -> Report {
    Report { ours, peers, times, first_seed: FIRST_SEED, most_rows: 3000, missing: (missing, 0) }
}

#[test]
fn the_plan_covers_every_table() {
    let plan = plan(FIRST_SEED);
    let count = |data: &str| plan.iter().filter(|job| job.data == data).count();
    assert_eq!(
        (count("haber"), count("sonar"), count("adult"), count("rotated")),
        (1200, 100, 5, 120)
    );
    let distinct: std::collections::HashSet<&Job> = plan.iter().collect();
    assert_eq!(distinct.len(), plan.len());
    assert!(SUITE.iter().all(|table| count(table.name) == 5 * table.splits() as usize));
    let told: serde_json::Value = serde_json::from_str(&splits_as_json(7)).unwrap();
    assert_eq!(told.as_array().map(Vec::len), Some(25));
    assert_eq!((told[0]["splits"].as_u64(), told[0]["first_seed"].as_u64()), (Some(10), Some(7)));
}

#[test]
fn the_report_says_what_the_results_say() {
    let ours = table(&plan(FIRST_SEED));
    let peers = table(&of_peers(2));
    let timed: Vec<Job> = (0..3)
        .flat_map(|seed| {
            ["default", "svc"].map(|method| Job {
                data: "page".to_owned(),
                seed,
                method: method.to_owned(),
            })
        })
        .collect();
    let report = report(ours, peers, table(&timed), 0);
    let text = report.text();
    for part in [
        "It is lower on 7 of 7, significantly on 7, and significantly higher on none",
        "a quarter of the time of scikit-learn's grid search",
        "| haber | 200 | 25.",
        "| adult | 3000 | 1 |",
        // The splits that the peers have as well.
        "| sonar | 166 | 2 |",
        "| page | 1.00 | 4.00 | 4.0 |",
        // Ten rows at 0.85 of which eight are right.
        "| 5.0 |",
        "| rotated | 25.",
        "mean 100 %",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("NaN") && !text.contains("inf |") && !text.contains("Aims"), "{text}");
    assert!(!text.contains("Not all is measured"));
    let aims = report.aims();
    assert!(aims.contains("- met: seven sets: mean difference"), "{aims}");
    assert!(aims.contains("- met: on no table slower"), "{aims}");
}

#[test]
fn a_few_results_are_enough_for_a_report() {
    let none = report(Table::default(), Table::default(), Table::default(), 9);
    assert!(none.text().contains("9 jobs of ours and 0 of other programs are open"));
    assert!(none.aims().contains("not met"));
    let some: Vec<Job> = plan(FIRST_SEED)
        .into_iter()
        .filter(|job| job.seed == FIRST_SEED && job.data.as_str() < "d")
        .collect();
    let few = report(table(&some), Table::default(), Table::default(), 1);
    let text = few.text();
    assert!(!text.contains("NaN") && !text.contains("inf |"), "{text}");
    assert!(text.contains("| adult | 3000 | 1 |") && !text.contains("CatBoost |"), "{text}");
}

#[test]
fn names_that_do_not_exist_are_refused() {
    let options = |sets: &[&str], splits: Option<u64>| Options {
        source: Source { data: PathBuf::new(), suite: None, most_rows: 10 },
        results: PathBuf::new(),
        peers: PathBuf::new(),
        times: PathBuf::new(),
        out: PathBuf::new(),
        splits,
        first_seed: 5000,
        sets: sets.iter().map(|&set| set.to_owned()).collect(),
        methods: vec![DEFAULT.to_owned()],
        report_only: false,
    };
    assert!(options(&["iris"], None).plan().unwrap_err().contains("iris"));
    let jobs = options(&["sonar", "rotated"], Some(2)).plan().unwrap();
    assert_eq!(jobs.iter().map(|job| job.seed).collect::<Vec<_>>(), [5000, 5001, 0, 1]);
}
