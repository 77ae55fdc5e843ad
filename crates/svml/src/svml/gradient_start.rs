//! A start for the metric: the gradient outer product of SVMs that were fitted with the metric so
//! far. Directions along which their outputs f do not change can be left out of the distance.
//!
//! ```text
//! G = sum_i w_i grad f(x_i) grad f(x_i)',    grad f(x) = -2 M sum_j beta_j k(x, x_j) (x - x_j)
//! ```
//!
//! M is set to G^(1/2), or to its diagonal, and only its scale and C are learned, twice over; for few
//! directions a third time, of which the leading eigenvectors are kept: the first G of few rows is too vague for that. No parameter per entry of L is fitted, so there is little to overfit. The
//! result is where L starts and what the regulariser holds it to.

use super::Svml;
use super::descent::{SvmlFit, descend};
use crate::data::{Sample, pairs};
use crate::error::{Error, Result};
use crate::kernel::{self, Gram};
use crate::learners::pca::with_fixed_signs;
use crate::linalg::{self, Block, Matrix};
use crate::metric::{Form, Metric};
use crate::run::{Run, Watch};
use crate::svm::BinarySvm;

/// Times that G is taken, and once more for few directions; later rounds change little.
const ROUNDS: usize = 2;
/// Steps for scale and C, which need few.
const SPHERE_ITERATIONS: usize = 20;
/// M is this power of G.
const POWER: f64 = 0.5;

/// A metric of the form asked for, with C and SVMs to it, to start [`descend`] from. An error if it is ended before there
/// are any directions.
pub fn start(sample: &Sample<'_>, form: Form, params: &Svml, run: &Run<'_>) -> Result<SvmlFit> {
    let mut shape = Metric::isotropic(Form::Sphere, sample.features(), 1.0)?;
    let low = matches!(form, Form::Rank(_));
    let rounds = ROUNDS + usize::from(low);
    let mut round = 0;
    loop {
        // Scale and C for this shape: a sphere in the space it maps to.
        let z = shape.transform(sample.x());
        let mapped = sample.mapped(&z);
        let sphere = Svml { max_iterations: SPHERE_ITERATIONS, ..params.clone() };
        let fit =
            descend(&mapped, Form::Sphere, &sphere, None, &mut Run::unobserved_by(run.watch()))?;
        if low && fit.stop.is_early() && shape.form() != form {
            return Err(Error::Interrupted);
        }
        if round == rounds || fit.stop.is_early() || form == Form::Sphere {
            let metric = in_form(&shape, form, fit.metric.values()[0])?;
            // These steps were not shown.
            return Ok(SvmlFit { metric, trace: Vec::new(), best: 0, ..fit });
        }
        let gram = kernel::backend().gram(&z, z.rows(), &fit.metric, params.kernel, run.watch())?;
        let next_form = if low && round + 1 < rounds { Form::Full } else { form };
        // Back to the features: z = L x, so the gradient in x is L' times that in z.
        let next = match form {
            // The diagonal of G is all that counts.
            Form::Diagonal => {
                let g = outer_squares(&*gram, &mapped, &fit.svms);
                let l = shape.relevance();
                diagonal_power(&g.iter().zip(l).map(|(g, l)| g * l).collect::<Vec<_>>())
            }
            _ => {
                let g = shape.around(outer_product(&*gram, &mapped, &fit.svms));
                power(&g, next_form, run.watch())?
            }
        };
        match next {
            Some(next) => shape = normalised(&next, sample)?,
            // The outputs are the same everywhere: nothing to go by.
            None => round = rounds - 1,
        }
        round += 1;
    }
}

/// G up to a factor, in the space of the kernel's rows, but for a factor M on either side. // (d, d)
pub(super) fn outer_product(gram: &dyn Gram, sample: &Sample<'_>, svms: &[BinarySvm]) -> Matrix {
    let d = sample.features();
    let mut g = Matrix::zeros(d, d);
    for_each_slopes(gram, sample, svms, |slopes| {
        linalg::add_product(&mut g, Block::from(slopes).t(), slopes.into());
    });
    g
}

/// The diagonal of the same, which does not need all of it.
fn outer_squares(gram: &dyn Gram, sample: &Sample<'_>, svms: &[BinarySvm]) -> Vec<f64> {
    let mut g = vec![0.0; sample.features()];
    for_each_slopes(gram, sample, svms, |slopes| {
        for row in slopes.iter_rows() {
            g.iter_mut().zip(row).for_each(|(sum, v)| *sum += v * v);
        }
    });
    g
}

/// Calls `each` with the slopes of each SVM at the rows of its classes, times the root of their weights. // (rows, d)
fn for_each_slopes(
    gram: &dyn Gram,
    sample: &Sample<'_>,
    svms: &[BinarySvm],
    mut each: impl FnMut(&Matrix),
) {
    let all = sample.all();
    for (svm, pair) in svms.iter().zip(pairs(sample.classes())) {
        let rows = all.of_pair(pair);
        let mut slopes = gram.weighted_differences(&rows.index, &svm.support, &svm.beta);
        for (i, weight) in rows.weight.iter().enumerate() {
            slopes.row_mut(i).iter_mut().for_each(|v| *v *= weight.sqrt());
        }
        each(&slopes);
    }
}

