//! A trained classifier: how columns are treated, the metric, the machine, and how it came about.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::calibrate;
use crate::criterion::Criterion;
use crate::data::{Dataset, Missing, Scaler, Schema};
use crate::error::{Error, Result};
use crate::learn::auto::{self, Candidate};
use crate::learn::svml::Learned;
use crate::learn::{Control, Progress, Rival, Step};
use crate::linalg::Matrix;
use crate::metric::{Form, Metric};
use crate::model_file;
use crate::multiclass::{Ensemble, decide, vote};
use crate::optimise::Stop;
use crate::params::{ClassWeight, FormChoice, Params};
use crate::select::{self, Grid};
use crate::train::{Prepared, Trained};

/// How a model was obtained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
    /// Support vector metric learning.
    Svml(Params),
    /// Euclidean metric, width and C from a cross-validated grid.
    Euclidean(Grid),
    /// The kernel exp(-gamma |x - z|^2) on unscaled features, with a given C.
    Given {
        /// gamma.
        gamma: f64,
        /// Weights of the classes.
        class_weight: ClassWeight,
    },
    /// The metric of another learner, width and C from a cross-validated grid in the mapped space.
    After {
        /// The learner.
        learner: Rival,
        /// The grid.
        grid: Grid,
    },
    /// The metric of another learner alone, without a machine.
    Metric(Rival),
}

/// How the fit went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The method with its parameters.
    pub method: Method,
    /// Rows of the training data.
    pub rows: usize,
    /// Every accepted step; empty if nothing was learned step by step.
    pub trace: Vec<Step>,
    /// What the form was chosen from; empty if it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// The steps of another learner than SVML.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learning: Vec<Progress>,
    /// The iteration of the trace that was kept.
    pub best: usize,
    /// Why learning ended.
    pub stop: Option<Stop>,
    /// Whether the machines were trained on all rows, or only on the training part.
    pub refitted: bool,
    /// Worst violation of the optimality conditions of any machine, in units of the margin.
    pub residual: f64,
    /// What the user should know about the data or the fit.
    pub warnings: Vec<String>,
}

/// The steps in which one form of the metric was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stage {
    /// The form, where it is on record.
    pub form: Option<Form>,
    /// The first step, where the form starts.
    pub first: usize,
    /// The last step.
    pub last: usize,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Some(form) => form.fmt(f),
            None => f.write_str("a form"),
        }
    }
}

impl Report {
    /// Of machines that were trained on all rows with nothing learned step by step.
    pub(crate) fn without_steps(
        method: Method,
        data: &Dataset,
        prepared: &Prepared,
        trained: &Trained,
    ) -> Self {
        Self {
            method,
            rows: data.rows(),
            trace: Vec::new(),
            candidates: Vec::new(),
            learning: Vec::new(),
            best: 0,
            stop: None,
            refitted: true,
            residual: trained.residual,
            warnings: prepared.warnings(data),
        }
    }

    /// The forms that were learned one after the other, with their steps of the trace: one if the form
    /// was given.
    pub fn stages(&self) -> Vec<Stage> {
        let Method::Svml(params) = &self.method else {
            return Vec::new();
        };
        let mut stages: Vec<Stage> = Vec::new();
        for (k, step) in self.trace.iter().enumerate() {
            match stages.last_mut() {
                Some(stage) if step.step > 0.0 => stage.last = k,
                _ => {
                    let form = match params.form {
                        FormChoice::Fixed(form) => Some(form),
                        FormChoice::Auto => step.form,
                    };
                    stages.push(Stage { form, first: k, last: k });
                }
            }
        }
        stages
    }
}

/// A trained classifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub(crate) schema: Schema,
    pub(crate) classes: Vec<String>,
    pub(crate) scaler: Scaler,
    pub(crate) metric: Metric,
    pub(crate) cost: f64,
    /// The machines; support rows are rows of the training data.
    pub(crate) ensemble: Ensemble,
    /// The support rows, encoded, with missing values filled, not scaled. // (|S|, d)
    pub(crate) support: Matrix,
    pub(crate) temperature: Option<f64>,
    pub(crate) report: Report,
    /// The support rows mapped by the metric. // (|S|, rank)
    pub(crate) mapped: Matrix,
}

