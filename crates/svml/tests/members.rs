//! The default, the mean of several SVMs: it solves what it should, and keeps all promises of a single SVM.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, missing_docs)]

mod by_definition;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use by_definition::{assert_defined, assert_optimal};
use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::Criterion;
use svml::Stop;
use svml::Surrogate;
use svml::{ClassWeight, EqualRows, FormChoice};
use svml::{Dataset, Error, Form, Generator, GridSearch, Kernel, Matrix, Model, Svml};
use svml::{Run, Step};

fn generator(rows: usize, noise: usize, rotated: bool, seed: u64) -> Generator {
    Generator { rows, noise, rotated, seed, flipped: 0.0, ..Generator::default() }
}

fn generated(rows: usize, noise: usize, rotated: bool, seed: u64) -> Dataset {
    generator(rows, noise, rotated, seed).generate().unwrap().data
}

/// What holds for any model of the default, ended early or not.
#[track_caller]
fn assert_sound(model: &Model, data: &Dataset, what: &str) {
    let (members, report) = (model.members(), model.report());
    let total: f64 = members.iter().map(|member| member.weight()).sum();
    assert!((total - 1.0).abs() < 1e-12, "{what}: weights add up to {total}");
    assert!(members.iter().all(|m| m.weight() > 0.0 && (1e-3..=1e4).contains(&m.cost())), "{what}");
    assert_eq!(model.cost().is_some(), members.len() == 1, "{what}");
    let h = model.decision(data.x()).unwrap();
    assert!(h.as_slice().iter().all(|h| h.is_finite()), "{what}");
    let p = model.probabilities(data.x()).unwrap();
    assert!(p.as_slice().iter().all(|p| (0.0..=1.0).contains(p)), "{what}");
    assert!(report.residual < 1e-6, "{what}: residual {}", report.residual);
    // One trace over all members, numbered through, in the order of time.
    assert!(report.trace.iter().enumerate().all(|(i, step)| step.iteration == i), "{what}");
    assert!(report.trace.windows(2).all(|pair| pair[0].seconds <= pair[1].seconds), "{what}");
    assert!(report.best < report.trace.len(), "{what}");
    // What was considered says what became of it.
    for c in &report.candidates {
        assert!((0.0..=1.0).contains(&c.error) && c.loss.is_none(), "{what}: {c:?}");
        let member = members.iter().find(|m| (m.kernel(), m.metric().form()) == (c.kernel, c.form));
        let weight = member.map_or(0.0, |member| member.weight());
        assert!((c.weight - weight).abs() < 1e-12, "{what}: {c:?} has {weight}");
        assert_eq!(c.chosen, member.is_some(), "{what}: {c:?}");
    }
    if !report.candidates.is_empty() {
        let total: f64 = report.candidates.iter().map(|c| c.weight).sum();
        assert!((total - 1.0).abs() < 1e-12, "{what}: {:?}", report.candidates);
    }
    // Probabilities rest on honest outputs wherever there are any.
    if let Some(honest) = report.honest {
        assert_eq!(model.temperature(), Some(honest.temperature), "{what}");
        assert!((0.0..=1.0).contains(&honest.error) && honest.log_loss >= 0.0, "{what}");
    }
    let bytes = model.to_bytes().unwrap();
    let loaded = Model::from_bytes(&bytes).unwrap();
    assert_eq!(loaded.to_bytes().unwrap(), bytes, "{what}");
    assert_eq!(loaded.decision(data.x()).unwrap(), h, "{what}");
}

/// Error of the default and of the grid.
fn errors(train: &Dataset, test: &Dataset) -> (f64, f64, Model) {
    let model = Model::fit(train, Svml::default()).unwrap();
    let grid = Model::fit(train, GridSearch::default()).unwrap();
    (model.error_rate(test).unwrap(), grid.error_rate(test).unwrap(), model)
}

