//! From a data set and a [`Method`] to a model: every way to fit stands here, one function for each.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::many_rows;
use super::neighbours::Neighbours;
use super::svms::{self, FinalSvms, Setting};
use super::{Classifier, Member, Model, Report, SvmClassifier, ThroughLandmarks};
use crate::data::cell::listed;
use crate::data::prepare::{TrainingRows, constant_columns};
use crate::data::{ClassWeight, Dataset, EqualRows, Sample, Scaler};
use crate::device::Device;
use crate::error::{Error, Remedy, Result};
use crate::grid_search::{GridSearch, grid_search};
use crate::landmarks::{Guess, PART};
use crate::learners::itml::{ItmlOfPairs, Pairs};
use crate::learners::{Itml, Learner};
use crate::linalg::Matrix;
use crate::method::{AnyLearner, Fixed, Knn, Method};
use crate::metric::{Form, Kernel, Metric};
use crate::multiclass::PairwiseSvms;
use crate::parallel;
use crate::run::{Activity, Run, Stop, Watch};
use crate::svml::approach::{Approach, are_learned_from_in_parts};
use crate::svml::criterion::Criterion;
use crate::svml::cross_fit::rare_classes;
use crate::svml::descent::TrainedOn;
use crate::svml::members::{self, Honest, MeanFit, MemberFit};
use crate::svml::{FormChoice, Svml};

