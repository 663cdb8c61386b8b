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
from collections.abc import Callable, Iterator, Sequence
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
    _core.StopReason.max_iter.value: Status.MAX_ITER,
    _core.StopReason.stopped.value: Status.STOPPED,
    _core.StopReason.unbounded.value: Status.UNBOUNDED,
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

    def point(self) -> Any:
        """Return the point as an object of native code, which changes z in place."""
        breakpoint = None if self.l1 is None else np.zeros(len(self.z))
        return _core.Point(self.z, self.lower, self.upper, self.l1, breakpoint, self.starts)


@dataclass(slots=True, eq=False)
class Duals(Sequence[Dual]):
    """Several duals, one after the other in a few arrays, as native code reads them.

    A fit may have thousands of small duals. Arrays of all of them take a few NumPy calls, and
    `Dual` objects, which are views, are only made where they are needed. The duals have the same
    number of groups, and either all or none have L1 terms.
    """

    rows: Indices
    linear: Array
    lower: Array
    upper: Array
    starts: Indices  # one row per dual: the first variable of each group, and their number
    totals: Array  # one row per dual
    z: Array
    l1: Array | None = None
    gradient: Array | None = None
    closely: bool = True

    @staticmethod
    def of(duals: Sequence[Dual]) -> Duals:
        """Return the duals in this form."""
        if isinstance(duals, Duals):
            return duals
        if len({(dual.l1 is None, dual.closely, len(dual.totals)) for dual in duals}) != 1:
            raise ValueError("the duals of one call must have the same form")
        known = all(dual.gradient is not None for dual in duals)
        return Duals(
            rows=_joined([dual.rows for dual in duals]),
            linear=_joined([dual.linear for dual in duals]),
            lower=_joined([dual.lower for dual in duals]),
            upper=_joined([dual.upper for dual in duals]),
            starts=np.stack([dual.starts for dual in duals]),
            totals=np.stack([dual.totals for dual in duals]),
            z=_joined([dual.z for dual in duals]),
            l1=_joined([dual.l1 for dual in duals if dual.l1 is not None]),
            gradient=_joined([dual.gradient for dual in duals]) if known else None,
            closely=duals[0].closely,
        )

    @property
    def sizes(self) -> Indices:
        """The number of variables of each dual."""
        sizes: Indices = self.starts[:, -1]
        return sizes

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[Dual]:
        for part, starts, totals in zip(_parts(self.sizes), self.starts, self.totals, strict=True):
            yield Dual(
                self.rows[part], self.linear[part], self.lower[part], self.upper[part], starts,
                totals, self.z[part], None if self.l1 is None else self.l1[part],
                None if self.gradient is None else self.gradient[part], self.closely,
            )  # fmt: skip

    def __getitem__(self, k: Any) -> Any:
        return list(self)[k]

    def native(self, z: Array, gradient: Array, *, known: bool) -> Any:
        """Return the duals as an object of native code, which changes z and gradient in place.

        `known` says whether the gradient belongs to z.
        """
        return _core.Duals(
            self.rows, self.linear, self.lower, self.upper, self.l1, self.starts, self.totals, z,
            gradient, known, self.closely,
        )  # fmt: skip


class Outcome(NamedTuple):
    """How the solve of a dual ended."""

    stop: _core.StopReason
    n_iter: int
    violation: float
    gap: float
    scale: float  # size of the terms that cancel in the gradient
    error: float  # rounding error of the gradient
    multiplier: Sequence[float]

    @property
    def numbers(self) -> Array:
        """The numbers as a row of the array that native code returns."""
        return np.array([[self.stop.value, *self[1:-1], *self.multiplier]], np.float64)


# Number of columns of an array of outcomes before those of the multipliers.
BEFORE_MULTIPLIERS = len(Outcome._fields) - 1


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


