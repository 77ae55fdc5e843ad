//! How a fit went, as data and in words.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::data::excerpt;
use crate::data::prepare::TrainingRows;
use crate::device::PROCESSOR;
use crate::learners::Learned;
use crate::method::Method;
use crate::metric::{Form, Kernel};
use crate::run::{Step, Stop};
use crate::svml::members::{Candidate, Honest};
use crate::svml::{FormChoice, Svml};

/// How the fit went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredReport")]
#[non_exhaustive]
pub struct Report {
    /// The method with its parameters.
    pub method: Method,
    /// Rows of the training data; pairs of rows, if a metric was learned from pairs.
    pub rows: usize,
    /// Every accepted step of the learner; empty if nothing was learned step by step.
    pub trace: Vec<Step>,
    /// What was compared to find the members; empty if the form was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// How well a model that was learned on half of the rows does on the others, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub honest: Option<Honest>,
    /// Through how many landmarks the fit went; none: everything was exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landmarks: Option<ThroughLandmarks>,
    /// The iteration of the trace that was kept.
    pub best: usize,
    /// Why learning ended.
    pub stop: Option<Stop>,
    /// Whether the fit was ended, or anything of it left out, because of the time limit or by an interrupt, whatever learning ended
    /// by: more time may give another model.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
    /// Whether the SVMs were trained on all rows, or only on a part of them.
    pub refitted: bool,
    /// Worst violation of the optimality conditions of any SVM, in units of the margin.
    pub residual: f64,
    /// Where it was computed: `cpu`; or a card such as `cuda:0 (NVIDIA H200)`, if any part of the fit was computed there.
    #[serde(skip_serializing_if = "is_processor")]
    pub device: String,
    /// What the user should know about the data or the fit.
    pub warnings: Vec<String>,
}

/// Whether nothing was computed on a card, which files do not say: those of former versions are read as such.
fn is_processor(device: &str) -> bool {
    device == PROCESSOR
}

fn processor() -> String {
    PROCESSOR.to_owned()
}

/// The landmarks of a fit: rows that stand for all rows in the SVMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThroughLandmarks {
    /// While metric and C were learned.
    pub learned: usize,
    /// In each member of the model; none: its SVMs are exact.
    pub in_model: Option<usize>,
}

impl fmt::Display for ThroughLandmarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = |count: usize| match count {
            1 => "1 landmark".to_owned(),
            _ => format!("{count} landmarks"),
        };
        write!(f, "the metric and C were learned with {}; ", counted(self.learned))?;
        match self.in_model {
            Some(count) => write!(f, "the SVMs of the model have {}", counted(count)),
            None => f.write_str("the SVMs of the model are exact"),
        }
    }
}

/// The steps in which one form of the metric was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stage {
    /// The form, where it is on record.
    pub form: Option<Form>,
    /// The kernel, where it is on record.
    pub kernel: Option<Kernel>,
    /// Whether it was learned on half of the rows, to see what that does on the other half.
    pub half: bool,
    /// The first step, where the form starts.
    pub first: usize,
    /// The last step.
    pub last: usize,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.form, self.kernel) {
            (Some(form), Some(kernel)) if kernel != Kernel::Gaussian => {
                write!(f, "{kernel} {form}")?;
            }
            (Some(form), _) => form.fmt(f)?,
            (None, _) => f.write_str("a form")?,
        }
        if self.half { f.write_str(", on a half") } else { Ok(()) }
    }
}

impl Report {
    /// Of a model for which nothing was learned step by step.
    pub(super) fn without_steps(method: &Method, data: &Dataset, rows: &TrainingRows) -> Self {
        Self {
            method: method.clone(),
            rows: data.rows(),
            trace: Vec::new(),
            candidates: Vec::new(),
            honest: None,
            landmarks: None,
            best: 0,
            stop: None,
            cut_short: false,
            refitted: true,
            residual: 0.0,
            device: processor(),
            warnings: rows.warnings(data),
        }
    }

    /// Of a model whose metric a learner has found.
    pub(super) fn of_learner(
        method: &Method,
        data: &Dataset,
        rows: &TrainingRows,
        learned: &Learned,
    ) -> Self {
        Self {
            trace: learned.trace.clone(),
            best: learned.best,
            stop: Some(learned.stop),
            warnings: rows.warnings(data).into_iter().chain(learned.warnings.clone()).collect(),
            ..Self::without_steps(method, data, rows)
        }
    }

    /// Of a metric that was learned from so many pairs.
    pub(super) fn of_pairs(
        method: Method,
        pairs: usize,
        learned: &Learned,
        warnings: Vec<String>,
    ) -> Self {
        Self {
            method,
            rows: pairs,
            trace: learned.trace.clone(),
            candidates: Vec::new(),
            honest: None,
            landmarks: None,
            best: learned.best,
            stop: Some(learned.stop),
            cut_short: false,
            refitted: true,
            residual: 0.0,
            device: processor(),
            warnings,
        }
    }

    /// Whether any part of the fit was computed on a card.
    pub fn used_card(&self) -> bool {
        !is_processor(&self.device)
    }

    /// Whether parts of the fit were left out because of the time limit although learning ended by itself, so that
    /// [`Report::stop`] does not tell.
    pub fn left_out_for_time(&self) -> bool {
        self.cut_short && !self.stop.is_some_and(Stop::is_early)
    }

