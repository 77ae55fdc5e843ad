//! The vectorised inner loops: exp of negative squared distances, and the dot product.

use super::instructions::{dispatch, mul_add};

dispatch! {
    /// Turns `row[j] = -2 z'z_j` into the kernel value `exp(-|z - z_j|^2)`, equation (4), where
    /// `sq_norm = |z|^2` and `sq_norms[j] = |z_j|^2`. A squared distance that rounding made negative
    /// counts as zero.
    fn exp_neg_sq_dist(row: &mut [f64], sq_norm: f64, sq_norms: &[f64]) = exp_neg_sq_dist_body
}

dispatch! {
    /// Turns each distance into exp(-distance).
    fn exp_neg_each(distances: &mut [f64]) = exp_neg_each_body
}

dispatch! {
    /// Turns each squared distance into exp(-distance).
    fn exp_neg_sqrt_each(sq_dists: &mut [f64]) = exp_neg_sqrt_each_body
}

dispatch! {
    /// Turns each kernel value k = exp(-r), 0 <= k <= 1, into k / (2 r): minus its derivative in r^2. It is 0 where
    /// k is, and where r is at most [`COINCIDING`].
    fn half_over_distance(k: &mut [f64]) = half_over_distance_body
}

dispatch! {
    /// Turns each kernel value k = exp(-r), 0 <= k <= 1, into k r; 0 where k is 0.
    fn times_distance(k: &mut [f64]) = times_distance_body
}

dispatch! {
    /// The dot product, summed in 16 fixed lanes.
    fn dot(a: &[f64], b: &[f64]) -> f64 = dot_body
}

#[inline(always)]
fn exp_neg_sq_dist_body<const FMA: bool>(row: &mut [f64], sq_norm: f64, sq_norms: &[f64]) {
    for (value, other) in row.iter_mut().zip(sq_norms) {
        let sq_dist = (*value + (sq_norm + other)).max(0.0);
        *value = exp_neg::<FMA>(-sq_dist);
    }
}

#[inline(always)]
fn exp_neg_each_body<const FMA: bool>(distances: &mut [f64]) {
    distances.iter_mut().for_each(|r| *r = exp_neg::<FMA>(-*r));
}

#[inline(always)]
fn exp_neg_sqrt_each_body<const FMA: bool>(sq_dists: &mut [f64]) {
    sq_dists.iter_mut().for_each(|s| *s = exp_neg::<FMA>(-s.sqrt()));
}

/// Rows that are closer than this count as equal in derivatives: they have a derivative of that size, and rounding in
/// sums with a factor 1/r would be larger than it.
const COINCIDING: f64 = 1e-7;

#[inline(always)]
fn half_over_distance_body<const FMA: bool>(k: &mut [f64]) {
    for k in k {
        let r = neg_ln::<FMA>(*k);
        // Where k is 0 so is the result, whatever the logarithm says.
        let value = *k / (2.0 * r);
        *k = if *k > 0.0 && r > COINCIDING { value } else { 0.0 };
    }
}

#[inline(always)]
fn times_distance_body<const FMA: bool>(k: &mut [f64]) {
    for k in k {
        let value = *k * neg_ln::<FMA>(*k);
        *k = if *k > 0.0 { value } else { 0.0 };
    }
}

/// -ln(x) for normal 0 < x <= 1, with a small relative error also where x is close to 1.
#[inline(always)]
fn neg_ln<const FMA: bool>(x: f64) -> f64 {
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // x = m 2^e with m in [1/sqrt 2, sqrt 2): the exponent is read off the bits, shifted so that m is centred.
    const SHIFT: u64 = 0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd;
    let bits = x.to_bits().wrapping_add(SHIFT);
    // The exponent as a number: its bits in the mantissa of 2^52.
    let e =
        f64::from_bits((bits >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1023.0);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(0x3fe6_a09e_667f_3bcd));
    // ln m = 2 atanh(f) = 2 (f + f^3/3 + ..), f = (m - 1)/(m + 1), |f| <= 0.1716.
    let f = (m - 1.0) / (m + 1.0);
    let s = f * f;
    const ODD: [f64; 10] = [
        1.0 / 21.0,
        1.0 / 19.0,
        1.0 / 17.0,
        1.0 / 15.0,
        1.0 / 13.0,
        1.0 / 11.0,
        1.0 / 9.0,
        1.0 / 7.0,
        1.0 / 5.0,
        1.0 / 3.0,
    ];
    let mut p = ODD[0];
    for &c in &ODD[1..] {
        p = mul_add::<FMA>(p, s, c);
    }
    let ln_m = 2.0 * mul_add::<FMA>(f * s, p, f);
    -mul_add::<FMA>(e, LN2_HIGH, mul_add::<FMA>(e, LN2_LOW, ln_m))
}

