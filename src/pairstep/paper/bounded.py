"""gs-s, gs-q and gs-1 with bounds: shared by Figure 2, Figures 4 to 6 and the simplex."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import LeastSquares, SumBox
from .claims import (
    TO_LOWEST,
    Claim,
    Cut,
    last_iteration,
    speed,
)
from .experiment import Experiment, Panel, Scale
from .parts import Measured, Part, Results, part
from .problems import Array, box_optimum, least_squares
from .races import Race, identified_at
from .style import COLORS, curve, label_ends
from .tables import Table, by_iteration, distinct, first, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RULES = "gs-s", "gs-q", "gs-1"
BOX, SIMPLEX = "box", "simplex"
LOWEST_DRAWN = 1e-6  # suboptimality, relative to the start


@lru_cache(maxsize=1)
def problem(seed: int, n: int, bounds: str) -> tuple[LeastSquares, SumBox, Array, float]:
    """Return a problem, its optimal point and its optimum; cached for the next rule."""
    A, b = box_problem(seed, n) if bounds == BOX else simplex_problem(seed, n)
    limits = (0.0, -1.0, 1.0) if bounds == BOX else (1.0, 0.0, math.inf)
    best, value = box_optimum(A.T @ A, -A.T @ b, *limits)
    return LeastSquares(A, b), SumBox(*limits), best, value + 0.5 * float(b @ b)


def measure(seed: int, n: int, bounds: str, rule: str) -> Measured:
    """Run one rule to convergence with the step 1/L2 of the theorems, and record its active set."""
    objective, constraint, best, optimum = problem(seed, n, bounds)
    race = Race(objective, constraint, rule, "1/L2", max_iter=500 * n, tol=1e-9)
    measured = race.run(optimum)
    measured["not_final"] = race.not_final(best)
    del measured["x"]
    return measured


def box_problem(seed: int, n: int) -> tuple[Array, Array]:
    """Draw the problem of Figure 1, without scaling."""
    return least_squares(seed, n)


def simplex_problem(seed: int, n: int) -> tuple[Array, Array]:
    """Draw the same A, with an x that is uniform on the probability simplex."""
    A, _ = least_squares(seed, n)
    rng = np.random.default_rng([seed, 1])
    x = rng.exponential(size=n)
    return A, A @ (x / x.sum()) + rng.standard_normal(n)


def parts(scale: Scale, bounds: str) -> list[Part]:
    """Return one part for every rule and problem."""
    return [part_of(scale, bounds, seed, rule) for seed in scale.seeds for rule in RULES]


def part_of(scale: Scale, bounds: str, seed: int, rule: str) -> Part:
    """Return the part of one rule on one problem."""
    return part(measure, seed=seed, n=scale.n, bounds=bounds, rule=rule)


def tables(
    results: Results, scale: Scale, bounds: str, name: str, columns: tuple[str, ...]
) -> dict[str, Table]:
    """Return some columns by iteration, with all iterations that did not update two variables."""
    drawn = [part_of(scale, bounds, seed, rule) for seed in scale.drawn for rule in RULES]
    return by_iteration(
        results, drawn, name, {"seed": "seed", "rule": "rule"}, columns,
        also=lambda measured: np.flatnonzero(measured["moved"] != 2),
    )  # fmt: skip


def draw_objective(ax: Axes, table: Table, seed: int) -> None:
    """Draw the suboptimality of all rules down to LOWEST_DRAWN."""
    rows = where(table, seed=seed)
    start = rows["suboptimality"].max()
    lowest = [
        of_rule["iteration"][of_rule["suboptimality"] > LOWEST_DRAWN * start].max()
        for of_rule in (where(rows, rule=rule) for rule in RULES)
    ]
    # If the rules are similarly fast, stop with the fastest one, so that the order of the curves
    # is visible; otherwise stop with the slowest.
    last = max(lowest) if max(lowest) > 2 * min(lowest) else min(lowest)
    ax.set(yscale="log", xlabel="iterations", ylabel="$f(x) - f^*$")
    ax.set(xlim=(0, last), ylim=(LOWEST_DRAWN * start, 2 * start))
    ends = []
    for rule in reversed(RULES):
        of_rule = where(rows, rule=rule)
        k, gap = of_rule["iteration"], np.maximum(of_rule["suboptimality"], LOWEST_DRAWN * start)
        x = np.append(k[k < last], last)
        y = np.exp(np.interp(x, k, np.log(gap)))
        shown = (
            np.flatnonzero(y > 1.001 * LOWEST_DRAWN * start)[-1] + 2
        )  # up to the first point at the bottom
        ends.append(curve(ax, x[:shown], y[:shown], rule))
    label_ends(ax, ends)


def draw_interior(ax: Axes, table: Table, seed: int) -> None:
    """Draw the number of variables strictly between their bounds."""
    rows = where(table, seed=seed)
    ax.set(xscale="log", xlabel="iterations", ylabel="interior variables")
    ends = []
    for rule in reversed(RULES):
        of_rule = where(rows, rule=rule)
        seen = of_rule["iteration"] > 0
        ends.append(curve(ax, of_rule["iteration"][seen], of_rule["interior"][seen], rule))
    ax.set_xlim(1, rows["iteration"].max())
    ax.set_ylim(0.8 * rows["interior"].min(), 1.02 * rows["interior"].max())
    label_ends(ax, ends)


def draw_moved(ax: Axes, table: Table, seed: int) -> None:
    """Draw how many variables gs-1 updates per iteration, and how often each number occurs."""
    rows = where(table, seed=seed, rule="gs-1")
    last = int(rows["iteration"].max())
    counts = np.bincount(rows["moved"][rows["iteration"] > 0], minlength=3)
    counts[2] = last - (counts.sum() - counts[2])  # the table keeps only some iterations with two
    ax.set(xscale="log", xlabel="iterations", ylabel="variables updated")
    seen = rows["iteration"] > 0
    ax.plot(
        rows["iteration"][seen], rows["moved"][seen], ".", color=COLORS["gs-1"],
        markersize=5, alpha=0.45, markeredgewidth=0, clip_on=False, zorder=3,
    )  # fmt: skip
    ax.set_xlim(1, last)
    if len(counts) > 12:
        ticks = [tick for tick in (2, 5, 10, 20, 50, 100, 200, 500) if tick < len(counts)]
        ax.set_yscale("log")
        ax.set_ylim(1.7, 1.1 * len(counts))
        labeled = [2]
    else:
        ticks = labeled = list(range(2, len(counts)))
        ax.set_ylim(1.5, len(counts) - 0.5)
    ax.set_yticks(ticks, [str(tick) for tick in ticks])
    for moved in labeled:
        ax.text(
            1.04, moved, occurrence(int(counts[moved]), last), transform=ax.get_yaxis_transform(),
            va="center", color=COLORS["gs-1"], fontsize=10.5,
        )  # fmt: skip


def occurrence(count: int, of: int) -> str:
    """Return a frequency as text: a percentage, or a count if that is small."""
    if count >= 0.001 * of:
        return f"{100 * count / of:.1f}%"
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


# The title and the drawing function of each column.
PANELS: dict[str, tuple[str, Callable[..., None]]] = {
    "suboptimality": ("Objective", draw_objective),
    "interior": ("Interior variables", draw_interior),
    "moved": ("Variables that gs-1 updates", draw_moved),
}


def first_seed(name: str, tables: dict[str, Table]) -> list[Panel]:
    """Return one panel per column, for the first seed."""
    table = tables[name]
    return [
        Panel(title, partial(draw, table=table, seed=first(table, "seed")))
        for title, draw in PANELS.values()
    ]


def seed_by_seed(name: str, column: str, tables: dict[str, Table]) -> list[Panel]:
    """Return one panel per seed, for one column."""
    _, draw = PANELS[column]
    return [
        Panel(f"Seed {seed}", partial(draw, table=tables[name], seed=seed))
        for seed in distinct(tables[name], "seed")
    ]


def three_panels(
    name: str,
    title: str,
    caption: str,
    bounds: str,
    claims: Callable[[Results, Scale], list[Claim]],
) -> Experiment:
    """Return an experiment that shows all columns for the first seed, side by side."""
    columns = ("suboptimality", "interior", "not_final", "moved")
    return Experiment(
        name, title, caption,
        partial(parts, bounds=bounds),
        partial(tables, bounds=bounds, name=name, columns=columns),
        claims,
        partial(first_seed, name),
        columns=3,
    )  # fmt: skip


Runs = dict[tuple[int, str], Measured]  # by seed and rule
PASSES = 20  # iterations per variable, of the last horizon in iterations
EARLY_PASSES = 5  # iterations per variable; later, the active sets hardly differ
ALL_FINAL = "to the final active set"


def load(results: Results, scale: Scale, bounds: str) -> Runs:
    """Read the measurements of all seeds and rules."""
    return {
        (seed, rule): results[part_of(scale, bounds, seed, rule)]
        for seed in scale.seeds
        for rule in RULES
    }


def horizons(scale: Scale) -> tuple[Cut, ...]:
    """Return the horizons in the box: 1000, 2000 and 20,000 iterations at n = 1000, and to 1e-9."""
    return scale.n, 2 * scale.n, PASSES * scale.n, TO_LOWEST


def early_horizons(scale: Scale) -> tuple[Cut, ...]:
    """Return horizons before all rules have the active set of the optimum, where they must tie."""
    return scale.n, 2 * scale.n, EARLY_PASSES * scale.n


def speeds(runs: Runs, scale: Scale, cut: Cut) -> dict[str, list[float]]:
    """Compare the other rules with gs-s, for each seed."""

    def curve_of(seed: int, rule: str) -> Array:
        return runs[seed, rule]["suboptimality"]

    return {
        rule: [speed(curve_of(seed, rule), curve_of(seed, "gs-s"), cut) for seed in scale.seeds]
        for rule in RULES
        if rule != "gs-s"
    }


def counts(runs: Runs, seed: int, column: str, cut: Cut) -> dict[str, float]:
    """Return a count of variables at a horizon, by rule and at least 1, so that ratios exist.

    All rules are compared at the same iteration. To 1e-9, it is that of the slowest rule. A run
    that has ended keeps its last count.
    """
    if cut == ALL_FINAL:
        return {r: float(max(identified_at(runs[seed, r]["not_final"]), 1)) for r in RULES}
    last = max(last_iteration(runs[seed, rule]["suboptimality"], cut) for rule in RULES)
    found = {rule: runs[seed, rule][column] for rule in RULES}
    return {rule: float(max(x[min(last, len(x) - 1)], 1)) for rule, x in found.items()}


def relative_counts(
    runs: Runs, scale: Scale, column: str, cut: Cut, of: str, over: Callable[..., float]
) -> list[float]:
    """Return, for each seed, the count of a rule over the most or least of the other rules."""
    found = [counts(runs, seed, column, cut) for seed in scale.seeds]
    return [each[of] / over(x for rule, x in each.items() if rule != of) for each in found]


def updated(runs: Runs, seed: int, cut: Cut) -> NDArray[np.int64]:
    """Return how many variables gs-1 updated in each iteration within a horizon."""
    run = runs[seed, "gs-1"]
    return run["moved"][1 : last_iteration(run["suboptimality"], cut) + 1]