/// Rows like those of `svml demo`, half as many: a circle in two directions of ten, with 5 % of labels flipped. Whether it is found
/// depends on how the rows are dealt into folds, so that this looks at nine deals, of which most must find it.
#[test]
fn the_hidden_circle_is_found() {
    let train = Generator::default().generate().unwrap();
    let test = Generator { rows: 2000, seed: 1, ..Generator::default() }.generate().unwrap().data;
    let grid = Model::fit(&train.data, GridSearch::default()).unwrap().error_rate(&test).unwrap();
    let mut fits: Vec<(f64, Model)> = (0..9)
        .map(|seed| {
            let model = Model::fit(&train.data, Svml { seed, ..Svml::default() }).unwrap();
            assert_sound(&model, &train.data, "demo");
            (model.error_rate(&test).unwrap(), model)
        })
        .collect();
    fits.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let errors: Vec<f64> = fits.iter().map(|(error, _)| *error).collect();
    eprintln!("demo: {errors:.4?}, grid {grid:.4}; {}", fits[0].1);
    let better = &fits[..5];
    let mean = better.iter().map(|(error, _)| error / 5.0).sum::<f64>();
    // No one can do better than the share of flipped labels.
    let flipped = 0.05;
    assert!(mean - flipped <= 0.5 * (grid - flipped), "{mean} against {grid}");
    for (_, model) in better {
        assert!(matches!(model.metric().form(), Form::Rank(2 | 3)), "{}", model.metric().form());
        let scale = &model.scaler().scale;
        let found = svml::internals::subspace_found(model.metric(), scale, &train.directions);
        assert!(found > 0.95, "{found}");
    }
}

/// With more rows one of the two directions of the circle may carry half of the trace of G, and be worth nothing alone.
#[test]
fn two_directions_that_count_alike_are_found() {
    let train = Generator { rows: 1000, ..Generator::default() }.generate().unwrap();
    for seed in 0..6 {
        let model = Model::fit(&train.data, Svml { seed, ..Svml::default() }).unwrap();
        let form = model.metric().form();
        assert!(matches!(form, Form::Rank(2 | 3)), "seed {seed}: {form}");
        let scale = &model.scaler().scale;
        let found = svml::internals::subspace_found(model.metric(), scale, &train.directions);
        assert!(found > 0.95, "seed {seed}: {found}");
    }
}

#[test]
fn the_error_is_at_most_half_of_the_grids_where_few_directions_matter() {
    for rotated in [false, true] {
        let (mut auto, mut grid) = (0.0, 0.0);
        for seed in 0..4 {
            let train = generated(500, 18, rotated, 2 * seed);
            let test = generated(2000, 18, rotated, 2 * seed + 1);
            let (one, other, model) = errors(&train, &test);
            eprintln!("rotated {rotated}, {seed}: {one:.4}, grid {other:.4}; {model}");
            (auto, grid) = (auto + one / 4.0, grid + other / 4.0);
        }
        assert!(auto <= 0.5 * grid, "rotated: {rotated}, {auto} against {grid}");
    }
}

/// A ball in all directions alike: no direction is dropped.
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
    for rotated in [false, true] {
        let data = generated(240, 8, rotated, 3);
        let mut seen = Vec::new();
        let mut run = Run::new().observer(|step| {
            seen.push(*step);
            ControlFlow::Continue(())
        });
        let model = Model::fit_with(&data, Svml::default(), &mut run).unwrap();
        drop(run);
        let report = model.report();
        assert_sound(&model, &data, "report");
        // Watching changes nothing, and the observer sees every step that is in the report.
        assert_eq!(seen, report.trace);
        let plain = Model::fit(&data, Svml::default()).unwrap();
        assert_eq!(plain.to_bytes().unwrap(), model.to_bytes().unwrap());

        let considered: Vec<(Kernel, Form)> =
            report.candidates.iter().map(|c| (c.kernel, c.form)).collect();
        assert_eq!(
            considered[..3],
            [
                (Kernel::Gaussian, Form::Sphere),
                (Kernel::Exponential, Form::Diagonal),
                (Kernel::Laplacian, Form::Sphere)
            ]
        );
        for (kernel, form) in &considered[3..] {
            assert!(*kernel == Kernel::Gaussian && matches!(form, Form::Rank(_)));
        }
        assert!(!report.stop.unwrap().is_early() && report.refitted);
        let honest = report.honest.unwrap();
        assert!((honest.guessing - 0.5).abs() < 0.1 && honest.standard_error > 0.0);
        assert!(!honest.is_no_better_than_guessing() && report.warnings.is_empty());
        assert!(honest.log_loss < std::f64::consts::LN_2, "{honest:?}");
        // Weights do not make it much worse than the best of the members.
        let best = report.candidates[..3].iter().map(|c| c.error).fold(1.0, f64::min);
        assert!(honest.error <= best + 0.05, "{honest:?} and {best}");

        // All three are learned on halves, then the members on all rows, in the same order.
        let stages = report.stages();
        let of = |half: bool| -> Vec<(Kernel, Form)> {
            let stages = stages.iter().filter(|stage| stage.half == half);
            stages.map(|stage| (stage.kernel.unwrap(), stage.form.unwrap())).collect()
        };
        let members: Vec<(Kernel, Form)> =
            model.members().iter().map(|m| (m.kernel(), m.metric().form())).collect();
        assert_eq!((of(true), of(false)), (considered[..3].to_vec(), members));
        assert!(stages[..3].iter().all(|stage| stage.half));
        let last = stages.last().unwrap().last;
        assert_eq!((stages[0].first, last + 1), (0, report.trace.len()));
        assert!(stages.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));

        let text = report.to_string();
        for part in ["gaussian sphere", "laplacian sphere", "% error on held-out rows", "guessing"]
        {
            assert!(text.contains(part), "{text}");
        }
        assert!(model.to_string().contains(&format!("{} support", model.support_rows().len())));
        let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(loaded.report().candidates, report.candidates);
        assert_eq!(loaded.report().honest, report.honest);
        assert_eq!(loaded.members(), model.members());
    }
    let data = generated(100, 2, false, 3);
    let fixed = Model::fit(&data, Svml { form: Form::Diagonal.into(), ..Svml::default() }).unwrap();
    assert!(fixed.report().candidates.is_empty() && fixed.report().honest.is_some());
    let paper = Model::fit(&data, Svml::paper()).unwrap();
    assert!(paper.report().honest.is_none());
}

