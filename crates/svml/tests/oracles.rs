//! The SVM against LIBSVM, against an independent solver, and against its own optimality conditions.
#![allow(clippy::unwrap_used, missing_docs)]

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::Deserialize;
use svml::internals::Watch;
use svml::internals::kernel::{self, Gram, expand};
use svml::internals::svm::{Problem, Trained, solve};
use svml::{Form, Kernel, Matrix, Metric};

const KERNELS: [Kernel; 3] = [Kernel::Gaussian, Kernel::Exponential, Kernel::Laplacian];

/// The kernel matrix of all rows.
fn gram_of<'a>(x: &'a Matrix, metric: &Metric, kernel: Kernel) -> Box<dyn Gram + 'a> {
    kernel::backend().gram(x, x.rows(), metric, kernel, &Watch::default()).unwrap()
}

/// k between two mapped rows, by its definition.
fn value(kernel: Kernel, a: &[f64], b: &[f64]) -> f64 {
    let differences = || a.iter().zip(b).map(|(a, b)| a - b);
    let sq: f64 = differences().map(|d| d * d).sum();
    match kernel {
        Kernel::Gaussian => (-sq).exp(),
        Kernel::Exponential => (-sq.sqrt()).exp(),
        _ => (-differences().map(f64::abs).sum::<f64>()).exp(),
    }
}

#[derive(Deserialize)]
struct Oracle {
    problems: Vec<Stored>,
}

#[derive(Deserialize)]
struct Stored {
    x: Vec<Vec<f64>>,
    y: Vec<f64>,
    l: Vec<Vec<f64>>,
    cost: f64,
    new: Vec<Vec<f64>>,
    decision: Vec<f64>,
    support: Vec<usize>,
}

/// tests/data/libsvm_oracle.json was made by tests/data/libsvm_oracle.py with LIBSVM 3.37, whose
/// kernel cache is in single precision.
#[test]
fn agrees_with_libsvm_on_the_precomputed_kernel_with_ridge() {
    let oracle: Oracle = serde_json::from_str(include_str!("data/libsvm_oracle.json")).unwrap();
    assert_eq!(oracle.problems.len(), 10);
    for (p, stored) in oracle.problems.iter().enumerate() {
        let x = Matrix::from_rows(&stored.x).unwrap();
        let l = Matrix::from_rows(&stored.l).unwrap();
        let metric = Metric::new(Form::Rank(l.rows()), l.cols(), l.into_vec()).unwrap();
        let gram = gram_of(&x, &metric, Kernel::Gaussian);
        let rows: Vec<usize> = (0..x.rows()).collect();
        let cost = vec![stored.cost; rows.len()];
        let problem = Problem { gram: &*gram, rows: &rows, y: &stored.y, cost: &cost };
        let Trained { svm, residual, .. } = solve(&problem, None).unwrap().trained;
        assert!(residual <= 1e-8, "problem {p}: residual {residual:e}");
        let support = metric.transform(&x.select_rows(&svm.support));
        let new = metric.transform(&Matrix::from_rows(&stored.new).unwrap());
        let beta = Matrix::from_rows(&[&svm.beta]).unwrap();
        let ours = expand(Kernel::Gaussian, &new, &support, &beta).into_vec();
        let ours: Vec<f64> = ours.iter().map(|sum| sum + svm.bias).collect();
        let scale = stored.decision.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        for (ours, theirs) in ours.iter().zip(&stored.decision) {
            let off = (ours - theirs).abs() / scale;
            assert!(off < 1e-3, "problem {p}: {ours} here, {theirs} by LIBSVM");
            assert_eq!(*ours > 0.0, *theirs > 0.0, "problem {p}");
        }
        // Support vectors with a negligible weight are the only ones that may differ.
        for row in 0..x.rows() {
            let ours = svm.support.binary_search(&row).map_or(0.0, |i| svm.beta[i].abs());
            if !stored.support.contains(&row) {
                assert!(ours < 1e-3 * stored.cost.max(1.0), "problem {p}: row {row} has {ours}");
            }
        }
    }
}

struct Random {
    x: Matrix,
    y: Vec<f64>,
    cost: Vec<f64>,
    metric: Metric,
    kernel: Kernel,
}

