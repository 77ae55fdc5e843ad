//! A part of the rows, in one place: cut into blocks of rows, over which its answers are sums, added in their order.
//!
//! A block of K, its rows against the landmarks, is kept for the next question where memory allows and computed again
//! where it does not.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::card::{self, CardRows};
use super::question::{
    Answer, LandmarkKernel, Point, Preparation, Problem, Question, Rows, Systems, Tree, Validation,
};
use crate::cuda::Gpu;
use crate::data::LabelledRows;
use crate::data::folds::mix;
use crate::error::{Error, Remedy, Result};
use crate::linalg::Matrix;
use crate::metric::Metric;
use crate::parallel;
use crate::watch::Watch;

/// Rows of a block.
pub const BLOCK: usize = 2048;
/// Most rows of a part. What is cut into parts has the same bits wherever the parts are.
pub const PART: usize = 32 * BLOCK;

/// Entries of K from which on a card pays: a step on fewer takes the processor less time than a card its launches.
const WORTH_A_CARD: usize = 1 << 18;

/// Some of the rows.
pub struct Part<'a> {
    /// Rows, among them those of this part.
    pub(super) x: Cow<'a, Matrix>,
    /// The rows of this part: class after class, ascending within each.
    pub(super) order: Vec<usize>,
    /// Where each class starts in that order, and where the last ends.
    pub(super) starts: Vec<usize>,
    /// The weight of each.
    pub(super) weight: Vec<f64>,
    /// The fold of each, if that was given.
    fold: Vec<u16>,
    /// Which part it is, its first row, and how many rows it was made of.
    pub(super) number: usize,
    pub(super) first: usize,
    pub(super) extent: usize,
    /// Which columns hold codes of categories.
    pub(super) coded: Vec<bool>,
    kept: Mutex<Kept>,
}

/// What is kept from one question for the next.
#[derive(Default)]
pub(super) struct Kept {
    /// The setting that all of it is of.
    setting: Option<u64>,
    /// The metric that K is of.
    metric: Option<Metric>,
    /// The first blocks of K; those that are empty have to be computed.
    blocks: Vec<Vec<f64>>,
    /// Where blocks that are not kept are computed.
    spare: Vec<f64>,
    /// The fold of each row.
    pub fold: Vec<u16>,
    /// For each problem which of its rows are inside of the margin, by the point of that number.
    pub inside: Vec<Option<(u64, Vec<bool>)>>,
    /// The same on a card, where one computes.
    card: Option<CardRows>,
}

/// A block: its rows, by their places in the order, and its part of K.
pub(super) struct RowBlock<'b> {
    /// Where its rows stand in the order.
    pub places: Range<usize>,
    /// The rows, ready for learning. // (rows, d)
    pub x: &'b (dyn Fn() -> Matrix + Sync),
    /// The rows against the landmarks. // (rows, m)
    pub k: &'b [f64],
    /// The fold of each row.
    pub fold: &'b [u16],
}

impl<'a> Part<'a> {
    /// Rows of `x` that are ready for learning, by folds.
    pub fn of_folds(x: &'a Matrix, folds: &[LabelledRows], classes: usize) -> Self {
        let mut entries: Vec<(usize, usize, u16, f64)> = Vec::new();
        for (fold, rows) in folds.iter().enumerate() {
            let rows = rows.index.iter().zip(&rows.class).zip(&rows.weight);
            entries.extend(rows.map(|((&row, &class), &weight)| (class, row, fold as u16, weight)));
        }
        entries.sort_by_key(|&(class, row, fold, _)| (class, row, fold));
        let mut part = Self::new(Cow::Borrowed(x), classes);
        for (class, row, fold, weight) in entries {
            part.push(class, row, weight);
            part.fold.push(fold);
        }
        part
    }

    /// Rows as they were read: those of `x` from `first` on, with their classes and weights. Those of weight zero are not
    /// there. `number` tells which part it is, `coded` which columns hold codes of categories.
    pub fn of_rows(
        x: Cow<'a, Matrix>,
        (number, first): (usize, usize),
        class: &[usize],
        weight: &[f64],
        classes: usize,
        coded: &[bool],
    ) -> Self {
        let (coded, extent) = (coded.to_vec(), class.len());
        let mut part = Self { number, first, extent, coded, ..Self::new(x, classes) };
        let mut of_class = vec![Vec::new(); classes];
        for (at, (&class, &weight)) in class.iter().zip(weight).enumerate() {
            if weight > 0.0 {
                of_class[class].push((first + at, weight));
            }
        }
        for (class, rows) in of_class.into_iter().enumerate() {
            rows.into_iter().for_each(|(row, weight)| part.push(class, row, weight));
        }
        part
    }

