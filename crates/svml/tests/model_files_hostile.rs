//! Model files made by an enemy: the checksum is right, the content is not. Never a panic, never a
//! huge allocation; either an error or a model that predicts.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use proptest::prelude::*;
use serde_json::{Value, json};
use svml::data::{Categories, Missing};
use svml::figures::{Map, MetricMatrix, Relevance, Trace};
use svml::{
    ClassWeight, Dataset, Error, Form, Generator, Kernel, Matrix, Method, Model, ReadOptions, Svml,
};

const PREFIX: usize = 20;

fn params(form: Form) -> Svml {
    let mut params = Svml::paper();
    (params.form, params.max_iterations) = (form.into(), 3);
    params
}

/// A file of arrays, of the given form.
fn numbers(form: Form) -> Vec<u8> {
    let mut generator = Generator::default();
    (generator.rows, generator.informative, generator.noise) = (40, 1, 2);
    let data = generator.generate().unwrap().data;
    Model::fit(&data, params(form)).unwrap().to_bytes().unwrap()
}

/// A file of a table with categories whose gaps are filled.
fn table() -> Vec<u8> {
    let text: String = (0..40)
        .map(|i| {
            let colour = ["red", "blue", "?"][i % 3];
            format!("name{i},{},{colour},{}\n", i % 7, ["no", "yes"][usize::from(i % 7 > 3)])
        })
        .collect();
    // A column for each colour, and none for the names.
    let options = ReadOptions {
        missing: Missing::Impute,
        categories: Categories::Auto,
        ..ReadOptions::default()
    };
    let data = Dataset::from_csv(text.as_bytes(), &options).unwrap();
    assert_eq!(data.columns(), 3);
    Model::fit(&data, params(Form::Full)).unwrap().to_bytes().unwrap()
}

/// A file of the mean of three SVMs.
fn mean(classes: usize) -> Vec<u8> {
    let generator = Generator { rows: 45, classes, noise: 1, ..Generator::default() };
    let data = generator.generate().unwrap().data;
    let params = Svml { max_iterations: 2, cross_fit: false, ..Svml::default() };
    let model = Model::fit(&data, &params).unwrap();
    assert_eq!(model.members().len(), 3);
    model.to_bytes().unwrap()
}

/// A file of one SVM with a rough kernel.
fn rough() -> Vec<u8> {
    let data = Generator { rows: 40, noise: 1, ..Generator::default() }.generate().unwrap().data;
    let (kernel, form) = (Kernel::Exponential, Form::Rank(2).into());
    let params = Svml { kernel, form, max_iterations: 2, ..Svml::default() };
    Model::fit(&data, &params).unwrap().to_bytes().unwrap()
}

/// The header and the arrays of a file.
fn parts(file: &[u8]) -> (Value, Vec<f64>) {
    let len = u64::from_le_bytes(file[12..PREFIX].try_into().unwrap()) as usize;
    let header = serde_json::from_slice(&file[PREFIX..PREFIX + len]).unwrap();
    let arrays = file[PREFIX + len..file.len() - 4].chunks_exact(8);
    (header, arrays.map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect())
}

