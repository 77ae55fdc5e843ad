//! The page about the defaults, from results files alone.

use std::collections::BTreeMap;

use svml::internals::UciSet;

use super::FIRST_DRAW;
use super::tables::{
    DRAWS, GENERATED, GENERATED_ROWS, LARGE, PEER_SPLITS, SMALL_SPLITS, SUITE, small_sets,
};
use crate::jobs::{Job, Measured, Table};
use crate::methods::{DEFAULT, FORMER, GRID, OTHERS, PAPER};
use crate::probabilities::{Probabilities, calibration_error};
use crate::statistics::{Mean, student};

/// Methods of the tables that have all, ours and then those of study/peers.py: names and titles.
const COLUMNS: [(&str, &str); 9] = [
    (GRID, "grid"),
    ("gaussian", "gaussian"),
    ("exponential", "exponential"),
    ("laplacian", "laplacian"),
    (DEFAULT, "default"),
    (SVC, "SVC grid"),
    ("forest", "forest"),
    ("boosting", "boosting"),
    ("catboost", "CatBoost"),
];
/// Those of study/peers.py.
pub const PEERS: [&str; 4] = [SVC, "forest", "boosting", "catboost"];
/// scikit-learn's grid search.
const SVC: &str = "svc";
/// Single members, which the tables on probabilities leave out.
const MEMBERS: [&str; 3] = ["gaussian", "exponential", "laplacian"];

/// What a report is made of.
pub struct Report {
    /// Results of `study accuracy`.
    pub ours: Table,
    /// Results of `study/peers.py`.
    pub peers: Table,
    /// Those of `study/peers.py --times`.
    pub times: Table,
    /// Seed of the first split.
    pub first_seed: u64,
    /// Rows that large tables were trained on.
    pub most_rows: usize,
    /// Jobs that there are no results of: ours, those of other programs.
    pub missing: (usize, usize),
}

/// A table of one number for each data set and method.
struct Grid {
    /// Names of the methods.
    methods: Vec<&'static str>,
    /// Data, what else is said of it, and the numbers.
    rows: Vec<(String, Vec<String>, Vec<Option<f64>>)>,
    /// Whether the largest is the best.
    largest: bool,
    /// How a number is written.
    write: fn(f64) -> String,
}

impl Grid {
    /// Rows that have a number for every method.
    fn whole(&self) -> Vec<Vec<f64>> {
        self.rows.iter().filter_map(|(_, _, values)| values.iter().copied().collect()).collect()
    }

    /// The mean of each method over the rows that have all.
    fn means(&self) -> Option<Vec<f64>> {
        let whole = self.whole();
        let mean =
            |k: usize| whole.iter().map(|values| values[k]).sum::<f64>() / whole.len() as f64;
        (!whole.is_empty()).then(|| (0..self.methods.len()).map(mean).collect())
    }

    /// The mean of one method.
    fn mean(&self, method: &str) -> Option<f64> {
        let place = self.methods.iter().position(|name| *name == method)?;
        Some(self.means()?[place])
    }

    /// Whether a number is the best of its row, as it is written.
    fn is_best(&self, value: f64, row: &[Option<f64>]) -> bool {
        let better = |a: f64, b: f64| if self.largest { a > b } else { a < b };
        let others = row.iter().copied().flatten();
        let best = others.reduce(|a, b| if better(b, a) { b } else { a });
        best.is_some_and(|best| (self.write)(best) == (self.write)(value))
    }

    /// On how many of the rows that have all each method is the best, equal ones too.
    fn wins(&self) -> Vec<usize> {
        let mut wins = vec![0; self.methods.len()];
        for row in self.whole() {
            let all: Vec<Option<f64>> = row.iter().copied().map(Some).collect();
            let won = wins.iter_mut().zip(&row);
            won.for_each(|(wins, value)| *wins += usize::from(self.is_best(*value, &all)));
        }
        wins
    }

