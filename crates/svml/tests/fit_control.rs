//! How a fit is steered and what it tells: the trace, the ways to stop, the observer, the interrupt
//! flag, the time limit, the final training.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use svml::internals::grid_search::grid_search;
use svml::learners::Sample;
use svml::learners::{Itml, Lmnn, Nca};
use svml::{AnyLearner, Dataset, Error, Form, Generator, GridSearch, Method, Model, Svml};
use svml::{Optimiser, Stop};
use svml::{Run, Step};

const FORMS: [Form; 4] = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)];
const BOTH: [Optimiser; 2] = [Optimiser::ConjugateGradients, Optimiser::Lbfgs];

fn generated(rows: usize) -> Dataset {
    let mut generator = Generator::default();
    (generator.rows, generator.noise) = (rows, 3);
    generator.generate().unwrap().data
}

/// Goes on until the minimum is reached to the last digit.
fn endless(form: Form) -> Svml {
    let mut params = Svml::paper();
    (params.form, params.max_iterations, params.patience, params.tolerance) =
        (form.into(), 100_000, 100_000, 0.0);
    params
}

/// A fit and the steps its observer saw.
fn watched(data: &Dataset, params: &Svml, end: impl Fn(&Step) -> bool) -> (Model, Vec<Step>) {
    let mut seen = Vec::new();
    let mut run = Run::new().observer(|step| {
        seen.push(*step);
        if end(step) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let model = Model::fit_with(data, params, &mut run).unwrap();
    drop(run);
    (model, seen)
}

fn never(_: &Step) -> bool {
    false
}

/// What holds for the trace of any fit.
fn assert_sound(model: &Model) {
    let report = model.report();
    assert!(!report.trace.is_empty());
    for (k, step) in report.trace.iter().enumerate() {
        assert_eq!(step.iteration, k);
        assert!(step.loss.is_finite() && step.loss > 0.0);
        assert_eq!(step.step_length > 0.0, k > 0, "step {k}: {}", step.step_length);
        let svml = step.svml.unwrap();
        assert!((1e-3..=1e4).contains(&svml.cost));
        assert!(svml.support_vectors > 0);
        for error in [svml.train_error, svml.valid_error, svml.stopping_error.unwrap()] {
            assert!((0.0..=1.0).contains(&error));
        }
    }
    for pair in report.trace.windows(2) {
        assert!(pair[1].loss < pair[0].loss && pair[1].seconds >= pair[0].seconds);
    }
    // The best on the hold-out rows; equal errors are decided by the smooth error, not shown here.
    let error = |step: &Step| step.svml.unwrap().stopping_error.unwrap();
    let least = report.trace.iter().map(error).fold(f64::INFINITY, f64::min);
    let best = report.best_step().unwrap();
    assert_eq!(error(best), least);
    assert_eq!(Some(best.svml.unwrap().cost), model.cost());
}

#[test]
fn traces_are_sound_and_shown_step_by_step() {
    for form in FORMS {
        for optimiser in BOTH {
            let mut params = Svml::paper();
            (params.form, params.optimiser) = (form.into(), optimiser);
            let data = generated(200);
            let (model, seen) = watched(&data, &params, never);
            assert_sound(&model);
            assert_eq!(seen, model.report().trace, "{form} {optimiser:?}");
            assert!(seen.len() > 1);
            assert!(model.report().refitted && model.report().warnings.is_empty());
            // Watching changes nothing.
            let plain = Model::fit(&data, &params).unwrap();
            assert_eq!(plain.to_bytes().unwrap(), model.to_bytes().unwrap());
        }
    }
}

#[test]
fn the_iteration_limit() {
    let data = generated(200);
    for optimiser in BOTH {
        for limit in [0, 1, 3, 7] {
            let mut params = endless(Form::Full);
            (params.max_iterations, params.optimiser) = (limit, optimiser);
            let model = Model::fit(&data, &params).unwrap();
            assert_sound(&model);
            assert_eq!(model.report().stop, Some(Stop::Iterations));
            assert!(model.report().trace.len() <= limit + 1);
            // A line search that fails and restarts takes an iteration without a step.
            assert!(limit > 3 || model.report().trace.len() == limit + 1);
        }
    }
}

#[test]
fn patience() {
    let data = generated(200);
    for optimiser in BOTH {
        for patience in [1, 2, 4] {
            let mut params = endless(Form::Full);
            (params.patience, params.optimiser) = (patience, optimiser);
            let model = Model::fit(&data, &params).unwrap();
            assert_sound(&model);
            let report = model.report();
            assert_eq!(report.stop, Some(Stop::EarlyStopping));
            assert_eq!(report.trace.len() - 1 - report.best, patience);
        }
    }
}

#[test]
fn tolerance() {
    let data = generated(200);
    let decreases = |model: &Model| -> Vec<f64> {
        model.report().trace.windows(2).map(|w| (w[0].loss - w[1].loss) / w[1].loss).collect()
    };
    for optimiser in BOTH {
        let mut params = endless(Form::Diagonal);
        params.optimiser = optimiser;
        for tolerance in [0.5, 0.03, 1e-3] {
            params.tolerance = tolerance;
            let model = Model::fit(&data, &params).unwrap();
            assert_sound(&model);
            assert_eq!(model.report().stop, Some(Stop::Tolerance));
            let decreases = decreases(&model);
            let (last, before) = decreases.split_last().unwrap();
            assert!(*last <= tolerance && before.iter().all(|d| *d > tolerance), "{decreases:?}");
        }
        params.tolerance = 0.0;
        params.form = Form::Sphere.into();
        let model = Model::fit(&data, &params).unwrap();
        assert_sound(&model);
        assert_eq!(model.report().stop, Some(Stop::Minimum));
    }
}

#[test]
fn the_final_training() {
    let data = generated(200);
    for form in FORMS {
        let mut params = Svml { form: form.into(), ..Svml::paper() };
        let all = Model::fit(&data, &params).unwrap();
        params.refit = false;
        let half = Model::fit(&data, &params).unwrap();
        // Metric and C are the same, the machine is not.
        assert_eq!((all.metric(), all.cost()), (half.metric(), half.cost()));
        let losses = |m: &Model| m.report().trace.iter().map(|s| s.loss).collect::<Vec<_>>();
        assert_eq!(losses(&all), losses(&half));
        assert_eq!(all.report().best, half.report().best);
        assert!(all.report().refitted && !half.report().refitted);
        assert!(half.report().warnings.is_empty(), "it was asked for");
        let best = half.report().best_step().unwrap();
        assert_eq!(half.support_rows().len(), best.svml.unwrap().support_vectors);
        assert!(all.support_rows().len() > half.support_rows().len());
        assert!(all.report().residual < 1e-8 && half.report().residual < 1e-8);
    }
}

/// Ending at a step gives what the limit on steps gives there, but for the final training.
#[test]
fn the_observer_can_end_the_fit() {
    let data = generated(200);
    for optimiser in BOTH {
        for last in [0, 1, 4] {
            let mut params = endless(Form::Full);
            params.optimiser = optimiser;
            let (model, seen) = watched(&data, &params, |step| step.iteration == last);
            assert_sound(&model);
            let report = model.report();
            assert_eq!(report.stop, Some(Stop::Interrupted));
            assert_eq!((seen.len(), &seen), (last + 1, &report.trace));
            assert!(!report.refitted);
            assert!(report.warnings.iter().any(|w| w.contains("trained on part")), "{report:?}");

            (params.max_iterations, params.refit) = (last, false);
            let limited = Model::fit(&data, &params).unwrap();
            assert_eq!(limited.report().best, report.best);
            assert_eq!((limited.metric(), limited.cost()), (model.metric(), model.cost()));
            assert_eq!((limited.beta(), limited.bias()), (model.beta(), model.bias()));
        }
    }
}

#[test]
fn the_flag_raised_by_another_thread() {
    let data = generated(300);
    for at in [0, 3] {
        let flag = Arc::new(AtomicBool::new(false));
        let (ask, asked) = mpsc::channel();
        let (raise, raised) = mpsc::channel();
        let remote = flag.clone();
        let thread = std::thread::spawn(move || {
            asked.recv().unwrap();
            remote.store(true, Ordering::Relaxed);
            raise.send(()).unwrap();
        });
        // The step waits for the other thread, so that which step is the last is certain.
        let observer = |step: &Step| {
            if step.iteration == at {
                ask.send(()).unwrap();
                raised.recv().unwrap();
            }
            ControlFlow::Continue(())
        };
        let mut run = Run::new().observer(observer).interrupt(flag);
        let model = Model::fit_with(&data, endless(Form::Full), &mut run).unwrap();
        thread.join().unwrap();
        assert_sound(&model);
        assert_eq!(model.report().stop, Some(Stop::Interrupted));
        assert_eq!(model.report().trace.len(), at + 1);
        assert!(!model.report().refitted);
    }
}

/// The flag is also seen in the middle of a step, by the watch inside the factorisation: here nobody
/// waits for a step to end.
#[test]
fn the_flag_raised_at_any_moment() {
    let data = generated(600);
    for delay in [0, 5, 30] {
        let flag = Arc::new(AtomicBool::new(false));
        let remote = flag.clone();
        let (begin, begun) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            begun.recv().unwrap();
            std::thread::sleep(Duration::from_millis(delay));
            remote.store(true, Ordering::Relaxed);
        });
        let observer = |_: &Step| {
            // The thread is gone after the first step.
            let _ = begin.send(());
            ControlFlow::Continue(())
        };
        let mut run = Run::new().observer(observer).interrupt(flag);
        let model = Model::fit_with(&data, endless(Form::Full), &mut run).unwrap();
        thread.join().unwrap();
        assert_sound(&model);
        assert_eq!(model.report().stop, Some(Stop::Interrupted));
        assert!(model.decision(data.x()).unwrap().into_vec().iter().all(|h| h.is_finite()));
    }
}

