//! Newton's method in m dimensions, for the SVMs of all pairs of classes and all folds together.
//!
//! With S = { i : y_i f_i < 1 } and the bias as one more coefficient, whose column of K is one everywhere,
//!
//! ```text
//! gradient = K_mm alpha + C sum_{i in S} w_i (f_i - y_i) k_i       H = K_mm + C sum_{i in S} w_i k_i k_i'
//! ```
//!
//! where k_i is row i of K_nm. The Gaussian kernel is so smooth that K_mm has eigenvalues below the rounding of the sum in H:
//! there the coefficients are w = R' alpha with K_mm = R R', in which H is I + C sum w_i z_i z_i' with z_i = R^-1 k_i.
//!
//! One pass over the blocks gives all sums. Between passes only rows that have entered or left S are added to or taken from
//! the sum in H.

use std::ops::Range;

use rayon::prelude::*;

use super::blocks::{Kept, RowBlock, RowBlocks};
use crate::data::PairRows;
use crate::error::{Error, Result};
use crate::linalg::{self, Block, Cholesky, Matrix, add_scaled, dot};
use crate::loss::Loss;
use crate::metric::{Kernel, Metric};
use crate::run::Watch;
use crate::svm::BinarySvm;

/// Newton's method ends when the next step would lower the objective by less than this fraction of it, unless another
/// tolerance is set.
const TOLERANCE: f64 = 1e-6;
/// The same for a point that no step has led to, which may be the optimum of a problem that was much the same.
const UNMOVED: f64 = 1e-14;
/// Most steps, far more than any problem needs.
const MAX_STEPS: usize = 100;
/// Added to the diagonal of H, relative to its trace, so that landmarks that are nearly dependent do no harm; and how often
/// it is made a hundred times larger until H can be factored. It changes the way to the optimum but not the optimum.
const JITTER: f64 = 1e-15;
const JITTERS: usize = 6;
/// Added to the diagonal of K_mm where it is factored; part of the regulariser then.
const RIDGE: f64 = 1e-12;
/// Objectives that differ by less than this, relative to their size, are equal but for rounding.
const ROUNDING: f64 = 1e-11;
/// Rows that are summed by one task.
const TASK_ROWS: usize = 128;
/// Side of a tile of the sum in H.
const TILE: usize = 128;

/// What one SVM is trained and validated on: rows of two classes, those of the first before those of the second, in the
/// order of the blocks.
struct Problem {
    /// The negative class and the positive one.
    classes: (usize, usize),
    /// Rows of the first.
    negative: usize,
    /// Weight of each row in training; 0: not trained on.
    train: Vec<f64>,
    /// Weight of each row in validation.
    valid: Vec<f64>,
}

impl Problem {
    /// The numbers within the problem of places of a class, if it is one of the two.
    fn rows(
        &self,
        blocks: &RowBlocks<'_>,
        class: usize,
        places: &Range<usize>,
    ) -> Option<Range<usize>> {
        let first = blocks.places_of(class).start;
        let local = places.start - first..places.end - first;
        match class {
            _ if class == self.classes.0 => Some(local),
            _ if class == self.classes.1 => {
                Some(self.negative + local.start..self.negative + local.end)
            }
            _ => None,
        }
    }

    fn label(&self, row: usize) -> f64 {
        if row < self.negative { -1.0 } else { 1.0 }
    }
}

/// The landmarks of two classes among all.
#[derive(Clone)]
pub(super) struct Columns(Range<usize>, Range<usize>);

