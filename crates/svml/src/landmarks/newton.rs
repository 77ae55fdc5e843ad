//! Newton's method in m dimensions, for the SVMs of all pairs of classes and all folds together.
//!
//! With the sums of [`sums`](super::sums) and the bias as one more coefficient, whose column of K is one everywhere,
//!
//! ```text
//! gradient = K_mm alpha + C sum_{i in S} w_i (f_i - y_i) k_i       H = K_mm + C sum_{i in S} w_i k_i k_i'
//! ```
//!
//! The Gaussian kernel is so smooth that K_mm has eigenvalues below the rounding of the sum in H: there the coefficients
//! are w = R' alpha with K_mm = R R', in which H is I + C sum w_i z_i z_i' with z_i = R^-1 k_i.
//!
//! One question to the rows gives all sums of all SVMs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::pair::{PairColumns, RIDGE};
use super::question::{
    Guess, LandmarkKernel, Point, Preparation, Problem, Question, Rows, Setting, Systems,
    Validation,
};
use super::sums::{SHARES, StepSums, triangle_row};
use super::{Landmarks, LocalRows, Part};
use crate::data::LabelledRows;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, Matrix, add_scaled, dot};
use crate::loss::Loss;
use crate::metric::{Kernel, Metric};
use crate::parallel;
use crate::svm::BinarySvm;
use crate::watch::{Key, Watch};

/// Newton's method ends when the next step would lower the objective by less than this fraction of it, unless another
/// tolerance is set.
const TOLERANCE: f64 = 1e-6;
/// The same for a point that no step has led to, which may be the optimum of a problem that was much the same.
const UNMOVED: f64 = 1e-14;
/// Most steps, far more than any problem needs.
const MAX_STEPS: usize = 100;
/// Added to the diagonal of H, relative to its trace, so that landmarks that are nearly dependent do no harm; and how often
/// it is made a hundred times larger until H can be factored. It changes the way to the optimum but not the optimum.
pub(super) const JITTER: f64 = 1e-15;
pub(super) const JITTERS: usize = 6;
/// Objectives that differ by less than this, relative to their size, are equal but for rounding.
const ROUNDING: f64 = 1e-11;

/// Numbers of settings and of points, so that no two are the same.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

fn next_number() -> u64 {
    NUMBERS.fetch_add(1, Ordering::Relaxed)
}

/// One SVM on its way to the optimum.
pub(super) struct Machine {
    pub columns: PairColumns,
    /// alpha, and b at the end, with a number.
    point: Point,
    /// The point whose rows inside of the margin the triangle is over.
    before: Option<Point>,
    /// sum w [k, 1] [k, 1]' over them: the upper triangle, row after row. Empty where it stays with the rows.
    triangle: Vec<f64>,
    sums: StepSums,
    accepted: Option<Accepted>,
    /// The factor of the last H.
    factor: Option<Cholesky>,
    steps: usize,
    state: State,
    /// Root mean square of what the next step would change the outputs on S by.
    residual: f64,
}

/// A point that is better than all before.
struct Accepted {
    theta: Vec<f64>,
    objective: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Active,
    /// The last step was too long, and the rows have to say how long it should have been.
    TooFar,
    /// Active, but the next point is the last, whatever its gradient.
    Last,
    Done,
}

impl Machine {
    fn new(columns: PairColumns, guessed: bool) -> Self {
        let len = columns.len() + 1;
        Self {
            point: Point { number: next_number(), theta: vec![0.0; len], guessed },
            before: None,
            triangle: Vec::new(),
            sums: StepSums::of(Vec::new(), len),
            accepted: None,
            factor: None,
            steps: 0,
            state: State::Active,
            residual: 0.0,
            columns,
        }
    }

    pub fn theta(&self) -> &[f64] {
        &self.point.theta
    }

    fn len(&self) -> usize {
        self.point.theta.len()
    }

    fn go_to(&mut self, theta: Vec<f64>) {
        self.point = Point { number: next_number(), theta, guessed: false };
    }

