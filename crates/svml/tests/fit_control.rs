//! How a fit is steered and what it tells: the trace, the ways to stop, the observer, the interrupt
//! flag, the time limit, the final training.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use svml::learn::{Control, Step};
use svml::optimise::{Optimiser, Stop};
use svml::{Dataset, Error, Form, Generator, Grid, Model, Params};

const FORMS: [Form; 4] = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)];
const BOTH: [Optimiser; 2] = [Optimiser::ConjugateGradients, Optimiser::Lbfgs];

fn generated(rows: usize) -> Dataset {
    let mut generator = Generator::default();
    (generator.rows, generator.noise) = (rows, 3);
    generator.generate().unwrap().data
}

/// Goes on until the minimum is reached to the last digit.
fn endless(form: Form) -> Params {
    let mut params = Params::paper();
    (params.form, params.max_iterations, params.patience, params.tolerance) =
        (form.into(), 100_000, 100_000, 0.0);
    params
}

/// A fit and the steps its observer saw.
fn watched(data: &Dataset, params: &Params, end: impl Fn(&Step) -> bool) -> (Model, Vec<Step>) {
    let mut seen = Vec::new();
    let mut observer = |step: &Step| {
        seen.push(*step);
        if end(step) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut control = Control { observer: Some(&mut observer), ..Control::default() };
    let model = Model::fit_with(data, params, &mut control).unwrap();
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
        assert_eq!(step.step > 0.0, k > 0, "step {k}: {}", step.step);
        assert!((1e-3..=1e4).contains(&step.cost));
        assert!(step.support > 0);
        for error in [step.train_error, step.valid_error, step.hold_error.unwrap()] {
            assert!((0.0..=1.0).contains(&error));
        }
    }
    for pair in report.trace.windows(2) {
        assert!(pair[1].loss < pair[0].loss && pair[1].seconds >= pair[0].seconds);
    }
    // The best on the hold-out rows; equal errors are decided by the smooth error, not shown here.
    let least = report.trace.iter().map(|s| s.hold_error.unwrap()).fold(f64::INFINITY, f64::min);
    assert_eq!(report.trace[report.best].hold_error.unwrap(), least);
    assert_eq!(report.trace[report.best].cost, model.cost());
}

#[test]
fn traces_are_sound_and_shown_step_by_step() {
    for form in FORMS {
        for optimiser in BOTH {
            let mut params = Params::paper();
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
            assert_eq!(report.stop, Some(Stop::HoldOut));
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
        let mut params = Params { form: form.into(), ..Params::paper() };
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
        let best = half.report().trace[half.report().best];
        assert_eq!(half.support_rows().len(), best.support);
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
            assert!(report.warnings.iter().any(|w| w.contains("trained on a part")), "{report:?}");

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
        let mut observer = |step: &Step| {
            if step.iteration == at {
                ask.send(()).unwrap();
                raised.recv().unwrap();
            }
            ControlFlow::Continue(())
        };
        let mut control =
            Control { observer: Some(&mut observer), interrupt: flag, ..Control::default() };
        let model = Model::fit_with(&data, &endless(Form::Full), &mut control).unwrap();
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
        let mut observer = |_: &Step| {
            // The thread is gone after the first step.
            let _ = begin.send(());
            ControlFlow::Continue(())
        };
        let mut control =
            Control { observer: Some(&mut observer), interrupt: flag, ..Control::default() };
        let model = Model::fit_with(&data, &endless(Form::Full), &mut control).unwrap();
        thread.join().unwrap();
        assert_sound(&model);
        assert_eq!(model.report().stop, Some(Stop::Interrupted));
        assert!(model.decision(data.x()).unwrap().into_vec().iter().all(|h| h.is_finite()));
    }
}

#[test]
fn a_flag_raised_before_the_start() {
    let mut control = Control::default();
    control.interrupt.store(true, Ordering::Relaxed);
    let error = Model::fit_with(&generated(50), &Params::default(), &mut control).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    // The flag stays with its owner: lowered again, the same control serves for another fit.
    control.interrupt.store(false, Ordering::Relaxed);
    assert!(Model::fit_with(&generated(50), &Params::default(), &mut control).is_ok());
}

/// The grid has no best so far. Large enough for one kernel matrix after the other, and small enough for
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
        let mut control = Control { interrupt: flag, ..Control::default() };
        let result = Model::fit_euclidean_with(&data, &Grid::default(), &mut control);
        let ended = std::time::Instant::now();
        let waited = ended.saturating_duration_since(thread.join().unwrap());
        assert!(matches!(result, Err(Error::Interrupted)), "{rows}");
        // 200 ms where nothing else runs; tests run side by side.
        assert!(waited < Duration::from_secs(2), "{rows}: {waited:?}");
    }
    let mut control = Control { time_limit: Some(Duration::from_millis(1)), ..Control::default() };
    let error = Model::fit_euclidean_with(&generated(1500), &Grid::default(), &mut control);
    assert!(matches!(error, Err(Error::Interrupted)));
    let data = generated(100);
    let watched =
        Model::fit_euclidean_with(&data, &Grid::default(), &mut Control::default()).unwrap();
    assert_eq!(watched, Model::fit_euclidean(&data, &Grid::default()).unwrap());
}

