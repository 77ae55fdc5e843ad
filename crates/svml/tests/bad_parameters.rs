//! Parameters outside their range: an error that names the parameter, the value and what is allowed.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use svml::data::Scaler;
use svml::learners::{Learner, Sample};
use svml::{
    Dataset, Error, Form, Generator, GridSearch, LandmarkChoice, Matrix, Method, Metric, Model,
    Remedy, Run, Svml,
};

fn data(rows: usize) -> Dataset {
    let mut generator = Generator::default();
    (generator.rows, generator.informative, generator.noise) = (rows, 1, 2);
    generator.generate().unwrap().data
}

fn params(change: impl FnOnce(&mut Svml)) -> Svml {
    let mut params = Svml::paper();
    change(&mut params);
    params
}

fn grid(change: impl FnOnce(&mut GridSearch)) -> GridSearch {
    let mut grid = GridSearch::default();
    change(&mut grid);
    grid
}

/// A number as messages have it: in few signs, even if it is very small or large.
fn printed(value: f64) -> String {
    let text = value.to_string();
    if text.len() > 24 { format!("{value:e}") } else { text }
}

#[track_caller]
fn assert_names(error: &Error, name: &str, value: &str, bound: &str) {
    assert!(matches!(error, Error::Parameter { name: n, .. } if *n == name), "{error:?}");
    let message = error.to_string();
    for part in [name, value, bound] {
        assert!(message.contains(part), "{message} / {part}");
    }
}

#[test]
fn numbers_outside_their_range() {
    let data = data(40);
    type Set = fn(&mut Svml, f64);
    let fields: [(&str, Set, &str, &[f64]); 4] = [
        ("steepness", |p, v| p.steepness = v, "positive and finite", &[0.0, -1.0, -0.0]),
        ("lambda", |p, v| p.lambda = v, "positive and finite", &[0.0, -1e-300]),
        (
            "initial_cost",
            |p, v| p.initial_cost = v,
            "between 0.001 and 10000",
            &[0.0, -1.0, 9e-4, 10001.0, 1e300],
        ),
        ("tolerance", |p, v| p.tolerance = v, "finite and at least 0", &[-1e-9, -1.0]),
    ];
    for (name, set, bound, values) in fields {
        for &value in values.iter().chain(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]) {
            let params = params(|p| set(p, value));
            let text = printed(value);
            assert_names(&Model::fit(&data, &params).unwrap_err(), name, &text, bound);
            assert_names(&params.validate(3).unwrap_err(), name, &text, bound);
        }
    }
}

/// The ends of the ranges are inside and lead to a model.
#[test]
fn the_ends_of_the_ranges() {
    let data = data(40);
    type Set = fn(&mut Svml, f64);
    let fields: [(&str, Set, &[f64]); 4] = [
        ("steepness", |p, v| p.steepness = v, &[f64::MAX, 1e150, 1e-150, 5e-324]),
        ("lambda", |p, v| p.lambda = v, &[f64::MAX, 1e150, 1e-150, 5e-324]),
        ("initial_cost", |p, v| p.initial_cost = v, &[1e-3, 1e4]),
        ("tolerance", |p, v| p.tolerance = v, &[0.0, 5e-324, f64::MAX]),
    ];
    for form in [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)] {
        for (name, set, values) in fields {
            for &value in values {
                let mut params = params(|p| set(p, value));
                (params.form, params.max_iterations) = (form.into(), 20);
                let model = Model::fit(&data, &params);
                let model = model.unwrap_or_else(|e| panic!("{form}, {name} = {value:e}: {e}"));
                let h = model.decision(data.x()).unwrap().into_vec();
                assert!(h.iter().all(|h| h.is_finite()), "{form}, {name} = {value:e}");
                assert!(model.report().residual < 1e-6, "{form}, {name} = {value:e}");
                Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            }
        }
    }
}

#[test]
fn ranks_and_patience() {
    let data = data(40);
    for rank in [0, 4, 1000, usize::MAX] {
        let error = Model::fit(&data, params(|p| p.form = Form::Rank(rank).into())).unwrap_err();
        assert_names(&error, "rank", &rank.to_string(), "between 1 and the number of features, 3");
    }
    for rank in 1..=3 {
        let model = Model::fit(&data, params(|p| p.form = Form::Rank(rank).into())).unwrap();
        assert_eq!(model.metric().rank(), rank);
    }
    let error = Model::fit(&data, params(|p| p.patience = 0)).unwrap_err();
    assert_names(&error, "patience", "0", "at least 1");
}

