//! Eigenvalues and eigenvectors of a symmetric matrix: Householder's reflections make it tridiagonal, and implicit QR steps with
//! Wilkinson's shift make that diagonal (Golub and Van Loan, "Matrix Computations", sections 8.3.1 to 8.3.3).

use super::exp::dot_body;
use super::instructions::{dispatch, mul_add};
use super::loops::rotate_rows;
use super::{Matrix, add_scaled, dot};
use crate::parallel;

/// QR steps for each eigenvalue after which the iteration has failed. Two are usual.
const STEPS: usize = 60;
/// Entries beside the diagonal that are taken for zero, in a matrix whose largest entry is 1. They are far below what rounding
/// changes; without this bound matrices with entries of all sizes need very many steps.
const NEGLIGIBLE: f64 = f64::EPSILON * f64::EPSILON;
/// Rows that one task transforms.
const TASK: usize = 64;
/// Matrices of more rows are transformed on several threads.
const SEQUENTIAL: usize = 256;

/// Eigenvalues (descending) of a symmetric matrix, and the eigenvectors as rows in that order. Only the lower triangle is
/// read. `None` if the iteration fails, which does not happen for finite entries.
pub(crate) fn symmetric_eigen(a: &Matrix) -> Option<(Vec<f64>, Matrix)> {
    let n = a.rows();
    let lower = |i: usize, j: usize| a[(i.max(j), i.min(j))];
    let largest = (0..n).flat_map(|i| &a.row(i)[..=i]).fold(0.0, |m: f64, v| m.max(v.abs()));
    if (0..n).any(|i| a.row(i)[..=i].iter().any(|v| !v.is_finite())) {
        return None;
    }
    // With entries of at most 1 no square overflows.
    let scale = if largest > 0.0 { largest } else { 1.0 };
    let work = Matrix::from_fn(n, n, |i, j| lower(i, j) / scale);
    let (mut diagonal, mut beside, mut vectors) = tridiagonal(work);
    diagonalise(&mut diagonal, &mut beside, &mut vectors)?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| diagonal[j].total_cmp(&diagonal[i]));
    let values = order.iter().map(|&i| diagonal[i] * scale).collect();
    Some((values, vectors.select_rows(&order)))
}

/// Diagonal and sub-diagonal of T = Q' A Q, and Q'.
fn tridiagonal(mut a: Matrix) -> (Vec<f64>, Vec<f64>, Matrix) {
    let n = a.rows();
    // Reflection k is 1 - v v' with the v in row k of `reflections`, which is zero up to entry k. Before it, the matrix still has
    // to be reduced by v w' + w v' of the reflection before: each row is read once for both.
    let mut reflections = Matrix::zeros(n, n);
    let mut beside = vec![0.0; n.saturating_sub(1)];
    let (mut v, mut w) = (vec![0.0; n], vec![0.0; n]);
    for k in 0..n {
        let factors = (v[k], w[k]);
        reduce(&mut a.row_mut(k)[k..], factors, &v[k..], &w[k..], &[]);
        let from = k + 1;
        if from == n {
            break;
        }
        beside[k] = reflection(&a.row(k)[from..], &mut reflections.row_mut(k)[from..]);
        let next = &reflections.row(k)[from..];
        let mut products = vec![0.0; n];
        each_row(&mut a, from, &mut products[from..], |i, row| {
            reduce(row, (v[i], w[i]), &v[from..], &w[from..], next)
        });
        v.copy_from_slice(reflections.row(k));
        let half = dot(&products, &v) / 2.0;
        w.copy_from_slice(&products);
        add_scaled(&mut w, -half, &v);
    }
    let diagonal = (0..n).map(|i| a[(i, i)]).collect();
    let mut vectors = Matrix::from_fn(n, n, |i, j| if i == j { 1.0 } else { 0.0 });
    for from in (1..n).rev() {
        let v = &reflections.row(from - 1)[from..];
        each_row(&mut vectors, from, &mut vec![0.0; n - from], |_, row| reflect(row, v));
    }
    (diagonal, beside, vectors)
}

