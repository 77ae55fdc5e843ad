"""Support vector metric learning for scikit-learn.

The RBF kernel of a support vector machine, ``k(x, z) = exp(-|L (x - z)|^2)``, usually has ``L = I/sigma``, and
sigma and C come from a grid search. Here the matrix L and C are learned together with the SVM; there is no grid and
nothing to tune. By default the model is the mean of several such SVMs with different kernels.

>>> from sklearn.datasets import load_breast_cancer
>>> from sklearn.model_selection import train_test_split
>>> from svml import SVMLClassifier
>>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
>>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
>>> model = SVMLClassifier().fit(X_train, y_train)
>>> bool(model.score(X_test, y_test) > 0.9)
True

`SVMLClassifier` classifies and transforms. `SVML`, `NCA`, `LMNN` and `ITML` are transformers, for use before another
classifier; `PairsITML` learns from pairs of rows. `MapDisplay`, `TraceDisplay`, `MetricDisplay` and `RelevanceDisplay` draw
what was learned, `ReliabilityDisplay`, `RocDisplay`, `PrecisionRecallDisplay` and `ConfusionDisplay` how well it performs, and
`WaterfallDisplay` why a row is classified as it is. `measures` evaluates predictions. `load` reads a model file,
which is the same for this package, the command ``svml`` and the Rust library.
"""

from svml._base import InvalidParameterError
from svml._displays import (
    ConfusionDisplay,
    MapDisplay,
    MetricDisplay,
    PrecisionRecallDisplay,
    RelevanceDisplay,
    ReliabilityDisplay,
    RocDisplay,
    TraceDisplay,
    WaterfallDisplay,
)
from svml._explain import Alike, Explanation
from svml._itml import ITML, PairsITML
from svml._lmnn import LMNN
from svml._load import load
from svml._measures import measures
from svml._nca import NCA
from svml._progress import ProgressBar
from svml._svml import SVML, SVMLClassifier

__all__ = [
    "Alike",
    "ConfusionDisplay",
    "Explanation",
    "ITML",
    "InvalidParameterError",
    "LMNN",
    "MapDisplay",
    "MetricDisplay",
    "NCA",
    "PairsITML",
    "PrecisionRecallDisplay",
    "ProgressBar",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "SVML",
    "SVMLClassifier",
    "TraceDisplay",
    "WaterfallDisplay",
    "load",
    "measures",
]
__version__ = "0.1.0"
