//! Support vector metric learning.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
pub mod error;
pub mod watch;
pub mod linalg;
pub mod data;
pub mod svm;
pub mod metric;
pub mod kernel;
pub mod loss;
pub mod criterion;
pub mod optimise;
pub mod params;
pub mod learn;
pub mod select;
pub mod model;
mod model_file;

pub use data::{Dataset, Generator, ReadOptions};
pub use error::{Error, Result};
pub use linalg::Matrix;
pub use metric::{Form, Metric};
pub use model::Model;
pub use params::Params;
pub use select::Grid;
