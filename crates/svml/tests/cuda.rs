//! The exact backend on a card against that in memory: every method of the seam, bits, memory, interrupts. Without a card
//! each test says that it is skipped.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;
use svml::internals::LabelledRows;
use svml::internals::Watch;
use svml::internals::cuda::{Gpu, open};
use svml::internals::kernel::{Factor, Gram, Outer, backend, expand, expand_on};
use svml::internals::loss::Loss;
use svml::internals::multiclass::outputs;
use svml::internals::svm::{Problem, Trained, solve};
use svml::internals::svml::criterion::{Evaluation, split_pairs, validate_pairs};
use svml::{
    Criterion, Dataset, Device, Error, Form, Generator, Kernel, LandmarkChoice, Matrix, Metric,
    Model, Remedy, Run, Stop, Surrogate, Svml,
};

const KERNELS: [Kernel; 3] = [Kernel::Gaussian, Kernel::Exponential, Kernel::Laplacian];
const PRODUCTS: f64 = 1e-10;
const SOLVES: f64 = 1e-8;

/// The card, for one test at a time: some of them change its limit or its digits.
fn card() -> Option<(&'static Gpu, MutexGuard<'static, ()>)> {
    static ONE: Mutex<()> = Mutex::new(());
    match open(0) {
        Ok(gpu) => {
            let turn = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            Some((gpu, turn))
        }
        Err(error) => {
            eprintln!("skipped: no CUDA device ({error})");
            None
        }
    }
}

fn settings(d: usize) -> Vec<(Kernel, Form)> {
    let forms = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2.min(d))];
    let all = KERNELS.into_iter().flat_map(|kernel| forms.map(|form| (kernel, form)));
    all.filter(|(kernel, form)| kernel.allows(*form)).collect()
}

fn numbers(rng: &mut ChaCha8Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| rng.random_range(-1.0..1.0)).collect()
}

fn some(rng: &mut ChaCha8Rng, n: usize, share: f64) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..n).filter(|_| rng.random_bool(share)).collect();
    if rows.is_empty() {
        rows.push(rng.random_range(0..n));
    }
    rows
}

/// The largest difference, relative to the largest value. Sums that are nothing but rounding, as those of one row and itself,
/// are measured by what they are sums of.
fn close(card: &[f64], memory: &[f64], tolerance: f64, what: &str) {
    assert_eq!(card.len(), memory.len(), "{what}");
    let scale = memory.iter().fold(1e-3, |most: f64, v| most.max(v.abs()));
    let (mut worst, mut at) = (0.0, 0);
    for (i, (a, b)) in card.iter().zip(memory).enumerate() {
        let off = (a - b).abs() / scale;
        if off > worst || off.is_nan() {
            (worst, at) = (off, i);
        }
        assert!(a.is_finite(), "{what}: {a} at {i}, {b} in memory");
    }
    assert!(
        worst <= tolerance,
        "{what}: {worst:e} off at {at} of {}: {:e} on the card, {:e} in memory, largest {scale:e}",
        card.len(),
        card[at],
        memory[at],
    );
}

struct Random {
    x: Matrix,
    metric: Metric,
    kernel: Kernel,
    what: String,
}

fn random(n: usize, d: usize, kernel: Kernel, form: Form, rng: &mut ChaCha8Rng) -> Random {
    let mut x = Matrix::from_fn(n, d, |_, _| rng.random_range(-2.0..2.0));
    // Some rows coincide.
    for i in (3..n).step_by(17) {
        let row = x.row(i - 3).to_vec();
        x.row_mut(i).copy_from_slice(&row);
    }
    let values = (0..form.len(d)).map(|_| rng.random_range(0.1..0.7) / (d as f64).sqrt()).collect();
    let metric = Metric::new(form, d, values).unwrap();
    Random { x, metric, kernel, what: format!("{kernel} {form}, {n} rows of {d}") }
}

impl Random {
    fn gram(&self, watch: &Watch) -> Box<dyn Gram + '_> {
        backend().gram(&self.x, self.x.rows(), &self.metric, self.kernel, watch).unwrap()
    }
}

