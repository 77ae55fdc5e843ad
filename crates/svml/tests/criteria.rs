//! Whole fits with every criterion and surrogate: hold-out, k-fold and leave-one-out.
#![allow(clippy::unwrap_used, missing_docs)]

use std::ops::ControlFlow;

use svml::Criterion;
use svml::Stop;
use svml::Surrogate;
use svml::internals::loss::Loss;
use svml::internals::multiclass::solve_pair;
use svml::internals::svml::criterion::leave_one_out;
use svml::internals::{PairRows, Watch, kernel};
use svml::{Dataset, Error, Form, Generator, Kernel, Matrix, Metric, Model, Svml};
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

/// Nothing is left of a pair of classes without its only row: its output is 0 then, and depends on nothing.
#[test]
fn the_only_row_of_a_pair_is_left_out() {
    let x = Matrix::from_fn(5, 2, |i, k| (i * (k + 2)) as f64 * 0.4 - 0.3 * k as f64);
    let rows = |index: &[usize], y: &[f64], weight: &[f64]| PairRows {
        index: index.to_vec(),
        y: y.to_vec(),
        weight: weight.to_vec(),
    };
    let several = rows(&[0, 1, 2, 3], &[1.0, -1.0, -1.0, 1.0], &[1.0, 0.5, 1.5, 1.0]);
    let alone = rows(&[4], &[-1.0], &[4.0]);
    let metric = Metric::new(Form::Diagonal, 2, vec![0.7, 0.4]).unwrap();
    let gram = kernel::backend().gram(&x, 5, &metric, Kernel::Gaussian, &Watch::default()).unwrap();
    for surrogate in [Surrogate::Sigmoid, Surrogate::Logistic, Surrogate::SquaredHinge] {
        let loss = Loss { surrogate, steepness: 3.0 };
        let of =
            |pairs: &[PairRows]| leave_one_out(&*gram, (pairs, &[1.0; 5]), 2.0, loss, &[]).unwrap();
        let (without, with) =
            (of(std::slice::from_ref(&several)), of(&[several.clone(), alone.clone()]));
        // Half of all weight is that of the row alone.
        let expected = 0.5 * without.loss + 0.5 * loss.value_and_slope(0.0).0;
        assert!((with.loss - expected).abs() < 1e-14, "{surrogate}: {} {expected}", with.loss);
        assert_eq!(with.valid_outputs[1], [0.0]);
        assert!((with.d_log_cost - 0.5 * without.d_log_cost).abs() < 1e-14);
        for (with, without) in with.d_metric.iter().zip(&without.d_metric) {
            assert!((with - 0.5 * without).abs() < 1e-14);
        }
    }
}

/// Each observation is left out by training without it, where no other row enters or leaves the support set: without the row,
/// or with what is left of its weight if it stands for several observations.
#[test]
fn leaving_out_is_training_without_the_observation() {
    let x = Matrix::from_fn(30, 2, |i, k| ((i * (3 * k + 2)) as f64 * 0.83).sin());
    let y: Vec<f64> =
        (0..30).map(|i| if x[(i, 0)] * x[(i, 1)] > 0.1 { 1.0 } else { -1.0 }).collect();
    let weight: Vec<f64> = (0..30).map(|i| 0.5 + (i % 3) as f64).collect();
    let metric = Metric::new(Form::Diagonal, 2, vec![0.9, 0.7]).unwrap();
    let gram =
        kernel::backend().gram(&x, 30, &metric, Kernel::Gaussian, &Watch::default()).unwrap();
    let all = PairRows { index: (0..30).collect(), y, weight };
    let loss = Loss { surrogate: Surrogate::Logistic, steepness: 3.0 };
    let share: Vec<f64> = (0..30).map(|i| [1.0, 0.5, 0.25][i % 3]).collect();
    let rows = (std::slice::from_ref(&all), share.as_slice());
    let found = leave_one_out(&*gram, rows, 1.5, loss, &[]).unwrap();
    let support = &found.svms[0].support;
    let (mut compared, mut expected) = (0, 0.0);
    for out in 0..30 {
        let kept: Vec<usize> = (0..30).filter(|&i| i != out || share[i] < 1.0).collect();
        let of = |values: &[f64]| kept.iter().map(|&i| values[i]).collect::<Vec<_>>();
        let mut left = all.weight.clone();
        left[out] *= 1.0 - share[out];
        let rest = PairRows { index: kept.clone(), y: of(&all.y), weight: of(&left) };
        let svm = solve_pair(&*gram, &rest, 1.5, None).unwrap().trained.svm;
        let h = gram.multiply(&[out], &svm.support, &svm.beta)[0] + svm.bias;
        let stays: Vec<usize> = support.iter().copied().filter(|i| kept.contains(i)).collect();
        let output = found.valid_outputs[0][out];
        if svm.support == stays {
            compared += 1;
            assert!((output - h).abs() < 1e-9, "row {out}: {output} {h}");
        }
        expected += all.weight[out] * loss.value_and_slope(all.y[out] * output).0;
    }
    assert!(compared > 5, "{compared}");
    expected /= all.weight.iter().sum::<f64>();
    assert!((found.loss - expected).abs() < 1e-12, "{} {expected}", found.loss);
}
