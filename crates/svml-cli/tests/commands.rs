//! What each command does when all is well.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use sandbox::{Sandbox, generated, table};
use serde_json::Value;
use svml::data::ReadOptions;
use svml::internals::folds::random_split;
use svml::{Dataset, Form, LandmarkChoice, Method, Model, Svml};
use svml_export::{Input, Output, c, js, onnx};

/// The columns of a trace of svml.
const TRACE: &str = "step,kernel,form,half,loss,train_error,valid_error,stopping_error,cost,support_vectors,step_length,seconds\n";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn train_writes_what_the_library_learns() {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(200));
    let run =
        sandbox.svml(&["train", "train.csv", "-o", "m.svml", "--seed", "3", "--trace", "t.csv"]);
    let run = run.code(0);
    assert!(run.err.contains(
        "train.csv: 200 rows, 10 feature columns, all numeric, column names from the first row"
    ));
    let counts = generated(200).class_counts();
    let classes = format!("column class: inside ({}), outside ({})", counts[0], counts[1]);
    assert!(run.err.contains(&classes), "{}", run.err);
    assert!(
        run.out.contains("Learned the mean of 3 SVMs on 10 features from 200 rows"),
        "{}",
        run.out
    );
    assert!(run.out.contains("The model is in m.svml."));
    let data = Dataset::from_path(sandbox.path("train.csv"), &ReadOptions::default()).unwrap();
    let expected = Model::fit(&data, Svml { seed: 3, ..Svml::default() }).unwrap();
    assert!(std::fs::read(sandbox.path("m.svml")).unwrap() == expected.to_bytes().unwrap());
    let trace = sandbox.read("t.csv");
    assert!(trace.starts_with(TRACE));
    for stage in expected.report().stages() {
        let (kernel, form) = (stage.kernel.unwrap(), stage.form.unwrap());
        assert!(trace.contains(&format!("\n{},{kernel},{form},", stage.first)), "{trace}");
    }
    assert_eq!(trace.lines().count(), expected.report().trace.len() + 1);
}

#[test]
fn train_gives_the_same_file_for_any_number_of_threads() {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(300));
    for threads in ["1", "3"] {
        sandbox.svml(&["train", "train.csv", "-o", threads, "--threads", threads]).code(0);
    }
    assert!(std::fs::read(sandbox.path("1")).unwrap() == std::fs::read(sandbox.path("3")).unwrap());
}

#[test]
fn train_as_json() {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(200));
    let args = ["train", "train.csv", "-o", "m", "--json", "--form", "diagonal", "--quiet"];
    let run = sandbox.svml(&args).code(0);
    assert_eq!(run.err, "");
    let value = json(&run.out);
    assert_eq!(value["form"], "diagonal");
    assert_eq!(value["classes"], serde_json::json!(["inside", "outside"]));
    assert_eq!(value["model"], "m");
    assert!(value["cost"].as_f64().unwrap() > 0.0);
    let members = value["members"].as_array().unwrap();
    assert_eq!((members.len(), &members[0]["cost"]), (1, &value["cost"]));
    assert_eq!(
        (&members[0]["kernel"], &members[0]["form"]),
        (&"gaussian".into(), &"diagonal".into())
    );
    assert_eq!(members[0]["weight"], 1.0);
    // One SVM has no spread, and shares add up to one.
    let relevance = value["relevance"].as_array().unwrap();
    assert_eq!(relevance.len(), 10);
    let sum: f64 = relevance.iter().map(|r| r["relevance"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    assert!(relevance.iter().all(|r| r["low"] == r["relevance"] && r["high"] == r["relevance"]));
    // The error on rows that were not used to learn is there for a form that is given, too.
    let model = Model::load(sandbox.path("m")).unwrap();
    let honest = model.report().honest.unwrap();
    assert_eq!(value["honest"]["error"], honest.error);
    assert_eq!(value["honest"]["no_better_than_guessing"], false);
    let options = ["--form", "diagonal", "--set", "cross_fit=false", "--json", "-q"];
    let run = sandbox.svml(&[&["train", "train.csv", "-o", "m"], &options[..]].concat()).code(0);
    assert_eq!(json(&run.out)["honest"], Value::Null);
    // Nothing was compared: the form was given.
    assert_eq!(value["candidates"], serde_json::json!([]));
}

/// A table that a mean of SVMs suits: the class depends on columns, and not sharply.
fn columns(rows: usize) -> String {
    let data = generated(rows);
    let class = |i: usize| {
        let x = data.x().row(i);
        if x[0] + 0.5 * x[1].abs() + 0.4 * x[2] > 0.3 { "yes" } else { "no" }
    };
    let row =
        |i: usize| format!("{},{},{},{}\n", data.x()[(i, 0)], data.x()[(i, 1)], i % 7, class(i));
    format!("a,b,c,class\n{}", (0..rows).map(row).collect::<String>())
}

#[test]
fn without_a_form_the_members_and_their_errors_are_said() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &columns(200));
    let run = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(0);
    let value = json(&sandbox.svml(&["show", "m", "--json"]).code(0).out);
    assert_eq!(value["method"]["svml"]["form"], "auto");
    assert_eq!(value["method"]["svml"]["criterion"], "k_fold=2");
    let model = Model::load(sandbox.path("m")).unwrap();
    let members = value["members"].as_array().unwrap();
    assert_eq!((members.len(), &value["cost"]), (model.members().len(), &Value::Null));
    assert!(members.len() > 1, "{value}");
    let weights: f64 = members.iter().map(|member| member["weight"].as_f64().unwrap()).sum();
    assert!((weights - 1.0).abs() < 1e-9);
    for (shown, member) in members.iter().zip(model.members()) {
        assert_eq!(shown["kernel"], member.kernel().to_string());
        assert_eq!(shown["form"], member.metric().form().to_string());
        assert_eq!(
            (&shown["cost"], &shown["weight"]),
            (&member.cost().into(), &member.weight().into())
        );
    }
    let candidates = value["candidates"].as_array().unwrap();
    let chosen = candidates.iter().filter(|c| c["chosen"] == true).count();
    assert_eq!(chosen, members.len());
    let trained = sandbox.svml(&["train", "t.csv", "-o", "m", "--json", "-q"]).code(0).out;
    for key in ["candidates", "members", "honest", "relevance"] {
        assert_eq!(json(&trained)[key], value[key]);
    }

    let honest = model.report().honest.unwrap();
    assert_eq!(value["honest"]["guessing"], honest.guessing);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let error = format!(
        "{} +- {}; guessing the most frequent class: {}",
        percent(honest.error),
        percent(honest.standard_error),
        percent(honest.guessing)
    );
    let shown = sandbox.svml(&["show", "m"]).code(0).out;
    assert!(
        run.out.contains(&format!("\nError on held-out rows (cross-fitted): {error}.\n")),
        "{}",
        run.out
    );
    let (own, guessing) = error.split_once("; ").unwrap();
    let own = format!("{own} on held-out rows (cross-fitted)");
    assert!(
        shown.contains(&format!("\nError            {own}\n                 {guessing}\n")),
        "{shown}"
    );
    assert!(
        run.out.contains(&format!("Learned the mean of {} SVMs", members.len())),
        "{}",
        run.out
    );
    assert!(shown.contains("criterion k_fold=2, form auto\n"), "{shown}");
    assert!(
        shown.contains("Steps            gaussian sphere on half of the rows: 0 to "),
        "{shown}"
    );
    for text in [&run.out, &shown] {
        for candidate in candidates {
            let weight = format!("{:.2}  ", candidate["weight"].as_f64().unwrap());
            let (kernel, form) = (&candidate["kernel"], candidate["form"].as_str().unwrap());
            let kernel = kernel.as_str().unwrap();
            let mark = if candidate["chosen"] == true { "" } else { "  not in the model" };
            let end = percent(candidate["error"].as_f64().unwrap()) + mark;
            let row = |line: &&str| {
                let line = line.trim_start();
                line.starts_with(&weight) && line.contains(kernel) && line.contains(form)
            };
            let rows: Vec<&str> = text.lines().filter(row).collect();
            assert!(rows.iter().any(|row| row.ends_with(&end)), "{candidate}: {text}");
        }
        // Two folds have no rows for early stopping, and this is better than guessing.
        assert!(!text.contains("early stopping") && !text.contains("no better"), "{text}");
    }
    sandbox.svml(&["plot", "m", "-o", "t.svg", "--kind", "trace"]).code(0);
    let picture = sandbox.read("t.svg");
    assert!(picture.contains(">gaussian sphere") && picture.contains(">laplacian sphere"));
    assert!(picture.contains(&format!("the mean of {} SVMs", members.len())));
    // The relevance is the mean of the members, with its spread.
    let relevance = value["relevance"].as_array().unwrap();
    let number = |r: &Value, key: &str| r[key].as_f64().unwrap();
    assert!(relevance.iter().any(|r| number(r, "low") < number(r, "high") - 0.01));
    for r in relevance {
        let (low, mean, high) = (number(r, "low"), number(r, "relevance"), number(r, "high"));
        assert!(low <= mean && mean <= high);
        let name = r["feature"].as_str().unwrap();
        let spread = format!("{:.2} to", 100.0 * low);
        let row = |line: &&str| line.trim_start().starts_with(&format!("{name} "));
        assert!(shown.lines().filter(row).any(|line| line.contains(&spread)), "{shown}");
    }
}

