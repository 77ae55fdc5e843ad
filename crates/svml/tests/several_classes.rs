//! Three and more classes: one-against-one machines that share one metric and one C.
#![allow(clippy::unwrap_used, missing_docs)]

use svml::internals::multiclass::decide;
use svml::internals::subspace_found;
use svml::{Dataset, Form, Generator, GridSearch, Matrix, Method, Model, Svml};

fn generator(classes: usize, rows: usize) -> Generator {
    // The centres of three classes span two directions.
    let informative = if classes == 3 { 2 } else { 3 };
    Generator { rows, classes, informative, noise: 5, ..Default::default() }
}

/// The error of predicting the largest class.
fn chance(data: &Dataset) -> f64 {
    let largest = data.class_counts().into_iter().max().unwrap();
    1.0 - largest as f64 / data.rows() as f64
}

#[test]
fn three_seven_and_twenty_six_classes() {
    for (classes, rows) in [(3, 300), (7, 500), (26, 1000)] {
        let generator = generator(classes, rows);
        let train = generator.generate().unwrap();
        let test = Generator { seed: 1, rows: 2000, ..generator }.generate().unwrap().data;
        assert_eq!(train.data.classes().len(), classes);
        let model = Model::fit(&train.data, Svml::paper()).unwrap();
        // The metric finds the directions that matter.
        let found = subspace_found(model.metric(), &model.scaler().scale, &train.directions);
        assert!(found > 0.85, "{classes} classes: {found} of the subspace");
        let learned = model.error_rate(&test).unwrap();
        assert!(learned < 0.6 * chance(&test), "{classes} classes: {learned}");
        assert!(model.report().residual <= 1e-8);

        // Shapes, and the argmax.
        let pairs = classes * (classes - 1) / 2;
        let support = model.support_rows().len();
        assert_eq!(model.bias().len(), pairs);
        assert_eq!((model.beta().rows(), model.beta().cols()), (classes - 1, support));
        assert_eq!(model.support_counts().iter().sum::<usize>(), support);
        let values = model.decision(test.x()).unwrap();
        assert_eq!((values.rows(), values.cols()), (test.rows(), classes));
        assert_eq!(model.predict(test.x()).unwrap(), decide(&values));
        // Votes are whole numbers, ties are broken within a third, and all pairs voted.
        let votes: f64 = values.row(0).iter().map(|v| v.round()).sum();
        assert_eq!(votes, pairs as f64);

        let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded.to_bytes().unwrap(), model.to_bytes().unwrap());
        assert_eq!(loaded.decision(test.x()).unwrap(), values);
        assert_eq!(loaded.probabilities(test.x()).unwrap(), model.probabilities(test.x()).unwrap());
    }
}

#[test]
fn the_metric_pays() {
    for (classes, rows, draws) in [(3, 300, 4), (7, 500, 16), (26, 1000, 4)] {
        let (mut learned, mut euclidean) = (0.0, 0.0);
        for seed in 0..draws {
            let generator = Generator { seed, rotation_seed: seed, ..generator(classes, rows) };
            let train = generator.generate().unwrap().data;
            let test = Generator { seed: seed + 100, rows: 2000, ..generator };
            let test = test.generate().unwrap().data;
            let model = Model::fit(&train, Svml::default()).unwrap();
            let grid = Model::fit(&train, GridSearch::default()).unwrap();
            learned += model.error_rate(&test).unwrap() / draws as f64;
            euclidean += grid.error_rate(&test).unwrap() / draws as f64;
        }
        // Three clusters lie far apart, and both come close to the share of flipped labels.
        let tie = if classes == 3 { 0.01 } else { 0.0 };
        assert!(learned < euclidean + tie, "{classes} classes: {learned}, Euclidean {euclidean}");
    }
}

/// Each support row belongs to the class its place says.
#[test]
fn support_rows_stand_class_after_class() {
    let data = generator(4, 200).generate().unwrap().data;
    let model = Model::fit(&data, Svml::default()).unwrap();
    let mut rows = model.support_rows().iter();
    for (class, &count) in model.support_counts().iter().enumerate() {
        assert!(rows.by_ref().take(count).all(|&row| data.y()[row] == class));
    }
    assert_eq!(model.support_vectors(), &data.x().select_rows(model.support_rows()));
}

