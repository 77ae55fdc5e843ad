"""Nine tasks of a data scientist, done from beginning to end: lines of code, seconds, results.

    python3 benches/tasks.py DATA_FOLDER [--svml PATH] [TASK..]

needs the Python package with scikit-learn, pandas, matplotlib, shap and onnxruntime, the command (`svml` on the path, or
--svml), and for task 5 Debian's libsvm-tools. It prints a list for each task, which docs/tasks.md has beside what the first
version of this program did. Lines are those of the functions here that do the task as a user would, without blank
lines, comments, imports and a `return` of names only.
"""

import argparse
import inspect
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import svml
from svml import SVMLClassifier

COMMAND = "svml"


def lines(*functions):
    """How many lines a user writes."""
    bodies = [inspect.getsource(f).splitlines()[1:] for f in functions]
    code = [s.strip() for body in bodies for s in body]
    return sum(not re.fullmatch(r"|#.*|from .* import .*|return [\w, ]+", s) for s in code)


def timed(function, *arguments):
    started = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - started


def run(*arguments, **options):
    """The command; its standard output."""
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def say(text):
    print(f"- {text}", flush=True)


# 1 ----------------------------------------------------------------------------------------------------------------


def mixed_table(train, y):
    return SVMLClassifier(missing="impute").fit(train, y)


