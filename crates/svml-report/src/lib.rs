//! One page about a model and how it does on rows whose classes are known: self-contained HTML, without network access, for
//! screens of any size, for paper, and for screen readers.
//!
//! Every number comes from [`svml`], every picture from [`svml_plot`]; here they are put together. The same model and
//! rows give the same page.
//!
//! ```
//! use svml::{Generator, Model, Svml};
//! use svml_report::page;
//!
//! let train = Generator { rows: 100, ..Generator::default() }.generate()?.data;
//! let test = Generator { rows: 100, seed: 1, ..Generator::default() }.generate()?.data;
//! let model = Model::fit(&train, Svml::default())?;
//! let labels: Vec<String> = test.y().iter().map(|&c| test.classes()[c].clone()).collect();
//! let html = page(&model, test.x(), &labels, "A circle in ten dimensions")?;
//! assert!(html.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), svml::Error>(())
//! ```

mod html;
mod sections;

use svml::{Error, Matrix, Model, Result};

use html::{Html, escape};
use sections::Facts;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page about a model and the rows of `x`, encoded as the model reads them, whose classes are `labels`, under
/// a title.
///
/// Rows that the model was not trained on say how good it is; those it was trained on do not, and the page says so if
/// it finds them. A model that is not a classifier, and rows without a single known class, are errors.
pub fn page(model: &Model, x: &Matrix, labels: &[String], title: &str) -> Result<String> {
    if !model.is_classifier() {
        return Err(Error::NotAClassifier);
    }
    let facts = Facts::new(model, x, labels)?;
    let mut html = Html::default();
    html.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    // Nothing is fetched, whatever the data hold.
    html.raw(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">",
    );
    html.raw(&format!(
        "<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>",
        escape(title)
    ));
    html.raw("<a class=\"skip\" href=\"#content\">Skip to the content</a>");
    facts.write(&mut html, title)?;
    html.raw(&format!("<script>\n{SCRIPT}</script>\n</body>\n</html>"));
    Ok(html.finish())
}
