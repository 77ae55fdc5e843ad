"""Times NCA, LMNN and ITML here against scikit-learn and metric-learn, in one run.

    python3 benches/rivals.py DATA_FOLDER [NAME..]

makes a virtual environment under target/ (scikit-learn 1.5.2 and metric-learn 0.7.0, which needs it), builds the
example `rivals`, and prints one table. All start from the identity on the same standardised rows, with the default
settings of each program. Times are medians of 5 runs here and 3 there, in turn, so that other load meets both. A loss
counts as in docs/math.md: NCA the expected leave-one-out error, LMNN with mu = 1. ITML gets the same pairs, bounds and
number of rounds on both sides; compared is the largest difference of the matrices M.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PACKAGES = ["scikit-learn==1.5.2", "metric-learn==0.7.0", "numpy<2"]


def environment():
    """The Python of the virtual environment, made on the first call."""
    folder = TARGET / "rivals-venv"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (folder / "ready").touch()
    return python


def ours(data, name, methods):
    example = TARGET / "release" / "examples" / "rivals"
    out = subprocess.run([example, data, *methods, ":", name], check=True, capture_output=True, text=True).stdout
    return {line["method"]: line for line in map(json.loads, out.splitlines())}


def median(times):
    return sorted(times)[len(times) // 2]


def compare(data, names):
    """Runs in the virtual environment."""
    import time

    import numpy as np

    sys.path.insert(0, str(ROOT / "crates/svml/tests/data"))
    from metric_learn import ITML
    from metric_learn.constraints import Constraints
    from rivals_oracle import Lmnn, load, nca_loss
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    def timed(make, runs=3):
        times = []
        for _ in range(runs):
            model, arguments, options = make()
            started = time.perf_counter()
            model.fit(*arguments, **options)
            times.append(time.perf_counter() - started)
        return model, median(times)

    print("| | | loss here | loss there | steps here, there | seconds here | seconds there | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        x, y = load(data, name)
        title = f"{name} {x.shape[0]} x {x.shape[1]}"
        there, seconds = timed(lambda: (NeighborhoodComponentsAnalysis(init="identity"), (x, y), {}))
        here = ours(data, name, ["nca:init=identity"])["nca"]
        row(title, "NCA", f"{here['loss']:.5f}", f"{nca_loss(there, there.components_, x, y):.5f}", here, there.n_iter_, seconds)
        there, seconds = timed(lambda: (Lmnn(init="identity"), (x, y), {}))
        here = ours(data, name, ["lmnn"])["lmnn"]
        row(title, "LMNN", f"{here['loss']:.1f}", f"{there.loss(there.components_, x, y):.1f}", here, there.n_iter_, seconds)
        a, b, c, d = Constraints(y).positive_negative_pairs(80, random_state=np.random.RandomState(0))
        pairs = np.concatenate([np.stack([x[a], x[b]], 1), np.stack([x[c], x[d]], 1)])
        labels = np.concatenate([np.ones(len(a)), -np.ones(len(c))])
        bounds = np.percentile(((pairs[:, 0] - pairs[:, 1]) ** 2).sum(1), (5, 95))
        there, seconds = timed(lambda: (ITML(), (pairs, labels), {"bounds": bounds.copy()}))
        problem = {
            "similar": (x[a] - x[b]).tolist(), "dissimilar": (x[c] - x[d]).tolist(), "bounds": bounds.tolist(),
            "rounds": there.n_iter_ + 1,
        }
        path = TARGET / "rivals-itml.json"
        path.write_text(json.dumps(problem))
        here = ours(data, name, [f"projection={path}"])["projection"]
        off = np.abs(np.array(here["m"]) - there.get_mahalanobis_matrix().ravel()).max()
        row(title, "ITML", "same M", f"to {off:.0e}", here, there.n_iter_ + 1, seconds)


def row(title, method, loss, other, here, steps, seconds):
    print(f"| {title} | {method} | {loss} | {other} | {here['steps']}, {steps} | {here['seconds']:.4f} | {seconds:.3f} "
          f"| {seconds / here['seconds']:.0f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        compare(sys.argv[2], sys.argv[3:])
    else:
        command = ["cargo", "build", "--quiet", "--release", "--example", "rivals"]
        subprocess.run(command, check=True, cwd=ROOT)
        names = sys.argv[2:] or ["credit", "cmc"]
        subprocess.run([environment(), __file__, "--inside", sys.argv[1], *names], check=True)