#[test]
fn a_flag_raised_before_the_start() {
    let flag = Arc::new(AtomicBool::new(true));
    let mut run = Run::new().interrupt(flag.clone());
    let error = Model::fit_with(&generated(50), Svml::default(), &mut run).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    // The flag stays with its owner: lowered again, the same run serves for another fit.
    flag.store(false, Ordering::Relaxed);
    assert!(Model::fit_with(&generated(50), Svml::default(), &mut run).is_ok());
}

/// An interrupt leaves nothing of a grid. Large enough for one kernel matrix after the other, and small enough for
/// all at once.
#[test]
fn the_euclidean_grid_is_ended_within_a_fraction_of_a_second() {
    for rows in [1500, 4000] {
        let data = generated(rows);
        let flag = Arc::new(AtomicBool::new(false));
        let remote = flag.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            remote.store(true, Ordering::Relaxed);
            std::time::Instant::now()
        });
        let mut run = Run::new().interrupt(flag);
        let result = Model::fit_with(&data, GridSearch::default(), &mut run);
        let ended = std::time::Instant::now();
        let waited = ended.saturating_duration_since(thread.join().unwrap());
        assert!(matches!(result, Err(Error::Interrupted)), "{rows}");
        // 200 ms where nothing else runs; tests run side by side.
        assert!(waited < Duration::from_secs(2), "{rows}: {waited:?}");
    }
    let mut run = Run::new().time_limit(Duration::from_millis(1));
    let error = Model::fit_with(&generated(1500), GridSearch::default(), &mut run);
    assert!(matches!(error, Err(Error::Interrupted)));
    let data = generated(100);
    let watched = Model::fit_with(&data, GridSearch::default(), &mut Run::new()).unwrap();
    assert_eq!(watched, Model::fit(&data, GridSearch::default()).unwrap());
}

