"""Where estimators compute. What needs a card says that it is skipped where there is none."""

from __future__ import annotations

import ctypes
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_moons
from sklearn.model_selection import cross_val_score

from svml import ITML, LMNN, NCA, SVML, InvalidParameterError, PairsITML, SVMLClassifier, _core, _cuda, load

ALL = [SVML, SVMLClassifier, NCA, LMNN, ITML, PairsITML]
# No computer has so many.
NO_CARD = "cuda:1000000"


def rows(count: int = 60):
    return make_moons(count, noise=0.1, random_state=0)


def fitted(estimator, X, y):
    if isinstance(estimator, PairsITML):
        pairs = np.stack([X[::2], X[1::2]], axis=1)
        return estimator.fit(pairs, np.where(y[::2] == y[1::2], 1, -1))
    return estimator.fit(X, y)


@pytest.mark.parametrize("kind", ALL)
def test_device_is_a_parameter_of_all(kind):
    assert kind().device == "auto"
    estimator = kind(device="cpu")
    assert clone(estimator).get_params()["device"] == "cpu"
    fitted(estimator, *rows())
    assert estimator.device_ == "cpu"
    copy = pickle.loads(pickle.dumps(estimator))
    assert copy.device == "cpu" and copy.device_ == "cpu"


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("device", ["gpu", "CPU", "cuda:", "cuda:-1", "cuda:x", " cpu", "", None, 0, ["cpu"]])
def test_other_words_are_refused(kind, device):
    with pytest.raises(InvalidParameterError, match=r"'device' parameter of \w+ must be 'auto', 'cpu', 'cuda' or 'cuda:N'"):
        fitted(kind(device=device), *rows())


@pytest.mark.parametrize("kind", ALL)
def test_a_card_that_is_not_there_is_an_error(kind):
    words = rf"{NO_CARD} cannot be used: .+; use device=\"cpu\" to compute without it, or device=\"auto\" to use a GPU only"
    with pytest.raises(RuntimeError, match=words):
        fitted(kind(device=NO_CARD), *rows())


def test_predictions_have_the_device_of_the_estimator(tmp_path):
    X, y = rows()
    model = SVMLClassifier(form="sphere").fit(X, y)
    before = model.decision_function(X)
    model.save(tmp_path / "model.svml")
    for other in (model, load(tmp_path / "model.svml"), pickle.loads(pickle.dumps(model))):
        assert other.device == "auto"
        other.set_params(device="cpu")
        assert np.array_equal(other.decision_function(X), before)
        other.set_params(device=NO_CARD)
        for ask in (other.predict, other.decision_function, other.predict_proba):
            with pytest.raises(RuntimeError, match="cannot be used"):
                ask(X)
        with pytest.raises(RuntimeError, match="cannot be used"):
            other.evaluate(X, y)
        with pytest.raises(RuntimeError, match="cannot be used"):
            other.report(X, y)
        # A map is computed on the processor always.
        assert other.transform(X).shape == (60, other.n_components_)


def test_auto_is_the_processor_where_no_card_pays():
    X, y = make_classification(_core.LEAST_ROWS + 100, 3, n_informative=2, n_redundant=0, random_state=0)
    params = {"form": "sphere", "cross_fit": False, "max_iter": 2, "landmarks": 50}
    auto, cpu = (SVMLClassifier(**params, device=device).fit(X, y) for device in ("auto", "cpu"))
    assert auto.device_ == "cpu"
    assert auto._model.to_bytes() == cpu._model.to_bytes()
    assert np.array_equal(auto.decision_function(X), cpu.decision_function(X))


def on_a_card(**params) -> SVMLClassifier:
    """An estimator for the first card; the test is skipped where there is none."""
    try:
        SVMLClassifier(form="sphere", cross_fit=False, max_iter=1, device="cuda").fit(*rows())
    except RuntimeError as error:
        if "cannot be used" not in str(error):
            raise
        pytest.skip(f"no CUDA device ({error})")
    return SVMLClassifier(**params, device="cuda")


def test_a_fit_on_a_card_and_its_predictions():
    X, y = make_classification(6000, 10, flip_y=0.2, random_state=0)
    model, again = (on_a_card().fit(X, y) for _ in range(2))
    assert model.device_.startswith("cuda:0 (") and not model.device_.endswith("()")
    assert again._model.to_bytes() == model._model.to_bytes()
    copy = pickle.loads(pickle.dumps(model))
    assert copy.device == "cuda" and copy.device_ == model.device_
    # So many that they are worth a card.
    assert len(X) * len(model.support_) >= 1 << 20
    card, probabilities = model.decision_function(X), model.predict_proba(X)
    cpu = copy.set_params(device="cpu").decision_function(X)
    assert np.abs(card - cpu).max() <= 1e-8 * np.abs(cpu).max()
    assert np.abs(probabilities - copy.predict_proba(X)).max() <= 1e-8
    assert np.array_equal(model.predict(X), copy.predict(X))


