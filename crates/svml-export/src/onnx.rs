//! ONNX: the model as a graph of plain operators on 64-bit floats.
//!
//! | name | type and shape | what |
//! |---|---|---|
//! | `x` | double, (batch, features) | input: encoded features, NaN for a missing value |
//! | `label` | string, or int64 if all labels are integers, (batch) | the class |
//! | `probabilities` | double, (batch, classes) | in the order of the classes |
//! | `decision` | double, (batch, 1) for two classes, else (batch, classes) | decision values |
//! | `transform` | double, (batch, rank) | of a map, and then the only output |
//!
//! With [`Input::Columns`] there is an input for each column of the table in place of `x`, with texts for categories.
//!
//! A graph cannot raise an error. A row that the library would refuse, because a value is missing in a model that does not
//! fill missing values, or is beyond [`LIMIT`], has NaN in all numbers and the label "" or -2^63.
//!
//! Products of matrices give the squared distances of the Gaussian kernel, as in the library. The other two kernels need
//! differences of coordinates; a `Scan` over the coordinates adds them up, so that no array is larger than batch times
//! support vectors.

use svml::data::{Column, Kind};
use svml::{Error, Kernel, Matrix, Model, Result};

use crate::Output;
use crate::js;
use crate::parts::{FAR, Features, LIMIT, Map, Part, Rest, Svms, pairs};
use crate::protobuf::Message;

/// The set of operators, of 2020, and the version of the format that came with it: the first with the axes of sums as
/// inputs. onnxruntime reads it since 1.6.
const OPSET: i64 = 13;
const IR_VERSION: i64 = 7;
/// The set that has the lookup of texts.
const LOOKUPS: &str = "ai.onnx.ml";
const LOOKUPS_OPSET: i64 = 2;
/// Protocol buffers end here.
const MOST_BYTES: usize = (1 << 31) - 1;

// Element types of ONNX.
const INT64: i64 = 7;
const STRING: i64 = 8;
const DOUBLE: i64 = 11;

// What a text is that is no level: missing, or unknown.
const MISSING: i64 = -2;
const UNKNOWN: i64 = -1;
/// Texts that stand for a missing value, as programs write them.
const MISSING_TEXTS: [&str; 16] = [
    "", "?", "NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "+NaN", "-NaN", "null", "NULL", "Null",
    "None", "none",
];
/// Truth values, as programs write them.
const TRUTHS: [&str; 6] = ["true", "True", "TRUE", "false", "False", "FALSE"];

/// What a graph takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// One array of encoded features, `x`, in the order of
    /// [`Schema::encoded_names`](svml::data::Schema::encoded_names). Their names are in the metadata, as a JSON list:
    /// `features`.
    #[default]
    Features,
    /// An array for each column of the table, `c1`, `c2` and so on, of shape (batch, 1). A column of numbers is of doubles,
    /// NaN for a missing value; a category is of strings, which are looked up as they are, without white space around
    /// them, and a missing one is "" or a text that stands for it in a table. Which is which is in the metadata, as a JSON
    /// list of objects with `input`, `name`, `kind` and `levels`: `columns`.
    Columns,
}

