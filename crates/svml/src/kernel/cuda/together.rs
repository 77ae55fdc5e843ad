//! Many SVMs at a time on a card, which one small kernel matrix after the other would leave idle: pairs of classes and folds.
//!
//! Products of all of them are one launch, and so are their matrices K_SS + ridge. Matrices of about the same size are factored
//! together; those that are smaller are filled up with the unit matrix.

use std::ops::Range;

use super::plan::{BROAD, steps};
use super::{CudaGram, in_tiles, kind};
use crate::cuda::{Argument, Buffer, Lane, MOST_BLOCKS};
use crate::error::{Error, Result};
use crate::kernel::{Product, System, Together};

/// Problems with more rows keep a card busy one by one, in queues side by side.
const MOST_ROWS: usize = 700;
/// So many rows each problem may have for every one of them: few problems are better off in queues, many are not.
const ROWS_FOR_EACH: usize = 20;
/// A matrix is filled up by at most one row in so many, unless it is small.
const FILLED_UP: usize = 4;
const SMALL: usize = 64;

/// Whether problems of so many rows are better off together than in queues side by side: if they are small, and the more of them
/// there are the larger they may be.
fn pays(sizes: &[usize]) -> bool {
    let most = MOST_ROWS.min(ROWS_FOR_EACH * sizes.len());
    !sizes.is_empty() && sizes.iter().all(|rows| *rows <= most)
}

impl CudaGram<'_> {
    /// Whether problems of so many rows are solved together. Numbers of 64 bits are what they are solved with.
    pub(super) fn is_for(&self, sizes: &[usize]) -> bool {
        pays(sizes) && !self.gpu.factors_in_single()
    }

    /// The solutions of systems that were chosen to be filled up to the same size.
    fn solve_filled_up(&self, systems: &[&System], size: usize) -> Result<Vec<Vec<f64>>> {
        self.watch.check()?;
        let count = systems.len();
        let width = systems.iter().map(|system| system.width()).max().unwrap_or(0);
        let begins = begins(systems.iter().map(|system| system.set.len()));
        let places: Vec<usize> = systems.iter().flat_map(|s| s.set.iter().copied()).collect();
        let ridge: Vec<f64> = systems.iter().flat_map(|s| s.ridge.iter().copied()).collect();
        let mut sides = vec![0.0; size * width * count];
        for (system, side) in systems.iter().zip(sides.chunks_mut((size * width).max(1))) {
            let columns = system.x.chunks(system.set.len().max(1));
            columns.zip(side.chunks_mut(size)).for_each(|(x, to)| to[..x.len()].copy_from_slice(x));
        }
        let mut lane = self.gpu.lane()?;
        let lane = &mut lane;
        let matrices = lane.scratch(size * size * count, "kernel matrices of several SVMs")?;
        self.fill_each(lane, &matrices, &places, &ridge, &begins, size)?;
        let sides = lane.send(&sides)?;
        let (a, b) = (matrices.matrix(size, size * count)?, sides.matrix(size, width * count)?);
        if let Err((p, pivot)) = lane.solve_each(a, b)? {
            let ridge = systems[p].ridge.iter().copied().fold(f64::INFINITY, f64::min);
            return Err(Error::NotPositiveDefinite { pivot, ridge });
        }
        let solved = lane.download(b)?;
        let solved = solved.chunks((size * width).max(1)).zip(systems);
        Ok(solved
            .map(|(columns, system)| {
                let columns = columns.chunks(size).take(system.width());
                columns.flat_map(|column| column[..system.set.len()].iter().copied()).collect()
            })
            .collect())
    }

    /// Fills matrices of the same size.
    fn fill_each(
        &self,
        lane: &mut Lane,
        matrices: &Buffer<f64>,
        places: &[usize],
        ridge: &[f64],
        begins: &[usize],
        size: usize,
    ) -> Result<()> {
        let count = begins.len() - 1;
        let (places, ridge) = (lane.send_places(places)?, lane.send(ridge)?);
        let begins = lane.send_places(begins)?;
        let arguments: [Argument; 9] = [
            matrices.into(),
            (&self.z).into(),
            (&places).into(),
            (&ridge).into(),
            (&begins).into(),
            count.into(),
            size.into(),
            self.metric.rank().into(),
            kind(self.kernel).into(),
        ];
        let across = size.div_ceil(BROAD);
        let blocks = (across * across, count.min(MOST_BLOCKS));
        lane.launch_blocks("systems_of_each", blocks, (256, 1), &arguments)
    }
}

impl System {
    /// How many right-hand sides it has.
    fn width(&self) -> usize {
        self.x.len().checked_div(self.set.len()).unwrap_or(0)
    }
}

/// Where each of some lists begins, if they stand one after the other, and where the last one ends.
fn begins(lengths: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut begins = vec![0];
    for length in lengths {
        begins.push(begins[begins.len() - 1] + length);
    }
    begins
}

