"""Quadratics with the Hessian A'A plus a diagonal: least squares and factor models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from .. import _core, threads
from .._validation import (
    LARGE,
    LARGE_FACTOR,
    Array,
    array,
    finite_number,
    frozen,
    full_vector,
    require_finite,
    vector,
)
from ..constraints import Layout
from ..kept import kept
from ..labels import Axis, aligned, point_of
from ..show import described
from .matrices import PASSES_OF_BLOCK_SOLVER, largest_pair, native, sparse_matrix, sums_of_squares
from .objective import Fixed, Indices

# Size of the largest Gram matrix that is formed, in bytes: 2 GiB, for 16384 variables. A larger
# limit risks running out of memory; a smaller one recomputes blocks of smaller problems.
MAX_GRAM_BYTES = 2**31
# A diagonal below this fraction of the products it is added to would lose half of its 16 digits.
MIN_RELATIVE_DIAGONAL = 1e-8
# Numbers of variables above which blocks of the Hessian are cheaper than all of it, for least
# squares and for factor models. Below, computing all of it once is cheaper than computing blocks
# repeatedly.
MIN_BLOCK_VARIABLES = 1000
MIN_BLOCK_VARIABLES_OF_FACTORS = 200


def inner(left: Any, right: Array) -> Array:
    """Return ``left' right``; the result does not depend on the number of threads."""
    if scipy.sparse.issparse(left):
        return np.asarray(left.T @ right)
    return _core.inner(left, right, threads.for_work(left.size * right.shape[1]))


