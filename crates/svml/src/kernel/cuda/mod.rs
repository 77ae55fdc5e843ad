//! K on a card of NVIDIA, never stored: the rows mapped by L are there, and tiles of K are computed where they are used.
//!
//! Products of a tile with vectors and matrices add up on the card in the order of the tiles, which depends on the sizes and
//! on the memory of the card. Where too little is free for a tile, an operation begins again with smaller ones.
//!
//! Operations that cannot fail by their type tell the watch what went wrong, and return zeros: its next check fails.

mod contract;
mod factor;
mod plan;
mod support;
mod together;

use super::{Backend, Distances, Factor, Gram, Outer, Together};
use crate::cuda::{Argument, Buffer, Gpu, Lane, MOST_BLOCKS, View, transposed};
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::metric::{Form, Kernel, Metric};
use crate::run::Watch;
use factor::CudaFactor;
use plan::{BROAD, Tile, steps};

/// The backend of kernel matrices on the card of the watch.
pub(super) struct Cuda;

impl Backend for Cuda {
    fn gram<'a>(
        &self,
        x: &'a Matrix,
        _cols: usize,
        metric: &Metric,
        kernel: Kernel,
        watch: &Watch,
    ) -> Result<Box<dyn Gram + 'a>> {
        Ok(Box::new(CudaGram::new(x, metric, kernel, watch)?))
    }

    fn distances<'a>(&self, x: &'a Matrix, _watch: &Watch) -> Result<Box<dyn Distances + 'a>> {
        Ok(Box::new(Rows(x)))
    }
}

/// Distances are computed with the kernel: a card does that faster than it reads them.
struct Rows<'a>(&'a Matrix);

impl Distances for Rows<'_> {
    fn gram<'a>(&'a self, sphere: &Metric, watch: &Watch) -> Result<Box<dyn Gram + 'a>> {
        Ok(Box::new(CudaGram::new(self.0, sphere, Kernel::Gaussian, watch)?))
    }
}

/// What an entry of a tile is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// k.
    Value,
    /// Minus the derivative of k in the squared distance.
    Slope,
    /// k r, for kernels k = exp(-r).
    TimesDistance,
}

/// A kernel matrix on a card.
pub(super) struct CudaGram<'a> {
    gpu: &'static Gpu,
    host: &'a Matrix,
    metric: Metric,
    kernel: Kernel,
    /// The rows as they are, one after the other. // (d, n) by columns
    x: Buffer<f64>,
    /// The rows mapped by L. // (rank, n) by columns
    z: Buffer<f64>,
    watch: Watch,
}

/// Some rows on the card: those or these columns of a block of K.
struct Side {
    count: usize,
    /// Which rows they are, unless they are no rows of a common matrix.
    places: Option<Buffer<i64>>,
    /// Mapped by L. // (rank, count) by columns
    z: Buffer<f64>,
    /// Squared norms of these, where entries are computed from products of rows.
    norms: Option<Buffer<f64>>,
    /// Coordinates of a mapped row.
    rank: usize,
}

impl Side {
    /// Of mapped rows that are on the card.
    fn new(
        lane: &mut Lane,
        kernel: Kernel,
        z: Buffer<f64>,
        rank: usize,
        count: usize,
        places: Option<Buffer<i64>>,
    ) -> Result<Self> {
        let norms = match by_differences(kernel, rank) {
            true => None,
            false => {
                let norms = lane.scratch(count, "squared norms of rows")?;
                let arguments = [Argument::from(&norms), (&z).into(), count.into(), rank.into()];
                lane.launch("squared_norms", (count, 1), &arguments)?;
                Some(norms)
            }
        };
        Ok(Self { count, places, z, norms, rank })
    }

    fn mapped(&self) -> Result<View<'_, f64>> {
        self.z.matrix(self.rank, self.count)
    }
}

/// The most coordinates of a mapped row for which entries of the Gaussian kernel are computed from differences of rows, at once.
/// With more of them a product of matrices is faster, whose result is then read and written again.
const FEW_COORDINATES: usize = 32;

/// Whether entries are computed from differences of rows.
fn by_differences(kernel: Kernel, rank: usize) -> bool {
    kernel != Kernel::Gaussian || rank <= FEW_COORDINATES
}

