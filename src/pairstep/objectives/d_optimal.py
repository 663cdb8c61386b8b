"""D-optimal experimental design."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .. import _core, threads
from .._validation import Array
from ..kept import kept
from ..labels import Axis, point_of
from ..show import described
from .objective import Indices
from .quadratic import Quadratic
from .ready_made import ReadyMade, embedded, matrix
from .rounding import EPS, precise_product

# Condition number of A'A, with columns scaled to unit length, up to which A is used unchanged. The
# log-determinant then keeps at least 12 digits, and a change of basis would only cost time.
MAX_CONDITION_UNCHANGED = 1e4


class DOptimal(ReadyMade):
    """The negative log-determinant of a design's information, ``-log det(sum_i x_i a_i a_i')``.

    The minimum over the simplex is the D-optimal design: how often to measure at each of n points,
    for the smallest confidence ellipsoid of the p parameters of a linear model.

    Parameters
    ----------
    A : array_like of shape (n, p)
        A row of regressors for each point. It is not copied, so do not change it afterwards.

    Examples
    --------
    A line over [-1, 1] is measured best at the end points.

    >>> import numpy as np, pairstep
    >>> places = np.linspace(-1, 1, 5)
    >>> design = pairstep.DOptimal(np.column_stack([np.ones(5), places]))
    >>> pairstep.minimize(design, pairstep.Simplex()).x.round(6)
    array([0.5, 0. , 0. , 0. , 0.5])
    """

    def __init__(self, A: ArrayLike):
        self.variables = Axis()
        self._A, _ = matrix("A", A, self.variables, Axis())
        self.n = len(self._A)
        if len(self._A) < self._A.shape[1]:
            raise ValueError(
                f"A must have at least as many rows as columns, got shape {self._A.shape}: "
                "otherwise no design identifies all parameters"
            )

    def __repr__(self) -> str:
        return described("DOptimal", A=self._A)

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Return f, infinite if a parameter is not identified, and the negative variances."""
        factor = self._factor(point_of(self, x))
        if factor is None or self._basis is None:
            return math.inf, np.full(len(self._A), math.nan)
        rows, shift = self._basis
        value = shift - 2 * float(np.log(np.diagonal(factor)).sum())
        return value, -self._variances(factor, rows)

    def second_order(self, x: Array, moving: Indices) -> Quadratic | None:
        """Return the model with the Hessian, whose entries are ``(a_i' M^-1 a_j)^2``."""
        factor = self._factor(x)
        assert factor is not None
        assert self._basis is not None
        if 2 * len(moving) > len(x):  # computing all entries is cheaper than embedding a part
            moving = np.arange(len(x))
        rows = self._basis[0][moving]
        workers = threads.for_work(len(moving) ** 2 * rows.shape[1])
        covariance = _core.inner(rows.T, self._solved(factor, rows).T, workers)
        np.square(covariance, out=covariance)
        # The entrywise square of a positive semidefinite matrix is positive semidefinite (Schur).
        return Quadratic.around(x, embedded(covariance, moving, len(x)), is_convex=True)

    def rounding_errors(self, x: Array) -> tuple[float, Array]:
        """Return bounds on the rounding errors of value and gradient at x."""
        factor = self._factor(x)
        change = math.inf if factor is None else self._change(factor, x)
        if factor is None or self._basis is None or change >= 0.5:
            return math.inf, np.full(len(x), math.inf)
        rows, shift = self._basis
        logarithms = 4 * float(np.abs(np.log(np.diagonal(factor))).sum()) + 2 * abs(shift)
        error = EPS * (len(factor) + 4) * logarithms
        return 2 * change + error, 2 * change * self._variances(factor, rows)

    def _change(self, factor: Array, x: Array) -> float:
        """Return a bound on the relative effect of rounding on det M and on the variances.

        Rounding changes the entries of M, scaled to a unit diagonal, by at most a multiple of
        `EPS`, including the factorization (Higham, Accuracy and Stability, section 10.1). The trace
        of the scaled inverse bounds the effect.
        """
        assert self._basis is not None
        rows, p = self._basis[0], len(factor)
        inverse = np.diagonal(self._solved(factor, np.eye(p)))
        sizes = np.einsum("ij,ij,i->j", rows, rows, np.abs(x))
        return EPS * p * (np.count_nonzero(x) + p + 4) * float(sizes @ inverse)

    def falls_along(self, d: Array, cost: float = 0.0) -> bool | None:
        """Return whether ``f(x + t d) + cost t`` falls without bound as t grows; None if unknown.

        A logarithm grows more slowly than any cost. A direction that reduces no weight adds
        information, so the determinant grows; it also grows if the information of the direction is
        positive definite.
        """
        if cost > 0:
            return False
        if d.min() >= 0:
            return bool(cost < 0 or np.abs(self._A[d > 0]).max(initial=0.0) > 0)
        factor = self._factor(d)
        return True if factor is not None and self._change(factor, d) < 0.5 else None

    @kept
    def _basis(self) -> tuple[Array, float] | None:
        """The regressors in a well-conditioned basis of the parameters.

        None if the columns of A are linearly dependent up to rounding.

        With rows ``T'a_i`` in place of ``a_i``, the log-determinant changes by a constant, the
        second number, and the variances ``a_i' M^-1 a_i`` do not change. In the basis of a QR
        factorization of A with scaled columns, the condition number of M is at most n p at the
        optimum over the simplex, where no variance exceeds p. The product A T is computed in twice
        the precision, so the error of T does not matter for any condition number of A.
        """
        A = self._A
        largest = np.maximum(A.max(axis=0), -A.min(axis=0))
        scale = np.ldexp(1.0, -np.frexp(np.where(largest > 0, largest, 1.0))[1])
        gram = _core.gram(A, None, threads.for_work(A.size * A.shape[1])) * scale * scale[:, None]
        size = np.sqrt(np.diagonal(gram))
        with np.errstate(all="ignore"):
            spectrum = np.linalg.eigvalsh(gram / size / size[:, None]) if size.all() else [0.0, 1.0]
        if spectrum[0] * MAX_CONDITION_UNCHANGED >= spectrum[-1]:
            return A, 0.0
        scaled = A * scale
        R = np.linalg.qr(scaled, mode="r")
        diagonal = np.abs(np.diagonal(R))
        if not diagonal.min() > len(diagonal) * EPS * diagonal.max():
            return None
        T = scipy.linalg.solve_triangular(R, np.eye(len(R)))
        shift = 2 * float(np.log(np.abs(np.diagonal(T))).sum() + np.log(scale).sum())
        return precise_product(scaled, T), shift

    def _factor(self, x: Array) -> Array | None:
        """Return the Cholesky factor of the information M in the basis of `_basis`, or None."""
        if self._basis is None:
            return None
        some = np.flatnonzero(x)
        rows = self._basis[0][some]
        information = _core.gram(rows, None, threads.for_work(rows.size * rows.shape[1]), x[some])
        return information if _core.cholesky(information) else None

    def _variances(self, factor: Array, rows: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", rows, self._solved(factor, rows)))

    def _solved(self, factor: Array, rows: Array) -> Array:
        result = rows.copy()
        _core.cholesky_solve(factor, result)
        return result
