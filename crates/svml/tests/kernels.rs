//! The kernels against their definitions: the matrix K, sums over support vectors, and models that are written out as
//! sums over members, pairs of classes and support vectors.
#![allow(clippy::unwrap_used, missing_docs)]

mod by_definition;

use by_definition::{assert_defined, assert_optimal, kernel_value};
use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use svml::internals::Watch;
use svml::internals::kernel::{Factor, Gram, Outer, backend, expand};
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

/// A system of a set of rows against products with K: solutions, the diagonal of the inverse, and the inverse of the
/// matrix that is bordered by ones with its derivative.
fn check_system(gram: &dyn Gram, factor: &dyn Factor, set: &[usize], ridge: &[f64], what: &str) {
    let n = set.len();
    // Columns of the inverse, one after the other, from all unit vectors at once.
    let mut inverse: Vec<f64> = (0..n).flat_map(|at| unit(n, at)).collect();
    factor.solve(&mut inverse);
    for (j, column) in inverse.chunks_exact(n).enumerate() {
        let product = gram.multiply(set, set, column);
        for i in 0..n {
            let found = product[i] + ridge[i] * column[i];
            let expected = f64::from(u8::from(i == j));
            assert!((found - expected).abs() < 1e-9, "{what}: entry {i}, {j}: {found}");
        }
    }
    let near = |found: f64, expected: f64, part: &str| {
        let off = (found - expected).abs();
        assert!(off < 1e-9 * expected.abs().max(1.0), "{what}, {part}: {found} for {expected}");
    };
    let every_third: Vec<usize> = (0..n).step_by(3).collect();
    for positions in [(0..n).collect(), every_third, vec![n - 1], vec![]] {
        let diagonal = factor.inverse_diagonal(&positions);
        assert_eq!(diagonal.len(), positions.len());
        for (&p, found) in positions.iter().zip(diagonal) {
            near(found, inverse[p * n + p], "diagonal of the inverse");
        }
    }
    let ones: Vec<f64> = inverse.chunks_exact(n).map(|column| column.iter().sum()).collect();
    let total: f64 = ones.iter().sum();
    let b = Matrix::from_fn(n, n, |i, j| inverse[i * n + j] - ones[i] * ones[j] / total);
    let bordered = factor.bordered_inverse(&ones).unwrap();
    for (i, found) in bordered.diagonal().into_iter().enumerate() {
        near(found, b[(i, i)], "diagonal of B");
    }
    // B diag(q) B is the sum of q_k times the outer product of row k with itself.
    let q: Vec<f64> = (0..n).map(|i| (i as f64 * 0.9).sin()).collect();
    let (gradient, diagonal) = bordered.contract(&q).unwrap();
    for (i, found) in diagonal.into_iter().enumerate() {
        let expected: f64 = (0..n).map(|k| b[(i, k)] * q[k] * b[(k, i)]).sum();
        near(found, expected, "diagonal of B q B");
    }
    let scaled = Matrix::from_fn(n, n, |k, i| q[k] * b[(k, i)]);
    let outers: Vec<Outer<'_>> = (0..n)
        .map(|k| Outer { rows: set, left: scaled.row(k), cols: set, right: b.row(k) })
        .collect();
    let expected = gram.contract(&outers).unwrap();
    assert_eq!(gradient.len(), expected.len());
    gradient.into_iter().zip(expected).for_each(|(a, b)| near(a, b, "derivative of B q B"));
}

/// Rows that enter and leave a set, a few and many, of more rows than a tile has; and a set that comes back.
#[test]
fn systems_of_a_set_that_moves() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for ((kernel, form), d) in settings().zip([3, 4, 200].into_iter().cycle()) {
        let x = Matrix::from_fn(170, d, |_, _| rng.random_range(-2.0..2.0));
        let metric = random_metric(form, d, &mut rng);
        let gram = backend().gram(&x, 170, &metric, kernel, &Watch::default()).unwrap();
        let ridge_of = |set: &[usize]| -> Vec<f64> {
            set.iter().map(|&i| 0.1 + 0.02 * (i % 7) as f64).collect()
        };
        let first: Vec<usize> = (0..140).collect();
        let moved: Vec<usize> = (0..155).filter(|i| i % 9 != 4).collect();
        let moved_on: Vec<usize> = (2..158).filter(|i| i % 11 != 4).collect();
        let other: Vec<usize> = (0..170).step_by(2).collect();
        let mut factor = gram.factor(&first, &ridge_of(&first)).unwrap();
        check_system(&*gram, &*factor, &first, &ridge_of(&first), &format!("{kernel} {form}"));
        for set in [&moved, &moved_on, &first, &first, &other, &first] {
            factor.update(set, &ridge_of(set)).unwrap();
            let what = format!("{kernel} {form}, {} rows of {d} columns", set.len());
            check_system(&*gram, &*factor, set, &ridge_of(set), &what);
        }
    }
}

/// Kernels of all widths come from the distances between rows, which are computed in tiles.
#[test]
fn kernels_of_any_width_from_distances() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let x = Matrix::from_fn(200, 3, |_, _| rng.random_range(-2.0..2.0));
    let distances = backend().distances(&x, &Watch::default()).unwrap();
    for inverse_width in [0.3, 1.0, 2.5] {
        let metric = Metric::isotropic(Form::Sphere, 3, inverse_width).unwrap();
        let gram = distances.gram(&metric, &Watch::default()).unwrap();
        check_entries(&*gram, &x, 200, Kernel::Gaussian, &metric);
    }
}

/// Products with a few rows that lie far apart are those with all rows.
#[test]
fn products_of_scattered_rows() {
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let x = Matrix::from_fn(400, 3, |_, _| rng.random_range(-1.0..1.0));
    let (rows, cols) = ([3, 120, 250, 399], [0, 7, 50, 90, 180]);
    for (kernel, form) in settings() {
        let metric = random_metric(form, 3, &mut rng);
        let gram = backend().gram(&x, 200, &metric, kernel, &Watch::default()).unwrap();
        let k = |i: usize, j: usize| kernel_value(kernel, &metric, x.row(i), x.row(j));
        let (v, w) = ([0.5, -1.0, 2.0, 0.25, -0.75], [1.0, -0.5, 0.25, 3.0]);
        for (&i, found) in rows.iter().zip(gram.multiply(&rows, &cols, &v)) {
            let expected: f64 = cols.iter().zip(v).map(|(&j, v)| v * k(i, j)).sum();
            close(found, expected, &format!("{kernel} {form}"));
        }
        for (&j, found) in cols.iter().zip(gram.multiply_transposed(&rows, &cols, &w)) {
            let expected: f64 = rows.iter().zip(w).map(|(&i, w)| w * k(i, j)).sum();
            close(found, expected, &format!("{kernel} {form}, transposed"));
        }
    }
}

/// Without weights nothing depends on the metric, and without rows there is nothing to contract.
#[test]
fn a_derivative_of_nothing_is_zero() {
    let x = Matrix::from_fn(9, 3, |i, k| (i * (k + 2)) as f64 * 0.3);
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for (kernel, form) in settings() {
        let metric = random_metric(form, 3, &mut rng);
        let gram = backend().gram(&x, 9, &metric, kernel, &Watch::default()).unwrap();
        let nothing = vec![0.0; form.len(3)];
        assert_eq!(gram.contract(&[]).unwrap(), nothing, "{kernel} {form}");
        let outer = Outer { rows: &[0, 4], left: &[1.0, 2.0], cols: &[], right: &[] };
        assert_eq!(gram.contract(&[outer]).unwrap(), nothing, "{kernel} {form}");
    }
}
