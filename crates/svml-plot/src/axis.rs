//! A rectangle of the picture with a scale on each axis: ticks at round numbers, labels, grid lines.

use crate::canvas::{Anchor, Canvas, GREY, INK, Stroke};
use crate::font;

/// Size of the numbers at the ticks.
const SMALL: f64 = 11.5;
/// Size of the label of an axis.
const LABEL: f64 = 13.0;
/// Height of a line of such a label.
const LINE: f64 = 17.0;

/// A range of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// The range of some values, widened by `margin` of its length on both sides; never empty.
    pub fn around(values: impl Iterator<Item = f64>, margin: f64) -> Self {
        let (low, high) = values
            .filter(|v| v.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return Self { low: 0.0, high: 1.0 };
        }
        let length = high - low;
        // All values alike, or so nearly that their difference is rounding.
        let extra = match length > 1e-9 * low.abs().max(high.abs()) {
            true => margin * length,
            false => 0.5 * low.abs().max(1.0),
        };
        Self { low: low - extra, high: high + extra }
    }

    /// Between 0 and 1 inside the range.
    pub fn share(self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// About `count` round numbers inside the range, and how many decimals they need.
    pub fn ticks(self, count: usize) -> (Vec<f64>, usize) {
        let rough = (self.high - self.low) / count.max(1) as f64;
        let power = 10.0_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        let ticks: Vec<f64> = (first..)
            .map(|k| k as f64 * step)
            .take_while(|v| *v <= self.high + 1e-9 * step)
            .take(20)
            .collect();
        let decimals = (0..12)
            .find(|&d| {
                let scaled = step * 10.0_f64.powi(d);
                (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1e-300)
            })
            .unwrap_or(12);
        (ticks, decimals as usize)
    }
}

/// A number as a tick or a cell shows it.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    let size = value.abs();
    let text = if size >= 1e5 || (size > 0.0 && size < 1e-4) {
        format!("{value:.1e}")
    } else {
        format!("{:.decimals$}", value)
    };
    // A minus sign is as wide as a plus; and there is no negative zero.
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

/// Places on an axis and what stands there.
pub(crate) type Ticks = Vec<(f64, String)>;

/// Ticks of a logarithmic axis, of which `range` has the decimal logarithms: powers of ten, and 2 and 5
/// times those where there are few.
pub(crate) fn log_ticks(range: Range, most: usize) -> Ticks {
    let decades = range.low.floor() as i32..=range.high.ceil() as i32;
    let few = (range.high - range.low) * 3.0 <= most as f64;
    let multiples: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let mut ticks: Ticks = decades
        .flat_map(|k| multiples.iter().map(move |m| (k, *m)))
        .map(|(k, m)| (m.log10() + f64::from(k), number(m * 10f64.powi(k), (-k).max(0) as usize)))
        .filter(|(at, _)| (range.low..=range.high).contains(at))
        .collect();
    let every = ticks.len().div_ceil(most.max(1)).max(1);
    let mut index = 0;
    ticks.retain(|_| {
        index += 1;
        (index - 1) % every == 0
    });
    ticks
}

/// A plotting area: where it is, and what its axes show.
#[derive(Clone, Copy)]
pub(crate) struct Panel {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub x: Range,
    pub y: Range,
}

