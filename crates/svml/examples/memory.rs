//! Trains on arrays in memory and predicts the labels of new rows.
//!
//! `cargo run --release --example memory`
#![allow(clippy::print_stdout)]

use svml::{Dataset, Matrix, Model, Svml};

fn main() -> svml::Result<()> {
    // A flower is a row: length and width of its petals, in centimetres.
    let rows = [
        [1.4, 0.2],
        [1.3, 0.2],
        [1.5, 0.4],
        [1.6, 0.2],
        [1.7, 0.4],
        [4.7, 1.4],
        [4.5, 1.5],
        [4.0, 1.3],
        [4.6, 1.5],
        [3.3, 1.0],
    ];
    let labels = [["setosa"; 5], ["versicolor"; 5]].concat();
    let data = Dataset::new(Matrix::from_rows(&rows)?, &labels)?
        .with_names(vec!["petal length".to_owned(), "petal width".to_owned()])?;

    let model = Model::fit(&data, Svml::default())?;
    println!("{model}");

    let new = Matrix::from_rows(&[[1.5, 0.3], [4.2, 1.3]])?;
    let probabilities = model.probabilities(&new)?;
    for (row, label) in model.predict_labels(&new)?.into_iter().enumerate() {
        println!(
            "{:?} is {label}, with probabilities {:.2?}",
            new.row(row),
            probabilities.row(row)
        );
    }
    Ok(())
}
