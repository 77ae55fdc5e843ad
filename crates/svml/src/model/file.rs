//! The model file: format in docs/model-format.md.
//!
//! A file is untrusted input: every length is checked against what is there before
//! anything is allocated, the checksum covers all bytes, every number must be finite.

use std::fmt;
use std::io::Read;
use std::path::Path;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::explain::KeptRows;
use super::neighbours::Neighbours;
use super::sparse_rows;
use super::{Classifier, Member, Model, Report, SvmClassifier};
use crate::data::prepare::MAX_CLASSES;
use crate::data::{LIMIT, MAX_INPUT_BYTES, Scaler, Schema, listed};
use crate::device::Device;
use crate::error::{Error, Remedy, Result, is_control};
use crate::files;
use crate::linalg::Matrix;
use crate::memory;
use crate::method::Method;
use crate::metric::{Form, Kernel, Metric};
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
/// The version of members with kernels and weights of their own.
const MEMBERS_VERSION: u32 = 6;
/// The version of one of the others with further parts, which programs that do not know them must not leave out: the
/// weights of classes that probabilities are corrected for, and training rows that are kept.
const EXTRAS_VERSION: u32 = 7;
/// The version of one of the others whose rows are mostly the same: see `sparse_rows`.
const SPARSE_VERSION: u32 = 8;
/// The latest version.
const LATEST: u32 = SPARSE_VERSION;
/// Most members, and most columns of members whose mean has a matrix of columns times columns: a file of a few kilobytes
/// must not ask for gigabytes.
const MOST_MEMBERS: usize = 100;
const MOST_COLUMNS_OF_MEAN: usize = 1000;
/// Most bytes of a header, which has a few for each row and some hundreds for each feature.
const LONGEST_HEADER: u64 = 1 << 28;
/// How many bytes of memory a byte of a header becomes at most, while lists grow as they are read.
const IN_MEMORY: usize = 4;
/// Most characters of a message, and most items of a list in one: a file of a stranger must not fill the screen.
const LONGEST_MESSAGE: usize = 400;
const SHOWN: usize = 8;
/// Magic, version, header length.
const PREFIX: usize = 8 + 4 + 8;
/// The checksum at the end.
const SUFFIX: usize = 4;

/// Everything but the large arrays, as JSON.
#[derive(Serialize, Deserialize)]
struct Header {
    schema: Schema,
    #[serde(deserialize_with = "few_classes")]
    classes: Vec<String>,
    scaler: Scaler,
    /// Of the metric; of the first member from version 6 on, as C and the offsets.
    form: Form,
    cost: f64,
    #[serde(deserialize_with = "one_or_many")]
    bias: Vec<f64>,
    /// From version 6 on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    members: Vec<StoredMember>,
    support_rows: Vec<usize>,
    /// Absent in version 1.
    #[serde(default)]
    support_counts: Vec<usize>,
    /// Absent in version 1.
    #[serde(default)]
    temperature: Option<f64>,
    /// From version 7 on, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    class_weights: Option<Vec<f64>>,
    /// The classes of the training rows that are kept; from version 7 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept_classes: Option<Vec<usize>>,
    report: Report,
}

/// A member without its arrays.
#[derive(Clone, Serialize, Deserialize)]
struct StoredMember {
    weight: f64,
    kernel: Kernel,
    form: Form,
    cost: f64,
    bias: Vec<f64>,
}

/// In version 1 the offset is a number, later a list.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<f64>, D::Error> {
    struct OneOrMany;

    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<f64>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a number or a list of numbers")
        }

        fn visit_f64<E>(self, value: f64) -> std::result::Result<Vec<f64>, E> {
            Ok(vec![value])
        }

        fn visit_i64<E>(self, value: i64) -> std::result::Result<Vec<f64>, E> {
            Ok(vec![value as f64])
        }

        fn visit_u64<E>(self, value: u64) -> std::result::Result<Vec<f64>, E> {
            Ok(vec![value as f64])
        }

        // A zero takes two bytes of a file and eight in memory.
        fn visit_seq<A: SeqAccess<'de>>(
            self,
            values: A,
        ) -> std::result::Result<Vec<f64>, A::Error> {
            at_most(MAX_CLASSES * (MAX_CLASSES - 1) / 2, "offsets", values)
        }
    }

    from.deserialize_any(OneOrMany)
}

