"""Models for other programs: the ONNX graph in onnxruntime, C and JavaScript and LIBSVM's file by what `export` writes."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.datasets import make_blobs, make_classification

import svml
from svml import ITML, LMNN, NCA, SVML, SVMLClassifier

PAGE = Path(__file__).resolve().parents[2] / "docs" / "deploy.md"
COMMAND = os.environ.get("SVML_COMMAND") or shutil.which("svml")


def session(path):
    """The graph in onnxruntime, after the checks of ONNX, which infer every shape."""
    onnx.checker.check_model(str(path), full_check=True)
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def answers(graph, X):
    names = [output.name for output in graph.get_outputs()]
    return dict(zip(names, graph.run(None, {"x": np.asarray(X, dtype=np.float64)})))


def check(model, X, path):
    """Everything that the graph gives is what the estimator gives, for one row and for all."""
    model.export(path)
    graph = session(path)
    assert [output.name for output in graph.get_outputs()] == ["label", "probabilities", "decision"]
    assert [entry.type for entry in graph.get_inputs()] == ["tensor(double)"]
    for rows in (X, X[:1]):
        found = answers(graph, rows)
        decision = model.decision_function(rows)
        found_decision = found["decision"][:, 0] if len(model.classes_) == 2 else found["decision"]
        np.testing.assert_allclose(found_decision, decision, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(found["label"], model.predict(rows))
    return graph


@pytest.fixture(scope="module", params=[2, 4], ids=lambda k: f"{k} classes")
def rows(request):
    k = request.param
    X, y = make_classification(
        n_samples=1160, n_features=6, n_informative=4, n_classes=k, n_clusters_per_class=1, random_state=k
    )
    # Rows that were learned from are at a distance of 0 from support vectors.
    return X[:160], y[:160], np.concatenate([X[160:1100], X[:60]])


KERNELS = [
    ("gaussian", "sphere"),
    ("gaussian", "diagonal"),
    ("gaussian", "full"),
    ("gaussian", "low_rank"),
    ("exponential", "sphere"),
    ("exponential", "diagonal"),
    ("exponential", "full"),
    ("exponential", "low_rank"),
    ("laplacian", "sphere"),
    ("laplacian", "diagonal"),
]


@pytest.mark.parametrize(("kernel", "form"), KERNELS)
def test_kernels_and_forms(rows, kernel, form, tmp_path):
    X, y, new = rows
    n_components = 2 if form == "low_rank" else None
    model = SVMLClassifier(kernel=kernel, form=form, n_components=n_components, max_iter=20).fit(X, y)
    assert len(new) == 1000
    graph = check(model, new, tmp_path / "model.onnx")
    # Two million values, in 1,000 rows: far ones do not overflow.
    far = answers(graph, new[:3] * 1e200)
    np.testing.assert_allclose(far["probabilities"], model.predict_proba(new[:3] * 1e200), rtol=1e-9)


def test_mean_of_members(rows, tmp_path):
    X, y, new = rows
    model = SVMLClassifier().fit(X, y)
    check(model, new, tmp_path / "model.onnx")


def test_weights_of_classes(rows, tmp_path):
    X, y, new = rows
    # Of the first class one row in five.
    kept = (y > 0) | (np.arange(len(y)) % 5 == 0)
    differs = False
    for weight in ("balanced", {0: 7.0}):
        model = SVMLClassifier(form="diagonal", class_weight=weight).fit(X[kept], y[kept])
        check(model, new, tmp_path / "model.onnx")
        most_probable = model.classes_[model.predict_proba(new).argmax(axis=1)]
        differs |= bool(np.any(most_probable != model.predict(new)))
    # With one of the weights the most probable class is another than the predicted one for some rows.
    assert differs


def test_text_labels_and_metadata(tmp_path):
    X, y = make_blobs(90, centers=3, n_features=3, random_state=0)
    frame = pd.DataFrame(X, columns=["a", 'b"<\nx', "größe"])
    names = np.array(["no\n", "y\"'", "数"])
    model = SVMLClassifier(form="diagonal").fit(frame, names[y])
    path = tmp_path / "model.onnx"
    model.export(path)
    graph = session(path)
    found = answers(graph, X)
    assert list(found["label"]) == list(model.predict(frame))
    meta = graph.get_modelmeta().custom_metadata_map
    assert json.loads(meta["features"]) == list(frame.columns)
    assert json.loads(meta["classes"]) == list(model.classes_)


def test_missing_values_and_constant_columns(tmp_path):
    X, y = make_classification(n_samples=200, n_features=5, random_state=1)
    X[:, 3] = 7.0
    X[::7, 0] = np.nan
    X[3::11, 2] = np.nan
    model = SVMLClassifier(missing="impute").fit(X, y)
    new = X.copy()
    new[:, 3] = np.arange(len(new))
    check(model, new, tmp_path / "model.onnx")


def test_what_the_library_refuses_has_no_label(small, tmp_path):
    X, y = small
    for labels, none in ((y, np.iinfo(np.int64).min), (np.array(["no", "yes"])[y], "")):
        model = SVMLClassifier(form="sphere").fit(X, labels)
        path = tmp_path / "model.onnx"
        model.export(path)
        new = X[:5].copy()
        new[1, 2], new[2, 0], new[3, 1] = np.nan, np.inf, -2e300
        found = answers(session(path), new)
        bad = [False, True, True, True, False]
        assert list(found["label"] == none) == bad
        for name in ("decision", "probabilities"):
            assert list(np.isnan(found[name]).all(axis=1)) == bad
            assert list(np.isnan(found[name]).any(axis=1)) == bad


def test_categories_are_encoded_features(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(["red", "blue", None], 120), "size": rng.normal(size=120)})
    y = np.where((frame["colour"] == "red") == (frame["size"] > 0), "in", "out")
    model = SVMLClassifier(missing="impute").fit(frame, y)
    path = tmp_path / "model.onnx"
    model.export(path)
    columns = list(model.encoded_feature_names_)
    assert columns == ["colour=blue", "colour=red", "size"]
    encoded = pd.DataFrame({f"colour={level}": (frame["colour"] == level) * 1.0 for level in ("blue", "red")})
    encoded[frame["colour"].isna()] = np.nan
    encoded["size"] = frame["size"]
    found = answers(session(path), encoded[columns])
    np.testing.assert_array_equal(found["label"], model.predict(frame))
    np.testing.assert_allclose(found["decision"][:, 0], model.decision_function(frame), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("missing", ["impute", "refuse"])
def test_an_input_for_each_column(missing, tmp_path):
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", 'blue"', None] if missing == "impute" else ["red", 'blue"'], 200)
    # More levels than become columns are codes.
    frame = pd.DataFrame({"colour": colour, "ill": rng.choice([True, False], 200), "size": rng.normal(size=200)})
    frame["town"] = rng.choice([f"t{i}" for i in range(30)], 200)
    y = np.where((frame["colour"] == "red") == (frame["size"] > 0), "in", "out")
    model = SVMLClassifier(missing=missing).fit(frame, y)
    path = tmp_path / "model.onnx"
    model.export(path, columns=True)
    graph = session(path)
    columns = json.loads(graph.get_modelmeta().custom_metadata_map["columns"])
    assert [column["name"] for column in columns] == list(frame.columns)
    assert [column["kind"] for column in columns] == ["onehot", "onehot", "number", "codes"]

    def asked(new):
        inputs = {}
        for column in columns:
            values = new[column["name"]]
            values = values if column["kind"] == "number" else values.astype(object).where(values.notna(), "").astype(str)
            kind = np.float64 if column["kind"] == "number" else object
            inputs[column["input"]] = values.to_numpy(dtype=kind).reshape(-1, 1)
        return dict(zip(("label", "probabilities", "decision"), graph.run(None, inputs)))

    found = asked(frame)
    np.testing.assert_array_equal(found["label"], model.predict(frame))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(frame), rtol=1e-9, atol=1e-12)
    # Texts that training did not have: none of the levels, a code that is filled or refused.
    odd = pd.DataFrame({"colour": ["green", "red"], "ill": ["true", "FALSE"], "size": [0.5, -0.5], "town": ["t1", "t1"]})
    np.testing.assert_array_equal(asked(odd)["label"], model.predict(odd))
    odd["town"] = ["nowhere", "t1"]
    if missing == "impute":
        odd.loc[1, "colour"] = "?"
        np.testing.assert_array_equal(asked(odd)["label"], model.predict(odd))
    else:
        assert list(asked(odd)["label"] == "") == [True, False]
        odd["town"], odd["colour"] = "t1", ["", "red"]
        assert list(asked(odd)["label"] == "") == [True, False]
    with pytest.raises(ValueError, match="columns=True works only with to='onnx', not with 'c'"):
        model.export(tmp_path / "model.c", columns=True)


@pytest.mark.parametrize("learner", [SVML(), SVML(form="low_rank", n_components=2), NCA(), LMNN(), ITML()], ids=repr)
def test_metrics_map_rows(learner, wine, tmp_path):
    X, y = wine
    learner.set_params(max_iter=10).fit(X, y)
    path = tmp_path / "model.onnx"
    learner.export(path)
    found = answers(session(path), X)
    assert list(found) == ["transform"]
    np.testing.assert_allclose(found["transform"], learner.transform(X), rtol=1e-9, atol=1e-9)


def test_the_ending_says_what_is_written(small, tmp_path):
    X, y = small
    model = SVMLClassifier(form="diagonal").fit(X, y)
    for ending, start in ((".onnx", b"\x08"), (".c", b"/* A model"), (".js", b"// A model"), (".model", b"svm_type c_svc")):
        path = tmp_path / f"model{ending}"
        model.export(str(path))
        assert path.read_bytes().startswith(start)
        # The same by its name.
        other = tmp_path / "other"
        model.export(other, to={".model": "libsvm"}.get(ending, ending[1:]))
        assert other.read_bytes() == path.read_bytes()
    assert (tmp_path / "model.model.range").read_text().startswith("x\n-1 1\n1 ")
    with pytest.raises(ValueError, match=r"cannot be inferred from .*model\.txt.* must be one of \.onnx, \.c, \.js"):
        model.export(tmp_path / "model.txt")
    with pytest.raises(ValueError, match="'onnx', 'c', 'js' or 'libsvm'. Got 'pmml'"):
        model.export(tmp_path / "model.c", to="pmml")
    with pytest.raises(ValueError, match='single SVM with a Gaussian kernel.*form="diagonal"'):
        SVMLClassifier(form="diagonal", kernel="laplacian").fit(X, y).export(tmp_path / "model.model")
    with pytest.raises(AttributeError, match="not fitted"):
        SVMLClassifier().export(tmp_path / "model.c")
    with pytest.raises(OSError):
        model.export(tmp_path / "nowhere" / "model.c")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript_of_a_frame(tmp_path):
    frame = pd.DataFrame({"age": [31, 54, 47, 22] * 10, "city": ["Oslo", "Bergen", None, "Oslo"] * 10})
    y = ["no", "yes", "yes", "no"] * 10
    model = SVMLClassifier(missing="impute").fit(frame, y)
    model.export(tmp_path / "model.mjs")
    rows = [{"age": 40, "city": "Oslo"}, {"age": None, "city": "Paris"}, {"age": 22.5, "city": None}]
    program = f"""
        import {{ predict, probabilities, decision }} from "./model.mjs";
        const rows = {json.dumps(rows)};
        console.log(JSON.stringify(rows.map((row) => [predict(row), decision(row), probabilities(row)])));
    """
    (tmp_path / "main.mjs").write_text(program)
    done = subprocess.run(["node", "main.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    new = pd.DataFrame(rows)
    expected = zip(model.predict(new), model.decision_function(new), model.predict_proba(new))
    for (label, decision, p), (own, value, shares) in zip(json.loads(done.stdout), expected, strict=True):
        assert label == own
        np.testing.assert_allclose([decision, *p], [value, *shares], rtol=1e-9, atol=1e-9)


@pytest.mark.skipif(COMMAND is None, reason="the command svml is not there; set SVML_COMMAND")
def test_the_page(tmp_path, monkeypatch):
    """The programs of docs/deploy.md, one after the other in one folder; those whose tools are not installed are left out."""
    monkeypatch.chdir(tmp_path)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "svml").symlink_to(Path(COMMAND).resolve())
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    scope = {"__name__": "page"}
    text = PAGE.read_text().split("## Training in a browser")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", text, re.S)
    assert [kind for kind, _ in blocks].count("sh") == 8
    printed = []
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, str(PAGE), "exec"), scope)
        elif kind == "sh":
            needed = [line.split()[0] for line in block.splitlines()]
            if all(shutil.which(program) for program in needed):
                done = subprocess.run(["bash", "-ec", block], capture_output=True, text=True)
                assert done.returncode == 0, block + done.stdout + done.stderr
                printed.append(done.stdout)
        else:
            # The first line has the name of the file.
            name = re.search(r"\w+\.\w+", block.splitlines()[0])[0]
            (tmp_path / name).write_text(block)
    p = scope["model"].predict_proba([[5.9, 3.0, 5.1, 1.8]]).max()
    if shutil.which("cc"):
        assert f"virginica {p:.3f}\n" in printed
    if shutil.which("node"):
        assert any(text.startswith("virginica [") and "petal_width" in text for text in printed)
    if shutil.which("svm-predict"):
        labels = [int(float(label)) for label in Path("labels").read_text().split()]
        expected = svml.load("flowers.svml").predict(scope["iris"].data.to_numpy())
        assert labels == list(expected)
