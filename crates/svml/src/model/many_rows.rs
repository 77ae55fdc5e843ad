//! A model from more rows than are held together: they lie in parts, in this process or elsewhere, and are asked for sums.
//!
//! 1. Some rows of each class are drawn. A quarter of these is put aside: nothing is learned from them until the end.
//! 2. From the others everything is learned as from any sample: members, their weights, metrics and C.
//! 3. Metric and C of each member are improved by some steps over all rows but those put aside, and its SVMs are trained on
//!    these rows. What they give at the rows put aside is the error that is reported, and fits the temperature.
//! 4. The SVMs of the model are trained on all rows, with metrics and C as they are then.

use std::borrow::Cow;

use super::fit::{Trained, assemble_svms, guessing_warning};
use super::svms::{FINAL_TOLERANCE, FinalSvms, Setting};
use super::{Model, Report, ThroughLandmarks};
use crate::data::folds;
use crate::data::prepare::{MAX_CLASSES, TrainingRows, small_unit};
use crate::data::repeats::Repeats;
use crate::data::{Dataset, Encoded, Sample, Scaler, Schema};
use crate::error::{Error, Result};
use crate::landmarks::{
    Answer, Columns, DrawnRow, Guess, LandmarkProblems, LandmarkSvms, Landmarks, LocalRows, PART,
    Part, Preparation, Problem, Question, Rows, matrix_of,
};
use crate::learners::Learner;
use crate::linalg::Matrix;
use crate::method::Method;
use crate::metric::Metric;
use crate::multiclass::PairwiseSvms;
use crate::run::{Activity, Key, Run, Step, Stop, Watch};
use crate::svm::BinarySvm;
use crate::svml::approach::{Approach, LandmarkChoice, Size};
use crate::svml::criterion::Criterion;
use crate::svml::descent::{TrainedOn, descend_on_all};
use crate::svml::members::{self, Honest, MeanFit, MemberFit};
use crate::svml::{COST_RANGE, FormChoice, Svml};

/// Rows that are drawn.
const DRAWN: usize = PART;
/// Of each class at least one in so many of the rows that are drawn, if it has that many.
const LEAST_SHARE: usize = 4;
/// One in so many of the rows that are drawn is put aside.
const PUT_ASIDE: usize = 4;
/// What is said where rows look like copies of one observation.
const COPIES_STAY: &str = "rows repeat others in every column and in the class: if they are copies of one observation, remove them, because copies are not kept together in a fit to so many rows or in parts, and the error on held-out rows is too low; if they are observations of their own, set equal_rows to observations";
/// Folds: rows that are put aside, and two that validate each other.
const ASIDE: [bool; 3] = [true, false, false];
const FIRST: [bool; 3] = [false, true, false];
const SECOND: [bool; 3] = [false, false, true];

/// Rows of a table that lie in parts.
pub struct ManyRows<'a> {
    /// The rows.
    pub rows: &'a dyn Rows,
    /// The schema of the table that they are rows of.
    pub schema: &'a Schema,
    /// The classes, all of which have rows.
    pub classes: &'a [String],
}

/// Learns from many rows in the memory of this process.
pub(super) fn fit_here(
    data: &Dataset,
    method: &Method,
    params: &Svml,
    run: &mut Run<'_>,
) -> Result<Model> {
    data.check_missing()?;
    let kinds = data.schema().encoded_kinds();
    let coded: Vec<bool> = kinds.iter().map(|kind| *kind == Encoded::Code).collect();
    // As of fewer rows, but for rows that are repeated, which are not looked for here.
    let positive: Vec<f64> = data.weights().iter().copied().filter(|w| *w > 0.0).collect();
    let unit = small_unit(&positive);
    let weights: Vec<f64> = data.weights().iter().map(|w| w / unit).collect();
    let parts = (0..data.rows()).step_by(PART).enumerate().map(|(number, first)| {
        let rows = first..data.rows().min(first + PART);
        let (class, weight) = (&data.y()[rows.clone()], &weights[rows]);
        let x = Cow::Borrowed(data.x());
        Part::of_rows(x, (number, first), class, weight, data.classes().len(), &coded)
    });
    let parts: Vec<Part<'_>> = parts.collect();
    let size = Size { rows: &data.class_counts(), columns: data.columns(), copies: 1 };
    let Approach { keep, .. } = Approach::for_size(size, params)?;
    let rows = LocalRows::new(parts, keep, run.watch());
    let (schema, classes) = (data.schema(), data.classes());
    ManyRows { rows: &rows, schema, classes }.learn(method, params, run)
}

