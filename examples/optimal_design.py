"""Optimal design
==============

Where to measure, and how often.

A quadratic surface in two variables has six parameters. Measurements can be taken anywhere in a
region that is no rectangle, for some settings are out of reach. The D-optimal design

    minimise -log det(sum_i x_i a_i a_i'),    x >= 0, sum(x) = 1

over a fine grid of places gives the smallest confidence ellipsoid of the parameters; almost all
places get the weight 0. By the theorem of Kiefer and Wolfowitz the variance of a prediction is then
nowhere larger than 6 times that of a measurement, and exactly 6 where one measures: the picture
shows that surface, and the design touches its top.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from _picture import BLACK, GREY, RED, label, panels, run, save

import pairstep

STEPS = 61


def surface(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The regressors of a quadratic surface, a row for each place."""
    return np.column_stack([np.ones_like(u), u, v, u * u, u * v, v * v])


def main(out: Path) -> None:
    """Find the design, check the theorem, print and draw."""
    u, v = (a.ravel() for a in np.meshgrid(*2 * [np.linspace(-1, 1, STEPS)]))
    allowed = (u + v < 0.9) & (u**2 + v**2 < 1.6) & ~((u < -0.3) & (v < -0.6))
    u, v = u[allowed], v[allowed]
    A = surface(u, v)
    began = time.perf_counter()
    result = pairstep.minimize(pairstep.DOptimal(A), pairstep.Simplex(), tol=1e-10)
    milliseconds = 1e3 * (time.perf_counter() - began)
    x = result.x
    even = np.full(len(x), 1 / len(x))

    def variance(weights: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", A, np.linalg.solve((A.T * weights) @ A, A.T).T)

    used = np.flatnonzero(x > 1e-6)
    print(f"{len(x)} places: {result.status} after {result.n_iter} iterations")
    print(f"milliseconds: {milliseconds:.1f}")
    print(f"places in use: {len(used)}")
    print(f"sum of the weights: {math.fsum(x)}")
    print(f"largest variance: {variance(x).max():.9f}, of equal weights {variance(even).max():.3f}")
    efficiency = np.exp(-(pairstep.DOptimal(A).value(even) - result.fun) / A.shape[1])
    print(f"equal weights need {1 / efficiency:.2f} times the measurements")

    figure, axes = panels(1, 2, (11.5, 5.4))
    titles = {"Equal weights": even, "D-optimal": x}
    for ax, (title, weights) in zip(axes, titles.items(), strict=True):
        shown = ax.scatter(
            u, v, c=variance(weights), s=14, marker="s", vmin=0, vmax=18, cmap="GnBu"
        )
        ax.set(title=f"{title}: largest variance {variance(weights).max():.2f}", aspect="equal")
        ax.set_xticks([-1, 0, 1])
        ax.set_yticks([-1, 0, 1])
    axes[1].scatter(u[used], v[used], s=1500 * x[used], color=RED, edgecolor=BLACK, zorder=3)
    label(axes[1], 0.62, 0.95, "how often to measure", RED, transform=axes[1].transAxes)
    bar = figure.colorbar(shown, ax=axes, shrink=0.7)
    bar.set_label("variance of the prediction", color=GREY)
    save(figure, out)


if __name__ == "__main__":
    run(main, __doc__)
