//! Systems with K_SS + ridge on a card: a Cholesky factor that follows a moving set S.
//!
//! The factor is whole on the card. Where numbers of 64 bits are fast it has these. Elsewhere it has 32 bits, and is used as
//! a preconditioner of conjugate gradients with 64 bits, whose products with K are computed by tiles; what needs the inverse
//! itself, and what the short factor fails for, is done with a factor of 64 bits all the same.

use std::sync::{Arc, Mutex};

use super::contract::At;
use super::support::{add_to_diagonal, copy};
use super::{CudaGram, Entry, Factor, Side, Tile, in_tiles, steps, work};
use crate::cuda::{Argument, Buffer, Lane, Real, Side as Hand, View, transposed};
use crate::error::{Error, Result};
use crate::kernel::Inverse;
use crate::linalg::{Matrix, SmallSystem, dot};

/// Matrices up to this size are factored at once, which takes a tenth of a second at most; the second, where numbers of 64 bits
/// are slow.
const WHOLE: (usize, usize) = (24_576, 4096);
/// Columns of a block column of larger ones.
const BLOCK: usize = 4096;
/// Columns of the rest that are updated at a time, so that an interrupt is seen in between.
const STRIP: usize = 4096;
/// Columns of the inverse that are computed together.
const INVERSE_BLOCK: usize = 1024;
/// Rows of the triangles whose inverses are kept, to solve for few right-hand sides.
const TRIANGLE: usize = 256;
/// Few right-hand sides are at most so many, and a matrix is not worth the triangles below so many rows.
const FEW: (usize, usize) = (16, 1024);
/// A border instead of another factorisation, if at most so many rows have changed and one in so many.
const BORDER: (usize, usize) = (512, 32);
/// Conjugate gradients: the residual to reach, the one that is good enough where it is not reached, and the most steps.
const REFINED: (f64, f64, usize) = (1e-12, 1e-10, 100);

/// A factor G with G G' = K[set, set] + diag(ridge).
enum Root {
    /// Of numbers of 64 bits.
    Double(Arc<Double>),
    /// Of 32 bits, with the factor of 64 bits once something has asked for it.
    Single { g: Buffer<f32>, double: Mutex<Option<Arc<Double>>> },
}

/// A factor of 64 bits, and the inverses of the triangles along its diagonal.
struct Double {
    n: usize,
    g: Buffer<f64>,
    triangles: Option<Buffer<f64>>,
}

/// The factorisation, by a factor for a base set and, when the set has moved a little since, by a border around it: see the
/// factorisation of the matrix in memory. The columns T of the border are on the card, its small system is on the host.
pub(super) struct CudaFactor<'g, 'x> {
    gram: &'g CudaGram<'x>,
    base: Vec<usize>,
    base_ridge: Vec<f64>,
    root: Option<Root>,
    /// Columns of U seen so far: Newton steps come back to most of them.
    changes: Vec<Change>,
    /// The columns of T that belong to them, in blocks as they came. // (n, block) by columns
    t: Vec<(usize, Buffer<f64>)>,
    /// For each of them its inner products with all up to those computed together with it.
    products: Vec<Vec<f64>>,
    border: Option<Border>,
}

/// A column of U: the row added, or the position in the base set of the row removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Added(usize),
    Removed(usize),
}

/// The set as it differs from the base set.
struct Border {
    schur: SmallSystem,
    /// Which of the columns are in use, rows added first.
    columns: Vec<usize>,
    /// (position in the new set, position in the base set) of the rows in both.
    kept: Vec<(usize, usize)>,
    /// Positions in the new set of the rows added.
    added: Vec<usize>,
    /// The new set, and its ridge.
    set: Vec<usize>,
    ridge: Vec<f64>,
}

/// Factors the lower triangle of a matrix in its place. The error is the number of the pivot that is not positive.
fn cholesky<T: Real>(
    lane: &mut Lane,
    a: View<'_, T>,
    check: &dyn Fn() -> Result<()>,
) -> Result<std::result::Result<(), usize>> {
    let n = a.rows();
    let whole = if lane.gpu().has_fast_doubles() { WHOLE.0 } else { WHOLE.1 };
    let width = if n <= whole { n } else { BLOCK };
    let (minus, one) = (T::from(-1.0), T::ONE);
    for k in steps(n, width) {
        check()?;
        let diagonal = a.part(k.start, k.start, k.len(), k.len())?;
        if let Err(pivot) = lane.potrf(diagonal)? {
            return Ok(Err(k.start + pivot));
        }
        let rest = n - k.end;
        let panel = a.part(k.end, k.start, rest, k.len())?;
        // Some rows at a time, so that an interrupt is seen in between.
        for i in steps(rest, STRIP) {
            let rows = panel.part(i.start, 0, i.len(), k.len())?;
            lane.trsm(Hand::Right, transposed(diagonal), rows)?;
            lane.pace(i.len() as f64 * (k.len() * k.len()) as f64, check)?;
        }
        for j in steps(rest, STRIP) {
            let (at, below) = (k.end + j.start, rest - j.end);
            let own = panel.part(j.start, 0, j.len(), k.len())?;
            lane.syrk(minus, own, one, a.part(at, at, j.len(), j.len())?)?;
            let left = panel.part(j.end, 0, below, k.len())?;
            let out = a.part(k.end + j.end, at, below, j.len())?;
            lane.gemm(minus, left, transposed(own), one, out)?;
            lane.pace(2.0 * (rest - j.start) as f64 * (j.len() * k.len()) as f64, check)?;
        }
    }
    Ok(Ok(()))
}

