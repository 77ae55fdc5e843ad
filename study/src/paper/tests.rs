//! The study on results that are made up: files in parts, and what is made of them.

use std::io::Write;

use super::*;
use crate::jobs::Measured;
use crate::paper::plan::{FIRST_SEED, SKLEARN, guess, plan};

/// An error that differs by method, set and split, and repeats exactly.
fn made_up(job: &Job) -> Measured {
    let sum = |text: &str| text.bytes().map(u64::from).sum::<u64>();
    let noise = (sum(&job.method) * 31 + sum(&job.data) * 17 + job.seed * 7919) % 101;
    Measured {
        job: job.clone(),
        error: 0.2 + 0.0001 * noise as f64 + if job.method == "euclid-5" { 0.05 } else { 0.0 },
        seconds: 0.001 * (1 + noise) as f64,
        processor: Some(0.002 * (1 + noise) as f64),
        form: if noise.is_multiple_of(2) { "sphere" } else { "diagonal" }.to_owned(),
        cost: Some(1.0),
        support: Some(100),
        stop: None,
        probabilities: None,
    }
}

fn fill(path: &Path, jobs: &[Job]) {
    Results::open(path).unwrap().run(jobs, guess, |job| Ok(made_up(job))).unwrap();
}

fn small_plan() -> Vec<Job> {
    plan(&Scope { splits: Some(4), ..Scope::default() })
}

#[test]
fn shards_together_give_the_report_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.jsonl");
    fill(&whole, &small_plan());
    let parts: Vec<PathBuf> = (1..=3)
        .map(|i| {
            let path = folder.path().join(format!("{i}.jsonl"));
            fill(&path, &format!("{i}/3").parse::<Shard>().unwrap().of(small_plan()));
            path
        })
        .collect();
    let reversed: Vec<PathBuf> = parts.iter().rev().cloned().collect();
    let written = |name: &str, results: &[PathBuf]| {
        let (out, figures) =
            (folder.path().join(name), folder.path().join(format!("{name}-figures")));
        run(Options {
            data: folder.path().join("no data"),
            results: results.to_vec(),
            folder: folder.path().to_owned(),
            out: out.clone(),
            figures: figures.clone(),
            readme: folder.path().join("none"),
            shard: None,
            report_only: true,
            scope: Scope::default(),
        })
        .unwrap();
        let figure = |n: &str| fs::read_to_string(figures.join(format!("figure-{n}.svg"))).unwrap();
        (fs::read_to_string(out).unwrap(), figure("3-times"), figure("6-differences"))
    };
    let expected = written("one", &[whole]);
    assert_eq!(written("three", &parts), expected);
    assert_eq!(written("reversed", &reversed), expected);
}

#[test]
fn the_report_says_what_the_results_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    fill(&path, &small_plan());
    // As study/sklearn_times.py writes it.
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    writeln!(
        file,
        "{{\"date\": \"2001-02-03\", \"machine\": \"a computer\", \"versions\": \"scikit-learn 1\"}}\n\
         {{\"data\": \"haber\", \"seed\": {FIRST_SEED}, \"method\": \"{SKLEARN}\", \"error\": 0.25, \"seconds\": 2.5, \"processor\": 2.5, \"form\": \"sphere\", \"cost\": 1.0, \"support\": 100}}"
    )
    .unwrap();
    let table = Table::read(&[path]).unwrap();
    let text = report::report(&table, &Credit::default());
    for part in [
        "2001-02-03: a computer; scikit-learn 1",
        "5473 (paper 5743)",
        "| scikit-learn, 5-fold grid | 2.50 | - |",
        // Five points above all others on every split: far from the paper, and never bold.
        "| Euclidean 5-fold | 25.",
        "haber 4, credit 4",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let of = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let euclidean = of("| Euclidean 5-fold |");
    assert!(!euclidean.split('(').next().unwrap().contains("**"), "{euclidean}");
    assert!(euclidean.contains(" !"), "{euclidean}");
    // The second table: every method is better by about five points, significantly.
    let differences = text.split("## Paired differences").nth(1).unwrap();
    let svml = differences.lines().find(|line| line.starts_with("| SVML |")).unwrap();
    assert!(svml.contains("| **-5.") || svml.contains("| **-4."), "{svml}");
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    // What was aimed at is for the console.
    assert!(!text.contains("Aims"));
    let aims = report::aims(&table);
    assert!(aims.contains("\n- not met: Euclidean rows") && !aims.contains("NaN"), "{aims}");
}

#[test]
fn a_few_results_are_enough_for_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.jsonl");
    let scope = Scope {
        splits: Some(1),
        sets: vec!["haber".to_owned(), "gamma".to_owned()],
        methods: vec!["svml".to_owned(), "euclid-5".to_owned()],
        ..Scope::default()
    };
    fill(&path, &plan(&scope));
    let table = Table::read(&[path]).unwrap();
    let text = report::report(&table, &Credit::default());
    assert!(!text.contains("NaN"), "{text}");
    figures::of_results(&table, folder.path()).unwrap();
    assert!(
        write(&Table::default(), &Credit::default(), &folder.path().join("out.md"), folder.path())
            .is_err()
    );
}
