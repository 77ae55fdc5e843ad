//! Row weights and class weights, and the merging of identical rows.
#![allow(clippy::unwrap_used, missing_docs)]

use chacha20::ChaCha8Rng;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use svml::ClassWeight;
use svml::data::Missing;
use svml::{Dataset, EqualRows, Error, Form, Generator, GridSearch, Matrix, Model, Svml};

const FORMS: [Form; 4] = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)];

fn data(classes: usize) -> Dataset {
    Generator { rows: 120, classes, noise: 3, flipped: 0.1, ..Default::default() }
        .generate()
        .unwrap()
        .data
}

/// Decision values and probabilities, one after the other.
fn answers(model: &Model, x: &Matrix) -> Vec<f64> {
    [model.decision(x).unwrap().into_vec(), model.probabilities(x).unwrap().into_vec()].concat()
}

fn assert_same(a: &[f64], b: &[f64], what: &str) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= 1e-8, "{what}: {a} and {b}");
    }
}

/// Fits of both methods in every form.
fn fits(data: &Dataset, class_weight: &ClassWeight) -> Vec<Model> {
    let params = |form: Form| Svml {
        form: form.into(),
        class_weight: class_weight.clone(),
        equal_rows: EqualRows::Copies,
        ..Svml::paper()
    };
    let grid = GridSearch {
        class_weight: class_weight.clone(),
        equal_rows: EqualRows::Copies,
        ..Default::default()
    };
    let learned = FORMS.iter().map(|&form| Model::fit(data, params(form)).unwrap());
    learned.chain([Model::fit(data, &grid).unwrap()]).collect()
}

/// Weights that add up to one are as good as weights of one each: C is learned within bounds.
#[test]
fn small_weights_learn_as_much() {
    let data = data(2);
    let error = |weight: f64| {
        let weights = vec![weight; data.rows()];
        let weighted = data.clone().with_weights(weights).unwrap();
        let fitted = Model::fit(&weighted, Svml { form: Form::Diagonal.into(), ..Svml::default() });
        let fitted = fitted.unwrap();
        (fitted.error_rate(&data).unwrap(), fitted.cost().unwrap())
    };
    let (expected, cost) = error(1.0);
    assert!(expected < 0.3, "{expected}");
    for weight in [0.5, 1e-4, 1e-9] {
        let (found, learned) = error(weight);
        assert!((found - expected).abs() < 0.02, "{weight}: {found} and {expected}");
        assert!((learned / cost - 1.0).abs() < 1e-3, "{weight}: {learned} and {cost}");
    }
    let heavy = data.clone().with_weights(vec![5000.5; data.rows()]).unwrap();
    let fitted = Model::fit(&heavy, Svml { form: Form::Sphere.into(), ..Svml::paper() }).unwrap();
    let warnings = fitted.report().warnings.join("; ");
    assert!(warnings.contains("5000 on average") && warnings.contains("divide them"), "{warnings}");
}

#[test]
fn a_weight_is_a_repetition_and_zero_is_absence() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for classes in [2, 3] {
        let data = data(classes);
        let times: Vec<usize> = (0..data.rows()).map(|_| rng.random_range(0..4)).collect();
        let weighted =
            data.clone().with_weights(times.iter().map(|&t| t as f64).collect()).unwrap();
        let mut repeated: Vec<usize> = (0..data.rows()).flat_map(|i| vec![i; times[i]]).collect();
        // The order of rows does not matter either.
        repeated.reverse();
        let repeated = data.select(&repeated);
        for class_weight in [ClassWeight::None, ClassWeight::Balanced] {
            let (a, b) = (fits(&weighted, &class_weight), fits(&repeated, &class_weight));
            for (a, b) in a.iter().zip(&b) {
                let what = format!("{classes} classes, {}, {class_weight:?}", a.metric().form());
                assert_same(&answers(a, data.x()), &answers(b, data.x()), &what);
            }
        }
    }
}

