//! The methods that can be trained and compared: the one place where a learner is plugged in.

use std::fmt;
use std::str::FromStr;

use svml::learn::Control;
use svml::optimise::Optimiser;
use svml::params::ClassWeight;
use svml::{Dataset, Error, Form, Grid, Model, Params};

use crate::args::{Learning, Weights};

/// A method, and perhaps its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Support vector metric learning, in a form of its own if one is given.
    Svml(Option<Form>),
    /// The Euclidean machine with cross-validation.
    Euclidean,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Svml(None) => f.write_str("svml"),
            Self::Svml(Some(form)) => write!(f, "svml:{form}"),
            Self::Euclidean => f.write_str("euclidean"),
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> svml::Result<Self> {
        match text.split_once(':') {
            Some(("svml", form)) => Ok(Self::Svml(Some(form.parse()?))),
            None if text == "svml" => Ok(Self::Svml(None)),
            None if text == "euclidean" => Ok(Self::Euclidean),
            _ => Err(Error::Parameter {
                name: "method",
                value: text.to_owned(),
                bound: "svml, svml:FORM or euclidean".to_owned(),
            }),
        }
    }
}

impl Choice {
    /// Whether a fit can be ended with a result; an interrupt ends the others at once.
    pub fn can_be_ended(self) -> bool {
        matches!(self, Self::Svml(_))
    }

    /// Learns by this method.
    pub fn fit(
        self,
        data: &Dataset,
        learning: &Learning,
        control: &mut Control<'_>,
    ) -> svml::Result<Model> {
        match self {
            Self::Svml(form) => Model::fit_with(data, &params(learning, form), control),
            Self::Euclidean => Model::fit_euclidean(data, &grid(learning)),
        }
    }
}

fn class_weight(learning: &Learning) -> ClassWeight {
    match learning.weights {
        Weights::None => ClassWeight::None,
        Weights::Balanced => ClassWeight::Balanced,
    }
}

/// The parameters of svml: what is not given stays as the library, or the paper, has it.
pub fn params(learning: &Learning, form: Option<Form>) -> Params {
    let base = match learning.paper {
        true => {
            Params { optimiser: Optimiser::ConjugateGradients, refit: false, ..Params::default() }
        }
        false => Params::default(),
    };
    Params {
        form: form.or(learning.form).unwrap_or(base.form),
        criterion: learning.criterion.unwrap_or(base.criterion),
        class_weight: class_weight(learning),
        seed: learning.seed,
        ..base
    }
}

fn grid(learning: &Learning) -> Grid {
    Grid { class_weight: class_weight(learning), seed: learning.seed, ..Grid::default() }
}