    fn text(&self, first: &[&str]) -> String {
        let titles: Vec<&str> = self.methods.iter().map(|name| title(name)).collect();
        let mut text = head(&[first, &titles].concat());
        for (name, facts, values) in &self.rows {
            let cell = |value: &Option<f64>| match value {
                Some(v) if self.is_best(*v, values) => format!("**{}**", (self.write)(*v)),
                Some(v) => (self.write)(*v),
                None => "-".to_owned(),
            };
            let cells = values.iter().map(cell);
            text += &line([name.clone()].into_iter().chain(facts.clone()).chain(cells));
        }
        let Some(means) = self.means() else { return text };
        let blank = || vec![String::new(); first.len() - 1].into_iter();
        let whole = self.whole().len();
        let of = if whole == self.rows.len() { String::new() } else { format!(" of {whole}") };
        let mean = means.into_iter().map(self.write);
        text += &line([format!("mean{of}")].into_iter().chain(blank()).chain(mean));
        let wins = self.wins().into_iter().map(|wins| wins.to_string());
        text + &line([format!("best{of}")].into_iter().chain(blank()).chain(wins))
    }
}

fn head(cells: &[&str]) -> String {
    format!("| {} |\n|{}\n", cells.join(" | "), "---|".repeat(cells.len()))
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn title(method: &str) -> &str {
    COLUMNS.iter().find(|(name, _)| *name == method).map_or(method, |(_, title)| title)
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

fn bold(difference: Mean, clear: bool) -> String {
    if clear { format!("**{}**", difference.signed()) } else { difference.signed() }
}

fn mean_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| 0.5 * (values[(n - 1) / 2] + values[n / 2]))
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Seconds with three digits.
fn seconds(s: f64) -> String {
    match s {
        s if s < 1.0 => format!("{s:.3}"),
        s if s < 10.0 => format!("{s:.2}"),
        s => format!("{s:.1}"),
    }
}

/// The results of two methods on the same splits of a set.
struct Paired<'r> {
    data: &'static str,
    splits: usize,
    of: Vec<&'r Measured>,
    to: Vec<&'r Measured>,
}

impl Paired<'_> {
    fn difference(&self) -> Mean {
        let pairs = self.of.iter().zip(&self.to);
        Mean::of(&pairs.map(|(a, b)| a.error - b.error).collect::<Vec<_>>())
    }

    /// Whether the difference is not zero at the 5 % level.
    fn is_clear(&self) -> bool {
        let difference = self.difference();
        difference.mean.abs() > student(self.splits) * difference.error
    }
}

/// What the differences of the default to the grid on some tables come to.
struct AgainstGrid {
    mean: Option<Mean>,
    sets: usize,
    better: usize,
    clearly_better: usize,
    clearly_worse: Vec<&'static str>,
    worse_by_one: Vec<&'static str>,
}

fn names_of_seven() -> Vec<&'static str> {
    small_sets().map(|set| set.name).collect()
}

fn names_of_suite() -> Vec<&'static str> {
    SUITE.iter().map(|table| table.name).collect()
}

impl Report {
    fn get(&self, data: &str, seed: u64, method: &str) -> Option<&Measured> {
        let job = Job { data: data.to_owned(), seed, method: method.to_owned() };
        self.ours.get(&job).or_else(|| self.peers.get(&job))
    }

    fn all(&self, data: &str, method: &str) -> Vec<&Measured> {
        let first = if is_generated(data) { FIRST_DRAW } else { self.first_seed };
        let seeds = first..first + SMALL_SPLITS;
        seeds.filter_map(|seed| self.get(data, seed, method)).collect()
    }

    /// The results of some methods on the splits that all of them have which have any.
    fn together(&self, data: &str, methods: &[&'static str]) -> BTreeMap<&str, Vec<&Measured>> {
        let mut all: BTreeMap<&str, Vec<&Measured>> = (methods.iter())
            .map(|method| (*method, self.all(data, method)))
            .filter(|(_, results)| !results.is_empty())
            .collect();
        let has =
            |results: &[&Measured], seed: u64| results.iter().any(|result| result.job.seed == seed);
        let shared: Vec<u64> = all.values().next().map_or(Vec::new(), |first| {
            let seeds = first.iter().map(|result| result.job.seed);
            seeds.filter(|seed| all.values().all(|results| has(results, *seed))).collect()
        });
        all.values_mut().for_each(|of| of.retain(|result| shared.contains(&result.job.seed)));
        all.retain(|_, results| !results.is_empty());
        all
    }

    fn paired(
        &self,
        data: &'static str,
        method: &'static str,
        to: &'static str,
    ) -> Option<Paired<'_>> {
        let mut both = self.together(data, &[method, to]);
        let (of, to) = (both.remove(method)?, both.remove(to)?);
        Some(Paired { data, splits: of.len(), of, to })
    }

