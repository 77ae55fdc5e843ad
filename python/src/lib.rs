//! What Python sees of the library: one class, `Model`, made of arrays and of parameters as JSON.
//!
//! Estimators, checks of input and pictures are written in Python, in `python/svml`. Here a call becomes a job
//! on threads of its own while the interpreter goes on: the calling thread lets go of the interpreter's
//! lock, looks for signals every few milliseconds and hands the steps of a fit to an observer. No thread
//! outlives its call, so a process may fork at any time.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use svml::data::Missing;
use svml::learn::{Control, Itml, Lmnn, Nca, Progress, Step};
use svml::map::{Map, Point};
use svml::{Dataset, Error, Matrix, Params, Rival};

create_exception!(
    svml._core,
    ParameterError,
    PyValueError,
    "A parameter outside its range: its name in the library, the value and what would be allowed."
);

/// Time between two looks for signals.
const POLL: Duration = Duration::from_millis(10);
/// Time in which a job that was told to end may do so before its result is no longer waited for.
const GRACE: Duration = Duration::from_millis(100);

/// A trained model: the library's, with arrays for its parts.
#[pyclass(frozen, module = "svml._core")]
struct Model {
    inner: Arc<svml::Model>,
}

/// What a job tells the thread that waits for it.
enum Event<T> {
    /// A step of a fit, as JSON.
    Step(String),
    /// The end; a panic is a text.
    Done(Result<svml::Result<T>, String>),
}

/// The job's side of the conversation: a step goes out, whether to go on comes back.
struct Reporter<T> {
    events: Sender<Event<T>>,
    answers: Receiver<ControlFlow<()>>,
}

impl<T> Reporter<T> {
    fn report(&self, step: &impl Serialize, seconds: f64) -> ControlFlow<()> {
        let mut value = json!(step);
        value["seconds"] = json!(seconds);
        // Whoever has gone wants no more steps.
        if self.events.send(Event::Step(value.to_string())).is_err() {
            return ControlFlow::Break(());
        }
        self.answers.recv().unwrap_or(ControlFlow::Break(()))
    }
}

/// Runs a job on `threads` threads, without the interpreter's lock. A signal, or an exception of the
/// observer, raises the flag and ends the wait.
fn run<T: Send + 'static>(
    py: Python<'_>,
    threads: usize,
    interrupt: &AtomicBool,
    observer: Option<&Bound<'_, PyAny>>,
    job: impl FnOnce(&Reporter<T>) -> svml::Result<T> + Send + 'static,
) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .thread_name(|_| "svml".to_owned())
        .build()
        .map_err(|error| {
            PyRuntimeError::new_err(format!("no threads could be started: {error}"))
        })?;
    let (events, mut inbox) = channel();
    let (reply, answers) = channel();
    pool.spawn(move || {
        let reporter = Reporter { events, answers };
        let done = catch_unwind(AssertUnwindSafe(|| job(&reporter)));
        // If nobody waits any more, nobody wants to know.
        let _ = reporter.events.send(Event::Done(done.map_err(|cause| panic_text(&*cause))));
    });
    loop {
        let event;
        (inbox, event) = py.detach(move || {
            let event = inbox.recv_timeout(POLL);
            (inbox, event)
        });
        let ended = match event {
            Ok(Event::Done(Ok(result))) => return result.map_err(to_python),
            Ok(Event::Done(Err(panic))) => return Err(internal(&panic)),
            Err(RecvTimeoutError::Disconnected) => return Err(internal("a job without an end")),
            Err(RecvTimeoutError::Timeout) => py.check_signals().err(),
            Ok(Event::Step(step)) => {
                let asked = match observer {
                    Some(observer) => observer.call1((step,)).and_then(|stop| stop.is_truthy()),
                    None => Ok(false),
                };
                match asked {
                    Ok(stop) => {
                        let answer =
                            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                        // A job that has ended meanwhile says so itself.
                        let _ = reply.send(answer);
                        py.check_signals().err()
                    }
                    Err(error) => Some(error),
                }
            }
        };
        if let Some(error) = ended {
            interrupt.store(true, Ordering::Relaxed);
            drop(reply);
            // As a rule it ends at once, and its memory is free again before the caller goes on.
            py.detach(move || while let Ok(Event::Step(_)) = inbox.recv_timeout(GRACE) {});
            return Err(error);
        }
    }
}

