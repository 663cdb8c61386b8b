"""Risk-parity portfolios, whose assets contribute equally to the risk."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .._validation import Array, full_vector
from ..labels import aligned, point_of
from ..show import described
from .objective import Indices
from .quadratic import Quadratic
from .ready_made import ReadyMade
from .rounding import EPS, signs_of_products


class RiskParity(ReadyMade):
    """Risk plus a logarithmic barrier, ``x'Qx / 2 - sum_i budgets_i log(x_i)``.

    Without a sum constraint, the minimum has the risk contributions ``x_i (Qx)_i = budgets_i``.
    Divided by its sum it is the risk-parity portfolio. So use a range for the sum and a starting
    point inside, as in the example. With a fixed sum, the barrier keeps every asset in a portfolio
    of small variance.

    Parameters
    ----------
    Q : array_like of shape (n, n)
        The covariance matrix. It is not copied, so do not change it afterwards.
    budgets : float or array_like of shape (n,)
        Risk contribution of each asset, positive.

    Examples
    --------
    >>> import numpy as np, pairstep
    >>> Q = np.array([[4.0, 1.0], [1.0, 1.0]])
    >>> result = pairstep.minimize(
    ...     pairstep.RiskParity(Q), pairstep.SumBox(total=(0.0, np.inf)), x0=[1.0, 1.0]
    ... )
    >>> x = result.x / result.x.sum()
    >>> x.round(6), (x * (Q @ x) / (x @ Q @ x)).round(6)
    (array([0.333333, 0.666667]), array([0.5, 0.5]))
    """

    def __init__(self, Q: Any, budgets: ArrayLike = 1.0):
        self._risk = Quadratic(Q)
        self.n, self.variables = self._risk.n, self._risk.variables
        self._budgets = full_vector("budgets", aligned("budgets", budgets, self.variables), self.n)
        if self._budgets.min() <= 0:
            i = int(np.argmin(self._budgets))
            raise ValueError(f"budgets must be positive, but budgets[{i}] = {self._budgets[i]:g}")

    def __repr__(self) -> str:
        return described("RiskParity", Q=self._risk.Q, budgets=self._budgets)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Return f, infinite if an asset is not held, and ``Qx - budgets / x``."""
        point = point_of(self, x)
        if not point.min() > 0:
            return math.inf, np.full(len(point), math.nan)
        risk, gradient = self._risk.value_and_gradient(point)
        barrier = float(np.sum(self._budgets * np.log(point)))
        return risk - barrier, gradient - self._budgets / point

    def second_order(self, x: Array, moving: Indices) -> Quadratic:
        """Return the model with the Hessian ``Q + diag(budgets / x^2)``."""
        return Quadratic.around(x, self._risk.Q).plus(0.0, self._budgets / x**2, x)

    def rounding_errors(self, x: Array) -> tuple[float, Array]:
        """Return bounds on the rounding errors of value and gradient at x."""
        if not x.min() > 0:
            return math.inf, np.full(len(x), math.inf)
        products = np.asarray(abs(self._risk.Q) @ x)
        relative_error = EPS * (len(x) / 2 + 8)
        barrier = self._budgets * np.abs(np.log(x))
        value = float(x @ products + barrier.sum())
        return 2 * relative_error * value, relative_error * products + 4 * EPS * self._budgets / x

    def falls_along(self, d: Array, cost: float = 0.0) -> bool | None:
        """Return whether ``f(x + t d) + cost t`` falls without bound as t grows; None if unknown.

        The ray stays in the domain if no entry of d is negative. Then the curvature decides; if it
        is 0, the logarithms decide, unless there is a cost.
        """
        if d.min() < 0:
            return False
        products = np.asarray(self._risk.Q @ d)
        curvature = float(d @ products)
        error = 2 * EPS * (len(d) + 4) * float(d @ (abs(self._risk.Q) @ d))
        if abs(curvature) > error:
            return curvature < 0
        if scipy.sparse.issparse(self._risk.Q) or signs_of_products(self._risk.Q, d).any():
            return None
        return bool(d.max() > 0 and cost <= 0)

    @property
    def recession_rows(self) -> Array | None:
        """Rows R: f falls without bound along d if ``Rd >= 0`` and an entry of Rd is positive.

        The condition is that d is not negative and has no risk, for positive semidefinite Q.
        """
        Q = self._risk.Q
        return None if scipy.sparse.issparse(Q) else np.vstack([np.eye(self.n), Q, -Q])
