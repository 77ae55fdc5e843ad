//! From SVG to PNG, with the font that comes with this crate.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb::Database};

use crate::font::{self, FONT};

/// Pixels for each unit of the SVG.
const SCALE: f32 = 2.0;

/// A picture could not be turned into pixels.
#[derive(Debug)]
pub struct DrawError(String);

impl std::fmt::Display for DrawError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the picture could not be drawn as PNG ({}); write it as .svg", self.0)
    }
}

impl std::error::Error for DrawError {}

pub(crate) fn render(svg: &str) -> Result<Vec<u8>, DrawError> {
    // A sign that the font does not have would vanish.
    let svg: String = svg.chars().map(|c| if font::has(c) { c } else { '?' }).collect();
    let mut fonts = Database::new();
    fonts.load_font_data(FONT.to_vec());
    // Whatever family is asked for, there is one.
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = Options {
        fontdb: Arc::new(fonts),
        font_family: "DejaVu Sans".to_owned(),
        ..Options::default()
    };
    let tree = Tree::from_str(&svg, &options).map_err(|e| DrawError(e.to_string()))?;
    let size = tree.size();
    let (width, height) = ((size.width() * SCALE) as u32, (size.height() * SCALE) as u32);
    let mut pixels =
        Pixmap::new(width, height).ok_or_else(|| DrawError(format!("{width} x {height}")))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| DrawError(e.to_string()))
}
