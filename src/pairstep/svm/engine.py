"""The duals of all SVMs in one form, their solution by native code, and decision functions.

With z_i = y_i alpha_i (classification) or z_i = alpha_i - alpha*_i (regression), each dual is

    minimize    z'Kz/2 + linear'z + sum_i l1_i |z_i|
    subject to  sum of each group of z = its total, lower <= z <= upper

where K is the kernel matrix of the data rows that the variables belong to. `duals.py` states the
dual of each model in this form.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import DTypeLike

from .. import _core
from .._validation import Array
from ..constraints import Indices
from ..result import Status
from ..rules import RULES

if TYPE_CHECKING:
    from ..gpu.device import Device
    from ..gpu.shared_kernel import StoredMatrix

KernelName = Literal["linear", "poly", "rbf", "sigmoid", "precomputed"]
KERNELS = tuple(kernel.name for kernel in _core.KernelName)
# Largest number of columns of a sparse matrix: native code numbers them with 32 bits.
MAX_SPARSE_COLUMNS = 2**31 - 1

# A stalled solve is called imprecise if its violation is at most this many times the rounding error
# of the gradient. The violation is a difference of two gradients, and their errors are estimated
# from a few rows.
MAX_ROUNDING_ERRORS = 32
# Fraction of the tolerance that the rounding of squared norms may take up. If it were larger, `tol`
# would mean less; if it were smaller, more fits would use the slower sums of differences.
NORM_ROUNDING = 0.01
# Largest error that the rounding of squared norms may cause in a decision. It must agree with
# cpp/oracles/support_vectors.cpp, so that CPU and GPU use the same formula.
DECISION_ROUNDING = 1e-7
# Numbers sum to 0 if their sum is at most this fraction of the sum of their absolute values: more
# than rounding errors, and far less than totals that are meant to be nonzero.
CANCELLATION = 1e-9
# A multiplier is small if it is at most this fraction of the terms that it is the sum of. The
# rounding error of larger ones is negligible (see below), so it is not computed.
SMALL_MULTIPLIER = 1e-6
# Rounding error of a multiplier relative to its terms. It is far above the rounding error of one
# operation, because thousands of steps, each with rounding errors, led to z.
RELATIVE_ROUNDING = 1e-12
# The status of a dual that misses the tolerance, by how its solver stopped.
STATUSES = {
    _core.StopReason.max_iter: Status.MAX_ITER,
    _core.StopReason.stopped: Status.STOPPED,
    _core.StopReason.unbounded: Status.UNBOUNDED,
}


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters. If it is precomputed, the data matrix is the kernel matrix."""

    name: KernelName
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    # Whether distances are sums of squared differences, which is slower but more precise than
    # computing them from squared norms and inner products.
    differences: bool = False

    @property
    def native(self) -> Any:
        """The kernel as an object of native code."""
        name = getattr(_core.KernelName, self.name)
        return _core.Kernel(name, self.gamma, self.coef0, self.degree, self.differences)


@dataclass(slots=True)
class Dual:
    """One dual. Variable i belongs to row `rows[i]` of the data; groups are contiguous."""

    rows: Indices
    linear: Array
    lower: Array
    upper: Array
    starts: Indices  # the first variable of each group, and the number of variables
    totals: Array
    z: Array  # a feasible starting point
    l1: Array | None = None
    gradient: Array | None = None  # at the starting point, if known
    # Whether to solve a small dual further than to the tolerance, so that its coefficients agree to
    # many digits between similar fits.
    closely: bool = True

    @property
    def groups(self) -> list[slice]:
        """The range of variables of each group."""
        return [slice(*ends) for ends in pairwise(self.starts.tolist())]

    def starting_at(self, z: Array) -> Dual:
        """Return the same dual with another starting point.

        `dataclasses.replace` would take a noticeable part of a fit with hundreds of small duals.
        """
        return Dual(
            self.rows, self.linear, self.lower, self.upper, self.starts, self.totals, z, self.l1,
            self.gradient, self.closely,
        )  # fmt: skip

    def point(self) -> Any:
        """Return the point as an object of native code, which changes z in place."""
        breakpoint = None if self.l1 is None else np.zeros(len(self.z))
        return _core.Point(self.z, self.lower, self.upper, self.l1, breakpoint, self.starts)


