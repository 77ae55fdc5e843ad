//! What a model says of itself is true: the error on rows that it was not learned on, and its probabilities.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::{ClassWeight, Criterion, Dataset, Form, Generator, Kernel, Matrix, Model, Svml};

/// Rows whose labels are those of a coin. As many heads as tails would be no coin: a half that has more of the one would know
/// that the other has more of the other.
fn coin(rows: usize, columns: usize, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let x = Matrix::from_fn(rows, columns, |_, _| rng.random_range(-1.0..1.0));
    let labels: Vec<&str> =
        (0..rows).map(|_| ["heads", "tails"][usize::from(rng.random_bool(0.5))]).collect();
    Dataset::new(x, &labels).unwrap()
}

/// Mean of -log p(class of the row).
fn log_loss(model: &Model, data: &Dataset) -> f64 {
    let p = model.probabilities(data.x()).unwrap();
    let sum: f64 = data.y().iter().enumerate().map(|(i, &class)| -p[(i, class)].ln()).sum();
    sum / data.rows() as f64
}

fn warned(model: &Model) -> bool {
    model.report().warnings.iter().any(|w| w.contains("no better than always predicting"))
}

/// The outcome of a coin cannot be known, however many columns there are to learn it by heart.
#[track_caller]
fn assert_knows_nothing(model: &Model, fresh: &Dataset, what: &str) {
    let honest = model.report().honest.unwrap();
    let fresh = log_loss(model, fresh);
    assert!((0.40..=0.60).contains(&honest.error), "{what}: {honest:?}");
    assert!(honest.log_loss <= 0.75, "{what}: {honest:?}");
    assert!(fresh <= 0.75, "{what}: log loss {fresh}");
    assert!(honest.is_no_better_than_guessing() && warned(model), "{what}: {honest:?}");
}

/// Rows that validate each other err together, so that an error of n rows scatters around one half not by 0.5 / sqrt(n), as
/// if it were of n tosses, but by up to 0.7 / sqrt(n). The mean over tables shows whether anything of the labels has
/// leaked.
#[test]
fn labels_by_coin() {
    for (rows, columns, tables) in [(100, 20, 24), (100, 200, 12), (600, 60, 4), (100, 2000, 2)] {
        let (mut mean, mut outside, mut unwarned) = (0.0, 0, 0);
        for seed in 0..tables {
            let model = Model::fit(&coin(rows, columns, 10 + seed), Svml::default()).unwrap();
            let honest = model.report().honest.unwrap();
            let fresh = log_loss(&model, &coin(1000, columns, 100 + seed));
            let what = format!("{rows} x {columns}, {seed}: {honest:?}, fresh log loss {fresh:.3}");
            eprintln!("{what}");
            mean += honest.error / tables as f64;
            outside += usize::from(!(0.40..=0.60).contains(&honest.error));
            unwarned += usize::from(!warned(&model));
            assert_eq!(warned(&model), honest.is_no_better_than_guessing(), "{what}");
            assert!((honest.error - 0.5).abs() <= 1.5 / (rows as f64).sqrt(), "{what}");
            assert!(honest.log_loss <= 0.75 && fresh <= 0.75, "{what}");
        }
        let what = format!("{rows} x {columns}: {mean:.3}, {outside} and {unwarned} of {tables}");
        eprintln!("{what}");
        assert!((mean - 0.5).abs() <= 1.5 / (rows as f64 * tables as f64).sqrt(), "{what}");
        // Outside of 0.4 to 0.6, and without a warning.
        assert!(outside <= tables as usize / 8 && unwarned <= tables as usize / 20, "{what}");
    }
}

#[test]
fn labels_by_coin_with_a_form_or_a_criterion_that_is_given() {
    let (data, fresh) = (coin(120, 20, 1), coin(1000, 20, 2));
    for (kernel, form) in [
        (Kernel::Gaussian, Form::Sphere),
        (Kernel::Gaussian, Form::Diagonal),
        (Kernel::Gaussian, Form::Full),
        (Kernel::Gaussian, Form::Rank(2)),
        (Kernel::Exponential, Form::Diagonal),
        (Kernel::Laplacian, Form::Diagonal),
    ] {
        let params = Svml { kernel, form: form.into(), ..Svml::default() };
        let model = Model::fit(&data, &params).unwrap();
        assert_knows_nothing(&model, &fresh, &format!("{kernel} {form}"));
    }
    for criterion in [Criterion::HoldOut, Criterion::KFold(5), Criterion::LeaveOneOut] {
        let model = Model::fit(&data, Svml { criterion, ..Svml::default() }).unwrap();
        assert_knows_nothing(&model, &fresh, &criterion.to_string());
    }
}

