//! The widths of text, measured in the font that PNG files are drawn with. In an SVG the viewer chooses
//! among DejaVu Sans, Verdana, which has the same widths, and its own.

use std::sync::LazyLock;

use ttf_parser::Face;

/// Latin, Greek and Cyrillic of DejaVu Sans.
const FONT: &[u8] = include_bytes!("../fonts/DejaVuSans-subset.ttf");

/// The families asked for in an SVG.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

static FACE: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(FONT, 0).ok());

/// Width of a text at a size, in pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = FACE.as_ref() else { return 0.65 * size * text.chars().count() as f64 };
    size * text.chars().map(|c| advance(face, c)).sum::<f64>()
}

/// How far a sign moves what follows it, in units of the size.
fn advance(face: &Face<'_>, c: char) -> f64 {
    let advance = face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph));
    // Signs that the font does not have are most likely wide ones.
    advance.map_or(1.0, |advance| f64::from(advance) / f64::from(face.units_per_em()))
}

/// The outlines of a text whose first sign stands at a point; none if nothing of it can be seen. A sign that the font does
/// not have is drawn as a question mark.
#[cfg(feature = "png")]
pub(crate) fn outline(text: &str, size: f64, (x, y): (f32, f32)) -> Option<tiny_skia::Path> {
    let face = FACE.as_ref()?;
    let mut outline = Outline {
        path: tiny_skia::PathBuilder::new(),
        scale: (size / f64::from(face.units_per_em())) as f32,
        at: (x, y),
    };
    for c in text.chars() {
        if let Some(glyph) = face.glyph_index(c).or_else(|| face.glyph_index('?')) {
            face.outline_glyph(glyph, &mut outline);
        }
        outline.at.0 += (size * advance(face, c)) as f32;
    }
    outline.path.finish()
}

/// A path that the outlines of signs are added to, each from the point `at` on; a font counts upwards, a picture downwards.
#[cfg(feature = "png")]
struct Outline {
    path: tiny_skia::PathBuilder,
    scale: f32,
    at: (f32, f32),
}

#[cfg(feature = "png")]
impl Outline {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.at.0 + self.scale * x, self.at.1 - self.scale * y)
    }
}

#[cfg(feature = "png")]
impl ttf_parser::OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2)) = (self.place(x1, y1), self.place(x2, y2));
        let (x, y) = self.place(x, y);
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// The text, cut so that it is no wider than `most`; a cut is shown by an ellipsis.
pub(crate) fn shorten(text: &str, size: f64, most: f64) -> String {
    if width(text, size) <= most {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = width("\u{2026}", size);
    for c in text.chars() {
        used += width(c.encode_utf8(&mut [0; 4]), size);
        if used > most {
            break;
        }
        short.push(c);
    }
    short.push('\u{2026}');
    short
}

/// The text in lines that are no wider than `most`, broken between words; at most so many lines, of which the last is cut if
/// need be.
pub(crate) fn wrap(text: &str, size: f64, most: f64, lines: usize) -> Vec<String> {
    let words: Vec<&str> = text.split(' ').collect();
    pack(&words, size, most, lines)
}

/// Pieces that are not to be broken, joined by blanks into lines that are no wider than `most`. What does not fit into so
/// many lines is left out from the end, which an ellipsis shows; only a piece that is alone too wide is cut.
pub(crate) fn pack(pieces: &[impl AsRef<str>], size: f64, most: f64, lines: usize) -> Vec<String> {
    let mut packed: Vec<String> = Vec::new();
    for (k, piece) in pieces.iter().enumerate() {
        let piece = piece.as_ref();
        let with = |line: &str| match line {
            "" => piece.to_owned(),
            line => format!("{line} {piece}"),
        };
        let fits = |line: &str, last: bool| {
            // The last line needs room for an ellipsis, unless nothing follows.
            let room = if last && k + 1 < pieces.len() { width(" \u{2026}", size) } else { 0.0 };
            width(line, size) + room <= most
        };
        let last = packed.len() == lines;
        if let Some(line) = packed.last_mut() {
            let longer = with(line);
            if fits(&longer, last) {
                *line = longer;
                continue;
            }
            if last {
                line.push_str(if line.ends_with('\u{2026}') { "" } else { " \u{2026}" });
                break;
            }
        }
        packed.push(shorten(piece, size, most));
    }
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_to_its_width() {
        assert_eq!(shorten("short", 12.0, 100.0), "short");
        let cut = shorten(&"long name ".repeat(20), 12.0, 100.0);
        assert!(cut.ends_with('\u{2026}') && cut.starts_with("long name"));
        assert!(width(&cut, 12.0) <= 100.0);
        assert!(width("iii", 12.0) < width("WWW", 12.0));
        assert!(width("\u{4e2d}\u{6587}", 10.0) >= 20.0);
    }

    #[test]
    fn pieces_are_kept_whole_and_left_out_from_the_end() {
        let pieces = ["0.61 worst radius", "+ 0.45 texture", "\u{2212} 0.30 mean smoothness"];
        assert_eq!(pack(&pieces, 12.0, 1000.0, 1), [pieces.join(" ")]);
        let narrow = width(pieces[2], 12.0) + 15.0;
        assert_eq!(pack(&pieces, 12.0, narrow, 3), pieces);
        let two = pack(&pieces, 12.0, narrow, 2);
        assert_eq!(two, [pieces[0].to_owned(), format!("{} \u{2026}", pieces[1])]);
        // Only what is alone too wide is cut.
        let cut = pack(&pieces, 12.0, 60.0, 2);
        assert!(cut[0].ends_with('\u{2026}') && cut.len() == 2, "{cut:?}");
        for line in [two, cut].concat() {
            assert!(width(&line, 12.0) <= narrow);
        }
        assert_eq!(wrap("one two three", 12.0, width("one two", 12.0), 2), ["one two", "three"]);
        assert!(pack(&[] as &[&str], 12.0, 10.0, 2).is_empty());
    }
}
