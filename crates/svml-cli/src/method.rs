//! Methods as the command line gives them: `--method` and `--methods`, and every option that sets a parameter.
//!
//! Names, parameters and texts of methods are the library's; this file only says which option sets which
//! parameter and in which order options count.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::{Map, Value, json};
use svml::{ClassWeight, Error, Form, FormChoice, Kernel, LandmarkChoice, Method, Svml};

use crate::args::Learning;
use crate::failure::Failure;
use crate::files;

/// A method as it was written, with what was made of it.
#[derive(Clone, Debug)]
pub struct MethodArg {
    /// The text, which is the name of the method in tables.
    pub text: String,
    /// The method, with the options of the command once [`set_options`] has been called.
    pub method: Method,
    /// The parameters that the text itself gives: of these the options of the command change none.
    given: Vec<&'static str>,
}

impl FromStr for MethodArg {
    type Err = Error;

    fn from_str(text: &str) -> svml::Result<Self> {
        let text = text.trim();
        let method: Method = text.parse()?;
        let names: Vec<&'static str> = method.parameters().iter().map(|p| p.name).collect();
        let items: Vec<&str> = text.split([':', ',', '+']).skip(1).collect();
        let in_text = |name: &str| {
            let by_name = |item: &&str| item.split_once('=').is_some_and(|(key, _)| key == name);
            // A form may stand for itself, as in svml:diagonal.
            let by_itself = |item: &&str| name == "form" && item.parse::<FormChoice>().is_ok();
            items.iter().any(|item| by_name(item) || by_itself(item))
        };
        let given = names.into_iter().filter(|name| in_text(name)).collect();
        Ok(Self { text: text.to_owned(), method, given })
    }
}

impl From<Method> for MethodArg {
    fn from(method: Method) -> Self {
        Self { text: method.to_string(), method, given: Vec::new() }
    }
}

impl MethodArg {
    /// Whether the method has a parameter of this name.
    pub fn has(&self, name: &str) -> bool {
        self.method.parameters().iter().any(|parameter| parameter.name == name)
    }
}

/// Several methods, separated by commas.
#[derive(Clone, Debug)]
pub struct MethodList(pub Vec<MethodArg>);

impl FromStr for MethodList {
    type Err = Error;

    /// Parameters of a method are separated by commas too. A comma is taken as the end of a method where the
    /// name of a method follows; one within brackets never is.
    fn from_str(text: &str) -> svml::Result<Self> {
        let (mut depth, mut start, mut parts) = (0_i32, 0, Vec::new());
        for (at, c) in text.char_indices() {
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth -= 1,
                ',' if depth == 0 => {
                    let next = text[at + 1..].split([':', ',', '+']).next().unwrap_or_default();
                    if next.trim().parse::<Method>().is_ok() {
                        parts.push(&text[start..at]);
                        start = at + 1;
                    }
                }
                _ => {}
            }
        }
        parts.push(&text[start..]);
        parts.into_iter().map(str::parse).collect::<svml::Result<_>>().map(Self)
    }
}

/// The value of a parameter.
enum Given {
    /// As the user has written it.
    Text(String),
    Json(Value),
}

/// One parameter that an option of the command sets.
struct Setting {
    /// The option, for messages.
    option: String,
    /// The parameter and its value; where a method has no such parameter, the next of the list.
    parameters: Vec<(String, Given)>,
    /// Whether it counts more than what the text of a method says.
    last: bool,
    /// Whether it suits methods that have no such parameter too.
    optional: bool,
}

impl Setting {
    fn new(option: &str, name: &str, value: Value) -> Self {
        let parameters = vec![(name.to_owned(), Given::Json(value))];
        Self { option: option.to_owned(), parameters, last: false, optional: false }
    }

    /// Sets the parameter in every method that has it. One that no method has is wrong usage.
    fn apply(&self, methods: &mut [MethodArg]) -> Result<(), Failure> {
        let mut found = self.optional;
        for method in methods.iter_mut() {
            let Some((name, value)) = self.parameters.iter().find(|(name, _)| method.has(name))
            else {
                continue;
            };
            found = true;
            if self.last || !method.given.contains(&name.as_str()) {
                match value {
                    Given::Text(text) => method.method.set(name, text),
                    Given::Json(value) => method.method.set_json(name, value),
                }
                .map_err(|e| Failure::parameter(&e))?;
            }
        }
        if found { Ok(()) } else { Err(self.refused(methods)) }
    }