#[test]
fn every_form_learns_several_classes_with_the_same_bits_on_any_threads() {
    let data = generator(5, 250).generate().unwrap().data;
    for form in [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)] {
        let params = Svml { form: form.into(), max_iterations: 4, ..Svml::paper() };
        let fit = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Model::fit(&data, &params).unwrap().to_bytes().unwrap())
        };
        let one = fit(1);
        for threads in [2, 3, 8] {
            assert!(one == fit(threads), "{form}, {threads} threads");
        }
    }
}

/// A class of one to three rows stays in training, and it is said that the error on held-out rows leaves it out.
#[test]
fn rare_classes() {
    let data = generator(3, 200).generate().unwrap().data;
    let of = |class: usize| -> Vec<usize> {
        (0..data.rows()).filter(|&i| data.y()[i] == class).collect()
    };
    let (zero, one, two) = (of(0), of(1), of(2));
    for rare in 1..4 {
        let rows = [&zero[..], &one[..], &two[..rare]].concat();
        let few = data.select(&rows);
        for model in [
            Model::fit(&few, Svml::default()).unwrap(),
            Model::fit(&few, GridSearch::default()).unwrap(),
        ] {
            assert_eq!(model.classes().len(), 3);
            // Folds of a grid have no error that leaves it out.
            let said = model.report().warnings.iter().any(|w| w.contains("class 'c02'"));
            let is_svml = matches!(model.report().method, Method::Svml(_));
            assert_eq!(said, is_svml, "{:?}", model.report().warnings);
            let x = few.x().select_rows(&(rows.len() - rare..rows.len()).collect::<Vec<_>>());
            assert!(model.decision(&x).unwrap().as_slice().iter().all(|v| v.is_finite()));
            // It is trained on: among its support rows are those of the rare class.
            assert!(model.support_counts()[2] > 0);
        }
    }
}

/// With two classes nothing changed: one value per row, its sign decides.
#[test]
fn two_classes_are_one_machine() {
    let data = Generator::default().generate().unwrap().data;
    let one = Svml { form: Form::Diagonal.into(), ..Svml::default() };
    for params in [one, Svml::default()] {
        let model = Model::fit(&data, params).unwrap();
        let values = model.decision(data.x()).unwrap();
        assert_eq!(values.cols(), 1);
        for member in model.members() {
            assert_eq!((member.beta().rows(), member.bias().len()), (1, 1));
        }
        let by_sign: Vec<usize> = values.as_slice().iter().map(|h| usize::from(*h > 0.0)).collect();
        assert_eq!(model.predict(data.x()).unwrap(), by_sign);
    }
}

/// Renaming the classes in an order-preserving way changes no bit of the decisions; reading the same
/// rows in another order neither.
#[test]
fn names_and_row_order_do_not_matter() {
    let data = generator(4, 160).generate().unwrap().data;
    let base = Model::fit(&data, Svml::default()).unwrap().decision(data.x()).unwrap();
    let renamed = data.group_classes(|name| format!("class {name}"));
    assert_eq!(Model::fit(&renamed, Svml::default()).unwrap().decision(data.x()).unwrap(), base);
    let back: Vec<usize> = (0..data.rows()).rev().collect();
    let turned = Model::fit(&data.select(&back), Svml::default()).unwrap();
    assert_eq!(turned.decision(data.x()).unwrap(), base);
}

/// Three far apart points, many times over: all pairs are trivial, and every class is found.
#[test]
fn separated_points() {
    let points = [[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]];
    let rows: Vec<[f64; 2]> = (0..30).map(|i| points[i % 3]).collect();
    let labels: Vec<String> = (0..30).map(|i| format!("p{}", i % 3)).collect();
    let data = Dataset::new(Matrix::from_rows(&rows).unwrap(), &labels).unwrap();
    let model = Model::fit(&data, Svml::default()).unwrap();
    assert_eq!(model.error_rate(&data).unwrap(), 0.0);
}
