"""Solve SVM duals with an oracle that runs on a GPU or a cluster.

The sequence of steps is the same for all of these back ends:

1. The CPU solves small duals natively: a round trip would take longer.
2. A large dual starts from samples of it (`sample.py`) unless a start is known.
3. The block solver (`cpp/engine/block_solver.cpp`) runs with kernel values in float32 and, if their
   rounding keeps it from the tolerance, again with float64.
4. The gradient is checked against precise values, and the resulting violation decides the status.

The time limit and the progress callback are checked between calls of the block solver. A back end
supplies the oracle and a `Tuning`. For the CPU, `cpp/engine/svm.cpp` takes the same steps natively:
there, thousands of small duals run side by side, and a Python loop would dominate their cost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from .. import _core
from .._validation import Array
from .engine import Dual, Duals, Outcome, Solution, Solutions, conclude
from .sample import start_from_samples

KeepGoing = Callable[[float, int, int], bool]

# Seconds between two calls of the progress callback while worker threads solve duals. The native
# engine uses the same interval (`cpp/core/interrupt.hpp`).
POLL_INTERVAL = 0.05


@dataclass(frozen=True)
class Tuning:
    """Constants of the driver that depend on what a back end's rounds cost.

    The defaults of the sampling constants are those of the CPU (`cpp/engine/sample.hpp`).
    """

    # Duals with fewer variables are solved by the CPU.
    local_size: int
    # Whether the CPU solves its duals in parallel. Then `local_size` is multiplied by the number of
    # duals that run at the same time, because the CPU finishes that many times sooner.
    local_side_by_side: bool
    # Rounds of the block solver between two checks of the time limit and the callback.
    rounds_per_call: int
    # Duals that the oracle's back end solves at the same time, each with one CPU thread. One dual
    # alone is solved in the calling thread.
    max_concurrent_duals: int
    # Maximum size in bytes of the Hessian block of a working set, in CPU memory. It limits the size
    # of the working set: larger ones take fewer rounds, but each round takes longer.
    block_bytes: int = 2**27
    # Each sample has this many times the rows of the one before it.
    sample_growth: int = _core.SAMPLE_GROWTH
    # Number of variables of the smallest sample.
    sample_min_size: int = _core.SAMPLE_MIN_SIZE
    # Number of variables of a sample that is the only one, if it may be smaller.
    sample_min_largest: int | None = None
    # Samples are solved to this multiple of the tolerance.
    sample_tolerance_factor: float = _core.SAMPLE_TOLERANCE_FACTOR
    # Fraction of a sample's variables that must be at a nonzero bound for the sample to be used.
    sample_min_at_bound: float = _core.SAMPLE_MIN_AT_BOUND


class DualOracle(Protocol):
    """An oracle of the block solver for one dual, with the methods of `pairstep.solve.oracle`."""

    def gradient(self) -> Array:
        """Return the gradient of all variables at the current point."""


class Accelerator(Protocol):
    """A method that takes over between calls of the block solver when these get expensive."""

    @property
    def done(self) -> bool:
        """Whether the last `descend` reached its tolerance."""

    def is_due(self, iterations: int, rounds: int) -> bool:
        """Add the cost of this many more pair steps and rounds; return whether to `descend` now."""

    def descend(self, max_iter: int, keep_going: Callable[[float], bool]) -> int:
        """Reduce the violation, moving the oracle's point; return the iterations used."""


class BackEnd(Protocol):
    """An oracle factory with its tuning constants."""

    tuning: Tuning
    threads: int  # CPU threads
    dtypes: tuple[str, ...]  # types of kernel values, in the order in which they are tried

    def at_work(self) -> AbstractContextManager[None]:
        """Return a context in which a thread may use the back end."""

    def solve_locally(self, duals: Sequence[Dual], **options: Any) -> Sequence[Solution]:
        """Solve duals on the CPU.

        The options are `tol`, `max_iter`, `time_limit`, `cold`, `keep_going` and `threads`, as in
        `engine.solve`.
        """

    def oracle(self, dual: Dual, dtype: str, tol: float) -> DualOracle | None:
        """Return the oracle of a dual at its z, or None if this type is too imprecise for it."""

    def accelerator(self, oracle: Any, tol: float) -> Accelerator | None:
        """Return an accelerator for an oracle of this back end, if there is one."""

    def gradient_at(self, sample: Dual, target: Dual) -> Array:
        """Return the gradient of `target` where only the variables of `sample` are nonzero."""

    def verify(
        self, dual: Dual, gradient: Array, stop: _core.StopReason, n_iter: int, tol: float
    ) -> Outcome:
        """Check the gradient against precise values, correct it, and compute the violation.

        The gradient is changed in place. It and the multipliers returned belong to the data as they
        were given, not to the centered data that the oracle may use.
        """

    def rounding(self, dual: Dual, gradient: Array, multiplier: Array) -> list[float]:
        """Return a bound on the rounding error of each group's multiplier."""


