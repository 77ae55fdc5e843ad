//! A machine whose width and C the caller has chosen: no learning, LIBSVM's own way of working.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::metric::{Form, Metric};
use crate::model::{Method, Model, Report};
use crate::params::{COST_RANGE, ClassWeight, Params};
use crate::train::Prepared;
use crate::watch::Watch;

impl Model {
    /// Trains with the kernel exp(-gamma |x - z|^2) on the features as they are, not standardised, and a
    /// given C: a diagonal metric that undoes the scaling.
    ///
    /// ```
    /// use svml::{Generator, Model, params::ClassWeight};
    ///
    /// let data = Generator { rows: 100, ..Default::default() }.generate()?.data;
    /// let model = Model::fit_given(&data, 0.1, 1.0, &ClassWeight::None)?;
    /// assert_eq!(model.cost(), 1.0);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit_given(
        data: &Dataset,
        gamma: f64,
        cost: f64,
        class_weight: &ClassWeight,
    ) -> Result<Self> {
        let (low, high) = COST_RANGE;
        for (name, value, range) in [("gamma", gamma, 1e-100..=1e100), ("cost", cost, low..=high)] {
            if !range.contains(&value) {
                return Err(Error::Parameter {
                    name,
                    value: value.to_string(),
                    bound: format!("between {:e} and {:e}", range.start(), range.end()),
                });
            }
        }
        let Params { seed, memory_limit, .. } = Params::default();
        let prepared = Prepared::new(data, class_weight, seed)?;
        prepared.check_memory(1, 1, memory_limit)?;
        let values = prepared.scaler.scale.iter().map(|scale| gamma.sqrt() * scale).collect();
        let metric = Metric::new(Form::Diagonal, data.columns(), values)?;
        let trained = prepared.train(&metric, cost, None, &Watch::default())?;
        let report = Report {
            method: Method::Given { gamma, class_weight: class_weight.clone() },
            rows: data.rows(),
            trace: Vec::new(),
            best: 0,
            stop: None,
            refitted: true,
            residual: trained.residual,
            warnings: prepared.warnings(data),
        };
        Ok(Self::assemble(prepared, data, metric, cost, trained, report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;
    use crate::linalg::Matrix;

    /// The decision values must be those of the kernel on raw features, whatever their units.
    #[test]
    fn the_kernel_is_on_the_features_as_they_are() {
        let generated = Generator { rows: 80, ..Default::default() }.generate().unwrap().data;
        let unit = |k: usize| 10.0_f64.powi(k as i32 % 3);
        let x = Matrix::from_fn(80, 10, |i, k| unit(k) * generated.x()[(i, k)] + 3.0);
        let data = Dataset::new(x, generated.y()).unwrap();
        let gamma = 0.02;
        let model = Model::fit_given(&data, gamma, 2.0, &ClassWeight::None).unwrap();
        let h = model.decision(data.x()).unwrap();
        for row in 0..80 {
            let kernel = |j: usize| {
                let (a, b) = (data.x().row(row), model.support_vectors().row(j));
                let sq_dist: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                (-gamma * sq_dist).exp()
            };
            let sum: f64 =
                (0..model.support_rows().len()).map(|j| model.beta()[(0, j)] * kernel(j)).sum();
            assert!((sum + model.bias()[0] - h[(row, 0)]).abs() < 1e-12);
        }
        let bytes = model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap(), model);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let data = Generator { rows: 20, ..Default::default() }.generate().unwrap().data;
        for (gamma, cost) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, 1e9)] {
            assert!(Model::fit_given(&data, gamma, cost, &ClassWeight::None).is_err());
        }
    }
}
