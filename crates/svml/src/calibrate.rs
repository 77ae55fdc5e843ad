//! Probabilities from decision values, by temperature scaling.
//!
//! p = softmax(d / temperature), where d are the decision values of the classes. Two classes have a
//! single decision value h, and then d = (0, h). The temperature is positive, so the most probable class
//! is always the predicted one. It is fitted by maximum likelihood to rows that the SVMs were not
//! trained on.
//!
//! Weights of classes shift all of this: rows of a class of weight w count as w rows, in the SVMs as in the fit of the
//! temperature, so that softmax(d / temperature) are the probabilities in a world with so many more of them. Divided by
//! the weights, and scaled to add up to one, they are those of the training rows again; the decision is not changed, and
//! so the most probable class may be another than the predicted one.

use crate::linalg::Matrix;
use crate::multiclass::decide;

/// Lowest and highest temperature. At the lowest, probabilities are nearly 0 or 1; at the highest, they
/// are nearly equal.
const TEMPERATURES: (f64, f64) = (1e-3, LEAST_CERTAIN);
/// The temperature of those who know nothing.
pub const LEAST_CERTAIN: f64 = 1e3;

/// The temperature of maximum likelihood, given the decision values, classes and weights of some rows.
pub fn temperature(values: &Matrix, class: &[usize], weight: &[f64]) -> f64 {
    let total: f64 = weight.iter().sum();
    // The targets are smoothed as if one more row had been classified correctly and one wrongly: a few
    // rows that are all classified correctly must not make the classifier certain.
    let slack = 1.0 / (total + 2.0);
    // The negative log-likelihood is convex in t = 1/temperature: its slope has one zero.
    let slope_and_curvature = |t: f64| {
        let (mut slope, mut curvature) = (0.0, 0.0);
        for ((row, &class), &w) in values.iter_rows().zip(class).zip(weight) {
            let d = logits(row);
            let p = softmax(&d, t);
            let others = slack / (d.len() - 1).max(1) as f64;
            let (mut mean, mut square, mut target) = (0.0, 0.0, 0.0);
            for (k, (&d, &p)) in d.iter().zip(&p).enumerate() {
                mean += p * d;
                square += p * d * d;
                target += d * if k == class { 1.0 - slack } else { others };
            }
            slope += w * (mean - target);
            curvature += w * (square - mean * mean).max(0.0);
        }
        (slope, curvature)
    };
    let (mut low, mut high) = (1.0 / TEMPERATURES.1, 1.0 / TEMPERATURES.0);
    let mut t = 1.0f64;
    for _ in 0..100 {
        let (slope, curvature) = slope_and_curvature(t);
        // If the slope is 0 for every t (no rows, or equal decision values), this moves towards the
        // smallest t, which gives the least certain probabilities.
        if slope >= 0.0 {
            high = t;
        } else {
            low = t;
        }
        let newton = t - slope / curvature;
        // Where the Newton step leaves the bracket or is not a number, the bracket is bisected on a
        // logarithmic scale.
        let next = if newton > low && newton < high { newton } else { (low * high).sqrt() };
        if (next - t).abs() <= 1e-12 * t {
            break;
        }
        t = next;
    }
    1.0 / t
}

/// Probabilities of all classes for each row of decision values. The class of the largest probability,
/// the first if several are equal, is the predicted class; unless the classes had weights, which are taken out
/// again. // (rows, classes)
pub fn probabilities(values: &Matrix, temperature: f64, class_weights: Option<&[f64]>) -> Matrix {
    let classes = if values.cols() == 1 { 2 } else { values.cols() };
    let mut out = Matrix::zeros(values.rows(), classes);
    for (i, predicted) in decide(values).into_iter().enumerate() {
        let out = out.row_mut(i);
        if let Some(weights) = class_weights {
            // On the logarithmic scale, where a class that is most improbable is not lost before it is weighed.
            let d = logits(values.row(i));
            // The largest is zero, so that no quotient but those that do not count can overflow.
            let top = d.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let scaled: Vec<f64> =
                d.iter().zip(weights).map(|(d, w)| (d - top) / temperature - w.ln()).collect();
            out.copy_from_slice(&softmax(&scaled, 1.0));
            continue;
        }
        let p = softmax(&logits(values.row(i)), 1.0 / temperature);
        out.copy_from_slice(&p);
        // Different decision values may round to the same probability. The predicted class then gets the
        // next larger number, so that it is still the most probable one.
        let top = p.iter().copied().fold(0.0, f64::max);
        if p.iter().position(|p| *p == top) != Some(predicted) {
            out[predicted] = top.next_up();
        }
    }
    out
}

fn logits(row: &[f64]) -> Vec<f64> {
    if let [h] = row { vec![0.0, *h] } else { row.to_vec() }
}

