//! The descent of SVML on one split, step by step, with what figures 2 and 5 show and a model does not
//! keep: the metric of every step and the error on test rows.

use svml::data::Scaler;
use svml::internals::folds::{Dealt, content_order, train_valid_stop};
use svml::internals::loss::{Loss, zero_one};
use svml::internals::multiclass::{PairwiseSvms, decide, vote};
use svml::internals::optimise::Objective;
use svml::internals::svml::criterion::split_pairs;
use svml::internals::svml::descent::descend_seen;
use svml::internals::svml::objective::{FoldRows, Point, Problems, ValidationLoss};
use svml::internals::{LabelledRows, Watch};
use svml::learners::Sample;
use svml::{Dataset, Form, Matrix, Metric, Result, Run, Svml};

/// Rows of one split of data with two classes, standardised.
pub struct Rows {
    /// Those to train on, in the order in which a fit takes them. // (n, d)
    x: Matrix,
    class: Vec<usize>,
    weight: Vec<f64>,
    /// Those to test on. // (m, d)
    test: Matrix,
    test_class: Vec<usize>,
}

impl Rows {
    /// Of data without missing values and without repeated rows.
    pub fn new(train: &Dataset, test: &Dataset, seed: u64) -> Self {
        let order = content_order(train.x(), train.y(), seed);
        let ordered = train.x().select_rows(&order);
        let weight = vec![1.0; order.len()];
        let scaler = Scaler::fit(&ordered, &weight, &train.schema().encoded_kinds());
        Self {
            x: scaler.apply(&ordered),
            class: order.iter().map(|&i| train.y()[i]).collect(),
            weight,
            test: scaler.apply(test.x()),
            test_class: test.y().to_vec(),
        }
    }

    /// The rows to train on, as learners see them.
    pub fn sample(&self) -> Result<Sample<'_>> {
        Sample::new(&self.x, &self.class, &self.weight, 2)
    }

    /// Some of the rows to train on, numbered from `first`.
    fn labelled(&self, rows: &[usize], first: usize) -> LabelledRows {
        LabelledRows {
            index: (first..first + rows.len()).collect(),
            class: rows.iter().map(|&i| self.class[i]).collect(),
            weight: rows.iter().map(|&i| self.weight[i]).collect(),
        }
    }
}

/// One step.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The metric.
    pub metric: Metric,
    /// C.
    pub cost: f64,
    /// Surrogate of the validation rows plus regulariser.
    pub loss: f64,
    /// Shares of training, validation and test rows that are misclassified.
    pub errors: [f64; 3],
}

/// The steps of a descent.
#[derive(Clone, Debug)]
pub struct Path {
    /// The start and every step.
    pub steps: Vec<Seen>,
    /// The step that does best on the rows for early stopping, the first of equals.
    pub kept: usize,
}

/// Share of rows misclassified by the outputs of an SVM.
fn error(outputs: &Matrix, class: &[usize]) -> f64 {
    zero_one(&decide(&vote(outputs, 2)), class, &vec![1.0; class.len()])
}

/// The steps of the method itself, under the hold-out criterion.
pub fn path(rows: &Rows, form: Form, params: &Svml) -> Result<Path> {
    let mut steps = Vec::new();
    let mut run = Run::new();
    let fit = descend_seen(&rows.sample()?, form, params, None, &mut run, &mut |iterate| {
        let Some(svml) = iterate.step.svml else { return };
        let test = error(&iterate.outputs(&rows.test), &rows.test_class);
        steps.push(Seen {
            metric: iterate.metric.clone(),
            cost: svml.cost,
            loss: iterate.step.loss,
            errors: [svml.train_error, svml.valid_error, test],
        });
    })?;
    Ok(Path { steps, kept: fit.best })
}

