//! What is fuzzed: functions from bytes to an outcome, whatever the bytes are.
//!
//! Each target does with the bytes what the command does with such a file, and looks at what must hold of any result. An
//! `Err` is a promise that was broken; a refusal of the input is an outcome like others. The file uses nothing of the study,
//! so that a fuzzer that is guided by coverage can be made of it too.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::Duration;

use svml::data::{Categories, Delimiter, Format, Missing, Schema};
use svml::figures::{Dependence, Map, MetricMatrix, Relevance, Trace, Waterfall};
use svml::internals::{Input, new_rows, training};
use svml::{Dataset, Error, Generator, Matrix, Method, Model, ReadOptions, Run};
use svml_plot::{Draw, Picture};

/// What came of an input.
pub struct Outcome {
    /// What happened, without the numbers and texts of the input: inputs of the same kind are alike.
    pub kind: String,
    /// Bytes that may be allocated besides those that every input may have; see [`Target::allowance`].
    pub allowance: usize,
}

/// A way in.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What bytes it takes.
    pub about: &'static str,
    /// Why it may need more memory than 64 MB and four times the input, if it may.
    pub allowance: Option<&'static str>,
    /// Of how many inputs that others get it gets one, because it takes so much longer.
    pub slow: u64,
    /// Does with bytes what the command would.
    pub run: fn(&[u8]) -> Result<Outcome, String>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "csv",
        about: "tables of cells as training data",
        allowance: Some("tables are dense: 16 bytes for each number that is read"),
        slow: 1,
        run: csv,
    },
    Target {
        name: "libsvm",
        about: "LIBSVM files as training data and as new rows",
        allowance: Some("rows are stored dense: 16 bytes for each number, zeros included"),
        slow: 1,
        run: libsvm,
    },
    Target {
        name: "npy",
        about: "arrays of numpy as training data and as new rows",
        allowance: Some("small integers become numbers of 8 bytes: 16 bytes for each"),
        slow: 1,
        run: npy,
    },
    Target {
        name: "rows",
        about: "a training table and, after a line ---, new rows for its schema",
        allowance: Some("tables are dense: 16 bytes for each number that is read"),
        slow: 1,
        run: rows,
    },
    Target {
        name: "model",
        about: "model files, loaded, shown, used and saved again",
        allowance: None,
        slow: 1,
        run: model,
    },
    Target {
        name: "uses",
        about: "model files that load, in every export, picture, page and explanation",
        allowance: Some(
            "three pictures and a page of a model that has columns times columns numbers",
        ),
        slow: 20,
        run: uses,
    },
    Target {
        name: "export",
        about: "LIBSVM files of models that load, read back by LIBSVM's rules",
        allowance: None,
        slow: 1,
        run: export,
    },
    Target {
        name: "parameters",
        about: "methods and parameters as JSON and as text, and a fit with what is accepted",
        allowance: None,
        slow: 4,
        run: parameters,
    },
    Target {
        name: "arguments",
        about: "arguments of the command, one on each line",
        allowance: None,
        slow: 1,
        run: arguments,
    },
];

/// The target of this name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Longest message of an error: texts of the input are shortened in it.
const LONGEST_MESSAGE: usize = 4000;

/// A broken promise unless it holds.
fn ensure(holds: bool, promise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(promise()) }
}

/// Characters that a terminal could obey.
fn is_obeyed(c: char) -> bool {
    c.is_control() && c != '\n'
}

/// The kind of an error: its variant, and its message without numbers and without what comes from the input.
fn refused(error: &Error) -> Result<String, String> {
    let message = error.to_string();
    said(&message)?;
    let variant = format!("{error:?}");
    let variant = variant.split([' ', '(', '{']).next().unwrap_or_default().to_owned();
    Ok(format!("{variant}: {}", without_input(&message)))
}

/// Looks at a message: it is short, and no terminal obeys it.
fn said(message: &str) -> Result<(), String> {
    ensure(message.len() <= LONGEST_MESSAGE, || {
        format!("a message of {} bytes: {}...", message.len(), start_of(message))
    })?;
    ensure(!message.contains(is_obeyed), || format!("control characters: {message:?}"))
}