    fn against_grid(&self, names: &[&'static str]) -> AgainstGrid {
        let sets: Vec<Paired<'_>> =
            names.iter().filter_map(|name| self.paired(name, DEFAULT, GRID)).collect();
        let differences: Vec<Mean> = sets.iter().map(Paired::difference).collect();
        let named = |take: &dyn Fn(&Paired<'_>) -> bool| {
            sets.iter().filter(|set| take(set)).map(|set| set.data).collect::<Vec<_>>()
        };
        let below = |set: &Paired<'_>| set.difference().mean < 0.0;
        AgainstGrid {
            mean: over_sets(&differences),
            sets: sets.len(),
            better: named(&below).len(),
            clearly_better: named(&|set| set.is_clear() && below(set)).len(),
            clearly_worse: named(&|set| set.is_clear() && !below(set)),
            worse_by_one: named(&|set| set.difference().mean > set.difference().error),
        }
    }

    /// One number for each table and method, on the splits that all methods have.
    fn grid(
        &self,
        methods: Vec<&'static str>,
        largest: bool,
        write: fn(f64) -> String,
        number: impl Fn(&[&Measured]) -> Option<f64>,
    ) -> Grid {
        let mut rows = Vec::new();
        for (data, rows_of) in tables() {
            let together = self.together(data, &methods);
            let splits = together.values().next().map_or(0, Vec::len);
            let values: Vec<Option<f64>> =
                methods.iter().map(|method| number(together.get(method)?)).collect();
            if values.iter().all(Option::is_none) {
                continue;
            }
            let trained = rows_of * 4 / 5;
            let trained = if rows_of > LARGE { trained.min(self.most_rows) } else { trained };
            rows.push((data.to_owned(), vec![trained.to_string(), splits.to_string()], values));
        }
        Grid { methods, rows, largest, write }
    }

    /// Methods that there are results of.
    fn present(&self, members: bool) -> Vec<&'static str> {
        let any = |method: &str| {
            self.ours.all().chain(self.peers.all()).any(|measured| measured.job.method == method)
        };
        let names = COLUMNS.iter().map(|(name, _)| *name);
        names.filter(|name| (members || !MEMBERS.contains(name)) && any(name)).collect()
    }

    fn errors(&self) -> Grid {
        self.grid(self.present(true), false, percent, |of| mean_of(of.iter().map(|m| m.error)))
    }

    fn log_loss(&self) -> Grid {
        self.grid(
            self.present(false),
            false,
            |v| format!("{v:.3}"),
            |of| mean_of(probabilities(of)?.iter().map(|p| p.log_loss)),
        )
    }

    fn auc(&self) -> Grid {
        self.grid(
            self.present(false),
            true,
            |v| format!("{v:.3}"),
            |of| mean_of(probabilities(of)?.iter().filter_map(|p| p.auc)),
        )
    }

    fn calibration(&self) -> Grid {
        self.grid(
            self.present(false),
            false,
            |v| format!("{:.1}", 100.0 * v),
            |of| Some(calibration_error(probabilities(of)?.into_iter())),
        )
    }

    /// Median seconds of ours and of scikit-learn's on the tables that were timed.
    fn timed(&self) -> Vec<(&'static str, f64, f64)> {
        let of = |data: &str, method: &str| {
            let job = |seed| Job { data: data.to_owned(), seed, method: method.to_owned() };
            let seconds = (0..100).filter_map(|k| self.times.get(&job(k))).map(|m| m.seconds);
            median(seconds.collect())
        };
        let paper = UciSet::named("page").into_iter().map(|set| set.name);
        let names = small_sets().map(|set| set.name).chain(paper);
        names
            .chain(SUITE.iter().map(|table| table.name))
            .filter_map(|data| Some((data, of(data, DEFAULT)?, of(data, SVC)?)))
            .collect()
    }

    /// Time of the default as a share of that of our own grid, table by table.
    fn shares_of_grid(&self) -> Vec<(&'static str, f64)> {
        let seconds = |of: &[&Measured]| of.iter().map(|m| m.seconds).sum::<f64>();
        tables()
            .filter_map(|(data, _)| {
                let both = self.paired(data, DEFAULT, GRID)?;
                Some((both.data, seconds(&both.of) / seconds(&both.to)))
            })
            .collect()
    }