/// From one column of a large matrix to the next: columns that begin at multiples of 128 bytes are read much faster.
fn stride(n: usize) -> usize {
    n.next_multiple_of(16)
}

/// A square matrix whose columns begin so.
fn square(buffer: &Buffer<f64>, n: usize) -> Result<View<'_, f64>> {
    buffer.matrix(stride(n), n)?.part(0, 0, n, n)
}

/// The inverse of the small triangle that begins with this column, transposed.
fn inverse_of(triangles: &Buffer<f64>, first: usize, rows: usize) -> Result<View<'_, f64>> {
    let all = triangles.matrix(TRIANGLE, triangles.len() / TRIANGLE)?;
    all.part(0, first, rows, rows)
}

impl Double {
    fn new(gram: &CudaGram<'_>, set: &[usize], ridge: &[f64]) -> Result<Self> {
        let n = set.len();
        let check = || gram.watch.check();
        let mut lane = gram.gpu.lane()?;
        let lane = &mut lane;
        let values = stride(n).saturating_mul(n);
        let g = lane.buffer(values, "a factorisation of the kernel matrix")?;
        let a = square(&g, n)?;
        let side = gram.side(lane, set)?;
        for j in steps(n, STRIP) {
            let strip = a.part(j.start, j.start, n - j.start, j.len())?;
            gram.fill(lane, Entry::Value, strip, (&side, j.start), (&side, j.start))?;
            lane.pace(work(strip, side.rank), &check)?;
        }
        add_to_diagonal(lane, a, ridge)?;
        if let Err(pivot) = cholesky(lane, a, &check)? {
            return Err(Error::NotPositiveDefinite { pivot, ridge: least(ridge) });
        }
        let triangles = match n < FEW.1 {
            true => None,
            false => {
                let count = n.div_ceil(TRIANGLE);
                let triangles =
                    lane.buffer(count * TRIANGLE * TRIANGLE, "inverses of small triangles")?;
                let stride = a.stride().into();
                let arguments: [Argument; 5] =
                    [(&triangles).into(), a.into(), stride, n.into(), TRIANGLE.into()];
                lane.launch_blocks("invert_triangles", (count, 1), (TRIANGLE, 1), &arguments)?;
                Some(triangles)
            }
        };
        Ok(Self { n, g, triangles })
    }

    fn g(&self) -> Result<View<'_, f64>> {
        square(&self.g, self.n)
    }

    /// c <- G^-1 c, or for `turned` G'^-1 c.
    fn solve(&self, lane: &mut Lane, c: View<'_, f64>, turned: bool) -> Result<()> {
        let g = self.g()?;
        let Some(triangles) = self.triangles.as_ref().filter(|_| c.cols() <= FEW.0) else {
            return match turned {
                true => lane.trsm(Hand::Left, transposed(g), c),
                false => lane.trsm(Hand::Left, g, c),
            };
        };
        // Block after block: its triangle by the inverse of that, then what it is to the other rows.
        let solved = lane.scratch(self.n * c.cols(), "a solution")?;
        let solved = solved.matrix(self.n, c.cols())?;
        let mut blocks: Vec<_> = steps(self.n, TRIANGLE).collect();
        if turned {
            blocks.reverse();
        }
        for k in blocks {
            let own = c.part(k.start, 0, k.len(), c.cols())?;
            let x = solved.part(k.start, 0, k.len(), c.cols())?;
            let inverse = inverse_of(triangles, k.start, k.len())?;
            let arguments: [Argument; 9] = [
                x.into(),
                x.stride().into(),
                own.into(),
                own.stride().into(),
                inverse.into(),
                k.len().into(),
                c.cols().into(),
                TRIANGLE.into(),
                usize::from(turned).into(),
            ];
            lane.launch_blocks("solve_triangle", (k.len().div_ceil(8), 1), (256, 1), &arguments)?;
            let (kernel, at_once, others, block) = match turned {
                true => {
                    let block = g.part(k.start, 0, k.len(), k.start)?;
                    ("solve_above", 8, c.part(0, 0, k.start, c.cols())?, block)
                }
                false => {
                    let rest = self.n - k.end;
                    let block = g.part(k.end, k.start, rest, k.len())?;
                    ("solve_below", 32, c.part(k.end, 0, rest, c.cols())?, block)
                }
            };
            let arguments: [Argument; 9] = [
                others.into(),
                others.stride().into(),
                block.into(),
                block.stride().into(),
                x.into(),
                x.stride().into(),
                others.rows().into(),
                k.len().into(),
                c.cols().into(),
            ];
            let blocks = (others.rows().div_ceil(at_once), 1);
            lane.launch_blocks(kernel, blocks, (256, 1), &arguments)?;
        }
        copy(lane, c, solved)
    }
}

