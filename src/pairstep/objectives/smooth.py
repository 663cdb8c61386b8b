"""Any smooth function, from Python callables."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import Array, array, finite_number, of_length, require_finite
from ..constraints import Layout
from ..labels import Axis, aligned, point_of
from ..rules import checked_constants
from ..show import described
from . import autodiff
from .differences import differences
from .least_squares import LeastSquares
from .objective import Fixed, Indices
from .quadratic import Quadratic

EVERYWHERE: tuple[Any, Any] = -math.inf, math.inf


class Smooth(Fixed):
    """Any smooth function, from Python callables.

    They are given a copy of the point, and what they return is copied. Where the value is +inf or
    NaN, or the gradient is not finite, a point counts as outside the domain: steps are shortened so
    as not to end there.

    Parameters
    ----------
    value : callable
        ``value(x) -> float``.
    gradient : callable, True, "jax", "torch" or None
        ``gradient(x) -> ndarray`` of the length of x. True: ``value(x)`` returns a pair of both.
        "jax" and "torch": `value` is written with that library, which differentiates it. None:
        differences of values, ``2 n + 2`` for a gradient, all within the bounds.
    hessian : callable, "jax", "torch" or None
        ``hessian(x)`` returns the matrix of second derivatives, dense or sparse, or a pair
        ``(F, d)`` that stands for ``F'F + diag(d)``, which is not multiplied out where n is large:
        factors and a diagonal or, with d = 0, a least-squares form; a `FactorModel` or
        `LeastSquares` stands for its own. None: curvature is learnt from gradients.
    lipschitz : float or array_like, optional
        Coordinate-wise Lipschitz constants of the gradient; needed by the weighted rules and by
        the steps "1/L2" and "lipschitz".
    n : int, optional
        The number of variables, where bounds and x0 do not tell it.
    value_and_gradient : callable, optional
        ``value_and_gradient(x) -> (float, ndarray)``, in place of `value` and `gradient`.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> entropy = pairstep.Smooth(lambda x: float(x @ np.log(x)), lambda x: np.log(x) + 1)
    >>> budget = pairstep.SumBox(total=1.0, lower=1e-6, upper=[0.2, 1.0, 1.0])
    >>> pairstep.minimize(entropy, budget).x.round(6)
    array([0.2, 0.4, 0.4])

    With second derivatives few iterations do; without any derivative it still works:

    >>> bent = pairstep.Smooth(
    ...     lambda x: float(x @ np.log(x)), lambda x: np.log(x) + 1, lambda x: np.diag(1 / x)
    ... )
    >>> pairstep.minimize(bent, budget).x.round(6)
    array([0.2, 0.4, 0.4])
    >>> pairstep.minimize(pairstep.Smooth(lambda x: float(x @ np.log(x))), budget).x.round(6)
    array([0.2, 0.4, 0.4])
    """

    kinks = None
    linear = None
    is_quadratic = False
    prefers_blocks = False
    n: int | None = None
    _lipschitz: ArrayLike | None = None
    _bounds = EVERYWHERE  # within which differences are taken
    # What no x changes in the gradient, where it may cancel with the rest.
    constant_gradient: Array | None = None

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
                raise ValueError("give value_and_gradient, or value and gradient, not both")
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
        self._lipschitz = lipschitz
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
    def lipschitz(self) -> Array | None:
        """The constants that were given."""
        if self._lipschitz is None or self.n is None:
            return None
        return checked_constants(self._lipschitz, self.n)

    @property
    def hessian(self) -> None:
        """Not constant."""
        return None

    def value(self, x: ArrayLike) -> float:
        """f(x), infinite outside the domain."""
        point = np.array(point_of(self, x))
        return _number(self._value(point) if self._both is None else _pair(self._both(point))[0])

    def gradient(self, x: ArrayLike) -> Array:
        """The gradient at x."""
        gradient = self._gradient_at(np.array(point_of(self, x)))
        require_finite(GRADIENT, gradient)
        return gradient

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Both from one call where there is one; f is infinite where the gradient is not finite."""
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
        """``(y - x)'H(y - x) / 2`` with the Hessian H at x, if it is known.

        It need only be right for moves of the variables `moving`.
        """
        if self._hessian is None:
            return None
        form = self._hessian(np.array(x, float))
        if isinstance(form, LeastSquares):
            form = form.A, form.ridge
        factors = isinstance(form, tuple)
        size = (np.shape(form[0] if factors else form) or (0,))[-1]
        if size != len(x):
            raise ValueError(f"the objective's Hessian is for {size} variables, not {len(x)}")
        try:
            if factors:
                return LeastSquares.around(x, *form)
            return Quadratic.around(x, Quadratic(form).Q)
        except ValueError as error:
            raise ValueError(f"the objective's Hessian is of no use: {error}") from None

    def sample(self, x: Array) -> Smooth | None:
        """A function that is similar around x and towards the minimum, and costs much less."""
        return None

    def curvature(self, indices: Indices, delta: Array) -> None:
        """Not constant."""
        return None

    def block(self, indices: Indices) -> None:
        """Not constant."""
        return None

    def two_coordinate_constant(self) -> float | None:
        """Bound L2 for convex f by ``max (sqrt(L_i) + sqrt(L_j))^2 / 2``."""
        if self.lipschitz is None:
            return None
        largest = np.sort(np.sqrt(self.lipschitz))[-2:]
        return float(largest.sum() ** 2 / 2)

    def in_accounts(self, layout: Layout) -> Smooth:
        """The same function of ``z = weights * x``."""
        return _InAccounts(self, layout)


