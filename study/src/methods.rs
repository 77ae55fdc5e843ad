//! The methods by name. A name stands in the results files and stays; what it means is the text of a
//! [`Method`].

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use svml::{Dataset, Method, Model};

use crate::jobs::{Job, Measured};

/// Name of the method that all others are compared with.
pub const GRID: &str = "grid";
/// Name of what a user gets who chooses nothing.
pub const DEFAULT: &str = "default";

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
            ",criterion=hold_out,surrogate=sigmoid,lambda=0.1",
            ",optimiser=conjugate_gradients,tolerance=0.001"
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
    named("paper", paper!("full"), "`Svml::paper()`: full, hold-out, sigmoid"),
    named("sphere", "svml:sphere", "the default criterion, sphere only"),
    named("diagonal", "svml:diagonal", "the default criterion, diagonal only"),
    named("full", "svml:full", "the default criterion, full only"),
];

/// What else was tried before the defaults were fixed.
pub const TRIED: [Named; 13] = [
    named(
        "diagonal-l0.01",
        "svml:diagonal,lambda=0.01",
        "diagonal, 5 folds, squared hinge, lambda 0.01",
    ),
    named(
        "diagonal-l0.1",
        "svml:diagonal,lambda=0.1",
        "diagonal, 5 folds, squared hinge, lambda 0.1",
    ),
    named(
        "diagonal-10fold",
        "svml:diagonal,criterion=k_fold=10",
        "diagonal, 10 folds, squared hinge",
    ),
    named(
        "diagonal-logistic",
        "svml:diagonal,surrogate=logistic,steepness=3,lambda=0.01",
        "diagonal, 5 folds, logistic a = 3, lambda 0.01",
    ),
    named(
        "diagonal-sigmoid",
        "svml:diagonal,surrogate=sigmoid,lambda=0.1",
        "diagonal, 5 folds, sigmoid a = 5, lambda 0.1",
    ),
    named(
        "diagonal-loo",
        "svml:diagonal,criterion=leave_one_out,surrogate=logistic,steepness=3,lambda=0.01",
        "diagonal, leave-one-out, logistic a = 3, lambda 0.01",
    ),
    named(
        "sphere-loo",
        "svml:sphere,criterion=leave_one_out,surrogate=logistic,steepness=3,lambda=0.01",
        "sphere, leave-one-out, logistic a = 3",
    ),
    named(
        "full-loo",
        "svml:full,criterion=leave_one_out,surrogate=logistic,steepness=3,lambda=0.1",
        "full, leave-one-out, logistic a = 3, lambda 0.1",
    ),
    named(
        "gradients-diagonal",
        "svml:diagonal,init=gradients,max_iterations=0",
        "diagonal of the gradient outer product, only scale and C learned",
    ),
    named(
        "gradients-full",
        "svml:full,init=gradients,max_iterations=0",
        "gradient outer product, only scale and C learned",
    ),
    named("auto-l0.01", "svml:lambda=0.01", "auto, lambda 0.01"),
    named("auto-logistic", "svml:surrogate=logistic,steepness=3", "auto, logistic a = 3"),
    named("auto-loo", "svml:criterion=leave_one_out", "auto, leave-one-out, squared hinge"),
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
    let mut all = FIRST.iter().chain(&OTHERS).chain(&TRIED).chain(&OF_THE_PAPER);
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
    let failed = |e: svml::Error| format!("{} {}, {}: {e}", job.data, job.seed, job.method);
    let method = method(&job.method)?;
    let (started, before) = (Instant::now(), processor_seconds());
    let model = Model::fit(train, method).map_err(failed)?;
    let (seconds, processor) = (started.elapsed().as_secs_f64(), processor_seconds() - before);
    Ok(Measured {
        job: job.clone(),
        error: model.error_rate(test).map_err(failed)?,
        seconds,
        processor: Some(processor),
        form: model.metric().form().to_string(),
        cost: model.cost(),
        support: Some(model.support_rows().len()),
        stop: model.report().stop,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::METHODS;
    use svml::learners::Nca;
    use svml::{Form, GridSearch, Svml};

    #[test]
    fn every_name_has_a_method() {
        let of_accuracy = FIRST.iter().chain(&OTHERS).chain(&TRIED).map(|named| named.name);
        for name in of_accuracy.chain(METHODS.iter().map(|method| method.name)) {
            assert!(method(name).is_ok(), "{name}: {:?}", method(name));
        }
        for name in ["", "other", "sklearn-5", "nca-many", "svml-cube"] {
            assert!(method(name).is_err(), "{name}");
        }
    }

    #[test]
    fn texts_mean_what_they_say() {
        let (folds, memory_limit) = (3, MEMORY);
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
