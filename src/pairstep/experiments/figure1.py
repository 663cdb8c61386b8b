"""Figure 1: random against greedy rules, with and without coordinate-wise Lipschitz constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import LeastSquares, SumBox
from .claims import SPEED, Claim, rounded, speed, spread
from .experiment import Experiment, Panel, Scale
from .parts import Measured, Part, Results, part
from .problems import Array, equality_optimum, least_squares
from .races import Race
from .style import curve, label_ends
from .tables import Table, by_iteration, distinct, first, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RANDOM = "random", "random-lipschitz"
WEIGHTED = "gs-q-lipschitz", "gs-1-lipschitz", "ratio"
RULES = (*RANDOM, "greedy", *WEIGHTED)
AS_IS, SCALED = "as is", "scaled"
PASSES = 20  # iterations per variable
LITTLE = 1.25  # a factor in iterations below which a difference counts as little

Speeds = Callable[[str, str, str], list[float]]


@lru_cache(maxsize=1)
def problem(seed: int, n: int, columns: str) -> tuple[LeastSquares, float]:
    """Make a problem and its optimum; kept for the next rule."""
    A, b = least_squares(seed, n, columns == SCALED)
    return LeastSquares(A, b), equality_optimum(A, b)


def measure(seed: int, n: int, columns: str, rule: str) -> Measured:
    """Run one rule on one problem, with the update (deltaLi)."""
    objective, optimum = problem(seed, n, columns)
    free = SumBox(total=0.0, lower=-math.inf, upper=math.inf)
    race = Race(objective, free, rule, "lipschitz", max_iter=PASSES * n, seed=seed)
    measured = race.run(optimum, repeat=5)
    return {name: measured[name] for name in ("suboptimality", "seconds")}


def parts(scale: Scale, columns: Iterable[str] = (AS_IS, SCALED)) -> list[Part]:
    """Every rule on every problem."""
    return [
        part(measure, seed=seed, n=scale.n, columns=kind, rule=rule)
        for kind in columns
        for seed in scale.seeds
        for rule in RULES
    ]


def tables(
    results: Results, scale: Scale, columns: Iterable[str] = (AS_IS, SCALED), name: str = "figure1"
) -> dict[str, Table]:
    """Suboptimality per iteration, and beside it the seconds."""
    given = {"columns": "columns", "seed": "seed", "rule": "rule"}
    return by_iteration(results, parts(scale, columns), name, given, ("suboptimality",))


def panels(tables: dict[str, Table]) -> list[Panel]:
    """Both problems of the first seed, against iterations and against seconds."""
    table = tables["figure1"] | {"seconds": tables["figure1_timing"]["seconds"]}
    seed = first(table, "seed")
    titles = {AS_IS: "Similar $L_i$", SCALED: "Very different $L_i$"}
    return [
        Panel(titles[kind], partial(draw, table=table, axis=axis, kind=kind, seed=seed))
        for axis in ("iteration", "seconds")
        for kind in titles
    ]


def draw(ax: Axes, table: Table, axis: str, kind: str, seed: int) -> None:
    """Draw suboptimality against an axis for all rules."""
    rows = where(table, columns=kind, seed=seed)
    ax.set(xscale="log", yscale="log", ylabel="$f(x) - f^*$")
    ax.set_xlabel("iterations" if axis == "iteration" else "seconds")
    shown = rows[axis][rows["iteration"] >= 10]
    ax.set_xlim(shown.min(), shown.max())
    ends = []
    for rule in distinct(rows, "rule"):
        of_rule = where(rows, rule=rule)
        seen = of_rule["iteration"] >= 10
        ends.append(curve(ax, of_rule[axis][seen], of_rule["suboptimality"][seen], rule))
    label_ends(ax, ends)


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what section 5 says of Figure 1."""
    of = {p.parameters: results[p]["suboptimality"] for p in parts(scale)}

    def speeds(kind: str, rule: str, over: str) -> list[float]:
        def fall(seed: int, name: str) -> Array:
            return of[part(measure, seed=seed, n=scale.n, columns=kind, rule=name).parameters]

        return [speed(fall(seed, rule), fall(seed, over)) for seed in scale.seeds]

    return [
        greedy_beats_random(of, scale, speeds),
        weights_matter_little(speeds),
        *(weights_help(speeds, rule) for rule in WEIGHTED),
        ratio_is_close(speeds),
        random_does_not_care(speeds),
    ]


