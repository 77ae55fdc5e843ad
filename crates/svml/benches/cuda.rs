//! The exact backend on a card beside the one in memory, in one run on one computer: one value of SVML's objective with its
//! gradient, an exact SVM of 60,000 rows, predictions, and the size from which the card pays. Prints tables.
//!
//! `cargo bench --bench cuda`, or `-- quick` without the largest sizes.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use rayon::prelude::*;
use svml::internals::cuda::{Gpu, open, transposed};
use svml::internals::kernel::{Gram, Outer, backend, expand, expand_on};
use svml::internals::loss::Loss;
use svml::internals::svm::{BinarySvm, Problem, solve};
use svml::internals::svml::criterion::{PairFold, leave_one_out, split_pairs, validate_pairs};
use svml::internals::{LabelledRows, PairRows, Watch};
use svml::{Form, Generator, Kernel, Matrix, Metric, Surrogate};

const D: usize = 10;

/// The least of some times of a computation, in seconds, after one that does not count; none of them: that of the first.
fn seconds(times: usize, mut computation: impl FnMut()) -> f64 {
    let begun = Instant::now();
    computation();
    if times == 0 {
        return begun.elapsed().as_secs_f64();
    }
    let once = |_| {
        let begun = Instant::now();
        computation();
        begun.elapsed().as_secs_f64()
    };
    (0..times).map(once).fold(f64::INFINITY, f64::min)
}

/// Operations per second, in units of 10^12, of a product of two square matrices.
fn gemm_peak(gpu: &'static Gpu, n: usize) -> f64 {
    let mut lane = gpu.lane().unwrap();
    let buffers = [(); 3].map(|()| lane.buffer::<f64>(n * n, "a matrix").unwrap());
    let values: Vec<f64> = (0..n * n).map(|i| (i as f64 * 0.37).sin()).collect();
    buffers.iter().for_each(|buffer| lane.upload(&values, buffer.all()).unwrap());
    let [a, b, c] = buffers.each_ref().map(|buffer| buffer.matrix(n, n).unwrap());
    let time = seconds(5, || {
        lane.gemm(1.0, a, transposed(b), 0.0, c).unwrap();
        lane.synchronise().unwrap();
    });
    2.0 * (n as f64).powi(3) / time / 1e12
}

struct Setup {
    x: Matrix,
    y: Vec<f64>,
    n: usize,
    metric: Metric,
}

/// `n` rows to train on, and `valid` more.
fn setup(n: usize, valid: usize) -> Setup {
    let generator = Generator { rows: n + valid, noise: D - 2, ..Default::default() };
    let data = generator.generate().unwrap().data;
    let y = data.y().iter().map(|&class| if class == 1 { 1.0 } else { -1.0 }).collect();
    let metric = Metric::isotropic(Form::Full, D, (D as f64).sqrt().recip()).unwrap();
    Setup { x: data.x().clone(), y, n, metric }
}

impl Setup {
    fn rows(&self, range: std::ops::Range<usize>) -> PairRows {
        PairRows {
            index: range.clone().collect(),
            y: self.y[range.clone()].to_vec(),
            weight: vec![1.0; range.len()],
        }
    }

    /// Every second row, from the first or the second on.
    fn rows_with(&self, parity: usize) -> PairRows {
        let index: Vec<usize> = (parity..self.n).step_by(2).collect();
        let y = index.iter().map(|&i| self.y[i]).collect();
        let weight = vec![1.0; index.len()];
        PairRows { index, y, weight }
    }

