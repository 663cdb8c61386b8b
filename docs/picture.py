"""Draws docs/prices.png, the picture of the README, and a dark version, from runs of pairstep.

    python docs/picture.py [--out docs/prices.png]

Left: the prices of twelve accounts during one solve. Right: selection rules on one problem.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import pairstep

# Okabe and Ito's colours, which the colour-blind can tell apart.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#8A8A8A"
LOOKS = {"": ("#222222", "white"), "-dark": ("#CED6DD", "#14181E")}  # ink and paper

RACE = {  # rule: colour, line style, how many points to shift its label up
    "random": (GREY, (0, (1, 1.2)), 0),
    "greedy": (ORANGE, "-", 5),
    "ratio": (GREEN, (0, (5, 1.5)), 3),
    "gs-1-lipschitz": (BLUE, "-", -4),
    "gs-q-lipschitz": (PURPLE, (0, (3, 1.2, 1, 1.2)), -7),
}
MOVES_SHOWN = 26


def prices_of_a_solve() -> tuple[NDArray[np.float64], pairstep.Result]:
    """The gradient at every point of a solve, one row per point."""
    rng = np.random.default_rng(4)
    factors = rng.standard_normal((30, 12))
    wanted = rng.dirichlet(np.full(12, 0.3))
    objective = pairstep.LeastSquares(factors, factors @ wanted + 0.3 * rng.standard_normal(30))
    constraint = pairstep.Simplex()
    points = [constraint.start(12)]
    result = pairstep.minimize(
        objective, constraint, rule="gs-s", tol=1e-6, callback=lambda p: points.append(p.x.copy())
    )
    return np.array([objective.gradient(x) for x in points]), result


def race() -> dict[str, NDArray[np.float64]]:
    """Distance to the optimum per move: the paper's least squares with ill-scaled columns."""
    rng = np.random.default_rng(1)
    n = 300
    A = rng.standard_normal((n, n)) * rng.standard_normal(n)
    b = A @ rng.standard_normal(n) + rng.standard_normal(n)
    objective = pairstep.LeastSquares(A, b)
    constraint = pairstep.SumBox(total=0.0, lower=-np.inf, upper=np.inf)
    best = pairstep.minimize(objective, constraint, tol=1e-12).fun
    distances = {}
    for rule in RACE:
        run = pairstep.minimize(
            objective, constraint, rule=rule, step="lipschitz", tol=0.0, max_iter=4000, seed=0,
            history=True,
        )  # fmt: skip
        assert run.history is not None
        distances[rule] = run.history.value - best
    return distances


def draw_prices(axes: plt.Axes) -> None:
    """Draw the price of every account over the moves."""
    prices, result = prices_of_a_solve()
    moves = np.arange(len(prices))
    common = float(result.multiplier)
    held = result.x > 0
    for path, has_money in zip(prices.T, held, strict=True):
        colour = BLUE if has_money else ORANGE
        axes.plot(moves, path, color=colour, lw=1.6, alpha=0.9, drawstyle="steps-post")
    axes.axhline(common, color=plt.rcParams["text.color"], lw=0.9, ls=(0, (4, 3)), zorder=0)
    right = MOVES_SHOWN * 1.03
    axes.text(right, common, f"{held.sum()} accounts\nwith money:\none price", color=BLUE,
              va="top", linespacing=1.15)  # fmt: skip
    above = prices[-1][~held]
    axes.text(right, float(np.median(above)), f"{(~held).sum()} empty:\ntoo dear\nto buy",
              color=ORANGE, va="center", linespacing=1.15)  # fmt: skip
    axes.set(xlim=(0, MOVES_SHOWN), xlabel="moves", ylabel="price of an account")
    axes.set_title("Prices equalise", loc="left", fontweight="bold")


def draw_race(axes: plt.Axes) -> None:
    """Draw the distance to the optimum over the moves of each rule."""
    distances = race()
    for rule, values in distances.items():
        colour, style, shift = RACE[rule]
        axes.semilogy(values / values[0], color=colour, ls=style, lw=2.0)
        axes.annotate(rule, (len(values) - 1, values[-1] / values[0]), (6, shift),
                      textcoords="offset points", color=colour, va="center")  # fmt: skip
    axes.set(xlim=(0, max(map(len, distances.values())) - 1), xlabel="moves")
    axes.set_ylabel("distance to the optimum")
    axes.set_title("Rules race", loc="left", fontweight="bold")


def main() -> None:
    """Draw both parts and save them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("prices.png"))
    out = parser.parse_args().out
    for look, (ink, paper) in LOOKS.items():
        plt.rcParams.update({
            "font.size": 14, "axes.titlesize": 16, "axes.spines.top": False,
            "axes.spines.right": False, "axes.edgecolor": ink, "text.color": ink,
            "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink,
            "axes.facecolor": paper,
        })  # fmt: skip
        figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 4.6), layout="constrained")
        draw_prices(left)
        draw_race(right)
        figure.savefig(out.with_stem(out.stem + look), dpi=110, facecolor=paper)


if __name__ == "__main__":
    main()
