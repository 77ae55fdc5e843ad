"""A fit that is killed goes on where it stopped."""

import os
import signal
import subprocess
import sys
import time

import pytest
from sklearn.base import clone
from sklearn.datasets import make_circles

from svml import SVML, SVMLClassifier
from svml._base import InvalidParameterError

FIT = """
import sys
from sklearn.datasets import make_circles
from svml import SVMLClassifier

X, y = make_circles(1200, noise=0.3, factor=0.4, random_state=0)
SVMLClassifier(checkpoint=sys.argv[1]).fit(X, y).save(sys.argv[2])
"""


@pytest.fixture
def circles():
    return make_circles(1200, noise=0.3, factor=0.4, random_state=0)


def stopped(step):
    """Ends a fit at its third step."""
    return step["iteration"] >= 2


def test_the_model_is_the_same_and_the_file_is_removed(tmp_path, circles):
    file = tmp_path / "fit.checkpoint"
    for estimator in (SVMLClassifier, SVML):
        plain = estimator().fit(*circles)
        kept = estimator(checkpoint=file).fit(*circles)
        assert kept._model.to_bytes() == plain._model.to_bytes()
        assert not file.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_a_fit_that_is_killed_goes_on(tmp_path, circles):
    file, saved = tmp_path / "fit.checkpoint", tmp_path / "model.svml"
    expected = SVMLClassifier().fit(*circles)._model.to_bytes()
    kills = 0
    for life in range(100):
        process = subprocess.Popen([sys.executable, "-c", FIT, str(file), str(saved)])
        # As soon as something has been recorded, and later each time.
        before = file.stat().st_size if file.exists() else 0
        while process.poll() is None and not (file.exists() and file.stat().st_size > before + 4096 * life):
            time.sleep(0.002)
        if process.poll() is not None:
            assert process.returncode == 0
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    assert kills > 0 and not file.exists()
    assert saved.read_bytes() == expected


def test_a_fit_that_is_ended_early_leaves_its_file(tmp_path, circles):
    file = str(tmp_path / "fit.checkpoint")
    model = SVMLClassifier(checkpoint=file, callbacks=stopped).fit(*circles)
    assert model.stop_reason_ == "interrupted" and os.path.exists(file)

    X, y = circles
    with pytest.raises(ValueError, match="different data; use a different file"):
        SVMLClassifier(checkpoint=file).fit(X[1:], y[1:])
    with pytest.raises(ValueError, match=r"different parameters; .*\(the parameter checkpoint\)"):
        SVMLClassifier(checkpoint=file, tol=0.1).fit(X, y)
    # What changes no bit may change.
    model.set_params(callbacks=None, n_jobs=2, memory_limit=10**9).fit(X, y)
    assert not os.path.exists(file)
    assert (model.decision_function(X) == SVMLClassifier().fit(X, y).decision_function(X)).all()


def test_what_is_not_allowed(tmp_path, circles):
    with pytest.raises(InvalidParameterError, match="'checkpoint' parameter of SVMLClassifier must be a path or None"):
        SVMLClassifier(checkpoint=3).fit(*circles)
    with pytest.raises(InvalidParameterError, match="None unless random_state is an integer"):
        SVMLClassifier(checkpoint="file", random_state=None).fit(*circles)
    with pytest.raises(OSError):
        SVMLClassifier(checkpoint=tmp_path / "no" / "folder").fit(*circles)
    other = tmp_path / "table.csv"
    other.write_text("a,b\n")
    with pytest.raises(ValueError, match="this file is not an svml checkpoint"):
        SVMLClassifier(checkpoint=other).fit(*circles)
    assert other.read_text() == "a,b\n"
    assert clone(SVMLClassifier(checkpoint="a")).checkpoint == "a"
