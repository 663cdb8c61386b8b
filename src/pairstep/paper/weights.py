"""Beyond the paper: the constraint ``sum a_i x_i = 0`` with general weights.

The paper (appendix "General Equality Constraints") defines the greedy rule ``max (a_j g_i - a_i
g_j)/(a_i + a_j)``, steepest descent in the 1-norm of x, with an O(n^2) search. In the coordinates
``z_i = a_i x_i``, with derivatives ``g_i / a_i``, the 1-norm of x is ``sum |z_i| / |a_i|``. So this
rule is gs-1-lipschitz with the constants ``1 / a_i^2``, which needs only a few passes.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from .. import LeastSquares, Quadratic, SumBox, propose
from .claims import (
    ADVANTAGE,
    SPEED,
    TIES,
    Claim,
    Cut,
    Kind,
    by_cut,
    geometric_mean,
    ranges,
    speed,
    unless,
    weakest,
    without_horizon,
)
from .experiment import Experiment, Panel, Scale
from .parts import Measured, Part, Results, part
from .problems import Array, equality_optimum, least_squares
from .races import Race
from .style import BLACK, curve, label_ends
from .tables import Table, by_iteration, distinct, first, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DIRECT = "1-norm of x"  # the paper's rule
RULES = "random", "greedy", DIRECT, "gs-1-lipschitz", "gs-q-lipschitz"
JUDGED = "random", "greedy", DIRECT  # rules with claims
POSITIVE, SIGNED = "positive", "signed"
PASSES = 10  # iterations per variable
FIRST_DRAWN = 10  # iteration; the axis is logarithmic


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
def problem(seed: int, n: int, kind: str) -> tuple[LeastSquares, Array, float]:
    """Return a problem, its weights and its optimum; cached for the next rule."""
    A, b = least_squares(seed, n)
    a = draw_weights(seed, n, kind)
    return LeastSquares(A, b), a, equality_optimum(A, b, a)


def measure(seed: int, n: int, kind: str, rule: str) -> Measured:
    """Run one rule with exact steps on one problem."""
    f, a, optimum = problem(seed, n, kind)
    if rule == DIRECT:
        columns = f.A / a
        objective = InNorm(columns.T @ columns, -columns.T @ f.b, 1 / a**2)
        race = Race(objective, SumBox(0.0, -math.inf), "gs-1-lipschitz", "exact", PASSES * n)
        measured = race.run(optimum - 0.5 * float(f.b @ f.b))
    else:
        race = Race(f, SumBox(0.0, -math.inf, coefficients=a), rule, "exact", PASSES * n, seed=seed)
        measured = race.run(optimum)
    return {name: measured[name] for name in ("suboptimality", "seconds")}


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


def check(scale: Scale) -> Part:
    """Return the part that compares with brute force."""
    return part(against_brute_force, seed=0, n=min(scale.n, 300), tries=100)


def races(scale: Scale) -> list[Part]:
    """Return one part for every rule and problem; rules without claims run with one seed."""
    return [
        part(measure, seed=seed, n=scale.n, kind=kind, rule=rule)
        for kind in (POSITIVE, SIGNED)
        for seed in scale.seeds
        for rule in (RULES if seed == scale.seeds[0] else JUDGED)
    ]


def parts(scale: Scale) -> list[Part]:
    """Return all parts."""
    return [*races(scale), check(scale)]


def tables(results: Results, scale: Scale) -> dict[str, Table]:
    """Return the suboptimality of each iteration."""
    given = {"weights": "kind", "seed": "seed", "rule": "rule"}
    drawn = [p for p in races(scale) if dict(p.parameters)["seed"] in scale.drawn]
    return by_iteration(results, drawn, "weights", given, ("suboptimality",))


def panels(tables: dict[str, Table]) -> list[Panel]:
    """Return one panel for each kind of weights, for the first seed."""
    table = tables["weights"]
    return [
        Panel("Positive weights", partial(draw, table=table, kind=POSITIVE)),
        Panel("Weights of both signs", partial(draw, table=table, kind=SIGNED)),
    ]


def draw(ax: Axes, table: Table, kind: str) -> None:
    """Draw suboptimality for all rules."""
    rows = where(table, weights=kind, seed=first(table, "seed"))
    ax.set(xscale="log", yscale="log", xlabel="iterations", ylabel="$f(x) - f^*$")
    ax.set_xlim(FIRST_DRAWN, rows["iteration"].max())
    ends = []
    for rule in distinct(rows, "rule"):
        of_rule = where(rows, rule=rule)
        seen = of_rule["iteration"] >= FIRST_DRAWN
        x, y = of_rule["iteration"][seen], of_rule["suboptimality"][seen]
        if rule == DIRECT:
            ax.plot(x, y, color=BLACK, linestyle=(0, (4, 1.5)))
            ends.append((float(x[-1]), float(y[-1]), f"{DIRECT}", BLACK))
        else:
            ends.append(curve(ax, x, y, rule))
    label_ends(ax, ends)


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check the claims about general weights."""
    checked = results[check(scale)]
    worst = float(np.max(np.abs(checked["fast"] / checked["brute"] - 1)))
    of = {p.parameters: results[p]["suboptimality"] for p in races(scale)}
    at: tuple[Cut, ...] = (scale.n, 2 * scale.n, PASSES * scale.n)

    def speeds(rule: str, over: str, cut: Cut) -> dict[str, list[float]]:
        def curve_of(kind: str, seed: int, rule: str) -> Array:
            return of[part(measure, seed=seed, n=scale.n, kind=kind, rule=rule).parameters]

        return {
            f"{kind} weights": [
                speed(curve_of(kind, seed, rule), curve_of(kind, seed, over), cut)
                for seed in scale.seeds
            ]
            for kind in (POSITIVE, SIGNED)
        }

    def compare(name: str, statement: str, rule: str, over: str, found: str) -> Claim:
        def speeds_at(cut: Cut) -> dict[str, list[float]]:
            return speeds(rule, over, cut)

        return Claim(
            name,
            Kind.BEYOND,
            statement,
            "",
            "",
            f"Fewer iterations with exact steps, on average over the seeds, for both kinds of "
            f"weights. {TIES}.",
            "weights",
            f"Least of two speeds: {SPEED}",
            tuple(weakest(c, map(geometric_mean, speeds_at(c).values()), ADVANTAGE) for c in at),
            f"Speed of {rule} against {over} at the last horizon: {ranges(speeds_at(at[-1]))}. "
            f"{found}",
            {"speed": by_cut(speeds_at, at)},
        )

    return [
        without_horizon(
            "weights-fast-rule-is-exact",
            "The greedy rule for general weights, for which the paper gives an O(n^2) search, is "
            "gs-1-lipschitz with the constants 1/a_i^2.",
            "",
            "",
            "weights",
            unless(worst < 1e-12, f"relative difference {worst:.1e}"),
            "Some choice is not the best of all pairs",
            "(a_j g_i - a_i g_j)/(|a_i| + |a_j|) of its pair against the largest over all pairs, "
            f"on {len(checked['fast'])} random gradients and weights of both signs.",
            f"Largest relative difference {worst:.1e}.",
            {"largest relative difference": worst},
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


EXPERIMENT = Experiment(
    "weights",
    "General weights",
    "The left problem of Figure 1 under sum a_i x_i = 0 with log-normal weights; exact steps, "
    "first seed. greedy, gs-1-lipschitz, gs-q-lipschitz and random use the coordinates a_i x_i; "
    "the rule “1-norm of x” is the paper's for this constraint, computed in a few passes over n.",
    parts,
    tables,
    claims,
    panels,
    label_width=1.4,
)
