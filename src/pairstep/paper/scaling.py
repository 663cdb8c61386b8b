"""Beyond the paper: how the time of one choice grows with n, by a rule and over all pairs."""

from __future__ import annotations

import math
import timeit
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import TYPE_CHECKING

import numpy as np

from .claims import Claim, checked, spread
from .drawing import BLACK, curves
from .experiment import Array, Experiment, Measured, Part, Results, Scale, part
from .rules import propose

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Rules for which the paper only gives an O(n^2) search, and all rules that are timed; the flag says
# whether the variables have bounds.
EXACT = ["gs-q", "gs-q-lipschitz", "gs-1-lipschitz"]
RULES = {"gs-s": True, "gs-1": True, "gs-q": True, "gs-q-lipschitz": False, "gs-1-lipschitz": False}
# Largest n for which the search over all pairs is timed: its time grows as n^2.
MAX_BRUTE_FORCE = 10_000
ROWS_PER_BLOCK = 256  # rows of the matrix of all pairs that are in memory at a time
# Exponents of the growth of time with n below this count as linear. A larger limit would accept
# rules that are slower than linear; a smaller one would reject linear rules by noise in the times.
MAX_LINEAR_EXPONENT = 1.3


def measure(seed: int, n: int, rule: str) -> Measured:
    """Time one choice of a rule in CPU seconds, and the same by brute force where feasible."""
    rng = np.random.default_rng([seed, n])
    g = rng.standard_normal(n)
    bound = 1.0 if RULES[rule] else math.inf
    x = np.clip(1.5 * rng.uniform(-1, 1, n), -1, 1)  # a third of them at a bound
    constants = rng.standard_normal(n) ** 2 + 1e-3
    lipschitz = constants if rule.endswith("lipschitz") else None
    choose = partial(propose, rule, g, x, -bound, bound, alpha=1.0, lipschitz=lipschitz)
    search = partial(brute_force, rule, g, x, constants)
    feasible = rule in EXACT and n <= MAX_BRUTE_FORCE
    return {
        "seconds": np.array(min(timeit.repeat(choose, timer=process_time, number=1, repeat=5))),
        "decrease": np.array(choose().decrease),
        "brute_seconds": np.array(
            timeit.timeit(search, timer=process_time, number=1) if feasible else math.nan
        ),
        "brute_decrease": np.array(search() if feasible else math.nan),
    }


def brute_force(rule: str, g: Array, x: Array, constants: Array) -> float:
    """Return the largest decrease over all pairs."""
    best, root = 0.0, np.sqrt(constants)
    for begin in range(0, len(g), ROWS_PER_BLOCK):
        rows = slice(begin, begin + ROWS_PER_BLOCK)
        gap = np.maximum(g[rows, None] - g, 0.0)
        if rule == "gs-q":
            amount = np.minimum(gap / 2, np.minimum(x[rows, None] + 1, 1 - x))
            decrease = amount * (gap - amount)
        elif rule == "gs-q-lipschitz":
            decrease = gap**2 / (2 * (constants[rows, None] + constants))
        else:
            decrease = gap**2 / (2 * (root[rows, None] + root) ** 2)
        best = max(best, float(decrease.max()))
    return best


def parts(scale: Scale) -> list[Part]:
    """Return one part for every rule and size; they run one at a time."""
    return [
        part(measure, alone=True, seed=0, n=n, rule=rule) for n in scale.sizes for rule in RULES
    ]


def panels(table: pd.DataFrame) -> dict[str, Callable[[Axes], None]]:
    """Return one panel."""
    return {"Time of one choice": partial(draw, table=table)}


def draw(ax: Axes, table: pd.DataFrame) -> None:
    """Draw seconds over n, and those of the brute-force search, extrapolated as n^2."""
    tried = table[(table.rule == "gs-q") & table.brute_seconds.notna()]
    n = np.append(tried.n, table.n.max())
    seconds = np.append(tried.brute_seconds, extrapolated(table))
    ax.plot(n, seconds, color=BLACK, linestyle=":", label="all pairs")
    curves(ax, table, "n", "seconds", xscale="log", yscale="log", xlabel="variables n")


def extrapolated(table: pd.DataFrame) -> float:
    """Return the time of the search over all pairs for gs-q at the largest n."""
    last = table[(table.rule == "gs-q") & table.brute_seconds.notna()].iloc[-1]
    return float(last.brute_seconds * (table.n.max() / last.n) ** 2)


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check that the rules are exact, and linear in practice."""
    of = EXPERIMENT.table(results, scale)
    worst = float((of.decrease / of.brute_decrease - 1).abs().max())
    larger = of[of.n.isin(scale.sizes[len(scale.sizes) // 2 :])]
    growth = {
        rule: float(np.polyfit(np.log(rows.n), np.log(rows.seconds), 1)[0])
        for rule, rows in larger.groupby("rule")
    }
    largest = scale.sizes[-1]
    seconds = of[of.n == largest].set_index("rule").seconds
    return [
        checked(
            "exact-rules-are-exact",
            "gs-q with bounds, gs-q-lipschitz and gs-1-lipschitz find the best of all pairs.",
            [f"relative difference {worst:.1e}"] if worst >= 1e-12 else [],
            f"Their decrease against that of a search over all pairs, for n up to "
            f"{min(MAX_BRUTE_FORCE, largest)}.",
            f"Largest relative difference {worst:.1e}.",
            {"largest difference": worst},
        ),
        checked(
            "exact-rules-are-linear",
            "The rules for which the paper gives an O(n^2) search take O(n) time in practice.",
            [f"{rule} {growth[rule]:.2f}" for rule in EXACT if growth[rule] >= MAX_LINEAR_EXPONENT],
            f"Slope of log time over log n for the larger half of the sizes, up to n = "
            f"{largest}: below {MAX_LINEAR_EXPONENT} (the fastest of five calls of propose).",
            f"Slopes: {', '.join(f'{rule} {growth[rule]:.2f}' for rule in EXACT)}. At n = "
            f"{largest:,}: {spread(1000 * seconds[EXACT])} ms, gs-s {1000 * seconds['gs-s']:.3g} "
            f"ms; all pairs would take {extrapolated(of):.2g} s.",
            numbers={"slope": growth, "seconds at the largest n": seconds.to_dict()},
        ),
    ]


EXPERIMENT = Experiment(
    "scaling",
    "The cost of an exact choice",
    "Time to choose the variables of one step from a given gradient, fastest of five. gs-s, gs-1 "
    "and gs-q run with bounds, with a third of the variables at a bound; the rules with L_i run "
    "without bounds. For gs-q and the rules with L_i, the paper only gives an O(n^2) search. "
    "Black: gs-q by trying all pairs in NumPy, extrapolated as n^2.",
    parts,
    ("decrease", "brute_decrease", "seconds", "brute_seconds"),
    claims,
    panels,
    per_row=1,
)
