"""Large margin nearest neighbours."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from svml._base import ATTRIBUTES, NAMES, PARAMETERS, Callbacks, Estimator


class LMNN(Estimator):
    __doc__ = f"""Large margin nearest neighbours.

    The nearest rows of the same class are pulled close, and rows of other classes are kept further away than these by a
    margin [1]_. The problem is convex, and a duality gap certifies how far the loss can be from the optimum.

    Parameters
    ----------
    n_components : int, default=None
        Number of dimensions to map into; None: the number of features.
    n_neighbors : int, default=3
        Number of rows of the same class that are pulled close, for each row.
    mu : float, default=1.0
        Weight of rows of other classes within the margin.
    regularization : float, default=None
        The same weight as metric-learn defines it, between 0 and 1, instead of `mu`: the share of the pull of rows of the
        same class, ``mu = (1 - regularization) / regularization``. The default of metric-learn, 0.5, is ``mu=1``.
    init : {{"identity", "scaled", "auto", "pca"}} or array-like of shape (n_components, n_features), default="identity"
        Initial value of L: I, or I/sqrt(d); with `n_components`, the leading principal directions. "auto" is the default and
        "pca" the same as "identity". An array is L on the original features, such as `components_` of another fit.
    solver : {{"lbfgs", "cg"}}, default="lbfgs"
        How the loss is minimised: by limited-memory BFGS or by conjugate gradients.
    max_iter : int, default=1000
        Maximum number of steps.
    tol : float, default=1e-3
        Duality gap, relative to the loss, at which to stop. If `n_components` is below the number of features, there is no
        such gap: learning stops when the loss falls by no more than this, relative to itself, in ten steps.
    random_state : int, RandomState instance or None, default=None
        Accepted for compatibility and ignored: nothing is random here.{PARAMETERS}

    Attributes
    ----------
    trace_ : dict of ndarray
        Every step: iteration, loss, gap (relative duality gap; NaN where it is not known), step_length.{ATTRIBUTES}

    See Also
    --------
    NCA : Neighbourhood component analysis.
    SVML : The metric of an SVM.
    sklearn.neighbors.KNeighborsClassifier : What to use after it.

    References
    ----------
    .. [1] K. Q. Weinberger and L. K. Saul, "Distance Metric Learning for Large Margin Nearest Neighbor
           Classification", Journal of Machine Learning Research 10, 2009, pages 207 to 244.

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

    _method = "lmnn+none"
    _names = {**NAMES, "n_neighbors": "neighbours"}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 3,
        mu: float = 1.0,
        regularization: float | None = None,
        init: str | ArrayLike = "identity",
        solver: str = "lbfgs",
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        categories: str = "auto",
        missing: str = "refuse",
        text: Sequence[str | int] | None = None,
        time_limit: float | None = None,
        callbacks: Callbacks = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.regularization = regularization
        self.init = init
        self.solver = solver
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

    def _library_params(self, labels: Collection[str]) -> dict[str, Any]:
        params = super()._library_params(labels)
        share = self.regularization
        if share is not None:
            if isinstance(share, bool) or not isinstance(share, numbers.Real) or not 0 < share < 1:
                raise self._invalid("regularization", "a number between 0 and 1, or None", share)
            if self.mu != 1.0:
                raise self._invalid("regularization", f"None if mu is given, here mu={self.mu!r}", share)
            params["mu"] = (1.0 - float(share)) / float(share)
        return params
