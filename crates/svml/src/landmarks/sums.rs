//! What a part answers about SVMs: the sums that Newton's method needs at a point, and hinge losses along a way.
//!
//! With S = { i : y_i f_i < 1 } and k_i row i of K_nm with a one for the bias, the sums of a problem are
//!
//! ```text
//! sum_i w_i/2 max(0, 1 - y_i f_i)^2      sum_S w_i (f_i - y_i) k_i      sum_S w_i k_i k_i'
//! ```
//!
//! and, for the validation rows, the loss and sum g_v k_v. Of the sum of k_i k_i' only what has changed since the point
//! before is computed: rows that have entered S, less rows that have left it.

use std::ops::Range;

use super::pair::PairColumns;
use super::part::{Kept, Part, RowBlock, class_factor};
use super::question::{LandmarkKernel, Point, Problem, Validation};
use crate::error::Result;
use crate::linalg::{self, Block, Cholesky, Matrix, add_scaled};
use crate::parallel;
use crate::watch::Watch;

/// Rows that are summed by one task.
const TASK_ROWS: usize = 128;
/// Side of a tile of the sum in H.
const TILE: usize = 128;
/// Shares of a way that are looked at: 1/2, 1/4, ...
pub const SHARES: usize = 40;

/// Sums of one problem, as they stand in an answer: some numbers, two vectors, a triangle.
pub struct StepSums {
    values: Vec<f64>,
    len: usize,
}

/// Places of the numbers.
const HINGE: usize = 0;
const WEIGHT: usize = 1;
const LOSS: usize = 2;
const WRONG_TRAIN: usize = 3;
const WRONG_VALID: usize = 4;
const NUMBERS: usize = 5;

impl StepSums {
    fn zero(len: usize) -> Self {
        Self { values: vec![0.0; NUMBERS + 2 * len], len }
    }

    fn with_triangle(mut self) -> Self {
        self.values.resize(NUMBERS + 2 * self.len + self.len * (self.len + 1) / 2, 0.0);
        self
    }

    /// The sums of an SVM of so many coefficients.
    pub fn of(values: Vec<f64>, len: usize) -> Self {
        Self { values, len }
    }

    /// sum w slack^2 / 2 over the training rows.
    pub fn hinge(&self) -> f64 {
        self.values[HINGE]
    }

    /// sum of w over S.
    pub fn weight(&self) -> f64 {
        self.values[WEIGHT]
    }

    /// The validation loss.
    pub fn loss(&self) -> f64 {
        self.values[LOSS]
    }

    /// The weight of training rows and of validation rows on the wrong side.
    pub fn wrong(&self) -> (f64, f64) {
        (self.values[WRONG_TRAIN], self.values[WRONG_VALID])
    }

    /// sum w (f - y) [k, 1] over S.
    pub fn gradient(&self) -> &[f64] {
        &self.values[NUMBERS..NUMBERS + self.len]
    }

    /// sum g [k, 1] over the validation rows, with g the derivative of the loss in f.
    pub fn valid(&self) -> &[f64] {
        &self.values[NUMBERS + self.len..NUMBERS + 2 * self.len]
    }

    /// By what sum w [k, 1] [k, 1]' over S has changed: the upper triangle, row after row.
    pub fn triangle(&self) -> &[f64] {
        &self.values[NUMBERS + 2 * self.len..]
    }

    fn add(&mut self, other: &Self) {
        add_scaled(&mut self.values[..other.values.len()], 1.0, &other.values);
    }
}

/// A problem, the point that it is asked at, and where its rows in a block are.
struct Asked<'q> {
    problem: &'q Problem,
    columns: PairColumns,
    root: Option<&'q Cholesky>,
    at: &'q Point,
    before: Option<&'q Point>,
}

/// Rows of one class in a block.
struct ClassRows<'b> {
    y: f64,
    /// The weight of each.
    weight: Vec<f64>,
    fold: &'b [u16],
    /// Their part of K.
    k: &'b [f64],
    /// The outputs of the guess for the pair, if there is one.
    guess: Option<Vec<f64>>,
}

