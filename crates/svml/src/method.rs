//! What can be fitted. `model/fit.rs` is the one place that knows what to do with each method.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::data::{ClassWeight, Dataset, Sample};
use crate::error::{Error, Result};
use crate::grid_search::GridSearch;
use crate::learners::itml::ItmlOfPairs;
use crate::learners::parameters::{Parameters, check, from_text, parameters, plain, to_json};
use crate::learners::{Itml, Learned, Learner, Lmnn, Nca, Parameter, Pca};
use crate::run::{Key, Run};
use crate::svml::{COST_RANGE, FormChoice, Svml};

/// A way to get a model from data: chosen in a program, on a command line or in a file.
///
/// As text a method is a name, its parameters after a colon, and what follows a metric after a plus:
///
/// ```text
/// svml                          support vector metric learning with its defaults
/// svml:diagonal                 the same with the form of L given
/// svml:lambda=0.1,seed=3        the same with other parameters
/// euclidean:folds=3             Euclidean SVM, width and C from a grid
/// nca:rank=2                    the metric of NCA, then an SVM with width and C from a grid
/// nca:rank=2+knn:k=5            the metric of NCA, then the 5 nearest neighbours
/// nca:rank=2+none               the metric alone
/// knn:k=3                       nearest neighbours in the Euclidean metric
/// fixed:gamma=0.1,cost=1        the kernel exp(-gamma |x - z|^2) on features as they are
/// ```
///
/// ```
/// use svml::learners::Nca;
/// use svml::{GridSearch, Method, Svml};
///
/// let method: Method = "nca:rank=2".parse()?;
/// assert_eq!(method, Method::svm_after(Nca { rank: Some(2), ..Nca::default() }));
/// assert_eq!(method.to_string(), "nca:rank=2");
/// assert_eq!(Method::from(Svml::default()).to_string(), "svml");
/// assert_eq!(Method::from(GridSearch::default()).to_string(), "euclidean");
/// # Ok::<(), svml::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Method {
    /// Support vector metric learning: metric, C and SVM together.
    Svml(Svml),
    /// Euclidean metric, width and C from a cross-validated grid, then an SVM.
    Euclidean(GridSearch),
    /// The kernel exp(-gamma |x - z|^2) on features as they are, not standardised: LIBSVM's own way.
    #[serde(alias = "given")]
    Fixed(Fixed),
    /// A learned metric, then an SVM in the mapped space with width and C from a cross-validated grid.
    #[serde(alias = "after")]
    SvmAfter {
        /// What learns the metric.
        learner: AnyLearner,
        /// The grid.
        grid: GridSearch,
    },
    /// The k nearest neighbours, in a learned metric or in the Euclidean one.
    Neighbours {
        /// What learns the metric; none: Euclidean distances of standardised columns.
        learner: Option<AnyLearner>,
        /// How many vote.
        knn: Knn,
    },
    /// A learned metric alone: the model maps rows and cannot classify.
    Metric(AnyLearner),
}

parameters! {
    /// Parameters of an SVM whose width, and perhaps C, is given.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Fixed {
        /// gamma of the kernel exp(-gamma |x - z|^2), on the original features.
        gamma: f64 = 1.0, "a positive number";
        /// C; none: chosen from the costs of the default grid by cross-validation.
        cost: Option<f64> = None, "a number between 0.001 and 10000, or none";
        /// Class weights: none, balanced, or a weight for each named class.
        class_weight: ClassWeight = ClassWeight::None, "none, balanced, or {\"given\": {\"CLASS\": WEIGHT, ..}}";
        /// Limit in bytes for the kernel matrix and its factorisation; none: no more than three quarters of the free
        /// memory.
        memory_limit: Option<u64> = None, "none or a number of bytes";
    }
}

parameters! {
    /// Parameters of the nearest-neighbour classifier.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Knn {
        /// Number of neighbours that vote.
        k: usize = 3, "an integer of at least 1";
    }
}