/// Each product, and the contraction of outer products.
fn compare_products(a: &dyn Gram, b: &dyn Gram, n: usize, rng: &mut ChaCha8Rng, what: &str) {
    for share in [1.0, 0.4] {
        let (rows, cols) = (some(rng, n, share), some(rng, n, share));
        let (v, u) = (numbers(rng, cols.len()), numbers(rng, rows.len()));
        let what = format!("{what}, {} x {}", rows.len(), cols.len());
        let product = |g: &dyn Gram| g.multiply(&rows, &cols, &v);
        close(&product(a), &product(b), PRODUCTS, &format!("{what}: multiply"));
        let product = |g: &dyn Gram| g.multiply_transposed(&rows, &cols, &u);
        close(&product(a), &product(b), PRODUCTS, &format!("{what}: multiply_transposed"));
        let slopes = |g: &dyn Gram| g.weighted_differences(&rows, &cols, &v).into_vec();
        close(&slopes(a), &slopes(b), PRODUCTS, &format!("{what}: weighted_differences"));
        let outers = [
            Outer { rows: &rows, left: &u, cols: &cols, right: &v },
            Outer { rows: &cols, left: &v, cols: &cols, right: &v },
            Outer { rows: &[], left: &[], cols: &cols, right: &v },
        ];
        let derivative = |g: &dyn Gram| g.contract(&outers).unwrap();
        close(&derivative(a), &derivative(b), PRODUCTS, &format!("{what}: contract"));
        // So many that they are joined, with rows and columns in common.
        let rng = &mut copy_of(rng);
        let sides: Vec<[(Vec<usize>, Vec<f64>); 2]> = (0..20)
            .map(|_| {
                [0.3, 0.2].map(|share| {
                    let rows = some(rng, n, share);
                    let values = numbers(rng, rows.len());
                    (rows, values)
                })
            })
            .collect();
        let outers: Vec<Outer<'_>> = (sides.iter())
            .map(|[(rows, left), (cols, right)]| Outer { rows, left, cols, right })
            .collect();
        let derivative = |g: &dyn Gram| g.contract(&outers).unwrap();
        close(&derivative(a), &derivative(b), PRODUCTS, &format!("{what}: contract many"));
    }
    assert!(a.multiply(&[], &[0], &[1.0]).is_empty());
    assert_eq!(a.multiply(&[0], &[], &[]), [0.0]);
    assert!(a.contract(&[]).unwrap().iter().all(|v| *v == 0.0));
}

/// A generator that goes on as this one will.
fn copy_of(rng: &ChaCha8Rng) -> ChaCha8Rng {
    let mut copy = ChaCha8Rng::from_seed(rng.get_seed());
    copy.set_stream(rng.get_stream());
    copy.set_word_pos(rng.get_word_pos());
    copy
}

/// Solutions, and all that is asked of the inverse.
fn compare_solutions(
    (a, b): (&dyn Factor, &dyn Factor),
    count: usize,
    inverse: bool,
    rng: &mut ChaCha8Rng,
    what: &str,
) {
    let rhs = numbers(rng, 3 * count);
    let solution = |factor: &dyn Factor, columns: usize| {
        let mut x = rhs[..columns * count].to_vec();
        factor.solve(&mut x);
        x
    };
    for columns in [1, 3] {
        let name = format!("{what}: {columns} solutions");
        close(&solution(a, columns), &solution(b, columns), SOLVES, &name);
    }
    let positions = some(rng, count, 0.3);
    let diagonal = |factor: &dyn Factor| factor.inverse_diagonal(&positions);
    close(&diagonal(a), &diagonal(b), SOLVES, &format!("{what}: inverse_diagonal"));
    if !inverse {
        return;
    }
    let mut ones = vec![1.0; count];
    b.solve(&mut ones);
    let q = numbers(rng, count);
    let (a, b) = (a.bordered_inverse(&ones).unwrap(), b.bordered_inverse(&ones).unwrap());
    // Of a single row nothing is left.
    if count > 1 {
        close(&a.diagonal(), &b.diagonal(), SOLVES, &format!("{what}: diagonal of B"));
        let ((d_a, diagonal_a), (d_b, diagonal_b)) =
            (a.contract(&q).unwrap(), b.contract(&q).unwrap());
        close(&diagonal_a, &diagonal_b, SOLVES, &format!("{what}: diagonal of B q B"));
        close(&d_a, &d_b, SOLVES, &format!("{what}: contraction with B q B"));
    }
}

