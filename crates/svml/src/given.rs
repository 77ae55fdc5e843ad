//! A machine whose width, and perhaps C, the caller has chosen: LIBSVM's own way of working.

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::learn::Sample;
use crate::metric::{Form, Metric};
use crate::model::{Method, Model, Report};
use crate::params::{COST_RANGE, ClassWeight};
use crate::select::{Grid, grid_search};
use crate::train::Prepared;
use crate::watch::Watch;

impl Model {
    /// Trains with the kernel exp(-gamma |x - z|^2) on the features as they are, not standardised: a
    /// diagonal metric that undoes the scaling. C is as given, or chosen among the costs of the default
    /// [`Grid`] by its folds.
    ///
    /// ```
    /// use svml::{Generator, Model, params::ClassWeight};
    ///
    /// let data = Generator { rows: 100, ..Default::default() }.generate()?.data;
    /// let model = Model::fit_given(&data, 0.1, Some(1.0), &ClassWeight::None)?;
    /// assert_eq!(model.cost(), 1.0);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit_given(
        data: &Dataset,
        gamma: f64,
        cost: Option<f64>,
        class_weight: &ClassWeight,
    ) -> Result<Self> {
        let (low, high) = COST_RANGE;
        let any = cost.unwrap_or(1.0);
        for (name, value, range) in [("gamma", gamma, 1e-100..=1e100), ("cost", any, low..=high)] {
            if !range.contains(&value) {
                return Err(Error::Parameter {
                    name,
                    value: value.to_string(),
                    bound: format!("between {:e} and {:e}", range.start(), range.end()),
                });
            }
        }
        // In the mapped space the kernel is exp(-|z - z'|^2), so a single width of 1: sigma^2 = d/d.
        let grid = Grid { widths: vec![(data.columns() as f64).recip()], ..Grid::default() };
        let prepared = Prepared::new(data, class_weight, grid.seed)?;
        prepared.check_memory(grid.folds, 1, grid.memory_limit)?;
        let values = prepared.scaler.scale.iter().map(|scale| gamma.sqrt() * scale).collect();
        let metric = Metric::new(Form::Diagonal, data.columns(), values)?;
        let watch = Watch::default();
        let cost = match cost {
            Some(cost) => cost,
            None => {
                let z = metric.transform(&prepared.x);
                let mapped = Sample { x: &z, ..prepared.sample() };
                grid_search(&mapped, &grid, &watch)?.cost
            }
        };
        let trained = prepared.train(&metric, cost, None, &watch)?;
        let method = Method::Given { gamma, class_weight: class_weight.clone() };
        let report = Report::without_steps(method, data, &prepared, &trained);
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
        let model = Model::fit_given(&data, gamma, Some(2.0), &ClassWeight::None).unwrap();
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

    /// On standardised columns a gamma of 1/d is the grid's width of one, so the C must be the grid's too.
    #[test]
    fn c_is_chosen_as_the_grid_would() {
        let generated = Generator { rows: 120, ..Default::default() }.generate().unwrap().data;
        let scaler = crate::data::Scaler::fit(
            generated.x(),
            &[1.0; 120],
            &generated.schema().encoded_kinds(),
        );
        let data = Dataset::new(scaler.apply(generated.x()), generated.y()).unwrap();
        let grid = Grid { widths: vec![1.0], ..Grid::default() };
        let expected = Model::fit_euclidean(&data, &grid).unwrap();
        let model = Model::fit_given(&data, 0.1, None, &ClassWeight::None).unwrap();
        assert_eq!(model.cost(), expected.cost());
        let (a, b) = (model.decision(data.x()).unwrap(), expected.decision(data.x()).unwrap());
        assert!(a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let data = Generator { rows: 20, ..Default::default() }.generate().unwrap().data;
        for (gamma, cost) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, 1e9)] {
            assert!(Model::fit_given(&data, gamma, Some(cost), &ClassWeight::None).is_err());
        }
    }
}
