//! The figures: those of the results, those of several splits of credit, and the maps of one of them.

use std::fs;
use std::path::Path;

use svml::internals::loss::Loss;
use svml::internals::{UCI_SETS, write_atomically};
use svml::{Dataset, Model, Surrogate};
use svml_plot::{
    Curve, CurvePanel, DotPanel, Dots, Draw, Lines, Map, Mark, Picture, Plane, PlanePath,
};

use crate::jobs::Table;

use super::cells::{Cell, row};
use super::credit::{self, Credit, Split, svml_of_rank, two_components};
use super::plan::{FIRST_SEED, METHODS, REFERENCE, SKLEARN};

fn write(folder: &Path, name: &str, picture: &Picture) -> Result<(), String> {
    let path = folder.join(format!("{name}.svg"));
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(folder).map_err(failed)?;
    write_atomically(&path, picture.svg().as_bytes()).map_err(|e| e.to_string())
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

/// Figures 2 and 5, from what was measured on the splits of credit; without any they stay as they are.
pub fn of_credit(credit: &Credit, folder: &Path) -> Result<(), String> {
    let Some(first) = credit.splits.first() else { return Ok(()) };
    let count = credit.splits.len();
    let note = format!(
        "Credit, mean of {count} splits; plain descent, {} steps of {} times the gradient",
        credit::STEPS,
        credit::RATE
    );
    let title = "Loss and errors, step by step";
    write(folder, "figure-2-descent", &descent(credit).draw(title, &note))?;
    let note = format!("Credit, {count} splits; every path starts at the same point");
    let title = "C and width: the grid, and the paths of SVML-Sphere";
    write(folder, "figure-5-plane", &plane(credit, first).draw(title, &note))
}

/// Figure 4, of the first split of credit.
pub fn maps(data: &Path, folder: &Path) -> Result<(), String> {
    let [train, test] = credit::parts(data, FIRST_SEED)?;
    draw_maps(&train, &test, folder)
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

/// Means over the splits, step by step.
fn descent(credit: &Credit) -> Lines {
    let steps = credit.splits.first().map_or(&[][..], |split| &split.plain.step);
    let curve = |name: &str, times: f64, of: &dyn Fn(&Split) -> &Vec<f64>| Curve {
        name: name.to_owned(),
        points: (steps.iter().enumerate())
            .map(|(k, &step)| (step as f64, times * credit.mean(|split| of(split)[k]).mean))
            .collect(),
    };
    let panel = |y_label: &str, percent_y: bool, curves: Vec<Curve>| CurvePanel {
        x_label: "step".to_owned(),
        y_label: y_label.to_owned(),
        whole_x: true,
        percent_y,
        curves,
        mark: None,
    };
    let errors = vec![
        curve("training", 100.0, &|split| &split.plain.training),
        curve("validation", 100.0, &|split| &split.plain.validation),
        curve("test", 100.0, &|split| &split.plain.test),
    ];
    let loss = vec![curve("loss", 1.0, &|split| &split.plain.loss)];
    Lines { panels: vec![panel("loss", false, loss), panel("error", true, errors)] }
}

fn draw_maps(train: &Dataset, test: &Dataset, folder: &Path) -> Result<(), String> {
    let failed = |e: svml::Error| format!("credit: {e}");
    let labels: Vec<String> = train.y().iter().map(|&c| train.classes()[c].clone()).collect();
    let error = |model: &Model| -> Result<String, String> {
        Ok(format!("test error {:.1} %", 100.0 * model.error_rate(test).map_err(failed)?))
    };
    let usual = two_components(train, FIRST_SEED).map_err(failed)?;
    let plane = svml_of_rank(2, train, FIRST_SEED).map_err(failed)?;
    for (name, model, words) in [
        ("figure-4-svml", &plane, "Credit by SVML of rank 2"),
        ("figure-4-pca", &usual, "Credit by two principal components and a grid"),
    ] {
        let map = Map::new(model, train.x(), Some(&labels)).map_err(failed)?;
        write(folder, name, &map.draw(&format!("{words}: {}", error(model)?)))?;
    }
    let space = svml_of_rank(3, train, FIRST_SEED).map_err(failed)?;
    for [a, b] in [[0, 1], [0, 2], [1, 2]] {
        let map = Map::along(&space, train.x(), Some(&labels), [a, b]).map_err(failed)?;
        let (a, b) = (a + 1, b + 1);
        let title = format!("Credit by SVML of rank 3, directions {a} and {b}: {}", error(&space)?);
        write(folder, &format!("figure-4-rank-3-{a}{b}"), &map.draw(&title))?;
    }
    Ok(())
}

fn plane(credit: &Credit, first: &Split) -> Plane {
    let (x, y) = (first.grid.costs.clone(), first.grid.widths.clone());
    let cell = |w: usize, c: usize| 100.0 * credit.mean(|split| split.grid.errors[w][c]).mean;
    let path = |split: &Split| PlanePath {
        points: split.sphere.cost.iter().copied().zip(split.sphere.width.iter().copied()).collect(),
        kept: split.sphere.kept,
    };
    Plane {
        x_label: "C".to_owned(),
        y_label: "sigma\u{b2} / d".to_owned(),
        cells: (0..y.len()).map(|w| (0..x.len()).map(|c| cell(w, c)).collect()).collect(),
        x,
        y,
        chosen: credit.splits.iter().map(|split| split.grid.chosen).collect(),
        paths: credit.splits.iter().map(path).collect(),
        path_name: "SVML-Sphere".to_owned(),
    }
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
