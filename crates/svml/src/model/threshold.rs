//! Thresholds for two classes: a class is predicted where its probability is at least so much.

use std::fmt;
use std::str::FromStr;

use super::Model;
use super::measure::Table;
use crate::error::{Error, Result};
use crate::linalg::Matrix;

/// From which probability on one of two classes is predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The class, as an index into [`Model::classes`].
    pub class: usize,
    /// It is predicted where its probability is at least this, and the other class elsewhere.
    pub at: f64,
}

/// What a threshold is chosen for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Goal {
    /// The largest F1 of the class.
    F1,
    /// The least balanced error.
    BalancedError,
    /// The largest correlation of Matthews.
    Mcc,
    /// The least expected cost, where the two kinds of error cost differently.
    Cost {
        /// Cost of a row that is taken for one of the class and is not.
        false_positive: f64,
        /// Cost of a row of the class that is taken for one of the other.
        false_negative: f64,
    },
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F1 => f.write_str("f1"),
            Self::BalancedError => f.write_str("balanced_error"),
            Self::Mcc => f.write_str("mcc"),
            Self::Cost { false_positive, false_negative } => {
                write!(f, "cost={false_positive}:{false_negative}")
            }
        }
    }
}

impl FromStr for Goal {
    type Err = Error;

    /// `f1`, `balanced_error`, `mcc`, or `cost=FP:FN` such as `cost=1:5`.
    fn from_str(text: &str) -> Result<Self> {
        let cost =
            |text: &str| text.trim().parse().ok().filter(|c: &f64| c.is_finite() && *c > 0.0);
        let costs = || {
            let (positive, negative) = text.strip_prefix("cost=")?.split_once(':')?;
            Some(Self::Cost { false_positive: cost(positive)?, false_negative: cost(negative)? })
        };
        match text {
            "f1" => Ok(Self::F1),
            "balanced_error" => Ok(Self::BalancedError),
            "mcc" => Ok(Self::Mcc),
            _ => costs().ok_or_else(|| {
                Error::parameter(
                    "threshold",
                    format!("'{text}'"),
                    "a probability between 0 and 1, f1, balanced_error, mcc, or cost=FP:FN with the positive costs of a false positive and a false negative, such as cost=1:5",
                )
            }),
        }
    }
}

impl Goal {
    /// How well a threshold does, from the counts of the confusion matrix with the class second; larger is better.
    fn gain(self, confusion: [u64; 4]) -> f64 {
        let table = Table::of(&confusion, 2, Some(1));
        match self {
            Self::F1 => table.f1.unwrap_or(0.0),
            Self::BalancedError => -table.balanced_error,
            Self::Mcc => table.mcc.unwrap_or(0.0),
            Self::Cost { false_positive, false_negative } => {
                -(false_positive * confusion[1] as f64 + false_negative * confusion[2] as f64)
            }
        }
    }

    /// The best threshold for rows of which it is known whether they are of the class, and how probable that was.
    ///
    /// It lies in the middle between two probabilities that occur. Of thresholds that do equally well it is the one next to
    /// one half. For costs it is FP / (FP + FN), whatever the rows: with probabilities that are right, a row is taken for
    /// one of the class where (1 - p) FP is at most p FN.
    pub fn best(self, probability: &[f64], is_of_class: &[bool]) -> f64 {
        if let Self::Cost { false_positive, false_negative } = self {
            return false_positive / (false_positive + false_negative);
        }
        let mut rows: Vec<(f64, bool)> =
            probability.iter().copied().zip(is_of_class.iter().copied()).collect();
        rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let all = is_of_class.iter().filter(|of| **of).count() as u64;
        let (mut right, mut wrong) = (0_u64, 0_u64);
        let mut best: Option<(f64, f64)> = None;
        for (k, &(p, of_class)) in rows.iter().enumerate() {
            match of_class {
                true => right += 1,
                false => wrong += 1,
            }
            let next = rows.get(k + 1).map_or(0.0, |row| row.0);
            if k + 1 < rows.len() && next == p {
                continue;
            }
            // Between neighbouring numbers there is no middle.
            let middle = 0.5 * (p + next);
            let at = if k + 1 < rows.len() && middle > next { middle } else { p };
            let others = rows.len() as u64 - all;
            let gain = self.gain([others - wrong, wrong, all - right, right]);
            let nearer = |old: f64| (at - 0.5).abs() < (old - 0.5).abs();
            if best.is_none_or(|(old, value)| gain > value || gain == value && nearer(old)) {
                best = Some((at, gain));
            }
        }
        best.map_or(0.5, |(at, _)| at)
    }
}

