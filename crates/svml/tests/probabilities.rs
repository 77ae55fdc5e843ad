//! Probabilities: the most probable class is the prediction, and they mean what they say.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::internals::multiclass::decide;
use svml::{ClassWeight, Dataset, Form, Generator, GridSearch, Matrix, Method, Model, Svml};

#[test]
fn the_most_probable_class_is_the_prediction() {
    for classes in [2, 3, 7] {
        let generator = Generator { rows: 300, classes, flipped: 0.1, ..Default::default() };
        let model = Model::fit(&generator.generate().unwrap().data, Svml::default()).unwrap();
        // 100,000 rows, from near the boundary to far outside.
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let x = Matrix::from_fn(100_000, 10, |i, _| {
            rng.random_range(-1.0..1.0) * [0.1, 1.0, 3.0, 30.0][i % 4]
        });
        let p = model.probabilities(&x).unwrap();
        assert_eq!((p.rows(), p.cols()), (100_000, classes));
        assert_eq!(decide_wide(&p), model.predict(&x).unwrap(), "{classes} classes");
        for row in p.iter_rows() {
            assert!(row.iter().all(|p| (0.0..=1.0).contains(p)));
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}

/// The first largest of each row.
fn decide_wide(p: &Matrix) -> Vec<usize> {
    let first_largest =
        |row: &[f64]| (0..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best });
    assert!(p.cols() > 1);
    p.iter_rows().map(first_largest).collect()
}

/// Two round clouds around -+`shift` along the first axis: the posterior of the second class is
/// 1/(1 + exp(-2 shift x1)).
fn clouds(rows: usize, d: usize, shift: f64, seed: u64) -> (Dataset, Vec<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = move || {
        let (u, v): (f64, f64) = (rng.random_range(1e-300..1.0), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    };
    let x = Matrix::from_fn(rows, d, |i, k| {
        normal() + if k == 0 { [-shift, shift][i % 2] } else { 0.0 }
    });
    let posterior = x.col(0).map(|x| 1.0 / (1.0 + (-2.0 * shift * x).exp())).collect();
    let labels: Vec<&str> = (0..rows).map(|i| ["left", "right"][i % 2]).collect();
    (Dataset::new(x, &labels).unwrap(), posterior)
}

/// In ten bins of predicted probability: rows, mean prediction, share of the second class.
fn reliability(p: &[f64], y: &[usize]) -> Vec<(usize, f64, f64)> {
    let mut bins = vec![(0, 0.0, 0.0); 10];
    for (&p, &y) in p.iter().zip(y) {
        let bin = &mut bins[((10.0 * p) as usize).min(9)];
        *bin = (bin.0 + 1, bin.1 + p, bin.2 + y as f64);
    }
    let filled = bins.into_iter().filter(|bin| bin.0 > 0);
    filled.map(|(n, p, y)| (n, p / n as f64, y / n as f64)).collect()
}

#[test]
fn overlapping_clouds_with_a_known_posterior() {
    for shift in [0.5, 1.0] {
        for (d, form) in [(1, Form::Sphere), (3, Form::Diagonal), (4, Form::Full)] {
            let (train, _) = clouds(800, d, shift, 1);
            let (test, posterior) = clouds(20_000, d, shift, 2);
            let model = Model::fit(&train, Svml { form: form.into(), ..Svml::paper() }).unwrap();
            let p = model.probabilities(test.x()).unwrap();
            let p: Vec<f64> = p.col(1).collect();
            let table = reliability(&p, test.y());
            let total = p.len() as f64;
            let calibration: f64 =
                table.iter().map(|(n, p, y)| *n as f64 / total * (p - y).abs()).sum();
            let brier = |p: &[f64]| -> f64 {
                p.iter().zip(test.y()).map(|(p, &y)| (p - y as f64).powi(2)).sum::<f64>() / total
            };
            let off: f64 =
                p.iter().zip(&posterior).map(|(p, q)| (p - q).abs()).sum::<f64>() / total;
            eprintln!(
                "shift {shift}, d = {d}, {form}: calibration error {calibration:.4}, |p - posterior| {off:.4}, Brier {:.4}, of the posterior {:.4}",
                brier(&p),
                brier(&posterior)
            );
            for (n, p, y) in &table {
                eprintln!("  {n:6} rows predicted {p:.3}, seen {y:.3}");
            }
            assert!(calibration <= 0.03, "{calibration}");
            // No prediction can beat the posterior; a useless one has 0.25.
            assert!(brier(&p) < brier(&posterior) + 0.01, "{}", brier(&p));
        }
    }
}

/// Weights of classes change what is decided, and leave the probabilities those of the rows as they are: as good as
/// without weights, where they would be far off without the correction.
#[test]
fn weights_of_classes_leave_probabilities_as_they_are() {
    let rare = |rows: usize, seed: u64| {
        let data = clouds(rows, 2, 1.0, seed).0;
        // One in ten of the second class.
        let kept: Vec<usize> = (0..rows).filter(|i| i % 2 == 0 || i % 18 == 1).collect();
        data.select(&kept)
    };
    let (train, test) = (rare(900, 1), rare(20_000, 2));
    let labels: Vec<&str> = test.y().iter().map(|&c| test.classes()[c].as_str()).collect();
    let given = ClassWeight::Given([("right".to_owned(), 9.0)].into());
    type Fit = fn(ClassWeight) -> Method;
    let fits: [Fit; 3] = [
        |class_weight| Svml { class_weight, ..Svml::default() }.into(),
        |class_weight| Svml { class_weight, cross_fit: false, ..Svml::default() }.into(),
        |class_weight| GridSearch { class_weight, ..GridSearch::default() }.into(),
    ];
    for fit in fits {
        let plain = Model::fit(&train, fit(ClassWeight::None)).unwrap();
        let plain = plain.measure(test.x(), &labels).unwrap();
        for weight in [ClassWeight::Balanced, given.clone()] {
            let model = Model::fit(&train, fit(weight)).unwrap();
            let found = model.measure(test.x(), &labels).unwrap();
            let said = format!(
                "log loss {:.4} and {:.4} without weights, calibration error {:.4} and {:.4}",
                found.log_loss.unwrap(),
                plain.log_loss.unwrap(),
                found.calibration_error.unwrap(),
                plain.calibration_error.unwrap()
            );
            eprintln!("{said}");
            assert!(found.log_loss.unwrap() < plain.log_loss.unwrap() + 0.02, "{said}");
            // More rows are taken for the rare class than are most probably of it.
            assert!(found.balanced_error < plain.balanced_error - 0.03, "{said}");
            let p = model.probabilities(test.x()).unwrap();
            let weighted = model.decision(test.x()).unwrap();
            assert!(decide(&p).iter().sum::<usize>() < decide(&weighted).iter().sum());
            let mean = p.col(1).sum::<f64>() / test.rows() as f64;
            assert!((mean - 0.1).abs() < 0.02, "{mean}");
        }
    }
}

/// Machines kept from the training part are calibrated on the other rows.
#[test]
fn without_the_final_training() {
    let (train, _) = clouds(800, 2, 1.0, 1);
    let (test, _) = clouds(20_000, 2, 1.0, 2);
    let model = Model::fit(&train, Svml { refit: false, ..Svml::paper() }).unwrap();
    let p: Vec<f64> = model.probabilities(test.x()).unwrap().col(1).collect();
    let off: f64 = (reliability(&p, test.y()).iter())
        .map(|(n, p, y)| *n as f64 / p_len(&test) * (p - y).abs())
        .sum();
    assert!(off <= 0.04, "{off}");
}

fn p_len(data: &Dataset) -> f64 {
    data.rows() as f64
}

/// Three clouds: the stated probability of the prediction is the share of right predictions.
#[test]
fn several_classes_know_how_often_they_are_right() {
    let generator = Generator { rows: 900, classes: 4, flipped: 0.2, ..Default::default() };
    let model = Model::fit(&generator.generate().unwrap().data, Svml::default()).unwrap();
    let test = Generator { rows: 20_000, seed: 1, ..generator }.generate().unwrap().data;
    let p = model.probabilities(test.x()).unwrap();
    let confidence: f64 =
        p.iter_rows().map(|row| row.iter().copied().fold(0.0, f64::max)).sum::<f64>() / 20_000.0;
    let right = 1.0 - model.error_rate(&test).unwrap();
    eprintln!("mean confidence {confidence:.3}, right {right:.3}");
    assert!((confidence - right).abs() <= 0.03, "confidence {confidence}, right {right}");
    assert_eq!(decide(&p), model.predict(test.x()).unwrap());
}
