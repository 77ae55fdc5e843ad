//! A fitted model: how columns are treated, the metric, the classifier, and how it came about.

mod cross_validate;
mod explain;
mod file;
mod fit;
mod libsvm;
mod many_rows;
mod measure;
mod neighbours;
mod remarks;
mod report;
mod sparse_rows;
mod svms;
mod threshold;

pub use cross_validate::{CrossValidation, cross_validate};
pub use explain::{Alike, Explanation};
pub use libsvm::{LibsvmModel, libsvm_rows};
pub use many_rows::ManyRows;
pub use measure::{ClassMeasures, Measure, Measures, Scores};
pub(crate) use measure::{Ranked, bin_of, bins_of, wilson};
pub use neighbours::NearestNeighbours;
pub use remarks::{Remark, Unusual};
pub use report::{Report, Stage, ThroughLandmarks};
pub use threshold::{Goal, Threshold};

use std::convert::Infallible;
use std::fmt;
use std::path::Path;

use crate::calibrate;
use crate::cuda::Gpu;
use crate::data::{Dataset, Missing, Scaler, Schema, excerpt};
use crate::device::{Device, Work};
use crate::error::{Error, Remedy, Result};
use crate::linalg::Matrix;
use crate::memory;
use crate::metric::{Form, Kernel, Metric};
use crate::multiclass::{PairwiseSvms, decide, vote};
use crate::run::Watch;
use explain::KeptRows;
use neighbours::Neighbours;

/// A fitted model, as a rule a classifier; a metric alone if that is what was fitted. Two are equal if their files would
/// be: the device that a model predicts on is not part of it.
#[derive(Clone, Debug)]
pub struct Model {
    schema: Schema,
    classes: Vec<String>,
    scaler: Scaler,
    metric: Metric,
    classifier: Classifier,
    report: Report,
    /// All training rows, if the model was asked to keep them.
    kept: Option<KeptRows>,
    /// Where it predicts.
    device: Device,
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        let Self { schema, classes, scaler, metric, classifier, report, kept, device: _ } = self;
        *schema == other.schema
            && *classes == other.classes
            && *scaler == other.scaler
            && *metric == other.metric
            && *classifier == other.classifier
            && *report == other.report
            && *kept == other.kept
    }
}

/// What decides in the mapped space.
#[derive(Clone, Debug, PartialEq)]
enum Classifier {
    /// Nothing: a metric alone.
    None,
    Svms(SvmClassifier),
    Neighbours(Neighbours),
}

/// The weighted mean of one or more members, all over the same support vectors.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SvmClassifier {
    /// At least one; their weights add up to one.
    pub members: Vec<Member>,
    /// The support rows of any member, encoded, with missing values filled, not scaled. // (|S|, d)
    pub support: Matrix,
    /// Of the probabilities; files of the first format have none.
    pub temperature: Option<f64>,
    /// The weights of the classes that probabilities are corrected for; none: they all had the same.
    pub class_weights: Option<Vec<f64>>,
}

/// A member of a model: SVMs, one for each pair of classes, with a kernel, a metric and a C of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    weight: f64,
    kernel: Kernel,
    metric: Metric,
    cost: f64,
    /// Support rows are rows of the training data, and the same for all members.
    pairwise: PairwiseSvms,
    /// The support rows mapped by the metric. // (|S|, rank)
    mapped: Matrix,
}

impl Member {
    /// Its share in the mean.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Its kernel.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Its metric, on standardised features.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// C.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// beta_j = alpha_j y_j of the support vectors of the model, as LIBSVM lays them out: for one of class c, in the
    /// SVMs of c with the other classes in order; 0 for those of other members. // (classes - 1, |S|)
    pub fn beta(&self) -> &Matrix {
        &self.pairwise.beta
    }

    /// The offset b of each pair of classes: (0, 1), (0, 2), .., (1, 2), ..
    pub fn bias(&self) -> &[f64] {
        &self.pairwise.bias
    }

    /// The outputs of all pairs at standardised rows. // (rows, pairs)
    fn outputs(&self, u: &Matrix) -> Matrix {
        self.pairwise.outputs(self.kernel, &self.metric.transform(u), &self.mapped)
    }

    /// The same on a card, if there is one.
    fn outputs_on(&self, gpu: Option<&'static Gpu>, u: &Matrix) -> Result<Matrix> {
        self.pairwise.outputs_on(gpu, self.kernel, &self.metric.transform(u), &self.mapped)
    }
}

