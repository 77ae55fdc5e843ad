//! A fit that is killed goes on where it stopped, and the model has the bits that it would have had.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use svml::internals::landmarks::{LocalRows, Part};
use svml::internals::{Key, ManyRows, Store, Watch};
use svml::{
    Criterion, Dataset, Error, Form, FormChoice, Generator, GridSearch, Kernel, LandmarkChoice,
    Matrix, Method, Model, Result, Run, Svml,
};

fn file(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("svml-checkpoint-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn generated(rows: usize) -> Dataset {
    Generator { rows, noise: 2, ..Generator::default() }.generate().unwrap().data
}

fn three_classes(rows: usize) -> Dataset {
    Generator { rows, noise: 2, classes: 3, ..Generator::default() }.generate().unwrap().data
}

type Fit<'a> = dyn Fn(&mut Run<'_>) -> Result<Model> + Sync + 'a;

fn bytes(model: Result<Model>) -> Vec<u8> {
    model.unwrap().to_bytes().unwrap()
}

/// Kills a fit after each of some numbers of records, in the middle of the next, and lets it go on: once to the end, and
/// once with a kill after every few records.
fn survives(name: &str, kills: usize, fit: &Fit<'_>) {
    let path = file(name);
    let open = |fail_after: Option<usize>| {
        let store = Store::open(&path, Key::new("data"), Key::new("parameters")).unwrap();
        Arc::new(store.on_trial(fail_after))
    };
    let run = |store: &Arc<Store>| fit(&mut Run::new().with_store(Arc::clone(store)));
    let expected = bytes(fit(&mut Run::new()));

    // Recording changes nothing, and what is recorded is not computed again.
    let store = open(None);
    assert!(bytes(run(&store)) == expected, "{name}: other bits with a checkpoint");
    let total = store.appended();
    drop(store);
    let store = open(None);
    assert!(bytes(run(&store)) == expected, "{name}: other bits from a whole checkpoint");
    assert_eq!((store.count(), store.appended()), (total, 0), "{name}");
    drop(store);
    assert!(total >= 5, "{name}: {total} records");

    let every = total.div_ceil(kills);
    for k in (0..total).step_by(every) {
        let _ = fs::remove_file(&path);
        let store = open(Some(k));
        assert!(matches!(run(&store), Err(Error::Io { .. })), "{name}: not killed after {k}");
        drop(store);
        let store = open(None);
        assert_eq!(store.count(), k, "{name}");
        // Another number of threads.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + k % 3).build().unwrap();
        let resumed = pool.install(|| run(&store));
        assert!(bytes(resumed) == expected, "{name}: other bits after {k} of {total} records");
        assert_eq!(store.appended(), total - k, "{name}: what was recorded was computed again");
    }

    let _ = fs::remove_file(&path);
    let mut lives = 0;
    let resumed = loop {
        lives += 1;
        let store = open(Some(every));
        match run(&store) {
            Err(Error::Io { .. }) => {}
            ended => break ended,
        }
    };
    assert!(bytes(resumed) == expected, "{name}: other bits after {lives} lives");
    // The last life has nothing more to record, or less than would end it.
    assert_eq!(lives, total / every + 1 - usize::from(total % every == 0), "{name}");
    fs::remove_file(path).unwrap();
}

#[test]
fn exact_svms_of_two_classes() {
    let data = generated(160);
    survives("two", 16, &|run| Model::fit_with(&data, Svml::default(), run));
}

#[test]
fn exact_svms_of_several_classes() {
    let data = three_classes(180);
    survives("several", 10, &|run| Model::fit_with(&data, Svml::default(), run));
}

/// Where few directions are better: rows like those of the first page.
#[test]
fn a_map_into_few_dimensions() {
    let data = Generator { rows: 400, ..Generator::default() }.generate().unwrap().data;
    let model = Model::fit(&data, Svml::default()).unwrap();
    assert!(model.report().candidates.iter().any(|tried| matches!(tried.form, Form::Rank(_))));
    survives("few", 6, &|run| Model::fit_with(&data, Svml::default(), run));
}

#[test]
fn forms_kernels_and_criteria() {
    let data = generated(120);
    let of = |form: Form| Svml { form: FormChoice::Fixed(form), ..Svml::default() };
    let groups: Vec<String> = (0..120).map(|row| format!("{}", row / 4)).collect();
    let grouped = data.clone().with_groups(&groups).unwrap();
    let cases = [
        ("paper", Svml::paper(), &data),
        ("loo", Svml { criterion: Criterion::LeaveOneOut, ..of(Form::Diagonal) }, &data),
        ("laplacian", Svml { kernel: Kernel::Laplacian, ..of(Form::Diagonal) }, &data),
        ("gradients", Svml { init: svml::learners::Init::Gradients, ..of(Form::Rank(2)) }, &data),
        ("apart", Svml { cross_fit: false, ..Svml::default() }, &data),
        ("groups", Svml::default(), &grouped),
    ];
    for (name, params, data) in cases {
        survives(name, 4, &|run| Model::fit_with(data, params.clone(), run));
    }
}

#[test]
fn grids() {
    let data = generated(120);
    survives("grid", 4, &|run| Model::fit_with(&data, GridSearch::default(), run));
    let after: Method = "nca:rank=2".parse().unwrap();
    survives("nca", 3, &|run| Model::fit_with(&data, &after, run));
}

