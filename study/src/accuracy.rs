//! The defaults against the Euclidean SVM with a 5-fold grid: jobs and report.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use svml::internals::folds::random_split;
use svml::internals::{UCI_SETS, UciSet};
use svml::{Dataset, Generator};

use crate::jobs::{Job, Measured, Results};
use crate::methods::{self, DEFAULT, GRID, Named, OTHERS, TRIED};
use crate::statistics::Mean;

/// The seven small sets of the paper.
fn small_sets() -> impl Iterator<Item = &'static UciSet> {
    UCI_SETS.iter().filter(|set| set.rows < 1000)
}

/// Seeds that the constants were chosen on.
const CHOSEN_ON: std::ops::Range<u64> = 1000..1200;
/// Those of them on which everything that was tried is shown.
const TRIED_ON: std::ops::Range<u64> = 1000..1040;
/// Seeds that nothing was chosen on.
const CHECKED_ON: std::ops::Range<u64> = 3000..3200;
/// Draws of generated data.
const DRAWS: std::ops::Range<u64> = 0..40;
/// Rows to train on and to test on.
const GENERATED_ROWS: (usize, usize) = (500, 4000);
/// Recipes: 2 informative directions among 20.
const GENERATED: [(&str, bool, f64); 4] = [
    ("aligned", false, 0.0),
    ("rotated", true, 0.0),
    ("aligned-flipped", false, 0.05),
    ("rotated-flipped", true, 0.05),
];

fn plan() -> Vec<Job> {
    let job = |data: &str, seed: u64, method: &str| Job {
        data: data.to_owned(),
        seed,
        method: method.to_owned(),
    };
    let mut plan = Vec::new();
    for seed in DRAWS {
        for (recipe, ..) in GENERATED {
            plan.extend([GRID, DEFAULT, "paper"].map(|method| job(recipe, seed, method)));
        }
    }
    for (seeds, others) in [(CHECKED_ON, &OTHERS[..]), (TRIED_ON, &TRIED[..])] {
        for seed in seeds {
            for set in small_sets() {
                plan.push(job(set.name, seed, GRID));
                plan.push(job(set.name, seed, DEFAULT));
                plan.extend(others.iter().map(|other| job(set.name, seed, other.name)));
            }
        }
    }
    plan
}

/// Training and test rows of a job.
fn rows(job: &Job, sets: &HashMap<&str, Dataset>) -> Result<(Dataset, Dataset), String> {
    if let Some(data) = sets.get(job.data.as_str()) {
        let (train, test) = random_split(data.rows(), job.seed);
        return Ok((data.select(&train), data.select(&test)));
    }
    let recipe = GENERATED.iter().find(|(name, ..)| *name == job.data);
    let (_, rotated, flipped) = recipe.ok_or_else(|| format!("no data are called {}", job.data))?;
    let draw = |rows: usize, seed: u64| {
        let generator = Generator {
            rows,
            informative: 2,
            noise: 18,
            rotated: *rotated,
            flipped: *flipped,
            rotation_seed: job.seed,
            seed,
            ..Generator::default()
        };
        generator.generate().map(|generated| generated.data).map_err(|e| e.to_string())
    };
    Ok((draw(GENERATED_ROWS.0, 2 * job.seed)?, draw(GENERATED_ROWS.1, 2 * job.seed + 1)?))
}

fn measure(job: &Job, sets: &HashMap<&str, Dataset>) -> Result<Measured, String> {
    let (train, test) = rows(job, sets)?;
    methods::measure(job, &train, &test)
}

/// Runs what is missing and writes the report.
pub fn run(data: &Path, results: &Path, out: &Path, report_only: bool) -> Result<(), String> {
    let mut results = Results::open(results)?;
    if !report_only {
        let mut sets = HashMap::new();
        for set in small_sets() {
            let read = set.read(&set.in_folder(data));
            sets.insert(set.name, read.map_err(|e| format!("{} ({}): {e}", set.name, set.file))?);
        }
        results.run(&plan(), |_| 1.0, |job| measure(job, &sets))?;
    }
    let text = report(&results)?;
    fs::write(out, text).map_err(|e| format!("{}: {e}", out.display()))?;
    print!("{}", aims(&results)?);
    Ok(())
}

/// The results of one method on one data set, seed after seed.
fn column<'r>(
    results: &'r Results,
    data: &str,
    seeds: std::ops::Range<u64>,
    method: &str,
) -> Result<Vec<&'r Measured>, String> {
    seeds
        .map(|seed| {
            let job = Job { data: data.to_owned(), seed, method: method.to_owned() };
            results.get(&job).ok_or_else(|| format!("no result for {data}, {seed}, {method}"))
        })
        .collect()
}

fn error(of: &[&Measured]) -> Mean {
    Mean::of(&of.iter().map(|m| m.error).collect::<Vec<_>>())
}

