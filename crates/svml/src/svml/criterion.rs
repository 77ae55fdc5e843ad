//! What SVML minimises over L and C: a smooth validation error, equation (13), with its exact
//! gradient from equations (14) to (16).
//!
//! Three ways to validate: on a hold-out part (the paper's), on each of k folds in turn, and on every
//! row left out alone, in closed form.
//!
//! The paper differentiates (alpha, b) by each entry of L in turn. Here one adjoint system does it
//! for all entries: with g_v = d loss / d h_v on the validation rows V and the SVM's matrix
//! A = K_SS + diag(1/(C w)),
//!
//! ```text
//! [ A   1 ] [ u ]   [ K_VS' g ]
//! [ 1'  0 ] [ t ] = [ sum g   ]
//!
//! d loss / d K_VS = g beta'    d loss / d K_SS = -u beta'    d loss / d log C = sum u beta / (C w)
//! ```
//!
//! Leave-one-out: with B the leading block of the inverse of the bordered matrix, the SVM without
//! row i of S gives y_i - r_i there, r_i = beta_i / D_i, as long as no other row changes sides. D_i = B_ii; if row i stands
//! for several equal observations, of which one is left out that has the share s_i of its weight,
//! D_i = (1 - s_i) C w_i + s_i B_ii. With rho_i = d loss / d r_i on S, and g on the rows N outside S,
//!
//! ```text
//! p_i = rho_i / D_i    q_i = -rho_i beta_i s_i / D_i^2    [u; t] from the right-hand side [p + K_NS' g; sum g]
//!
//! d loss / d K_NS = g beta'    d loss / d K_SS = -u beta' - B diag(q) B
//! d loss / d log C = sum_i (u_i beta_i + (B diag(q) B)_ii) / (C w_i) - rho_i beta_i (1 - s_i) C w_i / D_i^2
//! ```
//!
//! With several classes the loss is the mean over all pairs and their validation rows, and the
//! gradient is the sum over pairs, contracted with the rows once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::data::folds::Fold;
use crate::data::{LabelledRows, PairRows, Sample, pairs};
use crate::error::{Error, Result};
use crate::kernel::{Gram, Outer, Product, System, Together};
use crate::loss::Loss;
use crate::multiclass::{solve_pair, train_together};
use crate::parallel;
use crate::svm::{BinarySvm, Trained};

/// How a metric and a C are validated while they are learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub enum Criterion {
    /// Half of the rows train, a quarter validates, a quarter says when to stop: the paper's way.
    HoldOut,
    /// Each of k folds is validated by SVMs trained on the others, all with one metric and C.
    KFold(usize),
    /// Every row is validated by the SVM without it, in closed form.
    LeaveOneOut,
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HoldOut => f.write_str("hold_out"),
            Self::KFold(k) => write!(f, "k_fold={k}"),
            Self::LeaveOneOut => f.write_str("leave_one_out"),
        }
    }
}

impl FromStr for Criterion {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "hold_out" => Ok(Self::HoldOut),
            "leave_one_out" => Ok(Self::LeaveOneOut),
            _ => text
                .strip_prefix("k_fold=")
                .and_then(|k| k.parse().ok())
                .filter(|&k| k >= 2)
                .map(Self::KFold)
                .ok_or_else(|| {
                    let bound = "hold_out, leave_one_out or k_fold=K with K at least 2";
                    Error::parameter("criterion", text, bound)
                }),
        }
    }
}

impl From<Criterion> for String {
    fn from(criterion: Criterion) -> Self {
        criterion.to_string()
    }
}

impl TryFrom<String> for Criterion {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// The rows of one pair of classes in one fold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairFold {
    /// The SVM is trained on these.
    pub train: PairRows,
    /// The loss is measured on these.
    pub valid: PairRows,
}

/// Every pair of classes, trained on one part of the rows and validated on another.
pub fn split_pairs(train: &LabelledRows, valid: &LabelledRows, classes: usize) -> Vec<PairFold> {
    let of = |pair| PairFold { train: train.of_pair(pair), valid: valid.of_pair(pair) };
    pairs(classes).into_iter().map(of).collect()
}