    fn gram(&self, watch: &Watch) -> Box<dyn Gram + '_> {
        backend().gram(&self.x, self.n, &self.metric, Kernel::Gaussian, watch).unwrap()
    }

    fn svm(&self, gram: &dyn Gram, cost: f64) -> BinarySvm {
        let train = self.rows(0..self.n);
        let costs = vec![cost; self.n];
        let problem = Problem { gram, rows: &train.index, y: &train.y, cost: &costs };
        solve(&problem, None).unwrap().trained.svm
    }

    /// Seconds of one objective with its gradient, from the support set of the same SVM on; and the size of that set.
    fn evaluation(&self, watch: &Watch, cost: f64, left_out: bool, times: usize) -> (f64, usize) {
        let gram = self.gram(watch);
        let svm = self.svm(&*gram, cost);
        let support = svm.support.len();
        let time = self.evaluation_from(gram, svm, cost, left_out, times);
        watch.check().unwrap();
        (time, support)
    }

    fn evaluation_from(
        &self,
        mut gram: Box<dyn Gram + '_>,
        svm: BinarySvm,
        cost: f64,
        left_out: bool,
        times: usize,
    ) -> f64 {
        let (train, valid) = (self.rows(0..self.n), self.rows(self.n..self.x.rows()));
        let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
        let (pairs, rows, starts) = ([PairFold { train: train.clone(), valid }], [train], [svm]);
        seconds(times, || {
            gram.set_metric(&self.metric).unwrap();
            match left_out {
                true => {
                    leave_one_out(&*gram, (&rows, &vec![1.0; self.n]), cost, loss, &starts).unwrap()
                }
                false => validate_pairs(&*gram, &pairs, cost, loss, &starts).unwrap(),
            };
        })
    }
}

/// So small a C that nearly all rows are support vectors.
const SMALL_COST: f64 = 0.02;

/// So many rows have about 20,000 support vectors then.
const LARGEST: usize = 21_060;

fn objective(watch: &Watch, peak: f64, sizes: &[usize]) {
    println!(
        "\nObjective and gradient, {D} columns, from the support set of the same SVM on; TF: 10^12 operations"
    );
    println!("a second, counted as |S|^3 / 3 for the hold-out and 2 |S|^3 for leave-one-out.");
    println!("| criterion | |S| | cpu, s | card, s | times faster | card, TF | share of gemm |");
    println!("|---|---|---|---|---|---|---|");
    for (name, left_out, factor) in [("hold-out", false, 1.0 / 3.0), ("leave-one-out", true, 2.0)] {
        for &size in sizes {
            let setup = setup(size, size / 2);
            let (card, support) = setup.evaluation(watch, SMALL_COST, left_out, 3);
            // Once is enough where it takes seconds.
            let times = usize::from(size <= 5000);
            let (cpu, _) = setup.evaluation(&Watch::default(), SMALL_COST, left_out, times);
            let rate = factor * (support as f64).powi(3) / card / 1e12;
            println!(
                "| {name} | {support} | {cpu:.3} | {card:.4} | {:.1} | {rate:.1} | {:.0} % |",
                cpu / card,
                100.0 * rate / peak,
            );
        }
    }
}

fn large(watch: &Watch, n: usize) {
    println!(
        "\nAn exact SVM and its gradient on {n} rows, {D} columns, {} rows to validate.",
        n / 10
    );
    println!("| where | C | |S| | SVM from nothing, s | objective and gradient, s |");
    println!("|---|---|---|---|---|");
    let setup = setup(n, n / 10);
    let line = |place: &str, watch: &Watch, cost: f64, times: usize| {
        let gram = setup.gram(watch);
        let begun = Instant::now();
        let svm = setup.svm(&*gram, cost);
        let (trained, support) = (begun.elapsed().as_secs_f64(), svm.support.len());
        let time = setup.evaluation_from(gram, svm, cost, false, times);
        println!("| {place} | {cost} | {support} | {trained:.2} | {time:.2} |");
    };
    line("card", watch, 1.0, 1);
    line("card", watch, SMALL_COST, 1);
    // Minutes.
    line("cpu", &Watch::default(), 1.0, 0);
}

