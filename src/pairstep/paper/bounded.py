"""gs-s, gs-q and gs-1 with bounds: Figures 2, 4, 5 and 6, and the probability simplex.

The simplex, which has only lower bounds, is beyond the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import LeastSquares, SumBox
from .claims import (
    ALIKE_FACTOR,
    FASTER_ON_AVERAGE,
    SPEED,
    TIE,
    TO_LOWEST,
    Accepts,
    ByName,
    Claim,
    Cut,
    Found,
    Horizon,
    Reading,
    consistent,
    every_seed,
    geometric_mean,
    last_iteration,
    mean,
    never_behind,
    percent,
    ranges,
    read,
    speed,
    weakest,
)
from .drawing import LINES, curves
from .experiment import Array, Experiment, Measured, Part, Results, Scale, part
from .problems import box_optimum, least_squares
from .races import identified_at, race

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

RULES = "gs-s", "gs-q", "gs-1"
BOX, SIMPLEX_BOUNDS = "box", "simplex"
LOWEST_DRAWN = 1e-6  # suboptimality, relative to the start
ALL_FINAL = "to the final active set"
COLUMNS = "suboptimality", "interior", "not_final", "moved"


@lru_cache(maxsize=1)
def problem(seed: int, n: int, bounds: str) -> tuple[LeastSquares, SumBox, Array, float]:
    """Return a problem, its optimal point and its optimum; cached for the next rule."""
    A, b = least_squares(seed, n) if bounds == BOX else simplex_problem(seed, n)
    limits = (0.0, -1.0, 1.0) if bounds == BOX else (1.0, 0.0, math.inf)
    best, value = box_optimum(A.T @ A, -A.T @ b, *limits)
    return LeastSquares(A, b), SumBox(*limits), best, value + 0.5 * float(b @ b)


def simplex_problem(seed: int, n: int) -> tuple[Array, Array]:
    """Draw the A of the box, with an x that is uniform on the probability simplex."""
    A, _ = least_squares(seed, n)
    rng = np.random.default_rng([seed, 1])
    x = rng.exponential(size=n)
    return A, A @ (x / x.sum()) + rng.standard_normal(n)


def measure(seed: int, n: int, bounds: str, rule: str) -> Measured:
    """Run one rule to convergence with the step 1/L2 of the theorems, and record its active set."""
    f, constraint, best, optimum = problem(seed, n, bounds)
    measured = race(
        f, constraint, optimum=optimum, final=best, rule=rule, step="1/L2", tol=1e-9,
        max_iter=500 * n,
    )  # fmt: skip
    return {column: measured[column] for column in COLUMNS}


def part_of(scale: Scale, bounds: str, seed: int, rule: str) -> Part:
    """Return the part of one rule on one problem."""
    return part(measure, seed=seed, n=scale.n, bounds=bounds, rule=rule)


def parts(scale: Scale, bounds: str) -> list[Part]:
    """Return one part for every rule and problem."""
    return [part_of(scale, bounds, seed, rule) for seed in scale.seeds for rule in RULES]


# ---- Drawing ----


def other_than_two(run: Measured) -> NDArray[np.int64]:
    """Return the iterations that did not update two variables."""
    return np.flatnonzero(run["moved"] != 2)


def draw_objective(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the suboptimality of all rules down to LOWEST_DRAWN."""
    lowest = LOWEST_DRAWN * rows.suboptimality.max()
    ends = rows[rows.suboptimality > lowest].groupby("rule").iteration.max()
    # If the rules are similarly fast, stop with the fastest one, so that the order of the curves
    # is visible; otherwise stop with the slowest.
    last = ends.max() if ends.max() > 2 * ends.min() else ends.min()
    curves(
        ax, rows, "iteration", "suboptimality", yscale="log", ylabel="$f(x) - f^*$",
        xlim=(0, last), ylim=(lowest, 2 * rows.suboptimality.max()),
    )  # fmt: skip