impl Columns {
    fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.clone().chain(self.1.clone())
    }

    /// k' theta for a row of K, where theta ends with the bias.
    pub fn output(&self, k: &[f64], theta: &[f64]) -> f64 {
        let (a, b) = (&theta[..self.0.len()], &theta[self.0.len()..theta.len() - 1]);
        dot(&k[self.0.clone()], a) + dot(&k[self.1.clone()], b) + theta[theta.len() - 1]
    }

    /// `sums += factor [k, 1]`.
    fn add_row(&self, sums: &mut [f64], factor: f64, k: &[f64]) {
        let (a, rest) = sums.split_at_mut(self.0.len());
        let (b, last) = rest.split_at_mut(self.1.len());
        add_scaled(a, factor, &k[self.0.clone()]);
        add_scaled(b, factor, &k[self.1.clone()]);
        last[0] += factor;
    }

    /// `row += factor theta` at these columns of a whole row.
    pub fn scatter(&self, row: &mut [f64], factor: f64, theta: &[f64]) {
        add_scaled(&mut row[self.0.clone()], factor, &theta[..self.0.len()]);
        add_scaled(&mut row[self.1.clone()], factor, &theta[self.0.len()..theta.len() - 1]);
    }

    /// Writes factor [k, 1].
    fn gather(&self, out: &mut [f64], factor: f64, k: &[f64]) {
        let m = self.len();
        let columns = k[self.0.clone()].iter().chain(&k[self.1.clone()]);
        out.iter_mut().zip(columns).for_each(|(out, k)| *out = factor * k);
        out[m] = factor;
    }
}

/// Sums over rows.
#[derive(Clone, Default)]
struct Sums {
    /// sum w slack^2 / 2 over the training rows.
    hinge: f64,
    /// sum of w over S.
    weight: f64,
    /// sum w (f - y) [k, 1] over S.
    gradient: Vec<f64>,
    /// The validation loss.
    loss: f64,
    /// sum g [k, 1] over the validation rows, with g the derivative of the loss in f.
    valid: Vec<f64>,
}

impl Sums {
    fn zero(len: usize) -> Self {
        Self { gradient: vec![0.0; len], valid: vec![0.0; len], ..Self::default() }
    }

    fn add(&mut self, other: &Self) {
        self.hinge += other.hinge;
        self.weight += other.weight;
        self.loss += other.loss;
        add_scaled(&mut self.gradient, 1.0, &other.gradient);
        add_scaled(&mut self.valid, 1.0, &other.valid);
    }
}

/// One SVM on its way to the optimum.
pub(super) struct Machine {
    pub columns: Columns,
    /// alpha, and b at the end.
    pub theta: Vec<f64>,
    /// f of each row of the problem, where it has been asked for.
    pub outputs: Vec<f64>,
    /// Which rows the sum in H is over.
    pub inside: Vec<bool>,
    /// sum w [k, 1] [k, 1]' over them: the upper triangle, row after row.
    gram: Vec<f64>,
    /// The factor R of K_mm, if H is in terms of w.
    root: Option<Cholesky>,
    sums: Sums,
    accepted: Option<Accepted>,
    /// The factor of the last H.
    factor: Option<Cholesky>,
    steps: usize,
    state: State,
    /// Whether the outputs are a guess.
    guessed: bool,
    /// Root mean square of what the next step would change the outputs on S by.
    pub residual: f64,
}

/// A point that is better than all before.
struct Accepted {
    theta: Vec<f64>,
    outputs: Vec<f64>,
    objective: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Active, and its support set is a guess: the first step goes to the optimum for that set.
    Guessed,
    Active,
    /// Active, but the next point is the last, whatever its gradient.
    Last,
    Done,
}

impl Machine {
    fn new(columns: Columns, rows: usize) -> Self {
        let len = columns.len() + 1;
        Self {
            theta: vec![0.0; len],
            outputs: vec![0.0; rows],
            inside: vec![false; rows],
            gram: vec![0.0; len * len],
            root: None,
            sums: Sums::zero(len),
            accepted: None,
            factor: None,
            steps: 0,
            state: State::Active,
            guessed: false,
            residual: 0.0,
            columns,
        }
    }

    fn len(&self) -> usize {
        self.theta.len()
    }

