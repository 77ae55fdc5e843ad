"""Measures are those of scikit-learn; thresholds, weights of classes and groups do what the guide says."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    matthews_corrcoef,
    precision_recall_fscore_support,
    roc_auc_score,
)
from sklearn.model_selection import GroupKFold, cross_validate, train_test_split

import svml
from svml import SVMLClassifier, measures

NAMES = ["error", "balanced_error", "auc", "average_precision", "f1", "mcc", "brier", "log_loss", "calibration_error"]


def predictions(rows, classes, seed, ties):
    """Classes, predictions that are sometimes right, and probabilities; with ties there are few different ones."""
    rng = np.random.RandomState(seed)
    truth = rng.choice(classes, rows, p=np.arange(1, classes + 1) / np.sum(np.arange(1, classes + 1)))
    p = rng.rand(rows, classes) + 0.4 * np.eye(classes)[truth]
    p = np.ceil(4 * p) if ties else p
    p /= p.sum(axis=1, keepdims=True)
    return truth, p.argmax(axis=1), p


def of_sklearn(truth, predicted, p):
    """The same by scikit-learn."""
    classes = p.shape[1]
    binary = classes == 2
    y = np.eye(classes)[truth]
    return {
        "error": 1 - accuracy_score(truth, predicted),
        "balanced_error": 1 - balanced_accuracy_score(truth, predicted),
        "auc": roc_auc_score(truth, p[:, 1]) if binary else roc_auc_score(truth, p, multi_class="ovr"),
        "average_precision": average_precision_score(truth, p[:, 1]) if binary else average_precision_score(y, p),
        "f1": f1_score(truth, predicted, average="binary" if binary else "macro"),
        "mcc": matthews_corrcoef(truth, predicted),
        "brier": brier_score_loss(truth, p[:, 1]) if binary else np.mean(np.sum((p - y) ** 2, axis=1)),
        "log_loss": log_loss(truth, p),
    }


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 6])
def test_definitions_are_those_of_scikit_learn(classes, ties):
    for seed in range(5):
        truth, predicted, p = predictions(150, classes, seed, ties)
        assert not ties or len(np.unique(p[:, 1])) < 75
        found = measures(truth, predicted, p)
        for name, expected in of_sklearn(truth, predicted, p).items():
            assert found[name] == pytest.approx(expected, abs=1e-12), name
        np.testing.assert_array_equal(found.confusion, confusion_matrix(truth, predicted))
        precision, recall, f1, rows = precision_recall_fscore_support(truth, predicted, zero_division=np.nan)
        for c, of in enumerate(found.per_class):
            assert (of["class"], of["rows"]) == (c, rows[c])
            expected = {
                "precision": precision[c],
                "recall": recall[c],
                "f1": f1[c],
                "auc": roc_auc_score(truth == c, p[:, c]),
                "average_precision": average_precision_score(truth == c, p[:, c]),
            }
            for name, value in expected.items():
                assert (of[name] is None and np.isnan(value)) or of[name] == pytest.approx(value, abs=1e-12), name


def test_brier_scores_of_several_classes():
    """scikit-learn has them from 1.8 on; before, they are as defined."""
    truth, predicted, p = predictions(100, 4, 0, True)
    try:
        expected = brier_score_loss(truth, p, labels=range(4))
    except (ValueError, TypeError):
        pytest.skip("this scikit-learn has the Brier score of two classes only")
    assert measures(truth, predicted, p).brier == pytest.approx(expected, abs=1e-12)


def test_sure_and_wrong_probabilities():
    """The log loss stays finite, as in scikit-learn."""
    truth, p = np.array([0, 1, 1, 0]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert measures(truth, y_proba=p).log_loss == pytest.approx(log_loss(truth, p), rel=1e-12)


def test_calibration_error_by_its_definition():
    rng = np.random.RandomState(0)
    p1 = rng.rand(1000)
    truth = (rng.rand(1000) < p1**1.5).astype(int)
    p = np.column_stack([1 - p1, p1])
    sure, right = p.max(axis=1), p.argmax(axis=1) == truth
    bins = np.array_split(np.argsort(-sure, kind="stable"), 10)
    expected = sum(abs(right[rows].sum() - sure[rows].sum()) for rows in bins) / 1000
    assert measures(truth, y_proba=p).calibration_error == pytest.approx(expected, abs=1e-12)


def test_intervals_hold_the_value_and_narrow():
    widths = []
    for rows in (200, 5000):
        found = measures(*predictions(rows, 2, 1, False))
        assert set(found.intervals) == set(NAMES)
        for name, (low, high) in found.intervals.items():
            assert low <= found[name] <= high and low < high, name
        widths.append({name: high - low for name, (low, high) in found.intervals.items()})
    for name in NAMES:
        if name != "calibration_error":
            assert widths[0][name] == pytest.approx(5 * widths[1][name], rel=0.35), name


def test_labels_of_any_kind(cancer):
    truth, predicted, p = predictions(120, 2, 3, True)
    names = np.array(["no", "yes"])
    plain, named = measures(truth, predicted, p), measures(names[truth], names[predicted], p)
    assert all(plain[name] == named[name] for name in NAMES)
    assert (named.positive, list(named.classes), named.per_class[1]["class"]) == ("yes", ["no", "yes"], "yes")
    other = measures(names[truth], names[predicted], p, pos_label="no")
    assert other.positive == "no"
    assert other.f1 == pytest.approx(f1_score(truth, predicted, pos_label=0))
    assert other.average_precision == pytest.approx(average_precision_score(1 - truth, p[:, 0]))
    # Of two classes the probabilities of one are enough; without any there are the measures of classes.
    one = measures(truth, predicted, p[:, 1])
    assert all(plain[name] == pytest.approx(one[name], abs=1e-12) for name in NAMES)
    bare = measures(pd.Series(truth), predicted.tolist())
    assert (bare.f1, bare.auc, bare.log_loss) == (plain.f1, None, None)
    assert "yes" in str(named) and "95 % interval" in str(named)


def test_what_does_not_fit_is_refused():
    for arguments, words in (
        (dict(y_true=[0, 1]), "y_pred or y_proba"),
        (dict(y_true=[0, 1], y_pred=[0, 1, 1]), "inconsistent"),
        (dict(y_true=[0, 1, 2], y_pred=[0, 1, 1], y_proba=[0.1, 0.2, 0.3]), "a column for each"),
        (dict(y_true=[0, 1], y_pred=[0, 1], y_proba=[[0.1, 0.2, 0.7]] * 2), "3 columns for 2 labels"),
        (dict(y_true=[0, 1], y_pred=[0, 1], y_proba=[0.1, 1.2]), "between 0 and 1"),
        (dict(y_true=[0, 1], y_pred=[0, 1], pos_label=3), "pos_label=3"),
        (dict(y_true=[1, 1], y_pred=[1, 1]), "at least two classes"),
    ):
        with pytest.raises(ValueError, match=words):
            measures(**arguments)


def same(a, b):
    scalars = (*NAMES, "rows", "positive", "intervals", "per_class", "text")
    return a.keys() == b.keys() and all(a[name] == b[name] for name in scalars)


def test_evaluate_is_measures_of_what_is_predicted(wine, cancer):
    for X, y in (wine, cancer):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
        model = SVMLClassifier(form="sphere").fit(X_train, y_train)
        found = model.evaluate(X_test, y_test)
        expected = measures(y_test, model.predict(X_test), model.predict_proba(X_test))
        assert same(found, expected)
        assert found.error == pytest.approx(1 - model.score(X_test, y_test))
        assert found.log_loss == pytest.approx(log_loss(y_test, model.predict_proba(X_test)))
        # All threads give the same bits.
        assert same(model.set_params(n_jobs=2).evaluate(X_test, y_test), found)
    with pytest.raises(ValueError, match="pos_label=7"):
        model.evaluate(X_test, y_test, pos_label=7)
    # A class that the model does not know is always wrong.
    strange = np.where(np.arange(len(y_test)) == 0, 5, y_test)
    assert list(model.evaluate(X_test, strange).classes) == [0, 1, 5]


def rare(seed, rows=1500):
    return make_classification(
        rows, n_features=6, n_informative=4, weights=[0.9], class_sep=0.8, flip_y=0.05, random_state=seed
    )


def test_probabilities_are_corrected_for_the_weights_of_classes():
    X, y = rare(1)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y, train_size=500)
    plain = SVMLClassifier().fit(X_train, y_train).evaluate(X_test, y_test)
    model = SVMLClassifier(class_weight="balanced").fit(X_train, y_train)
    found = model.evaluate(X_test, y_test)
    # With the weights put back in, as the SVMs have them, the log loss is far larger.
    shares = np.bincount(y_train) / len(y_train)
    weighted = model.predict_proba(X_test) / shares
    weighted /= weighted.sum(axis=1, keepdims=True)
    loss = measures(y_test, y_proba=weighted).log_loss
    assert found.log_loss - plain.log_loss < 0.4 * (loss - plain.log_loss)
    assert found.calibration_error < measures(y_test, y_proba=weighted).calibration_error
    assert found.balanced_error < plain.balanced_error
    p = model.predict_proba(X_test)
    off = [abs(of[:, 1].mean() - y_test.mean()) for of in (p, weighted)]
    assert off[0] < 0.25 * off[1]
    # The decision is that of the weighted SVMs, and not that of the probabilities.
    np.testing.assert_array_equal(model.predict(X_test), (model.decision_function(X_test) > 0).astype(int))
    assert (model.predict(X_test) != p.argmax(axis=1)).any()


def test_the_file_keeps_the_weights(tmp_path):
    X, y = rare(2, 200)
    model = SVMLClassifier(class_weight="balanced").fit(X, y)
    model.save(tmp_path / "m.svml")
    np.testing.assert_array_equal(svml.load(tmp_path / "m.svml").predict_proba(X), model.predict_proba(X))


def test_weights_for_labels_that_are_no_classes(small):
    """As scikit-learn has it: they are refused unless all classes have weights."""
    from sklearn.utils.class_weight import compute_class_weight

    X, y = small
    for weights in ({0: 1, 7: 2}, {7: 2}, {"0": 1, "no": 3}):
        with pytest.raises(ValueError, match="class_weight"):
            compute_class_weight(weights, classes=np.unique(y), y=y)
        with pytest.raises(ValueError, match="'class_weight' parameter of SVMLClassifier must be a dict from classes of y"):
            SVMLClassifier(class_weight=weights).fit(X, y)
    for weights in ({0: 1}, {0: 1, 1: 2}, {0: 1, 1: 2, 7: 3}):
        compute_class_weight(weights, classes=np.unique(y), y=y)
        SVMLClassifier(class_weight=weights, form="sphere").fit(X, y)


def visits(patients, rows, seed):
    """Near-copies with the label of their patient, which little but the patient tells."""
    rng = np.random.RandomState(seed)
    centre = rng.uniform(-1, 1, (patients, 6))
    ill = rng.uniform(-1, 1, patients) < 1.2 * centre[:, 0]
    group = np.repeat(np.arange(patients), rows)
    return centre[group] + rng.uniform(-0.05, 0.05, (len(group), 6)), ill[group].astype(int), group


def test_groups_make_the_error_honest():
    X, y, group = visits(120, 4, 1)
    X_new, y_new, _ = visits(400, 3, 2)
    without = SVMLClassifier().fit(X, y)
    model = SVMLClassifier().fit(X, y, groups=group)
    truth = 1 - model.score(X_new, y_new)
    assert without.honest_error_ < 0.1 and truth > 0.2
    assert model.honest_error_ == pytest.approx(truth, abs=0.12)
    names = np.array([f"patient {g:03}" for g in group])
    # Names of any kind, in the same order, are the same groups.
    np.testing.assert_array_equal(
        SVMLClassifier().fit(X, y, groups=names.tolist()).decision_function(X_new), model.decision_function(X_new)
    )


def test_groups_are_routed():
    X, y, group = visits(40, 5, 3)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVMLClassifier(form="sphere").set_fit_request(groups=True)
        found = cross_validate(model, X, y, cv=GroupKFold(3), params={"groups": group}, return_estimator=True)
    train, _ = next(GroupKFold(3).split(X, y, group))
    with_groups = SVMLClassifier(form="sphere").fit(X[train], y[train], groups=group[train])
    np.testing.assert_array_equal(found["estimator"][0].decision_function(X), with_groups.decision_function(X))


def test_groups_that_cannot_be(small):
    X, y = small
    for groups, words in (
        (np.zeros(len(y)), "at least two groups"),
        (np.arange(len(y) - 1), "inconsistent"),
        ([None] + list(range(len(y) - 1)), "missing values"),
        ([np.nan] + list(range(len(y) - 1)), "missing values"),
    ):
        with pytest.raises(ValueError, match=words):
            SVMLClassifier().fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="'validation' parameter"):
        SVMLClassifier(validation="loo").fit(X, y, groups=np.arange(len(y)) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SVMLClassifier(form="sphere").fit(X, y, groups=np.arange(len(y)) // 4)
