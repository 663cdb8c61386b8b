"""Prediction intervals
====================

Predict quantiles instead of a mean, and compare the coverage of intervals on held-out samples.

:class:`pairstep.svm.QuantileSVR` fits several quantiles at once. The interval between the 5%
and the 95% quantile should contain 90% of new values. How wide it is depends on the sample, which
the standard deviation of the errors of one regression cannot show.
"""

import argparse
import bz2
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from pairstep.svm import SVRCV, QuantileSVR

# %%
# Load the data
# -------------
#
# The age of abalones, in rings of their shells, from eight measurements. Old ones vary more.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "regression", "abalone.trn.bz2")
if path.is_file():
    with bz2.open(path) as file:
        sparse, y = load_svmlight_file(file)
    X, shown, name = sparse.toarray(), 7, "weight of the shell"
    rows, target = 2000, "rings"
else:
    print(f"PAIRSTEP_DATA is not set or has no regression/{path.name}: using synthetic data")
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (2000, 2))
    y = np.sin(X[:, 0]) + (0.1 + 0.06 * X[:, 0]) * rng.standard_normal(2000)
    shown, name, rows, target = 0, "first feature", 800, "y"
X, X_test, y, y_test = train_test_split(X, y, train_size=rows, random_state=0)
scaler = StandardScaler().fit(X)
Z, Z_test = scaler.transform(X), scaler.transform(X_test)

# %%
# Fit three quantiles
# -------------------
#
# The search scores C and gamma by the pinball loss of all three quantiles. They share the kernel
# matrices.

quantiles = [0.05, 0.5, 0.95]
search = SVRCV(quantile=quantiles, Cs=[1.0, 10.0, 100.0], gammas=[0.01, 0.03, 0.1, 0.3])
search.fit(Z, y)
print(f"best: C={search.best_params_['C']:g}, gamma={search.best_params_['gamma']:g}")


def linear(quantile):
    """Return scikit-learn's linear model of a quantile."""
    return QuantileRegressor(quantile=quantile, alpha=0.0)


def boosting(quantile):
    """Return scikit-learn's gradient boosting of a quantile."""
    return GradientBoostingRegressor(loss="quantile", alpha=quantile, random_state=0)


predictions = {"QuantileSVR": search.predict(Z_test)}
for label, make in {"QuantileRegressor": linear, "GradientBoosting": boosting}.items():
    columns = [make(quantile).fit(Z, y).predict(Z_test) for quantile in quantiles]
    predictions[label] = np.column_stack(columns)

# %%
# Compare on held-out samples
# ---------------------------
#
# A quantile is right if this fraction of the values is below it. The pinball loss also rewards
# narrow intervals.

below, losses = {}, {}
for label, predicted in predictions.items():
    below[label] = (y_test[:, None] <= predicted).mean(axis=0)
    losses[label] = np.mean(
        [mean_pinball_loss(y_test, predicted[:, k], alpha=q) for k, q in enumerate(quantiles)]
    )
    inside = np.mean((predicted[:, 0] <= y_test) & (y_test <= predicted[:, 2]))
    print(f"{label}: {100 * inside:.1f} % inside, pinball loss {losses[label]:.4f}")

# %%
# Predictions that do not cross
# -----------------------------
#
# Quantiles that are fitted separately may cross. Predictions are sorted by default, which never
# increases the sum of their pinball losses.

best = search.best_estimator_
unsorted = QuantileSVR(**best.get_params()).set_params(non_crossing=False).fit(Z, y)
crossing = (np.diff(unsorted.predict(Z_test)) < 0).any(axis=1).mean()
print(f"without sorting, predictions cross for {100 * crossing:.2f} % of the samples")

# %%
# Draw the intervals
# ------------------

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.8), layout="constrained", width_ratios=[3, 2]
)
some = np.random.default_rng(1).permutation(len(y_test))[:300]
some = some[np.argsort(X_test[some, shown])]
low, middle, high = predictions["QuantileSVR"][some].T
left.vlines(X_test[some, shown], low, high, color="C0", alpha=0.35, label="5% to 95%")
left.plot(X_test[some, shown], middle, ".", color="C0", markersize=4, label="median")
left.plot(X_test[some, shown], y_test[some], "k.", markersize=3, label="held-out values")
left.set(xlabel=name, ylabel=target, title="Intervals of QuantileSVR")
left.legend()
for label, fractions in below.items():
    right.plot(quantiles, fractions - np.array(quantiles), "o-", label=label)
right.axhline(0.0, color="black", linewidth=0.8)
right.set(xlabel="quantile", ylabel="fraction below minus quantile", title="Coverage")
right.set(xlim=(0, 1), ylim=(-0.06, 0.06))
right.legend()

parser = argparse.ArgumentParser(description="Predict quantiles and compare their coverage.")
parser.add_argument("--out", default="quantiles.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
