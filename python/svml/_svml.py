"""Support vector metric learning, as a transformer and as a classifier."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection, Mapping, Sequence
from os import PathLike, fsdecode
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, column_or_1d

from svml import _core
from svml._base import (
    ATTRIBUTES,
    NAMES,
    PARAMETERS,
    Callbacks,
    Estimator,
    Floats,
    form_of,
    label_of,
    learner_in,
)
from svml._explain import Alike, Explanation
from svml._measures import Measures, measured

# An integer is a number of folds. It is not called `cv`, which would promise to take splits as well.
VALIDATION = {"hold_out": "hold_out", "loo": "leave_one_out"}
FORMS = ("auto", "sphere", "diagonal", "full", "low_rank")

DOC = f"""Parameters
    ----------
    form : {{"auto", "sphere", "diagonal", "full", "low_rank"}}, default="auto"
        Structure of L: "sphere" (one width), "diagonal" (a weight for each feature), "full", "low_rank" (a map into
        `n_components` dimensions), or "auto": the mean of several SVMs, each with its own kernel and metric, or low rank
        if `n_components` is given.
    kernel : {{"gaussian", "exponential", "laplacian"}}, default="gaussian"
        The kernel, if a form is given: ``exp(-|L (x - z)|^2)``, ``exp(-|L (x - z)|)``, or
        ``exp(-sum_k w_k |x_k - z_k|)`` where w is the diagonal of L, for the forms "sphere" and "diagonal" only.
    n_components : int, default=None
        Number of dimensions to map into. Required for "low_rank"; not allowed for "sphere", "diagonal" and "full".
    validation : int, "hold_out" or "loo", default=2
        How the metric and C are validated while they are learned: with this number of folds, on a quarter of the rows
        (with another quarter for early stopping), or by leave-one-out in closed form.
    surrogate : {{"squared_hinge", "sigmoid", "logistic"}}, default="squared_hinge"
        The smooth function that stands in for the zero-one loss.
    steepness : float, default=5.0
        Steepness of the sigmoid and of the logistic surrogate.
    regularization : float, default=0.01
        Weight of the regulariser that keeps L near its initial value.
    init : {{"auto", "scaled", "identity", "gradients", "pca"}} or array-like of shape (n_components, n_features), \
