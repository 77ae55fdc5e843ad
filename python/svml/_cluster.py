"""Rows on the workers of a Dask cluster: they are read once, stay there as parts, and answer questions.

The first half of this module runs on workers, as tasks; `Rows`, at its end, is the driver's side. Dask carries bytes and
says which worker does what. A part that is lost with its worker is made again from the partition that it was cut from,
by Dask's own means, and an answer depends on rows and question alone, so that nothing else has to be made again.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from uuid import uuid4

import distributed
import numpy as np
from dask.delayed import delayed
from distributed.system import MEMORY_LIMIT
from numpy.typing import NDArray
from sklearn.utils.validation import assert_all_finite, check_array, column_or_1d

import svml
from svml import _core, _frames

# Rows of these types become parts without a copy in between.
KEPT = [np.float64, np.float32]
# Most labels that a partition tells of; more classes than that are an error in any case.
MOST_LABELS = 1_000
# So many things are added, or looked at together, by one task; a power of two, so that sums are those of neighbours.
FAN_IN = 16
# A question that takes fewer bytes than this, for all tasks together, travels with them; another is sent once.
WITH_TASKS = 1_000_000
# For each worker there are at least so many tasks of a question, if there are enough parts.
TASKS_PER_WORKER = 4
# Seconds between two looks at an interrupt, and between two looks at the workers.
POLL = 0.05
LOOK = 2.0
# Seconds without a worker, or without the scheduler, after which a fit gives up.
PATIENCE = 30.0


class ClusterError(RuntimeError):
    """The cluster cannot go on with a fit: its workers, its scheduler or the rows are gone."""


class VersionError(ClusterError):
    """A worker has another version of svml than the driver."""


class WorkerMemoryError(ClusterError, MemoryError):
    """Workers died over a task again and again, most likely because their memory was too small for it."""


# On workers


@dataclass(frozen=True)
class Reading:
    """How partitions are read: the same for all."""

    version: str
    columns: int
    # Whether columns may hold texts, and the places of those that hold text in any case.
    texts: bool
    text: tuple[int, ...]
    allow_nan: bool


@dataclass(frozen=True)
class Table:
    """A partition that was read: rows, labels and weights."""

    x: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None


@dataclass(frozen=True)
class Seen:
    """What is known of some partitions: the rows of each, the labels with their weights, and how columns may be read."""

    rows: tuple[int, ...]
    labels: NDArray[Any]
    weights: NDArray[np.float64]
    summary: _core.Summary | None


@dataclass(frozen=True)
class Plan:
    """How partitions become parts: the same for all. Labels that are not in `classes` do not count."""

    version: str
    classes: NDArray[Any]
    columns: int
    schema: _core.Schema | None


class Held:
    """A part in the memory of a worker; those that live share what may be kept."""

    __slots__ = ("__weakref__", "part")

    def __init__(self, part: _core.Part) -> None:
        self.part = part
        HELD.add(self)

    def __reduce__(self) -> tuple[type[Held], tuple[_core.Part]]:
        return type(self), (self.part,)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.part.nbytes


# The parts of this process, and the lock that has them answer one after the other, each with all threads.
HELD: weakref.WeakSet[Held] = weakref.WeakSet()
ONE = threading.Lock()


def check_version(version: str) -> None:
    """Refuses to work for a driver of another version."""
    if svml.__version__ != version:
        where = distributed.get_worker().address
        raise VersionError(other_version(where, svml.__version__, version))


def other_version(worker: str, found: str | None, version: str) -> str:
    """The words for a worker that may not be used."""
    has = "no svml that can be imported" if found is None else f"svml {found}"
    return (
        f"worker {worker} has {has}, but the driver has svml {version}; install the same version of svml[dask] on all "
        "workers and on the driver"
    )


def read(reading: Reading, place: int, x: Any, y: Any, weights: Any) -> Table:
    """Checks a partition, as the ordinary estimator checks all rows."""
    check_version(reading.version)
    with in_partition(place):
        if not reading.texts:
            finite = "allow-nan" if reading.allow_nan else True
            x = check_array(
                x,
                dtype=KEPT,
                ensure_min_samples=0,
                ensure_all_finite=finite,
                input_name="X",
                estimator="SVMLClassifier",
            )
        y = column_or_1d(np.asarray(y))
        assert_all_finite(y, input_name="y")
        if x.shape[1] != reading.columns:
            raise ValueError(f"X has {x.shape[1]} columns here, but {reading.columns} elsewhere")
        if np.ndim(weights) == 0 and weights is not None:
            weights = np.full(len(x), weights)
        if weights is not None:
            weights = check_array(
                np.asarray(weights), dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="sample_weight"
            )
            if weights.ndim != 1:
                raise ValueError("Sample weights must be 1D array or scalar")
            if np.any(weights < 0):
                raise ValueError("Negative values in data passed to `sample_weight`")
        lengths = {len(x), len(y)} | (set() if weights is None else {len(weights)})
        if len(lengths) > 1:
            found = f"{len(x)} rows, {len(y)} labels" + ("" if weights is None else f", {len(weights)} weights")
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {found}")
    return Table(x, y, weights)


class in_partition:
    """Errors about data say in which partition it is."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, _trace: Any) -> None:
        if kind in (ValueError, TypeError, _frames.ColumnTypeError):
            raise kind(f"in partition {self.place}: {error}") from error