def greedy_beats_random(of: dict[Any, Array], scale: Scale, speeds: Speeds) -> Claim:
    """Compare greedy rules with random rules."""
    first = scale.n // 10
    below: dict[str, list[bool]] = {}
    for p in parts(scale):
        given = dict(p.parameters)
        if given["rule"] not in RANDOM:
            rivals = [of[tuple((given | {"rule": rule}).items())] for rule in RANDOM]
            lower = all(bool((of[p.parameters] < r)[first:].all()) for r in rivals)
            below.setdefault(f"{given['rule']}, {given['columns']}", []).append(lower)
    every = [lower for each in below.values() for lower in each]
    found = {
        f"{rule}, {kind}": [x for r in RANDOM for x in speeds(kind, rule, r)]
        for kind in (AS_IS, SCALED)
        for rule in ("greedy", *WEIGHTED)
    }
    greedy = [x for key, xs in found.items() if key.startswith("greedy") for x in xs]
    return Claim(
        "greedy-beats-random",
        "Greedy rules converge faster than random rules, in both panels and for every seed.",
        "Section 5",
        "figure1",
        all(every),
        "For every seed, both problems and all four greedy rules: a lower objective than both "
        f"random rules at every iteration from the {first}th on. {SPEED}.",
        f"Speed of greedy against the random rules: {spread(greedy)}; lower from the {first}th "
        f"iteration on in {sum(every)} of {len(every)} cases.",
        {"lower throughout, seed by seed": below, "speed": rounded(found)},
    )


def weights_matter_little(speeds: Speeds) -> Claim:
    """Compare greedy rules with and without L_i where the L_i are similar."""
    found = {rule: speeds(AS_IS, rule, "greedy") for rule in WEIGHTED}
    return Claim(
        "li-changes-little",
        "Using L_i changes little for greedy rules when the L_i are similar.",
        "Section 5",
        "figure1",
        little(found),
        f"{SPEED}. Against greedy: within a factor of {LITTLE} either way, for every seed.",
        f"Speed against greedy: {listed(found)}.",
        {"speed": rounded(found)},
    )


def weights_help(speeds: Speeds, rule: str) -> Claim:
    """Compare a rule that uses L_i with greedy where the L_i differ."""
    found = speeds(SCALED, rule, "greedy")
    return Claim(
        f"li-helps-{rule}",
        f"{rule} beats greedy when the L_i differ.",
        "Section 5",
        "figure3",
        all(x > 1 for x in found),
        f"{SPEED}. Against greedy: above 1 for every seed.",
        f"Speed against greedy, seed by seed: {', '.join(f'{x:.2f}' for x in found)}.",
        {"speed": np.round(found, 3).tolist()},
    )


def ratio_is_close(speeds: Speeds) -> Claim:
    """Compare the approximation with the exact rules where the L_i differ."""
    found = {rule: speeds(SCALED, "ratio", rule) for rule in ("gs-q-lipschitz", "gs-1-lipschitz")}
    return Claim(
        "ratio-is-close",
        "The ratio approximation is close to the exact weighted rules when the L_i differ.",
        "Section 5",
        "figure3",
        little(found),
        f"{SPEED}. Of ratio against each exact rule: within a factor of {LITTLE} either way, for "
        "every seed.",
        f"Speed of ratio against the exact rules: {listed(found)}.",
        {"speed": rounded(found)},
    )


def random_does_not_care(speeds: Speeds) -> Claim:
    """Compare sampling by L_i with uniform sampling."""
    found = {kind: speeds(kind, "random-lipschitz", "random") for kind in (AS_IS, SCALED)}
    return Claim(
        "li-random",
        "Knowing the L_i does not significantly change the random method.",
        "Section 5",
        "figure1",
        little(found),
        f"{SPEED}. Of random-lipschitz against random: within a factor of {LITTLE} either way, for "
        "both problems and every seed.",
        f"Speed of sampling by L_i against uniform sampling: columns {listed(found)}.",
        {"speed": rounded(found)},
    )


def little(found: dict[str, list[float]]) -> bool:
    """Tell whether all speeds are near 1."""
    return all(1 / LITTLE < x < LITTLE for xs in found.values() for x in xs)


def listed(found: dict[str, list[float]]) -> str:
    """Write ranges by name."""
    return "; ".join(f"{name} {spread(xs)}" for name, xs in found.items())


EXPERIMENT = Experiment(
    "figure1",
    "Figure 1. Random against greedy selection",
    "Least squares under sum x = 0; A is n by n standard normal, b = Ax + z. On the right each "
    "column of A is scaled by a standard normal sample. All rules use the update (deltaLi); "
    "seed 0. The lower panels show the same runs against seconds, on one thread. The optimum is "
    "from a direct solve: one variable eliminated, then a QR factorisation.",
    parts,
    tables,
    claims,
    panels,
    label_room=1.4,
)