/// The classes, of which there are few: an empty name takes three bytes of a file and eight times that in memory.
fn few_classes<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Vec<String>, D::Error> {
    struct Few;

    impl<'de> Visitor<'de> for Few {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("a list of classes")
        }

        fn visit_seq<A: SeqAccess<'de>>(
            self,
            names: A,
        ) -> std::result::Result<Vec<String>, A::Error> {
            at_most(MAX_CLASSES, "classes", names)
        }
    }

    from.deserialize_seq(Few)
}

/// A list that cannot be longer than this.
fn at_most<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
    most: usize,
    what: &str,
    mut values: A,
) -> std::result::Result<Vec<T>, A::Error> {
    let mut list = Vec::new();
    while let Some(value) = values.next_element()? {
        if list.len() == most {
            return Err(A::Error::custom(format!("more than {most} {what}")));
        }
        list.push(value);
    }
    Ok(list)
}

pub(super) fn to_bytes(model: &Model) -> Result<Vec<u8>> {
    let members = model.members();
    // One Gaussian member needs no more than the programs that came before know.
    let stored: Vec<StoredMember> = match members {
        [only] if only.kernel == Kernel::Gaussian => Vec::new(),
        members => (members.iter())
            .map(|Member { weight, kernel, metric, cost, pairwise, .. }| StoredMember {
                weight: *weight,
                kernel: *kernel,
                form: metric.form(),
                cost: *cost,
                bias: pairwise.bias.clone(),
            })
            .collect(),
    };
    let first = members.first();
    let header = Header {
        schema: model.schema.clone(),
        classes: model.classes.clone(),
        scaler: model.scaler.clone(),
        form: first.map_or(model.metric.form(), |member| member.metric.form()),
        cost: first.map_or(1.0, |member| member.cost),
        bias: first.map_or(Vec::new(), |member| member.bias().to_vec()),
        support_rows: model.support_rows().to_vec(),
        support_counts: match &model.classifier {
            Classifier::None => vec![0; model.classes.len()],
            _ => model.support_counts().to_vec(),
        },
        temperature: model.temperature(),
        class_weights: model.class_weights().map(<[f64]>::to_vec),
        kept_classes: model.kept.as_ref().map(|kept| kept.class.clone()),
        report: model.report.clone(),
        members: stored,
    };
    let kept = model.kept.as_ref().map(|kept| &kept.x);
    let rows: Vec<&Matrix> = [model.support_vectors()].into_iter().chain(kept).collect();
    let common = sparse_rows::common_row(&rows);
    let version = match &model.classifier {
        _ if common.is_some() => SPARSE_VERSION,
        _ if header.class_weights.is_some() || header.kept_classes.is_some() => EXTRAS_VERSION,
        Classifier::None => METRIC_VERSION,
        Classifier::Neighbours(_) => NEIGHBOURS_VERSION,
        Classifier::Svms(_) if header.members.is_empty() => VERSION,
        Classifier::Svms(_) => MEMBERS_VERSION,
    };
    let header = serde_json::to_vec(&header)
        .map_err(|e| bad(format!("the header cannot be written: {e}")))?;
    if header.len() as u64 > LONGEST_HEADER {
        return Err(bad(format!(
            "its header would have {} bytes, where {LONGEST_HEADER} are the most; train on fewer rows or columns",
            header.len()
        )));
    }
    let mut bytes = Vec::new();
    bytes.extend(MAGIC);
    bytes.extend(version.to_le_bytes());
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(&header);
    let write = |array: &[f64], bytes: &mut Vec<u8>| {
        array.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    };
    let write_rows = |rows: &Matrix, bytes: &mut Vec<u8>| match &common {
        Some(common) => sparse_rows::write(rows, common, bytes),
        None => write(rows.as_slice(), bytes),
    };
    match members.is_empty() {
        true => write(model.metric.values(), &mut bytes),
        false => members.iter().for_each(|member| write(member.metric.values(), &mut bytes)),
    }
    common.iter().for_each(|common| write(common, &mut bytes));
    write_rows(model.support_vectors(), &mut bytes);
    members.iter().for_each(|member| write(member.beta().as_slice(), &mut bytes));
    if let Classifier::Neighbours(neighbours) = &model.classifier {
        write(&neighbours.weight, &mut bytes);
    }
    kept.into_iter().for_each(|kept| write_rows(kept, &mut bytes));
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    Ok(bytes)
}