class Outcome(NamedTuple):
    """How the solve of a dual ended."""

    stop: _core.StopReason
    n_iter: int
    violation: float
    gap: float
    scale: float  # size of the terms that cancel in the gradient
    error: float  # rounding error of the gradient
    multiplier: Sequence[float]


class Solution(NamedTuple):
    """A solved dual. All numbers are float64, whatever type the kernel rows had."""

    z: Array
    gradient: Array  # K z + linear
    kkt_violation: float
    duality_gap: float
    multiplier: Sequence[float]  # of each group's sum; `duals.bias` is minus their mean
    rounding: Sequence[float]  # bound on the rounding error of each multiplier
    n_iter: int
    status: Status
    error: float = 0.0  # rounding error of the gradient


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
    stored: StoredMatrix | None = None,
    arenas: _core.Arenas | None = None,
) -> list[Solution]:
    """Solve duals over the rows of X until the KKT violation of each is at most `tol`.

    Parameters
    ----------
    X : ndarray or sparse matrix
        The data matrix, dense or CSR, or the kernel matrix of a precomputed kernel.
    kernel : Kernel
        The kernel.
    duals : sequence of Dual
        The duals; they are not changed.
    tol : float
        Tolerance of the KKT violation.
    max_iter : int
        Maximum number of iterations of each dual.
    time_limit : float
        Maximum number of seconds for all duals together.
    cache_bytes : int
        Memory for kernel rows and blocks.
    threads : int
        CPU threads.
    dtype : dtype
        float32 computes kernel rows in float32 where the tolerance allows it.
    rule : str
        The rule that selects pairs.
    cold : bool
        Whether no good start is known, so that large duals may start from samples.
    keep_going : callable, optional
        ``keep_going(violation, iterations, solved)`` is called about twenty times a second; the
        solve ends early when it returns False.
    device : Device, optional
        The GPU that solves large duals.
    stored : StoredMatrix, optional
        The kernel matrix of all rows, in the memory of this GPU.
    arenas : _core.Arenas, optional
        Memory that is reused by the next call.

    Returns
    -------
    list of Solution
        One per dual.
    """
    data, center, kernel = prepared(kernel, X, duals, tol)
    native_rule = rule_code(rule)
    single = np.dtype(dtype) == np.float32

    def solve_on_cpu(
        duals: Sequence[Dual], *, tol: float, threads: int, time_limit: float, **options: Any
    ) -> list[Solution]:
        z = np.concatenate([dual.z for dual in duals], dtype=np.float64)
        gradient = np.empty_like(z)
        started: list[tuple[Dual, Array]] = []  # each dual at a copy of its z, and its gradient
        end = 0
        for dual in duals:
            begin, end = end, end + len(dual.z)
            if dual.gradient is not None:
                gradient[begin:end] = dual.gradient
            started.append((dual.starting_at(z[begin:end]), gradient[begin:end]))
        arrays = [
            native_dual(dual, own, known=dual.gradient is not None, closely=dual.closely)
            for dual, own in started
        ]
        began = time.perf_counter()
        found = _core.solve_duals(
            data, center, kernel.native, arrays, tol=tol, cache_bytes=cache_bytes, threads=threads,
            single=single, rule=native_rule, arenas=arenas, seconds=time_limit, **options,
        )  # fmt: skip
        timed_out = time.perf_counter() - began >= time_limit
        return [
            _concluded(data, center, kernel, dual, own, Outcome(*values), tol, timed_out)
            for (dual, own), values in zip(started, found, strict=True)
        ]

    options: dict[str, Any] = {
        "tol": tol, "max_iter": max_iter, "time_limit": time_limit, "cold": cold,
        "keep_going": keep_going,
    }  # fmt: skip
    if device is None:
        return solve_on_cpu(duals, threads=threads, **options)
    from ..gpu.svm import solve_duals

    return solve_duals(
        device, data, center, kernel, duals, solve_on_cpu, threads=threads, single=single,
        rule=native_rule, stored=stored, **options,
    )  # fmt: skip


