//! From a data set and a [`Method`] to a model: every way to fit stands here, one function for each.

use super::neighbours::Neighbours;
use super::svms::FinalSvms;
use super::{Classifier, Model, Report, SvmClassifier};
use crate::data::prepare::TrainingRows;
use crate::data::{ClassWeight, Dataset, Sample};
use crate::error::{Error, Result};
use crate::grid_search::{GridSearch, grid_search};
use crate::learners::Learner;
use crate::linalg::Matrix;
use crate::method::{AnyLearner, Fixed, Knn, Method};
use crate::metric::{Form, Metric};
use crate::run::{Run, Stop};
use crate::svml::criterion::Criterion;
use crate::svml::descent::{SvmlFit, TrainedOn};
use crate::svml::{self, Svml};

impl Model {
    /// Learns from data by a method: [`Svml`], [`GridSearch`] or any other [`Method`].
    ///
    /// ```
    /// use svml::learners::Nca;
    /// use svml::{Generator, Method, Model, Svml};
    ///
    /// let train = Generator::default().generate()?.data;
    /// let model = Model::fit(&train, Svml::default())?;
    /// assert_eq!(model.predict(train.x())?.len(), train.rows());
    ///
    /// let nca = Model::fit(&train, Method::svm_after(Nca::default()))?;
    /// let plain = Model::fit(&train, "euclidean".parse::<Method>()?)?;
    /// assert!(nca.error_rate(&train)? < plain.error_rate(&train)?);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit(data: &Dataset, method: impl Into<Method>) -> Result<Self> {
        Self::fit_with(data, method, &mut Run::new())
    }

    /// As [`Model::fit`], watched and ended from outside. Of SVML, or of a learner whose metric is all that is
    /// wanted, a fit that is ended early returns the best so far. A grid knows nothing before it is done:
    /// if it is ended early the result is [`Error::Interrupted`]. A learner before a grid gets half of the
    /// time.
    pub fn fit_with(data: &Dataset, method: impl Into<Method>, run: &mut Run<'_>) -> Result<Self> {
        let method = method.into();
        match &method {
            Method::Svml(svml) => fit_svml(data, &method, svml, run),
            Method::Euclidean(grid) => fit_euclidean(data, &method, grid, run),
            Method::Fixed(fixed) => fit_fixed(data, &method, fixed, run),
            Method::SvmAfter { learner, grid } => fit_svm_after(data, &method, learner, grid, run),
            Method::Neighbours { learner, knn } => {
                fit_neighbours(data, &method, learner.as_ref(), *knn, run)
            }
            Method::Metric(learner) => fit_metric(data, &method, learner, run),
        }
    }
}

fn fit_svml(data: &Dataset, method: &Method, params: &Svml, run: &mut Run<'_>) -> Result<Model> {
    let watch = run.watch().clone();
    let rows = TrainingRows::new(data, &params.class_weight, params.seed)?;
    params.validate(data.columns())?;
    let (svms, matrices) = match params.criterion {
        Criterion::HoldOut => (1, 1),
        Criterion::KFold(k) => (k, 1),
        // The factor, a fresh one where the first has a border, columns of the inverse, the inverse.
        Criterion::LeaveOneOut => (1, 4),
    };
    rows.check_memory(svms, matrices, params.memory_limit)?;
    let mut warnings = rows.warnings(data);
    warnings.extend(check_distinct(&rows)?);
    let (fit, candidates) = svml::learn(&rows.sample()?, params, run)?;
    let SvmlFit { metric, cost, svms, trained, residual, trace, best, stop } = fit;
    // SVMs that are validated by leave-one-out are on all rows already.
    let on_part = matches!(trained, TrainedOn::Part { .. });
    let again = match params.refit && stop != Stop::Interrupted && on_part {
        true => match FinalSvms::train(&rows, &metric, cost, Some(&svms), &watch) {
            Ok(trained) => Some(trained),
            Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => None,
            Err(error) => return Err(error),
        },
        false => None,
    };
    let refitted = again.is_some() || !on_part;
    if params.refit && !refitted {
        let cause = match stop.is_early() {
            true => "learning was stopped before the final SVM could be trained on all rows",
            false => {
                "time or the precision of the kernel matrix did not allow the final SVM to be trained on all rows"
            }
        };
        warnings.push(format!("{cause}; the model uses the SVM trained on part of them"));
    }
    let svms = match (again, trained) {
        (Some(svms), _) => svms,
        (None, TrainedOn::All { left_out }) => {
            FinalSvms::left_out(&rows, &metric, svms, residual, &left_out)?
        }
        (None, TrainedOn::Part { unseen }) => {
            FinalSvms::on_part(&rows, &metric, svms, residual, &unseen)
        }
    };
    let report = Report {
        trace,
        candidates,
        best,
        stop: Some(stop),
        refitted,
        warnings,
        ..Report::without_steps(method, data, &rows)
    };
    Ok(assemble_svms(rows, data, metric, cost, svms, report))
}