/// Where one class is frequent, guessing is right that often. Class weights change what is learned, but neither the rows that
/// the error is that of nor what guessing would do on them.
#[test]
fn a_frequent_class_is_no_skill() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let x = Matrix::from_fn(300, 6, |_, _| rng.random_range(-1.0..1.0));
    let labels: Vec<&str> =
        (0..300).map(|_| if rng.random_bool(0.15) { "rare" } else { "common" }).collect();
    let data = Dataset::new(x, &labels).unwrap();
    let share = 1.0 - *data.class_counts().iter().max().unwrap() as f64 / 300.0;
    let model = Model::fit(&data, Svml::default()).unwrap();
    let honest = model.report().honest.unwrap();
    assert!((honest.guessing - share).abs() < 1e-12, "{honest:?}");
    assert!(honest.is_no_better_than_guessing() && warned(&model), "{honest:?}");
    let class_weight = ClassWeight::Balanced;
    let model = Model::fit(&data, Svml { class_weight, ..Svml::default() }).unwrap();
    let honest = model.report().honest.unwrap();
    assert!((honest.guessing - share).abs() < 1e-12, "{honest:?}");
    assert!(honest.is_no_better_than_guessing() && warned(&model), "{honest:?}");
}

/// A number that is different in every row, as an identifier is, tells nothing of new rows.
#[test]
fn an_identifier_is_not_taken_for_knowledge() {
    let table = |rows: usize, seed: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut labels = Vec::with_capacity(rows);
        let mut sum = 0.0;
        let x = Matrix::from_fn(rows, 5, |_, k| {
            // The last column is the identifier; the sum of the others decides.
            if k == 4 {
                labels.push(if sum > 0.0 { "plus" } else { "minus" });
                sum = 0.0;
                return rng.random_range(1e6..9e6_f64).floor();
            }
            let v: f64 = rng.random_range(-1.0..1.0);
            sum += v;
            v
        });
        Dataset::new(x, &labels).unwrap()
    };
    for seed in 0..3 {
        let (train, test) = (table(200, seed), table(5000, 50 + seed));
        let model = Model::fit(&train, Svml::default()).unwrap();
        let (honest, error) = (model.report().honest.unwrap(), model.error_rate(&test).unwrap());
        eprintln!("identifier, {seed}: {honest:?}, error on fresh rows {error:.4}");
        assert!(!honest.is_no_better_than_guessing() && !warned(&model));
        // No rows of a finite table tell where exactly the classes meet.
        assert!(honest.error > 0.0 && error > 0.0, "{honest:?} {error}");
        assert!(honest.error > error - 3.0 * honest.standard_error, "{honest:?} {error}");
        assert!(honest.log_loss > 0.0 && log_loss(&model, &test) < 0.3, "{honest:?}");
    }
}

/// What is said is near the truth and, since it is of half of the rows, rather too high than too low.
#[test]
fn the_error_that_is_said_is_that_of_fresh_rows() {
    let (mut said, mut seen, mut said_loss, mut seen_loss) = (0.0, 0.0, 0.0, 0.0);
    let (draws, rows) = (8, 200);
    for seed in 0..draws {
        let flipped = 0.15;
        let generator = Generator { rows, seed, flipped, noise: 3, ..Generator::default() };
        let train = generator.generate().unwrap().data;
        let test = Generator { rows: 3000, seed: 100 + seed, ..generator }.generate().unwrap().data;
        let model = Model::fit(&train, Svml::default()).unwrap();
        let honest = model.report().honest.unwrap();
        said += honest.error / draws as f64;
        said_loss += honest.log_loss / draws as f64;
        seen += model.error_rate(&test).unwrap() / draws as f64;
        seen_loss += log_loss(&model, &test) / draws as f64;
    }
    eprintln!("error {said:.3} said, {seen:.3} seen; log loss {said_loss:.3}, {seen_loss:.3}");
    let standard_error = (seen * (1.0 - seen) / (draws * rows as u64) as f64).sqrt();
    assert!(said > seen - 2.0 * standard_error, "{said} said, {seen} seen");
    assert!(said < seen + 0.1, "{said} said, {seen} seen");
    assert!((said_loss - seen_loss).abs() < 0.1, "{said_loss} said, {seen_loss} seen");
}
