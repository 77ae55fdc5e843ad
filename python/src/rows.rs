//! Rows that lie in parts, each in some process: a part answers questions, answers are added, and a fit asks them.
//!
//! Questions and answers are bytes here. Who carries them from the process of the fit to those of the parts, and adds the
//! answers up on the way back, is up to Python.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map as JsonMap, Value};
use svml::data::Missing;
use svml::internals::landmarks::{
    self, Answer, LandmarkKernel, PART, Question, Rows as AskedRows, Setting, blocks_in,
};
use svml::internals::{ManyRows, Watch};
use svml::{Dataset, Device, Error, Matrix, Method, Metric, Run, Step};

use crate::Model;
use crate::convert::{Rows, array, matrix, to_python};
use crate::job::{Interrupt, Observer, Reporter, run, run_watched};
use crate::tables::Schema;

create_exception!(
    svml._core,
    Cancelled,
    PyException,
    "Raised by whoever is asked for an answer, to end a fit with the best so far."
);

/// A flag that an interrupt of a fit raises, for whoever waits for an answer meanwhile.
#[pyclass(frozen, module = "svml._core")]
pub struct Flag {
    inner: Arc<AtomicBool>,
}

#[pymethods]
impl Flag {
    #[new]
    fn new() -> Self {
        Self { inner: Arc::default() }
    }

    /// Whether it has been raised.
    fn is_set(&self) -> bool {
        self.inner.load(Ordering::Relaxed)
    }

    /// Raises it.
    fn set(&self) {
        self.inner.store(true, Ordering::Relaxed);
    }
}

/// Most rows of a part.
#[pyfunction]
pub fn part_rows() -> usize {
    PART
}

fn encoded<T: Serialize>(value: &T) -> PyResult<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> PyResult<T> {
    postcard::from_bytes(bytes).map_err(|error| {
        PyValueError::new_err(format!("a message of another version of svml: {error}"))
    })
}

/// What a question comes with: the metric of the landmarks that it is about.
type Message<Q> = (Option<Metric>, Q);

/// A part of the rows of a table, in the memory of this process.
#[pyclass(frozen, module = "svml._core")]
pub struct Part {
    inner: Arc<landmarks::Part<'static>>,
    number: usize,
    classes: usize,
    coded: Vec<bool>,
    bytes: usize,
}

#[pymethods]
impl Part {
    /// Rows with their classes, by number, and weights. `number` tells which part it is of all, and `coded` which columns
    /// hold codes of categories.
    #[new]
    fn new(
        x: Rows<'_>,
        y: PyReadonlyArray1<'_, i64>,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        number: usize,
        classes: usize,
        coded: Vec<bool>,
    ) -> PyResult<Self> {
        let x = matrix(&x)?;
        let place = |y: &i64| usize::try_from(*y).ok().filter(|y| *y < classes);
        let class: Option<Vec<usize>> = y.as_array().iter().map(place).collect();
        let class = class.filter(|class| class.len() == x.rows()).ok_or_else(|| {
            PyValueError::new_err("there must be a class for each row, a number below `classes`")
        })?;
        let weights = match weights {
            Some(weights) => weights.as_array().iter().copied().collect(),
            None => vec![1.0; x.rows()],
        };
        if weights.len() != x.rows() || x.rows() > PART {
            let text = format!("a part has at most {PART} rows, and a weight for each");
            return Err(PyValueError::new_err(text));
        }
        let bytes = 8 * x.rows() * (x.cols() + 4);
        let x = std::borrow::Cow::Owned(x);
        let inner = landmarks::Part::of_rows(x, (number, 0), &class, &weights, classes, &coded);
        Ok(Self { inner: Arc::new(inner), number, classes, coded, bytes })
    }

    /// The answer of these rows to a question. So many bytes may be kept for the next.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        setting: Option<&[u8]>,
        question: &[u8],
        keep: u64,
        threads: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let part = self.inner.clone();
        let (metric, question): Message<Question> = decoded(question)?;
        let setting = match setting {
            Some(bytes) => Some((hash(bytes), decoded::<Setting>(bytes)?)),
            None => None,
        };
        let answer = run(py, threads, move || {
            let kernel = match (setting, metric) {
                (Some((of, setting)), Some(metric)) => Some(kernel(of, setting, metric)?),
                _ => None,
            };
            let blocks = blocks_in(keep, kernel.as_ref().map_or(0, |kernel| kernel.m()));
            part.answer(kernel.as_deref(), &question, blocks, &Watch::default())
        })?;
        Ok(PyBytes::new(py, &encoded(&answer)?))
    }

    /// Bytes of memory that the rows take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes
    }

    fn __sizeof__(&self) -> usize {
        self.bytes
    }

    /// Another process gets the rows; what was kept stays here.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        let (x, class, weight) = self.inner.contents();
        let class: Vec<i64> = class.into_iter().map(|class| class as i64).collect();
        let arguments = (
            array(py, x.clone())?,
            class.into_pyarray(py),
            weight.into_pyarray(py),
            self.number,
            self.classes,
            self.coded.clone(),
        );
        Ok((py.get_type::<Self>(), arguments.into_pyobject(py)?))
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// What all parts in this process compute from the landmarks, for the last setting and metric.
static LAST: Mutex<Option<(u64, Arc<LandmarkKernel>)>> = Mutex::new(None);

fn kernel(of: u64, setting: Setting, metric: Metric) -> svml::Result<Arc<LandmarkKernel>> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, kernel)) = &*last
        && *known == of
        && kernel.metric == metric
    {
        return Ok(kernel.clone());
    }
    let kernel = Arc::new(LandmarkKernel::new(setting, metric, &Watch::default())?);
    *last = Some((of, kernel.clone()));
    Ok(kernel)
}

