"""One fit on a Dask cluster of this computer: how its time grows with workers and rows, and what a network would add.

    python3 benches/dask_scaling.py [--rows N ...] [--workers N ...] [--latency SECONDS ...] [--form FORM]
                                    [--landmarks M ...] [--memory-limit BYTES] [--n-jobs N]
                                    [--empty [--parts N ...]]
                                    [--results FILE.jsonl]

Workers are processes with one thread. Data are generated on them, chunk by chunk: 100 normal columns, of which 10
matter, and two classes. A line is written for each fit: its seconds, those in questions to the rows, the share outside,
seconds of processor time of driver and workers, which other programs on the computer hardly change,
and for each stage the number of questions, their seconds and most bytes of the setting, the question and the answer. The
latency is waited in addition to each question. With --empty only questions to parts of 10 rows are timed, which cost nothing
themselves; --parts says to how many.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from svml import _cluster
from svml.dask import SVMLClassifier

COLUMNS = 100
CHUNK = 65_536


def generated(rows, chunk=None, columns=COLUMNS):
    """Rows and classes that are made by tasks, so that a lost chunk is made again."""
    # At least eight chunks, so that two workers have the same number of rows.
    chunk = chunk or min(CHUNK, -(-rows // 8))
    sizes = tuple(min(chunk, rows - first) for first in range(0, rows, chunk))

    def make(block_info=None):
        place = block_info[None]["chunk-location"][0]
        random = np.random.default_rng((0, place))
        x = random.standard_normal((sizes[place], columns), dtype=np.float32)
        side = np.sin(1.5 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 3]) - 0.4
        side += 0.15 * x[:, 4:10].sum(1) + 0.3 * random.standard_normal(len(x))
        return np.column_stack([x, side > 0]).astype(np.float32)

    table = da.map_blocks(make, chunks=(sizes, (columns + 1,)), dtype=np.float32, meta=np.empty((0, 0), np.float32))
    return table[:, :-1], table[:, -1].astype(np.int64)


class Log:
    """Notes every question of a fit, and adds a latency to it."""

    def __init__(self, latency=0.0):
        self.latency = latency
        self.asked = []
        self.original = _cluster.Rows.ask

    def __enter__(self):
        log = self

        def ask(rows, stage, number, setting, question):
            started = time.perf_counter()
            answer = log.original(rows, stage, number, setting, question)
            time.sleep(log.latency)
            seconds = time.perf_counter() - started
            log.asked.append((stage, seconds, number, len(setting or b""), len(question), len(answer)))
            return answer

        _cluster.Rows.ask = ask
        return self

    def __exit__(self, *_error):
        _cluster.Rows.ask = self.original

    def by_stage(self):
        # Settings with as many landmarks have about as many bytes.
        stages = defaultdict(list)
        for stage, *values in self.asked:
            stages[stage, round(values[2] / 1e5)].append(values)
        return [
            {
                "stage": stage,
                "questions": len(values),
                "seconds": round(sum(value[0] for value in values), 3),
                "median_seconds": round(statistics.median(value[0] for value in values), 4),
                "setting_bytes": max(value[2] for value in values),
                "question_bytes": max(value[3] for value in values),
                "answer_bytes": max(value[4] for value in values),
            }
            for (stage, _), values in stages.items()
        ]


def measured(workers, rows, latency=0.0, **params):
    """One fit on a cluster of its own."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit="6GB") as cluster,
        Client(cluster) as client,
        Log(latency) as log,
    ):
        X, y = generated(rows)
        before, own = client.run(time.process_time), time.process_time()
        started = time.perf_counter()
        model = SVMLClassifier(**params).fit(X, y)
        seconds = time.perf_counter() - started
        own = time.process_time() - own
        workers_cpu = [now - before[worker] for worker, now in client.run(time.process_time).items()]
    asked = sum(question[1] for question in log.asked)
    return {
        "workers": workers,
        "rows": rows,
        "latency": latency,
        "params": params,
        "seconds": round(seconds, 2),
        "in_questions": round(asked, 2),
        "driver_cpu": round(own, 2),
        "workers_cpu": [round(cpu, 2) for cpu in workers_cpu],
        "share_outside": round(1 - asked / seconds, 3),
        "questions": len(log.asked),
        "settings": len({question[2] for question in log.asked} - {None}),
        "honest_error": model.honest_error_,
        "stages": log.by_stage(),
    }


def empty(workers, parts):
    """Seconds of a question that costs nothing: its way there and back, with a task for each part."""
    _cluster.TASKS_PER_WORKER = parts
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        Log() as log,
    ):
        X, y = generated(10 * parts, 10, 4)
        for _ in range(3):
            log.asked.clear()
            SVMLClassifier(form="diagonal", landmarks=10).fit(X, y)
    seconds = sorted(question[1] for question in log.asked)
    return {
        "workers": workers,
        "parts": parts,
        "empty_questions": len(seconds),
        "least": round(seconds[0], 4),
        "median": round(statistics.median(seconds), 4),
        "largest": round(seconds[-1], 4),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--latency", type=float, nargs="+", default=[0.0])
    parser.add_argument("--form", default="auto")
    parser.add_argument("--landmarks", type=int, nargs="+", default=[None])
    parser.add_argument("--memory-limit", type=int, default=None, help="of each worker; 1: nothing is kept")
    parser.add_argument("--n-jobs", type=int, default=None, help="threads of the driver")
    parser.add_argument("--empty", action="store_true")
    parser.add_argument("--parts", type=int, nargs="+", default=[8], help="with --empty")
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()

    def note(result):
        line = json.dumps(result)
        print(line, flush=True)
        if given.results:
            with given.results.open("a") as file:
                file.write(line + "\n")

    for workers in given.workers:
        if given.empty:
            for parts in given.parts:
                note(empty(workers, parts))
            continue
        for rows in given.rows:
            for landmarks in given.landmarks:
                for latency in given.latency:
                    more = {} if landmarks is None else {"landmarks": landmarks}
                    more |= {"memory_limit": given.memory_limit, "n_jobs": given.n_jobs}
                    note(measured(workers, rows, latency, form=given.form, **more))


if __name__ == "__main__":
    main()