    /// Adds what some rows of a block contribute: those numbered `rows` in the problem, with their part of K.
    fn add_rows(
        &mut self,
        problem: &Problem,
        rows: Range<usize>,
        k: &[f64],
        validation: Option<Validation>,
    ) {
        let (len, m) = (self.len(), k.len() / rows.len().max(1));
        let (columns, theta, guessed) = (&self.columns, &self.theta, self.state == State::Guessed);
        let tasks =
            self.outputs[rows.clone()].par_chunks_mut(TASK_ROWS).zip(k.par_chunks(TASK_ROWS * m));
        let parts: Vec<Sums> = tasks
            .enumerate()
            .map(|(task, (outputs, k))| {
                let mut sums = Sums::zero(len);
                for (i, (f, k)) in outputs.iter_mut().zip(k.chunks_exact(m)).enumerate() {
                    let row = rows.start + task * TASK_ROWS + i;
                    let (train, valid) = (problem.train[row], problem.valid[row]);
                    let validation = validation.filter(|_| valid > 0.0);
                    if train == 0.0 && validation.is_none() {
                        continue;
                    }
                    let y = problem.label(row);
                    // A guess is told by outputs of 0 inside of the margin and +-2 outside.
                    if !guessed {
                        *f = columns.output(k, theta);
                    }
                    let slack = 1.0 - y * *f;
                    if train > 0.0 && slack > 0.0 {
                        sums.hinge += 0.5 * train * slack * slack;
                        sums.weight += train;
                        columns.add_row(&mut sums.gradient, -train * y * slack, k);
                    }
                    if let Some(validation) = validation {
                        let (loss, g) = validation.at(valid, y, *f);
                        sums.loss += loss;
                        if g != 0.0 {
                            columns.add_row(&mut sums.valid, g, k);
                        }
                    }
                }
                sums
            })
            .collect();
        parts.iter().for_each(|part| self.sums.add(part));
        self.update_gram(problem, rows, k, m);
    }

    /// Adds rows that are inside of the margin now to the sum in H, and takes away those that no longer are.
    fn update_gram(&mut self, problem: &Problem, rows: Range<usize>, k: &[f64], m: usize) {
        let len = self.len();
        let (mut entered, mut left) = (Vec::new(), Vec::new());
        for row in rows.clone() {
            let now = problem.train[row] > 0.0 && problem.label(row) * self.outputs[row] < 1.0;
            match (self.inside[row], now) {
                (false, true) => entered.push(row),
                (true, false) => left.push(row),
                _ => {}
            }
            self.inside[row] = now;
        }
        for (changed, sign) in [(entered, 1.0), (left, -1.0)] {
            if changed.is_empty() {
                continue;
            }
            let mut a = Matrix::zeros(changed.len(), len);
            for (i, &row) in changed.iter().enumerate() {
                let k = &k[(row - rows.start) * m..(row - rows.start + 1) * m];
                self.columns.gather(a.row_mut(i), problem.train[row].sqrt(), k);
            }
            if let Some(root) = &self.root {
                let m = len - 1;
                let mut z: Vec<f64> = a.iter_rows().flat_map(|a| &a[..m]).copied().collect();
                root.solve_lower(&mut z);
                (0..changed.len())
                    .for_each(|i| a.row_mut(i)[..m].copy_from_slice(&z[i * m..(i + 1) * m]));
            }
            add_cross_product(&mut self.gram, sign, &a);
        }
    }

    /// K_mm alpha, with a zero for the bias.
    fn regulariser(&self, theta: &[f64], k_mm: &Matrix) -> Vec<f64> {
        let mut alpha = theta.to_vec();
        let last = alpha.len() - 1;
        alpha[last] = 0.0;
        let ridge = if self.root.is_some() { RIDGE } else { 0.0 };
        let entries = self.columns.iter().zip(&alpha);
        let entries = entries.map(|(j, a)| self.columns.output(k_mm.row(j), &alpha) + ridge * a);
        entries.chain([0.0]).collect()
    }

    /// The factor of K_mm.
    fn root(&self, k_mm: &Matrix, watch: &Watch) -> Result<Cholesky> {
        let m = self.columns.len();
        let rows = self.columns.iter().map(|i| k_mm.row(i));
        let mut k: Vec<f64> = rows.flat_map(|k| self.columns.iter().map(|j| k[j])).collect();
        let mut ridge = RIDGE;
        k.iter_mut().step_by(m + 1).for_each(|k| *k += ridge);
        for _ in 0..JITTERS {
            match Cholesky::new(k.clone(), m, ridge, watch) {
                Err(Error::NotPositiveDefinite { .. }) => {
                    // Rounding is larger than that.
                    k.iter_mut().step_by(m + 1).for_each(|k| *k += 9.0 * ridge);
                    ridge *= 10.0;
                }
                factored => return factored,
            }
        }
        Cholesky::new(k, m, ridge, watch)
    }

