"""The estimators as parts of scikit-learn's machinery, and what their attributes mean."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

from svml import ITML, LMNN, NCA, SVML, InvalidParameterError, SVMLClassifier

TRANSFORMERS = [SVML, NCA, LMNN, ITML]
ALL = [SVMLClassifier, *TRANSFORMERS]
FORMS = [{"form": form} for form in ("sphere", "diagonal", "full")]
FORMS.append({"form": "low_rank", "n_components": 2})
FORMS += [{"form": form, "kernel": "exponential"} for form in ("sphere", "diagonal", "full")]
FORMS += [{"form": form, "kernel": "laplacian"} for form in ("sphere", "diagonal")]
KERNELS = {
    "gaussian": lambda difference: np.exp(-(difference**2).sum(-1)),
    "exponential": lambda difference: np.exp(-np.sqrt((difference**2).sum(-1))),
    "laplacian": lambda difference: np.exp(-np.abs(difference).sum(-1)),
}


def decision_of_pairs(outputs, pairs, classes):
    """The decision values that the outputs of the SVMs of all pairs of classes make."""
    if classes == 2:
        return outputs[0]
    votes, sums = np.zeros((2, len(outputs[0]), classes))
    for (i, j), h in zip(pairs, outputs, strict=True):
        votes[np.arange(len(h)), np.where(h > 0, j, i)] += 1
        sums[:, j] += h
        sums[:, i] -= h
    return votes + sums / (3 * (np.abs(sums) + 1))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))
@pytest.mark.parametrize("data", ["cancer", "wine"])
def test_attributes_make_the_decision(form, data, request):
    """The SVM, computed anew from its attributes."""
    X, y = request.getfixturevalue(data)
    model = SVMLClassifier(**form).fit(X, y)
    Z, S = model.transform(X), model.transform(model.support_vectors_)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    np.testing.assert_allclose(Z, (X - model.mean_) @ model.components_.T, atol=1e-9)
    kernel = KERNELS[model.kernel](Z[:, None] - S[None])
    classes = len(model.classes_)
    assert model.n_support_.sum() == len(S) and model.dual_coef_.shape == (classes - 1, len(S))
    owner = np.repeat(np.arange(classes), model.n_support_)
    np.testing.assert_array_equal(model.classes_[owner], y[model.support_])
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    assert model.intercept_.shape == (len(pairs),)
    outputs = []
    for (i, j), bias in zip(pairs, model.intercept_, strict=True):
        beta = np.where(owner == i, model.dual_coef_[j - 1], np.where(owner == j, model.dual_coef_[i], 0))
        outputs.append(kernel @ beta + bias)
    expected = decision_of_pairs(outputs, pairs, classes)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(model.classes_[p.argmax(1)], model.predict(X))
    assert model.score(X, y) > 0.95
    assert isinstance(model.C_, float) and model.candidates_ == []
    (member,) = model.members_
    rank = model.n_components
    expected = {"kernel": model.kernel, "form": model.form, "n_components": rank, "C": model.C_, "weight": 1.0}
    np.testing.assert_array_equal(member.pop("components"), model.components_)
    assert member == expected


@pytest.mark.parametrize("data", ["cancer", "wine"])
def test_the_default_is_the_mean_of_its_members(data, request):
    """The mean, computed anew from the kernels, metrics, C and weights of its members by another solver."""
    X, y = request.getfixturevalue(data)
    model = SVMLClassifier().fit(X, y)
    members = model.members_
    assert len(members) > 1 and model.C_.shape == (len(members),)
    assert sum(member["weight"] for member in members) == pytest.approx(1)
    assert [member["C"] for member in members] == model.C_.tolist()
    chosen = [candidate for candidate in model.candidates_ if candidate["chosen"]]
    for key in ("kernel", "form", "n_components", "weight"):
        assert [candidate[key] for candidate in chosen] == [member[key] for member in members]
    assert all(0 <= candidate["error"] <= 1 and candidate["cost"] > 0 for candidate in model.candidates_)
    # The metric by which rows are mapped is the mean of theirs, each scaled to a trace of one.
    scaled = [member["components"] * model.scale_ for member in members]
    metrics = np.array([L.T @ L / (L**2).sum() for L in scaled])
    weights = np.array([member["weight"] for member in members])
    mapped = model.components_ * model.scale_
    np.testing.assert_allclose(mapped.T @ mapped, np.tensordot(weights, metrics, 1), rtol=1e-9, atol=1e-12)
    importances = np.array([np.diag(M) for M in metrics])
    np.testing.assert_allclose(model.feature_importances_, weights @ importances, rtol=1e-9)
    spread = [importances.min(axis=0), importances.max(axis=0)]
    np.testing.assert_allclose(model.feature_importances_spread_, spread, rtol=1e-9, atol=1e-15)
    assert model.feature_importances_.sum() == pytest.approx(1)
    # Each member is the SVM of all rows with that metric and that C, which is a ridge of 1/C and no bound.
    classes = len(model.classes_)
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    outputs, support = np.zeros((len(pairs), len(X))), set()
    for member in members:
        Z = X @ member["components"].T
        K = KERNELS[member["kernel"]](Z[:, None] - Z[None])
        for k, pair in enumerate(pairs):
            rows = np.flatnonzero(np.isin(y, model.classes_[list(pair)]))
            ridge = np.eye(len(rows)) / member["C"]
            svm = SVC(kernel="precomputed", C=1e6, tol=1e-8).fit(K[np.ix_(rows, rows)] + ridge, y[rows])
            outputs[k] += member["weight"] * (K[:, rows[svm.support_]] @ svm.dual_coef_[0] + svm.intercept_[0])
            support.update(rows[svm.support_].tolist())
    np.testing.assert_allclose(model.decision_function(X), decision_of_pairs(outputs, pairs, classes), atol=1e-5)
    assert set(model.support_.tolist()) == support
    # What a mean does not have is not there, and says why.
    for name in ("dual_coef_", "intercept_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=rf'{name} exists only for a single SVM.*form="diagonal"'):
            getattr(model, name)


@pytest.mark.parametrize("data", ["cancer", "wine"])
def test_how_members_are_learned(data, request):
    """Without cross-fitting each for itself from the usual start; with it, from what the halves have learned."""
    X, y = request.getfixturevalue(data)
    apart, model = SVMLClassifier(cross_fit=False).fit(X, y), SVMLClassifier().fit(X, y)
    decisions = 0
    for member in apart.members_:
        alone = SVMLClassifier(form=member["form"], kernel=member["kernel"], cross_fit=False).fit(X, y)
        assert member["C"] == alone.C_
        np.testing.assert_array_equal(member["components"], alone.components_)
        decisions = decisions + alone.decision_function(X) / 3
    if len(model.classes_) == 2:
        np.testing.assert_allclose(apart.decision_function(X), decisions, atol=1e-9)
    assert len(apart.members_) == 3 and not apart.trace_["half"].any()
    # The halves come to nearly the same, so that few steps are left on all rows.
    trace = pd.DataFrame(model.trace_)
    steps = {half: part.groupby("kernel").size() for half, part in trace.groupby("half")}
    assert set(steps[True].index) == set(KERNELS) and set(steps[False].index) == {m["kernel"] for m in model.members_}
    assert trace["half"].is_monotonic_decreasing
    assert steps[False].max() < steps[True].min()
    assert (model.predict(X) == apart.predict(X)).mean() > 0.98


def test_the_error_on_rows_that_were_not_used(cancer, small):
    model = SVMLClassifier().fit(*cancer)
    assert 0 < model.honest_error_ < 0.06 and 0 < model.honest_log_loss_ < 0.2
    # Learned with a half of the rows, by hand: about as many errors.
    X, y = cancer
    halves = [np.arange(len(X)) % 2 == k for k in (0, 1)]
    errors = [1 - SVMLClassifier(cross_fit=False).fit(X[h], y[h]).score(X[~h], y[~h]) for h in halves]
    assert model.honest_error_ == pytest.approx(np.mean(errors), abs=0.02)
    given = SVMLClassifier(form="diagonal").fit(*cancer)
    assert 0 < given.honest_error_ < 0.06 and given.honest_log_loss_ > 0
    for form in ("auto", "sphere"):
        without = SVMLClassifier(form=form, cross_fit=False).fit(*small)
        assert without.honest_error_ is None and without.honest_log_loss_ is None
    assert without.candidates_ == []
    # Without an answer all members count the same.
    equal = SVMLClassifier(cross_fit=False).fit(*small)
    assert [member["weight"] for member in equal.members_] == pytest.approx([1 / 3] * 3)


def test_a_model_that_is_no_better_than_guessing_warns():
    rng = np.random.RandomState(0)
    X, y = rng.randn(120, 3), rng.randint(0, 2, 120)
    with pytest.warns(UserWarning, match="no better than always predicting the most frequent class"):
        model = SVMLClassifier().fit(X, y)
    assert model.honest_error_ > 0.35


@pytest.mark.parametrize("estimator", ALL)
def test_metric(estimator, wine):
    X, y = wine
    model = estimator().fit(X, y)
    Z, M, metric = model.transform(X), model.get_mahalanobis_matrix(), model.get_metric()
    for i, j in [(0, 1), (3, 100), (50, 170)]:
        expected = np.linalg.norm(Z[i] - Z[j])
        assert metric(X[i], X[j]) == pytest.approx(expected, rel=1e-9)
        assert np.sqrt((X[i] - X[j]) @ M @ (X[i] - X[j])) == pytest.approx(expected, rel=1e-9)
    diagonal = np.diag(M) * model.scale_**2
    np.testing.assert_allclose(model.feature_importances_, diagonal / diagonal.sum(), rtol=1e-9)
    low, high = model.feature_importances_spread_
    assert (low <= model.feature_importances_).all() and (model.feature_importances_ <= high).all()
    if len(getattr(model, "members_", [])) < 2:
        np.testing.assert_array_equal(low, high)
    neighbours = KNeighborsClassifier(3, metric=metric, algorithm="brute").fit(X[::3], y[::3])
    mapped = KNeighborsClassifier(3).fit(Z[::3], y[::3])
    np.testing.assert_array_equal(neighbours.predict(X), mapped.predict(Z))


@pytest.mark.filterwarnings("ignore:column .* is constant")
def test_a_constant_column_weighs_nothing(wine):
    X, y = wine
    X = np.column_stack([X, np.ones(len(X))])
    for estimator in ALL:
        model = estimator().fit(X, y)
        assert model.scale_[-1] == 0 and not model.components_[:, -1].any()
        assert model.feature_importances_[-1] == 0 and not model.feature_importances_spread_[:, -1].any()
        assert not any(member["components"][:, -1].any() for member in getattr(model, "members_", []))
        assert model.feature_importances_.sum() == pytest.approx(1)
        assert any("constant" in warning for warning in model.warnings_)


def test_what_the_user_should_know_is_a_warning(wine):
    X, y = wine
    with pytest.warns(UserWarning, match="^column x14 is constant and was left out$") as caught:
        NCA().fit(np.column_stack([X, np.ones(len(X))]), y)
    assert len(caught) == 1 and caught[0].filename == __file__
    with pytest.warns(UserWarning, match="x16 is constant and was left out; and 2 more, in warnings_$"):
        model = SVMLClassifier().fit(np.column_stack([X, np.ones((len(X), 5))]), y)
    assert len(model.warnings_) == 5


@pytest.mark.parametrize("estimator", TRANSFORMERS)
@pytest.mark.parametrize("after", [KNeighborsClassifier(3), SVC()])
def test_before_another_classifier(estimator, after, wine):
    assert cross_val_score(make_pipeline(estimator(), after), *wine, cv=3).mean() > 0.9


@pytest.mark.parametrize("estimator", [SVMLClassifier, SVML, NCA, LMNN])
def test_n_components(estimator, wine):
    model = estimator(n_components=2).fit(*wine)
    assert model.form_ == "low_rank" and model.n_components_ == 2 and model.components_.shape == (2, 13)
    if estimator in (SVMLClassifier, SVML):
        explicit = estimator(form="low_rank", n_components=2).fit(*wine)
        assert explicit._model.to_bytes() == model._model.to_bytes()
    prefix = estimator.__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{prefix}0", f"{prefix}1"]


def test_trace(cancer):
    model = SVMLClassifier().fit(*cancer)
    trace = pd.DataFrame(model.trace_)
    assert list(trace["iteration"]) == list(range(len(trace)))
    assert set(zip(trace["kernel"], trace["form"])) >= {(m["kernel"], m["form"]) for m in model.members_}
    assert trace["kernel"][0] == "gaussian" and trace["form"][0] == "sphere" and (trace["cost"] > 0).all()
    assert trace["stopping_error"].isna().all()
    assert {"step_length", "support_vectors", "train_error", "valid_error"} <= set(trace)
    # On half of the rows first, then on all of them; an SVM starts with a step of length 0.
    assert trace["half"].dtype == bool and trace["half"].is_monotonic_decreasing
    starts = trace[trace["step_length"] == 0]
    halves = [("gaussian", "sphere"), ("exponential", "diagonal"), ("laplacian", "sphere")]
    members = [(m["kernel"], m["form"]) for m in model.members_]
    assert list(zip(starts["kernel"], starts["form"])) == halves + members
    assert list(starts["half"]) == [True] * 3 + [False] * len(members)
    assert not trace["half"][model.best_iter_] and trace["kernel"][model.best_iter_] == members[-1][0]
    assert model.n_iter_ == len(trace) - 1
    assert model.stop_reason_ in {"tolerance", "minimum"}
    one = SVMLClassifier(form="diagonal", kernel="laplacian").fit(*cancer)
    assert one.trace_["cost"][one.best_iter_] == one.C_
    assert set(one.trace_["kernel"]) == {"laplacian"} and set(one.trace_["form"]) == {"diagonal"}
    # An SVM whose form is given is learned on all rows; what the halves do is not part of its trace.
    assert not one.trace_["half"].any() and one.honest_error_ is not None
    early = SVMLClassifier(validation="hold_out", form="full", tol=0, patience=2).fit(*cancer)
    assert not np.isnan(early.trace_["stopping_error"]).any() and set(early.trace_["form"]) == {"full"}
    assert early.stop_reason_ == "early_stopping"
    rival = LMNN().fit(*cancer)
    assert rival.trace_["gap"][-1] <= rival.tol and rival.stop_reason_ == "tolerance"
    assert not {"half", "kernel", "form"} & set(rival.trace_)


def test_labels_of_any_kind(small):
    X, y = small
    plain = SVMLClassifier().fit(X, y)
    for labels in [
        np.array(["no", "yes"]),
        np.array(["10", "9"]),
        np.array([" a", "a"]),
        np.array(["", "nan"]),
        np.array([False, True]),
        np.array([-1.0, 1.0]),
        np.array([-3, 10**15]),
        np.array(["grün", "rot"], dtype=object),
    ]:
        model = SVMLClassifier().fit(X, labels[y])
        np.testing.assert_array_equal(model.classes_, labels)
        assert model.classes_.dtype == labels.dtype
        np.testing.assert_array_equal(model.predict(X), labels[plain.predict(X)])
        np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))


def test_frames(wine_frame):
    X, y = wine_frame
    arrays = SVMLClassifier().fit(X.to_numpy(), y)
    expected = arrays.decision_function(X.to_numpy())
    assert not hasattr(arrays, "feature_names_in_")
    for frame in (X, pl.from_pandas(X)):
        for labels in (y, pl.Series(y.to_numpy())):
            model = SVMLClassifier().fit(frame, labels)
            assert list(model.feature_names_in_) == list(X.columns)
            np.testing.assert_array_equal(model.decision_function(frame), expected)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[X.columns[::-1]])
    # Names that no header of a table could hold do not matter.
    for names in ([f" {k}" for k in range(13)], [""] + [str(k) for k in range(12)]):
        odd = X.set_axis(names, axis=1)
        np.testing.assert_array_equal(SVMLClassifier().fit(odd, y).decision_function(odd), expected)


@pytest.mark.parametrize("estimator", ALL)
def test_set_output(estimator, wine_frame):
    X, y = wine_frame
    arrays = estimator().fit_transform(X, y)
    for library, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        model = estimator().set_output(transform=library)
        frame = model.fit_transform(X, y)
        assert isinstance(frame, kind)
        assert list(frame.columns) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(frame.to_numpy(), arrays)
        assert isinstance(model.transform(X), kind)


def test_grid_search_and_pipeline(wine):
    pipeline = Pipeline([("metric", SVML()), ("neighbours", KNeighborsClassifier())])
    grid = {"metric__form": ["sphere", "diagonal"], "neighbours__n_neighbors": [1, 5]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2).fit(*wine)
    assert search.best_score_ > 0.93
    search = GridSearchCV(SVMLClassifier(), {"regularization": [0.01, 0.1]}, cv=3, error_score="raise").fit(*wine)
    assert search.best_params_["regularization"] in (0.01, 0.1) and search.best_score_ > 0.93


def test_column_transformer(wine_frame):
    X, y = wine_frame
    X = X.assign(colour=np.where(X["hue"] > 1, "red", "white"))
    parts = make_column_transformer(
        (NCA(n_components=2), list(X.columns[:-1])), (OneHotEncoder(), ["colour"])
    )
    mapped = parts.fit_transform(X, y)
    assert mapped.shape == (178, 4)
    assert list(parts.get_feature_names_out())[:2] == ["nca__nca0", "nca__nca1"]
    assert make_pipeline(parts, SVMLClassifier()).fit(X, y).score(X, y) > 0.97


def test_selection_by_relevance(cancer):
    X, y = cancer
    chosen = SelectFromModel(SVMLClassifier()).fit(X, y).get_support()
    importances = SVMLClassifier().fit(X, y).feature_importances_
    np.testing.assert_array_equal(chosen, importances >= importances.mean())


@pytest.mark.parametrize("estimator", ALL)
def test_a_weight_is_a_repetition(estimator, wine):
    X, y = wine
    times = np.arange(len(X)) % 4
    weighted = estimator().fit(X, y, sample_weight=times)
    repeated = estimator().fit(np.repeat(X, times, axis=0)[::-1], np.repeat(y, times)[::-1])
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(weighted.components_, repeated.components_)


def test_weights_are_routed(wine):
    X, y = wine
    weights = np.where(y == 0, 5.0, 1.0)
    direct = SVMLClassifier().fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SVMLClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(LMNN().set_fit_request(sample_weight=True), model)
        pipeline.fit(X, y, sample_weight=weights)
        before = LMNN().fit(X, y, sample_weight=weights)
        after = SVMLClassifier().fit(before.transform(X), y, sample_weight=weights)
        np.testing.assert_array_equal(
            pipeline.decision_function(X), after.decision_function(before.transform(X))
        )
        search = GridSearchCV(model, {"form": ["sphere"]}, cv=3).fit(X, y, sample_weight=weights)
        form = SVMLClassifier(form="sphere").fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(search.decision_function(X), form.decision_function(X))
    assert (direct.decision_function(X) != SVMLClassifier().fit(X, y).decision_function(X)).any()


def test_class_weight(small):
    X, y = small
    rows = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:12]]
    X, y = X[rows], y[rows]
    balanced = SVMLClassifier(class_weight="balanced").fit(X, y)
    shares = len(y) / (2 * np.bincount(y))
    given = SVMLClassifier(class_weight={0: shares[0], 1: shares[1], 7: 2.0}).fit(X, y)
    np.testing.assert_allclose(given.decision_function(X), balanced.decision_function(X))
    assert (balanced.predict(X) == 1).sum() >= (SVMLClassifier().fit(X, y).predict(X) == 1).sum()


def test_a_class_without_weight_does_not_count(wine):
    X, y = wine
    model = SVMLClassifier().fit(X, y, sample_weight=(y != 1).astype(float))
    assert list(model.classes_) == [0, 2]
    without = SVMLClassifier().fit(X[y != 1], y[y != 1])
    np.testing.assert_array_equal(model.decision_function(X), without.decision_function(X))
    np.testing.assert_array_equal(np.flatnonzero(y != 1)[without.support_], model.support_)


@pytest.mark.parametrize("estimator", ALL)
def test_single_precision_is_the_same_numbers(estimator, wine):
    X, y = wine
    single = X.astype(np.float32)
    a, b = estimator().fit(single, y), estimator().fit(single.astype(np.float64), y)
    np.testing.assert_array_equal(a.transform(single), b.transform(single.astype(np.float64)))


def test_layout_of_memory_does_not_matter(wine):
    X, y = wine
    expected = SVMLClassifier().fit(X, y).decision_function(X)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        np.testing.assert_array_equal(SVMLClassifier().fit(other, y).decision_function(other), expected)


def test_random_state(small):
    X, y = small

    def fitted(random_state):
        return SVMLClassifier(random_state=random_state).fit(X, y).decision_function(X)

    np.testing.assert_array_equal(fitted(0), SVMLClassifier().fit(X, y).decision_function(X))
    np.testing.assert_array_equal(fitted(3), fitted(3))
    assert (fitted(3) != fitted(4)).any()
    np.testing.assert_array_equal(fitted(np.random.RandomState(5)), fitted(np.random.RandomState(5)))
    np.random.seed(1)
    first = fitted(None)
    np.random.seed(1)
    np.testing.assert_array_equal(first, fitted(None))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVMLClassifier(tol=-1), "'tol' parameter of SVMLClassifier must be finite and at least 0. Got -1"),
        (SVMLClassifier(tol="x"), "'tol' parameter of SVMLClassifier must be a number of at least 0. Got 'x'"),
        (SVMLClassifier(tol=float("nan")), "'tol' parameter of SVMLClassifier must be a number of at least 0. Got nan"),
        (NCA(max_iter=1.5), "'max_iter' parameter of NCA must be an integer of at least 0. Got 1.5"),
        (NCA(n_components=5), "'n_components' parameter of NCA must be between 1 and the number of features, 4"),
        (NCA(n_components="x"), "'n_components' parameter of NCA must be an integer of at least 1, or None"),
        (SVML(form="low_rank"), "'n_components' parameter of SVML must be an integer in the range"),
        (SVML(form="low_rank", n_components=0), "'n_components' parameter of SVML must be an integer in the"),
        (SVML(form="low_rank", n_components=9), "'n_components' parameter of SVML must be between 1 and the"),
        (SVML(form="full", n_components=2), "'n_components' parameter of SVML must be None with form='full'"),
        (SVML(n_components=2.5), "'n_components' parameter of SVML must be an integer in the range [1, "),
        (SVML(form="rank=2"), "'form' parameter of SVML must be 'auto', 'sphere', 'diagonal', 'full' or"),
        (SVML(validation=1), "'validation' parameter of SVML must be an integer of at least 2, 'hold_out' or 'loo'"),
        (SVML(validation="k_fold=5"), "'validation' parameter of SVML must be an integer of at least 2, 'hold_out' or 'loo'"),
        (SVML(surrogate="step"), "'surrogate' parameter of SVML must be squared_hinge, sigmoid or logistic"),
        (SVML(solver="newton"), "'solver' parameter of SVML must be 'lbfgs' or 'cg'"),
        (SVML(solver=[]), "'solver' parameter of SVML must be 'lbfgs' or 'cg'"),
        (SVML(init="zero"), "'init' parameter of SVML must be auto, scaled, identity, gradients or an array"),
        (NCA(init="gradients"), "'init' parameter of NCA must be identity, scaled or an array"),
        (SVML(learn_C=3), "'learn_C' parameter of SVML must be True or False. Got 3"),
        (SVML(cross_fit="no"), "'cross_fit' parameter of SVML must be True or False. Got 'no'"),
        (SVML(form="diagonal", kernel="linear"), "'kernel' parameter of SVML must be gaussian, exponential or"),
        (SVML(kernel="exponential"), "'kernel' parameter of SVML must be omitted if the form is auto"),
        (SVML(form="full", kernel="laplacian"), "'form' parameter of SVML must be sphere or diagonal for the"),
        (SVML(C_init=-1), "'C_init' parameter of SVML must be between 0.001 and 10000. Got -1"),
        (SVML(regularization=0), "'regularization' parameter of SVML must be positive and finite. Got 0"),
        (SVML(class_weight="odd"), "'class_weight' parameter of SVML must be a dict, 'balanced' or None"),
        (SVML(class_weight={0: 1e99}), "'class_weight' parameter of SVML must be between 1e-9 and 1e9"),
        (SVML(time_limit=0), "'time_limit' parameter of SVML must be a positive number of seconds"),
        (SVML(callbacks=3), "'callbacks' parameter of SVML must be a callable"),
        (SVML(random_state=-1), "'random_state' parameter of SVML must be an integer of at least 0"),
        (LMNN(n_neighbors=0), "'n_neighbors' parameter of LMNN must be at least 1. Got 0"),
        (ITML(bounds=(1.0,)), "'bounds' parameter of ITML must be a pair of positive numbers, or None"),
        (ITML(prior=[]), "'prior' parameter of ITML must be a positive number, or None"),
        (ITML(gamma=object()), "'gamma' parameter of ITML must be a positive number"),
    ],
)
def test_bad_parameters_are_named(estimator, message, small):
    with pytest.raises(InvalidParameterError) as raised:
        estimator.fit(*small)
    assert message in str(raised.value)
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, TypeError)


def test_bad_data_are_named(small):
    X, y = small
    model = SVMLClassifier().fit(X, y)
    for bad, message in [
        (X[:, :3], "X has 3 features, but SVMLClassifier is expecting 4 features as input"),
        (np.where(X > 1, np.nan, X), "Input X contains NaN"),
        (np.where(X > 1, np.inf, X), "Input X contains infinity"),
        (X[0], "Expected 2D array, got 1D array instead"),
        (X[:0], "minimum of 1 is required"),
        (np.full_like(X, 1e305), "outside the accepted range"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict(bad)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVMLClassifier().fit(X, y[1:])
    with pytest.raises(ValueError, match="Unknown label type"):
        SVMLClassifier().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="class"):
        SVMLClassifier().fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="Negative values"):
        SVMLClassifier().fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="at least one non-zero"):
        SVMLClassifier().fit(X, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="1e-9 and 1e9"):
        SVMLClassifier().fit(X, y, sample_weight=np.full(len(y), 1e-30))
    with pytest.raises(MemoryError, match="raise memory_limit if the computer has enough memory"):
        SVMLClassifier(memory_limit=1000).fit(X, y)
    # The way out that the message names.
    with pytest.raises(MemoryError, match="landmarks=2000"):
        SVMLClassifier(memory_limit=1000).fit(X, y)
    with pytest.raises(MemoryError, match="or use fewer landmarks or rows"):
        SVMLClassifier(memory_limit=1000, landmarks=2000).fit(X, y)
    limit = 8 * len(X) ** 2
    with pytest.raises(MemoryError):
        SVMLClassifier(memory_limit=limit).fit(X, y)
    assert SVMLClassifier(memory_limit=limit, landmarks=5).fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize("landmarks", [50, np.int64(50)])
def test_landmarks(landmarks, tmp_path):
    X, y = make_classification(n_samples=300, n_features=5, class_sep=2.0, random_state=0)
    model = SVMLClassifier(form="diagonal", landmarks=landmarks).fit(X, y)
    assert model.landmarks_ == {"learned": 50, "in_model": 50}
    assert model.support_.shape == (50,) and model.n_support_.sum() == 50
    assert model.score(X, y) > 0.9
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.decision_function(X), model.decision_function(X))
    assert copied.landmarks_ == model.landmarks_ and copied.landmarks == 50
    model.save(tmp_path / "model.svml")
    loaded = SVMLClassifier.load(tmp_path / "model.svml")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.landmarks_ == model.landmarks_
    assert loaded.landmarks == 50 and type(loaded.landmarks) is int


def test_few_rows_are_exact(small, tmp_path):
    X, y = small
    auto, exact = (SVMLClassifier(landmarks=landmarks).fit(X, y) for landmarks in ("auto", "exact"))
    assert auto.landmarks_ is None and exact.landmarks_ is None
    np.testing.assert_array_equal(auto.decision_function(X), exact.decision_function(X))
    exact.save(tmp_path / "model.svml")
    loaded = SVMLClassifier.load(tmp_path / "model.svml")
    assert loaded.landmarks == "exact" and loaded.memory_limit is None


@pytest.mark.parametrize("landmarks", [0, -1, 2.5, True, None, "many"])
def test_landmarks_that_are_none(landmarks, small):
    message = "'landmarks' parameter of SVMLClassifier must be auto, exact or a number of at least 1"
    with pytest.raises(InvalidParameterError, match=message):
        SVMLClassifier(landmarks=landmarks).fit(*small)


def test_arithmetic_that_fails_is_no_fault_of_the_data(small):
    with pytest.raises(FloatingPointError, match="not a finite number") as raised:
        LMNN(mu=1e300).fit(*small, sample_weight=np.full(80, 1e9))
    assert not isinstance(raised.value, ValueError)


@pytest.mark.parametrize("estimator", ALL)
def test_before_the_fit(estimator, small):
    model = estimator()
    with pytest.raises(NotFittedError):
        model.transform(small[0])
    assert not any(hasattr(model, name) for name in ("components_", "n_iter_", "trace_", "stop_reason_"))
    with pytest.raises(AttributeError, match="not fitted"):
        model.save("nowhere")


def test_a_failed_fit_leaves_nothing_behind(small):
    model = SVMLClassifier(tol=-1)
    with pytest.raises(ValueError, match="tol"):
        model.fit(*small)
    with pytest.raises(NotFittedError):
        model.predict(small[0])


def test_a_fit_without_convergence_says_so(wine):
    for estimator in (SVMLClassifier(max_iter=1, form="full"), NCA(max_iter=2), ITML(max_iter=1, tol=0)):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={estimator.max_iter}"):
            estimator.fit(*wine)
        assert estimator.stop_reason_ == "iterations"


@pytest.mark.parametrize("estimator", ALL)
def test_single_floats_are_the_doubles_of_the_same_value(estimator, small):
    """And the order in memory does not matter."""
    X, y = small
    single = X.astype(np.float32)
    expected = estimator().fit(single.astype(np.float64), y)
    answers = ["transform"]
    if estimator is SVMLClassifier:
        answers += ["predict", "decision_function", "predict_proba"]
    for rows in (single, np.asfortranarray(single), np.repeat(single, 2, axis=0)[::2], single[::-1][::-1]):
        model = estimator().fit(rows, y)
        np.testing.assert_array_equal(model.components_, expected.components_)
        for answer in answers:
            found = getattr(model, answer)(rows)
            np.testing.assert_array_equal(found, getattr(expected, answer)(single.astype(np.float64)))
    fortran = estimator().fit(np.asfortranarray(X), y)
    np.testing.assert_array_equal(fortran.components_, estimator().fit(X, y).components_)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_not_copied_before_the_library_has_them(kind, order, small):
    """numpy reports its memory; the one copy is the library's own."""
    X, y = small
    model = SVMLClassifier(form="sphere").fit(X, y)
    rows = np.asarray(np.tile(X, (500, 1)), dtype=kind, order=order)
    tracemalloc.start()
    try:
        model.predict(rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The classes: 8 bytes a row as places, 8 as labels.
    assert peak < 16 * len(rows) + rows.nbytes / 4
