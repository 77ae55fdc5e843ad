//! Rows that belong together are never on both sides of a fold, so that errors are those on new groups.
#![allow(clippy::unwrap_used, missing_docs)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::data::ReadOptions;
use svml::{Criterion, Dataset, Form, GridSearch, Matrix, Method, Model, Svml, cross_validate};

/// Rows of a group are near-copies of each other with the label of the group. That label depends on the first column a
/// little; the rest of a group is known only by its other rows.
fn visits(groups: usize, rows: usize, seed: u64) -> (Matrix, Vec<&'static str>, Vec<String>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut x, mut labels, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for group in 0..groups {
        let centre: Vec<f64> = (0..6).map(|_| rng.random_range(-1.0..1.0)).collect();
        let ill = rng.random_range(-1.0..1.0) < 1.2 * centre[0];
        for _ in 0..rows {
            x.push(centre.iter().map(|c| c + rng.random_range(-0.05..0.05)).collect::<Vec<f64>>());
            labels.push(if ill { "ill" } else { "well" });
            names.push(format!("patient {group}"));
        }
    }
    (Matrix::from_rows(&x).unwrap(), labels, names)
}

fn tables() -> (Dataset, Dataset, Dataset) {
    let (x, labels, names) = visits(120, 4, 1);
    let alone = Dataset::new(x, &labels).unwrap();
    let grouped = alone.clone().with_groups(&names).unwrap();
    let (x, labels, _) = visits(400, 3, 2);
    (alone, grouped, Dataset::new(x, &labels).unwrap())
}

/// Without groups each row is known by its near-copies, and the error far too good; with them it is that on new groups.
#[test]
fn the_honest_error_is_that_on_new_groups() {
    let (alone, grouped, fresh) = tables();
    for params in [
        Svml::default(),
        Svml { form: Form::Diagonal.into(), ..Svml::default() },
        Svml { criterion: Criterion::HoldOut, ..Svml::default() },
    ] {
        let without = Model::fit(&alone, &params).unwrap();
        let with = Model::fit(&grouped, &params).unwrap();
        let told = |model: &Model| model.report().honest.unwrap();
        let truth = with.error_rate(&fresh).unwrap();
        assert!(truth > 0.2, "{truth}");
        assert!(told(&without).error < 0.1, "{:?}", told(&without));
        let honest = told(&with);
        assert!((honest.error - truth).abs() < 0.12, "{honest:?} where {truth} is true");
        // 120 groups tell as much as 120 rows, not as 480.
        let of_rows = (honest.error * (1.0 - honest.error) / 480.0).sqrt();
        assert!((1.5..2.2).contains(&(honest.standard_error / of_rows)), "{honest:?}");
    }
}

#[test]
fn other_methods_and_cross_validation_keep_groups_together() {
    let (alone, grouped, fresh) = tables();
    for method in [Method::from(GridSearch::default()), "nca+knn:k=3".parse().unwrap()] {
        let without = cross_validate(&alone, &method, 5).unwrap().error_rate;
        let with = cross_validate(&grouped, &method, 5).unwrap().error_rate;
        let truth = Model::fit(&alone, &method).unwrap().error_rate(&fresh).unwrap();
        assert!(without < 0.1, "{without}");
        assert!((with - truth).abs() < 0.15, "{with} where {truth} is true");
    }
    assert!(cross_validate(&grouped, Svml::default(), 121).is_err());
}

/// Probabilities that rest on rows of the same group are sure where nothing is known.
#[test]
fn probabilities_hold_for_new_groups() {
    let (alone, grouped, fresh) = tables();
    let labels: Vec<&str> = fresh.y().iter().map(|&c| fresh.classes()[c].as_str()).collect();
    for method in [
        Method::from(Svml::default()),
        Svml { cross_fit: false, ..Svml::default() }.into(),
        GridSearch::default().into(),
    ] {
        let loss = |data: &Dataset| {
            let model = Model::fit(data, &method).unwrap();
            model.measure(fresh.x(), &labels).unwrap().log_loss.unwrap()
        };
        let (without, with) = (loss(&alone), loss(&grouped));
        assert!(with < 0.75 && with < without, "{with} and {without} without groups");
    }
}

/// The names of groups and the order of the rows do not matter; identical rows of two groups stay apart.
#[test]
fn the_order_of_rows_does_not_matter() {
    let (x, labels, names) = visits(12, 4, 3);
    let n = x.rows();
    let fit = |order: &[usize]| {
        let labels: Vec<&str> = order.iter().map(|&i| labels[i]).collect();
        let names: Vec<&String> = order.iter().map(|&i| &names[i]).collect();
        let data = Dataset::new(x.select_rows(order), &labels).unwrap();
        Model::fit(&data.with_groups(&names).unwrap(), Svml::default()).unwrap()
    };
    let forward = fit(&(0..n).collect::<Vec<_>>());
    let back = fit(&(0..n).rev().collect::<Vec<_>>());
    assert_eq!(forward.decision(&x).unwrap(), back.decision(&x).unwrap());
    assert_eq!(forward.report().honest, back.report().honest);

    let twice: Vec<usize> = (0..n).chain(0..n).collect();
    let labels: Vec<&str> = twice.iter().map(|&i| labels[i]).collect();
    let names: Vec<String> =
        twice.iter().enumerate().map(|(k, &i)| format!("{}{}", names[i], k / n)).collect();
    let data = Dataset::new(x.select_rows(&twice), &labels).unwrap();
    let model = Model::fit(&data.with_groups(&names).unwrap(), Svml::default()).unwrap();
    // Every group has a copy now, so that rows are known by it.
    assert!(model.report().honest.unwrap().error < 0.1);
}

