//! Folds: seeded, stratified divisions of rows that depend on the content of the rows, not on their order.
//!
//! Rows are ordered by a hash of their content and the seed. The same rows in another order, or
//! with further rows added, keep their relative order, so that results do not depend on the order
//! of the file.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::linalg::Matrix;

/// Some of the rows, ascending. A row that stands for several copies may be in several parts, with some of them in
/// each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The rows.
    pub rows: Vec<usize>,
    /// How many copies of each row are in this part.
    pub copies: Vec<u64>,
}

impl Part {
    /// Several parts as one.
    pub fn joined(parts: &[&Part]) -> Self {
        let all = parts.iter().flat_map(|part| part.rows.iter().copied().zip(&part.copies));
        let mut counts = std::collections::BTreeMap::new();
        all.for_each(|(row, copies)| *counts.entry(row).or_insert(0) += copies);
        let (rows, copies) = counts.into_iter().unzip();
        Self { rows, copies }
    }

    fn push(&mut self, row: usize, copies: u64) {
        if copies > 0 {
            self.rows.push(row);
            self.copies.push(copies);
        }
    }
}

/// A division of the rows: some to train on, the others to validate with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fold {
    /// Rows to train on.
    pub train: Part,
    /// Rows to validate with.
    pub valid: Part,
}

/// The paper's division into three parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrainValidStop {
    /// The SVM is trained on these.
    pub train: Part,
    /// The smooth error is measured on these.
    pub valid: Part,
    /// These decide when to stop.
    pub stop: Part,
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

/// Rows as they are dealt into folds: the class of each and, where they stand for several copies, how many.
#[derive(Clone, Copy, Debug)]
pub struct Dealt<'a> {
    /// Class of each row.
    pub class: &'a [usize],
    /// Copies of each row; none: one of each.
    pub copies: Option<&'a [u64]>,
}

impl Dealt<'_> {
    /// How many copies there are of all rows together.
    pub fn total(self) -> u64 {
        self.numbered().map(|(_, _, copies, _)| copies).sum()
    }

    /// The rows with their classes, their copies, and how many copies of rows of their class come before.
    fn numbered(self) -> impl Iterator<Item = (usize, usize, u64, u64)> {
        let mut before = vec![0; self.class.iter().max().map_or(0, |c| c + 1)];
        let Self { class, copies } = self;
        (0..class.len()).map(move |row| {
            let (c, copies) = (class[row], copies.map_or(1, |copies| copies[row]));
            before[c] += copies;
            (row, c, copies, before[c] - copies)
        })
    }
}

