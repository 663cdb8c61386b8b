"""Small dense problems in one native call: all that Python does about a solve would take longer."""

from __future__ import annotations

import math
import time
from typing import Any

from .. import _core
from ..result import Result, Status
from .minimize import MESSAGES


def solve_small(Q: Any, c: Any, total: Any, lower: Any, upper: Any, tol: Any) -> Result | None:
    """The optimum, if it is plain; None where the problem needs a closer look, or has an error."""
    began = time.perf_counter()
    found = _core.small(
        Q, 0.0 if c is None else c, total, lower, math.inf if upper is None else upper, tol
    )
    if found is None:
        return None
    x, value, n_iter, violation, tolerance, bound, multiplier = found
    message = MESSAGES[Status.OPTIMAL].format(violation=violation, threshold=tolerance)
    return Result(
        x, value, Status.OPTIMAL, message, n_iter, violation, bound, multiplier,
        setup_time=0.0, solve_time=time.perf_counter() - began,
    )  # fmt: skip
