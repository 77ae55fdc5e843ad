//! The figures: those of the results, and those of one split of credit.

use std::fs;
use std::path::Path;

use svml::internals::folds::random_split;
use svml::internals::grid_search::grid_search;
use svml::internals::loss::Loss;
use svml::internals::{UCI_SETS, UciSet, Watch};
use svml::{Dataset, Form, GridSearch, Method, Model, Surrogate, Svml};
use svml_plot::{Curve, CurvePanel, DotPanel, Dots, Draw, Lines, Map, Mark, Picture, Plane};

use crate::jobs::Table;

use super::cells::{Cell, row};
use super::descent::{Path as Descent, Rows, Seen, path, plain};
use super::plan::{FIRST_SEED, METHODS, REFERENCE, SKLEARN};

/// Step of the plain descent, and how many.
const RATE: f64 = 0.5;
const STEPS: usize = 400;

fn write(folder: &Path, name: &str, picture: &Picture) -> Result<(), String> {
    let path = folder.join(format!("{name}.svg"));
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(folder).map_err(failed)?;
    fs::write(&path, picture.svg()).map_err(failed)
}

/// Figures 1, 3 and 6, which need no data.
pub fn of_results(table: &Table, folder: &Path) -> Result<(), String> {
    let note = "The larger a, the closer to the zero-one loss";
    write(
        folder,
        "figure-1-surrogate",
        &surrogate().draw("The surrogate s_a(z) = 1/(1 + exp(a z))", note),
    )?;
    let note =
        "Mean of all splits; metric, cross-validation and the last SVM, all threads together";
    write(folder, "figure-3-times", &times(table).draw("Seconds of a fit", note))?;
    let title = "Paired differences to the Euclidean SVM with 5 folds";
    let note = "In points of percent, with 95 % intervals; left of the line is better";
    write(folder, "figure-6-differences", &differences(table).draw(title, note))
}

/// Figures 2, 4 and 5, of the first split of credit.
pub fn of_credit(data: &Path, folder: &Path) -> Result<(), String> {
    let failed = |e: svml::Error| format!("credit: {e}");
    let set = UciSet::named("credit").map_err(failed)?;
    let all = set.read(&set.in_folder(data)).map_err(failed)?;
    let (train, test) = random_split(all.rows(), FIRST_SEED);
    let (train, test) = (all.select(&train), all.select(&test));
    let rows = Rows::new(&train, &test, Svml::paper().seed);

    let seen = plain(&rows, &Svml::paper(), RATE, STEPS).map_err(failed)?;
    let note = format!(
        "Plain descent on credit, {STEPS} steps of {RATE} times the gradient; the kept one is best on the rows for early stopping"
    );
    write(
        folder,
        "figure-2-descent",
        &descent(&seen).draw("Loss and errors, step by step", &note),
    )?;

    maps(&train, &test, folder)?;

    let plane = plane(&rows).map_err(failed)?;
    let steps = plane.path.len() - 1;
    let note = format!("Credit. The grid trains 100 SVMs; the path has {steps} steps");
    let title = "C and width: the grid, and the path of SVML-Sphere";
    write(folder, "figure-5-plane", &plane.draw(title, &note))
}

fn surrogate() -> Lines {
    let along = || (0..=240).map(|k| f64::from(k) / 60.0 - 2.0);
    let curve = |a: f64| {
        let loss = Loss { surrogate: Surrogate::Sigmoid, steepness: a };
        let points = along().map(|z| (z, loss.value_and_slope(z).0)).collect();
        Curve { name: format!("a = {a}"), points }
    };
    let mut curves = [1.0, 2.0, 5.0, 20.0].map(curve).to_vec();
    let step = [(-2.0, 1.0), (0.0, 1.0), (0.0, 0.0), (2.0, 0.0)].to_vec();
    curves.push(Curve { name: "zero-one loss".to_owned(), points: step });
    let panel = CurvePanel {
        x_label: "margin z = y h(x)".to_owned(),
        y_label: "s_a(z)".to_owned(),
        curves,
        ..CurvePanel::default()
    };
    Lines { panels: vec![panel] }
}

fn descent(Descent { steps, kept }: &Descent) -> Lines {
    let curve = |name: &str, value: &dyn Fn(&Seen) -> f64| Curve {
        name: name.to_owned(),
        points: steps.iter().enumerate().map(|(k, seen)| (k as f64, value(seen))).collect(),
    };
    let error = |part: usize| move |seen: &Seen| 100.0 * seen.errors[part];
    let panel = |y_label: &str, percent_y: bool, curves: Vec<Curve>| CurvePanel {
        x_label: "step".to_owned(),
        y_label: y_label.to_owned(),
        whole_x: true,
        percent_y,
        curves,
        mark: Some((*kept as f64, "kept".to_owned())),
    };
    let errors = vec![
        curve("training", &error(0)),
        curve("validation", &error(1)),
        curve("test", &error(2)),
    ];
    let loss = vec![curve("loss", &|seen| seen.loss)];
    Lines { panels: vec![panel("loss", false, loss), panel("error", true, errors)] }
}