/// What is wrong with a file, in a message that does not repeat all of it.
fn bad(message: String) -> Error {
    let mut short: String = message.chars().take(LONGEST_MESSAGE).collect();
    if short.len() < message.len() {
        short.push_str("...");
    }
    Error::ModelFile(short)
}

/// What the first bytes say.
struct Prefix {
    version: u32,
    /// Length of the header.
    header: u64,
}

impl Prefix {
    fn of(bytes: &[u8]) -> Result<Self> {
        if !bytes.starts_with(&MAGIC) {
            return Err(bad("it does not begin like a model".to_owned()));
        }
        let Some(prefix) = bytes.first_chunk::<PREFIX>() else {
            return Err(bad(format!("{} bytes are too few; it is cut off", bytes.len())));
        };
        let version = u32::from_le_bytes(array(&prefix[8..12]));
        if !(1..=LATEST).contains(&version) {
            return Err(bad(format!(
                "its format is version {version}; this program reads up to version {LATEST}: update svml"
            )));
        }
        let header = u64::from_le_bytes(array(&prefix[12..]));
        if header > LONGEST_HEADER {
            return Err(bad(format!(
                "a header of {header} bytes, where {LONGEST_HEADER} are the most"
            )));
        }
        Ok(Self { version, header })
    }
}

pub(super) fn from_bytes(bytes: &[u8]) -> Result<Model> {
    let Prefix { version, header } = Prefix::of(bytes)?;
    let (body, checksum) = bytes
        .split_last_chunk::<SUFFIX>()
        .filter(|(body, _)| body.len() >= PREFIX)
        .ok_or_else(|| bad(format!("{} bytes are too few; it is cut off", bytes.len())))?;
    if crc32fast::hash(body) != u32::from_le_bytes(*checksum) {
        return Err(bad(
            "its checksum is wrong: it was cut off or altered; copy it again".to_owned()
        ));
    }
    let rest = &body[PREFIX..];
    let header = usize::try_from(header)
        .ok()
        .filter(|len| *len <= rest.len())
        .ok_or_else(|| bad(format!("a header of {header} bytes in {}", rest.len())))?;
    let (header, arrays) = rest.split_at(header);
    memory::room_for(IN_MEMORY * header.len(), "the header of the model")?;
    let header: Header =
        serde_json::from_slice(header).map_err(|e| bad(format!("its header is wrong: {e}")))?;
    // Names in messages of the schema may be as long as the file.
    assemble(version, header, arrays).map_err(|error| match error {
        Error::ModelFile(message) => bad(message),
        error @ Error::TooLarge { .. } => error,
        // Whatever else its parts are refused for, it is the file that is wrong, not the use of the program.
        error => bad(error.what()),
    })
}

