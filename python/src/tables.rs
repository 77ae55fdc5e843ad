//! Tables with texts, as Python hands them over: columns of numbers, and of codes into a list of texts.

use std::sync::Arc;

use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use svml::data::{Categories, Encoded, Frame, Kind, Missing};

use crate::convert::{array, to_python};
use crate::job::run;

/// A column: `(name, numbers)`, `(name, codes, texts)`, or `(name, codes, texts, True)` for categories that stay
/// categories even if all of them are numbers. A name of None is that of a column without a name.
#[derive(FromPyObject)]
pub enum Column<'py> {
    Numbers(Option<String>, PyReadonlyArray1<'py, f64>),
    Texts(Option<String>, PyReadonlyArray1<'py, i32>, Vec<String>),
    Categories(Option<String>, PyReadonlyArray1<'py, i32>, Vec<String>, bool),
}

impl Column<'_> {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Numbers(name, _) | Self::Texts(name, ..) | Self::Categories(name, ..) => {
                name.as_deref()
            }
        }
    }

    fn push(self, frame: &mut Frame) -> svml::Result<()> {
        let name = self.name().unwrap_or_default().to_owned();
        let copied = |codes: PyReadonlyArray1<'_, i32>| codes.as_array().iter().copied().collect();
        match self {
            Self::Numbers(_, values) => {
                frame.push_numbers(&name, values.as_array().iter().copied().collect())
            }
            Self::Categories(_, codes, texts, true) => {
                frame.push_categories(&name, copied(codes), texts)
            }
            Self::Texts(_, codes, texts) | Self::Categories(_, codes, texts, false) => {
                frame.push_texts(&name, copied(codes), texts)
            }
        }
    }
}

/// The library's table. Columns have names if all of them have.
pub fn frame(columns: Vec<Column<'_>>) -> PyResult<Frame> {
    let mut frame = Frame::new(columns.iter().all(|column| column.name().is_some()));
    for column in columns {
        column.push(&mut frame).map_err(to_python)?;
    }
    Ok(frame)
}

fn no_json(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// What has to be known of a table, or of a part of it, to decide how its columns become numbers.
#[pyclass(frozen, eq, module = "svml._core")]
#[derive(Clone, PartialEq)]
pub struct Summary {
    inner: svml::data::Summary,
}

#[pymethods]
impl Summary {
    /// The summary of columns.
    #[new]
    fn new(py: Python<'_>, columns: Vec<Column<'_>>) -> PyResult<Self> {
        let frame = frame(columns)?;
        let inner = run(py, 1, move || svml::data::Summary::of(&frame))?;
        Ok(Self { inner })
    }

    /// The summary of two parts of a table together, whichever comes first.
    fn merge(&self, other: &Self) -> PyResult<Self> {
        let inner = self.inner.clone().merge(other.inner.clone()).map_err(to_python)?;
        Ok(Self { inner })
    }

    /// Number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.inner.rows()
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.names().map(str::to_owned).collect()
    }

    /// Of each column the number of missing values.
    #[getter]
    fn missing(&self) -> Vec<usize> {
        self.inner.missing()
    }

    /// Of each column the number of different texts.
    #[getter]
    fn distinct(&self) -> Vec<usize> {
        self.inner.distinct()
    }

    /// Columns that number the rows.
    #[getter]
    fn row_numbers(&self) -> Vec<String> {
        self.inner.row_numbers().into_iter().map(str::to_owned).collect()
    }

    /// Columns of text that are nearly all numbers: name, how many are numbers and how many not, and one that is not.
    #[getter]
    fn mistyped(&self) -> Vec<(String, usize, usize, String)> {
        let owned = |(name, numbers, others, text): (&str, usize, usize, &str)| {
            (name.to_owned(), numbers, others, text.to_owned())
        };
        self.inner.mistyped().into_iter().map(owned).collect()
    }

    /// The summary as text.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner).map_err(no_json)
    }

    /// The summary of a text of `to_json`.
    #[classmethod]
    fn from_json(_cls: &Bound<'_, PyType>, text: &str) -> PyResult<Self> {
        Ok(Self { inner: serde_json::from_str(text).map_err(no_json)? })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Self>().getattr("from_json")?, (self.to_json()?,)))
    }
}