impl Model {
    /// Learns metric, C and machine.
    ///
    /// ```
    /// use svml::{Generator, Model, Params};
    ///
    /// let data = Generator::default().generate()?.data;
    /// let model = Model::fit(&data, &Params::default())?;
    /// let predicted = model.predict(data.x())?;
    /// assert_eq!(predicted.len(), data.rows());
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit(data: &Dataset, params: &Params) -> Result<Self> {
        Self::fit_with(data, params, &mut Control::default())
    }

    /// As [`Model::fit`], watched and ended from outside: see [`Control`]. A fit that is ended
    /// early returns the best so far.
    pub fn fit_with(data: &Dataset, params: &Params, control: &mut Control<'_>) -> Result<Self> {
        let watch = control.watch();
        let prepared = Prepared::new(data, &params.class_weight, params.seed)?;
        params.validate(data.columns())?;
        let (machines, matrices) = match params.criterion {
            Criterion::HoldOut => (1, 1),
            Criterion::KFold(k) => (k, 1),
            // The factor, a fresh one where the first has a border, columns of the inverse, the inverse.
            Criterion::LeaveOneOut => (1, 4),
        };
        prepared.check_memory(machines, matrices, params.memory_limit)?;
        let mut warnings = prepared.warnings(data);
        if !prepared.has_distinct_rows() {
            // Every class is a single row, perhaps many times over.
            if prepared.largest_class < 2.0 {
                return Err(Error::TooFewRows {
                    class: prepared.classes[0].clone(),
                    rows: 1,
                    needed: 2,
                    purpose: "splitting into a training and a validation part",
                });
            }
            warnings.push(
                "no class has two distinct rows to learn from: the metric and C mean little"
                    .to_owned(),
            );
        }
        let sample = prepared.sample();
        let (learned, candidates) = auto::learn(&sample, params, control, &watch)?;
        let Learned { metric, cost, machines, unseen, left_out, residual, trace, best, stop } =
            learned;
        // Machines that are validated by leave-one-out are on all rows already.
        let on_all = match params.refit && stop != Stop::Interrupted && left_out.is_empty() {
            true => match prepared.train(&metric, cost, Some(&machines), &watch) {
                Ok(trained) => Some(trained),
                Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => None,
                Err(error) => return Err(error),
            },
            false => None,
        };
        let refitted = on_all.is_some() || !left_out.is_empty();
        if params.refit && !refitted {
            let cause = match stop {
                Stop::Interrupted | Stop::TimeLimit => "ended before the machine could be",
                _ => "time or the precision of the kernel matrix did not allow the machine to be",
            };
            warnings.push(format!("{cause} trained on all rows: it was trained on a part of them"));
        }
        let trained = match on_all {
            Some(trained) => trained,
            None if refitted => prepared.left_out(&metric, machines, residual, &left_out),
            None => prepared.unseen(&metric, machines, residual, &unseen),
        };
        let report = Report {
            method: Method::Svml(params.clone()),
            rows: data.rows(),
            trace,
            candidates,
            learning: Vec::new(),
            best,
            stop: Some(stop),
            refitted,
            residual: trained.residual,
            warnings,
        };
        Ok(Self::assemble(prepared, data, metric, cost, trained, report))
    }

    /// The usual alternative: Euclidean metric, width and C chosen by cross-validation on a grid.
    pub fn fit_euclidean(data: &Dataset, grid: &Grid) -> Result<Self> {
        Self::fit_euclidean_with(data, grid, &mut Control::default())
    }