#[test]
fn no_time_at_all() {
    let mut control = Control { time_limit: Some(Duration::ZERO), ..Control::default() };
    let error = Model::fit_with(&generated(50), &Params::default(), &mut control).unwrap_err();
    assert!(matches!(error, Error::Interrupted), "{error}");
    assert!(error.to_string().contains("more time"), "{error}");
}

/// The third step sleeps until the time is over: what was learned before it is returned.
#[test]
fn time_that_runs_out() {
    let data = generated(100);
    for refit in [false, true] {
        let limit = Duration::from_millis(1500);
        let mut params = endless(Form::Full);
        params.refit = refit;
        let mut observer = |step: &Step| {
            if step.iteration == 3 {
                std::thread::sleep(limit);
            }
            ControlFlow::Continue(())
        };
        let mut control = Control {
            observer: Some(&mut observer),
            time_limit: Some(limit),
            ..Control::default()
        };
        let model = Model::fit_with(&data, &params, &mut control).unwrap();
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
    let limit = Some(Duration::from_secs(1));
    let mut control = Control { time_limit: limit, ..Control::default() };
    let model = Model::fit_with(&data, &endless(Form::Full), &mut control).unwrap();
    assert_sound(&model);
    let stop = model.report().stop.unwrap();
    assert!([Stop::TimeLimit, Stop::Minimum].contains(&stop), "{stop}");
    assert_eq!(model.report().refitted, model.report().warnings.is_empty());
}

#[test]
fn time_without_end_is_no_limit() {
    let data = generated(100);
    let plain = Model::fit(&data, &Params::default()).unwrap();
    for limit in [Duration::from_secs(3600), Duration::MAX] {
        let mut control = Control { time_limit: Some(limit), ..Control::default() };
        let model = Model::fit_with(&data, &Params::default(), &mut control).unwrap();
        assert_eq!(model.to_bytes().unwrap(), plain.to_bytes().unwrap());
    }
}

#[test]
fn c_stays_as_it_is_given() {
    let data = Generator { rows: 200, ..Default::default() }.generate().unwrap().data;
    for optimiser in [Optimiser::Lbfgs, Optimiser::ConjugateGradients] {
        let params =
            Params { initial_cost: 3.0, learn_cost: false, optimiser, ..Params::default() };
        let model = Model::fit(&data, &params).unwrap();
        assert!(model.report().trace.len() > 2);
        assert!(model.report().trace.iter().all(|step| (step.cost - 3.0).abs() < 1e-12));
        assert!((model.cost() - 3.0).abs() < 1e-12);
    }
}
