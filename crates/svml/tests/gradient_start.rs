//! The start by gradient outer products.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use svml::Criterion;
use svml::Stop;
use svml::Surrogate;
use svml::internals::subspace_found;
use svml::learners::Init;
use svml::{Dataset, Form, Generator, Model, Svml};
use svml::{Run, Step};

fn params(form: Form) -> Svml {
    Svml {
        form: form.into(),
        init: Init::Gradients,
        criterion: Criterion::KFold(5),
        surrogate: Surrogate::Logistic,
        steepness: 3.0,
        max_iterations: 0,
        ..Svml::paper()
    }
}

/// With no step taken the metric is the start itself: it leads along the directions that matter, and
/// the error is well below that of the isotropic start.
#[test]
fn finds_the_directions_that_matter() {
    for (rotated, forms) in
        [(false, vec![Form::Diagonal, Form::Full]), (true, vec![Form::Full, Form::Rank(2)])]
    {
        let generator = Generator { rows: 500, noise: 8, rotated, ..Default::default() };
        let train = generator.generate().unwrap();
        let test = Generator { rows: 3000, seed: 1, ..generator }.generate().unwrap().data;
        for form in forms {
            let found = |start: Init| {
                let params = Svml { init: start, ..params(form) };
                let model = Model::fit(&train.data, &params).unwrap();
                let scale = &model.scaler().scale;
                let found = subspace_found(model.metric(), scale, &train.directions);
                (found, model.error_rate(&test).unwrap())
            };
            let (gradients, isotropic) = (found(Init::Gradients), found(Init::Scaled));
            let what = format!("rotated {rotated}, {form}: {gradients:?}, isotropic {isotropic:?}");
            assert!(gradients.0 > 0.85, "{what}");
            assert!(gradients.1 < 0.8 * isotropic.1, "{what}");
        }
    }
}

/// The regulariser holds L to the start: with a large lambda it stays there.
#[test]
fn is_the_centre_of_the_regulariser() {
    let data = Generator { rows: 150, ..Default::default() }.generate().unwrap().data;
    for form in [Form::Diagonal, Form::Full, Form::Rank(3)] {
        // How far twenty steps lead away from the start.
        let moved = |lambda: f64| -> f64 {
            let fit = |max_iterations: usize| {
                let params = Svml { lambda, max_iterations, tolerance: 0.0, ..params(form) };
                Model::fit(&data, &params).unwrap().metric().values().to_vec()
            };
            let pairs = fit(20).into_iter().zip(fit(0));
            pairs.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        let (held, free) = (moved(1e6), moved(1e-6));
        assert!(held < 1e-4 && free > 1e-2, "{form}: {held} held, {free} free");
    }
}

#[test]
fn weights_threads_and_several_classes() {
    for classes in [2, 3] {
        let data = Generator { rows: 150, classes, ..Default::default() }.generate().unwrap().data;
        let times: Vec<usize> = (0..data.rows()).map(|i| i % 3).collect();
        let weighted =
            data.clone().with_weights(times.iter().map(|&t| t as f64).collect()).unwrap();
        let repeated: Vec<usize> = (0..data.rows()).rev().flat_map(|i| vec![i; times[i]]).collect();
        let repeated = data.select(&repeated);
        for criterion in [Criterion::HoldOut, Criterion::KFold(3), Criterion::LeaveOneOut] {
            for form in [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)] {
                let params = Svml { criterion, max_iterations: 2, ..params(form) };
                let fit = |data: &Dataset, threads: usize| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                    pool.build().unwrap().install(|| Model::fit(data, &params).unwrap())
                };
                let (one, three) = (fit(&weighted, 1), fit(&weighted, 3));
                assert!(one.to_bytes().unwrap() == three.to_bytes().unwrap(), "{criterion} {form}");
                let (a, b) = (one.decision(data.x()), fit(&repeated, 2).decision(data.x()));
                for (a, b) in a.unwrap().as_slice().iter().zip(b.unwrap().as_slice()) {
                    assert!((a - b).abs() <= 1e-8, "{classes} classes, {criterion}, {form}");
                }
            }
        }
    }
}

/// Interrupted at the first step that is shown, or at any time before: the best so far, or the error
/// that there is none yet.
#[test]
fn interrupted() {
    let data = Generator { rows: 300, ..Default::default() }.generate().unwrap().data;
    let params = Svml { max_iterations: 50, tolerance: 0.0, ..params(Form::Full) };
    let flag = Arc::new(AtomicBool::new(false));
    let raise = flag.clone();
    let observer = |_: &Step| {
        raise.store(true, Ordering::Relaxed);
        std::ops::ControlFlow::Continue(())
    };
    let mut run = Run::new().observer(observer).interrupt(flag);
    let model = Model::fit_with(&data, &params, &mut run).unwrap();
    assert_eq!(model.report().stop, Some(Stop::Interrupted));
    assert_eq!(model.report().trace.len(), 1);

    let low = Svml { form: Form::Rank(2).into(), ..params.clone() };
    for micros in [0, 200, 1000, 5000, 20_000, 60_000] {
        for params in [&params, &low] {
            let limit = std::time::Duration::from_micros(micros);
            let mut run = Run::new().time_limit(limit);
            match Model::fit_with(&data, params, &mut run) {
                Ok(model) => {
                    let decision = model.decision(data.x()).unwrap();
                    assert!(decision.as_slice().iter().all(|h| h.is_finite()));
                }
                Err(error) => assert!(matches!(error, svml::Error::Interrupted), "{error}"),
            }
        }
    }
}

