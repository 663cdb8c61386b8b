"""Portfolios with trading costs
=============================

Compute mean-variance frontiers, with and without the cost of rebalancing.

An investor holds equal amounts of each stock and plans one quarter ahead. Buying and selling costs
a fraction of the traded amount, which is an L1 term around the current holdings::

    minimize    aversion x'Cx / 2 - mean'x + cost sum_i |x_i - held_i|
    subject to  x >= 0, sum(x) = 1

With costs, many holdings stay exactly as they are.
"""

import argparse
import math
import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairstep

# %%
# Load the data
# -------------
#
# The data are weekly means and covariances of 89 stocks of the FTSE 100, from Beasley's OR-Library.
# The library also publishes the frontier without costs, which serves as a check.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "finance", "port3.txt")
published = None
if path.is_file():
    data = np.array(path.read_text().split(), float)
    n = int(data[0])
    weekly_mean, deviation = data[1 : 1 + 2 * n].reshape(n, 2).T
    i, j, correlation = data[1 + 2 * n :].reshape(-1, 3).T
    weekly_covariance = np.empty((n, n))
    rows, columns = i.astype(int) - 1, j.astype(int) - 1
    weekly_covariance[rows, columns] = weekly_covariance[columns, rows] = correlation
    weekly_covariance *= np.outer(deviation, deviation)
    published = np.array(path.with_name("portef3.txt").read_text().split(), float).reshape(-1, 2)
else:
    print(f"PAIRSTEP_DATA is not set or has no finance/{path.name}: using synthetic data")
    rng, n, weeks = np.random.default_rng(2), 80, 200
    market = 0.001 + 0.02 * rng.standard_normal(weeks)
    exposure, volatility = rng.uniform(0.5, 1.5, n), rng.uniform(0.02, 0.05, n)
    drift = 0.05 * volatility * rng.standard_normal(n)
    noise = volatility * rng.standard_normal((weeks, n))
    returns = drift + np.outer(market, exposure) + noise
    weekly_mean, weekly_covariance = returns.mean(axis=0), np.cov(returns.T)

WEEKS = 13
mean, covariance = WEEKS * weekly_mean, WEEKS * weekly_covariance
held = np.full(n, 1 / n)

# %%
# Solve one frontier per cost
# ---------------------------
#
# :func:`pairstep.path` solves the problem for a sequence of risk aversions. Each solve starts
# from the previous solution.

AVERSIONS = np.geomspace(100.0, 0.7, 60)


def frontier(cost):
    """Return the portfolios of one frontier, one row per risk aversion."""

    def objective(aversion):
        return pairstep.L1Penalized(pairstep.Quadratic(aversion * covariance, -mean), cost, held)

    results = list(pairstep.path(objective, pairstep.Simplex(), over=AVERSIONS, x0=held))
    assert all(result.success for result in results)
    return np.array([result.x for result in results])


frontiers = {}
for cost in (0.0, 0.005, 0.02):
    start = time.perf_counter()
    x = frontier(cost)
    seconds = time.perf_counter() - start
    traded = np.abs(x - held).sum(axis=1)
    risk = 100 * np.sqrt(np.einsum("ij,jk,ik->i", x, covariance, x))
    gain = 100 * (x @ mean - cost * traded)
    frontiers[cost] = risk, gain, 50 * traded
    name = f"cost {100 * cost:g}%"
    print(f"{name}: {len(x)} portfolios of {n} stocks in {seconds:.3f} seconds")
    print(f"{name}: largest |sum - 1| {max(abs(math.fsum(row) - 1) for row in x):.1e}")
    for k in np.linspace(0, len(x) - 1, 6).astype(int):
        print(
            f"{name}: risk {risk[k]:.4f}% gain {gain[k]:.4f}% turnover {50 * traded[k]:.1f}% "
            f"untouched {(x[k] == held).sum()}"
        )
    if cost == 0 and published is not None:
        order = np.argsort(published[:, 1])
        variance = np.einsum("ij,jk,ik->i", x, weekly_covariance, x)
        reference = np.interp(variance, published[order, 1], published[order, 0])
        difference = np.abs(x @ weekly_mean - reference).max()
        print(f"largest distance to the published frontier: {difference:.1e} of weekly return")

# %%
# Plot the frontiers
# ------------------
#
# Costs lower the frontier, and reduce the turnover.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for (cost, (risk, gain, turnover)), style in zip(frontiers.items(), ("-", "--", ":"), strict=True):
    name = f"cost {100 * cost:g}%" if cost else "no costs"
    left.plot(risk, gain, style, label=name)
    right.plot(risk, turnover, style, label=name)
risk, gain = 100 * math.sqrt(held @ covariance @ held), 100 * held @ mean
left.plot(risk, gain, "ko", label="current portfolio")
if published is not None:
    points = published[::60]
    risk, gain = 100 * np.sqrt(WEEKS * points[:, 1]), 100 * WEEKS * points[:, 0]
    left.plot(risk, gain, "k.", markersize=4, label="published frontier")
left.set(title="Efficient frontier after costs", ylabel="expected return per quarter, %")
right.set(title="Turnover", ylabel="turnover, % of the portfolio", ylim=(0, 105))
for ax in (left, right):
    ax.set_xlabel("risk (standard deviation per quarter), %")
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)

parser = argparse.ArgumentParser(description="Draw frontiers with trading costs.")
parser.add_argument("--out", default="portfolio.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
