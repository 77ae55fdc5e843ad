//! What Python sees of the library: a class, `Model`, made of arrays, of a method as text and of its
//! parameters as JSON, and `Summary` and `Schema` for tables with texts. No learner is named here.
//!
//! Estimators and checks of input are written in Python, in `python/svml`, pictures too; `job` is how a call runs,
//! `convert` what becomes of errors and values, `tables` what is made of columns, `figures` what a picture shows.

mod convert;
mod figures;
mod job;
mod rows;
mod tables;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyIndexError, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};
use serde_json::{Map as JsonMap, Value, json};
use svml::data::{Missing, NewRows};
use svml::figures::{
    Confusion, Map, MetricMatrix, PrecisionRecall, Relevance, Reliability, Roc, Trace, Waterfall,
};
use svml::internals::{LEAST_ROWS, Parameters, write_atomically, write_together};
use svml::learners::Itml;
use svml::{Dataset, Device, Matrix, Measures, Method, Remark, Run, Scores, Step, Unusual};
use svml_export::{Input, Output};

use convert::{ParameterError, Rows, array, dict, matrix, to_python};
use job::{Interrupt, Observer, Reporter, internal, panic_text, run, run_watched};
use tables::{Schema, Summary, check_dense};

/// A trained model: the library's, with arrays for its parts.
#[pyclass(frozen, module = "svml._core")]
struct Model {
    inner: Arc<svml::Model>,
    /// How the fit went, once someone has asked.
    report: PyOnceLock<Py<PyDict>>,
    /// How columns become features, likewise.
    schema: PyOnceLock<Schema>,
    /// The same model for the last other device that predictions were asked of.
    elsewhere: Mutex<Option<Arc<svml::Model>>>,
}

/// A method from its text, such as `nca+none`.
fn method_of(text: &str) -> PyResult<Method> {
    text.parse().map_err(to_python)
}

/// A device from its text, such as `cuda:0`.
fn device_of(text: &str) -> PyResult<Device> {
    text.parse().map_err(to_python)
}

/// What is unusual about new rows, in words. That missing values are filled was asked for, by a parameter of the estimator.
fn texts(remarks: &[Remark]) -> Vec<String> {
    let told = remarks.iter().filter(|remark| remark.what != Unusual::Filled);
    told.map(ToString::to_string).collect()
}

/// The parameters of a method and their defaults.
#[pyfunction]
fn defaults<'py>(py: Python<'py>, method: &str) -> PyResult<Bound<'py, PyDict>> {
    dict(py, &method_of(method)?.parameters_json())
}

/// Writes a file, whole or not at all, by the rules of model files.
#[pyfunction]
fn write_file(py: Python<'_>, path: PathBuf, text: String) -> PyResult<()> {
    run(py, 1, move || write_atomically(&path, text.as_bytes()))
}

/// The parameters of a method and what a value of each must be.
#[pyfunction]
fn bounds<'py>(py: Python<'py>, method: &str) -> PyResult<Bound<'py, PyDict>> {
    let bounds = PyDict::new(py);
    for parameter in method_of(method)?.parameters() {
        bounds.set_item(parameter.name, parameter.must_be)?;
    }
    Ok(bounds)
}

/// Measures of predictions, whose classes are places in `classes`: as a dict, and as a table in text.
#[pyfunction]
#[pyo3(signature = (classes, truth, predicted, probabilities, positive, threads))]
fn measures<'py>(
    py: Python<'py>,
    classes: Vec<String>,
    truth: PyReadonlyArray1<'_, i64>,
    predicted: PyReadonlyArray1<'_, i64>,
    probabilities: Option<Rows<'_>>,
    positive: usize,
    threads: usize,
) -> PyResult<(Bound<'py, PyDict>, String)> {
    // A negative place is one beyond all classes, which the library refuses.
    let places = |places: &PyReadonlyArray1<'_, i64>| -> Vec<usize> {
        places.as_array().iter().map(|&place| place as usize).collect()
    };
    let (truth, predicted) = (places(&truth), places(&predicted));
    let probabilities = probabilities.as_ref().map(matrix).transpose()?;
    let measures = run(py, threads, move || {
        let scores = probabilities.as_ref().map_or(Scores::None, Scores::Probabilities);
        Measures::of(&classes, &truth, &predicted, scores, positive)
    })?;
    match json!(measures) {
        Value::Object(entries) => Ok((dict(py, &entries)?, measures.to_string())),
        _ => Err(internal("measures that are no object")),
    }
}

