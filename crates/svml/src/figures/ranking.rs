//! How well the scores of a model rank rows: the ROC curve and precision against recall, each class against the rest.
//!
//! Both curves come of one pass over the rows by descending score. Areas and their intervals are those of
//! [`Measures`].

use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::model::{Measure, Measures, Model, Ranked, Scores};

/// The ROC curve of one class against the rest: how many of its rows, and how many of the others, have at least a
/// certain score.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RocCurve {
    /// The class.
    pub class: String,
    /// Number of its rows.
    pub rows: usize,
    /// The scores, descending, from infinity on, which no row has.
    pub thresholds: Vec<f64>,
    /// For each threshold the share of rows of other classes with at least this score.
    pub false_positive_rate: Vec<f64>,
    /// For each threshold the share of rows of the class with at least this score.
    pub true_positive_rate: Vec<f64>,
    /// The area under the curve.
    pub auc: f64,
    /// Its 95 % interval, as in [`Measures::intervals`].
    pub interval: Option<[f64; 2]>,
}

/// ROC curves. With two classes there is one, of the second class unless another is asked for; with several there is one
/// for each class that some rows have, or that of the class that is asked for.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Roc {
    /// The curves, in the order of the classes.
    pub curves: Vec<RocCurve>,
    /// Number of rows.
    pub rows: usize,
}

/// Precision against recall of one class against the rest.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PrecisionRecallCurve {
    /// The class.
    pub class: String,
    /// Number of its rows.
    pub rows: usize,
    /// The scores, descending.
    pub thresholds: Vec<f64>,
    /// For each threshold the share of rows of the class that have at least this score.
    pub recall: Vec<f64>,
    /// For each threshold the share of rows of the class among all that have at least this score.
    pub precision: Vec<f64>,
    /// Mean precision, sum of (R_k - R_{k-1}) P_k.
    pub average_precision: f64,
    /// Its 95 % interval, as in [`Measures::intervals`].
    pub interval: Option<[f64; 2]>,
    /// The share of rows of the class, which is the precision of scores drawn at random.
    pub base_rate: f64,
}

/// Precision against recall, for the same classes as [`Roc`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PrecisionRecall {
    /// The curves, in the order of the classes.
    pub curves: Vec<PrecisionRecallCurve>,
    /// Number of rows.
    pub rows: usize,
}

impl Roc {
    /// Ranks rows by their probabilities, or by decision values if the model has none.
    pub fn new<L: AsRef<str>>(
        model: &Model,
        x: &Matrix,
        labels: &[L],
        class: Option<&str>,
    ) -> Result<Self> {
        let curves = rankings(model, x, labels, class)?.into_iter().map(|ranking| {
            let [positive, negative] = ranking.totals();
            let start = [(f64::INFINITY, [0, 0])];
            let steps: Vec<(f64, [usize; 2])> = start.into_iter().chain(ranking.steps).collect();
            let rate = |side: usize, of: usize| {
                steps.iter().map(|(_, counts)| counts[side] as f64 / of as f64).collect()
            };
            RocCurve {
                rows: positive,
                false_positive_rate: rate(1, negative),
                true_positive_rate: rate(0, positive),
                thresholds: steps.iter().map(|(score, _)| *score).collect(),
                auc: ranking.measures.auc.unwrap_or(f64::NAN),
                interval: ranking.measures.intervals.get(&Measure::Auc).copied(),
                class: ranking.class,
            }
        });
        Ok(Self { curves: curves.collect(), rows: x.rows() })
    }
}

impl PrecisionRecall {
    /// Ranks rows by their probabilities, or by decision values if the model has none.
    pub fn new<L: AsRef<str>>(
        model: &Model,
        x: &Matrix,
        labels: &[L],
        class: Option<&str>,
    ) -> Result<Self> {
        let curves = rankings(model, x, labels, class)?.into_iter().map(|ranking| {
            let [positive, negative] = ranking.totals();
            let steps = ranking.steps.iter().map(|(_, counts)| counts);
            let interval = ranking.measures.intervals.get(&Measure::AveragePrecision).copied();
            PrecisionRecallCurve {
                rows: positive,
                recall: steps.clone().map(|[p, _]| *p as f64 / positive as f64).collect(),
                precision: steps.map(|[p, n]| *p as f64 / (p + n) as f64).collect(),
                thresholds: ranking.steps.iter().map(|(score, _)| *score).collect(),
                average_precision: ranking.measures.average_precision.unwrap_or(f64::NAN),
                interval,
                base_rate: positive as f64 / (positive + negative) as f64,
                class: ranking.class,
            }
        });
        Ok(Self { curves: curves.collect(), rows: x.rows() })
    }
}

