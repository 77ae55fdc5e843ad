//! `form = auto`: the form is found where it is known, and a fit that chooses keeps all promises of one
//! that does not.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use svml::Criterion;
use svml::Stop;
use svml::Surrogate;
use svml::{ClassWeight, FormChoice};
use svml::{Dataset, Error, Form, Generator, GridSearch, Matrix, Model, Svml};
use svml::{Run, Step};

fn generator(rows: usize, noise: usize, rotated: bool, seed: u64) -> Generator {
    Generator { rows, noise, rotated, seed, flipped: 0.0, ..Generator::default() }
}

fn generated(rows: usize, noise: usize, rotated: bool, seed: u64) -> Dataset {
    generator(rows, noise, rotated, seed).generate().unwrap().data
}

#[test]
fn the_form_is_found_and_the_error_at_most_half_of_the_grids() {
    for rotated in [false, true] {
        let (mut found, mut auto, mut grid) = (0, 0.0, 0.0);
        for seed in 0..4 {
            let train = generated(500, 18, rotated, 2 * seed);
            let test = generated(2000, 18, rotated, 2 * seed + 1);
            let model = Model::fit(&train, Svml::default()).unwrap();
            let form = model.metric().form();
            found += usize::from(match rotated {
                false => form == Form::Diagonal,
                true => matches!(form, Form::Rank(2..=4)),
            });
            auto += model.error_rate(&test).unwrap();
            grid += Model::fit(&train, GridSearch::default()).unwrap().error_rate(&test).unwrap();
        }
        assert_eq!(found, 4, "rotated: {rotated}");
        assert!(auto <= 0.5 * grid, "rotated: {rotated}, {auto} against {grid}");
    }
}

/// A ball in all directions alike: no weights to learn, and the sphere is what is left.
#[test]
fn where_all_directions_matter_none_is_dropped() {
    let train = Generator { rows: 400, informative: 4, noise: 0, ..Generator::default() };
    let model = Model::fit(&train.generate().unwrap().data, Svml::default()).unwrap();
    assert!(!matches!(model.metric().form(), Form::Rank(_)), "{}", model.metric().form());
    let relevance = model.metric().relevance();
    let (least, most) =
        relevance.iter().fold((f64::MAX, 0.0_f64), |(a, b), &m| (a.min(m), b.max(m)));
    assert!(least > 0.1 * most, "{relevance:?}");
}

#[test]
fn the_report_says_what_was_compared() {
    let data = generated(200, 4, true, 3);
    let model = Model::fit(&data, Svml::default()).unwrap();
    let report = model.report();
    let chosen: Vec<_> = report.candidates.iter().filter(|c| c.chosen).collect();
    assert_eq!(chosen.len(), 1, "{:?}", report.candidates);
    assert_eq!((chosen[0].form, chosen[0].cost), (model.metric().form(), model.cost().unwrap()));
    assert_eq!(report.candidates[0].form, Form::Sphere);
    assert!(report.candidates.iter().any(|c| c.form != Form::Sphere));
    for c in &report.candidates {
        assert!((0.0..=1.0).contains(&c.error) && c.loss >= 0.0 && c.loss.is_finite(), "{c:?}");
    }
    // One trace over all forms, numbered through, in the order of time.
    let trace = &report.trace;
    assert!(trace.iter().enumerate().all(|(i, step)| step.iteration == i));
    assert!(trace.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds));
    assert!(report.best < trace.len());
    let fixed = Model::fit(&data, Svml { form: Form::Diagonal.into(), ..Svml::default() });
    assert!(fixed.unwrap().report().candidates.is_empty());

    // Every step belongs to one form, in the order in which they were learned.
    let stages = report.stages();
    let forms: Vec<Form> = stages.iter().filter_map(|stage| stage.form).collect();
    let low = |form: &Form| matches!(form, Form::Rank(_));
    match forms[..] {
        [Form::Sphere, Form::Diagonal] => {}
        [Form::Sphere, ref rank] => assert!(low(rank)),
        [Form::Sphere, ref rank, Form::Diagonal] => assert!(low(rank)),
        _ => panic!("{forms:?}"),
    }
    let last = stages.last().unwrap().last;
    assert_eq!((stages[0].first, last + 1), (0, trace.len()));
    assert!(stages.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
    let kept = stages.iter().find(|stage| (stage.first..=stage.last).contains(&report.best));
    assert_eq!(kept.unwrap().form, Some(model.metric().form()));

    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.report().candidates, report.candidates);
    assert_eq!(loaded.decision(data.x()).unwrap(), model.decision(data.x()).unwrap());
}

#[test]
fn same_bits_for_any_threads_and_any_order_of_rows() {
    for rotated in [false, true] {
        let data = generated(150, 6, rotated, 5);
        let fit = |data: &Dataset, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Model::fit(data, Svml::default()).unwrap())
        };
        let one = fit(&data, 1);
        assert_eq!(one.to_bytes().unwrap(), fit(&data, 4).to_bytes().unwrap());
        let back: Vec<usize> = (0..data.rows()).rev().collect();
        let turned = fit(&data.select(&back), 2);
        assert_eq!(one.decision(data.x()).unwrap(), turned.decision(data.x()).unwrap());
    }
}

