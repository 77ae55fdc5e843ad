//! SVMs on landmarks on the processor and on the first CUDA card: seconds of each question, and of a whole fit by phases.
//!
//! `cargo bench --bench cuda_landmarks -- [questions] [fit] [--rows N] [--no-processor] [--limit SECONDS]`; without a card it
//! says so. The limit is one for the fit on the processor.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use svml::internals::cuda::{self, Gpu};
use svml::internals::landmarks::{
    Answer, LandmarkKernel, LandmarkProblems, LandmarkSvms, Landmarks, LocalRows, PART, Part,
    Point, Problem, Question, Rows, Systems, Validation,
};
use svml::internals::loss::{Loss, Surrogate};
use svml::internals::{LabelledRows, Watch};
use svml::{Dataset, Device, Form, Kernel, Matrix, Metric, Model, Run, Svml};

const COLUMNS: usize = 100;

/// Rows of two classes, of whose columns ten matter.
fn table(n: usize) -> (Matrix, Vec<usize>) {
    let noise = |seed: u64| {
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^= z >> 27;
        z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    let x = Matrix::from_fn(n, COLUMNS, |i, k| {
        let at = (i * COLUMNS + k) as u64;
        2.0 * (noise(2 * at) + noise(2 * at + 1))
    });
    let class = (0..n)
        .map(|i| {
            let s: f64 = x.row(i)[..10].iter().map(|v| v * v).sum();
            usize::from((s > 6.6) != (noise(!(i as u64)) > 0.45))
        })
        .collect();
    (x, class)
}

/// Seconds of questions: the first step with a metric, which computes K and the whole sum in H, other steps, gradients.
#[derive(Default)]
struct Times {
    first: Vec<f64>,
    steps: Vec<f64>,
    gradients: Vec<f64>,
    fresh: bool,
}

struct Timed<'a> {
    rows: LocalRows<'a>,
    times: Arc<Mutex<Times>>,
}

impl Times {
    fn step(&mut self, seconds: f64) {
        match std::mem::take(&mut self.fresh) {
            true => self.first.push(seconds),
            false => self.steps.push(seconds),
        }
    }
}

impl Rows for Timed<'_> {
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> svml::Result<Answer> {
        let begun = Instant::now();
        let answer = self.rows.ask(kernel, question)?;
        let seconds = begun.elapsed().as_secs_f64();
        let mut times = self.times.lock().unwrap();
        match question {
            Question::Step { .. } => times.step(seconds),
            Question::Gradient { .. } => times.gradients.push(seconds),
            _ => {}
        }
        Ok(answer)
    }

    fn systems(&self, kernel: &LandmarkKernel) -> Option<&dyn Systems> {
        self.rows.systems(kernel).map(|_| self as &dyn Systems)
    }
}

impl Systems for Timed<'_> {
    fn step(
        &self,
        kernel: &LandmarkKernel,
        validation: Option<Validation>,
        points: &[Option<(Point, Option<Point>)>],
    ) -> svml::Result<Vec<Vec<f64>>> {
        let begun = Instant::now();
        let answer = Systems::step(&self.rows, kernel, validation, points)?;
        self.times.lock().unwrap().step(begun.elapsed().as_secs_f64());
        Ok(answer)
    }

    fn solve(
        &self,
        kernel: &LandmarkKernel,
        number: usize,
        cost: Option<f64>,
        right: &[f64],
    ) -> svml::Result<(Vec<f64>, f64)> {
        self.rows.solve(kernel, number, cost, right)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Two evaluations of a metric, after one that is not counted. Times of the questions, and of one evaluation.
fn questions(
    x: &Matrix,
    class: &[usize],
    m: usize,
    (kernel, form): (Kernel, Form),
    gpu: Option<&'static Gpu>,
) -> (Times, f64) {
    let watch = Watch::default().on(gpu);
    let n = x.rows();
    let metric = Metric::isotropic(form, COLUMNS, 0.3 / (COLUMNS as f64).sqrt()).unwrap();
    let among = n.min(PART);
    let landmarks = Landmarks::choose(x, &class[..among], 2, m, &metric, &watch).unwrap();
    let parts = (0..n).step_by(PART).map(|first| {
        let rows: Vec<usize> = (first..n.min(first + PART)).collect();
        let fold = |fold: usize| {
            let index: Vec<usize> = rows.iter().copied().filter(|i| i % 2 == fold).collect();
            let of_class = index.iter().map(|&i| class[i]).collect();
            LabelledRows { weight: vec![1.0; index.len()], class: of_class, index }
        };
        Part::of_folds(x, &[fold(0), fold(1)], 2)
    });
    let times: Arc<Mutex<Times>> = Arc::default();
    let rows = LocalRows::new(parts.collect(), 16 << 30, &watch);
    let rows = Timed { rows, times: times.clone() };
    let problems = [([true, false], [false, true]), ([false, true], [true, false])];
    let problems =
        problems.iter().flat_map(|(train, valid)| Problem::of_pairs(2, train, valid)).collect();
    let given = LandmarkProblems { kernel, metric: &metric, problems, guess: None };
    let z = x.select_rows(&landmarks.rows);
    let mut svms = LandmarkSvms::new(Box::new(rows), (z, landmarks), None, given, &watch).unwrap();
    let loss = Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 };
    let mut begun = Instant::now();
    for repeat in 0..3 {
        if repeat == 1 {
            *times.lock().unwrap() = Times::default();
            begun = Instant::now();
        }
        times.lock().unwrap().fresh = true;
        svms.set_metric(&metric.scaled(1.0 + 0.05 * f64::from(repeat)).unwrap()).unwrap();
        svms.evaluate(1.0, loss).unwrap();
    }
    let seconds = begun.elapsed().as_secs_f64() / 2.0;
    drop(svms);
    (Arc::into_inner(times).unwrap().into_inner().unwrap(), seconds)
}