fn compare_all(n: usize, d: usize, gpu: &'static Gpu, inverse: bool) {
    let mut rng = ChaCha8Rng::seed_from_u64((1000 * n + d) as u64);
    let rng = &mut rng;
    for (kernel, form) in settings(d) {
        let problem = random(n, d, kernel, form, rng);
        let what = &problem.what;
        let watch = Watch::default().on(Some(gpu));
        let (mut a, mut b) = (problem.gram(&watch), problem.gram(&Watch::default()));
        compare_products(&*a, &*b, n, rng, what);
        let other = random(n, d, kernel, form, rng).metric;
        a.set_metric(&other).unwrap();
        b.set_metric(&other).unwrap();
        compare_products(&*a, &*b, n, rng, &format!("{what}, another metric"));

        let ridges: Vec<f64> = (0..n).map(|_| rng.random_range(0.05..1.0)).collect();
        let ridge = |set: &[usize]| set.iter().map(|&i| ridges[i]).collect::<Vec<_>>();
        let mut set = some(rng, n, 0.7);
        let mut factors =
            (a.factor(&set, &ridge(&set)).unwrap(), b.factor(&set, &ridge(&set)).unwrap());
        let pair = (&*factors.0, &*factors.1);
        compare_solutions(pair, set.len(), inverse, rng, what);
        // A few rows come and go, some again, and then many.
        for (step, share) in [(0, 0.01), (1, 0.01), (2, 0.5)] {
            let flipped = some(rng, n, share);
            let next: Vec<usize> = (0..n)
                .filter(|i| set.binary_search(i).is_ok() != flipped.binary_search(i).is_ok())
                .collect();
            if next.is_empty() {
                continue;
            }
            set = next;
            factors.0.update(&set, &ridge(&set)).unwrap();
            factors.1.update(&set, &ridge(&set)).unwrap();
            let pair = (&*factors.0, &*factors.1);
            let what = format!("{what}, {} rows after change {step}", set.len());
            compare_solutions(pair, set.len(), inverse && step != 1, rng, &what);
        }
        watch.check().unwrap();
    }
}

#[test]
fn small_problems() {
    let Some((gpu, _turn)) = card() else { return };
    eprintln!("on {}", gpu.label());
    for n in [1, 5, 70] {
        [1, 3, 40].into_iter().for_each(|d| compare_all(n, d, gpu, true));
    }
}

#[test]
fn middle_problems() {
    let Some((gpu, _turn)) = card() else { return };
    [1, 3, 40].into_iter().for_each(|d| compare_all(700, d, gpu, true));
}

#[test]
fn large_problems() {
    let Some((gpu, _turn)) = card() else { return };
    for d in [1, 3, 40] {
        compare_all(3000, d, gpu, d == 3);
    }
}

/// So many rows that the factor has several block columns.
#[test]
fn a_factor_of_several_blocks() {
    let Some((gpu, _turn)) = card() else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let n = 5000;
    let problem = random(n, 6, Kernel::Gaussian, Form::Full, &mut rng);
    let watch = Watch::default().on(Some(gpu));
    let (a, b) = (problem.gram(&watch), problem.gram(&Watch::default()));
    let (set, ridge): (Vec<usize>, Vec<f64>) = ((0..n).collect(), vec![0.1; n]);
    let factors = (a.factor(&set, &ridge).unwrap(), b.factor(&set, &ridge).unwrap());
    compare_solutions((&*factors.0, &*factors.1), n, true, &mut rng, &problem.what);
}

