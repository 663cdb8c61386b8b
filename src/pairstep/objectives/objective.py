"""What solvers need to know about an objective: required members, and optional ones.

`Objective` lists the required members; `solve.choose_solver` says which solver needs which.
`OptionalMembers` lists the members that solvers use if an objective has them. The functions below
are the only place that looks for optional members: each returns the member, or the default where
the objective has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._validation import Array, read_only
from ..constraints import Layout

Indices = NDArray[np.int64]


class Objective(Protocol):
    """A smooth function of n variables. Its methods must not change the points they are given."""

    @property
    def n(self) -> int | None:
        """The number of variables, or None if the objective does not fix it."""

    @property
    def lipschitz(self) -> Array | None:
        """Coordinate-wise Lipschitz constants of the gradient, if known."""

    @property
    def hessian(self) -> Array | None:
        """The Hessian as one dense array, if it is constant and fits into memory."""

    @property
    def is_quadratic(self) -> bool:
        """Whether the Hessian is constant, so that `curvature` and `block` return numbers."""

    def value(self, x: Array) -> float:
        """Return f(x)."""

    def gradient(self, x: Array) -> Array:
        """Return the gradient at x as a new array."""

    def curvature(self, indices: Indices, delta: Array) -> float | None:
        """Return ``d'Hd`` for the step d, if the Hessian is constant.

        Only `coordinate_descent` needs it.
        """

    def two_coordinate_constant(self) -> float | None:
        """Return L2, the largest ``(H_ii + H_jj - 2 H_ij) / 2``, or an upper bound, if known.

        Only `coordinate_descent` and `theory` need it.
        """

    @property
    def linear(self) -> Array | None:
        """The gradient at 0, which does not depend on x, if the Hessian is constant."""

    @property
    def l1_terms(self) -> tuple[Array, Array] | None:
        """Weights k and centers p of the L1 terms ``k_i |x_i - p_i|``, if there are any."""

    def block(self, indices: Indices) -> Array | None:
        """Return these rows and columns of the Hessian, if it is constant."""

    @property
    def prefers_blocks(self) -> bool:
        """Whether computing blocks of the Hessian is cheaper than computing all of it."""

    def in_layout(self, layout: Layout) -> Objective:
        """Return the same function in the variables of a layout."""


class OptionalMembers(Protocol):
    """Members that solvers use if an objective has them.

    Each may be left out. The function of the same name below says what is assumed then; for
    `oracle` it is `native_oracle`, and for `variables` it is `pairstep.labels.Axis.of`.
    """

    @property
    def variables(self) -> Any:
        """The labels of the variables, a `pairstep.labels.Axis`."""

    def value_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Return f(x) and the gradient, if computing both together is cheaper."""

    def second_order(self, x: Array, moving: Indices) -> Any:
        """Return ``(y - x)'H(y - x) / 2`` with the Hessian H at x, as a quadratic objective of y.

        It needs to be correct only for changes of the variables `moving`. None: H is unknown, and
        the solver estimates curvature from gradients.
        """

    def sample(self, x: Array) -> Any:
        """Return a similar objective that is much cheaper to evaluate, or None."""

    def rounding_errors(self, x: Array) -> tuple[float, Array] | None:
        """Return bounds on the rounding errors of the value and of each derivative at x."""

    def products(self, x: Array) -> Array:
        """Return the size of the products summed in each derivative of a quadratic at x.

        The rounding error of a derivative is proportional to it.
        """

    def falls_along(self, d: Array, cost: float) -> bool | None:
        """Return whether ``f(x + t d) + cost t`` falls without bound as t grows, if known."""

    @property
    def recession_rows(self) -> Array | None:
        """Rows R: f falls without bound along d if ``Rd >= 0`` and an entry of Rd is positive.

        None if that is not the exact condition.
        """

    @property
    def lower_bound(self) -> float:
        """A number that f is nowhere below; -inf if none is known."""

    @property
    def constant_gradient(self) -> Array | None:
        """A part of the gradient that does not depend on x and may cancel with the rest."""

    @property
    def gradient_is_given(self) -> bool:
        """Whether the gradient was written by the user, who may have made a mistake in it."""

    @property
    def has_minimum(self) -> bool:
        """Whether f is known to be bounded below, even if rounding hides its curvature."""

    @property
    def is_convex(self) -> bool:
        """Whether a quadratic is known to be convex, so that solvers need not test it."""

    @property
    def least_pair_curvature(self) -> float:
        """The least curvature of a pair relative to the largest entry of Q; 0 if unknown."""

    @property
    def direct_solves(self) -> bool:
        """Whether the native oracle can solve for all free variables directly."""

    def oracle(self, point: Any) -> Any:
        """Return a native oracle for the block solver, or None."""

    def argument_derivatives(self, x: Array, w: Array) -> dict[str, Callable[[], Any]]:
        """Return the derivatives of ``-w'gradient(x)`` with respect to the arguments of f, by name.

        Each is computed when its function is called.
        """

    def gradient_change(self, x: Array, name: str, change: Any) -> Array | None:
        """Return the change of the gradient at x if an argument of f changes, None if unknown."""


