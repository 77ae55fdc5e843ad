"""Information-theoretic metric learning, from classes and from pairs that are given."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_array

from svml import _core
from svml._base import ATTRIBUTES, NAMES, PARAMETERS, WATCHING, Callbacks, Estimator, Floats, check_pairs


class ITML(Estimator):
    __doc__ = f"""Information-theoretic metric learning.

    Pairs of rows of the same class should be near and pairs of different classes far, under a metric as close to a prior as
    possible [1]_.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight of the slack: the larger, the stricter.
    n_constraints : int, default=None
        Number of pairs of each kind; None: 20 times the square of the number of classes.
    bounds : pair of float, default=None
        Bounds on the squared distances of pairs of the same class and of different classes; None: percentiles of the
        squared distances under the prior.
    percentiles : pair of float, default=(5.0, 95.0)
        The percentiles for `bounds`.
    prior : float, default=None
        The prior is this multiple of the identity; None: 1/d.
    max_iter : int, default=1000
        Maximum number of rounds through all pairs.
    tol : float, default=1e-3
        Learning stops when a round changes the multipliers by less than this, relative to their size.
    random_state : int, RandomState instance or None, default=0
        Seed for the pairs. The same number gives the same metric, bit for bit; None chooses one at random.{PARAMETERS}

    Attributes
    ----------
    trace_ : dict of ndarray
        Every step: iteration, loss, step_length.{ATTRIBUTES}

    See Also
    --------
    PairsITML : The same from given pairs, for rows without classes.
    LMNN : Large margin nearest neighbours.
    SVML : The metric of an SVM.

    References
    ----------
    .. [1] J. V. Davis, B. Kulis, P. Jain, S. Sra and I. S. Dhillon, "Information-Theoretic Metric Learning",
           International Conference on Machine Learning, 2007, pages 209 to 216.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from svml import ITML
    >>> X, y = load_wine(return_X_y=True)
    >>> ITML().fit(X, y).get_mahalanobis_matrix().shape
    (13, 13)
    """

    _method = "itml+none"
    _names = {**NAMES, "n_constraints": "pairs"}

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        n_constraints: int | None = None,
        bounds: tuple[float, float] | None = None,
        percentiles: tuple[float, float] = (5.0, 95.0),
        prior: float | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = 0,
        categories: str = "auto",
        missing: str = "refuse",
        text: Sequence[str | int] | None = None,
        time_limit: float | None = None,
        callbacks: Callbacks = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.gamma = gamma
        self.n_constraints = n_constraints
        self.bounds = bounds
        self.percentiles = percentiles
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.categories = categories
        self.missing = missing
        self.text = text
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.device = device


class PairsITML(Estimator):
    __doc__ = f"""Information-theoretic metric learning from given pairs.

    Pairs of rows that are labeled similar should be near, and pairs that are labeled dissimilar should be far, under a
    metric as close to a prior as possible [1]_. No classes are needed. It predicts whether new pairs are similar, and maps
    rows, as all metrics do.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight of the slack: the larger, the stricter.
    bounds : pair of float, default=None
        Bounds on the squared distances: an upper bound for similar pairs, a lower bound for the others. None: percentiles of
        the squared distances under the prior, of all rows that occur in the pairs.
    percentiles : pair of float, default=(5.0, 95.0)
        The percentiles for `bounds`.
    prior : float, default=None
        The prior is this multiple of the identity, on standardised features; None: 1/d.
    max_iter : int, default=1000
        Maximum number of rounds through all pairs.
    tol : float, default=1e-3
        Learning stops when a round changes the multipliers by less than this, relative to their size.
    random_state : int, RandomState instance or None, default=None
        Accepted for compatibility and ignored: nothing is random here.{WATCHING}

    Attributes
    ----------
    threshold_ : float
        The distance up to which a pair is predicted to be similar. `fit` sets it to the value that classifies most of its
        pairs correctly. It is not part of a model file.
    trace_ : dict of ndarray
        Every step: iteration, loss, step_length.{ATTRIBUTES}

    See Also
    --------
    ITML : The same from rows with classes.

    References
    ----------
    .. [1] J. V. Davis, B. Kulis, P. Jain, S. Sra and I. S. Dhillon, "Information-Theoretic Metric Learning",
           International Conference on Machine Learning, 2007, pages 209 to 216.

    Examples
    --------
    Rows are similar here if the first number is about the same, whatever the second is.

    >>> from svml import PairsITML
    >>> pairs = [[[1.2, 7.5], [1.3, 1.5]], [[6.4, 2.6], [6.2, 9.7]],
    ...          [[1.3, 4.5], [5.2, 4.6]], [[6.2, 5.5], [1.4, 5.4]]]
    >>> model = PairsITML().fit(pairs, [1, 1, -1, -1])
    >>> model.predict([[[2.0, 3.0], [2.1, 9.0]], [[2.0, 3.0], [6.0, 3.0]]])
    array([ 1, -1])
    """

    _method = "itml+none"
    # Pairs are numbers.
    categories = "auto"
    missing = "refuse"
    text = None

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        bounds: tuple[float, float] | None = None,
        percentiles: tuple[float, float] = (5.0, 95.0),
        prior: float | None = None,
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        time_limit: float | None = None,
        callbacks: Callbacks = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.gamma = gamma
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
        self.device = device

    # Pairs have no weights and no groups, and metric-learn has the bounds in their place.
    def fit(  # type: ignore[override]
        self, pairs: ArrayLike, y: ArrayLike, bounds: ArrayLike | None = None
    ) -> Any:
        """Learn from pairs of rows.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs. Columns are standardised internally, by the mean and standard deviation of the distinct rows.
        y : array-like of shape (n_pairs,)
            1 for similar pairs, -1 for dissimilar pairs.
        bounds : pair of float, default=None
            Overrides the parameter `bounds`.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        checked = check_pairs(pairs, None, type(self).__name__)
        kinds = self._kinds(y, len(checked))
        params = self._library_params([])
        if bounds is not None:
            params["bounds"] = self._plain("bounds", np.asarray(bounds).tolist(), "a pair of positive numbers")
        self._check_verbose()
        try:
            model = _core.Model.fit_pairs(
                json.dumps(params),
                checked[:, 0],
                checked[:, 1],
                kinds == 1,
                threads=self._threads(),
                time_limit=self._check_time_limit(),
                device=self._device(2 * len(checked)),
                observer=self._observer(),
            )
        except _core.ParameterError as error:
            raise self._renamed(*error.args) from None
        finally:
            self._end_watching()
        self._model = model
        self.n_features_in_ = checked.shape[2]
        self.classes_ = np.array([-1, 1])
        self._from_file = False
        self.calibrate_threshold(checked, kinds)
        self._warn()
        return self

    def decision_function(self, pairs: ArrayLike) -> Floats:
        """How similar the two rows of each pair are: minus their distance.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs.

        Returns
        -------
        values : ndarray of shape (n_pairs,)
            ``pair_score(pairs)``.
        """
        return self.pair_score(pairs)

    def predict(self, pairs: ArrayLike) -> NDArray[np.int64]:
        """Whether pairs are similar.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs.

        Returns
        -------
        y : ndarray of shape (n_pairs,)
            1 for pairs whose distance is at most `threshold_`, otherwise -1.
        """
        distances = self.pair_distance(pairs)
        if "threshold_" not in self.__dict__:
            raise AttributeError(
                "a model read from a file has no threshold; call calibrate_threshold or set_threshold first"
            )
        return np.where(distances <= self.threshold_, 1, -1)

    def score(self, pairs: ArrayLike, y: ArrayLike) -> float:
        """How well the distances separate similar from dissimilar pairs.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs.
        y : array-like of shape (n_pairs,)
            1 for similar pairs, -1 for dissimilar pairs.

        Returns
        -------
        auc : float
            The area under the ROC curve of `decision_function`: the probability that a similar pair is nearer than a
            dissimilar one.
        """
        values = self.decision_function(pairs)
        return float(roc_auc_score(self._kinds(y, len(values)), values))

    def calibrate_threshold(self, pairs: ArrayLike, y: ArrayLike) -> Any:
        """Set the threshold to the distance that classifies most of these pairs correctly.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, n_features)
            The pairs, preferably not those of the fit.
        y : array-like of shape (n_pairs,)
            1 for similar pairs, -1 for dissimilar pairs.

        Returns
        -------
        self : object
            The estimator.
        """
        distances = self.pair_distance(pairs)
        similar = self._kinds(y, len(distances)) == 1
        order = np.argsort(distances, kind="stable")
        near = distances[order]
        # How many pairs are right if the k nearest are called similar; pairs at one distance cannot be told apart.
        right = np.concatenate([[0], np.cumsum(np.where(similar[order], 1, -1))])
        apart = np.concatenate([[True], np.diff(near) > 0, [True]])
        k = int(np.argmax(np.where(apart, right, -len(near) - 1)))
        below = near[k - 1] if k > 0 else 0.0
        above = near[k] if k < len(near) else below
        self.threshold_ = float(0.5 * (below + above))
        return self

    def set_threshold(self, threshold: float) -> Any:
        """Set the distance up to which pairs are predicted to be similar.

        Parameters
        ----------
        threshold : float
            The distance.

        Returns
        -------
        self : object
            The estimator.
        """
        self.threshold_ = float(threshold)
        return self

    def _kinds(self, y: ArrayLike, count: int) -> NDArray[np.int64]:
        """1 and -1 for each pair."""
        kinds = check_array(y, dtype=None, ensure_2d=False, ensure_min_samples=0, input_name="y")
        if kinds.ndim != 1 or len(kinds) != count:
            raise ValueError(f"y has shape {kinds.shape} for {count} pairs; it must have one entry for each pair")
        if not np.isin(kinds, (-1, 1)).all():
            other = next(value for value in kinds.tolist() if value not in (-1, 1))
            raise ValueError(f"y must be 1 for similar pairs and -1 for dissimilar pairs, but it contains {other!r}")
        return np.asarray(kinds, dtype=np.int64)

    def _library_params(self, labels: Collection[str]) -> dict[str, Any]:
        params = super()._library_params(labels)
        # No pairs are drawn.
        params.pop("seed", None)
        return params

    def _from_library(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return super()._from_library({name: value for name, value in params.items() if name not in ("pairs", "seed")})

    @classmethod
    def _learner(cls) -> str:
        return "itml_pairs"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = False
        tags.input_tags.categorical = False
        return tags
