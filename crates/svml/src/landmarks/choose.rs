//! Which rows are landmarks: randomly pivoted Cholesky, class by class.
//!
//! A row is drawn with a probability in proportion to what the rows drawn so far leave unexplained of it: the
//! diagonal of K - K_nm K_mm^-1 K_mn. Equal rows, and rows that others stand for, are not drawn. Rows are drawn by blocks,
//! of which each keeps a row with the probability that those kept before it leave to it, much as if rows were drawn one
//! by one (Chen, Epperly, Tropp, Webber: Randomly pivoted Cholesky, 2023;
//! Epperly, Tropp, Webber: Embrace rejection, 2024).
//!
//! What is explained is measured with the exponential kernel, whatever the kernel of the SVM: a smooth kernel would be
//! explained by few rows as long as the metric is still wide, and be left with these when it has become narrower.

use chacha20::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kernel::Points;
use crate::linalg::{self, Block, Matrix};
use crate::metric::{Kernel, Metric};
use crate::parallel;
use crate::run::{Key, Watch};

/// Rows of each class that are looked at, for each that is drawn: the first in the order of the sample, which is random.
const CANDIDATES: usize = 4;
/// Rows that are drawn together.
const DRAWN: usize = 64;
/// Rows of the factor that a task computes.
const TASK_ROWS: usize = 64;
/// Rows of which less than this is unexplained are not drawn.
const EXPLAINED: f64 = 1e-9;

/// Rows that stand for all rows, class after class and ascending within each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landmarks {
    /// Row indices.
    pub rows: Vec<usize>,
    /// Where each class starts, and where the last ends.
    pub starts: Vec<usize>,
}

impl Landmarks {
    /// At most `count` of the rows of `x`, fewer if that many do not differ; every row if there are no more than that.
    pub fn choose(
        x: &Matrix,
        class: &[usize],
        classes: usize,
        count: usize,
        metric: &Metric,
        watch: &Watch,
    ) -> Result<Self> {
        let key = || {
            let key = Key::new("landmarks").numbers(x.as_slice()).places(class);
            metric.in_key(key.places(&[classes, count]))
        };
        watch.remember(key, || Self::draw(x, class, classes, count, metric, watch))
    }

    fn draw(
        x: &Matrix,
        class: &[usize],
        classes: usize,
        count: usize,
        metric: &Metric,
        watch: &Watch,
    ) -> Result<Self> {
        let mut of_class = vec![Vec::new(); classes];
        class.iter().enumerate().for_each(|(row, &class)| of_class[class].push(row));
        let sizes: Vec<usize> = of_class.iter().map(Vec::len).collect();
        let shares = shares(&sizes, count);
        let of_class = of_class.into_iter().zip(shares);
        let chosen: Vec<Vec<usize>> = parallel::try_map(of_class, |(rows, share)| {
            if share >= rows.len() {
                return Ok(rows);
            }
            let candidates = &rows[..rows.len().min(CANDIDATES * share)];
            let z = metric.transform(&x.select_rows(candidates));
            let drawn = draw(z, share, watch)?;
            let mut chosen: Vec<usize> = drawn.into_iter().map(|i| candidates[i]).collect();
            chosen.sort_unstable();
            Ok(chosen)
        })?;
        let mut starts = vec![0];
        chosen.iter().for_each(|rows| starts.push(starts[starts.len() - 1] + rows.len()));
        Ok(Self { rows: chosen.concat(), starts })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }
}

/// How many landmarks each class gets: half of them all classes alike, half by their size; what a small class cannot use
/// goes to the others.
fn shares(sizes: &[usize], count: usize) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    let due = |size: usize| 1.0 / sizes.len() as f64 + size as f64 / total.max(1) as f64;
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&class| sizes[class]);
    let mut shares = vec![0; sizes.len()];
    let (mut left, mut due_left) = (count as f64, sizes.iter().map(|&size| due(size)).sum::<f64>());
    for class in order {
        let part = (left * due(sizes[class]) / due_left).round() as usize;
        shares[class] = part.clamp(1, sizes[class].max(1));
        left -= shares[class] as f64;
        due_left -= due(sizes[class]);
    }
    shares
}

