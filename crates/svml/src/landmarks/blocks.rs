//! Rows in blocks: all that a machine on landmarks needs of the rows are sums over them, and every sum is one over fixed
//! blocks of rows, added in their order.
//!
//! A block of K, its rows against the landmarks, is kept where memory allows and computed again where it does not; neither
//! changes a bit of the sums. This is the only place that sees the rows: another implementation may keep them
//! elsewhere, and what goes there and comes back is no larger than m x m.

use std::ops::Range;

use crate::error::Result;
use crate::kernel::Points;
use crate::linalg::Matrix;
use crate::metric::{Kernel, Metric};
use crate::run::Watch;

use super::Landmarks;

/// Rows of a block.
pub const BLOCK: usize = 2048;

/// Rows, class after class, in blocks, with the kernel between them and the landmarks.
pub struct RowBlocks<'a> {
    x: &'a Matrix,
    /// The rows of `x` in the order of the blocks: class after class, ascending within each.
    pub order: Vec<usize>,
    /// Where each class starts in that order, and where the last ends.
    pub starts: Vec<usize>,
    /// The landmarks.
    pub landmarks: Landmarks,
    /// The landmarks as rows. // (m, d)
    pub x_landmarks: Matrix,
    kernel: Kernel,
    metric: Metric,
    points: Points,
    /// K between the landmarks. // (m, m)
    pub k_mm: Matrix,
    /// When to stop.
    pub watch: Watch,
}

/// Blocks of K that are kept for the next pass: the first, as many as memory allows.
pub struct Kept {
    blocks: Vec<Vec<f64>>,
    most: usize,
    /// Where the others are computed.
    spare: Vec<f64>,
}

impl Kept {
    /// As many blocks against `landmarks` landmarks as this many bytes hold.
    pub fn new(memory: u64, landmarks: usize) -> Self {
        let bytes = (8 * BLOCK * landmarks).max(1) as u64;
        let most = usize::try_from(memory / bytes).unwrap_or(usize::MAX);
        Self { blocks: Vec::new(), most, spare: Vec::new() }
    }

    /// Forgets all blocks: K is another one now.
    pub fn clear(&mut self) {
        self.blocks.iter_mut().for_each(Vec::clear);
    }
}

/// A block: its rows, by their places in the order, and its part of K.
pub struct RowBlock<'b> {
    /// Where its rows stand in the order.
    pub places: Range<usize>,
    /// Its rows against the landmarks. // (rows, m)
    pub k: &'b [f64],
}

impl<'a> RowBlocks<'a> {
    /// The rows of `x` with their classes.
    pub fn new(
        x: &'a Matrix,
        class: &[usize],
        classes: usize,
        landmarks: Landmarks,
        kernel: Kernel,
        metric: &Metric,
        watch: &Watch,
    ) -> Self {
        let mut sizes = vec![0; classes];
        class.iter().for_each(|&class| sizes[class] += 1);
        let mut starts = vec![0];
        sizes.iter().for_each(|size| starts.push(starts[starts.len() - 1] + size));
        let mut next = starts.clone();
        let mut order = vec![0; class.len()];
        for (row, &class) in class.iter().enumerate() {
            order[next[class]] = row;
            next[class] += 1;
        }
        let x_landmarks = x.select_rows(&landmarks.rows);
        let points = Points::new(kernel, Matrix::empty());
        let mut blocks = Self {
            x,
            order,
            starts,
            landmarks,
            x_landmarks,
            kernel,
            metric: metric.clone(),
            points,
            k_mm: Matrix::empty(),
            watch: watch.clone(),
        };
        blocks.set_metric(metric);
        blocks
    }

    /// Makes this the kernel of another metric.
    pub fn set_metric(&mut self, metric: &Metric) {
        self.metric = metric.clone();
        let z = metric.transform(&self.x_landmarks);
        self.points = Points::new(self.kernel, z.clone());
        let mut k = Vec::new();
        self.points.fill_all(&z, &mut k);
        let m = z.rows();
        // Equal rows have a kernel value of exactly one.
        k.iter_mut().step_by(m + 1).for_each(|k| *k = 1.0);
        self.k_mm = Matrix::new(m, m, k).unwrap_or_default();
    }

    /// The metric.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Number of landmarks.
    pub fn m(&self) -> usize {
        self.points.count()
    }

    /// The places of a class among the landmarks.
    pub fn columns_of(&self, class: usize) -> Range<usize> {
        self.landmarks.starts[class]..self.landmarks.starts[class + 1]
    }

    /// The places of a class in the order of the blocks.
    pub fn places_of(&self, class: usize) -> Range<usize> {
        self.starts[class]..self.starts[class + 1]
    }

    /// The parts of some places that belong to one class each, with the class.
    pub fn by_class(&self, places: &Range<usize>) -> Vec<(usize, Range<usize>)> {
        (0..self.starts.len() - 1)
            .map(|class| {
                let of = self.places_of(class);
                (class, of.start.max(places.start)..of.end.min(places.end))
            })
            .filter(|(_, range)| !range.is_empty())
            .collect()
    }

    /// The rows at some places. // (places, d)
    pub fn rows(&self, places: Range<usize>) -> Matrix {
        self.x.select_rows(&self.order[places])
    }

    /// Calls `each` with every block, in order.
    pub fn for_each(&self, kept: &mut Kept, mut each: impl FnMut(RowBlock<'_>)) -> Result<()> {
        let n = self.order.len();
        for b in 0..n.div_ceil(BLOCK) {
            self.watch.check()?;
            let places = b * BLOCK..n.min((b + 1) * BLOCK);
            if b == kept.blocks.len() && b < kept.most {
                kept.blocks.push(Vec::new());
            }
            let known = kept.blocks.get(b).is_some_and(|k| !k.is_empty());
            let k = kept.blocks.get_mut(b).unwrap_or(&mut kept.spare);
            if !known {
                let z = self.metric.transform(&self.rows(places.clone()));
                self.points.fill_all(&z, k);
            }
            each(RowBlock { places, k });
        }
        Ok(())
    }
}
