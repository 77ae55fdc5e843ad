//! Model files: what is saved is what is loaded, damage is noticed, and a failed save harms nothing.
//! Files that are damaged on purpose stand in `model_files_hostile.rs`.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::data::{Categories, Missing};
use svml::{ClassWeight, Method};
use svml::{Dataset, Error, Form, Generator, GridSearch, Kernel, Matrix, Model, ReadOptions, Svml};

fn generated(rows: usize, informative: usize, noise: usize) -> Dataset {
    let mut generator = Generator::default();
    (generator.rows, generator.informative, generator.noise) = (rows, informative, noise);
    generator.generate().unwrap().data
}

fn params(form: Form) -> Svml {
    let mut params = Svml::paper();
    (params.form, params.max_iterations) = (form.into(), 5);
    params
}

/// Text with every kind of column: numbers, categories, gaps in both.
fn csv() -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut text = "age,colour,height,\"is \"\"ill\"\"\"\n".to_owned();
    for _ in 0..60 {
        let age: f64 = rng.random_range(20.0..80.0);
        let colour = ["red", "blue", "?", "grün"][rng.random_range(0..4)];
        let height =
            if rng.random_bool(0.1) { "NA".to_owned() } else { format!("{}", 1.5 + age / 300.0) };
        let class = if age + rng.random_range(-9.0..9.0) > 50.0 { "yes" } else { "no" };
        text.push_str(&format!("{age},{colour},{height},{class}\n"));
    }
    text
}

fn table(categories: Categories) -> Dataset {
    let options = ReadOptions { missing: Missing::Impute, categories, ..ReadOptions::default() };
    Dataset::from_csv(csv().as_bytes(), &options).unwrap()
}

/// One model of every form, of both methods, of arrays and of tables.
fn models() -> Vec<Model> {
    let data = generated(80, 2, 2);
    let mut models: Vec<Model> = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)]
        .map(|form| Model::fit(&data, params(form)).unwrap())
        .into();
    models.push(Model::fit(&data, GridSearch::default()).unwrap());
    for categories in [Categories::Codes, Categories::OneHot, Categories::Auto] {
        models.push(Model::fit(&table(categories), params(Form::Full)).unwrap());
        models.push(Model::fit(&table(categories), GridSearch::default()).unwrap());
    }
    models.extend(of_members());
    models
}

/// Models that need the version of members: rough kernels, and means, of two classes and of more.
fn of_members() -> Vec<Model> {
    let default = Svml { max_iterations: 5, ..Svml::default() };
    let three = Generator { rows: 90, classes: 3, noise: 2, ..Generator::default() };
    let datasets = [generated(80, 2, 2), three.generate().unwrap().data, table(Categories::Codes)];
    let mut models = Vec::new();
    for data in &datasets {
        for (kernel, form) in [
            (Kernel::Exponential, Form::Rank(2)),
            (Kernel::Exponential, Form::Diagonal),
            (Kernel::Laplacian, Form::Sphere),
        ] {
            let params = Svml { kernel, form: form.into(), ..default.clone() };
            models.push(Model::fit(data, &params).unwrap());
        }
        // Without cross-fitting all members are there, with equal weights.
        for cross_fit in [true, false] {
            models.push(Model::fit(data, Svml { cross_fit, ..default.clone() }).unwrap());
        }
    }
    models
}

/// As small as a model gets, so that every byte can be tried.
fn small() -> Model {
    let x = Matrix::from_fn(6, 1, |i, _| i as f64);
    let data = Dataset::new(x, &["a", "a", "a", "b", "b", "b"]).unwrap();
    let mut params = params(Form::Sphere);
    params.max_iterations = 1;
    Model::fit(&data, &params).unwrap()
}

/// The same of a mean.
fn small_mean() -> Model {
    let x = Matrix::from_fn(6, 1, |i, _| i as f64);
    let data = Dataset::new(x, &["a", "a", "a", "b", "b", "b"]).unwrap();
    Model::fit(&data, Svml { max_iterations: 1, cross_fit: false, ..Svml::default() }).unwrap()
}

