//! Support vector metric learning: an RBF support vector machine that learns its own metric and C.
//!
//! The kernel is `k(x, z) = exp(-|L(x - z)|^2)`. The usual machine takes `L = I/sigma` and finds
//! sigma and C by cross-validation on a grid; here the matrix L, the machine and C are learned
//! together by descent on a smooth validation error
//!
//! ```text
//! min over L, C   1/|V| sum_{(x,y) in V} s_a(y h(x)) + lambda |L - L0|^2 / |L0|^2,
//!                 h = the squared-hinge machine trained on T with kernel k and cost C,
//! ```
//!
//! with training rows T, validation rows V, and further rows that decide when to stop. There is
//! nothing to tune. The method is that of Xu, Weinberger and Chapelle, "Distance Metric Learning
//! for Kernel Machines"; `docs/math.md` in the repository has every formula.
//!
//! ```
//! use svml::{Generator, Model, Params};
//!
//! // Two directions decide the class, eight are noise, and all are rotated.
//! let train = Generator::default().generate()?.data;
//! let test = Generator { seed: 1, ..Generator::default() }.generate()?.data;
//!
//! let model = Model::fit(&train, &Params::default())?;
//! assert!(model.error(&test)? < 0.15);
//!
//! let loaded = Model::from_bytes(&model.to_bytes()?)?;
//! assert_eq!(loaded.predict(test.x())?, model.predict(test.x())?);
//! # Ok::<(), svml::Error>(())
//! ```
//!
//! From a file: [`Dataset::from_path`], then [`Model::fit`], [`Model::save`]; later [`Model::load`]
//! and [`Schema::read_path`](data::Schema::read_path) for new rows.
//!
//! # Where the paper is
//!
//! Modules stand here in the order of the paper, and each uses only those above it.
//!
//! | paper | module |
//! |---|---|
//! | section 3, equation (7), the metric and its forms (section 4.4) | [`metric`] |
//! | the data of section 3.4: columns, standard deviation 1, splits | [`data`] |
//! | equations (4), (5), (12), the kernel and d K -> d L | [`kernel`] |
//! | section 2, equations (1) to (3), the machine | [`svm`] |
//! | section 6, several classes | [`multiclass`] |
//! | beyond the paper: probabilities | [`calibrate`] |
//! | section 4.1, equation (13), the soft zero-one loss | [`loss`] |
//! | section 4.2, equations (14) to (16), the gradient | [`criterion`] |
//! | section 4.3, the minimiser | [`optimise`] |
//! | Algorithm 1 and equation (17) | [`learn::svml`] |
//! | section 3.1, equations (8) and (9), NCA | [`learn::nca`] |
//! | section 3.2, equations (10) and (11), LMNN | [`learn::lmnn`] |
//! | section 3.3, ITML | [`learn::itml`] |
//! | section 5.1, principal components | [`learn::pca`] |
//! | beyond the paper: a start from gradients | [`learn::gop`] |
//! | beyond the paper: the form chosen from the data | [`learn::auto`] |
//! | section 5, the Euclidean machine with cross-validation | [`select`] |
//! | equation (6), nearest neighbours | [`neighbours`] |
//! | section 3.4, a machine after another learner | [`Model::fit_after`] |
//! | figure 4, the map of rows and decision | [`map`] |
//! | the plug-in for LIBSVM that its conclusion announces | [`export`] |
//!
//! # Threads
//!
//! Work is spread over the current rayon pool. Results have the same bits for any number of threads.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod error;

pub mod watch;

pub mod linalg;

pub mod metric;

pub mod data;

pub mod kernel;

pub mod svm;

pub mod multiclass;

pub mod calibrate;

pub mod loss;

pub mod criterion;

pub mod optimise;

pub mod params;

pub mod learn;

pub mod select;

mod train;

pub mod neighbours;

pub mod model;
mod model_file;

mod after;

mod given;

pub mod measure;

pub mod map;

pub mod export;

pub use data::{Dataset, Generator, ReadOptions};
pub use error::{Error, Result};
pub use learn::Rival;
pub use linalg::Matrix;
pub use metric::{Form, Metric};
pub use model::Model;
pub use model_file::write_atomically;
pub use params::Params;
pub use select::Grid;