/// The smallest of some ridges.
fn least(ridge: &[f64]) -> f64 {
    ridge.iter().copied().fold(f64::INFINITY, f64::min)
}

/// A factor of 32 bits, unless the matrix is not positive definite in these.
fn single(gram: &CudaGram<'_>, set: &[usize], ridge: &[f64]) -> Result<Option<Buffer<f32>>> {
    let n = set.len();
    let check = || gram.watch.check();
    let g = in_tiles(gram.gpu, |entries| {
        let mut lane = gram.gpu.lane()?;
        let lane = &mut lane;
        let g = lane.buffer::<f32>(n.saturating_mul(n), "a factorisation of the kernel matrix")?;
        let a = g.matrix(n, n)?;
        let side = gram.side(lane, set)?;
        let width = (entries / n).clamp(1, STRIP);
        let memory = lane.scratch(n * width.min(n), "a part of the kernel matrix")?;
        for j in steps(n, width) {
            let (rows, cols) = (n - j.start, j.len());
            let strip = memory.matrix(rows, cols)?;
            gram.fill(lane, Entry::Value, strip, (&side, j.start), (&side, j.start))?;
            add_to_diagonal(lane, strip, &ridge[j.clone()])?;
            let out = a.part(j.start, j.start, rows, cols)?;
            let arguments: [Argument; 6] = [
                out.into(),
                out.stride().into(),
                strip.into(),
                strip.stride().into(),
                rows.into(),
                cols.into(),
            ];
            lane.launch("to_single", (rows, cols), &arguments)?;
            lane.pace(work(strip, side.rank), &check)?;
        }
        Ok(g)
    })?;
    let mut lane = gram.gpu.lane()?;
    let factored = cholesky(&mut lane, g.matrix(n, n)?, &check)?;
    Ok(factored.is_ok().then_some(g))
}

impl<'g, 'x> CudaFactor<'g, 'x> {
    pub fn new(gram: &'g CudaGram<'x>, set: &[usize], ridge: &[f64]) -> Result<Self> {
        let short = match gram.gpu.factors_in_single() && !set.is_empty() {
            true => single(gram, set, ridge)?,
            false => None,
        };
        let root = match short {
            _ if set.is_empty() => None,
            Some(g) => Some(Root::Single { g, double: Mutex::default() }),
            None => Some(Root::Double(Arc::new(Double::new(gram, set, ridge)?))),
        };
        Ok(Self {
            gram,
            base: set.to_vec(),
            base_ridge: ridge.to_vec(),
            root,
            changes: vec![],
            t: vec![],
            products: vec![],
            border: None,
        })
    }

    /// The factor of 64 bits, computed now if there is none yet.
    fn double(&self) -> Result<Arc<Double>> {
        match &self.root {
            Some(Root::Double(double)) => Ok(Arc::clone(double)),
            Some(Root::Single { double, .. }) => {
                let mut double = double.lock().map_err(|_| self.gram.gpu.failure("it panicked"))?;
                if let Some(double) = &*double {
                    return Ok(Arc::clone(double));
                }
                let new = Arc::new(Double::new(self.gram, &self.base, &self.base_ridge)?);
                *double = Some(Arc::clone(&new));
                Ok(new)
            }
            None => Err(self.gram.gpu.failure("an empty matrix has no factor")),
        }
    }

    /// Positions in `self.changes` of these changes; columns not seen before are computed.
    fn columns_of(&mut self, changes: &[Change], double: &Double) -> Result<Vec<usize>> {
        let n = self.base.len();
        let mut known: Vec<(Change, usize)> = self.changes.iter().copied().zip(0..).collect();
        known.sort_unstable();
        let find = |change: &Change| {
            known.binary_search_by_key(change, |(known, _)| *known).ok().map(|i| known[i].1)
        };
        let first = self.changes.len();
        let new: Vec<Change> = changes.iter().copied().filter(|c| find(c).is_none()).collect();
        if !new.is_empty() {
            let products = self.add_columns(&new, n, double)?;
            self.changes.extend(&new);
            self.products.extend(products);
        }
        let mut next = first..;
        Ok(changes.iter().map(|c| find(c).or_else(|| next.next()).unwrap_or(first)).collect())
    }

