"""A fit that is watched, ended from outside, or goes wrong inside."""

import copy
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from svml import ITML, LMNN, NCA, SVML, ProgressBar, SVMLClassifier, _core, _progress

# Each of them works for minutes on the rows of `long`, in another part of the library.
LONG = {
    "steps": SVMLClassifier(form="full", tol=0, max_iter=10**6),
    "forms": SVMLClassifier(tol=0, max_iter=10**6),
    "hold-out": SVMLClassifier(validation="hold_out", form="full", tol=0, max_iter=10**6, patience=10**6),
    "leave-one-out": SVML(validation="loo", form="full", tol=0, max_iter=10**6),
    "nca": NCA(tol=0, max_iter=10**6),
    "lmnn": LMNN(tol=0, max_iter=10**6, n_neighbors=50),
    "itml": ITML(tol=0, max_iter=10**6, n_constraints=300_000),
}


@pytest.fixture(autouse=True)
def heard_interrupts():
    """A shell that starts the tests in the background has them ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(model, data, after):
    """Interrupts a fit after some seconds; the seconds it took to end."""
    sent = []

    def send():
        time.sleep(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(*data)
        ended = time.perf_counter()
    finally:
        sender.join()
    return ended - sent[0]


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_the_fit(name, long, capsys):
    seconds = [interrupted(LONG[name], long, after) for after in (0.05, 0.4, 1.1)]
    with capsys.disabled():
        print(f" {name}: ended {max(seconds) * 1000:.0f} ms after the interrupt", end="")
    # The fit would have gone on for minutes; how long it takes is measured, not tested.
    assert max(seconds) < 20
    assert not hasattr(LONG[name], "components_")


def test_the_interpreter_goes_on_during_a_fit(long):
    done = threading.Event()

    def fit():
        SVMLClassifier(form="diagonal", validation="hold_out").fit(*long)
        done.set()

    thread = threading.Thread(target=fit)
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
        time.sleep(0.001)
    thread.join()
    assert turns > 20


@pytest.mark.parametrize("estimator", [SVMLClassifier, SVML, NCA, LMNN, ITML])
def test_callbacks_see_each_step(estimator, wine):
    steps, counts = [], []
    model = estimator(callbacks=[steps.append, lambda step: counts.append(step["iteration"])])
    model.fit(*wine)
    assert counts == list(range(len(counts))) == list(model.trace_["iteration"])
    assert all(set(step) == {*model.trace_, "seconds", "progress"} for step in steps)
    for key in {"loss", "step_length", "kernel", "form", "half"} & set(model.trace_):
        assert [step[key] for step in steps] == model.trace_[key].tolist()
    assert all(step["seconds"] >= 0 for step in steps)
    plain = estimator().fit(*wine)
    assert plain._model.to_bytes() == model._model.to_bytes()


@pytest.mark.parametrize("estimator", [SVMLClassifier, NCA, LMNN, ITML])
def test_a_callback_may_end_the_fit(estimator, wine):
    model = estimator(callbacks=lambda step: step["iteration"] == 2, tol=0).fit(*wine)
    assert model.stop_reason_ == "interrupted" and model.trace_["iteration"][-1] == 2
    again = estimator(callbacks=lambda step: step["iteration"] == 2, tol=0).fit(*wine)
    np.testing.assert_array_equal(model.components_, again.components_)
    assert model.transform(wine[0]).shape[0] == 178


def test_an_exception_of_a_callback_is_that_of_the_fit(wine):
    def fail(step):
        raise LookupError("of the callback")

    model = SVMLClassifier(callbacks=fail)
    with pytest.raises(LookupError, match="of the callback"):
        model.fit(*wine)
    assert not hasattr(model, "components_")


def test_a_callback_may_use_the_library(wine):
    """Even with one thread, which the fit that it belongs to has taken."""
    X, y = wine
    other = SVMLClassifier(form="sphere").fit(X, y)
    seen = []

    def callback(step):
        seen.append((other.predict(X) == SVMLClassifier(form="sphere").fit(X, y).predict(X)).all())

    SVMLClassifier(form="diagonal", callbacks=callback, n_jobs=1).fit(X, y)
    assert seen and all(seen)


def test_verbose_prints_each_step(wine, capsys):
    model = SVMLClassifier(verbose=1).fit(*wine)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.trace_["iteration"])
    assert re.match(r"\[SVMLClassifier\] learning gaussian sphere \(1 of 3\), step 0, [\d.]+ s so far: loss [\d.]+, ", lines[0])
    assert "validation error" in lines[0]
    assert any(" learning exponential diagonal (2 of 3), step 1, " in line for line in lines)
    assert [" of 3), step " in line for line in lines] == model.trace_["half"].tolist()
    last = model.members_[-1]
    assert f" learning {last['kernel']} {last['form']} on all rows, step " in lines[-1]
    LMNN(verbose=1).fit(*wine)
    assert re.match(r"\[LMNN\] learning, step 0, [\d.]+ s so far: loss [\d.]+, gap ", capsys.readouterr().out)
    SVMLClassifier().fit(*wine)
    assert capsys.readouterr() == ("", "")


def test_a_time_limit_takes_the_best_so_far(long):
    model = SVMLClassifier(form="diagonal", validation="hold_out", tol=0, max_iter=10**6, patience=10**6)
    model.set_params(time_limit=3.0).fit(*long)
    assert model.stop_reason_ == "time_limit"
    assert model.predict(long[0][:5]).shape == (5,)
    with pytest.raises(TimeoutError, match="time_limit"):
        SVMLClassifier(time_limit=1e-9).fit(*long)


@pytest.mark.parametrize("estimator", [NCA, LMNN, ITML])
def test_metrics_without_time_are_where_they_start(estimator, wine):
    with pytest.warns(UserWarning, match="178 rows.*the initial one"):
        model = estimator(time_limit=1e-9).fit(*wine)
    assert model.stop_reason_ == "time_limit" and model.n_iter_ == 1
    np.testing.assert_allclose(model.feature_importances_, 1 / 13)


def test_metrics_of_many_rows_return_the_best_so_far():
    rng = np.random.RandomState(0)
    X = rng.randn(20_000, 5)
    y = (X[:, 0] + 0.3 * rng.randn(20_000) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for estimator in (NCA, LMNN):
            model = estimator(time_limit=6.0, n_jobs=2, max_iter=10**6, tol=0).fit(X, y)
            assert model.stop_reason_ == "time_limit"
            # Something was learned.
            assert np.ptp(model.feature_importances_) > 1e-3, estimator


class Bar:
    """Stands for tqdm."""

    made: list = []

    def __init__(self, unit):
        self.steps, self.shown, self.open = 0, [], True
        Bar.made.append(self)

    def set_description_str(self, text, refresh):
        self.shown.append(text)

    def set_postfix_str(self, text, refresh):
        assert text == "" or re.fullmatch(r"all 3 in ~.* s", text)

    def update(self):
        self.steps += 1

    def close(self):
        self.open = False


def test_a_bar_by_tqdm(wine, monkeypatch):
    monkeypatch.setattr(_progress, "tqdm", Bar)
    monkeypatch.setattr(Bar, "made", [])
    bar = ProgressBar()
    model = SVMLClassifier(callbacks=[bar]).fit(*wine)
    (made,) = Bar.made
    assert made.steps == len(model.trace_["loss"]) and not made.open
    assert made.shown[0] == "learning gaussian sphere (1 of 3)"
    # Another fit has a bar of its own, and one that fails does not leave it open.
    with pytest.raises(ZeroDivisionError):
        SVMLClassifier(callbacks=[bar, lambda step: 1 // 0]).fit(*wine)
    assert len(Bar.made) == 2 and not Bar.made[1].open
    assert pickle.loads(pickle.dumps(bar)).plain == copy.deepcopy(bar).plain == bar.plain


def test_a_bar_without_tqdm_is_few_lines(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "tqdm", None)
    bar = ProgressBar()
    for k in range(1000):
        bar({"iteration": k, "seconds": 0.1 * k, "progress": f"learning, step {k}"})
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "learning, step 10" and 10 < len(lines) < 30


def test_the_real_tqdm_shows_what_is_learned(wine, capsys):
    pytest.importorskip("tqdm")
    SVMLClassifier(callbacks=ProgressBar()).fit(*wine)
    shown = capsys.readouterr().err
    assert "learning " in shown and " steps" in shown


PANICS = os.environ.get("SVML_PANICS")


@pytest.mark.skipif(PANICS is None, reason="SVML_PANICS names no binding built with the feature provoke-panic")
def test_a_panic_is_an_ordinary_exception():
    code = f"""
import importlib.machinery, importlib.util
loader = importlib.machinery.ExtensionFileLoader("_core", {PANICS!r})
core = importlib.util.module_from_spec(importlib.util.spec_from_loader("_core", loader))
loader.exec_module(core)
try:
    core.provoke_panic()
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("internal error of svml (on purpose); please report"), done.stderr


def test_the_package_has_no_function_that_panics():
    assert not hasattr(_core, "provoke_panic")


def test_a_fit_says_nothing_by_itself(wine):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVMLClassifier().fit(*wine)
