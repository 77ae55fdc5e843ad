//! The methods by name. A name stands in the results files and stays; what it means is the text of a
//! [`Method`].

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use svml::{Dataset, Method, Model};

use crate::jobs::{Job, Measured};
use crate::probabilities::Probabilities;

/// Name of the method that all others are compared with.
pub const GRID: &str = "grid";
/// Name of what a user gets who chooses nothing.
pub const DEFAULT: &str = "default";
/// Name of the paper's own protocol, in the study of the defaults.
pub const PAPER: &str = "paper";

/// Name of what the default was before it was a mean: results of that version, which are not measured again.
pub const FORMER: &str = "former";

/// What the name of a method ends with whose fit has the seed of the split. All others have seed 0, and since rows
/// are dealt by their content, nearly the same rows then validate on all splits of a set.
pub const RESEEDED: &str = "-reseeded";

/// What stands for the form of a model of several members.
pub const MEAN: &str = "mean";

/// A method with its name in the results files.
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// What it is, for [`Method`].
    text: &'static str,
    /// What it is, for readers.
    pub words: &'static str,
}

const fn named(name: &'static str, text: &'static str, words: &'static str) -> Named {
    Named { name, text, words }
}

/// The protocol of the paper with a form of the metric.
macro_rules! paper {
    ($form:literal) => {
        concat!(
            "svml:",
            $form,
            ",criterion=hold_out,init=scaled,surrogate=sigmoid,lambda=0.1",
            ",optimiser=conjugate_gradients,tolerance=0.001,cross_fit=false,landmarks=exact"
        )
    };
}

/// What is compared first of all.
const FIRST: [Named; 2] = [
    named(GRID, "euclidean", "the Euclidean SVM with a grid of 5 folds"),
    named(DEFAULT, "svml", "the default"),
];

/// Methods that the defaults are compared with.
pub const OTHERS: [Named; 4] = [
    named("gaussian", "svml:sphere", "`svml:sphere`"),
    named("exponential", "svml:diagonal,kernel=exponential", "`svml:diagonal,kernel=exponential`"),
    named("laplacian", "svml:sphere,kernel=laplacian", "`svml:sphere,kernel=laplacian`"),
    named(PAPER, paper!("full"), "SVML as in the paper (`Svml::paper()`)"),
];

/// Leave-one-out in place of folds, for the study of the paper's sets.
const LEAVE_ONE_OUT: [Named; 3] = [
    named(
        "sphere-loo",
        "svml:sphere,criterion=leave_one_out,surrogate=logistic,steepness=3,lambda=0.01",
        "sphere, leave-one-out, logistic a = 3",
    ),
    named(
        "diagonal-loo",
        "svml:diagonal,criterion=leave_one_out,surrogate=logistic,steepness=3,lambda=0.01",
        "diagonal, leave-one-out, logistic a = 3, lambda 0.01",
    ),
    named(
        "full-loo",
        "svml:full,criterion=leave_one_out,surrogate=logistic,steepness=3,lambda=0.1",
        "full, leave-one-out, logistic a = 3, lambda 0.1",
    ),
];

/// The paper's own methods, under the names of its tables.
const OF_THE_PAPER: [Named; 3] = [
    named("svml-sphere", paper!("sphere"), "SVML-Sphere"),
    named("svml-diag", paper!("diagonal"), "SVML-Diag"),
    named("svml", paper!("full"), "SVML"),
];

/// Bytes that a fit may take. Leave-one-out keeps five matrices of all training rows, 9.3 GB for gamma;
/// five folds on as many threads six.
const MEMORY: u64 = 12 << 30;

