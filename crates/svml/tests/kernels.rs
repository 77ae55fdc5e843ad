//! The kernels against their definitions: the matrix K, sums over support vectors, and models that are written out as
//! sums over members, pairs of classes and support vectors.
#![allow(clippy::unwrap_used, missing_docs)]

mod by_definition;

use by_definition::{assert_defined, assert_optimal, kernel_value};
use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::internals::Watch;
use svml::internals::kernel::{Gram, Outer, backend, expand};
use svml::{Criterion, Error, Form, Generator, Kernel, Matrix, Metric, Model, Remedy, Svml};

const KERNELS: [Kernel; 3] = [Kernel::Gaussian, Kernel::Exponential, Kernel::Laplacian];
const FORMS: [Form; 4] = [Form::Sphere, Form::Diagonal, Form::Full, Form::Rank(2)];

/// Every kernel with every form that it allows.
fn settings() -> impl Iterator<Item = (Kernel, Form)> {
    let all = KERNELS.into_iter().flat_map(|kernel| FORMS.map(|form| (kernel, form)));
    all.filter(|(kernel, form)| kernel.allows(*form))
}

fn random_metric(form: Form, d: usize, rng: &mut ChaCha8Rng) -> Metric {
    let values = (0..form.len(d)).map(|_| rng.random_range(0.1..0.6) / (d as f64).sqrt()).collect();
    Metric::new(form, d, values).unwrap()
}

fn unit(n: usize, at: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(u8::from(i == at))).collect()
}

fn close(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() < 1e-12, "{what}: {a} and {b}");
}

/// The derivative in a full L comes from mapped rows where there are fewer rows than columns: as from all entries of Q.
#[test]
fn derivatives_in_a_full_form_of_few_and_many_rows() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let d = 9;
    let many = Matrix::from_fn(12, d, |_, _| rng.random_range(-1.0..1.0));
    let few = many.select_rows(&(0..5).collect::<Vec<_>>());
    let metric = random_metric(Form::Full, d, &mut rng);
    let (rows, cols) = ([0, 1, 4], [1, 2, 3]);
    let (left, right) = ([0.5, -1.0, 2.0], [1.0, 0.25, -0.5]);
    let outer = [Outer { rows: &rows, left: &left, cols: &cols, right: &right }];
    for kernel in [Kernel::Gaussian, Kernel::Exponential] {
        let derivative = |x: &Matrix| {
            let gram = backend().gram(x, x.rows(), &metric, kernel, &Watch::default()).unwrap();
            gram.contract(&outer).unwrap()
        };
        let (a, b) = (derivative(&few), derivative(&many));
        assert_eq!(a.len(), d * d);
        a.iter().zip(&b).for_each(|(a, b)| close(*a, *b, &kernel.to_string()));
    }
}

/// Few rows, several tiles of rows, and so many columns that tiles are narrow.
#[test]
fn entries_of_the_matrix() {
    for (n, d) in [(1, 2), (40, 2), (150, 5), (700, 3), (90, 700)] {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let mut x = Matrix::from_fn(n, d, |_, _| rng.random_range(-2.0..2.0));
        // Some rows coincide.
        for i in (3..n).step_by(7) {
            let row = x.row(i - 3).to_vec();
            x.row_mut(i).copy_from_slice(&row);
        }
        for (kernel, form) in settings() {
            let metric = random_metric(form, d, &mut rng);
            let cols = n.div_ceil(2);
            let gram = backend().gram(&x, cols, &metric, kernel, &Watch::default()).unwrap();
            check_entries(&*gram, &x, cols, kernel, &metric);
        }
    }
}

fn check_entries(gram: &dyn Gram, x: &Matrix, cols: usize, kernel: Kernel, metric: &Metric) {
    let (n, form) = (x.rows(), metric.form());
    let (all, chosen): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (0..cols).collect());
    let what = format!("{kernel} {form}, {n} rows of {}", x.cols());
    for j in (0..cols).step_by(1 + cols / 9) {
        let column = gram.multiply(&all, &[j], &[1.0]);
        assert_eq!(column[j], 1.0, "{what}");
        for (i, k) in column.iter().enumerate() {
            close(*k, kernel_value(kernel, metric, x.row(i), x.row(j)), &what);
            // Rows that coincide have distance 0, where the rough kernels are not smooth.
            if kernel != Kernel::Gaussian && x.row(i) == x.row(j) && form != Form::Full {
                assert!((*k - 1.0).abs() < 1e-14, "{what}: {k}");
            }
        }
        let transposed = gram.multiply_transposed(&all, &chosen, &unit(n, j));
        (0..cols).for_each(|i| close(transposed[i], column[i], &what));
    }
}

/// A metric that is set later is as good as one from the start.
#[test]
fn another_metric_of_the_same_kernel() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let x = Matrix::from_fn(80, 4, |_, _| rng.random_range(-2.0..2.0));
    for (kernel, form) in settings() {
        let (first, second) = (random_metric(form, 4, &mut rng), random_metric(form, 4, &mut rng));
        let mut gram = backend().gram(&x, 80, &first, kernel, &Watch::default()).unwrap();
        gram.prefetch(&[0, 5, 79]);
        gram.set_metric(&second).unwrap();
        check_entries(&*gram, &x, 80, kernel, &second);
    }
}

