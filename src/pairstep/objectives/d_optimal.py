"""Optimal experimental design."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .. import _core, threads
from .._validation import Array
from ..labels import Axis, point_of
from ..show import described
from .objective import Indices
from .quadratic import Quadratic
from .ready_made import ReadyMade, embedded, matrix


class DOptimal(ReadyMade):
    """Minus the log-determinant of the information of a design, ``-log det(sum_i x_i a_i a_i')``.

    The minimum over the simplex is the D-optimal design: how often to measure at each of n places,
    for the smallest confidence ellipsoid of the p parameters of a linear model.

    Parameters
    ----------
    A : array_like of shape (n, p)
        A row of regressors for each place. It is not copied: do not change it afterwards.

    Examples
    --------
    A line over [-1, 1] is best measured at the ends.

    >>> import numpy as np, pairstep
    >>> places = np.linspace(-1, 1, 5)
    >>> design = pairstep.DOptimal(np.column_stack([np.ones(5), places]))
    >>> pairstep.minimize(design, pairstep.Simplex()).x.round(6)
    array([0.5, 0. , 0. , 0. , 0.5])
    """

    def __init__(self, A: ArrayLike):
        self.variables = Axis()
        self._A = matrix("A", A, self.variables, Axis())
        self.n = len(self._A)
        if len(self._A) < self._A.shape[1]:
            raise ValueError(
                f"A must have as many rows as columns at least, got shape {self._A.shape}: "
                "no design measures all parameters"
            )

    def __repr__(self) -> str:
        return described("DOptimal", A=self._A)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """f, infinite where the design leaves a parameter open, and minus the variances."""
        factor = self._factor(point_of(self, x))
        if factor is None:
            return math.inf, np.full(len(self._A), math.nan)
        value = -2 * float(np.log(np.diagonal(factor)).sum())
        return value, -np.einsum("ij,ij->i", self._A, self._solved(factor, self._A))

    def second_order(self, x: Array, moving: Indices) -> Quadratic | None:
        """The Hessian's entries are ``(a_i' M^-1 a_j)^2``."""
        factor = self._factor(x)
        assert factor is not None
        if 2 * len(moving) > len(x):  # the whole costs less than to put the part in its place
            moving = np.arange(len(x))
        rows = self._A[moving]
        workers = threads.worth(len(moving) ** 2 * rows.shape[1])
        covariance = _core.inner(rows.T, self._solved(factor, rows).T, workers)
        np.square(covariance, out=covariance)
        return Quadratic.around(x, embedded(covariance, moving, len(x)))

    def _factor(self, x: Array) -> Array | None:
        """The Cholesky factor of the information M, if it has one."""
        some = np.flatnonzero(x)
        rows = self._A[some]
        information = _core.gram(rows, None, threads.worth(rows.size * rows.shape[1]), x[some])
        return information if _core.cholesky(information) else None

    def _solved(self, factor: Array, rows: Array) -> Array:
        result = rows.copy()
        _core.cholesky_solve(factor, result)
        return result