    fn new(x: Cow<'a, Matrix>, classes: usize) -> Self {
        Self {
            x,
            order: Vec::new(),
            starts: vec![0; classes + 1],
            weight: Vec::new(),
            fold: Vec::new(),
            number: 0,
            first: 0,
            extent: 0,
            coded: Vec::new(),
            kept: Mutex::default(),
        }
    }

    fn push(&mut self, class: usize, row: usize, weight: f64) {
        self.order.push(row);
        self.weight.push(weight);
        self.starts[class + 1..].iter_mut().for_each(|start| *start = self.order.len());
    }

    /// What a part of rows as they were read was made of, to make it again elsewhere: the rows, and the class and the weight
    /// of each; a row of weight zero is of any class.
    pub fn contents(&self) -> (&Matrix, Vec<usize>, Vec<f64>) {
        let (mut class, mut weight) = (vec![0; self.extent], vec![0.0; self.extent]);
        for c in 0..self.starts.len() - 1 {
            for place in self.places_of(c) {
                let row = self.order[place] - self.first;
                (class[row], weight[row]) = (c, self.weight[place]);
            }
        }
        (&self.x, class, weight)
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.order.len()
    }

    /// The places of a class in the order.
    pub(super) fn places_of(&self, class: usize) -> Range<usize> {
        self.starts[class]..self.starts[class + 1]
    }

    /// The parts of some places that belong to one class each, with the class.
    pub(super) fn by_class(&self, places: &Range<usize>) -> Vec<(usize, Range<usize>)> {
        (0..self.starts.len() - 1)
            .map(|class| {
                let of = self.places_of(class);
                (class, of.start.max(places.start)..of.end.min(places.end))
            })
            .filter(|(_, range)| !range.is_empty())
            .collect()
    }

    /// The key of a row, by which it falls into a fold and is drawn.
    pub(super) fn key(&self, row: usize, seed: u64) -> u64 {
        mix(mix(seed ^ mix(self.number as u64)) ^ (row - self.first) as u64)
    }

    /// How many rows a problem has here.
    pub(super) fn rows_of(&self, problem: &Problem) -> usize {
        self.places_of(problem.classes.0).len() + self.places_of(problem.classes.1).len()
    }

    /// The numbers within a problem of places of a class, if it is one of the two: rows of the negative class come first.
    pub(super) fn numbers(
        &self,
        problem: &Problem,
        class: usize,
        places: &Range<usize>,
    ) -> Option<Range<usize>> {
        let first = self.places_of(class).start;
        let local = places.start - first..places.end - first;
        let negative = self.places_of(problem.classes.0).len();
        match class {
            _ if class == problem.classes.0 => Some(local),
            _ if class == problem.classes.1 => Some(negative + local.start..negative + local.end),
            _ => None,
        }
    }

    /// The answer of these rows. At most so many blocks of K are kept.
    pub fn answer(
        &self,
        kernel: Option<&LandmarkKernel>,
        question: &Question,
        keep: usize,
        watch: &Watch,
    ) -> Result<Answer> {
        watch.check()?;
        let kept = &mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((gpu, kernel)) = card_for(kernel, question.is_about_svms(), self.rows(), watch)
        {
            let card = kept.card.get_or_insert_with(|| CardRows::new(gpu));
            return card.answer(&[self], kernel, question, watch).map(Answer::Sums);
        }
        if let Some(kernel) = kernel {
            self.settle(kept, kernel);
        }
        match (question, kernel) {
            (Question::Columns, _) => Ok(Answer::Columns(self.columns())),
            (Question::Moments { unit, centre, fill }, _) => {
                Ok(Answer::Sums(self.moments(unit, centre, fill)))
            }
            (Question::Draw { count, largest, seed }, _) => {
                Ok(Answer::Drawn(self.draw(count, largest, *seed)))
            }
            (Question::Weights { folds }, Some(kernel)) => {
                Ok(Answer::Sums(self.weights(kernel, &kept.fold, *folds)))
            }
            (Question::Step { validation, points }, Some(kernel)) => {
                self.step(kept, kernel, *validation, points, keep, watch).map(Answer::Sums)
            }
            (Question::Shares { ways }, Some(kernel)) => {
                self.shares(kept, kernel, ways, keep, watch).map(Answer::Sums)
            }
            (Question::Gradient { validation, cost, machines }, Some(kernel)) => {
                let sums =
                    self.gradient(kept, kernel, *validation, *cost, machines, keep, watch)?;
                Ok(Answer::Sums(vec![sums]))
            }
            (_, None) => Ok(Answer::Sums(Vec::new())),
        }
    }

