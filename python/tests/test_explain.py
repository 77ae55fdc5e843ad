"""Why rows are classified as they are: contributions, training rows that are alike, the waterfall."""

import os
import subprocess

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

import svml
from svml import SVMLClassifier, WaterfallDisplay

COMMAND = os.environ.get("SVML_COMMAND")


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    return SVMLClassifier().fit(X[::2], y[::2]), X, y


def mixed(rows=200):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=rows),
            "colour": rng.choice(["red", "green", "blue"], rows),
            "noise": rng.normal(size=rows),
        }
    )
    y = np.where((frame["size"] > 0) ^ (frame["colour"] == "red"), "yes", "no")
    return frame, y


def test_contributions_add_up(cancer):
    model, X, _ = cancer
    why = model.explain(X[:20])
    assert why.columns == list(X.columns)
    assert why.contributions.shape == (20, 30)
    assert np.allclose(why.base + why.contributions.sum(axis=1), why.output, atol=1e-9)
    assert np.allclose(why.output, model.decision_function(X[:20]), atol=1e-12)
    assert np.allclose(why.base, model.decision_function(pd.DataFrame([model.mean_], columns=X.columns)), atol=1e-9)
    assert why.between.tolist() == [["benign", "malignant"]] * 20


def test_a_text_column_is_one_column_and_a_reference_may_be_given():
    frame, y = mixed()
    model = SVMLClassifier().fit(frame, y)
    why = model.explain(frame[:10], reference=frame[10:11])
    assert why.columns == ["size", "colour", "noise"]
    assert np.allclose(why.base, model.decision_function(frame[10:11])[0], atol=1e-9)
    assert np.allclose(why.base + why.contributions.sum(axis=1), model.decision_function(frame[:10]), atol=1e-9)
    assert why.data[:, 1].tolist() == frame["colour"][:10].tolist()
    # A column that is the same in both rows contributes nothing.
    same = (frame["colour"][:10] == frame["colour"][10]).to_numpy()
    assert same.any() and np.all(why.contributions[same, 1] == 0)
    with pytest.raises(ValueError, match="a single row"):
        model.explain(frame, reference=frame[:2])


def test_several_classes():
    X, y = load_wine(return_X_y=True)
    model = SVMLClassifier().fit(X, y)
    why = model.explain(X)
    assert np.array_equal(why.between[:, 1], model.predict(X))
    assert np.all(why.between[:, 0] != why.between[:, 1])
    assert np.allclose(why.base + why.contributions.sum(axis=1), why.output, atol=1e-9)


def test_a_shap_explanation(cancer):
    shap = pytest.importorskip("shap")
    model, X, _ = cancer
    why = model.explain(X[:5])
    theirs = why.to_shap()
    assert isinstance(theirs, shap.Explanation)
    assert np.array_equal(theirs.values, why.contributions)
    assert theirs.feature_names == why.columns


def test_rows_that_are_alike(cancer, tmp_path):
    model, X, y = cancer
    with pytest.raises(ValueError, match="keep_rows"):
        model.alike(X[:1])
    before = len(model._model.to_bytes())
    kept = SVMLClassifier().fit(X[::2], y[::2]).keep_rows(X[::2], y[::2])
    alike = kept.alike(X[:6:2], n_neighbors=4)
    # A training row is most like itself.
    assert alike.rows[:, 0].tolist() == [0, 1, 2]
    assert np.all(alike.distances[:, 0] == 0)
    assert np.all(np.diff(alike.distances, axis=1) >= 0)
    assert alike.classes[:, 0].tolist() == y[:6:2].tolist()
    z, train = kept.transform(X[:6:2]), kept.transform(X[::2])
    distances = np.linalg.norm(z[:, None] - train[None], axis=2)
    assert np.allclose(np.sort(distances, axis=1)[:, :4], alike.distances)
    # All pulls and the offsets are the decision.
    all_pulls = kept.alike(X[1:4:2], n_neighbors=len(X[::2])).pulls
    differences = np.diff(all_pulls.sum(axis=1) - kept.decision_function(X[1:4:2]))
    assert np.allclose(differences, 0, atol=1e-9)
    assert set(np.flatnonzero(all_pulls[0])) <= set(range(len(X[::2])))
    # They are part of the file.
    path = tmp_path / "kept.svml"
    kept.save(path)
    assert path.stat().st_size > before + 8 * X[::2].size
    again = svml.load(path)
    assert np.array_equal(again.alike(X[:6:2], n_neighbors=4).rows, alike.rows)
    with pytest.raises(ValueError, match="expected 285|training rows to keep"):
        kept.keep_rows(X, y)
    with pytest.raises(ValueError, match="not fitted on"):
        kept.keep_rows(X[::2], ["other"] * len(X[::2]))


@pytest.mark.skipif(COMMAND is None, reason="SVML_COMMAND does not name the command")
def test_the_command_says_the_same(tmp_path):
    frame, y = mixed(120)
    frame.assign(answer=y).to_csv(tmp_path / "train.csv", index=False)

    def run(*args):
        return subprocess.run([COMMAND, *args], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    run("train", "train.csv", "-o", "m.svml", "--keep-rows", "-q")
    run("explain", "m.svml", "train.csv", "-o", "why.csv")
    table = pd.read_csv(tmp_path / "why.csv")
    model = svml.load(tmp_path / "m.svml")
    why = model.explain(frame)
    assert list(table.columns) == ["answer", "against", "decision", "reference", "size", "colour", "noise"]
    assert np.allclose(table[["size", "colour", "noise"]].to_numpy(), why.contributions, atol=1e-12)
    assert model.alike(frame[:1]).rows[0, 0] == 0
    page = run("explain", "m.svml", "train.csv", "--row", "1")
    assert "Most similar training rows" in page and "colour" in page


def test_the_waterfall(cancer):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    model, X, _ = cancer
    display = WaterfallDisplay.from_estimator(model, X.iloc[[3]], max_columns=6)
    found = display.waterfall
    assert found["others"] == 24
    total = found["base"] + found["contributions"].sum() + found["rest"]
    assert np.isclose(total, found["output"])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels[0] == "reference row" and labels[-1] == "this row" and len(labels) == 9
    with pytest.raises(ValueError, match="a single row"):
        WaterfallDisplay.from_estimator(model, X)