    /// K_mm alpha, with a zero for the bias.
    fn regulariser(&self, theta: &[f64], k_mm: &Matrix, whitened: bool) -> Vec<f64> {
        let mut alpha = theta.to_vec();
        let last = alpha.len() - 1;
        alpha[last] = 0.0;
        let ridge = if whitened { RIDGE } else { 0.0 };
        let entry = |(j, a): (usize, &f64)| self.columns.output(k_mm.row(j), &alpha) + ridge * a;
        let terms: Vec<(usize, &f64)> = self.columns.iter().zip(&alpha[..last]).collect();
        let chunk =
            |terms: &[(usize, &f64)]| terms.iter().copied().map(entry).collect::<Vec<f64>>();
        let mut entries = parallel::map(terms.chunks(64), chunk).concat();
        entries.push(0.0);
        entries
    }

    /// H = K_mm + C sum, factored.
    fn factored(
        &self,
        k_mm: &Matrix,
        whitened: bool,
        cost: f64,
        watch: &Watch,
    ) -> Result<Cholesky> {
        let (len, columns) = (self.len(), &self.columns);
        let places: Vec<usize> = columns.iter().collect();
        let mut jitter = JITTER;
        for attempt in 0..JITTERS {
            let mut h = vec![0.0; len * len];
            parallel::for_each(h.chunks_mut(len).enumerate(), |(i, h)| {
                let sums = &self.triangle[triangle_row(len, i)..triangle_row(len, i + 1)];
                let k = places.get(i).map(|&i| k_mm.row(i));
                for (j, sum) in (i..len).zip(sums) {
                    let k = match whitened {
                        true => f64::from(u8::from(i == j && i + 1 < len)),
                        false => k.zip(places.get(j)).map_or(0.0, |(k, &j)| k[j]),
                    };
                    h[j] = k + cost * sum;
                }
            });
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

    /// Takes over the sums at the present point.
    fn receive(&mut self, sums: Vec<f64>) {
        self.sums = StepSums::of(sums, self.len());
        self.triangle.resize(self.sums.triangle().len(), 0.0);
        add_scaled(&mut self.triangle, 1.0, self.sums.triangle());
        self.before = Some(self.point.clone());
    }

    /// Takes the next step, or ends, given the sums at the present point.
    fn advance(
        &mut self,
        place: Place<'_>,
        number: usize,
        cost: f64,
        tolerance: f64,
        watch: &Watch,
    ) -> Result<()> {
        self.steps += 1;
        let k_mm = &place.kernel.k_mm;
        let root = place.kernel.root(&place.kernel.setting.problems[number]);
        let k_alpha = self.regulariser(self.theta(), k_mm, root.is_some());
        let objective = 0.5 * dot(self.theta(), &k_alpha) + cost * self.sums.hinge();
        let guessed = self.point.guessed;
        if let Some(accepted) = &self.accepted
            && objective > accepted.objective * (1.0 + ROUNDING)
            && self.state == State::Active
        {
            self.state = State::TooFar;
            return Ok(());
        }
        let mut step = k_alpha;
        add_scaled(&mut step, cost, self.sums.gradient());
        let decrease = match place.systems {
            Some(systems) => {
                let solved = systems.solve(place.kernel, number, Some(cost), &step)?;
                step = solved.0;
                solved.1
            }
            None => {
                let factor = self.factored(k_mm, root.is_some(), cost, watch)?;
                let decrease = solve(&factor, root, &mut step);
                self.factor = Some(factor);
                decrease
            }
        };
        self.residual = (decrease / (cost * self.sums.weight()).max(f64::MIN_POSITIVE)).sqrt();
        let tolerance = if self.steps == 1 { tolerance.min(UNMOVED) } else { tolerance };

        let small =
            self.state == State::Active && !guessed && 0.5 * decrease <= tolerance * objective;
        if small || self.state == State::Last || self.steps >= MAX_STEPS {
            self.state = State::Done;
            return Ok(());
        }
        // The objective at a support set that was guessed is none.
        if !guessed {
            self.accepted = Some(Accepted { theta: self.theta().to_vec(), objective });
        }
        let mut theta = self.theta().to_vec();
        add_scaled(&mut theta, -1.0, &step);
        self.go_to(theta);
        Ok(())
    }

    /// The way from the accepted point to the present one, if the last step was too long.
    fn way(&self) -> Option<(Vec<f64>, Vec<f64>)> {
        let accepted = self.accepted.as_ref().filter(|_| self.state == State::TooFar)?;
        Some((accepted.theta.clone(), self.theta().to_vec()))
    }

    /// Goes the first of 1/2, 1/4, .. of the way at which the objective is lower than at the accepted point, given the hinge
    /// losses there.
    fn shorten(&mut self, hinges: &[f64], k_mm: &Matrix, whitened: bool, cost: f64) {
        let Some((from, to)) = self.way() else { return };
        let limit = self.accepted.as_ref().map_or(f64::INFINITY, |accepted| accepted.objective);
        let mut share = 0.5;
        for hinge in hinges {
            let mixed = from.iter().zip(&to);
            let theta: Vec<f64> = mixed.map(|(old, new)| old + share * (new - old)).collect();
            let k_alpha = self.regulariser(&theta, k_mm, whitened);
            if 0.5 * dot(&theta, &k_alpha) + cost * hinge < limit {
                self.go_to(theta);
                self.state = State::Active;
                return;
            }
            share *= 0.5;
        }
        // A step that is as short as that ends where it started: rounding hides what is better.
        self.go_to(from);
        self.state = State::Last;
    }

    /// Makes it ready for another kernel or C; the point stays, as a start.
    fn restart(&mut self, other_kernel: bool) {
        if other_kernel {
            self.triangle.fill(0.0);
            self.before = None;
        }
        (self.accepted, self.factor) = (None, None);
        self.steps = 0;
        self.state = State::Active;
    }

    /// Adds -u alpha' to weights on the entries of K_mm.
    pub fn add_outer(&self, weights: &mut [f64], m: usize, u: &[f64]) {
        for (j, u) in self.columns.iter().zip(u) {
            self.columns.scatter(&mut weights[j * m..(j + 1) * m], -u, self.theta());
        }
    }
}

/// Where the systems of Newton's method are solved: where the rows are, or here.
#[derive(Clone, Copy)]
struct Place<'p> {
    kernel: &'p LandmarkKernel,
    systems: Option<&'p dyn Systems>,
}

/// x <- H^-1 x for the factor of H; returns x' H^-1 x.
fn solve(factor: &Cholesky, root: Option<&Cholesky>, x: &mut [f64]) -> f64 {
    to_roots(root, x);
    factor.solve_lower(x);
    let product = dot(x, x);
    factor.solve_upper(x);
    back_from_roots(root, x);
    product
}

/// x <- R^-1 x in all but the bias, where H is in terms of w.
fn to_roots(root: Option<&Cholesky>, x: &mut [f64]) {
    if let Some(root) = root {
        let m = x.len() - 1;
        root.solve_lower(&mut x[..m]);
    }
}

/// x <- R'^-1 x in all but the bias, where H is in terms of w.
fn back_from_roots(root: Option<&Cholesky>, x: &mut [f64]) {
    if let Some(root) = root {
        let m = x.len() - 1;
        root.solve_upper(&mut x[..m]);
    }
}

/// What SVMs on landmarks are to be trained on.
pub struct LandmarkProblems<'a> {
    /// The kernel.
    pub kernel: Kernel,
    /// The metric.
    pub metric: &'a Metric,
    /// What is trained and validated.
    pub problems: Vec<Problem>,
    /// SVMs that say which rows are likely to be inside of the margin.
    pub guess: Option<Guess>,
}

