//! Systems with K_SS + ridge: a Cholesky factor that follows a moving set S.

use super::{DenseGram, Factor, Gram};
use crate::error::Result;
use crate::kernel::Inverse;
use crate::linalg::{self, Block, Cholesky, Matrix, SmallSystem, dot};
use crate::memory;
use crate::parallel;

/// The factorisation of K[set, set] + diag(ridge), by Cholesky for a base set S and, when the set
/// has moved a little since, by a border around that factor.
///
/// With rows D added to S and rows R removed from it, beta on the new set solves
///
/// ```text
/// [ A_SS  U ] [ beta_S ]   [ rhs_S, 0 on R ]        U = [ K_SD  E_R ],  V = [ A_DD  0 ]
/// [ U'    V ] [ w      ] = [ rhs_D, 0      ]                                [ 0     0 ]
/// ```
///
/// where E_R holds the unit vectors of R: they free the equations of R and force beta_R = 0. With
/// A_SS = G G' and T = G^-1 U the Schur complement is V - T'T, which is small.
pub(super) struct DenseFactor<'g, 'x> {
    gram: &'g DenseGram<'x>,
    base: Vec<usize>,
    cholesky: Option<Cholesky>,
    /// Columns of U seen so far: Newton steps come back to most of them.
    changes: Vec<Change>,
    /// The columns of T that belong to them, one after the other.
    t: Vec<f64>,
    /// For each of them its inner products with all up to those computed together with it.
    products: Vec<Vec<f64>>,
    border: Option<Border>,
}

/// A column of U: the row added, or the position in the base set of the row removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Added(usize),
    Removed(usize),
}

/// The set as it differs from the base set.
struct Border {
    schur: SmallSystem,
    /// Which of the columns are in use, rows added first.
    columns: Vec<usize>,
    /// (position in the new set, position in the base set) of the rows in both.
    kept: Vec<(usize, usize)>,
    /// Positions in the new set of the rows added.
    added: Vec<usize>,
    /// The new set, and its ridge.
    set: Vec<usize>,
    ridge: Vec<f64>,
}

impl<'g, 'x> DenseFactor<'g, 'x> {
    pub fn new(gram: &'g DenseGram<'x>, set: &[usize], ridge: &[f64]) -> Result<Self> {
        let n = set.len();
        // Where there is no room for all columns, none is needed for the square either.
        gram.prefetch(set);
        gram.watch.check()?;
        let mut a = gram.buffer(n.saturating_mul(n))?;
        gram.gather_square(&mut a, set);
        a.iter_mut().step_by(n + 1).zip(ridge).for_each(|(a, r)| *a += r);
        let smallest = ridge.iter().copied().fold(f64::INFINITY, f64::min);
        let cholesky = Some(Cholesky::new(a, n, smallest, &gram.watch)?);
        let base = set.to_vec();
        Ok(Self {
            gram,
            base,
            cholesky,
            changes: vec![],
            t: vec![],
            products: vec![],
            border: None,
        })
    }

    /// Positions in `self.changes` of these changes; columns not seen before are computed.
    fn columns_of(&mut self, changes: &[Change], cholesky: &Cholesky) -> Result<Vec<usize>> {
        const ROWS: usize = 64;
        let n = self.base.len();
        let mut known: Vec<(Change, usize)> = self.changes.iter().copied().zip(0..).collect();
        known.sort_unstable();
        let find = |change: &Change| {
            known.binary_search_by_key(change, |(known, _)| *known).ok().map(|i| known[i].1)
        };
        let first = self.changes.len();
        self.changes.extend(changes.iter().filter(|c| find(c).is_none()));
        let (gram, base, new) = (self.gram, &self.base, &self.changes[first..]);
        let wanted = self.changes.len() * n;
        let more = wanted - self.t.len();
        memory::reserve(&mut self.t, more, "a changed factorisation of the kernel matrix")?;
        self.t.resize(wanted, 0.0);
        parallel::for_each(self.t[first * n..].chunks_exact_mut(n).zip(new), |(t, change)| {
            match *change {
                Change::Added(row) => {
                    let k = gram.column(row);
                    t.iter_mut().zip(base).for_each(|(t, &j)| *t = k[j]);
                }
                Change::Removed(position) => t[position] = 1.0,
            }
        });
        let watch = &self.gram.watch;
        cholesky.solve_lower_watched(&mut self.t[first * n..], watch)?;
        let (t, width) = (&self.t, self.changes.len());
        let all = Block::new(t, width, n, n);
        let products = parallel::try_map(t[first * n..].chunks(ROWS * n), |rows| {
            watch.check()?;
            let count = rows.len() / n;
            Ok(linalg::multiply(Block::new(rows, count, n, n), all.t()).into_rows())
        })?;
        self.products.extend(products.into_iter().flatten());
        let mut next = first..;
        Ok(changes.iter().map(|c| find(c).or_else(|| next.next()).unwrap_or(first)).collect())
    }
}

