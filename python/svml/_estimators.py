"""The estimators: input is checked and parameters are named here, numbers come from the library.

A fitted estimator holds the library's model, whose state is the bytes of the model file; attributes ask it.
Parameters that the library declares are passed by its names. Python's differ where scikit-learn has a name of its own
(`NAMES`) and in `lambda_`.
"""

from __future__ import annotations

import json
import math
import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from svml import _core

# What scikit-learn calls parameters of the library, and the one that Python has taken the name of.
NAMES = {
    "max_iter": "max_iterations",
    "tol": "tolerance",
    "n_components": "rank",
    "random_state": "seed",
    "lambda_": "lambda",
}

Floats = NDArray[np.float64]
Step = dict[str, Any]


class InvalidParameterError(ValueError, TypeError):
    """A parameter of an estimator has a value or a type that is not allowed."""


def _mahalanobis(components: Floats, u: ArrayLike, v: ArrayLike) -> float:
    difference = np.asarray(u, dtype=np.float64) - np.asarray(v, dtype=np.float64)
    return float(np.linalg.norm(components @ difference))


def _label(value: Any) -> str:
    """A class label as the model file has it: equal numbers have one name."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return str(value)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() else repr(number)


class _Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all estimators have in common: fit, transform, the metric, the file."""

    _method: ClassVar[str]
    _model: _core.Model
    classes_: NDArray[Any]
    n_features_in_: int
    time_limit: float | None
    verbose: int
    n_jobs: int | None
    callbacks: Any

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Learn from rows and their classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows. They are standardised inside.
        y : array-like of shape (n_samples,)
            The class of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight 2 counts as the row twice, one of weight 0 not at all.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", ensure_min_samples=2)
        check_classification_targets(y)
        weights = self._check_weights(X, sample_weight)
        params = self._library_params(y)
        classes, places = np.unique(y, return_inverse=True)
        labels = [_label(value) for value in classes.tolist()]
        try:
            model = _core.Model.fit(
                self._method,
                json.dumps(params),
                X,
                places.astype(np.int64),
                labels,
                weights=weights,
                names=self._column_names(),
                threads=self._threads(),
                time_limit=self._check_time_limit(),
                observer=self._observer(),
            )
        except _core.ParameterError as error:
            raise self._renamed(*error.args) from None
        # Classes whose rows all have weight 0 do not count.
        kept = set(model.classes)
        self.classes_ = classes[[label in kept for label in labels]]
        self._model = model
        if self.stop_reason_ == "iterations":
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self._max_iter()} steps; "
                "raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def transform(self, X: Any) -> Floats:
        """Map rows by the learned metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            ``(X - mean_) @ components_.T``: Euclidean distances between rows of Z are those of the metric.
        """
        X = self._rows(X)
        return self._model.transform(X, self._threads())

    def get_mahalanobis_matrix(self) -> Floats:
        """The matrix of the metric, ``components_.T @ components_``.

        Returns
        -------
        M : ndarray of shape (n_features, n_features)
            The squared distance of u and v is ``(u - v) @ M @ (u - v)``.
        """
        components = self.components_
        return components.T @ components

    def get_metric(self) -> Callable[[ArrayLike, ArrayLike], float]:
        """The metric as a function of two rows, for scikit-learn's ``metric=`` parameters.

        Returns
        -------
        metric : callable
            ``metric(u, v)`` is the distance of the rows u and v.
        """
        return partial(_mahalanobis, self.components_)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model file, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            The file. The command ``svml``, the Rust library and `svml.load` read it.
        """
        self._fitted().save(path)

    @property
    def components_(self) -> Floats:
        """The map, on features as they are, of shape (n_components, n_features)."""
        return self._fitted().components

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
        """How strongly each standardised feature enters the distance: the diagonal of its matrix."""
        return self._fitted().relevance

    @property
    def form_(self) -> str:
        """The form of the metric: sphere, diagonal, full or rank=R."""
        return self._fitted().form

    @property
    def stop_reason_(self) -> str:
        """Why learning ended: tolerance, minimum, hold_out, iterations, time_limit or interrupted."""
        return str(self._report()["stop"])

    @property
    def n_iter_(self) -> int:
        """Steps that were taken, of all forms together; at least 1."""
        steps = self._steps()
        return max(1, int(steps[-1]["iteration"])) if steps else 1

    @property
    def trace_(self) -> dict[str, NDArray[Any]]:
        """The steps, one array for each thing that was watched."""
        steps = self._steps()
        keys = steps[0] if steps else {}
        trace = {key: np.array([step[key] for step in steps]) for key in keys}
        missing = [key for key, values in trace.items() if values.dtype == object]
        for key in missing:
            trace[key] = trace[key].astype(np.float64)
        stages = self._report()["stages"]
        if stages:
            trace["form"] = np.concatenate([[form] * (1 + last - first) for form, first, last in stages])
        return trace

    @property
    def warnings_(self) -> list[str]:
        """What the user should know about the data or the fit."""
        return list(self._report()["warnings"])

    @property
    def _n_features_out(self) -> int:
        return int(self._fitted().components.shape[0])

    def _fitted(self) -> _core.Model:
        """The model; before the fit the attributes do not exist."""
        try:
            return self.__dict__["_model"]
        except KeyError:
            name = type(self).__name__
            raise AttributeError(f"this {name} is not fitted yet; call fit first") from None

    def _report(self) -> dict[str, Any]:
        return json.loads(self._fitted().report)

    def _steps(self) -> list[Step]:
        report = self._report()
        return report["trace"] or report.get("learning", [])

    def _rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        finite = "allow-nan" if self._model.imputes else True
        return validate_data(
            self, X, reset=False, dtype=np.float64, order="C", ensure_all_finite=finite
        )

    def _threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    def _check_weights(self, X: Floats, sample_weight: ArrayLike | None) -> Floats | None:
        if sample_weight is None:
            return None
        weights: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if np.any(weights < 0):
            raise ValueError("Negative values in data passed to `sample_weight`")
        if not np.any(weights > 0):
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return weights

    def _check_time_limit(self) -> float | None:
        limit = self.time_limit
        if limit is None:
            return None
        if isinstance(limit, bool) or not isinstance(limit, numbers.Real) or not 0 < limit < math.inf:
            raise self._invalid("time_limit", "a positive number of seconds or None", limit)
        return float(limit)

    def _column_names(self) -> list[str] | None:
        """The names of the columns as a header of a table would give them, if it could."""
        names = [str(name).strip() for name in getattr(self, "feature_names_in_", [])]
        return names if names and all(names) and len(set(names)) == len(names) else None

    def _observer(self) -> Callable[[str], bool] | None:
        """What sees each step: the lines of `verbose` and the callbacks."""
        given = self.callbacks
        callbacks = [] if given is None else [given] if callable(given) else given
        if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
            raise self._invalid("callbacks", "a callable, a list of callables or None", given)
        if not self.verbose and not callbacks:
            return None

        def observe(text: str) -> bool:
            step: Step = json.loads(text)
            if self.verbose:
                print(f"[{type(self).__name__}] {_in_words(step)}", flush=True)
            # All of them see the step, whoever wants to end. Values that are no answer do not count.
            answers = [callback(step) for callback in callbacks]
            return any(isinstance(answer, (bool, np.bool_)) and bool(answer) for answer in answers)

        return observe

    def _library_params(self, y: NDArray[Any]) -> dict[str, Any]:
        """The parameters that the library knows, by its names."""
        known = json.loads(_core.defaults(self._method))
        params = {}
        for name, value in self.get_params(deep=False).items():
            if NAMES.get(name, name) in known:
                params[NAMES.get(name, name)] = self._plain(name, value)
        return params

    def _plain(self, name: str, value: Any) -> Any:
        """A value that JSON can hold; the library says whether it is allowed."""
        if name == "random_state" and not isinstance(value, numbers.Integral):
            return int(check_random_state(value).randint(np.iinfo(np.int32).max))
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            raise self._invalid(name, "finite", value)
        if isinstance(value, (list, tuple)):
            return [self._plain(name, part) for part in value]
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise self._invalid(name, "a number, a text or None", value)
        return value

    def _invalid(self, name: str, bound: str, value: Any) -> InvalidParameterError:
        return InvalidParameterError(
            f"The {name!r} parameter of {type(self).__name__} must be {bound}. Got {value!r} instead."
        )

    def _renamed(self, name: str, value: str, bound: str) -> ValueError:
        """An error of the library about one of its parameters, with the name that it has here."""
        params = self.get_params(deep=False)
        names = {library: python for python, library in NAMES.items() if python in params}
        if params.get("n_components") is None and "form" in params:
            names["rank"] = "form"
        here = names.get(name, "criterion" if name == "k_fold" else name)
        if here in params:
            return self._invalid(here, bound, params[here])
        return ValueError(f"{name} = {value} is not allowed: it must be {bound}")

    def _max_iter(self) -> Any:
        return self.get_params(deep=False)["max_iter"]

    def _adopt(self, model: _core.Model) -> Any:
        """Becomes the fitted estimator of a model that was read."""
        self._model = model
        names, given = model.names
        self.n_features_in_ = len(names)
        if given:
            self.feature_names_in_ = np.array(names, dtype=object)
        labels: list[Any] = model.classes
        if model.numeric:
            values = [float(label) for label in labels]
            labels = [int(v) for v in values] if all(v.is_integer() for v in values) else values
        self.classes_ = np.array(labels)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _in_words(step: Step) -> str:
    """One line about a step."""
    text = f"step {step['iteration']}: loss {step['loss']:.6g}"
    for key, name in (("valid_error", "validation error"), ("hold_error", "hold-out error")):
        if step.get(key) is not None:
            text += f", {name} {100 * step[key]:.1f} %"
    if step.get("cost") is not None:
        text += f", C {step['cost']:.4g}"
    if step.get("gap") is not None:
        text += f", gap {step['gap']:.2g}"
    return f"{text}, {step['seconds']:.2f} s"


_SVML_DOC = """Parameters
    ----------
    n_components : int, default=None
        Dimensions to map into: short for ``form="rank=n_components"``. None leaves it to `form`.
    form : str, default="auto"
        Structure of L: "sphere" (one width), "diagonal" (a weight for each feature), "full", "rank=R" (a map into
        R dimensions), or "auto": chosen from the data.
    criterion : str, default="k_fold=5"
        How metric and C are validated while they are learned: "k_fold=K", "hold_out" or "leave_one_out".
    surrogate : {"squared_hinge", "sigmoid", "logistic"}, default="squared_hinge"
        The smooth function that stands in for the zero-one loss.
    steepness : float, default=5.0
        Steepness of the sigmoid and of the logistic surrogate.
    lambda_ : float, default=0.03
        Weight of the regulariser that holds L near its start.
    start : {"isotropic", "gradients"}, default="isotropic"
        Where L starts, if its form is given.
    initial_cost : float, default=0.5
        C at the start.
    learn_cost : bool, default=True
        Whether C is learned; otherwise it stays as it starts.
    optimiser : {"lbfgs", "conjugate_gradients"}, default="lbfgs"
        How the loss is minimised.
    max_iter : int, default=100
        Most steps, for each form that is tried.
    tol : float, default=0.01
        Decrease of the loss below which to stop, relative to the loss.
    patience : int, default=5
        Steps without a better result on the hold-out rows before stopping, with ``criterion="hold_out"``.
    refit : bool, default=True
        Whether the machine is trained again on all rows with the learned L and C.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count: by label, or inversely to the weight of the class.
    random_state : int, RandomState instance or None, default=0
        Seed of the folds. The same number gives the same model, bit for bit; None draws one.
    memory_limit : int, default=8589934592
        Most bytes for kernel matrices. What would need more is refused with a MemoryError.
    time_limit : float, default=None
        Seconds after which the best so far is taken.
    callbacks : callable or list of callables, default=None
        Each is called with every step, a dict. Returning True ends the fit with the best so far.
    verbose : int, default=0
        1 prints a line for each step.
    n_jobs : int, default=None
        Threads. None is 1 unless in a `joblib.parallel_config` context, -1 is all cores. Results are the same, bit
        for bit, for any number.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The map on features as they are: ``transform(X) = (X - mean_) @ components_.T``.
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of the features; a scale of 0 marks a constant feature, which is left out.
    form_ : str
        The form of the metric, as given or as chosen.
    feature_importances_ : ndarray of shape (n_features,)
        How strongly each standardised feature enters the distance: the diagonal of M = L'L.
    cost_ : float
        C.
    candidates_ : list of dict
        The forms that were compared, with C, loss and error on rows held out; empty if the form was given.
    support_ : ndarray of shape (n_SV,)
        Rows of the training data that are support vectors, class after class; of identical rows the first.
    support_vectors_ : ndarray of shape (n_SV, n_features)
        The support vectors.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV)
        Their coefficients, laid out as in `sklearn.svm.SVC`; the ridge 1/C is in them.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        The offset of the machine of each pair of classes.
    trace_ : dict of ndarray
        Every step: iteration, form, loss, train_error, valid_error, hold_error, cost, support, step.
    best_iter_ : int
        The step of the trace that was kept.
    n_iter_ : int
        Steps that were taken, of all forms together.
    stop_reason_ : str
        Why learning ended: tolerance, minimum, hold_out, iterations, time_limit or interrupted.
    warnings_ : list of str
        What the user should know about the data or the fit.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are strings.
