//! Figures as arrays: what a picture of a model shows, computed here once. Rust, the command and Python receive
//! the arrays and only draw them.
//!
//! A figure needs a [`Model`] and, where it shows rows, these rows; how the model was learned does not
//! matter. The crate `svml-plot` draws each of them.
//!
//! ```
//! use svml::figures::{Map, Relevance, Trace};
//! use svml::learners::Nca;
//! use svml::{Generator, Method, Model};
//!
//! let data = Generator { rows: 100, ..Generator::default() }.generate()?.data;
//! let model = Model::fit(&data, Method::neighbours_after(Nca { rank: Some(2), ..Nca::default() }, 5))?;
//! let map = Map::new(&model, data.x(), None)?;
//! assert_eq!(map.points.len(), 100);
//! assert_eq!(Relevance::new(&model).names.len(), 10);
//! assert!(Trace::new(&model).is_some());
//! # Ok::<(), svml::Error>(())
//! ```

mod confusion;
mod dependence;
mod learning_curve;
mod map;
mod metric_matrix;
mod plane;
mod ranking;
mod relevance;
mod reliability;
mod trace;
mod waterfall;

pub use confusion::Confusion;
pub use dependence::{Dependence, Places};
pub use learning_curve::LearningCurve;
pub use map::{Map, Point};
pub use metric_matrix::MetricMatrix;
pub use ranking::{PrecisionRecall, PrecisionRecallCurve, Roc, RocCurve};
pub use relevance::Relevance;
pub use reliability::{Bin, Reliability};
pub use trace::Trace;
pub use waterfall::Waterfall;

use crate::error::{Error, Result};
use crate::model::Model;

/// The place of the class that a figure is asked to be of.
fn place(model: &Model, class: &str) -> Result<usize> {
    model.classes().iter().position(|known| known == class).ok_or_else(|| {
        let bound = format!("one of the classes of the model: {}", model.classes().join(", "));
        Error::parameter("class", class, bound)
    })
}
