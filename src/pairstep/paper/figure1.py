"""Figure 1: random and greedy rules, with and without coordinate-wise Lipschitz constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from .. import LeastSquares, SumBox
from .claims import (
    ADVANTAGE,
    ALIKE,
    ALIKE_FACTOR,
    SPEED,
    TIES,
    Accepts,
    Claim,
    Cut,
    Estimate,
    Horizon,
    Kind,
    Reading,
    by_cut,
    geometric_mean,
    ranges,
    speed,
    spread,
    weakest,
)
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
FIRST_DRAWN = 10  # iteration; the axis is logarithmic

Compare = Callable[[str, str, str, Cut], list[float]]  # the speed at a horizon, for every seed


@lru_cache(maxsize=1)
def problem(seed: int, n: int, columns: str) -> tuple[LeastSquares, float]:
    """Return a problem and its optimum; cached for the next rule."""
    A, b = least_squares(seed, n, columns == SCALED)
    return LeastSquares(A, b), equality_optimum(A, b)


def measure(seed: int, n: int, columns: str, rule: str, timed: bool) -> Measured:
    """Run one rule on one problem, with steps that use the L_i of the pair.

    A run that is timed is repeated, to remove noise from its times.
    """
    objective, optimum = problem(seed, n, columns)
    free = SumBox(total=0.0, lower=-math.inf, upper=math.inf)
    race = Race(objective, free, rule, "lipschitz", max_iter=PASSES * n, seed=seed)
    measured = race.run(optimum, repeat=5 if timed else 1)
    return {name: measured[name] for name in ("suboptimality", "seconds")}


def parts(scale: Scale, columns: Iterable[str] = (AS_IS, SCALED)) -> list[Part]:
    """Return one part for every rule and problem."""
    return [
        part_of(scale, kind, seed, rule)
        for kind in columns
        for seed in scale.seeds
        for rule in RULES
    ]


def part_of(scale: Scale, columns: str, seed: int, rule: str) -> Part:
    """Return the part of one rule on one problem; the figure shows times of the first seed."""
    timed = seed == scale.seeds[0]
    return part(measure, seed=seed, n=scale.n, columns=columns, rule=rule, timed=timed)


def tables(
    results: Results, scale: Scale, columns: Iterable[str] = (AS_IS, SCALED), name: str = "figure1"
) -> dict[str, Table]:
    """Return the suboptimality of each iteration, and a table of the seconds."""
    given = {"columns": "columns", "seed": "seed", "rule": "rule"}
    drawn = [p for p in parts(scale, columns) if dict(p.parameters)["seed"] in scale.drawn]
    return by_iteration(results, drawn, name, given, ("suboptimality",))


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
    shown = rows[axis][rows["iteration"] >= FIRST_DRAWN]
    ax.set_xlim(shown.min(), shown.max())
    ends = []
    for rule in distinct(rows, "rule"):
        of_rule = where(rows, rule=rule)
        seen = of_rule["iteration"] >= FIRST_DRAWN
        ends.append(curve(ax, of_rule[axis][seen], of_rule["suboptimality"][seen], rule))
    label_ends(ax, ends)


SOURCE = "Section 5, first experiment, Figure 1"
FASTER = (
    "In these experiments we see that greedy rules lead to faster convergence than random rules in "
    "all cases."
)
LITTLE_CHANGE = (
    "We see that knowing the $L_i$ values does not significantly change the performance of the "
    "random method, nor does it change the performance of the greedy methods in the case when the "
    "$L_i$ were similar."
)
WORK_BETTER = (
    "However, with different $L_i$ the greedy methods exploiting the $L_i$ values work better than "
    "the greedy method that does not use the $L_i$."
)
RATIO_TOO = (
    r"This includes the ratio approximation~\eqref{eq:ratio} which does not have the high cost of "
    "the greedy GS-q and GS-1 rules that exploit the $L_i$ values."
)
NOT_TO_THE_END = (
    "No rule comes near a suboptimality of 1e-9 of the start within 20 n iterations, so there is "
    "no horizon to 1e-9."
)


def horizons(scale: Scale) -> tuple[Cut, ...]:
    """Return the horizons of the claims: 1000, 2000 and 20,000 iterations at n = 1000."""
    return scale.n, 2 * scale.n, PASSES * scale.n


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what section 5 of the paper says about Figure 1."""
    curves: dict[tuple[str, int, str], Array] = {
        (kind, seed, rule): results[part_of(scale, kind, seed, rule)]["suboptimality"]
        for kind in (AS_IS, SCALED)
        for seed in scale.seeds
        for rule in RULES
    }

    def compare(kind: str, rule: str, over: str, cut: Cut) -> list[float]:
        return [
            speed(curves[kind, seed, rule], curves[kind, seed, over], cut) for seed in scale.seeds
        ]

    at = horizons(scale)
    return [
        greedy_beats_random(compare, at),
        li_change_greedy_little(compare, at),
        *(li_help(compare, at, rule) for rule in WEIGHTED),
        li_change_random_little(compare, at),
        ratio_is_close(compare, at),
    ]


