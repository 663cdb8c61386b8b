"""Duals solved over the shares of a cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import _core
from .._validation import Array
from ..rules import RULES
from ..svm import machine
from ..svm.machine import Dual, Kernel, Outcome, Solution
from ..svm.sample import start_from_samples
from .matrix import ClusterMatrix
from .oracle import ClusterOracle

# Duals with so few variables are solved by the coordinator, to which their rows are sent: so is the
# smallest of the samples that a large one starts from.
LOCAL = 24_000

# Samples are that many times larger than the one before, and solved to so many times the tolerance:
# what is saved in a sample costs rounds later.
TIMES, LOOSELY = 4, 100


@dataclass
class Work:
    """What the duals of a fit have in common, and how far they have come."""

    matrix: ClusterMatrix
    kernel: Kernel
    tol: float
    max_iter: int
    ends: float  # by time.perf_counter
    how: dict[str, Any]  # for the engine of one machine
    keep_going: Callable[[float, int, int], bool]
    solved: int = 0
    stopped: bool = False

    def goes_on(self, violation: float, iterations: int, _: int = 0) -> bool:
        """Tell how far it has come; whether there is time left, and nobody wants it to end."""
        if not self.stopped and not self.keep_going(violation, iterations, self.solved):
            self.stopped = True
        return not self.stopped and self.seconds_left() > 0

    def seconds_left(self) -> float:
        """Until the limit."""
        return max(self.ends - time.perf_counter(), 0.0)

    def solve(self, dual: Dual, cold: bool) -> Solution:
        """Solve a dual in place."""
        if len(dual.z) <= LOCAL:
            return self._locally(dual, self.tol, cold)
        used = self._start(dual) if cold else 0
        stop, n_iter, oracle = self._over_shares(dual, self.tol, used)
        gradient = oracle.gradient()
        violation, gap, _, scale, _, multiplier = _core.certify(dual.point(), gradient, dual.linear)
        return machine.concluded(
            dual, gradient, Outcome(stop, n_iter, violation, gap, scale, multiplier.tolist()),
            tol=self.tol, late=not self.stopped,
            rounding=lambda: self._rounding(dual, gradient, multiplier.tolist()),
        )  # fmt: skip

    def _locally(self, dual: Dual, tol: float, cold: bool) -> Solution:
        rows, places = np.unique(dual.rows, return_inverse=True)
        (solution,) = machine.solve(
            self.matrix[rows], self.kernel, [replace(dual, rows=places)], tol=tol,
            max_iter=self.max_iter, time_limit=self.seconds_left(), cold=cold,
            keep_going=self.goes_on, **self.how,
        )  # fmt: skip
        return solution

    def _start(self, dual: Dual) -> int:
        """Start from samples; the iterations that this has taken."""
        used = 0

        def solve(sample: Dual) -> bool:
            nonlocal used
            if len(sample.z) <= LOCAL:
                solution = self._locally(sample, LOOSELY * self.tol, False)
                sample.z[:] = solution.z
                used += solution.n_iter
            else:
                _, used, _ = self._over_shares(sample, LOOSELY * self.tol, used)
            return not self.stopped and self.seconds_left() > 0

        start_from_samples(dual, solve, self._price, TIMES)
        return used

    def _price(self, sample: Dual, whole: Dual) -> Array:
        """The gradients of `whole` where the variables of `sample` are the only ones."""
        z = np.zeros(len(whole.z))
        place = np.zeros(self.matrix.shape[0], np.int64)
        for some, all_ in zip(sample.groups, whole.groups, strict=True):
            place[whole.rows[all_]] = np.arange(all_.start, all_.stop)
            z[place[sample.rows[some]]] = sample.z[some]
        return self._oracle(replace(whole, z=z), self.tol, True).gradient()

    def _oracle(self, dual: Dual, tol: float, single: bool) -> ClusterOracle:
        cache_bytes, threads = self.how["cache_bytes"], self.how["threads"]
        return ClusterOracle(
            self.matrix, dual, tol=tol, cache_bytes=cache_bytes, threads=threads, single=single
        )

    def _over_shares(
        self, dual: Dual, tol: float, used: int
    ) -> tuple[_core.BlockStop, int, ClusterOracle]:
        """Run the block gear: how it ended, iterations in all, and the oracle."""
        rule = RULES["libsvm" if self.how["rule"] == "auto" else self.how["rule"]].code
        single = np.dtype(self.how["dtype"]) == np.float32
        while True:
            oracle = self._oracle(dual, tol, single)
            if math.isinf(oracle.rounding):
                single = False
                continue
            gear = _core.BlockSolve(oracle, dual.point(), dual.totals, rule, False)
            stop = _core.BlockStop.paused
            while stop == _core.BlockStop.paused:
                seconds = self.seconds_left()
                if not self.goes_on(gear.violation, used + gear.iterations):
                    seconds = 0.0
                stop = gear.run(tol, self.max_iter - used, 1, seconds)
            if stop != _core.BlockStop.optimal:
                gear.conclude()
            used += gear.iterations
            if gear.violation <= tol or stop != _core.BlockStop.imprecise or not single:
                return stop, used, oracle
            single = False

    def _rounding(self, dual: Dual, gradient: Array, multiplier: Sequence[float]) -> list[float]:
        """As of a machine over those rows alone whose terms are looked at."""
        kink = np.zeros(len(dual.z)) if dual.kink is None else dual.kink
        looked_at = dual.z != 0
        for group, price in zip(dual.groups, multiplier, strict=True):
            away = np.abs(np.abs(gradient[group] - price) - kink[group])
            looked_at[group.start + np.argmin(away)] = True
        some = np.flatnonzero(looked_at)
        part = replace(
            dual, rows=np.arange(len(some)), linear=dual.linear[some], z=dual.z[some],
            starts=np.searchsorted(some, dual.starts),
            kink=None if dual.kink is None else dual.kink[some],
        )  # fmt: skip
        data = self.matrix.local(dual.rows[some])
        return machine._rounding(
            data, self.matrix.center, self.kernel, part, gradient[some], multiplier
        )


def solve(
    matrix: ClusterMatrix,
    kernel: Kernel,
    duals: Sequence[Dual],
    *,
    tol: float,
    max_iter: int,
    time_limit: float,
    cold: bool,
    keep_going: Callable[[float, int, int], bool],
    **how: Any,
) -> list[Solution]:
    """Solve duals as `svm.machine.solve` does, one after the other.

    Of the rest, which is for the engine, `cache_bytes` are for each share and `threads` for the
    coordinator.
    """
    matrix.open(kernel)
    ends = time.perf_counter() + time_limit
    work = Work(matrix, kernel, tol, max_iter, ends, how, keep_going)
    solutions = []
    for dual in duals:
        solutions.append(work.solve(replace(dual, z=np.array(dual.z, np.float64)), cold))
        work.solved += 1
    return solutions
