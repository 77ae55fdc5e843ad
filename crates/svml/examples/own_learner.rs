//! A metric learner of one's own, followed by an SVM and by nearest neighbours.
//!
//! `cargo run --release --example own_learner`
#![allow(clippy::print_stdout)]

use svml::learners::{Learned, Learner, Sample};
use svml::{Form, Generator, Method, Metric, Model, Run};

/// Weighs each feature by the covariance of its square with the first class; mean squares are 1.
#[derive(Debug)]
struct Squares;

impl Learner for Squares {
    fn name(&self) -> &str {
        "squares"
    }

    fn learn(&self, sample: &Sample<'_>, _: &mut Run<'_>) -> svml::Result<Learned> {
        let sign = |class: usize| if class == 0 { 1.0 } else { -1.0 };
        let weight = |column: usize| {
            let rows = sample.x().col(column).zip(sample.class());
            rows.map(|(x, class)| (x * x - 1.0) * sign(*class)).sum::<f64>().abs()
        };
        let weights = (0..sample.features()).map(weight).collect();
        Ok(Learned::at_once(Metric::new(Form::Diagonal, sample.features(), weights)?))
    }
}

fn main() -> svml::Result<()> {
    let made = Generator { rotated: false, ..Generator::default() };
    let (train, test) = (made.generate()?.data, Generator { seed: 1, ..made }.generate()?.data);
    let path = std::env::temp_dir().join("own_learner.svml");
    for method in [Method::svm_after(Squares), Method::neighbours_after(Squares, 5)] {
        Model::fit(&train, &method)?.save(&path)?;
        let model = Model::load(&path)?; // Any program that has svml can use the file.
        println!("{method}: {:.1} % error\n{model}", 100.0 * model.error_rate(&test)?);
    }
    Ok(())
}
