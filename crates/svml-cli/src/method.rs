//! The methods that can be trained and compared: the one place where a learner is plugged in.

use std::fmt;
use std::str::FromStr;

use svml::learn::{Control, Itml, Lmnn, Nca, Pca};
use svml::params::{ClassWeight, FormChoice};
use svml::{Dataset, Error, Form, Grid, Model, Params, Rival};

use crate::args::{Learning, Weights};

/// A method, and perhaps the form or rank of its metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Support vector metric learning, in a form of its own if one is given.
    Svml(Option<FormChoice>),
    /// The Euclidean machine with cross-validation.
    Euclidean,
    /// Another learner's metric, then a machine with cross-validation.
    After(Learner, Option<usize>),
}

/// The methods that the paper compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learner {
    /// Principal components.
    Pca,
    /// Neighbourhood component analysis.
    Nca,
    /// Large margin nearest neighbours.
    Lmnn,
    /// Information-theoretic metric learning.
    Itml,
}

const LEARNERS: [(&str, Learner); 4] = [
    ("pca", Learner::Pca),
    ("nca", Learner::Nca),
    ("lmnn", Learner::Lmnn),
    ("itml", Learner::Itml),
];

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Svml(None) => f.write_str("svml"),
            Self::Svml(Some(form)) => write!(f, "svml:{form}"),
            Self::Euclidean => f.write_str("euclidean"),
            Self::After(learner, rank) => {
                let name = LEARNERS.iter().find(|(_, l)| l == learner).map_or("", |(name, _)| name);
                f.write_str(name)?;
                rank.map_or(Ok(()), |rank| write!(f, ":rank={rank}"))
            }
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> svml::Result<Self> {
        let (name, form) = match text.split_once(':') {
            Some((name, form)) => (name, Some(form.parse::<FormChoice>()?)),
            None => (text, None),
        };
        let learner =
            LEARNERS.iter().find(|(known, _)| *known == name).map(|(_, learner)| *learner);
        match (name, learner, form) {
            ("svml", _, form) => Ok(Self::Svml(form)),
            ("euclidean", _, None) => Ok(Self::Euclidean),
            (_, Some(learner), None) => Ok(Self::After(learner, None)),
            (_, Some(learner), Some(FormChoice::Fixed(Form::Rank(rank))))
                if learner != Learner::Itml =>
            {
                Ok(Self::After(learner, Some(rank)))
            }
            _ => Err(Error::Parameter {
                name: "method",
                value: text.to_owned(),
                bound:
                    "svml, svml:FORM, euclidean, pca, nca, lmnn (each also with :rank=R) or itml"
                        .to_owned(),
            }),
        }
    }
}

impl Choice {
    /// Most steps of learning: of each form that is tried, and how many of these there are.
    pub fn most_steps(self, learning: &Learning) -> (u64, u64) {
        match self {
            Self::Svml(form) => {
                let params = params(learning, form);
                let forms = if params.form == FormChoice::Auto { 3 } else { 1 };
                (params.max_iterations as u64, forms)
            }
            Self::Euclidean | Self::After(Learner::Pca, _) => (1, 1),
            Self::After(Learner::Nca, _) => (Nca::default().max_iterations as u64, 1),
            Self::After(Learner::Lmnn, _) => (Lmnn::default().max_iterations as u64, 1),
            Self::After(Learner::Itml, _) => (Itml::default().max_iterations as u64, 1),
        }
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
            Self::Euclidean => Model::fit_euclidean_with(data, &grid(learning), control),
            Self::After(learner, rank) => {
                let rank = rank.or(match learning.form {
                    Some(FormChoice::Fixed(Form::Rank(rank))) => Some(rank),
                    _ => None,
                });
                let rival = learner.with_rank(rank, learning.seed);
                Model::fit_after_with(data, &rival, &grid(learning), control)
            }
        }
    }
}

impl Learner {
    fn with_rank(self, rank: Option<usize>, seed: u64) -> Rival {
        match self {
            Self::Pca => {
                let default = Pca::default();
                Pca { rank: rank.unwrap_or(default.rank) }.into()
            }
            Self::Nca => Nca { rank, ..Nca::default() }.into(),
            Self::Lmnn => Lmnn { rank, ..Lmnn::default() }.into(),
            Self::Itml => Itml { seed, ..Itml::default() }.into(),
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
pub fn params(learning: &Learning, form: Option<FormChoice>) -> Params {
    let base = if learning.paper { Params::paper() } else { Params::default() };
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
