"""Pictures of what was learned. The arrays come from the library's figures; here they are only drawn.

matplotlib is imported when something is drawn. Colours are those of Okabe and Ito, and never the only difference:
classes have markers of their own, curves dashes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from svml._base import Estimator, Rows, label_of

COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b5a800"]
MARKERS = ["o", "^", "s", "D", "v", "*", "P", "h"]
DASHES = ["-", "--", "-.", ":"]
INK = "#1a1a1a"

Floats = NDArray[np.float64]


def _axes(ax: Any, width: float, height: float, rows: int = 1, heights: list[float] | None = None) -> Any:
    """The axes to draw on: those given, or new ones."""
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != rows:
            raise ValueError(f"{len(axes)} axes were given where {rows} are needed")
        return axes
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        rows,
        1,
        figsize=(width, height),
        sharex=True,
        squeeze=False,
        layout="constrained",
        height_ratios=heights,
    )
    return axes.ravel()


def _checked(estimator: Any) -> Any:
    if not isinstance(estimator, Estimator):
        raise TypeError(
            f"an estimator of svml is needed, not {type(estimator).__name__}; of a pipeline take the step, "
            "pipeline[-1], and the rows as they reach it"
        )
    check_is_fitted(estimator)
    return estimator


def _labels(y: Any, rows: Rows) -> list[str]:
    labels = [label_of(value) for value in np.asarray(y).tolist()]
    if len(labels) != len(rows):
        raise ValueError(f"{len(labels)} labels were given for {len(rows)} rows")
    return labels


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _apart(places: list[float], widths: Floats, end: float) -> list[float]:
    """Left ends of labels, as near to their places as they can be without meeting or going past the end."""
    left = list(places)
    for k in range(1, len(left)):
        left[k] = max(left[k], left[k - 1] + widths[k - 1])
    for k in reversed(range(len(left))):
        left[k] = min(left[k], end - widths[k])
        end = left[k]
    return left


class MapDisplay:
    """Rows in two dimensions over the decision of the model.

    The axes are the two directions of the metric that count most, so that distances on the map are distances of the
    metric as far as these go; for a mean of several SVMs, of which no two directions stand out, they are those along
    which the mapped rows lie apart most. The background is what the model decides there, averaged over the other
    directions; for a metric of rank 2 there are none, and it is the decision itself. Create it with `from_estimator`.

    Attributes
    ----------
    map : dict
        The numbers: places ``x`` and ``y`` of the rows, their ``class`` and whether they are ``support`` vectors;
        on a grid over ``x_range`` and ``y_range`` the class ``decided``, the ``strength`` of its colour and, with
        two classes, the ``decision`` value; the ``axes`` in standardised features and as ``axis_labels``, and
        whether the background is ``exact``.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.

    See Also
    --------
    TraceDisplay, MetricDisplay, RelevanceDisplay, ReliabilityDisplay : The other pictures.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_wine
    >>> from svml import MapDisplay, SVMLClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = SVMLClassifier(form="low_rank", n_components=2).fit(X, y)
    >>> display = MapDisplay.from_estimator(model, X, y)
    >>> bool(display.map["exact"])
    True
    """

    def __init__(self, map: dict[str, Any]) -> None:
        self.map = map

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
            A fitted estimator. Without an SVM there is no background.
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
        labels = None if y is None else _labels(y, rows)
        return cls(estimator._model.map(rows, labels, directions, estimator._threads())).plot(ax=ax)

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
        map_ = self.map
        self._background(ax)
        size = 18 if len(map_["x"]) > 500 else 30
        for place in [-1, *range(len(map_["classes"]))]:
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
                edgecolors=INK,
                linewidths=0.5,
                label=_short(map_["classes"][place]) if known else "class not known",
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
        labels = map_["axis_labels"]
        ax.set(xlim=map_["x_range"], ylim=map_["y_range"], xlabel=labels[0], ylabel=labels[1])
        if map_["background"] is not None:
            ax.set_title(f"Background: {map_['background']}", fontsize="medium", loc="left")
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _background(self, ax: Any) -> None:
        from matplotlib.colors import to_rgb

        map_ = self.map
        decided, decision = map_["decided"], map_["decision"]
        if not decided.size:
            return
        colours = np.array([to_rgb(COLOURS[c % len(COLOURS)]) for c in range(len(map_["classes"]))])
        image = 1 - map_["strength"][..., None] * (1 - colours[decided])
        (left, right), (bottom, top) = map_["x_range"], map_["y_range"]
        extent = (left, right, bottom, top)
        ax.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="nearest", zorder=0)
        x = np.linspace(left, right, decided.shape[1])
        y = np.linspace(bottom, top, decided.shape[0])

        def lines(values: Floats, level: float, width: float, dashes: str = "solid") -> None:
            # matplotlib warns of a level that is not there.
            if values.min() < level < values.max():
                ax.contour(x, y, values, [level], colors=INK, linewidths=width, linestyles=dashes)

        if decision is None:
            for place in np.unique(decided):
                lines((decided == place).astype(np.float64), 0.5, 0.8)
            return
        lines(decision, 0.0, 1.6)
        if map_["margins"]:
            lines(decision, -1.0, 0.9, "dashed")
            lines(decision, 1.0, 0.9, "dashed")


class TraceDisplay:
    """Loss and errors, step by step, and the step that was kept.

    Where several SVMs were learned, one after the other, each has its own piece, with its kernel, its form and its weight
    in the model; before these come the pieces of learning on half of the rows. Create it with `from_estimator`.

    Attributes
    ----------
    trace : dict
        The numbers: ``loss`` and, by name, the ``errors`` in percent, each with one value for a step; the
        ``stages``, each a name, which ends in ", on a half" where it was learned on half of the rows, with its first and
        last step, and their ``weights`` in the model, 0 for one that is not part of it, as none on a half is, and none if
        there was no choice; ``best``, the step that was kept, None for a mean, of which every SVM has kept a step of its
        own; and why it came to a ``stop``, in words.
    axes_, figure_ : array of matplotlib Axes, and Figure
        What was drawn on.

    See Also
    --------
    MapDisplay, MetricDisplay, RelevanceDisplay, ReliabilityDisplay : The other pictures.

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

    def __init__(self, trace: dict[str, Any]) -> None:
        self.trace = trace

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
        trace = _checked(estimator)._model.trace()
        if trace is None:
            raise ValueError("the model was not learned step by step, so there is no curve")
        return cls(trace).plot(ax=ax)

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
        loss, errors, stages, weights = (self.trace[key] for key in ("loss", "errors", "stages", "weights"))
        axes = _axes(ax, 7.5, 5.2 if errors else 3.6, rows=2 if errors else 1)
        steps = np.arange(len(loss))
        for _, first, last in stages:
            part = slice(first, last + 1)
            axes[0].plot(steps[part], loss[part], color=INK, marker=".")
            for place, (rows, values) in enumerate(errors.items()):
                axes[1].plot(
                    steps[part],
                    values[part],
                    color=COLOURS[place],
                    linestyle=DASHES[place],
                    marker=MARKERS[place],
                    markersize=3.5,
                    label=rows if first == 0 else None,
                )
        best = self.trace["best"]
        for one in axes:
            if best is not None:
                one.axvline(best, color="#777777", linestyle=":", linewidth=1)
            one.margins(x=0.03)
            for _, first, _ in stages[1:]:
                one.axvline(first - 0.5, color="#cccccc", linewidth=0.8)
        if best is not None:
            # Beside the line, on the side where there is more room.
            axes[0].annotate(
                " kept ",
                (best, 0.97),
                xycoords=("data", "axes fraction"),
                va="top",
                ha="right" if 2 * best > len(loss) - 1 else "left",
                color="#555555",
            )
        axes[0].set_ylabel("loss")
        stop = self.trace["stop"]
        axes[-1].set_xlabel("step" if stop is None else f"step; learning ended because {stop}")
        axes[-1].xaxis.get_major_locator().set_params(integer=True)
        if errors:
            axes[1].set_ylabel("error in %")
            axes[1].set_ylim(bottom=0)
            axes[1].legend(frameon=False)
        if len(stages) > 1:
            self._name_stages(axes[0])
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    def _name_stages(self, ax: Any) -> None:
        """Says above the axes what was learned from which step on: a word on a line, and no label over another."""
        from matplotlib.lines import Line2D
        from matplotlib.text import Text

        stages, weights = self.trace["stages"], self.trace["weights"]
        texts = []
        for place, (name, _, _) in enumerate(stages):
            kind, _, half = name.partition(", ")
            words = [*kind.split(" "), *([half] if half else [])]
            if len(weights) > 0 and not half:
                words.append(f"weight {weights[place]:.2f}" if weights[place] > 0 else "not used")
            texts.append("\n".join(words))
        # Their widths in steps, with a gap between them. On narrow axes the letters are smaller.
        engine = ax.figure.get_layout_engine()
        if engine is not None:
            # Only then it is known how wide the axes are. The figure of a part of a figure is the whole.
            engine.execute(ax.figure.figure)
        (left, right), room = ax.get_xlim(), ax.get_window_extent().width
        alone = [Text(text=text, fontsize="small", figure=ax.figure) for text in texts]
        pixels = np.array([text.get_window_extent().width for text in alone])
        gap = 0.08 * ax.figure.dpi
        shrunk = min(1.0, room / float(np.sum(pixels + gap)))
        widths, gap = shrunk * (pixels + gap) / room * (right - left), shrunk * gap / room * (right - left)
        firsts = [first for _, first, _ in stages]
        above = ax.get_xaxis_transform()
        for text, first, at, width in zip(texts, firsts, _apart(firsts, widths, right), widths, strict=True):
            ax.annotate(text, (at, 1.08), xycoords=above, fontsize=shrunk * alone[0].get_fontsize())
            # A label may have had to move; a line goes from it to where it belongs.
            line = [first, min(max(first, at), at + width - gap)]
            ax.add_artist(Line2D(line, [1, 1.05], color="#999999", linewidth=0.8, transform=above, clip_on=False))


