//! The error that a model reports is that of new rows, also where rows repeat, weigh more or were copied: properties over
//! many tables that are drawn at random. `cargo test --release -p svml --test repeats -- --ignored --nocapture` runs every
//! setting with twenty seeds and prints the table; the ordinary test run takes twelve of them with fewer seeds.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::{Dataset, EqualRows, Matrix, Model, Svml};

/// Where rows come from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rows {
    /// Columns of so many levels each.
    Cells { columns: usize, levels: u32 },
    /// Columns of real numbers.
    Real { columns: usize },
}

/// What is done to a table before it is learned from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    None,
    /// Every row has this weight.
    Weight(f64),
    /// Every row has a weight of 1, 2 or 3 at random.
    Weights,
    /// Every row is there twice.
    Twice,
    /// A class of 15 % is drawn with replacement until it is as frequent as the other.
    Oversampled,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Setting {
    n: usize,
    rows: Rows,
    signal: bool,
    change: Change,
}

fn draw(setting: Setting, n: usize, rng: &mut ChaCha8Rng) -> (Matrix, Vec<usize>) {
    let columns = match setting.rows {
        Rows::Cells { columns, .. } | Rows::Real { columns } => columns,
    };
    let x = Matrix::from_fn(n, columns, |_, _| match setting.rows {
        Rows::Cells { levels, .. } => f64::from(rng.random_range(0..levels)),
        Rows::Real { .. } => rng.random_range(-1.0..1.0),
    });
    let middle = match setting.rows {
        Rows::Cells { levels, .. } => 0.5 * f64::from(levels - 1),
        Rows::Real { .. } => 0.0,
    };
    let rare = if setting.change == Change::Oversampled { 0.15 } else { 0.5 };
    let class = (0..n).map(|i| match setting.signal {
        true => {
            let sum: f64 = x.row(i).iter().map(|v| v - middle).sum();
            usize::from((sum > 0.0) != rng.random_bool(0.2))
        }
        false => usize::from(rng.random_bool(rare)),
    });
    let class = class.collect();
    (x, class)
}

fn table(setting: Setting, rng: &mut ChaCha8Rng) -> Dataset {
    let (x, class) = draw(setting, setting.n, rng);
    let n = setting.n;
    let data = Dataset::new(x, &class).unwrap();
    match setting.change {
        Change::None => data,
        Change::Weight(weight) => data.with_weights(vec![weight; n]).unwrap(),
        Change::Weights => {
            let weights = (0..n).map(|_| f64::from(rng.random_range(1..4))).collect();
            data.with_weights(weights).unwrap()
        }
        Change::Twice => data.select(&(0..2 * n).map(|i| i / 2).collect::<Vec<_>>()),
        Change::Oversampled => {
            let (rare, rest): (Vec<usize>, Vec<usize>) = (0..n).partition(|&i| class[i] == 1);
            let drawn = (0..rest.len()).map(|_| rare[rng.random_range(0..rare.len())]);
            data.select(&drawn.chain(rest.iter().copied()).collect::<Vec<_>>())
        }
    }
}

struct Seen {
    reported: f64,
    standard_error: f64,
    error: f64,
    log_loss: f64,
    reported_loss: f64,
}

/// Tables of different settings, by `number`, have nothing in common.
fn see(setting: Setting, number: u64, seed: u64) -> Seen {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(number);
    let model = Model::fit(&table(setting, &mut rng), Svml::default()).unwrap();
    let honest = model.report().honest.unwrap();
    let (x, class) = draw(setting, 4000, &mut rng);
    let new = Dataset::new(x, &class).unwrap();
    let p = model.probabilities(new.x()).unwrap();
    let predicted = model.predict(new.x()).unwrap();
    let oversampled = setting.change == Change::Oversampled;
    // New rows come as the table does: with as many of either class.
    let mut counts = [0.0; 2];
    class.iter().for_each(|&c| counts[c] += 1.0);
    let weight = |c: usize| if oversampled { 2000.0 / counts[c] } else { 1.0 };
    let (mut error, mut log_loss) = (0.0, 0.0);
    for (i, &c) in class.iter().enumerate() {
        error += weight(c) * f64::from(u8::from(predicted[i] != c)) / 4000.0;
        log_loss -= weight(c) * p[(i, c)].max(1e-15).ln() / 4000.0;
    }
    let (reported, standard_error) = (honest.error, honest.standard_error);
    Seen { reported, standard_error, error, log_loss, reported_loss: honest.log_loss }
}

