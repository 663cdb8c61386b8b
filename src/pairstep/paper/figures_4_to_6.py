"""Figures 4, 5 and 6 (appendix): the panels of Figure 2 for four seeds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from . import bounded
from .bounded import BOX, RULES, Runs
from .claims import (
    ALIKE_FACTOR,
    SPEED,
    TIE,
    TIES,
    Claim,
    Cut,
    Horizon,
    Kind,
    Reading,
    by_cut,
    consistent,
    every_seed,
    geometric_mean,
    last_iteration,
    never_behind,
    ranges,
)
from .experiment import Experiment, Scale
from .parts import Results

ADVANTAGES = (
    "We see that the GS-q and GS-1 have a small but consistent advantage in terms of decreasing "
    "the objective while the GS-s and GS-1 rules have a consistent advantage in terms of moving "
    "variables to the boundaries."
)
CONSISTENT = (
    "Consistent means across the seeds: no seed is behind by more than a tie, and the mean is ahead"
)


def objective(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says about Figure 4."""
    runs = bounded.load(results, scale, BOX)
    at = bounded.horizons(scale)

    def found(cut: Cut) -> dict[str, list[float]]:
        return bounded.speeds(runs, scale, cut)

    def consistent_and_small(cut: Cut) -> Horizon:
        horizon = consistent(cut, found(cut))
        small = all(geometric_mean(xs).value < ALIKE_FACTOR for xs in found(cut).values())
        return replace(horizon, holds=horizon.holds and small)

    def at_every_level(cut: Cut) -> Horizon:
        curves = {key: run["suboptimality"] for key, run in runs.items()}
        return every_seed(
            cut,
            [
                all(never_behind(curves[seed, r], curves[seed, "gs-s"], cut) for r in found(cut))
                for seed in scale.seeds
            ],
        )

    return [
        Claim(
            "small-advantage-in-objective",
            Kind.OBSERVATION,
            "gs-q and gs-1 have a small but consistent advantage in the objective.",
            ADVANTAGES,
            "Appendix G, Figure 4",
            f"The advantage is over gs-s. {CONSISTENT}, and small means a mean speed of less than "
            f"{ALIKE_FACTOR}. Speed is {SPEED}. {TIES}.",
            "figure4",
            "Fraction of seeds in which neither gs-q nor gs-1 is behind gs-s",
            tuple(map(consistent_and_small, at)),
            f"Speed against gs-s by seed: {ranges(found(at[1]))} at the second horizon; "
            f"{ranges(found(at[-1]))} {at[-1]}.",
            {"speed": by_cut(found, at)},
            (
                Reading(
                    "Consistent means at every iteration, for every seed: never behind gs-s by "
                    "more than a tie at any of 50 levels within the horizon, and ahead at its end",
                    "Fraction of seeds",
                    tuple(map(at_every_level, at)),
                ),
            ),
        )
    ]


def interior(results: Results, scale: Scale) -> list[Claim]:
    """Check what the appendix says about Figure 5."""
    runs = bounded.load(results, scale, BOX)
    at = bounded.early_horizons(scale)

    def found(cut: Cut) -> dict[str, list[float]]:
        of = [bounded.counts(runs, seed, "interior", cut) for seed in scale.seeds]
        return {rule: [each["gs-q"] / each[rule] for each in of] for rule in ("gs-s", "gs-1")}

    def ahead(cut: Cut) -> Horizon:
        return consistent(cut, found(cut))

    def at_every_iteration(cut: Cut) -> Horizon:
        return every_seed(cut, [never_more(runs, seed, cut) for seed in scale.seeds])

    return [
        Claim(
            "gs-s-and-gs-1-reach-bounds-sooner",
            Kind.OBSERVATION,
            "gs-s and gs-1 have a consistent advantage in moving variables to their bounds.",
            ADVANTAGES,
            "Appendix G, Figure 5",
            "The advantage is over gs-q: fewer variables strictly between their bounds at the "
            f"horizon. {CONSISTENT}. {TIES}. All rules end at the same optimum, so later "
            "horizons must show a tie.",
            "figure5",
            "Fraction of seeds in which neither gs-s nor gs-1 has more interior variables",
            tuple(map(ahead, at)),
            f"Interior variables of gs-q over those of the rule: {ranges(found(at[0]))} at the "
            f"first horizon; {ranges(found(at[1]))} at the second.",
            {"interior variables of gs-q over those of the rule": by_cut(found, at)},
            (
                Reading(
                    "Consistent means at every iteration: never more interior variables than gs-q "
                    "by more than a tie within the horizon, for every seed",
                    "Fraction of seeds",
                    tuple(map(at_every_iteration, at)),
                ),
            ),
        )
    ]


def never_more(runs: Runs, seed: int, cut: Cut) -> bool:
    """Return whether gs-s and gs-1 never have more interior variables than gs-q, up to a tie."""
    last = max(last_iteration(runs[seed, rule]["suboptimality"], cut) for rule in RULES)
    of = {
        rule: x[np.minimum(np.arange(last + 1), len(x) - 1)]
        for rule in RULES
        for x in [runs[seed, rule]["interior"]]
    }
    return all(bool((of[rule] <= TIE * of["gs-q"]).all()) for rule in ("gs-s", "gs-1"))


def updated(results: Results, scale: Scale) -> list[Claim]:
    """Return no claims: `figure2` checks what the paper says about Figure 6."""
    return []


EXPERIMENTS = tuple(
    Experiment(
        name,
        f"Figure {name[-1]}. {what}, for four seeds",
        f"The {where} panel of Figure 2 for four seeds.",
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