impl Panel {
    /// The place of a point of the data in the picture.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.left + self.width * self.x.share(x), self.top + self.height * (1.0 - self.y.share(y)))
    }

    /// Frame, ticks and labels. Numbers along x are whole if `whole_x` says so.
    pub fn axes(
        &self,
        canvas: &mut Canvas,
        x_label: &str,
        y_label: &str,
        whole_x: bool,
        percent_y: bool,
    ) {
        let (mut x, mut y) = self.ticks();
        if whole_x {
            x.retain(|(v, _)| v.fract() == 0.0);
            x.iter_mut().for_each(|(v, text)| *text = number(*v, 0));
        }
        if percent_y {
            y.iter_mut().for_each(|(_, text)| text.push_str(" %"));
        }
        self.axes_at(canvas, (x_label, &x), (y_label, &y));
    }

    /// Round numbers along x and y.
    fn ticks(&self) -> (Ticks, Ticks) {
        let texts = |(ticks, decimals): (Vec<f64>, usize)| {
            ticks.into_iter().map(|v| (v, number(v, decimals))).collect()
        };
        let along_x = self.x.ticks((self.width / 80.0) as usize);
        (texts(along_x), texts(self.y.ticks((self.height / 50.0).max(2.0) as usize)))
    }

    /// Frame, the given ticks, and labels.
    pub fn axes_at(
        &self,
        canvas: &mut Canvas,
        (x_label, x_ticks): (&str, &[(f64, String)]),
        (y_label, y_ticks): (&str, &[(f64, String)]),
    ) {
        let bottom = self.top + self.height;
        let tick = Stroke::solid(INK, 1.0);
        for (value, text) in x_ticks {
            let (x, _) = self.at(*value, self.y.low);
            canvas.line((x, bottom), (x, bottom + 5.0), tick);
            canvas.text((x, bottom + 19.0), text, SMALL, Anchor::Middle);
        }
        let mut widest: f64 = 0.0;
        for (value, text) in y_ticks {
            let (_, y) = self.at(self.x.low, *value);
            widest = widest.max(font::width(text, SMALL));
            canvas.line((self.left - 5.0, y), (self.left, y), tick);
            canvas.text((self.left - 9.0, y + 4.0), text, SMALL, Anchor::End);
        }
        canvas.frame(self.left, self.top, self.width, self.height, tick);
        let middle = self.left + self.width / 2.0;
        for (k, line) in font::wrap(x_label, LABEL, self.width, 1).iter().enumerate() {
            canvas.text((middle, bottom + 41.0 + LINE * k as f64), line, LABEL, Anchor::Middle);
        }
        let lines = font::wrap(y_label, LABEL, self.height, 1);
        self.y_label(canvas, &lines, widest);
    }

    /// The label of y in lines, left of numbers that are at most so wide; its last line is next to them.
    fn y_label(&self, canvas: &mut Canvas, lines: &[String], widest: f64) {
        for (k, line) in lines.iter().rev().enumerate() {
            let x = (self.left - 22.0 - widest - LINE * k as f64).max(14.0);
            let at = (x, self.top + self.height / 2.0);
            canvas.turned_text(at, line, LABEL, Anchor::Middle, -90.0);
        }
    }

    /// Frame, ticks, and labels of two lines, made of pieces that are not broken.
    pub fn axes_in_pieces(&self, canvas: &mut Canvas, x_label: &[String], y_label: &[String]) {
        let (x, y) = self.ticks();
        let widest = y.iter().map(|(_, text)| font::width(text, SMALL)).fold(0.0, f64::max);
        self.axes_at(canvas, ("", &x), ("", &y));
        let middle = self.left + self.width / 2.0;
        let below = self.top + self.height + 41.0;
        for (k, line) in font::pack(x_label, LABEL, self.width, 2).iter().enumerate() {
            canvas.text((middle, below + LINE * k as f64), line, LABEL, Anchor::Middle);
        }
        self.y_label(canvas, &font::pack(y_label, LABEL, self.height, 2), widest);
    }

    /// Faint lines across the panel at the ticks of y.
    pub fn grid(&self, canvas: &mut Canvas) {
        for value in self.y.ticks((self.height / 50.0).max(2.0) as usize).0 {
            let from = self.at(self.x.low, value);
            canvas.line(from, (self.left + self.width, from.1), Stroke::solid("#dddddd", 0.8));
        }
    }
}

/// The entries of a legend beside a panel, one below the other.
pub(crate) struct Legend {
    pub left: f64,
    pub next: f64,
    /// Widest text.
    pub most: f64,
    /// From one entry to the next.
    pub step: f64,
}

impl Legend {
    /// A legend with room between its entries.
    pub fn new(left: f64, next: f64, most: f64) -> Self {
        Self { left, next, most, step: 21.0 }
    }

    /// An entry whose sign `draw` puts at the given place.
    pub fn entry(
        &mut self,
        canvas: &mut Canvas,
        text: &str,
        draw: impl FnOnce(&mut Canvas, (f64, f64)),
    ) {
        draw(canvas, (self.left + 12.0, self.next));
        let text = font::shorten(text, SMALL, self.most);
        canvas.text((self.left + 30.0, self.next + 4.0), &text, SMALL, Anchor::Start);
        self.next += self.step;
    }

    /// A line of grey text.
    pub fn note(&mut self, canvas: &mut Canvas, text: &str) {
        let text = font::shorten(text, SMALL, self.most + 30.0);
        let at = (self.left, self.next + 4.0);
        canvas.styled_text(at, &text, SMALL, Anchor::Start, GREY);
        self.next += self.step;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let (ticks, decimals) = Range { low: -0.13, high: 1.07 }.ticks(6);
        assert_eq!(decimals, 1);
        assert_eq!(ticks.len(), 6);
        assert!((ticks[0]).abs() < 1e-12 && (ticks[5] - 1.0).abs() < 1e-12);
        let (ticks, _) = Range { low: 3.0e7, high: 9.1e7 }.ticks(5);
        assert!((3..=6).contains(&ticks.len()));
    }

    #[test]
    fn a_range_is_never_empty() {
        for values in [vec![], vec![5.0], vec![5.0, 5.0], vec![0.0], vec![f64::NAN]] {
            let range = Range::around(values.into_iter(), 0.05);
            assert!(range.high > range.low && range.high.is_finite());
            assert!(!range.ticks(5).0.is_empty());
        }
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten_or_finer() {
        let texts = |low: f64, high: f64, most: usize| -> Vec<String> {
            let ticks = log_ticks(Range { low: low.log10(), high: high.log10() }, most);
            ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(0.005, 300.0, 8), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(texts(0.3, 6.0, 8), ["0.5", "1", "2", "5"]);
        assert_eq!(texts(1e-3, 1e3, 4), ["0.001", "0.1", "10", "1000"]);
    }

    #[test]
    fn numbers_have_a_true_minus_and_no_negative_zero() {
        assert_eq!(number(-1.5, 1), "\u{2212}1.5");
        assert_eq!(number(-0.001, 1), "0.0");
        assert_eq!(number(123456.0, 0), "1.2e5");
    }
}
