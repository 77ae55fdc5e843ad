//! The real counterpart: stock svm-predict and svm-train of LIBSVM, from Debian's libsvm-tools.
#![allow(clippy::unwrap_used, missing_docs)]

mod sandbox;

use std::process::Command;

use sandbox::{Run, Sandbox, generated, installed, table};
use svml::data::ReadOptions;
use svml::internals::{UciSet, libsvm_rows};
use svml::{Dataset, Form, Generator, Model, Svml};

impl Sandbox {
    fn tool(&self, program: &str, args: &[&str]) -> Run {
        let output = Command::new(program).args(args).current_dir(self.folder()).output().unwrap();
        Run::from(output).code(0)
    }
}

/// The library's labels and decision values for the rows of a file, of all pairs of classes.
fn ours(sandbox: &Sandbox, rows: &str) -> (Model, Vec<String>, Vec<f64>) {
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    let x = model.schema().read_path(sandbox.path(rows), &ReadOptions::default()).unwrap().x;
    let labels = model.libsvm_labels().0;
    let predicted =
        model.predict(&x).unwrap().into_iter().map(|class| labels[class].to_string()).collect();
    let decision = model.decision(&x).unwrap();
    let values = if decision.cols() == 1 { decision.into_vec() } else { Vec::new() };
    (model, predicted, values)
}

/// Trains on one file and compares every row of another with stock svm-predict.
fn compare_two_classes(sandbox: &Sandbox, train: &str, test: &str, options: &[&str]) {
    let args = [&["train", train, "-o", "m.svml", "--quiet"], options].concat();
    sandbox.svml(&args).code(0);
    sandbox.svml(&["export", "m.svml", "--to", "libsvm", "-o", "m.model"]).code(0);
    let args = ["transform", "m.svml", test, "-o", "z", "--output-format", "libsvm"];
    sandbox.svml(&args).code(0);
    sandbox.tool("svm-predict", &["z", "m.model", "labels"]);
    let (model, predicted, values) = ours(sandbox, test);
    let theirs = sandbox.read("labels");
    assert!(theirs.lines().eq(predicted.iter().map(String::as_str)), "{train}");

    // svm-predict prints values only for regression, which has the same rule: sum of coef k - rho.
    let text = sandbox.read("m.model").replace("svm_type c_svc", "svm_type epsilon_svr");
    let (header, vectors) = text.split_once("\nSV\n").unwrap();
    let header: Vec<&str> = header
        .lines()
        .filter(|line| !["label", "nr_sv", "probA", "probB"].iter().any(|w| line.starts_with(w)))
        .collect();
    sandbox.write("regression.model", &format!("{}\nSV\n{vectors}", header.join("\n")));
    sandbox.tool("svm-predict", &["z", "regression.model", "values"]);
    let theirs: Vec<f64> = sandbox.read("values").lines().map(|v| v.parse().unwrap()).collect();
    assert_eq!(theirs.len(), values.len());
    // Rounding is that of sums of beta times kernel values.
    let size: f64 = model.beta().as_slice().iter().map(|beta| beta.abs()).sum();
    let close = (1e-14 * size).min(1e-9);
    for (theirs, ours) in theirs.iter().zip(&values) {
        assert!((theirs - ours).abs() <= close, "{train}: {theirs} {ours}, {size}");
    }

    // Probabilities, to the six digits that are printed.
    sandbox.tool("svm-predict", &["-b", "1", "z", "m.model", "p"]);
    let x = model.schema().read_path(sandbox.path(test), &ReadOptions::default()).unwrap().x;
    let p = model.probabilities(&x).unwrap();
    for (row, line) in sandbox.read("p").lines().skip(1).enumerate() {
        let first: f64 = line.split(' ').nth(1).unwrap().parse().unwrap();
        // LIBSVM keeps away from 0 and 1 by 1e-7.
        assert!((first - p[(row, 1)]).abs() < 2e-6, "{train}: {line}");
    }
}