/// The text of a panic.
fn panic_text(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| cause.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown cause".to_owned())
}

fn internal(cause: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "internal error of svml ({cause}); please report it with the data that caused it"
    ))
}

fn to_python(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Parameter { name, value, bound } => ParameterError::new_err((name, value, bound)),
        Error::TooLarge { .. } => PyMemoryError::new_err(text),
        Error::Io { path, source } => match source.raw_os_error() {
            Some(code) => {
                let cause = source.to_string();
                let cause = cause.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((code, cause, path.into_os_string()))
            }
            None => PyOSError::new_err(text),
        },
        // An interrupt from Python is raised by whoever saw the signal.
        Error::Interrupted => PyTimeoutError::new_err(
            "the time limit was over before there was any result; raise time_limit",
        ),
        _ => PyValueError::new_err(text),
    }
}

/// Parameters from a JSON object of those that differ from the defaults; the one at fault is named.
fn parameters<P: Default + Serialize + DeserializeOwned>(given: &str) -> PyResult<P> {
    let odd = |error: serde_json::Error| PyTypeError::new_err(error.to_string());
    let given: serde_json::Map<String, Value> = serde_json::from_str(given).map_err(odd)?;
    let mut all = serde_json::to_value(P::default()).map_err(odd)?;
    let mut parameters = P::default();
    for (name, value) in given {
        let text = value.to_string();
        all[&name] = value;
        parameters = P::deserialize(&all)
            .map_err(|error| ParameterError::new_err((name, text, wanted(&error.to_string()))))?;
    }
    Ok(parameters)
}

/// What a message of the deserialiser says was expected, in words of Python.
fn wanted(message: &str) -> String {
    let marks = ["it must be ", "expected "];
    let rest = marks.iter().find_map(|mark| message.split_once(mark)).map(|(_, rest)| rest);
    match rest.unwrap_or(message) {
        "f64" => "a finite number".to_owned(),
        "usize" | "u64" => "an integer that is not negative".to_owned(),
        "a boolean" => "True or False".to_owned(),
        "a string" => "a text".to_owned(),
        "a tuple of size 2" => "a pair of numbers".to_owned(),
        rest => rest.replace('`', "'"),
    }
}

/// A method by name.
enum Method {
    Svml(Params),
    Metric(Rival),
}

impl Method {
    fn new(name: &str, given: &str) -> PyResult<Self> {
        Ok(match name {
            "svml" => Self::Svml(parameters(given)?),
            "nca" => Self::Metric(parameters::<Nca>(given)?.into()),
            "lmnn" => Self::Metric(parameters::<Lmnn>(given)?.into()),
            "itml" => Self::Metric(parameters::<Itml>(given)?.into()),
            _ => return Err(PyValueError::new_err(format!("there is no method '{name}'"))),
        })
    }
}

/// The parameters of a method and their defaults, as JSON.
#[pyfunction]
fn defaults(method: &str) -> PyResult<String> {
    Ok(match Method::new(method, "{}")? {
        Method::Svml(params) => json!(params),
        Method::Metric(Rival::Nca(nca)) => json!(nca),
        Method::Metric(Rival::Lmnn(lmnn)) => json!(lmnn),
        Method::Metric(Rival::Itml(itml)) => json!(itml),
        Method::Metric(_) => Value::Null,
    }
    .to_string())
}

/// A job that panics, for the test that a panic becomes an exception.
#[pyfunction]
fn provoke_panic(py: Python<'_>) -> PyResult<()> {
    #[allow(clippy::panic)]
    run(py, 1, &AtomicBool::new(false), None, |_| panic!("on purpose"))
}

