"""Measures of predictions; every number comes from the library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch
from sklearn.utils.validation import check_consistent_length, column_or_1d

from svml import _core
from svml._base import label_of


class Measures(Bunch):
    """What `measures` and `SVMLClassifier.evaluate` return: a dict whose entries are attributes too.

    Printed, it is a table with the intervals, the classes one by one and the confusion matrix.
    """

    def __str__(self) -> str:
        return str(self["text"])


def measures(
    y_true: ArrayLike,
    y_pred: ArrayLike | None = None,
    y_proba: ArrayLike | None = None,
    *,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> Measures:
    """Measures of the predictions of any classifier, with 95 % intervals.

    They are those of scikit-learn's functions, as named below.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        The class of each row.
    y_pred : array-like of shape (n_samples,), default=None
        The predicted classes; without them the most probable class is predicted.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,), default=None
        The probabilities of the classes, as returned by ``predict_proba``; for two classes, those of `pos_label` are enough.
        Without them there is no AUC, average precision, Brier score, log loss or calibration error.
    labels : array-like of shape (n_classes,), default=None
        The classes, in the order of the columns of `y_proba`, as ``classes_`` has them; by default the sorted classes of
        `y_true` and `y_pred`.
    pos_label : object, default=None
        With two classes, the class that F1, average precision and the Brier score refer to; by default the second.

    Returns
    -------
    measures : Measures
        A dict, whose entries are attributes too, and which prints as a table:

        - ``rows``, and ``error`` and ``balanced_error``, which are one minus `accuracy_score` and one minus
          `balanced_accuracy_score`;
        - ``auc`` (`roc_auc_score`), ``average_precision`` (`average_precision_score`) and ``f1`` (`f1_score`), for several
          classes the mean over the classes, each against the rest (``multi_class="ovr"``, ``average="macro"``);
        - ``mcc`` (`matthews_corrcoef`), ``brier`` (`brier_score_loss`), ``log_loss`` (`log_loss`);
        - ``calibration_error``: the mean, over ten bins of equal count (fewer below 200 rows), of how far the mean
          probability of the predicted classes is from the share of correct predictions;
        - ``positive``, the class of `pos_label`, or None if there are more than two; ``classes`` and ``confusion``
          (`confusion_matrix`);
        - ``intervals``, a dict from these names to 95 % intervals (low, high): Wilson's for the error, from resamples of
          the rows for the others; a name is absent if all resamples agree, which would be uninformative;
        - ``per_class``, a list of dicts with ``class``, ``rows``, ``precision``, ``recall``, ``f1``, ``auc`` and
          ``average_precision`` of each class against the rest.

        What cannot be measured is None.

    Examples
    --------
    >>> from svml import measures
    >>> found = measures([0, 0, 1, 1], [0, 0, 0, 1], [0.1, 0.4, 0.35, 0.8])
    >>> found.error, found.auc
    (0.25, 0.75)
    """
    truth = column_or_1d(y_true)
    given = [] if y_pred is None else [column_or_1d(y_pred)]
    check_consistent_length(truth, *given, *([] if y_proba is None else [y_proba]))
    known = np.unique(np.concatenate([truth, *given])) if labels is None else column_or_1d(labels)
    proba = None if y_proba is None else np.asarray(y_proba, dtype=np.float64)
    if pos_label is None:
        positive = 1
    else:
        places = [place for place, label in enumerate(known.tolist()) if label == pos_label]
        if not places:
            raise ValueError(f"pos_label={pos_label!r} is not one of the labels {known.tolist()}")
        positive = places[0]
    if proba is not None and proba.ndim == 1:
        if len(known) != 2:
            raise ValueError(f"y_proba must have a column for each of the {len(known)} labels {known.tolist()}")
        proba = np.column_stack([1 - proba, proba] if positive == 1 else [proba, 1 - proba])
    if proba is not None and proba.shape[1] != len(known):
        raise ValueError(
            f"y_proba has {proba.shape[1]} columns for {len(known)} labels; give the labels of its columns as labels="
        )
    if given:
        predicted = given[0]
    elif proba is None:
        raise ValueError("y_pred or y_proba is required")
    else:
        predicted = known[proba.argmax(axis=1)]
    return measured(known, truth, predicted, proba, positive, threads=1)


def measured(
    known: NDArray[Any],
    truth: NDArray[Any],
    predicted: NDArray[Any],
    proba: NDArray[np.float64] | None,
    positive: int,
    threads: int,
) -> Measures:
    """Measures by the library; classes of `truth` that are not known come after the others."""
    place = {label_of(label): at for at, label in enumerate(known.tolist())}
    classes: list[Any] = known.tolist()
    for label in [*np.unique(truth).tolist(), *np.unique(predicted).tolist()]:
        if label_of(label) not in place:
            place[label_of(label)] = len(classes)
            classes.append(label)
    if len(classes) < 2:
        raise ValueError(f"at least two classes are needed, but there is only {classes}; give labels=")

    def places(values: NDArray[Any]) -> NDArray[np.int64]:
        distinct, inverse = np.unique(values, return_inverse=True)
        return np.array([place[label_of(value)] for value in distinct.tolist()], dtype=np.int64)[inverse]

    entries, text = _core.measures(
        [label_of(label) for label in classes], places(truth), places(predicted), proba, positive, threads
    )
    found = Measures(**entries)
    by_name = {label_of(label): label for label in classes}
    found["classes"] = np.array(classes)
    found["confusion"] = np.array(entries["confusion"], dtype=np.int64)
    found["intervals"] = {name: tuple(ends) for name, ends in entries["intervals"].items()}
    found["positive"] = None if entries["positive"] is None else by_name[entries["positive"]]
    found["per_class"] = [{**of, "class": by_name[of["class"]]} for of in entries["per_class"]]
    found["text"] = text
    return found
