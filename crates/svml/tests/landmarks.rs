//! SVMs on landmarks: against the exact SVM, and their gradients against finite differences.

#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::{AtomicUsize, Ordering};

use svml::internals::kernel::Gram;
use svml::internals::landmarks::{
    Answer, LandmarkKernel, LandmarkProblems, LandmarkSvms, Landmarks, LocalRows, Part, Problem,
    Question, Rows, Tree,
};
use svml::internals::loss::{Loss, Surrogate};
use svml::internals::multiclass::solve_pair;
use svml::internals::{LabelledRows, ManyRows, Watch, kernel, pairs};
use svml::{
    Dataset, Error, Form, Generator, Kernel, LandmarkChoice, Matrix, Metric, Model, Run, Stop, Svml,
};

/// Rows that overlap, of some classes, with weights.
fn rows(n: usize, d: usize, classes: usize) -> (Matrix, LabelledRows) {
    let value = |i: usize, k: usize| ((i * 37 + k * 101 + i * i % 29) as f64 * 0.713).sin();
    let x = Matrix::from_fn(n, d, |i, k| {
        1.5 * value(i, k) + 0.8 * ((i % classes) as f64) * (k == 0) as u8 as f64
    });
    let class = (0..n).map(|i| i % classes).collect();
    let weight = (0..n).map(|i| 0.5 + (i % 5) as f64 * 0.4).collect();
    (x, LabelledRows { index: (0..n).collect(), class, weight })
}

fn part(rows: &LabelledRows, keep: impl Fn(usize) -> bool) -> LabelledRows {
    let chosen: Vec<usize> = (0..rows.index.len()).filter(|&i| keep(i)).collect();
    LabelledRows {
        index: chosen.iter().map(|&i| rows.index[i]).collect(),
        class: chosen.iter().map(|&i| rows.class[i]).collect(),
        weight: chosen.iter().map(|&i| rows.weight[i]).collect(),
    }
}

fn metric(form: Form, d: usize) -> Metric {
    // The diagonal of L is large, so that rows do not come close to each other.
    let on_diagonal = |k: usize| match form {
        Form::Full | Form::Rank(_) => f64::from(u8::from(k / d == k % d)),
        _ => 1.0,
    };
    let value = |k: usize| 0.5 * on_diagonal(k) + 0.1 * (k as f64 * 1.7).sin();
    let values = (0..form.len(d)).map(value).collect();
    Metric::new(form, d, values).unwrap()
}

const ALL: [(Kernel, Form); 8] = [
    (Kernel::Gaussian, Form::Sphere),
    (Kernel::Gaussian, Form::Diagonal),
    (Kernel::Gaussian, Form::Full),
    (Kernel::Gaussian, Form::Rank(2)),
    (Kernel::Exponential, Form::Sphere),
    (Kernel::Exponential, Form::Diagonal),
    (Kernel::Laplacian, Form::Sphere),
    (Kernel::Laplacian, Form::Diagonal),
];

fn svms<'a>(
    x: &'a Matrix,
    all: &LabelledRows,
    classes: usize,
    count: usize,
    (kernel, metric): (Kernel, &Metric),
    keep: u64,
) -> LandmarkSvms<'a> {
    let watch = Watch::default();
    let landmarks = Landmarks::choose(x, &all.class, classes, count, metric, &watch).unwrap();
    let problems = problems(classes);
    let given = LandmarkProblems { kernel, metric, problems, guess: None };
    LandmarkSvms::of_folds(x, &folds(all), landmarks, given, keep, &watch).unwrap()
}

fn folds(all: &LabelledRows) -> [LabelledRows; 2] {
    [0, 1].map(|fold| part(all, move |i| i / 3 % 2 == fold))
}

/// Each fold is validated by SVMs of the other.
fn problems(classes: usize) -> Vec<Problem> {
    let of = |train, valid| Problem::of_pairs(classes, train, valid);
    [of(&[true, false], &[false, true]), of(&[false, true], &[true, false])].concat()
}

