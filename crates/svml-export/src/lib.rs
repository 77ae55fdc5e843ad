//! Models of `svml` for other programs: [`onnx`], [`c`] and [`js`].
//!
//! What is written holds the whole model, from filling missing values and standardising to classes and probabilities,
//! and needs nothing of `svml` where it runs. A metric without a classifier is written as a map of rows, and so is any
//! model with [`Output::Map`]. Nearest neighbours are refused otherwise: they are the training rows themselves, and a
//! search among them.
//!
//! ```
//! use svml::{Generator, Model, Svml};
//! use svml_export::{Input, Output};
//!
//! let data = Generator { rows: 80, ..Generator::default() }.generate()?.data;
//! let model = Model::fit(&data, Svml::default())?;
//! let bytes = svml_export::onnx(&model, Input::Features, Output::Model)?; // for onnxruntime and others
//! let source = svml_export::c(&model, Output::Model)?; // one file of C99
//! assert!(source.contains("int svml_predict(const double *x, double *decision, double *probabilities)"));
//! # assert!(bytes.len() > 1000);
//! # Ok::<(), svml::Error>(())
//! ```
//!
//! Numbers are written so that they are read back exactly, so that decision values are those of the library but for the
//! order of sums. Names of classes and columns come from data and may hold anything: they occur as constants only, each
//! escaped for its language, never as identifiers or in comments.

mod c;
mod js;
mod onnx;
mod parts;
mod protobuf;

pub use c::c;
pub use js::js;
pub use onnx::{Input, onnx};

/// What is written of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The classifier: class, probabilities and decision values of a row; of a metric alone its map.
    #[default]
    Model,
    /// The map of the metric, as [`Model::transform`](svml::Model::transform) computes it, of any model.
    Map,
}
