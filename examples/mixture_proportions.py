"""Mixture proportions
===================

How effects are distributed that are only seen through noise.

Two thousand effects are measured with an error of known size. Their distribution is taken as a
mixture of many components, and its proportions maximise the likelihood of what was seen:

    minimise -mean log(Lx),    x >= 0, sum(x) = 1,    L[i, j] = density of observation i under j.

Most proportions are exactly 0 at the optimum. With the distribution known, every single
measurement can be shrunk towards where the effects are (empirical Bayes), which is what the right
panel shows. The data are made up, so that the truth is known.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from _picture import BLACK, BLUE, GREY, PALE, RED, label, panels, run, save

import pairstep

COUNT, COMPONENTS, NOISE = 2000, 200, 1.0


def normal(x: np.ndarray, deviation: float) -> np.ndarray:
    """The density of a normal distribution."""
    return np.exp(-0.5 * (x / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))


def main(out: Path) -> None:
    """Estimate the distribution, shrink the measurements, print and draw."""
    rng = np.random.default_rng(3)
    # Most effects are nil; the others are around -2, or spread out around 3.
    truth = np.r_[
        np.zeros(COUNT // 2), rng.normal(-2, 0.2, COUNT // 4), rng.normal(3, 0.8, COUNT // 4)
    ]
    seen = truth + NOISE * rng.normal(size=len(truth))

    places = np.linspace(seen.min(), seen.max(), COMPONENTS)
    likelihoods = normal(seen[:, None] - places, NOISE)
    began = time.perf_counter()
    result = pairstep.minimize(
        pairstep.MixtureLikelihood(likelihoods), pairstep.Simplex(), tol=1e-10
    )
    seconds = time.perf_counter() - began
    x = result.x
    used = x > 0
    shrunk = likelihoods @ (x * places) / (likelihoods @ x)
    errors = [float(np.sqrt(np.mean((v - truth) ** 2))) for v in (seen, shrunk)]
    print(f"{COUNT} x {COMPONENTS} likelihoods: {result.status} after {result.n_iter} iterations")
    print(f"seconds: {seconds:.3f}")
    print(f"the likelihood is within {result.suboptimality_bound:.1e} of the best")
    print(f"components in use: {used.sum()} of {COMPONENTS}")
    print(f"sum of the proportions: {math.fsum(x)}")
    print(f"error of the measurements: {errors[0]:.3f}, of the shrunk ones: {errors[1]:.3f}")

    figure, (left, right) = panels(1, 2, (11.5, 5.0))
    left.hist(seen, 60, density=True, color=PALE)
    grid = np.linspace(seen.min(), seen.max(), 400)
    left.plot(grid, normal(grid[:, None] - places[used], NOISE) @ x[used], color=BLUE)
    scale = left.get_ylim()[1]
    left.vlines(places[used], 0, scale * x[used], color=RED, linewidth=3)
    label(left, 0.97, 0.92, "proportions", RED, ha="right", transform=left.transAxes)
    label(left, 0.97, 0.85, "density of what is seen", BLUE, ha="right", transform=left.transAxes)
    label(left, 0.97, 0.78, "measurements", GREY, ha="right", transform=left.transAxes)
    left.set(title=f"{used.sum()} of {COMPONENTS} components are in use", xlabel="effect")
    left.set_yticks([])
    order = np.argsort(seen)
    right.plot(seen, truth, ".", color=PALE, markersize=3)
    right.plot(seen[order], shrunk[order], color=BLUE)
    right.plot(seen[order], seen[order], color=BLACK, linewidth=1, linestyle=(0, (4, 3)))
    label(right, 0.04, 0.93, "shrunk", BLUE, transform=right.transAxes)
    label(right, 0.04, 0.86, "true effects", GREY, transform=right.transAxes)
    right.set(
        title=f"Error {errors[0]:.2f} as measured, {errors[1]:.2f} shrunk",
        xlabel="as measured", ylabel="effect",
    )  # fmt: skip
    right.grid()
    save(figure, out)


if __name__ == "__main__":
    run(main, __doc__)