/// L with L'L = G^p for a G of which only the diagonal counts; `None` if it is zero.
fn diagonal_power(g: &[f64]) -> Option<Metric> {
    let values = g.iter().map(|g| g.max(0.0).powf(POWER / 2.0)).collect();
    let metric = Metric::new(Form::Diagonal, g.len(), values).ok()?;
    metric.relevance().iter().any(|m| *m > 0.0).then_some(metric)
}

/// L with L'L = G^p, full or of few rows; `None` if G is zero.
fn power(g: &Matrix, form: Form, watch: &Watch) -> Result<Option<Metric>> {
    let d = g.rows();
    let Some((values, vectors)) = linalg::symmetric_eigen_in_time(g, watch)? else {
        return Ok(None);
    };
    let scaled = Matrix::from_fn(form.rows(d), d, |i, k| {
        values[i].max(0.0).powf(POWER / 2.0) * vectors[(i, k)]
    });
    let values = match form {
        Form::Rank(_) => with_fixed_signs(scaled).into_vec(),
        // The symmetric root does not depend on the signs.
        _ => linalg::multiply(Block::from(&vectors).t(), (&scaled).into()).into_vec(),
    };
    let metric = Metric::new(form, d, values).ok();
    Ok(metric.filter(|metric| metric.relevance().iter().any(|m| *m > 0.0)))
}

/// The metric scaled so that mapped rows have the mean square that the rows themselves have.
fn normalised(metric: &Metric, sample: &Sample<'_>) -> Result<Metric> {
    let mean_square = |x: &Matrix| {
        let rows = x.iter_rows().zip(sample.weight());
        rows.map(|(x, w)| w * x.iter().map(|v| v * v).sum::<f64>()).sum::<f64>()
    };
    let (before, after) = (mean_square(sample.x()), mean_square(&metric.transform(sample.x())));
    metric.scaled(if after > 0.0 { (before / after).sqrt() } else { 1.0 })
}

/// `scale` times a metric, in the form asked for: the shape is of that form already, or nothing has shaped it.
fn in_form(shape: &Metric, form: Form, scale: f64) -> Result<Metric> {
    if shape.form() == form {
        return shape.scaled(scale);
    }
    Metric::isotropic(form, shape.features(), scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::expand;
    use crate::metric::Kernel;

    /// weighted_differences() is, up to -2 M, the gradient of the output.
    #[test]
    fn slopes_are_gradients() {
        let x = Matrix::from_fn(12, 3, |i, k| ((i * 5 + k * 7) % 11) as f64 * 0.2 - 1.0);
        let l = vec![0.8, 0.1, -0.2, 0.3, 0.6, 0.0];
        let metric = Metric::new(Form::Rank(2), 3, l).unwrap();
        let gram =
            kernel::backend().gram(&x, 12, &metric, Kernel::Gaussian, &Watch::default()).unwrap();
        let (rows, cols): (Vec<usize>, Vec<usize>) = (vec![1, 4, 11], vec![0, 2, 3, 7, 11]);
        let beta = [0.5, -1.0, 0.25, 0.75, -0.5];
        let slopes = gram.weighted_differences(&rows, &cols, &beta);
        let m = metric.mahalanobis();
        let support = metric.transform(&x.select_rows(&cols));
        let output = |x: &[f64]| {
            let z = metric.transform(&Matrix::from_rows(&[x]).unwrap());
            expand(Kernel::Gaussian, &z, &support, &Matrix::from_rows(&[beta]).unwrap())[(0, 0)]
        };
        for (i, &row) in rows.iter().enumerate() {
            for k in 0..3 {
                let moved = |by: f64| {
                    let mut x = x.row(row).to_vec();
                    x[k] += by;
                    output(&x)
                };
                let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                let gradient: f64 = (0..3).map(|j| -2.0 * m[(k, j)] * slopes[(i, j)]).sum();
                assert!((gradient - difference).abs() < 1e-8, "{gradient} {difference}");
            }
        }
    }

    #[test]
    fn a_power_of_g_in_every_form() {
        let g = Matrix::from_rows(&[[4.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]]).unwrap();
        let watch = Watch::default();
        // L'L = G^(1/2): its square is G.
        let m = power(&g, Form::Full, &watch).unwrap().unwrap().mahalanobis();
        let square = linalg::multiply((&m).into(), (&m).into());
        for (a, b) in square.as_slice().iter().zip(g.as_slice()) {
            assert!((a - b).abs() < 1e-12, "{square:?}");
        }
        let diagonal = diagonal_power(&[4.0, 3.0, 0.0]).unwrap().relevance();
        assert!((diagonal[0] - 2.0).abs() < 1e-14 && diagonal[2] == 0.0);
        let rank = power(&g, Form::Rank(1), &watch).unwrap().unwrap().components();
        assert!(rank[(0, 0)] > rank[(0, 1)] && rank[(0, 1)] > 0.0 && rank[(0, 2)].abs() < 1e-12);
        assert!(power(&Matrix::zeros(2, 2), Form::Full, &watch).unwrap().is_none());
        assert!(diagonal_power(&[0.0; 2]).is_none());
    }
}
