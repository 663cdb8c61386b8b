"""Past the paper: the time of one exact choice as n grows, against a search over all pairs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .. import propose
from .claims import Claim, except_where, spread, unless
from .experiment import Experiment, Panel, Scale
from .parts import Measured, Part, Results, part
from .problems import Array
from .style import BLACK, curve, label_ends
from .tables import Table, distinct, stack, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The rules that the paper leaves at O(n^2), with the bounds it leaves them at; and two of O(n).
EXACT = "gs-q", "gs-q-lipschitz", "gs-1-lipschitz"
RULES = {"gs-s": True, "gs-1": True, "gs-q": True, "gs-q-lipschitz": False, "gs-1-lipschitz": False}
BRUTE = 10_000  # the largest n of the search over all pairs
ROWS = 256  # of the pairs, at a time
LINEAR = 1.3  # growth exponents up to this count as linear


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
    if rule in EXACT and n <= BRUTE:
        search = partial(brute_force, rule, g, x, constants)
        measured["brute_seconds"] = np.array(fastest(search, repeat=1 if n > 3000 else 2))
        measured["brute_decrease"] = np.array(search())
    return measured


def fastest(call: Callable[[], float], repeat: int) -> float:
    """Find the least time of a few calls."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def brute_force(rule: str, g: Array, x: Array, constants: Array) -> float:
    """Find the largest decrease over all pairs, by trying every one."""
    best, root = 0.0, np.sqrt(constants)
    for begin in range(0, len(g), ROWS):
        rows = slice(begin, begin + ROWS)
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
    """Every rule at every size, one after the other."""
    return [
        part(measure, alone=True, seed=0, n=n, rule=rule) for n in scale.sizes for rule in RULES
    ]


def tables(results: Results, scale: Scale) -> dict[str, Table]:
    """Write what was chosen, and, in another file, how long it took."""
    chosen, times = [], []
    for p in parts(scale):
        measured, given = results[p], dict(p.parameters)
        row = {"rule": given["rule"], "n": given["n"]}
        chosen.append(row | {k: measured[k] for k in ("decrease", "brute_decrease")})
        times.append(row | {k: measured[k] for k in ("seconds", "brute_seconds")})
    return {"scaling": stack(chosen), "scaling_timing": stack(times)}


def panels(tables: dict[str, Table]) -> list[Panel]:
    """One panel."""
    return [Panel("Time of one choice", partial(draw, table=tables["scaling_timing"]))]


def draw(ax: Axes, table: Table) -> None:
    """Seconds against n; brute force beyond what was measured is dotted."""
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
            far = seconds[-1] * (last / n[-1]) ** 2
            ax.plot([n[-1], last], [seconds[-1], far], color=BLACK, linestyle=":")
            ends.append((float(last), float(far), "all pairs", BLACK))
    label_ends(ax, ends)


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Exact, and linear in practice."""
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
    brute = tried[-1] * (largest / min(largest, BRUTE)) ** 2
    return [
        Claim(
            "exact-rules-are-exact",
            "gs-q with bounds, gs-q-lipschitz and gs-1-lipschitz find the best of all pairs.",
            "",
            "",
            "scaling",
            unless(max(errors) < 1e-12, f"relative difference {max(errors):.1e}"),
            "Some choice is not the best of all pairs",
            f"Their decrease against that of a search over all pairs, for n up to "
            f"{min(BRUTE, largest)}.",
            f"Largest relative difference {max(errors):.1e}.",
            {"largest relative difference": max(errors)},
        ),
        Claim(
            "exact-rules-are-linear",
            "The rules that the paper leaves at O(n^2) grow like n in practice.",
            "",
            "",
            "scaling",
            except_where(
                lambda slope: slope < LINEAR, {rule: [growth[rule]] for rule in EXACT}, ["slope"]
            ),
            "The time of some rule grows faster than n",
            f"Slope of log time against log n over the larger half of the sizes, up to n = "
            f"{largest}: below {LINEAR} (the fastest of five calls of propose).",
            f"Slopes: {', '.join(f'{rule} {growth[rule]:.2f}' for rule in EXACT)}. At n = "
            f"{largest:,}: "
            f"{spread(1000 * seconds[rule] for rule in EXACT)} ms, gs-s "
            f"{1000 * seconds['gs-s']:.3g} ms; all pairs would take {duration(brute)}.",
            {"slope": growth, "seconds at the largest n": seconds, "all pairs, seconds": brute},
        ),
    ]


def duration(seconds: float) -> str:
    """Write a time in the unit that fits."""
    for unit, size in (("hours", 3600), ("minutes", 60), ("seconds", 1)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.2g} seconds"


EXPERIMENT = Experiment(
    "scaling",
    "The price of an exact choice",
    "Time of one choice from a given gradient, fastest of five. gs-s, gs-1 and gs-q with bounds, a "
    "third of the variables at one; the rules with L_i without bounds, where the paper leaves them "
    "at O(n^2). Black: gs-q by trying all pairs in NumPy; dotted where it is extrapolated as n^2.",
    parts,
    tables,
    claims,
    panels,
    columns=1,
    label_room=1.4,
)
