//! The form of the metric, chosen from the training rows: `form = auto`.
//!
//! The forms are nested: a sphere, a diagonal, and, where directions that are no columns carry the
//! classes, a metric of low rank. Folds dealt anew then compare what was learned, row by row, and a form
//! is left for the next only if fewer rows are misclassified, by more than a quarter of a standard error:
//!
//! 1. from the sphere to the diagonal;
//! 2. from there to low rank, if the loss is lower by two standard errors as well;
//! 3. from there back to the sphere, with ten times its C.
//!
//! `docs/math.md` in the repository says why.

use serde::{Deserialize, Serialize};

use crate::criterion::{Criterion, Pair, fold_pairs, held_outputs};
use crate::data::fold_of_again;
use crate::error::{Error, Result};
use crate::kernel::{DenseGram, Gram};
use crate::learn::gop::{self, outer_product};
use crate::learn::svml::{self, Learned, initial_metric};
use crate::learn::{Control, Sample};
use crate::linalg::{self, Matrix};
use crate::loss::Loss;
use crate::metric::{Form, Metric};
use crate::multiclass::{decide, outputs, pairs, solve_pair, vote};
use crate::optimise::Stop;
use crate::params::{COST_RANGE, FormChoice, Params, Start};
use crate::svm::Machine;
use crate::watch::Watch;

/// Folds for the sphere: something to compare with and to fall back on, so it need not be exact.
const SPHERE_FOLDS: usize = 2;
/// Folds to compare forms with, where the criterion has none of its own.
const FOLDS: usize = 5;
/// The sphere is tried with C times this as well: a loss that is a proper score chooses a machine too
/// smooth for the zero-one loss where one class is rare.
const HARDER: f64 = 10.0;
/// Standard errors by which low rank must lower the loss.
const FORWARD: f64 = 2.0;
/// Standard errors by which any change of form must lower the share misclassified.
const FEWER: f64 = 0.25;
/// The smallest rank that is tried is that of the fewest directions with this share of the trace of G.
const SHARE: f64 = 0.5;
/// G has d x d entries and its eigenvectors take d^3 operations: not for more columns than this.
const MOST_COLUMNS: usize = 1000;

/// A metric and C that were compared with others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The form of the metric.
    pub form: Form,
    /// C.
    pub cost: f64,
    /// Mean of the surrogate over rows that the machines have not seen, by weight.
    pub loss: f64,
    /// Share of those rows misclassified.
    pub error: f64,
    /// Whether it was chosen.
    pub chosen: bool,
}

/// Learns metric and C as the parameters say, with what the form was chosen from.
pub fn learn(
    sample: &Sample<'_>,
    params: &Params,
    control: &mut Control<'_>,
    watch: &Watch,
) -> Result<(Learned, Vec<Candidate>)> {
    params.validate(sample.x.cols())?;
    let form = match params.form {
        FormChoice::Auto => return choose(sample, params, control, watch),
        FormChoice::Fixed(form) => form,
    };
    let from = match params.start {
        Start::Isotropic => None,
        Start::Gradients => Some(gop::start(sample, form, params, control, watch)?),
    };
    Ok((svml::learn(sample, form, params, from, control, watch)?, Vec::new()))
}

fn choose(
    sample: &Sample<'_>,
    params: &Params,
    control: &mut Control<'_>,
    watch: &Watch,
) -> Result<(Learned, Vec<Candidate>)> {
    let rough = Params { criterion: Criterion::KFold(SPHERE_FOLDS), ..params.clone() };
    let sphere = svml::learn(sample, Form::Sphere, &rough, None, control, watch)?;
    if ended(&sphere) {
        return Ok((sphere, Vec::new()));
    }
    let from = Learned {
        metric: initial_metric(sample, Form::Diagonal)?,
        cost: params.initial_cost,
        ..sphere.clone()
    };
    let diagonal = svml::learn(sample, Form::Diagonal, params, Some(from), control, watch)?;
    if ended(&diagonal) {
        let Learned { trace, stop, .. } = diagonal;
        return Ok((Learned { trace, stop, ..sphere }, Vec::new()));
    }
    let fallback = diagonal.clone();
    match compare(sample, params, sphere, diagonal, control, watch) {
        Err(Error::Interrupted) => {
            let stop = if watch.interrupted() { Stop::Interrupted } else { Stop::TimeLimit };
            Ok((Learned { stop, ..fallback }, Vec::new()))
        }
        // Rounding hides which rows are close: nothing to compare.
        Err(Error::NotPositiveDefinite { .. }) => Ok((fallback, Vec::new())),
        chosen => chosen,
    }
}

fn ended(learned: &Learned) -> bool {
    matches!(learned.stop, Stop::Interrupted | Stop::TimeLimit)
}

