//! To and from the matrices of ndarray. Entries are copied: theirs may have any strides, ours stand row after row.

use ndarray::{Array2, ArrayView2};

use super::Matrix;

impl From<ArrayView2<'_, f64>> for Matrix {
    fn from(array: ArrayView2<'_, f64>) -> Self {
        Self::from_fn(array.nrows(), array.ncols(), |i, j| array[(i, j)])
    }
}

impl From<Matrix> for Array2<f64> {
    fn from(matrix: Matrix) -> Self {
        Self::from_shape_fn((matrix.rows(), matrix.cols()), |entry| matrix[entry])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{array, s};

    #[test]
    fn there_and_back_whatever_the_strides() {
        let array = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let matrix = Matrix::from(array.view());
        assert_eq!((matrix.rows(), matrix.cols()), (2, 3));
        assert_eq!(matrix.as_slice(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(Array2::from(matrix.clone()), array);
        assert_eq!(Matrix::from(array.t()), matrix.transpose());
        let every_other = Matrix::from(array.slice(s![..;-1, ..;2]));
        assert_eq!(every_other.as_slice(), [4.0, 6.0, 1.0, 3.0]);
        assert_eq!(Array2::from(Matrix::zeros(0, 3)).shape(), [0, 3]);
    }
}