fn random_rows(model: &Model, rows: usize) -> Matrix {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let impute = model.schema().missing() == Missing::Impute;
    Matrix::from_fn(rows, model.schema().width(), |_, k| match impute && rng.random_bool(0.05) {
        true => f64::NAN,
        false => model.scaler().mean[k] + rng.random_range(-3.0..3.0),
    })
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn assert_same(a: &Model, b: &Model) {
    assert_eq!(a.to_bytes().unwrap(), b.to_bytes().unwrap());
    assert_eq!((a.schema(), a.classes()), (b.schema(), b.classes()));
    assert_eq!((a.scaler(), a.metric()), (b.scaler(), b.metric()));
    assert_eq!((a.cost().map(f64::to_bits), a.bias()), (b.cost().map(f64::to_bits), b.bias()));
    assert_eq!((a.support_rows(), a.support_vectors()), (b.support_rows(), b.support_vectors()));
    assert_eq!((a.members(), a.temperature()), (b.members(), b.temperature()));
    assert_eq!(
        (a.report().honest, &a.report().candidates),
        (b.report().honest, &b.report().candidates)
    );
    assert_eq!(
        (&a.report().method, &a.report().warnings),
        (&b.report().method, &b.report().warnings)
    );
    assert_eq!((a.report().best, a.report().stop), (b.report().best, b.report().stop));
    assert_eq!(a.report().trace.len(), b.report().trace.len());
    let x = random_rows(a, 500);
    let decisions = a.decision(&x).unwrap().into_vec();
    assert!(decisions.iter().all(|h| h.is_finite()));
    assert_eq!(bits(&decisions), bits(&b.decision(&x).unwrap().into_vec()));
    assert_eq!(a.predict(&x).unwrap(), b.predict(&x).unwrap());
    let p = a.probabilities(&x).unwrap();
    assert_eq!(bits(p.as_slice()), bits(b.probabilities(&x).unwrap().as_slice()));
    assert_eq!(
        bits(a.transform(&x).unwrap().as_slice()),
        bits(b.transform(&x).unwrap().as_slice())
    );
}

/// An empty directory of this test's own, below the build directory.
fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("model_files_{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn bytes_round_trip_to_the_bit() {
    for model in models() {
        assert_same(&model, &Model::from_bytes(&model.to_bytes().unwrap()).unwrap());
    }
}

/// Older programs read what they can: only other kernels and means of several need the last version.
#[test]
fn the_version_is_the_first_that_has_what_the_model_needs() {
    for model in models() {
        let gaussian = model.members()[0].kernel() == Kernel::Gaussian;
        let expected = if model.members().len() == 1 && gaussian { 3 } else { 6 };
        assert_eq!(model.to_bytes().unwrap()[8], expected, "{:?}", model.report().method);
    }
    assert!(of_members().iter().any(|model| model.members().len() == 3));
}

/// Sparse data and constant columns: what most rows have is stored once.
#[test]
fn rows_that_are_mostly_the_same_take_few_bytes() {
    // A word in each column, most rows having few; the last columns are constant.
    let x = Matrix::from_fn(100, 3000, |i, k| match k {
        0 | 1 => (i * (k + 3) % 11) as f64,
        2000.. => -0.5,
        _ => f64::from(u8::from((i * 13 + k * 7) % 101 == 0)),
    });
    let class: Vec<usize> = (0..100).map(|i| usize::from(i * 3 % 11 > 4)).collect();
    let data = Dataset::new(x, &class).unwrap();
    let methods = ["svml:form=diagonal,cross_fit=false", "knn:k=3", "pca:rank=2+none"];
    for method in methods {
        let mut model = Model::fit(&data, method.parse::<Method>().unwrap()).unwrap();
        if model.is_classifier() {
            let bytes = model.to_bytes().unwrap();
            assert_eq!(bytes[8], 8, "{method}");
            let rows = 8 * 3000 * model.support_rows().len();
            assert!(bytes.len() < rows / 2, "{method}: {} bytes, {rows} of rows", bytes.len());
            let loaded = Model::from_bytes(&bytes).unwrap();
            assert_same(&model, &loaded);
            assert!(loaded.to_bytes().unwrap() == bytes, "{method}");
        }
        model.keep_rows(data.x(), data.y()).unwrap();
        let bytes = model.to_bytes().unwrap();
        assert_eq!(bytes[8], 8, "{method}");
        let loaded = Model::from_bytes(&bytes).unwrap();
        assert!(loaded.to_bytes().unwrap() == bytes, "{method}");
        if !model.members().is_empty() {
            let alike = |model: &Model| model.alike(data.x(), 2).unwrap();
            assert_eq!(alike(&loaded), alike(&model), "{method}");
        }
    }
}

/// Weights of classes need a version of their own, because programs that do not know them would give other
/// probabilities; decision values are the same with them and without. Weights that are all the same need nothing.
#[test]
fn class_weights_are_kept() {
    let data = generated(80, 2, 2);
    let given = |a: f64, b: f64| {
        let names = data.classes().iter().cloned().zip([a, b]).collect();
        let class_weight = ClassWeight::Given(names);
        [
            Svml { class_weight: class_weight.clone(), max_iterations: 5, ..Svml::default() }
                .into(),
            Method::from(GridSearch { class_weight, ..GridSearch::default() }),
        ]
    };
    for method in given(1.0, 3.0) {
        let model = Model::fit(&data, method).unwrap();
        assert_eq!(model.class_weights(), Some(&[1.0, 3.0][..]));
        let bytes = model.to_bytes().unwrap();
        assert_eq!(bytes[8], 7);
        assert_same(&model, &Model::from_bytes(&bytes).unwrap());
    }
    for method in given(2.0, 2.0) {
        let model = Model::fit(&data, method).unwrap();
        assert_eq!(model.class_weights(), None);
        assert!(model.to_bytes().unwrap()[8] < 7);
    }
}

#[test]
fn files_round_trip_to_the_bit() {
    let path = directory("round_trip").join("m.svml");
    for model in models() {
        // Each model is saved over the one before.
        model.save(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), model.to_bytes().unwrap());
        assert_same(&model, &Model::load(&path).unwrap());
        assert_eq!(entries(path.parent().unwrap()), ["m.svml"]);
    }
}

