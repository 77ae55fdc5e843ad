"""Neighbourhood component analysis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from svml._base import ATTRIBUTES, PARAMETERS, Callbacks, Estimator


class NCA(Estimator):
    __doc__ = f"""Neighbourhood component analysis.

    Each row picks a neighbour by a softmax over distances; the metric maximises the expected share of rows whose neighbour
    belongs to their own class [1]_.

    Parameters
    ----------
    n_components : int, default=None
        Number of dimensions to map into; None: the number of features.
    init : {{"scaled", "identity", "auto", "pca"}} or array-like of shape (n_components, n_features), default="scaled"
        Initial value of L: I/sqrt(d), or I; with `n_components`, the leading principal directions. "auto" is the default and
        "pca" the same as "identity". An array is L on the original features, such as `components_` of another fit.
    solver : {{"lbfgs", "cg"}}, default="lbfgs"
        How the loss is minimised: by limited-memory BFGS or by conjugate gradients.
    max_iter : int, default=100
        Maximum number of steps.
    tol : float, default=1e-5
        Learning stops when the relative decrease of the loss is less than this.
    random_state : int, RandomState instance or None, default=None
        Accepted for compatibility and ignored: nothing is random here.{PARAMETERS}

    Attributes
    ----------
    trace_ : dict of ndarray
        Every step: iteration, loss, step_length.{ATTRIBUTES}

    See Also
    --------
    LMNN : Large margin nearest neighbours.
    SVML : The metric of an SVM.
    sklearn.neighbors.NeighborhoodComponentsAnalysis : The same loss in scikit-learn.

    References
    ----------
    .. [1] J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood Components Analysis", Advances in
           Neural Information Processing Systems 17, 2005.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from svml import NCA
    >>> X, y = load_wine(return_X_y=True)
    >>> NCA(n_components=2).fit_transform(X, y).shape
    (178, 2)
    """

    _method = "nca+none"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: str | ArrayLike = "scaled",
        solver: str = "lbfgs",
        max_iter: int = 100,
        tol: float = 1e-5,
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