/// The SVMs of some problems over the same landmarks.
pub struct LandmarkSvms<'a> {
    rows: Box<dyn Rows + 'a>,
    /// What the rows of landmarks are called in the SVMs.
    landmarks: Vec<usize>,
    pub(super) kernel: LandmarkKernel,
    pub(super) machines: Vec<Machine>,
    /// Weight of the training rows and of the validation rows of each problem.
    totals: Vec<(f64, f64)>,
    tolerance: f64,
    pub(super) watch: Watch,
}

impl<'a> LandmarkSvms<'a> {
    /// On rows of a sample in some folds. The landmarks are rows of `x`; so many bytes of K may be kept.
    pub fn of_folds(
        x: &'a Matrix,
        folds: &[LabelledRows],
        landmarks: Landmarks,
        given: LandmarkProblems<'_>,
        keep: u64,
        watch: &Watch,
    ) -> Result<Self> {
        let part = Part::of_folds(x, folds, landmarks.starts.len() - 1);
        let rows = LocalRows::new(vec![part], keep, watch);
        let x = x.select_rows(&landmarks.rows);
        Self::new(Box::new(rows), (x, landmarks), None, given, watch)
    }

    /// On rows wherever they are. The landmarks are given as rows that are ready for learning.
    pub fn new(
        rows: Box<dyn Rows + 'a>,
        (x, landmarks): (Matrix, Landmarks),
        preparation: Option<Preparation>,
        LandmarkProblems { kernel, metric, problems, guess }: LandmarkProblems<'_>,
        watch: &Watch,
    ) -> Result<Self> {
        let Landmarks { rows: called, starts } = landmarks;
        let (id, guessed) = (next_number(), guess.is_some());
        let setting = Setting { id, preparation, kernel, landmarks: x, starts, problems, guess };
        let kernel = LandmarkKernel::new(setting, metric.clone(), watch)?;
        let problems = &kernel.setting.problems;
        let machine = |p: &Problem| Machine::new(PairColumns::of(&kernel.setting, p), guessed);
        let machines = problems.iter().map(machine).collect();
        let folds = problems.first().map_or(0, |problem| problem.train.len());
        let weights = rows.ask(Some(&kernel), &Question::Weights { folds })?.sums();
        let total = |problem: &Problem, folds: &[bool]| -> f64 {
            let of = |class: usize| weights[class].iter().zip(folds);
            let both = of(problem.classes.0).chain(of(problem.classes.1));
            both.filter(|(_, is_in)| **is_in).map(|(weight, _)| weight).sum()
        };
        let totals = problems.iter().map(|p| (total(p, &p.train), total(p, &p.valid))).collect();
        let (tolerance, watch) = (TOLERANCE, watch.clone());
        Ok(Self { rows, landmarks: called, kernel, machines, totals, tolerance, watch })
    }

