//! The model file: format in docs/model-format.md.
//!
//! A file is read as if it came from an enemy: every length is checked against what is there before
//! anything is allocated, the checksum covers all bytes, every number must be finite.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::data::{Scaler, Schema};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::metric::{Form, Metric};
use crate::model::{Method, Model, Report};
use crate::multiclass::Ensemble;

/// First bytes of a model file: a name, and bytes that a text-mode transfer would alter.
const MAGIC: [u8; 8] = *b"SVML\r\n\x1a\n";
/// Version of the format that is written: the first that has what the model needs, so that older
/// programs read what they can. Versions 1 (two classes, no probabilities) and 2 are read as well; a file
/// of a version after [`LATEST`] is refused.
const VERSION: u32 = 3;
/// The version of a metric without a machine.
const LATEST: u32 = 4;
/// Magic, version, header length.
const PREFIX: usize = 8 + 4 + 8;
/// The checksum at the end.
const SUFFIX: usize = 4;

/// Everything but the large arrays, as JSON.
#[derive(Serialize, Deserialize)]
struct Header {
    schema: Schema,
    classes: Vec<String>,
    scaler: Scaler,
    form: Form,
    cost: f64,
    #[serde(deserialize_with = "one_or_many")]
    bias: Vec<f64>,
    support_rows: Vec<usize>,
    /// Absent in version 1.
    #[serde(default)]
    support_counts: Vec<usize>,
    /// Absent in version 1.
    #[serde(default)]
    temperature: Option<f64>,
    report: Report,
}

/// In version 1 the offset is a number, later a list.
fn one_or_many<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> std::result::Result<Vec<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(f64),
        Many(Vec<f64>),
    }
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(value) => vec![value],
        OneOrMany::Many(values) => values,
    })
}

pub(crate) fn to_bytes(model: &Model) -> Result<Vec<u8>> {
    let header = Header {
        schema: model.schema.clone(),
        classes: model.classes.clone(),
        scaler: model.scaler.clone(),
        form: model.metric.form(),
        cost: model.cost,
        bias: model.ensemble.bias.clone(),
        support_rows: model.ensemble.support.clone(),
        support_counts: model.ensemble.counts.clone(),
        temperature: model.temperature,
        report: model.report.clone(),
    };
    let header = serde_json::to_vec(&header)
        .map_err(|e| Error::ModelFile(format!("the header cannot be written: {e}")))?;
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    let version = if model.has_machine() { VERSION } else { LATEST };
    bytes.extend(version.to_le_bytes());
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(&header);
    for array in [model.metric.values(), model.support.as_slice(), model.ensemble.beta.as_slice()] {
        array.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    Ok(bytes)
}

pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Model> {
    let bad = |message: String| Error::ModelFile(message);
    if bytes.len() < MAGIC.len() || bytes[..MAGIC.len()] != MAGIC {
        return Err(bad("it does not begin as one; was it written by svml?".to_owned()));
    }
    let (body, checksum) = bytes
        .split_last_chunk::<SUFFIX>()
        .filter(|(body, _)| body.len() >= PREFIX)
        .ok_or_else(|| bad(format!("{} bytes are too few; it is cut off", bytes.len())))?;
    let version = u32::from_le_bytes(array(&body[8..12]));
    if !(1..=LATEST).contains(&version) {
        return Err(bad(format!(
            "its format is version {version}; this program reads up to version {LATEST}: update svml"
        )));
    }
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(bad(
            "its checksum is wrong: it was cut off or altered; copy it again".to_owned()
        ));
    }
    let header_len = u64::from_le_bytes(array(&body[12..PREFIX]));
    let rest = &body[PREFIX..];
    let header_len = usize::try_from(header_len)
        .ok()
        .filter(|len| *len <= rest.len())
        .ok_or_else(|| bad(format!("a header of {header_len} bytes in {}", rest.len())))?;
    let (header, arrays) = rest.split_at(header_len);
    let header: Header =
        serde_json::from_slice(header).map_err(|e| bad(format!("its header is wrong: {e}")))?;
    assemble(version, header, arrays)
}

