"""Model files, of whatever was fitted."""

from __future__ import annotations

from os import PathLike, fsdecode
from typing import Any

from svml import _core
from svml._base import Estimator, learner_in
from svml._itml import ITML, PairsITML
from svml._lmnn import LMNN
from svml._nca import NCA
from svml._svml import SVML, SVMLClassifier

# What a metric without a classifier becomes, by its learner.
TRANSFORMERS: tuple[type[Estimator], ...] = (SVML, NCA, LMNN, ITML, PairsITML)


def load(path: str | bytes | PathLike[str]) -> Any:
    """Read a model file.

    Parameters
    ----------
    path : str, bytes or path-like
        A file written by `save`, by ``svml train`` or by the Rust library.

    Returns
    -------
    estimator : object
        A fitted `SVMLClassifier`, or `SVML`, `NCA`, `LMNN`, `ITML` or `PairsITML` for a metric without a classifier. Class labels
        are numbers if the file says so, otherwise strings. The estimator takes tables with text columns as they are: columns
        of a data frame are matched by name, in any order, and columns that the model does not know are ignored.

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
    model = _core.Model.load(fsdecode(path))
    if model.is_classifier:
        return SVMLClassifier._of(model)
    learner = next(iter(learner_in(model)))
    for transformer in TRANSFORMERS:
        if transformer._learner() == learner:
            return transformer._of(model)
    raise ValueError(f"{fsdecode(path)}: a metric of {learner!r}, for which there is no estimator")
