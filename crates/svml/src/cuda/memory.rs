//! The memory of a card: blocks that are kept for the next who asks, under a limit.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::marker::PhantomData;

use super::Gpu;
use super::lane::{Number, View};
use super::library::Address;
use crate::error::{Error, Remedy, Result};

/// What is left of the free memory of the card for the libraries and for others: this share of it.
const LEFT: usize = 16;
/// The status of the driver where there is no memory left.
const OUT_OF_MEMORY: c_int = 2;
/// Blocks from this size on are multiples of it.
const LARGE: usize = 2 << 20;
/// The smallest block.
const SMALLEST: usize = 512;

/// What is in use and what is kept.
pub(super) struct Pool {
    /// Blocks that nobody uses, by size.
    free: BTreeMap<usize, Vec<Address>>,
    /// Blocks that were dropped while lanes were lent that may still use them: these lanes, size and address.
    limbo: Vec<(u64, usize, Address)>,
    /// Lanes that are lent, a bit for each.
    lent: u64,
    /// Bytes in use or in limbo, and bytes that are free.
    used: usize,
    kept: usize,
    /// What may be in use: of the card, and as it was set.
    most: usize,
    limit: Option<usize>,
}

/// Where a block comes from.
enum Found {
    /// Its address and its size.
    Block(Address, usize),
    /// None is kept: so many bytes are to be asked for, after these were given to the driver.
    New(Vec<Address>),
    /// Even then it would be more than this.
    Above(usize),
}

impl Pool {
    pub fn new(free: usize) -> Self {
        let (free_blocks, limbo) = (BTreeMap::new(), Vec::new());
        let most = free - free / LEFT;
        Self { free: free_blocks, limbo, lent: 0, used: 0, kept: 0, most, limit: None }
    }

    fn limit(&self) -> usize {
        self.limit.map_or(self.most, |limit| limit.min(self.most))
    }

    pub fn lent(&mut self, lane: usize) {
        self.lent |= 1 << lane;
    }

    /// A lane has done all of its work.
    pub fn returned(&mut self, lane: usize) {
        self.lent &= !(1 << lane);
        let mut waiting = Vec::new();
        for (lanes, bytes, address) in std::mem::take(&mut self.limbo) {
            match lanes & !(1 << lane) {
                0 => self.keep(bytes, address),
                lanes => waiting.push((lanes, bytes, address)),
            }
        }
        self.limbo = waiting;
    }

    fn keep(&mut self, bytes: usize, address: Address) {
        self.used -= bytes;
        self.kept += bytes;
        self.free.entry(bytes).or_default().push(address);
    }

    /// A block was dropped, by the work of one lane or of any.
    fn dropped(&mut self, bytes: usize, address: Address, home: Option<usize>) {
        match self.lent & home.map_or(u64::MAX, |lane| 1 << lane) {
            0 => self.keep(bytes, address),
            lanes => self.limbo.push((lanes, bytes, address)),
        }
    }

    /// Looks for a block of this size, for the work of one lane or of any. It counts as used from now on.
    fn take(&mut self, bytes: usize, home: Option<usize>) -> Found {
        // A block that is a little larger does as well.
        let fitting = bytes..=bytes.saturating_add(bytes / 8);
        // What the same lane has dropped comes before what it will do next.
        if let Some(lane) = home {
            let own = |(lanes, size, _): &(u64, usize, Address)| {
                *lanes == 1 << lane && fitting.contains(size)
            };
            if let Some(at) = self.limbo.iter().position(own) {
                let (_, size, address) = self.limbo.swap_remove(at);
                return Found::Block(address, size);
            }
        }
        let limit = self.limit();
        if self.used.saturating_add(bytes) > limit {
            return Found::Above(limit);
        }
        let mut kept = self.free.range_mut(fitting);
        if let Some((size, address)) = kept.find_map(|(size, blocks)| Some((*size, blocks.pop()?)))
        {
            self.kept -= size;
            self.used += size;
            return Found::Block(address, size);
        }
        let above = self.used + self.kept + bytes > limit;
        self.used += bytes;
        Found::New(if above { self.let_go() } else { Vec::new() })
    }

    /// All blocks that nobody uses.
    fn let_go(&mut self) -> Vec<Address> {
        self.kept = 0;
        std::mem::take(&mut self.free).into_values().flatten().collect()
    }
}