fn difference(of: &[&Measured], to: &[&Measured]) -> Mean {
    Mean::of(&of.iter().zip(to).map(|(a, b)| a.error - b.error).collect::<Vec<_>>())
}

fn seconds(of: &[&Measured]) -> f64 {
    of.iter().map(|m| m.seconds).sum::<f64>() / of.len() as f64
}

/// How often each form was chosen, the most frequent first.
fn forms(of: &[&Measured]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    of.iter().for_each(|m| *counts.entry(&m.form).or_default() += 1);
    let mut counts: Vec<(usize, &str)> = counts.into_iter().map(|(f, n)| (n, f)).collect();
    counts.sort_by(|a, b| b.cmp(a));
    let share = |n: usize| (100.0 * n as f64 / of.len() as f64).round();
    let shares = counts.iter().map(|(n, form)| format!("{form} {} %", share(*n)));
    shares.collect::<Vec<_>>().join(", ")
}

/// Mean over the sets of the paired difference of a method to the grid; splits of different sets are
/// independent.
fn over_sets(
    results: &Results,
    seeds: std::ops::Range<u64>,
    method: &str,
) -> Result<(Vec<Mean>, Mean), String> {
    let mut differences = Vec::new();
    for set in small_sets() {
        let grid = column(results, set.name, seeds.clone(), GRID)?;
        differences.push(difference(&column(results, set.name, seeds.clone(), method)?, &grid));
    }
    let n = differences.len() as f64;
    let mean = differences.iter().map(|d| d.mean).sum::<f64>() / n;
    let error = differences.iter().map(|d| d.error.powi(2)).sum::<f64>().sqrt() / n;
    Ok((differences, Mean { mean, error }))
}

/// Data whose times are compared, with their seeds.
fn timed() -> impl Iterator<Item = (&'static str, std::ops::Range<u64>)> {
    let generated = GENERATED.map(|(name, ..)| (name, DRAWS));
    small_sets().map(|set| (set.name, CHECKED_ON)).chain(generated)
}

/// What was aimed at with the defaults, and whether it is so: for the console.
fn aims(results: &Results) -> Result<String, String> {
    let (differences, mean) = over_sets(results, CHECKED_ON, DEFAULT)?;
    let worse: Vec<&str> = (small_sets().zip(&differences))
        .filter(|(_, d)| d.mean > d.error)
        .map(|(set, _)| set.name)
        .collect();
    let better = differences.iter().filter(|d| d.mean < 0.0 && d.is_significant()).count();
    let mut longer = Vec::new();
    for (name, seeds) in timed() {
        let of = |method| Ok::<_, String>(seconds(&column(results, name, seeds.clone(), method)?));
        if of(DEFAULT)? > of(GRID)? {
            longer.push(name);
        }
    }
    let on = |sets: &[&str]| match sets {
        [] => "on none".to_owned(),
        sets => format!("on {}", sets.join(", ")),
    };
    let aims = [
        (mean.mean <= -0.0045, format!("mean difference at most -0.45: {}", mean.signed())),
        (
            worse.is_empty(),
            format!(
                "on no set worse than the grid by more than one standard error: {}",
                on(&worse)
            ),
        ),
        (better >= 4, format!("significantly better on at least four sets: on {better}")),
        (longer.is_empty(), format!("on no data slower than the grid: {}", on(&longer))),
    ];
    let line = |(met, aim): &(bool, String)| {
        format!("- {}: {aim}\n", if *met { "met" } else { "not met" })
    };
    Ok("Aims\n".to_owned() + &aims.iter().map(line).collect::<String>())
}

