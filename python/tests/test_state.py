"""The state of an estimator is its model file, and the file is that of the command."""

import copy
import csv
import io
import json
import os
import pickle
import shutil
import stat
import subprocess
import sys

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

import svml
from svml import ITML, LMNN, NCA, SVML, SVMLClassifier

ALL = [SVMLClassifier, SVML, NCA, LMNN, ITML]


def joblib_copy(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return joblib.load(file)


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "pickle-2": lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    "cloudpickle": lambda model: cloudpickle.loads(cloudpickle.dumps(model)),
    "joblib": joblib_copy,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("way", COPIES)
def test_copies(estimator, way, wine_frame):
    X, y = wine_frame
    model = estimator().fit(X, y.map({0: "a", 1: "b", 2: "c"}))
    other = COPIES[way](model)
    assert other._model.to_bytes() == model._model.to_bytes()
    assert other.get_params() == model.get_params()
    np.testing.assert_array_equal(other.classes_, model.classes_)
    np.testing.assert_array_equal(other.feature_names_in_, model.feature_names_in_)
    np.testing.assert_array_equal(other.transform(X), model.transform(X))
    if estimator is SVMLClassifier:
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("estimator", ALL)
def test_the_state_is_the_file(estimator, small, tmp_path):
    model = estimator().fit(*small)
    model.save(tmp_path / "model.svml")
    assert (tmp_path / "model.svml").read_bytes() == model._model.to_bytes()
    assert model._model.__reduce__()[1] == (model._model.to_bytes(),)


def test_an_unfitted_estimator_is_copied_too():
    for estimator in ALL:
        for way in COPIES.values():
            assert way(estimator(max_iter=3)).get_params() == estimator(max_iter=3).get_params()


@pytest.mark.parametrize(
    "model",
    [
        SVMLClassifier(),
        SVMLClassifier(form="low_rank", n_components=2, class_weight={1: 2.0, 2: 3.0}, random_state=4),
        SVMLClassifier(regularization=0.1, tol=0.02),
        SVMLClassifier(form="diagonal", kernel="laplacian", cross_fit=False),
        SVMLClassifier(class_weight="balanced", validation="hold_out", solver="cg", learn_C=False, C_init=2.0),
        NCA(n_components=3, init="identity"),
        SVML(validation="loo", init="gradients", form="diagonal"),
        LMNN(n_neighbors=2),
        ITML(gamma=2.0, n_constraints=90, bounds=(1.0, 9.0)),
    ],
)
def test_load_knows_the_parameters_and_fits_the_same_again(model, wine, tmp_path):
    X, y = wine
    model.fit(X, y).save(tmp_path / "model.svml")
    loaded = svml.load(str(tmp_path / "model.svml"))
    assert type(loaded) is (SVMLClassifier if isinstance(model, SVML) else type(model))
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    again = loaded.fit(X, y)
    assert again._model.to_bytes() == model._model.to_bytes()


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        ([0, 1], [0, 1]),
        ([-1.0, 1.0], [-1, 1]),
        (["no", "yes"], ["no", "yes"]),
        (["10", "9"], ["10", "9"]),
        ([False, True], ["False", "True"]),
    ],
)
def test_labels_of_a_file(labels, read, small, tmp_path):
    X, y = small
    SVMLClassifier().fit(X, np.array(labels)[y]).save(tmp_path / "model.svml")
    loaded = svml.load(tmp_path / "model.svml")
    assert loaded.classes_.tolist() == read
    assert set(loaded.predict(X)) == set(read)


def test_a_transformer_reads_a_classifier(wine, tmp_path):
    model = SVMLClassifier().fit(*wine)
    model.save(tmp_path / "model.svml")
    transformer = SVML.load(tmp_path / "model.svml")
    assert type(transformer) is SVML and not hasattr(transformer, "predict")
    np.testing.assert_array_equal(transformer.transform(wine[0]), model.transform(wine[0]))
    NCA().fit(*wine).save(tmp_path / "metric.svml")
    with pytest.raises(ValueError, match="without a classifier"):
        SVML.load(tmp_path / "metric.svml")