#[test]
fn the_method_and_its_parameters_are_kept() {
    let mut params = params(Form::Rank(1));
    (params.lambda, params.steepness, params.seed) = (0.1 + 0.2, 1.0 / 3.0, u64::MAX);
    (params.initial_cost, params.tolerance) = (1e-3, 5e-324);
    let model = Model::fit(&generated(60, 1, 1), &params).unwrap();
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.report().method, Method::Svml(params));

    let mut grid = GridSearch::default();
    (grid.widths, grid.costs, grid.folds) = (vec![1.0 / 3.0], vec![0.1 + 0.2], 3);
    let model = Model::fit(&generated(60, 1, 1), &grid).unwrap();
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(loaded.report().method, Method::Euclidean(grid));
}

/// New rows read by the schema of a loaded model are those the model was made for.
#[test]
fn a_loaded_schema_reads_the_same_rows() {
    for categories in [Categories::Codes, Categories::OneHot, Categories::Auto] {
        let data = table(categories);
        let model = Model::fit(&data, params(Form::Diagonal)).unwrap();
        let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let read = |m: &Model| m.schema().read_csv(csv().as_bytes(), &ReadOptions::default());
        let (a, b) = (read(&model).unwrap(), read(&loaded).unwrap());
        assert_eq!(bits(a.x.as_slice()), bits(data.x().as_slice()));
        assert_eq!(bits(a.x.as_slice()), bits(b.x.as_slice()));
        assert_eq!(model.error_rate(&data).unwrap(), loaded.error_rate(&data).unwrap());
    }
}