#[test]
fn missing_values_are_filled_by_weight() {
    let rows = [[1.0, 0.0], [2.0, 1.0], [f64::NAN, 1.0], [4.0, 0.0], [8.0, 1.0], [9.0, 0.0]];
    let labels = ["a", "a", "a", "b", "b", "b"];
    let times = [1, 3, 2, 1, 2, 2];
    let once = Dataset::new(Matrix::from_rows(&rows).unwrap(), &labels).unwrap();
    let once = once.with_missing(Missing::Impute).unwrap();
    let repeated: Vec<usize> = (0..6).flat_map(|i| vec![i; times[i]]).collect();
    let repeated = once.select(&repeated);
    let weighted = once.with_weights(times.iter().map(|&t| t as f64).collect()).unwrap();
    let equal_rows = EqualRows::Copies;
    let fit = |data: &Dataset| Model::fit(data, Svml { equal_rows, ..Svml::default() }).unwrap();
    let (a, b) = (fit(&weighted), fit(&repeated));
    assert_same(&answers(&a, weighted.x()), &answers(&b, weighted.x()), "imputed");
}

/// Twice every weight is twice the data: C counts per row, so the machine is another one; but the
/// same weights through the class are the same.
#[test]
fn class_weights_are_row_weights() {
    let data = data(2);
    let names = data.classes().to_vec();
    let given = ClassWeight::Given([(names[0].clone(), 0.5), (names[1].clone(), 3.0)].into());
    let by_class = Svml { class_weight: given, ..Default::default() };
    let weights = data.y().iter().map(|&c| [0.5, 3.0][c]).collect();
    let by_row = data.clone().with_weights(weights).unwrap();
    let a = Model::fit(&data, &by_class).unwrap();
    let b = Model::fit(&by_row, Svml::default()).unwrap();
    // Only the standardisation sees row weights and not class weights.
    let (a, b) = (a.predict(data.x()).unwrap(), b.predict(data.x()).unwrap());
    let differ = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    assert!(differ <= data.rows() / 20, "{differ} of {} rows differ", data.rows());
}

/// Mean over the classes of the share misclassified.
fn balanced_error(model: &Model, data: &Dataset) -> f64 {
    let predicted = model.predict(data.x()).unwrap();
    let classes = data.classes().len();
    let error = |class: usize| {
        let rows: Vec<usize> = (0..data.rows()).filter(|&i| data.y()[i] == class).collect();
        let wrong = rows.iter().filter(|&&i| predicted[i] != class).count();
        wrong as f64 / rows.len() as f64
    };
    (0..classes).map(error).sum::<f64>() / classes as f64
}

/// Two overlapping clouds, 95 to 5.
#[test]
fn balanced_weights_lower_the_balanced_error() {
    let cloud = |rows: usize, seed: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let labels: Vec<&str> =
            (0..rows).map(|i| if i % 20 == 0 { "rare" } else { "common" }).collect();
        let x = Matrix::from_fn(rows, 4, |i, k| {
            let sum: f64 = (0..12).map(|_| rng.random_range(-0.5..0.5)).sum();
            sum + if i % 20 == 0 && k < 2 { 1.5 } else { 0.0 }
        });
        Dataset::new(x, &labels).unwrap()
    };
    let (train, test) = (cloud(600, 1), cloud(4000, 2));
    for form in [Form::Sphere, Form::Full] {
        let plain = Svml { form: form.into(), ..Svml::paper() };
        let balanced = Svml { class_weight: ClassWeight::Balanced, ..plain.clone() };
        let error = |params| balanced_error(&Model::fit(&train, params).unwrap(), &test);
        let (plain, balanced) = (error(&plain), error(&balanced));
        assert!(balanced < plain - 0.05, "{form}: balanced {balanced}, plain {plain}");
    }
    let grid = GridSearch { class_weight: ClassWeight::Balanced, ..Default::default() };
    let error = |grid| balanced_error(&Model::fit(&train, grid).unwrap(), &test);
    let (plain, balanced) = (error(&GridSearch::default()), error(&grid));
    assert!(balanced < plain - 0.05, "grid: balanced {balanced}, plain {plain}");
}