/// Which of the systems of these sizes, in descending order, are solved together: their matrices have so many entries at most,
/// unless it is only one.
fn batches(sizes: &[usize], entries: usize) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let mut first = 0;
    for (k, size) in sizes.iter().enumerate() {
        let largest = sizes[first];
        let alike = largest - size <= (largest / FILLED_UP).max(SMALL);
        let room = (k + 1 - first) * largest * largest <= entries;
        if !(alike && room) && k > first {
            batches.push(first..k);
            first = k;
        }
    }
    if first < sizes.len() {
        batches.push(first..sizes.len());
    }
    batches
}

impl Together for CudaGram<'_> {
    fn multiply(&self, products: &[Product<'_>]) -> Result<Vec<Vec<f64>>> {
        self.watch.check()?;
        let rows = begins(products.iter().map(|product| product.rows.len()));
        let cols = begins(products.iter().map(|product| product.cols.len()));
        let mut tiles: Vec<usize> = Vec::new();
        for p in 0..products.len() {
            for some in steps(rows[p + 1] - rows[p], BROAD) {
                tiles.extend([rows[p] + some.start, rows[p] + some.end, cols[p], cols[p + 1]]);
            }
        }
        let total = rows[products.len()];
        if total == 0 {
            return Ok(vec![Vec::new(); products.len()]);
        }
        let of_rows: Vec<usize> = products.iter().flat_map(|p| p.rows.iter().copied()).collect();
        let of_cols: Vec<usize> = products.iter().flat_map(|p| p.cols.iter().copied()).collect();
        let v: Vec<f64> = products.iter().flat_map(|p| p.v.iter().copied()).collect();
        let mut lane = self.gpu.lane()?;
        let lane = &mut lane;
        let (of_rows, of_cols) = (lane.send_places(&of_rows)?, lane.send_places(&of_cols)?);
        let (v, on_card) = (lane.send(&v)?, lane.send_places(&tiles)?);
        let out = lane.scratch(total, "the sums of several products")?;
        let arguments: [Argument; 8] = [
            (&out).into(),
            (&self.z).into(),
            (&of_rows).into(),
            (&of_cols).into(),
            (&v).into(),
            (&on_card).into(),
            self.metric.rank().into(),
            kind(self.kernel).into(),
        ];
        lane.launch_blocks("products_of_each", (tiles.len() / 4, 1), (256, 1), &arguments)?;
        let sums = lane.download(out.all())?;
        Ok(rows.windows(2).map(|ends| sums[ends[0]..ends[1]].to_vec()).collect())
    }

    fn solve(&self, systems: &[System]) -> Result<Vec<Vec<f64>>> {
        // The largest first, so that those of about the same size stand beside each other.
        let mut order: Vec<usize> = (0..systems.len()).collect();
        order.sort_by_key(|&p| std::cmp::Reverse(systems[p].set.len()));
        let sorted: Vec<&System> = order.iter().map(|&p| &systems[p]).collect();
        let sizes: Vec<usize> = sorted.iter().map(|system| system.set.len()).collect();
        let mut solved = vec![Vec::new(); systems.len()];
        in_tiles(self.gpu, |entries| {
            for batch in batches(&sizes, entries) {
                let size = sizes[batch.start];
                if size > 0 {
                    let of_batch = self.solve_filled_up(&sorted[batch.clone()], size)?;
                    order[batch].iter().zip(of_batch).for_each(|(&p, x)| solved[p] = x);
                }
            }
            Ok(())
        })?;
        Ok(solved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_problems_are_solved_together() {
        assert!(pays(&[77; 650]) && pays(&[400; 90]) && pays(&[150; 12]));
        assert!(!pays(&[]) && !pays(&[500; 12]) && !pays(&[701; 650]));
        // The largest of them decides.
        let mut sizes = vec![100; 90];
        sizes[50] = 800;
        assert!(!pays(&sizes));
    }

    #[test]
    fn matrices_of_about_the_same_size_are_solved_together() {
        assert!(batches(&[], 1 << 30).is_empty());
        let sizes = [500, 450, 380, 370, 100, 60, 40, 0];
        assert_eq!(batches(&sizes, 1 << 30), [0..3, 3..4, 4..7, 7..8]);
        // Two of them fit.
        assert_eq!(batches(&[100, 100, 100], 20_000), [0..2, 2..3]);
        // One that does not fit is tried all the same.
        assert_eq!(batches(&[100, 100], 1), [0..1, 1..2]);
    }

    #[test]
    fn lists_one_after_the_other() {
        assert_eq!(begins([3, 0, 2].into_iter()), [0, 3, 3, 5]);
        assert_eq!(begins(std::iter::empty()), [0]);
    }
}