fn start_of(text: &str) -> String {
    text.chars().take(100).collect()
}

/// A message without numbers, without what is in quotes and without names of columns.
fn without_input(message: &str) -> String {
    let mut kind = String::new();
    let mut rest = message;
    while let Some(c) = rest.chars().next() {
        let name = "column ";
        if let Some(after) = rest.strip_prefix(name) {
            kind.push_str(name);
            rest = &after[after.find([':', ',', ';']).unwrap_or(after.len())..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' | '"' | '`' => {
                kind.push('_');
                rest = rest.find(c).map_or("", |end| &rest[end + 1..]);
            }
            c if c.is_ascii_digit() => {
                kind.push('#');
                rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || ".e-+".contains(c));
            }
            _ => kind.push(c),
        }
        if kind.len() > 80 {
            break;
        }
    }
    kind
}

/// A size as its number of digits in base four, so that few sizes are new.
fn size(count: usize) -> u32 {
    (usize::BITS - count.leading_zeros()).div_ceil(2)
}

/// Looks at training data, and says what kind they are.
fn of_data(data: &Dataset) -> Result<String, String> {
    let schema = data.schema();
    schema.validate().map_err(|e| format!("the schema that was read is refused: {e}"))?;
    ensure(data.y().len() == data.rows() && data.columns() == schema.width(), || {
        "sizes that differ".to_owned()
    })?;
    ensure(data.y().iter().all(|&class| class < data.classes().len()), || {
        "a class that there is not".to_owned()
    })?;
    let fits = |v: &f64| v.is_finite() || (v.is_nan() && schema.missing() == Missing::Impute);
    ensure(data.x().as_slice().iter().all(fits), || "numbers that are not finite".to_owned())?;
    let levels = schema.columns().iter().filter(|c| !c.kind.levels().is_empty()).count();
    let left_out = schema.columns().iter().filter(|c| c.left_out().is_some()).count();
    Ok(format!(
        "{} x {}, {} classes, {} of texts, {} left out, names {}",
        size(data.rows()),
        size(data.columns()),
        size(data.classes().len()),
        size(levels),
        size(left_out),
        schema.named()
    ))
}

/// Reads training data with each of some options.
fn read_with(bytes: &[u8], options: &[ReadOptions]) -> Result<Outcome, String> {
    let input = Input::of_bytes(bytes);
    let (mut kind, mut allowance) = (String::new(), 0);
    for options in options {
        let one = match training(&input, options) {
            Ok(read) => {
                allowance = allowance.max(16 * read.data.rows() * (read.data.columns() + 1));
                for suspect in &read.suspects {
                    said(&format!("{} {}", suspect.column, suspect.cell))?;
                }
                of_data(&read.data)?
            }
            Err(error) => {
                allowance = allowance.max(needed(&error));
                refused(&error)?
            }
        };
        let _ = write!(kind, "[{one}]");
    }
    Ok(Outcome { kind, allowance })
}

/// What was allocated before something was found to be too large.
fn needed(error: &Error) -> usize {
    match error {
        Error::TooLarge { limit, .. } => usize::try_from(*limit).unwrap_or(usize::MAX),
        // The number of cells is not known, so the limit of all tables.
        _ => 0,
    }
}

fn csv(bytes: &[u8]) -> Result<Outcome, String> {
    let column = |name: &str| name.parse().unwrap_or_default();
    let base = ReadOptions::default;
    let all = [
        base(),
        ReadOptions {
            missing: Missing::Impute,
            categories: Categories::Codes,
            target: column("1"),
            ..base()
        },
        ReadOptions {
            missing: Missing::Drop,
            header: Some(false),
            delimiter: Some(Delimiter::Semicolon),
            categories: Categories::OneHot,
            ..base()
        },
        ReadOptions {
            format: Some(Format::Csv),
            groups: Some("1".to_owned()),
            drop: vec!["2".to_owned()],
            header: Some(true),
            ..base()
        },
    ];
    read_with(bytes, &all)
}

