"""Pictures of what was learned. The arrays come from the library's figures; here they are only drawn.

matplotlib is imported when something is drawn. Colours are those of Okabe and Ito and three more, and never the only
difference: classes have markers of their own, curves dashes.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from svml._base import Estimator, Rows

COLOURS = [
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"),
    *("#d55e00", "#b5a800", "#332288", "#882255", "#5c3d1e"),
]
# The last two are an hourglass and a bar that lies.
MARKERS: list[Any] = [
    *("o", "^", "s", "D", "v", "*", "P", "X"),
    [(-1.1, -1.2), (1.1, -1.2), (0.25, 0.0), (1.1, 1.2), (-1.1, 1.2), (-0.25, 0.0)],
    [(-1.5, -0.6), (1.5, -0.6), (1.5, 0.6), (-1.5, 0.6)],
]
DASHES: list[Any] = ["-", "--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)), (0, (3, 1))]
CURVES = ["#0072b2", "#d55e00", "#009e73", "#1a1a1a", "#cc79a7", "#e69f00"]
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


def _labels(estimator: Estimator, y: Any, rows: Rows) -> list[str]:
    labels = estimator._labels_of(y)
    if len(labels) != len(rows):
        raise ValueError(f"{len(labels)} labels were given for {len(rows)} rows")
    return labels


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _look(place: int) -> dict[str, Any]:
    """The marker of a class: the second ten have the colours of the first, other shapes, and a white inside."""
    turn, colour = place // len(COLOURS), COLOURS[place % len(COLOURS)]
    look: dict[str, Any] = {"marker": MARKERS[(place + 3 * turn) % len(MARKERS)]}
    if turn % 2:
        return {**look, "facecolors": "white", "edgecolors": colour, "linewidths": 1.5}
    return {**look, "facecolors": colour, "edgecolors": INK, "linewidths": 0.5}


def _lines(pieces: list[str], most: int) -> str:
    """Pieces that are not to be broken, joined into lines of about so many signs; three lines at most."""
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + 1 + len(piece) <= most:
            lines[-1] += " " + piece
        elif len(lines) < 3:
            lines.append(_short(piece, most))
        else:
            lines[-1] += " \N{HORIZONTAL ELLIPSIS}"
            break
    return "\n".join(lines)


def _wrapped(text: str, most: int) -> str:
    return "\n".join(wrap(text, most))


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

    The axes are the two directions of the mapped rows that separate the classes best, as seen by the model; distances on the
    map are the parts of the distances in the metric along these directions. For a metric of rank 2, the map shows all of it.
    The background shows the decision of the model: for rank 2 the decision itself, otherwise the mean over the rows around
    each point, so that rows may lie on the wrong side of the boundary. A few outlying rows may lie outside the frame, and
    support vectors are ringed if they are fewer than a third of the rows. Create it with `from_estimator`.

    Attributes
    ----------
    map : dict
        The numbers: positions ``x`` and ``y`` of the rows, their ``class`` and whether they are ``support`` vectors;
        on a grid over ``x_range`` and ``y_range`` the class ``decided``, the ``strength`` of its colour and, with
        two classes, the ``decision`` value; the ``axes`` in standardised features and as ``axis_labels``,
        whether the background is ``exact``, how many rows lie ``outside`` the frame, and a ``note`` in words.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure of the plot.

    See Also
    --------
    TraceDisplay, MetricDisplay, RelevanceDisplay, ReliabilityDisplay : The other plots.

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
            The rows. If there are many, an evenly spread subset is shown.
        y : array-like of shape (n_samples,), default=None
            Their classes.
        directions : pair of int, default=None
            Eigenvectors of the metric; 0 is the most important one. None: the plane that separates the classes best.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : MapDisplay
            The map.
        """
        rows = _checked(estimator)._rows(X)
        labels = None if y is None else _labels(estimator, y, rows)
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
            look = _look(place) if known else {"facecolors": "#9a9a9a", "edgecolors": INK, "linewidths": 0.5}
            ax.scatter(
                map_["x"][own],
                map_["y"][own],
                s=size if known else size / 2,
                label=_short(map_["classes"][place]) if known else "unknown class",
                zorder=3,
                **look,
            )
        support = map_["support"]
        if map_["ringed"] and support.any():
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
        x_terms, y_terms = map_["axis_terms"]
        ax.set(xlim=map_["x_range"], ylim=map_["y_range"], xlabel=_lines(x_terms, 64), ylabel=_lines(y_terms, 48))
        ax.set_title(_wrapped(map_["note"], 96), fontsize="small", loc="left")
        classes = len(map_["classes"])
        small = "small" if classes > 14 else None
        ax.legend(
            loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=small, ncols=1 + (classes > 24)
        )
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

        def lines(values: Floats, level: float, width: float, dashes: str = "solid", label: str | None = None) -> None:
            # matplotlib warns of a level that is not there.
            if values.min() < level < values.max():
                ax.contour(x, y, values, [level], colors=INK, linewidths=width, linestyles=dashes)
                # The lines of a contour have no place in a legend, so that an empty one stands for them.
                if label is not None:
                    ax.plot([], [], color=INK, linewidth=width, linestyle=dashes, label=label)

        if decision is None:
            for count, place in enumerate(np.unique(decided)):
                lines((decided == place).astype(np.float64), 0.5, 0.8, label=None if count else "boundary")
            return
        lines(decision, 0.0, 1.6, label="boundary")
        if map_["margins"]:
            both = (decision.min() < -1.0, decision.max() > 1.0)
            lines(decision, -1.0, 0.9, "dashed", "margin, \N{PLUS-MINUS SIGN}1" if both[0] else None)
            lines(decision, 1.0, 0.9, "dashed", None if both[0] else "margin, \N{PLUS-MINUS SIGN}1")