fn rows(x: &PyReadonlyArray2<'_, f64>) -> PyResult<Matrix> {
    let (n, d) = (x.shape()[0], x.shape()[1]);
    // Row after row, whatever the order in memory.
    let values = match x.as_slice() {
        Ok(values) if x.is_c_contiguous() => values.to_vec(),
        _ => x.as_array().iter().copied().collect(),
    };
    Matrix::new(n, d, values).map_err(to_python)
}

fn array<'py>(py: Python<'py>, matrix: &Matrix) -> PyResult<Bound<'py, PyArray2<f64>>> {
    matrix.as_slice().to_vec().into_pyarray(py).reshape([matrix.rows(), matrix.cols()])
}

impl Model {
    /// A question about rows, answered on `threads` threads.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        x: &PyReadonlyArray2<'_, f64>,
        threads: usize,
        question: impl FnOnce(&svml::Model, &Matrix) -> svml::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (model, x) = (self.inner.clone(), rows(x)?);
        run(py, threads, &AtomicBool::new(false), None, move |_| question(&model, &x))
    }
}

impl From<svml::Model> for Model {
    fn from(model: svml::Model) -> Self {
        Self { inner: Arc::new(model) }
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

    /// Learns from rows `x`, whose classes `y` are places in `classes`.
    #[staticmethod]
    #[pyo3(signature = (method, params, x, y, classes, *, weights=None, names=None, threads=1,
                        time_limit=None, observer=None))]
    #[allow(clippy::too_many_arguments)]
    fn fit(
        py: Python<'_>,
        method: &str,
        params: &str,
        x: PyReadonlyArray2<'_, f64>,
        y: PyReadonlyArray1<'_, i64>,
        classes: Vec<String>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        names: Option<Vec<String>>,
        threads: usize,
        time_limit: Option<f64>,
        observer: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let method = Method::new(method, params)?;
        let y: Vec<i64> = y.as_array().iter().copied().collect();
        let mut data = Dataset::new(rows(&x)?, &y)
            .and_then(|data| data.with_class_names(classes))
            .map_err(to_python)?;
        if let Some(names) = names {
            data = data.with_names(names).map_err(to_python)?;
        }
        if let Some(weights) = weights {
            let weights = weights.as_array().iter().copied().collect();
            data = data.with_weights(weights).map_err(to_python)?;
        }
        let limit = match time_limit.map(Duration::try_from_secs_f64).transpose() {
            Ok(limit) => limit,
            Err(error) => return Err(PyValueError::new_err(format!("time_limit: {error}"))),
        };
        let interrupt = Arc::<AtomicBool>::default();
        let (watched, flag) = (observer.is_some(), interrupt.clone());
        let model = run(py, threads, &interrupt, observer.as_ref(), move |reporter| {
            let mut step = |step: &Step| reporter.report(step, step.seconds);
            let mut progress = |step: &Progress| reporter.report(step, step.seconds);
            let mut control = Control { interrupt: flag, time_limit: limit, ..Control::default() };
            if watched {
                control.observer = Some(&mut step);
                control.progress = Some(&mut progress);
            }
            match &method {
                Method::Svml(params) => svml::Model::fit_with(&data, params, &mut control),
                Method::Metric(rival) => svml::Model::fit_metric_with(&data, rival, &mut control),
            }
        })?;
        Ok(model.into())
    }

    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let job = move |_: &Reporter<svml::Model>| svml::Model::load(path);
        Ok(run(py, 1, &AtomicBool::new(false), None, job)?.into())
    }

    /// Writes the model file, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let model = self.inner.clone();
        run(py, 1, &AtomicBool::new(false), None, move |_| model.save(path))
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
    fn decision<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, &self.ask(py, &x, threads, svml::Model::decision)?)
    }

    /// The class of each row, as a place in `classes`.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<usize>>> {
        Ok(self.ask(py, &x, threads, svml::Model::predict)?.into_pyarray(py))
    }

    /// Probabilities of the classes. // (n, classes)
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, &self.ask(py, &x, threads, svml::Model::probabilities)?)
    }

    /// Rows mapped by the metric. // (n, rank)
    fn transform<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, &self.ask(py, &x, threads, svml::Model::transform)?)
    }

    /// The map of rows in two dimensions, as the fields of the library's.
    #[pyo3(signature = (x, labels, directions, threads))]
    fn map<'py>(
        &self,
        py: Python<'py>,
        x: PyReadonlyArray2<'py, f64>,
        labels: Option<Vec<String>>,
        directions: Option<[usize; 2]>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let map = self.ask(py, &x, threads, move |model, x| match directions {
            Some(directions) => Map::along(model, x, labels.as_deref(), directions),
            None => Map::new(model, x, labels.as_deref()),
        })?;
        let points = &map.points;
        let class = |p: &Point| p.class.map_or(-1, |class| class as i64);
        let grid = |length: usize| [length / map.columns, map.columns];
        let fields = PyDict::new(py);
        fields.set_item("axes", array(py, &map.axes)?)?;
        fields.set_item("which", map.which)?;
        fields.set_item("flat", map.flat)?;
        fields.set_item("exact", map.exact)?;
        fields.set_item("rows", map.rows)?;
        fields.set_item("x_range", map.x_range)?;
        fields.set_item("y_range", map.y_range)?;
        let x: Vec<f64> = points.iter().map(|p| p.x).collect();
        let y: Vec<f64> = points.iter().map(|p| p.y).collect();
        fields.set_item("x", x.into_pyarray(py))?;
        fields.set_item("y", y.into_pyarray(py))?;
        let classes: Vec<i64> = points.iter().map(class).collect();
        fields.set_item("class", classes.into_pyarray(py))?;
        let support: Vec<bool> = points.iter().map(|p| p.support).collect();
        fields.set_item("support", support.into_pyarray(py))?;
        let decision = match map.decision {
            Some(h) => Some(h.clone().into_pyarray(py).reshape(grid(h.len()))?),
            None => None,
        };
        fields.set_item("decision", decision)?;
        let shape = grid(map.decided.len());
        fields.set_item("decided", map.decided.into_pyarray(py).reshape(shape)?)?;
        Ok(fields)
    }

    /// Whether it can classify.
    #[getter]
    fn has_machine(&self) -> bool {
        self.inner.has_machine()
    }

    /// The names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.inner.classes().to_vec()
    }

    /// Whether the classes are numbers.
    #[getter]
    fn numeric(&self) -> bool {
        self.inner.schema().target().numeric
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

    /// The map on features as they are. // (rank, features)
    #[getter]
    fn components<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, &self.inner.components())
    }

    /// M = L'L on standardised features. // (features, features)
    #[getter]
    fn mahalanobis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, &self.inner.acting_metric().mahalanobis())
    }

    /// The diagonal of M.
    #[getter]
    fn relevance<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.acting_metric().relevance().into_pyarray(py)
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

    /// C.
    #[getter]
    fn cost(&self) -> f64 {
        self.inner.cost()
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
        array(py, self.inner.support_vectors())
    }

    /// Their coefficients. // (classes - 1, support vectors)
    #[getter]
    fn beta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.inner.beta())
    }

    /// The offset of each pair of classes.
    #[getter]
    fn bias<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.bias().to_vec().into_pyarray(py)
    }

    /// How the fit went, as JSON, with the steps of each form as `stages`.
    #[getter]
    fn report(&self) -> String {
        let report = self.inner.report();
        let stages: Vec<Value> = (report.stages().iter())
            .map(|stage| json!([stage.to_string(), stage.first, stage.last]))
            .collect();
        let mut value = json!(report);
        value["stages"] = json!(stages);
        value.to_string()
    }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ParameterError", module.py().get_type::<ParameterError>())?;
    module.add_class::<Model>()?;
    module.add_function(wrap_pyfunction!(defaults, module)?)?;
    module.add_function(wrap_pyfunction!(provoke_panic, module)?)
}
