"""Stacking regressors
===================

Combine regression models with weights that are nonnegative and sum to one.

``SimplexRegressor`` is the final estimator of scikit-learn's ``StackingRegressor`` for six models
of diabetes progression. For comparison, ordinary least squares replaces it: its weights
may be negative and have any sum. With little and noisy data, an average or a single model may be
as good. The data come with scikit-learn.
"""

import argparse
import math

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import ExtraTreesRegressor, StackingRegressor
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from pairstep import SimplexRegressor

MODELS = {
    "lasso": Lasso(0.05),
    "ridge": Ridge(0.05),
    "trees": ExtraTreesRegressor(40, min_samples_leaf=3, random_state=0),
    "neighbors": make_pipeline(StandardScaler(), KNeighborsRegressor(20)),
    "SVR": make_pipeline(StandardScaler(), SVR(C=50.0)),
    "polynomial": make_pipeline(StandardScaler(), SVR(kernel="poly", degree=2, coef0=4.0)),
}
FINAL = {"pairstep": SimplexRegressor(), "least squares": LinearRegression()}

# %%
# Fit both stacks in five folds
# -----------------------------


def rmse(y, prediction):
    """Return the root mean square error."""
    return float(np.sqrt(np.mean((y - prediction) ** 2)))


X, y = load_diabetes(return_X_y=True)
weights = {name: [] for name in FINAL}
errors = {name: [] for name in (*FINAL, "average", *MODELS)}
for train, test in KFold(5, shuffle=True, random_state=0).split(X):
    for name, final in FINAL.items():
        stack = StackingRegressor(list(MODELS.items()), final_estimator=final, cv=5)
        stack.fit(X[train], y[train])
        weights[name].append(stack.final_estimator_.coef_)
        errors[name].append(rmse(y[test], stack.predict(X[test])))
    predictions = stack.transform(X[test])
    errors["average"].append(rmse(y[test], predictions.mean(axis=1)))
    for name, column in zip(MODELS, predictions.T, strict=True):
        errors[name].append(rmse(y[test], column))

mean = {name: float(np.mean(values)) for name, values in errors.items()}
for name, value in sorted(mean.items(), key=lambda item: item[1]):
    print(f"error of {name}: {value:.2f}")
for name, rows in weights.items():
    sums = [math.fsum(row) for row in rows]
    print(f"weights of {name}: sums from {min(sums)!r} to {max(sums)!r}")
    print(f"weights of {name}: the smallest is {np.min(rows):.4f}")

# %%
# Plot weights and errors
# -----------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
order = np.argsort(np.mean(weights["pairstep"], axis=0))
places = np.arange(len(order))
for k, (name, rows) in enumerate(weights.items()):
    values = np.array(rows)[:, order]
    shifted = places + 0.3 * (0.5 - k)
    left.barh(shifted, values.mean(axis=0), 0.28, alpha=0.5, label=f"{name}, mean")
    left.plot(values.T, shifted, "o", color=f"C{k}", markersize=4)
left.axvline(0, color="0.5", linewidth=1)
left.set_yticks(places, [list(MODELS)[k] for k in order])
left.set(title="Weights in each fold", xlabel="weight")
left.legend(frameon=False, loc="upper left")
names = sorted(mean, key=mean.get, reverse=True)
titles = [f"stack: {name}" if name in FINAL else name for name in names]
colors = [f"C{list(FINAL).index(name)}" if name in FINAL else "0.6" for name in names]
right.scatter([mean[name] for name in names], titles, s=70, c=colors)
right.set(title="Test error", xlabel="root mean square error, mean of five folds")
right.grid(alpha=0.3)

parser = argparse.ArgumentParser(description="Stack regressors.")
parser.add_argument("--out", default="stacking.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