class LeastSquares(Fixed):
    """The function ``|Ax - b|^2 / 2 + ridge |x|^2 / 2``.

    Numbers beyond 1e50 in size (1e100 for the ridge) are rejected, because products would overflow.

    Parameters
    ----------
    A : array_like, DataFrame or scipy.sparse array of shape (m, n)
        One column per variable. It is not copied, so do not change it afterwards.
    b : array_like or Series of shape (m,)
        The right-hand side. Labels are aligned with those of A's rows; see `pairstep.labels`.
    ridge : float
        Weight of the squared norm of x.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.LeastSquares([[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])
    >>> f.value([0.0, 0.0])
    2.5
    """

    l1_terms = None
    is_quadratic = True
    weight: Array | None = None  # of squared residuals, any sign; only in models of other functions

    def __init__(self, A: Any, b: ArrayLike, ridge: float = 0.0):
        if finite_number("ridge", ridge) < 0:
            raise ValueError(f"ridge must not be negative, got {ridge:g}")
        self._set(("A", A), b, ("ridge", ridge), 0.0)

    def _set(
        self,
        named_matrix: tuple[str, Any],
        b: ArrayLike,
        named_ridge: tuple[str, ArrayLike],
        c: ArrayLike,
    ) -> None:
        name, A = named_matrix
        name_of_ridge, ridge = named_ridge
        rows, self.variables = Axis(), Axis()
        A = aligned(name, A, rows, self.variables)
        b = aligned("b", b, rows)
        ridge = aligned(name_of_ridge, ridge, self.variables)
        c = aligned("c", c, self.variables)
        if scipy.sparse.issparse(A):
            matrix: Any = sparse_matrix(name, A, LARGE_FACTOR).tocsc()
        else:
            matrix = array(name, A, 2)
            require_finite(name, matrix, LARGE_FACTOR)
        if matrix.shape[1] == 0:
            raise ValueError(f"{name} has no columns: there is nothing to minimize over")
        m, n = matrix.shape
        self.A: Any = matrix
        self.b: Array = frozen(vector("b", b, m, limit=LARGE_FACTOR))
        self.ridge: Array = frozen(full_vector(name_of_ridge, ridge, n, limit=LARGE))
        self.c: Array = frozen(full_vector("c", c, n, limit=LARGE))

    @classmethod
    def around(cls, x: Array, F: Any, D: ArrayLike = 0.0, weight: Array | None = None) -> Self:
        """Return the function ``(y - x)'H(y - x) / 2`` of y, up to a constant.

        Its Hessian H is ``F' diag(weight) F + diag(D)``.
        """
        model = object.__new__(cls)
        model._set(("F", F), np.zeros(np.shape(F)[0]), ("D", D), 0.0)
        model.weight = weight
        model.__dict__.update(b=model._forth(x), c=-model.ridge * x)
        return model

    def plus(self, slope: ArrayLike, curvature: ArrayLike, center: Array) -> Self:
        """Return the function plus ``slope'x + sum_i curvature_i (x_i - center_i)^2 / 2``."""
        other = object.__new__(type(self))
        other.A, other.b, other.weight = self.A, self.b, self.weight
        other.ridge = self.ridge + np.asarray(curvature)
        other.c = self.c + (np.asarray(slope) - np.asarray(curvature) * center)
        return other

    def __repr__(self) -> str:
        return described("LeastSquares", A=self.A, b=self.b, ridge=self.ridge)

    @property
    def n(self) -> int:
        """The number of variables."""
        return int(self.A.shape[1])

    @kept
    def lipschitz(self) -> Array:
        """The Lipschitz constants: the squared norms of the columns plus the ridge."""
        if scipy.sparse.issparse(self.A):
            return np.asarray(self.A.multiply(self.A).sum(axis=0)).ravel() + self.ridge
        if self.weight is not None:
            return np.asarray(np.einsum("i,ij,ij->j", self.weight, self.A, self.A) + self.ridge)
        return np.asarray(np.einsum("ij,ij->j", self.A, self.A) + self.ridge)

    @kept
    def hessian(self) -> Array | None:
        """The Gram matrix ``A'A + ridge I``, if it fits into memory."""
        return None if self.n**2 * 8 > MAX_GRAM_BYTES else self.block(np.arange(self.n))

    @kept
    def linear(self) -> Array:
        """The gradient at 0, ``c - A'b``."""
        return np.asarray(self.c - self._back(self.b))

    @property
    def prefers_blocks(self) -> bool:
        """Whether blocks of the Gram matrix are cheaper than all of it."""
        return self.n > MIN_BLOCK_VARIABLES

    @property
    def direct_solves(self) -> bool:
        """Whether the block solver can solve directly, by Newton's method on the dual."""
        few_rows = 2 * self.A.shape[0] <= self.n and not scipy.sparse.issparse(self.A)
        return few_rows and bool(self.ridge.min() > 0)

    @property
    def is_convex(self) -> bool:
        """Whether f is convex: it is a sum of squares unless it was built with other weights."""
        return self.weight is None and bool(self.ridge.min() >= 0)

    @property
    def has_minimum(self) -> bool:
        """Whether f is certainly bounded below, even if rounding hides its curvature."""
        return self.weight is None and bool(self.ridge.min() > 0 or not self.c.any())

    def oracle(self, point: Any) -> Any:
        """Return a native oracle for the block solver."""
        columns = self.A.T if scipy.sparse.issparse(self.A) else self.A
        entries = self.A.nnz if scipy.sparse.issparse(self.A) else self.A.size
        workers = threads.for_work(PASSES_OF_BLOCK_SOLVER * entries)
        return _core.gram_oracle(
            native(columns), self.b, self.ridge, self.c, point, workers, self.weight
        )

    def argument_derivatives(self, x: Array, w: Array) -> dict[str, Callable[[], Any]]:
        """Return the derivatives of ``-w'gradient(x)`` with respect to A, b and the ridge."""
        A, b = self.A, self.b
        return {
            "A": lambda: -(np.outer(A @ x - b, w) + np.outer(A @ w, x)),
            "b": lambda: A @ w,
            "ridge": lambda: float(-w @ x),
        }

    def gradient_change(self, x: Array, name: str, change: Any) -> Array | None:
        """Return the change of the gradient at x if A, b or the ridge changes."""
        given = np.asarray(change, float)
        if name == "A":
            return np.asarray(given.T @ (self.A @ x - self.b) + self.A.T @ (given @ x))
        if name == "b":
            return np.asarray(-(self.A.T @ given))
        return given * x if name == "ridge" else None

    def with_linear(self, c: ArrayLike) -> LeastSquares:
        """Return the function with the linear term ``c'x`` in place of its own."""
        other = object.__new__(type(self))
        variables = Axis.of(self)
        linear = frozen(vector("c", aligned("c", c, variables), self.n, limit=LARGE))
        other.__dict__.update(self.__dict__, c=linear, variables=variables)
        other.__dict__.pop("linear", None)
        return other

    def value(self, x: ArrayLike) -> float:
        """Return f(x)."""
        point = point_of(self, x)
        return self._value(point, self._forth(point) - self.b)

    def gradient(self, x: ArrayLike) -> Array:
        """Return the gradient ``A'(Ax - b) + ridge x + c``."""
        return self.value_and_gradient(x)[1]

    def value_and_gradient(self, x: ArrayLike) -> tuple[float, Array]:
        """Return f(x) and the gradient, from one residual."""
        point = point_of(self, x)
        residual = self._forth(point) - self.b
        gradient = self._back(residual) + self.ridge * point + self.c
        return self._value(point, residual), np.asarray(gradient)

    def _forth(self, x: Array) -> Array:
        return self.A @ x if scipy.sparse.issparse(self.A) else _core.times_vector(self.A, x)

    def _back(self, residual: Array) -> Array:
        if scipy.sparse.issparse(self.A):
            return np.asarray(self.A.T @ residual)
        return _core.transposed_times_vector(self.A, self._weighted(residual))

    def _weighted(self, residual: Array) -> Array:
        return residual if self.weight is None else self.weight * residual

    def _value(self, x: Array, residual: Array) -> float:
        squares = _core.dot(residual, self._weighted(residual))
        return 0.5 * squares + _core.dot(0.5 * self.ridge * x + self.c, x)

    def products(self, x: Array) -> Array:
        """Return the size of the products summed in each derivative, for its rounding error."""
        largest = float(np.abs(x).max()) or 1.0
        residual = self._weighted(np.sqrt(sums_of_squares(self.A, x / largest)))
        squares = sums_of_squares(self.A.T, residual) + (self.ridge * (x / largest)) ** 2
        return np.asarray(largest * np.sqrt(squares))

    def curvature(self, indices: Indices, delta: Array) -> float:
        """Return ``|Ad|^2 + ridge |d|^2`` for the step d."""
        change = self.A[:, indices] @ delta
        return float(change @ self._weighted(change) + self.ridge[indices] * delta @ delta)

    def block(self, indices: Indices) -> Array:
        """Return these rows and columns of the Gram matrix."""
        all_of_them = len(indices) == self.n
        if scipy.sparse.issparse(self.A):
            columns = self.A if all_of_them else self.A[:, indices]
            gram = np.ascontiguousarray((columns.T @ columns).toarray())
        else:
            workers = threads.for_work(len(self.A) * len(indices) ** 2 / 2)
            gram = _core.gram(self.A, None if all_of_them else indices, workers, self.weight)
        gram[np.diag_indices(len(indices))] += self.ridge[indices]
        return gram

    def two_coordinate_constant(self) -> float:
        """Return L2 exactly, computed by blocks of rows if the Gram matrix does not fit."""
        if self.hessian is not None:
            return _core.two_coordinate_constant(self.hessian)

        def rows_of(rows: slice) -> Array:
            if scipy.sparse.issparse(self.A):
                return np.asarray((self.A[:, rows].T @ self.A).toarray())
            return inner(self.A[:, rows], self.A)

        return largest_pair(self.lipschitz, rows_of)

    def in_layout(self, layout: Layout) -> LeastSquares:
        """Return the function of ``z = coefficients * x``; columns of slack variables are 0."""
        if layout.source is None and layout.coefficients is None:
            return self
        scale = layout.derivatives(np.ones(self.n))
        at = np.arange(self.n) if layout.source is None else layout.source
        converted = object.__new__(type(self))
        columns = self.A[:, at]
        if scipy.sparse.issparse(columns):
            converted.A = scipy.sparse.csc_array(columns @ scipy.sparse.diags_array(scale))
        else:
            converted.A = np.ascontiguousarray(columns * scale)
        converted.b, converted.weight = self.b, self.weight
        converted.ridge = self.ridge[at] * scale**2
        converted.c = self.c[at] * scale
        return converted


