//! How a kernel matrix is cut into tiles that fit into the memory of a card.

use std::ops::Range;

/// Entries of a tile where there is room: enough work to hide what a launch costs.
const MOST: usize = 1 << 25;
/// Entries below which no tile goes: a card without room for so few is of no use.
pub(super) const LEAST: usize = 1 << 14;
/// Columns of a tile: a product with a vector reads a tile by columns, of which there should not be too few rows.
const COLUMNS: usize = 4096;
/// One tile takes at most this share of the memory: several threads work side by side.
const SHARE: usize = 32;

/// Entries of a tile, on a card of so many bytes.
pub(super) fn entries(capacity: usize) -> usize {
    (capacity / SHARE / size_of::<f64>()).clamp(LEAST, MOST)
}

/// The rows and columns of a tile of at most so many entries, for a matrix of this shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub rows: usize,
    pub cols: usize,
}

impl Tile {
    pub fn new(rows: usize, cols: usize, entries: usize) -> Self {
        let entries = entries.max(1);
        let cols = cols.clamp(1, COLUMNS.min(entries));
        Self { rows: rows.clamp(1, (entries / cols).max(1)), cols }
    }

    /// A tile with as many rows as columns.
    pub fn square(side: usize, entries: usize) -> Self {
        let side = side.clamp(1, entries.isqrt().clamp(1, COLUMNS / 2));
        Self { rows: side, cols: side }
    }

    /// How many entries it has.
    pub fn entries(self) -> usize {
        self.rows * self.cols
    }
}

/// Rows and columns of a tile of a product with a vector, as its kernel has them, and blocks that keep a large card busy.
pub(super) const BROAD: usize = 64;
const BUSY: usize = 1024;

/// Tiles of rows of a product with a vector, and how many tiles of columns one block of threads adds up. It depends on the
/// sizes alone, and so does the order of the sum.
pub(super) fn parts_of_product(rows: usize, cols: usize) -> (usize, usize) {
    let (down, across) = (rows.div_ceil(BROAD).max(1), cols.div_ceil(BROAD).max(1));
    (down, (across * down).div_ceil(BUSY).clamp(1, across))
}

/// Places in steps, the last one maybe shorter.
pub(super) fn steps(count: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    let step = step.max(1);
    (0..count).step_by(step).map(move |first| first..count.min(first + step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_and_cover() {
        for entries in [1, 2, 100, LEAST, MOST] {
            for (rows, cols) in [(0, 0), (1, 1), (5, 70_000), (70_000, 5), (20_000, 20_000)] {
                let tile = Tile::new(rows, cols, entries);
                assert!(tile.entries() <= entries && tile.rows > 0 && tile.cols > 0, "{tile:?}");
                let covered: usize = steps(rows, tile.rows).map(|rows| rows.len()).sum();
                assert_eq!(covered, rows);
                let square = Tile::square(rows, entries);
                assert!(square.entries() <= entries && square.rows == square.cols, "{square:?}");
            }
        }
        assert_eq!(steps(5, 2).collect::<Vec<_>>(), [0..2, 2..4, 4..5]);
    }

    #[test]
    fn products_are_cut_into_enough_parts() {
        for (rows, cols) in [(1, 1), (1, 100_000), (100_000, 1), (500, 300), (20_000, 19_000)] {
            let (down, each) = parts_of_product(rows, cols);
            let across = cols.div_ceil(BROAD).div_ceil(each);
            assert!(down * BROAD >= rows && across * each * BROAD >= cols);
            assert!(across * down <= BUSY + down, "{rows} {cols}");
        }
        // Few rows are spread over the columns.
        assert_eq!(parts_of_product(64, 64 * 500), (1, 1));
        assert_eq!(parts_of_product(64 * 2000, 640), (2000, 10));
    }

    #[test]
    fn a_tile_is_a_small_share_of_the_memory() {
        assert_eq!(entries(0), LEAST);
        assert_eq!(entries(usize::MAX), MOST);
        let bytes = 1 << 30;
        assert!(entries(bytes) * 8 * SHARE <= bytes && entries(bytes) > LEAST);
    }
}