/// A file with any content and a right checksum.
fn file(version: u32, header_len: u64, rest: &[u8]) -> Vec<u8> {
    let mut bytes = b"SVML\r\n\x1a\n".to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend(header_len.to_le_bytes());
    bytes.extend(rest);
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

fn with_header(header: &[u8], arrays: &[f64]) -> Vec<u8> {
    of_version(2, header, arrays)
}

fn of_version(version: u32, header: &[u8], arrays: &[f64]) -> Vec<u8> {
    let mut rest = header.to_vec();
    arrays.iter().for_each(|v| rest.extend(v.to_le_bytes()));
    file(version, header.len() as u64, &rest)
}

/// Members need a later version.
fn rebuilt(header: &Value, arrays: &[f64]) -> Vec<u8> {
    let version = if header.get("members").is_some() { 6 } else { 2 };
    of_version(version, &serde_json::to_vec(header).unwrap(), arrays)
}

/// Whoever reads a warning has a terminal that obeys some characters, and takes a new line for one of the program.
#[test]
fn warnings_are_one_line_that_no_terminal_obeys() {
    let (mut header, arrays) = parts(&table());
    header["report"]["warnings"] = json!(["tab\tbell\u{7}\u{1b}[2J", "line\nfeed\u{202e}", "fine"]);
    let model = Model::from_bytes(&rebuilt(&header, &arrays)).unwrap();
    let shown = ["tab\u{fffd}bell\u{fffd}\u{fffd}[2J", "line\u{fffd}feed\u{fffd}", "fine"];
    assert_eq!(model.report().warnings, shown);
}

/// What loading says; it must be an error of the right kind.
fn refusal(file: &[u8]) -> String {
    let error = Model::from_bytes(file).unwrap_err();
    // Whatever is wrong, it is the file, and not a parameter or data of whoever loads it.
    assert!(matches!(error, Error::ModelFile(_)), "{error:?}");
    let text = error.to_string();
    // Only what is long is cut.
    assert!(text.len() > 400 || !text.ends_with("..."), "{text}");
    text
}

/// A model that loads must answer for any row, with finite numbers, and save again.
fn assert_usable(model: &Model) {
    let d = model.schema().width();
    let values = [0.0, 1.0, -2.5, 1e-300, 1e9, -1e300];
    let x = Matrix::from_fn(values.len() * 2, d, |i, k| {
        values[(i + i / values.len() * k) % values.len()]
    });
    let h = model.decision(&x).unwrap().into_vec();
    assert!(h.iter().all(|h| h.is_finite()), "{h:?}");
    let predicted = model.predict(&x).unwrap();
    assert!(predicted.iter().all(|&c| c < model.classes().len()));
    let z = model.transform(&x).unwrap();
    assert!(z.as_slice().iter().all(|z| !z.is_nan()), "{z:?}");
    let report = model.report();
    assert!(report.trace.is_empty() || report.best < report.trace.len(), "best: {}", report.best);
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(h, again.decision(&x).unwrap().into_vec());
    assert_shown(model);
}

/// What is said and drawn of it is there, too.
fn assert_shown(model: &Model) {
    assert!(model.to_string().contains("classes: "));
    let (columns, d) = (model.schema().used_columns().count(), model.schema().width());
    for (relevance, count) in [(Relevance::new(model), columns), (Relevance::by_feature(model), d)]
    {
        let lengths = [relevance.values.len(), relevance.low.len(), relevance.high.len()];
        assert_eq!((relevance.names.len(), lengths), (count, [count; 3]));
        for k in 0..count {
            let (low, value, high) = (relevance.low[k], relevance.values[k], relevance.high[k]);
            let ordered = 0.0 <= low && low <= value && value <= high && high <= 1.0 + 1e-9;
            assert!(ordered, "{relevance:?}");
        }
    }
    assert!(MetricMatrix::new(model).values.as_slice().iter().all(|v| v.is_finite()));
    let trace = Trace::new(model);
    assert_eq!(trace.is_none(), model.report().trace.is_empty());
    if let Some(trace) = trace {
        assert!(trace.stages.iter().all(|stage| stage.last < trace.loss.len()));
        assert_eq!(trace.stages.len(), trace.names.len());
    }
}

#[test]
fn the_parts_of_a_file_make_the_file_again() {
    for bytes in [numbers(Form::Full), numbers(Form::Rank(2)), table(), mean(2), mean(3), rough()] {
        let (header, arrays) = parts(&bytes);
        let model = Model::from_bytes(&rebuilt(&header, &arrays)).unwrap();
        assert_eq!(model.to_bytes().unwrap(), bytes);
        assert_usable(&model);
    }
}

#[test]
fn header_lengths_that_cannot_be() {
    let bytes = numbers(Form::Full);
    let rest = &bytes[PREFIX..bytes.len() - 4];
    let room = rest.len() as u64;
    for len in [room + 1, room + 4, 1 << 32, 1 << 63, u64::MAX - 7, u64::MAX] {
        let message = refusal(&file(2, len, rest));
        assert!(message.contains(&len.to_string()), "{message}");
    }
    for len in [0, 1, room] {
        assert!(refusal(&file(2, len, rest)).contains("header"), "{len}");
    }
    assert!(refusal(&file(2, 0, &[])).contains("header"));
}

/// Found by fuzzing: 0 times the reciprocal of a temperature that is too small was no number.
#[test]
fn a_temperature_without_a_reciprocal_is_refused() {
    let (mut header, arrays) = parts(&numbers(Form::Sphere));
    for temperature in [1e-320, 5e-324, 0.0, -1.0] {
        header["temperature"] = json!(temperature);
        assert!(refusal(&rebuilt(&header, &arrays)).contains("temperature"), "{temperature:e}");
    }
    header["temperature"] = json!(f64::MIN_POSITIVE);
    let model = Model::from_bytes(&rebuilt(&header, &arrays)).unwrap();
    let p = model.probabilities(&Matrix::from_fn(3, 3, |i, _| i as f64 * 1e9)).unwrap();
    assert!(p.as_slice().iter().all(|p| (0.0..=1.0).contains(p)), "{p:?}");
}

/// Found by fuzzing: the way from one end of a picture to the other was infinite.
#[test]
fn numbers_beyond_those_of_tables_are_refused() {
    let (header, mut arrays) = parts(&numbers(Form::Sphere));
    for value in [f64::MAX, -1.1e300, f64::INFINITY, f64::NAN] {
        *arrays.last_mut().unwrap() = value;
        assert!(refusal(&rebuilt(&header, &arrays)).contains("an array holds"), "{value:e}");
    }
    *arrays.last_mut().unwrap() = -1e300;
    assert_usable(&Model::from_bytes(&rebuilt(&header, &arrays)).unwrap());
}

/// Found by fuzzing: what JSON says about a header repeats what is in it.
#[test]
fn refusals_repeat_no_control_characters() {
    let (mut header, arrays) = parts(&numbers(Form::Sphere));
    for text in ["\u{1b}[31m", "\r\n"] {
        header["form"] = json!(text.repeat(2000));
        let message = refusal(&rebuilt(&header, &arrays));
        assert!(!message.contains(char::is_control) && message.len() < 4000, "{message}");
    }
}

#[test]
fn other_versions_are_named() {
    let bytes = numbers(Form::Sphere);
    let (len, rest) = (bytes[12..PREFIX].try_into().unwrap(), &bytes[PREFIX..bytes.len() - 4]);
    for version in [0, 9, 256, u32::MAX] {
        let message = refusal(&file(version, u64::from_le_bytes(len), rest));
        assert!(message.contains(&format!("version {version};")), "{message}");
        assert!(message.contains("version 8"), "{message}");
    }
}

#[test]
fn headers_that_are_not_json_or_too_deep() {
    let (_, arrays) = parts(&numbers(Form::Full));
    let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
    for header in [&b""[..], b"{", b"null", b"[]", b"{}", b"\xff\xfe", b"{\"schema\":1e999}"] {
        refusal(&with_header(header, &arrays));
    }
    refusal(&with_header(&deep(200_000), &arrays));
    refusal(&with_header(
        &[br#"{"schema":"#.to_vec(), deep(200_000), b"}".to_vec()].concat(),
        &arrays,
    ));
    // Below a name that nobody asks for, too.
    let (header, arrays) = parts(&numbers(Form::Full));
    let mut text = serde_json::to_vec(&header).unwrap();
    text.pop();
    text.extend([br#","more":"#.to_vec(), deep(200_000), b"}".to_vec()].concat());
    if let Ok(model) = Model::from_bytes(&with_header(&text, &arrays)) {
        assert_usable(&model);
    }
    // A name given twice: which one counts would depend on the reader.
    let mut twice = serde_json::to_vec(&header).unwrap();
    twice.pop();
    twice.extend(br#","cost":2.0}"#);
    assert!(refusal(&with_header(&twice, &arrays)).contains("cost"));
}

#[test]
fn every_field_is_needed() {
    let (header, arrays) = parts(&table());
    let names: Vec<String> = header.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names.len(), 10);
    // A model read from version 1 has no temperature.
    for name in names.into_iter().filter(|name| name != "temperature") {
        let mut header = header.clone();
        header.as_object_mut().unwrap().remove(&name);
        assert!(refusal(&rebuilt(&header, &arrays)).contains(&name), "{name}");
    }
}

#[test]
fn fields_that_contradict() {
    type Change = fn(&mut Value);
    let cases: &[(&str, Change)] = &[
        ("scale", |h| h["scaler"]["scale"][0] = json!(-1.0)),
        ("null", |h| h["scaler"]["scale"][0] = Value::Null),
        ("NaN", |h| h["scaler"]["mean"][0] = json!("NaN")),
        ("fill", |h| h["scaler"]["fill"] = json!([1.0])),
        ("mean", |h| h["scaler"]["mean"].as_array_mut().unwrap().push(json!(0.0))),
        ("scale", |h| h["scaler"]["scale"] = json!([])),
        ("support row", |h| h["support_rows"][0] = h["report"]["rows"].clone()),
        ("support row", |h| h["support_rows"][0] = json!(u64::MAX)),
        ("-1", |h| h["support_rows"][0] = json!(-1)),
        ("1.5", |h| h["support_rows"][0] = json!(1.5)),
        ("support row", |h| h["report"]["rows"] = json!(0)),
        ("classes", |h| h["classes"] = json!(["a", "a"])),
        ("classes", |h| h["classes"] = json!(["a"])),
        ("classes", |h| h["classes"] = json!([])),
        ("classes", |h| h["classes"] = json!(["a", "b", "c"])),
        ("a string", |h| h["classes"] = json!([1, 2])),
        ("C = 0", |h| h["cost"] = json!(0.0)),
        ("C = -1", |h| h["cost"] = json!(-1.0)),
        ("rank 4", |h| h["form"] = json!("rank=4")),
        ("18446744073709551615", |h| h["form"] = json!("rank=18446744073709551615")),
        ("form", |h| h["form"] = json!("rank=0")),
        ("form", |h| h["form"] = json!("rank=18446744073709551616")),
        ("form", |h| h["form"] = json!("cube")),
        ("invalid type", |h| h["form"] = json!(["full"])),
        ("arrays", |h| h["form"] = json!("diagonal")),
        ("arrays", |h| drop(h["support_rows"].as_array_mut().unwrap().pop())),
        ("arrays", |h| h["support_rows"].as_array_mut().unwrap().push(json!(0))),
        ("arrays", |h| h["support_rows"] = json!([])),
        ("columns", |h| h["schema"]["columns"] = json!([])),
        ("columns", |h| {
            h["schema"]["columns"] = json!([{"name": "x", "kind": "ignored"}]);
            h["scaler"] = json!({"fill": [], "mean": [], "scale": []});
        }),
        ("occurs twice", |h| h["schema"]["columns"][1] = h["schema"]["columns"][0].clone()),
        ("no name", |h| h["schema"]["columns"][0]["name"] = json!("")),
        ("place", |h| h["schema"]["target"]["position"] = json!(u64::MAX)),
        ("unknown variant", |h| h["schema"]["missing"] = json!("guess")),
        ("unknown variant", |h| h["report"]["method"] = json!({"magic": {}})),
        ("unknown field", |h| h["report"]["method"] = json!({"svml": {"magic": 1}})),
        ("best", |h| h["report"]["best"] = json!(1000)),
    ];
    let (header, arrays) = parts(&numbers(Form::Full));
    for (k, (reason, change)) in cases.iter().enumerate() {
        let mut changed = header.clone();
        change(&mut changed);
        let message = refusal(&rebuilt(&changed, &arrays));
        assert!(message.contains(reason), "case {k}: {message} / {reason}");
    }
}

/// What only the latest version has: training rows that are kept, and weights of classes.
#[test]
fn further_parts_that_contradict() {
    let data = Generator { rows: 40, noise: 1, ..Generator::default() }.generate().unwrap().data;
    let balanced = Svml { class_weight: ClassWeight::Balanced, ..params(Form::Diagonal) };
    let few: Vec<usize> = (0..40).filter(|i| data.y()[*i] == 0 || i % 3 == 0).collect();
    let data = data.select(&few);
    let mut model = Model::fit(&data, balanced).unwrap();
    model.keep_rows(data.x(), data.y()).unwrap();
    let (header, arrays) = parts(&model.to_bytes().unwrap());
    let made = |version: u32, header: &Value| {
        of_version(version, &serde_json::to_vec(header).unwrap(), &arrays)
    };
    Model::from_bytes(&made(7, &header)).unwrap();
    type Change = fn(&mut Value);
    let cases: &[(u32, &str, Change)] = &[
        (6, "class weights in a file of version 6", |_| {}),
        (6, "training rows in a file of version 6", |h| h["class_weights"] = Value::Null),
        (7, "class weights [1.0], 1 in all", |h| h["class_weights"] = json!([1.0])),
        (7, "class weights [1.0, 0.0]", |h| h["class_weights"] = json!([1.0, 0.0])),
        (7, "training rows with classes", |h| h["kept_classes"][0] = json!(2)),
        (7, "training rows with classes", |h| {
            h["kept_classes"].as_array_mut().unwrap().truncate(3);
        }),
        (7, "class weights in a file", |h| {
            h["report"]["method"] = serde_json::to_value(Method::neighbours(3)).unwrap();
            h["bias"] = json!([]);
        }),
    ];
    for (k, (version, reason, change)) in cases.iter().enumerate() {
        let mut changed = header.clone();
        change(&mut changed);
        let message = refusal(&made(*version, &changed));
        assert!(message.contains(reason), "case {k}: {message} / {reason}");
    }
}

#[test]
fn a_metric_without_a_classifier_has_no_support_vectors() {
    let data = Generator { rows: 40, noise: 1, ..Generator::default() }.generate().unwrap().data;
    let method: Method = "pca+none".parse().unwrap();
    let (mut header, arrays) = parts(&Model::fit(&data, method).unwrap().to_bytes().unwrap());
    header["support_rows"] = json!([0]);
    let file = of_version(4, &serde_json::to_vec(&header).unwrap(), &arrays);
    assert!(refusal(&file).contains("support vectors beside a metric"));
}

/// The length of a file is known before it is read: a header that is longer is refused at once.
#[test]
fn a_header_beyond_the_end_of_its_file() {
    let path = std::env::temp_dir().join(format!("svml-header-{}.svml", std::process::id()));
    std::fs::write(&path, file(3, 1000, b"{}")).unwrap();
    let message = Model::load(&path).unwrap_err().to_string();
    std::fs::remove_file(&path).unwrap();
    assert!(message.contains("a header of 1000 bytes in 2"), "{message}");
}

#[test]
fn members_that_contradict() {
    type Change = fn(&mut Value);
    let cases: &[(&str, Change)] = &[
        ("add up to", |h| h["members"][0]["weight"] = json!(0.9)),
        ("add up to", |h| h["members"][2]["weight"] = json!(0.1)),
        ("weight 0", |h| h["members"][0]["weight"] = json!(0.0)),
        ("weight -1", |h| {
            h["members"][0]["weight"] = json!(-1.0);
            h["members"][1]["weight"] = json!(2.0);
        }),
        ("null", |h| h["members"][0]["weight"] = Value::Null),
        ("weight", |h| drop(h["members"][1].as_object_mut().unwrap().remove("weight"))),
        ("C = 0", |h| h["members"][1]["cost"] = json!(0.0)),
        ("C = -2", |h| h["members"][2]["cost"] = json!(-2.0)),
        ("unknown variant", |h| h["members"][0]["kernel"] = json!("linear")),
        ("laplacian", |h| h["members"][2]["form"] = json!("full")),
        ("laplacian", |h| h["members"][2]["form"] = json!("rank=1")),
        ("laplacian", |h| {
            h["members"][1]["kernel"] = json!("laplacian");
            h["members"][1]["form"] = json!("rank=2");
        }),
        ("rank 4", |h| h["members"][0]["form"] = json!("rank=4")),
        ("18446744073709551615", |h| h["members"][0]["form"] = json!("rank=18446744073709551615")),
        ("form", |h| h["members"][0]["form"] = json!("cube")),
        ("arrays", |h| h["members"][0]["form"] = json!("diagonal")),
        ("arrays", |h| h["members"][1]["form"] = json!("full")),
        ("offsets", |h| h["members"][1]["bias"] = json!([])),
        ("offsets", |h| h["members"][1]["bias"] = json!([0.1, 0.2])),
        ("invalid type", |h| h["members"][1]["bias"] = json!(0.5)),
        ("arrays", |h| h["members"] = json!([])),
        ("arrays", |h| drop(h.as_object_mut().unwrap().remove("members"))),
        ("add up to", |h| drop(h["members"].as_array_mut().unwrap().pop())),
        ("arrays", |h| {
            drop(h["members"].as_array_mut().unwrap().pop());
            h["members"][0]["weight"] = json!(0.5);
            h["members"][1]["weight"] = json!(0.5);
        }),
        ("invalid type", |h| h["members"] = json!({})),
        ("support_counts", |h| h["support_counts"][0] = json!(0)),
        ("support_counts", |h| h["support_counts"] = json!([u64::MAX, 1])),
        ("support_counts", |h| h["support_counts"] = json!([])),
        ("support row", |h| h["support_rows"][0] = json!(u64::MAX)),
        ("temperature", |h| h["temperature"] = json!(0.0)),
        ("version 6", |h| h["report"]["method"] = json!({"metric": {"pca": {"rank": 1}}})),
        ("version 6", |h| {
            h["report"]["method"] = json!({"neighbours": {"learner": null, "knn": {"k": 3}}})
        }),
        // Below a name that is needed only from this version on, too.
        ("best", |h| h["report"]["best"] = json!(1000)),
        ("unknown variant", |h| {
            h["report"]["candidates"] = json!([{"form": "sphere", "kernel": "x"}])
        }),
    ];
    let (header, arrays) = parts(&mean(2));
    for (k, (reason, change)) in cases.iter().enumerate() {
        let mut changed = header.clone();
        change(&mut changed);
        let text = serde_json::to_vec(&changed).unwrap();
        let message = refusal(&of_version(6, &text, &arrays));
        assert!(message.contains(reason), "case {k}: {message} / {reason}");
    }
    // Versions that came before know no members.
    let text = serde_json::to_vec(&header).unwrap();
    for version in 1..6 {
        let message = refusal(&of_version(version, &text, &arrays));
        assert!(message.contains(&format!("members in a file of version {version}")), "{message}");
    }
    // Nor weights of classes, which must be as many as classes, and positive.
    for (version, weights, reason) in [
        (6, json!([1.0, 2.0]), "class weights in a file of version 6"),
        (7, json!([1.0]), "for 2 classes"),
        (7, json!([1.0, 0.0]), "for 2 classes"),
        (7, json!([1.0, -2.0]), "for 2 classes"),
        (7, json!([1.0, "2"]), "invalid type"),
    ] {
        let mut changed = header.clone();
        changed["class_weights"] = weights;
        let text = serde_json::to_vec(&changed).unwrap();
        let message = refusal(&of_version(version, &text, &arrays));
        assert!(message.contains(reason), "{message} / {reason}");
    }
    let mut weighted = header.clone();
    weighted["class_weights"] = json!([1.0, 2.5]);
    let text = serde_json::to_vec(&weighted).unwrap();
    assert_usable(&Model::from_bytes(&of_version(7, &text, &arrays)).unwrap());
    // A single Gaussian member may be written in the new way as well.
    let (mut header, arrays) = parts(&numbers(Form::Diagonal));
    let model = Model::from_bytes(&rebuilt(&header, &arrays)).unwrap();
    header["members"] = json!([{
        "weight": 1.0, "kernel": "gaussian", "form": "diagonal",
        "cost": header["cost"], "bias": header["bias"],
    }]);
    assert_eq!(Model::from_bytes(&rebuilt(&header, &arrays)).unwrap(), model);
    // Orders of magnitude between the metrics of members.
    let (header, arrays) = parts(&mean(2));
    for (first, second) in [(1e-300, 1.0), (1e70, 1e-70), (0.0, 0.0), (5e-324, 1e70)] {
        let mut arrays = arrays.clone();
        (arrays[0], arrays[1]) = (first, second);
        if let Ok(model) = Model::from_bytes(&rebuilt(&header, &arrays)) {
            assert_usable(&model);
        }
    }
}

/// A member takes a hundred bytes in a file and, of many columns, much more in memory.
#[test]
fn members_without_end_are_refused() {
    let (header, arrays) = parts(&mean(2));
    let d = header["schema"]["columns"].as_array().unwrap().len();
    let support = header["support_rows"].as_array().unwrap().len();
    let sphere = header["members"][0].clone();
    for many in [1000, 100_000] {
        let mut header = header.clone();
        let mut member = sphere.clone();
        member["weight"] = json!(1.0 / f64::from(many));
        header["members"] = json!(vec![member; many as usize]);
        let rows = &arrays[1 + d + 1..1 + d + 1 + support * d];
        let all = [vec![1.0; many as usize], rows.to_vec(), vec![0.0; many as usize * support]];
        let message = refusal(&rebuilt(&header, &all.concat()));
        assert!(message.contains(&format!("{many} members")), "{message}");
    }
}

/// The mean of metrics that are not diagonal has a matrix of columns times columns, which the file need not have.
#[test]
fn a_mean_of_wide_metrics_is_refused() {
    let (mut header, _) = parts(&mean(2));
    let levels: Vec<String> = (0..90_000).map(|i| format!("{i:07}")).collect();
    header["schema"]["columns"] = json!([{"name": "x", "kind": {"onehot": {"levels": levels}}}]);
    header["schema"]["target"]["position"] = json!(0);
    for name in ["fill", "mean", "scale", "low", "high"] {
        header["scaler"][name] = json!(vec![1.0; 90_000]);
    }
    header["support_rows"] = json!([]);
    header["support_counts"] = json!([0, 0]);
    let mut member = header["members"][0].clone();
    (member["weight"], member["form"]) = (json!(0.5), json!("rank=1"));
    header["members"] = json!([member, member]);
    let message = refusal(&rebuilt(&header, &vec![1e-3; 180_000]));
    assert!(message.contains("90000"), "{message}");
}

/// What a stranger wrote is not repeated at length.
#[test]
fn messages_are_short_and_classes_few() {
    let (header, arrays) = parts(&numbers(Form::Sphere));
    let long = "x".repeat(100_000);
    let many: Vec<String> = (0..100_000).map(|i| i.to_string()).collect();
    let twice = ["y".repeat(50_000), "y".repeat(50_000)];
    let mut repeated = header["schema"].clone();
    let columns = [0, 1, 2].map(|_| json!({ "name": long, "kind": "number" }));
    repeated["columns"] = json!(columns);
    for (name, value) in [
        ("classes", json!(many)),
        ("classes", json!(vec![""; 100_000])),
        ("classes", json!(twice)),
        ("support_counts", json!(vec![1; 100_000])),
        ("bias", json!(vec![0; 100_000])),
        ("bias", json!(long)),
        ("form", json!(long)),
        ("schema", json!(long)),
        ("schema", repeated),
        ("report", json!({ "method": { long.as_str(): {} } })),
    ] {
        let mut header = header.clone();
        header[name] = value;
        let message = refusal(&rebuilt(&header, &arrays));
        assert!(message.len() < 1000, "{name}: {} bytes, {}", message.len(), &message[..1000]);
    }
    let mut header = header;
    header["classes"] = json!(many);
    assert!(refusal(&rebuilt(&header, &arrays)).contains("more than 200 classes"));
    // A header that is longer than any that is written.
    assert!(refusal(&file(3, 1 << 40, b"{}")).contains("a header of 1099511627776 bytes"));
}

/// Rows that are mostly the same: the bits say how many numbers follow, and cannot promise more than is there.
#[test]
fn sparse_rows_that_contradict() {
    let x = Matrix::from_fn(40, 4000, |i, k| {
        if k < 2 { (i * (k + 3) % 7) as f64 } else { f64::from(u8::from(k == 4 * i)) }
    });
    let class: Vec<usize> = (0..40).map(|i| usize::from(i * 3 % 7 > 3)).collect();
    let params = Svml { cross_fit: false, max_iterations: 1, ..Svml::default() };
    let params = Svml { form: Form::Sphere.into(), ..params };
    let good = Model::fit(&Dataset::new(x, &class).unwrap(), params).unwrap().to_bytes().unwrap();
    assert_eq!(good[8], 8);
    let len = u64::from_le_bytes(good[12..PREFIX].try_into().unwrap()) as usize;
    let (header, arrays) = good[PREFIX..good.len() - 4].split_at(len);
    let made = |arrays: &[u8]| file(8, len as u64, &[header, arrays].concat());
    assert!(made(arrays) == good);
    // The width, and then the common row.
    let bits = 8 + 8 * 4000;
    for at in (bits..bits + 63 * 8).step_by(7) {
        let mut altered = arrays.to_vec();
        altered[at] ^= 0x80;
        assert!(refusal(&made(&altered)).contains("do not fit"), "{at}");
    }
    for end in [0, 8, bits - 8, bits, bits + 504, arrays.len() - 8] {
        assert!(refusal(&made(&arrays[..end])).contains("do not fit"), "{end}");
    }
    let longer = [arrays, &[0; 8]].concat();
    assert!(refusal(&made(&longer)).contains("do not fit"));
    let mut large = arrays.to_vec();
    large[8..16].copy_from_slice(&f64::MAX.to_le_bytes());
    assert!(refusal(&made(&large)).contains("beyond"));
    let mut header: Value = serde_json::from_slice(header).unwrap();
    header["form"] = json!("full");
    let header = serde_json::to_vec(&header).unwrap();
    let file = file(8, header.len() as u64, &[header.as_slice(), arrays].concat());
    assert!(refusal(&file).contains("do not fit"));
}

/// A header of a few kilobytes must not ask for gigabytes, and many levels are refused.
#[test]
fn sizes_are_checked_before_memory_is_asked_for() {
    let (header, arrays) = parts(&numbers(Form::Full));
    let levels = |n: usize| (0..n).map(|i| format!("{i:07}")).collect::<Vec<_>>();
    let mut many = header.clone();
    many["schema"]["columns"] =
        json!([{"name": "x", "kind": {"onehot": {"levels": levels(100_001)}}}]);
    assert!(refusal(&rebuilt(&many, &arrays)).contains("100001"));
    // 90,000 columns: L alone would have 65 GB.
    let wide = |form: &str| {
        let mut wide = header.clone();
        wide["schema"]["columns"] =
            json!([{"name": "x", "kind": {"onehot": {"levels": levels(90_000)}}}]);
        wide["schema"]["target"]["position"] = json!(0);
        for name in ["fill", "mean", "scale", "low", "high"] {
            wide["scaler"][name] = json!(vec![1.0; 90_000]);
        }
        wide["form"] = json!(form);
        refusal(&rebuilt(&wide, &arrays))
    };
    for form in ["full", "rank=90000", "diagonal", "sphere"] {
        let message = wide(form);
        assert!(message.contains("90000 features"), "{message}");
    }
}

#[test]
fn arrays_that_are_too_short_too_long_or_not_finite() {
    for bytes in [numbers(Form::Sphere), numbers(Form::Rank(2)), table(), mean(2), mean(3)] {
        let (header, arrays) = parts(&bytes);
        for len in [0, 1, arrays.len() / 2, arrays.len() - 1] {
            assert!(refusal(&rebuilt(&header, &arrays[..len])).contains("arrays"), "{len}");
        }
        let long = [arrays.as_slice(), &[0.0]].concat();
        assert!(refusal(&rebuilt(&header, &long)).contains("arrays"));
        // Not a whole number of values.
        let text = serde_json::to_vec(&header).unwrap();
        let mut rest = text.clone();
        arrays.iter().for_each(|v| rest.extend(v.to_le_bytes()));
        rest.push(0);
        let version = if header.get("members").is_some() { 6 } else { 2 };
        assert!(refusal(&file(version, text.len() as u64, &rest)).contains("arrays"));
        for bad in
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::from_bits(0x7ff0_0000_0000_0001)]
        {
            for at in 0..arrays.len() {
                let mut arrays = arrays.clone();
                arrays[at] = bad;
                refusal(&rebuilt(&header, &arrays));
            }
        }
    }
}

/// Finite numbers that overflow when they are used.
#[test]
fn huge_numbers_are_refused_or_harmless() {
    for bytes in [
        numbers(Form::Sphere),
        numbers(Form::Diagonal),
        numbers(Form::Full),
        table(),
        mean(2),
        mean(3),
        rough(),
    ] {
        let (header, arrays) = parts(&bytes);
        let support = header["support_rows"].as_array().unwrap().len();
        for huge in [f64::MAX, -f64::MAX, 1e200, 1e155, 5e-324] {
            let some =
                [vec![0], vec![arrays.len() - 1], (arrays.len() - support..arrays.len()).collect()];
            for places in some {
                let mut arrays = arrays.clone();
                places.iter().for_each(|&at| arrays[at] = huge);
                if let Ok(model) = Model::from_bytes(&rebuilt(&header, &arrays)) {
                    assert_usable(&model);
                }
            }
            let mut header = header.clone();
            header["bias"] = json!(huge);
            if let Some(members) = header.get_mut("members") {
                for member in members.as_array_mut().unwrap() {
                    let pairs = member["bias"].as_array().unwrap().len();
                    member["bias"] = json!(vec![huge; pairs]);
                }
            }
            header["scaler"]["mean"][0] = json!(huge);
            header["scaler"]["scale"][0] = json!(huge.abs());
            if let Ok(model) = Model::from_bytes(&rebuilt(&header, &arrays)) {
                assert_usable(&model);
            }
        }
    }
}

/// Nothing but the offset: such a model is odd, but its answer is defined.
#[test]
fn a_model_without_support_vectors_answers_with_its_offset() {
    let (mut header, arrays) = parts(&numbers(Form::Full));
    header["support_rows"] = json!([]);
    match Model::from_bytes(&rebuilt(&header, &arrays[..9])) {
        Ok(model) => {
            assert_usable(&model);
            assert_eq!(
                model.decision(&Matrix::zeros(3, 3)).unwrap().into_vec(),
                [model.bias()[0]; 3]
            );
        }
        Err(error) => assert!(matches!(error, Error::ModelFile(_)), "{error}"),
    }
}

/// The paths of all values inside `value`.
fn paths(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(k, v)| paths(v, &format!("{at}/{k}"), out));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(k, v)| paths(v, &format!("{at}/{k}"), out));
        }
        _ => {}
    }
}

