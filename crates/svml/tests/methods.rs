//! Methods: what follows a learner (an SVM from a grid, nearest neighbours, nothing), and cross-validation.
#![allow(clippy::unwrap_used, missing_docs)]

use svml::learners::{Init, Itml, Lmnn, Nca, Pca};
use svml::{
    AnyLearner, Dataset, Error, Generator, GridSearch, Matrix, Method, Model, Svml, cross_validate,
};

fn all() -> [AnyLearner; 5] {
    let line = Nca { rank: Some(1), init: Init::Identity, ..Nca::default() };
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
        let error = |method: Method| Model::fit(&train, method).unwrap().error_rate(&test).unwrap();
        let plain = error(Method::neighbours(3));
        for learner in [AnyLearner::from(Nca::default()), Lmnn::default().into()] {
            let learned = error(Method::neighbours_after(learner.clone(), 3));
            assert!(learned < plain - 0.01, "{learner:?}: {learned}, Euclidean {plain}");
        }
    }
}

#[test]
fn an_svm_after_any_learner_is_kept_and_read_back() {
    let base = Generator { rows: 160, classes: 3, ..Generator::default() };
    let train = base.generate().unwrap().data;
    let test = Generator { rows: 300, seed: 1, ..base }.generate().unwrap().data;
    let grid = GridSearch { folds: 1, ..GridSearch::default() };
    for learner in all() {
        let method = Method::SvmAfter { learner: learner.clone(), grid: grid.clone() };
        let model = Model::fit(&train, &method).unwrap();
        let report = model.report();
        assert_eq!(report.method, method);
        assert!(report.stop.is_some() && report.residual <= 1e-8, "{learner:?}: {report:?}");
        assert_eq!(report.trace.is_empty(), learner.name() == "pca");
        // One direction need not tell three classes apart.
        let line = model.metric().rank() == 1;
        assert!(line || model.error_rate(&test).unwrap() < 0.5, "{learner:?}");
        let bytes = model.to_bytes().unwrap();
        let loaded = Model::from_bytes(&bytes).unwrap();
        assert_eq!(loaded.decision(test.x()).unwrap(), model.decision(test.x()).unwrap());
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
        assert_eq!(loaded.report().method, report.method);
    }
}