/// New rows for a schema: their width, and what numbers they may hold.
fn read_new(schema: &Schema, bytes: &[u8], options: &ReadOptions) -> Result<Outcome, String> {
    let input = Input::of_bytes(bytes);
    match new_rows(schema, &input, options) {
        Ok((read, format)) => {
            ensure(read.x.cols() == schema.width(), || "new rows of another width".to_owned())?;
            ensure(read.labels.as_ref().is_none_or(|l| l.len() == read.x.rows()), || {
                "labels of other rows".to_owned()
            })?;
            let fits =
                |v: &f64| v.is_finite() || (v.is_nan() && schema.missing() == Missing::Impute);
            ensure(read.x.as_slice().iter().all(fits), || {
                "numbers of new rows that are not finite".to_owned()
            })?;
            let labels = read.labels.is_some();
            let kind = format!("new {format} {} labels {labels}", size(read.x.rows()));
            Ok(Outcome { kind, allowance: 16 * read.x.rows() * (read.x.cols() + 1) })
        }
        Err(error) => Ok(Outcome { kind: refused(&error)?, allowance: needed(&error) }),
    }
}

/// The schema of five columns of numbers.
fn five_numbers() -> Result<Schema, String> {
    let x = Matrix::from_fn(4, 5, |i, j| (i * j) as f64);
    let data = Dataset::new(x, &["a", "b", "a", "b"]).map_err(|e| e.to_string())?;
    Ok(data.schema().clone())
}

fn as_training_and_new(bytes: &[u8], format: Format) -> Result<Outcome, String> {
    let given = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let imputed = ReadOptions { missing: Missing::Impute, ..ReadOptions::default() };
    let read = read_with(bytes, &[given.clone(), imputed])?;
    let new = read_new(&five_numbers()?, bytes, &given)?;
    Ok(Outcome {
        kind: format!("{} [{}]", read.kind, new.kind),
        allowance: read.allowance.max(new.allowance),
    })
}

fn libsvm(bytes: &[u8]) -> Result<Outcome, String> {
    let read = as_training_and_new(bytes, Format::Libsvm)?;
    // Numbers that were all zero before there was an error in one of the last lines.
    let index = |part: &[u8]| {
        let digits = part.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let text = std::str::from_utf8(&part[part.len() - digits..]).unwrap_or_default();
        text.parse().ok().filter(|&index: &usize| index <= svml::data::MAX_COLUMNS)
    };
    let widest = bytes.split(|&b| b == b':').filter_map(index).max().unwrap_or(0);
    let lines = bytes.split(|&b| matches!(b, b'\n' | b'\r')).count();
    Ok(Outcome { allowance: read.allowance.max(16 * widest * lines), ..read })
}

fn npy(bytes: &[u8]) -> Result<Outcome, String> {
    as_training_and_new(bytes, Format::Npy)
}

/// What stands between training table and new rows.
pub const BETWEEN: &[u8] = b"\n---\n";

fn rows(bytes: &[u8]) -> Result<Outcome, String> {
    let at = bytes.windows(BETWEEN.len()).position(|part| part == BETWEEN);
    let (table, new) = match at {
        Some(at) => (&bytes[..=at], &bytes[at + BETWEEN.len()..]),
        None => (bytes, bytes),
    };
    let (mut kind, mut allowance) = (String::new(), 0);
    let base = ReadOptions::default;
    for options in
        [base(), ReadOptions { missing: Missing::Impute, categories: Categories::Codes, ..base() }]
    {
        let read = match training(&Input::of_bytes(table), &options) {
            Ok(read) => read,
            Err(error) => {
                let _ = write!(kind, "[{}]", refused(&error)?);
                allowance = allowance.max(needed(&error));
                continue;
            }
        };
        allowance = allowance.max(16 * read.data.rows() * (read.data.columns() + 1));
        let schema = read.data.schema();
        for keep in [Vec::new(), vec!["all".to_owned()]] {
            let found = read_new(schema, new, &ReadOptions { keep, ..base() })?;
            allowance = allowance.max(found.allowance);
            let _ = write!(kind, "[{}]", found.kind);
        }
        same_as_training(&read.data, read.format, table)?;
    }
    Ok(Outcome { kind, allowance })
}

