//! A dense row-major matrix: one row is one point.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Remedy, Result};
use crate::memory;

/// A dense matrix of `f64`, stored row by row.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "Sent")]
pub struct Matrix {
    data: Vec<f64>,
    rows: usize,
    cols: usize,
}

/// A matrix as it was sent, by whom ever.
#[derive(Deserialize)]
struct Sent {
    data: Vec<f64>,
    rows: usize,
    cols: usize,
}

impl TryFrom<Sent> for Matrix {
    type Error = Error;
    fn try_from(Sent { data, rows, cols }: Sent) -> Result<Self> {
        Self::new(rows, cols, data)
    }
}

impl Matrix {
    /// A matrix without rows and columns.
    pub(crate) const fn empty() -> Self {
        Self { rows: 0, cols: 0, data: Vec::new() }
    }

    /// A matrix of the entries in `data`, row after row.
    pub fn new(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self> {
        let expected = rows.checked_mul(cols).ok_or_else(|| Error::TooLarge {
            what: format!("a {rows} x {cols} matrix"),
            bytes: (rows as u128).saturating_mul(cols as u128).saturating_mul(8),
            limit: usize::MAX as u128,
            remedy: Remedy::UseLessData,
        })?;
        if data.len() != expected {
            return Err(Error::Shape {
                what: format!("numbers of a {rows} x {cols} matrix"),
                found: data.len(),
                expected,
            });
        }
        Ok(Self { data, rows, cols })
    }

    /// Copies rows that all have the same length.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Result<Self> {
        let cols = rows.first().map_or(0, |r| r.as_ref().len());
        let mut data = Vec::with_capacity(rows.len() * cols);
        for (i, row) in rows.iter().enumerate() {
            if row.as_ref().len() != cols {
                return Err(Error::Shape {
                    what: format!("values in row {}", i + 1),
                    found: row.as_ref().len(),
                    expected: cols,
                });
            }
            data.extend_from_slice(row.as_ref());
        }
        Ok(Self { data, rows: rows.len(), cols })
    }

    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { data: vec![0.0; rows * cols], rows, cols }
    }

    /// All zeros, of a matrix that may be too large for the memory that is there; `what` is what it is in the error.
    pub(crate) fn large(rows: usize, cols: usize, what: &str) -> Result<Self> {
        let data = memory::zeros(rows.saturating_mul(cols), what)?;
        Ok(Self { data, rows, cols })
    }

    /// Entry (i, j) is `f(i, j)`.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            data.extend((0..cols).map(|j| f(i, j)));
        }
        Self { data, rows, cols }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    ///
    /// # Panics
    ///
    /// If `i` is not below the number of rows.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, mutable.
    ///
    /// # Panics
    ///
    /// If `i` is not below the number of rows.
    pub fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// All rows in order.
    pub fn iter_rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        (0..self.rows).map(|i| self.row(i))
    }

    /// Column `j`, from top to bottom.
    ///
    /// # Panics
    ///
    /// If `j` is not below the number of columns.
    pub fn col(&self, j: usize) -> impl ExactSizeIterator<Item = f64> + Clone {
        (0..self.rows).map(move |i| self[(i, j)])
    }

    /// The rows named by `index`, in that order.
    ///
    /// # Panics
    ///
    /// If an index is not below the number of rows.
    pub fn select_rows(&self, index: &[usize]) -> Self {
        let mut data = Vec::with_capacity(index.len() * self.cols);
        for &i in index {
            data.extend_from_slice(self.row(i));
        }
        Self { data, rows: index.len(), cols: self.cols }
    }

    /// The transpose.
    pub fn transpose(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// All entries, row after row.
    pub fn as_slice(&self) -> &[f64] {
        &self.data
    }

    /// All entries, row after row, mutable.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.data
    }

    /// A vector for each row.
    pub fn into_rows(self) -> Vec<Vec<f64>> {
        self.iter_rows().map(<[f64]>::to_vec).collect()
    }

    /// The entries, row after row.
    pub fn into_vec(self) -> Vec<f64> {
        self.data
    }
}

impl std::ops::Index<(usize, usize)> for Matrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        debug_assert!(j < self.cols);
        &self.data[i * self.cols + j]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        debug_assert!(j < self.cols);
        &mut self.data[i * self.cols + j]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_make_no_matrix_are_refused() {
        let shape = |found: Result<Matrix>| match found.unwrap_err() {
            Error::Shape { found, expected, .. } => (found, expected),
            error => panic!("{error}"),
        };
        assert_eq!(shape(Matrix::new(2, 2, vec![0.0; 3])), (3, 4));
        assert_eq!(shape(Matrix::from_rows(&[vec![1.0], vec![1.0, 2.0]])), (2, 1));
        let large = Matrix::new(usize::MAX, 2, Vec::new());
        assert!(matches!(large, Err(Error::TooLarge { .. })));
    }
}
