//! How far a fit is, from the steps that it reports: the words for a person who waits.
//!
//! Nobody knows beforehand how many steps a descent takes, nor what will be worth trying after it. So nothing is said
//! about the time that is left until it has been measured what an SVM takes, and then only until all have been learned.

use std::fmt;

use crate::method::Method;
use crate::run::Step;
use crate::svml::FormChoice;

/// Watches the steps of a fit and says how far it is.
///
/// ```
/// use std::ops::ControlFlow;
/// use svml::{Generator, Method, Model, Progress, Run};
///
/// let data = Generator::default().generate()?.data;
/// let method = Method::default();
/// let mut progress = Progress::new(&method);
/// let mut lines = Vec::new();
/// let mut run = Run::new().observer(|step| {
///     lines.push(progress.at(step).to_string());
///     ControlFlow::Continue(())
/// });
/// Model::fit_with(&data, method, &mut run)?;
/// drop(run);
/// assert!(lines[0].starts_with("learning gaussian sphere (1 of 3), step 0"));
/// # Ok::<(), svml::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Progress {
    /// SVMs that the mean is chosen from; 1 for any other method.
    members: usize,
    /// The descents that have begun, the last of which goes on.
    parts: Vec<Part>,
}

/// One descent: the steps from one start to the next.
#[derive(Clone, Debug)]
struct Part {
    half: bool,
    /// Number of its first step.
    first: usize,
    /// Seconds of the fit at its first step.
    begun: f64,
}

/// How far a fit is. `Display` has the words.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Standing {
    /// What is being learned, such as `exponential diagonal (2 of 3)`; empty if there is one thing only.
    pub what: String,
    /// The step within this part, from 0.
    pub step: usize,
    /// Seconds since the start of the fit.
    pub seconds: f64,
    /// In about how many seconds the last of the SVMs will have been learned that are learned one after the other on
    /// halves of the rows, and how many these are, where one of them has been. What follows is not counted, because it
    /// is not known.
    pub left: Option<(f64, usize)>,
}

impl Progress {
    /// Of a fit by this method.
    pub fn new(method: &Method) -> Self {
        let members = match method {
            Method::Svml(svml) if svml.form == FormChoice::Auto => 3,
            _ => 1,
        };
        Self { members, parts: Vec::new() }
    }

    /// How far the fit is at a step that it reports.
    pub fn at(&mut self, step: &Step) -> Standing {
        let half = step.svml.is_some_and(|svml| svml.half);
        // Only SVML starts several times.
        if self.parts.is_empty() || (step.step_length == 0.0 && step.svml.is_some()) {
            self.parts.push(Part { half, first: step.iteration, begun: step.seconds });
        }
        // A part takes until the next one begins: after its last step it is asked what it is worth.
        let took = |pair: &[Part]| (pair[0].half == half).then(|| pair[1].begun - pair[0].begun);
        let took: Vec<f64> = self.parts.windows(2).filter_map(took).collect();
        let count = took.len();
        let (first, begun) = self.parts.last().map_or((0, 0.0), |part| (part.first, part.begun));
        let to_come = self.members.saturating_sub(count + 1);
        let left = (half && count > 0 && self.members > 1).then(|| {
            let usual = took.iter().sum::<f64>() / count as f64;
            let left = (usual - (step.seconds - begun)).max(0.0) + to_come as f64 * usual;
            (left, self.members)
        });
        let name = step.svml.and_then(|svml| svml.kernel.zip(svml.form));
        let what = match name {
            Some((kernel, form)) if self.members > 1 => match half {
                true => format!("{kernel} {form} ({} of {})", count + 1, self.members),
                false => format!("{kernel} {form} on all rows"),
            },
            _ if half => "on halves of the rows".to_owned(),
            _ => String::new(),
        };
        let of_part = step.iteration.saturating_sub(first);
        Standing { what, step: of_part, seconds: step.seconds, left }
    }
}