impl SvmClassifier {
    /// The weighted mean of the members' outputs at standardised rows. // (rows, pairs)
    pub fn outputs(&self, u: &Matrix) -> Matrix {
        let outputs = |member: &Member| Ok::<_, Infallible>(member.outputs(u));
        let Ok(mean) = self.mean(u.rows(), outputs);
        mean
    }

    /// The same on a card, if there is one.
    fn outputs_on(&self, gpu: Option<&'static Gpu>, u: &Matrix) -> Result<Matrix> {
        self.mean(u.rows(), |member| member.outputs_on(gpu, u))
    }

    fn mean<E>(
        &self,
        rows: usize,
        outputs: impl Fn(&Member) -> std::result::Result<Matrix, E>,
    ) -> std::result::Result<Matrix, E> {
        if let [only] = self.members.as_slice() {
            return outputs(only);
        }
        let mut mean = Matrix::zeros(rows, self.members[0].bias().len());
        for member in &self.members {
            let outputs = outputs(member)?;
            let sums = mean.as_mut_slice().iter_mut().zip(outputs.as_slice());
            sums.for_each(|(sum, h)| *sum += member.weight * h);
        }
        Ok(mean)
    }
}

static EMPTY: Matrix = Matrix::empty();

/// Shares of votes as decision values: with two classes the share of the second less that of the first.
fn difference(votes: Matrix) -> Matrix {
    match votes.cols() {
        2 => Matrix::from_fn(votes.rows(), 1, |i, _| votes[(i, 1)] - votes[(i, 0)]),
        _ => votes,
    }
}

impl Model {
    /// The model, which predicts on this device from now on. One that was fitted predicts where it was asked to compute, and
    /// one that was read from a file on [`Device::Auto`]: on a card only where there are so many rows that it pays. A
    /// card that cannot be used is an [`Error::Device`], here and now.
    ///
    /// ```
    /// use svml::{Device, Generator, Model, Svml};
    ///
    /// let data = Generator::default().generate()?.data;
    /// let model = Model::fit(&data, Svml::default())?.on_device(Device::Cpu)?;
    /// assert_eq!(model.device(), Device::Cpu);
    /// # Ok::<(), svml::Error>(())
    /// ```
    pub fn on_device(mut self, device: Device) -> Result<Self> {
        // Whether there is a card for `Auto` is seen when it would pay.
        if let Device::Cuda(_) = device {
            Watch::on_device(device)?;
        }
        self.device = device;
        Ok(self)
    }