    /// x <- R^-1 x in all but the bias, where H is in terms of w.
    fn to_roots(&self, x: &mut [f64]) {
        if let Some(root) = &self.root {
            let m = x.len() - 1;
            root.solve_lower(&mut x[..m]);
        }
    }

    /// x <- R'^-1 x in all but the bias, where H is in terms of w.
    fn back_from_roots(&self, x: &mut [f64]) {
        if let Some(root) = &self.root {
            let m = x.len() - 1;
            root.solve_upper(&mut x[..m]);
        }
    }

    /// H = K_mm + C gram, factored.
    fn factored(&self, k_mm: &Matrix, cost: f64, watch: &Watch) -> Result<Cholesky> {
        let (len, columns) = (self.len(), &self.columns);
        let places: Vec<usize> = columns.iter().collect();
        let (mut jitter, whitened) = (JITTER, self.root.is_some());
        for attempt in 0..JITTERS {
            let mut h = vec![0.0; len * len];
            h.par_chunks_mut(len).zip(self.gram.par_chunks(len)).enumerate().for_each(
                |(i, (h, gram))| {
                    let k = places.get(i).map(|&i| k_mm.row(i));
                    for j in i..len {
                        let k = match whitened {
                            true => f64::from(u8::from(i == j && i + 1 < len)),
                            false => k.zip(places.get(j)).map_or(0.0, |(k, &j)| k[j]),
                        };
                        h[j] = k + cost * gram[j];
                    }
                },
            );
            let trace: f64 = h.iter().step_by(len + 1).sum();
            let ridge = jitter * trace.max(1.0);
            h.iter_mut().step_by(len + 1).for_each(|h| *h += ridge);
            match Cholesky::new(h, len, ridge, watch) {
                Err(Error::NotPositiveDefinite { .. }) if attempt + 1 < JITTERS => jitter *= 100.0,
                factored => return factored,
            }
        }
        Err(Error::NotPositiveDefinite { pivot: 0, ridge: jitter })
    }

    /// Takes the next step, or ends, given the sums at the present point.
    fn advance(
        &mut self,
        problem: &Problem,
        k_mm: &Matrix,
        cost: f64,
        tolerance: f64,
        watch: &Watch,
    ) -> Result<()> {
        self.steps += 1;
        let k_alpha = self.regulariser(&self.theta, k_mm);
        let objective = 0.5 * dot(&self.theta, &k_alpha) + cost * self.sums.hinge;
        if let Some(accepted) = &self.accepted
            && objective > accepted.objective * (1.0 + ROUNDING)
            && self.state == State::Active
        {
            let share = self.shorter(accepted, problem, k_mm, cost);
            let mixed = accepted.theta.iter().zip(&self.theta);
            self.theta = mixed.map(|(old, new)| old + share * (new - old)).collect();
            // A step that is as short as that ends where it started: rounding hides what is better.
            self.state = if share == 0.0 { State::Last } else { State::Active };
            return Ok(());
        }
        let mut gradient = k_alpha;
        add_scaled(&mut gradient, cost, &self.sums.gradient);
        let factor = self.factored(k_mm, cost, watch)?;
        let mut step = gradient;
        self.to_roots(&mut step);
        factor.solve_lower(&mut step);
        let decrease = dot(&step, &step);
        factor.solve_upper(&mut step);
        self.back_from_roots(&mut step);
        self.factor = Some(factor);
        self.residual = (decrease / (cost * self.sums.weight).max(f64::MIN_POSITIVE)).sqrt();
        let tolerance = if self.steps == 1 { tolerance.min(UNMOVED) } else { tolerance };

        let small = self.state == State::Active && 0.5 * decrease <= tolerance * objective;
        if small || self.state == State::Last || self.steps >= MAX_STEPS {
            self.state = State::Done;
            return Ok(());
        }
        let (theta, outputs) = (self.theta.clone(), self.outputs.clone());
        add_scaled(&mut self.theta, -1.0, &step);
        if self.state == State::Guessed {
            self.state = State::Active;
        } else {
            self.accepted = Some(Accepted { theta, outputs, objective });
        }
        Ok(())
    }

