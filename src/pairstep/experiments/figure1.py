"""Figure 1: random and greedy rules, with and without coordinate-wise Lipschitz constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from .. import LeastSquares, SumBox
from .claims import (
    ALIKE_FACTOR,
    SPEED,
    TIES,
    Claim,
    alike,
    better,
    by_seed,
    consistently_better,
    except_where,
    mean,
    ratios,
    rounded,
    spread,
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

Compare = Callable[[str, str, str], list[Array]]  # level by level, for every seed


@lru_cache(maxsize=1)
def problem(seed: int, n: int, columns: str) -> tuple[LeastSquares, float]:
    """Return a problem and its optimum; cached for the next rule."""
    A, b = least_squares(seed, n, columns == SCALED)
    return LeastSquares(A, b), equality_optimum(A, b)


def measure(seed: int, n: int, columns: str, rule: str) -> Measured:
    """Run one rule on one problem, with steps that use the L_i of the pair."""
    objective, optimum = problem(seed, n, columns)
    free = SumBox(total=0.0, lower=-math.inf, upper=math.inf)
    race = Race(objective, free, rule, "lipschitz", max_iter=PASSES * n, seed=seed)
    measured = race.run(optimum, repeat=5)
    return {name: measured[name] for name in ("suboptimality", "seconds")}


def parts(scale: Scale, columns: Iterable[str] = (AS_IS, SCALED)) -> list[Part]:
    """Return one part for every rule and problem."""
    return [
        part(measure, seed=seed, n=scale.n, columns=kind, rule=rule)
        for kind in columns
        for seed in scale.seeds
        for rule in RULES
    ]


def tables(
    results: Results, scale: Scale, columns: Iterable[str] = (AS_IS, SCALED), name: str = "figure1"
) -> dict[str, Table]:
    """Return the suboptimality of each iteration, and a table of the seconds."""
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
    shown = rows[axis][rows["iteration"] >= FIRST_DRAWN]
    ax.set_xlim(shown.min(), shown.max())
    ends = []
    for rule in distinct(rows, "rule"):
        of_rule = where(rows, rule=rule)
        seen = of_rule["iteration"] >= FIRST_DRAWN
        ends.append(curve(ax, of_rule[axis][seen], of_rule["suboptimality"][seen], rule))
    label_ends(ax, ends)


SECTION = "Section 5, first experiment"
FASTER = (
    "In these experiments we see that greedy rules lead to faster convergence than random rules in "
    "all cases."
)
LITTLE_CHANGE = (
    "We see that knowing the L_i values does not significantly change the performance of the "
    "random method, nor does it change the performance of the greedy methods in the case when the "
    "L_i were similar."
)
WORK_BETTER = (
    "However, with different L_i the greedy methods exploiting the L_i values work better than the "
    "greedy method that does not use the L_i."
)
RATIO_TOO = (
    "This includes the ratio approximation (ratio) which does not have the high cost of the greedy "
    "GS-q and GS-1 rules that exploit the L_i values."
)


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what section 5 of the paper says about Figure 1."""

    def compare(kind: str, rule: str, over: str) -> list[Array]:
        def curve_of(seed: int, name: str) -> Array:
            p = part(measure, seed=seed, n=scale.n, columns=kind, rule=name)
            return results[p]["suboptimality"]

        return [ratios(curve_of(seed, rule), curve_of(seed, over)) for seed in scale.seeds]

    cases = by_seed(scale.seeds)
    return [
        greedy_beats_random(compare, cases),
        li_change_greedy_little(compare, cases),
        *(li_help(compare, cases, rule) for rule in WEIGHTED),
        ratio_is_close(compare, cases),
        li_change_random_little(compare, cases),
    ]


