"""Runs scikit-learn's grid search on splits of the study: the same 20 settings, 5 folds, one process.

    python3 study/sklearn_times.py [--data DIR] [--results FILE] [--splits N] [SET..]

makes a virtual environment under target/, builds the study, asks it for the rows of each split, and appends to the
results file lines as the study itself writes them, with the method `sklearn-5`. Splits that are there are not timed
again. Scaling is part of the time, as it is there; reading is not.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from computer import environment, processor

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PACKAGES = ["scikit-learn==1.9.1"]
METHOD = "sklearn-5"
JOBS = 1
SETS = ["haber", "credit", "acredit", "trans", "diabts", "mammo", "cmc", "page", "gamma"]
# Splits of each set. Times vary little; on trans all are there to tell whether errors differ from the paper's here too.
SPLITS = dict.fromkeys(SETS, 20) | {"trans": 200, "gamma": 1}


def header():
    import datetime

    import numpy
    import sklearn

    system = f"{platform.system().lower()} {platform.machine()}"
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} threads, {system}",
        "versions": f"scikit-learn {sklearn.__version__} (n_jobs={JOBS}), numpy {numpy.__version__}, "
        f"Python {platform.python_version()}",
    }


def measure(rows):
    """Error, seconds, processor seconds, C and number of support vectors of one split."""
    import time

    import numpy as np
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    (x, y), (x_test, y_test) = [(np.array(rows[p]["x"]), np.array(rows[p]["y"])) for p in ("train", "test")]
    widths = [w * x.shape[1] for w in (4, 2, 1, 0.5, 0.25)]
    grid = {"gamma": [1 / w for w in widths], "C": [0.1, 1, 10, 100]}
    started, before = time.perf_counter(), time.process_time()
    scaler = StandardScaler().fit(x)
    search = GridSearchCV(SVC(), grid, cv=5, n_jobs=JOBS).fit(scaler.transform(x), y)
    seconds, processor = time.perf_counter() - started, time.process_time() - before
    error = float(np.mean(search.predict(scaler.transform(x_test)) != y_test))
    return error, seconds, processor, float(search.best_params_["C"]), int(search.best_estimator_.n_support_.sum())


def inside(options):
    """Runs in the virtual environment."""
    import warnings

    warnings.filterwarnings("ignore")
    path = Path(options.results)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text() if path.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    done = {(line["data"], line["seed"]) for line in lines if line.get("method") == METHOD}
    headers = [line for line in lines if "date" in line]
    with path.open("a") as file:

        def append(line):
            # The reader tells a header by its first name.
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
            file.flush()
            os.fsync(file.fileno())

        # What the first search loads is no part of the times.
        warm = json.loads(split(options.data, "haber", 0))
        measure(warm)
        begun = headers[-1:] == [header()]
        for name in options.sets or SETS:
            for k in range(min(options.splits, SPLITS[name])):
                rows = json.loads(split(options.data, name, k))
                if (name, rows["seed"]) in done:
                    continue
                if not begun:
                    append(header())
                    begun = True
                error, seconds, processor, cost, support = measure(rows)
                append({
                    "data": name, "seed": rows["seed"], "method": METHOD, "error": error, "seconds": seconds,
                    "processor": processor,
                    "form": "sphere", "cost": cost, "support": support,
                })
                print(f"{name} {k}: {seconds:.3f} s", file=sys.stderr, flush=True)


def split(data, name, k):
    command = [TARGET / "release" / "study", "split", "--data", data, name, str(k)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SVML_DATA", "../shared/data"))
    parser.add_argument("--results", default="study/results/sklearn.jsonl")
    parser.add_argument("--splits", type=int, default=200, help="most splits of each set")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("sets", nargs="*", metavar="SET")
    options = parser.parse_args()
    if unknown := set(options.sets) - set(SETS):
        parser.error(f"{', '.join(sorted(unknown))}: not one of {', '.join(SETS)}")
    if options.inside:
        return inside(options)
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "study"], check=True, cwd=ROOT)
    subprocess.run([environment(TARGET / "sklearn-venv", PACKAGES), __file__, "--inside", *sys.argv[1:]], check=True)


if __name__ == "__main__":
    main()
