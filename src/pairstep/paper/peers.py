"""Beyond the paper: iterations and time of the rules and their peers, to a suboptimality of 1e-6.

The random pairs of Necoara and Patrascu (2014) are the rule "random" with the step "lipschitz".
`baselines` has the other peers. Beck's pair is a rule, `baselines.beck_pair`.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import Quadratic, SumBox, minimize
from . import baselines, bounded, support_vectors
from .baselines import Problem
from .claims import (
    FASTER_ON_AVERAGE,
    ByName,
    Claim,
    Cut,
    checked,
    ranges,
    read,
)
from .drawing import BLACK, LINES, PURPLE
from .experiment import Array, Experiment, Measured, Part, Results, Scale, part
from .problems import box_optimum, equality_minimum, least_squares
from .races import race
from .rules import propose

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

TARGET = 1e-6  # suboptimality relative to the start x = 0, or the center of the simplex
ROUNDING = 1e-13  # smaller coordinates and changes count as zero
TO_TARGET = "to 1e-6"
SIMILAR, DIFFERENT = "no bounds, similar L_i", "no bounds, very different L_i"
BOX, SIMPLEX = "bounds [-1, 1]", "simplex"
SYNTHETIC = SIMILAR, DIFFERENT, BOX, SIMPLEX
# Divisors of the sizes of the other experiments. Square Gaussian matrices are so badly conditioned
# that, without bounds and with n = 1000, NumPy would take hours.
FEWER_WITH_BOUNDS, FEWER_WITHOUT_BOUNDS, FEWER_ROWS = 5, 50, 5
# Iterations after which a run ends. Larger limits would take minutes and reach the target rarely.
MAX_NATIVE, MAX_PYTHON, MAX_NUMPY, MAX_FRANK_WOLFE = 1_000_000, 2_000, 20_000, 3_000

# The rules of this package with their steps. Without bounds, gs-s, gs-q, gs-1 and Beck's pair are
# the same rule, greedy.
BECK, RANDOM = "Beck", "random pairs"
RULES: dict[str, tuple[Any, str]] = {
    "gs-s": ("gs-s", "exact"),
    "gs-q": ("gs-q", "exact"),
    "gs-1": ("gs-1", "exact"),
    "libsvm": ("libsvm", "exact"),
    RANDOM: ("random", "lipschitz"),
    BECK: (baselines.beck_pair, "exact"),
}
CONJUGATE, PLANNING = "conjugate SMO", "planning-ahead SMO"
PAIR_METHODS = {
    CONJUGATE: baselines.conjugate_smo,
    PLANNING: baselines.planning_ahead_smo,
}
CORRECTED, PAIRWISE = "BPCG + QC", "pairwise FW"
FRANK_WOLFE = {
    "away-step FW": baselines.away_frank_wolfe,
    PAIRWISE: baselines.pairwise_frank_wolfe,
    "BPCG": baselines.blended_pairwise,
    CORRECTED: baselines.corrected_blended_pairwise,
    "simplex FW": baselines.simplex_frank_wolfe,
}
PAIR_RULES = "gs-s", "gs-q", "gs-1", "libsvm", BECK


def methods(problem: str) -> list[str]:
    """Return the methods that apply to a problem: Frank-Wolfe needs a bounded set."""
    if problem in (SIMILAR, DIFFERENT):
        return ["gs-s", "libsvm", RANDOM, CONJUGATE, PLANNING]
    return [
        *RULES,
        *PAIR_METHODS,
        *(m for m in FRANK_WOLFE if m != "simplex FW" or problem == SIMPLEX),
    ]


def size(scale: Scale, problem: str) -> int:
    """Return the number of variables, or of rows of a data set."""
    if problem in (SIMILAR, DIFFERENT):
        return max(scale.n // FEWER_WITHOUT_BOUNDS, 5)
    return scale.n // FEWER_WITH_BOUNDS if problem in SYNTHETIC else scale.rows // FEWER_ROWS


@lru_cache(maxsize=1)
def prepare(problem: str, n: int, seed: int) -> tuple[Problem, Array, float]:
    """Return a problem, its start and its optimum; cached for the next method."""
    if problem not in SYNTHETIC:
        f, box = support_vectors.dual(problem, n)
        optimum = minimize(f, box, tol=1e-10).fun
        bounds = np.asarray(box.lower), np.asarray(box.upper)
        return Problem(f.Q, f.c, 0.0, *bounds), np.zeros(len(f.c)), optimum
    if problem == SIMPLEX:
        A, b = bounded.simplex_problem(seed, n)
    else:
        A, b = least_squares(seed, n, problem == DIFFERENT)
    H, c, ones = A.T @ A, -A.T @ b, np.ones(n)
    if problem == SIMPLEX:
        return Problem(H, c, 1.0, 0 * ones, ones), ones / n, box_optimum(H, c, 1.0, 0.0)[1]
    if problem == BOX:
        return Problem(H, c, 0.0, -ones, ones), 0 * ones, box_optimum(H, c, 0.0, -1.0, 1.0)[1]
    free = Problem(H, c, 0.0, -math.inf * ones, math.inf * ones)
    return free, 0 * ones, free.value(equality_minimum(H, c, 0.0)[0])


def measure(problem: str, n: int, seed: int, method: str) -> Measured:
    """Run one method until the suboptimality is TARGET; iterations are -1 if it is not reached."""
    p, start, optimum = prepare(problem, n, seed)
    goal = optimum + TARGET * (p.value(start) - optimum)
    run = by_rule if method in RULES else by_baseline
    iterations, seconds = run(p, start, goal, method, seed)
    return {"iterations": np.array(iterations), "seconds": np.array(seconds)}


def by_rule(p: Problem, start: Array, goal: float, method: str, seed: int) -> tuple[int, float]:
    """Run a rule; return iterations and seconds."""
    rule, step = RULES[method]
    run = race(
        Quadratic(p.Q, p.c), SumBox(p.total, p.lower, p.upper), x0=start, rule=rule, step=step,
        tol=0.0, max_iter=MAX_PYTHON if callable(rule) else MAX_NATIVE, seed=seed,
    )  # fmt: skip
    found = np.flatnonzero(run["suboptimality"] <= goal)
    return (int(found[0]), float(run["seconds"][found[0]])) if len(found) else (-1, math.nan)


def by_baseline(p: Problem, start: Array, goal: float, method: str, seed: int) -> tuple[int, float]:
    """Run a baseline, none of which is random; return iterations and seconds."""
    began = time.perf_counter()
    run = PAIR_METHODS[method](p, start) if method in PAIR_METHODS else FRANK_WOLFE[method](p)
    most = MAX_NUMPY if method in PAIR_METHODS else MAX_FRANK_WOLFE
    for k, (_, value) in enumerate(itertools.islice(run, most), 1):
        if value <= goal:
            return k, time.perf_counter() - began
    return -1, math.nan


def same_steps(n: int, seed: int) -> Measured:
    """Compare the pairs of pairwise Frank-Wolfe on the simplex with those of gs-s.

    After an exact step, the derivatives of its two variables are equal, so pairs may tie, and the
    gap of the pair is compared, relative to the largest derivative. Steps end before the gap
    vanishes.
    """
    p, start, optimum = prepare(SIMPLEX, n, seed)
    goal = optimum + TARGET * (p.value(start) - optimum)
    x, differences = p.vertex(p.c), []
    for after, value in baselines.pairwise_frank_wolfe(p):
        g = p.Q @ x + p.c
        changed = np.flatnonzero(np.abs(after - x) > ROUNDING)
        down, up = (
            changed[np.argmin((after - x)[changed])],
            changed[np.argmax((after - x)[changed])],
        )
        step = propose("gs-s", g, x, 0.0, math.inf, alpha=1.0)
        gaps = g[down] - g[up], float(np.ptp(g[step.indices]))
        differences.append(abs(gaps[0] - gaps[1]) / np.abs(g).max() + (len(changed) != 2))
        if value <= goal:
            break
        x = np.where(after > ROUNDING, after, 0.0)
    return {"difference": np.array(max(differences))}


def part_of(scale: Scale, problem: str, seed: int, method: str) -> Part:
    """Return the part of one method on one problem."""
    return part(measure, problem=problem, n=size(scale, problem), seed=seed, method=method)


def identical(scale: Scale) -> list[Part]:
    """Return the parts that compare pairwise Frank-Wolfe with gs-s."""
    return [part(same_steps, n=size(scale, SIMPLEX), seed=seed) for seed in scale.seeds]


def runs(scale: Scale) -> list[Part]:
    """Return one part for every problem whose data are there, and every method."""
    there = [data for data in support_vectors.FILES if support_vectors.data_file(data)]
    return [
        part_of(scale, problem, seed, method)
        for problem in (*SYNTHETIC, *there)
        for seed in (scale.seeds if problem in SYNTHETIC else scale.seeds[:1])
        for method in methods(problem)
    ]


def panels(table: pd.DataFrame) -> dict[str, Callable[[Axes], None]]:
    """Return one panel per problem."""
    return {
        problem.replace("L_i", "$L_i$") if problem in SYNTHETIC else f"SVM dual, {problem}":
        partial(draw, rows=rows)
        for problem, rows in table.groupby("problem", sort=False)
    }  # fmt: skip


def draw(ax: Axes, rows: pd.DataFrame) -> None:
    """Draw a dot for the median iterations of each method, with its time as text."""
    columns = ["iterations", "seconds"]
    reached = rows.assign(**rows[columns].astype(float).where(rows.iterations > 0, math.inf))
    middle = reached.groupby("method")[columns].median().sort_values("iterations")
    for k, (method, (iterations, _)) in enumerate(middle.iterrows()):
        ax.plot(iterations, k, "o", color=color_of(method))
    took = ["not reached" if math.isinf(s) else f"{s:.2g} s" for s in middle.seconds]
    ax.set(xscale="log", xlabel="iterations", ylim=(len(middle) - 0.4, -0.6))
    ax.yaxis.tick_right()
    ax.set_yticks(range(len(middle)), map(", ".join, zip(middle.index, took, strict=True)))


def color_of(method: str) -> str:
    """Return the color of a method: purple for Frank-Wolfe, those of the rules, and else black."""
    if method in FRANK_WOLFE:
        return PURPLE
    return str(LINES.get(method.removesuffix(" pairs"), {"color": BLACK})["color"])


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Compare the peers with the rules, on the problems with bounds and several seeds."""

    def iterations(problem: str, method: str) -> Array:
        of = (results[part_of(scale, problem, seed, method)] for seed in scale.seeds)
        counts = np.array([float(run["iterations"]) for run in of])
        return np.where(counts > 0, counts, MAX_NATIVE)

    def compare(name: str, statement: str, method: str, over: tuple[str, ...], say: str) -> Claim:
        def found(cut: Cut) -> ByName:
            return {
                problem: np.min([iterations(problem, m) for m in over], axis=0)
                / iterations(problem, method)
                for problem in (BOX, SIMPLEX)
            }

        return Claim(
            name,
            statement,
            (
                read(
                    f"Iterations {TO_TARGET} of the start, on the problems with bounds [-1, 1] and "
                    "on the simplex. All rules take exact steps.",
                    f"Least of two speeds: the least iterations of {', '.join(over)} over those of "
                    f"{method}",
                    found, [TO_TARGET], FASTER_ON_AVERAGE,
                ),
            ),
            f"Speeds by seed: {ranges(found(TO_TARGET))}. {say}",
        )  # fmt: skip

    worst = max(float(results[p]["difference"]) for p in identical(scale))
    return [
        checked(
            "pairwise-frank-wolfe-is-gs-s",
            "On the simplex, pairwise Frank-Wolfe is gs-s with exact steps.",
            [f"difference {worst:.1e}"] if worst >= 1e-9 else [],
            f"Each iteration {TO_TARGET} changes two variables, and the gap of their derivatives "
            "is that of the pair of gs-s at the same point, for every seed.",
            f"Largest difference of the gaps, relative to the largest derivative: {worst:.1e}.",
            {"largest difference": worst},
        ),
        compare(
            "conjugate-smo-is-faster",
            "Conjugate SMO needs fewer iterations than the LIBSVM rule.",
            CONJUGATE,
            ("libsvm",),
            "Both choose the same kind of pair, and only the direction differs. On the simplex "
            "most iterations end at a bound, after which the direction is a plain one.",
        ),
        compare(
            "quadratic-corrections-need-fewest-iterations",
            "Blended pairwise conditional gradients with quadratic corrections need fewer "
            "iterations than every pair rule.",
            CORRECTED,
            PAIR_RULES,
            "An iteration solves a linear system with a row per active vertex, and is not "
            "comparable in time with a pair step, which costs O(n).",
        ),
    ]


EXPERIMENT = Experiment(
    "peers",
    "Peers of the method",
    "Iterations to a suboptimality of 1e-6 of the start; the text says the time on one thread. "
    "The problems of Figures 1 and 2 and the simplex are smaller here (n/50 variables without "
    "bounds, n/5 with bounds; medians over the seeds), and so are the duals (a fifth of "
    "the rows). The rules of pairstep are compiled. The methods in black and purple "
    "are NumPy, so their times include the interpreter's. Frank-Wolfe starts at a vertex and stops "
    "after 3000 iterations. BPCG is blended pairwise conditional gradients, and QC are "
    "quadratic corrections. Without bounds, gs-s, gs-q, gs-1 and Beck's pair are the same rule, "
    "and Frank-Wolfe does not apply.",
    lambda scale: [*runs(scale), *identical(scale)],
    ("iterations", "seconds"),
    claims,
    panels,
)
