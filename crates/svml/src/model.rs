//! A trained classifier: how columns are treated, the metric, the machine, and how it came about.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::{Dataset, Missing, Scaler, Schema, halve_twice, hash_order};
use crate::error::{Error, Result};
use crate::kernel::{DenseGram, expand};
use crate::learn::svml::{self, Learned};
use crate::learn::{Control, Step};
use crate::linalg::Matrix;
use crate::metric::Metric;
use crate::model_file;
use crate::optimise::Stop;
use crate::params::Params;
use crate::select::{self, Grid};
use crate::svm::{self, Machine, Problem};
use crate::watch::Watch;

/// How a model was obtained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
    /// Support vector metric learning.
    Svml(Params),
    /// Euclidean metric, width and C from a cross-validated grid.
    Euclidean(Grid),
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
    /// The iteration of the trace that was kept.
    pub best: usize,
    /// Why learning ended.
    pub stop: Option<Stop>,
    /// Whether the machine was trained on all rows, or only on the training part.
    pub refitted: bool,
    /// Worst violation of the optimality conditions of the machine, in units of the margin.
    pub residual: f64,
    /// What the user should know about the data or the fit.
    pub warnings: Vec<String>,
}

/// A trained classifier of two classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub(crate) schema: Schema,
    pub(crate) classes: Vec<String>,
    pub(crate) scaler: Scaler,
    pub(crate) metric: Metric,
    pub(crate) cost: f64,
    /// Rows of the training data that are support vectors.
    pub(crate) support_rows: Vec<usize>,
    /// Those rows, encoded, with missing values filled, not scaled. // (|S|, d)
    pub(crate) support: Matrix,
    pub(crate) beta: Vec<f64>,
    pub(crate) bias: f64,
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
        let prepared = Prepared::new(data, params.seed)?;
        params.validate(data.columns())?;
        check_memory(data.rows(), 1, params.memory_limit)?;
        let split = halve_twice(&prepared.class);
        if split.valid.is_empty() {
            let counts = data.class_counts();
            let present = (0..counts.len()).filter(|&c| counts[c] > 0);
            let rarest = present.min_by_key(|&c| counts[c]).unwrap_or(0);
            return Err(Error::TooFewRows {
                class: data.classes()[rarest].clone(),
                rows: counts[rarest],
                needed: 2,
                purpose: "splitting into a training and a validation part",
            });
        }
        let learned = svml::learn(&prepared.x, &prepared.y, &split, params, control, &watch)?;
        let Learned { metric, cost, mut machine, mut residual, trace, best, stop } = learned;
        let mut warnings = Vec::new();
        let mut refitted = false;
        if params.refit && stop != Stop::Interrupted {
            match prepared.train(&metric, cost, Some(&machine), &watch) {
                Ok((on_all, violation)) => {
                    (machine, residual, refitted) = (on_all, violation, true);
                }
                Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if params.refit && !refitted {
            let cause = match stop {
                Stop::Interrupted | Stop::TimeLimit => "ended before the machine could be",
                _ => "time or the precision of the kernel matrix did not allow the machine to be",
            };
            warnings.push(format!("{cause} trained on all rows: it was trained on half of them"));
        }
        let report = Report {
            method: Method::Svml(params.clone()),
            rows: data.rows(),
            trace,
            best,
            stop: Some(stop),
            refitted,
            residual,
            warnings,
        };
        Ok(prepared.finish(data, metric, cost, machine, report))
    }

    /// The usual alternative: Euclidean metric, width and C chosen by cross-validation on a grid.
    pub fn fit_euclidean(data: &Dataset, grid: &Grid) -> Result<Self> {
        let prepared = Prepared::new(data, grid.seed)?;
        let at_once = grid.folds.min(rayon::current_num_threads());
        check_memory(data.rows(), at_once, grid.memory_limit)?;
        let watch = Watch::default();
        let selected =
            select::grid_search(&prepared.x, &prepared.y, &prepared.class, grid, &watch)?;
        let (metric, cost) = (selected.metric, selected.cost);
        let (machine, residual) = prepared.train(&metric, cost, None, &watch)?;
        let report = Report {
            method: Method::Euclidean(grid.clone()),
            rows: data.rows(),
            trace: Vec::new(),
            best: 0,
            stop: None,
            refitted: true,
            residual,
            warnings: Vec::new(),
        };
        Ok(prepared.finish(data, metric, cost, machine, report))
    }

    /// h(x) of equation (1) before the sign, for each row of encoded features: positive means the
    /// second of [`Model::classes`].
    pub fn decision(&self, x: &Matrix) -> Result<Vec<f64>> {
        Ok(expand(&self.transform(x)?, &self.mapped, &self.beta, self.bias))
    }

    /// The class of each row, as an index into [`Model::classes`].
    pub fn predict(&self, x: &Matrix) -> Result<Vec<usize>> {
        Ok(self.decision(x)?.into_iter().map(|h| usize::from(h > 0.0)).collect())
    }

    /// The rows standardised and mapped by L. // (n, rank)
    pub fn transform(&self, x: &Matrix) -> Result<Matrix> {
        self.check(x)?;
        Ok(self.metric.transform(&self.scaler.apply(x)))
    }

    /// Share of rows of `data` that are misclassified. Classes are compared by name; a class that
    /// the model does not know counts as misclassified.
    pub fn error(&self, data: &Dataset) -> Result<f64> {
        let predicted = self.predict(data.x())?;
        let wrong = predicted
            .iter()
            .zip(data.y())
            .filter(|(p, y)| self.classes[**p] != data.classes()[**y])
            .count();
        Ok(wrong as f64 / data.rows().max(1) as f64)
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

    /// The two classes; the second is the positive one.
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

    /// C.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Rows of the training data that are support vectors.
    pub fn support_rows(&self) -> &[usize] {
        &self.support_rows
    }

    /// The support vectors as encoded features. // (|S|, features)
    pub fn support_vectors(&self) -> &Matrix {
        &self.support
    }

    /// beta_j = alpha_j y_j of the support vectors.
    pub fn beta(&self) -> &[f64] {
        &self.beta
    }

    /// The offset b.
    pub fn bias(&self) -> f64 {
        self.bias
    }

    /// How the fit went.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// Refuses what would need more than `limit`: K and `factors` factors of at most its size.
fn check_memory(rows: usize, factors: usize, limit: u64) -> Result<()> {
    let bytes = 8 * (rows as u128).pow(2) * (1 + factors as u128);
    if bytes > u128::from(limit) {
        return Err(Error::TooLarge {
            what: format!("the kernel matrix of {rows} rows and its factorisation"),
            bytes,
            limit: u128::from(limit),
            way_out: "raise memory_limit if the machine has that much, or use fewer rows",
        });
    }
    Ok(())
}

/// Data made ready for learning, in an order that depends on the rows' content alone.
struct Prepared {
    /// The two classes that have rows.
    classes: Vec<String>,
    scaler: Scaler,
    /// Standardised rows.
    x: Matrix,
    class: Vec<usize>,
    /// -1 for the first class, +1 for the second.
    y: Vec<f64>,
    /// Where each row stands in the data set.
    order: Vec<usize>,
}

impl Prepared {
    fn new(data: &Dataset, seed: u64) -> Result<Self> {
        let counts = data.class_counts();
        let present: Vec<usize> = (0..counts.len()).filter(|&c| counts[c] > 0).collect();
        match present.as_slice() {
            [] => return Err(Error::NoRows(String::new())),
            [only] => return Err(Error::OneClass { class: data.classes()[*only].clone() }),
            [_, _] => {}
            _ => {
                return Err(Error::TooManyClasses {
                    column: data.schema().target().name.clone(),
                    found: present.len(),
                });
            }
        }
        data.check_missing()?;
        // A choice of rows may have left classes without any: they do not count.
        let classes = present.iter().map(|&c| data.classes()[c].clone()).collect();
        let class: Vec<usize> = data.y().iter().map(|&c| usize::from(c == present[1])).collect();
        let order = hash_order(data.x(), &class, seed);
        let raw = data.x().select_rows(&order);
        let scaler = Scaler::fit(&raw, &data.schema().encoded_kinds());
        let x = scaler.apply(&raw);
        let class: Vec<usize> = order.iter().map(|&i| class[i]).collect();
        let y = class.iter().map(|&c| if c == 1 { 1.0 } else { -1.0 }).collect();
        Ok(Self { classes, scaler, x, class, y, order })
    }

    /// Trains the machine on all rows, starting from the support set that `guess` suggests.
    fn train(
        &self,
        metric: &Metric,
        cost: f64,
        guess: Option<&Machine>,
        watch: &Watch,
    ) -> Result<(Machine, f64)> {
        let start = guess.map(|machine| {
            let z = metric.transform(&self.x);
            let h = expand(&z, &z.select_rows(&machine.support), &machine.beta, machine.bias);
            (0..h.len()).filter(|&i| self.y[i] * h[i] < 1.0).collect::<Vec<_>>()
        });
        let gram = DenseGram::new(&self.x, self.x.rows(), metric, watch)?;
        let rows: Vec<usize> = (0..self.x.rows()).collect();
        let costs = vec![cost; rows.len()];
        let problem = Problem { gram: &gram, rows: &rows, y: &self.y, cost: &costs };
        let solution = svm::solve(&problem, start.as_deref())?;
        Ok((solution.machine, solution.residual))
    }

    fn finish(
        self,
        data: &Dataset,
        metric: Metric,
        cost: f64,
        machine: Machine,
        mut report: Report,
    ) -> Model {
        let names = data.schema().encoded_names();
        for k in self.scaler.constant() {
            report.warnings.push(format!("column {} is constant and was left out", names[k]));
        }
        let Machine { support, beta, bias } = machine;
        let support_rows: Vec<usize> = support.iter().map(|&i| self.order[i]).collect();
        let mut support_vectors = data.x().select_rows(&support_rows);
        for i in 0..support_vectors.rows() {
            for (v, fill) in support_vectors.row_mut(i).iter_mut().zip(&self.scaler.fill) {
                *v = if v.is_nan() { *fill } else { *v };
            }
        }
        let mapped = metric.transform(&self.scaler.apply(&support_vectors));
        Model {
            schema: data.schema().clone(),
            classes: self.classes,
            scaler: self.scaler,
            metric,
            cost,
            support_rows,
            support: support_vectors,
            beta,
            bias,
            report,
            mapped,
        }
    }
}
