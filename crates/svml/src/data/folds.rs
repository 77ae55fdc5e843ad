//! Folds: seeded divisions of the observations that depend on the content of the rows, not on their order.
//!
//! Rows are ordered by a hash of their content and the seed, so that results do not depend on the order of the file. Every
//! observation is then dealt by itself, at random: equal rows are no more alike in the parts they go to than any
//! others, so that what a part says about a row has been learned from other observations only.
//!
//! Folds to learn with have as much of each class. Folds to estimate an error with must not: each would know from its own
//! share of a class how frequent it is in the others, and on rows without any signal the error of predicting the most
//! frequent class would come out too low, for two classes by 0.4 / sqrt(n).
//!
//! Rows of a group, such as those of one patient, are always in the same part.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use chacha20::ChaCha8Rng;
use rand::SeedableRng;
use rand::seq::SliceRandom;

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

/// Row indices ordered by a seeded hash of features and class; ties by content.
pub fn content_order(x: &Matrix, class: &[usize], seed: u64) -> Vec<usize> {
    content_order_with(x, class, seed, |_, _| Ordering::Equal)
}

/// The same, with equal rows of a class in the order that `next` gives them.
pub(crate) fn content_order_with(
    x: &Matrix,
    class: &[usize],
    seed: u64,
    next: impl Fn(usize, usize) -> Ordering,
) -> Vec<usize> {
    let hashes: Vec<u64> = (0..x.rows())
        .map(|i| {
            let start = mix(seed ^ mix(class[i] as u64));
            x.row(i).iter().fold(start, |h, v| mix(h ^ canonical_bits(*v)))
        })
        .collect();
    let mut order: Vec<usize> = (0..x.rows()).collect();
    order.sort_by(|&a, &b| {
        let content = |i: usize| x.row(i).iter().map(|v| canonical_bits(*v));
        (hashes[a].cmp(&hashes[b]))
            .then_with(|| content(a).cmp(content(b)))
            .then_with(|| class[a].cmp(&class[b]))
            .then_with(|| next(a, b))
    });
    order
}

/// Rows as they are dealt into folds: the class of each, how many observations it stands for, and the group it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Dealt<'a> {
    /// Class of each row.
    pub class: &'a [usize],
    /// Equal observations that each row stands for; none: one of each.
    pub copies: Option<&'a [u64]>,
    /// Group of each row; none: every row is one of its own.
    pub groups: Option<&'a [usize]>,
}

/// How rows are dealt into parts.
struct Deal<'a> {
    /// The parts, in the order in which they are dealt to.
    turns: &'a [usize],
    /// Whether the first part must have some of each class, because it is the one that is trained on.
    first_trains: bool,
    /// Another number is another deal.
    number: u64,
    /// Classes of fewer observations are dealt by themselves, as evenly as possible.
    random_from: usize,
}

impl Deal<'_> {
    /// Number of parts.
    fn parts(&self) -> usize {
        self.turns.iter().max().map_or(0, |part| part + 1)
    }

    /// How many of the turns are those of a part.
    fn share(&self, part: usize) -> usize {
        self.turns.iter().filter(|turn| **turn == part).count()
    }
}

/// Each part has this many observations of each class, if there are enough of them.
const LEAST_OF_CLASS: usize = 2;
/// Of several classes only those of so many observations are dealt at random: with fewer, the parts of a class would differ
/// so much that probabilities suffer (a log loss of 0.119 in place of 0.100 on vowel, with 38 of each of 11 classes).
const LEAST_AT_RANDOM: usize = 40;