/// A kernel, as those who compute it are told.
fn kind(kernel: Kernel) -> usize {
    match kernel {
        Kernel::Exponential => 1,
        Kernel::Laplacian => 2,
        _ => 0,
    }
}

/// Fills a tile with the kernel between `rows`, from one on, and `cols`, from one on: as many as the tile has.
fn fill(
    lane: &mut Lane,
    kernel: Kernel,
    entry: Entry,
    tile: View<'_, f64>,
    (rows, first_row): (&Side, usize),
    (cols, first_col): (&Side, usize),
) -> Result<()> {
    let (count, width) = (tile.rows(), tile.cols());
    let a = rows.mapped()?.columns(first_row, count)?;
    let b = cols.mapped()?.columns(first_col, width)?;
    if by_differences(kernel, rows.rank) {
        let what: usize = match entry {
            Entry::Value => 0,
            // The Gaussian kernel is its own slope; the Laplacian one has a derivative of its own, for which its values serve.
            Entry::Slope if kernel != Kernel::Exponential => 0,
            Entry::Slope => 1,
            Entry::TimesDistance => 2,
        };
        let arguments: [Argument; 9] = [
            tile.into(),
            tile.stride().into(),
            a.into(),
            b.into(),
            count.into(),
            width.into(),
            rows.rank.into(),
            kind(kernel).into(),
            what.into(),
        ];
        let blocks = (count.div_ceil(BROAD), width.div_ceil(BROAD).min(MOST_BLOCKS));
        return lane.launch_blocks("kernel_tile", blocks, (256, 1), &arguments);
    }
    lane.gemm(-2.0, transposed(a), b, 0.0, tile)?;
    let (Some(norms_r), Some(norms_c)) = (&rows.norms, &cols.norms) else {
        return Err(lane.gpu().failure("rows without their norms"));
    };
    let places = rows.places.as_ref().zip(cols.places.as_ref());
    let from = |buffer: Option<&Buffer<i64>>, first: usize, count: usize| -> Result<Argument> {
        Ok(match buffer {
            Some(buffer) => buffer.all().part(first, 0, count, 1)?.into(),
            None => Argument::from(0),
        })
    };
    let arguments: [Argument; 8] = [
        tile.into(),
        tile.stride().into(),
        count.into(),
        width.into(),
        norms_r.all().part(first_row, 0, count, 1)?.into(),
        norms_c.all().part(first_col, 0, width, 1)?.into(),
        from(places.map(|(rows, _)| rows), first_row, count)?,
        from(places.map(|(_, cols)| cols), first_col, width)?,
    ];
    lane.launch("gaussian", (count, width), &arguments)
}

/// Floating-point operations that computing an entry of a tile is worth: an exponential is some fifty.
fn work(tile: View<'_, f64>, rank: usize) -> f64 {
    (tile.rows() * tile.cols()) as f64 * (2.0 * rank as f64 + 200.0)
}

/// Does something with tiles of at most so many entries, and once more with smaller ones where the card has no room.
fn in_tiles<T>(gpu: &Gpu, mut with: impl FnMut(usize) -> Result<T>) -> Result<T> {
    let mut entries = plan::entries(gpu.capacity());
    loop {
        match with(entries) {
            Err(Error::TooLarge { .. }) if entries > plan::LEAST => {
                entries = (entries / 2).max(plan::LEAST);
            }
            done => return done,
        }
    }
}

impl<'a> CudaGram<'a> {
    fn new(host: &'a Matrix, metric: &Metric, kernel: Kernel, watch: &Watch) -> Result<Self> {
        watch.check()?;
        let Some(gpu) = watch.gpu() else {
            return Err(Error::Device {
                device: "cuda".to_owned(),
                reason: "no card was opened".to_owned(),
                remedy: crate::error::Remedy::UseProcessor,
            });
        };
        let mut lane = gpu.lane()?;
        let x = lane.buffer(host.rows() * host.cols(), "the rows")?;
        lane.upload(host.as_slice(), x.all())?;
        let z = lane.buffer(host.rows() * metric.rank(), "the mapped rows")?;
        let (metric, watch) = (metric.clone(), watch.clone());
        let gram = Self { gpu, host, metric, kernel, x, z, watch };
        gram.map(&mut lane)?;
        Ok(gram)
    }

