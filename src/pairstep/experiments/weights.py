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
    SPEED,
    TIES,
    Claim,
    better,
    by_seed,
    except_where,
    rounded,
    speed,
    spread,
    unless,
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
    """Return one part for every rule and problem."""
    return [
        part(measure, seed=seed, n=scale.n, kind=kind, rule=rule)
        for kind in (POSITIVE, SIGNED)
        for seed in scale.seeds
        for rule in RULES
    ]


def parts(scale: Scale) -> list[Part]:
    """Return all parts."""
    return [*races(scale), check(scale)]


def tables(results: Results, scale: Scale) -> dict[str, Table]:
    """Return the suboptimality of each iteration."""
    given = {"weights": "kind", "seed": "seed", "rule": "rule"}
    return by_iteration(results, races(scale), "weights", given, ("suboptimality",))


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

    def speeds(rule: str, over: str) -> list[float]:
        return [
            speed(
                *(
                    of[part(measure, seed=seed, n=scale.n, kind=kind, rule=r).parameters]
                    for r in (rule, over)
                )
            )
            for kind in (POSITIVE, SIGNED)
            for seed in scale.seeds
        ]

    against_greedy = {
        rule: speeds(rule, "greedy") for rule in (DIRECT, "gs-1-lipschitz", "gs-q-lipschitz")
    }
    against_random = speeds("greedy", "random")
    cases = [f"{kind}, {seed}" for kind in (POSITIVE, SIGNED) for seed in by_seed(scale.seeds)]
    return [
        Claim(
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
        Claim(
            "weights-greedy-beats-random",
            "greedy also beats random with general weights.",
            "",
            "",
            "weights",
            except_where(better, {"speed": against_random}, cases),
            "The largest derivatives g_i/a_i belong to the smallest weights, regardless of the "
            "possible decrease, so greedy keeps choosing among few variables",
            f"{SPEED}. In the coordinates a_i x_i, with exact steps: faster for every seed and "
            f"both kinds of weights. {TIES}.",
            f"Speed of greedy against random: {spread(against_random)}.",
            {"speed": rounded({"greedy": against_random})},
        ),
        Claim(
            "weights-norm-matters",
            "The paper's rule (1-norm of x) beats greedy in the coordinates a_i x_i.",
            "",
            "",
            "weights",
            except_where(better, {DIRECT: against_greedy[DIRECT]}, cases),
            "The norm makes no difference",
            f"{SPEED}. With exact steps: faster for every seed and both kinds of weights. {TIES}.",
            "Speed against greedy: "
            + "; ".join(f"{rule} {spread(g)}" for rule, g in against_greedy.items())
            + ".",
            {"speed": rounded(against_greedy)},
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