/// Refuses data of which every class is a single row; warns if that row occurs many times over.
fn check_distinct(rows: &TrainingRows) -> Result<Option<String>> {
    if rows.has_distinct_rows() {
        return Ok(None);
    }
    if rows.largest_class < 2.0 {
        return Err(Error::TooFewRows {
            class: rows.classes[0].clone(),
            rows: 1,
            needed: 2,
            purpose: "splitting into a training and a validation part",
        });
    }
    let warning = "no class has two distinct rows to learn from: the metric and C mean little";
    Ok(Some(warning.to_owned()))
}

fn fit_euclidean(
    data: &Dataset,
    method: &Method,
    grid: &GridSearch,
    run: &mut Run<'_>,
) -> Result<Model> {
    let watch = run.watch();
    let rows = TrainingRows::new(data, &grid.class_weight, grid.seed)?;
    check_grid(&rows, data, grid)?;
    let choice = grid_search(&rows.sample()?, grid, watch)?;
    let svms = FinalSvms::train(&rows, &choice.metric, choice.cost, None, watch)?;
    let report = Report::without_steps(method, data, &rows);
    Ok(assemble_svms(rows, data, choice.metric, choice.cost, svms, report))
}

/// On the features as they are the kernel is that of a diagonal metric which undoes the scaling.
fn fit_fixed(data: &Dataset, method: &Method, fixed: &Fixed, run: &mut Run<'_>) -> Result<Model> {
    fixed.validate()?;
    let watch = run.watch();
    // In the mapped space the kernel is exp(-|z - z'|^2), so a single width of 1: sigma^2 = d/d.
    let widths = vec![(data.columns() as f64).recip()];
    let memory_limit = fixed.memory_limit;
    let grid = GridSearch { widths, memory_limit, ..GridSearch::default() };
    let rows = TrainingRows::new(data, &fixed.class_weight, grid.seed)?;
    rows.check_memory(grid.folds, 1, grid.memory_limit)?;
    let values = rows.scaler.scale.iter().map(|scale| fixed.gamma.sqrt() * scale).collect();
    let metric = Metric::new(Form::Diagonal, data.columns(), values)?;
    let cost = match fixed.cost {
        Some(cost) => cost,
        None => {
            let z = metric.transform(&rows.x);
            grid_search(&rows.sample()?.mapped(&z), &grid, watch)?.cost
        }
    };
    let svms = FinalSvms::train(&rows, &metric, cost, None, watch)?;
    let report = Report::without_steps(method, data, &rows);
    Ok(assemble_svms(rows, data, metric, cost, svms, report))
}

