//! Contributions of columns: against the definition, by finite differences of decision values integrated along the way.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use svml::data::{Categories, Missing};
use svml::{Dataset, Error, Form, Generator, Kernel, Matrix, Method, Model, ReadOptions, Svml};

fn data(rows: usize) -> Dataset {
    Generator { rows, noise: 2, ..Generator::default() }.generate().unwrap().data
}

/// Every kernel with every form that it allows, and a mean of several.
fn models(data: &Dataset) -> Vec<(String, Model)> {
    let forms = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)];
    let kernels = [Kernel::Gaussian, Kernel::Exponential, Kernel::Laplacian];
    let mut models = Vec::new();
    for kernel in kernels {
        for form in forms.into_iter().filter(|form| kernel.allows(*form)) {
            let svml = Svml { form: form.into(), kernel, max_iterations: 5, ..Svml::default() };
            models.push((format!("{kernel} {form}"), Model::fit(data, svml).unwrap()));
        }
    }
    models.push(("mean".to_owned(), Model::fit(data, Svml::default()).unwrap()));
    models
}

/// Gradients by central differences at the middles of many short pieces, times the way.
fn by_definition(model: &Model, from: &[f64], to: &[f64], pieces: usize) -> Vec<f64> {
    let d = from.len();
    let scale = &model.scaler().scale;
    let mut points = Vec::new();
    for piece in 0..pieces {
        let t = (piece as f64 + 0.5) / pieces as f64;
        let at: Vec<f64> = from.iter().zip(to).map(|(a, b)| a + t * (b - a)).collect();
        for k in 0..d {
            for sign in [1.0, -1.0] {
                let mut moved = at.clone();
                moved[k] += sign * 1e-6 * scale[k];
                points.push(moved);
            }
        }
    }
    let h = model.decision(&Matrix::from_rows(&points).unwrap()).unwrap();
    (0..d)
        .map(|k| {
            let slopes = (0..pieces).map(|piece| {
                let at = 2 * (piece * d + k);
                (h[(at, 0)] - h[(at + 1, 0)]) / (2e-6 * scale[k])
            });
            (to[k] - from[k]) * slopes.sum::<f64>() / pieces as f64
        })
        .collect()
}

