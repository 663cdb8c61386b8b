"""What every support vector machine is to the engine: duals over the rows of one data matrix.

With z_i = y_i alpha_i (classes) or alpha_i - alpha*_i (regression) each of them is

    minimise z'Kz/2 + linear'z + sum_i kink_i |z_i|
    subject to sum of each group of z = its total, lower <= z <= upper

where K is the kernel matrix of the rows that the variables stand for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..result import Status
from ..rules import RULES

if TYPE_CHECKING:
    from ..gpu.device import Device

KernelName = Literal["linear", "poly", "rbf", "sigmoid", "precomputed"]
KERNELS: tuple[str, ...] = get_args(KernelName)
# What the engine's word means where the certificate finds the tolerance missed.
STATUSES = {
    _core.BlockStop.max_iter: Status.MAX_ITER,
    _core.BlockStop.stopped: Status.STOPPED,
    _core.BlockStop.unbounded: Status.UNBOUNDED,
}


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters; a precomputed one is read from the data matrix itself."""

    name: KernelName
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    @property
    def native(self) -> Any:
        """As the native code takes it."""
        name = getattr(_core.KernelName, self.name)
        return _core.Kernel(name, self.gamma, self.coef0, self.degree)


@dataclass(slots=True)
class Dual:
    """One dual: its variables stand for `rows` of the data, groups side by side."""

    rows: Indices
    linear: Array
    lower: Array
    upper: Array
    starts: Indices  # where each group begins, and n
    totals: Array
    z: Array  # a feasible start
    kink: Array | None = None
    gradient: Array | None = None  # at the start, where it is known
    closely: bool = True  # whether a small one is solved further than to tol, so that it repeats

    @property
    def groups(self) -> list[slice]:
        """The variables of each group."""
        return [slice(*ends) for ends in pairwise(self.starts.tolist())]

    def starting_at(self, z: Array) -> Dual:
        """The same dual with another start; of hundreds of small ones `replace` would be felt."""
        return Dual(
            self.rows, self.linear, self.lower, self.upper, self.starts, self.totals, z, self.kink,
            self.gradient, self.closely,
        )  # fmt: skip

    def point(self) -> Any:
        """As the engine takes it: it moves z."""
        pivot = None if self.kink is None else np.zeros(len(self.z))
        return _core.Point(self.z, self.lower, self.upper, self.kink, pivot, self.starts)


class Outcome(NamedTuple):
    """How an engine says that a dual has ended; its z and gradient are where they were asked."""

    stop: _core.BlockStop
    n_iter: int
    violation: float
    gap: float
    scale: float  # of the terms that cancel in the gradient
    multiplier: Sequence[float]


Posed = tuple[Dual, Array]  # a dual, and where to write its gradient
Outcomes = list[Outcome]


class Solution(NamedTuple):
    """A solved dual, with what the engine found out about it in float64."""

    z: Array
    gradient: Array  # K z + linear
    kkt_violation: float
    duality_gap: float
    multiplier: Sequence[float]  # the price at which each group trades: minus the bias
    rounding: Sequence[float]  # by how much each price may be off for that of its terms
    n_iter: int
    status: Status


