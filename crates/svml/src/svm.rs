//! The SVM of equations (1) to (3): squared hinge loss, Newton's method in the primal.
//!
//! Problem: the hard-margin SVM with kernel K + I/C, which is the same as
//!
//! ```text
//! min over beta, b   1/2 beta' K beta + sum_i C_i/2 max(0, 1 - y_i f_i)^2,    f = K beta + b,
//! ```
//!
//! where beta_i = alpha_i y_i in the paper's letters.
//! Given: K, behind the trait [`Gram`], and never the data; labels y_i = +-1; a cost C_i per row.
//! Returned: beta, b, the support set S = { i : y_i f_i < 1 }, and the worst violation of the
//! optimality conditions.
//!
//! On S the optimum solves (the paper's H, with the labels moved to the right-hand side)
//!
//! ```text
//! [ K_SS + diag(1/C_i)   1 ] [ beta_S ]   [ y_S ]
//! [ 1'                   0 ] [ b      ] = [ 0   ]         beta = 0 off S
//! ```
//!
//! Each Newton step solves this system for the current S and determines S anew from the outputs f, until
//! S no longer changes. A full step that does not lower the objective is halved until it does.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernel::{Factor, Gram, Product, System, Together};
use crate::parallel;
use crate::run::Key;

/// The training problem: rows of a kernel matrix with their labels and costs.
#[derive(Clone, Copy)]
pub struct Problem<'g, 'a> {
    /// The kernel.
    pub gram: &'g dyn Gram,
    /// The training rows, ascending.
    pub rows: &'a [usize],
    /// Label of each row: +1 or -1.
    pub y: &'a [f64],
    /// Cost C_i of each row.
    pub cost: &'a [f64],
}

/// A trained SVM: h(x) = sum_j beta_j k(x, x_j) + b over the support rows j.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BinarySvm {
    /// Row indices of the support vectors, ascending.
    pub support: Vec<usize>,
    /// beta_j = alpha_j y_j.
    pub beta: Vec<f64>,
    /// The offset b.
    pub bias: f64,
}

impl BinarySvm {
    /// All of it, in a key.
    pub(crate) fn in_key(&self, key: Key) -> Key {
        key.places(&self.support).numbers(&self.beta).numbers(&[self.bias])
    }
}

/// A trained SVM, and what was found beside it.
pub struct Trained {
    /// The SVM.
    pub svm: BinarySvm,
    /// f at every row of the problem.
    pub outputs: Vec<f64>,
    /// Worst violation of the optimality conditions, in units of the margin: of
    /// y_i f_i + alpha_i/C_i = 1 and alpha_i >= 0 on S, of y_i f_i >= 1 elsewhere, and of
    /// sum beta = 0 relative to sum |beta|.
    pub residual: f64,
    /// Newton steps taken.
    pub steps: usize,
    /// 1/C_i of the support rows.
    pub ridge: Vec<f64>,
    /// (K_SS + diag(1/C_i))^-1 times the vector of ones.
    pub inverse_ones: Vec<f64>,
}

/// The trained SVM, and what derivatives and leave-one-out outputs are computed from.
pub struct Solution<'g> {
    /// The SVM.
    pub trained: Trained,
    /// The factorisation of K_SS + diag(1/C_i), for the derivatives.
    pub factor: Box<dyn Factor + 'g>,
}

impl Trained {
    /// D_i, by which beta_i is divided to get y_i - f_i without an observation of the i-th support row, if that has the share
    /// s of the row's cost. The cost that is left is C_i (1 - s), which adds s / (C_i (1 - s)) to the diagonal of the bordered
    /// matrix; with B_ii, the entry of its inverse, D_i = (1 - s) C_i + s B_ii. The whole row, s = 1, has D_i = B_ii.
    pub fn left_out(&self, i: usize, b: f64, s: f64) -> f64 {
        (1.0 - s) / self.ridge[i] + s * b
    }

    /// Turns x = A^-1 rhs, with A = K_SS + diag(1/C_i), into the solution of the bordered system of the module's
    /// documentation for the right-hand side `[rhs; last]`: returns the last unknown and leaves the others in `x`.
    pub fn border(&self, x: &mut [f64], last: f64) -> f64 {
        border(x, last, &self.inverse_ones)
    }
}