impl Model {
    /// Learns from data by a method: [`Svml`], [`GridSearch`] or any other [`Method`].
    ///
    /// ```
    /// use svml::learners::Nca;
    /// use svml::{Generator, Method, Model, Svml};
    ///
    /// let train = Generator::default().generate()?.data;
    /// let model = Model::fit(&train, Svml::default())?;
    /// assert_eq!(model.predict(train.x())?.len(), train.rows());
    ///
    /// let nca = Model::fit(&train, Method::svm_after(Nca::default()))?;
    /// let plain = Model::fit(&train, "euclidean".parse::<Method>()?)?;
    /// let test = Generator { seed: 1, ..Generator::default() }.generate()?.data;
    /// assert!(nca.error_rate(&test)? < plain.error_rate(&test)?);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit(data: &Dataset, method: impl Into<Method>) -> Result<Self> {
        Self::fit_with(data, method, &mut Run::new())
    }

    /// As [`Model::fit`], watched and ended from outside. Of SVML, or of a learner whose metric is all that is
    /// wanted, a fit that is ended early returns the best so far. With a time limit, NCA and LMNN begin with some of many
    /// rows, so that there is something to return; without a single evaluation of the loss the result is the metric
    /// that they start from, with a warning. A grid that leaves time for the SVM on all rows tries as many widths as
    /// time allows; before one is tried, and after an interrupt, the result is [`Error::Interrupted`]. A learner before
    /// a grid gets half of the time.
    pub fn fit_with(data: &Dataset, method: impl Into<Method>, run: &mut Run<'_>) -> Result<Self> {
        let method = method.into();
        run.open_card(largest_pair(data), data.columns())?;
        // A limit of the fit is one for the card too, until it ends.
        let card = run.watch().gpu().zip(method.memory_limit());
        let _limit = card.map(|(gpu, bytes)| gpu.limit_to(bytes));
        let fitted = run.recorded(
            || (data.key(), method.key()),
            |run| match &method {
                Method::Svml(svml) => fit_svml(data, &method, svml, run),
                Method::Euclidean(grid) => fit_euclidean(data, &method, grid, run),
                Method::Fixed(fixed) => fit_fixed(data, &method, fixed, run),
                Method::SvmAfter { learner, grid } => {
                    fit_svm_after(data, &method, learner, grid, run)
                }
                Method::Neighbours { learner, knn } => {
                    fit_neighbours(data, &method, learner.as_ref(), *knn, run)
                }
                Method::Metric(learner) => fit_metric(data, &method, learner, run),
            },
        );
        // What was computed without memory for all of it is no result.
        run.watch().check_memory()?;
        let mut model = fitted?.computed_by(run.watch());
        model.report.cut_short = run.is_cut_short();
        Ok(model)
    }

    /// The model, which says where it was computed, and predicts on the same device.
    pub(super) fn computed_by(mut self, watch: &Watch) -> Self {
        self.device = watch.device;
        self.report.device = watch.computed_on();
        if let (Device::Cuda(_), false) = (watch.device, self.report.used_card()) {
            self.report.warnings.push(format!(
                "{} was not used: no part of this fit can be computed on a GPU",
                watch.device
            ));
        }
        self
    }

    /// Learns a metric from pairs of rows by information-theoretic metric learning: row i of `first` and row i of
    /// `second` are a pair, which should be near each other if `similar[i]`, and else far apart. Columns are
    /// standardised by the mean and the standard deviation of all distinct rows. The model maps rows and cannot
    /// classify. The parameters `pairs` and `seed` do not count, because no pairs are drawn.
    ///
    /// ```
    /// use svml::learners::Itml;
    /// use svml::{Matrix, Model, Run};
    ///
    /// // Rows are alike if the first number is about the same, whatever the second is.
    /// let first = Matrix::from_rows(&[[1.2, 7.5], [6.4, 2.6], [1.3, 4.5], [6.2, 5.5]])?;
    /// let second = Matrix::from_rows(&[[1.3, 1.5], [6.2, 9.7], [5.2, 4.6], [1.4, 5.4]])?;
    /// let similar = [true, true, false, false];
    /// let model = Model::fit_pairs(&first, &second, &similar, &Itml::default(), &mut Run::new())?;
    /// let m = model.metric().mahalanobis();
    /// assert!(m[(0, 0)] > m[(1, 1)]);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn fit_pairs(
        first: &Matrix,
        second: &Matrix,
        similar: &[bool],
        itml: &Itml,
        run: &mut Run<'_>,
    ) -> Result<Self> {
        let (n, d) = (first.rows(), first.cols());
        for (what, found, expected) in [
            ("second rows of the pairs", second.rows(), n),
            ("columns of the second rows of the pairs", second.cols(), d),
            ("labels that say whether a pair is similar", similar.len(), n),
        ] {
            if found != expected {
                return Err(Error::Shape { what: what.to_owned(), found, expected });
            }
        }
        itml.validate(d)?;
        run.open_card(2 * n, d)?;
        if similar.iter().all(|near| *near) || !similar.contains(&true) {
            let kind = if similar.contains(&true) { "similar" } else { "dissimilar" };
            let what = match n {
                0 => "there are no pairs to learn from".to_owned(),
                _ => format!("every pair is {kind}; similar and dissimilar pairs are needed"),
            };
            return Err(Error::Data { what, remedy: None });
        }
        // Both rows have the label of their pair: the classes of the model are the kinds of pairs.
        let labels: Vec<&str> =
            similar.iter().chain(similar).map(|near| if *near { "1" } else { "-1" }).collect();
        let values = first.as_slice().iter().chain(second.as_slice()).copied().collect();
        let data = Dataset::new(Matrix::new(2 * n, d, values)?, &labels)?;
        data.check_missing()?;
        // Rows that occur in several pairs count once, in an order that does not depend on that of the pairs.
        let by_content = |&a: &usize, &b: &usize| {
            let values = data.x().row(a).iter().zip(data.x().row(b));
            // Zero and minus zero are one value.
            let order = |(a, b): (&f64, &f64)| a.partial_cmp(b).unwrap_or(Ordering::Equal);
            values.map(order).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        let mut order: Vec<usize> = (0..2 * n).collect();
        order.sort_by(by_content);
        let groups: Vec<&[usize]> = order.chunk_by(|a, b| by_content(a, b).is_eq()).collect();
        let mut place = vec![0; 2 * n];
        for (p, group) in groups.iter().enumerate() {
            group.iter().for_each(|&row| place[row] = p);
        }
        let mut x = data.x().select_rows(&groups.iter().map(|group| group[0]).collect::<Vec<_>>());
        let scaler = Scaler::fit(&x, &vec![1.0; x.rows()], &data.schema().encoded_kinds());
        scaler.apply_to(&mut x);
        // Two equal rows are at distance zero in every metric.
        let of_kind = |near: bool| -> Vec<(usize, usize)> {
            (0..n).filter(|&i| similar[i] == near).map(|i| (place[i], place[n + i])).collect()
        };
        let pairs = Pairs { similar: of_kind(true), dissimilar: of_kind(false) };
        let learned = itml.learn_pairs(&x, &pairs, run)?;
        let constant = constant_columns(&scaler, &data.schema().encoded_names());
        let warnings = constant.into_iter().chain(learned.warnings.clone()).collect();
        let method = Method::metric(ItmlOfPairs(*itml));
        let cut_short = run.is_cut_short();
        let report = Report { cut_short, ..Report::of_pairs(method, n, &learned, warnings) };
        let model = Self {
            schema: data.schema().clone(),
            classes: data.classes().to_vec(),
            scaler,
            metric: learned.metric,
            classifier: Classifier::None,
            report,
            kept: None,
            device: Device::Auto,
        };
        Ok(model.computed_by(run.watch()))
    }
}