    /// As [`Model::fit_euclidean`], ended from outside: an interrupt, or the end of the time limit, is
    /// [`Error::Interrupted`], as nothing is known before the whole grid is. There are no steps to
    /// observe.
    pub fn fit_euclidean_with(
        data: &Dataset,
        grid: &Grid,
        control: &mut Control<'_>,
    ) -> Result<Self> {
        let watch = control.watch();
        let prepared = Prepared::new(data, &grid.class_weight, grid.seed)?;
        check_grid(&prepared, data, grid)?;
        let selected = select::grid_search(&prepared.sample(), grid, &watch)?;
        let (metric, cost) = (selected.metric, selected.cost);
        let trained = prepared.train(&metric, cost, None, &watch)?;
        let method = Method::Euclidean(grid.clone());
        let report = Report::without_steps(method, data, &prepared, &trained);
        Ok(Self::assemble(prepared, data, metric, cost, trained, report))
    }

    pub(crate) fn assemble(
        prepared: Prepared,
        data: &Dataset,
        metric: Metric,
        cost: f64,
        trained: Trained,
        report: Report,
    ) -> Self {
        let mut ensemble = prepared.ensemble(&trained.machines);
        ensemble.support.iter_mut().for_each(|row| *row = prepared.origin[*row]);
        let mut support = data.x().select_rows(&ensemble.support);
        for i in 0..support.rows() {
            for (v, fill) in support.row_mut(i).iter_mut().zip(&prepared.scaler.fill) {
                *v = if v.is_nan() { *fill } else { *v };
            }
        }
        let mapped = metric.transform(&prepared.scaler.apply(&support));
        Self {
            schema: data.schema().clone(),
            classes: prepared.classes,
            scaler: prepared.scaler,
            metric,
            cost,
            ensemble,
            support,
            temperature: Some(trained.temperature),
            report,
            mapped,
        }
    }

    /// Decision values for each row of encoded features. Two classes have one, h(x) of equation (1)
    /// before the sign: positive means the second of [`Model::classes`]. // (n, 1)
    ///
    /// More classes have one each, of which the largest decides: see [`vote`]. // (n, classes)
    pub fn decision(&self, x: &Matrix) -> Result<Matrix> {
        self.check_machine()?;
        let outputs = self.ensemble.outputs(&self.transform(x)?, &self.mapped);
        Ok(vote(&outputs, self.classes.len()))
    }

    /// The class of each row, as an index into [`Model::classes`].
    pub fn predict(&self, x: &Matrix) -> Result<Vec<usize>> {
        Ok(decide(&self.decision(x)?))
    }

    /// Probabilities of the classes for each row. The most probable is always the predicted one.
    /// // (n, classes)
    ///
    /// A model written before probabilities were introduced has none, which is an error.
    pub fn probabilities(&self, x: &Matrix) -> Result<Matrix> {
        self.check_machine()?;
        let temperature = self.temperature.ok_or_else(|| {
            Error::ModelFile("it was written without probabilities; train it again".to_owned())
        })?;
        Ok(calibrate::probabilities(&self.decision(x)?, temperature))
    }

    /// The rows standardised and mapped by L. // (n, rank)
    pub fn transform(&self, x: &Matrix) -> Result<Matrix> {
        self.check(x)?;
        Ok(self.metric.transform(&self.scaler.apply(x)))
    }

    /// Share of rows of `data` that are misclassified, by weight. Classes are compared by name; a
    /// class that the model does not know counts as misclassified.
    pub fn error(&self, data: &Dataset) -> Result<f64> {
        let predicted = self.predict(data.x())?;
        let wrong: f64 = (predicted.iter().zip(data.y()).zip(data.weights()))
            .filter(|((p, y), _)| self.classes[**p] != data.classes()[**y])
            .map(|(_, weight)| weight)
            .sum();
        Ok(wrong / data.weights().iter().sum::<f64>().max(f64::MIN_POSITIVE))
    }

    /// Refuses a metric alone, which cannot classify: see [`Model::fit_metric`].
    pub fn check_machine(&self) -> Result<()> {
        if self.has_machine() { Ok(()) } else { Err(Error::NoMachine) }
    }

    /// Whether there is a machine, or a metric alone.
    pub fn has_machine(&self) -> bool {
        !self.ensemble.bias.is_empty()
    }