impl ClassRows<'_> {
    /// Whether a row is trained on and inside of the margin at a point.
    fn inside(&self, asked: &Asked<'_>, i: usize, point: &Point, f: impl Fn() -> f64) -> bool {
        if !asked.problem.train[usize::from(self.fold[i])] {
            return false;
        }
        match &self.guess {
            Some(guess) if point.guessed => self.y * guess[i] < 1.0,
            _ => self.y * f() < 1.0,
        }
    }
}

impl Part<'_> {
    /// The sums of all problems that ask.
    pub(super) fn step(
        &self,
        kept: &mut Kept,
        kernel: &LandmarkKernel,
        validation: Option<Validation>,
        points: &[Option<(Point, Option<Point>)>],
        keep: usize,
        watch: &Watch,
    ) -> Result<Vec<Vec<f64>>> {
        let setting = &kernel.setting;
        let mut inside = std::mem::take(&mut kept.inside);
        // For each problem that asks: what is asked, the sums, which rows are inside now, and which were.
        let mut asking: Vec<_> = (setting.problems.iter().zip(points).enumerate())
            .filter_map(|(number, (problem, point))| {
                let (at, before) = point.as_ref()?;
                let columns = PairColumns::of(setting, problem);
                let sums = StepSums::zero(columns.len() + 1).with_triangle();
                let root = kernel.root(problem);
                let asked = Asked { problem, columns, root, at, before: before.as_ref() };
                let known = match (before, inside[number].take()) {
                    (None, _) => Some(vec![false; self.rows_of(problem)]),
                    (Some(before), Some((of, flags))) if of == before.number => Some(flags),
                    _ => None,
                };
                let now = vec![false; self.rows_of(problem)];
                Some((number, asked, sums, now, known))
            })
            .collect();
        let guessed = asking.iter().any(|(_, asked, _, _, known)| {
            asked.at.guessed || known.is_none() && asked.before.is_some_and(|point| point.guessed)
        });
        let done = self.for_each_block(kept, kernel, keep, watch, |block| {
            let guess = guessed.then(|| guess_outputs(kernel, &block)).flatten();
            for (class, places) in self.by_class(&block.places) {
                parallel::for_each(&mut asking, |(_, asked, sums, now, known)| {
                    let Some(numbers) = self.numbers(asked.problem, class, &places) else {
                        return;
                    };
                    let rows =
                        self.class_rows(kernel, &block, class, &places, asked, guess.as_ref());
                    let known = known.as_ref().map(|known| &known[numbers.clone()]);
                    asked.add(sums, &rows, validation, known, &mut now[numbers]);
                });
            }
        });
        let mut sums = Vec::with_capacity(asking.len());
        for (number, asked, of_problem, now, _) in asking {
            inside[number] = Some((asked.at.number, now));
            sums.push(of_problem.values);
        }
        if done.is_ok() {
            kept.inside = inside;
        } else {
            kept.inside.resize_with(setting.problems.len(), || None);
        }
        done.map(|()| sums)
    }

    /// Rows of a class in a block, as a problem sees them.
    fn class_rows<'b>(
        &self,
        kernel: &LandmarkKernel,
        block: &RowBlock<'b>,
        class: usize,
        places: &Range<usize>,
        asked: &Asked<'_>,
        guess: Option<&Matrix>,
    ) -> ClassRows<'b> {
        let m = kernel.m();
        let local = places.start - block.places.start..places.end - block.places.start;
        let factor = class_factor(kernel, class);
        ClassRows {
            y: if class == asked.problem.classes.1 { 1.0 } else { -1.0 },
            weight: self.weight[places.clone()].iter().map(|w| factor * w).collect(),
            fold: &block.fold[local.clone()],
            k: &block.k[local.start * m..local.end * m],
            guess: guess.map(|h| local.map(|i| h[(i, asked.problem.pair)]).collect()),
        }
    }

    /// For each problem that asks the hinge loss at shares of a way.
    pub(super) fn shares(
        &self,
        kept: &mut Kept,
        kernel: &LandmarkKernel,
        ways: &[Option<(Vec<f64>, Vec<f64>)>],
        keep: usize,
        watch: &Watch,
    ) -> Result<Vec<Vec<f64>>> {
        let setting = &kernel.setting;
        let m = kernel.m();
        let mut asking: Vec<_> = (setting.problems.iter().zip(ways))
            .filter_map(|(problem, way)| {
                let columns = PairColumns::of(setting, problem);
                way.as_ref().map(|way| (problem, columns, way, vec![0.0; SHARES]))
            })
            .collect();
        self.for_each_block(kept, kernel, keep, watch, |block| {
            for (class, places) in self.by_class(&block.places) {
                let factor = class_factor(kernel, class);
                parallel::for_each(&mut asking, |(problem, columns, (from, to), sums)| {
                    if class != problem.classes.0 && class != problem.classes.1 {
                        return;
                    }
                    let y = if class == problem.classes.1 { 1.0 } else { -1.0 };
                    for place in places.clone() {
                        let i = place - block.places.start;
                        if !problem.train[usize::from(block.fold[i])] {
                            continue;
                        }
                        let k = &block.k[i * m..(i + 1) * m];
                        let (old, new) = (columns.output(k, from), columns.output(k, to));
                        let (weight, mut share) = (factor * self.weight[place], 0.5);
                        for sum in sums.iter_mut() {
                            let slack = 1.0 - y * (old + share * (new - old));
                            *sum += 0.5 * weight * slack.max(0.0).powi(2);
                            share *= 0.5;
                        }
                    }
                });
            }
        })?;
        Ok(asking.into_iter().map(|(.., sums)| sums).collect())
    }
}

