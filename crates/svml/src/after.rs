//! A machine after another learner: the metric of one of the [`Rival`]s, then the width and C of an RBF
//! machine in the mapped space from a cross-validated grid. Section 3.4 of the paper. Or the metric alone, for
//! whatever else follows.

use crate::data::Dataset;
use crate::error::Result;
use crate::learn::{Control, Learner, Rival, Sample};
use crate::linalg::Matrix;
use crate::metric::Metric;
use crate::model::{Method, Model, Report, check_grid};
use crate::params::ClassWeight;
use crate::select::{self, Grid};
use crate::train::{Prepared, Trained};
use crate::watch::Watch;

impl Model {
    /// Learns a metric by one of the methods that the paper compares with, then chooses width and C by
    /// cross-validation on a grid in the mapped space.
    ///
    /// Mapped rows are scaled so that the mean square of their distance from their mean is r, the number of
    /// rows of L, as it is d for standardised rows: the widths of the grid are relative to r as those of
    /// the Euclidean machine are to d, whatever the size of L. The metric of the model is L times that
    /// scale over sigma.
    ///
    /// ```
    /// use svml::learn::Nca;
    /// use svml::{Generator, Grid, Model};
    ///
    /// let train = Generator { rows: 200, ..Generator::default() }.generate()?.data;
    /// let model = Model::fit_after(&train, Nca::default(), &Grid::default())?;
    /// assert!(model.error(&train)? < 0.1);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit_after(data: &Dataset, learner: impl Into<Rival>, grid: &Grid) -> Result<Self> {
        Self::fit_after_with(data, &learner.into(), grid, &mut Control::default())
    }

    /// As [`Model::fit_after`], watched from outside: see [`Control::progress`]. The metric gets half of
    /// the time limit; an interrupt, or the end of the time, before there is a machine is an error.
    pub fn fit_after_with(
        data: &Dataset,
        learner: &Rival,
        grid: &Grid,
        control: &mut Control<'_>,
    ) -> Result<Self> {
        let watch = control.watch();
        let half = Watch::new(control.interrupt.clone(), control.time_limit.map(|limit| limit / 2));
        let prepared = Prepared::new(data, &grid.class_weight, grid.seed)?;
        learner.validate(data.columns())?;
        check_grid(&prepared, data, grid)?;
        let sample = prepared.sample();
        let outcome = learner.learn(&sample, control, &half)?;
        let mut z = outcome.metric.transform(sample.x);
        let scale = unit_scale(&z, sample.weight);
        z.as_mut_slice().iter_mut().for_each(|z| *z *= scale);
        let selected = select::grid_search(&Sample { x: &z, ..sample }, grid, &watch)?;
        let inverse_width = selected.metric.values().first().copied().unwrap_or(1.0);
        let values = outcome.metric.values().iter().map(|l| l * scale * inverse_width).collect();
        let metric = Metric::new(outcome.metric.form(), outcome.metric.features(), values)?;
        let trained = prepared.train(&metric, selected.cost, None, &watch)?;
        let method = Method::After { learner: learner.clone(), grid: grid.clone() };
        let report = Report {
            learning: outcome.trace,
            stop: Some(outcome.stop),
            ..Report::without_steps(method, data, &prepared, &trained)
        };
        Ok(Self::assemble(prepared, data, metric, selected.cost, trained, report))
    }

    /// Learns a metric by one of the methods that the paper compares with and nothing else: a model that maps
    /// rows, for nearest neighbours, say, and cannot classify.
    ///
    /// ```
    /// use svml::learn::Nca;
    /// use svml::{Generator, Model};
    ///
    /// let train = Generator { rows: 200, ..Generator::default() }.generate()?.data;
    /// let model = Model::fit_metric(&train, Nca { rank: Some(2), ..Nca::default() })?;
    /// assert_eq!(model.transform(train.x())?.cols(), 2);
    /// assert!(model.predict(train.x()).is_err());
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit_metric(data: &Dataset, learner: impl Into<Rival>) -> Result<Self> {
        Self::fit_metric_with(data, &learner.into(), &mut Control::default())
    }

    /// As [`Model::fit_metric`], watched and ended from outside: see [`Control::progress`]. What is best so
    /// far is returned once there is something.
    pub fn fit_metric_with(
        data: &Dataset,
        learner: &Rival,
        control: &mut Control<'_>,
    ) -> Result<Self> {
        let watch = control.watch();
        let prepared = Prepared::new(data, &ClassWeight::None, 0)?;
        learner.validate(data.columns())?;
        let outcome = learner.learn(&prepared.sample(), control, &watch)?;
        let none = Trained { machines: Vec::new(), residual: 0.0, temperature: 1.0 };
        let report = Report {
            learning: outcome.trace,
            stop: Some(outcome.stop),
            ..Report::without_steps(Method::Metric(learner.clone()), data, &prepared, &none)
        };
        let model = Self::assemble(prepared, data, outcome.metric, 1.0, none, report);
        Ok(Self { temperature: None, ..model })
    }
}

/// The factor that makes the weighted mean of `|z - mean|^2` the number of columns of z; 1 if all rows
/// are the same.
fn unit_scale(z: &Matrix, weight: &[f64]) -> f64 {
    let total: f64 = weight.iter().sum();
    let mean = |column: &mut dyn Iterator<Item = f64>| {
        column.zip(weight).map(|(v, w)| v * (w / total)).sum::<f64>()
    };
    let variance: f64 = (0..z.cols())
        .map(|k| {
            let center = mean(&mut z.col(k));
            mean(&mut z.col(k).map(|v| (v - center).powi(2)))
        })
        .sum();
    let scale = (z.cols() as f64 / variance).sqrt();
    if scale.is_finite() { scale } else { 1.0 }
}
