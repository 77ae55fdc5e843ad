"""Other programs on the tables and splits of `study accuracy`, and our times beside scikit-learn's.

    python3 study/peers.py [--splits N] [--first-seed S] [--results FILE] [TABLE..]
    python3 study/peers.py --times [--results FILE] [TABLE..]

makes a virtual environment under target/, builds the study, asks it for the rows of each split, and appends a line for
each job to the results file (study/results/peers.jsonl, study/results/times_default.jsonl). Jobs that are there are not
done again: a run that was interrupted goes on where it stopped.

| method | what it is |
|---|---|
| svc | GridSearchCV of SVC: 20 settings, 5 folds; columns standardised, text one-hot, missing values filled by median or most frequent; probabilities by Platt's method, in a further fit that the seconds leave out |
| forest | RandomForestClassifier of 500 trees; text as codes, missing values as they are |
| boosting | HistGradientBoostingClassifier with its defaults; text as codes, missing values as they are |
| catboost | CatBoostClassifier with its defaults; text as categories, missing values as they are |

With --times: the default of svml and the grid search of scikit-learn, each with two threads or processes, in turns on
the same rows, three times each. Scaling is part of the time, reading is not.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from computer import environment, processor

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PACKAGES = ["scikit-learn==1.9.1", "catboost==1.2.10", "pandas", "numpy"]
METHODS = ["svc", "forest", "boosting", "catboost"]
TIMED = ["credit", "diabts", "cmc", "german", "vehicle", "splice", "page", "satimage"]
THREADS = 2
REPEATS = 3
BINS = 10


def study(*arguments):
    """What the study prints."""
    command = [TARGET / "release" / "study", *map(str, arguments)]
    told = dict(os.environ, RAYON_NUM_THREADS=str(THREADS))
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=told).stdout


def source(options):
    return ["--data", options.data, *(["--suite", options.suite] if options.suite else [])]


def commit():
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    said = subprocess.run(command, capture_output=True, text=True)
    return said.stdout.strip() or "commit not known"


def header():
    import catboost
    import numpy
    import sklearn

    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} threads, {platform.system().lower()} {platform.machine()}",
        "versions": f"svml at {commit()}, scikit-learn {sklearn.__version__}, CatBoost {catboost.__version__}, "
        f"numpy {numpy.__version__}, Python {platform.python_version()}",
    }


class Results:
    """The lines of a results file, and the file that further ones are appended to."""

    def __init__(self, path):
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        self.lines = [json.loads(line) for line in whole.splitlines()]
        self.headers = [line for line in self.lines if "date" in line]
        self.done = {(l["data"], l["seed"], l["method"]) for l in self.lines if "method" in l}
        # A last line that was cut off is taken away.
        self.file = path.open("r+" if path.exists() else "w")
        self.file.truncate(len(whole.encode()))
        self.file.seek(0, os.SEEK_END)

    def begin(self):
        """Says where and when the lines that follow are measured, unless the file says so last."""
        if self.headers[-1:] != [header()]:
            self.headers.append(header())
            self.append(self.headers[-1])

    def append(self, line):
        self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())


class Split:
    """Rows to train on and to test on."""

    def __init__(self, text):
        import numpy as np

        told = json.loads(text)
        rows = [(np.array(part["x"], dtype=float), np.array(part["y"])) for part in (told["train"], told["test"])]
        # Columns without any value say nothing.
        used = ~np.isnan(rows[0][0]).all(axis=0)
        (self.x, self.y), (self.x_test, self.y_test) = [(x[:, used], y) for x, y in rows]
        levels = np.array([column["levels"] for column in told["columns"]])[used]
        self.text = [int(k) for k in np.flatnonzero(levels)]
        self.numbers = [int(k) for k in np.flatnonzero(levels == 0)]
        self.classes = len(told["classes"])


def grid(split, jobs):
    """Preparation and grid search."""
    import numpy as np
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC

    class Search:
        def fit(self):
            encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            self.prepare = make_pipeline(
                ColumnTransformer([
                    ("numbers", SimpleImputer(strategy="median"), split.numbers),
                    ("text", make_pipeline(SimpleImputer(strategy="most_frequent"), encoder), split.text),
                ]),
                StandardScaler(),
            )
            x = self.prepare.fit_transform(split.x)
            d = x.shape[1]
            settings = {"gamma": [1 / (w * d) for w in (4, 2, 1, 0.5, 0.25)], "C": [0.1, 1, 10, 100]}
            self.search = GridSearchCV(SVC(), settings, cv=5, n_jobs=jobs).fit(x, split.y)
            return self

        def test(self):
            """Predictions, probabilities and, of two classes, decision values."""
            x, x_test = self.prepare.transform(split.x), self.prepare.transform(split.x_test)
            calibrated = SVC(probability=True, random_state=0, **self.search.best_params_).fit(x, split.y)
            scores = self.search.decision_function(x_test) if len(self.search.classes_) == 2 else None
            return self.search.predict(x_test), calibrated.predict_proba(x_test), self.search.classes_, scores

    return Search()


def fitted(method, split):
    """Seconds, predictions, probabilities with their classes, and scores of two classes if they are not those."""
    import numpy as np

    started = time.perf_counter()
    if method == "svc":
        search = grid(split, THREADS).fit()
        return time.perf_counter() - started, *search.test()
    x, x_test = split.x, split.x_test
    if method == "forest":
        from sklearn.ensemble import RandomForestClassifier

        model = RandomForestClassifier(500, n_jobs=THREADS, random_state=0)
    elif method == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(random_state=0)
    else:
        import pandas
        from catboost import CatBoostClassifier

        def frame(x):
            of = pandas.DataFrame(x)
            for k in split.text:
                of[k] = ["?" if np.isnan(v) else str(int(v)) for v in x[:, k]]
            return of

        x, x_test = frame(x), frame(x_test)
        folder = {"allow_writing_files": False}
        model = CatBoostClassifier(
            cat_features=split.text, silent=True, thread_count=THREADS, random_seed=0, **folder
        )
    model.fit(x, split.y)
    seconds = time.perf_counter() - started
    predicted = np.asarray(model.predict(x_test)).ravel()
    return seconds, predicted, model.predict_proba(x_test), np.asarray(model.classes_), None


def area(scores, positive):
    """Area under the ROC curve, equal scores counting half; None if there is one class only."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(positive, scores)) if 0 < positive.sum() < len(positive) else None