impl Asked<'_> {
    /// Adds what some rows contribute. `known` says which of them were inside at the point before, and is computed if it
    /// is not known; `now` receives which of them are.
    fn add(
        &self,
        sums: &mut StepSums,
        rows: &ClassRows<'_>,
        validation: Option<Validation>,
        known: Option<&[bool]>,
        now: &mut [bool],
    ) {
        let (len, m) = (sums.len, rows.k.len() / now.len().max(1));
        let tasks = now.chunks_mut(TASK_ROWS).enumerate();
        let parts: Vec<(StepSums, Vec<bool>)> = parallel::map(tasks, |(task, now)| {
            let mut sums = StepSums::zero(len);
            let mut before = Vec::with_capacity(now.len());
            for (i, now) in now.iter_mut().enumerate() {
                let i = task * TASK_ROWS + i;
                let k = &rows.k[i * m..(i + 1) * m];
                *now = self.add_row(&mut sums, rows, i, k, validation);
                before.push(match (known, self.before) {
                    (Some(known), _) => known[i],
                    (None, Some(point)) => {
                        rows.inside(self, i, point, || self.columns.output(k, &point.theta))
                    }
                    (None, None) => false,
                });
            }
            (sums, before)
        });
        parts.iter().for_each(|(part, _)| sums.add(part));
        let before = parts.iter().flat_map(|(_, before)| before);
        let changed = |is: bool| -> Vec<usize> {
            let both = now.iter().zip(before.clone()).enumerate();
            both.filter(|(_, (now, before))| now != before && **now == is).map(|(i, _)| i).collect()
        };
        for (changed, sign) in [(changed(true), 1.0), (changed(false), -1.0)] {
            self.add_outer_products(sums, sign, rows, &changed, m);
        }
    }

    /// Adds all of a row but its outer product; whether it is inside of the margin.
    fn add_row(
        &self,
        sums: &mut StepSums,
        rows: &ClassRows<'_>,
        i: usize,
        k: &[f64],
        validation: Option<Validation>,
    ) -> bool {
        let fold = usize::from(rows.fold[i]);
        let (train, valid) = (self.problem.train[fold], self.problem.valid[fold]);
        let validation = validation.filter(|_| valid);
        if !train && validation.is_none() {
            return false;
        }
        let (y, weight, len) = (rows.y, rows.weight[i], sums.len);
        let f = self.columns.output(k, &self.at.theta);
        let inside = rows.inside(self, i, self.at, || f);
        let wrong = if (f > 0.0) == (y > 0.0) { 0.0 } else { weight };
        let (numbers, vectors) = sums.values.split_at_mut(NUMBERS);
        let (gradient, valid_sums) = vectors.split_at_mut(len);
        if train {
            numbers[WRONG_TRAIN] += wrong;
        }
        if inside {
            let slack = 1.0 - y * f;
            numbers[HINGE] += 0.5 * weight * slack * slack;
            numbers[WEIGHT] += weight;
            self.columns.add_row(gradient, -weight * y * slack, k);
        }
        if let Some(validation) = validation {
            let (loss, g) = validation.at(weight, y, f);
            numbers[LOSS] += loss;
            numbers[WRONG_VALID] += wrong;
            if g != 0.0 {
                self.columns.add_row(&mut valid_sums[..len], g, k);
            }
        }
        inside
    }

    /// Adds the outer products of some rows to the triangle, or takes them away.
    fn add_outer_products(
        &self,
        sums: &mut StepSums,
        sign: f64,
        rows: &ClassRows<'_>,
        chosen: &[usize],
        m: usize,
    ) {
        if chosen.is_empty() {
            return;
        }
        let len = sums.len;
        let mut a = Matrix::zeros(chosen.len(), len);
        for (out, &i) in chosen.iter().enumerate() {
            let k = &rows.k[i * m..(i + 1) * m];
            self.columns.gather(a.row_mut(out), rows.weight[i].sqrt(), k);
        }
        if let Some(root) = self.root {
            let m = len - 1;
            let mut z: Vec<f64> = a.iter_rows().flat_map(|a| &a[..m]).copied().collect();
            root.solve_lower(&mut z);
            (0..chosen.len())
                .for_each(|i| a.row_mut(i)[..m].copy_from_slice(&z[i * m..(i + 1) * m]));
        }
        let first = NUMBERS + 2 * len;
        add_cross_product(&mut sums.values[first..], sign, &a);
    }
}