/// A random problem; the kernel goes round with the seed.
fn random(seed: u64) -> Random {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (n, d) = (rng.random_range(2..120usize), rng.random_range(1..6));
    let x = Matrix::from_fn(n, d, |_, _| rng.random_range(-2.0..2.0));
    let mut y: Vec<f64> = (0..n)
        .map(|i| if x[(i, 0)] + rng.random_range(-0.7..0.7) > 0.0 { 1.0 } else { -1.0 })
        .collect();
    (y[0], y[1]) = (1.0, -1.0);
    let base = 10f64.powf(rng.random_range(-2.0..2.5));
    let cost = (0..n).map(|_| base * rng.random_range(0.2..3.0)).collect();
    let metric = Metric::isotropic(Form::Sphere, d, rng.random_range(0.1..3.0)).unwrap();
    Random { x, y, cost, metric, kernel: KERNELS[seed as usize % 3] }
}

/// Minimises the same objective by another road: projected coordinate ascent on the dual
/// max sum alpha - 1/2 alpha' (Q + diag(1/C)) alpha with sum alpha y = 0, by pairs of rows.
fn dual_by_pairs(k: &Matrix, y: &[f64], cost: &[f64]) -> (Vec<f64>, f64) {
    let n = y.len();
    let mut alpha = vec![0.0; n];
    // g_i = y_i - (sum_j K_ij beta_j + beta_i / C_i): equal to b for all free rows at the optimum.
    let mut g = y.to_vec();
    for _ in 0..2_000_000 {
        let up =
            (0..n).filter(|&i| y[i] > 0.0 || alpha[i] > 0.0).max_by(|&i, &j| g[i].total_cmp(&g[j]));
        let low =
            (0..n).filter(|&i| y[i] < 0.0 || alpha[i] > 0.0).min_by(|&i, &j| g[i].total_cmp(&g[j]));
        let (i, j) = (up.unwrap(), low.unwrap());
        if g[i] - g[j] < 1e-12 {
            break;
        }
        let curvature = k[(i, i)] + k[(j, j)] - 2.0 * k[(i, j)] + 1.0 / cost[i] + 1.0 / cost[j];
        let mut step = (g[i] - g[j]) / curvature;
        if y[i] < 0.0 {
            step = step.min(alpha[i]);
        }
        if y[j] > 0.0 {
            step = step.min(alpha[j]);
        }
        alpha[i] += y[i] * step;
        alpha[j] -= y[j] * step;
        for r in 0..n {
            g[r] -= step * (k[(r, i)] - k[(r, j)]);
        }
        g[i] -= step / cost[i];
        g[j] += step / cost[j];
    }
    let free: Vec<f64> = (0..n).filter(|&i| alpha[i] > 1e-9).map(|i| g[i]).collect();
    let b = free.iter().sum::<f64>() / free.len() as f64;
    let f = (0..n).map(|r| b + (0..n).map(|j| k[(r, j)] * alpha[j] * y[j]).sum::<f64>()).collect();
    (f, b)
}

#[test]
fn agrees_with_an_independent_dual_solver() {
    for seed in 0..500 {
        let Random { x, y, cost, metric, kernel } = random(seed);
        let gram = gram_of(&x, &metric, kernel);
        let rows: Vec<usize> = (0..x.rows()).collect();
        let problem = Problem { gram: &*gram, rows: &rows, y: &y, cost: &cost };
        let solution = solve(&problem, None).unwrap();
        let Trained { outputs, residual, .. } = &solution.trained;
        assert!(*residual <= 1e-8, "seed {seed}: residual {residual:e}");
        let z = metric.transform(&x);
        let k = Matrix::from_fn(x.rows(), x.rows(), |i, j| value(kernel, z.row(i), z.row(j)));
        let (f, _) = dual_by_pairs(&k, &y, &cost);
        for (ours, theirs) in outputs.iter().zip(&f) {
            assert!((ours - theirs).abs() < 1e-8, "seed {seed}: {ours} and {theirs}");
        }
    }
}