/// Checks the parts against each other and builds the model.
fn assemble(version: u32, header: Header, arrays: &[u8]) -> Result<Model> {
    let bad = |message: String| Error::ModelFile(message);
    header.schema.validate()?;
    let d = header.schema.width();
    header.scaler.validate(d)?;
    let classes = header.classes.len();
    let distinct: std::collections::HashSet<&String> = header.classes.iter().collect();
    if classes < 2 || distinct.len() != classes {
        return Err(bad(format!(
            "it has classes {:?} where two or more are needed",
            header.classes
        )));
    }
    let alone = matches!(header.report.method, Method::Metric(_));
    let pair_count = match alone {
        true => Some(0),
        false => classes.checked_mul(classes - 1).map(|count| count / 2),
    };
    if pair_count != Some(header.bias.len()) {
        return Err(bad(format!("{} offsets b for {classes} classes", header.bias.len())));
    }
    if alone && !header.support_rows.is_empty() {
        return Err(bad("support vectors beside a metric without a machine".to_owned()));
    }
    let positive = |v: f64| v.is_finite() && v > 0.0;
    if !positive(header.cost) || !header.temperature.is_none_or(positive) {
        return Err(bad(format!("C = {}, temperature {:?}", header.cost, header.temperature)));
    }
    if let Form::Rank(r) = header.form
        && r > d
    {
        return Err(bad(format!("rank {r} above the number of features, {d}")));
    }
    let n = header.support_rows.len();
    if header.support_rows.iter().any(|row| *row >= header.report.rows) {
        return Err(bad(format!("a support row beyond the {} rows", header.report.rows)));
    }
    let steps = header.report.trace.len();
    if header.report.best >= steps.max(1) {
        return Err(bad(format!("best step {} of {steps}", header.report.best)));
    }
    // The product of sizes that the header names must be what is there.
    let expected = (d.checked_mul(n))
        .zip((classes - 1).checked_mul(n))
        .and_then(|(support, beta)| support.checked_add(beta))
        .and_then(|sum| sum.checked_add(header.form.len(d)));
    if !arrays.len().is_multiple_of(8) || expected != Some(arrays.len() / 8) {
        return Err(bad(format!(
            "{} bytes of arrays do not fit {n} support vectors with {d} features in {classes} classes",
            arrays.len()
        )));
    }
    let numbers: Vec<f64> =
        arrays.chunks_exact(8).map(|chunk| f64::from_le_bytes(array(chunk))).collect();
    if let Some(value) = numbers.iter().find(|v| !v.is_finite()) {
        return Err(bad(format!("an array holds {value}")));
    }
    let (metric, rest) = numbers.split_at(header.form.len(d));
    let (support, beta) = rest.split_at(n * d);
    // The kernel lies between 0 and 1, so no decision value can be larger than this sum.
    let largest = beta.iter().chain(&header.bias).map(|b| b.abs()).sum::<f64>();
    if !largest.is_finite() {
        return Err(bad("its coefficients overflow".to_owned()));
    }
    let metric = Metric::new(header.form, d, metric.to_vec())?;
    let support = Matrix::new(n, d, support.to_vec())?;
    let beta = Matrix::new(classes - 1, n, beta.to_vec())?;
    let mut ensemble = Ensemble {
        support: header.support_rows,
        counts: header.support_counts,
        beta,
        bias: header.bias,
    };
    let support = match version {
        1 => sort_by_class(&mut ensemble, &support),
        _ => support,
    };
    if ensemble.counts.len() != classes || sum(&ensemble.counts) != Some(n) {
        let counts = &ensemble.counts;
        return Err(bad(format!("support_counts {counts:?} for {n} vectors of {classes} classes")));
    }
    let mapped = metric.transform(&header.scaler.apply(&support));
    if mapped.as_slice().iter().any(|v| !v.is_finite()) {
        return Err(bad("its support vectors overflow under its metric".to_owned()));
    }
    Ok(Model {
        schema: header.schema,
        classes: header.classes,
        scaler: header.scaler,
        metric,
        cost: header.cost,
        ensemble,
        support,
        temperature: header.temperature,
        report: header.report,
        mapped,
    })
}

fn sum(counts: &[usize]) -> Option<usize> {
    counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count))
}

/// Version 1 kept the support vectors in no order of class; the sign of beta tells the class.
fn sort_by_class(ensemble: &mut Ensemble, support: &Matrix) -> Matrix {
    let beta = ensemble.beta.row(0).to_vec();
    let (second, mut order): (Vec<usize>, Vec<usize>) =
        (0..beta.len()).partition(|&i| beta[i] > 0.0);
    ensemble.counts = vec![order.len(), second.len()];
    order.extend(second);
    ensemble.support = order.iter().map(|&i| ensemble.support[i]).collect();
    ensemble.beta = Matrix::from_fn(1, order.len(), |_, i| beta[order[i]]);
    support.select_rows(&order)
}

/// The first N bytes; zeros where there are fewer, which callers rule out.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

pub(crate) fn load(path: &Path) -> Result<Model> {
    let bytes = fs::read(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    from_bytes(&bytes)
}

pub(crate) fn save(model: &Model, path: &Path) -> Result<()> {
    write_atomically(path, &to_bytes(model)?)
}

/// Writes `bytes` to a new file beside `path` and renames it at the end: `path` holds the old
/// content or all of the new, whatever happens. The permissions of an old file are kept.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let temporary = temporary_name(path);
    let written = File::options()
        .write(true)
        .create_new(true)
        .open(&temporary)
        .and_then(|mut file| {
            if let Ok(old) = fs::metadata(path) {
                file.set_permissions(old.permissions())?;
            }
            file.write_all(bytes).and_then(|()| file.sync_all())
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(failed)
}

/// A name in the same directory that no other process or thread uses.
fn temporary_name(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // Not made from the name of the file, which may already be as long as names can be.
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    path.with_file_name(format!(".svml.{process}.{count}.tmp"))
}