    fn refused(&self, methods: &[MethodArg]) -> Failure {
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| name.as_str()).collect();
        let (option, names) = (&self.option, names.join(" or "));
        Failure::Usage(match methods {
            [only] => format!(
                "{option}: the method {0} has no parameter {names}; svml parameters {0} lists its parameters",
                only.text
            ),
            _ => {
                let texts: Vec<&str> = methods.iter().map(|m| m.text.as_str()).collect();
                format!(
                    "{option}: none of the methods {} has a parameter {names}; svml parameters METHOD lists the parameters of a method",
                    texts.join(", ")
                )
            }
        })
    }
}

/// The method of `svml train` with all options applied.
pub fn chosen(method: Option<&MethodArg>, learning: &Learning) -> Result<MethodArg, Failure> {
    let file = learning.params.as_deref().map(read_params).transpose()?;
    let base = match (&file, method) {
        (Some(Params::Whole(_)), Some(_)) => {
            return Err(whole_method(learning, "leave out --method"));
        }
        (Some(Params::Whole(_)), None) if learning.paper => {
            return Err(whole_method(learning, "leave out --paper"));
        }
        (Some(Params::Whole(whole)), None) => whole.as_ref().clone().into(),
        (_, Some(method)) => method.clone(),
        (_, None) => Method::default().into(),
    };
    let mut methods = [base];
    set_options(&mut methods, file.as_ref(), learning)?;
    let [method] = methods;
    Ok(method)
}

/// The methods of `svml compare` with all options applied, each where a method has such a parameter.
pub fn all_chosen(methods: &mut [MethodArg], learning: &Learning) -> Result<(), Failure> {
    let file = learning.params.as_deref().map(read_params).transpose()?;
    if matches!(file, Some(Params::Whole(_))) {
        return Err(whole_method(learning, "name the methods with --methods"));
    }
    set_options(methods, file.as_ref(), learning)
}

fn whole_method(learning: &Learning, way_out: &str) -> Failure {
    let file = learning.params.as_deref().unwrap_or_default();
    Failure::Usage(format!("--params {file}: the file holds a whole method; {way_out}"))
}

/// Applies the options: first --paper, then --params, then options for single parameters, then --set.
fn set_options(
    methods: &mut [MethodArg],
    file: Option<&Params>,
    learning: &Learning,
) -> Result<(), Failure> {
    if learning.paper {
        set_paper(methods)?;
    }
    let from_file = match file {
        Some(Params::Names(names)) => names.clone(),
        _ => Map::new(),
    };
    let option = format!("--params {}", learning.params.as_deref().unwrap_or_default());
    let from_file =
        from_file.iter().map(|(name, value)| Setting::new(&option, name, value.clone()));
    let last = learning.set.iter().map(|(name, value)| Setting {
        option: format!("--set {name}={value}"),
        parameters: vec![(name.clone(), Given::Text(value.clone()))],
        last: true,
        optional: false,
    });
    for setting in from_file.chain(dedicated(learning)).chain(last) {
        setting.apply(methods)?;
    }
    check_kernels(methods)
}

/// A kernel goes with a form that is given: the mean of several SVMs has kernels of its own.
fn check_kernels(methods: &[MethodArg]) -> Result<(), Failure> {
    for MethodArg { text, method, .. } in methods {
        if let Method::Svml(Svml { form: FormChoice::Auto, kernel, .. }) = method
            && *kernel != Kernel::Gaussian
        {
            return Err(Failure::Usage(format!(
                "the method {text} with kernel = {kernel} needs a form, such as --form diagonal: without one, the model is the mean of several SVMs, each with its own kernel"
            )));
        }
    }
    Ok(())
}