    /// Computes columns of T, and their inner products with all columns up to them.
    fn add_columns(&mut self, new: &[Change], n: usize, double: &Double) -> Result<Vec<Vec<f64>>> {
        let mut lane = self.gram.gpu.lane()?;
        let lane = &mut lane;
        let what = "a changed factorisation of the kernel matrix";
        let t = lane.buffer(n * new.len(), what)?;
        let all = t.matrix(n, new.len())?;
        // Rows added come first.
        let rows: Vec<usize> = new.iter().filter_map(Change::added).collect();
        let places: Vec<usize> = new.iter().filter_map(Change::removed).collect();
        let base = self.gram.side(lane, &self.base)?;
        let side = self.gram.side(lane, &rows)?;
        let part = all.columns(0, rows.len())?;
        if !rows.is_empty() {
            self.gram.fill(lane, Entry::Value, part, (&base, 0), (&side, 0))?;
        }
        if !places.is_empty() {
            units(lane, all.columns(rows.len(), places.len())?, &places, 0)?;
        }
        lane.trsm(Hand::Left, double.g()?, all)?;
        self.t.push((new.len(), t));
        let mut products = vec![Vec::new(); new.len()];
        for (width, block) in &self.t {
            let square = lane.scratch(width * new.len(), what)?;
            let square = square.matrix(*width, new.len())?;
            lane.gemm(1.0, transposed(block.matrix(n, *width)?), all_of(&self.t, n)?, 0.0, square)?;
            let values = lane.download(square)?;
            for (products, values) in products.iter_mut().zip(values.chunks_exact(*width)) {
                products.extend_from_slice(values);
            }
        }
        Ok(products)
    }

    /// T' c for all columns of T seen so far, those of c one after the other.
    fn times_t(&self, lane: &mut Lane, c: View<'_, f64>, first: usize) -> Result<Vec<Vec<f64>>> {
        let n = self.base.len();
        let mut out = vec![Vec::new(); c.cols()];
        for (width, block) in &self.t {
            let sums = lane.scratch(width * c.cols(), "products with the border")?;
            let sums = sums.matrix(*width, c.cols())?;
            let t = block.matrix(n, *width)?.part(first, 0, n - first, *width)?;
            lane.gemm(1.0, transposed(t), c, 0.0, sums)?;
            let values = lane.download(sums)?;
            for (out, values) in out.iter_mut().zip(values.chunks_exact((*width).max(1))) {
                out.extend_from_slice(values);
            }
        }
        Ok(out)
    }

    /// c <- c - T w, with w for all columns of T, one column of c after the other.
    fn subtract_t(&self, lane: &mut Lane, c: View<'_, f64>, w: &[Vec<f64>]) -> Result<()> {
        let n = self.base.len();
        let mut first = 0;
        for (width, block) in &self.t {
            let values: Vec<f64> =
                w.iter().flat_map(|w| w[first..first + width].iter().copied()).collect();
            let values = lane.send(&values)?;
            let values = values.matrix(*width, w.len())?;
            lane.gemm(-1.0, block.matrix(n, *width)?, values, 1.0, c)?;
            first += width;
        }
        Ok(())
    }

    /// Solutions for the columns in x.
    fn solved(&self, x: &[f64]) -> Result<Vec<f64>> {
        match &self.root {
            None => Ok(x.to_vec()),
            Some(Root::Single { g, .. }) => match self.refined(g, x)? {
                Some(solution) => Ok(solution),
                None => self.solved_with(&*self.double()?, x),
            },
            Some(Root::Double(double)) => self.solved_with(double, x),
        }
    }

