"""Figures 4, 5 and 6 (appendix): the panels of Figure 2 for every seed."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import bounded
from .bounded import BOX, RULES
from .claims import SPEED, Claim, rounded, spread
from .experiment import Experiment, Scale
from .parts import Results
from .races import identified_at

SMALL = 1.5  # an advantage below this factor in iterations counts as small


def objective(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says of Figure 4."""
    found = bounded.speeds(results, scale, BOX)
    return [
        Claim(
            "small-advantage-in-objective",
            "gs-q and gs-1 have a small but consistent advantage in the objective.",
            "Appendix, Additional Experiments",
            "figure4",
            all(1 < x < SMALL for xs in found.values() for x in xs),
            f"{SPEED}. Against gs-s: above 1 (consistent) and below {SMALL} (small), for every "
            "seed.",
            bounded.speeds_in_words(found),
            {"speed": rounded(found)},
        )
    ]


def interior(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says of Figure 5."""
    means = {
        rule: [mean_interior(results, scale, seed, rule) for seed in scale.seeds] for rule in RULES
    }
    ahead = [max(s, one) < q for s, q, one in zip(*(means[rule] for rule in RULES), strict=True)]
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


def moved(results: Results, scale: Scale) -> list[Claim]:
    """Claim nothing: what is said of Figure 6 is claimed with Figure 2, for every seed."""
    return []


EXPERIMENTS = tuple(
    Experiment(
        name,
        f"Figure {name[-1]}. {what}, seed by seed",
        f"The {where} panel of Figure 2 for every seed.",
        partial(bounded.parts, bounds=BOX),
        partial(bounded.tables, bounds=BOX, name=name, columns=(column,)),
        claims,
        partial(bounded.seed_by_seed, name, column),
    )
    for name, what, where, column, claims in (
        ("figure4", "Objective under bounds", "left", "suboptimality", objective),
        ("figure5", "Interior variables", "middle", "interior", interior),
        ("figure6", "Variables that gs-1 moves", "right", "moved", moved),
    )
)
