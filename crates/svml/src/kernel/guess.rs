//! The support set of an approximate SVM, to start the exact one from.
//!
//! Nystrom features Z with Z Z' near K take the place of the kernel, and Newton's method finds the weights of the features:
//! each step minimises 1/2 |w|^2 + sum over the set of C_i/2 (y_i - z_i' w)^2, where the last weight is the offset b, whose
//! feature is 1. The set is then that of the rows with y_i z_i' w < 1. This takes a few percent of the time of the exact
//! problem, and the set is nearly right if the kernel is wide.

use crate::error::Result;

/// Added to the diagonal of the landmarks, so that close ones do no harm.
pub(super) const LANDMARK_RIDGE: f64 = 1e-6;
/// The SVM does not penalise the offset. Here it has a tiny penalty, so that the system is always positive definite.
const OFFSET_PENALTY: f64 = 1e-6;
/// The approximation ends after this many Newton steps, or once at most this share of the rows enters or
/// leaves the support set in a step.
const GUESS: (usize, f64) = (6, 0.002);

/// The penalty of each of `features` weights and of the offset.
pub(super) fn penalties(features: usize) -> Vec<f64> {
    let mut penalties = vec![1.0; features];
    penalties.push(OFFSET_PENALTY);
    penalties
}

/// The positions in the support set, from outputs at all rows: `step` gives those of the least squares on a set, or none
/// if it fails, and the set is then empty.
pub(super) fn support_set(
    y: &[f64],
    mut step: impl FnMut(&[usize]) -> Result<Option<Vec<f64>>>,
) -> Result<Vec<usize>> {
    let mut set: Vec<usize> = (0..y.len()).collect();
    for _ in 0..GUESS.0 {
        let Some(outputs) = step(&set)? else { return Ok(Vec::new()) };
        let next: Vec<usize> = (0..y.len()).filter(|&p| y[p] * outputs[p] < 1.0).collect();
        let kept = next.iter().filter(|p| set.binary_search(p).is_ok()).count();
        let changed = set.len() + next.len() - 2 * kept;
        set = next;
        if set.is_empty() || changed as f64 <= GUESS.1 * y.len() as f64 {
            break;
        }
    }
    Ok(set)
}