#[test]
fn a_matrix_that_is_not_positive_definite_is_an_error() {
    let Some((gpu, _turn)) = card() else { return };
    let watch = Watch::default().on(Some(gpu));
    for (n, bad) in [(50, 20), (4500, 4200)] {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let problem = random(n, 3, Kernel::Gaussian, Form::Sphere, &mut rng);
        let gram = problem.gram(&watch);
        let set: Vec<usize> = (0..n).collect();
        let mut ridge = vec![1.0; n];
        ridge[bad] = -5.0;
        match gram.factor(&set, &ridge) {
            Err(Error::NotPositiveDefinite { pivot, ridge }) => {
                assert_eq!((pivot, ridge), (bad, -5.0));
            }
            other => panic!("{:?}", other.map(|_| ())),
        }
    }
    watch.check().unwrap();
}

#[test]
fn kernels_from_distances() {
    let Some((gpu, _turn)) = card() else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let problem = random(300, 4, Kernel::Gaussian, Form::Sphere, &mut rng);
    let watch = Watch::default().on(Some(gpu));
    let watches = [watch, Watch::default()];
    let distances = watches.each_ref().map(|w| backend().distances(&problem.x, w).unwrap());
    let gram = |i: usize| distances[i].gram(&problem.metric, &watches[i]).unwrap();
    let grams = [gram(0), gram(1)];
    compare_products(&*grams[0], &*grams[1], 300, &mut rng, "from distances");
}

/// Labels that a smooth function and a little noise decide.
fn labels(x: &Matrix, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let value = |row: &[f64]| (row[0] * 2.0).sin() + row.iter().sum::<f64>() * 0.3;
    let noise = |rng: &mut ChaCha8Rng| rng.random_range(-0.3..0.3);
    (0..x.rows()).map(|i| if value(x.row(i)) + noise(rng) > 0.0 { 1.0 } else { -1.0 }).collect()
}

#[test]
fn svms_and_their_first_guess() {
    let Some((gpu, _turn)) = card() else { return };
    for (n, kernel) in
        [(200, Kernel::Laplacian), (2500, Kernel::Gaussian), (2500, Kernel::Exponential)]
    {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let problem = random(n, 3, kernel, Form::Diagonal, &mut rng);
        let y = labels(&problem.x, &mut rng);
        let cost: Vec<f64> = (0..n).map(|i| [1.0, 0.3, 2.0][i % 3]).collect();
        let rows: Vec<usize> = (0..n).collect();
        let landmarks: Vec<usize> = (0..n).step_by(12).collect();
        let watch = Watch::default().on(Some(gpu));
        let (a, b) = (problem.gram(&watch), problem.gram(&Watch::default()));
        let guess = |g: &dyn Gram| g.approximate_support(&rows, &y, &cost, &landmarks).unwrap();
        let (on_card, in_memory) = (guess(&*a), guess(&*b));
        let common = on_card.iter().filter(|p| in_memory.binary_search(p).is_ok()).count();
        let apart = on_card.len() + in_memory.len() - 2 * common;
        assert!(
            apart <= n / 100,
            "{}: guesses of {} and {} rows, {apart} apart",
            problem.what,
            on_card.len(),
            in_memory.len()
        );
        let trained = |gram: &dyn Gram| {
            let problem = Problem { gram, rows: &rows, y: &y, cost: &cost };
            let solution = solve(&problem, None).unwrap();
            let Trained { svm, outputs, residual, .. } = solution.trained;
            assert!(residual < 1e-8, "{residual}");
            (svm, outputs)
        };
        let ((svm, outputs), (expected, expected_outputs)) = (trained(&*a), trained(&*b));
        assert_eq!(svm.support, expected.support, "{}", problem.what);
        close(&svm.beta, &expected.beta, SOLVES, &format!("{}: beta", problem.what));
        close(&outputs, &expected_outputs, SOLVES, &format!("{}: outputs", problem.what));
        assert!((svm.bias - expected.bias).abs() < 1e-8, "{}", problem.what);
    }
}

