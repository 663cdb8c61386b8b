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
from .gram import Computed, Given, Gram
from .newton import Newton
from .oracle import KernelOracle
from .points import Data, Points

# Duals with fewer variables than this are solved sooner by the processor; of many duals those with
# fewer than so many for each thread, for they are solved side by side there.
SMALL = 5_000

# Duals that are solved side by side: each keeps a thread of the processor busy.
SIDE_BY_SIDE = 8

BLOCK_BYTES = 2**27  # for the block of a working set, on the processor

ROUNDS = 5  # of the block gear between two questions whether to go on: part of a second

BEYOND = 0.8  # of the tolerance, for what float32 is off by

ROWS = 2**17  # of new samples that are decided on at once

# So many of them are decided on in float32 and in float64; the largest of the differences may be so
# many times smaller than what is allowed.
LOOKED_AT = 512
SAFELY = 4

KeepGoing = Callable[[float, int, int], bool]


class OnProcessor(Protocol):
    """The engine of the processor, for these data and this kernel."""

    def __call__(self, posed: Sequence[Posed], threads: int = ..., **limits: Any) -> Outcomes:
        """Solve duals side by side, in place."""


@dataclass
class Work:
    """What the duals of a fit have in common, and how far they have come."""

    gram: Gram
    on_processor: OnProcessor
    tol: float
    max_iter: int
    ends: float  # by time.perf_counter
    rule: int
    cold: bool
    stop: threading.Event = field(default_factory=threading.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)  # to fill the device's memory
    violation: float = 0.0
    iterations: int = 0

    def seconds_left(self) -> float:
        """Until the time is up; none where somebody has asked for an end."""
        return 0.0 if self.stop.is_set() else max(self.ends - time.perf_counter(), 0.0)

    def goes_on(self, *_: object) -> bool:
        """Whether there is time left."""
        return self.seconds_left() > 0

    def note(self, violation: float, iterations: int) -> None:
        """How far a dual has come."""
        self.violation, self.iterations = violation, iterations


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
    if kernel.name == "precomputed" and not Given.fits(device, X):
        large, small = [], list(posed)
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
            gram = _gram(device, X, center, kernel, single)
        share = partial(on_processor, threads=threads // side_by_side)
        work = Work(gram, share, tol, max_iter, ends, rule, cold)
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


def _gram(device: Device, X: Any, center: Array | None, kernel: Kernel, single: bool) -> Gram:
    if kernel.name == "precomputed":
        return Given(device, X)
    return Computed(device, Data(device, X, center), kernel, single)


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
    with work.gram.device.at_work():
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
        device = work.gram.device
        gradient = device.xp.array(whole.linear)
        support = np.flatnonzero(sample.z)
        points = work.gram.points(whole.rows, work.gram.dtypes[0])
        work.gram.add(sample.rows[support], sample.z[None, support], points, gradient[None])
        return np.array(device.fetch(gradient))

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
    for dtype in work.gram.dtypes:
        points = work.gram.points(dual.rows, dtype)
        if stop != _core.BlockStop.imprecise or math.isinf(work.gram.rounding(points)):
            continue
        oracle = KernelOracle(work.gram, dual, points, tol)
        gear = _core.BlockSolve(oracle, point, dual.totals, work.rule, False, BLOCK_BYTES)
        newton = Newton(oracle, BEYOND * tol)
        stop, rounds, steps = _core.BlockStop.paused, ROUNDS, 0
        while stop == _core.BlockStop.paused:
            stop = gear.run(tol, work.max_iter - used, rounds, work.seconds_left())
            work.note(gear.violation, used + gear.iterations)
            if stop == _core.BlockStop.paused and newton.is_due(gear.iterations - steps, rounds):
                with work.turn:
                    used += newton.descend(work.max_iter - used - gear.iterations, work.goes_on)
            rounds, steps = 1 if newton.done else ROUNDS, gear.iterations
        if stop != _core.BlockStop.optimal:
            gear.conclude()
        used += gear.iterations
        gradient[:] = work.gram.device.fetch(oracle.prices.gradient)
        if gear.violation <= tol:
            stop = _core.BlockStop.optimal
        elif not work.goes_on():
            stop = _core.BlockStop.stopped
    violation, bound, _, scale, _, multiplier = _core.certify(point, gradient, dual.linear)
    return Outcome(stop, used, violation, bound, scale, multiplier.tolist())


def add_decisions(
    device: Device, support: Any, center: Array | None, kernel: Kernel, coefficients: Array, X: Any,
    allowed: float, starts: Indices | None, sums: Array,
) -> None:  # fmt: skip
    """Add `coefficients` times the kernel of each row of X with the support rows, a row each.

    Of each group of support rows apart. In float32 where the errors of a sample of the rows say
    that it keeps those of all within `allowed`.
    """
    count, outputs = coefficients.shape
    groups = [0, count] if starts is None else starts.tolist()

    def decisions(rows: Indices, dtype: str) -> Array:
        some = device.xp.zeros((len(sums), len(rows)))
        points = Points(new, rows, dtype)
        for k, (begin, end) in enumerate(pairwise(groups)):
            gram.add(
                np.arange(begin, end), coefficients[begin:end].T, points,
                some[k * outputs : (k + 1) * outputs],
            )  # fmt: skip
        return np.array(device.fetch(some))

    with device.at_work():
        new = Data(device, X, center)
        gram = Computed(device, Data(device, support, center), kernel, allowed > 0)
        every = max(new.shape[0] // LOOKED_AT, 1)
        looked_at = np.arange(0, new.shape[0], every)
        dtype = "float64"
        if allowed > 0 and every > 1:
            error = np.abs(decisions(looked_at, "float32") - decisions(looked_at, "float64")).max()
            dtype = "float32" if SAFELY * error <= allowed else "float64"
        for first in range(0, new.shape[0], ROWS):
            rows = np.arange(first, min(first + ROWS, new.shape[0]))
            sums[:, rows] += decisions(rows, dtype)