def solve(
    X: Any,
    kernel: Kernel,
    duals: Sequence[Dual],
    *,
    tol: float,
    max_iter: int,
    time_limit: float,
    cache_bytes: int,
    threads: int,
    dtype: DTypeLike = np.float32,
    rule: str = "auto",
    cold: bool = True,
    keep_going: Callable[[float, int, int], bool] | None = None,
    device: Device | None = None,
    arenas: _core.Arenas | None = None,
) -> list[Solution]:
    """Solve duals over the rows of X (dense or CSR) until each violation is at most `tol`.

    `max_iter` bounds the iterations of each dual, `time_limit` (seconds) all of them together.
    `cold`: nothing is known of the solutions, so that large duals may be started from samples.
    `keep_going(violation, iterations, solved)` is asked about twenty times a second. With a
    `device` it does what is large. `arenas` keep memory from one call to the next.
    """
    data, center = prepared(kernel, X)
    native_rule = RULES["libsvm" if rule == "auto" else rule].code
    single = np.dtype(dtype) == np.float32

    def on_processor(posed: Sequence[Posed], threads: int = threads, **limits: Any) -> Outcomes:
        arrays = [
            _core.Dual(
                dual.rows, dual.linear, dual.point(), dual.totals, gradient,
                dual.gradient is not None, dual.closely,
            )
            for dual, gradient in posed
        ]  # fmt: skip
        outcomes = _core.solve_duals(
            data, center, kernel.native, arrays, cache_bytes=cache_bytes, threads=threads,
            single=single, rule=native_rule, arenas=arenas, **limits,
        )  # fmt: skip
        return [Outcome(*outcome) for outcome in outcomes]

    z = np.concatenate([dual.z for dual in duals], dtype=np.float64)
    gradient = np.empty_like(z)
    posed: list[Posed] = []
    end = 0
    for dual in duals:
        begin, end = end, end + len(dual.z)
        if dual.gradient is not None:
            gradient[begin:end] = dual.gradient
        posed.append((dual.starting_at(z[begin:end]), gradient[begin:end]))
    limits: dict[str, Any] = {
        "tol": tol,
        "max_iter": max_iter,
        "cold": cold,
        "keep_going": keep_going,
    }
    began = time.perf_counter()
    if device is None:
        outcomes = on_processor(posed, seconds=time_limit, **limits)
    else:
        from ..gpu.machine import solve_duals

        outcomes = solve_duals(
            device, data, center, kernel, posed, on_processor, threads=threads, single=single,
            rule=native_rule, seconds=time_limit, **limits,
        )  # fmt: skip
    late = time.perf_counter() - began >= time_limit
    return [
        concluded(
            dual, own, outcome, tol=tol, late=late,
            rounding=partial(_rounding, data, center, kernel, dual, own, outcome.multiplier),
        )
        for (dual, own), outcome in zip(posed, outcomes, strict=True)
    ]  # fmt: skip


def concluded(
    dual: Dual,
    gradient: Array,
    outcome: Outcome,
    *,
    tol: float,
    late: bool,
    rounding: Callable[[], Sequence[float]],
) -> Solution:
    """What an engine's outcome means; `late`: it is the time limit that has stopped it."""
    stop, n_iter, violation, gap, scale, multiplier = outcome
    status = Status.OPTIMAL if violation <= tol else STATUSES.get(stop, Status.STALLED)
    if status == Status.STOPPED and late:
        status = Status.TIME_LIMIT
    # Only of prices that are small against their terms can the rounding of these matter.
    small = abs(math.fsum(multiplier)) <= 1e-6 * scale * len(multiplier)
    error = rounding() if small else [0.0] * len(multiplier)
    return Solution(dual.z, gradient, violation, gap, multiplier, error, n_iter, status)


def _rounding(
    data: Any, center: Array | None, kernel: Kernel, dual: Dual, gradient: Array,
    multiplier: Sequence[float],
) -> list[float]:  # fmt: skip
    """By how much the price of each group may be off for rounding.

    The terms of a price are the linear one and K_ij z_j: those of the account whose price is
    nearest to its group's are looked at.
    """
    rounding = []
    z = dual.z
    used = z != 0
    rows = dual.rows[used]
    kink = np.zeros(len(z)) if dual.kink is None else dual.kink
    for k, price in enumerate(multiplier):
        group = np.arange(dual.starts[k], dual.starts[k + 1])
        nearest = group[np.argmin(np.abs(np.abs(gradient - price)[group] - kink[group]))]
        row = np.zeros((1, len(rows)))
        _core.add_kernel(
            kernel.native, data, center, dual.rows[[nearest]], np.ones((1, 1)), data, rows, row, 1,
            0.0,
        )  # fmt: skip
        terms = np.abs(row[0]) @ np.abs(z[used]) + abs(dual.linear[nearest])
        # Thousands of moves have led to these z, and each of them has rounded.
        rounding.append(1e-12 * float(terms + kink[nearest]))
    return rounding


class LaidOut:
    """Support vectors as decisions want them: laid out on first use, kept while they are the same.

    Not copied or pickled with the machine that they belong to. There is no lock, which a process
    forked meanwhile would wait for: two threads may both lay them out, each leaves the same.
    """

    def __init__(self) -> None:
        self._last: tuple[Any, Kernel, _core.SupportVectors] | None = None

    def __reduce__(self) -> tuple[type[LaidOut], tuple[()]]:
        return LaidOut, ()

    def __eq__(self, other: object) -> bool:  # all that it holds follows from the machine
        return isinstance(other, LaidOut)

    def __hash__(self) -> int:
        return hash(LaidOut)

    def vectors(self, support: Any, kernel: Kernel) -> _core.SupportVectors:
        """Those of the rows of `support`, an array that nobody changes in place."""
        last = self._last
        if last is None or last[0] is not support or last[1] != kernel:
            self._last = last = support, kernel, _vectors(kernel, native(support))
        return last[2]


