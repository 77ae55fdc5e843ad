"""Why rows are classified as they are: contributions of columns, and training rows that are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explanation:
    """What each column contributes to the decision about each row.

    Contributions are gradients of the decision value, integrated along the straight line from a reference row to
    the row [1]_. For each row, ``base`` plus the sum of its ``contributions`` equals ``output``.

    Attributes
    ----------
    columns : list of str
        The columns of the table. A text column is one column, however it is encoded.
    contributions : ndarray of shape (n_samples, n_columns)
        Positive values favor the second class of `between`, negative values the first.
    output : ndarray of shape (n_samples,)
        The decision value of each row; with more than two classes, the output of the SVM for the two classes of `between`.
    base : ndarray of shape (n_samples,)
        The same at the reference row.
    between : ndarray of shape (n_samples, 2)
        The two classes; if there are more than two, the runner-up for the row and the predicted class.
    data : ndarray of shape (n_samples, n_columns)
        The values of the rows, as strings.

    See Also
    --------
    SVMLClassifier.explain : Makes it.
    WaterfallDisplay : Draws it for one row.

    References
    ----------
    .. [1] M. Sundararajan, A. Taly and Q. Yan, "Axiomatic Attribution for Deep Networks", arXiv:1703.01365, 2017.
    """

    columns: list[str]
    contributions: Floats
    output: Floats
    base: Floats
    between: NDArray[Any]
    data: NDArray[Any]

    def to_shap(self) -> Any:
        """The same as a `shap.Explanation`, for the plots of the package shap, which must be installed.

        Returns
        -------
        explanation : shap.Explanation
            With values, base_values, data and feature_names.
        """
        from shap import Explanation as ShapExplanation

        return ShapExplanation(
            values=self.contributions,
            base_values=self.base,
            data=self.data,
            feature_names=list(self.columns),
        )


@dataclass(frozen=True)
class Alike:
    """The training rows most similar to some rows in the learned metric [1]_, nearest first.

    Attributes
    ----------
    rows : ndarray of shape (n_samples, n_neighbors)
        Their numbers in the training data.
    classes : ndarray of shape (n_samples, n_neighbors)
        Their classes.
    distances : ndarray of shape (n_samples, n_neighbors)
        Their distances in the metric.
    pulls : ndarray of shape (n_samples, n_neighbors)
        What each adds to the output that `Explanation` speaks of; 0 for a row that is no support vector.

    See Also
    --------
    SVMLClassifier.alike : Makes it.
    Explanation : What the columns contribute.

    References
    ----------
    .. [1] Z. Xu, K. Q. Weinberger and O. Chapelle, "Distance Metric Learning for Kernel Machines",
           arXiv:1208.3422, 2012.
    """

    rows: NDArray[np.intp]
    classes: NDArray[Any]
    distances: Floats
    pulls: Floats