class TraceDisplay:
    """Loss and errors, step by step, and the step that was kept.

    If several SVMs were learned, one after the other, each has its own section, with its kernel, its form and its weight in
    the model; these are preceded by the sections of learning on half of the rows. Create it with `from_estimator`.

    Attributes
    ----------
    trace : dict
        The numbers: ``loss`` and, by name, the ``errors`` in percent, each with one value for a step; the
        ``stages``, each a name, which ends in ", on a half" if it was learned on half of the rows, with its first and last
        step, and their ``weights`` in the model, 0 for stages that are not part of it, such as those on half of the rows,
        and none if there was no choice; ``best``, the step that was kept, None for a mean, in which every SVM has kept a
        step of its own; and the reason for the ``stop``, in words.
    axes_, figure_ : array of matplotlib Axes, and Figure
        The axes and the figure of the plot.

    See Also
    --------
    MapDisplay, MetricDisplay, RelevanceDisplay, ReliabilityDisplay : The other plots.

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
    """The matrix M = L'L of the metric on standardised features, as a heat map; as bars if it is diagonal.

    Create it with `from_estimator`.

    Attributes
    ----------
    matrix : ndarray
        The part of M that is shown.
    names : list of str
        The features that are shown.
    n_features : int
        How many features there are.
    mean_of : int
        Number of SVMs over whose M, each scaled to a trace of one, this is the mean; 1 means M itself.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure of the plot.

    See Also
    --------
    MapDisplay, TraceDisplay, RelevanceDisplay, ReliabilityDisplay : The other plots.

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
            The heat map or the bars.
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
        count = len(self.names)
        title = "M = L'L, standardised features"
        if self.mean_of > 1:
            title += f"; mean of {self.mean_of} SVMs"
        if count < self.n_features:
            title += f"; the {count} most relevant of {self.n_features}"
        diagonal = np.diag(self.matrix)
        if count > 1 and np.array_equal(self.matrix, np.diag(diagonal)):
            ax = self._bars(ax, diagonal)
            title += ". M is diagonal: each feature has a weight of its own, and all other entries are 0"
        else:
            ax = self._heat(ax)
        ax.set_title(_wrapped(title, 60), fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _bars(self, ax: Any, diagonal: Floats) -> Any:
        """A diagonal matrix: a picture of its zeros would say nothing."""
        order = np.argsort(-diagonal, kind="stable")
        (ax,) = _axes(ax, 6.5, min(max(1.4 + 0.26 * len(order), 2.7), 11.0))
        ax.barh(range(len(order)), diagonal[order], color=COLOURS[0], height=0.75)
        ax.set_yticks(range(len(order)), [_short(self.names[k]) for k in order])
        ax.margins(y=0.02)
        ax.invert_yaxis()
        ax.set_xlabel("entry of the diagonal of M")
        return ax

    def _heat(self, ax: Any) -> Any:
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
        return ax


class RelevanceDisplay:
    """How much each column matters: its share of the diagonal of M on standardised features, sorted.

    For the mean of several SVMs, the bars show the mean of their shares, and thin lines range from the smallest to the
    largest. Create it with `from_estimator`.

    Attributes
    ----------
    relevance : ndarray
        The values shown, in descending order.
    spread : ndarray of shape (2, n_shown)
        The smallest and the largest value among the SVMs.
    names : list of str
        Their columns, or features.
    n_features : int
        Total number of these.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure of the plot.

    See Also
    --------
    MapDisplay, TraceDisplay, MetricDisplay, ReliabilityDisplay : The other plots.

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
    def from_estimator(
        cls, estimator: Any, *, max_features: int = 30, features: bool = False, ax: Any = None
    ) -> RelevanceDisplay:
        """Draw the relevance of the columns of an estimator.

        Parameters
        ----------
        estimator : SVMLClassifier, SVML, NCA, LMNN or ITML
            A fitted estimator.
        max_features : int, default=30
            If there are more columns, only the most relevant are shown.
        features : bool, default=False
            Whether to show a bar for each encoded feature, such as ``colour=red``, instead of each column of the table.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : RelevanceDisplay
            The bars.
        """
        model = _checked(estimator)._model
        figure = model.relevance_by_feature() if features else model.relevance_by_column()
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
            label += "\nlines: from the smallest to the largest among the SVMs"
            # Rounding may put the mean outside.
            around = np.maximum([self.relevance - low, high - self.relevance], 0)
            ax.errorbar(self.relevance, range(count), xerr=around, fmt="none", ecolor=INK, elinewidth=0.9, capsize=2.5)
        ax.set_yticks(range(count), [_short(name) for name in self.names])
        ax.margins(y=0.02)
        ax.invert_yaxis()
        ax.set_xlabel(label)
        if count < self.n_features:
            ax.set_title(f"The {count} most relevant of {self.n_features}", fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ReliabilityDisplay:
    """Calibration of the probabilities: of the rows with probability p, a share p should belong to the class.

    With two classes, the probability is that of the second class, with more that of the predicted class, unless a class is
    given. The bins have the same number of rows, 20 or more, and Wilson's 95 % intervals. The distribution of the
    probabilities is shown below the curve. Use rows that the model was not trained on. Create it with `from_estimator`.

    Attributes
    ----------
    reliability : dict
        The numbers: for each bin the number of its ``rows``, the mean of the probabilities, ``predicted``, the
        ``observed`` share and the ends ``low`` and ``high`` of its interval; the ``calibration_error``, the mean
        distance between the two; the ``counts`` of rows in ten equal parts of the range from 0 to 1, and the ``event``,
        what the probability is of.
    axes_, figure_ : array of matplotlib Axes, and Figure
        The axes and the figure of the plot.

    See Also
    --------
    RocDisplay, PrecisionRecallDisplay, ConfusionDisplay : Other plots of the performance of a model.
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
    'predicted probability of 1'
    """

    def __init__(self, reliability: dict[str, Any]) -> None:
        self.reliability = reliability

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, ax: Any = None
    ) -> ReliabilityDisplay:
        """Compare probabilities with classes and draw them.

        Parameters
        ----------
        estimator : SVMLClassifier or SVML
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows that the model was not trained on.
        y : array-like of shape (n_samples,)
            Their classes.
        pos_label : label, default=None
            The class whose probability is shown. None: with two classes the second, with more the predicted class.
        ax : array of matplotlib Axes, default=None
            Where to draw: two axes, for shares and numbers of rows. None makes a new figure.

        Returns
        -------
        display : ReliabilityDisplay
            The curve.
        """
        rows, labels, place, threads = _asked(estimator, X, y, pos_label)
        return cls(estimator._model.reliability(rows, labels, place, threads)).plot(ax=ax)

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
        axes[0].plot([0, 1], [0, 1], color="#777777", linestyle="--", linewidth=1, label="perfect calibration")
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
            label="observed, 95 % interval",
        )
        axes[0].set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="observed share")
        error = f"{counts.sum()} rows, calibration error {100 * found['calibration_error']:.1f} %"
        axes[0].set_title(error, fontsize="medium", loc="left")
        axes[0].legend(loc="upper left", frameon=False)
        width = 1 / len(counts)
        axes[1].bar(width * np.arange(len(counts)), counts, width=0.9 * width, align="edge", color="#9db8cc")
        axes[1].set(xlim=(-0.02, 1.02), ylabel="rows", xlabel=_wrapped(found["event"], 60))
        self.axes_, self.figure_ = axes, axes[0].figure
        return self


def _asked(estimator: Any, X: Any, y: Any, pos_label: Any) -> tuple[Rows, list[str], str | None, int]:
    """Rows, labels, the class that is asked for and threads."""
    rows = _checked(estimator)._rows(X)
    label = None if pos_label is None else estimator._labels_of([pos_label])[0]
    return rows, _labels(estimator, y, rows), label, estimator._threads()


def _worst(curves: list[dict[str, Any]], measure: str) -> tuple[list[dict[str, Any]], str]:
    """The curves that are drawn, of many classes those that are told from the rest worst; and what is to be said of it."""
    most = len(CURVES)
    if len(curves) <= most:
        return curves, ""
    words = measure.replace("auc", "AUC").replace("_", " ")
    return sorted(curves, key=lambda curve: curve[measure])[:most], f"; the {most} of {len(curves)} classes with the lowest {words}"


def _value(value: float, interval: list[float] | None) -> str:
    between = "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
    return f"{value:.3f}{between}"


class RocDisplay:
    """ROC curves with the area under them and its 95 % interval.

    With two classes there is one curve, for the second class unless another is given; with more there is one for each class
    against the rest, or only that of the given class. Use rows that the model was not trained on. Create it with
    `from_estimator`.

    Attributes
    ----------
    roc : dict
        The ``curves``, each a dict with its ``class``, the number of its ``rows``, the ``thresholds`` from infinity down,
        ``false_positive_rate`` and ``true_positive_rate``, ``auc`` and the ``interval`` of that; and the number of
        ``rows`` of all classes.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure of the plot.

    See Also
    --------
    PrecisionRecallDisplay, ConfusionDisplay, ReliabilityDisplay : Other plots of the performance of a model.
    sklearn.metrics.RocCurveDisplay : For any classifier, without intervals.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_breast_cancer
    >>> from svml import RocDisplay, SVMLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVMLClassifier().fit(X[::2], y[::2])
    >>> display = RocDisplay.from_estimator(model, X[1::2], y[1::2])
    >>> display.roc["curves"][0]["auc"] > 0.98
    True
    """

    def __init__(self, roc: dict[str, Any]) -> None:
        self.roc = roc

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, ax: Any = None) -> RocDisplay:
        """Rank rows by their probabilities and draw the curves.

        Parameters
        ----------
        estimator : SVMLClassifier or SVML
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows that the model was not trained on.
        y : array-like of shape (n_samples,)
            Their classes.
        pos_label : label, default=None
            The class to separate from the rest. None: with two classes the second, with more each of them.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : RocDisplay
            The curves.
        """
        rows, labels, place, threads = _asked(estimator, X, y, pos_label)
        return cls(estimator._model.roc(rows, labels, place, threads)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> RocDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : RocDisplay
            The display itself.
        """
        (ax,) = _axes(ax, 5.4, 5.4)
        ax.plot([0, 1], [0, 1], color="#777777", linestyle="--", linewidth=1)
        curves, said = _worst(self.roc["curves"], "auc")
        for place, curve in enumerate(curves):
            label = f"{_short(curve['class'])}: AUC {_value(curve['auc'], curve['interval'])}"
            x, y = curve["false_positive_rate"], curve["true_positive_rate"]
            ax.plot(x, y, color=CURVES[place], linestyle=DASHES[place], label=label)
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        title = f"{self.roc['rows']} rows; 95 % intervals; dashed: chance{said}"
        ax.set_title(_wrapped(title, 60), fontsize="medium", loc="left")
        ax.legend(loc="lower right", frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class PrecisionRecallDisplay:
    """Precision against recall, with the average precision, its 95 % interval and the base rate.

    The classes are those of `RocDisplay`. The base rate, the share of rows of the class, is the precision of random
    scores. Use rows that the model was not trained on. Create it with `from_estimator`.

    Attributes
    ----------
    precision_recall : dict
        The ``curves``, each a dict with its ``class``, the number of its ``rows``, the ``thresholds`` from the highest
        down, ``recall`` and ``precision``, ``average_precision`` and the ``interval`` of that, and the ``base_rate``; and
        the number of ``rows`` of all classes.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure of the plot.

    See Also
    --------
    RocDisplay, ConfusionDisplay, ReliabilityDisplay : Other plots of the performance of a model.
    sklearn.metrics.PrecisionRecallDisplay : For any classifier, without intervals.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_wine
    >>> from svml import PrecisionRecallDisplay, SVMLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SVMLClassifier().fit(X[::2], y[::2])
    >>> display = PrecisionRecallDisplay.from_estimator(model, X[1::2], y[1::2])
    >>> len(display.precision_recall["curves"])
    3
    """

    def __init__(self, precision_recall: dict[str, Any]) -> None:
        self.precision_recall = precision_recall

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, ax: Any = None
    ) -> PrecisionRecallDisplay:
        """Rank rows by their probabilities and draw the curves.

        Parameters
        ----------
        estimator : SVMLClassifier or SVML
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows that the model was not trained on.
        y : array-like of shape (n_samples,)
            Their classes.
        pos_label : label, default=None
            The class to separate from the rest. None: with two classes the second, with more each of them.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : PrecisionRecallDisplay
            The curves.
        """
        rows, labels, place, threads = _asked(estimator, X, y, pos_label)
        return cls(estimator._model.precision_recall(rows, labels, place, threads)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> PrecisionRecallDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : PrecisionRecallDisplay
            The display itself.
        """
        (ax,) = _axes(ax, 5.4, 5.4)
        curves, said = _worst(self.precision_recall["curves"], "average_precision")
        for place, curve in enumerate(curves):
            label = f"{_short(curve['class'])}: {_value(curve['average_precision'], curve['interval'])}"
            # From one recall to the next it is the precision of the next that holds.
            x, y = np.append(0.0, curve["recall"]), np.append(curve["precision"][:1], curve["precision"])
            ax.plot(x, y, color=CURVES[place], linestyle=DASHES[place], drawstyle="steps-pre", label=label)
            if len(curves) == 1:
                rate = curve["base_rate"]
                ax.axhline(rate, color="#777777", linestyle="--", linewidth=1, label=f"base rate {rate:.3f}")
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
        ax.set(xlabel="recall", ylabel="precision")
        title = f"{self.precision_recall['rows']} rows; average precision with 95 % interval{said}"
        ax.set_title(_wrapped(title, 60), fontsize="medium", loc="left")
        ax.legend(loc="lower left", frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ConfusionDisplay:
    """The confusion matrix: true classes against predicted classes. Create it with `from_estimator`.

    Attributes
    ----------
    confusion : dict
        The ``classes``; the ``counts`` of rows of each class (first index) predicted as each class (second index) and these
        as ``shares`` of the rows of the class; ``error``, its 95 % ``interval`` and the number of ``rows``.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure of the plot.

    See Also
    --------
    RocDisplay, PrecisionRecallDisplay, ReliabilityDisplay : Other plots of the performance of a model.
    sklearn.metrics.ConfusionMatrixDisplay : For any classifier, without an interval.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from sklearn.datasets import load_wine
    >>> from svml import ConfusionDisplay, SVMLClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SVMLClassifier().fit(X[::2], y[::2])
    >>> ConfusionDisplay.from_estimator(model, X[1::2], y[1::2]).confusion["rows"]
    89
    """

    def __init__(self, confusion: dict[str, Any]) -> None:
        self.confusion = confusion

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Any = None) -> ConfusionDisplay:
        """Classify rows and draw how often each class is predicted as each class.

        Parameters
        ----------
        estimator : SVMLClassifier or SVML
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows that the model was not trained on.
        y : array-like of shape (n_samples,)
            Their classes.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ConfusionDisplay
            The matrix.
        """
        rows, labels, _, threads = _asked(estimator, X, y, None)
        return cls(estimator._model.confusion(rows, labels, threads)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> ConfusionDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : ConfusionDisplay
            The display itself.
        """
        from matplotlib.colors import to_rgb

        found = self.confusion
        count, shares = len(found["classes"]), found["shares"]
        side = min(max(2.6 + 0.42 * count, 4.4), 11.0)
        (ax,) = _axes(ax, side + 0.4, side)
        # Right ones blue, wrong ones vermillion, the stronger the more of the class they are.
        colours = np.where(np.eye(count, dtype=bool)[..., None], to_rgb("#0072b2"), to_rgb("#d55e00"))
        strength = np.where(found["counts"] > 0, 0.06 + 0.79 * shares, 0.0)
        ax.imshow(1 - strength[..., None] * (1 - colours))
        size = 10 if count <= 10 else 7
        for i in range(count):
            for j in range(count):
                number = found["counts"][i, j]
                if number > 0 or count <= 10:
                    text = f"{number}\n{100 * shares[i, j]:.1f} %" if count <= 6 else f"{number}"
                    ink = "white" if strength[i, j] > 0.55 else INK
                    ax.text(j, i, text, ha="center", va="center", color=ink, fontsize=size)
        names = [_short(name) for name in found["classes"]]
        turned = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 6 else {}
        ax.set_xticks(range(count), names, **turned)
        ax.set_yticks(range(count), names)
        ax.set(xlabel="predicted class", ylabel="true class")
        low, high = found["interval"]
        title = f"{found['rows']} rows, error {100 * found['error']:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        ax.set_title(title, fontsize="medium", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class WaterfallDisplay:
    """Why a row is classified as it is: the path from the decision value of a reference row to that of the row.

    Each bar is the contribution of a column; bars to the right favor the second of the two classes. Create it with
    `from_estimator`.

    Attributes
    ----------
    waterfall : dict
        The numbers: ``columns`` with their ``values`` in the row and their ``contributions``, the largest first; the
        number of the ``others`` and what these contribute together, ``rest``; ``base``, ``output``, and the two classes
        that it is ``between``.
    ax_, figure_ : matplotlib Axes and Figure
        The axes and the figure of the plot.

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
            The row to compare with; None means the mean of the training rows.
        max_columns : int, default=10
            Maximum number of columns to show individually.
        ax : matplotlib Axes, default=None
            Where to draw. None makes a new figure.

        Returns
        -------
        display : WaterfallDisplay
            The plot.
        """
        row = _checked(estimator)._rows(X)
        other = None if reference is None else estimator._rows(reference)
        for name, rows in (("X", row), ("reference", other)):
            if rows is not None and len(rows) != 1:
                raise ValueError(f"{name} must be a single row, such as X.iloc[[7]] or X[[7]], but {len(rows)} were given")
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
