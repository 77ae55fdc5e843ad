//! The methods by name.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use svml::criterion::Criterion;
use svml::learn::{Itml, Lmnn, Nca};
use svml::loss::Surrogate;
use svml::params::{FormChoice, Start};
use svml::{Dataset, Form, Grid, Model, Params, Rival};

use crate::jobs::{Job, Measured};

/// Name of the method that all others are compared with.
pub const GRID: &str = "grid";
/// Name of what a user gets who chooses nothing.
pub const DEFAULT: &str = "default";

/// Methods that the defaults are compared with, and what they are.
pub const OTHERS: [(&str, &str); 4] = [
    ("paper", "`Params::paper()`: full, hold-out, sigmoid"),
    ("sphere", "the default criterion, sphere only"),
    ("diagonal", "the default criterion, diagonal only"),
    ("full", "the default criterion, full only"),
];

/// What else was tried before the defaults were fixed.
pub const TRIED: [(&str, &str); 13] = [
    ("diagonal-l0.01", "diagonal, 5 folds, squared hinge, lambda 0.01"),
    ("diagonal-l0.1", "diagonal, 5 folds, squared hinge, lambda 0.1"),
    ("diagonal-10fold", "diagonal, 10 folds, squared hinge"),
    ("diagonal-logistic", "diagonal, 5 folds, logistic a = 3, lambda 0.01"),
    ("diagonal-sigmoid", "diagonal, 5 folds, sigmoid a = 5, lambda 0.1"),
    ("diagonal-loo", "diagonal, leave-one-out, logistic a = 3, lambda 0.01"),
    ("sphere-loo", "sphere, leave-one-out, logistic a = 3"),
    ("full-loo", "full, leave-one-out, logistic a = 3, lambda 0.1"),
    ("gradients-diagonal", "diagonal of the gradient outer product, only scale and C learned"),
    ("gradients-full", "gradient outer product, only scale and C learned"),
    ("auto-l0.01", "auto, lambda 0.01"),
    ("auto-logistic", "auto, logistic a = 3"),
    ("auto-loo", "auto, leave-one-out, squared hinge"),
];

fn params(name: &str) -> Option<Params> {
    let base = Params::default;
    let form = |form: Form| FormChoice::Fixed(form);
    let logistic =
        || Params { surrogate: Surrogate::Logistic, steepness: 3.0, ..Params::default() };
    let loo = |form: FormChoice, lambda: f64| Params {
        criterion: Criterion::LeaveOneOut,
        form,
        lambda,
        ..logistic()
    };
    let gradients = |form: Form| Params {
        form: form.into(),
        start: Start::Gradients,
        max_iterations: 0,
        ..Params::default()
    };
    Some(match name {
        DEFAULT => base(),
        "paper" | "svml" => Params::paper(),
        "svml-sphere" => Params { form: form(Form::Sphere), ..Params::paper() },
        "svml-diag" => Params { form: form(Form::Diagonal), ..Params::paper() },
        "sphere" => Params { form: form(Form::Sphere), ..base() },
        "diagonal" => Params { form: form(Form::Diagonal), ..base() },
        "full" => Params { form: form(Form::Full), ..base() },
        "diagonal-l0.01" => Params { form: form(Form::Diagonal), lambda: 0.01, ..base() },
        "diagonal-l0.1" => Params { form: form(Form::Diagonal), lambda: 0.1, ..base() },
        "diagonal-10fold" => {
            Params { form: form(Form::Diagonal), criterion: Criterion::KFold(10), ..base() }
        }
        "diagonal-logistic" => Params { form: form(Form::Diagonal), lambda: 0.01, ..logistic() },
        "diagonal-sigmoid" => Params {
            form: form(Form::Diagonal),
            surrogate: Surrogate::Sigmoid,
            lambda: 0.1,
            ..base()
        },
        "diagonal-loo" => loo(form(Form::Diagonal), 0.01),
        "sphere-loo" => loo(form(Form::Sphere), 0.01),
        "full-loo" => loo(form(Form::Full), 0.1),
        "gradients-diagonal" => gradients(Form::Diagonal),
        "gradients-full" => gradients(Form::Full),
        "auto-l0.01" => Params { lambda: 0.01, ..base() },
        "auto-logistic" => logistic(),
        "auto-loo" => Params { criterion: Criterion::LeaveOneOut, ..base() },
        _ => return None,
    })
}

/// The learner before a grid, if there is one, and the grid: `euclid-3`, `nca-5`.
fn with_grid(name: &str) -> Option<(Option<Rival>, Grid)> {
    let (learner, folds) = name.split_once('-')?;
    let learner = match learner {
        "euclid" => None,
        "itml" => Some(Itml::default().into()),
        "nca" => Some(Nca::default().into()),
        "lmnn" => Some(Lmnn::default().into()),
        _ => return None,
    };
    let folds = folds.parse().ok()?;
    Some((learner, Grid { folds, memory_limit: MEMORY, ..Grid::default() }))
}

/// Bytes that a fit may take. Leave-one-out keeps five matrices of all training rows, 9.3 GB for gamma;
/// five folds on as many threads six.
const MEMORY: u64 = 12 << 30;

/// Trains by the method of a name.
pub fn fit(name: &str, data: &Dataset) -> Result<Model, String> {
    let fitted = match (name, params(name), with_grid(name)) {
        (GRID, ..) => Model::fit_euclidean(data, &Grid::default()),
        (_, Some(params), _) => Model::fit(data, &Params { memory_limit: MEMORY, ..params }),
        (_, _, Some((Some(learner), grid))) => Model::fit_after(data, learner, &grid),
        (_, _, Some((None, grid))) => Model::fit_euclidean(data, &grid),
        _ => return Err(format!("no method is called {name}")),
    };
    fitted.map_err(|e| format!("{name}: {e}"))
}

/// Processor time of the program so far.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// Does a job: trains on the one part, tests on the other.
pub fn measure(job: &Job, train: &Dataset, test: &Dataset) -> Result<Measured, String> {
    let failed = |e: String| format!("{} {}: {e}", job.data, job.seed);
    let (started, before) = (Instant::now(), processor_seconds());
    let model = fit(&job.method, train).map_err(failed)?;
    let (seconds, processor) = (started.elapsed().as_secs_f64(), processor_seconds() - before);
    Ok(Measured {
        job: job.clone(),
        error: model.error(test).map_err(|e| failed(e.to_string()))?,
        seconds,
        processor: Some(processor),
        form: model.metric().form().to_string(),
        cost: Some(model.cost()),
        support: Some(model.support_rows().len()),
        stop: model.report().stop,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_method() {
        for (name, _) in OTHERS.iter().chain(&TRIED) {
            assert!(params(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_grid_may_follow_a_learner() {
        assert!(matches!(with_grid("euclid-1"), Some((None, Grid { folds: 1, .. }))));
        assert!(matches!(with_grid("nca-3"), Some((Some(Rival::Nca(_)), Grid { folds: 3, .. }))));
        assert!(with_grid("svml-diag").is_none() && params("svml-diag").is_some());
    }
}
