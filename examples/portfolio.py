"""Portfolios with trading costs
=============================

The mean-variance frontier, with and without the cost of getting there.

An investor holds the same amount of each stock and looks a quarter ahead. Selling and buying costs
a share of what is traded: a kink of the objective at the present holdings::

    aversion x'Cx / 2 - mean'x + cost sum_i |x_i - held_i|,    x >= 0, sum(x) = 1,

so that many holdings stay exactly as they are. `pairstep.path` follows each frontier from the
careful to the bold, every solve starting from the last. Data: 89 stocks of the FTSE 100, from
Beasley's OR-Library, with the frontier published there as a check.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from _data import Array, find, made_up_market, numbers
from _picture import BLACK, BLUE, GREEN, GREY, RED, label, panels, run, save

import pairstep

WEEKS = 13
AVERSIONS = np.geomspace(100.0, 0.7, 60)
COSTS = {0.0: (BLUE, "-"), 0.005: (GREEN, (0, (5, 1.2))), 0.02: (RED, (0, (2, 1)))}


def market() -> tuple[Array, Array, Array | None]:
    """Give weekly means and covariances, and the published frontier where there is one."""
    path, published = find("finance/port3.txt"), None
    if path is None:
        returns, _ = made_up_market(np.random.default_rng(2), 80, 200, premium=0.05)
        return returns.mean(axis=0), np.cov(returns.T), None
    data = numbers(path)
    n = int(data[0])
    mean, deviation = data[1 : 1 + 2 * n].reshape(n, 2).T
    i, j, correlation = data[1 + 2 * n :].reshape(-1, 3).T
    covariance = np.empty((n, n))
    rows, columns = i.astype(int) - 1, j.astype(int) - 1
    covariance[rows, columns] = covariance[columns, rows] = correlation
    published = numbers(path.with_name("portef3.txt")).reshape(-1, 2)
    return mean, covariance * np.outer(deviation, deviation), published


def frontier(mean: Array, covariance: Array, held: Array, cost: float) -> Array:
    """Give the portfolios of one frontier, a row per risk aversion."""

    def objective(aversion: float) -> pairstep.Kinked:
        return pairstep.Kinked(pairstep.Quadratic(aversion * covariance, -mean), cost, held)

    results = list(pairstep.path(objective, pairstep.Simplex(), over=AVERSIONS, x0=held))
    for result in results:
        assert result.status == pairstep.Status.OPTIMAL, result.message
    return np.array([result.x for result in results])


def main(out: Path) -> None:
    """Follow a frontier for each cost, print what trading is worth it, draw."""
    weekly_mean, weekly_covariance, published = market()
    mean, covariance = WEEKS * weekly_mean, WEEKS * weekly_covariance
    held = np.full(len(mean), 1 / len(mean))
    figure, (left, right) = panels(1, 2, (11.5, 5.0))
    for cost, (colour, dashes) in COSTS.items():
        began = time.perf_counter()
        x = frontier(mean, covariance, held, cost)
        seconds = time.perf_counter() - began
        traded = np.abs(x - held).sum(axis=1)
        risk = 100 * np.sqrt(np.einsum("ij,jk,ik->i", x, covariance, x))
        gain = 100 * (x @ mean - cost * traded)
        name = f"cost {100 * cost:g}%"
        print(f"{name}: {len(x)} portfolios of {len(mean)} stocks in {seconds:.3f} seconds")
        print(f"{name}: largest |sum - 1| {max(abs(math.fsum(row) - 1) for row in x):.1e}")
        for k in np.linspace(0, len(x) - 1, 6).astype(int):
            kept = int((x[k] == held).sum())
            print(
                f"{name}: risk {risk[k]:.4f}% gain {gain[k]:.4f}% turnover "
                f"{50 * traded[k]:.1f}% untouched {kept}"
            )
        left.plot(risk, gain, color=colour, linestyle=dashes)
        label(left, risk[-1] + 0.15, gain[-1], name if cost else "free trading", colour)
        right.plot(risk, 50 * traded, color=colour, linestyle=dashes)
        if cost == 0 and published is not None:
            order = np.argsort(published[:, 1])
            ours = np.einsum("ij,jk,ik->i", x, weekly_covariance, x)
            reference = np.interp(ours, published[order, 1], published[order, 0])
            off = np.abs(x @ weekly_mean - reference).max()
            print(f"largest distance to the published frontier: {off:.1e} of weekly return")
            left.plot(
                100 * np.sqrt(WEEKS * published[::60, 1]), 100 * WEEKS * published[::60, 0],
                ".", color=BLACK, markersize=5, zorder=3,
            )  # fmt: skip

    risk_held, gain_held = 100 * math.sqrt(held @ covariance @ held), 100 * held @ mean
    left.plot(risk_held, gain_held, "o", color=BLACK, markersize=8)
    label(left, risk_held + 0.25, gain_held, "held today", BLACK)
    for row, (cost, (colour, _)) in enumerate(COSTS.items()):
        name = f"cost {100 * cost:g}%" if cost else "free trading"
        label(right, 0.97, 0.2 - 0.07 * row, name, colour, ha="right", transform=right.transAxes)
    left.margins(x=0.12)
    left.set(title="Frontier after costs", ylabel="expected gain in a quarter, %")
    right.set(title="How much is traded", ylabel="turnover, % of the portfolio", ylim=(0, 105))
    if published is not None:
        label(
            left, 0.98, 0.04, "dots: published frontier", GREY, ha="right", fontweight="normal",
            transform=left.transAxes,
        )  # fmt: skip
    for ax in (left, right):
        ax.set_xlabel("risk (standard deviation in a quarter), %")
        ax.grid()
    save(figure, out, published is None)


if __name__ == "__main__":
    run(main, __doc__)