"""


class SVML(_Estimator):
    __doc__ = f"""Support vector metric learning as a transformer.

    Learns the matrix L of the kernel ``exp(-|L (x - z)|^2)`` together with C and a support vector machine, and maps
    rows by it. Use it before nearest neighbours, `sklearn.svm.SVC`, or for pictures; `SVMLClassifier` is the same
    with the machine.

    {_SVML_DOC}
    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from svml import SVML
    >>> X, y = load_wine(return_X_y=True)
    >>> pipeline = make_pipeline(SVML(n_components=2), KNeighborsClassifier()).fit(X, y)
    >>> pipeline[:-1].transform(X).shape
    (178, 2)
    """

    _method = "svml"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        form: str = "auto",
        criterion: str = "k_fold=5",
        surrogate: str = "squared_hinge",
        steepness: float = 5.0,
        lambda_: float = 0.03,
        start: str = "isotropic",
        initial_cost: float = 0.5,
        learn_cost: bool = True,
        optimiser: str = "lbfgs",
        max_iter: int = 100,
        tol: float = 1e-2,
        patience: int = 5,
        refit: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        random_state: int | np.random.RandomState | None = 0,
        memory_limit: int = 8 << 30,
        time_limit: float | None = None,
        callbacks: Callable[[Step], Any] | Sequence[Callable[[Step], Any]] | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.form = form
        self.criterion = criterion
        self.surrogate = surrogate
        self.steepness = steepness
        self.lambda_ = lambda_
        self.start = start
        self.initial_cost = initial_cost
        self.learn_cost = learn_cost
        self.optimiser = optimiser
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.refit = refit
        self.class_weight = class_weight
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Any:
        """Read a model file.

        Parameters
        ----------
        path : str or path-like
            A file of `save`, of ``svml train`` or of the Rust library.

        Returns
        -------
        estimator : object
            A fitted estimator of this class, with the parameters that are in the file.
        """
        return cls._of(_core.Model.load(path))

    @classmethod
    def _of(cls, model: _core.Model) -> Any:
        if not model.has_machine:
            raise ValueError("the file holds a metric without a machine; read it with svml.load")
        method = json.loads(model.report)["method"]
        estimator = cls()._adopt(model)
        estimator.set_params(**estimator._python_params(method.get("svml", {})))
        return estimator

    def _python_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Parameters of the library by the names they have here."""
        names = {library: python for python, library in NAMES.items()}
        params = {names.get(name, name): value for name, value in params.items()}
        weights = params.pop("class_weight", "none")
        if isinstance(weights, dict):
            by_label = {_label(label): label for label in self.classes_.tolist()}
            params["class_weight"] = {by_label[k]: v for k, v in weights["given"].items()}
        elif weights != "none":
            params["class_weight"] = weights
        return params

    def _library_params(self, y: NDArray[Any]) -> dict[str, Any]:
        params = super()._library_params(y)
        if self.n_components is not None:
            rank = self._plain("n_components", self.n_components)
            if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
                bound = "an integer in the range [1, n_features] or None"
                raise self._invalid("n_components", bound, self.n_components)
            if self.form not in ("auto", f"rank={rank}"):
                bound = f"None if form={self.form!r} is given"
                raise self._invalid("n_components", bound, self.n_components)
            params["form"] = f"rank={rank}"
        params["class_weight"] = self._weights_of_classes(y)
        return params

    def _plain(self, name: str, value: Any) -> Any:
        return None if name == "class_weight" else super()._plain(name, value)

    def _weights_of_classes(self, y: NDArray[Any]) -> Any:
        given = self.class_weight
        if given is None:
            return "none"
        if isinstance(given, str) and given == "balanced":
            return given
        if not isinstance(given, Mapping):
            raise self._invalid("class_weight", "a dict, 'balanced' or None", given)
        present = {_label(label) for label in np.unique(y).tolist()}
        weights: dict[str, float] = {}
        for label, weight in given.items():
            if isinstance(weight, bool) or not isinstance(weight, numbers.Real):
                raise self._invalid("class_weight", "a dict from labels to numbers", given)
            # As in scikit-learn, a class that does not occur may have a weight.
            if _label(label) in present:
                weights[_label(label)] = float(weight)
        return {"given": weights}

    @property
    def cost_(self) -> float:
        """C."""
        return self._fitted().cost

    @property
    def candidates_(self) -> list[dict[str, Any]]:
        """The forms that were compared."""
        return list(self._report().get("candidates", []))

    @property
    def best_iter_(self) -> int:
        """The step of the trace that was kept."""
        return int(self._report()["best"])

    @property
    def support_(self) -> NDArray[np.intp]:
        """Rows of the training data that are support vectors."""
        return self._fitted().support_rows.astype(np.intp)

    @property
    def support_vectors_(self) -> Floats:
        """The support vectors."""
        return self._fitted().support_vectors

    @property
    def n_support_(self) -> NDArray[np.intp]:
        """Number of support vectors of each class."""
        return self._fitted().support_counts.astype(np.intp)

    @property
    def dual_coef_(self) -> Floats:
        """Coefficients of the support vectors."""
        return self._fitted().beta

    @property
    def intercept_(self) -> Floats:
        """The offset of the machine of each pair of classes."""
        return self._fitted().bias


