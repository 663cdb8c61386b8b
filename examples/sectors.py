"""Sectors under one budget
========================

What the limits of an investment policy cost, and which of them bind.

A policy says how much of the whole each sector may hold, beside the budget itself::

    minimise x'Cx / 2 - t mean'x,    x >= 0, sum(x) = 1, low <= sum of each sector <= high,

for every trade-off t. `pairstep.efficient_frontier` finds the portfolios for given returns, with
and without the policy; the multipliers of a solve, by label, say what a point more of a sector
would be worth. Data: weekly returns of 20 stocks of the S&P 500, 1990 to 2022, as in skfolio.
"""

from __future__ import annotations

import csv
import gzip
import math
import time
from pathlib import Path

import numpy as np
from _data import Array, find, made_up_market
from _picture import BLACK, BLUE, GREEN, GREY, OCHRE, PURPLE, RED, label, panels, run, save

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
POLICY = {
    "technology": (0.10, 0.25),
    "health": (0.10, 0.30),
    "staples": (0.0, 0.25),
    "retail": (0.0, 0.15),
    "energy": (0.10, 0.20),
    "banks": (0.05, 0.20),
}
COLOURS = BLUE, GREEN, OCHRE, PURPLE, RED, GREY, BLACK
WEEKS = 52
POINTS = 60


def market() -> tuple[list[str], Array, bool]:
    """Give the sector of each stock, weekly returns, and whether these are made up."""
    sector_of = {stock: sector for sector, stocks in SECTORS.items() for stock in stocks}
    path = find("finance/skfolio_sp500_dataset.csv.gz")
    if path is None:
        returns, _ = made_up_market(np.random.default_rng(5), len(sector_of), 600, premium=0.06)
        return list(sector_of.values()), returns, True
    with gzip.open(path, "rt") as file:
        (_, *stocks), *rows = csv.reader(file)
    prices = np.array([row[1:] for row in rows], float)[::5]
    return [sector_of[stock] for stock in stocks], prices[1:] / prices[:-1] - 1, False


def main(out: Path) -> None:
    """Follow both frontiers, print what binds, draw."""
    sectors, returns, made_up = market()
    mean, covariance = WEEKS * returns.mean(axis=0), WEEKS * np.cov(returns.T)
    policy = pairstep.SumBox(1.0, groups=sectors, group_total=POLICY)
    figure, (left, right) = panels(1, 2, (12.0, 5.2))
    free = pairstep.efficient_frontier(covariance, mean, n_points=POINTS)
    began = time.perf_counter()
    held = pairstep.efficient_frontier(covariance, mean, policy, n_points=POINTS)
    seconds = time.perf_counter() - began
    print(f"{POINTS} portfolios of {len(mean)} stocks in {seconds:.3f} seconds")

    members = {name: np.array([sector == name for sector in sectors]) for name in SECTORS}
    off = max(abs(math.fsum(x) - 1) for x in held.x)
    beyond = max(
        max(low - math.fsum(x[members[name]]), math.fsum(x[members[name]]) - high)
        for x in held.x
        for name, (low, high) in POLICY.items()
    )
    print(f"largest |sum - 1| {off:.1e}")
    print(f"largest step beyond a limit {max(beyond, 0.0):.1e}")
    middle = POINTS // 2
    same_risk = pairstep.efficient_frontier(covariance, mean, target_risk=held.risk[middle])
    lost = 100 * (same_risk.expected_return[0] - held.expected_return[middle])
    print(f"at risk {100 * held.risk[middle]:.2f}% the policy costs {lost:.3f}% of return")
    chosen = pairstep.minimize(
        pairstep.Quadratic(covariance, -held.tradeoff[middle] * mean),
        policy,
        x0=held.x[middle],
    )
    assert chosen.group_multiplier is not None
    for name, multiplier in sorted(chosen.group_multiplier.items(), key=lambda item: item[1]):
        share = 100 * math.fsum(chosen.x[members[name]])
        worth = 0.0 - multiplier / held.tradeoff[middle]
        print(f"{name}: share {share:.4f}% a point more is worth {worth:+.4f} points of return")

    for frontier, colour, name in ((free, BLUE, "budget only"), (held, RED, "with the policy")):
        risk, earned = 100 * frontier.risk, 100 * frontier.expected_return
        left.plot(risk, earned, color=colour)
        label(left, risk[-1] + 0.8, earned[-1] - 0.5, name, colour, va="top")
    single = 100 * np.sqrt(np.diag(covariance))
    inside = single < 1.25 * 100 * free.risk[-1]
    left.scatter(single[inside], 100 * mean[inside], s=16, color=GREY, zorder=1)
    left.set(title="What the policy costs", xlabel="risk (standard deviation in a year), %",
             ylabel="expected return in a year, %")  # fmt: skip
    left.margins(x=0.12)
    left.grid()
    shares = np.array([100 * held.x[:, members[name]].sum(axis=1) for name in SECTORS])
    right.stackplot(100 * held.expected_return, shares, colors=COLOURS, alpha=0.85, linewidth=0)
    tops = np.cumsum(shares[:, middle])
    for name, top, share in zip(SECTORS, tops, shares[:, middle], strict=True):
        if share > 4:
            at = 100 * held.expected_return[middle]
            label(right, at, top - share / 2, name, "white", ha="center")
    right.set(title="Who holds what under the policy", xlabel="expected return in a year, %",
              ylabel="share of the whole, %", ylim=(0, 100),
              xlim=(100 * held.expected_return[0], 100 * held.expected_return[-1]))  # fmt: skip
    save(figure, out, made_up)


if __name__ == "__main__":
    run(main, __doc__)