#[test]
fn contributions_are_integrated_gradients_and_add_up() {
    let data = data(120);
    let x = data.x().select_rows(&[0, 1, 2, 3, 4, 5]);
    for (name, model) in models(&data) {
        let mean = model.scaler().mean.clone();
        let reference = data.x().row(40).to_vec();
        for (given, from) in [(None, &mean), (Some(reference.as_slice()), &reference)] {
            let why = model.explain(&x, given).unwrap();
            assert_eq!(why.columns, data.schema().encoded_names());
            let h = model.decision(&x).unwrap();
            let base = model.decision(&Matrix::from_rows(&[from]).unwrap()).unwrap()[(0, 0)];
            for row in 0..x.rows() {
                let own = why.contributions.row(row);
                assert!((why.output[row] - h[(row, 0)]).abs() < 1e-12, "{name}");
                assert!((why.base[row] - base).abs() < 1e-10, "{name}");
                let size: f64 = own.iter().map(|c| c.abs()).sum();
                let sum: f64 = own.iter().sum();
                let error = why.base[row] + sum - why.output[row];
                assert!(error.abs() < 1e-9 * (1.0 + size), "{name}, row {row}: {error:e}");
                let expected = by_definition(&model, from, x.row(row), 8000);
                for (c, e) in own.iter().zip(&expected) {
                    assert!(
                        (c - e).abs() < 2e-3 * size,
                        "{name}, row {row}: {own:?}, {expected:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_reference_itself_and_far_rows_are_explained() {
    let data = data(100);
    for (name, model) in models(&data) {
        let row = data.x().row(3).to_vec();
        let mut far = row.clone();
        far[1] = 1e80;
        let x = Matrix::from_rows(&[&row, &far]).unwrap();
        let why = model.explain(&x, Some(&row)).unwrap();
        assert!(why.contributions.row(0).iter().all(|c| *c == 0.0), "{name}");
        // Only one column differs, so it contributes everything.
        let own = why.contributions.row(1);
        let difference = why.output[1] - why.base[1];
        assert!((own[1] - difference).abs() < 1e-9 * (1.0 + difference.abs()), "{name}: {own:?}");
        assert!([own[0], own[2], own[3]].iter().all(|c| *c == 0.0), "{name}: {own:?}");
    }
}

#[test]
fn a_row_is_explained_from_a_reference_that_is_far_away() {
    let data = data(80);
    let x = data.x().select_rows(&[0, 1, 2]);
    for (name, model) in models(&data) {
        for far in [1e3, 1e6, 1e12] {
            let why = model.explain(&x, Some(&vec![far; x.cols()])).unwrap();
            for row in 0..x.rows() {
                let sum: f64 = why.contributions.row(row).iter().sum();
                assert!(sum.is_finite(), "{name}, {far}, row {row}");
                // Places on a longer way are rounded too much to add up.
                let apart = (why.base[row] + sum - why.output[row]).abs();
                assert!(far > 1e3 || apart <= 1e-9, "{name}, {far}, row {row}: {apart:e}");
            }
        }
    }
}

#[test]
fn several_classes_are_explained_by_the_first_two() {
    let x =
        Matrix::from_fn(150, 3, |i, k| (i % 3 * (k + 1)) as f64 + (i * (k + 5) % 7) as f64 / 4.0);
    let y: Vec<usize> = (0..150).map(|i| i % 3).collect();
    let data = Dataset::new(x, &y).unwrap();
    let model = Model::fit(&data, Svml::default()).unwrap();
    let rows = data.x().select_rows(&[0, 1, 2, 31, 62]);
    let why = model.explain(&rows, None).unwrap();
    let predicted = model.predict(&rows).unwrap();
    let values = model.decision(&rows).unwrap();
    for row in 0..rows.rows() {
        let [second, first] = why.between[row];
        assert_eq!(first, predicted[row]);
        let other = 3 - first - second;
        assert!(values[(row, second)] >= values[(row, other)]);
        assert!(why.output[row] > 0.0);
        let sum: f64 = why.contributions.row(row).iter().sum();
        assert!((why.base[row] + sum - why.output[row]).abs() < 1e-9);
    }
}

#[test]
fn a_category_is_one_column_and_a_column_left_out_is_none() {
    let mut text = String::from("colour,size,name,class\n");
    for i in 0..90 {
        let colour = ["red", "green", "blue"][i % 3];
        let size = if i % 11 == 0 { "?".to_owned() } else { (i * 7 % 10).to_string() };
        let class = if (i % 3 == 0) == (i * 7 % 10 < 5) { "a" } else { "b" };
        text.push_str(&format!("{colour},{size},somebody {i},{class}\n"));
    }
    let options = ReadOptions {
        missing: Missing::Impute,
        categories: Categories::Auto,
        ..ReadOptions::default()
    };
    let data = Dataset::from_reader(text.as_bytes(), &options).unwrap();
    let model = Model::fit(&data, Svml::default()).unwrap();
    let why = model.explain(data.x(), None).unwrap();
    assert_eq!(why.columns, ["colour", "size"]);
    let h = model.decision(data.x()).unwrap();
    for row in 0..90 {
        let sum: f64 = why.contributions.row(row).iter().sum();
        assert!((why.base[row] + sum - h[(row, 0)]).abs() < 1e-9);
    }
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let data = data(60);
    let neighbours = Model::fit(&data, "nca+knn:k=3".parse::<Method>().unwrap()).unwrap();
    let refused = neighbours.explain(data.x(), None).unwrap_err();
    assert!(refused.to_string().contains("nearest-neighbour"), "{refused}");
    let metric = Model::fit(&data, "pca+none".parse::<Method>().unwrap()).unwrap();
    assert!(matches!(metric.explain(data.x(), None), Err(Error::NotAClassifier)));
    let model = Model::fit(&data, Svml::default()).unwrap();
    assert!(matches!(model.explain(data.x(), Some(&[1.0])), Err(Error::Shape { .. })));
    assert!(model.explain(data.x(), Some(&[1.0, f64::NAN, 0.0, 0.0])).is_err());
}

#[test]
fn the_number_of_threads_does_not_change_the_bits() {
    let data = data(80);
    let model = Model::fit(&data, Svml::default()).unwrap();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| model.explain(data.x(), None).unwrap())
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn training_rows_that_are_kept_come_back_from_the_file() {
    let data = data(80);
    for method in ["svml", "svml:form=diagonal", "nca+knn:k=3"] {
        let mut model = Model::fit(&data, method.parse::<Method>().unwrap()).unwrap();
        let without = model.to_bytes().unwrap();
        model.keep_rows(data.x(), data.y()).unwrap();
        let bytes = model.to_bytes().unwrap();
        assert!(bytes.len() > without.len() + 8 * 80 * 4);
        assert_eq!(u32::from_le_bytes(bytes[8..12].try_into().unwrap()), 7);
        let read = Model::from_bytes(&bytes).unwrap();
        assert!(read.keeps_rows() && read.to_bytes().unwrap() == bytes, "{method}");
    }
    let mut model = Model::fit(&data, Svml::default()).unwrap();
    assert!(model.alike(data.x(), 3).is_err());
    assert!(model.keep_rows(&data.x().select_rows(&[0]), &[0]).is_err());
    assert!(model.keep_rows(data.x(), &[5; 80]).is_err());
    model.keep_rows(data.x(), data.y()).unwrap();
    let alike = model.alike(data.x(), 3).unwrap();
    let z = model.transform(data.x()).unwrap();
    for (row, alike) in alike.iter().enumerate() {
        assert_eq!((alike[0].row, alike[0].distance, alike[0].class), (row, 0.0, data.y()[row]));
        let distances = z.iter_rows().map(|other| {
            let sum: f64 = z.row(row).iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum();
            sum.sqrt()
        });
        let mut sorted: Vec<f64> = distances.collect();
        sorted.sort_by(f64::total_cmp);
        alike.iter().zip(sorted).for_each(|(alike, d)| assert!((alike.distance - d).abs() < 1e-12));
    }
    // All pulls together are the output without its offset, which no row has.
    let all = model.alike(data.x(), 80).unwrap();
    let offset: f64 = model.members().iter().map(|m| m.weight() * m.bias()[0]).sum();
    let h = model.decision(data.x()).unwrap();
    for (row, alike) in all.iter().enumerate() {
        let pulls: f64 = alike.iter().map(|alike| alike.pull).sum();
        assert!((pulls + offset - h[(row, 0)]).abs() < 1e-9);
    }
}