impl Dealt<'_> {
    /// How many groups there are, or how many observations if these are on their own.
    pub fn units(self) -> u64 {
        match self.groups {
            Some(groups) => {
                let distinct: std::collections::HashSet<&usize> = groups.iter().collect();
                distinct.len() as u64
            }
            None => self.total(),
        }
    }

    /// The part that each row goes to with all others of its group. Large groups are dealt first, since small ones can even
    /// out what they leave, each to the part that has least, for its share, of the classes that the group has.
    fn by_group(self, groups: &[usize], deal: &Deal<'_>) -> Vec<usize> {
        let classes = self.class.iter().max().map_or(0, |c| c + 1);
        // Groups are numbered by their first rows, whose order is random.
        let mut number = HashMap::new();
        let mut counts: Vec<Vec<f64>> = Vec::new();
        let mut totals = vec![0.0; classes];
        for (row, class, copies) in self.numbered() {
            let group = *number.entry(groups[row]).or_insert(counts.len());
            if group == counts.len() {
                counts.push(vec![0.0; classes]);
            }
            counts[group][class] += copies as f64;
            totals[class] += copies as f64;
        }
        let turn = |group: usize| match deal.number {
            0 => group as u64,
            number => mix(number ^ mix(group as u64)),
        };
        let mut order: Vec<usize> = (0..counts.len()).collect();
        let size = |group: usize| counts[group].iter().sum::<f64>() as u64;
        order.sort_by_key(|&group| (Reverse(size(group)), turn(group), group));
        let parts = deal.parts();
        let share: Vec<f64> = (0..parts).map(|part| deal.share(part) as f64).collect();
        let mut held = vec![vec![0.0; classes]; parts];
        let mut part_of = vec![0; counts.len()];
        for group in order {
            let own = &counts[group];
            let is_first = |c: usize| own[c] > 0.0 && held[0][c] == 0.0;
            let load = |part: usize| {
                let of_class =
                    |c: usize| own[c] * (held[part][c] + own[c]) / (totals[c] * totals[c]);
                let there = (0..classes).filter(|&c| own[c] > 0.0);
                (
                    there.map(of_class).sum::<f64>() / share[part],
                    held[part].iter().sum::<f64>() / share[part],
                    // Among equals each deal begins with another part.
                    (part as u64 + parts as u64 - deal.number % parts as u64) % parts as u64,
                )
            };
            let best = match deal.first_trains && (0..classes).any(is_first) {
                true => 0,
                false => (0..parts)
                    .min_by(|&a, &b| {
                        let (a, b) = (load(a), load(b));
                        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2))
                    })
                    .unwrap_or(0),
            };
            held[best].iter_mut().zip(own).for_each(|(held, own)| *held += own);
            part_of[group] = best;
        }
        groups.iter().map(|group| part_of[number[group]]).collect()
    }

    /// How many observations of each row go to each part. // (parts, rows)
    fn one_by_one(self, deal: &Deal<'_>) -> Vec<Vec<u64>> {
        let mut order = Vec::new();
        for (row, class, copies) in self.numbered() {
            let of_row = mix(deal.number ^ mix(row as u64));
            order.extend((0..copies).map(|copy| (mix(of_row ^ copy), row, class)));
        }
        order.sort_unstable();
        let (parts, turns) = (deal.parts(), deal.turns.len());
        let mut goes_to: Vec<usize> =
            deal.turns.iter().copied().cycle().take(order.len()).collect();
        // A class of which a part happened to get too few is dealt by itself.
        for class in 0..self.class.iter().max().map_or(0, |c| c + 1) {
            let own: Vec<usize> = (0..order.len()).filter(|&at| order[at].2 == class).collect();
            let mut held = vec![0; parts];
            own.iter().for_each(|&at| held[goes_to[at]] += 1);
            let least = |part: usize| {
                let fair = own.len() * deal.share(part) / turns;
                let trains = deal.first_trains && part == 0 && !own.is_empty();
                fair.min(LEAST_OF_CLASS).max(usize::from(trains))
            };
            if own.len() < deal.random_from || (0..parts).any(|part| held[part] < least(part)) {
                // Each class starts at another part, so that small classes do not crowd the first.
                let first = if deal.first_trains { 0 } else { class };
                own.iter().zip(first..).for_each(|(&at, j)| goes_to[at] = deal.turns[j % turns]);
            }
        }
        let mut dealt = vec![vec![0; self.class.len()]; parts];
        order.iter().zip(goes_to).for_each(|((_, row, _), part)| dealt[part][*row] += 1);
        dealt
    }

    /// The parts, each in ascending order.
    fn parts(self, deal: &Deal<'_>) -> Vec<Part> {
        let mut parts = vec![Part::default(); deal.parts()];
        if let Some(groups) = self.groups {
            let of_row = self.by_group(groups, deal);
            self.numbered().for_each(|(row, _, copies)| parts[of_row[row]].push(row, copies));
        } else {
            for (part, counts) in parts.iter_mut().zip(self.one_by_one(deal)) {
                counts.into_iter().enumerate().for_each(|(row, copies)| part.push(row, copies));
            }
        }
        parts
    }

    /// All observations but those of a part.
    pub fn without(self, part: &Part) -> Part {
        let mut rest = Part::default();
        let mut taken = part.rows.iter().zip(&part.copies).peekable();
        for (row, _, copies) in self.numbered() {
            let taken = taken.next_if(|(r, _)| **r == row).map_or(0, |(_, copies)| *copies);
            rest.push(row, copies - taken);
        }
        rest
    }

    /// How many observations there are.
    pub fn total(self) -> u64 {
        self.numbered().map(|(_, _, copies)| copies).sum()
    }

    /// The rows with their classes and the number of their observations.
    fn numbered(self) -> impl Iterator<Item = (usize, usize, u64)> {
        let Self { class, copies, .. } = self;
        (0..class.len()).map(move |row| (row, class[row], copies.map_or(1, |copies| copies[row])))
    }
}