def look(table: Table, place: int, reading: Reading) -> Seen:
    """What is known of a partition."""
    labels, places = np.unique(table.y, return_inverse=True)
    weights = np.bincount(places.ravel(), weights=table.weights, minlength=len(labels)).astype(np.float64)
    with in_partition(place):
        summary = _core.Summary(_frames.columns_of(table.x, text=reading.text)) if reading.texts else None
    return Seen((len(table.y),), labels[:MOST_LABELS], weights[:MOST_LABELS], summary)


def look_together(seen: Sequence[Seen]) -> Seen:
    """What is known of partitions, in their order."""
    rows = tuple(rows for one in seen for rows in one.rows)
    # A partition without rows says nothing of the type of labels.
    full = [one for one in seen if sum(one.rows)] or seen[:1]
    labels, places = np.unique(np.concatenate([one.labels for one in full]), return_inverse=True)
    weights = np.bincount(places.ravel(), weights=np.concatenate([one.weights for one in full]), minlength=len(labels))
    summaries = [one.summary for one in seen if one.summary is not None]
    while len(summaries) > 1:
        summaries = [pair[0] if len(pair) == 1 else pair[0].merge(pair[1]) for pair in by_number(summaries, 2)]
    return Seen(rows, labels, weights.astype(np.float64), summaries[0] if summaries else None)


def cut(plan: Plan, table: Table, place: int, rows: int, first: int, number: int) -> Held:
    """The part with this number, from the rows of a partition that begin at `first`."""
    check_version(plan.version)
    if len(table.y) != rows:
        raise ClusterError(
            f"partition {place} had {rows} rows when it was first read, but has {len(table.y)} now; rows that are read "
            "again after the loss of a worker must be the same, so give random data a seed and do not change files "
            "during a fit"
        )
    within = slice(first, first + _core.part_rows())
    x = table.x.iloc[within] if hasattr(table.x, "iloc") else table.x[within]
    coded = [False] * plan.columns
    if plan.schema is not None:
        with in_partition(place):
            x = plan.schema.encode(_frames.columns_of(x), worker_threads(None))
        coded = plan.schema.coded
    y = table.y[within].astype(plan.classes.dtype, copy=False)
    places = np.minimum(np.searchsorted(plan.classes, y), len(plan.classes) - 1).astype(np.int64)
    weights = np.ones(len(y)) if table.weights is None else table.weights[within]
    # A row of weight 0 may be of any class.
    weights = np.where(plan.classes[places] == y, weights, 0.0)
    return Held(_core.Part(x, places, weights, number, len(plan.classes), coded))


def same(value: Any) -> Any:
    """A value as it is: a task of this has it on a worker."""
    return value


def worker_threads(n_jobs: int | None) -> int:
    """Threads of a task: all that the worker has, or as many as are wanted."""
    threads = int(distributed.get_worker().state.nthreads)
    return threads if n_jobs is None or n_jobs < 1 else min(n_jobs, threads)


def share_to_keep(memory_limit: int | None) -> int:
    """Bytes that a part may keep for the next question: a quarter of the limit of the worker is for all its parts."""
    limit = memory_limit or distributed.get_worker().memory_manager.memory_limit or MEMORY_LIMIT
    return int(limit) // 4 // max(1, len(HELD))


