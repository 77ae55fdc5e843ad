//! A picture as an SVG file.

use std::fmt::Write;

use crate::canvas::{Anchor, Shape, Stroke};
use crate::font::FAMILY;

/// The whole file; the title is for screen readers.
pub(crate) fn write((width, height): (f64, f64), title: &str, shapes: &[Shape]) -> String {
    let title = escape(title);
    let mut body = String::new();
    for shape in shapes {
        body.push_str(&element(shape));
        body.push('\n');
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"{FAMILY}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

fn element(shape: &Shape) -> String {
    match shape {
        Shape::Rect { x, y, width, height, fill } => format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\"/>"
        ),
        Shape::Frame { x, y, width, height, stroke } => format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"none\" {}/>",
            attributes(stroke)
        ),
        Shape::Path { lines, stroke } => {
            let mut d = String::new();
            for line in lines {
                for (k, (x, y)) in line.iter().enumerate() {
                    // Writing to a string cannot fail.
                    let _ = write!(d, "{}{x:.2} {y:.2}", if k == 0 { 'M' } else { 'L' });
                }
            }
            format!(
                "<path d=\"{d}\" fill=\"none\" stroke-linejoin=\"round\" {}/>",
                attributes(stroke)
            )
        }
        Shape::Polygon { points, fill, stroke } => {
            let points: Vec<String> =
                points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
            let points = points.join(" ");
            format!("<polygon points=\"{points}\" fill=\"{fill}\" {}/>", attributes(stroke))
        }
        Shape::Circle { at: (x, y), radius, fill, stroke } => format!(
            "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius:.2}\" fill=\"{fill}\" {}/>",
            attributes(stroke)
        ),
        Shape::Text { at: (x, y), text, size, anchor, colour, angle } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turned = match *angle {
                0.0 => String::new(),
                angle => format!(" transform=\"rotate({angle} {x:.2} {y:.2})\""),
            };
            format!(
                "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\"{turned}>{}</text>",
                escape(text)
            )
        }
        Shape::Clip { x, y, width, height } => format!(
            "<clipPath id=\"inside\"><rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"/></clipPath>\n<g clip-path=\"url(#inside)\">"
        ),
        Shape::Unclip => "</g>".to_owned(),
    }
}

fn attributes(stroke: &Stroke) -> String {
    let dash = match stroke.dash {
        "" => String::new(),
        dash => format!(" stroke-dasharray=\"{dash}\""),
    };
    format!("stroke=\"{}\" stroke-width=\"{}\"{dash}", stroke.colour, stroke.width)
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

#[cfg(test)]
mod tests {
    use crate::canvas::{Anchor, Canvas};

    #[test]
    fn names_cannot_break_the_file() {
        let mut canvas = Canvas::new(100.0, 50.0, "a < b & \"c\"");
        canvas.text((1.0, 2.0), "</text><script>\u{0}", 10.0, Anchor::Start);
        let picture = canvas.finish();
        let svg = picture.svg();
        assert!(svg.contains("<title>a &lt; b &amp; &quot;c&quot;</title>"));
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;\u{fffd}</text>"));
        assert!(!svg.contains("<script>"));
    }
}