    fn solved_with(&self, double: &Double, x: &[f64]) -> Result<Vec<f64>> {
        let n = self.base.len();
        let mut lane = self.gram.gpu.lane()?;
        let lane = &mut lane;
        let Some(border) = &self.border else {
            let c = lane.send(x)?;
            let view = c.matrix(n, x.len() / n)?;
            double.solve(lane, view, false)?;
            double.solve(lane, view, true)?;
            return lane.download(c.all());
        };
        let set = border.kept.len() + border.added.len();
        let columns = x.len() / set.max(1);
        let mut spread = vec![0.0; columns * n];
        for (c, x) in spread.chunks_exact_mut(n).zip(x.chunks_exact(set)) {
            border.kept.iter().for_each(|&(i, j)| c[j] = x[i]);
        }
        let c = lane.send(&spread)?;
        let view = c.matrix(n, columns)?;
        double.solve(lane, view, false)?;
        let mut out = x.to_vec();
        let products = self.times_t(lane, view, 0)?;
        let mut weights = Vec::with_capacity(columns);
        for (products, x) in products.iter().zip(out.chunks_exact_mut(set)) {
            let mut w: Vec<f64> = border.columns.iter().map(|&i| -products[i]).collect();
            w.iter_mut().zip(&border.added).for_each(|(w, &i)| *w += x[i]);
            border.schur.solve(&mut w);
            border.added.iter().zip(&w).for_each(|(&i, &w)| x[i] = w);
            let mut all = vec![0.0; self.changes.len()];
            border.columns.iter().zip(&w).for_each(|(&i, &w)| all[i] = w);
            weights.push(all);
        }
        self.subtract_t(lane, view, &weights)?;
        double.solve(lane, view, true)?;
        let solved = lane.download(c.all())?;
        for (c, x) in solved.chunks_exact(n).zip(out.chunks_exact_mut(set)) {
            border.kept.iter().for_each(|&(i, j)| x[i] = c[j]);
        }
        Ok(out)
    }

    /// Solutions by conjugate gradients with the factor of 32 bits as preconditioner, to a residual of 64 bits; none if that
    /// is not reached.
    fn refined(&self, g: &Buffer<f32>, x: &[f64]) -> Result<Option<Vec<f64>>> {
        let n = self.base.len();
        in_tiles(self.gram.gpu, |entries| {
            let mut lane = self.gram.gpu.lane()?;
            let lane = &mut lane;
            let side = self.gram.side(lane, &self.base)?;
            let g = g.matrix(n, n)?;
            let mut out = Vec::with_capacity(x.len());
            for b in x.chunks_exact(n) {
                match self.conjugate_gradients(lane, &side, entries, g, b)? {
                    Some(solution) => out.extend(solution),
                    None => return Ok(None),
                }
            }
            Ok(Some(out))
        })
    }

    fn conjugate_gradients(
        &self,
        lane: &mut Lane,
        side: &Side,
        entries: usize,
        g: View<'_, f32>,
        b: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        let mut x = vec![0.0; b.len()];
        let mut r = b.to_vec();
        let norm = dot(b, b).sqrt();
        if norm == 0.0 {
            return Ok(Some(x));
        }
        let mut z = precondition(lane, g, &r)?;
        let mut p = z.clone();
        let mut rz = dot(&r, &z);
        let mut best = (f64::INFINITY, x.clone());
        for _ in 0..REFINED.2 {
            let ap = self.times(lane, side, entries, &p)?;
            let pap = dot(&p, &ap);
            if !(rz.is_finite() && pap.is_finite() && pap > 0.0) {
                break;
            }
            let alpha = rz / pap;
            x.iter_mut().zip(&p).for_each(|(x, p)| *x += alpha * p);
            let before = r.clone();
            r.iter_mut().zip(&ap).for_each(|(r, ap)| *r -= alpha * ap);
            if dot(&r, &r).sqrt() <= REFINED.0 * norm {
                // What was added up may have drifted away from what is left.
                let ax = self.times(lane, side, entries, &x)?;
                r.iter_mut().zip(b.iter().zip(&ax)).for_each(|(r, (b, ax))| *r = b - ax);
                let left = dot(&r, &r).sqrt() / norm;
                if left < best.0 {
                    best = (left, x.clone());
                } else {
                    break;
                }
                if left <= REFINED.0 {
                    break;
                }
                z = precondition(lane, g, &r)?;
                p.clone_from(&z);
                rz = dot(&r, &z);
                continue;
            }
            z = precondition(lane, g, &r)?;
            // The preconditioner rounds: the directions stay conjugate by the change of r, not by r itself.
            let change: f64 =
                z.iter().zip(r.iter().zip(&before)).map(|(z, (r, b))| z * (r - b)).sum();
            let beta = (change / rz).max(0.0);
            p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + beta * *p);
            rz = dot(&r, &z);
        }
        Ok((best.0 <= REFINED.1).then_some(best.1))
    }

    /// (K + diag(ridge)) v on the base set.
    fn times(&self, lane: &mut Lane, side: &Side, entries: usize, v: &[f64]) -> Result<Vec<f64>> {
        let n = v.len();
        let tile = Tile::new(n, n, entries);
        let memory = lane.scratch(tile.entries(), "a tile of the kernel matrix")?;
        let (device, sums) = (lane.send(v)?, lane.scratch(n, "the sums of a product")?);
        for i in steps(n, tile.rows) {
            for j in steps(n, tile.cols) {
                let tile = memory.matrix(i.len(), j.len())?;
                self.gram.fill(lane, Entry::Value, tile, (side, i.start), (side, j.start))?;
                let v = device.all().part(j.start, 0, j.len(), 1)?;
                let out = sums.all().part(i.start, 0, i.len(), 1)?;
                lane.gemv(1.0, tile, v, if j.start == 0 { 0.0 } else { 1.0 }, out)?;
            }
        }
        let mut out = lane.download(sums.all())?;
        let terms = out.iter_mut().zip(self.base_ridge.iter().zip(v));
        terms.for_each(|(out, (ridge, v))| *out += ridge * v);
        Ok(out)
    }

    /// Entries of the diagonal of the inverse.
    fn diagonal_of_inverse(&self, positions: &[usize]) -> Result<Vec<f64>> {
        let double = self.double()?;
        let n = self.base.len();
        let border = self.border.as_ref();
        let width = border.map_or(0, |border| border.columns.len());
        let in_base = |position: usize| match border {
            None => Ok(position),
            Some(border) => match border.kept.binary_search_by_key(&position, |(set, _)| *set) {
                Ok(at) => Ok(border.kept[at].1),
                Err(_) => Err(border.added.partition_point(|&added| added < position)),
            },
        };
        let places: Vec<(usize, usize)> = positions
            .iter()
            .enumerate()
            .filter_map(|(p, &position)| in_base(position).ok().map(|place| (p, place)))
            .collect();
        let mut diagonal = vec![0.0; positions.len()];
        for places in places.chunks(INVERSE_BLOCK) {
            let mut lane = self.gram.gpu.lane()?;
            let lane = &mut lane;
            let base: Vec<usize> = places.iter().map(|(_, place)| *place).collect();
            let (first, count) = (base[0], base.len());
            let rows = n - first;
            let memory = lane.scratch(rows * count, "columns of the inverse")?;
            let columns = memory.matrix(rows, count)?;
            units(lane, columns, &base, first)?;
            lane.trsm(Hand::Left, double.g()?.part(first, first, rows, rows)?, columns)?;
            let squares = lane.scratch(count, "entries of the inverse")?;
            squared_columns(lane, &squares, columns, None)?;
            let mut entries = lane.download(squares.all())?;
            if let Some(border) = border {
                let products = self.times_t(lane, columns, first)?;
                for (entry, products) in entries.iter_mut().zip(&products) {
                    let w: Vec<f64> = border.columns.iter().map(|&i| products[i]).collect();
                    let mut zw = w.clone();
                    border.schur.solve(&mut zw);
                    *entry += dot(&w, &zw);
                }
            }
            places.iter().zip(&entries).for_each(|((p, _), entry)| diagonal[*p] = *entry);
        }
        for (p, &position) in positions.iter().enumerate() {
            if let (Some(border), Err(added)) = (border, in_base(position)) {
                let mut unit = vec![0.0; width];
                unit[added] = 1.0;
                border.schur.solve(&mut unit);
                diagonal[p] = unit[added];
            }
        }
        Ok(diagonal)
    }
}