    /// Ends when the next step would lower the objective by less than this fraction of it.
    #[must_use]
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// Makes this the kernel of another metric; the SVMs stay, as a start.
    pub fn set_metric(&mut self, metric: &Metric) -> Result<()> {
        self.machines.iter_mut().for_each(|machine| machine.restart(true));
        self.kernel.set_metric(metric.clone(), &self.watch)
    }

    /// What they are trained from but for the rows, in a key.
    pub fn in_key(&self, key: Key) -> Key {
        self.kernel.in_key(key).numbers(&[self.tolerance])
    }

    /// What they share with whoever trains them.
    pub fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Where the SVMs are: the coefficients of each, and whether the rows inside of the margin are those of the guess.
    /// With the metric and C it is all that another training depends on.
    pub fn places(&self) -> Vec<(Vec<f64>, bool)> {
        self.machines.iter().map(|m| (m.point.theta.clone(), m.point.guessed)).collect()
    }

    /// Puts the SVMs where they were, to be trained with another metric next. Nothing is done if these are not places of
    /// such SVMs, and the answer is no.
    pub fn go_back_to(&mut self, places: &[(Vec<f64>, bool)]) -> bool {
        let sizes = self.machines.iter().map(Machine::len);
        if !sizes.eq(places.iter().map(|(theta, _)| theta.len())) {
            return false;
        }
        for (machine, (theta, guessed)) in self.machines.iter_mut().zip(places) {
            machine.go_to(theta.clone());
            machine.point.guessed = *guessed;
        }
        true
    }

    /// Trains the SVMs of all problems with this C.
    pub fn train(&mut self, cost: f64) -> Result<()> {
        self.train_and_validate(cost, None).map(|_| ())
    }

    pub(super) fn validation(&self, loss: Loss) -> Validation {
        Validation { loss, total: self.totals.iter().map(|(_, valid)| valid).sum() }
    }