/// The outputs of the guess at the rows of a block. // (rows, pairs)
fn guess_outputs(kernel: &LandmarkKernel, block: &RowBlock<'_>) -> Option<Matrix> {
    let guess = kernel.setting.guess.as_ref()?;
    let z = guess.metric.transform(&(block.x)());
    let tasks: Vec<Matrix> = parallel::map(0..z.rows().div_ceil(TASK_ROWS), |task| {
        let rows: Vec<usize> = (task * TASK_ROWS..z.rows().min((task + 1) * TASK_ROWS)).collect();
        guess.svms.outputs(guess.kernel, &z.select_rows(&rows), &guess.mapped)
    });
    let values: Vec<f64> = tasks.into_iter().flat_map(Matrix::into_vec).collect();
    Matrix::new(z.rows(), guess.svms.bias.len(), values).ok()
}

/// Where a row of the triangle of an n x n matrix starts, if its rows stand one after the other.
pub fn triangle_row(n: usize, row: usize) -> usize {
    row * n - row * row.saturating_sub(1) / 2
}

/// `triangle += sign a' a`: the upper triangle, row after row, in parallel tiles.
fn add_cross_product(triangle: &mut [f64], sign: f64, a: &Matrix) {
    let n = a.cols();
    // Rows of a tile are next to each other, so tiles of rows are slices.
    let mut tiles = Vec::new();
    let mut rest = triangle;
    for first in (0..n).step_by(TILE) {
        let end = n.min(first + TILE);
        let (tile, after) = rest.split_at_mut(triangle_row(n, end) - triangle_row(n, first));
        tiles.push((first, end - first, tile));
        rest = after;
    }
    parallel::for_each(tiles, |(first, count, mut triangle)| {
        let width = n - first;
        let mut tile = vec![0.0; count * width];
        let from = |width: usize| Block::new(&a.as_slice()[first..], a.rows(), width, n);
        linalg::product(&mut tile, width, sign, from(count).t(), from(width));
        for (i, tile) in tile.chunks_exact(width).enumerate() {
            let (row, after) = triangle.split_at_mut(width - i);
            add_scaled(row, 1.0, &tile[i..]);
            triangle = after;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::question::{Guess, Question, Setting};
    use super::*;
    use crate::data::LabelledRows;
    use crate::loss::{Loss, Surrogate};
    use crate::metric::{Form, Kernel, Metric};
    use crate::svm::BinarySvm;
    use chacha20::ChaCha8Rng;
    use rand::{RngExt, SeedableRng};

    const CLASSES: usize = 3;
    /// More than a block has, and of each class more than a task has.
    const ROWS: usize = 2300;
    /// Of each class; those of a pair are more than a tile has.
    const LANDMARKS: usize = 70;
    const VALIDATION: Validation =
        Validation { loss: Loss { surrogate: Surrogate::Logistic, steepness: 2.0 }, total: 123.0 };

    /// Rows in three folds, with problems that train on some of the folds.
    struct Case {
        x: Matrix,
        rows: LabelledRows,
        fold: Vec<usize>,
        kernel: LandmarkKernel,
        /// K between rows and landmarks, from its definition.
        k: Matrix,
        /// The outputs of the guess of each pair.
        guess: Option<Matrix>,
    }

    /// k = exp(-|x - z|) or exp(-|x - z|^2) for a metric that is a multiple of the identity.
    fn entry(kernel: Kernel, scale: f64, x: &[f64], z: &[f64]) -> f64 {
        let sq: f64 = x.iter().zip(z).map(|(x, z)| (scale * (x - z)).powi(2)).sum();
        if kernel == Kernel::Gaussian { (-sq).exp() } else { (-sq.sqrt()).exp() }
    }

    impl Case {
        fn new(kernel: Kernel, guessed: bool) -> Self {
            let mut rng = ChaCha8Rng::seed_from_u64(17);
            let x = Matrix::from_fn(ROWS, 3, |_, _| rng.random_range(-2.0..2.0));
            let class: Vec<usize> = (0..ROWS).map(|_| rng.random_range(0..CLASSES)).collect();
            let weight: Vec<f64> = (0..ROWS).map(|_| rng.random_range(0.2..3.0)).collect();
            let fold: Vec<usize> = (0..ROWS).map(|_| rng.random_range(0..3)).collect();
            let of_class = |c: usize| (0..ROWS).filter(|&i| class[i] == c).collect::<Vec<_>>();
            let chosen: Vec<usize> =
                (0..CLASSES).flat_map(|c| of_class(c).into_iter().take(LANDMARKS)).collect();
            let problems = [
                Problem::of_pairs(CLASSES, &[true, true, false], &[false, false, true]),
                Problem::of_pairs(CLASSES, &[false, true, false], &[true, false, false]),
            ];
            let svms: Vec<BinarySvm> = (0..CLASSES)
                .map(|_| BinarySvm {
                    support: vec![0, 1, 2, 5, 40, 41, 42, 43],
                    beta: (0..8).map(|_| rng.random_range(-2.0..2.0)).collect(),
                    bias: rng.random_range(-0.5..0.5),
                })
                .collect();
            // The SVM of a pair has rows of its two classes only.
            let pairs = crate::data::pairs(CLASSES);
            let svms: Vec<BinarySvm> = (svms.into_iter().zip(&pairs))
                .map(|(svm, pair)| {
                    let terms = svm.support.iter().zip(&svm.beta);
                    let (support, beta) =
                        terms.filter(|(i, _)| class[**i] == pair.0 || class[**i] == pair.1).unzip();
                    BinarySvm { support, beta, bias: svm.bias }
                })
                .collect();
            let sphere = |scale: f64| Metric::isotropic(Form::Sphere, 3, scale).unwrap();
            let outputs = Matrix::from_fn(ROWS, CLASSES, |i, p| {
                let terms = svms[p].support.iter().zip(&svms[p].beta);
                let sum: f64 = terms
                    .map(|(&j, beta)| beta * entry(Kernel::Gaussian, 0.6, x.row(i), x.row(j)))
                    .sum();
                sum + svms[p].bias
            });
            let guess = Guess::new(&svms, (&x, &class, CLASSES), Kernel::Gaussian, &sphere(0.6));
            let setting = Setting {
                id: 1,
                preparation: None,
                kernel,
                landmarks: x.select_rows(&chosen),
                starts: (0..=CLASSES).map(|c| c * LANDMARKS).collect(),
                problems: problems.concat(),
                guess: guessed.then_some(guess),
            };
            let scale = if kernel == Kernel::Gaussian { 2.0 } else { 0.9 };
            let k = Matrix::from_fn(ROWS, chosen.len(), |i, j| {
                entry(kernel, scale, x.row(i), x.row(chosen[j]))
            });
            let kernel = LandmarkKernel::new(setting, sphere(scale), &Watch::default()).unwrap();
            let rows = LabelledRows { index: (0..ROWS).collect(), class, weight };
            Self { x, rows, fold, kernel, k, guess: guessed.then_some(outputs) }
        }

        fn part(&self) -> Part<'_> {
            let fold = |f: usize| {
                let chosen: Vec<usize> = (0..ROWS).filter(|&i| self.fold[i] == f).collect();
                LabelledRows {
                    class: chosen.iter().map(|&i| self.rows.class[i]).collect(),
                    weight: chosen.iter().map(|&i| self.rows.weight[i]).collect(),
                    index: chosen,
                }
            };
            Part::of_folds(&self.x, &[fold(0), fold(1), fold(2)], CLASSES)
        }

        fn problems(&self) -> &[Problem] {
            &self.kernel.setting.problems
        }

        /// Coefficients for each problem.
        fn points(&self, number: u64, guessed: bool) -> Vec<Point> {
            let mut rng = ChaCha8Rng::seed_from_u64(number);
            let mut theta = || (0..=2 * LANDMARKS).map(|_| rng.random_range(-0.4..0.4)).collect();
            self.problems().iter().map(|_| Point { number, theta: theta(), guessed }).collect()
        }

        fn ask(&self, part: &Part<'_>, question: &Question, keep: usize) -> Vec<Vec<f64>> {
            part.answer(Some(&self.kernel), question, keep, &Watch::default()).unwrap().sums()
        }

        /// For each row of a problem: its fold, label and weight, [k, 1], and its output.
        fn each_row(
            &self,
            problem: &Problem,
            theta: &[f64],
            mut each: impl FnMut(usize, f64, f64, &[f64], f64),
        ) {
            let columns: Vec<usize> =
                PairColumns::of(&self.kernel.setting, problem).iter().collect();
            for i in 0..ROWS {
                let y = match self.rows.class[i] {
                    class if class == problem.classes.1 => 1.0,
                    class if class == problem.classes.0 => -1.0,
                    _ => continue,
                };
                let mut k: Vec<f64> = columns.iter().map(|&j| self.k[(i, j)]).collect();
                k.push(1.0);
                let f = k.iter().zip(theta).map(|(k, t)| k * t).sum();
                each(i, y, self.rows.weight[i], &k, f);
            }
        }

        /// Whether a row is inside of the margin at a point.
        fn is_inside(&self, problem: &Problem, point: &Point, i: usize, y: f64, f: f64) -> bool {
            match &self.guess {
                Some(guess) if point.guessed => y * guess[(i, problem.pair)] < 1.0,
                _ => y * f < 1.0,
            }
        }

        /// The upper triangle of sum w [k, 1] [k, 1]' over the rows inside of the margin, in terms of w for a smooth kernel.
        fn triangle(&self, problem: &Problem, point: &Point) -> Vec<f64> {
            let len = point.theta.len();
            let mut sum = Matrix::zeros(len, len);
            self.each_row(problem, &point.theta, |i, y, weight, k, f| {
                if problem.train[self.fold[i]] && self.is_inside(problem, point, i, y, f) {
                    let mut k = k.to_vec();
                    if let Some(root) = self.kernel.root(problem) {
                        root.solve_lower(&mut k[..len - 1]);
                    }
                    for a in 0..len {
                        (a..len).for_each(|b| sum[(a, b)] += weight * k[a] * k[b]);
                    }
                }
            });
            (0..len).flat_map(|a| sum.row(a)[a..].to_vec()).collect()
        }

        /// Compares the sums at a point, but for the triangle, with those over all rows.
        fn check(&self, problem: &Problem, point: &Point, found: &StepSums, validated: bool) {
            let len = point.theta.len();
            let (mut hinge, mut inside, mut loss, mut wrong) = (0.0, 0.0, 0.0, (0.0, 0.0));
            let (mut gradient, mut valid) = (vec![0.0; len], vec![0.0; len]);
            self.each_row(problem, &point.theta, |i, y, weight, k, f| {
                let misplaced = if y * f > 0.0 { 0.0 } else { weight };
                if problem.train[self.fold[i]] {
                    wrong.0 += misplaced;
                    if self.is_inside(problem, point, i, y, f) {
                        hinge += 0.5 * weight * (1.0 - y * f).powi(2);
                        inside += weight;
                        (0..len).for_each(|a| gradient[a] += weight * (f - y) * k[a]);
                    }
                }
                if problem.valid[self.fold[i]] && validated {
                    let (value, slope) = VALIDATION.loss.value_and_slope(y * f);
                    loss += weight * value / VALIDATION.total;
                    wrong.1 += misplaced;
                    let g = weight * y * slope / VALIDATION.total;
                    (0..len).for_each(|a| valid[a] += g * k[a]);
                }
            });
            near(&[found.hinge(), found.weight()], &[hinge, inside], "hinge and weight");
            near(&[found.loss()], &[loss], "validation loss");
            near(&[found.wrong().0, found.wrong().1], &[wrong.0, wrong.1], "wrong side");
            near(found.gradient(), &gradient, "gradient");
            near(found.valid(), &valid, "derivative of the validation loss");
        }
    }

    #[track_caller]
    fn near(found: &[f64], expected: &[f64], what: &str) {
        assert_eq!(found.len(), expected.len(), "{what}");
        let size = expected.iter().fold(1.0f64, |size, v| size.max(v.abs()));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9 * size, "{what}: {found} for {expected}");
        }
    }

    /// From nothing, and by what has changed since a point whose rows the part knows or has forgotten.
    #[test]
    fn sums_of_a_step_are_those_over_all_rows() {
        for kernel in [Kernel::Gaussian, Kernel::Exponential] {
            let case = Case::new(kernel, false);
            let (first, second) = (case.points(1, false), case.points(2, false));
            let part = case.part();
            let points = first.iter().map(|at| Some((at.clone(), None))).collect();
            let question = Question::Step { validation: None, points };
            let triangles: Vec<Vec<f64>> = (case.problems().iter().zip(&first))
                .map(|(problem, at)| case.triangle(problem, at))
                .collect();
            let sums = case.ask(&part, &question, 1);
            for (((problem, at), sums), triangle) in
                case.problems().iter().zip(&first).zip(sums).zip(&triangles)
            {
                let sums = StepSums::of(sums, at.theta.len());
                case.check(problem, at, &sums, false);
                near(sums.triangle(), triangle, "sum of outer products");
            }
            // All but one ask again.
            let both = second.iter().zip(&first).enumerate();
            let points: Vec<_> = both
                .map(|(p, (at, before))| (p != 2).then(|| (at.clone(), Some(before.clone()))))
                .collect();
            let question = Question::Step { validation: Some(VALIDATION), points };
            for part in [&part, &case.part()] {
                let mut sums = case.ask(part, &question, 0).into_iter();
                for (p, (problem, at)) in case.problems().iter().zip(&second).enumerate() {
                    if p == 2 {
                        continue;
                    }
                    let sums = StepSums::of(sums.next().unwrap(), at.theta.len());
                    case.check(problem, at, &sums, true);
                    let now = case.triangle(problem, at);
                    let changed: Vec<f64> =
                        now.iter().zip(&triangles[p]).map(|(now, before)| now - before).collect();
                    near(sums.triangle(), &changed, "change of the sum of outer products");
                }
                assert!(sums.next().is_none());
            }
        }
    }

    /// Where another SVM says which rows are likely to be inside of the margin, the sums are over those.
    #[test]
    fn a_guess_says_which_rows_are_inside() {
        let case = Case::new(Kernel::Exponential, true);
        let (first, second) = (case.points(3, true), case.points(4, false));
        let ask = |part: &Part<'_>, at: &[Point], before: Option<&[Point]>| {
            let before = |p: usize| before.map(|before| before[p].clone());
            let points = at.iter().enumerate().map(|(p, at)| Some((at.clone(), before(p))));
            let question = Question::Step { validation: None, points: points.collect() };
            case.ask(part, &question, usize::MAX)
        };
        let kept = case.part();
        for (p, sums) in ask(&kept, &first, None).into_iter().enumerate() {
            let (problem, at) = (&case.problems()[p], &first[p]);
            let sums = StepSums::of(sums, at.theta.len());
            case.check(problem, at, &sums, false);
            near(sums.triangle(), &case.triangle(problem, at), "sum of outer products");
        }
        for part in [&kept, &case.part()] {
            for (p, sums) in ask(part, &second, Some(&first)).into_iter().enumerate() {
                let (problem, at) = (&case.problems()[p], &second[p]);
                let sums = StepSums::of(sums, at.theta.len());
                case.check(problem, at, &sums, false);
                let (now, before) = (case.triangle(problem, at), case.triangle(problem, &first[p]));
                let changed: Vec<f64> = now.iter().zip(before).map(|(a, b)| a - b).collect();
                near(sums.triangle(), &changed, "change of the sum of outer products");
            }
        }
    }

    /// Half of the way from one point to another, a quarter of it, and so on.
    #[test]
    fn hinge_losses_along_a_way() {
        let case = Case::new(Kernel::Gaussian, false);
        let (from, to) = (case.points(5, false), case.points(6, false));
        let way = |p: usize| (p != 1).then(|| (from[p].theta.clone(), to[p].theta.clone()));
        let ways = (0..case.problems().len()).map(way).collect();
        let mut found = case.ask(&case.part(), &Question::Shares { ways }, 0).into_iter();
        for (p, problem) in case.problems().iter().enumerate().filter(|(p, _)| *p != 1) {
            let mut expected = vec![0.0; SHARES];
            for (s, sum) in expected.iter_mut().enumerate() {
                let share = 0.5f64.powi(s as i32 + 1);
                let both = from[p].theta.iter().zip(&to[p].theta);
                let theta: Vec<f64> = both.map(|(a, b)| (1.0 - share) * a + share * b).collect();
                case.each_row(problem, &theta, |i, y, weight, _, f| {
                    if problem.train[case.fold[i]] {
                        *sum += 0.5 * weight * (1.0 - y * f).max(0.0).powi(2);
                    }
                });
            }
            near(&found.next().unwrap(), &expected, "hinge losses");
        }
        assert!(found.next().is_none());
    }
}