/// Half of the rows for training, a quarter for validation and a quarter for early stopping. A rare class is always trained
/// on.
pub fn train_valid_stop(rows: Dealt<'_>) -> TrainValidStop {
    let mut parts = rows.parts(&Deal {
        turns: &[0, 1, 0, 2],
        first_trains: true,
        number: 0,
        random_from: usize::MAX,
    });
    let mut next = || parts.drain(..1).next().unwrap_or_default();
    TrainValidStop { train: next(), valid: next(), stop: next() }
}

/// A random four fifths of `rows` row indices, to train on, and the rest, to test on.
pub fn random_split(rows: usize, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut train: Vec<usize> = (0..rows).collect();
    train.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let test = train.split_off(rows * 4 / 5);
    (train, test)
}

/// As [`random_split`], with all rows of a group on one side: groups in a random order train until four fifths of the rows
/// do, or all groups but one.
pub fn random_split_by_group(groups: &[usize], seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut sizes = std::collections::BTreeMap::new();
    groups.iter().for_each(|group| *sizes.entry(*group).or_insert(0) += 1);
    let mut order: Vec<(usize, usize)> = sizes.into_iter().collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let wanted = groups.len() * 4 / 5;
    let (mut trains, mut rows) = (std::collections::HashSet::new(), 0);
    for (group, size) in &order[..order.len().saturating_sub(1)] {
        // The last group may be large: it trains if that is nearer to four fifths.
        if !trains.is_empty() && rows + size / 2 > wanted {
            break;
        }
        trains.insert(*group);
        rows += size;
    }
    (0..groups.len()).partition(|&row| trains.contains(&groups[row]))
}

/// One division in halves. A rare class is always trained on.
pub fn halves(rows: Dealt<'_>) -> Fold {
    let mut parts = rows.parts(&Deal {
        turns: &[0, 1],
        first_trains: true,
        number: 0,
        random_from: usize::MAX,
    });
    let valid = parts.pop().unwrap_or_default();
    Fold { train: parts.pop().unwrap_or_default(), valid }
}

/// `k` folds to learn with, or as many as there are observations (or groups) if these are fewer: each validates one part and
/// trains on the others. All have as much of each class.
pub fn k_folds(rows: Dealt<'_>, k: usize) -> Vec<Fold> {
    folds_of(rows, k, 0, usize::MAX)
}

/// The same to estimate an error with: classes are dealt at random too, but for small ones of several. Another number is
/// another deal.
pub fn k_folds_at_random(rows: Dealt<'_>, k: usize, number: u64) -> Vec<Fold> {
    let several = rows.class.iter().any(|class| *class > 1);
    folds_of(rows, k, number, if several { LEAST_AT_RANDOM } else { 0 })
}

fn folds_of(rows: Dealt<'_>, k: usize, number: u64, random_from: usize) -> Vec<Fold> {
    let turns: Vec<usize> = (0..(k as u64).min(rows.units()).max(1) as usize).collect();
    let parts = rows.parts(&Deal { turns: &turns, first_trains: false, number, random_from });
    parts.into_iter().map(|valid| Fold { train: rows.without(&valid), valid }).collect()
}