    /// The first of 1/2, 1/4, .. of the way from the accepted point at which the objective is lower than there; 0 if
    /// there is none.
    fn shorter(&self, accepted: &Accepted, problem: &Problem, k_mm: &Matrix, cost: f64) -> f64 {
        let mut share = 0.5;
        while share > 1e-12 {
            let mixed = accepted.theta.iter().zip(&self.theta);
            let theta: Vec<f64> = mixed.map(|(old, new)| old + share * (new - old)).collect();
            let mut hinge = 0.0;
            for (row, (old, new)) in accepted.outputs.iter().zip(&self.outputs).enumerate() {
                let slack = 1.0 - problem.label(row) * (old + share * (new - old));
                hinge += 0.5 * problem.train[row] * slack.max(0.0).powi(2);
            }
            let k_alpha = self.regulariser(&theta, k_mm);
            if 0.5 * dot(&theta, &k_alpha) + cost * hinge < accepted.objective {
                return share;
            }
            share *= 0.5;
        }
        0.0
    }

    /// Adds -u alpha' to weights on the entries of K_mm.
    pub fn add_outer(&self, weights: &mut [f64], m: usize, u: &[f64]) {
        for (j, u) in self.columns.iter().zip(u) {
            self.columns.scatter(&mut weights[j * m..(j + 1) * m], -u, &self.theta);
        }
    }

    /// Makes it ready for another kernel or C; the point stays, as a start.
    fn restart(&mut self, other_kernel: bool) {
        if other_kernel {
            self.inside.fill(false);
            self.gram.fill(0.0);
            self.root = None;
        }
        (self.accepted, self.factor) = (None, None);
        self.steps = 0;
        self.state = if self.guessed { State::Guessed } else { State::Active };
        self.guessed = false;
    }
}

/// How validation rows are measured.
#[derive(Clone, Copy)]
pub(super) struct Validation {
    pub loss: Loss,
    /// Weight of the validation rows of all problems.
    pub total: f64,
}

impl Validation {
    /// The loss of a row of this weight and its derivative in f.
    pub fn at(self, weight: f64, y: f64, f: f64) -> (f64, f64) {
        let (value, slope) = self.loss.value_and_slope(y * f);
        (weight / self.total * value, weight / self.total * y * slope)
    }
}

/// `sum += sign a' a`: the upper triangle, row after row, in parallel tiles.
fn add_cross_product(sum: &mut [f64], sign: f64, a: &Matrix) {
    let n = a.cols();
    sum.par_chunks_mut(TILE * n).enumerate().for_each(|(t, sum)| {
        let (first, count) = (t * TILE, sum.len() / n);
        let width = n - first;
        let mut tile = vec![0.0; count * width];
        let from = |width: usize| Block::new(&a.as_slice()[first..], a.rows(), width, n);
        linalg::product(&mut tile, width, sign, from(count).t(), from(width));
        for (sum, tile) in sum.chunks_exact_mut(n).zip(tile.chunks_exact(width)) {
            add_scaled(&mut sum[first..], 1.0, tile);
        }
    });
}

/// The SVMs of some problems over the same landmarks.
pub struct LandmarkSvms<'a> {
    pub(super) blocks: RowBlocks<'a>,
    pub(super) kept: Kept,
    problems: Vec<Problem>,
    pub(super) machines: Vec<Machine>,
    /// The place of each row of the data in the order of the blocks.
    place: Vec<usize>,
    tolerance: f64,
}

