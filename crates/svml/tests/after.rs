//! What follows a learner: the grid-searched machine, and nearest neighbours.
#![allow(clippy::unwrap_used, missing_docs)]

use svml::learn::{Initial, Itml, Lmnn, Nca, Pca};
use svml::model::Method;
use svml::neighbours::Neighbours;
use svml::{Error, Generator, Grid, Model, Rival};

fn all() -> [Rival; 5] {
    let line = Nca { rank: Some(1), initial: Initial::Identity, ..Nca::default() };
    [
        Pca { rank: 1 }.into(),
        Nca::default().into(),
        line.into(),
        Lmnn::default().into(),
        Itml::default().into(),
    ]
}

#[test]
fn neighbours_err_less_after_nca_and_lmnn() {
    for classes in [2, 4] {
        let base = Generator { rows: 400, classes, ..Generator::default() };
        let train = base.generate().unwrap().data;
        let test = Generator { rows: 1000, seed: 1, ..base }.generate().unwrap().data;
        let error = |learner: Option<&Rival>| {
            Neighbours::fit(&train, learner, 3).unwrap().error(&test).unwrap()
        };
        let plain = error(None);
        for learner in [Rival::from(Nca::default()), Lmnn::default().into()] {
            let learned = error(Some(&learner));
            assert!(learned < plain - 0.01, "{learner:?}: {learned}, Euclidean {plain}");
        }
    }
}

#[test]
fn a_machine_after_any_learner_is_kept_and_read_back() {
    let base = Generator { rows: 160, classes: 3, ..Generator::default() };
    let train = base.generate().unwrap().data;
    let test = Generator { rows: 300, seed: 1, ..base }.generate().unwrap().data;
    let grid = Grid { folds: 1, ..Grid::default() };
    for rival in all() {
        let model = Model::fit_after(&train, rival.clone(), &grid).unwrap();
        let report = model.report();
        assert_eq!(report.method, Method::After { learner: rival.clone(), grid: grid.clone() });
        assert!(report.stop.is_some() && report.residual <= 1e-8, "{rival:?}: {report:?}");
        assert_eq!(report.learning.is_empty(), matches!(rival, Rival::Pca(_)));
        // One direction need not tell three classes apart.
        let line = model.metric().rank() == 1;
        assert!(line || model.error(&test).unwrap() < 0.5, "{rival:?}");
        let bytes = model.to_bytes().unwrap();
        let loaded = Model::from_bytes(&bytes).unwrap();
        assert_eq!(loaded.decision(test.x()).unwrap(), model.decision(test.x()).unwrap());
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
        assert_eq!(loaded.report().method, report.method);
    }
}

/// Neither the size that a learner gives L nor the units of the columns matter to the machine after it.
#[test]
fn a_machine_after_principal_components_of_all_directions_is_the_euclidean_one() {
    let data = Generator { rows: 150, noise: 2, ..Generator::default() }.generate().unwrap().data;
    let after = Model::fit_after(&data, Pca { rank: 4 }, &Grid::default()).unwrap();
    let euclidean = Model::fit_euclidean(&data, &Grid::default()).unwrap();
    assert_eq!(after.cost(), euclidean.cost());
    let (a, b) = (after.metric().mahalanobis(), euclidean.metric().mahalanobis());
    for (a, b) in a.as_slice().iter().zip(b.as_slice()) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
}

#[test]
fn a_metric_alone_maps_as_the_learner_says_and_is_kept() {
    let base = Generator { rows: 120, classes: 3, ..Generator::default() };
    let data = base.generate().unwrap().data;
    for rival in all() {
        let model = Model::fit_metric(&data, rival.clone()).unwrap();
        assert_eq!(model.report().method, Method::Metric(rival.clone()));
        assert!(!model.has_machine() && model.support_rows().is_empty());
        for refused in [model.predict(data.x()).err(), model.probabilities(data.x()).err()] {
            assert!(matches!(refused, Some(Error::NoMachine)), "{rival:?}");
        }
        // The same L as before a machine, up to the scale that the machine has chosen.
        let after = Model::fit_after(&data, rival.clone(), &Grid::default()).unwrap();
        let (alone, scaled) = (model.metric().values(), after.metric().values());
        let scale = scaled[0] / alone[0];
        let same = |(a, b): (&f64, &f64)| (a * scale - b).abs() <= 1e-12 * b.abs();
        assert!(alone.iter().zip(scaled).all(same), "{rival:?}");
        // z = A (x - mean).
        let (a, z, mean) =
            (model.components(), model.transform(data.x()).unwrap(), &model.scaler().mean);
        for i in 0..data.rows() {
            for r in 0..a.rows() {
                let centred = data.x().row(i).iter().zip(mean).map(|(x, mean)| x - mean);
                let expected: f64 = a.row(r).iter().zip(centred).map(|(a, x)| a * x).sum();
                assert!((expected - z[(i, r)]).abs() < 1e-9, "{rival:?}");
            }
        }
        let bytes = model.to_bytes().unwrap();
        assert_eq!(bytes[8], 4, "only a metric alone needs the latest version");
        assert_eq!(Model::from_bytes(&bytes).unwrap().to_bytes().unwrap(), bytes);
    }
}

#[test]
fn a_metric_alone_counts_a_weight_as_repetition_in_any_order_of_rows() {
    let data = Generator { rows: 90, classes: 3, ..Generator::default() }.generate().unwrap().data;
    let times: Vec<usize> = (0..data.rows()).map(|i| i % 4).collect();
    let weighted = data.clone().with_weights(times.iter().map(|&t| t as f64).collect()).unwrap();
    let mut repeated: Vec<usize> = (0..data.rows()).flat_map(|i| vec![i; times[i]]).collect();
    repeated.reverse();
    let repeated = data.select(&repeated);
    for rival in all() {
        let a = Model::fit_metric(&weighted, rival.clone()).unwrap();
        let b = Model::fit_metric(&repeated, rival.clone()).unwrap();
        assert_eq!(a.metric(), b.metric(), "{rival:?}");
    }
}
