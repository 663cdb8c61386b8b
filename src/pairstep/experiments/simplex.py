"""Beyond the paper: the probability simplex, which has only lower bounds."""

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
    """Check on the simplex what the paper observes in a box."""
    speeds = bounded.speeds(results, scale, SIMPLEX)
    found = bounded.found_active_set(results, scale, SIMPLEX)
    first = [min(s, q) / max(one, 1) for s, q, one in zip(*(found[r] for r in RULES), strict=True)]
    cases = by_seed(scale.seeds)
    moved = bounded.updated(results, scale, SIMPLEX)
    two = [float(np.mean(m == 2)) for m in moved]
    most = [int(m.max()) for m in moved]
    return [
        Claim(
            "simplex-gs-s-is-slowest",
            "gs-s also converges slowest on the simplex.",
            "",
            "",
            "simplex",
            except_where(better, speeds, cases),
            "Without upper bounds gs-q makes almost the same choices as gs-s, and ties with it",
            f"{SPEED}. Against gs-s: faster for gs-q and gs-1, for every seed. {TIES}.",
            bounded.speeds_in_words(speeds),
            {"speed": rounded(speeds)},
        ),
        Claim(
            "simplex-gs-1-identifies-active-set-first",
            "On the simplex gs-1 is the first to identify the active set.",
            "",
            "",
            "simplex",
            except_where(better, {"the faster of the others over gs-1": first}, cases),
            "Another rule is as fast",
            "The iteration after which the set of zeros is that of the optimum, known from the "
            f"reference solution: smallest for gs-1, for every seed. {TIES}.",
            f"Iterations, for each seed: {seed_by_seed(found)}.",
            {"active set identified at iteration": found},
        ),
        Claim(
            "simplex-gs-1-updates-two",
            "gs-1 also updates 2 variables on more than 85% of iterations on the simplex.",
            "",
            "",
            "simplex",
            except_where(lambda fraction: fraction > 0.85, {"fraction": two}, cases),
            "From the center of the simplex the first iterations set many variables to zero at "
            "once, and they are more than 15% of all iterations",
            "The fraction of all iterations until convergence (KKT violation 1e-9, relative), for "
            "every seed.",
            f"{percent(min(two))} to {percent(max(two))}; at most {max(most)} at once.",
            {"fraction that updates 2": np.round(two, 4).tolist(), "most at once": most},
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
