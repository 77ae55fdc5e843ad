//! Which columns of a table the caller wants, and does not want.

use crate::error::{Error, Result};
use crate::linalg::Matrix;

use super::csv::find_target;
use crate::data::cell::excerpt;
use crate::data::coding::check_width;
use crate::data::identifiers::LeftOut;
use crate::data::options::{ReadOptions, Target};
use crate::data::schema::{Column, Schema};

/// What the caller says about a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing: it is used unless it looks like an identifier.
    Nothing,
    /// It is to be used, whatever it looks like.
    Use,
    /// It is to be left out.
    Drop,
}

/// The places of columns by names or numbers from 1.
pub(super) fn places(names: &[String], wanted: &[String]) -> Result<Vec<usize>> {
    wanted.iter().map(|column| find_target(names, &Target::Column(column.clone()))).collect()
}

/// What the caller says about each column of a table; `target` is the place of the classes, if these have one there.
pub(super) fn said(
    names: &[String],
    target: Option<usize>,
    options: &ReadOptions,
) -> Result<Vec<Said>> {
    let mut said =
        vec![if options.only.is_empty() { Said::Nothing } else { Said::Drop }; names.len()];
    for place in places(names, &options.only)? {
        said[place] = Said::Use;
    }
    let refuse = |option: &'static str, place: usize, bound: &str| {
        Err(Error::parameter(option, format!("'{}'", excerpt(&names[place])), bound))
    };
    for place in places(names, &options.use_anyway)? {
        if said[place] == Said::Drop {
            return refuse("use_anyway", place, "one of the columns given by only");
        }
        said[place] = Said::Use;
    }
    for place in places(names, &options.drop)? {
        if Some(place) == target {
            return refuse("drop", place, "a column other than the target column");
        }
        if said[place] == Said::Use {
            return refuse("drop", place, "a column that is not also requested by another option");
        }
        said[place] = Said::Drop;
    }
    Ok(said)
}

/// Some columns of a matrix.
pub(super) fn only_columns(x: Matrix, kept: &[usize]) -> Matrix {
    match kept.len() == x.cols() {
        true => x,
        false => Matrix::from_fn(x.rows(), kept.len(), |i, k| x[(i, kept[k])]),
    }
}

impl Schema {
    /// Leaves out columns of numbers by what was said about each; gives the places of those that stay.
    pub(super) fn choose(&mut self, said: impl Iterator<Item = Said>) -> Result<Vec<usize>> {
        let mut kept = Vec::with_capacity(self.columns.len());
        for (k, (column, said)) in self.columns.iter_mut().zip(said).enumerate() {
            match said {
                Said::Drop => {
                    *column = Column::ignored(std::mem::take(&mut column.name), LeftOut::Asked);
                }
                _ => kept.push(k),
            }
        }
        check_width(self)?;
        Ok(kept)
    }
}
