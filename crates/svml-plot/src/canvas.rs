//! A picture while it is drawn: a list of shapes, of which [`svg`](crate::svg) and `png` make files.

use crate::Picture;
use crate::{font, svg};

/// Text and lines.
pub(crate) const INK: &str = "#222222";
/// Lines of lesser weight and notes.
pub(crate) const GREY: &str = "#6b6b6b";

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stroke {
    pub colour: &'static str,
    pub width: f64,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub dash: &'static str,
}

impl Stroke {
    pub const fn solid(colour: &'static str, width: f64) -> Self {
        Self { colour, width, dash: "" }
    }
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// What a picture is made of; in pixels, with y downwards.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A filled rectangle without an edge.
    Rect { x: f64, y: f64, width: f64, height: f64, fill: String },
    /// The edge of a rectangle.
    Frame { x: f64, y: f64, width: f64, height: f64, stroke: Stroke },
    /// Connected points, one or more times.
    Path { lines: Vec<Vec<(f64, f64)>>, stroke: Stroke },
    /// A filled outline.
    Polygon { points: Vec<(f64, f64)>, fill: String, stroke: Stroke },
    /// A filled circle, or its edge alone if the fill is `none`.
    Circle { at: (f64, f64), radius: f64, fill: String, stroke: Stroke },
    /// A text, turned around its point by an angle in degrees.
    Text { at: (f64, f64), text: String, size: f64, anchor: Anchor, colour: String, angle: f64 },
    /// From here on only what is inside of a rectangle is drawn.
    Clip { x: f64, y: f64, width: f64, height: f64 },
    /// From here on everything is drawn again.
    Unclip,
}

/// A picture that is being drawn.
pub(crate) struct Canvas {
    width: f64,
    height: f64,
    title: String,
    shapes: Vec<Shape>,
}

impl Canvas {
    /// An empty picture; the title is for screen readers.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, title: title.to_owned(), shapes: Vec::new() }
    }

    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        self.shapes.push(Shape::Rect { x, y, width, height, fill: fill.to_owned() });
    }

    pub fn frame(&mut self, x: f64, y: f64, width: f64, height: f64, stroke: Stroke) {
        self.shapes.push(Shape::Frame { x, y, width, height, stroke });
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.path(&[vec![from, to]], stroke);
    }

    /// Connected points, one or more times.
    pub fn path(&mut self, lines: &[Vec<(f64, f64)>], stroke: Stroke) {
        if lines.iter().any(|line| !line.is_empty()) {
            self.shapes.push(Shape::Path { lines: lines.to_vec(), stroke });
        }
    }

    /// A filled outline.
    pub fn polygon(&mut self, points: &[(f64, f64)], fill: &str, stroke: Stroke) {
        self.shapes.push(Shape::Polygon { points: points.to_vec(), fill: fill.to_owned(), stroke });
    }

    pub fn circle(&mut self, at: (f64, f64), radius: f64, fill: &str, stroke: Stroke) {
        self.shapes.push(Shape::Circle { at, radius, fill: fill.to_owned(), stroke });
    }

    pub fn text(&mut self, at: (f64, f64), text: &str, size: f64, anchor: Anchor) {
        self.styled_text(at, text, size, anchor, INK);
    }

    pub fn styled_text(
        &mut self,
        at: (f64, f64),
        text: &str,
        size: f64,
        anchor: Anchor,
        colour: &str,
    ) {
        let (text, colour) = (text.to_owned(), colour.to_owned());
        self.shapes.push(Shape::Text { at, text, size, anchor, colour, angle: 0.0 });
    }

    /// Text that reads upwards (`angle` -90) or askew, around its own point.
    pub fn turned_text(
        &mut self,
        at: (f64, f64),
        text: &str,
        size: f64,
        anchor: Anchor,
        angle: f64,
    ) {
        let (text, colour) = (text.to_owned(), INK.to_owned());
        self.shapes.push(Shape::Text { at, text, size, anchor, colour, angle });
    }

    /// The title line and a note below it, cut to the width of the picture.
    pub fn heading(&mut self, title: &str, note: &str) {
        let most = self.width - 32.0;
        let title = font::shorten(title, 16.0, most);
        self.styled_text((16.0, 26.0), &title, 16.0, Anchor::Start, INK);
        if !note.is_empty() {
            let note = font::shorten(note, 11.5, most);
            self.styled_text((16.0, 45.0), &note, 11.5, Anchor::Start, GREY);
        }
    }

    /// As [`Canvas::heading`], with a note of two lines where one is too short for it; what is below is then to begin
    /// [`note_height`] further down.
    pub fn long_heading(&mut self, title: &str, note: &str) {
        let lines = note_lines(note, self.width);
        self.heading(title, lines.first().map_or("", String::as_str));
        if let Some(second) = lines.get(1) {
            self.styled_text((16.0, 60.0), second, 11.5, Anchor::Start, GREY);
        }
    }

    /// Draws only inside a rectangle until [`Canvas::unclip`].
    pub fn clip(&mut self, x: f64, y: f64, width: f64, height: f64) {
        self.shapes.push(Shape::Clip { x, y, width, height });
    }

    pub fn unclip(&mut self) {
        self.shapes.push(Shape::Unclip);
    }

    /// The whole picture.
    pub fn finish(self) -> Picture {
        let Self { width, height, title, shapes } = self;
        let svg = svg::write((width, height), &title, &shapes);
        Picture { svg, size: (width, height), shapes }
    }
}

fn note_lines(note: &str, width: f64) -> Vec<String> {
    font::wrap(note, 11.5, width - 32.0, 2)
}

/// How much further down the rest of a picture of this width begins below a long note.
pub(crate) fn note_height(note: &str, width: f64) -> f64 {
    15.0 * note_lines(note, width).len().saturating_sub(1) as f64
}

/// A text that begins with a capital letter.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
