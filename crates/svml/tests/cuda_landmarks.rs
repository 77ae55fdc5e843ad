//! Answers of a card about SVMs on landmarks, beside those of the processor. Without a card every test says that it is
//! skipped.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, missing_docs)]

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svml::internals::cuda::{self, Gpu};
use svml::internals::landmarks::{
    Answer, CardRows, LandmarkKernel, LandmarkProblems, LandmarkSvms, Landmarks, LocalRows, Part,
    Problem, Question, Rows,
};
use svml::internals::loss::{Loss, Surrogate};
use svml::internals::{LabelledRows, ManyRows, Watch};
use svml::{
    Dataset, Device, Error, Form, Kernel, LandmarkChoice, Matrix, Method, Metric, Model, Run, Svml,
};

/// Relative to the largest number of its kind in an answer.
const AGREE: f64 = 1e-9;
/// Beside that, an output is a sum of kernel values times coefficients, which may be large and nearly cancel: what rounding
/// leaves of it, relative to the sum of the absolute coefficients.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// The first card, for one test at a time: some limit its memory.
fn card() -> Option<(&'static Gpu, MutexGuard<'static, ()>)> {
    static ONE: Mutex<()> = Mutex::new(());
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    match cuda::open(0) {
        Ok(gpu) => Some((gpu, turn)),
        Err(error) => {
            eprintln!("skipped: no CUDA device ({error})");
            None
        }
    }
}

/// Numbers that look random and are the same everywhere.
fn noise(seed: usize) -> f64 {
    let mut z =
        (seed as u64).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

/// The largest weight of a row.
const HEAVIEST: f64 = 2.1;

fn rows(n: usize, d: usize, classes: usize) -> (Matrix, LabelledRows) {
    let class: Vec<usize> = (0..n).map(|i| (i * 7 + i / 5) % classes).collect();
    let x = Matrix::from_fn(n, d, |i, k| {
        3.0 * noise(i * 1009 + k) + if k == 0 { 0.9 * class[i] as f64 } else { 0.0 }
    });
    let weight = (0..n).map(|i| HEAVIEST - (i % 5) as f64 * 0.4).collect();
    (x, LabelledRows { index: (0..n).collect(), class, weight })
}

fn fold(all: &LabelledRows, folds: usize, fold: usize) -> LabelledRows {
    let chosen: Vec<usize> = (0..all.index.len()).filter(|i| i / 3 % folds == fold).collect();
    LabelledRows {
        index: chosen.iter().map(|&i| all.index[i]).collect(),
        class: chosen.iter().map(|&i| all.class[i]).collect(),
        weight: chosen.iter().map(|&i| all.weight[i]).collect(),
    }
}

fn metric(form: Form, d: usize) -> Metric {
    let on_diagonal = |k: usize| match form {
        Form::Full | Form::Rank(_) => f64::from(u8::from(k / d == k % d)),
        _ => 1.0,
    };
    let value = |k: usize| (0.5 * on_diagonal(k) + 0.1 * noise(k + 5)) / (d as f64).sqrt();
    Metric::new(form, d, (0..form.len(d)).map(value).collect()).unwrap()
}

const ALL: [(Kernel, Form); 10] = [
    (Kernel::Gaussian, Form::Sphere),
    (Kernel::Gaussian, Form::Diagonal),
    (Kernel::Gaussian, Form::Full),
    (Kernel::Gaussian, Form::Rank(2)),
    (Kernel::Exponential, Form::Sphere),
    (Kernel::Exponential, Form::Diagonal),
    (Kernel::Exponential, Form::Full),
    (Kernel::Exponential, Form::Rank(2)),
    (Kernel::Laplacian, Form::Sphere),
    (Kernel::Laplacian, Form::Diagonal),
];

/// Folds that are trained on and validated with: some of them neither, one of them both.
fn problems(classes: usize, folds: usize) -> Vec<Problem> {
    match folds {
        1 => Problem::of_pairs(classes, &[true], &[true]),
        2 => [
            Problem::of_pairs(classes, &[true, false], &[false, true]),
            Problem::of_pairs(classes, &[false, true], &[true, false]),
        ]
        .concat(),
        _ => [
            Problem::of_pairs(classes, &[true, true, false], &[false, false, true]),
            Problem::of_pairs(classes, &[false, true, false], &[false, true, true]),
        ]
        .concat(),
    }
}

/// The lengths of what stands in an answer to a step one after the other: five numbers, two vectors and a triangle.
fn kinds(question: &Question, len: usize) -> Vec<usize> {
    match question {
        Question::Step { .. } => {
            // 5 + 2 l + l (l + 1) / 2 = len.
            let l = (1..).find(|l| 5 + 2 * l + l * (l + 1) / 2 == len).unwrap();
            vec![1, 1, 1, 1, 1, l, l, l * (l + 1) / 2]
        }
        Question::Gradient { .. } => vec![1, len - 1],
        _ => vec![len],
    }
}

/// Asks the processor and the card, and compares.
struct Both<'a> {
    gpu: &'static Gpu,
    parts: Vec<Part<'a>>,
    processor: LocalRows<'a>,
    card: Mutex<CardRows>,
    what: String,
    /// How many questions of each kind were asked: steps, shares, gradients.
    asked: Arc<Mutex<[usize; 3]>>,
}