#[test]
fn two_classes_of_a_libsvm_file() {
    if !installed("svm-predict") {
        return;
    }
    let sandbox = Sandbox::new();
    for (name, rows, seed) in [("train", 400, 0), ("test", 20_000, 1)] {
        let data = Generator { rows, seed, ..Default::default() }.generate().unwrap().data;
        let labels: Vec<&str> = data.y().iter().map(|&c| ["-1", "+1"][c]).collect();
        sandbox.write(name, &libsvm_rows(data.x(), labels));
    }
    // Forms that give one SVM with a Gaussian kernel.
    for form in ["sphere", "full", "rank=2"] {
        compare_two_classes(&sandbox, "train", "test", &["--form", form]);
    }
}

#[test]
fn two_classes_of_a_table_in_unlike_units() {
    if !installed("svm-predict") {
        return;
    }
    let sandbox = Sandbox::new();
    for (name, seed) in [("train.csv", 0), ("test.csv", 1)] {
        let data = Generator { rows: 300, seed, ..Default::default() }.generate().unwrap().data;
        let x = svml::Matrix::from_fn(300, 10, |i, k| {
            data.x()[(i, k)] * 10.0_f64.powi(k as i32 * 2 - 9) + 1000.0
        });
        let labels: Vec<usize> = data.y().iter().map(|c| c + 1).collect();
        let data = Dataset::new(x, &labels).unwrap();
        sandbox.write(name, &table(&data));
    }
    compare_two_classes(&sandbox, "train.csv", "test.csv", &["--form", "diagonal"]);
}

#[test]
fn two_classes_of_a_table_with_categories_and_gaps() {
    if !installed("svm-predict") {
        return;
    }
    let sandbox = Sandbox::new();
    let rows: String = (0..300)
        .map(|i| {
            let kind = ["red", "blue", "green"][i * i % 3];
            let size = if i % 17 == 3 { "?".to_owned() } else { format!("{}.5", i * 7 % 23) };
            let ill = (i * 7 % 23 > 11) != (kind == "red");
            format!("{kind},{size},{},{}\n", i % 5, if ill { "yes" } else { "no" })
        })
        .collect();
    sandbox.write("t.csv", &format!("kind,size,other,ill\n{rows}"));
    let options = ["--missing", "impute", "--categories", "onehot", "--form", "diagonal"];
    compare_two_classes(&sandbox, "t.csv", "t.csv", &options);
}

#[test]
fn several_classes_agree_where_the_vote_does_not_tie() {
    if !installed("svm-predict") {
        return;
    }
    let sandbox = Sandbox::new();
    for (name, seed) in [("train.csv", 0), ("test.csv", 1)] {
        let generator = Generator { rows: 600, classes: 5, seed, ..Default::default() };
        sandbox.write(name, &table(&generator.generate().unwrap().data));
    }
    let args = ["train", "train.csv", "-o", "m.svml", "--quiet", "--form", "diagonal"];
    sandbox.svml(&args).code(0);
    sandbox.svml(&["export", "m.svml", "--to", "libsvm", "-o", "m.model"]).code(0);
    let args = ["transform", "m.svml", "test.csv", "-o", "z", "--output-format", "libsvm"];
    sandbox.svml(&args).code(0);
    sandbox.tool("svm-predict", &["z", "m.model", "labels"]);
    let (model, predicted, _) = ours(&sandbox, "test.csv");
    let x = model.schema().read_path(sandbox.path("test.csv"), &ReadOptions::default()).unwrap().x;
    let tied = ties(&model, &x);
    let labels = sandbox.read("labels");
    for (row, (theirs, ours)) in labels.lines().zip(&predicted).enumerate() {
        assert!(theirs == ours || tied[row], "row {row}: {theirs} {ours}");
    }
    let ties = tied.iter().filter(|tied| **tied).count();
    assert!(ties < x.rows() / 20, "{ties} of {} rows tie", x.rows());
}

/// Whether several of three or more classes have the most votes for a row: LIBSVM then names the first of them, and svml the one
/// whose SVMs are surest.
fn ties(model: &svml::Model, x: &svml::Matrix) -> Vec<bool> {
    if model.classes().len() < 3 {
        return vec![false; x.rows()];
    }
    // Decision values are votes and a fraction below one half.
    let most_are_several = |decision: &[f64]| {
        let votes: Vec<f64> = decision.iter().map(|v| v.round()).collect();
        let most = votes.iter().copied().fold(0.0, f64::max);
        votes.iter().filter(|v| **v == most).count() > 1
    };
    model.decision(x).unwrap().iter_rows().map(most_are_several).collect()
}

