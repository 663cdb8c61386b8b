"""Rebalancing with costs and a turnover cap
=========================================

Rebalance a minimum-variance portfolio on 250 dates, with trading costs and a turnover cap.

On each date the covariance is estimated from the year before. The new portfolio solves::

    minimize    aversion x'Cx / 2 + cost sum_i |x_i - held_i|
    subject to  x >= 0, sum(x) = 1, sum_i |x_i - held_i| <= cap

where `held` are the weights before the trade. Three policies are compared: the minimum-variance
portfolio regardless of costs, the portfolio with costs, and the portfolio with costs and the cap.
"""

import argparse
import csv
import gzip
import os
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairstep

DATES = 250
DAYS = 20  # between two dates
WINDOW = 250  # days from which the covariance is estimated
AVERSION = 5.0
COST = 0.001  # per amount bought or sold
CAP = 0.04  # on purchases plus sales, on each date

# %%
# Load the data
# -------------
#
# The data are daily prices of 20 stocks of the S&P 500, as in skfolio.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "finance", "skfolio_sp500_dataset.csv.gz")
if path.is_file():
    with gzip.open(path, "rt") as file:
        _, *rows = csv.reader(file)
    prices = np.array([row[1:] for row in rows], float)
    returns = (prices[1:] / prices[:-1] - 1)[-(DATES * DAYS + WINDOW) :]
else:
    print(f"PAIRSTEP_DATA is not set or has no finance/{path.name}: using synthetic data")
    rng, n, days = np.random.default_rng(7), 20, DATES * DAYS + WINDOW
    market = 0.0004 + 0.01 * rng.standard_normal(days)
    exposure, volatility = rng.uniform(0.5, 1.5, n), rng.uniform(0.01, 0.025, n)
    returns = np.outer(market, exposure) + volatility * rng.standard_normal((days, n))

# %%
# Rebalance
# ---------
#
# After each trade the weights change with the returns, until the next date. ``x0`` starts a solve
# from the current weights, and ``turnover`` is the cap.

POLICIES = {
    "minimum variance": lambda held: {},
    "with costs": lambda held: {"l1": COST, "center": held},
    "with costs and cap": lambda held: {"l1": COST, "center": held, "turnover": (held, CAP)},
}


def backtest(policy):
    """Return the value after each day, the turnover of each date, and the seconds per solve."""
    held = np.full(returns.shape[1], 1 / returns.shape[1])
    values, turnover, seconds, value = [], [], 0.0, 1.0
    for date in range(DATES):
        day = WINDOW + date * DAYS
        covariance = DAYS * np.cov(returns[day - WINDOW : day].T)
        start = time.perf_counter()
        result = pairstep.solve_qp(AVERSION * covariance, x0=held, **policy(held))
        seconds += time.perf_counter() - start
        assert result.success, result.message
        turnover.append(np.abs(result.x - held).sum())
        amounts = result.x * np.cumprod(1 + returns[day : day + DAYS], axis=0)
        value *= 1 - COST * turnover[-1]
        values.append(value * amounts.sum(axis=1))
        value, held = values[-1][-1], amounts[-1] / amounts[-1].sum()
        held[held < 1e-12] = 0.0  # rounding errors are no holdings
    return np.concatenate(values), np.array(turnover), seconds / DATES


results = {}
for name, policy in POLICIES.items():
    results[name] = values, turnover, seconds = backtest(policy)
    daily = np.diff(np.log(values))
    print(
        f"{name}: {DATES} rebalances, {1000 * seconds:.3f} ms per rebalance, "
        f"turnover {100 * turnover.mean():.3f}%, at most {100 * turnover.max():.6f}%, "
        f"deviation {100 * np.sqrt(252) * daily.std():.3f}% per year, final value {values[-1]:.3f}"
    )

# %%
# Plot the values and the turnover
# --------------------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for (name, (values, turnover, _)), style in zip(results.items(), ("-", "--", ":"), strict=True):
    years = np.arange(len(values)) / 252
    left.plot(years, values, style, linewidth=1.2, label=name)
    right.plot(years[::DAYS], 100 * np.cumsum(turnover), style, label=name)
left.set(title="Value of 1 invested, after costs")
right.set(title="Total purchases and sales, % of the portfolio")
for ax in (left, right):
    ax.set_xlabel("years")
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)

parser = argparse.ArgumentParser(description="Backtest three ways to rebalance.")
parser.add_argument("--out", default="rebalancing.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
