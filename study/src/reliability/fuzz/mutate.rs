//! Where inputs come from: valid ones that are generated, and changes of those that are known.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::targets::BETWEEN;
use crate::reliability::scratch::Random;

/// Texts that readers may stumble over.
const TEXTS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "0.5",
    "1e300",
    "1e301",
    "-1e308",
    "1e309",
    "1e-320",
    "5e-324",
    "nan",
    "NaN",
    "inf",
    "-Infinity",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "1,5",
    "1.234,5",
    "1_000",
    "0x10",
    "1e",
    "+",
    "-",
    ".",
    "\"",
    "\"\"",
    "\"a\"b",
    "\"open",
    "'",
    "\u{feff}",
    "\0",
    "\r\n",
    "\r",
    "\n",
    "\n\n",
    "\t",
    " ",
    "  ",
    ",",
    ";",
    "|",
    ":",
    "#",
    "?",
    "NA",
    "null",
    "None",
    "true",
    "\u{e9}",
    "\u{1f600}",
    "\u{202e}",
    "\u{1b}[31m",
    "\u{7}",
    "\u{a0}",
    "\u{2028}",
    "{",
    "}",
    "[",
    "]",
    "[[[[[[[[",
    "{\"a\":",
    "=",
    "2024-01-31",
    "$12",
    "12%",
    "1:1",
    "0:1",
    "100000:1",
    "100001:1",
    "2:3 1:1",
    "qid:3",
    "x1",
    "class",
    "../../etc/passwd",
    "--",
    "-h",
    "%s%n",
    "\\",
    "\\n",
    "\u{fffd}",
];

/// Texts of arguments.
const ARGUMENTS: &[&str] = &[
    "train",
    "predict",
    "evaluate",
    "transform",
    "compare",
    "explain",
    "learning-curve",
    "report",
    "show",
    "parameters",
    "plot",
    "export",
    "data",
    "demo",
    "svm-train",
    "svm-predict",
    "completions",
    "man",
    "data.csv",
    "model.svml",
    "-o",
    "-",
    "--method",
    "svml",
    "euclidean",
    "nca:rank=2+knn:k=5",
    "itml+none",
    "svml:lambda=0.1,seed=3",
    "--methods",
    "svml,nca,euclidean:widths=[1,2]",
    "--form",
    "auto",
    "diagonal",
    "rank=2",
    "rank=0",
    "rank=99999999999",
    "sphere",
    "full",
    "--kernel",
    "laplacian",
    "exponential",
    "--criterion",
    "k_fold=2",
    "k_fold=0",
    "hold_out",
    "leave_one_out",
    "--paper",
    "--class-weight",
    "balanced",
    "a=1,b=2",
    "a=1e-300",
    "--seed",
    "--landmarks",
    "--exact",
    "--memory-limit",
    "4GiB",
    "--set",
    "lambda=0.1",
    "costs=[0.1,1]",
    "class_weight={\"a\":1}",
    "--time-limit",
    "1e300",
    "2e19",
    "--trace",
    "--json",
    "--target",
    "--groups",
    "--missing",
    "drop",
    "--categories",
    "onehot",
    "--drop",
    "a,b",
    "--only",
    "--use",
    "--format",
    "libsvm",
    "--delimiter",
    "tab",
    "\\t",
    "--header",
    "--no-header",
    "--text",
    "--quiet",
    "--threads",
    "4096",
    "--threshold",
    "cost=1:5",
    "f1",
    "--positive",
    "--keep",
    "all",
    "--kind",
    "map",
    "roc",
    "--class",
    "--to",
    "onnx",
    "--columns",
    "--splits",
    "--help",
    "--version",
    "-c",
    "-g",
    "-b",
    "-w1",
    "-v",
    "-q",
    "-e",
    "list",
    "fetch",
];

/// One change of bytes, or several.
pub fn mutated(target: &str, corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    if matches!(target, "model" | "uses" | "export")
        && !random.one_in(4)
        && let Some(file) = changed_model(&input, random)
    {
        return file;
    }
    let dictionary = if target == "arguments" { ARGUMENTS } else { TEXTS };
    for _ in 0..1 + random.below(4) {
        let at = random.below(input.len() + 1);
        match random.below(10) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 if at < input.len() => input[at] = random.bits() as u8,
            2 => input.truncate(at),
            3 => drop(input.drain(..at)),
            4 => {
                let end = at + random.below(16).min(input.len() - at);
                input.drain(at..end);
            }
            5 => {
                // A part of another.
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len() + 1);
                let part = &other[from..from + random.below(64).min(other.len() - from)];
                input.splice(at..at, part.iter().copied());
            }
            6 => {
                // A part once more, sometimes often.
                let end = at + random.below(24).min(input.len() - at);
                let part = input[at..end].to_vec();
                let times = if random.one_in(20) { 200 } else { 1 + random.below(3) };
                input.splice(at..at, part.repeat(times));
            }
            7 => swap_lines(&mut input, random),
            _ => {
                // A cell, a word or a line is replaced, or the text is put between.
                let text = match random.one_in(8) {
                    true => random.pick(dictionary).repeat(1 + random.below(200)),
                    false => random.pick(dictionary).to_owned(),
                };
                let separates = |b: &u8| b" ,;:\t\n\"=[]{}".contains(b);
                let start = input[..at].iter().rposition(separates).map_or(0, |p| p + 1);
                let end = input[at..].iter().position(separates).map_or(input.len(), |p| at + p);
                let range = if random.one_in(2) { start..end } else { at..at };
                input.splice(range, text.bytes());
            }
        }
    }
    // Long inputs are slow to try and say little.
    input.truncate(1 << 16);
    input
}