    pub(super) fn ask(&self, question: &Question) -> Result<Vec<Vec<f64>>> {
        self.watch.check()?;
        Ok(self.rows.ask(Some(&self.kernel), question)?.sums())
    }

    /// The same; returns the validation loss.
    pub(super) fn train_and_validate(
        &mut self,
        cost: f64,
        validation: Option<Validation>,
    ) -> Result<f64> {
        self.machines.iter_mut().for_each(|machine| machine.restart(false));
        loop {
            let asks = |machine: &Machine| machine.state != State::Done;
            if !self.machines.iter().any(asks) {
                break;
            }
            let point = |machine: &Machine| {
                asks(machine).then(|| (machine.point.clone(), machine.before.clone()))
            };
            let points: Vec<_> = self.machines.iter().map(point).collect();
            let sums = match self.rows.systems(&self.kernel) {
                Some(systems) => {
                    self.watch.check()?;
                    systems.step(&self.kernel, validation, &points)?
                }
                None => self.ask(&Question::Step { validation, points })?,
            };
            let asking = self.machines.iter_mut().filter(|machine| asks(machine));
            asking.zip(sums).for_each(|(machine, sums)| machine.receive(sums));
            let Self { rows, kernel, machines, tolerance, watch, .. } = self;
            let place = Place { kernel, systems: rows.systems(kernel) };
            let asking = machines.iter_mut().enumerate().filter(|(_, machine)| asks(machine));
            parallel::try_for_each(asking, |(number, machine)| {
                machine.advance(place, number, cost, *tolerance, watch)
            })?;
            self.shorten(cost)?;
        }
        Ok(self.machines.iter().map(|machine| machine.sums.loss()).sum())
    }

    /// Shortens the steps that were too long.
    fn shorten(&mut self, cost: f64) -> Result<()> {
        let ways: Vec<_> = self.machines.iter().map(Machine::way).collect();
        if ways.iter().all(Option::is_none) {
            return Ok(());
        }
        let too_far: Vec<bool> = ways.iter().map(Option::is_some).collect();
        let hinges = self.ask(&Question::Shares { ways })?;
        let Self { kernel, machines, .. } = self;
        let problems = machines.iter_mut().zip(&kernel.setting.problems).zip(too_far);
        let asking = problems.filter(|(_, too_far)| *too_far);
        for (((machine, problem), _), hinges) in asking.zip(hinges) {
            let whitened = kernel.root(problem).is_some();
            machine.shorten(&hinges[..SHARES], &kernel.k_mm, whitened, cost);
        }
        Ok(())
    }

    /// How many SVMs there are.
    pub fn count(&self) -> usize {
        self.machines.len()
    }

    /// An SVM, with landmarks as support vectors.
    pub fn svm(&self, problem: usize) -> BinarySvm {
        let machine = &self.machines[problem];
        let rows = machine.columns.iter().map(|j| self.landmarks[j]);
        let mut terms: Vec<(usize, f64)> = rows.zip(machine.theta().iter().copied()).collect();
        terms.sort_by_key(|(row, _)| *row);
        let (support, beta) = terms.into_iter().unzip();
        BinarySvm { support, beta, bias: machine.theta()[machine.len() - 1] }
    }

    /// Shares of training and of validation rows on the wrong side, over all SVMs.
    pub fn errors(&self) -> (f64, f64) {
        let (mut wrong, mut total) = ((0.0, 0.0), (0.0, 0.0));
        for (machine, totals) in self.machines.iter().zip(&self.totals) {
            let (train, valid) = machine.sums.wrong();
            wrong = (wrong.0 + train, wrong.1 + valid);
            total = (total.0 + totals.0, total.1 + totals.1);
        }
        (wrong.0 / total.0.max(f64::MIN_POSITIVE), wrong.1 / total.1.max(f64::MIN_POSITIVE))
    }

    /// How far the worst SVM is from its optimum: root mean square of what another step would change outputs by, in units
    /// of the margin.
    pub fn residual(&self) -> f64 {
        self.machines.iter().map(|machine| machine.residual).fold(0.0, f64::max)
    }