fn all() -> Vec<(&'static str, Vec<Setting>)> {
    let cells = |columns, levels| Rows::Cells { columns, levels };
    let real = Rows::Real { columns: 5 };
    let distinct = [cells(1, 2), cells(3, 2), cells(5, 2), cells(4, 4), real];
    let noise = |change: Change, rows: &[Rows], sizes: &[usize]| -> Vec<Setting> {
        let of =
            |&n: &usize| rows.iter().map(move |&rows| Setting { n, rows, signal: false, change });
        sizes.iter().flat_map(of).collect()
    };
    let both = [cells(5, 2), real];
    let few = [300, 1000];
    let signal = |n| Setting { n, rows: cells(4, 4), signal: true, change: Change::None };
    let hundred = [Change::Weight(2.0), Change::Weights, Change::Twice, Change::Oversampled];
    let hundred = hundred.iter().flat_map(|&change| noise(change, &[real], &[100]));
    vec![
        ("100 rows", noise(Change::None, &distinct, &[100]).into_iter().chain(hundred).collect()),
        ("noise", noise(Change::None, &distinct, &[300, 1000, 2000])),
        ("weight 2", noise(Change::Weight(2.0), &both, &few)),
        ("weight 2.0001", noise(Change::Weight(2.0001), &both, &few)),
        ("weights 1 to 3", noise(Change::Weights, &both, &few)),
        ("twice", noise(Change::Twice, &[real], &few)),
        ("oversampled", noise(Change::Oversampled, &[real], &few)),
        ("signal in 256 cells", [300, 1000, 2000].map(signal).to_vec()),
    ]
}

/// Prints a row of the table for every setting and kind, and says what is too low.
fn judge(kinds: &[(&str, Vec<Setting>)], seeds: u64) -> Vec<String> {
    let (mut bad, mut number) = (Vec::new(), 0);
    println!(
        "| kind | setting | reported | new rows | difference | its standard error | log loss reported | of new rows |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (kind, settings) in kinds {
        let mut pooled = Vec::new();
        let mut most_rows = 0;
        for &setting in settings {
            number += 1;
            let seen: Vec<Seen> = (0..seeds).map(|seed| see(setting, number, seed)).collect();
            let mean = |value: &dyn Fn(&Seen) -> f64| {
                seen.iter().map(value).sum::<f64>() / seen.len() as f64
            };
            let difference = mean(&|s| s.reported - s.error);
            // Rows that validate each other err together: tables scatter more than their own standard errors say.
            let scatter = mean(&|s| (s.reported - s.error - difference).powi(2));
            let variance = mean(&|s| s.standard_error.powi(2)).max(scatter);
            let error = (variance / seeds as f64).sqrt();
            println!(
                "| {kind} | {setting:?} | {:.3} | {:.3} | {difference:+.3} | {error:.3} | {:.3} | {:.3} |",
                mean(&|s| s.reported),
                mean(&|s| s.error),
                mean(&|s| s.reported_loss),
                mean(&|s| s.log_loss)
            );
            let small = if setting.n == 100 { 0.03 } else { 0.0 };
            if difference < -f64::max(4.0 * error, small) {
                bad.push(format!("{setting:?}: {difference:+.3} ± {error:.3}"));
            }
            if !setting.signal && mean(&|s| s.log_loss) > 0.71 {
                bad.push(format!("{setting:?}: log loss {}", mean(&|s| s.log_loss)));
            }
            pooled.push((difference, error));
            most_rows = most_rows.max(setting.n);
        }
        let count = pooled.len() as f64;
        let difference = pooled.iter().map(|(d, _)| d).sum::<f64>() / count;
        let error = pooled.iter().map(|(_, e)| e * e).sum::<f64>().sqrt() / count;
        println!("| {kind} | all | | | {difference:+.4} | {error:.4} | | |");
        let small = if most_rows == 100 { 0.03 } else { 0.0 };
        if difference < -f64::max(2.0 * error, small) {
            bad.push(format!("{kind}: {difference:+.4} ± {error:.4}"));
        }
    }
    bad
}