/// Checks the parts against each other and builds the model.
fn assemble(version: u32, header: Header, arrays: &[u8]) -> Result<Model> {
    header.schema.validate()?;
    let d = header.schema.width();
    header.scaler.validate(d)?;
    let classes = header.classes.len();
    let distinct: std::collections::HashSet<&String> = header.classes.iter().collect();
    if classes < 2 || distinct.len() != classes {
        let shown = listed(&header.classes, SHOWN);
        return Err(bad(format!("it has the classes {shown}, where two or more are needed")));
    }
    // The method tells what the arrays are.
    let kind = match &header.report.method {
        Method::Metric(_) => Kind::Metric,
        Method::Neighbours { knn, .. } => Kind::Neighbours(knn.k),
        _ => Kind::Svms,
    };
    // The metrics that the arrays hold, as members where they belong to SVMs.
    let members = match header.members.as_slice() {
        [] => vec![StoredMember {
            weight: 1.0,
            kernel: Kernel::Gaussian,
            form: header.form,
            cost: header.cost,
            bias: header.bias.clone(),
        }],
        _ if version < MEMBERS_VERSION || !matches!(kind, Kind::Svms) => {
            return Err(bad(format!("members in a file of version {version}")));
        }
        members => members.to_vec(),
    };
    let pair_count = match kind {
        Kind::Metric | Kind::Neighbours(_) => Some(0),
        Kind::Svms => classes.checked_mul(classes - 1).map(|count| count / 2),
    };
    check_members(&members, pair_count, classes, d)?;
    if matches!(kind, Kind::Metric) && !header.support_rows.is_empty() {
        return Err(bad("support vectors beside a metric without a classifier".to_owned()));
    }
    if matches!(kind, Kind::Neighbours(0)) {
        return Err(bad("no neighbours that vote".to_owned()));
    }
    // Its reciprocal is what probabilities are computed with.
    if !header.temperature.is_none_or(|v| v.is_finite() && v > 0.0 && v.recip().is_finite()) {
        return Err(bad(format!("temperature {:?}", header.temperature)));
    }
    if let Some(weights) = &header.class_weights {
        if version < EXTRAS_VERSION || !matches!(kind, Kind::Svms) {
            return Err(bad(format!("class weights in a file of version {version}")));
        }
        let good = |w: &f64| w.is_finite() && *w > 0.0;
        if weights.len() != classes || !weights.iter().all(good) {
            let (weights, shown) = (weights.len(), &weights[..weights.len().min(SHOWN)]);
            return Err(bad(format!(
                "class weights {shown:?}, {weights} in all, for {classes} classes"
            )));
        }
    }
    let n = header.support_rows.len();
    if header.support_rows.iter().any(|row| *row >= header.report.rows) {
        return Err(bad(format!("a support row beyond the {} rows", header.report.rows)));
    }
    let steps = header.report.trace.len();
    if header.report.best >= steps.max(1) {
        return Err(bad(format!("best step {} of {steps}", header.report.best)));
    }
    let per_row = match kind {
        Kind::Neighbours(_) => Some(1),
        _ => (classes - 1).checked_mul(members.len()),
    };
    let kept = header.kept_classes.as_ref().map_or(0, Vec::len);
    if header.kept_classes.is_some() && version < EXTRAS_VERSION {
        return Err(bad(format!("training rows in a file of version {version}")));
    }
    if header.kept_classes.iter().flatten().any(|class| *class >= classes)
        || (header.kept_classes.is_some() && kept != header.report.rows)
    {
        return Err(bad(format!("{kept} training rows with classes of their own")));
    }
    let metrics =
        members.iter().try_fold(0_usize, |sum, m| sum.checked_add(checked_len(m.form, d)?));
    let last = per_row.and_then(|per_row| per_row.checked_mul(n));
    let expected = (d.checked_mul(n).zip(last))
        .and_then(|(support, last)| support.checked_add(last))
        .and_then(|sum| sum.checked_add(metrics?))
        .and_then(|sum| sum.checked_add(d.checked_mul(kept)?));
    let misfit = || {
        bad(format!(
            "{} bytes of arrays do not fit {n} support vectors with {d} features in {classes} classes",
            arrays.len()
        ))
    };
    // The product of sizes that the header names must be what is there. Rows that are mostly the same take fewer bytes, and
    // how many is found out on the way.
    let is_sparse = version == SPARSE_VERSION;
    let least = (n.checked_add(kept))
        .and_then(|rows| sparse_rows::least(rows, d)?.checked_add(last?)?.checked_add(metrics?));
    let there = arrays.len() / 8;
    let fits = match is_sparse {
        true => least.is_some_and(|least| least <= there),
        false => expected == Some(there),
    };
    if !fits || !arrays.len().is_multiple_of(8) {
        return Err(misfit());
    }
    // The rows once more as they are standardised, and as each member maps them.
    let mapped = members.iter().map(|m| m.form.rows(d)).fold(d, usize::saturating_add);
    let numbers = expected.unwrap_or(usize::MAX).saturating_add(mapped.saturating_mul(n));
    memory::room_for(numbers.saturating_mul(8), "the numbers of the model")?;
    let mut rest = Arrays { bytes: arrays, misfit: &misfit };
    let metrics: Vec<Metric> = (members.iter())
        .map(|member| Metric::new(member.form, d, rest.take(member.form.len(d))?))
        .collect::<Result<_>>()?;
    let common = if is_sparse { Some(rest.take(d)?) } else { None };
    let support = rest.rows(n, d, common.as_deref())?;
    let last = rest.take(last.unwrap_or(usize::MAX))?;
    let kept_rows = match &header.kept_classes {
        Some(class) => {
            Some(KeptRows { x: rest.rows(kept, d, common.as_deref())?, class: class.clone() })
        }
        None => None,
    };
    if !rest.bytes.is_empty() {
        return Err(misfit());
    }
    let metric = Metric::mean(members.iter().map(|member| member.weight).zip(&metrics))?;
    let stored = Stored { version, kind, header: &header, members, metrics };
    let classifier = stored.classifier(support, &last)?;
    let Header { schema, classes, scaler, mut report, .. } = header;
    // A warning is one line that is shown as it is, whoever wrote the file.
    for warning in &mut report.warnings {
        *warning = warning.replace(is_control, "\u{fffd}");
    }
    let device = Device::Auto;
    Ok(Model { schema, classes, scaler, metric, classifier, report, kept: kept_rows, device })
}

