//! The descent of SVML on one split, step by step, with everything that figures 2 and 5 show and a model
//! does not keep: the metric of every step and the error on test rows.

use svml::criterion::{Pair, hold_out, split_pairs};
use svml::data::{Scaler, halve_twice, hash_order};
use svml::kernel::{DenseGram, Gram};
use svml::loss::{Loss, zero_one};
use svml::multiclass::{Labelled, decide, outputs, vote};
use svml::optimise::{Accepted, Limits, Objective, Stop, minimise};
use svml::params::FormChoice;
use svml::svm::Machine;
use svml::watch::Watch;
use svml::{Dataset, Form, Matrix, Metric, Params, Result};

/// The library keeps C within these.
const LEAST_COST: f64 = 1e-3;
const MOST_COST: f64 = 1e4;

/// Rows of one split, standardised: those to train on in the order in which a fit takes them, then those
/// to test on.
pub struct Rows {
    /// The rows. // (n, d)
    pub x: Matrix,
    /// Their classes.
    pub class: Vec<usize>,
    /// How many of them are to train on.
    pub training: usize,
}

impl Rows {
    /// Of data without missing values and without repeated rows.
    pub fn new(train: &Dataset, test: &Dataset, seed: u64) -> Self {
        let order = hash_order(train.x(), train.y(), seed);
        let ordered = train.x().select_rows(&order);
        let weight = vec![1.0; order.len()];
        let scaler = Scaler::fit(&ordered, &weight, &train.schema().encoded_kinds());
        let all = [scaler.apply(&ordered), scaler.apply(test.x())];
        let d = ordered.cols();
        let (n, m) = (ordered.rows(), test.rows());
        let x = Matrix::from_fn(n + m, d, |i, k| match i < n {
            true => all[0][(i, k)],
            false => all[1][(i - n, k)],
        });
        let class = order.iter().map(|&i| train.y()[i]).chain(test.y().iter().copied()).collect();
        Self { x, class, training: n }
    }

    fn labelled(&self, rows: &[usize], first: usize) -> Labelled {
        Labelled {
            index: (first..first + rows.len()).collect(),
            class: rows.iter().map(|&i| self.class[i]).collect(),
            weight: vec![1.0; rows.len()],
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
    /// Shares of training, validation, hold-out and test rows that are misclassified.
    pub errors: [f64; 4],
    /// Mean surrogate of the hold-out rows, which decides between equal errors.
    hold_surrogate: f64,
}

/// The descent of the paper's criterion.
struct Descent<'a> {
    gram: DenseGram<'a>,
    pairs: Vec<Pair>,
    /// Training, validation, hold-out and test rows.
    parts: [Labelled; 4],
    params: &'a Params,
    initial: Metric,
    machines: Vec<Machine>,
    path: Vec<Seen>,
}

/// Rows in the order of the parts, the number that is trained on, the parts, and L0.
fn arrange(rows: &Rows, params: &Params) -> Result<(Matrix, usize, [Labelled; 4], Metric)> {
    let split = halve_twice(&rows.class[..rows.training]);
    let test: Vec<usize> = (rows.training..rows.class.len()).collect();
    let of = [split.train, split.valid, split.hold, test];
    let mut first = 0;
    let parts = of.each_ref().map(|part| {
        first += part.len();
        rows.labelled(part, first - part.len())
    });
    let d = rows.x.cols();
    let form = match params.form {
        FormChoice::Fixed(form) => form,
        FormChoice::Auto => Form::Full,
    };
    let initial = Metric::isotropic(form, d, (d as f64).sqrt().recip())?;
    Ok((rows.x.select_rows(&of.concat()), of[0].len(), parts, initial))
}

impl<'a> Descent<'a> {
    fn new(
        x: &'a Matrix,
        trained: usize,
        parts: [Labelled; 4],
        initial: Metric,
        params: &'a Params,
        watch: &'a Watch,
    ) -> Result<Self> {
        let gram = DenseGram::new(x, trained, &initial, watch)?;
        let pairs = split_pairs(&parts[0], &parts[1], 2);
        Ok(Self { gram, pairs, parts, params, initial, machines: Vec::new(), path: Vec::new() })
    }

    fn loss(&self) -> Loss {
        Loss { surrogate: self.params.surrogate, steepness: self.params.steepness }
    }

    /// The variables: L in units of L0, for a sphere the logarithm of 1/sigma; then log C.
    fn start(&self) -> Vec<f64> {
        let unit = self.unit();
        let values = self.initial.values().iter();
        let mut theta: Vec<f64> = match self.initial.form() {
            Form::Sphere => values.map(|v| v.ln()).collect(),
            _ => values.map(|v| v / unit).collect(),
        };
        theta.push(self.params.initial_cost.ln());
        theta
    }

    fn unit(&self) -> f64 {
        (self.initial.features() as f64).sqrt().recip()
    }

    fn decode(&self, theta: &[f64]) -> Result<(Metric, f64)> {
        let (log_cost, values) = theta.split_last().unwrap_or((&0.0, &[]));
        let values = match self.initial.form() {
            Form::Sphere => values.iter().map(|v| v.exp()).collect(),
            _ => values.iter().map(|v| v * self.unit()).collect(),
        };
        Ok((
            Metric::new(self.initial.form(), self.initial.features(), values)?,
            log_cost.exp().clamp(LEAST_COST, MOST_COST),
        ))
    }

