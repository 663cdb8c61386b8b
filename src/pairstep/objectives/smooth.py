"""Any smooth function, from Python callables."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import (
    Array,
    array,
    as_given,
    checked_constants,
    finite_number,
    frozen,
    of_length,
    require_finite,
)
from ..constraints import Layout
from ..labels import Axis, aligned, point_of
from ..show import described
from . import autodiff
from .differences import differences
from .least_squares import LeastSquares
from .objective import Fixed, Indices, falls_along, recession_rows, rounding_errors
from .quadratic import Quadratic

EVERYWHERE: tuple[Any, Any] = -math.inf, math.inf


class Smooth(Fixed):
    """Any smooth function, given by Python callables.

    The callables receive a copy of the point, and their results are copied. A point is outside the
    domain if the value is +inf or NaN or the gradient is not finite; steps are shortened so as not
    to end there.

    Parameters
    ----------
    value : callable
        ``value(x) -> float``.
    gradient : callable, True, "jax", "torch" or None
        ``gradient(x) -> ndarray`` of the length of x. True: ``value(x)`` returns the pair of value
        and gradient. "jax" and "torch": `value` is written with that library, which differentiates
        it. None: finite differences, with ``2 n + 2`` values per gradient, all within the bounds.
    hessian : callable, "jax", "torch" or None
        ``hessian(x)`` returns the matrix of second derivatives, dense or sparse. A pair ``(F, d)``
        stands for ``F'F + diag(d)``, which is not multiplied out if n is large. A `FactorModel` or
        `LeastSquares` stands for its own Hessian. None: curvature is estimated from gradients.
    lipschitz : float or array_like, optional
        Coordinate-wise Lipschitz constants of the gradient, for the rules with Lipschitz constants
        and for the steps "1/L2" and "lipschitz".
    n : int, optional
        The number of variables, if bounds and x0 do not determine it.
    value_and_gradient : callable, optional
        ``value_and_gradient(x) -> (float, ndarray)``, in place of `value` and `gradient`.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> entropy = pairstep.Smooth(lambda x: float(x @ np.log(x)), lambda x: np.log(x) + 1)
    >>> box = pairstep.SumBox(total=1.0, lower=1e-6, upper=[0.2, 1.0, 1.0])
    >>> pairstep.minimize(entropy, box).x.round(6)
    array([0.2, 0.4, 0.4])

    With second derivatives fewer iterations are needed; without any derivative it still works:

    >>> with_hessian = pairstep.Smooth(
    ...     lambda x: float(x @ np.log(x)), lambda x: np.log(x) + 1, lambda x: np.diag(1 / x)
    ... )
    >>> pairstep.minimize(with_hessian, box).x.round(6)
    array([0.2, 0.4, 0.4])
    >>> pairstep.minimize(pairstep.Smooth(lambda x: float(x @ np.log(x))), box).x.round(6)
    array([0.2, 0.4, 0.4])
    """

    l1_terms = None
    linear = None
    is_quadratic = False
    prefers_blocks = False
    n: int | None = None
    _lipschitz: ArrayLike | None = None
    _bounds = EVERYWHERE  # within which finite differences are taken
    # A part of the gradient that does not depend on x and may cancel with the rest.
    constant_gradient: Array | None = None

    @property
    def lower_bound(self) -> float:
        """A lower bound on f."""
        return -math.inf

    def __init__(
        self,
        value: Callable[[Array], Any] | None = None,
        gradient: Callable[[Array], ArrayLike] | str | bool | None = None,
        hessian: Callable[[Array], Any] | str | None = None,
        lipschitz: ArrayLike | None = None,
        n: int | None = None,
        *,
        value_and_gradient: Callable[[Array], Any] | None = None,
    ):
        if value_and_gradient is not None:
            if value is not None or gradient is not None:
                raise ValueError("give value_and_gradient, or value and gradient, but not both")
            value, gradient = value_and_gradient, True
        if not callable(value):
            raise ValueError(f"value must be callable, got {value!r}")
        if not (gradient is None or gradient is True or isinstance(gradient, str)):
            _require_callable("gradient", gradient)
        if not (hessian is None or isinstance(hessian, str)):
            _require_callable("hessian", hessian)
        self._value = value
        self._gradient: Any = gradient if callable(gradient) else None
        self._both: Callable[[Array], Any] | None = value if gradient is True else None
        if isinstance(gradient, str):
            self._both = autodiff.value_and_gradient(value, gradient)
        self._hessian: Any = hessian
        if isinstance(hessian, str):
            self._hessian = autodiff.hessian(value, hessian)
        self.variables = Axis()
        lipschitz = aligned("lipschitz", lipschitz, self.variables)
        self._lipschitz = None if lipschitz is None else frozen(as_given("lipschitz", lipschitz))
        if lipschitz is not None:
            size = np.size(np.asarray(lipschitz))
            checked_constants(lipschitz, size)
            n = size if np.ndim(lipschitz) else n
        self.n = n

    def __repr__(self) -> str:
        lipschitz = None if self._lipschitz is None else np.asarray(self._lipschitz, float)
        return described(
            "Smooth", value=self._value, gradient=self._gradient, hessian=self._hessian,
            lipschitz=lipschitz,
        )  # fmt: skip

    @property
    def gradient_is_given(self) -> bool:
        """Whether the gradient was written by the user, who may have made a mistake in it."""
        return self._gradient is not None or self._both is not None

    @property
    def lipschitz(self) -> Array | None:
        """The Lipschitz constants, if given."""
        if self._lipschitz is None or self.n is None:
            return None
        return checked_constants(self._lipschitz, self.n)

    @property
    def hessian(self) -> None:
        """None, because the Hessian is not constant."""
        return None

    def value(self, x: ArrayLike) -> float:
        """Return f(x), infinite outside the domain."""
        point = np.array(point_of(self, x))
        return _number(self._value(point) if self._both is None else _pair(self._both(point))[0])

    def gradient(self, x: ArrayLike) -> Array:
        """Return the gradient at x."""
        gradient = self._gradient_at(np.array(point_of(self, x)))
        require_finite(GRADIENT, gradient)
        return gradient

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Return f(x) and the gradient; f is infinite if the gradient is not finite."""
        point = np.array(point_of(self, x))
        if self._both is not None:
            answer = _pair(self._both(point))
            value, gradient = _number(answer[0]), _gradient(answer[1], len(point))
        else:
            value = self.value(point)
            outside = value == math.inf
            gradient = np.full(len(point), math.nan) if outside else self._gradient_at(point)
        return value if np.isfinite(gradient).all() else math.inf, gradient

    def _gradient_at(self, x: Array) -> Array:
        if self._both is not None:
            return _gradient(_pair(self._both(x))[1], len(x))
        if self._gradient is None:
            return differences(self.value, x, *self._bounds)
        return _gradient(self._gradient(x.copy()), len(x))

    def second_order(self, x: Array, moving: Indices) -> Quadratic | LeastSquares | None:
        """Return ``(y - x)'H(y - x) / 2`` with the Hessian H at x, if it is known.

        It needs to be correct only for changes of the variables `moving`.
        """
        if self._hessian is None:
            return None
        form = self._hessian(np.array(x, float))
        if isinstance(form, LeastSquares):
            form = form.A, form.ridge
        factors = isinstance(form, tuple)
        size = (np.shape(form[0] if factors else form) or (0,))[-1]
        if size != len(x):
            raise ValueError(
                f"the objective's Hessian has {size} columns, but there are {len(x)} variables"
            )
        try:
            if factors:
                return LeastSquares.around(x, *form)
            return Quadratic.around(x, Quadratic(form).Q)
        except ValueError as error:
            raise ValueError(f"invalid Hessian: {error}") from None

    def sample(self, x: Array) -> Smooth | None:
        """Return a similar function that is much cheaper to evaluate, or None."""
        return None

    def curvature(self, indices: Indices, delta: Array) -> None:
        """Return None, because the Hessian is not constant."""
        return None

    def block(self, indices: Indices) -> None:
        """Return None, because the Hessian is not constant."""
        return None

    def two_coordinate_constant(self) -> float | None:
        """Return an upper bound on L2 for convex f, ``max (sqrt(L_i) + sqrt(L_j))^2 / 2``."""
        if self.lipschitz is None:
            return None
        largest = np.sort(np.sqrt(self.lipschitz))[-2:]
        return float(largest.sum() ** 2 / 2)

    def in_layout(self, layout: Layout) -> Smooth:
        """Return the same function of ``z = coefficients * x``."""
        return _InLayout(self, layout)