@dataclass
class SolvedChains:
    """Duals with one group that were solved for several C.

    A search solves thousands of duals, so `Solution` objects are only made where they are needed.
    """

    problem: tuple[Any, Array | None, Kernel]  # the data, their center and the kernel
    duals: Sequence[Dual]
    points: list[tuple[Array, Array]]  # z and gradient of each dual, one row per C
    outcomes: Array  # for each dual and C, the numbers of an `Outcome`
    # For each dual and C, the sums of z_i times the kernel of row i with each column. None if the
    # kernel is not precomputed.
    sums: Array | None
    tol: float
    timed_out: bool

    @property
    def reached(self) -> int:
        """The number of C for which all duals were solved."""
        solved = ~np.isnan(self.outcomes).any(axis=(0, 2))
        return int(solved.sum())

    def solution(self, k: int, c: int) -> Solution:
        """Return the solution of dual k for the c-th C."""
        stop, n_iter, violation, gap, scale, error, multiplier = self.outcomes[k, c].tolist()
        outcome = Outcome(
            _core.StopReason(int(stop)), int(n_iter), violation, gap, scale, error, [multiplier]
        )
        z, gradient = (array[c] for array in self.points[k])
        return _concluded(
            *self.problem, self.duals[k].starting_at(z), gradient, outcome, self.tol, self.timed_out
        )

    def solutions(self, c: int) -> list[Solution]:
        """Return the solutions of all duals for the c-th C."""
        return [self.solution(k, c) for k in range(len(self.duals))]

    def unfinished(self, c: int, max_iter: int) -> list[Solution]:
        """Return the solutions that miss the tolerance or took `max_iter` iterations."""
        _, n_iter, violation, *_ = self.outcomes[:, c].T
        missed = ~(violation <= self.tol) | (n_iter >= max_iter)
        return [self.solution(int(k), c) for k in np.flatnonzero(missed)]

    def multipliers(self, c: int) -> tuple[Array, Array]:
        """Return the multiplier of each dual's sum, and its rounding error where it matters."""
        *_, scale, _, multiplier = self.outcomes[:, c].T
        errors = np.zeros(len(self.duals))
        for k in np.flatnonzero(np.abs(multiplier) <= SMALL_MULTIPLIER * scale):
            errors[k] = max(self.solution(int(k), c).rounding)
        return multiplier, errors


def solve_chains(
    X: Any,
    kernel: Kernel,
    duals: Sequence[Dual],
    Cs: Array,
    columns: Indices,
    *,
    C_before: float = 0.0,
    tol: float,
    max_iter: int,
    time_limit: float,
    cache_bytes: int,
    threads: int,
    dtype: DTypeLike,
    rule: str,
    cold: bool,
    keep_going: Callable[[float, int, int], bool] | None,
    arenas: _core.Arenas,
) -> SolvedChains:
    """Solve duals for ascending values of C, each from the solution for the one before.

    The parameters are those of `solve`, except for these.

    Parameters
    ----------
    duals : sequence of Dual
        The duals for C = 1; all their bounds are proportional to C.
    Cs : ndarray
        The values of C.
    columns : ndarray
        The rows of X to decide on, if the kernel is precomputed.
    C_before : float
        The C that the starting points of the duals are solutions for; 0 if they are not.

    Returns
    -------
    SolvedChains
        The solutions.
    """
    # Bounds that are C times as large make errors of the kernel matter C times as much.
    data, center, kernel = prepared(kernel, X, duals, tol / float(Cs[-1]))
    precomputed = kernel.name == "precomputed"
    count, total = len(Cs), sum(len(dual.z) for dual in duals)
    z_buffer, gradient_buffer = np.empty(count * total), np.empty(count * total)
    sums = np.empty((len(duals), count, len(columns))) if precomputed else None
    points, arrays, end = [], [], 0
    for k, dual in enumerate(duals):
        begin, end = end, end + count * len(dual.z)
        z = z_buffer[begin:end].reshape(count, -1)
        gradient = gradient_buffer[begin:end].reshape(count, -1)
        if dual.gradient is not None:
            gradient[0] = dual.gradient
        unit = native_dual(dual, gradient[0], known=False, closely=dual.closely)
        points.append((z, gradient))
        to = None if sums is None else sums[k]
        arrays.append(_core.DualChain(unit, C_before, Cs, z, gradient, to))
    began = time.perf_counter()
    found = _core.solve_chains(
        data, center, kernel.native, arrays, columns, tol=tol, max_iter=max_iter,
        seconds=time_limit, cache_bytes=cache_bytes, threads=threads,
        single=np.dtype(dtype) == np.float32, rule=rule_code(rule), cold=cold,
        keep_going=keep_going, arenas=arenas,
    )  # fmt: skip
    timed_out = time.perf_counter() - began >= time_limit
    return SolvedChains((data, center, kernel), duals, points, found, sums, tol, timed_out)