/// Rows of the two largest classes, which is what the largest SVM of a pair of classes is trained on.
fn largest_pair(data: &Dataset) -> usize {
    let mut counts = data.class_counts();
    counts.sort_unstable();
    counts.iter().rev().take(2).sum()
}

fn fit_svml(data: &Dataset, method: &Method, params: &Svml, run: &mut Run<'_>) -> Result<Model> {
    let all_present = data.class_counts().iter().all(|count| *count > 0);
    if data.groups().is_some() && params.criterion == Criterion::LeaveOneOut {
        let bound = "k_fold or hold_out if there are groups, because a single row that is left out would be validated with the rest of its group";
        return Err(Error::parameter("criterion", params.criterion, bound));
    }
    if all_present && are_learned_from_in_parts(data.rows(), params) {
        if data.groups().is_some() {
            let bound = format!(
                "omitted for more than {} rows, which are learned in parts; leave out groups, or use fewer rows",
                2 * PART
            );
            return Err(Error::parameter("groups", format!("for {} rows", data.rows()), bound));
        }
        return many_rows::fit_here(data, method, params, run);
    }
    let rows = TrainingRows::new(data, &params.class_weight, params.equal_rows, params.seed)?;
    params.validate(data.columns())?;
    let sample = rows.sample()?;
    let approach = Approach::of(&sample, params)?;
    let (svms, matrices) = match params.criterion {
        // Folds are trained one after the other where they do not fit in together.
        Criterion::HoldOut | Criterion::KFold(_) => (1, 1),
        // The factor, a fresh one where the first has a border, columns of the inverse, the inverse.
        Criterion::LeaveOneOut => (1, 4),
    };
    if approach == Approach::EXACT {
        rows.check_memory(svms, matrices, params.memory(), run.watch())?;
    }
    params.check_form(data.columns(), params.memory())?;
    let mut warnings = rows.warnings(data);
    warnings.extend(check_distinct(&rows)?);
    let learned = match params.form {
        FormChoice::Auto => members::learn(&sample, params, approach, run)?,
        FormChoice::Fixed(form) => members::learn_one(&sample, form, params, approach, run)?,
    };
    let MeanFit { members, honest, candidates, trace, best, stop, warning } = learned;
    warnings.extend(honest.as_ref().and_then(guessing_warning).or(warning));
    if params.cross_fit && !stop.is_early() {
        warnings.extend(estimate_warning(&rows, &rare_classes(&sample), honest.is_some()));
    }
    run.begins(Activity::TrainingFinalSvms);
    let watch = run.watch();
    let train = |member| final_svms(&rows, params, approach, member, stop, honest.is_none(), watch);
    // Few rows leave threads idle, and a card is idle while a thread prepares what it is asked next. Exact SVMs may be as large
    // as the card.
    let on_card = watch.gpu().is_some() && approach.last.is_some();
    let beside = sample.rows() < members::BESIDE_EACH_OTHER || on_card;
    let trained: Vec<Trained> = match beside {
        true => parallel::try_map(&members, train)?,
        false => members.iter().map(train).collect::<Result<_>>()?,
    };
    let refitted = trained.iter().all(|member| member.on_all_rows);
    if params.refit && !refitted {
        let cause = match stop.is_early() {
            true => "learning stopped before the final SVM could be trained on all rows",
            false => {
                "the final SVM could not be trained on all rows because of the time limit or the precision of the kernel matrix"
            }
        };
        warnings.push(format!("{cause}; the model uses the SVM trained on part of the rows"));
    }
    // Without rows to fit one to, the temperatures of the members are as good as any.
    let own = trained.iter().filter_map(|member| member.svms.temperature).fold(None, |sum, t| {
        Some(sum.map_or((t, 1.0), |(sum, count): (f64, f64)| (sum + t, count + 1.0)))
    });
    let temperature =
        honest.map(|honest| honest.temperature).or(own.map(|(sum, count)| sum / count));
    // Members of a mean may differ in what is less work. Counted, because there may be fewer than were asked for: if there
    // are fewer rows, or if learning was stopped.
    let on_landmarks = trained.iter().filter(|member| member.landmarks.is_some());
    let in_model = on_landmarks.map(Trained::rows_of_svms).max();
    let landmarks = approach
        .learn
        .map(|learned| ThroughLandmarks { learned: learned.min(sample.rows()), in_model });
    let report = Report {
        trace,
        candidates,
        honest,
        landmarks,
        best,
        stop: Some(stop),
        refitted,
        warnings,
        ..Report::without_steps(method, data, &rows)
    };
    assemble_svms(rows, data, trained, temperature, report)
}