#[test]
fn a_mean_predicts_maps_and_is_measured_as_the_library_does_it() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &columns(200));
    sandbox.svml(&["train", "t.csv", "-o", "m", "-q"]).code(0);
    let model = Model::load(sandbox.path("m")).unwrap();
    assert!(model.members().len() > 1);
    let data = Dataset::from_path(sandbox.path("t.csv"), &ReadOptions::default()).unwrap();
    let numbers = |text: &str, skip: usize| -> Vec<f64> {
        let cells = text.lines().skip(1).flat_map(|line| line.split(',').skip(skip));
        cells.filter_map(|cell| cell.parse().ok()).collect()
    };
    let args = ["predict", "m", "t.csv", "--decision", "--probabilities"];
    let out = sandbox.svml(&args).code(0).out;
    let (h, p) = (model.decision(data.x()).unwrap(), model.probabilities(data.x()).unwrap());
    let expected: Vec<f64> = (0..200).flat_map(|i| [h[(i, 0)], p[(i, 0)], p[(i, 1)]]).collect();
    assert_eq!(numbers(&out, 1), expected);
    let labels: Vec<&str> = out.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(labels, model.predict_labels(data.x()).unwrap());
    let out = sandbox.svml(&["transform", "m", "t.csv"]).code(0).out;
    assert_eq!(numbers(&out, 0), model.transform(data.x()).unwrap().into_vec());
    let value = json(&sandbox.svml(&["evaluate", "m", "t.csv", "--json"]).code(0).out);
    assert_eq!(value["error"], model.error_rate(&data).unwrap());
}

#[test]
fn few_directions_are_one_svm_and_said_so() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(1000));
    let out = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(0).out;
    assert!(out.contains("Learned a metric of rank=2 on 10 features with C = "), "{out}");
    assert!(
        out.contains("It was chosen over other SVMs by their errors on held-out rows"),
        "{out}"
    );
    // The error on validation rows is that of a metric that was learned on them.
    assert!(!out.contains("validation rows"), "{out}");
    let (own, others) = out.split_once("1.00  gaussian     rank=2").unwrap();
    assert!(!own.contains("not in the model"), "{out}");
    assert_eq!(others.matches("  not in the model\n").count(), 3, "{out}");
    let shown = sandbox.svml(&["show", "m"]).code(0).out;
    assert!(shown.contains("Kernel           gaussian, exp(-|L (x - z)|^2)\n"), "{shown}");
}

/// A table written twice: the copies are on one side of each split, in one fold, and that is said.
#[test]
fn copies_stay_together() {
    let sandbox = Sandbox::new();
    let data = generated(120);
    let twice = data.select(&(0..240).map(|i| i / 2).collect::<Vec<_>>());
    sandbox.write_table("t.csv", &twice);
    let run = sandbox.svml(&["compare", "t.csv", "--splits", "2"]).code(0);
    assert!(run.err.contains("copies of one observation, which are on one side"), "{}", run.err);
    let run = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(0);
    assert!(run.err.contains("120 of 240 rows repeat another row"), "{}", run.err);
    let run = sandbox.svml(&["train", "t.csv", "-o", "m", "--set", "equal_rows=observations"]);
    assert!(!run.code(0).err.contains("repeat another row"));
    sandbox.svml(&["train", "t.csv", "-o", "m", "--set", "equal_rows=both"]).code(2);
}

#[test]
fn a_model_that_is_no_better_than_guessing_says_so() {
    let sandbox = Sandbox::new();
    let random = generated(120);
    // The class has nothing to do with the columns.
    let row = |i: usize| {
        let class = ["x", "y"][(i * 7919 + 13) % 101 % 2];
        format!("{},{},{class}\n", random.x()[(i, 0)], random.x()[(i, 1)])
    };
    sandbox.write("t.csv", &format!("a,b,class\n{}", (0..120).map(row).collect::<String>()));
    let run = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(0);
    let value = json(&sandbox.svml(&["show", "m", "--json"]).code(0).out);
    assert_eq!(value["honest"]["no_better_than_guessing"], true);
    let shown = sandbox.svml(&["show", "m"]).code(0).out;
    for text in [&run.out, &shown] {
        assert!(
            text.contains("Neither this error nor the log loss is better than guessing"),
            "{text}"
        );
    }
    assert!(run.err.contains("warning: on held-out rows"), "{}", run.err);
}

#[test]
fn a_kernel_goes_with_a_form() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &columns(150));
    let train = ["train", "t.csv", "-o", "m"];
    for (kernel, article) in [("exponential", "an"), ("laplacian", "a"), ("gaussian", "")] {
        let options = ["--form", "diagonal", "--kernel", kernel];
        let out = sandbox.svml(&[&train[..], &options].concat()).code(0).out;
        let with = match article {
            "" => "features with C = ".to_owned(),
            _ => format!("features with {article} {kernel} kernel and C = "),
        };
        assert!(out.contains(&with), "{out}");
        let value = json(&sandbox.svml(&["show", "m", "--json"]).code(0).out);
        assert_eq!(value["members"][0]["kernel"], kernel);
        assert_eq!(value["method"]["svml"]["kernel"], kernel);
        sandbox.svml(&["predict", "m", "t.csv", "--probabilities"]).code(0);
        sandbox.svml(&["plot", "m", "t.csv", "-o", "m.svg"]).code(0);
    }
    let method = "svml:diagonal,svml:diagonal,kernel=laplacian";
    let args = ["compare", "t.csv", "--splits", "2", "--json", "-q", "--methods", method];
    let value = json(&sandbox.svml(&args).code(0).out);
    assert_eq!(value["methods"][2]["method"], "svml:diagonal,kernel=laplacian");
    let kernel = ["--kernel", "exponential", "--form", "sphere"];
    sandbox.svml(&[&["compare", "t.csv", "--splits", "2", "-q"], &kernel[..]].concat()).code(0);
    for (options, part) in [
        (&["--kernel", "laplacian"][..], "needs a form, such as --form diagonal"),
        (&["--method", "svml:kernel=exponential"], "svml:kernel=exponential with kernel = "),
        (&["--kernel", "laplacian", "--form", "full"], "sphere or diagonal for the laplacian"),
        (&["--kernel", "linear"], "gaussian, exponential or laplacian"),
        (&["--kernel", "laplacian", "--method", "nca"], "the method nca has no parameter kernel"),
    ] {
        let run = sandbox.svml(&[&train[..], options].concat()).code(2);
        assert!(run.err.contains(part), "{}", run.err);
    }
}

#[test]
fn only_one_svm_with_the_gaussian_kernel_is_exported() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &columns(150));
    for options in [&[][..], &["--form", "diagonal", "--kernel", "exponential"]] {
        sandbox.svml(&[&["train", "t.csv", "-o", "m", "-q"], options].concat()).code(0);
        let run = sandbox.svml(&["export", "m", "--to", "libsvm", "-o", "l"]).code(3);
        assert!(
            run.err.contains("m: a LIBSVM model holds a single SVM with a Gaussian"),
            "{}",
            run.err
        );
        assert!(run.err.contains("--form diagonal or --form sphere"), "{}", run.err);
        assert!(!sandbox.path("l").exists());
    }
    for form in ["diagonal", "sphere"] {
        sandbox.svml(&["train", "t.csv", "-o", "m", "-q", "--form", form]).code(0);
        sandbox.svml(&["export", "m", "--to", "libsvm", "-o", "l"]).code(0);
    }
}

