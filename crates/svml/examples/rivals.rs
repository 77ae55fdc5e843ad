//! Times the learners that the paper compares with, on its data sets, and says what they reached, one line of
//! JSON each:
//!
//!     cargo run --release --example rivals -- DATA_FOLDER METHOD.. : NAME..
//!
//! METHOD is a learner as text, such as `nca:init=identity`; NAME is a folder of the data, such as credit.
//! METHOD projection=FILE runs the projections of ITML on pairs and bounds from a file.
//! `benches/rivals.py` compares with other programs.
#![allow(clippy::print_stdout, missing_docs)]

use std::path::Path;
use std::time::Instant;

use svml::data::{Missing, Scaler};
use svml::internals::Projection;
use svml::learners::Sample;
use svml::{AnyLearner, Dataset, Matrix, Method, ReadOptions, Run};

/// Runs of each, of which the median time is shown; one where a run takes long.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, rest) = arguments.split_first().ok_or("DATA_FOLDER METHOD.. : NAME..")?;
    let mut parts = rest.split(|argument| argument == ":");
    let (methods, names) = (parts.next().unwrap_or(&[]), parts.next().unwrap_or(&[]));
    for name in names {
        let data = read(Path::new(folder), name)?;
        let weight = vec![1.0; data.rows()];
        let scaler = Scaler::fit(data.x(), &weight, &data.schema().encoded_kinds());
        let x = scaler.apply(data.x());
        for method in methods {
            if let Some(file) = method.strip_prefix("projection=") {
                project(name, Path::new(file))?;
                continue;
            }
            let Method::Metric(learner) = format!("{method}+none").parse()? else {
                return Err(format!("{method} is not a learner").into());
            };
            let sample = Sample::new(&x, data.y(), &weight, data.classes().len())?;
            run(name, &learner, &sample)?;
        }
    }
    Ok(())
}

fn run(
    name: &str,
    learner: &AnyLearner,
    sample: &Sample<'_>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut times = Vec::new();
    let learned = loop {
        let started = Instant::now();
        let learned = learner.learn(sample, &mut Run::new())?;
        times.push(started.elapsed().as_secs_f64());
        if times.len() == RUNS || times[0] > 5.0 {
            break learned;
        }
    };
    times.sort_by(f64::total_cmp);
    let last = learned.trace.last();
    let result = serde_json::json!({
        "data": name,
        "method": learner.name(),
        "rows": sample.rows(),
        "features": sample.features(),
        "loss": last.map(|step| step.loss),
        "gap": last.and_then(|step| step.gap),
        "steps": learned.trace.len().saturating_sub(1),
        "stop": learned.stop,
        "seconds": times[times.len() / 2],
    });
    println!("{result}");
    Ok(())
}

#[derive(serde::Deserialize)]
struct Pairs {
    similar: Vec<Vec<f64>>,
    dissimilar: Vec<Vec<f64>>,
    bounds: (f64, f64),
    rounds: usize,
}

/// A given number of rounds from the identity with gamma = 1.
fn project(name: &str, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let pairs: Pairs = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let d = pairs.similar.first().map_or(0, Vec::len);
    let prior = Matrix::from_fn(d, d, |i, j| if i == j { 1.0 } else { 0.0 });
    let (mut times, mut m) = (Vec::new(), Matrix::default());
    for _ in 0..RUNS {
        let started = Instant::now();
        let Pairs { similar, dissimilar, bounds, .. } = &pairs;
        let mut state = Projection::new(prior.clone(), similar, dissimilar, *bounds, 1.0);
        (0..pairs.rounds).for_each(|_| {
            state.round();
        });
        times.push(started.elapsed().as_secs_f64());
        m = state.m;
    }
    times.sort_by(f64::total_cmp);
    let result = serde_json::json!({
        "data": name,
        "method": "projection",
        "steps": pairs.rounds,
        "seconds": times[times.len() / 2],
        "m": m.as_slice(),
    });
    println!("{result}");
    Ok(())
}

/// The tasks of the paper.
fn read(folder: &Path, name: &str) -> Result<Dataset, Box<dyn std::error::Error>> {
    let path = std::fs::read_dir(folder.join(name))?.next().ok_or("an empty folder")??.path();
    let options = ReadOptions { missing: Missing::Drop, ..Default::default() };
    let data = Dataset::from_path(path, &options)?;
    Ok(match name {
        "cmc" => data.keep_classes(&["1", "2"])?,
        "page" => {
            data.group_classes(|class| if class == "1" { "text" } else { "other" }.to_owned())
        }
        // Four fifths of the rows, as the paper trains on.
        "gamma" => data.select(&(0..data.rows()).filter(|i| i % 5 != 4).collect::<Vec<_>>()),
        _ => data,
    })
}