    /// Where it predicts, if it is asked to.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The card for predictions about so many rows: always if it was asked for, else if it pays.
    fn card_for(&self, svms: &SvmClassifier, rows: usize) -> Result<Option<&'static Gpu>> {
        let cols = svms.members.len() * svms.support.rows();
        let work = Work { rows, cols, features: self.metric.rank() };
        let mut watch = Watch { device: self.device, ..Watch::default() };
        watch.open_card(|card| work.pays_for_prediction(card))?;
        Ok(watch.gpu())
    }

    /// Decision values for each row of encoded features. Two classes have one, h(x) of equation (1)
    /// before the sign: positive means the second of [`Model::classes`]. // (n, 1)
    ///
    /// More classes have one each, of which the largest decides: for SVMs the number of pairs won plus a
    /// fraction for their outputs, for nearest neighbours the share of votes. // (n, classes)
    pub fn decision(&self, x: &Matrix) -> Result<Matrix> {
        self.check(x)?;
        let u = self.scaler.apply(x);
        match &self.classifier {
            Classifier::None => Err(Error::NotAClassifier),
            Classifier::Svms(svms) => {
                let outputs = svms.outputs_on(self.card_for(svms, x.rows())?, &u)?;
                Ok(vote(&outputs, self.classes.len()))
            }
            Classifier::Neighbours(neighbours) => {
                Ok(difference(neighbours.votes(&self.metric.transform(&u))))
            }
        }
    }

    /// The decision values at places `z` if the rows that vote stand at `places`; `None` unless the model is one of
    /// nearest neighbours.
    pub(crate) fn decision_among(&self, places: &Matrix, z: &Matrix) -> Result<Option<Matrix>> {
        let Classifier::Neighbours(own) = &self.classifier else { return Ok(None) };
        let (rows, counts, weight) = (own.rows.clone(), own.counts.clone(), own.weight.clone());
        let moved = Neighbours::new(own.k, rows, counts, weight, EMPTY.clone(), places)?;
        Ok(Some(difference(moved.votes(z))))
    }

    /// The class of each row, as an index into [`Model::classes`].
    pub fn predict(&self, x: &Matrix) -> Result<Vec<usize>> {
        Ok(decide(&self.decision(x)?))
    }

    /// The label of the class of each row.
    pub fn predict_labels(&self, x: &Matrix) -> Result<Vec<&str>> {
        Ok(self.predict(x)?.into_iter().map(|class| self.classes[class].as_str()).collect())
    }

    /// Probabilities of the classes for each row; of nearest neighbours the shares of votes. The most
    /// probable is always the predicted one, unless the classes had weights. // (n, classes)
    ///
    /// Weights of classes change what is predicted. The probabilities are those that the training rows have without them:
    /// then another class than the predicted one may be the most probable.
    ///
    /// A model written before probabilities were introduced has none, which is an error.
    pub fn probabilities(&self, x: &Matrix) -> Result<Matrix> {
        match &self.classifier {
            Classifier::None => Err(Error::NotAClassifier),
            Classifier::Svms(svms) => {
                let temperature = svms.temperature.ok_or_else(|| {
                    Error::Unsupported(
                        "the model was written by an earlier version of svml, without probabilities; train it again"
                            .to_owned(),
                    )
                })?;
                let weights = svms.class_weights.as_deref();
                Ok(calibrate::probabilities(&self.decision(x)?, temperature, weights))
            }
            Classifier::Neighbours(neighbours) => Ok(neighbours.votes(&self.transform(x)?)),
        }
    }

    /// The rows standardised and mapped by L. // (n, rank)
    pub fn transform(&self, x: &Matrix) -> Result<Matrix> {
        self.check(x)?;
        Ok(self.metric.transform(&self.scaler.apply(x)))
    }

    /// Share of rows of `data` that are misclassified, by weight. Classes are compared by name; a
    /// class that the model does not know counts as misclassified.
    pub fn error_rate(&self, data: &Dataset) -> Result<f64> {
        let predicted = self.predict(data.x())?;
        let wrong: f64 = (predicted.iter().zip(data.y()).zip(data.weights()))
            .filter(|((p, y), _)| self.classes[**p] != data.classes()[**y])
            .map(|(_, weight)| weight)
            .sum();
        Ok(wrong / data.weights().iter().sum::<f64>().max(f64::MIN_POSITIVE))
    }

    /// Whether it can classify; otherwise it is a metric alone.
    pub fn is_classifier(&self) -> bool {
        !matches!(self.classifier, Classifier::None)
    }

    fn check(&self, x: &Matrix) -> Result<()> {
        let names = || self.schema.encoded_names();
        if x.cols() != self.schema.width() {
            return Err(Error::Shape {
                what: "columns of the rows to predict".to_owned(),
                found: x.cols(),
                expected: self.schema.width(),
            });
        }
        // They are standardised, and mapped.
        memory::room_for(16 * x.as_slice().len(), "copies of the rows to predict")?;
        for (i, row) in x.iter_rows().enumerate() {
            for (k, &value) in row.iter().enumerate() {
                if value.is_nan() && self.schema.missing() != Missing::Impute {
                    return Err(Error::Missing { row: i + 1, column: names()[k].clone() });
                }
                if value.abs() > crate::data::LIMIT {
                    return Err(Error::OutOfRange {
                        row: i + 1,
                        column: names()[k].clone(),
                        value,
                        limit: crate::data::LIMIT,
                    });
                }
            }
        }
        Ok(())
    }

    /// Writes the model to a file, atomically: a temporary file beside it is renamed at the end, so that the old file or
    /// all of the new one is there, whatever happens. Owner and permissions of an old file are kept, and where a link
    /// stands what it points to is replaced. A file that is read-only and a link to nothing are refused; a pipe, or a
    /// device that is no disk, is written to directly.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        file::save(self, path.as_ref())
    }

    /// Reads a model from a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        file::load(path.as_ref())
    }

    /// Reads a model from a stream, such as standard input, until it ends: at most
    /// [`MAX_INPUT_BYTES`](crate::data::MAX_INPUT_BYTES). What does not begin as a model is refused before more than its first
    /// bytes are read.
    pub fn from_reader(reader: impl std::io::Read) -> Result<Self> {
        file::from_reader(reader)
    }

    /// The model as the bytes of its file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        file::to_bytes(self)
    }

    /// A model from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        file::from_bytes(bytes)
    }

    /// How the columns of a table become features.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The classes, in the order of decision values and probabilities.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// How features are filled and standardised.
    pub fn scaler(&self) -> &Scaler {
        &self.scaler
    }

    /// The metric on standardised features; of several members the mean of their M = L'L, each scaled to a trace of
    /// one, with their weights. Columns that were constant in training, and so are left out,
    /// are zero in every row that it is applied to; [`Model::relevance`] gives them no weight.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }

    /// The metric as it acts: columns that were constant in training weigh nothing in it.
    pub fn acting_metric(&self) -> Metric {
        self.acting(&self.metric)
    }

    /// The same for the metric of a member.
    fn acting(&self, metric: &Metric) -> Metric {
        let d = metric.features();
        let constant: Vec<usize> = self.scaler.constant().collect();
        let form = match metric.form() {
            _ if constant.is_empty() => return metric.clone(),
            Form::Sphere => Form::Diagonal,
            form => form,
        };
        let mut values = match metric.form() {
            Form::Sphere => vec![metric.values()[0]; d],
            _ => metric.values().to_vec(),
        };
        for row in values.chunks_exact_mut(d) {
            constant.iter().for_each(|&k| row[k] = 0.0);
        }
        Metric::new(form, d, values).unwrap_or_else(|_| metric.clone())
    }

    /// How strongly each standardised feature enters the distance, the diagonal of L'L; 0 for columns that
    /// were constant in training.
    pub fn relevance(&self) -> Vec<f64> {
        self.acting_metric().relevance()
    }

    /// The metric on features as they are: A = L diag(1/scale), so that z = A (x - mean). Columns that
    /// were constant in training weigh nothing. [`Error::TooLarge`] where that matrix does not fit into memory, as for a sphere
    /// or a diagonal on very many features. // (rank, features)
    pub fn raw_components(&self) -> Result<Matrix> {
        self.raw(&self.acting_metric())
    }

    /// The same of one of the [members](Model::members).
    pub fn raw_components_of(&self, member: &Member) -> Result<Matrix> {
        self.raw(&self.acting(member.metric()))
    }

    fn raw(&self, metric: &Metric) -> Result<Matrix> {
        let (rank, d) = (metric.rank(), metric.features());
        self.check_square("the map of a model", rank, 2)?;
        let mut l = metric.components();
        for i in 0..rank {
            l.row_mut(i).iter_mut().enumerate().for_each(|(k, v)| *v /= self.unit(k));
        }
        self.check_finite("the map", l, |entry| entry % d)
    }

    /// M on features as they are: A'A for the A of [`Model::raw_components`], refused as that is. // (features, features)
    pub fn raw_mahalanobis(&self) -> Result<Matrix> {
        let metric = self.acting_metric();
        let d = metric.features();
        self.check_square("the matrix of the metric", d, 2)?;
        let mut m = metric.mahalanobis();
        for i in 0..d {
            let unit = self.unit(i);
            m.row_mut(i).iter_mut().enumerate().for_each(|(k, v)| *v = *v / unit / self.unit(k));
        }
        self.check_finite("the matrix of the metric", m, |entry| entry / d)
    }

    /// What a feature is divided by; constant features weigh nothing in L.
    fn unit(&self, feature: usize) -> f64 {
        let scale = self.scaler.scale[feature];
        if scale > 0.0 { scale } else { 1.0 }
    }

    /// Refuses a matrix with as many columns as there are features, of which there are some copies.
    fn check_square(&self, what: &str, rows: usize, copies: u128) -> Result<()> {
        let d = self.metric.features();
        let bytes = 8 * copies * rows as u128 * d as u128;
        let what = || format!("{what}, {rows} x {d} numbers,");
        memory::check(what, bytes, memory::free(), Remedy::SmallerForm)
    }

    /// Refuses numbers beyond those that a computer knows, by the feature that they are of.
    fn check_finite(&self, what: &str, m: Matrix, of: impl Fn(usize) -> usize) -> Result<Matrix> {
        match m.as_slice().iter().position(|v| !v.is_finite()) {
            None => Ok(m),
            Some(entry) => {
                let k = of(entry);
                let name = &self.schema.encoded_names()[k];
                Err(Error::Numerical {
                    what: format!(
                        "{what} on the original features has numbers beyond 1.8e308: {name} has a standard deviation of {:e}",
                        self.scaler.scale[k]
                    ),
                    remedy: Remedy::RescaleColumn,
                })
            }
        }
    }

    /// The members of the mean; none for a model without SVMs.
    pub fn members(&self) -> &[Member] {
        self.svms().map_or(&[], |svms| &svms.members)
    }

    /// C, of a model of one member.
    pub fn cost(&self) -> Option<f64> {
        self.only_member().map(|member| member.cost)
    }

    /// The member of a model that has one.
    pub(crate) fn only_member(&self) -> Option<&Member> {
        match self.members() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Rows of the training data that are support vectors, class after class; those that vote, for nearest
    /// neighbours. Of rows that were merged because they are identical it is the first.
    pub fn support_rows(&self) -> &[usize] {
        match &self.classifier {
            Classifier::None => &[],
            Classifier::Svms(svms) => &svms.members[0].pairwise.support,
            Classifier::Neighbours(neighbours) => &neighbours.rows,
        }
    }

    /// Gives the support rows other numbers.
    fn renumber_support(&mut self, number: impl Fn(usize) -> usize) {
        if let Classifier::Svms(svms) = &mut self.classifier {
            let rows = svms.members.iter_mut().flat_map(|member| &mut member.pairwise.support);
            rows.for_each(|row| *row = number(*row));
        }
    }

    /// Number of support vectors of each class.
    pub fn support_counts(&self) -> &[usize] {
        match &self.classifier {
            Classifier::None => &[],
            Classifier::Svms(svms) => &svms.members[0].pairwise.counts,
            Classifier::Neighbours(neighbours) => &neighbours.counts,
        }
    }

    /// The support vectors as encoded features. // (|S|, features)
    pub fn support_vectors(&self) -> &Matrix {
        match &self.classifier {
            Classifier::None => &EMPTY,
            Classifier::Svms(svms) => &svms.support,
            Classifier::Neighbours(neighbours) => &neighbours.x,
        }
    }

    /// The coefficients of a model of one member: see [`Member::beta`]. // (classes - 1, |S|)
    pub fn beta(&self) -> &Matrix {
        self.only_member().map_or(&EMPTY, Member::beta)
    }

    /// The offsets of a model of one member: see [`Member::bias`].
    pub fn bias(&self) -> &[f64] {
        self.only_member().map_or(&[], Member::bias)
    }

    /// The temperature of the probabilities, if they come from SVMs.
    pub fn temperature(&self) -> Option<f64> {
        self.svms().and_then(|svms| svms.temperature)
    }

    /// The weights of the classes, in the order of [`Model::classes`], that the probabilities are corrected for; none if
    /// all classes had the same.
    pub fn class_weights(&self) -> Option<&[f64]> {
        self.svms().and_then(|svms| svms.class_weights.as_deref())
    }

    pub(crate) fn svms(&self) -> Option<&SvmClassifier> {
        match &self.classifier {
            Classifier::Svms(svms) => Some(svms),
            _ => None,
        }
    }

    /// How the fit went.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = self.metric.form();
        write!(f, "{form} metric on {} features", self.metric.features())?;
        match &self.classifier {
            Classifier::None => writeln!(f, ", without a classifier")?,
            Classifier::Svms(svms) => {
                let (many, count) = (svms.members.len(), svms.support.rows());
                let of =
                    if many == 1 { "one SVM".to_owned() } else { format!("mean of {many} SVMs") };
                // Of the members of a mean some may be exact.
                let kept = match self.report.landmarks.and_then(|landmarks| landmarks.in_model) {
                    None => "support vectors",
                    Some(_) if many > 1 => "landmarks or support vectors",
                    Some(_) => "landmarks",
                };
                writeln!(f, ", {of}, {count} {kept}")?;
                for Member { weight, kernel, metric, cost, .. } in &svms.members {
                    let form = metric.form();
                    writeln!(
                        f,
                        "  weight {weight:.2}: {kernel} kernel, {form} metric, C = {cost:.3}"
                    )?;
                }
            }
            Classifier::Neighbours(neighbours) => {
                let count = neighbours.rows.len();
                writeln!(f, ", {} nearest neighbours among {count} rows", neighbours.k)?;
            }
        }
        let classes: Vec<String> = self.classes.iter().map(|class| excerpt(class)).collect();
        writeln!(f, "classes: {}", classes.join(", "))?;
        self.report.fmt(f)
    }
}