impl<'a> LandmarkSvms<'a> {
    /// For each problem a pair of classes, the rows to train on and the rows to validate with. `memory` is how many
    /// bytes of K may be kept.
    pub fn new<'p>(
        blocks: RowBlocks<'a>,
        memory: u64,
        problems: impl Iterator<Item = ((usize, usize), &'p PairRows, Option<&'p PairRows>)>,
    ) -> Self {
        let mut place = vec![0; blocks.order.len()];
        blocks.order.iter().enumerate().for_each(|(at, &row)| place[row] = at);
        let kept = Kept::new(memory, blocks.m());
        let mut svms = Self {
            blocks,
            kept,
            problems: Vec::new(),
            machines: Vec::new(),
            place,
            tolerance: TOLERANCE,
        };
        for (classes, train, valid) in problems {
            let sizes = [classes.0, classes.1].map(|class| svms.blocks.places_of(class).len());
            let rows = sizes[0] + sizes[1];
            let (train_weights, valid_weights) = (vec![0.0; rows], vec![0.0; rows]);
            let mut problem =
                Problem { classes, negative: sizes[0], train: train_weights, valid: valid_weights };
            for (&row, weight) in train.index.iter().zip(&train.weight) {
                let at = svms.number(&problem, row);
                problem.train[at] += weight;
            }
            if let Some(valid) = valid {
                for (&row, weight) in valid.index.iter().zip(&valid.weight) {
                    let at = svms.number(&problem, row);
                    problem.valid[at] += weight;
                }
            }
            let columns =
                Columns(svms.blocks.columns_of(classes.0), svms.blocks.columns_of(classes.1));
            svms.machines.push(Machine::new(columns, rows));
            svms.problems.push(problem);
        }
        svms
    }

    /// The number within a problem of a row of the data.
    fn number(&self, problem: &Problem, row: usize) -> usize {
        let place = self.place[row];
        let (negative, positive) =
            (self.blocks.places_of(problem.classes.0), self.blocks.places_of(problem.classes.1));
        match negative.contains(&place) {
            true => place - negative.start,
            false => problem.negative + place - positive.start,
        }
    }

    /// Ends when the next step would lower the objective by less than this fraction of it.
    #[must_use]
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Makes this the kernel of another metric; the SVMs stay, as a start.
    pub fn set_metric(&mut self, metric: &Metric) {
        self.blocks.set_metric(metric);
        self.kept.clear();
        self.machines.iter_mut().for_each(|machine| machine.restart(true));
    }

    /// Starts the SVM of a problem from rows of the data that are likely to be its support set.
    pub fn start_from(&mut self, problem: usize, likely: &[usize]) {
        let numbers: Vec<usize> =
            likely.iter().map(|&row| self.number(&self.problems[problem], row)).collect();
        let (problem, machine) = (&self.problems[problem], &mut self.machines[problem]);
        machine.theta.fill(0.0);
        let outside = |row: usize| 2.0 * problem.label(row);
        machine.outputs.iter_mut().enumerate().for_each(|(row, f)| *f = outside(row));
        numbers.into_iter().for_each(|row| machine.outputs[row] = 0.0);
        machine.guessed = true;
    }

    /// Trains the SVMs of all problems with this C.
    pub fn train(&mut self, cost: f64) -> Result<()> {
        self.train_and_validate(cost, None).map(|_| ())
    }

    pub(super) fn validation(&self, loss: Loss) -> Validation {
        Validation { loss, total: self.problems.iter().flat_map(|p| &p.valid).sum() }
    }

    /// The same; returns the validation loss.
    pub(super) fn train_and_validate(
        &mut self,
        cost: f64,
        validation: Option<Validation>,
    ) -> Result<f64> {
        self.machines.iter_mut().for_each(|machine| machine.restart(false));
        let watch = self.blocks.watch.clone();
        if self.blocks.kernel() == Kernel::Gaussian {
            let k_mm = &self.blocks.k_mm;
            self.machines.par_iter_mut().filter(|machine| machine.root.is_none()).try_for_each(
                |machine| {
                    machine.root = Some(machine.root(k_mm, &watch)?);
                    Ok::<_, Error>(())
                },
            )?;
        }
        while self.machines.iter().any(|machine| machine.state != State::Done) {
            let Self { blocks, kept, problems, machines, tolerance, .. } = self;
            for machine in machines.iter_mut().filter(|machine| machine.state != State::Done) {
                machine.sums = Sums::zero(machine.len());
            }
            blocks.for_each(kept, |block| {
                add_block(blocks, &block, problems, machines, validation);
            })?;
            let k_mm = &blocks.k_mm;
            (machines.par_iter_mut().zip(&*problems))
                .filter(|(machine, _)| machine.state != State::Done)
                .try_for_each(|(machine, problem)| {
                    machine.advance(problem, k_mm, cost, *tolerance, &watch)
                })?;
        }
        Ok(self.machines.iter().map(|machine| machine.sums.loss).sum())
    }

    /// How many SVMs there are.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// An SVM, with landmarks as support vectors.
    pub fn svm(&self, problem: usize) -> BinarySvm {
        let machine = &self.machines[problem];
        let rows = machine.columns.iter().map(|j| self.blocks.landmarks.rows[j]);
        let mut terms: Vec<(usize, f64)> = rows.zip(machine.theta.iter().copied()).collect();
        terms.sort_by_key(|(row, _)| *row);
        let (support, beta) = terms.into_iter().unzip();
        BinarySvm { support, beta, bias: machine.theta[machine.len() - 1] }
    }

    /// What an SVM gives at rows of the data that it was trained on or validated with.
    pub fn outputs(&self, problem: usize, rows: &[usize]) -> Vec<f64> {
        let (problem, machine) = (&self.problems[problem], &self.machines[problem]);
        rows.iter().map(|&row| machine.outputs[self.number(problem, row)]).collect()
    }

    /// How far the worst SVM is from its optimum: root mean square of what another step would change outputs by, in units
    /// of the margin.
    pub fn residual(&self) -> f64 {
        self.machines.iter().map(|machine| machine.residual).fold(0.0, f64::max)
    }

    /// The adjoint systems H [u; t] = sum g [k, 1], one for each SVM.
    pub(super) fn adjoints(&self) -> Vec<Vec<f64>> {
        let adjoint = |machine: &Machine| {
            let mut u = machine.sums.valid.clone();
            if let Some(factor) = &machine.factor {
                machine.to_roots(&mut u);
                factor.solve_lower(&mut u);
                factor.solve_upper(&mut u);
                machine.back_from_roots(&mut u);
            }
            u
        };
        self.machines.par_iter().map(adjoint).collect()
    }

    /// The parts of these SVMs for a pass over the blocks: the blocks, those that are kept, and who is asked about rows.
    pub(super) fn parts(&mut self) -> (&RowBlocks<'a>, &mut Kept, Questions<'_>) {
        let Self { blocks, kept, problems, machines, .. } = self;
        (blocks, kept, Questions { problems, machines })
    }
}

