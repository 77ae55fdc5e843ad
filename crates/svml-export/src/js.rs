//! JavaScript: one ES module without imports, for browsers and node.

use std::fmt::Write;

use svml::data::{Column, Kind};
use svml::{Model, Result};

use crate::Output;
use crate::parts::{Features, Map, Rest, Svms};

/// The model as an ES module.
///
/// It exports `predict`, `probabilities` and `decision`, or `transform` for a map, each of one row, and `classes`,
/// `features` and `columns`. A row is an array of encoded features or an object by the names of the columns, with the texts
/// of categories and null for a missing value.
pub fn js(model: &Model, output: Output) -> Result<String> {
    let features = Features::of(model);
    let rest = Rest::of(model, output, "as JavaScript")?;
    let mut text = String::from(
        "// A model of svml, as an ES module without imports. A row is an array of numbers in the order of `features`, or an\n// object by the names of `columns`, with the texts of categories; NaN, null and undefined are missing values.\n\n",
    );
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "export const features = Object.freeze({});", list(&features.names));
    if let Rest::Svms(svms) = &rest {
        let _ = writeln!(text, "export const classes = Object.freeze({});", list(svms.classes));
    }
    text.push_str("export const columns = Object.freeze([\n");
    for column in model.schema().columns() {
        let _ = writeln!(text, "  {{ {} }},", described(column));
    }
    text.push_str("]);\n\n");
    match features.fill {
        Some(fill) => array(&mut text, "const fill = ", fill, ";\n"),
        None => text.push_str("const fill = null;\n"),
    }
    array(&mut text, "const mean = ", features.mean, ";\n");
    array(&mut text, "const scale = ", features.scale, ";\n");
    match &rest {
        Rest::Metric(map) => {
            let (rank, values) = shape(map);
            let _ = writeln!(text, "const rank = {rank};");
            array(&mut text, "const map = ", values, ";\n");
        }
        Rest::Svms(svms) => write_members(&mut text, svms),
    }
    text.push_str(include_str!("../templates/features.js"));
    text.push_str(match &rest {
        Rest::Metric(_) => include_str!("../templates/metric.js"),
        Rest::Svms(_) => include_str!("../templates/svms.js"),
    });
    Ok(text)
}

/// What a column is, as the inside of an object, which is JSON too.
pub fn described(column: &Column) -> String {
    let name = quoted(&column.name);
    let (kind, levels) = match &column.kind {
        Kind::Number => ("number", &[][..]),
        Kind::Codes { levels } => ("codes", &levels[..]),
        Kind::OneHot { levels } => ("onehot", &levels[..]),
        _ => ("ignored", &[][..]),
    };
    let levels = list(levels);
    format!("\"name\": {name}, \"kind\": \"{kind}\", \"levels\": {levels}")
}

/// The number of rows of L, 0 if it is diagonal, and its entries.
fn shape(map: &Map) -> (usize, &[f64]) {
    match map {
        Map::Diagonal(weights) => (0, weights),
        Map::Matrix(l) => (l.rows(), l.as_slice()),
    }
}

fn write_members(text: &mut String, svms: &Svms<'_>) {
    let temperature = svms.temperature.map_or("null".to_owned(), |value| format!("{value:e}"));
    let _ = writeln!(text, "const temperature = {temperature};");
    match &svms.log_weights {
        Some(log_weights) => {
            text.push_str(
                "// Probabilities are corrected for the weights that the classes had in training.\n",
            );
            array(text, "const logWeights = ", log_weights, ";\n");
        }
        None => text.push_str("const logWeights = null;\n"),
    }
    let counts: Vec<String> = svms.counts.iter().map(usize::to_string).collect();
    let _ = writeln!(
        text,
        "// Support vectors of each class.\nconst counts = [{}];",
        counts.join(", ")
    );
    if svms.uses_support() {
        text.push_str("// Support vectors, standardised, row after row.\n");
        array(text, "const support = ", svms.support.as_slice(), ";\n");
    }
    text.push_str(
        "// L has `rank` rows, or is diagonal if that is 0; points are the support vectors mapped by it, or as they are if it is\n// diagonal; beta of a support vector is for the SVMs of its class with the other classes in order.\nconst members = [\n",
    );
    for member in &svms.members {
        let (rank, map) = shape(&member.map);
        let (weight, kernel) = (member.weight, member.kernel);
        let _ = writeln!(text, "  {{ weight: {weight:e}, kernel: \"{kernel}\", rank: {rank},");
        array(text, "    map: ", map, ",\n");
        match &member.points {
            Some(points) => array(text, "    points: ", points.as_slice(), ",\n"),
            None => text.push_str("    points: support,\n"),
        }
        array(text, "    beta: ", member.beta.as_slice(), ",\n");
        array(text, "    bias: ", member.bias, " },\n");
    }
    text.push_str("];\n");
}

fn array(text: &mut String, before: &str, values: &[f64], after: &str) {
    text.push_str(before);
    text.push_str("new Float64Array([");
    for (place, value) in values.iter().enumerate() {
        let _ = write!(text, "{}{value:e}", if place == 0 { "" } else { "," });
    }
    text.push_str("])");
    text.push_str(after);
}

/// Texts as a list, which is JSON too.
pub fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// A text as a constant, of ASCII characters only. Those that could end a script or a comment of a page around it are
/// written by their numbers as well.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte @ b' '..=b'~') if !b"\"\\<>&".contains(&byte) => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out.push('"');
    out
}