    /// Forgets what is of another setting or of another metric.
    fn settle(&self, kept: &mut Kept, kernel: &LandmarkKernel) {
        let setting = &kernel.setting;
        if kept.setting != Some(setting.id) {
            let fold = self.folds(setting.preparation.as_ref());
            let card = kept.card.take();
            *kept = Kept { setting: Some(setting.id), fold, card, ..Kept::default() };
        }
        kept.inside.resize_with(setting.problems.len(), || None);
        if kept.metric.as_ref() != Some(&kernel.metric) {
            kept.metric = Some(kernel.metric.clone());
            kept.blocks.iter_mut().for_each(Vec::clear);
            kept.inside.fill_with(|| None);
        }
    }

    /// The fold of each row: by its key, or as it was given.
    pub(super) fn folds(&self, preparation: Option<&Preparation>) -> Vec<u16> {
        let Some(preparation) = preparation else { return self.fold.clone() };
        let mut folds = Vec::with_capacity(self.rows());
        for class in 0..self.starts.len() - 1 {
            let keys = &preparation.fold_keys[class];
            for &row in &self.order[self.places_of(class)] {
                let key = self.key(row, preparation.seed);
                folds.push(keys.partition_point(|start| *start <= key) as u16);
            }
        }
        folds
    }

    /// The weight of each class in each fold.
    fn weights(&self, kernel: &LandmarkKernel, fold: &[u16], folds: usize) -> Vec<Vec<f64>> {
        (0..self.starts.len() - 1)
            .map(|class| {
                let mut sums = vec![0.0; folds];
                let factor = class_factor(kernel, class);
                for place in self.places_of(class) {
                    sums[usize::from(fold[place])] += factor * self.weight[place];
                }
                sums
            })
            .collect()
    }

    /// Calls `each` with every block, in order. At most so many are kept.
    pub(super) fn for_each_block(
        &self,
        kept: &mut Kept,
        kernel: &LandmarkKernel,
        keep: usize,
        watch: &Watch,
        mut each: impl FnMut(RowBlock<'_>),
    ) -> Result<()> {
        let n = self.rows();
        kept.blocks.truncate(keep);
        for b in 0..n.div_ceil(BLOCK) {
            watch.check()?;
            let places = b * BLOCK..n.min((b + 1) * BLOCK);
            if b == kept.blocks.len() && b < keep {
                kept.blocks.push(Vec::new());
            }
            let known = kept.blocks.get(b).is_some_and(|k| !k.is_empty());
            let k = kept.blocks.get_mut(b).unwrap_or(&mut kept.spare);
            let x = || {
                let mut x = self.x.select_rows(&self.order[places.clone()]);
                if let Some(preparation) = &kernel.setting.preparation {
                    preparation.scaler.apply_to(&mut x);
                }
                x
            };
            if !known {
                kernel.points.fill_all(&kernel.metric.transform(&x()), k);
            }
            each(RowBlock { places: places.clone(), x: &x, k, fold: &kept.fold[places.clone()] });
        }
        Ok(())
    }
}

/// What the weights of the rows of a class are multiplied by.
pub(super) fn class_factor(kernel: &LandmarkKernel, class: usize) -> f64 {
    let preparation = kernel.setting.preparation.as_ref();
    preparation.map_or(1.0, |preparation| preparation.class_factors[class])
}

/// The card that a question about so many rows is answered on, with its kernel: one that is about SVMs, where the watch has a
/// card and it was asked for, or K is large enough for the way there to pay.
fn card_for<'k>(
    kernel: Option<&'k LandmarkKernel>,
    about_svms: bool,
    rows: usize,
    watch: &Watch,
) -> Option<(&'static Gpu, &'k LandmarkKernel)> {
    let (gpu, kernel) = (watch.gpu().filter(|_| about_svms)?, kernel?);
    let worth = watch.asks_for_card() || rows.saturating_mul(kernel.m()) >= WORTH_A_CARD;
    worth.then(|| {
        watch.uses_card();
        (gpu, kernel)
    })
}