fn softmax(d: &[f64], t: f64) -> Vec<f64> {
    let top = d.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut p: Vec<f64> = d.iter().map(|d| ((d - top) * t).exp()).collect();
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= sum);
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> Matrix {
        Matrix::new(values.len(), 1, values.to_vec()).unwrap()
    }

    /// A file may hold any finite temperature and weights.
    #[test]
    fn probabilities_are_numbers_at_any_temperature() {
        for temperature in [f64::MIN_POSITIVE, 1e-200, 1.0, 1e200, f64::MAX] {
            for weights in [None, Some(&[1e-300, 1e300][..])] {
                let h = column(&[0.0, 1.0, -1.0, 1e300, -1e300, f64::MAX]);
                let p = probabilities(&h, temperature, weights);
                let fits = |p: &f64| (0.0..=1.0 + 1e-12).contains(p);
                assert!(p.as_slice().iter().all(fits), "{temperature:e}: {p:?}");
            }
        }
    }

    /// The loss of smoothed targets is flat there, with several classes and weights too.
    #[test]
    fn the_temperature_is_that_of_maximum_likelihood() {
        let values = Matrix::from_fn(60, 3, |i, k| {
            ((i * (2 * k + 3)) % 13) as f64 / 6.0 - 1.0 + if i % 3 == k { 1.0 } else { 0.0 }
        });
        let class: Vec<usize> = (0..60).map(|i| (i + usize::from(i % 5 == 0)) % 3).collect();
        let weight: Vec<f64> = (0..60).map(|i| 0.5 + (i % 4) as f64).collect();
        let slack = 1.0 / (weight.iter().sum::<f64>() + 2.0);
        let loss = |temperature: f64| -> f64 {
            let row = |i: usize| {
                let p = softmax(&logits(values.row(i)), 1.0 / temperature);
                let target = |k: usize| if k == class[i] { 1.0 - slack } else { slack / 2.0 };
                -weight[i] * (0..3).map(|k| target(k) * p[k].ln()).sum::<f64>()
            };
            (0..60).map(row).sum()
        };
        let best = temperature(&values, &class, &weight);
        assert!(best > 2.0 * TEMPERATURES.0 && best < TEMPERATURES.1 / 2.0, "{best}");
        let slope = (loss(best * 1.0001) - loss(best / 1.0001)) / 2e-4;
        assert!(slope.abs() < 1e-5 * loss(best), "{best}: {slope}");
    }

    /// 400 rows at h = +-0.5, of which one in five is misclassified: p(right) = 0.8, so the temperature
    /// is 0.5 / ln 4, except for the smoothing of the targets by 1/402.
    #[test]
    fn finds_a_temperature_that_is_known() {
        let h: Vec<f64> = (0..400).map(|i| if i % 2 == 0 { 0.5 } else { -0.5 }).collect();
        let class: Vec<usize> =
            (0..400).map(|i| usize::from((i % 2 == 0) != (i % 10 < 2))).collect();
        let right: f64 = (1.0 - 1.0 / 402.0) * 0.8 + 0.2 / 402.0;
        let expected = 0.5 / (right / (1.0 - right)).ln();
        let found = temperature(&column(&h), &class, &[1.0; 400]);
        assert!((found - expected).abs() < 1e-9, "{found} where {expected} is right");
        // The same rows with a third class, whose decision values are far below the others.
        let d = Matrix::from_fn(400, 3, |i, k| match k {
            0 => 0.0,
            1 => h[i],
            _ => -1e6,
        });
        let three = temperature(&d, &class, &[1.0; 400]);
        assert!(three.is_finite() && three > 0.0);
    }

    #[test]
    fn a_weight_counts_as_repetition() {
        let once =
            temperature(&column(&[0.9, -0.3, 0.4, -1.0]), &[1, 1, 1, 0], &[1.0, 2.0, 1.0, 3.0]);
        let h = [0.9, -0.3, -0.3, 0.4, -1.0, -1.0, -1.0];
        let twice = temperature(&column(&h), &[1, 1, 1, 1, 0, 0, 0], &[1.0; 7]);
        assert!((once - twice).abs() < 1e-12 * once);
    }

    #[test]
    fn useless_or_perfect_values_stay_finite() {
        let all_wrong = temperature(&column(&[1.0, -1.0]), &[0, 1], &[1.0; 2]);
        assert!((all_wrong - TEMPERATURES.1).abs() < 1e-6, "{all_wrong}");
        let all_right = temperature(&column(&[1.0, -1.0]), &[1, 0], &[1.0; 2]);
        assert!(all_right > 0.1 && all_right < 10.0, "{all_right}");
        // Without information the probabilities are the least certain ones.
        for nothing in [
            temperature(&column(&[0.0; 3]), &[0, 1, 1], &[1.0; 3]),
            temperature(&column(&[]), &[], &[]),
        ] {
            assert!((nothing - TEMPERATURES.1).abs() < 1e-6, "{nothing}");
        }
    }

    /// If rows of the second class count four times, p / 4 to 1 - p are the odds without that. Where nothing is known,
    /// what is left are the shares of the classes.
    #[test]
    fn weights_of_classes_are_taken_out_again() {
        let values = column(&[0.3, -2.0, 0.0, 900.0, -900.0]);
        let weighted = probabilities(&values, 0.7, None);
        let p = probabilities(&values, 0.7, Some(&[0.5, 2.0]));
        for (with, without) in weighted.iter_rows().zip(p.iter_rows()) {
            let odds = with[1] / 4.0 / (with[0] + with[1] / 4.0);
            assert!((without[1] - odds).abs() < 1e-15);
            assert!((without[0] + without[1] - 1.0).abs() < 1e-15);
        }
        let three = Matrix::from_rows(&[[1.0, 1.0 + 1e-9, 1.0]]).unwrap();
        let p = probabilities(&three, LEAST_CERTAIN, Some(&[1.0, 2.0, 5.0]));
        for (p, w) in p.row(0).iter().zip([1.0, 2.0, 5.0]) {
            assert!((p - (1.0 / w) / 1.7).abs() < 1e-9);
        }
    }

    #[test]
    fn rounding_does_not_move_the_most_probable_class() {
        let values = column(&[1e-300, -1e-300, 0.0, 5e3, -5e3]);
        let p = probabilities(&values, 0.7, None);
        for (row, class) in p.iter_rows().zip(decide(&values)) {
            assert_eq!(usize::from(row[1] > row[0]), class);
            assert!((row[0] + row[1] - 1.0).abs() < 1e-15);
        }
        let close = Matrix::from_rows(&[[2.0, 2.0 + 4.5e-16, 0.0]]).unwrap();
        let p = probabilities(&close, 900.0, None);
        assert_eq!(decide(&p), decide(&close));
    }
}