@dataclass(slots=True, eq=False)
class Solutions(Sequence[Solution]):
    """The solutions of `Duals`, in arrays of the same layout."""

    sizes: Indices  # the number of variables of each dual
    z: Array
    gradient: Array
    # The others have one entry or row per dual.
    kkt_violation: Array
    duality_gap: Array
    multiplier: Array
    rounding: Array
    n_iter: Indices
    status: list[Status]
    error: Array

    @staticmethod
    def of(solutions: Sequence[Solution]) -> Solutions:
        """Return the solutions in this form."""
        if isinstance(solutions, Solutions):
            return solutions
        z, gradient, violation, gap, multiplier, rounding, n_iter, status, error = zip(
            *solutions, strict=True
        )
        return Solutions(
            np.array([len(part) for part in z]), _joined(z), _joined(gradient),
            np.array(violation), np.array(gap), np.array(multiplier), np.array(rounding),
            np.array(n_iter), list(status), np.array(error),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.status)

    def __iter__(self) -> Iterator[Solution]:
        columns = (
            self.kkt_violation.tolist(), self.duality_gap.tolist(), self.multiplier.tolist(),
            self.rounding.tolist(), self.n_iter.tolist(), self.status, self.error.tolist(),
        )  # fmt: skip
        for part, *numbers in zip(_parts(self.sizes), *columns, strict=True):
            yield Solution(self.z[part], self.gradient[part], *numbers)

    def __getitem__(self, k: Any) -> Any:
        return list(self)[k]

    def unfinished(self, max_iter: int) -> list[Solution]:
        """Return the solutions that miss the tolerance or took `max_iter` iterations."""
        optimal = all(status == Status.OPTIMAL for status in self.status)
        if optimal and self.n_iter.max(initial=0) < max_iter:
            return []
        return [s for s in self if s.status != Status.OPTIMAL or s.n_iter >= max_iter]


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
    cold: bool = True,
    keep_going: Callable[[float, int, int], bool] | None = None,
    device: Device | None = None,
    stored: StoredMatrix | None = None,
    arenas: _core.Arenas | None = None,
) -> Solutions:
    """Solve duals over the rows of X until the KKT violation of each is at most `tol`.

    Parameters
    ----------
    X : ndarray or sparse matrix
        The data matrix, dense or CSR, or the kernel matrix of a precomputed kernel.
    kernel : Kernel
        The kernel.
    duals : sequence of Dual
        The duals; they are not changed. All have the same form (`Duals`).
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
    Solutions
        One per dual.
    """
    duals = Duals.of(duals)
    data, center, kernel = prepared(kernel, X, duals, tol)
    single = np.dtype(dtype) == np.float32

    def solve_on_cpu(
        duals: Sequence[Dual], *, tol: float, threads: int, time_limit: float, **options: Any
    ) -> Solutions:
        duals = Duals.of(duals)
        z = np.array(duals.z, np.float64)
        known = duals.gradient is not None
        gradient = np.array(duals.gradient, np.float64) if known else np.empty_like(z)
        began = time.perf_counter()
        outcomes = _core.solve_duals(
            data, center, kernel.native, duals.native(z, gradient, known=known), tol=tol,
            cache_bytes=cache_bytes, threads=threads, single=single,
            arenas=arenas, seconds=time_limit, **options,
        )  # fmt: skip
        timed_out = time.perf_counter() - began >= time_limit
        found = replace(duals, z=z)
        return _concluded(data, center, kernel, found, gradient, outcomes, tol, timed_out)

    options: dict[str, Any] = {
        "tol": tol, "max_iter": max_iter, "time_limit": time_limit, "cold": cold,
        "keep_going": keep_going,
    }  # fmt: skip
    if device is None:
        return solve_on_cpu(duals, threads=threads, **options)
    from ..gpu.svm import solve_duals

    return solve_duals(
        device, data, center, kernel, duals, solve_on_cpu, threads=threads, single=single,
        stored=stored, **options,
    )  # fmt: skip


