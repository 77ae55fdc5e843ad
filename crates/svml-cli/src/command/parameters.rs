//! `svml parameters`: what can be set, from the library's own table.

use std::fmt::Write;

use serde_json::{Value, json};
use svml::Method;

use crate::args::Parameters;
use crate::console;
use crate::failure::Outcome;
use crate::words;

/// Columns of the text.
const WIDTH: usize = 100;

/// Runs the command.
pub fn run(args: &Parameters) -> Outcome {
    let method = &args.method.method;
    console::print(&match args.json {
        true => format!("{:#}\n", as_json(method)),
        false => as_text(method),
    })
}

fn value(method: &Method, name: &str) -> String {
    method.get(name).unwrap_or_default()
}

fn as_text(method: &Method) -> String {
    let mut text = format!("{method}: {}\n", method.description());
    for parameter in method.parameters() {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{} = {}\n", parameter.name, value(method, parameter.name));
        text.push_str(&words::wrapped(parameter.help, "    ", WIDTH));
        let must_be = format!("It must be {}.", parameter.must_be);
        text.push_str(&words::wrapped(&must_be, "    ", WIDTH));
    }
    let learners: Vec<&str> = Method::learner_names().collect();
    let end = format!(
        "Set a parameter with --set NAME=VALUE or within the method, as in svml:lambda=0.1. The methods are euclidean, \
         knn, fixed and the learners {}; a learner can be followed by +svm, +knn or +none.",
        learners.join(", ")
    );
    text.push('\n');
    text.push_str(&words::wrapped(&end, "", WIDTH));
    text
}

fn as_json(method: &Method) -> Value {
    let parameters: Vec<Value> = (method.parameters().iter())
        .map(|parameter| {
            json!({
                "name": parameter.name,
                "value": value(method, parameter.name),
                "must_be": parameter.must_be,
                "help": parameter.help.trim(),
            })
        })
        .collect();
    json!({
        "method": method.to_string(),
        "description": method.description(),
        "parameters": parameters,
    })
}
