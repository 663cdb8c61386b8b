"""Derivatives of solutions with respect to the numbers of their problems.

Where the solution changes smoothly, its free variables F and the active sums stay the same, and the
KKT conditions of the free variables are linear equations:

    H dx - A' dm = -(change of the gradient at fixed x),    A dx = change of the totals.

H is the Hessian of the objective, A has one row per active sum, and variables at a bound move with
their bound. `vjp` solves the system once for a given derivative of a loss with respect to x, which
gives the derivatives of the loss with respect to everything (the adjoint method). `jvp` solves it
for given changes of the problem. The native solver is cpp/engine/sensitivity.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core, threads
from .._validation import Array

Kind = Literal["one-sided", "smoothed"]
# Distance from a bound within which `derivative="smoothed"` softens it, relative to the largest
# variable. A larger value smooths more; a smaller one makes the derivatives change more abruptly.
SMOOTHING = 1e-3
# Distance within which a variable counts as at its bound, relative to the largest variable.
# Rounding errors of the sum may move it that far.
NEAR = 1e-13
# Time to write a number into new memory, in multiplications: the system clears each page first.
MULTIPLICATIONS_PER_ENTRY = 16


class Derivatives(Mapping[str, Any]):
    """Derivatives of a loss by argument name, each computed when it is read.

    Attributes
    ----------
    degenerate : bool or ndarray of bool
        Whether the solution has only one-sided derivatives, or none: a variable is at a bound whose
        multiplier is 0, or the solution is not unique. One value per problem of a batch.
    """

    def __init__(self, entries: dict[str, Callable[[], Any]], degenerate: Any):
        self._entries = entries
        self.degenerate = degenerate

    def __getitem__(self, name: str) -> Any:
        return self._entries[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Derivatives with respect to {', '.join(self)}"


class Hessians(Protocol):
    """The Hessians of one or more problems at their solutions."""

    @property
    def diagonal(self) -> Array:
        """The diagonals, of shape (count or 1, n)."""

    def times(self, w: Array) -> Array:
        """Return ``H w`` for each problem."""

    def solve(
        self, rows: Array, added: Array, free: NDArray[np.bool_], r: Array, s: Array
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Solve ``(H + added) w + A' m = r, A w = s`` over the free variables.

        Returns w, which is 0 for the other variables, m, and whether the system is singular.
        """


