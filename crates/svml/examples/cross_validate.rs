//! Compares two methods by cross-validation, on the same folds.
//!
//! `cargo run --release --example cross_validate [TABLE.csv]`
#![allow(clippy::print_stdout)]

use svml::{Dataset, Generator, Method, ReadOptions, cross_validate};

fn main() -> svml::Result<()> {
    // The class is in the last column of the table; without a table the rows are made up.
    let data = match std::env::args().nth(1) {
        Some(path) => Dataset::from_path(path, &ReadOptions::default())?,
        None => Generator::default().generate()?.data,
    };
    for text in ["svml", "euclidean"] {
        let method: Method = text.parse()?;
        let found = cross_validate(&data, &method, 5)?;
        println!("{text}: {found}");
    }
    Ok(())
}