#[test]
fn with_every_row_a_landmark_it_is_the_exact_svm() {
    for (kernel, form) in ALL {
        for (n, classes) in [(150, 2), (160, 4)] {
            let (x, all) = rows(n, 4, classes);
            let metric = metric(form, 4);
            let folds = folds(&all);
            for cost in [0.1, 3.0, 100.0] {
                let svms = svms(&x, &all, classes, n, (kernel, &metric), 1 << 30);
                let mut svms = svms.tolerance(1e-20);
                let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
                svms.evaluate(cost, loss).unwrap();
                let gram =
                    kernel::backend().gram(&x, n, &metric, kernel, &Watch::default()).unwrap();
                let pairs = pairs(classes);
                for p in 0..svms.count() {
                    let rows = folds[p / pairs.len()].of_pair(pairs[p % pairs.len()]);
                    let exact = solve_pair(&*gram, &rows, cost, None).unwrap().trained.svm;
                    let own = svms.svm(p);
                    let of_pair = all.of_pair(pairs[p % pairs.len()]).index;
                    let [a, b] = [&exact, &own].map(|svm| {
                        let h = gram.multiply(&of_pair, &svm.support, &svm.beta);
                        h.into_iter().map(|h| h + svm.bias).collect::<Vec<_>>()
                    });
                    let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(worst < 1e-8, "{kernel} {form} {classes} C={cost}: {worst:e}");
                }
            }
        }
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    for (kernel, form) in ALL {
        for (surrogate, classes) in [(Surrogate::SquaredHinge, 2), (Surrogate::Logistic, 3)] {
            let (x, all) = rows(180, 4, classes);
            let start = metric(form, 4);
            let loss = Loss { surrogate, steepness: 2.0 };
            let svms = svms(&x, &all, classes, 30, (kernel, &start), 1 << 30);
            let mut svms = svms.tolerance(1e-20);
            let mut at = |values: &[f64], cost: f64| {
                svms.set_metric(&Metric::new(form, 4, values.to_vec()).unwrap()).unwrap();
                svms.evaluate(cost, loss).unwrap()
            };
            let cost = 2.0;
            let here = at(start.values(), cost);
            let h = 1e-5;
            let close = |a: f64, b: f64, what: &str| {
                assert!(
                    (a - b).abs() < 1e-6 * (1.0 + b.abs()),
                    "{kernel} {form} {classes} {what}: {a} {b}"
                );
            };
            for k in 0..start.values().len() {
                let moved = |by: f64| {
                    let mut values = start.values().to_vec();
                    values[k] += by;
                    values
                };
                let difference = (at(&moved(h), cost).loss - at(&moved(-h), cost).loss) / (2.0 * h);
                close(here.d_metric[k], difference, "L");
            }
            let up = at(start.values(), cost * h.exp()).loss;
            let down = at(start.values(), cost * (-h).exp()).loss;
            close(here.d_log_cost, (up - down) / (2.0 * h), "log C");
        }
    }
}

fn choose(x: &Matrix, class: &[usize], classes: usize, count: usize) -> Landmarks {
    let metric = Metric::isotropic(Form::Sphere, x.cols(), 0.7).unwrap();
    Landmarks::choose(x, class, classes, count, &metric, &Watch::default()).unwrap()
}

#[test]
fn equal_rows_are_one_landmark() {
    // Ten different rows, 30 times each, in two classes.
    let x = Matrix::from_fn(600, 2, |i, k| ((i % 10) * (k + 1)) as f64 * 0.3);
    let class: Vec<usize> = (0..600).map(|i| i / 300).collect();
    let landmarks = choose(&x, &class, 2, 100);
    assert_eq!(landmarks.starts, [0, 10, 20]);
    for rows in [&landmarks.rows[..10], &landmarks.rows[10..]] {
        let mut different: Vec<usize> = rows.iter().map(|row| row % 10).collect();
        different.sort_unstable();
        assert_eq!(different, (0..10).collect::<Vec<_>>());
    }
}

#[test]
fn a_rare_class_keeps_its_rows() {
    let x = Matrix::from_fn(5000, 3, |i, k| ((i * (k + 3)) as f64 * 0.37).sin());
    let class: Vec<usize> = (0..5000).map(|i| usize::from(i % 500 == 7)).collect();
    let landmarks = choose(&x, &class, 2, 200);
    assert_eq!(landmarks.starts, [0, 190, 200]);
    assert_eq!(choose(&x, &class, 2, 200), landmarks);
    // All rows, if there are no more.
    assert_eq!(choose(&x, &class, 2, 6000).rows.len(), 5000);
}

/// Blocks that are computed again, other numbers of threads: the same bits.
#[test]
fn neither_memory_nor_threads_change_a_bit() {
    let (x, all) = rows(5000, 4, 3);
    let metric = metric(Form::Diagonal, 4);
    let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
    let evaluated = |memory: u64, threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut svms = svms(&x, &all, 3, 120, (Kernel::Exponential, &metric), memory);
            let evaluated = svms.evaluate(1.5, loss).unwrap();
            (evaluated, (0..svms.count()).map(|p| svms.svm(p)).collect::<Vec<_>>())
        })
    };
    let first = evaluated(u64::MAX, 1);
    for (memory, threads) in [(0, 1), (1 << 21, 1), (u64::MAX, 2), (0, 3), (1 << 21, 8)] {
        assert!(evaluated(memory, threads) == first, "{memory} bytes, {threads} threads");
    }
}