#[test]
fn any_start_leads_to_the_same_machine() {
    for seed in 0..60 {
        let Random { x, y, cost, metric, kernel } = random(1000 + seed);
        let gram = gram_of(&x, &metric, kernel);
        let rows: Vec<usize> = (0..x.rows()).collect();
        let problem = Problem { gram: &*gram, rows: &rows, y: &y, cost: &cost };
        let cold = solve(&problem, None).unwrap().trained;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let some: Vec<usize> = rows.iter().copied().filter(|_| rng.random_bool(0.3)).collect();
        let one_class: Vec<usize> = rows.iter().copied().filter(|&i| y[i] > 0.0).collect();
        for start in [&some, &one_class, &cold.svm.support, &vec![], &vec![0]] {
            let warm = solve(&problem, Some(start)).unwrap().trained;
            assert!(warm.residual <= 1e-8, "seed {seed}: residual {:e}", warm.residual);
            for (a, b) in warm.outputs.iter().zip(&cold.outputs) {
                assert!((a - b).abs() < 1e-8, "seed {seed}");
            }
        }
        assert_eq!(solve(&problem, Some(&cold.svm.support)).unwrap().trained.steps, 1);
    }
}

/// From 1,000 rows on a cold start is a guess from features; it must not show in the machine.
#[test]
fn a_guessed_start_leads_to_the_same_machine_in_fewer_steps() {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let n = 1200;
    let x = Matrix::from_fn(n, 4, |_, _| rng.random_range(-2.0..2.0));
    let label = |i: usize| if x[(i, 0)] * x[(i, 1)] > 0.0 { 1.0 } else { -1.0 };
    let y: Vec<f64> =
        (0..n).map(|i| if rng.random_bool(0.1) { -label(i) } else { label(i) }).collect();
    let rows: Vec<usize> = (0..n).collect();
    let gaussian =
        [(4.0, 0.1), (2.0, 10.0), (0.5, 1.0), (1e-4, 1.0)].map(|s| (Kernel::Gaussian, s));
    let rough = [Kernel::Exponential, Kernel::Laplacian].map(|kernel| (kernel, (8.0, 1.0)));
    for (kernel, (width, base)) in gaussian.into_iter().chain(rough) {
        let metric = Metric::isotropic(Form::Sphere, 4, 1.0 / width).unwrap();
        let gram = gram_of(&x, &metric, kernel);
        let cost: Vec<f64> = (0..n).map(|i| base * [1.0, 0.3, 2.0][i % 3]).collect();
        let problem = Problem { gram: &*gram, rows: &rows, y: &y, cost: &cost };
        let (guessed, known) =
            (solve(&problem, None).unwrap().trained, solve(&problem, Some(&rows)).unwrap().trained);
        assert!(guessed.residual <= 1e-8 && known.residual <= 1e-8, "width {width}, C {base}");
        assert_eq!(guessed.svm.support, known.svm.support, "width {width}, C {base}");
        for (a, b) in guessed.outputs.iter().zip(&known.outputs) {
            assert!((a - b).abs() < 1e-8, "width {width}, C {base}: {a} {b}");
        }
        if width >= 2.0 && kernel == Kernel::Gaussian {
            assert!(guessed.steps < known.steps, "{} and {} steps", guessed.steps, known.steps);
        }
    }
}

/// An SVM on some rows of a larger kernel is the SVM on those rows alone.
#[test]
fn a_subset_of_rows_is_a_problem_of_its_own() {
    for seed in 7..10 {
        let Random { x, y, cost, metric, kernel } = random(seed);
        let some: Vec<usize> = (0..x.rows()).filter(|i| i % 3 != 1).collect();
        let pick = |v: &[f64]| some.iter().map(|&i| v[i]).collect::<Vec<_>>();
        let (y_some, cost_some) = (pick(&y), pick(&cost));
        let gram = gram_of(&x, &metric, kernel);
        let part = Problem { gram: &*gram, rows: &some, y: &y_some, cost: &cost_some };
        let part = solve(&part, None).unwrap().trained;
        let x_some = x.select_rows(&some);
        let alone_gram = gram_of(&x_some, &metric, kernel);
        let all: Vec<usize> = (0..some.len()).collect();
        let alone = Problem { gram: &*alone_gram, rows: &all, y: &y_some, cost: &cost_some };
        let alone = solve(&alone, None).unwrap().trained;
        for (a, b) in part.outputs.iter().zip(&alone.outputs) {
            assert!((a - b).abs() < 1e-10);
        }
        let back: Vec<usize> = alone.svm.support.iter().map(|&i| some[i]).collect();
        assert_eq!(part.svm.support, back);
    }
}