/// What is left of the arrays of a file.
struct Arrays<'a, F> {
    bytes: &'a [u8],
    /// The error where they are too short.
    misfit: &'a F,
}

impl<F: Fn() -> Error> Arrays<'_, F> {
    /// The next numbers.
    fn take(&mut self, count: usize) -> Result<Vec<f64>> {
        let split = count.checked_mul(8).and_then(|bytes| self.bytes.split_at_checked(bytes));
        let (taken, left) = split.ok_or_else(self.misfit)?;
        self.bytes = left;
        let numbers: Vec<f64> =
            taken.chunks_exact(8).map(|chunk| f64::from_le_bytes(array(chunk))).collect();
        // Those of tables are no larger, and differences of the largest floating-point numbers are no numbers.
        let fits = |v: &&f64| v.abs() <= LIMIT;
        match numbers.iter().find(|v| !fits(v)) {
            Some(value) => Err(bad(format!("an array holds {value:e}, beyond +-{LIMIT:e}"))),
            None => Ok(numbers),
        }
    }

    /// The next rows, given what most of them have in common where they are stored so.
    fn rows(&mut self, rows: usize, columns: usize, common: Option<&[f64]>) -> Result<Matrix> {
        match common {
            Some(common) => {
                sparse_rows::read(&mut self.bytes, rows, common)?.ok_or_else(self.misfit)
            }
            None => {
                let numbers = self.take(rows.saturating_mul(columns))?;
                Matrix::new(rows, columns, numbers)
            }
        }
    }
}

/// Checks what the header says of each member.
fn check_members(
    members: &[StoredMember],
    pairs: Option<usize>,
    classes: usize,
    d: usize,
) -> Result<()> {
    let bad = |message: String| Err(bad(message));
    let positive = |v: f64| v.is_finite() && v > 0.0;
    for StoredMember { weight, kernel, form, cost, bias } in members {
        if pairs != Some(bias.len()) {
            return bad(format!("{} offsets b for {classes} classes", bias.len()));
        }
        if !positive(*cost) || !positive(*weight) {
            return bad(format!("C = {cost}, weight {weight}"));
        }
        if let Form::Rank(r) = form
            && *r > d
        {
            return bad(format!("rank {r} above the number of features, {d}"));
        }
        if !kernel.allows(*form) {
            return bad(format!("a {form} metric with the {kernel} kernel"));
        }
    }
    if members.len() > MOST_MEMBERS {
        return bad(format!("{} members, more than {MOST_MEMBERS}", members.len()));
    }
    let diagonal = |form: Form| matches!(form, Form::Sphere | Form::Diagonal);
    if members.len() > 1 && d > MOST_COLUMNS_OF_MEAN && !members.iter().all(|m| diagonal(m.form)) {
        return bad(format!("a mean of metrics of {d} features that are not diagonal"));
    }
    let total: f64 = members.iter().map(|member| member.weight).sum();
    if (total - 1.0).abs() > 1e-9 {
        return bad(format!("weights of members that add up to {total}"));
    }
    Ok(())
}