class FactorModel(LeastSquares):
    """The function ``x'(F'F + diag(D))x / 2 + c'x``; the n x n matrix is not formed.

    Numbers beyond 1e100 in size (1e50 for F) are rejected, because products would overflow.

    Parameters
    ----------
    F : array_like, DataFrame or scipy.sparse array of shape (m, n)
        One row per factor, one column per variable. It is not copied, so do not change it
        afterwards.
    D : float, array_like or Series of shape (n,)
        The diagonal, at least 0: the variance that the factors do not explain.
    c : array_like or Series of shape (n,), optional
        The linear term. Labels are aligned with those of F's columns; see `pairstep.labels`.

    Examples
    --------
    >>> import pairstep
    >>> f = pairstep.FactorModel([[1.0, 1.0]], [1.0, 3.0])
    >>> f.value([1.0, 1.0])
    4.0
    """

    def __init__(self, F: Any, D: ArrayLike = 0.0, c: ArrayLike | None = None):
        if np.ndim(F) != 2:
            raise ValueError(f"F must have 2 dimensions, got {np.ndim(F)}")
        self._set(("F", F), np.zeros(np.shape(F)[0]), ("D", D), 0.0 if c is None else c)
        if self.ridge.min() < 0:
            i = int(np.argmin(self.ridge))
            raise ValueError(f"D must not be negative, but D[{i}] = {self.ridge[i]:g}")

    def __repr__(self) -> str:
        return described("FactorModel", F=self.A, D=self.ridge, c=self.c)

    def argument_derivatives(self, x: Array, w: Array) -> dict[str, Callable[[], Any]]:
        """Return the derivatives of ``-w'gradient(x)`` with respect to F, D and c."""
        of_factors = super().argument_derivatives(x, w)["A"]
        return {"F": of_factors, "D": lambda: -w * x, "c": lambda: -w}

    def gradient_change(self, x: Array, name: str, change: Any) -> Array | None:
        """Return the change of the gradient at x if F, D or c changes."""
        if name == "c":
            return np.asarray(change, float)
        return super().gradient_change(x, {"F": "A", "D": "ridge"}.get(name, ""), change)

    @property
    def prefers_blocks(self) -> bool:
        """Whether blocks of the Hessian are cheaper than all of it.

        They are also preferred if there are few factors and the diagonal would be lost in their
        products.
        """
        return self.n > MIN_BLOCK_VARIABLES_OF_FACTORS or (
            self.direct_solves and self.ridge.min() < MIN_RELATIVE_DIAGONAL * self.lipschitz.max()
        )
