//! Vectorised loops over one row of distances or weights, used by the kernel matrix, the learners for
//! nearest neighbours and the nearest-neighbour classifier. Like the loops of `exp.rs`, they are
//! compiled for several instruction sets.

use super::instructions::{dispatch, mul_add};
use super::matrix::Matrix;

dispatch! {
    /// The sum, in 16 fixed lanes, so that its order is always the same.
    fn sum(row: &[f64]) -> f64 = sum_body
}

dispatch! {
    /// The smallest `row[j] + other[j]`; infinity if the rows are empty.
    fn least_sum(row: &[f64], other: &[f64]) -> f64 = least_sum_body
}

dispatch! {
    /// How many `row[j] + other[j]` are below `bound`.
    fn count_below(row: &[f64], other: &[f64], bound: f64) -> usize = count_below_body
}

dispatch! {
    /// `row *= factor`, then `sums += row`.
    fn scale_and_sum(row: &mut [f64], factor: f64, sums: &mut [f64]) = scale_and_sum_body
}

dispatch! {
    /// `row += factor * other`.
    fn add_scaled(row: &mut [f64], factor: f64, other: &[f64]) = add_scaled_body
}

dispatch! {
    /// Rotates neighbouring rows of `width` numbers: rows 0 and 1 by the first (c, s), `(a, b) = (c a + s b, c b - s a)`, then rows
    /// 1 and 2 by the second, and so on.
    fn rotate_rows(rows: &mut [f64], width: usize, rotations: &[(f64, f64)]) = rotate_rows_body
}

dispatch! {
    /// `row += sum_j factors[j] columns[j][first..first + n]`, where n is the length of `row`.
    fn add_columns(row: &mut [f64], columns: &[&[f64]], factors: &[f64], first: usize) = add_columns_body
}

dispatch! {
    /// `out[c width + i] = sum_k factors[4 k + c] z[k width + i]` for c = 0 .. 3. Every sum runs in the order of k,
    /// so that an entry has the same bits wherever it stands in the matrix; the matrix products of a library do
    /// not promise that. `width` must be a multiple of [`LANES`].
    fn four_products(out: &mut [f64], factors: &[f64], z: &[f64], width: usize) = four_products_body
}

dispatch! {
    /// Squared distances of four points to the points of a tile, from differences of coordinates: exactly zero between
    /// equal points. `points` has four values for each coordinate, `z` has `width`, a multiple of `LANES`.
    fn four_sq_dists(out: &mut [f64], points: &[f64], z: &[f64], width: usize) = four_sq_dists_body
}

dispatch! {
    /// As [`four_sq_dists`] for sums of absolute differences.
    fn four_abs_dists(out: &mut [f64], points: &[f64], z: &[f64], width: usize) = four_abs_dists_body
}

dispatch! {
    /// sum_j w_j |x - xs_j|.
    fn abs_differences(w: &[f64], x: f64, xs: &[f64]) -> f64 = abs_differences_body
}

dispatch! {
    /// sum_j w_j sign(x - xs_j), with sign(0) = 0.
    fn sign_differences(w: &[f64], x: f64, xs: &[f64]) -> f64 = sign_differences_body
}

dispatch! {
    /// `out = m v` for a symmetric matrix m, stored row after row.
    fn symmetric_times(m: &[f64], v: &[f64], out: &mut [f64]) = symmetric_times_body
}

dispatch! {
    /// `m += factor v v'` for a matrix m, stored row after row.
    fn add_outer(m: &mut [f64], factor: f64, v: &[f64]) = add_outer_body
}

dispatch! {
    /// Squared distances from `z` to the columns of `points`, starting with column `first`. They are
    /// sums of squared coordinate differences, so that equal points have distance exactly zero and a
    /// distance has the same bits in whichever column its point stands.
    fn sq_dists(out: &mut [f64], z: &[f64], points: &Matrix, first: usize) = sq_dists_body
}

dispatch! {
    /// Appends (`offset` + j, squared distance) for every j whose squared distance
    /// `row[j] + (sq_norm + sq_norms[j])` is below `bound`, where `row[j] = -2 z'z_j`.
    fn closer_than(
        row: &[f64], sq_norm: f64, sq_norms: &[f64], bound: f64, offset: usize, found: &mut Vec<(usize, f64)>
    ) = closer_than_body
}

/// Number of values that a loop handles at a time.
pub(crate) const LANES: usize = 16;