/// Fold after fold, every pair of classes.
pub fn fold_pairs(sample: &Sample<'_>, folds: &[Fold]) -> Vec<PairFold> {
    let of = |Fold { train, valid }: &Fold| {
        split_pairs(&sample.part(train), &sample.part(valid), sample.classes())
    };
    folds.iter().flat_map(of).collect()
}

/// Value and gradient of a criterion, and the SVMs behind them.
#[derive(Serialize, Deserialize)]
pub struct Evaluation {
    /// Weighted mean of the surrogate over the validation rows of all pairs.
    pub loss: f64,
    /// Derivative in the values of the metric.
    pub d_metric: Vec<f64>,
    /// Derivative in log C.
    pub d_log_cost: f64,
    /// The SVM of each pair.
    pub svms: Vec<BinarySvm>,
    /// Shares of training and of validation rows on the wrong side, if the outputs are not there.
    pub errors: Option<(f64, f64)>,
    /// Its outputs on the training rows.
    pub train_outputs: Vec<Vec<f64>>,
    /// Its outputs on the validation rows.
    pub valid_outputs: Vec<Vec<f64>>,
    /// Worst violation of the optimality conditions of any SVM.
    pub residual: f64,
}

/// Trains on one part of the rows, validates on another, for each of `pairs`: both the hold-out and the
/// k-fold criterion. `starts` are SVMs to take the starting support sets from, or none.
pub fn validate_pairs(
    gram: &dyn Gram,
    pairs: &[PairFold],
    cost: f64,
    loss: Loss,
    starts: &[BinarySvm],
) -> Result<Evaluation> {
    let total: f64 = pairs.iter().flat_map(|pair| &pair.valid.weight).sum();
    let sizes: Vec<usize> = pairs.iter().map(|pair| pair.train.index.len()).collect();
    if let Some(together) = gram.together(&sizes) {
        return sum(gram, validated_together(gram, together, pairs, cost, loss, total, starts)?);
    }
    evaluate(gram, pairs, starts, |pair, start| {
        Part::validated(gram, pair, cost, loss, total, start)
    })
}

/// Computes the kernel columns of the support rows to start from, which most problems need, together.
fn prefetch_columns(gram: &dyn Gram, starts: &[BinarySvm]) {
    let mut rows: Vec<usize> = starts.iter().flat_map(|m| m.support.iter().copied()).collect();
    rows.sort_unstable();
    rows.dedup();
    gram.prefetch(&rows);
}

/// Trains on all rows, validates on each observation left out, for each pair of classes. `share` is the share of the weight of
/// each row of the kernel that one of its observations has.
pub fn leave_one_out(
    gram: &dyn Gram,
    (pairs, share): (&[PairRows], &[f64]),
    cost: f64,
    loss: Loss,
    starts: &[BinarySvm],
) -> Result<Evaluation> {
    let total: f64 = pairs.iter().flat_map(|rows| &rows.weight).sum();
    evaluate(gram, pairs, starts, |rows, start| {
        Part::leave_one_out(gram, (rows, share), cost, loss, total, start)
    })
}

/// Sums what `part` makes of each problem, in their order; the problems are solved side by side.
fn evaluate<P: Sync>(
    gram: &dyn Gram,
    problems: &[P],
    starts: &[BinarySvm],
    part: impl Fn(&P, Option<&[usize]>) -> Result<Part> + Sync,
) -> Result<Evaluation> {
    prefetch_columns(gram, starts);
    let parts = parallel::try_map(problems.iter().enumerate(), |(p, problem)| {
        part(problem, starts.get(p).map(|svm| svm.support.as_slice()))
    })?;
    sum(gram, parts)
}

/// The criterion from what each problem contributes.
fn sum(gram: &dyn Gram, parts: Vec<Part>) -> Result<Evaluation> {
    let mut weights = Vec::with_capacity(2 * parts.len());
    for part in &parts {
        let BinarySvm { support, beta, .. } = &part.svm;
        weights.push(Outer { rows: &part.outside, left: &part.g, cols: support, right: beta });
        weights.push(Outer { rows: support, left: &part.minus_u, cols: support, right: beta });
    }
    let mut d_metric = gram.contract(&weights)?;
    for part in &parts {
        d_metric.iter_mut().zip(&part.d_metric).for_each(|(sum, d)| *sum += d);
    }
    let mut evaluation = Evaluation {
        loss: parts.iter().map(|part| part.loss).sum(),
        d_metric,
        d_log_cost: parts.iter().map(|part| part.d_log_cost).sum(),
        svms: Vec::with_capacity(parts.len()),
        errors: None,
        train_outputs: Vec::with_capacity(parts.len()),
        valid_outputs: Vec::with_capacity(parts.len()),
        residual: parts.iter().map(|part| part.residual).fold(0.0, f64::max),
    };
    for part in parts {
        evaluation.svms.push(part.svm);
        evaluation.train_outputs.push(part.train_outputs);
        evaluation.valid_outputs.push(part.valid_outputs);
    }
    Ok(evaluation)
}

