"""An objective plus a linear term, for objectives that have no linear term of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import Array, frozen
from ..constraints import Layout
from ..labels import Axis
from .objective import (
    Fixed,
    Objective,
    constant_gradient,
    falls_along,
    rounding_errors,
    value_and_gradient,
)
from .rounding import EPS


class WithLinear(Fixed):
    """The function ``f(x) + linear'x``. Other members are those of f."""

    def __init__(self, objective: Objective, linear: Array):
        self.objective = objective
        self.added = frozen(np.asarray(linear, float))
        self.variables = Axis.of(objective)
        self.n = len(self.added)
        self.lower_bound = -np.inf
        self.recession_rows = None

    def __getattr__(self, name: str) -> Any:
        if "objective" not in self.__dict__:  # during copying or unpickling
            raise AttributeError(name)
        return getattr(self.objective, name)

    def value(self, x: Array) -> float:
        """Return the value."""
        return self.objective.value(x) + float(self.added @ x)

    def gradient(self, x: Array) -> Array:
        """Return the gradient."""
        return np.asarray(self.objective.gradient(x) + self.added)

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return the value and the gradient."""
        value, gradient = value_and_gradient(self.objective, x)
        return value + float(self.added @ x), gradient + self.added

    @property
    def constant_gradient(self) -> Array:
        """The part of the gradient that is known not to depend on x."""
        inner = constant_gradient(self.objective)
        return self.added if inner is None else inner + self.added

    def rounding_errors(self, x: Array) -> tuple[float, Array] | None:
        """Return bounds on the rounding errors, if f has them."""
        inner = rounding_errors(self.objective, x)
        if inner is None:
            return None
        terms = np.abs(self.added)
        return inner[0] + EPS * (len(x) + 2) * float(terms @ np.abs(x)), inner[1] + EPS * terms

    def falls_along(self, d: Array, cost: float = 0.0) -> bool | None:
        """Return whether ``f(x + t d) + cost t`` falls without bound; None if unknown."""
        return falls_along(self.objective, d, cost + float(self.added @ d))

    def in_layout(self, layout: Layout) -> WithLinear:
        """Return the same function in the variables of a layout."""
        inner = self.objective.in_layout(layout)
        return (
            self if inner is self.objective else WithLinear(inner, layout.derivatives(self.added))
        )