#[inline(always)]
fn sum_body<const FMA: bool>(row: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let blocks = row.chunks_exact(LANES);
    let rest = blocks.remainder();
    for block in blocks {
        for l in 0..LANES {
            lanes[l] += block[l];
        }
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, v)| *lane += v);
    lanes.iter().sum()
}

#[inline(always)]
fn least_sum_body<const FMA: bool>(row: &[f64], other: &[f64]) -> f64 {
    let mut lanes = [f64::INFINITY; LANES];
    let (blocks, others) = (row.chunks_exact(LANES), other.chunks_exact(LANES));
    let rest = blocks.remainder().iter().zip(others.remainder());
    let rest = rest.map(|(v, other)| v + other).fold(f64::INFINITY, f64::min);
    for (block, other) in blocks.zip(others) {
        for l in 0..LANES {
            let sum = block[l] + other[l];
            lanes[l] = if sum < lanes[l] { sum } else { lanes[l] };
        }
    }
    lanes.iter().copied().fold(rest, f64::min)
}

#[inline(always)]
fn count_below_body<const FMA: bool>(row: &[f64], other: &[f64], bound: f64) -> usize {
    row.iter().zip(other).map(|(v, other)| usize::from(v + other < bound)).sum()
}

#[inline(always)]
fn scale_and_sum_body<const FMA: bool>(row: &mut [f64], factor: f64, sums: &mut [f64]) {
    for (v, sum) in row.iter_mut().zip(sums) {
        *v *= factor;
        *sum += *v;
    }
}

#[inline(always)]
fn add_scaled_body<const FMA: bool>(row: &mut [f64], factor: f64, other: &[f64]) {
    for (v, other) in row.iter_mut().zip(other) {
        *v = mul_add::<FMA>(factor, *other, *v);
    }
}

#[inline(always)]
fn rotate_rows_body<const FMA: bool>(rows: &mut [f64], width: usize, rotations: &[(f64, f64)]) {
    // Some columns at a time: the row that two rotations share stays in registers between them.
    const MANY: usize = 64;
    const FEW: usize = 8;
    let mut first = 0;
    while first + MANY <= width {
        rotate_columns::<FMA, MANY>(&mut rows[first..], width, rotations);
        first += MANY;
    }
    while first + FEW <= width {
        rotate_columns::<FMA, FEW>(&mut rows[first..], width, rotations);
        first += FEW;
    }
    for column in first..width {
        rotate_columns::<FMA, 1>(&mut rows[column..], width, rotations);
    }
}

#[inline(always)]
fn rotate_columns<const FMA: bool, const N: usize>(
    rows: &mut [f64],
    width: usize,
    rotations: &[(f64, f64)],
) {
    let Some(mut a) = rows.first_chunk::<N>().copied() else { return };
    for (k, &(c, s)) in rotations.iter().enumerate() {
        let (above, below) = rows[k * width..].split_at_mut(width);
        let (Some(to), Some(b)) = (above.first_chunk_mut::<N>(), below.first_chunk::<N>()) else {
            return;
        };
        for l in 0..N {
            to[l] = mul_add::<FMA>(s, b[l], c * a[l]);
            a[l] = mul_add::<FMA>(-s, a[l], c * b[l]);
        }
    }
    if let Some(last) = rows[rotations.len() * width..].first_chunk_mut::<N>() {
        *last = a;
    }
}

#[inline(always)]
fn add_columns_body<const FMA: bool>(
    row: &mut [f64],
    columns: &[&[f64]],
    factors: &[f64],
    first: usize,
) {
    // Four columns at a time, so that the sums are loaded and stored less often.
    let range = first..first + row.len();
    let (fours, factors_of_four) = (columns.chunks_exact(4), factors.chunks_exact(4));
    let rest = fours.remainder().iter().zip(factors_of_four.remainder());
    for (k, v) in fours.zip(factors_of_four) {
        let (a, b) = (&k[0][range.clone()], &k[1][range.clone()]);
        let (c, d) = (&k[2][range.clone()], &k[3][range.clone()]);
        for ((((sum, a), b), c), d) in row.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let two = mul_add::<FMA>(v[1], *b, mul_add::<FMA>(v[0], *a, *sum));
            *sum = mul_add::<FMA>(v[3], *d, mul_add::<FMA>(v[2], *c, two));
        }
    }
    rest.for_each(|(k, v)| add_scaled_body::<FMA>(row, *v, &k[range.clone()]));
}

