"""Portfolios whose assets contribute equally to the risk."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._validation import Array, full_vector
from ..labels import aligned, point_of
from ..show import described
from .objective import Indices
from .quadratic import Quadratic
from .ready_made import ReadyMade


class RiskParity(ReadyMade):
    """Risk and a logarithmic barrier, ``x'Qx / 2 - sum_i budgets_i log(x_i)``.

    Without a sum to keep, the minimum has the risk contributions ``x_i (Qx)_i = budgets_i``;
    divided by its sum it is the portfolio of risk parity. So give the sum a range and a start
    inside, as in the example. With a fixed sum the barrier keeps every asset in a portfolio of
    small variance.

    Parameters
    ----------
    Q : array_like of shape (n, n)
        The covariance. It is not copied: do not change it afterwards.
    budgets : float or array_like of shape (n,)
        What each asset may contribute, positive.

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
        """f, infinite where an asset is not held, and ``Qx - budgets / x``."""
        point = point_of(self, x)
        if not point.min() > 0:
            return math.inf, np.full(len(point), math.nan)
        risk, gradient = self._risk.value_and_gradient(point)
        barrier = float(np.sum(self._budgets * np.log(point)))
        return risk - barrier, gradient - self._budgets / point

    def second_order(self, x: Array, moving: Indices) -> Quadratic:
        """The Hessian is ``Q + diag(budgets / x^2)``."""
        return Quadratic.around(x, self._risk.Q).plus(0.0, self._budgets / x**2, x)
