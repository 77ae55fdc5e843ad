//! What is written as C and JavaScript, compiled and run: it must say what the library says. Where there is no C compiler
//! or no node, the tests say that they are skipped.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use svml::data::{Categories, Missing, ReadOptions};
use svml::{Dataset, Generator, Matrix, Method, Model};
use svml_export::{Input, Output, c, js, onnx};
use tempfile::TempDir;

/// A model and rows to ask it about.
struct Case {
    name: String,
    model: Model,
    x: Matrix,
}

/// All kernels, all forms, several members and classes, missing values, categories and constant columns.
fn zoo() -> Vec<Case> {
    let mut zoo = Vec::new();
    let methods = [
        "svml:sphere",
        "svml:diagonal",
        "svml:full",
        "svml:rank=2",
        "svml:diagonal,kernel=exponential",
        "svml:full,kernel=exponential",
        "svml:sphere,kernel=laplacian",
        "svml:diagonal,kernel=laplacian",
        "svml",
        "svml:sphere,class_weight=balanced",
        "euclidean",
        "nca:rank=2+none",
        "pca+none",
        "itml+none",
    ];
    for classes in [2, 4] {
        let generated = |rows, seed| {
            Generator { rows, classes, seed, noise: 3, ..Default::default() }
                .generate()
                .unwrap()
                .data
        };
        let (train, new) = (generated(130, 0), generated(60, 1));
        for method in methods {
            let model = Model::fit(&train, method.parse::<Method>().unwrap()).unwrap();
            assert_eq!(
                model.class_weights().is_some(),
                method.contains("class_weight"),
                "{method}"
            );
            // Rows of training are at a distance of 0 from support vectors, and some are far away.
            let x = Matrix::from_fn(200, 5, |i, k| match i {
                0..130 => train.x()[(i, k)],
                130..190 => new.x()[(i - 130, k)],
                _ => new.x()[(i - 190, k)] * 10.0_f64.powi(25 * (i as i32 - 189)),
            });
            zoo.push(Case { name: format!("{method}, {classes} classes"), model, x });
        }
    }
    for method in ["svml", "svml:diagonal", "svml:rank=2"] {
        let data = mixed(Missing::Impute);
        let model = Model::fit(&data, method.parse::<Method>().unwrap()).unwrap();
        zoo.push(Case { name: format!("{method}, mixed"), model, x: data.x().clone() });
    }
    zoo
}

const HEADER: &str = "kind,size,same,shade,other,ill\n";

/// A table with gaps, a column of few texts, one of codes and a constant one.
fn table() -> Vec<String> {
    (0..150)
        .map(|i| {
            let kind = ["red", "blue", "green", ""][i * i % 7 % 4];
            let size = if i % 17 == 3 { "?".to_owned() } else { format!("{}.5", i * 7 % 23) };
            let ill = (i * 7 % 23 > 11) != (kind == "red");
            let (shade, other) = (i * 5 % 24, i % 5);
            format!("{kind},{size},7,s{shade},{other},{}\n", if ill { "yes" } else { "no" })
        })
        .collect()
}

fn mixed(missing: Missing) -> Dataset {
    let options = ReadOptions { missing, categories: Categories::Auto, ..ReadOptions::default() };
    Dataset::from_csv((HEADER.to_owned() + &table().concat()).as_bytes(), &options).unwrap()
}

/// Whether a program is there; says that the test is skipped if not.
fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok();
    if !found {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: {program} is not installed");
        }
    }
    found
}