/// The size of the block for so many bytes.
fn rounded(bytes: usize) -> usize {
    match bytes < LARGE {
        true => bytes.next_power_of_two().max(SMALLEST),
        false => bytes.checked_next_multiple_of(LARGE).unwrap_or(usize::MAX),
    }
}

/// A limit on the memory of a card, for as long as it lives: for tests, and for a fit with a limit of its own.
#[derive(Debug)]
pub struct Limit {
    gpu: &'static Gpu,
    before: Option<usize>,
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Ok(mut pool) = self.gpu.pool.lock() {
            pool.limit = self.before;
        }
    }
}

/// Memory of a card that counts for nobody here, until it is dropped: for tests, in the place of another process.
#[derive(Debug)]
pub struct Taken {
    gpu: &'static Gpu,
    address: Address,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.gpu.make_current().is_ok() {
            self.gpu.free_all(vec![self.address]);
        }
    }
}

impl Gpu {
    /// Takes all memory of the card but so many bytes and what is in use or kept here, as another process would.
    pub fn take_all_but(&'static self, bytes: usize) -> Result<Taken> {
        self.make_current()?;
        let (mut free, mut total, mut address) = (0, 0, 0);
        // SAFETY: each call writes the values whose addresses it is given.
        let status = unsafe { (self.libraries.driver.memory)(&raw mut free, &raw mut total) };
        self.check(status, "asking for the memory of the card")?;
        let mut all = free.saturating_sub(bytes);
        // What is free is not all in one piece.
        loop {
            // SAFETY: as above.
            let status = unsafe { (self.libraries.driver.allocate)(&raw mut address, all.max(1)) };
            if status == OUT_OF_MEMORY && all > LARGE {
                all -= LARGE;
                continue;
            }
            self.check(status, "taking the memory of the card")?;
            return Ok(Taken { gpu: self, address });
        }
    }

    /// Bytes that can still be asked for: under the limit, and beside what is in use.
    pub fn free(&self) -> usize {
        self.pool.lock().map_or(0, |pool| pool.limit().saturating_sub(pool.used))
    }

    /// Bytes in use, the workspaces of lanes among them.
    pub fn used(&self) -> usize {
        self.pool.lock().map_or(0, |pool| pool.used)
    }

    /// Bytes to plan with: all of the card, or the limit. It does not depend on what else is going on, and neither do sizes
    /// of blocks that are derived from it, and the order of sums.
    pub fn capacity(&self) -> usize {
        let limit = self.pool.lock().ok().and_then(|pool| pool.limit);
        limit.map_or(self.total, |limit| limit.min(self.total))
    }

    /// Lets at most so many bytes be in use until what is returned is dropped. The whole process shares it.
    pub fn limit_to(&'static self, bytes: u64) -> Limit {
        let limit = Some(usize::try_from(bytes).unwrap_or(usize::MAX));
        let (before, kept) = match self.pool.lock() {
            Ok(mut pool) => (std::mem::replace(&mut pool.limit, limit), pool.let_go()),
            Err(_) => (None, Vec::new()),
        };
        if self.make_current().is_ok() {
            self.free_all(kept);
        }
        Limit { gpu: self, before }
    }

    /// Memory for `len` values, with arbitrary content. It is an [`Error::TooLarge`] where the card has none left.
    pub fn buffer<T: Number>(&'static self, len: usize, what: &str) -> Result<Buffer<T>> {
        self.make_current()?;
        self.block(len, what, None)
    }

    pub(super) fn block<T: Number>(
        &'static self,
        len: usize,
        what: &str,
        home: Option<usize>,
    ) -> Result<Buffer<T>> {
        let wanted = len.max(1).saturating_mul(size_of::<T>());
        let bytes = rounded(wanted);
        let (gpu, kind) = (self, PhantomData);
        let found = self.lock(&self.pool)?.take(bytes, home);
        let old = match found {
            Found::Block(address, bytes) => {
                return Ok(Buffer { gpu, address, len, bytes, home, kind });
            }
            Found::Above(limit) => return Err(self.too_large(what, wanted, limit)),
            Found::New(old) => old,
        };
        self.free_all(old);
        let mut address = 0;
        // SAFETY: writes one address; the context was made current by whoever lends lanes or buffers.
        let mut allocate = || unsafe { (self.libraries.driver.allocate)(&raw mut address, bytes) };
        let mut status = allocate();
        if status == OUT_OF_MEMORY {
            let old = self.lock(&self.pool)?.let_go();
            self.free_all(old);
            status = allocate();
        }
        if status == 0 {
            return Ok(Buffer { gpu, address, len, bytes, home, kind });
        }
        let mut pool = self.lock(&self.pool)?;
        pool.used -= bytes;
        let used = pool.used;
        drop(pool);
        match status {
            // Others have taken what was free when the card was opened.
            OUT_OF_MEMORY => Err(self.too_large(what, wanted, used)),
            _ => Err(self.check(status, what).err().unwrap_or_else(|| self.panicked())),
        }
    }