def judged(
    found: Callable[[Cut], Mapping[str, list[float]]], at: Iterable[Cut], accepts: Accepts
) -> tuple[Horizon, ...]:
    """Judge the speeds of all comparisons at each horizon."""
    return tuple(
        weakest(cut, [geometric_mean(xs) for xs in found(cut).values()], accepts) for cut in at
    )


def undetected(
    found: Callable[[Cut], Mapping[str, list[float]]], at: Iterable[Cut]
) -> tuple[Horizon, ...]:
    """Judge the reading that no difference can be detected: every interval contains 1."""

    def at_cut(cut: Cut) -> Horizon:
        estimates = [geometric_mean(xs) for xs in found(cut).values()]
        shown = max(estimates, key=lambda e: abs(math.log(e.value))).at(cut, ALIKE)
        holds = all(contains_one(e) for e in estimates) if shown.interval else None
        return Horizon(cut, shown.value, shown.interval, holds)

    return tuple(map(at_cut, at))


def contains_one(estimate: Estimate) -> bool:
    """Return whether an interval contains 1."""
    return estimate.interval is not None and estimate.interval[0] <= 1 <= estimate.interval[1]


def greedy_beats_random(compare: Compare, at: tuple[Cut, ...]) -> Claim:
    """Compare greedy rules with random rules."""

    def found(cut: Cut) -> dict[str, list[float]]:
        return {
            f"{rule} against {rival}, columns {kind}": compare(kind, rule, rival, cut)
            for kind in (AS_IS, SCALED)
            for rule in ("greedy", *WEIGHTED)
            for rival in RANDOM
        }

    return Claim(
        "greedy-beats-random",
        Kind.OBSERVATION,
        "Greedy rules converge faster than random rules.",
        FASTER,
        SOURCE,
        "All cases are the four greedy rules against both random rules on both problems. "
        f"{TIES}. {NOT_TO_THE_END}",
        "figure1",
        f"Least of 16 speeds: {SPEED}",
        judged(found, at, ADVANTAGE),
        f"Speeds at the last horizon: {spread_of(found(at[-1]))}.",
        {"speed": by_cut(found, at)},
    )


def li_change_greedy_little(compare: Compare, at: tuple[Cut, ...]) -> Claim:
    """Compare greedy rules with and without L_i on problems with similar L_i."""

    def found(cut: Cut) -> dict[str, list[float]]:
        return {rule: compare(AS_IS, rule, "greedy", cut) for rule in WEIGHTED}

    return Claim(
        "li-changes-little",
        Kind.OBSERVATION,
        "Using the L_i changes little for greedy rules when they are similar.",
        LITTLE_CHANGE,
        SOURCE,
        f"Not significantly means by less than a factor of {ALIKE_FACTOR} either way. "
        f"{NOT_TO_THE_END}",
        "figure1",
        f"Speed against greedy of the rule that differs most: {SPEED}",
        judged(found, at, ALIKE),
        f"Speed against greedy at the last horizon: {ranges(found(at[-1]))}.",
        {"speed": by_cut(found, at)},
        (no_difference(found, at),),
    )