/// The model as the bytes of an ONNX file.
///
/// Outputs are `label`, `probabilities` and `decision`, or `transform` alone for a map. The names of the classes are in the
/// metadata, as a JSON list.
pub fn onnx(model: &Model, input: Input, output: Output) -> Result<Vec<u8>> {
    let features = Features::of(model);
    let rest = Rest::of(model, output, "as ONNX")?;
    let mut graph = Graph::default();
    let (x, described) = match input {
        Input::Features => {
            graph.input("x", DOUBLE, &[None, Some(features.names.len())]);
            ("x".to_owned(), ("features", js::list(&features.names)))
        }
        Input::Columns => {
            let (x, columns) = columns(&mut graph, model);
            (x, ("columns", columns))
        }
    };
    let (u, good) = standardised(&mut graph, &x, &features);
    let mut metadata = vec![described];
    match &rest {
        Rest::Metric(map) => {
            let z = mapped(&mut graph, &u, map);
            graph.output("transform", DOUBLE, &[None, Some(map.rank())]);
            only_good(&mut graph, &good, &z, Some("transform"));
        }
        Rest::Svms(svms) => {
            classifier(&mut graph, &u, &good, svms);
            metadata.push(("classes", js::list(svms.classes)));
        }
    }
    let property = |(key, value): (&str, String)| Message::default().bytes(1, key).bytes(2, value);
    let metadata: Vec<Message> = metadata.into_iter().map(property).collect();
    let bytes = Message::default()
        .integer(1, IR_VERSION)
        .bytes(2, "svml")
        .bytes(3, env!("CARGO_PKG_VERSION"))
        .message(7, &graph.into_message("svml"))
        .message(8, &Message::default().bytes(1, "").integer(2, OPSET))
        .message(8, &Message::default().bytes(1, LOOKUPS).integer(2, LOOKUPS_OPSET))
        .messages(14, &metadata)
        .into_bytes();
    match bytes.len() {
        size if size > MOST_BYTES => Err(Error::Unsupported(format!(
            "the model would take {size} bytes as ONNX, more than the limit of {MOST_BYTES} for such files; train on fewer rows or landmarks"
        ))),
        _ => Ok(bytes),
    }
}

/// An input for each column: the encoded features of all, and what the columns are. // (batch, d)
fn columns(graph: &mut Graph, model: &Model) -> (String, String) {
    let (mut described, mut encoded) = (Vec::new(), Vec::new());
    let used = model.schema().columns().iter().filter(|column| column.kind != Kind::Ignored);
    for (place, column) in used.enumerate() {
        let input = format!("c{}", place + 1);
        described.push(format!("{{\"input\": \"{input}\", {}}}", js::described(column)));
        encoded.push(encoded_column(graph, input, column));
    }
    let encoded: Vec<&str> = encoded.iter().map(String::as_str).collect();
    let x = graph.add_as(None, "Concat", &encoded, &[attribute("axis", 1)]);
    (x, format!("[{}]", described.join(", ")))
}

/// The encoded features of a column: as many as it has levels, or one. // (batch, width)
fn encoded_column(graph: &mut Graph, input: String, column: &Column) -> String {
    let one_hot = match column.kind {
        Kind::OneHot { .. } => true,
        Kind::Codes { .. } => false,
        _ => {
            graph.input(&input, DOUBLE, &[None, Some(1)]);
            return input;
        }
    };
    let levels = column.kind.levels();
    graph.input(&input, STRING, &[None, Some(1)]);
    let place = graph.looked_up(&input, levels);
    let nan = graph.double(f64::NAN);
    if one_hot {
        // Of a level that training did not have, all are 0.
        let places: Vec<i64> = (0..levels.len() as i64).collect();
        let places = graph.integers(&places);
        let equal = graph.add("Equal", &[&place, &places]);
        let indicators = graph.cast(&equal, DOUBLE);
        let missing = graph.integer(MISSING);
        let missing = graph.add("Equal", &[&place, &missing]);
        return graph.add("Where", &[&missing, &nan, &indicators]);
    }
    let code = graph.cast(&place, DOUBLE);
    let zero = graph.double(0.0);
    let unknown = graph.add("Less", &[&code, &zero]);
    graph.add("Where", &[&unknown, &nan, &code])
}

