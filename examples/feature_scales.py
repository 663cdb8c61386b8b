"""Irrelevant features
===================

Give every feature of an RBF kernel its own scale, chosen by gradient descent.

An RBF kernel measures distances over all features. If many of them are irrelevant, they hide the
relevant ones. With one scale per feature a grid search is impossible, but the derivative of a
validation loss with respect to all scales costs little more than a fit:
:func:`pairstep.svm.validation_gradient`. Descending along it is
:func:`pairstep.svm.tune_by_gradient`.
"""

import argparse
import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from pairstep import svm

# %%
# Load the data
# -------------
#
# The features of the *splice* data are 60 positions of a DNA sequence around a possible splice
# junction. Which positions matter is known to biologists, but not to the kernel.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "svm", "splice.gz")
if path.is_file():
    sparse, y = load_svmlight_file(str(path))
    X, rows = sparse.toarray(), 1000
    name = "splice: position in the sequence"
else:
    print(f"PAIRSTEP_DATA is not set or has no svm/{path.name}: using synthetic data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 30))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=2000) > 0
    name, rows = "synthetic: 3 of 30 features matter", 400
X, X_test, y, y_test = train_test_split(X, y, train_size=rows, random_state=0, stratify=y)
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

# %%
# The best grid search
# --------------------
#
# Eight values of C and eight of gamma, five folds.

began = time.perf_counter()
search = svm.SVCCV(Cs=2.0 ** np.arange(-3, 12, 2), gammas=2.0 ** np.arange(-13, 2, 2), cv=5)
search.fit(X, y)
grid_seconds = time.perf_counter() - began
grid = search.score(X_test, y_test)
print(f"grid search: {100 * grid:.1f} % correct, {grid_seconds:.1f} s")

# %%
# A scale for each feature
# ------------------------
#
# The loss is that of leave-one-out decisions, which the span of the support vectors predicts from
# one fit.

began = time.perf_counter()
tuned = svm.tune_by_gradient(svm.SVC(gamma=1 / X.shape[1]), X, y, loss="span")
seconds = time.perf_counter() - began
accuracy = tuned.model.score(X_test, y_test)
print(f"scales by gradient: {100 * accuracy:.1f} % correct, {seconds:.1f} s")
print(f"loss {tuned.history[0]:.3f} -> {tuned.loss:.3f} in {len(tuned.history)} evaluations")

# %%
# Draw the scales
# ---------------

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=[3, 1]
)
left.bar(np.arange(1, X.shape[1] + 1), tuned.scales, color="C0")
left.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
left.set(xlabel="feature", ylabel="scale", title=name)
bars = right.bar(["grid search", "scales"], [100 * grid, 100 * accuracy], color=["C7", "C0"])
right.bar_label(bars, fmt="%.1f %%")
right.set(title="test samples, correct", ylim=(50, 100))

parser = argparse.ArgumentParser(description="Choose a scale for each feature.")
parser.add_argument("--out", default="feature_scales.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