#[test]
fn a_weight_of_two_is_the_row_twice() {
    let data = generated(90, 4, true, 7);
    let weights: Vec<f64> = (0..data.rows()).map(|i| 1.0 + f64::from(i % 3 == 0)).collect();
    let twice: Vec<usize> = (0..data.rows()).chain((0..data.rows()).step_by(3)).collect();
    for class_weight in [ClassWeight::None, ClassWeight::Balanced] {
        let params = Svml { class_weight, ..Svml::default() };
        let weighted = data.clone().with_weights(weights.clone()).unwrap();
        let a = Model::fit(&weighted, &params).unwrap();
        let b = Model::fit(&data.select(&twice), &params).unwrap();
        assert_eq!(a.metric(), b.metric());
        assert_eq!(a.decision(data.x()).unwrap(), b.decision(data.x()).unwrap());
    }
}

#[test]
fn every_criterion_and_surrogate_and_several_classes() {
    for classes in [2, 3] {
        let generator = Generator { rows: 120, classes, noise: 3, ..Generator::default() };
        let data = generator.generate().unwrap().data;
        for criterion in [Criterion::HoldOut, Criterion::KFold(3), Criterion::LeaveOneOut] {
            for surrogate in [Surrogate::Sigmoid, Surrogate::Logistic, Surrogate::SquaredHinge] {
                for refit in [true, false] {
                    let params = Svml { criterion, surrogate, refit, ..Svml::default() };
                    let what = format!("{classes} {criterion} {surrogate:?} {refit}");
                    let model = Model::fit(&data, &params).unwrap();
                    assert!(model.report().residual < 1e-6, "{what}");
                    assert!(model.error_rate(&data).unwrap() < 0.35, "{what}");
                    let p = model.probabilities(data.x()).unwrap();
                    assert!(p.as_slice().iter().all(|p| (0.0..=1.0).contains(p)), "{what}");
                }
            }
        }
    }
}

#[test]
fn odd_data() {
    let rows = |x: &[&[f64]], labels: &[&str]| {
        Dataset::new(Matrix::from_rows(x).unwrap(), labels).unwrap()
    };
    let labels = |n: usize| -> Vec<&str> { (0..n).map(|i| ["a", "b"][i % 2]).collect() };
    let wide = Matrix::from_fn(8, 40, |i, k| ((i * 7 + k * 3) % 11) as f64);
    let same = Matrix::from_fn(12, 2, |i, _| (i % 2) as f64);
    let constant = Matrix::from_fn(20, 3, |i, k| if k == 0 { (i * i % 7) as f64 } else { 4.0 });
    for (what, data) in [
        ("three rows", rows(&[&[0.0], &[1.0], &[2.0]], &["a", "b", "b"])),
        ("one column", rows(&[&[0.0], &[1.0], &[2.0], &[5.0]], &["a", "a", "b", "b"])),
        ("more columns than rows", Dataset::new(wide, &labels(8)).unwrap()),
        ("two distinct rows", Dataset::new(same, &labels(12)).unwrap()),
        ("constant columns", Dataset::new(constant, &labels(20)).unwrap()),
        (
            "huge values",
            rows(&[&[1e60, 1.0], &[-1e60, 2.0], &[3e60, 0.5], &[1e59, 1.5]], &labels(4)),
        ),
        ("a single row of a class", rows(&[&[0.0], &[1.0], &[2.0], &[5.0]], &["a", "a", "a", "b"])),
    ] {
        let model = Model::fit(&data, Svml::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
        let h = model.decision(data.x()).unwrap();
        assert!(h.as_slice().iter().all(|h| h.is_finite()), "{what}");
        assert!(model.report().residual < 1e-6, "{what}");
    }
}

/// Ended at any step, or at any time, what is best so far comes back.
#[test]
fn it_can_be_ended_at_any_moment() {
    let data = generated(200, 8, true, 11);
    let model = Model::fit(&data, Svml::default()).unwrap();
    let (steps, whole) = (model.report().trace.len(), model.report().stages());
    for last in 0..steps {
        let observer = |step: &Step| match step.iteration >= last {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut run = Run::new().observer(observer);
        let model = Model::fit_with(&data, Svml::default(), &mut run).unwrap();
        assert_eq!(model.report().stop, Some(Stop::Interrupted), "{last}");
        assert_eq!(model.report().trace.len(), last + 1);
        let stages = model.report().stages();
        assert!(stages.iter().map(|s| s.form).eq(whole.iter().map(|s| s.form).take(stages.len())));
        assert!(model.decision(data.x()).unwrap().as_slice().iter().all(|h| h.is_finite()));
    }
    for micros in [0, 100, 300, 1000, 3000, 10_000, 30_000, 100_000] {
        let mut run = Run::new().time_limit(Duration::from_micros(micros));
        match Model::fit_with(&data, Svml::default(), &mut run) {
            Ok(model) => {
                assert!(model.decision(data.x()).unwrap().as_slice().iter().all(|h| h.is_finite()));
            }
            Err(error) => assert!(matches!(error, Error::Interrupted), "{error}"),
        }
    }
    let interrupt = Arc::new(AtomicBool::new(true));
    let mut run = Run::new().interrupt(interrupt);
    let error = Model::fit_with(&data, Svml::default(), &mut run).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
}

#[test]
fn as_text() {
    for choice in [FormChoice::Auto, Form::Full.into(), Form::Rank(3).into()] {
        assert_eq!(choice.to_string().parse::<FormChoice>().unwrap(), choice);
    }
    assert!("automatic".parse::<FormChoice>().unwrap_err().to_string().contains("automatic"));
    assert_eq!(Svml::default().form, FormChoice::Auto);
    assert_eq!(Svml::paper().form, Form::Full.into());
}
