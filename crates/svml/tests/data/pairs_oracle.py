"""Writes pairs_oracle.json: the matrices that metric-learn's ITML learns from given pairs and bounds.

Run once, by hand:
    python3 -m venv v && v/bin/pip install scikit-learn==1.7.2 metric-learn==0.7.0 && v/bin/python pairs_oracle.py

The library standardises the distinct rows of the pairs and metric-learn does not: it is given the standardised rows, and
its prior is the identity. Stored are the rows as they are, the pairs and the matrix M on standardised rows.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from metric_learn import ITML


def problem(rng, n, d, pairs, gamma, bounds, max_iter):
    kind = rng.integers(2, size=n)
    x = rng.normal(size=(n, d))
    x[:, 0] += 1.5 * kind
    x = (x * 10.0 ** rng.integers(-2, 3, size=d) + rng.normal(size=d)).round(5)
    i, j = rng.integers(n, size=(2, pairs))
    i, j = i[i != j], j[i != j]
    similar = kind[i] == kind[j]
    used = x[np.unique(np.concatenate([i, j]))]
    z = (x - used.mean(0)) / used.std(0)
    model = ITML(gamma=gamma, prior="identity", max_iter=max_iter, tol=1e-8)
    model.fit(np.stack([z[i], z[j]], axis=1), np.where(similar, 1, -1), bounds=np.array(bounds))
    return {
        "rows": x.tolist(), "pairs": np.column_stack([i, j]).tolist(), "similar": similar.tolist(),
        "gamma": gamma, "bounds": bounds, "max_iterations": max_iter,
        "m": model.get_mahalanobis_matrix().tolist(),
    }


if __name__ == "__main__":
    rng = np.random.default_rng(7)
    settings = [(30, 2, 40, 1.0, [0.5, 4.0], 1000), (50, 4, 80, 0.2, [1.0, 9.0], 1000), (40, 6, 60, 5.0, [2.0, 8.0], 5)]
    out = {
        "made_by": "pairs_oracle.py, " + ", ".join(f"{p} {version(p)}" for p in ("scikit-learn", "metric-learn", "numpy")),
        "problems": [problem(rng, *setting) for setting in settings],
    }
    Path(__file__).with_name("pairs_oracle.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