def task_1(data):
    """A mixed table with missing values: adult, 3,000 rows to train on, 4,000 to test on."""
    table = pd.read_csv(data / "suite" / "adult.csv", na_values="?").sample(7000, random_state=0)
    train, test = table[:3000], table[3000:]
    model, seconds = timed(mixed_table, train.drop(columns="income"), train["income"])
    p = model.predict_proba(test.drop(columns="income"))
    found = model.evaluate(test.drop(columns="income"), test["income"])
    say(f"frame straight in: {lines(mixed_table)} line, {seconds:.1f} s, error {100 * found.error:.2f} %, AUC {found.auc:.3f}, log loss {found.log_loss:.3f}, Brier {found.brier:.3f}")
    categories = {c: "category" for c in table.select_dtypes(exclude="number") if c != "income"}
    both = table.astype(categories)
    from sklearn.ensemble import HistGradientBoostingClassifier

    rival, seconds = timed(lambda: HistGradientBoostingClassifier(random_state=0).fit(both[:3000].drop(columns="income"), train["income"]))
    q = rival.predict_proba(both[3000:].drop(columns="income"))
    truth = test["income"] == rival.classes_[1]
    say(f"HistGradientBoosting: {seconds:.1f} s, error {100 * np.mean((q[:, 1] > 0.5) != truth):.2f} %, AUC {roc_auc_score(truth, q[:, 1]):.3f}, log loss {log_loss(truth, q):.3f}")
    assert (model.classes_[p.argmax(1)] == model.predict(test.drop(columns="income"))).mean() > 0.99
    train.to_csv("train.csv", index=False)
    test.to_csv("test.csv", index=False)
    _, seconds = timed(run, "train", "train.csv", "-o", "m.svml", "--missing", "impute", "-q")
    same = svml.load("m.svml").predict(test.drop(columns="income"))
    run("predict", "m.svml", "test.csv", "-o", "p.csv", "-q")
    said = pd.read_csv("p.csv").iloc[:, 0].to_numpy()
    say(f"the command: 1 line, {seconds:.1f} s, error {100 * np.mean(said != test['income']):.2f} %; its model on the frame in Python: {np.mean(said == same):.2%} equal predictions")
    passengers = identified(600, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SVMLClassifier().fit(passengers.drop(columns="Survived"), passengers["Survived"])
    fresh = identified(2000, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = 1 - model.score(fresh.drop(columns="Survived"), fresh["Survived"])
    say(f"a table with PassengerId, Name, Ticket and When: {len(caught)} warnings, error on fresh rows {100 * error:.1f} %, expected {100 * model.honest_error_:.1f} %")
    say(f"first warning: {caught[0].message}")


def identified(n, seed):
    """Rows with columns that are different in every row."""
    rng = np.random.default_rng(seed)
    sex, age, fare = rng.choice(["male", "female"], n), rng.uniform(1, 80, n), rng.lognormal(3, 1, n)
    alive = rng.random(n) < 1 / (1 + np.exp(-(1.5 * (sex == "female") - 0.03 * age + 0.02 * fare)))
    numbers = rng.permutation(np.arange(1, n + 1) + 10_000 * seed)
    return pd.DataFrame(
        {
            "PassengerId": numbers,
            "Name": [f"Person {i} of {seed}" for i in range(n)],
            "Ticket": [f"A/{i * 7 + seed}" for i in range(n)],
            "When": [f"1912-04-{1 + i % 28:02d} {i % 24:02d}:{i % 60:02d}" for i in range(n)],
            "Sex": sex,
            "Age": age.round(1),
            "Fare": fare.round(2),
            "Survived": np.where(alive, "yes", "no"),
        }
    )


# 2 ----------------------------------------------------------------------------------------------------------------


def weighted(X, y, X_test, y_test):
    return SVMLClassifier(class_weight="balanced").fit(X, y).evaluate(X_test, y_test)


def plain(X, y, X_test, y_test):
    return SVMLClassifier().fit(X, y).evaluate(X_test, y_test)


def thresholded(X, y, X_test, y_test):
    from sklearn.model_selection import TunedThresholdClassifierCV

    tuned = TunedThresholdClassifierCV(SVMLClassifier(), scoring="balanced_accuracy", cv=3).fit(X, y)
    return balanced_accuracy_score(y_test, tuned.predict(X_test))


def task_2(data):
    """A rare class: page-blocks, text against the rest (10 %), 3,283 rows to train on, 2,190 to test on."""
    rows = np.loadtxt(next((data / "page").glob("page*.data")))
    X, y = rows[:, :-1], (rows[:, -1] != 1).astype(int)
    parts = train_test_split(X, y, train_size=3283, stratify=y, random_state=0)
    X, X_test, y, y_test = parts
    for name, function in (("plain", plain), ("balanced", weighted)):
        m, seconds = timed(function, X, y, X_test, y_test)
        say(
            f"{name}: {lines(function)} line, {seconds:.1f} s, error {100 * m.error:.2f} %, balanced accuracy {1 - m.balanced_error:.3f}, AUC {m.auc:.3f}, "
            f"average precision {m.average_precision:.3f}, log loss {m.log_loss:.3f}, calibration error {m.calibration_error:.3f}"
        )
    accuracy, seconds = timed(thresholded, X, y, X_test, y_test)
    say(f"threshold by cross-validation: {lines(thresholded)} lines, {seconds:.1f} s, balanced accuracy {accuracy:.3f}")
    from sklearn.ensemble import HistGradientBoostingClassifier

    rival, seconds = timed(lambda: HistGradientBoostingClassifier(random_state=0).fit(X, y))
    q = rival.predict_proba(X_test)[:, 1]
    say(f"HistGradientBoosting: {seconds:.1f} s, error {100 * np.mean((q > 0.5) != y_test):.2f} %, AUC {roc_auc_score(y_test, q):.3f}, average precision {average_precision_score(y_test, q):.3f}, log loss {log_loss(y_test, q):.3f}")


# 3 ----------------------------------------------------------------------------------------------------------------


def explained(model, X, y, X_test, y_test):
    why = model.explain(X_test)
    alike = model.keep_rows(X, y).alike(X_test, n_neighbors=5)
    model.report(X_test, y_test, "report.html", title="Breast cancer")
    return why, alike


def task_3(_):
    """A model explained to a doctor: breast cancer, 426 rows to train on, 143 to explain."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    model = SVMLClassifier().fit(X, y)
    (why, alike), seconds = timed(explained, model, X, y, X_test, y_test)
    gap = abs(why.contributions.sum(1) - (why.output - why.base)).max()
    say(f"why each of {len(X_test)} patients, five earlier patients like each, and one page to print: {lines(explained)} lines, {seconds:.1f} s, {os.path.getsize('report.html') / 1e3:.0f} kB")
    say(f"contributions add up to within {gap:.0e}; the five most similar patients have the predicted class in {np.mean(alike.classes == model.predict(X_test)[:, None]):.0%}")
    _, seconds = timed(model.explain, X_test)
    say(f"explanations alone: {1e6 * seconds / len(X_test):.0f} microseconds a row")
    import shap

    explainer = shap.Explainer(lambda rows: model.decision_function(pd.DataFrame(rows, columns=X.columns)), X.sample(100, random_state=0))
    values, seconds = timed(lambda: explainer(X_test[:20], silent=True))
    ours = model.explain(X_test[:20])
    from scipy.stats import spearmanr

    ranks = [spearmanr(abs(ours.contributions[i]), abs(values.values[i])).statistic for i in range(20)]
    say(f"shap on the same model: {1e3 * seconds / 20:.0f} ms a row; rank correlation of the columns' contributions with ours {np.median(ranks):.2f} (median of 20 rows)")


# 4 ----------------------------------------------------------------------------------------------------------------


def task_4(_):
    """Metric learning: error of 3 neighbours and seconds; clusters."""
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score
    from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

    for name, load in (("wine", load_wine), ("cancer", load_breast_cancer), ("digits", load_digits)):
        X, y = load(return_X_y=True)
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
        results = []
        for learner in (svml.NCA(), svml.LMNN(), svml.ITML(), make_pipeline(StandardScaler(), NeighborhoodComponentsAnalysis(random_state=0))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                metric, seconds = timed(learner.fit, X, y)
            knn = KNeighborsClassifier(3).fit(metric.transform(X), y)
            title = "scikit-learn's NCA" if hasattr(learner, "steps") else type(learner).__name__
            results.append(f"{title} {100 * (1 - knn.score(metric.transform(X_test), y_test)):.1f} % in {seconds:.3f} s")
        say(f"{name}: {'; '.join(results)}")
        clusters = []
        for title, Z in (("standardised", StandardScaler().fit_transform(X)), ("ITML", svml.ITML().fit(X, y).transform(X)), ("NCA", svml.NCA().fit(X, y).transform(X))):
            found = KMeans(len(set(y)), n_init=5, random_state=0).fit_predict(Z)
            clusters.append(f"{title} {adjusted_rand_score(y, found):.2f}")
        say(f"{name}, k-means, adjusted Rand index: {', '.join(clusters)}")
    X, y = load_wine(return_X_y=True)
    names = [svml.LMNN(n_neighbors=5, regularization=0.5), svml.NCA(n_components=2, init="pca")]
    fitted = [e.fit(X, y) for e in names]
    pairs = X[[[0, 1], [0, 100]]]
    say(f"metric-learn's names: LMNN(n_neighbors=5, regularization=0.5).pair_distance -> {fitted[0].pair_distance(pairs).round(2).tolist()}, PairsITML from four pairs -> {svml.PairsITML().fit(X[[[0, 1], [0, 100], [60, 61], [60, 150]]], [1, -1, 1, -1]).predict(pairs).tolist()}")


# 5 ----------------------------------------------------------------------------------------------------------------


def task_5(_):
    """LIBSVM's habits: breast cancer as a LIBSVM file, served by LIBSVM's own two programs."""
    from sklearn.datasets import dump_svmlight_file

    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, 2 * y - 1, test_size=0.3, stratify=y, random_state=0)
    dump_svmlight_file(X, y, "bc", zero_based=False)
    dump_svmlight_file(X_test, y_test, "bc.t", zero_based=False)
    _, seconds = timed(run, "svm-train", "-q", "bc", "bc.model")
    run("train", "bc", "-o", "one.svml", "--form", "diagonal", "-q")
    run("export", "one.svml", "--to", "libsvm", "-o", "server.model")
    with open("scaled", "w") as scaled:
        subprocess.run(["svm-scale", "-r", "server.model.range", "bc.t"], stdout=scaled, stderr=subprocess.DEVNULL, check=True)
    subprocess.run(["svm-predict", "-q", "scaled", "server.model", "there"], check=True)
    run("predict", "one.svml", "bc.t", "-o", "here", "-q")
    there, here = np.loadtxt("there"), np.loadtxt("here")
    say(f"svml svm-train: 1 line, {seconds:.1f} s")
    say(f"export, then svm-scale and svm-predict on the raw file: 3 lines, labels equal on {np.mean(there == here):.1%} of {len(here)} rows, accuracy {np.mean(there == y_test):.1%}")
    grid, seconds = timed(lambda: grid_search().fit(X, y))
    say(f"GridSearchCV over SVC: {seconds:.1f} s, accuracy {grid.score(X_test, y_test):.1%}; svml's default {SVMLClassifier().fit(X, y).score(X_test, y_test):.1%}")


def grid_search():
    grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.001, 0.01, 0.03, 0.1, 1]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5)


# 6 ----------------------------------------------------------------------------------------------------------------


def served(model):
    model.save("gamma.svml")
    model.export("gamma.onnx")
    model.export("gamma.c")
    model.export("gamma.js")


def task_6(data):
    """A model in service: gamma, 4,000 rows."""
    import onnxruntime

    table = pd.read_csv(next((data / "gamma").glob("magic*.data")), header=None)
    X, y = table.iloc[:, :-1].to_numpy(), table.iloc[:, -1].to_numpy()
    X, X_test, y, _ = train_test_split(X, y, train_size=4000, stratify=y, random_state=0)
    model, seconds = timed(SVMLClassifier().fit, X, y)
    say(f"fit {seconds:.1f} s, {sum(model.n_support_)} terms")
    many = np.resize(X_test, (100_000, X.shape[1]))
    one = min(timed(model.predict, X_test[:1])[1] for _ in range(200))
    all_, two = min(timed(model.predict, many)[1] for _ in range(3)), min(timed(model.set_params(n_jobs=2).predict, many)[1] for _ in range(3))
    usual = SVC().fit(StandardScaler().fit_transform(X), y)
    rival = timed(usual.predict, StandardScaler().fit(X).transform(many))[1]
    say(f"one row {1e3 * one:.2f} ms; 100,000 rows {all_:.2f} s on one thread, {two:.2f} s on two; SVC {rival:.1f} s")
    _, seconds = timed(served, model)
    sizes = ", ".join(f"{s} {os.path.getsize('gamma' + s) / 1e3:.0f} kB" for s in (".svml", ".onnx", ".c", ".js"))
    say(f"model file, ONNX, C and JavaScript: {lines(served)} lines, {seconds:.1f} s ({sizes})")
    session = onnxruntime.InferenceSession("gamma.onnx", providers=["CPUExecutionProvider"])
    probabilities = session.run(["probabilities"], {session.get_inputs()[0].name: X_test[:5000]})[0]
    say(f"ONNX in onnxruntime: probabilities within {abs(probabilities - model.predict_proba(X_test[:5000])).max():.0e}")


# 9 ----------------------------------------------------------------------------------------------------------------


def task_9(_):
    """100,000 rows: a circle in two hidden directions of ten, 5 % of the classes flipped."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 10))
    directions = np.linalg.qr(rng.normal(size=(10, 2)))[0]
    y = ((X @ directions) ** 2).sum(1) > 1.386
    y ^= rng.random(len(y)) < 0.05
    X, X_test, y, y_test = X[:90_000], X[90_000:], y[:90_000], y[90_000:]
    model, seconds = timed(SVMLClassifier(n_jobs=-1).fit, X, y)
    say(f"svml: 1 line, {seconds:.0f} s, error {100 * (1 - model.score(X_test, y_test)):.1f} %, expected {100 * model.honest_error_:.1f} %")
    model, seconds = timed(SVMLClassifier(n_jobs=-1, time_limit=20).fit, X, y)
    say(f"svml with time_limit=20: {seconds:.0f} s, error {100 * (1 - model.score(X_test, y_test)):.1f} %")
    from sklearn.ensemble import HistGradientBoostingClassifier

    rival, seconds = timed(HistGradientBoostingClassifier(random_state=0).fit, X, y)
    say(f"HistGradientBoosting: {seconds:.0f} s, error {100 * (1 - rival.score(X_test, y_test)):.1f} %")


def task_10(_):
    """The error that is reported, on labels drawn by a coin and where 5 of 200 features matter, 300 rows."""
    for name, useful in (("a coin, 300 x 200", 0), ("5 of 200 features, 300 rows", 5)):
        said, true, sure = [], [], []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(2300, 200))
            y = rng.random(2300) < 0.5 if useful == 0 else make_labels(X, useful, rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = SVMLClassifier(n_jobs=-1).fit(X[:300], y[:300])
            said.append(model.honest_error_)
            true.append(1 - model.score(X[300:], y[300:]))
            sure.append(log_loss(y[300:], model.predict_proba(X[300:])))
        say(f"{name}: svml says {100 * np.mean(said):.1f} %, the truth is {100 * np.mean(true):.1f} %, log loss {np.mean(sure):.2f} (means of 4)")


def make_labels(X, useful, rng):
    return X[:, :useful].sum(1) + 0.5 * rng.normal(size=len(X)) > 0


def main():
    global COMMAND
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("tasks", nargs="*", type=int)
    parser.add_argument("--svml", default="svml")
    given = parser.parse_args()
    COMMAND = given.svml if os.sep not in given.svml else str(Path(given.svml).resolve())
    data = given.data.resolve()
    all_tasks = {1: task_1, 2: task_2, 3: task_3, 4: task_4, 5: task_5, 6: task_6, 9: task_9, 10: task_10}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number in given.tasks or all_tasks:
            print(f"\n{all_tasks[number].__doc__}\n", flush=True)
            all_tasks[number](data)


if __name__ == "__main__":
    main()
