"""What all estimators have in common.

Input is checked and parameters are named here; numbers come from the library. A fitted estimator holds the library's
model, whose state is the bytes of the model file, and its attributes ask that model. An estimator says in `_method`
which method of the library it fits, and in `_names` which of its parameters have other names there.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike, fsdecode, fspath
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import sklearn
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    is_classifier,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.fixes import parse_version
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from svml import _core, _cuda, _frames, _notebook
from svml._progress import ProgressBar

# What scikit-learn calls parameters of the library.
NAMES = {
    "max_iter": "max_iterations",
    "tol": "tolerance",
    "n_components": "rank",
    "solver": "optimiser",
    "random_state": "seed",
}
SOLVERS = {"lbfgs": "lbfgs", "cg": "conjugate_gradients"}
# How numpy, pandas and Python write a value that is not there.
NOT_THERE = ("None", "nan", "<NA>", "NaT")
# Other words for where L starts, as metric-learn and scikit-learn have them: the default, and principal directions of
# length 1, which L = I is up to a rotation if L is square.
STARTS = {"auto": None, "pca": "identity"}
# More threads than any computer has are a mistake; the command has the same bound.
MOST_THREADS = 4096
THREADS_PER_CORE = 4
# Of many warnings of one fit so many are shown.
SHOWN = 3

# The library copies rows of these types once, from any order in memory; others become the first of them before.
KEPT = [np.float64, np.float32]

Floats = NDArray[np.float64]
Rows = NDArray[np.float64] | NDArray[np.float32]
Step = dict[str, Any]
Callbacks = Callable[[Step], Any] | Sequence[Callable[[Step], Any]] | None

# Categories are taken with any scikit-learn, but before 1.7.2 one of its checks fails for all that say so.
TELLS_CATEGORIES = parse_version(sklearn.__version__) >= parse_version("1.7.2")

# What `export` writes, by the ending of the file.
ENDINGS = {".onnx": "onnx", ".c": "c", ".js": "js", ".mjs": "js", ".model": "libsvm"}

# A label that is a number; 007 is not.
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?(e-?[0-9]+)?")

# Where to compute.
DEVICE = re.compile("auto|cpu|cuda(:[0-9]{1,9})?")

CATEGORIES = ("auto", "onehot", "codes")
MISSING = ("refuse", "impute")

WATCHING = """
    time_limit : float, default=None
        Time limit in seconds, after which the best result so far is used. If nothing has been learned by then, a metric
        without an SVM keeps its initial value, with a warning, and an estimator with an SVM raises a TimeoutError.
    callbacks : callable or list of callables, default=None
        Each is called at every step with a dict that has the keys of `trace_`, ``seconds`` and ``progress``, a description
        of the progress in words. Returning True ends the fit with the best result so far. `ProgressBar` shows a bar.
    verbose : int, default=0
        1 prints a line for each step: what is being learned, the time so far, the loss and, for several SVMs, once the
        first has been learned, an estimate of the time until all are.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a `joblib.parallel_config` context, -1 means all cores; more than four
        times the cores are not started, with a warning. Results are the same, bit for bit, for any number.
    device : str, default="auto"
        Where to compute, in `fit` and in predictions: "cpu"; "cuda" or "cuda:N", CUDA GPU number N counted from 0, with a
        RuntimeError if it cannot be used; or "auto", which uses a GPU if there is one and the work is large enough to
        benefit, and otherwise the CPU. Results on one device are identical from run to run; those of CPU and GPU differ in
        the last digits. The device is not part of a model file; `device_` says where the fit was computed. See
        ``docs/gpu.md``."""

PARAMETERS = """
    categories : {"auto", "onehot", "codes"}, default="auto"
        How text columns are encoded as numbers: "onehot" makes a column of zeros and ones for each level, "codes" makes one
        column of 0, 1, ... in the order of the sorted levels, and "auto" uses one-hot for up to 20 levels and codes for
        more, and leaves out columns that look like identifiers: strings that differ in almost every row, such as names,
        dates written as text, and, in a data frame with column names, row numbers. A warning lists these columns.
    missing : {"refuse", "impute"}, default="refuse"
        How to handle missing values (NaN, None, ``pandas.NA``, and strings such as "?" or "NA"): "refuse" raises an error;
        "impute" fills in the mean of a numeric column and the most frequent level of a categorical one. If more than nine in
        ten values of a column are numbers and some are strings, "refuse" raises an error that names the first of these, and
        "impute" treats them as missing, with a warning.
    text : list of str or int, default=None
        Columns, by name or by position from 0, that hold text even if all or nearly all of their values are numbers, such as
        postal codes.""" + WATCHING

ATTRIBUTES = """
    encoded_feature_names_ : ndarray of shape (n_features,)
        Names of the encoded features, such as ``colour=red`` for a level of a text column. All arrays with an entry for
        each feature are in this order. Without text columns, there is one feature for each column of X.
    components_ : ndarray of shape (n_components, n_features)
        The map on the original features: ``transform(X) = (X - mean_) @ components_.T``.
    n_components_ : int
        Number of dimensions that rows are mapped into.
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of the features; a scale of 0 marks a constant feature, which is left out.
    form_ : str
        The form of the metric: "sphere", "diagonal", "full" or "low_rank"; for several SVMs, the form of the mean of
        their metrics.
    feature_importances_ : ndarray of shape (n_features,)
        How strongly each standardised feature enters the distance: its share of the diagonal of M = L'L. The shares add up
        to one, and those of the levels of a text column add up to the share of that column. For several SVMs, it is the
        weighted mean.
    feature_importances_spread_ : ndarray of shape (2, n_features)
        The smallest and the largest share of a feature among the SVMs; for a single SVM, both are
        `feature_importances_`.
    best_iter_ : int
        The step of the trace that was kept; for several SVMs, that of the last one.
    n_iter_ : int
        Number of steps of the trace, over all SVMs.
    stop_reason_ : str or None
        Why learning ended: "tolerance", "minimum", "early_stopping", "iterations", "time_limit" or "interrupted";
        None for a model read from a file that was not learned step by step.
    device_ : str
        Where the fit was computed: "cpu", or a GPU such as "cuda:0 (NVIDIA H200)" if any part of it was computed there.
    warnings_ : list of str
        Warnings about the data or the fit, which `fit` also issues.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if they are strings."""


class InvalidParameterError(ValueError, TypeError):
    """A parameter of an estimator has a value or a type that is not allowed."""


def form_of(text: str) -> tuple[str, int | None]:
    """A form as the library writes it, such as rank=2, as `form` and `n_components`."""
    name, _, rank = text.partition("=")
    return ("low_rank", int(rank)) if name == "rank" else (name, None)


def label_of(value: Any) -> str:
    """A class label as the model file has it: equal numbers have one name."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


