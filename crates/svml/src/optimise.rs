//! Minimisation of a smooth function: conjugate gradients and L-BFGS over one line search.
//!
//! The optimisers know nothing about the learners. After each accepted step they ask the objective
//! whether to go on: early stopping, time limits and interrupts are the objective's task.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Remedy, Result};
use crate::run::Stop;

/// A function to be minimised.
pub trait Objective {
    /// Returns the value at `x` and writes the gradient to `gradient`. A value that is not finite tells
    /// the line search that its step was too long.
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64>;
}

/// An objective that is shown the accepted steps and can end the minimisation.
pub trait Watched: Objective {
    /// Is called with the starting point (as a step of length 0) and then with every accepted step. Returns why
    /// to stop, or `None` to go on.
    fn accept(&mut self, step: &Accepted<'_>) -> Result<Option<Stop>>;
}

/// How search directions are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Optimiser {
    /// Polak-Ribiere conjugate gradients, the paper's choice.
    ConjugateGradients,
    /// Limited-memory BFGS, which remembers the last 10 steps.
    Lbfgs,
}

impl Optimiser {
    /// How many vectors of the variables are held at the same time, at most, with those of the objective.
    pub(crate) fn vectors(self) -> u128 {
        // Points, gradients and directions of the search; the last point as the objective knows it; the start; the best.
        const ALWAYS: u128 = 20;
        match self {
            Self::ConjugateGradients => ALWAYS,
            Self::Lbfgs => ALWAYS + 2 * MEMORY as u128,
        }
    }
}

/// When the optimiser ends by itself, and the length of its first step.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of line searches, each of which gives at most one accepted step.
    pub iterations: usize,
    /// End when a step lowers the value by at most this fraction of max(|value|, `least_size`).
    pub tolerance: f64,
    /// Lower bound on the size that decreases are compared with: near zero a relative decrease is
    /// meaningless.
    pub least_size: f64,
    /// Length of the first step to try, in the units of the variables.
    pub first_step: f64,
}

/// An accepted step, shown to the caller.
pub struct Accepted<'a> {
    /// The point.
    pub x: &'a [f64],
    /// The value there.
    pub value: f64,
    /// Length of the step along its direction, |x - previous x|.
    pub step_length: f64,
}

/// Number of pairs (step, change of the gradient) that L-BFGS remembers.
const MEMORY: usize = 10;

/// Minimises `objective` from `x`, which ends as the last accepted point.
pub fn minimise(
    optimiser: Optimiser,
    objective: &mut dyn Watched,
    x: &mut Vec<f64>,
    limits: Limits,
) -> Result<Stop> {
    let mut descent = Minimiser::new(optimiser, objective, x.clone(), limits)?;
    loop {
        x.clone_from(&descent.x);
        if let Some(stop) = objective.accept(&descent.accepted())? {
            return Ok(stop);
        }
        if let Some(stop) = descent.advance(objective)? {
            return Ok(stop);
        }
    }
}

/// A minimisation whose caller asks for one step at a time.
pub struct Minimiser {
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
    step_length: f64,
    directions: Directions,
    limits: Limits,
    /// Number of line searches so far.
    searches: usize,
    /// Whether the last step lowered the value by less than the tolerance.
    converged: bool,
}

impl Minimiser {
    /// Evaluates the objective at the start `x`.
    pub fn new(
        optimiser: Optimiser,
        objective: &mut dyn Objective,
        x: Vec<f64>,
        limits: Limits,
    ) -> Result<Self> {
        let mut gradient = vec![0.0; x.len()];
        let value = objective.evaluate(&x, &mut gradient)?;
        if !value.is_finite() {
            return Err(Error::Numerical {
                what: format!("the loss at the starting point is {value}, not a finite number"),
                remedy: Remedy::RescaleColumn,
            });
        }
        let directions = Directions::new(optimiser, limits.first_step, &gradient);
        let (step_length, searches, converged) = (0.0, 0, false);
        Ok(Self { x, value, gradient, step_length, directions, limits, searches, converged })
    }

    /// Goes on from the last accepted point with another objective that is much like the one before: what was learned
    /// about its curvature still holds.
    pub fn go_on_with(&mut self, objective: &mut dyn Objective, limits: Limits) -> Result<()> {
        self.value = objective.evaluate(&self.x, &mut self.gradient)?;
        (self.limits, self.searches, self.converged, self.step_length) = (limits, 0, false, 0.0);
        // Steepest descent, too, is that of the objective before.
        if self.directions.steepest || self.optimiser() == Optimiser::ConjugateGradients {
            self.directions = Directions::new(self.optimiser(), limits.first_step, &self.gradient);
        }
        Ok(())
    }