#[test]
fn every_model_but_nearest_neighbours_is_exported() {
    let sandbox = Sandbox::new();
    sandbox.write("t.csv", &columns(150));
    for options in [&[][..], &["--form", "rank=1"], &["--method", "nca+none"]] {
        sandbox.svml(&[&["train", "t.csv", "-o", "m", "-q"], options].concat()).code(0);
        let model = Model::load(sandbox.path("m")).unwrap();
        let run = sandbox.svml(&["export", "m", "--to", "onnx", "-o", "m.onnx"]).code(0);
        assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
        let bytes = std::fs::read(sandbox.path("m.onnx")).unwrap();
        assert_eq!(bytes, onnx(&model, Input::Features, Output::Model).unwrap());
        let run = sandbox.svml(&["export", "m", "--to", "c"]).code(0);
        assert_eq!(run.out, c(&model, Output::Model).unwrap());
        sandbox.svml(&["export", "m", "--to", "js", "-o", "m.js"]).code(0);
        assert_eq!(sandbox.read("m.js"), js(&model, Output::Model).unwrap());
    }
    sandbox.svml(&["train", "t.csv", "-o", "m", "-q", "--method", "knn:k=3"]).code(0);
    for to in ["onnx", "c", "js"] {
        let run = sandbox.svml(&["export", "m", "--to", to, "-o", "x"]).code(3);
        assert!(run.err.contains("m: a nearest-neighbour model cannot be exported"), "{}", run.err);
        assert!(!sandbox.path("x").exists());
        sandbox.svml(&["export", "m", "--to", to, "--transform", "-o", "map"]).code(0);
    }
    assert_eq!(
        sandbox.read("map"),
        js(&Model::load(sandbox.path("m")).unwrap(), Output::Map).unwrap()
    );
    sandbox.svml(&["export", "m", "--to", "libsvm", "--transform", "-o", "map"]).code(2);
    // Categories are numbers there, except in JavaScript, which knows the texts.
    let rows: String =
        (0..60).map(|i| format!("{},{},{}\n", ["a", "b"][i % 2], i % 7, i % 3 % 2)).collect();
    sandbox.write("c.csv", &format!("kind,size,class\n{rows}"));
    sandbox.svml(&["train", "c.csv", "-o", "m", "-q"]).code(0);
    let run = sandbox.svml(&["export", "m", "--to", "c", "-o", "m.c"]).code(0);
    assert!(run.err.contains("the model has categories"), "{}", run.err);
    assert_eq!(sandbox.svml(&["export", "m", "--to", "js", "-o", "m.js"]).code(0).err, "");
    let run = sandbox.svml(&["export", "m", "--to", "onnx", "-o", "m.onnx"]).code(0);
    assert!(run.err.contains("with --columns it takes strings"), "{}", run.err);
    let args = ["export", "m", "--to", "onnx", "--columns", "-o", "m.onnx"];
    assert_eq!(sandbox.svml(&args).code(0).err, "");
    let model = Model::load(sandbox.path("m")).unwrap();
    let bytes = std::fs::read(sandbox.path("m.onnx")).unwrap();
    assert_eq!(bytes, onnx(&model, Input::Columns, Output::Model).unwrap());
    sandbox.svml(&["export", "m", "--to", "js", "--columns", "-o", "m.js"]).code(2);
}

#[test]
fn every_option_of_learning_reaches_the_model() {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(120));
    let params = |args: &[&str]| {
        let all = [&["train", "train.csv", "-o", "m", "--quiet"], args].concat();
        sandbox.svml(&all).code(0);
        json(&sandbox.svml(&["show", "m", "--json"]).code(0).out)
    };
    assert_eq!(params(&["--form", "rank=2"])["form"], "rank=2");
    assert_eq!(params(&["--form", "auto"])["method"]["svml"]["form"], "auto");
    let given = ["--criterion", "k_fold=3", "--class-weight", "balanced", "--seed", "7"];
    let value = params(&given);
    let svml = &value["method"]["svml"];
    assert_eq!(svml["criterion"], "k_fold=3");
    assert_eq!(svml["class_weight"], "balanced");
    assert_eq!(svml["seed"], 7);
    let paper = params(&["--paper"]);
    assert_eq!(paper["form"], "full");
    assert_eq!(paper["method"]["svml"]["criterion"], "hold_out");
    assert_eq!(paper["method"]["svml"]["optimiser"], "conjugate_gradients");
    let euclidean = params(&["--method", "euclidean"]);
    assert_eq!(euclidean["form"], "sphere");
    assert!(euclidean["method"]["euclidean"]["folds"] == 5);
}

/// The parameters of a model that is trained with options, as they stand in its report.
fn trained_with(sandbox: &Sandbox, options: &[&str]) -> Value {
    sandbox.svml(&[&["train", "train.csv", "-o", "m", "--quiet"], options].concat()).code(0);
    json(&sandbox.svml(&["show", "m", "--json"]).code(0).out)["method"].clone()
}

#[test]
fn any_parameter_can_be_set() {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(120));
    let set = |options: &[&str]| trained_with(&sandbox, options);
    let value = set(&["--set", "lambda=0.2", "--set", "form=rank=2", "--set", "refit=false"]);
    let svml = &value["svml"];
    assert_eq!((&svml["lambda"], &svml["form"]), (&Value::from(0.2), &Value::from("rank=2")));
    assert_eq!(svml["refit"], false);
    let value = set(&["--method", "euclidean", "--set", "widths=[1,2]", "--set", "folds=3"]);
    assert_eq!(value["euclidean"]["widths"], serde_json::json!([1.0, 2.0]));
    assert_eq!(value["euclidean"]["folds"], 3);
    // What is said later counts: the paper, a file, options of their own, --set.
    sandbox.write("p.json", r#"{"lambda": 0.2, "seed": 4, "form": "sphere", "patience": 3}"#);
    let value = set(&["--paper", "--params", "p.json", "--seed", "5", "--set", "patience=2"]);
    let svml = &value["svml"];
    assert_eq!((&svml["lambda"], &svml["form"]), (&Value::from(0.2), &Value::from("sphere")));
    assert_eq!((&svml["seed"], &svml["patience"]), (&Value::from(5), &Value::from(2)));
    assert_eq!(svml["optimiser"], "conjugate_gradients");
    // What the text of the method says counts more than options, and less than --set.
    let value = set(&["--method", "svml:diagonal,seed=1", "--form", "full", "--seed", "2"]);
    assert_eq!((&value["svml"]["form"], &value["svml"]["seed"]), (&"diagonal".into(), &1.into()));
    let value = set(&["--method", "svml:diagonal", "--paper", "--set", "form=sphere"]);
    assert_eq!(value["svml"]["form"], "sphere");
    assert_eq!(value["svml"]["criterion"], "hold_out");
    // All parts of a method that have the parameter get it.
    let value = set(&["--method", "itml", "--seed", "7", "--class-weight", "none"]);
    let itml = &value["svm_after"];
    assert_eq!((&itml["learner"]["itml"]["seed"], &itml["grid"]["seed"]), (&7.into(), &7.into()));
}

#[test]
fn a_model_can_be_trained_again_from_what_show_prints() {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(120));
    for method in ["svml:diagonal,lambda=0.1", "nca:rank=2+knn:k=5", "itml+svm:folds=3"] {
        sandbox.svml(&["train", "train.csv", "-o", "a", "-q", "--method", method]).code(0);
        let shown = sandbox.svml(&["show", "a", "--json"]).code(0).out;
        sandbox.write("all.json", &shown);
        sandbox.write("method.json", &json(&shown)["method"].to_string());
        for file in ["all.json", "method.json"] {
            sandbox.svml(&["train", "train.csv", "-o", "b", "-q", "--params", file]).code(0);
            let bytes = |name: &str| std::fs::read(sandbox.path(name)).unwrap();
            assert!(bytes("a") == bytes("b"), "{method} from {file}");
        }
    }
    let both = ["train", "train.csv", "-o", "b", "--params", "all.json", "--method", "svml"];
    let run = sandbox.svml(&both).code(2);
    assert!(run.err.contains("all.json: the file holds a whole method"), "{}", run.err);
}

#[test]
fn weights_of_classes_can_be_given_by_name() {
    let sandbox = Sandbox::new();
    sandbox.write_table("train.csv", &generated(120));
    let value = trained_with(&sandbox, &["--class-weight", "outside=5,inside=0.5"]);
    let expected = serde_json::json!({"given": {"inside": 0.5, "outside": 5.0}});
    assert_eq!(value["svml"]["class_weight"], expected);
    let run = sandbox.svml(&["train", "train.csv", "-o", "x", "--class-weight", "up=2"]).code(2);
    assert!(run.err.contains("'up'") && run.err.contains("inside"), "{}", run.err);
    let run = sandbox.svml(&["train", "train.csv", "-o", "x", "--class-weight", "up"]).code(2);
    assert!(run.err.contains("CLASS=WEIGHT"), "{}", run.err);
}

#[test]
fn the_parameters_command_lists_what_the_library_has() {
    let sandbox = Sandbox::new();
    let out = sandbox.svml(&["parameters"]).code(0).out;
    for parameter in Method::default().parameters() {
        let value = Method::default().get(parameter.name).unwrap();
        assert!(out.contains(&format!("\n{} = {value}\n", parameter.name)), "{out}");
    }
    assert!(out.contains("lambda |L - L0|^2 / |L0|^2"), "{out}");
    assert!(out.lines().all(|line| line.len() <= 100), "{out}");
    let value = json(&sandbox.svml(&["parameters", "nca:rank=2+knn", "--json"]).code(0).out);
    assert_eq!(value["method"], "nca:rank=2+knn");
    let parameters = value["parameters"].as_array().unwrap();
    let of = |name: &str| parameters.iter().find(|p| p["name"] == name).unwrap();
    assert_eq!((&of("rank")["value"], &of("k")["value"]), (&"2".into(), &"3".into()));
    assert_eq!(of("k")["must_be"], "an integer of at least 1");
    sandbox.svml(&["parameters", "magic"]).code(2);
    // What is printed can be set.
    sandbox.write_table("t.csv", &generated(60));
    for method in ["svml", "euclidean", "fixed", "knn", "itml", "lmnn", "pca"] {
        let value = json(&sandbox.svml(&["parameters", method, "--json"]).code(0).out);
        let settings: Vec<String> = (value["parameters"].as_array().unwrap().iter())
            .map(|p| format!("{}={}", p["name"].as_str().unwrap(), p["value"].as_str().unwrap()))
            .collect();
        let mut args = vec!["train", "t.csv", "-o", "m", "-q", "--method", method];
        settings.iter().for_each(|setting| args.extend(["--set", setting]));
        sandbox.svml(&args).code(0);
    }
}

