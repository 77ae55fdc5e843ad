//! The SVMs of a model: trained on all rows for a given metric and C, or taken over from learning, with the
//! temperature of their probabilities.

use serde::{Deserialize, Serialize};

use crate::calibrate;
use crate::data::folds::Part;
use crate::data::prepare::TrainingRows;
use crate::data::{PairRows, Sample, folds, pairs};
use crate::error::Result;
use crate::kernel::{self, Gram};
use crate::landmarks::{Guess, LandmarkProblems, LandmarkSvms, Landmarks, Problem};
use crate::linalg::Matrix;
use crate::metric::{Kernel, Metric};
use crate::multiclass::{PairwiseSvms, inside_margin, outputs, solve_pair, train_pairs, vote};
use crate::parallel;
use crate::run::{Key, Watch};
use crate::svm::{BinarySvm, Trained};
use crate::svml::approach::EXACT_AT_ONCE;

/// Rows whose decision values without them fix the temperature; more make no difference to one
/// parameter.
const CALIBRATION_ROWS: usize = 1000;
/// Folds of groups for the same.
const CALIBRATION_FOLDS: usize = 5;

/// Relative to the objective, what another Newton step of SVMs on landmarks may gain.
pub(super) const FINAL_TOLERANCE: f64 = 1e-12;

/// The SVM of each pair of classes.
#[derive(Serialize, Deserialize)]
pub(super) struct FinalSvms {
    pub svms: Vec<BinarySvm>,
    /// Worst violation of their optimality conditions.
    pub residual: f64,
    /// The temperature of their probabilities, if it was asked for.
    pub temperature: Option<f64>,
}

/// What the SVMs of a member are trained with.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub kernel: Kernel,
    pub metric: &'a Metric,
    pub cost: f64,
}

impl Setting<'_> {
    /// All of it, in a key.
    pub fn in_key(&self, key: Key) -> Key {
        self.metric.in_key(key.with(&self.kernel)).numbers(&[self.cost])
    }
}

/// The SVM of one pair of classes.
struct FinalSvm {
    svm: BinarySvm,
    residual: f64,
    /// Rows and what the SVM trained without them gives there.
    without: Vec<(usize, f64)>,
}

impl FinalSvm {
    /// Trains on some rows, and asks about those of `chosen` that are among them.
    fn left_out(
        gram: &dyn Gram,
        rows: &PairRows,
        cost: f64,
        start: Option<&[usize]>,
        (chosen, share): (&[usize], &[f64]),
    ) -> Result<Self> {
        let solution = solve_pair(gram, rows, cost, start)?;
        let positions: Vec<usize> = (0..rows.index.len())
            .filter(|&q| chosen.binary_search(&rows.index[q]).is_ok())
            .collect();
        let without = solution.leave_one_out_outputs(&rows.index, &rows.y, &positions, share);
        let without = positions.iter().map(|&q| rows.index[q]).zip(without).collect();
        Ok(Self { without, ..Self::from(solution.trained) })
    }
}

impl From<Trained> for FinalSvm {
    fn from(Trained { svm, residual, .. }: Trained) -> Self {
        Self { svm, residual, without: Vec::new() }
    }
}

impl FinalSvms {
    /// Trains on all rows, starting from `guess`, the likely support set of each pair or nothing, and fits the
    /// temperature to their leave-one-out outputs if asked to.
    pub fn train(
        rows: &TrainingRows,
        setting: Setting<'_>,
        guess: &[Vec<usize>],
        calibrate: bool,
        watch: &Watch,
    ) -> Result<Self> {
        let sample = rows.sample()?;
        let key = || {
            let key = Key::new("final").then(sample.key()).with(&calibrate);
            guess.iter().fold(setting.in_key(key), |key, likely| key.places(likely))
        };
        watch.remember(key, || Self::train_now(rows, &sample, setting, guess, calibrate, watch))
    }