    /// Maps all rows by L.
    fn map(&self, lane: &mut Lane) -> Result<()> {
        let (n, d, rank) = (self.host.rows(), self.host.cols(), self.metric.rank());
        let l = lane.send(self.metric.values())?;
        match self.metric.form() {
            form @ (Form::Sphere | Form::Diagonal) => {
                let single = usize::from(form == Form::Sphere);
                let arguments: [Argument; 6] = [
                    (&self.z).into(),
                    (&self.x).into(),
                    (&l).into(),
                    single.into(),
                    n.into(),
                    d.into(),
                ];
                lane.launch("scale_coordinates", (d, n), &arguments)
            }
            Form::Full | Form::Rank(_) => {
                let (x, z) = (self.x.matrix(d, n)?, self.z.matrix(rank, n)?);
                lane.gemm(1.0, transposed(l.matrix(d, rank)?), x, 0.0, z)
            }
        }
    }

    /// Some rows as a side of a block of K.
    fn side(&self, lane: &mut Lane, rows: &[usize]) -> Result<Side> {
        let (count, rank) = (rows.len(), self.metric.rank());
        let places = lane.send_places(rows)?;
        let z = self.gathered(lane, &self.z, rank, &places)?;
        Side::new(lane, self.kernel, z, rank, count, Some(places))
    }

    /// Some rows of a matrix on the card.
    fn gathered(
        &self,
        lane: &mut Lane,
        from: &Buffer<f64>,
        width: usize,
        places: &Buffer<i64>,
    ) -> Result<Buffer<f64>> {
        let count = places.len();
        let out = lane.scratch(count * width, "some of the rows")?;
        let arguments: [Argument; 5] =
            [(&out).into(), from.into(), places.into(), count.into(), width.into()];
        lane.launch("gather_rows", (width, count), &arguments)?;
        Ok(out)
    }

    /// Fills a tile: see [`fill`].
    fn fill(
        &self,
        lane: &mut Lane,
        entry: Entry,
        tile: View<'_, f64>,
        rows: (&Side, usize),
        cols: (&Side, usize),
    ) -> Result<()> {
        fill(lane, self.kernel, entry, tile, rows, cols)
    }

    /// Whatever happens in an operation that cannot fail by its type, the watch is told.
    fn or_zeros(&self, len: usize, result: Result<Vec<f64>>) -> Vec<f64> {
        match result {
            Ok(values) => values,
            Err(error) => {
                self.watch.fails(error);
                vec![0.0; len]
            }
        }
    }

    /// K[rows, cols] v, or for `turned` K[rows, cols]' v.
    fn product(&self, rows: &[usize], cols: &[usize], v: &[f64], turned: bool) -> Result<Vec<f64>> {
        // K is symmetric: the transposed product is that of the other block. So rows run along the columns of a tile.
        let (out, over) = if turned { (cols, rows) } else { (rows, cols) };
        if out.is_empty() || over.is_empty() {
            return Ok(vec![0.0; out.len()]);
        }
        let mut lane = self.gpu.lane()?;
        let lane = &mut lane;
        let (rows, cols) = (self.mapped(lane, out)?, self.mapped(lane, over)?);
        let v = lane.send(v)?;
        let (tiles, each) = plan::parts_of_product(out.len(), over.len());
        let parts = over.len().div_ceil(BROAD).div_ceil(each);
        let partial = lane.scratch::<f64>(parts * out.len(), "parts of the sums of a product")?;
        let arguments: [Argument; 9] = [
            (&partial).into(),
            (&rows).into(),
            (&cols).into(),
            (&v).into(),
            out.len().into(),
            over.len().into(),
            self.metric.rank().into(),
            kind(self.kernel).into(),
            each.into(),
        ];
        lane.launch_blocks("kernel_product", (tiles, parts), (256, 1), &arguments)?;
        let sums = lane.scratch(out.len(), "the sums of a product")?;
        let arguments: [Argument; 4] =
            [(&sums).into(), (&partial).into(), out.len().into(), parts.into()];
        lane.launch("add_parts", (out.len(), 1), &arguments)?;
        lane.download(sums.all())
    }

