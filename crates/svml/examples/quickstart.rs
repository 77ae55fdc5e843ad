//! Trains on generated data whose answer is known and shows what was learned.
//!
//! `cargo run --release --example quickstart`

use std::time::Instant;

use svml::data::generate::subspace_found;
use svml::{Generator, Grid, Model, Params};

#[allow(clippy::print_stdout)] // An example is there to print.
fn main() -> svml::Result<()> {
    let generator = Generator::default();
    let train = generator.generate()?;
    let test = Generator { rows: 5000, seed: 1, ..generator.clone() }.generate()?.data;
    println!(
        "{} rows, {} features: {} rotated directions decide the class, {} are correlated noise;",
        train.data.rows(),
        train.data.columns(),
        generator.informative,
        generator.noise
    );
    println!(
        "{:.0} % of the labels are flipped, which no method can beat.\n",
        100.0 * generator.flipped
    );

    let started = Instant::now();
    let grid = Model::fit_euclidean(&train.data, &Grid::default())?;
    let grid_seconds = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let model = Model::fit(&train.data, &Params::default())?;
    let seconds = started.elapsed().as_secs_f64();

    println!("method                                test error   true subspace found   seconds");
    for (name, model, seconds) in [
        ("RBF machine, 5-fold grid of 20", &grid, grid_seconds),
        ("SVML, metric and C learned", &model, seconds),
    ] {
        let found = subspace_found(model.metric(), &model.scaler().scale, &train.directions);
        println!(
            "{name:36} {:8.1} % {:19.0} % {seconds:12.3}",
            100.0 * model.error(&test)?,
            100.0 * found,
        );
    }

    let report = model.report();
    println!("\nstep    loss   training  validation  hold-out      C    support vectors");
    for step in &report.trace {
        println!(
            "{:4} {:8.4} {:8.1} % {:8.1} % {:8.1} % {:8.3} {:10}{}",
            step.iteration,
            step.loss,
            100.0 * step.train_error,
            100.0 * step.valid_error,
            100.0 * step.hold_error.unwrap_or(0.0),
            step.cost,
            step.support,
            if step.iteration == report.best { " <- kept" } else { "" }
        );
    }
    if let Some(stop) = report.stop {
        println!("It ended because {stop}.");
    }
    Ok(())
}