/// The learner below the model checks them as well.
#[test]
fn the_learner_checks_too() {
    let data = data(40);
    let x = Scaler::fit(data.x(), data.weights(), &data.schema().encoded_kinds()).apply(data.x());
    let sample = Sample::new(&x, data.y(), data.weights(), 2).unwrap();
    let params = params(|p| p.lambda = f64::NAN);
    let learned = params.learn(&sample, &mut Run::new());
    assert_names(&learned.unwrap_err(), "lambda", "NaN", "positive");
}

#[test]
fn memory_limits() {
    let data = data(100);
    // To the byte where units would hide the difference.
    for (limit, needed, most) in [
        (0, "156.2 KiB", "the limit of 0 bytes"),
        (100 << 10, "156.2 KiB", "the limit of 100.0 KiB"),
        (159_999, "160000 bytes", "the limit of 159999 bytes"),
    ] {
        let error = Model::fit(&data, params(|p| p.memory_limit = Some(limit))).unwrap_err();
        assert!(
            matches!(error, Error::TooLarge { bytes: 160_000, limit: l, .. } if l == u128::from(limit)),
            "{error:?}"
        );
        let message = error.to_string();
        for part in ["100 rows", needed, most, "raise memory_limit", "LandmarkChoice::Count"] {
            assert!(message.contains(part), "{message} / {part}");
        }
    }
    assert!(Model::fit(&data, params(|p| p.memory_limit = Some(160_000))).is_ok());
    // The way out that the message names.
    let on_landmarks = params(|p| {
        (p.landmarks, p.memory_limit) = (LandmarkChoice::Count(10), Some(100 << 10));
    });
    assert!(Model::fit(&data, on_landmarks).is_ok());
    // What landmarks and rows take is within the limit too.
    let too_little = params(|p| {
        (p.landmarks, p.memory_limit) = (LandmarkChoice::Count(10), Some(1 << 10));
    });
    let message = Model::fit(&data, too_little).unwrap_err().to_string();
    for part in ["100 rows", "10 landmarks", "the limit of 1.0 KiB", "raise memory_limit"] {
        assert!(message.contains(part), "{message} / {part}");
    }
}

#[test]
fn no_landmarks() {
    let none = params(|p| p.landmarks = LandmarkChoice::Count(0));
    assert_names(&Model::fit(&data(40), none).unwrap_err(), "landmarks", "0", "at least 1");
    for text in ["0", "-1", "many", ""] {
        let error = text.parse::<LandmarkChoice>().unwrap_err();
        assert_names(&error, "landmarks", text, "auto, exact or a number of at least 1");
    }
}

#[test]
fn metrics() {
    for value in [f64::NAN, f64::INFINITY, -f64::MAX] {
        let error = Metric::new(Form::Diagonal, 2, vec![1.0, value]).unwrap_err();
        assert!(matches!(error, Error::Numerical { .. }), "{error}");
    }
    for (form, count, needed) in
        [(Form::Sphere, 0, 1), (Form::Diagonal, 3, 2), (Form::Full, 5, 4), (Form::Rank(1), 1, 2)]
    {
        let error = Metric::new(form, 2, vec![1.0; count]).unwrap_err();
        assert!(
            matches!(error, Error::Shape { found, expected, .. } if found == count && expected == needed)
        );
    }
    assert!(Metric::new(Form::Rank(usize::MAX), 2, vec![]).is_err());
}

#[test]
fn grids() {
    let data = data(40);
    let fit = |grid: GridSearch| Model::fit(&data, &grid).unwrap_err();
    assert_names(&fit(grid(|g| g.widths.clear())), "widths", "an empty list", "positive");
    assert_names(&fit(grid(|g| g.costs.clear())), "costs", "an empty list", "positive");
    for bad in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let text = bad.to_string();
        assert_names(&fit(grid(|g| g.widths = vec![1.0, bad])), "widths", &text, "positive");
        assert_names(&fit(grid(|g| g.costs = vec![bad, 1.0])), "costs", &text, "positive");
    }
    assert_names(&fit(grid(|g| g.folds = 0)), "folds", "0", "at least 1");
}

/// More folds than rows would be empty ones; with enough of them the search would never end.
#[test]
fn more_folds_than_rows() {
    let data = data(12);
    let small = |folds| grid(|g| (g.widths, g.costs, g.folds) = (vec![1.0], vec![1.0], folds));
    for folds in [13, 1_000_000_000, usize::MAX] {
        let error = Model::fit(&data, small(folds)).unwrap_err().to_string();
        assert!(error.contains(&format!("{folds} folds")) && error.contains("12"), "{error}");
    }
    // As many as rows: each is left out once.
    assert!(Model::fit(&data, small(12)).is_ok());
}

