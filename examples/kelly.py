"""Kelly criterion
===============

Find the portfolio with the largest growth rate.

Let the rows of R be the returns of m days. A portfolio x that is rebalanced daily grows at the rate
``mean(log(1 + Rx))``. Its maximum over ``x >= 0, sum(x) = 1`` is the Kelly portfolio. Computed in
hindsight, it is an upper bound for every strategy with constant weights.
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
    drift = 0.03 * volatility * rng.standard_normal(n)
    noise = volatility * rng.standard_normal((days, n))
    returns = 0.3 * (drift + np.outer(market, exposure) + noise)
    names = [f"stock {k}" for k in range(n)]

# %%
# Solve for several upper bounds
# ------------------------------
#
# An upper bound on each weight diversifies the portfolio and reduces its growth.


def growth_per_year(x):
    """Return the growth per year in percent."""
    return 100 * math.expm1(DAYS_PER_YEAR * np.log1p(returns @ x).mean())


portfolios = {}
for bound in (1.0, 0.3, 0.1):
    start = time.perf_counter()
    result = pairstep.minimize(
        pairstep.LogGrowth(returns), pairstep.SumBox(total=1.0, upper=bound), tol=1e-10
    )
    milliseconds = 1e3 * (time.perf_counter() - start)
    assert result.success, result.message
    portfolios[f"at most {bound:.0%} each"] = x = result.x
    print(f"bound {bound:g}: growth {growth_per_year(x):.3f}% per year, in {milliseconds:.1f} ms")
    print(f"bound {bound:g}: largest holding {x.max():.6f}, sum {math.fsum(x)}")
portfolios["equal weights"] = equal = np.full(len(names), 1 / len(names))
print(f"equal weights: growth {growth_per_year(equal):.3f}% per year")

# %%
# Plot wealth and weights
# -----------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
years = np.arange(len(returns)) / DAYS_PER_YEAR
largest = np.argsort(-sum(portfolios.values()))[:10]
places = np.arange(len(largest))
for k, (name, x) in enumerate(portfolios.items()):
    label = f"{name}: {growth_per_year(x):.1f}% per year"
    left.semilogy(years, np.cumprod(1 + returns @ x), label=label)
    right.barh(places + 0.2 * (k - 1.5), 100 * x[largest], 0.18, label=name)
left.set(title="Wealth relative to the start", xlabel="years")
left.legend(frameon=False)
left.grid(alpha=0.3)
right.set_yticks(places, [names[i] for i in largest])
right.invert_yaxis()
right.set(title="Portfolio weights", xlabel="%")
right.legend(frameon=False, loc="lower right")

parser = argparse.ArgumentParser(description="Draw Kelly portfolios.")
parser.add_argument("--out", default="kelly.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
