"""Photon counts
=============

Which elements a faint spectrum is a mix of.

A detector counts photons in 300 channels. Each of twelve elements has a spectrum of its own, and
what is counted is Poisson with the mean N Ax, x the shares of the elements. Most of them are not in
the sample. Least squares trusts all channels alike, although the error of a count grows with its
root; the divergence of Kullback and Leibler, which is minus the logarithm of the likelihood, does
not:

    minimise sum_i b_i log(b_i / (Ax)_i) - b_i + (Ax)_i,    x >= 0, sum(x) = 1.

The data are made up, so that the truth is known.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from _picture import BLACK, BLUE, PALE, RED, label, panels, run, save

import pairstep

CHANNELS, ELEMENTS, PHOTONS, EXPOSURES = 300, 12, 2000, 200


def spectra(rng: np.random.Generator) -> np.ndarray:
    """A few lines on a background for each element; every spectrum has the sum 1."""
    channel = np.arange(CHANNELS)[:, None]
    background = np.exp(-channel / rng.uniform(30, 300, ELEMENTS)) * rng.uniform(0.02, 0.3)
    lines = np.zeros((CHANNELS, ELEMENTS))
    for _ in range(4):
        place, width = rng.uniform(10, 290, ELEMENTS), rng.uniform(2, 6, ELEMENTS)
        lines += rng.uniform(0.1, 1, ELEMENTS) * np.exp(-(((channel - place) / width) ** 2))
    total = background + lines
    return total / total.sum(axis=0)


def main(out: Path) -> None:
    """Estimate the shares of many exposures both ways; print and draw the errors."""
    rng = np.random.default_rng(2)
    A = spectra(rng)
    truth = np.zeros(ELEMENTS)
    truth[[1, 4, 8, 10]] = 0.55, 0.3, 0.1, 0.05
    counts = rng.poisson(PHOTONS * (A @ truth), (EXPOSURES, CHANNELS))
    likely, squares = [], []
    for seen in counts:
        shares = seen / seen.sum()
        result = pairstep.minimize(pairstep.KLDivergence(A, shares), pairstep.Simplex(), tol=1e-9)
        assert result.success, result.message
        likely.append(result.x)
        squares.append(pairstep.simplex_lstsq(A, shares).x)
    errors = [float(np.sqrt(np.mean((np.array(v) - truth) ** 2))) for v in (likely, squares)]
    found = [float(np.mean(np.array(v)[:, truth == 0] == 0)) for v in (likely, squares)]
    print(f"sum of the shares: {math.fsum(likely[0])}")
    print(f"error of the likelihood's shares: {errors[0]:.5f}, of least squares: {errors[1]:.5f}")
    print(f"absent elements that get exactly 0: {100 * found[0]:.1f}% and {100 * found[1]:.1f}%")

    figure, (left, right) = panels(1, 2, (11.5, 5.0))
    left.bar(np.arange(CHANNELS), counts[0], 1.0, color=PALE)
    left.plot(PHOTONS * (A @ likely[0]), color=BLUE, linewidth=1.5)
    label(left, 0.98, 0.92, "one exposure", "#767676", transform=left.transAxes, ha="right")
    label(left, 0.98, 0.85, "its mix", BLUE, transform=left.transAxes, ha="right")
    left.set(title=f"{PHOTONS} photons", xlabel="channel")
    for values, colour, shift in ((likely, BLUE, -0.16), (squares, RED, 0.16)):
        low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
        places = np.arange(ELEMENTS) + shift
        right.vlines(places, low, high, color=colour, linewidth=5, alpha=0.45)
        right.plot(places, middle, "o", color=colour, markersize=5)
    right.hlines(truth, np.arange(ELEMENTS) - 0.4, np.arange(ELEMENTS) + 0.4, color=BLACK, lw=1.5)
    label(right, 0.5, 0.92, f"likelihood: error {errors[0]:.4f}", BLUE, transform=right.transAxes)
    label(right, 0.5, 0.85, f"least squares: error {errors[1]:.4f}", RED, transform=right.transAxes)
    right.set(title=f"Shares in {EXPOSURES} exposures, and the truth", xlabel="element")
    right.set_xticks(range(ELEMENTS))
    save(figure, out)


if __name__ == "__main__":
    run(main, __doc__)