#[test]
fn models_without_an_svm_work_in_every_command() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(150));
    for method in ["nca:rank=2+knn:k=5", "knn"] {
        let args = ["train", "t.csv", "-o", "m", "--method", method, "--trace", "t.txt"];
        let out = sandbox.svml(&args).code(0).out;
        assert!(out.contains("nearest neighbours"), "{out}");
        let value = json(&sandbox.svml(&["show", "m", "--json"]).code(0).out);
        assert_eq!((&value["classifier"], &value["cost"]), (&"neighbours".into(), &Value::Null));
        assert_eq!((&value["members"], &value["honest"]), (&serde_json::json!([]), &Value::Null));
        let shown = sandbox.svml(&["show", "m"]).code(0).out;
        assert!(shown.contains("Probabilities    yes, shares of the votes"), "{shown}");
        // The library gives the same classes.
        let model = Model::load(sandbox.path("m")).unwrap();
        let rows =
            model.schema().read_path(sandbox.path("t.csv"), &ReadOptions::default()).unwrap();
        let expected = model.predict_labels(&rows.x).unwrap();
        let args = ["predict", "m", "t.csv", "--decision", "--probabilities"];
        let predicted = sandbox.svml(&args).code(0).out;
        assert!(predicted.starts_with("class,decision,p_inside,p_outside\n"), "{predicted}");
        let labels = predicted.lines().skip(1).map(|line| line.split(',').next().unwrap());
        assert!(labels.eq(expected));
        sandbox.svml(&["evaluate", "m", "t.csv"]).code(0);
        sandbox.svml(&["transform", "m", "t.csv"]).code(0);
        for kind in ["map", "metric", "relevance", "reliability"] {
            sandbox.svml(&["plot", "m", "t.csv", "-o", "p.svg", "--kind", kind]).code(0);
        }
        let run = sandbox.svml(&["export", "m", "--to", "libsvm"]).code(3);
        assert!(run.err.contains("m: a LIBSVM model holds a single SVM"), "{}", run.err);
    }
    let out =
        sandbox.svml(&["train", "t.csv", "-o", "m", "--method", "nca:rank=2+none"]).code(0).out;
    assert!(out.contains("only a metric") && out.contains("svml transform m NEW_DATA"), "{out}");
    assert!(sandbox.svml(&["show", "m"]).code(0).out.contains("Classifier       none"));
    assert!(sandbox.svml(&["transform", "m", "t.csv"]).code(0).out.starts_with("z1,z2,class\n"));
    for kind in ["map", "trace", "metric", "relevance"] {
        sandbox.svml(&["plot", "m", "t.csv", "-o", "p.svg", "--kind", kind]).code(0);
    }
    for args in [
        &["predict", "m", "t.csv"][..],
        &["evaluate", "m", "t.csv"],
        &["plot", "m", "t.csv", "-o", "p.svg", "--kind", "reliability"],
        &["plot", "m", "t.csv", "-o", "p.svg", "--kind", "confusion"],
    ] {
        let run = sandbox.svml(args).code(3);
        assert!(run.err.contains("m: the model is only a metric"), "{}", run.err);
        assert!(run.err.contains("+none"), "{}", run.err);
    }
    sandbox.svml(&["export", "m", "--to", "libsvm"]).code(3);
}

#[test]
fn the_methods_that_the_paper_compares_with() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(120));
    for (method, options, form) in [
        ("pca", &["--form", "rank=3"][..], "rank=3"),
        ("nca", &["--form", "rank=2"], "rank=2"),
        ("lmnn", &["--form", "rank=2"], "rank=2"),
        ("lmnn", &[], "full"),
        ("itml", &["--seed", "3"], "full"),
    ] {
        let args = ["train", "t.csv", "-o", "m", "--method", method, "--trace", "t.txt"];
        let run = sandbox.svml(&[&args[..], options].concat()).code(0);
        assert!(run.out.contains("Learned a "), "{method}: {}", run.out);
        let value = json(&sandbox.svml(&["show", "m", "--json"]).code(0).out);
        assert_eq!(value["form"], form, "{method}");
        assert!(value["method"]["svm_after"]["learner"].get(method).is_some(), "{method}");
        let shown = sandbox.svml(&["show", "m"]).code(0).out;
        assert!(shown.contains("then an SVM, width and C by 5-fold"), "{shown}");
        assert!(sandbox.read("t.txt").starts_with("step,loss,gap,step_length,seconds\n"));
        sandbox.svml(&["evaluate", "m", "t.csv"]).code(0);
    }
    let methods = "svml,svml:diagonal,nca,lmnn,itml,pca:rank=2,euclidean";
    let args = ["compare", "t.csv", "--splits", "2", "--methods", methods, "-q"];
    let out = sandbox.svml(&args).code(0).out;
    let first = |line: &str| line.split_whitespace().next().unwrap_or("").to_owned();
    let rows: Vec<String> = out.lines().skip(3).take(7).map(first).collect();
    let expected = ["euclidean", "svml", "svml:diagonal", "nca", "lmnn", "itml", "pca:rank=2"];
    assert_eq!(rows, expected, "{out}");
    let run = sandbox.svml(&["compare", "t.csv", "--methods", "itml:rank=2"]).code(2);
    assert!(run.err.contains("a parameter of itml: gamma, pairs"), "{}", run.err);
}

#[test]
fn a_table_with_categories_gaps_and_semicolons() {
    let sandbox = Sandbox::new();
    let mut text = String::from("kind;size;ill\n");
    for i in 0..60 {
        let (kind, ill) = (["red", "blue", "green"][i % 3], if i % 3 == 0 { "yes" } else { "no" });
        let size = if i == 7 { "?".to_owned() } else { format!("{},5", i % 10) };
        text.push_str(&format!("{kind};{size};{ill}\n"));
    }
    sandbox.write("t.csv", &text);
    let run = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(3);
    assert!(run.err.contains("t.csv: line 9, column size: the value is missing"), "{}", run.err);
    assert!(run.err.contains("--missing drop"));
    let args = ["train", "t.csv", "-o", "m", "--missing", "impute"];
    let run = sandbox.svml(&[&args[..], &["--categories", "codes"]].concat()).code(0);
    assert!(
        run.err.contains("kind: 3 categories encoded as codes: blue, green, red"),
        "{}",
        run.err
    );
    // Few categories are columns of their own by default.
    let run = sandbox.svml(&args).code(0);
    assert!(run.err.contains("(1 numeric, 1 categorical)"), "{}", run.err);
    assert!(run.err.contains("kind: 3 categories encoded as 0/1 columns: blue, green, red"));
    let run = sandbox.svml_with_input(&["predict", "m", "-"], b"size;kind\n?;red\n1;purple\n");
    assert_eq!(run.code(0).out.lines().count(), 3);
    let target = ["train", "t.csv", "-o", "m", "--missing", "drop", "--target", "kind"];
    let run = sandbox.svml(&target).code(0);
    assert!(
        run.err.contains("classes in column kind: blue (19), green (20), red (20)"),
        "{}",
        run.err
    );
}

#[test]
fn a_column_of_names_is_left_out_unless_it_is_asked_for() {
    let sandbox = Sandbox::new();
    let row =
        |i: usize| format!("person {i},{},{}\n", i % 9, ["no", "yes"][usize::from(i % 9 > 4)]);
    sandbox.write("t.csv", &format!("name,size,ill\n{}", (0..60).map(row).collect::<String>()));
    let run = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(0);
    assert!(run.err.contains("t.csv: 60 rows, 1 feature column, all numeric"), "{}", run.err);
    assert!(
        run.err.contains(
            "warning: columns left out because they look like identifiers, which say nothing about new rows: name (its text"
        ),
        "{}",
        run.err
    );
    assert_eq!(json(&sandbox.svml(&["show", "m", "--json"]).code(0).out)["features"], 1);
    // Rows to predict need not have it.
    let run = sandbox.svml_with_input(&["predict", "m", "-"], b"size\n1\n8\n").code(0);
    assert_eq!(run.out, "ill\nno\nyes\n");
    let run = sandbox.svml(&["train", "t.csv", "-o", "m", "--categories", "codes"]).code(0);
    assert!(run.err.contains("2 feature columns (1 numeric, 1 categorical)"), "{}", run.err);
    assert!(!run.err.contains("left out"), "{}", run.err);
}