/// Runs a program in a folder, and gives what it prints.
fn run(folder: &Path, program: &str, args: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {error}");
    assert_eq!(error, "", "{program} {args:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Rows as lines of numbers.
fn lines(x: &Matrix) -> String {
    let line = |row: &[f64]| row.iter().map(f64::to_string).collect::<Vec<_>>().join(" ") + "\n";
    x.iter_rows().map(line).collect()
}

/// Compares what a program printed, a line for each row, with the library: class, decision values and probabilities; or the
/// mapped row of a metric.
fn compare(case: &Case, printed: &str) {
    let Case { name, model, x } = case;
    let (class, numbers) = match model.is_classifier() {
        true => {
            let (decision, p) = (model.decision(x).unwrap(), model.probabilities(x).unwrap());
            let both = |i: usize| [decision.row(i), p.row(i)].concat();
            (model.predict(x).unwrap(), (0..x.rows()).map(both).collect::<Vec<_>>())
        }
        false => {
            let z = model.transform(x).unwrap();
            (vec![0; x.rows()], z.iter_rows().map(<[f64]>::to_vec).collect())
        }
    };
    assert_eq!(printed.lines().count(), x.rows(), "{name}");
    for (i, line) in printed.lines().enumerate() {
        let mut words = line.split_whitespace();
        let theirs: usize = words.next().unwrap().parse().unwrap();
        assert_eq!(theirs, class[i], "{name}, row {i}: {line}");
        let theirs: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        assert_eq!(theirs.len(), numbers[i].len(), "{name}, row {i}: {line}");
        for (theirs, ours) in theirs.iter().zip(&numbers[i]) {
            let close = (theirs - ours).abs() <= 1e-9 * ours.abs().max(1.0);
            assert!(close, "{name}, row {i}: {theirs:e} {ours:e}");
        }
    }
}

const STRICT: [&str; 6] = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2"];

/// Compiles the model and a program that calls it.
fn compile(folder: &Path, model: &Model, main: &str) {
    fs::write(folder.join("model.c"), svml_export::c(model, Output::Model).unwrap()).unwrap();
    fs::write(folder.join("main.c"), main).unwrap();
    let args = [&STRICT[..], &["model.c", "main.c", "-o", "main", "-lm"]].concat();
    run(folder, "cc", &args, "");
}

/// A program that maps rows.
fn mapping(model: &Model) -> String {
    let (d, rank) = (model.schema().width(), model.metric().rank());
    format!(
        "#include <stdio.h>
int svml_transform(const double *x, double *z);
int main(void) {{
    double x[{d}], z[{rank}];
    int k;
    for (;;) {{
        for (k = 0; k < {d}; k++) if (scanf(\"%lf\", &x[k]) != 1) return 0;
        printf(\"%d\", svml_transform(x, z));
        for (k = 0; k < {rank}; k++) printf(\" %.17g\", z[k]);
        printf(\"\\n\");
    }}
}}
"
    )
}

/// A program that classifies rows.
fn predicting(model: &Model) -> String {
    let (d, k) = (model.schema().width(), model.classes().len());
    if !model.is_classifier() {
        return mapping(model);
    }
    let values = if k == 2 { 1 } else { k };
    format!(
        "#include <stdio.h>
int svml_predict(const double *x, double *decision, double *probabilities);
int main(void) {{
    double x[{d}], decision[{values}], p[{k}];
    int k;
    for (;;) {{
        for (k = 0; k < {d}; k++) if (scanf(\"%lf\", &x[k]) != 1) return 0;
        printf(\"%d\", svml_predict(x, decision, p));
        if (svml_predict(x, NULL, NULL) != svml_predict(x, decision, p)) return 1;
        for (k = 0; k < {values}; k++) printf(\" %.17g\", decision[k]);
        for (k = 0; k < {k}; k++) printf(\" %.17g\", p[k]);
        printf(\"\\n\");
    }}
}}
"
    )
}

#[test]
fn c_says_what_the_library_says() {
    if !installed("cc") {
        return;
    }
    let folder = TempDir::new().unwrap();
    for case in zoo() {
        compile(folder.path(), &case.model, &predicting(&case.model));
        compare(&case, &run(folder.path(), "./main", &[], &lines(&case.x)));
    }
}

#[test]
fn c_refuses_what_the_library_refuses() {
    if !installed("cc") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
    let model = Model::fit(&data, "svml:sphere".parse::<Method>().unwrap()).unwrap();
    compile(folder.path(), &model, &predicting(&model));
    for bad in ["nan", "inf", "-inf", "2e300"] {
        let row = format!("{bad} 0 0 0 0 0 0 0 0 0");
        assert!(run(folder.path(), "./main", &[], &row).starts_with("-1 "), "{bad}");
    }
}

const JS: &str = "
import * as model from './model.mjs';
import { readFileSync } from 'node:fs';
const many = model.classes?.length > 2;
for (const line of readFileSync(0, 'utf8').trim().split('\\n')) {
  const row = line.split(' ').map(Number);
  if (model.transform) {
    console.log([0, ...model.transform(row)].join(' '));
    continue;
  }
  const decision = model.decision(row);
  const numbers = [...(many ? decision : [decision]), ...model.probabilities(Float64Array.from(row))];
  console.log([model.classes.indexOf(model.predict(row)), ...numbers].join(' '));
}
";

#[test]
fn javascript_says_what_the_library_says() {
    if !installed("node") {
        return;
    }
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("main.mjs"), JS).unwrap();
    for case in zoo() {
        fs::write(
            folder.path().join("model.mjs"),
            svml_export::js(&case.model, Output::Model).unwrap(),
        )
        .unwrap();
        compare(&case, &run(folder.path(), "node", &["main.mjs"], &lines(&case.x)));
    }
}

/// A row by the names of its columns is read as the library reads a line of a table.
#[test]
fn javascript_reads_raw_rows() {
    if !installed("node") {
        return;
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let model = Model::fit(&mixed(Missing::Impute), "svml".parse::<Method>().unwrap()).unwrap();
    fs::write(path.join("model.mjs"), svml_export::js(&model, Output::Model).unwrap()).unwrap();
    fs::write(
        path.join("main.mjs"),
        "
import * as model from './model.mjs';
import { readFileSync } from 'node:fs';
const [header, ...lines] = readFileSync(0, 'utf8').trim().split('\\n').map((line) => line.split(','));
for (const cells of lines) {
  const row = Object.fromEntries(header.map((name, k) => [name, cells[k]]));
  console.log([model.predict(row), ...model.encode(row)].join(' '));
}
const row = { kind: null, size: 3.5, same: 7, shade: 's3', other: undefined, more: {} };
console.log([model.predict(row), ...model.encode(row)].join(' '));
for (const bad of [{}, { ...row, size: 'big' }, { ...row, size: '0x10' }, { ...row, size: Infinity }, [1, 2], [NaN, 'a']]) {
  try {
    console.log('accepted', model.predict(bad));
  } catch (error) {
    console.log(error.message);
  }
}
",
    )
    .unwrap();
    let rows: String =
        table().iter().map(|row| row.rsplit_once(',').unwrap().0.to_owned() + "\n").collect();
    let new = "violet,1e1,8,unknown, 2 \nred,.5,7,s1,NA\n";
    let text = format!("kind,size,same,shade,other\n{rows}{new}");
    let printed = run(path, "node", &["main.mjs"], &text);
    let text = format!("{text},3.5,7,s3,\n");
    let read = model.schema().read_csv(text.as_bytes(), &ReadOptions::default()).unwrap();
    let labels = model.predict_labels(&read.x).unwrap();
    let mut printed = printed.lines();
    for (row, label) in read.x.iter_rows().zip(labels) {
        let expected: Vec<String> = row.iter().map(f64::to_string).collect();
        assert_eq!(printed.next().unwrap(), format!("{label} {}", expected.join(" ")));
    }
    let errors: Vec<&str> = printed.collect();
    assert_eq!(
        errors,
        [
            "the row has no column \"kind\"",
            "column \"size\": \"big\" is not a number",
            "column \"size\": \"0x10\" is not a number",
            "feature \"size\": Infinity is not a number within +-1e300",
            "the row has 2 values where 7 are needed",
            "the row has 2 values where 7 are needed",
        ]
    );

    // A model that does not fill missing values.
    let text: String =
        table().into_iter().filter(|row| !row.contains('?') && !row.starts_with(',')).collect();
    let data = Dataset::from_csv((HEADER.to_owned() + &text).as_bytes(), &ReadOptions::default());
    let model = Model::fit(&data.unwrap(), "svml:sphere".parse::<Method>().unwrap()).unwrap();
    fs::write(path.join("model.mjs"), svml_export::js(&model, Output::Model).unwrap()).unwrap();
    fs::write(
        path.join("main.mjs"),
        "
import * as model from './model.mjs';
const row = { kind: 'red', size: 3.5, same: 7, shade: 's3', other: 1 };
console.log(model.classes.includes(model.predict(row)));
for (const bad of [{ ...row, size: null }, { ...row, kind: null }, { ...row, shade: 'unknown' }]) {
  try {
    console.log('accepted', model.predict(bad));
  } catch (error) {
    console.log(error.message);
  }
}
",
    )
    .unwrap();
    let printed = run(path, "node", &["main.mjs"], "");
    let lines: Vec<&str> = printed.lines().collect();
    let missing = "feature \"kind=blue\": the value is missing";
    let unknown = "column \"shade\": \"unknown\" did not occur in training";
    assert_eq!(lines, ["true", "feature \"size\": the value is missing", missing, unknown]);
}

/// Names that would end a constant, a comment or a script, or be something else, if they were not escaped.
fn hostile() -> Vec<String> {
    let names = [
        "\"; system(\"true\"); \"",
        "back\\slash\\",
        "line\nend\r\ttab",
        "*/ int x; /*",
        "// */",
        "</script><script>alert(1)</script>",
        "<!-- -->",
        "??/??'??=",
        "%s%n",
        "${process.exit(1)} `x`",
        "__proto__",
        "constructor",
        "a\u{2028}\u{2029}\u{feff}b",
        "Größe 数 \u{1f600}",
        "\\u0022",
        "12\u{1}3",
        "'single'",
        "#define SVML_FEATURES 0",
    ];
    let mut names: Vec<String> = names.map(str::to_owned).into();
    names.push("long?\"".repeat(1000));
    names
}

fn hostile_model() -> Model {
    let names = hostile();
    let d = names.len();
    let x = Matrix::from_fn(4 * d, d, |i, k| ((i * 7 + k * 5) % 11) as f64 + f64::from(i % d == k));
    let labels: Vec<usize> = (0..4 * d).map(|i| i % d).collect();
    let data = Dataset::new(x, &labels).unwrap();
    let data = data.with_names(names.clone()).unwrap().with_class_names(names).unwrap();
    Model::fit(&data, "fixed:gamma=0.01,cost=1".parse::<Method>().unwrap()).unwrap()
}

/// Bytes in hexadecimal digits.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn hostile_names_are_only_names() {
    let model = hostile_model();
    let expected: Vec<String> = model
        .classes()
        .iter()
        .chain(&model.schema().encoded_names())
        .map(|name| hex(name))
        .collect();
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    if installed("cc") {
        let k = model.classes().len();
        let main = format!(
            "#include <stdio.h>
extern const char *const svml_classes[{k}];
extern const char *const svml_features[{k}];
static void show(const char *name) {{
    for (; *name; name++) printf(\"%02x\", (unsigned char)*name);
    printf(\"\\n\");
}}
int main(void) {{
    int k;
    for (k = 0; k < {k}; k++) show(svml_classes[k]);
    for (k = 0; k < {k}; k++) show(svml_features[k]);
    return 0;
}}
"
        );
        compile(path, &model, &main);
        let source = fs::read_to_string(path.join("model.c")).unwrap();
        assert!(source.is_ascii() && !source.contains("??"));
        let printed = run(path, "./main", &[], "");
        assert!(printed.lines().eq(expected.iter().map(String::as_str)), "{printed}");
    }
    if installed("node") {
        let source = svml_export::js(&model, Output::Model).unwrap();
        assert!(source.is_ascii() && !source.contains("</script") && !source.contains("<!--"));
        fs::write(path.join("model.mjs"), source).unwrap();
        let main = "
import * as model from './model.mjs';
for (const name of [...model.classes, ...model.features]) console.log(Buffer.from(name).toString('hex'));
const row = JSON.parse('{' + model.features.map((name) => JSON.stringify(name) + ': 1').join(', ') + '}');
if (model.predict(row) !== model.predict(model.features.map(() => 1))) throw new Error('rows differ');
try {
  model.predict({});
  throw new Error('accepted');
} catch (error) {
  if (!error.message.startsWith('the row has no column')) throw error;
}
";
        fs::write(path.join("main.mjs"), main).unwrap();
        let printed = run(path, "node", &["main.mjs"], "");
        assert!(printed.lines().eq(expected.iter().map(String::as_str)), "{printed}");
    }
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let model = hostile_model();
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    for output in [Output::Model, Output::Map] {
        assert_eq!(c(&model, output).unwrap(), c(&again, output).unwrap());
        assert_eq!(js(&model, output).unwrap(), js(&again, output).unwrap());
        for input in [Input::Features, Input::Columns] {
            assert_eq!(onnx(&model, input, output).unwrap(), onnx(&again, input, output).unwrap());
        }
    }
}

#[test]
fn nearest_neighbours_are_refused_with_a_way_out() {
    let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
    let model = Model::fit(&data, "knn:k=3".parse::<Method>().unwrap()).unwrap();
    let all = |output| {
        [
            onnx(&model, Input::Features, output).map(drop),
            c(&model, output).map(drop),
            js(&model, output).map(drop),
        ]
    };
    for refused in all(Output::Model) {
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("nearest-neighbour") && message.contains("use a model with SVMs"));
    }
    assert!(all(Output::Map).iter().all(Result::is_ok));
}

/// The map of a classifier is that of `Model::transform`.
#[test]
fn a_classifier_has_a_map_too() {
    let mut data = Generator { rows: 80, ..Default::default() };
    let folder = TempDir::new().unwrap();
    for method in ["svml", "svml:full", "knn:k=3"] {
        data.seed += 1;
        let data = data.generate().unwrap().data;
        let model = Model::fit(&data, method.parse::<Method>().unwrap()).unwrap();
        let z = model.transform(data.x()).unwrap();
        let check = |printed: &str| {
            for (line, row) in printed.lines().zip(z.iter_rows()) {
                let theirs = line.split(' ').skip(1).map(|word| word.parse::<f64>().unwrap());
                for (theirs, ours) in theirs.zip(row) {
                    assert!((theirs - ours).abs() <= 1e-9 * ours.abs().max(1.0), "{method}");
                }
            }
            assert_eq!(printed.lines().count(), z.rows());
        };
        if installed("cc") {
            fs::write(folder.path().join("model.c"), c(&model, Output::Map).unwrap()).unwrap();
            fs::write(folder.path().join("main.c"), mapping(&model)).unwrap();
            let args = [&STRICT[..], &["model.c", "main.c", "-o", "main", "-lm"]].concat();
            run(folder.path(), "cc", &args, "");
            check(&run(folder.path(), "./main", &[], &lines(data.x())));
        }
        if installed("node") {
            fs::write(folder.path().join("model.mjs"), js(&model, Output::Map).unwrap()).unwrap();
            fs::write(folder.path().join("main.mjs"), JS).unwrap();
            check(&run(folder.path(), "node", &["main.mjs"], &lines(data.x())));
        }
    }
}