/// Cuts each class, in the given order of rows, into half for training, a quarter for validation
/// and a quarter for early stopping. Rows left over by the division go to training first, then to
/// validation, so that a rare class is always trained on. Every part is ascending.
pub fn train_valid_stop(rows: Dealt<'_>) -> TrainValidStop {
    let mut totals = vec![0_u64; rows.class.iter().max().map_or(0, |c| c + 1)];
    rows.numbered().for_each(|(_, class, copies, _)| totals[class] += copies);
    let mut split = TrainValidStop::default();
    for (row, class, copies, before) in rows.numbered() {
        let train = totals[class].div_ceil(2);
        let valid = train + (totals[class] - train).div_ceil(2);
        // Copies below `edge`.
        let below = |edge: u64| edge.saturating_sub(before).min(copies);
        split.train.push(row, below(train));
        split.valid.push(row, below(valid) - below(train));
        split.stop.push(row, copies - below(valid));
    }
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
pub fn halves(rows: Dealt<'_>) -> Fold {
    let train = train_valid_stop(rows).train;
    let mut valid = Part::default();
    let mut trained = train.rows.iter().zip(&train.copies).peekable();
    for (row, _, copies, _) in rows.numbered() {
        let taken = trained.next_if(|(r, _)| **r == row).map_or(0, |(_, copies)| *copies);
        valid.push(row, copies - taken);
    }
    Fold { train, valid }
}

/// Stratified folds: within each class the copies of rows, in the given order, are dealt out in turn. There are
/// `k`, or as many as copies if these are fewer.
pub fn stratified(rows: Dealt<'_>, k: usize) -> Vec<Fold> {
    let k = (k as u64).min(rows.total()).max(1);
    let mut folds = vec![Fold::default(); k as usize];
    for (row, class, copies, before) in rows.numbered() {
        // Each class starts at another fold, so that small classes do not crowd the first.
        let first = (before + class as u64) % k;
        for (f, fold) in folds.iter_mut().enumerate() {
            let turn = (f as u64 + k - first) % k;
            let out = copies / k + u64::from(turn < copies % k);
            fold.valid.push(row, out);
            fold.train.push(row, copies - out);
        }
    }
    folds
}

/// Other stratified folds of the same rows for every `deal` but the first, 0: where copies are dealt out in turn, each
/// turn starts at another fold. The work grows with the number of copies.
pub fn dealt_again(rows: Dealt<'_>, k: usize, deal: u64) -> Vec<Fold> {
    let mut folds = stratified(rows, k);
    if deal == 0 {
        return folds;
    }
    let k = folds.len() as u64;
    folds.fill(Fold::default());
    for (row, class, copies, before) in rows.numbered() {
        let mut out = vec![0; folds.len()];
        for copy in before..before + copies {
            let start = mix(mix(deal ^ mix(class as u64)) ^ (copy / k));
            out[((copy % k + start % k) % k) as usize] += 1;
        }
        for (fold, out) in folds.iter_mut().zip(out) {
            fold.valid.push(row, out);
            fold.train.push(row, copies - out);
        }
    }
    folds
}

/// Row numbers of `k` stratified folds of rows in a random order: for each those to train on and those to
/// validate with.
pub fn shuffled(class: &[usize], k: usize, seed: u64) -> Vec<(Vec<usize>, Vec<usize>)> {
    let (first, rest) = random_split(class.len(), seed);
    let order = [first, rest].concat();
    let shuffled: Vec<usize> = order.iter().map(|&row| class[row]).collect();
    let back = |part: &Part| {
        let mut rows: Vec<usize> = part.rows.iter().map(|&i| order[i]).collect();
        rows.sort_unstable();
        rows
    };
    let folds = stratified(Dealt { class: &shuffled, copies: None }, k);
    folds.iter().map(|fold| (back(&fold.train), back(&fold.valid))).collect()
}

/// One value for both zeros and one for all NaN.
fn canonical_bits(v: f64) -> u64 {
    if v.is_nan() { f64::NAN.to_bits() } else { (v + 0.0).to_bits() }
}

/// The finaliser of splitmix64: every input bit influences every output bit.
pub(crate) fn mix(v: u64) -> u64 {
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

    fn dealt(class: &[usize]) -> Dealt<'_> {
        Dealt { class, copies: None }
    }

    #[test]
    fn halves_are_stratified_and_keep_rare_classes_in_training() {
        let class: Vec<usize> = (0..107).map(|i| usize::from(i % 10 == 0)).collect();
        let split = train_valid_stop(dealt(&class));
        let count = |part: &Part, c| part.rows.iter().filter(|&&i| class[i] == c).count();
        let parts = [&split.train, &split.valid, &split.stop];
        assert_eq!(parts.map(|part| count(part, 0)), [48, 24, 24]);
        assert_eq!(parts.map(|part| count(part, 1)), [6, 3, 2]);
        let mut all = parts.map(|part| part.rows.clone()).concat();
        all.sort_unstable();
        assert_eq!(all, (0..107).collect::<Vec<_>>());
        let few = train_valid_stop(dealt(&[0, 0, 1]));
        assert_eq!((few.train.rows, few.valid.rows, few.stop.rows), (vec![0, 2], vec![1], vec![]));
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
        let plain = stratified(dealt(&class), 5).into_iter().map(|f| (f.train.rows, f.valid.rows));
        for folds in [plain.collect(), shuffled(&class, 5, 1)] {
            let mut seen: Vec<usize> = folds.iter().flat_map(|(_, valid)| valid.clone()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
            for (train, valid) in folds {
                let of = |c| valid.iter().filter(|&&i| class[i] == c).count();
                assert_eq!([of(0), of(1)], [15, 5]);
                assert_eq!(train.len(), 80);
                assert!(train.iter().all(|row| !valid.contains(row)));
                assert!(train.is_sorted() && valid.is_sorted());
            }
        }
        assert_eq!(stratified(dealt(&[0, 1, 0]), 10).len(), 3);
    }

    #[test]
    fn halves_share_each_class() {
        let class: Vec<usize> = (0..90).map(|i| usize::from(i % 3 == 0)).collect();
        let Fold { train, valid } = halves(dealt(&class));
        assert_eq!(train.rows.len() + valid.rows.len(), 90);
        for c in 0..2 {
            let count = |part: &Part| part.rows.iter().filter(|&&i| class[i] == c).count();
            assert!(matches!(count(&train) - count(&valid), 0 | 1));
        }
    }

    /// A row of three copies is dealt as the row three times would be.
    #[test]
    fn copies_are_dealt_like_rows() {
        let (class, copies) = ([0, 1, 0, 0, 1, 1, 0], [3, 1, 1, 7, 2, 1, 4]);
        let row: Vec<usize> = (0..7).flat_map(|i| vec![i; copies[i] as usize]).collect();
        let single: Vec<usize> = row.iter().map(|&i| class[i]).collect();
        let merged = |part: &Part| {
            let mut counts = [0_u64; 7];
            part.rows.iter().for_each(|&i| counts[row[i]] += 1);
            counts
        };
        let counted = |part: &Part| {
            let mut counts = [0_u64; 7];
            part.rows.iter().zip(&part.copies).for_each(|(&i, &c)| counts[i] += c);
            counts
        };
        let together = Dealt { class: &class, copies: Some(&copies) };
        for k in [2, 3, 5] {
            let folds = stratified(together, k).into_iter().zip(stratified(dealt(&single), k));
            for (a, b) in folds {
                assert_eq!(counted(&a.train), merged(&b.train), "{k}");
                assert_eq!(counted(&a.valid), merged(&b.valid), "{k}");
            }
        }
        let (a, b) = (halves(together), halves(dealt(&single)));
        assert_eq!((counted(&a.train), counted(&a.valid)), (merged(&b.train), merged(&b.valid)));
        let (a, b) = (train_valid_stop(together), train_valid_stop(dealt(&single)));
        assert_eq!(counted(&a.stop), merged(&b.stop));
    }
}