/// Draws at most `count` of the rows of z, by their places.
fn draw(z: Matrix, count: usize, watch: &Watch) -> Result<Vec<usize>> {
    let n = z.rows();
    let mut rng = ChaCha8Rng::seed_from_u64(count as u64);
    let points = Points::new(Kernel::Exponential, z.clone());
    // The factor of the Cholesky factorisation so far, a row for each candidate. // (n, count)
    let mut factor = Matrix::zeros(n, count);
    let mut unexplained = vec![1.0; n];
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        watch.check()?;
        let Some(drawn) = proportional(&unexplained, DRAWN.min(count), &mut rng) else { break };
        // What is unexplained of K between those drawn and all candidates. // (drawn, n)
        let known = chosen.len();
        let mut k = Vec::new();
        points.fill_all(&z.select_rows(&drawn), &mut k);
        if known > 0 {
            let of_drawn = Matrix::from_fn(drawn.len(), known, |i, j| factor[(drawn[i], j)]);
            let rows_per_task = n.div_ceil(16);
            let tasks = factor.as_slice().chunks(rows_per_task * count);
            let parts: Vec<Matrix> = parallel::map(tasks, |part| {
                let rows = Block::new(part, part.len() / count, known, count);
                linalg::multiply((&of_drawn).into(), rows.t())
            });
            for (i, k) in k.chunks_exact_mut(n).enumerate() {
                let explained = parts.iter().flat_map(|part| part.row(i));
                k.iter_mut().zip(explained).for_each(|(k, explained)| *k -= explained);
            }
        }
        // Those drawn are kept with the probability that they have after those kept before them.
        let mut kept: Vec<usize> = Vec::new();
        let mut lower: Vec<Vec<f64>> = Vec::new();
        for (i, &row) in drawn.iter().enumerate() {
            if chosen.len() == count {
                break;
            }
            let mut left = Vec::with_capacity(kept.len() + 1);
            for (l, &j) in kept.iter().enumerate() {
                let sum: f64 = left.iter().zip(&lower[l]).map(|(a, b): (&f64, &f64)| a * b).sum();
                left.push((k[j * n + row] - sum) / lower[l][l]);
            }
            let rest = k[i * n + row] - left.iter().map(|l| l * l).sum::<f64>();
            let keep = rng.random::<f64>() * unexplained[row] < rest;
            if keep && rest > EXPLAINED {
                left.push(rest.sqrt());
                lower.push(left);
                kept.push(i);
                chosen.push(row);
            }
        }
        // Their columns of the factor, and what is unexplained now.
        let width = kept.len();
        let rows = factor.as_mut_slice().chunks_mut(TASK_ROWS * count);
        let tasks = rows.zip(unexplained.chunks_mut(TASK_ROWS)).enumerate();
        parallel::for_each(tasks, |(task, (factor, unexplained))| {
            let rows = factor.chunks_mut(count).zip(unexplained);
            for (row, (factor, unexplained)) in (task * TASK_ROWS..).zip(rows) {
                let new = &mut factor[known..known + width];
                for (l, &i) in kept.iter().enumerate() {
                    let sum: f64 = new[..l].iter().zip(&lower[l]).map(|(a, b)| a * b).sum();
                    new[l] = (k[i * n + row] - sum) / lower[l][l];
                }
                *unexplained -= new.iter().map(|v| v * v).sum::<f64>();
            }
        });
        chosen[known..].iter().for_each(|&row| unexplained[row] = 0.0);
        unexplained.iter_mut().for_each(|u| *u = if *u > EXPLAINED { *u } else { 0.0 });
    }
    Ok(chosen)
}

/// Draws `count` different places, one after the other, with probabilities in proportion to `weights`; fewer if fewer have
/// a weight, none if none has.
fn proportional(weights: &[f64], count: usize, rng: &mut ChaCha8Rng) -> Option<Vec<usize>> {
    // The order of exponential waiting times is that of such draws.
    let mut waits: Vec<(f64, usize)> = (weights.iter().enumerate())
        .filter(|(_, weight)| **weight > 0.0)
        .map(|(place, weight)| (-(1.0 - rng.random::<f64>()).ln() / weight, place))
        .collect();
    let count = count.min(waits.len());
    if count == 0 {
        return None;
    }
    waits.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    waits.truncate(count);
    waits.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    Some(waits.into_iter().map(|(_, place)| place).collect())
}
