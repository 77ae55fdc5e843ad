//! The model as LIBSVM knows it.
//!
//! Scaling and metric are one linear map z = L (x - mean) / scale, after which the kernel is
//! exp(-|z - z'|^2): LIBSVM's RBF kernel with gamma 1. LIBSVM decides a pair (i, j) of classes for i if
//! sum coef k - rho > 0, the model for the second of its pair if h > 0, so with the classes in reverse
//! order all signs agree and coef = beta, rho = -b. The ridge I/C exists only in training. All SVMs
//! share one metric, so one file holds them. Numbers are written so that they are read back exactly.
//!
//! For a sphere or a diagonal the map is a scale for each feature, which LIBSVM's svm-scale knows as well: it maps
//! min..max to -1..1, so min = mean - scale / w and max = mean + scale / w make it z = w (x - mean) / scale.

use std::fmt::Write;

use super::{Member, Model};
use crate::data::pairs;
use crate::error::{Error, Result};
use crate::linalg::Matrix;
use crate::metric::{Form, Kernel};

/// A model in LIBSVM's text format, for rows that [`Model::transform`] has mapped.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LibsvmModel {
    /// The file.
    pub text: String,
    /// The number that stands for each of [`Model::classes`].
    pub labels: Vec<i32>,
    /// Whether the numbers are the class labels themselves; otherwise they count from 0.
    pub own_labels: bool,
    /// A range file for svm-scale, by which it maps rows of encoded features as [`Model::transform`] does, to the six
    /// digits that it prints; `None` if the metric is neither a sphere nor diagonal, because svm-scale knows one scale for
    /// each feature only.
    pub range: Option<String>,
}

impl Model {
    /// The integer that stands for each class in LIBSVM files, which know no other labels: the class
    /// itself if all are integers, else its place from 0. The flag tells which.
    pub fn libsvm_labels(&self) -> (Vec<i32>, bool) {
        let own: Option<Vec<i32>> = self.classes.iter().map(|class| class.parse().ok()).collect();
        match own {
            Some(labels) => (labels, true),
            None => ((0..).take(self.classes.len()).collect(), false),
        }
    }

    /// Exports the model, with `probabilities` if it has two classes: for more LIBSVM combines the pairs
    /// in another way.
    ///
    /// Where the vote of several classes ties, LIBSVM takes the first class and the model the one with
    /// the larger sum.
    pub fn to_libsvm(&self, probabilities: bool) -> Result<LibsvmModel> {
        let gaussian = |member: &&Member| member.kernel == Kernel::Gaussian;
        let Some(svms) = self.only_member().filter(gaussian) else {
            return Err(Error::NotForLibsvm);
        };
        let (labels, own_labels) = self.libsvm_labels();
        let classes = labels.len();
        let reversed = |class: usize| classes - 1 - class;
        let mut text = String::from("svm_type c_svc\nkernel_type rbf\ngamma 1\n");
        // Writing to a string cannot fail.
        let _ = write!(text, "nr_class {classes}\ntotal_sv {}\nrho", svms.pairwise.support.len());
        let pair_of: Vec<(usize, usize)> = pairs(classes);
        for (i, j) in pairs(classes) {
            let pair = (reversed(j), reversed(i));
            let bias = pair_of.binary_search(&pair).map_or(0.0, |p| svms.pairwise.bias[p]);
            // Zero has no sign here.
            let _ = write!(text, " {:e}", 0.0 - bias);
        }
        text.push_str("\nlabel");
        labels.iter().rev().for_each(|label| text.push_str(&format!(" {label}")));
        if let (2, Some(temperature)) = (classes, self.temperature().filter(|_| probabilities)) {
            // p(first) = 1 / (1 + exp(A h + B)).
            let shift = match self.class_weights() {
                Some([first, second]) => format!("{:e}", (second / first).ln()),
                _ => "0".to_owned(),
            };
            let _ = write!(text, "\nprobA {:e}\nprobB {shift}", -temperature.recip());
        }
        text.push_str("\nnr_sv");
        svms.pairwise.counts.iter().rev().for_each(|count| text.push_str(&format!(" {count}")));
        text.push_str("\nSV\n");
        let counts = &svms.pairwise.counts;
        for class in (0..classes).rev() {
            let start: usize = counts[..class].iter().sum();
            for at in start..start + counts[class] {
                // The SVMs with the other classes, in reverse order.
                for slot in (0..classes - 1).rev() {
                    let _ = write!(text, "{:e} ", svms.pairwise.beta[(slot, at)]);
                }
                write_entries(&mut text, svms.mapped.row(at));
            }
        }
        Ok(LibsvmModel { text, labels, own_labels, range: self.svm_scale_range() })
    }

