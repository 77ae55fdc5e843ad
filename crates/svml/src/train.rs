//! From a data set to trained machines: rows made ready for learning, the final training for a given
//! metric and C, and the temperature of its probabilities.

use rayon::prelude::*;

use crate::calibrate;
use crate::data::{Dataset, Scaler, hash_order};
use crate::error::{Error, Result};
use crate::kernel::DenseGram;
use crate::learn::Sample;
use crate::linalg::Matrix;
use crate::metric::Metric;
use crate::multiclass::{Ensemble, outputs, pairs, solve_pair, vote};
use crate::params::ClassWeight;
use crate::svm::Machine;
use crate::watch::Watch;

/// More classes than this are taken for a mistake: a column of measurements as the target.
const MAX_CLASSES: usize = 200;

/// Rows whose decision values without them fix the temperature; more make no difference to one
/// parameter.
const CALIBRATION_ROWS: usize = 1000;

/// Data made ready for learning: rows of weight 0 left out, identical rows merged, in an order that
/// depends on the rows' content alone.
pub(crate) struct Prepared {
    /// The classes that have rows.
    pub classes: Vec<String>,
    pub scaler: Scaler,
    /// Standardised rows.
    pub x: Matrix,
    pub class: Vec<usize>,
    /// Weight of each row, times that of its class.
    weight: Vec<f64>,
    /// The first row of the data set that is this row.
    pub origin: Vec<usize>,
    /// Weight of the rows of the largest class, its own factor aside.
    pub largest_class: f64,
}

/// Machines, and the temperature of their probabilities.
pub(crate) struct Trained {
    pub machines: Vec<Machine>,
    pub residual: f64,
    pub temperature: f64,
}

/// One pair of classes after training on all rows.
struct Solved {
    machine: Machine,
    residual: f64,
    /// Rows and what the machine trained without them gives there.
    without: Vec<(usize, f64)>,
}

impl Prepared {
    pub fn new(data: &Dataset, class_weight: &ClassWeight, seed: u64) -> Result<Self> {
        let counted: Vec<usize> = (0..data.rows()).filter(|&i| data.weights()[i] > 0.0).collect();
        // A choice of rows may have left classes without any: they do not count.
        let mut totals = vec![0.0; data.classes().len()];
        counted.iter().for_each(|&i| totals[data.y()[i]] += data.weights()[i]);
        let present: Vec<usize> = (0..totals.len()).filter(|&c| totals[c] > 0.0).collect();
        match present.as_slice() {
            [] => return Err(Error::NoRows(" of positive weight".to_owned())),
            [only] => return Err(Error::OneClass { class: data.classes()[*only].clone() }),
            _ if present.len() <= MAX_CLASSES => {}
            _ => {
                return Err(Error::TooManyClasses {
                    column: data.schema().target().name.clone(),
                    found: present.len(),
                    limit: MAX_CLASSES,
                });
            }
        }
        data.check_missing()?;
        let classes: Vec<String> = present.iter().map(|&c| data.classes()[c].clone()).collect();
        let x = data.x().select_rows(&counted);
        let class: Vec<usize> =
            counted.iter().map(|&i| present.partition_point(|&c| c < data.y()[i])).collect();
        let order = hash_order(&x, &class, seed);
        // Identical rows stand side by side now.
        let same = |a: &usize, b: &usize| {
            class[*a] == class[*b]
                && (x.row(*a).iter().zip(x.row(*b)))
                    .all(|(a, b)| a == b || a.is_nan() && b.is_nan())
        };
        let groups: Vec<&[usize]> = order.chunk_by(same).collect();
        let merged: Vec<usize> = groups.iter().map(|group| group[0]).collect();
        let origin = (groups.iter())
            .map(|group| group.iter().map(|&i| counted[i]).min().unwrap_or(counted[group[0]]))
            .collect();
        let mut weight: Vec<f64> = (groups.iter())
            .map(|group| {
                // In ascending order: the sum has the same bits however the rows came.
                let mut weights: Vec<f64> =
                    group.iter().map(|&i| data.weights()[counted[i]]).collect();
                weights.sort_by(f64::total_cmp);
                weights.iter().sum()
            })
            .collect();
        let x = x.select_rows(&merged);
        let class: Vec<usize> = merged.iter().map(|&i| class[i]).collect();
        let scaler = Scaler::fit(&x, &weight, &data.schema().encoded_kinds());
        let mut totals = vec![0.0; classes.len()];
        class.iter().zip(&weight).for_each(|(&c, w)| totals[c] += w);
        let factors = class_weight.factors(&classes, &totals)?;
        let largest_class = totals.iter().copied().fold(0.0, f64::max);
        weight.iter_mut().zip(&class).for_each(|(w, &c)| *w *= factors[c]);
        if let Some(bad) = weight.iter().find(|w| !(1e-12..=1e12).contains(*w)) {
            return Err(Error::Parameter {
                name: "weight",
                value: format!("{bad:e} (of a row, times that of its class)"),
                bound: "between 1e-12 and 1e12".to_owned(),
            });
        }
        Ok(Self { classes, x: scaler.apply(&x), scaler, class, weight, origin, largest_class })
    }