/// Neither the size that a learner gives L nor the units of the columns matter to the SVM after it.
#[test]
fn an_svm_after_principal_components_of_all_directions_is_the_euclidean_one() {
    let data = Generator { rows: 150, noise: 2, ..Generator::default() }.generate().unwrap().data;
    let after = Model::fit(&data, Method::svm_after(Pca { rank: 4 })).unwrap();
    let euclidean = Model::fit(&data, GridSearch::default()).unwrap();
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
    for learner in all() {
        let model = Model::fit(&data, Method::metric(learner.clone())).unwrap();
        assert_eq!(model.report().method, Method::Metric(learner.clone()));
        assert!(!model.is_classifier() && model.support_rows().is_empty());
        for refused in [model.predict(data.x()).err(), model.probabilities(data.x()).err()] {
            assert!(matches!(refused, Some(Error::NotAClassifier)), "{learner:?}");
        }
        // The same L as before an SVM, up to the scale that the SVM has chosen.
        let after = Model::fit(&data, Method::svm_after(learner.clone())).unwrap();
        let (alone, scaled) = (model.metric().values(), after.metric().values());
        let scale = scaled[0] / alone[0];
        let same = |(a, b): (&f64, &f64)| (a * scale - b).abs() <= 1e-12 * b.abs();
        assert!(alone.iter().zip(scaled).all(same), "{learner:?}");
        // z = A (x - mean).
        let (a, z, mean) = (
            model.raw_components().unwrap(),
            model.transform(data.x()).unwrap(),
            &model.scaler().mean,
        );
        for i in 0..data.rows() {
            for r in 0..a.rows() {
                let centred = data.x().row(i).iter().zip(mean).map(|(x, mean)| x - mean);
                let expected: f64 = a.row(r).iter().zip(centred).map(|(a, x)| a * x).sum();
                assert!((expected - z[(i, r)]).abs() < 1e-9, "{learner:?}");
            }
        }
        let bytes = model.to_bytes().unwrap();
        assert_eq!(bytes[8], 4, "a metric alone needs a later version than SVMs");
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
    for learner in all() {
        let a = Model::fit(&weighted, Method::metric(learner.clone())).unwrap();
        let b = Model::fit(&repeated, Method::metric(learner.clone())).unwrap();
        assert_eq!(a.metric(), b.metric(), "{learner:?}");
    }
}

#[test]
fn nearest_neighbours_are_kept_read_back_and_count_a_weight_as_repetition() {
    for classes in [2, 3] {
        let base = Generator { rows: 150, classes, ..Generator::default() };
        let train = base.generate().unwrap().data;
        let test = Generator { rows: 300, seed: 1, ..base }.generate().unwrap().data;
        for text in ["knn:k=1", "knn:k=4", "nca:rank=2+knn:k=5"] {
            let method: Method = text.parse().unwrap();
            let model = Model::fit(&train, &method).unwrap();
            assert!(model.is_classifier() && model.cost().is_none());
            assert_eq!(model.support_rows().len(), train.rows());
            let (h, p) =
                (model.decision(test.x()).unwrap(), model.probabilities(test.x()).unwrap());
            let predicted = model.predict(test.x()).unwrap();
            for (i, &class) in predicted.iter().enumerate() {
                assert!((p.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12);
                let most = p.row(i).iter().copied().fold(0.0, f64::max);
                assert_eq!(p.row(i).iter().position(|p| *p == most), Some(class), "{text}");
            }
            assert!(h.as_slice().iter().all(|h| h.is_finite()));
            let bytes = model.to_bytes().unwrap();
            assert_eq!(bytes[8], 5);
            let loaded = Model::from_bytes(&bytes).unwrap();
            assert!(loaded.to_bytes().unwrap() == bytes);
            assert_eq!(loaded.decision(test.x()).unwrap(), h);
            assert_eq!(loaded.predict_labels(test.x()).unwrap().len(), 300);
            assert!(matches!(model.to_libsvm(false), Err(Error::NotForLibsvm)));

            let times: Vec<usize> = (0..train.rows()).map(|i| 1 + i % 3).collect();
            let repeated: Vec<usize> =
                (0..train.rows()).rev().flat_map(|i| vec![i; times[i]]).collect();
            let weights = times.iter().map(|&t| t as f64).collect();
            let weighted = Model::fit(&train.clone().with_weights(weights).unwrap(), &method);
            let repeated = Model::fit(&train.select(&repeated), &method);
            let (a, b) = (weighted.unwrap(), repeated.unwrap());
            assert_eq!(a.predict(test.x()).unwrap(), b.predict(test.x()).unwrap(), "{text}");
        }
    }
    let data = Generator { rows: 20, ..Generator::default() }.generate().unwrap().data;
    assert!(Model::fit(&data, Method::neighbours(0)).is_err());
}

#[test]
fn cross_validation_predicts_every_row_once_and_adds_up() {
    let data = Generator { rows: 120, ..Generator::default() }.generate().unwrap().data;
    let weights: Vec<f64> = (0..data.rows()).map(|i| 1.0 + (i % 2) as f64).collect();
    let data = data.with_weights(weights.clone()).unwrap();
    let found = cross_validate(&data, Svml::default(), 4).unwrap();
    assert_eq!((found.fold_error_rates.len(), found.predicted.len()), (4, 120));
    let wrong: f64 =
        (0..120).filter(|&i| found.predicted[i] != data.y()[i]).map(|i| weights[i]).sum();
    assert!((found.error_rate - wrong / weights.iter().sum::<f64>()).abs() < 1e-12);
    assert_eq!(found, cross_validate(&data, Method::default(), 4).unwrap());
    for folds in [0, 1, 121] {
        assert!(cross_validate(&data, GridSearch::default(), folds).is_err());
    }
}

/// Models are equal if all of their parts are; each of them may differ alone.
#[test]
fn models_that_differ_in_one_part() {
    let data = Generator { rows: 60, noise: 1, ..Generator::default() }.generate().unwrap().data;
    let fit =
        |data: &Dataset, text: &str| Model::fit(data, text.parse::<Method>().unwrap()).unwrap();
    let model = fit(&data, "knn:k=3");
    assert_eq!(model, fit(&data, "knn:k=3"));
    // Other names of the classes, other units of the columns, another metric, another vote.
    let renamed = data.clone().with_class_names(vec!["no".into(), "yes".into()]).unwrap();
    assert_ne!(model, fit(&renamed, "knn:k=3"));
    let labels: Vec<&str> = data.y().iter().map(|&y| data.classes()[y].as_str()).collect();
    let doubled = Matrix::from_fn(60, data.columns(), |i, k| 2.0 * data.x()[(i, k)]);
    assert_ne!(model, fit(&Dataset::new(doubled, &labels).unwrap(), "knn:k=3"));
    assert_ne!(model, fit(&data, "pca:rank=2+knn:k=3"));
    assert_ne!(model, fit(&data, "knn:k=5"));
    let fewer = data.x().clone();
    let fewer = Matrix::from_fn(60, 1, |i, k| fewer[(i, k)]);
    assert_ne!(model, fit(&Dataset::new(fewer, &labels).unwrap(), "knn:k=3"));
}