def value_and_gradient(objective: Objective, x: Array) -> tuple[float, Array]:
    """Return f(x) and the gradient at x."""
    together = getattr(objective, "value_and_gradient", None)
    return (objective.value(x), objective.gradient(x)) if together is None else together(x)


def second_order(objective: Objective, x: Array, moving: Indices) -> Any:
    """Return the quadratic model of f around x without its linear term, or None."""
    known = getattr(objective, "second_order", None)
    return None if known is None else known(x, moving)


def sample(objective: Objective, x: Array) -> Any:
    """Return a similar objective that is much cheaper to evaluate, or None."""
    known = getattr(objective, "sample", None)
    return None if known is None else known(x)


def rounding_errors(objective: Objective, x: Array) -> tuple[float, Array] | None:
    """Return bounds on the rounding errors of value and gradient at x, or None."""
    known = getattr(objective, "rounding_errors", None)
    return None if known is None else known(x)


def products(objective: Objective, x: Array) -> Array | None:
    """Return the size of the products summed in each derivative, or None."""
    known = getattr(objective, "products", None)
    return None if known is None else known(x)


def falls_along(objective: Objective, d: Array, cost: float = 0.0) -> bool | None:
    """Return whether ``f(x + t d) + cost t`` falls without bound as t grows; None if unknown."""
    known = getattr(objective, "falls_along", None)
    return None if known is None else known(d, cost)


def recession_rows(objective: Objective) -> Array | None:
    """Return linear conditions for directions along which f falls without bound, or None."""
    rows: Array | None = getattr(objective, "recession_rows", None)
    return rows


def lower_bound(objective: Objective) -> float:
    """Return a number that f is nowhere below, -inf by default."""
    return float(getattr(objective, "lower_bound", -math.inf))


def constant_gradient(objective: Objective) -> Array | None:
    """Return the part of the gradient that is known not to depend on x, or None."""
    if objective.linear is not None:
        return objective.linear
    constant: Array | None = getattr(objective, "constant_gradient", None)
    return constant


def gradient_is_given(objective: Objective) -> bool:
    """Return whether the gradient was written by the user, True by default."""
    return bool(getattr(objective, "gradient_is_given", True))


def has_minimum(objective: Objective) -> bool:
    """Return whether f is known to be bounded below, False by default."""
    return bool(getattr(objective, "has_minimum", False))


def is_convex(objective: Objective) -> bool:
    """Return whether a quadratic is known to be convex, False by default."""
    return bool(getattr(objective, "is_convex", False))


def least_pair_curvature(objective: Objective) -> float:
    """Return the least relative curvature of a pair, 0 by default."""
    return float(getattr(objective, "least_pair_curvature", 0.0))


def direct_solves(objective: Objective) -> bool:
    """Return whether the native oracle can solve for all free variables directly."""
    return bool(getattr(objective, "direct_solves", False))


def native_oracle(objective: Objective, point: Any) -> Any:
    """Return the native oracle of an objective for the block solver, or None."""
    known = getattr(objective, "oracle", None)
    return None if known is None else known(point)


def argument_derivatives(objective: Objective, x: Array, w: Array) -> dict[str, Callable[[], Any]]:
    """Return the derivatives of ``-w'gradient(x)`` by argument name.

    By default, only that with respect to a linear term that could be added to f.
    """
    known = getattr(objective, "argument_derivatives", None)
    return {"c": lambda: -w} if known is None else known(x, w)


def gradient_change(objective: Objective, x: Array, name: str, change: Any) -> Array | None:
    """Return the change of the gradient at x if an argument changes, None if it is unknown."""
    known = getattr(objective, "gradient_change", None)
    if known is not None:
        found: Array | None = known(x, name, change)
        return found
    return np.asarray(change, float) if name == "c" else None


class Fixed:
    """An object whose public attributes can be set only once, because solvers cache results.

    Arrays among the attributes are read-only.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if name[0] != "_":
            if name in self.__dict__:
                kind = type(self).__name__
                raise AttributeError(f"cannot set {name}: a {kind} is immutable; create a new one")
            value = read_only(value)
        self.__dict__[name] = value

    def __setstate__(self, state: dict[str, Any]) -> None:
        # NumPy does not keep the read-only flag in copies and pickles.
        self.__dict__.update({name: _read_only_in(value) for name, value in state.items()})


def _read_only_in(value: Any) -> Any:
    return tuple(map(read_only, value)) if type(value) is tuple else read_only(value)