    /// What was aimed at with the defaults, and whether it is so: for the console.
    pub fn aims(&self) -> String {
        let on = |sets: &[&str]| match sets {
            [] => "on none".to_owned(),
            sets => format!("on {}", sets.join(", ")),
        };
        let seven = self.against_grid(&names_of_seven());
        let errors = self.errors();
        let suite = self.against_grid(&names_of_suite());
        let mut aims = Vec::new();
        for (against, of, most) in [(&seven, "seven sets", -0.8), (&suite, "suite", -1.0)] {
            let mean = against.mean.map_or("-".to_owned(), Mean::signed);
            aims.push((
                against.mean.is_some_and(|mean| 100.0 * mean.mean <= most),
                format!("{of}: mean difference to the grid at most {most:.1}: {mean}"),
            ));
        }
        aims.push((
            seven.worse_by_one.is_empty(),
            format!(
                "seven sets: worse than the grid by more than one standard error {}",
                on(&seven.worse_by_one)
            ),
        ));
        aims.push((
            suite.clearly_worse.is_empty(),
            format!(
                "suite: significantly worse than the grid at the 5 % level {}",
                on(&suite.clearly_worse)
            ),
        ));
        for (grid, name) in [
            (&errors, "error"),
            (&self.log_loss(), "log loss"),
            (&self.calibration(), "calibration error"),
        ] {
            let Some((ours, means)) = grid.mean(DEFAULT).zip(grid.means()) else {
                aims.push((false, format!("all tables: mean {name}: no results of the default")));
                continue;
            };
            let lower: Vec<String> = (grid.methods.iter().zip(means))
                .filter(|(_, mean)| *mean < ours)
                .map(|(method, mean)| format!("{} ({})", title(method), (grid.write)(mean)))
                .collect();
            let of = if lower.is_empty() { "none".to_owned() } else { lower.join(", ") };
            let ours = (grid.write)(ours);
            aims.push((
                lower.is_empty(),
                format!("all tables: mean {name} the lowest: {ours}; lower is that of {of}"),
            ));
        }
        let timed = self.timed();
        let slower: Vec<&str> =
            timed.iter().filter(|(_, ours, svc)| ours > svc).map(|(data, ..)| *data).collect();
        aims.push((
            slower.is_empty() && !timed.is_empty(),
            format!("on no table slower than scikit-learn's grid search: {}", on(&slower)),
        ));
        let line = |(met, aim): &(bool, String)| {
            format!("- {}: {aim}\n", if *met { "met" } else { "not met" })
        };
        "Aims\n".to_owned() + &aims.iter().map(line).collect::<String>()
    }

    /// The page.
    pub fn text(&self) -> String {
        [
            self.beginning(),
            self.seven_text(),
            self.own_suite_text(),
            self.suite_text(),
            self.probabilities_text(),
            self.generated_text(),
            self.times_text(),
            self.limits(),
        ]
        .concat()
    }