impl ManyRows<'_> {
    /// Learns from the rows. The device of the run is that of this process, which has the rows that are drawn.
    pub fn fit(&self, method: &Method, params: &Svml, run: &mut Run<'_>) -> Result<Model> {
        run.open_card(DRAWN, self.schema.width())?;
        self.learn(method, params, run).map(|model| model.computed_by(run.watch()))
    }

    fn learn(&self, method: &Method, params: &Svml, run: &mut Run<'_>) -> Result<Model> {
        params.validate(self.schema.width())?;
        let watch = run.watch().clone();
        let gathered = self.gather(params)?;
        let Gathered { data, rows, learned_from, .. } = &gathered;
        let sample = rows.sample()?;
        let learning = sample.first(*learned_from);
        let learning = learning.sample()?;
        let of_sample = Approach::of(&learning, params)?;
        let approach = of_sample.with_all_rows(params, self.classes.len())?;
        // Rows that were put aside say how good it is.
        let alone = Svml { cross_fit: false, ..params.clone() };
        let MeanFit { members, candidates, mut trace, mut best, mut stop, .. } = match params.form {
            FormChoice::Auto => members::learn(&learning, params, of_sample, run)?,
            FormChoice::Fixed(form) => members::learn_one(&learning, form, &alone, of_sample, run)?,
        };
        let key = watch.records().then(|| gathered.key());
        let all = AllRows { rows: self.rows, gathered: &gathered, approach, params, key };
        let mut asked = Vec::with_capacity(members.len());
        for (left, member) in members.iter().enumerate().map(|(k, m)| (members.len() - k, m)) {
            if stop.is_early() {
                break;
            }
            let mut steps = run.numbered_from(trace.len());
            let one = match all.improve(&learning, member, left as u32, &mut steps) {
                Err(Error::Interrupted) => {
                    stop = watch.cause();
                    break;
                }
                Err(Error::NotPositiveDefinite { .. }) => break,
                one => one?,
            };
            let first = trace.len();
            trace.extend(one.trace.iter().map(|s| Step { iteration: first + s.iteration, ..*s }));
            best = first + one.best;
            // Few steps are taken here on purpose: unless it was ended from outside, the sample says why learning ended.
            if one.stop.is_early() {
                stop = one.stop;
            }
            asked.push(one);
        }
        let honest = match asked.len() == members.len() {
            true => Some(all.honest(&members, &asked)),
            false => None,
        };
        run.begins(Activity::TrainingFinalSvms);
        let mut trained = Vec::with_capacity(members.len());
        for (k, member) in members.iter().enumerate() {
            trained.push(all.finally(member, asked.get(k), &watch)?);
        }
        let mut warnings = rows.warnings(data);
        let repeats = Repeats::of(data.x(), data.y(), data.schema(), params.equal_rows);
        if repeats.are_copies || repeats.warning.is_some() {
            warnings.push(COPIES_STAY.to_owned());
        }
        warnings.extend(honest.as_ref().and_then(guessing_warning));
        let refitted = trained.iter().all(|member| member.on_all_rows);
        if params.refit && !refitted {
            warnings.push(
                "learning stopped before the final SVM could be trained on all rows; the model uses the SVM trained on part of the rows"
                    .to_owned(),
            );
        }
        let own = trained.iter().find_map(|member| member.svms.temperature);
        let temperature = honest.map(|honest| honest.temperature).or(own);
        let in_model = trained.iter().map(Trained::rows_of_svms).max();
        let learned = approach.learn.unwrap_or(learning.rows()).min(learning.rows());
        let report = Report {
            trace,
            candidates,
            honest,
            landmarks: Some(ThroughLandmarks { learned, in_model }),
            best,
            stop: Some(stop),
            refitted,
            warnings,
            rows: gathered.columns.parts.iter().sum(),
            ..Report::without_steps(method, data, rows)
        };
        let Gathered { data, rows, at, columns, .. } = gathered;
        let mut model = assemble_svms(rows, &data, trained, temperature, report)?;
        // Rows are called by their places among all.
        let starts: Vec<usize> = (columns.parts.iter())
            .scan(0, |next, count| {
                *next += count;
                Some(*next - count)
            })
            .collect();
        model.renumber_support(|row| starts[at[row].0] + at[row].1);
        Ok(model)
    }

    /// Asks for what the columns hold, and draws some rows.
    fn gather(&self, params: &Svml) -> Result<Gathered> {
        let kinds = self.schema.encoded_kinds();
        let ask = |question: &Question| self.rows.ask(None, question);
        let Answer::Columns(columns) = ask(&Question::Columns)? else {
            return Err(Error::NoRows(" to learn from".to_owned()));
        };
        self.check(&columns)?;
        let most_frequent: Vec<Option<f64>> = (columns.codes.iter())
            .map(|codes| {
                let best =
                    codes.iter().fold(
                        None,
                        |best: Option<(u64, f64)>, (code, weight)| match best {
                            Some((_, most)) if most >= *weight => best,
                            _ => Some((*code, *weight)),
                        },
                    );
                best.map(|(code, _)| f64::from_bits(code))
            })
            .collect();
        let moments = |unit: &[f64], centre: &[f64], fill: &[f64]| {
            let [unit, centre, fill] = [unit, centre, fill].map(<[f64]>::to_vec);
            Ok(ask(&Question::Moments { unit, centre, fill })?.sums())
        };
        let extremes = (columns.low.as_slice(), columns.high.as_slice());
        let scaler = Scaler::of_sums(extremes, &most_frequent, &kinds, moments)?;
        let class_factors =
            params.class_weight.factors(self.classes, self.classes, &columns.weight)?;

        let total: u64 = columns.rows.iter().sum();
        let count: Vec<usize> = (columns.rows.iter())
            .map(|&rows| {
                let share = (rows as f64 / total as f64 * DRAWN as f64).ceil() as usize;
                share.max(DRAWN / (LEAST_SHARE * self.classes.len())).min(rows as usize)
            })
            .collect();
        let draw = |largest: Vec<u64>| {
            let count = count.clone();
            match ask(&Question::Draw { count, largest, seed: params.seed })? {
                Answer::Drawn(drawn) => Ok(drawn),
                _ => Err(Error::NoRows(" to learn from".to_owned())),
            }
        };
        let bounds = count.iter().zip(&columns.rows).map(|(&count, &all)| largest_key(count, all));
        let mut drawn = draw(bounds.collect())?;
        if drawn.of_class.iter().zip(&count).any(|(rows, count)| rows.len() < *count) {
            drawn = draw(vec![u64::MAX; count.len()])?;
        }
        let fold_keys: Vec<Vec<u64>> = drawn
            .of_class
            .iter()
            .zip(&columns.rows)
            .map(|(drawn, all)| fold_keys(drawn, *all))
            .collect();
        let mut drawn: Vec<(bool, usize, DrawnRow)> = (drawn.of_class.into_iter().enumerate())
            .flat_map(|(class, rows)| rows.into_iter().map(move |row| (class, row)))
            .map(|(class, row)| (row.key < fold_keys[class][0], class, row))
            .collect();
        // Those to learn from first, in a random order.
        drawn.sort_by_key(|(aside, class, row)| (*aside, row.key, *class, row.at));
        let learned_from = drawn.iter().filter(|(aside, ..)| !aside).count();
        let x = matrix_of(drawn.iter().map(|(.., row)| row), self.schema.width());
        let y = drawn.iter().map(|(_, class, _)| *class).collect();
        let weights = drawn.iter().map(|(.., row)| row.weight).collect();
        let at = drawn.iter().map(|(.., row)| row.at).collect();
        let data = Dataset::drawn(x, y, weights, self.classes.to_vec(), self.schema.clone());
        let rows = TrainingRows::drawn(&data, scaler.clone(), &class_factors);
        let preparation = Preparation { scaler, class_factors, fold_keys, seed: params.seed };
        Ok(Gathered { data, rows, learned_from, at, columns, preparation })
    }

    /// Refuses what nothing can be learned from.
    fn check(&self, columns: &Columns) -> Result<()> {
        let present: Vec<&String> = (self.classes.iter().zip(&columns.weight))
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(class, _)| class)
            .collect();
        match present.as_slice() {
            [] => Err(Error::NoRows(" of positive weight".to_owned())),
            [only] => Err(Error::OneClass { class: (*only).clone() }),
            _ if present.len() > MAX_CLASSES => Err(Error::TooManyClasses {
                column: self.schema.target().name.clone(),
                found: present.len(),
                limit: MAX_CLASSES,
            }),
            _ => Ok(()),
        }
    }
}