impl Solution<'_> {
    /// Solves the bordered system of the module's documentation for another right-hand side `[x; last]`:
    /// returns the last unknown and leaves the others in `x`.
    pub fn solve_bordered(&self, x: &mut [f64], last: f64) -> f64 {
        self.factor.solve(x);
        self.trained.border(x, last)
    }

    /// f_i of the SVM trained without an observation of row i, for the rows at some positions of the problem (ascending);
    /// `share` is the share of the weight of each row of the kernel that one of its observations has, 1 for most.
    /// This is exact as long as leaving it out makes no other row enter or leave S: it is y_i - beta_i / D_i
    /// (see [`Trained::left_out`]) for i in S, and f_i for the other rows, which do not influence the SVM.
    pub fn leave_one_out_outputs(
        &self,
        rows: &[usize],
        y: &[f64],
        positions: &[usize],
        share: &[f64],
    ) -> Vec<f64> {
        let Trained { svm, outputs, inverse_ones, .. } = &self.trained;
        let place = |p: usize| svm.support.binary_search(&rows[p]).ok();
        let inside: Vec<usize> = positions.iter().filter_map(|&p| place(p)).collect();
        let mut inverse = self.factor.inverse_diagonal(&inside).into_iter();
        let ones: f64 = inverse_ones.iter().sum();
        let without = |p: usize| {
            let Some(i) = place(p) else { return outputs[p] };
            let b = inverse.next().unwrap_or(0.0) - inverse_ones[i].powi(2) / ones;
            // D_i is 0 only if row i is the only row in S. Nothing is left without it: the output is 0.
            let d = self.trained.left_out(i, b, share[rows[p]]);
            if d > 0.0 { y[p] - svm.beta[i] / d } else { 0.0 }
        };
        positions.iter().copied().map(without).collect()
    }
}

/// Turns x = A^-1 rhs into the solution x of [A 1; 1' 0] [x; t] = [rhs; last], and returns t;
/// `inverse_ones` is A^-1 1.
fn border(x: &mut [f64], last: f64, inverse_ones: &[f64]) -> f64 {
    if x.is_empty() {
        return 0.0;
    }
    let t = (x.iter().sum::<f64>() - last) / inverse_ones.iter().sum::<f64>();
    x.iter_mut().zip(inverse_ones).for_each(|(x, z)| *x -= t * z);
    t
}

/// A row whose margin y_i f_i is this close to 1 is on the boundary of S: rounding alone decides whether
/// it is inside or outside, so that either counts as right.
const BOUNDARY: f64 = 1e-10;
/// Maximum number of Newton steps, far more than any problem needs. If it is reached, the residual shows
/// how far the result is from the optimum.
const MAX_STEPS: usize = 200;

/// Solves the problem, starting from the support set `start` (row indices) or from all rows.
pub fn solve<'g>(problem: &Problem<'g, '_>, start: Option<&[usize]>) -> Result<Solution<'g>> {
    let mut newton = Newton::new(problem, start)?;
    let mut factor = problem.gram.factor(&newton.support(), &newton.ridge())?;
    loop {
        let mut x = newton.right_hand_sides();
        factor.solve(&mut x);
        let step = newton.full_step(x);
        let outputs = problem.gram.multiply(problem.rows, &step.svm.support, &step.svm.beta);
        if let Some(trained) = newton.advance(step, outputs) {
            return Ok(Solution { trained, factor });
        }
        factor.update(&newton.support(), &newton.ridge())?;
    }
}