def greedy_beats_random(compare: Compare, cases: list[str]) -> Claim:
    """Compare greedy rules with random rules."""
    levels = {
        f"{rule} against {rival}, columns {kind}": compare(kind, rule, rival)
        for kind in (AS_IS, SCALED)
        for rule in ("greedy", *WEIGHTED)
        for rival in RANDOM
    }
    speeds = {key: [mean(r) for r in each] for key, each in levels.items()}
    least = {key: [float(r.min()) for r in each] for key, each in levels.items()}
    fine = [consistently_better(r) for each in levels.values() for r in each]
    return Claim(
        "greedy-beats-random",
        "Greedy rules converge faster than random rules, at every level, in both panels and for "
        "every seed.",
        FASTER,
        SECTION,
        "figure1",
        tuple(
            f"{key}, {case}: {low:.2f} at the worst level"
            for key, each in levels.items()
            for case, r, low in zip(cases, each, least[key], strict=True)
            if not consistently_better(r)
        ),
        "Some greedy rule needs more iterations than a random one at some level",
        "For every seed, both problems, all four greedy rules and both random rules: never more "
        f"iterations at any of the 50 levels, and fewer on average. {SPEED}. {TIES}.",
        f"Speed against the random rules: {spread(x for xs in speeds.values() for x in xs)}; at "
        f"the worst level {spread(x for xs in least.values() for x in xs)}. Faster at every level "
        f"in {sum(fine)} of {len(fine)} cases.",
        {"speed": rounded(speeds), "at the worst level": rounded(least)},
    )


def li_change_greedy_little(compare: Compare, cases: list[str]) -> Claim:
    """Compare greedy rules with and without L_i on problems with similar L_i."""
    found = {rule: [mean(r) for r in compare(AS_IS, rule, "greedy")] for rule in WEIGHTED}
    return Claim(
        "li-changes-little",
        "Using the L_i changes little for greedy rules when they are similar.",
        LITTLE_CHANGE,
        SECTION,
        "figure1",
        except_where(alike, found, cases),
        f"The L_i change the iterations by more than a factor of {ALIKE_FACTOR}",
        f"{SPEED}. Against greedy: within a factor of {ALIKE_FACTOR} either way, for every seed.",
        f"Speed against greedy: {listed(found)}.",
        {"speed": rounded(found)},
    )


def li_help(compare: Compare, cases: list[str], rule: str) -> Claim:
    """Compare a rule that uses L_i with greedy on problems with different L_i."""
    found = {"speed": [mean(r) for r in compare(SCALED, rule, "greedy")]}
    return Claim(
        f"li-helps-{rule}",
        f"{rule} is faster than greedy when the L_i differ.",
        RATIO_TOO if rule == "ratio" else WORK_BETTER,
        SECTION,
        "figure3",
        except_where(better, found, cases),
        f"With steps that use the L_i, {rule} needs as many iterations as greedy for some seeds",
        f"{SPEED}. Against greedy: faster for every seed. {TIES}.",
        f"Speed against greedy, seed by seed: {', '.join(f'{x:.2f}' for x in found['speed'])}.",
        {"speed": rounded(found)},
    )


def ratio_is_close(compare: Compare, cases: list[str]) -> Claim:
    """Compare the approximation with the exact rules on problems with different L_i."""
    found = {
        f"against {rule}": [mean(r) for r in compare(SCALED, "ratio", rule)]
        for rule in ("gs-q-lipschitz", "gs-1-lipschitz")
    }
    return Claim(
        "ratio-is-close",
        "The ratio approximation is close to the exact weighted rules when the L_i differ.",
        "",
        "",
        "figure3",
        except_where(alike, found, cases),
        "The approximation weights each variable separately, the exact rules weight pairs, and the "
        f"speeds differ by more than a factor of {ALIKE_FACTOR}",
        f"{SPEED}. Of ratio against each exact rule: within a factor of {ALIKE_FACTOR} either way, "
        "for every seed.",
        f"Speed of ratio: {listed(found)}.",
        {"speed": rounded(found)},
    )


def li_change_random_little(compare: Compare, cases: list[str]) -> Claim:
    """Compare sampling by L_i with uniform sampling."""
    found = {
        f"columns {kind}": [mean(r) for r in compare(kind, "random-lipschitz", "random")]
        for kind in (AS_IS, SCALED)
    }
    return Claim(
        "li-random",
        "Knowing the L_i does not significantly change the random method.",
        LITTLE_CHANGE,
        SECTION,
        "figure1",
        except_where(alike, found, cases),
        "If the L_i differ, sampling by them rarely selects the variables with small L_i, "
        f"which changes the iterations by more than a factor of {ALIKE_FACTOR}",
        f"{SPEED}. Of random-lipschitz against random: within a factor of {ALIKE_FACTOR} either "
        "way, for both problems and every seed.",
        f"Speed of sampling by L_i against uniform sampling: {listed(found)}.",
        {"speed": rounded(found)},
    )


def listed(found: dict[str, list[float]]) -> str:
    """Return ranges by name as text."""
    return "; ".join(f"{name} {spread(xs)}" for name, xs in found.items())


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