/// A key that as good as never is below that of the row with the `count`-th smallest key of `all` rows: their number below
/// a key is binomial, and this is ten standard deviations from the mean.
fn largest_key(count: usize, all: u64) -> u64 {
    let (count, all) = (count as f64, all.max(1) as f64);
    let share = (count + 10.0 * (count + 10.0).sqrt()) / all;
    // A number that is too large becomes the largest.
    (share * u64::MAX as f64) as u64
}

/// The keys at which the second fold and the third start, given the rows of a class that were drawn: those with the
/// smallest keys.
fn fold_keys(drawn: &[DrawnRow], all: u64) -> Vec<u64> {
    let aside = drawn.len() / PUT_ASIDE;
    let first = drawn.get(aside).map_or(u64::MAX, |row| row.key);
    let second = match (drawn.len() as u64) < all {
        true => first + (u64::MAX - first) / 2,
        false => {
            drawn.get(aside + (drawn.len() - aside).div_ceil(2)).map_or(u64::MAX, |row| row.key)
        }
    };
    vec![first, second.max(first)]
}

/// What was asked for before anything is learned.
struct Gathered {
    /// The rows that were drawn, as they are.
    data: Dataset,
    /// The same, ready for learning: first those to learn from, then those put aside.
    rows: TrainingRows,
    /// How many there are to learn from.
    learned_from: usize,
    /// The part and the place there of each.
    at: Vec<(usize, usize)>,
    columns: Columns,
    preparation: Preparation,
}