/// A job that panics, for the test that a panic becomes an exception; not part of a wheel.
#[cfg(feature = "provoke-panic")]
#[pyfunction]
fn provoke_panic(py: Python<'_>) -> PyResult<()> {
    #[allow(clippy::panic)]
    run(py, 1, || panic!("on purpose"))
}

/// Parameters as a JSON object.
fn json_object(params: &str) -> PyResult<JsonMap<String, Value>> {
    serde_json::from_str(params).map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// A fit as a job that can be interrupted, has a time limit and shows its steps to an observer.
fn watched(
    py: Python<'_>,
    threads: usize,
    time_limit: Option<f64>,
    observer: Option<Observer<'_, '_>>,
    checkpoint: Option<PathBuf>,
    device: Device,
    fit: impl FnOnce(&mut Run<'_>) -> svml::Result<svml::Model> + Send + 'static,
) -> PyResult<Model> {
    let limit = match time_limit.map(Duration::try_from_secs_f64).transpose() {
        Ok(limit) => limit,
        // What is too long for the clock is no limit.
        Err(_) if time_limit > Some(0.0) => None,
        Err(error) => return Err(PyValueError::new_err(format!("time_limit: {error}"))),
    };
    let interrupt = Arc::<AtomicBool>::default();
    let (watched, flag) = (observer.is_some(), interrupt.clone());
    let job = move |reporter: &Reporter<svml::Model>| {
        let mut run =
            Run::new().interrupt(flag).device(device).observer(|step: &Step| match watched {
                true => reporter.report(step),
                false => ControlFlow::Continue(()),
            });
        if let Some(limit) = limit {
            run = run.time_limit(limit);
        }
        let Some(file) = checkpoint else { return fit(&mut run) };
        run = run.checkpoint(&file);
        let model = fit(&mut run)?;
        // A fit that was ended early may go on another time. What cannot be removed is refused by the next fit, with words.
        if !run.is_cut_short() {
            let _ = std::fs::remove_file(file);
        }
        Ok(model)
    };
    Ok(run_watched(py, threads, &interrupt, observer, Interrupt::Raises, job)?.into())
}

impl Model {
    /// A question about rows, answered on `threads` threads.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        x: &Rows<'_>,
        threads: usize,
        question: impl FnOnce(&svml::Model, &Matrix) -> svml::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (model, x) = (self.inner.clone(), matrix(x)?);
        run(py, threads, move || question(&model, &x))
    }

    /// The same, answered on a device; by default where the model was fitted.
    fn ask_on<T: Send + 'static>(
        &self,
        py: Python<'_>,
        x: &Rows<'_>,
        threads: usize,
        device: Option<&str>,
        question: impl FnOnce(&svml::Model, &Matrix) -> svml::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let Some(device) = device.map(device_of).transpose()? else {
            return self.ask(py, x, threads, question);
        };
        let (model, x) = (py.detach(|| self.on(device)).map_err(to_python)?, matrix(x)?);
        run(py, threads, move || question(&model, &x))
    }

    /// The model for predictions on a device.
    fn on(&self, device: Device) -> svml::Result<Arc<svml::Model>> {
        if self.inner.device() == device {
            return Ok(self.inner.clone());
        }
        let mut elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = elsewhere.as_ref().filter(|model| model.device() == device) {
            return Ok(model.clone());
        }
        let model = Arc::new((*self.inner).clone().on_device(device)?);
        *elsewhere = Some(model.clone());
        Ok(model)
    }
}