/// Filled and standardised features, and for each row whether all its values can be used. // (batch, d), (batch, 1)
fn standardised(graph: &mut Graph, x: &str, features: &Features<'_>) -> (String, String) {
    let d = features.names.len();
    let filled = match features.fill {
        None => x.to_owned(),
        Some(fill) => {
            let missing = graph.add("IsNaN", &[x]);
            let fill = graph.doubles(&[d], fill);
            graph.add("Where", &[&missing, &fill, x])
        }
    };
    // No comparison with NaN is true.
    let size = graph.add("Abs", &[&filled]);
    let limit = graph.double(LIMIT);
    let within = graph.add("LessOrEqual", &[&size, &limit]);
    let within = graph.cast(&within, DOUBLE);
    let count = graph.sum_of_rows(&within, true);
    let least = graph.double(d as f64 - 0.5);
    let good = graph.add("Greater", &[&count, &least]);

    let mean = graph.doubles(&[d], features.mean);
    let centred = graph.add("Sub", &[&filled, &mean]);
    let unit: Vec<f64> = features.scale.iter().map(|s| if *s > 0.0 { *s } else { 1.0 }).collect();
    let unit = graph.doubles(&[d], &unit);
    let scaled = graph.add("Div", &[&centred, &unit]);
    let (low, high) = (graph.double(-FAR), graph.double(FAR));
    let mut u = graph.add("Clip", &[&scaled, &low, &high]);
    if features.scale.contains(&0.0) {
        let kept: Vec<f64> = features.scale.iter().map(|s| f64::from(*s > 0.0)).collect();
        let kept = graph.doubles(&[d], &kept);
        u = graph.add("Mul", &[&u, &kept]);
    }
    (u, good)
}

/// L u. // (batch, rank)
fn mapped(graph: &mut Graph, u: &str, map: &Map) -> String {
    match map {
        Map::Diagonal(weights) => {
            let weights = graph.doubles(&[weights.len()], weights);
            graph.add("Mul", &[u, &weights])
        }
        Map::Matrix(l) => {
            let transposed = Matrix::from_fn(l.cols(), l.rows(), |k, i| l[(i, k)]);
            let l = graph.matrix(&transposed);
            graph.add("MatMul", &[u, &l])
        }
    }
}

/// NaN in the rows that are not good.
fn only_good(graph: &mut Graph, good: &str, values: &str, name: Option<&str>) -> String {
    let nan = graph.double(f64::NAN);
    graph.add_as(name, "Where", &[good, values, &nan], &[])
}

fn classifier(graph: &mut Graph, u: &str, good: &str, svms: &Svms<'_>) {
    let classes = svms.classes.len();
    let width = if classes == 2 { 1 } else { classes };
    let h = outputs(graph, u, svms);
    let (values, place) = if classes == 2 {
        let zero = graph.double(0.0);
        let second = graph.add("Greater", &[&h, &zero]);
        let second = graph.cast(&second, INT64);
        let axis = graph.integers(&[1]);
        (h, graph.add("Squeeze", &[&second, &axis]))
    } else {
        let values = vote(graph, &h, classes);
        let attributes = [attribute("axis", 1), attribute("keepdims", 0)];
        let place = graph.add_as(None, "ArgMax", &[&values], &attributes);
        (values, place)
    };

    // One more label, for rows that are not good.
    let own: Option<Vec<i64>> = svms.classes.iter().map(|class| integer(class)).collect();
    let (labels, kind) = match own {
        Some(mut labels) => {
            labels.push(i64::MIN);
            (graph.integers(&labels), INT64)
        }
        None => {
            let labels = svms.classes.iter().map(String::as_str).chain([""]);
            (graph.strings(labels), STRING)
        }
    };
    let none = graph.integer(classes as i64);
    let axis = graph.integers(&[1]);
    let good_row = graph.add("Squeeze", &[good, &axis]);
    let place = graph.add("Where", &[&good_row, &place, &none]);
    graph.output("label", kind, &[None]);
    graph.add_as(Some("label"), "Gather", &[&labels, &place], &[]);

    if let Some(temperature) = svms.temperature {
        let both = match classes {
            // Of two classes over (0, h).
            2 => {
                let zero = graph.add("Sub", &[&values, &values]);
                graph.add_as(None, "Concat", &[&zero, &values], &[attribute("axis", 1)])
            }
            _ => values.clone(),
        };
        let temperature = graph.double(temperature);
        let mut logits = graph.add("Div", &[&both, &temperature]);
        if let Some(log_weights) = &svms.log_weights {
            let log_weights = graph.doubles(&[classes], log_weights);
            logits = graph.add("Sub", &[&logits, &log_weights]);
        }
        let p = graph.add_as(None, "Softmax", &[&logits], &[attribute("axis", 1)]);
        graph.output("probabilities", DOUBLE, &[None, Some(classes)]);
        only_good(graph, good, &p, Some("probabilities"));
    }
    graph.output("decision", DOUBLE, &[None, Some(width)]);
    only_good(graph, good, &values, Some("decision"));
}