/// The problems with their SVMs.
pub(super) struct Questions<'s> {
    problems: &'s [Problem],
    pub machines: &'s [Machine],
}

impl<'s> Questions<'s> {
    /// The problems that have rows of a class.
    pub fn of_class(&self, class: usize) -> Vec<Asked<'s>> {
        let all = self.problems.iter().zip(self.machines).enumerate();
        all.filter_map(|(number, (problem, machine))| {
            let offset = match class {
                _ if class == problem.classes.0 => 0,
                _ if class == problem.classes.1 => problem.negative,
                _ => return None,
            };
            Some(Asked { number, problem, machine, offset })
        })
        .collect()
    }
}

/// A problem that has rows of a class, and where these start in it.
pub(super) struct Asked<'s> {
    pub number: usize,
    problem: &'s Problem,
    pub machine: &'s Machine,
    offset: usize,
}

/// A row of a problem.
pub(super) struct AskedRow {
    pub y: f64,
    pub f: f64,
    /// Weight in training if it is inside of the margin, else 0.
    pub inside: f64,
    pub valid: f64,
}

impl Asked<'_> {
    /// The row at a place, counted from the first of its class.
    pub fn row(&self, place: usize) -> AskedRow {
        let row = self.offset + place;
        let (y, f) = (self.problem.label(row), self.machine.outputs[row]);
        let inside = if self.machine.inside[row] { self.problem.train[row] } else { 0.0 };
        AskedRow { y, f, inside, valid: self.problem.valid[row] }
    }
}

/// Adds what a block contributes to all problems that are not done.
fn add_block(
    blocks: &RowBlocks<'_>,
    block: &RowBlock<'_>,
    problems: &[Problem],
    machines: &mut [Machine],
    validation: Option<Validation>,
) {
    let m = blocks.m();
    for (class, places) in blocks.by_class(&block.places) {
        let first = places.start - block.places.start;
        let k = &block.k[first * m..(first + places.len()) * m];
        (machines.par_iter_mut().zip(problems)).for_each(|(machine, problem)| {
            if machine.state == State::Done {
                return;
            }
            if let Some(rows) = problem.rows(blocks, class, &places) {
                machine.add_rows(problem, rows, k, validation);
            }
        });
    }
}