/// What is said of the error is that of the same start.
#[test]
fn cross_fitting_starts_there_too() {
    let generator = Generator { rows: 400, flipped: 0.0, ..Default::default() };
    let train = generator.generate().unwrap().data;
    let test = Generator { rows: 2000, seed: 1, ..generator }.generate().unwrap().data;
    let params = Svml { form: Form::Rank(2).into(), init: Init::Gradients, ..Svml::default() };
    let model = Model::fit(&train, &params).unwrap();
    let (said, seen) = (model.report().honest.unwrap().error, model.error_rate(&test).unwrap());
    assert!(seen < 0.1 && said < 0.2, "{said} said, {seen} seen");
}

/// A given low rank finds the directions from any rotation, and so do the halves that its error is reported from.
#[test]
fn a_given_rank_finds_the_ball() {
    for rotation_seed in 0..4 {
        let seed = 2 * rotation_seed;
        let generator = Generator {
            rows: 1500,
            informative: 3,
            noise: 9,
            rotation_seed,
            seed,
            ..Default::default()
        };
        let train = generator.generate().unwrap().data;
        let test = Generator { rows: 3000, seed: 1, ..generator }.generate().unwrap().data;
        let fit = |form: Form| {
            let model = Model::fit(&train, Svml { form: form.into(), ..Svml::default() }).unwrap();
            let (said, seen) = (model.report().honest.unwrap().error, model.error_rate(&test));
            (said, seen.unwrap(), model.report().warnings.clone())
        };
        let ((said, seen, warnings), (_, of_sphere, _)) = (fit(Form::Rank(3)), fit(Form::Sphere));
        let what = format!("{rotation_seed}: {said} said, {seen} seen, {of_sphere} of a sphere");
        assert!(seen < 0.15 && seen < of_sphere - 0.03, "{what}");
        assert!((said - seen).abs() < 0.05, "{what}");
        assert!(warnings.is_empty(), "{what}: {warnings:?}");
    }
}

/// Where the halves have too few rows to find what all rows show, the model comes with a warning.
#[test]
fn halves_that_end_elsewhere_are_noticed() {
    let generator = Generator { rows: 400, noise: 18, ..Default::default() };
    let train = generator.generate().unwrap().data;
    let warnings = |form: Form| {
        let params = Svml { form: form.into(), ..Svml::default() };
        Model::fit(&train, params).unwrap().report().warnings.join("; ")
    };
    let (low, full) = (warnings(Form::Rank(2)), warnings(Form::Diagonal));
    assert!(low.contains("look along other directions (likeness 0."), "{low}");
    assert!(!full.contains("directions"), "{full}");
}

/// The default start: gradients for a given low rank of SVML, and nothing else than before for all others.
#[test]
fn auto_is_for_low_ranks_alone() {
    let data = Generator { rows: 120, ..Default::default() }.generate().unwrap().data;
    let metric = |form: Form, init: Init| {
        let params = Svml { form: form.into(), init, cross_fit: false, ..Svml::default() };
        Model::fit(&data, params).unwrap().metric().values().to_vec()
    };
    for (form, same, other) in [
        (Form::Rank(2), Init::Gradients, Init::Scaled),
        (Form::Full, Init::Scaled, Init::Gradients),
        (Form::Diagonal, Init::Scaled, Init::Gradients),
    ] {
        let auto = metric(form, Init::Auto);
        assert_eq!(auto, metric(form, same), "{form}");
        assert_ne!(auto, metric(form, other), "{form}");
    }
    assert_eq!((Svml::default().init, Svml::paper().init), (Init::Auto, Init::Scaled));
    for learner in ["nca", "lmnn"] {
        let method: svml::Method = format!("{learner}:init=auto").parse().unwrap();
        let error = Model::fit(&data, method).unwrap_err().to_string();
        assert!(
            error.contains("auto") && error.contains("identity, scaled or an array"),
            "{error}"
        );
    }
}

/// Columns that do not vary, and rows that are all the same, leave an isotropic start.
#[test]
fn nothing_to_go_by() {
    let x = svml::Matrix::from_fn(40, 3, |i, k| if k == 0 { (i % 5) as f64 } else { 7.0 });
    let labels: Vec<usize> = (0..40).map(|i| usize::from(i % 5 > 2)).collect();
    let data = Dataset::new(x, &labels).unwrap();
    for form in [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)] {
        let model = Model::fit(&data, params(form)).unwrap();
        assert_eq!(model.error_rate(&data).unwrap(), 0.0, "{form}");
    }
    let labels: Vec<usize> = (0..10).map(|i| i % 2).collect();
    let same = Dataset::new(svml::Matrix::from_fn(10, 2, |_, _| 1.0), &labels).unwrap();
    for form in [Form::Diagonal, Form::Full, Form::Rank(1)] {
        let model = Model::fit(&same, params(form)).unwrap();
        assert!(model.bias()[0].is_finite());
    }
}
