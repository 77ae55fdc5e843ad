//! The different texts of a column, each kept once and known by a number.

use std::hash::{BuildHasher, RandomState};

use crate::data::cell::is_missing;

/// Different texts, numbered from 1 in the order in which they came. Offsets fit 32 bits because an input has at most
/// 2 GiB.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    text: String,
    ends: Vec<u32>,
    missing: Vec<bool>,
    /// A hash table of numbers, 0 where there is none; its length is a power of two and at least twice theirs.
    slots: Vec<u32>,
    hasher: RandomState,
}

impl Pool {
    /// How many texts there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of a number.
    pub(super) fn get(&self, id: usize) -> &str {
        let start = if id < 2 { 0 } else { self.ends[id - 2] };
        &self.text[start as usize..self.ends[id - 1] as usize]
    }

    /// Whether the text of a number stands for a missing value.
    pub(super) fn is_missing(&self, id: usize) -> bool {
        self.missing[id - 1]
    }

    /// Takes the texts that are not `kept` for missing values.
    pub(super) fn take_for_missing(&mut self, kept: impl Fn(&str) -> bool) {
        for id in 1..=self.len() {
            self.missing[id - 1] |= !kept(self.get(id));
        }
    }

    /// All texts, by number.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        (1..=self.len()).map(|id| self.get(id))
    }

    /// The number of a text, which it gets if it is new.
    pub(super) fn number(&mut self, text: &str) -> usize {
        if self.slots.len() < 2 * (self.len() + 1) {
            self.grow();
        }
        let slot = self.slot(text);
        if self.slots[slot] == 0 {
            self.text.push_str(text);
            self.ends.push(self.text.len() as u32);
            self.missing.push(is_missing(text));
            self.slots[slot] = self.ends.len() as u32;
        }
        self.slots[slot] as usize
    }

    /// The slot that has a text, or the free one where it belongs.
    fn slot(&self, text: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = self.hasher.hash_one(text) as usize & mask;
        while self.slots[slot] != 0 && self.get(self.slots[slot] as usize) != text {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![0; (2 * self.slots.len()).max(8)];
        for id in 1..=self.len() {
            let slot = self.slot(self.get(id));
            self.slots[slot] = id as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number() {
        let mut pool = Pool::default();
        let texts: Vec<String> = (0..1000).map(|i| format!("t{}", i * i % 337)).collect();
        let ids: Vec<usize> = texts.iter().map(|text| pool.number(text)).collect();
        assert_eq!(ids[..3], [1, 2, 3]);
        for (text, &id) in texts.iter().zip(&ids) {
            assert_eq!(pool.number(text), id);
            assert_eq!(pool.get(id), text);
        }
        let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
        assert_eq!((pool.len(), pool.texts().count()), (distinct.len(), distinct.len()));
        let (empty, unknown) = (pool.number(""), pool.number("?"));
        assert!(pool.is_missing(empty) && pool.is_missing(unknown) && !pool.is_missing(1));
        assert_eq!(pool.get(empty), "");
    }
}