/// Solves several problems on the same kernel matrix, each from its start, step by step together.
pub fn solve_together(
    together: &dyn Together,
    problems: &[Problem<'_, '_>],
    starts: &[Option<&[usize]>],
) -> Result<Vec<Trained>> {
    let mut newtons = (problems.iter().zip(starts))
        .map(|(problem, start)| Newton::new(problem, *start))
        .collect::<Result<Vec<_>>>()?;
    let mut trained: Vec<Option<Trained>> = problems.iter().map(|_| None).collect();
    loop {
        // Those that have not come to their end.
        let mut active: Vec<_> =
            newtons.iter_mut().zip(&mut trained).filter(|(_, trained)| trained.is_none()).collect();
        if active.is_empty() {
            return Ok(trained.into_iter().flatten().collect());
        }
        let ask = |(newton, _): &(&mut Newton<'_, '_, '_>, _)| System {
            set: newton.support(),
            ridge: newton.ridge(),
            x: newton.right_hand_sides(),
        };
        let solved = together.solve(&active.iter().map(ask).collect::<Vec<_>>())?;
        let steps: Vec<FullStep> =
            active.iter().zip(solved).map(|((newton, _), x)| newton.full_step(x)).collect();
        let products: Vec<Product<'_>> = (active.iter().zip(&steps))
            .map(|((newton, _), FullStep { svm, .. })| Product {
                rows: newton.problem.rows,
                cols: &svm.support,
                v: &svm.beta,
            })
            .collect();
        let outputs = together.multiply(&products)?;
        let advancing = active.iter_mut().zip(steps).zip(outputs);
        parallel::for_each(advancing, |(((newton, trained), step), f)| {
            **trained = newton.advance(step, f);
        });
    }
}

/// Newton's method for one problem: what it knows between two solutions of the bordered system.
struct Newton<'p, 'g, 'a> {
    problem: &'p Problem<'g, 'a>,
    /// S, by positions within the rows.
    set: Vec<usize>,
    accepted: Option<Point>,
    steps: usize,
}

/// Where a full Newton step leads: to the optimum, if S is right.
struct FullStep {
    svm: BinarySvm,
    inverse_ones: Vec<f64>,
}

impl<'p, 'g, 'a> Newton<'p, 'g, 'a> {
    fn new(problem: &'p Problem<'g, 'a>, start: Option<&[usize]>) -> Result<Self> {
        let set = match start {
            Some(start) => positions(problem.rows, start),
            None => cold_start(problem)?,
        };
        let mut newton = Self { problem, set: Vec::new(), accepted: None, steps: 0 };
        newton.go_to(set);
        Ok(newton)
    }

    /// Another S; an empty one stands for all rows.
    fn go_to(&mut self, set: Vec<usize>) {
        self.set = if set.is_empty() { (0..self.problem.rows.len()).collect() } else { set };
    }

    /// The rows of S.
    fn support(&self) -> Vec<usize> {
        self.set.iter().map(|&p| self.problem.rows[p]).collect()
    }

    /// 1/C_i on S.
    fn ridge(&self) -> Vec<f64> {
        self.set.iter().map(|&p| 1.0 / self.problem.cost[p]).collect()
    }

    /// y_S, and then ones.
    fn right_hand_sides(&self) -> Vec<f64> {
        let mut x: Vec<f64> = self.set.iter().map(|&p| self.problem.y[p]).collect();
        x.resize(2 * self.set.len(), 1.0);
        x
    }

    /// The solution of the bordered system, from what K_SS + diag(1/C_i) makes of the right-hand sides.
    fn full_step(&self, mut x: Vec<f64>) -> FullStep {
        let inverse_ones = x.split_off(self.set.len());
        let bias = border(&mut x, 0.0, &inverse_ones);
        FullStep { svm: BinarySvm { support: self.support(), beta: x, bias }, inverse_ones }
    }

    /// Goes there, or a part of the way, given K beta at all rows; or ends, if S stays as it is.
    fn advance(&mut self, step: FullStep, mut outputs: Vec<f64>) -> Option<Trained> {
        let (problem, y) = (self.problem, self.problem.y);
        let FullStep { svm, inverse_ones } = step;
        outputs.iter_mut().for_each(|f| *f += svm.bias);
        let full = Point::new(problem, &self.set, &svm.beta, svm.bias, outputs);
        self.steps += 1;
        if full.stays(y, &self.set) || self.steps == MAX_STEPS {
            return Some(Trained {
                residual: residual(problem, &self.set, &svm.beta, &full.outputs),
                svm,
                outputs: full.outputs,
                steps: self.steps,
                ridge: self.ridge(),
                inverse_ones,
            });
        }
        let next = match self.accepted.take() {
            Some(old) if full.objective >= old.objective => old.towards(&full, problem),
            _ => full,
        };
        self.go_to(next.support_set(y));
        self.accepted = Some(next);
        None
    }
}