impl Fixed {
    pub(crate) fn validate(&self) -> Result<()> {
        let (low, high) = COST_RANGE;
        let cost = self.cost.unwrap_or(1.0);
        for (name, value, range) in
            [("gamma", self.gamma, 1e-100..=1e100), ("cost", cost, low..=high)]
        {
            let bound = format!("between {:e} and {:e}", range.start(), range.end());
            check(name, &value, range.contains(&value), &bound)?;
        }
        Ok(())
    }
}

/// A learner that is known by name.
struct BuiltIn {
    name: &'static str,
    parameters: &'static [Parameter],
    /// Makes it from a JSON object; parameters that are not there have their defaults.
    read: fn(Value) -> serde_json::Result<AnyLearner>,
}

impl BuiltIn {
    const fn new<P: Parameters + Learner + 'static>(name: &'static str) -> Self {
        let read = |value| serde_json::from_value::<P>(value).map(AnyLearner::from);
        Self { name, parameters: P::TABLE, read }
    }

    fn named(name: &str) -> Option<&'static Self> {
        LEARNERS.iter().find(|learner| learner.name == name)
    }
}

/// The learners that are known by name: the one place where a built-in learner is entered.
static LEARNERS: [BuiltIn; 5] = [
    BuiltIn::new::<Svml>("svml"),
    BuiltIn::new::<Pca>("pca"),
    BuiltIn::new::<Nca>("nca"),
    BuiltIn::new::<Lmnn>("lmnn"),
    BuiltIn::new::<Itml>("itml"),
];

/// Any learner, shared. Two are equal if name and parameters are.
#[derive(Clone, Debug)]
pub struct AnyLearner(Arc<dyn Learner>);

impl<L: Learner + 'static> From<L> for AnyLearner {
    fn from(learner: L) -> Self {
        Self(Arc::new(learner))
    }
}

impl Deref for AnyLearner {
    type Target = dyn Learner;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for AnyLearner {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.parameters() == other.parameters()
    }
}

/// As `{"nca": {"rank": 2, ..}}`.
impl Serialize for AnyLearner {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        Map::from_iter([(self.name().to_owned(), self.parameters())]).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for AnyLearner {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        use serde::de::Error as _;
        let named = Map::deserialize(from)?;
        let mut entries = named.into_iter();
        let (Some((name, parameters)), None) = (entries.next(), entries.next()) else {
            return Err(D::Error::custom("a learner is an object of one name"));
        };
        Self::stored(&name, parameters).map_err(D::Error::custom)
    }
}

impl AnyLearner {
    /// A built-in learner by its name, with its defaults.
    fn named(name: &str) -> Option<Self> {
        (BuiltIn::named(name)?.read)(Value::Object(Map::new())).ok()
    }

    /// A learner from a file. One that is not built in is kept by name and parameters.
    fn stored(name: &str, parameters: Value) -> serde_json::Result<Self> {
        match BuiltIn::named(name) {
            Some(known) => (known.read)(parameters),
            None if name == ItmlOfPairs::NAME => {
                serde_json::from_value(parameters).map(|itml| ItmlOfPairs(itml).into())
            }
            None => Ok(Foreign { name: name.to_owned(), parameters }.into()),
        }
    }

    /// Its parameters; of a learner that is not built in nothing is known of them.
    fn table(&self) -> &'static [Parameter] {
        BuiltIn::named(self.name()).map_or(&[], |learner| learner.parameters)
    }

    /// Sets a parameter that it has.
    fn set(&mut self, parameter: &Parameter, value: Value) -> Result<()> {
        let mut all = self.parameters();
        all[parameter.name] = value.clone();
        *self = Self::stored(self.name(), all)
            .map_err(|_| Error::parameter(parameter.name, plain(&value), parameter.must_be))?;
        Ok(())
    }
}

/// A learner of another program, known from a model file.
#[derive(Debug)]
struct Foreign {
    name: String,
    parameters: Value,
}

impl Learner for Foreign {
    fn name(&self) -> &str {
        &self.name
    }