fn swap_lines(input: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<Vec<u8>> = input.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
    lines.swap(a, b);
    *input = lines.join(&b'\n');
}

/// A valid input of a target.
pub fn generated(target: &str, random: &mut Random) -> Option<Vec<u8>> {
    Some(match target {
        "csv" => table(random),
        "libsvm" => libsvm(random),
        "npy" => npy(random),
        "rows" => {
            let (table, new) = (table(random), table(random));
            let new = if random.one_in(2) { table.clone() } else { new };
            [table, BETWEEN.to_vec(), new].concat()
        }
        "parameters" => parameters(random),
        "arguments" => {
            let count = 1 + random.below(10);
            let words: Vec<&str> = (0..count).map(|_| random.pick(ARGUMENTS)).collect();
            words.join("\n").into_bytes()
        }
        _ => return None,
    })
}

fn table(random: &mut Random) -> Vec<u8> {
    let (rows, columns) = (1 + random.below(45), 1 + random.below(5));
    let delimiter = random.pick(&[",", ";", "\t", "  ", " , "]);
    let end = random.pick(&["\n", "\n", "\r\n", "\r"]);
    let kinds: Vec<usize> = (0..columns).map(|_| random.below(9)).collect();
    let gaps = random.one_in(3);
    let mut text = String::new();
    if random.one_in(5) {
        text.push('\u{feff}');
    }
    if random.one_in(2) {
        let names: Vec<String> = (0..=columns).map(|j| format!("c{j}")).collect();
        text += &(names.join(delimiter) + end);
    }
    for i in 0..rows {
        for kind in &kinds {
            let value = random.below(1000);
            let _ = match kind {
                _ if gaps && random.one_in(9) => write!(text, "{}", random.pick(&["?", "", "NA"])),
                0 => write!(text, "{}", i + 1),
                1 => write!(text, "{}", random.pick(&["red", "blue", "\"dark red\"", "-"])),
                2 => write!(text, "2024-{:02}-{:02}", 1 + value % 12, 1 + value % 28),
                3 => write!(text, "name{value}"),
                4 => write!(text, "{},{}", value % 10, value % 7),
                5 => write!(text, "\"{}.{}\"", value % 10, value % 7),
                6 => write!(text, "{}", random.pick(&["0", "-0", "1", "1e300"])),
                _ => write!(text, "{}", (value as f64 - 500.0) / 100.0),
            };
            text += delimiter;
        }
        let _ = write!(text, "{}{end}", random.pick(&["a", "b", "1", "2.0"]));
    }
    text.into_bytes()
}

fn libsvm(random: &mut Random) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..1 + random.below(30) {
        let _ = write!(text, "{}", random.pick(&["1", "-1", "2", "+1", "1.0"]));
        let mut index = 0;
        for _ in 0..random.below(6) {
            let far = if random.one_in(50) { 3000 } else { 3 };
            index += 1 + random.below(far);
            let _ = write!(text, " {index}:{}", (random.below(1000) as f64 - 500.0) / 100.0);
        }
        text += random.pick(&["\n", "\n", "\r\n", " # note\n"]);
    }
    text.into_bytes()
}

fn npy(random: &mut Random) -> Vec<u8> {
    let (rows, columns) = (1 + random.below(20), 1 + random.below(4));
    let (kind, bytes) =
        [("<f8", 8), ("<f4", 4), ("|i1", 1), ("|b1", 1), ("<i8", 8), ("<u2", 2)][random.below(6)];
    let order = random.pick(&["True", "False"]);
    let mut header =
        format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': ({rows}, {columns}), }}");
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    for _ in 0..rows * columns {
        let value = random.below(3);
        match kind {
            "<f8" => file.extend((value as f64).to_le_bytes()),
            "<f4" => file.extend((value as f32).to_le_bytes()),
            _ => file.extend((0..bytes).map(|k| if k == 0 { value as u8 } else { 0 })),
        }
    }
    file
}

