//! Trains on generated data whose answer is known and shows what was learned.
//!
//! `cargo run --release --example quickstart`
#![allow(clippy::print_stdout)] // An example is there to print.

use std::time::Instant;

use svml::{Generator, Method, Model};

fn main() -> svml::Result<()> {
    let generator = Generator::default();
    let train = generator.generate()?.data;
    let test = Generator { rows: 5000, seed: 1, ..generator.clone() }.generate()?.data;
    println!(
        "{} rows, {} features: {} rotated directions decide the class, {} are correlated noise;",
        train.rows(),
        train.columns(),
        generator.informative,
        generator.noise
    );
    println!(
        "{:.0} % of the labels are flipped, which no method can beat.\n",
        100.0 * generator.flipped
    );

    println!("method      test error   seconds");
    let compared = |method: Method| -> svml::Result<Model> {
        let started = Instant::now();
        let model = Model::fit(&train, &method)?;
        let seconds = started.elapsed().as_secs_f64();
        let error = 100.0 * model.error_rate(&test)?;
        println!("{:11} {error:8.1} % {seconds:9.3}", method.to_string());
        Ok(model)
    };
    compared("euclidean".parse()?)?; // The usual SVM: width and C by cross-validation on a grid.
    let model = compared("svml".parse()?)?;

    println!("\n{model}");
    println!("step  form           loss   training  validation        C    support vectors");
    let report = model.report();
    for step in &report.trace {
        // Other learners than SVML know the loss alone.
        let Some(svml) = step.svml else { continue };
        println!(
            "{:4}  {:8} {:10.4} {:8.1} % {:8.1} % {:10.3} {:10}{}",
            step.iteration,
            svml.form.map_or(String::new(), |form| form.to_string()),
            step.loss,
            100.0 * svml.train_error,
            100.0 * svml.valid_error,
            svml.cost,
            svml.support_vectors,
            if step.iteration == report.best { "  kept" } else { "" }
        );
    }
    Ok(())
}
