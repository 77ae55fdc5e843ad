//! Whole fits with every criterion and surrogate: hold-out, k-fold and leave-one-out.
#![allow(clippy::unwrap_used, missing_docs)]

use std::ops::ControlFlow;

use svml::Criterion;
use svml::Stop;
use svml::Surrogate;
use svml::{Dataset, Error, Form, Generator, Model, Svml};
use svml::{Run, Step};

const CRITERIA: [Criterion; 4] =
    [Criterion::HoldOut, Criterion::KFold(2), Criterion::KFold(5), Criterion::LeaveOneOut];

fn generator(classes: usize) -> Generator {
    Generator { rows: 240, classes, noise: 14, rotated: false, ..Default::default() }
}

fn params(criterion: Criterion, surrogate: Surrogate) -> Svml {
    Svml { criterion, surrogate, form: Form::Full.into(), ..Svml::paper() }
}

/// The informative columns stand alone, so a diagonal metric can find them with few parameters: without
/// hold-out rows to stop it a full one would overfit 240 rows.
#[test]
fn every_criterion_learns() {
    for classes in [2, 3] {
        let train = generator(classes).generate().unwrap().data;
        let test = Generator { rows: 3000, seed: 1, ..generator(classes) };
        let test = test.generate().unwrap().data;
        let start = Svml { max_iterations: 0, form: Form::Diagonal.into(), ..Svml::paper() };
        let start = Model::fit(&train, &start).unwrap().error_rate(&test).unwrap();
        for criterion in CRITERIA {
            for surrogate in [Surrogate::Sigmoid, Surrogate::Logistic, Surrogate::SquaredHinge] {
                let params = Svml { form: Form::Diagonal.into(), ..params(criterion, surrogate) };
                let model = Model::fit(&train, &params).unwrap();
                let error = model.error_rate(&test).unwrap();
                let what =
                    format!("{classes} classes, {criterion}, {surrogate}: {error} from {start}");
                // Early stopping may stay at the start; the others move.
                let better = error < start;
                assert!(better || error == start && criterion == Criterion::HoldOut, "{what}");
                let report = model.report();
                assert!(report.refitted && report.residual <= 1e-8, "{what}");
                assert!(report.trace.windows(2).all(|w| w[1].loss < w[0].loss), "{what}");
                let held_out = criterion == Criterion::HoldOut;
                assert!(
                    report
                        .trace
                        .iter()
                        .all(|s| s.svml.unwrap().stopping_error.is_some() == held_out),
                    "{what}"
                );
                if !held_out {
                    assert_eq!(report.best, report.trace.len() - 1, "{what}");
                }
                let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                assert_eq!(loaded.to_bytes().unwrap(), model.to_bytes().unwrap());
            }
        }
    }
}

/// A row of weight 2 is the row twice, whatever the criterion; threads change no bit.
#[test]
fn weights_and_threads() {
    for classes in [2, 3] {
        let data = generator(classes).generate().unwrap().data;
        let times: Vec<usize> = (0..data.rows()).map(|i| i % 3).collect();
        let weighted =
            data.clone().with_weights(times.iter().map(|&t| t as f64).collect()).unwrap();
        let repeated: Vec<usize> = (0..data.rows()).rev().flat_map(|i| vec![i; times[i]]).collect();
        let repeated = data.select(&repeated);
        for criterion in CRITERIA {
            for form in [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)] {
                let params = Svml {
                    form: form.into(),
                    max_iterations: 3,
                    ..params(criterion, Surrogate::Logistic)
                };
                let fit = |data: &Dataset, threads: usize| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                    pool.build().unwrap().install(|| Model::fit(data, &params).unwrap())
                };
                let a = fit(&weighted, 1);
                assert!(a.to_bytes().unwrap() == fit(&weighted, 3).to_bytes().unwrap());
                let (a, b) = (a.decision(data.x()).unwrap(), fit(&repeated, 2));
                for (a, b) in a.as_slice().iter().zip(b.decision(data.x()).unwrap().as_slice()) {
                    assert!((a - b).abs() <= 1e-8, "{classes} classes, {criterion}, {form}");
                }
            }
        }
    }
}

/// Ended by the observer after two steps: the best so far, on the rows its machines have seen.
#[test]
fn interrupted_fits_give_the_best_so_far() {
    let data = generator(3).generate().unwrap().data;
    for criterion in CRITERIA {
        let observer = |step: &Step| match step.iteration {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let mut run = Run::new().observer(observer);
        let params = Svml { tolerance: 0.0, ..params(criterion, Surrogate::Logistic) };
        let model = Model::fit_with(&data, &params, &mut run).unwrap();
        let report = model.report();
        assert_eq!((report.stop, report.trace.len()), (Some(Stop::Interrupted), 3));
        assert_eq!(report.refitted, criterion == Criterion::LeaveOneOut);
        // Of five folds the machines of the first know four fifths of the rows, and so on.
        let seen = match criterion {
            Criterion::HoldOut | Criterion::KFold(2) => 0.51,
            Criterion::KFold(_) => 0.81,
            _ => 1.0,
        };
        assert!(model.support_rows().len() as f64 <= seen * data.rows() as f64, "{criterion}");
        let p = model.probabilities(data.x()).unwrap();
        assert!(p.as_slice().iter().all(|p| p.is_finite()), "{criterion}");
    }
}

#[test]
fn names_and_bounds() {
    for criterion in CRITERIA {
        assert_eq!(criterion.to_string().parse::<Criterion>().unwrap(), criterion);
    }
    for bad in ["", "loo", "k_fold", "k_fold=1", "k_fold=x"] {
        let message = bad.parse::<Criterion>().unwrap_err().to_string();
        assert!(message.contains("leave_one_out"), "{message}");
    }
    let data = generator(2).generate().unwrap().data;
    let bad = params(Criterion::KFold(1), Surrogate::Sigmoid);
    let error = Model::fit(&data, &bad).unwrap_err();
    assert!(matches!(&error, Error::Parameter { name, .. } if name == "k_fold"), "{error}");
    // More folds than rows are as many as there are rows.
    let few = data.select(&(0..12).collect::<Vec<_>>());
    let many = params(Criterion::KFold(1000), Surrogate::Logistic);
    assert!(Model::fit(&few, &many).unwrap().report().residual <= 1e-8);
}