def rule_code(rule: str) -> int:
    """Return the number that native code has for a selection rule."""
    return RULES["libsvm" if rule == "auto" else rule].code


def native_dual(dual: Dual, gradient: Array, *, known: bool, closely: bool) -> Any:
    """Return a dual as an object of native code, which changes z and the gradient in place."""
    point = dual.point()
    return _core.Dual(dual.rows, dual.linear, point, dual.totals, gradient, known, closely)


def _concluded(
    data: Any, center: Array | None, kernel: Kernel, dual: Dual, gradient: Array, outcome: Outcome,
    tol: float, timed_out: bool,
) -> Solution:  # fmt: skip
    """Return the solution of a dual that was solved on this computer."""
    outcome = uncentered(data, center, kernel, dual, gradient, outcome)
    rounding = partial(
        rounding_of_multipliers, data, center, kernel, dual, gradient, outcome.multiplier
    )
    return conclude(dual, gradient, outcome, tol=tol, timed_out=timed_out, rounding=rounding)


def conclude(
    dual: Dual,
    gradient: Array,
    outcome: Outcome,
    *,
    tol: float,
    timed_out: bool,
    rounding: Callable[[], Sequence[float]],
) -> Solution:
    """Turn the outcome of a solve into a solution with its final status.

    Parameters
    ----------
    dual : Dual
        The dual at its final z.
    gradient : ndarray
        The gradient at z.
    outcome : Outcome
        How the solve ended.
    tol : float
        Tolerance of the KKT violation.
    timed_out : bool
        Whether a solve that was stopped was stopped by the time limit, not by a callback.
    rounding : callable
        Returns the rounding error of each group's multiplier. It is only called where that error
        can matter.

    Returns
    -------
    Solution
        The solution.
    """
    stop, n_iter, violation, gap, scale, error, multiplier = outcome
    status = Status.OPTIMAL if violation <= tol else STATUSES.get(stop, Status.STALLED)
    if status == Status.STALLED and violation <= MAX_ROUNDING_ERRORS * error:
        status = Status.IMPRECISE
    if status == Status.STOPPED and timed_out:
        status = Status.TIME_LIMIT
    # Rounding errors of its terms only matter if a multiplier is small compared with them.
    is_small = abs(math.fsum(multiplier)) <= SMALL_MULTIPLIER * scale * len(multiplier)
    errors = rounding() if is_small else [0.0] * len(multiplier)
    return Solution(dual.z, gradient, violation, gap, multiplier, errors, n_iter, status, error)


def verify(
    data: Any, center: Array | None, kernel: Kernel, dual: Dual, gradient: Array,
    stop: _core.StopReason, n_iter: int, *, tol: float, threads: int,
) -> tuple[Outcome, float]:  # fmt: skip
    """Check a gradient against precise values; return the outcome and the allowance for errors.

    A gradient that is too far off is corrected in place if that is affordable. Otherwise the
    violation is increased by an allowance for the error, which is the second value returned.
    """
    error, extra = examined(data, center, kernel, dual, gradient, tol=tol, threads=threads)
    return judge(dual, gradient, stop, n_iter, extra=extra, error=error, tol=tol), extra


