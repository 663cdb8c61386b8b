"""L1 terms added to an objective: trading costs, turnover, sparsity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import LARGE, Array, frozen, full_vector, numbers_for_message
from ..constraints import Layout
from ..labels import Axis, aligned, point_of
from ..show import described
from .objective import Fixed, Objective, falls_along, rounding_errors, value_and_gradient
from .rounding import EPS

Slopes = ArrayLike | tuple[ArrayLike, ArrayLike]


class L1Penalized(Fixed):
    """An objective plus L1 terms ``sum_i l1_i |x_i - center_i|``.

    Use them for trading costs, turnover costs and sparsity.

    Parameters
    ----------
    objective : Quadratic, LeastSquares, Smooth or L1Penalized
        The function to add to. It may have L1 terms itself, but each variable has only one
        breakpoint: if both weights are positive the centers must be equal.
    l1 : float, array_like or Series of shape (n,), or a pair of them
        Weights of at least 0. With a tuple ``(down, up)`` a unit below the center costs `down` and
        a unit above it costs `up`, for instance if selling and buying have different costs.
    center : float, array_like or Series of shape (n,)
        Centers of the L1 terms. Labels are aligned with the objective's; see `pairstep.labels`.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> held = np.array([0.6, 0.4])
    >>> risk = pairstep.Quadratic([[1.0, 0.0], [0.0, 1.0]])
    >>> costly = pairstep.L1Penalized(risk, l1=0.5, center=held)
    >>> pairstep.minimize(costly, pairstep.Simplex()).x
    array([0.6, 0.4])

    Selling costs nothing, buying 0.15:

    >>> one_sided = pairstep.L1Penalized(risk, l1=(0.0, 0.15), center=held)
    >>> pairstep.minimize(one_sided, pairstep.Simplex()).x.round(6)
    array([0.575, 0.425])
    """

    # Members of the smooth part; see `__getattr__`.
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
            raise ValueError(f"l1 as a tuple must be a pair (down, up), got {len(l1)} items")
        given = {"l1[0]": l1[0], "l1[1]": l1[1]} if isinstance(l1, tuple) else {"l1": l1}
        named = {name: aligned(name, value, self.variables) for name, value in given.items()}
        center = aligned("center", center, self.variables)
        # If n is not known yet, numbers become vectors of length 1 until `in_layout` is called.
        sizes = [np.size(np.asarray(v)) for v in (*named.values(), center) if np.ndim(v)]
        self.n: int | None = sizes[0] if objective.n is None and sizes else objective.n
        n = 1 if self.n is None else self.n
        slopes = [_slope(name, value, n) for name, value in named.items()]
        self._down, self._up = slopes[0], slopes[-1]
        self._pivot = frozen(full_vector("center", center, n, limit=LARGE))
        # down (p - x)+ + up (x - p)+ = (down + up) / 2 |x - p| + (up - down) / 2 (x - p): an L1
        # term with equal slopes plus a linear term. So solvers handle equal slopes only.
        self._tilt = frozen(0.5 * (self._up - self._down))
        added = frozen(0.5 * (self._up + self._down)), self._pivot
        inner: tuple[Array, Array] | None = getattr(objective, "l1_terms", None)
        self.l1_terms = added if inner is None else _together(inner, added)

    def __repr__(self) -> str:
        l1 = self._up if self._up is self._down else (self._down, self._up)
        return described("L1Penalized", objective=self.objective, l1=l1, center=self._pivot)

    def __getattr__(self, name: str) -> Any:
        # Curvature, Lipschitz constants and Hessian are those of the smooth part.
        if "objective" not in self.__dict__:  # during copying or unpickling
            raise AttributeError(name)
        return getattr(self.objective, name)

    def value(self, x: ArrayLike) -> float:
        """Return the objective with its L1 terms."""
        point = point_of(self, x)
        return self.objective.value(point) + self._l1_value(point)

    def gradient(self, x: ArrayLike) -> Array:
        """Return the gradient of the smooth part, which excludes L1 terms with equal slopes."""
        return np.asarray(self.objective.gradient(point_of(self, x)) + self._tilt)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Return the objective with its L1 terms, and the gradient of the smooth part."""
        point = point_of(self, x)
        value, gradient = value_and_gradient(self.objective, point)
        return value + self._l1_value(point), gradient + self._tilt

    def rounding_errors(self, x: Array) -> tuple[float, Array] | None:
        """Return bounds on the rounding errors, if the smooth part has them."""
        inner = rounding_errors(self.objective, x)
        if inner is None:
            return None
        l1_terms = float(
            (np.maximum(self._down, self._up) * (np.abs(x) + np.abs(self._pivot))).sum()
        )
        return inner[0] + EPS * (len(x) + 4) * l1_terms, inner[1] + EPS * np.abs(self._tilt)

    def falls_along(self, d: Array, cost: float = 0.0) -> bool | None:
        """Return whether ``f(x + t d) + cost t`` falls without bound; None if unknown."""
        cost += float(np.where(d < 0, -self._down * d, self._up * d).sum())
        return falls_along(self.objective, d, cost)

    @property
    def linear(self) -> Array | None:
        """The gradient of the smooth part at 0, if the Hessian is constant."""
        inner = self.objective.linear
        return None if inner is None else inner + self._tilt

    @property
    def c(self) -> Array:
        """The linear term of the smooth part, if it has one."""
        return np.asarray(self.objective.c + self._tilt)  # type: ignore[attr-defined]

    def oracle(self, point: Any) -> Any:
        """Return the native oracle of the smooth part for the block solver, or None."""
        native = getattr(self.objective, "oracle", None)
        if native is None or not self._tilt.any():
            return None if native is None else native(point)
        return self.with_linear(self.c).oracle(point) if hasattr(self, "with_linear") else None

    def _l1_value(self, x: Array) -> float:
        beyond = x - self._pivot
        return float(np.where(beyond < 0, -self._down * beyond, self._up * beyond).sum())

    def in_layout(self, layout: Layout) -> L1Penalized:
        """Return the same function in the variables of a layout."""
        smooth = self.objective.in_layout(layout)
        if smooth is self.objective:
            return self
        n = len(layout.bounds[0])
        down, up, breakpoint = (np.broadcast_to(v, n) for v in (self._down, self._up, self._pivot))
        down, up = layout.derivatives(down), layout.derivatives(up)
        # A negative coefficient exchanges the two slopes.
        slopes = np.where(down + up < 0, -up, down), np.where(down + up < 0, -down, up)
        return L1Penalized(smooth, slopes, layout.scatter(breakpoint))


def _slope(name: str, value: ArrayLike, n: int) -> Array:
    slope = frozen(full_vector(name, value, n, limit=LARGE))
    if slope.min() < 0:
        i = int(np.argmin(slope))
        raise ValueError(f"{name} must not be negative, but {name}[{i}] = {slope[i]:g}")
    return slope


def _together(inner: tuple[Array, Array], outer: tuple[Array, Array]) -> tuple[Array, Array]:
    """Add two sets of L1 terms: weights with the same center add up."""
    inner_weight, inner_pivot, weight, breakpoint = np.broadcast_arrays(*inner, *outer)
    apart = (inner_weight > 0) & (weight > 0) & (inner_pivot != breakpoint)
    if apart.any():
        i = int(np.argmax(apart))
        places = numbers_for_message(inner_pivot[i], breakpoint[i])
        raise ValueError(
            f"a variable may have one L1 center: the objective's is {places[0]}, "
            f"but center[{i}] = {places[1]}"
        )
    return frozen(inner_weight + weight), frozen(np.where(weight > 0, breakpoint, inner_pivot))