    /// What `svm-scale -r` reads.
    fn svm_scale_range(&self) -> Option<String> {
        let metric = self.acting_metric();
        let weight = |k: usize| match metric.form() {
            Form::Sphere => Some(metric.values()[0]),
            Form::Diagonal => Some(metric.values()[k]),
            _ => None,
        };
        let mut text = String::from("x\n-1 1\n");
        for (k, (mean, scale)) in self.scaler.mean.iter().zip(&self.scaler.scale).enumerate() {
            let half = scale / weight(k)?;
            let (low, high) = (mean - half, mean + half);
            // A feature of equal ends is left out by svm-scale: one that was constant or has no weight, and one that weighs
            // so little that the ends are no numbers.
            let there = *scale > 0.0 && low.is_finite() && high.is_finite();
            let (low, high) = if there { (low, high) } else { (0.0, 0.0) };
            let _ = writeln!(text, "{} {low:e} {high:e}", k + 1);
        }
        Some(text)
    }
}

/// Rows in the LIBSVM format, each with its label.
pub fn libsvm_rows<'a>(x: &Matrix, labels: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for (row, label) in x.iter_rows().zip(labels) {
        text.push_str(label);
        text.push(' ');
        write_entries(&mut text, row);
    }
    text
}

/// ` index:value` for every value but zero, and the end of the line.
fn write_entries(text: &mut String, row: &[f64]) {
    for (k, value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
        let _ = write!(text, "{}:{value:e} ", k + 1);
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Generator};
    use crate::{ClassWeight, Form, GridSearch, Metric, Svml};

    /// What LIBSVM computes from the text, by its own rules: one value for each pair.
    fn decision_values(text: &str, z: &[f64]) -> Vec<f64> {
        let (header, vectors) = text.split_once("SV\n").unwrap();
        let numbers = |name: &str| -> Vec<f64> {
            let line = header.lines().find(|line| line.starts_with(name)).unwrap();
            line.split(' ').skip(1).map(|v| v.parse().unwrap()).collect()
        };
        let (rho, counts) = (numbers("rho"), numbers("nr_sv"));
        let k = counts.len();
        let rows: Vec<(Vec<f64>, f64)> = vectors
            .lines()
            .map(|line| {
                let coefficients =
                    line.split(' ').take(k - 1).map(|v| v.parse().unwrap()).collect();
                let mut sv = vec![0.0; z.len()];
                for entry in line.split(' ').skip(k - 1).filter(|e| !e.is_empty()) {
                    let (index, value) = entry.split_once(':').unwrap();
                    sv[index.parse::<usize>().unwrap() - 1] = value.parse().unwrap();
                }
                let distance: f64 = sv.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
                (coefficients, (-distance).exp())
            })
            .collect();
        let start = |c: usize| counts[..c].iter().sum::<f64>() as usize;
        let sum = |class: usize, slot: usize| -> f64 {
            rows[start(class)..start(class + 1)].iter().map(|(c, k)| c[slot] * k).sum()
        };
        let of_pair = |(p, (i, j)): (usize, (usize, usize))| sum(i, j - 1) + sum(j, i) - rho[p];
        pairs(k).into_iter().enumerate().map(of_pair).collect()
    }

    #[test]
    fn libsvms_rule_gives_our_decision_values() {
        for classes in [2, 4] {
            let generator = Generator { rows: 150, classes, ..Default::default() };
            let data = generator.generate().unwrap().data;
            let model =
                Model::fit(&data, Svml { form: Form::Diagonal.into(), ..Svml::default() }).unwrap();
            let exported = model.to_libsvm(true).unwrap();
            assert!(!exported.own_labels);
            assert_eq!(exported.labels.len(), classes);
            let z = model.transform(data.x()).unwrap();
            let svms = model.only_member().unwrap();
            let ours = svms.pairwise.outputs(Kernel::Gaussian, &z, &svms.mapped);
            // Rounding is that of sums of beta.
            let size: f64 = model.beta().as_slice().iter().map(|beta| beta.abs()).sum();
            let numbered: Vec<(usize, usize)> = pairs(classes);
            for r in 0..z.rows() {
                let theirs = decision_values(&exported.text, z.row(r));
                for (value, (i, j)) in theirs.iter().zip(pairs(classes)) {
                    let pair = (classes - 1 - j, classes - 1 - i);
                    let p = numbered.iter().position(|q| *q == pair).unwrap();
                    assert!((value - ours[(r, p)]).abs() < 1e-15 * size.max(1e3));
                }
            }
        }
    }

    #[test]
    fn integer_classes_keep_their_labels_and_probabilities_their_function() {
        let generated = Generator { rows: 80, ..Default::default() }.generate().unwrap().data;
        let labels: Vec<i32> = generated.y().iter().map(|&c| [-1, 7][c]).collect();
        let data = Dataset::new(generated.x().clone(), &labels).unwrap();
        let model = Model::fit(&data, GridSearch::default()).unwrap();
        let exported = model.to_libsvm(true).unwrap();
        assert_eq!((exported.labels.as_slice(), exported.own_labels), (&[-1, 7][..], true));
        assert!(exported.text.contains("\nlabel 7 -1\n"));
        let line = exported.text.lines().find(|line| line.starts_with("probA")).unwrap();
        let a: f64 = line[6..].parse().unwrap();
        let (h, p) = (model.decision(data.x()).unwrap(), model.probabilities(data.x()).unwrap());
        for r in 0..data.rows() {
            assert!((1.0 / (1.0 + (a * h[(r, 0)]).exp()) - p[(r, 1)]).abs() < 1e-14);
        }
    }

    /// p = 1 / (1 + exp(A h + B)), where B takes the weights of the classes out again.
    #[test]
    fn weights_of_classes_are_in_the_exported_probabilities() {
        let generated = Generator { rows: 120, ..Default::default() }.generate().unwrap().data;
        let rare = |&i: &usize| generated.y()[i] == 0 || i % 3 == 0;
        let rows: Vec<usize> = (0..120).filter(rare).collect();
        let data = generated.select(&rows);
        let method = Svml {
            form: Form::Diagonal.into(),
            class_weight: ClassWeight::Balanced,
            ..Svml::default()
        };
        let model = Model::fit(&data, method).unwrap();
        let text = model.to_libsvm(true).unwrap().text;
        let number = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split(' ').nth(1).unwrap().parse().unwrap()
        };
        let (a, b) = (number("probA"), number("probB"));
        assert!(b > 0.1, "{b}");
        let (h, p) = (model.decision(data.x()).unwrap(), model.probabilities(data.x()).unwrap());
        for r in 0..data.rows() {
            assert!((1.0 / (1.0 + (a * h[(r, 0)] + b).exp()) - p[(r, 1)]).abs() < 1e-14);
        }
        assert!(!model.to_libsvm(false).unwrap().text.contains("prob"));
    }

    #[test]
    fn a_range_maps_rows_as_the_model_does() {
        let generated = Generator { rows: 90, ..Default::default() }.generate().unwrap().data;
        // The last column is constant, and the others have units and origins of their own.
        let x = Matrix::from_fn(90, 4, |i, k| match k {
            3 => 5.0,
            _ => 10.0 + 3.0_f64.powi(k as i32) * generated.x()[(i, k)],
        });
        let data = Dataset::new(x, generated.y()).unwrap();
        for form in [Form::Sphere, Form::Diagonal] {
            let model = Model::fit(&data, Svml { form: form.into(), ..Svml::default() }).unwrap();
            let range = model.to_libsvm(false).unwrap().range.unwrap();
            let mut lines = range.lines();
            assert_eq!((lines.next(), lines.next()), (Some("x"), Some("-1 1")));
            let z = model.transform(data.x()).unwrap();
            let mut columns = 0;
            for (k, line) in lines.enumerate() {
                let numbers: Vec<f64> = line.split(' ').map(|v| v.parse().unwrap()).collect();
                let [place, low, high] = numbers[..] else { panic!("{line}") };
                assert_eq!(place, (k + 1) as f64);
                // Where a weight is negative so is the range.
                assert_eq!(low != high, k < 3, "{line}");
                for (row, z) in data.x().iter_rows().zip(z.iter_rows()) {
                    let scaled = match low != high {
                        true => -1.0 + 2.0 * (row[k] - low) / (high - low),
                        false => 0.0,
                    };
                    assert!((scaled - z[k]).abs() < 1e-12, "{form}: {scaled} {}", z[k]);
                }
                columns += 1;
            }
            assert_eq!(columns, 4);
        }
        let rank = Svml { form: Form::Rank(2).into(), ..Svml::default() };
        assert_eq!(Model::fit(&data, rank).unwrap().to_libsvm(false).unwrap().range, None);
    }

    #[test]
    fn rows_are_read_back_exactly() {
        let x = Matrix::from_rows(&[[0.1 + 0.2, 0.0, -1e-300], [0.0, 0.0, 0.0]]).unwrap();
        let text = libsvm_rows(&x, ["3", "-1"]);
        assert_eq!(text.lines().nth(1), Some("-1 "));
        let data = Dataset::from_libsvm(text.as_bytes(), &Default::default()).unwrap();
        assert_eq!(data.x(), &x);
        assert_eq!(data.classes(), ["-1", "3"]);
    }

    /// A column so wide that one end of its range is no number is left out like one without weight: no end that is written
    /// is anything but a number.
    #[test]
    fn ranges_have_no_infinite_ends() {
        let data = Generator { rows: 40, ..Default::default() }.generate().unwrap().data;
        let form = Form::Diagonal.into();
        let mut model = Model::fit(&data, Svml { form, ..Svml::default() }).unwrap();
        let mut values = model.metric.values().to_vec();
        values[..2].fill(1.0);
        model.metric = Metric::new(Form::Diagonal, values.len(), values).unwrap();
        (model.scaler.mean[0], model.scaler.scale[0]) = (-1e300, f64::MAX);
        (model.scaler.mean[1], model.scaler.scale[1]) = (1e300, f64::MAX);
        let range = model.to_libsvm(false).unwrap().range.unwrap();
        let lines: Vec<&str> = range.lines().skip(2).collect();
        assert_eq!(lines[..2], ["1 0e0 0e0", "2 0e0 0e0"]);
        assert!(!range.contains("inf"), "{range}");
    }
}
