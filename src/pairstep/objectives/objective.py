"""What a solver may ask of an objective."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import Array
from ..constraints import Layout

Indices = NDArray[np.int64]


class Objective(Protocol):
    """A smooth function of n variables. It must not change the points it is asked about."""

    @property
    def n(self) -> int | None:
        """The number of variables, if the objective knows it."""

    @property
    def lipschitz(self) -> Array | None:
        """Coordinate-wise Lipschitz constants of the gradient, if known."""

    @property
    def hessian(self) -> Array | None:
        """The Hessian as one dense array, if it is constant and fits."""

    @property
    def is_quadratic(self) -> bool:
        """Whether the Hessian is constant, so that `curvature` and `block` answer."""

    def value(self, x: Array) -> float:
        """f(x)."""

    def gradient(self, x: Array) -> Array:
        """The gradient at x, a new array."""

    def curvature(self, indices: Indices, delta: Array) -> float | None:
        """``d'Hd`` for the move d, if the Hessian is constant."""

    def two_coordinate_constant(self) -> float | None:
        """L2, the largest ``(H_ii + H_jj - 2 H_ij) / 2``, or an upper bound, if known."""

    @property
    def linear(self) -> Array | None:
        """The gradient at 0, the part that no x changes, if the Hessian is constant."""

    @property
    def kinks(self) -> tuple[Array, Array] | None:
        """Weights k and places p of the kinks ``k_i |x_i - p_i|``, if there are any."""

    def block(self, indices: Indices) -> Array | None:
        """Rows and columns of the Hessian, if it is constant."""

    @property
    def prefers_blocks(self) -> bool:
        """Whether `block` is the cheaper way to the Hessian."""

    def in_accounts(self, layout: Layout) -> Objective:
        """The same function of the accounts of a constraint."""


class Fixed:
    """An object whose public attributes are set once: what a solver derives from them is kept."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__ and not name.startswith("_"):
            kind = type(self).__name__
            raise AttributeError(f"a {kind} cannot be changed, so its {name} neither: make another")
        object.__setattr__(self, name, value)


def value_and_gradient(objective: Objective, x: Array) -> tuple[float, Array]:
    """f(x) and the gradient at x, at one cost where the objective can tell both together."""
    together = getattr(objective, "value_and_gradient", None)
    return (objective.value(x), objective.gradient(x)) if together is None else together(x)
