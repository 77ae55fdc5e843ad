//! Why one row is classified as it is: bars from the output at the reference row to that at the row.

use svml::figures::Waterfall;

use crate::axis::{Panel, Range, number};
use crate::canvas::{Anchor, Canvas, GREY, INK, Stroke};
use crate::font;
use crate::style::colour;
use crate::{Draw, Picture};

/// Widest name and value at the axis.
const NAME: f64 = 260.0;
/// Height of a bar with its gap.
const STEP: f64 = 26.0;
/// Width of the panel.
const WIDTH: f64 = 420.0;

/// One line of the picture.
struct Bar {
    name: String,
    /// Where the output was before this column and is after it; the same for both ends of the way.
    from: f64,
    to: f64,
}

impl Bar {
    /// All lines, from the reference row to the row.
    fn all(figure: &Waterfall) -> Vec<Self> {
        let mut at = figure.base;
        let mut bars = vec![Bar { name: "reference row".to_owned(), from: at, to: at }];
        let others = match figure.others {
            0 => None,
            1 => Some("1 other column".to_owned()),
            n => Some(format!("{n} other columns")),
        };
        // The small ones together first, so that the largest end at the output.
        let listed = figure.columns.iter().zip(&figure.values).zip(&figure.contributions).rev();
        let listed = listed.map(|((name, value), c)| (format!("{name} = {value}"), *c));
        for (name, contribution) in others.map(|name| (name, figure.rest)).into_iter().chain(listed)
        {
            bars.push(Bar { name, from: at, to: at + contribution });
            at += contribution;
        }
        bars.push(Bar { name: "this row".to_owned(), from: figure.output, to: figure.output });
        bars
    }
}

impl Draw for Waterfall {
    fn draw(&self, title: &str) -> Picture {
        let bars = Bar::all(self);
        let names: Vec<String> =
            bars.iter().map(|bar| font::shorten(&bar.name, 12.0, NAME)).collect();
        let room = names.iter().map(|name| font::width(name, 12.0)).fold(30.0, f64::max);
        let (left, top) = (30.0 + room, 62.0);
        let height = STEP * bars.len() as f64 + 8.0;
        let mut canvas = Canvas::new(left + WIDTH + 70.0, top + height + 60.0, title);
        let [first, second] = &self.between;
        canvas.heading(title, &format!("To the right: for {second}; to the left: for {first}"));
        let ends = bars.iter().flat_map(|bar| [bar.from, bar.to]).chain([0.0]);
        let x = Range::around(ends, 0.08);
        let panel = Panel { left, top, width: WIDTH, height, x, y: Range { low: 0.0, high: 1.0 } };
        let bottom = top + height;
        let (ticks, decimals) = x.ticks(6);
        for value in ticks {
            let (at, _) = panel.at(value, 0.0);
            let stroke = match value == 0.0 {
                true => Stroke { colour: GREY, width: 1.4, dash: "6 4" },
                false => Stroke::solid("#dddddd", 0.8),
            };
            canvas.line((at, top), (at, bottom), stroke);
            canvas.line((at, bottom), (at, bottom + 5.0), Stroke::solid(INK, 1.0));
            canvas.text((at, bottom + 19.0), &number(value, decimals), 11.5, Anchor::Middle);
        }
        for (k, (bar, name)) in bars.iter().zip(&names).enumerate() {
            let y = top + 4.0 + STEP * k as f64;
            let middle = y + STEP / 2.0;
            let place = |value: f64| panel.at(value, 0.0).0;
            let (from, to) = (place(bar.from), place(bar.to));
            canvas.text((left - 8.0, middle + 4.0), name, 12.0, Anchor::End);
            // Where a bar ends the next begins.
            if k + 1 < bars.len() {
                let thin = Stroke::solid(GREY, 0.8);
                canvas.line((to, middle), (to, middle + STEP), thin);
            }
            let is_end = k == 0 || k + 1 == bars.len();
            let text = match is_end {
                true => {
                    canvas.circle((to, middle), 4.6, INK, Stroke::solid(INK, 0.8));
                    number(bar.to, decimals + 1)
                }
                false => {
                    let fill = colour(usize::from(bar.to > bar.from));
                    canvas.rect(
                        from.min(to),
                        y + 4.0,
                        (to - from).abs().max(1.0),
                        STEP - 8.0,
                        fill,
                    );
                    let value = bar.to - bar.from;
                    let sign = if value > 0.0 { "+" } else { "" };
                    format!("{sign}{}", number(value, decimals + 1))
                }
            };
            canvas.text((from.max(to) + 8.0, middle + 4.0), &text, 11.0, Anchor::Start);
        }
        canvas.line((left, bottom), (left + WIDTH, bottom), Stroke::solid(INK, 1.0));
        let label = "decision value";
        canvas.text((left + WIDTH / 2.0, bottom + 42.0), label, 13.0, Anchor::Middle);
        canvas.finish()
    }
}