/// The training table, read as new rows with the header that it was found to have, gives the numbers of training.
fn same_as_training(data: &Dataset, format: Format, table: &[u8]) -> Result<(), String> {
    let schema = data.schema();
    let header = (format == Format::Csv).then_some(schema.named());
    let options = ReadOptions { format: Some(format), header, ..ReadOptions::default() };
    let again = schema
        .read(table, &options)
        .map_err(|e| format!("a training table is refused as new rows: {e}"))?;
    let bits = |x: &Matrix| x.as_slice().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    ensure(bits(&again.x) == bits(data.x()), || {
        "a training table gives other numbers as new rows".to_owned()
    })
}

/// A few rows for a model, with numbers at the edges.
fn rows_for(model: &Model) -> Matrix {
    let values = [0.0, 1.0, -2.5, 1e-300, 1e9, -1e300];
    Matrix::from_fn(2 * values.len(), model.schema().width(), |i, k| {
        values[(i + i / values.len() * k) % values.len()]
    })
}

/// The model that bytes are, or the kind of the refusal.
fn loaded(bytes: &[u8]) -> Result<Result<Model, String>, String> {
    match Model::from_bytes(bytes) {
        Ok(model) => Ok(Ok(model)),
        Err(error) => refused(&error).map(Err),
    }
}

fn kind_of_model(model: &Model) -> String {
    format!(
        "{} x {}, {} classes, {} members, form {}, classifies {}, probabilities {}, rows {}",
        size(model.support_rows().len()),
        size(model.schema().width()),
        size(model.classes().len()),
        size(model.members().len()),
        without_input(&model.metric().form().to_string()),
        model.is_classifier(),
        model.temperature().is_some(),
        model.keeps_rows()
    )
}

fn model(bytes: &[u8]) -> Result<Outcome, String> {
    let model = match loaded(bytes)? {
        Ok(model) => model,
        Err(kind) => return Ok(Outcome { kind, allowance: 0 }),
    };
    let x = rows_for(&model);
    let mut kind = kind_of_model(&model);
    let mut look = |what: &str, found: svml::Result<Matrix>, bound: f64| match found {
        Ok(values) => ensure(values.as_slice().iter().all(|v| v.abs() <= bound), || {
            format!("{what}: numbers that are not finite, or too large")
        }),
        Err(error) => refused(&error).map(|refusal| {
            let _ = write!(kind, "[{what}: {refusal}]");
        }),
    };
    look("decision", model.decision(&x), f64::MAX)?;
    look("probabilities", model.probabilities(&x), 1.0 + 1e-12)?;
    // A row of 1e300 may be mapped to infinity, but never to nothing.
    let mapped = model.transform(&x).map(|z| {
        Matrix::from_fn(z.rows(), z.cols(), |i, j| if z[(i, j)].is_nan() { f64::NAN } else { 0.0 })
    });
    look("transform", mapped, 0.0)?;
    if let Ok(predicted) = model.predict(&x) {
        ensure(predicted.iter().all(|&class| class < model.classes().len()), || {
            "a class that there is not".to_owned()
        })?;
    }
    let (people, json) = svml_cli::described(&model);
    ensure(!people.contains(is_obeyed), || "control characters in what is shown".to_owned())?;
    ensure(serde_json::from_str::<serde_json::Value>(&json).is_ok(), || "no JSON".to_owned())?;
    let saved = model.to_bytes().map_err(|e| format!("it cannot be saved: {e}"))?;
    let again = Model::from_bytes(&saved).map_err(|e| format!("what is saved is refused: {e}"))?;
    let same = again.to_bytes().is_ok_and(|bytes| bytes == saved);
    ensure(same, || "saved twice, it is another file".to_owned())?;
    Ok(Outcome { kind, allowance: 0 })
}

