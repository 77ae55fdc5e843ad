//! Minimisation of a smooth function: conjugate gradients and L-BFGS over one line search.
//!
//! The optimisers know no learner. After each accepted step the objective is asked whether to go
//! on; early stopping, time limits and interrupts live there.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A function to be minimised.
pub trait Objective {
    /// The value at `x`, with the gradient left in `gradient`. A value that is not finite means
    /// 'too far'.
    fn evaluate(&mut self, x: &[f64], gradient: &mut [f64]) -> Result<f64>;

    /// Sees the starting point (with step 0) and every accepted step after it, and may end the work.
    fn accept(&mut self, step: &Accepted<'_>) -> Result<Option<Stop>>;
}

/// How to choose directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Optimiser {
    /// Polak-Ribiere conjugate gradients, the paper's choice.
    ConjugateGradients,
    /// Limited-memory BFGS with 10 pairs.
    #[default]
    Lbfgs,
}

/// Why an optimisation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The result on the hold-out rows has not improved for some steps.
    HoldOut,
    /// The value fell by less than the tolerance.
    Tolerance,
    /// No direction lowers the value any more: a minimum, to the precision of the line search.
    Minimum,
    /// The limit on the number of steps was reached.
    Iterations,
    /// The time limit was reached.
    TimeLimit,
    /// The observer or the interrupt flag asked for it.
    Interrupted,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::HoldOut => "the hold-out result no longer improved",
            Self::Tolerance => "the loss fell by less than the tolerance",
            Self::Minimum => "a minimum was reached",
            Self::Iterations => "the iteration limit was reached",
            Self::TimeLimit => "the time limit was reached",
            Self::Interrupted => "it was interrupted",
        })
    }
}

/// When to end without being told.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most accepted steps.
    pub iterations: usize,
    /// Smallest decrease of the value worth another step, relative to its size.
    pub tolerance: f64,
    /// Values below this count as this large: near zero a relative decrease means nothing.
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
    pub step: f64,
}

/// Pairs of steps and gradient changes that L-BFGS remembers.
const MEMORY: usize = 10;

/// Minimises `objective` from `x`, which ends as the last accepted point.
pub fn minimise(
    optimiser: Optimiser,
    objective: &mut dyn Objective,
    x: &mut Vec<f64>,
    limits: Limits,
) -> Result<Stop> {
    let mut gradient = vec![0.0; x.len()];
    let mut value = objective.evaluate(x, &mut gradient)?;
    if !value.is_finite() {
        return Err(Error::Parameter {
            name: "starting point",
            value: format!("{value}"),
            bound: "one with a finite loss".to_owned(),
        });
    }
    if let Some(stop) = objective.accept(&Accepted { x, value, step: 0.0 })? {
        return Ok(stop);
    }
    let mut directions = Directions::new(optimiser, limits.first_step, &gradient);
    for _ in 0..limits.iterations {
        let (direction, first_step) = directions.next(&gradient);
        let line = Line { origin: x, value, slope: inner(&direction, &gradient), direction };
        let Some(found) = search(objective, &line, first_step)? else {
            if directions.restart(&gradient) {
                continue;
            }
            return Ok(Stop::Minimum);
        };
        let decrease = value - found.value;
        let step = found.t * norm(&line.direction);
        directions.learn(&line.direction, found.t, line.slope, &gradient, &found.gradient);
        (*x, value, gradient) = (found.x, found.value, found.gradient);
        if let Some(stop) = objective.accept(&Accepted { x, value, step })? {
            return Ok(stop);
        }
        if decrease <= limits.tolerance * value.abs().max(limits.least_size).max(f64::MIN_POSITIVE)
        {
            return Ok(Stop::Tolerance);
        }
    }
    Ok(Stop::Iterations)
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

/// The next direction from the gradients seen so far.
struct Directions {
    optimiser: Optimiser,
    /// Length of a first step along steepest descent.
    length: f64,
    /// Direction of conjugate gradients; empty before the first step.
    conjugate: Vec<f64>,
    /// First step to try along it.
    first_step: f64,
    /// (step, change of gradient, their inner product), oldest first.
    pairs: Vec<(Vec<f64>, Vec<f64>, f64)>,
    /// Whether the direction is plain steepest descent.
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

    /// Forgets everything. False if there was nothing to forget: then nothing is left to try.
    fn restart(&mut self, gradient: &[f64]) -> bool {
        let useful = !self.steepest;
        self.pairs.clear();
        self.conjugate = scaled(gradient, -1.0);
        self.first_step = self.length / norm(gradient).max(f64::MIN_POSITIVE);
        self.steepest = true;
        useful && norm(gradient) > 0.0
    }

    /// A descent direction and the first step to try along it.
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

    /// Takes note of a step of `t` along `direction` that changed the gradient from `old` to `new`.
    fn learn(&mut self, direction: &[f64], t: f64, slope: f64, old: &[f64], new: &[f64]) {
        self.steepest = false;
        let change: Vec<f64> = new.iter().zip(old).map(|(n, o)| n - o).collect();
        match self.optimiser {
            Optimiser::Lbfgs => {
                let s = scaled(direction, t);
                let sy = inner(&s, &change);
                // Curvature must be positive, or the next direction would not descend.
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
                // Polak-Ribiere, started anew when negative or when it would not descend.
                let beta = (inner(new, &change) / inner(old, old)).max(0.0);
                let mut next = scaled(new, -1.0);
                add_scaled(&mut next, beta, direction);
                let next_slope = inner(&next, new);
                if next_slope >= 0.0 {
                    self.restart(new);
                    return;
                }
                // The same expected decrease as last time, at most ten times the step.
                self.first_step = t * (slope / next_slope).min(10.0);
                self.conjugate = next;
            }
        }
    }
}

/// The function along a line.
struct Line<'a> {
    origin: &'a [f64],
    value: f64,
    slope: f64,
    direction: Vec<f64>,
}

