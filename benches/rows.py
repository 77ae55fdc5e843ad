"""Time and memory of a default fit as the number of rows grows, beside scikit-learn's SVC, a grid of SVC and boosted trees.

    python3 benches/rows.py SVML [--limit SECONDS] [--picture FILE.svg] [--results FILE.jsonl]

SVML is the command. Data are generated: 100 normal columns, of which 10 matter, two classes, 7 % of the labels beyond what
anyone could know. Every program is a process of its own, reads the same .npy file and fits with two threads; time is that
of the process, reading included, and memory is its peak. What takes longer than the limit is left out, and larger numbers of
rows with it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
COLUMNS = 100
TEST_ROWS = 20_000

SKLEARN = """
import sys, numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.model_selection import GridSearchCV
from sklearn.ensemble import HistGradientBoostingClassifier
name, train, test = sys.argv[1:]
table = np.load(train)
X, y = table[:, :-1], table[:, -1]
grid = {"svc__gamma": [1 / (w * X.shape[1]) for w in (4, 2, 1, 0.5, 0.25)], "svc__C": [0.1, 1, 10, 100]}
model = {
    "SVC": lambda: make_pipeline(StandardScaler(), SVC()),
    "grid of SVC": lambda: GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5, n_jobs=2),
    "boosted trees": lambda: HistGradientBoostingClassifier(),
}[name]()
model.fit(X, y)
if test:
    table = np.load(test)
    print(np.mean(model.predict(table[:, :-1]) != table[:, -1]))
"""


def generate(rows: int, seed: int, path: Path) -> None:
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, COLUMNS), dtype=np.float32)
    side = np.sin(1.5 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 3]) - 0.4
    side += 0.15 * x[:, 4:10].sum(1) + 0.3 * random.standard_normal(rows)
    np.save(path, np.column_stack([x, side > 0]).astype(np.float32))


def run(command: list, limit: float):
    """Seconds and peak megabytes of a process and what it printed; None if it took longer than the limit."""
    # A process that starts others is ended with them.
    measure = (
        "import os, resource, signal, subprocess, sys\n"
        "done = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, text=True, start_new_session=True)\n"
        "try:\n"
        "    printed = done.communicate(timeout=float(sys.argv[1]))[0]\n"
        "except subprocess.TimeoutExpired:\n"
        "    os.killpg(done.pid, signal.SIGKILL)\n"
        "    raise\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)\n"
        "print(printed)\n"
        "sys.exit(done.returncode)"
    )
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", measure, str(limit), *map(str, command)], capture_output=True, text=True
    )
    seconds = time.perf_counter() - started
    if "TimeoutExpired" in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr}")
    memory, _, printed = done.stdout.partition("\n")
    return seconds, int(memory), printed


def draw(found: list, path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(one["program"] for one in found))
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for axis, (key, label) in zip(axes, (("seconds", "seconds"), ("megabytes", "peak memory, MB"))):
        for name, marker in zip(names, "osD^"):
            points = [(one["rows"], one[key]) for one in found if one["program"] == name]
            axis.loglog(*zip(*points), marker=marker, label=name)
        axis.set(xlabel="rows", ylabel=label)
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("svml")
    parser.add_argument("--limit", type=float, default=600)
    parser.add_argument("--picture")
    parser.add_argument("--results")
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--programs", nargs="*", default=["svml", "boosted trees", "SVC", "grid of SVC"])
    arguments = parser.parse_args()
    found, slow = [], set()
    if arguments.results and Path(arguments.results).exists():
        found = [json.loads(line) for line in Path(arguments.results).read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        test, train, model = (Path(folder) / name for name in ("test.npy", "train.npy", "model.svml"))
        generate(TEST_ROWS, 0, test)
        for rows in arguments.rows:
            generate(rows, 1, train)
            for program in arguments.programs:
                if program in slow:
                    continue
                if program == "svml":
                    command = [arguments.svml, "train", train, "-o", model, "--quiet"]
                else:
                    command = [sys.executable, "-c", SKLEARN, program, train, test]
                done = run(command, arguments.limit)
                if done is None:
                    slow.add(program)
                    print(f"{rows:>9} {program}: more than {arguments.limit} s", flush=True)
                    continue
                seconds, megabytes, printed = done
                if program == "svml":
                    text = run([arguments.svml, "evaluate", model, test, "--json"], 600)[2]
                    error = json.loads(text)["error"]
                else:
                    error = float(printed)
                one = {"program": program, "rows": rows, "seconds": seconds, "megabytes": megabytes, "error": error}
                found.append(one)
                print(f"{rows:>9} {program}: {seconds:.1f} s, {megabytes} MB, error {100 * error:.2f} %", flush=True)
                if arguments.results:
                    with open(arguments.results, "a") as results:
                        results.write(json.dumps(one) + "\n")
    if arguments.picture:
        draw(found, arguments.picture)


if __name__ == "__main__":
    main()