/// LIBSVM's own two programs, svm-scale with the range file and svm-predict, on rows as they are.
fn compare_scaled(sandbox: &Sandbox, train: &str, test: &str, options: &[&str]) {
    let args = [&["train", train, "-o", "m.svml", "--quiet"], options].concat();
    sandbox.svml(&args).code(0);
    let run = sandbox.svml(&["export", "m.svml", "--to", "libsvm", "-o", "m.model"]).code(0);
    assert!(run.err.contains("svm-scale -r m.model.range DATA > ROWS"), "{}", run.err);
    let scaled = sandbox.tool("svm-scale", &["-r", "m.model.range", test]);
    // It may note that there are more numbers than before, but there is a range for each feature.
    assert!(!scaled.err.contains("not seen"), "{options:?}: {}", scaled.err);
    sandbox.write("z", &scaled.out);
    sandbox.tool("svm-predict", &["z", "m.model", "labels"]);
    let (model, predicted, _) = ours(sandbox, test);
    let x = model.schema().read_path(sandbox.path(test), &ReadOptions::default()).unwrap().x;
    let tied = ties(&model, &x);
    let labels = sandbox.read("labels");
    assert_eq!(labels.lines().count(), predicted.len(), "{options:?}");
    for (row, (theirs, ours)) in labels.lines().zip(&predicted).enumerate() {
        assert!(theirs == ours || tied[row], "{options:?}, row {row}: {theirs} {ours}");
    }

    // The rows are those of svml transform, to the digits that svm-scale prints; those of columns without an effect are
    // not there at all.
    let z = model.transform(&x).unwrap();
    let relevance = model.relevance();
    for (row, line) in z.iter_rows().zip(scaled.out.lines()) {
        let mut found = vec![0.0; row.len()];
        for entry in line.split_whitespace().skip(1) {
            let (index, value) = entry.split_once(':').unwrap();
            let k = index.parse::<usize>().unwrap() - 1;
            assert!(relevance[k] > 0.0, "{options:?}: {line}");
            found[k] = value.parse().unwrap();
        }
        for (found, z) in found.iter().zip(row) {
            assert!((found - z).abs() <= 1e-5 * z.abs().max(1e-3), "{options:?}: {found} {z}");
        }
    }
}

#[test]
fn svm_scale_and_svm_predict_suffice() {
    if !installed("svm-predict") || !installed("svm-scale") {
        return;
    }
    let sandbox = Sandbox::new();
    for classes in [3, 2] {
        for (name, seed) in [("train", 0), ("test", 1)] {
            let generator = Generator { rows: 300, classes, seed, ..Default::default() };
            let data = generator.generate().unwrap().data;
            // Unlike units, a constant column, one of mostly zeros, and rows that end early.
            let x = svml::Matrix::from_fn(300, 12, |i, k| match k {
                0..10 => data.x()[(i, k)] * 10.0_f64.powi(k as i32 - 5) + 3.0 * (k % 2) as f64,
                10 => 4.0,
                _ => f64::from(u8::from(i % 5 == 0)),
            });
            let labels: Vec<String> = data.y().iter().map(|c| (c + 1).to_string()).collect();
            sandbox.write(name, &libsvm_rows(&x, labels.iter().map(String::as_str)));
        }
        for form in ["diagonal", "sphere"] {
            compare_scaled(&sandbox, "train", "test", &["--form", form]);
        }
        compare_scaled(&sandbox, "train", "test", &["--method", "euclidean"]);
    }
    // Another value where training had a constant, and a row of zeros; of two classes, because votes of rows far away tie.
    sandbox.write("odd", "1 1:0.2 11:9 12:1\n1 2:3 11:-4\n2\n");
    compare_scaled(&sandbox, "train", "odd", &["--form", "diagonal"]);
}