@dataclass
class SolvedChains:
    """Duals with one group that were solved for several C."""

    problem: tuple[Any, Array | None, Kernel]  # the data, their center and the kernel
    duals: Duals
    z: Array  # of all duals, one row per C
    gradient: Array
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

    @property
    def last(self) -> tuple[Array, Array]:
        """The z and the gradient of all duals for the last C, from which others can continue."""
        return self.z[-1], self.gradient[-1]

    def solutions(self, c: int) -> Solutions:
        """Return the solutions of all duals for the c-th C."""
        return _concluded(
            *self.problem, replace(self.duals, z=self.z[c]), self.gradient[c], self.outcomes[:, c],
            self.tol, self.timed_out,
        )  # fmt: skip


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
    duals = Duals.of(duals)
    # Bounds that are C times as large make errors of the kernel matter C times as much.
    data, center, kernel = prepared(kernel, X, duals, tol / float(Cs[-1]))
    precomputed = kernel.name == "precomputed"
    shape = len(Cs), len(duals.z)
    z, gradient = np.empty(shape), np.empty(shape)
    if duals.gradient is not None:
        gradient[0] = duals.gradient
    sums = np.empty((len(duals), len(Cs), len(columns))) if precomputed else None
    began = time.perf_counter()
    outcomes = _core.solve_chains(
        data, center, kernel.native, duals.native(duals.z, gradient[0], known=False), C_before, Cs,
        columns, z, gradient, sums, tol=tol, max_iter=max_iter, seconds=time_limit,
        cache_bytes=cache_bytes, threads=threads, single=np.dtype(dtype) == np.float32,
        cold=cold, keep_going=keep_going, arenas=arenas,
    )  # fmt: skip
    timed_out = time.perf_counter() - began >= time_limit
    problem = data, center, kernel
    return SolvedChains(problem, duals, z, gradient, outcomes, sums, tol, timed_out)


def _concluded(
    data: Any, center: Array | None, kernel: Kernel, duals: Duals, gradient: Array,
    outcomes: Array, tol: float, timed_out: bool,
) -> Solutions:  # fmt: skip
    """Return the solutions of duals that were solved on this computer."""
    if kernel.name == "linear" and center is not None:
        offsets = np.array([_offset(data, center, kernel, dual) for dual in duals])
        gradient = gradient + np.repeat(offsets, duals.sizes)
        outcomes = outcomes.copy()
        outcomes[:, BEFORE_MULTIPLIERS:] += offsets[:, None]
    return conclude(
        duals, gradient, outcomes, tol=tol, timed_out=timed_out,
        rounding=partial(rounding_of_multipliers, data, center, kernel),
    )  # fmt: skip


def conclude(
    duals: Duals,
    gradient: Array,
    outcomes: Array,
    *,
    tol: float,
    timed_out: bool,
    rounding: Callable[[Dual, Array, Array], Sequence[float]],
) -> Solutions:
    """Turn the outcomes of solves into solutions with their final status.

    Parameters
    ----------
    duals : Duals
        The duals at their final z.
    gradient : ndarray
        The gradients at z.
    outcomes : ndarray
        How each solve ended: a row with the numbers of an `Outcome`.
    tol : float
        Tolerance of the KKT violation.
    timed_out : bool
        Whether a solve that was stopped was stopped by the time limit, not by a callback.
    rounding : callable
        ``rounding(dual, gradient, multiplier)`` returns the rounding error of each group's
        multiplier. It is only called where that error can matter.

    Returns
    -------
    Solutions
        The solutions.
    """
    stop, n_iter, violation, gap, scale, error = outcomes[:, :BEFORE_MULTIPLIERS].T
    multiplier = outcomes[:, BEFORE_MULTIPLIERS:]
    numbers = zip(stop.tolist(), violation.tolist(), error.tolist(), strict=True)
    status = [
        Status.OPTIMAL if violation <= tol else _missed(int(stop), violation, error, timed_out)
        for stop, violation, error in numbers
    ]
    # Rounding errors of its terms only matter if a multiplier is small compared with them.
    is_small = np.abs(multiplier.sum(axis=1)) <= SMALL_MULTIPLIER * scale * multiplier.shape[1]
    errors = np.zeros_like(multiplier)
    if is_small.any():
        for k, (dual, part) in enumerate(zip(duals, _parts(duals.sizes), strict=True)):
            if is_small[k]:
                errors[k] = rounding(dual, gradient[part], multiplier[k])
    return Solutions(
        duals.sizes, duals.z, gradient, violation, gap, multiplier, errors,
        n_iter.astype(np.int64), status, error,
    )  # fmt: skip