/// Names with every kind of awkward character survive JSON.
#[test]
fn awkward_names_are_kept() {
    let names = ["", "\u{1}", "a\"b\\c", "\u{1f600}", "line\nbreak"].map(|n| format!("<{n}>"));
    let x = Matrix::from_fn(12, names.len(), |i, k| ((i * 7 + k * 3) % 11) as f64);
    let labels: Vec<&str> = (0..12).map(|i| ["\u{fffd}\"", "\0b"][i % 2]).collect();
    let data = Dataset::new(x, &labels).unwrap().with_names(names.to_vec()).unwrap();
    let model = Model::fit(&data, params(Form::Sphere)).unwrap();
    assert_same(&model, &Model::from_bytes(&model.to_bytes().unwrap()).unwrap());
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    for model in [small(), small_mean()] {
        let bytes = model.to_bytes().unwrap();
        for len in 0..bytes.len() {
            let error = Model::from_bytes(&bytes[..len]).unwrap_err();
            assert!(matches!(error, Error::ModelFile(_)), "{len} bytes: {error}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(matches!(Model::from_bytes(&longer), Err(Error::ModelFile(_))));
    }
}

#[test]
fn any_byte_altered_is_an_error() {
    for model in [small(), small_mean()] {
        let bytes = model.to_bytes().unwrap();
        let mut altered = bytes.clone();
        for at in 0..bytes.len() {
            for flip in [0x01, 0x02, 0x10, 0x20, 0x55, 0x80, 0xff] {
                altered[at] = bytes[at] ^ flip;
                let error = Model::from_bytes(&altered).unwrap_err();
                assert!(matches!(error, Error::ModelFile(_)), "byte {at} ^ {flip:#x}: {error}");
            }
            altered[at] = bytes[at];
        }
        assert!(Model::from_bytes(&altered).is_ok());
    }
}

#[test]
fn errors_of_the_file_system_name_the_path() {
    let directory = directory("io");
    let names = |error: Error, path: &Path| {
        assert!(matches!(&error, Error::Io { path: p, .. } if p == path), "{error:?}");
        assert!(error.to_string().contains(&*path.to_string_lossy()), "{error}");
    };
    let absent = directory.join("absent");
    names(Model::load(&absent).unwrap_err(), &absent);
    names(Model::load(&directory).unwrap_err(), &directory);

    let model = small();
    let below = absent.join("m.svml");
    names(model.save(&below).unwrap_err(), &below);
    assert!(entries(&directory).is_empty());
}

#[test]
fn saving_over_a_directory_fails_and_leaves_it_alone() {
    let directory = directory("over_directory");
    for (name, content) in [("empty", None), ("full", Some("kept"))] {
        let path = directory.join(name);
        fs::create_dir(&path).unwrap();
        if let Some(content) = content {
            fs::write(path.join(content), content).unwrap();
        }
        let error = small().save(&path).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(path.is_dir());
        assert_eq!(entries(&path), content.into_iter().collect::<Vec<_>>());
    }
    assert_eq!(entries(&directory), ["empty", "full"]);
}

/// A file that stands in the way of one of the path's directories.
#[test]
fn saving_below_a_file_fails_and_leaves_it_alone() {
    let directory = directory("below_file");
    let file = directory.join("file");
    fs::write(&file, "kept").unwrap();
    assert!(matches!(small().save(file.join("m.svml")), Err(Error::Io { .. })));
    assert_eq!(fs::read(&file).unwrap(), b"kept");
    assert_eq!(entries(&directory), ["file"]);
}

#[cfg(unix)]
#[test]
fn a_read_only_directory_keeps_the_old_file() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory("read_only");
    let path = directory.join("m.svml");
    let old = small();
    old.save(&path).unwrap();
    let set = |mode| fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
    set(0o555);
    // Root may write anyway; then there is nothing to see here.
    let free = fs::write(directory.join("probe"), "").is_ok();
    let result = if free { Ok(()) } else { models()[0].save(&path) };
    set(0o755);
    if !free {
        assert!(matches!(result, Err(Error::Io { .. })), "{result:?}");
        assert_same(&old, &Model::load(&path).unwrap());
        assert_eq!(entries(&directory), ["m.svml"]);
    }
}

/// A name as long as the file system allows: the temporary file must not need a longer one.
#[cfg(target_os = "linux")]
#[test]
fn the_longest_file_name_can_be_saved() {
    let directory = directory("long_name");
    for len in [200, 240, 255] {
        let path = directory.join("n".repeat(len));
        small().save(&path).unwrap();
        assert!(Model::load(&path).is_ok());
        fs::remove_file(&path).unwrap();
        assert!(entries(&directory).is_empty(), "{len}");
    }
}

/// Many threads saving to one path: at every moment there is one whole model.
#[test]
fn saves_at_the_same_time_do_not_mix() {
    let directory = directory("at_once");
    let path = directory.join("m.svml");
    let models = [small(), models().swap_remove(2)];
    models[0].save(&path).unwrap();
    std::thread::scope(|scope| {
        for model in &models {
            scope.spawn(|| (0..20).for_each(|_| model.save(&path).unwrap()));
        }
        for _ in 0..40 {
            let bytes = fs::read(&path).unwrap();
            assert!(models.iter().any(|m| m.to_bytes().unwrap() == bytes));
        }
    });
    assert_eq!(entries(&directory), ["m.svml"]);
}

/// tests/data/model_v1.svml was written by the first version of the format (two classes, no
/// probabilities), with these decision values then.
#[test]
fn version_1_still_loads() {
    let bytes = include_bytes!("data/model_v1.svml");
    let model = Model::from_bytes(bytes).unwrap();
    let new = "colour,age,size\nred,40,1.0\nviolet,50,\nblue,70,2.0\n";
    let x = model.schema().read_csv(new.as_bytes(), &ReadOptions::default()).unwrap().x;
    let expected = [-0.6194312669765335, 1.1694780599448378, 1.3586623906877302];
    for (h, expected) in model.decision(&x).unwrap().as_slice().iter().zip(expected) {
        assert!((h - expected).abs() < 1e-9, "{h} where {expected} was");
    }
    assert_eq!(model.temperature(), None);
    let message = model.probabilities(&x).unwrap_err().to_string();
    assert!(message.contains("without probabilities"), "{message}");
    // Saved again it is a file of today.
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
    assert_eq!(again.decision(&x).unwrap(), model.decision(&x).unwrap());
}

/// tests/data/model_v2.svml: three classes, weights, probabilities.
#[test]
fn version_2_still_loads() {
    let model = Model::from_bytes(include_bytes!("data/model_v2.svml")).unwrap();
    let x = Matrix::from_rows(&[[0.5, -0.5, 0.25], [-1.0, 1.0, 0.0]]).unwrap();
    let close = |values: &[f64], expected: &[f64]| {
        assert_eq!(values.len(), expected.len());
        for (v, e) in values.iter().zip(expected) {
            assert!((v - e).abs() < 1e-9, "{v} where {e} was");
        }
    };
    close(model.decision(&x).unwrap().as_slice(), &V2_DECISION);
    close(model.probabilities(&x).unwrap().as_slice(), &V2_PROBABILITIES);
}

/// tests/data/v3: models of every method that version 3 knew, as the first release wrote them, and what its
/// command printed for some rows. The bits must be the same.
#[test]
fn version_3_predicts_the_same_bits() {
    #[derive(serde::Deserialize)]
    struct Stored {
        rows: String,
        models: std::collections::BTreeMap<String, Vec<Vec<f64>>>,
    }
    let stored: Stored = serde_json::from_str(include_str!("data/v3/expected.json")).unwrap();
    assert_eq!(stored.models.len(), 6);
    for (name, expected) in stored.models {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/v3").join(&name);
        let model = Model::load(path.with_extension("svml")).unwrap();
        let method = &model.report().method;
        assert!(method.to_string().starts_with(if name == "auto" { "svml" } else { &name }));
        let x = match name.as_str() {
            // Trained on the columns of numbers alone.
            "fixed" => {
                let numbers = |line: &str| -> Vec<f64> {
                    line.split(',').take(3).map(|cell| cell.parse().unwrap()).collect()
                };
                let rows: Vec<Vec<f64>> = stored.rows.lines().skip(1).map(numbers).collect();
                Matrix::from_rows(&rows).unwrap()
            }
            _ => {
                let options = ReadOptions::default();
                model.schema().read_csv(stored.rows.as_bytes(), &options).unwrap().x
            }
        };
        let (h, p) = (model.decision(&x).unwrap(), model.probabilities(&x).unwrap());
        for (i, expected) in expected.iter().enumerate() {
            let found = [h.row(i), p.row(i)].concat();
            assert_eq!(bits(&found), bits(expected), "{name}, row {i}");
        }
        // Steps of other learners stood apart then.
        assert_eq!(model.report().trace.is_empty(), ["euclidean", "fixed"].contains(&&*name));
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again, model);
    }
}

