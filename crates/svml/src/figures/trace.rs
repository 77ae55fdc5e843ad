//! How a model was learned, step by step.

use crate::method::Method;
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
    /// The SVMs that were learned one after the other, with their first and last steps: the loss of one does not
    /// become that of the next. There is a single one for other learners than SVML.
    pub stages: Vec<Stage>,
    /// What each of these is, in words: its kernel and the form of its metric.
    pub names: Vec<String>,
    /// The weight of each of these in the model, 0 for one that is not part of it; empty if there was no choice.
    pub weights: Vec<f64>,
    /// The step that was kept; absent for a mean, of which every SVM has kept a step of its own.
    pub best: Option<usize>,
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
        let stages = report.stages();
        let weights = weights(model, &stages);
        let one = stages.len() == 1 || weights.iter().filter(|weight| **weight > 0.0).count() == 1;
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
            names: stages.iter().map(name).collect(),
            best: one.then_some(report.best),
            weights,
            stages,
            stop: report.stop,
        })
    }
}

/// The kernel and the form, as far as they are on record.
fn name(stage: &Stage) -> String {
    match (stage.kernel, stage.form) {
        (Some(kernel), Some(form)) => {
            format!("{kernel} {form}{}", if stage.half { ", on a half" } else { "" })
        }
        _ => stage.to_string(),
    }
}

/// The weights of the stages in the model, if there are several and the model is made of them.
fn weights(model: &Model, stages: &[Stage]) -> Vec<f64> {
    let report = model.report();
    match (&report.method, model.members()) {
        (Method::Svml(_), [_]) if stages.len() > 1 => {
            let kept = |stage: &Stage| (stage.first..=stage.last).contains(&report.best);
            stages.iter().map(|stage| f64::from(u8::from(kept(stage)))).collect()
        }
        (Method::Svml(_), members) if stages.len() > 1 => (stages.iter())
            .map(|stage| {
                let same = |kernel, form| {
                    !stage.half && (stage.kernel, stage.form) == (Some(kernel), Some(form))
                };
                let own = members.iter().find(|m| same(m.kernel(), m.metric().form()));
                own.map_or(0.0, |member| member.weight())
            })
            .collect(),
        _ => Vec::new(),
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
    use crate::metric::{Form, Kernel, Metric};
    use crate::run::Run;
    use crate::svml::criterion::Criterion;
    use crate::svml::{FormChoice, Svml};

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
        assert!(trace.stages.len() > 1);
        assert_eq!(trace.names[0], "gaussian sphere, on a half");
        assert!(trace.names.iter().any(|name| name == "gaussian sphere"));
        // The weights are those of the members, which come in the order of the stages.
        let weights: Vec<f64> = model.members().iter().map(|member| member.weight()).collect();
        let used: Vec<f64> = trace.weights.iter().copied().filter(|weight| *weight > 0.0).collect();
        assert_eq!((used, trace.weights.len()), (weights, trace.stages.len()));
        assert_eq!(trace.best.is_some(), model.members().len() == 1);
        assert_eq!(trace.stages[0].first, 0);
        assert!(trace.stages.windows(2).all(|s| s[1].first == s[0].last + 1));
        assert_eq!(trace.stages.last().unwrap().last, trace.loss.len() - 1);
    }

    #[test]
    fn one_svm_of_a_mean_is_all_that_a_form_gives() {
        let form = FormChoice::Fixed(Form::Diagonal);
        let params = Svml { form, kernel: Kernel::Laplacian, cross_fit: false, ..Svml::default() };
        let trace = Trace::new(&Model::fit(&data(), params).unwrap()).unwrap();
        assert_eq!(
            (&trace.names[..], &trace.weights[..]),
            (&["laplacian diagonal".into()][..], &[][..])
        );
        assert!(trace.best.is_some());
        // The metric of a mean, without its SVMs, has stages of which none is the model.
        let method = "svml:cross_fit=false+none".parse::<Method>().unwrap();
        let trace = Trace::new(&Model::fit(&data(), method).unwrap()).unwrap();
        assert_eq!((trace.stages.len(), trace.weights.len(), trace.best), (3, 0, None));
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
        assert_eq!((&trace.loss[..], trace.best), (&[3.0, 2.0, 1.0][..], Some(2)));
        assert_eq!(trace.stop, Some(Stop::Minimum));
        for method in ["nca:rank=2,max_iterations=5+none", "lmnn:max_iterations=5+none"] {
            let model = Model::fit(&data, method.parse::<Method>().unwrap()).unwrap();
            let trace = Trace::new(&model).unwrap();
            let last = trace.loss.len() - 1;
            assert!(trace.errors.is_empty() && trace.weights.is_empty());
            let stages = (trace.stages.len(), trace.stages[0].last, trace.best);
            assert_eq!(stages, (1, last, Some(last)));
        }
        assert!(Trace::new(&Model::fit(&data, Method::neighbours(3)).unwrap()).is_none());
    }
}