#[test]
fn other_forms_have_no_range_file() {
    let sandbox = Sandbox::new();
    heart(&sandbox);
    sandbox.svml(&["train", "heart", "-o", "m", "--form", "diagonal"]).code(0);
    sandbox.svml(&["export", "m", "--to", "libsvm", "-o", "l"]).code(0);
    assert!(sandbox.read("l.range").starts_with("x\n-1 1\n1 "));
    sandbox.svml(&["train", "heart", "-o", "m", "--form", "rank=2"]).code(0);
    let run = sandbox.svml(&["export", "m", "--to", "libsvm", "-o", "l"]).code(0);
    assert!(run.err.contains("it knows only one scale per feature"), "{}", run.err);
    assert!(run.err.contains("svml transform m DATA -o ROWS"), "{}", run.err);
    assert!(run.err.contains("l.range belongs to another model"), "{}", run.err);
    let run = sandbox.svml(&["export", "m", "--to", "libsvm", "-o", "other"]).code(0);
    assert!(!run.err.contains("belongs to another model") && !sandbox.path("other.range").exists());
}

/// The paper's own data, where they are.
#[test]
fn data_of_the_paper() {
    let beside = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("SVML_DATA").map_or(beside, std::path::PathBuf::from);
    if !installed("svm-predict") || !folder.is_dir() {
        return;
    }
    let sandbox = Sandbox::new();
    for name in ["mammo", "acredit", "haber"] {
        let set = UciSet::named(name).unwrap();
        if let Ok(data) = set.read(&set.in_folder(&folder)) {
            sandbox.write("t.csv", &table(&data));
            compare_two_classes(&sandbox, "t.csv", "t.csv", &["--form", "diagonal"]);
        }
    }
}

fn heart(sandbox: &Sandbox) {
    for (name, seed) in [("heart", 0), ("heart.t", 1)] {
        let data = Generator { rows: 200, seed, ..Default::default() }.generate().unwrap().data;
        let labels: Vec<&str> = data.y().iter().map(|&c| ["-1", "+1"][c]).collect();
        sandbox.write(name, &libsvm_rows(data.x(), labels));
    }
}