#[test]
fn one_junk_cell_is_pointed_out() {
    let sandbox = Sandbox::new();
    let text: String = (0..40)
        .map(|i| {
            let a = if i == 30 { "12o".to_owned() } else { i.to_string() };
            format!("{a},{},{}\n", i % 5, if i < 20 { "x" } else { "y" })
        })
        .collect();
    sandbox.write("t.csv", &format!("a,b,class\n{text}"));
    let run = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(3);
    let expected = "svml: t.csv: line 32: column a: '12o' is not a number, but 39 of the 40 values of the column are; correct it; or \
                    treat such values as missing (--missing impute); or, if the column is text on purpose, name it with --text\n";
    assert_eq!(run.err, expected);
    let impute = ["--missing", "impute", "--form", "sphere"];
    for args in [["compare", "t.csv", "--splits", "2"], ["train", "t.csv", "-o", "m"]] {
        let run = sandbox.svml(&[args, impute].concat()).code(0);
        let expected = "warning: column a: 1 of its 40 cells is not a number and was imputed, the first being '12o' in line 32\n";
        assert_eq!(run.err.matches(expected).count(), 1, "{}", run.err);
    }
    // In new rows, too, by a model that imputes; not where nothing in the column is a number.
    let run = sandbox.svml_with_input(&["predict", "m", "-"], b"a,b\n1,2\neh,3\n").code(0);
    assert_eq!(
        run.err,
        "note: a: 1 row has a value that is not a number, such as 'eh', which was imputed\n"
    );
    sandbox.svml_with_input(&["predict", "m", "-", "--strict"], b"a,b\n1,2\neh,3\n").code(3);
    let run = sandbox.svml_with_input(&["predict", "m", "-"], b"a,b\nm,2\nf,3\n").code(3);
    assert!(run.err.contains("line 2: column a: 'm' is not a number"), "{}", run.err);
    let run = sandbox.svml(&["train", "t.csv", "-o", "m", "--text", "a"]).code(0);
    assert!(run.err.contains("a (its text differs in almost every row)"), "{}", run.err);
}

#[test]
fn a_warning_is_one_line() {
    let sandbox = Sandbox::new();
    let rows: String = (0..40).map(|i| format!("{},{},{}\n", i % 7, i * i % 11, i % 2)).collect();
    sandbox.write("t.csv", &format!("a,b,class\n{rows}3,3,\"x\nwarning: forged\"\n"));
    let run = sandbox.svml(&["train", "t.csv", "-o", "m", "--form", "sphere"]).code(0);
    assert!(run.err.contains("forged") && !run.err.contains("\nwarning: forged"), "{}", run.err);
}

#[test]
fn headers_of_numbers_are_found_or_given() {
    let sandbox = Sandbox::new();
    let row = |i: usize| {
        format!("{},{},{},{}\n", i % 7, i * i % 11, i % 5, if i % 7 < 3 { "x" } else { "y" })
    };
    let rows: String = (0..40).map(row).collect();
    sandbox.write("t.csv", &format!("2019,2020,2021,trend\n{rows}"));
    let note = "t.csv: the first row was read as column names (2019, 2020, 2021, trend); if it holds data, use --no-header\n";
    for (options, named, noted) in [
        (&[][..], true, true),
        (&["--target", "trend"], true, false),
        (&["--header"], true, false),
        (&["--no-header"], false, false),
    ] {
        let args = [&["train", "t.csv", "-o", "m", "--form", "sphere"][..], options].concat();
        let err = sandbox.svml(&args).code(0).err;
        assert_eq!(err.contains("40 rows"), named, "{err}");
        assert_eq!(err.contains(note), noted, "{err}");
    }
    let run = sandbox.svml(&["train", "t.csv", "-o", "m", "--header", "--no-header"]).code(2);
    assert!(run.err.contains("--no-header"), "{}", run.err);
}

/// As they are written, in training and in new rows.
#[test]
fn classes_of_tables_are_texts() {
    let sandbox = Sandbox::new();
    let table = |classes: [&str; 2]| -> String {
        let row =
            |i: usize| format!("{},{},{}\n", i % 7, i * i % 11, classes[usize::from(i % 7 < 3)]);
        "a,b,class\n".to_owned() + &(0..40).map(row).collect::<String>()
    };
    for classes in
        [["7", "007"], ["9007199254740992", "9007199254740993"], ["1", "1.0"], ["1.0", "2.0"]]
    {
        sandbox.write("t.csv", &table(classes));
        let args = ["train", "t.csv", "-o", "m", "--form", "sphere"];
        let err = sandbox.svml(&args).code(0).err;
        assert!(classes.iter().all(|class| err.contains(&format!("{class} ("))), "{err}");
        let run = sandbox.svml(&["evaluate", "m", "t.csv", "--json"]).code(0);
        assert_eq!((json(&run.out)["error"].as_f64(), run.err.as_str()), (Some(0.0), ""));
        let run = sandbox.svml(&["predict", "m", "t.csv", "--keep", "class"]).code(0);
        for line in run.out.lines().skip(1) {
            let (kept, predicted) = line.split_once(',').unwrap();
            assert_eq!(kept, predicted);
        }
    }
}

#[test]
fn predict_gives_what_the_model_says() {
    let sandbox = Sandbox::with_model();
    let args = ["predict", "m.svml", "train.csv", "--decision", "--probabilities", "-o", "p.csv"];
    let run = sandbox.svml(&args).code(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    let rows =
        model.schema().read_path(sandbox.path("train.csv"), &ReadOptions::default()).unwrap();
    let (h, p) = (model.decision(&rows.x).unwrap(), model.probabilities(&rows.x).unwrap());
    let text = sandbox.read("p.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("class,decision,p_inside,p_outside"));
    for (row, line) in lines.enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let class = usize::from(h[(row, 0)] > 0.0);
        assert_eq!(cells[0], model.classes()[class]);
        let numbers: Vec<f64> = cells[1..].iter().map(|v| v.parse().unwrap()).collect();
        assert_eq!(numbers, [h[(row, 0)], p[(row, 0)], p[(row, 1)]]);
    }
    assert_eq!(text.lines().count(), 201);
}

#[test]
fn predict_in_the_form_of_svm_predict_for_libsvm_rows() {
    let sandbox = Sandbox::new();
    let rows: String =
        (0..40).map(|i| format!("{} 1:{} 2:{}\n", if i < 20 { -1 } else { 1 }, i, i % 7)).collect();
    sandbox.write("t.txt", &rows);
    let run = sandbox.svml(&["train", "t.txt", "-o", "m"]).code(0);
    assert!(run.err.contains("in LIBSVM format"));
    let run = sandbox.svml(&["predict", "m", "t.txt"]).code(0);
    assert_eq!(run.out.lines().next(), Some("-1"));
    assert_eq!(run.out.lines().count(), 40);
    let run = sandbox.svml(&["predict", "m", "t.txt", "--probabilities"]).code(0);
    assert_eq!(run.out.lines().next(), Some("labels -1 1"));
    assert_eq!(run.out.lines().nth(1).unwrap().split(' ').count(), 3);
}

#[test]
fn evaluate_measures() {
    let sandbox = Sandbox::with_model();
    let run = sandbox.svml(&["evaluate", "m.svml", "train.csv", "--json"]).code(0);
    let value = json(&run.out);
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    let names =
        ["rows", "error", "balanced_error", "auc", "average_precision", "f1", "mcc", "brier"];
    let more = ["log_loss", "calibration_error", "positive", "classes", "confusion", "intervals"];
    assert_eq!(keys, [&names[..], &more, &["per_class"]].concat());
    for name in &names[1..] {
        let (value, interval) = (value[name].as_f64().unwrap(), &value["intervals"][name]);
        let ends = [0, 1].map(|end| interval[end].as_f64().unwrap());
        assert!(ends[0] <= value && value <= ends[1], "{name} {value} {ends:?}");
    }
    assert_eq!(value["per_class"][0]["class"], "inside");
    let predicted = sandbox.svml(&["predict", "m.svml", "train.csv"]).code(0).out;
    let truth = sandbox.read("train.csv");
    let wrong = (predicted.lines().zip(truth.lines()))
        .skip(1)
        .filter(|(p, row)| row.rsplit(',').next() != Some(*p))
        .count();
    assert_eq!(value["error"].as_f64().unwrap(), wrong as f64 / 200.0);
    assert_eq!(value["rows"], 200);
    let text = sandbox.svml(&["evaluate", "m.svml", "train.csv"]).code(0).out;
    assert!(text.contains("balanced error") && text.contains("log loss"));
    assert!(text.contains("95 % interval") && text.contains("average precision"));
}

/// What a threshold predicts is what its probabilities say, and the best one is better than others.
#[test]
fn thresholds() {
    let sandbox = Sandbox::with_model();
    let class_of = |line: &str| line.split(',').next().unwrap().to_owned();
    for (args, positive, at) in [
        (&["--threshold", "0.8"][..], "outside", 0.8),
        (&["--threshold", "0.2", "--positive", "inside"], "inside", 0.2),
        (&["--threshold", "cost=1:4"], "outside", 0.2),
    ] {
        let all = [&["predict", "m.svml", "train.csv", "--probabilities"], args].concat();
        let out = sandbox.svml(&all).code(0).out;
        let place = if positive == "inside" { 1 } else { 2 };
        for line in out.lines().skip(1) {
            let p: f64 = line.split(',').nth(place).unwrap().parse().unwrap();
            assert_eq!(class_of(line) == positive, p >= at, "{line}");
        }
        let value = json(
            &sandbox
                .svml(&[&["evaluate", "m.svml", "train.csv", "--json"], args].concat())
                .code(0)
                .out,
        );
        assert_eq!(value["threshold"]["at"], at);
        assert_eq!(value["positive"], positive);
        let predicted = out.lines().skip(1).filter(|line| class_of(line) == positive).count();
        let confusion = |a: usize, b: usize| value["confusion"][a][b].as_u64().unwrap() as usize;
        assert_eq!(confusion(0, place - 1) + confusion(1, place - 1), predicted);
    }
    let f1 = |threshold: &str| {
        let args = ["evaluate", "m.svml", "train.csv", "--json", "--positive", "inside"];
        json(&sandbox.svml(&[&args[..], &["--threshold", threshold]].concat()).code(0).out)
    };
    let best = f1("f1");
    assert_eq!(best["threshold"]["chosen_on_these_rows"], true);
    for other in ["0.1", "0.3", "0.5", "0.7", "0.9"] {
        assert!(best["f1"].as_f64() >= f1(other)["f1"].as_f64(), "{other}");
    }
    let text = sandbox.svml(&["evaluate", "m.svml", "train.csv", "--threshold", "mcc"]).code(0).out;
    assert!(text.contains("It was chosen on them"), "{text}");
    for (args, part) in [
        (
            &["predict", "m.svml", "train.csv", "--threshold", "f1"][..],
            "find it with svml evaluate",
        ),
        (&["predict", "m.svml", "train.csv", "--threshold", "1.5"], "cost=FP:FN"),
        (&["predict", "m.svml", "train.csv", "--positive", "inside"], "--threshold"),
        (
            &["evaluate", "m.svml", "train.csv", "--threshold", "0.5", "--positive", "up"],
            "inside or outside",
        ),
        (&["evaluate", "m.svml", "train.csv", "--positive", "up"], "inside or outside"),
    ] {
        let run = sandbox.svml(args).code(2);
        assert!(run.err.contains(part), "{}", run.err);
    }
}

/// Weights are given by name everywhere, and a name that is none is refused with those that are.
#[test]
fn class_weights_by_name() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(80));
    let weights = ["--class-weight", "inside=3,outside=1"];
    sandbox.svml(&[&["train", "t.csv", "-o", "m"], &weights[..]].concat()).code(0);
    let shown = sandbox.svml(&["show", "m"]).code(0).out;
    assert!(shown.contains("corrected for the class weights"), "{shown}");
    assert_eq!(json(&sandbox.svml(&["show", "m", "--json"]).code(0).out)["class_weights"][0], 3.0);
    sandbox.svml(&[&["compare", "t.csv", "--splits", "2", "-q"], &weights[..]].concat()).code(0);
    for command in [&["train", "t.csv", "-o", "x"][..], &["compare", "t.csv", "--splits", "2"]] {
        let run = sandbox.svml(&[command, &["--class-weight", "inner=3"]].concat()).code(2);
        assert!(run.err.contains("'inner'"), "{}", run.err);
        assert!(run.err.contains("a class that is in the data: inside, outside"), "{}", run.err);
    }
}

