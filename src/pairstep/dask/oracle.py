"""The oracle of the block solver over the partitions of a cluster.

A round is one message to all partitions. It has the variables that changed, with those of their
rows that the partitions have not received before. The answer has the candidates for the next
working set, with rows that the coordinator has not received before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.engine import Dual, largest_value, noise_of
from .cluster import Connection
from .matrix import ClusterMatrix
from .partition import Answer, Calls

# The problem is shrunk if at most this fraction of its variables stays active: each shrinking costs
# a round, and the gradients of the other variables must be recomputed later.
MAX_ACTIVE_FRACTION = 0.7

# Candidates for each direction that are requested in advance, together with the update of the
# gradient: the larger of this number, which the block solver usually needs, and this fraction of
# the last working set. If larger, answers are longer; if smaller, extra rounds are more frequent.
MIN_CANDIDATES_REQUESTED = 256
CANDIDATES_PER_MEMBER = 1 / 8

# With more than two partitions, each sends twice its part of the candidates plus this many, because
# the most violating variables are not spread evenly.
EXTRA_CANDIDATES = 16

# Derivatives are recomputed if they are within this many errors of the extreme one. If larger, more
# derivatives are recomputed; if smaller, the true extreme may be missed, since the errors of most
# derivatives are not known.
ERROR_MARGIN = 8


class ClusterOracle:
    """The oracle of one dual, starting at its z."""

    def __init__(
        self, matrix: ClusterMatrix, dual: Dual, *, tol: float, cache_bytes: int, threads: int,
        single: bool,
    ):  # fmt: skip
        self.matrix, self.partitions, self.dual = matrix, matrix.partitions, dual
        self.tol, self.cache_bytes, self.threads, self.single = tol, cache_bytes, threads, single
        self.coordinates = [
            np.flatnonzero((dual.rows >= connection.begin) & (dual.rows < connection.end))
            for connection in self.partitions.connections
        ]
        # Variables that have changed are numbered in the order of their first change.
        self.number = np.full(len(dual.z), -1, np.int64)
        self.changed = np.zeros(0, np.int64)  # in this order
        self.levels: list[Array] = []  # the multiplier intervals of each shrinking
        self.sizes = [len(dual.z)]  # active variables on each level
        self.count, self.with_free = MIN_CANDIDATES_REQUESTED, False
        self.found: tuple[Indices, Array] | None = None  # the candidates of the last round
        # Calls that make a restored partition recompute the gradients that the others have.
        self.verified: Calls = []
        matrix.oracle = self
        updates = self._update_calls(np.flatnonzero(dual.z))
        norms = self.partitions.call_each(
            [
                [self._begin(connection), *updates, ("norms",)]
                for connection in self.partitions.connections
            ],
            again=[("norms",)],
        )
        largest = max(answer[-1][0] for answer in norms)
        self.largest = largest_value(matrix.kernel, largest)
        usual = sum(answer[-1][1] for answer in norms) / len(dual.z)
        # The error of a kernel value: the largest one, and that of points with average norms.
        self.rounding, self.usual_rounding = (
            self._rounding(square) if single else 0.0 for square in (largest, usual)
        )

    def _rounding(self, square: float) -> float:
        error = _core.float32_rounding(self.matrix.kernel.native, square)
        return math.inf if error is None else error

    def _begin(self, connection: Connection) -> tuple[Any, ...]:
        own, dual = self.coordinates[connection.number], self.dual
        return (
            "begin", own, dual.rows[own] - connection.begin, dual.linear[own], dual.lower[own],
            dual.upper[own], None if dual.l1 is None else dual.l1[own],
            np.searchsorted(own, dual.starts).astype(np.int64), len(dual.z), self.cache_bytes,
            self.single,
        )  # fmt: skip

    def restore_calls(self, connection: Connection) -> Calls:
        """Return the calls that bring a new owner up to date: dual, changes, shrinking."""
        slots = self.matrix.slots[self.dual.rows[self.changed]]
        return [
            self._begin(connection),
            ("introduce", self.changed, slots),
            self._update_gradient(self.changed),
            *(("shrink", intervals) for intervals in self.levels),
        ]

    def _update_calls(self, moved: Indices) -> Calls:
        """Return the calls that report changed variables to the partitions."""
        new = moved[self.number[moved] < 0]
        calls, slots = self.matrix.store(self.dual.rows[new])
        if len(new):
            self.number[new] = len(self.changed) + np.arange(len(new))
            self.changed = np.concatenate([self.changed, new])
            calls.append(("introduce", new, slots))
        return [*calls, self._update_gradient(moved)]

    def _update_gradient(self, moved: Indices) -> tuple[Any, ...]:
        dual = self.dual
        x = dual.z[moved]
        free = (x > dual.lower[moved]) & (x < dual.upper[moved])
        if dual.l1 is not None:
            free &= x != 0
        return "update_gradient", self.number[moved], x, free

    def _scan(self) -> tuple[Any, ...]:
        # All partitions are expected to have about the same number of candidates.
        count = self.count
        if len(self.partitions.connections) > 2:
            count = min(count, 2 * count // len(self.partitions.connections) + EXTRA_CANDIDATES)
        return "select_candidates", count, self.with_free

    def _call_and_scan(self, calls: Calls, again: Calls) -> list[Answer]:
        """Send calls to the partitions and, in the same round, select the next candidates."""
        scan = self._scan()
        answers = self.partitions.call_all([*calls, scan], again=[*again, scan])
        coordinates, gradient = [], []
        for connection, answer in zip(self.partitions.connections, answers, strict=True):
            *_, (some, their_gradient, rows, features) = answer
            coordinates.append(some)
            gradient.append(their_gradient)
            self.matrix.add_rows(rows + connection.begin, features)
        self.found = np.concatenate(coordinates), np.concatenate(gradient)
        return answers

    def select_candidates(self, count: int, with_free: bool) -> tuple[Indices, Array, float, float]:
        """Merge the candidates of the partitions, which usually came with the last answer."""
        if count > self.count or (with_free and not self.with_free):
            self.found = None
            self.count, self.with_free = max(self.count, count), with_free
        if self.found is None:
            self._call_and_scan([], [])
        assert self.found is not None
        # Errors of kernel values are nearly independent, so their squares add up.
        z = self.dual.z[self.changed]
        noise = self.usual_rounding * math.sqrt(float((z * z).sum()))
        return *self.found, 1.0, max(noise, noise_of(float(np.abs(z).sum()), self.largest))

    def fill_block(self, members: Indices, out: Array) -> None:
        """Compute the block here; the rows of its members came with the candidates."""
        self.count = max(MIN_CANDIDATES_REQUESTED, int(CANDIDATES_PER_MEMBER * len(members)))
        exact = self.with_free or not self.single
        self.matrix.fill_block(self.dual.rows[members], exact, self.threads, out)

    def update_gradient(self, moved: Indices, delta: Array) -> None:
        """Report the changed variables to all partitions."""
        self.verified = []
        self._call_and_scan(self._update_calls(moved), [])

    def recompute_gradient(self) -> None:
        """Recompute the derivatives that may be the extreme ones of a group over all partitions.

        These are within a margin of the extreme one. The margin is at least `tol`, and at least
        `ERROR_MARGIN` times the error that the rounding of one kernel value could cause. It grows
        to `ERROR_MARGIN` times the largest error found. The method ends when all derivatives within
        the margin are recomputed.
        """
        largest = float(np.abs(self.dual.z).max(initial=0.0))
        margin, error, restart = max(self.tol, ERROR_MARGIN * largest * self.rounding), 0.0, True
        intervals = self._intervals(self.partitions.call_all([("intervals",)]), 0)
        while True:
            # A partition that was restored has recomputed nothing yet.
            self.verified = [("recompute_gradient", intervals, margin, True)]
            calls: Calls = [("recompute_gradient", intervals, margin, restart), ("intervals",)]
            answers = self._call_and_scan(calls, [*self.verified, ("intervals",)])
            intervals = self._intervals(answers, 1)
            error = max(error, *(answer[0][1] for answer in answers))
            if sum(answer[0][0] for answer in answers) == 0 and margin >= ERROR_MARGIN * error:
                return
            margin, restart = max(margin, ERROR_MARGIN * error), False

    def _intervals(self, answers: list[Answer], place: int) -> Array:
        """Return the largest left and the smallest right derivative of each group."""
        each = np.stack([answer[place] for answer in answers])
        return np.stack([each[:, :, 0].max(axis=0), each[:, :, 1].min(axis=0)], axis=1)

    def shrink(self, intervals: Array) -> int:
        """Continue with the variables that stay active; return their number, or 0 if not shrunk."""
        left = sum(answer[0] for answer in self.partitions.call_all([("active", intervals)]))
        if left < 2 or left > MAX_ACTIVE_FRACTION * self.sizes[-1]:
            return 0
        self.levels.append(intervals)
        self.sizes.append(left)
        self._call_and_scan([("shrink", intervals)], [])
        return int(left)

    def unshrink(self) -> None:
        """Undo the last shrinking."""
        self.levels.pop()
        self.sizes.pop()
        self._call_and_scan([("unshrink",)], [])

    def gradient(self) -> Array:
        """Return the gradient of all variables."""
        whole = np.empty(len(self.dual.z))
        answers = self.partitions.call_all([("gradient",)], again=[*self.verified, ("gradient",)])
        for own, answer in zip(self.coordinates, answers, strict=True):
            whole[own] = answer[-1]
        return whole