@pytest.mark.skipif(sys.platform == "win32", reason="links and permissions of Unix")
def test_what_stands_at_the_path_is_kept(tmp_path, small):
    """By the rules of the command: links are followed, devices are not replaced, what is read-only stays."""
    X, y = small
    model = SVMLClassifier(form="sphere").fit(X, y)
    writes = [model.save, lambda path: model.export(path, "c"), lambda path: model.report(X, y, path)]
    for write in writes:
        file, link = tmp_path / "file", tmp_path / "link"
        file.write_text("old")
        file.chmod(0o640)
        link.symlink_to(file)
        write(link)
        assert link.is_symlink()
        assert file.stat().st_mode & 0o777 == 0o640
        assert len(file.read_bytes()) > 1000
        file.write_text("old")
        file.chmod(0o444)
        with pytest.raises(PermissionError, match="read-only"):
            write(file)
        assert file.read_text() == "old"
        (tmp_path / "nothing").symlink_to(tmp_path / "gone")
        with pytest.raises(OSError, match="does not exist"):
            write(tmp_path / "nothing")
        with pytest.raises(IsADirectoryError):
            write(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link", "nothing"]
        # A device like /dev/null, which only the superuser can make, and which only the superuser can lose.
        try:
            os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except OSError:
            pass
        else:
            write(tmp_path / "null")
            assert stat.S_ISCHR((tmp_path / "null").stat().st_mode)
        for path in tmp_path.iterdir():
            path.unlink()


def test_files_that_are_none(tmp_path, wine):
    with pytest.raises(FileNotFoundError) as raised:
        svml.load(tmp_path / "nothing.svml")
    assert raised.value.filename == str(tmp_path / "nothing.svml")
    bad = tmp_path / "bad.svml"
    bad.write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match="does not begin like a model"):
        svml.load(bad)
    model = SVMLClassifier().fit(*wine)
    data = bytearray(model._model.to_bytes())
    data[len(data) // 2] ^= 1
    bad.write_bytes(data)
    with pytest.raises(ValueError, match="checksum"):
        svml.load(bad)
    with pytest.raises(OSError):
        model.save(tmp_path / "no such folder" / "model.svml")


COMMAND = os.environ.get("SVML_COMMAND") or shutil.which("svml")
needs_command = pytest.mark.skipif(COMMAND is None, reason="the command svml is not there; set SVML_COMMAND")
SETS = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}


