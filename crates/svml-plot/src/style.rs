//! Colours that stay apart for colour-blind eyes and in grey, and markers of different shape, so that
//! colour is never the only difference.

use crate::svg::{Canvas, Stroke};

/// Okabe and Ito's colours, those first that differ most in lightness.
const COLOURS: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b5a800"];

/// The shapes of markers; their number has no factor in common with that of the colours.
const SHAPES: usize = 8;

/// The colour of a class.
pub(crate) fn colour(class: usize) -> &'static str {
    COLOURS[class % COLOURS.len()]
}

/// The colour of a class mixed with white; `strength` 0 is white.
pub(crate) fn tint(class: usize, strength: f64) -> String {
    mix(colour(class), strength)
}

/// From blue for -1 over white to orange-red for 1.
pub(crate) fn diverging(value: f64) -> String {
    let value = value.clamp(-1.0, 1.0);
    mix(if value < 0.0 { "#0072b2" } else { "#d55e00" }, 0.85 * value.abs())
}

fn mix(colour: &str, strength: f64) -> String {
    let part = |at: usize| {
        let full = u8::from_str_radix(colour.get(at..at + 2).unwrap_or("00"), 16).unwrap_or(0);
        (255.0 + (f64::from(full) - 255.0) * strength.clamp(0.0, 1.0)).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", part(1), part(3), part(5))
}

/// Draws the marker of a class; rows without a class get a small grey dot.
pub(crate) fn marker(canvas: &mut Canvas, class: Option<usize>, (x, y): (f64, f64), radius: f64) {
    let Some(class) = class else {
        canvas.circle((x, y), 0.7 * radius, "#9a9a9a", Stroke::solid("#555555", 0.6));
        return;
    };
    let fill = colour(class);
    let edge = Stroke::solid("#1a1a1a", 0.7);
    let r = radius;
    let around = |corners: usize, start: f64, radii: [f64; 2]| -> Vec<(f64, f64)> {
        (0..corners)
            .map(|k| {
                let angle = (start + 360.0 * k as f64 / corners as f64).to_radians();
                let length = radii[k % 2] * r;
                (x + length * angle.cos(), y + length * angle.sin())
            })
            .collect()
    };
    match class % SHAPES {
        0 => canvas.circle((x, y), r, fill, edge),
        1 => canvas.polygon(&around(3, -90.0, [1.35, 1.35]), fill, edge),
        2 => canvas.polygon(&around(4, 45.0, [1.25, 1.25]), fill, edge),
        3 => canvas.polygon(&around(4, 0.0, [1.4, 1.4]), fill, edge),
        4 => canvas.polygon(&around(3, 90.0, [1.35, 1.35]), fill, edge),
        5 => canvas.polygon(&around(10, -90.0, [1.5, 0.65]), fill, edge),
        6 => canvas.polygon(&around(8, 0.0, [1.5, 0.55]), fill, edge),
        _ => canvas.polygon(&around(6, 0.0, [1.25, 1.25]), fill, edge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tints_run_from_white_to_the_colour() {
        assert_eq!(tint(0, 0.0), "#ffffff");
        assert_eq!(tint(0, 1.0), "#0072b2");
        assert_eq!(diverging(0.0), "#ffffff");
        assert_ne!(diverging(1.0), diverging(-1.0));
    }

    #[test]
    fn fifty_six_classes_have_different_markers() {
        let looks: std::collections::HashSet<_> =
            (0..56).map(|class| (colour(class), class % SHAPES)).collect();
        assert_eq!(looks.len(), 56);
    }
}