    /// Some rows, mapped by L. // (rank, rows) by columns
    fn mapped(&self, lane: &mut Lane, rows: &[usize]) -> Result<Buffer<f64>> {
        let places = lane.send_places(rows)?;
        self.gathered(lane, &self.z, self.metric.rank(), &places)
    }
}

impl Gram for CudaGram<'_> {
    fn set_metric(&mut self, metric: &Metric) -> Result<()> {
        self.watch.check()?;
        let mut lane = self.gpu.lane()?;
        if metric.rank() != self.metric.rank() {
            self.z = lane.buffer(self.host.rows() * metric.rank(), "the mapped rows")?;
        }
        self.metric = metric.clone();
        self.map(&mut lane)
    }

    fn prefetch(&self, _cols: &[usize]) {
        // Nothing is kept.
    }

    fn multiply(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64> {
        self.or_zeros(rows.len(), self.product(rows, cols, v, false))
    }

    fn multiply_transposed(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Vec<f64> {
        self.or_zeros(cols.len(), self.product(rows, cols, v, true))
    }

    fn factor<'a>(&'a self, set: &[usize], ridge: &[f64]) -> Result<Box<dyn Factor + 'a>> {
        Ok(Box::new(CudaFactor::new(self, set, ridge)?))
    }

    fn contract(&self, weights: &[Outer<'_>]) -> Result<Vec<f64>> {
        self.contract_outer(weights)
    }

    fn weighted_differences(&self, rows: &[usize], cols: &[usize], v: &[f64]) -> Matrix {
        let d = self.host.cols();
        let values = self.or_zeros(rows.len() * d, self.differences(rows, cols, v));
        Matrix::new(rows.len(), d, values).unwrap_or_default()
    }

    fn approximate_support(
        &self,
        rows: &[usize],
        y: &[f64],
        cost: &[f64],
        landmarks: &[usize],
    ) -> Result<Vec<usize>> {
        self.support_through(rows, y, cost, landmarks)
    }

    fn together(&self, sizes: &[usize]) -> Option<&dyn Together> {
        if self.is_for(sizes) { Some(self) } else { None }
    }
}

/// The sums of [`super::expand`], on a card.
pub(super) fn expand(
    gpu: &'static Gpu,
    kernel: Kernel,
    z: &Matrix,
    support: &Matrix,
    beta: &Matrix,
) -> Result<Matrix> {
    /// Values of rows that are sent at a time.
    const AT_ONCE: usize = 1 << 24;
    let (rows, rank, count, width) = (z.rows(), z.cols(), support.rows(), beta.rows());
    if rows == 0 || count == 0 || width == 0 || rank == 0 {
        return Ok(super::expand(kernel, z, support, beta));
    }
    in_tiles(gpu, |entries| {
        let mut lane = gpu.lane()?;
        let lane = &mut lane;
        let points = lane.send(support.as_slice())?;
        let points = Side::new(lane, kernel, points, rank, count, None)?;
        // Row-major on the host, so transposed here. // (count, width) by columns
        let beta = lane.send(beta.as_slice())?;
        let mut out = Vec::with_capacity(rows * width);
        for some in steps(rows, (AT_ONCE / rank).max(1)) {
            let values = &z.as_slice()[some.start * rank..some.end * rank];
            let some_z = lane.send(values)?;
            let some = Side::new(lane, kernel, some_z, rank, some.len(), None)?;
            let sums = lane.scratch(some.count * width, "the sums over support vectors")?;
            let tile = Tile::new(count, some.count, entries);
            let memory = lane.scratch(tile.entries(), "a tile of the kernel")?;
            for j in steps(some.count, tile.cols) {
                for i in steps(count, tile.rows) {
                    let tile = memory.matrix(i.len(), j.len())?;
                    fill(lane, kernel, Entry::Value, tile, (&points, i.start), (&some, j.start))?;
                    let factors = beta.matrix(count, width)?.part(i.start, 0, i.len(), width)?;
                    let sums = sums.matrix(width, some.count)?.columns(j.start, j.len())?;
                    let beta = if i.start == 0 { 0.0 } else { 1.0 };
                    lane.gemm(1.0, transposed(factors), tile, beta, sums)?;
                }
            }
            out.extend(lane.download(sums.all())?);
        }
        Matrix::new(rows, width, out)
    })
}
