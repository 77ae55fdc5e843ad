//! Rows that repeat: where equal rows are copies of one observation, a weight that is a whole number is the row so many times,
//! in every method; and what is said of a table whose rows repeat is true of new rows that repeat them as well.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, missing_docs)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::learners::{Nca, Pca};
use svml::{
    ClassWeight, Criterion, Dataset, EqualRows, Error, Form, Generator, GridSearch, Kernel, Matrix,
    Method, Model, Svml,
};

/// Rows on a coarse grid, many of them equal, some with different labels.
fn coarse(rows: usize, classes: usize, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let x = Matrix::from_fn(rows, 3, |_, _| f64::from(rng.random_range(0..4)));
    let labels: Vec<usize> = (0..rows)
        .map(|i| match rng.random_bool(0.1) {
            true => rng.random_range(0..classes),
            false => (x.row(i).iter().sum::<f64>() / 3.0) as usize % classes,
        })
        .collect();
    Dataset::new(x, &labels).unwrap()
}

/// Every method, with every form, kernel and criterion, for copies of one observation.
fn methods() -> Vec<Method> {
    let equal_rows = EqualRows::Copies;
    let svml = |kernel: Kernel, form: Form, criterion: Criterion| -> Method {
        let form = form.into();
        Svml { kernel, form, criterion, max_iterations: 4, equal_rows, ..Svml::default() }.into()
    };
    let (widths, costs) = (vec![1.0, 0.25], vec![1.0, 10.0]);
    let grid = GridSearch { widths, costs, equal_rows, ..Default::default() };
    let after = |learner: svml::AnyLearner| Method::SvmAfter { learner, grid: grid.clone() };
    let quick = Svml { max_iterations: 4, equal_rows, ..Svml::default() };
    vec![
        quick.clone().into(),
        Svml { class_weight: ClassWeight::Balanced, ..quick.clone() }.into(),
        Svml { criterion: Criterion::HoldOut, ..quick.clone() }.into(),
        Svml { criterion: Criterion::LeaveOneOut, ..quick.clone() }.into(),
        Svml { criterion: Criterion::KFold(5), refit: false, ..quick }.into(),
        svml(Kernel::Gaussian, Form::Full, Criterion::KFold(3)),
        svml(Kernel::Gaussian, Form::Rank(2), Criterion::HoldOut),
        svml(Kernel::Exponential, Form::Diagonal, Criterion::KFold(2)),
        svml(Kernel::Laplacian, Form::Diagonal, Criterion::LeaveOneOut),
        Svml { max_iterations: 5, equal_rows, ..Svml::paper() }.into(),
        grid.clone().into(),
        GridSearch { folds: 1, ..grid.clone() }.into(),
        GridSearch { class_weight: ClassWeight::Balanced, ..grid.clone() }.into(),
        "fixed:gamma=0.3,cost=2".parse().unwrap(),
        after(Pca { rank: 2 }.into()),
        after(Nca::default().into()),
        Method::neighbours(1),
        Method::neighbours(4),
    ]
}

#[test]
fn a_whole_weight_is_a_number_of_copies() {
    for classes in [2, 3] {
        let data = coarse(70, classes, 1);
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let times: Vec<usize> = (0..data.rows()).map(|_| rng.random_range(0..4)).collect();
        let weights = times.iter().map(|&t| t as f64).collect();
        let weighted = data.clone().with_weights(weights).unwrap();
        let mut repeated: Vec<usize> = (0..data.rows()).flat_map(|i| vec![i; times[i]]).collect();
        repeated.reverse();
        let repeated = data.select(&repeated);
        let new = coarse(100, classes, 3);
        for method in methods() {
            let what = format!("{classes} classes, {method}");
            let (a, b) = (Model::fit(&weighted, &method), Model::fit(&repeated, &method));
            let (a, b) = (a.unwrap(), b.unwrap());
            for x in [data.x(), new.x()] {
                assert_eq!(a.decision(x).unwrap(), b.decision(x).unwrap(), "{what}");
                assert_eq!(a.probabilities(x).unwrap(), b.probabilities(x).unwrap(), "{what}");
            }
            assert_eq!(a.metric(), b.metric(), "{what}");
            assert_eq!(a.report().honest, b.report().honest, "{what}");
            assert_eq!(a.report().candidates, b.report().candidates, "{what}");
            let error = |model: &Model, data: &Dataset| model.error_rate(data).unwrap();
            assert!((error(&a, &weighted) - error(&a, &repeated)).abs() < 1e-12, "{what}");
        }
    }
}