impl Change {
    fn added(&self) -> Option<usize> {
        match self {
            Self::Added(row) => Some(*row),
            Self::Removed(_) => None,
        }
    }

    fn removed(&self) -> Option<usize> {
        match self {
            Self::Added(_) => None,
            Self::Removed(position) => Some(*position),
        }
    }
}

/// The columns of T that came last.
fn all_of(t: &[(usize, Buffer<f64>)], n: usize) -> Result<View<'_, f64>> {
    match t.last() {
        Some((width, block)) => block.matrix(n, *width),
        None => Err(Error::NoRows(" of a border".to_owned())),
    }
}

/// Columns of the unit matrix, from a row on.
fn units(lane: &mut Lane, out: View<'_, f64>, places: &[usize], first: usize) -> Result<()> {
    let places = lane.send_places(places)?;
    let (rows, cols) = (out.rows(), out.cols());
    let arguments: [Argument; 6] =
        [out.into(), out.stride().into(), (&places).into(), first.into(), rows.into(), cols.into()];
    lane.launch("unit_columns", (rows, cols), &arguments)
}

/// The sums over rows of squares, each times a weight.
fn squared_columns(
    lane: &mut Lane,
    out: &Buffer<f64>,
    a: View<'_, f64>,
    weights: Option<&Buffer<f64>>,
) -> Result<()> {
    let (rows, cols) = (a.rows(), a.cols());
    let arguments: [Argument; 6] =
        [out.into(), a.into(), a.stride().into(), weights.into(), rows.into(), cols.into()];
    // A block of threads for each column.
    lane.launch("squared_columns", (1, cols), &arguments)
}