/// Rows of two classes whose boundary is curved in three of five columns.
fn generated(rows: usize) -> Dataset {
    let mut state = rows as u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 22) - 2.0
    };
    let x = Matrix::from_fn(rows, 5, |_, _| random());
    let side = |x: &[f64]| x[0] * x[1] + x[2] + 0.2 * random() > 0.0;
    let class: Vec<usize> = x.iter_rows().map(side).map(usize::from).collect();
    Dataset::new(x, &class).unwrap()
}

fn params(landmarks: usize) -> Svml {
    Svml { landmarks: LandmarkChoice::Count(landmarks), ..Svml::default() }
}

#[test]
fn a_model_on_landmarks_is_a_model() {
    let (train, test) = (generated(1200), generated(3000));
    let model = Model::fit(&train, params(100)).unwrap();
    let exact = Model::fit(&train, Svml::default()).unwrap();
    let landmarks = model.report().landmarks.unwrap();
    assert_eq!((landmarks.learned, landmarks.in_model), (100, Some(100)));
    assert_eq!(exact.report().landmarks, None);
    let shown = model.to_string();
    assert!(shown.contains("landmarks or support vectors"), "{shown}");
    assert!(exact.to_string().contains(" support vectors\n"), "{exact}");
    for member in model.members() {
        let used = member.beta().as_slice().iter().filter(|beta| **beta != 0.0).count();
        assert!(used <= 100, "{used}");
    }
    let errors = [&model, &exact].map(|model| model.error_rate(&test).unwrap());
    assert!(errors[0] < errors[1] + 0.03, "{errors:?}");
    let honest = model.report().honest.unwrap();
    assert!((honest.error - errors[0]).abs() < 0.05, "{honest:?} {errors:?}");
    let p = model.probabilities(test.x()).unwrap();
    assert!(p.iter_rows().all(|p| (p[0] + p[1] - 1.0).abs() < 1e-12));
    let bytes = model.to_bytes().unwrap();
    assert!(Model::from_bytes(&bytes).unwrap().to_bytes().unwrap() == bytes);
    // A limit on memory changes nothing else.
    let little = Svml { memory_limit: Some(7_400_000), ..params(100) };
    let little = Model::fit(&train, little).unwrap();
    assert_eq!(little.decision(test.x()).unwrap(), model.decision(test.x()).unwrap());
}

/// Without outputs of other rows to calibrate by, half of the rows calibrate the other.
#[test]
fn one_form_without_cross_fitting_has_probabilities() {
    let (train, test) = (generated(800), generated(2000));
    let params = Svml { form: Form::Diagonal.into(), cross_fit: false, ..params(80) };
    let model = Model::fit(&train, params).unwrap();
    assert!(model.report().honest.is_none());
    assert!(
        model.to_string().contains(", one SVM, ") && model.to_string().contains(" landmarks\n")
    );
    let labels: Vec<&str> = test.y().iter().map(|&y| test.classes()[y].as_str()).collect();
    let measures = model.measure(test.x(), &labels).unwrap();
    assert!(measures.log_loss.unwrap() < 0.6, "{measures:?}");
}

#[test]
fn several_classes_one_of_them_rare() {
    let x = Matrix::from_fn(900, 2, |i, k| {
        let centre = [[0.0, 0.0], [2.0, 0.5], [0.5, 2.5]][if i % 90 == 0 { 2 } else { i % 2 }];
        centre[k] + 0.5 * ((i * (k + 2)) as f64 * 1.37).sin()
    });
    let class: Vec<usize> = (0..900).map(|i| if i % 90 == 0 { 2 } else { i % 2 }).collect();
    let data = Dataset::new(x, &class).unwrap();
    let model = Model::fit(&data, params(60)).unwrap();
    assert!(model.error_rate(&data).unwrap() < 0.02);
    let predicted = model.predict(data.x()).unwrap();
    assert!(predicted.iter().zip(&class).filter(|(_, c)| **c == 2).all(|(p, _)| *p == 2));
}