    fn optimiser(&self) -> Optimiser {
        self.directions.optimiser
    }

    /// The last accepted point.
    pub fn accepted(&self) -> Accepted<'_> {
        Accepted { x: &self.x, value: self.value, step_length: self.step_length }
    }

    /// Takes one step that lowers the value. If there is none, returns why the minimisation ends.
    pub fn advance(&mut self, objective: &mut dyn Objective) -> Result<Option<Stop>> {
        if self.converged {
            return Ok(Some(Stop::Tolerance));
        }
        while self.searches < self.limits.iterations {
            self.searches += 1;
            let (direction, first_step) = self.directions.next(&self.gradient);
            let slope = inner(&direction, &self.gradient);
            let line = Line { origin: &self.x, value: self.value, slope, direction };
            let Some(found) = search(objective, &line, first_step)? else {
                if self.directions.restart(&self.gradient) {
                    continue;
                }
                return Ok(Some(Stop::Minimum));
            };
            let decrease = self.value - found.value;
            self.step_length = found.t * norm(&line.direction);
            self.directions.learn(
                &line.direction,
                found.t,
                line.slope,
                &self.gradient,
                &found.gradient,
            );
            (self.x, self.value, self.gradient) = (found.x, found.value, found.gradient);
            let size = self.value.abs().max(self.limits.least_size).max(f64::MIN_POSITIVE);
            self.converged = decrease <= self.limits.tolerance * size;
            return Ok(None);
        }
        Ok(Some(Stop::Iterations))
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    inner(a, a).sqrt()
}

fn scaled(a: &[f64], s: f64) -> Vec<f64> {
    a.iter().map(|a| a * s).collect()
}

fn add_scaled(a: &mut [f64], s: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += s * b);
}

/// Computes search directions from the gradients seen so far.
struct Directions {
    optimiser: Optimiser,
    /// Length of a first step along steepest descent.
    length: f64,
    /// Next direction of conjugate gradients, or the negative gradient after a restart.
    conjugate: Vec<f64>,
    /// First step to try along `conjugate`, as a multiple of that vector.
    first_step: f64,
    /// (step, change of gradient, their inner product), oldest first.
    pairs: Vec<(Vec<f64>, Vec<f64>, f64)>,
    /// Whether the next direction is that of steepest descent.
    steepest: bool,
}

impl Directions {
    fn new(optimiser: Optimiser, length: f64, gradient: &[f64]) -> Self {
        let mut new = Self {
            optimiser,
            length,
            conjugate: Vec::new(),
            first_step: 1.0,
            pairs: Vec::new(),
            steepest: false,
        };
        new.restart(gradient);
        new
    }

    /// Forgets earlier steps and goes back to steepest descent. Returns false if no direction is left to try,
    /// because steepest descent was the last one or the gradient is zero.
    fn restart(&mut self, gradient: &[f64]) -> bool {
        let useful = !self.steepest;
        self.pairs.clear();
        self.conjugate = scaled(gradient, -1.0);
        self.first_step = self.length / norm(gradient).max(f64::MIN_POSITIVE);
        self.steepest = true;
        useful && norm(gradient) > 0.0
    }

    /// A descent direction, and the first step to try along it as a multiple of that vector.
    fn next(&mut self, gradient: &[f64]) -> (Vec<f64>, f64) {
        if self.steepest || self.optimiser == Optimiser::ConjugateGradients {
            return (self.conjugate.clone(), self.first_step);
        }
        // The two-loop recursion of L-BFGS.
        let mut q = scaled(gradient, -1.0);
        let mut weights = Vec::with_capacity(self.pairs.len());
        for (s, y, sy) in self.pairs.iter().rev() {
            let w = inner(s, &q) / sy;
            add_scaled(&mut q, -w, y);
            weights.push(w);
        }
        if let Some((_, y, sy)) = self.pairs.last() {
            let scale = sy / inner(y, y);
            q.iter_mut().for_each(|q| *q *= scale);
        }
        for ((s, y, sy), w) in self.pairs.iter().zip(weights.iter().rev()) {
            let correction = inner(y, &q) / sy;
            add_scaled(&mut q, w - correction, s);
        }
        if inner(&q, gradient) < 0.0 {
            return (q, 1.0);
        }
        self.restart(gradient);
        (self.conjugate.clone(), self.first_step)
    }