impl Gathered {
    /// What is known of all rows, in a key.
    fn key(&self) -> Key {
        let Columns { parts, rows, weight, low, high, codes } = &self.columns;
        let key = Key::new("all rows").places(parts).with(rows).with(&self.preparation);
        let key = key.numbers(weight).numbers(low).numbers(high).with(codes).with(&self.at);
        key.numbers(self.rows.x.as_slice()).places(&self.rows.class).numbers(&self.rows.weight)
    }
}

/// All rows, and what is known of them.
struct AllRows<'a> {
    rows: &'a dyn Rows,
    gathered: &'a Gathered,
    approach: Approach,
    params: &'a Svml,
    /// What they are known by, if results are recorded.
    key: Option<Key>,
}

/// A member whose metric and C are of all rows but those put aside.
struct Improved {
    metric: Metric,
    cost: f64,
    /// SVMs that have not seen the rows put aside.
    svms: Vec<BinarySvm>,
    trace: Vec<Step>,
    best: usize,
    stop: Stop,
}

impl AllRows<'_> {
    /// SVMs on at most `count` landmarks, which are among the first `among` rows that were drawn.
    fn svms(
        &self,
        count: usize,
        among: usize,
        given: LandmarkProblems<'_>,
        watch: &Watch,
    ) -> Result<LandmarkSvms<'_>> {
        let Gathered { rows, preparation, .. } = self.gathered;
        let (class, classes) = (&rows.class[..among], rows.classes.len());
        let landmarks = Landmarks::choose(&rows.x, class, classes, count, given.metric, watch)?;
        let x = rows.x.select_rows(&landmarks.rows);
        let preparation = Some(preparation.clone());
        LandmarkSvms::new(Box::new(self.rows), (x, landmarks), preparation, given, watch)
    }

    /// The same, trained to some tolerance or the usual one; with them how far they are from their optimum.
    fn trained(
        &self,
        setting: Setting<'_>,
        (count, among): (usize, usize),
        problems: Vec<Problem>,
        guess: Guess,
        tolerance: Option<f64>,
        watch: &Watch,
    ) -> Result<(Vec<BinarySvm>, f64)> {
        let key = || {
            let key = Key::new("trained on all").with(&(self.key, count, among, tolerance));
            setting.in_key(guess.in_key(key.with(&problems)))
        };
        watch.remember(key, || {
            let Setting { kernel, metric, cost } = setting;
            let (problems, guess) = (problems.clone(), Some(guess.clone()));
            let given = LandmarkProblems { kernel, metric, problems, guess };
            let mut svms = self.svms(count, among, given, watch)?;
            if let Some(tolerance) = tolerance {
                svms = svms.tolerance(tolerance);
            }
            svms.train(cost)?;
            Ok(((0..svms.count()).map(|p| svms.svm(p)).collect(), svms.residual()))
        })
    }

    /// SVMs as a guess of which rows are inside of the margin.
    fn guess(&self, setting: Setting<'_>, svms: &[BinarySvm]) -> Guess {
        let rows = &self.gathered.rows;
        let class = (&rows.x, rows.class.as_slice(), rows.classes.len());
        Guess::new(svms, class, setting.kernel, setting.metric)
    }

    /// Metric and C of a member over all rows but those put aside, and its SVMs on these. `left` members are to come,
    /// with this one.
    fn improve(
        &self,
        learning: &Sample<'_>,
        member: &MemberFit,
        left: u32,
        run: &mut Run<'_>,
    ) -> Result<Improved> {
        let (kernel, classes) = (member.kernel, learning.classes());
        let learn = self.approach.learn.unwrap_or(learning.rows()).min(learning.rows());
        let landmarks = LandmarkChoice::Count(learn);
        let params = Svml { landmarks, kernel, ..self.params.clone() };
        let mut problems = Problem::of_pairs(classes, &FIRST, &SECOND);
        if params.criterion != Criterion::HoldOut {
            problems.extend(Problem::of_pairs(classes, &SECOND, &FIRST));
        }
        let watch = run.watch().clone();
        let guess = Some(self.guess(learned(member), &member.fit.svms));
        let given = LandmarkProblems { kernel, metric: &member.metric, problems, guess };
        let svms = self.svms(learn, learning.rows(), given, &watch)?;
        let start = (member.metric.clone(), member.cost / member.cost_factor);
        // What comes after takes about as long as so many evaluations.
        let reserve = 8 * left;
        let fit = descend_on_all(learning, start, &params, (svms, self.key), reserve, run)?;
        let cost = (fit.cost * member.cost_factor).min(COST_RANGE.1);
        let metric = fit.metric;
        let train: Vec<bool> = ASIDE.iter().map(|aside| !aside).collect();
        let problems = Problem::of_pairs(classes, &train, &[false; 3]);
        let guess = self.guess(learned(member), &member.fit.svms);
        let count = self.approach.ask.unwrap_or(learn);
        let setting = Setting { kernel, metric: &metric, cost };
        let (svms, _) =
            self.trained(setting, (count, learning.rows()), problems, guess, None, &watch)?;
        Ok(Improved { metric, cost, svms, trace: fit.trace, best: fit.best, stop: fit.stop })
    }

    /// How good the mean of members is at the rows put aside.
    fn honest(&self, members: &[MemberFit], improved: &[Improved]) -> Honest {
        let Gathered { rows, learned_from, .. } = self.gathered;
        let aside: Vec<usize> = (*learned_from..rows.class.len()).collect();
        let classes = rows.classes.len();
        let mut mean: Option<Matrix> = None;
        for (member, improved) in members.iter().zip(improved) {
            let Improved { metric, svms, .. } = improved;
            let pairwise = PairwiseSvms::new(svms, classes, |row| rows.class[row]);
            let mapped = metric.transform(&rows.x.select_rows(&pairwise.support));
            let outputs = pairwise.outputs_at(member.kernel, metric, &rows.x, &aside, &mapped);
            let mean = mean.get_or_insert_with(|| Matrix::zeros(outputs.rows(), outputs.cols()));
            let values = mean.as_mut_slice().iter_mut().zip(outputs.as_slice());
            values.for_each(|(mean, h)| *mean += member.weight * h);
        }
        let class = &rows.class[*learned_from..];
        let weight = &rows.weight[*learned_from..];
        Honest::of_rows(&mean.unwrap_or_default(), class, weight, &rows.class_factors)
    }

    /// The SVMs of a member on all rows, or those that it was learned with if there is no time for that.
    fn finally(
        &self,
        member: &MemberFit,
        improved: Option<&Improved>,
        watch: &Watch,
    ) -> Result<Trained> {
        let Gathered { rows, learned_from, .. } = self.gathered;
        let (weight, kernel) = (member.weight, member.kernel);
        let of = |setting: Setting<'_>, svms, on_all_rows, landmarks| {
            let (metric, cost) = (setting.metric.clone(), setting.cost);
            Trained { weight, kernel, metric, cost, svms, on_all_rows, landmarks }
        };
        let learned_on =
            folds::Part { rows: (0..*learned_from).collect(), copies: vec![1; *learned_from] };
        let Some(improved) = improved else {
            let (setting, fit) = (learned(member), &member.fit);
            let seen = match &fit.trained {
                TrainedOn::Part { seen } if !seen.rows.is_empty() => seen,
                _ => &learned_on,
            };
            let svms = FinalSvms::on_part(rows, setting, fit.svms.clone(), fit.residual, seen)?;
            return Ok(of(setting, svms, false, self.approach.learn));
        };
        let Improved { metric, cost, svms, .. } = improved;
        let setting = Setting { kernel, metric, cost: *cost };
        if self.params.refit {
            match self.on_all(setting, svms, watch) {
                Ok((svms, landmarks)) => return Ok(of(setting, svms, true, Some(landmarks))),
                Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let svms = FinalSvms::on_part(rows, setting, svms.clone(), 0.0, &learned_on)?;
        Ok(of(setting, svms, false, self.approach.ask))
    }

    /// SVMs on all rows, starting from others that were trained on most of them, and how many landmarks they have.
    fn on_all(
        &self,
        setting: Setting<'_>,
        svms: &[BinarySvm],
        watch: &Watch,
    ) -> Result<(FinalSvms, usize)> {
        let rows = &self.gathered.rows;
        let problems = Problem::of_pairs(rows.classes.len(), &[true; 3], &[false; 3]);
        let guess = self.guess(setting, svms);
        let count = self.approach.last.unwrap_or(rows.class.len());
        let (among, tolerance) = (rows.class.len(), Some(FINAL_TOLERANCE));
        let (svms, residual) =
            self.trained(setting, (count, among), problems, guess, tolerance, watch)?;
        Ok((FinalSvms { svms, residual, temperature: None }, count))
    }
}

/// What the SVMs of a member were learned with.
fn learned(member: &MemberFit) -> Setting<'_> {
    let (kernel, metric, cost) = member.learned();
    Setting { kernel, metric, cost }
}
