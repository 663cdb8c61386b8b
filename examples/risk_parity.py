"""Risk parity
===========

A portfolio whose assets contribute equally to its risk.

The contribution of asset i to the variance of a portfolio is x_i (Qx)_i. The minimum of
x'Qx / 2 - sum_i log(x_i), without a sum to keep, makes all of them 1; divided by its sum it is the
portfolio of risk parity. It lies between equal holdings and the portfolio of least variance, which
puts most of the risk into a few assets. Data: daily prices of 20 stocks.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from _data import Array, daily_stocks
from _picture import BLUE, GREEN, GREY, panels, run, save

import pairstep

DAYS_IN_A_YEAR = 252


def risk_parity(covariance: Array) -> Array:
    """Find the portfolio of risk parity."""
    n = len(covariance)
    result = pairstep.minimize(
        pairstep.RiskParity(covariance), pairstep.SumBox(total=(0.0, math.inf)),
        x0=1 / np.sqrt(n * np.diag(covariance)), tol=1e-10,
    )  # fmt: skip
    assert result.success, result.message
    return result.x / result.x.sum()


def main(out: Path) -> None:
    """Compare three portfolios: what they hold, and where their risk comes from."""
    names, returns, made_up = daily_stocks()
    covariance = np.cov(returns.T)
    n = len(names)
    portfolios = {
        "equal holdings": (np.full(n, 1 / n), GREY),
        "risk parity": (risk_parity(covariance), BLUE),
        "least variance": (pairstep.solve_qp(covariance).x, GREEN),
    }
    figure, axes = panels(1, 2, (11.5, 6.0), sharey=True)
    order = np.argsort(-portfolios["risk parity"][0])
    for k, (name, (x, colour)) in enumerate(portfolios.items()):
        risk = x * (covariance @ x)
        deviation = math.sqrt(DAYS_IN_A_YEAR * risk.sum())
        share = 100 * risk / risk.sum()
        print(f"{name}: deviation {100 * deviation:.3f}% a year")
        print(f"{name}: contributions from {share.min():.6f}% to {share.max():.6f}%")
        places = np.arange(n) + 0.27 * (k - 1)
        for axis, values in zip(axes, (100 * x, share), strict=True):
            axis.barh(places, values[order], 0.25, color=colour, label=name)
    axes[0].set_yticks(np.arange(n), [names[i] for i in order])
    axes[0].invert_yaxis()
    axes[0].set(title="Holdings, %")
    axes[1].set(title="Contributions to the risk, %")
    axes[1].legend(frameon=False, loc="lower right")
    save(figure, out, made_up)


if __name__ == "__main__":
    run(main, __doc__)