/// Mapped rows are scaled so that the mean square of their distance from their mean is r, the number of
/// rows of L, as it is d for standardised rows: the widths of the grid are relative to r as those of
/// the Euclidean SVM are to d, whatever the size of L. The metric of the model is L times that
/// scale over sigma. Section 3.4 of the paper.
fn fit_svm_after(
    data: &Dataset,
    method: &Method,
    learner: &AnyLearner,
    grid: &GridSearch,
    run: &mut Run<'_>,
) -> Result<Model> {
    let rows = TrainingRows::new(data, &grid.class_weight, grid.seed)?;
    learner.validate(data.columns())?;
    check_grid(&rows, data, grid)?;
    let sample = rows.sample()?;
    let learned = learner.learn(&sample, &mut run.first_half())?;
    let watch = run.watch();
    let mut z = learned.metric.transform(sample.x());
    let scale = unit_scale(&z, &sample);
    z.as_mut_slice().iter_mut().for_each(|z| *z *= scale);
    let choice = grid_search(&sample.mapped(&z), grid, watch)?;
    let inverse_width = choice.metric.values().first().copied().unwrap_or(1.0);
    let values = learned.metric.values().iter().map(|l| l * scale * inverse_width).collect();
    let metric = Metric::new(learned.metric.form(), learned.metric.features(), values)?;
    let svms = FinalSvms::train(&rows, &metric, choice.cost, None, watch)?;
    let report = Report::of_learner(method, data, &rows, &learned);
    Ok(assemble_svms(rows, data, metric, choice.cost, svms, report))
}

fn fit_neighbours(
    data: &Dataset,
    method: &Method,
    learner: Option<&AnyLearner>,
    knn: Knn,
    run: &mut Run<'_>,
) -> Result<Model> {
    if knn.k == 0 {
        return Err(Error::parameter("k", knn.k, "at least 1"));
    }
    let rows = TrainingRows::new(data, &ClassWeight::None, 0)?;
    let (metric, report) = match learner {
        Some(learner) => {
            learner.validate(data.columns())?;
            let learned = learner.learn(&rows.sample()?, run)?;
            let report = Report::of_learner(method, data, &rows, &learned);
            (learned.metric, report)
        }
        None => {
            let euclidean = Metric::isotropic(Form::Sphere, data.columns(), 1.0)?;
            (euclidean, Report::without_steps(method, data, &rows))
        }
    };
    // Class after class, as support vectors are kept.
    let mut order: Vec<usize> = (0..rows.class.len()).collect();
    order.sort_by_key(|&i| rows.class[i]);
    let origin: Vec<usize> = order.iter().map(|&i| rows.origin[i]).collect();
    let weight: Vec<f64> = order.iter().map(|&i| rows.weight[i]).collect();
    let mut counts = vec![0; rows.classes.len()];
    rows.class.iter().for_each(|&class| counts[class] += 1);
    let kept = filled_rows(data, &rows, &origin);
    let mapped = metric.transform(&rows.scaler.apply(&kept));
    let neighbours = Neighbours::new(knn.k, origin, counts, weight, kept, &mapped)?;
    Ok(assemble(rows, data, metric, Classifier::Neighbours(neighbours), report))
}

fn fit_metric(
    data: &Dataset,
    method: &Method,
    learner: &AnyLearner,
    run: &mut Run<'_>,
) -> Result<Model> {
    let rows = TrainingRows::new(data, &ClassWeight::None, 0)?;
    learner.validate(data.columns())?;
    let learned = learner.learn(&rows.sample()?, run)?;
    let report = Report::of_learner(method, data, &rows, &learned);
    Ok(assemble(rows, data, learned.metric, Classifier::None, report))
}

/// Refuses a grid that these rows or the memory limit do not allow.
fn check_grid(rows: &TrainingRows, data: &Dataset, grid: &GridSearch) -> Result<()> {
    grid.validate()?;
    if grid.folds > data.rows().max(2) {
        let bound = format!("at most the number of rows, {}", data.rows());
        return Err(Error::parameter("folds", grid.folds, bound));
    }
    rows.check_memory(grid.folds, 1, grid.memory_limit)
}

