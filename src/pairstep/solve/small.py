"""Small dense problems in one native call: all that Python does about a solve would take longer."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from .. import _core
from ..result import Result, Status
from .task import MESSAGES


def solve_small(Q: Any, c: Any, total: Any, lower: Any, upper: Any, tol: Any) -> Result | None:
    """The optimum, if it is plain; None where the problem needs a closer look, or has an error."""
    began = time.perf_counter()
    upper = math.inf if upper is None else upper
    found = _core.small(Q, 0.0 if c is None else c, total, lower, upper, tol)
    if found is None:
        return None
    x, gradient, value, n_iter, violation, tolerance, bound, multiplier = found
    message = MESSAGES[Status.OPTIMAL].format(violation=violation, threshold=tolerance)
    return Result(
        x, value, Status.OPTIMAL, message, n_iter, violation, bound, multiplier,
        setup_time=0.0, solve_time=time.perf_counter() - began,
        gradient=gradient, pull=multiplier, bounds=(_own(lower), _own(upper)),
    )  # fmt: skip


def _own(bound: Any) -> Any:
    return bound.copy() if isinstance(bound, np.ndarray) else bound