/// The column of groups is no feature, and keeps rows together.
#[test]
fn groups_are_a_column() {
    let sandbox = Sandbox::new();
    let mut text = "who,a,b,class\n".to_owned();
    for i in 0..120 {
        let who = i / 6;
        // The class is that of the person, whom the other rows tell.
        let (a, b, class) = (who * 37 % 101, who * 53 % 97, ["x", "y"][(who * 7 % 5) % 2]);
        text.push_str(&format!("p{who},{a}.{},{b}.{},{class}\n", i % 6, i % 5));
    }
    sandbox.write("t.csv", &text);
    let honest = |args: &[&str]| {
        let run = sandbox.svml(&[&["train", "t.csv", "-o", "m", "--json"], args].concat()).code(0);
        let value = json(&run.out);
        (value["honest"]["error"].as_f64().unwrap(), value["features"].as_u64().unwrap(), run.err)
    };
    let (with, features, said) = honest(&["--groups", "who"]);
    assert!(said.contains("20 groups in column who, which is not used as a feature"), "{said}");
    assert_eq!(features, 2);
    sandbox.svml(&["predict", "m", "t.csv"]).code(0);
    sandbox.write("without.csv", "a,b\n1,2\n");
    sandbox.svml(&["predict", "m", "without.csv"]).code(0);
    let (without, ..) = honest(&[]);
    assert!(without < 0.05 && with > 0.2, "{without} {with}");
    let compare =
        ["compare", "t.csv", "--splits", "3", "--groups", "who", "--measure", "balanced_error"];
    let out = sandbox.svml(&compare).code(0).out;
    assert!(out.contains("by groups (who)") && out.contains("test balanced error, %"), "{out}");
    let run = sandbox.svml(&["train", "t.csv", "-o", "m", "--groups", "whom"]).code(3);
    assert!(run.err.contains("whom") && run.err.contains("who, a, b"), "{}", run.err);
    let run = sandbox.svml(&["train", "t.csv", "-o", "m", "--groups", "class"]).code(2);
    assert!(run.err.contains("other than the target column"), "{}", run.err);
}

#[test]
fn show_repeats_the_warnings() {
    let sandbox = Sandbox::new();
    let rows: String =
        (0..40).map(|i| format!("{i}.5,7,{}\n", if i < 20 { "x" } else { "y" })).collect();
    sandbox.write("t.csv", &format!("a,b,class\n{rows}"));
    let run = sandbox.svml(&["train", "t.csv", "-o", "m"]).code(0);
    assert!(run.err.contains("warning: column b is constant"), "{}", run.err);
    let shown = sandbox.svml(&["show", "m"]).code(0).out;
    assert!(shown.contains("Warning: column b is constant and was left out"), "{shown}");
    assert!(shown.contains("Probabilities    yes"), "{shown}");
}

#[test]
fn transform_maps_rows() {
    let sandbox = Sandbox::with_model();
    sandbox.svml(&["transform", "m.svml", "train.csv", "-o", "z.csv"]).code(0);
    let z = sandbox.read("z.csv");
    assert!(z.starts_with("z1,z2,z3,z4,z5,z6,z7,z8,z9,z10,class\n"));
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    let rows =
        model.schema().read_path(sandbox.path("train.csv"), &ReadOptions::default()).unwrap();
    let expected = model.transform(&rows.x).unwrap();
    let line = z.lines().nth(5).unwrap();
    let read: Vec<f64> = line.split(',').take(10).map(|v| v.parse().unwrap()).collect();
    assert_eq!(read, expected.row(4));
}

#[test]
fn compare_pairs_methods_on_the_same_splits() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(150));
    let args = ["compare", "t.csv", "--splits", "4", "--methods", "svml,svml:sphere", "--json"];
    let value = json(&sandbox.svml(&args).code(0).out);
    assert_eq!(value["splits"], 4);
    let methods = value["methods"].as_array().unwrap();
    let names: Vec<&str> = methods.iter().map(|m| m["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["euclidean", "svml", "svml:sphere"]);
    let errors = |m: &Value| -> Vec<f64> {
        m["errors"].as_array().unwrap().iter().map(|e| e.as_f64().unwrap()).collect()
    };
    // The library on the same splits gives the same errors.
    let data = Dataset::from_path(sandbox.path("t.csv"), &ReadOptions::default()).unwrap();
    for (split, error) in errors(&methods[1]).into_iter().enumerate() {
        let (train, test) = random_split(150, split as u64);
        let model = Model::fit(&data.select(&train), Svml::default()).unwrap();
        assert_eq!(model.error_rate(&data.select(&test)).unwrap(), error);
    }
    let paired: f64 =
        errors(&methods[1]).iter().zip(errors(&methods[0])).map(|(a, b)| a - b).sum::<f64>() / 4.0;
    assert!((methods[1]["difference"].as_f64().unwrap() - paired).abs() < 1e-12);
    assert!(methods[1]["standard_error"].as_f64().unwrap() > 0.0);
    assert_eq!(value["measure"], "error");
    assert_eq!(methods[1]["mean"], methods[1]["error"]);
    assert_eq!(methods[1]["measures"]["error"], methods[1]["errors"]);
}

#[test]
fn compare_by_another_measure() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(120));
    let args = ["compare", "t.csv", "--splits", "3", "--measure", "auc"];
    let out = sandbox.svml(&args).code(0).out;
    assert!(out.contains("test AUC") && out.contains("positive is better"), "{out}");
    let value = json(&sandbox.svml(&[&args[..], &["--json"]].concat()).code(0).out);
    let auc = |m: usize| -> Vec<f64> {
        let all = value["methods"][m]["measures"]["auc"].as_array().unwrap();
        all.iter().map(|v| v.as_f64().unwrap()).collect()
    };
    let apart: f64 = auc(1).iter().zip(auc(0)).map(|(a, b)| a - b).sum::<f64>() / 3.0;
    assert!((value["methods"][1]["difference"].as_f64().unwrap() - apart).abs() < 1e-12);
    assert!(
        (value["methods"][1]["mean"].as_f64().unwrap() - auc(1).iter().sum::<f64>() / 3.0).abs()
            < 1e-12
    );
    let run = sandbox.svml(&["compare", "t.csv", "--measure", "accuracy"]).code(2);
    assert!(run.err.contains("balanced_error"), "{}", run.err);
}