/// A picture that can be drawn is an SVG without what is no number.
fn drawn(what: &str, picture: &Picture) -> Result<(), String> {
    let svg = picture.svg();
    ensure(svg.trim_end().ends_with("</svg>"), || format!("{what}: no SVG"))?;
    let numbers = svg.split('"').filter(|part| part.starts_with(['N', 'i', '-']));
    let mut bad = numbers.filter(|part| {
        part.split([' ', ',']).any(|number| ["NaN", "inf", "-inf"].contains(&number))
    });
    ensure(bad.next().is_none(), || format!("{what}: coordinates that are no numbers"))
}

/// Columns up to which everything is drawn: a page takes time that grows with their square.
const FEW_COLUMNS: usize = 60;

fn uses(bytes: &[u8]) -> Result<Outcome, String> {
    let model = match loaded(bytes)? {
        Ok(model) if model.schema().width() <= FEW_COLUMNS => model,
        Ok(_) => return Ok(Outcome { kind: "wide".to_owned(), allowance: 0 }),
        Err(kind) => return Ok(Outcome { kind, allowance: 0 }),
    };
    let x = rows_for(&model);
    let labels: Vec<String> = model.classes().iter().cycle().take(x.rows()).cloned().collect();
    let mut kind = kind_of_model(&model);
    let mut made = |what: &str, found: svml::Result<()>| match found {
        Ok(()) => Ok(()),
        Err(error) => refused(&error).map(|refusal| {
            let _ = write!(kind, "[{what}: {refusal}]");
        }),
    };
    use svml_export::{Input as From, Output};
    for output in [Output::Model, Output::Map] {
        made("c", svml_export::c(&model, output).map(drop))?;
        made("js", svml_export::js(&model, output).map(drop))?;
        for input in [From::Features, From::Columns] {
            made("onnx", svml_export::onnx(&model, input, output).map(drop))?;
        }
    }
    drawn("metric", &MetricMatrix::new(&model).draw("M"))?;
    drawn("relevance", &Relevance::new(&model).draw("R"))?;
    if let Some(trace) = Trace::new(&model) {
        drawn("trace", &trace.draw("T"))?;
    }
    match Map::new(&model, &x, Some(&labels)) {
        Ok(map) => drawn("map", &map.draw("\u{1b}<"))?,
        Err(error) => made("map", Err(error))?,
    }
    match Waterfall::new(&model, x.row(1), Some(x.row(2)), 8) {
        Ok(figure) => drawn("waterfall", &figure.draw("W"))?,
        Err(error) => made("waterfall", Err(error))?,
    }
    if model.is_classifier() {
        match Dependence::new(&model, &x, 0, 0) {
            Ok(Some(figure)) => drawn("dependence", &figure.draw("D"))?,
            Ok(None) => {}
            Err(error) => made("dependence", Err(error))?,
        }
    }
    match model.explain(&x, None) {
        Ok(why) => {
            let mut numbers =
                why.contributions.as_slice().iter().chain(&why.output).chain(&why.base);
            ensure(numbers.all(|v| v.is_finite()), || {
                "contributions that are not finite".to_owned()
            })?;
        }
        Err(error) => made("explain", Err(error))?,
    }
    if model.keeps_rows() {
        made("alike", model.alike(&x, 3).map(drop))?;
    }
    match svml_report::page(&model, &x, &labels, "<script>") {
        Ok(page) => {
            ensure(page.contains("</html>") && !page.contains("<script></title>"), || {
                "a page that is cut off, or that a title breaks".to_owned()
            })?;
        }
        Err(error) => made("page", Err(error))?,
    }
    Ok(Outcome { kind, allowance: 64 << 20 })
}

