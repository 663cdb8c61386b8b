"""Figure 2: gs-s, gs-q and gs-1 with every variable in [-1, 1]."""

from __future__ import annotations

import numpy as np

from . import bounded
from .bounded import BOX, RULES
from .claims import (
    APPENDIX,
    SPEED,
    TIES,
    Claim,
    better,
    by_seed,
    except_where,
    percent,
    rounded,
    seed_by_seed,
)
from .experiment import Scale
from .parts import Results


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what section 5 of the paper says about Figure 2."""
    return [
        slowest(results, scale),
        longest_to_active_set(results, scale),
        *updates_two(results, scale),
    ]


SECTION = "Section 5, second experiment"
SLOWEST = (
    "We see that the GS-s rule results in the slowest convergence rate, while the GS-q rule rule "
    "takes the longest to identify the active set."
)
TYPICALLY = (
    "The GS-1 rule typically updates 2 variables, but occasionally updates 3 variables and rarely "
    "updates 4 or 5 variables."
)
OVER_85 = (
    "Finally, we see that the GS-1 rule only updates 2 variables on most iterations (over 85%) "
    "while it updates 3 or fewer variables on all but a few iterations."
)


def slowest(results: Results, scale: Scale) -> Claim:
    """Compare gs-s with the others."""
    found = bounded.speeds(results, scale, BOX)
    return Claim(
        "gs-s-is-slowest",
        "With bounds, gs-s converges slowest of the three rules.",
        SLOWEST,
        SECTION,
        "figure2",
        except_where(better, found, by_seed(scale.seeds)),
        "Another rule is as slow as gs-s",
        f"{SPEED}. Against gs-s: faster for gs-q and gs-1, for every seed. {TIES}.",
        bounded.speeds_in_words(found),
        {"speed": rounded(found)},
    )


def longest_to_active_set(results: Results, scale: Scale) -> Claim:
    """Compare gs-q with the others."""
    found = bounded.found_active_set(results, scale, BOX)
    nearly = bounded.found_active_set(results, scale, BOX, tolerated=0.01)
    late, nearly_late = (
        [q / max(s, one, 1) for s, q, one in zip(*(counts[rule] for rule in RULES), strict=True)]
        for counts in (found, nearly)
    )
    last = [better(ratio) for ratio in late]
    return Claim(
        "gs-q-identifies-active-set-last",
        "gs-q takes longest to identify the active set.",
        SLOWEST,
        SECTION,
        "figure2",
        except_where(better, {"gs-q over the slower of the others": late}, by_seed(scale.seeds)),
        "The last few variables reach their final state late by chance, and gs-s is last for some "
        "seeds",
        "The iteration after which the set of variables at each bound is that of the optimum, "
        "known from the reference solution: larger for gs-q than for gs-s and gs-1, for every "
        f"seed. {TIES}.",
        f"gs-q is last for {sum(last)} of {len(last)} seeds: {seed_by_seed(found)} iterations. For "
        f"all but 1% of the variables it is last for {sum(map(better, nearly_late))} of "
        f"{len(last)}.",
        {
            "active set identified at iteration": found,
            "all but 1% of it": nearly,
            "gs-q last": last,
        },
    )


def updates_two(results: Results, scale: Scale) -> list[Claim]:
    """Count the variables that gs-1 updates."""
    moved = bounded.updated(results, scale, BOX)
    two = [float(np.mean(m == 2)) for m in moved]
    three = [float(np.mean(m <= 3)) for m in moved]
    early = [float(np.mean(m[: scale.n] == 2)) for m in moved]
    more = [int(np.sum(m > 3)) for m in moved]
    most = [int(m.max()) for m in moved]
    cases = by_seed(scale.seeds)
    numbers = {
        "iterations": [len(m) for m in moved],
        "fraction that updates 2": np.round(two, 5).tolist(),
        "fraction that updates 3 or fewer": np.round(three, 5).tolist(),
        f"fraction that updates 2, first {scale.n} iterations": np.round(early, 4).tolist(),
        "iterations that update 4 or more": more,
        "most variables updated at once": most,
    }
    return [
        Claim(
            "gs-1-updates-two",
            "gs-1 updates 2 variables on more than 85% of iterations.",
            OVER_85,
            APPENDIX,
            "figure2",
            except_where(lambda fraction: fraction > 0.85, {"fraction": two}, cases),
            "gs-1 updates more than 2 variables on too many iterations",
            "The fraction of all iterations until convergence (KKT violation 1e-9, relative), for "
            "every seed.",
            f"{percent(min(two))} at least. Early iterations update more: of the first {scale.n}, "
            f"{percent(min(early))} to {percent(max(early))} update 2.",
            numbers,
        ),
        Claim(
            "gs-1-updates-three-or-fewer",
            "gs-1 updates 3 or fewer variables on all but a few iterations, rarely 4 or 5.",
            TYPICALLY,
            SECTION,
            "figure2",
            except_where(lambda fraction: fraction > 0.99, {"fraction": three}, cases),
            "gs-1 updates 4 or more variables on too many iterations",
            "The fraction of all iterations until convergence that update 3 or fewer: above 99% "
            "for every seed.",
            f"{percent(min(three))} at least; {min(more)} to {max(more)} iterations update 4 or "
            f"more, the most at once is {max(most)}.",
            numbers,
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