#[test]
fn compare_takes_methods_with_parameters() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(100));
    let first = "svml:sphere,lambda=0.1,nca:rank=2+knn:k=5";
    let args = ["compare", "t.csv", "--splits", "2", "--json", "-q", "--methods", first];
    let more = ["--methods", "knn,euclidean", "--form", "diagonal", "--set", "folds=3"];
    let value = json(&sandbox.svml(&[&args[..], &more].concat()).code(0).out);
    let names: Vec<&str> = (value["methods"].as_array().unwrap().iter())
        .map(|method| method["method"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["euclidean", "svml:sphere,lambda=0.1", "nca:rank=2+knn:k=5", "knn"]);
    for (options, part) in [
        (
            &["--methods", "nca", "--criterion", "hold_out"][..],
            "none of the methods euclidean, nca",
        ),
        (&["--methods", "nca+none"], "a metric alone cannot classify"),
        (&["--methods", "svml,magic"], "svml,magic"),
        (&["--set", "lamda=1"], "lamda"),
    ] {
        let run = sandbox.svml(&[&["compare", "t.csv"], options].concat()).code(2);
        assert!(run.err.contains(part), "{}", run.err);
    }
}

#[test]
fn every_picture_is_drawn() {
    let sandbox = Sandbox::with_model();
    let kinds = "map trace metric relevance reliability roc precision-recall confusion";
    for kind in kinds.split(' ') {
        let (svg, png) = (format!("{kind}.svg"), format!("{kind}.png"));
        sandbox.svml(&["plot", "m.svml", "train.csv", "-o", &svg, "--kind", kind]).code(0);
        let text = sandbox.read(&svg);
        assert!(text.contains("<svg ") && text.ends_with("</svg>\n"), "{kind}");
        sandbox.svml(&["plot", "m.svml", "train.csv", "-o", &png, "--kind", kind]).code(0);
        assert!(std::fs::read(sandbox.path(&png)).unwrap().starts_with(b"\x89PNG"), "{kind}");
    }
    sandbox.svml(&["plot", "m.svml", "-o", "metric.svg", "--kind", "metric", "--title", "A & B"]);
    assert!(sandbox.read("metric.svg").contains("A &amp; B"));
    // Of a class by its name.
    for (kind, words) in [
        ("reliability", "predicted probability of inside"),
        ("roc", "share of inside found"),
        ("precision-recall", "share of inside found"),
    ] {
        let args = ["plot", "m.svml", "train.csv", "-o", "c.svg", "--kind", kind];
        sandbox.svml(&[&args[..], &["--class", "inside"]].concat()).code(0);
        assert!(sandbox.read("c.svg").contains(words), "{kind}");
        let run = sandbox.svml(&[&args[..], &["--class", "left"]].concat()).code(2);
        assert!(run.err.contains("its classes are inside, outside"), "{}", run.err);
    }
    let run =
        sandbox.svml(&["plot", "m.svml", "train.csv", "-o", "c.svg", "--class", "inside"]).code(2);
    assert!(run.err.contains("--class works only with --kind reliability, roc"), "{}", run.err);
}

#[test]
fn a_learning_curve_is_measured_and_drawn() {
    let sandbox = Sandbox::with_model();
    let base = ["learning-curve", "train.csv", "--method", "knn:k=3", "--repetitions", "3"];
    let run = |more: &[&str], code| sandbox.svml(&[&base[..], more].concat()).code(code);
    let out = run(&["-o", "curve.svg"], 0).out;
    assert!(out.contains("training rows") && out.contains("mean of 3 repetitions"), "{out}");
    assert!(sandbox.read("curve.svg").contains("training rows"));
    let text = run(&["--sizes", "40,20", "--json"], 0).out;
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["sizes"], serde_json::json!([20, 40]));
    assert_eq!(value["errors"][1].as_array().unwrap().len(), 3);
    let run = run(&["--sizes", "20,100000"], 2);
    assert!(run.err.contains("four fifths of all rows"), "{}", run.err);
    let run = sandbox.svml(&["learning-curve", "train.csv", "--method", "nca+none"]).code(2);
    assert!(run.err.contains("a metric alone cannot classify"), "{}", run.err);
    sandbox.svml(&["learning-curve", "train.csv", "-o", "curve.gif"]).code(2);
}

#[test]
fn the_demo_writes_what_it_says() {
    let sandbox = Sandbox::new();
    let started = std::time::Instant::now();
    let run = sandbox.svml(&["demo", "--out", "d"]).code(0);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    // The hidden directions are found, and nearly all of them.
    assert!(run.out.contains("svml: learned metric, rank=2 "), "{}", run.out);
    let found = run.out.lines().find(|line| line.starts_with("svml: ")).unwrap();
    let share = found.split('%').nth(1).and_then(|part| part.trim().parse::<f64>().ok());
    assert!(share.unwrap() >= 95.0, "{found}");
    for file in [
        "map.svg",
        "map-usual.svg",
        "metric.svg",
        "relevance.svg",
        "trace.svg",
        "train.csv",
        "test.csv",
        "model.svml",
    ] {
        assert!(run.out.contains(file), "{file}");
        assert!(sandbox.path("d").join(file).is_file(), "{file}");
    }
    // The numbers that are printed are those of the files.
    let value =
        json(&sandbox.svml(&["evaluate", "d/model.svml", "d/test.csv", "--json"]).code(0).out);
    let printed = format!("{:.1} %", 100.0 * value["error"].as_f64().unwrap());
    assert!(run.out.contains(&printed), "{printed}\n{}", run.out);
    let honest = json(&sandbox.svml(&["show", "d/model.svml", "--json"]).code(0).out);
    let printed = format!("{:.1} %", 100.0 * honest["honest"]["error"].as_f64().unwrap());
    assert!(
        run.out.contains(&format!("svml estimated an error of {printed}")),
        "{printed}\n{}",
        run.out
    );
}

#[test]
fn data_sets_of_the_paper_are_listed_and_used() {
    let sandbox = Sandbox::new();
    let run = sandbox.svml(&["data", "list", "--dir", "."]).code(0);
    assert_eq!(run.out.lines().filter(|line| line.contains("  no  ")).count(), 9);
    let run = sandbox.svml(&["compare", "uci:haber", "--dir", "."]).code(1);
    assert!(run.err.contains("svml data fetch haber"), "{}", run.err);
    let run = sandbox.svml(&["compare", "uci:iris"]).code(2);
    assert!(run.err.contains("one of haber, credit"), "{}", run.err);
    // A file in the place of the real one.
    std::fs::create_dir(sandbox.path("haber")).unwrap();
    let rows: String =
        (0..40).map(|i| format!("{},{},{},{}\n", i, i % 3, i % 7, 1 + i / 20)).collect();
    sandbox.write("haber/haberman.data", &rows);
    let run = sandbox.svml(&["data", "list", "--dir", ".", "--json"]).code(0);
    assert_eq!(json(&run.out)[0]["here"], "altered");
    let run = sandbox.svml(&["train", "uci:haber", "--dir", ".", "-o", "m"]).code(0);
    assert!(run.err.contains("uci:haber: 40 rows, 3 feature columns"), "{}", run.err);
    let output = sandbox.command(&["evaluate", "m", "uci:haber"]).env("SVML_DATA", ".").output();
    assert!(output.unwrap().status.success());
    let run = sandbox.svml(&["compare", "uci:haber", "--dir", ".", "--splits", "2"]).code(0);
    assert!(run.out.contains("euclidean") && run.out.contains("svml"));
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = sandbox.svml(&["completions", shell]).code(0);
        assert!(run.out.contains("svml") && run.out.contains("svm-train"), "{shell}");
    }
    let run = sandbox.svml(&["man"]).code(0);
    assert!(run.out.contains(".TH svml 1"), "{}", run.out);
    sandbox.svml(&["man", "--dir", "pages"]).code(0);
    for page in ["svml.1", "svml-train.1", "svml-compare.1"] {
        assert!(sandbox.path("pages").join(page).is_file(), "{page}");
    }
}