    fn beginning(&self) -> String {
        let mut text = "# Accuracy of the defaults\n\nMade by `cargo run --release -p study -- accuracy` from `study/results/suite.jsonl` (ours), `peers.jsonl` (other \
             programs) and `times_default.jsonl`; not typed.\n\n"
            .to_owned();
        let (ours, peers) = self.missing;
        if ours + peers > 0 {
            text += &format!(
                "Not all is measured yet: {ours} jobs of ours and {peers} of other programs are open.\n\n"
            );
        }
        for (against, of) in [
            (self.against_grid(&names_of_seven()), "the paper's small sets"),
            (self.against_grid(&names_of_suite()), "the further tables"),
        ] {
            let Some(mean) = against.mean else { continue };
            let worse = match &against.clearly_worse[..] {
                [] => "none".to_owned(),
                worse => worse.join(", "),
            };
            text += &format!(
                "- On {of} the error of the default differs from that of the 5-fold grid by {} points in the mean. It is lower on {} of {}, significantly on {}, \
                 and significantly higher on {worse}.\n",
                mean.signed(),
                against.better,
                against.sets,
                against.clearly_better,
            );
        }
        let errors = self.errors();
        if let Some(means) = errors.means() {
            let mut order: Vec<(&str, f64)> = errors.methods.iter().copied().zip(means).collect();
            order.sort_by(|a, b| a.1.total_cmp(&b.1));
            let named: Vec<String> = (order.iter())
                .map(|(method, mean)| format!("{} {}", title(method), percent(*mean)))
                .collect();
            text += &format!(
                "- Mean error over {} tables, from the lowest on: {}.\n",
                errors.whole().len(),
                named.join(", ")
            );
        }
        let timed = self.timed();
        if !timed.is_empty() {
            let ratios: Vec<f64> = timed.iter().map(|(_, ours, svc)| svc / ours).collect();
            text += &format!(
                "- A fit takes a {} of the time of scikit-learn's grid search, on two threads each (geometric mean of {} tables).\n",
                fraction(geometric_mean(&ratios)),
                ratios.len()
            );
        }
        text += "\nMethods, which all see the same splits and only the training rows:\n\n\
             - grid: the Euclidean RBF SVM with sigma^2 in {4, 2, 1, 1/2, 1/4} d and C in {0.1, 1, 10, 100} by 5-fold cross-validation (`euclidean`)\n\
             - default: `svml` with nothing chosen, the weighted mean of the members below\n\
             - former: what the default was before, one form of the metric chosen by a rule; text as codes\n";
        for other in &OTHERS {
            text += &format!("- {}: {}\n", other.name, other.words);
        }
        text += "- SVC grid: the same grid with scikit-learn, columns standardised, text one-hot, missing values filled by the median or the most frequent\n\
             - forest: scikit-learn's random forest of 500 trees; boosting: its histogram gradient boosting; both with text as codes\n\
             - CatBoost: with its defaults, text as categories\n\n\
             Tables are split at random, 80 % to train on and 20 % to test on. Errors and differences are in percent.\n";
        text
    }

    fn seven_text(&self) -> String {
        format!(
            "\n## The paper's seven small sets\n\nMean error ± standard error, and the paired difference of the default to the grid: below zero the default is \
             better; bold is significant at the 5 % level. Splits have seeds from {} on.\n\n{}",
            self.first_seed,
            self.own_methods(
                &names_of_seven(),
                &[&[FORMER], &OTHERS.map(|other| other.name)[..]].concat()
            )
        )
    }

    fn own_suite_text(&self) -> String {
        let names = OTHERS.iter().map(|other| other.name).filter(|name| *name != PAPER);
        let others: Vec<&str> = std::iter::once(FORMER).chain(names).collect();
        format!(
            "\n## Further tables\n\nThe same on tables that the paper does not have, on as many splits as the number of rows allows.\n\n{}",
            self.own_methods(&names_of_suite(), &others)
        )
    }

    /// Our methods on all of their splits of some tables.
    fn own_methods(&self, names: &[&'static str], others: &[&'static str]) -> String {
        let mut text = String::new();
        let titles = [&["data", "splits", "grid", "default", "default - grid"], others];
        text += &head(&titles.concat());
        let mut differences = Vec::new();
        let mut sums: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for name in names.iter().copied() {
            let Some(both) = self.paired(name, DEFAULT, GRID) else { continue };
            let difference = both.difference();
            differences.push(difference);
            let mut cells = vec![name.to_owned(), both.splits.to_string()];
            for method in [GRID, DEFAULT].into_iter().chain(others.iter().copied()) {
                let of: Vec<f64> = self.all(name, method).iter().map(|m| m.error).collect();
                let mean = (!of.is_empty()).then(|| Mean::of(&of));
                cells.push(mean.map_or("-".to_owned(), Mean::plain));
                sums.entry(method).or_default().extend(mean.map(|mean| mean.mean));
                if method == DEFAULT {
                    cells.push(bold(difference, both.is_clear()));
                }
            }
            text += &line(cells.into_iter());
        }
        let mean = |method: &str| {
            let of = sums.get(method).filter(|of| of.len() == differences.len());
            of.and_then(|of| mean_of(of.iter().copied())).map_or("-".to_owned(), percent)
        };
        if let Some(over) = over_sets(&differences) {
            let difference = bold(over, over.is_significant());
            let first = ["mean".to_owned(), String::new(), mean(GRID), mean(DEFAULT), difference];
            text += &line(first.into_iter().chain(others.iter().map(|other| mean(other))));
        }
        text
    }

