//! `svml explain`: in words, as a table, as JSON and as a picture.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use sandbox::{Sandbox, generated};
use serde_json::Value;
use svml::Model;

fn with_rows_kept() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(150));
    sandbox.svml(&["train", "train.csv", "-o", "m.svml", "--keep-rows"]).code(0);
    sandbox
}

#[test]
fn a_row_in_words_adds_up() {
    let sandbox = with_rows_kept();
    let page = sandbox.svml(&["explain", "m.svml", "train.csv", "--row", "4"]).code(0).out;
    let number = |start: &str| -> f64 {
        let line = page.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        let text = line.split_whitespace().find(|word| word.starts_with(['+', '-'])).unwrap();
        text.parse().unwrap()
    };
    let table = page.split("\n\n").nth(1).unwrap();
    let sum: f64 = (table.lines().skip(1).filter(|line| !line.contains("this row")))
        .map(|line| line.split_whitespace().rfind(|w| w.starts_with(['+', '-'])).unwrap())
        .map(|word| word.parse::<f64>().unwrap())
        .sum();
    // Each of up to twelve numbers is rounded.
    assert!((number("reference") + sum - number("this row")).abs() < 0.01, "{page}");
    // A training row is most like itself.
    let first = page.lines().skip_while(|line| !line.contains("distance")).nth(1).unwrap();
    let cells: Vec<&str> = first.split_whitespace().collect();
    assert_eq!((cells[0], cells[2]), ("4", "0"), "{page}");
}

#[test]
fn all_rows_as_a_table_and_as_json() {
    let sandbox = with_rows_kept();
    let table = sandbox.svml(&["explain", "m.svml", "train.csv"]).code(0).out;
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("class,against,decision,reference,x1,x2,"));
    assert_eq!(lines.clone().count(), 150);
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    let why = model.explain(generated(150).x(), None).unwrap();
    for (row, line) in lines.enumerate() {
        let cells: Vec<f64> = line.split(',').skip(2).map(|cell| cell.parse().unwrap()).collect();
        assert!((cells[0] - cells[1] - cells[2..].iter().sum::<f64>()).abs() < 1e-9);
        assert_eq!(cells[0], why.output[row]);
    }
    let run = sandbox.svml(&["explain", "m.svml", "train.csv", "--row", "2", "--json"]).code(0);
    let value: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(value["contributions"].as_object().unwrap().len(), 10);
    assert_eq!(value["alike"].as_array().unwrap().len(), 5);
    assert_eq!(value["alike"][0]["row"], 2);
    let all = sandbox.svml(&["explain", "m.svml", "train.csv", "--json"]).code(0);
    let all: Value = serde_json::from_str(&all.out).unwrap();
    assert_eq!(all["rows"].as_array().unwrap().len(), 150);
    assert_eq!(all["rows"][1]["decision"], value["decision"]);
}

#[test]
fn a_reference_and_a_picture() {
    let sandbox = with_rows_kept();
    let args = ["explain", "m.svml", "train.csv", "--row", "4", "--reference", "4"];
    let page = sandbox.svml(&args).code(0).out;
    assert!(page.contains("Compared with row 4 ("), "{page}");
    let args = ["explain", "m.svml", "train.csv", "--row", "4", "-o", "w.svg", "--columns", "3"];
    sandbox.svml(&args).code(0);
    let picture = sandbox.read("w.svg");
    assert!(picture.contains("7 other columns") && picture.contains("this row"));
}

#[test]
fn training_rows_are_kept_only_if_asked_for() {
    let sandbox = Sandbox::with_model();
    let page = sandbox.svml(&["explain", "m.svml", "train.csv", "--row", "1"]).code(0).out;
    assert!(page.contains("train with --keep-rows"), "{page}");
    assert!(!Model::load(sandbox.path("m.svml")).unwrap().keeps_rows());
}

#[test]
fn what_cannot_be_done_is_said() {
    let sandbox = Sandbox::with_model();
    for (args, words) in [
        (&["--row", "201"][..], "--row 201: there is no such row; train.csv has rows 1 to 200"),
        (&["--row", "0"], "--row 0: there is no such row; train.csv has rows 1 to 200"),
        (&["--row", "1", "--reference", "999"], "--reference 999"),
        (&["-o", "w.png"], "choose it with --row N"),
    ] {
        let run = sandbox.svml(&[&["explain", "m.svml", "train.csv"], args].concat()).code(2);
        assert!(run.err.contains(words), "{}", run.err);
    }
    let args = ["train", "train.csv", "-o", "n.svml", "--method", "nca+knn"];
    sandbox.svml(&args).code(0);
    let run = sandbox.svml(&["explain", "n.svml", "train.csv"]).code(3);
    assert!(run.err.contains("nearest-neighbour"), "{}", run.err);
}