#[test]
fn a_model_of_several_classes() {
    let sandbox = Sandbox::new();
    let generator = svml::Generator { rows: 200, classes: 4, ..Default::default() };
    sandbox.write("t.csv", &table(&generator.generate().unwrap().data));
    sandbox.svml(&["train", "t.csv", "-o", "m"]).code(0);
    let run = sandbox.svml(&["predict", "m", "t.csv", "--decision", "--probabilities"]).code(0);
    let header = run.out.lines().next().unwrap();
    assert!(header.starts_with("class,decision_c00,decision_c01,decision_c02,decision_c03,p_c00"));
    let run = sandbox.svml(&["evaluate", "m", "t.csv", "--json"]).code(0);
    assert_eq!(json(&run.out)["confusion"].as_array().unwrap().len(), 4);
    sandbox.svml(&["plot", "m", "t.csv", "-o", "m.svg"]).code(0);
    sandbox.svml(&["train", "t.csv", "-o", "m", "--form", "diagonal"]).code(0);
    sandbox.svml(&["export", "m", "--to", "libsvm", "-o", "l"]).code(0);
    assert!(sandbox.read("l").contains("nr_class 4\n"));
}

/// A two-dimensional array of doubles as `numpy.save` writes it.
fn npy(rows: &[[f64; 3]]) -> Vec<u8> {
    let header = format!(
        "{{'descr': '<f8', 'fortran_order': False, 'shape': ({}, 3), }}{:60}\n",
        rows.len(),
        ""
    );
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(rows.as_flattened().iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

#[test]
fn arrays_of_numpy_are_tables_without_a_header() {
    let sandbox = Sandbox::new();
    let row = |i: usize| [(i % 7) as f64, (i * i % 11) as f64 / 4.0, (i % 7 / 4) as f64];
    let rows: Vec<[f64; 3]> = (0..60).map(row).collect();
    let cells: String = rows.iter().map(|[a, b, c]| format!("{a},{b},{c}\n")).collect();
    sandbox.write("t.csv", &cells);
    std::fs::write(sandbox.path("t.npy"), npy(&rows)).unwrap();
    let train = |data: &str, model: &str| {
        sandbox.svml(&["train", data, "-o", model, "--form", "sphere"]).code(0)
    };
    let run = train("t.npy", "a.svml");
    assert!(run.err.contains("a NumPy array: columns are named x1, x2, ..."), "{}", run.err);
    assert!(run.err.contains("classes in column x3: 0 (36), 1 (24)"), "{}", run.err);
    train("t.csv", "b.svml");
    assert_eq!(
        std::fs::read(sandbox.path("a.svml")).unwrap(),
        std::fs::read(sandbox.path("b.svml")).unwrap()
    );
    for command in ["predict", "evaluate", "transform"] {
        let found = sandbox.svml(&[command, "a.svml", "t.npy"]).code(0).out;
        let expected = sandbox.svml(&[command, "a.svml", "t.csv"]).code(0).out;
        assert_eq!(found.replace("t.npy", ""), expected.replace("t.csv", ""), "{command}");
    }
    let piped = sandbox.svml_with_input(&["predict", "a.svml", "-"], &npy(&rows)).code(0).out;
    assert_eq!(piped, sandbox.svml(&["predict", "a.svml", "t.csv"]).out);
    let compare = ["compare", "t.npy", "--splits", "2", "--form", "sphere", "--json"];
    sandbox.svml(&compare).code(0);
    let other = sandbox.svml(&["train", "t.npy", "-o", "c.svml", "--target", "1"]).code(0);
    assert!(other.err.contains("classes in column x1: 0 ("), "{}", other.err);

    // Rows are counted; there are no lines.
    let gap: Vec<[f64; 3]> = rows.iter().copied().chain([[f64::NAN, 1.0, 1.0]]).collect();
    std::fs::write(sandbox.path("gap.npy"), npy(&gap)).unwrap();
    let run = sandbox.svml(&["train", "gap.npy", "-o", "c.svml"]).code(3);
    assert!(
        run.err.starts_with("svml: gap.npy: row 61, column x1: the value is missing"),
        "{}",
        run.err
    );
    sandbox.svml(&["train", "gap.npy", "-o", "c.svml", "--missing", "drop"]).code(0);
    let cut = npy(&rows);
    std::fs::write(sandbox.path("cut.npy"), &cut[..cut.len() - 8]).unwrap();
    let run = sandbox.svml(&["predict", "a.svml", "cut.npy"]).code(3);
    assert!(run.err.contains("according to its header"), "{}", run.err);
    let run = sandbox.svml(&["train", "t.csv", "-o", "c.svml", "--format", "npy"]).code(3);
    assert!(run.err.contains("not a NumPy array"), "{}", run.err);
    let run = sandbox.svml(&["transform", "a.svml", "t.npy", "--output-format", "npy"]).code(2);
    assert!(run.err.contains("npy can only be read"), "{}", run.err);
}

/// Small tables are exact unless landmarks are asked for; everything that says how a model came about then says so.
#[test]
fn landmarks_are_said_wherever_a_model_is_described() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(300));
    let train = ["train", "t.csv", "-o", "m", "--form", "diagonal"];
    let run = sandbox.svml(&[&train[..], &["--landmarks", "50"]].concat()).code(0);
    let computed =
        "the metric and C were learned with 50 landmarks; the SVMs of the model have 50 landmarks";
    assert!(run.out.contains(&format!("How it was computed: {computed}.")), "{}", run.out);
    assert!(run.out.contains("50 of 300 rows are landmarks."), "{}", run.out);
    let show = sandbox.svml(&["show", "m"]).code(0).out;
    assert!(show.contains(&format!("Computed         {computed}\n")), "{show}");
    assert!(show.contains("Landmarks        50 (inside "), "{show}");
    assert!(!show.contains("Support vectors"), "{show}");
    let value = json(&sandbox.svml(&["show", "m", "--json"]).code(0).out);
    assert_eq!(value["landmarks"], serde_json::json!({"learned": 50, "in_model": 50}));
    assert_eq!(value["method"]["svml"]["landmarks"], "50");
    assert_eq!(value["support_vectors"], 50);
    let data = Dataset::from_path(sandbox.path("t.csv"), &ReadOptions::default()).unwrap();
    let params = Svml {
        form: Form::Diagonal.into(),
        landmarks: LandmarkChoice::Count(50),
        ..Svml::default()
    };
    let expected = Model::fit(&data, params).unwrap();
    assert!(std::fs::read(sandbox.path("m")).unwrap() == expected.to_bytes().unwrap());
    let predicted = sandbox.svml(&["predict", "m", "t.csv"]).code(0).out;
    assert_eq!(predicted.lines().skip(1).count(), 300, "{predicted}");
    let exported = sandbox.svml(&["export", "m", "--to", "libsvm"]).code(0).out;
    assert!(exported.contains("total_sv 50\n"), "{exported}");

    // There are no more landmarks than rows.
    let value =
        json(&sandbox.svml(&[&train[..], &["--landmarks", "9999", "--json"]].concat()).code(0).out);
    assert_eq!(value["landmarks"], serde_json::json!({"learned": 300, "in_model": 300}));

    // Of the SVMs of a mean some might be exact.
    sandbox.write("columns.csv", &columns(200));
    let out =
        sandbox.svml(&["train", "columns.csv", "-o", "mean", "--landmarks", "40"]).code(0).out;
    assert!(out.contains("Learned the mean of "), "{out}");
    assert!(out.contains("the SVMs of the model have 40 landmarks"), "{out}");
    assert!(out.contains("rows are landmarks or support vectors of at least one SVM."), "{out}");
    let show = sandbox.svml(&["show", "mean"]).code(0).out;
    assert!(show.contains("landmarks or support vectors of at least one SVM (no "), "{show}");
}

#[test]
fn an_exact_fit_has_no_landmarks() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(200));
    let train = |output: &str, options: &[&str]| {
        let args = ["train", "t.csv", "-o", output, "--form", "sphere", "--json", "-q"];
        json(&sandbox.svml(&[&args[..], options].concat()).code(0).out)
    };
    // A small table is exact by default.
    let (auto, exact) = (train("auto", &[]), train("exact", &["--exact"]));
    assert_eq!(auto["method"]["svml"]["landmarks"], "auto");
    assert_eq!(exact["method"]["svml"]["landmarks"], "exact");
    for value in [&auto, &exact] {
        assert_eq!(value["landmarks"], Value::Null);
    }
    assert_eq!(auto["cost"], exact["cost"]);
    assert_eq!(train("same", &["--landmarks", "exact"])["method"], exact["method"]);
    let show = sandbox.svml(&["show", "exact"]).code(0).out;
    assert!(show.contains("Support vectors") && !show.contains("andmarks"), "{show}");
    // Options that are shared: the grid has no landmarks and is left as it is.
    let args = ["compare", "t.csv", "--splits", "2", "--landmarks", "30", "-q"];
    sandbox.svml(&args).code(0);
}

/// More threads than four for each core only get in each other's way.
#[test]
fn threads_are_capped_with_a_line() {
    let sandbox = Sandbox::with_model();
    let run = sandbox.svml(&["predict", "m.svml", "train.csv", "-o", "p.csv", "--threads", "4096"]);
    assert!(run.code(0).err.contains("--threads 4096 is more than 4 for each core"));
    let run = sandbox.svml(&["predict", "m.svml", "train.csv", "-o", "p.csv", "--threads", "2"]);
    assert!(!run.code(0).err.contains("core"));
}