    fn suite_text<'r>(&'r self) -> String {
        let errors = self.errors();
        let mut text = format!(
            "\n## Other programs\n\nMean error on the splits that all methods were measured on: of the seven sets the first {PEER_SPLITS}, of the \
             further tables as many as the number of rows allows. The lowest is bold; 'best' counts on how many tables a method has it, alone or with others.\n\n"
        );
        text += &errors.text(&["data", "trained on", "splits"]);
        text += "\nThe default against each of the others: mean difference over the tables, on how many the default is better or worse, and in brackets \
            where that is significant at the 5 % level (Student's t over the splits; with one split never).\n\n";
        text += &head(&["against", "mean difference", "better", "worse"]);
        let shown: Vec<_> =
            tables().map(|(data, _)| (data, self.together(data, &errors.methods))).collect();
        for method in errors.methods.iter().filter(|method| **method != DEFAULT) {
            let pair = |(data, all): &(&'static str, BTreeMap<&str, Vec<&'r Measured>>)| {
                let (of, to) = (all.get(DEFAULT)?.clone(), all.get(method)?.clone());
                Some(Paired { data, splits: of.len(), of, to })
            };
            let pairs: Vec<Paired<'_>> = shown.iter().filter_map(pair).collect();
            let Some(mean) = mean_of(pairs.iter().map(|pair| pair.difference().mean)) else {
                continue;
            };
            let count = |below: bool| {
                let side = |pair: &&Paired<'_>| {
                    let mean = pair.difference().mean;
                    if below { mean < 0.0 } else { mean > 0.0 }
                };
                let clear = pairs.iter().filter(side).filter(|pair| pair.is_clear()).count();
                format!("{} ({clear})", pairs.iter().filter(side).count())
            };
            let mean = format!("{:+.2}", 100.0 * mean);
            text += &line([title(method).to_owned(), mean, count(true), count(false)].into_iter());
        }
        text
    }

    fn probabilities_text(&self) -> String {
        let first = ["data", "trained on", "splits"];
        format!(
            "\n## Probabilities\n\nLog loss: mean of -log p of the right class, natural logarithm, with p at least 1e-15.\n\n{}\n\
             Area under the ROC curve; of more than two classes the mean over the classes, each against the others. The largest is bold.\n\n{}\n\
             Calibration error in percent: how far the probability of the most probable class is from the share of rows in which it is right, in ten bins of \
             that probability, the test rows of all splits together. Few test rows alone make it a few percent.\n\n{}",
            self.log_loss().text(&first),
            self.auc().text(&first),
            self.calibration().text(&first)
        )
    }

    fn generated_text(&self) -> String {
        let mut text = format!(
            "\n## Generated data\n\n2 informative directions among 20, the class is the inside or the outside of a circle in them; {} rows to train on, {} to test on, \
             {DRAWS} draws. Aligned: the directions are columns. Rotated: they are hidden by a random rotation. Flipped: 5 % of the labels are wrong, so that \
             no error can be lower than 5 %. A model of low rank takes the place of the mean where it does far better on rows that it was not learned on.\n\n",
            GENERATED_ROWS.0, GENERATED_ROWS.1,
        );
        text +=
            &head(&["data", "grid", "default", "default / grid", "what the default is", "paper"]);
        for (name, ..) in GENERATED {
            let Some(both) = self.paired(name, DEFAULT, GRID) else { continue };
            let errors =
                |of: &[&Measured]| Mean::of(&of.iter().map(|m| m.error).collect::<Vec<_>>());
            let paper = self.all(name, PAPER);
            let cells = [
                name.to_owned(),
                errors(&both.to).plain(),
                errors(&both.of).plain(),
                format!("{:.2}", errors(&both.of).mean / errors(&both.to).mean),
                forms(&both.of),
                if paper.is_empty() { "-".to_owned() } else { errors(&paper).plain() },
            ];
            text += &line(cells.into_iter());
        }
        text
    }

    fn times_text(&self) -> String {
        let timed = self.timed();
        let mut text = "\n## Time\n\n".to_owned();
        if !timed.is_empty() {
            text += "Seconds of a fit, median of three in turns on one computer: the default with two threads, and scikit-learn's GridSearchCV of SVC over 20 settings \
                and 5 folds with `n_jobs=2`. Preparing the columns is part of the time, reading is not.\n\n";
            text += &head(&["data", "default", "scikit-learn's grid", "scikit-learn / default"]);
            for (data, ours, svc) in &timed {
                let ratio = format!("{:.1}", svc / ours);
                text +=
                    &line([(*data).to_owned(), seconds(*ours), seconds(*svc), ratio].into_iter());
            }
            let ratios: Vec<f64> = timed.iter().map(|(_, ours, svc)| svc / ours).collect();
            text += &format!("| geometric mean | | | {:.1} |\n\n", geometric_mean(&ratios));
        }
        let shares = self.shares_of_grid();
        let order = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
        if let (Some(least), Some(most)) =
            (shares.iter().min_by(order), shares.iter().max_by(order))
        {
            let all: Vec<f64> = shares.iter().map(|(_, share)| *share).collect();
            text += &format!(
                "Beside our own grid, in the run of all tables, the default takes {:.2} of the time in the geometric mean, from {:.2} ({}) to {:.2} ({}).\n",
                geometric_mean(&all),
                least.1,
                least.0,
                most.1,
                most.0
            );
        }
        for (whose, table) in
            [("ours", &self.ours), ("other programs", &self.peers), ("times", &self.times)]
        {
            for header in table.headers() {
                text += &format!(
                    "\n- {whose}: {}, {}; {}",
                    header.date, header.computer, header.versions
                );
            }
        }
        text + "\n"
    }

    fn limits(&self) -> String {
        format!(
            "\n## Limits\n\n\
             - The members and constants of the default were chosen with these tables in view, though on other splits. Means over these tables are \
             therefore somewhat in its favour; none of its rules knows a table by name.\n\
             - Tables of more than {LARGE} rows were trained on {} of them, with one split; tables of more than 3000 rows have three. Differences there are \
             no more than hints.\n\
             - Random splits of one table share rows, so that standard errors say how much the splits matter, not what another sample would give.\n\
             - Forest, boosting and CatBoost have their defaults, as ours has; with tuning they may do better. Forest and boosting get categories as \
             codes.\n\
             - The seven sets are read as in the paper, with text as codes, for ours too.\n\
             - The mean over tables weighs tables with large errors most.\n",
            self.most_rows
        )
    }
}