/// From this many rows on, a cold start begins with an approximate support set, which saves more time
/// than it takes.
pub const LARGE: usize = 1000;
/// One row in this many is a landmark of the approximation.
const LANDMARK_EVERY: usize = 12;
/// The support set to start from if no earlier SVM is known. For many rows it is the support set of an
/// approximate problem, by a kernel of few landmarks. For fewer rows, or if the approximation fails, the set is
/// empty, which stands for all rows.
fn cold_start(problem: &Problem<'_, '_>) -> Result<Vec<usize>> {
    let Problem { gram, rows, y, cost } = *problem;
    if rows.len() < LARGE {
        return Ok(Vec::new());
    }
    let landmarks: Vec<usize> = rows.iter().copied().step_by(LANDMARK_EVERY).collect();
    gram.approximate_support(rows, y, cost, &landmarks)
}

/// Positions within `rows` of those rows that are in `wanted`; both ascending.
fn positions(rows: &[usize], wanted: &[usize]) -> Vec<usize> {
    let mut wanted = wanted.iter().peekable();
    let mut found = Vec::with_capacity(wanted.len());
    for (p, row) in rows.iter().enumerate() {
        while wanted.next_if(|w| *w < row).is_some() {}
        if wanted.next_if(|w| *w == row).is_some() {
            found.push(p);
        }
    }
    found
}

/// A point (beta, b) of the primal problem, with the outputs f = K beta + b, from which K beta follows.
struct Point {
    /// beta for every row of the problem.
    beta: Vec<f64>,
    bias: f64,
    outputs: Vec<f64>,
    objective: f64,
}

impl Point {
    fn new(
        problem: &Problem<'_, '_>,
        set: &[usize],
        beta: &[f64],
        bias: f64,
        outputs: Vec<f64>,
    ) -> Self {
        let mut dense = vec![0.0; problem.rows.len()];
        set.iter().zip(beta).for_each(|(&p, &b)| dense[p] = b);
        let mut point = Self { beta: dense, bias, outputs, objective: 0.0 };
        point.objective = point.value(problem);
        point
    }

    /// 1/2 beta' K beta + sum_i C_i/2 max(0, 1 - y_i f_i)^2.
    fn value(&self, problem: &Problem<'_, '_>) -> f64 {
        let mut value = 0.0;
        for (p, (&beta, &f)) in self.beta.iter().zip(&self.outputs).enumerate() {
            let slack = (1.0 - problem.y[p] * f).max(0.0);
            value += 0.5 * beta * (f - self.bias) + 0.5 * problem.cost[p] * slack * slack;
        }
        value
    }

    fn support_set(&self, y: &[f64]) -> Vec<usize> {
        (0..y.len()).filter(|&p| y[p] * self.outputs[p] < 1.0).collect()
    }

    /// Whether `set` is the support set of this point, up to rows on its boundary.
    fn stays(&self, y: &[f64], set: &[usize]) -> bool {
        let mut set = set.iter().peekable();
        (0..y.len()).all(|p| {
            let margin = y[p] * self.outputs[p];
            match set.next_if(|s| **s == p) {
                Some(_) => margin <= 1.0 + BOUNDARY,
                None => margin >= 1.0 - BOUNDARY,
            }
        })
    }

    /// The first of the points half of the way towards `full`, a quarter of the way, and so on, at which
    /// the objective is lower than here.
    fn towards(self, full: &Point, problem: &Problem<'_, '_>) -> Point {
        let mut t = 0.5;
        loop {
            let between = |a: f64, b: f64| a + t * (b - a);
            let mix =
                |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(&a, &b)| between(a, b)).collect();
            let mut point = Point {
                beta: mix(&self.beta, &full.beta),
                bias: between(self.bias, full.bias),
                outputs: mix(&self.outputs, &full.outputs),
                objective: 0.0,
            };
            point.objective = point.value(problem);
            // The direction is one of descent, so that a short enough step lowers the objective; the
            // bound on t guards against rounding.
            if point.objective < self.objective || t < 1e-12 {
                return point;
            }
            t *= 0.5;
        }
    }
}