/// Rows in the memory of this process.
pub struct LocalRows<'a> {
    /// All parts together, where a card computes.
    card: Mutex<Option<CardRows>>,
    parts: Vec<Part<'a>>,
    /// How many bytes of K may be kept.
    keep: u64,
    watch: Watch,
}

impl<'a> LocalRows<'a> {
    /// These parts. So many bytes of K may be kept.
    pub fn new(parts: Vec<Part<'a>>, keep: u64, watch: &Watch) -> Self {
        Self { card: Mutex::default(), parts, keep, watch: watch.clone() }
    }

    /// The parts.
    pub fn parts(&self) -> &[Part<'a>] {
        &self.parts
    }

    fn rows(&self) -> usize {
        self.parts.iter().map(Part::rows).sum()
    }

    /// The card, of which it is known that there is one.
    fn gpu(&self) -> Result<&'static Gpu> {
        let missing = || Error::Device {
            device: self.watch.device.to_string(),
            reason: "no GPU was opened".to_owned(),
            remedy: Remedy::UseProcessor,
        };
        self.watch.gpu().ok_or_else(missing)
    }

    /// Does something with what is on the card.
    fn on_card<T>(&self, gpu: &'static Gpu, act: impl FnOnce(&mut CardRows) -> T) -> T {
        let mut card = self.card.lock().unwrap_or_else(PoisonError::into_inner);
        act(card.get_or_insert_with(|| CardRows::new(gpu)))
    }
}

/// How many blocks of K against so many landmarks fit in so many bytes.
pub fn blocks_in(bytes: u64, landmarks: usize) -> usize {
    let block = (8 * BLOCK * landmarks).max(1) as u64;
    usize::try_from(bytes / block).unwrap_or(usize::MAX)
}

impl Rows for LocalRows<'_> {
    fn ask(&self, kernel: Option<&LandmarkKernel>, question: &Question) -> Result<Answer> {
        let about_svms = question.is_about_svms();
        if let Some((gpu, kernel)) = card_for(kernel, about_svms, self.rows(), &self.watch) {
            let parts: Vec<&Part<'_>> = self.parts.iter().collect();
            let answer = |card: &mut CardRows| card.answer(&parts, kernel, question, &self.watch);
            return self.on_card(gpu, answer).map(Answer::Sums);
        }
        let mut left = blocks_in(self.keep, kernel.map_or(0, LandmarkKernel::m));
        let mut tree = Tree::default();
        if !question.is_about_svms() {
            // Each part answers on one thread.
            for parts in self.parts.chunks(rayon::current_num_threads()) {
                let answer = |part: &Part<'_>| part.answer(kernel, question, 0, &self.watch);
                let answers: Vec<Answer> = parallel::try_map(parts, answer)?;
                answers.into_iter().for_each(|answer| tree.push(answer));
            }
            return Ok(tree.total().unwrap_or(Answer::Sums(Vec::new())));
        }
        for part in &self.parts {
            let keep = left.min(part.rows().div_ceil(BLOCK));
            left -= keep;
            tree.push(part.answer(kernel, question, keep, &self.watch)?);
        }
        Ok(tree.total().unwrap_or(Answer::Sums(Vec::new())))
    }

    fn systems(&self, kernel: &LandmarkKernel) -> Option<&dyn Systems> {
        let (gpu, kernel) = card_for(Some(kernel), true, self.rows(), &self.watch)?;
        card::keeps_systems(gpu, kernel).then_some(self as &dyn Systems)
    }
}

impl Systems for LocalRows<'_> {
    fn step(
        &self,
        kernel: &LandmarkKernel,
        validation: Option<Validation>,
        points: &[Option<(Point, Option<Point>)>],
    ) -> Result<Vec<Vec<f64>>> {
        let parts: Vec<&Part<'_>> = self.parts.iter().collect();
        let step = |card: &mut CardRows| card.step(&parts, kernel, validation, points, &self.watch);
        self.on_card(self.gpu()?, step)
    }

    fn solve(
        &self,
        kernel: &LandmarkKernel,
        number: usize,
        cost: Option<f64>,
        right: &[f64],
    ) -> Result<(Vec<f64>, f64)> {
        self.watch.check()?;
        // Systems of several problems are solved side by side: what is on the card is not held meanwhile.
        let system = self.on_card(self.gpu()?, |card| card.system(kernel, number))?;
        system.solve(cost, right)
    }
}
