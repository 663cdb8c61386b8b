"""Index tracking with few stocks
==============================

Track a stock index with a small number of its stocks.

The portfolio has nonnegative weights that sum to one. It minimizes the squared difference to the
weekly returns of the index over the first half of the data. To reduce the number of stocks,
remove the smallest position and solve again, until one stock is left. For ten stocks, compare this
with the best choice, which branch and bound finds. The second half measures the tracking error out
of sample.
"""

import argparse
import gzip
import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairstep

INDICES = {"indtrack1": "Hang Seng", "indtrack2": "DAX 100", "indtrack3": "FTSE 100"}
FEW_STOCKS = 10  # size of the portfolio shown in the upper panels
MIN_HOLDING = 0.01
SECONDS = 2.0  # limit for branch and bound

# %%
# Load the data
# -------------
#
# The data are weekly prices of three indices and their stocks, from Beasley's OR-Library.


def load_returns(k, name):
    """Return weekly returns, with the index in the first column, and a title."""
    path = Path(os.environ.get("PAIRSTEP_DATA", ""), "finance", f"{name}.txt.gz")
    if path.is_file():
        data = np.array(gzip.decompress(path.read_bytes()).split(), float)
        prices = data[2:].reshape(int(data[0]) + 1, -1).T
        return prices[1:] / prices[:-1] - 1, INDICES[name]
    print(f"PAIRSTEP_DATA is not set or has no finance/{path.name}: using synthetic data")
    rng, n, weeks = np.random.default_rng(k), 40, 290
    market = 0.001 + 0.02 * rng.standard_normal(weeks)
    exposure, volatility = rng.uniform(0.5, 1.5, n), rng.uniform(0.02, 0.05, n)
    stocks = np.outer(market, exposure) + volatility * rng.standard_normal((weeks, n))
    index = stocks @ rng.dirichlet(np.ones(n)) + 0.0005 * rng.standard_normal(weeks)
    return np.column_stack([index, stocks]), f"synthetic index {k + 1}"


# %%
# Remove one stock at a time
# --------------------------
#
# An upper bound of 0 excludes a stock. Each solve starts from the previous solution.


def portfolios_of_decreasing_size(stocks, index):
    """Return a list of portfolios, each without the smallest position of the one before."""
    portfolios, upper, x0 = [], np.ones(stocks.shape[1]), None
    while True:
        result = pairstep.simplex_lstsq(stocks, index, upper=upper, x0=x0)
        assert result.success, result.message
        portfolios.append(result.x)
        held = np.flatnonzero(result.x)
        if len(held) == 1:
            return portfolios
        smallest, largest = held[np.argmin(result.x[held])], np.argmax(result.x)
        x0 = result.x.copy()
        x0[largest] += x0[smallest]
        x0[smallest] = 0.0
        upper = np.where(x0 > 0, 1.0, 0.0)


def tracking_error(stocks, index, x):
    """Return the root mean square of the weekly difference, in percent."""
    return 100 * np.sqrt(np.mean((stocks @ x - index) ** 2))


# %%
# Choose the best ten stocks
# --------------------------
#
# ``max_names`` limits the number of stocks, and ``min_holding`` excludes small positions. If the
# time is over, the result is the best portfolio so far. ``bound`` is then a lower bound of the
# objective, which gives a lower bound of the tracking error.


def best_portfolio(stocks, index):
    """Return the best portfolio found, and a lower bound of its tracking error, in percent."""
    result = pairstep.solve_qp(
        stocks.T @ stocks,
        -stocks.T @ index,
        max_names=FEW_STOCKS,
        min_holding=MIN_HOLDING,
        time_limit=SECONDS,
    )
    least = max(2 * result.bound + index @ index, 0.0)  # the squared error has a constant term
    return result.x, 100 * np.sqrt(least / len(index))


# %%
# Compare the errors in and out of sample
# ---------------------------------------

figure, axes = plt.subplots(2, 3, figsize=(11.5, 6.6), layout="constrained")
for k, name in enumerate(INDICES):
    returns, title = load_returns(k, name)
    index, stocks = returns[:, 0], returns[:, 1:]
    half = len(returns) // 2
    portfolios = portfolios_of_decreasing_size(stocks[:half], index[:half])
    counts = np.array([np.count_nonzero(x) for x in portfolios])
    inside = np.array([tracking_error(stocks[:half], index[:half], x) for x in portfolios])
    outside = np.array([tracking_error(stocks[half:], index[half:], x) for x in portfolios])
    few = int(np.flatnonzero(counts <= FEW_STOCKS)[0])
    for at in (0, few):
        print(
            f"{title}: {counts[at]} of {stocks.shape[1]} stocks, tracking error "
            f"{inside[at]:.3f}% per week in the first half, {outside[at]:.3f}% in the second"
        )
    print(f"{title}: weights sum to {math.fsum(portfolios[few])!r}")
    best, bound = best_portfolio(stocks[:half], index[:half])
    best_inside = tracking_error(stocks[:half], index[:half], best)
    best_outside = tracking_error(stocks[half:], index[half:], best)
    print(
        f"{title}: branch and bound: {np.count_nonzero(best)} stocks, error {best_inside:.3f}% in "
        f"the first half, at least {bound:.3f}%; {best_outside:.3f}% in the second"
    )

    top, bottom = axes[:, k]
    top.plot(np.cumprod(1 + index), linewidth=3, alpha=0.5, label="index")
    top.plot(
        np.cumprod(1 + stocks @ portfolios[few]), "C3", linewidth=1, label=f"{counts[few]} stocks"
    )
    top.axvspan(half, len(returns), color="0.95", label="out of sample")
    top.set(title=title, xlabel="week", xlim=(0, len(returns)))
    bottom.semilogx(counts, inside, label="in sample")
    bottom.semilogx(counts, outside, "C3", label="out of sample")
    bottom.plot(FEW_STOCKS, best_inside, "C0*", markersize=9, label="branch and bound")
    bottom.plot(FEW_STOCKS, best_outside, "C3*", markersize=9)
    bottom.set(xlabel="number of stocks", xlim=(1, counts[0] * 1.05))
    ticks = [t for t in (1, 2, 5, 10, 20, 50) if t <= counts[0]]
    bottom.set_xticks(ticks, ticks)
    bottom.minorticks_off()
    bottom.grid(axis="y", alpha=0.3)
axes[0, 0].set_ylabel("value of 1 invested")
axes[1, 0].set_ylabel("tracking error, % per week")
highest = max(ax.get_ylim()[1] for ax in axes[1])
for ax in axes[1]:
    ax.set_ylim(0, highest)
for ax in axes[:, 0]:
    ax.legend(frameon=False)

parser = argparse.ArgumentParser(description="Track indices with few stocks.")
parser.add_argument("--out", default="index_tracking.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