#[test]
fn the_front_keeps_libsvms_habits() {
    let sandbox = Sandbox::new();
    heart(&sandbox);
    let run = sandbox.svml(&["svm-train", "-b", "1", "-q", "heart"]).code(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    assert!(sandbox.read("heart.model").starts_with("svm_type c_svc\nkernel_type rbf\n"));
    assert!(sandbox.path("heart.model.svml").is_file());
    let run = sandbox.svml(&["svm-predict", "heart.t", "heart.model", "out"]).code(0);
    assert!(run.out.starts_with("Accuracy = ") && run.out.ends_with("/200) (classification)\n"));
    assert_eq!(sandbox.read("out").lines().count(), 200);
    sandbox.svml(&["svm-predict", "-b", "1", "-q", "heart.t", "heart.model", "p"]).code(0);
    assert!(sandbox.read("p").starts_with("labels 1 -1\n"));
    if installed("svm-predict") {
        let args =
            ["transform", "heart.model.svml", "heart.t", "-o", "z", "--output-format", "libsvm"];
        sandbox.svml(&args).code(0);
        let theirs = sandbox.tool("svm-predict", &["z", "heart.model", "theirs"]);
        assert_eq!(sandbox.read("theirs"), sandbox.read("out"));
        assert!(theirs.out.ends_with(&run.out), "{} / {}", theirs.out, run.out);
    }
    // The accuracy is that of the library's folds: rows that are predicted right.
    let run = sandbox.svml(&["svm-train", "-v", "4", "heart"]).code(0);
    let data = Dataset::from_path(sandbox.path("heart"), &ReadOptions::default()).unwrap();
    // It is one SVM with a diagonal metric, which is what a LIBSVM model can hold.
    let svml = Svml { form: Form::Diagonal.into(), ..Svml::default() };
    let found = svml::cross_validate(&data, svml, 4).unwrap();
    let right = found.predicted.iter().zip(data.y()).filter(|(p, y)| p == y).count();
    let expected = format!("Cross Validation Accuracy = {}%\n", right as f64 / 2.0);
    assert_eq!(run.out, expected);
    // More folds than rows are as many as rows.
    let args = ["svm-train", "-v", "999", "-g", "0.1", "-c", "1", "heart"];
    assert!(sandbox.svml(&args).code(0).out.starts_with("Cross Validation Accuracy = "));
    // A map that belongs to another model is noticed.
    sandbox.svml(&["svm-train", "-w1", "5", "-w-1", "0.5", "heart", "other"]).code(0);
    std::fs::rename(sandbox.path("other.svml"), sandbox.path("heart.model.svml")).unwrap();
    let run = sandbox.svml(&["svm-predict", "heart.t", "heart.model", "out"]).code(3);
    assert!(run.err.contains("does not belong to heart.model"), "{}", run.err);
}

#[test]
fn gamma_and_cost_as_given_are_those_of_the_raw_features() {
    let sandbox = Sandbox::new();
    heart(&sandbox);
    sandbox.svml(&["svm-train", "-c", "2", "-g", "0.05", "-q", "heart", "m"]).code(0);
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    assert_eq!(model.cost(), Some(2.0));
    for (l, scale) in model.metric().values().iter().zip(&model.scaler().scale) {
        assert!((l / scale - 0.05_f64.sqrt()).abs() < 1e-12);
    }
    // gamma alone: C is chosen. C alone: the metric is learned.
    sandbox.svml(&["svm-train", "-g", "0.05", "-q", "heart", "m"]).code(0);
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    assert!([0.1, 1.0, 10.0, 100.0].contains(&model.cost().unwrap()));
    sandbox.svml(&["svm-train", "-c", "2", "-q", "heart", "m"]).code(0);
    let model = Model::load(sandbox.path("m.svml")).unwrap();
    assert!((model.cost().unwrap() - 2.0).abs() < 1e-12);
    assert_eq!((model.members().len(), model.metric().form()), (1, Form::Diagonal));
    assert!(model.report().best > 0);
}

#[test]
fn options_that_cannot_be_honoured_fail_loudly() {
    let sandbox = Sandbox::new();
    heart(&sandbox);
    for (args, part) in [
        (&["-s", "1"][..], "only -s 0"),
        (&["-t", "0"], "only -t 2"),
        (&["-d", "3"], "-d is for kernels"),
        (&["-r", "1"], "-r is for kernels"),
        (&["-n", "0.5"], "-n is for kernels"),
        (&["-p", "0.1"], "-p is for kernels"),
        (&["-e", "1e-12"], "1e-8"),
        (&["-c", "0"], "positive"),
        (&["-c", "1e9"], "-c 1000000000 is not allowed: it must be between"),
        (&["-v", "1"], "between 2"),
        (&["-b", "2"], "0 or 1"),
        (&["-h", "7"], "0 or 1"),
        (&["-z", "7"], "not an option"),
        (&["-w", "7"], "not an option"),
        (&["-w5", "7"], "'5'"),
    ] {
        let run = sandbox.svml(&[&["svm-train"], args, &["heart"]].concat()).code(2);
        assert!(run.err.contains(part), "{args:?}: {}", run.err);
        assert!(!sandbox.path("heart.model").exists());
    }
    let fine = ["svm-train", "-s", "0", "-t", "2", "-m", "100", "-h", "0", "-e", "0.001", "heart"];
    sandbox.svml(&fine).code(0);
    let help = sandbox.svml(&["svm-train", "--help"]).code(0);
    assert!(help.out.contains("-wi weight"));
    let data = Generator { rows: 90, classes: 3, ..Default::default() }.generate().unwrap().data;
    let labels: Vec<String> = data.y().iter().map(usize::to_string).collect();
    sandbox.write("three", &libsvm_rows(data.x(), labels.iter().map(String::as_str)));
    let run = sandbox.svml(&["svm-train", "-b", "1", "three"]).code(2);
    assert!(run.err.contains("two classes"), "{}", run.err);
    sandbox.svml(&["svm-train", "three"]).code(0);
    sandbox.svml(&["svm-predict", "three", "three.model", "out"]).code(0);
    let run = sandbox.svml(&["svm-predict", "-b", "1", "three", "three.model", "out"]).code(3);
    assert!(run.err.contains("no probabilities"), "{}", run.err);
    let wrong = sandbox.svml(&["svm-predict", "-x", "three", "three.model", "out"]).code(2);
    assert!(wrong.err.contains("not an option"));
}

#[test]
fn text_classes_get_numbers_that_are_said() {
    let sandbox = Sandbox::new();
    sandbox.write_table("t.csv", &generated(80));
    sandbox.svml(&["train", "t.csv", "-o", "m", "--form", "sphere"]).code(0);
    let run = sandbox.svml(&["export", "m", "--to", "libsvm", "-o", "l"]).code(0);
    assert!(run.err.contains("0 is inside, 1 is outside"), "{}", run.err);
}