class SVMLClassifier(ClassifierMixin, SVML):
    __doc__ = f"""A support vector machine that learns its own metric and C.

    The kernel is ``exp(-|L (x - z)|^2)``. The matrix L and C are learned together with the machine by gradient descent
    on a smooth validation error, and whether L is one width, a weight for each feature or a map into few dimensions
    is chosen from the data. Several classes are one-against-one machines with one L and one C. It is a transformer as
    well.

    {_SVML_DOC}
    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from svml import SVMLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> bool(cross_val_score(SVMLClassifier(), X, y).mean() > 0.95)
    True
    """

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes.
        """
        X = self._rows(X)
        return self.classes_[self._model.predict(X, self._threads())]

    def decision_function(self, X: Any) -> Floats:
        """The decision value of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes one value, positive for the second. With more, one for each class, of which the largest
            decides: pairs won, and a share of less than one third that breaks ties.
        """
        X = self._rows(X)
        values = self._model.decision(X, self._threads())
        return values.ravel() if values.shape[1] == 1 else values

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities; the most probable class is always the predicted one.
        """
        X = self._rows(X)
        return self._model.probabilities(X, self._threads())


class _Rival(_Estimator):
    """A metric of another learner, without a machine."""

    @classmethod
    def _of(cls, model: _core.Model) -> Any:
        names = {library: python for python, library in NAMES.items()}
        params = json.loads(model.report)["method"]["metric"][cls._method]
        estimator = cls(**{names.get(name, name): value for name, value in params.items()})
        return estimator._adopt(model)