fn maps(train: &Dataset, test: &Dataset, folder: &Path) -> Result<(), String> {
    let failed = |e: svml::Error| format!("credit: {e}");
    let labels: Vec<String> = train.y().iter().map(|&c| train.classes()[c].clone()).collect();
    let svml =
        |rank: usize| Model::fit(train, Svml { form: Form::Rank(rank).into(), ..Svml::paper() });
    let error = |model: &Model| -> Result<String, String> {
        Ok(format!("test error {:.1} %", 100.0 * model.error_rate(test).map_err(failed)?))
    };
    let usual: Method = "pca:rank=2".parse().map_err(failed)?;
    let usual = Model::fit(train, usual).map_err(failed)?;
    let plane = svml(2).map_err(failed)?;
    for (name, model, words) in [
        ("figure-4-svml", &plane, "Credit by SVML of rank 2"),
        ("figure-4-pca", &usual, "Credit by two principal components and a grid"),
    ] {
        let map = Map::new(model, train.x(), Some(&labels)).map_err(failed)?;
        write(folder, name, &map.draw(&format!("{words}: {}", error(model)?)))?;
    }
    let space = svml(3).map_err(failed)?;
    for [a, b] in [[0, 1], [0, 2], [1, 2]] {
        let map = Map::along(&space, train.x(), Some(&labels), [a, b]).map_err(failed)?;
        let (a, b) = (a + 1, b + 1);
        let title = format!("Credit by SVML of rank 3, directions {a} and {b}: {}", error(&space)?);
        write(folder, &format!("figure-4-rank-3-{a}{b}"), &map.draw(&title))?;
    }
    Ok(())
}

fn plane(rows: &Rows) -> svml::Result<Plane> {
    let sample = rows.sample()?;
    let d = sample.features() as f64;
    let grid = GridSearch::default();
    let selected = grid_search(&sample, &grid, &Watch::default())?;
    let relative_width = |inverse: f64| (inverse.powi(2) * d).recip();
    let (mut widths, mut costs) = (grid.widths, grid.costs);
    widths.sort_by(f64::total_cmp);
    costs.sort_by(f64::total_cmp);
    // The library has the widest first.
    let cells: Vec<Vec<f64>> = (0..widths.len())
        .rev()
        .map(|w| (0..costs.len()).map(|c| 100.0 * selected.errors[(w, c)]).collect())
        .collect();
    let nearest = |values: &[f64], value: f64| {
        let distance = |k: &usize| (values[*k] / value).ln().abs();
        (0..values.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
    };
    let width = relative_width(selected.metric.values()[0]);
    let Descent { steps, kept } = path(rows, Form::Sphere, &Svml::paper())?;
    Ok(Plane {
        x_label: "C".to_owned(),
        y_label: "sigma\u{b2} / d".to_owned(),
        chosen: (nearest(&costs, selected.cost), nearest(&widths, width)),
        x: costs,
        y: widths,
        cells,
        kept,
        path: steps.iter().map(|s| (s.cost, relative_width(s.metric.values()[0]))).collect(),
        path_name: "SVML-Sphere".to_owned(),
    })
}

fn times(table: &Table) -> Dots {
    let methods = METHODS.iter().map(|m| (m.name, m.title));
    let methods: Vec<(&str, &str)> = methods.chain([(SKLEARN, "scikit-learn, 5-fold")]).collect();
    let rows = methods.iter().map(|(name, title)| (*title, row(table, name)));
    // Methods that were not run have no line.
    let rows: Vec<(&str, Vec<Cell<'_>>)> =
        rows.filter(|(_, cells)| cells.iter().any(|cell| cell.count() > 0)).collect();
    let mut marks = Vec::new();
    for (name, (_, cells)) in rows.iter().enumerate() {
        for (series, cell) in cells.iter().enumerate() {
            marks.extend(cell.seconds().map(|value| Mark { name, series, value, interval: None }));
        }
    }
    Dots {
        panels: vec![DotPanel { title: String::new(), marks }],
        names: rows.iter().map(|(title, _)| (*title).to_owned()).collect(),
        series: UCI_SETS.map(|set| set.name.to_owned()).to_vec(),
        columns: 1,
        label: "processor seconds".to_owned(),
        logarithmic: true,
        reference: None,
    }
}

fn differences(table: &Table) -> Dots {
    let methods: Vec<_> = METHODS.iter().filter(|m| m.name != REFERENCE).collect();
    let reference = row(table, REFERENCE);
    let rows: Vec<_> = methods.iter().map(|m| row(table, m.name)).collect();
    let panels = UCI_SETS.iter().enumerate().map(|(set, facts)| {
        let mark = |(name, row): (usize, &Vec<Cell<'_>>)| {
            let found = row[set].minus(&reference[set])?;
            let (value, half) = (100.0 * found.mean.mean, 100.0 * found.half_width());
            Some(Mark { name, series: 0, value, interval: Some((value - half, value + half)) })
        };
        let marks: Vec<Mark> = rows.iter().enumerate().filter_map(mark).collect();
        DotPanel { title: facts.name.to_owned(), marks }
    });
    Dots {
        panels: panels.filter(|panel| !panel.marks.is_empty()).collect(),
        names: methods.iter().map(|m| m.title.to_owned()).collect(),
        series: vec!["difference".to_owned()],
        columns: 3,
        label: "error less that of the Euclidean SVM with 5 folds, in points of percent".to_owned(),
        logarithmic: false,
        reference: Some(0.0),
    }
}
