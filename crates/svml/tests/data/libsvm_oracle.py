"""Writes libsvm_oracle.json: what LIBSVM answers on the paper's hard-margin problem.

Run once, by hand:  python3 -m venv v && v/bin/pip install libsvm-official==3.37.0 numpy && v/bin/python libsvm_oracle.py

For each problem the kernel K = exp(-|L(x - z)|^2) gets the ridge I/C (equation 3 of the paper), and
LIBSVM solves the hard-margin machine (-s 0 -c 1e9) on that precomputed matrix (-t 4). Stored are the
rows, labels, L, C, and the decision values f = K beta + b on rows LIBSVM has not seen, computed
from LIBSVM's own beta and b with the kernel without ridge. LIBSVM caches kernel rows in single
precision, so its answers are good to about 1e-4.
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
from libsvm.svmutil import svm_parameter, svm_problem, svm_train


def kernel(a, b, l):
    za, zb = a @ l.T, b @ l.T
    q = ((za[:, None, :] - zb[None, :, :]) ** 2).sum(-1)
    return np.exp(-q)


def problem(rng, n, d, r, c, overlap):
    x = rng.normal(size=(n, d)).round(4)
    y = np.where((x[:, 0] ** 2 + (x[:, 1] if d > 1 else 0) + overlap * rng.normal(size=n)) > 0.5, 1, -1)
    y[0], y[1] = 1, -1
    new = rng.normal(size=(15, d)).round(4)
    l = (rng.normal(size=(r, d)) / np.sqrt(d)).round(4)
    ridged = kernel(x, x, l) + np.eye(n) / c
    rows = [{0: i + 1} | {j + 1: float(v) for j, v in enumerate(k)} for i, k in enumerate(ridged)]
    parameter = svm_parameter("-s 0 -t 4 -c 1e9 -e 1e-9 -h 0 -q")
    model = svm_train(svm_problem(y.tolist(), rows, isKernel=True), parameter)
    sign = 1 if model.get_labels()[0] == 1 else -1
    beta = np.zeros(n)
    for i, coefficient in zip(model.get_sv_indices(), model.get_sv_coef()):
        beta[i - 1] = sign * coefficient[0]
    b = -sign * model.rho[0]
    f = kernel(new, x, l) @ beta + b
    return {
        "x": x.tolist(), "y": y.tolist(), "l": l.tolist(), "cost": c, "new": new.tolist(),
        "decision": f.tolist(), "support": sorted(int(i) - 1 for i in np.flatnonzero(np.abs(beta) > 1e-6) + 1),
    }


rng = np.random.default_rng(1)
settings = [(30, 1, 1, 1.0), (40, 2, 2, 0.1), (40, 2, 2, 1.0), (50, 3, 3, 10.0), (50, 3, 2, 1.0), (60, 5, 5, 0.5),
            (60, 5, 1, 5.0), (60, 8, 8, 2.0), (40, 4, 4, 0.01), (50, 4, 3, 100.0)]
problems = [problem(rng, n, d, r, c, 0.3) for n, d, r, c in settings]
out = {"made_by": f"libsvm_oracle.py, libsvm-official {version('libsvm-official')}, numpy {np.__version__}",
       "problems": problems}
Path(__file__).with_name("libsvm_oracle.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