/// Names and rows of the tables, the paper's first.
fn tables() -> impl Iterator<Item = (&'static str, usize)> {
    let paper = small_sets().map(|set| (set.name, set.rows));
    paper.chain(SUITE.iter().map(|table| (table.name, table.rows)))
}

fn is_generated(data: &str) -> bool {
    GENERATED.iter().any(|(recipe, ..)| *recipe == data)
}

/// Mean over sets whose splits are independent.
fn over_sets(of: &[Mean]) -> Option<Mean> {
    let n = of.len() as f64;
    let mean = mean_of(of.iter().map(|mean| mean.mean))?;
    Some(Mean { mean, error: of.iter().map(|mean| mean.error.powi(2)).sum::<f64>().sqrt() / n })
}

/// What was measured of the probabilities, if that is so of all.
fn probabilities<'r>(of: &[&'r Measured]) -> Option<Vec<&'r Probabilities>> {
    of.iter().map(|measured| measured.probabilities.as_ref()).collect()
}

/// How often each form was the result, the most frequent first.
fn forms(of: &[&Measured]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    of.iter().for_each(|m| *counts.entry(&m.form).or_default() += 1);
    let mut counts: Vec<(usize, &str)> = counts.into_iter().map(|(f, n)| (n, f)).collect();
    counts.sort_by(|a, b| b.cmp(a));
    let share = |n: usize| (100.0 * n as f64 / of.len() as f64).round();
    let shares = counts.iter().map(|(n, form)| format!("{form} {} %", share(*n)));
    shares.collect::<Vec<_>>().join(", ")
}

/// One over a number, as people say it.
fn fraction(of: f64) -> String {
    const NAMES: [&str; 9] =
        ["half", "third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
    match of.round() as usize {
        n @ 2..=10 => NAMES[n - 2].to_owned(),
        _ => format!("share of {:.2}", 1.0 / of),
    }
}