/// The worst violation of the optimality conditions: see [`Solution::residual`].
fn residual(problem: &Problem<'_, '_>, set: &[usize], beta: &[f64], outputs: &[f64]) -> f64 {
    let mut support = set.iter().zip(beta).peekable();
    let mut worst = 0.0f64;
    for (p, (&y, &f)) in problem.y.iter().zip(outputs).enumerate() {
        let violation = match support.next_if(|(s, _)| **s == p) {
            Some((_, beta)) => {
                let slack = y * beta / problem.cost[p];
                (y * f + slack - 1.0).abs().max(-slack)
            }
            None => 1.0 - y * f,
        };
        worst = worst.max(violation);
    }
    let scale = beta.iter().map(|b| b.abs()).sum::<f64>().max(f64::MIN_POSITIVE);
    worst.max(beta.iter().sum::<f64>().abs() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;
    use crate::linalg::Matrix;
    use crate::metric::{Form, Kernel, Metric};
    use crate::run::Watch;

    /// Does something with a problem of three rows, labels 1, -1, 1 and costs 2, 4, 1.
    fn with_problem(test: impl FnOnce(&Problem<'_, '_>)) {
        let x = Matrix::from_rows(&[[0.0], [1.0], [3.0]]).unwrap();
        let metric = Metric::isotropic(Form::Sphere, 1, 1.0).unwrap();
        let watch = Watch::default();
        let gram = kernel::backend().gram(&x, 3, &metric, Kernel::Gaussian, &watch).unwrap();
        let (y, cost) = ([1.0, -1.0, 1.0], [2.0, 4.0, 1.0]);
        test(&Problem { gram: &*gram, rows: &[0, 1, 2], y: &y, cost: &cost });
    }

    /// Each condition violated alone, by hand: what solves exactly would hide a residual that is always 0.
    #[test]
    fn the_residual_is_the_worst_violation() {
        with_problem(|problem| {
            let at = |beta: [f64; 2], f: [f64; 3]| residual(problem, &[0, 1], &beta, &f);
            assert_eq!(at([0.5, -0.5], [0.75, -0.875, 1.5]), 0.0);
            assert_eq!(at([0.5, -0.5], [0.5, -0.875, 1.5]), 0.25);
            assert_eq!(at([0.5, -0.5], [0.75, -1.0, 1.5]), 0.125);
            assert_eq!(at([0.5, -0.5], [0.75, -0.875, 0.25]), 0.75);
            assert_eq!(at([-0.5, 0.5], [1.25, -1.125, 1.5]), 0.25);
            assert_eq!(at([0.5, -0.25], [0.75, -0.9375, 1.5]), 0.25 / 0.75);
        });
    }

    #[test]
    fn the_objective_is_that_of_the_primal() {
        with_problem(|problem| {
            let outputs = vec![0.75, -0.875, 1.5];
            let point = Point::new(problem, &[0, 1], &[0.5, -0.5], 0.25, outputs);
            assert_eq!(point.objective, 0.5);
            assert_eq!(point.support_set(problem.y), [0, 1]);
            assert!(point.stays(problem.y, &[0, 1]));
            assert!(!point.stays(problem.y, &[0]) && !point.stays(problem.y, &[0, 1, 2]));
        });
    }

    /// Along f = b the objective is 3.5 at 0, 3.875 at -0.5 and 3.46875 at -0.25.
    #[test]
    fn a_step_that_goes_too_far_is_halved_until_the_objective_falls() {
        with_problem(|problem| {
            let constant = |b: f64| Point::new(problem, &[], &[], b, vec![b; 3]);
            let point = constant(0.0).towards(&constant(-4.0), problem);
            assert_eq!((point.bias, point.objective), (-0.25, 3.46875));
            assert_eq!(point.outputs, [-0.25; 3]);
            assert_eq!(point.beta, [0.0; 3]);
        });
    }

    /// A problem of so many rows whose classes lie in rings, in a wide kernel.
    fn with_rings(n: usize, test: impl FnOnce(&Problem<'_, '_>)) {
        let x = Matrix::from_fn(n, 2, |i, k| ((i * (2 * k + 3)) as f64 * 0.77).sin() * 2.0);
        let metric = Metric::isotropic(Form::Sphere, 2, 0.3).unwrap();
        let watch = Watch::default();
        let gram = kernel::backend().gram(&x, n, &metric, Kernel::Gaussian, &watch).unwrap();
        let inner = |row: &[f64]| row[0].hypot(row[1]) < 1.1;
        let y: Vec<f64> = x.iter_rows().map(|x| if inner(x) { 1.0 } else { -1.0 }).collect();
        let cost: Vec<f64> = (0..n).map(|i| 0.5 + (i % 3) as f64 * 4.0).collect();
        let rows: Vec<usize> = (0..n).collect();
        test(&Problem { gram: &*gram, rows: &rows, y: &y, cost: &cost });
    }

    /// An approximation pays for many rows only; there it is near the support set that Newton's method ends with.
    #[test]
    fn only_many_rows_start_from_an_approximate_support_set() {
        with_rings(LARGE - 1, |problem| {
            let all: Vec<usize> = (0..LARGE - 1).collect();
            assert_eq!(Newton::new(problem, None).unwrap().set, all);
        });
        with_rings(LARGE + 200, |problem| {
            let start = Newton::new(problem, None).unwrap().set;
            let found = solve(problem, None).unwrap().trained;
            assert!(found.residual < 1e-8, "{}", found.residual);
            let support = found.svm.support;
            assert!(support.len() < LARGE / 2, "{}", support.len());
            let kept = start.iter().filter(|p| support.binary_search(p).is_ok()).count();
            let apart = start.len() + support.len() - 2 * kept;
            assert!(apart * 4 < support.len(), "{apart} of {}", support.len());
        });
    }

    /// Half of the way from b = 0 to b = -1 the objective is what it is at 0, which is not lower.
    #[test]
    fn a_step_to_an_equal_objective_is_halved() {
        with_problem(|problem| {
            let problem = Problem { cost: &[2.0, 5.0, 1.0], ..*problem };
            let constant = |b: f64| Point::new(&problem, &[], &[], b, vec![b; 3]);
            assert_eq!(constant(0.0).objective, constant(-0.5).objective);
            let point = constant(0.0).towards(&constant(-1.0), &problem);
            assert_eq!((point.bias, point.objective), (-0.25, 3.75));
        });
    }

    /// Products and solutions one after the other.
    struct OneByOne<'a>(&'a dyn Gram);

    impl Together for OneByOne<'_> {
        fn multiply(&self, products: &[Product<'_>]) -> Result<Vec<Vec<f64>>> {
            Ok(products.iter().map(|p| self.0.multiply(p.rows, p.cols, p.v)).collect())
        }

        fn solve(&self, systems: &[System]) -> Result<Vec<Vec<f64>>> {
            let solved = systems.iter().map(|System { set, ridge, x }| {
                let mut x = x.clone();
                self.0.factor(set, ridge)?.solve(&mut x);
                Ok(x)
            });
            solved.collect()
        }
    }

    /// Problems that take different numbers of steps, from all rows and from a set.
    #[test]
    fn svms_that_are_trained_together_are_those_that_are_trained_alone() {
        let x = Matrix::from_fn(90, 2, |i, k| ((i * 37 + k * 11) % 53) as f64 / 20.0);
        let metric = Metric::isotropic(Form::Sphere, 2, 0.7).unwrap();
        let watch = Watch::default();
        let gram = kernel::backend().gram(&x, 90, &metric, Kernel::Gaussian, &watch).unwrap();
        let rows: Vec<Vec<usize>> = vec![(0..90).collect(), (0..40).collect(), (30..90).collect()];
        let y: Vec<f64> = (0..90)
            .map(|i| if (x[(i, 0)] - 1.0).hypot(x[(i, 1)]) < 1.3 { 1.0 } else { -1.0 })
            .collect();
        let y: Vec<Vec<f64>> =
            rows.iter().map(|rows| rows.iter().map(|&i| y[i]).collect()).collect();
        let cost: Vec<Vec<f64>> = (rows.iter().zip([0.1, 10.0, 1000.0]))
            .map(|(rows, cost)| vec![cost; rows.len()])
            .collect();
        let problems: Vec<Problem<'_, '_>> = (0..3)
            .map(|p| Problem { gram: &*gram, rows: &rows[p], y: &y[p], cost: &cost[p] })
            .collect();
        let start = [31, 35, 60];
        let starts = [None, None, Some(&start[..])];
        let together = solve_together(&OneByOne(&*gram), &problems, &starts).unwrap();
        let mut steps = Vec::new();
        for ((problem, start), together) in problems.iter().zip(starts).zip(together) {
            let alone = solve(problem, start).unwrap().trained;
            assert_eq!(together.svm.support, alone.svm.support);
            assert_eq!(together.steps, alone.steps);
            assert!(together.residual < 1e-10 && alone.residual < 1e-10);
            for (a, b) in together.outputs.iter().zip(&alone.outputs) {
                assert!((a - b).abs() < 1e-10, "{a} and {b}");
            }
            steps.push(alone.steps);
        }
        steps.dedup();
        assert!(steps.len() > 1, "{steps:?}");
    }

    #[test]
    fn positions_of_rows_among_others() {
        assert_eq!(positions(&[1, 3, 5, 9], &[0, 3, 4, 9, 11]), [1, 3]);
        assert_eq!(positions(&[1, 3], &[]), [0; 0]);
    }

    /// [A 1; 1' 0] [x; t] = [rhs; last] with A = K_SS + diag(1/C_i), by multiplying it out.
    #[test]
    fn bordered_systems_are_solved() {
        with_rings(60, |problem| {
            let solution = solve(problem, None).unwrap();
            let Trained { svm, ridge, .. } = &solution.trained;
            let rhs: Vec<f64> = (0..svm.support.len()).map(|i| (i as f64 * 1.3).sin()).collect();
            for last in [0.0, 2.5, -1.0] {
                let mut x = rhs.clone();
                let t = solution.solve_bordered(&mut x, last);
                let product = problem.gram.multiply(&svm.support, &svm.support, &x);
                for i in 0..x.len() {
                    let found = product[i] + ridge[i] * x[i] + t;
                    assert!((found - rhs[i]).abs() < 1e-8, "row {i}: {found} {}", rhs[i]);
                }
                assert!((x.iter().sum::<f64>() - last).abs() < 1e-8);
            }
        });
    }

    /// Where no other row enters or leaves the support set, they are what training without the row gives; without its only
    /// row nothing is left.
    #[test]
    fn outputs_of_rows_that_are_left_out() {
        with_rings(60, |problem| {
            let solution = solve(problem, None).unwrap();
            let all: Vec<usize> = (0..60).collect();
            let found = solution.leave_one_out_outputs(problem.rows, problem.y, &all, &[1.0; 60]);
            let support = &solution.trained.svm.support;
            let mut compared = [0, 0];
            for out in 0..60 {
                let rows: Vec<usize> = (0..60).filter(|&i| i != out).collect();
                let of = |values: &[f64]| rows.iter().map(|&i| values[i]).collect::<Vec<_>>();
                let (y, cost) = (of(problem.y), of(problem.cost));
                let rest = Problem { rows: &rows, y: &y, cost: &cost, ..*problem };
                let svm = solve(&rest, None).unwrap().trained.svm;
                let stays: Vec<usize> = support.iter().copied().filter(|&i| i != out).collect();
                if svm.support == stays {
                    compared[usize::from(support.contains(&out))] += 1;
                    let h = problem.gram.multiply(&[out], &svm.support, &svm.beta)[0] + svm.bias;
                    assert!((found[out] - h).abs() < 1e-7, "row {out}: {} {h}", found[out]);
                }
            }
            assert!(compared[0] > 5 && compared[1] > 2, "{compared:?}");
            let alone = Problem { rows: &[7], y: &[1.0], cost: &[2.0], ..*problem };
            let solution = solve(&alone, None).unwrap();
            assert_eq!(solution.leave_one_out_outputs(&[7], &[1.0], &[0], &[1.0; 8]), [0.0]);
        });
    }
}