impl<'a> Both<'a> {
    fn new(gpu: &'static Gpu, parts: impl Fn() -> Vec<Part<'a>>, what: &str) -> Self {
        Self {
            gpu,
            parts: parts(),
            processor: LocalRows::new(parts(), u64::MAX, &Watch::default()),
            card: Mutex::new(CardRows::new(gpu)),
            what: what.to_owned(),
            asked: Arc::default(),
        }
    }

    fn on_card(
        &self,
        card: &mut CardRows,
        kernel: &LandmarkKernel,
        question: &Question,
    ) -> Vec<Vec<f64>> {
        let parts: Vec<&Part<'_>> = self.parts.iter().collect();
        card.answer(&parts, kernel, question, &Watch::default()).unwrap()
    }
}

impl Rows for Both<'_> {
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> svml::Result<Answer> {
        let answer = self.processor.ask(kernel, question)?;
        let kind = match question {
            Question::Step { .. } => 0,
            Question::Shares { .. } => 1,
            Question::Gradient { .. } => 2,
            _ => return Ok(answer),
        };
        self.asked.lock().unwrap()[kind] += 1;
        let expected = answer.clone().sums();
        let kept = self.on_card(&mut self.card.lock().unwrap(), kernel.unwrap(), question);
        let weight = self.parts.iter().map(Part::rows).sum::<usize>() as f64 * HEAVIEST;
        compare(&self.what, question, weight, &expected, &kept);
        // One that knows nothing of the questions before gives the same bits.
        let anew = self.on_card(&mut CardRows::new(self.gpu), kernel.unwrap(), question);
        let same = kept.iter().flatten().zip(anew.iter().flatten());
        let bits = same.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        assert_eq!(bits, 0, "{}: {} differs when it is asked anew", self.what, question.name());
        Ok(answer)
    }
}

/// The sum of the absolute coefficients that each answer depends on.
fn coefficients(question: &Question) -> Vec<f64> {
    let sum = |theta: &[f64]| theta.iter().map(|a| a.abs()).sum::<f64>();
    match question {
        Question::Step { points, .. } => {
            points.iter().flatten().map(|(point, _)| sum(&point.theta)).collect()
        }
        Question::Shares { ways } => {
            ways.iter().flatten().map(|(from, to)| sum(from) + sum(to)).collect()
        }
        Question::Gradient { machines, .. } => {
            vec![machines.iter().map(|(theta, u)| sum(theta) + sum(u)).sum()]
        }
        _ => Vec::new(),
    }
}

fn compare(
    what: &str,
    question: &Question,
    weight: f64,
    expected: &[Vec<f64>],
    found: &[Vec<f64>],
) {
    let coefficients = coefficients(question);
    assert_eq!(expected.len(), found.len(), "{what}: answers to {}", question.name());
    for (svm, (expected, found)) in expected.iter().zip(found).enumerate() {
        assert_eq!(expected.len(), found.len(), "{what}: length of answer {svm}");
        let mut first = 0;
        for (kind, len) in kinds(question, expected.len()).into_iter().enumerate() {
            let (a, b) = (&expected[first..first + len], &found[first..first + len]);
            let size = a.iter().fold(0.0, |size: f64, a| size.max(a.abs()));
            let allowed = AGREE * size + ROUNDING * coefficients[svm] * size.max(weight);
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                assert!(
                    (a - b).abs() <= allowed,
                    "{what}: {} of SVM {svm}, kind {kind}, place {i} of {len}: {a:e} on the processor, {b:e} on the card, {allowed:e} allowed",
                    question.name()
                );
            }
            first += len;
        }
    }
}

