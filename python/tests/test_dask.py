"""One fit on the workers of a Dask cluster, with processes of their own: same bits, faults, and lazy prediction."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import svml
from svml import _core

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

import svml.dask  # noqa: E402
from svml import _cluster  # noqa: E402
from svml.dask import ClusterError, SVMLClassifier, VersionError, WorkerMemoryError  # noqa: E402

# Functions of this module travel by value, as no worker has it.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

QUICK = {"form": "diagonal", "landmarks": 40}
SIZES = (700, 700, 700, 700, 200)


def cluster_of(workers, **options):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, **options
    )


@pytest.fixture(scope="module")
def cluster():
    with cluster_of(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        wait_for(client, 2)
        yield client


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(_cluster, "PATIENCE", 2.0)
    monkeypatch.setattr(_cluster, "LOOK", 0.1)


def wait_for(client, count):
    """Waits until there are so many workers; for one that its nanny does not start again there is another."""
    now = time.monotonic()
    until, another = now + 60, now + 10
    while len(client.nthreads()) < count:
        now = time.monotonic()
        assert now < until, "no worker has come"
        if now > another:
            another = until
            client.cluster.scale(len(client.cluster.worker_spec) + 1)
        time.sleep(0.05)


def rows(n, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    side = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    return X, np.digitize(side, np.linspace(-1, 1, classes - 1) if classes > 2 else [0])


def lazily(X, y, sizes=SIZES):
    return da.from_array(X, chunks=(sizes, -1)), da.from_array(y, chunks=(sizes,))


def test_copies_are_warned_of(client):
    X, y = rows(400)
    twice = lazily(np.r_[X, X], np.r_[y, y], (400, 400))
    with pytest.warns(UserWarning, match="if they are copies of one observation, remove them"):
        SVMLClassifier(**QUICK, client=client).fit(*twice)


def in_process(X, y, sizes=SIZES, weights=None, **params):
    """The model of parts of these sizes that are asked without Dask."""
    classes = np.unique(y)
    ends = np.cumsum([size for size in sizes if size])
    parts = []
    for number, (end, size) in enumerate(zip(ends, [size for size in sizes if size])):
        within = slice(end - size, end)
        places = np.searchsorted(classes, y[within])
        of_rows = None if weights is None else weights[within]
        parts.append(_core.Part(X[within], places, of_rows, number, len(classes), [False] * X.shape[1]))

    def ask(_stage, _number, setting, question):
        return _cluster.total([part.answer(setting, question, 0, 1) for part in parts])

    labels = [str(label) for label in classes]
    library = svml.SVMLClassifier(**{**QUICK, **params})._library_params(labels)
    return _core.fit_rows(json.dumps(library), ask, labels, columns=X.shape[1]).to_bytes()


def bits(model):
    return model._model.to_bytes()


@pytest.fixture(scope="module")
def small():
    return rows(3000)


@pytest.fixture(scope="module")
def expected(small):
    return in_process(*small)


# The same bits


def test_the_bits_are_those_of_one_computer(client):
    X, y = rows(140_000)
    params = {"form": "diagonal", "landmarks": 60}
    local = svml.SVMLClassifier(**params).fit(X, y)
    model = SVMLClassifier(**params).fit(da.from_array(X, chunks=(65_536, 2)), da.from_array(y, chunks=65_536))
    assert bits(model) == bits(local)
    np.testing.assert_array_equal(model.support_, local.support_)
    # Chunks that are larger than a part are cut into the same parts.
    larger = SVMLClassifier(**params).fit(da.from_array(X, chunks=(131_072, 4)), y)
    assert bits(larger) == bits(local)


def test_the_number_of_workers_does_not_matter(client, small, expected):
    X, y = lazily(*small)
    assert bits(SVMLClassifier(**QUICK).fit(X, y)) == expected
    with cluster_of(1) as alone, distributed.Client(alone, set_as_default=False) as other:
        assert bits(SVMLClassifier(client=other, **QUICK).fit(X, y)) == expected


def test_the_place_of_rows_does_not_matter(client, small, expected, monkeypatch):
    X, y = lazily(*small)
    workers = sorted(client.nthreads())
    for worker in workers:
        x, z = client.persist([X, y], workers=[worker])
        assert bits(SVMLClassifier(**QUICK).fit(x, z)) == expected
    # However many parts answer together.
    monkeypatch.setattr(_cluster, "TASKS_PER_WORKER", 0.5)
    assert bits(SVMLClassifier(**QUICK).fit(X, y)) == expected
    monkeypatch.setattr(_cluster, "WITH_TASKS", 0)
    monkeypatch.setattr(_cluster, "FAN_IN", 2)
    assert bits(SVMLClassifier(**QUICK).fit(X, y)) == expected


def test_several_svms_and_classes(client):
    X, y = rows(2000, classes=3)
    sizes = (900, 900, 200)
    model = SVMLClassifier(landmarks=40).fit(*lazily(X, y, sizes))
    assert bits(model) == in_process(X, y, sizes, form="auto")
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])


# Partitions


def test_uneven_and_empty_partitions(client, small):
    X, y = small
    sizes = (0, 1, 1900, 0, 90, 1009, 0)
    empty = {"chunks": ((0,), (4,))}
    dX, dy = lazily(X, y, (1, 1900, 90, 1009))
    pieces = [dX.blocks[k] for k in range(4)]
    labels = [dy.blocks[k] for k in range(4)]
    none, no_label = da.empty((0, 4), **empty), da.empty(0, dtype=int, chunks=(0,))
    dX = da.concatenate([none, *pieces[:2], none, *pieces[2:], none])
    dy = da.concatenate([no_label, *labels[:2], no_label, *labels[2:], no_label])
    assert bits(SVMLClassifier(**QUICK).fit(dX, dy)) == in_process(X, y, sizes)


def test_a_class_in_one_partition_only(client, small):
    X, y = small
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    model = SVMLClassifier(**QUICK).fit(*lazily(X, y))
    assert bits(model) == in_process(X, y) and model.score(*lazily(X, y)) > 0.8


def test_chunks_of_unknown_size(client, small, expected):
    X, y = small
    dX, dy = lazily(X, y)
    all_rows = da.from_array(np.ones(len(X), dtype=bool), chunks=(SIZES,))
    dX, dy = dX[all_rows], dy[all_rows]
    assert np.isnan(dX.shape[0])
    assert bits(SVMLClassifier(**QUICK).fit(dX, dy)) == expected
    model = SVMLClassifier(**QUICK).fit(dX, y)
    assert bits(model) == expected
    np.testing.assert_array_equal(model.predict(dX).compute(), model.predict(X))
    with pytest.raises(ValueError, match="X has 5 partitions and y has 1, and not all"):
        SVMLClassifier(**QUICK).fit(dX, da.from_array(y, chunks=-1))


def test_sample_weights(client, small):
    X, y = small
    weights = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    dX, dy = lazily(X, y)
    expected = in_process(X, y, weights=weights)
    for given in (weights, da.from_array(weights, chunks=1000)):
        assert bits(SVMLClassifier(**QUICK).fit(dX, dy, sample_weight=given)) == expected
    # A class whose rows all have weight 0 does not count.
    third = np.where(np.arange(len(y)) % 100 == 0, 2, y)
    model = SVMLClassifier(**QUICK).fit(dX, third, sample_weight=np.where(third == 2, 0.0, 1.0))
    np.testing.assert_array_equal(model.classes_, [0, 1])
    with pytest.raises(ValueError, match="in partition 1: Negative values"):
        SVMLClassifier().fit(dX, dy, sample_weight=np.where(np.arange(3000) == 900, -1.0, 1.0))
    with pytest.raises(ValueError, match="at least one non-zero"):
        SVMLClassifier().fit(dX, dy, sample_weight=np.zeros(3000))


def test_what_is_wrong_with_data_is_said(client, small):
    X, y = small
    dX, dy = lazily(X, y)
    bad = X.copy()
    bad[1500, 2] = np.nan
    with pytest.raises(ValueError, match="in partition 2: Input X contains NaN"):
        SVMLClassifier().fit(lazily(bad, y)[0], dy)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        SVMLClassifier().fit(dX, dX[:, 0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples: X has 3000, y has 2999"):
        SVMLClassifier().fit(dX, y[1:])
    with pytest.raises(ValueError, match="class"):
        SVMLClassifier().fit(dX, 0 * dy)
    with pytest.raises(TypeError, match="from_array.*svml.SVMLClassifier"):
        SVMLClassifier().fit(X, y)
    for params in ({"landmarks": "exact"}, {"validation": "loo"}, {"memory_limit": 0}, {"n_jobs": 0}):
        with pytest.raises(svml.InvalidParameterError, match=next(iter(params))):
            SVMLClassifier(**params).fit(dX, dy)
    with pytest.raises(svml.InvalidParameterError, match="'max_iter' parameter"):
        SVMLClassifier(max_iter=-1).fit(dX, dy)
    model = SVMLClassifier(missing="impute", **QUICK).fit(lazily(bad, y)[0], dy)
    assert model.predict(lazily(bad, y)[0]).compute().shape == (3000,)


# Frames


def table(n=2400):
    rng = np.random.default_rng(3)
    colours = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    frame = pd.DataFrame(
        {"a": rng.standard_normal(n), "colour": colours, "b": rng.standard_normal(n), "flag": rng.random(n) < 0.5}
    )
    side = frame.a * np.where(frame.colour == "red", 1, -1) + 0.5 * frame.flag + 0.3 * frame.b
    frame["size"] = pd.Categorical(np.where(frame.a > 1, "L", "S"), categories=["S", "M", "L"])
    return frame, pd.Series(np.where(side > 0, "yes", "no"), name="answer")


def test_dataframes_of_numbers(client, small, expected):
    X, y = small
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = SVMLClassifier(**QUICK).fit(
        dd.from_pandas(frame, npartitions=5), dd.from_pandas(pd.Series(y), npartitions=5)
    )
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_array_equal(model.predict(frame), model.predict(dd.from_pandas(frame, npartitions=3)).compute())
    with pytest.raises(ValueError, match="feature names"):
        model.predict(dd.from_pandas(frame[["b", "a", "c", "d"]], npartitions=1)).compute()


def test_dataframes_with_categories(client):
    frame, y = table()
    local = svml.SVMLClassifier(form="diagonal").fit(frame, y)
    dX, dy = dd.from_pandas(frame, npartitions=4), dd.from_pandas(y, npartitions=4)
    model = SVMLClassifier(**QUICK).fit(dX, dy)
    np.testing.assert_array_equal(model.encoded_feature_names_, local.encoded_feature_names_)
    np.testing.assert_array_equal(model.feature_names_in_, local.feature_names_in_)
    assert model._model.schema == local._model.schema
    assert model.score(dX, dy) > 0.8 and model.score(frame, y) == model.score(dX, dy)
    with distributed.Client(client.cluster, set_as_default=False) as other:
        again = SVMLClassifier(client=other, **QUICK).fit(dX, y)
    assert bits(again) == bits(model)
    # A level that is in one partition only.
    frame.loc[0, "colour"] = "violet"
    model = SVMLClassifier(**QUICK).fit(dd.from_pandas(frame, npartitions=4), dy)
    assert "colour=violet" in model.encoded_feature_names_


def test_dates_are_refused_with_the_partition(client):
    frame, y = table(400)
    frame["day"] = pd.Timestamp("2020-01-01")
    with pytest.raises(ValueError, match="in partition 0: column 'day' holds datetime64"):
        SVMLClassifier().fit(dd.from_pandas(frame, npartitions=1), y)


def test_missing_values_of_frames(client):
    frame, y = table()
    frame.loc[::7, "a"] = np.nan
    frame.loc[::5, "colour"] = None
    dX = dd.from_pandas(frame, npartitions=4)
    with pytest.raises(ValueError, match='missing="impute"'):
        SVMLClassifier(**QUICK).fit(dX, y)
    model = SVMLClassifier(missing="impute", **QUICK).fit(dX, y)
    local = svml.SVMLClassifier(form="diagonal", missing="impute").fit(frame, y)
    assert model._model.schema == local._model.schema
    assert model.score(dX, y) > 0.75


# Prediction, state


def test_lazy_prediction_is_that_of_the_local_estimator(client, small):
    X, y = small
    dX, dy = lazily(X, y)
    model = SVMLClassifier(**QUICK).fit(dX, dy)
    local = model.to_local()
    assert type(local) is svml.SVMLClassifier
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        lazy, direct = getattr(model, method)(dX), getattr(local, method)(X)
        assert isinstance(lazy, da.Array) and lazy.chunks[0] == SIZES
        assert lazy.shape == direct.shape and lazy.dtype == direct.dtype
        np.testing.assert_array_equal(lazy.compute(), direct)
        np.testing.assert_array_equal(getattr(model, method)(X), direct)
        frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
        np.testing.assert_array_equal(getattr(model, method)(frame).compute(), direct)
        # Blocks without rows, and columns in several chunks.
        some = dX[np.arange(3000) < 700].rechunk({1: 3})
        np.testing.assert_array_equal(getattr(model, method)(some).compute(), direct[:700])
    assert model.score(dX, dy) == local.score(X, y)
    assert model.score(dX, y, sample_weight=np.arange(3000.0)) == pytest.approx(local.score(X, y, np.arange(3000.0)))
    with pytest.raises(ValueError, match="3 features"):
        model.predict(dX[:, :3])


def test_state(client, small, tmp_path):
    model = SVMLClassifier(client=client, **QUICK).fit(*lazily(*small))
    assert clone(model).client is client and clone(model).form == "diagonal"
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None and bits(again) == bits(model)
    model.save(tmp_path / "model.svml")
    for loaded in (SVMLClassifier.load(tmp_path / "model.svml"), svml.load(tmp_path / "model.svml")):
        assert bits(loaded) == bits(model)
        np.testing.assert_array_equal(loaded.predict(small[0]), model.predict(small[0]))
    # What workers have computed is in no file.
    ordinary = svml.SVMLClassifier().get_params()
    assert ordinary.pop("checkpoint") is None
    assert set(model.get_params()) == {*ordinary, "client"}
    assert "client" not in model.to_local().get_params() and not hasattr(model.to_local(), "client")
    defaults = SVMLClassifier().get_params()
    defaults.pop("client")
    assert defaults == ordinary


def test_the_package_does_without_dask():
    code = "import sys, svml; sys.exit(any(name.partition('.')[0] in ('dask', 'distributed') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    code = "import sys; sys.modules['distributed'] = None\ntry: import svml.dask\nexcept ImportError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "svml[dask]" in done.stdout


def test_there_must_be_a_client(small):
    with pytest.raises(ValueError, match="no Dask client"):
        SVMLClassifier().fit(*lazily(*small))


# Faults


def kill_one(client, rng):
    pids = client.run(os.getpid, on_error="ignore")
    worker = sorted(pids)[rng.integers(len(pids))]
    os.kill(pids[worker], signal.SIGKILL)


def test_workers_killed_at_random_moments(cluster, client, small, expected):
    rng = np.random.default_rng(0)
    X, y = lazily(*small)
    SVMLClassifier(**QUICK).fit(X, y)
    started = time.perf_counter()
    SVMLClassifier(**QUICK).fit(X, y)
    seconds = time.perf_counter() - started
    # A kill may come too late where a fit is faster than the one that was timed; such a turn does not count.
    during = 0
    for turn in range(60):
        if during == 20:
            break
        wait_for(client, 2)
        ended = threading.Event()
        moment = rng.uniform(0, seconds)
        seen = []

        def kill():
            time.sleep(moment)
            seen.append(not ended.is_set())
            kill_one(client, rng)

        killer = threading.Thread(target=kill)
        killer.start()
        model = SVMLClassifier(**QUICK).fit(X, y)
        ended.set()
        killer.join()
        during += seen[0]
        assert bits(model) == expected, turn
    assert during == 20


def test_a_worker_that_joins_is_used(small, expected, impatient, monkeypatch):
    moved = []
    move = _cluster.Rows._move
    monkeypatch.setattr(_cluster.Rows, "_move", lambda self, part, to: (moved.append(to), move(self, part, to)))
    with cluster_of(1) as growing, distributed.Client(growing, set_as_default=False) as client:
        first = set(client.nthreads())

        def grow(step):
            if len(growing.workers) == 1:
                growing.scale(2)
                wait_for(client, 2)
                time.sleep(0.2)

        model = SVMLClassifier(client=client, callbacks=grow, **QUICK).fit(*lazily(*small))
        assert bits(model) == expected
        assert moved and not first & set(moved)


def test_no_worker_left(small, impatient):
    with cluster_of(1) as shrinking, distributed.Client(shrinking, set_as_default=False) as client:

        def shrink(step):
            if step["iteration"] == 0:
                shrinking.scale(0)

        with pytest.raises(ClusterError, match="no worker is left: there has been none for 2 seconds; start workers"):
            SVMLClassifier(client=client, callbacks=shrink, **QUICK).fit(*lazily(*small))
        with pytest.raises(ClusterError, match="no worker is left"):
            SVMLClassifier(client=client, **QUICK).fit(*lazily(*small))


@pytest.mark.filterwarnings("ignore")
def test_the_scheduler_is_gone(small, impatient):
    # Closing a cluster without a scheduler waits for it.
    quick = dask.config.set({"distributed.comm.timeouts.connect": "1s"})
    with quick, cluster_of(1) as dying, distributed.Client(dying, set_as_default=False) as client:

        def close(step):
            if step["iteration"] == 0:
                dying.sync(dying.scheduler.close)

        with pytest.raises(ClusterError, match="scheduler"):
            SVMLClassifier(client=client, callbacks=close, **QUICK).fit(*lazily(*small))


def test_other_versions_are_refused(client, small):
    X, y = lazily(*small)
    worker = sorted(client.nthreads())[0]

    def pretend(version):
        def change():
            import svml

            svml.__version__ = version

        client.run(change, workers=[worker])

    both = f"{worker} has svml 0.0.9, but the driver has svml {svml.__version__}; install"
    try:
        pretend("0.0.9")
        with pytest.raises(VersionError, match=both):
            SVMLClassifier(**QUICK).fit(X, y)
        pretend(svml.__version__)
        # One that joins later is like one that changes: its tasks find out.
        with pytest.raises(VersionError, match=both):
            SVMLClassifier(callbacks=lambda step: pretend("0.0.9") and None, **QUICK).fit(X, y)
    finally:
        pretend(svml.__version__)


def test_a_task_out_of_memory(client, small):
    X, y = lazily(*small)

    def too_much(block):
        raise MemoryError("cannot allocate")

    with pytest.raises(WorkerMemoryError, match="ran out of memory .cannot allocate.; give workers more"):
        SVMLClassifier().fit(X.map_blocks(too_much, dtype=float, meta=np.empty((0, 4))), y)


@pytest.mark.filterwarnings("ignore")
def test_workers_that_die_over_a_task(small):
    X, y = lazily(*small)

    def die(block):
        os.kill(os.getpid(), signal.SIGKILL)

    with cluster_of(2) as dying, distributed.Client(dying, set_as_default=False) as client:
        dying.scheduler.allowed_failures = 0
        with pytest.raises(MemoryError, match="workers died again and again.*give workers more memory"):
            SVMLClassifier(client=client).fit(X.map_blocks(die, dtype=float, meta=np.empty((0, 4))), y)


@pytest.mark.filterwarnings("ignore")
def test_rows_that_cannot_be_made_again(small):
    X, y = small
    with cluster_of(2) as losing, distributed.Client(losing, set_as_default=False) as client:
        worker = sorted(client.nthreads())[0]
        held = client.scatter(X, workers=[worker], hash=False)
        pids = client.run(os.getpid)
        dX = da.from_delayed(dask.delayed(held), X.shape, X.dtype)
        done = []

        def kill(step):
            if not done:
                done.append(True)
                os.kill(pids[worker], signal.SIGKILL)

        with pytest.raises(ClusterError, match="cannot be recomputed.*read from files"):
            SVMLClassifier(client=client, callbacks=kill, **QUICK).fit(dX, da.from_array(y, chunks=-1))


def test_partitions_that_change_are_noticed(client):
    plan = _cluster.Plan(svml.__version__, np.array([0, 1]), 4, None)
    part = client.submit(_cluster.cut, plan, _cluster.Table(np.zeros((3, 4)), np.zeros(3, int), None), 7, 4, 0, 0)
    with pytest.raises(ClusterError, match="partition 7 had 4 rows when it was first read, but has 3 now"):
        part.result()


# Watching


def test_callbacks_and_time_limit(client, small):
    X, y = lazily(*small)
    steps = []
    model = SVMLClassifier(callbacks=steps.append, **QUICK).fit(X, y)
    assert [step["iteration"] for step in steps] == model.trace_["iteration"].tolist()
    ended = SVMLClassifier(callbacks=lambda step: len(steps) > 0, **QUICK).fit(X, y)
    assert ended.stop_reason_ == "interrupted"
    started = time.monotonic()
    slow = lambda step: time.sleep(1)  # noqa: E731
    limited = SVMLClassifier(tol=0, max_iter=10**6, time_limit=3, callbacks=slow, **QUICK).fit(X, y)
    assert limited.stop_reason_ == "time_limit" and time.monotonic() - started < 30
    assert limited.score(X, y) > 0.7
    with pytest.raises(TimeoutError, match="raise time_limit"):
        SVMLClassifier(time_limit=1e-6).fit(X, y)


PROGRAM = """
import os, signal, sys, threading, time
import dask.array as da, numpy as np
from distributed import Client, LocalCluster
from svml import _cluster
from svml.dask import SVMLClassifier

