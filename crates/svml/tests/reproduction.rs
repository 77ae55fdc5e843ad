//! SVML with a full metric on two of the paper's data sets, against an independent measurement.
//!
//! The files are read from the folder named by SVML_DATA, else from ../shared/data beside the
//! repository; without them the test says so and passes.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

use std::path::PathBuf;

use chacha20::ChaCha8Rng;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rayon::prelude::*;
use svml::data::Missing;
use svml::{Dataset, Model, ReadOptions, Svml};

const SPLITS: u64 = 20;

fn folder() -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("SVML_DATA").map_or_else(beside, PathBuf::from);
    folder.join("cmc/cmc.data").is_file().then_some(folder)
}

/// Mean test error in percent over random 80/20 splits, and its standard error.
fn mean_error(data: &Dataset, params: &Svml) -> (f64, f64) {
    let errors: Vec<f64> = (0..SPLITS)
        .into_par_iter()
        .map(|seed| {
            let mut rows: Vec<usize> = (0..data.rows()).collect();
            rows.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
            let (train, test) = rows.split_at(data.rows() * 4 / 5);
            let model = Model::fit(&data.select(train), params).unwrap();
            assert!(model.report().residual <= 1e-8);
            100.0 * model.error_rate(&data.select(test)).unwrap()
        })
        .collect();
    let n = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / n;
    let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Expected: errors of an independent prototype (float64, 100 random 80/20 splits, standard error
/// about 0.3): full metric, hold-out split, sigmoid with a = 5, C from 1, relative lambda 0.01.
#[test]
fn cmc_and_mammo_are_within_two_standard_errors() {
    let Some(folder) = folder() else {
        eprintln!(
            "skipped: no data; fetch the paper's data sets and set SVML_DATA to their folder"
        );
        return;
    };
    let read = |file: &str| {
        let options = ReadOptions { missing: Missing::Drop, ..Default::default() };
        Dataset::from_path(folder.join(file), &options).unwrap()
    };
    let cmc = read("cmc/cmc.data").keep_classes(&["1", "2"]).unwrap();
    let mammo = read("mammo/mammographic_masses.data");
    let params = Svml { lambda: 0.01, initial_cost: 1.0, ..Svml::paper() };
    for (name, data, expected) in [("cmc", cmc, 26.55), ("mammo", mammo, 16.83)] {
        let (mean, error) = mean_error(&data, &params);
        eprintln!("{name}: {mean:.2} % +- {error:.2}, expected {expected} % +- 0.3");
        let allowed = 2.0 * (error * error + 0.3 * 0.3).sqrt();
        assert!(
            (mean - expected).abs() <= allowed,
            "{name}: {mean} is not {expected} +- {allowed}"
        );
    }
}
