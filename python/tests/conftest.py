"""What the tests share: data, a run without windows, and the command where it was built."""

import os

# Before scipy is imported: one of scikit-learn's checks is skipped without it.
os.environ["SCIPY_ARRAY_API"] = "1"
os.environ["MPLBACKEND"] = "agg"

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine, make_classification


@pytest.fixture(scope="session")
def cancer():
    return load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="session")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="session")
def wine_frame():
    return load_wine(return_X_y=True, as_frame=True)


@pytest.fixture(scope="session")
def small():
    """Two classes, quick to learn."""
    return make_classification(n_samples=80, n_features=4, random_state=0)


@pytest.fixture(scope="session")
def long():
    """Rows on which a fit with tol=0 works for minutes."""
    rng = np.random.RandomState(0)
    X = rng.randn(3000, 20)
    return X, (X[:, 0] * X[:, 1] + rng.randn(3000) > 0).astype(int)