/// Without cross-fitting nothing is weighed: all members alike, and nothing is said of their error.
#[test]
fn without_cross_fitting_all_members_count_the_same() {
    let data = generated(150, 4, false, 3);
    let model = Model::fit(&data, Svml { cross_fit: false, ..Svml::default() }).unwrap();
    assert_sound(&model, &data, "equal");
    assert_eq!(model.members().len(), 3);
    assert!(model.members().iter().all(|m| (m.weight() - 1.0 / 3.0).abs() < 1e-15));
    assert!(model.report().honest.is_none() && model.report().candidates.is_empty());
}

/// The metric of a mean: the mean of M, each scaled to a trace of one.
#[test]
fn the_metric_is_the_mean_of_those_of_the_members() {
    let data = generated(150, 4, false, 3);
    let model = Model::fit(&data, Svml::default()).unwrap();
    let d = data.columns();
    let mut m = Matrix::zeros(d, d);
    for member in model.members() {
        let own = member.metric().mahalanobis();
        let trace: f64 = (0..d).map(|k| own[(k, k)]).sum();
        let sums = m.as_mut_slice().iter_mut().zip(own.as_slice());
        sums.for_each(|(sum, own)| *sum += member.weight() / trace * own);
    }
    for (a, b) in model.metric().mahalanobis().as_slice().iter().zip(m.as_slice()) {
        assert!((a - b).abs() < 1e-12);
    }
    assert!((model.relevance().iter().sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn same_bits_for_any_threads_and_any_order_of_rows() {
    for (rotated, classes) in [(false, 2), (true, 2), (true, 3)] {
        let generator = Generator { classes, ..generator(150, 6, rotated, 5) };
        let data = generator.generate().unwrap().data;
        let fit = |data: &Dataset, threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Model::fit(data, Svml::default()).unwrap())
        };
        let one = fit(&data, 1);
        assert!(one.to_bytes().unwrap() == fit(&data, 4).to_bytes().unwrap());
        let back: Vec<usize> = (0..data.rows()).rev().collect();
        let turned = fit(&data.select(&back), 2);
        assert_eq!(one.decision(data.x()).unwrap(), turned.decision(data.x()).unwrap());
        assert_eq!(one.probabilities(data.x()).unwrap(), turned.probabilities(data.x()).unwrap());
        assert_eq!(one.report().honest, turned.report().honest);
    }
}

/// Exactly, to the last bit, where equal rows are copies of one observation.
#[test]
fn a_weight_of_two_is_the_row_twice() {
    for (rotated, classes) in [(false, 2), (true, 2), (true, 3)] {
        let generator = Generator { classes, ..generator(120, 4, rotated, 7) };
        let data = generator.generate().unwrap().data;
        let weights: Vec<f64> = (0..data.rows()).map(|i| 1.0 + f64::from(i % 3 == 0)).collect();
        let twice: Vec<usize> = (0..data.rows()).chain((0..data.rows()).step_by(3)).collect();
        for class_weight in [ClassWeight::None, ClassWeight::Balanced] {
            let equal_rows = EqualRows::Copies;
            let params = Svml { class_weight, equal_rows, ..Svml::default() };
            let weighted = data.clone().with_weights(weights.clone()).unwrap();
            let a = Model::fit(&weighted, &params).unwrap();
            let b = Model::fit(&data.select(&twice), &params).unwrap();
            assert_eq!(a.members(), b.members());
            assert_eq!(a.decision(data.x()).unwrap(), b.decision(data.x()).unwrap());
            assert_eq!(a.probabilities(data.x()).unwrap(), b.probabilities(data.x()).unwrap());
            assert_eq!(a.report().honest, b.report().honest);
            assert_eq!(a.report().candidates, b.report().candidates);
        }
    }
}

#[test]
fn class_weights_move_the_boundary() {
    let data = Generator { rows: 200, flipped: 0.2, ..Generator::default() };
    let data = data.generate().unwrap().data;
    let count = |class_weight: ClassWeight| {
        let model = Model::fit(&data, Svml { class_weight, ..Svml::default() }).unwrap();
        assert_sound(&model, &data, "class weights");
        model.predict(data.x()).unwrap().into_iter().filter(|&class| class == 1).count()
    };
    let favour =
        |class: usize| count(ClassWeight::Given([(data.classes()[class].clone(), 5.0)].into()));
    let (first, none, second) = (favour(0), count(ClassWeight::None), favour(1));
    assert!(first < none && none < second, "{first} {none} {second}");
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
                    assert_sound(&model, &data, &what);
                    assert!(model.error_rate(&data).unwrap() < 0.35, "{what}");
                    assert!(model.report().honest.is_some(), "{what}");
                }
            }
        }
    }
}