/// The method of a name: one of those above, or a grid with its folds, alone or after a learner, as in
/// `euclid-3` and `nca-5`.
pub fn method(name: &str) -> Result<Method, String> {
    let mut all = FIRST.iter().chain(&OTHERS).chain(&LEAVE_ONE_OUT).chain(&OF_THE_PAPER);
    let text = match (all.find(|named| named.name == name), name.split_once('-')) {
        (Some(named), _) => named.text.to_owned(),
        (None, Some(("euclid", folds))) => format!("euclidean:folds={folds}"),
        (None, Some((learner, folds))) => format!("{learner}+svm:folds={folds}"),
        (None, None) => return Err(format!("no method is called {name}")),
    };
    let failed = |e: svml::Error| format!("no method is called {name}: {e}");
    let mut method: Method = text.parse().map_err(failed)?;
    method.set("memory_limit", &MEMORY.to_string()).map_err(failed)?;
    Ok(method)
}

/// Processor time of the program so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// Does a job: trains on the one part, tests on the other.
pub fn measure(job: &Job, train: &Dataset, test: &Dataset) -> Result<Measured, String> {
    fit(job, train, test).map(|(_, measured)| measured)
}

/// As [`measure`], with what the probabilities are worth.
pub fn measure_probabilities(
    job: &Job,
    train: &Dataset,
    test: &Dataset,
) -> Result<Measured, String> {
    let (model, measured) = fit(job, train, test)?;
    let probabilities = Probabilities::of(&model, test).map_err(|e| failed(job, &e))?;
    Ok(Measured { probabilities: Some(probabilities), ..measured })
}

fn failed(job: &Job, error: &svml::Error) -> String {
    format!("{} {}, {}: {error}", job.data, job.seed, job.method)
}

fn fit(job: &Job, train: &Dataset, test: &Dataset) -> Result<(Model, Measured), String> {
    let method = match job.method.strip_suffix(RESEEDED) {
        None => method(&job.method)?,
        Some(name) => {
            let mut method = method(name)?;
            method.set("seed", &job.seed.to_string()).map_err(|e| failed(job, &e))?;
            method
        }
    };
    let (started, before) = (Instant::now(), processor_seconds());
    let model = Model::fit(train, method).map_err(|e| failed(job, &e))?;
    let (seconds, processor) = (started.elapsed().as_secs_f64(), processor_seconds() - before);
    let form = match model.members() {
        [_, _, ..] => MEAN.to_owned(),
        _ => model.metric().form().to_string(),
    };
    let measured = Measured {
        job: job.clone(),
        // A sum of no weights is -0.
        error: model.error_rate(test).map_err(|e| failed(job, &e))? + 0.0,
        seconds,
        processor: Some(processor),
        form,
        cost: model.cost(),
        support: Some(model.support_rows().len()),
        stop: model.report().stop,
        probabilities: None,
    };
    Ok((model, measured))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::METHODS;
    use svml::learners::Nca;
    use svml::{Form, GridSearch, Svml};

    #[test]
    fn every_name_has_a_method() {
        let of_accuracy = FIRST.iter().chain(&OTHERS).map(|named| named.name);
        for name in of_accuracy.chain(METHODS.iter().map(|method| method.name)) {
            assert!(method(name).is_ok(), "{name}: {:?}", method(name));
        }
        for name in ["", "other", "sklearn-5", "nca-many", "svml-cube"] {
            assert!(method(name).is_err(), "{name}");
        }
    }

    #[test]
    fn texts_mean_what_they_say() {
        let (folds, memory_limit) = (3, Some(MEMORY));
        let grid = GridSearch { folds, memory_limit, ..GridSearch::default() };
        let paper = |form: Form| Svml { form: form.into(), memory_limit, ..Svml::paper() };
        for (name, expected) in [
            ("paper", paper(Form::Full).into()),
            ("svml", paper(Form::Full).into()),
            ("svml-diag", paper(Form::Diagonal).into()),
            (DEFAULT, Svml { memory_limit, ..Svml::default() }.into()),
            ("euclid-3", grid.clone().into()),
            ("nca-3", Method::SvmAfter { learner: Nca::default().into(), grid }),
        ] {
            assert_eq!(method(name), Ok(expected), "{name}");
        }
    }
}
