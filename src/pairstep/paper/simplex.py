"""Beyond the paper: the probability simplex, which has only lower bounds."""

from __future__ import annotations

from . import bounded
from .bounded import ALL_FINAL, SIMPLEX
from .claims import (
    ADVANTAGE,
    SPEED,
    TIES,
    TO_LOWEST,
    Claim,
    Cut,
    Kind,
    above,
    by_cut,
    geometric_mean,
    mean,
    ranges,
    weakest,
)
from .experiment import Scale
from .parts import Results


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check on the simplex what the paper observes in a box.

    All rules converge within about 1.5 n iterations, so the horizons are shorter than in the box.
    """
    runs = bounded.load(results, scale, SIMPLEX)
    early: tuple[Cut, ...] = (scale.n // 10, scale.n // 5)
    to_lowest = (*early, TO_LOWEST)
    to_final = (*early, ALL_FINAL)
    most = [int(runs[seed, "gs-1"]["moved"].max()) for seed in scale.seeds]

    def speeds(cut: Cut) -> dict[str, list[float]]:
        return bounded.speeds(runs, scale, cut)

    def ahead(cut: Cut) -> list[float]:
        return [1 / x for x in bounded.relative_counts(runs, scale, "not_final", cut, "gs-1", min)]

    def two(cut: Cut) -> list[float]:
        moved = (bounded.updated(runs, seed, cut) for seed in scale.seeds)
        return [float((m == 2).mean()) for m in moved]

    return [
        Claim(
            "simplex-gs-s-is-slowest",
            Kind.BEYOND,
            "gs-s also converges slowest on the simplex.",
            "",
            "",
            f"Both gs-q and gs-1 need fewer iterations on average over the seeds. {TIES}.",
            "simplex",
            f"Speed against gs-s of the slower of gs-q and gs-1: {SPEED}",
            tuple(
                weakest(c, map(geometric_mean, speeds(c).values()), ADVANTAGE) for c in to_lowest
            ),
            f"Speed against gs-s {TO_LOWEST}: {ranges(speeds(TO_LOWEST))}. Without upper bounds "
            "gs-q makes almost the same choices as gs-s, and ties with it.",
            {"speed": by_cut(speeds, to_lowest)},
        ),
        Claim(
            "simplex-gs-1-identifies-active-set-first",
            Kind.BEYOND,
            "On the simplex gs-1 is the first to identify the active set.",
            "",
            "",
            "At a number of iterations: gs-1 has fewer variables that are zero at the optimum and "
            "not yet, or the reverse. To the final active set: it needs fewer iterations. "
            f"{TIES}.",
            "simplex",
            "The smaller of gs-s and gs-q over gs-1: variables that are not final at the horizon, "
            "or iterations",
            tuple(geometric_mean(ahead(c)).at(c, ADVANTAGE) for c in to_final),
            "The first iterations of gs-1 set many variables to zero at once.",
            {"smaller of the others over gs-1": by_cut(lambda c: {"ratio": ahead(c)}, to_final)},
        ),
        Claim(
            "simplex-gs-1-updates-two",
            Kind.BEYOND,
            "gs-1 also updates 2 variables on more than 85% of iterations on the simplex.",
            "",
            "",
            "The mean over the seeds is above 85%.",
            "simplex",
            "Mean fraction of the iterations within the horizon",
            tuple(mean(two(c)).at(c, above(0.85)) for c in to_lowest),
            f"From the center of the simplex the first iterations set many variables to zero at "
            f"once, at most {max(most)}.",
            {
                "fraction that updates 2": by_cut(lambda c: {"fraction": two(c)}, to_lowest),
                "most at once": most,
            },
        ),
    ]


EXPERIMENT = bounded.three_panels(
    "simplex",
    "Only lower bounds: the probability simplex",
    "Least squares over the probability simplex, x >= 0 and sum x = 1, from its center; A is "
    "standard normal, b = Ax + z with x uniform on the simplex; steps as in Figure 2, first seed.",
    SIMPLEX,
    claims,
)