/// What one SVM contributes.
struct Part {
    loss: f64,
    /// Validation rows that are not support rows: V, or N.
    outside: Vec<usize>,
    /// d loss / d h on them.
    g: Vec<f64>,
    /// -u of the adjoint system.
    minus_u: Vec<f64>,
    /// Derivative in the metric that is not an outer product; empty for zero.
    d_metric: Vec<f64>,
    d_log_cost: f64,
    svm: BinarySvm,
    train_outputs: Vec<f64>,
    valid_outputs: Vec<f64>,
    residual: f64,
}

/// What each of several pairs contributes, all of them computed together, step by step: see [`Part::validated`].
fn validated_together(
    gram: &dyn Gram,
    together: &dyn Together,
    pairs: &[PairFold],
    cost: f64,
    surrogate: Loss,
    total: f64,
    starts: &[BinarySvm],
) -> Result<Vec<Part>> {
    let train: Vec<&PairRows> = pairs.iter().map(|pair| &pair.train).collect();
    let starts: Vec<_> = starts.iter().map(|svm| Some(svm.support.as_slice())).collect();
    let trained = train_together(gram, together, &train, cost, &starts)?;
    let svms = trained.iter().map(|trained| &trained.svm);
    let at_valid: Vec<Product<'_>> = (pairs.iter().zip(svms.clone()))
        .map(|(pair, svm)| Product { rows: &pair.valid.index, cols: &svm.support, v: &svm.beta })
        .collect();
    let validations: Vec<Validation> = (together.multiply(&at_valid)?.into_iter())
        .zip(pairs.iter().zip(svms.clone()))
        .map(|(h, (pair, svm))| Validation::new(h, svm, &pair.valid, surrogate, total))
        .collect();
    let back: Vec<Product<'_>> = (pairs.iter().zip(svms).zip(&validations))
        .map(|((pair, svm), Validation { g, .. })| Product {
            rows: &svm.support,
            cols: &pair.valid.index,
            v: g,
        })
        .collect();
    let systems: Vec<System> = (together.multiply(&back)?.into_iter().zip(&trained))
        .map(|(x, Trained { svm, ridge, .. })| System {
            set: svm.support.clone(),
            ridge: ridge.clone(),
            x,
        })
        .collect();
    let solved = together.solve(&systems)?;
    let parts = trained.into_iter().zip(validations).zip(pairs).zip(solved);
    Ok(parts
        .map(|(((trained, validation), pair), mut u)| {
            trained.border(&mut u, validation.g.iter().sum());
            Part::of_adjoint(trained, validation, &pair.valid, &u)
        })
        .collect())
}

/// An SVM on its validation rows.
struct Validation {
    /// Its outputs.
    h: Vec<f64>,
    loss: f64,
    /// d loss / d h.
    g: Vec<f64>,
}

impl Validation {
    /// From K_VS beta.
    fn new(
        mut h: Vec<f64>,
        svm: &BinarySvm,
        valid: &PairRows,
        surrogate: Loss,
        total: f64,
    ) -> Self {
        h.iter_mut().for_each(|h| *h += svm.bias);
        let mut loss = 0.0;
        let mut g = Vec::with_capacity(h.len());
        for ((h, y), w) in h.iter().zip(&valid.y).zip(&valid.weight) {
            let (value, slope) = surrogate.value_and_slope(y * h);
            loss += w / total * value;
            g.push(w / total * y * slope);
        }
        Self { h, loss, g }
    }
}