    pub fn sample(&self) -> Sample<'_> {
        let Self { x, class, weight, classes, .. } = self;
        Sample { x, class, weight, classes: classes.len() }
    }

    /// Refuses what would need more than `limit`: K, and for each of the machines that are trained
    /// at the same time, out of `machines` per pair of classes, `matrices` of the size of its own K.
    pub fn check_memory(&self, machines: usize, matrices: usize, limit: u64) -> Result<()> {
        let mut counts: Vec<u128> = vec![0; self.classes.len()];
        self.class.iter().for_each(|&c| counts[c] += 1);
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let largest_pair = counts[0] + counts[1];
        let pairs = counts.len() * (counts.len() - 1) / 2;
        let at_once = machines.saturating_mul(pairs).min(rayon::current_num_threads());
        let rows = self.x.rows();
        let squares = (at_once * matrices) as u128 * largest_pair.pow(2);
        let bytes = 8 * ((rows as u128).pow(2) + squares);
        if bytes > u128::from(limit) {
            return Err(Error::TooLarge {
                what: format!("the kernel matrix of {rows} rows and its factorisation"),
                bytes,
                limit: u128::from(limit),
                way_out: "raise memory_limit if the machine has that much, or use fewer rows",
            });
        }
        Ok(())
    }

    /// What the user should know about the data.
    pub fn warnings(&self, data: &Dataset) -> Vec<String> {
        let names = data.schema().encoded_names();
        let constant = (self.scaler.constant())
            .map(|k| format!("column {} is constant and was left out", names[k]));
        let single = (self.classes.iter().enumerate())
            .filter(|(c, _)| self.class.iter().filter(|class| *class == c).count() == 1)
            .map(|(_, name)| {
                format!(
                    "class {name} has a single distinct row: nothing tells how well it is recognised"
                )
            });
        constant.chain(single).collect()
    }

    /// Trains the machines on all rows, starting from the support sets that `guess` suggests.
    pub fn train(
        &self,
        metric: &Metric,
        cost: f64,
        guess: Option<&[Machine]>,
        watch: &Watch,
    ) -> Result<Trained> {
        let n = self.x.rows();
        let sample = self.sample();
        let all = sample.labelled(&(0..n).collect::<Vec<_>>(), 0);
        let guessed = guess.map(|machines| self.outputs(metric, machines));
        let gram = DenseGram::new(&self.x, n, metric, watch)?;
        // Rows to calibrate on, evenly spread.
        let chosen: Vec<usize> = (0..n).step_by(n.div_ceil(CALIBRATION_ROWS)).collect();
        let solved: Vec<Solved> = pairs(sample.classes)
            .into_par_iter()
            .enumerate()
            .map(|(p, pair)| {
                let rows = all.of_pair(pair);
                let start: Option<Vec<usize>> = guessed.as_ref().map(|h| {
                    let inside = rows.index.iter().zip(&rows.y);
                    inside.filter(|(i, y)| *y * h[(**i, p)] < 1.0).map(|(i, _)| *i).collect()
                });
                let solution = solve_pair(&gram, &rows, cost, start.as_deref())?;
                let positions: Vec<usize> = (0..rows.index.len())
                    .filter(|&q| chosen.binary_search(&rows.index[q]).is_ok())
                    .collect();
                let without = solution.leave_one_out(&rows.index, &rows.y, &positions);
                let without = positions.iter().map(|&q| rows.index[q]).zip(without).collect();
                Ok(Solved { machine: solution.machine, residual: solution.residual, without })
            })
            .collect::<Result<_>>()?;
        let machines: Vec<Machine> = solved.iter().map(|pair| pair.machine.clone()).collect();
        // A machine has not seen the rows of other classes; of its own it is asked without the row.
        let mut values = outputs(&gram, &chosen, &machines);
        for (p, pair) in solved.iter().enumerate() {
            for (row, h) in &pair.without {
                if let Ok(r) = chosen.binary_search(row) {
                    values[(r, p)] = *h;
                }
            }
        }
        let temperature = self.temperature(&values, &chosen);
        let residual = solved.iter().map(|pair| pair.residual).fold(0.0, f64::max);
        Ok(Trained { machines, residual, temperature })
    }

    /// Machines that were trained on a part only, calibrated on the rows they have not seen.
    pub fn unseen(
        &self,
        metric: &Metric,
        machines: Vec<Machine>,
        residual: f64,
        rows: &[usize],
    ) -> Trained {
        let values = self.outputs(metric, &machines).select_rows(rows);
        let temperature = self.temperature(&values, rows);
        Trained { machines, residual, temperature }
    }

    /// Machines that were trained on all rows, calibrated on what they give at rows left out: for each
    /// pair of classes at its own rows, one after the other. Other rows they have not seen anyway.
    pub fn left_out(
        &self,
        metric: &Metric,
        machines: Vec<Machine>,
        residual: f64,
        left_out: &[Vec<f64>],
    ) -> Trained {
        let rows: Vec<usize> = (0..self.x.rows()).collect();
        let all = self.sample().labelled(&rows, 0);
        let mut values = self.outputs(metric, &machines);
        for (p, (pair, outputs)) in pairs(self.classes.len()).into_iter().zip(left_out).enumerate()
        {
            for (row, h) in all.of_pair(pair).index.into_iter().zip(outputs) {
                values[(row, p)] = *h;
            }
        }
        let temperature = self.temperature(&values, &rows);
        Trained { machines, residual, temperature }
    }

    /// Whether some class has two rows that differ, so that one can validate the other.
    pub fn has_distinct_rows(&self) -> bool {
        self.class.len() > self.classes.len()
    }

    fn temperature(&self, outputs: &Matrix, rows: &[usize]) -> f64 {
        let class: Vec<usize> = rows.iter().map(|&i| self.class[i]).collect();
        let weight: Vec<f64> = rows.iter().map(|&i| self.weight[i]).collect();
        calibrate::temperature(&vote(outputs, self.classes.len()), &class, &weight)
    }

    /// Outputs of all pairs at all rows. // (n, pairs)
    fn outputs(&self, metric: &Metric, machines: &[Machine]) -> Matrix {
        let z = metric.transform(&self.x);
        let ensemble = self.ensemble(machines);
        ensemble.outputs(&z, &z.select_rows(&ensemble.support))
    }

    pub fn ensemble(&self, machines: &[Machine]) -> Ensemble {
        Ensemble::new(machines, self.classes.len(), |row| self.class[row])
    }
}