impl From<svml::Model> for Model {
    fn from(model: svml::Model) -> Self {
        Self {
            inner: Arc::new(model),
            report: PyOnceLock::new(),
            schema: PyOnceLock::new(),
            elsewhere: Mutex::default(),
        }
    }
}

#[pymethods]
impl Model {
    /// The model of the bytes of a model file.
    #[new]
    fn new(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        let read = py.detach(|| catch_unwind(AssertUnwindSafe(|| svml::Model::from_bytes(bytes))));
        Ok(read.map_err(|cause| internal(&panic_text(&*cause)))?.map_err(to_python)?.into())
    }

    /// Learns from rows `x`, whose classes `y` are places in `classes`. `method` is text such as `svml` or
    /// `nca+none`, `params` a JSON object of parameters that differ from the defaults. Rows that a schema has encoded come
    /// with it; others may have names, and NaN where missing values are imputed.
    #[staticmethod]
    #[pyo3(signature = (method, params, x, y, classes, *, weights=None, groups=None, names=None, schema=None,
                        impute=false, threads=1, time_limit=None, checkpoint=None, device="auto", observer=None))]
    #[allow(clippy::too_many_arguments)]
    fn fit(
        py: Python<'_>,
        method: &str,
        params: &str,
        x: Rows<'_>,
        y: PyReadonlyArray1<'_, i64>,
        classes: Vec<String>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        groups: Option<Vec<String>>,
        names: Option<Vec<String>>,
        schema: Option<&Schema>,
        impute: bool,
        threads: usize,
        time_limit: Option<f64>,
        checkpoint: Option<PathBuf>,
        device: &str,
        observer: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let device = device_of(device)?;
        let mut method = method_of(method)?;
        for (name, value) in &json_object(params)? {
            method.set_json(name, value).map_err(to_python)?;
        }
        let y: Vec<i64> = y.as_array().iter().copied().collect();
        let mut data = Dataset::new(matrix(&x)?, &y)
            .and_then(|data| data.with_class_names(classes))
            .map_err(to_python)?;
        if let Some(names) = names {
            data = data.with_names(names).map_err(to_python)?;
        }
        if impute {
            data = data.with_missing(Missing::Impute).map_err(to_python)?;
        }
        if let Some(schema) = schema {
            data = data.with_schema((*schema.inner).clone()).map_err(to_python)?;
        }
        if let Some(weights) = weights {
            let weights = weights.as_array().iter().copied().collect();
            data = data.with_weights(weights).map_err(to_python)?;
        }
        if let Some(groups) = groups {
            data = data.with_groups(&groups).map_err(to_python)?;
        }
        let observer = observer.as_ref().map(|callable| Observer::new(callable, &method));
        let Some(file) = checkpoint else {
            return watched(py, threads, time_limit, observer, None, device, move |run| {
                svml::Model::fit_with(&data, method, run)
            });
        };
        let trouble = Arc::<Mutex<Option<String>>>::default();
        let told = trouble.clone();
        let model = watched(py, threads, time_limit, observer, Some(file), device, move |run| {
            let fitted = svml::Model::fit_with(&data, method, run);
            if let (Some(trouble), Ok(mut told)) = (run.checkpoint_trouble(), told.lock()) {
                *told = Some(trouble.to_owned());
            }
            fitted
        })?;
        let trouble = trouble.lock().ok().and_then(|mut trouble| trouble.take());
        if let Some(trouble) = trouble {
            let text = format!(
                "the checkpoint could no longer be written ({trouble}); the fit continued without it"
            );
            let text = std::ffi::CString::new(text).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
        }
        Ok(model)
    }

    /// Learns a metric from pairs of rows, of which `similar` says whether they should be near each other. `params` is a
    /// JSON object of parameters of ITML that differ from the defaults.
    #[staticmethod]
    #[pyo3(signature = (params, first, second, similar, *, threads=1, time_limit=None, device="auto",
                        observer=None))]
    #[allow(clippy::too_many_arguments)]
    fn fit_pairs(
        py: Python<'_>,
        params: &str,
        first: Rows<'_>,
        second: Rows<'_>,
        similar: PyReadonlyArray1<'_, bool>,
        threads: usize,
        time_limit: Option<f64>,
        device: &str,
        observer: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let device = device_of(device)?;
        let mut itml = Itml::default();
        for (name, value) in &json_object(params)? {
            itml.set(name, value.clone()).map_err(to_python)?;
        }
        let (first, second) = (matrix(&first)?, matrix(&second)?);
        let similar: Vec<bool> = similar.as_array().iter().copied().collect();
        let method = Method::metric(itml);
        let observer = observer.as_ref().map(|callable| Observer::new(callable, &method));
        watched(py, threads, time_limit, observer, None, device, move |run| {
            svml::Model::fit_pairs(&first, &second, &similar, &itml, run)
        })
    }

    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(run(py, 1, move || svml::Model::load(path))?.into())
    }

    /// Writes the model file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let model = self.inner.clone();
        run(py, 1, move || model.save(path))
    }

    /// Writes the model for another program: `to` is onnx, with an input for each of the `columns` or one for all
    /// features, c, js or libsvm, which has a second file, for svm-scale, where the metric is a sphere or diagonal.
    /// `map` is whether the map of the metric is written in place of a classifier.
    fn export(
        &self,
        py: Python<'_>,
        path: PathBuf,
        to: &str,
        columns: bool,
        map: bool,
    ) -> PyResult<()> {
        let input = if columns { Input::Columns } else { Input::Features };
        let output = if map { Output::Map } else { Output::Model };
        let (model, to) = (self.inner.clone(), to.to_owned());
        run(py, 1, move || {
            let bytes = match to.as_str() {
                "onnx" => svml_export::onnx(&model, input, output)?,
                "c" => svml_export::c(&model, output)?.into_bytes(),
                "js" => svml_export::js(&model, output)?.into_bytes(),
                _ => {
                    let exported = model.to_libsvm(true)?;
                    let mut beside = path.clone().into_os_string();
                    beside.push(".range");
                    let range =
                        exported.range.as_ref().map(|text| (Path::new(&beside), text.as_bytes()));
                    let model = (path.as_path(), exported.text.as_bytes());
                    let files: Vec<_> = range.into_iter().chain([model]).collect();
                    return write_together(&files);
                }
            };
            write_atomically(&path, &bytes)
        })
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.inner.to_bytes().map_err(to_python)?))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>(), (self.to_bytes(py)?,)))
    }

    /// Decision values. // (n, 1) or (n, classes)
    #[pyo3(signature = (x, threads, device=None))]
    fn decision<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        threads: usize,
        device: Option<&str>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.ask_on(py, &x, threads, device, svml::Model::decision)?)
    }

    /// The class of each row, as a place in `classes`.
    #[pyo3(signature = (x, threads, device=None))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        threads: usize,
        device: Option<&str>,
    ) -> PyResult<Bound<'py, PyArray1<usize>>> {
        Ok(self.ask_on(py, &x, threads, device, svml::Model::predict)?.into_pyarray(py))
    }

    /// Probabilities of the classes. // (n, classes)
    #[pyo3(signature = (x, threads, device=None))]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        threads: usize,
        device: Option<&str>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.ask_on(py, &x, threads, device, svml::Model::probabilities)?)
    }

    /// Rows mapped by the metric. // (n, rank)
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.ask(py, &x, threads, svml::Model::transform)?)
    }

    /// What each column contributes to the decision about each row, compared with a reference row or with the mean of
    /// the training rows.
    #[pyo3(signature = (x, reference, threads))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        reference: Option<Rows<'py>>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let reference = reference.map(|rows| matrix(&rows)).transpose()?;
        let (why, cells) = self.ask(py, &x, threads, move |model, x| {
            let reference = reference.as_ref().map(|rows| rows.row(0));
            let cells: Vec<Vec<String>> =
                x.iter_rows().map(|row| model.schema().cells(row)).collect();
            Ok((model.explain(x, reference)?, cells))
        })?;
        figures::explanation(py, why, cells)
    }

    /// The same model with its training rows, whose classes `y` are places in `classes`.
    fn keep_rows(
        &self,
        py: Python<'_>,
        x: Rows<'_>,
        y: PyReadonlyArray1<'_, i64>,
    ) -> PyResult<Self> {
        let classes: Vec<usize> = y.as_array().iter().map(|&c| c.max(0) as usize).collect();
        let kept = self.ask(py, &x, 1, move |model, x| {
            let mut model = model.clone();
            model.keep_rows(x, &classes)?;
            Ok(model)
        })?;
        Ok(kept.into())
    }

    /// Whether the model holds its training rows.
    #[getter]
    fn keeps_rows(&self) -> bool {
        self.inner.keeps_rows()
    }

    /// The training rows that are most like each row, as arrays with a row for each of these.
    fn alike<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        count: usize,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        figures::alike(py, self.ask(py, &x, threads, move |model, x| model.alike(x, count))?)
    }

    /// What each column contributes to the decision about one row, the largest contributions first.
    #[pyo3(signature = (x, reference, most, threads))]
    fn waterfall<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        reference: Option<Rows<'py>>,
        most: usize,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let reference = reference.map(|rows| matrix(&rows)).transpose()?;
        let figure = self.ask(py, &x, threads, move |model, x| {
            let reference = reference.as_ref().map(|rows| rows.row(0));
            Waterfall::new(model, x.row(0), reference, most)
        })?;
        figures::waterfall(py, figure)
    }

    /// The page about the model and how it does on rows, as HTML.
    #[pyo3(signature = (x, labels, title, threads, device=None))]
    fn page(
        &self,
        py: Python<'_>,
        x: Rows<'_>,
        labels: Vec<String>,
        title: String,
        threads: usize,
        device: Option<&str>,
    ) -> PyResult<String> {
        let page =
            move |model: &svml::Model, x: &Matrix| svml_report::page(model, x, &labels, &title);
        self.ask_on(py, &x, threads, device, page)
    }

    /// New rows of a table as numbers, and what is unusual about them. // (n, features)
    fn read<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<tables::Column<'py>>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Vec<String>)> {
        let (model, frame) = (self.inner.clone(), tables::frame(columns)?);
        let (x, remarks) = run(py, threads, move || {
            let rows = model.schema().read_frame(&frame)?;
            let remarks = texts(&model.remarks(&rows));
            Ok((rows.x, remarks))
        })?;
        Ok((array(py, x)?, remarks))
    }

    /// What is unusual about new rows that are numbers.
    fn remarks<'py>(&self, py: Python<'py>, x: Rows<'py>, threads: usize) -> PyResult<Vec<String>> {
        let (model, x) = (self.inner.clone(), matrix(&x)?);
        run(py, threads, move || Ok(texts(&model.remarks(&NewRows::new(x, None)))))
    }

    /// The map of rows in two dimensions.
    #[pyo3(signature = (x, labels, directions, threads))]
    fn map<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        labels: Option<Vec<String>>,
        directions: Option<[usize; 2]>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let map = self.ask(py, &x, threads, move |model, x| match directions {
            Some(directions) => Map::along(model, x, labels.as_deref(), directions),
            None => Map::new(model, x, labels.as_deref()),
        })?;
        figures::map(py, map)
    }

    /// The learning curves; None if nothing was learned step by step.
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        Trace::new(&self.inner).map(|trace| figures::trace(py, trace)).transpose()
    }

    /// The part of M = L'L that the `most` most relevant features have.
    fn metric_matrix<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyDict>> {
        figures::metric_matrix(py, MetricMatrix::most_relevant(&self.inner, most))
    }

    /// The features by relevance.
    fn relevance_by_feature<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        figures::relevance(py, Relevance::by_feature(&self.inner))
    }

    /// The columns of the table by relevance.
    fn relevance_by_column<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        figures::relevance(py, Relevance::new(&self.inner))
    }

    /// The calibration of the probabilities, of one class or as the library chooses.
    #[pyo3(signature = (x, labels, class_, threads))]
    fn reliability<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        labels: Vec<String>,
        class_: Option<String>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let question = move |model: &svml::Model, x: &Matrix| match &class_ {
            Some(class) => Reliability::of_class(model, x, &labels, class),
            None => Reliability::new(model, x, &labels),
        };
        figures::reliability(py, self.ask(py, &x, threads, question)?)
    }

    /// ROC curves, of one class or as the library chooses.
    #[pyo3(signature = (x, labels, class_, threads))]
    fn roc<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        labels: Vec<String>,
        class_: Option<String>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let question =
            move |model: &svml::Model, x: &Matrix| Roc::new(model, x, &labels, class_.as_deref());
        figures::roc(py, self.ask(py, &x, threads, question)?)
    }

    /// Precision against recall, of one class or as the library chooses.
    #[pyo3(signature = (x, labels, class_, threads))]
    fn precision_recall<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        labels: Vec<String>,
        class_: Option<String>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let question = move |model: &svml::Model, x: &Matrix| {
            PrecisionRecall::new(model, x, &labels, class_.as_deref())
        };
        figures::precision_recall(py, self.ask(py, &x, threads, question)?)
    }

    /// The confusion matrix.
    fn confusion<'py>(
        &self,
        py: Python<'py>,
        x: Rows<'py>,
        labels: Vec<String>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let question = move |model: &svml::Model, x: &Matrix| Confusion::new(model, x, &labels);
        figures::confusion(py, self.ask(py, &x, threads, question)?)
    }

    /// Where it was computed.
    #[getter]
    fn device(&self) -> String {
        self.inner.report().device.clone()
    }

    /// Whether it can classify.
    #[getter]
    fn is_classifier(&self) -> bool {
        self.inner.is_classifier()
    }

    /// The names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.inner.classes().to_vec()
    }

    /// How the columns of a table become features.
    #[getter]
    fn schema(&self, py: Python<'_>) -> Schema {
        self.schema.get_or_init(py, || self.inner.schema().clone().into()).clone()
    }

    /// The names of the features, and whether they were given.
    #[getter]
    fn names(&self) -> (Vec<String>, bool) {
        (self.inner.schema().encoded_names(), self.inner.schema().named())
    }

    /// Whether missing values are filled.
    #[getter]
    fn imputes(&self) -> bool {
        self.inner.schema().missing() == Missing::Impute
    }

    /// The form of the metric.
    #[getter]
    fn form(&self) -> String {
        self.inner.metric().form().to_string()
    }

    /// Dimensions of the space that rows are mapped into.
    #[getter]
    fn rank(&self) -> usize {
        self.inner.metric().rank()
    }

    /// The map on features as they are. // (rank, features)
    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.inner.raw_components().map_err(to_python)?)
    }

    /// The matrix of the metric on features as they are. // (features, features)
    #[getter]
    fn mahalanobis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.inner.raw_mahalanobis().map_err(to_python)?)
    }

    /// The share of each feature in the diagonal of M = L'L on standardised features: the mean of the SVMs, the
    /// least and the largest of them. // (3, features)
    #[getter]
    fn relevance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let Relevance { values, low, high, .. } = Relevance::of_features(&self.inner);
        let columns = values.len();
        [values, low, high].concat().into_pyarray(py).reshape([3, columns])
    }

    /// The mean of each feature.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.scaler().mean.clone().into_pyarray(py)
    }

    /// The standard deviation of each feature; 0 for one that was constant.
    #[getter]
    fn scale<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.scaler().scale.clone().into_pyarray(py)
    }

    /// The SVMs of the model, each with weight, kernel, form and cost; none for a metric alone or neighbours.
    #[getter]
    fn members<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        (self.inner.members().iter())
            .map(|member| {
                let entries = PyDict::new(py);
                entries.set_item("kernel", member.kernel().to_string())?;
                entries.set_item("form", member.metric().form().to_string())?;
                entries.set_item("cost", member.cost())?;
                entries.set_item("weight", member.weight())?;
                Ok(entries)
            })
            .collect()
    }

    /// The map of one of the SVMs, on features as they are; those that were constant weigh nothing. // (rank, features)
    fn member_components<'py>(
        &self,
        py: Python<'py>,
        place: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let members = self.inner.members();
        let member = members.get(place).ok_or_else(|| {
            PyIndexError::new_err(format!("SVM {place} of a model that has {}", members.len()))
        })?;
        array(py, self.inner.raw_components_of(member).map_err(to_python)?)
    }

    /// The temperature of the probabilities; None if they do not come from SVMs.
    #[getter]
    fn temperature(&self) -> Option<f64> {
        self.inner.temperature()
    }

    /// Rows of the training data that are support vectors.
    #[getter]
    fn support_rows<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<usize>> {
        self.inner.support_rows().to_vec().into_pyarray(py)
    }

    /// Number of support vectors of each class.
    #[getter]
    fn support_counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<usize>> {
        self.inner.support_counts().to_vec().into_pyarray(py)
    }

    /// The support vectors. // (support vectors, features)
    #[getter]
    fn support_vectors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.inner.support_vectors().clone())
    }

    /// Their coefficients, in a model of one SVM. // (classes - 1, support vectors)
    #[getter]
    fn beta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.inner.beta().clone())
    }

    /// The offset of each pair of classes, in a model of one SVM.
    #[getter]
    fn bias<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.bias().to_vec().into_pyarray(py)
    }

    /// How the fit went, with the steps of each SVM as `stages`: a dict, made once. It is not to be changed.
    #[getter]
    fn report(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let report = self.report.get_or_try_init(py, || {
            let report = self.inner.report();
            let stages: Vec<Value> = (report.stages().iter())
                .map(|stage| json!([stage.kernel, stage.form, stage.first, stage.last]))
                .collect();
            let mut entries = match json!(report) {
                Value::Object(entries) => entries,
                _ => JsonMap::new(),
            };
            entries.insert("stages".to_owned(), json!(stages));
            dict(py, &entries).map(Bound::unbind)
        })?;
        Ok(report.clone_ref(py))
    }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ParameterError", module.py().get_type::<ParameterError>())?;
    module.add_class::<Model>()?;
    module.add("LEAST_ROWS", LEAST_ROWS)?;
    module.add("Cancelled", module.py().get_type::<rows::Cancelled>())?;
    module.add_class::<rows::Flag>()?;
    module.add_class::<rows::Part>()?;
    module.add_function(wrap_pyfunction!(rows::add_answers, module)?)?;
    module.add_function(wrap_pyfunction!(rows::fit_rows, module)?)?;
    module.add_function(wrap_pyfunction!(rows::part_rows, module)?)?;
    module.add_class::<Schema>()?;
    module.add_class::<Summary>()?;
    module.add_function(wrap_pyfunction!(check_dense, module)?)?;
    module.add_function(wrap_pyfunction!(measures, module)?)?;
    #[cfg(feature = "provoke-panic")]
    module.add_function(wrap_pyfunction!(provoke_panic, module)?)?;
    module.add_function(wrap_pyfunction!(defaults, module)?)?;
    module.add_function(wrap_pyfunction!(write_file, module)?)?;
    module.add_function(wrap_pyfunction!(bounds, module)?)
}