/// [`Form::len`], unless it overflows.
fn checked_len(form: Form, d: usize) -> Option<usize> {
    form.rows(d).checked_mul(d)?;
    Some(form.len(d))
}

/// What a file holds besides the metric.
#[derive(Clone, Copy)]
enum Kind {
    Metric,
    Svms,
    /// With the number that vote.
    Neighbours(usize),
}

/// A file taken apart.
struct Stored<'a> {
    version: u32,
    kind: Kind,
    header: &'a Header,
    members: Vec<StoredMember>,
    metrics: Vec<Metric>,
}

impl Stored<'_> {
    /// Builds the classifier; `last` are the coefficients of all members, or the weights of neighbours.
    fn classifier(self, support: Matrix, last: &[f64]) -> Result<Classifier> {
        let Self { version, kind, header, members, metrics } = self;
        let (classes, n) = (header.classes.len(), support.rows());
        let check_counts =
            |counts: &[usize]| match counts.len() == classes && sum(counts) == Some(n) {
                true => Ok(()),
                false => Err(bad(format!(
                    "support_counts {:?}, {} in all, for {n} vectors of {classes} classes",
                    &counts[..counts.len().min(SHOWN)],
                    counts.len()
                ))),
            };
        let map = |metric: &Metric, support: &Matrix| {
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
                let mapped = map(&metrics[0], &support)?;
                let (rows, counts) = (header.support_rows.clone(), header.support_counts.clone());
                Neighbours::new(k, rows, counts, last.to_vec(), support, &mapped)
                    .map(Classifier::Neighbours)
                    .map_err(|error| bad(format!("its neighbours: {error}")))
            }
            Kind::Svms => {
                // Kernels lie between 0 and 1, so no decision value can be larger than this sum.
                let offsets = members.iter().flat_map(|member| &member.bias);
                let largest = last.iter().chain(offsets).map(|b| b.abs()).sum::<f64>();
                if !largest.is_finite() {
                    return Err(bad("its coefficients overflow".to_owned()));
                }
                let mut support = support;
                let mut built = Vec::with_capacity(members.len());
                let betas = last.chunks(((classes - 1) * n).max(1)).map(<[f64]>::to_vec);
                // Without support vectors there are no coefficients to cut up.
                let betas = betas.chain(std::iter::repeat(Vec::new()));
                for ((member, metric), beta) in members.into_iter().zip(metrics).zip(betas) {
                    let StoredMember { weight, kernel, cost, bias, .. } = member;
                    let mut pairwise = PairwiseSvms {
                        support: header.support_rows.clone(),
                        counts: header.support_counts.clone(),
                        beta: Matrix::new(classes - 1, n, beta)?,
                        bias,
                    };
                    if version == 1 {
                        support = sort_by_class(&mut pairwise, &support);
                    }
                    check_counts(&pairwise.counts)?;
                    let mapped = map(&metric, &support)?;
                    built.push(Member { weight, kernel, metric, cost, pairwise, mapped });
                }
                let (temperature, class_weights) =
                    (header.temperature, header.class_weights.clone());
                Ok(Classifier::Svms(SvmClassifier {
                    members: built,
                    support,
                    temperature,
                    class_weights,
                }))
            }
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
    let (file, length) = files::open(path)?;
    read(file, length, path)
}

pub(super) fn from_reader(reader: impl Read) -> Result<Model> {
    read(reader, None, Path::new("<input>"))
}

