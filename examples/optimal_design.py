"""D-optimal experimental design
=============================

Choose where to measure, and how often.

A quadratic surface in two variables has six parameters. Some settings are out of reach, so the
region of possible measurements is not a rectangle. The D-optimal design over a fine grid::

    minimize    -log det(sum_i x_i a_i a_i')
    subject to  x >= 0, sum(x) = 1

minimizes the volume of the confidence ellipsoid of the parameters. Almost all weights are 0. By
the Kiefer-Wolfowitz theorem, the variance of a prediction is then at most 6 times that of a
measurement, and exactly 6 times at the points of the design.
"""

import argparse
import math
import time

import matplotlib.pyplot as plt
import numpy as np

import pairstep

# %%
# Set up the candidates
# ---------------------
#
# Each row of ``A`` contains the regressors at one point of the grid.

grid = np.linspace(-1, 1, 61)
u, v = (axis.ravel() for axis in np.meshgrid(grid, grid))
allowed = (u + v < 0.9) & (u**2 + v**2 < 1.6) & ~((u < -0.3) & (v < -0.6))
u, v = u[allowed], v[allowed]
A = np.column_stack([np.ones_like(u), u, v, u * u, u * v, v * v])

# %%
# Find the design
# ---------------

start = time.perf_counter()
result = pairstep.minimize(pairstep.DOptimal(A), pairstep.Simplex(), tol=1e-10)
milliseconds = 1e3 * (time.perf_counter() - start)
x, equal = result.x, np.full(len(u), 1 / len(u))


def variance(weights):
    """Return the variance of the prediction at each point, relative to one measurement."""
    return np.einsum("ij,ij->i", A, np.linalg.solve((A.T * weights) @ A, A.T).T)


used = np.flatnonzero(x > 1e-6)
print(f"{len(x)} candidates: {result.status} after {result.n_iter} iterations")
print(f"milliseconds: {milliseconds:.1f}")
print(f"points in use: {len(used)}")
print(f"sum of the weights: {math.fsum(x)}")
print(f"largest variance: {variance(x).max():.9f}, of equal weights {variance(equal).max():.3f}")
efficiency = np.exp(-(pairstep.DOptimal(A).value(equal) - result.fun) / A.shape[1])
print(f"equal weights need {1 / efficiency:.2f} times the measurements")

# %%
# Plot the prediction variance
# ----------------------------
#
# The area of a circle is proportional to the weight of a point in the design.

figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, (title, weights) in zip(axes, (("Equal weights", equal), ("D-optimal", x)), strict=True):
    image = ax.scatter(u, v, c=variance(weights), s=14, marker="s", vmin=0, vmax=18, cmap="GnBu")
    ax.set(title=f"{title}: largest variance {variance(weights).max():.2f}", aspect="equal")
    ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], xlabel="u", ylabel="v")
axes[1].scatter(u[used], v[used], s=1500 * x[used], color="C3", edgecolor="black", zorder=3)
figure.colorbar(image, ax=axes, label="variance of the prediction", shrink=0.7)

parser = argparse.ArgumentParser(description="Compute a D-optimal design.")
parser.add_argument("--out", default="optimal_design.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