fn parameters(random: &mut Random) -> Vec<u8> {
    let names = [
        "form",
        "kernel",
        "criterion",
        "lambda",
        "seed",
        "landmarks",
        "initial_cost",
        "learn_cost",
        "class_weight",
        "max_iterations",
        "folds",
        "widths",
        "costs",
        "rank",
        "k",
        "gamma",
        "cost",
        "memory_limit",
        "surrogate",
        "cross_fit",
        "tolerance",
    ];
    let value = |random: &mut Random| match random.below(8) {
        0 => json!(random.below(10)),
        1 => json!(random.bits()),
        2 => json!((random.below(1000) as f64) / 100.0),
        3 => json!(random.one_in(2)),
        4 => json!([1, 2.5]),
        5 => json!({ "a": 1.0 }),
        6 => Value::Null,
        _ => json!(random.pick(&[
            "auto", "diagonal", "rank=2", "gaussian", "k_fold=3", "hold_out", "balanced", "exact",
        ])),
    };
    let mut fields = Map::new();
    for _ in 0..1 + random.below(4) {
        fields.insert(random.pick(&names).to_owned(), value(random));
    }
    match random.below(4) {
        0 => json!({ random.pick(&["svml", "grid_search", "fixed", "neighbours", "metric"]): fields })
            .to_string(),
        1 => fields.iter().fold(String::new(), |text, (name, value)| text + name + "=" + &value.to_string() + "\n"),
        2 => {
            let learner = random.pick(&["svml", "nca", "lmnn", "itml", "pca", "euclidean", "knn", "fixed"]);
            let pairs: Vec<String> = fields.iter().map(|(n, v)| format!("{n}={v}")).collect();
            format!("{learner}:{}{}", pairs.join(","), random.pick(&["", "+knn:k=3", "+none"]))
        }
        _ => Value::Object(fields).to_string(),
    }
    .into_bytes()
}

/// Magic, version, length of the header.
const PREFIX: usize = 20;

/// A model file whose header or arrays are changed, with the right lengths and checksum.
fn changed_model(file: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let length = u64::from_le_bytes(file.get(12..PREFIX)?.try_into().ok()?);
    let length = usize::try_from(length).ok()?;
    let header = file.get(PREFIX..PREFIX.checked_add(length)?)?;
    let mut header: Value = serde_json::from_slice(header).ok()?;
    let mut arrays = file.get(PREFIX + length..file.len().checked_sub(4)?)?.to_vec();
    let mut version = u32::from_le_bytes(file.get(8..12)?.try_into().ok()?);
    for _ in 0..1 + random.below(3) {
        match random.below(8) {
            0 => version = random.below(9) as u32,
            1 | 2 if arrays.len() >= 8 => {
                let at = 8 * random.below(arrays.len() / 8);
                arrays[at..at + 8].copy_from_slice(&edge(random).to_le_bytes());
            }
            3 => {
                let numbers = arrays.len() / 8;
                match random.one_in(2) {
                    true => arrays.truncate(8 * random.below(numbers + 1)),
                    false => arrays.extend([0; 8].repeat(1 + random.below(8))),
                }
            }
            _ => change_value(&mut header, random, 0),
        }
    }
    let header = serde_json::to_vec(&header).ok()?;
    let mut bytes = file[..8].to_vec();
    bytes.extend(version.to_le_bytes());
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header);
    bytes.extend(arrays);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    Some(bytes)
}

fn edge(random: &mut Random) -> f64 {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        1e-320,
        1e-150,
        1e150,
        -1e150,
        1e300,
        f64::MAX,
        f64::MIN,
        f64::NAN,
        f64::INFINITY,
        f64::EPSILON,
        700.0,
        -745.0,
    ];
    edges[random.below(edges.len())]
}

/// Changes a value somewhere in JSON.
fn change_value(value: &mut Value, random: &mut Random, depth: usize) {
    let deeper = depth < 8 && !random.one_in(6);
    match value {
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let name = fields.keys().nth(random.below(fields.len())).cloned().unwrap_or_default();
            match random.below(14) {
                0 => drop(fields.remove(&name)),
                1 => drop(fields.insert("unknown".to_owned(), json!([1, "a"]))),
                _ => fields.iter_mut().filter(|(n, _)| **n == name).for_each(|(_, v)| {
                    change_value(v, random, depth + 1);
                }),
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(8) {
                0 => drop(items.remove(at)),
                1 => items.insert(at, items[at].clone()),
                2 => {
                    let other = random.below(items.len());
                    items.swap(at, other);
                }
                _ => change_value(&mut items[at], random, depth + 1),
            }
        }
        Value::Number(_) if !random.one_in(4) => {
            *value = match random.below(8) {
                0 => json!(-1),
                1 => json!(i32::MAX),
                2 => json!(1_u64 << 63),
                3 => json!(random.below(10)),
                4 => json!(u64::MAX),
                _ => json!(edge(random)),
            };
        }
        Value::String(text) if !random.one_in(4) => {
            *text = match random.below(4) {
                0 => random.pick(TEXTS).repeat(1 + random.below(50)),
                1 => random
                    .pick(&["auto", "full", "sphere", "diagonal", "laplacian", "impute", "date"])
                    .to_owned(),
                _ => random.pick(TEXTS).to_owned(),
            };
        }
        _ => {
            *value = match random.below(7) {
                0 => Value::Null,
                1 => json!([]),
                2 => json!({}),
                3 => json!(true),
                4 => json!(random.pick(TEXTS)),
                5 => json!([0.5, 2]),
                _ => json!(edge(random)),
            };
        }
    }
}
