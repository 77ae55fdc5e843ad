//! Colours that stay apart for colour-blind eyes and in grey, and markers of different shape, so that
//! colour is never the only difference.

use crate::canvas::{Canvas, Stroke};

/// Okabe and Ito's colours, those first that differ most in lightness, and three dark ones after them.
const COLOURS: [&str; 10] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b5a800", "#332288",
    "#882255", "#5c3d1e",
];

/// The shapes of markers.
const SHAPES: usize = 10;

/// The shape of a class, and whether its inside is white: the second ten classes have the colours of the first, other
/// shapes, and a white inside, so that twenty classes can be told apart. A hundred have different markers.
fn shape(class: usize) -> (usize, bool) {
    let turn = class / COLOURS.len();
    ((class + 3 * turn) % SHAPES, turn % 2 == 1)
}

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
    let (shape, hollow) = shape(class);
    let (fill, edge) = match hollow {
        true => ("#ffffff", Stroke::solid(colour(class), 0.42 * radius)),
        false => (colour(class), Stroke::solid("#1a1a1a", 0.7)),
    };
    // The thick edge of a hollow marker lies half outside of it.
    let r = if hollow { 0.88 * radius } else { radius };
    let around = |corners: usize, start: f64, radii: [f64; 2]| -> Vec<(f64, f64)> {
        (0..corners)
            .map(|k| {
                let angle = (start + 360.0 * k as f64 / corners as f64).to_radians();
                let length = radii[k % 2] * r;
                (x + length * angle.cos(), y + length * angle.sin())
            })
            .collect()
    };
    let at = |corners: &[(f64, f64)]| -> Vec<(f64, f64)> {
        corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect()
    };
    // A cross with arms of width 2 a and length b, by its corners.
    let cross = |a: f64, b: f64| -> Vec<(f64, f64)> {
        let quarter = [(a, -b), (a, -a), (b, -a)];
        let turned = |(dx, dy): (f64, f64), k: usize| match k {
            0 => (dx, dy),
            1 => (-dy, dx),
            2 => (-dx, -dy),
            _ => (dy, -dx),
        };
        (0..4).flat_map(|k| quarter.map(|corner| turned(corner, k))).collect()
    };
    match shape {
        0 => canvas.circle((x, y), r, fill, edge),
        1 => canvas.polygon(&around(3, -90.0, [1.35, 1.35]), fill, edge),
        2 => canvas.polygon(&around(4, 45.0, [1.25, 1.25]), fill, edge),
        3 => canvas.polygon(&around(4, 0.0, [1.4, 1.4]), fill, edge),
        4 => canvas.polygon(&around(3, 90.0, [1.35, 1.35]), fill, edge),
        5 => canvas.polygon(&around(10, -90.0, [1.5, 0.65]), fill, edge),
        6 => canvas.polygon(&at(&cross(0.45, 1.35)), fill, edge),
        7 => {
            let turn = std::f64::consts::FRAC_1_SQRT_2;
            let askew: Vec<(f64, f64)> = (cross(0.45, 1.35).into_iter())
                .map(|(dx, dy)| (turn * (dx - dy), turn * (dx + dy)))
                .collect();
            canvas.polygon(&at(&askew), fill, edge);
        }
        // An hourglass.
        8 => {
            let corners =
                [(-1.1, -1.2), (1.1, -1.2), (0.25, 0.0), (1.1, 1.2), (-1.1, 1.2), (-0.25, 0.0)];
            canvas.polygon(&at(&corners), fill, edge);
        }
        // A bar that lies.
        _ => {
            let corners = [(-1.5, -0.6), (1.5, -0.6), (1.5, 0.6), (-1.5, 0.6)];
            canvas.polygon(&at(&corners), fill, edge);
        }
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
    fn a_hundred_classes_have_different_markers_and_twenty_clearly_so() {
        let looks: std::collections::HashSet<_> =
            (0..100).map(|class| (colour(class), shape(class))).collect();
        assert_eq!(looks.len(), 100);
        for class in 0..10 {
            // What has the same colour differs in shape and in its inside.
            let (first, second) = (shape(class), shape(class + 10));
            assert!(first.0 != second.0 && first.1 != second.1);
        }
    }
}
