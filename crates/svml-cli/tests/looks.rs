//! How help and tables look. After a wanted change run with INSTA_UPDATE=always and read the difference.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use insta::assert_snapshot;
use sandbox::{Sandbox, generated};

/// Help is wrapped to the terminal; without one, to 100 columns.
fn help(args: &[&str]) -> String {
    Sandbox::new().svml(args).code(0).out
}

#[test]
fn help_of_every_command() {
    assert_snapshot!("help", help(&["--help"]));
    for command in [
        "train",
        "predict",
        "evaluate",
        "transform",
        "compare",
        "learning-curve",
        "show",
        "parameters",
        "plot",
        "export",
        "demo",
        "svm-train",
        "svm-predict",
    ] {
        assert_snapshot!(format!("help-{command}"), help(&[command, "--help"]));
    }
    assert_snapshot!("help-data", help(&["data", "--help"]));
    assert_snapshot!("help-data-list", help(&["data", "list", "--help"]));
    assert_snapshot!("help-data-fetch", help(&["data", "fetch", "--help"]));
}

/// Times and the last digits, which depend on the processor, are masked.
fn masked(text: &str) -> String {
    let mut out = String::new();
    let mut digits = 0;
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits += 1;
            if digits == 1 {
                out.push('0');
            }
        } else {
            digits = 0;
            out.push(c);
        }
    }
    // Columns line up by their width, which is gone with the digits.
    out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn tables() {
    let sandbox = Sandbox::with_model();
    let run = |args: &[&str]| sandbox.svml(args).code(0).out;
    assert_snapshot!("evaluate", masked(&run(&["evaluate", "m.svml", "train.csv"])));
    // How long a bar is, and how many features are named, is a matter of the data.
    assert_snapshot!("show", masked(&run(&["show", "m.svml"]).replace('#', "")));
    let compare = run(&["compare", "train.csv", "--splits", "3", "--quiet"]);
    assert_snapshot!("compare", masked(&compare));
    let train = run(&[&["train", "train.csv", "-o", "x.svml"], &sandbox::FULL[..]].concat());
    assert_snapshot!("train", masked(&train).replace("x0 0.0 %, ", ""));
    // The form is chosen.
    let train = run(&["train", "train.csv", "-o", "auto.svml"]);
    assert_snapshot!("train-auto", masked(&train).replace("x0 0.0 %, ", ""));
    assert_snapshot!("show-auto", masked(&run(&["show", "auto.svml"]).replace('#', "")));
    assert_snapshot!("data-list", run(&["data", "list", "--dir", "d"]));
}

/// What a user sees where something is to be said: a kernel of its own, an SVM in place of the mean, and labels that
/// nothing can be learned from.
#[test]
fn models_with_something_to_say() {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(200));
    let run = |args: &[&str]| sandbox.svml(args).code(0);
    let laplacian = ["--form", "diagonal", "--kernel", "laplacian"];
    let train = run(&[&["train", "train.csv", "-o", "l.svml"], &laplacian[..]].concat()).out;
    assert_snapshot!("train-laplacian", masked(&train).replace("x0 0.0 %, ", ""));
    let show = run(&["show", "l.svml"]).out.replace('#', "");
    // How many eigenvalues are 0 is a matter of rounding.
    assert_snapshot!("show-laplacian", masked(show.split_once("\nEigenvalues").unwrap().0));
    let export = sandbox.svml(&["export", "l.svml", "--to", "libsvm"]).code(3).err;
    assert_snapshot!("export-laplacian", export);

    sandbox.write_table("many.csv", &generated(1000));
    let train = run(&["train", "many.csv", "-o", "r.svml"]).out;
    assert_snapshot!("train-rank", masked(&train).replace("x0 0.0 %, ", ""));

    // Two of each row, of which one has one class and one the other.
    let rows = |i: usize| format!("{0},{1},x\n{0},{1},y\n", i * 7 % 61, i * 11 % 53);
    sandbox.write("coin.csv", &format!("a,b,class\n{}", (0..60).map(rows).collect::<String>()));
    let train = run(&["train", "coin.csv", "-o", "c.svml"]);
    let warnings = train.err.lines().filter(|line| line.contains("warning"));
    let said = train.out.lines().filter(|line| line.contains("guessing"));
    let text: Vec<&str> = warnings.chain(said).collect();
    assert_snapshot!("train-guessing", masked(&text.join("\n")));
}

#[test]
fn columns_of_a_table_line_up() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(100));
    let args = ["compare", "t.csv", "--splits", "2", "--methods", "svml,svml:diagonal"];
    let out = sandbox.svml(&args).code(0).out;
    let rows: Vec<&str> = out.lines().skip(2).take(4).collect();
    let end = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == end), "{out}");
}