def answer(
    version: str,
    parts: Sequence[Held],
    setting: bytes | None,
    question: bytes,
    memory_limit: int | None,
    n_jobs: int | None,
) -> bytes:
    """The answer of parts that are neighbours."""
    check_version(version)
    threads = worker_threads(n_jobs)
    with ONE:
        keep = share_to_keep(memory_limit)
        return total(held.part.answer(setting, question, keep, threads) for held in parts)


def total(answers: Iterable[bytes]) -> bytes:
    """The sum of answers: neighbours two by two, then their sums two by two, of which few are held at a time."""
    # At place k a sum of 2^k answers, if there is one.
    sums: list[bytes | None] = []
    for answer in answers:
        found: bytes = answer
        for place, before in enumerate(sums):
            if before is None:
                sums[place] = found
                break
            sums[place], found = None, _core.add_answers(before, found)
        else:
            sums.append(found)
    return reduce(
        lambda after, before: _core.add_answers(before, after), (found for found in sums if found is not None)
    )


def by_number(things: Sequence[Any], count: int) -> list[Any]:
    """Things in groups of so many, in their order; the last may have fewer."""
    return [things[first : first + count] for first in range(0, len(things), count)]


# On the driver


def client_of(given: Any) -> distributed.Client:
    """The client that is given, or the current one."""
    client = given
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client; create one first, as in distributed.Client(), or pass it as client="
            ) from None
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a distributed.Client or None, got {type(client).__name__}")
    if client.asynchronous:
        raise ValueError("the client is asynchronous; a fit needs a synchronous one, Client(..., asynchronous=False)")
    return client


@dataclass
class Watched:
    """What ends a fit from outside."""

    flag: _core.Flag
    deadline: float | None

    def over(self) -> bool:
        """Whether it is to end."""
        return self.flag.is_set() or (self.deadline is not None and time.monotonic() >= self.deadline)


