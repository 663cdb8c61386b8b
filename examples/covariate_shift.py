"""Covariate shift
===============

Weight the training sample so that it resembles the target sample.

A model is trained on one distribution of inputs and used on another. Kernel mean matching weights
the training points so that they resemble the inputs of the target. It does not need the target
outputs.

Weights help where the model is misspecified and the shift exposes it. They also increase the
variance, because fewer points count. This example shows both cases. On a curve that a line cannot
fit, the weights reduce the error. On house prices in California, a linear model has little bias,
and the weights increase the error.
"""

import argparse
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import rbf_kernel

from pairstep import solve_qp

DRAWS, SIZE = 20, 300

# %%
# A curve
# -------
#
# This is the standard example of Shimodaira (2000): x^3 - x with noise. Training points lie
# around 0.5, target points around 0.


def curve(rng):
    """Return X and y of a training sample, and X and y of a target sample."""
    X, target = rng.normal(0.5, 0.5, (SIZE, 1)), rng.normal(0.0, 0.3, (SIZE, 1))
    noise = rng.normal(0.0, 0.3, (2, SIZE))
    return X, (X**3 - X)[:, 0] + noise[0], target, (target**3 - target)[:, 0] + noise[1]


# %%
# House prices
# ------------
#
# The training sample contains too many districts with low income.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "regression", "california.csv.gz")
if path.is_file():
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    study = "house prices"
else:
    print(f"PAIRSTEP_DATA is not set or has no regression/{path.name}: using synthetic data")
    rng = np.random.default_rng(3)
    features = rng.standard_normal((5000, 8))
    price = 2e5 + features @ rng.normal(0.0, 3e4, 8) + 5e4 * rng.standard_normal(5000)
    table = np.column_stack([price, features])
    study = "synthetic prices"


def houses(rng):
    """Return a biased training sample and a target sample; prices in 1000 dollars."""
    y, X = table[:, 0] / 1000, table[:, [8, 1, 2, 3]]  # income, longitude, latitude, age
    X = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -3, 3)
    order = rng.permutation(len(y))
    target, pool = order[:SIZE], order[SIZE:]
    probability = 1 / (1 + np.exp(2 * X[pool, 0]))
    train = rng.choice(pool, SIZE, replace=False, p=probability / probability.sum())
    return X[train], y[train], X[target], y[target]


# %%
# Compare the errors with and without weights
# -------------------------------------------


def matching_weights(X, target, largest=10.0, eps=0.05):
    """Return the weights of the training points, at most `largest`, with a mean close to 1.

    They minimize the distance between the weighted mean of the training points and the mean of the
    target points in the feature space of the kernel (Huang et al. 2006).
    """
    n, gamma = len(X), 1 / (X.shape[1] * X.var())
    linear = -n * rbf_kernel(target, X, gamma=gamma).mean(axis=0)
    total = n * (1 - eps), n * (1 + eps)
    return solve_qp(rbf_kernel(X, gamma=gamma), linear, total=total, upper=largest, tol=1e-5).x


def errors(X, y, target, y_target):
    """Return the target RMSE of a linear model, without and with weights."""
    models = (
        LinearRegression().fit(X, y),
        LinearRegression().fit(X, y, matching_weights(X, target)),
    )
    return [float(np.sqrt(np.mean((m.predict(target) - y_target) ** 2))) for m in models]


changes = {}
for name, draw in (("curve", curve), (study, houses)):
    pairs = np.array([errors(*draw(np.random.default_rng(k))) for k in range(DRAWS)])
    plain, weighted = pairs.mean(axis=0)
    better = int((pairs[:, 1] < pairs[:, 0]).sum())
    changes[name] = 100 * (pairs[:, 1] / pairs[:, 0] - 1)
    print(f"{name}: mean error {plain:.4f} without weights, {weighted:.4f} with")
    print(f"{name}: weights better in {better} of {DRAWS} draws")

X, y, target, y_target = curve(np.random.default_rng(0))
weights = matching_weights(X, target)
effective = weights.sum() ** 2 / (weights @ weights)
print(f"sum of the weights: {weights.sum():.3f} for {SIZE} points, largest {weights.max():.3f}")
print(f"effective number of points: {effective:.1f}")

# %%
# Plot one draw and the changes in error
# --------------------------------------
#
# The area of a blue circle is proportional to the weight of a training point.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4.8), width_ratios=(1.4, 1.0), layout="constrained"
)
left.scatter(X, y, s=8, color="0.85", label="training points")
left.scatter(X, y, s=14 * weights, color="C0", alpha=0.4, linewidth=0, label="the same, weighted")
left.plot(target, y_target, "x", color="0.5", markersize=4, label="target points")
grid = np.linspace(-0.9, 1.5, 100)
left.plot(grid, grid**3 - grid, "k--", linewidth=1.4, label="true curve")
for sample_weight, color, name in ((None, "C3", "no weights"), (weights, "C0", "weighted")):
    line = LinearRegression().fit(X, y, sample_weight)
    left.plot(grid, line.predict(grid[:, None]), color, label=f"linear fit, {name}")
left.set(title="One draw of the curve", xlabel="x", ylabel="y", xlim=(-0.9, 1.5), ylim=(-1.3, 2.4))
left.legend(frameon=False)
right.boxplot(list(changes.values()))
right.set_xticks([1, 2], list(changes))
right.axhline(0, color="0.5", linewidth=1)
right.set(title=f"Change in error due to weights, {DRAWS} draws", ylabel="%")
right.grid(axis="y", alpha=0.3)

parser = argparse.ArgumentParser(description="Correct covariate shift by weights.")
parser.add_argument("--out", default="covariate_shift.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
