//! What is asked for Newton's method, on a card: the sums at a point, and hinge losses along a way.

use std::sync::Arc;

use super::super::question::{Guess, Point, Validation};
use super::super::sums::SHARES;
use super::AskedPoint;
use super::systems::HeldSystem;
use super::{
    Asking, Block, Coefficients, FACTS, Segment, THREADS, Work, add_columns, add_outer, fold,
    outputs,
};
use crate::cuda::{Argument, Buffer, Side, View};
use crate::error::Result;
use crate::loss::{Loss, Surrogate};

/// Numbers of each problem among rows of a class: those at the start of an answer, and the two entries of the bias.
const NUMBERS: usize = 7;
/// How many stand at the start of an answer.
const IN_ANSWER: usize = 5;
/// Threads of the kernel that makes lists.
const LISTING: usize = 1024;

/// Numbers for kernels about a loss: which it is, its steepness, and the weight of all validation rows.
pub(super) fn loss_arguments(validation: Option<Validation>) -> [Argument; 3] {
    let (loss, total) = match validation {
        Some(Validation { loss, total }) => (loss, total),
        None => (Loss { surrogate: Surrogate::SquaredHinge, steepness: 1.0 }, 1.0),
    };
    let surrogate: usize = match loss.surrogate {
        Surrogate::Sigmoid => 0,
        Surrogate::Logistic => 1,
        Surrogate::SquaredHinge => 2,
    };
    [surrogate.into(), loss.steepness.into(), total.into()]
}

/// What a kernel knows of the problems of each class.
pub(super) struct Facts {
    facts: Buffer<f64>,
    /// For each problem the folds trained on and those validated with.
    folds: Buffer<u8>,
    /// How many folds there are.
    pub count: usize,
}

impl Facts {
    /// Of the problems that see a class, and the folds of all.
    pub fn of_class(
        &self,
        asking: &Asking<'_>,
        class: usize,
    ) -> Result<(View<'_, f64>, View<'_, u8>)> {
        let (first, count) = (FACTS * asking.first[class], FACTS * asking.of_class(class));
        Ok((self.facts.all().part(first, 0, count, 1)?, self.folds.all()))
    }
}

/// Outputs of the guess for the problems of each class.
struct Guessing {
    coefficients: Coefficients,
    svms: usize,
}

/// Where the work of a step is done, for the rows of one class in a block.
struct Places {
    f: Buffer<f64>,
    guess: Option<Buffer<f64>>,
    on_gradient: Buffer<f64>,
    on_valid: Buffer<f64>,
    change: Buffer<u8>,
    list: Buffer<i32>,
    counts: Buffer<i32>,
    partial: Buffer<f64>,
    chosen: Buffer<f64>,
}

/// Sums of a step so far.
struct Sums {
    /// A place for each class and each SVM that sees it. // columns of NUMBERS, m, m
    numbers: Buffer<f64>,
    gradient: Buffer<f64>,
    valid: Buffer<f64>,
    /// For each SVM sum w [k, 1] [k, 1]' over the rows that have entered S, less those that have left it.
    h: Vec<Arc<Buffer<f64>>>,
}