class _InAccounts(Smooth):
    """A smooth function of the accounts of a constraint; asked within the bounds only."""

    def __init__(self, smooth: Smooth, layout: Layout):
        self.smooth = copy.copy(smooth)
        self.smooth._bounds = layout.bounds
        self.layout = layout
        self.n = layout.n
        if smooth.constant_gradient is not None:
            self.constant_gradient = layout.prices(smooth.constant_gradient)
        if smooth._lipschitz is not None:
            n = len(layout.bounds[0])
            constants = layout.scatter_constants(checked_constants(smooth._lipschitz, n))
            # Cash has no curvature; any positive number is a Lipschitz constant of it.
            self._lipschitz = np.where(constants > 0, constants, constants[constants > 0].min())

    def __repr__(self) -> str:
        return repr(self.smooth)

    def value(self, x: ArrayLike) -> float:
        return self.smooth.value(self.layout.to_coordinates(np.asarray(x)))

    def gradient(self, x: ArrayLike) -> Array:
        point = self.layout.to_coordinates(np.asarray(x))
        return self.layout.prices(self.smooth.gradient(point))

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        value, gradient = self.smooth.value_and_gradient(self.layout.to_coordinates(np.asarray(x)))
        return value, self.layout.prices(gradient)

    def second_order(self, x: Array, moving: Indices) -> Quadratic | LeastSquares | None:
        if self.layout.source is not None:
            moving = self.layout.source[moving]
            moving = np.sort(moving[moving >= 0])  # cash is nobody's variable
        model = self.smooth.second_order(self.layout.to_coordinates(x), moving)
        return None if model is None else model.in_accounts(self.layout)

    def sample(self, x: Array) -> Smooth | None:
        part = self.smooth.sample(self.layout.to_coordinates(x))
        return None if part is None else part.in_accounts(self.layout)


GRADIENT = "the objective's gradient"


def _require_callable(name: str, function: object) -> None:
    if not callable(function):
        raise ValueError(f"{name} must be callable, got {function!r}")


def _number(value: object) -> float:
    """What a function returned as a number; NaN, as of a logarithm, is outside the domain."""
    if np.ndim(value) == 0 and value != value:  # type: ignore[arg-type]
        return math.inf
    return finite_number("the objective's value", value, infinite=True)


def _gradient(gradient: ArrayLike, n: int) -> Array:
    return of_length(GRADIENT, array(GRADIENT, gradient, 1), n).copy()


def _pair(answer: object) -> tuple[Any, Any]:
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise ValueError(f"value must return (value, gradient), as gradient=True says: {answer!r}")
    return answer
