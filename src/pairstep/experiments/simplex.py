"""Past the paper: the probability simplex, where there are only lower bounds."""

from __future__ import annotations

import numpy as np

from . import bounded
from .bounded import RULES, SIMPLEX
from .claims import (
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
    """Whether what the paper finds in a box holds on the simplex."""
    speeds = bounded.speeds(results, scale, SIMPLEX)
    found = bounded.found_active_set(results, scale, SIMPLEX)
    first = [min(s, q) / max(one, 1) for s, q, one in zip(*(found[r] for r in RULES), strict=True)]
    cases = by_seed(scale.seeds)
    moved = bounded.moves(results, scale, SIMPLEX)
    two = [float(np.mean(m == 2)) for m in moved]
    most = [int(m.max()) for m in moved]
    return [
        Claim(
            "simplex-gs-s-is-slowest",
            "On the simplex too, gs-s converges slowest.",
            "",
            "",
            "simplex",
            except_where(better, speeds, cases),
            "Without upper bounds gs-q makes nearly the choices of gs-s, and ties with it",
            f"{SPEED}. Against gs-s: faster for gs-q and gs-1, for every seed. {TIES}.",
            bounded.speeds_in_words(speeds),
            {"speed": rounded(speeds)},
        ),
        Claim(
            "simplex-gs-1-finds-active-set-first",
            "On the simplex gs-1 is the first to find the active set.",
            "",
            "",
            "simplex",
            except_where(better, {"the sooner of the others over gs-1": first}, cases),
            "Another rule is as soon",
            "The iteration from which on the set of zeros is that of the optimum, known from the "
            f"reference solution: smallest for gs-1, for every seed. {TIES}.",
            f"Iterations, seed by seed: {seed_by_seed(found)}.",
            {"active set found at iteration": found},
        ),
        Claim(
            "simplex-gs-1-moves-two",
            "On the simplex too, gs-1 moves 2 variables on more than 85% of iterations.",
            "",
            "",
            "simplex",
            except_where(lambda share: share > 0.85, {"share": two}, cases),
            "From the centre of the simplex the first iterations empty many variables at once, and "
            "that is more than 15% of so few iterations",
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
