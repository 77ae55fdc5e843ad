//! The library behind a page: functions for WebAssembly that take and give bytes.
//!
//! The page asks for room by `input`, writes a table there, calls `train`, `predict` or `model`, and reads what `output`
//! points to: JSON with an `error` or a result, or the bytes of the model file. Nothing is imported, so that no tool has to
//! work on the module between the compiler and the page.

// Names that the page can call are all that is unsafe here: two functions could have the same.
#![allow(unsafe_code)]

use std::cell::RefCell;

use serde_json::{Value, json};
use svml::figures::Relevance;
use svml::{Dataset, Model, ReadOptions, Result, Svml};

/// What lies between two calls of the page.
#[derive(Default)]
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    model: Option<Model>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Makes room for the bytes of a table, and says where.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; bytes];
        state.input.as_mut_ptr()
    })
}

/// Where the result is.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// How many bytes it has.
#[unsafe(no_mangle)]
pub extern "C" fn output_bytes() -> usize {
    STATE.with_borrow(|state| state.output.len())
}

/// Learns from the table of the input, whose classes are in the last column.
#[unsafe(no_mangle)]
pub extern "C" fn train() {
    STATE.with_borrow_mut(|state| {
        let learned = learn(&state.input).map(|(model, told)| {
            state.model = Some(model);
            told
        });
        state.output = in_json(learned);
    });
}

/// Classifies the rows of the input by the model that was learned last.
#[unsafe(no_mangle)]
pub extern "C" fn predict() {
    STATE.with_borrow_mut(|state| {
        let told = match &state.model {
            Some(model) => classify(model, &state.input),
            None => Ok(json!({ "error": "there is no model yet; train one first" })),
        };
        state.output = in_json(told);
    });
}

/// The bytes of the model file; none if nothing was learned.
#[unsafe(no_mangle)]
pub extern "C" fn model() {
    STATE.with_borrow_mut(|state| {
        state.output = state.model.as_ref().and_then(|m| m.to_bytes().ok()).unwrap_or_default();
    });
}

fn in_json(told: Result<Value>) -> Vec<u8> {
    let told = told.unwrap_or_else(|error| json!({ "error": error.to_string() }));
    told.to_string().into_bytes()
}

fn learn(table: &[u8]) -> Result<(Model, Value)> {
    let data = Dataset::from_csv(table, &ReadOptions::default())?;
    let model = Model::fit(&data, Svml::default())?;
    let honest = model.report().honest.as_ref();
    let Relevance { names, values, .. } = Relevance::new(&model);
    let told = json!({
        "rows": data.rows(),
        "target": model.schema().target().name,
        "classes": model.classes(),
        "error": null,
        "honest": honest.map(|h| json!([h.error, h.standard_error, h.guessing])),
        "members": model.members().iter().map(|member| json!({
            "weight": member.weight(),
            "kernel": member.kernel(),
            "form": member.metric().form(),
            "cost": member.cost(),
        })).collect::<Vec<_>>(),
        "relevance": names.iter().zip(&values).collect::<Vec<_>>(),
        "warnings": model.report().warnings,
    });
    Ok((model, told))
}

fn classify(model: &Model, table: &[u8]) -> Result<Value> {
    let new = model.schema().read_csv(table, &ReadOptions::default())?;
    let p = model.probabilities(&new.x)?;
    Ok(json!({
        "error": null,
        "labels": model.predict_labels(&new.x)?,
        "given": new.labels,
        "probabilities": p.iter_rows().collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn ask(table: &str, question: extern "C" fn()) -> Value {
        let _ = input(table.len());
        STATE.with_borrow_mut(|state| state.input.copy_from_slice(table.as_bytes()));
        question();
        STATE.with_borrow(|state| serde_json::from_slice(&state.output).unwrap())
    }

    #[test]
    fn a_page_trains_and_predicts() {
        assert!(ask("1,2\n", predict)["error"].as_str().unwrap().contains("train one first"));
        assert!(ask("a,b\n1,2\n", train)["error"].is_string());
        let rows: String =
            (0..80).map(|i| format!("{},{},{}\n", i * 7 % 23, i % 5, i * 7 % 23 / 12)).collect();
        let told = ask(&format!("size,other,class\n{rows}"), train);
        assert_eq!((&told["error"], &told["rows"]), (&Value::Null, &json!(80)));
        assert_eq!(told["classes"], json!(["0", "1"]));
        assert!(told["honest"][0].as_f64().unwrap() < 0.1);
        let told = ask("other,size\n1,2\n1,20\n", predict);
        assert_eq!(told["labels"], json!(["0", "1"]));
        assert!(told["probabilities"][0][0].as_f64().unwrap() > 0.5);
        model();
        let bytes = STATE.with_borrow(|state| state.output.clone());
        assert_eq!(Model::from_bytes(&bytes).unwrap().classes(), ["0", "1"]);
        assert_eq!(output_bytes(), bytes.len());
        assert!(!output().is_null());
    }
}
