//! The systems of Newton's method on a card: the sum in H of each SVM stays there from one step to the next, H is made of it
//! and factored there, and only right-hand sides and solutions are sent.

use std::sync::Arc;

use super::super::newton::{JITTER, JITTERS};
use super::super::pair::PairColumns;
use super::super::question::LandmarkKernel;
use super::{HeldKernel, THREADS, Work, held};
use crate::cuda::{Argument, Buffer, Gpu, Lane, MOST_BLOCKS, Side, transposed};
use crate::error::{Error, Result};

/// SVMs of at least so many coefficients have their systems on the card; less the second, if there are at most so many SVMs:
/// many small systems are solved sooner by the threads of the processor, one each.
const LARGE: usize = 512;
const SMALL: usize = 128;
const FEW: usize = 4;
/// The systems take at most this share of the card.
const SHARE: usize = 8;

/// Whether the systems of these SVMs stay on the card. It depends on sizes alone.
pub fn keeps_systems(gpu: &Gpu, kernel: &LandmarkKernel) -> bool {
    let lens = || {
        let problems = kernel.setting.problems.iter();
        problems.map(|problem| PairColumns::of(&kernel.setting, problem).len() + 1)
    };
    let bytes = lens().map(|len| 16 * len * len).sum();
    // Not its limit, which may change: the answer must not.
    stay(lens().max().unwrap_or(0), bytes, lens().count(), gpu.total())
}

/// The same by the largest of the systems, the bytes of all and their number, and those of the card.
fn stay(largest: usize, bytes: usize, count: usize, capacity: usize) -> bool {
    let worth = largest >= LARGE || (largest >= SMALL && count <= FEW);
    worth && bytes <= capacity / SHARE
}

/// The system of an SVM.
pub struct HeldSystem {
    /// The number of the point whose rows inside of the margin the sum is over; none while it is made.
    pub at: Option<u64>,
    /// sum w [k, 1] [k, 1]' over them. // (len, len)
    sum: Arc<Buffer<f64>>,
    /// The factor of H. // (len, len)
    factor: Arc<Buffer<f64>>,
}

impl HeldSystem {
    /// Whether there is a sum at the point of this number.
    pub fn is_at(system: &Option<Self>, number: u64) -> bool {
        system.as_ref().is_some_and(|system| system.at == Some(number))
    }

    /// The memory of the sum, which is from now on at no point.
    pub fn sum(system: &mut Option<Self>, lane: &Lane, len: usize) -> Result<Arc<Buffer<f64>>> {
        let known = match system.take() {
            Some(known) => Self { at: None, ..known },
            None => {
                let sum = Arc::new(lane.buffer(len * len, "the sum in H")?);
                let factor = Arc::new(lane.buffer(len * len, "the factor of H")?);
                Self { at: None, sum, factor }
            }
        };
        Ok(system.insert(known).sum.clone())
    }
}

impl Work<'_> {
    /// K between the landmarks, where H is not in terms of w.
    pub(super) fn k_mm_of_systems(&mut self) -> Result<()> {
        let problems = &self.kernel.setting.problems;
        let whitened = problems.iter().all(|problem| self.kernel.root(problem).is_some());
        if whitened || self.held()?.k_mm.is_some() {
            return Ok(());
        }
        let (m, d) = (self.m(), self.d());
        let k = Arc::new(self.lane.buffer(m * m, "K between landmarks")?);
        let Self { lane, setting, .. } = self;
        if let Some(held) = &mut setting.kernel {
            // A row and itself are at distance zero by their differences: the diagonal is one.
            held.points.fill(lane, setting.landmarks.matrix(d, m)?, k.matrix(m, m)?)?;
            held.k_mm = Some(k);
        }
        Ok(())
    }
}

/// A system as it is solved: what it is made of, on the card.
pub struct System {
    gpu: &'static Gpu,
    columns: PairColumns,
    m: usize,
    sum: Arc<Buffer<f64>>,
    factor: Arc<Buffer<f64>>,
    /// K_mm, or the factor of that of the pair where H is in terms of w.
    k_mm: Option<Arc<Buffer<f64>>>,
    root: Option<Arc<Buffer<f64>>>,
}