#[test]
fn an_interrupt_ends_it_with_what_there_is() {
    let data = generated(3000);
    let mut steps = 0;
    let mut run = Run::new().observer(|_| {
        steps += 1;
        if steps == 4 {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    let model = Model::fit_with(&data, params(100), &mut run).unwrap();
    drop(run);
    assert_eq!(model.report().stop, Some(Stop::Interrupted));
    assert!(model.error_rate(&data).unwrap() < 0.4);
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let error = Model::fit_with(&data, params(100), &mut Run::new().interrupt(flag)).unwrap_err();
    assert!(matches!(error, Error::Interrupted));
}

/// So many rows that nothing is learned on all of them after the halves.
#[test]
fn every_step_of_many_rows_is_shown_once() {
    let data = generated(8200);
    let mut shown = 0;
    let mut run = Run::new().observer(|_| {
        shown += 1;
        std::ops::ControlFlow::Continue(())
    });
    let model = Model::fit_with(&data, params(60), &mut run).unwrap();
    drop(run);
    let report = model.report();
    assert_eq!(report.trace.len(), shown);
    assert!(report.best < shown, "{} of {shown}", report.best);
}

#[test]
fn how_many_landmarks_is_written_and_read() {
    for text in ["auto", "exact", "750"] {
        assert_eq!(text.parse::<LandmarkChoice>().unwrap().to_string(), text);
    }
    for bad in ["", "0", "-1", "some"] {
        let error = bad.parse::<LandmarkChoice>().unwrap_err().to_string();
        assert!(error.contains("at least 1"), "{error}");
    }
    let method: svml::Method = "svml:landmarks=300".parse().unwrap();
    assert_eq!(method.to_string().parse::<svml::Method>().unwrap(), method);
}

/// The generated classes lie along two directions that are no columns.
#[test]
fn few_directions_are_found_through_landmarks() {
    let of = |rows: usize, seed: u64| {
        Generator { rows, seed, ..Generator::default() }.generate().unwrap()
    };
    let (train, test) = (of(2500, 2).data, of(2500, 3).data);
    let model = Model::fit(&train, params(300)).unwrap();
    assert!(matches!(model.metric().form(), Form::Rank(_)), "{model}");
    assert!(model.error_rate(&test).unwrap() < 0.1);
}

/// Where memory does not allow both folds at a time, they are trained one after the other.
#[test]
fn folds_take_turns_where_memory_is_short() {
    let data = generated(600);
    let short = Svml { memory_limit: Some(16 * 600 * 600), ..Svml::default() };
    let model = Model::fit(&data, short.clone()).unwrap();
    let roomy = Model::fit(&data, Svml::default()).unwrap();
    assert_eq!(model.decision(data.x()).unwrap(), roomy.decision(data.x()).unwrap());
    let shorter = Svml { memory_limit: Some(16 * 600 * 600 - 1), ..short };
    assert!(matches!(Model::fit(&data, shorter), Err(Error::TooLarge { .. })));
}

#[test]
fn memory_that_is_needed_grows_with_the_rows_through_landmarks() {
    let (small, large) = (generated(1000), generated(20_000));
    let needed = |data: &Dataset, params: Svml| params.memory_needed(data);
    assert!(needed(&small, Svml::default()) >= 16 * 1000 * 1000);
    let exact = Svml { landmarks: LandmarkChoice::Exact, ..Svml::default() };
    assert!(needed(&large, exact) >= 16 * 20_000 * 20_000);
    assert!(needed(&large, Svml::default()) < 5 << 29);
    let some = Svml { landmarks: LandmarkChoice::Count(2000), ..Svml::default() };
    assert!(needed(&large, some) < 1 << 30);
    let little = Svml { memory_limit: Some(200 << 20), ..Svml::default() };
    assert!(needed(&large, little) < needed(&large, Svml::default()));
}

/// So many rows that they are learned from in parts.
#[test]
fn many_rows_are_learned_from_in_parts() {
    let (train, test) = (generated(140_000), generated(3000));
    let mut shown = 0;
    let mut run = Run::new().observer(|_| {
        shown += 1;
        std::ops::ControlFlow::Continue(())
    });
    let model = Model::fit_with(&train, params(60), &mut run).unwrap();
    drop(run);
    let report = model.report();
    assert_eq!((report.rows, report.trace.len()), (140_000, shown));
    assert!(report.refitted && report.warnings.is_empty(), "{report}");
    let error = model.error_rate(&test).unwrap();
    let honest = report.honest.unwrap();
    assert!((honest.error - error).abs() < 0.02, "{honest:?} {error}");
    // Support vectors are the rows that they say they are.
    for (&row, support) in model.support_rows().iter().zip(model.support_vectors().iter_rows()) {
        assert_eq!(train.x().row(row), support);
    }
    let bytes = model.to_bytes().unwrap();
    assert!(Model::from_bytes(&bytes).unwrap().to_bytes().unwrap() == bytes);
}

/// Parts of different sizes, one of them empty.
const ENDS: [usize; 6] = [0, 1200, 1201, 1201, 3100, 6000];

fn parts(data: &Dataset) -> Vec<Part<'_>> {
    let ends = ENDS.windows(2).enumerate();
    ends.map(|(number, ends)| {
        let (class, weight) = (&data.y()[ends[0]..ends[1]], &data.weights()[ends[0]..ends[1]]);
        let x = std::borrow::Cow::Borrowed(data.x());
        Part::of_rows(x, (number, ends[0]), class, weight, 2, &[])
    })
    .collect()
}

/// Rows whose parts are lost after every question, and answer in any order.
struct Forgetful<'a>(&'a Dataset);

impl Rows for Forgetful<'_> {
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> svml::Result<Answer> {
        let mut answers: Vec<(usize, Answer)> = Vec::new();
        for (number, part) in parts(self.0).into_iter().enumerate().rev() {
            answers.push((number, part.answer(kernel, question, 0, &Watch::default())?));
        }
        answers.sort_by_key(|(number, _)| *number);
        let mut tree = Tree::default();
        answers.into_iter().for_each(|(_, answer)| tree.push(answer));
        Ok(tree.total().unwrap())
    }
}

