"""Beyond the paper: how the time of one choice grows with n, by a rule and over all pairs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .. import propose
from .claims import Claim, except_where, spread, unless, without_horizon
from .experiment import Experiment, Panel, Scale
from .parts import Measured, Part, Results, part
from .problems import Array
from .style import BLACK, curve, label_ends
from .tables import Table, distinct, stack, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rules for which the paper only gives an O(n^2) search, and all rules that are timed; the flag says
# whether the variables have bounds.
EXACT = "gs-q", "gs-q-lipschitz", "gs-1-lipschitz"
RULES = {"gs-s": True, "gs-1": True, "gs-q": True, "gs-q-lipschitz": False, "gs-1-lipschitz": False}
# Largest n for which the search over all pairs is timed: its time grows as n^2.
MAX_BRUTE_FORCE = 10_000
ROWS_PER_BLOCK = 256  # rows of the matrix of all pairs that are in memory at a time
# Exponents of the growth of time with n below this count as linear. A larger limit would accept
# rules that are slower than linear; a smaller one would reject linear rules by noise in the times.
MAX_LINEAR_EXPONENT = 1.3


def measure(seed: int, n: int, rule: str) -> Measured:
    """Time one choice of a rule, and the same by brute force where that is feasible."""
    rng = np.random.default_rng([seed, n])
    g = rng.standard_normal(n)
    bound = 1.0 if RULES[rule] else math.inf
    x = np.clip(1.5 * rng.uniform(-1, 1, n), -1, 1)  # a third of them at a bound
    constants = rng.standard_normal(n) ** 2 + 1e-3
    lipschitz = constants if rule.endswith("lipschitz") else None

    def choose() -> float:
        return propose(rule, g, x, -bound, bound, alpha=1.0, lipschitz=lipschitz).decrease

    measured = {
        "seconds": np.array(fastest(choose, repeat=5)),
        "decrease": np.array(choose()),
        "brute_seconds": np.array(math.nan),
        "brute_decrease": np.array(math.nan),
    }
    if rule in EXACT and n <= MAX_BRUTE_FORCE:
        search = partial(brute_force, rule, g, x, constants)
        measured["brute_seconds"] = np.array(fastest(search, repeat=1 if n > 3000 else 2))
        measured["brute_decrease"] = np.array(search())
    return measured


def fastest(call: Callable[[], float], repeat: int) -> float:
    """Return the least time of a few calls."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


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


def tables(results: Results, scale: Scale) -> dict[str, Table]:
    """Return a table of the choices, and one of their times."""
    chosen, times = [], []
    for p in parts(scale):
        measured, given = results[p], dict(p.parameters)
        row = {"rule": given["rule"], "n": given["n"]}
        chosen.append(row | {k: measured[k] for k in ("decrease", "brute_decrease")})
        times.append(row | {k: measured[k] for k in ("seconds", "brute_seconds")})
    return {"scaling": stack(chosen), "scaling_timing": stack(times)}


def panels(tables: dict[str, Table]) -> list[Panel]:
    """Return one panel."""
    return [Panel("Time of one choice", partial(draw, table=tables["scaling_timing"]))]


def draw(ax: Axes, table: Table) -> None:
    """Draw seconds over n; extrapolated times of the brute-force search are dotted."""
    ax.set(xscale="log", yscale="log", xlabel="variables n", ylabel="seconds")
    last = table["n"].max()
    ax.set_xlim(table["n"].min(), last)
    ends = []
    for rule in distinct(table, "rule"):
        rows = where(table, rule=rule)
        ends.append(curve(ax, rows["n"], rows["seconds"], rule))
        if rule == "gs-q":
            tried = np.isfinite(rows["brute_seconds"])
            n, seconds = rows["n"][tried], rows["brute_seconds"][tried]
            ax.plot(n, seconds, color=BLACK)
            extrapolated = seconds[-1] * (last / n[-1]) ** 2
            ax.plot([n[-1], last], [seconds[-1], extrapolated], color=BLACK, linestyle=":")
            ends.append((float(last), float(extrapolated), "all pairs", BLACK))
    label_ends(ax, ends)


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check that the rules are exact, and linear in practice."""
    of = {rule: [results[part(measure, alone=True, seed=0, n=n, rule=rule)] for n in scale.sizes]
          for rule in RULES}  # fmt: skip
    errors = [
        abs(float(m["decrease"] / m["brute_decrease"]) - 1)
        for rule in EXACT
        for m in of[rule]
        if np.isfinite(m["brute_decrease"])
    ]
    half = len(scale.sizes) // 2
    growth = {
        rule: float(np.polyfit(np.log(scale.sizes[half:]),
                               np.log([float(m["seconds"]) for m in ms[half:]]), 1)[0])
        for rule, ms in of.items()
    }  # fmt: skip
    largest = scale.sizes[-1]
    seconds = {rule: float(ms[-1]["seconds"]) for rule, ms in of.items()}
    tried = [float(m["brute_seconds"]) for m in of["gs-q"] if np.isfinite(m["brute_seconds"])]
    brute = tried[-1] * (largest / min(largest, MAX_BRUTE_FORCE)) ** 2
    return [
        without_horizon(
            "exact-rules-are-exact",
            "gs-q with bounds, gs-q-lipschitz and gs-1-lipschitz find the best of all pairs.",
            "",
            "",
            "scaling",
            unless(max(errors) < 1e-12, f"relative difference {max(errors):.1e}"),
            "Some choice is not the best of all pairs",
            f"Their decrease against that of a search over all pairs, for n up to "
            f"{min(MAX_BRUTE_FORCE, largest)}.",
            f"Largest relative difference {max(errors):.1e}.",
            {"largest relative difference": max(errors)},
        ),
        without_horizon(
            "exact-rules-are-linear",
            "The rules for which the paper gives an O(n^2) search take O(n) time in practice.",
            "",
            "",
            "scaling",
            except_where(
                lambda slope: slope < MAX_LINEAR_EXPONENT,
                {rule: [growth[rule]] for rule in EXACT},
                ["slope"],
            ),
            "The time of some rule grows faster than n",
            f"Slope of log time over log n for the larger half of the sizes, up to n = "
            f"{largest}: below {MAX_LINEAR_EXPONENT} (the fastest of five calls of propose).",
            f"Slopes: {', '.join(f'{rule} {growth[rule]:.2f}' for rule in EXACT)}. At n = "
            f"{largest:,}: "
            f"{spread(1000 * seconds[rule] for rule in EXACT)} ms, gs-s "
            f"{1000 * seconds['gs-s']:.3g} ms; all pairs would take {duration(brute)}.",
            {"slope": growth, "seconds at the largest n": seconds, "all pairs, seconds": brute},
        ),
    ]


def duration(seconds: float) -> str:
    """Return a time as text, in a suitable unit."""
    for unit, size in (("hours", 3600), ("minutes", 60), ("seconds", 1)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.2g} seconds"


EXPERIMENT = Experiment(
    "scaling",
    "The cost of an exact choice",
    "Time to choose the variables of one step from a given gradient, fastest of five. gs-s, gs-1 "
    "and gs-q run with bounds, with a third of the variables at a bound; the rules with L_i run "
    "without bounds. For gs-q and the rules with L_i, the paper only gives an O(n^2) search. "
    "Black: gs-q by trying all pairs in NumPy; dotted where extrapolated as n^2.",
    parts,
    tables,
    claims,
    panels,
    columns=1,
    label_width=1.4,
)