#[test]
fn what_groups_cannot_do_is_refused() {
    let (x, labels, names) = visits(10, 3, 4);
    let data = Dataset::new(x, &labels).unwrap();
    assert!(data.clone().with_groups(&names[1..]).is_err());
    let one = data.clone().with_groups(&[7; 30]).unwrap();
    let error = Model::fit(&one, Svml::default()).unwrap_err().to_string();
    assert!(error.contains("at least two groups"), "{error}");
    let grouped = data.with_groups(&names).unwrap();
    let loo = Svml { criterion: Criterion::LeaveOneOut, ..Svml::default() };
    let error = Model::fit(&grouped, loo).unwrap_err().to_string();
    assert!(error.contains("k_fold or hold_out"), "{error}");
    // A class that is in one group only can be learned, but not be measured.
    let labels: Vec<&str> =
        names.iter().map(|n| if n == "patient 3" { "a" } else { "b" }).collect();
    let rare = Dataset::new(grouped.x().clone(), &labels).unwrap().with_groups(&names).unwrap();
    let model = Model::fit(&rare, Svml::default()).unwrap();
    let warned =
        model.report().warnings.iter().any(|w| w.contains("class a occurs in a single group"));
    assert!(warned, "{:?}", model.report().warnings);
}

#[test]
fn a_column_of_a_table_has_the_groups() {
    let (x, labels, names) = visits(8, 4, 5);
    let mut text = "patient,a,b,class\n".to_owned();
    for (i, row) in x.iter_rows().enumerate() {
        text.push_str(&format!("{},{},{},{}\n", names[i], row[0], row[1], labels[i]));
    }
    let read = |groups: Option<&str>| {
        let options = ReadOptions { groups: groups.map(str::to_owned), ..ReadOptions::default() };
        Dataset::from_csv(text.as_bytes(), &options)
    };
    for column in ["patient", "1"] {
        let data = read(Some(column)).unwrap();
        assert_eq!(data.group_column(), Some("patient"));
        assert_eq!(data.schema().encoded_names(), ["a", "b"]);
        assert_eq!(data.groups().unwrap()[..5], [0, 0, 0, 0, 1]);
        let model = Model::fit(&data, Svml::default()).unwrap();
        assert!(!model.report().warnings.iter().any(|w| w.contains("patient")));
        // New rows may have the column or not.
        for new in ["patient,a,b\nx,0.1,0.2\n", "a,b\n0.1,0.2\n"] {
            let rows = model.schema().read_csv(new.as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(rows.x.row(0), [0.1, 0.2]);
        }
    }
    assert_eq!(read(None).unwrap().groups(), None);
    for (column, words) in [("class", "other than the target column"), ("nobody", "nobody")] {
        let error = read(Some(column)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let gap = text.replacen("patient 2", "", 1);
    let options = ReadOptions {
        groups: Some("patient".to_owned()),
        missing: svml::data::Missing::Impute,
        ..ReadOptions::default()
    };
    let error = Dataset::from_csv(gap.as_bytes(), &options).unwrap_err().to_string();
    assert!(error.contains("patient"), "{error}");
    let options = ReadOptions { format: None, ..options };
    let error = Dataset::from_libsvm("1 1:2\n-1 1:3\n".as_bytes(), &options).unwrap_err();
    assert!(error.to_string().contains("CSV"), "{error}");
}

/// Where there are only classes and groups, nothing is left to learn from; with a column besides them there is.
#[test]
fn groups_are_no_column_to_learn_from() {
    let options = ReadOptions { groups: Some("who".to_owned()), ..ReadOptions::default() };
    let read = |text: &str| Dataset::from_csv(text.as_bytes(), &options);
    let error = read("who,class\na,x\na,y\nb,x\nb,y\n").unwrap_err().to_string();
    assert!(error.contains("apart from the classes and the groups"), "{error}");
    let data = read("who,size,class\na,1.5,x\na,2,y\nb,3,x\nb,1,y\n").unwrap();
    assert_eq!(data.schema().encoded_names(), ["size"]);
    // A column that is left out is another reason, and what to do about it is said.
    let names: String = (0..40).map(|i| format!("g{},n{i},{}\n", i % 4, i % 2)).collect();
    let error = read(&format!("who,name,class\n{names}")).unwrap_err().to_string();
    assert!(error.contains("name") && !error.contains("apart from the classes"), "{error}");
}