fn compare(
    sample: &Sample<'_>,
    params: &Params,
    sphere: Learned,
    diagonal: Learned,
    control: &mut Control<'_>,
    watch: &Watch,
) -> Result<(Learned, Vec<Candidate>)> {
    let folds = Folds::new(sample, params);
    let mut candidates = Vec::new();
    let mut consider = |form: Form, held: &Held| {
        let (loss, error) = (held.loss.mean(), held.wrong.mean());
        candidates.push(Candidate { form, cost: held.cost, loss, error, chosen: false });
        candidates.len() - 1
    };

    let gram = folds.gram(&sphere.metric, watch)?;
    let sphere_held = folds.hold(&gram, sphere.cost, &folds.guess(&sphere.machines))?;
    let sphere_index = consider(Form::Sphere, &sphere_held);
    // Machines of other metrics start from the support rows of the sphere's.
    let starts = sphere_held.machines.clone();
    let held = folds.hold(&folds.gram(&diagonal.metric, watch)?, diagonal.cost, &starts)?;
    let index = consider(Form::Diagonal, &held);
    let trace = diagonal.trace.clone();
    let (mut best, mut best_held, mut chosen) =
        match held.wrong.below(&sphere_held.wrong).significant(FEWER) {
            true => (diagonal, held, index),
            false => (Learned { trace, ..sphere.clone() }, sphere_held, sphere_index),
        };

    // Forward, if the directions along which the sphere's machine changes promise enough.
    if let Some(low) = directions(sample, &folds, &gram, &sphere, &starts, &best_held, watch)? {
        let form = low.form();
        let from = Learned { metric: low, trace: best.trace.clone(), ..sphere.clone() };
        let learned = svml::learn(sample, form, params, Some(from), control, watch)?;
        best.trace.clone_from(&learned.trace);
        if ended(&learned) {
            return Ok((Learned { stop: learned.stop, ..best }, Vec::new()));
        }
        let held = folds.hold(&folds.gram(&learned.metric, watch)?, learned.cost, &starts)?;
        let index = consider(form, &held);
        if held.loss.below(&best_held.loss).significant(FORWARD)
            && held.wrong.below(&best_held.wrong).significant(FEWER)
        {
            (best, best_held, chosen) = (learned, held, index);
        }
    }

    // Back to a sphere with a harder margin.
    let cost = (HARDER * sphere.cost).min(COST_RANGE.1);
    if params.learn_cost && cost > sphere.cost {
        let held = folds.hold(&gram, cost, &starts)?;
        let index = consider(Form::Sphere, &held);
        if held.wrong.below(&best_held.wrong).significant(FEWER) {
            let mut machines = held.machines;
            machines.truncate(pairs(sample.classes).len());
            let (trace, unseen) = (best.trace, folds.rows[0].clone());
            best = Learned { cost, machines, unseen, left_out: Vec::new(), trace, ..sphere };
            chosen = index;
        }
    }
    candidates[chosen].chosen = true;
    Ok((best, candidates))
}

/// The leading directions of G (see [`gop`]), at the sphere's size and in the number that does best, if
/// as they are they lower the loss of `best` by enough.
fn directions(
    sample: &Sample<'_>,
    folds: &Folds<'_>,
    gram: &dyn Gram,
    sphere: &Learned,
    starts: &[Machine],
    best: &Held,
    watch: &Watch,
) -> Result<Option<Metric>> {
    let (n, d) = (sample.x.rows(), sample.x.cols());
    if d < 2 || d > MOST_COLUMNS.min(n) {
        return Ok(None);
    }
    let all = sample.labelled(&(0..n).collect::<Vec<_>>(), 0);
    let machines: Vec<Machine> = (pairs(sample.classes).into_iter())
        .map(|pair| Ok(solve_pair(gram, &all.of_pair(pair), sphere.cost, None)?.machine))
        .collect::<Result<_>>()?;
    // For a sphere M is a multiple of I.
    let g = outer_product(gram, sample, &machines);
    let Some((values, vectors)) = linalg::symmetric_eigen(&g) else {
        return Ok(None);
    };
    let values: Vec<f64> = values.into_iter().map(|v| v.max(0.0)).collect();
    let trace: f64 = values.iter().sum();
    if trace <= 0.0 || !trace.is_finite() {
        return Ok(None);
    }
    let size = |metric: &Metric| -> f64 {
        metric.transform(sample.x).as_slice().iter().map(|z| z * z).sum()
    };
    let leading = |rank: usize| {
        let of_scale = |scale: f64| {
            let l = |i: usize, k: usize| scale * (values[i] / trace).sqrt() * vectors[(i, k)];
            Metric::new(Form::Rank(rank), d, Matrix::from_fn(rank, d, l).into_vec())
        };
        let scale = (size(&sphere.metric) / size(&of_scale(1.0)?)).sqrt();
        let metric = of_scale(if scale.is_finite() { scale } else { 1.0 })?;
        let held = folds.hold(&folds.gram(&metric, watch)?, sphere.cost, starts)?;
        Ok::<_, Error>((metric, held))
    };
    // From the fewest that carry half of the trace on, as long as one more helps beyond chance.
    let mut carried = 0.0;
    let few = values.iter().take_while(|v| {
        carried += **v;
        carried < SHARE * trace
    });
    let mut rank = 1 + few.count();
    let (mut metric, mut held) = leading(rank)?;
    while rank < d {
        rank += 1;
        let (next, next_held) = leading(rank)?;
        if !next_held.loss.below(&held.loss).significant(FORWARD) {
            break;
        }
        (metric, held) = (next, next_held);
    }
    Ok(held.loss.below(&best.loss).significant(FORWARD).then_some(metric))
}

