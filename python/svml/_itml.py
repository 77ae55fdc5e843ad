"""Information-theoretic metric learning."""

from __future__ import annotations

import numpy as np

from svml._base import ATTRIBUTES, NAMES, PARAMETERS, Callbacks, Estimator


class ITML(Estimator):
    __doc__ = f"""Information-theoretic metric learning.

    Pairs of rows of one class shall be near and pairs of two classes far, under a metric as close to a prior as
    possible [1]_.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight of the slack: large is strict.
    n_constraints : int, default=None
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
        Seed of the pairs. The same number gives the same metric, bit for bit; None draws one.{PARAMETERS}

    Attributes
    ----------
    trace_ : dict of ndarray
        Every step: iteration, loss, step_length.{ATTRIBUTES}

    See Also
    --------
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
        time_limit: float | None = None,
        callbacks: Callbacks = None,
        verbose: int = 0,
        n_jobs: int | None = None,
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
        self.time_limit = time_limit
        self.callbacks = callbacks
        self.verbose = verbose
        self.n_jobs = n_jobs