fn export(bytes: &[u8]) -> Result<Outcome, String> {
    let model = match loaded(bytes)? {
        Ok(model) => model,
        Err(kind) => return Ok(Outcome { kind, allowance: 0 }),
    };
    let mut kind = kind_of_model(&model);
    let exported = match model.to_libsvm(true) {
        Ok(exported) => exported,
        Err(error) => {
            let _ = write!(kind, "[{}]", refused(&error)?);
            return Ok(Outcome { kind, allowance: 0 });
        }
    };
    let x = Matrix::from_fn(4, model.schema().width(), |i, k| (i as f64 - 1.5) * (k as f64 - 1.0));
    let (z, decision) = match (model.transform(&x), model.decision(&x)) {
        (Ok(z), Ok(decision)) => (z, decision),
        (Err(error), _) | (_, Err(error)) => {
            let _ = write!(kind, "[{}]", refused(&error)?);
            return Ok(Outcome { kind, allowance: 0 });
        }
    };
    for row in 0..z.rows() {
        let values = libsvm_values(&exported.text, z.row(row))
            .ok_or("the LIBSVM model cannot be read by LIBSVM's rules")?;
        let LibsvmValues { pairs, scale, largest } = values;
        // Distances are rounded to the square of the largest coordinate, which a hostile mean can make as large as it likes.
        let rounding = 1e-14 * largest * largest;
        // Several classes vote; of two the value is the decision.
        if let ([value], 2, 0.0..=1e-4) = (pairs.as_slice(), model.classes().len(), rounding) {
            let ours = decision[(row, 0)];
            ensure((value - ours).abs() <= (1e-12 + rounding) * scale.max(1e-300), || {
                format!("LIBSVM's rule gives {value:e} where the model has {ours:e}")
            })?;
        }
    }
    if let Some(range) = &exported.range {
        let lines = range.lines().skip(2);
        let fits = |line: &str| {
            let numbers: Vec<f64> = line.split(' ').filter_map(|v| v.parse().ok()).collect();
            numbers.len() == 3 && numbers.iter().all(|v| v.is_finite())
        };
        ensure(lines.clone().all(fits) && lines.count() == x.cols(), || {
            "a range file that svm-scale cannot read".to_owned()
        })?;
    }
    Ok(Outcome { kind, allowance: 0 })
}

/// What LIBSVM computes from the text of a model for a mapped row, by its own rules.
struct LibsvmValues {
    /// One value for each pair of classes.
    pairs: Vec<f64>,
    /// The size of what is summed up.
    scale: f64,
    /// The largest coordinate of the row and the support vectors.
    largest: f64,
}

/// Nothing, if LIBSVM could not read the text.
fn libsvm_values(text: &str, z: &[f64]) -> Option<LibsvmValues> {
    let (header, vectors) = text.split_once("SV\n")?;
    let numbers = |name: &str| -> Option<Vec<f64>> {
        let line = header.lines().find(|line| line.starts_with(name))?;
        line.split(' ').skip(1).map(|v| v.parse().ok()).collect()
    };
    let (rho, counts) = (numbers("rho")?, numbers("nr_sv")?);
    let classes = counts.len();
    let mut rows: Vec<(Vec<f64>, f64)> = Vec::new();
    let mut largest = z.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    for line in vectors.lines() {
        let mut parts = line.split(' ').filter(|part| !part.is_empty());
        let coefficients: Vec<f64> =
            parts.by_ref().take(classes - 1).map(|v| v.parse().ok()).collect::<Option<_>>()?;
        let mut support = vec![0.0_f64; z.len()];
        for entry in parts {
            let (index, value) = entry.split_once(':')?;
            *support.get_mut(index.parse::<usize>().ok()?.checked_sub(1)?)? = value.parse().ok()?;
        }
        largest = support.iter().fold(largest, |most, v| most.max(v.abs()));
        let distance: f64 = support.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
        rows.push((coefficients, (-distance).exp()));
    }
    let total: f64 = counts.iter().sum();
    if rows.len() != total as usize || rho.len() != classes * (classes - 1) / 2 {
        return None;
    }
    let start = |class: usize| counts[..class].iter().sum::<f64>() as usize;
    let sum = |class: usize, slot: usize| -> f64 {
        rows[start(class)..start(class + 1)].iter().map(|(c, k)| c[slot] * k).sum()
    };
    let (mut values, mut pair) = (Vec::new(), 0);
    for i in 0..classes {
        for j in i + 1..classes {
            values.push(sum(i, j - 1) + sum(j, i) - rho[pair]);
            pair += 1;
        }
    }
    let scale = rows.iter().flat_map(|(c, k)| c.iter().map(move |c| (c * k).abs())).sum::<f64>()
        + rho.iter().map(|v| v.abs()).sum::<f64>();
    Some(LibsvmValues { pairs: values, scale, largest })
}