struct Case {
    n: usize,
    d: usize,
    classes: usize,
    folds: usize,
    landmarks: usize,
    kernel: Kernel,
    form: Form,
    surrogate: Surrogate,
}

/// Trains and validates SVMs with every question asked of both. How many questions there were.
fn evaluate(gpu: &'static Gpu, case: &Case) -> [usize; 3] {
    let Case { n, d, classes, folds, landmarks, kernel, form, surrogate } = *case;
    let what = format!(
        "{n} x {d}, {classes} classes, {folds} folds, {landmarks} landmarks, {kernel} {form} {surrogate}"
    );
    let (x, all) = rows(n, d, classes);
    let metric = metric(form, d);
    let watch = Watch::default();
    let landmarks = Landmarks::choose(&x, &all.class, classes, landmarks, &metric, &watch).unwrap();
    let of_folds: Vec<LabelledRows> = (0..folds).map(|f| fold(&all, folds, f)).collect();
    // The first folds in one part, the others in another: each class is in several pieces.
    let parts = || {
        let mut first = of_folds.clone();
        let mut second = of_folds.clone();
        for (first, second) in first.iter_mut().zip(&mut second) {
            let half = first.index.len() / 2;
            first.index.truncate(half);
            first.class.truncate(half);
            first.weight.truncate(half);
            second.index.drain(..half);
            second.class.drain(..half);
            second.weight.drain(..half);
        }
        vec![Part::of_folds(&x, &first, classes), Part::of_folds(&x, &second, classes)]
    };
    let both = Both::new(gpu, parts, &what);
    let asked = both.asked.clone();
    let given = LandmarkProblems {
        kernel,
        metric: &metric,
        problems: problems(classes, folds),
        guess: None,
    };
    let z = x.select_rows(&landmarks.rows);
    let mut svms = LandmarkSvms::new(Box::new(both), (z, landmarks), None, given, &watch).unwrap();
    let loss = Loss { surrogate, steepness: 3.0 };
    svms.evaluate(0.3, loss).unwrap();
    // From what was there: another metric, and another C.
    svms.set_metric(&metric.scaled(1.3).unwrap()).unwrap();
    svms.evaluate(5.0, loss).unwrap();
    svms.evaluate(200.0, loss).unwrap();
    *asked.lock().unwrap()
}

#[test]
fn every_kernel_and_form_agrees_with_the_processor() {
    let Some((gpu, _turn)) = card() else { return };
    for (kernel, form) in ALL {
        for (n, d, classes, folds) in [(700, 3, 2, 2), (300, 40, 3, 3)] {
            let surrogate = match form {
                Form::Sphere => Surrogate::SquaredHinge,
                Form::Diagonal => Surrogate::Logistic,
                _ => Surrogate::Sigmoid,
            };
            let case = Case { n, d, classes, folds, landmarks: 70, kernel, form, surrogate };
            let [steps, _, gradients] = evaluate(gpu, &case);
            assert!(steps > 6 && gradients == 3, "{steps} steps, {gradients} gradients");
        }
    }
}

/// Sizes around those of warps, tiles and blocks of threads, many classes, and a class with few rows.
#[test]
fn awkward_sizes_agree_with_the_processor() {
    let Some((gpu, _turn)) = card() else { return };
    let kernels = [(Kernel::Gaussian, Form::Diagonal), (Kernel::Laplacian, Form::Diagonal)];
    let sizes = [
        (5, 1, 2, 1, 5),
        (64, 1, 2, 1, 33),
        (257, 17, 2, 2, 65),
        (3000, 16, 2, 2, 129),
        (420, 4, 7, 3, 140),
        (260, 5, 12, 2, 120),
    ];
    for (n, d, classes, folds, landmarks) in sizes {
        for (kernel, form) in kernels {
            let surrogate = Surrogate::SquaredHinge;
            evaluate(gpu, &Case { n, d, classes, folds, landmarks, kernel, form, surrogate });
        }
    }
}

