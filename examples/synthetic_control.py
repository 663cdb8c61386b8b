"""Synthetic control
=================

What Proposition 99 did to smoking in California.

In 1989 California raised its tax on cigarettes. Synthetic California is the mixture of other states
(weights that are not negative and add up to one) nearest to California's sales before. What
California sold less than it afterwards is the estimated effect. The placebo test gives each other
state the same treatment on paper: an effect is credible if theirs are small beside California's.

Abadie, Diamond and Hainmueller (2010), here with the outcomes alone and no covariates.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
from _data import Array, find
from _picture import BLUE, GREY, PALE, RED, label, panels, run, save

import pairstep

TREATED, FIRST_YEAR = "California", 1989


def smoking() -> tuple[list[str], Array, Array, bool]:
    """Give the states, the years, sales (years x states), and whether they are made up."""
    path = find("synthetic_control/california_prop99.csv")
    if path is not None:
        with path.open() as text:
            rows = list(csv.DictReader(text, delimiter=";"))
        states, years = (sorted({row[key] for row in rows}) for key in ("State", "Year"))
        sales = np.empty((len(years), len(states)))
        for row in rows:
            at = years.index(row["Year"]), states.index(row["State"])
            sales[at] = float(row["PacksPerCapita"])
        return states, np.array(years, float), sales, False
    rng = np.random.default_rng(1)
    states, years = [f"state {k}" for k in range(30)], np.arange(1970.0, 2001.0)
    trends = np.cumsum(rng.standard_normal((len(years), 4)), axis=0) * 2.5
    trends -= np.linspace(0, 40, len(years))[:, None] * rng.uniform(0.3, 1.2, 4)
    sales = 120 + trends @ rng.dirichlet(np.ones(4), 30).T + rng.uniform(-20, 20, 30)
    effect = np.maximum(years - FIRST_YEAR + 1, 0.0) * 2.0
    treated = sales @ rng.dirichlet(np.full(30, 0.1)) - effect
    sales = np.column_stack([sales, treated]) + 0.8 * rng.standard_normal((len(years), 31))
    return [*states, TREATED], years, sales, True


def synthetic(sales: Array, before: Array, unit: int, donors: Array) -> tuple[Array, Array]:
    """Give the donors' weights and the outcomes of the synthetic unit in all years."""
    result = pairstep.simplex_lstsq(sales[before][:, donors], sales[before, unit])
    assert result.status == pairstep.Status.OPTIMAL, result.message
    return result.x, sales[:, donors] @ result.x


def main(out: Path) -> None:
    """Estimate the effect, run the placebos, draw both."""
    states, years, sales, made_up = smoking()
    before, unit = years < FIRST_YEAR, states.index(TREATED)
    others = np.delete(np.arange(len(states)), unit)
    weights, twin = synthetic(sales, before, unit, others)
    gaps = np.empty_like(sales)
    gaps[:, unit] = sales[:, unit] - twin
    for k in others:
        gaps[:, k] = sales[:, k] - synthetic(sales, before, k, others[others != k])[1]

    error_before = np.sqrt((gaps[before] ** 2).mean(axis=0))
    ratio = np.sqrt((gaps[~before] ** 2).mean(axis=0)) / error_before
    rank = int((ratio >= ratio[unit]).sum())
    chosen = np.argsort(-weights)
    recipe = [(states[others[k]], weights[k]) for k in chosen if weights[k] > 0]
    print("synthetic California:", ", ".join(f"{name} {100 * w:.1f}%" for name, w in recipe))
    print(f"sum of the weights: {math.fsum(weights)!r}")
    print(f"error before {FIRST_YEAR} (RMSE): {error_before[unit]:.2f} packs")
    effect = gaps[~before, unit].mean()
    print(f"mean effect from {FIRST_YEAR}: {effect:.1f} packs per head and year")
    ahead = ", ".join(states[k] for k in np.argsort(-ratio)[: rank - 1])
    print(
        f"rank of the error's growth after {FIRST_YEAR}: {rank} of {len(states)} states"
        + (f" (behind {ahead})" if ahead else "")
    )

    figure, (left, right) = panels(1, 2, (11.5, 4.8))
    left.plot(years, sales[:, unit], color=RED)
    left.plot(years, twin, color=BLUE, linestyle=(0, (4, 1.5)))
    left.fill_between(
        years[~before], sales[~before, unit], twin[~before], color=RED, alpha=0.12, linewidth=0
    )
    at = int(np.flatnonzero(years == 1994)[0])
    label(left, 1995, sales[at, unit] - 13, TREATED, RED, ha="right")
    label(left, 2000, twin[at - 5] + 7, "synthetic California", BLUE, ha="right")
    left.set(title="Sales of cigarettes", ylabel="packs per head and year", ylim=(0, None))

    fits = error_before <= 5 * error_before[unit]  # the usual rule: drop hopeless placebos
    right.plot(years, gaps[:, fits & (np.arange(len(states)) != unit)], color=PALE, linewidth=1.1)
    right.plot(years, gaps[:, unit], color=RED, linewidth=2.8)
    right.axhline(0, color=BLUE, linestyle=(0, (4, 1.5)), linewidth=1.2)
    label(right, 1988, gaps[at, unit], TREATED, RED, ha="right")
    right.plot([1988.2, years[at] - 0.3], [gaps[at, unit]] * 2, color=RED, linewidth=0.8)
    top = np.abs(gaps[:, fits]).max() * 1.05
    label(right, 1971, 0.88 * top, f"{fits.sum() - 1} of {len(others)} other states", GREY)
    note = f"error before {FIRST_YEAR} at most\n5 times California's"
    label(right, 1971, 0.69 * top, note, GREY, fontweight="normal", fontsize=10)
    right.set(title="Gap to the synthetic state", ylabel="packs per head and year")
    right.set_ylim(-top, top)
    for ax in (left, right):
        ax.axvline(FIRST_YEAR - 0.5, color=GREY, linewidth=1, linestyle=":")
        ax.set_xlim(years[0], years[-1])
        ax.grid(axis="y")
    height = 0.06 * left.get_ylim()[1]
    label(left, 1988, height, "Proposition 99 →", GREY, ha="right", fontweight="normal")
    save(figure, out, made_up)


if __name__ == "__main__":
    run(main, __doc__)