#[test]
fn parts_that_are_lost_are_made_again_with_the_same_bits() {
    let data = generated(6000);
    let fit = |rows: &dyn Rows, params: Svml| {
        let (schema, classes) = (data.schema(), data.classes());
        let method = svml::Method::Svml(params.clone());
        let many = ManyRows { rows, schema, classes };
        many.fit(&method, &params, &mut Run::new()).unwrap().to_bytes().unwrap()
    };
    // A form that is given, because learning from a sample is not what is tested.
    for kernel in [Kernel::Gaussian, Kernel::Laplacian] {
        let params = Svml { form: Form::Diagonal.into(), kernel, ..params(50) };
        let kept = fit(&LocalRows::new(parts(&data), u64::MAX, &Watch::default()), params.clone());
        assert!(fit(&Forgetful(&data), params) == kept, "{kernel}");
    }
}

/// One class has ten rows among many.
#[test]
fn a_class_of_ten_rows_among_many() {
    let all = generated(140_000);
    let rare = |i: usize| i % 14_000 == 77;
    let class: Vec<usize> =
        all.y().iter().enumerate().map(|(i, &y)| if rare(i) { 2 } else { y }).collect();
    let x = Matrix::from_fn(140_000, 5, |i, k| {
        all.x()[(i, k)] + if rare(i) && k == 3 { 6.0 } else { 0.0 }
    });
    let data = Dataset::new(x, &class).unwrap();
    let model = Model::fit(&data, params(90)).unwrap();
    let predicted = model.predict(data.x()).unwrap();
    let found = (0..140_000).filter(|&i| rare(i) && predicted[i] == 2).count();
    let wrongly = (0..140_000).filter(|&i| !rare(i) && predicted[i] == 2).count();
    assert!(found >= 9 && wrongly < 20, "{found} of 10, {wrongly} others");
}

/// The outputs of an SVM on landmarks at some rows.
fn outputs(gram: &dyn Gram, svms: &LandmarkSvms<'_>, p: usize, rows: &[usize]) -> Vec<f64> {
    let svm = svms.svm(p);
    let sums = gram.multiply(rows, &svm.support, &svm.beta);
    sums.into_iter().map(|sum| sum + svm.bias).collect()
}

