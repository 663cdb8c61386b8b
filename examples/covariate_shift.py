"""Covariate shift
===============

Weights that make the training sample look like where the model will be used.

A line is fitted to a curve: which line is best depends on where it is needed. Kernel mean matching
weighs the training points so that they resemble the target's inputs, whose outputs nobody knows.
The curve is the standard one of this literature (Shimodaira 2000): x^3 - x with noise, training
points around 0.5, target points around 0.

Weights help where the model is wrong in a way that the shift brings out, and they cost precision,
for fewer points count. The second panel shows both: on the curve the weights win; on
California's house prices, with poor districts overrepresented among the training points, a linear
model has little bias to lose, and the weights cost more than they gain.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _data import Array, find
from _picture import BLACK, BLUE, GREEN, GREY, PALE, RED, label, panels, run, save
from sklearn.linear_model import LinearRegression

from pairstep import KernelMeanMatching

DRAWS, SIZE = 20, 300
Draw = tuple[Array, Array, Array, Array]  # X and y of the training sample, X and y of the target


def curve(rng: np.random.Generator) -> Draw:
    """Draw from Shimodaira's curve."""
    X, target = rng.normal(0.5, 0.5, (SIZE, 1)), rng.normal(0.0, 0.3, (SIZE, 1))
    noise = rng.normal(0.0, 0.3, (2, SIZE))
    return X, (X**3 - X)[:, 0] + noise[0], target, (target**3 - target)[:, 0] + noise[1]


def made_up_houses() -> Array:
    """Districts with a price that is linear in everything: weights have nothing to gain there."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 8))
    price = 2e5 + X @ rng.normal(0.0, 3e4, 8) + 5e4 * rng.standard_normal(5000)
    return np.column_stack([price, X])


def houses(rng: np.random.Generator, table: Array) -> Draw:
    """Draw districts of California, poor ones more often for training; prices in 1000 dollars."""
    y, X = table[:, 0] / 1000, table[:, [8, 1, 2, 3]]  # income, longitude, latitude, age
    X = np.clip((X - X.mean(axis=0)) / X.std(axis=0), -3, 3)
    order = rng.permutation(len(y))
    target, pool = order[:SIZE], order[SIZE:]
    chance = 1 / (1 + np.exp(2 * X[pool, 0]))
    train = rng.choice(pool, SIZE, replace=False, p=chance / chance.sum())
    return X[train], y[train], X[target], y[target]


def match(X: Array, target: Array) -> Array:
    """Give the weights of the training points."""
    return KernelMeanMatching(upper_bound=10.0, eps=0.05, tol=1e-5).fit(X, X_target=target).weights_


def errors(draw: Draw) -> tuple[float, float]:
    """Root mean square errors on the target of a linear model, without and with weights."""
    X, y, target, truth = draw
    models = LinearRegression().fit(X, y), LinearRegression().fit(X, y, match(X, target))
    plain, weighted = (float(np.sqrt(np.mean((m.predict(target) - truth) ** 2))) for m in models)
    return plain, weighted


def main(out: Path) -> None:
    """Draw one fit, and the errors of many."""
    path = find("regression/california.csv.gz")
    table = made_up_houses() if path is None else np.loadtxt(path, delimiter=",", skiprows=1)
    seeds = range(DRAWS)
    studies = {
        "curve": [errors(curve(np.random.default_rng(k))) for k in seeds],
        "made-up prices" if path is None else "house prices": [
            errors(houses(np.random.default_rng(k), table)) for k in seeds
        ],
    }
    for name, pairs in studies.items():
        plain, weighted = np.mean(pairs, axis=0)
        better = sum(b < a for a, b in pairs)
        print(f"{name}: mean error {plain:.4f} without weights, {weighted:.4f} with")
        print(f"{name}: weights better in {better} of {DRAWS} draws")

    X, y, target, truth = curve(np.random.default_rng(0))
    weights = match(X, target)
    effective = weights.sum() ** 2 / (weights @ weights)
    print(f"sum of the weights: {weights.sum():.3f} for {SIZE} points, largest {weights.max():.3f}")
    print(f"effective number of points: {effective:.1f}")

    figure, (left, right) = panels(1, 2, (11.5, 5.0), width_ratios=(1.4, 1.0))
    left.scatter(X, y, s=14, color=PALE)
    left.scatter(X, y, s=14 * weights, color=BLUE, alpha=0.35, linewidth=0)
    left.plot(target, truth, "x", color=GREY, markersize=4, alpha=0.6)
    grid = np.linspace(-0.9, 1.5, 100)
    left.plot(grid, grid**3 - grid, color=BLACK, linewidth=1.4, linestyle=(0, (4, 1.5)))
    for sample_weight, colour in ((None, RED), (weights, BLUE)):
        line = LinearRegression().fit(X, y, sample_weight)
        left.plot(grid, line.predict(grid[:, None]), color=colour)
    left.set(title="One draw", xlabel="x", ylabel="y", xlim=(-0.9, 1.5), ylim=(-1.3, 2.4))
    names = (
        ("line, plain", RED), ("line, weighted", BLUE), ("true curve (dashed)", BLACK),
        ("training points; blue, larger: weighted", GREY), ("× target points", GREY),
    )  # fmt: skip
    for k, (text, colour) in enumerate(names):
        label(left, 0.03, 0.96 - 0.065 * k, text, colour, transform=left.transAxes)

    rng = np.random.default_rng(0)
    for at, (pairs, colour) in enumerate(zip(studies.values(), (BLUE, GREEN), strict=True)):
        change = np.array([100 * (b / a - 1) for a, b in pairs])
        where = at + rng.uniform(-0.12, 0.12, DRAWS)
        right.plot(where, change, "o", color=colour, alpha=0.5, markersize=7, mew=0)
        right.plot([at - 0.25, at + 0.25], [change.mean()] * 2, color=colour)
    right.axhline(0, color=GREY, linewidth=1)
    right.set_xticks(range(len(studies)), list(studies), fontsize=12)
    right.set(title=f"Change of the error, {DRAWS} draws", ylabel="with weights, %")
    right.set_xlim(-0.6, len(studies) - 0.4)
    right.grid(axis="y")
    save(figure, out, path is None)


if __name__ == "__main__":
    run(main, __doc__)
