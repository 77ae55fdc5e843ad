//! The support set of an approximate SVM on a card: see [`crate::kernel::guess`].

use super::{CudaGram, Entry, steps, work};
use crate::cuda::{Argument, Buffer, Lane, Side as Hand, View, transposed};
use crate::error::{Error, Result};
use crate::kernel::guess;

/// Rows whose products are added at a time.
const ROWS: usize = 8192;

/// Features of all rows, and of the offset in the last place. // (landmarks + 1, rows) by columns
struct Features {
    z: Buffer<f64>,
    width: usize,
    count: usize,
}

impl CudaGram<'_> {
    pub(super) fn support_through(
        &self,
        rows: &[usize],
        y: &[f64],
        cost: &[f64],
        landmarks: &[usize],
    ) -> Result<Vec<usize>> {
        let mut lane = self.gpu.lane()?;
        let lane = &mut lane;
        let features = match self.features(lane, rows, landmarks) {
            // An approximation that there is no room for is not worth an error.
            Ok(None) | Err(Error::TooLarge { .. }) => return Ok(Vec::new()),
            Ok(Some(features)) => features,
            Err(error) => return Err(error),
        };
        let penalties = guess::penalties(landmarks.len());
        guess::support_set(y, |set| {
            self.watch.check()?;
            self.step(lane, &features, &penalties, set, y, cost)
        })
    }

    /// Z' = R^-1 K[landmarks, rows] with R R' = K[landmarks, landmarks], and ones below; none if landmarks are too close.
    fn features(
        &self,
        lane: &mut Lane,
        rows: &[usize],
        landmarks: &[usize],
    ) -> Result<Option<Features>> {
        let (count, m) = (rows.len(), landmarks.len());
        let width = m + 1;
        let (rows, points) = (self.side(lane, rows)?, self.side(lane, landmarks)?);
        let root = lane.scratch(m * m, "the kernel matrix of the landmarks")?;
        let root = root.matrix(m, m)?;
        self.fill(lane, Entry::Value, root, (&points, 0), (&points, 0))?;
        add_to_diagonal(lane, root, &vec![guess::LANDMARK_RIDGE; m])?;
        if lane.potrf(root)?.is_err() {
            return Ok(None);
        }
        let z = lane.scratch(width * count, "the kernel of rows and landmarks")?;
        let all = z.matrix(width, count)?;
        let ones = lane.send(&vec![1.0; ROWS.min(count)])?;
        for j in steps(count, ROWS) {
            let part = all.part(0, j.start, m, j.len())?;
            self.fill(lane, Entry::Value, part, (&points, 0), (&rows, j.start))?;
            lane.trsm(Hand::Left, root, part)?;
            copy(lane, all.part(m, j.start, 1, j.len())?, ones.matrix(1, j.len())?)?;
            let solving = (m * m) as f64 * j.len() as f64;
            lane.pace(solving + work(part, points.rank), &|| self.watch.check())?;
        }
        Ok(Some(Features { z, width, count }))
    }

    /// Outputs at all rows of the least squares on a set.
    fn step(
        &self,
        lane: &mut Lane,
        features: &Features,
        penalties: &[f64],
        set: &[usize],
        y: &[f64],
        cost: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        let &Features { ref z, width, count } = features;
        let z = z.matrix(width, count)?;
        let (mut roots, mut targets) = (vec![0.0; count], vec![0.0; count]);
        for &p in set {
            roots[p] = cost[p].sqrt();
            targets[p] = cost[p] * y[p];
        }
        let (roots, targets) = (lane.send(&roots)?, lane.send(&targets)?);
        let a = lane.scratch(width * width, "the system of an approximate SVM")?;
        let a = a.matrix(width, width)?;
        let scaled = lane.scratch(width * ROWS.min(count), "scaled features")?;
        for j in steps(count, ROWS) {
            let scaled = scaled.matrix(width, j.len())?;
            let roots = roots.all().part(j.start, 0, j.len(), 1)?;
            let some = z.columns(j.start, j.len())?;
            super::contract::scale(lane, scaled, some, Argument::from(0), roots.into())?;
            lane.syrk(1.0, scaled, if j.start == 0 { 0.0 } else { 1.0 }, a)?;
            let products = (width * width) as f64 * j.len() as f64;
            lane.pace(products, &|| self.watch.check())?;
        }
        add_to_diagonal(lane, a, penalties)?;
        let weights = lane.scratch(width, "the weights of an approximate SVM")?;
        lane.gemv(1.0, z, targets.all(), 0.0, weights.all())?;
        if lane.potrf(a)?.is_err() {
            return Ok(None);
        }
        lane.trsm(Hand::Left, a, weights.all())?;
        lane.trsm(Hand::Left, transposed(a), weights.all())?;
        let outputs = lane.scratch(count, "the outputs of an approximate SVM")?;
        lane.gemv(1.0, transposed(z), weights.all(), 0.0, outputs.all())?;
        lane.download(outputs.all()).map(Some)
    }
}

/// Adds values to the diagonal.
pub(super) fn add_to_diagonal(lane: &mut Lane, a: View<'_, f64>, values: &[f64]) -> Result<()> {
    let count = values.len();
    let values = lane.send(values)?;
    let arguments: [Argument; 4] = [a.into(), a.stride().into(), (&values).into(), count.into()];
    lane.launch("add_to_diagonal", (count, 1), &arguments)
}

/// Copies a matrix.
pub(super) fn copy(lane: &mut Lane, to: View<'_, f64>, from: View<'_, f64>) -> Result<()> {
    let (rows, cols) = (from.rows(), from.cols());
    let arguments: [Argument; 6] = [
        to.into(),
        to.stride().into(),
        from.into(),
        from.stride().into(),
        rows.into(),
        cols.into(),
    ];
    lane.launch("copy_matrix", (rows, cols), &arguments)
}
