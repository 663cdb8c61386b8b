"""What a solve returns."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Status(StrEnum):
    """Why a solve ended. Members compare equal to their names as strings."""

    OPTIMAL = "optimal"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    STOPPED = "stopped"
    STALLED = "stalled"
    UNBOUNDED = "unbounded"
    INVALID = "invalid"  # in a batch: this problem's input is not finite, or too large


@dataclass(frozen=True)
class History:
    """One entry per point visited, the start included.

    Attributes
    ----------
    value : ndarray
        Objective.
    violation : ndarray
        KKT violation.
    moved : ndarray of int
        How many coordinates moved to get there (0 at the start).
    interior : ndarray of int
        How many coordinates lie strictly between their bounds.
    time : ndarray
        Seconds since the solve began.
    """

    value: Array
    violation: Array
    moved: NDArray[np.int64]
    interior: NDArray[np.int64]
    time: Array


@dataclass(frozen=True)
class Progress:
    """What a callback receives after each iteration."""

    n_iter: int
    value: float
    violation: float
    x: Array
    time: float


@dataclass(frozen=True)
class Result:
    """Outcome of a solve.

    Attributes
    ----------
    x : ndarray
        The point found: within its bounds exactly, and summing to the total within one ulp.
    fun : float
        The objective at x.
    status : Status
        Why the solve ended; `optimal` only if `kkt_violation` holds the tolerance.
    message : str
        The same in a sentence, with the numbers.
    n_iter : int
        Iterations made.
    kkt_violation : float
        By how much the KKT conditions are violated, recomputed from the problem at x: the largest
        left derivative of a variable that can fall minus the smallest right derivative of one that
        can rise, at least 0.
    suboptimality_bound : float
        The Frank-Wolfe gap: at least ``f(x) - f*`` if f is convex. inf where the feasible set is
        unbounded.
    multiplier : float or ndarray
        The Lagrange multiplier of the sum; one per group where each has a total of its own.
    setup_time, solve_time : float
        Seconds.
    history : History or None
        If it was asked for.
    group_multiplier : dict or None
        With groups, the multiplier of each label's sum. Under a total of all, what the limits of
        the group add to the multiplier of the total: 0 where its sum is between them, negative at
        the upper one, positive at the lower.
    """

    x: Array
    fun: float
    status: Status
    message: str
    n_iter: int
    kkt_violation: float
    suboptimality_bound: float
    multiplier: float | Array
    setup_time: float
    solve_time: float
    history: History | None = None
    group_multiplier: dict[Hashable, float] | None = None


@dataclass(frozen=True)
class BatchResult:
    """Outcome of many solves; entry k belongs to the k-th right-hand side.

    Attributes
    ----------
    x : ndarray of shape (n, count)
        A column per right-hand side; NaN where its input was not finite.
    fun, kkt_violation, suboptimality_bound : ndarray of shape (count,)
        As in `Result`, recomputed from the problem.
    status : ndarray of str
        The `Status` of each.
    n_iter : ndarray of int
        Iterations of each.
    setup_time, solve_time : float
        Seconds, for all together.
    """

    x: Array
    fun: Array
    status: NDArray[np.str_]
    n_iter: NDArray[np.int64]
    kkt_violation: Array
    suboptimality_bound: Array
    setup_time: float
    solve_time: float