/// Shares of the weight on the wrong side, counted from the outputs; and how far outputs still move on the rows inside of
/// the margin, which is what the residual says.
#[test]
fn errors_and_the_residual_are_those_of_the_outputs() {
    let (classes, cost) = (3, 2.0);
    let (x, all) = rows(240, 3, classes);
    let metric = metric(Form::Diagonal, 3);
    let gram =
        kernel::backend().gram(&x, 240, &metric, Kernel::Exponential, &Watch::default()).unwrap();
    let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
    let of = |tolerance: f64| {
        let svms = svms(&x, &all, classes, 60, (Kernel::Exponential, &metric), 1 << 30);
        let mut svms = svms.tolerance(tolerance);
        svms.evaluate(cost, loss).unwrap();
        svms
    };
    let (loose, exact) = (of(1e-3), of(1e-20));
    assert!(exact.residual() < 1e-7, "{:e}", exact.residual());
    let (folds, pairs) = (folds(&all), pairs(classes));
    let (mut wrong, mut total, mut moved) = ([0.0; 2], [0.0; 2], 0.0f64);
    for p in 0..loose.count() {
        let (train, valid) = (p / pairs.len(), 1 - p / pairs.len());
        for (part, fold) in [train, valid].into_iter().enumerate() {
            let rows = folds[fold].of_pair(pairs[p % pairs.len()]);
            let before = outputs(&*gram, &loose, p, &rows.index);
            let after = outputs(&*gram, &exact, p, &rows.index);
            let (mut square, mut inside) = (0.0, 0.0);
            for i in 0..before.len() {
                total[part] += rows.weight[i];
                wrong[part] += if rows.y[i] * before[i] > 0.0 { 0.0 } else { rows.weight[i] };
                if part == 0 && rows.y[i] * before[i] < 1.0 {
                    square += rows.weight[i] * (after[i] - before[i]).powi(2);
                    inside += rows.weight[i];
                }
            }
            moved = moved.max((square / f64::max(inside, 1e-300)).sqrt());
        }
    }
    let errors = loose.errors();
    assert!((errors.0 - wrong[0] / total[0]).abs() < 1e-12, "{errors:?} {wrong:?}");
    assert!((errors.1 - wrong[1] / total[1]).abs() < 1e-12, "{errors:?} {wrong:?}");
    assert!(errors.0 > 0.0 && errors.1 > 0.0 && errors.0 < 0.5, "{errors:?}");
    let residual = loose.residual();
    assert!(moved > 1e-5 && moved < 1.2 * residual && residual < 5.0 * moved, "{moved} {residual}");
}

/// A fit that goes on puts SVMs where they were: the next evaluation has the same bits as if they had never been away.
#[test]
fn svms_go_back_to_where_they_were() {
    let (x, all) = rows(200, 3, 3);
    let (first, second) = (metric(Form::Diagonal, 3), metric(Form::Sphere, 3));
    let second = Metric::isotropic(Form::Diagonal, 3, second.values()[0]).unwrap();
    let loss = Loss { surrogate: Surrogate::Logistic, steepness: 2.0 };
    let fresh = || svms(&x, &all, 3, 40, (Kernel::Gaussian, &first), 1 << 30);
    let mut there = fresh();
    there.evaluate(1.0, loss).unwrap();
    let places = there.places();
    there.set_metric(&second).unwrap();
    let expected = there.evaluate(5.0, loss).unwrap();

    let mut back = fresh();
    assert!(back.go_back_to(&places));
    assert_eq!(back.places(), places);
    back.set_metric(&second).unwrap();
    assert!(back.evaluate(5.0, loss).unwrap() == expected);

    // Places of other SVMs change nothing.
    let here = back.places();
    let mut longer = places.clone();
    longer[1].0.push(0.0);
    for wrong in [&places[1..], &longer, &[]] {
        assert!(!back.go_back_to(wrong));
        assert_eq!(back.places(), here);
    }
}

/// Rows that count the steps that they are asked about.
struct Counting<'a>(LocalRows<'a>, &'a AtomicUsize);

impl Rows for Counting<'_> {
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> svml::Result<Answer> {
        self.1.fetch_add(usize::from(matches!(question, Question::Step { .. })), Ordering::Relaxed);
        self.0.ask(kernel, question)
    }
}