def examined(
    data: Any, center: Array | None, kernel: Kernel, dual: Dual, gradient: Array, *, tol: float,
    threads: int,
) -> tuple[float, float]:  # fmt: skip
    """Correct a gradient as `verify` does; return its rounding error and the allowance for it."""
    arrays = native_dual(dual, gradient, known=True, closely=True)
    return _core.examine(data, center, kernel.native, arrays, tol, threads)


def judge(
    dual: Dual, gradient: Array, stop: _core.StopReason, n_iter: int, *, extra: float, error: float,
    tol: float,
) -> Outcome:  # fmt: skip
    """Return the outcome of a dual from its verified gradient.

    `error` is the rounding error of the gradient, and `extra` is added to the violation for it.
    """
    violation, gap, _, scale, _, multiplier, _ = _core.certify(dual.point(), gradient, dual.linear)
    violation += extra
    if stop == _core.StopReason.optimal and not violation <= tol:
        stop = _core.StopReason.imprecise
    return Outcome(stop, n_iter, violation, gap, scale, error, multiplier.tolist())


def uncentered(
    data: Any, center: Array | None, kernel: Kernel, dual: Dual, gradient: Array, outcome: Outcome
) -> Outcome:
    """Return the outcome for the uncentered data, and change the gradient in place accordingly.

    Centering the data shifts the gradient of a linear kernel by a constant, and all multipliers
    with it.
    """
    if kernel.name != "linear" or center is None:
        return outcome
    offset = _core.center_offset(kernel.native, data, center, dual.rows, dual.z)
    gradient += offset
    return outcome._replace(multiplier=[value + offset for value in outcome.multiplier])


def rounding_of_multipliers(
    data: Any, center: Array | None, kernel: Kernel, dual: Dual, gradient: Array,
    multiplier: Sequence[float],
) -> list[float]:  # fmt: skip
    """Return how far rounding may have changed the multiplier of each group.

    A multiplier is a derivative of the objective, whose terms are the linear one and all K_ij z_j.
    The terms of the variable whose derivative is closest to the multiplier represent its group.
    """
    errors = []
    z = dual.z
    used = z != 0
    rows = dual.rows[used]
    l1 = np.zeros(len(z)) if dual.l1 is None else dual.l1
    for group, value in zip(dual.groups, multiplier, strict=True):
        distance = np.abs(np.abs(gradient[group] - value) - l1[group])
        closest = group.start + int(np.argmin(distance))
        row = np.zeros((1, len(rows)))
        _core.add_kernel(
            kernel.native, data, center, dual.rows[[closest]], np.ones((1, 1)), data, rows, row, 1,
            0.0,
        )  # fmt: skip
        terms = np.abs(row[0]) @ np.abs(z[used]) + abs(dual.linear[closest])
        errors.append(RELATIVE_ROUNDING * float(terms + l1[closest]))
    return errors