/// What the user should know about a model that knows nothing.
pub(super) fn guessing_warning(honest: &Honest) -> Option<String> {
    honest.is_no_better_than_guessing().then(|| {
        "on held-out rows the model is no better than always predicting the most frequent class"
            .to_owned()
    })
}

/// What the user should know of an error on held-out rows that leaves rows out, or that there is none.
fn estimate_warning(rows: &TrainingRows, rare: &[usize], is_there: bool) -> Option<String> {
    let names: Vec<String> = rare.iter().map(|&c| format!("'{}'", rows.classes[c])).collect();
    let count: u64 = rare.iter().map(|&class| rows.count_of(class)).sum();
    let few = match (rare.len(), count) {
        (0, _) => None,
        (1, 1) => Some(format!("class {} has only 1 row", names[0])),
        (1, _) => Some(format!("class {} has only {count} rows", names[0])),
        _ => Some(format!("classes {} have only {count} rows together", listed(&names, 5))),
    };
    const NOT_WEIGHED: &str = "and its SVMs were not weighed on such rows";
    match (few, is_there) {
        (Some(few), true) => Some(format!(
            "{few}: learned and predicted, but left out of the error on held-out rows, which needs 4 rows of a class"
        )),
        (Some(few), false) => Some(format!(
            "{few}: this model has no error on held-out rows, which needs 4 rows of each of two classes, {NOT_WEIGHED}"
        )),
        (None, true) => None,
        (None, false) => Some(format!(
            "some class is in too few groups: this model has no error on held-out groups, {NOT_WEIGHED}"
        )),
    }
}