    fn check(&self, x: &Matrix) -> Result<()> {
        let names = || self.schema.encoded_names();
        if x.cols() != self.schema.width() {
            return Err(Error::Shape {
                what: "columns of the rows to predict".to_owned(),
                found: x.cols(),
                expected: self.schema.width(),
            });
        }
        for (i, row) in x.iter_rows().enumerate() {
            for (k, &value) in row.iter().enumerate() {
                if value.is_nan() && self.schema.missing() != Missing::Impute {
                    return Err(Error::Missing { row: i + 1, column: names()[k].clone() });
                }
                if value.abs() > crate::data::LIMIT {
                    return Err(Error::OutOfRange {
                        row: i + 1,
                        column: names()[k].clone(),
                        value,
                        limit: crate::data::LIMIT,
                    });
                }
            }
        }
        Ok(())
    }

    /// Writes the model to a file, atomically: a temporary file beside it is renamed at the end.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        model_file::save(self, path.as_ref())
    }

    /// Reads a model from a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        model_file::load(path.as_ref())
    }

    /// The model as the bytes of its file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        model_file::to_bytes(self)
    }

    /// A model from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        model_file::from_bytes(bytes)
    }

    /// How the columns of a table become features.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The classes, in the order of decision values and probabilities.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// How features are filled and standardised.
    pub fn scaler(&self) -> &Scaler {
        &self.scaler
    }

    /// The metric on standardised features.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// The metric as it acts: columns that were constant in training, and so are left out, weigh
    /// nothing in it.
    pub fn acting_metric(&self) -> Metric {
        let d = self.metric.features();
        let constant: Vec<usize> = self.scaler.constant().collect();
        let form = match self.metric.form() {
            _ if constant.is_empty() => return self.metric.clone(),
            Form::Sphere => Form::Diagonal,
            form => form,
        };
        let mut values = match self.metric.form() {
            Form::Sphere => vec![self.metric.values()[0]; d],
            _ => self.metric.values().to_vec(),
        };
        for row in values.chunks_exact_mut(d) {
            constant.iter().for_each(|&k| row[k] = 0.0);
        }
        Metric::new(form, d, values).unwrap_or_else(|_| self.metric.clone())
    }

    /// The metric on features as they are: A = L diag(1/scale), so that z = A (x - mean). Columns that
    /// were constant in training weigh nothing. // (rank, features)
    pub fn components(&self) -> Matrix {
        let l = self.acting_metric().components();
        let scale = &self.scaler.scale;
        let unit = |k: usize| if scale[k] > 0.0 { scale[k] } else { 1.0 };
        Matrix::from_fn(l.rows(), l.cols(), |i, k| l[(i, k)] / unit(k))
    }

    /// C; 1 where there is no machine.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Rows of the training data that are support vectors, class after class. Of rows that were
    /// merged because they are identical it is the first.
    pub fn support_rows(&self) -> &[usize] {
        &self.ensemble.support
    }

    /// Number of support vectors of each class.
    pub fn support_counts(&self) -> &[usize] {
        &self.ensemble.counts
    }

    /// The support vectors as encoded features. // (|S|, features)
    pub fn support_vectors(&self) -> &Matrix {
        &self.support
    }

    /// beta_j = alpha_j y_j of the support vectors, as LIBSVM lays them out: for one of class c, in the
    /// machines of c with the other classes in order. // (classes - 1, |S|)
    pub fn beta(&self) -> &Matrix {
        &self.ensemble.beta
    }

    /// The offset b of each pair of classes: (0, 1), (0, 2), .., (1, 2), ..
    pub fn bias(&self) -> &[f64] {
        &self.ensemble.bias
    }

    /// The temperature of the probabilities.
    pub fn temperature(&self) -> Option<f64> {
        self.temperature
    }

    /// How the fit went.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// Refuses a grid that these rows or the memory limit do not allow.
pub(crate) fn check_grid(prepared: &Prepared, data: &Dataset, grid: &Grid) -> Result<()> {
    grid.validate()?;
    if grid.folds > data.rows().max(2) {
        return Err(Error::Parameter {
            name: "folds",
            value: grid.folds.to_string(),
            bound: format!("at most the number of rows, {}", data.rows()),
        });
    }
    prepared.check_memory(grid.folds, 1, grid.memory_limit)
}