impl Work<'_> {
    /// What kernels know of problems. `guessed` and `fresh` tell of a number whether its rows inside of the margin are those
    /// of the guess, and whether there were none before.
    pub(super) fn facts(
        &mut self,
        asking: &Asking<'_>,
        guessed: impl Fn(usize) -> bool,
        fresh: impl Fn(usize) -> bool,
    ) -> Result<Facts> {
        let count = asking.svms.first().map_or(0, |(_, problem, _)| problem.train.len());
        let mut facts = Vec::with_capacity(FACTS * asking.of.len());
        for class in 0..asking.first.len() - 1 {
            for &q in &asking.of[asking.places(class)] {
                let (number, problem, _) = &asking.svms[q];
                let positive = class == problem.classes.1;
                let negatives = self.starts[problem.classes.0 + 1] - self.starts[problem.classes.0];
                let flags = self.setting.flags_at[*number] + if positive { negatives } else { 0 };
                let yes = |is: bool| f64::from(u8::from(is));
                facts.extend([
                    flags as f64,
                    if positive { 1.0 } else { -1.0 },
                    (2 * count * q) as f64,
                    yes(guessed(*number)),
                    yes(fresh(*number)),
                ]);
            }
        }
        let folds: Vec<u8> = (asking.svms.iter())
            .flat_map(|(_, problem, _)| problem.train.iter().chain(&problem.valid))
            .map(|is_in| u8::from(*is_in))
            .collect();
        Ok(Facts { facts: self.lane.send(&facts)?, folds: self.lane.send(&folds)?, count })
    }

    /// The sums of all problems that ask.
    pub(super) fn step(
        &mut self,
        validation: Option<Validation>,
        points: &[AskedPoint],
    ) -> Result<Vec<Vec<f64>>> {
        // A sum in H that should be here and is not, or is of another point, is made of all rows once more.
        let before = |number: usize| -> Option<&Point> {
            let (_, before) = points[number].as_ref()?;
            let before = before.as_ref()?;
            let gone = (self.systems.as_ref())
                .is_some_and(|systems| !HeldSystem::is_at(&systems[number], before.number));
            (!gone).then_some(before)
        };
        // Where it is not known which rows were inside of the margin at the point before, that is asked first.
        let forgotten = |number: usize| -> Option<&Point> {
            before(number).filter(|before| self.setting.known[number] != Some(before.number))
        };
        let fresh: Vec<bool> = (0..points.len()).map(|number| before(number).is_none()).collect();
        let forgotten: Vec<Option<&Point>> = (0..points.len()).map(forgotten).collect();
        if forgotten.iter().any(Option::is_some) {
            self.pass(&forgotten, None, None)?;
        }
        let at: Vec<Option<&Point>> =
            points.iter().map(|point| point.as_ref().map(|(at, _)| at)).collect();
        self.pass(&at, Some(&fresh), validation)
    }

    /// One pass over all rows at some points. With `fresh`, which says of which problems no row was inside of the margin
    /// before, the answer is that of a step; without, it is only noted which rows are inside.
    fn pass(
        &mut self,
        points: &[Option<&Point>],
        fresh: Option<&[bool]>,
        validation: Option<Validation>,
    ) -> Result<Vec<Vec<f64>>> {
        let kernel = self.kernel;
        let m = kernel.m();
        let asking =
            Asking::new(&kernel.setting, |number| points.get(number).is_some_and(Option::is_some));
        let point = |number: usize| points[number];
        let theta = |number: usize| point(number).map_or(&[][..], |point| point.theta.as_slice());
        let coefficients = Coefficients::send(&mut self.lane, &asking, m, &[&theta])?;
        let guessed = |number: usize| point(number).is_some_and(|point| point.guessed);
        let is_fresh = |number: usize| fresh.is_none_or(|fresh| fresh[number]);
        let facts = self.facts(&asking, guessed, is_fresh)?;
        let guessing = match asking.svms.iter().any(|(number, ..)| guessed(*number)) {
            true => self.guessing(&asking)?,
            false => None,
        };
        let places = self.places(&asking, guessing.is_some(), fresh.is_some())?;
        let sums = match fresh {
            Some(fresh) => Some(self.zero(&asking, fresh)?),
            None => None,
        };
        // Until the end it is not known of any row.
        asking.svms.iter().for_each(|(number, ..)| self.setting.known[*number] = None);
        for b in 0..self.blocks() {
            self.watch.check()?;
            let block = self.block(b, guessing.is_some())?;
            for (class, rows) in self.segments(&block, |class| asking.of_class(class) > 0) {
                let start = self.starts[class];
                let at = (class, start);
                self.outputs_of(&asking, &block, at, &rows, &coefficients, &guessing, &places)?;
                self.row_by_row(&asking, &block, at, &rows, &facts, validation, &places, &sums)?;
                if let Some(sums) = &sums {
                    self.add_rows(&asking, &block, at, &rows, validation.is_some(), &places, sums)?;
                }
            }
            self.lane.synchronise()?;
        }
        for (number, ..) in &asking.svms {
            let at = point(*number).map(|point| point.number);
            self.setting.known[*number] = at;
            if let (Some(_), Some(systems)) = (fresh, &mut self.systems)
                && let Some(system) = &mut systems[*number]
            {
                system.at = at;
            }
        }
        match sums {
            Some(sums) => self.collected(&asking, &sums),
            None => Ok(Vec::new()),
        }
    }

    /// The coefficients of the guess, for the problems of each class.
    fn guessing(&mut self, asking: &Asking<'_>) -> Result<Option<Guessing>> {
        let Some(Guess { svms, .. }) = &self.kernel.setting.guess else { return Ok(None) };
        let count = svms.support.len();
        let starts: Vec<usize> = (svms.counts.iter())
            .scan(0, |next, count| {
                *next += count;
                Some(*next - count)
            })
            .collect();
        let (mut alpha, mut bias) = (vec![0.0; asking.of.len() * count], Vec::new());
        for (place, &q) in asking.of.iter().enumerate() {
            let (_, problem, _) = &asking.svms[q];
            let (i, j) = problem.classes;
            // Among the SVMs of class i, counted from 0, the one against class j > i is number j - 1.
            for (class, slot) in [(i, j - 1), (j, i)] {
                let support = starts[class]..starts[class] + svms.counts[class];
                let from = &svms.beta.row(slot)[support.clone()];
                alpha[place * count..][support].copy_from_slice(from);
            }
            bias.push(svms.bias[problem.pair]);
        }
        let (alpha, bias) = (self.lane.send(&alpha)?, self.lane.send(&bias)?);
        let coefficients = Coefficients { alpha, bias, sets: 1 };
        Ok(Some(Guessing { coefficients, svms: count }))
    }

    fn places(&self, asking: &Asking<'_>, guessed: bool, sums: bool) -> Result<Places> {
        let rows = self.cut.block.min(self.n());
        let all = rows * asking.most();
        let of_sums = |len: usize| if sums { len } else { 0 };
        let len = asking.svms.iter().map(|(_, _, columns)| columns.len() + 1).max().unwrap_or(0);
        let lane = &self.lane;
        Ok(Places {
            f: lane.scratch(all, "outputs")?,
            guess: match guessed {
                true => Some(lane.scratch(all, "outputs of the guess")?),
                false => None,
            },
            on_gradient: lane.scratch(of_sums(all), "factors of rows")?,
            on_valid: lane.scratch(of_sums(all), "factors of rows")?,
            change: lane.scratch(of_sums(all), "rows that have entered or left")?,
            list: lane.scratch(of_sums(all), "rows that have entered or left")?,
            counts: lane.scratch(2 * asking.most(), "how many have entered or left")?,
            partial: lane.scratch(
                of_sums(rows.div_ceil(THREADS) * asking.most() * NUMBERS),
                "partial sums",
            )?,
            chosen: lane.scratch(of_sums(rows * len), "rows that have entered or left")?,
        })
    }

    fn zero(&mut self, asking: &Asking<'_>, fresh: &[bool]) -> Result<Sums> {
        let (m, count) = (self.m(), asking.of.len());
        let what = "sums";
        let mut h = Vec::with_capacity(asking.svms.len());
        for (number, _, columns) in &asking.svms {
            let len = columns.len() + 1;
            let sum = match &mut self.systems {
                Some(systems) => HeldSystem::sum(&mut systems[*number], &self.lane, len)?,
                None => Arc::new(self.lane.scratch(len * len, "the sum in H")?),
            };
            if self.systems.is_none() || fresh[*number] {
                self.lane.clear(sum.all())?;
            }
            h.push(sum);
        }
        let sums = Sums {
            numbers: self.lane.scratch(NUMBERS * count, what)?,
            gradient: self.lane.scratch(m * count, what)?,
            valid: self.lane.scratch(m * count, what)?,
            h,
        };
        for buffer in [&sums.numbers, &sums.gradient, &sums.valid] {
            self.lane.clear(buffer.all())?;
        }
        if self.systems.is_some() {
            self.k_mm_of_systems()?;
        }
        Ok(sums)
    }

    /// The outputs of the SVMs at rows of a class, and those of the guess.
    #[allow(clippy::too_many_arguments)]
    fn outputs_of(
        &mut self,
        asking: &Asking<'_>,
        block: &Block,
        at: (usize, usize),
        rows: &std::ops::Range<usize>,
        coefficients: &Coefficients,
        guessing: &Option<Guessing>,
        places: &Places,
    ) -> Result<()> {
        let (m, d) = (self.m(), self.d());
        let Segment { class, rows, x, k, .. } = block.segment(self.setting, at, rows, (m, d))?;
        let svms = asking.of_class(class);
        let f = places.f.matrix(rows, svms)?;
        outputs(&mut self.lane, k, coefficients.of_class(asking, class, m)?, f)?;
        let (Some(guessing), Some(guess), Some(points)) =
            (guessing, &places.guess, &self.setting.guess)
        else {
            return Ok(());
        };
        // As many rows at a time as make a block of K.
        let most = (self.cut.block * m.max(1) / guessing.svms.max(1)).clamp(64, rows.max(64));
        let of_guess = self.lane.scratch(most.min(rows) * guessing.svms, "K of the guess")?;
        for first in (0..rows).step_by(most) {
            let count = most.min(rows - first);
            let k = of_guess.matrix(guessing.svms, count)?;
            points.fill(&mut self.lane, x.columns(first, count)?, k)?;
            let with = guessing.coefficients.of_class(asking, class, guessing.svms)?;
            let f = guess.matrix(rows, svms)?.part(first, 0, count, svms)?;
            outputs(&mut self.lane, k, with, f)?;
        }
        Ok(())
    }

    /// What each row of a class adds, given the outputs; with the sums of numbers.
    #[allow(clippy::too_many_arguments)]
    fn row_by_row(
        &mut self,
        asking: &Asking<'_>,
        block: &Block,
        at: (usize, usize),
        rows: &std::ops::Range<usize>,
        facts: &Facts,
        validation: Option<Validation>,
        places: &Places,
        sums: &Option<Sums>,
    ) -> Result<()> {
        let sizes = (self.m(), self.d());
        let Segment { class, rows, before, weight, fold: folds, .. } =
            block.segment(self.setting, at, rows, sizes)?;
        let svms = asking.of_class(class);
        let (of_class, all_folds) = facts.of_class(asking, class)?;
        let guess = places.guess.as_ref().map_or(Argument::from(0), Argument::from);
        let [surrogate, steepness, total] = loss_arguments(validation);
        let arguments = [
            (&places.f).into(),
            guess,
            weight.into(),
            folds.into(),
            of_class.into(),
            all_folds.into(),
            facts.count.into(),
            (&self.setting.flags).into(),
            (&places.on_gradient).into(),
            (&places.on_valid).into(),
            (&places.change).into(),
            (&places.partial).into(),
            rows.into(),
            before.into(),
            usize::from(validation.is_some()).into(),
            surrogate,
            steepness,
            total,
            usize::from(sums.is_none()).into(),
        ];
        self.lane.launch("lm_step", (rows, svms), &arguments)?;
        let Some(sums) = sums else { return Ok(()) };
        let (first, len) = (NUMBERS * asking.first[class], NUMBERS * svms);
        let numbers = sums.numbers.all().part(first, 0, len, 1)?;
        fold(&mut self.lane, numbers, &places.partial, rows.div_ceil(THREADS), 1.0)
    }

    /// Adds rows of a class to the vectors and the matrices.
    #[allow(clippy::too_many_arguments)]
    fn add_rows(
        &mut self,
        asking: &Asking<'_>,
        block: &Block,
        at: (usize, usize),
        rows: &std::ops::Range<usize>,
        validates: bool,
        places: &Places,
        sums: &Sums,
    ) -> Result<()> {
        let (m, d) = (self.m(), self.d());
        let roots: Vec<Option<Arc<Buffer<f64>>>> = (asking.places(at.0))
            .map(|place| self.root(asking, asking.of[place]))
            .collect::<Result<_>>()?;
        let Segment { class, rows, k, weight, .. } =
            block.segment(self.setting, at, rows, (m, d))?;
        let svms = asking.of_class(class);
        let lane = &mut self.lane;
        let vectors = [(&places.on_gradient, &sums.gradient), (&places.on_valid, &sums.valid)];
        for (factors, vectors) in vectors.into_iter().take(1 + usize::from(validates)) {
            let vectors = vectors.all().part(m * asking.first[class], 0, m * svms, 1)?;
            let factors = factors.matrix(rows, svms)?;
            add_columns(lane, k, Some(factors), vectors.reshaped(m, svms)?)?;
        }
        let arguments =
            [(&places.change).into(), (&places.list).into(), (&places.counts).into(), rows.into()];
        lane.launch_blocks("lm_compact", (svms, 1), (LISTING, 1), &arguments)?;
        let counts = lane.download(places.counts.all().part(0, 0, 2 * svms, 1)?)?;
        let counts = counts.chunks_exact(2).map(|two| (two[0] as usize, two[1] as usize));
        for ((place, (entered, left)), root) in asking.places(class).zip(counts).zip(roots) {
            let count = entered + left;
            if count == 0 {
                continue;
            }
            let q = asking.of[place];
            let columns = &asking.svms[q].2;
            let (of_pair, len) = (columns.len(), columns.len() + 1);
            let (a, b) = columns.ranges();
            let chosen = places.chosen.matrix(len, count)?;
            let list = places.list.all().part((place - asking.first[class]) * rows, 0, count, 1)?;
            let arguments = [
                k.into(),
                weight.into(),
                list.into(),
                chosen.into(),
                m.into(),
                a.start.into(),
                a.len().into(),
                b.start.into(),
                b.len().into(),
            ];
            lane.launch_blocks("lm_gather", (count, 1), (THREADS, 1), &arguments)?;
            if let Some(root) = root {
                let root = root.matrix(of_pair, of_pair)?;
                lane.trsm(Side::Left, root, chosen.part(0, 0, of_pair, count)?)?;
            }
            let h = sums.h[q].matrix(len, len)?;
            for (first, count, sign) in [(0, entered, 1.0), (entered, left, -1.0)] {
                let rows = chosen.columns(first, count)?;
                add_outer(lane, sign, rows, rows, h)?;
            }
            let operations = 4.0 * (count * len * len) as f64;
            lane.pace(operations, &|| self.watch.check())?;
        }
        Ok(())
    }

    /// The factor of K_mm of the pair of an SVM, if H is in terms of w.
    pub(super) fn root(
        &mut self,
        asking: &Asking<'_>,
        q: usize,
    ) -> Result<Option<Arc<Buffer<f64>>>> {
        let problem = asking.svms[q].1;
        let Some(root) = self.kernel.root(problem) else { return Ok(None) };
        if let Some(known) = self.held()?.roots.get(&problem.pair) {
            return Ok(Some(known.clone()));
        }
        let sent = Arc::new(super::held(&mut self.lane, root.lower(), "a factor of K_mm")?);
        self.held()?.roots.insert(problem.pair, sent.clone());
        Ok(Some(sent))
    }

    /// The answer: for each SVM some numbers, two vectors, and a triangle unless that stays here.
    fn collected(&mut self, asking: &Asking<'_>, sums: &Sums) -> Result<Vec<Vec<f64>>> {
        let m = self.m();
        let stay = self.systems.is_some();
        let triangle_of = |len: usize| if stay { 0 } else { len * (len + 1) / 2 };
        let triangles = asking.svms.iter().map(|(_, _, columns)| triangle_of(columns.len() + 1));
        let packed = self.lane.scratch::<f64>(triangles.sum(), "sums in H")?;
        let mut at = 0;
        for ((_, _, columns), h) in asking.svms.iter().zip(&sums.h).filter(|_| !stay) {
            let len = columns.len() + 1;
            let to = packed.all().part(at, 0, triangle_of(len), 1)?;
            let arguments = [(&**h).into(), to.into(), len.into()];
            self.lane.launch_blocks("lm_pack", (len, 1), (THREADS, 1), &arguments)?;
            at += triangle_of(len);
        }
        let packed = if stay { Vec::new() } else { self.lane.download(packed.all())? };
        let numbers = self.lane.download(sums.numbers.all())?;
        let gradient = self.lane.download(sums.gradient.all())?;
        let valid = self.lane.download(sums.valid.all())?;
        let mut rest = packed.as_slice();
        let mut answers = Vec::with_capacity(asking.svms.len());
        for (q, (_, _, columns)) in asking.svms.iter().enumerate() {
            let len = columns.len() + 1;
            let (triangle, after) = rest.split_at(triangle_of(len));
            rest = after;
            // An SVM sees the rows of two classes.
            let mut answer = vec![0.0; IN_ANSWER + 2 * len];
            for place in asking.places_of(q) {
                let numbers = &numbers[place * NUMBERS..(place + 1) * NUMBERS];
                let (head, vectors) = answer.split_at_mut(IN_ANSWER);
                head.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
                for (v, (vectors, sums)) in
                    vectors.chunks_exact_mut(len).zip([&gradient, &valid]).enumerate()
                {
                    let sums = &sums[place * m..(place + 1) * m];
                    let with_bias = columns.iter().map(|j| sums[j]).chain([numbers[IN_ANSWER + v]]);
                    vectors.iter_mut().zip(with_bias).for_each(|(sum, value)| *sum += value);
                }
            }
            answer.extend_from_slice(triangle);
            answers.push(answer);
        }
        Ok(answers)
    }

    /// For each problem that asks the hinge loss at shares of a way.
    pub(super) fn shares(
        &mut self,
        ways: &[Option<(Vec<f64>, Vec<f64>)>],
    ) -> Result<Vec<Vec<f64>>> {
        let kernel = self.kernel;
        let (m, d) = (self.m(), self.d());
        let asking =
            Asking::new(&kernel.setting, |number| ways.get(number).is_some_and(Option::is_some));
        let from = |number: usize| ways[number].as_ref().map_or(&[][..], |(from, _)| from);
        let to = |number: usize| ways[number].as_ref().map_or(&[][..], |(_, to)| to);
        let coefficients = Coefficients::send(&mut self.lane, &asking, m, &[&from, &to])?;
        let facts = self.facts(&asking, |_| false, |_| true)?;
        let (most, rows) = (asking.most(), self.cut.block.min(self.n()));
        let f = self.lane.scratch::<f64>(2 * rows * most, "outputs")?;
        let blocks = rows.div_ceil(THREADS);
        let partial = self.lane.scratch::<f64>(blocks * most * SHARES, "partial sums")?;
        let sums = self.lane.scratch::<f64>(SHARES * asking.of.len(), "hinge losses")?;
        self.lane.clear(sums.all())?;
        for b in 0..self.blocks() {
            self.watch.check()?;
            let block = self.block(b, false)?;
            for (class, rows) in self.segments(&block, |class| asking.of_class(class) > 0) {
                let at = (class, self.starts[class]);
                let segment = block.segment(self.setting, at, &rows, (m, d))?;
                let (rows, svms) = (segment.rows, asking.of_class(class));
                let f = f.matrix(rows, 2 * svms)?;
                let with = coefficients.of_class(&asking, class, m)?;
                outputs(&mut self.lane, segment.k, with, f)?;
                let (of_class, folds) = facts.of_class(&asking, class)?;
                let arguments = [
                    f.into(),
                    f.columns(svms, svms)?.into(),
                    segment.weight.into(),
                    segment.fold.into(),
                    of_class.into(),
                    folds.into(),
                    (&partial).into(),
                    rows.into(),
                ];
                self.lane.launch("lm_shares", (rows, svms), &arguments)?;
                let (first, len) = (SHARES * asking.first[class], SHARES * svms);
                let sums = sums.all().part(first, 0, len, 1)?;
                fold(&mut self.lane, sums, &partial, rows.div_ceil(THREADS), 1.0)?;
            }
            self.lane.synchronise()?;
        }
        let sums = self.lane.download(sums.all())?;
        let of_svm = |q: usize| {
            let mut total = vec![0.0; SHARES];
            for place in asking.places_of(q) {
                let sums = &sums[place * SHARES..(place + 1) * SHARES];
                total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
            }
            total
        };
        Ok((0..asking.svms.len()).map(of_svm).collect())
    }
}