/// Newton's method needs a few steps, with one question each, and next to none from where it has ended.
#[test]
fn newtons_method_ends_after_a_few_steps() {
    let (n, watch) = (120, Watch::default());
    let (x, all) = rows(n, 2, 2);
    let metric = Metric::isotropic(Form::Sphere, 2, 1.0).unwrap();
    for kernel in [Kernel::Gaussian, Kernel::Exponential] {
        for cost in [0.1, 3.0, 100.0] {
            let steps = AtomicUsize::new(0);
            let landmarks = Landmarks::choose(&x, &all.class, 2, n, &metric, &watch).unwrap();
            let problems = Problem::of_pairs(2, &[true], &[false]);
            let given = LandmarkProblems { kernel, metric: &metric, problems, guess: None };
            let part = Part::of_folds(&x, std::slice::from_ref(&all), 2);
            let rows = Counting(LocalRows::new(vec![part], 1 << 30, &watch), &steps);
            let chosen = (x.select_rows(&landmarks.rows), landmarks);
            let mut svms = LandmarkSvms::new(Box::new(rows), chosen, None, given, &watch).unwrap();
            svms.train(cost).unwrap();
            let first = steps.swap(0, Ordering::Relaxed);
            svms.train(cost).unwrap();
            let again = steps.swap(0, Ordering::Relaxed);
            assert!((2..30).contains(&first) && again < 6, "{kernel} C={cost}: {first}, {again}");
        }
    }
}

/// More landmarks than a tile has rows, and rows of more than one block.
#[test]
fn gradients_of_many_landmarks_and_rows() {
    let (x, all) = rows(2200, 2, 2);
    let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
    let forms = [
        (Kernel::Gaussian, Form::Full),
        (Kernel::Exponential, Form::Full),
        (Kernel::Exponential, Form::Diagonal),
        (Kernel::Laplacian, Form::Diagonal),
        (Kernel::Exponential, Form::Sphere),
    ];
    for (kernel, form) in forms {
        let start = metric(form, 2);
        let svms = svms(&x, &all, 2, 150, (kernel, &start), 1 << 30);
        let mut svms = svms.tolerance(1e-20);
        let mut at = |values: &[f64], cost: f64| {
            svms.set_metric(&Metric::new(form, 2, values.to_vec()).unwrap()).unwrap();
            svms.evaluate(cost, loss).unwrap()
        };
        let here = at(start.values(), 2.0);
        let close = |found: f64, expected: f64| {
            let off = (found - expected).abs();
            assert!(off < 1e-5 * (1.0 + expected.abs()), "{kernel} {form}: {found} {expected}");
        };
        let h = 1e-5;
        for k in 0..start.values().len() {
            let mut moved = |by: f64| {
                let mut values = start.values().to_vec();
                values[k] += by;
                at(&values, 2.0).loss
            };
            close(here.d_metric[k], (moved(h) - moved(-h)) / (2.0 * h));
        }
        let (up, down) = (2.0 * h.exp(), 2.0 * (-h).exp());
        let slope = (at(start.values(), up).loss - at(start.values(), down).loss) / (2.0 * h);
        close(here.d_log_cost, slope);
    }
}

/// Noise with a rare class, of which most rows become support vectors whatever was likely before.
fn rare(rows: usize) -> Dataset {
    let noise = generated(rows);
    let labels: Vec<usize> = (0..rows).map(|i| usize::from(i % (rows / 3) == 5)).collect();
    Dataset::new(noise.x().clone(), &labels).unwrap()
}

/// Exact final SVMs that turn out to have too many support vectors give way to landmarks.
#[test]
fn a_rare_class_keeps_to_the_plan() {
    let data = rare(5600);
    let fit = |memory_limit: Option<u64>| {
        let form = Form::Sphere.into();
        Model::fit(&data, Svml { form, memory_limit, ..Svml::default() }).unwrap()
    };
    let exact = fit(None);
    assert!(exact.report().landmarks.unwrap().in_model.is_none() && exact.report().refitted);
    let model = fit(Some(200 << 20));
    let landmarks = model.report().landmarks.unwrap();
    assert!(landmarks.in_model.is_some_and(|count| count <= 2000), "{landmarks:?}");
    assert!(model.support_rows().len() <= 2000 && model.report().refitted, "{model}");
    let little = Svml { memory_limit: Some(100 << 20), ..Svml::default() };
    assert!(little.memory_needed(&data) <= 100 << 20);
    let message = Model::fit(&data, Svml { memory_limit: Some(5 << 20), ..Svml::default() });
    let message = message.unwrap_err().to_string();
    assert!(message.contains("the limit of 5.0 MiB") && message.contains("fewer"), "{message}");
}
