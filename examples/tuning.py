"""Choosing C and gamma of an SVM
==============================

Search a grid by cross-validation, and follow the best kernel over C.

:class:`pairstep.svm.SVCCV` evaluates all pairs of C and gamma. It computes one kernel matrix per
gamma. :func:`pairstep.svm.path` then fits the best kernel for a sequence of C.
"""

import argparse
import gzip
import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVC, SVCCV
from pairstep.svm import path as svm_path

# %%
# Load the data
# -------------
#
# The data set is the astroparticle example of the LIBSVM guide.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "svm", "svmguide1.gz")
if path.is_file():
    with gzip.open(path) as file:
        X, y = load_svmlight_file(file)
    X = X.toarray()
else:
    print(f"PAIRSTEP_DATA is not set or has no svm/{path.name}: using synthetic data")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 4))
    y = (X[:, :2] ** 2).sum(axis=1) + 0.3 * rng.standard_normal(600) > 1.4
X = StandardScaler().fit_transform(X)

# %%
# Search the grid
# ---------------
#
# ``Cs=8`` and ``gammas=7`` choose the values automatically.

start = time.perf_counter()
search = SVCCV(Cs=8, gammas=7, random_state=0).fit(X, y)
seconds = time.perf_counter() - start
best = search.best_params_
print(f"{len(search.cv_results_['params'])} candidates in 5 folds: {seconds:.2f} s")
print(f"best: C={best['C']:.3g}, gamma={best['gamma']:.3g}, accuracy {search.best_score_:.4f}")

# %%
# Follow the best kernel over C
# -----------------------------
#
# Each fit starts from the previous solution. A larger C penalizes errors more, so fewer samples
# are support vectors.

Cs, gammas = (np.unique(search.cv_results_[f"param_{name}"]) for name in ("C", "gamma"))
fits = svm_path(X, y, Cs, model=SVC(gamma=best["gamma"]))
for C, count in zip(Cs, fits.n_support, strict=True):
    print(f"C={C:.3g}: {count} support vectors")

# %%
# Plot the scores and the path
# ----------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
scores = search.cv_results_["mean_test_score"].reshape(len(Cs), len(gammas))
surface = left.contourf(gammas, Cs, scores, levels=15, cmap="Blues")
left.plot(best["gamma"], best["C"], "k*", markersize=14, label="best")
left.set(xscale="log", yscale="log", title="Accuracy (5 folds)", xlabel="gamma", ylabel="C")
left.legend()
figure.colorbar(surface, ax=left)
right.semilogx(Cs, fits.n_support, "o-")
right.set(title="Support vectors, best gamma", xlabel="C", ylabel="number of support vectors")
right.grid(alpha=0.3)

parser = argparse.ArgumentParser(description="Search a grid of C and gamma.")
parser.add_argument("--out", default="tuning.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