/// The parameters of the paper, for every method that has all of them.
fn set_paper(methods: &mut [MethodArg]) -> Result<(), Failure> {
    let paper = Method::from(Svml::paper());
    let parameters = paper.parameters();
    let mut found = false;
    for method in methods.iter_mut() {
        let own = method.method.parameters();
        if !parameters.iter().all(|parameter| own.contains(parameter)) {
            continue;
        }
        found = true;
        for name in parameters.iter().map(|p| p.name).filter(|name| !method.given.contains(name)) {
            let value = paper.get(name).unwrap_or_default();
            method.method.set(name, &value).map_err(|e| Failure::parameter(&e))?;
        }
    }
    if found {
        return Ok(());
    }
    let texts: Vec<&str> = methods.iter().map(|m| m.text.as_str()).collect();
    Err(Failure::Usage(format!(
        "--paper sets parameters of {}, but the method is {}",
        Method::default(),
        texts.join(", ")
    )))
}

/// The options that set one parameter each, if they are given.
fn dedicated(learning: &Learning) -> Vec<Setting> {
    let mut settings = Vec::new();
    if let Some(form) = learning.form {
        let option = format!("--form {form}");
        let mut setting = Setting::new(&option, "form", json!(form));
        // Learners that know no other form have a rank.
        if let FormChoice::Fixed(Form::Rank(rank)) = form {
            setting.parameters.push(("rank".to_owned(), Given::Json(json!(rank))));
        }
        settings.push(setting);
    }
    if let Some(kernel) = learning.kernel {
        settings.push(Setting::new(&format!("--kernel {kernel}"), "kernel", json!(kernel)));
    }
    if let Some(criterion) = learning.criterion {
        let option = format!("--criterion {criterion}");
        settings.push(Setting::new(&option, "criterion", json!(criterion)));
    }
    if let Some(weight) = &learning.class_weight {
        settings.push(Setting::new("--class-weight", "class_weight", json!(weight)));
    }
    if learning.exact {
        settings.push(Setting::new("--exact", "landmarks", json!(LandmarkChoice::Exact)));
    }
    if let Some(landmarks) = learning.landmarks {
        let option = format!("--landmarks {landmarks}");
        settings.push(Setting::new(&option, "landmarks", json!(landmarks)));
    }
    if let Some(bytes) = learning.memory_limit {
        settings.push(Setting::new("--memory-limit", "memory_limit", json!(bytes)));
    }
    if let Some(seed) = learning.seed {
        // A method that draws nothing at random needs no seed.
        settings.push(Setting { optional: true, ..Setting::new("--seed", "seed", json!(seed)) });
    }
    settings
}

/// What a file of parameters holds.
enum Params {
    /// Names and values.
    Names(Map<String, Value>),
    /// A method with all of its parameters, as model reports have it.
    Whole(Box<Method>),
}

/// Reads a file of parameters.
fn read_params(name: &str) -> Result<Params, Failure> {
    let (shown, text) = files::text(name)?;
    let bad = |why: String| Failure::Usage(format!("--params {shown}: {why}"));
    let value: Value =
        serde_json::from_str(&text).map_err(|e| bad(format!("not valid JSON: {e}")))?;
    let Value::Object(mut fields) = value else {
        return Err(bad("the file must hold a JSON object of names and values".to_owned()));
    };
    // What svml show --json prints has the method under this name.
    if let Some(method) = fields.remove("method") {
        let method =
            serde_json::from_value(method).map_err(|e| bad(format!("not a usable method: {e}")))?;
        return Ok(Params::Whole(Box::new(method)));
    }
    // The values of parameters are no objects, with one exception.
    let nested = |(name, value): (&String, &Value)| value.is_object() && name != "class_weight";
    match serde_json::from_value(Value::Object(fields.clone())) {
        Ok(method) => Ok(Params::Whole(Box::new(method))),
        Err(error) if fields.iter().any(nested) => {
            Err(bad(format!("not a usable method: {error}")))
        }
        Err(_) => Ok(Params::Names(fields)),
    }
}

/// How a method is written, with what each is in the library's words.
pub fn help() -> String {
    let mut text = String::from(
        "Method to fit, written as NAME or NAME:PARAMETER=VALUE,PARAMETER=VALUE,...\n\n",
    );
    for name in Method::learner_names().chain(["euclidean", "knn", "fixed"]) {
        if let Ok(method) = name.parse::<Method>() {
            text.push_str(&format!("- {name}: {}\n", method.description()));
        }
    }
    text.push_str(
        "\nA metric learner can also be followed by nearest neighbours, as in nca+knn, or by nothing, as in nca+none, \
         which maps rows but cannot classify them. Examples with parameters: svml:diagonal, \
         svml:lambda=0.1,seed=3, nca:rank=2+knn:k=5. Parameters written here take precedence over other options, \
         except --set. `svml parameters METHOD` explains all parameters of a method.\n\n[default: svml]",
    );
    text
}

