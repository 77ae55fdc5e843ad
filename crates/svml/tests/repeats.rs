//! The error that a model reports is that of new rows, also where rows repeat, weigh more or were copied: properties over
//! many tables that are drawn at random. `cargo test --release -p svml --test repeats -- --ignored --nocapture` runs every
//! setting with twenty seeds and prints the table; the ordinary test run takes twelve of them with fewer seeds.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::{Dataset, Matrix, Model, Svml};

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

fn see(setting: Setting, seed: u64) -> Seen {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
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
    let distinct = [cells(1, 1), cells(1, 2), cells(3, 2), cells(5, 2), cells(4, 4), real];
    let sizes = [100, 300, 1000, 2000];
    let noise = |change: Change, rows: &[Rows], sizes: &[usize]| -> Vec<Setting> {
        let of =
            |&n: &usize| rows.iter().map(move |&rows| Setting { n, rows, signal: false, change });
        sizes.iter().flat_map(of).collect()
    };
    let both = [cells(5, 2), real];
    let few = [100, 300, 1000];
    vec![
        ("noise, 100 rows", noise(Change::None, &distinct[1..], &[100])),
        ("noise, 300 rows", noise(Change::None, &distinct[1..], &[300])),
        ("noise, 1,000 rows", noise(Change::None, &distinct[1..], &[1000])),
        ("noise, 2,000 rows", noise(Change::None, &distinct[1..], &[2000])),
        ("weight 2", noise(Change::Weight(2.0), &both, &few)),
        ("weight 2.0001", noise(Change::Weight(2.0001), &both, &few)),
        ("weights 1 to 3", noise(Change::Weights, &both, &few)),
        ("twice", noise(Change::Twice, &[real], &few)),
        ("oversampled", noise(Change::Oversampled, &[real], &few)),
        (
            "signal in 256 cells",
            sizes
                .map(|n| Setting { n, rows: cells(4, 4), signal: true, change: Change::None })
                .to_vec(),
        ),
    ]
}

/// Prints a row of the table for every setting and kind, and says what is too low.
fn judge(kinds: &[(&str, Vec<Setting>)], seeds: u64) -> Vec<String> {
    let mut bad = Vec::new();
    println!(
        "| kind | setting | reported | new rows | difference | its standard error | log loss reported | of new rows |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (kind, settings) in kinds {
        let mut pooled = Vec::new();
        let mut most_rows = 0;
        for &setting in settings {
            let seen: Vec<Seen> = (0..seeds).map(|seed| see(setting, seed)).collect();
            let mean = |value: &dyn Fn(&Seen) -> f64| {
                seen.iter().map(value).sum::<f64>() / seen.len() as f64
            };
            let difference = mean(&|s| s.reported - s.error);
            let variance = mean(&|s| s.standard_error.powi(2));
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
