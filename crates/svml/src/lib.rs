//! Support vector metric learning.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
pub mod criterion;
pub mod data;
pub mod error;
pub mod kernel;
pub mod learn;
pub mod linalg;
pub mod loss;
pub mod metric;
pub mod model;
mod model_file;
pub mod optimise;
pub mod params;
pub mod select;
pub mod svm;
pub mod watch;

pub use data::{Dataset, Generator, ReadOptions};
pub use error::{Error, Result};
pub use linalg::Matrix;
pub use metric::{Form, Metric};
pub use model::Model;
pub use params::Params;
pub use select::Grid;
