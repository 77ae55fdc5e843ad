#!/usr/bin/env python3
"""What an installed svml reports of tables whose rows repeat or weigh more, beside the error on new rows. Needs NumPy.

    honest.py [TABLES]      means over so many tables of each setting, 10 unless given; one line of a table for each setting
"""
import sys
import warnings

import numpy as np
from svml import SVMLClassifier

TABLES = int(sys.argv[1]) if len(sys.argv) > 1 else 10


def cells(columns, levels):
    return lambda r, n: r.integers(levels, size=(n, columns)).astype(float), (levels - 1) / 2


def rounded(r, n):
    return r.normal(size=(n, 2)).round(1)


def noise(r, x, _):
    return r.integers(2, size=len(x))


def signal(r, x, middle):
    return ((x - middle).sum(1) > 0) ^ (r.random(len(x)) < 0.25)


def moons(r, n):
    angle, side = np.pi * r.random(n), r.integers(2, size=n)
    x = np.c_[np.cos(angle), np.sin(angle)] * np.where(side, -1, 1)[:, None] + np.c_[side, 0.5 * side]
    return x + 0.45 * r.normal(size=(n, 2)), side


def report(title, make, change=lambda r, x, y: (x, y, {})):
    """`make` draws n rows; `change` turns them into what is fitted, with arguments of fit."""
    rows = []
    for seed in range(TABLES):
        r = np.random.default_rng(seed)
        x, y, options = change(r, *make(r, None))
        new_x, new_y = make(r, 5000)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = SVMLClassifier().fit(x, y, **options)
        p = model.predict_proba(new_x)
        right = p[np.arange(len(new_y)), np.searchsorted(model.classes_, new_y)]
        # Of a class that was oversampled new rows are as many as of the other.
        weight = np.ones(len(new_y))
        if change is oversampled:
            weight = 0.5 / np.where(new_y == 1, (new_y == 1).mean(), (new_y == 0).mean())
        wrong = np.average(model.predict(new_x) != new_y, weights=weight)
        warned = any("no better" in str(warning.message) for warning in said)
        loss = np.average(-np.log(np.maximum(right, 1e-15)), weights=weight)
        rows.append((model.honest_error_, wrong, model.honest_log_loss_, loss, warned))
    reported, new, reported_loss, loss, warned = np.mean(rows, axis=0)
    print(f"| {title} | {reported:.3f} | {new:.3f} | {reported_loss:.3f} / {loss:.3f} | {warned:.1f} |", flush=True)


def twice(r, x, y):
    return np.r_[x, x], np.r_[y, y], {}


def some_twice(r, x, y):
    again = r.permutation(len(x))[: len(x) // 5]
    return np.r_[x, x[again]], np.r_[y, y[again]], {}


def oversampled(r, x, y):
    rare, rest = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    chosen = np.r_[rest, r.choice(rare, len(rest))]
    return x[chosen], y[chosen], {}


def weighing(weights):
    return lambda r, x, y: (x, y, {"sample_weight": weights(r, len(x))})


print(f"Means over {TABLES} tables.\n")
print("| table | reported error | error on new rows | log loss reported / new | share warned |")
print("|---|---|---|---|---|")
for title, (draw, middle), n, label in [
    ("noise, 8 cells, n = 300", cells(3, 2), 300, noise),
    ("noise, 32 cells, n = 300", cells(5, 2), 300, noise),
    ("noise, 128 cells, n = 1,000", cells(7, 2), 1000, noise),
    ("noise, 256 cells, n = 2,000", cells(4, 4), 2000, noise),
    ("noise, 2 columns of 10 levels, n = 1,000", cells(2, 10), 1000, noise),
    ("noise, 2 normal columns rounded to 0.1, n = 2,000", (rounded, 0), 2000, noise),
    ("signal, 243 cells, n = 1,000", cells(5, 3), 1000, signal),
    ("signal, 512 cells, n = 1,000", cells(9, 2), 1000, signal),
    ("signal, 729 cells, n = 3,000", cells(6, 3), 3000, signal),
    ("signal, 256 cells, n = 700", cells(4, 4), 700, signal),
]:
    def make(r, size, draw=draw, middle=middle, n=n, label=label):
        x = draw(r, size or n)
        return x, label(r, x, middle).astype(int)

    report(title, make)
for n in (100, 300, 1000):
    def coin(r, size, n=n, share=0.5):
        return r.normal(size=(size or n, 5)), (r.random(size or n) < share).astype(int)

    for title, change in [
        ("once", lambda r, x, y: (x, y, {})),
        ("weight 2", weighing(lambda r, n: np.full(n, 2.0))),
        ("weight 2.0001", weighing(lambda r, n: np.full(n, 2.0001))),
        ("weights 1, 2, 3", weighing(lambda r, n: r.integers(1, 4, size=n).astype(float))),
        ("each row twice", twice),
        ("20 % of the rows twice", some_twice),
    ]:
        report(f"noise, n = {n}: {title}", coin, change)
    report(f"noise, n = {n}: a class of 15 % oversampled", lambda r, size: coin(r, size, share=0.15), oversampled)
for title, weight in [("1", 1.0), ("2", 2.0), ("2.0001", 2.0001), ("50", 50.0)]:
    report(f"moons, n = 300: weight {title}", lambda r, size: moons(r, size or 300), weighing(lambda r, n, w=weight: np.full(n, w)))