/// Settings so extreme that their inverse or square overflows: refused, or a model with finite numbers.
#[test]
fn extreme_grids() {
    let data = data(40);
    for value in [5e-324, 1e-310, 1e-200, 1e-150, 1e150, 1e200, f64::MAX] {
        for grid in [grid(|g| g.widths = vec![value]), grid(|g| g.costs = vec![value])] {
            match Model::fit(&data, &grid) {
                Ok(model) => {
                    let h = model.decision(data.x()).unwrap().into_vec();
                    assert!(h.iter().all(|h| h.is_finite()), "{value:e} {h:?}");
                    assert!(model.bias()[0].is_finite() && model.report().residual.is_finite());
                    Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                }
                Err(Error::Parameter { name, bound, .. }) => {
                    assert!(["widths", "costs"].contains(&&*name), "{name}: {bound}");
                }
                Err(Error::NotPositiveDefinite { .. }) => assert!(value > 1.0),
                Err(error) => panic!("{value:e}: {error}"),
            }
        }
    }
}

/// The comparison method keeps a kernel matrix too and must not ask for more memory than there is.
/// What grows with the square of the columns is within the limit too, and known before it is made.
#[test]
fn forms_of_many_numbers_have_a_memory_limit() {
    let wide = |columns: usize| {
        let x = Matrix::from_fn(10, columns, |i, k| ((i * 7 + k * 13) % 11) as f64);
        Dataset::new(x, &(0..10).map(|i| i % 2).collect::<Vec<_>>()).unwrap()
    };
    for (form, words) in
        [(Form::Full, "form full on 400"), (Form::Rank(200), "form rank=200 on 400")]
    {
        let (form, memory_limit) = (form.into(), Some(20 << 20));
        let error = Model::fit(&wide(400), Svml { form, memory_limit, ..Svml::default() });
        let error = error.unwrap_err();
        assert_eq!(error.remedy(), Some(Remedy::SmallerForm), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let narrow = Svml { form: Form::Rank(2).into(), memory_limit: Some(20 << 20), ..Svml::paper() };
    assert!(Model::fit(&wide(400), narrow).is_ok());
    // Learners have no such parameter: the limit is what the computer has.
    for method in ["nca", "lmnn", "itml", "svml:form=full"] {
        let method: Method = format!("{method}+none").parse().unwrap();
        let error = Model::fit(&wide(100_000), method).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    }
    let model = Model::fit(&wide(100_000), "pca+none".parse::<Method>().unwrap()).unwrap();
    assert_eq!(model.raw_components().unwrap().rows(), 2);
    assert!(matches!(model.raw_mahalanobis(), Err(Error::TooLarge { .. })));
    let sphere = Model::fit(&wide(100_000), "knn".parse::<Method>().unwrap()).unwrap();
    assert!(matches!(sphere.raw_components(), Err(Error::TooLarge { .. })));
    assert_eq!(sphere.acting_metric().eigenvalues().len(), 100_000);
}

/// Features as small as this have standardised values, but no metric on features as they are.
#[test]
fn a_metric_beyond_all_numbers_is_an_error() {
    let x =
        Matrix::from_fn(20, 2, |i, k| if k == 0 { i as f64 } else { (i * i % 7) as f64 * 1e-200 });
    let data = Dataset::new(x, &(0..20).map(|i| i / 10).collect::<Vec<_>>()).unwrap();
    let model = Model::fit(&data, "lmnn+none".parse::<Method>().unwrap()).unwrap();
    assert!(model.raw_components().unwrap().as_slice().iter().all(|v| v.is_finite()));
    let error = model.raw_mahalanobis().unwrap_err();
    assert!(matches!(error, Error::Numerical { .. }), "{error}");
    assert!(error.to_string().contains("x2 has a standard deviation of"), "{error}");
}

#[test]
fn a_grid_has_a_memory_limit_too() {
    let n = 40_000;
    let x = Matrix::from_fn(n, 1, |i, _| i as f64);
    let labels: Vec<usize> = (0..n).map(|i| i % 2).collect();
    let data = Dataset::new(x, &labels).unwrap();
    let error = Model::fit(&data, grid(|g| g.memory_limit = Some(2 << 30))).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    for part in ["40000 rows", " GiB", "the limit of 2.0 GiB"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}