    fn parameters(&self) -> Value {
        self.parameters.clone()
    }

    fn learn(&self, _: &Sample<'_>, _: &mut Run<'_>) -> Result<Learned> {
        Err(Error::Unsupported(format!(
            "the learner {} is not part of this program: the model can be used, but it cannot be fitted again",
            self.name
        )))
    }
}

impl From<Svml> for Method {
    fn from(svml: Svml) -> Self {
        Self::Svml(svml)
    }
}

impl From<GridSearch> for Method {
    fn from(grid: GridSearch) -> Self {
        Self::Euclidean(grid)
    }
}

impl From<Fixed> for Method {
    fn from(fixed: Fixed) -> Self {
        Self::Fixed(fixed)
    }
}

impl From<&Svml> for Method {
    fn from(svml: &Svml) -> Self {
        svml.clone().into()
    }
}

impl From<&GridSearch> for Method {
    fn from(grid: &GridSearch) -> Self {
        grid.clone().into()
    }
}

impl From<&Method> for Method {
    fn from(method: &Method) -> Self {
        method.clone()
    }
}

impl Default for Method {
    /// Support vector metric learning with its defaults.
    fn default() -> Self {
        Self::Svml(Svml::default())
    }
}

/// One part of a method, with parameters of its own.
enum Part<'a> {
    Svml(&'a mut Svml),
    Grid(&'a mut GridSearch),
    Fixed(&'a mut Fixed),
    Knn(&'a mut Knn),
    Learner(&'a mut AnyLearner),
}

impl Part<'_> {
    fn table(&self) -> &'static [Parameter] {
        match self {
            Self::Svml(_) => Svml::TABLE,
            Self::Grid(_) => GridSearch::TABLE,
            Self::Fixed(_) => Fixed::TABLE,
            Self::Knn(_) => Knn::TABLE,
            Self::Learner(learner) => learner.table(),
        }
    }

    fn set(&mut self, parameter: &Parameter, value: Value) -> Result<()> {
        if value.is_null() && self.set_to(parameter, Value::Null).is_ok() {
            return Ok(());
        }
        // The text `none` reads as nothing; for a parameter of words it is the word.
        let value = if value.is_null() { Value::from("none") } else { value };
        self.set_to(parameter, value)
    }

    fn set_to(&mut self, parameter: &Parameter, value: Value) -> Result<()> {
        match self {
            Self::Svml(svml) => svml.set(parameter.name, value),
            Self::Grid(grid) => grid.set(parameter.name, value),
            Self::Fixed(fixed) => fixed.set(parameter.name, value),
            Self::Knn(knn) => knn.set(parameter.name, value),
            Self::Learner(learner) => learner.set(parameter, value),
        }
    }
}

/// What a comparison of methods on random splits of data depends on, in keys: the data; the methods and the seed.
pub fn keys_of_comparison(data: &Dataset, methods: &[&Method], seed: u64) -> (Key, Key) {
    let key = Key::new("comparison").places(&[methods.len()]).text(&seed.to_string());
    (data.key(), methods.iter().fold(key, |key, method| key.then(method.key())))
}

impl Method {
    /// All that a model depends on besides the data, in a key. A limit on memory is not part of it, so that a fit that was
    /// killed for lack of memory can go on with less: what it changes, the number of landmarks, is in the keys of results.
    pub(crate) fn key(&self) -> Key {
        fn without_limits(value: &mut Value) {
            if let Value::Object(fields) = value {
                fields.remove("memory_limit");
                fields.values_mut().for_each(without_limits);
            }
        }
        let mut value = to_json(self);
        without_limits(&mut value);
        Key::new("method").text(&value.to_string())
    }

    /// The most bytes of a fit, where that was given.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        match self {
            Self::Svml(svml) => svml.memory_limit,
            Self::Euclidean(grid) | Self::SvmAfter { grid, .. } => grid.memory_limit,
            Self::Fixed(fixed) => fixed.memory_limit,
            Self::Neighbours { .. } | Self::Metric(_) => None,
        }
    }

    /// The metric of a learner, then an SVM with width and C from the default grid.
    pub fn svm_after(learner: impl Into<AnyLearner>) -> Self {
        Self::SvmAfter { learner: learner.into(), grid: GridSearch::default() }
    }

    /// The metric of a learner, then the `k` nearest neighbours.
    pub fn neighbours_after(learner: impl Into<AnyLearner>, k: usize) -> Self {
        Self::Neighbours { learner: Some(learner.into()), knn: Knn { k } }
    }

    /// The `k` nearest neighbours in the Euclidean metric.
    pub fn neighbours(k: usize) -> Self {
        Self::Neighbours { learner: None, knn: Knn { k } }
    }

    /// The metric of a learner and nothing else.
    pub fn metric(learner: impl Into<AnyLearner>) -> Self {
        Self::Metric(learner.into())
    }

    /// The names of the learners that text may name.
    pub fn learner_names() -> impl Iterator<Item = &'static str> {
        LEARNERS.iter().map(|learner| learner.name)
    }

    fn parts(&mut self) -> Vec<Part<'_>> {
        match self {
            Self::Svml(svml) => vec![Part::Svml(svml)],
            Self::Euclidean(grid) => vec![Part::Grid(grid)],
            Self::Fixed(fixed) => vec![Part::Fixed(fixed)],
            Self::SvmAfter { learner, grid } => vec![Part::Learner(learner), Part::Grid(grid)],
            Self::Neighbours { learner: None, knn } => vec![Part::Knn(knn)],
            Self::Neighbours { learner: Some(learner), knn } => {
                vec![Part::Learner(learner), Part::Knn(knn)]
            }
            Self::Metric(learner) => vec![Part::Learner(learner)],
        }
    }

    /// Sets a parameter from text, such as `lambda` to `0.1`. What reads as JSON is taken as that. A name that
    /// several parts of the method have, such as `seed`, is set in all of them.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        self.set_json(name, &from_text(value))
    }

    /// As [`Method::set`], from a JSON value.
    pub fn set_json(&mut self, name: &str, value: &Value) -> Result<()> {
        let mut found = false;
        for mut part in self.parts() {
            if let Some(parameter) = part.table().iter().find(|parameter| parameter.name == name) {
                part.set(parameter, value.clone())?;
                found = true;
            }
        }
        if found {
            return Ok(());
        }
        let known: Vec<&str> = self.parameters().iter().map(|parameter| parameter.name).collect();
        let bound = format!("a parameter of {self}, which are {}", known.join(", "));
        Err(Error::parameter("parameter", name, bound))
    }

    /// All parameters that can be set.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut all: Vec<Parameter> = Vec::new();
        for part in self.clone().parts() {
            let new = part.table().iter().filter(|new| all.iter().all(|old| old.name != new.name));
            all.extend(new.copied().collect::<Vec<_>>());
        }
        all
    }

    /// The value of a parameter, as text that [`Method::set`] takes.
    pub fn get(&self, name: &str) -> Option<String> {
        self.parameters_json().get(name).map(text_of)
    }

    /// The values of all parameters, as a JSON object; of a name that several parts have, that of the first.
    pub fn parameters_json(&self) -> Map<String, Value> {
        let parts = match self {
            Self::Svml(svml) => vec![to_json(svml)],
            Self::Euclidean(grid) => vec![to_json(grid)],
            Self::Fixed(fixed) => vec![to_json(fixed)],
            Self::SvmAfter { learner, grid } => vec![learner.parameters(), to_json(grid)],
            Self::Neighbours { learner, knn } => {
                let learner = learner.as_ref().map(|learner| learner.parameters());
                learner.into_iter().chain([to_json(knn)]).collect()
            }
            Self::Metric(learner) => vec![learner.parameters()],
        };
        let mut all = Map::new();
        for (name, value) in parts.iter().filter_map(Value::as_object).flatten() {
            all.entry(name).or_insert_with(|| value.clone());
        }
        all
    }

    /// Most steps of learning for each form that is tried, and how many forms these are; 0 where nothing is
    /// learned step by step.
    pub fn max_steps(&self) -> (usize, usize) {
        match self {
            Self::Svml(svml) if svml.form == FormChoice::Auto => (svml.max_iterations, 3),
            Self::Svml(svml) => (svml.max_iterations, 1),
            Self::SvmAfter { learner, .. }
            | Self::Neighbours { learner: Some(learner), .. }
            | Self::Metric(learner) => (learner.max_steps().unwrap_or(0), 1),
            Self::Euclidean(_) | Self::Fixed(_) | Self::Neighbours { learner: None, .. } => (0, 1),
        }
    }

    /// What it does, in words.
    pub fn description(&self) -> String {
        let settings = |grid: &GridSearch| {
            let (count, folds) = (grid.widths.len() * grid.costs.len(), grid.folds);
            format!("width and C by {folds}-fold cross-validation on {count} settings")
        };
        match self {
            Self::Svml(svml) => format!("{}, criterion {}", svml.title(), svml.criterion),
            Self::Euclidean(grid) => format!("Euclidean SVM, {}", settings(grid)),
            Self::Fixed(fixed) => format!(
                "no learning: kernel exp(-gamma |x - z|^2) with given gamma = {}",
                fixed.gamma
            ),
            Self::SvmAfter { learner, grid } => {
                format!("{}, then an SVM, {}", learner.title(), settings(grid))
            }
            Self::Neighbours { learner, knn } => {
                let metric = learner.as_ref().map_or("Euclidean metric", |learner| learner.title());
                format!("{metric}, then the {} nearest neighbours", knn.k)
            }
            Self::Metric(learner) => format!("{}, without a classifier", learner.title()),
        }
    }
}

