"""Many fits at once, in threads, processes and on a cluster, and many after each other."""

import gc
import multiprocessing
import pickle
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from svml import ITML, LMNN, NCA, SVML, SVMLClassifier

KINDS = [SVMLClassifier, SVML, NCA, LMNN, ITML]


def fitted(seed):
    """The bytes of a model, and what it says of some rows."""
    rng = np.random.RandomState(seed % 4)
    X = rng.randn(60, 5)
    y = (X[:, 0] ** 2 + X[:, 1] > 0.5).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KINDS[seed % len(KINDS)]().fit(X, y)
    return model._model.to_bytes(), model.transform(X).tobytes()


def in_threads(seeds):
    """Fits in as many threads as there are seeds, which all begin at the same moment."""
    together = threading.Barrier(len(seeds), timeout=60)

    def one(seed):
        together.wait()
        return fitted(seed)

    with ThreadPoolExecutor(len(seeds)) as pool:
        return list(pool.map(one, seeds))


THREADS = 32
SEEDS = list(range(THREADS))


@pytest.fixture(scope="module")
def serial():
    return [fitted(seed) for seed in SEEDS]


def test_thirty_two_threads(serial):
    assert in_threads(SEEDS) == serial


def test_four_processes_with_thirty_two_threads_each(serial):
    for answers in joblib.Parallel(4, backend="loky")(joblib.delayed(in_threads)(SEEDS) for _ in range(4)):
        assert answers == serial


@pytest.mark.parametrize(("backend", "jobs"), [("loky", 4), ("threading", THREADS), ("multiprocessing", 4)])
def test_joblib(backend, jobs, serial):
    answers = joblib.Parallel(jobs, backend=backend)(joblib.delayed(fitted)(seed) for seed in SEEDS)
    assert answers == serial


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_processes_that_are_started_after_fits(method, serial):
    # In threads, so that a fork inherits whatever those leave behind.
    assert in_threads(SEEDS) == serial
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(fitted, SEEDS).get(timeout=120) == serial
        assert pool.map_async(in_threads, [SEEDS, SEEDS]).get(timeout=120) == [serial, serial]


@pytest.mark.parametrize("estimator", KINDS)
def test_any_number_of_threads_gives_the_same_bits(estimator, cancer):
    X, y = cancer
    one = estimator(n_jobs=1).fit(X, y)
    for n_jobs in (2, 3, 8, -1):
        many = estimator(n_jobs=n_jobs).fit(X, y)
        assert many._model.to_bytes() == one._model.to_bytes()
        np.testing.assert_array_equal(many.transform(X), one.transform(X))


def test_threads_of_a_context_are_used(small):
    seen = []

    class Spy(SVMLClassifier):
        def _threads(self):
            seen.append(super()._threads())
            return seen[-1]

    Spy().fit(*small)
    with joblib.parallel_config(n_jobs=3):
        Spy().fit(*small)
    assert seen == [1, 3]


def test_one_model_answers_many_threads(cancer):
    X, y = cancer
    model = SVMLClassifier().fit(X, y)
    expected = model.decision_function(X)
    with ThreadPoolExecutor(THREADS) as pool:
        for answer in pool.map(lambda _: model.decision_function(X), range(64)):
            np.testing.assert_array_equal(answer, expected)


def test_dask_gives_the_results_of_one_process(serial, wine):
    distributed = pytest.importorskip("distributed")
    X, y = wine
    search = GridSearchCV(SVMLClassifier(), {"form": ["sphere", "diagonal"], "regularization": [0.01, 0.1]}, cv=3)
    alone = search.fit(X, y)
    expected = alone.cv_results_["mean_test_score"].copy()
    decision = alone.decision_function(X)
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        # The function of a test module travels by value, as no worker has that module.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        with joblib.parallel_config(backend="dask"):
            answers = joblib.Parallel()(joblib.delayed(fitted)(seed) for seed in SEEDS)
            search.fit(X, y)
    assert answers == serial
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)
    np.testing.assert_array_equal(search.decision_function(X), decision)


def ignore(step):
    """A callback that wants nothing."""


def resident():
    """Bytes of memory that this process has."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_two_thousand_fits_take_no_more_memory_than_some(capsys):
    rng = np.random.RandomState(0)
    X = rng.randn(60, 5)
    y = rng.randint(0, 3, 60)
    threads = len(list(Path("/proc/self/task").iterdir()))
    sizes = []
    for round_ in range(2000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KINDS[round_ % len(KINDS)](n_jobs=1 + round_ % 2, callbacks=ignore).fit(X, y)
        pickle.loads(pickle.dumps(model)).transform(X)
        if round_ % 100 == 99:
            sizes.append(resident())
    grown = (sizes[-1] - sizes[3]) / 2**20  # After 400 fits all memory that is kept for reuse is there.
    with capsys.disabled():
        print(f" {sizes[3] / 2**20:.1f} MiB after 400 fits, {grown:+.2f} MiB after 1600 more", end="")
    # A copy of X left behind by each fit would be 4 MiB.
    assert grown < 3
    assert len(list(Path("/proc/self/task").iterdir())) <= threads + 4