def local_limit(tuning: Tuning, count: int, threads: int) -> int:
    """Return the least number of variables of a dual that the back end solves, of `count` duals."""
    return tuning.local_size * (min(count, threads) if tuning.local_side_by_side else 1)


def solve_duals(
    back_end: BackEnd,
    duals: Sequence[Dual],
    *,
    tol: float,
    max_iter: int,
    time_limit: float,
    cold: bool,
    keep_going: KeepGoing | None,
) -> Solutions:
    """Solve duals as `engine.solve` does, the large ones with the oracle of a back end."""
    return _Driver(back_end, tol, max_iter, time_limit, cold, keep_going).solve(duals)


class _Driver:
    """The common limits of the duals of one call, and their progress."""

    def __init__(
        self, back_end: BackEnd, tol: float, max_iter: int, time_limit: float, cold: bool,
        keep_going: KeepGoing | None,
    ):  # fmt: skip
        self.back_end, self.tuning = back_end, back_end.tuning
        self.tol, self.max_iter, self.cold = tol, max_iter, cold
        self.keep_going = keep_going
        self.deadline = time.perf_counter() + time_limit
        self.stop_requested = threading.Event()
        self.caller = threading.get_ident()
        self.threads_each = back_end.threads
        self.violation, self.iterations, self.solved = 0.0, 0, 0

    def seconds_left(self) -> float:
        """Return the seconds until the time limit, or 0 if the callback returned False."""
        if self.stop_requested.is_set():
            return 0.0
        return max(self.deadline - time.perf_counter(), 0.0)

    def may_continue(self, *_: object) -> bool:
        """Return whether there is time left."""
        return self.seconds_left() > 0

    def report(self, violation: float, iterations: int, solved: int = 0) -> bool:
        """Record the progress of a dual; return whether there is time left.

        The callback only runs in the calling thread, because it may raise KeyboardInterrupt or use
        objects that belong to that thread. Worker threads reach it through `_watch`.
        """
        self.violation, self.iterations = violation, iterations
        if threading.get_ident() == self.caller:
            self._poll(solved)
        return self.may_continue()

    def _poll(self, solved: int = 0) -> None:
        if self.keep_going is None or self.stop_requested.is_set():
            return
        if not self.keep_going(self.violation, self.iterations, self.solved + solved):
            self.stop_requested.set()

    def solve(self, duals: Sequence[Dual]) -> Solutions:
        """Solve all duals."""
        duals = [replace(dual, z=np.array(dual.z, np.float64)) for dual in duals]
        limit = local_limit(self.tuning, len(duals), self.back_end.threads)
        is_local = [len(dual.z) < limit for dual in duals]
        local = [dual for dual, here in zip(duals, is_local, strict=True) if here]
        remote = [dual for dual, here in zip(duals, is_local, strict=True) if not here]
        found_here, found_there = iter(self._solve_local(local)), iter(self._solve_remote(remote))
        return Solutions.of([next(found_here if here else found_there) for here in is_local])

    def _solve_local(self, duals: list[Dual]) -> list[Solution]:
        solutions: list[Solution] = []
        size = max(len(duals), 1) if self.tuning.local_side_by_side else 1
        for first in range(0, len(duals), size):
            solutions += self.back_end.solve_locally(
                duals[first : first + size], tol=self.tol, max_iter=self.max_iter,
                time_limit=self.seconds_left(), cold=self.cold, keep_going=self.report,
                threads=self.back_end.threads,
            )  # fmt: skip
            self.solved = len(solutions)
        return solutions

    def _solve_remote(self, duals: list[Dual]) -> list[Solution]:
        workers = min(len(duals), self.tuning.max_concurrent_duals, self.back_end.threads)
        if workers <= 1:
            finished = []
            for dual in duals:
                finished.append(self._solve_one(dual))
                self.solved += 1
        else:
            finished = self._solve_concurrently(duals, workers)
        return [self._conclude(dual, *result) for dual, result in zip(duals, finished, strict=True)]

    def _solve_concurrently(
        self, duals: list[Dual], workers: int
    ) -> list[tuple[_core.StopReason, int, Array]]:
        self.threads_each = max(self.back_end.threads // workers, 1)
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(self._solve_one, dual) for dual in duals]
            try:
                self._watch(futures)
            except BaseException:
                self.stop_requested.set()
                for future in futures:
                    future.cancel()
                raise
        return [future.result() for future in futures]

    def _watch(self, futures: list[Future[Any]]) -> None:
        """Wait for all futures, calling the progress callback meanwhile."""
        solved_before, pending = self.solved, set(futures)
        while pending:
            done, pending = wait(pending, timeout=POLL_INTERVAL)
            for future in done:
                future.result()  # raises the error of the thread, if there was one
            self.solved = solved_before + len(futures) - len(pending)
            self._poll()

    def _solve_one(self, dual: Dual) -> tuple[_core.StopReason, int, Array]:
        """Solve a large dual in place; return why it ended, its iterations and its gradient."""
        with self.back_end.at_work():
            used = self._start(dual) if self.cold else 0
            stop, used, oracle = self._run_rounds(dual, self.tol, used)
            return stop, used, oracle.gradient()

    def _start(self, dual: Dual) -> int:
        """Start from samples; return the iterations used."""
        used = 0
        tol = self.tuning.sample_tolerance_factor * self.tol

        def solve(sample: Dual) -> bool:
            nonlocal used
            if len(sample.z) < self.tuning.local_size:
                (solution,) = self.back_end.solve_locally(
                    [sample], tol=tol, max_iter=self.max_iter - used,
                    time_limit=self.seconds_left(), cold=False,
                    keep_going=lambda violation, n_iter, _: self.report(violation, n_iter),
                    threads=self.threads_each,
                )  # fmt: skip
                sample.z[:] = solution.z
                used += solution.n_iter
            else:
                _, used, _ = self._run_rounds(sample, tol, used)
            return self.may_continue()

        start_from_samples(
            dual, solve, self.back_end.gradient_at, growth=self.tuning.sample_growth,
            min_size=self.tuning.sample_min_size, min_largest=self.tuning.sample_min_largest,
            min_at_bound=self.tuning.sample_min_at_bound,
        )  # fmt: skip
        return used

    def _run_rounds(
        self, dual: Dual, tol: float, used: int
    ) -> tuple[_core.StopReason, int, DualOracle]:
        """Run the block solver in each type of kernel values until one reaches the tolerance.

        Returns why it ended, the iterations including those `used` before, and the last oracle.
        """
        stop, last = _core.StopReason.imprecise, None
        for dtype in self.back_end.dtypes:
            oracle = self.back_end.oracle(dual, dtype, tol)
            if oracle is None:
                continue
            last = oracle
            stop, used = self._run_block_solver(oracle, dual, tol, used)
            if stop != _core.StopReason.imprecise:
                break
            if not self.may_continue():
                stop = _core.StopReason.stopped
                break
        assert last is not None, "a back end must accept its last type of kernel values"
        return stop, used, last

    def _run_block_solver(
        self, oracle: DualOracle, dual: Dual, tol: float, used: int
    ) -> tuple[_core.StopReason, int]:
        solver = _core.BlockSolve(oracle, dual.point(), dual.totals, False, self.tuning.block_bytes)
        accelerator = self.back_end.accelerator(oracle, tol)
        stop, rounds, before = _core.StopReason.paused, self.tuning.rounds_per_call, 0
        while stop == _core.StopReason.paused:
            stop = solver.run(tol, self.max_iter - used, rounds, self.seconds_left())
            self.report(solver.violation, used + solver.iterations)
            if accelerator is not None and stop == _core.StopReason.paused:
                if accelerator.is_due(solver.iterations - before, rounds):
                    max_iter = self.max_iter - used - solver.iterations
                    iterations = used + solver.iterations

                    def keep_going(violation: float, iterations: int = iterations) -> bool:
                        return self.report(violation, iterations)

                    used += accelerator.descend(max_iter, keep_going)
                # The block solver only has to confirm what the accelerator found.
                rounds = 1 if accelerator.done else self.tuning.rounds_per_call
                before = solver.iterations
        if stop != _core.StopReason.optimal:
            solver.conclude()
        if solver.violation <= tol:
            stop = _core.StopReason.optimal
        return stop, used + solver.iterations

    def _conclude(
        self, dual: Dual, stop: _core.StopReason, n_iter: int, gradient: Array
    ) -> Solution:
        outcome = self.back_end.verify(dual, gradient, stop, n_iter, self.tol)
        (solution,) = conclude(
            Duals.of([dual]), gradient, outcome.numbers, tol=self.tol,
            timed_out=not self.stop_requested.is_set(), rounding=self.back_end.rounding,
        )  # fmt: skip
        return solution