/// A label as an integer, if it is written as one is written here.
fn integer(label: &str) -> Option<i64> {
    label.parse().ok().filter(|value: &i64| value.to_string() == label)
}

/// The mean of the outputs of the members. // (batch, pairs)
fn outputs(graph: &mut Graph, u: &str, svms: &Svms<'_>) -> String {
    let support = svms.uses_support().then(|| graph.matrix(&svms.support));
    let mut mean: Option<String> = None;
    for member in &svms.members {
        let z = mapped(graph, u, &member.map);
        let points = match (&member.points, &support) {
            (Some(points), _) => graph.matrix(points),
            (None, Some(support)) => mapped(graph, support, &member.map),
            // This cannot be: the support vectors are there if a member needs them.
            (None, None) => continue,
        };
        let kernel = kernel(graph, member, &z, &points, svms.support.rows());
        let mut h = expansion(graph, member, &kernel, &svms.counts);
        if svms.members.len() > 1 {
            let weight = graph.double(member.weight);
            h = graph.add("Mul", &[&h, &weight]);
        }
        mean = Some(match mean {
            Some(sum) => graph.add("Add", &[&sum, &h]),
            None => h,
        });
    }
    mean.unwrap_or_default()
}

/// k(z, point) for all rows and support vectors. // (batch, s)
fn kernel(graph: &mut Graph, member: &Part<'_>, z: &str, points: &str, count: usize) -> String {
    let distance = match member.kernel {
        Kernel::Gaussian => {
            // |z|^2 + |p|^2 - 2 z'p, which rounding may bring below 0.
            let square = graph.add("Mul", &[z, z]);
            let of_rows = graph.sum_of_rows(&square, true);
            let square = graph.add("Mul", &[points, points]);
            let of_points = graph.sum_of_rows(&square, false);
            let both = graph.add("Add", &[&of_rows, &of_points]);
            let transposed = graph.add("Transpose", &[points]);
            let product = graph.add("MatMul", &[z, &transposed]);
            let (two, zero) = (graph.double(2.0), graph.double(0.0));
            let twice = graph.add("Mul", &[&product, &two]);
            let difference = graph.add("Sub", &[&both, &twice]);
            graph.add("Max", &[&difference, &zero])
        }
        Kernel::Exponential => {
            let squared = graph.sum_over_coordinates(z, points, count, Differences::Squared);
            graph.add("Sqrt", &[&squared])
        }
        _ => graph.sum_over_coordinates(z, points, count, Differences::Absolute),
    };
    let negative = graph.add("Neg", &[&distance]);
    graph.add("Exp", &[&negative])
}