/// Row numbers of `k` folds of rows in a random order: for each those to train on and those to
/// validate with.
pub fn shuffled(
    class: &[usize],
    groups: Option<&[usize]>,
    k: usize,
    seed: u64,
) -> Vec<(Vec<usize>, Vec<usize>)> {
    let (first, rest) = random_split(class.len(), seed);
    let order = [first, rest].concat();
    let shuffled: Vec<usize> = order.iter().map(|&row| class[row]).collect();
    let back = |part: &Part| {
        let mut rows: Vec<usize> = part.rows.iter().map(|&i| order[i]).collect();
        rows.sort_unstable();
        rows
    };
    let groups: Option<Vec<usize>> =
        groups.map(|groups| order.iter().map(|&row| groups[row]).collect());
    let dealt = Dealt { class: &shuffled, copies: None, groups: groups.as_deref() };
    let folds = k_folds(dealt, k);
    folds.iter().map(|fold| (back(&fold.train), back(&fold.valid))).collect()
}

/// One value for both zeros and one for all NaN.
pub(crate) fn canonical_bits(v: f64) -> u64 {
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
        Dealt { class, copies: None, groups: None }
    }

    #[test]
    fn parts_have_their_shares_and_rare_classes_are_trained_on() {
        let class: Vec<usize> = (0..108).map(|i| i % 2).collect();
        let split = train_valid_stop(dealt(&class));
        let parts = [&split.train, &split.valid, &split.stop];
        assert_eq!(parts.map(|part| part.rows.len()), [54, 28, 26]);
        let mut all = parts.map(|part| part.rows.clone()).concat();
        all.sort_unstable();
        assert_eq!(all, (0..108).collect::<Vec<_>>());
        for rare in 1..9_usize {
            let class: Vec<usize> = (0..60).map(|i| usize::from(i < rare)).collect();
            let count = |part: &Part| part.rows.iter().filter(|&&i| class[i] == 1).count();
            let split = train_valid_stop(dealt(&class));
            assert!(count(&split.train) >= rare.div_ceil(2).min(2), "{rare}");
            let fold = halves(dealt(&class));
            assert!(count(&fold.train) >= rare.div_ceil(2).min(2), "{rare}");
            for fold in k_folds(dealt(&class), 4) {
                assert!(count(&fold.valid) >= (rare / 4).min(2), "{rare}");
            }
        }
    }

    /// What one fold holds says nothing about the others: over many deals the number of rows of a class in a fold scatters
    /// as if it were drawn, and so does the number of equal observations.
    #[test]
    fn classes_and_equal_rows_are_dealt_at_random() {
        let class: Vec<usize> = (0..100).map(|i| usize::from(i % 2 == 0)).collect();
        let copies = [50, 50];
        let (mut of_class, mut of_row) = (0.0, 0.0);
        for deal in 0..400 {
            let fold = &k_folds_at_random(dealt(&class), 2, deal)[0];
            let count = fold.valid.rows.iter().filter(|&&i| class[i] == 1).count();
            of_class += (count as f64 - 25.0).powi(2) / 400.0;
            let rows = Dealt { class: &[0, 1], copies: Some(&copies), groups: None };
            let fold = &k_folds_at_random(rows, 2, deal)[0];
            of_row += (fold.valid.copies[0] as f64 - 25.0).powi(2) / 400.0;
        }
        // The variance of the hypergeometric distribution is 100/4 x 1/4 x 100/99.
        assert!((5.0..7.8).contains(&of_class), "{of_class}");
        assert!((5.0..7.8).contains(&of_row), "{of_row}");
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
    fn folds_are_as_large_as_each_other() {
        let class: Vec<usize> = (0..100).map(|i| usize::from(i % 4 == 0)).collect();
        let plain = k_folds(dealt(&class), 5).into_iter().map(|f| (f.train.rows, f.valid.rows));
        for folds in [plain.collect(), shuffled(&class, None, 5, 1)] {
            let mut seen: Vec<usize> = folds.iter().flat_map(|(_, valid)| valid.clone()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
            for (train, valid) in folds {
                assert_eq!((train.len(), valid.len()), (80, 20));
                assert!(train.iter().all(|row| !valid.contains(row)));
                assert!(train.is_sorted() && valid.is_sorted());
            }
        }
        assert_eq!(k_folds(dealt(&[0, 1, 0]), 10).len(), 3);
    }

    /// Forty groups of one to seven rows, most of one class each.
    fn grouped() -> (Vec<usize>, Vec<usize>) {
        let groups: Vec<usize> =
            (0..40).flat_map(|g| vec![g; 1 + (mix(g as u64) % 7) as usize]).collect();
        let class = (groups.iter().enumerate())
            .map(|(i, &g)| usize::from(mix(g as u64).is_multiple_of(3) || i % 17 == 0))
            .collect();
        (class, groups)
    }

    #[test]
    fn groups_are_not_divided() {
        let (class, groups) = grouped();
        let dealt = Dealt { class: &class, copies: None, groups: Some(&groups) };
        let n = class.len();
        let shares = |rows: &[usize]| {
            [0, 1].map(|c| {
                let count = |rows: &[usize]| rows.iter().filter(|&&i| class[i] == c).count() as f64;
                count(rows) / count(&(0..n).collect::<Vec<_>>())
            })
        };
        let check = |parts: &[&[usize]], expected: &[f64]| {
            let mut all = parts.concat();
            all.sort_unstable();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
            for (a, part) in parts.iter().enumerate() {
                for other in &parts[a + 1..] {
                    let shared =
                        part.iter().any(|&i| other.iter().any(|&j| groups[i] == groups[j]));
                    assert!(!shared);
                }
            }
            for (part, expected) in parts.iter().zip(expected) {
                for share in shares(part) {
                    assert!((share - expected).abs() < 0.12, "{share} for {expected}");
                }
            }
        };
        for k in [2, 4, 5] {
            let mut deals = Vec::new();
            for deal in 0..3 {
                let folds = k_folds_at_random(dealt, k, deal);
                let valid: Vec<&[usize]> = folds.iter().map(|f| f.valid.rows.as_slice()).collect();
                check(&valid, &vec![1.0 / k as f64; k]);
                for fold in &folds {
                    check(&[&fold.train.rows, &fold.valid.rows], &[]);
                }
                deals.push(folds.into_iter().map(|f| f.valid.rows).collect::<Vec<_>>());
            }
            assert!(deals[0] != deals[1] && deals[1] != deals[2]);
        }
        let split = train_valid_stop(dealt);
        check(&[&split.train.rows, &split.valid.rows, &split.stop.rows], &[0.5, 0.25, 0.25]);
        let half = halves(dealt);
        check(&[&half.train.rows, &half.valid.rows], &[0.5, 0.5]);
        for (train, valid) in shuffled(&class, Some(&groups), 5, 3) {
            check(&[&train, &valid], &[0.8, 0.2]);
        }
        for seed in 0..5 {
            let (train, test) = random_split_by_group(&groups, seed);
            check(&[&train, &test], &[]);
            assert!((train.len() as f64 / n as f64 - 0.8).abs() < 0.05);
        }
    }

    #[test]
    fn few_groups_leave_something_to_train_on() {
        // The second class is in one group only.
        let (class, groups) = ([0, 0, 0, 1, 0, 0], [0, 0, 1, 1, 2, 2]);
        let dealt = Dealt { class: &class, copies: None, groups: Some(&groups) };
        assert_eq!((dealt.units(), k_folds(dealt, 10).len()), (3, 3));
        for train in [train_valid_stop(dealt).train, halves(dealt).train] {
            assert!(train.rows.contains(&3), "{train:?}");
        }
        let (train, test) = random_split_by_group(&[5, 5, 5, 5, 9], 0);
        assert!(!train.is_empty() && !test.is_empty());
    }

    /// Every observation of a row is in one part, and the others are what is left without it.
    #[test]
    fn every_observation_is_in_one_part() {
        let (class, copies) = ([0, 1, 0, 0, 1, 1, 0], [3, 1, 1, 7, 2, 1, 4]);
        let rows = Dealt { class: &class, copies: Some(&copies), groups: None };
        let counted = |parts: &[&Part]| {
            let mut counts = [0_u64; 7];
            let all = parts.iter().flat_map(|part| part.rows.iter().zip(&part.copies));
            all.for_each(|(&i, &c)| counts[i] += c);
            counts
        };
        for k in [2, 3, 5] {
            let folds = k_folds_at_random(rows, k, 1);
            assert_eq!(counted(&folds.iter().map(|f| &f.valid).collect::<Vec<_>>()), copies);
            for Fold { train, valid } in &folds {
                assert_eq!(counted(&[train, valid]), copies);
                assert_eq!(rows.without(train), *valid);
            }
        }
        let TrainValidStop { train, valid, stop } = train_valid_stop(rows);
        assert_eq!(counted(&[&train, &valid, &stop]), copies);
    }
}