/// Plain gradient descent with a full metric on the same objective: `steps` steps against the gradient, each
/// `rate` times its length, whatever becomes of the loss.
pub fn plain(rows: &Rows, params: &Svml, rate: f64, steps: usize) -> Result<Path> {
    let split = train_valid_stop(Dealt { class: &rows.class, copies: None, groups: None });
    let [train, valid, stop] = [split.train.rows, split.valid.rows, split.stop.rows];
    let x = rows.x.select_rows(&[train.as_slice(), &valid].concat());
    let trained = train.len();
    let (train, valid) = (rows.labelled(&train, 0), rows.labelled(&valid, trained));
    let problems = Problems::Folds(split_pairs(&train, &valid, 2));
    let stopping = rows.labelled(&stop, 0);
    let x_stop = rows.x.select_rows(&stop);
    let d = x.cols();
    let initial = Metric::isotropic(Form::Full, d, (d as f64).sqrt().recip())?;
    let watch = Watch::default();
    let class = [train.class.as_slice(), &valid.class].concat();
    let folds = [train.clone(), valid.clone()];
    let given = FoldRows { class: &class, classes: 2, trained, folds: &folds };
    let mut objective = ValidationLoss::new(&x, &given, problems, initial, params, &watch)?;

    // The outputs of the SVM of a point.
    let outputs = |point: &Point, at: &Matrix| {
        let svms = PairwiseSvms::new(&point.evaluation.svms, 2, |row| train.class[row]);
        let mapped = point.metric.transform(&x.select_rows(&svms.support));
        svms.outputs(params.kernel, &point.metric.transform(at), &mapped)
    };
    let surrogate = Loss { surrogate: params.surrogate, steepness: params.steepness };
    let mean_surrogate = |outputs: &Matrix| {
        let rows = stopping.of_pair((0, 1));
        let margins = rows.y.iter().zip(outputs.col(0)).map(|(y, h)| y * h);
        margins.map(|z| surrogate.value_and_slope(z).0).sum::<f64>() / rows.y.len() as f64
    };
    let mut theta = objective.theta(params.initial_cost);
    let mut gradient = vec![0.0; theta.len()];
    let mut path = Path { steps: Vec::new(), kept: 0 };
    let mut best = (f64::INFINITY, f64::INFINITY);
    for k in 0..=steps {
        let loss = objective.evaluate(&theta, &mut gradient)?;
        let Some(point) = objective.point().filter(|_| loss.is_finite()) else { break };
        let held = outputs(point, &x_stop);
        let result = (error(&held, &stopping.class), mean_surrogate(&held));
        if result < best {
            (best, path.kept) = (result, k);
        }
        let (train_error, valid_error) = objective.problems().errors(&point.evaluation);
        let test = error(&outputs(point, &rows.test), &rows.test_class);
        path.steps.push(Seen {
            metric: point.metric.clone(),
            cost: point.cost,
            loss,
            errors: [train_error, valid_error, test],
        });
        theta.iter_mut().zip(&gradient).for_each(|(t, g)| *t -= rate * g);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use svml::{Generator, Model};

    fn generated(seed: u64) -> Dataset {
        Generator { rows: 160, seed, ..Generator::default() }.generate().unwrap().data
    }

    /// The path is the one that a fit takes, and ends where the fit ends.
    #[test]
    fn the_path_is_that_of_a_fit() {
        let (train, test) = (generated(3), generated(4));
        let rows = Rows::new(&train, &test, 0);
        for form in [Form::Sphere, Form::Full] {
            let params = Svml { form: form.into(), refit: false, ..Svml::paper() };
            let Path { steps, kept } = path(&rows, form, &params).unwrap();
            let model = Model::fit(&train, params).unwrap();
            let trace = &model.report().trace;
            assert_eq!((steps.len(), kept), (trace.len(), model.report().best));
            for (seen, step) in steps.iter().zip(trace) {
                let svml = step.svml.unwrap();
                assert_eq!((seen.loss, seen.cost), (step.loss, svml.cost), "{form}");
                assert_eq!(seen.errors[..2], [svml.train_error, svml.valid_error], "{form}");
            }
            let end = &steps[kept];
            assert_eq!(&end.metric, model.metric());
            assert_eq!(end.errors[2], model.error_rate(&test).unwrap());
        }
    }

    #[test]
    fn both_descents_start_from_the_same_point() {
        let rows = Rows::new(&generated(3), &generated(4), 0);
        let params = Svml::paper();
        let (path, plain) =
            (path(&rows, Form::Full, &params).unwrap(), plain(&rows, &params, 0.5, 0).unwrap());
        let (a, b) = (&path.steps[0], &plain.steps[0]);
        assert_eq!((a.loss, a.cost, a.errors), (b.loss, b.cost, b.errors));
        assert_eq!(a.metric, b.metric);
    }

    #[test]
    fn small_steps_lower_the_loss() {
        let rows = Rows::new(&generated(3), &generated(4), 0);
        let path = plain(&rows, &Svml::paper(), 0.5, 20).unwrap();
        assert_eq!(path.steps.len(), 21);
        assert!(path.steps.windows(2).all(|w| w[1].loss < w[0].loss));
    }
}