/// Few rows of large weight are many rows: what the one is refused for, the other is.
#[test]
fn few_rows_of_large_weight() {
    let x = Matrix::from_fn(3, 2, |i, k| (i * (k + 1)) as f64);
    let data = Dataset::new(x, &["a", "b", "b"]).unwrap();
    for times in 1..8 {
        let weighted = data.clone().with_weights(vec![times as f64; 3]).unwrap();
        let repeated: Vec<usize> = (0..3).flat_map(|i| vec![i; times]).collect();
        let repeated = data.select(&repeated);
        for method in methods() {
            match (Model::fit(&weighted, &method), Model::fit(&repeated, &method)) {
                (Ok(a), Ok(b)) => {
                    let what = format!("{times} times, {method}");
                    let (a, b) = (a.decision(data.x()).unwrap(), b.decision(data.x()).unwrap());
                    assert_eq!(a, b, "{what}");
                }
                (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string(), "{times} {method}"),
                (a, b) => {
                    let (a, b) = (a.err(), b.err());
                    panic!("{times} times, {method}: {a:?} weighted, {b:?} repeated");
                }
            }
        }
    }
}

/// Where C w is the same, so is the fit: a weight belongs into one fold, whole, whatever it is.
#[test]
fn a_weight_does_not_decide_on_folds() {
    let generator = Generator { rows: 120, noise: 2, flipped: 0.1, ..Generator::default() };
    let data = generator.generate().unwrap().data;
    for (kernel, form, criterion) in [
        (Kernel::Gaussian, Form::Diagonal, Criterion::KFold(2)),
        (Kernel::Gaussian, Form::Full, Criterion::HoldOut),
        (Kernel::Exponential, Form::Diagonal, Criterion::KFold(5)),
        (Kernel::Laplacian, Form::Sphere, Criterion::KFold(3)),
    ] {
        let fit = |weights: Vec<f64>, cost: f64| {
            let params = Svml {
                kernel,
                form: form.into(),
                criterion,
                initial_cost: cost,
                learn_cost: false,
                max_iterations: 4,
                ..Svml::default()
            };
            let model = Model::fit(&data.clone().with_weights(weights).unwrap(), params).unwrap();
            model.decision(data.x()).unwrap()
        };
        let n = data.rows();
        let (plain, fractions, whole) =
            (fit(vec![1.0; n], 3.0), fit(vec![1.5; n], 2.0), fit(vec![2.0; n], 1.5));
        let distance = |other: &Matrix| {
            let pairs = plain.as_slice().iter().zip(other.as_slice());
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let what = format!("{kernel} {form} {criterion}");
        assert!(distance(&fractions) < 1e-8, "{what}: {}", distance(&fractions));
        assert!(distance(&whole) < 1e-8, "{what}: {}", distance(&whole));
    }
}

/// A pool of rows with labels by coin, from which a table draws again and again: new rows are mostly old ones, and
/// what is said of the error is true of them.
#[test]
fn what_is_said_of_rows_that_repeat_is_true_of_new_ones() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (pool, d) = (60, 4);
    let x = Matrix::from_fn(pool, d, |_, _| rng.random_range(-1.0..1.0));
    let class: Vec<usize> = (0..pool).map(|_| rng.random_range(0..2)).collect();
    let pool = Dataset::new(x, &class).unwrap();
    let mut draw = |rows: usize| {
        let chosen: Vec<usize> = (0..rows).map(|_| rng.random_range(0..60)).collect();
        pool.select(&chosen)
    };
    let (train, test) = (draw(240), draw(4000));
    let model = Model::fit(&train, Svml::default()).unwrap();
    let (honest, error) = (model.report().honest.unwrap(), model.error_rate(&test).unwrap());
    eprintln!("{honest:?}, {error:.3} on new rows");
    assert!(error < 0.1, "{error}");
    assert!(honest.error < 0.25 && honest.error > error - 0.05, "{honest:?} {error}");
    assert!(!honest.is_no_better_than_guessing());
    // Each row once, nothing is known.
    let once = Model::fit(&pool, Svml::default()).unwrap();
    assert!(once.report().honest.unwrap().is_no_better_than_guessing());
}