#[inline(always)]
fn four_products_body<const FMA: bool>(out: &mut [f64], factors: &[f64], z: &[f64], width: usize) {
    for i in (0..width).step_by(LANES) {
        let mut sums = [[0.0; LANES]; 4];
        for (z, factors) in z.chunks_exact(width).zip(factors.chunks_exact(4)) {
            let z = &z[i..i + LANES];
            for c in 0..4 {
                for l in 0..LANES {
                    sums[c][l] = mul_add::<FMA>(factors[c], z[l], sums[c][l]);
                }
            }
        }
        for (c, sums) in sums.iter().enumerate() {
            out[c * width + i..c * width + i + LANES].copy_from_slice(sums);
        }
    }
}

#[inline(always)]
fn four_sq_dists_body<const FMA: bool>(out: &mut [f64], points: &[f64], z: &[f64], width: usize) {
    four_sums(out, points, z, width, |sum, difference| mul_add::<FMA>(difference, difference, sum));
}

#[inline(always)]
fn four_abs_dists_body<const FMA: bool>(out: &mut [f64], points: &[f64], z: &[f64], width: usize) {
    four_sums(out, points, z, width, |sum, difference| sum + difference.abs());
}

/// Adds up `add(sum, point - z)` over the coordinates. The sums of one point are an array of fixed size, which the
/// compiler keeps in registers.
#[inline(always)]
fn four_sums(
    out: &mut [f64],
    points: &[f64],
    z: &[f64],
    width: usize,
    add: impl Fn(f64, f64) -> f64,
) {
    for i in (0..width).step_by(LANES) {
        let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
        let (mut c, mut d) = ([0.0; LANES], [0.0; LANES]);
        for (z, points) in z.chunks_exact(width).zip(points.chunks_exact(4)) {
            let (Some(z), Some(&[p, q, r, s])) =
                (z[i..].first_chunk::<LANES>(), points.first_chunk::<4>())
            else {
                return;
            };
            for l in 0..LANES {
                a[l] = add(a[l], p - z[l]);
            }
            for l in 0..LANES {
                b[l] = add(b[l], q - z[l]);
            }
            for l in 0..LANES {
                c[l] = add(c[l], r - z[l]);
            }
            for l in 0..LANES {
                d[l] = add(d[l], s - z[l]);
            }
        }
        for (k, sums) in [a, b, c, d].iter().enumerate() {
            out[k * width + i..k * width + i + LANES].copy_from_slice(sums);
        }
    }
}

#[inline(always)]
fn abs_differences_body<const FMA: bool>(w: &[f64], x: f64, xs: &[f64]) -> f64 {
    weighted_sum::<FMA>(w, xs, |other| (x - other).abs())
}

#[inline(always)]
fn sign_differences_body<const FMA: bool>(w: &[f64], x: f64, xs: &[f64]) -> f64 {
    weighted_sum::<FMA>(w, xs, |other| {
        f64::from(u8::from(x > other)) - f64::from(u8::from(x < other))
    })
}

/// sum_j w_j f(xs_j), in fixed lanes.
#[inline(always)]
fn weighted_sum<const FMA: bool>(w: &[f64], xs: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let n = w.len().min(xs.len());
    let (w, xs) = (&w[..n], &xs[..n]);
    let mut lanes = [0.0; LANES];
    let (blocks, others) = (w.chunks_exact(LANES), xs.chunks_exact(LANES));
    let (rest, others_rest) = (blocks.remainder(), others.remainder());
    for (w, xs) in blocks.zip(others) {
        for l in 0..LANES {
            lanes[l] = mul_add::<FMA>(w[l], f(xs[l]), lanes[l]);
        }
    }
    for (l, (w, x)) in rest.iter().zip(others_rest).enumerate() {
        lanes[l] = mul_add::<FMA>(*w, f(*x), lanes[l]);
    }
    lanes.iter().sum()
}

#[inline(always)]
fn symmetric_times_body<const FMA: bool>(m: &[f64], v: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for (row, v) in m.chunks_exact(out.len().max(1)).zip(v) {
        add_scaled_body::<FMA>(out, *v, row);
    }
}

#[inline(always)]
fn add_outer_body<const FMA: bool>(m: &mut [f64], factor: f64, v: &[f64]) {
    for (row, left) in m.chunks_exact_mut(v.len().max(1)).zip(v) {
        add_scaled_body::<FMA>(row, factor * left, v);
    }
}