impl Standing {
    /// What is done, without the time.
    pub fn doing(&self) -> String {
        let what = if self.what.is_empty() { String::new() } else { format!(" {}", self.what) };
        format!("learning{what}, step {}", self.step)
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.doing(), clock(self.seconds, self.left))
    }
}

/// The time so far and, where that is known, in about which time several SVMs will have been learned; an estimate
/// that has run out is taken back.
pub fn clock(so_far: f64, left: Option<(f64, usize)>) -> String {
    let so_far = format!("{} so far", duration(so_far));
    match left.filter(|(left, _)| *left >= 0.5) {
        Some((left, count)) => format!("{so_far}, all {count} in ~{}", duration(left)),
        None => so_far,
    }
}

/// A time as people say it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..=9 => format!("{:.1} s", seconds.max(0.0)),
        10..=99 => format!("{whole} s"),
        100..=5999 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{Form, Kernel};
    use crate::run::SvmlStep;

    fn step(iteration: usize, step_length: f64, half: bool, seconds: f64) -> Step {
        let svml = SvmlStep {
            form: Some(Form::Sphere),
            kernel: Some(Kernel::Gaussian),
            half,
            train_error: 0.0,
            valid_error: 0.0,
            stopping_error: None,
            cost: 1.0,
            support_vectors: 1,
        };
        Step { seconds, svml: Some(svml), ..Step::new(iteration, 1.0, step_length) }
    }

    #[test]
    fn what_is_left_is_said_once_it_was_measured() {
        let mut progress = Progress::new(&Method::default());
        let mut at = |iteration, length, half, seconds| {
            progress.at(&step(iteration, length, half, seconds)).to_string()
        };
        assert_eq!(
            at(0, 0.0, true, 1.0),
            "learning gaussian sphere (1 of 3), step 0, 1.0 s so far"
        );
        assert_eq!(
            at(1, 0.5, true, 3.0),
            "learning gaussian sphere (1 of 3), step 1, 3.0 s so far"
        );
        // The first took ten seconds, from its first step to that of the second.
        let second = "learning gaussian sphere (2 of 3), step 0, 11 s so far, all 3 in ~20 s";
        assert_eq!(at(2, 0.0, true, 11.0), second);
        assert!(at(3, 0.5, true, 15.0).ends_with("step 1, 15 s so far, all 3 in ~16 s"));
        assert!(at(4, 0.0, true, 17.0).ends_with("(3 of 3), step 0, 17 s so far, all 3 in ~8.0 s"));
        // It takes longer than the others did.
        assert!(at(5, 0.5, true, 30.0).ends_with("(3 of 3), step 1, 30 s so far"));
        let all = "learning gaussian sphere on all rows, step 0, 2 min 5 s so far";
        assert_eq!(at(6, 0.0, false, 125.0), all);
    }

    #[test]
    fn learners_of_one_part() {
        let mut progress = Progress::new(&Method::metric(crate::learners::Nca::default()));
        let at = |progress: &mut Progress, k: usize, length: f64| {
            progress.at(&Step { seconds: 7200.0, ..Step::new(k, 1.0, length) }).to_string()
        };
        assert_eq!(at(&mut progress, 0, 0.0), "learning, step 0, 2 h 0 min so far");
        // A step of no length starts nothing new here.
        assert_eq!(at(&mut progress, 7, 0.0), "learning, step 7, 2 h 0 min so far");
    }

    #[test]
    fn one_form_is_learned_on_halves_and_on_all_rows() {
        let method: Method = "svml:sphere".parse().unwrap();
        let mut progress = Progress::new(&method);
        let mut at = |iteration, half| progress.at(&step(iteration, 0.0, half, 2.0)).doing();
        assert_eq!(at(0, true), "learning on halves of the rows, step 0");
        assert_eq!(at(1, false), "learning, step 0");
    }
}
