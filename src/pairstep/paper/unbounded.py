"""Random and greedy rules without bounds: Figures 1 and 3, and sums with general weights.

The paper (appendix "General Equality Constraints") defines for ``sum a_i x_i = 0`` the greedy rule
``max (a_j g_i - a_i g_j)/(a_i + a_j)``, steepest descent in the 1-norm of x, with an O(n^2) search.
In the coordinates ``z_i = a_i x_i``, with derivatives ``g_i / a_i``, the 1-norm of x is
``sum |z_i| / |a_i|``. So this rule is gs-1-lipschitz with the constants ``1 / a_i^2``, which needs
only a few passes. Everything about general weights is beyond the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from .. import LeastSquares, Quadratic, SumBox, propose
from .claims import (
    ALIKE,
    ALIKE_FACTOR,
    FASTER_ON_AVERAGE,
    SPEED,
    ByName,
    Claim,
    Cut,
    Found,
    Horizon,
    Judge,
    Reading,
    checked,
    geometric_deviation,
    geometric_mean,
    iterations_to,
    ranges,
    read,
    speed,
    weakest,
)
from .drawing import curves
from .experiment import Array, Experiment, Measured, Part, Results, Scale, part
from .problems import equality_optimum, least_squares
from .races import FREE, race

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

RANDOM = "random", "random-lipschitz"
WEIGHTED = "gs-q-lipschitz", "gs-1-lipschitz", "ratio"
RULES = (*RANDOM, "greedy", *WEIGHTED)
DIRECT = "1-norm of x"  # the paper's rule for general weights
# The kinds of problems by their titles: columns of A as they are or scaled, or general weights.
AS_IS, SCALED, POSITIVE, SIGNED = "as is", "scaled", "positive weights", "signed weights"
TITLES = {AS_IS: "Similar $L_i$", SCALED: "Very different $L_i$",
          POSITIVE: "Positive weights", SIGNED: "Weights of both signs"}  # fmt: skip
PASSES, PASSES_WITH_WEIGHTS = 20, 10  # iterations per variable


class InNorm(Quadratic):
    """A quadratic whose weighted rules use given constants instead of its Lipschitz constants."""

    def __init__(self, Q: Array, c: Array, constants: Array):
        super().__init__(Q, c)
        self.constants = constants

    @property
    def lipschitz(self) -> Array:
        """The given constants."""
        return self.constants


def draw_weights(seed: int, n: int, kind: str) -> Array:
    """Draw log-normal weights, half of them negative if signed."""
    rng = np.random.default_rng([seed, 2])
    weights = np.exp(rng.standard_normal(n))
    return weights if kind == POSITIVE else weights * rng.choice([-1.0, 1.0], n)


@lru_cache(maxsize=1)
def problem(seed: int, n: int, kind: str) -> tuple[LeastSquares, Array | None, float]:
    """Return a problem, its weights and its optimum; cached for the next rule."""
    A, b = least_squares(seed, n, kind == SCALED)
    a = draw_weights(seed, n, kind) if kind in (POSITIVE, SIGNED) else None
    return LeastSquares(A, b), a, equality_optimum(A, b, a)


def measure(seed: int, n: int, kind: str, rule: str, repeat: int) -> Measured:
    """Run one rule, with steps that use the L_i of the pair, or with exact steps under weights."""
    f, a, optimum = problem(seed, n, kind)
    objective: LeastSquares | Quadratic = f
    constraint = FREE if a is None else SumBox(0.0, -math.inf, coefficients=a)
    if a is not None and rule == DIRECT:
        columns = f.A / a
        objective = InNorm(columns.T @ columns, -columns.T @ f.b, 1 / a**2)
        constraint, rule, optimum = FREE, "gs-1-lipschitz", optimum - 0.5 * float(f.b @ f.b)
    step, passes = ("lipschitz", PASSES) if a is None else ("exact", PASSES_WITH_WEIGHTS)
    measured = race(
        objective, constraint, optimum=optimum, repeat=repeat, rule=rule, step=step, tol=0.0,
        max_iter=passes * n, seed=seed,
    )  # fmt: skip
    return {name: measured[name] for name in ("suboptimality", "seconds")}


def part_of(scale: Scale, kind: str, seed: int, rule: str) -> Part:
    """Return the part of one rule on one problem; Figure 1 shows times of the first seed."""
    repeat = 5 if seed == scale.seeds[0] else 1
    return part(measure, seed=seed, n=scale.n, kind=kind, rule=rule, repeat=repeat)


def parts(scale: Scale, kinds: tuple[str, ...]) -> list[Part]:
    """Return one part for every rule and problem."""
    weights = "random", "greedy", DIRECT, "gs-1-lipschitz", "gs-q-lipschitz"
    rules = weights if POSITIVE in kinds else RULES
    return [part_of(scale, kind, s, rule) for kind in kinds for s in scale.seeds for rule in rules]


def draw(rows: pd.DataFrame, x: str = "iteration") -> Callable[[Axes], None]:
    """Return a panel of the suboptimality from the tenth iteration on."""
    return partial(
        curves, rows=rows[rows.iteration >= 10], x=x, y="suboptimality", xscale="log", yscale="log",
        ylabel="$f(x) - f^*$",
    )  # fmt: skip


def first_seed(
    table: pd.DataFrame, axes: Sequence[str] = ("iteration",)
) -> dict[str, Callable[[Axes], None]]:
    """Draw the problems of the first seed, against iterations or seconds."""
    rows = table[table.seed == table.seed[0]]
    return {
        TITLES[kind] + (", over time" if x == "seconds" else ""): draw(of, x)
        for x in axes
        for kind, of in rows.groupby("kind", sort=False)
    }


def seed_by_seed(table: pd.DataFrame) -> dict[str, Callable[[Axes], None]]:
    """Draw a panel for each seed."""
    return {f"Seed {seed}": draw(rows) for seed, rows in table.groupby("seed")}


# ---- Claims ----

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
ALIKE_ON_AVERAGE = weakest(geometric_mean, ALIKE)


def horizons(scale: Scale) -> tuple[Cut, ...]:
    """Return the horizons of the claims: 1000, 2000 and 20,000 iterations at n = 1000."""
    return scale.n, 2 * scale.n, PASSES * scale.n


def compared(results: Results, scale: Scale, of: Mapping[str, tuple[str, str, str]]) -> Found:
    """Compare rules: for each name a problem, a rule, and the rule that it is compared with."""

    @cache
    def curve(problem: str, seed: int, rule: str) -> Array:
        return results[part_of(scale, problem, seed, rule)]["suboptimality"]

    def found(cut: Cut) -> ByName:
        return {
            name: [
                speed(curve(problem, seed, rule), curve(problem, seed, over), cut)
                for seed in scale.seeds
            ]
            for name, (problem, rule, over) in of.items()
        }

    return found


def claim(
    name: str,
    statement: str,
    reading: str,
    value: str,
    found: Found,
    at: tuple[Cut, ...],
    say: str = "Speeds at the last horizon: {}.",
    judge: Judge = FASTER_ON_AVERAGE,
    others: tuple[Reading, ...] = (),
    sentence: str = "",
    source: str = SOURCE,
) -> Claim:
    """Return a claim about speeds; its result names their ranges at the last horizon."""
    return Claim(
        name, statement,
        (read(reading, f"{value}: {SPEED}", found, at, judge), *others),
        say.format(ranges(found(at[-1]))),
        sentence, source if sentence else "",
    )  # fmt: skip


def undetected(cut: Cut, found: ByName) -> Horizon:
    """Judge the reading that no difference can be detected: every interval contains 1."""
    estimates = [geometric_mean(xs) for xs in found.values()]
    shown = max(estimates, key=lambda e: abs(math.log(e.value))).at(cut, ALIKE)
    contain = [e.interval[0] <= 1 <= e.interval[1] for e in estimates if e.interval]
    return Horizon(cut, shown.value, shown.interval, all(contain) if shown.interval else None)


def no_difference(found: Found, at: tuple[Cut, ...]) -> tuple[Reading]:
    """Return the reading that no difference can be detected."""
    reading = (
        "Not significantly, in the sense of statistics: the interval contains 1, so that no "
        "difference can be detected"
    )
    return (read(reading, "The speed that differs most from 1", found, at, undetected),)


def claims_of_figure_1(results: Results, scale: Scale) -> list[Claim]:
    """Check what section 5 of the paper says about Figure 1."""
    at = horizons(scale)
    greedy = {
        f"{rule} against {rival}, columns {kind}": (kind, rule, rival)
        for kind in (AS_IS, SCALED)
        for rule in ("greedy", *WEIGHTED)
        for rival in RANDOM
    }
    with_li = compared(results, scale, {rule: (AS_IS, rule, "greedy") for rule in WEIGHTED})
    by_li = {f"columns {c}": (c, "random-lipschitz", "random") for c in (AS_IS, SCALED)}
    sampling = compared(results, scale, by_li)
    return [
        claim(
            "greedy-beats-random",
            "Greedy rules converge faster than random rules.",
            "All cases are the four greedy rules against both random rules on both problems. "
            f"{NOT_TO_THE_END}",
            "Least of 16 speeds",
            compared(results, scale, greedy),
            at,
            sentence=FASTER,
        ),
        claim(
            "li-changes-little",
            "Using the L_i changes little for greedy rules when they are similar.",
            f"Not significantly means by less than a factor of {ALIKE_FACTOR} either way. "
            f"{NOT_TO_THE_END}",
            "Speed against greedy of the rule that differs most",
            with_li,
            at,
            "Speed against greedy at the last horizon: {}.",
            ALIKE_ON_AVERAGE,
            no_difference(with_li, at),
            sentence=LITTLE_CHANGE,
        ),
        claim(
            "li-random",
            "Knowing the L_i does not significantly change the random method.",
            f"Not significantly means by less than a factor of {ALIKE_FACTOR} either way, on both "
            f"problems. {NOT_TO_THE_END}",
            "Speed of sampling by L_i against uniform sampling, where it differs most",
            sampling,
            at,
            "Speed of sampling by L_i at the last horizon: {}. If the L_i differ, sampling by them "
            "rarely selects the variables with small L_i, which matters late.",
            ALIKE_ON_AVERAGE,
            no_difference(sampling, at),
            sentence=LITTLE_CHANGE,
        ),
    ]


def claims_of_figure_3(results: Results, scale: Scale) -> list[Claim]:
    """Check what the paper says about very different L_i, and about different seeds."""
    at = horizons(scale)
    exact = {f"against {rule}": (SCALED, "ratio", rule) for rule in WEIGHTED if rule != "ratio"}
    return [
        *(
            claim(
                f"li-helps-{rule}",
                f"{rule} is faster than greedy when the L_i differ.",
                f"Work better means fewer iterations; the cost of a choice is a separate matter. "
                f"{NOT_TO_THE_END}",
                "Speed against greedy",
                compared(results, scale, {"speed": (SCALED, rule, "greedy")}),
                at,
                "Against greedy by seed, at the last horizon: {}.",
                sentence=RATIO_TOO if rule == "ratio" else WORK_BETTER,
            )
            for rule in WEIGHTED
        ),
        claim(
            "ratio-is-close",
            "The ratio approximation is close to the exact weighted rules when the L_i differ.",
            f"Close means within a factor of {ALIKE_FACTOR} either way, for both exact rules.",
            "Speed of ratio against the exact rule that differs most",
            compared(results, scale, exact),
            at,
            "Speed of ratio at the last horizon: {}. The approximation weights each variable "
            "separately, and the exact rules weight pairs.",
            ALIKE_ON_AVERAGE,
        ),
        seeds_are_similar(results, scale, at),
    ]


def seeds_are_similar(results: Results, scale: Scale, at: tuple[Cut, ...]) -> Claim:
    """Compare the iterations of each rule to the level that all seeds reach within a horizon."""
    relative = {
        rule: [
            curve / curve[0]
            for seed in scale.seeds
            for curve in [results[part_of(scale, SCALED, seed, rule)]["suboptimality"]]
        ]
        for rule in RULES
    }

    def found(cut: Cut) -> dict[str, list[float]]:
        iterations = {}
        for rule, runs in relative.items():
            level = np.array([max(float(run[: int(cut) + 1].min()) for run in runs)])
            iterations[rule] = [float(iterations_to(level, run)[0]) for run in runs]
        return iterations

    def widest(cut: Cut, found: ByName) -> Horizon:
        ratio = max(max(xs) / min(xs) for xs in found.values())
        return Horizon(cut, round(ratio, 3), None, ratio < ALIKE_FACTOR)

    return Claim(
        "seeds-are-similar",
        "The performance across different random seeds is similar.",
        (
            read(
                f"Similar means that one standard deviation over the seeds is a factor of less "
                f"than {ALIKE_FACTOR} in iterations, for every rule. The iterations are those to "
                "the level, relative to the start, that the slowest seed has reached at the "
                "horizon.",
                "Factor of one standard deviation, for the rule where it is largest",
                found, at, weakest(geometric_deviation, (-math.inf, ALIKE_FACTOR)),
            ),
            read(
                f"Similar for all seeds: the slowest needs less than {ALIKE_FACTOR} times the "
                "iterations of the fastest, for every rule",
                "Most over least iterations, for the rule where it is largest",
                found, at, widest,
            ),
        ),
        f"Iterations at the last horizon: {ranges(found(at[-1]))}.",
        "We see that the performance across different random seeds is similar.",
        "Appendix G, Figure 3",
    )  # fmt: skip


FIGURE_1 = Experiment(
    "figure1",
    "Figure 1. Random and greedy selection",
    "Least squares under sum x = 0; A is n by n standard normal, b = Ax + z. On the right each "
    "column of A is scaled by a standard normal sample. All rules take steps that use "
    "the L_i of the pair; first seed. The lower panels show the same runs over time, on one "
    "thread. The optimum is from a direct solve: one variable is eliminated, then a QR "
    "factorization.",
    partial(parts, kinds=(AS_IS, SCALED)),
    ("suboptimality", "seconds"),
    claims_of_figure_1,
    partial(first_seed, axes=("iteration", "seconds")),
)
FIGURE_3 = Experiment(
    "figure3",
    "Figure 3. Very different L_i, for four seeds",
    "The right panel of Figure 1 for four seeds (of the data and of the random rules).",
    partial(parts, kinds=(SCALED,)),
    ("suboptimality",),
    claims_of_figure_3,
    seed_by_seed,
)


# ---- General weights ----


def against_brute_force(seed: int, n: int, tries: int) -> Measured:
    """Compare the paper's rule, computed by gs-1-lipschitz, with a search over all pairs."""
    rng = np.random.default_rng([seed, 3])
    fast, brute = np.empty(tries), np.empty(tries)
    for k in range(tries):
        a, g = draw_weights(int(rng.integers(2**31)), n, SIGNED), rng.standard_normal(n)
        step = propose(
            "gs-1-lipschitz", g / a, np.zeros(n), -math.inf, math.inf, alpha=1.0, lipschitz=1 / a**2
        )
        i, j = step.indices
        fast[k] = abs(a[j] * g[i] - a[i] * g[j]) / (abs(a[i]) + abs(a[j]))
        gaps = np.abs(np.outer(g, a) - np.outer(a, g)) / (np.abs(a)[:, None] + np.abs(a))
        brute[k] = gaps.max()
    return {"fast": fast, "brute": brute}