    fn error(&self, part: &Labelled) -> f64 {
        let values = vote(&outputs(&self.gram, &part.index, &self.machines), 2);
        zero_one(&decide(&values), &part.class, &part.weight)
    }
}

impl Objective for Descent<'_> {
    fn evaluate(&mut self, theta: &[f64], gradient: &mut [f64]) -> Result<f64> {
        let (metric, cost) = self.decode(theta)?;
        self.gram.set_metric(&metric)?;
        let found = hold_out(&self.gram, &self.pairs, cost, self.loss(), &self.machines)?;
        let (now, start) = (metric.values(), self.initial.values());
        let size: f64 = start.iter().map(|v| v * v).sum();
        let mut loss = found.loss;
        for (k, d) in found.d_metric.iter().enumerate() {
            loss += self.params.lambda * (now[k] - start[k]).powi(2) / size;
            let d = d + 2.0 * self.params.lambda * (now[k] - start[k]) / size;
            gradient[k] = d * if metric.form() == Form::Sphere { now[k] } else { self.unit() };
        }
        let inside = (LEAST_COST.ln()..=MOST_COST.ln()).contains(&theta[theta.len() - 1]);
        gradient[theta.len() - 1] = if inside { found.d_log_cost } else { 0.0 };
        self.machines = found.machines;
        Ok(loss)
    }

    fn accept(&mut self, step: &Accepted<'_>) -> Result<Option<Stop>> {
        // The line search may have gone on from here.
        let loss = self.evaluate(step.x, &mut vec![0.0; step.x.len()])?;
        let (metric, cost) = self.decode(step.x)?;
        let errors = self.parts.each_ref().map(|part| self.error(part));
        let hold = self.parts[2].of_pair((0, 1));
        let values = outputs(&self.gram, &hold.index, &self.machines);
        let surrogate = |(k, y): (usize, &f64)| self.loss().value_and_slope(y * values[(k, 0)]).0;
        let sum: f64 = hold.y.iter().enumerate().map(surrogate).sum();
        let hold_surrogate = sum / hold.y.len() as f64;
        self.path.push(Seen { metric, cost, loss, errors, hold_surrogate });
        let waited = self.path.len() - 1 - kept(&self.path);
        Ok((waited >= self.params.patience).then_some(Stop::HoldOut))
    }
}

/// The step that does best on the hold-out rows, the first of equals.
pub fn kept(path: &[Seen]) -> usize {
    let result = |k: &usize| (path[*k].errors[2], path[*k].hold_surrogate);
    let better = |a: &usize, b: &usize| result(a).partial_cmp(&result(b));
    (0..path.len()).min_by(|a, b| better(a, b).unwrap_or(std::cmp::Ordering::Equal)).unwrap_or(0)
}

/// The steps of the method itself.
pub fn path(rows: &Rows, params: &Params) -> Result<Vec<Seen>> {
    let watch = Watch::default();
    let (x, trained, parts, initial) = arrange(rows, params)?;
    let mut descent = Descent::new(&x, trained, parts, initial, params, &watch)?;
    let mut theta = descent.start();
    // As in the library: a loss below a tenth of that of knowing nothing is as good as none.
    let limits = Limits {
        iterations: params.max_iterations,
        tolerance: params.tolerance,
        least_size: 0.1 * descent.loss().value_and_slope(0.0).0,
        first_step: 0.3,
    };
    minimise(params.optimiser, &mut descent, &mut theta, limits)?;
    Ok(descent.path)
}

/// Plain gradient descent: `steps` steps against the gradient, each `rate` times its length, whatever
/// becomes of the loss.
pub fn plain(rows: &Rows, params: &Params, rate: f64, steps: usize) -> Result<Vec<Seen>> {
    let watch = Watch::default();
    let patient = Params { patience: usize::MAX, ..params.clone() };
    let (x, trained, parts, initial) = arrange(rows, params)?;
    let mut descent = Descent::new(&x, trained, parts, initial, &patient, &watch)?;
    let mut theta = descent.start();
    let mut gradient = vec![0.0; theta.len()];
    for _ in 0..=steps {
        let value = descent.evaluate(&theta, &mut gradient)?;
        descent.accept(&Accepted { x: &theta, value, step: 0.0 })?;
        theta.iter_mut().zip(&gradient).for_each(|(t, g)| *t -= rate * g);
    }
    Ok(descent.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use svml::{Generator, Model};

    fn generated(seed: u64) -> Dataset {
        Generator { rows: 160, seed, ..Generator::default() }.generate().unwrap().data
    }

    /// The path is the one that a fit takes: it ends where the fit ends.
    #[test]
    fn the_path_is_that_of_a_fit() {
        let (train, test) = (generated(3), generated(4));
        let rows = Rows::new(&train, &test, 0);
        for form in [Form::Sphere, Form::Full] {
            let params = Params { form: form.into(), refit: false, ..Params::paper() };
            let path = path(&rows, &params).unwrap();
            let model = Model::fit(&train, &params).unwrap();
            let trace = &model.report().trace;
            assert_eq!((path.len(), kept(&path)), (trace.len(), model.report().best));
            for (seen, step) in path.iter().zip(trace) {
                assert!((seen.loss - step.loss).abs() < 1e-6, "{form} {} {}", seen.loss, step.loss);
                assert!((seen.cost / step.cost - 1.0).abs() < 1e-4);
            }
            let end = &path[kept(&path)];
            assert!((end.errors[3] - model.error(&test).unwrap()).abs() < 0.01);
        }
    }

    #[test]
    fn small_steps_lower_the_loss() {
        let rows = Rows::new(&generated(3), &generated(4), 0);
        let path = plain(&rows, &Params::paper(), 0.5, 20).unwrap();
        assert_eq!(path.len(), 21);
        assert!(path.windows(2).all(|w| w[1].loss < w[0].loss));
    }
}