/// tests/data/model_v4.svml: a metric of NCA without a classifier, three features of which the last is constant.
#[test]
fn version_4_still_loads() {
    let bytes = include_bytes!("data/model_v4.svml");
    let model = Model::from_bytes(bytes).unwrap();
    assert!(matches!(model.report().method, Method::Metric(_)) && !model.is_classifier());
    let z = model.transform(&Matrix::from_rows(&[[1.0, 2.0, 1.0]]).unwrap()).unwrap();
    assert!((z[(0, 0)] + 1.03515903).abs() < 1e-8, "{z:?}");
    assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
    // The parts of an SVM do not belong to it.
    let mut altered = bytes.to_vec();
    let at = altered.windows(9).position(|part| part == b"\"bias\":[]").unwrap();
    altered.splice(at..at + 9, *b"\"bias\":[0.5]");
    let length = u64::from_le_bytes(altered[12..20].try_into().unwrap()) + 3;
    altered[12..20].copy_from_slice(&length.to_le_bytes());
    altered.truncate(altered.len() - 4);
    let checksum = crc32fast::hash(&altered);
    altered.extend(checksum.to_le_bytes());
    let message = Model::from_bytes(&altered).unwrap_err().to_string();
    assert!(message.contains("1 offsets b"), "{message}");
}

