"""Pictures: what they show, and that matplotlib is only there when something is drawn."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.pipeline import make_pipeline

from svml import (
    ITML,
    LMNN,
    NCA,
    SVML,
    ConfusionDisplay,
    MapDisplay,
    MetricDisplay,
    PrecisionRecallDisplay,
    RelevanceDisplay,
    ReliabilityDisplay,
    RocDisplay,
    SVMLClassifier,
    TraceDisplay,
)

ALL = [SVMLClassifier, SVML, NCA, LMNN, ITML]


@pytest.fixture(autouse=True)
def closed(request):
    """Pictures are closed; with SVML_PICTURES set to a folder they are kept there to be looked at."""
    yield
    folder = os.environ.get("SVML_PICTURES")
    for number in plt.get_fignums():
        if folder:
            name = request.node.name.replace("/", "_")
            plt.figure(number).savefig(Path(folder) / f"{name}-{number}.png", dpi=80)
    plt.close("all")


def drawn(display):
    """Renders the figure, which finds mistakes that only show then."""
    display.figure_.canvas.draw()
    return display


def test_matplotlib_is_not_imported_before_something_is_drawn():
    code = "import sys, svml; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("estimator", ALL)
def test_all_of_every_estimator(estimator, wine_frame):
    X, y = wine_frame
    model = estimator().fit(X, y)
    display = drawn(MapDisplay.from_estimator(model, X, y))
    assert len(display.map["x"]) == 178 and set(display.map["class"]) == {0, 1, 2}
    has_svm = estimator in (SVMLClassifier, SVML)
    assert (display.map["decided"].size > 0) == has_svm
    assert display.map["support"].sum() == (len(model.support_) if has_svm else 0)
    trace = drawn(TraceDisplay.from_estimator(model))
    assert len(trace.axes_) == (2 if has_svm else 1)
    assert trace.trace["loss"].tolist() == model.trace_["loss"].tolist()
    several = len(getattr(model, "members_", [])) > 1
    assert trace.trace["best"] == (None if several else model.best_iter_)
    assert trace.trace["stages"][-1][2] == len(trace.trace["loss"]) - 1
    metric = drawn(MetricDisplay.from_estimator(model))
    diagonal = np.diag(metric.matrix)
    np.testing.assert_allclose(diagonal / diagonal.sum(), model.feature_importances_)
    assert metric.mean_of == (len(model.members_) if several else 1)
    relevance = drawn(RelevanceDisplay.from_estimator(model))
    order = np.argsort(-model.feature_importances_, kind="stable")
    np.testing.assert_array_equal(relevance.spread, model.feature_importances_spread_[:, order])
    assert list(relevance.relevance) == sorted(model.feature_importances_, reverse=True)
    assert relevance.names[0] == X.columns[model.feature_importances_.argmax()]


def test_the_map_of_rank_two_is_the_decision_itself(cancer):
    X, y = cancer
    model = SVMLClassifier(form="low_rank", n_components=2).fit(X, y)
    display = drawn(MapDisplay.from_estimator(model, X, y))
    map_ = display.map
    assert map_["exact"]
    # Between the points of the grid the decision is nearly linear.
    rows, columns = map_["decision"].shape
    h = model.decision_function(X)
    (x0, x1), (y0, y1) = map_["x_range"], map_["y_range"]
    c = (map_["x"] - x0) / (x1 - x0) * (columns - 1)
    r = (map_["y"] - y0) / (y1 - y0) * (rows - 1)
    inside = (c >= 0) & (c < columns - 1) & (r >= 0) & (r < rows - 1)
    assert inside.sum() > 500
    i, j = r[inside].astype(int), c[inside].astype(int)
    a, b = r[inside] - i, c[inside] - j
    d = map_["decision"]
    between = (1 - a) * ((1 - b) * d[i, j] + b * d[i, j + 1]) + a * ((1 - b) * d[i + 1, j] + b * d[i + 1, j + 1])
    assert np.abs(between - h[inside]).max() < 0.05
    # Places on the map are those of the transformed rows, up to a rotation.
    Z = model.transform(X)
    places = np.column_stack([map_["x"], map_["y"]])
    for k in range(0, 500, 50):
        assert np.linalg.norm(places[k] - places[k + 1]) == pytest.approx(np.linalg.norm(Z[k] - Z[k + 1]))


def test_pictures_of_a_mean(cancer):
    X, y = cancer
    # With this seed the mean has a member that weighs features.
    model = SVMLClassifier(random_state=1).fit(X, y)
    assert len(model.members_) > 1
    display = drawn(TraceDisplay.from_estimator(model))
    stages = display.trace["stages"]
    names = [name for name, _, _ in stages]
    halves = ["gaussian sphere, on a half", "exponential diagonal, on a half", "laplacian sphere, on a half"]
    used = {f"{m['kernel']} {m['form']}": m["weight"] for m in model.members_}
    # On a half, which no weight belongs to, and then on all rows.
    assert names == halves + list(used)
    assert display.trace["weights"].tolist() == [0] * 3 + list(used.values())
    half = model.trace_["half"]
    assert all((half[first : last + 1] == (place < 3)).all() for place, (_, first, last) in enumerate(stages))
    texts = [text.get_text() for text in display.axes_[0].texts]
    assert texts[0] == "gaussian\nsphere\non a half" and not any("kept" in text for text in texts)
    assert not any("not used" in text for text in texts)
    assert [text.split("weight ")[1] for text in texts[3:]] == [f"{weight:.2f}" for weight in used.values()]
    relevance = drawn(RelevanceDisplay.from_estimator(model))
    assert "from the smallest to the largest" in relevance.ax_.get_xlabel()
    assert (relevance.spread[0] < relevance.spread[1]).any()
    alone = drawn(RelevanceDisplay(np.array([0.7, 0.3]), names=["a", "b"], n_features=2).plot())
    assert "from the smallest" not in alone.ax_.get_xlabel()
    map_ = drawn(MapDisplay.from_estimator(model, X, y)).map
    # Averaged over the other directions, the decision is still that of most rows.
    rows, columns = map_["decided"].shape
    (x0, x1), (y0, y1) = map_["x_range"], map_["y_range"]
    c = ((map_["x"] - x0) / (x1 - x0) * (columns - 1)).round().astype(int).clip(0, columns - 1)
    r = ((map_["y"] - y0) / (y1 - y0) * (rows - 1)).round().astype(int).clip(0, rows - 1)
    assert (map_["decided"][r, c] == y).mean() > 0.85
    title = drawn(MetricDisplay.from_estimator(model)).ax_.get_title("left")
    assert f"mean of {len(model.members_)} SVMs" in title


def assert_apart(display):
    """No label of a stage is drawn over another, or past the ends of the axes."""
    ax = drawn(display).axes_[0]
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == len(display.trace["stages"])
    assert all(a.x1 < b.x0 for a, b in zip(boxes, boxes[1:]))
    frame = ax.get_window_extent()
    assert frame.x0 - 1 < boxes[0].x0 and boxes[-1].x1 < frame.x1 + 1


def test_names_of_stages_do_not_meet(wine):
    model = SVMLClassifier().fit(*wine)
    display = TraceDisplay.from_estimator(model)
    assert len(display.trace["stages"]) > 3
    assert_apart(display)
    limits = display.axes_[0].get_xlim()
    # Even if all but one have a single step, wherever the long one is, and on axes that are half as wide.
    for place in range(6):
        lengths = [30 if place == k else 1 for k in range(6)]
        firsts = np.cumsum([0, *lengths])
        names = ["exponential diagonal, on a half"] * 3 + ["exponential diagonal"] * 3
        stages = [(name, first, after - 1) for name, first, after in zip(names, firsts, firsts[1:])]
        loss = np.ones(firsts[-1])
        numbers = {"loss": loss, "errors": {"training rows": loss}, "stages": stages, "best": None, "stop": None}
        numbers["weights"] = np.array([0, 0, 0, 0.3, 0.3, 0.4])
        assert_apart(TraceDisplay(numbers).plot())
        _, axes = plt.subplots(2, 2)
        assert_apart(TraceDisplay(numbers).plot(ax=axes[:, 1]))
    # On a part of a figure, too.
    for layout in ("constrained", "tight", None):
        _, part = plt.figure(figsize=(12, 5), layout=layout).subfigures(1, 2)
        drawn(TraceDisplay.from_estimator(model, ax=part.subplots(2, 1)))
    # Labels that had to move do not move the steps.
    _, axes = plt.subplots(2, 2)
    assert TraceDisplay.from_estimator(model, ax=axes[:, 1]).axes_[0].get_xlim() == limits


def test_awkward_maps(wine, small):
    X, y = wine
    model = SVMLClassifier(form="low_rank", n_components=1).fit(X, y)
    display = drawn(MapDisplay.from_estimator(model, X))
    assert display.map["flat"] and set(display.map["class"]) == {-1}
    drawn(MapDisplay.from_estimator(model, X, np.full(len(X), 9)))
    one = SVMLClassifier().fit(small[0][:, :1], small[1])
    drawn(MapDisplay.from_estimator(one, small[0][:, :1], small[1]))
    three = SVMLClassifier(form="low_rank", n_components=3).fit(X, y)
    drawn(MapDisplay.from_estimator(three, X, y, directions=(1, 2)))
    with pytest.raises(ValueError, match="labels were given for"):
        MapDisplay.from_estimator(three, X, y[1:])


def test_probabilities_and_shares(cancer, wine):
    X, y = cancer
    model = SVMLClassifier().fit(X[::2], y[::2])
    display = drawn(ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2]))
    found = display.reliability
    p = model.predict_proba(X[1::2])[:, 1]
    np.testing.assert_array_equal(found["counts"], np.histogram(p, bins=10, range=(0, 1))[0])
    assert found["event"] == "predicted probability of 1" and len(display.axes_) == 2
    # Bins of equal count, by the order of the probabilities.
    assert found["rows"].min() >= 20 and found["rows"].max() - found["rows"].min() <= 1
    order, start = np.argsort(p, kind="stable"), 0
    for place, rows in enumerate(found["rows"]):
        own = order[start : start + rows]
        assert found["predicted"][place] == pytest.approx(p[own].mean())
        assert found["observed"][place] == pytest.approx(y[1::2][own].mean())
        start += rows
    apart = found["rows"] @ np.abs(found["predicted"] - found["observed"]) / found["rows"].sum()
    assert found["calibration_error"] == pytest.approx(apart)
    assert f"calibration error {100 * apart:.1f} %" in display.axes_[0].get_title("left")
    assert (found["low"] <= found["predicted"]).mean() > 0.5
    first = drawn(ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], pos_label=0)).reliability
    assert first["event"] == "predicted probability of 0"
    np.testing.assert_allclose(first["observed"], 1 - found["observed"][::-1])
    several = drawn(ReliabilityDisplay.from_estimator(SVMLClassifier().fit(*wine), *wine))
    assert "predicted class" in several.reliability["event"]
    with pytest.raises(RuntimeError, match="cannot classify them; use SVMLClassifier"):
        ReliabilityDisplay.from_estimator(NCA().fit(*wine), *wine)
    with pytest.raises(ValueError, match="labels were given for"):
        ReliabilityDisplay.from_estimator(model, X, y[1:])
    with pytest.raises(ValueError, match="one of the classes of the model: 0, 1"):
        ReliabilityDisplay.from_estimator(model, X, y, pos_label=7)


def test_curves_are_those_of_scikit_learn(cancer, wine):
    X, y = cancer
    model = SVMLClassifier().fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    p = model.predict_proba(X)
    for label in (None, 0):
        place = 1 if label is None else label
        (curve,) = drawn(RocDisplay.from_estimator(model, X, y, pos_label=label)).roc["curves"]
        false, true, thresholds = metrics.roc_curve(y == place, p[:, place], drop_intermediate=False)
        np.testing.assert_allclose(curve["false_positive_rate"], false)
        np.testing.assert_allclose(curve["true_positive_rate"], true)
        np.testing.assert_allclose(curve["thresholds"], thresholds)
        assert curve["class"] == str(place)
        assert curve["auc"] == pytest.approx(metrics.roc_auc_score(y == place, p[:, place]))
        assert curve["interval"][0] < curve["auc"] < curve["interval"][1]
        display = drawn(PrecisionRecallDisplay.from_estimator(model, X, y, pos_label=label))
        (curve,) = display.precision_recall["curves"]
        precision, recall, _ = metrics.precision_recall_curve(y == place, p[:, place])
        # scikit-learn has ascending thresholds, and a last point of recall 0.
        np.testing.assert_allclose(curve["precision"], precision[-2::-1])
        np.testing.assert_allclose(curve["recall"], recall[-2::-1])
        assert curve["average_precision"] == pytest.approx(metrics.average_precision_score(y == place, p[:, place]))
        assert curve["base_rate"] == pytest.approx((y == place).mean())
    X, y = wine
    model = SVMLClassifier().fit(X[::2], y[::2])
    p = model.predict_proba(X[1::2])
    curves = drawn(RocDisplay.from_estimator(model, X[1::2], y[1::2])).roc["curves"]
    auc = [metrics.roc_auc_score(y[1::2] == place, p[:, place]) for place in range(3)]
    assert [curve["auc"] for curve in curves] == pytest.approx(auc)
    drawn(PrecisionRecallDisplay.from_estimator(model, X[1::2], y[1::2]))
    with pytest.raises(ValueError, match="every row belongs to the class 1"):
        RocDisplay.from_estimator(model, X[y == 1], y[y == 1], pos_label=1)


def test_the_confusion_matrix_is_that_of_scikit_learn(wine):
    X, y = wine
    model = SVMLClassifier(form="sphere").fit(X[::3, :3], y[::3])
    display = drawn(ConfusionDisplay.from_estimator(model, X[1::3, :3], y[1::3]))
    expected = metrics.confusion_matrix(y[1::3], model.predict(X[1::3, :3]))
    np.testing.assert_array_equal(display.confusion["counts"], expected)
    np.testing.assert_allclose(display.confusion["shares"], expected / expected.sum(axis=1, keepdims=True))
    assert display.confusion["error"] == pytest.approx(1 - np.trace(expected) / expected.sum())
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts[0] == f"{expected[0, 0]}\n{100 * expected[0, 0] / expected[0].sum():.1f} %"


def test_twenty_classes_and_long_names():
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.repeat(np.arange(20), 15) / 20
    X = np.column_stack([np.cos(angle), np.sin(angle), rng.normal(size=300), rng.normal(size=300)])
    X[:, :2] += 0.04 * rng.normal(size=(300, 2))
    names = [f"a column whose name is rather long, number {k}" for k in range(4)]
    X = pd.DataFrame(X, columns=names)
    y = np.array([f"class {k:02}" for k in range(20)])[np.repeat(np.arange(20), 15)]
    model = SVMLClassifier(form="diagonal").fit(X, y)
    display = drawn(MapDisplay.from_estimator(model, X, y))
    ax = display.ax_
    looks = set()
    for points in ax.collections:
        if points.get_label().startswith("class "):
            path = points.get_paths()[0].vertices
            looks.add((path.shape, path.round(3).tobytes(), *map(tuple, (*points.get_facecolor(), *points.get_edgecolor()))))
    assert len(looks) == 20
    assert "boundary" in [text.get_text() for text in ax.get_legend().get_texts()]
    # All that is drawn lies within the figure.
    width, height = display.figure_.canvas.get_width_height()
    for text in (ax.xaxis.label, ax.yaxis.label, ax.get_legend(), ax.title, ax._left_title):
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width + 1 and box.y1 <= height + 1, text


def test_a_diagonal_metric_is_drawn_as_bars(cancer):
    X, y = cancer
    display = drawn(MetricDisplay.from_estimator(SVMLClassifier(form="diagonal").fit(X, y)))
    assert "M is diagonal" in display.ax_.get_title("left")
    bars = [bar.get_width() for bar in display.ax_.patches]
    assert bars == sorted(np.diag(display.matrix), reverse=True)
    assert not drawn(MetricDisplay.from_estimator(NCA().fit(X, y))).ax_.patches


def test_axes_of_the_caller(cancer):
    model = SVMLClassifier().fit(*cancer)
    figure, axes = plt.subplots(2, 2)
    assert MapDisplay.from_estimator(model, *cancer, ax=axes[0, 0]).ax_ is axes[0, 0]
    assert list(TraceDisplay.from_estimator(model, ax=axes[:, 1]).axes_) == list(axes[:, 1])
    display = RelevanceDisplay.from_estimator(model, max_features=3, ax=axes[1, 0])
    assert len(display.names) == 3 and display.figure_ is figure
    assert drawn(display.plot()).ax_ is not axes[1, 0]
    with pytest.raises(ValueError, match="1 axes were given where 2 are needed"):
        TraceDisplay.from_estimator(model, ax=axes[0, 0])


def test_only_estimators_of_this_package(wine):
    pipeline = make_pipeline(NCA(2), SVMLClassifier()).fit(*wine)
    with pytest.raises(TypeError, match="of a pipeline take the step"):
        TraceDisplay.from_estimator(pipeline)
    drawn(TraceDisplay.from_estimator(pipeline[-1]))
    with pytest.raises(ValueError, match="not fitted"):
        MetricDisplay.from_estimator(SVML())