/// The outputs of the SVMs of all pairs. // (batch, pairs)
fn expansion(graph: &mut Graph, member: &Part<'_>, kernel: &str, counts: &[usize]) -> String {
    let (slots, classes) = (member.beta.rows(), counts.len());
    let beta = |graph: &mut Graph, start: usize, count: usize| {
        let beta = &member.beta;
        graph.matrix(&Matrix::from_fn(count, slots, |j, slot| beta[(slot, start + j)]))
    };
    let bias = graph.doubles(&[member.bias.len()], member.bias);
    if classes == 2 {
        let beta = beta(graph, 0, member.beta.cols());
        let sums = graph.add("MatMul", &[kernel, &beta]);
        return graph.add("Add", &[&sums, &bias]);
    }
    // The support vectors of each class with all the SVMs of that class, (batch, classes - 1) each, side by side; then the
    // two columns of each pair are added.
    let sizes: Vec<i64> = counts.iter().map(|&count| count as i64).collect();
    let sizes = graph.integers(&sizes);
    let blocks = graph.add_many(classes, "Split", &[kernel, &sizes], &[attribute("axis", 1)]);
    let mut start = 0;
    let mut sums = Vec::with_capacity(classes);
    for (block, &count) in blocks.iter().zip(counts) {
        let beta = beta(graph, start, count);
        sums.push(graph.add("MatMul", &[block, &beta]));
        start += count;
    }
    let sums: Vec<&str> = sums.iter().map(String::as_str).collect();
    let sums = graph.add_as(None, "Concat", &sums, &[attribute("axis", 1)]);
    let column = |class: usize, slot: usize| (class * slots + slot) as i64;
    let pairs = pairs(classes);
    let first: Vec<i64> = pairs.iter().map(|&(i, j)| column(i, j - 1)).collect();
    let second: Vec<i64> = pairs.iter().map(|&(i, j)| column(j, i)).collect();
    let mut total = bias;
    for columns in [first, second] {
        let columns = graph.integers(&columns);
        let part = graph.add_as(None, "Gather", &[&sums, &columns], &[attribute("axis", 1)]);
        total = graph.add("Add", &[&part, &total]);
    }
    total
}

/// The values of the classes: pairs won, and S / (3 (|S| + 1)) with S the sum of the outputs in favour. // (batch, classes)
fn vote(graph: &mut Graph, h: &str, classes: usize) -> String {
    let pairs = pairs(classes);
    // An output counts for the second class of a pair and against the first.
    let sign = Matrix::from_fn(pairs.len(), classes, |p, class| {
        f64::from(pairs[p].1 == class) - f64::from(pairs[p].0 == class)
    });
    let sign = graph.matrix(&sign);
    let (zero, one, three) = (graph.double(0.0), graph.double(1.0), graph.double(3.0));
    let wins = graph.add("Greater", &[h, &zero]);
    let wins = graph.cast(&wins, DOUBLE);
    let more = graph.add("MatMul", &[&wins, &sign]);
    // Of pairs that their second class does not win, the first does.
    let first: Vec<f64> = (0..classes).map(|class| (classes - 1 - class) as f64).collect();
    let first = graph.doubles(&[classes], &first);
    let votes = graph.add("Add", &[&more, &first]);
    let sums = graph.add("MatMul", &[h, &sign]);
    let size = graph.add("Abs", &[&sums]);
    let size = graph.add("Add", &[&size, &one]);
    let size = graph.add("Mul", &[&size, &three]);
    let fraction = graph.add("Div", &[&sums, &size]);
    graph.add("Add", &[&votes, &fraction])
}

/// What is added up over coordinates.
#[derive(Clone, Copy)]
enum Differences {
    Squared,
    Absolute,
}

/// A graph under construction. Values have numbers for names, apart from inputs and outputs.
#[derive(Default)]
struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
    inputs: Vec<Message>,
    outputs: Vec<Message>,
    count: usize,
}

/// An attribute of an operator that is an integer.
fn attribute(name: &str, value: i64) -> Message {
    const INT: i64 = 2;
    Message::default().bytes(1, name).integer(3, value).integer(20, INT)
}

/// A tensor of some type; its data are still to be added.
fn tensor(dims: &[usize], kind: i64, name: &str) -> Message {
    let dims = dims.iter().fold(Message::default(), |all, dim| all.integer(1, *dim as i64));
    dims.integer(2, kind).bytes(8, name)
}

fn little_endian<const N: usize>(values: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    values.flatten().collect()
}

