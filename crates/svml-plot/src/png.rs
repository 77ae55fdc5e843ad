//! A picture as a PNG file, with the font that comes with this crate.

use std::fmt;

use tiny_skia::{
    FillRule, LineJoin, Mask, Paint, Path, PathBuilder, Pixmap, Rect, StrokeDash, Transform,
};

use crate::canvas::{Anchor, Shape, Stroke};
use crate::font;

/// Pixels for each unit of the picture.
const SCALE: f32 = 2.0;

/// A picture could not be turned into pixels.
#[derive(Debug)]
pub struct DrawError(String);

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the plot could not be drawn as PNG ({}); write it as .svg", self.0)
    }
}

impl std::error::Error for DrawError {}

/// The file.
pub(crate) fn write((width, height): (f64, f64), shapes: &[Shape]) -> Result<Vec<u8>, DrawError> {
    let pixels = |length: f64| (length.round() as f32 * SCALE) as u32;
    let (width, height) = (pixels(width), pixels(height));
    let too_large = || DrawError(format!("{width} x {height}"));
    let mut sheet = Sheet {
        pixels: Pixmap::new(width, height).ok_or_else(too_large)?,
        clip: None,
        scale: Transform::from_scale(SCALE, SCALE),
    };
    sheet.pixels.fill(tiny_skia::Color::WHITE);
    for shape in shapes {
        sheet.draw(shape).ok_or_else(too_large)?;
    }
    sheet.pixels.encode_png().map_err(|e| DrawError(e.to_string()))
}

/// Pixels that are drawn on.
struct Sheet {
    pixels: Pixmap,
    /// What may be drawn on, if not everything.
    clip: Option<Mask>,
    scale: Transform,
}

impl Sheet {
    /// Draws a shape; none if there is no memory for a part of the picture to draw in.
    fn draw(&mut self, shape: &Shape) -> Option<()> {
        match shape {
            Shape::Rect { x, y, width, height, fill } => {
                if let Some(path) = rectangle(*x, *y, *width, *height) {
                    self.fill(&path, fill, self.scale);
                }
            }
            Shape::Frame { x, y, width, height, stroke } => {
                if let Some(path) = rectangle(*x, *y, *width, *height) {
                    self.stroke(&path, stroke, LineJoin::Miter);
                }
            }
            Shape::Path { lines, stroke } => {
                if let Some(path) = connected(lines, false) {
                    self.stroke(&path, stroke, LineJoin::Round);
                }
            }
            Shape::Polygon { points, fill, stroke } => {
                if let Some(path) = connected(std::slice::from_ref(points), true) {
                    self.fill(&path, fill, self.scale);
                    self.stroke(&path, stroke, LineJoin::Miter);
                }
            }
            Shape::Circle { at: (x, y), radius, fill, stroke } => {
                if let Some(path) = PathBuilder::from_circle(*x as f32, *y as f32, *radius as f32) {
                    self.fill(&path, fill, self.scale);
                    self.stroke(&path, stroke, LineJoin::Miter);
                }
            }
            Shape::Text { at: (x, y), text, size, anchor, colour, angle } => {
                let before = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => 0.5,
                    Anchor::End => 1.0,
                };
                let (x, y) = (*x as f32, *y as f32);
                let first = x - (before * font::width(text, *size)) as f32;
                if let Some(path) = font::outline(text, *size, (first, y)) {
                    let turned = Transform::from_rotate_at(*angle as f32, x, y);
                    self.fill(&path, colour, turned.post_concat(self.scale));
                }
            }
            Shape::Clip { x, y, width, height } => {
                let mut mask = Mask::new(self.pixels.width(), self.pixels.height())?;
                if let Some(path) = rectangle(*x, *y, *width, *height) {
                    mask.fill_path(&path, FillRule::Winding, true, self.scale);
                }
                self.clip = Some(mask);
            }
            Shape::Unclip => self.clip = None,
        }
        Some(())
    }

    fn fill(&mut self, path: &Path, colour: &str, transform: Transform) {
        if let Some(paint) = paint(colour) {
            self.pixels.fill_path(path, &paint, FillRule::Winding, transform, self.clip.as_ref());
        }
    }

    fn stroke(&mut self, path: &Path, stroke: &Stroke, line_join: LineJoin) {
        let Some(paint) = paint(stroke.colour) else { return };
        let dash = stroke.dash.split([' ', ',']).filter_map(|part| part.parse().ok()).collect();
        let stroke = tiny_skia::Stroke {
            width: stroke.width as f32,
            line_join,
            dash: StrokeDash::new(dash, 0.0),
            ..tiny_skia::Stroke::default()
        };
        self.pixels.stroke_path(path, &paint, &stroke, self.scale, self.clip.as_ref());
    }
}

/// What a colour is painted with; `none` with nothing.
fn paint(colour: &str) -> Option<Paint<'static>> {
    let part = |at: usize| u8::from_str_radix(colour.get(at..at + 2)?, 16).ok();
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(part(1)?, part(3)?, part(5)?, 255);
    Some(paint)
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Option<Path> {
    let rect = Rect::from_xywh(x as f32, y as f32, width as f32, height as f32)?;
    Some(PathBuilder::from_rect(rect))
}

fn connected(lines: &[Vec<(f64, f64)>], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for line in lines {
        for (k, (x, y)) in line.iter().enumerate() {
            match k {
                0 => path.move_to(*x as f32, *y as f32),
                _ => path.line_to(*x as f32, *y as f32),
            }
        }
        if closed {
            path.close();
        }
    }
    path.finish()
}
