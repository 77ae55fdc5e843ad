//! The derivative of the validation loss, on a card: the weights on entries of K, and their contraction.

use super::super::question::{LandmarkKernel, Validation};
use super::sums::loss_arguments;
use super::{
    Asking, Coefficients, SIDE, SUMMED, Segment, THREADS, WARPS, Work, add_columns, add_outer,
    fold, outputs,
};
use crate::cuda::{Buffer, Lane, View, transposed};
use crate::error::Result;
use crate::metric::{Form, Kernel};

/// Columns of the rows that a block of the kernel for the Laplacian takes at a time.
const DEEP: usize = 16;
/// Values that a block of threads sums.
const SUMMED_BY_BLOCK: usize = 16 * THREADS;

/// Sums over rows, as they stand in an answer.
struct Sums {
    /// d loss / d log C, a place for each class and each SVM that sees it.
    d_log_cost: Buffer<f64>,
    /// What the form needs, and the column sums of T.
    of_metric: Buffer<f64>,
    of_landmarks: Buffer<f64>,
}

impl Work<'_> {
    /// The derivative in log C, and the sums that the derivative in the metric is made of.
    pub(super) fn gradient(
        &mut self,
        validation: Validation,
        cost: f64,
        machines: &[(Vec<f64>, Vec<f64>)],
    ) -> Result<Vec<f64>> {
        let kernel = self.kernel;
        let (m, d) = (self.m(), self.d());
        let asking = Asking::new(&kernel.setting, |number| number < machines.len());
        let theta = |number: usize| machines[number].0.as_slice();
        let u = |number: usize| machines[number].1.as_slice();
        let coefficients = Coefficients::send(&mut self.lane, &asking, m, &[&theta, &u])?;
        let facts = self.facts(&asking, |_| false, |_| true)?;
        let (most, rows) = (asking.most(), self.cut.block.min(self.n()));
        let f = self.lane.scratch::<f64>(2 * rows * most, "outputs")?;
        let on = self.lane.scratch::<f64>(2 * rows * most, "factors of rows")?;
        let blocks = rows.div_ceil(THREADS);
        let partial = self.lane.scratch::<f64>(blocks * most, "partial sums")?;
        let weights = self.lane.scratch::<f64>(rows * m, "weights on a block of K")?;
        let (of_metric, of_landmarks) = match (kernel.metric.form(), kernel.setting.kernel) {
            (Form::Sphere, _) => (1, 0),
            (Form::Diagonal, Kernel::Laplacian) => (d, 0),
            (Form::Diagonal, _) => (d, m),
            _ => (d * d, m),
        };
        let what = "sums of the derivative";
        let sums = Sums {
            d_log_cost: self.lane.scratch(asking.of.len(), what)?,
            of_metric: self.lane.scratch(of_metric, what)?,
            of_landmarks: self.lane.scratch(of_landmarks, what)?,
        };
        for buffer in [&sums.d_log_cost, &sums.of_metric, &sums.of_landmarks] {
            self.lane.clear(buffer.all())?;
        }
        let [surrogate, steepness, total] = loss_arguments(Some(validation));
        for b in 0..self.blocks() {
            self.watch.check()?;
            let block = self.block(b, true)?;
            for (class, rows) in self.segments(&block, |class| asking.of_class(class) > 0) {
                let at = (class, self.starts[class]);
                let segment = block.segment(self.setting, at, &rows, (m, d))?;
                let (rows, svms) = (segment.rows, asking.of_class(class));
                let f = f.matrix(rows, 2 * svms)?;
                let with = coefficients.of_class(&asking, class, m)?;
                outputs(&mut self.lane, segment.k, with, f)?;
                let (of_class, folds) = facts.of_class(&asking, class)?;
                let on = on.matrix(rows, 2 * svms)?;
                let arguments = [
                    f.into(),
                    f.columns(svms, svms)?.into(),
                    segment.weight.into(),
                    segment.fold.into(),
                    of_class.into(),
                    folds.into(),
                    facts.count.into(),
                    on.into(),
                    (&partial).into(),
                    rows.into(),
                    surrogate,
                    steepness,
                    total,
                    cost.into(),
                ];
                self.lane.launch("lm_weigh", (rows, svms), &arguments)?;
                let d_log_cost = sums.d_log_cost.all().part(asking.first[class], 0, svms, 1)?;
                fold(&mut self.lane, d_log_cost, &partial, rows.div_ceil(THREADS), 1.0)?;
                // d loss / d K.
                let weights = weights.matrix(m, rows)?;
                self.lane.gemm(1.0, with.0, transposed(on), 0.0, weights)?;
                let landmarks = self.setting.landmarks.matrix(d, m)?;
                contract(&mut self.lane, kernel, &segment, landmarks, weights, &sums)?;
            }
            self.lane.synchronise()?;
        }
        let d_log_cost: f64 = self.lane.download(sums.d_log_cost.all())?.iter().sum();
        let of_metric = self.lane.download(sums.of_metric.all())?;
        let of_landmarks = self.lane.download(sums.of_landmarks.all())?;
        Ok([vec![d_log_cost], of_metric, of_landmarks].concat())
    }
}