default="auto"
        Initial value of L: I/sqrt(d), I, or the directions in which SVMs with one width vary most, the last only if a
        form is given. For low rank, the first two are the leading principal directions. "auto" is "gradients" for low
        rank with up to 1,000 features and otherwise "scaled", and "pca" is the same as "identity". An array is L on the
        original features, such as `components_` of another fit, for the forms "full" and "low_rank".
    C_init : float, default=0.5
        Initial value of C.
    learn_C : bool, default=True
        Whether C is learned; otherwise it keeps its initial value.
    solver : {{"lbfgs", "cg"}}, default="lbfgs"
        How the loss is minimised: by limited-memory BFGS or by conjugate gradients.
    max_iter : int, default=100
        Maximum number of steps, for each SVM that is learned.
    tol : float, default=0.01
        Learning stops when the loss decreases by less than this, relative to the loss.
    patience : int, default=5
        Number of steps without a better result on the early-stopping rows before learning ends, with
        ``validation="hold_out"``.
    refit : bool, default=True
        Whether the SVM is retrained on all rows with the learned L and C.
    cross_fit : bool, default=True
        Whether models are also learned on each half of the rows and applied to the other half (cross-fitting). The weights
        of several SVMs, `honest_error_` and the probabilities are based on this, and several SVMs start from what was
        learned on the halves.
    class_weight : dict, "balanced" or None, default=None
        Class weights: a dict from labels to weights, or inversely proportional to the total weight of each class.
    equal_rows : {{"auto", "observations", "copies"}}, default="auto"
        What rows are that are equal in all columns and in the class: observations, which are assigned to folds one by one;
        copies of one observation, which are all in one fold; or "auto", which is observations unless the table shows that
        they are copies.
    random_state : int, RandomState instance or None, default=0
        Seed for the folds. The same number gives the same model, bit for bit; None chooses one at random.
    landmarks : "auto", "exact" or int, default="auto"
        Whether SVMs are trained on landmarks, rows that represent all others, so that time and memory grow only linearly
        with the number of rows: "auto" is exact up to about 5,000 rows and uses landmarks for more, "exact" never uses
        landmarks, whatever the cost, and a number is the maximum number of landmarks of the SVMs of the model. With
        ``validation="loo"``, everything is exact.
    memory_limit : int or None, default=None
        Limit in bytes on the memory of a fit: kernel matrices and what is computed from them and, with landmarks, the rows.
        Fewer landmarks are used if the limit requires it, and a fit that would need more raises a MemoryError. None means
        as many as usual; if that needs more than three quarters of the free memory of the computer, or of the container it
        runs in, a MemoryError is raised. On a GPU, the limit is the smaller
        of this and the free GPU memory.
    checkpoint : str or path-like or None, default=None
        File in which to save progress. If the process is killed or the computer goes down, the same fit with the same file
        resumes where it stopped, and gives exactly the same model, bit for bit. `random_state` must be an integer. The file
        is removed at the end of a fit that was not stopped early, and contains no rows of the data. It is of no use in a
        parameter search, where every fit is different.{PARAMETERS}

    Attributes
    ----------
    C_ : float or ndarray of shape (n_members,)
        C; for several SVMs, one value for each.
    members_ : list of dict
        The SVMs whose mean is the model, each with kernel, form, n_components (None unless low_rank), C, weight and
        components, the map of its own metric on the original features. The weights add up to one.
    honest_error_ : float or None
        Cross-fitted error: the share of training rows misclassified by models learned on the other half of the rows; for
        small data sets, the mean over several random splits into halves. Sample weights count, class weights do not. None
        without `cross_fit`, or if fewer than two classes have four rows; rows of smaller classes are left out.
    honest_log_loss_ : float or None
        Mean of ``-log(p)`` on the same rows, where p is the predicted probability of the true class.
    candidates_ : list of dict
        The SVMs that were compared, each with kernel, form, n_components (None unless low_rank), cost (C), error on
        held-out rows, weight in the mean, and whether it was chosen, that is, is part of the mean; empty if a form was
        given.
    landmarks_ : dict or None
        Number of landmarks: ``learned``, while the metric and C were learned, and ``in_model``, in each SVM of the model,
        which is None if the SVMs are exact. None if everything was exact.
    temperature_ : float or None
        The temperature that decision values are divided by to obtain probabilities; see ``docs/math.md``. None for a model
        read from a file that has no probabilities, or has them from nearest neighbours.
    support_ : ndarray of shape (n_SV,)
        Indices of the training rows that are support vectors of any SVM, class by class; for identical rows, the index of
        the first. For SVMs on landmarks, these are the landmarks.
    support_vectors_ : ndarray of shape (n_SV, n_features)
        The support vectors.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV)
        Their coefficients, laid out as in `sklearn.svm.SVC`; the ridge 1/C is included in them. For a single SVM only, that
        is, if a form is given.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        The offset of the SVM of each pair of classes. For a single SVM only.
    trace_ : dict of ndarray
        Every step: iteration, kernel, form, half, loss, train_error, valid_error, stopping_error (NaN without rows for
        early stopping), cost (C), support_vectors (how many), step_length. `half` is True for steps on half of the rows,
        which come first for each of several SVMs; those that are part of the mean are then trained further on all rows,
        starting from what was learned on the halves. The steps of only one of the two halves are listed.{ATTRIBUTES}
"""

REFERENCES = """References
    ----------
    .. [1] Z. Xu, K. Q. Weinberger and O. Chapelle, "Distance Metric Learning for Kernel Machines",
           arXiv:1208.3422, 2012.