fn report(results: &Results) -> Result<String, String> {
    let mut text = String::new();
    let failed = |_| "the report cannot be put together".to_owned();
    let names: Vec<&str> = small_sets().map(|set| set.name).collect();
    let head = |first: &str, last: &str| {
        let rule = "---|".repeat(names.len() + 2);
        format!("| {first} | {} | {last} |\n|{rule}\n", names.join(" | "))
    };
    let line = |name: &str, cells: Vec<String>, last: String| {
        format!("| {name} | {} | {last} |\n", cells.join(" | "))
    };
    let count = CHECKED_ON.end - CHECKED_ON.start;
    write!(
        text,
        "# Accuracy of the defaults\n\n\
         Made by `cargo run --release -p study -- accuracy` from `study/results/accuracy.jsonl`; not typed.\n\n\
         The seven small data sets of the paper, {count} random splits of 80 % to train on and 20 % to test on \
         (seeds {} to {}). All methods see the same splits, and only the training rows. The grid is the Euclidean RBF \
         SVM with sigma^2 in {{4, 2, 1, 1/2, 1/4}} d and C in {{0.1, 1, 10, 100}} by 5-fold cross-validation. \
         The constants in the rule of the defaults were chosen on other splits (seeds {} to {}). \
         Errors and differences are in percent, with standard errors.\n\n## Errors\n\n",
        CHECKED_ON.start,
        CHECKED_ON.end - 1,
        CHOSEN_ON.start,
        CHOSEN_ON.end - 1,
    )
    .map_err(failed)?;
    text += &head("method", "mean");
    for method in [GRID, DEFAULT].into_iter().chain(OTHERS.iter().map(|other| other.name)) {
        let mut means = Vec::new();
        for name in &names {
            means.push(error(&column(results, name, CHECKED_ON, method)?));
        }
        let mean = means.iter().map(|m| 100.0 * m.mean).sum::<f64>() / means.len() as f64;
        text += &line(method, means.iter().map(|m| m.plain()).collect(), format!("{mean:.2}"));
    }
    text += "\n## Paired differences to the grid\n\nBelow zero is better than the grid; bold is significant (two standard errors).\n\n";
    text += &head("method", "mean");
    let bold = |d: &Mean| {
        if d.is_significant() { format!("**{}**", d.signed()) } else { d.signed() }
    };
    for method in [DEFAULT].into_iter().chain(OTHERS.iter().map(|other| other.name)) {
        let (differences, mean) = over_sets(results, CHECKED_ON, method)?;
        text += &line(method, differences.iter().map(bold).collect(), bold(&mean));
    }
    text += "\n";
    for Named { name, words, .. } in &OTHERS {
        text += &format!("- {name}: {words}\n");
    }
    text += "\n## Forms chosen\n\n| set | forms |\n|---|---|\n";
    for name in &names {
        let chosen = forms(&column(results, name, CHECKED_ON, DEFAULT)?);
        text += &format!("| {name} | {chosen} |\n");
    }
    text += "\n## Time\n\nMean seconds of a fit, one fit after the other, on all threads. Jobs that the results file has are not measured again: \
        grid and default were measured in one run, times of other methods, here and below, may be of an earlier one.\n\n\
             | data | grid | default | default / grid | paper |\n|---|---|---|---|---|\n";
    let mut longer = Vec::new();
    for (name, seeds) in timed() {
        let of = |method| Ok::<_, String>(seconds(&column(results, name, seeds.clone(), method)?));
        let (grid, default, paper) = (of(GRID)?, of(DEFAULT)?, of("paper")?);
        text += &format!(
            "| {name} | {grid:.4} | {default:.4} | {:.2} | {paper:.4} |\n",
            default / grid
        );
        if default > grid {
            longer.push(format!("{name} ({:.2} times)", default / grid));
        }
    }
    text += &match longer.is_empty() {
        true => "\nThe default takes no longer than the grid.\n".to_owned(),
        false => format!("\nThe default takes longer than the grid on {}.\n", longer.join(", ")),
    };
    text += &format!(
        "\n## Generated data\n\n2 informative directions among 20, the class is the inside or the outside of a circle in \
         them; {} rows to train on, {} to test on, {} draws. Aligned: the directions are columns. Rotated: they are hidden \
         by a random rotation. Flipped: 5 % of the labels are wrong, so that no error can be lower than 5 %.\n\n\
         | data | grid | default | default / grid | forms of the default | paper |\n|---|---|---|---|---|---|\n",
        GENERATED_ROWS.0,
        GENERATED_ROWS.1,
        DRAWS.end - DRAWS.start
    );
    for (name, ..) in GENERATED {
        let grid = error(&column(results, name, DRAWS, GRID)?);
        let default = column(results, name, DRAWS, DEFAULT)?;
        let paper = error(&column(results, name, DRAWS, "paper")?);
        text += &format!(
            "| {name} | {} | {} | {:.2} | {} | {} |\n",
            grid.plain(),
            error(&default).plain(),
            error(&default).mean / grid.mean,
            forms(&default),
            paper.plain()
        );
    }
    text += &format!(
        "\n## What was tried\n\nOn some of the splits that the constants were chosen on (seeds {} to {}): paired differences to the grid, \
         and time as a share of the grid's.\n\n",
        TRIED_ON.start,
        TRIED_ON.end - 1
    );
    text += &head("method", "mean | time");
    text = text.replace("| mean | time |\n|---|", "| mean | time |\n|---|---|");
    let tried = TRIED.iter().map(|Named { name, words, .. }| (*name, *words));
    for (method, words) in [(DEFAULT, "the default")].into_iter().chain(tried) {
        let (differences, mean) = over_sets(results, TRIED_ON, method)?;
        let (mut spent, mut grid) = (0.0, 0.0);
        for name in &names {
            spent += seconds(&column(results, name, TRIED_ON, method)?);
            grid += seconds(&column(results, name, TRIED_ON, GRID)?);
        }
        let last = format!("{} | {:.2}", bold(&mean), spent / grid);
        text += &line(words, differences.iter().map(bold).collect(), last);
    }
    Ok(text)
}