fn odd_value() -> impl Strategy<Value = Value> {
    let numbers = prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        3.0,
        1e-300,
        1e155,
        1e300,
        f64::MAX,
        -f64::MAX,
        5e-324,
    ]);
    let integers = prop::sample::select(vec![0, 1, 2, 3, 1000, u64::MAX, 1 << 63, 1 << 32]);
    let texts = prop::sample::select(vec![
        "",
        "a",
        "full",
        "sphere",
        "diagonal",
        "rank=1",
        "rank=3",
        "gaussian",
        "laplacian",
        "number",
        "ignored",
        "impute",
        "drop",
        "\0",
    ]);
    prop_oneof![
        numbers.prop_map(|v| json!(v)),
        integers.prop_map(|v| json!(v)),
        any::<f64>().prop_map(|v| json!(v)),
        texts.prop_map(|v| json!(v)),
        Just(Value::Null),
        Just(json!(true)),
        Just(json!([])),
        Just(json!({})),
        Just(json!([1.0, 2.0, 3.0])),
        Just(json!({"codes": {"levels": ["a", "b"]}})),
        Just(json!({"onehot": {"levels": ["a", "b"]}})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), len in any::<u64>()) {
        prop_assert!(Model::from_bytes(&bytes).is_err());
        for version in [2, 6] {
            prop_assert!(Model::from_bytes(&file(version, len % 300, &bytes)).is_err());
            prop_assert!(Model::from_bytes(&file(version, len, &bytes)).is_err());
        }
    }
}

