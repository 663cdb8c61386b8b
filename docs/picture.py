"""Draw docs/derivatives.png, the figure of the README and the home page, and its dark version.

    python docs/picture.py [--out docs/derivatives.png]

Left: the derivatives of twelve variables during one solve. Right: selection rules on one problem.
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

# The palette of Okabe and Ito, which color-blind readers can distinguish.
BLUE, ORANGE, GREEN, PURPLE, GRAY = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#8A8A8A"
MODES = {"": ("#222222", "white"), "-dark": ("#CED6DD", "#14181E")}  # text and background

RULES = {  # rule: color, line style, vertical shift of its label in points
    "random": (GRAY, (0, (1, 1.2)), 0),
    "greedy": (ORANGE, "-", 11),
    "ratio": (GREEN, (0, (5, 1.5)), 8),
    "gs-1-lipschitz": (BLUE, "-", -4),
    "gs-q-lipschitz": (PURPLE, (0, (3, 1.2, 1, 1.2)), -13),
}
ITERATIONS_SHOWN = 26  # in the left panel


def gradients_of_a_solve() -> tuple[NDArray[np.float64], pairstep.Result]:
    """The gradient at every iterate of a solve, one row per iterate."""
    rng = np.random.default_rng(4)
    factors = rng.standard_normal((30, 12))
    target = rng.dirichlet(np.full(12, 0.3))
    objective = pairstep.LeastSquares(factors, factors @ target + 0.3 * rng.standard_normal(30))
    constraint = pairstep.Simplex()
    points = [constraint.start(12)]
    result = pairstep.coordinate_descent(
        objective, constraint, rule="gs-s", tol=1e-6, callback=lambda p: points.append(p.x.copy())
    )
    return np.array([objective.gradient(x) for x in points]), result


def gaps_of_rules() -> dict[str, NDArray[np.float64]]:
    """Optimality gap per iteration: the paper's least squares with badly scaled columns."""
    rng = np.random.default_rng(1)
    n = 300
    A = rng.standard_normal((n, n)) * rng.standard_normal(n)
    b = A @ rng.standard_normal(n) + rng.standard_normal(n)
    objective = pairstep.LeastSquares(A, b)
    constraint = pairstep.SumBox(total=0.0, lower=-np.inf, upper=np.inf)
    best = pairstep.minimize(objective, constraint, tol=1e-12).fun
    gaps = {}
    for rule in RULES:
        run = pairstep.coordinate_descent(
            objective, constraint, rule=rule, step="lipschitz", tol=0.0, max_iter=4000, seed=0,
            history=True,
        )  # fmt: skip
        assert run.history is not None
        gaps[rule] = run.history.value - best
    return gaps


def draw_gradients(axes: plt.Axes) -> None:
    """Draw the derivative of every variable over the iterations."""
    gradients, result = gradients_of_a_solve()
    iterations = np.arange(len(gradients))
    multiplier = float(result.sum_multiplier)
    positive = result.x > 0
    for derivative, is_positive in zip(gradients.T, positive, strict=True):
        color = BLUE if is_positive else ORANGE
        axes.plot(iterations, derivative, color=color, lw=1.6, alpha=0.9, drawstyle="steps-post")
    axes.axhline(multiplier, color=plt.rcParams["text.color"], lw=0.9, ls=(0, (4, 3)), zorder=0)
    right = ITERATIONS_SHOWN * 1.03
    axes.text(right, multiplier, f"{positive.sum()} positive:\nequal", color=BLUE,
              va="top", linespacing=1.15)  # fmt: skip
    above = gradients[-1][~positive]
    axes.text(right, float(np.median(above)), f"{(~positive).sum()} at 0:\nlarger",
              color=ORANGE, va="center", linespacing=1.15)  # fmt: skip
    axes.set(xlim=(0, ITERATIONS_SHOWN), xlabel="iteration", ylabel="partial derivative")
    axes.set_title("Derivatives become equal", loc="left", fontweight="bold")


def draw_rules(axes: plt.Axes) -> None:
    """Draw the relative optimality gap over the iterations of each rule."""
    gaps = gaps_of_rules()
    for rule, gap in gaps.items():
        color, style, shift = RULES[rule]
        axes.semilogy(gap / gap[0], color=color, ls=style, lw=2.0)
        axes.annotate(rule, (len(gap) - 1, gap[-1] / gap[0]), (6, shift),
                      textcoords="offset points", color=color, va="center")  # fmt: skip
    last = max(map(len, gaps.values())) - 1
    axes.set(xlim=(0, last), ylim=(1e-4, 2.0), xticks=(0, last // 2, last), xlabel="iteration")
    axes.set_ylabel("relative optimality gap")
    axes.set_title("Selection rules", loc="left", fontweight="bold")


def main() -> None:
    """Draw both panels, for light and dark pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("derivatives.png"))
    out = parser.parse_args().out
    for mode, (text, background) in MODES.items():
        plt.rcParams.update({
            "font.size": 15, "axes.titlesize": 16, "axes.spines.top": False,
            "axes.spines.right": False, "axes.edgecolor": text, "text.color": text,
            "axes.labelcolor": text, "xtick.color": text, "ytick.color": text,
            "axes.facecolor": background,
        })  # fmt: skip
        figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
        draw_gradients(left)
        draw_rules(right)
        figure.savefig(out.with_stem(out.stem + mode), dpi=110, facecolor=background)


if __name__ == "__main__":
    main()
