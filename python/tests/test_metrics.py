"""What users of metric-learn expect: pairs, distances, starts that are given, names."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import svml
from svml import ITML, LMNN, NCA, SVML, InvalidParameterError, PairsITML, SVMLClassifier

METRICS = [SVMLClassifier, SVML, NCA, LMNN, ITML]


@pytest.fixture(scope="module")
def pairs(wine):
    """Pairs of wines, 1 where they are of one cultivar."""
    X, y = wine
    rng = np.random.RandomState(1)
    i, j = rng.randint(len(X), size=(2, 400))
    i, j = i[i != j], j[i != j]
    return X[np.column_stack([i, j])], np.where(y[i] == y[j], 1, -1)


@pytest.mark.parametrize("estimator", METRICS)
def test_distances_of_pairs(estimator, wine, pairs):
    X, y = wine
    model = estimator().fit(X, y)
    distances = model.pair_distance(pairs[0])
    assert distances.shape == (len(pairs[0]),)
    np.testing.assert_array_equal(model.pair_score(pairs[0]), -distances)
    metric = model.get_metric()
    np.testing.assert_allclose(distances[:5], [metric(u, v) for u, v in pairs[0][:5]])
    np.testing.assert_allclose(distances[:5] ** 2, [metric(u, v, squared=True) for u, v in pairs[0][:5]])
    matrix = pairwise_distances(pairs[0][:5, 0], pairs[0][:5, 1], metric="mahalanobis", VI=model.get_mahalanobis_matrix())
    np.testing.assert_allclose(distances[:5], np.diag(matrix))
    mapped = [model.transform(pairs[0][:, side]) for side in (0, 1)]
    np.testing.assert_allclose(distances, np.linalg.norm(mapped[0] - mapped[1], axis=1), rtol=1e-9, atol=1e-9)
    assert model.pair_distance(np.empty((0, 2, 13))).shape == (0,)
    for bad in (pairs[0][:, 0], pairs[0][:, :, :5], pairs[0][:, :1]):
        with pytest.raises(ValueError, match=r"\(n_pairs, 2, 13\)"):
            model.pair_distance(bad)
    with pytest.raises(ValueError, match="NaN"):
        model.pair_distance(np.full((1, 2, 13), np.nan))
    # As a metric of scikit-learn.
    neighbors = KNeighborsClassifier(3, metric=metric, algorithm="brute").fit(X, y)
    assert neighbors.score(X, y) > 0.9


@pytest.mark.parametrize("estimator", [NCA, LMNN])
def test_learning_goes_on_from_an_array(estimator, wine, tmp_path):
    X, y = wine
    first = estimator(n_components=2, max_iter=10).fit(X, y)
    for start in (first.components_, first.components_.tolist()):
        on = estimator(init=start, max_iter=0).fit(X, y)
        np.testing.assert_allclose(on.components_, first.components_, rtol=1e-12)
        assert on.trace_["loss"][0] == pytest.approx(first.trace_["loss"][-1], rel=1e-9)
    on.save(tmp_path / "model.svml")
    same = svml.load(tmp_path / "model.svml")
    np.testing.assert_array_equal(same.init, first.components_)
    np.testing.assert_array_equal(clone(same).init, first.components_)
    with pytest.raises(InvalidParameterError, match=r"'init'.*of 3 rows.*array of shape \(2, 13\)"):
        estimator(n_components=3, init=first.components_).fit(X, y)
    for bad in (np.ones((2, 5)), np.ones(13), [["a"]], 7, np.full((2, 13), np.inf), np.zeros((2, 13))):
        with pytest.raises(InvalidParameterError, match="'init'"):
            estimator(init=bad).fit(X, y)


def test_svml_starts_from_an_array(wine):
    X, y = wine
    first = NCA(n_components=3).fit(X, y).components_
    model = SVMLClassifier(form="low_rank", n_components=3, init=first, max_iter=0).fit(X, y)
    np.testing.assert_allclose(model.components_, first, rtol=1e-9)
    with pytest.raises(InvalidParameterError, match="'init'.*form is full or rank"):
        SVMLClassifier(init=first).fit(X, y)


def test_words_of_others_for_the_start(wine):
    X, y = wine
    for estimator, default in ((NCA, "scaled"), (LMNN, "identity"), (SVML, "scaled")):
        of = lambda init: estimator(init=init, max_iter=3).fit(X, y).components_  # noqa: E731
        np.testing.assert_array_equal(of("auto"), of(default))
        np.testing.assert_array_equal(of("pca"), of("identity"))
        with pytest.raises(InvalidParameterError, match="'init'"):
            of("lda")


def test_regularization_of_lmnn_is_the_share_of_the_pull(wine):
    X, y = wine
    of = lambda **params: LMNN(max_iter=20, **params).fit(X, y)._model.to_bytes()  # noqa: E731
    assert of(regularization=0.5) == of() == of(mu=1.0)
    assert of(regularization=0.2) == of(mu=4.0)
    for bad in (0, 1, 1.5, "a", True):
        with pytest.raises(InvalidParameterError, match="'regularization'"):
            of(regularization=bad)
    with pytest.raises(InvalidParameterError, match="None if mu is given"):
        of(regularization=0.5, mu=2.0)


def test_a_metric_of_pairs(pairs, wine, tmp_path):
    rows, kinds = pairs
    model = PairsITML().fit(rows[:300], kinds[:300])
    assert model.score(rows[300:], kinds[300:]) > 0.95
    assert np.mean(model.predict(rows[300:]) == kinds[300:]) > 0.9
    np.testing.assert_array_equal(model.decision_function(rows), -model.pair_distance(rows))
    # Better than distances of standardised columns.
    scaled = (rows - wine[0].mean(0)) / wine[0].std(0)
    plain = -np.linalg.norm(scaled[300:, 0] - scaled[300:, 1], axis=1)
    from sklearn.metrics import roc_auc_score

    assert model.score(rows[300:], kinds[300:]) > roc_auc_score(kinds[300:], plain)
    assert model.transform(wine[0]).shape == (178, 13)
    assert model.n_features_in_ == 13 and model.stop_reason_ == "tolerance"
    np.testing.assert_array_equal(model.classes_, [-1, 1])
    # The units of columns do not matter.
    units = np.logspace(-3, 3, 13)
    other = PairsITML().fit(rows[:300] * units, kinds[:300])
    np.testing.assert_allclose(other.pair_distance(rows * units), model.pair_distance(rows), rtol=1e-6)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(rows), model.predict(rows))
    model.save(tmp_path / "pairs.svml")
    read = svml.load(tmp_path / "pairs.svml")
    assert isinstance(read, PairsITML)
    np.testing.assert_array_equal(read.pair_distance(rows), model.pair_distance(rows))
    with pytest.raises(AttributeError, match="calibrate_threshold"):
        read.predict(rows)
    np.testing.assert_array_equal(read.set_threshold(model.threshold_).predict(rows), model.predict(rows))


def test_bounds_of_pairs(pairs):
    rows, kinds = pairs
    given = PairsITML(bounds=(0.5, 3.0)).fit(rows, kinds)
    at_fit = PairsITML().fit(rows, kinds, bounds=np.array([0.5, 3.0]))
    np.testing.assert_array_equal(given.components_, at_fit.components_)
    # As the slack gets dear, pairs keep to their bounds.
    strict = PairsITML(gamma=1000.0, max_iter=5000).fit(rows[:30], kinds[:30], bounds=(1.0, 2.0))
    squared = strict.pair_distance(rows[:30]) ** 2
    assert (squared[kinds[:30] == 1] < 1.2).all() and (squared[kinds[:30] == -1] > 1.8).all()


def test_the_threshold_is_right_for_most_pairs():
    pairs = np.zeros((5, 2, 1))
    pairs[:, 1, 0] = [1.0, 2.0, 3.0, 4.0, 5.0]
    model = PairsITML().fit(pairs, [1, 1, -1, 1, -1])
    distances = model.pair_distance(pairs)
    assert distances[1] < model.threshold_ < distances[2]
    assert model.calibrate_threshold(pairs, [-1] * 5).predict(pairs).tolist() == [-1] * 5
    assert model.calibrate_threshold(pairs, [1] * 5).predict(pairs).tolist() == [1] * 5
    for kinds in ([1, -1, 1, -1, -1], [-1, -1, 1, 1, 1], [-1, 1, 1, -1, 1]):
        right = np.mean(model.calibrate_threshold(pairs, kinds).predict(pairs) == kinds)
        best = max(np.mean(np.where(distances <= t, 1, -1) == kinds) for t in (0, *distances))
        assert right == best


def test_searches_over_pairs(pairs):
    rows, kinds = pairs
    assert cross_val_score(PairsITML(), rows, kinds, cv=3).min() > 0.9
    search = GridSearchCV(PairsITML(), {"gamma": [0.1, 1.0]}, cv=3).fit(rows, kinds)
    assert search.best_params_["gamma"] in (0.1, 1.0)
    changed = PairsITML(gamma=3.0, bounds=(1.0, 2.0), time_limit=9.0, random_state=3)
    assert clone(changed).get_params() == changed.get_params()


def test_pairs_that_cannot_be_used(pairs):
    rows, kinds = pairs
    for bad, match in [
        ((rows[:, 0], kinds), r"\(n_pairs, 2, n_features\)"),
        ((rows, kinds[:-1]), "one entry for each"),
        ((rows, np.where(kinds == 1, 1, 0)), "it contains 0"),
        ((rows, np.ones(len(rows))), "every pair is similar"),
        ((np.full_like(rows, np.nan), kinds), "NaN"),
        ((rows[:0], kinds[:0]), "no pairs"),
    ]:
        with pytest.raises(ValueError, match=match):
            PairsITML().fit(*bad)
    with pytest.raises(InvalidParameterError, match="'bounds'"):
        PairsITML().fit(rows, kinds, bounds=(1.0, -2.0))
    with pytest.raises(InvalidParameterError, match="'gamma'"):
        PairsITML(gamma=-1).fit(rows, kinds)


def test_probabilities_have_logarithms_and_a_temperature(cancer):
    X, y = cancer
    model = SVMLClassifier(form="diagonal").fit(X, y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    p = 1 / (1 + np.exp(-model.decision_function(X) / model.temperature_))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], p, atol=1e-12)
