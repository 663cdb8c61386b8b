"""Figure 2: gs-s, gs-q and gs-1 with every variable in [-1, 1]."""

from __future__ import annotations

import numpy as np

from . import bounded
from .bounded import ALL_FINAL, BOX, Runs
from .claims import (
    ADVANTAGE,
    ALL_BUT_FEW,
    SPEED,
    TIES,
    Accepts,
    Claim,
    Cut,
    Horizon,
    Kind,
    Reading,
    above,
    below,
    by_cut,
    consistent,
    every_seed,
    geometric_mean,
    mean,
    percent,
    ranges,
    weakest,
)
from .experiment import Scale
from .parts import Results


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what the paper says about Figure 2, for all seeds."""
    runs = bounded.load(results, scale, BOX)
    return [
        slowest(runs, scale),
        longest_to_active_set(runs, scale),
        first_to_active_set(runs, scale),
        *updates_two(runs, scale),
    ]


SOURCE = "Section 5, second experiment, Figure 2"
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
RARELY = 0.01  # fraction of iterations that counts as rare
OFTEN = 0.05  # a more generous limit for what is rare
NOT_FINAL = (
    "A variable is final if it is at the bound, or between the bounds, where it is at the optimum"
)


def slowest(runs: Runs, scale: Scale) -> Claim:
    """Compare gs-s with the others."""

    def found(cut: Cut) -> dict[str, list[float]]:
        return bounded.speeds(runs, scale, cut)

    at = bounded.horizons(scale)
    return Claim(
        "gs-s-is-slowest",
        Kind.OBSERVATION,
        "With bounds, gs-s converges slowest of the three rules.",
        SLOWEST,
        SOURCE,
        f"Slowest means that both gs-q and gs-1 need fewer iterations on average over the seeds. "
        f"{TIES}.",
        "figure2",
        f"Speed against gs-s of the slower of gs-q and gs-1: {SPEED}",
        tuple(weakest(c, map(geometric_mean, found(c).values()), ADVANTAGE) for c in at),
        f"Speed against gs-s by seed: {ranges(found(at[1]))} at the second horizon; "
        f"{ranges(found(at[-1]))} {at[-1]}.",
        {"speed": by_cut(found, at)},
        (
            Reading(
                "Slowest for every seed, up to ties",
                "Fraction of seeds in which neither gs-q nor gs-1 is behind gs-s",
                tuple(consistent(c, found(c)) for c in at),
            ),
        ),
    )


def longest_to_active_set(runs: Runs, scale: Scale) -> Claim:
    """Compare gs-q with the others."""

    def found(cut: Cut) -> list[float]:
        return bounded.relative_counts(runs, scale, "not_final", cut, "gs-q", max)

    at: tuple[Cut, ...] = (*bounded.early_horizons(scale), ALL_FINAL)
    identified = [bounded.counts(runs, seed, "", ALL_FINAL) for seed in scale.seeds]
    return Claim(
        "gs-q-identifies-active-set-last",
        Kind.OBSERVATION,
        "gs-q takes longest to identify the active set.",
        SLOWEST,
        SOURCE,
        f"At a number of iterations: gs-q has more variables that are not final than gs-s and "
        f"gs-1. To the final active set: it needs more iterations until all are final. "
        f"{NOT_FINAL}. {TIES}.",
        "figure2",
        "gs-q over the larger of gs-s and gs-1: variables that are not final at the horizon, or "
        "iterations",
        tuple(geometric_mean(found(c)).at(c, ADVANTAGE) for c in at),
        "Iterations to the final active set, mean over the seeds: "
        + ", ".join(
            f"{rule} {np.mean([each[rule] for each in identified]):,.0f}" for rule in bounded.RULES
        )
        + ". The last few variables become final late, by chance.",
        {"gs-q over the larger of the others": by_cut(lambda c: {"ratio": found(c)}, at)},
        (
            Reading(
                "For every seed, up to ties",
                "Fraction of seeds in which gs-q is not ahead",
                tuple(consistent(c, {"gs-q": found(c)}) for c in at),
            ),
        ),
    )


def first_to_active_set(runs: Runs, scale: Scale) -> Claim:
    """Compare gs-1 with the others."""

    def found(cut: Cut) -> list[float]:
        gs_1 = bounded.relative_counts(runs, scale, "not_final", cut, "gs-1", min)
        return [1 / x for x in gs_1]

    at: tuple[Cut, ...] = (*bounded.early_horizons(scale), ALL_FINAL)
    return Claim(
        "gs-1-identifies-active-set-first",
        Kind.OBSERVATION,
        "gs-1 identifies the active set more quickly than gs-s and gs-q.",
        SUPPORT_VECTORS,
        "Section 3.3, last paragraph",
        "The paper reports no experiment on an SVM. We read support vectors as the variables of "
        "its second experiment that are not at a bound, and other rules as gs-s and gs-q. "
        f"{NOT_FINAL}. {TIES}. Duals of SVMs are measured separately, beyond the paper.",
        "figure2",
        "The smaller of gs-s and gs-q over gs-1: variables that are not final at the horizon, or "
        "iterations",
        tuple(geometric_mean(found(c)).at(c, ADVANTAGE) for c in at),
        "gs-1 is ahead of the other rules in the first iterations, and level with them at the end.",
        {"smaller of the others over gs-1": by_cut(lambda c: {"ratio": found(c)}, at)},
    )


def updates_two(runs: Runs, scale: Scale) -> list[Claim]:
    """Count the variables that gs-1 updates."""
    at = bounded.horizons(scale)
    full = [runs[seed, "gs-1"]["moved"][1:] for seed in scale.seeds]
    most = [int(m.max()) for m in full]

    def share(least: int, largest: int, cut: Cut) -> list[float]:
        moved = (bounded.updated(runs, seed, cut) for seed in scale.seeds)
        return [float(np.mean((m >= least) & (m <= largest))) for m in moved]

    def judged(least: int, largest: int, accepts: Accepts) -> tuple[Horizon, ...]:
        return tuple(mean(share(least, largest, c)).at(c, accepts) for c in at)

    def at_most_five(cut: Cut) -> Horizon:
        return every_seed(
            cut, [int(bounded.updated(runs, seed, cut).max()) <= 5 for seed in scale.seeds]
        )

    shares = {
        "2 variables": by_cut(lambda c: {"fraction": share(2, 2, c)}, at),
        "3 or fewer": by_cut(lambda c: {"fraction": share(0, 3, c)}, at),
        "4 or more": by_cut(lambda c: {"fraction": share(4, scale.n, c)}, at),
        "most variables at once": most,
    }
    fractions = "Mean fraction of the iterations within the horizon"
    return [
        Claim(
            "gs-1-updates-two",
            Kind.OBSERVATION,
            "gs-1 updates 2 variables on more than 85% of iterations.",
            OVER_85,
            "Appendix G, Figure 6",
            "The mean over the seeds is above 85%.",
            "figure6",
            fractions,
            judged(2, 2, above(0.85)),
            f"Early iterations update more variables: {percent(min(share(2, 2, at[0])))} to "
            f"{percent(max(share(2, 2, at[0])))} update 2 within the first horizon, and "
            f"{percent(min(share(2, 2, at[1])))} to {percent(max(share(2, 2, at[1])))} within the "
            "second, which suggests that the paper ran about 2 n iterations.",
            shares,
        ),
        Claim(
            "gs-1-updates-three-or-fewer",
            Kind.OBSERVATION,
            "gs-1 updates 3 or fewer variables on all but a few iterations.",
            OVER_85,
            "Appendix G, Figure 6",
            f"All but a few means on more than {percent(ALL_BUT_FEW)} of the iterations.",
            "figure6",
            fractions,
            judged(0, 3, above(ALL_BUT_FEW)),
            f"{percent(min(share(0, 3, at[0])))} to {percent(max(share(0, 3, at[0])))} within the "
            "first horizon.",
            shares,
            (
                Reading(
                    f"All but a few means on more than {percent(1 - OFTEN)} of the iterations",
                    fractions,
                    judged(0, 3, above(1 - OFTEN)),
                ),
            ),
        ),
        Claim(
            "gs-1-rarely-updates-four-or-five",
            Kind.OBSERVATION,
            "gs-1 rarely updates 4 or 5 variables.",
            TYPICALLY,
            SOURCE,
            f"Rarely means 4 or more variables on less than {percent(RARELY)} of the iterations.",
            "figure2",
            fractions,
            judged(4, scale.n, below(RARELY)),
            f"The most variables at once are {min(most)} to {max(most)}, depending on the seed.",
            shares,
            (
                Reading(
                    f"Rarely means on less than {percent(OFTEN)} of the iterations",
                    fractions,
                    judged(4, scale.n, below(OFTEN)),
                ),
                Reading(
                    "Literally: there are updates of 4 or 5 variables, but of no more than 5",
                    "Fraction of seeds",
                    tuple(map(at_most_five, at)),
                ),
            ),
        ),
        Claim(
            "most-gs-1-updates-are-of-two-or-three",
            Kind.OBSERVATION,
            "Most gs-1 updates only update 2 or 3 variables.",
            SUPPORT_VECTORS,
            "Section 3.3, last paragraph",
            "Most means more than half of the iterations.",
            "figure2",
            fractions,
            judged(0, 3, above(0.5)),
            "This holds by a wide margin.",
            shares,
        ),
    ]


EXPERIMENT = bounded.three_panels(
    "figure2",
    "Figure 2. Greedy rules under bounds",
    "The left problem of Figure 1 with every variable in [-1, 1]; step 1/L2, and 1/L1 for gs-1; "
    "first seed. A variable is interior while it is strictly between its bounds. On the right, a "
    "dot per iteration of gs-1, with the fraction of iterations next to each number. The optimum "
    "is from an interior-point method, followed by a linear solve on its active set.",
    BOX,
    claims,
)