/// More rows than a chunk has.
#[test]
fn several_chunks_agree_with_the_processor() {
    let Some((gpu, _turn)) = card() else { return };
    let (n, d, classes, folds, landmarks) = (70_000, 2, 3, 2, 12);
    for (kernel, form) in [(Kernel::Gaussian, Form::Full), (Kernel::Laplacian, Form::Sphere)] {
        let surrogate = Surrogate::SquaredHinge;
        evaluate(gpu, &Case { n, d, classes, folds, landmarks, kernel, form, surrogate });
    }
}

/// Losses along ways, which training asks for rarely.
#[test]
fn shares_of_a_way_agree_with_the_processor() {
    let Some((gpu, _turn)) = card() else { return };
    for (classes, kernel) in [(2, Kernel::Gaussian), (4, Kernel::Exponential)] {
        let (x, all) = rows(600, 6, classes);
        let of_folds: Vec<LabelledRows> = (0..2).map(|f| fold(&all, 2, f)).collect();
        let metric = metric(Form::Diagonal, 6);
        let watch = Watch::default();
        let chosen = Landmarks::choose(&x, &all.class, classes, 50, &metric, &watch).unwrap();
        let both = Both::new(gpu, || vec![Part::of_folds(&x, &of_folds, classes)], "shares");
        let asked = both.asked.clone();
        let rows = Asker { rows: Box::new(both), starts: chosen.starts.clone(), classes };
        let given = LandmarkProblems {
            kernel,
            metric: &metric,
            problems: problems(classes, 2),
            guess: None,
        };
        let z = x.select_rows(&chosen.rows);
        let mut svms = LandmarkSvms::new(Box::new(rows), (z, chosen), None, given, &watch).unwrap();
        svms.train(1.0).unwrap();
        assert!(asked.lock().unwrap()[1] > 0);
    }
}

/// Asks for shares of ways of its own with every step.
struct Asker<'a> {
    rows: Box<dyn Rows + 'a>,
    starts: Vec<usize>,
    classes: usize,
}

impl Rows for Asker<'_> {
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> svml::Result<Answer> {
        if let Question::Step { points, .. } = question {
            let problems = problems(self.classes, 2);
            let way = |(number, point): (usize, &Option<_>)| {
                point.as_ref()?;
                let of = |class: usize| self.starts[class + 1] - self.starts[class];
                let (a, b) = problems[number].classes;
                let len = of(a) + of(b) + 1;
                let vector =
                    |seed: usize| (0..len).map(|i| noise(i + seed * 7919)).collect::<Vec<f64>>();
                (number % 3 != 1).then(|| (vector(number), vector(number + 100)))
            };
            let ways = points.iter().enumerate().map(way).collect();
            self.rows.ask(kernel, &Question::Shares { ways })?;
        }
        self.rows.ask(kernel, question)
    }
}

/// A whole fit of rows that lie in parts, as they were read: they are standardised, fall into folds by their keys, have
/// weights by class, and start from a guess.
#[test]
fn a_fit_of_rows_in_parts_asks_the_same_of_a_card() {
    let Some((gpu, _turn)) = card() else { return };
    for (classes, kernel) in [(2, Kernel::Gaussian), (3, Kernel::Laplacian)] {
        let (x, all) = rows(2400, 5, classes);
        let x = Matrix::from_fn(2400, 5, |i, k| 100.0 * (k + 1) as f64 + 7.0 * x[(i, k)]);
        let data = Dataset::new(x, &all.class).unwrap();
        let ends = [0, 500, 501, 501, 1400, 2400];
        let parts = || {
            let ends = ends.windows(2).enumerate();
            let part = |(number, ends): (usize, &[usize])| {
                let class = &data.y()[ends[0]..ends[1]];
                let weight = &all.weight[ends[0]..ends[1]];
                let x = Cow::Borrowed(data.x());
                Part::of_rows(x, (number, ends[0]), class, weight, classes, &[])
            };
            ends.map(part).collect::<Vec<_>>()
        };
        let both = Both::new(gpu, parts, "a whole fit");
        let params = Svml {
            form: Form::Diagonal.into(),
            kernel,
            landmarks: LandmarkChoice::Count(40),
            max_iterations: 3,
            ..Svml::default()
        };
        let many = ManyRows { rows: &both, schema: data.schema(), classes: data.classes() };
        let method = Method::Svml(params.clone());
        many.fit(&method, &params, &mut Run::new()).unwrap();
        let [steps, _, gradients] = *both.asked.lock().unwrap();
        assert!(steps > 5 && gradients > 0, "{steps} steps, {gradients} gradients");
    }
}

