"""A time limit that is checked deep inside a solve, where one call may take long.

A gradient by finite differences computes many values. It calls `check` between them, and the solver
that set the limit catches `OutOfTime`.
"""

from __future__ import annotations

import math
import time
from contextvars import ContextVar, Token

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


class OutOfTime(Exception):
    """The time limit was reached inside a computation, which is abandoned."""


def begin(moment: float) -> Token[float]:
    """Set the deadline, as a time of `time.perf_counter`, until `end` is called.

    The deadline of an enclosing solve is suspended. This is not a context manager, because that
    would take longer than the other bookkeeping of a small solve.
    """
    return _deadline.set(moment)


def end(before: Token[float]) -> None:
    """Restore the previous deadline."""
    _deadline.reset(before)


def check() -> None:
    """Raise `OutOfTime` if the deadline has passed."""
    if time.perf_counter() >= _deadline.get():
        raise OutOfTime
