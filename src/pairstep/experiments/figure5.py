"""Figure 5. Interior variables, seed by seed (appendix)."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import bounded
from .bounded import BOX, RULES
from .claims import Claim, spread
from .experiment import Experiment, Panel, Scale
from .parts import Results
from .races import identified_at
from .tables import Table


def panels(tables: dict[str, Table]) -> list[Panel]:
    """One panel per seed."""
    table = tables["figure5"]
    return [
        Panel(f"Seed {seed}", partial(bounded.draw_interior, table=table, seed=seed))
        for seed in bounded.seeds_in(table)
    ]


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says of Figure 5."""
    means = {
        rule: [
            mean_interior(results, scale, seed, rule) for seed in range(scale.seeds)
        ]
        for rule in RULES
    }  # fmt: skip
    ahead = [
        max(s, one) < q for s, q, one in zip(*(means[rule] for rule in RULES), strict=True)
    ]  # fmt: skip
    return [
        Claim(
            "gs-s-and-gs-1-reach-bounds-sooner",
            "gs-s and gs-1 have a consistent advantage in moving variables to their bounds.",
            "Appendix, Additional Experiments",
            "figure5",
            all(ahead),
            "The mean number of interior variables over the iterations until the last of the three "
            "rules has found the active set: smaller for gs-s and gs-1 than for gs-q, for every "
            "seed.",
            "Mean interior variables: "
            + ", ".join(f"{rule} {spread(means[rule])}" for rule in RULES)
            + ".",
            {"mean interior variables": means},
        )
    ]


def mean_interior(results: Results, scale: Scale, seed: int, rule: str) -> float:
    """Average until the last rule has found the active set.

    A run that has ended stays as it is.
    """
    of = {r: results[bounded.part_of(scale, BOX, seed, r)] for r in RULES}
    last = max(identified_at(measured["unsettled"]) for measured in of.values())
    interior = of[rule]["interior"]
    return round(float(interior[np.minimum(np.arange(last + 1), len(interior) - 1)].mean()), 2)


EXPERIMENT = Experiment(
    "figure5",
    "Figure 5. Interior variables, seed by seed",
    "The middle panel of Figure 2 for every seed.",
    partial(bounded.parts, bounds=BOX),
    partial(bounded.tables, bounds=BOX, name="figure5", columns=("interior",)),
    claims,
    panels,
)