/// Equal rows are rows like others: of so many the error is known as well as that of different ones.
#[test]
fn copies_count_for_the_standard_error() {
    let data = coarse(400, 2, 3);
    let model = Model::fit(&data, Svml::default()).unwrap();
    let honest = model.report().honest.unwrap();
    let expected = (honest.error * (1.0 - honest.error) / 400.0).sqrt();
    assert!(honest.error > 0.0 && (honest.standard_error - expected).abs() < 1e-12, "{honest:?}");
    assert!(!honest.is_no_better_than_guessing(), "{honest:?}");
    // Weights that are no whole numbers are no copies: half of the rows, of weights 1.5 and 0.01, tell next to nothing.
    let data = Generator { rows: 400, ..Generator::default() }.generate().unwrap().data;
    let weights = (0..400).map(|i| if i % 2 == 0 { 1.5 } else { 0.01 }).collect();
    let uneven = Model::fit(&data.with_weights(weights).unwrap(), Svml::default()).unwrap();
    let uneven = uneven.report().honest.unwrap();
    let rows = uneven.error * (1.0 - uneven.error) / uneven.standard_error.powi(2);
    assert!((200.0..205.0).contains(&rows), "{uneven:?}: as good as {rows} rows");
}

/// SVMs of a part that has a copy of every row: there is no row that they have not seen, and probabilities are still
/// some.
#[test]
fn every_row_many_times() {
    let once = Generator { rows: 60, noise: 1, flipped: 0.0, ..Generator::default() };
    let once = once.generate().unwrap().data;
    let data = once.select(&(0..60).flat_map(|i| vec![i; 8]).collect::<Vec<_>>());
    for criterion in [Criterion::KFold(2), Criterion::HoldOut, Criterion::LeaveOneOut] {
        for (refit, cross_fit) in [(true, true), (true, false), (false, true), (false, false)] {
            let params = Svml { criterion, refit, cross_fit, ..Svml::default() };
            let model = Model::fit(&data, params).unwrap();
            let p = model.probabilities(data.x()).unwrap();
            let sum: f64 = data.y().iter().enumerate().map(|(i, &c)| p[(i, c)]).sum();
            let mean = sum / data.rows() as f64;
            assert!(mean > 0.7, "{criterion} {refit} {cross_fit}: {mean}");
        }
    }
}

/// More copies than any table has rows: their number is all that is kept of them.
#[test]
fn a_thousand_million_copies() {
    let data = Generator { rows: 40, noise: 1, ..Generator::default() }.generate().unwrap().data;
    let data = data.with_weights(vec![1e9; 40]).unwrap();
    for method in [Method::default(), GridSearch::default().into(), Method::neighbours(3)] {
        match Model::fit(&data, &method) {
            Ok(model) => {
                let h = model.decision(data.x()).unwrap();
                assert!(h.as_slice().iter().all(|h| h.is_finite()), "{method}");
            }
            Err(error) => assert!(matches!(error, Error::NotPositiveDefinite { .. }), "{error}"),
        }
    }
}