    /// The adjoint systems H [u; t] = sum g [k, 1], one for each SVM.
    pub(super) fn adjoints(&self) -> Result<Vec<Vec<f64>>> {
        let systems = self.rows.systems(&self.kernel);
        let adjoint = |(number, machine): (usize, &Machine)| {
            let mut u = machine.sums.valid().to_vec();
            match (systems, &machine.factor) {
                (Some(systems), _) => u = systems.solve(&self.kernel, number, None, &u)?.0,
                (None, Some(factor)) => {
                    let root = self.kernel.root(&self.kernel.setting.problems[number]);
                    solve(factor, root, &mut u);
                }
                (None, None) => {}
            }
            Ok(u)
        };
        parallel::try_map(self.machines.iter().enumerate(), adjoint)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::metric::Form;

    /// An SVM of two classes with one landmark of each.
    fn svms<'a>(x: &'a Matrix, folds: &[LabelledRows]) -> LandmarkSvms<'a> {
        let metric = Metric::new(Form::Sphere, 1, vec![1.0]).unwrap();
        let problems = Problem::of_pairs(2, &[true], &[false]);
        let given = LandmarkProblems {
            kernel: Kernel::Exponential,
            metric: &metric,
            problems,
            guess: None,
        };
        let landmarks = Landmarks { rows: vec![0, 1], starts: vec![0, 1, 2] };
        LandmarkSvms::of_folds(x, folds, landmarks, given, 1 << 20, &Watch::default()).unwrap()
    }

    fn four_rows() -> (Matrix, [LabelledRows; 1]) {
        let x = Matrix::new(4, 1, vec![-1.0, 1.0, 0.2, -0.3]).unwrap();
        let fold =
            LabelledRows { index: vec![0, 1, 2, 3], class: vec![0, 1, 0, 1], weight: vec![1.0; 4] };
        (x, [fold])
    }

    /// The state, and whether there was a step, at a point of which one with this objective is known.
    fn advanced(known: f64, state: State) -> (State, bool) {
        let (x, folds) = four_rows();
        let mut svms = svms(&x, &folds);
        let point = svms.machines[0].point.clone();
        let question =
            Question::Step { validation: None, points: vec![Some((point.clone(), None))] };
        let sums = svms.ask(&question).unwrap().swap_remove(0);
        let LandmarkSvms { kernel, machines, watch, .. } = &mut svms;
        let machine = &mut machines[0];
        machine.receive(sums);
        machine.accepted = Some(Accepted { theta: vec![0.0; 3], objective: known });
        machine.state = state;
        let place = Place { kernel, systems: None };
        machine.advance(place, 0, 1.0, TOLERANCE, watch).unwrap();
        (machine.state, machine.theta() != point.theta)
    }

    #[test]
    fn a_point_that_is_worse_than_one_before_is_too_far() {
        assert!(advanced(1e-3, State::Active) == (State::TooFar, false));
        assert!(advanced(1e3, State::Active) == (State::Active, true));
        // What was shortened as far as it can be is kept.
        assert!(advanced(1e-3, State::Last) == (State::Done, false));
    }

    #[test]
    fn a_step_is_shortened_until_the_objective_falls() {
        let (x, folds) = four_rows();
        let k_mm = Matrix::from_fn(2, 2, |i, j| f64::from(u8::from(i == j)));
        // The objective is |alpha|^2 / 2 + 2 hinge.
        let shortened = |hinges: &[f64]| {
            let machine = &mut svms(&x, &folds).machines[0];
            machine.go_to(vec![8.0, 0.0, 4.0]);
            machine.accepted = Some(Accepted { theta: vec![0.0; 3], objective: 10.0 });
            machine.state = State::TooFar;
            machine.shorten(hinges, &k_mm, false, 2.0);
            (machine.theta().to_vec(), machine.state)
        };
        // 8 + 4 at half of the way, and 2 + 6 at a quarter.
        assert!(shortened(&[2.0, 3.0, 0.0]) == (vec![2.0, 0.0, 1.0], State::Active));
        assert!(shortened(&[9.0; 3]) == (vec![0.0; 3], State::Last));
    }
}