/// Rows by the score of a class.
struct Ranking {
    class: String,
    /// The distinct scores, descending, with how many rows of the class and of the rest have at least this score.
    steps: Vec<(f64, [usize; 2])>,
    measures: Measures,
}

impl Ranking {
    /// How many rows are of the class, and how many are not.
    fn totals(&self) -> [usize; 2] {
        self.steps.last().map_or([0, 0], |(_, counts)| *counts)
    }
}

/// The rankings by the scores of the class that is asked for, or else of all that can be told from others here.
fn rankings<L: AsRef<str>>(
    model: &Model,
    x: &Matrix,
    labels: &[L],
    class: Option<&str>,
) -> Result<Vec<Ranking>> {
    if labels.len() != x.rows() {
        let what = "labels, one for each row".to_owned();
        return Err(Error::Shape { what, found: labels.len(), expected: x.rows() });
    }
    let classes = model.classes();
    // A model of the first file format has no probabilities.
    let scores = model.probabilities(x).or_else(|_| model.decision(x))?;
    let column = |class: usize| -> Vec<f64> {
        match (scores.cols(), class) {
            (1, 0) => scores.as_slice().iter().map(|h| -h).collect(),
            (1, _) => scores.as_slice().to_vec(),
            _ => scores.col(class).collect(),
        }
    };
    let asked: Vec<usize> = match class {
        Some(class) => vec![super::place(model, class)?],
        None if classes.len() == 2 => vec![1],
        None => (0..classes.len()).collect(),
    };
    let mut rankings = Vec::with_capacity(asked.len());
    let several = asked.len() > 1;
    for place in asked {
        let own: Vec<usize> =
            labels.iter().map(|l| usize::from(l.as_ref() == classes[place])).collect();
        let count = own.iter().sum::<usize>();
        if count == 0 || count == own.len() {
            // Of several classes some may have no rows here.
            if several {
                continue;
            }
            let all = if count == 0 { "no row" } else { "every row" };
            let class = &classes[place];
            return Err(Error::Data {
                what: format!(
                    "{all} belongs to the class {class}, but a curve needs rows of this class and of others"
                ),
                remedy: None,
            });
        }
        let score = column(place);
        let steps = Ranked::new(&score, |row| own[row] == 1).steps();
        let names = ["rest".to_owned(), classes[place].clone()];
        let alone = Matrix::new(score.len(), 1, score.clone())?;
        let measures = Measures::of(&names, &own, &own, Scores::Decision(&alone), 1)?;
        rankings.push(Ranking {
            class: classes[place].clone(),
            steps: steps.into_iter().map(|(row, counts)| (score[row], counts)).collect(),
            measures,
        });
    }
    match rankings.is_empty() {
        true => Err(Error::NoRows(" of two different classes, which a curve needs".to_owned())),
        false => Ok(rankings),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Generator};
    use crate::method::Method;

    fn labels(data: &Dataset) -> Vec<&str> {
        data.y().iter().map(|&c| data.classes()[c].as_str()).collect()
    }

    /// Neighbours have few distinct scores, so that there are ties.
    fn model(classes: usize) -> (Model, Dataset) {
        let generate = |seed| {
            let generator = Generator { rows: 150, classes, seed, ..Default::default() };
            generator.generate().unwrap().data
        };
        (Model::fit(&generate(0), Method::neighbours(5)).unwrap(), generate(1))
    }

    #[test]
    fn curves_agree_with_their_definition() {
        let (model, test) = model(2);
        let score: Vec<f64> = model.probabilities(test.x()).unwrap().col(1).collect();
        let at_least = |class: usize, t: f64| {
            (0..150).filter(|&i| test.y()[i] == class && score[i] >= t).count() as f64
        };
        let [negative, positive] = [0, 1].map(|c| at_least(c, -1.0));
        let roc = Roc::new(&model, test.x(), &labels(&test), None).unwrap();
        let [curve] = &roc.curves[..] else { panic!() };
        assert_eq!((curve.class.as_str(), curve.rows), ("outside", positive as usize));
        assert_eq!((curve.thresholds[0], curve.true_positive_rate[0]), (f64::INFINITY, 0.0));
        assert!(curve.thresholds.len() <= 7, "{:?}", curve.thresholds);
        for (k, t) in curve.thresholds.iter().enumerate() {
            assert_eq!(curve.true_positive_rate[k], at_least(1, *t) / positive);
            assert_eq!(curve.false_positive_rate[k], at_least(0, *t) / negative);
        }
        // The area by the trapezoidal rule.
        let area: f64 = (1..curve.thresholds.len())
            .map(|k| {
                let step = curve.false_positive_rate[k] - curve.false_positive_rate[k - 1];
                step * (curve.true_positive_rate[k] + curve.true_positive_rate[k - 1]) / 2.0
            })
            .sum();
        assert!((area - curve.auc).abs() < 1e-12);
        let [low, high] = curve.interval.unwrap();
        assert!(low < area && area < high);
        let both = PrecisionRecall::new(&model, test.x(), &labels(&test), None).unwrap();
        let [curve] = &both.curves[..] else { panic!() };
        assert_eq!(curve.base_rate, positive / 150.0);
        let (mut last, mut average) = (0.0, 0.0);
        for (k, t) in curve.thresholds.iter().enumerate() {
            let (own, other) = (at_least(1, *t), at_least(0, *t));
            assert_eq!(
                (curve.recall[k], curve.precision[k]),
                (own / positive, own / (own + other))
            );
            average += (curve.recall[k] - last) * curve.precision[k];
            last = curve.recall[k];
        }
        assert!((average - curve.average_precision).abs() < 1e-12);
    }

    #[test]
    fn each_class_against_the_rest() {
        let (model, test) = model(3);
        let names = labels(&test);
        let roc = Roc::new(&model, test.x(), &names, None).unwrap();
        let measures = model.measure(test.x(), &names).unwrap();
        assert_eq!(roc.curves.len(), 3);
        for (curve, class) in roc.curves.iter().zip(&measures.per_class) {
            assert_eq!((&curve.class, Some(curve.auc)), (&class.class, class.auc));
        }
        let asked = Roc::new(&model, test.x(), &names, Some(&model.classes()[2])).unwrap();
        assert_eq!(asked.curves[..], roc.curves[2..]);
        // Rows of two of three classes have two curves, of one none.
        let two: Vec<usize> = (0..150).filter(|&i| test.y()[i] < 2).collect();
        let of = |rows: &[usize]| {
            let names: Vec<&str> = rows.iter().map(|&i| names[i]).collect();
            Roc::new(&model, &test.x().select_rows(rows), &names, None)
        };
        assert_eq!(of(&two).unwrap().curves.len(), 2);
        let one: Vec<usize> = (0..150).filter(|&i| test.y()[i] == 1).collect();
        assert!(of(&one).is_err());
        assert!(Roc::new(&model, test.x(), &names[1..], None).is_err());
        assert!(Roc::new(&model, test.x(), &names, Some("zebra")).is_err());
    }

    #[test]
    fn curves_need_rows_of_the_class_and_of_others() {
        let of = |model: &Model, test: &Dataset, keep: &dyn Fn(usize) -> bool| {
            let rows: Vec<usize> = (0..150).filter(|&i| keep(test.y()[i])).collect();
            let own = labels(test);
            let some: Vec<&str> = rows.iter().map(|&i| own[i]).collect();
            let roc = Roc::new(model, &test.x().select_rows(&rows), &some, None);
            roc.map(|roc| roc.curves.len()).map_err(|error| error.to_string())
        };
        let (two, test) = model(2);
        let error = of(&two, &test, &|class| class == 0).unwrap_err();
        assert!(error.contains("no row belongs to the class"), "{error}");
        let error = of(&two, &test, &|class| class == 1).unwrap_err();
        assert!(error.contains("every row belongs to the class"), "{error}");
        // Of three classes the one without rows has no curve.
        let (three, test) = model(3);
        assert_eq!(of(&three, &test, &|_| true), Ok(3));
        assert_eq!(of(&three, &test, &|class| class != 1), Ok(2));
    }
}