/// The SVMs of a member: trained on all rows if that is wanted and there is time, else those that it was learned with.
fn final_svms(
    rows: &TrainingRows,
    params: &Svml,
    approach: Approach,
    member: &MemberFit,
    stop: Stop,
    calibrate: bool,
    watch: &Watch,
) -> Result<Trained> {
    let MemberFit { kernel, weight, metric, cost, likely_support, fit, .. } = member;
    let (kernel, weight) = (*kernel, *weight);
    // SVMs that are validated by leave-one-out are on all rows already.
    let on_all = matches!(fit.trained, TrainedOn::All { .. }) && *cost == fit.cost;
    let learned = Setting { kernel, metric: &fit.metric, cost: fit.cost };
    if params.refit && !on_all && stop != Stop::Interrupted {
        let guess = match likely_support.is_empty() {
            true => svms::likely_support(rows, learned, &fit.svms, watch),
            false => Ok(likely_support.clone()),
        };
        let setting = Setting { metric, cost: *cost, ..learned };
        let (mut landmarks, mut keep) = (approach.last, approach.keep);
        let trained = guess.and_then(|guess| {
            // Groups that calibrate are asked with SVMs of their own.
            if !(calibrate && rows.groups().is_some() && approach.last.is_some()) {
                landmarks = approach.finally(rows.classes.len(), &guess);
            }
            if landmarks.is_none() {
                let room = watch.with_room_for(approach.last.map(|_| approach.columns));
                let trained = FinalSvms::train(rows, setting, &guess, calibrate, &room);
                if !room.is_full() {
                    return trained;
                }
                // They turned out to have too many support vectors. The system does not always get back what their columns took.
                keep = keep.saturating_sub(8 * (rows.class.len() * room.columns()) as u64);
                landmarks = approach.last;
            }
            let class = (&rows.x, rows.class.as_slice(), rows.classes.len());
            let guess = Some(Guess::new(&fit.svms, class, kernel, &fit.metric));
            let count = landmarks.unwrap_or(rows.class.len());
            FinalSvms::on_landmarks(rows, setting, count, guess, calibrate, keep, watch)
        });
        match trained {
            Ok(svms) => {
                let (metric, cost) = (metric.clone(), *cost);
                let on_all_rows = true;
                return Ok(Trained { weight, kernel, metric, cost, svms, on_all_rows, landmarks });
            }
            Err(Error::Interrupted | Error::NotPositiveDefinite { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let (svms, residual) = (fit.svms.clone(), fit.residual);
    let svms = match &fit.trained {
        TrainedOn::Part { seen } => FinalSvms::on_part(rows, learned, svms, residual, seen)?,
        TrainedOn::All { left_out } => {
            FinalSvms::left_out(rows, learned, svms, residual, left_out)?
        }
    };
    let on_all_rows = matches!(fit.trained, TrainedOn::All { .. });
    let metric = fit.metric.clone();
    let landmarks = approach.ask.filter(|_| matches!(fit.trained, TrainedOn::Part { .. }));
    Ok(Trained { weight, kernel, metric, cost: fit.cost, svms, on_all_rows, landmarks })
}

/// Refuses data of which every class is a single row; warns if that row occurs many times over.
fn check_distinct(rows: &TrainingRows) -> Result<Option<String>> {
    if rows.has_distinct_rows() {
        return Ok(None);
    }
    if rows.largest_class < 2.0 {
        return Err(Error::TooFewRows {
            class: rows.classes[0].clone(),
            rows: 1,
            needed: 2,
            purpose: "splitting into training and validation rows",
        });
    }
    let warning =
        "no class has two distinct training rows, so the learned metric and C mean little";
    Ok(Some(warning.to_owned()))
}

fn fit_euclidean(
    data: &Dataset,
    method: &Method,
    grid: &GridSearch,
    run: &mut Run<'_>,
) -> Result<Model> {
    let watch = run.watch();
    let rows = TrainingRows::new(data, &grid.class_weight, grid.equal_rows, grid.seed)?;
    check_grid(&rows, grid, watch)?;
    let choice = grid_search(&rows.sample()?, grid, watch)?;
    let mut report = Report::without_steps(method, data, &rows);
    report.warnings.extend(choice.warning());
    train_gaussian(rows, data, choice.metric, choice.cost, report, watch)
}

/// Without folds and neighbours it does not matter what equal rows are: they are merged.
fn nothing_is_validated_if(certain: bool) -> EqualRows {
    if certain { EqualRows::Copies } else { EqualRows::Auto }
}

/// On the features as they are the kernel is that of a diagonal metric which undoes the scaling.
fn fit_fixed(data: &Dataset, method: &Method, fixed: &Fixed, run: &mut Run<'_>) -> Result<Model> {
    fixed.validate()?;
    let watch = run.watch();
    // In the mapped space the kernel is exp(-|z - z'|^2), so a single width of 1: sigma^2 = d/d.
    let widths = vec![(data.columns() as f64).recip()];
    let memory_limit = fixed.memory_limit;
    let grid = GridSearch { widths, memory_limit, ..GridSearch::default() };
    let equal_rows = nothing_is_validated_if(fixed.cost.is_some());
    let rows = TrainingRows::new(data, &fixed.class_weight, equal_rows, grid.seed)?;
    rows.check_memory(grid.folds, 1, grid.memory(), watch)?;
    let values = rows.scaler.scale.iter().map(|scale| fixed.gamma.sqrt() * scale).collect();
    let metric = Metric::new(Form::Diagonal, data.columns(), values)?;
    let cost = match fixed.cost {
        Some(cost) => cost,
        None => {
            let z = metric.transform(&rows.x);
            grid_search(&rows.sample()?.mapped(&z), &grid, watch)?.cost
        }
    };
    let report = Report::without_steps(method, data, &rows);
    train_gaussian(rows, data, metric, cost, report, watch)
}

/// Mapped rows are scaled so that the mean square of their distance from their mean is r, the number of
/// rows of L, as it is d for standardised rows: the widths of the grid are relative to r as those of
/// the Euclidean SVM are to d, whatever the size of L. The metric of the model is L times that
/// scale over sigma. Section 3.4 of the paper.
fn fit_svm_after(
    data: &Dataset,
    method: &Method,
    learner: &AnyLearner,
    grid: &GridSearch,
    run: &mut Run<'_>,
) -> Result<Model> {
    let rows = TrainingRows::new(data, &grid.class_weight, grid.equal_rows, grid.seed)?;
    learner.validate(data.columns())?;
    check_grid(&rows, grid, run.watch())?;
    let sample = rows.sample()?;
    let learned = learner.learn(&sample, &mut run.first_half())?;
    let watch = run.watch();
    let mut z = learned.metric.transform(sample.x());
    let scale = unit_scale(&z, &sample);
    z.as_mut_slice().iter_mut().for_each(|z| *z *= scale);
    let choice = grid_search(&sample.mapped(&z), grid, watch)?;
    let inverse_width = choice.metric.values().first().copied().unwrap_or(1.0);
    let values = learned.metric.values().iter().map(|l| l * scale * inverse_width).collect();
    let metric = Metric::new(learned.metric.form(), learned.metric.features(), values)?;
    let mut report = Report::of_learner(method, data, &rows, &learned);
    report.warnings.extend(choice.warning());
    train_gaussian(rows, data, metric, choice.cost, report, watch)
}

fn fit_neighbours(
    data: &Dataset,
    method: &Method,
    learner: Option<&AnyLearner>,
    knn: Knn,
    run: &mut Run<'_>,
) -> Result<Model> {
    if knn.k == 0 {
        return Err(Error::parameter("k", knn.k, "at least 1"));
    }
    let rows =
        TrainingRows::new(data, &ClassWeight::None, nothing_is_validated_if(learner.is_none()), 0)?;
    let (metric, report) = match learner {
        Some(learner) => {
            learner.validate(data.columns())?;
            let learned = learner.learn(&rows.sample()?, run)?;
            let report = Report::of_learner(method, data, &rows, &learned);
            (learned.metric, report)
        }
        None => {
            let euclidean = Metric::isotropic(Form::Sphere, data.columns(), 1.0)?;
            (euclidean, Report::without_steps(method, data, &rows))
        }
    };
    // Class after class, as support vectors are kept.
    let mut order: Vec<usize> = (0..rows.class.len()).collect();
    order.sort_by_key(|&i| rows.class[i]);
    let origin: Vec<usize> = order.iter().map(|&i| rows.origin[i]).collect();
    let weight: Vec<f64> = order.iter().map(|&i| rows.weight[i]).collect();
    let mut counts = vec![0; rows.classes.len()];
    rows.class.iter().for_each(|&class| counts[class] += 1);
    let kept = filled_rows(data, &rows, &origin);
    let mapped = metric.transform(&rows.scaler.apply(&kept));
    let neighbours = Neighbours::new(knn.k, origin, counts, weight, kept, &mapped)?;
    Ok(assemble(rows, data, metric, Classifier::Neighbours(neighbours), report))
}

fn fit_metric(
    data: &Dataset,
    method: &Method,
    learner: &AnyLearner,
    run: &mut Run<'_>,
) -> Result<Model> {
    let rows = TrainingRows::new(data, &ClassWeight::None, EqualRows::Auto, 0)?;
    learner.validate(data.columns())?;
    let learned = learner.learn(&rows.sample()?, run)?;
    let report = Report::of_learner(method, data, &rows, &learned);
    Ok(assemble(rows, data, learned.metric, Classifier::None, report))
}

/// Refuses a grid that these rows or the memory limit do not allow.
fn check_grid(rows: &TrainingRows, grid: &GridSearch, watch: &Watch) -> Result<()> {
    grid.validate()?;
    // A row of weight 3 is three rows here too.
    let count = rows.count();
    if grid.folds as u64 > count.max(2) {
        let folds = grid.folds;
        let what = format!(
            "cross-validation with {folds} folds needs at least {folds} rows, but there are {count}"
        );
        return Err(Error::Data { what, remedy: Some(Remedy::FewerFolds) });
    }
    rows.check_memory(grid.folds, 1, grid.memory(), watch)
}

/// The factor that makes the weighted mean of `|z - mean|^2` the number of columns of z; 1 if all rows
/// are the same.
fn unit_scale(z: &Matrix, sample: &Sample<'_>) -> f64 {
    let total: f64 = sample.weight().iter().sum();
    let mean = |column: &mut dyn Iterator<Item = f64>| {
        column.zip(sample.weight()).map(|(v, w)| v * (w / total)).sum::<f64>()
    };
    let variance: f64 = (0..z.cols())
        .map(|k| {
            let centre = mean(&mut z.col(k));
            mean(&mut z.col(k).map(|v| (v - centre).powi(2)))
        })
        .sum();
    let scale = (z.cols() as f64 / variance).sqrt();
    if scale.is_finite() { scale } else { 1.0 }
}

/// Rows of the data as they are kept in a model: encoded, missing values filled, not scaled.
fn filled_rows(data: &Dataset, rows: &TrainingRows, chosen: &[usize]) -> Matrix {
    let mut kept = data.x().select_rows(chosen);
    for i in 0..kept.rows() {
        for (v, fill) in kept.row_mut(i).iter_mut().zip(&rows.scaler.fill) {
            // Zero and minus zero are one value: which of them a row has must not depend on the order of rows that are
            // otherwise the same.
            *v = if v.is_nan() { *fill } else { *v + 0.0 };
        }
    }
    kept
}

/// Trains one SVM for each pair of classes on all rows, with a Gaussian kernel.
fn train_gaussian(
    rows: TrainingRows,
    data: &Dataset,
    metric: Metric,
    cost: f64,
    report: Report,
    watch: &Watch,
) -> Result<Model> {
    let kernel = Kernel::Gaussian;
    let setting = Setting { kernel, metric: &metric, cost };
    let svms = FinalSvms::train(&rows, setting, &[], true, watch)?;
    let temperature = svms.temperature;
    let (weight, on_all_rows, landmarks) = (1.0, true, None);
    let member = Trained { weight, kernel, metric, cost, svms, on_all_rows, landmarks };
    assemble_svms(rows, data, vec![member], temperature, report)
}

/// A member with its final SVMs.
pub(super) struct Trained {
    pub weight: f64,
    pub kernel: Kernel,
    pub metric: Metric,
    pub cost: f64,
    pub svms: FinalSvms,
    /// Whether these were trained on all rows.
    pub on_all_rows: bool,
    /// How many landmarks they have; none: exact.
    pub landmarks: Option<usize>,
}

impl Trained {
    /// How many rows its SVMs are made of.
    pub fn rows_of_svms(&self) -> usize {
        let support = self.svms.svms.iter().flat_map(|svm| &svm.support);
        support.collect::<BTreeSet<_>>().len()
    }
}

pub(super) fn assemble_svms(
    rows: TrainingRows,
    data: &Dataset,
    members: Vec<Trained>,
    temperature: Option<f64>,
    report: Report,
) -> Result<Model> {
    let residual = members.iter().map(|member| member.svms.residual).fold(0.0, f64::max);
    let report = Report { residual, ..report };
    // All members are kept over one set of support vectors.
    let all = || members.iter().flat_map(|member| &member.svms.svms).flat_map(|svm| &svm.support);
    let classes = rows.classes.len();
    let mut kept: Vec<PairwiseSvms> = (members.iter())
        .map(|Trained { svms, .. }| {
            PairwiseSvms::over(all().copied(), &svms.svms, classes, |row| rows.class[row])
        })
        .collect();
    for pairwise in &mut kept {
        pairwise.support.iter_mut().for_each(|row| *row = rows.origin[*row]);
    }
    let support = filled_rows(data, &rows, kept.first().map_or(&[], |first| &first.support));
    let standardised = rows.scaler.apply(&support);
    let metric = Metric::mean(members.iter().map(|member| (member.weight, &member.metric)))?;
    let members = (members.into_iter().zip(kept))
        .map(|(Trained { weight, kernel, metric, cost, .. }, pairwise)| {
            let mapped = metric.transform(&standardised);
            Member { weight, kernel, metric, cost, pairwise, mapped }
        })
        .collect();
    let factors = &rows.class_factors;
    let differ = factors.windows(2).any(|pair| pair[0] != pair[1]);
    let class_weights = differ.then(|| factors.clone());
    let classifier =
        Classifier::Svms(SvmClassifier { members, support, temperature, class_weights });
    Ok(assemble(rows, data, metric, classifier, report))
}

fn assemble(
    rows: TrainingRows,
    data: &Dataset,
    metric: Metric,
    classifier: Classifier,
    report: Report,
) -> Model {
    let TrainingRows { classes, scaler, .. } = rows;
    Model {
        schema: data.schema().clone(),
        classes,
        scaler,
        metric,
        classifier,
        report,
        kept: None,
        device: Device::Auto,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Generator, Scaler};

    fn fixed(gamma: f64, cost: Option<f64>) -> Fixed {
        Fixed { gamma, cost, ..Fixed::default() }
    }

    /// The decision values must be those of the kernel on raw features, whatever their units.
    #[test]
    fn a_fixed_kernel_is_on_the_features_as_they_are() {
        let generated = Generator { rows: 80, ..Default::default() }.generate().unwrap().data;
        let unit = |k: usize| 10.0_f64.powi(k as i32 % 3);
        let x = Matrix::from_fn(80, 10, |i, k| unit(k) * generated.x()[(i, k)] + 3.0);
        let data = Dataset::new(x, generated.y()).unwrap();
        let gamma = 0.02;
        let model = Model::fit(&data, fixed(gamma, Some(2.0))).unwrap();
        let h = model.decision(data.x()).unwrap();
        for row in 0..80 {
            let kernel = |j: usize| {
                let (a, b) = (data.x().row(row), model.support_vectors().row(j));
                let sq_dist: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
                (-gamma * sq_dist).exp()
            };
            let sum: f64 =
                (0..model.support_rows().len()).map(|j| model.beta()[(0, j)] * kernel(j)).sum();
            assert!((sum + model.bias()[0] - h[(row, 0)]).abs() < 1e-12);
        }
        let bytes = model.to_bytes().unwrap();
        assert_eq!(Model::from_bytes(&bytes).unwrap(), model);
    }

    /// On standardised columns a gamma of 1/d is the grid's width of one, so the C must be the grid's too.
    #[test]
    fn c_is_chosen_as_the_grid_would() {
        let generated = Generator { rows: 120, ..Default::default() }.generate().unwrap().data;
        let kinds = generated.schema().encoded_kinds();
        let scaler = Scaler::fit(generated.x(), &[1.0; 120], &kinds);
        let data = Dataset::new(scaler.apply(generated.x()), generated.y()).unwrap();
        let grid = GridSearch { widths: vec![1.0], ..GridSearch::default() };
        let expected = Model::fit(&data, grid).unwrap();
        let model = Model::fit(&data, fixed(0.1, None)).unwrap();
        assert_eq!(model.cost(), expected.cost());
        let (a, b) = (model.decision(data.x()).unwrap(), expected.decision(data.x()).unwrap());
        assert!(a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn what_cannot_be_fixed_is_refused() {
        let data = Generator { rows: 20, ..Default::default() }.generate().unwrap().data;
        for (gamma, cost) in [(0.0, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, 1e9)] {
            assert!(Model::fit(&data, fixed(gamma, Some(cost))).is_err());
        }
    }
}
