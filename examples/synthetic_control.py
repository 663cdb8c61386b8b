"""Synthetic control
=================

Estimate the effect of Proposition 99 on smoking in California.

In 1989 California raised its tax on cigarettes. Synthetic California is a weighted average of
other states, with weights that are nonnegative and sum to one. The weights are chosen to match
California's sales before 1989. The difference between California and synthetic California after
1989 estimates the effect. The method is that of Abadie, Diamond and Hainmueller (2010), with
outcomes only and without covariates.
"""

import argparse
import csv
import math
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairstep

TREATED, FIRST_YEAR = "California", 1989

# %%
# Load the data
# -------------
#
# The data are cigarette sales in packs per capita, by state and year.

path = Path(os.environ.get("PAIRSTEP_DATA", ""), "synthetic_control", "california_prop99.csv")
if path.is_file():
    with path.open() as text:
        records = list(csv.DictReader(text, delimiter=";"))
    states, year_names = (sorted({row[key] for row in records}) for key in ("State", "Year"))
    sales = np.empty((len(year_names), len(states)))
    for row in records:
        at = year_names.index(row["Year"]), states.index(row["State"])
        sales[at] = float(row["PacksPerCapita"])
    years = np.array(year_names, float)
else:
    print(
        f"PAIRSTEP_DATA is not set or has no {path.parent.name}/{path.name}: using synthetic data"
    )
    rng = np.random.default_rng(1)
    states, years = [f"state {k}" for k in range(30)] + [TREATED], np.arange(1970.0, 2001.0)
    trends = np.cumsum(rng.standard_normal((len(years), 4)), axis=0) * 2.5
    trends -= np.linspace(0, 40, len(years))[:, None] * rng.uniform(0.3, 1.2, 4)
    sales = 120 + trends @ rng.dirichlet(np.ones(4), 30).T + rng.uniform(-20, 20, 30)
    effect = np.maximum(years - FIRST_YEAR + 1, 0.0) * 2.0
    treated = sales @ rng.dirichlet(np.full(30, 0.1)) - effect
    sales = np.column_stack([sales, treated]) + 0.8 * rng.standard_normal((len(years), 31))

# %%
# Fit synthetic California
# ------------------------
#
# This is least squares on the simplex, over the years before the treatment.

before, unit = years < FIRST_YEAR, states.index(TREATED)
others = np.delete(np.arange(len(states)), unit)


def synthetic(unit, donors):
    """Return the weights of the donors, and the outcomes of the synthetic unit in all years."""
    result = pairstep.simplex_lstsq(sales[before][:, donors], sales[before, unit])
    assert result.success, result.message
    return result.x, sales[:, donors] @ result.x


weights, twin = synthetic(unit, others)
largest = [(states[others[k]], weights[k]) for k in np.argsort(-weights) if weights[k] > 0]
print("synthetic California:", ", ".join(f"{name} {100 * w:.1f}%" for name, w in largest))
print(f"sum of the weights: {math.fsum(weights)!r}")

# %%
# Placebo test
# ------------
#
# Repeat the analysis for every other state, as if that state had been treated. The effect in
# California is credible if the placebo effects are small in comparison.

gaps = np.empty_like(sales)
gaps[:, unit] = sales[:, unit] - twin
for k in others:
    gaps[:, k] = sales[:, k] - synthetic(k, others[others != k])[1]
error_before = np.sqrt((gaps[before] ** 2).mean(axis=0))
ratio = np.sqrt((gaps[~before] ** 2).mean(axis=0)) / error_before
rank = int((ratio >= ratio[unit]).sum())
print(f"error before {FIRST_YEAR} (RMSE): {error_before[unit]:.2f} packs")
print(f"mean effect from {FIRST_YEAR}: {gaps[~before, unit].mean():.1f} packs per capita and year")
print(f"rank of the ratio of RMSE after and before {FIRST_YEAR}: {rank} of {len(states)} states")

# %%
# Plot the estimate and the placebos
# ----------------------------------
#
# As usual, placebos with a bad fit before 1989 are not shown.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
left.plot(years, sales[:, unit], "C3", label=TREATED)
left.plot(years, twin, "C0--", label="synthetic California")
left.set(title="Cigarette sales", ylabel="packs per capita and year", ylim=(0, None))
fits = error_before <= 5 * error_before[unit]
fits[unit] = False
lines = right.plot(years, gaps[:, fits], color="0.8", linewidth=1)
if lines:
    lines[0].set_label(f"{fits.sum()} of {len(others)} other states")
right.plot(years, gaps[:, unit], "C3", linewidth=2.5, label=TREATED)
right.axhline(0, color="C0", linestyle="--", linewidth=1)
right.set(title="Difference to the synthetic state", ylabel="packs per capita and year")
for ax in (left, right):
    ax.axvline(FIRST_YEAR - 0.5, color="0.5", linestyle=":", label="Proposition 99")
    ax.set_xlim(years[0], years[-1])
    ax.legend(frameon=False, loc="lower left")
    ax.grid(axis="y", alpha=0.3)

parser = argparse.ArgumentParser(description="Estimate the effect of Proposition 99.")
parser.add_argument("--out", default="synthetic_control.png", help="figure to write")
figure.savefig(parser.parse_known_args()[0].out, dpi=150)  # notebooks have other arguments
