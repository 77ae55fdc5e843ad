//! The model file: format in docs/model-format.md.
//!
//! A file is untrusted input: every length is checked against what is there before
//! anything is allocated, the checksum covers all bytes, every number must be finite.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::neighbours::Neighbours;
use super::{Classifier, Model, Report, SvmClassifier};
use crate::data::{Scaler, Schema};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::method::Method;
use crate::metric::{Form, Metric};
use crate::multiclass::PairwiseSvms;

/// First bytes of a model file: a name, and bytes that a text-mode transfer would alter.
const MAGIC: [u8; 8] = *b"SVML\r\n\x1a\n";
/// Version of the format that is written: the first that has what the model needs, so that older
/// programs read what they can. Versions 1 (two classes, no probabilities) and 2 are read as well; a file
/// of a version after [`LATEST`] is refused.
const VERSION: u32 = 3;
/// The version of a metric without a classifier.
const METRIC_VERSION: u32 = 4;
/// The version of nearest neighbours.
const NEIGHBOURS_VERSION: u32 = 5;
/// The latest version.
const LATEST: u32 = NEIGHBOURS_VERSION;
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

pub(super) fn to_bytes(model: &Model) -> Result<Vec<u8>> {
    let svms = model.svms();
    let header = Header {
        schema: model.schema.clone(),
        classes: model.classes.clone(),
        scaler: model.scaler.clone(),
        form: model.metric.form(),
        cost: svms.map_or(1.0, |svms| svms.cost),
        bias: model.bias().to_vec(),
        support_rows: model.support_rows().to_vec(),
        support_counts: match &model.classifier {
            Classifier::None => vec![0; model.classes.len()],
            _ => model.support_counts().to_vec(),
        },
        temperature: svms.and_then(|svms| svms.temperature),
        report: model.report.clone(),
    };
    let header = serde_json::to_vec(&header)
        .map_err(|e| Error::ModelFile(format!("the header cannot be written: {e}")))?;
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    let (version, last): (u32, &[f64]) = match &model.classifier {
        Classifier::None => (METRIC_VERSION, &[]),
        Classifier::Svms(svms) => (VERSION, svms.pairwise.beta.as_slice()),
        Classifier::Neighbours(neighbours) => (NEIGHBOURS_VERSION, &neighbours.weight),
    };
    bytes.extend(version.to_le_bytes());
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(&header);
    for array in [model.metric.values(), model.support_vectors().as_slice(), last] {
        array.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    Ok(bytes)
}

pub(super) fn from_bytes(bytes: &[u8]) -> Result<Model> {
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
    // The method tells what the arrays are.
    let kind = match &header.report.method {
        Method::Metric(_) => Kind::Metric,
        Method::Neighbours { knn, .. } => Kind::Neighbours(knn.k),
        _ => Kind::Svms,
    };
    let pair_count = match kind {
        Kind::Metric | Kind::Neighbours(_) => Some(0),
        Kind::Svms => classes.checked_mul(classes - 1).map(|count| count / 2),
    };
    if pair_count != Some(header.bias.len()) {
        return Err(bad(format!("{} offsets b for {classes} classes", header.bias.len())));
    }
    if matches!(kind, Kind::Metric) && !header.support_rows.is_empty() {
        return Err(bad("support vectors beside a metric without a classifier".to_owned()));
    }
    if matches!(kind, Kind::Neighbours(0)) {
        return Err(bad("no neighbours that vote".to_owned()));
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
    let per_row = if matches!(kind, Kind::Neighbours(_)) { 1 } else { classes - 1 };
    let expected = (d.checked_mul(n))
        .zip(per_row.checked_mul(n))
        .and_then(|(support, last)| support.checked_add(last))
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
    let (support, last) = rest.split_at(n * d);
    let metric = Metric::new(header.form, d, metric.to_vec())?;
    let support = Matrix::new(n, d, support.to_vec())?;
    let classifier = classifier(version, kind, &header, &metric, support, last)?;
    let Header { schema, classes, scaler, report, .. } = header;
    Ok(Model { schema, classes, scaler, metric, classifier, report })
}

/// What a file holds besides the metric.
#[derive(Clone, Copy)]
enum Kind {
    Metric,
    Svms,
    /// With the number that vote.
    Neighbours(usize),
}

/// Builds the classifier; `last` is beta of SVMs, or the weights of neighbours.
fn classifier(
    version: u32,
    kind: Kind,
    header: &Header,
    metric: &Metric,
    support: Matrix,
    last: &[f64],
) -> Result<Classifier> {
    let bad = |message: String| Error::ModelFile(message);
    let (classes, n) = (header.classes.len(), support.rows());
    let check_counts = |counts: &[usize]| match counts.len() == classes && sum(counts) == Some(n) {
        true => Ok(()),
        false => {
            Err(bad(format!("support_counts {counts:?} for {n} vectors of {classes} classes")))
        }
    };
    let map = |support: &Matrix| {
        let mapped = metric.transform(&header.scaler.apply(support));
        match mapped.as_slice().iter().all(|v| v.is_finite()) {
            true => Ok(mapped),
            false => Err(bad("its support vectors overflow under its metric".to_owned())),
        }
    };
    match kind {
        Kind::Metric => {
            check_counts(&header.support_counts)?;
            Ok(Classifier::None)
        }
        Kind::Neighbours(k) => {
            check_counts(&header.support_counts)?;
            let mapped = map(&support)?;
            let (rows, counts) = (header.support_rows.clone(), header.support_counts.clone());
            Neighbours::new(k, rows, counts, last.to_vec(), support, &mapped)
                .map(Classifier::Neighbours)
                .map_err(|error| bad(format!("its neighbours: {error}")))
        }
        Kind::Svms => {
            // The kernel lies between 0 and 1, so no decision value can be larger than this sum.
            let largest = last.iter().chain(&header.bias).map(|b| b.abs()).sum::<f64>();
            if !largest.is_finite() {
                return Err(bad("its coefficients overflow".to_owned()));
            }
            let mut pairwise = PairwiseSvms {
                support: header.support_rows.clone(),
                counts: header.support_counts.clone(),
                beta: Matrix::new(classes - 1, n, last.to_vec())?,
                bias: header.bias.clone(),
            };
            let support = match version {
                1 => sort_by_class(&mut pairwise, &support),
                _ => support,
            };
            check_counts(&pairwise.counts)?;
            let mapped = map(&support)?;
            let (cost, temperature) = (header.cost, header.temperature);
            Ok(Classifier::Svms(SvmClassifier { cost, pairwise, support, mapped, temperature }))
        }
    }
}

fn sum(counts: &[usize]) -> Option<usize> {
    counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count))
}

/// Version 1 kept the support vectors in no order of class; the sign of beta tells the class.
fn sort_by_class(pairwise: &mut PairwiseSvms, support: &Matrix) -> Matrix {
    let beta = pairwise.beta.row(0).to_vec();
    let (second, mut order): (Vec<usize>, Vec<usize>) =
        (0..beta.len()).partition(|&i| beta[i] > 0.0);
    pairwise.counts = vec![order.len(), second.len()];
    order.extend(second);
    pairwise.support = order.iter().map(|&i| pairwise.support[i]).collect();
    pairwise.beta = Matrix::from_fn(1, order.len(), |_, i| beta[order[i]]);
    support.select_rows(&order)
}

/// The first N bytes; zeros where there are fewer, which callers rule out.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

pub(super) fn load(path: &Path) -> Result<Model> {
    let bytes = fs::read(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    from_bytes(&bytes)
}

pub(super) fn save(model: &Model, path: &Path) -> Result<()> {
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
