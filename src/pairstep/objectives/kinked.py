"""Kinks upon an objective: trading costs, turnover, sparsity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import LARGE, Array, frozen, full_vector
from ..constraints import Layout
from ..labels import Axis, aligned
from ..show import described
from .objective import Fixed, Objective, value_and_gradient


class Kinked(Fixed):
    """An objective plus kinks ``sum_i l1_i |x_i - center_i|``.

    They carry trading costs, turnover and sparsity.

    Parameters
    ----------
    objective : Quadratic, LeastSquares, Smooth or Kinked
        The smooth part. It may have kinks itself, but each variable at one place only: where both
        weights are positive the centers must be equal.
    l1 : float, array_like or Series of shape (n,)
        Weights, not negative.
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
    """

    # What the smooth part answers for, see `__getattr__`.
    lipschitz: Array | None
    hessian: Array | None
    linear: Array | None
    is_quadratic: bool
    prefers_blocks: bool
    gradient: Any
    curvature: Any
    block: Any
    two_coordinate_constant: Any

    def __init__(self, objective: Objective, l1: ArrayLike, center: ArrayLike = 0.0):
        self.objective = objective
        self.variables = Axis.of(objective)
        l1 = aligned("l1", l1, self.variables)
        center = aligned("center", center, self.variables)
        # Where nobody knows n yet, numbers stand for vectors of length 1, until `in_accounts`.
        sizes = [np.size(np.asarray(v)) for v in (l1, center) if np.ndim(v)]
        self.n: int | None = sizes[0] if objective.n is None and sizes else objective.n
        n = 1 if self.n is None else self.n
        weight = frozen(full_vector("l1", l1, n, limit=LARGE))
        pivot = frozen(full_vector("center", center, n, limit=LARGE))
        if weight.min() < 0:
            i = int(np.argmin(weight))
            raise ValueError(f"l1 must not be negative, but l1[{i}] = {weight[i]:g}")
        self._added: tuple[Array, Array] = weight, pivot
        inner: tuple[Array, Array] | None = getattr(objective, "kinks", None)
        self.kinks = self._added if inner is None else _together(inner, self._added)

    def __repr__(self) -> str:
        l1, center = self._added
        return described("Kinked", objective=self.objective, l1=l1, center=center)

    def __getattr__(self, name: str) -> Any:
        # The smooth part answers for gradient, curvature, constants and Hessian.
        if "objective" not in self.__dict__:  # while it is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.objective, name)

    def value(self, x: ArrayLike) -> float:
        """The objective with its kinks."""
        point = np.asarray(x, float)
        return self.objective.value(point) + self._at_kinks(point)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """The objective with its kinks, and the gradient of the smooth part."""
        point = np.asarray(x, float)
        value, gradient = value_and_gradient(self.objective, point)
        return value + self._at_kinks(point), gradient

    def _at_kinks(self, x: Array) -> float:
        weight, pivot = self._added
        return float((weight * np.abs(x - pivot)).sum())

    def in_accounts(self, layout: Layout) -> Kinked:
        """The same function of the accounts of a constraint."""
        smooth = self.objective.in_accounts(layout)
        if smooth is self.objective:
            return self
        n = len(layout.bounds[0])
        weight, pivot = (np.broadcast_to(v, n) for v in self._added)
        return Kinked(smooth, np.abs(layout.prices(weight)), layout.scatter(pivot))


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
