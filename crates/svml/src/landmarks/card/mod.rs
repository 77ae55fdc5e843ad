//! The answers of parts on a card: the questions about SVMs, with the sums over rows there and everything else where it
//! was. An answer is what the parts would have added up to on the processor, but for rounding.
//!
//! The rows of all parts lie on the card class after class, so that the rows of a class in a block are next to each other,
//! and all SVMs of a class see them in one product. They are cut twice: into chunks, in which the rows are held, and
//! each of these into blocks, whose K is computed, used and, where memory allows, kept for the next question. Where the
//! memory does not allow to hold the rows either, chunks are sent again for each question. The cuts depend on the
//! numbers of rows, columns and landmarks alone, unless memory ends within a question: then blocks are halved, and the
//! question is asked again.

mod gradient;
mod sums;
mod systems;

pub(super) use systems::keeps_systems;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::pair::PairColumns;
use super::part::{BLOCK, Part, class_factor};
use super::question::{Guess, LandmarkKernel, Point, Problem, Question, Setting, Validation};
use crate::cuda::{Argument, Buffer, Gpu, Lane, View, transposed};
use crate::data::Scaler;
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::memory;
use crate::metric::{Form, Kernel, Metric};
use crate::parallel;
use crate::watch::Watch;
use systems::{HeldSystem, System};

/// Most rows of a chunk, and most bytes of a chunk and of a block of K.
const CHUNK: usize = 1 << 16;
const CHUNK_BYTES: usize = 256 << 20;
/// Fewest rows of a block.
const LEAST_BLOCK: usize = 64;
/// Blocks beside those that are kept: one that is not, what enters the sum in H or the weights on K, and what the guess or
/// the next metric needs.
const BLOCKS_AT_ONCE: usize = 4;
/// One part in so many of the memory that is free is left to others on the card.
const LEFT: usize = 8;

/// Threads of a block of most kernels, threads that compute together, and SVMs that a kernel takes at a time.
const THREADS: usize = 256;
const WARPS: usize = THREADS / 32;
const TOGETHER: usize = 8;
/// Rows that a thread sums for itself.
const SUMMED: usize = 256;

/// The rows of some parts on a card, and what is kept there from one question for the next.
pub struct CardRows {
    gpu: &'static Gpu,
    /// How many times blocks were halved.
    halvings: u32,
    rows: Option<HeldRows>,
    setting: Option<HeldSetting>,
    /// The systems of Newton's method of a setting, one for each problem.
    systems: Option<(u64, Vec<Option<HeldSystem>>)>,
}

/// Rows, ready for learning.
struct HeldRows {
    scaler: Option<Scaler>,
    /// The chunks that are held. // (chunk, d)
    chunks: Vec<Option<Arc<Buffer<f64>>>>,
}

/// What is of a setting.
struct HeldSetting {
    id: u64,
    /// The weight and the fold of each row.
    weight: Buffer<f64>,
    fold: Buffer<u16>,
    /// The landmarks. // (m, d)
    landmarks: Buffer<f64>,
    /// For each problem whether its rows are inside of the margin, where that starts, and by the point of which number.
    flags: Buffer<u8>,
    flags_at: Vec<usize>,
    known: Vec<Option<u64>>,
    /// The support vectors of the guess.
    guess: Option<HeldPoints>,
    kernel: Option<HeldKernel>,
}

/// What is of a metric.
struct HeldKernel {
    metric: Metric,
    points: HeldPoints,
    /// K_mm, where a system needs it, and its factors, by pair of classes.
    k_mm: Option<Arc<Buffer<f64>>>,
    roots: HashMap<usize, Arc<Buffer<f64>>>,
    /// The memory of blocks of K that are kept, and whether they are of this metric already.
    blocks: Vec<(Option<Arc<Buffer<f64>>>, bool)>,
}

/// Points that rows are compared with, mapped by L.
struct HeldPoints {
    kernel: Kernel,
    form: Form,
    count: usize,
    rank: usize,
    /// The values of L. // (rank, d)
    l: Buffer<f64>,
    /// The points. // (count, rank)
    z: Buffer<f64>,
    norms: Buffer<f64>,
}

