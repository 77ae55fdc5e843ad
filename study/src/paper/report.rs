//! docs/study.md, from the results alone.

use svml::internals::UCI_SETS;

use crate::jobs::Table;
use crate::methods::RESEEDED;
use crate::statistics::Mean;

use super::cells::{Cell, over_sets, row};
use super::credit::{self, Credit};
use super::plan::{
    METHODS, REFERENCE, RESEEDED_SPLITS, SKLEARN, Scope, plan, splits, training_rows,
};
use super::printed::{FACTS, PROTOCOL, oddity, printed, reason};
use super::verdict::{apart, verdict};

/// The row of another program.
const OTHER: (&str, &str) = (SKLEARN, "scikit-learn, 5-fold grid");
/// How many of the data sets are small.
pub(super) const SMALL: usize = 7;
/// A cell further from the paper than this many combined standard errors is marked.
pub(super) const FAR: f64 = 2.0;

/// A line of a table.
fn line(name: &str, cells: &[String]) -> String {
    format!("| {name} | {} |\n", cells.join(" | "))
}

/// Its head, with further columns after those of the data sets.
fn head(first: &str, more: &[&str]) -> String {
    let names: Vec<String> = UCI_SETS
        .iter()
        .map(|set| set.name)
        .chain(more.iter().copied())
        .map(str::to_owned)
        .collect();
    line(first, &names) + "|" + &"---|".repeat(names.len() + 1) + "\n"
}

fn bold(text: String, is_bold: bool) -> String {
    if is_bold { format!("**{text}**") } else { text }
}

/// What a cell without results has.
fn none() -> String {
    "-".to_owned()
}