def values_of(labels: Sequence[str]) -> NDArray[Any]:
    """The labels of a model file: numbers if all of them are written as numbers and in ascending order, otherwise texts."""
    if all(NUMBER.fullmatch(label) for label in labels):
        values: list[Any] = [int(label) if label.lstrip("-").isdigit() else float(label) for label in labels]
        array = np.array(values)
        # Integers beyond those of numpy stay texts.
        if array.dtype.kind in "iuf" and array.tolist() == values and all(a < b for a, b in zip(values, values[1:])):
            return array
    return np.array(labels)


def distance(components: Floats, u: ArrayLike, v: ArrayLike, squared: bool = False) -> float:
    """The distance of two rows under a map, or its square."""
    mapped = components @ (np.asarray(u, dtype=np.float64) - np.asarray(v, dtype=np.float64))
    return float(mapped @ mapped if squared else np.linalg.norm(mapped))


class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all estimators have in common: fit, transform, the metric, the file."""

    _method: ClassVar[str]
    _names: ClassVar[Mapping[str, str]] = NAMES
    _model: _core.Model
    classes_: NDArray[Any]
    n_features_in_: int
    max_iter: int
    time_limit: float | None
    verbose: int
    n_jobs: int | None
    device: str
    callbacks: Callbacks
    categories: str
    missing: str
    text: Sequence[str | int] | None
    # Whether the model was read from a file.
    _from_file: bool = False

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Any:
        """Learn from rows and their classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows: numbers, or a pandas or polars data frame, or an array, whose columns are numbers, booleans, strings or
            categories. They are standardised internally.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights: a row of weight 2 counts like two such rows, a row of weight 0 is ignored.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that belong together, such as those of one patient: all rows of a group are always assigned to
            the same fold.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        with self._whole_or_not():
            self._check_reading()
            self._check_verbose()
            if np.ma.is_masked(y):
                raise ValueError("y has masked entries, which are missing classes; leave out these rows")
            X, y, schema = self._training_rows(X, y)
            check_classification_targets(y)
            weights = self._check_weights(X, sample_weight)
            classes, places = np.unique(y, return_inverse=True)
            labels = [label_of(value) for value in classes.tolist()]
            params = self._library_params(labels)
            try:
                model = _core.Model.fit(
                    self._method,
                    json.dumps(params),
                    X,
                    places.astype(np.int64),
                    labels,
                    weights=weights,
                    groups=self._check_groups(X, groups),
                    names=None if schema else self._column_names(),
                    schema=schema,
                    impute=self.missing == "impute",
                    threads=self._threads(),
                    time_limit=self._check_time_limit(),
                    checkpoint=self._check_checkpoint(),
                    device=self._device(len(X)),
                    observer=self._observer(),
                )
            except _core.ParameterError as error:
                raise self._renamed(*error.args) from None
            finally:
                self._end_watching()
        # Classes whose rows all have weight 0 do not count.
        kept = set(model.classes)
        self.classes_ = classes[[label in kept for label in labels]]
        self._model = model
        self._from_file = False
        self._warn()
        return self

    @contextmanager
    def _whole_or_not(self) -> Iterator[None]:
        """A fit that fails leaves names and number of the columns as they were, as it leaves the model."""
        names = ("n_features_in_", "feature_names_in_")
        before = {name: self.__dict__[name] for name in names if name in self.__dict__}
        try:
            yield
        except BaseException:
            for name in names:
                self.__dict__.pop(name, None)
            self.__dict__.update(before)
            raise

    def transform(self, X: Any) -> Floats:
        """Map rows with the learned metric.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            ``(X - mean_) @ components_.T``, with the encoded columns of X: Euclidean distances between rows of Z are
            distances in the metric.
        """
        X = self._rows(X)
        return self._model.transform(X, self._threads())

    def get_mahalanobis_matrix(self) -> Floats:
        """The matrix of the metric, ``components_.T @ components_``.

        Returns
        -------
        M : ndarray of shape (n_features, n_features)
            The squared distance of u and v is ``(u - v) @ M @ (u - v)``. A MemoryError is raised if there is not enough
            memory for it, and a FloatingPointError if features are so small, below about 1e-154, that its entries overflow.
        """
        return self._fitted().mahalanobis

    def get_metric(self) -> Callable[[ArrayLike, ArrayLike], float]:
        """The metric as a function of two rows, for scikit-learn's ``metric=`` parameters.

        Returns
        -------
        metric : callable
            ``metric(u, v)`` is the distance of the rows u and v, which are numbers: `encoded_feature_names_` has their
            names. ``metric(u, v, squared=True)`` is its square.
        """
        return partial(distance, self.components_)

    def pair_distance(self, pairs: ArrayLike) -> Floats:
        """The distances between the two rows of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs, as numbers: `encoded_feature_names_` has the names of the features.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            The distance under the learned metric, which is at least 0.
        """
        check_is_fitted(self)
        components = self.components_
        checked = check_pairs(pairs, components.shape[1], type(self).__name__)
        mapped = (checked[:, 0] - checked[:, 1]) @ components.T
        return np.asarray(np.linalg.norm(mapped, axis=1), dtype=np.float64)

    def pair_score(self, pairs: ArrayLike) -> Floats:
        """How similar the two rows of each pair are: minus their distance, so that larger values mean more similar rows.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs, as numbers: `encoded_feature_names_` has the names of the features.

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
            ``-pair_distance(pairs)``.
        """
        return -self.pair_distance(pairs)

    def save(self, path: str | bytes | PathLike[str]) -> None:
        """Write the model file, completely or not at all.

        Parameters
        ----------
        path : str, bytes or path-like
            The file. The command ``svml``, the Rust library and `svml.load` can read it. Owner and permissions of an
            existing file are kept, and links are followed; a read-only file or a dangling link raises an error.
        """
        self._fitted().save(fsdecode(path))

    def export(self, path: str | PathLike[str], to: str | None = None, *, columns: bool = False) -> None:
        """Write the model for another program, completely or not at all.

        The exported model handles missing values, standardisation and, for a classifier, probabilities; a transformer is
        exported as a map of rows. docs/deploy.md shows how to use each format.

        Parameters
        ----------
        path : str or path-like
            The file.
        to : {"onnx", "c", "js", "libsvm"}, default=None
            "onnx" is for onnxruntime and others, "c" is a single C99 file, "js" a single ES module; "libsvm" is a LIBSVM
            model, which requires a single SVM with the Gaussian kernel, and if the form is "sphere" or "diagonal", a file for
            LIBSVM's svm-scale is written next to it, ``path + ".range"``. None chooses by the extension of the path: .onnx,
            .c, .js (or .mjs) or .model.
        columns : bool, default=False
            For "onnx": whether there is one input for each column of the table, with strings for categories, instead of one
            input of encoded features.
        """
        model = self._fitted()
        if to is None:
            to = ENDINGS.get(Path(path).suffix.lower())
            if to is None:
                raise ValueError(
                    f"the format cannot be inferred from {str(path)!r}: its extension must be one of "
                    f"{', '.join(ENDINGS)}, or the format must be given by to="
                )
        elif to not in ENDINGS.values():
            raise ValueError(f"to must be 'onnx', 'c', 'js' or 'libsvm'. Got {to!r} instead.")
        if columns and to != "onnx":
            raise ValueError(f"columns=True works only with to='onnx', not with {to!r}")
        # Of a transformer rows are mapped, even if its model can classify.
        model.export(path, to, bool(columns), not is_classifier(self))

    @property
    def encoded_feature_names_(self) -> NDArray[Any]:
        """Names of the encoded features."""
        return np.array(self._fitted().schema.encoded_names, dtype=object)

    @property
    def components_(self) -> Floats:
        """The map on the original features, of shape (n_components, n_features)."""
        return self._fitted().components

    @property
    def n_components_(self) -> int:
        """Number of dimensions that rows are mapped into."""
        return self._fitted().rank

    @property
    def mean_(self) -> Floats:
        """Mean of each feature, which is subtracted before the map."""
        return self._fitted().mean

    @property
    def scale_(self) -> Floats:
        """Standard deviation of each feature; 0 for one that was constant and is left out."""
        return self._fitted().scale

    @property
    def feature_importances_(self) -> Floats:
        """How strongly each standardised feature enters the distance; they add up to one."""
        return self._fitted().relevance[0]

    @property
    def feature_importances_spread_(self) -> Floats:
        """The smallest and the largest importance of each feature among the SVMs."""
        return self._fitted().relevance[1:]

    @property
    def form_(self) -> str:
        """The form of the metric: sphere, diagonal, full or low_rank."""
        return form_of(self._fitted().form)[0]

    @property
    def stop_reason_(self) -> str | None:
        """Why learning ended: tolerance, minimum, early_stopping, iterations, time_limit or interrupted."""
        return self._fitted().report["stop"]

    @property
    def n_iter_(self) -> int:
        """Number of steps of the trace, over all SVMs; at least 1."""
        steps = self._fitted().report["trace"]
        return max(1, int(steps[-1]["iteration"])) if steps else 1

    @property
    def best_iter_(self) -> int:
        """The step of the trace that was kept."""
        return int(self._fitted().report["best"])

    @property
    def trace_(self) -> dict[str, NDArray[Any]]:
        """The steps, one array for each thing that was watched."""
        report = self._fitted().report
        keys = dict.fromkeys(key for step in report["trace"] for key in step)
        words = [key for key in ("kernel", "form") if key in keys]
        measured = [key for key in keys if key not in (*words, "half")]
        trace = {key: np.array([step.get(key) for step in report["trace"]]) for key in measured}
        for key, values in trace.items():
            if values.dtype == object:
                # A step at which it was not watched has NaN.
                trace[key] = values.astype(np.float64)
        # Files of former versions have the form of a stage, but not that of each step, and no kernel.
        kernels, forms = [], []
        for kernel, form, first, last in report["stages"]:
            kernels += [kernel or "gaussian"] * (1 + last - first)
            forms += [form_of(form or "")[0]] * (1 + last - first)
        trace.update((key, np.array(forms if key == "form" else kernels)) for key in words)
        if words:
            # On record only where it is true.
            trace["half"] = np.array([step.get("half", False) for step in report["trace"]])
        return trace

    @property
    def device_(self) -> str:
        """Where the fit was computed: cpu, or a GPU such as cuda:0 (NVIDIA H200)."""
        return str(self._fitted().device)

    @property
    def warnings_(self) -> list[str]:
        """Warnings about the data or the fit."""
        return list(self._fitted().report["warnings"])

    def _labels_of(self, y: ArrayLike) -> list[str]:
        """Labels as the model file has them; those that are no classes as texts."""
        # A file may have 1.0 for the class 1.
        known = zip(self.classes_.tolist(), self._fitted().classes) if self._from_file else []
        names = {label_of(value): name for value, name in known}
        return [names.get(label_of(value), label_of(value)) for value in np.asarray(y).tolist()]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _fitted(self) -> _core.Model:
        """The model; before the fit the attributes do not exist."""
        try:
            return self.__dict__["_model"]
        except KeyError:
            name = type(self).__name__
            # It is an AttributeError too, as scikit-learn and hasattr expect.
            raise NotFittedError(f"this {name} is not fitted yet; call fit first") from None

    def _training_rows(self, X: Any, y: Any) -> tuple[Rows, NDArray[Any], _core.Schema | None]:
        """The rows as numbers, their classes and, for a table with texts, how its columns became numbers."""
        X = _frames.as_table(_frames.dense(X))
        text = self._text_columns(X)
        if text and isinstance(X, (list, tuple)):
            X = np.asarray(X)
        by_column = bool(text) or _frames.has_texts(X)
        identifiers = self.categories == "auto" and _frames.library_of(X) and not by_column
        if not by_column and not (identifiers and _frames.has_row_numbers(X)):
            finite = "allow-nan" if self.missing == "impute" else True
            X, y = validate_data(self, X, y, dtype=KEPT, ensure_min_samples=2, ensure_all_finite=finite)
            return X, y, None
        target = getattr(y, "name", None)
        if y is not None:
            y = validate_data(self, y=y)
        # It sets names and number of the columns, and says if there is no y.
        validate_data(self, X, y, skip_check_array=True)
        check_consistent_length(X, y)
        self._check_rows(X, 2)
        columns = _frames.columns_of(X, text=text)
        schema = self._schema_of(_core.Summary(columns), target, stacklevel=4)
        return schema.encode(columns, self._threads()), y, schema

    def _schema_of(self, summary: _core.Summary, target: Any, stacklevel: int) -> _core.Schema:
        """How the columns of a table become numbers; `target` is the name of its classes, if it is a text."""
        schema = _core.Schema(
            summary,
            target=target if isinstance(target, str) and target.strip() else "class",
            categories=self.categories,
            missing=self.missing,
        )
        kinds = dict(zip(schema.names, schema.kinds))
        for name, count, others, text in summary.mistyped:
            found = f"{others} of its {count + others} values {'is not a number' if others == 1 else 'are not numbers'}"
            if kinds[name] == "number":
                said = f"column {name}: {found}, such as {text!r}, and {'was' if others == 1 else 'were'} imputed"
            else:
                said = (
                    f"column {name} was read as text because {found}, such as {text!r}; if the column should be numeric, "
                    "correct such values or replace them with None"
                )
            warnings.warn(_frames.on_one_line(said), UserWarning, stacklevel=stacklevel)
        return schema

    def _text_columns(self, X: Any) -> list[int]:
        """The places of the columns that are said to hold text."""
        given: Any = [] if self.text is None else self.text
        whole = isinstance(given, (list, tuple)) and all(
            isinstance(column, (str, numbers.Integral)) and not isinstance(column, bool) for column in given
        )
        if not whole:
            raise self._invalid("text", "a list of names and positions of columns, or None", given)
        if not given:
            return []
        names = _frames.names_of(X) or []
        shape: tuple[int, ...] = np.shape(X) if isinstance(X, (list, tuple)) else X.shape
        width = shape[-1] if len(shape) == 2 else 0
        for column in given:
            if column not in names if isinstance(column, str) else not 0 <= column < width:
                known = ", ".join(map(repr, names[:SHOWN])) if names else "none of them has a name"
                raise self._invalid("text", f"a list of columns of X, by name ({known}, ...) or by position", column)
        return [names.index(column) if isinstance(column, str) else int(column) for column in given]

    def _rows(self, X: Any) -> Rows:
        """New rows as the numbers that the model takes; a warning says what is unusual about those of a table."""
        rows, remarks = self._read(X)
        if remarks:
            more = f"; and {len(remarks) - SHOWN} more" if len(remarks) > SHOWN else ""
            warnings.warn("; ".join(remarks[:SHOWN]) + more, UserWarning, stacklevel=3)
        return rows

    def _read(self, X: Any) -> tuple[Rows, list[str]]:
        """New rows as numbers, and what is unusual about them; arrays of numbers are taken without a word."""
        check_is_fitted(self)
        schema, X = self._model.schema, _frames.as_table(_frames.dense(X))
        if not schema.numbers_only:
            named = schema.named and _frames.names_of(X) is not None
            return self._rows_by_name(X) if named else self._rows_by_place(X)
        X = self._known_columns(X)
        if _frames.has_texts(X, truths=False):
            return self._rows_by_place(X)
        finite = "allow-nan" if self._model.imputes else True
        rows = validate_data(self, X, reset=False, dtype=KEPT, ensure_all_finite=finite)
        return rows, self._model.remarks(rows, self._threads()) if _frames.library_of(X) else []

    def _rows_by_name(self, X: Any) -> tuple[Floats, list[str]]:
        """The rows of a frame with names; columns that the model does not use may be of any type."""
        self._check_rows(X, 1)
        schema, names = self._model.schema, _frames.names_of(X) or []
        used = {name for name, kind in zip(schema.names, schema.kinds) if kind != "ignored"}
        if not used <= {name.strip() for name in names}:
            # The library says which column is not there, and which are.
            schema.encode([(name, np.empty(0)) for name in names])
        return self._model.read(_frames.columns_of(X, used), self._threads())

    def _rows_by_place(self, X: Any) -> tuple[Floats, list[str]]:
        """The rows of a table whose columns are matched by place; scikit-learn checks their number and their names."""
        table = X
        if not _frames.library_of(X) and not _frames.has_texts(X):
            table = check_array(X, dtype=KEPT, ensure_all_finite=False, estimator=self, input_name="X")
        self._check_rows(table, 1)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._model.read(_frames.columns_of(table), self._threads())

    def _check_rows(self, X: Any, least: int) -> None:
        """Refuses a table of too few rows, in the words of scikit-learn."""
        if len(X) < least:
            raise ValueError(
                f"Found array with {len(X)} sample(s) (shape={X.shape}) while a minimum of {least} is required by "
                f"{type(self).__name__}."
            )

    def _known_columns(self, X: Any) -> Any:
        """Of a frame the columns that a model of a file knows by name, which may stand anywhere in it."""
        names = _frames.names_of(X) if self._from_file else None
        labels = {name.strip(): name for name in names or []}
        known = list(getattr(self, "feature_names_in_", []))
        if not known or not all(name in labels for name in known):
            return X
        return X[[labels[name] for name in known]]

    def _check_reading(self) -> None:
        """Checks what is said about the reading of tables."""
        for name, words in (("categories", CATEGORIES), ("missing", MISSING)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in words:
                *first, last = map(repr, words)
                raise self._invalid(name, f"{', '.join(first)} or {last}", value)

    def _threads(self) -> int:
        jobs = self.n_jobs
        whole = isinstance(jobs, numbers.Integral) and not isinstance(jobs, bool)
        if jobs is not None and not (whole and jobs != 0 and abs(int(jobs)) <= MOST_THREADS):
            bound = f"an integer from 1 to {MOST_THREADS}, -1 for all cores, -2 for all but one and so on, or None"
            raise self._invalid("n_jobs", bound, jobs)
        threads, most = int(effective_n_jobs(self.n_jobs)), THREADS_PER_CORE * (os.cpu_count() or 1)
        if threads > most:
            text = f"n_jobs={threads} is more than {THREADS_PER_CORE} for each core: {most} threads are used"
            warnings.warn(text, UserWarning, stacklevel=3)
        return min(threads, most)

    def _device(self, rows: int) -> str:
        """Where to compute something about so many rows; libraries of CUDA are at hand if they may be needed."""
        device = self.device
        if not isinstance(device, str) or not DEVICE.fullmatch(device):
            raise self._invalid(
                "device", "'auto', 'cpu', 'cuda' or 'cuda:N', where N is the number of a GPU, counted from 0", device
            )
        if device.startswith("cuda") or (device == "auto" and rows >= _core.LEAST_ROWS):
            _cuda.prepare()
        return device

    def _check_verbose(self) -> None:
        if not isinstance(self.verbose, (numbers.Integral, np.bool_)) or self.verbose < 0:
            raise self._invalid("verbose", "an integer of at least 0", self.verbose)

    def _check_weights(self, X: Rows, sample_weight: ArrayLike | None) -> Floats | None:
        if sample_weight is None:
            return None
        weights: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if np.any(weights < 0):
            raise ValueError("Negative values in data passed to `sample_weight`")
        if not np.any(weights > 0):
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return weights

    def _check_groups(self, X: Rows, groups: ArrayLike | None) -> list[str] | None:
        if groups is None:
            return None
        names = column_or_1d(groups)
        check_consistent_length(X, names)
        if any(not isinstance(name, str) and str(name) in NOT_THERE for name in names.tolist()):
            raise ValueError("groups has missing values; give every row a group, and a row on its own a group of its own")
        return [label_of(name) for name in names.tolist()]

    def _check_time_limit(self) -> float | None:
        limit = self.time_limit
        if limit is None:
            return None
        if isinstance(limit, bool) or not isinstance(limit, numbers.Real) or not 0 < limit < math.inf:
            raise self._invalid("time_limit", "a positive number of seconds or None", limit)
        return float(limit)

    def _check_checkpoint(self) -> str | None:
        given = getattr(self, "checkpoint", None)
        if given is None:
            return None
        if not isinstance(given, (str, PathLike)) or isinstance(fspath(given), bytes):
            raise self._invalid("checkpoint", "a path or None", given)
        if not isinstance(getattr(self, "random_state", 0), numbers.Integral):
            raise self._invalid(
                "checkpoint", "None unless random_state is an integer, because a fit needs the same seed to resume", given
            )
        return fspath(given)

    def _column_names(self) -> list[str] | None:
        """The names of the columns as a header of a table would give them, if it could."""
        names = [str(name).strip() for name in getattr(self, "feature_names_in_", [])]
        return names if names and all(names) and len(set(names)) == len(names) else None

    def _callbacks(self) -> Sequence[Callable[[Step], Any]]:
        given: Any = self.callbacks
        callbacks = [] if given is None else [given] if callable(given) else given
        if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
            raise self._invalid("callbacks", "a callable, a list of callables or None", given)
        return callbacks

    def _end_watching(self) -> None:
        """Finishes bars, also after a fit that failed."""
        for callback in self._callbacks():
            if isinstance(callback, ProgressBar):
                callback.close()

    def _observer(self) -> Callable[[Step], bool] | None:
        """What sees each step: the lines of `verbose` and the callbacks."""
        callbacks = self._callbacks()
        if not self.verbose and not callbacks:
            return None

        def observe(step: Step) -> bool:
            if step.get("form") is not None:
                step["form"] = form_of(step["form"])[0]
                step.setdefault("half", False)
            if self.verbose:
                print(f"[{type(self).__name__}] {_in_words(step)}", flush=True)
            # All of them see the step, whoever wants to end. Values that are no answer do not count.
            answers = [callback(step) for callback in callbacks]
            return any(isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers)

        return observe

    def _warn(self) -> None:
        """Says what the user should know, once for each fit."""
        identifiers = self._model.schema.identifiers
        way_out = "; use categories='codes' or 'onehot' to use such columns anyway"
        found = [text + way_out if text == identifiers else text for text in self.warnings_]
        if found:
            more = f"; and {len(found) - SHOWN} more, in warnings_" if len(found) > SHOWN else ""
            said = "; ".join(map(_frames.on_one_line, found[:SHOWN]))
            warnings.warn(said + more, UserWarning, stacklevel=3)
        if self.stop_reason_ == "iterations":
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} steps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _library_params(self, labels: Collection[str]) -> dict[str, Any]:
        """The parameters that the library knows, by its names and in its words; `labels` are those of y."""
        known = _core.bounds(self._method)
        params = {}
        for name, value in self.get_params(deep=False).items():
            library = self._names.get(name, name)
            if library in known:
                params[library] = self._to_library(name, value, _in_python(known[library]))
        return params

    def _to_library(self, name: str, value: Any, bound: str) -> Any:
        """A value that JSON can hold, in the words of the library, which says whether it is allowed."""
        if name == "solver":
            if not isinstance(value, str) or value not in SOLVERS:
                raise self._invalid(name, "'lbfgs' or 'cg'", value)
            return SOLVERS[value]
        if name == "random_state" and not isinstance(value, numbers.Integral):
            return int(check_random_state(value).randint(np.iinfo(np.int32).max))
        if name == "init" and not isinstance(value, str):
            return self._given_start(value, bound)
        if name == "init" and value in STARTS:
            return STARTS[value] or _core.defaults(self._method)["init"]
        return self._plain(name, value, bound)

    def _given_start(self, value: Any, bound: str) -> dict[str, Any]:
        """An array that L starts from, in the words of the library, which checks its shape."""
        try:
            start = check_array(value, dtype=np.float64, ensure_min_samples=0, ensure_min_features=0, input_name="init")
        except (TypeError, ValueError) as error:
            raise self._invalid("init", f"{bound} of numbers, n_components x n_features", value) from error
        return {"given": start.tolist()}

    def _plain(self, name: str, value: Any, bound: str) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, (list, tuple)):
            return [self._plain(name, part, bound) for part in value]
        if isinstance(value, float) and math.isfinite(value):
            return value
        if value is not None and not isinstance(value, (bool, int, str)):
            raise self._invalid(name, bound, value)
        return value

    def _from_library(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters of the library by the names and in the words that they have here."""
        names = {library: python for python, library in self._names.items()}
        ours = {}
        for name, value in params.items():
            ours[names.get(name, name)] = tuple(value) if isinstance(value, list) else value
        if "solver" in ours:
            ours["solver"] = next(word for word, library in SOLVERS.items() if library == ours["solver"])
        start: Any = ours.get("init")
        if isinstance(start, dict):
            ours["init"] = np.array(start["given"])
        return ours

    def _invalid(self, name: str, bound: str, value: Any) -> InvalidParameterError:
        got = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) and value.size > 8 else repr(value)
        return InvalidParameterError(
            f"The {name!r} parameter of {type(self).__name__} must be {bound}. Got {got} instead."
        )

    def _renamed(self, name: str, value: str, bound: str) -> ValueError:
        """An error of the library about one of its parameters, with the name that it has here."""
        params = self.get_params(deep=False)
        names = {library: python for python, library in self._names.items() if python in params}
        here = names.get(name, name)
        if here in params:
            return self._invalid(here, _in_python(bound), params[here])
        return ValueError(f"{name} = {value} is not allowed: it must be {bound}")

    @classmethod
    def _learner(cls) -> str:
        """The name of the learner in the library."""
        return cls._method.partition("+")[0]

    @classmethod
    def _of(cls, model: _core.Model) -> Any:
        """The fitted estimator of a model that was read."""
        estimator = cls()
        estimator._model = model
        estimator._from_file = True
        schema = model.schema
        estimator.n_features_in_ = len(schema.names)
        if schema.named:
            estimator.feature_names_in_ = np.array(schema.names, dtype=object)
        estimator.classes_ = values_of(model.classes)
        params = learner_in(model).get(cls._learner(), {})
        estimator.set_params(**estimator._from_library(params))
        if model.imputes:
            estimator.set_params(missing="impute")
        return estimator

    def _repr_html_inner(self) -> str:
        """What a notebook shows: the diagram of scikit-learn and, once fitted, what was learned."""
        html: str = super()._repr_html_inner()
        return html + _notebook.summary(self) if "_model" in self.__dict__ else html

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle and "_model" in self.__dict__:
            bundle["text/html"] += _notebook.summary(self)
        return bundle

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = TELLS_CATEGORIES
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags


def learner_in(model: _core.Model) -> dict[str, dict[str, Any]]:
    """The learner by name, with its parameters, of a metric alone; of a classifier its method."""
    method = model.report["method"]
    return method.get("metric", method)


def check_pairs(pairs: ArrayLike, width: int | None, estimator: str) -> Floats:
    """Pairs of rows as an array of shape (n_pairs, 2, n_features)."""
    checked: Floats = check_array(
        pairs, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_min_samples=0, estimator=estimator, input_name="pairs"
    )
    wanted = "n_features" if width is None else width
    if checked.ndim != 3 or checked.shape[1] != 2 or checked.shape[2] != (width or checked.shape[2]):
        raise ValueError(
            f"{estimator} expects pairs as an array of shape (n_pairs, 2, {wanted}), but the shape is {checked.shape}; "
            "for pairs of row numbers i, j use X[np.column_stack([i, j])]"
        )
    return checked


def _in_python(bound: str) -> str:
    """What the library says a value must be, with the constants of Python."""
    return re.sub(r"\b(true|false|none)\b", lambda word: word[0].capitalize(), bound)


def _in_words(step: Step) -> str:
    """One line about a step."""
    text = f"{step['progress']}: loss {step['loss']:.6g}"
    for key, name in (("valid_error", "validation error"), ("stopping_error", "early-stopping error")):
        if step.get(key) is not None:
            text += f", {name} {100 * step[key]:.1f} %"
    if step.get("cost") is not None:
        text += f", C {step['cost']:.4g}"
    if step.get("gap") is not None:
        text += f", gap {step['gap']:.2g}"
    return text