def _missed(stop: int, violation: float, error: float, timed_out: bool) -> Status:
    """Return the status of a dual that misses the tolerance."""
    status = STATUSES.get(stop, Status.STALLED)
    if status == Status.STALLED and violation <= MAX_ROUNDING_ERRORS * error:
        return Status.IMPRECISE
    if status == Status.STOPPED and timed_out:
        return Status.TIME_LIMIT
    return status


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
    arrays = Duals.of([dual]).native(dual.z, gradient, known=True)
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
    offset = _offset(data, center, kernel, dual)
    gradient += offset
    return outcome._replace(multiplier=[value + offset for value in outcome.multiplier])


def _offset(data: Any, center: Array, kernel: Kernel, dual: Dual) -> float:
    """Return what centering the data subtracts from the gradient of a dual."""
    return _core.center_offset(kernel.native, data, center, dual.rows, dual.z)


def rounding_of_multipliers(
    data: Any, center: Array | None, kernel: Kernel, dual: Dual, gradient: Array,
    multiplier: Array | Sequence[float],
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
    kernel: Kernel, X: Any, duals: Duals | None, tol: float
) -> tuple[Any, Array | None, Kernel]:
    """Return X in the form that native code takes, the center of its rows, and the kernel.

    The center is None where centering would not help. The kernel returned computes distances by
    differences if the rounding of squared norms would matter against `tol`.
    """
    (data,) = _narrowed(X)
    return data, *_center_and_kernel(kernel, data, duals, tol)


def prepared_sums(
    kernel: Kernel, queries: Any, samples: Any, duals: Duals, tol: float
) -> tuple[Any, Any, Array | None, Kernel]:
    """Return queries and samples in the form of native code, and what `prepared` returns.

    The center of a linear kernel is None: sums with it belong to the data as they were given.
    """
    data, columns = _narrowed(queries, samples)
    center, kernel = _center_and_kernel(kernel, data, duals, tol)
    return data, columns, None if kernel.name == "linear" else center, kernel


def _center_and_kernel(
    kernel: Kernel, data: Any, duals: Duals | None, tol: float
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


def _weight(duals: Duals | None) -> float:
    """Return how much larger the error of a gradient may be than that of the kernel values.

    The errors are independent, so their squares add up.
    """
    if duals is None:
        return 0.0
    first = np.cumsum(duals.sizes) - duals.sizes
    upper = np.maximum.reduceat(duals.upper, first)
    limit = np.maximum(upper, -np.minimum.reduceat(duals.lower, first))
    return float((limit * np.sqrt(duals.sizes)).max())


def needs_differences(kernel: Kernel, square: float, duals: Duals | None, tol: float) -> bool:
    """Call `_core.needs_differences` for rows whose squared norms are at most `square`."""
    row = np.array([[math.sqrt(square)]])
    return bool(
        _core.needs_differences(kernel.native, row, None, _weight(duals), NORM_ROUNDING * tol)
    )


def cancel(duals: Duals | None) -> bool:
    """Return whether the variables of each dual sum to 0, so a linear kernel may be centered."""
    if duals is None or not duals.totals.any():
        return True
    return all(adds_up_to_zero(totals) for totals in duals.totals)


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


def _joined(arrays: Sequence[Any]) -> Any:
    """Return arrays one after the other; None if there are none."""
    if not arrays:
        return None
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _parts(sizes: Indices) -> list[slice]:
    """Return consecutive ranges of these sizes."""
    return [slice(*ends) for ends in pairwise([0, *np.cumsum(sizes).tolist()])]