def run(*args):
    done = subprocess.run([COMMAND, *map(str, args)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def frame_of(text):
    """A table of numbers, each read to its last bit."""
    names, *rows = csv.reader(io.StringIO(text))
    return pd.DataFrame([[float(cell) for cell in row] for row in rows], columns=names)


def table(name, folder):
    """A data set as a table in a file, and as the file gives it back."""
    frame = SETS[name](as_frame=True).frame.rename(columns={"target": "class"})
    if name == "digits":
        frame = frame.iloc[::3]
    file = folder / f"{name}.csv"
    frame.to_csv(file, index=False)
    read = frame_of(file.read_text())
    return file, read.drop(columns="class"), read["class"].astype(int)


@needs_command
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    ("options", "params"),
    [
        ([], {}),
        (["--form", "rank=2", "--seed", "3"], {"form": "low_rank", "n_components": 2, "random_state": 3}),
        (["--form", "diagonal", "--kernel", "exponential"], {"form": "diagonal", "kernel": "exponential"}),
        (
            ["--criterion", "hold_out", "--form", "diagonal", "--class-weight", "balanced"],
            {"validation": "hold_out", "form": "diagonal", "class_weight": "balanced"},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:column .* is constant")
def test_the_same_model_as_the_command_bit_for_bit(name, options, params, tmp_path):
    file, X, y = table(name, tmp_path)
    theirs, ours = tmp_path / "theirs.svml", tmp_path / "ours.svml"
    run("train", file, "-o", theirs, "--quiet", *options)
    model = SVMLClassifier(**params).fit(X, y)
    model.save(ours)
    assert ours.read_bytes() == theirs.read_bytes()
    # And what is made of it.
    text = run("predict", theirs, file, "--decision", "--probabilities")
    answers = frame_of(text).to_numpy()
    loaded = svml.load(theirs)
    for one in (model, loaded):
        decision = one.decision_function(X).reshape(len(X), -1)
        np.testing.assert_array_equal(answers[:, 0], one.predict(X))
        np.testing.assert_array_equal(answers[:, 1 : 1 + decision.shape[1]], decision)
        np.testing.assert_array_equal(answers[:, 1 + decision.shape[1] :], one.predict_proba(X))
    text = run("transform", theirs, file)
    mapped = frame_of(text).drop(columns="class")
    np.testing.assert_array_equal(mapped.to_numpy(), model.transform(X))
    shown = json.loads(run("show", theirs, "--json"))
    # C_ is a number for one SVM and an array for several; the command has null for these, and lists them.
    assert shown["cost"] == (None if len(model.members_) > 1 else model.C_)
    assert [member["cost"] for member in shown["members"]] == np.atleast_1d(model.C_).tolist()
    for key in ("kernel", "weight"):
        assert [member[key] for member in shown["members"]] == [member[key] for member in model.members_]
    assert shown["honest"]["error"] == model.honest_error_
    assert shown["honest"]["log_loss"] == model.honest_log_loss_
    relevance = {entry["feature"]: entry["relevance"] for entry in shown["relevance"]}
    assert [relevance[name] for name in X.columns] == model.feature_importances_.tolist()
    for key, values in zip(("low", "high"), model.feature_importances_spread_):
        spread = {entry["feature"]: entry[key] for entry in shown["relevance"]}
        assert [spread[name] for name in X.columns] == values.tolist()
    assert [step["loss"] for step in shown["steps"]] == model.trace_["loss"].tolist()
    assert [step.get("half", False) for step in shown["steps"]] == model.trace_["half"].tolist()


@needs_command
@pytest.mark.parametrize("estimator", [NCA, LMNN, ITML])
def test_the_command_reads_a_metric_alone(estimator, tmp_path):
    file, X, y = table("wine", tmp_path)
    model = estimator().fit(X, y)
    model.save(tmp_path / "metric.svml")
    text = run("transform", tmp_path / "metric.svml", file)
    mapped = frame_of(text).drop(columns="class")
    np.testing.assert_array_equal(mapped.to_numpy(), model.transform(X))
    assert "cannot classify" in run("show", tmp_path / "metric.svml")
    refused = subprocess.run(
        [COMMAND, "predict", tmp_path / "metric.svml", file], capture_output=True, text=True
    )
    assert refused.returncode == 3 and "cannot classify" in refused.stderr


@needs_command
def test_the_other_learners_learn_what_the_command_learns_before_its_grid(tmp_path):
    file, X, y = table("wine", tmp_path)
    for estimator, name in ((NCA, "nca"), (LMNN, "lmnn"), (ITML, "itml")):
        run("train", file, "-o", tmp_path / "theirs.svml", "--quiet", "--method", name)
        theirs, ours = svml.load(tmp_path / "theirs.svml"), estimator().fit(X, y)
        # The command scales the metric for its SVM.
        scale = theirs.components_[0, 0] / ours.components_[0, 0]
        np.testing.assert_allclose(theirs.components_, scale * ours.components_, rtol=1e-12)


@needs_command
def test_a_table_with_text_and_gaps(tmp_path):
    """A model of the command takes the table as it is, with its texts and missing values."""
    rows = [f"{k % 7},{'red' if k % 3 else 'blue'},{'?' if k % 11 == 0 else k},{k % 2}" for k in range(60)]
    file = tmp_path / "table.csv"
    file.write_text("size,colour,count,class\n" + "\n".join(rows))
    run(
        "train", file, "-o", tmp_path / "m.svml", "--quiet", "--missing", "impute", "--categories", "onehot"
    )
    model = svml.load(tmp_path / "m.svml")
    assert list(model.feature_names_in_) == ["size", "colour", "count"]
    assert list(model.encoded_feature_names_) == ["size", "colour=blue", "colour=red", "count"]
    answers = pd.read_csv(io.StringIO(run("predict", tmp_path / "m.svml", file, "--decision")))
    for frame in (pd.read_csv(file), pd.read_csv(file, na_values="?")):
        np.testing.assert_allclose(model.decision_function(frame), answers["decision"], rtol=1e-12)


@needs_command
def test_any_model_of_the_command_is_read(tmp_path):
    file, X, y = table("wine", tmp_path)
    for method in ("euclidean", "nca:rank=2", "nca:rank=2+knn:k=5", "knn", "fixed:gamma=0.01"):
        run("train", file, "-o", tmp_path / "m.svml", "--quiet", "--method", method)
        model = svml.load(tmp_path / "m.svml")
        assert type(model) is SVMLClassifier and model.get_params() == SVMLClassifier().get_params()
        answers = frame_of(run("predict", tmp_path / "m.svml", file, "--decision", "--probabilities")).to_numpy()
        np.testing.assert_array_equal(answers[:, 0], model.predict(X))
        np.testing.assert_array_equal(answers[:, 1:4], model.decision_function(X))
        np.testing.assert_array_equal(answers[:, 4:], model.predict_proba(X))
        assert hasattr(model, "C_") == ("knn" not in method)
        assert hasattr(model, "dual_coef_") == hasattr(model, "C_") and model.honest_error_ is None
        assert len(model.members_) == hasattr(model, "C_")
        assert model.stop_reason_ is None or method.startswith("nca")
    for method, kind in (("svml+none", SVML), ("nca:rank=2+none", NCA), ("itml+none", ITML)):
        run("train", file, "-o", tmp_path / "m.svml", "--quiet", "--method", method)
        model = svml.load(tmp_path / "m.svml")
        assert type(model) is kind and not hasattr(model, "predict")
        mapped = frame_of(run("transform", tmp_path / "m.svml", file)).drop(columns="class")
        np.testing.assert_array_equal(mapped.to_numpy(), model.transform(X))
    run("train", file, "-o", tmp_path / "m.svml", "--quiet", "--method", "pca:rank=2+none")
    with pytest.raises(ValueError, match="'pca', for which there is no estimator"):
        svml.load(tmp_path / "m.svml")
