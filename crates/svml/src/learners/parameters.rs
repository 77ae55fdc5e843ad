//! Parameters of methods. Each struct is declared once, by a macro that also makes its defaults and the
//! table for help texts and errors.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

/// One parameter of a method, for help texts and errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name, the same in Rust, in files and on the command line.
    pub name: &'static str,
    /// What a value must be.
    pub must_be: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// A struct of parameters.
pub trait Parameters: Default + Serialize + DeserializeOwned {
    /// All parameters, in the order of the struct.
    const TABLE: &'static [Parameter];

    /// Sets one parameter by its name. An unknown name or a value of the wrong type is an error that says
    /// what is allowed; ranges are checked later, when the data are known.
    fn set(&mut self, name: &str, value: Value) -> Result<()> {
        let bad = |value: &Value, bound: &str| {
            Error::parameter(name.to_owned(), plain(value), bound.to_owned())
        };
        let Some(parameter) = Self::TABLE.iter().find(|parameter| parameter.name == name) else {
            let known: Vec<&str> = Self::TABLE.iter().map(|parameter| parameter.name).collect();
            return Err(bad(&value, &format!("one of the parameters {}", known.join(", "))));
        };
        let mut all = to_json(self);
        all[name] = value.clone();
        *self = Self::deserialize(all).map_err(|_| bad(&value, parameter.must_be))?;
        Ok(())
    }
}

/// Parameters as a JSON object.
pub fn to_json(parameters: &impl Serialize) -> Value {
    // To serialise a struct of numbers, texts and lists cannot fail.
    serde_json::to_value(parameters).unwrap_or(Value::Null)
}

/// A value as a user would have written it: texts without quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value from text: `none` is null, a text that is valid JSON is the value it stands for, and any other
/// text is a string.
pub fn from_text(text: &str) -> Value {
    match text {
        "none" | "None" => Value::Null,
        _ => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

/// An error that names the parameter, its value and the bound, unless `ok`.
pub(crate) fn check(
    name: &'static str,
    value: &dyn std::fmt::Display,
    ok: bool,
    bound: &str,
) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::parameter(name, value, bound)) }
}

/// Refuses what is not a positive finite number.
pub(crate) fn check_positive(name: &'static str, value: f64) -> Result<()> {
    check(name, &value, value.is_finite() && value > 0.0, "positive and finite")
}

/// Refuses a tolerance that is not a finite number of at least 0.
pub(crate) fn check_tolerance(tolerance: f64) -> Result<()> {
    let fits = tolerance.is_finite() && tolerance >= 0.0;
    check("tolerance", &tolerance, fits, "finite and at least 0")
}

/// Refuses a rank, the number of rows of L, that is 0 or above the number of features.
pub(crate) fn check_rank(rank: Option<usize>, features: usize) -> Result<()> {
    let bound = format!("between 1 and the number of features, {features}");
    let inside = rank.is_none_or(|rank| (1..=features).contains(&rank));
    check("rank", &rank.unwrap_or(features), inside, &bound)
}

/// Declares a struct of parameters. Each has its documentation, which is also its help text, then its name,
/// type and default, and in words what a value must be. `alias` is its name in older model files, if that
/// was another.
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $(#[alias = $alias:literal])?
                $field:ident : $type:ty = $default:expr, $must_be:literal;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $(
                $(#[doc = $doc])+
                ///
                #[doc = concat!("Default: `", stringify!($default), "`.")]
                $(#[serde(alias = $alias)])?
                pub $field: $type,
            )+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $crate::learners::parameters::Parameters for $name {
            const TABLE: &'static [$crate::learners::parameters::Parameter] = &[
                $($crate::learners::parameters::Parameter {
                    name: stringify!($field),
                    must_be: $must_be,
                    help: concat!($($doc),+),
                },)+
            ];
        }
    };
}
pub(crate) use parameters;
