//! Rows of which most numbers are the same in most rows, such as those of sparse data or of constant columns, as a model file
//! holds them: what most rows have in each column once, and of each row where it differs, and how.

use crate::data::LIMIT;
use crate::error::Result;
use crate::linalg::Matrix;
use crate::memory;
use crate::parallel;

/// Rows of fewer bytes are written as they are, so that programs that know no other way can read them.
const WORTH: usize = 1 << 20;

/// Numbers of 8 bytes with a bit for each column.
fn words(columns: usize) -> usize {
    columns.div_ceil(64)
}

/// The fewest numbers that so many rows and what they have in common can take.
pub(super) fn least(rows: usize, columns: usize) -> Option<usize> {
    rows.checked_mul(words(columns))?.checked_add(columns)
}

/// What most of the rows of some matrices have in each column, if with it they take at most half of the bytes.
pub(super) fn common_row(rows: &[&Matrix]) -> Option<Vec<f64>> {
    // A matrix without rows need not have columns.
    let columns = rows.iter().find(|rows| rows.rows() > 0)?.cols();
    let count: usize = rows.iter().map(|rows| rows.rows()).sum();
    if 8 * count * columns < WORTH {
        return None;
    }
    let most_frequent = |k: usize| {
        let mut bits: Vec<u64> = (rows.iter().filter(|m| m.rows() > 0))
            .flat_map(|m| m.col(k))
            .map(f64::to_bits)
            .collect();
        bits.sort_unstable();
        let runs = bits.chunk_by(|a, b| a == b);
        runs.max_by_key(|run| run.len()).map_or((0.0, 0), |run| (f64::from_bits(run[0]), run.len()))
    };
    let common: Vec<(f64, usize)> = parallel::map(0..columns, most_frequent);
    let others: usize = common.iter().map(|(_, same)| count - same).sum();
    let sparse = columns + count * words(columns) + others;
    (2 * sparse <= count * columns).then(|| common.into_iter().map(|(value, _)| value).collect())
}

/// Appends rows: of each a bit for every column, set where it differs from the common row, and the numbers there.
pub(super) fn write(rows: &Matrix, common: &[f64], bytes: &mut Vec<u8>) {
    for row in rows.iter_rows() {
        let mut bits = vec![0_u64; words(common.len())];
        let pairs = row.iter().zip(common).map(|(a, b)| a.to_bits() != b.to_bits());
        for (k, _) in pairs.enumerate().filter(|(_, differs)| *differs) {
            bits[k / 64] |= 1 << (k % 64);
        }
        bits.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        let differs = |k: &usize| bits[k / 64] >> (k % 64) & 1 == 1;
        (0..row.len()).filter(differs).for_each(|k| bytes.extend(row[k].to_le_bytes()));
    }
}

/// Reads what [`write`] has written, from the beginning of `bytes`, which then begin after it. None if they are too few, if a
/// bit is set that stands for no column, or if a number is beyond what rows may hold.
pub(super) fn read(bytes: &mut &[u8], rows: usize, common: &[f64]) -> Result<Option<Matrix>> {
    let columns = common.len();
    let bits_per_row = words(columns);
    // What is there bounds what is asked for.
    let least = rows.checked_mul(bits_per_row).and_then(|words| words.checked_mul(8));
    if least.is_none_or(|least| least > bytes.len()) {
        return Ok(None);
    }
    let len = rows.saturating_mul(columns);
    let mut values = memory::zeros(len, "the rows of a model")?;
    for row in values.chunks_exact_mut(columns.max(1)) {
        let (Some(bits), Some(rest)) =
            (bytes.get(..8 * bits_per_row), bytes.get(8 * bits_per_row..))
        else {
            return Ok(None);
        };
        *bytes = rest;
        let bits: Vec<u64> = numbers(bits).map(u64::from_le_bytes).collect();
        let set: usize = bits.iter().map(|word| word.count_ones() as usize).sum();
        let spare = 64 * bits_per_row - columns;
        let beyond = bits.last().is_some_and(|last| last.leading_zeros() < spare as u32);
        let (Some(own), Some(rest)) = (bytes.get(..8 * set), bytes.get(8 * set..)) else {
            return Ok(None);
        };
        *bytes = rest;
        let mut own = numbers(own).map(f64::from_le_bytes);
        row.copy_from_slice(common);
        for (k, value) in row.iter_mut().enumerate() {
            if bits[k / 64] >> (k % 64) & 1 == 1 {
                *value = own.next().unwrap_or(f64::NAN);
            }
        }
        if beyond || !row.iter().all(|value| value.abs() <= LIMIT) {
            return Ok(None);
        }
    }
    Matrix::new(rows, columns, values).map(Some)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = [u8; 8]> {
    bytes.chunks_exact(8).map(|chunk| chunk.first_chunk().copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mostly zero, or some other number in every row, with a few numbers that are different.
    fn sparse(rows: usize, columns: usize) -> Matrix {
        Matrix::from_fn(rows, columns, |i, k| match (i * 31 + k * 17) % 97 {
            0 => i as f64 - 0.5 * k as f64,
            _ if k % 5 == 0 => 7.25,
            _ => 0.0,
        })
    }

    #[test]
    fn rows_come_back_bit_for_bit() {
        for columns in [1, 63, 64, 65, 1000] {
            let rows = sparse(3, columns);
            let common: Vec<f64> =
                (0..columns).map(|k| if k % 5 == 0 { 7.25 } else { 0.0 }).collect();
            let mut bytes = Vec::new();
            write(&rows, &common, &mut bytes);
            bytes.push(9);
            let mut rest = bytes.as_slice();
            assert_eq!(read(&mut rest, 3, &common).unwrap().unwrap(), rows, "{columns}");
            assert_eq!(rest, [9]);
            // Cut off anywhere.
            for end in 0..bytes.len() - 1 {
                assert!(read(&mut &bytes[..end], 3, &common).unwrap().is_none(), "{columns} {end}");
            }
        }
    }

    #[test]
    fn what_stands_for_no_column_is_refused() {
        let common = vec![0.0; 65];
        let mut bytes = Vec::new();
        write(&Matrix::zeros(1, 65), &common, &mut bytes);
        assert!(read(&mut bytes.as_slice(), 1, &common).unwrap().is_some());
        bytes[8] = 2;
        bytes.extend([0; 8]);
        assert!(read(&mut bytes.as_slice(), 1, &common).unwrap().is_none());
        assert!(read(&mut bytes.as_slice(), usize::MAX, &common).unwrap().is_none());
    }

    #[test]
    fn the_common_row_is_taken_where_it_pays() {
        let large = sparse(200, 1000);
        let common = common_row(&[&large]).unwrap();
        assert!(common.iter().enumerate().all(|(k, v)| *v == if k % 5 == 0 { 7.25 } else { 0.0 }));
        // Few bytes, and numbers of which no two are the same.
        assert!(common_row(&[&sparse(3, 1000)]).is_none());
        assert!(common_row(&[&Matrix::from_fn(200, 1000, |i, k| (i * 1000 + k) as f64)]).is_none());
        assert!(common_row(&[&Matrix::zeros(0, 5)]).is_none() && common_row(&[]).is_none());
    }
}
