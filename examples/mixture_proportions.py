"""Mixture proportions
===================

Estimate the distribution of effects from noisy measurements.

Two thousand effects are measured with an error of known size. Their distribution is modeled as a
mixture of many components. The proportions maximize the likelihood::

    minimize    -mean log(Lx)
    subject to  x >= 0, sum(x) = 1

where ``L[i, j]`` is the density of measurement i under component j. Most proportions are exactly
0 at the optimum. The estimated distribution then gives a better estimate of each effect
(empirical Bayes).
"""

import argparse
import math
import time

import matplotlib.pyplot as plt
import numpy as np

import pairstep

COUNT, COMPONENTS, NOISE = 2000, 200, 1.0

# %%
# Generate the data
# -----------------
#
# Half of the effects are 0. The others are close to -2, or spread around 3.

rng = np.random.default_rng(3)
effects = np.concatenate(
    [np.zeros(COUNT // 2), rng.normal(-2, 0.2, COUNT // 4), rng.normal(3, 0.8, COUNT // 4)]
)
measured = effects + NOISE * rng.normal(size=COUNT)

# %%
# Estimate the proportions
# ------------------------


def normal_density(x, deviation):
    """Return the density of a normal distribution."""
    return np.exp(-0.5 * (x / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))


centers = np.linspace(measured.min(), measured.max(), COMPONENTS)
likelihoods = normal_density(measured[:, None] - centers, NOISE)
start = time.perf_counter()
result = pairstep.minimize(pairstep.MixtureLikelihood(likelihoods), pairstep.Simplex(), tol=1e-10)
seconds = time.perf_counter() - start
x = result.x
used = x > 0
print(f"{COUNT} x {COMPONENTS} likelihoods: {result.status} after {result.n_iter} iterations")
print(f"seconds: {seconds:.3f}")
print(f"the likelihood is within {result.suboptimality_bound:.1e} of the best")
print(f"components in use: {used.sum()} of {COMPONENTS}")
print(f"sum of the proportions: {math.fsum(x)}")

# %%
# Shrink the measurements
# -----------------------
#
# The posterior mean of an effect is a weighted average of the centers.

shrunk = likelihoods @ (x * centers) / (likelihoods @ x)
errors = [float(np.sqrt(np.mean((v - effects) ** 2))) for v in (measured, shrunk)]
print(f"error of the measurements: {errors[0]:.3f}, of the shrunk ones: {errors[1]:.3f}")

# %%
# Plot the mixture and the shrunk effects
# ---------------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
left.hist(measured, 60, density=True, color="0.85", label="measurements")
grid = np.linspace(measured.min(), measured.max(), 400)
left.plot(
    grid, normal_density(grid[:, None] - centers[used], NOISE) @ x[used], label="fitted density"
)
scale = left.get_ylim()[1]
left.vlines(centers[used], 0, scale * x[used], color="C3", linewidth=3, label="proportions")
left.set(title=f"{used.sum()} of {COMPONENTS} components are positive", xlabel="effect", yticks=[])
left.legend(frameon=False)
order = np.argsort(measured)
right.plot(measured, effects, ".", color="0.8", markersize=3, label="true effect")
right.plot(measured[order], shrunk[order], label=f"posterior mean, RMSE {errors[1]:.2f}")
right.plot(
    measured[order], measured[order], "k--", linewidth=1, label=f"measured, RMSE {errors[0]:.2f}"
)
right.set(title="Empirical Bayes estimates", xlabel="measured effect", ylabel="effect")
right.legend(frameon=False)
right.grid(alpha=0.3)

parser = argparse.ArgumentParser(description="Estimate mixture proportions.")
parser.add_argument("--out", default="mixture_proportions.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
