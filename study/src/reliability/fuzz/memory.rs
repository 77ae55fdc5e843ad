//! The memory of this program, counted: how much was allocated at most while something ran.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the system, which counts.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn more(bytes: usize) {
    let now = NOW.fetch_add(bytes, Relaxed) + bytes;
    MOST.fetch_max(now, Relaxed);
}

// SAFETY: every call goes to the allocator of the system with the arguments it came with, and so does what it returns.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as promised to us.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as promised to us.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as promised to us.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it is copied both are there.
        more(size);
        // SAFETY: as promised to us.
        let new = unsafe { System.realloc(place, layout, size) };
        NOW.fetch_sub(if new.is_null() { size } else { layout.size() }, Relaxed);
        new
    }
}

/// Begins to look: what is allocated from now on counts.
pub fn begin() -> usize {
    let now = NOW.load(Relaxed);
    MOST.store(now, Relaxed);
    now
}

/// Most bytes that were allocated at the same time since [`begin`] returned `before`.
pub fn most_since(before: usize) -> usize {
    MOST.load(Relaxed).saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_counted_and_what_is_freed_is_not() {
        let _alone = super::super::ALONE.lock();
        let before = begin();
        let block = std::hint::black_box(vec![1_u8; 50 << 20]);
        drop(block);
        let block = std::hint::black_box(vec![0_u8; 50 << 20]);
        drop(block);
        let most = most_since(before);
        // Other tests allocate too, but no such blocks.
        assert!((50 << 20..90 << 20).contains(&most), "{most}");
    }
}