#[test]
fn bad_weights_are_refused() {
    let data = data(2);
    let with = |change: &dyn Fn(&mut Vec<f64>)| {
        let mut weights = vec![1.0; data.rows()];
        change(&mut weights);
        data.clone().with_weights(weights)
    };
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1e10, 1e-10] {
        let message = with(&|w| w[6] = bad).unwrap_err().to_string();
        assert!(message.contains("row 7") && message.contains("1e9"), "{message}");
    }
    assert!(matches!(with(&|w| w.truncate(3)).unwrap_err(), Error::Shape { found: 3, .. }));
    let none = with(&|w| w.fill(0.0)).unwrap();
    assert!(matches!(Model::fit(&none, Svml::default()).unwrap_err(), Error::NoRows(_)));
    let one = data.clone().with_weights(data.y().iter().map(|&c| c as f64).collect()).unwrap();
    assert!(matches!(Model::fit(&one, Svml::default()).unwrap_err(), Error::OneClass { .. }));
    for (class, weight) in [("nobody", 1.0), ("inside", 0.0), ("inside", f64::NAN)] {
        let class_weight = ClassWeight::Given([(class.to_owned(), weight)].into());
        let error = Model::fit(&data, Svml { class_weight, ..Default::default() }).unwrap_err();
        assert!(
            matches!(&error, Error::Parameter { name, .. } if name == "class_weight"),
            "{error}"
        );
    }
}

#[test]
fn a_share_of_errors_counts_weights() {
    let data = data(2);
    // So smooth an SVM misses some of its own rows.
    let params = Svml { form: Form::Sphere.into(), learn_cost: false, ..Svml::default() };
    let model = Model::fit(&data, params).unwrap();
    let predicted = model.predict(data.x()).unwrap();
    let wrong = |i: usize| predicted[i] != data.y()[i];
    let weights: Vec<f64> = (0..data.rows()).map(|i| if wrong(i) { 0.0 } else { 1.0 }).collect();
    assert!(model.error_rate(&data).unwrap() > 0.0);
    assert_eq!(model.error_rate(&data.clone().with_weights(weights).unwrap()).unwrap(), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Small integers make many identical rows, and some with opposite labels.
    #[test]
    fn repetition_on_data_full_of_ties(
        cells in prop::collection::vec(0..3i32, 60),
        labels in prop::collection::vec(0..3usize, 30),
        times in prop::collection::vec(0..3usize, 30),
    ) {
        let x = Matrix::from_fn(30, 2, |i, k| f64::from(cells[2 * i + k]));
        let data = Dataset::new(x, &labels).unwrap();
        let weights = times.iter().map(|&t| t as f64).collect();
        let weighted = data.clone().with_weights(weights).unwrap();
        let repeated: Vec<usize> = (0..30).rev().flat_map(|i| vec![i; times[i]]).collect();
        let repeated = data.select(&repeated);
        let equal_rows = EqualRows::Copies;
        let params = Svml { max_iterations: 5, equal_rows, ..Default::default() };
        match (Model::fit(&weighted, &params), Model::fit(&repeated, &params)) {
            (Ok(a), Ok(b)) => {
                for (a, b) in answers(&a, data.x()).iter().zip(answers(&b, data.x())) {
                    prop_assert!((a - b).abs() <= 1e-8, "{} {}", a, b);
                }
            }
            (Err(a), Err(b)) => prop_assert_eq!(a.to_string(), b.to_string()),
            (a, b) => prop_assert!(false, "{:?} {:?}", a.err(), b.err()),
        }
    }
}
