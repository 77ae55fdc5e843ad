"""scikit-learn's own checks, all of them, on all estimators. Run with the oldest and the newest scikit-learn."""

import inspect

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from svml import ITML, LMNN, NCA, SVML, SVMLClassifier, _core
from svml._base import TELLS_CATEGORIES

ALL = [SVMLClassifier, SVML, NCA, LMNN, ITML]


class Numbers:
    """Does not say that it takes categories: scikit-learn's checks round the numbers of estimators that do."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = False
        return tags


class NumbersClassifier(Numbers, SVMLClassifier):
    pass


class NumbersSVML(Numbers, SVML):
    pass


class NumbersNCA(Numbers, NCA):
    pass


class NumbersLMNN(Numbers, LMNN):
    pass


class NumbersITML(Numbers, ITML):
    pass


@parametrize_with_checks(
    [estimator() for estimator in ALL]
    + [NumbersClassifier(), NumbersSVML(), NumbersNCA(), NumbersLMNN(), NumbersITML()]
    + [SVMLClassifier(missing="impute"), NumbersClassifier(missing="impute")]
    + [SVMLClassifier(surrogate="logistic"), SVMLClassifier(validation="loo", class_weight="balanced")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_there_are_no_exemptions_and_the_checks_on_weights_and_order_run():
    for estimator in ALL:
        tags = estimator().__sklearn_tags__()
        assert not tags.no_validation and not tags.non_deterministic and not tags._skip_test
        assert tags.input_tags.sparse and not tags.input_tags.allow_nan
        assert tags.input_tags.categorical == TELLS_CATEGORIES
        assert estimator(missing="impute").__sklearn_tags__().input_tags.allow_nan
        assert tags.classifier_tags is None or not tags.classifier_tags.poor_score
        checks = [check for _, check in estimator_checks_generator(estimator())]
        names = {getattr(check, "func", check).__name__ for check in checks}
        assert {
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_estimators_pickle",
        } <= names


@pytest.mark.parametrize("estimator", ALL)
def test_parameters_and_defaults_are_those_of_the_library(estimator):
    declared = _core.defaults(estimator._method)
    assert estimator()._library_params([]) == declared
    assert set(declared) == set(_core.bounds(estimator._method))
    # And back again.
    assert estimator()._from_library(declared).items() <= estimator().get_params().items()


@pytest.mark.parametrize("estimator", ALL)
def test_names_are_those_of_scikit_learn(estimator):
    names = set(inspect.signature(estimator).parameters)
    assert not any(name.endswith("_") for name in names)
    assert {"max_iter", "tol", "n_jobs", "verbose"} <= names


@pytest.mark.parametrize("estimator", ALL)
def test_clone_keeps_every_parameter(estimator, small):
    changed = estimator(max_iter=7, tol=0.5, verbose=0, n_jobs=2, time_limit=9.0)
    assert clone(changed).get_params() == changed.get_params()
    assert clone(estimator().fit(*small)).get_params() == estimator().get_params()
