"""Figures 4, 5 and 6 (appendix): the panels of Figure 2 for every seed."""

from __future__ import annotations

from functools import partial

import numpy as np

from . import bounded
from .bounded import BOX, RULES
from .claims import (
    ALIKE_FACTOR,
    APPENDIX,
    SPEED,
    TIE,
    TIES,
    Array,
    Claim,
    alike,
    by_seed,
    consistently_better,
    mean,
    percent,
    rounded,
    spread,
)
from .experiment import Experiment, Scale
from .parts import Results
from .races import identified_at

ADVANTAGES = (
    "We see that the GS-q and GS-1 have a small but consistent advantage in terms of decreasing "
    "the objective while the GS-s and GS-1 rules have a consistent advantage in terms of moving "
    "variables to the boundaries."
)


def objective(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says about Figure 4."""
    levels = bounded.compare(results, scale, BOX)
    speeds = {rule: [mean(r) for r in each] for rule, each in levels.items()}
    least = {rule: [float(r.min()) for r in each] for rule, each in levels.items()}
    cases = by_seed(scale.seeds)
    return [
        Claim(
            "small-advantage-in-objective",
            "gs-q and gs-1 have a small but consistent advantage in the objective.",
            ADVANTAGES,
            APPENDIX,
            "figure4",
            tuple(
                f"{rule}, {case}: {mean(r):.2f}, {r.min():.2f} at the worst level"
                for rule, each in levels.items()
                for case, r in zip(cases, each, strict=True)
                if not (consistently_better(r) and alike(mean(r)))
            ),
            "The advantage is not there at every level, or is not small",
            f"{SPEED}. Against gs-s, for every seed: never slower at any of the 50 levels and "
            f"faster on average (consistent), by less than a factor of {ALIKE_FACTOR} (small). "
            f"{TIES}.",
            f"{bounded.speeds_in_words(speeds)} At the worst level: "
            + ", ".join(f"{rule} {spread(xs)}" for rule, xs in least.items())
            + ".",
            {"speed": rounded(speeds), "at the worst level": rounded(least)},
        )
    ]


def interior(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says about Figure 5."""
    counts = [interior_variables(results, scale, seed) for seed in scale.seeds]
    fewer = {
        rule: [of["gs-q"] / np.maximum(of[rule], 1) for of in counts]
        for rule in RULES
        if rule != "gs-q"
    }
    means = {rule: [round(float(of[rule].mean()), 2) for of in counts] for rule in RULES}
    behind = {rule: [float(np.mean(r < 1 / TIE)) for r in each] for rule, each in fewer.items()}
    cases = by_seed(scale.seeds)
    return [
        Claim(
            "gs-s-and-gs-1-reach-bounds-sooner",
            "gs-s and gs-1 have a consistent advantage in moving variables to their bounds.",
            ADVANTAGES,
            APPENDIX,
            "figure5",
            tuple(
                f"{rule}, {case}: {shortfall(r)}"
                for rule, each in fewer.items()
                for case, r in zip(cases, each, strict=True)
                if not consistently_better(r)
            ),
            "gs-q has fewer interior variables for a while, or as few on average",
            "The interior variables at every iteration until all three rules have identified the "
            "active set, for every seed: never more for gs-s and gs-1 than for gs-q, and fewer on "
            f"average. {TIES}.",
            "Mean interior variables: "
            + ", ".join(f"{rule} {spread(means[rule])}" for rule in RULES)
            + ". More than gs-q: "
            + ", ".join(
                f"{rule} on {percent(min(xs))} to {percent(max(xs))} of the iterations"
                for rule, xs in behind.items()
            )
            + ".",
            {"mean interior variables": means, "fraction of iterations behind gs-q": behind},
        )
    ]


def interior_variables(results: Results, scale: Scale, seed: int) -> dict[str, Array]:
    """Return the number of interior variables until all rules have identified the active set.

    A run that has ended keeps its last number.
    """
    of = {rule: results[bounded.part_of(scale, BOX, seed, rule)] for rule in RULES}
    last = max(identified_at(measured["not_final"]) for measured in of.values())
    return {
        rule: measured["interior"][np.minimum(np.arange(last + 1), len(measured["interior"]) - 1)]
        for rule, measured in of.items()
    }


def shortfall(ratios: Array) -> str:
    """Return when the advantage is missing, as text."""
    behind = np.flatnonzero(ratios < 1 / TIE)
    if not len(behind):
        return f"{mean(ratios):.2f} on average"
    return f"behind between iterations {behind[0]} and {behind[-1]}"


def updated(results: Results, scale: Scale) -> list[Claim]:
    """Return no claims: `figure2` checks what the paper says about Figure 6, for every seed."""
    return []


EXPERIMENTS = tuple(
    Experiment(
        name,
        f"Figure {name[-1]}. {what}, for every seed",
        f"The {where} panel of Figure 2 for every seed.",
        partial(bounded.parts, bounds=BOX),
        partial(bounded.tables, bounds=BOX, name=name, columns=(column,)),
        claims,
        partial(bounded.seed_by_seed, name, column),
    )
    for name, what, where, column, claims in (
        ("figure4", "Objective under bounds", "left", "suboptimality", objective),
        ("figure5", "Interior variables", "middle", "interior", interior),
        ("figure6", "Variables that gs-1 updates", "right", "moved", updated),
    )
)