def decide(
    support: Any,
    kernel: Kernel,
    coefficients: Array,
    X: Any,
    *,
    threads: int,
    allowed: float = 0.0,
    starts: Indices | None = None,
    laid_out: LaidOut | None = None,
    device: Device | None = None,
) -> Array:
    """The kernel of each row of X with the support rows, times `coefficients`.

    `support` has a row per support vector and `coefficients` a column per output; with a
    precomputed kernel `support` says which columns of X are theirs. Float32 arithmetic
    is used where it is certain to keep the error of every sum within `allowed`. Groups of support
    vectors, where `starts` says that they begin (and the number of all), have outputs of their own,
    one after the other. What is laid out for it stays in `laid_out`. A `device` does it if given.
    """
    groups = 1 if starts is None else len(starts) - 1
    sums = np.zeros((groups * coefficients.shape[1], X.shape[0]))
    if kernel.name == "precomputed":
        data = native(X)
        _core.add_kernel(
            kernel.native, data, None, support, np.ascontiguousarray(coefficients), data,
            np.arange(X.shape[0]), sums, threads, allowed, starts,
        )  # fmt: skip
    elif device is not None:
        from ..gpu.machine import add_decisions

        known, data = _narrowed(support, X)
        add_decisions(
            device, known, _center(kernel, known), kernel, np.asarray(coefficients, np.float64),
            data, allowed, starts, sums,
        )  # fmt: skip
    else:
        if _is_wide(support, X):  # what is left of them depends on X
            known, data = _narrowed(support, X)
            vectors = _vectors(kernel, known)
        else:
            vectors, data = (laid_out or LaidOut()).vectors(support, kernel), native(X)
        weights = np.ascontiguousarray(coefficients.T, np.float64)
        vectors.decide(weights, data, sums, threads, allowed, starts)
    if not math.isfinite(sums.sum()):
        _refuse_infinite(sums, X)
    return sums.T


def _refuse_infinite(sums: Array, X: Any) -> None:
    finite = np.isfinite(sums).all(axis=0)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            f"X[{row}] is too large: its kernel with the support vectors overflows (its largest "
            f"entry is {abs(X[[row]]).max():g})"
        )


def prepared(kernel: Kernel, X: Any) -> tuple[Any, Array | None]:
    """A matrix as the native code takes it, and the point to move the origin to."""
    (data,) = _narrowed(X)
    return data, _center(kernel, data)


def _vectors(kernel: Kernel, support: Any) -> _core.SupportVectors:
    return _core.SupportVectors(kernel.native, support, _center(kernel, support))


def _center(kernel: Kernel, data: Any) -> Array | None:
    """The point to move the origin to, of a matrix as the native code takes it.

    Distances do not depend on the origin; near the mean of the data they lose fewer digits.
    """
    return _core.rounded_mean(data) if kernel.name == "rbf" else None


def _is_wide(*matrices: Any) -> bool:
    """Whether sparse matrices have many columns that none of them has an entry in."""
    if not scipy.sparse.issparse(matrices[0]):
        return False
    return int(matrices[0].shape[1]) > sum(len(X.indices) for X in matrices)


def _narrowed(*matrices: Any) -> list[Any]:
    """Matrices as the native code takes them; wide ones without the columns that none uses."""
    laid_out = [native(X) for X in matrices]
    if not _is_wide(*matrices):
        return laid_out
    used = np.unique(np.concatenate([indices for _, indices, _, _ in laid_out]))
    return [
        (starts, np.searchsorted(used, indices).astype(np.int32), values, len(used))
        for starts, indices, values, _ in laid_out
    ]


def native(X: Any) -> Any:
    """A dense or CSR matrix as the native code takes it."""
    if scipy.sparse.issparse(X):
        return (
            X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False),
            X.data.astype(np.float64, copy=False), X.shape[1],
        )  # fmt: skip
    return np.ascontiguousarray(X, np.float32 if X.dtype == np.float32 else np.float64)
