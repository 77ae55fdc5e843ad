"""Pictures of what was learned: arrays first, drawn second; matplotlib is imported when something is drawn.

Colours are those of Okabe and Ito, and never the only difference: classes have markers of their own, curves dashes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from svml._estimators import _Estimator, _label

COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b5a800"]
MARKERS = ["o", "^", "s", "D", "v", "*", "P", "h"]
DASHES = ["-", "--", "-.", ":"]
ORDINALS = ["first", "second", "third", "fourth"]

Floats = NDArray[np.float64]


def _axes(ax: Any, width: float, height: float, rows: int = 1) -> Any:
    """The axes to draw on: those given, or new ones."""
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != rows:
            raise ValueError(f"{len(axes)} axes were given where {rows} are needed")
        return axes
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows, 1, figsize=(width, height), sharex=True, squeeze=False, layout="constrained"
    )
    return axes.ravel()


def _checked(estimator: Any) -> Any:
    if not isinstance(estimator, _Estimator):
        raise TypeError(
            f"an estimator of svml is needed, not {type(estimator).__name__}; of a pipeline take the step, "
            "pipeline[-1], and the rows as they reach it"
        )
    check_is_fitted(estimator)
    return estimator


def _names(estimator: Any) -> list[str]:
    return list(estimator._model.names[0])


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


class MapDisplay:
    """Rows in two dimensions over the decision of the model.

    The axes are the two directions of the metric that count most, so that distances on the map are distances of the
    metric as far as these go. The background is what the model decides there, averaged over the other directions; for
    a metric of rank 2 there are none, and it is the decision itself. Create it with `from_estimator`.

    Attributes
    ----------
    map_ : dict
        The numbers: places ``x`` and ``y`` of the rows, their ``class`` and whether they are ``support`` vectors,
        ``decided`` and (with two classes) ``decision`` on a grid over ``x_range`` and ``y_range``, the ``axes`` in
        standardised features, and whether the background is ``exact``.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_wine
    >>> from svml import MapDisplay, SVMLClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = SVMLClassifier(n_components=2).fit(X, y)
    >>> display = MapDisplay.from_estimator(model, X, y)
    >>> bool(display.map_["exact"])
    True
    """

    def __init__(self, map_: dict[str, Any], *, classes: list[str], names: list[str]) -> None:
        self.map_ = map_
        self.classes = classes
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        directions: tuple[int, int] | None = None,
        ax: Any = None,
    ) -> MapDisplay:
        """Compute the map of rows and draw it.

        Parameters
        ----------
        estimator : SVMLClassifier, SVML, NCA, LMNN or ITML
            A fitted estimator. Without a machine there is no background.
        X : array-like of shape (n_samples, n_features)
            The rows. Of many, evenly spread ones are drawn.
        y : array-like of shape (n_samples,), default=None
            Their classes.
        directions : pair of int, default=None
            Directions of the metric; 0 is the one that counts most. None: the two leading ones.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : MapDisplay
            The map.
        """
        rows = _checked(estimator)._rows(X)
        labels = None if y is None else [_label(value) for value in np.asarray(y).tolist()]
        if labels is not None and len(labels) != len(rows):
            raise ValueError(f"{len(labels)} labels were given for {len(rows)} rows")
        threads = estimator._threads()
        map_ = estimator._model.map(rows, labels, directions, threads)
        return cls(map_, classes=estimator._model.classes, names=_names(estimator)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> MapDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : MapDisplay
            The display itself.
        """
        (ax,) = _axes(ax, 8.0, 5.6)
        map_ = self.map_
        self._background(ax)
        size = 18 if len(map_["x"]) > 500 else 30
        for place in [-1, *range(len(self.classes))]:
            own = map_["class"] == place
            known = place >= 0
            # A class of the background has its colour explained even without rows.
            if not own.any() and not (known and (map_["decided"] == place).any()):
                continue
            ax.scatter(
                map_["x"][own],
                map_["y"][own],
                s=size if known else size / 2,
                c=COLOURS[place % len(COLOURS)] if known else "#9a9a9a",
                marker=MARKERS[place % len(MARKERS)] if known else "o",
                edgecolors="#1a1a1a",
                linewidths=0.5,
                label=_short(self.classes[place]) if known else "class not known",
                zorder=3,
            )
        support = map_["support"]
        if support.any():
            ax.scatter(
                map_["x"][support],
                map_["y"][support],
                s=3.4 * size,
                facecolors="none",
                edgecolors="#000000",
                linewidths=0.7,
                label="support vector",
                zorder=4,
            )
        ax.set(
            xlim=map_["x_range"], ylim=map_["y_range"], xlabel=self._axis(0), ylabel=self._axis(1)
        )
        if map_["decided"].size:
            kind = "decision" if map_["exact"] else "decision, averaged over other directions"
            ax.set_title(f"Background: {kind}", fontsize="medium", loc="left")
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _background(self, ax: Any) -> None:
        from matplotlib.colors import to_rgb

        map_ = self.map_
        decided, decision = map_["decided"], map_["decision"]
        if not decided.size:
            return
        colours = np.array([to_rgb(COLOURS[c % len(COLOURS)]) for c in range(len(self.classes))])
        strength = np.full(decided.shape, 0.22)
        if decision is not None:
            strength = 0.04 + 0.36 * np.ceil(4 * np.minimum(np.abs(decision), 1)) / 4
        image = 1 - strength[..., None] * (1 - colours[decided])
        (left, right), (bottom, top) = map_["x_range"], map_["y_range"]
        extent = (left, right, bottom, top)
        ax.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="nearest", zorder=0)
        x = np.linspace(left, right, decided.shape[1])
        y = np.linspace(bottom, top, decided.shape[0])
        if decision is not None:
            for levels, width, dashes in (([0.0], 1.6, "solid"), ([-1.0, 1.0], 0.9, "dashed")):
                inside = [level for level in levels if decision.min() < level < decision.max()]
                if inside:
                    ax.contour(
                        x, y, decision, inside, colors="#1a1a1a", linewidths=width, linestyles=dashes
                    )
            return
        for place in np.unique(decided):
            own = (decided == place).astype(float)
            if own.min() < own.max():
                ax.contour(x, y, own, [0.5], colors="#1a1a1a", linewidths=0.8)

    def _axis(self, axis: int) -> str:
        """A direction by the features that weigh most in it."""
        if axis == 1 and self.map_["flat"]:
            return "spread out for legibility; the metric has one direction"
        weights = self.map_["axes"][axis]
        weights = weights / max(float(np.linalg.norm(weights)), np.finfo(float).tiny)
        which = self.map_["which"][axis]
        ordinal = ORDINALS[which] if which < len(ORDINALS) else "further"
        leading = [k for k in np.argsort(-np.abs(weights), kind="stable")[:3] if abs(weights[k]) > 0.05]
        terms = " ".join(
            f"{'+' if weights[k] >= 0 else chr(0x2212)}{abs(weights[k]):.2f} {_short(self.names[k], 16)}"
            for k in leading
        )
        more = " \N{HORIZONTAL ELLIPSIS}" if np.sum(np.abs(weights) > 1e-9) > len(leading) else ""
        return f"{ordinal} direction: {terms}{more}"