/// How the columns of a table become numbers.
#[pyclass(frozen, eq, module = "svml._core")]
#[derive(Clone, PartialEq)]
pub struct Schema {
    pub inner: Arc<svml::data::Schema>,
}

impl From<svml::data::Schema> for Schema {
    fn from(schema: svml::data::Schema) -> Self {
        Self { inner: Arc::new(schema) }
    }
}

#[pymethods]
impl Schema {
    /// The schema of a table. `target` is the name of the column of classes, `categories` is auto, codes or onehot,
    /// `missing` refuse, drop or impute.
    #[new]
    #[pyo3(signature = (summary, *, target="class", categories="auto", missing="refuse"))]
    fn new(summary: &Summary, target: &str, categories: &str, missing: &str) -> PyResult<Self> {
        let categories: Categories = categories.parse().map_err(to_python)?;
        let missing: Missing = missing.parse().map_err(to_python)?;
        svml::data::Schema::of_summary(&summary.inner, target, categories, missing)
            .map(Self::from)
            .map_err(to_python)
    }

    /// The numbers of a table. Columns are matched by name if there are names, else by place. // (n, width)
    #[pyo3(signature = (columns, threads=1))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        columns: Vec<Column<'py>>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (schema, frame) = (self.inner.clone(), frame(columns)?);
        array(py, run(py, threads, move || schema.encode(&frame))?)
    }

    /// Names of the columns of the table.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.inner.columns().iter().map(|column| column.name.clone()).collect()
    }

    /// Whether the names were given.
    #[getter]
    fn named(&self) -> bool {
        self.inner.named()
    }

    /// Of each column of the table, what becomes of it: number, codes, onehot or ignored.
    #[getter]
    fn kinds(&self) -> Vec<&'static str> {
        let word = |kind: &Kind| match kind {
            Kind::Number => "number",
            Kind::Codes { .. } => "codes",
            Kind::OneHot { .. } => "onehot",
            _ => "ignored",
        };
        self.inner.columns().iter().map(|column| word(&column.kind)).collect()
    }

    /// Which columns are left out because they look like identifiers, in a sentence; None if there are none.
    #[getter]
    fn identifiers(&self) -> Option<String> {
        self.inner.identifiers()
    }

    /// Of each column of the table its levels, sorted; none for a column of numbers.
    #[getter]
    fn levels(&self) -> Vec<Vec<String>> {
        self.inner.columns().iter().map(|column| column.kind.levels().to_vec()).collect()
    }

    /// Whether all columns are numbers.
    #[getter]
    fn numbers_only(&self) -> bool {
        self.inner.columns().iter().all(|column| column.kind == Kind::Number)
    }

    /// Names of the encoded columns.
    #[getter]
    fn encoded_names(&self) -> Vec<String> {
        self.inner.encoded_names()
    }

    /// Of each encoded column whether it holds codes of categories.
    #[getter]
    fn coded(&self) -> Vec<bool> {
        self.inner.encoded_kinds().iter().map(|kind| *kind == Encoded::Code).collect()
    }

    /// What is done with missing values: refuse, drop or impute.
    #[getter]
    fn missing(&self) -> String {
        self.inner.missing().to_string()
    }

    /// The name of the column of classes.
    #[getter]
    fn target(&self) -> String {
        self.inner.target().name.clone()
    }

    /// The schema as text.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.inner).map_err(no_json)
    }

    /// The schema of a text of `to_json`.
    #[classmethod]
    fn from_json(_cls: &Bound<'_, PyType>, text: &str) -> PyResult<Self> {
        let schema: svml::data::Schema = serde_json::from_str(text).map_err(no_json)?;
        schema.validate().map_err(to_python)?;
        Ok(schema.into())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Self>().getattr("from_json")?, (self.to_json()?,)))
    }
}

/// Refuses a table that is too large as dense numbers.
#[pyfunction]
pub fn check_dense(rows: usize, columns: usize) -> PyResult<()> {
    svml::data::check_dense(rows, columns).map_err(to_python)
}