_RIVAL_DOC = """
    time_limit : float, default=None
        Seconds after which the best so far is taken.
    callbacks : callable or list of callables, default=None
        Each is called with every step, a dict. Returning True ends the fit with the best so far.
    verbose : int, default=0
        1 prints a line for each step.
    n_jobs : int, default=None
        Threads. None is 1 unless in a `joblib.parallel_config` context, -1 is all cores. Results are the same, bit
        for bit, for any number.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The map on features as they are: ``transform(X) = (X - mean_) @ components_.T``.
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of the features; a scale of 0 marks a constant feature, which is left out.
    form_ : str
        The form of the metric: full or rank=R.
    feature_importances_ : ndarray of shape (n_features,)
        How strongly each standardised feature enters the distance: the diagonal of M = L'L.
    trace_ : dict of ndarray
        Every step: iteration, loss, gap, step.
    n_iter_ : int
        Steps that were taken.
    stop_reason_ : str
        Why learning ended: tolerance, minimum, iterations, time_limit or interrupted.
    warnings_ : list of str
        What the user should know about the data or the fit.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names that are strings.
"""


class NCA(_Rival):
    __doc__ = f"""Neighbourhood component analysis.

    Each row draws a neighbour by a softmax over distances; the expected share of rows whose neighbour is of their own
    class is maximised over the metric.

    Parameters
    ----------
    n_components : int, default=None
        Dimensions to map into; None: as many as there are features.
    initial : {{"scaled", "identity"}}, default="scaled"
        Where L starts: I/sqrt(d), or I; with `n_components` the leading principal directions.
    optimiser : {{"lbfgs", "conjugate_gradients"}}, default="lbfgs"
        How the loss is minimised.
    max_iter : int, default=100
        Most steps.
    tol : float, default=1e-5
        Relative decrease of the loss below which to stop.{_RIVAL_DOC}
    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from svml import NCA
    >>> X, y = load_wine(return_X_y=True)
    >>> NCA(n_components=2).fit_transform(X, y).shape
    (178, 2)
    """

    _method = "nca"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        initial: str = "scaled",
        optimiser: str = "lbfgs",
        max_iter: int = 100,
        tol: float = 1e-5,
        time_limit: float | None = None,
        callbacks: Callable[[Step], Any] | Sequence[Callable[[Step], Any]] | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.initial = initial
        self.optimiser = optimiser
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs


class LMNN(_Rival):
    __doc__ = f"""Large margin nearest neighbours.

    The nearest rows of the same class are drawn near, and rows of other classes are kept a margin further away than
    these. The problem is convex, and a duality gap certifies how far the loss can be from the least possible.

    Parameters
    ----------
    n_components : int, default=None
        Dimensions to map into; None: as many as there are features.
    neighbours : int, default=3
        Rows of the same class that are drawn near, for each row.
    mu : float, default=1.0
        Weight of rows of other classes within the margin.
    initial : {{"identity", "scaled"}}, default="identity"
        Where L starts: I, or I/sqrt(d); with `n_components` the leading principal directions.
    optimiser : {{"lbfgs", "conjugate_gradients"}}, default="lbfgs"
        How the loss is minimised.
    max_iter : int, default=1000
        Most steps.
    tol : float, default=1e-3
        Duality gap, relative to the loss, at which to stop.{_RIVAL_DOC}
    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from svml import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> model = make_pipeline(LMNN(), KNeighborsClassifier(3)).fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    _method = "lmnn"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        neighbours: int = 3,
        mu: float = 1.0,
        initial: str = "identity",
        optimiser: str = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-3,
        time_limit: float | None = None,
        callbacks: Callable[[Step], Any] | Sequence[Callable[[Step], Any]] | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.neighbours = neighbours
        self.mu = mu
        self.initial = initial
        self.optimiser = optimiser
        self.max_iter = max_iter
        self.tol = tol
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs


class ITML(_Rival):
    __doc__ = f"""Information-theoretic metric learning.

    Pairs of rows of one class shall be near and pairs of two classes far, under a metric as close to a prior as
    possible.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight of the slack: large is strict.
    pairs : int, default=None
        Pairs of each kind; None: 20 times the square of the number of classes.
    bounds : pair of float, default=None
        Bounds on the squared distances of pairs of one class and of two; None: percentiles of those under the prior.
    percentiles : pair of float, default=(5.0, 95.0)
        The percentiles.
    prior : float, default=None
        The prior is this multiple of the identity; None: 1/d.
    max_iter : int, default=1000
        Most rounds through all pairs.
    tol : float, default=1e-3
        Change of the multipliers in one round, relative to their size, below which to stop.
    random_state : int, RandomState instance or None, default=0
        Seed of the pairs. The same number gives the same metric, bit for bit; None draws one.{_RIVAL_DOC}
    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from svml import ITML
    >>> X, y = load_wine(return_X_y=True)
    >>> ITML().fit(X, y).get_mahalanobis_matrix().shape
    (13, 13)
    """

    _method = "itml"

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        pairs: int | None = None,
        bounds: tuple[float, float] | None = None,
        percentiles: tuple[float, float] = (5.0, 95.0),
        prior: float | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = 0,
        time_limit: float | None = None,
        callbacks: Callable[[Step], Any] | Sequence[Callable[[Step], Any]] | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.gamma = gamma
        self.pairs = pairs
        self.bounds = bounds
        self.percentiles = percentiles
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs


def load(path: str | PathLike[str]) -> Any:
    """Read a model file.

    Parameters
    ----------
    path : str or path-like
        A file of `save`, of ``svml train`` or of the Rust library.

    Returns
    -------
    estimator : object
        A fitted `SVMLClassifier`, or `NCA`, `LMNN` or `ITML` for a metric without a machine. Class labels are numbers
        where the file says so, else texts. Text columns of a table have become numbers in the file's way: features
        are the encoded columns, as `feature_names_in_` names them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_wine
    >>> from svml import SVMLClassifier, load
    >>> X, y = load_wine(return_X_y=True)
    >>> file = Path(tempfile.mkdtemp()) / "wine.svml"
    >>> SVMLClassifier(form="diagonal").fit(X, y).save(file)
    >>> load(file).form
    'diagonal'
    """
    model = _core.Model.load(path)
    if model.has_machine:
        return SVMLClassifier._of(model)
    learner = next(iter(json.loads(model.report)["method"]["metric"]))
    for rival in (NCA, LMNN, ITML):
        if rival._method == learner:
            return rival._of(model)
    raise ValueError(f"{path}: a metric of {learner!r}, for which there is no estimator")