/// Pairs of classes of very different sizes, in two folds: on a card they are trained, validated and differentiated together.
#[test]
fn many_svms_together() {
    let Some((gpu, _turn)) = card() else { return };
    let watch = Watch::default().on(Some(gpu));
    for (kernel, form) in settings(4) {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let classes = 7;
        let problem = random(700, 4, kernel, form, &mut rng);
        let class: Vec<usize> = (0..700)
            .map(|i| (problem.x[(i, 0)].abs() * 2.0) as usize + rng.random_range(0..4) * i % 3)
            .map(|class| class.min(classes - 1))
            .collect();
        let half = |parity: usize| {
            let index: Vec<usize> = (0..700).filter(|i| i % 2 == parity).collect();
            let class = index.iter().map(|&i| class[i]).collect();
            let weight = index.iter().map(|&i| [1.0, 0.5, 2.0][i % 3]).collect();
            LabelledRows { index, class, weight }
        };
        let (even, odd) = (half(0), half(1));
        let mut folds = split_pairs(&even, &odd, classes);
        folds.extend(split_pairs(&odd, &even, classes));
        let (a, b) = (problem.gram(&watch), problem.gram(&Watch::default()));
        let sizes: Vec<usize> = folds.iter().map(|fold| fold.train.index.len()).collect();
        assert!(a.together(&sizes).is_some() && b.together(&sizes).is_none());
        let loss = Loss { surrogate: Surrogate::Logistic, steepness: 2.0 };
        let mut starts = Vec::new();
        // From nothing, and from the support sets for another C.
        for cost in [3.0, 0.7] {
            let evaluate = |gram: &dyn Gram| validate_pairs(gram, &folds, cost, loss, &starts);
            let (on_card, expected) = (evaluate(&*a).unwrap(), evaluate(&*b).unwrap());
            let what = format!("{}, C {cost}", problem.what);
            assert!(on_card.residual < 1e-8, "{what}: {}", on_card.residual);
            for (svm, expected) in on_card.svms.iter().zip(&expected.svms) {
                assert_eq!(svm.support, expected.support, "{what}");
                close(&svm.beta, &expected.beta, SOLVES, &what);
            }
            close(&on_card.d_metric, &expected.d_metric, SOLVES, &what);
            let numbers = |e: &Evaluation| [e.loss, e.d_log_cost];
            close(&numbers(&on_card), &numbers(&expected), SOLVES, &what);
            let rows: Vec<usize> = (0..700).step_by(3).collect();
            let at = |gram: &dyn Gram| outputs(gram, &rows, &expected.svms).unwrap().into_vec();
            close(&at(&*a), &at(&*b), PRODUCTS, &what);
            starts = expected.svms;
        }
    }
}

#[test]
fn sums_over_support_vectors() {
    let Some((gpu, _turn)) = card() else { return };
    for (rows, support, d, width) in [(3000, 700, 5, 1), (20_000, 90, 3, 4), (1100, 1000, 60, 2)] {
        let mut rng = ChaCha8Rng::seed_from_u64(rows as u64);
        let mut matrix =
            |r: usize, c: usize| Matrix::from_fn(r, c, |_, _| rng.random_range(-1.0..1.0));
        let (z, s, beta) = (matrix(rows, d), matrix(support, d), matrix(width, support));
        for kernel in KERNELS {
            let card = expand_on(Some(gpu), kernel, &z, &s, &beta).unwrap();
            let memory = expand(kernel, &z, &s, &beta);
            assert_eq!((card.rows(), card.cols()), (rows, width));
            let what = format!("{kernel}: {rows} rows, {support} support vectors of {d}");
            close(card.as_slice(), memory.as_slice(), PRODUCTS, &what);
        }
    }
}

