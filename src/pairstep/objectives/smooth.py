"""Any smooth function, from Python callables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .._validation import Array, finite_number, vector
from ..constraints import Layout
from ..labels import Axis, aligned
from ..rules import checked_constants
from ..show import described
from .objective import Indices


class Smooth:
    """Any smooth function, from Python callables.

    They are given a copy of the point, and what they return is copied.

    Parameters
    ----------
    value : callable
        ``value(x) -> float``.
    gradient : callable
        ``gradient(x) -> ndarray`` of the length of x.
    lipschitz : float or array_like, optional
        Coordinate-wise Lipschitz constants of the gradient; needed by the weighted rules and by
        the steps "1/L2" and "lipschitz".

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> entropy = pairstep.Smooth(lambda x: float(x @ np.log(x)), lambda x: np.log(x) + 1)
    >>> budget = pairstep.SumBox(total=1.0, lower=1e-6, upper=[0.2, 1.0, 1.0])
    >>> pairstep.minimize(entropy, budget).x.round(6)
    array([0.2, 0.4, 0.4])
    """

    kinks = None
    linear = None
    is_quadratic = False
    prefers_blocks = False

    def __init__(
        self,
        value: Callable[[Array], float],
        gradient: Callable[[Array], ArrayLike],
        lipschitz: ArrayLike | None = None,
    ):
        for name, function in (("value", value), ("gradient", gradient)):
            if not callable(function):
                raise ValueError(f"{name} must be callable, got {function!r}")
        self._value = value
        self._gradient = gradient
        self.variables = Axis()
        lipschitz = aligned("lipschitz", lipschitz, self.variables)
        self._lipschitz = lipschitz
        self.n: int | None = None
        if lipschitz is not None:
            size = np.size(np.asarray(lipschitz))
            checked_constants(lipschitz, size)
            self.n = size if np.ndim(lipschitz) else None

    def __repr__(self) -> str:
        lipschitz = None if self._lipschitz is None else np.asarray(self._lipschitz, float)
        return described("Smooth", value=self._value, gradient=self._gradient, lipschitz=lipschitz)

    @property
    def lipschitz(self) -> Array | None:
        """The constants that were given."""
        if self._lipschitz is None or self.n is None:
            return None
        return checked_constants(self._lipschitz, self.n)

    @property
    def hessian(self) -> None:
        """Unknown."""
        return None

    def value(self, x: Array) -> float:
        """f(x)."""
        return finite_number(
            "the objective's value", self._value(np.array(x, float)), infinite=True
        )

    def gradient(self, x: Array) -> Array:
        """The gradient at x."""
        gradient = self._gradient(np.array(x, float))
        return vector("the objective's gradient", gradient, len(x)).copy()

    def curvature(self, indices: Indices, delta: Array) -> None:
        """Unknown."""
        return None

    def block(self, indices: Indices) -> None:
        """Unknown."""
        return None

    def two_coordinate_constant(self) -> float | None:
        """Bound L2 for convex f by ``max (sqrt(L_i) + sqrt(L_j))^2 / 2``."""
        if self.lipschitz is None:
            return None
        largest = np.sort(np.sqrt(self.lipschitz))[-2:]
        return float(largest.sum() ** 2 / 2)

    def in_accounts(self, layout: Layout) -> Smooth:
        """The same function of ``z = weights * x``."""
        constants = None
        if self._lipschitz is not None:
            n = len(layout.bounds[0])
            constants = layout.scatter_constants(checked_constants(self._lipschitz, n))
            # Cash has no curvature; any positive number is a Lipschitz constant of it.
            constants = np.where(constants > 0, constants, constants[constants > 0].min())
        moved = Smooth(
            lambda z: self.value(layout.to_coordinates(z)),
            lambda z: layout.prices(self.gradient(layout.to_coordinates(z))),
            constants,
        )
        moved.n = layout.n
        return moved
