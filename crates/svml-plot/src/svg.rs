//! A small writer of SVG: shapes and text in pixels, with y downwards.

use std::fmt::Write;

use crate::font::{self, FAMILY};

/// Text and lines.
pub(crate) const INK: &str = "#222222";
/// Lines of lesser weight and notes.
pub(crate) const GREY: &str = "#6b6b6b";

/// How a line looks.
#[derive(Clone, Copy)]
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

    fn attributes(self) -> String {
        let dash = match self.dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        format!("stroke=\"{}\" stroke-width=\"{}\"{dash}", self.colour, self.width)
    }
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn.
pub(crate) struct Canvas {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

impl Canvas {
    /// An empty picture; the title is for screen readers.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, title: escape(title), body: String::new() }
    }

    fn add(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        self.add(&format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{fill}\"/>",
            width.max(0.0),
            height.max(0.0)
        ));
    }

    pub fn frame(&mut self, x: f64, y: f64, width: f64, height: f64, stroke: Stroke) {
        self.add(&format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"none\" {}/>",
            stroke.attributes()
        ));
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.path(&[vec![from, to]], stroke);
    }

    /// Connected points, one or more times.
    pub fn path(&mut self, lines: &[Vec<(f64, f64)>], stroke: Stroke) {
        let mut d = String::new();
        for line in lines {
            for (k, (x, y)) in line.iter().enumerate() {
                // Writing to a string cannot fail.
                let _ = write!(d, "{}{x:.2} {y:.2}", if k == 0 { 'M' } else { 'L' });
            }
        }
        if !d.is_empty() {
            let attributes = stroke.attributes();
            self.add(&format!(
                "<path d=\"{d}\" fill=\"none\" stroke-linejoin=\"round\" {attributes}/>"
            ));
        }
    }

    /// A filled outline.
    pub fn polygon(&mut self, points: &[(f64, f64)], fill: &str, stroke: Stroke) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
        self.add(&format!(
            "<polygon points=\"{}\" fill=\"{fill}\" {}/>",
            points.join(" "),
            stroke.attributes()
        ));
    }

    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, fill: &str, stroke: Stroke) {
        self.add(&format!(
            "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius:.2}\" fill=\"{fill}\" {}/>",
            stroke.attributes()
        ));
    }

    pub fn text(&mut self, at: (f64, f64), text: &str, size: f64, anchor: Anchor) {
        self.styled_text(at, text, size, anchor, INK, "");
    }

    pub fn styled_text(
        &mut self,
        (x, y): (f64, f64),
        text: &str,
        size: f64,
        anchor: Anchor,
        colour: &str,
        more: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.add(&format!(
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\"{more}>{}</text>",
            escape(text)
        ));
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
        let more = format!(" transform=\"rotate({angle} {:.2} {:.2})\"", at.0, at.1);
        self.styled_text(at, text, size, anchor, INK, &more);
    }

    /// The title line and a note below it, cut to the width of the picture.
    pub fn heading(&mut self, title: &str, note: &str) {
        let most = self.width - 32.0;
        let title = font::shorten(title, 16.0, most);
        self.styled_text((16.0, 26.0), &title, 16.0, Anchor::Start, INK, "");
        if !note.is_empty() {
            let note = font::shorten(note, 11.5, most);
            self.styled_text((16.0, 45.0), &note, 11.5, Anchor::Start, GREY, "");
        }
    }

    /// As [`Canvas::heading`], with a note of two lines where one is too short for it; what is below is then to begin
    /// [`note_height`] further down.
    pub fn long_heading(&mut self, title: &str, note: &str) {
        let lines = note_lines(note, self.width);
        self.heading(title, lines.first().map_or("", String::as_str));
        if let Some(second) = lines.get(1) {
            self.styled_text((16.0, 60.0), second, 11.5, Anchor::Start, GREY, "");
        }
    }

    /// Draws only inside a rectangle until [`Canvas::unclip`].
    pub fn clip(&mut self, x: f64, y: f64, width: f64, height: f64) {
        self.add(&format!(
            "<clipPath id=\"inside\"><rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"/></clipPath>\n<g clip-path=\"url(#inside)\">"
        ));
    }

    pub fn unclip(&mut self) {
        self.add("</g>");
    }

    /// The whole file.
    pub fn finish(self) -> String {
        let Self { width, height, title, body } = self;
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"{FAMILY}\" role=\"img\">\n\
             <title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

fn note_lines(note: &str, width: f64) -> Vec<String> {
    font::wrap(note, 11.5, width - 32.0, 2)
}

/// How much further down the rest of a picture of this width begins below a long note.
pub(crate) fn note_height(note: &str, width: f64) -> f64 {
    15.0 * note_lines(note, width).len().saturating_sub(1) as f64
}

/// Text as XML can hold it: marks are named, control characters replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A text that begins with a capital letter.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_the_file() {
        let mut canvas = Canvas::new(100.0, 50.0, "a < b & \"c\"");
        canvas.text((1.0, 2.0), "</text><script>\u{0}", 10.0, Anchor::Start);
        let svg = canvas.finish();
        assert!(svg.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"));
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;\u{fffd}</text>"));
        assert!(!svg.contains("<script>"));
    }
}