def no_difference(
    found: Callable[[Cut], Mapping[str, list[float]]], at: tuple[Cut, ...]
) -> Reading:
    """Return the reading that no difference can be detected."""
    return Reading(
        "Not significantly, in the sense of statistics: the interval contains 1, so that no "
        "difference can be detected",
        "The speed that differs most from 1",
        undetected(found, at),
    )


def li_help(compare: Compare, at: tuple[Cut, ...], rule: str) -> Claim:
    """Compare a rule that uses L_i with greedy on problems with different L_i."""

    def found(cut: Cut) -> dict[str, list[float]]:
        return {"speed": compare(SCALED, rule, "greedy", cut)}

    return Claim(
        f"li-helps-{rule}",
        Kind.OBSERVATION,
        f"{rule} is faster than greedy when the L_i differ.",
        RATIO_TOO if rule == "ratio" else WORK_BETTER,
        SOURCE,
        f"Work better means fewer iterations; the cost of a choice is a separate matter. {TIES}. "
        f"{NOT_TO_THE_END}",
        "figure3",
        f"Speed against greedy: {SPEED}",
        judged(found, at, ADVANTAGE),
        f"Speed against greedy by seed, at the last horizon: {spread_of(found(at[-1]))}.",
        {"speed": by_cut(found, at)},
    )


def ratio_is_close(compare: Compare, at: tuple[Cut, ...]) -> Claim:
    """Compare the approximation with the exact rules on problems with different L_i."""

    def found(cut: Cut) -> dict[str, list[float]]:
        return {
            f"against {rule}": compare(SCALED, "ratio", rule, cut)
            for rule in ("gs-q-lipschitz", "gs-1-lipschitz")
        }

    return Claim(
        "ratio-is-close",
        Kind.BEYOND,
        "The ratio approximation is close to the exact weighted rules when the L_i differ.",
        "",
        "",
        f"Close means within a factor of {ALIKE_FACTOR} either way, for both exact rules.",
        "figure3",
        f"Speed of ratio against the exact rule that differs most: {SPEED}",
        judged(found, at, ALIKE),
        f"Speed of ratio at the last horizon: {ranges(found(at[-1]))}. The approximation weights "
        "each variable separately, and the exact rules weight pairs.",
        {"speed": by_cut(found, at)},
    )


def li_change_random_little(compare: Compare, at: tuple[Cut, ...]) -> Claim:
    """Compare sampling by L_i with uniform sampling."""

    def found(cut: Cut) -> dict[str, list[float]]:
        return {
            f"columns {kind}": compare(kind, "random-lipschitz", "random", cut)
            for kind in (AS_IS, SCALED)
        }

    return Claim(
        "li-random",
        Kind.OBSERVATION,
        "Knowing the L_i does not significantly change the random method.",
        LITTLE_CHANGE,
        SOURCE,
        f"Not significantly means by less than a factor of {ALIKE_FACTOR} either way, on both "
        f"problems. {NOT_TO_THE_END}",
        "figure1",
        f"Speed of sampling by L_i against uniform sampling, on the problem where it differs most: "
        f"{SPEED}",
        judged(found, at, ALIKE),
        f"Speed of sampling by L_i at the last horizon: {ranges(found(at[-1]))}. If the L_i "
        "differ, sampling by them rarely selects the variables with small L_i, which matters late.",
        {"speed": by_cut(found, at)},
        (no_difference(found, at),),
    )


def spread_of(found: Mapping[str, list[float]]) -> str:
    """Return the range of all speeds as text."""
    return spread(x for xs in found.values() for x in xs)


EXPERIMENT = Experiment(
    "figure1",
    "Figure 1. Random and greedy selection",
    "Least squares under sum x = 0; A is n by n standard normal, b = Ax + z. On the right each "
    "column of A is scaled by a standard normal sample. All rules take steps that use "
    "the L_i of the pair; first seed. The lower panels show the same runs over time, on one "
    "thread. The optimum is from a direct solve: one variable is eliminated, then a QR "
    "factorization.",
    parts,
    tables,
    claims,
    panels,
    label_width=1.4,
)