/// With a card in the watch the SVMs are those of the processor, by parts and by all of them together.
#[test]
fn svms_trained_on_a_card_are_those_of_the_processor() {
    let Some((gpu, _turn)) = card() else { return };
    let (x, all) = rows(3000, 8, 2);
    let of_folds: Vec<LabelledRows> = (0..2).map(|f| fold(&all, 2, f)).collect();
    let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
    // Newton's systems of few landmarks are solved by the processor, those of many on the card.
    let kernels = [(Kernel::Gaussian, Form::Full), (Kernel::Exponential, Form::Diagonal)];
    let cases = kernels.into_iter().flat_map(|kernel| [(kernel, 120), (kernel, 300)]);
    for ((kernel, form), count) in cases {
        let metric = metric(form, 8);
        let evaluated = |watch: &Watch| {
            let landmarks = Landmarks::choose(&x, &all.class, 2, count, &metric, watch).unwrap();
            let problems = problems(2, 2);
            let given = LandmarkProblems { kernel, metric: &metric, problems, guess: None };
            let keep = u64::MAX;
            let svms = LandmarkSvms::of_folds(&x, &of_folds, landmarks, given, keep, watch);
            let mut svms = svms.unwrap().tolerance(1e-12);
            // From what was there: another metric, and another C.
            svms.evaluate(0.1, loss).unwrap();
            svms.set_metric(&metric.scaled(1.3).unwrap()).unwrap();
            svms.evaluate(5.0, loss).unwrap();
            svms.evaluate(2.0, loss).unwrap()
        };
        let processor = evaluated(&Watch::default());
        let on_card = evaluated(&Watch::default().on(Some(gpu)));
        assert_eq!(on_card, evaluated(&Watch::default().on(Some(gpu))), "twice the same bits");
        assert!((processor.loss - on_card.loss).abs() < 1e-9 * processor.loss);
        let size = processor.d_metric.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
        for (a, b) in processor.d_metric.iter().zip(&on_card.d_metric) {
            assert!((a - b).abs() < 1e-7 * size, "{kernel} {form}: {a:e} and {b:e} of {size:e}");
        }
        assert_ne!(processor, on_card, "the card was used");
    }
}

/// Blocks that are not kept, rows that are not held, and blocks that are halved.
#[test]
fn where_memory_is_short_blocks_are_computed_again() {
    let Some((gpu, _turn)) = card() else { return };
    drop(gpu.lane().unwrap());
    let case = |kernel| Case {
        n: 3000,
        d: 16,
        classes: 2,
        folds: 2,
        landmarks: 100,
        kernel,
        form: Form::Diagonal,
        surrogate: Surrogate::SquaredHinge,
    };
    // K has 2.4 MB, the rows 0.4, the sums in H 0.1, and scratch memory about as much as K.
    for megabytes in [16, 8, 4, 2] {
        let limit = gpu.limit_to(gpu.used() as u64 + (megabytes << 20));
        evaluate(gpu, &case(Kernel::Gaussian));
        evaluate(gpu, &case(Kernel::Laplacian));
        drop(limit);
    }
    let limit = gpu.limit_to(gpu.used() as u64 + 1000);
    let (x, all) = rows(3000, 16, 2);
    let watch = Watch::default().on(Some(gpu));
    let metric = metric(Form::Sphere, 16);
    let landmarks = Landmarks::choose(&x, &all.class, 2, 100, &metric, &watch).unwrap();
    let given = LandmarkProblems {
        kernel: Kernel::Gaussian,
        metric: &metric,
        problems: problems(2, 1),
        guess: None,
    };
    let svms = LandmarkSvms::of_folds(&x, &[all], landmarks, given, 0, &watch);
    let error = svms.unwrap().train(1.0).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    drop(limit);
}

