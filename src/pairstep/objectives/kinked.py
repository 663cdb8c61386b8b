"""Kinks upon an objective: trading costs, turnover, sparsity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import LARGE, Array, frozen, full_vector
from ..constraints import Layout
from ..labels import Axis, aligned, point_of
from ..show import described
from .objective import Fixed, Objective, value_and_gradient

Slopes = ArrayLike | tuple[ArrayLike, ArrayLike]


class Kinked(Fixed):
    """An objective plus kinks ``sum_i l1_i |x_i - center_i|``.

    They carry trading costs, turnover and sparsity.

    Parameters
    ----------
    objective : Quadratic, LeastSquares, Smooth or Kinked
        The smooth part. It may have kinks itself, but each variable at one place only: where both
        weights are positive the centers must be equal.
    l1 : float, array_like or Series of shape (n,), or a pair of them
        Weights, not negative. A tuple ``(down, up)`` has two: a unit below the center costs `down`,
        one above it `up`, as selling and buying do.
    center : float, array_like or Series of shape (n,)
        Where the kinks are. Labels are aligned with the objective's; see `pairstep.labels`.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> held = np.array([0.6, 0.4])
    >>> risk = pairstep.Quadratic([[1.0, 0.0], [0.0, 1.0]])
    >>> costly = pairstep.Kinked(risk, l1=0.5, center=held)
    >>> pairstep.minimize(costly, pairstep.Simplex()).x
    array([0.6, 0.4])

    Selling costs nothing, buying 0.15:

    >>> one_sided = pairstep.Kinked(risk, l1=(0.0, 0.15), center=held)
    >>> pairstep.minimize(one_sided, pairstep.Simplex()).x.round(6)
    array([0.575, 0.425])
    """

    # What the smooth part answers for, see `__getattr__`.
    lipschitz: Array | None
    hessian: Array | None
    is_quadratic: bool
    prefers_blocks: bool
    curvature: Any
    block: Any
    two_coordinate_constant: Any

    def __init__(self, objective: Objective, l1: Slopes, center: ArrayLike = 0.0):
        self.objective = objective
        self.variables = Axis.of(objective)
        if isinstance(l1, tuple) and len(l1) != 2:
            raise ValueError(f"l1 as slopes must be a pair (down, up), got {len(l1)} items")
        given = {"l1[0]": l1[0], "l1[1]": l1[1]} if isinstance(l1, tuple) else {"l1": l1}
        named = {name: aligned(name, value, self.variables) for name, value in given.items()}
        center = aligned("center", center, self.variables)
        # Where nobody knows n yet, numbers stand for vectors of length 1, until `in_accounts`.
        sizes = [np.size(np.asarray(v)) for v in (*named.values(), center) if np.ndim(v)]
        self.n: int | None = sizes[0] if objective.n is None and sizes else objective.n
        n = 1 if self.n is None else self.n
        slopes = [_slope(name, value, n) for name, value in named.items()]
        self._down, self._up = slopes[0], slopes[-1]
        self._pivot = frozen(full_vector("center", center, n, limit=LARGE))
        # down (p - x)+ + up (x - p)+ = (down + up) / 2 |x - p| + (up - down) / 2 (x - p): a kink
        # with equal slopes and a linear term, so that solvers know of no others.
        self._tilt = frozen(0.5 * (self._up - self._down))
        added = frozen(0.5 * (self._up + self._down)), self._pivot
        inner: tuple[Array, Array] | None = getattr(objective, "kinks", None)
        self.kinks = added if inner is None else _together(inner, added)

    def __repr__(self) -> str:
        l1 = self._up if self._up is self._down else (self._down, self._up)
        return described("Kinked", objective=self.objective, l1=l1, center=self._pivot)

    def __getattr__(self, name: str) -> Any:
        # The smooth part answers for curvature, constants and Hessian.
        if "objective" not in self.__dict__:  # while it is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.objective, name)

    def value(self, x: ArrayLike) -> float:
        """The objective with its kinks."""
        point = point_of(self, x)
        return self.objective.value(point) + self._at_kinks(point)

    def gradient(self, x: ArrayLike) -> Array:
        """The gradient of the smooth part: all but kinks with equal slopes."""
        return np.asarray(self.objective.gradient(point_of(self, x)) + self._tilt)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """The objective with its kinks, and the gradient of the smooth part."""
        point = point_of(self, x)
        value, gradient = value_and_gradient(self.objective, point)
        return value + self._at_kinks(point), gradient + self._tilt

    @property
    def linear(self) -> Array | None:
        """The gradient of the smooth part at 0, if the Hessian is constant."""
        inner = self.objective.linear
        return None if inner is None else inner + self._tilt

    @property
    def c(self) -> Array:
        """The linear term of the smooth part, where it has one."""
        return np.asarray(self.objective.c + self._tilt)  # type: ignore[attr-defined]

    def oracle(self, point: Any) -> Any:
        """What the block gear asks of the smooth part, if that can answer in native code."""
        native = getattr(self.objective, "oracle", None)
        if native is None or not self._tilt.any():
            return None if native is None else native(point)
        return self.with_linear(self.c).oracle(point) if hasattr(self, "with_linear") else None

    def _at_kinks(self, x: Array) -> float:
        beyond = x - self._pivot
        return float(np.where(beyond < 0, -self._down * beyond, self._up * beyond).sum())

    def in_accounts(self, layout: Layout) -> Kinked:
        """The same function of the accounts of a constraint."""
        smooth = self.objective.in_accounts(layout)
        if smooth is self.objective:
            return self
        n = len(layout.bounds[0])
        down, up, pivot = (np.broadcast_to(v, n) for v in (self._down, self._up, self._pivot))
        down, up = layout.prices(down), layout.prices(up)
        # A negative weight turns up into down.
        slopes = np.where(down + up < 0, -up, down), np.where(down + up < 0, -down, up)
        return Kinked(smooth, slopes, layout.scatter(pivot))


def _slope(name: str, value: ArrayLike, n: int) -> Array:
    slope = frozen(full_vector(name, value, n, limit=LARGE))
    if slope.min() < 0:
        i = int(np.argmin(slope))
        raise ValueError(f"{name} must not be negative, but {name}[{i}] = {slope[i]:g}")
    return slope


def _together(inner: tuple[Array, Array], outer: tuple[Array, Array]) -> tuple[Array, Array]:
    """Kinks upon kinks: the weights of one place add up."""
    inner_weight, inner_pivot, weight, pivot = np.broadcast_arrays(*inner, *outer)
    apart = (inner_weight > 0) & (weight > 0) & (inner_pivot != pivot)
    if apart.any():
        i = int(np.argmax(apart))
        raise ValueError(
            f"a variable may have one kink: the objective's is at {inner_pivot[i]:g}, "
            f"but center[{i}] = {pivot[i]:g}"
        )
    return inner_weight + weight, np.where(weight > 0, pivot, inner_pivot)