    /// The step of the trace that was kept.
    pub fn best_step(&self) -> Option<&Step> {
        self.trace.get(self.best)
    }

    /// The forms that were learned one after the other, with their steps of the trace: one if the form
    /// was given.
    pub fn stages(&self) -> Vec<Stage> {
        let given = match &self.method {
            Method::Svml(Svml { form: FormChoice::Fixed(form), .. }) => Some(*form),
            _ => None,
        };
        let mut stages: Vec<Stage> = Vec::new();
        for (k, step) in self.trace.iter().enumerate() {
            match stages.last_mut() {
                Some(stage) if step.step_length > 0.0 || step.svml.is_none() => stage.last = k,
                _ => {
                    let form = given.or(step.svml.and_then(|svml| svml.form));
                    let kernel = step.svml.and_then(|svml| svml.kernel);
                    let half = step.svml.is_some_and(|svml| svml.half);
                    stages.push(Stage { form, kernel, half, first: k, last: k });
                }
            }
        }
        stages
    }
}

/// A report as it stands in a file. Former versions kept the steps of other learners than SVML apart, as
/// `learning`.
#[derive(Deserialize)]
struct StoredReport {
    method: Method,
    rows: usize,
    trace: Vec<Step>,
    #[serde(default)]
    candidates: Vec<Candidate>,
    #[serde(default)]
    honest: Option<Honest>,
    #[serde(default)]
    landmarks: Option<ThroughLandmarks>,
    #[serde(default)]
    learning: Vec<Step>,
    best: usize,
    stop: Option<Stop>,
    #[serde(default)]
    cut_short: bool,
    refitted: bool,
    residual: f64,
    #[serde(default = "processor")]
    device: String,
    warnings: Vec<String>,
}

impl From<StoredReport> for Report {
    fn from(stored: StoredReport) -> Self {
        let StoredReport {
            method,
            rows,
            candidates,
            honest,
            landmarks,
            best,
            stop,
            cut_short,
            refitted,
            residual,
            device,
            ..
        } = stored;
        let trace = if stored.trace.is_empty() { stored.learning } else { stored.trace };
        let best = if best == 0 && trace.first().is_some_and(|step| step.svml.is_none()) {
            trace.len() - 1
        } else {
            best
        };
        let warnings = stored.warnings;
        Self {
            method,
            rows,
            trace,
            candidates,
            honest,
            landmarks,
            best,
            stop,
            cut_short,
            refitted,
            residual,
            device,
            warnings,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} from {} rows", self.method.description(), self.rows)?;
        for Candidate { form, kernel, error, weight, .. } in &self.candidates {
            let percent = 100.0 * error;
            writeln!(f, "  {kernel} {form}: {percent:.1} % error, weight {weight:.2}")?;
        }
        if let Some(honest) = &self.honest {
            let (error, guessing) = (100.0 * honest.error, 100.0 * honest.guessing);
            writeln!(f, "  {error:.1} % error on held-out rows (guessing: {guessing:.1} %)")?;
        }
        if let Some(landmarks) = &self.landmarks {
            writeln!(f, "  {landmarks}")?;
        }
        if self.used_card() {
            writeln!(f, "  computed on {}", excerpt(&self.device))?;
        }
        if let (Some(last), Some(stop)) = (self.trace.last(), self.stop) {
            let kept = self.best_step().map_or(0, |step| step.iteration);
            writeln!(
                f,
                "  step {kept} of {} was kept; learning ended because {stop}",
                last.iteration
            )?;
        }
        if self.left_out_for_time() {
            writeln!(f, "  parts of the fit were skipped because of the time limit")?;
        }
        for warning in &self.warnings {
            writeln!(f, "  warning: {warning}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Generator;
    use crate::model::Model;
    use crate::run::Run;

    /// What was left out is on record even where learning itself came to its end, and files that know nothing of it say no.
    #[test]
    fn a_fit_that_was_cut_short_says_so() {
        let data = Generator { rows: 60, ..Generator::default() }.generate().unwrap().data;
        let params = Svml { form: Form::Sphere.into(), ..Svml::default() };
        let whole = Model::fit(&data, params.clone()).unwrap();
        assert!(!whole.report().cut_short && !whole.report().left_out_for_time());
        let header = serde_json::to_string(whole.report()).unwrap();
        assert!(!header.contains("cut_short"));

        let mut run = Run::new().observer(|_| std::ops::ControlFlow::Break(()));
        let model = Model::fit_with(&data, params, &mut run).unwrap();
        assert!(model.report().cut_short);
        // That is said by `stop` already.
        assert!(!model.report().left_out_for_time());
        let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert!(loaded.report().cut_short);

        let report = Report { stop: Some(Stop::Tolerance), ..model.report().clone() };
        assert!(
            report.left_out_for_time() && report.to_string().contains("because of the time limit")
        );
        assert!(!whole.report().to_string().contains("because of the time limit"));
    }

    #[test]
    fn stages_name_what_is_known_of_them() {
        let stage =
            |form, kernel, half| Stage { form, kernel, half, first: 0, last: 3 }.to_string();
        let rank = Some(Form::Rank(2));
        assert_eq!(stage(rank, Some(Kernel::Gaussian), false), "rank=2");
        assert_eq!(stage(rank, Some(Kernel::Laplacian), true), "laplacian rank=2, on a half");
        assert_eq!(stage(None, None, false), "a form");
    }
}