"""


class SVML(Estimator):
    __doc__ = f"""Support vector metric learning as a transformer.

    Learns the matrix L of the kernel ``exp(-|L (x - z)|^2)`` together with C and a support vector machine [1]_, and
    maps rows with it. By default several SVMs with different kernels are learned, and L is the mean of their metrics.
    Use it before nearest neighbours, `sklearn.svm.SVC`, or for plots; `SVMLClassifier` also classifies with the SVMs.

    {DOC}
    See Also
    --------
    SVMLClassifier : The same as a classifier.
    NCA, LMNN, ITML : Metrics that are learned without an SVM.

    {REFERENCES}
    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from svml import SVML
    >>> X, y = load_wine(return_X_y=True)
    >>> metric = SVML(form="low_rank", n_components=2)
    >>> pipeline = make_pipeline(metric, KNeighborsClassifier()).fit(X, y)
    >>> pipeline[:-1].transform(X).shape
    (178, 2)
    """

    _method = "svml"
    _names = {
        **NAMES,
        "regularization": "lambda",
        "C_init": "initial_cost",
        "learn_C": "learn_cost",
        "validation": "criterion",
    }

    def __init__(
        self,
        *,
        form: str = "auto",
        kernel: str = "gaussian",
        n_components: int | None = None,
        validation: int | str = 2,
        surrogate: str = "squared_hinge",
        steepness: float = 5.0,
        regularization: float = 0.01,
        init: str | ArrayLike = "auto",
        C_init: float = 0.5,
        learn_C: bool = True,
        solver: str = "lbfgs",
        max_iter: int = 100,
        tol: float = 1e-2,
        patience: int = 5,
        refit: bool = True,
        cross_fit: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        equal_rows: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
        landmarks: int | str = "auto",
        memory_limit: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        categories: str = "auto",
        missing: str = "refuse",
        text: Sequence[str | int] | None = None,
        time_limit: float | None = None,
        callbacks: Callbacks = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.form = form
        self.kernel = kernel
        self.n_components = n_components
        self.validation = validation
        self.surrogate = surrogate
        self.steepness = steepness
        self.regularization = regularization
        self.init = init
        self.C_init = C_init
        self.learn_C = learn_C
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.refit = refit
        self.cross_fit = cross_fit
        self.class_weight = class_weight
        self.equal_rows = equal_rows
        self.random_state = random_state
        self.landmarks = landmarks
        self.memory_limit = memory_limit
        self.checkpoint = checkpoint
        self.categories = categories
        self.missing = missing
        self.text = text
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.device = device

    @classmethod
    def load(cls, path: str | bytes | PathLike[str]) -> Any:
        """Read a model file.

        Parameters
        ----------
        path : str, bytes or path-like
            A file written by `save`, by ``svml train`` or by the Rust library.

        Returns
        -------
        estimator : object
            A fitted estimator of this class, with the parameters that are in the file.
        """
        model = _core.Model.load(fsdecode(path))
        needs_classifier = issubclass(cls, ClassifierMixin) or cls._learner() not in learner_in(model)
        if needs_classifier and not model.is_classifier:
            raise ValueError("the file holds a metric without a classifier; read it with svml.load")
        return cls._of(model)

    def _library_params(self, labels: Collection[str]) -> dict[str, Any]:
        params = super()._library_params(labels)
        params["form"] = self._library_form()
        params["class_weight"] = self._weights_of_classes(labels)
        return params

    def _to_library(self, name: str, value: Any, bound: str) -> Any:
        if name in ("form", "class_weight"):
            return None
        if name != "validation":
            return super()._to_library(name, value, bound)
        if isinstance(value, str) and value in VALIDATION:
            return VALIDATION[value]
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 2:
            return f"k_fold={value}"
        raise self._invalid(name, "an integer of at least 2, 'hold_out' or 'loo'", value)

    def _library_form(self) -> str:
        form, rank = self.form, self._plain("n_components", self.n_components, "an integer or None")
        if not isinstance(form, str) or form not in FORMS:
            raise self._invalid("form", "'auto', 'sphere', 'diagonal', 'full' or 'low_rank'", form)
        if rank is None and form != "low_rank":
            return form
        if form not in ("auto", "low_rank"):
            raise self._invalid("n_components", f"None with form={form!r}", rank)
        if isinstance(rank, bool) or not isinstance(rank, int) or rank < 1:
            bound = "an integer in the range [1, n_features]"
            raise self._invalid("n_components", bound if form == "low_rank" else f"{bound} or None", rank)
        return f"rank={rank}"

    def _weights_of_classes(self, labels: Collection[str]) -> Any:
        given = self.class_weight
        if given is None:
            return "none"
        if isinstance(given, str) and given == "balanced":
            return given
        if not isinstance(given, Mapping):
            raise self._invalid("class_weight", "a dict, 'balanced' or None", given)
        weights: dict[str, float] = {}
        for label, weight in given.items():
            number = isinstance(weight, numbers.Real) and not isinstance(weight, bool)
            if not number or not math.isfinite(weight):
                raise self._invalid("class_weight", "a dict from labels to finite numbers", given)
            if label_of(label) in labels:
                weights[label_of(label)] = float(weight)
        # As in scikit-learn, a class that does not occur may have a weight if all that do occur have one; otherwise the
        # label is most likely mistyped.
        missing = [label for label in labels if label not in weights]
        if missing and len(weights) < len(given):
            unknown = [label for label in given if label_of(label) not in labels]
            raise self._invalid(
                "class_weight", f"a dict from classes of y, which are {', '.join(labels)}, to weights", unknown
            )
        return {"given": weights}

    def _from_library(self, params: Mapping[str, Any]) -> dict[str, Any]:
        ours = super()._from_library(params)
        if "form" in ours:
            ours["form"], ours["n_components"] = form_of(ours["form"])
        if "validation" in ours:
            name, _, folds = ours["validation"].partition("=")
            words = {library: word for word, library in VALIDATION.items()}
            ours["validation"] = int(folds) if folds else words[name]
        if ours.get("landmarks", "auto") not in ("auto", "exact"):
            ours["landmarks"] = int(ours["landmarks"])
        weights = ours.get("class_weight")
        if weights == "none":
            ours["class_weight"] = None
        if isinstance(weights, dict):
            by_label = dict(zip(self._fitted().classes, self.classes_.tolist()))
            ours["class_weight"] = {by_label[k]: v for k, v in weights["given"].items()}
        return ours

    def _renamed(self, name: str, value: str, bound: str) -> ValueError:
        return super()._renamed("criterion" if name == "k_fold" else name, value, bound)

    @property
    def C_(self) -> float | Floats:
        """C; for several SVMs, one value for each."""
        costs = [float(member["cost"]) for member in self._svms()]
        return costs[0] if len(costs) == 1 else np.array(costs)

    @property
    def members_(self) -> list[dict[str, Any]]:
        """The SVMs whose mean is the model."""
        model = self._fitted()
        found = []
        for place, member in enumerate(model.members):
            form, rank = form_of(member["form"])
            found.append(
                {
                    "kernel": member["kernel"],
                    "form": form,
                    "n_components": rank,
                    "C": member["cost"],
                    "weight": member["weight"],
                    "components": model.member_components(place),
                }
            )
        return found

    @property
    def honest_error_(self) -> float | None:
        """Cross-fitted error on the training rows."""
        return self._honest("error")

    @property
    def honest_log_loss_(self) -> float | None:
        """Cross-fitted log loss on the training rows."""
        return self._honest("log_loss")

    @property
    def candidates_(self) -> list[dict[str, Any]]:
        """The SVMs that were compared."""
        found = []
        for candidate in self._fitted().report.get("candidates", []):
            form, rank = form_of(candidate["form"])
            found.append({**candidate, "form": form, "n_components": rank})
        return found

    @property
    def landmarks_(self) -> dict[str, int | None] | None:
        """Number of landmarks; None if everything was exact."""
        landmarks = self._fitted().report.get("landmarks")
        return None if landmarks is None else dict(landmarks)

    @property
    def temperature_(self) -> float | None:
        """The temperature that decision values are divided by to obtain probabilities."""
        return self._fitted().temperature

    @property
    def support_(self) -> NDArray[np.intp]:
        """Indices of the training rows that are support vectors."""
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
        """Coefficients of the support vectors, of a single SVM."""
        self._single("dual_coef_")
        return self._fitted().beta

    @property
    def intercept_(self) -> Floats:
        """The offset of the SVM of each pair of classes, of a single SVM."""
        self._single("intercept_")
        return self._fitted().bias

    def _svms(self) -> list[dict[str, Any]]:
        members = self._fitted().members
        if not members:
            raise AttributeError("the model in this file has no SVM, and therefore no C and no coefficients")
        return members

    def _single(self, name: str) -> None:
        count = len(self._svms())
        if count > 1:
            raise AttributeError(
                f"{name} exists only for a single SVM, but this model is the mean of {count}; for a single SVM choose "
                f'a form, as in {type(self).__name__}(form="diagonal")'
            )

    def _honest(self, key: str) -> float | None:
        honest = self._fitted().report.get("honest")
        return None if honest is None else float(honest[key])


class SVMLClassifier(ClassifierMixin, SVML):
    __doc__ = f"""A support vector machine that learns its own metric and C.

    The kernel is ``exp(-|L (x - z)|^2)``. The matrix L and C are learned together with the SVM by gradient descent
    on a smooth validation error [1]_. By default the decision is the mean of several such SVMs that differ in kernel and
    form of L, weighted by their performance on held-out rows; if a map into few dimensions does far better there, it takes
    their place. If `form` is given, there is a single SVM. Several classes are handled by one-against-one SVMs that share L
    and C. The classifier is also a transformer.

    {DOC}
    See Also
    --------
    SVML : The same as a transformer, for use before another classifier.
    sklearn.svm.SVC : SVM whose kernel width and C are given.

    {REFERENCES}
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
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            The classes.
        """
        X = self._rows(X)
        return self.classes_[self._model.predict(X, self._threads(), self._device(len(X)))]

    def decision_function(self, X: Any) -> Floats:
        """The decision value of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes a single value, positive for the second class. With more, one value for each class, of which the
            largest decides: the number of pairs won, plus a fraction of less than one third that breaks ties.
        """
        X = self._rows(X)
        values = self._model.decision(X, self._threads(), self._device(len(X)))
        return values.ravel() if values.shape[1] == 1 else values

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities; the most probable class is always the predicted one, unless `class_weight` is given: weights
            change what is predicted, and probabilities are corrected for them.
        """
        X = self._rows(X)
        return self._model.probabilities(X, self._threads(), self._device(len(X)))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of the probability of each class for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            The logarithm of `predict_proba`; minus infinity where that is 0.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def evaluate(self, X: Any, y: ArrayLike, *, pos_label: Any = None) -> Measures:
        """Measures of the predictions for rows whose classes are known, with 95 % intervals.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows, normally not those used in `fit`.
        y : array-like of shape (n_samples,)
            The class of each. Every row counts once.
        pos_label : object, default=None
            With two classes, the class that F1, average precision and the Brier score refer to; by default the second.

        Returns
        -------
        measures : Measures
            The same as `svml.measures` returns: error, AUC and more as entries and attributes; it prints as a table.
        """
        X = self._rows(X)
        truth = column_or_1d(y)
        check_consistent_length(X, truth)
        positive = 1
        if pos_label is not None:
            places = [place for place, label in enumerate(self.classes_.tolist()) if label == pos_label]
            if not places:
                raise ValueError(f"pos_label={pos_label!r} is not one of the classes {self.classes_.tolist()}")
            positive = places[0]
        threads, device = self._threads(), self._device(len(X))
        predicted = self.classes_[self._model.predict(X, threads, device)]
        proba = self._model.probabilities(X, threads, device)
        return measured(self.classes_, truth, predicted, proba, positive, threads)

    def explain(self, X: Any, reference: Any = None) -> Explanation:
        """What each column contributes to the decision about each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows.
        reference : {array-like, frame} of shape (1, n_features), default=None
            The row to compare with; None means the mean of the training rows.

        Returns
        -------
        explanation : Explanation
            Its contributions add up to the difference between the decision values of a row and of the reference.
        """
        X = self._rows(X)
        if reference is not None:
            reference = self._rows(reference)
            if len(reference) != 1:
                raise ValueError(f"the reference must be a single row, but {len(reference)} were given")
        found = self._model.explain(X, reference, self._threads())
        return Explanation(
            columns=found["columns"],
            contributions=found["contributions"],
            output=found["output"],
            base=found["base"],
            between=self.classes_[found["between"]],
            data=np.array(found["cells"], dtype=object).reshape(found["contributions"].shape),
        )

    def report(self, X: Any, y: Any, path: str | PathLike[str] | None = None, *, title: str | None = None) -> str:
        """Write a one-page report on the model and its performance on rows whose classes are known.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            Rows that the model was not fitted on.
        y : array-like of shape (n_samples,)
            Their classes.
        path : str or path-like, default=None
            File for the page, which is written completely or not at all.
        title : str, default=None
            Heading of the page.

        Returns
        -------
        html : str
            The self-contained page; it loads nothing.
        """
        X = self._rows(X)
        labels = self._labels_of(y)
        heading = title if title is not None else f"{type(self).__name__} on {len(labels)} rows"
        html = self._model.page(X, labels, heading, self._threads(), self._device(len(X)))
        if path is not None:
            _core.write_file(path, html)
        return html

    def keep_rows(self, X: Any, y: Any) -> Any:
        """Keep the training rows in the model, so that `alike` can find those most similar to a new row.

        They become part of the model file and of pickles: anyone who has one of these can read the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows that the model was fitted on, in the same order.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        self : object
            The estimator, whose model now keeps the rows.
        """
        X = self._rows(X)
        places = {label_of(label): place for place, label in enumerate(self.classes_.tolist())}
        labels = [label_of(value) for value in np.asarray(y).tolist()]
        unknown = [label for label in labels if label not in places]
        if unknown:
            raise ValueError(f"y contains the class {unknown[0]!r}, which the model was not fitted on")
        self._model = self._model.keep_rows(X, np.array([places[label] for label in labels], dtype=np.int64))
        return self

    def alike(self, X: Any, n_neighbors: int = 5) -> Alike:
        """The training rows most similar to each row in the learned metric.

        Parameters
        ----------
        X : {array-like, sparse matrix, frame} of shape (n_samples, n_features)
            The rows.
        n_neighbors : int, default=5
            Number of training rows for each row.

        Returns
        -------
        alike : Alike
            Their indices, classes, distances, and their pull on the decision value.
        """
        X = self._rows(X)
        if not self._model.keeps_rows:
            raise ValueError(
                "the model does not keep its training rows; call keep_rows(X, y) with the rows it was fitted on, or "
                "train it with the command and --keep-rows"
            )
        if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, numbers.Integral) or n_neighbors < 1:
            raise self._invalid("n_neighbors", "an integer of at least 1", n_neighbors)
        found = self._model.alike(X, int(n_neighbors), self._threads())
        return Alike(
            rows=found["row"].astype(np.intp),
            classes=self.classes_[found["class"]],
            distances=found["distance"],
            pulls=found["pull"],
        )