/// All that a fit asks for, as bits.
fn everything(problem: &Random, watch: &Watch) -> Vec<u64> {
    let n = problem.x.rows();
    let gram = problem.gram(watch);
    let (rows, v): (Vec<usize>, Vec<f64>) =
        ((0..n).collect(), (0..n).map(|i| (i as f64).sin()).collect());
    let mut out = gram.multiply(&rows, &rows, &v);
    out.extend(gram.contract(&[Outer { rows: &rows, left: &v, cols: &rows, right: &v }]).unwrap());
    let set: Vec<usize> = (0..n).filter(|i| i % 5 != 0).collect();
    let mut factor = gram.factor(&set, &vec![0.2; set.len()]).unwrap();
    let set: Vec<usize> = (0..n).filter(|i| i % 5 != 0 || i % 500 == 0).collect();
    factor.update(&set, &vec![0.2; set.len()]).unwrap();
    let mut ones = vec![1.0; set.len()];
    factor.solve(&mut ones);
    out.extend(&ones);
    out.extend(factor.inverse_diagonal(&[0, 3, 7]));
    let (d, diagonal) = factor.bordered_inverse(&ones).unwrap().contract(&v[..set.len()]).unwrap();
    out.extend(d);
    out.extend(diagonal);
    out.into_iter().map(f64::to_bits).collect()
}

#[test]
fn the_same_bits_alone_and_side_by_side() {
    let Some((gpu, _turn)) = card() else { return };
    let watch = Watch::default().on(Some(gpu));
    for (kernel, form) in settings(4) {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let problem = random(1500, 4, kernel, form, &mut rng);
        let first = everything(&problem, &watch);
        assert!(first == everything(&problem, &watch), "{}: twice", problem.what);
        let beside: Vec<bool> =
            (0..12).into_par_iter().map(|_| first == everything(&problem, &watch)).collect();
        assert!(beside.iter().all(|same| *same), "{}: side by side {beside:?}", problem.what);
    }
    watch.check().unwrap();
}

/// Where the card has no room for large tiles, small ones do; what must be whole is an error, and the card is of use again
/// afterwards.
#[test]
fn little_memory() {
    let Some((gpu, _turn)) = card() else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let problem = random(3000, 5, Kernel::Gaussian, Form::Full, &mut rng);
    let watch = Watch::default().on(Some(gpu));
    let (a, b) = (problem.gram(&watch), problem.gram(&Watch::default()));
    let all: Vec<usize> = (0..3000).collect();
    compare_products(&*a, &*b, 3000, &mut rng, "before");
    for room in [3 << 20, 8 << 20] {
        let _limit = gpu.limit_to((gpu.used() + room) as u64);
        compare_products(&*a, &*b, 3000, &mut rng, &format!("room for {room} bytes"));
        let error = a.factor(&all, &vec![1.0; 3000]).map(|_| ()).unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        assert_eq!(error.remedy(), Some(Remedy::FitDevice));
        assert!(error.to_string().contains("on cuda:0 already"), "{error}");
        watch.check().unwrap();
    }
    {
        // Not even a tile: an operation that cannot fail by its type tells the watch.
        let _limit = gpu.limit_to(gpu.used() as u64);
        let other = Watch::default().on(Some(gpu));
        other.check().unwrap();
        let v = vec![1.0; 3000];
        let zeros = a.multiply(&all, &all, &v);
        assert!(zeros.iter().all(|v| *v == 0.0));
        let error = watch.check().unwrap_err();
        assert!(matches!(error, Error::TooLarge { .. }), "{error}");
        other.check().unwrap();
    }
    let watch = Watch::default().on(Some(gpu));
    let a = problem.gram(&watch);
    compare_products(&*a, &*b, 3000, &mut rng, "after");
}

