//! Support vector metric learning: an RBF support vector machine that learns its own metric and C.
//!
//! The kernel is `k(x, z) = exp(-|L(x - z)|^2)`. The usual SVM takes `L = I/sigma` and finds sigma and C by
//! cross-validation on a grid; here the matrix L, the SVM and C are learned together by descent on a smooth
//! validation loss
//!
//! ```text
//! min over L, C   1/|V| sum_{(x,y) in V} psi(y h(x)) + lambda |L - L0|^2 / |L0|^2,
//!                 h = the squared-hinge SVM trained with kernel k and cost C on rows without V.
//! ```
//!
//! There is nothing to tune. By default psi is the squared hinge, V runs over two folds, and the model is the mean of
//! several such SVMs that differ in kernel and metric, weighed on rows that were not used to learn them; [`Svml::paper`]
//! is the protocol of Xu, Weinberger and Chapelle, "Distance Metric Learning for Kernel Machines". `docs/math.md` in
//! the repository has every formula.
//!
//! ```
//! use svml::{Generator, Model, Svml};
//!
//! // Two directions decide the class, eight are noise, and all are rotated.
//! let train = Generator { rows: 1000, ..Generator::default() }.generate()?.data;
//! let test = Generator { seed: 1, ..Generator::default() }.generate()?.data;
//!
//! let model = Model::fit(&train, Svml::default())?;
//! assert!(model.error_rate(&test)? < 0.15);
//! println!("{model}");
//!
//! let loaded = Model::from_bytes(&model.to_bytes()?)?;
//! assert_eq!(loaded.predict_labels(test.x())?, model.predict_labels(test.x())?);
//! # Ok::<(), svml::Error>(())
//! ```
//!
//! From a file: [`Dataset::from_path`], then [`Model::fit`], [`Model::save`]; later [`Model::load`]
//! and [`Schema::read_path`](data::Schema::read_path) for new rows. What is fitted is a [`Method`]: SVML, a
//! Euclidean SVM with a grid search, or a metric learner (one of ours or [one of your own](Learner))
//! followed by an SVM, by nearest neighbours or by nothing. [`cross_validate`] compares methods.
//!
//! # Words
//!
//! A *row* is a sample, an example: one line of a table. A *metric* is the matrix L. A *step* is an accepted step
//! of a learner's descent. *C*, `cost` in names, is the price of margin violations.
//!
//! # Threads
//!
//! Work is spread over the current rayon pool. Results have the same bits for any number of threads.
//!
//! # Devices
//!
//! A [`Run`] has a [`Device`]. By default large fits are computed on a CUDA card if the computer has one, and everything
//! else on the processor; nothing is needed to build that. What was used is in [`Report::device`]. Results are the same
//! from run to run at the same place, and differ in the last digits between the two.
//!
//! # Features
//!
//! `ndarray`: `Matrix::from` of an `ArrayView2<f64>`, and `Array2::from` of a [`Matrix`]. It is off by default.
//!
//! `cuda`: on Linux and Windows, cards of NVIDIA are looked for at run time. It is on by default, and needs nothing to build.
//!
//! # What is stable
//!
//! What these pages show follows semantic versioning: structs and enums that may grow are `non_exhaustive` or
//! are made with `..Default::default()`. The module `internals`, hidden here, promises nothing.
// On docs.rs, what belongs to a feature says so.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(loops_not_counted, feature(coverage_attribute))]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

// In the order of dependency: a module uses only those above it, which `tests/layering.rs` checks. Blank lines keep
// rustfmt from sorting them all by name.
mod error;
// What is read and written.
mod files;

// Numbers, where they are computed, and when to stop computing with them.
mod memory;
mod parallel;

mod device;

// Cards that compute, where there are any.
mod cuda;

// What was computed before the program was killed.
mod checkpoint;
mod watch;

// `make coverage` counts its loops, which that makes very slow, in the tests of this module only.
#[cfg_attr(loops_not_counted, coverage(off))]
mod linalg;

mod metric;
mod run;

// Rows, kernel matrices and the SVM on them.
pub mod data;
mod kernel;
mod svm;

// Several classes from SVMs of two.
mod multiclass;

// What is made of their outputs, and how it is minimised.
mod calibrate;
mod loss;
// SVMs on landmarks, for more rows than a kernel matrix holds.
mod landmarks;
mod optimise;

// What learns a metric: the methods that the paper compares with, and its own.
pub mod learners;
mod svml;

// What is fitted, and what comes of it.
mod grid_search;
mod method;
mod model;
mod progress;

pub mod figures;
#[doc(hidden)]
pub mod internals;

/// The programs on the first page of the repository.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The program on the page of the crate.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeOfCrate;

pub use data::{ClassWeight, Dataset, EqualRows, Generator, ReadOptions};
pub use device::Device;
pub use error::{Error, Remedy, Result};
pub use grid_search::GridSearch;
pub use learners::Learner;
pub use linalg::Matrix;
pub use loss::Surrogate;
pub use method::{AnyLearner, Fixed, Knn, Method};
pub use metric::{Form, Kernel, Metric};
pub use model::{
    Alike, ClassMeasures, CrossValidation, Explanation, Goal, LibsvmModel, Measure, Measures,
    Member, Model, Remark, Report, Scores, Stage, Threshold, ThroughLandmarks, Unusual,
    cross_validate,
};
pub use optimise::Optimiser;
pub use progress::{Progress, Standing};
pub use run::{Activity, Run, Step, Stop, SvmlStep};
pub use svml::approach::LandmarkChoice;
pub use svml::criterion::Criterion;
pub use svml::members::{Candidate, Honest};
pub use svml::{FormChoice, Svml};