/// Name, type and shape; `None` is the batch.
fn value(name: &str, kind: i64, dims: Option<&[Option<usize>]>) -> Message {
    let mut shaped = Message::default().integer(1, kind);
    if let Some(dims) = dims {
        let dims: Vec<Message> = (dims.iter())
            .map(|dim| match dim {
                Some(size) => Message::default().integer(1, *size as i64),
                None => Message::default().bytes(2, "batch"),
            })
            .collect();
        shaped = shaped.message(2, &Message::default().messages(1, &dims));
    }
    Message::default().bytes(1, name).message(2, &Message::default().message(1, &shaped))
}

impl Graph {
    fn into_message(self, name: &str) -> Message {
        Message::default()
            .messages(1, &self.nodes)
            .bytes(2, name)
            .messages(5, &self.constants)
            .messages(11, &self.inputs)
            .messages(12, &self.outputs)
    }

    fn input(&mut self, name: &str, kind: i64, dims: &[Option<usize>]) {
        self.inputs.push(value(name, kind, Some(dims)));
    }

    fn output(&mut self, name: &str, kind: i64, dims: &[Option<usize>]) {
        self.outputs.push(value(name, kind, Some(dims)));
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count)
    }

    /// Adds an operator without attributes, and gives the name of its value.
    fn add(&mut self, operator: &str, inputs: &[&str]) -> String {
        self.add_as(None, operator, inputs, &[])
    }

    /// Adds an operator whose value may have a name.
    fn add_as(
        &mut self,
        name: Option<&str>,
        operator: &str,
        inputs: &[&str],
        attributes: &[Message],
    ) -> String {
        let name = name.map_or_else(|| self.fresh(), str::to_owned);
        self.node(operator, inputs, &[&name], attributes);
        name
    }

    /// Adds an operator of several values.
    fn add_many(
        &mut self,
        count: usize,
        operator: &str,
        inputs: &[&str],
        attributes: &[Message],
    ) -> Vec<String> {
        let names: Vec<String> = (0..count).map(|_| self.fresh()).collect();
        let values: Vec<&str> = names.iter().map(String::as_str).collect();
        self.node(operator, inputs, &values, attributes);
        names
    }

    fn node(&mut self, operator: &str, inputs: &[&str], values: &[&str], attributes: &[Message]) {
        let node = inputs.iter().fold(Message::default(), |all, input| all.bytes(1, input));
        let node = values.iter().fold(node, |all, value| all.bytes(2, value));
        self.nodes.push(node.bytes(4, operator).messages(5, attributes));
    }

    /// The place of each text among the levels, or [`MISSING`] or [`UNKNOWN`]. // (batch, 1)
    fn looked_up(&mut self, texts: &str, levels: &[String]) -> String {
        const INTS: i64 = 7;
        const STRINGS: i64 = 8;
        let mut table: Vec<(&str, i64)> = levels.iter().map(String::as_str).zip(0..).collect();
        let is_level = |text: &str| levels.iter().any(|level| level == text);
        for text in TRUTHS.into_iter().filter(|text| !is_level(text)) {
            // A truth value is the same in upper and lower case.
            if let Some(place) = levels.iter().position(|level| level.eq_ignore_ascii_case(text)) {
                table.push((text, place as i64));
            }
        }
        table.extend(MISSING_TEXTS.into_iter().filter(|t| !is_level(t)).map(|t| (t, MISSING)));
        let named = |name: &str| Message::default().bytes(1, name);
        let keys = table.iter().fold(named("keys_strings"), |all, (text, _)| all.bytes(9, text));
        let places = table.iter().fold(named("values_int64s"), |all, (_, at)| all.integer(8, *at));
        let attributes = [
            keys.integer(20, STRINGS),
            places.integer(20, INTS),
            attribute("default_int64", UNKNOWN),
        ];
        let name = self.fresh();
        let node = Message::default().bytes(1, texts).bytes(2, &name).bytes(4, "LabelEncoder");
        self.nodes.push(node.messages(5, &attributes).bytes(7, LOOKUPS));
        name
    }

    fn cast(&mut self, from: &str, kind: i64) -> String {
        self.add_as(None, "Cast", &[from], &[attribute("to", kind)])
    }

    /// The sum of each row, as a column or as a list.
    fn sum_of_rows(&mut self, of: &str, column: bool) -> String {
        let axis = self.integers(&[1]);
        let keep = attribute("keepdims", i64::from(column));
        self.add_as(None, "ReduceSum", &[of, &axis], &[keep])
    }

    fn constant(&mut self, dims: &[usize], kind: i64, bytes: Vec<u8>) -> String {
        let name = self.fresh();
        self.constants.push(tensor(dims, kind, &name).bytes(9, bytes));
        name
    }

    fn doubles(&mut self, dims: &[usize], values: &[f64]) -> String {
        self.constant(dims, DOUBLE, little_endian(values.iter().map(|v| v.to_le_bytes())))
    }

    fn double(&mut self, value: f64) -> String {
        self.doubles(&[], &[value])
    }

    fn matrix(&mut self, matrix: &Matrix) -> String {
        self.doubles(&[matrix.rows(), matrix.cols()], matrix.as_slice())
    }

    fn integers(&mut self, values: &[i64]) -> String {
        let bytes = little_endian(values.iter().map(|v| v.to_le_bytes()));
        self.constant(&[values.len()], INT64, bytes)
    }

    fn integer(&mut self, value: i64) -> String {
        self.constant(&[], INT64, value.to_le_bytes().to_vec())
    }

    fn strings<'a>(&mut self, values: impl Iterator<Item = &'a str> + Clone) -> String {
        let name = self.fresh();
        let empty = tensor(&[values.clone().count()], STRING, &name);
        self.constants.push(values.fold(empty, |all, value| all.bytes(6, value)));
        name
    }

    /// The sum over all coordinates of the squared or absolute differences between rows and points, one coordinate after
    /// the other: no array is larger than the result. // (batch, count)
    fn sum_over_coordinates(
        &mut self,
        z: &str,
        points: &str,
        count: usize,
        differences: Differences,
    ) -> String {
        const TENSOR: i64 = 4;
        const GRAPH: i64 = 5;
        let size = self.add("Shape", &[z]);
        let first = self.integers(&[0]);
        let batch = self.add("Gather", &[&size, &first]);
        let count = self.integers(&[count as i64]);
        let shape = self.add_as(None, "Concat", &[&batch, &count], &[attribute("axis", 0)]);
        let zero = tensor(&[1], DOUBLE, "").bytes(9, 0_f64.to_le_bytes());
        let zero = Message::default().bytes(1, "value").message(5, &zero).integer(20, TENSOR);
        let zeros = self.add_as(None, "ConstantOfShape", &[&shape], &[zero]);
        let rows = self.add("Transpose", &[z]);
        let points = self.add("Transpose", &[points]);

        // Names within are not those without; the numbers go on, so that they differ.
        let mut body = Graph { count: self.count, ..Graph::default() };
        let [sum, row, point] = [body.fresh(), body.fresh(), body.fresh()];
        for name in [&sum, &row, &point] {
            body.inputs.push(value(name, DOUBLE, None));
        }
        let axis = body.integers(&[1]);
        let column = body.add("Unsqueeze", &[&row, &axis]);
        let difference = body.add("Sub", &[&column, &point]);
        let term = match differences {
            Differences::Squared => body.add("Mul", &[&difference, &difference]),
            Differences::Absolute => body.add("Abs", &[&difference]),
        };
        let next = body.add("Add", &[&sum, &term]);
        body.outputs.push(value(&next, DOUBLE, None));
        self.count = body.count;
        let body = body.into_message("coordinate");
        let body = Message::default().bytes(1, "body").message(6, &body).integer(20, GRAPH);
        let attributes = [body, attribute("num_scan_inputs", 2)];
        self.add_as(None, "Scan", &[&zeros, &rows, &points], &attributes)
    }
}
