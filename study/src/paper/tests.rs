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

/// The words follow the numbers: made-up results in which SVML is far better than the grid everywhere, then
/// the same with one set on which it is worse, then with no difference at all.
#[test]
fn the_verdict_follows_the_results() {
    let of = |svml: &dyn Fn(&str) -> f64| {
        let shifted = |job: &Job| {
            let is_svml = ["svml", "svml-reseeded"].contains(&job.method.as_str());
            let noise = if is_svml { 1e-4 * (job.seed % 3) as f64 } else { 0.0 };
            let shift = if is_svml { svml(&job.data) } else { 0.0 };
            Measured { error: 0.2 + noise + shift, ..made_up(job) }
        };
        let table = Table::of(small_plan().iter().map(shifted));
        let text = verdict::verdict(&table, &Credit::default());
        let sentence = verdict::sentence(&table).unwrap();
        (text.lines().find(|line| line.starts_with("**The paper")).unwrap().to_owned(), sentence)
    };
    let (lead, sentence) = of(&|_| -0.02);
    assert!(
        lead.contains("headline holds up here") && lead.contains("a lower error than"),
        "{lead}"
    );
    assert!(lead.contains("cmc, page and gamma, worse on none"), "{lead}");
    assert!(sentence.contains("holds up here") && sentence.contains("-1.99"), "{sentence}");
    let (lead, _) = of(&|set| if set == "page" { 0.02 } else { -0.02 });
    assert!(lead.contains("does not hold up here") && lead.contains("worse on page"), "{lead}");
    // With the noise alone the error of SVML is higher by a hundredth of a point.
    let (lead, sentence) = of(&|_| 0.0);
    assert!(
        lead.contains("does not hold up here") && lead.contains("20.01 against 20.00"),
        "{lead}"
    );
    assert!(sentence.contains("does not hold up"), "{sentence}");
}

#[test]
fn every_reason_is_given_once() {
    let text = report::report(&Table::of(small_plan().iter().map(made_up)), &Credit::default());
    let section =
        text.split("### Cells that differ").nth(1).unwrap().split("\n## ").next().unwrap();
    let lines: Vec<&str> = section.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    let reasons: std::collections::HashSet<&str> =
        lines.iter().filter_map(|line| line.split(" | ").next()).collect();
    assert!(lines.len() > 3 && reasons.len() == lines.len(), "{section}");
    // All cells of the text are in the table.
    let counts = lines.iter().filter_map(|line| line.split(" | ").nth(1)?.parse::<usize>().ok());
    let marked = format!("\n\n{} of ", counts.sum::<usize>());
    assert!(section.contains(&marked), "{section}");
}

/// What was seen of credit comes back from its file, and page and figures have it.
#[test]
fn splits_of_credit_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let data =
        |seed| svml::Generator { rows: 80, seed, ..Default::default() }.generate().unwrap().data;
    let splits = (0..2).map(|k| credit::split(FIRST_SEED + k, &data(k), &data(9)).unwrap());
    let seen = Credit { headers: vec![computer::header()], splits: splits.collect() };
    let path = folder.path().join("deep/credit.jsonl");
    seen.write(&path).unwrap();
    let read = Credit::read(&path).unwrap();
    assert_eq!(format!("{read:?}"), format!("{seen:?}"));
    assert!(Credit::read(&folder.path().join("none")).unwrap().splits.is_empty());
    let first = &read.splits[0];
    assert_eq!((first.plain.step.len(), first.plain.step[80]), (81, 400));
    assert!(first.plain.loss[80] < first.plain.loss[0], "{:?}", first.plain.loss);
    // The start of the paths: sigma^2 = d.
    assert_eq!(first.sphere.width[0], 1.0);

    let text = report::report(&Table::of(small_plan().iter().map(made_up)), &read);
    for part in [
        "for figures 2 and 5",
        "Mean of 2 splits",
        "In the mean over 2 splits",
        "2 splits. The grid trains 100",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("NaN"), "{text}");
    figures::of_credit(&read, folder.path()).unwrap();
    let figure = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(figure("figure-2-descent.svg").contains("mean of 2 splits"));
    assert!(figure("figure-5-plane.svg").contains("steps that were kept"));
}

/// Another program's results are taken where they lie beside ours.
#[test]
fn scikit_learns_results_are_found() {
    let folder = tempfile::tempdir().unwrap();
    fill(&folder.path().join("paper.jsonl"), &small_plan());
    let other = Job { data: "haber".to_owned(), seed: FIRST_SEED, method: SKLEARN.to_owned() };
    fill(&folder.path().join("sklearn.jsonl"), &[other]);
    let out = folder.path().join("study.md");
    run(Options {
        data: folder.path().join("no data"),
        results: Vec::new(),
        folder: folder.path().to_owned(),
        out: out.clone(),
        figures: folder.path().to_owned(),
        readme: folder.path().join("none"),
        shard: None,
        report_only: true,
        scope: Scope::default(),
    })
    .unwrap();
    let text = fs::read_to_string(out).unwrap();
    let times = text.split("## Time").nth(1).unwrap();
    let line =
        times.lines().find(|line| line.starts_with("| scikit-learn, 5-fold grid |")).unwrap();
    assert!(!line.starts_with("| scikit-learn, 5-fold grid | -"), "{line}");
}

/// What is better only with one seed is not said to be better.
#[test]
fn a_gain_of_one_seed_is_no_gain() {
    let of = |again: f64| {
        let shifted = |job: &Job| {
            let shift = match job.method.as_str() {
                "svml-sphere" => -0.02,
                "svml-sphere-reseeded" => again,
                _ => 0.0,
            };
            let noise = 1e-4 * ((job.seed + job.method.len() as u64) % 3) as f64;
            Measured { error: 0.2 + noise + shift, ..made_up(job) }
        };
        let table = Table::of(small_plan().iter().map(shifted));
        let text = verdict::verdict(&table, &Credit::default());
        text.lines().find(|line| line.starts_with("| SVML-Sphere and")).unwrap().to_owned()
    };
    let (stays, goes) = (of(-0.02), of(0.0));
    assert!(stays.ends_with("| **does not hold** |"), "{stays}");
    assert!(goes.ends_with("| holds |") && goes.contains("seed of the split"), "{goes}");
}