fn all_questions(largest: usize, gpu: Option<&'static Gpu>, processor: bool) {
    println!(
        "| rows | landmarks | kernel | on | first step | other steps | gradient | evaluation |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for n in [100_000, 1_000_000].into_iter().filter(|n| *n <= largest) {
        let (x, class) = table(n);
        for m in [500, 1000, 2000] {
            for (kernel, form) in [
                (Kernel::Gaussian, Form::Diagonal),
                (Kernel::Exponential, Form::Diagonal),
                (Kernel::Laplacian, Form::Diagonal),
                (Kernel::Gaussian, Form::Full),
            ] {
                // A million rows on the processor with the fewest landmarks only: the rest is in proportion.
                let here = (processor && (n < 1_000_000 || m == 500)).then_some(None);
                let places = here.into_iter().chain(gpu.map(Some));
                for place in places {
                    let (times, evaluation) = questions(&x, &class, m, (kernel, form), place);
                    println!(
                        "| {n} | {m} | {kernel} {form} | {} | {:.4} | {:.4} ({}) | {:.4} | {:.4} |",
                        place.map_or("processor", Gpu::name),
                        mean(&times.first),
                        mean(&times.steps),
                        times.steps.len() / 2,
                        mean(&times.gradients),
                        evaluation
                    );
                }
            }
        }
    }
}

/// A default fit, with the time at which each activity and each step began.
fn fit(n: usize, gpu: Option<&'static Gpu>, limit: Option<f64>) {
    let (x, class) = table(n);
    let data = Dataset::new(x, &class).unwrap();
    println!("default fit to {n} x {COLUMNS} on {}", gpu.map_or("the processor", Gpu::name));
    let begun = Instant::now();
    let mut run = Run::new()
        .device(gpu.map_or(Device::Cpu, |gpu| Device::Cuda(gpu.number())))
        .listener(|activity| println!("{:8.2} s {activity:?}", begun.elapsed().as_secs_f64()))
        .observer(|step| {
            println!("{:8.2} s step {}", step.seconds, step.iteration);
            std::ops::ControlFlow::Continue(())
        });
    if let Some(limit) = limit {
        run = run.time_limit(Duration::from_secs_f64(limit));
    }
    let model = Model::fit_with(&data, Svml::default(), &mut run).unwrap();
    drop(run);
    println!(
        "{:8.2} s done; cut short: {}; {:?}",
        begun.elapsed().as_secs_f64(),
        model.report().cut_short,
        model.report().honest
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let rows = arguments.iter().position(|argument| argument == "--rows");
    let rows: usize = rows.map_or(1_000_000, |at| arguments[at + 1].parse().unwrap());
    let gpu = match cuda::open(0) {
        Ok(gpu) => Some(gpu),
        Err(error) => {
            println!("no CUDA device: {error}");
            None
        }
    };
    let limit = arguments.iter().position(|argument| argument == "--limit");
    let limit: Option<f64> = limit.map(|at| arguments[at + 1].parse().unwrap());
    let (processor, both) = (!given("--no-processor"), !given("questions") && !given("fit"));
    if both || given("questions") {
        all_questions(rows, gpu, processor);
    }
    if both || given("fit") {
        if let Some(gpu) = gpu {
            fit(rows, Some(gpu), None);
        }
        if processor {
            fit(rows, None, limit);
        }
    }
}
