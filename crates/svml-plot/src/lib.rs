//! Pictures of [`svml`] models.
//!
//! Each figure is computed first, as plain arrays that can be used without drawing, and drawn second, as
//! an SVG, from which a PNG can be made. Colours are those of Okabe and Ito, and never the only
//! difference: classes have markers of their own, curves dashes, negative entries a stroke.
//!
//! | figure | shows |
//! |---|---|
//! | [`Map`] | rows in two dimensions over the decision of the model, margins, support vectors ringed |
//! | [`Trace`] | loss and errors, step by step |
//! | [`Heat`] | the matrix M of the metric |
//! | [`Relevance`] | the diagonal of M, sorted |
//! | [`Reliability`] | whether probabilities come true |
//!
//! and of studies, from numbers that are already there:
//!
//! | figure | shows |
//! |---|---|
//! | [`Lines`] | curves, in panels side by side |
//! | [`Dots`] | a value for each of many names, with intervals, linear or logarithmic |
//! | [`Plane`] | the cells of a grid search and a path across them |
//!
//! ```
//! use svml::{Form, Generator, Model, Params};
//! use svml_plot::Map;
//!
//! let data = Generator { rows: 100, ..Default::default() }.generate()?.data;
//! let model = Model::fit(&data, &Params { form: Form::Rank(2).into(), ..Params::default() })?;
//! let labels: Vec<String> = data.y().iter().map(|&c| data.classes()[c].clone()).collect();
//! let map = Map::new(&model, data.x(), Some(&labels))?;
//! assert!(map.exact);
//! let picture = map.draw("Two of ten directions matter");
//! assert!(picture.svg().starts_with("<?xml"));
//! # Ok::<(), svml::Error>(())
//! ```

mod axis;
mod contour;
mod dots;
mod font;
mod heat;
mod lines;
mod map;
mod map_draw;
mod plane;
mod png;
mod reliability;
mod style;
mod svg;
mod trace;

pub use dots::{DotPanel, Dots, Mark};
pub use heat::{Heat, Relevance};
pub use lines::{Curve, CurvePanel, Lines};
pub use map::{Map, Point};
pub use plane::Plane;
pub use png::DrawError;
pub use reliability::{Bin, Reliability};
pub use trace::Trace;

/// A drawn figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture(pub(crate) String);

impl Picture {
    /// The picture as an SVG file.
    pub fn svg(&self) -> &str {
        &self.0
    }

    /// The picture as a PNG file, with two pixels for each unit of the SVG. The same picture gives the
    /// same bytes on every machine: no font of the system is used.
    pub fn png(&self) -> Result<Vec<u8>, DrawError> {
        png::render(&self.0)
    }
}
