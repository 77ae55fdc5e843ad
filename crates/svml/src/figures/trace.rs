//! How a model was learned, step by step.

use crate::metric::Form;
use crate::model::{Model, Stage};
use crate::run::{Step, Stop, SvmlStep};

/// Learning curves: the loss that is minimised and the errors, step by step, with the step that was kept.
///
/// Every array has one value for each step, from step 0, the start, on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Trace {
    /// The value that is minimised.
    pub loss: Vec<f64>,
    /// Name and percentages of each error that was watched; NaN at steps where it was not. Empty for learners
    /// that know a loss only, which is all but SVML.
    pub errors: Vec<(String, Vec<f64>)>,
    /// The forms of the metric that were learned one after the other, with their first and last steps: the loss
    /// of one does not become that of the next. There is a single one for other learners than SVML.
    pub stages: Vec<Stage>,
    /// The step that was kept.
    pub best: usize,
    /// The form that was chosen, if there was a choice.
    pub chosen: Option<Form>,
    /// Why learning ended.
    pub stop: Option<Stop>,
}

impl Trace {
    /// The steps of a model; `None` if it was not learned step by step.
    pub fn new(model: &Model) -> Option<Self> {
        let report = model.report();
        let steps = &report.trace;
        if steps.is_empty() {
            return None;
        }
        let chosen = (!report.candidates.is_empty()).then(|| model.metric().form());
        Some(Self {
            loss: steps.iter().map(|step| step.loss).collect(),
            errors: [
                error(steps, "training rows", |svml| Some(svml.train_error)),
                error(steps, "validation rows", |svml| Some(svml.valid_error)),
                error(steps, "rows for early stopping", |svml| svml.stopping_error),
            ]
            .into_iter()
            .flatten()
            .collect(),
            stages: report.stages(),
            best: report.best,
            chosen,
            stop: report.stop,
        })
    }
}

/// An error by its name, in percent; `None` if no step knows it.
fn error(
    steps: &[Step],
    name: &str,
    of: impl Fn(&SvmlStep) -> Option<f64>,
) -> Option<(String, Vec<f64>)> {
    let percent = |step: &Step| 100.0 * step.svml.as_ref().and_then(&of).unwrap_or(f64::NAN);
    let values: Vec<f64> = steps.iter().map(percent).collect();
    values.iter().any(|v| !v.is_nan()).then(|| (name.to_owned(), values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Generator, Sample};
    use crate::error::Result;
    use crate::learners::{Learned, Learner};
    use crate::method::Method;
    use crate::metric::Metric;
    use crate::run::Run;
    use crate::svml::Svml;
    use crate::svml::criterion::Criterion;

    fn data() -> Dataset {
        Generator { rows: 100, ..Default::default() }.generate().unwrap().data
    }

    #[test]
    fn forms_have_their_own_stages_and_errors() {
        let params = Svml { criterion: Criterion::HoldOut, ..Svml::default() };
        let model = Model::fit(&data(), params).unwrap();
        let trace = Trace::new(&model).unwrap();
        let names: Vec<&str> = trace.errors.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["training rows", "validation rows", "rows for early stopping"]);
        assert!(trace.errors.iter().all(|(_, values)| values.len() == trace.loss.len()));
        assert_eq!(trace.chosen, Some(model.metric().form()));
        assert!(trace.stages.len() > 1);
        assert_eq!(trace.stages[0].first, 0);
        assert!(trace.stages.windows(2).all(|s| s[1].first == s[0].last + 1));
        assert_eq!(trace.stages.last().unwrap().last, trace.loss.len() - 1);
    }

    /// A learner of a user's own, which does not number its steps.
    #[derive(Debug)]
    struct Own;

    impl Learner for Own {
        fn name(&self) -> &str {
            "own"
        }

        fn learn(&self, sample: &Sample<'_>, _: &mut Run<'_>) -> Result<Learned> {
            let metric = Metric::isotropic(Form::Rank(2), sample.features(), 1.0)?;
            let trace =
                vec![Step::new(0, 3.0, 0.0), Step::new(0, 2.0, 0.5), Step::new(0, 1.0, 0.5)];
            Ok(Learned::new(metric, trace, Stop::Minimum))
        }
    }

    #[test]
    fn other_learners_have_a_loss_and_one_stage() {
        let data = data();
        let own = Model::fit(&data, Method::neighbours_after(Own, 3)).unwrap();
        let trace = Trace::new(&own).unwrap();
        assert_eq!((&trace.loss[..], trace.best), (&[3.0, 2.0, 1.0][..], 2));
        assert_eq!(trace.stop, Some(Stop::Minimum));
        for method in ["nca:rank=2,max_iterations=5+none", "lmnn:max_iterations=5+none"] {
            let model = Model::fit(&data, method.parse::<Method>().unwrap()).unwrap();
            let trace = Trace::new(&model).unwrap();
            let last = trace.loss.len() - 1;
            assert!(trace.errors.is_empty() && trace.chosen.is_none());
            assert_eq!((trace.stages.len(), trace.stages[0].last, trace.best), (1, last, last));
        }
        assert!(Trace::new(&Model::fit(&data, Method::neighbours(3)).unwrap()).is_none());
    }
}