/// A point on the line, with its slope along it.
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

/// Wolfe-Powell conditions: the value falls by at least DECREASE of what the slope promises, and
/// the slope shrinks to CURVATURE of what it was.
const DECREASE: f64 = 0.01;
const CURVATURE: f64 = 0.5;
/// An extrapolation goes at most this many times as far.
const EXTRAPOLATE: f64 = 3.0;
/// An interpolation keeps this share of the bracket away from its ends.
const INTERPOLATE: f64 = 0.1;
/// Evaluations in one line search.
const EVALUATIONS: usize = 20;

/// Line search to the Wolfe-Powell conditions by cubic and quadratic interpolation and
/// extrapolation. Never returns a value above the one it started from; `None` if no lower is found.
/// The function may have kinks and may be infinite far out.
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

/// Beyond `low`, where the function still falls: the minimum of the cubic through it and the sample
/// before, if that lies ahead, else as far as allowed.
fn extrapolate(before: Sample, low: Sample) -> f64 {
    let width = low.t - before.t;
    let ahead = cubic_minimum(before, low).filter(|s| *s > 1.0).unwrap_or(f64::INFINITY);
    (before.t + width * ahead.max(1.0 + INTERPOLATE)).min(EXTRAPOLATE * low.t)
}

/// Between the ends of a bracket: the minimum of the cubic through both values and slopes, or of
/// the parabola through two values and one slope, kept away from the ends.
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

/// The minimum of the cubic through the values and slopes at `a` and `b`, in units of their
/// distance from `a`; `None` if it has none ahead of `a`.
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

        fn accept(&mut self, step: &Accepted<'_>) -> Result<Option<Stop>> {
            self.accepted.push(step.value);
            Ok((self.accepted.len() == self.stop_after).then_some(Stop::HoldOut))
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
            // Infinite beyond 0.7, kink at 0.5, minimum there.
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
            assert_eq!((stop, cosh.accepted.len()), (Stop::HoldOut, 3));
        }
    }

    #[test]
    fn a_start_without_a_value_is_an_error() {
        let mut nan = function(|_: &[f64], _: &mut [f64]| f64::NAN);
        assert!(minimise(Optimiser::Lbfgs, &mut nan, &mut vec![0.0], LIMITS).is_err());
    }
}