impl Part {
    fn validated(
        gram: &dyn Gram,
        pair: &PairFold,
        cost: f64,
        surrogate: Loss,
        total: f64,
        start: Option<&[usize]>,
    ) -> Result<Self> {
        let solution = solve_pair(gram, &pair.train, cost, start)?;
        let (svm, valid) = (&solution.trained.svm, &pair.valid);
        let h = gram.multiply(&valid.index, &svm.support, &svm.beta);
        let validation = Validation::new(h, svm, valid, surrogate, total);
        let mut u = gram.multiply_transposed(&valid.index, &svm.support, &validation.g);
        solution.solve_bordered(&mut u, validation.g.iter().sum());
        Ok(Self::of_adjoint(solution.trained, validation, valid, &u))
    }

    /// From u of the adjoint system.
    fn of_adjoint(trained: Trained, validation: Validation, valid: &PairRows, u: &[f64]) -> Self {
        let Trained { svm, outputs, residual, ridge, .. } = trained;
        let d_log_cost =
            u.iter().zip(&svm.beta).zip(&ridge).map(|((u, beta), ridge)| u * beta * ridge);
        Self {
            loss: validation.loss,
            outside: valid.index.clone(),
            g: validation.g,
            d_log_cost: d_log_cost.sum(),
            minus_u: u.iter().map(|u| -u).collect(),
            d_metric: Vec::new(),
            train_outputs: outputs,
            valid_outputs: validation.h,
            residual,
            svm,
        }
    }

    fn leave_one_out(
        gram: &dyn Gram,
        (rows, share): (&PairRows, &[f64]),
        cost: f64,
        surrogate: Loss,
        total: f64,
        start: Option<&[usize]>,
    ) -> Result<Self> {
        let solution = solve_pair(gram, rows, cost, start)?;
        let trained = &solution.trained;
        let BinarySvm { support, beta, .. } = &trained.svm;
        let inverse = solution.factor.bordered_inverse(&trained.inverse_ones)?;
        let b = inverse.diagonal();

        // Outputs without each observation, the loss, and its derivatives in r on S and in h elsewhere.
        let (mut loss, mut d_log_cost) = (0.0, 0.0);
        let mut without = trained.outputs.clone();
        let (mut outside, mut g) = (Vec::new(), Vec::new());
        let (mut u, mut q) = (vec![0.0; support.len()], vec![0.0; support.len()]);
        let mut next = 0;
        for (p, (&row, &y)) in rows.index.iter().zip(&rows.y).enumerate() {
            let part = rows.weight[p] / total;
            if support.get(next) != Some(&row) {
                let (value, slope) = surrogate.value_and_slope(y * without[p]);
                loss += part * value;
                outside.push(row);
                g.push(part * y * slope);
                continue;
            }
            let i = next;
            next += 1;
            let s = share[row];
            let d = trained.left_out(i, b[i], s);
            if d <= 0.0 {
                // The row is all there is; nothing is known without it.
                without[p] = 0.0;
                loss += part * surrogate.value_and_slope(0.0).0;
                continue;
            }
            without[p] = y - beta[i] / d;
            let (value, slope) = surrogate.value_and_slope(y * without[p]);
            loss += part * value;
            let rho = -part * y * slope;
            u[i] = rho / d;
            q[i] = -rho * beta[i] * s / (d * d);
            d_log_cost -= rho * beta[i] * (1.0 - s) / (trained.ridge[i] * d * d);
        }

        let through_outside = gram.multiply_transposed(&outside, support, &g);
        u.iter_mut().zip(through_outside).for_each(|(u, v)| *u += v);
        solution.solve_bordered(&mut u, g.iter().sum());
        let (mut d_metric, bqb) = inverse.contract(&q)?;
        d_metric.iter_mut().for_each(|d| *d = -*d);
        d_log_cost += (u.iter().zip(beta).zip(&bqb).zip(&trained.ridge))
            .map(|(((u, beta), bqb), ridge)| (u * beta + bqb) * ridge)
            .sum::<f64>();
        drop(inverse);
        Ok(Self {
            loss,
            outside,
            g,
            minus_u: u.iter().map(|u| -u).collect(),
            d_metric,
            d_log_cost,
            train_outputs: solution.trained.outputs,
            valid_outputs: without,
            residual: solution.trained.residual,
            svm: solution.trained.svm,
        })
    }
}
