"""Duals solved on the device, and decisions made there."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..svm.machine import Dual, Kernel, Outcome, Outcomes, Posed
from ..svm.sample import LOOSELY, start_from_samples
from .device import Device
from .oracle import KernelOracle, add_kernel, rounding_of
from .points import Data, Points

# Duals with fewer variables than this are solved sooner by the processor; of many duals those with
# fewer than so many for each thread, for they are solved side by side there.
SMALL = 5_000

# Duals that are solved side by side: each keeps a thread of the processor busy.
SIDE_BY_SIDE = 8

BLOCK_BYTES = 2**27  # for the block of a working set, on the processor

ROUNDS = 50  # of the block gear between two questions whether to go on: part of a second

ROWS = 2**17  # of new samples that are decided on at once

KeepGoing = Callable[[float, int, int], bool]


class OnProcessor(Protocol):
    """The engine of the processor, for these data and this kernel."""

    def __call__(self, posed: Sequence[Posed], threads: int = ..., **limits: Any) -> Outcomes:
        """Solve duals side by side, in place."""


@dataclass
class Work:
    """What the duals of a fit have in common, and how far they have come."""

    device: Device
    data: Data
    kernel: Kernel
    on_processor: OnProcessor
    tol: float
    max_iter: int
    ends: float  # by time.perf_counter
    rule: int
    single: bool
    cold: bool
    stop: threading.Event = field(default_factory=threading.Event)
    violation: float = 0.0
    iterations: int = 0

    def seconds_left(self) -> float:
        """Until the time is up; none where somebody has asked for an end."""
        return 0.0 if self.stop.is_set() else max(self.ends - time.perf_counter(), 0.0)

    def goes_on(self, *_: object) -> bool:
        """Whether there is time left."""
        return self.seconds_left() > 0


def solve_duals(
    device: Device,
    X: Any,
    center: Array | None,
    kernel: Kernel,
    posed: Sequence[Posed],
    on_processor: OnProcessor,
    *,
    tol: float,
    max_iter: int,
    seconds: float,
    threads: int,
    single: bool,
    rule: int,
    cold: bool,
    keep_going: KeepGoing | None,
) -> Outcomes:
    """Solve duals over the rows of one matrix in place; the processor solves those that are small.

    X is as native code takes it.
    """
    ends = time.perf_counter() + seconds
    least = SMALL * min(len(posed), threads)
    large = [pose for pose in posed if len(pose[0].z) >= least]
    small = [pose for pose in posed if len(pose[0].z) < least]
    outcomes: dict[int, Outcome] = {}
    if small:
        limits: dict[str, Any] = {
            "tol": tol,
            "max_iter": max_iter,
            "cold": cold,
            "keep_going": keep_going,
        }
        found = on_processor(small, seconds=seconds, **limits)
        outcomes.update(zip(map(id, small), found, strict=True))
    if large:
        side_by_side = min(len(large), SIDE_BY_SIDE, threads)
        with device.at_work():
            data = Data(device, X, center)
        share = partial(on_processor, threads=threads // side_by_side)
        work = Work(device, data, kernel, share, tol, max_iter, ends, rule, single, cold)
        with ThreadPoolExecutor(side_by_side) as pool:
            futures = [pool.submit(_solve, work, *pose) for pose in large]
            try:
                _watch(futures, work, len(small), keep_going)
            except BaseException:
                work.stop.set()
                for future in futures:
                    future.cancel()
                raise
        outcomes.update(
            (id(pose), future.result()) for pose, future in zip(large, futures, strict=True)
        )
    return [outcomes[id(pose)] for pose in posed]


def _watch(
    futures: list[Future[Outcome]], work: Work, solved_before: int, keep_going: KeepGoing | None
) -> None:
    """Wait for all, and ask about twenty times a second whether to go on."""
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=0.05)
        for future in done:
            future.result()  # raises what has gone wrong
        solved = solved_before + len(futures) - len(pending)
        if keep_going is not None and not keep_going(work.violation, work.iterations, solved):
            work.stop.set()


def _solve(work: Work, dual: Dual, gradient: Array) -> Outcome:
    with work.device.at_work():
        used = 0
        if work.cold:
            used = _start(work, dual)
        return _solve_from_here(work, dual, gradient, work.tol, used)


def _start(work: Work, dual: Dual) -> int:
    """Start from samples. Returns the iterations that has taken."""
    used = 0

    def solve(sample: Dual) -> bool:
        nonlocal used
        gradient = np.empty_like(sample.z)
        used += _solve_from_here(work, sample, gradient, LOOSELY * work.tol, 0).n_iter
        return work.goes_on()

    def price(sample: Dual, whole: Dual) -> Array:
        xp = work.device.xp
        gradient = xp.array(whole.linear)
        support = np.flatnonzero(sample.z)
        add_kernel(
            work.device, work.data, work.kernel, sample.rows[support], sample.z[None, support],
            Points(work.data, whole.rows, "float32"), gradient[None],
        )  # fmt: skip
        return np.array(work.device.fetch(gradient))

    start_from_samples(dual, solve, price)
    return used


def _solve_from_here(work: Work, dual: Dual, gradient: Array, tol: float, used: int) -> Outcome:
    if len(dual.z) < SMALL:
        (outcome,) = work.on_processor(
            [(dual, gradient)], tol=tol, max_iter=work.max_iter - used,
            seconds=work.seconds_left(), cold=False, keep_going=work.goes_on,
        )  # fmt: skip
        return outcome._replace(n_iter=outcome.n_iter + used)
    point = dual.point()
    stop = _core.BlockStop.imprecise
    for dtype in ("float32", "float64") if work.single else ("float64",):
        points = Points(work.data, dual.rows, dtype)
        if stop != _core.BlockStop.imprecise or math.isinf(rounding_of(work.kernel, points)):
            continue
        oracle = KernelOracle(work.device, work.data, work.kernel, dual, points, tol)
        gear = _core.BlockSolve(oracle, point, dual.totals, work.rule, False, BLOCK_BYTES)
        stop = _core.BlockStop.paused
        while stop == _core.BlockStop.paused:
            stop = gear.run(tol, work.max_iter - used, ROUNDS, work.seconds_left())
            work.violation, work.iterations = gear.violation, used + gear.iterations
        if stop != _core.BlockStop.optimal:
            gear.conclude()
        used += gear.iterations
        gradient[:] = work.device.fetch(oracle.prices.gradient)
        if gear.violation <= tol:
            stop = _core.BlockStop.optimal
        elif not work.goes_on():
            stop = _core.BlockStop.stopped
    violation, bound, _, scale, _, multiplier = _core.certify(point, gradient, dual.linear)
    return Outcome(stop, used, violation, bound, scale, multiplier)


def decide(
    device: Device, support: Any, center: Array | None, kernel: Kernel, coefficients: Array, X: Any,
    allowed: float, starts: Indices | None,
) -> Array:  # fmt: skip
    """Sums of `coefficients` times the kernel of each row of X with the support rows, a row each.

    In float32 where that keeps their error within `allowed`; of each group of support rows apart.
    """
    count, outputs = coefficients.shape
    groups = [0, count] if starts is None else starts.tolist()
    with device.at_work():
        known, new = Data(device, support, center), Data(device, X, center)
        dtype = (
            "float32"
            if _float32_suffices(kernel, known, new, coefficients, groups, allowed)
            else "float64"
        )
        sums = np.empty(((len(groups) - 1) * outputs, new.shape[0]))
        for first in range(0, new.shape[0], ROWS):
            rows = slice(first, min(first + ROWS, new.shape[0]))
            points = Points(new, np.arange(rows.start, rows.stop), dtype)
            some = device.xp.zeros((len(sums), rows.stop - rows.start))
            for k, (begin, end) in enumerate(pairwise(groups)):
                add_kernel(
                    device, known, kernel, np.arange(begin, end), coefficients[begin:end].T,
                    points, some[k * outputs : (k + 1) * outputs],
                )  # fmt: skip
            sums[:, rows] = device.fetch(some)
    return sums


def _float32_suffices(
    kernel: Kernel, known: Data, new: Data, coefficients: Array, groups: list[int], allowed: float
) -> bool:
    if not allowed > 0:
        return False
    largest = max(known.largest_square(), new.largest_square())
    error = _core.float32_rounding(kernel.native, largest)
    sizes = [np.abs(coefficients[begin:end]).sum(axis=0).max() for begin, end in pairwise(groups)]
    return error is not None and error * max(sizes) <= allowed
