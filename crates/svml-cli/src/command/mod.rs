//! One file for each command. None uses another; what several need is in `words`, `files` or `method`.

pub mod compare;
pub mod data;
pub mod demo;
pub mod evaluate;
pub mod explain;
pub mod export;
#[cfg(feature = "fetch")]
mod fetch;
pub mod generate;
pub mod learning_curve;
#[cfg(feature = "fetch")]
mod lzw;
pub mod parameters;
pub mod plot;
pub mod predict;
pub mod report;
pub mod show;
pub mod svm_predict;
pub mod svm_train;
pub mod train;
pub mod transform;
