"""The two programs of docs/from-svc.md on two tables of the paper: errors, log losses and seconds on the same splits.

    python3 benches/from_svc.py DATA_FOLDER [--splits N]

DATA_FOLDER has credit/crx.data and page/page-blocks.data; `svml data fetch credit --dir DATA_FOLDER` brings one there.
Four fifths of the rows are trained on. Both have one thread and take turns. Times are processor seconds of `fit`; reading is not part of them.
"""

import argparse
import os
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from svml import SVMLClassifier


def tables(folder: Path) -> dict:
    credit = pd.read_csv(folder / "credit/crx.data", header=None, na_values="?").add_prefix("A")
    page = pd.read_csv(folder / "page/page-blocks.data", header=None, sep=r"\s+").add_prefix("A")
    return {"credit": (credit.drop(columns="A15"), credit["A15"]), "page": (page.drop(columns="A10"), page["A10"] == 1)}


def usual(X: pd.DataFrame):
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    texts = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    prepare = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (texts, make_column_selector(dtype_exclude="number")),
    )
    width = prepare.fit_transform(X).shape[1]
    grid = {"svc__gamma": [1 / (s * width) for s in (4, 2, 1, 0.5, 0.25)], "svc__C": [0.1, 1, 10, 100]}
    return GridSearchCV(make_pipeline(prepare, SVC()), grid, cv=5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--splits", type=int, default=10)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    for name, (X, y) in tables(args.folder).items():
        found = {}
        for split in range(args.splits):
            X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=split)
            for method in ("svml", "grid"):
                started = time.process_time()
                if method == "svml":
                    model = SVMLClassifier(missing="impute").fit(X_train, y_train)
                    seconds = time.process_time() - started
                    p = model.predict_proba(X_test)
                else:
                    model = usual(X_train).fit(X_train, y_train)
                    seconds = time.process_time() - started
                    # SVC has no probabilities of its own; what they take is not counted.
                    best = CalibratedClassifierCV(model.best_estimator_, ensemble=False).fit(X_train, y_train)
                    p = best.predict_proba(X_test)
                error = 100 * np.mean(model.predict(X_test) != y_test)
                found.setdefault(method, []).append((error, log_loss(y_test, p, labels=sorted(set(y))), seconds))
        difference = np.subtract([e for e, _, _ in found["svml"]], [e for e, _, _ in found["grid"]])
        spread = difference.std(ddof=1) / np.sqrt(len(difference))
        for method, values in found.items():
            error, loss = np.mean(values, axis=0)[:2]
            seconds = statistics.median(s for _, _, s in values)
            print(f"{name} {X.shape} {method}: error {error:.2f} %, log loss {loss:.3f}, {seconds:.3g} s", flush=True)
        print(f"{name}: svml - grid {difference.mean():+.2f} +- {spread:.2f} points; load {os.getloadavg()[0]:.1f}", flush=True)


if __name__ == "__main__":
    main()