/// Adds what the weights on the entries of K of some rows contribute.
fn contract(
    lane: &mut Lane,
    of: &LandmarkKernel,
    segment: &Segment<'_>,
    landmarks: View<'_, f64>,
    weights: View<'_, f64>,
    sums: &Sums,
) -> Result<()> {
    let (m, n, d) = (landmarks.cols(), segment.rows, landmarks.rows());
    let (form, kernel, x) = (of.metric.form(), of.setting.kernel, segment.x);
    let kind: usize = match (form, kernel) {
        (Form::Sphere, _) => 2,
        (_, Kernel::Exponential) => 1,
        _ => 0,
    };
    let arguments = [weights.into(), segment.k.into(), (n * m).into(), kind.into()];
    lane.launch("lm_times", (n * m, 1), &arguments)?;
    let of_metric = sums.of_metric.all();
    if form == Form::Sphere {
        // Sums of sums, until few are left.
        let mut values = lane.scratch::<f64>((n * m).div_ceil(SUMMED_BY_BLOCK), "sums")?;
        let arguments = [weights.into(), (&values).into(), (n * m).into()];
        lane.launch_blocks("lm_total", (values.len(), 1), (THREADS, 1), &arguments)?;
        while values.len() > THREADS {
            let next = lane.scratch(values.len().div_ceil(SUMMED_BY_BLOCK), "sums")?;
            let arguments = [(&values).into(), (&next).into(), values.len().into()];
            lane.launch_blocks("lm_total", (next.len(), 1), (THREADS, 1), &arguments)?;
            values = next;
        }
        return fold(lane, of_metric, &values, values.len(), 1.0);
    }
    if (form, kernel) == (Form::Diagonal, Kernel::Laplacian) {
        let tiles = n.div_ceil(SIDE);
        let partial = lane.scratch::<f64>(tiles * d, "partial sums")?;
        let arguments = [
            weights.into(),
            x.into(),
            landmarks.into(),
            (&partial).into(),
            n.into(),
            m.into(),
            d.into(),
        ];
        let blocks = (tiles, d.div_ceil(DEEP));
        lane.launch_blocks("lm_absolute", blocks, (THREADS, 1), &arguments)?;
        return fold(lane, of_metric, &partial, tiles, 1.0);
    }
    let tz = lane.scratch::<f64>(n * d, "T Z")?;
    let tz = tz.matrix(d, n)?;
    lane.gemm(1.0, landmarks, weights, 0.0, tz)?;
    add_columns(lane, weights, None, sums.of_landmarks.matrix(m, 1)?)?;
    let row_sums = lane.scratch::<f64>(n, "row sums of T")?;
    let arguments = [weights.into(), (&row_sums).into(), n.into(), m.into()];
    lane.launch_blocks("lm_row_sums", (n.div_ceil(WARPS), 1), (THREADS, 1), &arguments)?;
    if form == Form::Diagonal {
        let chunks = n.div_ceil(SUMMED);
        let partial = lane.scratch::<f64>(chunks * d, "partial sums")?;
        let arguments = [
            x.into(),
            tz.into(),
            (&row_sums).into(),
            (&partial).into(),
            n.into(),
            d.into(),
            SUMMED.into(),
        ];
        let blocks = (d.div_ceil(THREADS), chunks);
        lane.launch_blocks("lm_diagonal", blocks, (THREADS, 1), &arguments)?;
        return fold(lane, of_metric, &partial, chunks, 1.0);
    }
    // Half of X' diag(T 1) X, less X' T Z.
    let arguments = [x.into(), tz.into(), (&row_sums).into(), n.into(), d.into()];
    lane.launch("lm_half", (n * d, 1), &arguments)?;
    add_outer(lane, 1.0, tz, x, sums.of_metric.matrix(d, d)?)
}
