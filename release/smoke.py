"""A fit, a file and a prediction: whether an installed wheel works at all."""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

import svml

X, y = load_breast_cancer(return_X_y=True)
model = svml.SVMLClassifier().fit(X[::2], y[::2])
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.svml"
    model.save(path)
    again = svml.SVMLClassifier.load(path)
assert np.array_equal(again.decision_function(X), model.decision_function(X))
accuracy = model.score(X[1::2], y[1::2])
assert accuracy > 0.95, accuracy
print(f"svml {svml.__version__}: accuracy {accuracy:.3f} on new rows")
