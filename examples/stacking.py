"""Ensemble stacking
=================

How much of each model goes into the mix.

Six models of the progression of diabetes are averaged with weights that are not negative and add up
to one: `SimplexRegressor` as the final estimator of scikit-learn's `StackingRegressor`. The
picture compares it with ordinary least squares in the same place, whose weights may be negative and
add up to anything. With few and noisy data a plain average or a single model may do as well: the
second panel says so where it is so. The data come with scikit-learn.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from _picture import BLUE, GREY, PALE, RED, label, panels, run, save
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
    "neighbours": make_pipeline(StandardScaler(), KNeighborsRegressor(20)),
    "SVR": make_pipeline(StandardScaler(), SVR(C=50.0)),
    "polynomial": make_pipeline(StandardScaler(), SVR(kernel="poly", degree=2, coef0=4.0)),
}
FINALS = {"pairstep": (SimplexRegressor(), BLUE), "least squares": (LinearRegression(), RED)}


def error(truth: np.ndarray, prediction: np.ndarray) -> float:
    """Root mean square error."""
    return float(np.sqrt(np.mean((truth - prediction) ** 2)))


def main(out: Path) -> None:
    """Stack with both final estimators in each of five folds, print and draw errors and weights."""
    X, y = load_diabetes(return_X_y=True)
    weights: dict[str, list[np.ndarray]] = {name: [] for name in FINALS}
    errors: dict[str, list[float]] = {name: [] for name in (*FINALS, "plain average", *MODELS)}
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        for name, (final, _) in FINALS.items():
            stack = StackingRegressor(list(MODELS.items()), final_estimator=final, cv=5)
            stack.fit(X[train], y[train])
            weights[name].append(stack.final_estimator_.coef_)
            errors[name].append(error(y[test], stack.predict(X[test])))
        single = stack.transform(X[test])
        errors["plain average"].append(error(y[test], single.mean(axis=1)))
        for name, column in zip(MODELS, single.T, strict=True):
            errors[name].append(error(y[test], column))

    mean = {name: float(np.mean(values)) for name, values in errors.items()}
    for name, value in sorted(mean.items(), key=lambda item: item[1]):
        print(f"error of {name}: {value:.2f}")
    for name, rows in weights.items():
        sums = [math.fsum(row) for row in rows]
        print(f"weights of {name}: sums from {min(sums)!r} to {max(sums)!r}")
        print(f"weights of {name}: the least is {np.min(rows):.4f}")

    figure, (left, right) = panels(1, 2, (12.0, 5.0), width_ratios=(1.15, 1.0))
    order = np.argsort(np.mean(weights["pairstep"], axis=0))
    rng = np.random.default_rng(0)
    for shift, (name, (_, colour)) in zip((0.17, -0.17), FINALS.items(), strict=True):
        for at, k in enumerate(order):
            values = [row[k] for row in weights[name]]
            jitter = at + shift + rng.uniform(-0.06, 0.06, len(values))
            left.plot(values, jitter, "o", color=colour, alpha=0.45, markersize=6, mew=0)
            left.plot([np.mean(values)] * 2, [at + shift - 0.15, at + shift + 0.15], color=colour)
    left.axvline(0, color=GREY, linewidth=1)
    left.set_yticks(range(len(order)), [list(MODELS)[k] for k in order])
    left.set(title="Weight in each of five folds", xlabel="weight (bars: mean)")
    label(left, 0.98, 0.12, "pairstep", BLUE, ha="right", transform=left.transAxes)
    label(left, 0.98, 0.05, "least squares", RED, ha="right", transform=left.transAxes)

    ranked = sorted(mean, key=lambda name: -mean[name])
    for at, name in enumerate(ranked):
        colour = FINALS[name][1] if name in FINALS else GREY
        title = f"stack: {name}" if name in FINALS else name
        right.plot([min(mean.values()) - 0.6, mean[name]], [at, at], color=PALE, linewidth=1)
        right.plot(mean[name], at, "o", color=colour, markersize=9)
        label(right, mean[name] + 0.12, at, f"{mean[name]:.1f}", colour, fontsize=10.5)
        ranked[at] = title
    right.set_yticks(range(len(ranked)), ranked)
    right.set(title="Error on unseen patients", xlabel="root mean square error, mean of five folds")
    right.set_xlim(min(mean.values()) - 0.6, max(mean.values()) + 0.7)
    for ax in (left, right):
        ax.grid(axis="x")
        ax.tick_params(axis="y", length=0, labelcolor="#222222")
        ax.spines["left"].set_visible(False)
    save(figure, out)


if __name__ == "__main__":
    run(main, __doc__)
