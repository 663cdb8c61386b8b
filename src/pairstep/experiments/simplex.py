"""Past the paper: the probability simplex, where there are only lower bounds."""

from __future__ import annotations

import numpy as np

from . import bounded
from .bounded import RULES, SIMPLEX
from .claims import SPEED, Claim, percent, rounded, seed_by_seed
from .experiment import Scale
from .parts import Results


def claims(results: Results, scale: Scale) -> list[Claim]:
    """Whether what the paper finds in a box holds on the simplex."""
    speeds = bounded.speeds(results, scale, SIMPLEX)
    found = bounded.found_active_set(results, scale, SIMPLEX)
    first = [one < min(s, q) for s, q, one in zip(*(found[r] for r in RULES), strict=True)]
    moved = bounded.moves(results, scale, SIMPLEX)
    two = [float(np.mean(m == 2)) for m in moved]
    most = [int(m.max()) for m in moved]
    return [
        Claim(
            "simplex-gs-s-is-slowest",
            "On the simplex too, gs-s converges slowest.",
            "Beyond the paper",
            "simplex",
            all(x > 1.01 for xs in speeds.values() for x in xs),
            f"{SPEED}. Against gs-s: above 1.01 for gs-q and gs-1, for every seed (less is a tie).",
            bounded.speeds_in_words(speeds),
            {"speed": rounded(speeds)},
        ),
        Claim(
            "simplex-gs-1-finds-active-set-first",
            "On the simplex gs-1 is the first to find the active set.",
            "Beyond the paper",
            "simplex",
            all(first),
            "The iteration from which on the set of zeros is that of the optimum, known from the "
            "reference solution: smallest for gs-1, for every seed.",
            f"Iterations, seed by seed: {seed_by_seed(found)}.",
            {"active set found at iteration": found},
        ),
        Claim(
            "simplex-gs-1-moves-two",
            "On the simplex too, gs-1 moves 2 variables on more than 85% of iterations.",
            "Beyond the paper",
            "simplex",
            min(two) > 0.85,
            "The share of all iterations until convergence (KKT violation 1e-9, relative), for "
            "every seed.",
            f"{percent(min(two))} to {percent(max(two))}; at most {max(most)} at once.",
            {"share that moves 2": np.round(two, 4).tolist(), "most at once": most},
        ),
    ]


EXPERIMENT = bounded.three_panels(
    "simplex",
    "Only lower bounds: the probability simplex",
    "Least squares over the probability simplex, x at least 0 and sum x = 1, from the centre; A is "
    "standard normal, b = Ax + z with x uniform on the simplex; steps as in Figure 2, seed 0.",
    SIMPLEX,
    claims,
)
