//! `svml demo`: data with a known answer, a fit, a comparison with the usual way, and pictures.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use svml::internals::subspace_found;
use svml::{Dataset, Generator, GridSearch, Model, Svml};
use svml_plot::{Draw, Map, MetricMatrix, Picture, Relevance, Trace};

use crate::args::Demo;
use crate::console::{self, Console};
use crate::failure::{Failure, Outcome};
use crate::files;

/// Rows to learn from: so many that a few directions are found far better than by chance, whatever the seed.
const ROWS: usize = 1000;
/// Rows that neither method sees while learning.
const TEST_ROWS: usize = 2000;

/// Runs the command.
pub fn run(args: &Demo, console: &Console) -> Outcome {
    let out = &args.out;
    std::fs::create_dir_all(out)
        .map_err(|e| Failure::io(out, &e, "choose another folder with --out"))?;
    let file = |name: &str| Path::new(out).join(name).to_string_lossy().into_owned();
    files::check_writable(&file("model.svml"))?;
    let failed = |e| Failure::with_file("demo", e);
    let generator = Generator { rows: ROWS, ..Generator::default() };
    let generated = generator.generate().map_err(failed)?;
    let train = &generated.data;
    let test = Generator { rows: TEST_ROWS, seed: 1, ..generator }.generate().map_err(failed)?.data;
    console::print(&format!(
        "The data: {} rows with {} features, generated so that the answer is known. The class of a row says\n\
         whether it lies inside or outside a circle in 2 hidden directions; the other 8 directions are noise,\n\
         and all 10 are mixed together, so no single feature reveals the class. 5 % of the labels are wrong\n\
         on purpose, so no method can have a lower error.\n\n",
        train.rows(),
        train.columns()
    ))?;
    console.note("usual: 5-fold cross-validation over 20 settings of width and C ...");
    let started = Instant::now();
    let grid = Model::fit(train, GridSearch::default()).map_err(failed)?;
    let grid_seconds = started.elapsed().as_secs_f64();
    console.note(
        "svml: several kinds of SVMs that learn their own metric and C, compared on held-out rows ...",
    );
    let started = Instant::now();
    let model = Model::fit(train, Svml::default()).map_err(failed)?;
    let seconds = started.elapsed().as_secs_f64();

    let mut text = format!(
        "{:32} {:>10}  {:>17}  {:>8}\n",
        "method", "test error", "hidden directions", "seconds"
    );
    let learned = match model.members() {
        [only] => format!("svml: learned metric, {}", only.metric().form()),
        members => format!("svml: mean of {} SVMs", members.len()),
    };
    for (name, model, seconds) in [
        ("usual: width and C from a grid", &grid, grid_seconds),
        (learned.as_str(), &model, seconds),
    ] {
        let found = subspace_found(model.metric(), &model.scaler().scale, &generated.directions);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:32} {:8.1} %  {:9.0} % found  {seconds:8.3}",
            100.0 * model.error_rate(&test).map_err(failed)?,
            100.0 * found
        );
    }
    let _ = write!(
        text,
        "\nThe test error is measured on {TEST_ROWS} further rows. The usual SVM treats all directions alike, so it\n\
         finds the 2 hidden ones no better than chance, 20 %. The learned metric stretches space along them\n\
         and shrinks it along the noise: that is why its error is lower.\n"
    );
    if let Some(honest) = model.report().honest {
        let _ = writeln!(
            text,
            "From the {ROWS} training rows alone, svml estimated an error of {:.1} % +- {:.1} % by cross-fitting: it\n\
             learned from each half of the rows and classified the other half. Half of the rows teach less than\n\
             all of them, so this estimate tends to be a little too high.",
            100.0 * honest.error,
            100.0 * honest.standard_error
        );
    }
    text.push('\n');
    console::print(&text)?;

    files::write(&file("train.csv"), csv(train).as_bytes())?;
    files::write(&file("test.csv"), csv(&test).as_bytes())?;
    let bytes = model.to_bytes().map_err(failed)?;
    files::write(&file("model.svml"), &bytes)?;
    let labels: Vec<String> = train.y().iter().map(|&c| train.classes()[c].clone()).collect();
    // Along the directions that count most in each metric. In that of the usual SVM all count alike, so that these are two
    // features; the plane in which its decision changes most would show what it has learned, not what its distances are.
    let map = |model: &Model, title: &str| {
        Map::along(model, train.x(), Some(&labels), [0, 1])
            .map(|map| map.draw(title))
            .map_err(failed)
    };
    let learned = map(&model, "The hidden circle, found by the learned metric")?;
    let usual = map(&grid, "The same rows as seen by the distances of the usual SVM")?;
    let matrix = MetricMatrix::new(&model).draw("The learned metric M = L'L");
    let relevance = Relevance::new(&model).draw("How much each feature matters");
    let trace = Trace::new(&model).map(|trace| trace.draw("Learning, step by step"));
    let picture = |name: &str, picture: &Picture| files::write_picture(picture, false, &file(name));
    picture("map.svg", &learned)?;
    picture("map-usual.svg", &usual)?;
    picture("metric.svg", &matrix)?;
    picture("relevance.svg", &relevance)?;
    if let Some(trace) = trace {
        picture("trace.svg", &trace)?;
    }
    let folder = out.display();
    console::print(&format!(
        "Written to {folder}: map.svg and map-usual.svg (compare them), metric.svg, relevance.svg,\n\
         trace.svg, train.csv, test.csv and model.svml. Continue with\n\
         \x20 svml show {folder}/model.svml\n\
         \x20 svml evaluate {folder}/model.svml {folder}/test.csv\n\
         \x20 svml train YOUR_TABLE.csv -o your.svml\n"
    ))
}

/// Rows and classes as a table.
fn csv(data: &Dataset) -> String {
    let mut text = data.schema().encoded_names().join(",") + ",class\n";
    for (row, &class) in data.x().iter_rows().zip(data.y()) {
        let cells: Vec<String> = row.iter().map(f64::to_string).collect();
        let _ = writeln!(text, "{},{}", cells.join(","), data.classes()[class]);
    }
    text
}