def measure(method, split):
    """What `study/src/probabilities.rs` measures, of another program."""
    import numpy as np

    seconds, predicted, given, classes, scores = fitted(method, split)
    y = split.y_test
    p = np.zeros((len(y), split.classes))
    p[:, classes.astype(int)] = given
    log_loss = float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)).mean())
    if split.classes == 2:
        auc = area(p[:, 1] if scores is None else scores, y == 1)
    else:
        areas = [a for a in (area(p[:, c], y == c) for c in range(split.classes)) if a is not None]
        auc = float(np.mean(areas)) if areas else None
    best, top = p.argmax(axis=1), p.max(axis=1)
    place = np.minimum((top * BINS).astype(int), BINS - 1)
    bins = [
        [float((place == b).sum()), float(top[place == b].sum()), float((best == y)[place == b].sum())]
        for b in range(BINS)
    ]
    found = {"error": float(np.mean(predicted != y)), "seconds": seconds, "log_loss": log_loss}
    return found | ({"auc": auc} if auc is not None else {}) | {"bins": bins}


def peers(options):
    """Every method on every split: the first split of all tables, then the second, and so on."""
    results = Results(options.results or "study/results/peers.jsonl")
    tables = json.loads(study("splits", "--first-seed", options.first_seed))
    check(options, [table["data"] for table in tables])
    tables = [table for table in tables if not options.tables or table["data"] in options.tables]
    plan = [
        (split, table["rows"], table["data"], table["first_seed"] + split)
        for table in tables
        for split in range(min(table["splits"], options.splits))
    ]
    plan = [(data, seed) for *_, data, seed in sorted(plan)]
    begun, began = False, time.monotonic()
    for number, (data, seed) in enumerate(plan):
        methods = [method for method in METHODS if (data, seed, method) not in results.done]
        if not methods:
            continue
        split = Split(study("rows", *source(options), data, seed))
        if not begun:
            results.begin()
            begun = True
        spent = []
        for method in methods:
            line = {"data": data, "seed": seed, "method": method} | measure(method, split)
            results.append(line)
            spent.append(f"{method} {line['seconds']:.1f} s")
        minutes = (time.monotonic() - began) / 60
        print(f"{minutes:5.1f} min, {number + 1} of {len(plan)}: {data} {seed}: {', '.join(spent)}", flush=True)


def times(options):
    """Ours and scikit-learn's in turns."""
    results = Results(options.results or "study/results/times_default.jsonl")
    check(options, TIMED)
    # What the first search loads is no part of the times.
    grid(Split(study("rows", *source(options), "haber", options.first_seed)), THREADS).fit()
    results.begin()
    for data in options.tables or TIMED:
        split = Split(study("rows", *source(options), data, options.first_seed))
        for repeat in range(REPEATS):
            # The times of one job are told apart by their number.
            name = {"data": data, "seed": repeat}
            if (data, repeat, "default") not in results.done:
                ours = json.loads(study("fit", *source(options), data, options.first_seed))
                results.append(name | {"method": "default", "error": ours["error"], "seconds": ours["seconds"]})
                print(f"{data}: default {ours['seconds']:.2f} s", flush=True)
            if (data, repeat, "svc") not in results.done:
                started = time.perf_counter()
                search = grid(split, THREADS).fit()
                seconds = time.perf_counter() - started
                wrong = search.search.predict(search.prepare.transform(split.x_test)) != split.y_test
                line = {"method": "svc", "error": float(wrong.mean()), "seconds": seconds}
                results.append(name | line)
                print(f"{data}: svc {seconds:.2f} s", flush=True)


def check(options, known):
    if unknown := set(options.tables) - set(known):
        sys.exit(f"{', '.join(sorted(unknown))}: not one of {', '.join(known)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=os.environ.get("SVML_DATA", "../shared/data"))
    parser.add_argument("--suite", help="folder of the further tables, if it is not suite in that of the data")
    parser.add_argument("--results", help="results file, one line for each job")
    parser.add_argument("--splits", type=int, default=1000, help="most splits of each table")
    parser.add_argument("--first-seed", type=int, default=3000, help="seed of the first split")
    parser.add_argument("--times", action="store_true", help="times of the default and of scikit-learn's grid search")
    parser.add_argument("--no-build", action="store_true", help="take the study that was built before")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    options = parser.parse_args()
    if not options.inside:
        if not options.no_build:
            subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "study"], check=True, cwd=ROOT)
        done = subprocess.run([environment(TARGET / "peers-venv", PACKAGES), __file__, "--inside", *sys.argv[1:]])
        return done.returncode
    # Threads of boosting wait for one another in loops, which other work on the computer makes very slow.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Warnings of processes that a search starts as well.
    os.environ["PYTHONWARNINGS"] = "ignore"
    import warnings

    warnings.filterwarnings("ignore")
    return times(options) if options.times else peers(options)


if __name__ == "__main__":
    sys.exit(main())