class TraceDisplay:
    """Loss and errors, step by step, and the step that was kept.

    Where several forms of the metric were learned, one after the other, each has its own piece. Create it with
    `from_estimator`.

    Attributes
    ----------
    trace : dict of ndarray
        The steps, as in the attribute `trace_` of the estimator.
    axes_, figure_ : array of matplotlib Axes, and Figure
        What was drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_wine
    >>> from svml import SVMLClassifier, TraceDisplay
    >>> model = SVMLClassifier(form="diagonal").fit(*load_wine(return_X_y=True))
    >>> len(TraceDisplay.from_estimator(model).axes_)
    2
    """

    def __init__(self, trace: dict[str, NDArray[Any]], *, best: int, stop_reason: str) -> None:
        self.trace = trace
        self.best = best
        self.stop_reason = stop_reason

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> TraceDisplay:
        """Draw how an estimator has learned.

        Parameters
        ----------
        estimator : SVMLClassifier, SVML, NCA, LMNN or ITML
            A fitted estimator.
        ax : array of matplotlib Axes, default=None
            Where to draw: two axes, for loss and errors; one for NCA, LMNN and ITML. None makes a new figure.

        Returns
        -------
        display : TraceDisplay
            The curves.
        """
        trace = _checked(estimator).trace_
        if not trace:
            raise ValueError("the model was not learned step by step, so there is no curve")
        best = getattr(estimator, "best_iter_", int(trace["iteration"][-1]))
        return cls(trace, best=best, stop_reason=estimator.stop_reason_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> TraceDisplay:
        """Draw it.

        Parameters
        ----------
        ax : array of matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : TraceDisplay
            The display itself.
        """
        trace = self.trace
        names = {"train_error": "training rows", "valid_error": "validation rows", "hold_error": "hold-out rows"}
        errors = [
            (name, 100 * trace[key])
            for key, name in names.items()
            if key in trace and not np.isnan(trace[key]).all()
        ]
        axes = _axes(ax, 7.5, 5.2 if errors else 3.6, rows=2 if errors else 1)
        steps = trace["iteration"]
        pieces = self._pieces()
        for first, last, form in pieces:
            part = slice(first, last + 1)
            axes[0].plot(steps[part], trace["loss"][part], color="#1a1a1a", marker=".")
            for place, (name, values) in enumerate(errors):
                axes[1].plot(
                    steps[part],
                    values[part],
                    color=COLOURS[place],
                    linestyle=DASHES[place],
                    marker=MARKERS[place],
                    markersize=3.5,
                    label=name if first == 0 else None,
                )
            if len(pieces) > 1:
                axes[0].annotate(
                    form, (steps[first], 1.02), xycoords=("data", "axes fraction"), fontsize="small"
                )
        for one in axes:
            one.axvline(self.best, color="#777777", linestyle=":", linewidth=1)
            one.margins(x=0.03)
            for first, _, _ in pieces[1:]:
                one.axvline(steps[first] - 0.5, color="#cccccc", linewidth=0.8)
        # Beside the line, on the side where there is more room.
        late = self.best > (steps[0] + steps[-1]) / 2
        axes[0].annotate(
            "kept ",
            (self.best, 0.97),
            xycoords=("data", "axes fraction"),
            va="top",
            ha="right" if late else "left",
            color="#555555",
        )
        axes[0].set_ylabel("loss")
        axes[-1].set_xlabel(f"step; ended by {self.stop_reason.replace('_', ' ')}")
        axes[-1].xaxis.get_major_locator().set_params(integer=True)
        if errors:
            axes[1].set_ylabel("error in %")
            axes[1].set_ylim(bottom=0)
            axes[1].legend(frameon=False)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _pieces(self) -> list[tuple[int, int, str]]:
        """First and last step of each form; a step of length 0 is where one starts."""
        count = len(self.trace["iteration"])
        if "form" not in self.trace:
            return [(0, count - 1, "")]
        starts = [k for k in range(count) if k == 0 or self.trace["step"][k] == 0]
        ends = [start - 1 for start in starts[1:]] + [count - 1]
        return [(a, b, str(self.trace["form"][a])) for a, b in zip(starts, ends, strict=True)]


class MetricDisplay:
    """The matrix M = L'L of the metric on standardised features, as a heat map. Create it with `from_estimator`.

    Attributes
    ----------
    matrix : ndarray
        The part of M that is shown.
    names : list of str
        The features that are shown.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_wine
    >>> from svml import NCA, MetricDisplay
    >>> model = NCA().fit(*load_wine(return_X_y=True))
    >>> MetricDisplay.from_estimator(model, max_features=5).matrix.shape
    (5, 5)
    """

    def __init__(self, matrix: Floats, *, names: list[str], n_features: int) -> None:
        self.matrix = matrix
        self.names = names
        self.n_features = n_features

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_features: int = 40, ax: Any = None) -> MetricDisplay:
        """Draw the metric of an estimator.

        Parameters
        ----------
        estimator : SVMLClassifier, SVML, NCA, LMNN or ITML
            A fitted estimator.
        max_features : int, default=40
            Of more features the most relevant are shown.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : MetricDisplay
            The heat map.
        """
        model = _checked(estimator)._model
        shown = np.sort(np.argsort(-model.relevance, kind="stable")[:max_features])
        names = _names(estimator)
        matrix = model.mahalanobis[np.ix_(shown, shown)]
        display = cls(matrix, names=[names[k] for k in shown], n_features=len(names))
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> MetricDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : MetricDisplay
            The display itself.
        """
        from matplotlib.colors import LinearSegmentedColormap

        count = len(self.names)
        side = min(max(3.0 + 0.28 * count, 4.5), 11.0)
        (ax,) = _axes(ax, side + 0.8, side)
        largest = float(np.abs(self.matrix).max()) or 1.0
        colours = LinearSegmentedColormap.from_list("svml", ["#0072b2", "#ffffff", "#d55e00"])
        image = ax.imshow(self.matrix, cmap=colours, vmin=-largest, vmax=largest)
        names = [_short(name) for name in self.names]
        size = 9 if count <= 20 else 7
        ax.set_xticks(range(count), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=size)
        ax.set_yticks(range(count), names, fontsize=size)
        if count <= 12:
            for i in range(count):
                for j in range(count):
                    value = self.matrix[i, j]
                    ink = "white" if abs(value) > 0.7 * largest else "#1a1a1a"
                    ax.text(j, i, f"{value:.2g}", ha="center", va="center", color=ink, fontsize=8)
        ax.figure.colorbar(image, ax=ax, shrink=0.7)
        title = "M = L'L, standardised features"
        if count < self.n_features:
            title += f"; the {count} most relevant of {self.n_features}"
        ax.set_title(title, fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class RelevanceDisplay:
    """How much each standardised feature counts: the diagonal of M, sorted. Create it with `from_estimator`.

    Attributes
    ----------
    relevance : ndarray
        The values that are shown, descending.
    names : list of str
        Their features.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_wine
    >>> from svml import SVMLClassifier, RelevanceDisplay
    >>> model = SVMLClassifier(form="diagonal").fit(*load_wine(return_X_y=True, as_frame=True))
    >>> RelevanceDisplay.from_estimator(model).names[0] in model.feature_names_in_
    True
    """

    def __init__(self, relevance: Floats, *, names: list[str], n_features: int) -> None:
        self.relevance = relevance
        self.names = names
        self.n_features = n_features

    @classmethod
    def from_estimator(cls, estimator: Any, *, max_features: int = 30, ax: Any = None) -> RelevanceDisplay:
        """Draw the relevance of the features of an estimator.

        Parameters
        ----------
        estimator : SVMLClassifier, SVML, NCA, LMNN or ITML
            A fitted estimator.
        max_features : int, default=30
            Of more features the most relevant are shown.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : RelevanceDisplay
            The bars.
        """
        relevance = _checked(estimator).feature_importances_
        names = _names(estimator)
        shown = np.argsort(-relevance, kind="stable")[:max_features]
        display = cls(relevance[shown], names=[names[k] for k in shown], n_features=len(names))
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> RelevanceDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : RelevanceDisplay
            The display itself.
        """
        count = len(self.names)
        (ax,) = _axes(ax, 6.5, min(max(1.2 + 0.26 * count, 2.5), 9.0))
        ax.barh(range(count), self.relevance, color=COLOURS[0], height=0.75)
        ax.set_yticks(range(count), [_short(name) for name in self.names])
        ax.margins(y=0.02)
        ax.invert_yaxis()
        ax.set_xlabel("diagonal of M = L'L, standardised features")
        if count < self.n_features:
            ax.set_title(f"The {count} most relevant of {self.n_features} features", fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self
