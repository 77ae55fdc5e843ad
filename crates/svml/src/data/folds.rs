//! Folds: seeded, stratified divisions of rows that depend on the content of the rows, not on their order.
//!
//! Rows are ordered by a hash of their content and the seed. The same rows in another order, or
//! with further rows added, keep their relative order, so that results do not depend on the order
//! of the file.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::linalg::Matrix;

/// A division of the rows: some to train on, the others to validate with. Both are ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    /// Rows to train on.
    pub train: Vec<usize>,
    /// Rows to validate with.
    pub valid: Vec<usize>,
}

/// The paper's division into three parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrainValidStop {
    /// The SVM is trained on these.
    pub train: Vec<usize>,
    /// The smooth error is measured on these.
    pub valid: Vec<usize>,
    /// These decide when to stop.
    pub stop: Vec<usize>,
}

/// Row indices ordered by a seeded hash of features and class; ties by content, so that only
/// identical rows remain in the order given.
pub fn content_order(x: &Matrix, class: &[usize], seed: u64) -> Vec<usize> {
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
/// and a quarter for early stopping. Rows left over by the division go to training first, then to
/// validation, so that a rare class is always trained on. Every part is ascending.
pub fn train_valid_stop(class: &[usize]) -> TrainValidStop {
    let mut split = TrainValidStop::default();
    let classes = class.iter().max().map_or(0, |c| c + 1);
    for c in 0..classes {
        let rows: Vec<usize> = (0..class.len()).filter(|&i| class[i] == c).collect();
        let train = rows.len().div_ceil(2);
        let valid = (rows.len() - train).div_ceil(2);
        split.train.extend(&rows[..train]);
        split.valid.extend(&rows[train..train + valid]);
        split.stop.extend(&rows[train + valid..]);
    }
    split.train.sort_unstable();
    split.valid.sort_unstable();
    split.stop.sort_unstable();
    split
}

/// A random four fifths of `rows` row indices, to train on, and the rest, to test on.
pub fn random_split(rows: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut train: Vec<usize> = (0..rows).collect();
    train.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let test = train.split_off(rows * 4 / 5);
    (train, test)
}

/// One division in halves, class by class: the first half of each class, in the given order of rows, trains.
pub fn halves(class: &[usize]) -> Fold {
    let train = train_valid_stop(class).train;
    let valid = (0..class.len()).filter(|row| train.binary_search(row).is_err()).collect();
    Fold { train, valid }
}

/// Stratified folds: the rows of each class, in the given order, go to the folds in turn. There are `k`
/// folds, or one per row if there are fewer rows.
pub fn stratified(class: &[usize], k: usize) -> Vec<Fold> {
    // Each class starts at another fold, so that small classes do not all go to the first folds.
    deal(class, k, |class, i, _| i + class)
}

/// Another set of stratified folds: the rows of each fold of [`stratified`] are spread over all folds of
/// this one.
pub fn dealt_again(class: &[usize], k: usize) -> Vec<Fold> {
    deal(class, k, |class, i, k| i + i / k + 2 * class)
}

/// As [`stratified`], with the rows in a random order.
pub fn shuffled(class: &[usize], k: usize, seed: u64) -> Vec<Fold> {
    let (first, rest) = random_split(class.len(), seed);
    let order = [first, rest].concat();
    let shuffled: Vec<usize> = order.iter().map(|&row| class[row]).collect();
    let back = |rows: &[usize]| {
        let mut rows: Vec<usize> = rows.iter().map(|&i| order[i]).collect();
        rows.sort_unstable();
        rows
    };
    (stratified(&shuffled, k).iter())
        .map(|fold| Fold { train: back(&fold.train), valid: back(&fold.valid) })
        .collect()
}

/// Assigns each row to the fold that it validates: `place(class of the row, its number within the class, k)`
/// modulo k.
fn deal(class: &[usize], k: usize, place: impl Fn(usize, usize, usize) -> usize) -> Vec<Fold> {
    let k = k.min(class.len()).max(1);
    let mut dealt = vec![0; class.iter().max().map_or(0, |c| c + 1)];
    let mut folds = vec![Fold::default(); k];
    for (row, &c) in class.iter().enumerate() {
        let out = place(c, dealt[c], k) % k;
        dealt[c] += 1;
        for (f, fold) in folds.iter_mut().enumerate() {
            if f == out { fold.valid.push(row) } else { fold.train.push(row) }
        }
    }
    folds
}

/// The bits of a number, the same for both zeros and the same for every NaN.
fn canonical_bits(v: f64) -> u64 {
    if v.is_nan() { f64::NAN.to_bits() } else { (v + 0.0).to_bits() }
}

/// The finaliser of splitmix64: every input bit influences every output bit.
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
    fn content_order_does_not_depend_on_the_order_of_rows() {
        let x = Matrix::from_fn(50, 2, |i, j| ((i * 7 + j * 3) % 13) as f64);
        let class: Vec<usize> = (0..50).map(|i| i % 2).collect();
        let content = |order: &[usize], x: &Matrix| {
            order.iter().map(|&i| x.row(i).to_vec()).collect::<Vec<_>>()
        };
        let forward = content(&content_order(&x, &class, 1), &x);
        let back: Vec<usize> = (0..50).rev().collect();
        let (x_back, class_back) =
            (x.select_rows(&back), back.iter().map(|&i| class[i]).collect::<Vec<_>>());
        assert_eq!(forward, content(&content_order(&x_back, &class_back, 1), &x_back));
        assert_ne!(forward, content(&content_order(&x, &class, 2), &x));
        assert_eq!(canonical_bits(-0.0), canonical_bits(0.0));
    }

    #[test]
    fn halves_are_stratified_and_keep_rare_classes_in_training() {
        let class: Vec<usize> = (0..107).map(|i| usize::from(i % 10 == 0)).collect();
        let split = train_valid_stop(&class);
        let count = |rows: &[usize], c| rows.iter().filter(|&&i| class[i] == c).count();
        assert_eq!(
            [count(&split.train, 0), count(&split.valid, 0), count(&split.stop, 0)],
            [48, 24, 24]
        );
        assert_eq!(
            [count(&split.train, 1), count(&split.valid, 1), count(&split.stop, 1)],
            [6, 3, 2]
        );
        let mut all = [split.train, split.valid, split.stop].concat();
        all.sort_unstable();
        assert_eq!(all, (0..107).collect::<Vec<_>>());
        assert_eq!(
            train_valid_stop(&[0, 0, 1]),
            TrainValidStop { train: vec![0, 2], valid: vec![1], stop: vec![] }
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
        for folds in [stratified(&class, 5), dealt_again(&class, 5), shuffled(&class, 5, 1)] {
            let mut seen: Vec<usize> = folds.iter().flat_map(|fold| fold.valid.clone()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
            for Fold { train, valid } in folds {
                let of = |c| valid.iter().filter(|&&i| class[i] == c).count();
                assert_eq!([of(0), of(1)], [15, 5]);
                assert_eq!(train.len(), 80);
                assert!(train.iter().all(|row| !valid.contains(row)));
                assert!(train.is_sorted() && valid.is_sorted());
            }
        }
        assert_eq!(stratified(&[0, 1, 0], 10).len(), 3);
    }

    #[test]
    fn halves_share_each_class() {
        let class: Vec<usize> = (0..90).map(|i| usize::from(i % 3 == 0)).collect();
        let Fold { train, valid } = halves(&class);
        assert_eq!(train.len() + valid.len(), 90);
        for c in 0..2 {
            let count = |rows: &[usize]| rows.iter().filter(|&&i| class[i] == c).count();
            assert!(matches!(count(&train) - count(&valid), 0 | 1));
        }
    }
}