#[test]
fn landmarks_of_two_and_of_several_classes() {
    let landmarks = LandmarkChoice::Count(40);
    // So many rows that some of them show the way.
    let data = generated(4200);
    let params =
        Svml { landmarks, form: Form::Diagonal.into(), cross_fit: false, ..Svml::default() };
    survives("way", 6, &|run| Model::fit_with(&data, params.clone(), run));
    let data = generated(900);
    let params = Svml { landmarks, ..Svml::default() };
    survives("landmarks", 8, &|run| Model::fit_with(&data, params.clone(), run));
    let data = three_classes(900);
    survives("landmarks-several", 4, &|run| Model::fit_with(&data, params.clone(), run));
}

#[test]
fn many_rows() {
    let data = generated(6000);
    let ends = [0, 1200, 3100, 6000];
    let params = Svml { landmarks: LandmarkChoice::Count(50), ..Svml::default() };
    let method = Method::Svml(params.clone());
    survives("many", 8, &|run| {
        let parts = ends.windows(2).enumerate().map(|(number, ends)| {
            let rows = ends[0]..ends[1];
            let (class, weight) = (&data.y()[rows.clone()], &data.weights()[rows]);
            Part::of_rows(Cow::Borrowed(data.x()), (number, ends[0]), class, weight, 2, &[])
        });
        let rows = LocalRows::new(parts.collect(), u64::MAX, &Watch::default());
        let (schema, classes) = (data.schema(), data.classes());
        ManyRows { rows: &rows, schema, classes }.fit(&method, &params, run)
    });
}

fn refused(path: &Path, data: &Dataset, method: impl Into<Method>) -> String {
    let before = fs::read(path).unwrap();
    let fitted = Model::fit_with(data, method, &mut Run::new().checkpoint(path));
    assert!(fs::read(path).unwrap() == before);
    fitted.err().unwrap().to_string()
}

/// A fit that was interrupted leaves its file, which is of no use to other data and parameters.
#[test]
fn the_file_of_another_fit_is_refused() {
    let path = file("other");
    let data = generated(150);
    let interrupt = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let mut run = Run::new().checkpoint(&path).interrupt(interrupt);
    assert!(matches!(Model::fit_with(&data, Svml::default(), &mut run), Err(Error::Interrupted)));

    let text = refused(&path, &data, Svml { seed: 1, ..Svml::default() });
    assert!(text.contains("different parameters; use a different file"), "{text}");
    assert!(refused(&path, &data, GridSearch::default()).contains("different parameters"));
    let mut weights = vec![1.0; 150];
    weights[7] = 2.0;
    let mut x = data.x().clone();
    x[(3, 2)] = f64::from_bits(x[(3, 2)].to_bits() + 1);
    let mut class = data.y().to_vec();
    class[9] = 1 - class[9];
    let names = ["a", "b", "c", "e"].map(str::to_owned).to_vec();
    for other in [
        data.clone().with_weights(weights).unwrap(),
        Dataset::new(x, data.y()).unwrap(),
        Dataset::new(data.x().clone(), &class).unwrap(),
        data.clone().with_names(names).unwrap(),
        data.select(&(1..150).collect::<Vec<_>>()),
    ] {
        let text = refused(&path, &other, Svml::default());
        assert!(text.contains("different data; use a different file"), "{text}");
    }

    // With less memory it goes on.
    let less = Svml { memory_limit: Some(1 << 30), ..Svml::default() };
    let model = Model::fit_with(&data, less.clone(), &mut Run::new().checkpoint(&path));
    assert!(bytes(model) == bytes(Model::fit(&data, less)));
    fs::remove_file(path).unwrap();
}

/// Ended by a time limit again and again, a fit comes to its end all the same.
#[test]
fn time_limits_add_up() {
    let path = file("time");
    let data = generated(700);
    let expected = bytes(Model::fit(&data, Svml::default()));
    let mut limit = Duration::from_millis(5);
    let mut ends = 0;
    let model = loop {
        let mut run = Run::new().checkpoint(&path).time_limit(limit);
        match Model::fit_with(&data, Svml::default(), &mut run) {
            Ok(model) if !run.is_cut_short() => break model,
            Ok(_) | Err(Error::Interrupted) => (ends, limit) = (ends + 1, limit.mul_f64(1.4)),
            Err(error) => panic!("{error}"),
        }
    };
    assert!(ends > 0 && model.to_bytes().unwrap() == expected, "{ends}");
    fs::remove_file(path).unwrap();
}

/// No value of a row is in the file.
#[test]
fn the_file_holds_no_rows() {
    let path = file("rows");
    // Numbers whose bytes would be recognised.
    let values = |i: usize, k: usize| 1e6 + ((i * 31 + k * 17) as f64 * 0.37).sin();
    let x = Matrix::from_fn(300, 4, values);
    let class: Vec<usize> = (0..300).map(|i| usize::from(x[(i, 0)] + x[(i, 1)] > 2e6)).collect();
    let data = Dataset::new(x, &class).unwrap();
    for landmarks in [LandmarkChoice::Exact, LandmarkChoice::Count(30)] {
        let _ = fs::remove_file(&path);
        let store = Store::open(&path, Key::new("data"), Key::new("parameters")).unwrap();
        let store = Arc::new(store.on_trial(None));
        let params = Svml { landmarks, ..Svml::default() };
        let mut run = Run::new().with_store(Arc::clone(&store));
        let model = Model::fit_with(&data, params, &mut run).unwrap();
        let content = fs::read(&path).unwrap();
        let standardised = model.scaler().apply(data.x());
        for value in data.x().as_slice().iter().chain(standardised.as_slice()) {
            let bytes = value.to_le_bytes();
            assert!(!content.windows(8).any(|found| found == bytes), "{value}");
        }
    }
    fs::remove_file(path).unwrap();
}
