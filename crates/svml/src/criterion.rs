//! What SVML minimises over L and C: the smooth validation error, equation (13), with its exact
//! gradient from equations (14) to (16).
//!
//! The paper differentiates (alpha, b) by each entry of L in turn. Here one adjoint system does it
//! for all entries: with g_v = d loss / d h_v on the validation rows V and the machine's matrix
//! A = K_SS + diag(1/(C w)),
//!
//! ```text
//! [ A   1 ] [ u ]   [ K_VS' g ]
//! [ 1'  0 ] [ t ] = [ sum g   ]
//!
//! d loss / d K_VS = g beta'    d loss / d K_SS = -u beta'    d loss / d log C = sum u beta / (C w)
//! ```
//!
//! With several classes the loss is the mean over all pairs and their validation rows, and the
//! gradient is the sum over pairs, contracted with the rows once.

use rayon::prelude::*;

use crate::error::Result;
use crate::kernel::{Gram, Outer};
use crate::loss::Sigmoid;
use crate::multiclass::{Rows, solve_pair};
use crate::svm::Machine;

/// The rows of one pair of classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pair {
    /// The machine is trained on these.
    pub train: Rows,
    /// The loss is measured on these.
    pub valid: Rows,
}

/// Value and gradient of the criterion, and the machines behind them.
pub struct Evaluation {
    /// Weighted mean of the surrogate over the validation rows of all pairs.
    pub loss: f64,
    /// Derivative in the values of the metric.
    pub d_metric: Vec<f64>,
    /// Derivative in log C.
    pub d_log_cost: f64,
    /// The machine of each pair.
    pub machines: Vec<Machine>,
    /// Its outputs on the training rows.
    pub train_outputs: Vec<Vec<f64>>,
    /// Its outputs on the validation rows.
    pub valid_outputs: Vec<Vec<f64>>,
    /// Worst violation of the optimality conditions of any machine.
    pub residual: f64,
}

/// Trains on one part of the rows, validates on another: the paper's criterion. `starts` are the
/// support sets to start the machines from, one per pair, or none.
pub fn hold_out(
    gram: &dyn Gram,
    pairs: &[Pair],
    cost: f64,
    surrogate: Sigmoid,
    starts: &[Machine],
) -> Result<Evaluation> {
    let total: f64 = pairs.iter().flat_map(|pair| &pair.valid.weight).sum();
    let parts: Vec<Part> = pairs
        .par_iter()
        .enumerate()
        .map(|(p, pair)| {
            let start = starts.get(p).map(|machine| machine.support.as_slice());
            Part::new(gram, pair, cost, surrogate, total, start)
        })
        .collect::<Result<_>>()?;
    let mut weights = Vec::with_capacity(2 * parts.len());
    for (part, pair) in parts.iter().zip(pairs) {
        let Machine { support, beta, .. } = &part.machine;
        let valid = &pair.valid.index;
        weights.push(Outer { rows: valid, left: &part.g, cols: support, right: beta });
        weights.push(Outer { rows: support, left: &part.minus_u, cols: support, right: beta });
    }
    let mut evaluation = Evaluation {
        loss: parts.iter().map(|part| part.loss).sum(),
        d_metric: gram.contract(&weights),
        d_log_cost: parts.iter().map(|part| part.d_log_cost).sum(),
        machines: Vec::with_capacity(parts.len()),
        train_outputs: Vec::with_capacity(parts.len()),
        valid_outputs: Vec::with_capacity(parts.len()),
        residual: parts.iter().map(|part| part.residual).fold(0.0, f64::max),
    };
    for part in parts {
        evaluation.machines.push(part.machine);
        evaluation.train_outputs.push(part.train_outputs);
        evaluation.valid_outputs.push(part.valid_outputs);
    }
    Ok(evaluation)
}

/// What one pair contributes.
struct Part {
    loss: f64,
    /// d loss / d h on the validation rows.
    g: Vec<f64>,
    /// -u of the adjoint system.
    minus_u: Vec<f64>,
    d_log_cost: f64,
    machine: Machine,
    train_outputs: Vec<f64>,
    valid_outputs: Vec<f64>,
    residual: f64,
}

impl Part {
    fn new(
        gram: &dyn Gram,
        Pair { train, valid }: &Pair,
        cost: f64,
        surrogate: Sigmoid,
        total: f64,
        start: Option<&[usize]>,
    ) -> Result<Self> {
        let solution = solve_pair(gram, train, cost, start)?;
        let Machine { support, beta, bias } = &solution.machine;

        // h on the validation rows, the loss, and g = d loss / d h.
        let mut h = gram.multiply(&valid.index, support, beta);
        h.iter_mut().for_each(|h| *h += bias);
        let mut loss = 0.0;
        let mut g = Vec::with_capacity(h.len());
        for ((h, y), w) in h.iter().zip(&valid.y).zip(&valid.weight) {
            let (value, slope) = surrogate.value_and_slope(y * h);
            loss += w / total * value;
            g.push(w / total * y * slope);
        }

        let mut u = gram.multiply_transposed(&valid.index, support, &g);
        solution.solve_bordered(&mut u, g.iter().sum());
        let d_log_cost =
            u.iter().zip(beta).zip(&solution.ridge).map(|((u, beta), ridge)| u * beta * ridge);
        Ok(Self {
            loss,
            g,
            d_log_cost: d_log_cost.sum(),
            minus_u: u.iter().map(|u| -u).collect(),
            train_outputs: solution.outputs,
            valid_outputs: h,
            residual: solution.residual,
            machine: solution.machine,
        })
    }
}
