//! C: one file of C99 that needs the mathematical library only.

use std::fmt::Write;

use svml::{Kernel, Model, Result};

use crate::Output;
use crate::parts::{Features, Map, Rest, Svms, pairs};

/// The longest text that every compiler of C99 must take as a constant.
const LONGEST_TEXT: usize = 4095;
/// Numbers in a line.
const IN_A_LINE: usize = 6;

/// The model as one file of C99.
///
/// It defines `svml_predict`, or `svml_transform` for a map, and the names of features and classes; its first lines say
/// how they are used.
pub fn c(model: &Model, output: Output) -> Result<String> {
    let features = Features::of(model);
    let rest = Rest::of(model, output, "as C")?;
    let mut text =
        String::from("/* A model of svml, as C99 without dependencies; link with -lm.\n *\n");
    text.push_str(match &rest {
        Rest::Metric(_) => METRIC,
        Rest::Svms(_) => SVMS,
    });
    text.push_str(" */\n\n#include <math.h>\n#include <stddef.h>\n\n");
    define(&mut text, "FEATURES", features.names.len());
    define(&mut text, "FILLS", usize::from(features.fill.is_some()));
    match &rest {
        Rest::Metric(map) => {
            define(&mut text, "RANK", map.rank());
            define(&mut text, "DIAGONAL", usize::from(matches!(map, Map::Diagonal(_))));
        }
        Rest::Svms(svms) => sizes(&mut text, svms),
    }
    text.push_str(match &rest {
        Rest::Metric(_) => {
            "\nextern const char *const svml_features[SVML_FEATURES];\nint svml_transform(const double *x, double *z);\n"
        }
        Rest::Svms(_) => {
            "\nextern const char *const svml_features[SVML_FEATURES];\nextern const char *const svml_classes[SVML_CLASSES];\nint svml_predict(const double *x, double *decision, double *probabilities);\n"
        }
    });
    names(&mut text, "svml_features", "SVML_FEATURES", &features.names);
    if let Rest::Svms(svms) = &rest {
        names(&mut text, "svml_classes", "SVML_CLASSES", svms.classes);
    }
    if let Some(fill) = features.fill {
        array(&mut text, "fill", fill);
    }
    array(&mut text, "mean", features.mean);
    array(&mut text, "scale", features.scale);
    match &rest {
        Rest::Metric(map) => array(&mut text, "map", values(map)),
        Rest::Svms(svms) => members(&mut text, svms),
    }
    text.push_str(include_str!("../templates/features.c"));
    text.push_str(match &rest {
        Rest::Metric(_) => include_str!("../templates/metric.c"),
        Rest::Svms(_) => include_str!("../templates/svms.c"),
    });
    Ok(text)
}

/// How a classifier is used.
const SVMS: &str = " * int svml_predict(const double *x, double *decision, double *probabilities)
 *
 * x: SVML_FEATURES numbers, in the order of svml_features; NAN for a missing value. A category of the training table is
 * one number for each of its levels, 1 for that of the row and 0 for the others, or a code, the place of the level from 0.
 * decision: room for one number if there are two classes, otherwise for SVML_CLASSES; or NULL.
 * probabilities: room for SVML_CLASSES numbers; or NULL.
 * Returns the class, as a place in svml_classes; or -1, with nothing written, if a value is missing and the model does not
 * fill missing values (SVML_FILLS is 0), or is infinite or beyond 1e300.
 *
 * Names are UTF-8. The functions keep no state and may be called from several threads. For two models in one program
 * compile each with other names: -Dsvml_predict=... -Dsvml_features=... -Dsvml_classes=...
";

/// How a metric is used.
const METRIC: &str = " * int svml_transform(const double *x, double *z)
 *
 * x: SVML_FEATURES numbers, in the order of svml_features; NAN for a missing value. A category of the training table is
 * one number for each of its levels, 1 for that of the row and 0 for the others, or a code, the place of the level from 0.
 * z: room for SVML_RANK numbers, the row as the metric maps it.
 * Returns 0; or -1, with nothing written, if a value is missing and the model does not fill missing values (SVML_FILLS is
 * 0), or is infinite or beyond 1e300.
 *
 * Names are UTF-8. The functions keep no state and may be called from several threads. For two models in one program
 * compile each with other names: -Dsvml_transform=... -Dsvml_features=...
";

// Writing to a string cannot fail, here and below.
fn define(text: &mut String, name: &str, value: usize) {
    let _ = writeln!(text, "#define SVML_{name} {value}");
}

