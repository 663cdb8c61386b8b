"""Risk parity
===========

Find the portfolio in which every asset contributes equally to the risk, with and without limits.

Asset i contributes ``x_i (Qx)_i`` to the variance of a portfolio. At the minimum of ``x'Qx / 2 -
sum_i log(x_i)``, without a constraint on the sum, all contributions are 1. Dividing by the sum
gives the risk-parity portfolio. It lies between equal weights and the minimum-variance portfolio,
which concentrates the risk in a few assets.

Limits on the portfolio are linear constraints, given as ``rows``. Because the sum is free, a limit
``a'x <= b`` on the portfolio is the row ``(a - b)'x <= 0``.
"""

import argparse
import csv
import gzip
import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairstep

DAYS_PER_YEAR = 252

# %%
# Load the data
# -------------
#
# The data are daily prices of 20 stocks of the S&P 500, as in skfolio.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "finance", "skfolio_sp500_dataset.csv.gz")
if path.is_file():
    with gzip.open(path, "rt") as file:
        (_, *names), *rows = csv.reader(file)
    prices = np.array([row[1:] for row in rows], float)
    returns = prices[1:] / prices[:-1] - 1
else:
    print(f"PAIRSTEP_DATA is not set or has no finance/{path.name}: using synthetic data")
    rng, n, days = np.random.default_rng(4), 20, 2500
    market = 0.001 + 0.02 * rng.standard_normal(days)
    exposure, volatility = rng.uniform(0.5, 1.5, n), rng.uniform(0.02, 0.05, n)
    noise = volatility * rng.standard_normal((days, n))
    returns = 0.3 * (np.outer(market, exposure) + noise)
    names = [f"stock {k}" for k in range(n)]
covariance = np.cov(returns.T)
n = len(names)

# %%
# Compute four portfolios
# -----------------------
#
# ``SumBox(total=(0.0, inf))`` leaves the sum free. The limits are on the beta, with respect to the
# portfolio of equal weights, and on the total weight of the five stocks with the largest variance.
# The start has positive weights and satisfies the limits.

MAX_BETA, MAX_VOLATILE = 0.85, 0.1
equal = np.full(n, 1 / n)
beta = covariance @ equal / (equal @ covariance @ equal)
volatile = np.diag(covariance) >= np.sort(np.diag(covariance))[-5]
limits = {"rows": [beta - MAX_BETA, volatile - MAX_VOLATILE], "rows_upper": 0.0}


def risk_parity(**rows):
    """Return the risk-parity portfolio under linear constraints, and the result of the solve."""
    result = pairstep.minimize(
        pairstep.RiskParity(covariance),
        pairstep.SumBox(total=(0.0, math.inf), **rows),
        x0=pairstep.solve_qp(covariance, lower=0.2 / n, **rows).x,
        tol=1e-10,
    )
    assert result.success, result.message
    return result.x / result.x.sum(), result


limited, result = risk_parity(**limits)
portfolios = {
    "equal weights": equal,
    "risk parity": risk_parity()[0],
    "risk parity with limits": limited,
    "minimum variance": pairstep.solve_qp(covariance).x,
}
contributions = {}
for name, x in portfolios.items():
    risk = x * (covariance @ x)
    contributions[name] = share = 100 * risk / risk.sum()
    print(f"{name}: deviation {100 * math.sqrt(DAYS_PER_YEAR * risk.sum()):.3f}% per year")
    print(f"{name}: contributions from {share.min():.6f}% to {share.max():.6f}%")
    print(f"{name}: beta {beta @ x:.6f}, volatile stocks {x @ volatile:.6f}")
print("multipliers of the limits:", *(f"{value:.4f}" for value in result.row_multipliers.values()))

# %%
# Plot weights and risk contributions
# -----------------------------------

figure, axes = plt.subplots(1, 2, figsize=(11, 6), sharey=True, layout="constrained")
order = np.argsort(-portfolios["risk parity"])
for k, (name, x) in enumerate(portfolios.items()):
    places = np.arange(n) + 0.21 * (k - 1.5)
    axes[0].barh(places, 100 * x[order], 0.2, label=name)
    axes[1].barh(places, contributions[name][order], 0.2, label=name)
axes[0].set_yticks(np.arange(n), [names[i] for i in order])
axes[0].invert_yaxis()
axes[0].set(title="Portfolio weights", xlabel="%")
axes[1].set(title="Risk contributions", xlabel="% of the variance")
axes[1].legend(frameon=False, loc="lower right")

parser = argparse.ArgumentParser(description="Draw risk-parity portfolios.")
parser.add_argument("--out", default="risk_parity.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
