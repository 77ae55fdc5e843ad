//! Pictures of [`svml`] models.
//!
//! Each figure is computed first, by [`svml::figures`], as plain arrays that can be used without drawing. It is
//! drawn second, by [`Draw`], as an SVG or as a PNG. Colours are those of Okabe and Ito and three more, and never the only
//! difference: classes have markers of their own, curves dashes, negative entries ticks.
//!
//! | figure | shows |
//! |---|---|
//! | [`Map`] | rows in two dimensions over the decision of the model, margins, support vectors ringed if they are few |
//! | [`Trace`] | loss and errors, step by step |
//! | [`MetricMatrix`] | the matrix M of the metric; bars if it is diagonal |
//! | [`Relevance`] | the share of each feature in the diagonal of M, sorted, and its spread over the SVMs of a mean |
//! | [`Reliability`] | calibration of the probabilities |
//! | [`Dependence`] | how the probability of a class depends on one column |
//! | [`Waterfall`] | what each column contributes to the decision about one row |
//! | [`Roc`], [`PrecisionRecall`] | how well the scores rank rows, each class against the rest |
//! | [`Confusion`] | which classes are taken for which |
//! | [`LearningCurve`] | the error by the number of rows to learn from |
//!
//! and of studies, from numbers that are already there:
//!
//! | figure | shows |
//! |---|---|
//! | [`Lines`] | curves, in panels side by side |
//! | [`Dots`] | a value for each of many names, with intervals, linear or logarithmic |
//! | [`Plane`] | the cells of a grid search and paths across them |
//!
//! ```
//! use svml::{Form, Generator, Model, Svml};
//! use svml_plot::{Draw, Map};
//!
//! let data = Generator { rows: 100, ..Default::default() }.generate()?.data;
//! let model = Model::fit(&data, Svml { form: Form::Rank(2).into(), ..Svml::default() })?;
//! let labels: Vec<String> = data.y().iter().map(|&c| data.classes()[c].clone()).collect();
//! let map = Map::new(&model, data.x(), Some(&labels))?;
//! assert!(map.exact);
//! let picture = map.draw("Two of ten directions matter");
//! assert!(picture.svg().starts_with("<?xml"));
//! # Ok::<(), svml::Error>(())
//! ```
// On docs.rs, what belongs to a feature says so.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod axis;
mod canvas;
mod confusion;
mod contour;
mod dependence;
mod dots;
mod font;
mod learning_curve;
mod lines;
mod map;
mod metric_matrix;
mod plane;
#[cfg(feature = "png")]
mod png;
mod ranking;
mod relevance;
mod reliability;
mod style;
mod svg;
mod trace;
mod waterfall;

pub use dots::{DotPanel, Dots, Mark};
pub use lines::{Curve, CurvePanel, Lines};
pub use plane::{Plane, PlanePath};
#[cfg(feature = "png")]
pub use png::DrawError;
pub use svml::figures::{
    Bin, Confusion, Dependence, LearningCurve, Map, MetricMatrix, Point, PrecisionRecall,
    PrecisionRecallCurve, Relevance, Reliability, Roc, RocCurve, Trace, Waterfall,
};

/// A figure that can be drawn.
pub trait Draw {
    /// Draws the figure under a title.
    fn draw(&self, title: &str) -> Picture;
}

/// A drawn figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    svg: String,
    #[cfg_attr(not(feature = "png"), allow(dead_code))]
    size: (f64, f64),
    #[cfg_attr(not(feature = "png"), allow(dead_code))]
    shapes: Vec<canvas::Shape>,
}

impl Picture {
    /// The picture as an SVG file.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// The picture as a PNG file, with two pixels for each unit of the SVG. The same picture gives the
    /// same bytes on every computer: no font of the system is used.
    #[cfg(feature = "png")]
    pub fn png(&self) -> Result<Vec<u8>, DrawError> {
        png::write(self.size, &self.shapes)
    }
}