/// A card that is asked for by its name is used whatever the size.
#[test]
fn few_rows_are_summed_on_a_card_that_was_asked_for() {
    let Some((_, _turn)) = card() else { return };
    let (x, all) = rows(200, 3, 2);
    let data = Dataset::new(x, &all.class).unwrap();
    let params = Svml {
        form: Form::Diagonal.into(),
        landmarks: LandmarkChoice::Count(20),
        cross_fit: false,
        max_iterations: 2,
        ..Svml::default()
    };
    let run = &mut Run::new().device(Device::Cuda(0));
    let model = Model::fit_with(&data, params, run).unwrap();
    assert!(model.report().used_card(), "{:?}", model.report().warnings);
}

/// Where memory ends while the systems of Newton's method are on the card, they are made again, and solved all the same.
#[test]
fn systems_that_stay_on_the_card_outlive_a_lack_of_memory() {
    let Some((gpu, _turn)) = card() else { return };
    let (x, all) = rows(6000, 8, 2);
    let of_folds: Vec<LabelledRows> = (0..2).map(|f| fold(&all, 2, f)).collect();
    let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
    for (kernel, form) in [(Kernel::Gaussian, Form::Full), (Kernel::Exponential, Form::Diagonal)] {
        let metric = metric(form, 8);
        let evaluated = |watch: &Watch, room: Option<u64>| {
            let landmarks = Landmarks::choose(&x, &all.class, 2, 300, &metric, watch).unwrap();
            let problems = problems(2, 2);
            let given = LandmarkProblems { kernel, metric: &metric, problems, guess: None };
            let svms = LandmarkSvms::of_folds(&x, &of_folds, landmarks, given, u64::MAX, watch);
            let mut svms = svms.unwrap().tolerance(1e-12);
            svms.evaluate(0.1, loss).unwrap();
            // From here on there is no room for what was kept: blocks are halved.
            let limit = room.map(|room| gpu.limit_to(gpu.used() as u64 + room));
            svms.set_metric(&metric.scaled(1.3).unwrap()).unwrap();
            let evaluated = svms.evaluate(5.0, loss).unwrap();
            drop(limit);
            evaluated
        };
        let processor = evaluated(&Watch::default(), None);
        let size = processor.d_metric.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
        for room in [8 << 20, 1 << 20] {
            let on_card = evaluated(&Watch::default().on(Some(gpu)), Some(room));
            assert!((processor.loss - on_card.loss).abs() < 1e-9 * processor.loss, "{room}");
            for (a, b) in processor.d_metric.iter().zip(&on_card.d_metric) {
                assert!(
                    (a - b).abs() < 1e-7 * size,
                    "{kernel} {form}: {a:e} and {b:e} of {size:e}"
                );
            }
        }
    }
}

#[test]
fn an_interrupt_ends_a_question_and_the_next_is_answered() {
    let Some((gpu, _turn)) = card() else { return };
    let (x, all) = rows(3000, 4, 2);
    let metric = metric(Form::Sphere, 4);
    let flag = Arc::new(AtomicBool::new(false));
    let run = Run::new().interrupt(flag.clone());
    let watch = run.watch().clone().on(Some(gpu));
    let landmarks = Landmarks::choose(&x, &all.class, 2, 100, &metric, &watch).unwrap();
    let given = LandmarkProblems {
        kernel: Kernel::Gaussian,
        metric: &metric,
        problems: problems(2, 1),
        guess: None,
    };
    let mut svms = LandmarkSvms::of_folds(&x, &[all], landmarks, given, 0, &watch).unwrap();
    svms.train(1.0).unwrap();
    flag.store(true, Ordering::Relaxed);
    assert!(matches!(svms.train(2.0), Err(Error::Interrupted)));
    flag.store(false, Ordering::Relaxed);
    svms.train(2.0).unwrap();
    assert!(svms.residual() < 1e-2);
}