class MetricDisplay:
    """The matrix M = L'L of the metric on standardised features, as a heat map. Create it with `from_estimator`.

    Attributes
    ----------
    matrix : ndarray
        The part of M that is shown.
    names : list of str
        The features that are shown.
    n_features : int
        How many features there are.
    mean_of : int
        Of how many SVMs it is the mean of the M, each scaled to a trace of one; 1: it is M itself.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.

    See Also
    --------
    MapDisplay, TraceDisplay, RelevanceDisplay, ReliabilityDisplay : The other pictures.

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

    def __init__(self, matrix: Floats, *, names: list[str], n_features: int, mean_of: int = 1) -> None:
        self.matrix = matrix
        self.names = names
        self.n_features = n_features
        self.mean_of = mean_of

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
        figure = _checked(estimator)._model.metric_matrix(max_features)
        display = cls(
            figure["values"], names=figure["names"], n_features=figure["features"], mean_of=figure["mean_of"]
        )
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
                    ink = "white" if abs(value) > 0.7 * largest else INK
                    ax.text(j, i, f"{value:.2g}", ha="center", va="center", color=ink, fontsize=8)
        ax.figure.colorbar(image, ax=ax, shrink=0.7)
        title = "M = L'L, standardised features"
        if self.mean_of > 1:
            title += f"; mean of {self.mean_of} SVMs"
        if count < self.n_features:
            title += f"; the {count} most relevant of {self.n_features}"
        ax.set_title(title, fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class RelevanceDisplay:
    """How much each standardised feature counts: its share of the diagonal of M, sorted.

    A model that is the mean of several SVMs has the mean of their shares; thin lines go from the least to the largest of
    them. Create it with `from_estimator`.

    Attributes
    ----------
    relevance : ndarray
        The values that are shown, descending.
    spread : ndarray of shape (2, n_shown)
        The least and the largest value of any SVM.
    names : list of str
        Their features.
    n_features : int
        How many features there are.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.

    See Also
    --------
    MapDisplay, TraceDisplay, MetricDisplay, ReliabilityDisplay : The other pictures.

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

    def __init__(
        self, relevance: Floats, *, names: list[str], n_features: int, spread: Floats | None = None
    ) -> None:
        self.relevance = relevance
        self.spread = np.array([relevance, relevance]) if spread is None else spread
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
        figure = _checked(estimator)._model.relevance_by_feature()
        names, values = figure["names"], figure["values"]
        shown = slice(max_features)
        spread = np.array([figure["low"][shown], figure["high"][shown]])
        return cls(values[shown], names=names[shown], n_features=len(names), spread=spread).plot(ax=ax)

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
        low, high = self.spread
        label = "share of the diagonal of M = L'L, standardised features"
        if np.any(high - low > 1e-9):
            label += "\nlines: from the least to the largest of the SVMs"
            # Rounding may put the mean outside.
            around = np.maximum([self.relevance - low, high - self.relevance], 0)
            ax.errorbar(self.relevance, range(count), xerr=around, fmt="none", ecolor=INK, elinewidth=0.9, capsize=2.5)
        ax.set_yticks(range(count), [_short(name) for name in self.names])
        ax.margins(y=0.02)
        ax.invert_yaxis()
        ax.set_xlabel(label)
        if count < self.n_features:
            ax.set_title(f"The {count} most relevant of {self.n_features} features", fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ReliabilityDisplay:
    """Whether probabilities are right: of rows that are given a probability of p, a share p should be of that class.

    With two classes the probability is that of the second, with more that of the predicted class. Below the curve is
    how many rows each bin has. Create it with `from_estimator`.

    Attributes
    ----------
    reliability : dict
        The numbers: for each bin with rows their number, ``rows``, the mean of the probabilities, ``predicted``, the
        ``observed`` share and the ends ``low`` and ``high`` of its 95 % interval (Wilson's); ``counts`` of all bins,
        and the ``event`` that the probability is of.
    axes_, figure_ : array of matplotlib Axes, and Figure
        What was drawn on.

    See Also
    --------
    MapDisplay, TraceDisplay, MetricDisplay, RelevanceDisplay : The other pictures.
    sklearn.calibration.CalibrationDisplay : Without intervals, for any classifier.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from svml import ReliabilityDisplay, SVMLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVMLClassifier().fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2])
    >>> display.reliability["event"]
    'class 1'
    """

    def __init__(self, reliability: dict[str, Any]) -> None:
        self.reliability = reliability

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> ReliabilityDisplay:
        """Compare probabilities with classes and draw them.

        Parameters
        ----------
        estimator : SVMLClassifier or SVML
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows, as a rule those of a test.
        y : array-like of shape (n_samples,)
            Their classes.
        ax : array of matplotlib Axes, default=None
            Where to draw: two axes, for shares and numbers of rows. None makes a new figure.

        Returns
        -------
        display : ReliabilityDisplay
            The curve.
        """
        rows = _checked(estimator)._rows(X)
        labels = _labels(y, rows)
        return cls(estimator._model.reliability(rows, labels, estimator._threads())).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ReliabilityDisplay:
        """Draw it.

        Parameters
        ----------
        ax : array of matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ReliabilityDisplay
            The display itself.
        """
        axes = _axes(ax, 5.6, 6.0, rows=2, heights=[3.5, 1.0])
        found = self.reliability
        x, share, counts = found["predicted"], found["observed"], found["counts"]
        axes[0].plot([0, 1], [0, 1], color="#777777", linestyle="--", linewidth=1, label="right")
        axes[0].errorbar(
            x,
            share,
            # Rounding may put the share outside its interval.
            yerr=np.maximum([share - found["low"], found["high"] - share], 0),
            color=COLOURS[0],
            ecolor=INK,
            elinewidth=0.9,
            capsize=3,
            marker="o",
            label="observed, with 95 % interval",
        )
        axes[0].set(xlim=(0, 1), ylim=(-0.02, 1.02), ylabel="observed share")
        axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
        width = 1 / len(counts)
        axes[1].bar(width * np.arange(len(counts)), counts, width=0.9 * width, align="edge", color="#9db8cc")
        axes[1].set(xlim=(0, 1), ylabel="rows", xlabel=f"probability of: {found['event']}")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


class WaterfallDisplay:
    """Why one row is classified as it is: the way from the decision about a reference row to that about the row.

    Each bar is what a column contributes; what points to the right speaks for the second of two classes. Create it with
    `from_estimator`.

    Attributes
    ----------
    waterfall : dict
        The numbers: ``columns`` with their ``values`` in the row and their ``contributions``, the largest first; the
        number of the ``others`` and what these contribute together, ``rest``; ``base``, ``output``, and the two classes
        that it is ``between``.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.

    See Also
    --------
    SVMLClassifier.explain : The contributions to many rows.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from svml import SVMLClassifier, WaterfallDisplay
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = SVMLClassifier().fit(X[::2], y[::2])
    >>> display = WaterfallDisplay.from_estimator(model, X.iloc[[1]])
    >>> len(display.waterfall["columns"])
    10
    """

    def __init__(self, waterfall: dict[str, Any]) -> None:
        self.waterfall = waterfall

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, *, reference: Any = None, max_columns: int = 10, ax: Any = None
    ) -> WaterfallDisplay:
        """Explain one row and draw it.

        Parameters
        ----------
        estimator : SVMLClassifier
            A fitted estimator.
        X : {array-like, frame} of shape (1, n_features)
            The row, such as ``X.iloc[[7]]``.
        reference : {array-like, frame} of shape (1, n_features), default=None
            The row that it is compared with; None is the mean of the training rows.
        max_columns : int, default=10
            Most columns that are listed one by one.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : WaterfallDisplay
            The picture.
        """
        row = _checked(estimator)._rows(X)
        other = None if reference is None else estimator._rows(reference)
        for name, rows in (("X", row), ("reference", other)):
            if rows is not None and len(rows) != 1:
                raise ValueError(f"{name} must be one row, such as X.iloc[[7]] or X[[7]]; {len(rows)} were given")
        figure = estimator._model.waterfall(row, other, max_columns, estimator._threads())
        return cls(figure).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> WaterfallDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : WaterfallDisplay
            The display itself.
        """
        found = self.waterfall
        first, second = found["between"]
        # The small ones together first, so that the largest end at the output.
        bars = [
            (f"{_short(name)} = {_short(value, 12)}", value_of)
            for name, value, value_of in zip(found["columns"], found["values"], found["contributions"])
        ][::-1]
        if found["others"]:
            bars.insert(0, (f"{found['others']} other column{'s' if found['others'] > 1 else ''}", found["rest"]))
        names = ["reference row", *(name for name, _ in bars), "this row"]
        ends = found["base"] + np.concatenate([[0.0], np.cumsum([value for _, value in bars])])
        (ax,) = _axes(ax, 7.5, min(max(1.5 + 0.3 * len(names), 2.5), 10.0))
        ax.axvline(0, color="#777777", linestyle="--", linewidth=1)
        for place, (_, value) in enumerate(bars, start=1):
            start = ends[place - 1]
            ax.barh(place, value, left=start, color=COLOURS[int(value > 0)], height=0.7)
            ax.annotate(
                f"{value:+.3g}".replace("-", "\N{MINUS SIGN}"),
                (max(start, start + value), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        for place, value in ((0, found["base"]), (len(names) - 1, found["output"])):
            ax.plot(value, place, "o", color=INK)
            text = f"{value:.3g}".replace("-", "\N{MINUS SIGN}")
            ax.annotate(text, (value, place), xytext=(7, 0), textcoords="offset points", va="center", fontsize="small")
        for place, value in enumerate(ends):
            ax.plot([value, value], [place, place + 1], color="#777777", linewidth=0.7)
        low, high = float(min(ends.min(), 0)), float(max(ends.max(), 0))
        room = 0.12 * ((high - low) or 1.0)
        ax.set_xlim(low - room, high + room)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlabel(f"decision value (to the right: {second}; to the left: {first})")
        self.ax_, self.figure_ = ax, ax.figure
        return self