/// Steps after which a fit is asked to end, and, for those that take none, its time.
const STEPS: usize = 3;
const FIT: Duration = Duration::from_millis(300);

fn parameters(bytes: &[u8]) -> Result<Outcome, String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(Outcome { kind: "no text".to_owned(), allowance: 0 });
    };
    let mut kind = String::new();
    let mut methods: Vec<Method> = Vec::new();
    match serde_json::from_str::<Method>(text) {
        Ok(method) => methods.push(method),
        // The command and Python say it in a message of their own.
        Err(error) => {
            let _ = write!(kind, "[{}]", without_input(&error.to_string()));
        }
    }
    match text.trim().parse::<Method>() {
        Ok(method) => methods.push(method),
        Err(error) => {
            let _ = write!(kind, "[{}]", refused(&error)?);
        }
    }
    // As --set does, and as Python does.
    let mut method = Method::default();
    for line in text.lines().take(20) {
        let Some((name, value)) = line.split_once('=') else { continue };
        if let Err(error) = method.set(name.trim(), value.trim()) {
            let _ = write!(kind, "[{}]", refused(&error)?);
        }
    }
    if method != Method::default() {
        methods.push(method);
    }
    if let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(text) {
        let mut method = Method::default();
        for (name, value) in fields.iter().take(20) {
            if let Err(error) = method.set_json(name, value) {
                let _ = write!(kind, "[{}]", refused(&error)?);
            }
        }
        methods.push(method);
    }
    let options = serde_json::from_str::<ReadOptions>(text).is_ok();
    let _ = write!(kind, "[options {options}]");
    for method in &methods {
        let json = serde_json::to_string(method).map_err(|e| format!("no JSON: {e}"))?;
        let again: Method = serde_json::from_str(&json)
            .map_err(|e| format!("the JSON of a method is refused: {e}: {}", start_of(&json)))?;
        ensure(again == *method, || format!("the JSON is of another method: {}", start_of(&json)))?;
        let _ = write!(kind, "[{}]", fitted(method)?);
    }
    Ok(Outcome { kind, allowance: 0 })
}

/// A fit with parameters that were accepted: a model, or a refusal in words.
fn fitted(method: &Method) -> Result<String, String> {
    let generator = Generator { rows: 24, informative: 1, noise: 1, ..Generator::default() };
    let data = generator.generate().map_err(|e| e.to_string())?.data;
    let mut steps = 0;
    let mut run = Run::new().time_limit(FIT).observer(|_| {
        steps += 1;
        if steps < STEPS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match Model::fit_with(&data, method, &mut run) {
        Ok(model) => {
            let bytes = model.to_bytes().map_err(|e| format!("it cannot be saved: {e}"))?;
            Model::from_bytes(&bytes).map_err(|e| format!("what is saved is refused: {e}"))?;
            Ok("fitted".to_owned())
        }
        // It depends on the computer whether this comes before the first result.
        Err(Error::Interrupted) => Ok("fitted".to_owned()),
        Err(error) => refused(&error),
    }
}

fn arguments(bytes: &[u8]) -> Result<Outcome, String> {
    let text = String::from_utf8_lossy(bytes);
    // A file of parameters would be opened whatever its name.
    let names_a_file = |argument: &&str| argument.starts_with("--params");
    let own = text.lines().filter(|argument| !names_a_file(argument)).take(40);
    let all = std::iter::once("svml").chain(own).map(Into::into);
    let kind = match svml_cli::check(all) {
        Ok(()) => {
            let command = text.lines().next().unwrap_or_default();
            format!("ok {}", command.chars().take(12).collect::<String>())
        }
        // What the user has typed is repeated as it is.
        Err(message) => without_input(message.trim_start()),
    };
    Ok(Outcome { kind, allowance: 0 })
}