impl Model {
    /// The threshold for a class by its name, or for the second class.
    ///
    /// ```
    /// use svml::{Generator, Goal, Model, Svml};
    ///
    /// let data = Generator { rows: 200, ..Generator::default() }.generate()?.data;
    /// let model = Model::fit(&data, Svml::default())?;
    /// let careful = model.threshold(Some("inside"), 0.9)?;
    /// let few = model.predict_at(data.x(), careful)?.iter().filter(|&&c| c == 0).count();
    /// assert!(few < model.predict(data.x())?.iter().filter(|&&c| c == 0).count());
    ///
    /// let labels: Vec<&str> = data.y().iter().map(|&c| data.classes()[c].as_str()).collect();
    /// let best = model.best_threshold(data.x(), &labels, Some("inside"), Goal::F1)?;
    /// assert!(model.measure_at(data.x(), &labels, best)?.f1 >= model.measure_at(data.x(), &labels, careful)?.f1);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn threshold(&self, class: Option<&str>, at: f64) -> Result<Threshold> {
        if !(0.0..=1.0).contains(&at) {
            return Err(Error::parameter("threshold", at, "a probability between 0 and 1"));
        }
        let classes = self.classes();
        if classes.len() != 2 {
            let bound = format!(
                "omitted unless there are two classes, but this model has {}",
                classes.len()
            );
            return Err(Error::parameter("threshold", at, bound));
        }
        let class = match class {
            None => 1,
            Some(name) => self.place(name).ok_or_else(|| {
                let bound = format!("a class of the model: {} or {}", classes[0], classes[1]);
                Error::parameter("positive", format!("'{name}'"), bound)
            })?,
        };
        Ok(Threshold { class, at })
    }

    /// The threshold that does best on labelled rows. These rows are then no rows to report measures on: the threshold
    /// was made for them.
    pub fn best_threshold<L: AsRef<str>>(
        &self,
        x: &Matrix,
        labels: &[L],
        class: Option<&str>,
        goal: Goal,
    ) -> Result<Threshold> {
        let threshold = self.threshold(class, 0.5)?;
        if labels.len() != x.rows() {
            return Err(Error::Shape {
                what: "labels, one for each row".to_owned(),
                found: labels.len(),
                expected: x.rows(),
            });
        }
        let name = &self.classes()[threshold.class];
        let is_of_class: Vec<bool> = labels.iter().map(|label| label.as_ref() == name).collect();
        let p: Vec<f64> = self.probabilities(x)?.col(threshold.class).collect();
        Ok(Threshold { at: goal.best(&p, &is_of_class), ..threshold })
    }

    /// The class of each row by a threshold, as an index into [`Model::classes`].
    pub fn predict_at(&self, x: &Matrix, threshold: Threshold) -> Result<Vec<usize>> {
        let Threshold { class, at } = threshold;
        self.threshold(self.classes().get(class).map(String::as_str), at)?;
        let p = self.probabilities(x)?;
        Ok(p.col(class).map(|p| if p >= at { class } else { 1 - class }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::folds::mix;
    use crate::{Generator, Svml};

    /// No threshold on a fine grid, nor one at a probability that occurs, does better than the one that was found.
    #[test]
    fn no_other_threshold_does_better() {
        let random = |at: u64| (mix(at) % 50) as f64 / 49.0;
        for seed in 0..20 {
            let p: Vec<f64> = (0..60).map(|i| random(seed * 1000 + i)).collect();
            let of: Vec<bool> =
                (0..60).map(|i| random(500 + seed * 1000 + i) < p[i as usize].powi(2)).collect();
            let confusion = |at: f64| {
                let mut counts = [0; 4];
                for (&p, &of) in p.iter().zip(&of) {
                    counts[2 * usize::from(of) + usize::from(p >= at)] += 1;
                }
                counts
            };
            for goal in [Goal::F1, Goal::BalancedError, Goal::Mcc] {
                let best = goal.gain(confusion(goal.best(&p, &of)));
                for other in p.iter().copied().chain((0..=1000).map(|k| f64::from(k) / 1000.0)) {
                    // A threshold above all probabilities predicts no row of the class, which is no answer.
                    if confusion(other)[1] + confusion(other)[3] > 0 {
                        assert!(goal.gain(confusion(other)) <= best + 1e-12, "{goal} {other}");
                    }
                }
            }
        }
    }

    /// With probabilities that are right, no other threshold costs less in the long run.
    #[test]
    fn the_threshold_of_costs_follows_from_them() {
        let goal: Goal = "cost=1:4".parse().unwrap();
        let at = goal.best(&[], &[]);
        assert!((at - 0.2).abs() < 1e-15);
        // The expected cost over probabilities spread evenly.
        let cost = |at: f64| -> f64 {
            (0..1000)
                .map(|k| (f64::from(k) + 0.5) / 1000.0)
                .map(|p| if p >= at { 1.0 - p } else { 4.0 * p })
                .sum()
        };
        for other in [0.0, 0.1, 0.15, 0.25, 0.5, 1.0] {
            assert!(cost(at) < cost(other));
        }
    }

    #[test]
    fn goals_are_read_back_and_others_refused() {
        for text in ["f1", "balanced_error", "mcc", "cost=1:5", "cost=0.5:2"] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), text);
        }
        for text in
            ["accuracy", "cost", "cost=1", "cost=0:1", "cost=1:-1", "cost=a:b", "cost=inf:1"]
        {
            let error = text.parse::<Goal>().unwrap_err().to_string();
            assert!(error.contains("cost=FP:FN"), "{error}");
        }
    }

    #[test]
    fn what_has_no_threshold_is_refused() {
        let data = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
        let model = Model::fit(&data, Svml::default()).unwrap();
        let refused = |class, at| model.threshold(class, at).unwrap_err().to_string();
        assert!(refused(None, 1.5).contains("between 0 and 1"));
        assert!(refused(Some("middle"), 0.5).contains("a class of the model: inside or outside"));
        let all = model.threshold(Some("inside"), 0.0).unwrap();
        assert!(model.predict_at(data.x(), all).unwrap().iter().all(|c| *c == 0));
        let none = model.threshold(Some("inside"), 1.0).unwrap();
        assert!(model.predict_at(data.x(), none).unwrap().iter().all(|c| *c == 1));
        let few = model.best_threshold(data.x(), &["inside"], None, Goal::F1);
        assert!(matches!(few, Err(Error::Shape { found: 1, expected: 60, .. })));
        let three = Generator { rows: 60, ..Default::default() }.generate().unwrap().data;
        let labels: Vec<usize> = (0..60).map(|i| i % 3).collect();
        let three = crate::Dataset::new(three.x().clone(), &labels).unwrap();
        let three = Model::fit(&three, "knn".parse::<crate::Method>().unwrap()).unwrap();
        assert!(three.threshold(None, 0.5).unwrap_err().to_string().contains("this model has 3"));
    }

    /// Between neighbouring numbers there is no middle, and labels must be there for all rows.
    #[test]
    fn thresholds_between_neighbours_and_labels_that_are_missing() {
        let low = 0.4f64;
        let at =
            Goal::F1.best(&[low, low.next_up(), low, low.next_up()], &[false, true, false, true]);
        assert_eq!(at, low.next_up());
        let data = Generator { rows: 60, ..Generator::default() }.generate().unwrap().data;
        let model = crate::Model::fit(&data, Svml::default()).unwrap();
        let labels: Vec<&str> = data.y().iter().map(|&y| data.classes()[y].as_str()).collect();
        let best = model.best_threshold(data.x(), &labels, None, Goal::F1).unwrap();
        assert!((0.0..=1.0).contains(&best.at), "{best:?}");
        let error = model.best_threshold(data.x(), &labels[1..], None, Goal::F1).unwrap_err();
        assert!(error.to_string().contains("labels, one for each row"), "{error}");
    }
}
