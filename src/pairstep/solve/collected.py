"""The results of a batch while it is solved."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import log
from .._validation import Array
from ..labels import Axis
from ..result import BatchResult, Result, Status

PROGRESS_SECONDS = 1.0  # between two lines of progress
# Attributes of `Result` that are one number for each problem, or one for each of its sums.
NUMBERS: tuple[str, ...] = (
    "fun",
    "kkt_violation",
    "suboptimality_bound",
    "tolerance",
    "sum_multiplier",
)


def unknown_points(sizes: list[int]) -> Any:
    """Return NaN for each variable: an array, or a list if the problems differ in size.

    A size of 0 means that it is not known.
    """
    if len(set(sizes)) == 1 and sizes[0] > 0:
        return np.full((len(sizes), sizes[0]), np.nan)
    return [np.full(n, np.nan) for n in sizes]


class Collected:
    """The solutions found so far; NaN where there is none.

    Parameters
    ----------
    count : int
        Number of problems.
    points : callable
        Returns the `unknown_points` of the problems.
    labels : tuple of Axis
        The labels of the problems and of the variables.
    deadline : float, optional
        When the time is over, as `time.perf_counter()`.
    verbose : bool
        Whether to print the progress.
    """

    def __init__(
        self,
        count: int,
        points: Callable[[], Any],
        labels: tuple[Axis, Axis],
        deadline: float | None,
        verbose: bool,
    ):
        self.count, self.points, self.labels = count, points, labels
        self.deadline, self.verbose = deadline, verbose
        self.x: Any = None  # until `take` or `take_batch`
        self.gradient: Any = None
        self.numbers: dict[str, Array] = {}
        self.n_iter = np.zeros(count, np.int64)
        self.solved = np.zeros(count, bool)
        self.status = np.full(count, Status.TIME_LIMIT.value, "<U10")
        self.errors: dict[int, str] = {}
        self.results: dict[int, Result] = {}  # of single solves
        self.reported = time.perf_counter()

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, or infinity."""
        if self.deadline is None:
            return math.inf
        return max(self.deadline - time.perf_counter(), 0.0)

    def solve(self, k: int, single_solve: Callable[[float | None], Result]) -> None:
        """Store the result of a single solve, which takes its time limit, or its error."""
        seconds = self.seconds_left
        try:
            self._take(k, single_solve(None if math.isinf(seconds) else seconds))
        except (ValueError, TypeError) as error:
            self.errors[k] = str(error)
            self.status[k] = Status.INVALID.value

    def _take(self, k: int, result: Result) -> None:
        self._fill()
        self.results[k] = result
        self.x[k], self.gradient[k] = result.x, result.gradient
        several = np.shape(result.sum_multiplier)
        if several and self.numbers["sum_multiplier"].ndim == 1:  # one per group
            self.numbers["sum_multiplier"] = np.full((self.count, *several), np.nan)
        for name, values in self.numbers.items():
            values[k] = getattr(result, name)
        self.n_iter[k], self.status[k], self.solved[k] = result.n_iter, result.status, True
        now = time.perf_counter()
        if log.is_enabled(self.verbose) and now > self.reported + PROGRESS_SECONDS:
            self.reported = now
            log.write(f"{self.solved.sum()} of {self.count} problems solved", self.verbose)

    def take_batch(
        self,
        members: NDArray[np.int64],
        solved: NDArray[np.bool_],
        x: Array,
        gradient: Array,
        n_iter: NDArray[np.int64],
        numbers: dict[str, Array],
    ) -> None:
        """Store the results of several solves, where `solved`."""
        if not solved.all():
            for values in (x, gradient, *numbers.values()):
                values[~solved] = np.nan
        self.status[members[solved]] = Status.OPTIMAL.value
        self.solved[members], self.n_iter[members] = solved, n_iter
        if len(members) == self.count:
            self.x, self.gradient, self.numbers = x, gradient, numbers
            return
        self._fill()
        for row, k in enumerate(members):
            self.x[k], self.gradient[k] = x[row], gradient[row]
        for name, values in numbers.items():
            self.numbers[name][members] = values

    def _fill(self) -> None:
        """Set everything to NaN, unless there are solutions."""
        if self.x is not None:
            return
        self.x, self.gradient = self.points(), self.points()
        self.numbers = {name: np.full(self.count, np.nan) for name in NUMBERS}

    def batch_result(self, began: float, problems: Any) -> BatchResult:
        """Return the result of the batch, which keeps its problems for derivatives."""
        reasons = set(self.errors.values())
        if len(reasons) == 1 and len(self.errors) == self.count:
            raise ValueError(reasons.pop())  # the problems share what is wrong
        self._fill()
        names, variables = self.labels
        elapsed = time.perf_counter() - began
        result = BatchResult(
            x=self.x,
            status=self.status,
            n_iter=self.n_iter,
            setup_time=0.0,
            solve_time=elapsed,
            variables=variables,
            items=names,
            errors=self.errors,
            gradient=self.gradient,
            **self.numbers,
        )
        object.__setattr__(result, "_problems", problems)
        object.__setattr__(result, "_results", self.results)
        if log.is_enabled(self.verbose):
            solved = f"{result.success.sum()} of {self.count}"
            log.write(f"{solved} problems optimal after {elapsed:.3g} s", self.verbose)
        return result