/// How rows are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    /// Rows of a chunk.
    chunk: usize,
    /// Rows of a block; chunks are multiples of it.
    block: usize,
}

impl Cut {
    /// For so many columns and landmarks.
    fn new(d: usize, m: usize, halvings: u32) -> Self {
        let within = |mut rows: usize, width: usize| {
            while rows > LEAST_BLOCK && rows * 8 * width > CHUNK_BYTES {
                rows /= 2;
            }
            rows
        };
        let chunk = (within(CHUNK, d) >> halvings).max(LEAST_BLOCK);
        Self { chunk, block: within(chunk, m) }
    }

    /// Rows of a chunk or a block of so many rows, of which there are `n`.
    fn rows(size: usize, number: usize, n: usize) -> Range<usize> {
        number * size..n.min((number + 1) * size)
    }
}

/// Rows of a class in a part: from where on they lie on the card, and their places in the part.
struct Piece {
    first: usize,
    part: usize,
    places: Range<usize>,
}

/// A question while it is answered.
struct Work<'w> {
    /// The block of K that is not kept, and the last chunk of rows that is not, with its number. They go before the lane.
    spare: Option<Arc<Buffer<f64>>>,
    passing: Option<(usize, Arc<Buffer<f64>>)>,
    lane: Lane,
    watch: &'w Watch,
    parts: &'w [&'w Part<'w>],
    kernel: &'w LandmarkKernel,
    pieces: Vec<Piece>,
    /// Where each class starts, and where the last ends.
    starts: Vec<usize>,
    cut: Cut,
    rows: &'w mut HeldRows,
    setting: &'w mut HeldSetting,
    /// Where sums in H stay, if they do not go into the answer.
    systems: Option<&'w mut [Option<HeldSystem>]>,
}

/// A point to be asked at, and the one before it.
type AskedPoint = Option<(Point, Option<Point>)>;