/// Points of a chess board, a tenth of one class, some of them many times over: here a C ten times as large is taken.
fn board(rows: usize, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut points = Vec::new();
    let mut labels = Vec::new();
    while points.len() < rows {
        let p: [f64; 2] = [rng.random_range(0.0..4.0), rng.random_range(0.0..4.0)];
        let black = (p[0].floor() + p[1].floor()) % 2.0 == 0.0;
        if !black || rng.random_bool(0.2) {
            points.push(p);
            labels.push(if black { "black" } else { "white" });
        }
    }
    Dataset::new(Matrix::from_rows(&points).unwrap(), &labels).unwrap()
}

/// The C that a member is said to have is the one that its SVM was trained with, whatever the criterion, also where C
/// was multiplied after learning.
#[test]
fn members_are_trained_with_the_c_that_they_say() {
    let mut multiplied = 0;
    for seed in 0..3 {
        let data = board(600, seed);
        for criterion in [Criterion::KFold(2), Criterion::HoldOut, Criterion::LeaveOneOut] {
            let params = Svml { criterion, ..Svml::default() };
            let model = Model::fit(&data, &params).unwrap();
            assert_sound(&model, &data, "board");
            assert_defined(&model, data.x(), "board");
            let what = format!("board {seed}, {criterion}");
            assert_optimal(&model, data.x(), data.y(), data.weights(), &what);
            // The C of the last step of a member is what was learned.
            let stages = model.report().stages().into_iter().filter(|stage| !stage.half);
            for (member, stage) in model.members().iter().zip(stages) {
                let learned = model.report().trace[stage.last].svml.unwrap().cost;
                multiplied += usize::from(member.cost() > 5.0 * learned);
            }
        }
    }
    assert!(multiplied > 0, "nothing was multiplied: the test tests nothing");
}