class LaidOut:
    """A cache for the support vectors of a model in the layout that decision functions read.

    It holds one entry, is filled on first use, and is not copied or pickled with the model. There
    is no lock, because a process forked while it is held would wait forever. Two threads may both
    compute the entry; they compute the same one.
    """

    def __init__(self) -> None:
        self._last: tuple[Any, tuple[Kernel, bool], _core.SupportVectors] | None = None

    def __reduce__(self) -> tuple[type[LaidOut], tuple[()]]:
        return LaidOut, ()

    def __eq__(self, other: object) -> bool:  # the content follows from the model
        return isinstance(other, LaidOut)

    def __hash__(self) -> int:
        return hash(LaidOut)

    def vectors(self, support: Any, kernel: Kernel, cancels: bool = False) -> _core.SupportVectors:
        """Return the vectors of the rows of `support`, which must not be changed in place."""
        last = self._last
        if last is None or last[0] is not support or last[1] != (kernel, cancels):
            made = _vectors(kernel, native(support), cancels)
            self._last = last = support, (kernel, cancels), made
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
    first: int = 0,
) -> Array:
    """Return the kernel of each row of X with the support vectors, times `coefficients`.

    Parameters
    ----------
    support : ndarray or sparse matrix
        One support vector per row. For a precomputed kernel: the columns of X that belong to the
        support vectors.
    kernel : Kernel
        The kernel.
    coefficients : ndarray
        One row per support vector and one column per output.
    X : ndarray or sparse matrix
        The samples.
    threads : int
        CPU threads.
    allowed : float
        Float32 arithmetic is used if it is certain to keep the error of each sum within this.
    starts : ndarray, optional
        The first support vector of each group, and the number of all. Each group has its own
        outputs, which follow those of the group before it.
    laid_out : LaidOut, optional
        A cache for the support vectors.
    device : Device, optional
        The GPU that computes the sums.
    first : int
        The number of the first row of X in error messages.

    Returns
    -------
    ndarray
        One row per sample and one column per group and output.
    """
    groups = 1 if starts is None else len(starts) - 1
    shape = X.shape[0], groups * coefficients.shape[1]
    cancels = kernel.name == "linear" and adds_up_to_zero(coefficients)
    if kernel.name == "precomputed":
        data, sums = native(X), np.zeros(shape[::-1])
        _core.add_kernel(
            kernel.native, data, None, support, np.ascontiguousarray(coefficients), data,
            np.arange(X.shape[0]), sums, threads, allowed, starts,
        )  # fmt: skip
        found: Array = sums.T
    elif device is not None:
        from ..gpu.svm import add_decisions

        known, data = _narrowed(support, X)
        sums = np.zeros(shape[::-1])
        add_decisions(
            device, known, _center(kernel, known, cancels), kernel,
            np.asarray(coefficients, np.float64), data, allowed, starts, sums,
        )  # fmt: skip
        found = sums.T
    else:
        if _is_wide(support, X):  # which columns are dropped depends on X, so do not cache
            known, data = _narrowed(support, X)
            vectors = _vectors(kernel, known, cancels)
        else:
            vectors, data = (laid_out or LaidOut()).vectors(support, kernel, cancels), native(X)
        weights = np.ascontiguousarray(coefficients.T, np.float64)
        found = np.empty(shape)
        vectors.decide(weights, data, found, threads, allowed, starts)
    with np.errstate(over="ignore", invalid="ignore"):
        total = found.sum()
    if not math.isfinite(total):
        _refuse_infinite(found, X, first)
    return found


def _refuse_infinite(sums: Array, X: Any, first: int) -> None:
    finite = np.isfinite(sums).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            f"X[{first + row}] is too large: its kernel with the support vectors overflows (its "
            f"largest entry is {abs(X[[row]]).max():g}). Scale X as the training data were scaled."
        )


def prepared(
    kernel: Kernel, X: Any, duals: Sequence[Dual], tol: float
) -> tuple[Any, Array | None, Kernel]:
    """Return X in the form that native code takes, the center of its rows, and the kernel.

    The center is None where centering would not help. The kernel returned computes distances by
    differences if the rounding of squared norms would matter against `tol`.
    """
    (data,) = _narrowed(X)
    return data, *_center_and_kernel(kernel, data, duals, tol)


def prepared_sums(
    kernel: Kernel, queries: Any, samples: Any, duals: Sequence[Dual], tol: float
) -> tuple[Any, Any, Array | None, Kernel]:
    """Return queries and samples in the form of native code, and what `prepared` returns.

    The center of a linear kernel is None: sums with it belong to the data as they were given.
    """
    data, columns = _narrowed(queries, samples)
    center, kernel = _center_and_kernel(kernel, data, duals, tol)
    return data, columns, None if kernel.name == "linear" else center, kernel


def _center_and_kernel(
    kernel: Kernel, data: Any, duals: Sequence[Dual], tol: float
) -> tuple[Array | None, Kernel]:
    center = _center(kernel, data, kernel.name == "linear" and cancel(duals))
    # The first test is cheaper than `_weight` and usually sufficient.
    if kernel.name == "rbf" and precise(kernel, data, center, math.inf, 0.0).differences:
        kernel = precise(kernel, data, center, _weight(duals), NORM_ROUNDING * tol)
    return None if kernel.differences else center, kernel


