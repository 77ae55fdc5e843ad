//! Errors, JSON values and matrices as Python has them.

use numpy::{
    Element, IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyFloatingPointError, PyMemoryError, PyOSError, PyRuntimeError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;
use svml::{Error, Matrix, Remedy};

create_exception!(
    svml._core,
    ParameterError,
    PyValueError,
    "A parameter outside its range: its name in the library, the value and what would be allowed."
);

/// An error as the exception that scikit-learn would raise: ValueError for data, an ArithmeticError where
/// usable data led to numbers that are not.
pub fn to_python(error: Error) -> PyErr {
    let text = error.with_remedy_as(in_python);
    match error {
        Error::Parameter { name, value, bound } => {
            ParameterError::new_err((name.into_owned(), value, bound))
        }
        Error::TooLarge { .. } => PyMemoryError::new_err(text),
        Error::Numerical { .. } | Error::NotPositiveDefinite { .. } => {
            PyFloatingPointError::new_err(text)
        }
        Error::NotAClassifier | Error::Unsupported(_) | Error::Device { .. } => {
            PyRuntimeError::new_err(text)
        }
        // From the number Python knows which kind of OSError it is.
        Error::Io { path, source } => match source.raw_os_error().or(number_of(source.kind())) {
            Some(code) => {
                let cause = source.to_string();
                let cause = cause.split(" (os error").next().unwrap_or_default().to_owned();
                PyOSError::new_err((code, cause, path.into_os_string()))
            }
            None => PyOSError::new_err(text),
        },
        // An interrupt from Python is raised by whoever saw the signal, so this was the time limit.
        Error::Interrupted => PyTimeoutError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The number of the system, on those that Python runs on, for what the library finds out by itself.
fn number_of(kind: std::io::ErrorKind) -> Option<i32> {
    match kind {
        std::io::ErrorKind::NotFound => Some(2),
        std::io::ErrorKind::PermissionDenied => Some(13),
        std::io::ErrorKind::IsADirectory => Some(21),
        std::io::ErrorKind::InvalidInput => Some(22),
        _ => None,
    }
}

/// What to do about an error, in the words of the package.
fn in_python(remedy: Remedy) -> String {
    match remedy {
        Remedy::DropOrImpute => "leave out rows with missing values, or fit with missing=\"impute\"",
        Remedy::DropMissing => "leave out rows with missing values",
        Remedy::AcceptNewCategories => {
            "correct it, or fit with categories=\"onehot\" or missing=\"impute\", which accept new categories"
        }
        Remedy::SayText => {
            "correct it; or treat such values as missing (missing=\"impute\"); or, if the column is text on purpose, name it in text=[...]"
        }
        Remedy::UseCodes => "fit with categories=\"codes\"",
        Remedy::UseIdentifiers => "fit with categories=\"codes\" to use such columns anyway",
        Remedy::RaiseMemoryLimit => {
            "raise memory_limit if the computer has enough memory, use fewer rows, or train on landmarks, which do not need this matrix (landmarks=2000, with the default validation)"
        }
        Remedy::SmallerForm => {
            "use a form with fewer parameters (form=\"diagonal\", \"sphere\" or \"rank=2\", or n_components), fewer columns, or a computer with more memory; if the estimator has a memory_limit, raising it may help"
        }
        Remedy::UseProcessor => {
            "use device=\"cpu\" to compute without it, or device=\"auto\" to use a GPU only if there is one"
        }
        Remedy::FitDevice => {
            "train on landmarks, which do not need this matrix (landmarks=2000, with the default validation), use fewer rows, raise memory_limit if the GPU has enough memory, or use device=\"cpu\""
        }
        Remedy::LowerCost => "use a smaller C: lower C_init, with learn_C=False",
        Remedy::MoreTime => "raise time_limit",
        Remedy::TrainOneGaussian => "choose a form, as in SVMLClassifier(form=\"diagonal\")",
        Remedy::TrainClassifier => "use SVMLClassifier",
        Remedy::RemoveCheckpoint => {
            "use a different file for this fit (the parameter checkpoint), or delete this one to start over"
        }
        Remedy::OtherCheckpoint => {
            "wait until that fit has finished, or use a different file (the parameter checkpoint)"
        }
        // The words of the library name nothing that differs here.
        other => return other.to_string(),
    }
    .to_owned()
}

/// A JSON value as a Python object.
pub fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match number.as_u64() {
            Some(integer) => integer.into_pyobject(py)?.into_any(),
            None => match number.as_i64() {
                Some(integer) => integer.into_pyobject(py)?.into_any(),
                None => number.as_f64().into_pyobject(py)?,
            },
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(object(py, value)?)?;
            }
            list.into_any()
        }
        Value::Object(entries) => dict(py, entries)?.into_any(),
    })
}

/// A JSON object as a dict.
pub fn dict<'py>(
    py: Python<'py>,
    entries: &serde_json::Map<String, Value>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in entries {
        dict.set_item(name, object(py, value)?)?;
    }
    Ok(dict)
}

/// Rows from Python: an array of doubles or of single floats, of any order in memory.
#[derive(FromPyObject)]
pub enum Rows<'py> {
    /// float64
    #[pyo3(transparent)]
    Double(PyReadonlyArray2<'py, f64>),
    /// float32
    #[pyo3(transparent)]
    Single(PyReadonlyArray2<'py, f32>),
}

/// Rows as a matrix, row after row, by one copy. They are not borrowed: a job that was interrupted may go on for a
/// moment after its call, when the array may be gone or changed.
pub fn matrix(x: &Rows<'_>) -> PyResult<Matrix> {
    match x {
        Rows::Double(x) => copied(x, |value| value),
        Rows::Single(x) => copied(x, f64::from),
    }
}

fn copied<T: Element + Copy>(
    x: &PyReadonlyArray2<'_, T>,
    value: impl Fn(T) -> f64,
) -> PyResult<Matrix> {
    let (n, d) = (x.shape()[0], x.shape()[1]);
    let bytes = n.saturating_mul(d).saturating_mul(8);
    svml::internals::room_for(bytes, "a copy of the rows").map_err(to_python)?;
    let values = match x.as_slice() {
        Ok(values) if x.is_c_contiguous() => values.iter().map(|v| value(*v)).collect(),
        _ => x.as_array().iter().map(|v| value(*v)).collect(),
    };
    Matrix::new(n, d, values).map_err(to_python)
}

/// A matrix as an array, which takes over its memory.
pub fn array(py: Python<'_>, matrix: Matrix) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let shape = [matrix.rows(), matrix.cols()];
    matrix.into_vec().into_pyarray(py).reshape(shape)
}
