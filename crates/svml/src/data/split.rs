//! Seeded, stratified splits that depend on what the rows hold, not on where they stand.
//!
//! Rows are ordered by a hash of their content and the seed. The same rows in another order, or
//! with further rows added, keep their relative order, so that results do not depend on the order
//! of the file.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::linalg::Matrix;

/// Training, validation and hold-out rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The machine is trained on these.
    pub train: Vec<usize>,
    /// The smooth error is measured on these.
    pub valid: Vec<usize>,
    /// These decide when to stop.
    pub hold: Vec<usize>,
}

/// Row indices ordered by a seeded hash of features and class; ties by content, so that only
/// identical rows remain in the order given.
pub fn hash_order(x: &Matrix, class: &[usize], seed: u64) -> Vec<usize> {
    let hashes: Vec<u64> = (0..x.rows())
        .map(|i| {
            let start = mix(seed ^ mix(class[i] as u64));
            x.row(i).iter().fold(start, |h, v| mix(h ^ canonical_bits(*v)))
        })
        .collect();
    let mut order: Vec<usize> = (0..x.rows()).collect();
    order.sort_by(|&a, &b| {
        let content = |i: usize| x.row(i).iter().map(|v| canonical_bits(*v));
        hashes[a]
            .cmp(&hashes[b])
            .then_with(|| content(a).cmp(content(b)))
            .then_with(|| class[a].cmp(&class[b]))
    });
    order
}

/// Cuts each class, in the given order of rows, into half for training, a quarter for validation
/// and a quarter for the hold-out; what does not divide goes to training first, then to
/// validation, so that a rare class is always trained on. Every part is ascending.
pub fn halve_twice(class: &[usize]) -> Split {
    let mut split = Split::default();
    let classes = class.iter().max().map_or(0, |c| c + 1);
    for c in 0..classes {
        let rows: Vec<usize> = (0..class.len()).filter(|&i| class[i] == c).collect();
        let train = rows.len().div_ceil(2);
        let valid = (rows.len() - train).div_ceil(2);
        split.train.extend(&rows[..train]);
        split.valid.extend(&rows[train..train + valid]);
        split.hold.extend(&rows[train + valid..]);
    }
    split.train.sort_unstable();
    split.valid.sort_unstable();
    split.hold.sort_unstable();
    split
}

/// A random four fifths of `rows` row indices, to train on, and the rest, to test on.
pub fn random_split(rows: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut train: Vec<usize> = (0..rows).collect();
    train.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let test = train.split_off(rows * 4 / 5);
    (train, test)
}

/// The fold (0..k) of each row: within each class, rows in the given order are dealt out in turn.
pub fn fold_of(class: &[usize], k: usize) -> Vec<usize> {
    // Each class starts at another fold, so that small classes do not crowd the first.
    deal(class, |c, i| i + c, k)
}

/// As [`fold_of`], dealt anew: the rows of a fold of the first deal are spread over all folds.
pub fn fold_of_again(class: &[usize], k: usize) -> Vec<usize> {
    deal(class, |c, i| i + i / k.max(1) + 2 * c, k)
}

/// Deals out rows by class and number within it.
fn deal(class: &[usize], place: impl Fn(usize, usize) -> usize, k: usize) -> Vec<usize> {
    let mut dealt = vec![0; class.iter().max().map_or(0, |c| c + 1)];
    class
        .iter()
        .map(|&c| {
            dealt[c] += 1;
            place(c, dealt[c] - 1) % k.max(1)
        })
        .collect()
}

/// One value for both zeros and one for all NaN.
fn canonical_bits(v: f64) -> u64 {
    if v.is_nan() { f64::NAN.to_bits() } else { (v + 0.0).to_bits() }
}

/// The finaliser of splitmix64: every input bit moves every output bit.
fn mix(v: u64) -> u64 {
    let v = v.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let v = (v ^ (v >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let v = (v ^ (v >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    v ^ (v >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_order_does_not_depend_on_the_order_of_rows() {
        let x = Matrix::from_fn(50, 2, |i, j| ((i * 7 + j * 3) % 13) as f64);
        let class: Vec<usize> = (0..50).map(|i| i % 2).collect();
        let content = |order: &[usize], x: &Matrix| {
            order.iter().map(|&i| x.row(i).to_vec()).collect::<Vec<_>>()
        };
        let forward = content(&hash_order(&x, &class, 1), &x);
        let back: Vec<usize> = (0..50).rev().collect();
        let (x_back, class_back) =
            (x.select_rows(&back), back.iter().map(|&i| class[i]).collect::<Vec<_>>());
        assert_eq!(forward, content(&hash_order(&x_back, &class_back, 1), &x_back));
        assert_ne!(forward, content(&hash_order(&x, &class, 2), &x));
        assert_eq!(canonical_bits(-0.0), canonical_bits(0.0));
    }

    #[test]
    fn halves_are_stratified_and_keep_rare_classes_in_training() {
        let class: Vec<usize> = (0..107).map(|i| usize::from(i % 10 == 0)).collect();
        let split = halve_twice(&class);
        let count = |rows: &[usize], c| rows.iter().filter(|&&i| class[i] == c).count();
        assert_eq!(
            [count(&split.train, 0), count(&split.valid, 0), count(&split.hold, 0)],
            [48, 24, 24]
        );
        assert_eq!(
            [count(&split.train, 1), count(&split.valid, 1), count(&split.hold, 1)],
            [6, 3, 2]
        );
        let mut all = [split.train, split.valid, split.hold].concat();
        all.sort_unstable();
        assert_eq!(all, (0..107).collect::<Vec<_>>());
        assert_eq!(
            halve_twice(&[0, 0, 1]),
            Split { train: vec![0, 2], valid: vec![1], hold: vec![] }
        );
    }

    #[test]
    fn random_splits_are_four_to_one_and_differ_by_seed() {
        let (train, test) = random_split(11, 3);
        assert_eq!((train.len(), test.len()), (8, 3));
        let mut all = [train.clone(), test].concat();
        all.sort_unstable();
        assert_eq!(all, (0..11).collect::<Vec<_>>());
        assert_eq!(random_split(11, 3).0, train);
        assert_ne!(random_split(11, 4).0, train);
    }

    #[test]
    fn folds_are_balanced_within_classes() {
        let class: Vec<usize> = (0..100).map(|i| usize::from(i % 4 == 0)).collect();
        let folds = fold_of(&class, 5);
        for fold in 0..5 {
            let of = |c| (0..100).filter(|&i| folds[i] == fold && class[i] == c).count();
            assert_eq!([of(0), of(1)], [15, 5]);
        }
    }
}