def precise(
    kernel: Kernel, data: Any, center: Array | None, weight: float, allowed: float
) -> Kernel:
    """Return the kernel, with distances by differences if the rounding of norms would matter.

    It matters if sums with weights of this size would be off by more than `allowed`.
    """
    if not _core.needs_differences(kernel.native, data, center, weight, allowed):
        return kernel
    return replace(kernel, differences=True)


def largest_value(kernel: Kernel, square: float) -> float:
    """Return a bound on the kernel of points whose squared norms are at most `square`."""
    if kernel.name == "linear":
        return square
    if kernel.name == "poly":
        return float((kernel.gamma * square + abs(kernel.coef0)) ** kernel.degree)
    return 1.0


def noise_of(total: float, largest: float) -> float:
    """Return the rounding error of a gradient in float64.

    `total` is the sum of the absolute values of z, and kernel values are at most `largest`.
    """
    return float(np.finfo(np.float64).eps * largest * total)


def _weight(duals: Sequence[Dual]) -> float:
    """Return how much larger the error of a gradient may be than that of the kernel values.

    The errors are independent, so their squares add up.
    """
    most = 0.0
    for dual in duals:
        limit = max(float(dual.upper.max()), -float(dual.lower.min()))
        most = max(most, limit * math.sqrt(len(dual.z)))
    return most


def needs_differences(kernel: Kernel, square: float, duals: Sequence[Dual], tol: float) -> bool:
    """Call `_core.needs_differences` for rows whose squared norms are at most `square`."""
    row = np.array([[math.sqrt(square)]])
    return bool(
        _core.needs_differences(kernel.native, row, None, _weight(duals), NORM_ROUNDING * tol)
    )


def cancel(duals: Sequence[Dual]) -> bool:
    """Return whether the variables of each dual sum to 0, so a linear kernel may be centered."""
    return all(adds_up_to_zero(dual.totals) for dual in duals)


def adds_up_to_zero(terms: Array) -> bool:
    """Return whether numbers sum to 0 up to rounding."""
    return abs(float(terms.sum())) <= CANCELLATION * float(np.abs(terms).sum())


def _vectors(kernel: Kernel, support: Any, cancels: bool) -> _core.SupportVectors:
    return _core.SupportVectors(kernel.native, support, _center(kernel, support, cancels))


def _center(kernel: Kernel, data: Any, cancels: bool) -> Array | None:
    """Return the point to use as the origin, or None to keep the origin.

    Distances do not depend on the origin, and neither do sums of inner products whose weights
    cancel. With the origin near the mean of the data they lose fewer digits to rounding.
    """
    if kernel.name == "linear":
        center: Array | None = _core.linear_center(data) if cancels else None
        return center
    return _core.rounded_mean(data) if kernel.name == "rbf" else None


def _is_wide(*matrices: Any) -> bool:
    """Return whether sparse matrices have more columns than entries, so some columns are empty."""
    if not scipy.sparse.issparse(matrices[0]):
        return False
    return int(matrices[0].shape[1]) > sum(len(X.indices) for X in matrices)


def _narrowed(*matrices: Any) -> list[Any]:
    """Return matrices in the form of native code; wide ones without their empty columns."""
    laid_out = [native(X) for X in matrices]
    if not _is_wide(*matrices):
        return laid_out
    used = np.unique(np.concatenate([indices for _, indices, _, _ in laid_out]))
    return [
        (starts, np.searchsorted(used, indices).astype(np.int32), values, len(used))
        for starts, indices, values, _ in laid_out
    ]


def native(X: Any) -> Any:
    """Return a dense or CSR matrix in the form that native code takes.

    That is a C-contiguous array, or a tuple of the row starts, the column of each entry, the values
    and the number of columns.
    """
    if scipy.sparse.issparse(X):
        if X.shape[1] > MAX_SPARSE_COLUMNS:
            raise ValueError(
                f"X has {X.shape[1]} columns, but a sparse matrix may have at most 2**31 - 1; drop "
                "the columns that are 0 in all samples"
            )
        return (
            X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False),
            X.data.astype(np.float64, copy=False), X.shape[1],
        )  # fmt: skip
    return np.ascontiguousarray(X, np.float32 if X.dtype == np.float32 else np.float64)
