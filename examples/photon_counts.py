"""Spectral mixtures from photon counts
====================================

Estimate the composition of a sample from a faint spectrum.

A detector counts photons in 300 channels. Each of twelve elements has a known spectrum. The
counts are Poisson with mean N Ax, where x are the fractions of the elements. Maximizing the
likelihood means minimizing the Kullback-Leibler divergence::

    minimize    sum_i b_i log(b_i / (Ax)_i) - b_i + (Ax)_i
    subject to  x >= 0, sum(x) = 1

Least squares gives all channels the same weight, although the error of a count grows with its
square root.
"""

import argparse
import math

import matplotlib.pyplot as plt
import numpy as np

import pairstep

CHANNELS, ELEMENTS, PHOTONS, EXPOSURES = 300, 12, 2000, 200

# %%
# Generate the data
# -----------------
#
# Each spectrum has four lines on a background, and sums to 1. Four of the twelve elements are
# present.

rng = np.random.default_rng(2)
channel = np.arange(CHANNELS)[:, None]
A = np.exp(-channel / rng.uniform(30, 300, ELEMENTS)) * rng.uniform(0.02, 0.3)
for _ in range(4):
    position, width = rng.uniform(10, 290, ELEMENTS), rng.uniform(2, 6, ELEMENTS)
    A += rng.uniform(0.1, 1, ELEMENTS) * np.exp(-(((channel - position) / width) ** 2))
A /= A.sum(axis=0)
truth = np.zeros(ELEMENTS)
truth[[1, 4, 8, 10]] = 0.55, 0.3, 0.1, 0.05
counts = rng.poisson(PHOTONS * (A @ truth), (EXPOSURES, CHANNELS))

# %%
# Fit every exposure by both methods
# ----------------------------------

likelihood, squares = [], []
for exposure in counts:
    b = exposure / exposure.sum()
    result = pairstep.minimize(pairstep.KLDivergence(A, b), pairstep.Simplex(), tol=1e-9)
    assert result.success, result.message
    likelihood.append(result.x)
    squares.append(pairstep.simplex_lstsq(A, b).x)
fits = {"maximum likelihood": np.array(likelihood), "least squares": np.array(squares)}
errors = [float(np.sqrt(np.mean((x - truth) ** 2))) for x in fits.values()]
zeros = [100 * float(np.mean(x[:, truth == 0] == 0)) for x in fits.values()]
print(f"sum of the fractions: {math.fsum(likelihood[0])}")
print(f"RMSE of maximum likelihood: {errors[0]:.5f}, of least squares: {errors[1]:.5f}")
print(f"absent elements that get exactly 0: {zeros[0]:.1f}% and {zeros[1]:.1f}%")

# %%
# Plot the fits
# -------------
#
# Bars show the range from the 10% to the 90% quantile over the exposures.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
left.bar(np.arange(CHANNELS), counts[0], 1.0, color="0.8", label="counts")
left.plot(PHOTONS * (A @ likelihood[0]), label="maximum-likelihood fit")
left.set(title=f"One exposure with {PHOTONS} photons", xlabel="channel", ylabel="photons")
left.legend(frameon=False)
for k, ((name, x), error) in enumerate(zip(fits.items(), errors, strict=True)):
    low, median, high = np.quantile(x, [0.1, 0.5, 0.9], axis=0)
    places, color = np.arange(ELEMENTS) + 0.32 * k - 0.16, f"C{k}"
    right.vlines(places, low, high, color=color, linewidth=5, alpha=0.45)
    right.plot(places, median, "o", color=color, label=f"{name}, RMSE {error:.4f}")
right.hlines(truth, np.arange(ELEMENTS) - 0.4, np.arange(ELEMENTS) + 0.4, color="k", label="truth")
right.set(title=f"Fractions in {EXPOSURES} exposures", xlabel="element", ylabel="fraction")
right.set_xticks(range(ELEMENTS))
right.legend(frameon=False)

parser = argparse.ArgumentParser(description="Fit photon counts.")
parser.add_argument("--out", default="photon_counts.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