#[test]
fn no_time_at_all() {
    let mut run = Run::new().time_limit(Duration::ZERO);
    let error = Model::fit_with(&generated(50), Svml::default(), &mut run).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert!(error.to_string().contains("more time"), "{error}");
}

/// The metric that a learner starts from is a result, with a warning that says so, and not one that an interrupt leaves.
#[test]
fn learners_without_any_time_return_their_start() {
    let data = generated(60);
    let learners: [AnyLearner; 3] =
        [Nca::default().into(), Lmnn::default().into(), Itml::default().into()];
    for learner in learners {
        let method = Method::metric(learner.clone());
        let mut run = Run::new().time_limit(Duration::ZERO);
        let model = Model::fit_with(&data, &method, &mut run).unwrap();
        let report = model.report();
        assert_eq!((report.stop, report.trace.len()), (Some(Stop::TimeLimit), 0), "{learner}");
        let [warning] = report.warnings.as_slice() else { panic!("{:?}", report.warnings) };
        assert!(warning.contains("60 rows") && warning.contains("the initial one"), "{warning}");
        // All columns count the same.
        let relevance = model.metric().relevance();
        assert!(relevance.iter().all(|r| (r / relevance[0] - 1.0).abs() < 1e-12), "{relevance:?}");
        assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
        let flag = Arc::new(AtomicBool::new(true));
        let interrupted = Model::fit_with(&data, &method, &mut Run::new().interrupt(flag));
        assert!(matches!(interrupted, Err(Error::Interrupted)), "{learner}");
    }
}

