"""Too little memory is an exception, and the interpreter lives on; numbers at the ends of what a computer knows."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.exceptions import NotFittedError
from svml import ITML, LMNN, NCA, InvalidParameterError, PairsITML, SVMLClassifier, load

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits on the address space are those of Linux")


def under_a_limit(megabytes: int, program: str) -> str:
    """What a program prints that may take so many megabytes more than it has after its imports."""
    start = """
        import resource
        import numpy as np
        from svml import ITML, LMNN, NCA, SVML, SVMLClassifier

        def limited(megabytes):
            with open("/proc/self/statm") as file:
                used = int(file.read().split()[0]) * resource.getpagesize()
            bound = used + int(megabytes * 2**20)
            resource.setrlimit(resource.RLIMIT_AS, (bound, bound))

        def refused(call):
            try:
                call()
            except MemoryError as error:
                assert str(error), call
                return
            raise AssertionError("no MemoryError")
    """
    text = textwrap.dedent(start) + f"limited({megabytes})\n" + textwrap.dedent(program) + "\nprint('alive')\n"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, (run.returncode, run.stderr)
    return run.stdout


@linux
def test_very_many_columns() -> None:
    out = under_a_limit(
        3000,
        """
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(20, 40_000)), np.arange(20) % 2
        model = SVMLClassifier(form="sphere").fit(X, y)
        assert model.predict(X).shape == (20,) and model.n_components_ == 40_000
        assert model.feature_importances_.shape == (40_000,)
        for call in (
            lambda: model.components_,
            lambda: model.get_mahalanobis_matrix(),
            lambda: SVMLClassifier(form="full").fit(X, y),
            lambda: SVMLClassifier(form="low_rank", n_components=20_000).fit(X, y),
            lambda: NCA().fit(X, y),
            lambda: LMNN().fit(X, y),
            lambda: ITML().fit(X, y),
        ):
            refused(call)
        assert model.predict(X).shape == (20,)
        """,
    )
    assert out == "alive\n"


@linux
@pytest.mark.parametrize("memory_limit", [None, 10**12])
def test_many_rows(memory_limit: int | None) -> None:
    """Also with a limit that is higher than what there is."""
    out = under_a_limit(
        300,
        f"""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(6000, 5)), rng.integers(0, 2, size=6000)
        model = SVMLClassifier(form="sphere", landmarks="exact", memory_limit={memory_limit}, n_jobs=2)
        refused(lambda: model.fit(X, y))
        assert SVMLClassifier(form="sphere").fit(X[:200], y[:200]).predict(X[:3]).shape == (3,)
        """,
    )
    assert out == "alive\n"


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> str:
    """A model file with the names of 40,000 columns."""
    path = tmp_path_factory.mktemp("wide") / "model.svml"
    X = np.random.default_rng(0).normal(size=(6, 40_000))
    SVMLClassifier(form="sphere").fit(X, np.arange(6) % 2).save(path)
    return str(path)


@linux
@pytest.mark.parametrize("megabytes", [10, 20, 40, 60, 70, 80, 90, 100, 120, 150, 170, 200, 300, 500])
def test_a_wide_model_is_loaded_or_refused(wide: str, megabytes: int) -> None:
    """Near the limit the C library has no addresses left to reserve for a thread; with much left, nothing is refused."""
    out = under_a_limit(
        megabytes,
        f"""
        from svml import load

        X = np.zeros((3, 40_000))
        try:
            print(load({wide!r}).predict(X).shape)
        except MemoryError as error:
            assert "limit" in str(error), error
            print("refused")
        """,
    )
    answer, alive = out.splitlines()
    assert alive == "alive"
    assert answer == "(3,)" or (answer == "refused" and megabytes < 500)


@linux
def test_a_thread_that_could_just_begin() -> None:
    """Where only a little more is left than the stack of a thread, there is an exception and the interpreter lives on."""
    out = under_a_limit(
        3000,
        """
        import os

        def ended(pages):
            child = os.fork()
            if child == 0:
                limited(pages * resource.getpagesize() / (1 << 20))
                try:
                    model.fit(X, y)
                except MemoryError:
                    os._exit(1)
                os._exit(0)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
        model = SVMLClassifier(form="sphere", n_jobs=2)
        print({ended(pages) for pages in range(490, 650)})
        """,
    )
    assert out == "{1}\nalive\n"


def test_features_too_small_for_a_matrix() -> None:
    X, y = make_circles(60, noise=0.1, random_state=0)
    model = LMNN().fit(X * [1.0, 1e-200], y)
    assert np.isfinite(model.components_).all() and np.isfinite(model.transform(X * [1.0, 1e-200])).all()
    with pytest.raises(FloatingPointError, match="standard deviation"):
        model.get_mahalanobis_matrix()


@pytest.mark.parametrize(
    "params",
    [{"n_jobs": value} for value in (0, 1.5, True, "x", 65_536, -(10**9))]
    + [{"verbose": value} for value in ("x", -1, 0.5, None)]
    + [{"class_weight": {0: value}} for value in (float("nan"), float("inf"), "1")],
)
def test_values_that_are_not_allowed(params: dict[str, object]) -> None:
    X, y = make_circles(40, random_state=0)
    with pytest.raises(InvalidParameterError, match=f"'{next(iter(params))}' parameter of SVMLClassifier must be"):
        SVMLClassifier(**params).fit(X, y)


def test_any_time_limit() -> None:
    X, y = make_circles(40, random_state=0)
    for limit in (2e19, 1e300, np.float64(1e3), 100):
        assert SVMLClassifier(form="sphere", time_limit=limit).fit(X, y).stop_reason_ != "time_limit"


def test_small_weights_learn_as_much() -> None:
    X, y = make_circles(300, noise=0.1, factor=0.5, random_state=0)
    expected = SVMLClassifier().fit(X, y)
    for weight in (1e-4, 1 / 300):
        model = SVMLClassifier().fit(X, y, sample_weight=np.full(300, weight))
        assert model.score(X, y) == pytest.approx(expected.score(X, y), abs=0.02)


@pytest.mark.parametrize("estimator", [SVMLClassifier(form="sphere"), NCA(), LMNN(), ITML()])
def test_a_failed_fit_leaves_the_one_before(estimator: SVMLClassifier) -> None:
    X, y = make_circles(40, random_state=0)
    with pytest.raises(ValueError):
        estimator.fit(X, np.zeros(40))
    assert not hasattr(estimator, "n_features_in_")
    estimator.fit(X, y)
    before = estimator.transform(X)
    with pytest.raises(ValueError):
        estimator.fit(np.ones((40, 3)), np.zeros(40))
    assert estimator.n_features_in_ == 2
    np.testing.assert_array_equal(estimator.transform(X), before)


def test_files_before_a_fit_and_by_bytes(tmp_path) -> None:
    for estimator in (SVMLClassifier(), NCA(), PairsITML()):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            estimator.save(tmp_path / "m.svml")
    X, y = make_circles(40, random_state=0)
    model = SVMLClassifier(form="sphere").fit(X, y)
    path = str(tmp_path / "m.svml").encode()
    model.save(path)
    for read in (load, SVMLClassifier.load):
        np.testing.assert_array_equal(read(path).decision_function(X), model.decision_function(X))