#[test]
fn mutated_headers_and_arrays() {
    let originals: Vec<(Value, Vec<f64>)> = [
        numbers(Form::Sphere),
        numbers(Form::Full),
        numbers(Form::Rank(2)),
        table(),
        mean(2),
        mean(3),
        rough(),
    ]
    .iter()
    .map(|bytes| parts(bytes))
    .collect();
    let mutations =
        prop::collection::vec((any::<prop::sample::Index>(), odd_value(), 0..4u8), 1..4);
    let numbers = prop::collection::vec((any::<prop::sample::Index>(), any::<f64>()), 0..3);
    let config =
        ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() };
    let loaded = std::cell::Cell::new(0);
    let strategy = (0..originals.len(), mutations, numbers);
    proptest!(config, |((which, mutations, numbers) in strategy)| {
        let (mut header, mut arrays) = originals[which].clone();
        for (place, value, what) in mutations {
            let mut all = Vec::new();
            paths(&header, "", &mut all);
            let path = &all[place.index(all.len())];
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", ""));
            match (what, header.pointer_mut(parent)) {
                (0, Some(Value::Object(fields))) => drop(fields.remove(name)),
                (0, Some(Value::Array(items))) => drop(items.pop()),
                (1, Some(Value::Array(items))) => items.push(value),
                _ => *header.pointer_mut(path).unwrap() = value,
            }
        }
        for (place, value) in numbers {
            let at = place.index(arrays.len());
            arrays[at] = value;
        }
        if let Ok(model) = Model::from_bytes(&rebuilt(&header, &arrays)) {
            loaded.set(loaded.get() + 1);
            assert_usable(&model);
            // A map takes its time. It is drawn, or it is an error, but no panic.
            if loaded.get() % 10 == 1 {
                let d = model.schema().width();
                let x = Matrix::from_fn(6, d, |i, k| (i * i + k) as f64 - 3.0);
                let _ = Map::new(&model, &x, None);
            }
        }
    });
    // Some mutations do no harm: were none loaded, the test would test nothing.
    assert!(loaded.get() > 20, "{} loaded", loaded.get());
}

/// The square of a scale may be below all numbers; shares of columns are shares all the same.
#[test]
fn scales_whose_squares_vanish() {
    let (header, arrays) = parts(&table());
    let count = header["scaler"]["scale"].as_array().unwrap().len();
    for k in 0..count {
        let mut tiny = header.clone();
        tiny["scaler"]["scale"][k] = json!(2e-308);
        let model = Model::from_bytes(&rebuilt(&tiny, &arrays)).unwrap();
        assert_usable(&model);
        let shares = Relevance::of_columns(&model).values;
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{k}: {shares:?}");
    }
}