#[test]
#[ignore = "minutes: every setting with twenty seeds"]
fn all_settings() {
    let bad = judge(&all(), 20);
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Twelve of the settings, each with ten tables.
#[test]
fn twelve_settings() {
    let all = all();
    let kinds: Vec<(&str, Vec<Setting>)> = (all.iter())
        .map(|(kind, settings)| {
            let taken = if *kind == "noise" { 4 } else { 1 };
            let small = settings.iter().filter(|setting| setting.n <= 300).rev();
            (*kind, small.take(taken + usize::from(*kind == "100 rows")).copied().collect())
        })
        .collect();
    assert_eq!(kinds.iter().map(|(_, settings)| settings.len()).sum::<usize>(), 12);
    let bad = judge(&kinds, 10);
    assert!(bad.is_empty(), "{bad:#?}");
}

/// A single row that is there a hundred times, with either label: as good as the more frequent label.
#[test]
fn one_distinct_row() {
    let (mut reported, tables) = (0.0, 40);
    for seed in 0..tables {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let x = Matrix::from_fn(100, 2, |_, k| k as f64);
        let class: Vec<usize> = (0..100).map(|_| rng.random_range(0..2)).collect();
        let model = Model::fit(&Dataset::new(x, &class).unwrap(), Svml::default()).unwrap();
        let honest = model.report().honest.unwrap();
        assert!(honest.is_no_better_than_guessing(), "{honest:?}");
        reported += honest.error / tables as f64;
    }
    assert!((reported - 0.5).abs() < 2.0 * 0.5 / (100.0 * tables as f64).sqrt(), "{reported}");
}

fn warnings(data: &Dataset, equal_rows: EqualRows) -> Vec<String> {
    let model = Model::fit(data, Svml { equal_rows, ..Svml::default() }).unwrap();
    model.report().warnings.clone()
}

/// What equal rows are taken for, and what is said of it.
#[test]
fn copies_are_told_from_observations() {
    let real = Rows::Real { columns: 5 };
    let cells = |columns, levels| Rows::Cells { columns, levels };
    let found = |rows: Rows, change: Change, signal: bool| {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let data = table(Setting { n: 400, rows, signal, change }, &mut rng);
        let said = warnings(&data, EqualRows::Auto).join("; ");
        assert_eq!(data.together().is_some(), said.contains("taken for copies"), "{said}");
        assert!(!warnings(&data, EqualRows::Observations).join("").contains("taken for"));
        assert!(!warnings(&data, EqualRows::Copies).join("").contains("taken for"));
        (said.contains("taken for copies"), said.contains("taken for observations"))
    };
    // Rows that are equal by chance: nothing to say.
    for (rows, signal) in [(cells(4, 4), false), (cells(4, 4), true), (cells(2, 9), true)] {
        assert_eq!(found(rows, Change::None, signal), (false, false), "{rows:?} {signal}");
    }
    assert_eq!(found(real, Change::None, false), (false, false));
    // Real numbers, and anything that is there equally often.
    for signal in [false, true] {
        assert_eq!(found(real, Change::Twice, signal), (true, false));
        assert_eq!(found(cells(5, 4), Change::Twice, signal), (true, false));
    }
    assert_eq!(found(real, Change::Oversampled, false), (true, false));
    // Small integers of a class that was oversampled: a warning.
    assert_eq!(found(cells(5, 5), Change::Oversampled, false), (false, true));
}

/// Rows of a pool of prototypes: equal in all columns at once, which looks like copies, but labels that differ, or the few
/// values of the columns, show that they are drawn.
#[test]
fn prototypes_are_observations() {
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let pool = Matrix::from_fn(120, 4, |_, _| rng.random_range(-1.0..1.0));
    let chosen: Vec<usize> = (0..400).map(|_| rng.random_range(0..120)).collect();
    let coins: Vec<usize> = (0..400).map(|_| rng.random_range(0..2)).collect();
    let data = Dataset::new(pool.select_rows(&chosen), &coins).unwrap();
    assert!(data.together().is_none());
    let few: Vec<usize> = chosen.iter().map(|row| row % 60).collect();
    let labels: Vec<usize> = few.iter().map(|row| row % 2).collect();
    let data = Dataset::new(pool.select_rows(&few), &labels).unwrap();
    assert!(data.together().is_none());
    assert!(warnings(&data, EqualRows::Auto).join("").contains("taken for observations"));
}

/// A table written twice says of itself what it said once, but for the rows that are counted.
#[test]
fn a_table_written_twice_is_the_table_once() {
    let setting =
        Setting { n: 150, rows: Rows::Real { columns: 3 }, signal: true, change: Change::None };
    let once = table(setting, &mut ChaCha8Rng::seed_from_u64(1));
    let weighted = once.clone().with_weights(vec![2.0; 150]).unwrap();
    let twice = once.select(&(0..300).map(|i| i % 150).collect::<Vec<_>>());
    let fit = |data: &Dataset| Model::fit(data, Svml::default()).unwrap();
    let (weighted, twice) = (fit(&weighted), fit(&twice));
    assert_eq!(weighted.decision(once.x()).unwrap(), twice.decision(once.x()).unwrap());
    assert_eq!(weighted.report().honest, twice.report().honest);
}

/// Classes of one to three rows are learned and predicted, and the others keep their estimate.
#[test]
fn rare_classes_do_not_take_the_estimate_away() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for rare in 1..5 {
        let x = Matrix::from_fn(300, 2, |i, _| match i < rare {
            true => 8.0 + 0.1 * i as f64,
            false => rng.random_range(-1.0..1.0),
        });
        let class = |i: usize| match i < rare {
            true => "rare",
            false if x[(i, 0)] > 0.0 => "plus",
            false => "minus",
        };
        let labels: Vec<&str> = (0..300).map(class).collect();
        let data = Dataset::new(x, &labels).unwrap();
        let model = Model::fit(&data, Svml::default()).unwrap();
        let honest = model.report().honest.unwrap();
        assert!(honest.error < 0.1, "{rare}: {honest:?}");
        let said = model.report().warnings.join("; ");
        assert_eq!(said.contains("left out of the error"), rare < 4, "{rare}: {said}");
        assert_eq!(
            model.predict_labels(&Matrix::from_rows(&[[8.0, 8.0]]).unwrap()).unwrap(),
            ["rare"]
        );
        // With two classes, one of them so small, there is no estimate, and that is said.
        let two = data.keep_classes(&["rare", "plus"]).unwrap();
        let model = Model::fit(&two, Svml::default()).unwrap();
        let said = model.report().warnings.join("; ");
        assert_eq!(model.report().honest.is_none(), rare < 4, "{rare}");
        assert_eq!(said.contains("has no error on held-out rows"), rare < 4, "{rare}: {said}");
    }
}

/// Of a rare class the error is hardly below that of guessing, but the probabilities are better: no warning.
#[test]
fn a_rare_class_that_is_known_is_no_guess() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let rare: Vec<bool> = (0..1200).map(|_| rng.random_bool(0.03)).collect();
    let x = Matrix::from_fn(1200, 3, |i, k| {
        let noise: f64 = (0..12).map(|_| rng.random_range(-0.5..0.5)).sum();
        noise + if rare[i] && k < 2 { 1.4 } else { 0.0 }
    });
    let labels: Vec<&str> = rare.iter().map(|rare| if *rare { "yes" } else { "no" }).collect();
    let model = Model::fit(&Dataset::new(x, &labels).unwrap(), Svml::default()).unwrap();
    let honest = model.report().honest.unwrap();
    assert!(honest.error > honest.guessing - 3.0 * honest.standard_error, "{honest:?}");
    assert!(honest.better_log_loss && !honest.is_no_better_than_guessing(), "{honest:?}");
    assert!(!model.report().warnings.join("").contains("no better"));
}