/// Reads a file, or a stream, which has no length. The first bytes are looked at before the others are read, so that what
/// is no model is refused at once however long it is.
fn read(mut reader: impl Read, length: Option<u64>, path: &Path) -> Result<Model> {
    let failed = |source| Error::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    reader.by_ref().take(PREFIX as u64).read_to_end(&mut bytes).map_err(failed)?;
    let Prefix { header, .. } = Prefix::of(&bytes)?;
    let limit = match length {
        Some(length) => {
            let rest = length.saturating_sub((PREFIX + SUFFIX) as u64);
            if header > rest {
                return Err(bad(format!("a header of {header} bytes in {rest}")));
            }
            let limit = memory::free();
            if length > limit {
                return Err(Error::TooLarge {
                    what: format!("the model in {}", path.display()),
                    bytes: u128::from(length),
                    limit: u128::from(limit),
                    remedy: Remedy::UseLessData,
                });
            }
            length
        }
        None => MAX_INPUT_BYTES,
    };
    // As long as it was when it was opened, and one byte more, which tells whether it grew.
    let known = length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    memory::reserve(&mut bytes, known + 1, "the model")?;
    reader.take(limit + 1 - PREFIX as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit {
        return Err(match length {
            Some(_) => {
                bad("it grew while it was read; read it again when it is complete".to_owned())
            }
            None => {
                bad(format!("it is longer than {limit} bytes, the most that is read from a stream"))
            }
        });
    }
    from_bytes(&bytes)
}

pub(super) fn save(model: &Model, path: &Path) -> Result<()> {
    files::write_atomically(path, &to_bytes(model)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message is cut after so many characters, and says so only then.
    #[test]
    fn only_what_is_too_long_is_cut() {
        for sign in ["a", "\u{e4}"] {
            let message = |count: usize| match bad(sign.repeat(count)) {
                Error::ModelFile(message) => message,
                error => error.to_string(),
            };
            assert_eq!(message(LONGEST_MESSAGE), sign.repeat(LONGEST_MESSAGE));
            assert_eq!(message(LONGEST_MESSAGE + 1), sign.repeat(LONGEST_MESSAGE) + "...");
        }
    }

    /// Rows of the positive class, whose beta is positive, come second.
    #[test]
    fn support_vectors_of_version_1_are_put_class_after_class() {
        let beta = Matrix::new(1, 3, vec![1.0, -2.0, 3.0]).unwrap();
        let mut pairwise =
            PairwiseSvms { support: vec![5, 6, 7], counts: vec![3], beta, bias: vec![0.0] };
        let support = Matrix::new(3, 1, vec![0.5, 0.6, 0.7]).unwrap();
        let sorted = sort_by_class(&mut pairwise, &support);
        assert_eq!(sorted.as_slice(), [0.6, 0.5, 0.7]);
        assert_eq!((pairwise.support, pairwise.counts), (vec![6, 5, 7], vec![1, 2]));
        assert_eq!(pairwise.beta.as_slice(), [-2.0, 1.0, 3.0]);
    }

    /// There is an offset for each pair of classes.
    #[test]
    fn as_many_offsets_as_pairs_of_classes_are_read() {
        let read = |count: usize| one_or_many(serde_json::json!(vec![0.5; count]));
        let pairs = (0..MAX_CLASSES).map(|later| MAX_CLASSES - 1 - later).sum();
        assert_eq!(read(pairs).unwrap(), vec![0.5; pairs]);
        let message = read(pairs + 1).unwrap_err().to_string();
        assert_eq!(message, format!("more than {pairs} offsets"));
    }

    /// Bytes without end that are counted.
    struct Endless<'a>(&'a mut u64, Vec<u8>);

    impl Read for Endless<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let at = usize::try_from(*self.0).unwrap();
            let known = self.1.get(at..).unwrap_or_default();
            let count = out.len().min(known.len().max(1));
            out[..count].fill(b' ');
            let known = &known[..count.min(known.len())];
            out[..known.len()].copy_from_slice(known);
            *self.0 += count as u64;
            Ok(count)
        }
    }

    /// A file that grows while it is read is read to one byte beyond its length, which tells.
    #[test]
    fn a_file_that_grows_is_not_read_to_its_end() {
        let mut start = MAGIC.to_vec();
        start.extend(LATEST.to_le_bytes());
        start.extend(10u64.to_le_bytes());
        let mut count = 0;
        let error = read(Endless(&mut count, start), Some(500), Path::new("m")).unwrap_err();
        assert!(error.to_string().contains("it grew while it was read"), "{error}");
        assert_eq!(count, 501);
    }
}