#[test]
fn a_raised_flag_interrupts() {
    let Some((gpu, _turn)) = card() else { return };
    let mut rng = ChaCha8Rng::seed_from_u64(13);
    let problem = random(6000, 5, Kernel::Gaussian, Form::Full, &mut rng);
    let flag = Arc::new(AtomicBool::new(false));
    let run = Run::new().interrupt(Arc::clone(&flag));
    let watch = run.watch().clone().on(Some(gpu));
    let gram = problem.gram(&watch);
    let set: Vec<usize> = (0..6000).collect();
    let factor = gram.factor(&set, &vec![0.5; 6000]).unwrap();
    let mut ones = vec![1.0; 6000];
    factor.solve(&mut ones);
    let inverse = factor.bordered_inverse(&ones).unwrap();
    flag.store(true, Ordering::Relaxed);
    let interrupted = |result: svml::Result<()>| {
        assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    };
    interrupted(gram.factor(&set, &vec![0.5; 6000]).map(|_| ()));
    interrupted(factor.bordered_inverse(&ones).map(|_| ()));
    interrupted(inverse.contract(&ones).map(|_| ()));
    interrupted(watch.check());
    // What was computed before is still there.
    let mut again = vec![1.0; 6000];
    factor.solve(&mut again);
    assert_eq!(again, ones);
    assert_eq!(inverse.diagonal().len(), 6000);
}

fn table(rows: usize) -> Dataset {
    Generator { rows, noise: 8, ..Generator::default() }.generate().unwrap().data
}

fn fit(data: &Dataset, params: &Svml, run: Run<'_>) -> svml::Result<Model> {
    Model::fit_with(data, params.clone(), &mut run.device(Device::Cuda(0)))
}

/// The share of rows that two models give different classes.
fn apart(a: &Model, b: &Model, data: &Dataset) -> f64 {
    let (a, b) = (a.predict(data.x()).unwrap(), b.predict(data.x()).unwrap());
    let differ = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    differ as f64 / a.len() as f64
}

/// Another process takes nearly all of the memory while a fit is under way: through landmarks it goes on in smaller blocks.
#[test]
fn memory_that_ends_within_a_fit_makes_blocks_smaller() {
    let Some((gpu, _turn)) = card() else { return };
    let data = table(12_000);
    let params = Svml { landmarks: LandmarkChoice::Count(500), ..Svml::default() };
    let alone = fit(&data, &params, Run::new()).unwrap();
    assert!(alone.report().used_card());
    let taken = RefCell::new(None);
    // What is kept for the next who asks goes first.
    drop(gpu.limit_to(u64::MAX));
    let run = Run::new().observer(|_| {
        taken.borrow_mut().get_or_insert_with(|| gpu.take_all_but(64 << 20).unwrap());
        ControlFlow::Continue(())
    });
    let beside = fit(&data, &params, run).unwrap();
    assert!(taken.take().is_some(), "nothing was taken");
    assert!(beside.report().used_card());
    let apart = apart(&alone, &beside, &data);
    assert!(apart < 0.005, "{apart} of the rows have another class");
}