def test_processes_share_a_card():
    X, y = make_classification(400, 5, random_state=0)
    model = on_a_card(form="sphere", max_iter=3)
    alone, beside = (cross_val_score(model, X, y, cv=2, n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(alone, beside)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_cannot_use_a_card_that_was_open():
    on_a_card()
    printed = in_new_process(
        """
        import multiprocessing
        from sklearn.datasets import make_moons
        from svml import SVMLClassifier
        X, y = make_moons(60, noise=0.1, random_state=0)

        def fitted(device):
            try:
                return SVMLClassifier(form="sphere", device=device).fit(X, y).device_
            except RuntimeError as error:
                return "refused" if "forked" in str(error) else str(error)

        first = fitted("cuda")
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(first[:6], *pool.map(fitted, ["cuda", "auto"]))
        """,
        **{name: os.environ[name] for name in ("LD_LIBRARY_PATH", "PATH") if name in os.environ},
    )
    assert printed == "cuda:0 refused cpu"


def in_new_process(program: str, **environment: str) -> str:
    """What a program prints in a process of its own, with nothing of the environment but what is given."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_an_empty_environment_is_enough():
    """No PATH, no HOME, no LD_LIBRARY_PATH."""
    printed = in_new_process(
        """
        from sklearn.datasets import make_moons
        from svml import SVMLClassifier
        X, y = make_moons(60, noise=0.1, random_state=0)
        print(SVMLClassifier(form="sphere").fit(X, y).device_)
        try:
            SVMLClassifier(device="cuda:1000000").fit(X, y)
        except RuntimeError as error:
            print("refused" if "cannot be used" in str(error) else error)
        """
    )
    assert printed.split() == ["cpu", "refused"]


def test_libraries_of_pip_are_found_beside_packages(tmp_path, monkeypatch):
    old, new, other = (tmp_path / "nvidia" / name / "lib" for name in ("cublas", "cu13", "empty"))
    for folder in (old, new, other):
        folder.mkdir(parents=True)
    monkeypatch.setattr(_cuda.sys, "platform", "linux")
    monkeypatch.setattr(_cuda.sys, "path", [str(tmp_path), str(tmp_path / "not there"), ""])
    found = [folder for folder in _cuda.folders() if tmp_path in folder.parents]
    assert found == [new, old, other]


def test_only_what_the_system_does_not_have_is_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(_cuda.sys, "platform", "linux")
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    for name in ("libcublas.so.13", "libcublasLt.so.13", "libcusolver.so.12", "libnvrtc.so.13", "libnvrtc.alt.so.13"):
        (folder / name).write_bytes(b"")
    tried: list[str] = []

    def loads(name: str) -> bool:
        tried.append(name)
        # The system has cuBLAS, and nothing else.
        return name in ("libcublas.so.12", "libcublasLt.so.12") or Path(name).parent == folder

    monkeypatch.setattr(_cuda, "_loads", loads)
    assert _cuda.load([folder]) == [folder / "libcusolver.so.12", folder / "libnvrtc.so.13"]
    # What needs others comes after them.
    assert tried.index("libcublas.so.13") < tried.index("libcusolver.so.13") < tried.index("libnvrtc.so.13")


def test_without_a_driver_nothing_is_loaded(monkeypatch):
    monkeypatch.setattr(_cuda, "_asked", False)
    monkeypatch.setattr(_cuda, "DRIVER", "libsvml-no-such-driver.so")
    monkeypatch.setattr(_cuda, "load", lambda where: pytest.fail("loaded"))
    assert _cuda.prepare() == []


@pytest.mark.skipif(sys.platform != "linux", reason="a shared library of Linux")
def test_a_library_that_was_loaded_by_its_path_is_found_by_its_name(tmp_path):
    """What the whole rests on, with the compiler of CUDA where it is installed and else with a library made here."""
    cc = next((path for path in ("/usr/bin/cc", "/usr/bin/gcc") if os.path.exists(path)), None)
    if cc is None:
        pytest.skip("no C compiler")
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    file, name = folder / "libnvrtc.so.77", "libnvrtc.so.77"
    source = tmp_path / "empty.c"
    source.write_text("int svml_of_pip(void) { return 77; }\n")
    subprocess.run([cc, "-shared", "-fPIC", "-o", file, f"-Wl,-soname,{name}", source], check=True)
    with pytest.raises(OSError):
        ctypes.CDLL(name)
    printed = in_new_process(
        f"""
        import ctypes, sys
        sys.path.insert(0, {str(tmp_path)!r})
        from pathlib import Path
        from svml import _cuda
        _cuda.LIBRARIES, _cuda._names = ("nvrtc",), lambda library: ["libnvrtc.so.77"]
        print([file.name for file in _cuda.load(_cuda.folders())], ctypes.CDLL("libnvrtc.so.77").svml_of_pip())
        """
    )
    assert printed == f"['{name}'] 77"