/// A value as text that reads back as the same.
fn text_of(value: &Value) -> String {
    if value.is_null() { "none".to_owned() } else { plain(value) }
}

/// A name with the parameters that differ from the defaults.
fn named(name: &str, parameters: &Value, defaults: &Value) -> String {
    let empty = Map::new();
    let changed: Vec<String> = (parameters.as_object().unwrap_or(&empty).iter())
        .filter(|(key, value)| defaults.get(key) != Some(value))
        .map(|(key, value)| match key.as_str() {
            "form" => text_of(value),
            _ => format!("{key}={}", text_of(value)),
        })
        .collect();
    if changed.is_empty() { name.to_owned() } else { format!("{name}:{}", changed.join(",")) }
}

fn text_with<P: Parameters>(name: &str, parameters: &P) -> String {
    named(name, &to_json(parameters), &to_json(&P::default()))
}

impl fmt::Display for AnyLearner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let defaults = Self::named(self.name()).map_or(Value::Null, |learner| learner.parameters());
        f.write_str(&named(self.name(), &self.parameters(), &defaults))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Svml(svml) => text_with("svml", svml),
            Self::Euclidean(grid) => text_with("euclidean", grid),
            Self::Fixed(fixed) => text_with("fixed", fixed),
            // An SVM follows svml anyway, so it has to be said where it comes from a grid.
            Self::SvmAfter { learner, grid } if *grid == GridSearch::default() => {
                let then = if learner.name() == "svml" { "+svm" } else { "" };
                format!("{learner}{then}")
            }
            Self::SvmAfter { learner, grid } => format!("{learner}+{}", text_with("svm", grid)),
            Self::Neighbours { learner: None, knn } => text_with("knn", knn),
            Self::Neighbours { learner: Some(learner), knn } => {
                format!("{learner}+{}", text_with("knn", knn))
            }
            Self::Metric(learner) => format!("{learner}+none"),
        };
        // So that a table can give it a width.
        f.pad(&text)
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (first, then) = match places(text, '+').first() {
            Some(&at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let (name, items) = name_and_items(first)?;
        let learner = || -> Result<AnyLearner> {
            let mut learner = AnyLearner::named(name).ok_or_else(|| unknown(text))?;
            set_items(&mut [Part::Learner(&mut learner)], name, &items)?;
            Ok(learner)
        };
        let Some(then) = then else {
            let mut method = match name {
                "svml" => Self::Svml(Svml::default()),
                "euclidean" => Self::Euclidean(GridSearch::default()),
                "fixed" => Self::Fixed(Fixed::default()),
                "knn" => Self::neighbours(Knn::default().k),
                _ => return Ok(Self::svm_after(learner()?)),
            };
            set_items(&mut method.parts(), name, &items)?;
            return Ok(method);
        };
        let (name, items) = name_and_items(then)?;
        match name {
            "svm" => {
                let mut grid = GridSearch::default();
                set_items(&mut [Part::Grid(&mut grid)], name, &items)?;
                Ok(Self::SvmAfter { learner: learner()?, grid })
            }
            "knn" => {
                let mut knn = Knn::default();
                set_items(&mut [Part::Knn(&mut knn)], name, &items)?;
                Ok(Self::Neighbours { learner: Some(learner()?), knn })
            }
            "none" if items.is_empty() => Ok(Self::Metric(learner()?)),
            _ => Err(unknown(text)),
        }
    }
}

