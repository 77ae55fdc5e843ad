//! What tests, benchmarks, the study and the command reach inside of the library. Nothing here is promised:
//! it may change in any version.

pub use crate::checkpoint::{Key, Store};
pub use crate::data::generate::subspace_found;
pub use crate::data::read::{
    Gaps, Input, Slip, Suspect, Training, UCI_SERVER, UCI_SETS, UciSet, new_rows, read_text,
    training,
};
pub use crate::data::{LabelledRows, PairRows, excerpt, pairs};
pub use crate::device::LEAST_ROWS;
pub use crate::error::is_control;
pub use crate::files::{check_writable, write_atomically, write_together};
pub use crate::learners::itml::{Pairs, Projection};
pub use crate::learners::lmnn::{LmnnProblem, LmnnValue};
pub use crate::learners::nca::NcaLoss;
pub use crate::learners::parameters::Parameters;
pub use crate::learners::pca::pca;
pub use crate::memory::room_for;
pub use crate::method::keys_of_comparison;
pub use crate::model::{ManyRows, NearestNeighbours, libsvm_rows};
pub use crate::parallel::pool;
pub use crate::progress::{clock, duration};
pub use crate::run::Watch;

macro_rules! open {
    ($($module:ident),+) => {$(
        #[allow(missing_docs)]
        pub mod $module {
            pub use crate::$module::*;
        }
    )+};
}
open!(
    calibrate,
    cuda,
    grid_search,
    kernel,
    landmarks,
    linalg,
    loss,
    multiclass,
    optimise,
    svm,
    svml
);

/// Divisions of rows.
pub mod folds {
    pub use crate::data::folds::*;
}