/// A factorisation moved to another set solves the same systems as a fresh one.
#[test]
fn an_updated_factorisation_solves_like_a_fresh_one() {
    for seed in 0..40 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let n = rng.random_range(20..300usize);
        let x = Matrix::from_fn(n, 3, |_, _| rng.random_range(-2.0..2.0));
        let metric = Metric::isotropic(Form::Sphere, 3, 0.8).unwrap();
        let gram = gram_of(&x, &metric, KERNELS[seed as usize % 3]);
        let ridge: Vec<f64> = (0..n).map(|_| rng.random_range(0.01..2.0)).collect();
        let pick = |set: &[usize]| set.iter().map(|&i| ridge[i]).collect::<Vec<_>>();
        let mut set: Vec<usize> = (0..n).filter(|_| rng.random_bool(0.7)).collect();
        let mut moved = gram.factor(&set, &pick(&set)).unwrap();
        for _ in 0..5 {
            // Mostly a few rows change, sometimes many.
            let share = if rng.random_bool(0.8) { 0.04 } else { 0.5 };
            set =
                (0..n).filter(|i| set.binary_search(i).is_ok() != rng.random_bool(share)).collect();
            moved.update(&set, &pick(&set)).unwrap();
            let fresh = gram.factor(&set, &pick(&set)).unwrap();
            let rhs: Vec<f64> = set.iter().map(|_| rng.random_range(-1.0..1.0)).collect();
            let (mut a, mut b) = (rhs.clone(), rhs);
            moved.solve(&mut a);
            fresh.solve(&mut b);
            for (a, b) in a.iter().zip(&b) {
                assert!((a - b).abs() < 1e-9, "seed {seed}");
            }
        }
    }
}

/// Leave-one-out margins against SVMs that were really trained without the row. The formula
/// holds while no other row enters or leaves S, so only those problems are compared.
#[test]
fn leave_one_out_margins_are_those_of_refitting() {
    // Of each kernel.
    let (mut compared, mut skipped) = ([0; 3], [0; 3]);
    for seed in 0..24 {
        let Random { x, y, cost, metric, kernel } = random(2000 + seed);
        let gram = gram_of(&x, &metric, kernel);
        let rows: Vec<usize> = (0..x.rows()).collect();
        let problem = Problem { gram: &*gram, rows: &rows, y: &y, cost: &cost };
        // A warm start from a neighbouring set leaves a border around the factor in some cases.
        let cold = solve(&problem, None).unwrap();
        let near: Vec<usize> = cold.trained.svm.support.iter().copied().skip(1).collect();
        for solution in [solve(&problem, Some(&near)).unwrap(), cold] {
            let quick = solution.leave_one_out_outputs(&rows, &y, &rows, &vec![1.0; rows.len()]);
            for (out, quick) in quick.into_iter().enumerate() {
                let others: Vec<usize> = rows.iter().copied().filter(|&i| i != out).collect();
                let pick = |v: &[f64]| others.iter().map(|&i| v[i]).collect::<Vec<_>>();
                let (y_others, cost_others) = (pick(&y), pick(&cost));
                let part =
                    Problem { gram: &*gram, rows: &others, y: &y_others, cost: &cost_others };
                let svm = solve(&part, None).unwrap().trained.svm;
                let before: Vec<usize> =
                    solution.trained.svm.support.iter().copied().filter(|&i| i != out).collect();
                if svm.support != before {
                    skipped[seed as usize % 3] += 1;
                    continue;
                }
                let f = gram.multiply(&[out], &svm.support, &svm.beta)[0] + svm.bias;
                assert!((f - quick).abs() < 1e-7, "seed {seed}, row {out}: {f} {quick}");
                compared[seed as usize % 3] += 1;
            }
        }
    }
    let enough = compared.iter().zip(&skipped).all(|(compared, skipped)| compared > skipped);
    assert!(enough, "{compared:?} compared, {skipped:?} skipped");
}