dispatch! {
    /// `row -= factors.0 w + factors.1 v`, and the product of that with `next`, which is as long as the row or empty.
    fn reduce(row: &mut [f64], factors: (f64, f64), v: &[f64], w: &[f64], next: &[f64]) -> f64 = reduce_body
}

#[inline(always)]
fn reduce_body<const FMA: bool>(
    row: &mut [f64],
    (a, b): (f64, f64),
    v: &[f64],
    w: &[f64],
    next: &[f64],
) -> f64 {
    for ((x, v), w) in row.iter_mut().zip(v).zip(w) {
        *x = mul_add::<FMA>(-b, *v, mul_add::<FMA>(-a, *w, *x));
    }
    dot_body::<FMA>(row, next)
}

dispatch! {
    /// `row -= (row v) v`. The result has no meaning.
    fn reflect(row: &mut [f64], v: &[f64]) -> f64 = reflect_body
}

#[inline(always)]
fn reflect_body<const FMA: bool>(row: &mut [f64], v: &[f64]) -> f64 {
    let product = dot_body::<FMA>(row, v);
    row.iter_mut().zip(v).for_each(|(x, v)| *x = mul_add::<FMA>(-product, *v, *x));
    product
}

/// The v of the reflection 1 - v v' that takes x to a multiple of the first unit vector, and that multiple.
fn reflection(x: &[f64], v: &mut [f64]) -> f64 {
    if x[1..].iter().all(|v| v.abs() < NEGLIGIBLE) {
        return x[0];
    }
    let norm = dot(x, x).sqrt();
    let first = if x[0] > 0.0 { x[0] + norm } else { x[0] - norm };
    // |v|^2 = 2: the norm of (first, x_1, ...) is sqrt(2 norm |first|).
    let factor = 1.0 / (norm * first.abs()).sqrt();
    v.iter_mut().zip(x).for_each(|(v, x)| *v = x * factor);
    v[0] = first * factor;
    if x[0] > 0.0 { -norm } else { norm }
}

/// What `act` returns for each row from `first` on, of which it gets the entries from `first` on.
fn each_row(
    rows: &mut Matrix,
    first: usize,
    values: &mut [f64],
    act: impl Fn(usize, &mut [f64]) -> f64 + Sync,
) {
    let n = rows.cols();
    let rows = rows.as_mut_slice()[first * n..].chunks_mut(TASK * n);
    let tasks = rows.zip(values.chunks_mut(TASK)).enumerate();
    let task = |(t, (rows, values)): (usize, (&mut [f64], &mut [f64]))| {
        for (r, (row, value)) in rows.chunks_exact_mut(n).zip(values).enumerate() {
            *value = act(first + t * TASK + r, &mut row[first..]);
        }
    };
    if n - first <= SEQUENTIAL { tasks.for_each(task) } else { parallel::for_each(tasks, task) }
}

/// QR steps until nothing is left beside the diagonal; the rotations are applied to the rows of `vectors`.
fn diagonalise(diagonal: &mut [f64], beside: &mut [f64], vectors: &mut Matrix) -> Option<()> {
    let (n, mut end) = (diagonal.len(), beside.len());
    let mut left = STEPS * n;
    let mut rotations = Vec::new();
    while end > 0 {
        let negligible = |i: usize, beside: &[f64]| {
            beside[i].abs() <= f64::EPSILON * (diagonal[i].abs() + diagonal[i + 1].abs())
                || beside[i].abs() < NEGLIGIBLE
        };
        if negligible(end - 1, beside) {
            end -= 1;
            continue;
        }
        let first = (0..end - 1).rev().find(|&i| negligible(i, beside)).map_or(0, |i| i + 1);
        left = left.checked_sub(1)?;
        rotations.clear();
        qr_step(&mut diagonal[first..=end], &mut beside[first..end], &mut rotations);
        rotate_rows(&mut vectors.as_mut_slice()[first * n..], n, &rotations);
    }
    Some(())
}