impl Drop for DenseFactor<'_, '_> {
    fn drop(&mut self) {
        if let Some(cholesky) = self.cholesky.take() {
            self.gram.give_back(cholesky.into_buffer());
        }
    }
}

impl Factor for DenseFactor<'_, '_> {
    fn update(&mut self, set: &[usize], ridge: &[f64]) -> Result<()> {
        let (mut kept, mut added, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut i, mut j) = (0, 0);
        while i < set.len() || j < self.base.len() {
            match (set.get(i), self.base.get(j)) {
                (Some(s), Some(b)) if s == b => {
                    kept.push((i, j));
                    i += 1;
                    j += 1;
                }
                (Some(s), b) if b.is_none_or(|b| s < b) => {
                    added.push(i);
                    i += 1;
                }
                _ => {
                    removed.push(j);
                    j += 1;
                }
            }
        }
        let changed = added.len() + removed.len();
        // The border costs about 3 changed / n of a factorisation, and later changes less.
        let Some(cholesky) = self.cholesky.take_if(|_| 4 * changed <= self.base.len()) else {
            if let Some(cholesky) = self.cholesky.take() {
                self.gram.give_back(cholesky.into_buffer());
            }
            *self = Self::new(self.gram, set, ridge)?;
            return Ok(());
        };
        self.gram.prefetch(&added.iter().map(|&i| set[i]).collect::<Vec<_>>());
        self.gram.watch.check()?;
        let changes: Vec<Change> = (added.iter().map(|&i| Change::Added(set[i])))
            .chain(removed.into_iter().map(Change::Removed))
            .collect();
        let columns = self.columns_of(&changes, &cholesky)?;
        self.cholesky = Some(cholesky);
        self.border = (changed > 0).then(|| {
            let mut schur = Matrix::from_fn(changed, changed, |a, b| {
                let (first, last) = (columns[a].min(columns[b]), columns[a].max(columns[b]));
                -self.products[last][first]
            });
            for (a, &i) in added.iter().enumerate() {
                for (b, &j) in added.iter().enumerate() {
                    schur[(a, b)] += self.gram.column(set[i])[set[j]];
                }
                schur[(a, a)] += ridge[i];
            }
            let (set, ridge) = (set.to_vec(), ridge.to_vec());
            Border { schur: SmallSystem::new(&schur), columns, kept, added, set, ridge }
        });
        self.gram.watch.check()
    }

    fn solve(&self, x: &mut [f64]) {
        let Some(cholesky) = &self.cholesky else { return };
        let Some(border) = &self.border else {
            cholesky.solve_lower(x);
            cholesky.solve_upper(x);
            return;
        };
        let n = self.base.len();
        let set = border.kept.len() + border.added.len();
        let columns = x.len() / set.max(1);
        let mut c = vec![0.0; columns * n];
        for (c, x) in c.chunks_exact_mut(n).zip(x.chunks_exact(set)) {
            border.kept.iter().for_each(|&(i, j)| c[j] = x[i]);
        }
        cholesky.solve_lower(&mut c);
        let t = || border.columns.iter().map(|&i| &self.t[i * n..(i + 1) * n]);
        for (c, x) in c.chunks_exact_mut(n).zip(x.chunks_exact_mut(set)) {
            let mut w: Vec<f64> = t().map(|t| -dot(t, c)).collect();
            w.iter_mut().zip(&border.added).for_each(|(w, &i)| *w += x[i]);
            border.schur.solve(&mut w);
            for (w, t) in w.iter().zip(t()) {
                c.iter_mut().zip(t).for_each(|(c, t)| *c -= w * t);
            }
            border.added.iter().zip(&w).for_each(|(&i, &w)| x[i] = w);
        }
        cholesky.solve_upper(&mut c);
        for (c, x) in c.chunks_exact(n).zip(x.chunks_exact_mut(set)) {
            border.kept.iter().for_each(|&(i, j)| x[i] = c[j]);
        }
    }

