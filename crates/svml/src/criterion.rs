//! What SVML minimises over L and C: the smooth validation error, equation (13), with its exact
//! gradient from equations (14) to (16).
//!
//! The paper differentiates (alpha, b) by each entry of L in turn. Here one adjoint system does it
//! for all entries: with g_v = d loss / d h_v on the validation rows V and the machine's matrix
//! A = K_SS + I/C,
//!
//! ```text
//! [ A   1 ] [ u ]   [ K_VS' g ]
//! [ 1'  0 ] [ t ] = [ sum g   ]
//!
//! d loss / d K_VS = g beta'      d loss / d K_SS = -u beta'      d loss / d log C = u'beta / C
//! ```

use crate::error::Result;
use crate::kernel::{Gram, Outer};
use crate::loss::Sigmoid;
use crate::svm::{self, Machine, Problem};

/// Rows with their labels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Row indices, ascending.
    pub index: Vec<usize>,
    /// +1 or -1 for each.
    pub y: Vec<f64>,
}

/// Value and gradient of the criterion, and the machine behind them.
pub struct Evaluation {
    /// Mean of the surrogate over the validation rows.
    pub loss: f64,
    /// Derivative in the values of the metric.
    pub d_metric: Vec<f64>,
    /// Derivative in log C.
    pub d_log_cost: f64,
    /// The machine trained on the training rows.
    pub machine: Machine,
    /// Its outputs on the training rows.
    pub train_outputs: Vec<f64>,
    /// Its outputs on the validation rows.
    pub valid_outputs: Vec<f64>,
    /// Worst violation of the machine's optimality conditions.
    pub residual: f64,
}

/// Trains on `train`, validates on `valid`: the paper's criterion. `start` is a support set to
/// start the machine from.
pub fn hold_out(
    gram: &dyn Gram,
    train: &Rows,
    valid: &Rows,
    cost: f64,
    surrogate: Sigmoid,
    start: Option<&[usize]>,
) -> Result<Evaluation> {
    let costs = vec![cost; train.index.len()];
    let problem = Problem { gram, rows: &train.index, y: &train.y, cost: &costs };
    let solution = svm::solve(&problem, start)?;
    let Machine { support, beta, bias } = &solution.machine;

    // h on the validation rows, the loss, and g = d loss / d h.
    let mut h = gram.multiply(&valid.index, support, beta);
    h.iter_mut().for_each(|h| *h += bias);
    let m = valid.index.len().max(1) as f64;
    let mut loss = 0.0;
    let mut g = Vec::with_capacity(h.len());
    for (h, y) in h.iter().zip(&valid.y) {
        let (value, slope) = surrogate.value_and_slope(y * h);
        loss += value / m;
        g.push(y * slope / m);
    }

    let mut u = gram.multiply_transposed(&valid.index, support, &g);
    solution.solve_bordered(&mut u, g.iter().sum());
    let d_log_cost = u.iter().zip(beta).map(|(u, beta)| u * beta / cost).sum();
    u.iter_mut().for_each(|u| *u = -*u);
    let d_metric = gram.contract(&[
        Outer { rows: &valid.index, left: &g, cols: support, right: beta },
        Outer { rows: support, left: &u, cols: support, right: beta },
    ]);
    Ok(Evaluation {
        loss,
        d_metric,
        d_log_cost,
        train_outputs: solution.outputs,
        valid_outputs: h,
        residual: solution.residual,
        machine: solution.machine,
    })
}