/// What is asked, and whether sums in H stay on the card.
enum Inquiry<'q> {
    Question(&'q Question),
    Step(Option<Validation>, &'q [AskedPoint]),
}

impl CardRows {
    /// Nothing, as yet.
    pub fn new(gpu: &'static Gpu) -> Self {
        Self { gpu, halvings: 0, rows: None, setting: None, systems: None }
    }

    /// The sums that parts, always the same, answer to a question about SVMs.
    pub fn answer(
        &mut self,
        parts: &[&Part<'_>],
        kernel: &LandmarkKernel,
        question: &Question,
        watch: &Watch,
    ) -> Result<Vec<Vec<f64>>> {
        self.asked(parts, kernel, &Inquiry::Question(question), watch)
    }

    /// The answer to a step but for the triangles, which stay here.
    pub fn step(
        &mut self,
        parts: &[&Part<'_>],
        kernel: &LandmarkKernel,
        validation: Option<Validation>,
        points: &[AskedPoint],
        watch: &Watch,
    ) -> Result<Vec<Vec<f64>>> {
        self.asked(parts, kernel, &Inquiry::Step(validation, points), watch)
    }

    fn asked(
        &mut self,
        parts: &[&Part<'_>],
        kernel: &LandmarkKernel,
        question: &Inquiry<'_>,
        watch: &Watch,
    ) -> Result<Vec<Vec<f64>>> {
        loop {
            watch.check()?;
            let whole = Cut::new(kernel.setting.landmarks.cols(), kernel.m(), self.halvings);
            match self.try_answer(parts, kernel, question, watch) {
                Err(Error::TooLarge { .. }) if whole.block > LEAST_BLOCK => {
                    // What others on the card need now may have been kept here.
                    (self.rows, self.setting) = (None, None);
                    self.halvings += 1;
                }
                answer => return answer,
            }
        }
    }

    fn try_answer(
        &mut self,
        parts: &[&Part<'_>],
        kernel: &LandmarkKernel,
        question: &Inquiry<'_>,
        watch: &Watch,
    ) -> Result<Vec<Vec<f64>>> {
        let mut lane = self.gpu.lane()?;
        let d = kernel.setting.landmarks.cols();
        let cut = Cut::new(d, kernel.m(), self.halvings);
        let (pieces, starts) = pieces(parts, kernel.setting.starts.len() - 1);
        let n = starts.last().copied().unwrap_or(0);
        let scaler = kernel.setting.preparation.as_ref().map(|p| &p.scaler);
        let rows = match self.rows.take() {
            Some(rows) if rows.scaler.as_ref() == scaler => rows,
            _ => HeldRows { scaler: scaler.cloned(), chunks: Vec::new() },
        };
        let rows = self.rows.insert(rows);
        rows.chunks.resize_with(n.div_ceil(cut.chunk), || None);
        let setting = match self.setting.take() {
            Some(held) if held.id == kernel.setting.id => held,
            _ => HeldSetting::new(&mut lane, parts, kernel, &pieces, n)?,
        };
        let setting = self.setting.insert(setting);
        setting.set_metric(&mut lane, kernel, n.div_ceil(cut.block))?;
        if self.systems.as_ref().is_none_or(|(id, _)| *id != kernel.setting.id) {
            let count = kernel.setting.problems.len();
            self.systems = Some((kernel.setting.id, (0..count).map(|_| None).collect()));
        }
        let systems = match (question, &mut self.systems) {
            (Inquiry::Step(..), Some((_, systems))) => Some(systems.as_mut_slice()),
            _ => None,
        };
        let mut work = Work {
            spare: None,
            passing: None,
            lane,
            watch,
            parts,
            kernel,
            pieces,
            starts,
            cut,
            rows,
            setting,
            systems,
        };
        let question = match question {
            Inquiry::Step(validation, points) => return work.step(*validation, points),
            Inquiry::Question(question) => question,
        };
        match question {
            Question::Step { validation, points } => work.step(*validation, points),
            Question::Shares { ways } => work.shares(ways),
            Question::Gradient { validation, cost, machines } => {
                Ok(vec![work.gradient(*validation, *cost, machines)?])
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The system of a problem, to be solved while others use the card.
    pub(super) fn system(&self, kernel: &LandmarkKernel, number: usize) -> Result<System> {
        let systems = self.systems.as_ref().filter(|(id, _)| *id == kernel.setting.id);
        let held = systems.and_then(|(_, systems)| systems.get(number)?.as_ref());
        let of_metric = self.setting.as_ref().and_then(|setting| setting.kernel.as_ref());
        System::new(self.gpu, kernel, number, held, of_metric)
    }
}

/// The rows of parts, class after class, and where each class starts.
fn pieces(parts: &[&Part<'_>], classes: usize) -> (Vec<Piece>, Vec<usize>) {
    let (mut pieces, mut starts, mut first) = (Vec::new(), vec![0], 0);
    for class in 0..classes {
        for (part, rows) in parts.iter().enumerate() {
            let places = rows.places_of(class);
            let count = places.len();
            if count > 0 {
                pieces.push(Piece { first, part, places });
            }
            first += count;
        }
        starts.push(first);
    }
    (pieces, starts)
}

/// A value for each row, in the order of the card, given those of a part in its order.
fn in_order<T: Copy>(pieces: &[Piece], n: usize, of_parts: &[Vec<T>]) -> Vec<T> {
    let mut values = Vec::with_capacity(n);
    for Piece { part, places, .. } in pieces {
        values.extend_from_slice(&of_parts[*part][places.clone()]);
    }
    values
}

impl HeldSetting {
    fn new(
        lane: &mut Lane,
        parts: &[&Part<'_>],
        kernel: &LandmarkKernel,
        pieces: &[Piece],
        n: usize,
    ) -> Result<Self> {
        let setting = &kernel.setting;
        let folds: Vec<Vec<u16>> =
            parallel::map(parts, |part| part.folds(setting.preparation.as_ref()));
        let weights: Vec<Vec<f64>> = parallel::map(parts, |part| {
            let mut weights = part.weight.clone();
            for class in 0..part.starts.len() - 1 {
                let factor = class_factor(kernel, class);
                weights[part.places_of(class)].iter_mut().for_each(|w| *w *= factor);
            }
            weights
        });
        let rows_of =
            |problem: &Problem| -> usize { parts.iter().map(|part| part.rows_of(problem)).sum() };
        let mut flags_at = vec![0];
        for problem in &setting.problems {
            flags_at.push(flags_at[flags_at.len() - 1] + rows_of(problem));
        }
        let flags = lane.buffer(flags_at[flags_at.len() - 1], "which rows are support vectors")?;
        let guess = match &setting.guess {
            Some(Guess { kernel, metric, mapped, .. }) => {
                Some(HeldPoints::new(lane, *kernel, metric, mapped)?)
            }
            None => None,
        };
        Ok(Self {
            id: setting.id,
            weight: held(lane, &in_order(pieces, n, &weights), "the weights of the rows")?,
            fold: held(lane, &in_order(pieces, n, &folds), "the folds of the rows")?,
            landmarks: held(lane, setting.landmarks.as_slice(), "the landmarks")?,
            flags,
            flags_at,
            known: vec![None; setting.problems.len()],
            guess,
            kernel: None,
        })
    }

    /// Forgets what is of another metric.
    fn set_metric(
        &mut self,
        lane: &mut Lane,
        kernel: &LandmarkKernel,
        blocks: usize,
    ) -> Result<()> {
        if self.kernel.as_ref().is_some_and(|held| held.metric == kernel.metric) {
            return Ok(());
        }
        self.known.fill(None);
        // The memory of the blocks of the metric before is used again: the lanes that used it have done their work.
        let mut old = self.kernel.take().map_or_else(Vec::new, |held| held.blocks);
        old.iter_mut().for_each(|(_, known)| *known = false);
        old.resize_with(blocks, || (None, false));
        let z = kernel.metric.transform(&kernel.setting.landmarks);
        let points = HeldPoints::new(lane, kernel.setting.kernel, &kernel.metric, &z)?;
        let (k_mm, roots, metric) = (None, HashMap::new(), kernel.metric.clone());
        self.kernel = Some(HeldKernel { metric, points, k_mm, roots, blocks: old });
        Ok(())
    }
}

/// Values in memory of the card that outlives the lane.
fn held<T: crate::cuda::Number>(lane: &mut Lane, values: &[T], what: &str) -> Result<Buffer<T>> {
    let buffer = lane.buffer(values.len(), what)?;
    lane.upload(values, buffer.all())?;
    Ok(buffer)
}

impl HeldPoints {
    fn new(lane: &mut Lane, kernel: Kernel, metric: &Metric, z: &Matrix) -> Result<Self> {
        let (count, rank) = (z.rows(), z.cols());
        let held_z = held(lane, z.as_slice(), "points mapped by L")?;
        let norms = lane.buffer(count, "norms of points")?;
        norms_of(lane, held_z.matrix(rank, count)?, norms.all())?;
        let l = held(lane, metric.values(), "L")?;
        Ok(Self { kernel, form: metric.form(), count, rank, l, z: held_z, norms })
    }

    /// K between rows and the points. `x` has a row in each column, and so has `k`.
    fn fill(&self, lane: &mut Lane, x: View<'_, f64>, k: View<'_, f64>) -> Result<()> {
        let (d, n, m, rank) = (x.rows(), x.cols(), self.count, self.rank);
        let z = lane.scratch(n * rank, "rows mapped by L")?;
        let z = z.matrix(rank, n)?;
        match self.form {
            Form::Sphere | Form::Diagonal => {
                let one = usize::from(self.form == Form::Sphere);
                let arguments =
                    [x.into(), (&self.l).into(), z.into(), n.into(), d.into(), one.into()];
                lane.launch("lm_scale", (n * d, 1), &arguments)?;
            }
            _ => lane.gemm(1.0, transposed(self.l.matrix(d, rank)?), x, 0.0, z)?,
        }
        let points = self.z.matrix(rank, m)?;
        if self.kernel == Kernel::Gaussian {
            let norms = lane.scratch::<f64>(n, "norms of rows")?;
            norms_of(lane, z, norms.all())?;
            lane.gemm(-2.0, transposed(points), z, 0.0, k)?;
            let arguments = [k.into(), (&norms).into(), (&self.norms).into(), n.into(), m.into()];
            return lane.launch("lm_gaussian", (n * m, 1), &arguments);
        }
        let absolute = usize::from(self.kernel == Kernel::Laplacian);
        let arguments =
            [z.into(), points.into(), k.into(), n.into(), m.into(), rank.into(), absolute.into()];
        let tiles = (n.div_ceil(SIDE), m.div_ceil(SIDE));
        lane.launch_blocks("lm_differences", tiles, (THREADS, 1), &arguments)
    }
}

/// Side of a tile of the kernels that take differences.
const SIDE: usize = 64;

/// The squared norms of columns.
fn norms_of(lane: &mut Lane, z: View<'_, f64>, norms: View<'_, f64>) -> Result<()> {
    let arguments = [z.into(), norms.into(), z.cols().into(), z.rows().into()];
    lane.launch_blocks("lm_norms", (z.cols().div_ceil(WARPS), 1), (THREADS, 1), &arguments)
}

/// Rows of one class in a block.
struct Segment<'s> {
    class: usize,
    /// How many they are, and how many of their class come before.
    rows: usize,
    before: usize,
    /// The rows. // columns of d x rows
    x: View<'s, f64>,
    /// Their part of K. // columns of m x rows
    k: View<'s, f64>,
    /// Their weights and folds.
    weight: View<'s, f64>,
    fold: View<'s, u16>,
}

impl Work<'_> {
    fn n(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn d(&self) -> usize {
        self.kernel.setting.landmarks.cols()
    }

    fn m(&self) -> usize {
        self.kernel.m()
    }

    fn blocks(&self) -> usize {
        self.n().div_ceil(self.cut.block)
    }

    /// The held points of the metric. They are there from the start of a question on.
    fn held(&mut self) -> Result<&mut HeldKernel> {
        let gpu = self.lane.gpu();
        self.setting.kernel.as_mut().ok_or_else(|| gpu.failure("no kernel was set"))
    }

    /// Whether something of so many bytes may stay on the card.
    fn may_keep(&self, values: usize) -> bool {
        let free = self.lane.gpu().free();
        let working =
            BLOCKS_AT_ONCE * 8 * self.cut.block * self.m() + 8 * self.cut.chunk * self.d();
        8 * values + working + free / LEFT <= free
    }

    /// The chunk of rows that a block is in.
    fn chunk(&mut self, block: usize) -> Result<Arc<Buffer<f64>>> {
        let (d, n, cut) = (self.d(), self.n(), self.cut);
        let number = block * cut.block / cut.chunk;
        if let Some(chunk) = &self.rows.chunks[number] {
            return Ok(chunk.clone());
        }
        if let Some((passing, chunk)) = &self.passing
            && *passing == number
        {
            return Ok(chunk.clone());
        }
        self.passing = None;
        let rows = Cut::rows(cut.chunk, number, n);
        let values = self.gathered(rows.clone())?;
        let what = "a chunk of rows";
        let keep = self.may_keep(rows.len() * d);
        let chunk = Arc::new(match keep {
            true => self.lane.buffer(rows.len() * d, what)?,
            false => self.lane.scratch(rows.len() * d, what)?,
        });
        self.lane.upload(&values, chunk.all())?;
        match keep {
            true => self.rows.chunks[number] = Some(chunk.clone()),
            false => self.passing = Some((number, chunk.clone())),
        }
        Ok(chunk)
    }

    /// Rows, ready for learning, in the order of the card. // (rows, d)
    fn gathered(&self, rows: Range<usize>) -> Result<Vec<f64>> {
        let d = self.d();
        let mut values = memory::zeros(rows.len() * d, "rows on their way to the GPU")?;
        let (scaler, pieces, parts) = (self.rows.scaler.as_ref(), &self.pieces, self.parts);
        parallel::for_each(values.chunks_mut((BLOCK * d).max(1)).enumerate(), |(task, out)| {
            let mut at = rows.start + task * BLOCK;
            let mut out = out;
            let mut piece = pieces.partition_point(|piece| piece.first <= at) - 1;
            while !out.is_empty() {
                let Piece { first, part, places } = &pieces[piece];
                let from = places.start + at - first;
                let count = (places.end - from).min(out.len() / d.max(1));
                let part = parts[*part];
                let mut x = part.x.select_rows(&part.order[from..from + count]);
                if let Some(scaler) = scaler {
                    scaler.apply_to(&mut x);
                }
                let (now, rest) = out.split_at_mut(count * d);
                now.copy_from_slice(x.as_slice());
                (out, at, piece) = (rest, at + count, piece + 1);
            }
        });
        Ok(values)
    }

    /// A block of K, and the chunk of rows that it is in if that is needed besides.
    fn block(&mut self, block: usize, with_rows: bool) -> Result<Block> {
        let (n, m, d, cut) = (self.n(), self.m(), self.d(), self.cut);
        let rows = Cut::rows(cut.block, block, n);
        let in_chunk = rows.start % cut.chunk;
        let (kept, known) = self.held()?.blocks[block].clone();
        let chunk = match known && !with_rows {
            true => None,
            false => Some(self.chunk(block)?),
        };
        let k = match kept {
            Some(k) => k,
            None if self.may_keep(rows.len() * m) => {
                let k = Arc::new(self.lane.buffer(rows.len() * m, "a block of K")?);
                self.held()?.blocks[block].0 = Some(k.clone());
                k
            }
            None => match &self.spare {
                Some(spare) => spare.clone(),
                None => {
                    let spare = self.lane.scratch(cut.block.min(n) * m, "a block of K")?;
                    self.spare.insert(Arc::new(spare)).clone()
                }
            },
        };
        if let (false, Some(chunk)) = (known, &chunk) {
            let x = chunk.all().part(in_chunk * d, 0, rows.len() * d, 1)?;
            let Self { lane, setting, .. } = self;
            if let Some(held) = &mut setting.kernel {
                held.points.fill(lane, x.reshaped(d, rows.len())?, k.matrix(m, rows.len())?)?;
                held.blocks[block].1 = held.blocks[block].0.is_some();
            }
        }
        Ok(Block { rows, in_chunk, k, chunk })
    }

    /// The rows of each class in a block that `wanted` says something is asked of, with the class.
    fn segments(
        &self,
        block: &Block,
        wanted: impl Fn(usize) -> bool,
    ) -> Vec<(usize, Range<usize>)> {
        (0..self.starts.len() - 1)
            .map(|class| {
                let of = self.starts[class]..self.starts[class + 1];
                (class, of.start.max(block.rows.start)..of.end.min(block.rows.end))
            })
            .filter(|(class, rows)| !rows.is_empty() && wanted(*class))
            .collect()
    }
}

/// A block of K.
struct Block {
    /// Its rows.
    rows: Range<usize>,
    /// Where they start in the chunk.
    in_chunk: usize,
    k: Arc<Buffer<f64>>,
    chunk: Option<Arc<Buffer<f64>>>,
}

impl Block {
    /// Rows of a class in it.
    fn segment<'s>(
        &'s self,
        held: &'s HeldSetting,
        (class, start): (usize, usize),
        rows: &Range<usize>,
        (m, d): (usize, usize),
    ) -> Result<Segment<'s>> {
        let (first, count) = (rows.start - self.rows.start, rows.len());
        let k = self.k.all().part(first * m, 0, count * m, 1)?.reshaped(m, count)?;
        let x = match &self.chunk {
            Some(chunk) => {
                let from = (self.in_chunk + first) * d;
                chunk.all().part(from, 0, count * d, 1)?.reshaped(d, count)?
            }
            // No rows.
            None => held.landmarks.all().part(0, 0, 0, 1)?,
        };
        let weight = held.weight.all().part(rows.start, 0, count, 1)?;
        let fold = held.fold.all().part(rows.start, 0, count, 1)?;
        Ok(Segment { class, rows: count, before: rows.start - start, x, k, weight, fold })
    }
}

/// SVMs that are asked about, and which of them see the rows of each class.
struct Asking<'q> {
    /// The number of each among all problems, with the problem and its landmarks.
    svms: Vec<(usize, &'q Problem, PairColumns)>,
    /// Where the list of each class starts in `of`, and where the last ends.
    first: Vec<usize>,
    /// SVMs that see the rows of a class, class after class.
    of: Vec<usize>,
}

impl<'q> Asking<'q> {
    fn new(setting: &'q Setting, asks: impl Fn(usize) -> bool) -> Self {
        let svms: Vec<_> = (setting.problems.iter().enumerate())
            .filter(|(number, _)| asks(*number))
            .map(|(number, problem)| (number, problem, PairColumns::of(setting, problem)))
            .collect();
        let (mut first, mut of) = (vec![0], Vec::new());
        for class in 0..setting.starts.len() - 1 {
            let sees = |(_, (_, problem, _)): &(usize, &(usize, &Problem, PairColumns))| {
                problem.classes.0 == class || problem.classes.1 == class
            };
            of.extend(svms.iter().enumerate().filter(sees).map(|(q, _)| q));
            first.push(of.len());
        }
        Self { svms, first, of }
    }

    /// The places in `of` of a class.
    fn places(&self, class: usize) -> Range<usize> {
        self.first[class]..self.first[class + 1]
    }

    /// How many see the rows of a class.
    fn of_class(&self, class: usize) -> usize {
        self.places(class).len()
    }

    /// The most that see the rows of one class.
    fn most(&self) -> usize {
        (0..self.first.len() - 1).map(|class| self.of_class(class)).max().unwrap_or(0)
    }

    /// The two places in `of` of an SVM.
    fn places_of(&self, q: usize) -> impl Iterator<Item = usize> + '_ {
        self.of.iter().enumerate().filter(move |(_, of)| **of == q).map(|(place, _)| place)
    }
}

/// What kernels know of problems among rows of each class, as `landmarks.cu` says.
const FACTS: usize = 5;

/// Coefficients of SVMs over all landmarks, with the bias apart.
struct Coefficients {
    /// For each class and each set the coefficients of the SVMs that see it. // columns of m
    alpha: Buffer<f64>,
    bias: Buffer<f64>,
    sets: usize,
}

impl Coefficients {
    /// `sets` of vectors for each SVM, by their number: alpha with b at the end.
    fn send<'t>(
        lane: &mut Lane,
        asking: &Asking<'_>,
        m: usize,
        sets: &[&dyn Fn(usize) -> &'t [f64]],
    ) -> Result<Self> {
        let count = asking.of.len() * sets.len();
        let (mut alpha, mut bias) = (vec![0.0; count * m], Vec::with_capacity(count));
        for class in 0..asking.first.len() - 1 {
            for set in sets {
                for &q in &asking.of[asking.places(class)] {
                    let (number, _, columns) = &asking.svms[q];
                    let theta = set(*number);
                    let at = bias.len() * m;
                    columns.scatter(&mut alpha[at..at + m], 1.0, theta);
                    bias.push(theta.last().copied().unwrap_or(0.0));
                }
            }
        }
        let (alpha, bias) = (lane.send(&alpha)?, lane.send(&bias)?);
        Ok(Self { alpha, bias, sets: sets.len() })
    }

    /// Those of the SVMs that see a class: alpha as columns, and the bias.
    fn of_class(
        &self,
        asking: &Asking<'_>,
        class: usize,
        m: usize,
    ) -> Result<(View<'_, f64>, View<'_, f64>)> {
        let (first, count) = (self.sets * asking.first[class], self.sets * asking.of_class(class));
        let alpha = self.alpha.all().part(first * m, 0, count * m, 1)?.reshaped(m, count)?;
        Ok((alpha, self.bias.all().part(first, 0, count, 1)?))
    }
}

/// f <- K alpha + bias: a column for each column of alpha.
fn outputs(
    lane: &mut Lane,
    k: View<'_, f64>,
    (alpha, bias): (View<'_, f64>, View<'_, f64>),
    f: View<'_, f64>,
) -> Result<()> {
    let (m, n, svms) = (k.rows(), k.cols(), alpha.cols());
    if svms > TOGETHER {
        lane.gemm(1.0, transposed(k), alpha, 0.0, f)?;
        let arguments = [f.into(), bias.into(), n.into(), f.stride().into()];
        return lane.launch("lm_bias", (n, svms), &arguments);
    }
    let arguments: [Argument; 8] = [
        k.into(),
        alpha.into(),
        bias.into(),
        f.into(),
        n.into(),
        m.into(),
        svms.into(),
        f.stride().into(),
    ];
    lane.launch_blocks("lm_outputs", (n.div_ceil(WARPS), 1), (THREADS, 1), &arguments)
}

/// sums += K' a, a column for each column of a; without a the sums of the columns of K.
fn add_columns(
    lane: &mut Lane,
    k: View<'_, f64>,
    a: Option<View<'_, f64>>,
    sums: View<'_, f64>,
) -> Result<()> {
    let (m, n, svms) = (k.rows(), k.cols(), sums.cols());
    if let Some(a) = a.filter(|_| svms > TOGETHER) {
        return lane.gemm(1.0, k, a, 1.0, sums);
    }
    let chunks = n.div_ceil(SUMMED);
    let partial = lane.scratch::<f64>(chunks * svms * m, "partial sums")?;
    let a = a.map_or(Argument::from(0), Argument::from);
    let arguments =
        [k.into(), a, (&partial).into(), n.into(), m.into(), svms.into(), SUMMED.into()];
    let blocks = (m.div_ceil(THREADS), chunks);
    lane.launch_blocks("lm_columns", blocks, (THREADS, 1), &arguments)?;
    fold(lane, sums, &partial, chunks, 1.0)
}

/// sums += factor times the sum of `count` parts, one after the other.
fn fold(
    lane: &mut Lane,
    sums: View<'_, f64>,
    parts: &Buffer<f64>,
    count: usize,
    factor: f64,
) -> Result<()> {
    let len = sums.rows() * sums.cols();
    let arguments = [sums.into(), parts.into(), len.into(), count.into(), factor.into()];
    lane.launch("lm_fold", (len, 1), &arguments)
}

/// Side of a tile that a multiprocessor computes at a time, tiles that keep a large card busy, and the fewest columns of a
/// slice.
const TILE: usize = 128;
const TILES: usize = 264;
const LEAST_SLICE: usize = 512;

/// c += factor a b', for matrices of few rows and very many columns: in slices of columns, because the tiles of c alone would
/// leave most of the card idle.
fn add_outer(
    lane: &mut Lane,
    factor: f64,
    a: View<'_, f64>,
    b: View<'_, f64>,
    c: View<'_, f64>,
) -> Result<()> {
    let count = a.cols();
    let tiles = c.rows().div_ceil(TILE) * c.cols().div_ceil(TILE);
    let slices = (TILES / tiles.max(1)).min(count / LEAST_SLICE);
    if slices < 2 {
        return match count {
            0 => Ok(()),
            _ => lane.gemm(factor, a, transposed(b), 1.0, c),
        };
    }
    let whole = count / slices * slices;
    let partial = lane.scratch::<f64>(slices * c.rows() * c.cols(), "slices of a product")?;
    let (first, second) = (a.columns(0, whole)?, b.columns(0, whole)?);
    lane.outer_slices(1.0, first, second, slices, partial.all())?;
    fold(lane, c, &partial, slices, factor)?;
    match count - whole {
        0 => Ok(()),
        rest => {
            let (a, b) = (a.columns(whole, rest)?, b.columns(whole, rest)?);
            lane.gemm(factor, a, transposed(b), 1.0, c)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_depend_on_sizes_and_fit() {
        let cut = |d, m, halvings| {
            let Cut { chunk, block } = Cut::new(d, m, halvings);
            (chunk, block)
        };
        assert_eq!(cut(100, 500, 0), (65536, 65536));
        assert_eq!(cut(100, 800, 0), (65536, 32768));
        assert_eq!(cut(100, 2000, 0), (65536, 16384));
        assert_eq!(cut(100, 500, 3), (8192, 8192));
        assert_eq!(cut(100_000, 500, 0), (256, 256));
        assert_eq!(cut(1, 1 << 30, 0), (65536, LEAST_BLOCK));
        assert_eq!(cut(100, 500, 40), (LEAST_BLOCK, LEAST_BLOCK));
        for (d, m) in [(1, 1), (7, 333), (1000, 4000), (300_000, 10)] {
            let Cut { chunk, block } = Cut::new(d, m, 1);
            assert_eq!(chunk % block, 0, "blocks do not cross chunks");
        }
        assert_eq!(Cut::rows(64, 2, 150), 128..150);
    }
}