#[test]
fn odd_data() {
    let rows = |x: &[&[f64]], labels: &[&str]| {
        Dataset::new(Matrix::from_rows(x).unwrap(), labels).unwrap()
    };
    let labels = |n: usize| -> Vec<&str> { (0..n).map(|i| ["a", "b"][i % 2]).collect() };
    let wide = Matrix::from_fn(8, 40, |i, k| ((i * 7 + k * 3) % 11) as f64);
    let same = Matrix::from_fn(12, 2, |i, _| (i % 2) as f64);
    let all_same = Matrix::from_fn(12, 2, |_, _| 3.0);
    let opposite = Matrix::from_fn(40, 2, |i, k| ((i / 2 * (k + 1)) % 7) as f64);
    let constant = Matrix::from_fn(20, 3, |i, k| if k == 0 { (i * i % 7) as f64 } else { 4.0 });
    let mut outlier = Matrix::from_fn(60, 2, |i, k| ((i * (k + 3) * 7) % 13) as f64);
    outlier[(7, 1)] = 1e160;
    for (what, data) in [
        ("three rows", rows(&[&[0.0], &[1.0], &[2.0]], &["a", "b", "b"])),
        ("one column", rows(&[&[0.0], &[1.0], &[2.0], &[5.0]], &["a", "a", "b", "b"])),
        ("more columns than rows", Dataset::new(wide, &labels(8)).unwrap()),
        ("two distinct training rows", Dataset::new(same, &labels(12)).unwrap()),
        ("equal rows of both classes", Dataset::new(all_same, &labels(12)).unwrap()),
        ("every row with both labels", Dataset::new(opposite, &labels(40)).unwrap()),
        ("constant columns", Dataset::new(constant, &labels(20)).unwrap()),
        ("an outlier", Dataset::new(outlier, &labels(60)).unwrap()),
        (
            "huge values",
            rows(&[&[1e60, 1.0], &[-1e60, 2.0], &[3e60, 0.5], &[1e59, 1.5]], &labels(4)),
        ),
        ("a single row of a class", rows(&[&[0.0], &[1.0], &[2.0], &[5.0]], &["a", "a", "a", "b"])),
    ] {
        let model = Model::fit(&data, Svml::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_sound(&model, &data, what);
    }
}

/// Rows out of all proportion are infinitely far from every support vector.
#[test]
fn rows_to_predict_that_are_out_of_all_proportion() {
    let data = generated(80, 2, false, 3);
    let model = Model::fit(&data, Svml::default()).unwrap();
    let expected: f64 = model.members().iter().map(|m| m.weight() * m.bias()[0]).sum();
    for value in [1e300, -1e300, 1e170] {
        let h = model.decision(&Matrix::from_fn(2, 4, |_, _| value)).unwrap();
        assert!(h.as_slice().iter().all(|h| (h - expected).abs() < 1e-12), "{h:?} {expected}");
    }
}

/// Ended at any step, what is best so far comes back: the members that were learned.
#[test]
fn it_can_be_ended_at_any_step() {
    for (rotated, seed) in [(false, 11), (true, 12)] {
        let data = generated(120, 6, rotated, seed);
        let model = Model::fit(&data, Svml::default()).unwrap();
        let (steps, whole) = (model.report().trace.len(), model.report().stages());
        for last in 0..steps {
            let observer = |step: &Step| match step.iteration >= last {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let mut run = Run::new().observer(observer);
            let model = Model::fit_with(&data, Svml::default(), &mut run).unwrap();
            let what = format!("rotated {rotated}, step {last} of {steps}");
            assert_sound(&model, &data, &what);
            let report = model.report();
            assert_eq!(report.stop, Some(Stop::Interrupted), "{what}");
            assert_eq!(report.trace.len(), last + 1, "{what}");
            let stages = report.stages();
            let kind = |s: &svml::Stage| (s.kernel, s.form);
            assert!(stages.iter().map(kind).eq(whole.iter().map(kind).take(stages.len())));
            assert!(model.members().len() <= stages.len(), "{what}");
            // An error is told only if something was asked on rows that it was not learned on.
            assert_eq!(report.honest.is_some(), stages.len() > 1, "{what}: {:?}", report.honest);
        }
    }
}

#[track_caller]
fn assert_model_or_interrupted(result: svml::Result<Model>, data: &Dataset, what: &str) -> bool {
    match result {
        Ok(model) => assert_sound(&model, data, what),
        Err(error) => {
            assert!(matches!(error, Error::Interrupted), "{what}: {error}");
            return false;
        }
    }
    true
}

/// Ended at any time, by the clock or by the flag, also in the middle of a step or of the cross-fitting.
#[test]
fn it_can_be_ended_at_any_time() {
    let data = generated(240, 8, true, 11);
    let started = Instant::now();
    let model = Model::fit(&data, Svml::default()).unwrap();
    let whole = started.elapsed();
    assert_sound(&model, &data, "whole");
    let mut models = 0;
    for part in 0..24 {
        let limit = whole * part / 20;
        let mut run = Run::new().time_limit(limit);
        let result = Model::fit_with(&data, Svml::default(), &mut run);
        models += usize::from(assert_model_or_interrupted(result, &data, &format!("{limit:?}")));
    }
    for part in 0..12 {
        let delay = whole * part / 12;
        let flag = Arc::new(AtomicBool::new(false));
        let remote = flag.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(delay);
            remote.store(true, Ordering::Relaxed);
        });
        let mut run = Run::new().interrupt(flag);
        let result = Model::fit_with(&data, Svml::default(), &mut run);
        thread.join().unwrap();
        models += usize::from(assert_model_or_interrupted(result, &data, &format!("{delay:?}")));
    }
    assert!(models > 5, "{models} models: the test tests nothing");
    for micros in [0, 100, 300, 1000] {
        let mut run = Run::new().time_limit(Duration::from_micros(micros));
        let result = Model::fit_with(&data, Svml::default(), &mut run);
        assert_model_or_interrupted(result, &data, &format!("{micros} us"));
    }
    let mut run = Run::new().interrupt(Arc::new(AtomicBool::new(true)));
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