/// (G G')^-1 r with the factor of 32 bits. The right-hand side is scaled, so that small ones do not vanish.
fn precondition(lane: &mut Lane, g: View<'_, f32>, r: &[f64]) -> Result<Vec<f64>> {
    let scale = r.iter().fold(0.0, |most: f64, r| most.max(r.abs()));
    if scale == 0.0 || !scale.is_finite() {
        return Ok(vec![0.0; r.len()]);
    }
    let short: Vec<f32> = r.iter().map(|r| (r / scale) as f32).collect();
    let c = lane.send(&short)?;
    lane.trsm(Hand::Left, g, c.all())?;
    lane.trsm(Hand::Left, transposed(g), c.all())?;
    Ok(lane.download(c.all())?.into_iter().map(|c| f64::from(c) * scale).collect())
}

impl Factor for CudaFactor<'_, '_> {
    fn update(&mut self, set: &[usize], ridge: &[f64]) -> Result<()> {
        let (mut kept, mut added, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut i, mut j) = (0, 0);
        while i < set.len() || j < self.base.len() {
            match (set.get(i), self.base.get(j)) {
                (Some(s), Some(b)) if s == b => {
                    kept.push((i, j));
                    i += 1;
                    j += 1;
                }
                (Some(s), b) if b.is_none_or(|b| s < b) => {
                    added.push(i);
                    i += 1;
                }
                _ => {
                    removed.push(j);
                    j += 1;
                }
            }
        }
        let changed = added.len() + removed.len();
        let double = match &self.root {
            Some(Root::Double(double))
                if changed <= BORDER.0 && changed.saturating_mul(BORDER.1) <= self.base.len() =>
            {
                Arc::clone(double)
            }
            _ => {
                // The memory of the old factor serves for the new one.
                self.root = None;
                self.t.clear();
                *self = Self::new(self.gram, set, ridge)?;
                return Ok(());
            }
        };
        let changes: Vec<Change> = (added.iter().map(|&i| Change::Added(set[i])))
            .chain(removed.into_iter().map(Change::Removed))
            .collect();
        let columns = self.columns_of(&changes, &double)?;
        if changed == 0 {
            self.border = None;
            return self.gram.watch.check();
        }
        let mut schur = Matrix::from_fn(changed, changed, |a, b| {
            let (first, last) = (columns[a].min(columns[b]), columns[a].max(columns[b]));
            -self.products[last][first]
        });
        let rows: Vec<usize> = added.iter().map(|&i| set[i]).collect();
        let block = self.gram.block(&rows)?;
        for (a, &i) in added.iter().enumerate() {
            (0..added.len()).for_each(|b| schur[(a, b)] += block[a * added.len() + b]);
            schur[(a, a)] += ridge[i];
        }
        let (set, ridge) = (set.to_vec(), ridge.to_vec());
        let schur = SmallSystem::new(&schur);
        self.border = Some(Border { schur, columns, kept, added, set, ridge });
        self.gram.watch.check()
    }

    fn solve(&self, x: &mut [f64]) {
        let solved = self.gram.or_zeros(x.len(), self.solved(x));
        x.copy_from_slice(&solved);
    }

    fn inverse_diagonal(&self, positions: &[usize]) -> Vec<f64> {
        match positions.is_empty() {
            true => Vec::new(),
            false => self.gram.or_zeros(positions.len(), self.diagonal_of_inverse(positions)),
        }
    }

    fn bordered_inverse<'b>(&'b self, inverse_ones: &[f64]) -> Result<Box<dyn Inverse + 'b>> {
        let (set, double) = match &self.border {
            None if self.base.is_empty() => {
                let (gram, b) = (self.gram, self.gram.gpu.buffer(1, "an empty inverse")?);
                return Ok(Box::new(CudaInverse { gram, set: Vec::new(), b }));
            }
            None => (self.base.clone(), self.double()?),
            Some(border) => {
                let fresh = Double::new(self.gram, &border.set, &border.ridge)?;
                (border.set.clone(), Arc::new(fresh))
            }
        };
        let b = self.gram.inverse(&double, inverse_ones)?;
        Ok(Box::new(CudaInverse { gram: self.gram, set, b }))
    }
}