    /// Learns from an accepted step, `t` times `direction`, that changed the gradient from `old` to `new`;
    /// `slope` is the slope along `direction` before the step.
    fn learn(&mut self, direction: &[f64], t: f64, slope: f64, old: &[f64], new: &[f64]) {
        self.steepest = false;
        let change: Vec<f64> = new.iter().zip(old).map(|(n, o)| n - o).collect();
        match self.optimiser {
            Optimiser::Lbfgs => {
                let s = scaled(direction, t);
                let sy = inner(&s, &change);
                // Pairs without positive curvature are left out: with them the next direction might not descend.
                if sy > 1e-10 * norm(&s) * norm(&change) {
                    self.pairs.push((s, change, sy));
                    if self.pairs.len() > MEMORY {
                        self.pairs.remove(0);
                    }
                }
                if self.pairs.is_empty() {
                    self.restart(new);
                }
            }
            Optimiser::ConjugateGradients => {
                // The Polak-Ribiere coefficient, 0 if it is negative. If the direction that it gives does
                // not descend, the method restarts from steepest descent.
                let beta = (inner(new, &change) / inner(old, old)).max(0.0);
                let mut next = scaled(new, -1.0);
                add_scaled(&mut next, beta, direction);
                let next_slope = inner(&next, new);
                if next_slope >= 0.0 {
                    self.restart(new);
                    return;
                }
                // The first step to try has the same expected decrease, t times the slope, as the last
                // step, but t grows at most tenfold.
                self.first_step = t * (slope / next_slope).min(10.0);
                self.conjugate = next;
            }
        }
    }
}

/// A line to search along: the objective at `origin + t direction`, with its value and slope at t = 0.
struct Line<'a> {
    origin: &'a [f64],
    value: f64,
    slope: f64,
    direction: Vec<f64>,
}

/// Value and slope of the objective at a point of the line.
#[derive(Clone, Copy)]
struct Sample {
    t: f64,
    value: f64,
    slope: f64,
}