#[test]
fn sums_over_support_vectors() {
    for (n, support, d) in [(1, 1, 1), (70, 30, 3), (130, 600, 2), (10, 40, 300), (5, 0, 2)] {
        let mut rng = ChaCha8Rng::seed_from_u64(n as u64);
        let mut random =
            |r: usize, c: usize| Matrix::from_fn(r, c, |_, _| rng.random_range(-1.0..1.0));
        let (x, s, beta) = (random(n, d), random(support, d), random(3, support));
        for (kernel, form) in settings().filter(|(_, form)| form.rows(d) <= d) {
            let metric = random_metric(form, d, &mut ChaCha8Rng::seed_from_u64(7));
            let (z, mapped) = (metric.transform(&x), metric.transform(&s));
            let sums = expand(kernel, &z, &mapped, &beta);
            assert_eq!((sums.rows(), sums.cols()), (n, 3));
            for i in 0..n {
                let k: Vec<f64> =
                    s.iter_rows().map(|s| kernel_value(kernel, &metric, x.row(i), s)).collect();
                for (b, beta) in beta.iter_rows().enumerate() {
                    let expected: f64 = beta.iter().zip(&k).map(|(beta, k)| beta * k).sum();
                    close(sums[(i, b)], expected, &format!("{kernel} {form}"));
                }
            }
        }
    }
}

/// What a fitted model predicts is what its parts say, for each kernel and form and for the mean of several.
#[test]
fn models_predict_what_their_members_say() {
    for classes in [2, 3, 4] {
        let generator = Generator { rows: 110, classes, noise: 3, ..Generator::default() };
        let train = generator.generate().unwrap().data;
        let test = Generator { rows: 60, seed: 1, ..generator }.generate().unwrap().data;
        for (kernel, form) in settings() {
            let form_choice = form.into();
            let params = Svml { kernel, form: form_choice, max_iterations: 4, ..Svml::default() };
            let model = Model::fit(&train, &params).unwrap();
            let what = format!("{kernel} {form}, {classes} classes");
            assert_eq!(model.members().len(), 1);
            let member = &model.members()[0];
            assert_eq!((member.kernel(), member.weight()), (kernel, 1.0));
            assert_eq!((member.metric(), member.metric().form()), (model.metric(), form));
            assert_eq!(model.cost(), Some(member.cost()));
            assert_eq!((model.beta(), model.bias()), (member.beta(), member.bias()));
            assert_defined(&model, test.x(), &what);
            assert!(model.report().residual < 1e-8, "{what}");
            for step in &model.report().trace {
                let svml = step.svml.unwrap();
                assert_eq!((svml.kernel, svml.form), (Some(kernel), Some(form)), "{what}");
            }
        }
        let model = Model::fit(&train, Svml::default()).unwrap();
        assert!(model.members().len() > 1, "{:?}", model.report().candidates);
        assert!(model.beta().as_slice().is_empty() && model.bias().is_empty());
        assert_eq!(model.cost(), None);
        assert_defined(&model, test.x(), &format!("mean, {classes} classes"));
    }
}

#[test]
fn training_and_prediction_agree() {
    let data = Generator { rows: 120, noise: 3, ..Generator::default() }.generate().unwrap().data;
    let weights: Vec<f64> = (0..120).map(|i| [0.5, 1.0, 2.25][i % 3]).collect();
    let data = data.with_weights(weights.clone()).unwrap();
    for (kernel, form) in settings() {
        for criterion in [Criterion::KFold(2), Criterion::HoldOut, Criterion::LeaveOneOut] {
            let params =
                Svml { kernel, form: form.into(), criterion, max_iterations: 5, ..Svml::default() };
            let model = Model::fit(&data, &params).unwrap();
            assert_optimal(&model, data.x(), data.y(), &weights, &format!("{criterion}"));
        }
    }
}

#[test]
fn what_a_kernel_does_not_allow_is_refused() {
    let data = Generator { rows: 60, ..Generator::default() }.generate().unwrap().data;
    for form in [Form::Full, Form::Rank(2)] {
        let params = Svml { kernel: Kernel::Laplacian, form: form.into(), ..Svml::default() };
        let error = Model::fit(&data, &params).unwrap_err();
        assert!(matches!(&error, Error::Parameter { name, .. } if name == "form"), "{error}");
    }
    for kernel in [Kernel::Exponential, Kernel::Laplacian] {
        // The mean has kernels of its own.
        let error = Model::fit(&data, Svml { kernel, ..Svml::default() }).unwrap_err();
        assert!(matches!(&error, Error::Parameter { name, .. } if name == "kernel"), "{error}");
        assert_eq!(kernel.to_string().parse::<Kernel>().unwrap(), kernel);
    }
    let message = "rbf".parse::<Kernel>().unwrap_err().to_string();
    assert!(message.contains("rbf") && message.contains("laplacian"), "{message}");
}

/// LIBSVM knows one SVM with a Gaussian kernel, and no mean.
#[test]
fn only_one_gaussian_member_is_for_libsvm() {
    let data = Generator { rows: 80, noise: 2, ..Generator::default() }.generate().unwrap().data;
    let fit = |kernel: Kernel| {
        let form = Form::Diagonal.into();
        Model::fit(&data, Svml { kernel, form, ..Svml::default() }).unwrap()
    };
    assert!(fit(Kernel::Gaussian).to_libsvm(false).is_ok());
    let mean = Model::fit(&data, Svml::default()).unwrap();
    for model in [fit(Kernel::Exponential), fit(Kernel::Laplacian), mean] {
        let error = model.to_libsvm(false).unwrap_err();
        assert!(matches!(error, Error::NotForLibsvm), "{error}");
        assert_eq!(error.remedy(), Some(Remedy::TrainOneGaussian));
    }
}