fn unknown(text: &str) -> Error {
    let learners: Vec<&str> = Method::learner_names().filter(|name| *name != "svml").collect();
    Error::parameter(
        "method",
        text,
        format!(
            "svml, svml:FORM, euclidean, knn, fixed, or a learner ({}), alone or with +svm, +knn or +none; parameters follow a colon, as in nca:rank=2",
            learners.join(", ")
        ),
    )
}

/// Where a separator stands outside of brackets; within them are values as JSON, such as `[1,3e+40]`.
fn places(text: &str, separator: char) -> Vec<usize> {
    let mut depth = 0_i32;
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            _ if c == separator && depth == 0 => found.push(at),
            _ => {}
        }
    }
    found
}

/// `name:key=value,key=value` taken apart.
fn name_and_items(text: &str) -> Result<(&str, Vec<&str>)> {
    let Some((name, items)) = text.split_once(':') else {
        return Ok((text, Vec::new()));
    };
    let (mut start, mut parts) = (0, Vec::new());
    for at in places(items, ',') {
        parts.push(&items[start..at]);
        start = at + 1;
    }
    parts.push(&items[start..]);
    if parts.iter().any(|part| part.is_empty()) {
        return Err(unknown(text));
    }
    Ok((name, parts))
}

/// Sets `key=value` items; a form of L may stand for itself where there is such a parameter.
fn set_items(parts: &mut [Part<'_>], name: &str, items: &[&str]) -> Result<()> {
    for item in items {
        let has = |key: &str| {
            parts.iter().any(|part| part.table().iter().any(|parameter| parameter.name == key))
        };
        let (key, value) = match item.split_once('=') {
            Some((key, value)) if has(key) => (key, value),
            _ if has("form") && item.parse::<FormChoice>().is_ok() => ("form", *item),
            _ => {
                let known: Vec<&str> =
                    parts.iter().flat_map(|part| part.table()).map(|p| p.name).collect();
                let bound =
                    format!("PARAMETER=VALUE with a parameter of {name}: {}", known.join(", "));
                return Err(Error::parameter("method", *item, bound));
            }
        };
        for part in parts.iter_mut() {
            if let Some(parameter) = part.table().iter().find(|parameter| parameter.name == key) {
                part.set(parameter, from_text(value))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Form;

    #[test]
    fn text_reads_back_as_the_same_method() {
        for text in [
            "svml",
            "svml:diagonal",
            "svml:rank=2,lambda=0.1,seed=3",
            "svml:criterion=leave_one_out",
            "euclidean",
            "euclidean:folds=3,widths=[1.0,2.0]",
            "pca:rank=3",
            "nca",
            "nca:rank=2",
            "lmnn:init=scaled,mu=0.5",
            "nca:init={\"given\":[[0.5,-1e-20],[3e40,0.1]]}+none",
            "itml:bounds=[1.0,2.0]",
            "itml+svm:folds=1",
            "nca:rank=2+knn",
            "nca+knn:k=5",
            "knn:k=7",
            "svml+none",
            "svml+svm",
            "nca:rank=2+none",
            "fixed:cost=1.0,gamma=0.5",
        ] {
            let method: Method = text.parse().unwrap();
            let back: Method = method.to_string().parse().unwrap();
            assert_eq!(back, method, "{text}");
            let json = serde_json::to_string(&method).unwrap();
            assert_eq!(serde_json::from_str::<Method>(&json).unwrap(), method, "{text}");
            assert!(!method.description().is_empty());
        }
        let rank: Method = "svml:rank=2".parse().unwrap();
        assert_eq!(rank, Svml { form: Form::Rank(2).into(), ..Svml::default() }.into());
    }

    #[test]
    fn bad_text_is_refused_with_what_would_do() {
        for (text, part) in [
            ("nothing", "euclidean"),
            ("svml:hexagon", "lambda"),
            ("nca:rank=two", "an integer"),
            ("nca:neighbours=3", "tolerance"),
            ("nca+forest", "+knn"),
            ("nca:", "nca:rank=2"),
            ("", "svml"),
            ("euclidean:diagonal", "folds"),
            ("euclidean+knn", "learner"),
            ("nca+none:k=1", "learner"),
        ] {
            let error = text.parse::<Method>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_parameter_is_set_in_every_part_that_has_it() {
        let mut method: Method = "itml".parse().unwrap();
        method.set("seed", "7").unwrap();
        method.set("pairs", "50").unwrap();
        method.set("pairs", "none").unwrap();
        method.set("class_weight", "balanced").unwrap();
        let Method::SvmAfter { learner, grid } = &method else { panic!() };
        assert_eq!((learner.parameters()["seed"].as_u64(), grid.seed), (Some(7), 7));
        assert_eq!(grid.class_weight, ClassWeight::Balanced);
        method.set("class_weight", "none").unwrap();
        assert_eq!(method.get("class_weight").as_deref(), Some("none"));
        assert_eq!(method.get("pairs").as_deref(), Some("none"));
        assert_eq!(method.get("folds").as_deref(), Some("5"));
        let error = method.set("lambda", "1").unwrap_err().to_string();
        assert!(error.contains("memory_limit") && error.contains("bounds"), "{error}");
        assert!(method.set("folds", "many").is_err());
    }

    /// Learners are equal if name and parameters are; text that names several is none.
    #[test]
    fn learners_are_told_apart_by_name_and_parameters() {
        let of = |text: &str| text.parse::<Method>().unwrap();
        assert_ne!(of("nca+none"), of("lmnn+none"));
        assert_ne!(of("nca:rank=1+none"), of("nca:rank=2+none"));
        for bad in [r#"{}"#, r#"{"nca": {}, "lmnn": {}}"#] {
            let error = serde_json::from_str::<AnyLearner>(bad).unwrap_err().to_string();
            assert!(error.contains("an object of one name"), "{error}");
        }
        // Of pairs, and of a program of one's own.
        for (name, parameters) in [("itml_pairs", "{}"), ("mine", r#"{"a": 1}"#)] {
            let text = format!("{{\"{name}\": {parameters}}}");
            assert_eq!(serde_json::from_str::<AnyLearner>(&text).unwrap().name(), name);
        }
    }

    #[test]
    fn steps_of_each_form_that_is_tried() {
        let of = |text: &str| text.parse::<Method>().unwrap().max_steps();
        assert_eq!(of("svml:max_iterations=7"), (7, 3));
        assert_eq!(of("svml:diagonal,max_iterations=7"), (7, 1));
        assert_eq!(of("euclidean").0, 0);
    }
}