/// The factor that makes the weighted mean of `|z - mean|^2` the number of columns of z; 1 if all rows
/// are the same.
fn unit_scale(z: &Matrix, sample: &Sample<'_>) -> f64 {
    let total: f64 = sample.weight().iter().sum();
    let mean = |column: &mut dyn Iterator<Item = f64>| {
        column.zip(sample.weight()).map(|(v, w)| v * (w / total)).sum::<f64>()
    };
    let variance: f64 = (0..z.cols())
        .map(|k| {
            let centre = mean(&mut z.col(k));
            mean(&mut z.col(k).map(|v| (v - centre).powi(2)))
        })
        .sum();
    let scale = (z.cols() as f64 / variance).sqrt();
    if scale.is_finite() { scale } else { 1.0 }
}

/// Rows of the data as they are kept in a model: encoded, missing values filled, not scaled.
fn filled_rows(data: &Dataset, rows: &TrainingRows, chosen: &[usize]) -> Matrix {
    let mut kept = data.x().select_rows(chosen);
    for i in 0..kept.rows() {
        for (v, fill) in kept.row_mut(i).iter_mut().zip(&rows.scaler.fill) {
            *v = if v.is_nan() { *fill } else { *v };
        }
    }
    kept
}

fn assemble_svms(
    rows: TrainingRows,
    data: &Dataset,
    metric: Metric,
    cost: f64,
    svms: FinalSvms,
    report: Report,
) -> Model {
    let report = Report { residual: svms.residual, ..report };
    let mut pairwise = svms.pairwise(&rows);
    pairwise.support.iter_mut().for_each(|row| *row = rows.origin[*row]);
    let support = filled_rows(data, &rows, &pairwise.support);
    let mapped = metric.transform(&rows.scaler.apply(&support));
    let temperature = Some(svms.temperature);
    let classifier =
        Classifier::Svms(SvmClassifier { cost, pairwise, support, mapped, temperature });
    assemble(rows, data, metric, classifier, report)
}

fn assemble(
    rows: TrainingRows,
    data: &Dataset,
    metric: Metric,
    classifier: Classifier,
    report: Report,
) -> Model {
    let TrainingRows { classes, scaler, .. } = rows;
    Model { schema: data.schema().clone(), classes, scaler, metric, classifier, report }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Generator, Scaler};

    fn fixed(gamma: f64, cost: Option<f64>) -> Fixed {
        Fixed { gamma, cost, ..Fixed::default() }
    }

    /// The decision values must be those of the kernel on raw features, whatever their units.
    #[test]
    fn a_fixed_kernel_is_on_the_features_as_they_are() {
        let generated = Generator { rows: 80, ..Default::default() }.generate().unwrap().data;
        let unit = |k: usize| 10.0_f64.powi(k as i32 % 3);
        let x = Matrix::from_fn(80, 10, |i, k| unit(k) * generated.x()[(i, k)] + 3.0);
        let data = Dataset::new(x, generated.y()).unwrap();
        let gamma = 0.02;
        let model = Model::fit(&data, fixed(gamma, Some(2.0))).unwrap();
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
        let kinds = generated.schema().encoded_kinds();
        let scaler = Scaler::fit(generated.x(), &[1.0; 120], &kinds);
        let data = Dataset::new(scaler.apply(generated.x()), generated.y()).unwrap();
        let grid = GridSearch { widths: vec![1.0], ..GridSearch::default() };
        let expected = Model::fit(&data, grid).unwrap();
        let model = Model::fit(&data, fixed(0.1, None)).unwrap();
        assert_eq!(model.cost(), expected.cost());
        let (a, b) = (model.decision(data.x()).unwrap(), expected.decision(data.x()).unwrap());
        assert!(a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn what_cannot_be_fixed_is_refused() {
        let data = Generator { rows: 20, ..Default::default() }.generate().unwrap().data;
        for (gamma, cost) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, 1e9)] {
            assert!(Model::fit(&data, fixed(gamma, Some(cost))).is_err());
        }
    }
}