/// Folds other than those that were learned on.
struct Folds<'a> {
    sample: &'a Sample<'a>,
    surrogate: Loss,
    /// Fold after fold, every pair of classes.
    pairs: Vec<Pair>,
    /// Rows of each fold.
    rows: Vec<Vec<usize>>,
}

/// What machines give on rows that they have not seen.
struct Held {
    cost: f64,
    /// Surrogate of each such row of each pair of classes.
    loss: Weighted,
    /// Whether each row is misclassified.
    wrong: Weighted,
    /// Fold after fold, those trained without it.
    machines: Vec<Machine>,
}

impl<'a> Folds<'a> {
    fn new(sample: &'a Sample<'a>, params: &Params) -> Self {
        let n = sample.x.rows();
        let k = match params.criterion {
            Criterion::KFold(k) => k,
            Criterion::HoldOut | Criterion::LeaveOneOut => FOLDS,
        };
        let k = k.min(n);
        let all = sample.labelled(&(0..n).collect::<Vec<_>>(), 0);
        let fold_of = fold_of_again(sample.class, k);
        let pairs = fold_pairs(&all, sample.classes, &fold_of, k);
        let rows = (0..k).map(|fold| (0..n).filter(|&row| fold_of[row] == fold).collect());
        Self { sample, surrogate: params.loss(), pairs, rows: rows.collect() }
    }

    fn gram(&self, metric: &Metric, watch: &Watch) -> Result<DenseGram<'a>> {
        DenseGram::new(self.sample.x, self.sample.x.rows(), metric, watch)
    }

    /// The machines of one deal as a start for each problem of this one.
    fn guess(&self, machines: &[Machine]) -> Vec<Machine> {
        let count = pairs(self.sample.classes).len();
        let machines = machines.iter().take(count).cycle();
        machines.take(self.pairs.len()).cloned().collect()
    }

    fn hold(&self, gram: &dyn Gram, cost: f64, starts: &[Machine]) -> Result<Held> {
        let Sample { class, weight, classes, .. } = *self.sample;
        let (machines, h) = held_outputs(gram, &self.pairs, cost, starts)?;
        let mut loss = Weighted::default();
        for (Pair { valid, .. }, h) in self.pairs.iter().zip(&h) {
            for ((y, h), w) in valid.y.iter().zip(h).zip(&valid.weight) {
                loss.push(self.surrogate.value_and_slope(y * h).0, *w);
            }
        }
        let mut wrong = Weighted::default();
        for (rows, machines) in self.rows.iter().zip(machines.chunks(pairs(classes).len())) {
            let decided = decide(&vote(&outputs(gram, rows, machines), classes));
            for (&row, decided) in rows.iter().zip(decided) {
                wrong.push(if decided == class[row] { 0.0 } else { 1.0 }, weight[row]);
            }
        }
        Ok(Held { cost, loss, wrong, machines })
    }
}

/// Values with their weights.
#[derive(Default)]
struct Weighted(Vec<(f64, f64)>);

/// A mean, and its standard error if it were zero.
struct Mean {
    mean: f64,
    error: f64,
}

impl Weighted {
    fn push(&mut self, value: f64, weight: f64) {
        self.0.push((value, weight));
    }

    fn total(&self) -> f64 {
        self.0.iter().map(|(_, weight)| weight).sum::<f64>().max(f64::MIN_POSITIVE)
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|(value, weight)| value * weight).sum::<f64>() / self.total()
    }

    /// How far these values are below others of the same rows.
    fn below(&self, other: &Self) -> Mean {
        let total = self.total();
        let (mut mean, mut squares) = (0.0, 0.0);
        for ((value, weight), (other, _)) in self.0.iter().zip(&other.0) {
            let difference = weight / total * (other - value);
            mean += difference;
            squares += difference * difference;
        }
        Mean { mean, error: squares.sqrt() }
    }
}

impl Mean {
    fn significant(&self, errors: f64) -> bool {
        self.mean > errors * self.error
    }
}