/// As many widths as time allows, from the middle outwards, and among these the best.
#[test]
fn a_grid_takes_the_best_of_the_widths_that_it_has_tried() {
    let data = generated(400);
    let weight = vec![1.0; 400];
    let sample = Sample::new(data.x(), data.y(), &weight, 2).unwrap();
    // So little memory that widths are tried one after the other.
    let grid = GridSearch { memory_limit: Some(5 * 8 * 400 * 400), ..GridSearch::default() };
    let whole = grid_search(&sample, &grid, Run::new().watch()).unwrap();
    assert!(whole.warning().is_none());
    let mut tried = 0;
    for limit in (2..).map(|k| Duration::from_millis(1 << k)) {
        let run = Run::new().time_limit(limit);
        let Ok(choice) = grid_search(&sample, &grid, run.watch()) else { continue };
        tried = choice.tried.0;
        let places: &[usize] =
            [&[2][..], &[1, 2], &[1, 2, 3], &[0, 1, 2, 3], &[0, 1, 2, 3, 4]][tried - 1];
        let mut least = f64::INFINITY;
        for width in 0..5 {
            for cost in 0..4 {
                match places.contains(&width) {
                    true => assert_eq!(choice.errors[(width, cost)], whole.errors[(width, cost)]),
                    false => assert_eq!(choice.errors[(width, cost)], f64::INFINITY),
                }
                least = least.min(choice.errors[(width, cost)]);
            }
        }
        let width = choice.metric.values()[0];
        assert!(places.iter().any(|&p| {
            (0..4).any(|c| choice.errors[(p, c)] == least)
                && (width - (grid.widths[p] * 5.0).sqrt().recip()).abs() < 1e-12
        }));
        assert_eq!(choice.warning().is_some(), tried < 5);
        if tried == 5 {
            break;
        }
    }
    assert_eq!(tried, 5);
}

/// The third step sleeps until the time is over: what was learned before it is returned.
#[test]
fn time_that_runs_out() {
    let data = generated(100);
    for refit in [false, true] {
        let limit = Duration::from_millis(1500);
        let mut params = endless(Form::Full);
        params.refit = refit;
        let observer = |step: &Step| {
            if step.iteration == 3 {
                std::thread::sleep(limit);
            }
            ControlFlow::Continue(())
        };
        let mut run = Run::new().observer(observer).time_limit(limit);
        let model = Model::fit_with(&data, &params, &mut run).unwrap();
        assert_sound(&model);
        assert_eq!(model.report().stop, Some(Stop::TimeLimit));
        assert_eq!(model.report().trace.len(), 4);
        assert!(!model.report().refitted);
        // Half a model is news only to those who asked for a whole one.
        assert_eq!(model.report().warnings.is_empty(), !refit);
    }
}

/// Learning that is stopped by the clock leaves time for the final training; whether that is enough
/// depends on the machine, but a model says which of the two it is.
#[test]
fn a_model_says_whether_the_final_training_was_reached() {
    let data = generated(300);
    let mut run = Run::new().time_limit(Duration::from_secs(1));
    let model = Model::fit_with(&data, endless(Form::Full), &mut run).unwrap();
    assert_sound(&model);
    let stop = model.report().stop.unwrap();
    assert!([Stop::TimeLimit, Stop::Minimum].contains(&stop), "{stop}");
    assert_eq!(model.report().refitted, model.report().warnings.is_empty());
}

#[test]
fn time_without_end_is_no_limit() {
    let data = generated(100);
    let plain = Model::fit(&data, Svml::default()).unwrap();
    for limit in [Duration::from_secs(3600), Duration::MAX] {
        let mut run = Run::new().time_limit(limit);
        let model = Model::fit_with(&data, Svml::default(), &mut run).unwrap();
        assert_eq!(model.to_bytes().unwrap(), plain.to_bytes().unwrap());
    }
}

#[test]
fn c_stays_as_it_is_given() {
    let data = Generator { rows: 200, ..Default::default() }.generate().unwrap().data;
    for optimiser in [Optimiser::Lbfgs, Optimiser::ConjugateGradients] {
        let params = Svml { initial_cost: 3.0, learn_cost: false, optimiser, ..Svml::default() };
        let model = Model::fit(&data, &params).unwrap();
        assert!(model.report().trace.len() > 2);
        assert!(
            model.report().trace.iter().all(|step| (step.svml.unwrap().cost - 3.0).abs() < 1e-12)
        );
        assert!(model.members().iter().all(|member| (member.cost() - 3.0).abs() < 1e-12));
    }
}
