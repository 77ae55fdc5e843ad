//! SVMs on landmarks, for more rows than a kernel matrix holds: beyond the paper.
//!
//! ```text
//! f(x) = sum_j alpha_j k(x, z_j) + b     over m landmarks z_j, rows of the training data
//!
//! min over alpha, b   1/2 alpha' K_mm alpha + C sum_i w_i/2 max(0, 1 - y_i f_i)^2,    f = K_nm alpha + b
//! ```
//!
//! It is the SVM of equations (1) to (3) with f confined to what the landmarks span; if every row is a landmark it is that
//! SVM. Of the rows only sums are needed ([`blocks`]): K_nm is never there as a whole, and time grows
//! with the number of rows.
//!
//! | | here |
//! |---|---|
//! | which rows are landmarks | `choose` |
//! | what is asked of the rows, and the sum of answers | `question` |
//! | a part of the rows, cut into blocks | `part` |
//! | the same answers on a card | `card` |
//! | its sums for Newton's method | `sums` |
//! | Newton's method in m dimensions | `newton` |
//! | the validation loss and its gradient in L and C | `gradient` |
//! | columns and some rows of data that lie in parts | `gather` |
//!
//! The SVM of a pair of classes has the landmarks of these two classes only. All pairs, and all folds, share the blocks of
//! K, and Newton's steps of all of them are taken together.

mod card;
mod choose;
mod gather;
mod gradient;
mod newton;
mod pair;
mod part;
mod question;
mod sums;

pub use card::CardRows;
pub use choose::Landmarks;
pub use gather::{Columns, Drawn, DrawnRow, matrix_of};
pub use gradient::Evaluated;
pub use newton::{LandmarkProblems, LandmarkSvms};
pub use part::{BLOCK, LocalRows, PART, Part, blocks_in};
pub use question::{
    Answer, Guess, LandmarkKernel, Point, Preparation, Problem, Question, Rows, Setting, Systems,
    Tree, Validation,
};
