# %% [markdown]
# # A support vector machine that learns its own metric
#
# Three data sets that come with scikit-learn: breast cancer, wine and digits. The cells run from top to bottom in
# Jupyter, VS Code or Spyder, and as a plain program.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from svml import (
    LMNN,
    NCA,
    SVML,
    MapDisplay,
    MetricDisplay,
    RelevanceDisplay,
    ReliabilityDisplay,
    SVMLClassifier,
    TraceDisplay,
)

# %% [markdown]
# ## Breast cancer: one fit, no grid
#
# `SVMLClassifier` standardises the columns and learns several SVMs, each with a metric and a C of its own: one width, a
# weight for each feature, kernels that are smooth or rough. Their mean decides, with weights from rows that they have
# not seen; how often it errs on such rows it says itself.

# %%
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
y = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

started = time.perf_counter()
model = SVMLClassifier().fit(X_train, y_train)
seconds = time.perf_counter() - started
print(f"mean of {len(model.members_)} SVMs, {len(model.support_)} support vectors, {seconds:.2f} s")
for member in model.members_:
    print(f"  {member['weight']:.2f} of {member['kernel']} kernel, {member['form']} metric, C {member['C']:.3g}")
print(f"expected error {100 * model.honest_error_:.1f} %, "
      f"test error {100 * (1 - model.score(X_test, y_test)):.1f} %")

# %% [markdown]
# The usual way, for comparison: a grid of 20 settings, each tried on 5 folds.

# %%
grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [1 / (w * X.shape[1]) for w in (4, 2, 1, 0.5, 0.25)]}
started = time.perf_counter()
usual = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=5).fit(X_train, y_train)
print(f"grid search: test error {100 * (1 - usual.score(X_test, y_test)):.1f} %, "
      f"{time.perf_counter() - started:.2f} s")

# %% [markdown]
# What was learned: which features count (thin lines show how far the SVMs disagree), how the loss fell, and the rows
# as the metric sees them.

# %%
RelevanceDisplay.from_estimator(model, max_features=12)
TraceDisplay.from_estimator(model)
MapDisplay.from_estimator(model, X_train, y_train)
plt.show()

# %% [markdown]
# Probabilities come without cross-validation, and the most probable class is always the predicted one.

# %%
p = model.predict_proba(X_test)
print("the least certain rows of the test:", np.sort(p.max(axis=1))[:3].round(2))
ReliabilityDisplay.from_estimator(model, X_test, y_test)
plt.show()

# %% [markdown]
# ## Wine: three classes on a map
#
# With `n_components=2` the metric is a map into the plane, and the picture shows the decision itself. NCA and LMNN
# map rows too; they know nothing of an SVM.

# %%
X, y = load_wine(return_X_y=True, as_frame=True)
fig, axes = plt.subplots(1, 3, figsize=(16, 4.5), layout="constrained")
for ax, estimator in zip(axes, (SVMLClassifier(n_components=2), NCA(n_components=2), LMNN(n_components=2))):
    MapDisplay.from_estimator(estimator.fit(X, y), X, y, ax=ax)
    ax.set_title(type(estimator).__name__)
MetricDisplay.from_estimator(SVMLClassifier(form="full").fit(X, y))
plt.show()

# %% [markdown]
# A transformer before another classifier:

# %%
for metric in (StandardScaler(), SVML(), NCA(), LMNN()):
    error = 1 - cross_val_score(make_pipeline(metric, KNeighborsClassifier(3)), X, y, cv=5).mean()
    print(f"3 nearest neighbours after {type(metric).__name__:15} error {100 * error:.1f} %")

# %% [markdown]
# ## Digits: ten classes, 64 pixels
#
# Each of the SVMs is 45 of them here, one for each pair of classes, which share kernel and metric. The relevance of the
# pixels, as a picture:

# %%
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = SVMLClassifier(n_jobs=-1).fit(X_train, y_train)
print(f"digits: mean of {len(model.members_)} SVMs, test error {100 * (1 - model.score(X_test, y_test)):.1f} %, "
      f"{len(model.support_)} support vectors")
plt.matshow(model.feature_importances_.reshape(8, 8), cmap="Blues")
plt.title("relevance of each pixel")
plt.show()

# %% [markdown]
# The model is one file, which the command `svml` and the Rust library read as well.

# %%
model.save("digits.svml")