/// Where a factor must be whole and there is no room for it, the fit ends with its size and the way out, and the next is as if
/// nothing had been.
#[test]
fn a_factor_that_no_longer_fits_ends_a_fit_with_the_way_out() {
    let Some((gpu, _turn)) = card() else { return };
    let data = table(8000);
    // So small a C that nearly all rows are support vectors: the final factor has four times the size of those before.
    let params = Svml {
        form: Form::Sphere.into(),
        landmarks: LandmarkChoice::Exact,
        criterion: Criterion::KFold(2),
        learn_cost: false,
        initial_cost: 0.001,
        cross_fit: false,
        max_iterations: 2,
        ..Svml::default()
    };
    let alone = fit(&data, &params, Run::new()).unwrap();
    drop(gpu.limit_to(u64::MAX));
    let taken = RefCell::new(None);
    let run = Run::new().observer(|_| {
        taken.borrow_mut().get_or_insert_with(|| gpu.take_all_but(0).unwrap());
        ControlFlow::Continue(())
    });
    let error = fit(&data, &params, run).map(|_| ()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(error.remedy(), Some(Remedy::FitDevice));
    assert!(error.to_string().contains("on cuda:0 already"), "{error}");
    assert!(taken.take().is_some(), "nothing was taken");
    let again = fit(&data, &params, Run::new()).unwrap();
    assert!(again.to_bytes().unwrap() == alone.to_bytes().unwrap(), "other bytes afterwards");
}

/// A fit to many rows that would go on for long.
fn endless() -> Svml {
    Svml {
        form: Form::Diagonal.into(),
        landmarks: LandmarkChoice::Exact,
        initial_cost: 0.02,
        tolerance: 0.0,
        ..Svml::default()
    }
}

/// A flag that is raised while a large exact fit computes ends it. How long that takes is printed.
#[test]
fn a_large_fit_is_interrupted() {
    let Some((_, _turn)) = card() else { return };
    let (data, params) = (table(20_000), endless());
    for after in [50, 150, 300, 600, 1000, 1500] {
        let flag = Arc::new(AtomicBool::new(false));
        let raiser = {
            let flag = Arc::clone(&flag);
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(after));
                flag.store(true, Ordering::Relaxed);
                Instant::now()
            })
        };
        let fitted = fit(&data, &params, Run::new().interrupt(flag));
        let ended = Instant::now();
        let reaction = ended.saturating_duration_since(raiser.join().unwrap());
        eprintln!("interrupt after {after} ms: ended {:.0} ms later", 1e3 * reaction.as_secs_f64());
        match fitted {
            Err(Error::Interrupted) => {}
            Ok(model) => assert_eq!(model.report().stop, Some(Stop::Interrupted)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// A time limit ends a large fit, with what there is. How late that is is printed.
#[test]
fn a_large_fit_keeps_a_time_limit() {
    let Some((_, _turn)) = card() else { return };
    let (data, params) = (table(20_000), endless());
    for limit in [0.3, 1.0, 2.0] {
        let begun = Instant::now();
        let fitted = fit(&data, &params, Run::new().time_limit(Duration::from_secs_f64(limit)));
        eprintln!("time limit {limit} s: ended after {:.3} s", begun.elapsed().as_secs_f64());
        match fitted {
            Err(Error::Interrupted) => {}
            Ok(model) => assert!(model.report().cut_short, "{:?}", model.report().stop),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Factors of 32 bits, refined: as on cards for games.
#[test]
fn short_factors() {
    let Some((gpu, _turn)) = card() else { return };
    struct Reset(&'static Gpu);
    impl Drop for Reset {
        fn drop(&mut self) {
            self.0.force_single(None);
        }
    }
    let _reset = Reset(gpu);
    gpu.force_single(Some(true));
    [(5, 1), (70, 3), (700, 3)].into_iter().for_each(|(n, d)| compare_all(n, d, gpu, true));
    // A matrix that is not positive definite in 32 bits, but is in 64.
    let x = Matrix::from_fn(400, 1, |i, _| i as f64 / 400.0);
    let metric = Metric::isotropic(Form::Sphere, 1, 0.5).unwrap();
    let gram = |watch: &Watch| backend().gram(&x, 400, &metric, Kernel::Gaussian, watch).unwrap();
    let watch = Watch::default().on(Some(gpu));
    let (a, b) = (gram(&watch), gram(&Watch::default()));
    let set: Vec<usize> = (0..400).collect();
    for ridge in [1e-3, 1e-8] {
        let factors = (
            a.factor(&set, &vec![ridge; 400]).unwrap(),
            b.factor(&set, &vec![ridge; 400]).unwrap(),
        );
        let mut solutions = [vec![1.0; 400], vec![1.0; 400]];
        factors.0.solve(&mut solutions[0]);
        factors.1.solve(&mut solutions[1]);
        // The condition of the matrix is 400 / ridge.
        let tolerance = 1e-15 * 400.0 / ridge + SOLVES;
        close(&solutions[0], &solutions[1], tolerance, &format!("ridge {ridge:e}"));
    }
    gpu.force_single(Some(false));
    compare_all(70, 3, gpu, true);
}

#[test]
fn a_card_that_is_not_there() {
    let error = open(250).unwrap_err();
    assert!(matches!(error, Error::Device { .. }), "{error}");
    assert_eq!(error.remedy(), Some(Remedy::UseProcessor));
    assert!(error.to_string().starts_with("cuda:250 cannot be used: "), "{error}");
}