class DenseHessians:
    """Matrices of shape (count or 1, n, n)."""

    def __init__(self, matrices: Array):
        self.matrices = np.ascontiguousarray(matrices)

    @property
    def diagonal(self) -> Array:
        """The diagonals."""
        return np.diagonal(self.matrices, axis1=1, axis2=2)

    def times(self, w: Array) -> Array:
        """Return ``H w`` for each problem."""
        if len(self.matrices) == 1:
            return np.asarray(w @ self.matrices[0])
        return np.asarray(np.matmul(self.matrices, w[:, :, None])[:, :, 0])

    def solve(
        self, rows: Array, added: Array, free: NDArray[np.bool_], r: Array, s: Array
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Solve all systems; each takes about ``0.7 + n^2 / 1000`` microseconds in one thread."""
        count, n = r.shape
        w, m, singular = _core.kkt_systems(
            self.matrices, np.ascontiguousarray(rows), np.ascontiguousarray(added),
            np.ascontiguousarray(free).view(np.uint8), np.ascontiguousarray(r),
            np.ascontiguousarray(s), threads=threads.for_microseconds(count * (0.7 + n**2 / 1000)),
        )  # fmt: skip
        return w, m, singular != 0


class ModelHessian:
    """The Hessian of one quadratic objective, which is never formed as a whole."""

    def __init__(self, model: Any):
        self.model = model
        self.diagonal = np.asarray(model.lipschitz)[None]

    def times(self, w: Array) -> Array:
        """Return ``H w``."""
        model = self.model
        return np.asarray(model.gradient(w[0]) - model.gradient(np.zeros(w.shape[1])))[None]

    def solve(
        self, rows: Array, added: Array, free: NDArray[np.bool_], r: Array, s: Array
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Solve the system with the block of the free variables."""
        members = np.flatnonzero(free[0])
        w = np.zeros_like(r)
        block = DenseHessians(np.asarray(self.model.block(members))[None])
        added = np.broadcast_to(added, r.shape)[:, members]
        everything = np.ones((1, len(members)), bool)
        found, m, singular = block.solve(rows[:, :, members], added, everything, r[:, members], s)
        w[:, members] = found
        return w, m, singular


class KktPoint:
    """Solutions of one or more problems of the same size, and the linear system at each.

    Arrays have one item per problem; bounds and rows may have one for all.

    Parameters
    ----------
    x : ndarray of shape (count, n)
        The solutions.
    slope : ndarray of shape (count, n)
        The gradient minus the multipliers of the sums, with the L1 terms of variables that are not
        at their center. It is 0 for free variables, up to the tolerance.
    lower, upper : ndarray of shape (count or 1, n)
        The bounds.
    hessians : Hessians
        The Hessians.
    rows : ndarray of shape (count or 1, k, n)
        The active sums.
    tolerance : ndarray of shape (count,)
        Multipliers of bounds up to this size count as 0.
    kind : {"one-sided", "smoothed"}
        What to do at a bound; see `Result.vjp`.
    at_center : ndarray of bool of shape (count, n), optional
        Variables that an L1 term holds at its center.
    """

    def __init__(
        self,
        x: Array,
        slope: Array,
        lower: Array,
        upper: Array,
        hessians: Hessians,
        rows: Array,
        tolerance: Array,
        kind: Kind,
        at_center: NDArray[np.bool_] | None = None,
    ):
        if kind not in ("one-sided", "smoothed"):
            raise ValueError(f'derivative must be "one-sided" or "smoothed", got {kind!r}')
        self.x, self.hessians, self.rows = x, hessians, rows
        self.at_center = np.zeros(x.shape, bool) if at_center is None else at_center
        near = NEAR * np.abs(x).max(axis=1, keepdims=True, initial=0.0)
        self.at_lower = (x - lower <= near) & ~self.at_center
        self.at_upper = (upper - x <= near) & ~self.at_lower & ~self.at_center
        movable = np.broadcast_to(lower < upper, x.shape)
        held = self.at_lower | self.at_upper
        weak = held & movable & (np.abs(slope) <= tolerance[:, None])
        self.degenerate: NDArray[np.bool_] = weak.any(axis=1)
        self.soft: tuple[Array, Array] | None = None
        self.added = np.zeros((1, x.shape[1]))
        self.free = ~(held | self.at_center)
        if kind == "smoothed":
            self.free = movable & ~self.at_center
            self.soft = _soft_bounds(x, slope, lower, upper, hessians.diagonal)
            self.added = self.soft[0] + self.soft[1]

    def solve(self, r: Array, s: Array) -> tuple[Array, Array]:
        """Solve ``H w + A' m = r, A w = s`` over the free variables; w is 0 elsewhere."""
        w, m, singular = self.hessians.solve(self.rows, self.added, self.free, r, s)
        self.degenerate = self.degenerate | singular
        return w, m

    def adjoint(self, v: Array) -> Adjoint:
        """Return the solution of the system for the derivative v of a loss."""
        w, m = self.solve(v, np.zeros((len(v), self.rows.shape[1])))
        return Adjoint(self, v, w, m)

    def change(
        self,
        gradient: Array,
        totals: Array,
        lower: Array | float = 0.0,
        upper: Array | float = 0.0,
        center: Array | float = 0.0,
    ) -> Array:
        """Return the change of x if the problem changes.

        Parameters
        ----------
        gradient : ndarray of shape (count, n)
            Change of the gradient of the objective at x.
        totals : ndarray of shape (count, k)
            Change of the active sums.
        lower, upper, center : ndarray or float
            Changes of the bounds and of the centers of the L1 terms.
        """
        held = ~self.free
        moved = np.where(self.at_lower & held, lower, 0.0)
        moved = moved + np.where(self.at_upper & held, upper, 0.0)
        moved = moved + np.where(self.at_center, center, 0.0)
        r = -gradient - self.hessians.times(moved)
        if self.soft is not None:
            r = r + self.soft[0] * lower + self.soft[1] * upper
        s = totals - np.matmul(self.rows, moved[:, :, None])[:, :, 0]
        w, _ = self.solve(r, s)
        return np.asarray(w + moved)


def _soft_bounds(
    x: Array, slope: Array, lower: Array, upper: Array, curvature: Array
) -> tuple[Array, Array]:
    """Return the curvature with which each soft bound holds its variable.

    A bound holds or it does not: distance times multiplier is 0. The soft bound replaces 0 by
    ``h e^2``, with e the smoothing distance and h the curvature of the variable, as a logarithmic
    barrier does. Its distance d' and multiplier ``h e^2 / d'`` are those with the same difference
    ``d - multiplier / h`` as at the solution.
    """
    typical = np.maximum(curvature.mean(axis=1, keepdims=True), np.finfo(float).tiny)
    curvature = np.where(curvature > 0, curvature, typical)
    largest = np.abs(x).max(axis=1, keepdims=True, initial=np.finfo(float).tiny)
    distance = SMOOTHING * largest

    def soft(room: Array, multiplier: Array) -> Array:
        has_bound = np.isfinite(room)
        difference = np.where(has_bound, room, 0.0) - multiplier / curvature
        root = np.hypot(difference, 2 * distance)
        # (difference + root) / 2, without cancellation
        larger = (np.abs(difference) + root) / 2
        apart = np.where(difference > 0, larger, distance**2 / larger)
        return np.where(has_bound, curvature * (distance / apart) ** 2, 0.0)

    return (
        soft(x - lower, np.maximum(slope, 0.0)),
        soft(upper - x, np.maximum(-slope, 0.0)),
    )


class Adjoint:
    """The derivatives of a loss: what each argument's change does to it.

    Attributes
    ----------
    w : ndarray of shape (count, n)
        Minus the derivatives with respect to the linear term.
    m : ndarray of shape (count, k)
        The derivatives with respect to the active sums.
    """

    def __init__(self, point: KktPoint, v: Array, w: Array, m: Array):
        self.point, self.w, self.m = point, w, m
        self._v = v

    def _of_held(self) -> Array:
        """Derivatives with respect to the values of variables that are not free."""
        point = self.point
        pulled = np.matmul(self.m[:, None, :], point.rows)[:, 0, :]
        return np.asarray(self._v - point.hessians.times(self.w) - pulled)

    def lower(self) -> Array:
        """With respect to the lower bounds."""
        return self._of_bound(self.point.at_lower, 0)

    def upper(self) -> Array:
        """With respect to the upper bounds."""
        return self._of_bound(self.point.at_upper, 1)

    def _of_bound(self, at_bound: NDArray[np.bool_], side: int) -> Array:
        point = self.point
        held = np.where(at_bound & ~point.free, self._of_held(), 0.0)
        return held if point.soft is None else held + point.soft[side] * self.w

    def center(self) -> Array:
        """With respect to the centers of the L1 terms."""
        return np.where(self.point.at_center, self._of_held(), 0.0)

    def Q(self) -> Array:
        """With respect to symmetric matrices."""
        x = np.ascontiguousarray(self.point.x)
        workers = threads.count(None, MULTIPLICATIONS_PER_ENTRY * x.size * x.shape[1])
        return _core.matrix_derivatives(self.w, x, threads=workers)


def loss_derivative(v: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return the derivative of a loss with respect to x, as an array of the shape of x."""
    array = np.asarray(v, float)
    if array.shape != shape:
        raise ValueError(f"v must have the shape of x, {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("v has numbers that are not finite")
    return array