class _InLayout(Smooth):
    """A smooth function in the variables of a layout; it is evaluated only within the bounds."""

    def __init__(self, smooth: Smooth, layout: Layout):
        self.smooth = copy.copy(smooth)
        self.smooth._bounds = layout.bounds
        self.layout = layout
        self.n = layout.n
        if smooth.constant_gradient is not None:
            self.constant_gradient = layout.derivatives(smooth.constant_gradient)
        if smooth._lipschitz is not None:
            n = len(layout.bounds[0])
            constants = layout.scatter_constants(checked_constants(smooth._lipschitz, n))
            # A slack variable has no curvature; any positive number is a Lipschitz constant for it.
            self._lipschitz = np.where(constants > 0, constants, constants[constants > 0].min())

    def __repr__(self) -> str:
        return repr(self.smooth)

    @property
    def gradient_is_given(self) -> bool:
        return self.smooth.gradient_is_given

    def value(self, x: ArrayLike) -> float:
        return self.smooth.value(self.layout.from_layout(np.asarray(x)))

    def gradient(self, x: ArrayLike) -> Array:
        point = self.layout.from_layout(np.asarray(x))
        return self.layout.derivatives(self.smooth.gradient(point))

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        value, gradient = self.smooth.value_and_gradient(self.layout.from_layout(np.asarray(x)))
        return value, self.layout.derivatives(gradient)

    def second_order(self, x: Array, moving: Indices) -> Quadratic | LeastSquares | None:
        if self.layout.source is not None:
            moving = self.layout.source[moving]
            moving = np.sort(moving[moving >= 0])  # without slack variables
        model = self.smooth.second_order(self.layout.from_layout(x), moving)
        return None if model is None else model.in_layout(self.layout)

    def rounding_errors(self, x: Array) -> tuple[float, Array] | None:
        inner = rounding_errors(self.smooth, self.layout.from_layout(x))
        return None if inner is None else (inner[0], np.abs(self.layout.derivatives(inner[1])))

    def falls_along(self, d: Array, cost: float = 0.0) -> bool | None:
        return falls_along(self.smooth, self.layout.direction(d), cost)

    @property
    def recession_rows(self) -> Array | None:
        rows = recession_rows(self.smooth)
        if rows is None:
            return None
        return np.array([self.layout.derivatives(row) for row in rows]).reshape(-1, self.n or 0)

    @property
    def lower_bound(self) -> float:
        return self.smooth.lower_bound

    def sample(self, x: Array) -> Smooth | None:
        part = self.smooth.sample(self.layout.from_layout(x))
        return None if part is None else part.in_layout(self.layout)


GRADIENT = "the objective's gradient"


def _require_callable(name: str, function: object) -> None:
    if not callable(function):
        raise ValueError(f"{name} must be callable, got {function!r}")


def _number(value: object) -> float:
    """Return the value of a user's function as a float; NaN (outside the domain) becomes inf."""
    if np.ndim(value) == 0 and value != value:  # type: ignore[arg-type]
        return math.inf
    return finite_number("the objective's value", value, infinite=True)


def _gradient(gradient: ArrayLike, n: int) -> Array:
    return of_length(GRADIENT, array(GRADIENT, gradient, 1), n).copy()


def _pair(answer: object) -> tuple[Any, Any]:
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise ValueError(
            f"value must return (value, gradient) because gradient=True, got {answer!r}"
        )
    return answer