/// The whole report.
pub fn report(table: &Table, credit: &Credit) -> String {
    let parts = [
        introduction(table),
        verdict(table, credit),
        figure_6(table),
        measured(table, credit),
        facts(),
        errors(table),
        deviations(table),
        differences(table),
        times(table),
        figures(table, credit),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn introduction(table: &Table) -> String {
    let mut text = "# The paper's study\n\n\
        Made by `cargo run --release -p study -- paper` from its results files; not typed.\n\n\
        Tables 1 and 2 and the figures of Xu, Weinberger and Chapelle, \"Distance Metric Learning for Kernel Machines\", \
        with the programs of this repository, beside the numbers of the paper. Errors are in percent, with standard errors.\n"
        .to_owned();
    let (done, all) = progress(table);
    if done < all {
        text += &format!("\n**Not the whole study: {done} of {all} jobs are done.**\n");
    }
    text
}

fn measured(table: &Table, credit: &Credit) -> String {
    let mut text = "## How it was measured\n\n\
        Random splits of 80 % to train on and 20 % to test on, features with standard deviation 1 in the training part, all \
        methods on the same splits. Constants of the program were chosen on other splits of these data sets, if at all.\n\n"
        .to_owned();
    for header in table.headers() {
        text += &format!("- {}: {}; {}\n", header.date, header.computer, header.versions);
    }
    for header in &credit.headers {
        text += &format!(
            "- {}: {}; {}, for figures 2 and 5 and the errors of figure 4\n",
            header.date, header.computer, header.versions
        );
    }
    text += "\nResults of the learners ITML, NCA and LMNN on haber, trans, mammo, cmc and page are of a version that kept equal rows in one fold; \
        `study/README.md` says how much that matters.\n";
    text += "\nThe protocol, where the paper leaves something open\n\n";
    for remark in PROTOCOL {
        text += &format!("- {remark}\n");
    }
    text
}

/// Jobs that are done, and all.
fn progress(table: &Table) -> (usize, usize) {
    let plan = plan(&Scope::default());
    (plan.iter().filter(|job| table.get(job).is_some()).count(), plan.len())
}

fn facts() -> String {
    let mut text = "## Table 1: the data\n\nRows, features, rows to train on and to test on, here and in the paper where it differs. The errors of the paper's Table 1 are those of 5 folds in Table 2.\n\n\
        | set | rows | features | train | test | splits | to know |\n|---|---|---|---|---|---|---|\n"
        .to_owned();
    for (set, (_, theirs)) in UCI_SETS.iter().zip(FACTS) {
        let train = training_rows(set);
        let ours = [set.rows, set.features, train, set.rows - train];
        let cells = ours.iter().zip(theirs).map(|(ours, theirs)| match *ours == theirs {
            true => ours.to_string(),
            false => format!("{ours} (paper {theirs})"),
        });
        let mut cells: Vec<String> = cells.collect();
        cells.extend([splits(set).to_string(), oddity(set.name).to_owned()]);
        text += &line(set.name, &cells);
    }
    text
}

/// Ours, the paper's and how far they are apart in combined standard errors.
pub(super) fn distance(ours: Mean, theirs: f64) -> f64 {
    (ours.mean - theirs) / (std::f64::consts::SQRT_2 * ours.error).max(f64::MIN_POSITIVE)
}

/// For each data set, whether each method is as good as the best by a paired test.
pub(super) fn best_up_to_chance(rows: &[Vec<Cell<'_>>]) -> Vec<Vec<bool>> {
    (0..UCI_SETS.len())
        .map(|set| {
            let means: Vec<Option<Mean>> = rows.iter().map(|row| row[set].error()).collect();
            let there =
                means.iter().enumerate().filter_map(|(k, mean)| Some((k, mean.as_ref()?.mean)));
            let Some((best, _)) = there.min_by(|a, b| a.1.total_cmp(&b.1)) else {
                return vec![false; rows.len()];
            };
            let level = |row: &Vec<Cell<'_>>| {
                row[set].minus(&rows[best][set]).is_some_and(|d| !d.is_significant())
            };
            rows.iter().map(level).collect()
        })
        .collect()
}

fn errors(table: &Table) -> String {
    let rows: Vec<Vec<Cell<'_>>> = METHODS.iter().map(|m| row(table, m.name)).collect();
    let best = best_up_to_chance(&rows);
    let mut text = format!(
        "## Table 2: errors\n\nEach cell: mean ± standard error here, the paper's value in brackets. Bold here: not worse \
         than the lowest mean by a paired test at the 5 % level; bold in brackets: bold in the paper. ! marks a cell more than {FAR} combined \
         standard errors from the paper. A set with a single split has the standard error of a share of its test rows, and \
         its differences are tested as if they were independent.\n\n"
    );
    text += &head("method", &["mean of 7", "mean of 9"]);
    for (k, (method, cells)) in METHODS.iter().zip(&rows).enumerate() {
        let theirs: Vec<Option<Mean>> = (0..UCI_SETS.len())
            .map(|set| printed(method.name, set).map(|p| Mean { mean: p.error, error: 0.0 }))
            .collect();
        let ours: Vec<Option<Mean>> = cells.iter().map(Cell::error).collect();
        let mut texts: Vec<String> = Vec::new();
        for set in 0..UCI_SETS.len() {
            let own = ours[set].map(|mean| bold(mean.plain(), best[set][k]));
            texts.push(match (own, printed(method.name, set)) {
                (None, None) => none(),
                (Some(own), None) => own,
                (None, Some(theirs)) => format!("- ({})", theirs.text()),
                (Some(own), Some(theirs)) => {
                    let far = ours[set].is_some_and(|m| distance(m, theirs.error).abs() > FAR);
                    format!("{own} ({}){}", theirs.text(), if far { " !" } else { "" })
                }
            });
        }
        for count in [SMALL, UCI_SETS.len()] {
            let percent = |mean: Option<Mean>| mean.map(|m| format!("{:.2}", 100.0 * m.mean));
            let own = percent(over_sets(&ours[..count])).unwrap_or_else(none);
            let theirs = percent(over_sets(&theirs[..count]));
            texts.push(theirs.map_or(own.clone(), |theirs| format!("{own} ({theirs})")));
        }
        text += &line(method.title, &texts);
    }
    text += "\nSplits behind each cell, where they are fewer than planned: ";
    let short: Vec<String> = UCI_SETS
        .iter()
        .enumerate()
        .filter_map(|(set, facts)| {
            let counts = rows.iter().map(|row| row[set].count()).filter(|count| *count > 0);
            let fewest = counts.min().unwrap_or(0);
            ((fewest as u64) < splits(facts)).then(|| format!("{} {fewest}", facts.name))
        })
        .collect();
    text += &if short.is_empty() { "none.\n".to_owned() } else { short.join(", ") + ".\n" };
    text
}

/// Cells that differ from the paper and may do so for one reason.
struct Deviations {
    reason: &'static str,
    /// What has a lower error here than in the paper, and what a higher one.
    lower: Vec<String>,
    higher: Vec<String>,
}

fn deviations(table: &Table) -> String {
    let mut groups: Vec<Deviations> = Vec::new();
    let mut cells = 0;
    for method in &METHODS {
        for (set, cell) in row(table, method.name).iter().enumerate() {
            let (Some(ours), Some(theirs)) = (cell.error(), printed(method.name, set)) else {
                continue;
            };
            cells += 1;
            let far = distance(ours, theirs.error);
            if far.abs() <= FAR {
                continue;
            }
            let name = UCI_SETS[set].name;
            let reason = reason(name, method.name).unwrap_or("not known");
            let group = match groups.iter().position(|group| group.reason == reason) {
                Some(k) => &mut groups[k],
                None => {
                    groups.push(Deviations { reason, lower: Vec::new(), higher: Vec::new() });
                    let last = groups.len() - 1;
                    &mut groups[last]
                }
            };
            let words = format!("{name} {} {far:+.1}", method.title.replace(" + SVM", ""));
            if far < 0.0 { group.lower.push(words) } else { group.higher.push(words) }
        }
    }
    let lower: usize = groups.iter().map(|group| group.lower.len()).sum();
    let marked = lower + groups.iter().map(|group| group.higher.len()).sum::<usize>();
    let mut text = format!(
        "### Cells that differ from the paper\n\n{marked} of {cells}: in {lower} the error is lower here, in {} it is higher. About one in \
         twenty would differ by chance; but methods share their splits, so that the cells of a set deviate together. Numbers are \
         the distance from the paper in combined standard errors.\n\n\
         | possible reason | cells | lower here | higher here |\n|---|---|---|---|\n",
        marked - lower
    );
    let listed = |words: &[String]| if words.is_empty() { none() } else { words.join(", ") };
    for group in &groups {
        let count = group.lower.len() + group.higher.len();
        text +=
            &line(group.reason, &[count.to_string(), listed(&group.lower), listed(&group.higher)]);
    }
    text
}

/// The cells of a line of differences between two methods.
fn paired(table: &Table, method: &str, reference: &str) -> Vec<String> {
    let reference = row(table, reference);
    let found: Vec<_> = row(table, method)
        .iter()
        .zip(&reference)
        .map(|(cell, reference)| cell.minus(reference))
        .collect();
    let mut texts: Vec<String> = found
        .iter()
        .map(|d| d.map_or_else(none, |d| bold(d.mean.signed(), d.is_significant())))
        .collect();
    let means: Vec<Option<Mean>> = found.iter().map(|d| d.map(|d| d.mean)).collect();
    for count in [SMALL, UCI_SETS.len()] {
        let mean = over_sets(&means[..count]);
        texts.push(mean.map_or_else(none, |m| bold(m.signed(), m.is_significant())));
    }
    texts
}

fn differences(table: &Table) -> String {
    let mut text = "## Paired differences to the Euclidean SVM with 5 folds\n\nIn percent, ± standard error, on the same splits. \
        Below zero is better; bold is significant at the 5 % level. scikit-learn's grid is over the same 20 settings, with folds of its own \
        and the plain hinge loss, on some of the splits (all of trans).\n\n"
        .to_owned();
    text += &head("method", &["mean of 7", "mean of 9"]);
    let rows = METHODS.iter().map(|m| (m.name, m.title)).filter(|(name, _)| *name != REFERENCE);
    for (name, title) in rows.chain([OTHER]) {
        text += &line(title, &paired(table, name, REFERENCE));
    }
    let again = |name: &str| name.to_owned() + RESEEDED;
    let reference = again(REFERENCE);
    if row(table, &reference).iter().any(|cell| cell.count() > 0) {
        text += &format!(
            "\n### The same with the seed of the split\n\nThe fits above have seed 0, these the seed of the split, and so has the grid: the \
             rows that validate are others on every split. On {RESEEDED_SPLITS} splits of the small sets.\n\n"
        );
        text += &head("method", &["mean of 7", "mean of 9"]);
        let rows = METHODS.iter().filter(|m| m.name != REFERENCE);
        for method in rows.filter(|m| row(table, &again(m.name)).iter().any(|c| c.count() > 0)) {
            text += &line(method.title, &paired(table, &again(method.name), &reference));
        }
    }
    text += "\n### Forms that the default chose\n\n| set | forms |\n|---|---|\n";
    for (set, cell) in UCI_SETS.iter().zip(row(table, "default")) {
        if cell.count() == 0 {
            continue;
        }
        let share = |count: usize| (100.0 * count as f64 / cell.count() as f64).round();
        let forms = cell.forms().into_iter().map(|(form, n)| format!("{form} {} %", share(n)));
        text += &line(set.name, &[forms.collect::<Vec<_>>().join(", ")]);
    }
    text
}

/// Seconds with three digits.
pub(super) fn seconds(value: f64) -> String {
    match value {
        v if v < 0.0995 => format!("{v:.4}"),
        v if v < 9.95 => format!("{v:.2}"),
        v => format!("{v:.0}"),
    }
}

fn times(table: &Table) -> String {
    let mut text = "## Time\n\nMean processor seconds of a fit, of all threads together: metric, cross-validation and the last SVM. \
        On two free cores half of that passes; other work on the computer lengthens it little. scikit-learn's search runs in \
        one process, which costs it least. Its SVM has the plain hinge loss, ours the squared one. Ratios are over the splits that both have. \
        Newton's method takes the cube of the number of support vectors: with nine thousand of them, on gamma, scikit-learn's SVMs are \
        cheaper one by one than ours.\n\n"
        .to_owned();
    text += &head("method", &[]);
    let titles = METHODS.iter().map(|m| (m.name, m.title));
    for (name, title) in titles.chain([OTHER]) {
        let cells = row(table, name);
        let texts: Vec<String> =
            cells.iter().map(|cell| cell.seconds().map_or_else(none, seconds)).collect();
        text += &line(title, &texts);
    }
    for (name, of, to) in RATIOS {
        let texts: Vec<String> = ratio(table, of, to)
            .iter()
            .map(|r| r.map_or_else(none, |r| format!("{r:.2}")))
            .collect();
        text += &line(name, &texts);
    }
    text += "\n### What the run cost\n\nProcessor minutes of all fits together, by method and data set; on N free cores they take an N-th of that.\n\n";
    text += &head("method", &["all"]);
    let mut sums = vec![0.0; UCI_SETS.len() + 1];
    for method in &METHODS {
        let mut minutes: Vec<f64> =
            row(table, method.name).iter().map(|cell| cell.total_seconds() / 60.0).collect();
        minutes.push(minutes.iter().sum());
        sums.iter_mut().zip(&minutes).for_each(|(sum, m)| *sum += m);
        text += &line(method.title, &minutes.iter().map(|m| format!("{m:.1}")).collect::<Vec<_>>());
    }
    text += &line("all", &sums.iter().map(|m| format!("{m:.1}")).collect::<Vec<_>>());
    text
}

/// Times that are compared: what it is called, of which method, to which.
const RATIOS: [(&str, &str, &str); 6] = [
    ("SVML / Euclidean 3-fold", "svml", "euclid-3"),
    ("SVML / Euclidean 5-fold", "svml", "euclid-5"),
    ("default / Euclidean 5-fold", "default", "euclid-5"),
    ("scikit-learn / SVML", SKLEARN, "svml"),
    ("scikit-learn / default", SKLEARN, "default"),
    ("scikit-learn / Euclidean 5-fold", SKLEARN, REFERENCE),
];

pub(super) fn ratio(table: &Table, of: &str, to: &str) -> Vec<Option<f64>> {
    row(table, of).iter().zip(row(table, to)).map(|(of, to)| of.times_as_long_as(&to)).collect()
}

/// What was aimed at, and whether it is so: for the console.
pub fn aims(table: &Table) -> String {
    let verdict =
        |met: bool, words: String| format!("- {}: {words}\n", if met { "met" } else { "not met" });
    let mut text = "Aims\n".to_owned();
    let (done, all) = progress(table);
    if done < all {
        text += "By the jobs that are done; with few splits chance decides.\n";
    }
    let far: Vec<String> = ["euclid-1", "euclid-3", "euclid-5"]
        .iter()
        .flat_map(|name| {
            let far = |(set, cell): (usize, &Cell<'_>)| {
                let far = distance(cell.error()?, printed(name, set)?.error).abs() > FAR;
                far.then(|| format!("{name} on {}", UCI_SETS[set].name))
            };
            row(table, name).iter().enumerate().filter_map(far).collect::<Vec<_>>()
        })
        .collect();
    let exceptions =
        if far.is_empty() { "all are".to_owned() } else { "not ".to_owned() + &far.join(", ") };
    let words =
        format!("Euclidean rows within {FAR} combined standard errors of the paper: {exceptions}");
    text += &verdict(far.is_empty(), words);

    let errors =
        |name: &str| -> Vec<Option<Mean>> { row(table, name).iter().map(Cell::error).collect() };
    let theirs = |count: usize| {
        let means: Option<Vec<f64>> =
            (0..count).map(|set| Some(printed("svml", set)?.error)).collect();
        means.map(|m| m.iter().sum::<f64>() / count as f64)
    };
    for (count, words) in [(UCI_SETS.len(), "nine"), (SMALL, "seven small")] {
        let (Some(own), Some(svml)) = (over_sets(&errors("default")[..count]), theirs(count))
        else {
            continue;
        };
        let here = over_sets(&errors("svml")[..count]).map_or_else(none, Mean::plain);
        let [ours, theirs] = apart(own.mean, svml);
        let words = format!(
            "the default at least as good as the paper's SVML on the mean over the {words} sets: {ours} against {theirs}{} (SVML here: {here})",
            if distance(own, svml).abs() <= FAR { ", equal up to chance" } else { "" },
        );
        text += &verdict(own.mean <= svml, words);
    }
    let found: Vec<(f64, &str)> = ratio(table, SKLEARN, "svml")
        .iter()
        .zip(&UCI_SETS)
        .filter_map(|(r, set)| Some(((*r)?, set.name)))
        .collect();
    if !found.is_empty() {
        let list: Vec<String> = found.iter().map(|(r, name)| format!("{name} {r:.1}")).collect();
        let words = format!(
            "SVML at least 20 times faster than scikit-learn's grid on every set: {}",
            list.join(", ")
        );
        text += &verdict(found.iter().all(|(r, _)| *r >= 20.0), words);
    }
    if done == all {
        let cells = METHODS.iter().flat_map(|method| row(table, method.name));
        let hours = cells.map(|cell| cell.total_seconds()).sum::<f64>() / 3600.0;
        let words = format!(
            "a full run within 3 hours on 2 cores: {hours:.1} processor hours, {:.1} on each of two",
            hours / 2.0
        );
        text += &verdict(hours <= 6.0, words);
    }
    text
}

/// A figure with its caption: the heading says what it is, the words what is seen.
fn figure(heading: &str, file: &str, seen: &str) -> String {
    format!("\n**{heading}.** {seen}\n\n![{heading}](figures/{file}.svg)\n")
}

fn figure_6(table: &Table) -> String {
    let heading = "Figure 6 (ours): the error of each method minus that of the grid";
    let reference = row(table, REFERENCE);
    // Sets on which the whole interval is on either side.
    let sides = |method: &str| {
        let found = row(table, method).into_iter().zip(&reference).filter_map(|(a, b)| a.minus(b));
        let found: Vec<f64> = found.filter(|d| d.is_significant()).map(|d| d.mean.mean).collect();
        let left = found.iter().filter(|mean| **mean < 0.0).count();
        format!("left of it on {left} of the sets and right of it on {}", found.len() - left)
    };
    let seen = format!(
        "Every dot is the mean over the splits of one set of the difference from the Euclidean SVM with 5 folds, with its 95 % \
         interval; left of the dashed line is better. The whole interval of the default is {}, that of SVML as in the paper {}. \
         The scales differ from set to set.",
        sides("default"),
        sides("svml")
    );
    figure(heading, "figure-6-differences", &seen).trim_start().to_owned()
}

fn figures(table: &Table, credit: &Credit) -> String {
    let mut text = "## Figures\n\nFigure 6 is at the top of this page.\n".to_owned();
    text += &figure(
        "Figure 1: the surrogate",
        "figure-1-surrogate",
        "A smooth step in place of the zero-one loss. The larger a, the steeper, and the fewer rows near the border have a gradient; \
         the study has a = 5.",
    );
    text += &figure(
        "Figure 2: loss and errors by step on credit, by plain descent with a small step",
        "figure-2-descent",
        &seen_in_figure_2(credit),
    );
    let range = |of: &str, to: &str| {
        let found: Vec<f64> = ratio(table, of, to).into_iter().flatten().collect();
        let (low, high) = found
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(low, high), r| (low.min(*r), high.max(*r)));
        (!found.is_empty()).then(|| format!("{low:.2} to {high:.2}"))
    };
    let times = range("svml", REFERENCE).zip(range("default", REFERENCE));
    text += &figure(
        "Figure 3: processor seconds of a fit",
        "figure-3-times",
        &format!(
            "Each line is a method, each sign a set; left is faster, and from one vertical line to the next it is ten times.{}",
            times.map_or(String::new(), |(svml, default)| format!(
                " SVML takes {svml} of the time of the grid with 5 folds, the default {default}."
            ))
        ),
    );
    let maps = "The first split. The colour of the background is the decision of the SVM.";
    let several = match credit.splits.len() {
        0 | 1 => String::new(),
        count => format!(
            " In the mean over {count} splits the error of the SVM in the plane is {} %, after principal components {} %.",
            credit.mean(|split| split.rank_2).plain(),
            credit.mean(|split| split.pca_2).plain()
        ),
    };
    for (heading, file, seen) in [
        (
            "Figure 4: credit in two dimensions, by SVML of rank 2",
            "figure-4-svml",
            format!("{maps}{several}"),
        ),
        (
            "Figure 4: the same by principal components and a grid",
            "figure-4-pca",
            "The directions in which the rows vary most are not those in which the classes differ."
                .to_owned(),
        ),
        (
            "Figure 4: SVML of rank 3, directions 1 and 2",
            "figure-4-rank-3-12",
            "With three directions the background is the mean over the one that is not shown."
                .to_owned(),
        ),
        (
            "Figure 4: SVML of rank 3, directions 1 and 3",
            "figure-4-rank-3-13",
            "The same SVM.".to_owned(),
        ),
        (
            "Figure 4: SVML of rank 3, directions 2 and 3",
            "figure-4-rank-3-23",
            "The same SVM.".to_owned(),
        ),
        (
            "Figure 5 (ours): the plane of C and width, the cells of the grid, and the paths of SVML-Sphere",
            "figure-5-plane",
            seen_in_figure_5(credit),
        ),
    ] {
        text += &figure(heading, file, &seen);
    }
    text
}

/// How an error moves from one state to another: `falls from A to B %`.
fn moves(from: Mean, to: Mean, difference: Mean) -> String {
    let [a, b] = apart(from.mean, to.mean);
    let verb = match difference.is_significant() {
        false => "does not move significantly",
        true if difference.mean < 0.0 => "falls",
        true => "rises",
    };
    format!("{verb}, from {a} to {b} % ({} points)", difference.signed())
}

fn seen_in_figure_2(credit: &Credit) -> String {
    let count = credit.splits.len();
    if count < 2 {
        return "The loss is that of the validation rows, with the regulariser.".to_owned();
    }
    let first = |values: &[f64]| values.first().copied().unwrap_or(f64::NAN);
    let last = |values: &[f64]| values.last().copied().unwrap_or(f64::NAN);
    let change = |of: fn(&credit::Plain) -> &Vec<f64>| {
        credit.mean(|split| last(of(&split.plain)) - first(of(&split.plain)))
    };
    let course = |of: fn(&credit::Plain) -> &Vec<f64>| {
        let (from, to) = (
            credit.mean(|split| first(of(&split.plain))),
            credit.mean(|split| last(of(&split.plain))),
        );
        moves(from, to, change(of))
    };
    let falls = |of: fn(&credit::Plain) -> &Vec<f64>| {
        let change = change(of);
        change.is_significant() && change.mean < 0.0
    };
    let kept = credit.mean(|split| split.plain.kept_test - first(&split.plain.test));
    let mut steps: Vec<usize> = credit.splits.iter().map(|split| split.plain.kept).collect();
    steps.sort_unstable();
    format!(
        "Mean of {count} splits. While the loss goes from {:.3} to {:.3}, the validation error {}{}. The training \
         error {}. The test error {}.{} Early stopping, which asks rows of its own, keeps step {} in the median; the test error \
         there differs from that of the start by {} points.",
        credit.mean(|split| first(&split.plain.loss)).mean,
        credit.mean(|split| last(&split.plain.loss)).mean,
        course(|plain| &plain.validation),
        if falls(|plain| &plain.validation) { ", as the paper says" } else { "" },
        course(|plain| &plain.training),
        course(|plain| &plain.test),
        match falls(|plain| &plain.test) {
            true => "",
            false => {
                " The loss is that of the validation rows, and what is gained on them is not gained on others: the paper's figure \
                 shows one split, on which this need not be seen."
            }
        },
        steps[count / 2],
        kept.signed(),
    )
}

fn seen_in_figure_5(credit: &Credit) -> String {
    let count = credit.splits.len();
    let Some(split) = credit.splits.first().filter(|_| count > 1) else {
        return "The grid tries every cell; the descent walks.".to_owned();
    };
    let grid = &split.grid;
    let cells = (0..grid.widths.len()).flat_map(|w| (0..grid.costs.len()).map(move |c| (w, c)));
    let cells = cells.map(|(w, c)| (w, c, credit.mean(|split| split.grid.errors[w][c]).mean));
    let cells: Vec<(usize, usize, f64)> = cells.collect();
    let lowest = cells.iter().min_by(|a, b| a.2.total_cmp(&b.2));
    let best = lowest.copied().unwrap_or((0, 0, f64::NAN));
    let near = cells.iter().filter(|cell| cell.2 <= best.2 + 0.005).count();
    let kept = |split: &credit::Split| split.sphere.test[split.sphere.kept];
    let mean_log = |of: fn(&credit::Sphere) -> &Vec<f64>| {
        credit.mean(|split| of(&split.sphere)[split.sphere.kept].ln()).mean.exp()
    };
    let steps = credit.mean(|split| split.sphere.cost.len() as f64 - 1.0).mean;
    format!(
        "{count} splits. The grid trains {} SVMs on each; the descent, which starts at C = {:.1} and sigma^2 = d, takes {steps:.1} steps on the \
         mean. The cell with the lowest error is that of C = {} and sigma^2 = {} d, with {:.1} %; {near} of the {} cells are within half a point \
         of it, and the grid's choice differs from split to split. The steps that were kept are around C = {:.1}, sigma^2 = {:.1} d; where a path goes on, early stopping took it \
         back. From the start to the step that was kept the test error {}.",
        5 * grid.widths.len() * grid.costs.len(),
        split.sphere.cost[0],
        grid.costs[best.1],
        grid.widths[best.0],
        100.0 * best.2,
        cells.len(),
        mean_log(|sphere| &sphere.cost),
        mean_log(|sphere| &sphere.width),
        moves(
            credit.mean(|split| split.sphere.test[0]),
            credit.mean(kept),
            credit.mean(|split| kept(split) - split.sphere.test[0]),
        )
    )
}