/// Two folds of all pairs of classes: small SVMs, which the card trains together.
fn several_classes(watch: &Watch) {
    println!("\nSeveral classes, {D} columns: objective and gradient over two folds of all pairs.");
    println!("| rows | classes | SVMs | cpu, ms | card, ms |");
    println!("|---|---|---|---|---|");
    for (n, classes) in [(1000, 10), (2000, 26), (4000, 3), (4000, 10), (4000, 26)] {
        let generator = Generator { rows: n, noise: D - 2, classes, ..Default::default() };
        let data = generator.generate().unwrap().data;
        let half = |parity: usize| {
            let index: Vec<usize> = (0..n).filter(|i| i % 2 == parity).collect();
            let class = index.iter().map(|&i| data.y()[i]).collect();
            let weight = vec![1.0; index.len()];
            LabelledRows { index, class, weight }
        };
        let (even, odd) = (half(0), half(1));
        let mut folds = split_pairs(&even, &odd, classes);
        folds.extend(split_pairs(&odd, &even, classes));
        let metric = Metric::isotropic(Form::Diagonal, D, (D as f64).sqrt().recip()).unwrap();
        let loss = Loss { surrogate: Surrogate::Logistic, steepness: 1.0 };
        let time = |watch: &Watch| {
            let mut gram = backend().gram(data.x(), n, &metric, Kernel::Gaussian, watch).unwrap();
            let starts = validate_pairs(&*gram, &folds, 1.0, loss, &[]).unwrap().svms;
            1e3 * seconds(5, || {
                gram.set_metric(&metric).unwrap();
                validate_pairs(&*gram, &folds, 1.0, loss, &starts).unwrap();
            })
        };
        let (cpu, card) = (time(&Watch::default()), time(watch));
        println!("| {n} | {classes} | {} | {cpu:.2} | {card:.2} |", folds.len());
    }
}

/// The members of a mean on either half of the rows, each with a kernel and a metric of its own: one alone, and all six side by
/// side, as a fit learns them.
fn members(watch: &Watch) {
    /// Evaluations that each of them makes.
    const EACH: usize = 20;
    println!(
        "\nMembers, {D} columns: objective and gradient over two folds, ms for each evaluation of one alone,"
    );
    println!("and of six side by side until all six are done.");
    println!("| rows | cpu: one | cpu: six | card: one | card: six |");
    println!("|---|---|---|---|---|");
    for n in [300, 1000, 2000, 4000] {
        let setup = setup(n, 0);
        let kinds = [
            (Kernel::Gaussian, Form::Sphere),
            (Kernel::Exponential, Form::Diagonal),
            (Kernel::Laplacian, Form::Sphere),
        ];
        let (even, odd) = (setup.rows_with(0), setup.rows_with(1));
        let folds = [
            PairFold { train: even.clone(), valid: odd.clone() },
            PairFold { train: odd, valid: even },
        ];
        let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
        let evaluations = |member: usize, watch: &Watch| {
            let (kernel, form) = kinds[member % kinds.len()];
            let metric = Metric::isotropic(form, D, (D as f64).sqrt().recip()).unwrap();
            let mut gram = backend().gram(&setup.x, n, &metric, kernel, watch).unwrap();
            let mut svms = Vec::new();
            for _ in 0..EACH {
                gram.set_metric(&metric).unwrap();
                svms = validate_pairs(&*gram, &folds, 1.0, loss, &svms).unwrap().svms;
            }
        };
        let time = |count: usize, watch: &Watch| {
            let all = || (0..count).into_par_iter().for_each(|member| evaluations(member, watch));
            1e3 * seconds(2, all) / EACH as f64
        };
        let cpu = Watch::default();
        println!(
            "| {n} | {:.2} | {:.2} | {:.2} | {:.2} |",
            time(1, &cpu),
            time(6, &cpu),
            time(1, watch),
            time(6, watch)
        );
    }
}

fn break_even(watch: &Watch) {
    println!("\nWhere the card pays: objective and gradient, hold-out.");
    println!("| rows | |S| | cpu, ms | card, ms |");
    println!("|---|---|---|---|");
    let mut pays = None;
    for n in [125, 250, 500, 1000, 2000, 4000] {
        let setup = setup(n, n / 2);
        let (cpu, support) = setup.evaluation(&Watch::default(), 1.0, false, 5);
        let (card, _) = setup.evaluation(watch, 1.0, false, 5);
        println!("| {n} | {support} | {:.2} | {:.2} |", 1e3 * cpu, 1e3 * card);
        pays = pays.or((card < cpu).then_some(n));
    }
    println!("The card is faster from {pays:?} rows on.");
}

