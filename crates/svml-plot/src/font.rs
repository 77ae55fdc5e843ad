//! The widths of text, measured in the font that PNG files are drawn with. In an SVG the viewer chooses
//! among DejaVu Sans, Verdana, which has the same widths, and its own.

use std::sync::LazyLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// Latin, Greek and Cyrillic of DejaVu Sans.
pub(crate) const FONT: &[u8] = include_bytes!("../fonts/DejaVuSans-subset.ttf");

/// The families asked for in an SVG.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

static FACE: LazyLock<Option<FontRef<'static>>> = LazyLock::new(|| FontRef::new(FONT).ok());

/// Whether the font has a sign.
pub(crate) fn has(c: char) -> bool {
    c == '\n' || FACE.as_ref().is_none_or(|face| face.charmap().map(c).is_some())
}

/// Width of a text at a size, in pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = FACE.as_ref() else { return 0.65 * size * text.chars().count() as f64 };
    let (map, metrics) =
        (face.charmap(), face.glyph_metrics(Size::new(1000.0), LocationRef::default()));
    let advance = |c: char| {
        let advance = map.map(c).and_then(|glyph| metrics.advance_width(glyph));
        // Signs that the font does not have are most likely wide ones.
        advance.map_or(1.0, |advance| f64::from(advance) / 1000.0)
    };
    size * text.chars().map(advance).sum::<f64>()
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
}
