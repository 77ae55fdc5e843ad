"""Writes rivals_oracle.json: what scikit-learn's NCA and metric-learn's LMNN and ITML reach.

Run once, by hand, with the folder of the paper's data sets:
    python3 -m venv v && v/bin/pip install scikit-learn==1.5.2 metric-learn==0.7.0 'numpy<2' && v/bin/python rivals_oracle.py DATA

Stored are losses at the identity, from which both sides start, and at the end, as this project defines them
(docs/math.md): NCA the expected leave-one-out error; LMNN with mu = 1, which is twice metric-learn's objective
with regularization = 0.5. Default settings throughout. Nothing of the data is stored. The rows are standardised as the
library does it: rows with a missing value dropped, text columns as codes in the order of the text, mean 0 and
standard deviation 1. Of ITML, whole problems on random rows: pairs, bounds, gamma, and the matrix M.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from metric_learn import ITML, LMNN
from metric_learn.lmnn import _sum_outer_products
from sklearn.neighbors import NeighborhoodComponentsAnalysis

NAMES = ["haber", "credit", "trans", "mammo", "cmc"]


def load(folder, name):
    """Standardised rows and classes of a data set, in the order of the file."""
    path = next((Path(folder) / name).iterdir())
    rows = [[c.strip() for c in line.split(",")] for line in path.read_text().splitlines()]
    rows = [r for r in rows if len(r) > 1 and "?" not in r]
    if name == "trans":
        rows = rows[1:]
    if name == "cmc":
        rows = [r for r in rows if r[-1] in ("1", "2")]
    columns = list(zip(*rows))
    x = []
    for column in columns[:-1]:
        try:
            x.append([float(v) for v in column])
        except ValueError:
            codes = {level: code for code, level in enumerate(sorted(set(column)))}
            x.append([codes[v] for v in column])
    x = np.array(x, dtype=float).T
    y = np.unique(columns[-1], return_inverse=True)[1]
    return (x - x.mean(0)) / x.std(0), y


def nca_loss(model, l, x, y):
    return 1 - model._loss_grad_lbfgs(l.ravel(), x, y[:, None] == y[None, :], 1.0)[0] / len(x)


class Lmnn(LMNN):
    """Equal distances are common in these data: the first of equals (to single precision) become targets, as here."""

    def _select_targets(self, X, label_inds):
        targets = np.empty((X.shape[0], self.n_neighbors), dtype=int)
        for label in self.labels_:
            inds, = np.nonzero(label_inds == label)
            sq = ((X[inds][:, None, :] - X[inds][None, :, :]) ** 2).sum(-1)
            np.fill_diagonal(sq, np.inf)
            targets[inds] = inds[np.argsort(sq.astype(np.float32), axis=1, kind="stable")[:, : self.n_neighbors]]
        return targets

    def loss(self, l, x, y):
        self.labels_ = np.arange(len(np.unique(y)))
        targets = self._select_targets(x, y)
        k = self.n_neighbors
        pull = _sum_outer_products(x, targets.flatten(), np.repeat(np.arange(len(x)), k))
        return 2 * self._loss_grad(x, l, pull, k, 0.5, targets, y)[1]


def data_set(folder, name):
    x, y = load(folder, name)
    start = np.eye(x.shape[1])
    nca = NeighborhoodComponentsAnalysis(init="identity").fit(x, y)
    lmnn = Lmnn(init="identity").fit(x, y)
    return {
        "name": name, "rows": x.shape[0], "features": x.shape[1],
        "nca_start": nca_loss(nca, start, x, y), "nca": nca_loss(nca, nca.components_, x, y),
        "lmnn_start": lmnn.loss(start, x, y), "lmnn": lmnn.loss(lmnn.components_, x, y),
    }


def itml_problem(rng, n, d, classes, pairs, gamma, max_iter):
    x = rng.normal(size=(n, d)).round(3)
    y = rng.integers(classes, size=n)
    x[:, 0] += 1.5 * y
    x = x.round(3)
    i, j = rng.integers(n, size=(2, 8 * pairs))
    keep = i != j
    i, j = i[keep], j[keep]
    near, far = np.flatnonzero(y[i] == y[j])[:pairs], np.flatnonzero(y[i] != y[j])[:pairs]
    order = np.concatenate([near, far])
    labels = np.concatenate([np.ones(len(near)), -np.ones(len(far))])
    sq = ((x[i] - x[j]) ** 2).sum(1)
    bounds = np.percentile(sq, (5, 95)).round(4)
    a = rng.normal(size=(d, d))
    prior = (a @ a.T / d + np.eye(d)).round(4)
    model = ITML(gamma=gamma, prior=prior, max_iter=max_iter, tol=1e-6)
    model.fit(np.stack([x[i[order]], x[j[order]]], axis=1), labels, bounds=bounds.copy())
    return {
        "prior": prior.tolist(), "bounds": bounds.tolist(), "gamma": gamma, "max_iterations": max_iter,
        "similar": (x[i[near]] - x[j[near]]).tolist(), "dissimilar": (x[i[far]] - x[j[far]]).tolist(),
        "m": model.get_mahalanobis_matrix().tolist(),
    }


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    settings = [(40, 2, 2, 20, 1.0, 1000), (60, 4, 3, 40, 1.0, 1000), (80, 6, 2, 60, 0.1, 1000), (60, 5, 2, 30, 10.0, 50),
                (50, 8, 4, 80, 0.5, 7)]
    out = {
        "made_by": "rivals_oracle.py, " + ", ".join(f"{p} {version(p)}" for p in ("scikit-learn", "metric-learn", "numpy", "scipy")),
        "data": [data_set(sys.argv[1], name) for name in NAMES],
        "itml": [itml_problem(rng, *setting) for setting in settings],
    }
    Path(__file__).with_name("rivals_oracle.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