/// The answer of two parts, of which the first comes before the second.
#[pyfunction]
pub fn add_answers<'py>(
    py: Python<'py>,
    first: &[u8],
    second: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let (first, second): (Answer, Answer) = (decoded(first)?, decoded(second)?);
    let sum = py.detach(|| encoded(&first.merged(second)))?;
    Ok(PyBytes::new(py, &sum))
}

/// Rows that Python asks for answers.
struct Elsewhere {
    /// Called with what the question is about, the number and the bytes of its setting, and the question.
    ask: Py<PyAny>,
    /// The number and the bytes of the last setting.
    setting: Mutex<Option<(u64, Py<PyBytes>)>>,
    /// What went wrong there.
    failure: Arc<Mutex<Option<PyErr>>>,
}

impl Elsewhere {
    fn call(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> PyResult<Answer> {
        let message: Message<&Question> = (kernel.map(|kernel| kernel.metric.clone()), question);
        let message = encoded(&message)?;
        let answer: Vec<u8> = Python::attach(|py| {
            let setting = kernel.map(|kernel| self.setting(py, &kernel.setting)).transpose()?;
            let number = kernel.map(|kernel| kernel.setting.id);
            let message = PyBytes::new(py, &message);
            let answer = self.ask.call1(py, (question.name(), number, setting, message))?;
            answer.extract::<Vec<u8>>(py)
        })?;
        decoded(&answer)
    }

    /// The bytes of a setting.
    fn setting(&self, py: Python<'_>, setting: &Setting) -> PyResult<Py<PyBytes>> {
        let mut last = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((number, bytes)) = &*last
            && *number == setting.id
        {
            return Ok(bytes.clone_ref(py));
        }
        let bytes = PyBytes::new(py, &encoded(setting)?).unbind();
        *last = Some((setting.id, bytes.clone_ref(py)));
        Ok(bytes)
    }
}

impl AskedRows for Elsewhere {
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> svml::Result<Answer> {
        self.call(kernel, question).map_err(|error| {
            if !Python::attach(|py| error.is_instance_of::<Cancelled>(py)) {
                *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
            Error::Interrupted
        })
    }
}

/// Learns from rows that lie elsewhere. `ask` is called with the name of a question, the number and the bytes of the setting
/// that it is about, or None, and its bytes, and returns the bytes of the answer of all rows: the answers of the parts,
/// added two by two in their order, then their sums two by two. An interrupt raises the flag; it ends the fit with the best
/// so far as soon as `ask` returns or raises, and so does `Cancelled` raised by it. Any other exception is that of the fit.
#[pyfunction]
#[pyo3(signature = (params, ask, classes, *, columns, names=None, schema=None, impute=false, threads=1,
                    time_limit=None, device="auto", observer=None, interrupt=None))]
#[allow(clippy::too_many_arguments)]
pub fn fit_rows(
    py: Python<'_>,
    params: &str,
    ask: Py<PyAny>,
    classes: Vec<String>,
    columns: usize,
    names: Option<Vec<String>>,
    schema: Option<&Schema>,
    impute: bool,
    threads: usize,
    time_limit: Option<f64>,
    device: &str,
    observer: Option<Bound<'_, PyAny>>,
    interrupt: Option<&Flag>,
) -> PyResult<Model> {
    let device: Device = device.parse().map_err(to_python)?;
    let mut method: Method = "svml".parse().map_err(to_python)?;
    let params: JsonMap<String, Value> =
        serde_json::from_str(params).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    for (name, value) in &params {
        method.set_json(name, value).map_err(to_python)?;
    }
    // A table with a row for each class has the schema of all.
    let places: Vec<usize> = (0..classes.len()).collect();
    let mut table = Dataset::new(Matrix::zeros(classes.len(), columns), &places)
        .and_then(|data| data.with_class_names(classes))
        .map_err(to_python)?;
    if let Some(names) = names {
        table = table.with_names(names).map_err(to_python)?;
    }
    if impute {
        table = table.with_missing(Missing::Impute).map_err(to_python)?;
    }
    if let Some(schema) = schema {
        table = table.with_schema((*schema.inner).clone()).map_err(to_python)?;
    }
    let limit = match time_limit.map(Duration::try_from_secs_f64).transpose() {
        Ok(limit) => limit,
        // What is too long for the clock is no limit.
        Err(_) if time_limit > Some(0.0) => None,
        Err(error) => return Err(PyValueError::new_err(format!("time_limit: {error}"))),
    };
    let failure = Arc::<Mutex<Option<PyErr>>>::default();
    let rows = Elsewhere { ask, setting: Mutex::new(None), failure: failure.clone() };
    let interrupt = interrupt.map_or_else(Arc::default, |flag| flag.inner.clone());
    let (watched, flag) = (observer.is_some(), interrupt.clone());
    let observer = observer.as_ref().map(|callable| Observer::new(callable, &method));
    let job = move |reporter: &Reporter<svml::Model>| {
        let mut watch =
            Run::new().interrupt(flag).device(device).observer(|step: &Step| match watched {
                true => reporter.report(step),
                false => ControlFlow::Continue(()),
            });
        if let Some(limit) = limit {
            watch = watch.time_limit(limit);
        }
        let Method::Svml(svml) = &method else {
            return Err(Error::Unsupported("rows that lie in parts with this method".to_owned()));
        };
        let (schema, classes) = (table.schema(), table.classes());
        ManyRows { rows: &rows, schema, classes }.fit(&method, svml, &mut watch)
    };
    let fitted = run_watched(py, threads, &interrupt, observer, Interrupt::KeepsTheBest, job);
    match failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(error),
        None => Ok(fitted?.into()),
    }
}