    fn train_now(
        rows: &TrainingRows,
        sample: &Sample<'_>,
        setting: Setting<'_>,
        guess: &[Vec<usize>],
        calibrate: bool,
        watch: &Watch,
    ) -> Result<Self> {
        let Setting { kernel, metric, cost } = setting;
        let n = sample.rows();
        let all = sample.all();
        let gram = kernel::backend().gram(&rows.x, n, metric, kernel, watch)?;
        let gram = &*gram;
        // Rows to calibrate on, evenly spread; whole groups are left out where there are groups.
        let step = n.div_ceil(CALIBRATION_ROWS);
        let by_row = calibrate && rows.groups().is_none();
        let chosen: Vec<usize> = if by_row { (0..n).step_by(step).collect() } else { Vec::new() };
        let (pairs, share) = (all.of_pairs(sample.classes()), sample.shares());
        let starts: Vec<_> = (0..pairs.len()).map(|p| guess.get(p).map(Vec::as_slice)).collect();
        let at_once = watch.columns.as_ref().map_or(pairs.len(), |_| EXACT_AT_ONCE);
        let mut trained: Vec<FinalSvm> = Vec::with_capacity(pairs.len());
        for (pairs, starts) in pairs.chunks(at_once).zip(starts.chunks(at_once)) {
            match by_row {
                true => trained
                    .extend(parallel::try_map(pairs.iter().zip(starts), |(rows, start)| {
                        FinalSvm::left_out(gram, rows, cost, *start, (&chosen, &share))
                    })?),
                false => {
                    let svms = train_pairs(gram, pairs, cost, starts)?;
                    trained.extend(svms.into_iter().map(FinalSvm::from));
                }
            }
        }
        let svms: Vec<BinarySvm> = trained.iter().map(|pair| pair.svm.clone()).collect();
        let residual = trained.iter().map(|pair| pair.residual).fold(0.0, f64::max);
        // Columns that there was no room for are zeros.
        watch.check_memory()?;
        if !calibrate {
            return Ok(Self { svms, residual, temperature: None });
        }
        if rows.groups().is_some() {
            let temperature = Some(by_group(sample, rows, gram, cost)?);
            return Ok(Self { svms, residual, temperature });
        }
        // For rows outside its two classes an SVM's output is already out of sample; for its own rows the
        // leave-one-out output is taken.
        let mut values = outputs(gram, &chosen, &svms)?;
        for (p, pair) in trained.iter().enumerate() {
            for (row, h) in &pair.without {
                if let Ok(r) = chosen.binary_search(row) {
                    values[(r, p)] = *h;
                }
            }
        }
        let temperature = Some(temperature(rows, &values, &chosen));
        Ok(Self { svms, residual, temperature })
    }

