# %% [markdown]
# # Finding similar rows
#
# Which of the stored rows are most like a new one? Plain distances treat all columns alike. A metric can be learned from
# rows with classes, or from pairs that someone has called similar or not. The data are scikit-learn's digits, 8 x 8 pixels
# each. All pixels have one unit, which columns of a table rarely have: plain distances of pixels do well here, and better
# than those of standardised columns, from which the learners begin. The cells run from top to bottom in Jupyter, VS Code or
# Spyder, and as a plain program.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from svml import ITML, LMNN, NCA, PairsITML

K = 10
X, y = load_digits(return_X_y=True)
stored, queries, stored_y, queries_y = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
# Pixels at the edge that are always white say nothing.
used = stored.std(axis=0) > 0
stored, queries = stored[:, used], queries[:, used]


def precision_at_k(rows, rows_y, asked, asked_y, k=K):
    """Mean share of the k nearest stored rows that are of the class of the row that was asked for."""
    found = NearestNeighbors(n_neighbors=k).fit(rows).kneighbors(asked, return_distance=False)
    return float(np.mean(rows_y[found] == asked_y[:, None]))


# %% [markdown]
# ## From classes
#
# `transform` maps rows so that plain distances between mapped rows are those of the metric: store the mapped rows in
# whatever finds neighbours, here scikit-learn's `NearestNeighbors`. ITML says that it has not converged: on pixels its
# multipliers still change after 1,000 rounds.

# %%
print(f"share of the {K} nearest rows that show the same digit")
print(f"  {'pixels as they are':28} {precision_at_k(stored, stored_y, queries, queries_y):.3f}")
learned = {}
for metric in (StandardScaler(), NCA(), LMNN(), ITML()):
    metric.fit(stored, stored_y)
    name = type(metric).__name__
    learned[name] = precision_at_k(metric.transform(stored), stored_y, metric.transform(queries), queries_y)
    print(f"  {name:28} {learned[name]:.3f}")

# %% [markdown]
# ## From pairs
#
# Nobody has to know the classes: here someone has looked at 2,000 pairs and has said which show the same digit.

# %%
rng = np.random.default_rng(0)
i = rng.integers(len(stored), size=40_000)
j = rng.integers(len(stored), size=40_000)
same = stored_y[i] == stored_y[j]
chosen = np.concatenate([np.flatnonzero(same & (i != j))[:1000], np.flatnonzero(~same)[:1000]])
pairs = stored[np.column_stack([i[chosen], j[chosen]])]
kinds = np.where(same[chosen], 1, -1)

metric = PairsITML().fit(pairs, kinds)
learned["PairsITML"] = precision_at_k(metric.transform(stored), stored_y, metric.transform(queries), queries_y)
print(f"  {'PairsITML, 2,000 pairs':28} {learned['PairsITML']:.3f}")

# %% [markdown]
# Are two new images of the same digit? `predict` says so for pairs, and `pair_distance` how far they are apart.

# %%
a, b = np.arange(0, 500, 2), np.arange(1, 500, 2)
new_pairs = queries[np.column_stack([a, b])]
new_kinds = np.where(queries_y[a] == queries_y[b], 1, -1)
print(f"pairs told apart: {np.mean(metric.predict(new_pairs) == new_kinds):.3f}, "
      f"area under the ROC curve {metric.score(new_pairs, new_kinds):.3f}")
assert min(learned["NCA"], learned["LMNN"], learned["ITML"]) > learned["StandardScaler"]
assert learned["PairsITML"] > learned["StandardScaler"]