class Rows:
    """The rows of a fit on the workers of a cluster. Leaving the context lets go of them and cancels what runs."""

    def __init__(
        self, client: distributed.Client, watched: Watched, memory_limit: int | None, n_jobs: int | None
    ) -> None:
        self.client = client
        self.watched = watched
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.version = svml.__version__
        self.token = uuid4().hex[:8]
        self.tables: list[Any] = []
        self.parts: list[Any] = []
        self.group = 1
        self.workers: set[str] = set()
        self.settled = False
        self.looked = -math.inf
        self.setting: tuple[int, Any] | None = None
        self.questions = 0
        self.moves = 0
        self.running: Any = None
        self.lonely: float | None = None

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, *_error: Any) -> None:
        self._cancel()
        self.tables, self.parts, self.setting = [], [], None

    def check_workers(self) -> None:
        """Refuses workers of another version before anything is read."""

        # It travels by value, so that it runs where there is no such module.
        def version() -> str | None:
            try:
                import svml

                return str(svml.__version__)
            except ImportError:
                return None

        self._wait_for_a_worker()
        for worker, found in self._safely(lambda: self.client.run(version, on_error="return")).items():
            # One that dies meanwhile is no concern.
            if not isinstance(found, Exception) and found != self.version:
                raise VersionError(other_version(worker, found, self.version))

    def read(self, partitions: Sequence[tuple[Any, Any, Any]], reading: Reading) -> Seen:
        """Reads partitions, which are delayed, and tells what is known of them."""
        task = delayed(read, pure=False)
        tables = [
            task(reading, place, *partition, dask_key_name=f"svml-read-{self.token}-{place}")
            for place, partition in enumerate(partitions)
        ]
        self.tables = self.client.compute(tables)
        graph: dict[str, Any] = {
            f"svml-look-{self.token}-{place}": (look, table, place, reading)
            for place, table in enumerate(self.tables)
        }
        return self._result(self._added(graph, list(graph), look_together, "look"))

    def make_parts(self, seen: Seen, plan: Plan) -> None:
        """Cuts the partitions into parts, which stay; the partitions do not."""
        sent = self.client.submit(same, plan, key=f"svml-plan-{self.token}")
        graph: dict[str, Any] = {}
        for place, (table, rows) in enumerate(zip(self.tables, seen.rows)):
            for first in range(0, rows, _core.part_rows()):
                number = len(graph)
                graph[f"svml-part-{self.token}-{number}"] = (cut, sent, table, place, rows, first, number)
        if not graph:
            raise ValueError("Found array with 0 sample(s) while a minimum of 2 is required by SVMLClassifier.")
        self.parts = self.client.get(graph, list(graph), sync=False)
        # Each goes as soon as it is cut.
        self.tables = []
        self._wait(self.parts)
        self._see_workers()
        tasks = TASKS_PER_WORKER * max(1, len(self.workers))
        self.group = 1 << max(0, int(math.log2(max(1, len(self.parts) // tasks))))
        self._place()

    def ask(self, stage: str, number: int | None, setting: bytes | None, question: bytes) -> bytes:
        """The answer of all rows to a question, in bytes."""
        if self.watched.over():
            raise _core.Cancelled()
        self._see_workers()
        if not self.settled:
            self._place()
        self.questions += 1
        name = f"{self.token}-{self.questions}"
        groups = by_number(self.parts, self.group)
        about = self._sent(number, setting)
        said: Any = question
        if len(question) * len(groups) > WITH_TASKS:
            said = self.client.submit(same, question, key=f"svml-question-{name}")
        rest = (about, said, self.memory_limit, self.n_jobs)
        graph: dict[str, Any] = {
            f"svml-{stage}-{name}-{place}": (answer, self.version, group, *rest) for place, group in enumerate(groups)
        }
        return self._result(self._added(graph, list(graph), total, name))

    def _sent(self, number: int | None, setting: bytes | None) -> Any:
        """What questions are about: sent once, and made again by the scheduler where it is lost."""
        if number is None or setting is None:
            return None
        if self.setting is None or self.setting[0] != number:
            self.setting = None
            key = f"svml-setting-{self.token}-{self.questions}"
            self.setting = number, self.client.submit(same, setting, key=key)
        return self.setting[1]

    def _added(self, graph: dict[str, Any], keys: list[str], add: Callable[[Any], Any], name: str) -> Any:
        """Starts the tasks of a graph, with those that add up their results; the future of the sum."""
        level = 0
        while len(keys) > 1 or level == 0 and add is look_together:
            level += 1
            groups = by_number(keys, FAN_IN)
            keys = [f"svml-sum-{self.token}-{name}-{level}-{place}" for place in range(len(groups))]
            graph.update((key, (add, group)) for key, group in zip(keys, groups))
        return self.client.get(graph, keys[0], sync=False)

    def _result(self, future: Any) -> Any:
        self._wait([future])
        try:
            return future.result()
        except Exception as error:
            raise self._explained(error) from error

    def _wait(self, futures: list[Any]) -> None:
        """Waits until all are there, or until one of them cannot be."""
        self.running = futures
        left, done = Counter(futures=len(futures)), threading.Event()

        def count(future: Any) -> None:
            left["futures"] -= 1
            if left["futures"] <= 0 or future.status != "finished":
                done.set()

        for future in futures:
            future.add_done_callback(count)
        while not done.wait(POLL):
            if self.watched.over():
                self._cancel()
                raise _core.Cancelled()
            self._see_workers()
        failed = next((future for future in futures if future.status == "error"), None)
        if failed is not None:
            error = failed.exception()
            raise self._explained(error) from error
        if any(future.status != "finished" for future in futures):
            raise self._explained(concurrent.futures.CancelledError())
        self.running = None

    def _cancel(self) -> None:
        """Has the scheduler forget what runs; a task that a worker is at ends by itself."""
        running, self.running = self.running, None
        if running and self.client.status == "running":
            self.client.cancel(running)

    def _safely(self, call: Callable[[], Any]) -> Any:
        """Something asked of the scheduler, which may be gone."""
        try:
            return call()
        except (OSError, asyncio.TimeoutError, concurrent.futures.CancelledError) as error:
            raise self._explained(error) from error

    def _see_workers(self) -> None:
        """Looks at the workers from time to time; where there is none, waits for one."""
        if time.monotonic() - self.looked < LOOK:
            return
        if self.client.status != "running":
            raise self._explained(concurrent.futures.CancelledError())
        scheduler: Any = self.client.scheduler
        threads = self._safely(lambda: self.client.sync(scheduler.ncores, callback_timeout=PATIENCE))
        self.looked = time.monotonic()
        if set(threads) != self.workers:
            self.workers, self.settled = set(threads), False
        if self.workers:
            self.lonely = None
            return
        self.lonely = self.lonely or self.looked
        if self.looked - self.lonely >= PATIENCE:
            raise ClusterError(
                f"no worker is left: there has been none for {PATIENCE:g} seconds; start workers, with more memory if they "
                "were killed for using too much, and fit again"
            )

    def _wait_for_a_worker(self) -> None:
        self._see_workers()
        while not self.workers:
            if self.watched.over():
                raise _core.Cancelled()
            time.sleep(POLL)
            self._see_workers()

    def _place(self) -> None:
        """Moves parts so that neighbours that answer together lie together, and every worker has its share."""
        threads: Mapping[str, int] = self._safely(self.client.nthreads)
        holders = self._safely(lambda: self.client.who_has(self.parts))
        where = [next(iter(holders.get(part.key, ())), None) for part in self.parts]
        # What is being made again is placed later.
        self.settled = all(where) and bool(threads)
        groups = by_number(range(len(self.parts)), self.group)
        room = shares(threads, len(groups))
        for group, wanted in zip(groups, placed([[where[part] for part in group] for group in groups], room)):
            for part in group:
                if wanted is not None and where[part] not in (None, wanted):
                    self._move(part, wanted)

    def _move(self, part: int, worker: str) -> None:
        self.moves += 1
        key = f"svml-move-{self.token}-{part}-{self.moves}"
        self.parts[part] = self.client.submit(
            same, self.parts[part], key=key, workers=[worker], allow_other_workers=True
        )

    def _explained(self, error: BaseException) -> BaseException:
        """What went wrong with the cluster, with the way out; an error of a task is its own explanation."""
        if isinstance(error, ClusterError):
            return error
        if isinstance(error, distributed.KilledWorker):
            return WorkerMemoryError(
                f"workers died again and again over the same task ({error.task}), most likely because their memory was "
                "too small; give workers more memory, use more workers, make partitions smaller, or lower memory_limit, "
                "a quarter of which each worker uses as a cache"
            )
        if isinstance(error, MemoryError):
            return WorkerMemoryError(
                f"a worker ran out of memory ({error}); give workers more of it, use more workers, make partitions smaller, "
                "or lower memory_limit, a quarter of which each worker uses as a cache"
            )
        if not isinstance(
            error, (concurrent.futures.CancelledError, asyncio.CancelledError, OSError, asyncio.TimeoutError)
        ):
            return error
        if self.client.status != "running":
            return ClusterError(
                "the scheduler is gone, and the rows on its workers with it; start the cluster again, connect a new client "
                "and fit again"
            )
        if isinstance(error, OSError):
            return ClusterError(
                f"the cluster does not respond ({error}); check whether its scheduler is still running, and fit again"
            )
        return ClusterError(
            "rows were lost with a worker and cannot be recomputed: they had been scattered to the workers, or the cluster was "
            "restarted; fit on collections that are read from files or made by tasks, which Dask can repeat"
        )


def shares(threads: Mapping[str, int], count: int) -> dict[str, int]:
    """How many of `count` groups each worker has room for, by its threads; together they have room for all."""
    every = sum(threads.values())
    room = {worker: count * of // every for worker, of in sorted(threads.items())}
    rest = sorted(room, key=lambda worker: -(count * threads[worker] % every))
    for worker in rest[: count - sum(room.values())]:
        room[worker] += 1
    return room


def placed(holders: Sequence[Sequence[str | None]], room: dict[str, int]) -> Iterator[str | None]:
    """The worker for each group: one that holds most of it, if that has room, else the one with most room."""
    chosen: list[str | None] = [None] * len(holders)
    # Those that may stay as they are come first.
    for stays in (True, False):
        for place, held in enumerate(holders):
            if chosen[place] is not None or not any(held):
                continue
            most = Counter(worker for worker in held if worker is not None).most_common(1)[0][0]
            if room.get(most, 0) <= 0:
                if stays:
                    continue
                most = max(room, key=lambda worker: room[worker], default=most)
            if most in room:
                room[most] -= 1
            chosen[place] = most
    return iter(chosen)