/// tests/data/model_v5.svml: four nearest neighbours after NCA, three classes, a column of categories, rows that repeat;
/// written by the version before members, with these probabilities.
#[test]
fn version_5_still_loads() {
    let model = Model::from_bytes(include_bytes!("data/model_v5.svml")).unwrap();
    assert_eq!(model.report().method.to_string(), "nca:rank=2+knn:k=4");
    let new = "a,b,colour\n0.1,-0.2,red\n1.4,-0.9,blue\n2.2,-1.5,green\n";
    let x = model.schema().read_csv(new.as_bytes(), &ReadOptions::default()).unwrap().x;
    let expected = [0.25, 0.75, 0.0, 0.75, 0.25, 0.0, 0.0, 0.5, 0.5000000000000001];
    assert_eq!(model.probabilities(&x).unwrap().as_slice(), expected);
    assert_eq!(model.predict_labels(&x).unwrap(), ["k1", "k0", "k2"]);
    assert!(model.members().is_empty());
    assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
}

/// Three rows of the table with a column of categories that models of versions 6 to 8 were trained on.
fn rows_with_colours(model: &Model) -> Matrix {
    let new = "a,b,colour\n0.1,-0.2,red\n1.4,-0.9,blue\n-2.2,1.5,green\n";
    model.schema().read_csv(new.as_bytes(), &ReadOptions::default()).unwrap().x
}

/// Decision values and probabilities of a stored model, as the command printed them when it wrote the file.
fn assert_predicts(model: &Model, expected: [[f64; 3]; 3]) {
    let x = rows_with_colours(model);
    let (h, p) = (model.decision(&x).unwrap(), model.probabilities(&x).unwrap());
    for (i, expected) in expected.iter().enumerate() {
        for (found, expected) in [h.row(i), p.row(i)].concat().iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "row {i}: {found} where {expected} was");
        }
    }
    assert_eq!(&Model::from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
}

/// tests/data/model_v6.svml: the mean of three members, as the default makes it. model_v8.svml is the same model in the layout
/// for rows that are mostly the same, written by a program that knows nothing but docs/model-format.md: model_v8.py.
#[test]
fn versions_6_and_8_still_load() {
    let six = Model::from_bytes(include_bytes!("data/model_v6.svml")).unwrap();
    assert_eq!(six.members().len(), 3);
    assert_predicts(&six, V6_PREDICTED);
    let eight = Model::from_bytes(include_bytes!("data/model_v8.svml")).unwrap();
    assert_eq!(eight, six);
}

/// tests/data/model_v7.svml: class weights of 1 and 3, and the training rows.
#[test]
fn version_7_still_loads() {
    let model = Model::from_bytes(include_bytes!("data/model_v7.svml")).unwrap();
    assert_eq!(model.class_weights(), Some(&[1.0, 3.0][..]));
    assert_eq!(model.alike(&rows_with_colours(&model), 2).unwrap().len(), 3);
    assert_predicts(&model, V7_PREDICTED);
}

/// Decision value and probabilities of both classes.
const V6_PREDICTED: [[f64; 3]; 3] = [
    [-0.27067631663522895, 0.7345388947338674, 0.2654611052661326],
    [0.5581354793864433, 0.1092276466342311, 0.8907723533657688],
    [1.5430260624849295, 0.0030125283350094395, 0.9969874716649906],
];
const V7_PREDICTED: [[f64; 3]; 3] = [
    [0.1328967953979165, 0.6208634747245734, 0.3791365252754266],
    [0.684540909790904, 0.1171456518535928, 0.8828543481464072],
    [1.0361206863234544, 0.026050383951191216, 0.9739496160488089],
];
const V2_DECISION: [f64; 6] = [
    -0.19812743674651093,
    0.9506915610697352,
    2.2070219889985054,
    -0.16257551674217388,
    2.1938223949866105,
    0.898596467775194,
];
const V2_PROBABILITIES: [f64; 6] = [
    0.007087097369008348,
    0.07244370315855202,
    0.9204691994724395,
    0.00785915944972041,
    0.9248605351750541,
    0.06728030537522546,
];