impl CudaGram<'_> {
    /// K[rows, rows], row after row, for few rows.
    fn block(&self, rows: &[usize]) -> Result<Vec<f64>> {
        let n = rows.len();
        if n == 0 {
            return Ok(Vec::new());
        }
        let mut lane = self.gpu.lane()?;
        let lane = &mut lane;
        let side = self.side(lane, rows)?;
        let memory = lane.scratch(n * n, "a part of the kernel matrix")?;
        self.fill(lane, Entry::Value, memory.matrix(n, n)?, (&side, 0), (&side, 0))?;
        lane.download(memory.all())
    }

    /// A^-1 - z z' / sum z for A = G G', all of it. // (n, n)
    fn inverse(&self, double: &Double, z: &[f64]) -> Result<Buffer<f64>> {
        let n = double.n;
        let check = || self.watch.check();
        check()?;
        let mut lane = self.gpu.lane()?;
        let lane = &mut lane;
        let values = stride(n).saturating_mul(n);
        let b = lane.buffer(values, "the inverse of the kernel matrix")?;
        let x = square(&b, n)?;
        let g = double.g()?;
        // G^-1 in blocks of columns, each from its own first row on: above that it is zero, and nothing is read.
        for j in steps(n, INVERSE_BLOCK) {
            let rows = n - j.start;
            let columns = x.part(j.start, j.start, rows, j.len())?;
            let places: Vec<usize> = j.clone().collect();
            units(lane, columns, &places, j.start)?;
            lane.trsm(Hand::Left, g.part(j.start, j.start, rows, rows)?, columns)?;
            lane.pace((rows * rows) as f64 * j.len() as f64, &check)?;
        }
        // Rows of the lower half of G'^-1 G^-1. Those from i on need the rows from i on alone: so the result takes the place
        // of rows that are no longer needed.
        let part = lane.scratch(INVERSE_BLOCK.min(n) * n, "a part of the inverse")?;
        for i in steps(n, INVERSE_BLOCK) {
            let rows = n - i.start;
            let left = x.part(i.start, i.start, rows, i.len())?;
            let right = x.part(i.start, 0, rows, i.end)?;
            let out = part.matrix(i.len(), i.end)?;
            lane.gemm(1.0, transposed(left), right, 0.0, out)?;
            copy(lane, x.part(i.start, 0, i.len(), i.end)?, out)?;
            lane.pace(2.0 * (i.len() * rows) as f64 * i.end as f64, &check)?;
        }
        let tiles = n.div_ceil(32);
        let arguments: [Argument; 3] = [x.into(), x.stride().into(), n.into()];
        lane.launch_blocks(
            "mirror",
            (tiles, tiles.min(crate::cuda::MOST_BLOCKS)),
            (32, 8),
            &arguments,
        )?;
        let device = lane.send(z)?;
        let divisor: f64 = z.iter().sum();
        let arguments: [Argument; 6] =
            [x.into(), x.stride().into(), (&device).into(), divisor.into(), n.into(), n.into()];
        lane.launch("subtract_outer", (n, n), &arguments)?;
        lane.synchronise()?;
        Ok(b)
    }
}

/// B, all of it, on the card.
struct CudaInverse<'g, 'x> {
    gram: &'g CudaGram<'x>,
    set: Vec<usize>,
    b: Buffer<f64>,
}

impl CudaInverse<'_, '_> {
    fn contracted(&self, q: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let n = self.set.len();
        self.gram.watch.check()?;
        in_tiles(self.gram.gpu, |entries| {
            let mut lane = self.gram.gpu.lane()?;
            let lane = &mut lane;
            let b = square(&self.b, n)?;
            let q = lane.send(q)?;
            let squares = lane.scratch(n, "the diagonal of a product")?;
            squared_columns(lane, &squares, b, Some(&q))?;
            let diagonal = lane.download(squares.all())?;
            let set = self.gram.side(lane, &self.set)?;
            // Rows of B, which are its columns too, times q: as many as a tile has, where there is room.
            let tile = Tile::square(n, entries);
            let rows = lane.scratch(n.saturating_mul(tile.rows), "a part of the inverse")?;
            let mut scaled_row = None;
            let gradient = self.gram.contract_symmetric(lane, &set, tile, |lane, factor, at| {
                let At { tile, row, col } = at;
                let scaled = rows.matrix(n, tile.rows())?;
                if scaled_row != Some(row) {
                    let own = b.columns(row, tile.rows())?;
                    super::contract::scale(lane, scaled, own, (&q).into(), Argument::from(0))?;
                    scaled_row = Some(row);
                }
                lane.gemm(factor, transposed(scaled), b.columns(col, tile.cols())?, 0.0, tile)
            })?;
            Ok((gradient, diagonal))
        })
    }
}

impl Inverse for CudaInverse<'_, '_> {
    fn diagonal(&self) -> Vec<f64> {
        let n = self.set.len();
        let diagonal = || {
            let mut lane = self.gram.gpu.lane()?;
            let out = lane.scratch(n, "the diagonal of the inverse")?;
            let b = square(&self.b, n)?;
            let arguments: [Argument; 4] = [(&out).into(), b.into(), b.stride().into(), n.into()];
            lane.launch("diagonal", (n, 1), &arguments)?;
            lane.download(out.all())
        };
        self.gram.or_zeros(n, if n == 0 { Ok(Vec::new()) } else { diagonal() })
    }

    fn contract(&self, q: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        match self.set.is_empty() {
            true => Ok((vec![0.0; self.gram.metric.values().len()], Vec::new())),
            false => self.contracted(q),
        }
    }
}