/// Where a line search ended.
struct Found {
    t: f64,
    x: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

/// Wolfe-Powell conditions: the value falls by at least DECREASE times the decrease that the slope at
/// the start predicts, and the size of the slope falls to at most CURVATURE times that at the start.
const DECREASE: f64 = 0.01;
const CURVATURE: f64 = 0.5;
/// An extrapolated step is at most this many times as long as the longest one tried so far.
const EXTRAPOLATE: f64 = 3.0;
/// An interpolated point stays at least this fraction of the bracket away from its ends.
const INTERPOLATE: f64 = 0.1;
/// Maximum number of evaluations in one line search.
const EVALUATIONS: usize = 20;

/// Line search to the Wolfe-Powell conditions by cubic and quadratic interpolation and
/// extrapolation. Returns a point with a lower value than the start, or `None` if it finds none. The
/// function may have kinks, and its value may be infinite or NaN far from the start.
fn search(objective: &mut dyn Objective, line: &Line<'_>, first: f64) -> Result<Option<Found>> {
    if line.slope.is_nan() || line.slope >= 0.0 || !line.slope.is_finite() {
        return Ok(None);
    }
    // `low` satisfies the decrease condition and the function falls from it towards `high`.
    let mut low = Sample { t: 0.0, value: line.value, slope: line.slope };
    let mut before = low;
    let mut high: Option<Sample> = None;
    let mut best: Option<Found> = None;
    let mut t = first;
    for _ in 0..EVALUATIONS {
        let mut x = line.origin.to_vec();
        add_scaled(&mut x, t, &line.direction);
        if x == line.origin {
            break;
        }
        let mut gradient = vec![0.0; x.len()];
        let value = objective.evaluate(&x, &mut gradient)?;
        let here = Sample { t, value, slope: inner(&gradient, &line.direction) };
        let finite = here.value.is_finite() && here.slope.is_finite();
        let decreased = finite && here.value <= line.value + DECREASE * t * line.slope;
        if decreased && here.value < best.as_ref().map_or(line.value, |b| b.value) {
            best = Some(Found { t, x, value, gradient });
            if here.slope.abs() <= -CURVATURE * line.slope {
                return Ok(best);
            }
        }
        if !finite {
            high = Some(Sample { t, value: f64::INFINITY, slope: 0.0 });
        } else if !decreased || here.value >= low.value || here.slope > 0.0 {
            high = Some(here);
        } else {
            (before, low) = (low, here);
        }
        t = match high {
            None => extrapolate(before, low),
            Some(high) => {
                if (high.t - low.t).abs() <= 1e-12 * high.t.abs() {
                    break;
                }
                interpolate(low, high)
            }
        };
    }
    Ok(best)
}

/// A step beyond `low`, where the function still falls: to the minimum of the cubic through `before` and
/// `low` if that lies ahead, otherwise as far as is allowed.
fn extrapolate(before: Sample, low: Sample) -> f64 {
    let width = low.t - before.t;
    let ahead = cubic_minimum(before, low).filter(|s| *s > 1.0).unwrap_or(f64::INFINITY);
    (before.t + width * ahead.max(1.0 + INTERPOLATE)).min(EXTRAPOLATE * low.t)
}

/// A step between the ends of a bracket: to the minimum of the cubic through both values and slopes or,
/// without one, of the parabola through both values and the slope at `low`. If the value at `high` is not
/// finite, it is a step close to `low`. The result is kept away from the ends.
fn interpolate(low: Sample, high: Sample) -> f64 {
    let width = high.t - low.t;
    let guess = if high.value.is_finite() {
        cubic_minimum(low, high).unwrap_or_else(|| {
            let (slope, rise) = (low.slope * width, high.value - low.value);
            -slope / (2.0 * (rise - slope))
        })
    } else {
        INTERPOLATE
    };
    let guess = if guess.is_finite() { guess } else { 0.5 };
    low.t + width * guess.clamp(INTERPOLATE, 1.0 - INTERPOLATE)
}

/// The minimum of the cubic through the values and slopes at `a` and `b`, measured from `a` in units of
/// the distance from `a` to `b`; `None` if there is no minimum ahead of `a`.
fn cubic_minimum(a: Sample, b: Sample) -> Option<f64> {
    let width = b.t - a.t;
    // p(s) = c3 s^3 + c2 s^2 + s0 s with p(1) = rise and p'(1) = s1.
    let (s0, s1, rise) = (a.slope * width, b.slope * width, b.value - a.value);
    let c3 = s0 + s1 - 2.0 * rise;
    let c2 = 3.0 * rise - 2.0 * s0 - s1;
    let minimum = -s0 / (c2 + (c2 * c2 - 3.0 * c3 * s0).sqrt());
    (minimum.is_finite() && minimum > 0.0).then_some(minimum)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Function<F> {
        f: F,
        evaluations: usize,
        accepted: Vec<f64>,
        stop_after: usize,
    }

    fn function<F: Fn(&[f64], &mut [f64]) -> f64>(f: F) -> Function<F> {
        Function { f, evaluations: 0, accepted: Vec::new(), stop_after: usize::MAX }
    }

    impl<F: Fn(&[f64], &mut [f64]) -> f64> Objective for Function<F> {
        fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64> {
            self.evaluations += 1;
            Ok((self.f)(x, gradient))
        }
    }

    impl<F: Fn(&[f64], &mut [f64]) -> f64> Watched for Function<F> {
        fn accept(&mut self, step: &Accepted<'_>) -> Result<Option<Stop>> {
            self.accepted.push(step.value);
            Ok((self.accepted.len() == self.stop_after).then_some(Stop::EarlyStopping))
        }
    }

    const BOTH: [Optimiser; 2] = [Optimiser::ConjugateGradients, Optimiser::Lbfgs];
    const LIMITS: Limits =
        Limits { iterations: 500, tolerance: 0.0, least_size: 0.0, first_step: 0.1 };

    fn run(
        optimiser: Optimiser,
        f: impl Fn(&[f64], &mut [f64]) -> f64,
        start: &[f64],
    ) -> (Vec<f64>, Stop, usize) {
        let mut x = start.to_vec();
        let mut function = function(f);
        let stop = minimise(optimiser, &mut function, &mut x, LIMITS).unwrap();
        assert!(function.accepted.windows(2).all(|w| w[1] < w[0]), "a worse value was accepted");
        (x, stop, function.evaluations)
    }

    #[test]
    fn rosenbrock() {
        for optimiser in BOTH {
            let (x, _, evaluations) = run(
                optimiser,
                |x, g| {
                    let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
                    g[0] = -2.0 * a - 400.0 * x[0] * b;
                    g[1] = 200.0 * b;
                    a * a + 100.0 * b * b
                },
                &[-1.2, 1.0],
            );
            assert!((x[0] - 1.0).abs() < 1e-6 && (x[1] - 1.0).abs() < 1e-6, "{optimiser:?} {x:?}");
            assert!(evaluations < 400, "{optimiser:?} needed {evaluations}");
        }
    }

    #[test]
    fn ill_conditioned_quadratic() {
        for optimiser in BOTH {
            let scale = |i: usize| 10f64.powi(i as i32 / 2);
            let (x, stop, _) = run(
                optimiser,
                |x, g| {
                    x.iter().enumerate().for_each(|(i, x)| g[i] = scale(i) * (x - 1.0));
                    x.iter().enumerate().map(|(i, x)| 0.5 * scale(i) * (x - 1.0).powi(2)).sum()
                },
                &[0.0; 8],
            );
            assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-6), "{optimiser:?} {stop:?} {x:?}");
        }
    }

    #[test]
    fn a_wall_of_infinity_and_a_kink_are_survived() {
        for optimiser in BOTH {
            // The minimum is a kink at 0.5, and beyond 0.7 there are no values.
            let (x, _, _) = run(
                optimiser,
                |x, g| {
                    if x[0] > 0.7 {
                        return f64::NAN;
                    }
                    g[0] = if x[0] < 0.5 { -50.0 } else { 1.0 };
                    if x[0] < 0.5 { 50.0 * (0.5 - x[0]) } else { x[0] - 0.5 }
                },
                &[-3.0],
            );
            assert!((x[0] - 0.5).abs() < 1e-3, "{optimiser:?} {x:?}");
        }
    }

    #[test]
    fn a_flat_start_is_a_minimum_and_the_caller_can_stop() {
        for optimiser in BOTH {
            assert_eq!(
                run(
                    optimiser,
                    |_, g| {
                        g[0] = 0.0;
                        3.0
                    },
                    &[1.0]
                )
                .1,
                Stop::Minimum
            );
            let mut cosh = function(|x: &[f64], g: &mut [f64]| {
                g[0] = x[0].sinh();
                x[0].cosh()
            });
            cosh.stop_after = 3;
            let stop = minimise(optimiser, &mut cosh, &mut vec![5.0], LIMITS).unwrap();
            assert_eq!((stop, cosh.accepted.len()), (Stop::EarlyStopping, 3));
        }
    }

    #[test]
    fn a_start_without_a_value_is_an_error() {
        let mut nan = function(|_: &[f64], _: &mut [f64]| f64::NAN);
        assert!(minimise(Optimiser::Lbfgs, &mut nan, &mut vec![0.0], LIMITS).is_err());
    }

    /// A direction along which the function does not fall leads nowhere.
    #[test]
    fn no_step_is_found_where_nothing_falls() {
        for slope in [0.0, 1.0, f64::NAN, f64::NEG_INFINITY] {
            let mut square = function(|x: &[f64], g: &mut [f64]| {
                g[0] = 2.0 * x[0];
                x[0] * x[0]
            });
            let line = Line { origin: &[1.0], value: 1.0, slope, direction: vec![1.0] };
            assert!(search(&mut square, &line, 0.5).unwrap().is_none(), "{slope}");
            assert_eq!(square.evaluations, 0);
        }
        // Where no parabola has a minimum the middle is tried.
        let straight = |t: f64| Sample { t, value: -t, slope: -1.0 };
        assert_eq!(interpolate(straight(0.0), straight(2.0)), 1.0);
    }

    /// Another objective from where the one before led to: both methods find its minimum.
    #[test]
    fn going_on_with_another_objective() {
        for optimiser in BOTH {
            let bowl = |centre: f64| {
                function(move |x: &[f64], g: &mut [f64]| {
                    (0..2).for_each(|k| g[k] = 2.0 * (k + 1) as f64 * (x[k] - centre));
                    (0..2).map(|k| (k + 1) as f64 * (x[k] - centre).powi(2)).sum()
                })
            };
            let mut first = bowl(1.0);
            let mut minimiser =
                Minimiser::new(optimiser, &mut first, vec![3.0, -2.0], LIMITS).unwrap();
            while minimiser.advance(&mut first).unwrap().is_none() {}
            let mut second = bowl(-4.0);
            minimiser.go_on_with(&mut second, LIMITS).unwrap();
            while minimiser.advance(&mut second).unwrap().is_none() {}
            let x = minimiser.accepted().x;
            assert!(x.iter().all(|x| (x + 4.0).abs() < 1e-6), "{optimiser:?}: {x:?}");
        }
    }
}
