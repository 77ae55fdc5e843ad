"""Pictures: what they show, and that matplotlib is only there when something is drawn."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from svml import (
    ITML,
    LMNN,
    NCA,
    SVML,
    MapDisplay,
    MetricDisplay,
    RelevanceDisplay,
    ReliabilityDisplay,
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
    assert trace.trace["best"] == model.best_iter_
    assert trace.trace["stages"][-1][2] == len(trace.trace["loss"]) - 1
    metric = drawn(MetricDisplay.from_estimator(model))
    np.testing.assert_allclose(np.diag(metric.matrix), model.feature_importances_)
    relevance = drawn(RelevanceDisplay.from_estimator(model))
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
    assert found["event"] == "class 1" and len(display.axes_) == 2
    assert found["rows"] @ found["observed"] == pytest.approx(y[1::2].sum())
    assert found["rows"] @ found["predicted"] == pytest.approx(p.sum())
    assert (found["low"] <= found["predicted"]).mean() > 0.5
    several = drawn(ReliabilityDisplay.from_estimator(SVMLClassifier().fit(*wine), *wine))
    assert "predicted class" in several.reliability["event"]
    with pytest.raises(RuntimeError, match="cannot classify them; use SVMLClassifier"):
        ReliabilityDisplay.from_estimator(NCA().fit(*wine), *wine)
    with pytest.raises(ValueError, match="labels were given for"):
        ReliabilityDisplay.from_estimator(model, X, y[1:])


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
