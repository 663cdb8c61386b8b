"""Figure 2: gs-s, gs-q and gs-1 where every variable lies in [-1, 1]."""

from __future__ import annotations

import numpy as np

from . import bounded
from .bounded import BOX, RULES
from .claims import SPEED, Claim, percent, rounded, seed_by_seed
from .experiment import Scale
from .parts import Results


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Check what section 5 says of Figure 2."""
    return [
        slowest(results, scale),
        longest_to_active_set(results, scale),
        *moves_two(results, scale),
    ]


def slowest(results: Results, scale: Scale) -> Claim:
    """Compare gs-s with the others."""
    found = bounded.speeds(results, scale, BOX)
    return Claim(
        "gs-s-is-slowest",
        "With bounds, gs-s converges slowest of the three rules.",
        "Section 5",
        "figure2",
        all(x > 1 for xs in found.values() for x in xs),
        f"{SPEED}. Against gs-s: above 1 for gs-q and gs-1, for every seed.",
        bounded.speeds_in_words(found),
        {"speed": rounded(found)},
    )


def longest_to_active_set(results: Results, scale: Scale) -> Claim:
    """Compare gs-q with the others."""
    found = bounded.found_active_set(results, scale, BOX)
    nearly = bounded.found_active_set(results, scale, BOX, tolerated=0.01)
    late, nearly_late = (
        [q > max(s, one) for s, q, one in zip(*(counts[rule] for rule in RULES), strict=True)]
        for counts in (found, nearly)
    )
    return Claim(
        "gs-q-finds-active-set-last",
        "gs-q takes longest to find the active set.",
        "Section 5",
        "figure2",
        all(late),
        "The iteration from which on the set of variables at each bound is that of the optimum, "
        "known from the reference solution: larger for gs-q than for gs-s and gs-1, for every "
        "seed.",
        f"gs-q is last for {sum(late)} of {len(late)} seeds: {seed_by_seed(found)} iterations. For "
        f"all but 1% of the variables it is last for {sum(nearly_late)} of {len(late)}.",
        {"active set found at iteration": found, "all but 1% of it": nearly, "gs-q last": late},
    )


def moves_two(results: Results, scale: Scale) -> list[Claim]:
    """Count the variables that gs-1 moves."""
    moved = bounded.moves(results, scale, BOX)
    two = [float(np.mean(m == 2)) for m in moved]
    three = [float(np.mean(m <= 3)) for m in moved]
    early = [float(np.mean(m[: scale.n] == 2)) for m in moved]
    more = [int(np.sum(m > 3)) for m in moved]
    most = [int(m.max()) for m in moved]
    numbers = {
        "iterations": [len(m) for m in moved],
        "share that moves 2": np.round(two, 5).tolist(),
        "share that moves 3 or fewer": np.round(three, 5).tolist(),
        f"share that moves 2, first {scale.n} iterations": np.round(early, 4).tolist(),
        "iterations that move 4 or more": more,
        "most variables moved at once": most,
    }
    return [
        Claim(
            "gs-1-moves-two",
            "gs-1 moves 2 variables on more than 85% of iterations.",
            "Appendix, Additional Experiments",
            "figure2",
            min(two) > 0.85,
            "The share of all iterations until convergence (KKT violation 1e-9, relative), for "
            "every seed.",
            f"{percent(min(two))} at least. Early iterations move more: of the first {scale.n}, "
            f"{percent(min(early))} to {percent(max(early))} move 2.",
            numbers,
        ),
        Claim(
            "gs-1-moves-three-or-fewer",
            "gs-1 moves 3 or fewer variables on all but a few iterations, rarely 4 or 5.",
            "Section 5 and appendix",
            "figure2",
            min(three) > 0.99,
            "The share of all iterations until convergence that move 3 or fewer: above 99% for "
            "every seed.",
            f"{percent(min(three))} at least; {min(more)} to {max(more)} iterations move 4 or "
            f"more, the most at once is {max(most)}.",
            numbers,
        ),
    ]


EXPERIMENT = bounded.three_panels(
    "figure2",
    "Figure 2. Greedy rules under bounds",
    "The problem of Figure 1 (as is) with every variable in [-1, 1]; step 1/L2, and 1/L1 for gs-1; "
    "seed 0. A variable is interior while it is strictly between its bounds. On the right, a dot "
    "per iteration of gs-1, with the share of iterations beside each number. The optimum is from "
    "an interior point method of the experiment's own, made exact by a linear solve on its active "
    "set.",
    BOX,
    claims,
)
