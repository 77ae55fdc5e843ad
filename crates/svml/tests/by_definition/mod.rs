//! What a model gives, written out from the definitions: kernels, sums over support vectors, the mean over members.
#![allow(dead_code)]

use svml::internals::multiclass::vote;
use svml::internals::pairs;
use svml::{Kernel, Matrix, Member, Metric, Model};

/// k(x, z) of standardised rows.
pub fn kernel_value(kernel: Kernel, metric: &Metric, x: &[f64], z: &[f64]) -> f64 {
    let l = metric.components();
    let mapped: Vec<f64> = l
        .iter_rows()
        .map(|row| row.iter().zip(x.iter().zip(z)).map(|(l, (x, z))| l * (x - z)).sum())
        .collect();
    let sq: f64 = mapped.iter().map(|v| v * v).sum();
    match kernel {
        Kernel::Gaussian => (-sq).exp(),
        Kernel::Exponential => (-sq.sqrt()).exp(),
        // L is diagonal: |l_k (x_k - z_k)| = w_k |x_k - z_k|.
        _ => (-mapped.iter().map(|v| v.abs()).sum::<f64>()).exp(),
    }
}

/// The class of each support vector: they stand class after class.
fn support_classes(model: &Model) -> Vec<usize> {
    let counts = model.support_counts().iter().enumerate();
    counts.flat_map(|(class, &count)| vec![class; count]).collect()
}

/// The outputs of the SVMs of all pairs of a member at rows as they are. // (rows, pairs)
pub fn member_outputs(model: &Model, member: &Member, x: &Matrix) -> Matrix {
    let pairs = pairs(model.classes().len());
    let u = model.scaler().apply(x);
    let support = model.scaler().apply(model.support_vectors());
    let class = support_classes(model);
    let mut outputs = Matrix::zeros(x.rows(), pairs.len());
    for r in 0..x.rows() {
        let k: Vec<f64> = support
            .iter_rows()
            .map(|s| kernel_value(member.kernel(), member.metric(), u.row(r), s))
            .collect();
        for (p, &(i, j)) in pairs.iter().enumerate() {
            outputs[(r, p)] = member.bias()[p];
            for (s, &c) in class.iter().enumerate().filter(|(_, c)| **c == i || **c == j) {
                // Among the SVMs of class c, the one against the other class.
                let slot = if c == i { j - 1 } else { i };
                outputs[(r, p)] += member.beta()[(slot, s)] * k[s];
            }
        }
    }
    outputs
}

/// The decision values: the vote on the weighted mean of the members' outputs.
pub fn decision(model: &Model, x: &Matrix) -> Matrix {
    let classes = model.classes().len();
    let mut mean = Matrix::zeros(x.rows(), pairs(classes).len());
    for member in model.members() {
        let outputs = member_outputs(model, member, x);
        let sums = mean.as_mut_slice().iter_mut().zip(outputs.as_slice());
        sums.for_each(|(sum, h)| *sum += member.weight() * h);
    }
    vote(&mean, classes)
}

/// The decision values of a model are those of its definition.
#[track_caller]
pub fn assert_defined(model: &Model, x: &Matrix, what: &str) {
    let (found, expected) = (model.decision(x).unwrap(), decision(model, x));
    assert_eq!((found.rows(), found.cols()), (expected.rows(), expected.cols()));
    for (found, expected) in found.as_slice().iter().zip(expected.as_slice()) {
        let size = expected.abs().max(1.0);
        assert!((found - expected).abs() < 1e-9 * size, "{what}: {found} and {expected}");
    }
}

/// The SVM of each member of a model of two classes satisfies the conditions of an optimum of the squared hinge on all
/// rows, which are distinct and have the weights given: beta_i = C w_i y_i max(0, 1 - y_i h(x_i)) and sum beta = 0.
#[track_caller]
pub fn assert_optimal(model: &Model, x: &Matrix, class: &[usize], weight: &[f64], what: &str) {
    for member in model.members() {
        let (h, c) = (member_outputs(model, member, x), member.cost());
        let mut beta = vec![0.0; x.rows()];
        for (s, &row) in model.support_rows().iter().enumerate() {
            beta[row] = member.beta()[(0, s)];
        }
        for row in 0..x.rows() {
            let y = if class[row] == 1 { 1.0 } else { -1.0 };
            let expected = c * weight[row] * y * (1.0 - y * h[(row, 0)]).max(0.0);
            let off = (beta[row] - expected).abs();
            let (kernel, form) = (member.kernel(), member.metric().form());
            assert!(
                off < 1e-6 * (c * weight[row]).max(1.0),
                "{what}, {kernel} {form}, C = {c}, row {row}: {} where {expected} is right",
                beta[row]
            );
        }
        assert!(beta.iter().sum::<f64>().abs() < 1e-7 * c.max(1.0), "{what}");
    }
}