    /// Without a border the squared norms of columns of G^-1, since A^-1 = G'^-1 G^-1. With one, the
    /// leading block of the inverse is A^-1 + A^-1 U Z U' A^-1, where Z is the inverse of the Schur
    /// complement: entry i gains w' Z w with w = T' G^-1 e_i. Rows added have their entry of Z.
    fn inverse_diagonal(&self, positions: &[usize]) -> Vec<f64> {
        const COLUMNS: usize = 32;
        let Some(cholesky) = &self.cholesky else { return Vec::new() };
        let n = self.base.len();
        let border = self.border.as_ref();
        let width = border.map_or(0, |border| border.columns.len());
        let in_base = |position: usize| match border {
            None => Ok(position),
            Some(border) => match border.kept.binary_search_by_key(&position, |(set, _)| *set) {
                Ok(at) => Ok(border.kept[at].1),
                Err(_) => Err(border.added.partition_point(|&added| added < position)),
            },
        };
        let places: Vec<(usize, usize)> = positions
            .iter()
            .enumerate()
            .filter_map(|(p, &position)| in_base(position).ok().map(|place| (p, place)))
            .collect();
        let mut diagonal = vec![0.0; positions.len()];
        let parts: Vec<Vec<f64>> = parallel::map(places.chunks(COLUMNS), |places| {
            let base: Vec<usize> = places.iter().map(|(_, place)| *place).collect();
            let (columns, rows) = (cholesky.inverse_columns(&base), n - base[0]);
            let mut entries: Vec<f64> = columns.chunks_exact(rows).map(|c| dot(c, c)).collect();
            if let Some(border) = border {
                let t = border.columns.iter().map(|&i| &self.t[i * n + base[0]..(i + 1) * n]);
                let t: Vec<&[f64]> = t.collect();
                let mut w = vec![0.0; width * base.len()];
                for (w, c) in w.chunks_exact_mut(width).zip(columns.chunks_exact(rows)) {
                    w.iter_mut().zip(&t).for_each(|(w, t)| *w = dot(t, c));
                }
                let mut zw = w.clone();
                border.schur.solve(&mut zw);
                let gains = w.chunks_exact(width).zip(zw.chunks_exact(width));
                entries.iter_mut().zip(gains).for_each(|(entry, (w, zw))| *entry += dot(w, zw));
            }
            entries
        });
        for ((p, _), entry) in places.iter().zip(parts.into_iter().flatten()) {
            diagonal[*p] = entry;
        }
        for (p, &position) in positions.iter().enumerate() {
            if let (Some(border), Err(added)) = (border, in_base(position)) {
                let mut unit = vec![0.0; width];
                unit[added] = 1.0;
                border.schur.solve(&mut unit);
                diagonal[p] = unit[added];
            }
        }
        diagonal
    }

    fn bordered_inverse<'b>(&'b self, inverse_ones: &[f64]) -> Result<Box<dyn Inverse + 'b>> {
        let set = match &self.border {
            None => self.base.clone(),
            Some(border) => border.set.clone(),
        };
        let n = set.len();
        let mut b = match (&self.border, &self.cholesky) {
            (None, Some(cholesky)) => cholesky.inverse(&self.gram.watch)?,
            (Some(border), _) => {
                let fresh = Self::new(self.gram, &set, &border.ridge)?;
                match &fresh.cholesky {
                    Some(cholesky) => cholesky.inverse(&self.gram.watch)?,
                    None => Matrix::default(),
                }
            }
            _ => Matrix::default(),
        };
        let ones: f64 = inverse_ones.iter().sum();
        parallel::for_each(b.as_mut_slice().chunks_mut(n.max(1)).zip(inverse_ones), |(row, zi)| {
            row.iter_mut().zip(inverse_ones).for_each(|(b, zj)| *b -= zi * zj / ones);
        });
        Ok(Box::new(DenseInverse { gram: self.gram, set, b }))
    }
}

/// B as an array.
struct DenseInverse<'g, 'x> {
    gram: &'g DenseGram<'x>,
    set: Vec<usize>,
    b: Matrix,
}

impl Inverse for DenseInverse<'_, '_> {
    fn diagonal(&self) -> Vec<f64> {
        (0..self.set.len()).map(|i| self.b[(i, i)]).collect()
    }

    fn contract(&self, q: &[f64]) -> Result<(Vec<f64>, Vec<f64>)> {
        let n = self.set.len();
        let gradient = self.gram.contract_symmetric(&self.set, |first, out| {
            // Rows of B diag(q) B.
            let count = out.len() / n;
            let scaled = Matrix::from_fn(count, n, |i, j| self.b[(first + i, j)] * q[j]);
            linalg::product(out, n, 1.0, (&scaled).into(), (&self.b).into());
        });
        let diagonal =
            (0..n).map(|i| self.b.row(i).iter().zip(q).map(|(b, q)| b * b * q).sum()).collect();
        Ok((gradient, diagonal))
    }
}