/// One QR step on an unreduced tridiagonal matrix, with its rotations (cosine, sine) of neighbouring rows.
fn qr_step(diagonal: &mut [f64], beside: &mut [f64], rotations: &mut Vec<(f64, f64)>) {
    let last = beside.len();
    let (corner, off) = (diagonal[last], beside[last - 1]);
    let delta = (diagonal[last - 1] - corner) / 2.0;
    let shift = corner - off / (delta / off + (delta / off).hypot(1.0).copysign(delta / off));
    let (mut x, mut z) = (diagonal[0] - shift, beside[0]);
    for k in 0..last {
        let r = x.hypot(z);
        let (c, s) = if r > 0.0 { (x / r, z / r) } else { (1.0, 0.0) };
        if k > 0 {
            beside[k - 1] = r;
        }
        let (a, b, d) = (diagonal[k], beside[k], diagonal[k + 1]);
        diagonal[k] = c * c * a + 2.0 * c * s * b + s * s * d;
        diagonal[k + 1] = s * s * a - 2.0 * c * s * b + c * c * d;
        beside[k] = (c - s) * (c + s) * b + c * s * (d - a);
        if k + 1 < last {
            (x, z) = (beside[k], s * beside[k + 1]);
            beside[k + 1] *= c;
        }
        rotations.push((c, s));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &Matrix, accuracy: f64) {
        let n = a.rows();
        let (values, vectors) = symmetric_eigen(a).unwrap();
        assert!(values.windows(2).all(|w| w[0] >= w[1]));
        let scale = a.as_slice().iter().fold(1e-300, |m: f64, v| m.max(v.abs())) * (n + 8) as f64;
        for (k, (value, v)) in values.iter().zip(vectors.iter_rows()).enumerate() {
            for i in 0..n {
                let av = dot(a.row(i), v);
                assert!((av - value * v[i]).abs() <= accuracy * scale, "{n}: {av}");
            }
            for (l, other) in vectors.iter_rows().enumerate() {
                let expected = if k == l { 1.0 } else { 0.0 };
                let found = dot(v, other);
                assert!((found - expected).abs() < accuracy * (n + 8) as f64, "{n}: {found}");
            }
        }
    }

    #[test]
    fn eigenvectors_of_many_kinds_of_matrices() {
        for n in [1, 2, 3, 5, 17, 40, 300] {
            check(&Matrix::from_fn(n, n, |i, j| 1.0 / (1.0 + i as f64 + j as f64)), 1e-15);
            check(&Matrix::from_fn(n, n, |i, j| if i == j { 3.0 } else { 0.0 }), 1e-15);
            check(&Matrix::from_fn(n, n, |_, _| 0.0), 1e-15);
            check(&Matrix::from_fn(n, n, |_, _| 1.0), 1e-15);
            let wave = |i: usize, j: usize| ((i * j + i + j) as f64).sin();
            check(&Matrix::from_fn(n, n, wave), 1e-15);
            check(&Matrix::from_fn(n, n, |i, j| wave(i, j) * 1e200), 1e-15);
            check(&Matrix::from_fn(n, n, |i, j| wave(i, j) * 1e-200), 1e-15);
            // Graded, in both directions.
            let graded = |i: usize, j: usize| wave(i, j) * 10f64.powi(-((i + j) as i32) / 2);
            check(&Matrix::from_fn(n, n, graded), 1e-15);
            check(&Matrix::from_fn(n, n, |i, j| graded(n - 1 - i, n - 1 - j)), 1e-15);
        }
    }

    #[test]
    fn only_the_lower_triangle_is_read_and_numbers_must_be_finite() {
        let full = Matrix::from_fn(6, 6, |i, j| ((i * j) as f64).cos());
        let half = Matrix::from_fn(6, 6, |i, j| if j > i { f64::NAN } else { full[(i, j)] });
        assert_eq!(symmetric_eigen(&half), symmetric_eigen(&full));
        for bad in [f64::NAN, f64::INFINITY] {
            let a = Matrix::from_fn(3, 3, |i, j| if i + j == 2 { bad } else { 1.0 });
            assert!(symmetric_eigen(&a).is_none());
        }
        assert_eq!(symmetric_eigen(&Matrix::empty()).unwrap().0, Vec::<f64>::new());
    }
}