when = sys.argv[1]


def slow(block):
    time.sleep(5)
    return block


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


class Rows(_cluster.Rows):
    def ask(self, stage, *question):
        if when == "question" and stage == "gradient":
            threading.Timer(0, interrupt).start()
            time.sleep(0.2)
        return super().ask(stage, *question)


def in_callback(step):
    if when == "callback" and step["iteration"] == 3:
        interrupt()
        time.sleep(0.2)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X = da.from_array(X, chunks=(700, 4))
    import svml.dask

    svml.dask.Rows = Rows
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        model = SVMLClassifier(form="diagonal", landmarks=40, tol=0, max_iter=10**6, callbacks=in_callback)
        if when == "reading":
            threading.Timer(2, interrupt).start()
            X = X.map_blocks(slow, dtype=float, meta=np.empty((0, 4)))
        try:
            model.fit(X, y)
            print("kept", model.stop_reason_, model.predict(X).compute().shape)
        except KeyboardInterrupt:
            print("interrupted")
"""


@pytest.mark.parametrize("when", ["callback", "question", "reading"])
def test_an_interrupt_keeps_the_best_so_far(when, tmp_path):
    """In a process of its own, by a real signal; while rows are read there is nothing to keep."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, str(program), when], capture_output=True, text=True, timeout=120)
    expected = "interrupted" if when == "reading" else "kept interrupted (3000,)"
    assert done.stdout.strip() == expected, done.stderr


def test_the_dashboard_shows_stages(client, small):
    plugin_seen = set()

    def keys(dask_scheduler):
        return [prefix for prefix in dask_scheduler.task_prefixes if prefix.startswith("svml-")]

    SVMLClassifier(**QUICK).fit(*lazily(*small))
    plugin_seen.update(client.run_on_scheduler(keys))
    stages = {"read", "look", "part", "columns", "draw", "weights", "train", "gradient", "sum", "setting"}
    assert {f"svml-{stage}" for stage in stages} <= plugin_seen


def test_nothing_is_left_on_the_workers(client, small):
    model = SVMLClassifier(**QUICK).fit(*lazily(*small))

    def left(dask_scheduler):
        return [key for key in dask_scheduler.tasks if str(key).startswith("svml-")]

    for _ in range(50):
        if not client.run_on_scheduler(left):
            break
        time.sleep(0.1)
    assert client.run_on_scheduler(left) == [] and model.n_features_in_ == 4


def test_the_program_of_the_guide(tmp_path):
    import re

    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "dask.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert blocks
    program = tmp_path / "program.py"
    program.write_text(blocks[0])
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