def check_of(scale: Scale) -> Part:
    """Return the part that compares with brute force."""
    return part(against_brute_force, seed=0, n=min(scale.n, 300), tries=100)


def claims_about_weights(results: Results, scale: Scale) -> list[Claim]:
    """Check the claims about general weights."""
    gaps = results[check_of(scale)]
    worst = float(np.max(np.abs(gaps["fast"] / gaps["brute"] - 1)))
    at = (scale.n, 2 * scale.n, PASSES_WITH_WEIGHTS * scale.n)

    def compare(name: str, statement: str, rule: str, over: str, say: str) -> Claim:
        of = {kind: (kind, rule, over) for kind in (POSITIVE, SIGNED)}
        return claim(
            name, statement,
            "Fewer iterations with exact steps, on average over the seeds, for both kinds of "
            "weights.",
            "Least of two speeds",
            compared(results, scale, of), at,
            f"Speed of {rule} against {over} at the last horizon: {{}}. {say}",
        )  # fmt: skip

    return [
        checked(
            "weights-fast-rule-is-exact",
            "The greedy rule for general weights, for which the paper gives an O(n^2) search, is "
            "gs-1-lipschitz with the constants 1/a_i^2.",
            [f"relative difference {worst:.1e}"] if worst >= 1e-12 else [],
            "(a_j g_i - a_i g_j)/(|a_i| + |a_j|) of its pair against the largest over all pairs, "
            f"on {len(gaps['fast'])} random gradients and weights of both signs.",
            f"Largest relative difference {worst:.1e}.",
            {"largest difference": worst},
        ),
        compare(
            "weights-greedy-beats-random",
            "greedy also beats random with general weights.",
            "greedy",
            "random",
            "The largest derivatives g_i/a_i belong to the smallest weights, regardless of the "
            "possible decrease, so greedy keeps choosing among few variables.",
        ),
        compare(
            "weights-norm-matters",
            "The paper's rule (1-norm of x) beats greedy in the coordinates a_i x_i.",
            DIRECT,
            "greedy",
            "The coordinates imply a norm, and the norm matters.",
        ),
    ]


WEIGHTS = Experiment(
    "weights",
    "General weights",
    "The left problem of Figure 1 under sum a_i x_i = 0 with log-normal weights; exact steps, "
    "first seed. greedy, gs-1-lipschitz, gs-q-lipschitz and random use the coordinates a_i x_i; "
    "the rule “1-norm of x” is the paper's for this constraint, computed in a few passes over n.",
    lambda scale: [*parts(scale, (POSITIVE, SIGNED)), check_of(scale)],
    ("suboptimality",),
    claims_about_weights,
    first_seed,
)