#[inline(always)]
fn sq_dists_body<const FMA: bool>(out: &mut [f64], z: &[f64], points: &Matrix, first: usize) {
    out.fill(0.0);
    let width = out.len();
    for (z, coordinate) in z.iter().zip(points.iter_rows()) {
        for (out, c) in out.iter_mut().zip(&coordinate[first..first + width]) {
            let difference = z - c;
            *out = mul_add::<FMA>(difference, difference, *out);
        }
    }
}

#[inline(always)]
fn closer_than_body<const FMA: bool>(
    row: &[f64],
    sq_norm: f64,
    sq_norms: &[f64],
    bound: f64,
    offset: usize,
    found: &mut Vec<(usize, f64)>,
) {
    let bound = bound - sq_norm;
    // Most values are not below the bound: blocks without any such value are skipped as a whole.
    for (b, (row, norms)) in row.chunks(LANES).zip(sq_norms.chunks(LANES)).enumerate() {
        let mut sums = [f64::INFINITY; LANES];
        for ((sum, v), norm) in sums.iter_mut().zip(row).zip(norms) {
            *sum = v + norm;
        }
        if sums.iter().fold(false, |any, sum| any | (*sum < bound)) {
            for (l, sum) in sums.iter().enumerate().filter(|(_, sum)| **sum < bound) {
                found.push((offset + b * LANES + l, (sum + sq_norm).max(0.0)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_length() {
        for n in 0..70 {
            let row: Vec<f64> = (0..n).map(f64::from).collect();
            assert_eq!(sum(&row), row.iter().sum::<f64>());
            let falling: Vec<f64> = row.iter().map(|v| -2.0 * v).collect();
            let least = if n > 0 { f64::from(1 - n) } else { f64::INFINITY };
            assert_eq!(least_sum(&row, &falling), least);
            let below = (0..n).filter(|v| -v < -3).count();
            assert_eq!(count_below(&row, &falling, -3.0), below);
            let (mut scaled, mut sums) = (row.clone(), vec![1.0; row.len()]);
            scale_and_sum(&mut scaled, 2.0, &mut sums);
            add_scaled(&mut scaled, -1.0, &row);
            assert_eq!(scaled, row);
            assert!(sums.iter().zip(&row).all(|(s, v)| *s == 1.0 + 2.0 * v));
        }
    }

    #[test]
    fn outer_products_and_products() {
        for d in 1..20 {
            let v: Vec<f64> = (0..d).map(|k| f64::from(k) - 3.0).collect();
            let mut m = vec![0.0; v.len() * v.len()];
            add_outer(&mut m, 0.5, &v);
            let mut out = vec![0.0; v.len()];
            symmetric_times(&m, &v, &mut out);
            let square: f64 = v.iter().map(|v| v * v).sum();
            assert!(out.iter().zip(&v).all(|(out, v)| *out == 0.5 * v * square));
        }
    }

    #[test]
    fn distances_and_those_below_a_bound() {
        let points = Matrix::from_fn(3, 50, |k, j| ((j * 7 + k * 5) % 11) as f64 * 0.25);
        let z = [0.5, 1.25, 2.0];
        let mut out = vec![0.0; 40];
        sq_dists(&mut out, &z, &points, 5);
        let exact: Vec<f64> =
            (5..45).map(|j| (0..3).map(|k| (z[k] - points[(k, j)]).powi(2)).sum::<f64>()).collect();
        assert_eq!(out, exact);
        let norm: f64 = z.iter().map(|z| z * z).sum();
        let norms: Vec<f64> =
            (5..45).map(|j| (0..3).map(|k| points[(k, j)].powi(2)).sum()).collect();
        let products: Vec<f64> =
            (5..45).map(|j| -2.0 * (0..3).map(|k| z[k] * points[(k, j)]).sum::<f64>()).collect();
        let mut found = Vec::new();
        closer_than(&products, norm, &norms, 2.0, 5, &mut found);
        let expected: Vec<usize> = (0..40).filter(|&j| exact[j] < 2.0).map(|j| j + 5).collect();
        assert_eq!(found.iter().map(|(j, _)| *j).collect::<Vec<_>>(), expected);
        assert!(found.iter().all(|(j, q)| (q - exact[j - 5]).abs() < 1e-14));
    }
}