impl System {
    pub(super) fn new(
        gpu: &'static Gpu,
        kernel: &LandmarkKernel,
        number: usize,
        held_system: Option<&HeldSystem>,
        of_metric: Option<&HeldKernel>,
    ) -> Result<Self> {
        let lost = || gpu.failure("a system of equations is not where it was");
        let problem = kernel.setting.problems.get(number).ok_or_else(lost)?;
        let HeldSystem { sum, factor, .. } = held_system.ok_or_else(lost)?;
        let (sum, factor) = (sum.clone(), factor.clone());
        let of_metric = of_metric.filter(|held| held.metric == kernel.metric);
        let (k_mm, root) = match kernel.root(problem) {
            None => (of_metric.and_then(|held| held.k_mm.clone()), None),
            Some(root) => {
                let known = of_metric.and_then(|held| held.roots.get(&problem.pair).cloned());
                let root = match known {
                    Some(known) => known,
                    None => {
                        let mut lane = gpu.lane()?;
                        Arc::new(held(&mut lane, root.lower(), "a factor of K_mm")?)
                    }
                };
                (None, Some(root))
            }
        };
        let columns = PairColumns::of(&kernel.setting, problem);
        Ok(Self { gpu, columns, m: kernel.m(), sum, factor, k_mm, root })
    }

    /// See [`Systems::solve`](super::super::Systems::solve).
    pub fn solve(&self, cost: Option<f64>, right: &[f64]) -> Result<(Vec<f64>, f64)> {
        let len = self.columns.len() + 1;
        let mut lane = self.gpu.lane()?;
        let lane = &mut lane;
        if let Some(cost) = cost {
            self.factored(lane, cost)?;
        }
        let h = self.factor.matrix(len, len)?;
        // The solution, and the product after it.
        let values = lane.scratch(len + 1, "a solution")?;
        let x = values.all().part(0, 0, len, 1)?;
        let alpha = values.all().part(0, 0, len - 1, 1)?;
        lane.upload(right, x)?;
        let root = match &self.root {
            Some(root) => Some(root.matrix(len - 1, len - 1)?),
            None => None,
        };
        if let Some(root) = root {
            lane.trsm(Side::Left, root, alpha)?;
        }
        lane.trsm(Side::Left, h, x)?;
        lane.gemm(1.0, transposed(x), x, 0.0, values.all().part(len, 0, 1, 1)?)?;
        lane.trsm(Side::Left, transposed(h), x)?;
        if let Some(root) = root {
            lane.trsm(Side::Left, transposed(root), alpha)?;
        }
        let mut solution = lane.download(values.all())?;
        let product = solution.pop().unwrap_or(f64::NAN);
        Ok((solution, product))
    }

    /// The factor of H = K_mm + C sum, or of I + C sum where it is in terms of w.
    fn factored(&self, lane: &mut Lane, cost: f64) -> Result<()> {
        let len = self.columns.len() + 1;
        let trace = lane.scratch::<f64>(1, "the trace of H")?;
        let arguments = [(&*self.sum).into(), len.into(), cost.into(), (&trace).into()];
        lane.launch_blocks("lm_trace", (1, 1), (THREADS, 1), &arguments)?;
        let (a, b) = self.columns.ranges();
        let k_mm = match (&self.root, &self.k_mm) {
            (Some(_), _) => Argument::from(0),
            (None, Some(k)) => (&**k).into(),
            (None, None) => return Err(self.gpu.failure("K between landmarks is not there")),
        };
        let mut jitter = JITTER;
        for _ in 0..JITTERS {
            let arguments: [Argument; 11] = [
                (&*self.factor).into(),
                (&*self.sum).into(),
                k_mm,
                len.into(),
                self.m.into(),
                a.start.into(),
                a.len().into(),
                b.start.into(),
                cost.into(),
                jitter.into(),
                (&trace).into(),
            ];
            let blocks = (len.div_ceil(THREADS), len.min(MOST_BLOCKS));
            lane.launch_blocks("lm_system", blocks, (THREADS, 1), &arguments)?;
            if lane.potrf(self.factor.matrix(len, len)?)?.is_ok() {
                return Ok(());
            }
            jitter *= 100.0;
        }
        Err(Error::NotPositiveDefinite { pivot: 0, ridge: jitter })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_systems_stay_where_there_is_room() {
        let card = 1 << 34;
        let of = |len: usize, count: usize| stay(len, 16 * len * len * count, count, card);
        assert!(of(501, 2) && of(201, 2) && of(2001, 1) && of(600, 90));
        assert!(!of(SMALL - 1, 2) && !of(151, 90));
        assert!(!of(2001, 90), "more than a share of the card");
        assert!(!stay(501, 16 * 501 * 501, 1, 1 << 20));
    }
}