    /// Trains on all rows, with at most `count` landmarks, starting from what other SVMs say, and fits the temperature if
    /// asked to.
    pub fn on_landmarks(
        rows: &TrainingRows,
        setting: Setting<'_>,
        count: usize,
        guess: Option<Guess>,
        calibrate: bool,
        memory: u64,
        watch: &Watch,
    ) -> Result<Self> {
        let sample = rows.sample()?;
        let key = || {
            let key = Key::new("final on landmarks").then(sample.key()).with(&(count, calibrate));
            let key = setting.in_key(key);
            guess.as_ref().map_or(key, |guess| guess.in_key(key))
        };
        watch.remember(key, || {
            let guess = guess.clone();
            Self::on_landmarks_now(rows, &sample, setting, count, guess, calibrate, memory, watch)
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn on_landmarks_now(
        rows: &TrainingRows,
        sample: &Sample<'_>,
        setting: Setting<'_>,
        count: usize,
        guess: Option<Guess>,
        calibrate: bool,
        memory: u64,
        watch: &Watch,
    ) -> Result<Self> {
        let Setting { kernel, metric, cost } = setting;
        let (x, class, classes) = (sample.x(), sample.class(), sample.classes());
        let landmarks = Landmarks::choose(x, class, classes, count, metric, watch)?;
        let pairs = pairs(classes);
        // SVMs of one half, asked about the other, are calibrated with.
        let half = folds::halves(sample.dealt());
        let folds = [&half.train, &half.valid].map(|part| sample.part(part));
        let mut problems = Problem::of_pairs(classes, &[true; 2], &[false; 2]);
        if calibrate {
            problems.extend(Problem::of_pairs(classes, &[true, false], &[false; 2]));
        }
        let given = LandmarkProblems { kernel, metric, problems, guess };
        let svms = LandmarkSvms::of_folds(x, &folds, landmarks, given, memory, watch)?;
        let mut svms = svms.tolerance(FINAL_TOLERANCE);
        svms.train(cost)?;
        let residual = svms.residual();
        let all: Vec<BinarySvm> = (0..pairs.len()).map(|p| svms.svm(p)).collect();
        let of_half: Vec<BinarySvm> = (pairs.len()..svms.count()).map(|p| svms.svm(p)).collect();
        let temperature = calibrate.then(|| {
            let values = outputs_at(rows, setting, &of_half, &half.valid.rows);
            temperature(rows, &values, &half.valid.rows)
        });
        Ok(Self { svms: all, residual, temperature })
    }

    /// SVMs that were trained on a part only, calibrated on the observations they have not seen.
    pub fn on_part(
        rows: &TrainingRows,
        setting: Setting<'_>,
        svms: Vec<BinarySvm>,
        residual: f64,
        seen: &Part,
    ) -> Result<Self> {
        let sample = rows.sample()?;
        let mut unseen = sample.dealt().without(seen);
        let step = unseen.rows.len().div_ceil(CALIBRATION_ROWS).max(1);
        unseen.rows = unseen.rows.into_iter().step_by(step).collect();
        unseen.copies = unseen.copies.into_iter().step_by(step).collect();
        let unseen = sample.part(&unseen);
        let values = vote(&outputs_at(rows, setting, &svms, &unseen.index), rows.classes.len());
        let temperature = Some(calibrate::temperature(&values, &unseen.class, &unseen.weight));
        Ok(Self { svms, residual, temperature })
    }

    /// SVMs that were trained on all rows, calibrated on what they give at rows left out: for each
    /// pair of classes at its own rows, one after the other. Other rows they have not seen anyway.
    pub fn left_out(
        rows: &TrainingRows,
        setting: Setting<'_>,
        svms: Vec<BinarySvm>,
        residual: f64,
        left_out: &[Vec<f64>],
    ) -> Result<Self> {
        let all = rows.sample()?.all();
        let mut values = outputs_at(rows, setting, &svms, &all.index);
        for (p, (pair, outputs)) in pairs(rows.classes.len()).into_iter().zip(left_out).enumerate()
        {
            for (row, h) in all.of_pair(pair).index.into_iter().zip(outputs) {
                values[(row, p)] = *h;
            }
        }
        let temperature = Some(temperature(rows, &values, &all.index));
        Ok(Self { svms, residual, temperature })
    }
}

/// For each pair of classes the rows that SVMs on part of the rows have inside of the margin or on the wrong side.
pub(super) fn likely_support(
    rows: &TrainingRows,
    setting: Setting<'_>,
    svms: &[BinarySvm],
    watch: &Watch,
) -> Result<Vec<Vec<usize>>> {
    let all = rows.sample()?.all();
    let mut values = Vec::new();
    for some in all.index.chunks(CALIBRATION_ROWS) {
        watch.check()?;
        values.extend(outputs_at(rows, setting, svms, some).into_vec());
    }
    let outputs = Matrix::new(all.index.len(), svms.len(), values)?;
    Ok(inside_margin(&outputs, &all, rows.classes.len()))
}

/// Outputs of all pairs at some rows. // (rows, pairs)
fn outputs_at(
    rows: &TrainingRows,
    setting: Setting<'_>,
    svms: &[BinarySvm],
    at: &[usize],
) -> Matrix {
    let Setting { kernel, metric, .. } = setting;
    let pairwise = PairwiseSvms::new(svms, rows.classes.len(), |row| rows.class[row]);
    let mapped = metric.transform(&rows.x.select_rows(&pairwise.support));
    pairwise.outputs_at(kernel, metric, &rows.x, at, &mapped)
}

/// Where rows belong to groups, one that is left out alone is known by the others of its group: folds of whole groups are
/// asked in its place.
fn by_group(sample: &Sample<'_>, rows: &TrainingRows, gram: &dyn Gram, cost: f64) -> Result<f64> {
    let folds = folds::k_folds(sample.dealt(), CALIBRATION_FOLDS);
    let asked: Vec<Matrix> = parallel::try_map(&folds, |fold| {
        let train = sample.part(&fold.train);
        let trained = train_pairs(gram, &train.of_pairs(sample.classes()), cost, &[])?;
        let svms: Vec<BinarySvm> = trained.into_iter().map(|trained| trained.svm).collect();
        outputs(gram, &fold.valid.rows, &svms)
    })?;
    let at: Vec<usize> = folds.iter().flat_map(|fold| fold.valid.rows.iter().copied()).collect();
    let values = asked.iter().flat_map(|h| h.as_slice().iter().copied()).collect();
    let values = Matrix::new(at.len(), pairs(sample.classes()).len(), values)?;
    Ok(temperature(rows, &values, &at))
}

fn temperature(rows: &TrainingRows, outputs: &Matrix, at: &[usize]) -> f64 {
    let class: Vec<usize> = at.iter().map(|&i| rows.class[i]).collect();
    let weight: Vec<f64> = at.iter().map(|&i| rows.weight[i]).collect();
    calibrate::temperature(&vote(outputs, rows.classes.len()), &class, &weight)
}