/// Weights of the classes from text: a word, or pairs such as `yes=5,no=1`.
pub fn class_weight(text: &str) -> Result<ClassWeight, String> {
    match text {
        "none" => return Ok(ClassWeight::None),
        "balanced" => return Ok(ClassWeight::Balanced),
        _ => {}
    }
    let pair = |pair: &str| -> Option<(String, f64)> {
        // A class may have an equals sign in its name, a number has none.
        let (class, weight) = pair.rsplit_once('=')?;
        Some((class.trim().to_owned(), weight.trim().parse().ok()?))
    };
    let pairs: Option<BTreeMap<String, f64>> = text.split(',').map(pair).collect();
    pairs.map(ClassWeight::Given).ok_or_else(|| {
        "it must be none, balanced, or pairs CLASS=WEIGHT separated by commas, such as yes=5,no=1"
            .to_owned()
    })
}

/// A number of bytes from text such as `4GiB`, `500MB` or `1000000`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: Option<u64> = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "tb" => Some(1_000_000_000_000),
        "kib" => Some(1 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        "tib" => Some(1 << 40),
        _ => None,
    };
    let bytes = number.parse::<f64>().ok().zip(factor).map(|(n, factor)| n * factor as f64);
    // Below 2^64; conversions of floating-point numbers saturate in any case.
    bytes.filter(|bytes| *bytes >= 1.0 && *bytes < 1.8e19).map(|bytes| bytes as u64).ok_or_else(
        || "it must be a number of bytes, with or without a unit, such as 4GiB or 500MB".to_owned(),
    )
}

/// NAME=VALUE taken apart.
pub fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("it must be NAME=VALUE, such as lambda=0.1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn texts(list: &str) -> Vec<String> {
        list.parse::<MethodList>().unwrap().0.into_iter().map(|method| method.text).collect()
    }

    #[test]
    fn a_comma_ends_a_method_where_another_begins() {
        assert_eq!(texts("svml,nca"), ["svml", "nca"]);
        assert_eq!(
            texts("svml:lambda=0.1,seed=3,nca:rank=2+knn:k=5, knn,svml:diagonal"),
            ["svml:lambda=0.1,seed=3", "nca:rank=2+knn:k=5", "knn", "svml:diagonal"]
        );
        assert_eq!(
            texts("euclidean:widths=[1,2],folds=3,itml+none"),
            ["euclidean:widths=[1,2],folds=3", "itml+none"]
        );
        let error = "svml,magic".parse::<MethodList>().unwrap_err().to_string();
        assert!(error.contains("svml,magic"), "{error}");
    }

    #[test]
    fn the_text_of_a_method_tells_which_parameters_it_gives() {
        let given = |text: &str| text.parse::<MethodArg>().unwrap().given;
        assert!(given("svml").is_empty());
        assert_eq!(given("svml:auto"), ["form"]);
        assert_eq!(given("svml:rank=2,lambda=0.1"), ["form", "lambda"]);
        assert_eq!(given("nca:rank=2+svm:folds=3"), ["rank", "folds"]);
    }

    #[test]
    fn bytes_have_units() {
        for (text, expected) in [
            ("12", Some(12)),
            ("4GiB", Some(4 << 30)),
            ("500MB", Some(500_000_000)),
            ("1.5 kib", Some(1536)),
            ("2 TB", Some(2_000_000_000_000)),
            ("", None),
            ("0", None),
            ("-1", None),
            ("4 gigs", None),
            ("1e99", None),
            ("99999999999TiB", None),
        ] {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn class_weights_are_words_or_pairs() {
        assert_eq!(class_weight("balanced"), Ok(ClassWeight::Balanced));
        let given = class_weight("yes=5, a=b=0.5").unwrap();
        let expected = BTreeMap::from([("yes".to_owned(), 5.0), ("a=b".to_owned(), 0.5)]);
        assert_eq!(given, ClassWeight::Given(expected));
        assert!(class_weight("heavy").is_err());
        assert!(class_weight("yes=much").is_err());
    }
}