    fn too_large(&self, what: &str, wanted: usize, limit: usize) -> Error {
        let used = self.pool.lock().map_or(0, |pool| pool.used);
        Error::TooLarge {
            what: format!("{what}, with what is in use on cuda:{} already,", self.number),
            bytes: (used as u128) + (wanted as u128),
            limit: limit as u128,
            remedy: Remedy::FitDevice,
        }
    }

    /// Gives blocks that nobody uses to the driver.
    fn free_all(&self, blocks: Vec<Address>) {
        for address in blocks {
            // SAFETY: a block of ours that no work uses any more; freed once, as it is in no list now.
            unsafe { (self.libraries.driver.free)(address) };
        }
    }
}

/// Memory of the card for some values.
#[derive(Debug)]
pub struct Buffer<T> {
    pub(super) gpu: &'static Gpu,
    pub(super) address: Address,
    len: usize,
    bytes: usize,
    /// The only lane whose work uses it, where that is promised.
    home: Option<usize>,
    kind: PhantomData<T>,
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Ok(mut pool) = self.gpu.pool.lock() {
            pool.dropped(self.bytes, self.address, self.home);
        }
    }
}

impl<T: Number> Buffer<T> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All values as one column.
    pub fn all(&self) -> View<'_, T> {
        View::new(self.address, self.len, 1, self.len)
    }

    /// The whole as a matrix of `rows` x `cols` values by columns, if it has so many at least.
    pub fn matrix(&self, rows: usize, cols: usize) -> Result<View<'_, T>> {
        if rows.saturating_mul(cols) > self.len {
            let what = format!("a matrix of {rows} x {cols} in a buffer of {}", self.len);
            return Err(self.gpu.failure(&what));
        }
        Ok(View::new(self.address, rows, cols, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_blocks() {
        assert_eq!([rounded(1), rounded(513), rounded(LARGE - 1)], [512, 1024, LARGE]);
        assert_eq!([rounded(LARGE), rounded(LARGE + 1)], [LARGE, 2 * LARGE]);
        assert_eq!(rounded(usize::MAX), usize::MAX);
    }

    #[test]
    fn blocks_wait_for_the_lanes_that_may_use_them() {
        let mut pool = Pool::new(1600);
        assert_eq!(pool.limit(), 1500);
        assert!(matches!(pool.take(512, None), Found::New(old) if old.is_empty()));
        pool.lent(0);
        pool.lent(3);
        pool.dropped(512, 7, None);
        // Lanes 0 and 3 may still use it: there is room for another, not for a third.
        assert!(matches!(pool.take(512, None), Found::New(_)));
        assert!(matches!(pool.take(512, None), Found::Above(1500)));
        pool.returned(0);
        assert!(matches!(pool.take(512, None), Found::Above(1500)));
        // Lane 3 may use it at once, as it comes before what it does next.
        assert!(matches!(pool.take(512, Some(3)), Found::Block(7, 512)));
        pool.dropped(512, 7, Some(3));
        pool.returned(3);
        assert_eq!((pool.used, pool.kept), (512, 512));
        assert!(matches!(pool.take(512, None), Found::Block(7, 512)));
        // What one lane alone uses does not wait for others.
        pool.lent(1);
        pool.dropped(512, 7, Some(2));
        assert!(matches!(pool.take(512, None), Found::Block(7, 512)));
    }

    #[test]
    fn what_is_kept_is_let_go_for_what_is_needed() {
        let mut pool = Pool::new(16 * 1024);
        assert!(matches!(pool.take(8192, None), Found::New(_)));
        pool.dropped(8192, 1, None);
        assert!(matches!(pool.take(15360, None), Found::New(old) if old == [1]));
        assert_eq!((pool.used, pool.kept), (15360, 0));
        pool.limit = Some(10);
        assert!(matches!(pool.take(1, None), Found::Above(10)));
    }
}