fn predictions(gpu: &'static Gpu, rows: usize) {
    println!("\nOutputs of an SVM at {rows} rows of {D} columns.");
    println!("| support vectors | cpu, s | card, s |");
    println!("|---|---|---|");
    let matrix = |rows: usize, cols: usize| {
        Matrix::from_fn(rows, cols, |i, k| ((i * 7 + k * 13) as f64 * 0.61).sin())
    };
    let z = matrix(rows, D);
    for support in [500, 5000] {
        let (points, beta) = (matrix(support, D), matrix(1, support));
        let on = |gpu: Option<&'static Gpu>| {
            seconds(1, || match gpu {
                None => drop(expand(Kernel::Gaussian, &z, &points, &beta)),
                gpu => drop(expand_on(gpu, Kernel::Gaussian, &z, &points, &beta).unwrap()),
            })
        };
        println!("| {support} | {:.3} | {:.4} |", on(None), on(Some(gpu)));
    }
}

/// Parts of one evaluation, to see what takes the time.
fn parts(watch: &Watch, n: usize) {
    println!("\nParts at {n} rows, {D} columns.");
    println!("| part | ms | TF |");
    println!("|---|---|---|");
    let setup = setup(n, 0);
    let gram = setup.gram(watch);
    let (set, ridge): (Vec<usize>, Vec<f64>) = ((0..n).collect(), vec![1.0 / SMALL_COST; n]);
    let cube = (n as f64).powi(3);
    let row = |part: &str, time: f64, work: f64| {
        println!("| {part} | {:.2} | {:.1} |", 1e3 * time, work / time / 1e12);
    };
    let v: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
    row("product with K", seconds(3, || drop(gram.multiply(&set, &set, &v))), 0.0);
    row("factor", seconds(3, || drop(gram.factor(&set, &ridge).unwrap())), cube / 3.0);
    let factor = gram.factor(&set, &ridge).unwrap();
    let mut ones = vec![1.0; n];
    factor.solve(&mut ones);
    let mut two = vec![1.0; 2 * n];
    row("two solutions", seconds(3, || factor.solve(&mut two)), 0.0);
    let inverse = seconds(2, || drop(factor.bordered_inverse(&ones).unwrap()));
    row("inverse", inverse, 2.0 * cube / 3.0);
    let inverse = factor.bordered_inverse(&ones).unwrap();
    row("contraction with B q B", seconds(2, || drop(inverse.contract(&v).unwrap())), cube);
    let outer = [Outer { rows: &set, left: &v, cols: &set, right: &ones }];
    row("contraction with u beta'", seconds(3, || drop(gram.contract(&outer).unwrap())), 0.0);
    watch.check().unwrap();
}

fn main() {
    let quick = std::env::args().any(|argument| argument == "quick");
    let begun = Instant::now();
    let gpu = match open(0) {
        Ok(gpu) => gpu,
        Err(error) => return println!("skipped: no CUDA device ({error})"),
    };
    println!("{}, {} threads of the processor", gpu.label(), rayon::current_num_threads());
    println!(
        "opened in {:.2} s; {:.1} GiB of memory",
        begun.elapsed().as_secs_f64(),
        gpu.total() as f64 / f64::from(1 << 30)
    );
    let watch = Watch::default().on(Some(gpu));
    let sizes: &[usize] = if quick { &[2000, 5000] } else { &[2000, 5000, 10_000, LARGEST] };
    let peak = gemm_peak(gpu, if quick { 4096 } else { 16_384 });
    println!("gemm: {peak:.1} TF");
    parts(&watch, if quick { 5000 } else { 20_000 });
    objective(&watch, peak, sizes);
    break_even(&watch);
    several_classes(&watch);
    members(&watch);
    predictions(gpu, if quick { 100_000 } else { 1_000_000 });
    if !quick {
        large(&watch, 60_000);
    }
}