fn sizes(text: &mut String, svms: &Svms<'_>) {
    let classes = svms.classes.len();
    let widest = svms.members.iter().filter(|m| m.points.is_some()).map(|m| m.map.rank()).max();
    define(text, "CLASSES", classes);
    define(text, "PAIRS", pairs(classes).len());
    define(text, "MEMBERS", svms.members.len());
    define(text, "SUPPORT", svms.support.rows());
    define(text, "WIDEST", widest.unwrap_or(1));
    define(text, "WEIGHTED", usize::from(svms.log_weights.is_some()));
}

fn values(map: &Map) -> &[f64] {
    match map {
        Map::Diagonal(weights) => weights,
        Map::Matrix(l) => l.as_slice(),
    }
}

fn members(text: &mut String, svms: &Svms<'_>) {
    let temperature = svms.temperature.map_or("NAN".to_owned(), |value| format!("{value:e}"));
    let _ = writeln!(text, "\nstatic const double temperature = {temperature};");
    if let Some(log_weights) = &svms.log_weights {
        text.push_str(
            "\n/* Probabilities are corrected for the weights that the classes had in training. */",
        );
        array(text, "log_weights", log_weights);
    }
    let counts: Vec<String> = svms.counts.iter().map(usize::to_string).collect();
    let _ = write!(text, "\nstatic const size_t counts[{}] = {{", counts.len());
    lines(text, counts.into_iter());
    text.push_str("};\n");
    if svms.uses_support() {
        text.push_str("\n/* Support vectors, standardised, row after row. */");
        array(text, "support", svms.support.as_slice());
    }
    for (n, member) in svms.members.iter().enumerate() {
        array(text, &format!("map_{n}"), values(&member.map));
        if let Some(points) = &member.points {
            array(text, &format!("points_{n}"), points.as_slice());
        }
        array(text, &format!("beta_{n}"), member.beta.as_slice());
        array(text, &format!("bias_{n}"), member.bias);
    }
    text.push_str(
        "
enum kernel { GAUSSIAN, EXPONENTIAL, LAPLACIAN };

struct member {
    double weight;
    enum kernel kernel;
    /* Rows of L; 0 if it is diagonal. */
    size_t rank;
    /* L, row after row, or its diagonal. */
    const double *map;
    /* The support vectors mapped by L, or as they are if it is diagonal. */
    const double *points;
    /* For each support vector, in the SVMs of its class with the other classes in order; SVML_CLASSES - 1 rows. */
    const double *beta;
    /* Of each pair of classes. */
    const double *bias;
};

static const struct member members[SVML_MEMBERS] = {
",
    );
    for (n, member) in svms.members.iter().enumerate() {
        let kernel = match member.kernel {
            Kernel::Gaussian => "GAUSSIAN",
            Kernel::Exponential => "EXPONENTIAL",
            _ => "LAPLACIAN",
        };
        let (rank, points) = match &member.points {
            Some(_) => (member.map.rank(), format!("points_{n}")),
            None => (0, "support".to_owned()),
        };
        let weight = member.weight;
        let _ = writeln!(
            text,
            "    {{{weight:e}, {kernel}, {rank}, map_{n}, {points}, beta_{n}, bias_{n}}},"
        );
    }
    text.push_str("};\n");
}

/// Numbers as an array; there is at least one.
fn array(text: &mut String, name: &str, values: &[f64]) {
    let _ = write!(text, "\nstatic const double {name}[{}] = {{", values.len());
    lines(text, values.iter().map(|value| format!("{value:e}")));
    text.push_str("};\n");
}

/// Some entries in each line.
fn lines(text: &mut String, entries: impl Iterator<Item = String>) {
    for (place, entry) in entries.enumerate() {
        text.push_str(match place {
            0 => "\n    ",
            _ if place % IN_A_LINE == 0 => ",\n    ",
            _ => ", ",
        });
        text.push_str(&entry);
    }
    text.push('\n');
}

/// Names as an array of texts.
fn names(text: &mut String, array: &str, size: &str, names: &[String]) {
    let long = |name: &String| name.len() > LONGEST_TEXT;
    for (place, name) in names.iter().enumerate().filter(|(_, name)| long(name)) {
        let _ = write!(text, "\nstatic const char {array}_{place}[] = {{");
        lines(text, name.bytes().map(|byte| format!("'{}'", escaped(byte))).chain(["0".into()]));
        text.push_str("};\n");
    }
    let _ = writeln!(text, "\nconst char *const {array}[{size}] = {{");
    for (place, name) in names.iter().enumerate() {
        let _ = match long(name) {
            true => writeln!(text, "    {array}_{place},"),
            false => writeln!(text, "    \"{}\",", name.bytes().map(escaped).collect::<String>()),
        };
    }
    text.push_str("};\n");
}

/// A byte within quotes of either kind. Three octal digits cannot run on into what follows, and question marks could
/// make trigraphs.
fn escaped(byte: u8) -> String {
    match byte {
        b' '..=b'~' if !b"\"\\'?".contains(&byte) => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    }
}
