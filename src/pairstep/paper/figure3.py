"""Figure 3 (appendix): the scaled problem of Figure 1 for every seed."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import figure1
from .claims import (
    ALIKE_FACTOR,
    Array,
    Claim,
    Cut,
    Horizon,
    Kind,
    Reading,
    below,
    by_cut,
    geometric_deviation,
    iterations_to,
    ranges,
    weakest,
)
from .experiment import Experiment, Panel, Scale
from .figure1 import SCALED
from .parts import Results
from .tables import Table, distinct


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says about Figure 3; `figure1` compares the rules."""
    curves = {
        rule: [
            relative(results[figure1.part_of(scale, SCALED, seed, rule)]["suboptimality"])
            for seed in scale.seeds
        ]
        for rule in figure1.RULES
    }
    at = figure1.horizons(scale)

    def found(cut: Cut) -> dict[str, list[float]]:
        return {rule: iterations_to_common_level(each, int(cut)) for rule, each in curves.items()}

    def widest(cut: Cut) -> Horizon:
        ratio = max(max(xs) / min(xs) for xs in found(cut).values())
        return Horizon(cut, round(ratio, 3), None, ratio < ALIKE_FACTOR)

    return [
        Claim(
            "seeds-are-similar",
            Kind.OBSERVATION,
            "The performance across different random seeds is similar.",
            "We see that the performance across different random seeds is similar.",
            "Appendix G, Figure 3",
            f"Similar means that one standard deviation over the seeds is a factor of less than "
            f"{ALIKE_FACTOR} in iterations, for every rule. The iterations are those to the level, "
            "relative to the start, that the slowest seed has reached at the horizon.",
            "figure3",
            "Factor of one standard deviation, for the rule where it is largest",
            tuple(
                weakest(cut, map(geometric_deviation, found(cut).values()), below(ALIKE_FACTOR))
                for cut in at
            ),
            "Iterations at the last horizon: " + ranges(found(at[-1])) + ".",
            {"iterations": by_cut(found, at)},
            (
                Reading(
                    f"Similar for all seeds: the slowest needs less than {ALIKE_FACTOR} times the "
                    "iterations of the fastest, for every rule",
                    "Most over least iterations, for the rule where it is largest",
                    tuple(map(widest, at)),
                ),
            ),
        )
    ]


def relative(curve: Array) -> Array:
    """Return a curve divided by its start."""
    return np.asarray(curve / curve[0])


def iterations_to_common_level(curves: list[Array], cut: int) -> list[float]:
    """Return the iterations to the lowest level that all seeds reach within a horizon."""
    level = np.array([max(float(curve[: cut + 1].min()) for curve in curves)])
    return [float(iterations_to(level, curve)[0]) for curve in curves]


def panels(tables: dict[str, Table]) -> list[Panel]:
    """Return one panel per seed."""
    table = tables["figure3"]
    return [
        Panel(
            f"Seed {seed}",
            partial(figure1.draw, table=table, axis="iteration", kind=SCALED, seed=seed),
        )
        for seed in distinct(table, "seed")
    ]


EXPERIMENT = Experiment(
    "figure3",
    "Figure 3. Very different L_i, for four seeds",
    "The right panel of Figure 1 for four seeds (of the data and of the random rules).",
    partial(figure1.parts, columns=(SCALED,)),
    partial(figure1.tables, columns=(SCALED,), name="figure3"),
    claims,
    panels,
    label_width=1.4,
)