def draw_interior(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw the number of variables strictly between their bounds."""
    seen = rows[rows.iteration > 0]
    curves(ax, seen, "iteration", "interior", xscale="log", ylabel="interior variables")


def draw_moved(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw how many variables gs-1 updates per iteration, and how often each number occurs."""
    seen = rows[(rows.rule == "gs-1") & (rows.iteration > 0)]
    last = int(seen.iteration.max())
    others = seen.moved[seen.moved != 2].value_counts().sort_index()  # the table keeps them all
    often = {2: last - others.sum()} | others.to_dict()
    ax.set(xscale="log", xlabel="iteration", ylabel="variables updated")
    if max(often) > 12:
        ax.set_yscale("log")
    label = "\n".join(f"{k}: {percent(count / last)}" for k, count in list(often.items())[:4])
    ax.plot(seen.iteration, seen.moved, ".", alpha=0.45, label=label, color=LINES["gs-1"]["color"])
    ax.legend(handlelength=0, markerscale=0)


# The title and the drawing function of each column.
PANELS: dict[str, tuple[str, Callable[..., None]]] = {
    "suboptimality": ("Objective", draw_objective),
    "interior": ("Interior variables", draw_interior),
    "moved": ("Variables that gs-1 updates", draw_moved),
}


def first_seed(table: pd.DataFrame) -> dict[str, Callable[[Axes], None]]:
    """Draw a panel for each column, for the first seed."""
    rows = table[table.seed == table.seed[0]]
    return {title: partial(draw, rows=rows) for title, draw in PANELS.values()}


def seed_by_seed(table: pd.DataFrame, column: str) -> dict[str, Callable[[Axes], None]]:
    """Draw a panel for each seed, for one column."""
    _, draw = PANELS[column]
    return {f"Seed {seed}": partial(draw, rows=rows) for seed, rows in table.groupby("seed")}


# ---- What the claims compare ----


class Runs:
    """The measurements of all seeds and rules within some bounds."""

    def __init__(self, results: Results, scale: Scale, bounds: str):
        self.seeds = scale.seeds
        self.of = {
            (seed, rule): results[part_of(scale, bounds, seed, rule)]
            for seed in scale.seeds
            for rule in RULES
        }

    def against_gs_s(self, compare: Callable[[Array, Array, Cut], float]) -> Found:
        """Compare the curves of gs-q and gs-1 with that of gs-s, for each seed."""
        curve = {key: run["suboptimality"] for key, run in self.of.items()}
        return lambda cut: {
            rule: [compare(curve[seed, rule], curve[seed, "gs-s"], cut) for seed in self.seeds]
            for rule in ("gs-q", "gs-1")
        }

    def last(self, seed: int, cut: Cut) -> int:
        """Return the last iteration of any rule within a horizon."""
        return max(last_iteration(self.of[seed, r]["suboptimality"], cut) for r in RULES)

    def counts(self, seed: int, column: str, cut: Cut) -> dict[str, float]:
        """Return a count of variables at a horizon, by rule and at least 1, so that ratios exist.

        All rules are compared at the same iteration. To 1e-9, it is that of the slowest rule. A run
        that has ended keeps its last count. To the final active set, iterations are counted.
        """
        run = {rule: self.of[seed, rule][column] for rule in RULES}
        if cut == ALL_FINAL:
            return {rule: float(max(identified_at(x), 1)) for rule, x in run.items()}
        last = self.last(seed, cut)
        return {rule: float(max(x[min(last, len(x) - 1)], 1)) for rule, x in run.items()}

    def not_final(self, rule: str, rival: Callable[..., float]) -> Found:
        """Compare variables that are not final: a rule over the most or least of the others."""

        def found(cut: Cut) -> dict[str, list[float]]:
            counts = [self.counts(seed, "not_final", cut) for seed in self.seeds]
            return {"ratio": [of.pop(rule) / rival(of.values()) for of in counts]}

        return found

    def share(self, least: float, most: float) -> Found:
        """Return the fraction of the iterations of gs-1 that update so many variables."""

        def found(cut: Cut) -> dict[str, list[float]]:
            moved = [self.moved(seed, cut) for seed in self.seeds]
            return {"fraction": [float(np.mean((m >= least) & (m <= most))) for m in moved]}

        return found

    def moved(self, seed: int, cut: Cut) -> Array:
        """Return how many variables gs-1 updates in each iteration within a horizon."""
        run = self.of[seed, "gs-1"]
        return run["moved"][1 : last_iteration(run["suboptimality"], cut) + 1]


def horizons(scale: Scale) -> tuple[Cut, ...]:
    """Return the horizons in the box: 1000, 2000 and 20,000 iterations at n = 1000, and to 1e-9."""
    return scale.n, 2 * scale.n, 20 * scale.n, TO_LOWEST


def early_horizons(scale: Scale) -> tuple[Cut, ...]:
    """Return horizons before all rules have the active set of the optimum, where they must tie."""
    return scale.n, 2 * scale.n, 5 * scale.n


# ---- Claims ----

SECTION_5 = "Section 5, second experiment, Figure 2"
SECTION_3 = "Section 3.3, last paragraph"
SLOWEST = (
    "We see that the GS-s rule results in the slowest convergence rate, while the GS-q rule rule "
    "takes the longest to identify the active set."
)
TYPICALLY = (
    "The GS-1 rule typically updates 2 variables, but occasionally updates 3 variables and rarely "
    "updates 4 or 5 variables."
)
OVER_85 = (
    r"Finally, we see that the GS-1 rule only updates 2 variables on most iterations (over 85\%) "
    "while it updates 3 or fewer variables on all but a few iterations."
)
SUPPORT_VECTORS = (
    "In our experiments, we found that GS-1 identified the support vectors more quickly than other "
    "rules and that most GS-1 updates only updated 2 or 3 coordinates."
)
ADVANTAGES = (
    "We see that the GS-q and GS-1 have a small but consistent advantage in terms of decreasing "
    "the objective while the GS-s and GS-1 rules have a consistent advantage in terms of moving "
    "variables to the boundaries."
)
CONSISTENT = (
    "Consistent means across the seeds: no seed is behind by more than a tie, and the mean is ahead"
)
NOT_FINAL = (
    "A variable is final if it is at the bound, or between the bounds, where it is at the optimum"
)
FRACTIONS = "Mean fraction of the iterations within the horizon"
# Fractions of iterations: what counts as rare, a more generous limit, and "most (over 85%)".
RARELY, OFTEN, MOST = 0.01, 0.05, 0.85
NEITHER_BEHIND = "Fraction of seeds in which neither gs-q nor gs-1 is behind gs-s"


def on_average(least: float, most: float = math.inf) -> Callable[[Cut, ByName], Horizon]:
    """Return the judge of a mean over the seeds."""
    accepts: Accepts = (least, most)
    return weakest(mean, accepts)


def slowest(runs: Runs, at: Sequence[Cut]) -> Reading:
    """Return the reading that gs-s is slowest."""
    return read(
        "Slowest means that both gs-q and gs-1 need fewer iterations on average over the seeds.",
        f"Speed against gs-s of the slower of gs-q and gs-1: {SPEED}",
        runs.against_gs_s(speed), at, FASTER_ON_AVERAGE,
    )  # fmt: skip


def first_to_identify(runs: Runs, at: Sequence[Cut]) -> Reading:
    """Return the reading that gs-1 is the first to identify the active set."""
    over_rivals = runs.not_final("gs-1", min)
    return read(
        "At a number of iterations: gs-1 has fewer variables that are not final. To the final "
        f"active set: it needs fewer iterations. {NOT_FINAL}.",
        "The smaller of gs-s and gs-q over gs-1: variables that are not final at the horizon, or "
        "iterations",
        lambda cut: {name: [1 / x for x in xs] for name, xs in over_rivals(cut).items()},
        at, FASTER_ON_AVERAGE,
    )  # fmt: skip


def updates_two(runs: Runs, at: Sequence[Cut]) -> Reading:
    """Return the reading that gs-1 updates two variables on most iterations."""
    mean_share = "The mean over the seeds is above 85%."
    return read(mean_share, FRACTIONS, runs.share(2, 2), at, on_average(MOST))


def claims_of_figure_2(results: Results, scale: Scale) -> list[Claim]:
    """Check what the paper says about Figure 2, for all seeds."""
    runs = Runs(results, scale, BOX)
    at, to_final = horizons(scale), (*early_horizons(scale), ALL_FINAL)
    found, last = runs.against_gs_s(speed), runs.not_final("gs-q", max)
    final = [runs.counts(seed, "not_final", ALL_FINAL) for seed in scale.seeds]
    iterations = ", ".join(f"{r} {np.mean([of[r] for of in final]):,.0f}" for r in RULES)
    most = [int(runs.of[seed, "gs-1"]["moved"][1:].max()) for seed in scale.seeds]
    four, two_or_three = runs.share(4, math.inf), runs.share(0, 3)

    return [
        Claim(
            "gs-s-is-slowest",
            "With bounds, gs-s converges slowest of the three rules.",
            (
                slowest(runs, at),
                read("Slowest for every seed, up to ties", NEITHER_BEHIND, found, at, consistent),
            ),
            f"Speed against gs-s by seed: {ranges(found(at[1]))} at the second horizon; "
            f"{ranges(found(at[-1]))} {at[-1]}.",
            SLOWEST, SECTION_5,
        ),
        Claim(
            "gs-q-identifies-active-set-last",
            "gs-q takes longest to identify the active set.",
            (
                read(
                    "At a number of iterations: gs-q has more variables that are not final than "
                    "gs-s and gs-1. To the final active set: it needs more iterations until all "
                    "are final.",
                    "gs-q over the larger of gs-s and gs-1: variables that are not final at the "
                    "horizon, or iterations",
                    last, to_final, FASTER_ON_AVERAGE,
                ),
                read(
                    "For every seed, up to ties", "Fraction of seeds in which gs-q is not ahead",
                    last, to_final, consistent,
                ),
            ),
            f"{NOT_FINAL}. Iterations to the final active set, mean over the seeds: {iterations}. "
            "The last few variables become final late, by chance.",
            SLOWEST, SECTION_5,
        ),
        Claim(
            "gs-1-identifies-active-set-first",
            "gs-1 identifies the active set more quickly than gs-s and gs-q.",
            (first_to_identify(runs, to_final),),
            "The paper reports no experiment on an SVM. We read support vectors as the variables "
            "of its second experiment that are not at a bound, and other rules as gs-s and gs-q. "
            "Duals of SVMs are measured separately, beyond the paper. gs-1 is ahead of the other "
            "rules in the first iterations, and level with them at the end.",
            SUPPORT_VECTORS, SECTION_3,
        ),
        Claim(
            "gs-1-rarely-updates-four-or-five",
            "gs-1 rarely updates 4 or 5 variables.",
            (
                read(
                    "Rarely means 4 or more variables on less than 1% of the iterations.",
                    FRACTIONS, four, at, on_average(-math.inf, RARELY),
                ),
                read(
                    "Rarely means on less than 5% of the iterations",
                    FRACTIONS, four, at, on_average(-math.inf, OFTEN),
                ),
                read(
                    "Literally: there are updates of 4 or 5 variables, but of no more than 5",
                    "Fraction of seeds",
                    lambda cut: {"most": [int(runs.moved(s, cut).max()) for s in scale.seeds]},
                    at, every_seed(lambda most: most <= 5),
                ),
            ),
            f"The most variables at once are {min(most)} to {max(most)}, depending on the seed.",
            TYPICALLY, SECTION_5,
        ),
        Claim(
            "most-gs-1-updates-are-of-two-or-three",
            "Most gs-1 updates only update 2 or 3 variables.",
            (
                read(
                    "Most means more than half of the iterations.",
                    FRACTIONS, two_or_three, at, on_average(0.5),
                ),
            ),
            "This holds by a wide margin.",
            SUPPORT_VECTORS, SECTION_3,
        ),
    ]  # fmt: skip


def claims_of_figure_4(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says about Figure 4."""
    runs = Runs(results, scale, BOX)
    at, found = horizons(scale), runs.against_gs_s(speed)

    def consistent_and_small(cut: Cut, found: ByName) -> Horizon:
        horizon = consistent(cut, found)
        small = all(geometric_mean(xs).value < ALIKE_FACTOR for xs in found.values())
        return replace(horizon, holds=horizon.holds and small)

    return [
        Claim(
            "small-advantage-in-objective",
            "gs-q and gs-1 have a small but consistent advantage in the objective.",
            (
                read(
                    f"The advantage is over gs-s. {CONSISTENT}, and small means a mean speed of "
                    f"less than {ALIKE_FACTOR}. Speed is {SPEED}.",
                    NEITHER_BEHIND, found, at, consistent_and_small,
                ),
                read(
                    "Consistent means at every iteration, for every seed: never behind gs-s by "
                    "more than a tie at any of 50 levels within the horizon, and ahead at its end",
                    "Fraction of seeds", runs.against_gs_s(never_behind), at, every_seed(min),
                ),
            ),
            f"Speed against gs-s by seed: {ranges(found(at[1]))} at the second horizon; "
            f"{ranges(found(at[-1]))} {at[-1]}.",
            ADVANTAGES,
            "Appendix G, Figure 4",
        )
    ]  # fmt: skip


def claims_of_figure_5(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says about Figure 5."""
    runs, at, rules = Runs(results, scale, BOX), early_horizons(scale), ("gs-s", "gs-1")

    def found(cut: Cut) -> dict[str, list[float]]:
        of = [runs.counts(seed, "interior", cut) for seed in scale.seeds]
        return {rule: [each["gs-q"] / each[rule] for each in of] for rule in rules}

    def most_over_gs_q(cut: Cut) -> dict[str, list[float]]:
        """The most interior variables of a rule over those of gs-q, up to the horizon."""
        ratios: dict[str, list[float]] = {rule: [] for rule in rules}
        for seed in scale.seeds:
            k = np.arange(runs.last(seed, cut) + 1)
            run = {rule: runs.of[seed, rule]["interior"] for rule in RULES}
            of = {rule: x[np.minimum(k, len(x) - 1)] for rule, x in run.items()}
            for rule in rules:
                ratios[rule].append(float(np.max(of[rule] / np.maximum(of["gs-q"], 1e-300))))
        return ratios

    return [
        Claim(
            "gs-s-and-gs-1-reach-bounds-sooner",
            "gs-s and gs-1 have a consistent advantage in moving variables to their bounds.",
            (
                read(
                    "The advantage is over gs-q: fewer variables strictly between their bounds at "
                    f"the horizon. {CONSISTENT}. All rules end at the same optimum, so "
                    "later horizons must show a tie.",
                    "Fraction of seeds in which neither gs-s nor gs-1 has more interior variables",
                    found, at, consistent,
                ),
                read(
                    "Consistent means at every iteration: never more interior variables than gs-q "
                    "by more than a tie within the horizon, for every seed",
                    "Fraction of seeds", most_over_gs_q, at,
                    every_seed(lambda *ratios: max(ratios) <= TIE),
                ),
            ),
            f"Interior variables of gs-q over those of the rule: {ranges(found(at[0]))} at the "
            f"first horizon; {ranges(found(at[1]))} at the second.",
            ADVANTAGES,
            "Appendix G, Figure 5",
        )
    ]  # fmt: skip


def claims_of_figure_6(results: Results, scale: Scale) -> list[Claim]:
    """Check how many variables gs-1 updates."""
    runs, at = Runs(results, scale, BOX), horizons(scale)
    two, three = runs.share(2, 2), runs.share(0, 3)

    def say(found: Found, cut: Cut) -> str:
        shares = found(cut)["fraction"]
        return f"{percent(min(shares))} to {percent(max(shares))}"

    return [
        Claim(
            "gs-1-updates-two",
            "gs-1 updates 2 variables on more than 85% of iterations.",
            (updates_two(runs, at),),
            f"Early iterations update more variables: {say(two, at[0])} update 2 within the first "
            f"horizon, and {say(two, at[1])} within the second, which suggests that the paper ran "
            "about 2 n iterations.",
            OVER_85,
            "Appendix G, Figure 6",
        ),
        Claim(
            "gs-1-updates-three-or-fewer",
            "gs-1 updates 3 or fewer variables on all but a few iterations.",
            tuple(
                read(
                    f"All but a few means on more than {percent(1 - few)} of the iterations.",
                    FRACTIONS, three, at, on_average(1 - few),
                )
                for few in (RARELY, OFTEN)
            ),
            f"{say(three, at[0])} within the first horizon.",
            OVER_85,
            "Appendix G, Figure 6",
        ),
    ]  # fmt: skip


def claims_about_the_simplex(results: Results, scale: Scale) -> list[Claim]:
    """Check on the simplex what the paper observes in a box.

    All rules converge within about 1.5 n iterations, so the horizons are shorter than in the box.
    """
    runs = Runs(results, scale, SIMPLEX_BOUNDS)
    to_lowest: tuple[Cut, ...] = (scale.n // 10, scale.n // 5, TO_LOWEST)
    to_final = (*to_lowest[:2], ALL_FINAL)
    most = max(int(runs.of[seed, "gs-1"]["moved"].max()) for seed in scale.seeds)
    speeds = runs.against_gs_s(speed)(TO_LOWEST)
    return [
        Claim(
            "simplex-gs-s-is-slowest",
            "gs-s also converges slowest on the simplex.",
            (slowest(runs, to_lowest),),
            f"Speed against gs-s {TO_LOWEST}: {ranges(speeds)}. Without upper "
            "bounds gs-q makes almost the same choices as gs-s, and ties with it.",
        ),
        Claim(
            "simplex-gs-1-identifies-active-set-first",
            "On the simplex gs-1 is the first to identify the active set.",
            (first_to_identify(runs, to_final),),
            "The first iterations of gs-1 set many variables to zero at once.",
        ),
        Claim(
            "simplex-gs-1-updates-two",
            "gs-1 also updates 2 variables on more than 85% of iterations on the simplex.",
            (updates_two(runs, to_lowest),),
            "From the center of the simplex the first iterations set many variables to zero at "
            f"once, at most {most}.",
        ),
    ]  # fmt: skip


FIGURE_2 = Experiment(
    "figure2",
    "Figure 2. Greedy rules under bounds",
    "The left problem of Figure 1 with every variable in [-1, 1]; step 1/L2, and 1/L1 for gs-1; "
    "first seed. A variable is interior while it is strictly between its bounds. On the right, a "
    "dot per iteration of gs-1, with the fraction of iterations next to each number. The optimum "
    "is from a linear solve on its active set, and the signs of the multipliers prove it.",
    partial(parts, bounds=BOX),
    COLUMNS,
    claims_of_figure_2,
    first_seed,
    per_row=3,
    also=other_than_two,
)
FIGURES_4_TO_6 = tuple(
    Experiment(
        name,
        f"Figure {name[-1]}. {what}, for four seeds",
        f"The {where} panel of Figure 2 for four seeds.",
        partial(parts, bounds=BOX),
        (column,),
        claims,
        partial(seed_by_seed, column=column),
        also=other_than_two,
    )
    for name, what, where, column, claims in (
        ("figure4", "Objective under bounds", "left", "suboptimality", claims_of_figure_4),
        ("figure5", "Interior variables", "middle", "interior", claims_of_figure_5),
        ("figure6", "Variables that gs-1 updates", "right", "moved", claims_of_figure_6),
    )
)
SIMPLEX = Experiment(
    "simplex",
    "Only lower bounds: the probability simplex",
    "Least squares over the probability simplex, x >= 0 and sum x = 1, from its center; A is "
    "standard normal, b = Ax + z with x uniform on the simplex; steps as in Figure 2, first seed.",
    partial(parts, bounds=SIMPLEX_BOUNDS),
    COLUMNS,
    claims_about_the_simplex,
    first_seed,
    per_row=3,
    also=other_than_two,
)