/// exp(x) for x <= 0, to within one unit in the last place. Below x = -708, near where exp(x) becomes
/// subnormal, the result is 0.
#[inline(always)]
fn exp_neg<const FMA: bool>(x: f64) -> f64 {
    // x = k ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^52 rounds to the integer k and leaves it
    // in the low bits; ln 2 is split in two so that k times the first part is exact.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const UNDERFLOW: f64 = -708.0;
    // 1/k!, k = 13 .. 2
    const TAYLOR: [f64; 12] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        1.0 / 2.0,
    ];
    let clamped = x.max(UNDERFLOW);
    let shifted = mul_add::<FMA>(clamped, std::f64::consts::LOG2_E, ROUND);
    let k = shifted - ROUND;
    let r = mul_add::<FMA>(k, -LN2_LOW, mul_add::<FMA>(k, -LN2_HIGH, clamped));
    let mut p = TAYLOR[0];
    for &c in &TAYLOR[1..] {
        p = mul_add::<FMA>(p, r, c);
    }
    // exp(r) = 1 + (r + r^2 p): the largest term is added last, to keep the precision of the others.
    let e = 1.0 + mul_add::<FMA>(r * r, p, r);
    // Times 2^k: k is in the low bits of `shifted` and is added to the exponent.
    let scaled = f64::from_bits(e.to_bits().wrapping_add(shifted.to_bits() << 52));
    if x < UNDERFLOW { 0.0 } else { scaled }
}

#[inline(always)]
pub(super) fn dot_body<const FMA: bool>(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 16;
    let n = a.len().min(b.len());
    let (a, b) = (&a[..n], &b[..n]);
    let mut lanes = [0.0; LANES];
    let (a_blocks, b_blocks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (a_rest, b_rest) = (a_blocks.remainder(), b_blocks.remainder());
    for (x, y) in a_blocks.zip(b_blocks) {
        for l in 0..LANES {
            lanes[l] = mul_add::<FMA>(x[l], y[l], lanes[l]);
        }
    }
    for (l, (x, y)) in a_rest.iter().zip(b_rest).enumerate() {
        lanes[l] = mul_add::<FMA>(*x, *y, lanes[l]);
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_those_of_the_standard_library() {
        let mut x = 1.0_f64;
        let mut values = vec![1.0, 1.0 - 1e-15, 1.0 - 1e-9, 0.75, 0.7071067811865475, 0.5, 1e-300];
        while x > 1e-300 {
            values.push(x);
            x *= 0.973;
        }
        for &x in &values {
            let (found, expected) = (neg_ln::<true>(x), -x.ln());
            assert!((found - expected).abs() <= 4e-16 * expected, "{x}: {found} {expected}");
        }
        let mut k = values.clone();
        half_over_distance(&mut k);
        // Rows that coincide, to within rounding, have no slope.
        assert_eq!(k[..3], [0.0; 3]);
        for (k, x) in k.iter().zip(&values).filter(|(_, x)| **x < 1.0 - 1e-6) {
            let expected = x / (-2.0 * x.ln());
            assert!((k - expected).abs() <= 1e-15 * expected, "{x}: {k} {expected}");
        }
        let mut zero = [0.0, 1.0];
        times_distance(&mut zero);
        assert_eq!(zero, [0.0, 0.0]);
    }

    fn exp_by_dispatch(x: &[f64]) -> Vec<f64> {
        // With zero norms the input is the negated squared distance itself.
        let mut row: Vec<f64> = x.iter().map(|v| -v).collect();
        exp_neg_sq_dist(&mut row, 0.0, &vec![0.0; x.len()]);
        row
    }

    #[test]
    fn exp_is_within_one_unit_of_the_standard_library() {
        // Miri takes a second for a hundred of them.
        let step = if cfg!(miri) { 499 } else { 1 };
        let x: Vec<f64> = (0..200_001).step_by(step).map(|i| -f64::from(i) * 3.539e-3).collect();
        let baseline: Vec<f64> = x.iter().map(|&v| exp_neg::<false>(v)).collect();
        for (values, name) in [(exp_by_dispatch(&x), "dispatched"), (baseline, "baseline")] {
            for (&x, &value) in x.iter().zip(&values) {
                let expected = x.exp();
                if x < -708.0 {
                    assert_eq!(value, 0.0, "{name} exp({x})");
                } else {
                    let ulps = value.to_bits().abs_diff(expected.to_bits());
                    assert!(ulps <= 1, "{name} exp({x}) = {value}, off by {ulps} units");
                }
            }
        }
    }

    #[test]
    fn exp_of_the_ends() {
        assert_eq!(exp_by_dispatch(&[0.0, -0.0, -1e-300, -1e300]), [1.0, 1.0, 1.0, 0.0]);
        // A squared distance that rounding made negative counts as zero.
        let mut row = [-2.0 - 1e-9];
        exp_neg_sq_dist(&mut row, 1.0, &[1.0]);
        assert_eq!(row[0], 1.0);
    }

    #[test]
    fn dot_of_every_short_length() {
        for n in 0..70 {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let expected: f64 = (0..n).map(|i| f64::from(i * i)).sum();
            assert_eq!(dot(&a, &a), expected);
        }
    }
}
