"""Sector limits and the maximum Sharpe ratio
==========================================

Compute an efficient frontier with limits on the weight of each sector, its corner portfolios and
the portfolio of largest Sharpe ratio.

An investment policy limits the total weight of each sector::

    minimize    x'Cx / 2 - t mean'x
    subject to  x >= 0, sum(x) = 1, low <= sum of each sector <= high

for every trade-off t. :func:`pairstep.efficient_frontier` computes the portfolios. They move along
straight lines between corner portfolios, where an asset enters or leaves, or a limit becomes active
or inactive. The multipliers of a solution say which limits are active, and what relaxing them is
worth.
"""

import argparse
import csv
import gzip
import math
import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairstep

SECTORS = {
    "technology": ("AAPL", "AMD", "MSFT"),
    "health": ("JNJ", "LLY", "MRK", "PFE", "UNH"),
    "staples": ("KO", "PEP", "PG", "WMT"),
    "retail": ("BBY", "HD"),
    "energy": ("CVX", "RRC", "XOM"),
    "banks": ("BAC", "JPM"),
    "industry": ("GE",),
}
LIMITS = {
    "technology": (0.10, 0.25),
    "health": (0.10, 0.30),
    "staples": (0.0, 0.25),
    "retail": (0.0, 0.15),
    "energy": (0.10, 0.20),
    "banks": (0.05, 0.20),
}
WEEKS_PER_YEAR = 52
RISK_FREE = 0.03  # return per year
POINTS = 60

# %%
# Load the data
# -------------
#
# The data are weekly returns of 20 stocks of the S&P 500 from 1990 to 2022, as in skfolio.

sector_of = {stock: sector for sector, stocks in SECTORS.items() for stock in stocks}
path = Path(os.environ.get("PAIRSTEP_DATA", ""), "finance", "skfolio_sp500_dataset.csv.gz")
if path.is_file():
    with gzip.open(path, "rt") as file:
        (_, *stocks), *rows = csv.reader(file)
    prices = np.array([row[1:] for row in rows], float)[::5]
    returns = prices[1:] / prices[:-1] - 1
    sectors = [sector_of[stock] for stock in stocks]
else:
    print(f"PAIRSTEP_DATA is not set or has no finance/{path.name}: using synthetic data")
    rng, n, weeks = np.random.default_rng(5), len(sector_of), 600
    market = 0.001 + 0.02 * rng.standard_normal(weeks)
    exposure, volatility = rng.uniform(0.5, 1.5, n), rng.uniform(0.02, 0.05, n)
    drift = 0.06 * volatility * rng.standard_normal(n)
    noise = volatility * rng.standard_normal((weeks, n))
    returns = drift + np.outer(market, exposure) + noise
    sectors = list(sector_of.values())
mean, covariance = WEEKS_PER_YEAR * returns.mean(axis=0), WEEKS_PER_YEAR * np.cov(returns.T)

# %%
# Compute the frontier with and without limits
# --------------------------------------------
#
# ``groups`` assigns a sector to each stock, and ``group_total`` gives the limits of each sector.

constraint = pairstep.SumBox(1.0, groups=sectors, group_total=LIMITS)
unlimited = pairstep.efficient_frontier(covariance, mean, n_points=POINTS)
start = time.perf_counter()
limited = pairstep.efficient_frontier(covariance, mean, constraint, n_points=POINTS)
print(f"{POINTS} portfolios of {len(mean)} stocks in {time.perf_counter() - start:.3f} seconds")

members = {name: np.array([sector == name for sector in sectors]) for name in SECTORS}
sums = {name: [math.fsum(x[members[name]]) for x in limited.x] for name in SECTORS}
beyond = max(
    max(low - min(sums[name]), max(sums[name]) - high) for name, (low, high) in LIMITS.items()
)
print(f"largest |sum - 1| {max(abs(math.fsum(x) - 1) for x in limited.x):.1e}")
print(f"largest violation of a limit {max(beyond, 0.0):.1e}")

# %%
# Find the largest Sharpe ratio
# -----------------------------
#
# The frontier knows all of its corners, so the portfolio of largest Sharpe ratio is found without
# another solve.

best = {}
for name, frontier in (("no sector limits", unlimited), ("with sector limits", limited)):
    best[name] = portfolio = frontier.max_sharpe(risk_free=RISK_FREE)
    ratio = (portfolio.expected_return - RISK_FREE) / portfolio.risk
    corners = frontier.corners
    at_corners = ((corners.expected_return - RISK_FREE) / corners.risk).max()
    print(
        f"{name}: {len(corners.x)} corners, Sharpe ratio {ratio:.6f} with "
        f"{np.count_nonzero(portfolio.x)} stocks, best corner {at_corners:.6f}"
    )

# %%
# Read the multipliers
# --------------------
#
# Solve one point of the frontier by itself. Its ``group_multipliers`` are the multipliers of the
# sector limits, by name. They are 0 for limits that are not active.

middle = POINTS // 2
same_risk = pairstep.efficient_frontier(covariance, mean, target_risk=limited.risk[middle])
lost = 100 * (same_risk.expected_return[0] - limited.expected_return[middle])
print(f"at risk {100 * limited.risk[middle]:.2f}% the policy costs {lost:.3f}% of return")
tradeoff = limited.tradeoff[middle]
result = pairstep.minimize(
    pairstep.Quadratic(covariance, -tradeoff * mean), constraint, x0=limited.x[middle]
)
for name, multiplier in sorted(result.group_multipliers.items(), key=lambda item: item[1]):
    share = 100 * math.fsum(result.x[members[name]])
    worth = 0.0 - multiplier / tradeoff
    print(f"{name}: weight {share:.4f}%, one point more is worth {worth:+.4f} points of return")

# %%
# Plot the frontiers
# ------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for frontier, name in ((unlimited, "no sector limits"), (limited, "with sector limits")):
    (line,) = left.plot(100 * frontier.risk, 100 * frontier.expected_return, label=name)
    corners, portfolio = frontier.corners, best[name]
    left.plot(
        100 * corners.risk, 100 * corners.expected_return, "o", color=line.get_color(), markersize=4
    )
    left.plot(100 * portfolio.risk, 100 * portfolio.expected_return, "k*", markersize=11)
left.plot([], [], "o", color="0.3", markersize=4, label="corners")
left.plot([], [], "k*", markersize=11, label="largest Sharpe ratio")
risk = 100 * np.sqrt(np.diag(covariance))
shown = risk < 125 * unlimited.risk[-1]
left.scatter(risk[shown], 100 * mean[shown], s=16, color="0.6", label="single stocks")
left.set(title="Efficient frontier", xlabel="risk (standard deviation per year), %",
         ylabel="expected return per year, %")  # fmt: skip
left.legend(frameon=False, loc="lower right")
left.grid(alpha=0.3)
shares = [100 * np.array(sums[name]) for name in SECTORS]
right.stackplot(100 * limited.expected_return, shares, labels=SECTORS, alpha=0.85)
right.set(title="Sector weights with limits", xlabel="expected return per year, %",
          ylabel="weight, %", ylim=(0, 100))  # fmt: skip
right.set_xlim(100 * limited.expected_return[0], 100 * limited.expected_return[-1])
right.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, reverse=True)

parser = argparse.ArgumentParser(description="Draw a frontier with sector limits.")
parser.add_argument("--out", default="sectors.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
